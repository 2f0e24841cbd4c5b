"""Exceptions of signal handlers and debuggers, which may come in any statement and are not errors of that statement.

zlmdb catches many errors to explain them, or to try again in another way. An exception that a signal handler of the
program raised, such as a timeout, must reach the program unchanged, and so must that of a debugger whose user quits.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from types import FrameType, TracebackType
from typing import Any, Optional

_PARTIAL: Any = partial  # of what is given, checkers would know it as a part of unknown types
_HERE = (lambda: None).__code__.co_filename[: -len("handlers.py")]
OURS = _HERE or os.path.dirname(os.path.abspath(__file__)) + os.sep, "<zlmdb "
"""How the names of the files begin that zlmdb's functions are from: those of the package, and generated ones.

As their code has them: where the package has no sources, or a tool has packed it, ``__file__`` is another name.
"""

SUSPENDS = 0x2A0
"""``co_flags`` of generators, coroutines and asynchronous generators: `inspect`, which has them, takes long to import.

To clear the frame of one is to end it.
"""


def let_through(error: BaseException) -> None:
    """Raise *error*, or its cause, again if a handler or debugger raised it. Call this where *error* is caught."""
    cause: Optional[BaseException] = error
    while cause is not None:
        strange = {entry.tb_frame.f_code for entry in of_program(cause.__traceback__)}
        if strange and not strange.isdisjoint(_handlers()):
            raise cause
        cause = cause.__cause__


def of_program(trace: Optional[TracebackType]) -> Iterator[TracebackType]:
    """The entries of *trace* whose functions are not zlmdb's."""
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(OURS):
            yield trace
        trace = trace.tb_next


def is_debugging(frame: Optional[FrameType]) -> bool:
    """Whether a debugger has stopped the program, and *frame* is of what it does then, and not of the program."""
    debugger = sys.modules.get("bdb")
    own = None if debugger is None else debugger.Bdb.trace_dispatch.__code__.co_filename
    while frame is not None and not frame.f_code.co_filename.startswith(OURS):
        name = frame.f_code.co_filename
        if name == own or os.path.basename(name).startswith("pydevd"):  # of PyCharm, VS Code and Eclipse
            return True
        frame = frame.f_back
    return False


def clear_ended(frame: FrameType) -> bool:
    """Remove what *frame* refers to, if it is one of zlmdb's that has ended, and is of no generator; whether so."""
    if frame.f_code.co_filename.startswith(OURS) and not frame.f_code.co_flags & SUSPENDS:
        with suppress(RuntimeError):  # the function runs, here or in another thread
            frame.clear()
            return True
    return False


def close_files(descriptors: list[int], close: Callable[[int], None] = os.close) -> None:
    """Take each of *descriptors* out and close it, in one step: what a handler raises comes before or after that."""
    while descriptors:
        next(map(close, iter(descriptors.pop, None)))


def _handlers() -> Iterator[Any]:
    import signal  # takes longer to import than many a program of ours to run

    for number in signal.valid_signals():
        yield code_of(signal.getsignal(number))
    debugger = sys.modules.get("bdb")
    if debugger is not None:  # it raises where its user wants to stop the program
        yield code_of(debugger.Bdb.trace_dispatch)


def code_of(handler: Any) -> Any:
    """The code that runs when *handler* is called; None if it is not written in Python."""
    called: Any = handler
    while isinstance(called, _PARTIAL):
        called = called.func
    return getattr(_function_of(called), "__code__", None)


def _function_of(called: object) -> object:
    """The function of a method, or of a callable object."""
    function: object = getattr(called, "__func__", called)
    return function if hasattr(function, "__code__") else vars(type(function)).get("__call__")
