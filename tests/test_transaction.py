"""A transaction stores everything in its block or nothing, ends once, and never hides an error."""

from __future__ import annotations

import _thread
import asyncio
import gc
import logging
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any, Callable, NamedTuple

import pytest

import zlmdb
from tests.combinations import EVERYWHERE
from zlmdb.store.transaction import Transaction

on_disk = pytest.mark.parametrize("combo", ["lmdb-tables", "lmdb-classic"], indirect=True)
one_file = pytest.mark.parametrize("combo", ["lmdb-tables"], indirect=True)  # another process: slow to start on PyPy


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[str, int]
    other: zlmdb.Table[str, int]


class Wider(Store):
    third: zlmdb.Table[str, int]


@pytest.fixture(params=EVERYWHERE)
def combo(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    return make_db(Store)


def numbers(db: Any) -> dict[str, int]:
    with db.read() as t:
        return dict(t.numbers)


class Boom(Exception):
    """What the tests raise."""


# -- begin ----------------------------------------------------------------------------------------------------------


def test_begin_does_nothing_before_the_block(db: Any) -> None:
    one, other = db.begin(write=True), db.begin(write=True)
    with pytest.raises(zlmdb.TransactionClosed):
        one.get(b"\x00\x01")
    with pytest.raises(zlmdb.TransactionClosed):
        one.put(b"\x00\x01", b"x")
    assert "not open" in repr(one)
    with one:
        assert "write transaction" in repr(one)
        assert ", open" in repr(one)
    with other:
        pass


def test_read_and_write_of_a_database_begin_at_once(db: Any) -> None:
    t = db.write().__enter__()
    with pytest.raises(zlmdb.NestedTransaction):
        db.write().__enter__()
    t.txn.abort()


def test_begin_gives_the_transaction(db: Any) -> None:
    txn = db.begin()
    with txn as entered:
        assert entered is txn
    assert txn.begin() is txn
    txn.abort()


def test_a_begun_transaction_does_not_begin_again(db: Any) -> None:
    with db.begin(write=True) as txn:
        with pytest.raises(zlmdb.DatabaseInUse, match="savepoint"):
            txn.begin()
        txn.put(b"\x00\x09k", b"v")
    with db.begin() as txn:
        assert txn.get(b"\x00\x09k") == b"v"


def test_a_transaction_may_be_used_again_after_its_end(db: Any) -> None:
    txn = db.begin(write=True)
    for i in range(3):
        with txn:
            assert txn.get(b"\x00\x09k") == (None if i == 0 else b"%d" % (i - 1))
            txn.put(b"\x00\x09k", b"%d" % i)
    with suppress(Boom), txn:
        txn.put(b"\x00\x09k", b"never")
        raise Boom
    with txn:
        assert txn.get(b"\x00\x09k") == b"2"


def test_id_numbers_the_snapshots(db: Any) -> None:
    with db.begin() as txn:
        before = txn.id()
    with db.begin(write=True) as txn:
        assert txn.id() == before + 1
        txn.put(b"\x00\x09k", b"v")
    with db.begin() as txn:
        assert txn.id() == before + 1
    with pytest.raises(zlmdb.TransactionClosed):
        txn.id()


# -- raw records ------------------------------------------------------------------------------------------------------


def test_raw_records_are_bytes(db: Any) -> None:
    key = b"\x00\x09key"
    with db.begin(write=True) as txn:
        assert txn.get(key) is None
        assert txn.put(key, b"") is True
        assert txn.get(key) == b""
        assert txn.put(key, b"v") is True
        assert txn.put(key, b"other", overwrite=False) is False
        assert txn.get(key) == b"v"
        assert txn.delete(key) is True
        assert txn.delete(key) is False
        assert txn.get(key) is None


@pytest.mark.parametrize("key", [b"", b"\x00\x09" + b"x" * 4000])
def test_raw_keys_that_do_not_fit_are_refused(db: Any, key: bytes) -> None:
    with db.begin(write=True) as txn:
        for use in (lambda: txn.put(key, b"v"), lambda: txn.delete(key), lambda: txn.get(key)):
            with pytest.raises(zlmdb.EncodeError) as caught:
                use()
            assert caught.value.size == len(key)
        txn.put(b"\x00\x09k", b"v")
    with db.begin() as txn:
        assert txn.get(b"\x00\x09k") == b"v"


def test_raw_writes_in_a_read_transaction_are_refused(db: Any) -> None:
    with db.begin() as txn:
        for use in (lambda: txn.put(b"\x00\x09k", b"v"), lambda: txn.delete(b"\x00\x09k")):
            with pytest.raises(zlmdb.ReadonlyDatabase):
                use()


def test_raw_records_are_apart_from_tables_with_names(make_db: Callable[..., Any], combo: str) -> None:
    if combo.endswith("classic"):
        pytest.skip("there all records are in one keyspace")
    db = make_db(Store)
    with db.begin(write=True) as txn:
        txn.put(b"\x00\x01a", b"v")
    assert numbers(db) == {}


# -- the end ----------------------------------------------------------------------------------------------------------


def test_a_clean_end_commits(db: Any) -> None:
    with db.write() as t:
        t.numbers["a"] = 1
    assert numbers(db) == {"a": 1}


@pytest.mark.parametrize("error", [Boom, KeyboardInterrupt, SystemExit, GeneratorExit, zlmdb.EncodeError])
def test_any_exception_aborts_and_goes_on(db: Any, error: type[BaseException]) -> None:
    raised = error("x")
    with pytest.raises(error) as caught:  # noqa: PT012, SIM117
        with db.write() as t:
            t.numbers["a"] = 1
            raise raised
    assert caught.value is raised
    assert numbers(db) == {}


def test_an_early_commit_ends_the_transaction(db: Any) -> None:
    with db.begin(write=True) as txn:
        txn.put(b"\x00\x09k", b"v")
        txn.commit()
        for use in (lambda: txn.get(b"k"), lambda: txn.put(b"k", b"v"), lambda: txn.delete(b"k"), lambda: txn.commit()):
            with pytest.raises(zlmdb.TransactionClosed):
                use()
        with db.begin() as reader:
            assert reader.get(b"\x00\x09k") == b"v"
        with db.begin(write=True):
            pass


def test_an_early_abort_ends_the_transaction(db: Any) -> None:
    with db.begin(write=True) as txn:
        txn.put(b"\x00\x09k", b"v")
        txn.abort()
        txn.abort()
        with pytest.raises(zlmdb.TransactionClosed):
            txn.commit()
    with db.begin() as txn:
        assert txn.get(b"\x00\x09k") is None


def test_an_exception_after_an_early_commit_goes_on_and_keeps_what_is_stored(db: Any) -> None:
    with pytest.raises(Boom):  # noqa: PT012, SIM117
        with db.write() as t:
            t.numbers["a"] = 1
            t.txn.commit()
            raise Boom
    assert numbers(db) == {"a": 1}


def test_readers_and_a_writer_go_on_beside_each_other(db: Any) -> None:
    readers = []
    for i in range(5):
        readers.append((i, db.read()))
        with db.write() as t:
            t.numbers[f"k{i}"] = i
    for count, t in readers:
        assert len(t.numbers) == count
        t.txn.abort()


def test_exceptions_of_the_block_are_never_masked(db: Any) -> None:
    """Also not by the refusal to end a transaction inside its savepoint."""
    with pytest.raises(Boom):  # noqa: PT012, SIM117
        with db.write() as t:
            t.numbers["a"] = 1
            block = t.txn.savepoint()
            block.__enter__()
            raise Boom
    del block
    gc.collect()
    with pytest.raises(zlmdb.TransactionClosed):
        t.numbers.get("a")
    assert numbers(db) == {}
    with db.write() as t:
        t.numbers["b"] = 1
    assert numbers(db) == {"b": 1}


def test_a_block_that_ends_inside_a_savepoint_stores_nothing_and_says_so(db: Any) -> None:
    with pytest.raises(zlmdb.DatabaseInUse, match="savepoint"):  # noqa: PT012, SIM117
        with db.write() as t:
            t.numbers["a"] = 1
            block = t.txn.savepoint()
            block.__enter__()
            t.numbers["b"] = 1
    del block
    gc.collect()
    assert numbers(db) == {}
    with db.write() as t:
        t.numbers["c"] = 1
    assert numbers(db) == {"c": 1}


# -- savepoints -------------------------------------------------------------------------------------------------------


def test_savepoints_nest(db: Any) -> None:
    with db.write() as t:
        t.numbers["0"] = 0
        with t.txn.savepoint():
            t.numbers["1"] = 1
            with suppress(Boom), t.txn.savepoint():
                t.numbers["2"] = 2
                with t.txn.savepoint():
                    t.numbers["3"] = 3
                assert len(t.numbers) == 4
                raise Boom
            assert len(t.numbers) == 2
            with t.txn.savepoint() as txn:
                assert txn is t.txn
                t.numbers["4"] = 4
    assert numbers(db) == {"0": 0, "1": 1, "4": 4}


def test_a_failed_savepoint_undoes_everything_in_it(db: Any) -> None:
    with db.write() as t:
        t.numbers.update(a=1, b=2, c=3)
        with suppress(Boom), t.txn.savepoint():
            t.numbers["a"] = 100
            del t.numbers["b"]
            t.other["x"] = 1
            t.numbers.clear()
            t.txn.put(b"\x00\x09k", b"v")
            raise Boom
        assert dict(t.numbers) == {"a": 1, "b": 2, "c": 3}
        assert dict(t.other) == {}
        assert t.txn.get(b"\x00\x09k") is None
    assert numbers(db) == {"a": 1, "b": 2, "c": 3}


def test_an_exception_in_a_savepoint_goes_on_upwards(db: Any) -> None:
    with suppress(Boom), db.write() as t, t.txn.savepoint():
        t.numbers["a"] = 1
        raise Boom
    assert numbers(db) == {}


def test_the_transaction_does_not_end_inside_a_savepoint(db: Any) -> None:
    with db.write() as t:
        t.numbers["a"] = 1
        with t.txn.savepoint():
            t.numbers["b"] = 1
            for end in (t.txn.commit, t.txn.abort):
                with pytest.raises(zlmdb.DatabaseInUse, match="savepoint"):
                    end()
        t.numbers["c"] = 1
    assert numbers(db) == {"a": 1, "b": 1, "c": 1}


def test_savepoints_are_for_write_transactions(db: Any) -> None:
    with db.read() as t, pytest.raises(zlmdb.ReadonlyDatabase), t.txn.savepoint():
        pytest.fail("the block must not run")
    with pytest.raises(zlmdb.TransactionClosed), t.txn.savepoint():
        pytest.fail("the block must not run")


def test_tables_first_used_in_a_savepoint_go_on_after_it(db: Any) -> None:
    for fails in (False, True):
        with db.write() as t:
            with suppress(Boom), t.txn.savepoint():
                t.numbers["a"] = 1
                if fails:
                    raise Boom
            t.numbers["b"] = 2
            assert dict(t.numbers) == ({"b": 2} if fails else {"a": 1, "b": 2})
            t.numbers.clear()


def test_maps_first_used_in_a_savepoint_go_on_after_it(db: Any) -> None:
    names, by_name = zlmdb.MapOidString(5), zlmdb.MapStringOid(6)
    names.attach_index("by_name", by_name, lambda name: name)
    for fails in (True, False):
        with db.begin(write=True) as txn:
            with suppress(Boom), txn.savepoint():
                names[txn, 1] = "a"
                if fails:
                    raise Boom
            names[txn, 2] = "b"
            assert by_name[txn, "b"] == 2
            assert by_name[txn, "a"] == (None if fails else 1)
    with db.begin() as txn:
        assert list(by_name.select(txn)) == [("a", 1), ("b", 2)]


# -- hooks ------------------------------------------------------------------------------------------------------------


def test_hooks_of_an_undone_savepoint_are_told(db: Any) -> None:
    told: list[tuple[str, bool]] = []
    with db.write() as t:
        t.txn._hook(lambda committed: told.append(("outer", committed)))
        with suppress(Boom), t.txn.savepoint():
            t.txn._hook(lambda committed: told.append(("inner", committed)))
            raise Boom
        assert told == [("inner", False)]
    assert told == [("inner", False), ("outer", True)]


def test_hooks_do_not_outlive_an_aborted_transaction(db: Any) -> None:
    told: list[bool] = []
    txn = db.begin(write=True)
    with suppress(Boom), txn:
        txn._hook(told.append)
        raise Boom
    with txn:
        pass
    assert True not in told


def test_after_commit_runs_once_stored_and_not_when_undone(db: Any) -> None:
    done: list[Any] = []
    with db.write() as t:
        t.txn.after_commit(lambda: done.append(numbers(db)))
        with suppress(Boom), t.txn.savepoint():
            t.txn.after_commit(lambda: done.append("undone"))
            raise Boom
        with t.txn.savepoint():
            t.txn.after_commit(lambda: done.append("kept"))
        t.numbers["a"] = 1
        assert done == []
    assert done == [{"a": 1}, "kept"]
    with suppress(Boom), db.write() as t:
        t.txn.after_commit(lambda: done.append("aborted"))
        raise Boom
    db.run(lambda t: t.txn.after_commit(lambda: done.append("run")))
    assert done == [{"a": 1}, "kept", "run"]
    with db.read() as t, pytest.raises(zlmdb.ReadonlyDatabase):
        t.txn.after_commit(done.clear)


def test_what_runs_after_the_commit_may_write_and_may_fail(db: Any) -> None:
    done: list[Any] = []

    def write() -> None:
        with db.write() as t:
            t.numbers["after"] = 2

    def fail() -> None:
        raise Boom

    with pytest.raises(Boom), db.write() as t:  # noqa: PT012
        t.numbers["a"] = 1
        for work in (fail, write, fail, lambda: done.append("last")):
            t.txn.after_commit(work)
    assert done == ["last"]
    assert numbers(db) == {"a": 1, "after": 2}


def test_what_nobody_would_run_after_the_commit_is_refused(db: Any) -> None:
    async def later() -> None: ...

    def some() -> Any:
        yield 1

    with db.write() as t:
        t.numbers["a"] = 1
        for work in (later, partial(later), some, None):
            with pytest.raises(TypeError, match=r"'async' in it|'yield' in it|after_commit.None.: expected a function"):
                t.txn.after_commit(work)
    with pytest.raises(TypeError, match=r"later.. has 'async' in it.*: nobody awaits"), db.write() as t:  # noqa: PT012
        t.numbers["a"] = 2
        t.txn.after_commit(lambda: later())
    with db.write() as t:
        t.txn.after_commit(lambda: (one for one in [1]))
    assert numbers(db) == {"a": 2}


def test_run_does_not_repeat_what_is_stored(db: Any) -> None:
    runs = []

    def full() -> None:
        raise zlmdb.DatabaseFull("of another database", size=1)

    def work(t: Any) -> None:
        runs.append(1)
        t.numbers["a"] = 1
        t.txn.after_commit(full)
        t.txn._store.full = True

    with pytest.raises(zlmdb.DatabaseFull, match="another"):
        db.run(work)
    assert runs == [1]
    assert numbers(db) == {"a": 1}


def test_hooks_run_after_the_end(db: Any) -> None:
    seen: list[dict[str, int]] = []
    with db.write() as t:
        t.numbers["a"] = 1
        t.txn._hook(lambda committed: seen.append(numbers(db)))
    assert seen == [{"a": 1}]


# -- threads ----------------------------------------------------------------------------------------------------------


def in_thread(work: Callable[[], Any]) -> Any:
    """What *work* gives, or raises, in a thread of its own."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(300)
    assert not thread.is_alive(), "the thread hangs"
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


WRITES: dict[str, Callable[[Any], Any]] = {
    "setitem": lambda t: t.numbers.__setitem__("b", 1),
    "delitem": lambda t: t.numbers.__delitem__("a"),
    "clear": lambda t: t.numbers.clear(),
    "put_many": lambda t: t.numbers.put_many([("b", 1)]),
    "delete": lambda t: t.numbers.select().delete(),
    "raw put": lambda t: t.txn.put(b"\x00\x09k", b"v"),
    "raw delete": lambda t: t.txn.delete(b"\x00\x09k"),
    "savepoint": lambda t: t.txn.savepoint().__enter__(),
    "commit": lambda t: t.txn.commit(),
    "abort": lambda t: t.txn.abort(),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_transaction_belongs_to_its_thread(db: Any, name: str) -> None:
    with db.write() as t:
        t.numbers["a"] = 1
        with pytest.raises(zlmdb.WrongThread, match="thread"):
            in_thread(lambda: WRITES[name](t))
        assert dict(t.numbers) == {"a": 1}
    assert numbers(db) == {"a": 1}


def test_read_transactions_may_be_handed_to_a_thread(db: Any) -> None:
    with db.write() as t:
        t.numbers["a"] = 1
    with db.read() as t:
        assert in_thread(lambda: dict(t.numbers)) == {"a": 1}


def test_threads_write_one_after_the_other(db: Any) -> None:
    def work() -> None:
        for _ in range(20):
            with db.write() as t:
                t.numbers["n"] = t.numbers.get("n", 0) + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert numbers(db) == {"n": 80}


def test_a_second_write_on_one_thread_is_refused(db: Any) -> None:
    with db.write() as t:
        t.numbers["a"] = 1
        for begin in (
            lambda: db.write().__enter__(),
            lambda: db.begin(write=True).begin(),
            lambda: db.run(lambda t: None),
        ):
            with pytest.raises(zlmdb.NestedTransaction, match="savepoint"):
                begin()
        t.numbers["b"] = 2
    assert numbers(db) == {"a": 1, "b": 2}


def test_reading_beside_ones_own_write_sees_the_last_commit(db: Any) -> None:
    with db.write() as t:
        t.numbers["a"] = 1
        assert numbers(db) == {}
    assert numbers(db) == {"a": 1}


# -- waiting for the writer -------------------------------------------------------------------------------------------


def test_waiting_for_another_thread_times_out(db: Any) -> None:
    with db.write() as t:
        t.numbers["a"] = 1
        started = time.monotonic()
        with pytest.raises(zlmdb.WriterTimeout, match="thread") as caught:
            in_thread(lambda: db.write(timeout=0.05).__enter__())
        assert time.monotonic() - started > 0.04
        assert isinstance(caught.value, TimeoutError)
        with pytest.raises(zlmdb.WriterTimeout):
            in_thread(lambda: db.write(timeout=0).__enter__())
    with db.write(timeout=0) as t:
        t.numbers["b"] = 1


def test_the_timeout_of_open_is_that_of_its_transactions(make_db: Callable[..., Any]) -> None:
    db = make_db(Store, timeout=0.05)
    with db.write():
        for begin in (lambda: db.write().__enter__(), lambda: db.run(lambda t: None)):
            with pytest.raises(zlmdb.WriterTimeout):
                in_thread(begin)


def test_a_long_wait_is_logged(db: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlmdb.store.writerlock.PATIENCE", 0.02)
    begun = threading.Event()

    def writes() -> None:
        begun.set()
        with db.write() as t:
            t.numbers["b"] = 2

    with caplog.at_level(logging.WARNING, "zlmdb"), db.write() as t:
        thread = threading.Thread(target=writes)
        thread.start()
        begun.wait()
        deadline = time.monotonic() + 20
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.01)
        t.numbers["a"] = 1
    thread.join(20)
    assert "waiting for thread" in caplog.text
    assert numbers(db) == {"a": 1, "b": 2}


@one_file
def test_waiting_for_another_process_names_it(make_db: Callable[..., Any], tmp_path: Any, combo: str) -> None:
    db = make_db(Store, timeout=0.1)
    program = f"""if 1:
        import sys, zlmdb
        with zlmdb.open({str(tmp_path / "db")!r}) as db, db.write() as t:
            t["numbers"]["other"] = 1
            print("ready", flush=True)
            sys.stdin.readline()
    """
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(zlmdb.WriterTimeout, match=f"process {other.pid}") as caught:
            db.write().__enter__()
        assert caught.value.path is not None
        db.close()
        with pytest.raises(zlmdb.WriterTimeout, match=f"process {other.pid}"):
            make_db(Wider, timeout=0.05)
        other.communicate("go\n", timeout=300)
    with make_db(Store, timeout=0.1) as db:
        assert numbers(db) == {"other": 1}


@one_file
def test_a_killed_writer_lets_the_next_one_in(make_db: Callable[..., Any], tmp_path: Any, combo: str) -> None:
    db = make_db(Store, timeout=20)
    program = f"""if 1:
        import os, sys, zlmdb
        db = zlmdb.open({str(tmp_path / "db")!r})
        t = db.write().__enter__()
        t["numbers"]["lost"] = 1
        print("ready", flush=True)
        sys.stdin.readline()
        os._exit(9)
    """
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        other.communicate("die\n", timeout=300)
    with db.write() as t:
        assert dict(t.numbers) == {}
        t.numbers["a"] = 1
    assert numbers(db) == {"a": 1}


# -- statistics -------------------------------------------------------------------------------------------------------


def test_stats_count_what_was_written(db: Any) -> None:
    stats = zlmdb.TransactionStats()
    names = zlmdb.MapOidString(5)
    with db.begin(write=True, stats=stats) as txn:
        for i in range(10):
            names[txn, i] = "x"
        del names[txn, 3]
        del names[txn, 99]
        txn.put(b"\x00\x09k", b"v")
        txn.put(b"\x00\x09k", b"w", overwrite=False)
        txn.delete(b"\x00\x09k")
        assert (stats.puts, stats.dels) == (11, 2)
    assert (stats.puts, stats.dels) == (11, 2)


def test_stats_count_index_entries(db: Any) -> None:
    stats = zlmdb.TransactionStats()
    names, by_name = zlmdb.MapOidString(5), zlmdb.MapStringOid(6)
    names.attach_index("by_name", by_name, lambda name: name)
    with db.begin(write=True, stats=stats) as txn:
        names[txn, 1] = "a"
        assert (stats.puts, stats.dels) == (2, 0)
        names[txn, 1] = "a"
        assert (stats.puts, stats.dels) == (3, 0)
        names[txn, 1] = "b"
        assert (stats.puts, stats.dels) == (5, 1)
        del names[txn, 1]
        assert (stats.puts, stats.dels) == (5, 3)


def test_stats_do_not_count_what_a_savepoint_undid(db: Any) -> None:
    stats = zlmdb.TransactionStats()
    names = zlmdb.MapOidString(5)
    with db.begin(write=True, stats=stats) as txn:
        names[txn, 1] = "a"
        with suppress(Boom), txn.savepoint():
            names[txn, 2] = "b"
            del names[txn, 1]
            raise Boom
        with txn.savepoint():
            names[txn, 3] = "c"
        assert (stats.puts, stats.dels) == (2, 0)
        assert (txn._puts, txn._dels) == (2, 0)


@pytest.mark.parametrize("end", ["raise", "abort", "lost", "savepoint"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_stats_do_not_count_what_was_aborted(db: Any, end: str) -> None:
    stats = zlmdb.TransactionStats()
    names = zlmdb.MapOidString(5)
    with db.begin(write=True, stats=stats) as txn:
        names[txn, 1] = "a"
    with suppress(Boom), db.begin(write=True, stats=stats) as txn:
        names[txn, 2] = "b"
        del names[txn, 1]
        assert (stats.puts, stats.dels) == (2, 1)
        if end == "raise":
            raise Boom
        if end == "savepoint":
            with txn.savepoint():
                names[txn, 3] = "c"
                raise Boom
        if end == "abort":
            txn.abort()
        else:
            txn._leave_savepoints()
            txn._abandon()
    assert (stats.puts, stats.dels) == (1, 0)
    with db.begin(write=True, stats=stats) as txn:
        names[txn, 2] = "b"
    assert (stats.puts, stats.dels) == (2, 0)


def test_stats_that_were_reset_do_not_fall_below_zero(db: Any) -> None:
    stats = zlmdb.TransactionStats()
    with db.begin(write=True, stats=stats) as txn:
        zlmdb.MapOidString(5)[txn, 1] = "a"
        stats.reset()
        txn.abort()
    assert (stats.puts, stats.dels) == (0, 0)


def test_stats_freeze_at_the_end(db: Any) -> None:
    stats = zlmdb.TransactionStats()
    before = time.time_ns()
    assert stats.started <= before
    assert stats.duration >= 0
    first = stats.duration
    time.sleep(0.002)
    assert stats.duration > first
    with db.begin(write=True, stats=stats):
        time.sleep(0.002)
    frozen = stats.duration
    assert frozen >= 4_000_000
    time.sleep(0.002)
    assert stats.duration == frozen


def test_stats_add_up_and_are_reset(db: Any) -> None:
    stats = zlmdb.TransactionStats()
    for _ in range(3):
        with db.begin(write=True, stats=stats) as txn:
            txn.put(b"\x00\x09k", b"v")
    assert stats.puts == 3
    started = stats.started
    time.sleep(0.001)
    stats.reset()
    assert (stats.puts, stats.dels) == (0, 0)
    assert stats.started > started


# -- asyncio ----------------------------------------------------------------------------------------------------------


def test_fifty_tasks_of_a_loop_write_through_threads(db: Any) -> None:
    def add(t: Any) -> int:
        t.numbers["a"] = number = t.numbers.get("a", 0) + 1
        return int(number)

    async def fifty() -> list[int]:
        return await asyncio.wait_for(asyncio.gather(*[asyncio.to_thread(db.run, add) for _ in range(50)]), 60)

    assert sorted(asyncio.run(fifty())) == list(range(1, 51))
    assert numbers(db) == {"a": 50}


def test_a_task_that_awaits_in_a_transaction_makes_no_other_wait_for_ever(db: Any) -> None:
    async def slow(begun: asyncio.Event, go_on: asyncio.Event) -> None:
        with db.write() as t:
            t.numbers["a"] = 1
            begun.set()
            await go_on.wait()

    async def both() -> None:
        begun, go_on = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(slow(begun, go_on))
        await begun.wait()
        with pytest.raises(zlmdb.NestedTransaction):
            db.write().__enter__()
        with db.read() as t:
            assert dict(t.numbers) == {}
        go_on.set()
        await task

    asyncio.run(both())
    assert numbers(db) == {"a": 1}


# -- garbage ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default::ResourceWarning")
@pytest.mark.parametrize("write", [False, True])
def test_a_transaction_collected_open_is_aborted_with_a_warning(db: Any, write: bool) -> None:
    t = db.write().__enter__() if write else db.read()
    if write:
        t.numbers["lost"] = 1
    with pytest.warns(ResourceWarning, match="never ended"):  # noqa: PT031
        del t
        gc.collect()
        gc.collect()
    assert numbers(db) == {}
    with db.write() as t:
        t.numbers["a"] = 1
    assert numbers(db) == {"a": 1}


def collected_elsewhere(held: list[Any], when: str = "begins the next one") -> None:
    """Give up the transaction that *held* has, in another thread; the warning says *when* it is aborted."""

    def give_up() -> None:
        held.clear()
        gc.collect()
        gc.collect()

    with pytest.warns(ResourceWarning, match=when):  # noqa: PT031
        other = threading.Thread(target=give_up)
        other.start()
        other.join()


@on_disk
@pytest.mark.filterwarnings("default::ResourceWarning")
@pytest.mark.parametrize("savepoint", [False, True])
def test_a_write_transaction_collected_in_another_thread_ends_in_its_own(
    make_db: Callable[..., Any], combo: str, savepoint: bool
) -> None:
    db = make_db(Store)
    held = [db.begin(write=True).begin()]
    held[0].put(b"\x00\x09k", b"v")
    if savepoint:
        held.append(held[0].savepoint())
        held[1].__enter__()
    collected_elsewhere(held)
    refused: list[Exception] = []

    def write_elsewhere() -> None:
        try:
            db.write(timeout=0.01).__enter__().txn.abort()
        except zlmdb.WriterTimeout as error:
            refused.append(error)

    other = threading.Thread(target=write_elsewhere)
    other.start()
    other.join()
    assert f"thread {threading.get_ident()} of this process" in str(refused[0])
    with db.write() as t:
        assert t.txn.get(b"\x00\x09k") is None
        t.numbers["a"] = 1
    other = threading.Thread(target=write_elsewhere)
    other.start()
    other.join()
    assert len(refused) == 1
    assert numbers(db) == {"a": 1}


def test_a_writer_in_a_thread_that_python_did_not_begin_is_not_taken_for_dead(db: Any) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def write() -> None:  # as a thread of Qt, or of a library in C++
        try:
            with db.write() as t:
                t.numbers["a"] = 1
                begun.set()
                go_on.wait(30)
                t.numbers["b"] = 2
        except BaseException as error:
            failed.append(error)
        ended.set()

    _thread.start_new_thread(write, ())
    assert begun.wait(30)
    with pytest.raises(zlmdb.WriterTimeout):
        db.write(timeout=0.1).__enter__()
    go_on.set()
    with db.write() as t:
        t.numbers["c"] = 3
    assert ended.wait(30)
    assert not failed
    assert numbers(db) == {"a": 1, "b": 2, "c": 3}


@on_disk
@pytest.mark.filterwarnings("default::ResourceWarning")
def test_a_write_transaction_that_was_lost_does_not_outlive_its_thread(
    make_db: Callable[..., Any], combo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlmdb.store.writerlock.PATIENCE", 0.05)
    db = make_db(Store)
    held: list[Any] = []
    begun, stop = threading.Event(), threading.Event()

    def owner() -> None:
        held.append(db.write().__enter__())
        begun.set()
        stop.wait(30)

    thread = threading.Thread(target=owner)
    thread.start()
    begun.wait(30)
    collected_elsewhere(held)
    ended = threading.Timer(0.2, stop.set)
    ended.start()
    with db.write() as t:  # waits, until the owner has ended
        t.numbers["a"] = 1
    thread.join()
    assert numbers(db) == {"a": 1}


@on_disk
@pytest.mark.filterwarnings("default::ResourceWarning")
def test_a_database_with_a_lost_write_transaction_closes(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Store)
    collected_elsewhere([db.write().__enter__()])
    db.close()
    assert not db.is_open


@pytest.mark.filterwarnings("default::ResourceWarning")
def test_in_memory_a_lost_write_transaction_ends_at_once_in_any_thread() -> None:
    with zlmdb.open(None, Store) as db:
        collected_elsewhere([db.write().__enter__()], "aborted now")
        with db.write(timeout=0) as t:
            t.numbers["a"] = 1
        assert numbers(db) == {"a": 1}


@pytest.mark.filterwarnings("default::ResourceWarning")
def test_a_write_transaction_of_a_thread_that_has_ended_is_aborted_at_once(db: Any) -> None:
    held: list[Any] = []
    other = threading.Thread(target=lambda: held.append(db.write().__enter__()))
    other.start()
    other.join()
    with pytest.warns(ResourceWarning, match="aborted now"):  # noqa: PT031
        held.clear()
        gc.collect()
        gc.collect()
    with db.write() as t:
        t.numbers["a"] = 1
    assert numbers(db) == {"a": 1}


@pytest.mark.filterwarnings("default::ResourceWarning")
def test_an_iteration_left_in_the_middle_holds_no_transaction(db: Any) -> None:
    with db.write() as t:
        t.numbers.update(a=1, b=2)
    rows = iter(db.read().numbers.select())
    assert next(rows) == ("a", 1)
    with pytest.warns(ResourceWarning, match="never ended"):  # noqa: PT031
        del rows
        gc.collect()
        gc.collect()
    db.close()


# -- engine errors ----------------------------------------------------------------------------------------------------


class Failing:
    """An engine's transaction of which one method fails."""

    def __init__(self, raw: Any, method: str, error: Exception) -> None:
        self._raw = raw
        self._method = method
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if name != self._method:
            return getattr(self._raw, name)

        def fail(*args: Any, **kwargs: Any) -> Any:
            raise self._error

        return fail


@pytest.mark.parametrize("error", [zlmdb.lmdb.DiskError("broken"), zlmdb.lmdb.CorruptedError("broken")], ids=repr)
@on_disk
def test_an_engine_error_poisons_the_transaction(make_db: Callable[..., Any], combo: str, error: Exception) -> None:
    db = make_db(Store)
    with pytest.raises(zlmdb.TransactionPoisoned, match="broken") as caught:  # noqa: PT012, SIM117
        with db.write() as t:
            t.numbers["a"] = 1
            t.numbers._use(Failing(t.txn._engine_txn, "put", error))
            with pytest.raises((zlmdb.DiskError, zlmdb.CorruptDatabase)) as first:
                t.numbers["b"] = 2
            assert first.value.__cause__ is error
            assert first.value.table == "numbers"
    assert caught.value.__cause__ is first.value
    assert numbers(db) == {}
    with db.write() as t:
        t.numbers["c"] = 3
    assert numbers(db) == {"c": 3}


@on_disk
def test_a_poisoned_savepoint_poisons_the_transaction(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Store)
    with pytest.raises(zlmdb.TransactionPoisoned):  # noqa: PT012, SIM117
        with db.write() as t:
            with t.txn.savepoint():
                t.numbers["a"] = 1
                t.numbers._use(Failing(t.txn._engine_txn, "put", zlmdb.lmdb.DiskError("broken")))
                with suppress(zlmdb.DiskError):
                    t.numbers["b"] = 2
            assert dict(t.numbers) == {}
    assert numbers(db) == {}


class Person(NamedTuple):
    name: str
    age: int


class People(zlmdb.Table[int, Person]):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_age = zlmdb.Index[int]("age")


class Interrupting(Failing):
    """Some calls of the method work before all others fail: in the midst of a statement, where a signal may come."""

    def __init__(self, raw: Any, method: str, error: Any, working: int) -> None:
        super().__init__(raw, method, error)
        self._left = working

    def __getattr__(self, name: str) -> Any:
        if name != self._method:
            return getattr(self._raw, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise self._error
            return getattr(self._raw, name)(*args, **kwargs)

        return call


STATEMENTS: dict[str, Callable[[Any], Any]] = {
    "insert": lambda people: people.__setitem__(3, Person("Cid", 50)),
    "update": lambda people: people.__setitem__(1, Person("Cid", 50)),
    "delete": lambda people: people.__delitem__(1),
    "refused": lambda people: people.__setitem__(3, Person("Ann", 50)),
}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), TimeoutError()], ids=repr)
@pytest.mark.parametrize(
    ("statement", "method", "working"),
    [("insert", "put", 1), ("insert", "put", 2), ("update", "put", 2), ("update", "put", 3), ("update", "delete", 0),
     ("update", "delete", 1), ("delete", "delete", 1), ("delete", "delete", 2), ("refused", "delete", 0)],
)  # fmt: skip
def test_a_statement_that_was_interrupted_is_not_committed(
    make_db: Callable[..., Any], error: Any, statement: str, method: str, working: int
) -> None:
    class Peopled(zlmdb.Schema):
        people: People

    db = make_db(Peopled)
    with db.write() as t:
        t.people[1] = Person("Ann", 30)
    with pytest.raises(zlmdb.TransactionPoisoned), db.write() as t:  # noqa: PT012
        t.people[2] = Person("Ben", 40)
        t.people._use(Interrupting(t.txn._engine_txn, method, error, working))
        with pytest.raises((type(error), zlmdb.Error)):
            STATEMENTS[statement](t.people)
    with db.read() as t:
        assert dict(t.people) == {1: Person("Ann", 30)}
    assert db.check().ok


