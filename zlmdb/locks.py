"""Locks for ``with`` statements, which an interrupt leaves free.

A signal handler of the program may raise between any two steps of a thread that Python takes notice of signals between.
From CPython 3.14 on one of these is just after the call that takes the lock of a ``with`` statement, and before the
block at whose end it is released. What is here takes the lock in a step that nothing can come between, and tells by
what it left whether it was taken.

`monotonic` is the clock by which zlmdb waits, and remembers until when a thing need not be looked at again. It runs on
where a test stops all others: freezegun puts functions of its own wherever it finds `time.monotonic` itself. With these
a wait would never end, and a moment that is far ahead of the true one would be kept.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Optional

from .systems import posix

_WAITING = (True,)
_get_ident = threading.get_ident
# Two transactions must not begin at one time. On Windows the former moves in steps of 16 ms, before Python 3.13.
_found: Any = time.monotonic if time.get_clock_info("monotonic").resolution < 1e-3 else time.perf_counter
monotonic: Callable[[], float] = _found.__call__  # another object; a call takes a few instructions more
if _found.__module__ != "time" and hasattr(time, "clock_gettime"):  # the clock stands still already
    _unix: Any = time
    monotonic = partial(_unix.clock_gettime, _unix.CLOCK_MONOTONIC)
del _found


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
            return taken[0]  # in here, as the user of a debugger may quit at this line
        except BaseException:
            if taken:
                self.release()
            raise


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


class SafeCondition(threading.Condition):
    """A `threading.Condition` whose ``with`` statements take and release its lock themselves.

    Those of the library call functions of Python for that, where an interrupt would leave the lock taken for ever. One
    that ends its `wait` may come before the lock is taken again: the statement would raise RuntimeError in its place.
    """

    if not TYPE_CHECKING:
        __slots__ = ("__enter__", "__exit__")  # a statement finds them in the class, and gets those of the lock

    _is_owned: Callable[[], bool]

    def __init__(self) -> None:
        safe = rlock()
        super().__init__(safe.inner if type(safe) is _Safe else safe)
        if not TYPE_CHECKING:
            self.__enter__, self.__exit__ = safe.__enter__, safe.__exit__

    def wait(self, timeout: Optional[float] = None) -> bool:
        """As that of the library. The lock is taken at its end, whatever it raises."""
        try:
            return super().wait(timeout)
        finally:
            if not self._is_owned():
                self.acquire()


class _Deferring:
    """Blocks of the main thread, one inside another, in which no handler of a signal runs: it runs at their end.

    On PyPy only. There, py-lmdb is Python code: a handler that raised in the midst of it would leave one of its locks
    taken, or lose the transaction of LMDB that was just begun, for whose end the next writer would wait forever.
    """

    def __init__(self) -> None:
        thread: Any = import_module("__pypy__.thread")
        self._stop, self._go_on = thread.signals_enabled.__exit__, thread.signals_enabled.__enter__
        self._stopped: list[bool] = []  # whether the block did so, of each that is open
        self._main = threading.main_thread().ident
        posix.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        if self._main != _get_ident():  # whichever thread forked is the main one here
            self._stopped.clear()
            self._main = _get_ident()

    def __enter__(self) -> None:
        if _get_ident() == self._main:
            stops = not self._stopped
            if stops:
                try:
                    self._stop()
                except RuntimeError:  # this is a finaliser, while a block in a frame below begins or ends
                    stops = False
            self._stopped.append(stops)

    def __exit__(self, *error: object) -> None:
        if _get_ident() == self._main and self._stopped.pop():
            self._go_on()


undisturbed: AbstractContextManager[Any] = _Deferring() if sys.implementation.name == "pypy" else nullcontext()
"""A block in which no signal handler raises, where the code that it calls could not bear that."""


if TYPE_CHECKING:
    from functools import cached_property as cached_property
elif sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:
        """As that of `functools`, whose lock a forked child waits for if another thread has it, for ever."""

        def __init__(self, function):
            self.function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            """The value, which is an attribute from then on: the same one for threads that come at once."""
            return self if instance is None else instance.__dict__.setdefault(self.name, self.function(instance))
