"""Conditions on a part of a date or of a text: an index of the whole of it is read as far as they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, Optional

import pytest

import zlmdb


@dataclass
class Entry:
    name: str
    raw: bytes
    day: date
    at: datetime
    note: Optional[str] = None


class Entries(zlmdb.Table[int, Entry]):
    by_name = zlmdb.Index[str]("name")
    by_lower = zlmdb.Index[str]("name.lower()")
    by_raw = zlmdb.Index[bytes]("raw")
    by_day = zlmdb.Index[date]("day")
    by_at = zlmdb.Index[datetime]("at")
    by_note = zlmdb.Index[str]("note")


class Log(zlmdb.Schema):
    entries: Entries
    by_text: zlmdb.Table[str, int]


FIRST = datetime(1999, 11, 20, 12, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def log() -> Iterator[Any]:
    with zlmdb.open(None, Log) as db:
        with db.write() as t:
            for n in range(2000):
                zone = timezone(timedelta(hours=n % 3 * 11 - 11))
                at = (FIRST + timedelta(hours=n * 16)).astimezone(zone)
                name = ("U" if n % 3 else "u") + f"{n:04}"[: 2 + n % 3]
                t.entries[n] = Entry(name, name.encode(), at.date(), at, name if n % 2 else None)
                t.by_text[f"u{n}"] = n
        yield db


def _checked(table: Any, function: Callable[..., Any]) -> tuple[Any, list[Any]]:
    """The access that finds what *function* wants, and the rows, which are those of a loop."""
    rows = [(key, value) for key, value in table.items() if function(value)]
    query = table.where(function)
    assert query.all() == query.all() == rows
    assert query.count() == query.count() == len(rows)
    accesses = table.where(function)._running().choice().accesses
    assert len(accesses) == 1
    return accesses[0], rows


def _measured(table: Any, access: Any) -> int:
    return int(table.select()._running().reads.measure(access, 10**9))


def test_a_year_and_a_month_are_one_range(log: Any) -> None:
    with log.read() as t:
        access, rows = _checked(t.entries, lambda e: e.day.year == 2001 and e.day.month == 2)
        assert access.facts.name == "by_day"
        assert _measured(t.entries, access) == len(rows) > 0
        access, rows = _checked(t.entries, lambda e: 12 == e.day.month and e.day.year == 2000)  # noqa: SIM300
        assert _measured(t.entries, access) == len(rows) > 0
        access, rows = _checked(t.entries, lambda e: e.day.year == 2000 and e.day.month == 2 and e.day.day == 29)
        assert _measured(t.entries, access) == len(rows) > 0
        access, rows = _checked(t.entries, lambda e: e.day.month == 3 and e.name > "u" and e.day.year == 2001)
        assert _measured(t.entries, access) >= len(rows) > 0


def test_moments_of_a_month_are_sought_in_all_zones(log: Any) -> None:
    with log.read() as t:
        access, rows = _checked(t.entries, lambda e: e.at.year == 2001 and e.at.month == 2)
        assert access.facts.name == "by_at"
        assert len(rows) <= _measured(t.entries, access) <= len(rows) + 10
        access, rows = _checked(t.entries, lambda e: e.at.year == 2001 and e.at.month == 2 and e.at.day == 1)
        assert len(rows) <= _measured(t.entries, access) <= len(rows) + 10


def test_captured_months_need_no_other_plan(log: Any) -> None:
    def of(year: Any, month: Any, day: Any) -> Any:
        return lambda e: e.day.year == year and e.day.month == month and (day is None or e.day.day == day)

    with log.read() as t:
        for given in [(2001, 2, None), (2001, 12, None), (9999, 12, None), (2001, 13, None), (2001, 2.0, None)]:
            for day in (None, 1, 29, 31):
                function = of(*given[:2], day)
                rows = [key for key, value in t.entries.items() if function(value)]
                for _ in range(3):
                    assert t.entries.where(of(*given[:2], day)).keys().all() == rows
                    assert t.entries.where(of(*given[:2], day)).count() == len(rows)


def test_other_months_are_not_one_range(log: Any) -> None:
    with log.read() as t:
        for function in (
            lambda e: e.day.month == 2,
            lambda e: e.day.year == 2001 or e.day.month == 2,
            lambda e: e.day.year == 2001 and e.at.month == 2,
            lambda e: e.day.year == 2001 and e.day.month >= 11,
            lambda e: e.day.year == 2001 and e.day.year == 2002 and e.day.month == 2,
            lambda e: e.day.year == 2001 and not e.day.month == 2,  # noqa: SIM201
        ):
            rows = [key for key, value in t.entries.items() if function(value)]
            assert t.entries.where(function).keys().all() == rows
            assert t.entries.where(function).count() == len(rows)
            ordered = t.entries.where(function).order_by(lambda e: e.day).limit(5).keys().all()
            assert ordered == sorted(rows, key=lambda key: t.entries[key].day)[:5]


def test_a_slice_is_a_beginning(log: Any) -> None:
    def of(begin: Any, stop: Any) -> Any:
        return lambda e: e.name[:stop] == begin

    with log.read() as t:
        access, rows = _checked(t.entries, lambda e: e.name[:3] == "u00")
        assert access.facts.name == "by_name"
        assert access.begins == "u00"
        assert _measured(t.entries, access) == len(rows) > 0
        access, rows = _checked(t.entries, lambda e: b"u0" == e.raw[0:3])  # noqa: SIM300
        assert (access.facts.name, access.begins) == ("by_raw", b"u0")
        access, rows = _checked(t.entries, lambda e: e.name.lower()[:4] == "u001")
        assert (access.facts.name, access.begins) == ("by_lower", "u001")
        access, rows = _checked(t.entries, lambda e: e.note is not None and e.note[:4] == "U001")
        assert (access.facts.name, access.begins) == ("by_note", "U001")
        for begin, stop in [("u00", 3), ("u00", 4), ("u00", 2), ("u", -3), ("U001", None), ("", 0), ("u00", 3)]:
            rows = [key for key, value in t.entries.items() if value.name[:stop] == begin]
            for _ in range(2):
                assert t.entries.where(of(begin, stop)).keys().all() == rows
                assert t.entries.where(of(begin, stop)).count() == len(rows)
        keys = t.by_text.where(lambda k, v: k[:4] == "u123")
        assert "the key: (k[:4] == 'u123')" in str(keys.explain())
        assert keys.keys().all() == sorted(key for key in t.by_text if key[:4] == "u123")


def test_other_slices_are_no_beginnings(log: Any) -> None:
    with log.read() as t:
        for function in (
            lambda e: e.name[1:4] == "001",
            lambda e: e.name[:4:2] == "u0",
            lambda e: e.name[:4] != "u001",
            lambda e: e.name[:3] > "u00",
            lambda e: e.name[:3] == e.note,
        ):
            assert not t.entries.where(function)._running().choice().accesses
            rows = [key for key, value in t.entries.items() if function(value)]
            assert t.entries.where(function).keys().all() == rows
