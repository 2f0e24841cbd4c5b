"""The law: a query gives what the same functions give over a list of all records, whatever indexes there are."""

from __future__ import annotations

import json
import random
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple, Optional, TypedDict

import pytest
from hypothesis import settings

import zlmdb
from tests.pagewalk import rows_of_pages
from zlmdb import desc
from zlmdb.tables import grouped


@dataclass
class User:
    name: str
    age: int
    country: str
    score: float
    city: Optional[str] = None
    active: bool = True


class Indexed(zlmdb.Table[int, User]):
    by_age = zlmdb.Index[int]("age")
    by_country = zlmdb.Index[str]("country")
    by_place = zlmdb.Index[tuple[str, int]]("country", "age")
    by_name = zlmdb.UniqueIndex[str]("name")
    by_city = zlmdb.Index[str]("city")
    by_score = zlmdb.Index[float]("score")
    by_active = zlmdb.Index[bool]("active")
    by_three = zlmdb.Index[tuple[str, str, int]]("country", "city", "age")
    by_shout = zlmdb.Index[str](lambda user: user.name.upper(), version=1)


class Flat(zlmdb.Table[int, zlmdb.FlatBuffers[User]]):
    by_age = zlmdb.Index[int]("age")
    by_place = zlmdb.Index[tuple[str, int]]("country", "age")
    by_name = zlmdb.UniqueIndex[str]("name")
    by_city = zlmdb.Index[str]("city")


class Pickled(zlmdb.Table[int, zlmdb.Pickle[User]]):
    by_age = zlmdb.Index[int]("age")
    by_score = zlmdb.Index[float]("score")
    by_three = zlmdb.Index[tuple[str, str, int]]("country", "city", "age")


class Store(zlmdb.Schema):
    indexed: Indexed
    flat: Flat
    pickled: Pickled
    cbor: zlmdb.Table[int, zlmdb.Cbor[User]]
    paired: zlmdb.Table[tuple[str, int], User]


TABLES = ("indexed", "flat", "pickled", "cbor")


def user(number: int, dice: random.Random) -> User:
    return User(
        f"u{number}", dice.randrange(20), dice.choice("NSD"), dice.choice([0.0, 1.5, -2.0, 7.25]),
        dice.choice([None, "a", "ab", "b"]), dice.random() < 0.5,
    )  # fmt: skip


@pytest.fixture(scope="module")
def db() -> Iterator[zlmdb.Database[Store]]:
    dice = random.Random(5)
    with zlmdb.open(None, Store) as opened:
        with opened.write() as t:
            for number in range(150):
                key, one = dice.randrange(10**6), user(number, dice)
                for name in TABLES:
                    t[name][key] = one
                t.paired[one.country, key] = one
        yield opened


# -- random queries --------------------------------------------------------------------------------------------------

LEAVES: list[Callable[[random.Random], str]] = [
    lambda r: f"u.age {r.choice(['<', '<=', '>', '>=', '==', '!='])} {r.randrange(-1, 21)}",
    lambda r: f"{r.randrange(20)} {r.choice(['<', '<=', '>', '>='])} u.age",
    lambda r: f"{r.randrange(10)} <= u.age < {r.randrange(5, 20)}",
    lambda r: "u.age < " + r.choice(["3.5", "1e99", "-1e99", "2 ** 70", "float('nan')", "True"]),
    lambda r: f"u.age == {r.choice(['3.5', '3.0', '2 ** 70', 'True'])}",
    lambda r: f"u.country == {r.choice('NSDX')!r}",
    lambda r: f"u.country in {{'N', {r.choice('SDX')!r}}}",
    lambda r: f"u.name == 'u{r.randrange(160)}'",
    lambda r: f"u.city == {r.choice(['a', 'ab', None])!r}",
    lambda r: f"u.city in {r.choice([('a', 'b'), ('a', None), ()])!r}",
    lambda r: "u.city is not None and u.city.startswith('a')",
    lambda r: "u.city is None",
    lambda r: f"u.score {r.choice(['<', '>=', '=='])} {r.choice([0.0, 1.5, 7.25, -0.0, 1])}",
    lambda r: "u.active",
    lambda r: "not u.active",
    lambda r: f"u.age in ({r.randrange(20)}, {r.randrange(20)})",
    lambda r: f"u.name.startswith('u{r.randrange(15)}')",
    lambda r: "u.name > 'u5'",
    lambda r: "u.city is not None and u.city > 'a'",
    lambda r: f"len(u.name) + u.age > {r.randrange(22)}",
    lambda r: f"weird(u, {r.randrange(20)})",
]
ORDERS = [
    "u.age", "(u.country, u.age)", "u.score", "u.name", "(u.age, u.name)", "-u.age", "(u.country, desc(u.age))",
    "(u.city is None, u.city or '')", "u.country", "desc(u.country)", "weird(u, 7)",
]  # fmt: skip
GIVES = ["u.name", "(u.name, u.age)", "u.age * 2", "(u.city, len(u.name))", "u.city", "[u.age]", "weird(u, 3)"]


def weird(one: User, number: int) -> bool:
    """Cannot be followed."""
    for letter in one.name:
        if letter in str(number):
            return one.age > number
    return one.active


def condition(dice: random.Random, depth: int) -> str:
    if depth == 0 or dice.random() < 0.2:
        return f"({dice.choice(LEAVES)(dice)})"
    if dice.random() < 0.9:
        word = dice.choice(["and", "and", "or"])
        return f"({condition(dice, depth - 1)} {word} {condition(dice, depth - 1)})"
    return f"(not {condition(dice, depth - 1)})"


