"""Limits of the system: descriptors, threads, room for temporary files. An operation that meets one names it."""

from __future__ import annotations

import errno
import io
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

import zlmdb
from zlmdb.engines.lmdb import copying

pytestmark = [
    pytest.mark.twice,  # processes and what is in files, which no version of Python makes different
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of this kind (setrlimit)"),
]


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    with zlmdb.open(tmp_path / "db", Store) as db, db.write() as t:
        t.numbers.put_many([(n, n) for n in range(1000)])
    return tmp_path / "db"


def run_with_few_files(program: str, *arguments: Path) -> str:
    """What *program* prints; its function ``few`` leaves so many descriptors."""
    start = """
        import errno, os, resource, shutil, sys, zlmdb
        taken = []
        def few(left):
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
            try:
                while True:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                pass
            for _ in range(left):
                os.close(taken.pop())
        def told(error):
            return error.errno == errno.EMFILE or "ulimit -n" in str(error) or repr(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(program), *map(str, arguments)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert not done.stderr, done.stderr
    return done.stdout


def test_a_salvage_without_descriptors_names_them_and_no_other_program(filled: Path) -> None:
    """It said that a program had written to the file: the file could not be opened to compare it."""
    program = """
        source, target = sys.argv[1:]
        zlmdb.Database.salvage(source, target)  # which imports what it takes
        shutil.rmtree(target)
        few(0)
        while True:
            try:
                print(zlmdb.Database.salvage(source, target).records)
                break
            except OSError as error:
                print(told(error))
            os.close(taken.pop())
    """
    said = run_with_few_files(program, filled, filled.parent / "rescued").split("\n")
    assert set(said) == {"True", "1000", ""}
    assert len(said) > 5


@pytest.mark.once
@pytest.mark.parametrize("left", range(9))
def test_a_cache_is_not_emptied_for_want_of_descriptors_and_can_be_closed(left: int, tmp_path: Path) -> None:
    """Its mark could not be read, so it was taken for that of another boot."""
    with zlmdb.Cache(tmp_path / "cache") as cache:
        cache["a"] = 1
    program = """
        zlmdb.Cache(None).close()
        few(int(sys.argv[2]))
        try:
            cache = zlmdb.Cache(sys.argv[1])
            print(cache.get("a") == 1)
            while taken:  # as another thread may do
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            print(told(error))
        if "cache" in globals():
            cache.close()
    """
    assert set(run_with_few_files(program, tmp_path / "cache", Path(str(left))).split()) == {"True"}
    with zlmdb.Cache(tmp_path / "cache") as cache:
        assert cache["a"] == 1


def test_what_cannot_be_opened_to_be_flushed_is_not_taken_for_flushed(filled: Path) -> None:
    program = """
        from zlmdb.operations import backup
        few(0)
        try:
            backup.flush(sys.argv[1])
        except OSError as error:
            print(told(error))
    """
    assert run_with_few_files(program, filled / "data.mdb") == "True\n"


@pytest.mark.parametrize("whose", ["ours", "ours, which ends at once", "that of LMDB"])
def test_a_copy_without_room_for_a_thread_says_so(
    whose: str, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB's error was taken for one of locks."""

    class Full(copying.threading.Thread):
        def start(self) -> None:
            if self.name == "zlmdb-backup":
                raise RuntimeError("can't start new thread")
            super().start()

    class Ended(copying.threading.Thread):
        def run(self) -> None:
            """As one that has no memory to call its function: `backup` waited for it for ever."""

    class Env:
        def __init__(self, env: Any) -> None:
            self.env = env

        def copyfd(self, descriptor: int, compact: bool) -> None:
            raise zlmdb.lmdb.LockError(f"mdb_env_copyfd3: {os.strerror(errno.EAGAIN)}")

        def __getattr__(self, name: str) -> Any:
            return getattr(self.env, name)

    with zlmdb.open(filled, Store) as db:
        with monkeypatch.context() as patched:
            if whose == "ours":
                patched.setattr(copying.threading, "Thread", Full)
            elif whose == "ours, which ends at once":
                patched.setattr(copying.threading, "Thread", Ended)
            else:
                patched.setattr(db._open_store, "env", Env(db._open_store.env))
            with pytest.raises(RuntimeError, match="no room for a thread.*ulimit -u.*compact=False"):
                db.backup(tmp_path / "copy.mdb")
            db.backup(tmp_path / "copy.mdb", compact=False)
        db.compact()
        assert [name for name in os.listdir(tmp_path) if name.endswith(".tmp")] == []
        assert db.check().ok


