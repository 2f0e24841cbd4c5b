"""The engine in memory: what is its own, and that it does what LMDB does, operation by operation."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
from collections.abc import Iterator
from typing import Any, Callable, Optional

import lmdb
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sortedcontainers import SortedList  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from zlmdb import errors
from zlmdb.engines.memory import MemoryEnvironment

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python


@pytest.fixture
def env() -> Iterator[MemoryEnvironment]:
    with MemoryEnvironment() as env:
        with env.begin(write=True) as txn:
            txn.cursor().putmulti([(b"a", b"1"), (b"b", b"2"), (b"c", b"3")])
        yield env


def rows(txn: Any, db: Any = None) -> list[tuple[bytes, bytes]]:
    return list(txn.cursor(db).iternext())


def test_any_buffer_is_a_key_or_a_value(env: MemoryEnvironment) -> None:
    """Not so in py-lmdb on PyPy, which refuses a memoryview."""
    with env.begin(write=True) as txn:
        txn.put(memoryview(b"xkx")[1:2], bytearray(b"v"))  # type: ignore[arg-type]
        assert txn.get(b"k") == txn.get(bytearray(b"k")) == b"v"  # type: ignore[arg-type]
        assert type(txn.get(b"k")) is bytes
        assert txn.delete(memoryview(b"k")) is True  # type: ignore[arg-type]


def test_a_refused_key_names_its_size_and_the_limit() -> None:
    env = MemoryEnvironment(max_key_size=8)
    with env.begin(write=True) as txn, pytest.raises(errors.EncodeError, match="9 bytes; keys have 1 to 8") as caught:
        txn.put(b"k" * 9, b"")
    assert (caught.value.size, caught.value.limit) == (9, 8)


def test_maxsize_counts_the_bytes_of_keys_and_values() -> None:
    env = MemoryEnvironment(100)
    db = env.open_db(b"db")
    with env.begin(write=True) as txn:
        assert txn.put(b"k" * 10, b"v" * 50) is True
        assert txn.put(b"k" * 10, b"v" * 80) is True  # it takes the place of the other
        with pytest.raises(errors.DatabaseFull, match="101 bytes") as caught:
            txn.put(b"kk", b"v" * 9, db=db)
        assert (caught.value.size, caught.value.limit) == (101, 100)
        assert txn.put(b"kk", b"v" * 8, db=db) is True
        txn.delete(b"k" * 10)
        assert txn.put(b"kk", b"v" * 98, db=db) is True


def test_a_record_put_in_the_place_of_the_deleted_current_one_is_seen(env: MemoryEnvironment) -> None:
    """LMDB differs: see `test_lmdb_loses_its_place_when_the_deleted_current_record_is_put_again`."""
    with env.begin(write=True) as txn:
        seen: list[bytes] = []
        for key in txn.cursor().iternext(True, False):
            seen.append(key)
            txn.delete(key)
            txn.put(key, b"again")
            if key == b"b":
                txn.put(b"bb", b"ahead")
        assert seen == [b"a", b"b", b"bb", b"c"]
        seen = []
        for key in txn.cursor().iterprev(True, False):
            seen.append(key)
            txn.delete(key)
            txn.put(key, b"again")
        assert seen == [b"c", b"bb", b"b", b"a"]


def test_lmdb_loses_its_place_when_the_deleted_current_record_is_put_again(tmp_path: Any) -> None:
    """Why a `Selection` looks for its place anew after a change; when this fails, it need not do so any more."""
    with lmdb.open(str(tmp_path)) as env, env.begin(write=True) as txn:
        for key in (b"a", b"b", b"c"):
            txn.put(key, b"")
        seen: list[bytes] = []
        for key in txn.cursor().iterprev(keys=True, values=False):
            seen.append(key)
            if key == b"b":
                txn.delete(b"b")
                txn.put(b"b", b"again")
            if len(seen) == 6:
                break
        assert seen == [b"c", b"b", b"b", b"b", b"b", b"b"]
        seen = []
        for key in txn.cursor().iternext(keys=True, values=False):
            seen.append(key)
            if key == b"b":
                txn.delete(b"b")
                txn.put(b"bb", b"ahead")
        assert seen == [b"a", b"b", b"c"]


def test_views_are_released_at_the_end(env: MemoryEnvironment) -> None:
    txn = env.begin(buffers=True)
    cursor = txn.cursor()
    cursor.first()
    views = [txn.get(b"a"), cursor.key(), cursor.value(), *[part for pair in cursor.iternext() for part in pair]]
    exported = memoryview(txn.get(b"b"))
    kept = txn.get(b"c")
    part = kept[:1]
    txn.abort()
    for view in views:
        with pytest.raises(ValueError, match="released"):
            view.tobytes()
    assert bytes(exported) == b"2"
    assert bytes(part) == b"3"


def test_records_change_in_place_while_nobody_reads_them(env: MemoryEnvironment) -> None:
    before = env.versions.committed[env.versions.main]
    with env.begin(write=True) as txn:
        txn.put(b"d", b"4")
    assert env.versions.committed[env.versions.main] is before
    txn = env.begin(write=True)
    txn.delete(b"a")
    txn.abort()
    assert env.versions.committed[env.versions.main] is before
    with env.begin() as reader:
        with env.begin(write=True) as txn:
            txn.put(b"e", b"5")
        assert env.versions.committed[env.versions.main] is not before
        assert len(rows(reader)) == 4


def test_records_do_not_change_while_a_reader_copies_them(env: MemoryEnvironment) -> None:
    written = threading.Event()

    def write() -> None:
        with env.begin(write=True) as txn:
            txn.put(b"a", b"")
            begun.wait(10)
            txn.put(b"b", b"")
            written.set()

    begun = threading.Event()
    thread = threading.Thread(target=write)
    thread.start()
    with env.versions.lock:  # as a reader that begins
        begun.set()
        assert not written.wait(0.05)
    thread.join(10)
    assert written.is_set()


def test_readers_of_older_commits_keep_theirs(env: MemoryEnvironment) -> None:
    other = env.open_db(b"other")
    readers: list[tuple[int, Any]] = []
    for number in range(6):
        readers.append((number, env.begin()))
        with env.begin(write=True) as txn:
            txn.put(b"n", b"%d" % (number + 1), db=other if number % 2 else None)
            if number == 3:
                readers.pop(1)[1].abort()
    assert [(number, txn.get(b"n"), txn.get(b"n", db=other)) for number, txn in readers] == [
        (0, None, None), (2, b"1", b"2"), (3, b"3", b"2"), (4, b"3", b"4"), (5, b"5", b"4"),
    ]  # fmt: skip


def test_a_reader_that_begins_after_a_drop_has_the_records(env: MemoryEnvironment) -> None:
    db = env.open_db(b"db")
    with env.begin(write=True) as txn:
        txn.put(b"k", b"v", db=db)
    writer = env.begin(write=True)
    writer.put(b"k", b"changed", db=db)
    writer.drop(db)
    with env.begin() as reader:
        writer.commit()
        assert rows(reader, db) == [(b"k", b"v")]


def test_a_child_aborted_after_a_reader_took_a_copy_changes_no_snapshot(env: MemoryEnvironment) -> None:
    writer = env.begin(write=True)
    writer.put(b"a", b"kept")
    child = env.begin(parent=writer, write=True)
    child.put(b"b", b"lost")
    reader = env.begin()
    child.delete(b"c")
    child.abort()
    assert rows(writer) == [(b"a", b"kept"), (b"b", b"2"), (b"c", b"3")]
    writer.commit()
    assert rows(reader) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]


def test_a_forgotten_transaction_is_aborted(env: MemoryEnvironment) -> None:
    env.begin(write=True).put(b"a", b"lost")
    env.begin()
    for _ in range(3):
        gc.collect()
    with env.begin(write=True) as txn:
        assert txn.get(b"a") == b"1"
    assert env.info()["num_readers"] == 0


def test_close_wakes_waiting_writers(env: MemoryEnvironment) -> None:
    writer = env.begin(write=True)
    failed: list[Optional[Exception]] = []

    def wait() -> None:
        try:
            env.begin(write=True)
        except errors.DatabaseClosed as error:
            failed.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    env.close()
    thread.join(10)
    assert len(failed) == 1
    with pytest.raises(errors.TransactionClosed):
        writer.get(b"a")


def test_an_interrupted_change_is_undone_in_full(env: MemoryEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys and the values are two collections: Ctrl-C may come between them."""

    class Interrupted(SortedList):  # type: ignore[misc]
        def add(self, value: Any) -> None:
            raise KeyboardInterrupt

    main = env.versions.committed[env.versions.main]
    monkeypatch.setattr(main, "keys", Interrupted(main.keys))
    txn = env.begin(write=True)
    with pytest.raises(KeyboardInterrupt):
        txn.put(b"aa", b"")
    assert [key for key, _ in rows(txn)] == [b"a", b"aa", b"b", b"c"]
    txn.abort()
    with env.begin() as txn:
        assert [key for key, _ in rows(txn)] == [b"a", b"b", b"c"]
        assert env.stat()["entries"] == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_from_the_last_commit(env: MemoryEnvironment) -> None:
    reader, writer = env.begin(), env.begin(write=True)
    writer.put(b"a", b"kept")
    inner = env.begin(parent=writer, write=True)
    inner.put(b"a", b"lost")
    env.versions.lock.acquire()  # as another thread might
    child = os.fork()
    if child == 0:
        status = 1
        try:
            env.in_child()
            for txn in (reader, writer, inner):
                with pytest.raises(errors.ForkedTransaction):
                    txn.get(b"a")
                with pytest.raises(errors.ForkedTransaction):
                    txn.commit()
                txn.abort()
            with env.begin(write=True) as mine:
                assert mine.get(b"a") == b"1"
                mine.put(b"a", b"mine")
            status = 0
        finally:
            os._exit(status)
    env.versions.lock.release()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert reader.get(b"a") == b"1"
    writer.commit()
    with env.begin() as txn:
        assert txn.get(b"a") == b"kept"


