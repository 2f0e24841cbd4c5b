"""Several processes: handed a database, growing one together, short of address space, on disks that are full or sealed.

`test_fork.py` has what fork itself may break. How many and how long is small here; `tests/reliability` has the rest.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Optional

import pytest

import zlmdb

from . import workers

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

METHODS = multiprocessing.get_all_start_methods()
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and mounts as Linux has them")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "data")


@pytest.fixture(params=[*METHODS[:1], *(pytest.param(one, marks=pytest.mark.once) for one in METHODS[1:])])
def context(request: pytest.FixtureRequest) -> Any:
    return multiprocessing.get_context(request.param)


def total() -> int:
    return sum(range(workers.ROWS))


# -- a database is handed over ----------------------------------------------------------------------------------------


def test_a_pool_reads_and_writes_a_database_that_it_is_handed(path: str, context: Any) -> None:
    with zlmdb.open(path, workers.Store) as db:
        workers.fill(db)
        with db.read() as before:
            with context.Pool(2) as pool:
                parts = pool.starmap(workers.part, [(db, worker, 2) for worker in range(2)])
                pool.close()
                pool.join()
            assert len(before.counts) == 0, "a snapshot stays as it was"
        assert sum(parts) == total()
        with db.read() as t:
            assert sorted(t.counts) == ["worker 0", "worker 1"]
            assert os.getpid() not in t.counts.values()
        assert db.check().ok


def test_an_executor_keeps_the_database_it_was_started_with(path: str, context: Any) -> None:
    with zlmdb.open(path, workers.Store) as db:
        workers.fill(db)
        if context.get_start_method() != "fork" and sys.implementation.name == "pypy":
            pytest.skip("PyPy 3.9's own ProcessPoolExecutor cannot start workers by this method")
        with ProcessPoolExecutor(2, mp_context=context, initializer=workers.take, initargs=(db,)) as pool:
            found = list(pool.map(workers.row, range(workers.ROWS), chunksize=20))
        assert found == [b"%d" % n for n in range(workers.ROWS)]


def test_a_loader_gets_batches_from_workers(path: str, context: Any) -> None:
    with zlmdb.open(path, workers.Store) as db:
        workers.fill(db)
        rows = workers.Rows(db)
        for _ in range(2):  # epochs, each with workers of its own
            loaded = list(workers.batches(rows, context, 2, 16))
            assert [len(batch) for batch in loaded] == [16] * 12 + [8]
            assert [data for batch in loaded for data in batch] == [b"%d" % n for n in range(workers.ROWS)]
            with db.write() as t:
                t.counts["epochs"] = 1
        assert db.check().ok


@pytest.mark.skipif("fork" not in METHODS, reason="this system has no fork()")
def test_servers_that_load_before_they_fork_serve(path: str) -> None:
    """As gunicorn does with --preload: the application opens the database, and each worker uses it."""
    program = """
        import os, sys
        import zlmdb
        from tests import workers
        db = zlmdb.open(sys.argv[1], workers.Store)
        workers.fill(db)
        children = []
        for worker in range(3):
            pid = os.fork()
            if not pid:
                status = 1
                try:
                    assert db.maxsize > 0 and db.stats()["pages"] > 0  # facts, before any transaction
                    for _ in range(20):
                        workers.part(db, worker, 3)
                        db.clear_readers()
                    status = 0
                finally:
                    os._exit(status)
            children.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
        with db.read() as t:
            assert len(t.counts) == 3
        assert db.check().ok
    """
    run(program, path)


class Wider(workers.Store):
    third: zlmdb.Table[str, int]


def test_a_file_that_is_being_written_keeps_no_other_from_being_opened(tmp_path: Path) -> None:
    for name in ("busy", "free"):
        zlmdb.open(tmp_path / name, workers.Store).close()
    program = """
        import sys, zlmdb
        from tests import workers
        with zlmdb.open(sys.argv[1], workers.Store) as db, db.write():
            print("writing", flush=True)
            sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "busy")]
    environment = workers.surroundings()
    writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert writer.stdin is not None
    assert writer.stdout is not None
    assert writer.stdout.readline() == "writing\n"
    opened: list[Any] = []
    waiting = [
        threading.Thread(target=lambda: opened.append(zlmdb.open(tmp_path / "busy", Wider, timeout=60)))
        for _ in range(3)
    ]
    try:
        for thread in waiting:
            thread.start()
            time.sleep(0.1)
        start = time.monotonic()
        with zlmdb.open(tmp_path / "free", workers.Store) as db:
            workers.fill(db)
        with pytest.raises(zlmdb.WriterTimeout):
            zlmdb.open(tmp_path / "busy", Wider, timeout=0.1)
        assert time.monotonic() - start < 20
        assert opened == []
        with zlmdb.Database.open(tmp_path / "busy") as db:
            assert len(db.tables()) == 2
    finally:
        writer.communicate("")
        for thread in waiting:
            thread.join(30)
    assert len(opened) == 3, "those that wait do so for one another, for ever"
    assert len({db._open_store for db in opened}) == 1
    with zlmdb.open(tmp_path / "busy", workers.Store) as db:
        workers.fill(db)
        with db.read() as t:
            assert len(t.rows) == workers.ROWS
    for db in opened:
        db.close()


