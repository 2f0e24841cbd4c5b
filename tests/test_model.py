"""Random programs against plain dicts: tables with declared indexes, and classic maps with attached ones.

They nest savepoints, grow the map, reopen the file, fork, and look into backups. Each machine runs on every engine and
layout. A few hundred programs in CI; thousands with ``tox -e thorough``.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import zlmdb
from tests.combinations import EVERYWHERE
from zlmdb.engines.lmdb import mapsize

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python

KEYS = st.integers(-3, 8)
NAMES = st.sampled_from(["", "a", "ab", "b", "a\0b", "é"])
AGES = st.one_of(st.none(), st.integers(0, 3))
CAN_FORK = hasattr(os, "fork") and threading.active_count() == 1
SLOTS_BEFORE, SLOTS_AFTER = 40, 60
# Ten combinations share what a thorough profile allows for one test; with the one of CI each has thirty.
PROGRAMS = max(settings.default.max_examples // 10, min(30, settings.default.max_examples * 2 // 3))
COSTLY = settings.default.stateful_step_count // 10  # how often one program forks, and how often its map grows


@dataclass(unsafe_hash=True)
class Person:
    name: Optional[str]
    age: Optional[int]

    def __bool__(self) -> bool:
        return self.age != 0  # falsy objects are stored like all others


PEOPLE = st.builds(Person, st.one_of(st.none(), NAMES), AGES)


class People(zlmdb.Table[int, Person]):
    """People by number."""

    by_name = zlmdb.UniqueIndex[str]("name")
    by_age = zlmdb.Index[int]("age")
    by_both = zlmdb.Index("age", "name")
    by_parity = zlmdb.Index[bool](lambda person: None if person.age is None else person.age % 2 == 0, version=1)


class Store(zlmdb.Schema):
    people: People
    notes: zlmdb.Table[tuple[str, int], str]
    ballast: zlmdb.Table[int, bytes]


class Undo(Exception):
    """Leaves a block by an exception."""


class Machine(RuleBasedStateMachine):
    """What both machines share: a database, a write transaction with savepoints, and the model of each level."""

    engine = "lmdb"
    layout: Any = "tables"

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        place = str(Path(self.directory) / "data")
        self.path = {"lmdb": place, "memory": None, "toy": f"toy://{place}"}[self.engine]
        self.committed: dict[str, dict[Any, Any]] = {}
        self.levels: list[tuple[ExitStack, dict[str, dict[Any, Any]]]] = []
        self.forks = self.growths = 0
        self.db: Any = self.open()

    def open(self) -> Any:
        raise NotImplementedError

    def enter(self, stack: ExitStack) -> None:
        raise NotImplementedError

    def transaction(self) -> Any:
        raise NotImplementedError

    @property
    def model(self) -> dict[str, dict[Any, Any]]:
        """What the innermost level should hold; a transaction is begun when there is none."""
        if not self.levels:
            stack = ExitStack()
            self.enter(stack)
            self.levels.append((stack, {name: dict(rows) for name, rows in self.committed.items()}))
        return self.levels[-1][1]

    @precondition(lambda self: 0 < len(self.levels) < 4)
    @rule()
    def savepoint(self) -> None:
        copy = {name: dict(rows) for name, rows in self.model.items()}
        stack = ExitStack()
        stack.enter_context(self.transaction().savepoint())
        self.levels.append((stack, copy))

    @precondition(lambda self: self.levels)
    @rule()
    def leave(self) -> None:
        stack, model = self.levels.pop()
        stack.close()
        if self.levels:
            self.levels[-1][1].update(model)
        else:
            self.committed = model

    @precondition(lambda self: self.levels)
    @rule()
    def leave_by_exception(self) -> None:
        stack, _ = self.levels.pop()
        with pytest.raises(Undo), stack:
            raise Undo

    @precondition(lambda self: self.engine != "memory")
    @rule()
    def reopen(self) -> None:
        while self.levels:
            self.leave()
        self.db.close()
        self.db = self.open()

    @precondition(lambda self: self.engine != "memory" and CAN_FORK and self.forks < COSTLY)
    @rule()
    def fork(self) -> None:
        """A child opens the file anew and sees what is committed, whatever this process is in the midst of."""
        self.forks += 1
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                self.look()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0, "the child saw something else"

    @precondition(lambda self: self.engine == "lmdb")
    @rule(compact=st.booleans())
    def back_up(self, compact: bool) -> None:
        copy = Path(self.directory) / "copy.mdb"
        self.db.backup(copy, compact=compact, overwrite=True)
        self.look_into(str(copy))

    @precondition(lambda self: self.engine == "lmdb" and not self.levels and self.growths < COSTLY)
    @rule(megabytes=st.integers(1, 3))
    def grow(self, megabytes: int) -> None:
        """The map doubles until there is room, as no address space is reserved; what is deleted leaves free pages."""
        self.growths += 1
        self.fatten(megabytes << 20)
        assert self.db.maxsize > megabytes << 20

    def fatten(self, size: int) -> None:
        """Store *size* bytes, and delete them again."""
        raise NotImplementedError

    def look(self) -> None:
        """Compare what is committed."""
        raise NotImplementedError

    def look_into(self, copy: str) -> None:
        """Compare a backup."""
        raise NotImplementedError

    def teardown(self) -> None:
        while self.levels:
            self.leave()
        self.check()
        report = self.db.check()
        assert report.ok, report.problems
        self.db.close()
        shutil.rmtree(self.directory)

    @invariant()
    def check(self) -> None:
        raise NotImplementedError


class TableMachine(Machine):
    """Tables and declared indexes."""

    schema: type[Store] = Store

    def __init__(self) -> None:
        super().__init__()
        self.committed = {"people": {}, "notes": {}}

    def open(self) -> zlmdb.Database[Store]:
        return zlmdb.open(self.path, self.schema, layout=self.layout)

    def look(self) -> None:
        self.compare(self.db.read(), self.committed)

    def look_into(self, copy: str) -> None:
        with zlmdb.open(copy, Store, readonly=True) as db:
            self.compare(db.read(), self.committed)
            assert db.check().ok

    def fatten(self, size: int) -> None:
        self.db.run(lambda t: t.ballast.put_many((n, bytes(100_000)) for n in range(size // 100_000 + 1)))
        self.db.run(lambda t: t.ballast.clear())

    def enter(self, stack: ExitStack) -> None:
        self.t = stack.enter_context(self.db.write())

    def transaction(self) -> Any:
        return self.t.txn

    def taken(self, key: int, person: Person) -> bool:
        others = (other.name for number, other in self.model["people"].items() if number != key)
        return person.name is not None and person.name in others

    @rule(key=KEYS, person=PEOPLE)
    def put(self, key: int, person: Person) -> None:
        model = self.model["people"]
        if self.taken(key, person):
            with pytest.raises(zlmdb.DuplicateKey) as caught:
                self.t.people[key] = person
            assert self.model["people"][caught.value.owner].name == person.name
        else:
            self.t.people[key] = person
            model[key] = person

    @rule(person=PEOPLE)
    def add(self, person: Person) -> None:
        model = self.model["people"]
        expected = max(model) + 1 if model else 1
        if self.taken(expected, person):
            with pytest.raises(zlmdb.DuplicateKey):
                self.t.people.add(person)
        else:
            assert self.t.people.add(person) == expected
            model[expected] = person

    @rule(items=st.lists(st.tuples(KEYS, PEOPLE), max_size=5))
    def put_many(self, items: list[tuple[int, Person]]) -> None:
        model = self.model["people"]
        try:
            assert self.t.people.put_many(items) == len(items)
        except zlmdb.DuplicateKey:
            for key, person in items:  # those before the refused one are stored
                if self.taken(key, person):
                    return
                model[key] = person
            raise
        model.update(items)

    @rule(key=KEYS)
    def delete(self, key: int) -> None:
        model = self.model["people"]
        if key in model:
            del self.t.people[key]
            del model[key]
        else:
            with pytest.raises(KeyError):
                del self.t.people[key]

    @rule(key=KEYS, age=st.integers(0, 3))
    def pop_and_put_back(self, key: int, age: int) -> None:
        person = self.model["people"].get(key)
        assert self.t.people.pop(key, None) == person
        if person is not None:
            self.t.people[key] = self.model["people"][key] = replace(person, age=age)

    @rule(key=KEYS)
    def refuse_what_does_not_fit(self, key: int) -> None:
        assert self.model is not None
        with pytest.raises(zlmdb.EncodeError):
            self.t.people[key] = Person("x", "old")  # type: ignore[arg-type]  # the point
        with pytest.raises(zlmdb.EncodeError):
            self.t.people["x"] = Person("x", 1)  # type: ignore[index]  # the point

    @rule(low=KEYS, high=KEYS, limit=st.one_of(st.none(), st.integers(0, 3)), reverse=st.booleans())
    def delete_selection(self, low: int, high: int, limit: Optional[int], reverse: bool) -> None:
        model = self.model["people"]
        doomed = sorted((key for key in model if low <= key < high), reverse=reverse)[:limit]
        assert self.t.people.select(low, high, reverse=reverse, limit=limit).delete() == len(doomed)
        for key in doomed:
            del model[key]

    @rule(age=st.integers(0, 3))
    def delete_by_index(self, age: int) -> None:
        model = self.model["people"]
        doomed = [key for key, person in model.items() if person.age == age]
        assert self.t.people.by_age[age].delete() == len(doomed)
        for key in doomed:
            del model[key]

    @rule(step=st.integers(-1, 1))
    def write_while_reading(self, step: int) -> None:
        model = self.model["people"]
        expected = sorted(model, reverse=step < 0)
        seen = []
        for key in self.t.people.select(reverse=step < 0).keys():  # noqa: SIM118 - no dict
            seen.append(key)
            if step == 0:
                del self.t.people[key]
                del model[key]
            else:  # behind: never seen
                behind = Person(None, 1)
                self.t.people[key - 2 * step] = model[key - 2 * step] = behind
        assert [key for key in seen if key in expected] == expected

    @rule()
    def clear(self) -> None:
        self.model["people"].clear()
        self.t.people.clear()

    @rule(name=NAMES, number=KEYS, text=NAMES)
    def note(self, name: str, number: int, text: str) -> None:
        self.model["notes"][name, number] = text
        self.t.notes[name, number] = text

    @rule(name=NAMES)
    def delete_notes(self, name: str) -> None:
        model = self.model["notes"]
        doomed = [key for key in model if key[0] == name]
        assert self.t.notes.select(prefix=(name,)).delete() == len(doomed)
        for key in doomed:
            del model[key]

    @invariant()
    def check(self) -> None:
        self.look()
        if self.levels:
            self.compare(self.t, self.levels[-1][1], end=False)

    def compare(self, t: Store, model: dict[str, dict[Any, Any]], *, end: bool = True) -> None:
        people = model["people"]
        ordered = sorted(people.items())
        assert list(t.people.items()) == ordered
        assert list(t.people.select(reverse=True)) == ordered[::-1]
        assert len(t.people) == len(people)
        assert dict(t.notes) == model["notes"]
        assert list(t.notes) == sorted(model["notes"])
        assert {person.name: key for key, person in people.items() if person.name is not None} == {
            name: t.people.by_name.key(name) for name in NAMES_USED if name in t.people.by_name
        }
        by_age = sorted((person.age, key) for key, person in people.items() if person.age is not None)
        assert [(person.age, key) for key, person in t.people.by_age.select()] == by_age
        groups = [(age, key) for age, chosen in t.people.by_age.groups() for key in chosen.keys()]  # noqa: SIM118 - no dict
        assert groups == by_age
        both = [(p.age, p.name, key) for key, p in people.items() if p.age is not None and p.name is not None]
        assert [(p.age, p.name, key) for key, p in t.people.by_both.select()] == sorted(both)
        even = sorted(key for key, person in people.items() if person.age is not None and person.age % 2 == 0)
        assert sorted(t.people.by_parity[True].keys()) == even
        if end:
            t.txn.abort()


NAMES_USED = ["", "a", "ab", "b", "a\0b", "é"]


@zlmdb.table("0a0a0a0a-0000-4000-8000-000000000001")
class ClassicPeople(zlmdb.MapOidPickle):
    """People by number."""


@zlmdb.table("0a0a0a0a-0000-4000-8000-000000000002")
class ClassicByName(zlmdb.MapStringOid):
    """Numbers by name."""


class MapMachine(Machine):
    """Classic maps: an attached table with two indexes, one of them in a slot by hand, between neighbours."""

    def __init__(self) -> None:
        self.before = zlmdb.MapOidString(SLOTS_BEFORE)
        self.by_age: zlmdb.PersistentMap[Any, Any] = zlmdb.MapOidOidOid(50)
        self.after = zlmdb.MapOidString(SLOTS_AFTER)
        super().__init__()
        self.committed = {"people": {}}
        with self.db.begin(write=True) as txn:
            for number in range(3):
                self.before[txn, number] = self.after[txn, number] = f"neighbour {number}"

    def open(self) -> Any:
        self.database: Any = getattr(self, "database", None)
        if self.engine == "memory":
            db = zlmdb.open(None, zlmdb.Schema, layout=self.layout)
        else:
            db = zlmdb.Database(self.path, layout=self.layout)
        self.people = db.attach_table(ClassicPeople)
        self.by_name = db.attach_table(ClassicByName)
        self.by_age = zlmdb.MapOidOidOid(50)
        self.people.attach_index("name", self.by_name, lambda person: person["name"], nullable=True)
        self.people.attach_index("age", self.by_age, lambda person: (person["age"], person["oid"]))
        return db

    def look(self) -> None:
        with self.db.begin() as txn:
            self.compare(txn, self.committed["people"])

    def look_into(self, copy: str) -> None:
        with zlmdb.Database(copy, readonly=True) as db:
            counts = {table.uuid: table.count for table in db.tables().values()}
            assert counts[ClassicPeople._zlmdb_oid] == len(self.committed["people"])
            assert db.check().ok

    def fatten(self, size: int) -> None:
        def store(t: Any) -> None:
            for n in range(size // 100_000 + 1):
                t.txn.put(b"\x00\x63%04d" % n, bytes(100_000))

        def delete(t: Any) -> None:
            for n in range(size // 100_000 + 1):
                t.txn.delete(b"\x00\x63%04d" % n)

        self.db.run(store)
        self.db.run(delete)

    def enter(self, stack: ExitStack) -> None:
        self.txn = stack.enter_context(self.db.begin(write=True))

    def transaction(self) -> Any:
        return self.txn

    @rule(key=st.integers(0, 6), name=st.one_of(st.none(), NAMES.filter(bool)), age=AGES)
    def put(self, key: int, name: Optional[str], age: Optional[int]) -> None:
        model = self.model["people"]
        person = {"oid": key, "name": name, "age": age}
        owners = [other for other, row in model.items() if name is not None and row["name"] == name and other != key]
        if age is None:
            with pytest.raises((zlmdb.NullValueConstraint, zlmdb.DuplicateKey)):
                self.people[self.txn, key] = person
        elif owners:
            with pytest.raises(zlmdb.DuplicateKey) as caught:
                self.people[self.txn, key] = person
            assert [caught.value.owner] == owners
        else:
            self.people[self.txn, key] = person
            model[key] = person

    @rule(key=st.integers(0, 6))
    def delete(self, key: int) -> None:
        self.model["people"].pop(key, None)
        del self.people[self.txn, key]

    @rule()
    def rebuild(self) -> None:
        model = self.model["people"]
        entries = len(model) + sum(row["name"] is not None for row in model.values())
        assert self.people.rebuild_indexes(self.txn) == (entries, entries)

    @rule()
    def truncate(self) -> None:
        model = self.model["people"]
        entries = 2 * len(model) + sum(row["name"] is not None for row in model.values())
        assert self.people.truncate(self.txn) == entries
        model.clear()

    @rule(low=st.integers(0, 6), high=st.integers(0, 6), reverse=st.booleans())
    def select(self, low: int, high: int, reverse: bool) -> None:
        rows = [(key, row) for key, row in sorted(self.model["people"].items()) if low <= key < high]
        found = list(self.people.select(self.txn, low, high, reverse=reverse))
        assert found == (rows[::-1] if reverse else rows)
        assert self.people.count_range(self.txn, low, high) == len(rows)

    @invariant()
    def check(self) -> None:
        self.look()
        if self.levels:
            self.compare(self.txn, self.levels[-1][1]["people"])

    def compare(self, txn: zlmdb.Transaction, people: dict[int, Any]) -> None:
        assert list(self.people.select(txn)) == sorted(people.items())
        assert self.people.count(txn) == len(people)
        assert all(self.people[txn, key] == people.get(key) for key in range(7))
        names = {row["name"]: key for key, row in people.items() if row["name"] is not None}
        assert dict(self.by_name.select(txn)) == names
        assert list(self.by_age.select(txn, return_values=False)) == sorted(
            (row["age"], key) for key, row in people.items()
        )
        for neighbour in (self.before, self.after):
            assert list(neighbour.select(txn)) == [(number, f"neighbour {number}") for number in range(3)]


@pytest.fixture(scope="module", autouse=True)
def small_steps() -> Iterator[None]:
    """No reservation of address space: the map grows with the data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapsize, "RESERVATION", 0)
        patch.setattr(mapsize, "FIRST_SIZE", 1 << 19)
        yield


@pytest.mark.parametrize("machine", [TableMachine, MapMachine])
@pytest.mark.parametrize("combo", EVERYWHERE)
def test_random_programs_do_what_they_do_to_dicts(machine: type[Machine], combo: str) -> None:
    engine, layout = combo.split("-")
    chosen = type(machine.__name__, (machine,), {"engine": engine, "layout": layout})
    run_state_machine_as_test(chosen, settings=settings(max_examples=PROGRAMS))
