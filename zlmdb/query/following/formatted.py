"""F-strings of captured values, and texts made by ``format``: ``u.email == f"{name}@example.com"``.

Python wants a text where it formats a value. If it got that of the captured value, what is read would hold for this
value only, and the function would be read again for each other one. Where the code does nothing with the text but
compare it, or give it to a method, a mark stands for it instead. What compares finds the expression of the mark.

A text with a mark is in one place only, on the stack of the frame that formats, until an instruction of this frame
takes it. Should that be an operation of Python's own, which sees the text, all that was read with marks is thrown away,
and the function is read again without them (`Trace.texts_as_they_are`).
"""

from __future__ import annotations

import dis
import re
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from .code import PADDING, ByCode
from .known import PLAIN, STR
from .nodes import Given, Node
from .operations import Apply, Binary
from .sight import MARK, node_of
from .trace import Trace

if TYPE_CHECKING:
    from .recorder import Recorder

_MARKS = re.compile(f"({MARK}[0-9.]+{MARK})")

_LOADS = ("LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_SMALL_INT")
_CALLS = ("CALL", "CALL_METHOD")


def marked(recorder: Recorder, how: str, frame: FrameType) -> Optional[str]:
    """A mark for the text of what is captured, formatted as *how* says, if it may stand for it in *frame*."""
    trace, node, kind = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known.cls
    taker = None if trace.texts_as_they_are or kind not in PLAIN else _takers(frame.f_code).get(frame.f_lasti)
    if taker is None:
        return None
    try:
        format(node.evaluate(Given((), trace.values)), how)
    except Exception as error:
        let_through(error)
        return None  # then it raises where the function makes it
    mark = f"{MARK}{id(trace)}.{len(trace.texts)}{MARK}"
    trace.texts[mark] = _text(trace, node, kind, how), frame, taker
    return mark


def _text(trace: Trace, node: Node, kind: Any, how: str) -> Node:
    if how or kind not in (str, int, float):
        return trace.nodes.make(Apply, trace.nodes.constant(format), (node, trace.nodes.constant(how)), (), True, STR)
    return node if kind is str else trace.nodes.make(Apply, trace.nodes.constant(str), (node,), (), True, STR)


def text_of(trace: Trace, value: Any, frame: FrameType) -> Node:
    """As `node_of`, of what an instruction of *frame* has taken: a text may have marks."""
    if not trace.texts or type(value) is not str or MARK not in value:
        return node_of(trace, value)
    found: Optional[Node] = None
    for part in filter(None, _MARKS.split(value)):
        text, origin, taker = trace.texts.get(part, (None, None, None))
        if text is not None and origin is frame and taker == frame.f_lasti:
            del trace.texts[part]
        else:
            text = node_of(trace, part)
        found = text if found is None else trace.nodes.make(Binary, "+", found, text, False, STR)
    return node_of(trace, value) if found is None else found


def _takers(code: CodeType) -> dict[int, int]:
    """The instructions of *code* that format, and what takes the text of each: all are told by their place in bytes.

    Those are left out of which something else may see the text. A call that formats a value is one of `str.format`,
    and gives the text.
    """
    found: Optional[dict[int, int]] = _kept.get(code)
    if found is None:
        listed, found = [one for one in dis.get_instructions(code) if one.opcode not in PADDING], {}
        for at, one in enumerate(listed):
            if _is_format(one) or one.opname.startswith("CALL"):
                taker = _taker(listed, at + 1)
                if taker is not None:
                    found[one.offset] = taker.offset
        _kept.keep(code, found)
    return found


_kept = ByCode(1024)


def _is_format(one: dis.Instruction) -> bool:
    return one.opname in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")


def _taker(listed: list[dis.Instruction], at: int) -> Optional[dis.Instruction]:
    """What takes the text on the stack, before the instruction number *at*, as it is: a comparison or a call.

    The instructions until then are followed on the stack: *above* is how many values lie on the text.
    """
    above = 0
    for one in listed[at:]:
        name, taken, given = one.opname, 0, 0
        if name == "COMPARE_OP":
            return one if above <= 1 else None
        if name == "CONTAINS_OP":
            return one if above == 1 else None  # it is what is searched for
        if name in _CALLS:
            return one if above < (one.arg or 0) else None
        if name == "BUILD_STRING":
            above = max(above - (one.arg or 0) + 1, 0)
            continue
        if name.startswith(_LOADS):
            given = name.count("LOAD_FAST") or 1
        elif name in ("LOAD_ATTR", "CONVERT_VALUE"):
            taken = given = 1
        elif _is_format(one):
            taken, given = 2 if name == "FORMAT_WITH_SPEC" or (one.arg or 0) & 4 else 1, 1
        elif name != "PRECALL":  # of Python 3.11, before a call
            return None
        if above < taken or "NULL" in one.argrepr:  # of a method or function, which is called next
            return None
        above += given - taken
    return None
