"""An index of the first parts of a sort key gives the first rows: what is equal in these parts is sorted."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb import desc
from zlmdb.tables.executor import orderscans


@dataclass
class Row:
    year: int
    name: str
    price: float
    place: str
    due: Optional[int] = None


class Rows(zlmdb.Table[int, Row]):
    by_year = zlmdb.Index[int]("year")
    by_place = zlmdb.Index[tuple[str, int]]("place", desc("year"))
    by_due = zlmdb.Index[int]("due")


class Named(zlmdb.Table[str, Row]):
    by_year = zlmdb.Index[int](desc("year"), where=lambda r: r.year > 2)


class Priced(zlmdb.Table[int, Row]):
    by_year_and_price = zlmdb.Index[tuple[int, float]]("year", "price")
    by_place = zlmdb.Index[str]("place")
    dues = zlmdb.Index[tuple[str, int]]("name", "due")


class Apart(zlmdb.Table[int, Row]):
    by_year = zlmdb.Index[int]("year")
    by_price = zlmdb.Index[float]("price")


class PartlyPriced(zlmdb.Table[int, Row]):
    by_year = zlmdb.Index[int]("year")
    by_price = zlmdb.Index[float]("price", where=lambda r: r.price > 0.5)
    by_due = zlmdb.Index[tuple[float, int]]("price", "due")


class Store(zlmdb.Schema):
    rows: Rows
    named: Named
    priced: Priced
    apart: Apart
    partly: PartlyPriced


Asks = list[tuple[Callable[[Any], Any], Optional[Callable[[Any], bool]], bool]]
ASKS: Asks = [
    (lambda r: (r.year, r.name), None, True),
    (lambda r: (desc(r.year), r.name), None, True),
    (lambda r: (-r.year, desc(r.name)), None, True),
    (lambda r: (r.year, r.place, r.name), lambda r: r.year < 9, True),
    (lambda r: (r.place, desc(r.year), r.name), None, True),
    (lambda r: (r.place, r.year), None, True),
    (lambda r: (r.place, r.year, r.name), None, True),
    (lambda r: (r.year, r.name), lambda r: r.place == "a", True),
    (lambda r: (r.year, r.name), lambda r: 2 < r.year < 8, True),
    (lambda r: (r.due, r.name), lambda r: r.due is not None, True),
    (lambda r: (r.year, r.price), None, False),  # there might be NaN
    (lambda r: (r.year, r.name), lambda r: r.name != "x", False),
    (lambda r: (r.year, r.name), lambda r: r.year == 5, False),
    (lambda r: (r.name, r.year), None, False),
]


def row(dice: random.Random) -> Row:
    return Row(
        dice.randrange(12), dice.choice("xyz"), dice.random(), dice.choice("abcdef"), dice.choice([None, *range(9)])
    )


@pytest.mark.parametrize("way", ["read", "write"])
def test_rows_in_an_order_that_an_index_has_in_part(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orderscans, "CAP", 2)  # few entries are read and sorted
    dice = random.Random(way)
    db = zlmdb.open(None, Store)
    with db.write() as t:
        t.rows.update({number: row(dice) for number in range(120)})
        t.named.update({f"{number}": row(dice) for number in range(120)})
    with getattr(db, way)() as t:
        for by, holds, used in ASKS:
            if way == "write":
                t.rows[dice.randrange(150)] = row(dice)
                t.rows.pop(dice.randrange(150), None)
            found = t.rows.select() if holds is None else t.rows.where(holds)
            plan = found.order_by(by).limit(2).explain()
            assert (plan.order or "").endswith("sorted where that is equal") is used, by
            assert plan.ordered is used
            check(found, by, dice)
        named = t.named.where(lambda r: r.year > 2)
        by = lambda r: (r.year, r.name)  # noqa: E731
        assert named.order_by(by).limit(1).explain().indexes == ("by_year",)
        check(named, by, dice)
    db.close()


FLOATS: list[tuple[Callable[[Any], Any], dict[str, bool]]] = [
    (lambda r: (r.year, desc(r.price)), {"priced": True, "apart": True, "partly": False}),
    (lambda r: (desc(r.year), r.price), {"priced": True, "apart": True, "partly": False}),
    (lambda r: (-r.year, -r.price, r.name), {"priced": True, "apart": True, "partly": False}),
    (lambda r: (r.place, r.price), {"priced": True, "apart": False, "partly": False}),
]


@pytest.mark.parametrize("way", ["read", "write"])
def test_an_index_of_the_other_parts_tells_that_they_are_in_order(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orderscans, "CAP", 2)
    dice = random.Random(way)
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            for table in (t.priced, t.apart, t.partly):
                table.update({number: row(dice) for number in range(120)})
                with pytest.raises(zlmdb.EncodeError) if table is not t.partly else nullcontext():
                    table[200] = Row(3, "x", float("nan"), "a")
            t.partly.pop(200, None)
        with getattr(db, way)() as t:
            for by, tables in FLOATS:
                for name, used in tables.items():
                    assert t[name].order_by(by).limit(2).explain().ordered is used, (by, name)
                    check(t[name].select(), by, dice)


def check(found: Any, by: Callable[[Any], Any], dice: random.Random) -> None:
    rows = found.all()
    for backwards in (False, True):
        expected = sorted(reversed(rows) if backwards else rows, key=lambda pair: by(pair[1]), reverse=backwards)
        asked = found.order_by(by, reverse=backwards)
        for _ in range(2):
            limit, skip = dice.randrange(1, 9), dice.choice([0, 0, 3])
            assert asked.limit(limit, skip).all() == list(asked.limit(limit, skip)) == expected[skip : skip + limit]
        assert asked.first() == next(iter(expected), None)
        assert asked.last() == (expected[-1] if expected else None)
        assert asked.limit(3).fields(lambda r: r.name).all() == [one.name for _, one in expected[:3]]
        page = asked.page(5)
        assert page.rows == expected[:5]
        if page.next is not None:
            assert asked.page(5, page.next).rows == expected[5:10]


@pytest.mark.once
def test_an_index_whose_first_key_has_a_quarter_of_the_records_is_not_read() -> None:
    db = zlmdb.open(None, Store)
    with db.write() as t:
        t.rows.update({number: Row(number // 30, f"{-number}", 0.0, "a") for number in range(100)})
    with db.read() as t:
        found = t.rows.order_by(lambda r: (r.year, r.name))
        assert found.limit(3).explain().ordered is False
        assert found.limit(3).keys().all() == [1, 10, 11]
        found = t.rows.order_by(lambda r: (desc(r.year), r.name))
        assert found.limit(3).explain().ordered is True
        assert found.limit(3).keys().all() == [90, 91, 92]
    db.close()


@pytest.mark.once
def test_of_rows_that_are_equal_in_these_parts_no_more_are_kept_than_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[Optional[int]] = []
    first_of = orderscans.first_of

    def noting(rows: Any, count: Optional[int], *, backwards: bool) -> Any:
        kept.append(count)
        return first_of(rows, count, backwards=backwards)

    monkeypatch.setattr(orderscans, "first_of", noting)
    dice = random.Random(5)
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.rows.update({number: row(dice) for number in range(6000)})
        with db.read() as t:
            for backwards in (False, True):
                found = t.rows.order_by(lambda r: (r.year, r.name), reverse=backwards).limit(5, skip=2).values().all()
                rows = sorted(t.rows.values(), key=lambda r: (r.year, r.name))[:: -1 if backwards else 1]
                assert found == rows[2:7]
    assert kept == [7, 7]
