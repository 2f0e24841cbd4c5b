"""Which instruction takes a value from the stack, as far as the code of a function tells."""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType
from typing import Optional

from ...namedtuples import NamedTuple

PADDING = frozenset(dis.opmap[name] for name in ("CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN") if name in dis.opmap)

_LOADS = ("LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_SMALL_INT")
_CALLS = ("CALL", "CALL_METHOD")
_FORMAT = ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")
_FORMATS = frozenset(dis.opmap[name] for name in _FORMAT if name in dis.opmap)


class Taker(NamedTuple):
    """The *instruction* that takes a value, which lies *inside* of so many tuples."""

    instruction: dis.Instruction
    inside: int


def instructions(code: CodeType) -> list[dis.Instruction]:
    """Those of *code* that do something."""
    return [one for one in dis.get_instructions(code) if one.opcode not in PADDING]


def bare_instructions(code: CodeType) -> list[dis.Instruction]:
    """As `instructions`, of code that has recorders among its constants, of which `dis` would make texts."""
    return instructions(code.replace(co_consts=(None,) * len(code.co_consts)))


def is_format(one: dis.Instruction) -> bool:
    """Whether *one* makes a text of a value."""
    return one.opname in _FORMAT


def is_text(one: dis.Instruction) -> bool:
    """Whether *one* leaves the text of an f-string."""
    return is_format(one) or one.opname == "BUILD_STRING"


def conversion(listed: Sequence[dis.Instruction], at: int) -> int:
    """How many instructions, from the number *at* on, are an ``!s`` without a format after it; 0 for all others."""
    name, arg = listed[at].opname, listed[at].arg
    if name == "CONVERT_VALUE":
        return 2 if arg == 1 and listed[at + 1].opname == "FORMAT_SIMPLE" else 0
    return 1 if name == "FORMAT_VALUE" and arg == 1 else 0


def is_percent(one: dis.Instruction) -> bool:
    """Whether *one* is a ``%``."""
    return one.opname == "BINARY_MODULO" or (one.opname == "BINARY_OP" and one.argrepr == "%")


def is_jump_back(one: dis.Instruction) -> bool:
    """Whether *one* may go back, as loops do."""
    return (one.opcode in dis.hasjrel or one.opcode in dis.hasjabs) and one.argval <= one.offset


def is_return(one: dis.Instruction) -> bool:
    """Whether *one* ends the function."""
    return one.opname == "RETURN_VALUE"


def taker(listed: Sequence[dis.Instruction], at: int, *, joined: bool = True) -> Optional[Taker]:
    """What takes the value on the stack, before the instruction number *at*, as it is: a comparison, call, or ``%``.

    The instructions until then are followed on the stack: *above* is how many values lie on it. A ``%`` takes it as the
    left operand. *joined*: an f-string may make it part of a text before, and the end of the function may take it, also
    *inside* of a tuple. A tuple or list that has it may be searched, too.
    """
    above = inside = 0
    for number, one in enumerate(listed[at:], at):
        name = one.opname
        if is_return(one):
            return Taker(one, inside) if joined and above == 0 else None
        if name == "BUILD_LIST" and listed[number + 1].opname != "CONTAINS_OP":
            return None
        if name in ("BUILD_TUPLE", "BUILD_LIST") and joined and above < (one.arg or 0):
            above, inside = 0, inside + 1
            continue
        if name == "COMPARE_OP":
            return Taker(one, 0) if above <= 1 and not inside else None
        if name == "CONTAINS_OP":  # it is what is searched for, or in what is searched
            return Taker(one, inside) if above == 1 - inside else None
        if (is_percent(one) and above == 1) or (name in _CALLS and above < (one.arg or 0)):
            return None if inside else Taker(one, 0)
        if name == "BUILD_STRING" and (joined or above >= (one.arg or 0)):
            above = max(above - (one.arg or 0) + 1, 0)
            continue
        effect = _effect(one)
        if effect is None or above < effect[0]:
            return None
        above += effect[1] - effect[0]
    return None


def _effect(one: dis.Instruction) -> Optional[tuple[int, int]]:
    """How many values *one* takes from the stack, and then puts on it; None for instructions that may do more."""
    name, arg = one.opname, one.arg or 0
    if name in _CALLS:
        return arg + 2, 1  # a function and NULL, or a method and what it is of
    if name == "CALL_FUNCTION":  # until Python 3.10
        return arg + 1, 1
    if name.startswith(_LOADS):
        return 0, (name.count("LOAD_FAST") or 1) + ("NULL" in one.argrepr)
    if name.startswith("BINARY_"):
        return 3 if name == "BINARY_SLICE" else 2, 1
    if name in ("BUILD_TUPLE", "BUILD_SLICE"):
        return arg, 1
    if name in ("LOAD_ATTR", "LOAD_METHOD", "CONVERT_VALUE"):
        return 1, 1 + (name == "LOAD_METHOD" or "NULL" in one.argrepr)
    if is_format(one):
        return 2 if name == "FORMAT_WITH_SPEC" or arg & 4 else 1, 1
    return (0, 0) if name == "PRECALL" else None  # of Python 3.11, before a call


def templates(code: CodeType) -> set[int]:
    """Where *code* loads a text that is nothing but the left operand of a ``%``, or that an f-string is compared with.

    It tells them by their places in bytes.
    """
    percents = "%" in "".join([one for one in code.co_consts if type(one) is str])
    if not percents and _FORMATS.isdisjoint(code.co_code[::2]):
        return set()
    listed, found = instructions(code), set[int]()
    for at, one in enumerate(listed):
        if one.opname == "LOAD_CONST" and type(one.argval) is str:
            taken = taker(listed, at + 1, joined=False)
            if taken is None:
                continue
            end = taken.instruction
            compared = end is listed[at + 1] and end.opname == "COMPARE_OP" and is_text(listed[at - 1])
            if compared or is_percent(end):
                found.add(one.offset)
    return found
