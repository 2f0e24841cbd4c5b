"""Write blocks that wait for each other are stored by one commit, and each is told of its own outcome only."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb.store import blockgroups

from .interrupts import INTERRUPTS, interrupting, traces_instructions
from .waiters import Caller, last, put, wait_until, waiting_together


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]
    texts: zlmdb.Table[str, str]


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(blockgroups, "_SHORTEST", 5.0)  # a slow interpreter takes them all
    monkeypatch.setattr(blockgroups, "_FAST", 0.0)
    with zlmdb.open(tmp_path / "disk", Store) as db:
        yield db


class Writer(Caller):
    """Runs its function in a block."""

    def call(self) -> Any:
        with self.db.write() as t:
            got = self.fn(t)
        return got


def waiting(db: Any) -> int:
    found = db._open_store.turns
    return 0 if found is None else len(found.queue)


def together(db: Any, bodies: list[Callable[[Any], Any]]) -> AbstractContextManager[list[Writer]]:
    return waiting_together(db, Writer, bodies, waiting)


def still_writes(db: Any) -> None:
    """Another thread becomes the writer, and then this one."""
    assert Writer(db, put(-1)).ended().got == -1
    with db.write(timeout=10) as t:
        t.numbers[-1] = 0


def stored(db: Any) -> dict[int, int]:
    with db.read() as t:
        return dict(t.numbers)


def test_blocks_that_wait_for_the_writer_are_stored_by_one_commit(db: Any) -> None:
    before = last(db)
    with together(db, [put(n) for n in range(10)]) as writers:
        assert last(db) == before
    assert [writer.got for writer in writers] == list(range(10))
    assert last(db) == before + 1
    assert stored(db) == dict.fromkeys(range(10), 1)
    wait_until(lambda: not any(one.name == "zlmdb-commit" for one in threading.enumerate()))


def test_one_writer_makes_no_group(db: Any) -> None:
    for n in range(5):
        with db.write() as t:
            put(n)(t)
    assert db._open_store.turns is None


def test_closing_leaves_no_thread(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockgroups, "_LINGER", 20.0)
    before = set(threading.enumerate())
    with together(db, [put(1), put(2)]):
        pass
    assert {thread.name for thread in set(threading.enumerate()) - before} == {"zlmdb-commit"}
    db.close()
    assert set(threading.enumerate()) <= before


def test_an_exception_undoes_its_block_only_and_leaves_it_after_the_commit(db: Any) -> None:
    def fails(t: Any) -> None:
        t.numbers[1] += 5
        t.numbers[100] = 1
        raise LookupError("mine")

    go = threading.Event()

    def slow(t: Any) -> None:
        assert go.wait(20)
        put(2)(t)

    with together(db, [put(1), fails, slow]) as writers:
        pass_on = threading.Timer(0.1, go.set)
        pass_on.start()
        assert all(writer.is_alive() for writer in writers)
    assert [writer.got for writer in writers] == [1, None, None]
    assert isinstance(writers[1].raised, LookupError)
    assert stored(db) == {1: 1, 2: 1}


def test_nobody_returns_before_the_commit(db: Any) -> None:
    go, begun = threading.Event(), threading.Event()

    def fails(t: Any) -> None:
        raise LookupError

    def slow(t: Any) -> None:
        begun.set()
        assert go.wait(20)

    with db.write():
        writers = []
        for n, body in enumerate((put(1), fails, lambda t: t.txn.abort(), slow)):
            writers.append(Writer(db, body))
            wait_until(lambda n=n: waiting(db) == n + 1)  # type: ignore[misc]
    assert begun.wait(20)
    time.sleep(0.05)
    assert all(writer.is_alive() for writer in writers)
    assert stored(db) == {}
    go.set()
    assert [type(writer.ended().raised) for writer in writers] == [type(None), LookupError, type(None), type(None)]
    assert stored(db) == {1: 1}


def test_blocks_see_what_those_before_them_wrote_in_the_order_in_which_they_came(db: Any) -> None:
    def append(text: str) -> Callable[[Any], str]:
        def body(t: Any) -> str:
            t.texts["all"] = t.texts.get("all", "") + text
            found: str = t.texts["all"]
            return found

        return body

    with together(db, [append(c) for c in "abcd"]) as writers:
        pass
    assert [writer.got for writer in writers] == ["a", "ab", "abc", "abcd"]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_block_that_ends_its_transaction_itself(db: Any, end: str) -> None:
    def ends(t: Any) -> str:
        t.numbers[1] = 1
        getattr(t.txn, end)()
        with pytest.raises(zlmdb.TransactionClosed):
            t.numbers[2] = 2
        return "done"

    with together(db, [put(0), ends, put(5)]) as writers:
        pass
    assert [(writer.got, writer.raised) for writer in writers] == [(0, None), ("done", None), (5, None)]
    assert sorted(stored(db)) == ([0, 1, 5] if end == "commit" else [0, 5])


def test_savepoints_scans_and_handles_in_a_block_of_a_group(db: Any) -> None:
    kept: list[Any] = []

    def work(t: Any) -> int:
        kept.append(t.numbers)
        t.numbers[1] = 1
        with suppress(KeyError), t.txn.savepoint():
            t.numbers[2] = 2
            raise KeyError
        with t.txn.savepoint():
            t.numbers[3] = 3
        rows = iter(t.numbers)
        return next(rows)

    with together(db, [put(0), work, work]) as writers:
        pass
    assert [(writer.got, writer.raised) for writer in writers] == [(0, None)] * 3
    assert stored(db) == {0: 1, 1: 1, 3: 3}
    with pytest.raises(zlmdb.TransactionClosed):
        kept[0].get(1)


def test_what_waits_for_the_commit_runs_after_it_in_the_thread_of_the_block(db: Any) -> None:
    ran: list[tuple[int, int]] = []

    def hooked(key: int, raises: bool = False) -> Callable[[Any], int]:
        def hook() -> None:
            ran.append((key, threading.get_ident()))
            assert stored(db)[key] == 1
            if raises:
                raise OverflowError(key)

        def body(t: Any) -> int:
            t.txn.after_commit(hook)
            t.numbers[key] = 1
            if key == 9:
                raise LookupError
            return key

        return body

    with together(db, [hooked(1), hooked(9), hooked(2, raises=True), hooked(3)]) as writers:
        pass
    assert sorted(ran) == sorted((key, writers[at].ident) for key, at in ((1, 0), (2, 2), (3, 3)))
    assert [type(one.raised) for one in writers] == [type(None), LookupError, OverflowError, type(None)]


def test_all_of_a_group_raise_if_it_cannot_be_stored(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hooked: list[int] = []

    def hooks(t: Any) -> None:
        t.numbers[7] = 7
        t.txn.after_commit(lambda: hooked.append(7))

    def fails(t: Any) -> None:
        raise LookupError

    commit = zlmdb.Transaction.commit

    def broken(self: Any) -> None:
        if self._unit is None:  # that of the group
            self.abort()
            raise zlmdb.DiskError("the disk is broken", path="there")
        commit(self)

    with monkeypatch.context() as patched:
        patched.setattr(zlmdb.Transaction, "commit", broken)
        with together(db, [put(1), hooks, fails]) as writers:
            pass
    errors: list[Any] = [writer.raised for writer in writers]
    assert [(type(error), error.path) for error in errors] == [(zlmdb.DiskError, "there")] * 3
    assert len({id(error) for error in errors}) == 3
    assert isinstance(errors[2].__context__, LookupError)
    assert stored(db) == {}
    assert hooked == []
    still_writes(db)


def test_where_no_transaction_begins_each_block_meets_an_error_of_its_own(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise zlmdb.DiskError("the disk is broken")

    with db.write():
        writers = [Writer(db, put(n)) for n in range(3)]
        wait_until(lambda: waiting(db) == 3)
        monkeypatch.setattr(db._open_store, "era_to_write", broken)
    assert [type(writer.ended().raised) for writer in writers] == [zlmdb.DiskError] * 3
    monkeypatch.undo()
    assert stored(db) == {}
    still_writes(db)


def test_a_block_that_fills_the_map_takes_nobody_with_it(tmp_path: Path) -> None:
    class Texts(zlmdb.Schema):
        texts: zlmdb.Table[str, str]

    def small(key: str) -> Callable[[Any], str]:
        def body(t: Any) -> str:
            t.texts[key] = key
            return key

        return body

    def large(t: Any) -> None:
        t.texts["large"] = "x" * (1 << 21)

    def hides(t: Any) -> None:
        with suppress(zlmdb.DatabaseFull):
            large(t)

    with zlmdb.open(tmp_path / "small", Texts, maxsize=1 << 20) as db:
        with together(db, [small("a"), large, hides, small("b")]) as writers:
            pass
        assert [writer.got for writer in writers] == ["a", None, None, "b"]
        assert isinstance(writers[1].raised, zlmdb.DatabaseFull)
        assert isinstance(writers[2].raised, zlmdb.TransactionPoisoned)
        with db.read() as t:
            assert sorted(t.texts) == ["a", "b"]


def test_a_block_waits_no_longer_than_its_timeout_and_never_runs_then(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "t", Store, timeout=0.2) as db:
        with db.write():
            me = threading.get_ident()
            writers = [Writer(db, put(n)).ended() for n in range(2)]
        for writer in writers:
            assert isinstance(writer.raised, zlmdb.WriterTimeout)
            assert f"thread {me} of this process" in str(writer.raised)
        still_writes(db)
        assert stored(db) == {-1: 0}


def test_a_write_inside_of_a_block_of_a_group_is_refused(db: Any) -> None:
    nested: list[BaseException] = []

    def inner(t: Any) -> None:
        for write in (lambda: db.run(put(1)), lambda: db.write().__enter__(), lambda: db.attach_table(None)):
            try:
                write()
            except (zlmdb.NestedTransaction, TypeError, AttributeError) as error:
                nested.append(error)

    with together(db, [put(0), inner, put(2)]) as writers:
        pass
    assert [writer.raised for writer in writers] == [None] * 3
    assert [type(error) for error in nested[:2]] == [zlmdb.NestedTransaction] * 2


def test_a_block_that_is_alone_may_wait_for_what_another_thread_does_after_its_own(db: Any) -> None:
    stored_first = threading.Event()

    class First(Writer):
        def run(self) -> None:
            super().run()
            stored_first.set()

    class Alone(Writer):
        def run(self) -> None:
            with self.db.write(alone=True) as t:
                self.got = stored_first.wait(20), self.fn(t)

    before = last(db)
    with db.write():
        first = First(db, put(1))
        wait_until(lambda: waiting(db) == len(db._open_store.writer._waiters) == 1)  # the group comes before
        alone = Alone(db, put(2))
        wait_until(lambda: len(db._open_store.writer._waiters) == 2)
        third = Writer(db, put(3))
        wait_until(lambda: waiting(db) == 2)
    assert [first.ended().got, alone.ended().got, third.ended().got] == [1, (True, 2), 3]
    assert stored(db) == {1: 1, 2: 1, 3: 1}
    assert last(db) > before + 1
    still_writes(db)


def test_a_slow_block_is_the_last_one_of_its_group(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]  # stands still but for the slow block, however slow the machine is
    monkeypatch.setattr(blockgroups, "_clock", lambda: clock[0])

    def slow(t: Any) -> None:
        t.numbers[50] = 1
        clock[0] += blockgroups._SHORTEST + 1

    before = last(db)
    with together(db, [put(2), slow, put(0), put(1)]):
        pass
    assert last(db) == before + 2
    assert stored(db) == {0: 1, 1: 1, 2: 1, 50: 1}


def test_after_a_change_of_the_catalogue_the_group_takes_nobody(db: Any) -> None:
    """What others would find out of tables in it would be kept, and holds only if it is stored."""

    def changes(t: Any) -> None:
        t.numbers[7] = 7
        t.txn._catalogue_changed()

    before, era = last(db), db._open_store._era[1]
    with together(db, [put(0), changes, put(1), put(2)]):
        pass
    assert last(db) == before + 2
    assert db._open_store._era[1] > era


def test_functions_and_blocks_write_at_the_same_time(db: Any) -> None:
    with together(db, [put(n) for n in range(4)]) as writers:
        futures = [db.submit(put(n)) for n in range(10, 14)]
    assert [writer.got for writer in writers] == [0, 1, 2, 3]
    assert [future.result(20) for future in futures] == [10, 11, 12, 13]
    assert len(stored(db)) == 8


@pytest.mark.parametrize("options", [{"sync": False}, {"writemap": True, "maxsize": 1 << 20}])
def test_without_waits_for_the_disk_or_savepoints_there_are_no_groups(tmp_path: Path, options: dict[str, Any]) -> None:
    def write(t: Any) -> int:
        return 7

    with zlmdb.Database(str(tmp_path / "n"), **options) as db:
        with db.write():
            writers = [Writer(db, write) for _ in range(3)]
            time.sleep(0.02)
        assert [writer.ended().got for writer in writers] == [7, 7, 7]
        assert db._open_store.turns is None


def test_a_disk_that_takes_no_time_is_left_to_one_after_the_other(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blockgroups, "_FAST", 60.0)
    monkeypatch.setattr(blockgroups, "_REST", 60.0)
    with together(db, [put(0), put(1)]):
        pass
    before = last(db)
    with db.write():
        writers = [Writer(db, put(n)) for n in range(3)]
        time.sleep(0.02)
        assert waiting(db) == 0
    for writer in writers:
        writer.ended()
    assert last(db) == before + 3


def test_who_holds_a_lock_that_has_just_been_released_is_no_other_process(db: Any) -> None:
    with db.write() as t:
        t.numbers[1] = 1
    lock = db._open_store.writer
    assert lock.shown_owner() == "another thread of this process"
    with db.write():
        assert lock.shown_owner() == f"thread {threading.get_ident()} of this process"


# -- threads that end, interrupts and forks ----------------------------------------------------------------------------


def test_a_thread_that_ends_inside_of_its_block_takes_nobody_with_it(db: Any) -> None:
    kept: list[Any] = []

    def rows() -> Iterator[int]:
        with db.write() as t:
            t.numbers[66] = 66
            yield 1

    def leaves() -> None:
        generator = rows()
        next(generator)
        kept.append(generator)

    with db.write():
        first = Writer(db, put(0))
        wait_until(lambda: waiting(db) == 1)
        thread = threading.Thread(target=leaves, daemon=True)
        thread.start()
        wait_until(lambda: waiting(db) == 2)
        third = Writer(db, put(2))
        wait_until(lambda: waiting(db) == 3)
    assert [first.ended().got, third.ended().got] == [0, 2]
    assert stored(db) == {0: 1, 2: 1}
    kept.clear()
    still_writes(db)


@traces_instructions
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_of_a_member_at_any_instruction_takes_nobody_with_it(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its mates are stored once; it itself completely or not at all."""
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)
    ours = os.path.dirname(blockgroups.__file__)
    at, rounds, ended = 1, 0, False
    while not ended:
        returned, count, mates = interrupted(db, 10 * rounds, at, lambda name: name.startswith(ours))
        ended = count < at
        found = [stored(db).get(10 * rounds + n, 0) for n in range(4)]
        assert [mate.raised for mate in mates] == [None, None], (at, mates[0].raised, mates[1].raised)
        assert found[0] == found[3] == 1, (at, found)
        assert found[1] == found[2], (at, found)
        assert found[1] == 1 or not returned, (at, found)
        at += 11 if rounds else 1
        rounds += 1
    assert rounds > 40
    still_writes(db)


