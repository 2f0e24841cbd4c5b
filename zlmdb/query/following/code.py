"""What the code of a function does that a recorder would not notice, and the copy of it that is followed.

Python tells a recorder of everything that happens to it but three things: ``x is y``, an error that the function
catches, and what it does to variables outside. The code says which of these it does.
"""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, Callable, Optional

from ...handlers import let_through
from ...namedtuples import NamedTuple
from .bycode import ByCode
from .takers import PADDING, templates

Replace = Callable[[Any], Any]
Function = Callable[..., Any]


class IsOperand(NamedTuple):
    """The right operand of an ``is``, as far as the code tells: a name, and an attribute of it, or one of that."""

    kind: str
    name: str
    attributes: tuple[str, ...] = ()


class Code(NamedTuple):
    """What is to be known of the code of a function before it is followed."""

    reason: str
    """Why it cannot be followed, or nothing."""

    tests_none: bool
    """Whether it asks what is None."""

    operands: tuple[IsOperand, ...]
    """What else it asks to be the same object."""

    names: tuple[str, ...]
    """The names it may look up outside."""


_OUTSIDE = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
"""Instructions that look up a name outside of the function."""


def _opcodes(*names: str) -> frozenset[int]:
    return frozenset(dis.opmap[name] for name in names if name in dis.opmap)


def _containing(part: str) -> frozenset[int]:
    return frozenset(code for name, code in dis.opmap.items() if part in name)


_FORBIDDEN: dict[int, str] = {
    **dict.fromkeys(
        _containing("SETUP_") | _opcodes("PUSH_EXC_INFO", "BEFORE_WITH", "BEFORE_ASYNC_WITH"),
        "it has a try or with",
    ),
    **dict.fromkeys(_containing("MATCH_") - _containing("EXC_MATCH"), "it has a match with patterns"),
    **dict.fromkeys(_opcodes("STORE_GLOBAL", "DELETE_GLOBAL"), "it assigns to a global name"),
    **dict.fromkeys(_opcodes("IMPORT_NAME"), "it imports"),
    **dict.fromkeys(_opcodes("LOAD_BUILD_CLASS"), "it defines a class"),
}
_IF_NONE = _containing("_IF_NONE") | _containing("_IF_NOT_NONE")
_IS = _opcodes("IS_OP")
_OWN = _opcodes("LOAD_COMMON_CONSTANT")
_STORES = _opcodes("STORE_DEREF", "DELETE_DEREF")
_LOAD_CONST = dis.opmap.get("LOAD_CONST")
_BUILD_SET, _BUILD_LIST = dis.opmap.get("BUILD_SET"), dis.opmap.get("BUILD_LIST")
_BUILD_TUPLE = dis.opmap.get("BUILD_TUPLE")
_IN = _opcodes("CONTAINS_OP")
_FOREIGN = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


def examined(code: CodeType) -> Code:
    """What *code*, and the functions that it defines, are to be handled by."""
    found: Optional[Code] = _examined.get(code)
    if found is None:
        found = _examine(code)
        _examined.keep(code, found)
    return found


def _examine(code: CodeType) -> Code:
    reason, tests_none = "", False
    operands: list[IsOperand] = []
    names: dict[str, None] = {}
    for one in nested(code):
        reason = reason or _reason(one)
        if one.co_names:  # those of attributes, too
            names.update(dict.fromkeys([each.argval for each in _instructions(one) if each.opname in _OUTSIDE]))
        used = set(one.co_code[::2])
        tests_none = tests_none or not used.isdisjoint(_IF_NONE)
        if not used.isdisjoint(_IS):
            for operand in _is_operands(one):
                if operand.kind == "none":
                    tests_none = True
                elif operand.kind == "unclear":
                    reason = reason or "it has an `is` with something else than None, True, False or a name"
                elif operand.kind != "bool" or operand not in operands:
                    operands.append(operand)
    return Code(reason, tests_none, tuple(operands), tuple(names))


