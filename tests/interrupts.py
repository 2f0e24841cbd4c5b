"""Exceptions at chosen instructions, as signal handlers and other threads raise them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import pytest


class Interrupt(BaseException):
    """What no code of ours may take for an error of its own."""


INTERRUPTS = (Interrupt, SystemError)
"""As it comes out: where it is raised beside the result of a function in C, Python 3.12 and later say so."""

traces_instructions = pytest.mark.skipif(
    sys.implementation.name != "cpython", reason="only CPython calls a trace function for each instruction"
)


@contextmanager
def interrupting(at: int, inside: Callable[[str], bool]) -> Iterator[list[int]]:
    """Raise `Interrupt` in the instruction number *at* of the files *inside*; the list gives how many there were."""
    count = [0]

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if not inside(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes = True
        del arg  # what is returned, which this frame would keep in the traceback
        if event in ("call", "opcode", "return"):
            count[0] += 1
            if count[0] == at:
                sys.settrace(None)
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)
