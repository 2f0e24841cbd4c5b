"""The object that a ``with`` statement holds of a transaction, by which an interrupted block is recognised.

An asynchronous exception, such as Ctrl-C, may come at any instruction, even at the first one of ``__exit__``, before
anything was ended. No flag set by the block's own methods can record that. But a ``with`` statement holds the bound
``__exit__`` method from before ``__enter__`` until it ends, in whatever way. So each statement gets a method object of
its own, which nobody else holds: when it is dead, the block is over.

On CPython it dies at once, and a callback ends what the block had left open. On PyPy it dies when the collector runs; a
thread that finds the writer lock taken by itself runs the collector.

It must not die while it runs, or the callback would abort what is being committed. PyPy and CPython 3.14 take a bound
method apart to call it, and drop it before its function begins. So there the statement gets an object of another kind.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from operator import attrgetter
from types import CodeType, FrameType, TracebackType
from typing import Any, Optional
from weakref import ref

from ..handlers import clear_ended

Leave = Callable[[Optional[type[BaseException]], Optional[BaseException], Optional[TracebackType]], None]
COUNTS_REFERENCES = sys.implementation.name == "cpython"


class _Leaving:
    """The ``__exit__`` that a statement holds, where references are not counted. The frame of its call keeps it."""

    __slots__ = ("__weakref__", "_leave")

    def __init__(self, leave: Leave) -> None:
        self._leave: Optional[Leave] = leave

    def __call__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            if self._leave is not None:
                self._leave(kind, error, trace)
        except BaseException:
            _end_now(self._leave)
            raise
        finally:
            self._leave = None  # it is used until here, so that no compiler takes it for dead before
            del self  # a traceback keeps the frame


def _end_now(leave: Any) -> None:
    """End the block of *leave*, which has raised: a signal may have come, and the collector may take long to find it.

    Until then no other thread could write.
    """
    block: Any = getattr(leave, "__self__", None)
    if block is not None and block._block is not None:
        block._left(block._block)


kept: Optional[Callable[[Leave], Leave]] = None
"""Makes of a bound method what does not die while it runs; None where that does not die, either."""

if not COUNTS_REFERENCES:
    kept = _Leaving
elif sys.version_info >= (3, 14):
    kept = partial


class BlockExit:
    """``__exit__`` of a class of blocks. `contextlib.ExitStack` takes it from the class and calls it as a function.

    The *_block* of a block refers to the method that the statement holds, if any. *_exit* holds that method until the
    statement gets it. No variable of a frame holds it, because a traceback would keep it.
    """

    def __get__(self, block: Any, owner: Any = None) -> Any:
        if block is None:
            return self
        block._exit = [block._leave if kept is None else kept(block._leave)]
        block._block = ref(block._exit[0], block._left)
        return block._exit.pop()

    def __call__(self, block: Any, *error: Any) -> None:
        block._leave(*error)


class SchemaExit(property):
    """`BlockExit` of a class whose blocks are those of its transaction, found without a Python frame."""

    def __init__(self) -> None:
        super().__init__(attrgetter("_unit.exit" if COUNTS_REFERENCES else "_unit.txn._exit_of_schema"))

    def __call__(self, tables: Any, *error: Any) -> None:
        tables._unit.txn._leave(*error)


def clear_frames(*objects: Any) -> bool:
    """Remove *objects* from frames of zlmdb that an interrupt ended and a traceback keeps; false if there are none."""
    return any([clear_ended(one) for one in gc.get_referrers(*objects) if isinstance(one, FrameType)])


def was_kept(block: Any) -> bool:
    """Whether a traceback kept the end of the statement of *block*, where references are not counted; now it does not.

    So it is after an interrupt before the first step of that end. To find out takes longer than a collection, so it is
    only done where the block cannot be seen to run.
    """
    statement: Optional[ref[Leave]] = getattr(block, "_block", None)
    leave = None if statement is None or COUNTS_REFERENCES else statement()
    return leave is not None and not _is_running(block) and clear_frames(leave)


def _is_running(block: Any) -> bool:
    """Whether a caller is seen to be in the statement of *block*, which this thread began."""
    opener, begun = getattr(block, "_opener", None), getattr(block, "_instruction", -1)
    if opener is None:
        return False
    entered, end = _statement(opener, begun)
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        if frame.f_code is opener and entered < frame.f_lasti < end:
            return True
        frame = frame.f_back
    return False


@lru_cache(maxsize=256)
def _statement(code: CodeType, begun: int) -> tuple[int, int]:
    """Where in *code* the ``with`` statement begins and ends whose object the instruction at *begun* made or enters.

    Zeros if it made the object for another purpose; the whole function if its caller began.
    """
    if begun < 0:
        return -1, len(code.co_code)
    import dis  # late: only where references are not counted, and there for errors

    for one in dis.get_instructions(code):
        if one.offset >= begun and one.opname.startswith("SETUP_"):
            return (one.offset, int(one.argval)) if one.opname.endswith("_WITH") else (0, 0)
        if one.offset > begun and one.opname != "EXTENDED_ARG":
            break
    return 0, 0


def is_over(block: Any, collected: bool = False) -> bool:
    """Whether the ``with`` statement of *block* has ended. *collected*: the collector has just run for that."""
    statement: Optional[ref[Leave]] = block._block
    if statement is None:
        return False
    if block._exit:  # it never got there
        return True
    if not COUNTS_REFERENCES and not collected and statement() is not None and not _is_running(block):
        gc.collect()
    return statement() is None
