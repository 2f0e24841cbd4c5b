"""The futures that tasks of asyncio wait for. The event loop is woken once for all results of a group of functions."""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future, get_running_loop
from collections import deque
from contextlib import suppress
from typing import Any

Outbox = deque[tuple["Awaited", Any, bool]]
"""Outcomes to be told, and whether they are errors."""


class Awaited:
    """A *future* of the running *loop*, which is told by another thread; with the methods that a group calls."""

    __slots__ = ("_outbox", "future", "loop")

    def __init__(self, outbox: Outbox) -> None:
        self.loop = get_running_loop()
        self.future: Future[Any] = self.loop.create_future()
        self._outbox = outbox

    def set_running_or_notify_cancel(self) -> bool:
        """Whether the function is to run: nobody has cancelled its task."""
        return not self.future.cancelled()

    def set_result(self, result: Any) -> None:
        """Have the task told with the next `post`."""
        self._outbox.append((self, result, False))

    def set_exception(self, exception: BaseException) -> None:
        """As `set_result`."""
        error = exception
        if isinstance(error, StopIteration):  # as a coroutine has it that raises one
            error = RuntimeError("the function raised StopIteration")
            error.__cause__ = exception
        self._outbox.append((self, error, True))


def post(outbox: Outbox) -> None:
    """Tell the tasks what is in *outbox*."""
    by_loop: dict[AbstractEventLoop, list[tuple[Awaited, Any, bool]]] = {}
    with suppress(IndexError):  # another thread may take some, and tells those
        while outbox:
            outcome = outbox.popleft()
            by_loop.setdefault(outcome[0].loop, []).append(outcome)
    for loop, outcomes in by_loop.items():
        with suppress(RuntimeError):  # the loop was closed, and nobody waits
            loop.call_soon_threadsafe(_arrived, outcomes)


def _arrived(outcomes: list[tuple[Awaited, Any, bool]]) -> None:
    try:
        for awaited, outcome, failed in outcomes:
            future = awaited.future
            if future.done():  # its task was cancelled, or is told
                continue
            if failed:
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
    except BaseException:  # of a signal handler: the others are told in the next turn of the loop
        outcomes[0][0].loop.call_soon(_arrived, outcomes)
        raise