def interrupted(db: Any, first: int, at: int, inside: Callable[[str], bool]) -> tuple[bool, int, list[Writer]]:
    """A member between two others: whether it returned, how many instructions there were, and the others."""
    mates: list[Writer] = []
    go = threading.Event()

    def hold() -> None:
        with db.write():
            assert go.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    store = db._open_store
    wait_until(lambda: store.writer.owner is not None)
    mates.append(Writer(db, put(first)))
    wait_until(lambda: waiting(db) == 1)

    def then() -> None:  # the one who is interrupted waits, or has gone already
        until = time.monotonic() + 0.005
        while waiting(db) < 2 and time.monotonic() < until:
            time.sleep(0.0005)
        mates.append(Writer(db, put(first + 3)))
        until = time.monotonic() + 0.005
        while waiting(db) < 3 and time.monotonic() < until:
            time.sleep(0.0005)
        go.set()

    starter = threading.Thread(target=then)
    starter.start()
    returned = False
    with suppress(*INTERRUPTS), interrupting(at, inside) as count:
        with db.write() as t:
            t.numbers[first + 1] = 1
            t.numbers[first + 2] = 1
        returned = True
    for thread in (starter, holder, *mates):
        thread.join(20)
        assert not thread.is_alive(), at
    return returned, count[0], mates


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_process_that_a_member_forks_has_nothing_of_the_group(db: Any) -> None:
    def forks(t: Any) -> int:
        t.numbers[5] = 1
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with pytest.raises(zlmdb.ForkedTransaction):
                    t.numbers[6] = 1
                assert stored(db) == {}
                with suppress(zlmdb.WriterTimeout), db.write(timeout=0.05):  # the parent is writing
                    status = 2
                status = 0 if status == 1 else status
            finally:
                os._exit(status)
        return os.waitpid(child, 0)[1]

    with together(db, [put(0), forks, put(1)]) as writers:
        pass
    assert [writer.got for writer in writers] == [0, 0, 1]
    assert stored(db) == {0: 1, 1: 1, 5: 1}