def function(source: str, arguments: str = "u") -> Any:
    return eval(f"lambda {arguments}: {source}", {"desc": desc, "weird": weird})


class Asked:
    """A random query, and what it is over a list of pairs."""

    def __init__(self, dice: random.Random) -> None:
        self.where = [condition(dice, dice.choice([0, 1, 1, 2])) for _ in range(dice.choice([1, 1, 2]))]
        self.order = dice.choice([None, None, *ORDERS])
        self.backwards = dice.random() < 0.4
        self.reverse = dice.random() < 0.15
        self.slice = (dice.randrange(6), dice.choice([0, 0, 2])) if dice.random() < 0.4 else None
        self.range = dice.choice([None, None, None, (200_000, 700_000)])
        self.give = dice.choice(GIVES)

    def query(self, table: Any) -> Any:
        found = table.select(*(self.range or ()), reverse=self.reverse)
        for one in self.where:
            found = found.where(function(one))
        if self.order is not None:
            found = found.order_by(function(self.order), reverse=self.backwards)
        return found if self.slice is None else found.limit(*self.slice)

    def plain(self, rows: list[Any]) -> list[Any]:
        if self.range is not None:
            rows = [pair for pair in rows if self.range[0] <= pair[0] < self.range[1]]
        rows = rows[::-1] if self.reverse else rows
        for one in map(function, self.where):
            rows = [pair for pair in rows if one(pair[1])]
        if self.order is not None:
            by = function(self.order)
            rows = sorted(rows, key=lambda pair: by(pair[1]))
            rows = rows[::-1] if self.backwards else rows
        if self.slice is not None:
            most, skip = self.slice
            rows = rows[skip : skip + most]
        return rows

    def __repr__(self) -> str:
        return repr(vars(self))


