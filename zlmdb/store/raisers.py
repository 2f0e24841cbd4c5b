"""Whether a function itself has raised what leaves it, or a signal handler or another thread, for its thread."""

from __future__ import annotations

import signal
import threading
from functools import partial
from opcode import opname
from types import CodeType
from typing import Any, Optional


def has_raised(fn: Any, error: BaseException) -> bool:
    """Whether a ``raise`` in *fn*, or in what it called, raised *error*, which the caller has just caught.

    What another thread sends, and Ctrl-C, come at other instructions. In the main thread a signal handler may have
    raised it, if its frame is there. False also where a function in C raised it, such as `sys.exit`: nobody knows why.
    """
    trace = error.__traceback__
    if trace is None:
        return False
    codes = [trace.tb_frame.f_code]
    while trace.tb_next is not None:
        trace = trace.tb_next
        codes.append(trace.tb_frame.f_code)
    if _code(fn) not in codes or opname[codes[-1].co_code[trace.tb_lasti]] != "RAISE_VARARGS":
        return False
    if threading.current_thread() is not threading.main_thread():
        return True
    return not {_code(signal.getsignal(one)) for one in signal.valid_signals()}.intersection(codes)


def _code(fn: Any) -> Optional[CodeType]:
    """The code of *fn*: of a function, a method, or a partial of one; None for other objects."""
    while isinstance(fn, partial):
        fn = fn.func
    code = getattr(fn, "__code__", None)
    return code if isinstance(code, CodeType) else None
