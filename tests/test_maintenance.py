"""Transactions take the short way only while there is nothing else to do, and what comes in between is not missed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from zlmdb.store.blocks import COUNTS_REFERENCES
from zlmdb.store.gate import Gate
from zlmdb.store.transaction import Transaction

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[str, int]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Any]:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        for at in range(4):
            write(db, at)
            read(db)
        yield db


def write(db: Any, value: int) -> None:
    with db.write() as t:
        t.numbers["a"] = value


def read(db: Any) -> int:
    with db.read() as t:
        found: int = t.numbers["a"]
    return found


def is_quiet(db: Any) -> tuple[bool, bool]:
    quiet = db._open_store.quiet
    return quiet.reads > 0, quiet.writes > 0


def test_after_some_transactions_there_is_nothing_else_to_do(db: Any) -> None:
    assert is_quiet(db) == (True, True)


@pytest.mark.skipif(
    not COUNTS_REFERENCES,
    reason="without counted references the tables of a read are made anew each time",
)
def test_a_read_through_a_gate_has_the_tables_of_the_one_before(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "limited", Store, maxsize=1 << 22, durability="none") as db:
        write(db, 1)
        for _ in range(4):
            read(db)
        with db.read() as t:
            assert db._open_store.gate is not None
            assert [*t.txn._tables] == ["numbers"]
            assert t.numbers["a"] == 1


def test_a_read_that_finds_the_environment_opened_anew_leaves_the_gate_that_is_there_then(db: Any) -> None:
    """It took the short way, failed, and was counted as inside for as long as its object was not used again."""
    store, gate = db._open_store, Gate()
    env = store.env

    class Closed:
        def begin(self) -> None:
            store.env, store.gate = env, gate  # meanwhile, read-only for the time being
            raise AttributeError("closed")

    store.env = Closed()
    with db.begin():
        assert len(gate._inside) == 1
    assert gate._inside == {}
    store.gate = None


def test_a_gate_that_was_put_up_is_gone_through(db: Any) -> None:
    gate = db._open_store.gate = Gate()
    for _ in range(2):  # the first one looks around, and still finds it
        with db.read():
            assert len(gate._inside) == 1
        with db.write() as t:
            t.numbers["a"] = 7
            assert len(gate._inside) == 1
        assert gate._inside == {}
        assert is_quiet(db) == (False, False)
    db._open_store.gate = None
    write(db, 8)
    assert is_quiet(db) == (True, True)


def test_what_was_put_off_is_done_by_the_next_write(db: Any) -> None:
    done: list[object] = []
    db._open_store.put_off(done.append)
    assert read(db) == 3
    assert (done, is_quiet(db)) == ([], (True, False))
    write(db, 5)
    assert len(done) == 1
    write(db, 6)
    assert (len(done), is_quiet(db)) == (1, (True, True))


def test_a_full_map_grows_before_the_next_write(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grown: list[int] = []
    store = db._open_store
    store.full = True
    monkeypatch.setattr(store, "make_room", lambda: grown.append(1))
    write(db, 5)
    assert grown == [1]


def test_what_comes_while_another_thread_looks_is_not_missed(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = db._open_store
    store.disturb()

    class Late(set[bytes]):
        """The first look finds nothing, and right after it there is something."""

        def __bool__(self) -> bool:
            store.gate = gate
            return False

    gate = Gate()
    monkeypatch.setattr(store, "wanted", Late())
    store.look_around()
    assert store.gate is gate
    assert is_quiet(db) == (False, False)


def test_a_new_limit_for_long_reads_is_minded_by_the_next_one(db: Any, caplog: pytest.LogCaptureFixture) -> None:
    kept = db.read()
    assert is_quiet(db) == (True, True)
    db.long_read = 0.0
    read(db)
    assert "a read transaction of" in caplog.text
    kept.txn.abort()


def limited(path: Path) -> Any:
    """A database whose map may have to move, so its transactions go through a gate."""
    db = zlmdb.open(path / "limited", Store, maxsize=1 << 22, durability="none")
    for at in range(4):
        write(db, at)
        read(db)
    return db


@pytest.mark.skipif(not COUNTS_REFERENCES, reason="where references are not counted, writes have no short way")
def test_a_transaction_takes_the_short_way_through_a_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with limited(tmp_path) as db:
        gate = db._open_store.gate
        for general in ("_begin", "_leave", "commit"):
            monkeypatch.setattr(Transaction, general, None)
        for value in range(3):
            with db.write() as t:
                t.numbers["a"] = value
                assert len(gate._inside) == 1
            with db.read() as t:
                assert t.numbers["a"] == value
                assert len(gate._inside) == 1
            assert gate._inside == {}


@pytest.mark.skipif(not COUNTS_REFERENCES, reason="where references are not counted, each transaction is made anew")
def test_who_waited_at_the_gate_has_the_handles_of_now(tmp_path: Path) -> None:
    with limited(tmp_path) as db:
        store = db._open_store

        class Slow(Gate):
            def admit(self, txn: Any) -> bool:
                if changes:
                    store.sequence += 1  # as if the environment had been opened anew meanwhile
                return super().admit(txn)

        changes = False
        store.gate = Slow()
        read(db)
        read(db)
        before, changes = store.sequence, True
        with db.read() as t:
            assert t.txn._sequence == store.sequence == before + 1


def test_operations_without_a_block_take_the_short_way_through_a_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with limited(tmp_path) as db:
        numbers, gate, seen = db.auto.numbers, db._open_store.gate, [0][:0]
        numbers["a"] = 1
        numbers.get("a")

        class Seen(Gate):
            def leave(self, who: object) -> None:
                seen.append(len(gate._inside))
                gate.leave(who)

            def admit(self, txn: Any) -> bool:
                gate.admit(txn)
                txn._odd = self
                return True

        db._open_store._gate = Seen()
        monkeypatch.setattr(type(db), "read", None)
        if COUNTS_REFERENCES:
            monkeypatch.setattr(type(db), "write", None)
            numbers["a"] = 2
        assert numbers["a"] == numbers.get("a") == 1 + COUNTS_REFERENCES
        assert "b" not in numbers
        assert seen == [1] * (3 + COUNTS_REFERENCES)
        assert gate._inside == {}
        db._open_store._gate = gate
        monkeypatch.undo()


def test_an_operation_without_a_block_is_refused_in_a_full_file(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "full", Store, maxsize=1 << 16, durability="none") as db:
        numbers, stored = db.auto.numbers, 0
        with pytest.raises(zlmdb.DatabaseFull, match="delete records"):  # noqa: PT012
            while True:
                numbers[f"{stored:0200}"] = 1
                stored += 1
        assert len(numbers) == stored > 50
        for number in range(stored):
            del numbers[f"{number:0200}"]
        assert len(numbers) == 0
        assert db._open_store.gate._inside == {}


def test_who_waits_until_all_have_left_is_told_although_an_interrupt_came() -> None:
    gate, done = Gate(), threading.Event()
    gate.enter(done)

    def wait() -> None:
        with gate.alone(60) as alone:
            seen.append(alone)
        done.set()

    seen: list[bool] = []
    thread = threading.Thread(target=wait)
    thread.start()
    while not gate._shut:
        time.sleep(0.001)
    time.sleep(0.02)
    gate._inside.clear()  # so far it came
    gate.leave(done)
    assert done.wait(10)
    thread.join()
    assert seen == [True]


def test_room_is_asked_for_from_time_to_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with limited(tmp_path) as db:
        store, asked = db._open_store, [0]
        ask = store.engine.require_room

        def require_room(*args: Any) -> float:
            asked[0] += 1
            return float("inf") if asked[0] == 3 else ask(*args) - 3600.0

        monkeypatch.setattr(store.engine, "require_room", require_room)
        store.disturb()
        for value in range(6):
            write(db, value)
        assert asked == [3]


def test_nobody_is_inside_while_one_is_alone() -> None:
    gate, done = Gate(), threading.Event()
    inside: set[int] = set()
    seen: list[tuple[bool, int]] = []

    def come_and_go(number: int) -> None:
        while not done.is_set():
            gate.enter(names[number])
            inside.add(number)
            inside.discard(number)
            gate.leave(names[number])

    names = [object() for _ in range(3)]
    threads = [threading.Thread(target=come_and_go, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            with gate.alone(10) as alone:
                seen.append((alone, len(inside)))
                time.sleep(0.0005)
                seen.append((alone, len(inside)))
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert set(seen) == {(True, 0)}
    assert gate._inside == {}
