"""Copies of a database: made while others write, restored, compacted; and everything that is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from operated import Store, child, content, data_file, fill, make, user

import zlmdb
from zlmdb.engines.lmdb import copying, structure
from zlmdb.engines.lmdb.pages import PageFile

from .workers import surroundings

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

here_only = pytest.mark.skipif(
    sys.platform == "win32", reason="another process is noticed by POSIX locks, which Windows has not"
)


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        fill(db)
        yield db


class Around:
    """An environment, of which a class derived from this one does some things otherwise."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.mark.parametrize("compact", [True, False])
def test_a_backup_opens_and_holds_the_same(db: Any, tmp_path: Path, compact: bool) -> None:
    made = db.backup(tmp_path / "copy", compact=compact)
    assert made == (str(tmp_path / "copy"), (tmp_path / "copy").stat().st_size)
    with zlmdb.open(tmp_path / "copy", Store, readonly=True) as copy:
        assert content(copy) == content(db)
        assert copy.check().ok
    assert names(tmp_path) == {"db", "copy", "copy-lock"}


@pytest.mark.parametrize("options", [{"layout": "classic"}, {}], ids=str)
def test_both_layouts_are_copied(options: Any, tmp_path: Path) -> None:
    make(tmp_path / "old", 20, **options)
    with zlmdb.open(tmp_path / "old", Store) as db:
        db.backup(tmp_path / "copy")
        with zlmdb.open(tmp_path / "copy", Store) as copy:
            assert copy.layout == db.layout
            assert content(copy) == content(db)


