"""Waiting for changes: commits of this process and of others wake it, and while there are none it does nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Optional

import pytest

import zlmdb
import zlmdb.worker as worker_module
from tests.test_feed import ROOT, Store, User, Users
from zlmdb.feed import changes as changes_module
from zlmdb.feed import doorbell
from zlmdb.notifier import Notifier

from .waiters import wait_until
from .workers import kill

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes: those who wait look every 20 ms")


@pytest.fixture(params=["memory", "lmdb", "without pipes"])
def db(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    if request.param == "without pipes":
        monkeypatch.setattr(doorbell.Doorbell, "_pipe", lambda self: None)
    with zlmdb.open(None if request.param == "memory" else tmp_path / "db", Store, durability="none") as opened:
        yield opened


def put(db: Any, key: int) -> None:
    with db.write() as t:
        t.users[key] = User(f"u{key}")


@contextmanager
def later(db: Any, *keys: int) -> Iterator[None]:
    """Another thread puts records, one after the other."""

    def work() -> None:
        for key in keys:
            time.sleep(0.02)
            put(db, key)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


def close(db: Any) -> None:
    """Also where a thread, before it waits, is just looking."""

    def closed() -> bool:
        with suppress(zlmdb.DatabaseInUse):
            db.close()
        return not db.is_open

    wait_until(closed)


def test_a_loop_waits_for_the_next_change(db: Any) -> None:
    put(db, 1)
    changes = db.changes(Users, timeout=None)
    with later(db, 2, 3):
        assert [one.key for _, one in zip(range(3), changes)] == [1, 2, 3]
    changes = db.changes(Users, after=3, timeout=5)
    with later(db, 4):
        assert [one.key for one in changes.take()] == [4]


def test_a_loop_ends_when_nothing_came_in_time(db: Any) -> None:
    started = time.monotonic()
    assert list(db.changes(Users, timeout=0.05)) == []
    assert db.changes(Users, timeout=0.05).take() == []
    assert time.monotonic() - started >= 0.1
    with pytest.raises(ValueError, match="timeout"):
        db.changes(Users, timeout=-1)


def test_those_who_wait_learn_at_once_that_the_database_is_closed(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(changes_module, "PATIENCE", 1000)
    monkeypatch.setattr(worker_module, "PATIENCE", 1000)
    jobs = db.table("jobs", zlmdb.Queue[str])
    worker: Any = zlmdb.Worker(db, lambda t: t[jobs])
    ended: list[str] = []

    def wait(name: str, how: Any) -> None:
        with pytest.raises(zlmdb.DatabaseClosed):
            how()
        ended.append(name)

    async def follow() -> None:
        async for _ in db.changes(Users, timeout=None):
            pass

    async def both() -> None:
        for found in await asyncio.gather(follow(), worker.aget(), return_exceptions=True):
            assert isinstance(found, zlmdb.DatabaseClosed)
        raise found

    ways = {"job": worker.get, "loop": db.changes(Users, timeout=None).take, "tasks": lambda: asyncio.run(both())}
    threads = [threading.Thread(target=wait, args=one, daemon=True) for one in ways.items()]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    close(db)
    for thread in threads:
        thread.join(60)
    assert sorted(ended) == ["job", "loop", "tasks"]


def test_a_task_waits_and_others_go_on(db: Any) -> None:
    async def follow() -> list[int]:
        found: list[int] = []
        async for one in db.changes(Users, timeout=None):
            found.append(one.key)
            if len(found) == 3:
                break
        return found

    async def take() -> list[int]:
        changes = db.changes(Users, consumer="index", timeout=5)
        found: list[int] = []
        while len(found) < 3:
            found += [one.key for one in await changes.atake()]
        await changes.aacknowledge()
        assert changes.consumers() == {"index": 3}
        return found

    async def work() -> Any:
        tasks = [asyncio.ensure_future(follow()), asyncio.ensure_future(take())]
        for key in (1, 2, 3):
            await asyncio.sleep(0.02)
            put(db, key)
        assert [one async for one in db.changes(Users, after=3, timeout=0.02)] == []
        return await asyncio.wait_for(asyncio.gather(*tasks), 10)

    assert asyncio.run(work()) == [[1, 2, 3], [1, 2, 3]]


def test_a_task_that_is_cancelled_leaves_nothing(db: Any) -> None:
    async def work() -> None:
        async def follow() -> None:
            async for _ in db.changes(Users, timeout=None):
                pass

        task = asyncio.ensure_future(follow())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    if db.dbpath is not None:
        assert waiting(db.dbpath) == []


@pipes
def test_the_tasks_of_a_loop_share_a_pipe_and_are_woken_by_one_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 40
    rings: list[object] = []

    async def follow(after: int) -> None:
        async for change in db.changes(Users, after=after, timeout=None):
            if change.number == after + 2:
                return

    async def work(after: int) -> None:
        tasks: list[Any] = [asyncio.ensure_future(follow(after)) for _ in range(count)]
        tasks.append(asyncio.ensure_future(db.changes(Users, after=after, timeout=None).atake()))
        await asyncio.sleep(0.05)
        assert len(waiting(db.dbpath)) == 1
        put(db, 1)
        await tasks.pop()
        tasks[0].cancel()  # the others go on to share it
        await asyncio.sleep(0.05)
        assert len(waiting(db.dbpath)) == 1
        put(db, 2)
        await asyncio.gather(*tasks[1:])

    ring = Notifier.ring
    monkeypatch.setattr(Notifier, "ring", lambda self: (rings.append(self), ring(self)))
    with zlmdb.open(tmp_path / "db", Store) as db:
        for after in (0, 2):  # the second loop may have the place in memory of the first one
            asyncio.run(work(after))
            assert waiting(db.dbpath) == []
        assert len(rings) <= 2 * 4, "those of the commits, and those of the pipe"


@pipes
def test_a_loop_that_is_closed_while_a_task_waits_leaves_no_pipe(tmp_path: Path) -> None:
    async def follow() -> None:
        async for _ in db.changes(Users, timeout=None):
            pass

    with zlmdb.open(tmp_path / "db", Store) as db:
        loop = asyncio.new_event_loop()
        task = loop.create_task(follow())
        loop.run_until_complete(asyncio.sleep(0.05))
        assert len(waiting(db.dbpath)) == 1
        loop.set_exception_handler(lambda loop, context: None)  # of a task that never ends
        loop.close()
        del loop, task
        for _ in range(10):  # PyPy ends what refers to each other one after the other
            gc.collect()
        assert waiting(db.dbpath) == []


def test_a_task_ends_in_peace_whose_pipe_the_collector_took_before(tmp_path: Path) -> None:
    pipes: list[Any] = []

    async def follow() -> None:
        async for _ in db.changes(Users, timeout=None):
            pass

    with zlmdb.open(tmp_path / "db", Store) as db, pytest.MonkeyPatch.context() as patch:
        make = doorbell.Doorbell._pipe
        patch.setattr(doorbell.Doorbell, "_pipe", lambda self: pipes.append(make(self)) or pipes[-1])
        loop = asyncio.new_event_loop()
        coroutine = follow()
        task = loop.create_task(coroutine)
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.set_exception_handler(lambda loop, context: None)  # of a task that never ends
        loop.close()
        assert len(waiting(db.dbpath)) == 1
        pipes[0].__del__()  # the collector asks what it found in no order
        coroutine.close()
        assert not task.done()
        assert waiting(db.dbpath) == []


FORKER = """if 1:
    import asyncio, os, sys
    sys.path.insert(0, sys.argv[2])
    import zlmdb
    from tests.test_feed import Store, User
    from zlmdb.feed import changes as changes_module

    changes_module.PATIENCE = 1000
    parent = os.getpid()
    db = zlmdb.open(sys.argv[1], Store, durability="none")

    async def follow():
        async for one in db.changes("users", timeout=None):
            return one.key

    def fork(task):
        child = os.fork()
        if child == 0:
            task.cancel()  # asyncio.run does so, but that of CPython 3.14 does not know the tasks of the parent
            sys.exit()
        os.waitpid(child, 0)
        print("go", flush=True)

    async def work():
        task = asyncio.ensure_future(follow())
        # Not in a task: in a child, CPython 3.14 forgets which one runs, and would never end.
        asyncio.get_running_loop().call_later(0.02, fork, task)
        print(await asyncio.wait_for(task, 5), flush=True)

    try:
        asyncio.run(work())
    finally:
        if os.getpid() != parent:
            os._exit(0)
