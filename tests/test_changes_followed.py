"""Changes by `dataclasses.replace` that are followed: the records are those that the called function would make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Optional
from unittest import mock
from uuid import UUID

import pytest

import zlmdb
from zlmdb import ForeignKey, Index, Table, UniqueIndex
from zlmdb.tables import changing, followedchanges


@dataclass
class Person:
    name: str
    age: int
    boss: Optional[int] = None
    tags: list[str] = field(default_factory=list)
    height: float = 1.5


@dataclass(frozen=True)
class Frozen:
    name: str
    age: int
    boss: Optional[int] = None
    tags: tuple[str, ...] = ()
    height: float = 1.5


class People(Table[int, Person]):
    by_name = Index[tuple[str, int]]("name", "age")
    by_email = UniqueIndex[str]("name", where=lambda p: p.age > 1000)
    by_tag = Index[str]("tags", each=True)
    by_boss = ForeignKey["People"]("boss", deferred=False)
    by_height = Index[float]("height", carries=("age",))


class Feed(Table[int, Person], feed=True):
    by_name = Index[str]("name")


class Unique(Table[int, Person]):
    by_age = UniqueIndex[int]("age")


class Flat(Table[int, zlmdb.FlatBuffers[Person]]):
    by_name = Index[str]("name")


class Store(zlmdb.Schema):
    plain: Table[int, Person]
    frozen: Table[int, Frozen]
    people: People
    feed: Feed
    unique: Unique
    flat: Flat
    pickled: Table[int, zlmdb.Pickle[Person]]


TABLES = ("plain", "frozen", "people", "feed", "unique", "flat", "pickled")


def fill(t: Any, count: int = 30) -> None:
    for name in TABLES:
        table = getattr(t, name)
        for n in range(count):
            made = Frozen if name == "frozen" else Person
            tags: Any = [f"t{n % 3}", "x"]
            table[n] = made(f"n{n % 7}", n, n - 1 if n % 3 else None, tuple(tags) if name == "frozen" else tags)


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            fill(t)
        yield db


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing, "FOLLOWED", 2)


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each change was followed."""
    found: list[bool] = []
    original = followedchanges.replacing

    def noted(*arguments: Any) -> Any:
        made = original(*arguments)
        found.append(made is not None)
        return made

    monkeypatch.setattr(followedchanges, "replacing", noted)
    return found


Change = Callable[[Any], Any]


def older(person: Any, years: int) -> Any:
    return replace(person, age=person.age + years)