@on_disk
def test_after_a_fatal_error_the_database_is_opened_anew(
    make_db: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, combo: str
) -> None:
    """LMDB stops an environment when it could not write its last page; py-lmdb closes one that could not be resized."""
    db = make_db(Store)
    with db.write() as t:
        t.numbers["a"] = 1

    class Stopped:
        def __init__(self, env: Any) -> None:
            self.env = env

        def begin(self, *args: Any, **options: Any) -> Any:
            raise zlmdb.lmdb.PanicError("MDB_PANIC: Update of meta page failed")

        def __getattr__(self, name: str) -> Any:
            return getattr(self.env, name)

    with db.read() as reader:
        db._open_store.env = Stopped(db._open_store.env)
        with pytest.raises(zlmdb.DatabaseInUse, match="1 open"), db.write():
            pass
        assert dict(reader.numbers) == {"a": 1}
    with db.write() as t:
        t.numbers["b"] = 2
    db._open_store.env.close()
    assert numbers(db) == {"a": 1, "b": 2}


@on_disk
def test_a_failed_commit_raises_and_ends_the_transaction(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Store)
    told: list[bool] = []
    txn = db.begin(write=True)
    with pytest.raises(zlmdb.DiskError, match="broken"):  # noqa: PT012, SIM117
        with txn:
            txn.put(b"\x00\x09k", b"v")
            txn._hook(told.append)
            raw = txn._engine_txn
            txn._raw = Failing(raw, "commit", zlmdb.lmdb.DiskError("broken"))
    raw.abort()
    with txn:
        txn.put(b"\x00\x09l", b"v")
    assert True not in told
    with db.begin() as txn:
        assert txn.get(b"\x00\x09k") is None
        assert txn.get(b"\x00\x09l") == b"v"


