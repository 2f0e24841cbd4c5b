"""What follows the records of a table is told of each change: by whatever statement, once, with what was there before.

A toy follower takes part in the random programs of `test_model`. It keeps a copy of the table, made of nothing but what
it is told, in a table of the same transaction: with a savepoint that is undone, so is what it was told there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Optional

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

import zlmdb
from tests import test_model
from tests.combinations import COMBINATIONS
from tests.test_model import AGES, KEYS, NAMES, Machine, Person
from zlmdb.tables.storage import Storage
from zlmdb.tables.upkeep import Change, Written

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python

small_steps = test_model.small_steps

Told = tuple[Any, Optional[tuple[Any]], Optional[tuple[Any]]]
"""A key, and its value before and after."""


class Listener:
    """A toy follower: it copies what it is told into *copy*, a table with the same keys, and remembers the order."""

    def __init__(self, copy: Storage[Any, Any]) -> None:
        self.copy = copy
        self.told: list[Told] = []

    def plan(self, txn: zlmdb.Transaction, change: Change) -> Callable[[], Written]:
        assert change.key == change.table.key.decode(change.primary)
        assert self.stored(txn, change.primary) == change.old, "a change was not told, or told twice"

        def write() -> Written:
            self.told.append((change.key, change.old, change.new))
            key, handle = self.copy.prefix + change.primary, self.handle(txn)
            if change.new is None:
                return 0, int(txn._engine_txn.delete(key, db=handle))
            txn._engine_txn.put(key, self.copy.encode_value(change.new[0], change.key), db=handle)
            return 1, 0

        return write

    def cleared(self, txn: zlmdb.Transaction, table: Storage[Any, Any], count: int) -> Written:
        handle = self.handle(txn)
        cursor = txn._engine_txn.cursor(handle)
        rows = cursor.iternext(True, False) if cursor.set_range(self.copy.lower or b"\0") else ()
        keys = [key for key in map(bytes, rows) if key < self.copy.upper]
        assert len(keys) == count
        self.told.append(("all", len(keys), None))  # type: ignore[arg-type]
        return 0, sum(txn._engine_txn.delete(key, db=handle) for key in keys)

    def handle(self, txn: zlmdb.Transaction) -> Any:
        found = txn._handle(self.copy.space)
        assert found is not None
        return found[0]

    def stored(self, txn: zlmdb.Transaction, primary: bytes) -> Optional[tuple[Any]]:
        data = txn._engine_txn.get(self.copy.prefix + primary, None, self.handle(txn))
        return None if data is None else (self.copy.decode_value(data, primary),)


def listen(table: Storage[Any, Any], copy: Storage[Any, Any]) -> Listener:
    """Follow *table*, which nobody has used yet."""
    listener = Listener(copy)
    table.followers = (listener,)
    return listener


class Listened(test_model.Store):
    people_told: zlmdb.Table[int, zlmdb.Pickle[object]]
    notes_told: zlmdb.Table[tuple[str, int], zlmdb.Pickle[object]]


class ListenedTables(test_model.TableMachine):
    """Tables with a listener, and the statements that `TableMachine` leaves out."""

    schema = Listened
    fork = back_up = None  # listeners take no part in these: more steps for what they are told of

    def open(self) -> Any:
        db = super().open()
        self.people, self.notes = [
            listen(db._storages[name][1], db._storages[f"{name}_told"][1]) for name in ("people", "notes")
        ]
        return db

    def compare(self, t: Any, model: dict[str, dict[Any, Any]], *, end: bool = True) -> None:
        if isinstance(t, Listened):  # not of a backup
            assert dict(t.people_told) == model["people"]
            assert dict(t.notes_told) == model["notes"]
        super().compare(t, model, end=end)

    @contextmanager
    def tells(self, listener: Listener, expected: Sequence[Told]) -> Iterator[None]:
        """The block tells what is *expected*, in this order, each once."""
        before = len(listener.told)
        yield
        assert listener.told[before:] == list(expected)

    def changed(self, key: int, new: Optional[Person]) -> Told:
        """A change of the record *key* of the people, which is made in the model, too."""
        people = self.model["people"]
        old = (people[key],) if key in people else None
        if new is None:
            people.pop(key, None)
            return key, old, None
        people[key] = new
        return key, old, (new,)

    @rule(key=KEYS)
    def put_again(self, key: int) -> None:
        person = self.model["people"].get(key)
        if person is not None:
            with self.tells(self.people, [(key, (person,), (person,))]):
                self.t.people[key] = person

    @rule(key=KEYS, age=AGES)
    def put_new(self, key: int, age: Optional[int]) -> None:
        """Into the table with an index and into that without one, which has a way of its own."""
        known, notes = key in self.model["people"], self.model["notes"]
        expected = [] if known else [self.changed(key, Person(None, age))]
        with self.tells(self.people, expected):
            assert self.t.people.put_new(key, Person(None, age)) is not known
        told = [] if ("new", key) in notes else [(("new", key), None, ("text",))]
        with self.tells(self.notes, told):
            assert self.t.notes.put_new(("new", key), "text") is bool(told)
        notes["new", key] = "text"

    @rule(low=KEYS, high=KEYS)
    def delete_with_age(self, low: int, high: int) -> None:
        people = self.model["people"]
        doomed = sorted(key for key in people if low <= key < high and people[key].age is not None)
        found = self.t.people.select(low, high).where(lambda person: person.age is not None)
        with self.tells(self.people, [self.changed(key, None) for key in doomed]):
            assert found.delete() == len(doomed)

    @rule(keys=st.lists(KEYS, max_size=3), age=AGES)
    def update(self, keys: list[int], age: Optional[int]) -> None:
        new = {key: Person(None, age) for key in keys}
        assert self.model is not None  # which begins a transaction, also for no keys
        expected = [self.changed(key, person) for key, person in new.items()]
        with self.tells(self.people, expected):
            self.t.people.update(new)

    @rule(key=KEYS, age=AGES)
    def edit(self, key: int, age: Optional[int]) -> None:
        person = self.model["people"].get(key)
        if person is not None:
            with self.tells(self.people, [self.changed(key, replace(person, age=age))]), self.t.people.edit(key) as one:
                one.age = age

    @rule(key=KEYS, age=AGES)
    def setdefault(self, key: int, age: Optional[int]) -> None:
        person = self.model["people"].get(key)
        expected = [] if person is not None else [self.changed(key, Person(None, age))]
        with self.tells(self.people, expected):
            assert self.t.people.setdefault(key, Person(None, age)) == self.model["people"][key]

    @rule(key=KEYS)
    def pop(self, key: int) -> None:
        person = self.model["people"].get(key)
        expected = [] if person is None else [self.changed(key, None)]
        with self.tells(self.people, expected):
            assert self.t.people.pop(key, None) == person

    @rule()
    def popitem(self) -> None:
        if self.model["people"]:
            key = min(self.model["people"])
            person = self.model["people"][key]
            with self.tells(self.people, [self.changed(key, None)]):
                assert self.t.people.popitem() == (key, person)

    @rule(key=KEYS, age=AGES)
    def replace_or_change(self, key: int, age: Optional[int]) -> None:
        person = self.model["people"].get(key)
        if person is None:
            with self.tells(self.people, ()):
                assert not self.t.people.replace(key, Person(None, age))
            return
        other = replace(person, age=age)
        with self.tells(self.people, [self.changed(key, person)]):
            assert self.t.people.replace(key, person)
        with self.tells(self.people, [self.changed(key, other), self.changed(key, None)]):
            assert self.t.people.change(key, lambda found: replace(found, age=age)) == other
            assert self.t.people.change(key, lambda found: None) is None

    @rule(low=KEYS, high=KEYS, age=AGES, how=st.sampled_from(["change", "edit"]))
    def change_selected(self, low: int, high: int, age: Optional[int], how: str) -> None:
        chosen = sorted(key for key in self.model["people"] if low <= key < high)
        expected = [self.changed(key, replace(self.model["people"][key], age=age)) for key in chosen]
        with self.tells(self.people, expected):
            if how == "change":
                assert self.t.people.select(low, high).change(lambda found: replace(found, age=age)) == len(chosen)
            else:
                with self.t.people.select(low, high).edit() as people:
                    for person in people:
                        person.age = age

    @rule(ages=st.lists(AGES, max_size=3), listed=st.booleans())
    def append(self, ages: list[Optional[int]], listed: bool) -> None:
        """Behind the last record, in blocks where that can be done."""
        last = max(self.model["people"], default=0)
        items = [(last + n, Person(None, age)) for n, age in enumerate(ages, 1)]
        expected = [self.changed(key, person) for key, person in items]
        with self.tells(self.people, expected):
            self.t.people.put_many(items if listed else iter(items), append=True)

    @rule(numbers=st.lists(KEYS, max_size=3, unique=True), listed=st.booleans())
    def note_many(self, numbers: list[int], listed: bool) -> None:
        """Into the table without an index."""
        notes, items = self.model["notes"], [(("many", number), "text") for number in numbers]
        expected = [(key, (notes[key],) if key in notes else None, (text,)) for key, text in items]
        notes.update(items)
        with self.tells(self.notes, expected):
            self.t.notes.put_many(items if listed else iter(items))

    @rule(age=st.integers(0, 3))
    def delete_filtered(self, age: int) -> None:
        doomed = sorted(key for key, person in self.model["people"].items() if person.age == age)
        expected = [self.changed(key, None) for key in doomed]
        with self.tells(self.people, expected):
            for key in list(self.t.people.where(lambda person: person.age == age).keys()):
                del self.t.people[key]

    @rule()
    def replace_all(self) -> None:
        """What was there goes without a word for each record."""
        count = len(self.model["people"])
        self.model["people"].clear()
        person = Person("a", 1)
        with self.tells(self.people, [("all", count, None), self.changed(0, person)]):  # type: ignore[list-item]
            self.t.people.clear()
            self.t.people[0] = person

    @rule(key=KEYS)
    def what_is_refused_is_not_told(self, key: int) -> None:
        self.model["people"]
        with self.tells(self.people, ()):
            with pytest.raises(zlmdb.EncodeError):
                self.t.people[key] = Person("x", "old")  # type: ignore[arg-type]  # the point
            with pytest.raises(KeyError):
                del self.t.people[99]
            assert self.t.people.pop(99, None) is None


@zlmdb.table("0a0a0a0a-0000-4000-8000-000000000003")
class ClassicTold(zlmdb.MapOidPickle):
    """What was told of the people."""


class ListenedMaps(test_model.MapMachine):
    """Classic maps with a listener."""

    fork = back_up = None

    def open(self) -> Any:
        db = super().open()
        self.told = db.attach_table(ClassicTold)
        self.listener = listen(self.people._storage_in(db._open_store), self.told._storage_in(db._open_store))
        return db

    def compare(self, txn: zlmdb.Transaction, people: dict[int, Any]) -> None:
        assert dict(self.told.select(txn)) == people
        super().compare(txn, people)

    @rule()
    def truncate(self) -> None:
        model = self.model["people"]
        entries = 2 * len(model) + sum(row["name"] is not None for row in model.values())
        assert self.people.truncate(self.txn) == entries + len(model)  # those of the listener are deleted, too
        assert self.listener.told[-1][:2] == ("all", len(model))
        model.clear()

    @rule(key=st.integers(0, 6), name=NAMES.filter(bool))
    def setdefault_and_pop(self, key: int, name: str) -> None:
        model = self.model["people"]
        before = len(self.listener.told)
        if key in model:
            gone = model.pop(key)
            assert self.people.pop((self.txn, key)) == gone
            assert self.listener.told[before:] == [(key, (gone,), None)]
        else:
            person = model[key] = {"oid": key, "name": None, "age": 1}
            assert self.people.setdefault((self.txn, key), person) == person
            assert self.listener.told[before:] == [(key, None, (person,))]

    @rule(keys=st.lists(st.integers(0, 6), max_size=3, unique=True))
    def update(self, keys: list[int]) -> None:
        model, before = self.model["people"], len(self.listener.told)
        new = {key: {"oid": key, "name": None, "age": 2} for key in keys}
        expected = [(key, (model[key],) if key in model else None, (row,)) for key, row in new.items()]
        self.people.update({(self.txn, key): row for key, row in new.items()})
        model.update(new)
        assert self.listener.told[before:] == expected


@pytest.mark.parametrize("machine", [ListenedTables, ListenedMaps])
@pytest.mark.parametrize("combo", COMBINATIONS)
def test_a_listener_is_told_of_every_change_of_random_programs(machine: type[Machine], combo: str) -> None:
    engine, layout = combo.split("-")
    chosen = type(machine.__name__, (machine,), {"engine": engine, "layout": layout})
    # Half of them: what they do to the records, the programs of test_model have done.
    run_state_machine_as_test(chosen, settings=settings(max_examples=max(test_model.PROGRAMS // 2, 1)))


# -- one statement ----------------------------------------------------------------------------------------------------


class Refusing:
    """A follower that refuses whatever changes to the value *wrong*."""

    def __init__(self, wrong: Person) -> None:
        self.wrong = wrong

    def plan(self, txn: zlmdb.Transaction, change: Change) -> None:
        if change.new == (self.wrong,):
            raise zlmdb.DuplicateKey("no", table=change.table.name, key=change.key, owner=0)

    def cleared(self, txn: zlmdb.Transaction, table: Storage[Any, Any], count: int) -> Written:
        return 0, 0


def test_what_one_follower_refuses_no_other_is_told_and_nothing_is_written(make_db: Callable[..., Any]) -> None:
    db = make_db(Listened)
    old, wrong = Person("ann", 1), Person("bob", 2)
    listener = listen(db._storages["people"][1], db._storages["people_told"][1])
    db._storages["people"][1].followers = (listener, Refusing(wrong))
    with db.write() as t:
        t.people[1] = old
        for statement in (
            lambda: t.people.update({1: wrong}),
            lambda: t.people.put_many([(1, wrong)]),
            lambda: t.people.put_many([(2, wrong)], append=True),
            lambda: t.people.add(wrong),
        ):
            with pytest.raises(zlmdb.DuplicateKey, match="no"):
                statement()
    assert listener.told == [(1, None, (old,))]
    with db.read() as t:
        assert dict(t.people) == dict(t.people_told) == {1: old}
        assert t.people.by_name.get("bob") is None
    assert db.check().ok


@pytest.mark.parametrize("limit", [None, 2])
def test_a_deletion_by_a_selection_of_all_tells_of_each_record(
    make_db: Callable[..., Any], limit: Optional[int]
) -> None:  # fmt: skip
    db = make_db(Listened)
    listener = listen(db._storages["people"][1], db._storages["people_told"][1])
    people = {number: Person(f"name {number}", number) for number in range(3)}
    with db.write() as t:
        t.people.update(people)
        del listener.told[:]
        assert t.people.select(limit=limit).delete() == (limit or 3)
    assert listener.told == [(number, (people[number],), None) for number in range(limit or 3)]


def test_writes_without_a_block_are_told(make_db: Callable[..., Any]) -> None:
    db = make_db(Listened)
    listener = listen(db._storages["notes"][1], db._storages["notes_told"][1])
    key = "key", 1
    for text in "abc":  # the first ones find out how later ones are stored
        db.auto.notes[key] = text
    db.auto.notes.update({key: "d"})
    del db.auto.notes[key]
    texts = [None, "a", "b", "c", "d", None]
    values = [None if text is None else (text,) for text in texts]
    assert listener.told == [(key, old, new) for old, new in zip(values, values[1:])]


@dataclass
class Book:
    author: Optional[int]
    editor: Optional[int] = None


class Books(zlmdb.Table[int, Book]):
    by_author = zlmdb.ForeignKey["Authors"]("author", on_delete="cascade")  # type: ignore[type-var]
    by_editor = zlmdb.ForeignKey["Authors"]("editor", on_delete="set_none")  # type: ignore[type-var]


class Authors(zlmdb.Table[int, str]): ...


class Library(zlmdb.Schema):
    books: Books
    books_told: zlmdb.Table[int, zlmdb.Pickle[object]]
    authors: Authors


@pytest.mark.parametrize("how", ["del", "selected", "clear"])
def test_what_a_deletion_entails_is_told(make_db: Callable[..., Any], how: str) -> None:
    db = make_db(Library)
    books, copy = db._storages["books"][1], db._storages["books_told"][1]
    listener = Listener(copy)
    books.followers = (*books.followers, listener)
    first, second, third = Book(1), Book(1, 2), Book(2, 1)
    with db.write() as t:
        t.authors.update({1: "Ann", 2: "Bob"})
        t.books.update({1: first, 2: second, 3: third})
        del listener.told[:]
        if how == "del":
            del t.authors[1]
        elif how == "selected":
            t.authors.select(1, 2).delete()
        else:
            t.authors.clear()
    gone: list[Told] = [(1, (first,), None), (2, (second,), None)]
    also: Told = (3, (third,), None) if how == "clear" else (3, (third,), (Book(2),))
    assert sorted(listener.told) == [*gone, also]
    assert db.check().ok
