"""The futures that tasks of asyncio wait for. The event loop is woken once for all results of a group of functions.

Where a function cannot run before its own task goes on, the task gets an error and does not wait for ever. Its block
is open, and the block waits, perhaps by way of other futures, for the function. Once in a second the loop looks for
that, see `deadlocks`. Then it also tells what a lost call has left untold.
"""

from __future__ import annotations

import concurrent.futures
from asyncio import AbstractEventLoop, Future
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ReferenceType, ref

from .. import errors
from ..loops import running_loop
from .processlock import PATIENCE

if TYPE_CHECKING:
    from .groups import Groups

R = TypeVar("R")


class Awaited:
    """A *future* of the running loop, which is told by another thread; with the methods that a group calls.

    If it is *kept*, the function runs even if its task is cancelled before.
    """

    __slots__ = ("_kept", "_outbox", "desk", "future")

    def __init__(self, desks: Desks, kept: bool) -> None:
        loop = running_loop()
        self.desk = desks.desk(loop)
        self.future: Future[Any] = loop.create_future()
        self._outbox = desks.outbox
        self._kept = kept

    def set_running_or_notify_cancel(self) -> bool:
        """Whether the function is to run: nobody has cancelled its task, or it is kept."""
        return self._kept or not self.future.cancelled()

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


class Desks:
    """What the tasks of each event loop wait for, and what they are to be told."""

    def __init__(self, queues: Groups) -> None:
        self.queues = queues
        self.by_loop: dict[int, ReferenceType[Desk]] = {}
        """By the `id` of a loop, which has its desk for as long as anybody waits: a loop that nobody closed may go."""
        self.outbox: deque[tuple[Awaited, Any, bool]] = deque()
        """Outcomes to be told, and whether they are errors."""

    def desk(self, loop: AbstractEventLoop) -> Desk:
        """The desk of the running *loop*."""
        known = self.by_loop.get(id(loop))
        desk = None if known is None else known()
        if desk is None:
            for number, one in list(self.by_loop.items()):
                if one() is None:
                    self.by_loop.pop(number, None)
            desk = Desk(self, loop)
            self.by_loop[id(loop)] = ref(desk)
            desk.watch()
        return desk

    def awaited(self, kept: bool) -> Awaited:
        """For a task of the running loop."""
        return Awaited(self, kept)

    def post(self) -> None:
        """Tell the tasks what is in the outbox."""
        desks: dict[Desk, None] = {}
        with suppress(IndexError):  # another thread may take some, and tells those
            while self.outbox:
                outcome = self.outbox.popleft()
                desk = outcome[0].desk
                desk.outcomes.append(outcome)
                desks[desk] = None
        for desk in desks:
            try:
                desk.loop.call_soon_threadsafe(_arrived, desk.outcomes)
            except RuntimeError:  # the loop was closed, and nobody waits
                desk.outcomes.clear()


class Desk:
    """What the tasks of one event *loop* are to be told."""

    def __init__(self, desks: Desks, loop: AbstractEventLoop) -> None:
        self._desks = desks
        self.loop = loop
        self.outcomes: deque[tuple[Awaited, Any, bool]] = deque()

    def watch(self) -> None:
        """Look from time to time, as long as anybody waits."""
        self.loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        queues = self._desks.queues
        waiting = [one for one in list(queues._submitted) if getattr(one.future, "desk", None) is self]
        if not waiting and not self.outcomes:
            self._desks.by_loop.pop(id(self.loop), None)
            return
        self.watch()
        _arrived(self.outcomes)
        if waiting and queues.is_kept():
            from .deadlocks import waits_for_itself  # late: hardly any program has one

            holder = queues._writer.holder_here()
            for member in waiting:
                told: Any = member.future
                future = getattr(told, "future", told)  # what a task waits for, directly or not
                if not waits_for_itself(future, holder) or not queues.take_back(member):
                    continue
                if told is not future or told.set_running_or_notify_cancel():  # else it was cancelled just now
                    future.set_exception(errors.NestedTransaction(NESTED))


NESTED = (
    "this task has a write transaction open, and would wait for its end forever: end the block before you await, and "
    "await nothing inside"
)


def waits_for(source: concurrent.futures.Future[R], loop: AbstractEventLoop) -> Future[R]:
    """A future of the running *loop* with the outcome of *source*, which goes on when this one is cancelled.

    `asyncio.wrap_future` cancels it, and before Python 3.11 logs an error when the loop was closed.
    """
    waiter: Future[R] = loop.create_future()

    def tell() -> None:
        if waiter.done():
            return
        if source.cancelled():
            waiter.cancel()
            return
        error = source.exception()
        if error is None:
            waiter.set_result(source.result())
        else:
            waiter.set_exception(error)

    def told(_: object) -> None:
        if not waiter.done():
            with suppress(RuntimeError):  # the loop was closed, and nobody waits
                loop.call_soon_threadsafe(tell)

    source.add_done_callback(told)
    return waiter


def _arrived(outcomes: deque[tuple[Awaited, Any, bool]]) -> None:
    """Tell what is in *outcomes*; the last thing done with each is to take it out."""
    try:
        while outcomes:
            awaited, outcome, failed = outcomes[0]
            future = awaited.future
            if not future.done():  # else its task was cancelled, or is told
                if failed:
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
            outcomes.popleft()
    except BaseException:  # of a signal handler: the others are told in the next turn of the loop
        if outcomes:
            outcomes[0][0].desk.loop.call_soon(_arrived, outcomes)
        raise
