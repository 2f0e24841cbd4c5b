"""The lock between processes costs nothing while there is only one, and is there as soon as another one comes."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import random
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zlmdb import errors
from zlmdb.store import lockfile, processlock, writerlock
from zlmdb.store.holds import Hold
from zlmdb.store.writerlock import WriterLock
from zlmdb.systems import HAS_BYTE_LOCKS

pytestmark = [
    pytest.mark.twice,  # processes and what is in files, which no version of Python makes different
    pytest.mark.skipif(not HAS_BYTE_LOCKS, reason="such locks are of 64-bit Linux, and used there only"),
]
fork: Any = multiprocessing.get_context("fork") if HAS_BYTE_LOCKS else None


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "writer.lock")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the file looks at once whether it is alone, and with each `WriterLock.acquire`."""
    monkeypatch.setattr(processlock, "_LOOK_AGAIN", 0.0)


def lock_of(path: str) -> WriterLock:
    lock = WriterLock(path)
    lock.is_local = True
    return lock


def write(lock: WriterLock, timeout: float = 10) -> None:
    hold = Hold()
    if not lock.take(hold, threading.get_ident()):
        lock.acquire(timeout, hold)
    lock.release(hold)


class Other:
    """Another process, which opens the file at *path*, becomes the writer when told to, and stays it."""

    def __init__(self, path: str) -> None:
        self.told, self._told = fork.Pipe()
        self.process = fork.Process(target=self._run, args=(path,))
        self.process.start()

    def _run(self, path: str) -> None:
        lock, hold = lock_of(path), Hold()
        while True:
            todo = self._told.recv()
            if todo in ("acquire", "try"):
                try:
                    lock.acquire(10 if todo == "acquire" else 0.05, hold)
                except errors.WriterTimeout:
                    todo = "late"
            elif todo == "release":
                lock.release(hold)
            elif todo == "close":
                lock.close()
            self._told.send((todo, lock.alone is not None))

    def do(self, todo: str) -> Any:
        """Whether the other process is alone, when it has done that."""
        self.told.send(todo)
        return self.wait(todo)

    def wait(self, todo: str) -> Any:
        assert self.told.poll(20), "the other process waits"
        answer, alone = self.told.recv()
        assert answer == todo
        return alone

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


@pytest.fixture
def other(path: str) -> Iterator[Other]:
    one = Other(path)
    yield one
    one.kill()