def _reason(code: CodeType) -> str:
    for opcode in set(code.co_code[::2]).intersection(_FORBIDDEN):
        return f"{_FORBIDDEN[opcode]} (line {code.co_firstlineno})"
    if code.co_flags & _FOREIGN:
        return "it is asynchronous"
    for name in code.co_names:
        if name.startswith("__") and name.endswith("__"):
            return f"it uses {name}"
    if code.co_freevars and not set(code.co_code[::2]).isdisjoint(_STORES):
        for instruction in _instructions(code):
            if instruction.opcode in _STORES and instruction.argval in code.co_freevars:
                return f"it assigns to {instruction.argval}, a variable of the function around it"
    return ""


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of *code*; on PyPy 3.11, `dis` takes the variables of the functions around it for others."""
    if sys.implementation.name != "pypy":
        return dis.get_instructions(code)
    cells, outer = code.co_cellvars + code.co_freevars, frozenset(dis.hasfree)
    return (
        one._replace(argval=cells[one.arg]) if one.opcode in outer and one.arg is not None else one
        for one in dis.get_instructions(code)
    )


def _is_operands(code: CodeType) -> Iterator[IsOperand]:
    """The right operands of each ``is`` in *code*."""
    before: list[dis.Instruction] = []
    for instruction in _instructions(code):
        if instruction.opcode in _IS and not _is_compilers(before):
            yield _operand(before)
        if instruction.opcode not in PADDING:
            before.append(instruction)


def _is_compilers(before: list[dis.Instruction]) -> bool:
    """Whether the question after *before* is the compiler's: since 3.14 ``any(x for ...)`` asks for the built-in one.

    Then the loop runs on the spot. A followed function finds another one by that name, which is called as ever.
    """
    return len(before) > 1 and before[-1].opcode in _OWN and before[-2].opname == "COPY"


def _operand(before: list[dis.Instruction]) -> IsOperand:
    last = before[-1]
    if last.opname.startswith("LOAD_CONST") or last.opcode in _OWN:  # of which None, True and False are since 3.15
        kind = "none" if last.argval is None else "bool" if type(last.argval) is bool else "unclear"
        return IsOperand(kind, "")
    attributes: list[str] = []
    while last.opname == "LOAD_ATTR" and len(attributes) + 1 < len(before):
        attributes.insert(0, last.argval)
        last = before[-1 - len(attributes)]
    holder = _named(last)
    return IsOperand("unclear", "") if holder is None else holder._replace(attributes=tuple(attributes))


def _named(instruction: dis.Instruction) -> Optional[IsOperand]:
    kinds = {"LOAD_GLOBAL": "global", "LOAD_DEREF": "cell"}
    kind = kinds.get(instruction.opname)
    return None if kind is None else IsOperand(kind, instruction.argval)


def nested(code: CodeType) -> Iterator[CodeType]:
    """*code* and that of the functions, lambdas and comprehensions written in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def with_members(code: CodeType, replace: Replace) -> CodeType:
    """*code* with what it searches by ``in``, or formats by ``%``, replaced by what *replace* gives where it spells it.

    ``x in {1, 2}`` asks the set and never x. What stands in its place asks x. A set is a constant for nothing else but
    to be searched or iterated; a tuple or text is one for other things, too, so what follows has to be an ``in``. Sets
    that are made on the spot, ``x in {a, b}``, become lists: these ask x whether it equals a, and then b. The text
    before a ``%``, which would ask x for its own text, is replaced as well.
    Where a Python does this otherwise nothing is replaced, and x is asked for its hash: then the function is called.
    """
    consts = code.co_consts
    places = templates(code)
    searches = bool(places) or not _IN.isdisjoint(code.co_code[::2])
    if not searches and len(consts) > 0 and not any(type(one) in (frozenset, CodeType) for one in consts):
        return code
    searched, raw = _searched(code, places) if searches else (set[int](), code.co_code)
    changed = [_changed(one, number in searched, replace) for number, one in enumerate(consts)]
    if raw == code.co_code and all(new is old for new, old in zip(changed, consts)):
        return code
    return code.replace(co_consts=tuple(changed), co_code=raw)


def _changed(constant: Any, searched: bool, replace: Replace) -> Any:
    if type(constant) is CodeType:
        return with_members(constant, replace)
    return replace(constant) if searched or type(constant) is frozenset else constant


