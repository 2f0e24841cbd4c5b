"""How a write transaction of LMDB is aborted while other threads read.

py-lmdb's ``abort`` waits until no other thread is in a call of its environment. A thread counts as being in one until
it has Python's lock again. So with two threads that read all the time, this moment never comes. The end of the
transaction object aborts as well, and does not wait: if nothing else refers to the transaction, it is dropped.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from types import BuiltinMethodType, CellType, FrameType
from typing import Any, Optional

import lmdb

from ...handlers import OURS, SUSPENDS, clear_ended
from ...locks import undisturbed

_STEPS = 4  # such as from a transaction to a method of it, to a tuple, to the cell of a closure, and to a frame
_CARRIERS = BuiltinMethodType, lmdb.Cursor, tuple, CellType
_current_frames = sys._current_frames  # it has no other name
_REFERENCES = getattr(sys, "getrefcount", None)


def _references(held: list[Any]) -> int:
    """The references to the one object in *held*, as the interpreter counts them here."""
    return 0 if _REFERENCES is None else int(_REFERENCES(held[0]))


_ALONE = _references([object()])


def abort(held: list[Any]) -> None:
    """Abort the write transaction in *held*, a list of one, and take it out."""
    if _REFERENCES is not None and type(held[0]) is lmdb.Transaction:
        if _references(held) != _ALONE:
            _release_frames(sys.exc_info()[1])
        if _references(held) != _ALONE and len(_current_frames()) > 1:  # other threads may be reading
            _release_referrers(held)
        if _references(held) == _ALONE:
            held.clear()
            return
    with undisturbed:
        held[0].abort()
        held.clear()


def _release_frames(error: Optional[BaseException]) -> None:
    """Empty the frames of zlmdb that have ended and that the traceback of *error* keeps, with what they refer to."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
        trace = one.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            # To clear the frame of a generator is to end it. One that *error* came out of has ended.
            if code.co_filename.startswith(OURS) and (one is error or not code.co_flags & SUSPENDS):
                with suppress(RuntimeError):  # it runs
                    trace.tb_frame.clear()
            trace = trace.tb_next


def _release_referrers(held: list[Any]) -> None:
    """Empty the frames of zlmdb that have ended and refer to the transaction, or to what refers to it.

    An exception that the program keeps somewhere has such frames. Each step is a walk over all objects of the program,
    which takes milliseconds; but to wait for a moment without readers may take for ever.
    """
    found: list[Any] = held
    for _ in range(_STEPS):
        referrers = gc.get_referrers(*found)
        found = [one for one in referrers if isinstance(one, _CARRIERS)]
        for one in referrers:
            if isinstance(one, FrameType):
                clear_ended(one)
        if not found:
            return