def test_the_only_process_takes_no_lock(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = lock_of(path)
    write(lock)
    monkeypatch.setattr(writerlock, "flock", None)
    for _ in range(3):
        write(lock)
    assert Path(path).read_bytes()[: lockfile.NAME_SIZE] == b"%-20d" % os.getpid()


def test_one_that_comes_while_the_first_is_idle_does_not_wait_for_it(path: str, other: Other) -> None:
    lock = lock_of(path)
    write(lock)
    assert not other.do("acquire")
    with pytest.raises(errors.WriterTimeout, match=f"process {other.process.pid} "):
        write(lock, 0.05)
    assert lock.alone is None
    other.do("release")
    write(lock)


def test_one_that_comes_while_the_first_writes_waits_for_that(path: str, other: Other) -> None:
    other.do("acquire")
    lock = lock_of(path)
    for _ in range(2):
        with pytest.raises(errors.WriterTimeout, match=f"process {other.process.pid} "):
            write(lock, 0.05)
    later = threading.Timer(0.1, other.do, ("release",))
    later.start()
    write(lock)
    later.join()
    assert not other.do("acquire"), "it has seen that there is another"
    with pytest.raises(errors.WriterTimeout):
        write(lock, 0)
    other.do("release")
    write(lock, 1)


def test_who_writes_again_and_again_gives_way_to_a_process_that_waits(
    path: str, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, hold, pauses = lock_of(path), Hold(), []
    other.do("acquire")
    other.do("release")
    write(lock)
    lock.acquire(10, hold)
    other.told.send("acquire")
    name: Any = lock._name
    until = time.monotonic() + 20
    while not name[lockfile.WANTED]:
        assert time.monotonic() < until
    lock.release(hold)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        other.wait("acquire")

    with monkeypatch.context() as patched:
        patched.setattr(lockfile, "time", SimpleNamespace(sleep=pause))
        with pytest.raises(errors.WriterTimeout):
            write(lock, 0)
    assert len(pauses) == 1
    other.do("release")
    write(lock)
    assert not name[lockfile.WANTED]


def test_one_that_was_killed_while_it_wrote_alone_keeps_nobody_waiting(path: str, other: Other) -> None:
    assert other.do("acquire")
    lock = lock_of(path)
    with pytest.raises(errors.WriterTimeout):
        write(lock, 0)
    other.kill()
    write(lock, 0)
    lock.close()
    write(lock, 0)
    assert lock.alone is not None


def test_when_the_other_has_closed_the_first_is_alone_again(path: str, other: Other) -> None:
    lock = lock_of(path)
    write(lock)
    other.do("acquire")
    other.do("release")
    write(lock)
    write(lock)
    assert lock.alone is None
    other.do("close")
    lock.acquire(0, Hold())
    assert lock.alone is not None
    assert not other.do("close")


def test_a_child_does_not_keep_what_it_inherited(path: str) -> None:
    lock = lock_of(path)
    hold = Hold()
    lock.acquire(0, hold)
    here, there = fork.Pipe()

    def child() -> None:
        lock.close()  # as `OpenEnvironment.in_child`
        own = lock_of(path)
        with pytest.raises(errors.WriterTimeout):
            write(own, 0.05)
        there.send("late")
        there.recv()
        write(own)

    process = fork.Process(target=child)
    process.start()
    assert here.poll(20)
    assert lock.alone is not None
    lock.release(hold)
    here.send("released")
    process.join()
    assert process.exitcode == 0


def test_a_lock_file_of_the_former_size_is_made_larger(path: str) -> None:
    Path(path).write_bytes(b"%-20d" % 1)
    lock = lock_of(path)
    write(lock)
    assert lock.alone is not None
    assert os.path.getsize(path) == lockfile.FILE_SIZE


@pytest.mark.parametrize("missing", ["enter", "make_room", "be_alone"])
def test_without_the_means_the_file_is_locked(path: str, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def fail(*args: Any) -> Any:
        if missing == "make_room":
            raise OSError(28, "no space")
        return None

    monkeypatch.setattr(lockfile, missing, fail)
    lock, other = lock_of(path), Other(path)
    try:
        for _ in range(2):
            hold = Hold()
            lock.acquire(0, hold)
            assert lock.alone is None
            other.told.send("try")
            assert not other.wait("late")
            lock.release(hold)
            assert not other.do("acquire")
            with pytest.raises(errors.WriterTimeout):
                write(lock, 0)
            other.do("release")
    finally:
        other.kill()


COUNTER = struct.Struct("=q")


def crowd(path: str, counter: mmap.mmap, seed: int, seconds: float) -> None:
    """Count writes as one does who must be alone, in two threads."""
    chance = random.Random(seed)
    lock = lock_of(path)
    done = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        hold = Hold()
        if not lock.take(hold, threading.get_ident()):
            lock.acquire(20, hold)
        (count,) = COUNTER.unpack_from(counter)
        if chance.random() < 0.1:
            time.sleep(chance.choice((0, 0.0005, 0.002)))
        COUNTER.pack_into(counter, 0, count + 1)
        done += 1
        lock.release(hold)
        if chance.random() < 0.01:
            lock.close()
        if chance.random() < 0.02:
            time.sleep(chance.random() * 0.03)
    COUNTER.pack_into(counter, 8 * seed, done)


def test_processes_that_come_and_go_never_write_at_the_same_time(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processlock, "_LOOK_AGAIN", 0.0)
    counter = mmap.mmap(-1, 64)
    processes = [fork.Process(target=crowd, args=(path, counter, seed, 0.7)) for seed in (1, 2, 3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    counts = [COUNTER.unpack_from(counter, 8 * at)[0] for at in range(4)]
    assert counts[0] == sum(counts[1:])
    assert all(counts)
