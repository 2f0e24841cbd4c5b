"""Who may open a file, and what is no data file: readers of other users, pipes, files replaced while they are open."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import zlmdb
from zlmdb.cli import main
from zlmdb.engines.lmdb import access, filesystem, openable, structure
from zlmdb.engines.lmdb.pages import PageFile
from zlmdb.store.holds import Hold
from zlmdb.store.writerlock import WriterLock

pytestmark = [
    pytest.mark.once,  # what the system allows does not depend on the interpreter
    pytest.mark.skipif(sys.platform == "win32", reason="users, modes and pipes of Unix"),
]
as_root = pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root may become another user")


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]


class Texts(zlmdb.Schema):
    texts: zlmdb.Table[int, str]


@pytest.fixture
def place() -> Iterator[Path]:
    """A database in a directory that any user may enter."""
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    with zlmdb.open(root / "db", Store) as db, db.write() as t:
        t.numbers[1] = 2
    yield root / "db"
    shutil.rmtree(root)


def as_nobody(program: str, *arguments: Any) -> str:
    """What *program* prints, run as another user, with modules loaded before."""
    start = """
        import os, sys, tempfile
        import click.testing, zlmdb, zlmdb.cli
        class Store(zlmdb.Schema):
            numbers: zlmdb.Table[int, int]
        with tempfile.TemporaryDirectory() as scratch:
            with zlmdb.open(scratch, Store) as db, db.write() as t:
                t.numbers[1] = 1
                dict(t["numbers"])
            with zlmdb.open(scratch, readonly=True) as db, db.read() as t:
                dict(t["numbers"])
            click.testing.CliRunner().invoke(zlmdb.cli.main, ["check", scratch])
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    """
    code = textwrap.dedent(start) + textwrap.dedent(program)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, env=environment, check=False
    )
    assert not done.stderr, done.stderr
    return done.stdout


READ = """
    try:
        with zlmdb.open(sys.argv[1], readonly=True, lock="lock" not in sys.argv[2:]) as db, db.read() as t:
            print(dict(t["numbers"]))
    except zlmdb.ReadonlyDatabase as error:
        print("refused:", error)
