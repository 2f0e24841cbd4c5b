"""`distinct` and counts of groups come from the entries of an index, and are what they are without one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb import desc
from zlmdb.tables.executor import different


@dataclass
class Row:
    place: int
    name: str
    tags: list[str]
    price: float = 0.0
    due: Optional[int] = None
    sold: bool = False


class Rows(zlmdb.Table[int, Row]):
    by_place = zlmdb.Index[int](desc("place"))
    by_both = zlmdb.Index[tuple[str, int]]("name", "place")
    by_fold = zlmdb.Index[str]("name.casefold()")
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_due = zlmdb.Index[int]("due")
    by_price = zlmdb.Index[float]("price")
    by_sold = zlmdb.Index[bool]("sold", where=lambda r: r.place > 5)


class Named(zlmdb.Table[str, Row]):
    by_name = zlmdb.Index[str]("name")
    by_place = zlmdb.UniqueIndex[int]("place")


class Short(zlmdb.Table[int, Row], expires="price"):
    by_name = zlmdb.Index[str]("name")


class Store(zlmdb.Schema):
    rows: Rows
    named: Named
    short: Short


def row(dice: random.Random, place: int) -> Row:
    return Row(place, dice.choice(["a", "A", "", "b"]), ["x", "y"][: dice.randrange(3)], dice.choice([0.0, -0.0, 1.5]),
               dice.choice([None, 1, 2, -3]), dice.random() < 0.5)  # fmt: skip


GIVES: list[tuple[Callable[[Any], Any], bool]] = [
    (lambda r: r.name.casefold(), True),
    (lambda r: r.place, True),
    (lambda r: (r.place,), True),
    (lambda r: (r.name, r.place), True),
    (lambda r: (r.place, r.name), False),
    (lambda r: r.name, True),
    (lambda r: (r.name, r.name), False),
    (lambda r: r.due, False),
    (lambda r: r.price, False),
    (lambda r: r.sold, False),
    (lambda r: tuple(r.tags), False),
    (lambda r: -r.place, False),
]
CONDITIONS: list[tuple[Callable[[Any], bool], Callable[[Any], Any], bool]] = [
    (lambda r: r.place > 5, lambda r: r.place, True),
    (lambda r: r.place > 5.5, lambda r: r.place, False),
    (lambda r: 3 <= r.place < 9, lambda r: (r.place,), True),
    (lambda r: r.name == "a" and r.place < 9, lambda r: r.place, True),
    (lambda r: r.name == "a", lambda r: r.name, False),
    (lambda r: r.name.casefold().startswith("a"), lambda r: r.name.casefold(), True),
    (lambda r: r.due is not None, lambda r: r.due, True),
    (lambda r: r.due is not None and r.due < 2, lambda r: r.due, True),
    (lambda r: r.due is None, lambda r: r.due, False),
    (lambda r: r.place > 5, lambda r: r.sold, True),
    (lambda r: r.place > 4, lambda r: r.sold, False),
    (lambda r: r.place > 5 and r.name == "a", lambda r: r.sold, False),
    (lambda r: len(r.tags) > 0, lambda r: r.place, False),
]


@pytest.mark.parametrize("most", [1000, 2])
@pytest.mark.parametrize("way", ["read", "write"])
def test_different_things_and_their_numbers_are_those_of_the_records(
    way: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(different, "CAP", most)
    dice = random.Random(most)
    db = zlmdb.open(None, Store)
    for _ in range(2):
        with db.write() as t:
            t.rows.update({number: row(dice, dice.randrange(12)) for number in dice.sample(range(90), 60)})
            t.named.update({f"{number}": row(dice, number) for number in dice.sample(range(90), 60)})
        with getattr(db, way)() as t:
            if way == "write":
                t.rows[dice.randrange(90)] = row(dice, 3)
                t.rows.pop(dice.randrange(90), None)
            asked = [(t.rows, give, used) for give, used in GIVES]
            asked += [
                (t.named, lambda r: r.name, True),
                (t.named, lambda r: r.place, False),
                (t.named, lambda r: r, False),
            ]
            asked += [(t.rows.where(holds), give, used) for holds, give, used in CONDITIONS]
            asked += [(t.rows.select(5, 50), lambda r: r.place, False), (t.rows.limit(9), lambda r: r.place, False)]
            asked += [(t.rows.select(reverse=True), lambda r: r.place, False)]
            asked += [(t.rows.order_by(lambda r: r.price), lambda r: r.place, False)]
            asked += [(t.rows.by_place.select(), lambda r: r.place, False)]
            for number, (found, give, used) in enumerate(asked):
                rows = [give(value) for value in found.values()]
                try:
                    expected = list(dict.fromkeys(rows))
                except TypeError:
                    continue
                values = found.fields(give).distinct()
                assert repr(values.all()) == repr(list(values)) == repr(expected), number
                assert values.count() == len(expected)
                assert values.first() == next(iter(expected), None)
                plan = values.explain()
                assert ("first entry of each value" in str(plan)) is (used and way == "read"), number
                if hasattr(found, "group_by"):
                    groups = found.group_by(give, lambda g: (g.count(), g.count()))
                    assert repr(groups) == repr({one: (n, n) for one, n in Counter(rows).items()}), number
    db.close()


def test_records_that_expired_are_not_among_them() -> None:
    now = [100.0]
    db = zlmdb.open(None, Store)
    db.clock = lambda: now[0]
    with db.write() as t:
        t.short.update({n: Row(n, f"n{n % 3}", [], 105.0 if n % 3 else 1000.0) for n in range(9)})
    now[0] = 200.0
    with db.read() as t:
        assert t.short.fields(lambda r: r.name).distinct().all() == ["n0"]
        assert t.short.group_by(lambda r: r.name, lambda g: g.count()) == {"n0": 3}
    db.close()


@pytest.mark.once
def test_rows_of_a_transaction_that_has_ended_raise() -> None:
    db = zlmdb.open(None, Store)
    with db.write() as t:
        t.rows.update({n: Row(n, "a", []) for n in range(9)})
    with db.read() as t:
        values = t.rows.fields(lambda r: r.place).distinct()
        rows = iter(values)
        assert next(rows) == 0
    with pytest.raises(zlmdb.TransactionClosed):
        next(rows)
    with pytest.raises(zlmdb.TransactionClosed):
        values.all()
    db.close()


@pytest.mark.once
def test_no_record_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    db = zlmdb.open(None, Store)
    with db.write() as t:
        t.rows.update({n: Row(n % 7, "a", []) for n in range(50)})
    with db.read() as t:

        def refused(*args: Any, **more: Any) -> Any:
            raise AssertionError(args)

        first = t.rows.fields(lambda r: r.place).distinct()
        assert first.explain().covered
        assert first.all() == [*range(7)]
        monkeypatch.setattr("zlmdb.tables.executor.execution.Running._rows", refused)
        assert t.rows.fields(lambda r: r.place).distinct().count() == 7
        assert t.rows.group_by(lambda r: r.place, lambda g: g.count()) == {0: 8, **dict.fromkeys(range(1, 7), 7)}
    db.close()
