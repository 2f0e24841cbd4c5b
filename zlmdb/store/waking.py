"""Threads that wait in a queue for others of a group: how they are woken, and how a leader waits for more of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sized
from contextlib import suppress
from typing import Any, TypeVar

from ..locks import monotonic as _clock
from ..protocols import Protocol


def taken_lock() -> Any:
    """A lock that is taken: to `wake` a thread that waits for it releases it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


_AWAKE = suppress(RuntimeError)


def wake(lock: Any) -> None:
    """Let the thread that waits for *lock*, a `taken_lock`, go on; or the one that comes to wait for it."""
    if lock.locked():  # else it was woken already: to find that out by an error takes longer
        with _AWAKE:  # by another thread, just now
            lock.release()


NEVER_SO_MANY = 1 << 30
"""More than are in any queue."""


class Gathering:
    """Whoever leads a group, and waits for others before it begins. The lock *here* wakes it."""

    def __init__(self, here: Any) -> None:
        self.wanted = NEVER_SO_MANY
        """When so many are in the queue, wake it."""
        self._here = here

    def wait(self, queue: Sized, count: int, seconds: float) -> None:
        """Wait until *count* are in the *queue*, but no longer than so many *seconds*."""
        until = _clock() + seconds
        self.wanted = count
        try:
            while len(queue) < count:
                left = until - _clock()
                if left <= 0:
                    break
                self._here.acquire(timeout=left)
        finally:
            self.wanted = NEVER_SO_MANY

    def end(self) -> None:
        """All are there."""
        self.wanted = NEVER_SO_MANY
        wake(self._here)


class Waiting(Protocol):
    """Somebody who waits for a commit, and looks from time to time whether it has to."""

    left: bool
    """It does not wait any more, and has woken others, if it knew any."""

    def wake(self) -> None:
        """Let it see what came of its group."""
        ...


W = TypeVar("W", bound=Waiting)


def wake_some(waiting: deque[W]) -> None:
    """Wake two of those who are *waiting*. Each of them does the same as soon as it is awake.

    If one thread woke all of them, each would next wait for the lock of the interpreter, which that thread has. This
    doubles the changes of threads.
    """
    with suppress(IndexError):
        for _ in range(2):
            while True:
                one = waiting.popleft()
                one.wake()
                if not one.left:
                    break


def withdraw(queue: deque[W], one: W) -> bool:
    """Take *one* out of the *queue*; False if it is not there any more, because its turn has come."""
    try:
        queue.remove(one)
    except ValueError:
        return False
    return True