"""


@as_root
@pytest.mark.parametrize("there", [True, False], ids=["with lock file", "without lock file"])
def test_a_reader_that_may_not_lock_is_refused_and_told_what_it_needs(place: Path, there: bool) -> None:
    if not there:
        (place / "lock.mdb").unlink()
    for path in (place, place / "data.mdb"):
        told = as_nobody(READ, path)
        assert told.startswith("refused:")
        for word in ("lock.mdb", "group", "umask 002", "lock=False"):
            assert word in told
    assert as_nobody(READ, place, "lock") == "{1: 2}\n"


@as_root
def test_a_reader_with_the_right_to_lock_reads(place: Path) -> None:
    (place / "lock.mdb").chmod(0o666)
    assert as_nobody(READ, place) == "{1: 2}\n"
    (place / "lock.mdb").chmod(0o660)
    os.chown(place / "lock.mdb", -1, 65534)
    assert as_nobody(READ, place) == "{1: 2}\n"


@as_root
@pytest.mark.parametrize("closed", ["directory", "file", "lock file"])
def test_where_nobody_may_write_no_lock_is_needed(place: Path, closed: str) -> None:
    if closed == "directory":
        (place / "lock.mdb").unlink()
        place.chmod(0o555)
    else:
        (place / ("data.mdb" if closed == "file" else "lock.mdb")).chmod(0o444)
    assert as_nobody(READ, place) == "{1: 2}\n"


@as_root
@pytest.mark.parametrize("command", ["info", "tables", "check", "select", "dump"])
def test_commands_refuse_to_read_without_a_lock(place: Path, command: str) -> None:
    program = """
        arguments = [sys.argv[2], sys.argv[1], *["numbers"] * (sys.argv[2] == "select")]
        result = click.testing.CliRunner().invoke(zlmdb.cli.main, arguments)
        print(result.exit_code, result.output)
    """
    told = as_nobody(program, place, command)
    assert told.startswith("1 Error: ")
    assert "cannot be read safely" in told


def test_without_locks_is_for_readers_only(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="readonly=True"):
        zlmdb.open(tmp_path / "db", Store, lock=False)


def test_a_mount_that_is_read_only_here_may_be_writable_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    zlmdb.open(tmp_path / "db", Store).close()

    class Flags:
        f_flag = 1  # ST_RDONLY

    monkeypatch.setattr(os, "statvfs", lambda path: Flags)
    mount_of = filesystem.mount_of
    monkeypatch.setattr(filesystem, "mount_of", lambda path, mounts="": mount_of(path, str(table)))
    for options, expected in (("ro,relatime", True), ("rw,relatime", False), ("rw,errors=remount-ro", False)):
        table.write_text(f"22 1 0:1 / / ro,relatime - ext4 /dev/sda1 {options}\n")
        assert filesystem.is_read_only(str(tmp_path)) is expected
    monkeypatch.setattr(access, "can_lock", lambda lock: False)
    with pytest.raises(zlmdb.ReadonlyDatabase, match=r"mounted read-only here.* Mount it writable.*lock=False"):
        zlmdb.open(tmp_path / "db", readonly=True)


# -- what is no data file -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inside", [True, False])
def test_a_pipe_is_refused_at_once(tmp_path: Path, inside: bool) -> None:
    (tmp_path / "db").mkdir()
    pipe = tmp_path / "db" / ("data.mdb" if inside else "pipe")
    os.mkfifo(pipe)
    path = tmp_path / "db" if inside else pipe
    program = """
        import sys, zlmdb
        from click.testing import CliRunner
        from zlmdb.cli import main
        class Store(zlmdb.Schema):
            numbers: zlmdb.Table[int, int]
        path = sys.argv[1]
        for what in (lambda: zlmdb.open(path, Store), lambda: zlmdb.open(path, readonly=True),
                     lambda: zlmdb.Database.verify(path), lambda: zlmdb.Database.salvage(path, path + "-new"),
                     lambda: zlmdb.Database.restore(path, path + "-new")):
            try:
                what()
            except OSError as error:
                print(type(error).__name__)
        for command in (["info", path], ["check", path], ["salvage", path, path + "-new"]):
            print(CliRunner().invoke(main, command).exit_code)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(path)],
        capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    *first, last, a, b, c = done.stdout.splitlines()
    assert (first, last) == (["InvalidDatabase"] * 4, "FileNotFoundError")
    assert (a, b, c) == ("1", "1", "1")


def test_a_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").symlink_to("/dev/zero")
    with pytest.raises(zlmdb.InvalidDatabase, match="a device"):
        zlmdb.open(tmp_path, Store)
    with pytest.raises(zlmdb.InvalidDatabase, match="a device"):
        zlmdb.open("/dev/null", readonly=True)


# -- what happens to an open file -----------------------------------------------------------------------------------


