"""F-strings of captured values: ``u.email == f"{name}@example.com"``.

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
_CALLS = ("CALL", "CALL_METHOD", "PRECALL")


def marked(recorder: Recorder, how: str, frame: FrameType) -> Optional[str]:
    """A mark for the text of what is captured, formatted as *how* says, if it may stand for it in *frame*."""
    trace, node, kind = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known.cls
    if trace.texts_as_they_are or kind not in PLAIN or frame.f_lasti not in _passed_on(frame.f_code):
        return None
    try:
        format(node.evaluate(Given((), trace.values)), how)
    except Exception as error:
        let_through(error)
        return None  # then it raises where the function makes it
    mark = f"{MARK}{id(trace)}.{len(trace.texts)}{MARK}"
    trace.texts[mark] = _text(trace, node, kind, how), frame
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
        text, origin = trace.texts.get(part, (None, None))
        if text is not None and origin is frame:
            del trace.texts[part]
        else:
            text = node_of(trace, part)
        found = text if found is None else trace.nodes.make(Binary, "+", found, text, False, STR)
    return node_of(trace, value) if found is None else found


def _passed_on(code: CodeType) -> frozenset[int]:
    """The instructions of *code* that format, and of which the text is then compared, or given to a call, and no more.

    They are told by their place in bytes.
    """
    found: Optional[frozenset[int]] = _kept.get(code)
    if found is None:
        listed = [one for one in dis.get_instructions(code) if one.opcode not in PADDING]
        found = frozenset([
            one.offset for at, one in enumerate(listed) if _is_format(one) and _is_passed_on(listed, at + 1)
        ])  # fmt: skip
        _kept.keep(code, found)
    return found


_kept = ByCode(1024)


def _is_format(one: dis.Instruction) -> bool:
    return one.opname in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")


def _is_passed_on(listed: list[dis.Instruction], at: int) -> bool:
    """Whether the text on the stack, before the instruction number *at*, gets as it is into a comparison or a call.

    The instructions until then are followed on the stack: *above* is how many values lie on the text.
    """
    above = 0
    for one in listed[at:]:
        name, taken, given = one.opname, 0, 0
        if name == "COMPARE_OP":
            return above <= 1
        if name == "CONTAINS_OP":
            return above == 1  # it is what is searched for
        if name in _CALLS:
            return above < (one.arg or 0)
        if name == "BUILD_STRING":
            above = max(above - (one.arg or 0) + 1, 0)
            continue
        if name.startswith(_LOADS):
            given = name.count("LOAD_FAST") or 1
        elif name == "LOAD_ATTR" or name == "CONVERT_VALUE":
            taken = given = 1
        elif _is_format(one):
            taken, given = 2 if name == "FORMAT_WITH_SPEC" or (one.arg or 0) & 4 else 1, 1
        else:
            return False
        if above < taken or "NULL" in one.argrepr:  # of a method or function, which is called next
            return False
        above += given - taken
    return False
