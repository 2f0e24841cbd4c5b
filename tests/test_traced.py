"""Under tracers, profilers and debuggers, which hold frames, everything is as without them."""

from __future__ import annotations

import bdb
import dis
import gc
import importlib.util
import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType, SimpleNamespace
from typing import Any, cast

import pytest

import zlmdb
from zlmdb.handlers import OURS
from zlmdb.store import pool
from zlmdb.store.blocks import COUNTS_REFERENCES


@dataclass
class Person:
    name: str
    age: int


class Persons(zlmdb.Table[int, Person]):
    by_age = zlmdb.Index[int]("age")


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]
    persons: Persons


@pytest.fixture
def db() -> Iterator[Any]:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.persons.update((n, Person(f"p{n}", n)) for n in range(9))
        yield db


def look(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
    """What a debugger does at every line: before Python 3.13 the frame keeps the variables in a dict from then on."""
    if "zlmdb" in frame.f_code.co_filename:
        _ = frame.f_locals
    return look


@contextmanager
def looking(get: Callable[[], Any], put: Callable[[Any], None], tracer: Any = look) -> Iterator[None]:
    before = get()
    put(tracer)
    try:
        yield
    finally:
        put(before)


@pytest.mark.parametrize(
    "watched", [(sys.gettrace, sys.settrace), (sys.getprofile, sys.setprofile)], ids=["traced", "profiled"]
)
def test_references_are_counted_right_where_a_tracer_watches_the_import(watched: Any) -> None:
    spec = importlib.util.find_spec(pool.__name__)
    assert spec is not None
    assert spec.loader is not None
    again: Any = importlib.util.module_from_spec(spec)
    with looking(*watched):
        spec.loader.exec_module(again)
    names = "IDLE", "_TABLE", "IN_LOOP", "_VIEW"
    assert [getattr(again, name) for name in names] == [getattr(pool, name) for name in names]


def grown(person: Person) -> bool:
    return person.age > 3


FILE = grown.__code__.co_filename
LINE = grown.__code__.co_firstlineno + 1


def test_a_function_of_a_query_with_a_breakpoint_is_called_for_each_record(db: Any) -> None:
    kept = grown, lambda one: one.age > 1 and grown(one)
    with db.read() as t:
        for matches in kept:
            assert not t.persons.where(matches).explain().called
        breakpoint_ = bdb.Breakpoint(FILE, LINE)
        try:
            for matches in *kept, lambda one: one.age > 2 and grown(one):
                assert "a debugger stops in it" in str(t.persons.where(matches).explain())
                assert t.persons.where(matches).count() == 5
        finally:
            breakpoint_.deleteMe()
        for matches in kept:
            assert not t.persons.where(matches).explain().called


def test_a_breakpoint_in_the_line_of_a_lambda_is_in_it_if_its_condition_speaks_of_the_record(db: Any) -> None:
    matches = lambda person: person.age > 3  # noqa: E731
    line = matches.__code__.co_firstlineno
    with db.read() as t:
        for condition, called in ("person.age == 5", True), ("line == 5", False), (None, False):
            breakpoint_ = bdb.Breakpoint(FILE, line, cond=condition)
            try:
                assert bool(t.persons.where(matches).explain().called) is called
            finally:
                breakpoint_.deleteMe()


def test_breakpoints_of_debugpy_are_seen(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = SimpleNamespace(condition=None, expression="'age is %s' % (person.age)")
    debugger = SimpleNamespace(breakpoints={FILE: {LINE: one}})
    with db.read() as t:
        assert not t.persons.where(grown).explain().called
        monkeypatch.setitem(sys.modules, "pydevd", cast(Any, SimpleNamespace(get_global_debugger=lambda: debugger)))
        assert "a debugger stops in it" in str(t.persons.where(grown).explain())
        assert not t.persons.where(lambda person: person.age > 4).explain().called
        monkeypatch.setitem(sys.modules, "pydevd", cast(Any, object()))  # another version
        assert not t.persons.where(grown).explain().called


def ends_block(frame: FrameType) -> bool:
    """Whether a ``with`` statement is about to leave its block, which from Python 3.10 on is a line of its own.

    What a tracer raises there, before ``__exit__`` is called, comes after what the statement guards.
    """
    code = frame.f_code
    next_one = dis.opname[code.co_code[frame.f_lasti]]
    return next_one in ("POP_BLOCK", "LOAD_CONST", "LOAD_COMMON_CONSTANT") and linecache.getline(
        code.co_filename, frame.f_lineno
    ).lstrip().startswith("with ")


class Quitter(bdb.Bdb):
    """A debugger that steps, and whose user quits at the line number *at* of zlmdb."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at, self.lines = at, 0

    def user_line(self, frame: FrameType) -> None:
        # Python loses what is raised in a finaliser, and a lock if it is raised where a block ends.
        if (
            frame.f_code.co_filename.startswith(OURS)
            and frame.f_code.co_name not in ("__del__", "_left", "forget")
            and not ends_block(frame)
        ):
            self.lines += 1
            if self.lines == self.at:
                self.set_quit()

    def watch(self, function: Callable[..., object], *arguments: object) -> None:
        """As `runcall`, which loses that the user quits."""
        before = sys.gettrace()
        self.reset()
        gc.disable()  # its finalisers would come at any line
        sys.settrace(self.trace_dispatch)
        try:
            function(*arguments)
        finally:
            sys.settrace(before)
            gc.enable()


def test_who_quits_the_debugger_in_the_midst_of_zlmdb_is_obeyed_and_nothing_is_stored(db: Any) -> None:
    def work(t: Any) -> None:
        t.numbers[5] = 5
        t.persons[5] = Person("x", 9)

    for _ in range(3):  # nothing is left to be generated
        with suppress(KeyError), db.write() as t:
            work(t)
            raise KeyError
    at, came = 1, True
    while came:
        quitter = Quitter(at)
        with suppress(KeyError), db.write(timeout=5) as t:
            try:
                quitter.watch(work, t)
            except bdb.BdbQuit:
                assert quitter.lines == at
            else:
                assert quitter.lines < at, "zlmdb took it for an error of its own"
            raise KeyError
        with db.read() as t:
            assert (5 in t.numbers, t.persons[5].name) == (False, "p5")
        at, came = at + (1 if COUNTS_REFERENCES else 7), quitter.lines == at
    assert at > 10


class Shower(bdb.Bdb):
    """A debugger whose user looks at all variables of functions of this file that queries are given."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []

    def user_line(self, frame: FrameType) -> None:
        if frame.f_code.co_name == "old":
            self.shown.append(repr(dict(frame.f_locals)))


def test_a_debugger_that_shows_a_record_while_a_function_is_read_changes_no_query(db: Any) -> None:
    least = 5

    def old(person: Person) -> bool:
        age = person.age
        return age >= least

    def shown(person: Person) -> bool:
        return repr(person.age) > "5"

    shower = Shower()
    with db.read() as t:
        before = sys.gettrace()
        shower.reset()
        sys.settrace(shower.trace_dispatch)
        try:
            selection = t.persons.where(old)
        finally:
            sys.settrace(before)
        assert [person.age for person in selection.values()] == [5, 6, 7, 8]
        assert "by_age" in str(selection.explain())
        assert [person.age for person in t.persons.where(shown).values()] == [6, 7, 8]
    for text in ("'person': <placeholder person, ", "'age': <placeholder person.age, "):
        assert text in shower.shown[1]
