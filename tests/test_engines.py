"""What every storage engine does, run on each engine in `ENGINES`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Optional

import lmdb
import pytest

from tests import toy_engine
from zlmdb import engines, errors
from zlmdb.engines.memory import MemoryEnvironment

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python


@dataclass(frozen=True)
class Engine:
    """How to open one, and the errors by which it refuses."""

    name: str
    open: Callable[[Path, Optional[int]], Any]
    bad_key: type[Exception] = errors.EncodeError
    closed: type[Exception] = errors.DatabaseClosed
    ended: type[Exception] = errors.TransactionClosed
    full: type[Exception] = errors.DatabaseFull
    has_child: type[Exception] = errors.NestedTransaction
    missing: type[Exception] = KeyError
    nested: type[Exception] = errors.NestedTransaction
    readonly: type[Exception] = errors.ReadonlyDatabase
    stale: type[Exception] = errors.TransactionStale


def _open_lmdb(path: Path, maxsize: Optional[int]) -> lmdb.Environment:
    return lmdb.Environment(str(path), map_size=maxsize or 1 << 26, max_dbs=16, sync=False)


ENGINES = [
    Engine("memory", lambda path, maxsize: MemoryEnvironment(maxsize)),
    Engine("toy", lambda path, maxsize: toy_engine.Proxy((server := toy_engine.Server(maxsize)).records, server)),
    Engine(
        "lmdb", _open_lmdb, bad_key=lmdb.BadValsizeError, closed=lmdb.Error, ended=lmdb.Error, full=lmdb.MapFullError,
        has_child=lmdb.BadTxnError, missing=lmdb.NotFoundError, nested=lmdb.Error, readonly=lmdb.ReadonlyError,
        stale=lmdb.InvalidParameterError,
    ),
]  # fmt: skip


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def env(engine: Engine, tmp_path: Path) -> Iterator[Any]:
    """An empty environment of each engine."""
    env = engine.open(tmp_path, None)
    yield env
    env.close()


@pytest.fixture
def db(env: Any) -> Any:
    """A keyspace of it."""
    return env.open_db(b"test")


@pytest.fixture
def txn(env: Any, db: Any) -> Iterator[Any]:
    """A write transaction on `db`."""
    txn = env.begin(db=db, write=True)
    yield txn
    txn.abort()


def fill(txn: Any, keys: str) -> None:
    for key in keys:
        txn.put(key.encode(), key.upper().encode())


def rows(txn: Any, db: Any = None) -> dict[bytes, bytes]:
    return {bytes(key): bytes(value) for key, value in txn.cursor(db).iternext()}


if TYPE_CHECKING:

    def engines_satisfy_the_protocols(raw: lmdb.Environment, memory: MemoryEnvironment) -> None:
        environments: list[engines.Environment] = [memory, raw]
        transactions: list[engines.Transaction] = [memory.begin(), raw.begin()]
        cursors: list[engines.Cursor] = [memory.begin().cursor(), raw.begin().cursor()]
        del environments, transactions, cursors


# -- records ----------------------------------------------------------------------------------------------------------


def test_put_replaces_unless_told_not_to(txn: Any) -> None:
    assert txn.put(b"a", b"1") is True
    assert txn.put(b"a", b"2") is True
    assert txn.put(b"a", b"3", overwrite=False) is False
    assert txn.get(b"a") == b"2"


def test_get_gives_the_default_for_a_missing_key(txn: Any) -> None:
    assert txn.get(b"a") is None
    assert txn.get(b"a", 7) == 7


def test_an_empty_value_is_a_value(txn: Any) -> None:
    txn.put(b"a", b"")
    assert txn.get(b"a") == b""
    assert rows(txn) == {b"a": b""}
    assert txn.put(b"a", b"1", overwrite=False) is False
    assert txn.delete(b"a") is True


def test_append_refuses_a_key_that_is_not_past_the_last(txn: Any) -> None:
    assert txn.put(b"b", b"1", append=True) is True
    assert txn.put(b"b", b"2", append=True) is False
    assert txn.put(b"a", b"2", append=True) is False
    assert txn.put(b"c", b"2", append=True) is True
    assert rows(txn) == {b"b": b"1", b"c": b"2"}


def test_delete_says_whether_there_was_a_record(txn: Any) -> None:
    fill(txn, "ab")
    assert txn.delete(b"a") is True
    assert txn.delete(b"a") is False
    assert rows(txn) == {b"b": b"B"}


def test_keys_order_as_unsigned_bytes_and_prefixes_first(txn: Any) -> None:
    keys = [b"\x00", b"\x00\x00", b"a", b"a\x00", b"aa", b"b", b"\x7f", b"\x80", b"\xff", b"\xff\xff"]
    for key in reversed(keys):
        txn.put(key, b"")
    assert list(txn.cursor().iternext(values=False)) == keys
    assert list(txn.cursor().iterprev(values=False)) == keys[::-1]


def test_a_key_has_one_byte_to_max_key_size(engine: Engine, env: Any, txn: Any) -> None:
    longest = b"k" * env.max_key_size()
    assert env.max_key_size() == 511
    assert txn.put(longest, b"1") is True
    assert txn.get(longest) == b"1"
    for key in (b"", longest + b"k"):
        with pytest.raises(engine.bad_key):
            txn.put(key, b"1")
        with pytest.raises(engine.bad_key):
            txn.cursor().putmulti([(key, b"1")])
    assert len(rows(txn)) == 1


def test_an_empty_key_cannot_be_looked_for_but_one_that_is_too_long_can(engine: Engine, txn: Any) -> None:
    txn.put(b"k", b"1")
    for look in (txn.get, txn.delete):
        with pytest.raises(engine.bad_key):
            look(b"")
        assert not look(b"k" * 600)
    assert txn.cursor().set_range(b"k" * 600) is False
    cursor = txn.cursor()
    assert cursor.set_range(b"") is True
    assert cursor.key() == b"k"


@pytest.mark.parametrize("wrong", ["text", 5])
def test_a_key_that_is_not_bytes_is_a_type_error(txn: Any, wrong: Any) -> None:
    uses: list[Callable[[], Any]] = [
        lambda: txn.put(wrong, b""),
        lambda: txn.get(wrong),
        lambda: txn.delete(wrong),
        lambda: txn.cursor().set_range(wrong),
    ]
    for use in uses:
        with pytest.raises(TypeError):
            use()
    with pytest.raises(TypeError):
        txn.put(b"k", "text")


def test_putmulti_counts_what_it_consumed_and_what_it_stored(txn: Any) -> None:
    fill(txn, "b")
    cursor = txn.cursor()
    assert cursor.putmulti(iter([(b"a", b"1"), (b"b", b"1")]), overwrite=False) == (2, 1)
    assert cursor.putmulti([(b"d", b"1"), (b"c", b"1"), (b"e", b"1")], append=True) == (3, 2)
    assert cursor.putmulti([(b"b", b"2"), (b"b", b"3")]) == (2, 2)
    assert cursor.putmulti([]) == (0, 0)
    assert rows(txn) == {b"a": b"1", b"b": b"3", b"d": b"1", b"e": b"1"}


@pytest.mark.parametrize("wrong", [[b"a", b"b"], (b"a",), (b"a", b"b", b"c")])
def test_putmulti_takes_pairs_only(txn: Any, wrong: Any) -> None:
    with pytest.raises(TypeError):
        txn.cursor().putmulti([wrong])


# -- keyspaces -------------------------------------------------------------------------------------------------------


def test_key_spaces_are_separate(env: Any) -> None:
    main, one, two = env.open_db(None), env.open_db(b"one"), env.open_db(b"two")
    with env.begin(write=True) as txn:
        for number, db in enumerate((main, one, two)):
            txn.put(b"k", b"%d" % number, db=db)
    with env.begin(db=two) as txn:
        assert [txn.get(b"k", db=db) for db in (main, one, two, None)] == [b"0", b"1", b"2", b"2"]
    with env.begin() as txn:
        assert txn.get(b"k") == b"0"


def test_a_missing_key_space_is_created_only_on_request(engine: Engine, env: Any) -> None:
    with pytest.raises(engine.missing):
        env.open_db(b"new", create=False)
    with env.begin(write=True) as txn:
        with pytest.raises(engine.missing):
            env.open_db(b"new", txn, create=False)
        txn.put(b"k", b"v", db=env.open_db(b"new", txn))
    with env.begin() as txn:
        assert txn.get(b"k", db=env.open_db(b"new", txn, create=False)) == b"v"


def test_a_key_space_created_in_an_aborted_transaction_is_gone(engine: Engine, env: Any) -> None:
    txn = env.begin(write=True)
    env.open_db(b"new", txn)
    txn.abort()
    with pytest.raises(engine.missing):
        env.open_db(b"new", create=False)


def test_a_read_transaction_creates_no_key_space(engine: Engine, env: Any) -> None:
    with env.begin() as txn, pytest.raises(engine.readonly):
        env.open_db(b"new", txn)


def test_a_transaction_older_than_a_key_space_refuses_it(engine: Engine, env: Any) -> None:
    with env.begin() as txn:
        db = env.open_db(b"new")
        with pytest.raises(engine.stale):
            txn.get(b"k", db=db)


def test_stat_counts_the_records(env: Any, db: Any, txn: Any) -> None:
    fill(txn, "abc")
    txn.put(b"a", b"again")
    txn.delete(b"c")
    txn.delete(b"c")
    assert txn.stat(db)["entries"] == txn.stat()["entries"] == 2


def test_drop_empties_or_removes_a_key_space(engine: Engine, env: Any, db: Any) -> None:
    with env.begin(db=db, write=True) as txn:
        fill(txn, "abc")
    with env.begin(db=db, write=True) as txn:
        txn.drop(db, delete=False)
        assert rows(txn) == {}
        assert txn.stat(db)["entries"] == 0
        fill(txn, "d")
    with env.begin(db=db, write=True) as txn:
        assert rows(txn) == {b"d": b"D"}
        txn.drop(db)
    with pytest.raises(engine.missing):
        env.open_db(b"test", create=False)
    with env.begin(db=env.open_db(b"test")) as txn:
        assert rows(txn) == {}


def test_abort_brings_back_what_was_dropped(env: Any, db: Any) -> None:
    with env.begin(db=db, write=True) as txn:
        fill(txn, "abc")
    txn = env.begin(db=db, write=True)
    fill(txn, "d")
    txn.drop(db, delete=False)
    fill(txn, "e")
    txn.abort()
    with env.begin(db=db) as txn:
        assert rows(txn) == {b"a": b"A", b"b": b"B", b"c": b"C"}


# -- transactions -----------------------------------------------------------------------------------------------------


def test_commit_publishes_and_abort_restores(env: Any, db: Any) -> None:
    with env.begin(db=db, write=True) as txn:
        fill(txn, "ab")
    txn = env.begin(db=db, write=True)
    txn.put(b"a", b"changed")
    txn.delete(b"b")
    fill(txn, "c")
    txn.abort()
    with env.begin(db=db) as txn:
        assert rows(txn) == {b"a": b"A", b"b": b"B"}


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("reader_first", [True, False])
def test_a_reader_sees_the_last_commit_before_its_begin(env: Any, db: Any, keep: bool, reader_first: bool) -> None:
    with env.begin(db=db, write=True) as txn:
        fill(txn, "ab")
    before = {b"a": b"A", b"b": b"B"}
    early = env.begin(db=db)
    if not reader_first:
        early.abort()
    writer = env.begin(db=db, write=True)
    writer.put(b"a", b"changed")
    writer.delete(b"b")
    late = env.begin(db=db)
    fill(writer, "c")
    assert rows(late) == before
    assert rows(writer) == {b"a": b"changed", b"c": b"C"}
    writer.commit() if keep else writer.abort()
    assert rows(late) == before
    assert late.stat(db)["entries"] == 2
    if reader_first:
        assert rows(early) == before
        early.abort()
    with env.begin(db=db) as last:
        assert rows(last) == ({b"a": b"changed", b"c": b"C"} if keep else before)
    with env.begin(db=db, write=True) as txn:
        fill(txn, "xyz")
    assert rows(late) == before
    late.abort()


def test_a_commit_without_changes_keeps_the_number(env: Any, db: Any) -> None:
    with env.begin(db=db, write=True) as txn:
        fill(txn, "a")
        number = txn.id()
    with env.begin(db=db, write=True) as txn:
        assert txn.id() == number + 1
        assert txn.delete(b"missing") is False
        assert txn.put(b"a", b"", overwrite=False) is False
    with env.begin() as txn:
        assert txn.id() == number == env.info()["last_txnid"]


def test_children_end_into_their_parent(env: Any, txn: Any) -> None:
    fill(txn, "ab")
    with env.begin(db=env.open_db(b"test", txn), parent=txn, write=True) as child:
        child.put(b"a", b"kept")
        inner = env.begin(db=env.open_db(b"test", child), parent=child, write=True)
        fill(inner, "cd")
        inner.delete(b"a")
        assert rows(inner) == {b"b": b"B", b"c": b"C", b"d": b"D"}
        assert inner.id() == txn.id()
        inner.abort()
        child.delete(b"b")
    assert rows(txn) == {b"a": b"kept"}


def test_a_transaction_rests_while_it_has_a_child(engine: Engine, env: Any, txn: Any) -> None:
    child = env.begin(parent=txn, write=True)
    uses: list[Callable[[], Any]] = [
        lambda: txn.get(b"a"),
        lambda: txn.put(b"a", b""),
        lambda: txn.stat(),
        lambda: env.begin(parent=txn, write=True),
    ]
    for use in uses:
        with pytest.raises(engine.has_child):
            use()
    child.commit()
    assert txn.put(b"a", b"1") is True


@pytest.mark.parametrize("keep", [True, False])
def test_the_end_of_a_transaction_aborts_its_child(engine: Engine, env: Any, db: Any, keep: bool) -> None:
    txn = env.begin(db=db, write=True)
    fill(txn, "a")
    child = env.begin(db=db, parent=txn, write=True)
    fill(child, "b")
    txn.commit() if keep else txn.abort()
    with pytest.raises(engine.ended):
        child.get(b"a")
    child.abort()
    with env.begin(db=db) as txn:
        assert rows(txn) == ({b"a": b"A"} if keep else {})


def test_a_read_transaction_writes_nothing(engine: Engine, env: Any, db: Any) -> None:
    with env.begin(db=db, write=True) as txn:
        fill(txn, "a")
    with env.begin(db=db) as txn:
        writes: list[Callable[[], Any]] = [
            lambda: txn.put(b"a", b""),
            lambda: txn.delete(b"a"),
            lambda: txn.delete(b"missing"),
            lambda: txn.cursor().putmulti([(b"a", b"")]),
            lambda: txn.drop(db),
        ]
        for write in writes:
            with pytest.raises(engine.readonly):
                write()
        with pytest.raises((engine.readonly, engine.stale)):
            env.begin(parent=txn, write=True)
        assert rows(txn) == {b"a": b"A"}


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_nothing_can_be_done_after_the_end(engine: Engine, env: Any, db: Any, write: bool, end: str) -> None:
    with env.begin(db=db, write=True) as txn:
        fill(txn, "abc")
    txn = env.begin(db=db, write=write)
    cursor = txn.cursor()
    scan = cursor.iternext()
    next(scan)
    getattr(txn, end)()
    txn.abort()
    uses: list[Callable[[], Any]] = [
        lambda: txn.get(b"a"),
        lambda: txn.get(b"missing"),
        lambda: txn.put(b"a", b""),
        lambda: txn.delete(b"a"),
        lambda: txn.stat(),
        lambda: txn.id(),
        lambda: txn.cursor(),
        lambda: txn.commit(),
        lambda: next(scan),
        lambda: cursor.first(),
        lambda: cursor.next(),
        lambda: cursor.key(),
        lambda: cursor.set_range(b"a"),
        lambda: cursor.putmulti([]) if write else cursor.first(),
    ]
    for use in uses:
        with pytest.raises(engine.ended):
            use()
    cursor.close()


def test_a_second_writer_on_one_thread_is_refused(engine: Engine, env: Any, txn: Any) -> None:
    with pytest.raises(engine.nested):
        env.begin(write=True)


def test_a_writer_waits_for_the_writer_of_another_thread(env: Any, db: Any) -> None:
    first = env.begin(db=db, write=True)
    first.put(b"n", b"1")
    begun = threading.Event()

    def second() -> None:
        with env.begin(db=db, write=True) as txn:
            begun.set()
            txn.put(b"n", txn.get(b"n") + b"2")

    thread = threading.Thread(target=second)
    thread.start()
    assert not begun.wait(0.1)
    first.commit()
    thread.join(10)
    with env.begin(db=db) as txn:
        assert txn.get(b"n") == b"12"


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Threads that take turns often: more chances for races, and no convoy behind the lock of the interpreter."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("quick_switches")
def test_readers_of_many_threads_never_see_half_a_transaction(env: Any, db: Any) -> None:
    """The writer keeps all values equal; readers begin at any moment of it and read at leisure."""
    keys = [b"%03d" % number for number in range(20)]
    with env.begin(db=db, write=True) as txn:
        txn.cursor().putmulti((key, b"0") for key in keys)
    torn: list[Any] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            with env.begin(db=db) as txn:
                seen = [rows(txn), rows(txn)]
            time.sleep(0.001)  # for the writer, who else starves where each step of LMDB releases the lock
            if seen[0] != seen[1] or list(seen[0]) != keys or len(set(seen[0].values())) != 1:
                torn.append(seen)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 20):
        txn = env.begin(db=db, write=True)
        for key in reversed(keys):
            txn.delete(key)
            txn.put(key, b"%d" % number)
        txn.abort() if number % 3 == 0 else txn.commit()
    done.set()
    for thread in threads:
        thread.join(10)
    assert torn == []


def test_a_full_store_refuses_and_recovers(engine: Engine, tmp_path: Path) -> None:
    env = engine.open(tmp_path, 1 << 18)
    txn = env.begin(write=True)
    with pytest.raises(engine.full):
        txn.cursor().putmulti((b"%d" % number, b"x" * 1000) for number in range(1000))
    txn.abort()
    with env.begin(write=True) as txn:
        assert txn.put(b"k", b"v") is True
    env.close()


def test_close_ends_everything(engine: Engine, env: Any, db: Any) -> None:
    reader, writer = env.begin(db=db), env.begin(db=db, write=True)
    fill(writer, "a")
    env.close()
    env.close()
    for txn in (reader, writer):
        with pytest.raises(engine.ended):
            txn.get(b"a")
        txn.abort()
    with pytest.raises(engine.closed):
        env.begin()


def test_facts_of_the_store_have_lmdbs_names(env: Any, db: Any) -> None:
    env.sync()
    env.sync(True)
    with env.begin() as txn:
        assert set(env.info()) == {"map_addr", "map_size", "last_pgno", "last_txnid", "max_readers", "num_readers"}
        assert env.info()["num_readers"] >= 1
        names = {"psize", "depth", "branch_pages", "leaf_pages", "overflow_pages", "entries"}
        assert set(env.stat()) == set(txn.stat(db)) == names


# -- cursors ----------------------------------------------------------------------------------------------------------


def test_a_cursor_moves_by_key(txn: Any) -> None:
    fill(txn, "bdf")
    cursor = txn.cursor()
    assert (cursor.key(), cursor.value()) == (b"", b"")
    steps = [
        (cursor.next, b"b"), (cursor.next, b"d"), (cursor.next, b"f"), (cursor.next, b""), (cursor.last, b"f"),
        (cursor.prev, b"d"), (cursor.prev, b"b"), (cursor.prev, b""), (cursor.first, b"b"),
    ]  # fmt: skip
    for move, key in steps:
        assert move() is (key != b"")
        assert (cursor.key(), cursor.value()) == (key, key.upper())
    for wanted, key in [(b"a", b"b"), (b"b", b"b"), (b"b\x00", b"d"), (b"f", b"f"), (b"g", b"")]:
        assert cursor.set_range(wanted) is (key != b"")
        assert cursor.key() == key
    assert txn.cursor().prev() is True


def test_a_cursor_over_nothing_goes_nowhere(txn: Any) -> None:
    cursor = txn.cursor()
    assert not any([cursor.first(), cursor.last(), cursor.next(), cursor.prev(), cursor.set_range(b"a")])
    assert (cursor.key(), cursor.value()) == (b"", b"")
    assert list(cursor.iternext()) == list(cursor.iterprev()) == []


def test_scans_give_pairs_keys_or_values_from_where_the_cursor_stands(txn: Any) -> None:
    fill(txn, "abc")
    cursor = txn.cursor()
    pairs = [(b"a", b"A"), (b"b", b"B"), (b"c", b"C")]
    assert list(cursor.iternext()) == pairs
    assert list(cursor.iternext()) == pairs  # the end is nowhere
    assert list(cursor.iterprev()) == pairs[::-1]
    cursor.set_range(b"b")
    assert list(cursor.iternext(True, False)) == [b"b", b"c"]
    cursor.set_range(b"b")
    assert list(cursor.iternext(False, True)) == [b"B", b"C"]
    cursor.set_range(b"b")
    assert list(cursor.iterprev(values=False)) == [b"b", b"a"]
    cursor.set_range(b"b")
    assert list(cursor.iterprev(keys=False)) == [b"B", b"A"]
    assert cursor.key() == b""


def test_a_scan_moves_its_cursor(txn: Any) -> None:
    fill(txn, "abcde")
    cursor = txn.cursor()
    scan = cursor.iternext(values=False)
    assert [next(scan), cursor.key(), next(scan), cursor.key()] == [b"a", b"a", b"b", b"b"]
    cursor.next()
    assert next(scan) == b"d"
    cursor.first()
    assert next(scan) == b"b"


def test_a_cursor_gets_values_by_keys_in_any_order(txn: Any) -> None:
    fill(txn, "abc")
    cursor = txn.cursor()
    assert [cursor.get(key) for key in (b"b", b"c", b"a", b"a")] == [b"B", b"C", b"A", b"A"]
    assert cursor.key() == b"a"
    assert (cursor.get(b"x"), cursor.get(b"bb", 2)) == (None, 2)
    assert cursor.get(b"b", 3) == b"B"
    assert next(cursor.iternext(True, False)) == b"b"


def test_a_closed_cursor_refuses(engine: Engine, txn: Any) -> None:
    fill(txn, "a")
    cursor = txn.cursor()
    cursor.close()
    cursor.close()
    for use in (cursor.first, cursor.next, cursor.key, cursor.value):
        with pytest.raises(engine.ended):
            use()


def test_a_cursor_reads_the_value_as_it_is_now(txn: Any) -> None:
    fill(txn, "ab")
    cursor = txn.cursor()
    cursor.first()
    txn.put(b"a", b"new")
    assert cursor.value() == b"new"


def test_buffers_are_views_of_the_values(env: Any, db: Any, txn: Any) -> None:
    fill(txn, "a")
    txn.commit()
    with env.begin(db=db, buffers=True) as txn:
        cursor = txn.cursor()
        cursor.first()
        found = [txn.get(b"a"), cursor.value(), *cursor.iternext(keys=False)]
        assert not any(isinstance(value, bytes) for value in found)
        assert {bytes(value) for value in found} == {b"A"}
        assert [bytes(part) for pair in cursor.iternext() for part in pair] == [b"a", b"A"]
        assert txn.get(b"missing") is None


# At the record "d" of a, b, d, f: what is done there, and what the scan gives in all, forwards and backwards.
EDITS = {
    "nothing": ("", "abdf", "fdba"),
    "delete the current": ("-d", "abdf", "fdba"),
    "delete the next": ("-f", "abd", "fdba"),
    "delete the one before": ("-b", "abdf", "fda"),
    "delete all around": ("-b-d-f", "abd", "fda"),
    "insert ahead of a forward scan": ("+e", "abdef", "fdba"),
    "insert behind a forward scan": ("+c", "abdf", "fdcba"),
    "insert on both sides, delete the current": ("+c+e-d", "abdef", "fdcba"),
    "insert past both ends": ("+A+z", "abdfz", "fdbaA"),
    "replace the current": ("+d", "abdf", "fdba"),
    "delete and insert elsewhere": ("-d+g+A", "abdfg", "fdbaA"),
    "empty the keyspace": ("!", "abd", "fd"),
}


@pytest.mark.parametrize("edit", EDITS, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.parametrize("reverse", [False, True], ids=["forwards", "backwards"])
def test_a_scan_sees_what_changes_ahead_of_it(db: Any, txn: Any, edit: str, reverse: bool) -> None:
    changes, forwards, backwards = EDITS[edit]
    fill(txn, "abdf")
    seen = ""
    cursor = txn.cursor()
    for key in cursor.iterprev(values=False) if reverse else cursor.iternext(values=False):
        seen += key.decode()
        if key == b"d":
            change(txn, db, changes)
    assert seen == (backwards if reverse else forwards)


def change(txn: Any, db: Any, changes: str) -> None:
    if changes == "!":
        txn.drop(db, delete=False)
        return
    for sign, key in zip(changes[::2], changes[1::2]):
        if sign == "+":
            txn.put(key.encode(), b"new")
        else:
            txn.delete(key.encode())


@pytest.mark.parametrize(("move", "key"), [("next", b"f"), ("prev", b"b"), ("key", b"f")])
def test_a_cursor_on_a_deleted_record_stands_between_its_neighbours(txn: Any, move: str, key: bytes) -> None:
    fill(txn, "abdf")
    cursor = txn.cursor()
    cursor.set_range(b"d")
    txn.delete(b"d")
    getattr(cursor, move)()
    assert cursor.key() == key


def test_steps_see_what_changes_ahead_of_them(txn: Any) -> None:
    fill(txn, "bdfh")
    cursor = txn.cursor()
    assert [cursor.next(), cursor.next(), cursor.key()] == [True, True, b"d"]
    fill(txn, "ce")
    assert [cursor.next(), cursor.key()] == [True, b"e"]
    txn.delete(b"f")
    assert [cursor.next(), cursor.key()] == [True, b"h"]
    fill(txn, "g")
    assert [cursor.prev(), cursor.key()] == [True, b"g"]
    txn.delete(b"e")
    assert [cursor.prev(), cursor.key()] == [True, b"d"]
    assert [cursor.prev(), cursor.key()] == [True, b"c"]


def test_a_scan_may_delete_everything_it_passes(txn: Any) -> None:
    for reverse in (False, True):
        txn.cursor().putmulti((b"%05d" % number, b"x" * 200) for number in range(2000))
        cursor = txn.cursor()
        for key, _ in cursor.iterprev() if reverse else cursor.iternext():
            assert txn.delete(key) is True
        assert rows(txn) == {}
