"""A restore, a backup over another one, and `compact` meet programs that open the file just then."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import lmdb
import pytest

import zlmdb
from tests import workers
from zlmdb.engines.lmdb import engine
from zlmdb.operations import backup, temporary
from zlmdb.systems import HAS_BYTE_LOCKS, fcntl

pytestmark = pytest.mark.skipif(fcntl is None, reason="Windows lets nobody replace a file that is open")


class Store(zlmdb.Schema):
    rows: zlmdb.Table[int, str]


OURS = """
    import sys, zlmdb
    class Store(zlmdb.Schema):
        rows: zlmdb.Table[int, str]
    print("opens", flush=True)
    try:
        with zlmdb.open(sys.argv[1], Store) as db:
            for look in range(2):
                db._store.look_at = 0
                with db.write() as t:
                    t.rows[1000 + look] = "written"
            with db.read() as t:
                print(len(t.rows))
    except zlmdb.DatabaseInUse as error:
        print("in use")
"""
OF_LMDB = """
    import sys, lmdb
    print("opens", flush=True)
    with lmdb.open(sys.argv[1], max_dbs=9) as env:
        rows = env.open_db(b"t:rows", create=False)
        with env.begin(write=True) as txn:
            assert txn.id() == env.info()["last_txnid"] + 1
            assert txn.stat(rows)["entries"] == 3
            first = next(iter(txn.cursor(rows)))
            txn.put(b"\\x7f" + first[0][1:], first[1], db=rows)
    print(4)
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A database with 3 rows in its backup, and other states after that."""
    with zlmdb.open(tmp_path / "db", Store) as db:
        with db.write() as t:
            t.rows.put_many((row, "kept") for row in range(3))
        db.backup(tmp_path / "copy.mdb")
        for row in range(3, 9):  # a commit each: by one more, or less, the number fits by chance
            with db.write() as t:
                t.rows[row] = "not in the backup"
    return tmp_path / "db"


def count(db: Any) -> int:
    with db.read() as t:
        return len(t.rows)


class Other:
    """A program that opens a database when it is told to, and is then given some time for it."""

    def __init__(self, program: str, path: Path) -> None:
        self.path = path
        self.program = textwrap.dedent(program)

    def come(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.program, str(self.path)], env=workers.surroundings(),
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "opens\n"
        with pytest.raises(subprocess.TimeoutExpired):
            self.process.wait(0.3)

    def said(self) -> str:
        output, _ = self.process.communicate(timeout=60)
        return output.strip()


def meanwhile(monkeypatch: pytest.MonkeyPatch, name: str, work: Any) -> None:
    """Do *work* once, after the function *name* of `backup`."""
    function: Any = getattr(backup, name)
    left = [work]

    def then(*args: Any) -> Any:
        result = function(*args)
        while left:
            left.pop()()
        return result

    monkeypatch.setattr(backup, name, then)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.parametrize(("program", "rows"), [(OURS, "5"), (OF_LMDB, "4")])
def test_who_opens_a_file_while_it_is_restored_gets_the_new_one(
    program: str, rows: str, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it goes on from the number of the last transaction of the old file, and the new one is damaged by that."""
    other = Other(program, target)
    meanwhile(monkeypatch, "_copy_file", other.come)
    zlmdb.Database.restore(target.parent / "copy.mdb", target, overwrite=True)
    assert other.said() == rows
    with zlmdb.open(target, Store) as db:
        assert count(db) == int(rows)
        assert db.check().ok