def changes(years: int) -> dict[str, Change]:
    """Functions that can be followed."""
    return {
        "add": lambda p: replace(p, age=p.age + years),
        "two": lambda p: replace(p, age=-p.age, height=p.height * 2 + p.age),
        "swapped": lambda p: replace(p, age=int(p.height), height=float(p.age)),
        "text": lambda p: replace(p, name=p.name.upper() + "{}"),
        "choice": lambda p: replace(p, age=0 if p.age > 20 else p.age + 100),
        "helper": lambda p: older(p, years),
        "link": lambda p: replace(p, boss=None),
        "own link": lambda p: replace(p, boss=p.boss),
        "height": lambda p: replace(p, height=p.height + years),
        "error": lambda p: replace(p, age=100 // (p.age - 17)),
        "type": lambda p: replace(p, age=p.name),
        "dangling": lambda p: replace(p, boss=p.age + 20),
        "some": lambda p: p if p.age > 20 else replace(p, age=p.age * 2) if p.boss is None else replace(p, boss=None),
        "same": lambda p: replace(p, age=7),
        "float for int": lambda p: replace(p, height=p.age),
        "none": lambda p: replace(p, name=None),
    }


def contents(t: Any, name: str) -> Any:
    table = getattr(t, name)
    views = [getattr(table, one) for one in dir(type(table)) if one.startswith("by_")]
    entries = [view.select().all() for view in views]
    groups = [[(key, few.count()) for key, few in view.groups()] for view in views if hasattr(view, "groups")]
    return list(table.items()), entries, groups


def outcome(t: Any, name: str, how: Change) -> Any:
    try:
        found: Any = getattr(t, name).where(lambda p: p.age != 3).change(how)
    except (zlmdb.Error, TypeError, ZeroDivisionError, AttributeError) as error:
        found = type(error), str(error)
    return found, contents(t, name)


def both(db: Any, name: str, make: Callable[[], Change]) -> Any:
    """What a change does that may be followed, and the same by calls."""
    found: list[Any] = []
    for least in (2, 10_000):
        with mock.patch.object(changing, "FOLLOWED", least), db.write() as t:
            found.append(outcome(t, name, make()))
            t.txn.abort()
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("change", changes(1))
def test_a_followed_change_does_what_its_calls_do(db: Any, change: str, followed: list[bool]) -> None:
    for name in TABLES:
        followed.clear()
        both(db, name, lambda: changes(3)[change])
        assert followed == [name != "pickled"]


def test_each_value_captured_counts(db: Any, followed: list[bool]) -> None:
    with db.write() as t:
        for years in range(1, 5):
            before = [p.age for p in t.plain.values()]
            assert t.plain.select().change(lambda p: replace(p, age=p.age + years)) == 30  # noqa: B023
            assert [p.age for p in t.plain.values()] == [age + years for age in before]
        t.txn.abort()
    assert followed == [True] * 4


def test_a_change_that_was_followed_before_is_not_prepared_again(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[str] = []
    for name in ("is_bare", "setting_of"):
        original: Any = getattr(followedchanges, name)

        def noted(*arguments: Any, name: str = name, original: Any = original, **options: Any) -> Any:
            prepared.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(followedchanges, name, noted)
    with db.write() as t:
        for years in (3, 4, 5):
            prepared.clear()
            assert t.plain.select().change(lambda p: replace(p, age=years if p.age else p.age)) == 30  # noqa: B023
            assert {p.age for p in t.plain.values()} == {0, years}
        assert prepared == []
        t.txn.abort()


def test_records_whose_indexes_stay_as_they_are_are_written_together(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    alone: list[int] = []

    def noted(self: Any, *arguments: Any) -> Any:
        made = setting(self, *arguments)
        return made._replace(
            change=lambda table, keys, *values: alone.append(len(keys)) or made.change(table, keys, *values)
        )

    setting = followedchanges.setting_of
    monkeypatch.setattr(followedchanges, "setting_of", noted)
    with db.write() as t:
        for name in ("plain", "frozen", "people", "feed", "unique", "flat"):
            assert getattr(t, name).select().change(lambda p: replace(p, height=p.height + 0.25, boss=None)) == 30
            assert alone == ([30] if name in ("people", "feed") else [])  # the index of heights, and the feed
            alone.clear()
        t.txn.abort()


def test_functions_that_do_more_are_called_once_for_each_record(db: Any, followed: list[bool]) -> None:
    seen: list[str] = []

    def noting(p: Person) -> Person:
        seen.append(p.name)
        return replace(p, age=p.age + 1)

    def setting(p: Person) -> Person:
        p.age += 1
        return p

    def other(p: Person) -> Person:
        return Person(p.name, p.age + 1)

    def looking(p: Person) -> Person:
        return replace(p, age=t.plain[1].age)

    with db.write() as t:
        assert t.plain.select().change(noting) == len(seen) == 30
        assert t.plain.select().change(setting) == 30
        assert t.plain.select().change(setting) == 30
        assert t.plain.select().change(other) == 30
        assert [p.age for p in t.plain.values()] == [n + 4 for n in range(30)]
        assert t.plain.select().change(looking) == 30
        t.txn.abort()
    assert not any(followed)


@dataclass
class Wide:
    """Of kinds that are stored as they are, and others; with defaults before others."""

    number: int
    name: str = "x"
    at: Optional[datetime] = None
    numbers: list[int] = field(default_factory=list)
    by_name: dict[str, float] = field(default_factory=dict)
    inner: Optional[Person] = None
    key: Optional[UUID] = None
    data: bytes = b""


class Wides(Table[int, Wide]):
    by_number = Index[int]("number")


class WideStore(zlmdb.Schema):
    wides: Wides


def test_what_is_stored_of_other_fields_stays_byte_for_byte_and_is_refused_as_by_a_loop() -> None:
    def rows(t: Any) -> list[Any]:
        return list(t.txn._engine_txn.cursor(t.wides._db).iternext())

    def by_hand() -> None:
        t.wides[11] = replace(t.wides[11], data=b"1")

    msgpack_of = zlmdb.MsgpackSerializer[Any]().raw_encode
    noon = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
    with zlmdb.open(None, WideStore) as db, db.write() as t:
        for n in range(5):
            t.wides[n] = Wide(
                n, "n" * n, noon, [n, 300], {"a": 0.5, "b": 1e300}, Person("p", n), UUID(int=n), b"\0\xff"
            )
            t.wides[n + 5] = Wide(n)
        old = msgpack_of({"number": 10, "more": 1, "name": "other fields, and another order"})
        t.txn._engine_txn.put(t.wides._lookup(10), old, db=t.wides._db)
        chosen = t.wides.where(lambda w: w.data != b"none")
        expected = [t.wides._storage.dump(replace(w, name=w.name + "!")) for w in t.wides.values()]
        assert chosen.change(lambda w: replace(w, name=w.name + "!")) == 11
        assert [data for _, data in rows(t)] == expected
        for odd in ({"number": 11, "at": "2026-01-02T03:04:05"}, {"number": 11, "by_name": {"a": 1}}):
            t.txn._engine_txn.put(t.wides._lookup(11), msgpack_of(odd), db=t.wides._db)
            before, told = rows(t), []
            for change in (by_hand, lambda: chosen.change(lambda w: replace(w, data=b"1"))):
                try:
                    change()
                except zlmdb.Error as error:
                    assert rows(t) == before
                    told.append(str(error))
                else:
                    told.append(rows(t)[11])
                    t.txn._engine_txn.put(t.wides._lookup(11), msgpack_of(odd), db=t.wides._db)
            assert told[0] == told[1]
        t.txn.abort()


@pytest.mark.parametrize("form", [zlmdb.Json, zlmdb.Cbor, zlmdb.FlatBuffers])
def test_a_change_of_some_fields_is_that_of_a_loop_in_each_format(form: Any) -> None:
    class Rows(Table[int, form[Wide]]):  # type: ignore[valid-type]
        """Wide records in that format."""

    class Tables(zlmdb.Schema):
        rows: Rows

    noon = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
    with zlmdb.open(None, Tables) as db, db.write() as t:
        rows: Any = t.rows
        for n in range(100):
            rows[n] = Wide(n, "é" * n, noon, [n], {"a": n / 2}, Person("p", n), UUID(int=n), b"\0\xff")
        expected = [replace(w, name=w.name + "!", number=-w.number) for w in rows.values()]
        assert rows.select().change(lambda w: replace(w, name=w.name + "!", number=-w.number)) == 100
        assert list(rows.values()) == expected
        wrong: Any = b"1"
        with pytest.raises(zlmdb.EncodeError, match=r"Wide\.name: expected str"):
            rows.select().change(lambda w: replace(w, name=wrong))
        assert list(rows.values()) == expected


def test_what_is_refused_changes_nothing(db: Any) -> None:
    with db.write() as t:
        for table, how, error in (
            (t.unique, lambda p: replace(p, age=7), zlmdb.DuplicateKey),
            (t.people, lambda p: replace(p, boss=1000), zlmdb.DanglingLink),
            (t.flat, lambda p: replace(p, age="x"), zlmdb.EncodeError),
        ):
            before = list(table.items())
            with pytest.raises(error):
                table.select().change(how)
            assert list(table.items()) == before
        t.txn.abort()


def test_the_feed_and_running_scans_see_the_changes(db: Any) -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            fill(t)
        with db.write() as t:
            rows = iter(t.people.by_name.select())
            next(rows)
            assert t.people.select().change(lambda p: replace(p, name="a", age=p.age + 100)) == 30
            assert len(list(rows)) <= 29
            plain = iter(t.plain.items())
            next(plain)
            assert t.plain.select().change(lambda p: replace(p, age=p.age + 100)) == 30
            assert [p.age for _, p in plain] == [n + 100 for n in range(1, 30)]
            assert t.feed.select().change(lambda p: replace(p, age=p.age + 100)) == 30
        changed = [(one.old.age, one.new.age) for one in db.changes(Feed) if one.old is not None]
        assert changed == [(n, n + 100) for n in range(30)]


# -- classes that have a say -------------------------------------------------------------------------------------------


@dataclass
class Checked:
    age: int

    def __post_init__(self) -> None:
        self.age = min(self.age, 10)


@dataclass
class Setting:
    age: int

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value if name != "age" else min(value, 10))


@dataclass
class Partly:
    age: int
    size: int = field(init=False, default=3)


@dataclass
class Mine:
    age: int

    def __init__(self, age: int) -> None:
        self.age = min(age, 10)


@dataclass(frozen=True)
class Child(Frozen):
    size: int = 4


@pytest.mark.parametrize("cls", [Checked, Setting, Partly, Mine, Child])
def test_classes_that_have_a_say_in_their_fields(cls: Any, followed: list[bool]) -> None:
    class One(zlmdb.Schema):
        table: Table[int, cls]
        json: Table[int, zlmdb.Json[cls]]

    with zlmdb.open(None, One) as db:
        with db.write() as t:
            for n in range(20):
                t.table[n] = t.json[n] = cls("n", n) if cls is Child else cls(n)
        for name in ("table", "json"):
            both(db, name, lambda: lambda p: replace(p, age=p.age + 3))
    assert followed == [cls is Child] * 2


@dataclass
class Keyed:
    id: int
    age: int


@dataclass
class Leaving:
    age: int
    until: datetime


class Registered(Table[int, Keyed], key="id"):
    """Records with their key."""


class Left(Table[int, Leaving], expires="until"):
    """Records that expire."""


class Others(zlmdb.Schema):
    keyed: Registered
    left: Left


def test_a_field_that_is_the_key_and_records_that_expire(followed: list[bool]) -> None:
    soon = datetime.now(timezone.utc) + timedelta(hours=1)
    with zlmdb.open(None, Others) as db:
        with db.write() as t:
            for n in range(20):
                t.keyed[n] = Keyed(n, n)
                t.left[n] = Leaving(n, soon)
        with db.write() as t:
            assert t.keyed.select().change(lambda k: replace(k, age=k.age + 1)) == 20
            with pytest.raises((zlmdb.Error, ValueError)):
                t.keyed.select().change(lambda k: replace(k, id=k.id + 1))
            assert [(k.id, k.age) for k in t.keyed.values()] == [(n, n + 1) for n in range(20)]
            gone = soon - timedelta(days=1)
            assert t.left.where(lambda v: v.age < 10).change(lambda v: replace(v, until=gone)) == 10
            assert len(list(t.left)) == 10
    assert followed == [True, False]
