"""The lock of the writers, between threads of one process."""

from __future__ import annotations

import threading
import time
from collections import deque

import pytest

import zlmdb
from zlmdb.store.holds import Hold
from zlmdb.store.writerlock import WriterLock


def test_threads_that_write_all_the_time_take_turns() -> None:
    lock = WriterLock(None)
    counts = [0] * 8
    stop = time.monotonic() + 20

    def write(number: int) -> None:
        hold = Hold()
        while min(counts) < 20 and time.monotonic() < stop:
            lock.acquire(None, hold)
            counts[number] += 1
            lock.release(hold)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(counts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert min(counts) >= 20, counts  # whoever has just written does not keep the others out
    assert not lock._waiters
    assert lock.owner is None


def test_a_thread_that_was_called_and_does_not_come_stops_nobody() -> None:
    lock = WriterLock(None)
    for interrupted in (Hold(), Hold()):
        interrupted.called = threading.Lock()
        lock._waiters.append(interrupted)
    lock.wake_next()
    assert lock._next is not None
    mine = Hold()
    lock.acquire(5, mine)
    assert lock.owner == threading.get_ident()
    lock.release(mine)
    assert lock.owner is None


def test_a_thread_that_was_called_when_it_gave_up_does_not_take_itself_for_the_writer() -> None:
    lock = WriterLock(None)
    before = Hold()
    before.called = threading.Lock()
    before.thread = threading.get_ident()
    lock._waiters.append(before)
    lock.wake_next()  # it is about to leave the queue, after its timeout
    mine = Hold()
    lock.acquire(5, mine)
    assert lock.owner == threading.get_ident()
    lock.release(mine)


def test_a_thread_may_be_called_as_soon_as_it_is_in_the_queue() -> None:
    lock, other, mine = WriterLock(None), Hold(), Hold()
    lock.acquire(None, other)
    other.thread = -1  # as of another thread

    class Queue(deque[Hold]):
        def append(self, hold: Hold) -> None:
            super().append(hold)
            lock.release(other)

    lock._waiters = Queue()
    lock.acquire(5, mine)
    assert lock.owner == threading.get_ident()
    lock.release(mine)


def test_who_gives_up_leaves_the_queue() -> None:
    lock = WriterLock(None)
    mine = Hold()
    lock.acquire(None, mine)
    failures: list[BaseException] = []

    def wait() -> None:
        try:
            lock.acquire(0.01, Hold())
        except zlmdb.WriterTimeout as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(10)
    assert len(failures) == 1
    assert not lock._waiters
    lock.release(mine)
    lock.acquire(0, mine)
    with pytest.raises(zlmdb.NestedTransaction):
        lock.acquire(0, Hold())
    lock.release(mine)
