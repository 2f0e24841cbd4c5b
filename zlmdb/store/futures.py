"""The futures of functions that were submitted: as those of the library, with a lock only for those that are watched.

A `concurrent.futures.Future` makes a condition, and takes its lock for each step. That takes as long as to store a
small record, and most of these futures are asked only when they are done. All methods and functions of the library take
the condition before they look at the state. So it is made when it is taken for the first time, and what finishes a
future puts something in its place, if it was never taken. Each of these is one `dict.setdefault`, so one of the two
comes first. So it is decided, too, whether a function runs or is cancelled.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from concurrent.futures._base import FINISHED, PENDING, RUNNING
from threading import Condition
from typing import Any, Optional, Protocol, TypeVar

R = TypeVar("R")
_CANCELLED, _RUNS = "cancelled", "runs"


class Told(Protocol):
    """What a caller that does not wait has of its function: a `Future`, or the like."""

    def set_running_or_notify_cancel(self) -> bool:
        """Whether the function is to run."""
        ...

    def set_result(self, result: Any) -> None:
        """The function is stored."""
        ...

    def set_exception(self, exception: BaseException) -> None:
        """The function has failed."""
        ...


class _Done:
    """The condition of a future that was done before anybody took one: there is nothing to wait for."""

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *error: object) -> None: ...

    def acquire(self) -> bool:
        """There is no lock."""
        return True

    def release(self) -> None:
        """There is no lock."""

    def notify_all(self) -> None:
        """Nobody waits."""


_DONE: Any = _Done()
_FINISHING: Any = _Done()


class Submitted(Future[R]):
    """The future of a function that was submitted. Only the thread that runs such functions finishes it."""

    # What a future of the library makes for itself, most of these never need.
    __init__ = object.__init__
    _state: str = PENDING
    _result: Any = None
    _exception: Optional[BaseException] = None
    _waiters: Any = property(lambda self: self.__dict__.setdefault("waiters", []))
    _done_callbacks: Any = property(lambda self: self.__dict__.setdefault("callbacks", []))

    def _take_condition(self) -> Condition:
        space = self.__dict__
        made = space.get("made")
        if made is None:
            made = space.setdefault("made", Condition())
        while made is _FINISHING:  # by a thread that is in the next lines of `set_result`
            time.sleep(0)
            made = space["made"]
        found: Condition = made
        return found

    _condition: Any = property(_take_condition)

    def cancel(self) -> bool:
        """Keep the function from running; False if it runs already, or has run."""
        return self.__dict__.setdefault("fate", _CANCELLED) is _CANCELLED and super().cancel()

    def set_running_or_notify_cancel(self) -> bool:
        """Whether the function is to run: nobody has cancelled it."""
        if self.__dict__.setdefault("fate", _RUNS) is _RUNS:
            self._state = RUNNING
            return True
        super().cancel()  # the thread that came first may not have got there
        return super().set_running_or_notify_cancel()

    def set_result(self, result: R) -> None:
        """The function is stored, and has returned *result*."""
        space = self.__dict__
        if space.setdefault("made", _FINISHING) is not _FINISHING:
            super().set_result(result)
            return
        self._result = result
        self._state = FINISHED
        space["made"] = _DONE

    def result(self, timeout: Optional[float] = None) -> R:
        """What the function has returned; raises what it has raised. Raises `TimeoutError` after *timeout* seconds."""
        if self._state == FINISHED and self._exception is None:
            found: R = self._result
            return found
        return super().result(timeout)