@pytest.fixture
def stream(filled: Path) -> bytes:
    out = io.BytesIO()
    with zlmdb.open(filled, Store) as db:
        db.dump(out)
    return out.getvalue()


class Pipe(io.RawIOBase):
    """What can be read only once."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        return self._data.readinto(into)


def test_a_file_is_loaded_without_room_for_a_temporary_one(stream: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no such directory")
    with zlmdb.open(None, zlmdb.Schema) as db:
        assert db.load(io.BytesIO(stream)).records == 1000


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount the small disk that is to be full, and only on Linux")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def loaded(stream: IO[bytes]) -> int:
    with zlmdb.open(None, zlmdb.Schema) as db:
        return db.load(stream).records


def test_a_pipe_is_loaded_or_the_place_without_room_is_named(stream: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", "/no such directory")
        with pytest.raises(zlmdb.DiskError, match="the stream could not be copied .*/no such directory.* set TMPDIR"):
            loaded(Pipe(stream))
    assert loaded(Pipe(stream)) == 1000


def test_a_pipe_with_more_than_there_is_room_for_is_an_error(
    stream: bytes, full_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(full_disk))
    with pytest.raises(zlmdb.DiskError, match="the stream could not be copied .* set TMPDIR"):
        loaded(Pipe(stream))
    assert os.listdir(full_disk) == []


def test_what_a_pipe_raises_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Pipe):
        def readinto(self, into: Any) -> int:
            raise ConnectionResetError("the other end has gone")

    with pytest.raises(ConnectionResetError):
        loaded(Broken(b""))


@pytest.mark.parametrize("how", ["open", "opened again in a child", "restore"])
def test_what_is_printed_without_standard_streams_is_not_written_into_the_files(how: str, filled: Path) -> None:
    """The data file got descriptor 1 of a program that had closed it, and was destroyed by what it printed."""
    program = """
        import contextlib

        class Store(zlmdb.Schema):
            numbers: zlmdb.Table[int, int]

        path, how = sys.argv[1:]
        zlmdb.Database.restore(path, path + "first")  # which imports what it takes

        def to_print(*_):
            for number in range(3):
                with contextlib.suppress(OSError):
                    os.write(number, b"a warning\\n" * 1000)

        def use(db):
            for number in range(20):  # so that LMDB writes what lies behind the end of the file now
                with db.write() as t:
                    t.numbers.put_many([(n, 7) for n in range(1000 * number, 1000 * number + 1000)])
                to_print()

        inherited = zlmdb.open(path, Store) if how == "opened again in a child" else None
        pid = os.fork()
        if pid == 0:
            try:
                os.closerange(0, 3)
                if how == "restore":
                    zlmdb.Database.restore(path, path + "copy", progress=to_print)
                elif inherited is not None:
                    use(inherited)
                else:
                    with zlmdb.open(path, Store) as db:
                        use(db)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
    """
    if how == "restore":  # in more than one step
        with zlmdb.open(filled, Store) as db, db.write() as t:
            t.numbers.put_many([(n, n) for n in range(100_000)])
    run_with_few_files(program, filled, Path(how))
    used = filled if how != "restore" else filled.parent / "dbcopy"
    assert zlmdb.Database.verify(used) == []
    with zlmdb.open(used, Store) as db, db.read() as t:
        assert set(t.numbers.values()) == ({7} if how != "restore" else set(range(100_000)))
        assert len(t.numbers) == (20_000 if how != "restore" else 100_000)
        assert db.check().ok


def test_a_write_opens_what_could_not_be_opened_after_compact(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that another file had replaced the data file, until something was read."""

    def refuse(**_: object) -> None:
        raise zlmdb.DiskError("this process has as many files open as it may")

    with zlmdb.open(filled, Store) as db:
        store: Any = db._store
        for number in range(3):
            with monkeypatch.context() as patched:
                patched.setattr(store.engine, "open", refuse)
                with pytest.raises(zlmdb.DiskError, match="as many files open"):
                    db.compact()
            store.look_at = 0.0
            with db.write() as t:
                t.numbers[number] = 7
        assert db.check().ok
        with db.read() as t:
            assert (t.numbers[0], t.numbers[1], len(t.numbers)) == (7, 7, 1000)