@pytest.mark.parametrize("write", [False, True], ids=["read", "write"])
@pytest.mark.twice
@pytest.mark.parametrize("name", TABLES)
def test_a_query_gives_what_python_gives_with_any_index(db: Any, name: str, write: bool) -> None:
    dice = random.Random(f"{name}{write}")
    used: set[str] = set()
    ordered = 0
    with db.write() if write else db.read() as t:
        rows = list(t[name].items())
        for _ in range(60 if name == "indexed" else min(60, settings.default.max_examples * 4 // 3)):
            asked = Asked(dice)
            query, expected = asked.query(t[name]), asked.plain(rows)
            plan = query.explain()
            said = f"{asked}\n{plan}"
            assert list(query) == expected, said
            assert query.keys().all() == [key for key, _ in expected], said
            assert query.values().all() == [value for _, value in expected], said
            give = function(asked.give)
            assert query.fields(give).all() == [give(value) for _, value in expected], said
            assert query.count() == len(expected), said
            assert bool(query) is bool(expected), said
            assert query.first() == (expected[0] if expected else None), said
            assert query.last() == (expected[-1] if expected else None), said
            used.update(plan.indexes)
            ordered += plan.ordered
    if name == "indexed":
        assert used == {"by_age", "by_country", "by_place", "by_name", "by_city", "by_score"}
        assert ordered
    if name == "cbor":
        assert not used


def test_an_index_that_lacks_records_without_a_part_is_used_only_where_that_part_is_named(db: Any) -> None:
    with db.read() as t:
        for name in ("indexed", "pickled"):
            rows = list(t[name].items())
            three = t[name].where(lambda u: u.country == "N" and u.city == "a" and u.age > 3)
            assert list(three) == [
                pair for pair in rows if pair[1].country == "N" and pair[1].city == "a" and pair[1].age > 3
            ]
            assert "by_three" in three.explain().indexes or "by_three" in str(three.explain().rejected)
            two = t[name].where(lambda u: u.country == "X" and u.city is None)
            assert "by_three" not in str(two.explain())
            ordered = t[name].order_by(lambda u: (u.country, u.city or "", u.age))
            assert not ordered.explain().ordered


def test_functions_of_key_and_value_use_the_key(db: Any) -> None:
    with db.read() as t:
        rows = list(t.indexed.items())
        keys = [key for key, _ in rows]
        for name in TABLES:
            table = t[name]
            for low, high in ((keys[3], keys[9]), (-5, keys[2]), (keys[-1], 2**80)):
                found = table.where(lambda k, u: low <= k < high and u.age >= 0)  # noqa: B023
                assert list(found) == [(k, u) for k, u in rows if low <= k < high]
                assert found.explain().indexes == ("(key)",)
            seventh = keys[7]
            one = table.where(lambda k, u: k == seventh)  # noqa: B023
            assert one.all() == [rows[7]]
            assert one.explain().indexes == ("(key)",)
            assert table.where(lambda k, u: k in (keys[5], keys[1], 12)).keys().all() == [keys[1], keys[5]]
            assert table.fields(lambda k, u: (k, u.name)).all() == [(k, u.name) for k, u in rows]
        pairs = list(t.paired.items())
        found = t.paired.where(lambda k, u: k[0] == "N" and k[1] > 500_000)
        assert list(found) == [(k, u) for k, u in pairs if k[0] == "N" and k[1] > 500_000]
        assert found.explain().indexes == ("(key)",)


@pytest.mark.parametrize("name", ["indexed", "flat"])
def test_an_index_is_a_selection_in_its_own_order(db: Any, name: str) -> None:
    with db.read() as t:
        table = t[name]
        rows = list(table.by_place.select())
        found = table.by_place.where(lambda u: u.active).limit(9, 4)
        assert list(found) == [pair for pair in rows if pair[1].active][4:13]
        assert list(table.by_age[3].where(lambda u: u.country != "N")) == [
            pair for pair in table.items() if pair[1].age == 3 and pair[1].country != "N"
        ]
        backwards = table.by_place.select(reverse=True).where(lambda u: u.age > 4).order_by(lambda u: u.country)
        expected = sorted([pair for pair in rows[::-1] if pair[1].age > 4], key=lambda pair: pair[1].country)
        assert list(backwards) == expected
        assert backwards.last() == expected[-1]
        assert table.by_place.first() == rows[0]
        assert table.by_place.last() == rows[-1]
        assert table.by_place.count() == len(rows)
        assert table.by_age.explain().read == (f"index by_age of {name}",)


# -- aggregates, groups, pages ---------------------------------------------------------------------------------------


def test_aggregates_are_those_of_python(db: Any) -> None:
    with db.read() as t:
        for name in TABLES:
            users = t[name].values()
            some = t[name].where(lambda u: u.age > 4)
            ages = some.fields(lambda u: u.age)
            expected = [one.age for one in users if one.age > 4]
            assert (ages.sum(), ages.min(), ages.max()) == (sum(expected), min(expected), max(expected))
            assert ages.mean() == sum(expected) / len(expected)
            assert ages.distinct().all() == list(dict.fromkeys(expected))
            assert ages.distinct().count() == len(set(expected))
            none = t[name].where(lambda u: u.age > 99).fields(lambda u: u.age)
            assert (none.sum(), none.mean(), none.min(), none.max(), none.first(), bool(none)) == (
                0, None, None, None, None, False,
            )  # fmt: skip
            with pytest.raises(TypeError):
                t[name].fields(lambda u: [u.age]).distinct().all()
            with pytest.raises(TypeError, match="write .count"):
                len(ages)


def test_durations_are_summed_as_seconds() -> None:
    class Store(zlmdb.Schema):
        worked: zlmdb.Table[int, timedelta]

    with zlmdb.open(None, Store) as db, db.write() as t:
        t.worked.update({n: timedelta(minutes=n) for n in range(4)})
        for refused in (t.worked.select().values().sum, t.worked.select().values().mean):
            with pytest.raises(TypeError, match=r"timedelta.*: give .* as lambda r: r.field.total_seconds\(\)$"):
                refused()
        assert t.worked.fields(lambda took: took.total_seconds()).sum() == 360.0


def test_sums_of_floats_are_compensated_on_every_python() -> None:
    from zlmdb.query.sums import compensated, total

    dice = random.Random(1)
    for _ in range(50):
        values: list[Any] = [dice.choice([dice.random(), dice.random() * 1e16, -1e16, 0.1]) for _ in range(20)]
        assert compensated(values) == total(values)
        signed = [dice.choice([-1, 1, 1]) * one for one in values]
        if dice.random() < 0.1:
            signed[3] = dice.choice([float("inf"), float("nan"), -0.0])
        assert repr(compensated(iter(signed))) == repr(compensated(signed))
    assert total([0.1] * 10) == compensated([0.1] * 10) == 1.0
    assert compensated([1, 2, 3]) == 6
    assert compensated([float("inf"), 1.0]) == float("inf")


@pytest.mark.parametrize("name", TABLES)
def test_groups_come_by_first_appearance_and_are_selections(db: Any, name: str) -> None:
    with db.read() as t:
        rows = list(t[name].items())
        expected: dict[Any, list[Any]] = {}
        for pair in rows:
            expected.setdefault(pair[1].country, []).append(pair)
        groups = t[name].group_by(lambda u: u.country, lambda g: g.all())
        assert list(groups.items()) == list(expected.items())
        found = t[name].group_by(
            lambda u: u.country,
            lambda g: (
                g.count(), g.fields(lambda u: u.score).sum(), g.where(lambda u: u.active).count(),
                g.order_by(lambda u: u.age, reverse=True).limit(2).fields(lambda k, u: k).all(),
                g.group_by(lambda u: u.active, lambda h: h.count()), g.first(), g.last(), bool(g),
            ),
        )  # fmt: skip
        for country, pairs in expected.items():
            oldest = sorted(pairs, key=lambda pair: pair[1].age)[::-1][:2]
            states: dict[bool, int] = {}
            for _, one in pairs:
                states[one.active] = states.get(one.active, 0) + 1
            assert found[country] == (
                len(pairs), sum(one.score for _, one in pairs), sum(one.active for _, one in pairs),
                [key for key, _ in oldest], states, pairs[0], pairs[-1], True,
            )  # fmt: skip
        with pytest.raises(TypeError):
            t[name].group_by(lambda u: [u.age], lambda g: g.count())


AGGREGATES: list[Any] = [
    lambda g: g.count(),
    lambda g: (g.count(), g.fields(lambda u: u.score).sum(), g.fields(lambda k, u: k).max()),
    lambda g: {"mean": g.fields(lambda u: u.age).mean(), "least": g.fields(lambda u: (u.name, u.age)).min()},
    lambda g: g.fields(lambda u: u.score).sum() / g.count() + g.where(lambda u: u.active).count(),
    lambda g: [g.where(lambda u: u.active).fields(lambda u: u.age).max(), g.where(lambda u: u.age > 30).count()],
    lambda g: f"{g.count():04} of {g.fields(lambda u: u.name).max()}",
    lambda g: g.where(lambda u: u.active).where(lambda u: u.age < 40).fields(lambda u: u.score).mean(),
]
"""Functions of a group of which no row is needed."""

OTHERS: list[Any] = [
    lambda g: g.fields(lambda u: u.age).max() if g.count() > 8 else None,
    lambda g: g.where(lambda u: u.age > 20).fields(lambda u: 100 // (u.age - 20)).sum(),
    lambda g: (g.count(), g.fields(lambda u: u.name).min() + "!"),
    lambda g: sorted(g.values(), key=lambda u: u.score)[0].name,
    lambda g: g.fields(lambda u: u.age).distinct().count(),
    lambda g: g and g.first()[1].name,
]
"""Functions of a group that need its rows."""


@pytest.mark.twice
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("number", range(len(AGGREGATES) + len(OTHERS)))
def test_groups_of_which_numbers_are_asked_are_not_kept(
    db: Any, name: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = [*AGGREGATES, *OTHERS][number]
    with db.read() as t:
        found = t[name].group_by(lambda u: u.country, into)
        kept: list[Any] = []
        monkeypatch.setattr(grouped, "aggregated", lambda *args: kept.append(args))
        assert t[name].group_by(lambda u: u.country, into) == found
        assert list(t[name].group_by(lambda u: u.country, into)) == list(found)
        monkeypatch.undo()
        monkeypatch.setattr(grouped, "Group", kept.append)
        if number < len(AGGREGATES) and sys.implementation.name == "cpython":
            assert t[name].group_by(lambda u: u.country, into) == found


def test_what_a_function_of_a_group_does_besides_is_done_once_for_each(db: Any) -> None:
    seen: list[Any] = []
    calls = iter(range(100))
    with db.read() as t:
        count = len(t["indexed"].group_by(lambda u: u.country, lambda g: seen.append(g.count())))
        assert len(seen) == count
        numbers = t["indexed"].group_by(lambda u: u.country, lambda g: (next(calls), g.count()))
        assert sorted(number for number, _ in numbers.values()) == list(range(count))
        rows = t["indexed"].group_by(lambda u: u.country, lambda g: g.fields(lambda u: u.age))
        assert sum(len(one.all()) for one in rows.values()) == len(t["indexed"])


@pytest.mark.twice
@pytest.mark.parametrize("name", ["indexed", "flat"])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("order", [None, "u.age", "(desc(u.country), u.score)", "(u.city is None, u.city or '')"])
def test_pages_are_slices_of_the_rows(db: Any, name: str, backwards: bool, order: Optional[str]) -> None:
    with db.read() as t:
        table = t[name]
        queries = [table.select(reverse=backwards), table.where(lambda u: u.active), table.by_place.select()]
        for query in queries:
            if order is not None:
                query = query.order_by(function(order), reverse=backwards)
            names = query.fields(lambda u: u.name)
            assert rows_of_pages(names, 17) == names.all()


def test_a_cursor_belongs_to_its_query(db: Any) -> None:
    with db.read() as t:
        pages = [t.indexed.where(lambda u, low=low: u.age > low).page(5) for low in (3, 4)]
        with pytest.raises(ValueError, match="no cursor of this query"):
            t.indexed.where(lambda u, low=3: u.age > low).page(5, pages[1].next)
        assert t.indexed.where(lambda u, low=3: u.age > low).page(5).rows
        for one, other in (((Decimal(3),), (Decimal(4),)), (frozenset({1}), frozenset({2}))):
            pages = [t.indexed.where(lambda u, some=some: u.age not in some).page(5) for some in (one, one, other)]
            assert pages[0].next == pages[1].next != pages[2].next
        for wrong in ("", "x", "bm8", pages[0].next[:-3]):
            with pytest.raises(ValueError, match="no cursor of this query"):
                t.indexed.where(lambda u: u.age > 3).page(5, wrong)
        aged = t.indexed.order_by(lambda u: u.age)
        name, entry, age = json.loads(b64decode(aged.page(5).next + "==", b"-_"))
        for said in ([name, entry, "old"], [name, entry, age, "behind"], [name, entry, age, "before", "before"]):
            made = b64encode(json.dumps(said).encode(), b"-_").decode()
            with pytest.raises(ValueError, match="no cursor of this query"):
                aged.page(5, made)
        with pytest.raises(TypeError, match="after a limit"):
            t.indexed.limit(3).page(5)
        with pytest.raises(TypeError, match="cannot put a sort key of type list"):
            t.indexed.order_by(lambda u: [u.age]).page(5)
        with pytest.raises(ValueError, match="1 or more"):
            t.indexed.select().page(0)


def test_rows_inserted_before_a_cursor_are_not_shown() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        for number in range(0, 20, 2):
            t.indexed[number] = User(f"u{number}", number, "N", 0.0)
        first = t.indexed.order_by(lambda u: u.age).keys().page(4)
        t.indexed[3] = User("u3", 3, "N", 0.0)
        t.indexed[7] = User("u7", 7, "N", 0.0)
        second = t.indexed.order_by(lambda u: u.age).keys().page(3, first.next)
        assert second.rows == [7, 8, 10]
        t.indexed[9] = User("u9", 9, "N", 0.0)
        back = t.indexed.order_by(lambda u: u.age).keys().page(9, second.previous)
        assert (back.rows, back.previous) == ([0, 2, 3, 4, 6], None)
        assert t.indexed.order_by(lambda u: u.age).keys().page(2, back.next).rows == [7, 8]


@pytest.mark.parametrize("order", [None, lambda u: u.age, lambda u: u.name])
def test_a_cursor_whose_rows_are_deleted_leads_to_an_empty_page(order: Any) -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        for number in range(9):
            t.indexed[number] = User(f"u{number}", number, "N", 0.0)
        query = t.indexed.select() if order is None else t.indexed.order_by(order)
        middle = query.page(3, query.page(3).next)
        for number in (0, 1, 2, 6, 7, 8):
            del t.indexed[number]
        for cursor in (middle.previous, middle.next):
            page = query.page(3, cursor)
            assert (page.rows, page.previous, page.next) == ([], None, None)


# -- what is refused -------------------------------------------------------------------------------------------------


def test_where_and_order_by_after_a_limit_are_refused(db: Any) -> None:
    with db.read() as t:
        for limited in (t.indexed.limit(3), t.indexed.select(limit=3), t.indexed.select().limit(3, 1)):
            with pytest.raises(TypeError, match=r"where\(\) after a limit"):
                limited.where(lambda u: u.active)
            with pytest.raises(TypeError, match=r"order_by\(\) after a limit"):
                limited.order_by(lambda u: u.age)
        rows = t.indexed.select().all()
        assert t.indexed.limit(10, 2).limit(5, 7).all() == rows[9:12]
        assert t.indexed.select(limit=4).limit(9).all() == rows[:4]
        for wrong in ((-1,), (1, -1)):
            with pytest.raises(ValueError, match="0 or more"):
                t.indexed.limit(*wrong)


def test_mistakes_are_told_when_the_query_is_made(db: Any) -> None:
    with db.read() as t:
        for name in TABLES:
            table = t[name]
            for make, text in (
                (lambda: table.where(lambda u: u.agee > 3), "no field 'agee', it has name, age"),  # noqa: B023
                (lambda: table.where(lambda u: u.age > "3"), r"of type int, which '3' \(str\) is not"),  # noqa: B023
                (lambda: table.where(lambda u: u.city < "b"), "u.city may be None"),  # noqa: B023
                (lambda: table.fields(lambda u: u.nam), "no field 'nam'"),  # noqa: B023
                (lambda: table.order_by(lambda u: u.nam), "no field 'nam'"),  # noqa: B023
                (lambda: table.where(3), "expected a function of a record"),  # noqa: B023
                (lambda: table.where(lambda a, b, c: True), "a function of a value, or of a key and a value"),  # noqa: B023
            ):
                with pytest.raises(TypeError, match=text):
                    make()


class Sorted(NamedTuple):
    age: int
    score: float


def test_what_has_no_order_raises(db: Any) -> None:
    nan = float("nan")
    with db.read() as t:
        for name in TABLES:
            with pytest.raises(ValueError, match="has no order"):
                t[name].order_by(lambda u: u.score * nan).all()
            with pytest.raises(ValueError, match="has no order"):
                t[name].order_by(lambda u: (u.age, desc(u.score * nan))).limit(3).all()
            for kind in (list, Sorted._make):
                with pytest.raises(ValueError, match="has no order"):
                    t[name].order_by(lambda u, kind=kind: kind((u.age, u.score * nan))).limit(3).all()
            with pytest.raises(TypeError):
                t[name].order_by(lambda u: u.city).all()


def test_what_a_function_raises_comes_out_as_it_is(db: Any) -> None:
    def broken(one: User) -> bool:
        for letter in one.name:
            if letter == "7":
                raise LookupError("seven")
        return True

    with db.read() as t:
        for name in TABLES:
            with pytest.raises(LookupError, match="^'?seven'?$"):
                t[name].where(broken).count()
            with pytest.raises(ZeroDivisionError):
                t[name].fields(lambda u: 1 / (u.age - 3)).all()
            with pytest.raises(ZeroDivisionError):
                t[name].where(lambda u: 1 // (u.age - 3) == 7 and u.age == 3).all()


def test_a_query_means_the_values_that_it_captured_when_it_was_made(db: Any) -> None:
    with db.read() as t:
        for name in TABLES:
            rows = t[name].values()
            read, called = [], []
            for number in range(4):
                read.append(t[name].where(lambda u: u.age == number))  # noqa: B023
                called.append(t[name].where(lambda u: weird(u, number)))  # noqa: B023
            for number in range(4):
                assert read[number].count() == sum(one.age == number for one in rows)
                assert called[number].count() == sum(weird(one, number) for one in rows)


def test_a_function_that_cannot_be_read_is_called_once_for_each_record(db: Any) -> None:
    asked = 0

    def counts(one: User) -> bool:
        nonlocal asked
        asked += 1
        return one.age > 3

    with db.read() as t:
        found = t.indexed.where(counts)
        assert found.count() == sum(one.age > 3 for one in t.indexed.values())
        assert asked == len(t.indexed)
        assert "assigns to asked" in found.explain().called[0]


# -- changing --------------------------------------------------------------------------------------------------------


MADE_KEYS: list[Any] = [
    "x", "\ud800", 2.5, None, [], [[]], {"a": 1}, ["t", []], ["t", ["x", 1]], ["d", 1], ["d", "x"], ["d", ["t", [1]]],
    ["float", "nan"], ["timedelta", [10**12]], ["Decimal", "NaN"], ["Decimal", "sNaN"], ["datetime", "2020-01-01"],
]  # fmt: skip
SORTED: dict[str, Callable[[Any], Any]] = {
    "by an index": lambda u: u.age,
    "in descending order": lambda u: desc(u.age),
    "by two parts": lambda u: (u.age, u.name),
    "by two parts, one descending": lambda u: (desc(u.age), u.name),
    "by what is calculated": lambda u: u.age * 2,
}


@pytest.mark.parametrize("order", SORTED.values(), ids=SORTED)
@pytest.mark.parametrize("name", ["cbor", "indexed"])
def test_a_cursor_that_somebody_made_gives_a_page_or_one_error(db: Any, name: str, order: Any) -> None:
    """A cursor comes from a web page: whatever it holds, a service catches one error."""

    def read(text: str) -> None:
        with a_result_or(ValueError, "no cursor of this query"):
            query.page(5, b64encode(text.encode(), b"-_").decode())

    with db.read() as t:
        query = t[name].order_by(order)
        shown, entry, _ = json.loads(b64decode(query.page(5).next + "==", b"-_"))
        for key in MADE_KEYS:
            for where in (entry, "", "00" * 200):
                read(json.dumps([shown, where, key]))
        for deep in ("[" * 3000, '["d",' * 3000 + "1" + "]" * 3000):
            read(deep)
            read(f'["{shown}", "{entry}", {deep}]')


@contextmanager
def a_result_or(kind: type[Exception], text: str) -> Iterator[None]:
    try:
        yield
    except kind as error:
        if text not in str(error):
            raise


@pytest.fixture
def fresh() -> Iterator[Any]:
    dice = random.Random(3)
    with zlmdb.open(None, Store) as db, db.write() as t:
        for number in range(60):
            for name in TABLES:
                t[name][number] = user(number, dice)
        yield t


@pytest.mark.parametrize("name", TABLES)
def test_what_matches_is_deleted_changed_and_edited(fresh: Any, name: str) -> None:
    table = fresh[name]
    expected = dict(table.items())
    old = [key for key, one in expected.items() if one.age > 15]
    assert table.where(lambda u: u.age > 15).change(lambda u: replace(u, age=u.age + 100)) == len(old)
    for key in old:
        expected[key] = replace(expected[key], age=expected[key].age + 100)
    assert dict(table.items()) == expected
    with table.where(lambda u: u.age > 100).order_by(lambda u: u.name).limit(2).edit() as users:
        for one in users:
            one.country = "X"
    for key in sorted(old, key=lambda key: expected[key].name)[:2]:
        expected[key].country = "X"
    assert dict(table.items()) == expected
    young = [key for key, one in expected.items() if one.age < 5]
    assert table.where(lambda u: u.age < 5).limit(3).delete() == min(3, len(young))
    for key in young[:3]:
        del expected[key]
    assert dict(table.items()) == expected
    if name == "indexed":
        assert table.by_country["X"].count() == 2
        assert sorted(table.by_age.select().keys()) == sorted(expected)


def test_a_change_that_is_refused_changes_nothing(fresh: Any) -> None:
    before = dict(fresh.indexed.items())
    with pytest.raises(zlmdb.DuplicateKey):
        fresh.indexed.where(lambda u: u.age >= 0).change(lambda u: replace(u, name="same"))
    assert dict(fresh.indexed.items()) == before
    with pytest.raises(zlmdb.EncodeError):
        fresh.indexed.where(lambda u: u.active).change(lambda u: replace(u, age="old"))
    assert dict(fresh.indexed.items()) == before


def test_the_last_object_edited_is_stored_after_break_and_not_after_an_error(fresh: Any) -> None:
    with fresh.indexed.select().edit() as users:
        for number, one in enumerate(users):
            one.age = 77
            if number == 2:
                break
    assert fresh.indexed.where(lambda u: u.age == 77).keys().all() == [0, 1, 2]
    with pytest.raises(LookupError), fresh.indexed.select().edit() as users:  # noqa: PT012 - the block is the test
        for number, one in enumerate(users):
            one.age = 78
            if number == 2:
                raise LookupError
    assert fresh.indexed.where(lambda u: u.age == 78).keys().all() == [0, 1]
    with fresh.indexed.edit(2) as one:  # nothing is left open
        one.age = 5
    with fresh.indexed.select().edit() as users:
        pass
    with pytest.raises(RuntimeError, match="is over"):
        next(users)


@pytest.mark.parametrize("name", TABLES)
def test_a_record_is_judged_when_its_turn_comes(fresh: Any, name: str) -> None:
    """With an index and without: what the body changes ahead counts, what it inserts does not."""

    def run(table: Any, found: Iterator[Any]) -> list[int]:
        seen: list[int] = []
        for key, _ in found:
            seen.append(key)
            if len(seen) == 1:
                del table[matching[1]]
                table[matching[2]] = replace(table[matching[2]], age=99)
                table[other] = replace(table[other], age=3)
                table[500] = User("new", 3, "N", 0.0)
        return seen

    table = fresh[name]
    for key in (10, 20, 30, 40, 50):
        table[key] = replace(table[key], age=3)
    matching = [key for key, one in table.items() if one.age == 3]
    other = next(key for key, one in table.items() if one.age != 3 and key > matching[3])
    expected = sorted([matching[0], *matching[3:], other])
    query = table.where(lambda u: u.age == 3)
    assert query.explain().indexes == (() if name == "cbor" else ("by_age",))
    assert run(table, iter(query)) == expected


def test_groups_of_an_index_end_whatever_the_body_writes(fresh: Any) -> None:
    seen = 0
    for age, group in fresh.indexed.by_age.groups():
        seen += 1
        for key, one in list(group):
            fresh.indexed[key] = replace(one, age=age + 1)
    assert 0 < seen <= 20


@pytest.mark.parametrize("write", [False, True])
def test_a_query_ends_with_its_transaction(db: Any, write: bool) -> None:
    with db.write() if write else db.read() as t:
        queries = [
            t.indexed.where(lambda u: u.age == 3), t.indexed.order_by(lambda u: u.name), t.indexed.where(weird_one),
            t.flat.where(lambda u: u.age == 3).limit(2), t.indexed.order_by(lambda u: u.age).limit(4),
            t.indexed.order_by(lambda u: -u.age), t.flat.order_by(lambda u: -u.age).limit(3),
        ]  # fmt: skip
        begun = [iter(one) for one in queries] + [iter(one) for one in queries]
        for rows in begun[len(queries) :]:
            next(rows, None)
    for query in queries:
        for read in (query.first, query.count, query.all, lambda: bool(query)):  # noqa: B023
            with pytest.raises(zlmdb.TransactionClosed):
                read()
        assert "its transaction has ended" in repr(query)
    for rows in begun:
        with pytest.raises(zlmdb.TransactionClosed):
            next(rows)


def weird_one(one: User) -> bool:
    return weird(one, 3)


class Counted(zlmdb.Table[int, User]):
    by_age = zlmdb.Index[int]("age")
    by_place = zlmdb.Index[tuple[str, int]]("country", "age")


class Twice(zlmdb.Schema):
    counted: Counted
    scanned: zlmdb.Table[int, User]


CHANGING: list[Callable[[Any, int], Any]] = [
    lambda rows, n: rows.where(lambda u: u.age == n),
    lambda rows, n: rows.where(lambda u: u.country == "N" and u.age > n),
    lambda rows, n: rows.where(lambda u: u.age in (1, n) or (u.country == "S" and u.age == 4)),
    lambda rows, n: rows.where(lambda k, u: k >= 10 * n and u.age != n),
]


@pytest.mark.twice
@pytest.mark.parametrize("seed", range(24))
def test_whatever_the_body_writes_an_index_visits_what_a_scan_visits(seed: int) -> None:
    dice = random.Random(seed)
    records = [(dice.randrange(200), user(dice.randrange(9999), dice)) for _ in range(50)]
    number, reverse, visited = dice.randrange(12), dice.random() < 0.5, []
    with zlmdb.open(None, Twice) as db:
        for name in ("counted", "scanned"):
            with db.write() as t:
                t[name].update(records)
                query = CHANGING[seed % 4](t[name].select(reverse=reverse), number)
                visited.append(_visited(t, t[name], query, number, random.Random(f"body {seed}")))
    assert visited[0] == visited[1]


def _visited(t: Any, table: Any, query: Any, number: int, dice: random.Random) -> list[Any]:
    seen: list[Any] = []
    for key, one in query:
        seen.append((key, one))
        for _ in range(dice.randrange(3)):
            step, other = dice.random(), dice.randrange(220)
            new = User(f"{len(seen)}", dice.choice([number, 1, 4, 5]), dice.choice("NSD"), 0.0)
            if step < 0.3:
                table.pop(other, None)
            elif step < 0.8:
                table[other] = new
            elif step < 0.9:
                with suppress(LookupError), t.txn.savepoint():
                    table[other] = new
                    if step < 0.85:
                        raise LookupError
            else:
                table.where(lambda u: u.age == 11).delete()
    return seen


@pytest.mark.parametrize("backwards", [False, True])
def test_a_page_far_behind_takes_as_many_steps_as_the_second(db: Any, backwards: bool) -> None:
    with db.read() as t:
        rows = t["indexed"].order_by(lambda u: u.score, reverse=backwards)
        calls, after = [], rows.page(5).next
        while after is not None:
            count = 0

            def profile(frame: Any, event: str, arg: Any) -> None:
                nonlocal count
                count += event == "call"

            before = sys.getprofile()
            sys.setprofile(profile)
            try:
                after = rows.page(5, after).next
            finally:
                sys.setprofile(before)
            calls.append(count)
        assert len(calls) > 10
        assert sum(calls[-6:-1]) < 1.5 * sum(calls[:5]), calls


# -- functions of the same code ----------------------------------------------------------------------------------------


@dataclass
class Person:
    name: str
    age: int
    tags: list[str]


class People(zlmdb.Table[int, Person]):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_age = zlmdb.Index[int]("age")


class Crowd(zlmdb.Schema):
    people: People


VALUES = [3, 7, 7.0, 7.5, True, "name 7", "name 300", None, (3, 7), [7, "x"], {1, 2, 3}, "na", b"name 7", 10**30]


def functions_of_same_code(value: Any) -> list[Any]:
    return [
        lambda p: p.name == value,
        lambda p: p.age == value,
        lambda p: value == p.age and p.name != "name 3",
        lambda p: p.age == value or p.name == value,
        lambda k, p: k == value,
        lambda p: p.age > value,
        lambda p: value >= p.age > 3,
        lambda p: p.age in value,
        lambda k, p: k in value and p.age < 9,
        lambda p: p.name.startswith(value),
    ]


@pytest.mark.parametrize("number", range(10))
def test_what_is_kept_of_a_query_serves_other_values_of_any_type(number: int) -> None:
    people = {n: Person(f"name {n}", n % 10, [f"t{n}"]) for n in range(60)}
    dice = random.Random(number)
    with zlmdb.open(None, Crowd) as db:
        with db.write() as t:
            t.people.update(people)
        with db.read() as t:
            for value in [*VALUES, *dice.sample(VALUES, len(VALUES))]:
                function = functions_of_same_code(value)[number]
                keyed = function.__code__.co_argcount == 2
                try:
                    expected: Any = [k for k, p in people.items() if (function(k, p) if keyed else function(p))]
                except TypeError:
                    expected = TypeError
                try:
                    found: Any = list(t.people.where(function).keys())
                except TypeError:
                    found = TypeError
                if found is TypeError and expected is not TypeError:
                    continue  # a comparison that is never true is refused
                assert found == expected, value


def test_a_known_query_by_a_unique_index_takes_few_calls() -> None:
    with zlmdb.open(None, Crowd) as db:
        with db.write() as t:
            t.people.update({n: Person(f"name {n}", n % 10, []) for n in range(60)})
        with db.read() as t:

            def look_up(name: str) -> Any:
                return t.people.where(lambda p: p.name == name).first()

            for n in range(20):
                assert look_up(f"name {n}") == (n, Person(f"name {n}", n % 10, []))
            calls = 0

            def count(frame: Any, event: str, arg: Any) -> None:
                nonlocal calls
                calls += event == "call"

            before = sys.getprofile()
            sys.setprofile(count)
            try:
                look_up("name 30")
            finally:
                sys.setprofile(before)
            # 184 without what is kept. More of PyPy's own library is Python.
            assert calls <= (90 if sys.implementation.name == "cpython" else 160), calls


def test_what_is_known_of_indexes_serves_other_transactions_too() -> None:
    with zlmdb.open(None, Crowd) as db:
        with db.write() as t:
            t.people.update({n: Person(f"name {n}", n % 10, []) for n in range(60)})
        known: list[Any] = []
        for n in range(6):
            with db.read() as t, db.read() as other:
                for one in (t, other):
                    assert one.people.where(lambda p: p.name == f"name {n}").first()[0] == n  # noqa: B023
                    known.append(one.people._storage.generated.programs.known)
        assert all(one is known[0] for one in known)


def test_a_partial_index_serves_those_values_only_that_imply_its_condition() -> None:
    class Adults(zlmdb.Table[int, Person]):
        adult = zlmdb.Index[int]("age", where=lambda p: p.age > 5)

    class Town(zlmdb.Schema):
        people: Adults

    with zlmdb.open(None, Town) as db:
        with db.write() as t:
            t.people.update({n: Person(f"name {n}", n % 10, []) for n in range(60)})
        with db.read() as t:
            for least in (8, 2, 8, 1, 7):
                found = t.people.where(lambda p: p.age > least)  # noqa: B023 - asked at once
                assert len(found.all()) == 6 * (9 - least)
                assert found.explain().indexes == (("adult",) if least >= 7 else ()), least


class Track(TypedDict):
    title: str
    year: int
    band: Optional[str]


class Song(Track, total=False):
    style: str


class Songs(zlmdb.Table[int, Song]):
    by_year = zlmdb.Index[int]("year")
    by_band = zlmdb.Index[str]("band.casefold()")
    by_style = zlmdb.Index[tuple[str, str]]("title", "style")


class Jukebox(zlmdb.Schema):
    songs: Songs


def test_queries_of_typed_dicts_use_indexes() -> None:
    with zlmdb.open(None, Jukebox) as db:
        with db.write() as t:
            for number in range(100):
                song: Song = {
                    "title": f"t{number % 20}",
                    "year": number % 30,
                    "band": f"B{number}" if number % 2 else None,
                }
                if number % 3 == 0:
                    song["style"] = "pop"
                t.songs[number] = song
        with db.read() as t:
            for matches, index in (
                (lambda s: s["year"] == 3, "by_year"),
                (lambda s: s["band"] is not None and s["band"].casefold() == "b7", "by_band"),
                (lambda s: s["title"] == "t9" and s["style"] == "pop", "by_style"),
            ):
                query = t.songs.where(matches)
                assert query.explain().indexes == (index,)
                rows = [(key, song) for key, song in t.songs.items() if index != "by_style" or "style" in song]
                assert query.all() == [row for row in rows if matches(row[1])]
            assert t.songs.order_by(lambda s: s["year"]).limit(2).explain().indexes == ("by_year",)
            titled = t.songs.where(lambda s: s["title"] == "t3")  # some of these have no style, and no entry
            assert titled.explain().indexes == ()
            assert titled.count() == 5


@dataclass
class Meeting:
    title: str
    number: int
    at: datetime
    moved: Optional[datetime] = None


class Meetings(zlmdb.Table[int, Meeting]):
    by_number = zlmdb.Index[int]("number")


class FlatMeetings(zlmdb.Table[int, zlmdb.FlatBuffers[Meeting]]):
    by_number = zlmdb.Index[int]("number", carries=("at",))


class Calendar(zlmdb.Schema):
    meetings: Meetings
    flat: FlatMeetings


def test_a_time_without_a_zone_among_those_with_one_is_named_with_the_record() -> None:
    naive = datetime(2020, 1, 3)
    asked: list[Callable[[Any], Any]] = [
        lambda m: m.where(lambda m: m.at < naive).count(),
        lambda m: bool(m.where(lambda m: naive > m.at)),
        lambda m: m.where(lambda m: m.number == 7 and m.at < naive).all(),
        lambda m: m.where(lambda m: m.number == 7 and m.at < naive).keys().all(),
        lambda m: m.where(lambda k, m: k > 6 and (m.moved is None and m.at < naive)).order_by(lambda m: m.title).all(),
        lambda m: m.where(lambda m: m.at < naive).order_by(lambda m: m.title).limit(1).first(),
        lambda m: m.where(lambda m: m.number in (7, 8)).fields(lambda m: (m.at - naive).days).all(),
        lambda m: m.order_by(lambda m: m.at - naive).all(),
        lambda m: m.group_by(lambda m: m.at > naive, lambda g: g.count()),
    ]
    with zlmdb.open(None, Calendar) as db:
        with db.write() as t:
            for table in (t.meetings, t.flat):
                table.update({n: Meeting(f"m{n}", n, datetime(2020, 1, n, tzinfo=timezone.utc)) for n in range(7, 10)})
        for begin in (db.read, db.read, db.write):
            with begin() as t:
                for name in ("meetings", "flat"):
                    for ask in asked:
                        with pytest.raises(TypeError) as caught:
                            ask(t[name])
                        said = str(caught.value)
                        assert said.startswith(f"table {name!r}, key 7: ("), said
                        assert "aware datetimes; naive has no time zone, give it one" in said
                        assert type(caught.value.__cause__) is TypeError
                    assert t[name].where(lambda m: m.at == naive).count() == 0  # as Python says