@pytest.mark.once
@pytest.mark.parametrize(("program", "rows"), [(OURS, "5"), (OF_LMDB, "4")])
def test_who_waits_for_a_lock_file_of_lmdb_gets_the_file_that_is_restored(
    program: str, rows: str, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That file has fewer slots, and what makes it larger must not give up the lock that others wait for."""
    (target / "lock.mdb").unlink()
    with lmdb.open(str(target)):
        pass
    allocate = engine.allocate_locks

    def slowly(*args: Any) -> None:
        allocate(*args)
        time.sleep(0.3)

    other = Other(program, target)
    meanwhile(monkeypatch, "publish", other.come)
    monkeypatch.setattr(engine, "allocate_locks", slowly)
    zlmdb.Database.restore(target.parent / "copy.mdb", target, overwrite=True)
    assert other.said() == rows
    with lmdb.open(str(target.parent / "copy.mdb"), subdir=False) as env:
        restored = env.info()["last_txnid"]
    with lmdb.open(str(target)) as env:
        assert env.info()["last_txnid"] == restored + int(rows) - 3


@pytest.mark.once
@pytest.mark.parametrize("commits", [0, 1])
def test_who_opens_a_file_while_it_is_compacted_gets_the_new_one(
    commits: int, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old number of the last transaction is near that of the copy, and fits or not, as it is even or odd."""
    program = """
        import sys, lmdb
        print("opens", flush=True)
        with lmdb.open(sys.argv[1], max_dbs=9) as env:
            rows = env.open_db(b"t:rows", create=False)
            with env.begin(write=True) as txn:
                assert txn.id() == env.info()["last_txnid"] + 1
                key, data = next(iter(txn.cursor(rows)))
                txn.put(b"\\x7f" + key[1:], data, db=rows)
        print("written")
    """
    other = Other(program, target)
    with zlmdb.open(target, Store) as db:
        for row in range(commits):
            with db.write() as t:
                t.rows[100 + row] = "more"
        compacted = backup._verify

        def verify(*args: Any) -> None:
            compacted(*args)
            monkeypatch.setattr(backup, "flush", flush)

        def flush(path: str, flush: Any = backup.flush) -> None:
            monkeypatch.setattr(backup, "flush", flush)
            other.come()
            flush(path)

        monkeypatch.setattr(backup, "_verify", verify)
        db.compact()
        assert other.said() == "written"
        with db.write() as t:
            t.rows[200] = "more"
        assert count(db) == 9 + commits + 2
        assert db.check().ok


RESTORED = """
    import os, sys, zlmdb
    from pathlib import Path
    from zlmdb.operations import backup
    def stop(*args):
        print("stopped", flush=True)
        sys.stdin.read()
    backup._copy_file = stop
    zlmdb.Database.restore(Path(sys.argv[1]).parent / "copy.mdb", sys.argv[1], overwrite=True)
"""
OPENED = """
    import os, sys, zlmdb
    from zlmdb.engines.lmdb import engine
    def stop(*args, **given):
        print("stopped", flush=True)
        sys.stdin.read()
    engine.lmdb.open = stop
    zlmdb.open(sys.argv[1])
"""


@pytest.mark.once
@pytest.mark.skipif(not HAS_BYTE_LOCKS, reason="a system without locks of open files on single bytes")
@pytest.mark.parametrize("program", [RESTORED, OPENED], ids=["restored", "opened"])
def test_who_waits_for_one_that_is_killed_opens_the_file_as_the_first(program: str, target: Path) -> None:
    """Else it would wait in LMDB, and take the lock file for prepared, which has perhaps no last transaction yet."""
    first = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(target)], env=workers.surroundings(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert first.stdout is not None
    assert first.stdout.readline() == "stopped\n"
    other = Other(OURS, target)
    other.come()
    first.kill()
    first.communicate()
    assert other.said() == "11"


@pytest.mark.once
def test_who_opens_a_copy_while_it_is_replaced_loses_nothing(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy has no lock file yet, by which they would know of each other."""
    other = Other(OURS, target.parent / "copy.mdb")
    meanwhile(monkeypatch, "_copy", other.come)
    with zlmdb.open(target, Store) as db:
        db.backup(other.path, overwrite=True)
    assert other.said() in ("11", "in use")
    with zlmdb.open(other.path, Store) as db:
        assert count(db) in (9, 11)
        assert db.check().ok


@pytest.mark.parametrize("lock", [True, False])
def test_a_copy_that_a_program_of_lmdb_opens_meanwhile_is_not_replaced(
    lock: bool, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = target.parent / "copy.mdb"
    opened: list[Any] = []
    program = "import sys, lmdb; env = lmdb.open(sys.argv[1], subdir=False); print(1, flush=True); sys.stdin.read()"

    def come() -> None:
        opened.append(
            subprocess.Popen(
                [sys.executable, "-c", program, str(copy)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        assert opened[0].stdout.readline() == "1\n"

    if lock:
        monkeypatch.setattr(backup, "_copy", lambda *args: pytest.fail("known before"))
        come()
    else:
        meanwhile(monkeypatch, "_copy", come)
    before = copy.read_bytes()
    try:
        with zlmdb.open(target, Store) as db, pytest.raises(zlmdb.DatabaseInUse, match="another process"):
            db.backup(copy, overwrite=True)
    finally:
        opened[0].communicate("")
    assert copy.read_bytes() == before


def test_a_file_that_is_made_meanwhile_is_replaced_if_that_is_asked_for(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = target.parent / "new.mdb"
    with zlmdb.open(target, Store) as db:
        meanwhile(monkeypatch, "_copy", lambda: made.write_bytes(b"made"))
        with pytest.raises(FileExistsError, match="meanwhile"):
            db.backup(made)
        assert made.read_bytes() == b"made"
        made.unlink()
        meanwhile(monkeypatch, "_copy", lambda: made.write_bytes(b"made"))
        db.backup(made, overwrite=True)
    with zlmdb.open(made, Store) as db:
        assert count(db) == 9


@pytest.mark.once
def test_a_database_that_is_made_meanwhile_and_is_open_is_not_replaced(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = target.parent / "new.mdb"
    made_here: list[Any] = []

    def come() -> None:
        program = "import sys, lmdb; env = lmdb.open(sys.argv[1], subdir=False); print(1, flush=True); sys.stdin.read()"
        made_here.append(
            subprocess.Popen(
                [sys.executable, "-c", program, str(made)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        assert made_here[0].stdout.readline() == "1\n"

    meanwhile(monkeypatch, "_copy", come)
    try:
        with zlmdb.open(target, Store) as db, pytest.raises(zlmdb.DatabaseInUse, match="another process"):
            db.backup(made, overwrite=True)
    finally:
        made_here[0].communicate("")
    assert made.stat().st_size < 3 * 4096


@pytest.mark.parametrize("after", ["_copy_file", "_prepare_lock_file"])
def test_another_thread_does_not_open_what_is_being_replaced(
    after: str, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[Any] = []

    def come() -> None:
        try:
            zlmdb.open(target, Store).close()
        except zlmdb.DatabaseInUse as error:
            met.append(error)

    def in_thread() -> None:
        thread = threading.Thread(target=come)
        thread.start()
        thread.join()

    meanwhile(monkeypatch, after, in_thread)
    zlmdb.Database.restore(target.parent / "copy.mdb", target, overwrite=True)
    assert "another thread of this process replaces" in str(met[0])
    with zlmdb.open(target, Store) as db:
        assert count(db) == 3


@pytest.mark.once
def test_compact_does_not_lose_what_a_program_of_lmdb_writes_meanwhile(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
        import sys, lmdb
        with lmdb.open(sys.argv[1], max_dbs=9) as env:
            rows = env.open_db(b"t:rows", create=False)
            with env.begin(write=True) as txn:
                key, data = next(iter(txn.cursor(rows)))
                txn.put(b"\\x90" + key[1:], data, db=rows)
    """
    come = [sys.executable, "-c", textwrap.dedent(program), str(target)]
    meanwhile(monkeypatch, "_copy", lambda: subprocess.run(come, check=True))
    with zlmdb.open(target, Store) as db:
        with pytest.raises(zlmdb.DatabaseInUse, match="a program wrote to"):
            db.compact()
        assert count(db) == 10
        db.compact()
        assert count(db) == 10


def test_a_temporary_file_that_another_copy_is_about_to_remove_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one has locked it before its maker could, since it took it for what a killed process has left."""
    made: list[str] = []
    new_file = temporary._new_file
    locks: list[int] = []

    def locked(path: str) -> None:
        new_file(path)
        made.append(path)
        if len(made) == 1:
            locks.append(os.open(path, os.O_RDONLY))
            fcntl.flock(locks[0], fcntl.LOCK_EX | fcntl.LOCK_NB)

    monkeypatch.setattr(temporary, "_new_file", locked)
    try:
        with temporary.temporary_file(str(tmp_path), "copy") as path:
            os.unlink(made[0])
            assert Path(path).exists()
    finally:
        os.close(locks[0])
    assert not list(tmp_path.iterdir())
