"""`distinct` and counts of groups come from the entries of an index, and are what they are without one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb import desc
from zlmdb.tables import aggregated
from zlmdb.tables.executor import groupedentries

pytestmark = pytest.mark.once  # plans do not depend on the interpreter


@dataclass
class Row:
    place: int
    name: str
    tags: list[str]
    price: float = 0.0
    due: Optional[int] = None
    sold: bool = False
    number: int = 0


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
    monkeypatch.setattr(groupedentries, "CAP", most)
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
                if most == 1000 or not used:  # else a scan may be faster
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


class Parts(zlmdb.Table[int, Row]):
    by_two = zlmdb.Index[tuple[int, int]]("place", desc("due"))
    by_text = zlmdb.Index[tuple[str, int, bool]]("name", "place", "sold")
    by_unique = zlmdb.UniqueIndex[tuple[bool, int, str, float]]("sold", "place", "name", "price")
    by_three = zlmdb.Index[tuple[int, int, float]](desc("place"), "number", "price", where=lambda r: r.number >= 0)
    by_folded = zlmdb.Index[tuple[str, int]]("name.casefold()", "number")


class Texts(zlmdb.Table[str, Row]):
    by_text = zlmdb.Index[tuple[str, int]]("name", "number")


class Flat(zlmdb.Table[int, zlmdb.FlatBuffers[Row]]):
    by_two = zlmdb.Index[tuple[int, int]]("place", desc("due"))
    by_text = zlmdb.Index[tuple[str, int]]("name", "number", carries=("price",))
    by_unique = zlmdb.UniqueIndex[tuple[int, int]]("place", "number")


class Leading(zlmdb.Schema):
    parts: Parts
    flat: Flat
    texts: Texts


LEADING: list[tuple[Callable[[Any], bool], Callable[[Any], Any]]] = [
    (lambda r: True, lambda r: r.name),
    (lambda r: True, lambda r: r.name.casefold()),
    (lambda r: True, lambda r: (r.name, r.place)),
    (lambda r: True, lambda r: r.place),
    (lambda r: True, lambda r: r.sold),
    (lambda r: True, lambda r: (r.sold, r.place)),
    (lambda r: r.due is not None, lambda r: r.place),
    (lambda r: r.due is not None and 2 < r.place < 8, lambda r: r.place),
    (lambda r: r.number >= 0, lambda r: r.place),
    (lambda r: r.number >= 0 and r.place <= 5, lambda r: (r.place, r.number)),
    (lambda r: r.name == "a", lambda r: r.place),
    (lambda r: r.name > "A", lambda r: r.name),
    (lambda r: r.name.startswith("b"), lambda r: r.name),
    (lambda r: r.sold == True, lambda r: r.place),  # noqa: E712
    (lambda r: r.sold == True and r.place == 3, lambda r: r.name),  # noqa: E712
]
ASKED: list[Callable[[Any], Any]] = [
    lambda g: g.count(),
    lambda g: (g.count(),),
    lambda g: (g.fields(lambda r: r.place).min(), g.count(), g.fields(lambda r: r.place).max()),
    lambda g: (g.fields(lambda r: r.number).sum(), g.fields(lambda r: r.number).max()),
    lambda g: g.fields(lambda r: r.number).mean(),
    lambda g: g.fields(lambda r: r.number * 2 + r.place).sum() / g.count(),
    lambda g: (g.fields(lambda r: r.price).sum(), g.fields(lambda r: r.price).max()),
    lambda g: (g.fields(lambda r: r.name).max(), g.fields(lambda r: r.sold).sum()),
    lambda g: [g.count(), g.count()][g.count() == 1],
    lambda g: {"n": g.count()},
    lambda g: g.where(lambda r: r.place > 3).count(),
    lambda g: 7,
]


def test_the_first_fields_of_an_index_tell_what_lists_do(
    combo: str, make_db: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(combo)
    for name, few in (("CAP", 5), ("FEW", 2), ("RECORDS", 4), ("CHUNK", 7), ("APART", 3)):
        if dice.random() < 0.5:
            monkeypatch.setattr(groupedentries, name, few)
    monkeypatch.setattr("zlmdb.tables.aggregated.KEYS", dice.choice([3, 100_000]))
    db = make_db(Leading)
    texts = ["a", "A", "", "b", "a\0", "a\0\0", "b\xff", "ba"]

    def one(number: int) -> Row:
        place = dice.choice([number // 9, dice.randrange(12)])
        return Row(place, dice.choice(texts), [], dice.choice([0.0, -0.0, 1.5]) + number,
                   dice.choice([None, 1, 2, -3]), dice.random() < 0.5, dice.randrange(-2, 5))  # fmt: skip

    with db.write() as t:
        rows = {number: one(number) for number in dice.sample(range(150), 100)}
        t.parts.update(rows)
        t.texts.update({f"{number}": row for number, row in rows.items()})
        t.flat.update({number: replace(row, number=number * 7 % 150) for number, row in rows.items()})
    for way in (db.read, db.write):
        with way() as t:
            if way is db.write:
                t.parts[dice.randrange(90)] = one(200)
                t.parts.pop(dice.randrange(150), None)
            for table in (t.parts, t.texts, t.flat):
                for number, (holds, give) in enumerate(LEADING):
                    found = table.where(holds) if number > 5 else table
                    check_rows(found, [row for row in table.values() if holds(row)], give, number)


def check_rows(found: Any, rows: list[Row], give: Callable[[Any], Any], number: int) -> None:
    """*found*, the number of a query, gives what the list of its *rows* does."""
    expected = list(dict.fromkeys(map(give, rows)))
    values = found.fields(give).distinct()
    for _ in range(2):
        assert repr(values.all()) == repr(list(values)) == repr(expected), number
        assert values.count() == len(expected)
        assert values.first() == next(iter(expected), None)
    for into in ASKED:
        groups = found.group_by(give, into)
        kept = found.group_by(give, lambda g, into=into: into(g))  # of rows
        assert repr(groups) == repr(kept), (number, into)
        assert list(groups) == expected


@pytest.mark.once
def test_entries_of_one_value_are_skipped_and_no_record_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    db = zlmdb.open(None, Leading)
    with db.write() as t:
        t.parts.put_many([(n, Row(n * 7 % 5, f"n{n % 3}", [], n, n % 4, n % 2 == 0, n)) for n in range(4000)])
    with db.read() as t:
        by_text = t.parts.fields(lambda r: r.name)
        plan = by_text.distinct().explain()
        assert plan.indexes == ("by_text",)
        assert not plan.covered
        assert "the first records for the order" in str(plan)
        assert by_text.distinct().all() == ["n0", "n1", "n2"]
        sought: list[bytes] = []
        read: list[int] = []
        seek, rows_within, following = groupedentries.seek, groupedentries.rows_within, groupedentries.ScanParts.next

        def seeking(cursor: Any, lower: bytes, upper: bytes) -> bool:
            sought.append(lower)
            return seek(cursor, lower, upper)

        def reading(parts: Any, most: int) -> list[Any]:
            read.append(most)
            return following(parts, most)

        def entries(*args: Any) -> Any:
            for row in rows_within(*args):
                read.append(1)
                yield row

        def refused(*args: Any, **more: Any) -> Any:
            raise AssertionError(args)

        monkeypatch.setattr(groupedentries, "seek", seeking)
        monkeypatch.setattr(groupedentries, "rows_within", entries)
        monkeypatch.setattr(groupedentries.ScanParts, "next", reading)
        monkeypatch.setattr("zlmdb.tables.executor.execution.Running._rows", refused)
        assert by_text.distinct().count() == 3
        assert (len(sought), sum(read)) == (4, 0)
        assert by_text.distinct().all() == ["n0", "n1", "n2"]
        assert (len(sought), sum(read)) == (8, 64)
        read.clear()
        folded = t.parts.group_by(
            lambda r: r.name.casefold(), lambda g: (g.count(), g.fields(lambda r: r.number).max())
        )
        assert folded == {"n0": (1334, 3999), "n1": (1333, 3997), "n2": (1333, 3998)}
        assert sum(read) == 4000
        sums = t.parts.where(lambda r: r.due is not None).group_by(
            lambda r: r.place, lambda g: g.fields(lambda r: r.due or 0).sum()
        )
        assert sums == {n: 1200 for n in (0, 2, 4, 1, 3)}
    db.close()


@pytest.mark.once
def test_a_function_that_only_collects_is_not_called_for_each_group() -> None:
    db = zlmdb.open(None, Leading)
    with db.write() as t:
        t.parts.put_many([(n, Row(n, "", [], n, 1, False, n)) for n in range(50)])
    with db.read() as t:
        followed = 0
        following = type(t.parts.where(lambda r: r.number >= 0)._following())
        value = following.value

        def counting(self: Any, *args: Any) -> Any:
            nonlocal followed
            followed += 1
            return value(self, *args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(following, "value", counting)
            for by in (lambda r: r.place, lambda r: r.price):
                followed = 0
                found = t.parts.group_by(by, lambda g: (g.fields(lambda r: r.number).max(), g.count()))
                assert found == {n: (n, 1) for n in range(50)}
                assert followed < 5
    db.close()


@pytest.mark.once
def test_explain_tells_whether_entries_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groupedentries, "CAP", 20)
    monkeypatch.setattr(groupedentries, "FEW", 4)
    db = zlmdb.open(None, Leading)
    with db.write() as t:
        t.parts.put_many([(n, Row(n // 8, f"n{n // 2 % 100}", [], n, 1, True, n)) for n in range(400)])
    with db.read() as t:
        many = t.parts.where(lambda r: r.due is not None).fields(lambda r: r.place).distinct()
        assert "read   index by_two: (r.due is not None): all" not in str(many.explain())
        assert many.count() == 50
        pairs = t.parts.fields(lambda r: r.name).distinct()
        for few, indexes in ((10_000, ("by_text",)), (20, ())):
            monkeypatch.setattr(groupedentries, "CAP", few)
            assert pairs.explain().indexes == indexes
            assert len(pairs.all()) == pairs.count() == 100
            assert pairs.first() == "n0"
    db.close()


@pytest.mark.once
def test_groups_of_few_rows_are_put_together_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    for most in (1, 40, 100_000):
        monkeypatch.setattr(aggregated, "KEYS", most)
        blocks: list[dict[int, list[int]]] = []
        for many in (200, 3, 200, 200, 2, 3, 150):
            block: dict[int, list[int]] = {}
            for number in range(150):
                block.setdefault(dice.randrange(many), []).append(len(blocks) * 1000 + number)
            blocks.append(block)
        expected: dict[int, list[int]] = {}
        for block in blocks:
            for name, rows in block.items():
                expected.setdefault(name, []).extend(rows)
        given = list(aggregated._collected([{name: rows[:] for name, rows in block.items()} for block in blocks]))
        found: dict[int, list[int]] = {}
        for block in given:
            for name, rows in block.items():
                found.setdefault(name, []).extend(rows)
        assert list(found.items()) == list(expected.items())
        assert (len(given) == 1) is (most == 100_000)


@pytest.mark.once
@pytest.mark.parametrize("first", [3, 3.5, 2**70, True])
def test_other_captured_values_are_told_as_by_lists(first: Any) -> None:
    db = zlmdb.open(None, Leading)
    with db.write() as t:
        t.parts.put_many([(n, Row(n * 7 % 5, f"n{n % 3}", [], n, n % 4, n % 2 == 0, n % 9)) for n in range(200)])
    with db.read() as t:
        rows = list(t.parts.values())
        for x in (first, first, 3, 3.5, 3.0, True, 2**70, -(2**70), 0, 4):
            above = [row for row in rows if row.number >= 0 and row.place > x]
            equal = [row for row in rows if row.sold and row.place == x]
            for found, expected, give in (
                (t.parts.where(lambda r, x=x: r.number >= 0 and r.place > x), above, lambda r: r.place),
                (t.parts.where(lambda r, x=x: r.sold == True and r.place == x), equal, lambda r: r.name),  # noqa: E712
                (t.parts.where(lambda r, x=x: r.due is not None and r.place > x), above, lambda r: r.place),
            ):
                values = found.fields(give).distinct()
                assert repr(values.all()) == repr(list(dict.fromkeys(map(give, expected)))), x
                assert values.count() == len(set(map(give, expected)))
                assert values.explain().read
                groups = found.group_by(give, lambda g: (g.count(), g.fields(lambda r: r.place).max()))
                counts = Counter(map(give, expected))
                assert repr(groups) == repr(
                    {one: (n, max(row.place for row in expected if give(row) == one)) for one, n in counts.items()}
                )
    db.close()
