"""Exceptions of signal handlers, which come in the midst of anything and have nothing to do with it.

Many errors are caught to be explained, or to try again in another way. One that a handler of the program raised, such
as a timeout of its own, has to come out as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from types import CodeType, TracebackType
from typing import Any, Optional

_PARTIAL: Any = partial  # of what is given, checkers would know it as a part of unknown types
_OURS = os.path.dirname(os.path.abspath(__file__))


def let_through(error: BaseException) -> None:
    """Raise *error*, or its cause, again where a signal handler raised it. To be called as *error* is caught."""
    cause: Optional[BaseException] = error
    while cause is not None:
        strange = set(_strange(cause.__traceback__))
        if strange and not strange.isdisjoint(_handlers()):
            raise cause
        cause = cause.__cause__


def _strange(trace: Optional[TracebackType]) -> Iterator[CodeType]:
    """The functions of *trace* that are not ours."""
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith((_OURS, "<zlmdb")):
            yield code
        trace = trace.tb_next


def _handlers() -> Iterator[Any]:
    import signal  # takes longer to import than many a program of ours to run

    for number in signal.valid_signals():
        yield _code_of(signal.getsignal(number))


def _code_of(handler: Any) -> Any:
    """What runs when *handler* is called; None for what is not written in Python."""
    called: Any = handler
    while isinstance(called, _PARTIAL):
        called = called.func
    return getattr(_function_of(called), "__code__", None)


def _function_of(called: object) -> object:
    """The function of a method, or of an object that is called."""
    function: object = getattr(called, "__func__", called)
    return function if hasattr(function, "__code__") else vars(type(function)).get("__call__")
