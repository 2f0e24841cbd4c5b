"""Readers: none wrecks the file. Slots of killed ones are freed, and those that stay open for long are named."""

from __future__ import annotations

import logging
import math
import os
import signal
import struct
import subprocess
import sys
import textwrap
import time
import weakref
from pathlib import Path
from typing import Any

import lmdb
import pytest

import zlmdb
from zlmdb.engines.lmdb import engine, presence
from zlmdb.engines.lmdb.errors import translate
from zlmdb.store import schemawrite, transaction
from zlmdb.store.live import LiveTransactions
from zlmdb.store.readers import Ages, readers
from zlmdb.systems import HAS_BYTE_LOCKS

from . import workers

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


class Store(zlmdb.Schema):
    rows: zlmdb.Table[int, bytes]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data")


def test_a_long_read_is_logged_with_the_line_that_began_it(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with zlmdb.open(path, Store) as db:
        assert db.long_read == 60
        db.long_read = 0.0
        forgotten = db.read()
        line = sys._getframe().f_lineno - 1
        with caplog.at_level(logging.WARNING, logger="zlmdb"):
            for _ in range(3):
                with db.write() as t:
                    t.rows[1] = b"x"
        told = [record.message for record in caplog.records if "has been open" in record.message]
        assert len(told) == 1, "once, not with every transaction"
        assert f"{__file__}:{line}:" in told[0]
        assert repr(path) in told[0]
        db.long_read = math.inf
        forgotten.txn.abort()


def test_a_long_read_that_nobody_noticed_is_logged_when_it_ends(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with zlmdb.open(path, Store) as db, caplog.at_level(logging.WARNING, logger="zlmdb"):
        db.long_read = 0.0
        with db.read():
            line = sys._getframe().f_lineno - 1
        [told] = [record.message for record in caplog.records if "was open" in record.message]
        assert f"{__file__}:{line}:" in told
        caplog.clear()

        def work(t: Store) -> int:
            return len(t.rows)

        db.run(work, write=False)
        assert f"{__file__}:{work.__code__.co_firstlineno}:" in caplog.text


def test_a_read_that_has_not_begun_yet_is_none(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with zlmdb.open(path, Store) as db:
        waiting = zlmdb.Transaction(db._open_store)
        begin = type(db._open_store).begin

        def late(store: Any, *args: Any, **options: Any) -> Any:
            monkeypatch.undo()
            assert [one.age for one in db.readers() if one.age is not None] == []
            db.long_read = 0
            with db.read():  # looks at all that are open
                pass
            return begin(store, *args, **options)

        monkeypatch.setattr(type(db._open_store), "begin", late)
        with waiting:
            assert len([one for one in db.readers() if one.age is not None]) == 1


class Ends:
    """A read transaction that another thread ends as soon as it was found open."""

    _write = _brief = False
    _since = 1.0

    @property
    def _begun(self) -> bool:
        self._since = 0.0
        return True

    def id(self) -> int:
        return 7


def test_a_read_that_ends_while_others_are_looked_at_was_not_open_since_the_start_of_the_machine(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = Ends()
    known: Any = {1: weakref.ref(one)}
    live = LiveTransactions(known)
    ages = Ages()
    ages.look(1e9, live.reading())
    ages.ended(one)
    assert caplog.messages == []
    [reader] = readers([(os.getpid(), 7)], live.reading())
    assert reader.age is None


def test_short_reads_and_writes_are_not_logged(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with zlmdb.open(path, Store) as db, caplog.at_level(logging.WARNING, logger="zlmdb"):
        for _ in range(3):
            with db.write() as t, db.read():
                t.rows[1] = b"x"
        db.long_read = 0.0
        with db.write() as t:
            t.rows[1] = b"x"
        db.long_read = math.inf
        with db.read():
            pass
    assert caplog.records == []


def test_readers_names_its_own_with_age_and_place(path: str) -> None:
    with zlmdb.open(path, Store) as db, db.read():
        line = sys._getframe().f_lineno - 1
        [reader] = [reader for reader in db.readers() if reader.snapshot is not None]
        assert reader.pid == os.getpid()
        assert reader.age is not None
        assert 0 <= reader.age < 60
        assert reader.opened == f"{__file__}:{line}"
    with zlmdb.open(None, Store) as db, db.read():
        assert db.readers() == []
        assert db.clear_readers() == 0


READING = """
import os, signal, sys, zlmdb
db = zlmdb.open(sys.argv[1])
taken = [db.read() for _ in range(int(sys.argv[2]))]
print("reading", flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_reader(path: str, transactions: int = 1) -> Any:
    """A process that reads; closing its input kills it."""
    reader = subprocess.Popen(
        [sys.executable, "-c", READING, path, str(transactions)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"reading\n"
    return reader


def kill(reader: Any) -> None:
    reader.stdin.close()
    assert reader.wait(60) == -signal.SIGKILL
    reader.stdout.close()


@posix
def test_slots_of_killed_readers_are_freed_on_request_and_by_opening(path: str) -> None:
    with zlmdb.open(path, Store) as db:
        reader = killed_reader(path, 50)
        assert len([one for one in db.readers() if one.pid == reader.pid]) == 50
        assert db.clear_readers() == 0
        kill(reader)
        assert len([one for one in db.readers() if one.pid == reader.pid]) == 50
        assert db.clear_readers() == 50
        kill(killed_reader(path, 7))
    with zlmdb.open(path, Store) as db:
        assert [one for one in db.readers() if one.pid != os.getpid()] == []


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@posix
def test_slots_of_killed_readers_are_freed_when_the_table_is_full(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_READERS", 60)
    with zlmdb.open(path, Store) as db:
        dead = killed_reader(path, 50)
        kill(dead)
        taken = [db.read() for _ in range(40)]
        assert len(taken) == 40
        more = pytest.raises(zlmdb.DatabaseFull, match="reader slots")
        with more:
            taken.extend(db.read() for _ in range(30))
        for t in taken:
            t.txn.abort()
        with db.read():
            pass


@pytest.mark.once  # its process has to start
@posix
def test_slots_of_killed_readers_are_freed_for_the_second_reader_of_a_backup(
    path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """LMDB begins one of its own to write a compact copy. So it is with the slots that PyPy's collector has to free."""
    monkeypatch.setattr(engine, "MAX_READERS", 60)
    with zlmdb.open(path, Store) as db:
        kill(killed_reader(path, 50))
        taken = [db.read()]
        while len(db.readers()) < 59:
            taken.append(db.read())
        assert len(taken) < 10
        db.backup(tmp_path / "copy", compact=True)
        for t in taken:
            t.txn.abort()


@posix
def test_a_killed_reader_does_not_make_the_file_grow_for_ever(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlmdb.store.environment._LOOK_AGAIN", 0.0)
    data = os.path.join(path, "data.mdb")
    with zlmdb.open(path, Store, durability="none") as db:

        def rewrite() -> int:
            for i in range(25):
                with db.write() as t:
                    t.rows.put_many((n, bytes([i]) * 2000) for n in range(50))
            return os.path.getsize(data)

        alone = rewrite()
        reader = killed_reader(path)
        pinned = rewrite()
        assert pinned > 4 * alone, "the snapshot is kept, and the file grows"
        kill(reader)
        rewrite()
        settled = rewrite()
        assert rewrite() == settled


@posix
def test_writers_look_for_killed_readers_ten_times_a_second(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy writer makes the file grow by a hundred megabytes a second meanwhile."""
    now, looks = [time.monotonic() + 60], [0]
    with zlmdb.open(path, Store, durability="none") as db:
        clear = db._open_store.clear_readers

        def counted() -> int:
            looks[0] += 1
            return clear()

        monkeypatch.setattr(db._open_store, "clear_readers", counted)
        for module in (transaction, schemawrite):
            monkeypatch.setattr(module, "_clock", lambda: now[0])
        for number in range(20):
            now[0] += 0.11
            with db.write() as t:
                t.rows[number] = b""
    assert looks[0] == 20


def test_there_are_slots_for_a_thousand_readers(path: str) -> None:
    with zlmdb.open(path, Store) as db:
        taken = [db.read() for _ in range(1000)]
        assert sum(one.snapshot is not None for one in db.readers()) == 1000
        for t in taken:
            t.txn.abort()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_snapshots_that_were_dropped_do_not_use_the_slots_up(path: str) -> None:
    """Also where the collector comes late, as on PyPy."""
    with zlmdb.open(path, Store) as db:
        for _ in range(2500):
            assert len(db.read().rows) == 0


def test_a_long_read_that_ends_with_the_interpreter_does_not_import(path: str) -> None:
    program = """
        import logging, sys, time, zlmdb
        class Store(zlmdb.Schema):
            rows: zlmdb.Table[int, int]
        db = zlmdb.open(sys.argv[1], Store)
        db._open_store.ages.warn_after(0.001)
        t = db.read()
        len(t.rows)
        time.sleep(0.01)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), path]
    assert "Traceback" not in subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has locks that belong to an open file and stay with it")
@pytest.mark.once
@pytest.mark.parametrize(
    ("way", "lib_version"),
    [("lmdb", "0.9"), ("zlmdb", "0.9"), ("zlmdb", "1.0")],  # lmdb alone opens files of 0.9
)
def test_a_reader_stays_known_when_its_program_copies_the_directory(way: str, lib_version: Any, tmp_path: Path) -> None:
    """To close a descriptor of the lock file ended LMDB's locks on it, and the next program cleared the readers."""
    program = """
        import shutil, subprocess, sys
        import zlmdb

        class Store(zlmdb.Schema):
            rows: zlmdb.Table[int, str]

        path, other, lib_version = sys.argv[1:]
        with zlmdb.open(path, Store, lib_version=lib_version, durability="none") as db:
            with db.write() as t:
                t.rows.put_many([(n, f"first {n}") for n in range(5000)])
            with db.read() as t:
                rows = iter(t.rows.values())
                next(rows)
                shutil.copytree(path, path + " copied")
                subprocess.run([sys.executable, "-c", other, path], check=True)
                print(sum(row.startswith("first") for row in rows))
    """
    others = {
        "lmdb": """
            import sys, lmdb
            with lmdb.open(sys.argv[1], max_dbs=9, map_size=1 << 30) as env:
                assert env.reader_check() == 0
                [name] = [key for key in env.begin().cursor().iternext(values=False) if b"rows" in key]
                rows = env.open_db(name)
                for turn in range(30):
                    with env.begin(write=True, db=rows) as txn:
                        for key, value in list(txn.cursor()):
                            txn.put(key, value[:-1] + b"!")
        """,
        "zlmdb": """
            import sys, zlmdb
            class Store(zlmdb.Schema):
                rows: zlmdb.Table[int, str]
            with zlmdb.open(sys.argv[1], Store, durability="none") as db:
                assert db.clear_readers() == 0
                for turn in range(30):
                    with db.write() as t:
                        t.rows.put_many([(n, f"other {turn} {n}") for n in range(5000)])
        """,
    }
    arguments = [textwrap.dedent(program), str(tmp_path / "db"), textwrap.dedent(others[way]), lib_version]
    done = subprocess.run(
        [sys.executable, "-c", *arguments],
        env=workers.surroundings(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("4999\n", 0), done.stderr


@pytest.mark.skipif(not HAS_BYTE_LOCKS, reason="a system without locks of open files on single bytes")
def test_a_process_that_opens_a_database_is_known_to_live_at_each_moment(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else another one may free its slot, take that for itself, and lose it when this one ends a transaction."""
    clear = "import sys, lmdb; print(lmdb.open(sys.argv[1], max_dbs=9).reader_check())"
    cleared: list[str] = []
    lock_byte = presence.lock_byte

    def locked(*arguments: int) -> int:
        answer = lock_byte(*arguments)
        cleared.append(subprocess.check_output([sys.executable, "-c", clear, path], text=True).strip())
        return answer

    monkeypatch.setattr(presence, "lock_byte", locked)
    with zlmdb.open(path, Store) as db:
        assert cleared == ["0"] * 3
        with db.read() as t:
            assert not t.rows
    told = translate(lmdb.BadRslotError("mdb_txn_renew"), path=path)
    assert isinstance(told, zlmdb.DiskError)
    assert "took this one for dead" in str(told)


@pytest.mark.once
@pytest.mark.skipif(not HAS_BYTE_LOCKS, reason="a system where the slots of readers may have other sizes")
@pytest.mark.parametrize("version", ["0.9", "1.0"])
def test_a_reader_of_a_killed_process_with_the_same_id_is_freed(version: Any, tmp_path: Path) -> None:
    """As in a container, where the id is often 1. LMDB took the reader for one of this process: the file grew on."""
    zlmdb.open(tmp_path, Store, lib_version=version).close()
    program = """
import sys, lmdb
env = lmdb.open(sys.argv[1])
left, living = env.begin(), env.begin()
print(1, flush=True)
sys.stdin.read()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"1\n"
    with open(tmp_path / "lock.mdb", "r+b") as file:
        slots = file.read()
        assert slots[128 + 8 : 128 + 12] == slots[192 + 8 : 192 + 12] == struct.pack("=i", other.pid)
        file.seek(128 + 8)
        file.write(struct.pack("=i", os.getpid()))
    try:
        with zlmdb.open(tmp_path, Store) as db:
            assert [(reader.pid, reader.snapshot is None) for reader in db.readers()] == [
                (os.getpid(), True),
                (other.pid, False),
            ]
    finally:
        other.communicate()
