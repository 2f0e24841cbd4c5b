"""Who has the writer lock: a thread, the object that it has it for, and where the program began that."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import BuiltinFunctionType, FrameType
from typing import TYPE_CHECKING, Any, Optional
from weakref import ref

from .. import errors
from ..handlers import OURS
from ..protocols import Protocol

if TYPE_CHECKING:
    from .blockgroups import Turn


class Holder(Protocol):
    """The object that is the writer, for as long as a block lasts."""

    def _is_over(self) -> bool:
        """Whether nobody is in the block any more, although it has not ended because of an interrupt."""
        ...

    def _clear(self) -> None:
        """End what the block left open, and release the lock."""
        ...


class Hold:
    """A claim to the lock, by a *thread* for a *holder*, which it does not keep alive unless it is *kept*.

    *join* waits for a turn in a group, if the lock is taken; *turn* is that turn.
    """

    __slots__ = ("called", "holder", "join", "kept", "thread", "turn")

    def __init__(self, holder: Optional[Holder] = None, join: Optional[Join] = None) -> None:
        self.thread = 0
        self.called: Any = None  # a lock that is released to wake the thread
        self.holder: Callable[[], Optional[Holder]] = _nobody if holder is None else ref(holder)
        self.kept: Optional[Holder] = None
        self.join = join
        self.turn: Optional[Turn] = None


_current_frames = sys._current_frames  # it has no other name

_GREENLETS = not isinstance(threading.get_ident, BuiltinFunctionType)
"""gevent or eventlet has replaced functions of `threading`: each greenlet has an identifier of its own."""

Join = Callable[[Hold, Optional[float]], "Optional[Turn]"]


def _nobody() -> None:
    return None


def origin(transaction: Any) -> str:
    """The file and line at which a transaction was begun."""
    code = transaction._opener
    line = code.co_firstlineno
    try:
        import dis  # late: for this message only
    except ImportError:  # the interpreter is ending, and this transaction with it
        return f"{code.co_filename}:{line}"
    for offset, starts in dis.findlinestarts(code):
        if offset > transaction._instruction:
            break
        line = starts or line
    return f"{code.co_filename}:{line}"


def begun_at(hold: Hold) -> str:
    """Where the program began the block of *hold*, as a part of a sentence; nothing if that is not known."""
    holder: Any = hold.kept or hold.holder()
    opener = getattr(holder, "_opener", None)
    if opener is None or opener.co_filename.startswith(OURS):
        return ""
    left = "" if hold.kept is None else ", and left in another thread, while only its own one can end it"
    return f", begun at {origin(holder)}{left}"


def nested(hold: Hold, waits: Hold) -> errors.NestedTransaction:
    """The error of *waits*, whose thread has the lock for *hold* and would wait for itself."""
    begun = begun_at(hold)
    if not begun or _is_running(hold.holder(), waits.holder()):
        advice = "use the tables of that one, in `with t.txn.savepoint():` if they are to be undone apart"
    else:
        advice = (
            "its block is suspended, by a task that awaits something in it, or by a generator such as a dependency "
            "with yield. Await and yield nothing inside a block; in asyncio, write with `await db.arun(function)`"
        )
    return errors.NestedTransaction(
        f"this thread has a write transaction open already{begun}, and would wait for itself forever: {advice}"
    )


def _is_running(holder: Any, waits: Any) -> bool:
    """Whether the function that began *holder* is among the callers, besides that which begins *waits*."""
    opener, count = holder._opener, 0
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        count += frame.f_code is opener
        frame = frame.f_back
    begins = getattr(waits, "_opener", None) is opener and waits._instruction == holder._instruction
    return count > begins


def is_alive(thread: int) -> bool:
    """Whether there is a thread with this identifier.

    `threading` does not know threads that others began: of `_thread`, of Qt, of a library in C++. They have frames.
    No list has the greenlets, but one that ends leaves its blocks before: whoever has one open has not ended.
    """
    if _GREENLETS:
        return True
    return any(one.ident == thread for one in threading.enumerate()) or thread in _current_frames()


def is_stopped(ending: Callable[[], bool] = sys.is_finalizing) -> bool:
    """Whether Python has stopped all threads but this one. One that it was asked to begin would not answer."""
    return ending()


def refuse_to_wait(thread: Optional[int], path: Optional[str]) -> None:
    """Raise `WriterTimeout` if *thread*, which has the writer, has been stopped by Python."""
    if is_stopped():
        raise errors.WriterTimeout(
            f"the program ends, and Python has stopped thread {thread}, a daemon, while it had the write transaction: "
            f"write before the end, such as in a function of atexit, or let that thread be no daemon",
            path=path,
            owner=f"thread {thread} of this process",
        )