"""


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pipes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_task_is_woken_though_a_forked_child_has_ended_it_for_itself(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store, durability="none") as db:
        process = start(FORKER, tmp_path, ROOT)
        put(db, 7)
        assert process.communicate() == ("7\n", None)


@pipes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_that_waits_takes_no_ring_from_its_parent(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store, durability="none") as db:
        bell = db.changes(Users)._bell()
        with bell.listen() as wait:
            bell.ring()
            child = os.fork()
            if child == 0:
                wait(0)
                os._exit(0)
            os.waitpid(child, 0)
            assert wait(0)


def test_waiting_in_a_write_transaction_is_refused(db: Any) -> None:
    with db.write() as t:
        t.users[1] = User("ann")
        with pytest.raises(zlmdb.NestedTransaction):
            list(db.changes(Users, timeout=None))
        assert list(db.changes(Users)) == []


@pytest.mark.parametrize("many", [False, True])
def test_a_task_that_waits_for_changes_in_its_own_block_is_told(db: Any, many: bool) -> None:
    async def waits() -> list[Any]:
        changes = db.changes(Users, timeout=None)
        return [change async for change in changes] if many else await changes.atake()

    async def main() -> None:
        with db.write(), pytest.raises(zlmdb.NestedTransaction):
            await asyncio.wait_for(waits(), 60)

    asyncio.run(main())


def test_a_task_waits_for_changes_while_another_has_a_block_open(db: Any) -> None:
    async def writes() -> None:
        with db.write() as t:
            t.users[1] = User("ann")
            await asyncio.sleep(0.1)

    async def main() -> list[int]:
        task = asyncio.ensure_future(writes())
        await asyncio.sleep(0.01)
        taken = await db.changes(Users, timeout=20).atake()
        await task
        return [change.key for change in taken]

    assert asyncio.run(main()) == [1]


def test_closing_the_database_ends_the_waits(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "PATIENCE", 1000)
    changes = db.changes(Users, timeout=None)
    ended: list[Any] = []

    def wait() -> None:
        try:
            changes.take()
        except zlmdb.DatabaseClosed as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    close(db)
    thread.join(60)
    assert len(ended) == 1


def test_who_looks_while_the_database_closes_does_not_open_it_anew(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def look(bell: doorbell.Doorbell) -> None:
        with pytest.raises(zlmdb.DatabaseClosed):
            list(db.changes(Users))
        looked.append("closed")

    changes = db.changes(Users)
    assert changes.take() == []
    put(db, 1)
    monkeypatch.setattr(doorbell.Doorbell, "ring", look)
    db.close()
    assert set(looked) == {"closed"}


def waiting(path: Any) -> list[str]:
    directory = os.path.join(path, "data.mdb-waiting")
    return os.listdir(directory) if os.path.isdir(directory) else []


@pipes
def test_pipes_are_as_private_as_the_file_and_go_with_those_who_wait(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, mode=0o600) as db:
        put(db, 1)
        iterator = iter(db.changes(Users, after=1, timeout=None))

        def put_when_it_waits() -> None:
            wait_until(lambda: any(not name.startswith(".") for name in waiting(tmp_path / "db")))
            put(db, 2)

        thread = threading.Thread(target=put_when_it_waits)
        thread.start()
        assert next(iterator).key == 2
        thread.join()
        [name] = waiting(tmp_path / "db")
        directory = tmp_path / "db" / "data.mdb-waiting"
        assert (directory / name).stat().st_mode & 0o777 == 0o600
        assert directory.stat().st_mode & 0o777 == (tmp_path / "db").stat().st_mode & 0o777
        del iterator
        if sys.implementation.name == "cpython":
            assert not directory.exists()


WAITER = """if 1:
    import sys, time
    sys.path.insert(0, sys.argv[2])
    import zlmdb
    from tests.test_feed import Store
    from zlmdb.feed import changes as module
    module.PATIENCE = 100.0
    with zlmdb.open(sys.argv[1], Store, readonly=len(sys.argv) > 3) as db:
        changes = db.changes("users", timeout=None)
        print("go", flush=True)
        for one in changes:
            print(time.time(), one.key, flush=True)
