"""The ranges of entries that a cached plan reads: the same for all captured values as those of the planner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Callable
from uuid import UUID

import pytest

import zlmdb
from zlmdb.query.accesses import accesses
from zlmdb.tables.executor import accessranges
from zlmdb.tables.executor.accessranges import finder, ranges_of
from zlmdb.tables.executor.cachedplans import parts_of

pytestmark = pytest.mark.twice


@dataclass
class Thing:
    text: str
    raw: bytes
    number: int
    day: date
    mark: UUID
    share: float
    small: int


class Things(zlmdb.Table[str, Thing]):
    by_text = zlmdb.Index[tuple[str, int]]("text", "number")
    by_raw = zlmdb.Index[tuple[bytes, str, int]]("raw", "text", "number")
    by_small = zlmdb.Index[tuple[Annotated[int, "uint16"], str]]("small", "text")
    by_day = zlmdb.Index[tuple[date, UUID]]("day", "mark")
    by_share = zlmdb.Index[tuple[float, int]](zlmdb.desc("share"), zlmdb.desc("number"))


class Numbered(zlmdb.Table[int, Thing]):
    by_text = zlmdb.Index[tuple[str, int]]("text", "number")
    by_day = zlmdb.Index[tuple[date, bytes]]("day", "raw")


class Store(zlmdb.Schema):
    things: Things
    numbered: Numbered


@pytest.fixture
def db() -> Iterator[zlmdb.Database[Store]]:
    with zlmdb.open(None, Store) as opened:
        yield opened


Make = Callable[[Any, Any, Any], Callable[[Any], bool]]

TEXTS = ["a", "", "a\0b", "\U0010ffff", "a" * 30]
NUMBERS = [5, -1, 0, 2**63 - 1, -(2**63), 255]
RAWS = [b"x", b"", b"\xff\xff", b"\0\1"]
SMALLS = [1, 0, 65535, 255]
DAYS = [date(2000, 1, 1), date.max, date.min]
MARKS = [UUID(int=5), UUID(int=0), UUID(int=2**128 - 1)]
SHARES = [0.5, 3, -0.0, float("inf"), float("-inf")]

CASES: dict[str, tuple[Make, list[Any], list[Any]]] = {
    "text": (lambda a, b, c: lambda t: t.text == a, TEXTS, NUMBERS),
    "both": (lambda a, b, c: lambda t: t.text == a and t.number == b, TEXTS, NUMBERS),
    "from": (lambda a, b, c: lambda t: t.text == a and t.number >= b, TEXTS, NUMBERS),
    "after": (lambda a, b, c: lambda t: t.text == a and t.number > b, TEXTS, NUMBERS),
    "between": (lambda a, b, c: lambda t: t.text == a and b <= t.number < c, TEXTS, NUMBERS),
    "through": (lambda a, b, c: lambda t: t.text == a and b < t.number <= c, TEXTS, NUMBERS),
    "raw": (lambda a, b, c: lambda t: t.raw == a, RAWS, TEXTS),
    "raw and text": (lambda a, b, c: lambda t: t.raw == a and t.text > b, RAWS, TEXTS),
    "raw and texts": (lambda a, b, c: lambda t: t.raw == a and b < t.text <= c, RAWS, TEXTS),
    "day": (lambda a, b, c: lambda t: t.day == a, DAYS, MARKS),
    "day and marks": (lambda a, b, c: lambda t: t.day == a and b <= t.mark <= c, DAYS, MARKS),
    "share": (lambda a, b, c: lambda t: t.share == a, SHARES, NUMBERS),
    "share down": (lambda a, b, c: lambda t: t.share == a and t.number > b, SHARES, NUMBERS),
    "share up": (lambda a, b, c: lambda t: t.share == a and b < t.number <= c, SHARES, NUMBERS),
    "small": (lambda a, b, c: lambda t: t.small == a and b <= t.text < c, SMALLS, TEXTS),
}


OF_NUMBERED = ("text", "both", "from", "after", "between", "through", "day", "day and marks")
PAIRS = [("things", name) for name in CASES] + [("numbered", name) for name in OF_NUMBERED]


@pytest.mark.parametrize(("table", "name"), PAIRS)
def test_leading_parts_are_encoded_in_place(
    db: zlmdb.Database[Store], table: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, leading, others = CASES[name]
    general: list[Any] = []
    original = accessranges._ranges

    def ranges(*given: Any) -> Any:
        general.append(given)
        return original(*given)

    monkeypatch.setattr(accessranges, "_ranges", ranges)
    with db.read() as t:

        def way(a: Any, b: Any, c: Any) -> Any:
            selection = t[table].where(make(a, b, c))
            running = selection._running()
            found = accesses(parts_of(selection._query.where), running.known().facts)
            return found[0], running, selection._query.where

        access, running, where = way(leading[0], others[0], others[1])
        storage = running.reads.bound(access).storage
        find = finder(storage, access, where)
        for a in leading:
            for b in others:
                for c in others:
                    access, _, where = way(a, b, c)
                    del general[:]
                    found = find(where)
                    assert not general
                    assert list(found or ()) == ranges_of(storage, access)


def test_what_does_not_fit_is_left_to_the_planner(db: zlmdb.Database[Store]) -> None:
    with db.read() as t:
        for low in (3, 2**70, -(2**70), 4):
            found = t.things.where(lambda t: t.text == "a" and t.number > low)  # noqa: B023
            assert found.all() == []
            assert found.count() == 0