@pytest.mark.skipif("fork" not in METHODS, reason="this system has no fork()")
def test_a_fork_while_a_thread_opens_does_not_leave_the_child_waiting(path: str) -> None:
    program = """
        import os, sys, threading
        import zlmdb
        from zlmdb.store import openstores
        from tests import workers
        entered, leave = threading.Event(), threading.Event()

        def opens():
            with openstores.lock:
                entered.set()
                leave.wait()

        thread = threading.Thread(target=opens)
        thread.start()
        entered.wait()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                with zlmdb.open(sys.argv[1], workers.Store) as db:
                    workers.fill(db)
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        leave.set()
        thread.join()
    """
    run(program, path)


@pytest.mark.skipif("fork" not in METHODS, reason="this system has no fork()")
@pytest.mark.parametrize("begins", ["before", "meanwhile"])
def test_a_fork_while_a_thread_imports_what_is_imported_late_does_not_leave_the_child_waiting(
    path: str, begins: str
) -> None:
    """Python's lock of a module outlives the thread that has it, and the child would wait for that for ever.

    Or, if a thread of the child gets the number of that one, it takes what is there of the module for all of it.
    """
    program = """
        import logging, os, signal, sys, threading, time
        import zlmdb
        from tests import workers
        db = zlmdb.open(sys.argv[1], workers.Store)
        begun = threading.Event()

        class Slow:
            def find_spec(self, name, *others):
                if name == "zlmdb.store.groups":
                    begun.set()
                    time.sleep(0.2)

        sys.meta_path.insert(0, Slow())
        thread = threading.Thread(target=lambda: db.submit(lambda t: t.counts.increment("a")).result())

        def begin():
            if not thread.ident:
                thread.start()
                begun.wait()

        if sys.argv[2] == "before":
            begin()
        engine = type(db._open_store.engine)
        before = engine.before_fork
        engine.before_fork = lambda *of: (begin(), before(*of))[1]
        pid = os.fork()
        if not pid:
            signal.alarm(5)
            db.submit(lambda t: t.counts.increment("b")).result()
            db.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        thread.join()
        with db.read() as t:
            print(sorted(t.counts))
        db.close()
    """
    assert run(program, path, begins) == "['a', 'b']\n"


def run(program: str, *arguments: str, code: int = 0) -> str:
    environment = workers.surroundings()
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


# -- they grow it together --------------------------------------------------------------------------------------------


