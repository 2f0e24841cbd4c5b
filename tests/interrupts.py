"""Exceptions at chosen instructions, as signal handlers and other threads raise them."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, Callable, Optional

import pytest


class Interrupt(BaseException):
    """What no code of ours may take for an error of its own."""


INTERRUPTS = (Interrupt, SystemError)
"""As it comes out: where it is raised beside the result of a function in C, Python 3.12 and later say so."""

_MARK = dis.opmap.get("NOT_TAKEN")

traces_instructions = pytest.mark.skipif(
    sys.implementation.name != "cpython", reason="only CPython calls a trace function for each instruction"
)


def is_mark(frame: Any) -> bool:
    """Whether *frame* is at an instruction that only marks a place, for coverage tools.

    No signal comes there, and in CPython 3.14 the handlers of a ``try`` do not cover it.
    """
    return frame.f_code.co_code[frame.f_lasti] == _MARK


@functools.cache
def handled_at(code: CodeType) -> set[int]:
    """Before which instructions of *code* Python runs handlers: not between a ``with`` statement and its lock."""
    found = set()
    before = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RESUME" or before.startswith(("CALL", "JUMP_BACKWARD")):
            found.add(instruction.offset)
        before = instruction.opname
    return found


@contextmanager
def interrupting(
    at: int, inside: Callable[[str], bool], where: Optional[Callable[[CodeType], set[int]]] = None
) -> Iterator[list[int]]:
    """Raise `Interrupt` in the instruction number *at* of the files *inside*; the list gives how many there were.

    *where*, the instructions of a code that count; without it all of them do, and calls and returns.
    """
    count = [0]

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if not inside(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes = True
        del arg  # what is returned, which this frame would keep in the traceback
        if where is not None:
            counts = event == "opcode" and frame.f_lasti in where(frame.f_code)
        else:
            counts = event in ("call", "return") or (event == "opcode" and not is_mark(frame))
        if counts:
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