"""


def start(program: str, *arguments: Any) -> Any:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    return process


@pytest.mark.twice
@pytest.mark.parametrize("readonly", [(), ("readonly",)], ids=["writer", "reader"])
def test_another_process_is_woken_at_once(readonly: Any, tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store, durability="none") as db:
        process = start(WAITER, tmp_path, ROOT, *readonly)
        pauses: list[float] = []
        for key in range(9):
            time.sleep(0.03)
            put(db, key)
            done = time.time()
            woken, said = process.stdout.readline().split()
            assert int(said) == key
            pauses.append(float(woken) - done)
        kill(process)
    assert max(pauses) < 50  # it would look again after 100 seconds


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pipes
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_the_pipe_of_a_killed_waiter_is_removed_by_the_next_commit(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store, durability="none") as db:
        process = start(WAITER, tmp_path, ROOT)
        put(db, 1)
        process.stdout.readline()
        left = within(5, lambda: [name for name in waiting(tmp_path) if not name.startswith(".")])  # a finished one
        kill(process)
        assert waiting(tmp_path) == left
        put(db, 2)
        assert not (tmp_path / "data.mdb-waiting").exists()


def within(seconds: float, look: Any) -> Any:
    end = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < end:
        time.sleep(0.01)
    return found


IDLE = """if 1:
    import resource, sys
    sys.path.insert(0, sys.argv[2])
    import zlmdb
    from tests.test_feed import Store
    with zlmdb.open(sys.argv[1], Store) as db:
        changes = db.changes("users", timeout=0.05)
        changes.take()
        changes._timeout = 1
        before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
        changes.take()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)