@pytest.fixture
def full(make_db: Callable[..., Any]) -> Any:
    return make_db(Store, maxsize=1 << 18)


def fill(t: Any) -> None:
    for i in range(100_000):
        t.other[f"k{i:06}" + "x" * 400] = i


def test_a_full_database_keeps_earlier_commits_and_stays_usable(full: Any) -> None:
    with full.write() as t:
        t.numbers["a"] = 1
    with pytest.raises(zlmdb.DatabaseFull, match="size|room|full"), full.write() as t:
        fill(t)
    assert numbers(full) == {"a": 1}
    with full.read() as t:
        assert len(t.other) == 0
    with full.write() as t:
        t.numbers["b"] = 2
    assert numbers(full) == {"a": 1, "b": 2}


def test_a_full_database_poisons_the_transaction(full: Any) -> None:
    with pytest.raises(zlmdb.TransactionPoisoned) as caught:  # noqa: PT012, SIM117
        with full.write() as t:
            t.numbers["a"] = 1
            with suppress(zlmdb.DatabaseFull):
                fill(t)
    assert isinstance(caught.value.__cause__, zlmdb.DatabaseFull)
    assert numbers(full) == {}


def test_a_full_database_has_room_again_after_deleting(full: Any) -> None:
    count = 0
    with suppress(zlmdb.DatabaseFull):
        while True:
            with full.write() as t:
                t.other.put_many((f"k{i:06}" + "x" * 400, i) for i in range(count, count + 20))
            count += 20
    assert count > 0
    with full.read() as t:
        assert len(t.other) == count
        assert sorted(t.other.values()) == list(range(count))
    with full.write() as t:
        t.other.clear()
    with full.write() as t:
        t.other.put_many((f"k{i:06}" + "x" * 400, i) for i in range(20))


def test_run_does_not_repeat_where_the_limit_is_hard(full: Any) -> None:
    runs = []

    def work(t: Any) -> None:
        runs.append(1)
        fill(t)

    with pytest.raises(zlmdb.DatabaseFull):
        full.run(work)
    assert len(runs) == 1


def test_transactions_have_slots() -> None:
    assert not hasattr(Transaction.__new__(Transaction), "__dict__")
