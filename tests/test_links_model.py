"""Links under random programs, against plain dicts with the rules written out; and in two processes.

The programs put, edit and delete in three tables with links of every kind, rings and links to themselves among them,
in transactions and savepoints that are kept or undone.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import tempfile
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any, Optional

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

import zlmdb
from zlmdb.testing import kill_points

from .office import Model, Note, Office, Person, Refused, Task, dangles, delete

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python

KEYS = st.integers(1, 6)
MAYBE = st.one_of(st.none(), KEYS)
TABLES = st.sampled_from(["people", "tasks", "notes"])


class Machine(RuleBasedStateMachine):
    path: Optional[str] = None
    layout: Any = "tables"

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        path = None if self.path is None else str(Path(self.directory.name) / "db")
        self.db = zlmdb.open(path, Office, layout=self.layout, durability="none")
        self.kept: Model = {
            "people": {1: Person(None, 2, [1]), 2: Person(1, 1), 3: Person(2, 3, [1, 3, 1]), 4: Person(4)},
            "tasks": {1: Task(1), 2: Task(1, 1), 3: Task(3, 2), 4: Task(4, 4)},
            "notes": {1: Note(1, 2), 2: Note(None, 4)},
        }
        with self.db.write() as t:
            for name, records in self.kept.items():
                t[name].update(copy.deepcopy(records))
        self.model: Model = copy.deepcopy(self.kept)
        self.t: Any = None
        self.savepoints: list[tuple[Any, Model]] = []

    def begun(self) -> Any:
        if self.t is None:
            self.block = self.db.write()
            self.t = self.block.__enter__()
        return self.t

    def statement(self, ours: Any, theirs: Any) -> None:
        """The same statement on both, which both refuse or carry out."""
        before = copy.deepcopy(self.model)
        refused = False
        try:
            theirs(self.model)
        except Refused:
            self.model, refused = before, True
        self.begun()
        try:
            ours(self.t)
        except (zlmdb.DanglingLink, zlmdb.StillLinked):
            assert refused
        else:
            assert not refused

    def put(self, table: str, key: int, value: Any, how: str) -> None:
        def theirs(model: Model) -> None:
            if dangles(model, table, key, value, deferred=False):
                raise Refused
            model[table][key] = copy.deepcopy(value)

        def ours(t: Any) -> None:
            if how == "put_many":
                t[table].put_many([(key, value)])
            elif how == "change":
                t[table].change(key, lambda _: value, default=value)
            else:
                t[table][key] = value

        self.statement(ours, theirs)

    HOW = st.sampled_from(["put", "put_many", "change"])

    @rule(key=KEYS, boss=MAYBE, twin=MAYBE, friends=st.lists(KEYS, max_size=3), how=HOW)
    def put_person(self, key: int, boss: Optional[int], twin: Optional[int], friends: list[int], how: str) -> None:
        self.put("people", key, Person(boss, twin, friends), how)

    @rule(key=KEYS, how=HOW)
    def put_bare_person(self, key: int, how: str) -> None:
        self.put("people", key, Person(), how)

    @rule(key=KEYS, owner=KEYS, parent=MAYBE, how=HOW)
    def put_task(self, key: int, owner: int, parent: Optional[int], how: str) -> None:
        self.put("tasks", key, Task(owner, parent), how)

    @rule(key=KEYS, task=MAYBE, author=MAYBE, how=HOW)
    def put_note(self, key: int, task: Optional[int], author: Optional[int], how: str) -> None:
        self.put("notes", key, Note(task, author), how)

    @rule(table=TABLES, key=KEYS)
    def delete_one(self, table: str, key: int) -> None:
        self.statement(lambda t: t[table].pop(key, None), lambda model: delete(model, table, [key]))

    @rule(table=TABLES, keys=st.sets(KEYS))
    def delete_some(self, table: str, keys: set[int]) -> None:
        self.statement(
            lambda t: t[table].where(lambda k, _: k in keys).delete(), lambda model: delete(model, table, keys)
        )

    @rule(table=TABLES)
    def clear(self, table: str) -> None:
        self.statement(lambda t: t[table].clear(), lambda model: delete(model, table, list(model[table])))

    @rule()
    def enter_savepoint(self) -> None:
        block = self.begun().txn.savepoint()
        block.__enter__()
        self.savepoints.append((block, copy.deepcopy(self.model)))

    @precondition(lambda self: self.savepoints)
    @rule(undo=st.booleans())
    def leave_savepoint(self, undo: bool) -> None:
        block, before = self.savepoints.pop()
        if undo:
            error = ZeroDivisionError()
            with suppress(ZeroDivisionError):
                block.__exit__(ZeroDivisionError, error, None)
            self.model = before
        else:
            block.__exit__(None, None, None)

    @precondition(lambda self: self.t is not None and not self.savepoints)
    @rule(keep=st.booleans())
    def end(self, keep: bool) -> None:
        t, self.t = self.t, None
        if not keep:
            t.txn.abort()
            self.block.__exit__(None, None, None)
            self.model = copy.deepcopy(self.kept)
            return
        dangling = any(
            dangles(self.model, "people", key, value, deferred=True) for key, value in self.model["people"].items()
        )
        try:
            self.block.__exit__(None, None, None)
        except zlmdb.DanglingLink:
            assert dangling
            self.model = copy.deepcopy(self.kept)
        else:
            assert not dangling
            self.kept = copy.deepcopy(self.model)
        assert self.db.check().ok

    @invariant()
    def same(self) -> None:
        if self.t is not None:
            assert {name: dict(self.t[name].items()) for name in self.model} == self.model
        with self.db.read() as r:
            assert {name: dict(r[name].items()) for name in self.kept} == self.kept

    def teardown(self) -> None:
        while self.savepoints:
            self.leave_savepoint(undo=True)
        if self.t is not None:
            self.t.txn.abort()
            self.block.__exit__(None, None, None)
        self.t = None
        self.db.close()
        self.directory.cleanup()


@pytest.mark.parametrize(("path", "layout"), [(None, "classic"), ("db", "tables")])
def test_links_are_as_the_rules_say_after_any_program(path: Optional[str], layout: str) -> None:
    class Chosen(Machine):
        pass

    Chosen.path, Chosen.layout = path, layout
    share = max(settings.default.max_examples // 3, 5)
    run_state_machine_as_test(Chosen, settings=settings(max_examples=share))  # type: ignore[no-untyped-call]


def busy(path: str) -> None:
    """A program that has written some of this before, and begins again."""
    with zlmdb.open(path, Office) as db:
        with db.write() as t:
            t.people.update({1: Person(None, 2), 2: Person(1, 1), 3: Person(2)})
            t.tasks.update({1: Task(3), 2: Task(3, 1), 3: Task(1, 3)})
            t.notes.update({1: Note(3, 2), 2: Note(None, 3)})
        with db.write() as t:
            del t.people[3]
            with suppress(zlmdb.StillLinked):
                del t.people[1]
            assert list(t.tasks) == [3]
            t.notes.select().delete()
            assert t.people.select().delete() == 2
            assert len(t.tasks) == 0


@pytest.mark.once
def test_a_program_killed_at_any_write_leaves_links_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    for _ in kill_points(busy, path):
        if Path(path).exists():
            with zlmdb.open(path, Office) as db:
                assert db.check().ok


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_another_process_without_the_declarations_can_break_nothing(tmp_path: Path) -> None:
    """It tries at random what it can, while this one writes."""
    with zlmdb.open(tmp_path / "db", Office) as db:
        with db.write() as t:
            t.people.update({key: Person() for key in range(1, 7)})
            t.tasks.update({key: Task(key) for key in range(1, 7)})
        other = subprocess.Popen([sys.executable, "-c", OTHER, str(tmp_path / "db")], stdout=subprocess.PIPE, text=True)
        for turn in range(40):
            with db.write() as t, suppress(zlmdb.ConstraintError):
                t.tasks[turn % 6 + 1] = Task(turn % 5 + 1, turn % 6 + 1)
                t.notes[turn] = Note(turn % 4 + 1, turn % 6 + 1)
                if turn % 3 == 0:
                    del t.people[turn % 6 + 1]
        said, _ = other.communicate(timeout=60)
        assert other.returncode == 0
        assert said.split() == ["refused", "120", "stored", "40"]
        assert db.check().ok


OTHER = textwrap.dedent(
    """
    import sys
    from dataclasses import dataclass, field
    from typing import Optional
    import zlmdb

    @dataclass
    class Person:
        boss: Optional[int] = None
        twin: Optional[int] = None
        friends: list[int] = field(default_factory=list)

    @dataclass
    class Task:
        owner: int
        parent: Optional[int] = None

    class People(zlmdb.Table[int, zlmdb.Checked[Person]]):
        by_boss = zlmdb.ForeignKey["People"]("boss", on_delete="set_none")
        by_twin = zlmdb.ForeignKey["People"]("twin", deferred=True)
        by_friend = zlmdb.ForeignKey["People"]("friends", each=True, on_delete="set_none")

    class Tasks(zlmdb.Table[int, zlmdb.Checked[Task]]):
        pass

    class Part(zlmdb.Schema):
        people: People
        tasks: Tasks

    refused = stored = 0
    with zlmdb.open(sys.argv[1], Part) as db:
        for turn in range(40):
            for change in (
                lambda t: t.people.pop(turn % 6 + 1, None),
                lambda t: t.people.clear(),
                lambda t: t.tasks.__setitem__(turn % 6 + 1, Task(99)),
            ):
                try:
                    with db.write() as t:
                        t.people.setdefault(turn % 6 + 1, Person())
                        change(t)
                except zlmdb.IndexNotAttached:
                    refused += 1
            with db.write() as t:
                t.people[100 + turn] = Person(100 + turn)
                stored += 1
    print("refused", refused, "stored", stored)
    """
)