"""


@pytest.mark.twice
@pipes
def test_who_waits_does_nothing_meanwhile(tmp_path: Path) -> None:
    """It sleeps in one system call: where it looked again and again, it would have slept a hundred times."""
    zlmdb.open(tmp_path, Store).close()
    found = subprocess.run(
        [sys.executable, "-c", IDLE, str(tmp_path), ROOT], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert int(found.stdout) <= 2


def test_a_commit_whose_process_was_killed_before_it_rang_is_found_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorbell.Doorbell, "ring", lambda self: None)
    monkeypatch.setattr(changes_module, "PATIENCE", 0.1)
    with zlmdb.open(tmp_path, Store, durability="none") as db, later(db, 1):
        assert [one.key for one in db.changes(Users, timeout=5).take()] == [1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no file that is open")
def test_who_waits_learns_that_the_file_was_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "PATIENCE", 0.02)
    with zlmdb.open(tmp_path, Store, durability="none") as db:
        db.backup(tmp_path / "copy")
        (tmp_path / "copy").replace(tmp_path / "data.mdb")
        with pytest.raises(zlmdb.InvalidDatabase, match="replaced"):
            db.changes(Users, timeout=20).take()


@pipes
def test_only_those_who_wait_for_the_table_are_woken(tmp_path: Path) -> None:
    rung: Optional[bool] = None
    with zlmdb.open(tmp_path, Store, durability="none") as db, db.changes(Users)._bell().listen() as wait:
        with db.write() as t:
            t.logins["ann"] = 1
            t.copies[1] = User("ann")
        assert wait(0) is False
        put(db, 1)
        rung = wait(0)
        assert wait(0) is False
    assert rung is True


@pipes
def test_a_ring_writes_into_pipes_only(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store, durability="none") as db:
        topic = db.changes(Users)._bell()._topic
        directory = tmp_path / "data.mdb-waiting"
        directory.mkdir()
        (directory / f"{topic}.1.0").write_bytes(b"mine")
        (tmp_path / "target").write_bytes(b"mine")
        (directory / f"{topic}.1.1").symlink_to(tmp_path / "target")
        put(db, 1)
        assert (directory / f"{topic}.1.0").read_bytes() == b"mine"
        assert (tmp_path / "target").read_bytes() == b"mine"


def test_a_loop_that_runs_inside_of_a_block_does_not_wait_for_changes(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store) as db, db.write(), pytest.raises(zlmdb.NestedTransaction):
        asyncio.run(db.changes(Users, timeout=None).atake())


@pipes
def test_who_waits_gets_a_pipe_though_others_remove_the_directory_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After two times it looked every 20 ms, as long as it waited."""
    real, left = os.mkfifo, [5]

    def removed(path: str, mode: int) -> None:
        if left[0]:
            left[0] -= 1
            os.rmdir(os.path.dirname(path))
        real(path, mode)

    file = tmp_path / "data.mdb"
    file.touch()
    monkeypatch.setattr(doorbell.posix, "mkfifo", removed)
    with doorbell.Doorbell(str(file), 1, shared=True).listen():
        assert len(os.listdir(f"{file}-waiting")) == 1