def _searched(code: CodeType, places: set[int]) -> tuple[set[int], bytes]:
    """The constants that *code* loads only at *places* or to search them at once, and it with lists for new sets."""
    found: set[int] = set()
    kept: set[int] = set()
    raw, high = bytearray(code.co_code), 0
    for at in range(0, len(raw) - 2, 2):
        opcode, arg = raw[at], raw[at + 1] | high
        high = arg << 8 if opcode == dis.EXTENDED_ARG else 0
        if opcode == _LOAD_CONST:
            searched = raw[at + 2] in _IN and _is_searchable(code.co_consts[arg])
            (found if searched or at in places else kept).add(arg)
        elif opcode == _BUILD_SET and _BUILD_LIST is not None and raw[at + 2] in _IN:
            raw[at] = _BUILD_LIST
    return found - kept, bytes(raw)


def _is_searchable(constant: Any) -> bool:
    return type(constant) in (tuple, frozenset, str, bytes)


def assigned(code: CodeType) -> frozenset[str]:
    """The variables of the functions around *code* that it, or what is written in it, assigns to."""
    found: Optional[frozenset[str]] = _assigned.get(code)
    if found is None:
        names = [
            instruction.argval
            for one in nested(code)
            if one.co_freevars and not set(one.co_code[::2]).isdisjoint(_STORES)
            for instruction in _instructions(one)
            if instruction.opcode in _STORES
        ]
        found = frozenset(names)
        _assigned.keep(code, found)
    return found


def is_followed(function: Any) -> bool:
    """Whether *function* is a Python function that gives its result when it is called."""
    return type(function) is FunctionType and not function.__code__.co_flags & (_FOREIGN | inspect.CO_GENERATOR)


def is_searching(code: CodeType, at: int) -> bool:
    """Whether the instruction *at* that number of bytes in *code* is an ``in``."""
    return code.co_code[at] in _IN


def is_searching_tuple(code: CodeType, at: int) -> bool:
    """Whether that instruction searches a tuple that is made for it: of a set, see `with_members`, it may be a list."""
    return is_searching(code, at) and at > 1 and code.co_code[at - 2] == _BUILD_TUPLE


_examined: ByCode = ByCode(1024)
_assigned: ByCode = ByCode(1024)


def understood() -> bool:
    """Whether what this module knows of code is true for this Python: tried once, when the first function is read."""
    if not _tried:
        try:
            _tried.append(_try())
        except Exception as error:
            let_through(error)  # else no function would be read any more
            # Another Python may have other instructions: then functions are called, and none is read.
            _tried.append(False)
    return _tried[0]


_tried: list[bool] = []


def _catching(value: Any) -> Any:
    try:
        return value()
    except ValueError:
        return None


def _blocking(value: Any) -> Any:
    with value:
        return value


def _none(value: Any) -> Any:
    return value is None


def _some(value: Any) -> Any:
    return 1 if value is not None else 2


def _true(value: Any) -> Any:
    return value is True


def _named_one(value: Any) -> Any:
    return value is Any


def _itself(value: Any) -> Any:
    return value is value


def _equal(value: Any) -> Any:
    return value == 1


def _constants(value: Any) -> Any:
    return value in {1, 2} and value in (3, 4)


def _made(value: Any, other: Any) -> Any:
    return value in {other, 2}


class _Found:
    def __contains__(self, value: Any) -> bool:
        return True


def _try() -> bool:
    """Tests of what is known of code, on functions of which the answers are sure."""
    none, some, true, named, itself, equal, catching, blocking = [
        examined(one.__code__) for one in (_none, _some, _true, _named_one, _itself, _equal, _catching, _blocking)
    ]
    searching = FunctionType(with_members(_constants.__code__, lambda _: _Found()), {})
    made = FunctionType(with_members(_made.__code__, lambda _: _Found()), {})
    return (
        (none.tests_none and some.tests_none and not equal.tests_none)
        and true.operands == (IsOperand("bool", ""),)
        and named.operands == (IsOperand("global", "Any"),)
        and all([one.reason != "" for one in (itself, catching, blocking)])
        and equal == Code("", False, (), ())
        and bool(searching(5))
        and bool(made([2], [2]))
    )