def test_processes_grow_one_file_together_while_their_threads_read(path: str) -> None:
    context = multiprocessing.get_context("spawn")
    zlmdb.open(path, workers.Store).close()
    transactions = 25
    processes = [context.Process(target=workers.grow, args=(path, n, transactions)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert os.path.getsize(os.path.join(path, "data.mdb")) > 4 * (1 << 18), "it grew several times"
    with zlmdb.open(path, workers.Store) as db:
        with db.read() as t:
            assert list(t.rows) == list(range(3 * transactions * 20))
        assert db.check().ok


def test_an_index_is_built_although_the_map_has_to_grow(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlmdb.engines.lmdb.mapsize.RESERVATION", 0)
    monkeypatch.setattr("zlmdb.engines.lmdb.mapsize.FIRST_SIZE", 1 << 18)

    class Plain(zlmdb.Schema):
        texts: zlmdb.Table[int, zlmdb.Json[dict[str, str]]]

    class Texts(zlmdb.Table[int, zlmdb.Json[dict[str, str]]]):
        by_text = zlmdb.Index[str](lambda value: value["text"] * 20, version=1)
        by_more = zlmdb.Index[str](lambda value: value["text"] * 20 + "more", version=1)

    class Indexed(zlmdb.Schema):
        texts: Texts

    with zlmdb.open(path, Plain, durability="none") as db:
        db.run(lambda t: t.texts.put_many((n, {"text": f"text {n:06}"}) for n in range(3000)))
        before = db.maxsize
    with zlmdb.open(path, Indexed, durability="none") as db:
        assert db.maxsize > before
        with db.read() as t:
            assert t.texts.by_text.select().count() == 3000
        assert db.check().ok


def test_a_run_goes_on_in_a_larger_map_whatever_another_thread_met_meanwhile(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlmdb.engines.lmdb.mapsize.RESERVATION", 0)
    monkeypatch.setattr("zlmdb.engines.lmdb.mapsize.FIRST_SIZE", 1 << 18)

    class Plain(zlmdb.Schema):
        texts: zlmdb.Table[int, str]

    with zlmdb.open(path, Plain, durability="none") as db:
        store: Any = db._open_store
        grow, asked = store.grow, []

        def later(timeout: Optional[float], grown: int, **more: Any) -> bool:
            store.full = False  # a transaction of another thread failed, for want of something else
            asked.append(grown)
            return bool(grow(timeout, grown, **more))

        monkeypatch.setattr(store, "grow", later)
        db.run(lambda t: t.texts.put_many((n, "x" * 1000) for n in range(3000)))
        assert asked
        with db.read() as t:
            assert len(t.texts) == 3000


# -- limits of the system ---------------------------------------------------------------------------------------------


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@linux
def test_a_limit_of_the_address_space_is_an_error_and_the_database_goes_on(path: str) -> None:
    program = """
        import os, resource, sys
        import zlmdb
        from zlmdb.engines.lmdb import mapsize
        from tests import workers

        workers.small_steps()
        db = zlmdb.open(sys.argv[1], workers.Store, durability="none")
        stored = 5000  # the interpreter, too, takes memory for its first writes
        for start in range(0, stored, 200):
            db.run(lambda t: t.rows.put_many((start + n, b"x" * 3000) for n in range(200)))
        assert db.maxsize == 32 << 20
        used = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) << 10
        # Room for the next doubling of the map and, beside it, for what else the process does: not for another one.
        resource.setrlimit(resource.RLIMIT_AS, (used + (32 << 20) + (24 << 20), resource.RLIM_INFINITY))
        try:
            while stored < 100_000:
                db.run(lambda t: t.rows.put_many((stored + n, b"x" * 3000) for n in range(200)))
                stored += 200
        except zlmdb.DatabaseFull as error:
            print("full:", error)
        for _ in range(2):
            with db.read() as t:
                assert len(t.rows) == stored > 0
            with db.write() as t:
                t.rows[0] = b"changed"
        try:
            db.run(lambda t: t.rows.put_many((stored + n, b"x" * 3000) for n in range(2000)))
        except zlmdb.DatabaseFull:
            pass
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        db.run(lambda t: t.rows.put_many((stored + n, b"x" * 3000) for n in range(5000)))
        with db.read() as t:
            assert len(t.rows) == stored + 5000 and t.rows[0] == b"changed"
        assert db.check().ok
    """
    said = run(program, path)
    assert "address space" in said
    assert "keeps its map" in said


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@linux
def test_a_process_that_cannot_follow_another_that_grew_the_file_goes_on_later(path: str) -> None:
    program = """
        import resource, subprocess, sys
        import zlmdb
        from tests import workers

        workers.small_steps()
        other = subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]], stdin=subprocess.PIPE)
        db = zlmdb.open(sys.argv[1], workers.Store, durability="none")
        with db.write() as t:
            t.rows[0] = b"first"
        env = db._open_store.env
        used = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) << 10
        resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), resource.RLIM_INFINITY))
        other.communicate(b"go")
        assert other.returncode == 0
        for _ in range(2):
            try:
                db.read()
            except zlmdb.DatabaseFull as error:
                print("full:", error)
        assert db._open_store.env is env
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        with db.read() as t:
            assert len(t.rows) == 20_001 and t.rows[0] == b"first"
    """
    grower = textwrap.dedent("""
        import sys
        import zlmdb
        from tests import workers

        sys.stdin.read()
        with zlmdb.open(sys.argv[1], workers.Store, durability="none") as db, db.write() as t:
            t.rows.put_many((1 + n, b"x" * 3000) for n in range(20_000))
    """)
    assert run(program, path, grower).count("keeps its map") == 2


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@linux
def test_a_small_address_space_opens_with_a_small_map(path: str) -> None:
    program = """
        import resource, sys
        import zlmdb
        from tests import workers
        zlmdb.open(sys.argv[1], workers.Store).close()  # imports what it takes
        used = int(next(line for line in open("/proc/self/status") if line.startswith("VmSize")).split()[1]) << 10
        resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 20), used + (40 << 20)))
        with zlmdb.open(sys.argv[1], workers.Store) as db:
            workers.fill(db)
            print(db.maxsize)
    """
    assert 1 << 16 < int(run(program, path)) < 40 << 20


@pytest.fixture
def tmpfs(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can only be mounted by root, on Linux")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize("durability", ["full", "commit", "none"])
def test_a_full_disk_is_an_error_and_the_database_goes_on(tmpfs: Path, durability: Any) -> None:
    with zlmdb.open(tmpfs / "data", workers.Store, durability=durability) as db:
        workers.fill(db)
        stored = workers.ROWS
        with pytest.raises((zlmdb.DiskError, zlmdb.DatabaseFull)):  # noqa: PT012
            while stored < 10_000:
                with db.write() as t:
                    t.rows.put_many((stored + n, b"x" * 1000) for n in range(100))
                stored += 100
        assert stored < 2500
        for _ in range(3):
            with pytest.raises((zlmdb.DiskError, zlmdb.DatabaseFull)), db.write() as t:
                t.rows.put_many((stored + n, b"x" * 1000) for n in range(1000))
            with db.read() as t:
                assert list(t.rows) == list(range(stored))
        assert db.check().ok
        subprocess.run(["mount", "-o", "remount,size=16m", str(tmpfs)], check=True)
        with db.write() as t:
            t.rows.put_many((stored + n, b"x" * 1000) for n in range(5000))
        with db.read() as t:
            assert list(t.rows) == list(range(stored + 5000))
        assert db.check().ok


def test_a_file_on_a_full_disk_opens(tmpfs: Path) -> None:
    with zlmdb.open(tmpfs / "data", workers.Store) as db:
        workers.fill(db)
    (tmpfs / "data" / "writer.lock").unlink()
    with suppress(OSError), open(tmpfs / "rest", "wb") as rest:
        while True:
            rest.write(bytes(4096))
    with zlmdb.open(tmpfs / "data", workers.Store) as db:
        with db.read() as t:
            assert len(t.rows) == workers.ROWS
        with pytest.raises(zlmdb.DiskError), db.write() as t:  # a change is written beside what was there
            t.rows.put_many((n, b"x" * 1000) for n in range(workers.ROWS))
        (tmpfs / "rest").unlink()
        with db.write() as t:
            del t.rows[0]


@pytest.mark.parametrize("locks", [True, False], ids=["with lock files", "without lock files"])
def test_read_only_media_open_read_only(tmpfs: Path, locks: bool) -> None:
    with zlmdb.open(tmpfs / "data", workers.Store) as db:
        workers.fill(db)
    if not locks:
        for name in ("lock.mdb", "writer.lock"):
            (tmpfs / "data" / name).unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(tmpfs)], check=True)
    with zlmdb.open(tmpfs / "data", workers.Store, readonly=True) as db, db.read() as t:
        assert list(t.rows) == list(range(workers.ROWS))
    with zlmdb.open(tmpfs / "data" / "data.mdb", readonly=True) as db, db.read() as t:
        assert len(t["rows"]) == workers.ROWS
    with pytest.raises(zlmdb.ReadonlyDatabase):
        zlmdb.open(tmpfs / "data", workers.Store)
    with pytest.raises((zlmdb.ReadonlyDatabase, OSError)):
        zlmdb.open(tmpfs / "new", workers.Store)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@linux
def test_namespaces_of_processes_do_not_confuse_writers(path: str) -> None:
    """In two containers with one volume, process ids may be equal; without a shared namespace readers look dead."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("namespaces of processes can only be made by root, on Linux")
    zlmdb.open(path, workers.Store).close()
    program = """
        import sys, zlmdb
        from tests import workers
        with zlmdb.open(sys.argv[1], workers.Store, durability="none") as db:
            for _ in range(100):
                with db.write() as t:
                    t.counts["n"] = t.counts.get("n", 0) + 1
    """
    environment = workers.surroundings()
    command = [*unshare, sys.executable, "-c", textwrap.dedent(program), path]
    running = [subprocess.Popen(command, env=environment) for _ in range(2)]
    assert [process.wait(120) for process in running] == [0, 0]
    with zlmdb.open(path, workers.Store) as db:
        with db.read() as t:
            assert t.counts["n"] == 200
        assert db.check().ok
