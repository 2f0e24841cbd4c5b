"""Cached plans of queries by an index: the same rows as Python gives, and nothing is planned again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Callable, Optional

import pytest

import zlmdb
from tests.pagewalk import rows_of_pages
from zlmdb.query.projection import VALUES
from zlmdb.tables.executor import cachedpaths
from zlmdb.tables.executor.accesspaths import AccessPath
from zlmdb.tables.executor.cachedpaths import FEW
from zlmdb.tables.executor.execution import Running
from zlmdb.tables.executor.foundkeys import FoundKeys

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Person:
    name: str
    email: str
    age: int
    town: str
    since: date
    tags: list[str] = field(default_factory=list)
    boss: Optional[int] = None
    nick: Optional[str] = None

    @property
    def initial(self) -> str:
        return self.name[:1]


class People(zlmdb.Table[int, Person]):
    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")
    by_town = zlmdb.Index[tuple[str, int]]("town", "age")
    by_since = zlmdb.Index[date]("since")
    by_youth = zlmdb.Index[int](zlmdb.desc("age"))
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_boss = zlmdb.ForeignKey["People"]("boss", deferred=True)
    by_nick = zlmdb.Index[str]("nick")


class Named(zlmdb.Table[str, Person]):  # its keys have no fixed width
    by_age = zlmdb.Index[int]("age")
    by_email = zlmdb.UniqueIndex[str]("email")
    by_town = zlmdb.Index[str]("town")


class Flat(zlmdb.Table[int, zlmdb.FlatBuffers[Person]]):
    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")
    by_town = zlmdb.Index[tuple[str, int]]("town", "age")
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_nick = zlmdb.Index[str]("nick")


class Store(zlmdb.Schema):
    people: People
    flat: Flat
    named: Named


def person(n: int, dice: random.Random) -> Person:
    tags = dice.sample(["a", "b", "c\0", "cd"], dice.randrange(3))
    boss = None if n < 3 else dice.randrange(n)
    return Person(
        f"n{n}", f"e{n}", dice.randrange(60), dice.choice(["x", "y", "xy"]), date(2000, 1, 1 + n % 28), tags, boss,
        f"k{n}" if n % 3 else None,
    )  # fmt: skip


# A plan knows no engine.
@pytest.fixture(scope="module", params=[pytest.param("memory", marks=pytest.mark.once), "file"])
def db(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[zlmdb.Database[Store]]:
    path = None if request.param == "memory" else tmp_path_factory.mktemp("ready")
    dice = random.Random(3)
    with zlmdb.open(path, Store) as opened:
        with opened.write() as t:
            for n in range(300):
                one = person(n, dice)
                t.people[n * 3 % 307] = t.flat[n * 3 % 307] = one
                t.named[f"k{n * 7 % 300}"] = one
        yield opened


Make = Callable[[Any, random.Random], tuple[Any, Callable[[Any, Person], Any]]]


def by(condition: Callable[..., Any], values: Callable[[random.Random], tuple[Any, ...]]) -> Make:
    """A query by the conditions that *condition* makes of *values*, and what it is of a key and a value."""

    def make(table: Any, dice: random.Random) -> Any:
        asked = condition(*values(dice))
        arguments = asked.__code__.co_argcount
        return table.where(asked), asked if arguments == 2 else lambda key, value: asked(value)

    return make


def ages(dice: random.Random) -> tuple[int, int]:
    return dice.randrange(-3, 62), dice.randrange(8)


QUERIES: dict[str, Make] = {
    "unique": by(lambda one: lambda p: p.email == one, lambda dice: (f"e{dice.randrange(320)}",)),
    "equal": by(lambda one, _: lambda p: p.age == one, ages),
    "range": by(lambda one, more: lambda p: one <= p.age < one + more, ages),
    "through": by(lambda one, more: lambda p: one < p.age <= one + more, ages),
    "in": by(lambda some: lambda p: p.age in some, lambda dice: (tuple(dice.sample(range(70), dice.randrange(4))),)),
    "in texts": by(lambda one, more: lambda p: p.email in ("e5", f"e{one}", str(one), f"e{more % 7}"), ages),
    "of what may be None": by(
        lambda one, more: lambda p: p.nick in (f"k{one}", f"k{more}") or p.nick == f"k{one + 1}", ages
    ),
    "one of two, and not None": by(
        lambda one, more: lambda p: p.nick is not None and p.nick in (str(more), f"k{one}"), ages
    ),
    "one of two, and one end": by(lambda one, more: lambda p: p.email in (f"e{one}", f"e{more}") and p.age > 5, ages),
    "begins": by(lambda one: lambda p: p.email.startswith(one), lambda dice: (f"e{dice.randrange(30)}",)),
    "two fields": by(lambda one, _: lambda p: p.town == "xy" and p.age == one, ages),
    "equal and range": by(lambda one, _: lambda p: p.town == "y" and p.age > one + 50, ages),
    "equal and in": by(lambda *some: lambda p: p.town == "x" and p.age in some, ages),
    "equal or equal": by(lambda one, more: lambda p: p.town == "x" and p.age in (one, more), ages),
    "more asked": by(lambda one, _: lambda p: p.age == one and p.initial == "n" and len(p.tags) > 0, ages),
    "element": by(lambda one: lambda p: one in p.tags, lambda dice: (dice.choice(["a", "c\0", "c", "cd"]),)),
    "key": by(lambda one, _: lambda k, p: k == one, ages),
    "keys": by(lambda one, more: lambda k, p: k in (one, more, 5), ages),
    "key and value": by(lambda one, _: lambda k, p: p.age == one and k > 100, ages),
}
SOMETIMES = ("begins", "element", "equal or equal")  # there may be too many
NAMED = ("unique", "equal", "range", "in", "in texts", "begins")
DAYS = by(lambda day: lambda p: p.since == day, lambda dice: (date(2000, 1, 1 + dice.randrange(28)),))


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Running]:
    """What was run by planning."""
    runs: list[Running] = []
    choice = Running.choice

    def chosen(running: Running, **more: Any) -> Any:
        runs.append(running)
        return choice(running, **more)

    monkeypatch.setattr(Running, "choice", chosen)
    return runs


def check(table: Any, make: Make, dice: random.Random, rows: list[Any]) -> None:
    found, holds = make(table, dice)
    expected = [pair for pair in rows if holds(*pair)]
    assert found.all() == expected
    assert list(found) == expected
    assert found.first() == (expected[0] if expected else None)
    assert found.limit(3, 1).all() == list(found.limit(3, 1)) == expected[1:4]
    assert found.limit(0).all() == []
    assert found.count() == len(expected)
    assert found.fields(lambda p: (p.name, p.age)).all() == [(p.name, p.age) for _, p in expected]
    assert found.fields(lambda p: p).all() == [p for _, p in expected]
    assert list(found.keys()) == found.keys().all() == [key for key, _ in expected]
    part = table.select(reverse=True).where(lambda p: True)
    assert part.all() == rows[::-1]


@pytest.mark.parametrize("name", ["people", "named", "flat"])
def test_it_gives_what_python_gives_for_all_captured_values(db: Any, name: str, planned: list[Running]) -> None:
    dice = random.Random(name)
    with db.read() as t:
        table = t[name]
        rows = list(table.items())
        queries = {**QUERIES, "days": DAYS} if name == "people" else {one: QUERIES[one] for one in NAMED}
        queries = QUERIES if name == "flat" else queries
        for what, make in queries.items():
            if name == "named" and what.startswith("key"):
                continue
            for turn in range(6):
                check(table, make, dice, rows)
                if turn == 2:
                    planned.clear()
                    make(table, dice)[0].all()
                    assert not planned or what in SOMETIMES, what


def test_computed_members_are_asked_of_an_index(db: Any) -> None:
    n, names, prefix = 5, ["e1"], "e"
    with db.read() as t:
        for condition in (
            lambda p: p.email in (f"e{n}", "e7"),
            lambda p: p.email in ("e7", f"e{n % 3}", f"e{n // 2}"),
            lambda p: p.email in [prefix + "1", str(n), f"{prefix}{n}"],
            lambda p: p.email in {prefix + "1", prefix.lower(), f"{prefix}{n}"},
            lambda p: p.email in (names[0], prefix + "2"),
        ):
            text = str(t.people.where(condition).explain())
            assert "index by_email" in text
            assert "all records" not in text
            assert "called" not in text
            assert t.people.where(condition).all() == [(k, p) for k, p in t.people.items() if condition(p)]


FIRST: dict[str, Make] = {
    "since": DAYS,
    "age": QUERIES["equal"],
    "more asked": QUERIES["more asked"],
    "rare": by(
        lambda day: lambda p: p.since == day and p.age == 7, lambda dice: (date(2000, 1, 1 + dice.randrange(28)),)
    ),
    "town": by(lambda town: lambda p: p.town == town, lambda dice: (dice.choice(["x", "y", "xy", "z"]),)),
    "town and age": by(lambda town: lambda p: p.town == town and p.age > 40, lambda dice: (dice.choice(["x", "y"]),)),
}


@pytest.mark.parametrize("few", [1, 4, FEW])
@pytest.mark.parametrize("name", ["people", "named", "flat"])
def test_the_first_rows_of_an_index_key_are_what_python_gives(
    db: Any, name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cachedpaths, "FEW", few)
    dice = random.Random(name)
    with db.read() as t:
        table = t[name]
        rows = list(table.items())
        lower, upper = rows[40][0], rows[200][0]
        for make in FIRST.values():
            if name == "flat" and make is DAYS:  # it has no such index
                continue
            for _ in range(6):
                state = dice.getstate()
                found, holds = make(table, dice)
                expected = [pair for pair in rows if holds(*pair)]
                for skip, limit in ((0, 1), (0, 3), (2, 2), (3, 70), (0, 0)):
                    most = found.limit(limit, skip)
                    assert most.all() == list(most) == expected[skip : skip + limit]
                    assert most.count() == len(expected[skip : skip + limit])
                    assert list(most.keys()) == [key for key, _ in expected[skip : skip + limit]]
                assert list(found) == expected
                assert next(iter(found), None) == found.first() == (expected[0] if expected else None)
                assert found.last() == (expected[-1] if expected else None)
                assert found.keys().first() == (expected[0][0] if expected else None)
                assert found.keys().last() == (expected[-1][0] if expected else None)
                assert bool(found) is bool(expected)
                for reverse in (False, True):
                    dice.setstate(state)
                    part, _ = make(table.select(lower, upper, reverse=reverse), dice)
                    inside = [pair for pair in expected if lower <= pair[0] < upper][:: -1 if reverse else 1]
                    assert part.limit(2).all() == list(part.limit(2)) == inside[:2]
                    assert part.first() == (inside[0] if inside else None)
                    assert part.keys().first() == (inside[0][0] if inside else None)


def test_the_first_row_takes_as_long_however_many_have_the_index_key(
    db: Any, planned: list[Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    ends = AccessPath.ends

    def counted(path: Any, selection: Any, most: int) -> Any:
        found = ends(path, selection, most)
        read.append(len(found or ()))
        return found

    monkeypatch.setattr(AccessPath, "ends", counted)

    def ask(table: Any, town: str) -> Any:
        return table.where(lambda p: p.town == town)

    with db.read() as t:
        for _ in range(4):
            ask(t.named, "x").first(), ask(t.named, "x").keys().first(), bool(ask(t.named, "x"))
            list(ask(t.named, "x").limit(3))
        planned.clear()
        read.clear()
        ask(t.named, "x").first()
        list(ask(t.named, "x").limit(3))
        assert read == [1, 3]
        ask(t.named, "x").keys().first()
        assert ask(t.named, "y")
        assert read == [1, 3]
        assert next(iter(ask(t.named, "x")))
        assert read == [1, 3, FEW]
        assert not planned
        rejected = ask(t.named, "x").limit(3).explain().rejected
        assert [f"its first {FEW} entries are tried before" in one for one in rejected] == [True]
        assert "tried" not in str(ask(t.named, "x").explain())


def test_ranges_of_keys_and_backwards(db: Any) -> None:
    with db.read() as t:
        rows = [pair for pair in t.people.items() if 50 <= pair[0] < 200]
        for age in range(5, 15):
            for backwards in (False, True):
                found = t.people.select(50, 200, reverse=backwards).where(lambda p: p.age == age)  # noqa: B023
                expected = [pair for pair in rows if pair[1].age == age]
                assert found.all() == list(found) == (expected[::-1] if backwards else expected)


def test_unusual_values_are_left_to_the_planner(db: Any) -> None:
    with db.read() as t:
        rows = list(t.people.items())

        def asked(value: Any) -> Any:
            return t.people.where(lambda p: p.age >= value).all()

        for value in (50, 51, 50.5, 2**70, -(2**70), float("nan"), 0, True, 59):
            assert asked(value) == [pair for pair in rows if pair[1].age >= value], value

        def named(value: Any) -> Any:
            return t.people.where(lambda p: p.email == value).all()

        for value in ("e3", "e4", "e5\0", "\ud800", "", "e3" * 400):
            assert named(value) == [pair for pair in rows if pair[1].email == value], value


def by_age(table: Any, backwards: bool) -> Any:
    return table.order_by(lambda p: p.age, reverse=backwards)


@pytest.mark.parametrize("backwards", [False, True])
def test_an_order_by_an_index(db: Any, backwards: bool, planned: list[Running]) -> None:
    with db.read() as t:
        for table in (t.people, t.named):
            rows = sorted(table.items(), key=lambda pair: pair[1].age)
            if backwards:
                rows = sorted(list(table.items())[::-1], key=lambda pair: pair[1].age, reverse=True)

            for size in (1, 7, 20, 5000):
                assert (
                    by_age(table, backwards).limit(size).all()
                    == list(by_age(table, backwards).limit(size))
                    == rows[:size]
                )
                assert by_age(table, backwards).limit(size, 3).fields(lambda p: p.age).all() == [
                    p.age for _, p in rows[3 : 3 + size]
                ]
            assert by_age(table, backwards).first() == rows[0]
            planned.clear()
            assert by_age(table, backwards).all() == rows
            assert not planned
            assert table.select(reverse=True).order_by(lambda p: p.age, reverse=backwards).all() == sorted(
                list(table.items())[:: 1 if backwards else -1], key=lambda pair: pair[1].age, reverse=backwards
            )


def test_pages_in_the_order_of_an_index_need_no_plan(db: Any, planned: list[Running]) -> None:
    with db.read() as t:
        for backwards in (False, True):
            ordered = t.people.order_by(lambda p: p.age, reverse=backwards)
            rows_of_pages(ordered, 25, most=3)
            planned.clear()
            seen = rows_of_pages(ordered, 25)
            assert not planned
            assert seen == ordered.all()
            part = t.people.select(0, 90).order_by(lambda p: p.age, reverse=backwards)
            assert part.page(10, part.page(10).next).rows == part.all()[10:20]
            with pytest.raises(ValueError, match="no cursor of this query"):
                t.people.order_by(lambda p: p.age, reverse=backwards).page(10, part.page(10).next)


ORDERS: dict[str, Callable[..., Any]] = {
    "field": lambda p: p.name,
    "ties": lambda p: p.town,
    "several": lambda p: (p.town, zlmdb.desc(p.age), p.email),
    "of the key": lambda k, p: (p.initial, -k % 7),
    "in an index": lambda p: p.email,
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", ["people", "flat"])
def test_a_condition_by_an_index_and_an_order(db: Any, name: str, order: str, planned: list[Running]) -> None:
    dice, by = random.Random(name + order), ORDERS[order]
    keyed = by.__code__.co_argcount == 2

    def sort_key(pair: tuple[int, Person]) -> Any:
        return by(*pair) if keyed else by(pair[1])

    with db.read() as t:
        table = t[name]
        rows = list(table.items())
        for what in ("unique", "equal", "in", "keys", "key and value"):
            for turn in range(4):
                selected, holds = QUERIES[what](table, dice)
                few = [pair for pair in rows if holds(*pair)]
                if turn == 3:
                    planned.clear()
                for backwards in (False, True):
                    found = selected.order_by(by, reverse=backwards)
                    expected = sorted(few, key=sort_key)
                    if backwards:
                        expected = sorted(few[::-1], key=sort_key, reverse=True)
                    assert found.all() == list(found) == expected
                    assert found.first() == (expected[0] if expected else None)
                    assert found.limit(2, 1).all() == list(found.limit(2, 1)) == expected[1:3]
                    assert found.fields(lambda k, p: (k, p.name)).all() == [(k, p.name) for k, p in expected]
                if turn == 3 and few and what in ("unique", "equal", "in"):
                    assert not planned, what
        for backwards in (False, True):
            part = table.select(20, 250, reverse=True).where(lambda p: p.age < 5).order_by(by, reverse=backwards)
            low = [pair for pair in rows if 20 <= pair[0] < 250 and pair[1].age < 5]
            expected = sorted(low if backwards else low[::-1], key=sort_key, reverse=backwards)
            for _ in range(2):
                assert part.all() == list(part) == expected


def test_an_index_that_has_the_order_is_read_in_it(db: Any) -> None:
    with db.read() as t:
        rows = sorted([p.age for p in t.people.values() if p.town == "xy"])
        for _ in range(4):
            found = t.people.where(lambda p: p.town == "xy").order_by(lambda p: p.age).limit(3)
            assert found.fields(lambda p: p.age).all() == rows[:3]
            assert found.explain().ordered
            assert [p.age for p in found.values().all()] == rows[:3]
        ready: Any = found._cached_plan(VALUES)
        assert len(rows) >= FEW
        assert [p.age for p in ready.all(found, VALUES, 3)] == rows[:3]


def test_what_has_no_order_is_told_by_the_planner(db: Any) -> None:
    with db.read() as t:
        for _ in range(3):
            found = t.people.where(lambda p: p.age == 7)
            with pytest.raises(ValueError, match="has no order"):
                found.order_by(lambda p: float("nan") if p.age == 7 else 1.0).all()
            with pytest.raises(TypeError):
                t.people.where(lambda k, p: k in (0, 3, 6, 9, 12)).order_by(lambda p: p.boss).all()  # type: ignore[type-var]


def test_a_condition_on_a_linked_record_needs_no_plan(db: Any, planned: list[Running]) -> None:
    with db.read() as t:

        def below(email: str) -> Any:
            return t.people.where(lambda p: p.boss is not None and t.people[p.boss].email == email)

        rows = list(t.people.items())
        for n in range(0, 60, 2):
            if n == 8:
                planned.clear()
            expected = [pair for pair in rows if pair[1].boss is not None and t.people[pair[1].boss].email == f"e{n}"]
            assert below(f"e{n}").all() == list(below(f"e{n}")) == expected
        assert not planned
    with db.read() as t:
        assert below("e4").count() == len([p for p in t.people.values() if p.boss and t.people[p.boss].email == "e4"])


def test_rows_end_with_the_transaction(db: Any) -> None:
    def found(t: Any) -> Any:
        return t.people.where(lambda p: p.age in (1, 2, 3, 4, 5, 6, 7))

    with db.read() as t:
        for _ in range(3):
            rows = iter(found(t))
            assert next(rows)
        kept, ordered = found(t), iter(t.people.order_by(lambda p: p.age).limit(9))
        next(ordered)
    for read in (lambda: next(rows), kept.all, kept.first, lambda: next(iter(kept)), lambda: next(ordered)):
        with pytest.raises(zlmdb.TransactionClosed):
            read()


def test_a_write_transaction_sees_its_own_changes(db: Any) -> None:
    def found(t: Any) -> Any:
        return t.people.where(lambda p: p.age == 7)

    with db.read() as t:
        for _ in range(3):
            before = found(t).all()
    with suppress(RuntimeError), db.write() as t:
        assert found(t).all() == before
        t.people[5000] = Person("new", "new", 7, "x", date(2000, 1, 1))
        assert len(found(t).all()) == len(before) + 1
        raise RuntimeError
    with db.read() as t:
        assert found(t).all() == before


def test_a_broken_record_raises_where_it_comes(tmp_path: Any, planned: list[Running]) -> None:
    with zlmdb.open(tmp_path, Store) as db:
        with db.write() as t:
            for n in range(80):
                t.people[n] = Person(f"n{n}", f"e{n}", n % 8, "x", date(2000, 1, 1))

        def found(t: Any, age: int) -> Any:
            return t.people.where(lambda p: p.age == age).where(lambda p: p.town == "x").limit(30)

        with db.read() as t:
            for _ in range(3):
                planned.clear()
                assert len(found(t, 1).all()) == 10
            assert not planned
        with db.write() as t:
            people = t.people
            people._raw.put(people._storage.encode_key(33), b"\x81\xa4name\xc0", db=people._db)
        with db.read() as t:
            seen = iter(found(t, 1))
            assert [next(seen)[0] for _ in range(4)] == [1, 9, 17, 25]
            names = found(t, 1).fields(lambda p: p.name)
            for read in (lambda: next(seen), found(t, 1).all, names.all, lambda: list(found(t, 1))):
                with pytest.raises(zlmdb.DecodeError, match="33"):
                    read()
            assert found(t, 1).count() == 10  # told by the entries of an index that has both fields
            assert found(t, 1).first()[0] == 1
            planned.clear()
            assert len(found(t, 0).all()) == 10
            assert not planned


def test_the_records_of_an_index_key_are_listed_at_once(db: Any) -> None:
    with db.read() as t:
        rows = list(t.people.items())
        for age in (3, 7, 99):
            expected = [pair for pair in rows if pair[1].age == age]
            found = t.people.by_age[age]
            assert found.all() == list(found) == expected
            assert found.keys().all() == [key for key, _ in expected]
            assert found.values().all() == [one for _, one in expected]
            assert found.fields(lambda p: p.name).all() == [one.name for _, one in expected]
            assert found.limit(2).all() == expected[:2]
            assert (
                t.people.by_age.select(age, age + 3, reverse=True).limit(4).all()
                == list(t.people.by_age.select(age, age + 3, reverse=True))[:4]
            )
        tagged = t.people.by_tag.select("a", "d")
        assert tagged.all() == list(tagged)
        assert len(tagged.all()) == len([one for _, one in rows if one.tags])
    with pytest.raises(zlmdb.TransactionClosed):
        found.all()


@pytest.mark.parametrize("name", ["people", "flat"])
def test_the_first_few_in_an_order_without_an_index(db: Any, name: str) -> None:
    with db.read() as t:
        table = t[name]
        for backwards in (False, True):
            rows = sorted(
                list(table.items())[:: -1 if backwards else 1], key=lambda pair: pair[1].name, reverse=backwards
            )
            few = table.where(lambda p: p.age > 20).order_by(lambda p: p.name, reverse=backwards).limit(5, 2)
            expected = [pair for pair in rows if pair[1].age > 20][2:7]
            assert few.all() == list(few) == expected
            assert few.first() == expected[0]
            assert few.fields(lambda k, p: (k, p.town)).all() == [(key, one.town) for key, one in expected]
            assert few.keys().all() == [key for key, _ in expected]
            assert table.order_by(lambda p: p.town, reverse=backwards).limit(0).all() == []
        kept = iter(few)
        next(kept)
    with pytest.raises(zlmdb.TransactionClosed):
        next(kept)
    with db.read() as t:
        broken = t.people.order_by(lambda p: 1 // (p.age - t.people[0].age)).limit(3)
        with pytest.raises(ZeroDivisionError):
            broken.all()
        given = t.people.order_by(lambda p: p.name).limit(3).fields(lambda p: 1 // (p.age - p.age))
        with pytest.raises(ZeroDivisionError):
            given.all()


@dataclass
class Aged:
    name: str
    age: int


class Ages(zlmdb.Table[int, Aged]):
    by_age = zlmdb.Index[int]("age")
    by_name = zlmdb.Index[str]("name")


class Aging(zlmdb.Schema):
    ages: Ages


@pytest.mark.once
def test_of_two_indexes_with_many_entries_none_is_read_for_a_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def fewer(self: FoundKeys, most: int) -> Any:
        asked.append(most)
        return original(self, most)

    original = FoundKeys.fewer
    monkeypatch.setattr(FoundKeys, "fewer", fewer)
    with zlmdb.open(None, Aging) as db:
        with db.write() as t:
            t.ages.put_many((n, Aged(f"n{n % 3}", n * 7919 % 97)) for n in range(5000))
        with db.read() as t:
            least, name = 5, "n1"
            fit = [(k, a) for k, a in t.ages.items() if a.age > least and a.name == name]
            both = t.ages.where(lambda a: a.age > least and a.name == name)
            for turn in range(3):
                del asked[:]
                assert both.limit(10).all() == fit[:10]
                assert both.limit(3, 4).fields(lambda a: a.age).all() == [a.age for _, a in fit[4:7]]
                assert both.first() == fit[0]
                assert turn == 0 or (asked and max(asked) <= FEW)
            late = t.ages.where(lambda k, a: a.age > least and a.name == name and k > 4000)
            assert late.limit(4).keys().all() == [k for k, _ in fit if k > 4000][:4]


def test_entries_are_counted_until_the_fewest_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []

    def take(self: FoundKeys, within: Any, cursor: Any, lower: bytes, upper: bytes, most: int) -> bytes:
        before = len(self._found)
        last = original(self, within, cursor, lower, upper, most)
        counted.append(len(self._found) - before)
        return last

    def keys(self: AccessPath, *given: Any) -> Any:
        found = keys_of(self, *given)
        counted.append(len(found or ()))
        return found

    original, keys_of = FoundKeys._take, AccessPath.keys
    monkeypatch.setattr(FoundKeys, "_take", take)
    monkeypatch.setattr(AccessPath, "keys", keys)
    with zlmdb.open(None, Aging) as db:
        with db.write() as t:
            t.ages.put_many((n, Aged(f"n{n % 3}", n // 7)) for n in range(5000))
        with db.read() as t:
            for turn, (age, name) in enumerate([(5, "n1"), (6, "n2"), (7, "n1"), (8, "n0")]):
                fit = [(k, a) for k, a in t.ages.items() if a.age == age and a.name == name]
                both = t.ages.where(lambda a: a.age == age and a.name == name)  # noqa: B023
                for found in (both, both.order_by(lambda a: a.name + "x")):
                    found.all()  # the plan is made
                    del counted[:]
                    assert found.all() == fit
                    assert turn == 0 or 0 < sum(counted) <= 16 + 7
                few = t.ages.where(lambda a: age <= a.age < age + 5 and a.name == name)  # noqa: B023
                del counted[:]
                assert few.all() == [(k, a) for k, a in t.ages.items() if age <= a.age < age + 5 and a.name == name]
                assert turn == 0 or 0 < sum(counted) <= 16 + 16 + 64 + 35


def test_what_takes_all_rows_at_once_in_a_write_transaction_is_not_planned_again(
    db: Any, planned: list[Running]
) -> None:  # fmt: skip
    def aged(age: int) -> Any:
        return t.people.where(lambda p: p.age == age)

    def ask(age: int) -> list[Any]:
        found = aged(age).fields(lambda p: p.name)
        either = t.people.where(lambda p: p.age == age or p.email == "e7")
        by_boss = t.people.where(lambda p: p.boss is not None and t.people[p.boss].email == f"e{age}")
        return [
            aged(age).all(), found.all(), found.first(), aged(age).limit(2, 1).all(), aged(age).count(),
            bool(aged(age)), aged(age).fields(lambda p: p.age).sum(), found.distinct().all(), either.count(),
            t.people.where(lambda p: p.age > age).fields(lambda p: p.age).max(), by_boss.all(),
        ]  # fmt: skip

    with db.write() as t:
        for age in range(20, 23):
            ask(age)
        planned.clear()
        before = ask(9)
        t.people[500] = Person("a", "new", 9, "x", date(2000, 1, 1))
        t.people[501] = Person("b", "newer", 30, "x", date(2000, 1, 1), [], t.people.by_email.key("e9"))
        after = ask(9)
        assert not planned
        rows = [pair for pair in t.people.items() if pair[1].age == 9]
        assert after[0] == rows == [*before[0], (500, t.people[500])]
        assert after[1:3] == [[p.name for _, p in rows], rows[0][1].name]
        assert after[3:7] == [rows[1:3], len(rows), True, 9 * len(rows)]
        assert (after[8], after[9]) == (before[8] + 1, before[9])
        assert after[10][-1] == (501, t.people[501])
        t.txn.abort()


def test_few_records_that_are_changed_again_by_the_same_function_are_not_planned_again(
    db: Any, planned: list[Running]
) -> None:  # fmt: skip
    def aged(age: int) -> Any:
        return t.named.where(lambda p: p.age == age)

    def older(one: Person) -> Person:
        one.age += 100
        return one

    def write(age: int) -> list[int]:
        keys = aged(age).keys().all()
        with aged(age).edit() as people:
            for one in people:
                one.age += 100
        assert aged(age + 100).limit(1).change(older) == 1
        return [len(keys), aged(age).count(), aged(age + 100).change(older), aged(age + 200).delete()]

    with db.write() as t:
        for age in range(20, 23):
            write(age)
        planned.clear()
        rows = [key for key, one in t.named.items() if one.age == 9]
        assert write(9) == [len(rows), 0, len(rows) - 1, len(rows)]
        assert not planned
        assert not any(key in t.named for key in rows)
        young = sum(one.age < 20 for one in t.named.values())
        assert t.named.where(lambda p: p.age < 20).delete() == young
        t.txn.abort()


def test_groups_of_few_records_are_not_planned_again(db: Any, planned: list[Running]) -> None:
    def grouped(age: int) -> list[Any]:
        found = t.people.where(lambda p: p.age == age)
        return [
            found.group_by(lambda p: p.town, lambda group: group.count()),
            found.group_by(lambda p: p.town, lambda group: group.fields(lambda p: p.since).max()),
            found.group_by(
                lambda p: p.town,
                lambda group: (group.where(lambda p: p.boss is None).count(), group.fields(lambda k, p: k).sum()),
            ),
        ]

    def expected(age: int) -> list[Any]:
        towns: dict[str, list[Any]] = {}
        for pair in t.people.items():
            if pair[1].age == age:
                towns.setdefault(pair[1].town, []).append(pair)
        return [
            {town: len(few) for town, few in towns.items()},
            {town: max(p.since for _, p in few) for town, few in towns.items()},
            {town: (sum(p.boss is None for _, p in few), sum(k for k, _ in few)) for town, few in towns.items()},
        ]

    for begin in (db.read, db.write):
        with begin() as t:
            for age in range(3):
                grouped(age)
            planned.clear()
            for age in (7, 30, 99):
                found = grouped(age)
                assert not planned
                assert found == expected(age)
                assert [list(one) for one in found] == [list(one) for one in expected(age)]
            few = t.people.where(lambda p: p.age == 7).limit(2)
            assert sum(few.group_by(lambda p: p.town, lambda group: group.count()).values()) == 2
            cities = t.people.where(lambda p: p.age == 7).order_by(lambda p: p.name)
            found = cities.group_by(lambda p: p.town, lambda group: group.count())
            assert list(found) == list(dict.fromkeys(p.town for p in cities.values()))


def test_more_rows_than_are_read_again_are_grouped_and_changed_whole() -> None:
    with zlmdb.open(None, Aging) as db:
        with db.write() as t:
            t.ages.put_many((n, Aged(f"n{n % 3}", n // 300)) for n in range(3000))
        with db.write() as t:
            for age in range(4):
                found = t.ages.where(lambda a: a.age == age)  # noqa: B023
                assert found.group_by(lambda a: a.name, lambda g: g.count()) == {f"n{n}": 100 for n in range(3)}
                assert found.delete() == 300
            assert len(t.ages) == 1800
