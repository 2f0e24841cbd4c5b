"""Locks for ``with`` statements, which an interrupt leaves free.

A signal handler of the program may raise between any two steps of a thread that Python takes notice of signals between.
From CPython 3.14 on one of these is just after the call that takes the lock of a ``with`` statement, and before the
block at whose end it is released. What is here takes the lock in a step that nothing can come between, and tells by
what it left whether it was taken.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from operator import attrgetter
from typing import Any

_WAITING = (True,)


class _Safe:
    """A *lock* of `threading`, for ``with`` statements. *acquire*, *release* and *locked* are the lock's own.

    Its ``__exit__`` is the lock's, too: in a function of Python an interrupt could come before the lock is released.
    """

    __slots__ = ("acquire", "inner", "locked", "release")

    __exit__: Any = property(attrgetter("inner.__exit__"))

    def __init__(self, lock: Any) -> None:
        self.inner = lock
        self.acquire: Callable[..., bool] = lock.acquire
        self.release: Callable[[], None] = lock.release
        self.locked: Any = getattr(lock, "locked", None)

    def __enter__(self) -> bool:
        taken: list[bool] = []
        try:
            taken.extend(map(self.acquire, _WAITING))
        except BaseException:
            if taken:
                self.release()
            raise
        return True


def lock() -> Any:
    """A `threading.Lock` for ``with`` statements."""
    return _Safe(threading.Lock())


def rlock() -> Any:
    """A `threading.RLock` for ``with`` statements."""
    return _Safe(threading.RLock())


if sys.implementation.name != "cpython" or sys.version_info < (3, 14):
    lock, rlock = threading.Lock, threading.RLock


def condition(of: Any) -> threading.Condition:
    """A `threading.Condition` *of* a lock that is taken by ``with`` statements."""
    return threading.Condition(of.inner if type(of) is _Safe else of)