# -- at random ---------------------------------------------------------------------------------------------------------

KINDS = ["stores", "raises", "undoes", "commits", "aborts", "hooks", "slow", "runs", "submits", "reads"]


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with zlmdb.open(tmp_path_factory.mktemp("random") / "db", Store) as db:
        yield db


@given(plan=st.lists(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5), min_size=2, max_size=6))
def test_random_blocks_do_what_they_do_alone(one: Any, plan: list[list[str]]) -> None:
    """Each thread counts in a record of its own, and all of them in one."""
    db = one
    with db.write() as t:
        t.numbers.clear()
    hooked: list[int] = []
    wrong: list[Any] = []

    def body(thread: int, kind: str, t: Any) -> None:
        t.numbers[thread] = t.numbers.get(thread, 0) + 1
        t.numbers[-1] = t.numbers.get(-1, 0) + 1
        if kind == "raises":
            raise LookupError
        if kind == "undoes":
            with suppress(LookupError), t.txn.savepoint():
                del t.numbers[thread]
                t.numbers[-1] = -100
                raise LookupError
        elif kind in ("commits", "aborts"):
            getattr(t.txn, kind[:-1])()
        elif kind == "hooks":
            t.txn.after_commit(lambda: hooked.append(thread))
        elif kind == "slow":
            time.sleep(0.0005)

    def work(thread: int, kinds: list[str]) -> None:
        mine = 0
        for kind in kinds:
            try:
                if kind == "runs":
                    db.run(lambda t: body(thread, "stores", t))
                elif kind == "submits":
                    db.submit(lambda t: body(thread, "stores", t)).result(20)
                elif kind != "reads":
                    with db.write() as t:
                        body(thread, kind, t)
                if kind == "raises":
                    wrong.append((thread, kind))
            except LookupError:
                if kind != "raises":
                    wrong.append((thread, kind))
            except BaseException as error:
                wrong.append(error)
            mine += kind not in ("raises", "aborts", "reads")
            with db.read() as t:
                if t.numbers.get(thread, 0) != mine:
                    wrong.append((thread, kind, mine, t.numbers.get(thread, 0)))

    threads = [threading.Thread(target=work, args=(n, kinds)) for n, kinds in enumerate(plan)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    found = stored(db)
    assert not wrong
    kept = {n: [kind for kind in kinds if kind not in ("raises", "aborts", "reads")] for n, kinds in enumerate(plan)}
    assert found.pop(-1, 0) == sum(map(len, kept.values()))
    assert found == {n: len(kinds) for n, kinds in kept.items() if kinds}
    assert sorted(hooked) == sorted(n for n, kinds in enumerate(plan) for kind in kinds if kind == "hooks")


def test_a_database_closes_at_once_when_those_who_waited_have_given_up(tmp_path: Path) -> None:
    """The thread that would have lent them its transaction has not begun one for nobody."""
    late: list[zlmdb.WriterTimeout] = []

    def waits(timeout: float) -> None:
        try:
            with db.write(timeout=timeout):
                pass
        except zlmdb.WriterTimeout as error:
            late.append(error)

    with zlmdb.open(tmp_path / "db", Store) as db, db.write():
        threads = [threading.Thread(target=waits, args=(timeout,)) for timeout in (0.01, 0.03, 0.02)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(late) == 3
