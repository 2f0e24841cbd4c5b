"""What comes at a bad moment, a signal, the garbage collector, another thread, leaves no lock behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import _base as base
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable

import pytest

import zlmdb
from tests.combinations import EVERYWHERE
from zlmdb import notifier
from zlmdb.engines.lmdb import mapsize
from zlmdb.engines.memory import versions
from zlmdb.keys import uuids
from zlmdb.operations.backup import _refuse_transactions
from zlmdb.store.blocks import COUNTS_REFERENCES
from zlmdb.store.futures import Submitted
from zlmdb.store.gate import Gate
from zlmdb.store.transactionend import TransactionEnd

from .interrupts import INTERRUPTS, Interrupt, handled_at, interrupting, traces_instructions

posix_only = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="there is no fork on this system, so that no child can inherit a lock"
)


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[str, int]
    blobs: zlmdb.Table[int, bytes]


@pytest.fixture(params=EVERYWHERE)
def combo(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    return make_db(Store)


def still_writes(db: Any) -> None:
    """Another thread becomes the writer, and then this one."""
    done: list[int] = []

    def write() -> None:
        with db.write(timeout=10) as t:
            t.numbers["other"] = 1
            done.append(1)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join(20)
    assert done == [1]
    with db.write(timeout=10) as t:
        t.numbers["mine"] = 1


class Interrupted:
    """An engine's transaction in whose commit a signal comes, *after* what it does or before."""

    def __init__(self, raw: Any, after: bool) -> None:
        self._raw, self._after = raw, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def commit(self) -> None:
        if self._after:
            self._raw.commit()
        raise KeyboardInterrupt


@pytest.mark.parametrize("after", [False, True])
def test_a_signal_during_a_commit_leaves_no_lock(db: Any, after: bool) -> None:
    done: list[bool] = []
    with pytest.raises(KeyboardInterrupt), db.write() as t:  # noqa: PT012
        t.numbers["a"] = 1
        t.txn.after_commit(lambda: done.append(True))
        t.txn._raw = Interrupted(t.txn._engine_txn, after)
    with db.read() as t:
        assert dict(t.numbers) == ({"a": 1} if after else {})
    assert done == []
    still_writes(db)


class Observed:
    """An engine's transaction that tells, at its commit, whether the block of *txn* is taken for over."""

    def __init__(self, raw: Any, txn: Any, told: list[bool]) -> None:
        self._raw, self._txn, self._told = raw, txn, told

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def commit(self) -> None:
        gc.collect()
        self._told.append(self._txn._block() is None)
        self._raw.commit()


def test_what_ends_a_block_lives_while_it_runs(db: Any) -> None:
    """Or the collector would take the block for interrupted, and abort what is being committed."""
    told: list[bool] = []
    blocks = 20 if COUNTS_REFERENCES else 3  # else each collection looks through all that there is
    for number in range(blocks):
        with db.write() as t:
            t.numbers["a"] = number
            t.txn._raw = Observed(t.txn._engine_txn, t.txn, told)
    assert told == [False] * blocks


def test_a_signal_before_the_first_write_transaction_has_the_lock_leaves_the_next_one_alone(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(db._open_store.writer, "acquire", interrupted)
        with pytest.raises(KeyboardInterrupt), db.write():
            pass
    still_writes(db)


def test_a_lost_transaction_is_ended_where_warnings_are_errors(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = db.write().__enter__()
    lost.numbers["a"] = 1
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_type))
    del lost
    gc.collect()
    gc.collect()
    assert seen == [ResourceWarning]
    still_writes(db)


@pytest.mark.filterwarnings("default::ResourceWarning")
@pytest.mark.parametrize("write", [False, True])
def test_the_collector_waits_for_no_lock_of_the_engine_in_memory(write: bool) -> None:
    db = zlmdb.open(None, Store)
    lost = db.write().__enter__() if write else db.read()
    lost.numbers.get("a")
    held: Any = db._open_store.env.versions.lock
    with pytest.warns(ResourceWarning, match="never ended"), held:  # noqa: PT031
        del lost
        gc.collect()
        gc.collect()
    still_writes(db)
    db.close()