def test_a_backup_goes_into_an_existing_directory(db: Any, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    assert db.backup(tmp_path / "copies").path == str(tmp_path / "copies" / "data.mdb")
    with zlmdb.open(tmp_path / "copies", Store) as copy:
        assert content(copy) == content(db)


def test_a_compact_backup_leaves_out_what_was_deleted(db: Any, tmp_path: Path) -> None:
    with db.write() as t:
        t.blobs.clear()
    assert db.backup(tmp_path / "compact").bytes < db.backup(tmp_path / "whole", compact=False).bytes


def test_every_backup_made_while_others_write_is_one_state(db: Any, tmp_path: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        n = 1000
        while not stop.is_set():
            with db.write() as t:
                for number in (n, n + 1):
                    t.users[UUID(int=number)] = user(number)
                    t.logins[f"user {number}"] = number
                    t.blobs[b"%06d" % (number % 7)] = os.urandom(3000)
            n += 2

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for number in range(6):
            db.backup(tmp_path / f"copy {number}", compact=number % 2 == 0)
    finally:
        stop.set()
        writer.join()
    for number in range(6):
        with zlmdb.open(tmp_path / f"copy {number}", Store, readonly=True) as copy:
            report = copy.check()
            assert report.ok, report.problems
            assert report.tables["users"].records == report.tables["logins"].records
            assert report.tables["users"].records % 2 == 0


@pytest.mark.parametrize("already", [0, 1], ids=["even", "odd"])
@pytest.mark.parametrize("moment", ["_page_size", "__init__"], ids=["before the meta pages are read", "after"])
@pytest.mark.parametrize("operation", ["backup", "check", "verify"])
def test_two_commits_in_the_midst_of_reading_the_meta_pages_do_not_matter(
    operation: str, moment: str, already: int, db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second goes to the meta page that the newest state was read from, and names pages that were not there."""
    for number in range(already):
        add_blob(db, number)
    method: Any = getattr(PageFile, moment)
    left = [(100, 101)]

    def then_commit(self: PageFile, *args: Any) -> Any:
        found = method(self, *args)
        for number in left.pop() if left else ():
            writer = threading.Thread(target=add_blob, args=(db, number))
            writer.start()
            writer.join()
        return found

    monkeypatch.setattr(PageFile, moment, then_commit)
    if operation == "backup":
        db.backup(tmp_path / "copy", compact=False)
        with zlmdb.open(tmp_path / "copy", Store, readonly=True) as copy:
            assert copy.check().ok
            assert content(copy)["logins"] == content(db)["logins"]
    elif operation == "check":
        assert db.check().problems == []
    else:
        with db.read():  # keeps the pages from being used again
            assert structure.check(str(data_file(tmp_path / "db"))) == []
    assert not left


def add_blob(db: Any, number: int) -> None:
    """A commit that makes the file longer."""
    with db.write() as t:
        t.blobs[b"large %d" % number] = bytes(500_000)


def test_a_backup_is_made_inside_transactions_and_of_a_readonly_database(db: Any, tmp_path: Path) -> None:
    with db.write() as t:
        t.logins["uncommitted"] = 1
        db.backup(tmp_path / "copy")
    with zlmdb.open(tmp_path / "copy", Store, readonly=True) as copy:
        with copy.read() as t:
            assert "uncommitted" not in t.logins
        copy.backup(tmp_path / "copy of the copy")
    assert zlmdb.Database.verify(tmp_path / "copy of the copy") == []


def test_progress_is_told_to_the_end(db: Any, tmp_path: Path) -> None:
    told: list[Any] = []
    db.backup(tmp_path / "copy", progress=told.append)
    assert {one.stage for one in told} == {"copy", "verify"}
    assert all(one.done <= one.total for one in told)
    assert told[-1].done == told[-1].total


def test_an_exception_of_the_progress_function_leaves_no_trace(db: Any, tmp_path: Path) -> None:
    def stop(progress: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        db.backup(tmp_path / "copy", progress=stop)
    assert names(tmp_path) == {"db"}
    db.close()  # nothing of the copying is still going on


def test_an_exception_of_the_progress_function_waits_for_the_thread_that_copies(db: Any, tmp_path: Path) -> None:
    files: list[Any] = []

    class Slow(Around):
        """The environment, whose copying takes longer than progress is told."""

        def copyfd(self, descriptor: int, compact: bool) -> None:
            before = os.fstat(descriptor).st_ino
            time.sleep(0.5)
            files.append((before, os.fstat(descriptor).st_ino))
            self.env.copyfd(descriptor, compact=compact)

    def told(progress: Any) -> None:
        raise KeyboardInterrupt

    env = db._open_store.env
    db._open_store.env = Slow(env)
    try:
        with pytest.raises(KeyboardInterrupt):
            db.backup(tmp_path / "copy", progress=told)
    finally:
        db._open_store.env = env
    [(before, after)] = files
    assert before == after
    assert names(tmp_path) == {"db"}


# -- refusals -------------------------------------------------------------------------------------------------------


def test_an_existing_target_is_kept_unless_it_is_to_be_overwritten(db: Any, tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        db.backup(tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "mine"
    db.backup(tmp_path / "copy", overwrite=True)
    assert zlmdb.Database.verify(tmp_path / "copy") == []


def test_the_database_itself_is_no_target(db: Any, tmp_path: Path) -> None:
    for target in (tmp_path / "db", tmp_path / "db" / "data.mdb"):
        with pytest.raises(zlmdb.DatabaseInUse):
            db.backup(target, overwrite=True)


@pytest.mark.parametrize("name", ["lock.mdb", "writer.lock"])
def test_a_lock_file_is_no_target(db: Any, name: str, tmp_path: Path) -> None:
    with pytest.raises(zlmdb.DatabaseInUse):
        db.backup(tmp_path / "db" / name, overwrite=True)


@pytest.mark.parametrize("name", ["data.mdb-waiting", "data.mdb-lock", "data.mdb-writer.lock"])
def test_a_name_that_the_database_uses_itself_is_no_target(name: str, db: Any, tmp_path: Path) -> None:
    """Nobody could wait for changes where the directory of the pipes was a file, and LMDB looks for a lock file."""
    directory = tmp_path / "db"
    (tmp_path / "link").symlink_to(directory)
    before = sorted(directory.iterdir())
    for target in (directory / name, tmp_path / "link" / name):
        with pytest.raises(zlmdb.DatabaseInUse, match="choose another path"):
            db.backup(target)
    assert sorted(directory.iterdir()) == before
    db.backup(directory / "copy.mdb")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes with names")
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_or_device_is_not_replaced(linked: bool, db: Any, backup: Path, tmp_path: Path) -> None:
    """A backup to /dev/null with overwrite=True replaced the device by a file."""
    pipe = target = tmp_path / "pipe"
    os.mkfifo(pipe)
    if linked:
        target = tmp_path / "link"
        target.symlink_to(pipe)
    with pytest.raises(FileExistsError, match="is a device"):
        db.backup(target, overwrite=True)
    with pytest.raises((FileExistsError, zlmdb.InvalidDatabase)):
        zlmdb.Database.restore(backup, target, overwrite=True)
    assert pipe.is_fifo()
    assert target.is_symlink() is linked


@pytest.mark.skipif(sys.platform == "win32", reason="nobody removes an open file there")
def test_another_database_at_the_path_is_neither_copied_nor_replaced(db: Any, tmp_path: Path) -> None:
    """Without *compact* its file was copied instead of the one that is open."""
    os.rename(tmp_path / "db", tmp_path / "moved")
    with zlmdb.open(tmp_path / "db", Store):
        for operation in (
            lambda: db.backup(tmp_path / "copy", compact=False),
            lambda: db.backup(tmp_path / "copy"),
            db.compact,
        ):
            with pytest.raises(zlmdb.InvalidDatabase, match="was replaced"):
                operation()
    with db.read() as t:
        assert len(t.logins) == 100
    assert not (tmp_path / "copy").exists()


def test_a_missing_directory_is_not_made(db: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no directory"):
        db.backup(tmp_path / "missing" / "copy")


def test_a_disk_without_room_is_told_before_anything_is_written(
    db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(100, 99, 1))
    for operation in (lambda: db.backup(tmp_path / "copy"), db.compact):
        with pytest.raises(zlmdb.DatabaseFull, match="1 bytes free") as caught:
            operation()
        assert caught.value.limit == 1
    assert names(tmp_path) == {"db"}
    assert content(db)["logins"]["user 7"] == 7


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@here_only
def test_a_disk_that_fills_up_on_the_way_leaves_no_trace(tmp_path: Path) -> None:
    make(tmp_path / "db")
    program = f"""
import resource, zlmdb
db = zlmdb.open({str(tmp_path / "db")!r}, readonly=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
try:
    db.backup({str(tmp_path / "copy")!r})
except zlmdb.DiskError as error:
    with db.read() as t:
        print("/copy' could not be written" in str(error), len(t["logins"]))
"""
    done = subprocess.run(child(program), capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["True", "100"], done.stderr
    assert names(tmp_path) == {"db"}


def test_a_database_in_memory_has_no_file(tmp_path: Path) -> None:
    with zlmdb.open(None, Store) as db:
        for operation in (lambda: db.backup(tmp_path / "copy"), db.compact):
            with pytest.raises(zlmdb.errors.FileRequired, match="dump"):
                operation()


def test_a_damaged_copy_never_gets_its_name(db: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlmdb.engines.lmdb.structure.check", lambda *args: ["a page is gone"])
    with pytest.raises(zlmdb.CorruptDatabase, match="a page is gone"):
        db.backup(tmp_path / "copy")
    assert names(tmp_path) == {"db"}


# -- restore --------------------------------------------------------------------------------------------------------


@pytest.fixture
def backup(db: Any, tmp_path: Path) -> Path:
    db.backup(tmp_path / "backup")
    return tmp_path / "backup"


def test_a_backup_is_restored_to_a_new_place(db: Any, backup: Path, tmp_path: Path) -> None:
    made = zlmdb.Database.restore(backup, tmp_path / "again")
    assert made.path == str(tmp_path / "again" / "data.mdb")
    with zlmdb.open(tmp_path / "again", Store) as again:
        assert content(again) == content(db)
        with again.write() as t:
            t.logins["more"] = 1


def test_restoring_in_place_brings_the_old_state_back(db: Any, backup: Path, tmp_path: Path) -> None:
    before = content(db)
    with db.write() as t:
        t.logins.clear()
    with pytest.raises(FileExistsError):
        zlmdb.Database.restore(backup, tmp_path / "db")
    with pytest.raises(zlmdb.DatabaseInUse, match="open in this process"):
        zlmdb.Database.restore(backup, tmp_path / "db", overwrite=True)
    db.close()
    zlmdb.Database.restore(backup, tmp_path / "db", overwrite=True)
    with zlmdb.open(tmp_path / "db", Store) as again:
        assert content(again) == before


def test_a_damaged_backup_is_not_restored(backup: Path, tmp_path: Path) -> None:
    backup.write_bytes(backup.read_bytes()[:-8192])
    with pytest.raises(zlmdb.CorruptDatabase):
        zlmdb.Database.restore(backup, tmp_path / "again")
    (tmp_path / "text").write_text("text")
    with pytest.raises(zlmdb.InvalidDatabase):
        zlmdb.Database.restore(tmp_path / "text", tmp_path / "again")
    with pytest.raises(FileNotFoundError):
        zlmdb.Database.restore(tmp_path / "nothing", tmp_path / "again")
    assert not (tmp_path / "again").exists()


@pytest.mark.twice
@pytest.mark.parametrize("operation", ["restore", "salvage"])
@pytest.mark.parametrize("writes", [True, False])
def test_a_file_that_a_program_writes_to_is_not_copied_page_by_page(
    db: Any, operation: str, writes: bool, tmp_path: Path
) -> None:
    """The copy had pages of several states."""
    before = content(db)

    def told(progress: zlmdb.Progress) -> None:
        if writes:
            with db.write() as t:
                t.logins["more"] = progress.done

    copy: Any = getattr(zlmdb.Database, operation)
    if writes:
        with pytest.raises(zlmdb.DatabaseInUse, match="wrote to"):
            copy(tmp_path / "db", tmp_path / "again", progress=told)
        assert not (tmp_path / "again" / "data.mdb").exists()
    else:
        copy(tmp_path / "db", tmp_path / "again", progress=told)
        with zlmdb.open(tmp_path / "again", Store) as again:
            assert content(again) == before


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@here_only
@pytest.mark.parametrize("operation", ["restore", "compact"])
def test_a_file_that_another_process_has_open_is_not_replaced(operation: str, backup: Path, tmp_path: Path) -> None:
    make(tmp_path / "other")
    program = f"""
import sys, zlmdb
with zlmdb.open({str(tmp_path / "other")!r}):
    print("open", flush=True)
    sys.stdin.read()
"""
    process = subprocess.Popen(child(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "open\n"
        if operation == "restore":
            with pytest.raises(zlmdb.DatabaseInUse, match="another process"):
                zlmdb.Database.restore(backup, tmp_path / "other", overwrite=True)
        else:
            with (
                zlmdb.open(tmp_path / "other", Store) as other,
                pytest.raises(zlmdb.DatabaseInUse, match="another process"),
            ):
                other.compact()
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
    assert not [name for name in names(tmp_path / "other") if name.endswith(".tmp")]
    with zlmdb.open(tmp_path / "other", Store) as other:
        assert other.check().ok
        other.compact()


# -- compact --------------------------------------------------------------------------------------------------------


def test_compact_makes_the_file_smaller_and_keeps_everything(db: Any, tmp_path: Path) -> None:
    with db.write() as t:
        t.blobs.clear()
    before, size = content(db), data_file(tmp_path / "db").stat().st_size
    result = db.compact()
    assert (result.before, result.after) == (size, data_file(tmp_path / "db").stat().st_size)
    assert result.after < result.before
    assert content(db) == before
    with db.write() as t:
        t.users[UUID(int=5000)] = user(5000)
        assert t.users.by_email["u5000@example.com"] == user(5000)
    assert db.check().ok
    assert names(tmp_path / "db") == {"data.mdb", "lock.mdb", "writer.lock"}


def test_what_takes_the_whole_file_waits_no_longer_than_the_timeout(tmp_path: Path) -> None:
    class Numbers(zlmdb.Schema):
        numbers: zlmdb.Table[int, int]

    errors: list[BaseException] = []

    def work(call: Any) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    with zlmdb.open(tmp_path / "db", Numbers, timeout=0.05) as db, open(tmp_path / "stream", "w+b") as stream:
        db.dump(stream)
        with db.write():
            for call in (db.compact, lambda: db.load(stream)):
                thread = threading.Thread(target=work, args=(call,))
                thread.start()
                thread.join(20)
    assert [type(error) for error in errors] == [zlmdb.WriterTimeout] * 2


def test_after_compact_the_path_still_leads_to_the_same_environment(db: Any, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as other:
        db.compact()
        with db.write() as t:
            t.logins["both"] = 2
        with other.read() as t:
            assert t.logins["both"] == 2
        with zlmdb.open(tmp_path / "db", Store, durability="none") as third, third.read() as t:
            assert t.logins["both"] == 2


@dataclass
class Book:
    title: str


class Books(zlmdb.Table[int, Book]):
    by_title = zlmdb.Index[str]("title")


class Shelf(zlmdb.Schema):
    books: Books


DROPS = """if 1:
    import sys
    import zlmdb
    from dataclasses import dataclass
    @dataclass
    class Book:
        title: str
    class Books(zlmdb.Table[int, Book]):
        pass
    class Store(zlmdb.Schema):
        books: Books
    with zlmdb.open(sys.argv[1], Store, drop_indexes=True) as db:
        for number in range(50):
            with db.write() as t:
                if t.txn.id() > int(sys.argv[2]):
                    break
                t.books[100 + number] = Book("another")
"""


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_snapshot_with_the_number_of_one_before_compact_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB counts anew in a copy without unused pages; here nobody mends that."""
    real = copying.finish_copy
    monkeypatch.setattr(copying, "finish_copy", lambda target, last: real(target, 0))
    with zlmdb.open(tmp_path, Shelf, durability="none") as db:
        for number in range(9):
            with db.write() as t:
                t.books[number] = Book("one")
    with zlmdb.open(tmp_path, Shelf, durability="none") as db:
        with db.read() as t:
            opened = t.txn.id()
        db.compact()
        with db.read() as t:
            assert t.txn.id() < opened
        subprocess.run([sys.executable, "-c", DROPS, str(tmp_path), str(opened)], check=True, env=surroundings())
        with db.read() as t:
            assert t.txn.id() == opened
            assert t.books.where(lambda book: book.title == "another").count() == len(t.books) - 9 > 0


def test_compact_refuses_open_transactions_and_readonly_databases(db: Any, tmp_path: Path) -> None:
    before = content(db)
    with db.read(), pytest.raises(zlmdb.DatabaseInUse, match="open transactions"):
        db.compact()
    with db.write(), pytest.raises(zlmdb.NestedTransaction):
        db.compact()
    db.backup(tmp_path / "copy")
    with zlmdb.open(tmp_path / "copy", readonly=True) as copy, pytest.raises(zlmdb.ReadonlyDatabase):
        copy.compact()
    assert content(db) == before


@here_only
@pytest.mark.parametrize("internal", [False, True])
def test_compact_refuses_a_reader_that_is_just_beginning(db: Any, internal: bool) -> None:
    beginning, go_on = threading.Event(), threading.Event()
    read: list[int] = []

    class Slow(Around):
        """The environment, in which a reader takes its time to begin."""

        def begin(self, *args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is thread:
                beginning.set()
                go_on.wait(20)
            return self.env.begin(*args, **kwargs)

    def reader() -> None:
        if internal:
            read.append(len(db.tables()))
            return
        with db.read() as t:
            read.append(len(t.users))

    env = db._open_store.env
    thread = threading.Thread(target=reader)
    db._open_store.env = Slow(env)
    try:
        thread.start()
        assert beginning.wait(20)
        with pytest.raises(zlmdb.DatabaseInUse):
            db.compact()
        go_on.set()
        thread.join(20)
    finally:
        go_on.set()
        db._open_store.env = env
    assert len(read) == 1
    assert read[0] > 0
    assert db.compact().after > 0


def test_a_reader_that_begins_while_the_file_is_swapped_waits_for_the_new_one(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, read = os.replace, []

    def reader() -> None:
        with db.read() as t:
            read.append(len(t.users))

    thread = threading.Thread(target=reader)

    def slow(*args: Any) -> None:
        thread.start()
        time.sleep(0.2)
        replace(*args)

    monkeypatch.setattr(os, "replace", slow)
    count = db.run(lambda t: len(t.users))
    db.compact()
    thread.join(20)
    assert read == [count]


def test_a_restore_that_is_refused_leaves_the_locks_of_an_open_database(db: Any, tmp_path: Path) -> None:
    db.backup(tmp_path / "copy.mdb")
    with pytest.raises(FileExistsError):
        zlmdb.Database.restore(tmp_path / "copy.mdb", tmp_path / "db")
    with pytest.raises(zlmdb.DatabaseInUse):
        zlmdb.Database.restore(tmp_path / "copy.mdb", tmp_path / "db", overwrite=True)
    program = f"""
import zlmdb
try:
    zlmdb.Database.restore({str(tmp_path / "copy.mdb")!r}, {str(tmp_path / "db")!r}, overwrite=True)
except zlmdb.DatabaseInUse as error:
    print("another process" in str(error))
"""
    assert subprocess.run(child(program), capture_output=True, text=True, check=True).stdout == "True\n"


# -- files that are open, links, owners and modes -------------------------------------------------------------------


def held_open(path: Path, *, subdir: bool = True) -> subprocess.Popen[str]:
    """Another process that has the database at *path* open, without zlmdb unless it is a directory."""
    opening = f"zlmdb.open({str(path)!r})" if subdir else f"lmdb.open({str(path)!r}, subdir=False)"
    program = f"import sys, lmdb, zlmdb\nwith {opening}:\n    print('open', flush=True)\n    sys.stdin.read()\n"
    process = subprocess.Popen(child(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def let_go(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=60)


def test_a_backup_does_not_replace_a_database_that_is_open(db: Any, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "other", Store) as other:
        for target in (tmp_path / "other", tmp_path / "other" / "data.mdb"):
            with pytest.raises(zlmdb.DatabaseInUse, match="open in this process"):
                db.backup(target, overwrite=True)
        with pytest.raises(FileExistsError):
            db.backup(tmp_path / "other")
        with other.write() as t:
            t.logins["kept"] = 1
    with zlmdb.open(tmp_path / "other", Store) as other:
        assert content(other)["logins"] == {"kept": 1}
    db.backup(tmp_path / "other", overwrite=True)
    with zlmdb.open(tmp_path / "other", Store) as other:
        assert content(other) == content(db)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@here_only
def test_a_backup_does_not_replace_a_database_that_another_process_has_open(db: Any, tmp_path: Path) -> None:
    make(tmp_path / "other", 5)
    process = held_open(tmp_path / "other")
    try:
        for target in (tmp_path / "other", tmp_path / "other" / "data.mdb"):
            with pytest.raises(zlmdb.DatabaseInUse, match="another process"):
                db.backup(target, overwrite=True)
    finally:
        let_go(process)
    assert names(tmp_path / "other") == {"data.mdb", "lock.mdb", "writer.lock"}
    db.backup(tmp_path / "other", overwrite=True)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@here_only
def test_a_data_file_in_a_directory_may_have_a_lock_file_of_its_own_name(backup: Path, tmp_path: Path) -> None:
    """As LMDB makes it with ``subdir=False``."""
    (tmp_path / "other").mkdir()
    file = tmp_path / "other" / "data.mdb"
    shutil.copy(backup, file)
    process = held_open(file, subdir=False)
    try:
        assert (tmp_path / "other" / "data.mdb-lock").exists()
        with pytest.raises(zlmdb.DatabaseInUse, match="another process"):
            zlmdb.Database.restore(backup, tmp_path / "other", overwrite=True)
        with (
            zlmdb.open(tmp_path / "other", Store) as other,
            pytest.raises(zlmdb.DatabaseInUse, match="another process"),
        ):
            other.compact()
    finally:
        let_go(process)
    zlmdb.Database.restore(backup, tmp_path / "other", overwrite=True)


def test_compact_finds_its_file_again_from_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with zlmdb.open(tmp_path / name / "data", Store) as db, db.write() as t:
            t.logins[name] = 1
    monkeypatch.chdir(tmp_path / "one")
    with zlmdb.open("data", Store) as db:
        monkeypatch.chdir(tmp_path / "two")
        db.compact()
        with zlmdb.open("data", Store) as other:
            assert content(other)["logins"] == {"two": 1}
        with zlmdb.open(tmp_path / "one" / "data", Store) as same, same.write() as t:
            t.logins["more"] = 2
        assert content(db)["logins"] == {"one": 1, "more": 2}


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@here_only
@pytest.mark.parametrize("operation", ["restore", "compact"])
def test_a_data_file_that_is_a_link_stays_one(operation: str, backup: Path, tmp_path: Path) -> None:
    for name in ("linked", "disk"):
        (tmp_path / name).mkdir()
    shutil.copy(backup, tmp_path / "disk" / "real.mdb")
    link = tmp_path / "linked" / "data.mdb"
    link.symlink_to(tmp_path / "disk" / "real.mdb")
    process = held_open(tmp_path / "linked")
    try:
        with pytest.raises(zlmdb.DatabaseInUse, match="another process"):
            put_in_place(operation, backup, tmp_path / "linked")
    finally:
        let_go(process)
    before = (tmp_path / "disk" / "real.mdb").stat().st_ino
    put_in_place(operation, backup, tmp_path / "linked")
    assert link.is_symlink()
    assert (tmp_path / "disk" / "real.mdb").stat().st_ino != before
    assert names(tmp_path / "disk") == {"real.mdb"}
    with zlmdb.open(tmp_path / "linked", Store) as db:
        assert db.check().ok


def put_in_place(operation: str, backup: Path, path: Path) -> None:
    if operation == "restore":
        zlmdb.Database.restore(backup, path, overwrite=True)
    else:
        with zlmdb.open(path, Store) as db:
            db.compact()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@here_only
@pytest.mark.parametrize("given", [0o600, 0o640, 0o666])
def test_who_may_read_a_database_may_read_its_copies(
    given: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    check = structure.check

    def watched(file: str, *args: Any) -> Any:
        if file.endswith(".tmp"):
            modes.append(mode(Path(file)))
        return check(file, *args)

    monkeypatch.setattr(structure, "check", watched)
    make(tmp_path / "db")
    data_file(tmp_path / "db").chmod(given)
    with zlmdb.open(tmp_path / "db", Store) as db:
        for compact in (True, False):
            db.backup(tmp_path / f"copy {compact}", compact=compact)
            assert mode(tmp_path / f"copy {compact}") == given
        db.compact()
        assert mode(data_file(tmp_path / "db")) == given
    (tmp_path / "copy True").chmod(0o644)
    zlmdb.Database.restore(tmp_path / "copy True", tmp_path / "db", overwrite=True)
    assert mode(data_file(tmp_path / "db")) == given
    (tmp_path / "copy True").chmod(0o440)
    zlmdb.Database.restore(tmp_path / "copy True", tmp_path / "new")
    assert mode(data_file(tmp_path / "new")) == 0o640  # its owner writes to it
    assert set(modes) == {0o600}


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root may give files away")
@pytest.mark.parametrize("operation", ["restore", "compact"])
def test_the_owner_of_a_file_stays_the_owner(operation: str, backup: Path, tmp_path: Path) -> None:
    make(tmp_path / "owned", 5)
    os.chown(data_file(tmp_path / "owned"), 1234, 4321)
    put_in_place(operation, backup, tmp_path / "owned")
    found = data_file(tmp_path / "owned").stat()
    assert (found.st_uid, found.st_gid) == (1234, 4321)
