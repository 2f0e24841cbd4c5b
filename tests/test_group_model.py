"""Random groups against a model: each member does what it would do alone, in the order of the queue, and whole."""

from __future__ import annotations

import os
import signal
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from zlmdb.store import blockgroups, groups
from zlmdb.testing.faults import inject

from .reliability.command import forked
from .waiters import Caller, wait_until

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python

TOTAL = -1
UNDONE = -2
KINDS = ["stores", "raises", "undoes", "ends", "aborts"]


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]


class Saw(Exception):
    """What a member raises: the total that it found."""


def member(number: int, kind: str, heard: list[int]) -> Callable[[Any], int]:
    """Count in the record *number*, and in the total; gives the total that it found."""

    def fn(t: Any) -> int:
        total: int = t.numbers.get(TOTAL, 0)
        t.numbers[TOTAL] = total + 1
        t.numbers[number] = t.numbers.get(number, 0) + 1
        t.txn.after_commit(partial(heard.append, number))
        if kind == "raises":
            raise Saw(total)
        if kind == "undoes":
            with suppress(LookupError), t.txn.savepoint():
                del t.numbers[number]
                t.numbers[TOTAL] = UNDONE
                t.txn.after_commit(partial(heard.append, UNDONE))
                raise LookupError
        elif kind == "ends":
            t.txn.commit()
        elif kind == "aborts":
            t.txn.abort()
        return total

    return fn


class Member(Caller):
    """Has a group run its function; *stored* is the total of the file when that had returned or raised."""

    stored = -1

    def call(self) -> Any:
        try:
            return self.write()
        finally:
            with self.db.read() as t:
                self.stored = t.numbers.get(TOTAL, 0)

    def write(self) -> Any:
        """The result of the function."""
        return self.db.run(self.fn)


class Submits(Member):
    def write(self) -> Any:
        return self.db.submit(self.fn).result(20)


class Block(Member):
    def write(self) -> Any:
        with self.db.write() as t:
            got = self.fn(t)
        return got


def waiting(db: Any) -> int:
    turns = db._open_store.turns
    return (0 if db._groups is None else len(db._groups._queue)) + (0 if turns is None else len(turns.queue))


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:  # so that a slow machine takes all of a round into one group
        patch.setattr(blockgroups, "_SHORTEST", 5.0)
        patch.setattr(blockgroups, "_FAST", 0.0)
        patch.setattr(groups, "_SHORTEST", 5.0)
        with zlmdb.open(tmp_path_factory.mktemp("model") / "db", Store) as db:
            yield db


kinds = st.lists(st.sampled_from(KINDS), min_size=2, max_size=7)
rounds = st.lists(st.tuples(st.sampled_from([Member, Submits, Block]), kinds, st.booleans()), min_size=1, max_size=3)


@given(plan=rounds)
def test_a_group_does_what_its_members_do_one_after_the_other(disk: Any, plan: list[Any]) -> None:
    with disk.write() as t:
        t.numbers.clear()
    model: dict[int, int] = {}
    heard: list[int] = []
    expected: list[int] = []
    for kind_of_member, of_members, breaks in plan:
        callers: list[Member] = []
        with inject(disk) as faults:
            with disk.write(alone=True):
                for number, kind in enumerate(of_members):
                    callers.append(kind_of_member(disk, member(number, kind, heard)))
                    wait_until(lambda: waiting(disk) == len(callers))  # noqa: B023
                if breaks:
                    faults.disk_full(after=1)  # that of this block
            for caller in callers:
                caller.ended()
        if breaks:
            for kind, caller in zip(of_members, callers):
                error = caller.raised
                if type(error) is not zlmdb.DiskError:  # it stores nothing, and has seen nothing that is not stored
                    assert kind in ("raises", "aborts")
                    assert (error.args[0] if error is not None else caller.got) == model.get(TOTAL, 0)
        else:
            check(kind_of_member is Block, of_members, callers, model, expected)
        with disk.read() as t:
            assert dict(t.numbers) == model
        assert sorted(heard) == sorted(expected)


def check(blocks: bool, of_members: list[str], callers: Any, model: dict[int, int], expected: list[int]) -> None:
    """Whether each of *callers* met what it would alone, after those before it; the *model* then has what it stored."""
    late: list[int] = []  # what those found that end their transaction themselves, so that they get one of their own
    for number, (kind, caller) in enumerate(zip(of_members, callers)):
        error = caller.raised
        found = error.args[0] if kind == "raises" else caller.got
        assert type(error) is (Saw if kind == "raises" else type(None))
        stores = kind not in ("raises", "aborts")
        assert caller.stored >= found + stores
        if stores:
            expected.append(number)
            model[number] = model.get(number, 0) + 1
        if kind in ("ends", "aborts") and not blocks:
            late.append(found)
        else:
            assert found == model.get(TOTAL, 0)
            model[TOTAL] = found + stores
    own = 0 if blocks else of_members.count("ends")
    assert all(model.get(TOTAL, 0) <= found <= model.get(TOTAL, 0) + own for found in late)
    model[TOTAL] = model.get(TOTAL, 0) + own
    if model[TOTAL] == 0:
        del model[TOTAL]


# -- kills -------------------------------------------------------------------------------------------------------------

ACKNOWLEDGED = struct.Struct(">B")


def work(path: Path, plan: list[list[str]], told: int) -> None:
    """Threads do what *plan* says, again and again; each is told which one has stored something."""
    db = zlmdb.open(path, Store)

    def repeat(number: int, of_thread: list[str]) -> None:
        heard: list[int] = []
        while True:
            for at, kind in enumerate(of_thread):
                way: type[Member] = [Member, Submits, Block][(number + at) % 3]
                caller = way.__new__(way)
                caller.db, caller.fn = db, member(number, kind, heard)
                with suppress(Saw):
                    caller.write()
                    if kind != "aborts":
                        os.write(told, ACKNOWLEDGED.pack(number))

    threads = [threading.Thread(target=repeat, args=one) for one in enumerate(plan)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.twice
@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="the system has no fork, with which the test makes a process to kill"
)
@settings(max_examples=12)
@given(plan=st.lists(kinds, min_size=2, max_size=5), after=st.integers(1, 60))
def test_a_kill_leaves_what_was_acknowledged_and_no_member_by_half(
    plan: list[list[str]], after: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if not any(kind not in ("raises", "aborts") for of_thread in plan for kind in of_thread):
        return
    path = tmp_path_factory.mktemp("killed") / "db"
    reading, writing = os.pipe()
    child = forked(work, path, plan, writing)
    os.close(writing)
    received = b""
    with open(reading, "rb", buffering=0) as told:
        while len(received) < after:
            more = told.read(after - len(received))
            assert more, "the writer ended by itself"
            received += more
        os.kill(child, signal.SIGKILL)
        received += told.readall()
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    with zlmdb.open(path, Store) as db, db.read() as t:
        counts = dict(t.numbers)
    assert counts.pop(TOTAL) == sum(counts.values())
    for number in range(len(plan)):
        assert counts.get(number, 0) >= received.count(ACKNOWLEDGED.pack(number))