@traces_instructions
@pytest.mark.parametrize("write", [True, False])
def test_an_interrupt_of_the_collector_leaves_no_lock_of_the_engine_in_memory(
    write: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next transaction waited for ever."""
    monkeypatch.setattr(sys, "unraisablehook", lambda error: None)
    at, more = 1, True
    while more:
        with zlmdb.open(None) as db:
            lost: Any = db.begin(write=write).__enter__()
            # A finaliser, so that the exception leaves it for nobody.
            with interrupting(at, lambda name: name == versions.__file__, handled_at) as count:
                del lost
            more = at <= count[0]
            lock: Any = db._open_store.environment.versions.lock
            left = lock.locked()
            if left:
                lock.release()  # or the end of the block would wait, too
            gc.collect()
        assert not left, at
        at += 1
    assert at > 8


def test_a_signal_while_a_gate_waits_opens_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    stay, gone = threading.Event(), threading.Event()

    def inside() -> None:
        gate.enter(gate)
        gone.set()
        stay.wait(10)
        gate.leave(gate)

    thread = threading.Thread(target=inside)
    thread.start()
    gone.wait(10)

    def interrupt(*_: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(gate._changed, "wait_for", interrupt)
    with pytest.raises(KeyboardInterrupt), gate.alone(10):
        raise AssertionError("somebody was inside")
    done = threading.Event()
    other = threading.Thread(target=lambda: (gate.enter(done), done.set(), gate.leave(done)))
    other.start()
    assert done.wait(10)
    stay.set()
    thread.join(10)
    other.join(10)


@pytest.mark.parametrize("write", [False, True])
def test_a_signal_while_a_transaction_begins_leaves_the_gate(db: Any, write: bool) -> None:
    class Env:
        def begin(self, *args: Any, **options: Any) -> Any:
            raise KeyboardInterrupt

        def reader_check(self) -> int:
            return 0

    store = db._open_store
    store.gate, env = Gate(), store.env
    store.env = Env()
    with pytest.raises(KeyboardInterrupt):
        db.begin(write=write).begin()
    store.env = env
    assert not any(live is not None and live.active for live in [ref() for ref in store.live.values()])
    with store.gate.alone(0) as alone:
        assert alone
    still_writes(db)


@pytest.mark.parametrize("through", ["run", "change"])
def test_a_map_that_another_thread_let_grow_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, through: str
) -> None:
    monkeypatch.setattr(mapsize, "RESERVATION", 0)
    monkeypatch.setattr(mapsize, "FIRST_SIZE", 1 << 20)
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        grow = db._open_store.grow

        def late(*arguments: Any, **options: Any) -> bool:
            def small() -> None:
                with db.write() as t:
                    t.blobs[9999] = b"y"

            thread = threading.Thread(target=small)
            thread.start()
            thread.join(10)
            return grow(*arguments, **options)

        monkeypatch.setattr(db._open_store, "grow", late)

        def fill(put: Callable[[bytes, bytes], object]) -> None:
            for i in range(300):
                put(i.to_bytes(8, "big"), b"x" * 4000)

        if through == "run":
            db.run(lambda t: t.blobs.update((i, b"x" * 4000) for i in range(300)))
        else:
            space = db._open_store.space(b"t:blobs")
            db._open_store.change(lambda txn, _: fill(lambda key, data: txn.put(key, data, db=space.handle)))
        with db.read() as t:
            assert len(t.blobs) >= 301


_PARENT = """
import os, signal, sys, time, zlmdb
class Store(zlmdb.Schema):
    numbers: zlmdb.Table[str, int]
db = zlmdb.open(sys.argv[1], Store, durability="none")
with db.write() as t:
    t.numbers["a"] = 1
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
with db.write() as t:
    t.numbers["b"] = 1
    os.kill(os.getpid(), signal.SIGKILL)
"""


@posix_only
def test_the_lock_of_a_writer_that_was_killed_does_not_live_on_in_its_children(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", _PARENT, str(tmp_path / "db")], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        parent.stdout.close()
        assert parent.wait(30) == -signal.SIGKILL
        time.sleep(0.05)
        with zlmdb.open(tmp_path / "db", Store, timeout=5) as db, db.write(timeout=5) as t:
            assert dict(t.numbers) == {"a": 1}
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


@traces_instructions
def test_an_interrupt_while_a_uuid_is_made_stops_none_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uuids, "_PATIENCE", 0.01)
    made = [uuids.new_uuid()]
    at = count = 0
    while count == at:
        at += 1
        with suppress(*INTERRUPTS), interrupting(at, uuids.__file__.__eq__) as counted:
            made.append(uuids.new_uuid())
        count = counted[0]
        made.append(uuids.new_uuid())
    assert at > 20
    assert made == sorted(set(made))


@traces_instructions
def test_an_interrupt_while_somebody_listens_or_rings_keeps_nobody_from_ringing() -> None:
    at = count = 0
    while count == at:
        at += 1
        bell = notifier.Notifier()
        with suppress(*INTERRUPTS), interrupting(at, notifier.__file__.__eq__) as counted, bell.listen() as wait:
            bell.ring()
            assert wait(0)
        count = counted[0]
        bell.ring()
    assert at > 30


def rung_by_two(at: int) -> bool:
    """Ring a bell, which another thread rings before instruction number *at* of that; False if there are fewer."""
    bell, count = notifier.Notifier(), 0
    before = bell.latest

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != notifier.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            count += 1
            if count == at:
                sys.settrace(None)
                early = bell.latest is before
                bell.ring()
                if early:
                    bell.idle = bell.latest, 0.0  # somebody looks
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        bell.ring()
    finally:
        sys.settrace(old)
    assert bell.latest is not bell.idle[0]
    return count >= at


@traces_instructions
def test_a_ring_counts_also_where_another_thread_rings_between_its_instructions() -> None:
    """The number of the rings was then that of before, and a worker that heard the bell did not look (Python 3.9)."""
    at = 1
    while rung_by_two(at):
        at += 1
    assert at > 5


@pytest.mark.once
@traces_instructions
def test_an_interrupt_while_a_thread_waits_for_a_future_keeps_nobody_from_finishing_it() -> None:
    """The thread that tells the futures waited for the lock of that one for ever, and nothing was stored any more."""
    files = {threading.__file__, futures.__file__, base.__file__}
    at = count = 0
    while count == at:
        at += 1
        future: Submitted[int] = Submitted()
        with suppress(futures.TimeoutError, *INTERRUPTS), interrupting(at, files.__contains__, handled_at) as counted:
            future.result(0.001)
        count = counted[0]
        teller = threading.Thread(target=future.set_result, args=(at,))
        teller.start()
        teller.join(10)
        assert future._state == "FINISHED"
    assert at > 10


@contextmanager
def interrupted(name: str) -> Iterator[None]:
    """Raise `Interrupt` as the function *name* of a transaction begins."""

    def trace(frame: Any, event: str, arg: Any) -> None:
        if frame.f_code.co_name == name and "transaction" in os.path.basename(frame.f_code.co_filename):
            sys.settrace(None)
            raise Interrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.twice
@pytest.mark.parametrize("name", ["_leave", "commit", "_end", "_abort", "_roll_back"])
def test_a_block_that_an_interrupt_ends_lets_other_threads_write_at_once(db: Any, name: str) -> None:
    """Where references are not counted, they waited for this thread to write again, which it may never do."""
    with suppress(Interrupt), interrupted(name), db.begin(write=True) as txn:
        if name in ("_abort", "_roll_back"):
            txn.abort()
    del txn
    still_writes(db)


@pytest.mark.twice
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what a weak reference calls
@pytest.mark.parametrize("at", ["_forget", "_roll_back", "abort"])
def test_so_does_one_that_a_second_interrupt_disturbs(db: Any, at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a terminal and the program that started this one both send SIGINT: LMDB's transaction stayed open."""
    owner = type(db._open_store.engine) if at == "abort" else TransactionEnd
    whole, seen = getattr(owner, at), []

    def disturbed(*args: Any) -> Any:
        if not seen:
            seen.append(args[0][0] if at == "abort" else args[0]._raw)  # as a traceback may
            raise Interrupt
        return whole(*args)

    monkeypatch.setattr(owner, at, staticmethod(disturbed) if at == "abort" else disturbed)
    with suppress(Interrupt), interrupted("_leave"), db.begin(write=True) as txn:
        txn.put(b"key", b"value")
    del txn
    still_writes(db)
    with db.begin() as txn:
        assert txn.get(b"key") is None


@pytest.mark.once
@traces_instructions
def test_an_interrupt_while_a_function_is_submitted_stops_none_after_it() -> None:
    """The thread that was to store them was taken for one that runs, so that nothing submitted was ever stored."""
    at, done = 0, False
    while not done:
        at += 1
        with zlmdb.open(None, Store) as db:
            with suppress(*INTERRUPTS), interrupting(at, lambda file: file.endswith("groups.py"), handled_at) as count:
                db.submit(lambda t: None)
            done = count[0] < at
            db.submit(lambda t: None).result(10)
    assert at > 5


@pytest.mark.once
@traces_instructions
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it comes in finalizers, too
def test_an_interrupt_of_a_read_keeps_no_compaction_from_its_work(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        store = db._open_store

        def own() -> None:
            with store.reading():
                pass

        def of_program() -> None:
            with db.read() as t:
                t.numbers.get("a")

        for read in (own, of_program):
            at, done = 0, False
            while not done:
                at += 1
                with suppress(*INTERRUPTS), interrupting(at, is_of_store, handled_at) as count:
                    read()
                done = count[0] < at
                _refuse_transactions(store)  # which compact() does first
            db.compact()
            assert at > 3


def is_of_store(file: str) -> bool:
    return os.path.dirname(file).endswith(("store", "schema"))


@pytest.mark.once
@traces_instructions
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file that Python closes
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the system does not tell what is open")
def test_an_interrupt_of_an_opening_leaves_nothing_open(tmp_path: Path) -> None:
    """The file stayed open for the rest of the process, and other programs could not replace it."""
    path = tmp_path / "db"
    zlmdb.open(path, Store, durability="none").close()
    at, done = 0, False
    while not done:
        at += 1
        opened: list[Any] = []
        with suppress(*INTERRUPTS), interrupting(at, is_of_opening, handled_at) as count:
            opened += [zlmdb.open(path, Store, durability="none")]
        done = count[0] < at
        for db in opened:
            db.close()
        gc.collect()
        assert str(path / "lock.mdb") not in open_files()
    assert at > 20


@pytest.mark.once
@traces_instructions
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="the system does not tell what is open")
def test_an_interrupt_of_a_closing_leaves_nothing_open_that_to_close_again_does_not_close(tmp_path: Path) -> None:
    path = tmp_path / "db"
    at, done = 0, False
    while not done:
        at += 1
        db = zlmdb.open(path, Store, durability="none")
        db.auto.numbers["a"] = at
        with suppress(*INTERRUPTS), interrupting(at, is_of_closing) as count:
            db.close()
        done = count[0] < at
        db.close()
        del db
        assert not [one for one in open_files() if one.startswith(str(path))], at
    assert at > 30


def is_of_closing(file: str) -> bool:
    return file.endswith(("presence.py", "processlock.py", "writerlock.py", "handlers.py"))


def is_of_opening(file: str) -> bool:
    return file.endswith(("openstores.py", "database.py"))


def open_files() -> list[str]:
    with os.scandir("/proc/self/fd") as found:
        return [os.path.realpath(one.path) for one in found]