KEYS = st.sampled_from([b"a", b"aa", b"b", b"c", b"d", b"e", b"f", b"ff", b"g"])
VALUES = st.sampled_from([b"", b"1", b"2", b"x" * 1500])
SPACES = st.sampled_from([0, 1])


class BothEngines(RuleBasedStateMachine):
    """Does the same to LMDB and to the engine in memory: they must give the same."""

    @initialize()
    def open(self) -> None:
        self.path = tempfile.TemporaryDirectory()
        self.envs: tuple[Any, Any] = (
            lmdb.open(self.path.name, max_dbs=4, map_size=1 << 24, sync=False),
            MemoryEnvironment(),
        )
        self.spaces = [[env.open_db(name) for name in (b"one", b"two")] for env in self.envs]
        self.writers: list[list[Any]] = []  # the write transaction and its children, for both
        self.readers: list[tuple[list[Any], list[Any]]] = []

    def teardown(self) -> None:
        for txns in [*self.writers[::-1], *(txns for txns, _ in self.readers)]:
            for txn in txns:
                txn.abort()
        for env in self.envs:
            env.close()
        self.path.cleanup()

    def both(self, use: Callable[[Any, list[Any]], Any], txns: Optional[list[Any]] = None) -> Any:
        """Call ``use(txn, spaces)`` on both; the result, which is one."""
        on_lmdb, in_memory = [use(txn, spaces) for txn, spaces in zip(txns or self.writers[-1], self.spaces)]
        assert on_lmdb == in_memory
        return on_lmdb

    @staticmethod
    def contents(txn: Any, spaces: list[Any]) -> list[Any]:
        found = [list(txn.cursor(db).iternext()) for db in spaces]
        assert [list(txn.cursor(db).iterprev()) for db in spaces] == [each[::-1] for each in found]
        assert [txn.stat(db)["entries"] for db in spaces] == [len(each) for each in found]
        return found

    @rule()
    def begin(self) -> None:
        parents = self.writers[-1] if self.writers else [None, None]
        if len(self.writers) < 4:
            self.writers.append([env.begin(write=True, parent=txn) for env, txn in zip(self.envs, parents)])

    @precondition(lambda self: self.writers)
    @rule(keep=st.booleans())
    def end(self, keep: bool) -> None:
        for txn in self.writers.pop():
            txn.commit() if keep else txn.abort()

    @precondition(lambda self: self.writers)
    @rule(space=SPACES, key=KEYS, value=VALUES, overwrite=st.booleans(), append=st.booleans())
    def put(self, space: int, key: bytes, value: bytes, overwrite: bool, append: bool) -> None:
        self.both(lambda txn, spaces: txn.put(key, value, overwrite=overwrite, append=append, db=spaces[space]))

    @precondition(lambda self: self.writers)
    @rule(space=SPACES, items=st.lists(st.tuples(KEYS, VALUES), max_size=8), overwrite=st.booleans())
    def putmulti(self, space: int, items: list[tuple[bytes, bytes]], overwrite: bool) -> None:
        self.both(lambda txn, spaces: txn.cursor(spaces[space]).putmulti(items, overwrite=overwrite))

    @precondition(lambda self: self.writers)
    @rule(space=SPACES, key=KEYS)
    def delete(self, space: int, key: bytes) -> None:
        self.both(lambda txn, spaces: txn.delete(key, db=spaces[space]))

    @precondition(lambda self: self.writers)
    @rule(space=SPACES)
    def drop(self, space: int) -> None:
        self.both(lambda txn, spaces: txn.drop(spaces[space], delete=False))

    @rule()
    def read(self) -> None:
        if len(self.readers) < 3:
            txns = [env.begin() for env in self.envs]
            assert txns[0].id() == txns[1].id()
            self.readers.append((txns, self.both(self.contents, txns)))

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0, 2))
    def stop_reading(self, which: int) -> None:
        for txn in self.readers.pop(which % len(self.readers))[0]:
            txn.abort()

    @precondition(lambda self: self.writers)
    @rule(
        space=SPACES,
        moves=st.lists(st.sampled_from(["first", "last", "next", "next", "prev", "prev"]) | KEYS, max_size=10),
    )
    def walk(self, space: int, moves: list[Any]) -> None:
        def use(txn: Any, spaces: list[Any]) -> Any:
            cursor = txn.cursor(spaces[space])
            steps = ((cursor.set_range, (move,)) if isinstance(move, bytes) else (getattr(cursor, move), ())
                     for move in moves)  # fmt: skip
            return [(step(*where), cursor.key(), cursor.value()) for step, where in steps]

        self.both(use)

    @precondition(lambda self: self.writers)
    @rule(
        space=SPACES,
        start=st.none() | KEYS,
        reverse=st.booleans(),
        edits=st.lists(st.tuples(st.sampled_from(["keep", "delete", "delete this", "put"]), KEYS), max_size=8),
    )
    def scan(self, space: int, start: Optional[bytes], reverse: bool, edits: list[tuple[str, bytes]]) -> None:
        """One edit a step; never into the gap of the current record once that is deleted, where LMDB errs."""

        def use(txn: Any, spaces: list[Any]) -> list[Any]:
            cursor = txn.cursor(spaces[space])
            if start is not None:
                cursor.set_range(start)
            seen: list[tuple[bytes, bytes]] = []
            todo = list(edits)
            for key, value in cursor.iterprev() if reverse else cursor.iternext():
                seen.append((key, value))
                what, other = todo.pop() if todo else ("keep", b"")
                if what == "put":
                    txn.put(other, b"put", db=spaces[space])
                elif what != "keep":
                    txn.delete(other if what == "delete" else key, db=spaces[space])
            return seen

        self.both(use)

    @invariant()
    def the_contents_are_the_same(self) -> None:
        if self.writers:
            self.both(self.contents)
        for txns, before in self.readers:
            assert self.both(self.contents, txns) == before


TestBothEngines = BothEngines.TestCase
