"""The futures of functions that were submitted: as those of the library, with a lock only for those that are watched.

A `concurrent.futures.Future` makes a condition, and takes its lock for each step. That takes as long as to store a
small record, and most of these futures are asked only when they are done. All methods and functions of the library take
the condition before they look at the state. So it is made when it is taken for the first time, and what finishes a
future puts something in its place, if it was never taken. Each of these is one `dict.setdefault`, so one of the two
comes first. So it is decided, too, whether a function runs or is cancelled.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future
from concurrent.futures._base import FINISHED, PENDING, RUNNING
from contextlib import suppress
from threading import Condition
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from .. import errors
from ..locks import SafeCondition, monotonic

if TYPE_CHECKING:
    from .groups import Groups

R = TypeVar("R")
_CANCELLED, _RUNS = "cancelled", "runs"
_LOOK_AGAIN = 0.05  # seconds after which a thread that has a write transaction open looks whether it waits for itself
_NESTED = (
    "this thread would wait for ever: what was submitted is run when the write transaction that it has open has ended, "
    "or when the hook or the callback has returned that runs in the thread of the database. Ask for the result "
    "afterwards, or write with the tables that are open"
)


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
    _queues: Optional[Groups] = None
    _done_callbacks: Any = property(lambda self: self.__dict__.setdefault("callbacks", []))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a future of submit() belongs to this process, and is neither copied nor pickled: give its result(); or "
            "give the database to the other process, which can be pickled, and submit there"
        )

    def _take_waiters(self) -> list[Any]:
        space = self.__dict__
        found: list[Any] = space.setdefault("waiters", [])
        # It is asked for by `futures.wait` and the like, for the first time, before they wait without a limit.
        if not found and self._state == PENDING and "fate" not in space:
            queues = self._queues
            if queues is not None and queues.may_be_kept():
                raise errors.NestedTransaction(_NESTED)
        return found

    _waiters: Any = property(_take_waiters)
    desk: Any = None
    """Of the event loop that was running when a callback was added: it looks whether a task waits for itself."""

    def add_done_callback(self, fn: Callable[[Future[R]], object]) -> None:
        """Call *fn* with this future when the function is stored, has failed, or is cancelled; at once, if it has."""
        super().add_done_callback(fn)
        if self._queues is not None and self.desk is None and "asyncio" in sys.modules and not self.done():
            self.desk = self._queues.desk()

    if not TYPE_CHECKING:  # checkers report it

        def __await__(self):
            raise TypeError(
                "the future of submit() is not awaited: write `await db.arun(function)`, or `await "
                "asyncio.wrap_future(future)` for a function that was submitted before"
            )

    @property
    def _callbacks(self) -> list[tuple[Any]]:
        """As a future of asyncio has them."""
        return [(fn,) for fn in self._done_callbacks]

    def _take_condition(self) -> Condition:
        space = self.__dict__
        made = space.get("made")
        if made is None:
            made = space.setdefault("made", SafeCondition())  # the thread that tells all futures needs its lock
        while made is _FINISHING:  # by a thread that is in the next lines of `set_result`
            time.sleep(0)
            made = space["made"]
        return made

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
            return self._result
        return super().result(self._wait(timeout))

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What the function has raised, or None. Raises `TimeoutError` after *timeout* seconds."""
        return super().exception(self._wait(timeout))

    def _wait(self, timeout: Optional[float]) -> Optional[float]:
        """Wait, if this thread may be the one that keeps the function from being stored. The seconds that are left.

        Raises `NestedTransaction` if it is.
        """
        queues = self._queues
        if queues is None or not queues.may_be_kept():
            return timeout
        end = None if timeout is None else monotonic() + timeout
        while not self.done():
            if queues.is_kept() and not self.done():
                raise errors.NestedTransaction(_NESTED)
            left = _LOOK_AGAIN if end is None else end - monotonic()
            if left <= 0:
                return 0
            with suppress(futures.TimeoutError):
                super().exception(min(left, _LOOK_AGAIN))
        return timeout