def test_a_file_that_is_as_it_was_passes(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        engine = db._open_store.engine
        engine.check_file()
        with db.write() as t:
            t.numbers.put_many((n, n) for n in range(50_000))
        engine.check_file()
        db.compact()
        engine.check_file()


@pytest.mark.parametrize("version", ["0.9", "1.0"])
def test_a_file_without_the_free_pages_at_its_end_is_not_read_whole(
    version: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a transaction stores and deletes again, LMDB does not write: each writer then read all of the file."""
    with zlmdb.open(tmp_path / "db", Texts, lib_version=version) as db:
        with db.write() as t:
            t.texts.update({n: "x" * 50 for n in range(1000)})
        with db.write() as t:
            t.texts.select(0, 500).delete()
        with db.write() as t:
            t.texts[-1] = "x" * 3_000_000
            del t.texts[-1]
        engine: Any = db._open_store.engine
        file = Path(engine.file)
        with open(file, "rb", buffering=0) as data:
            pages = PageFile(data, str(file))
        last, used, size = pages.metas[0].last, pages.metas[0].free.root, pages.page_size
        assert file.stat().st_size < (last - 700) * size
        with monkeypatch.context() as patch:
            patch.setattr(structure, "check", None)
            engine.check_file()
            openable.check_opening(engine.file, engine.lock_file, True)
        assert db.check().ok
    os.truncate(file, used * size)
    with pytest.raises(zlmdb.CorruptDatabase):
        zlmdb.open(tmp_path / "db", Texts)


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_removed_or_replaced_while_open_is_noticed(how: str, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        engine = db._open_store.engine
        if how == "removed":
            (tmp_path / "db" / "data.mdb").unlink()
        else:
            shutil.copy(tmp_path / "db" / "data.mdb", tmp_path / "other")
            os.replace(tmp_path / "other", tmp_path / "db" / "data.mdb")
        for look in (engine.check_file, db.check):
            with pytest.raises(zlmdb.InvalidDatabase, match=how):
                look()


def test_what_was_replaced_while_open_stays_closed_to_writers_and_says_why_to_who_opens_it(tmp_path: Path) -> None:
    """A second try within a tenth of a second was stored in the file that had lost its name."""
    with zlmdb.open(tmp_path / "db", Store) as db:
        shutil.copy(tmp_path / "db" / "data.mdb", tmp_path / "other")
        os.replace(tmp_path / "other", tmp_path / "db" / "data.mdb")
        db._open_store.look_at = 0.0
        for _ in range(2):
            with pytest.raises(zlmdb.InvalidDatabase, match="replaced"), db.write() as t:
                t.numbers[1] = 1
            with pytest.raises(zlmdb.InvalidDatabase, match="replaced"):
                db.auto.numbers[1] = 1
        with pytest.raises(zlmdb.DatabaseInUse, match="replaced"):
            zlmdb.open(tmp_path / "db", Store)
    with zlmdb.open(tmp_path / "db", Store) as db:
        assert not len(db.auto.numbers)


@as_root
def test_who_gives_up_the_right_to_look_is_told_of_that_and_not_of_a_file_removed(place: Path) -> None:
    program = """
        db = zlmdb.open(path, Store)
        os.seteuid(65534)
        db._open_store.look_at = 0.0
        try:
            with db.write() as t:
                t.numbers[1] = 1
        except Exception as error:
            print(type(error).__name__, "Permission denied" in str(error))
        os.seteuid(0)
        with db.write() as t:
            t.numbers[1] = 3
    """
    place.chmod(0o700)
    head = "import os, sys, zlmdb\npath = sys.argv[1]\nclass Store(zlmdb.Schema):\n    numbers: zlmdb.Table[int, int]\n"
    code = head + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", code, place], capture_output=True, text=True, check=True)
    assert done.stdout == "PermissionError True\n"


def test_who_has_too_many_files_open_is_told_so(tmp_path: Path) -> None:
    program = """
        import os, resource, sys, zlmdb
        class Store(zlmdb.Schema):
            numbers: zlmdb.Table[int, int]
        zlmdb.open(sys.argv[1], Store).close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        taken = []
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
        while True:
            try:
                zlmdb.open(sys.argv[1], Store).close()
                break
            except OSError as error:
                print(error.errno == 24 or "ulimit -n" in str(error) or error)
            os.close(taken.pop())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "db")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    assert set(done.stdout.split()) == {"True"}


def run_closing(program: str, path: Path) -> str:
    """What *program* prints, for which descriptors have run out, or were closed."""
    start = """
        import os, resource, sys, zlmdb
        class Store(zlmdb.Schema):
            numbers: zlmdb.Table[int, int]
        path = sys.argv[1]
        db = zlmdb.open(path, Store)
        with db.write() as t:
            t.numbers[1] = 1
        def write():
            db._open_store.look_at = 0.0
            try:
                with db.write() as t:
                    t.numbers[2] = 2
                print("written")
            except OSError as error:
                print(type(error).__name__, error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(program), str(path)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return done.stdout


def test_a_write_needs_no_further_descriptor(tmp_path: Path) -> None:
    """It failed with "Too many open files", since it looked at the length of the file."""
    program = """
        write()  # which imports what it needs
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        try:
            while True:
                os.open("/dev/null", os.O_RDONLY)
        except OSError:
            write()
    """
    assert run_closing(program, tmp_path / "db") == "written\n" * 2


def test_a_program_that_has_closed_all_files_is_told_and_nothing_is_written_into_its_new_ones(tmp_path: Path) -> None:
    """LMDB wrote its pages into a file that had got the descriptor of the data file."""
    program = """
        out = os.dup(1)
        os.dup2(2, 200)
        os.closerange(3, 200)
        victims = [os.open(f"{path}-{n}", os.O_RDWR | os.O_CREAT) for n in range(20)]
        sys.stdout.flush()
        write()
        write()
        print([os.fstat(victim).st_size for victim in victims if os.fstat(victim).st_size])
        sys.stdout.flush()
        os._exit(0)
    """
    told = run_closing(program, tmp_path / "db").splitlines()
    assert [line.partition(" this program has closed the files of ")[0] for line in told] == ["DiskError"] * 2 + ["[]"]
    with zlmdb.open(tmp_path / "db", Store) as db, db.read() as t:
        assert dict(t.numbers) == {1: 1}


def test_a_lock_file_that_the_program_has_closed_is_opened_again(tmp_path: Path) -> None:
    program = """
        lock = db._open_store.writer
        lock.alone, lock._met, lock._look_at = None, True, float("inf")
        os.close(lock._file)
        write()
        write()
        db.close()
    """
    told, last = run_closing(program, tmp_path / "db").splitlines()
    assert "this program has closed the lock file" in told
    assert last == "written"


def test_a_file_cut_off_while_open_is_noticed(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        with db.write() as t:
            t.numbers.put_many((n, n) for n in range(50_000))
        engine = db._open_store.engine
        whole = (tmp_path / "db" / "data.mdb").read_bytes()
        os.truncate(tmp_path / "db" / "data.mdb", len(whole) // 2)
        try:
            with pytest.raises(zlmdb.CorruptDatabase, match="truncated"):
                engine.check_file()
        finally:  # closing reads pages
            (tmp_path / "db" / "data.mdb").write_bytes(whole)


def test_writers_look_again_after_a_while_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    with zlmdb.open(tmp_path / "db", Store) as db:
        store: Any = db._open_store
        module = sys.modules[type(store.engine).__module__]
        monkeypatch.setattr(module, "require_same", lambda *arguments: looks.append("look"))
        monkeypatch.setattr("zlmdb.store.environment._LOOK_AGAIN", 1000.0)
        for expected in (1, 2):
            store.look_at = 0.0
            for _ in range(10):
                with db.write():
                    pass
            assert len(looks) == 2 * expected  # at the data file, and at LMDB's lock file


@pytest.mark.parametrize("replaced", [False, True])
def test_a_lock_file_that_was_removed_is_noticed(tmp_path: Path, replaced: bool) -> None:
    """Else two writers would have a lock each, and the second wait in LMDB, where there is no limit."""
    lock = tmp_path / "db" / "writer.lock"
    with zlmdb.open(tmp_path / "db", Store) as db:
        with db.write():
            pass
        lock.unlink()
        other = WriterLock(str(lock))
        if replaced:
            other.acquire(0, Hold())
            db._open_store.look_at = 0.0
            with pytest.raises(zlmdb.WriterTimeout, match="process"), db.write(timeout=0.05):
                pass
            other.close()
        db._open_store.look_at = 0.0
        with db.write(timeout=5) as t:
            t.numbers[1] = 1
            with pytest.raises(zlmdb.WriterTimeout):
                WriterLock(str(lock)).acquire(0, Hold())
        with db.read() as t:
            assert dict(t.numbers) == {1: 1}


def opened_elsewhere(path: Path) -> str:
    """The error of a process that opens the database at *path*, or nothing."""
    program = """
        import sys, zlmdb
        class Store(zlmdb.Schema):
            numbers: zlmdb.Table[int, int]
        try:
            with zlmdb.open(sys.argv[1], Store) as db, db.write() as t:
                t.numbers[2] = 2
        except zlmdb.Error as error:
            print(type(error).__name__)
    """
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(program), str(path)]
    return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout.strip()


@pytest.mark.twice
def test_without_the_lock_file_of_lmdb_nothing_is_written(tmp_path: Path) -> None:
    """A program that opens the file then had another one: its changes were lost with the next write of this one."""
    with zlmdb.open(tmp_path / "db", Store) as db:
        with db.write() as t:
            t.numbers[1] = 1
        (tmp_path / "db" / "lock.mdb").unlink()
        db._open_store.look_at = 0.0
        with pytest.raises(zlmdb.InvalidDatabase, match="lock.mdb' was re"), db.write() as t:
            t.numbers[3] = 3
    with zlmdb.open(tmp_path / "db", Store) as db, db.write() as t:
        t.numbers[4] = 4
        assert list(t.numbers) == [1, 4]


@pytest.mark.twice
@pytest.mark.skipif(sys.platform == "win32", reason="nobody removes an open file there")
def test_nobody_makes_a_second_lock_file_beside_one_who_reads(tmp_path: Path) -> None:
    """A writer did not know of the reader, and overwrote the pages that it read."""
    path = tmp_path / "db"
    zlmdb.open(path, Store).close()
    for compacted in (False, True):
        with zlmdb.open(path, Store, readonly=not compacted) as db:
            if compacted:
                db.compact()  # the file is another one then
            pid = os.fork()
            if pid == 0:  # which closes what it has inherited, and nothing of its parent
                os._exit(0)
            os.waitpid(pid, 0)
            (path / "lock.mdb").unlink()
            assert opened_elsewhere(path) == "DatabaseInUse"
        assert opened_elsewhere(path) == ""


# -- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="where names are bytes")
def test_names_of_other_encodings_open_in_an_ascii_locale(tmp_path: Path) -> None:
    program = """
        import os, sys, zlmdb
        assert sys.getfilesystemencoding() == "ascii", sys.getfilesystemencoding()
        class Store(zlmdb.Schema):
            numbers: zlmdb.Table[int, int]
        for name in (b"caf\\xc3\\xa9", b"\\xff\\xfe"):
            path = os.fsdecode(os.path.join(os.fsencode(sys.argv[1]), name))
            for _ in range(2):
                with zlmdb.open(path, Store) as db:
                    with db.write() as t:
                        t.numbers[1] = t.numbers.get(1, 0) + 1
                    db.backup(path + ".backup", overwrite=True)
            with zlmdb.open(path, readonly=True) as db, db.read() as t:
                print(dict(t["numbers"]), len(zlmdb.Database.verify(path)))
    """
    environment = {
        **os.environ, "PYTHONPATH": ":".join(sys.path), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
    }  # fmt: skip
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if "AssertionError" in done.stderr:
        pytest.skip("this Python takes UTF-8 in the C locale, too")
    assert done.stdout == "{1: 2} 0\n" * 2, done.stderr


def test_the_errors_of_access_name_the_owner(tmp_path: Path) -> None:
    file, lock = tmp_path / "data.mdb", tmp_path / "lock.mdb"
    file.touch()
    lock.touch()
    assert access.can_lock(str(lock))
    assert access.require_reader(str(tmp_path), str(file), str(lock))
    result = CliRunner().invoke(main, ["info", str(tmp_path)])
    assert result.exit_code == 1


OPEN = """
    try:
        zlmdb.open(sys.argv[1], Store, readonly="ro" in sys.argv).close()
    except (zlmdb.ReadonlyDatabase, PermissionError) as error:
        print(type(error).__name__, error)
"""


@as_root
def test_who_may_not_write_is_told_of_permissions_and_of_readonly(place: Path) -> None:
    place.chmod(0o755)
    told = as_nobody(OPEN, place)
    assert "ReadonlyDatabase this user may not write there: open it with readonly=True" in told
    assert "Permission denied" in told
    assert "db.write()" not in told


@as_root
def test_a_directory_that_may_not_be_entered_is_not_said_to_lack_a_database(place: Path) -> None:
    place.chmod(0o700)
    restore = """
        try:
            zlmdb.Database.restore(sys.argv[1] + "/data.mdb", "/nowhere/db")
        except PermissionError as error:
            print(type(error).__name__)
    """
    assert as_nobody(OPEN, place, "ro").startswith("PermissionError")
    assert as_nobody(OPEN, place).startswith("PermissionError")
    assert as_nobody(restore, place) == "PermissionError\n"
