"""F-strings, and texts made by ``format``: ``u.email == f"{name}@example.com"``, ``f"{u.first} {u.last}"``.

Python wants a text where it formats a value. Of a field there is none yet. If it got that of a captured value, what is
read would hold for this value only, and the function would be read again for each other one. Where the code does
nothing with the text but compare it, give it to a method, or return it, a mark stands for it instead. What compares
finds the expression of the mark, and so does what has called the function.

A tuple of texts may be searched: ``u.name in (f"{n}", "x")``. Python compares the elements one after the other, and the
first that is equal ends that. So what a recorder is compared with before the first mark is put off: an element that was
found would hide whether it is the recorder that is searched for. See `answered`.

A text with a mark is in one place only, on the stack of the frame that formats, until an instruction of this frame
takes it. Should that be an operation of Python's own, which sees the text, all that was read with marks is thrown away,
and the function is read again without them (`Trace.texts_as_they_are`). A comparison with a field that is None on this
way is such an operation, too, but it says the same of all texts: see `none_given`.
"""

from __future__ import annotations

import re
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from .bycode import ByCode
from .known import PLAIN, STR
from .nodeof import MARK, node_of
from .nodes import Given, Node
from .operations import Apply, Binary
from .takers import Taker, bare_instructions, conversion, is_format, is_jump_back, is_percent, is_return, taker
from .trace import Trace

if TYPE_CHECKING:
    from .recorder import Recorder

_MARKS = re.compile(f"({MARK}[0-9.]+{MARK})")

_RETURNED = -1
"""The place of what takes a text that the function returns."""

_WITHIN = -2
"""The place of what searches a tuple with the text is less than that by its place in bytes."""

_CALLING = set[CodeType]()


def gives_returned(function: Any) -> Any:
    """Decorate *function*, which calls functions that are followed, and gives what they return to `returned`."""
    _CALLING.add(function.__code__)
    return function


def marked(recorder: Recorder, how: Optional[str], frame: FrameType) -> Optional[str]:
    """A mark for the text of *recorder*, formatted as *how* says, if it may stand for it in *frame*.

    Without *how* it is what `str` gives.
    """
    trace, node, known = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known
    if trace.texts_as_they_are or known.cls not in PLAIN or known.optional:
        return None
    end = _takers(frame.f_code).get((frame.f_lasti, how is None))
    if end is None or (end == _RETURNED and (frame.f_back is None or frame.f_back.f_code not in _CALLING)):
        return None
    text = _text(trace, node, known.cls, how)
    if text.raises and (not node.settled or end <= _WITHIN):  # perhaps it is not looked at
        trace.current().raising.append(text)
    if node.settled:
        try:
            format(node.evaluate(Given((), trace.values)), how or "")
        except Exception as error:
            let_through(error)
            return None  # then it raises where the function makes it
    mark = f"{MARK}{id(trace)}.{len(trace.texts)}{MARK}"
    trace.texts[mark] = text, frame, end
    return mark


def _text(trace: Trace, node: Node, kind: Any, how: Optional[str]) -> Node:
    if how or (how is not None and kind not in (str, int, float)):
        return trace.nodes.make(Apply, trace.nodes.constant(format), (node, trace.nodes.constant(how)), (), True, STR)
    return node if kind is str else trace.nodes.make(Apply, trace.nodes.constant(str), (node,), (), True, STR)


def text_of(trace: Trace, value: Any, frame: FrameType) -> Node:
    """As `node_of`, of what an instruction of *frame* has taken: a text may have marks."""
    if not trace.texts or type(value) is not str or MARK not in value:
        return node_of(trace, value)
    return _joined(trace, value, frame, frame.f_lasti)


def waiting(trace: Trace, frame: FrameType) -> list[str]:
    """The marks that are left in the tuple that the instruction of *frame* searches just now."""
    end = _WITHIN - frame.f_lasti
    return [mark for mark, (_, origin, its_end) in trace.texts.items() if origin is frame and its_end == end]


def element_of(trace: Trace, value: Any, frame: FrameType) -> Node:
    """As `node_of`, of an element of the tuple that the instruction of *frame* searches just now."""
    if type(value) is not str or MARK not in value:
        return node_of(trace, value)
    return _joined(trace, value, frame, _WITHIN - frame.f_lasti)


def answered(trace: Trace, node: Node, marks: list[str]) -> bool:
    """Whether a search ends at an element, which *node* compares; before that, *marks* were `waiting`.

    While none of them has been taken, it may be a plain value that is searched for, which Python itself compares with
    them: they stay then, and the function is read again without marks.
    """
    run = trace.current()
    taken = next((number for number, mark in enumerate(marks) if mark not in trace.texts), None)
    run.put_off.append(node)
    if taken is None:
        return False
    asked, run.put_off = run.put_off, []
    if not any(bool(trace.recorded(one)) for one in asked):
        return False
    for mark in marks[taken:]:  # Python looks at none of the rest
        trace.texts.pop(mark, None)
    return True


def none_given(trace: Trace, frame: FrameType) -> None:
    """Note that *frame* gets None for an attribute: a text that this is compared with may be any."""
    place = _comparisons(frame.f_code).get(frame.f_lasti)
    if place is not None:
        trace.beside_none.update(((frame, place), (frame, _WITHIN - place)))


def returned(trace: Trace, value: Any) -> Any:
    """*value*, which a function that is followed returns, with what is recorded in place of texts with marks."""
    if not trace.texts:
        return value
    parts: Any = value
    if type(value) is tuple:
        return tuple([returned(trace, one) for one in parts])
    if type(value) is not str or MARK not in value:
        return value
    return trace.recorded(_joined(trace, value, None, _RETURNED))


def _joined(trace: Trace, value: str, frame: Optional[FrameType], end: int) -> Node:
    """The expression of *value*, of which what is at *end* takes the marks, in *frame* if that goes on."""
    found: Optional[Node] = None
    for part in filter(None, _MARKS.split(value)):
        text, origin, its_end = trace.texts.get(part, (None, None, None))
        if text is not None and its_end == end and (frame is None or origin is frame):
            del trace.texts[part]
        else:
            text = node_of(trace, part)
        found = text if found is None else trace.nodes.make(Binary, "+", found, text, False, STR)
    return node_of(trace, value) if found is None else found


def _takers(code: CodeType) -> dict[tuple[int, bool], int]:
    """The instructions of *code* that format, and what takes the text of each: all are told by their place in bytes.

    With that of the first, whether it is what `str` gives. Those are left out of which something else may see the text.
    A call that formats a value is one of `str.format`, and gives the text.
    """
    found: Optional[dict[tuple[int, bool], int]] = _kept.get(code)
    if found is None:
        listed, found = bare_instructions(code), {}
        for at, one in enumerate(listed):
            converts = conversion(listed, at)
            if converts or is_format(one) or one.opname.startswith("CALL"):
                taken = taker(listed, at + (converts or 1))
                if taken is not None and not is_percent(taken.instruction):
                    found[one.offset, converts > 0] = _place(taken)
        _kept.keep(code, found)
    return found


def _comparisons(code: CodeType) -> dict[int, int]:
    """Where *code* reads attributes, and where it compares them or searches for them: places in bytes.

    It is empty for code that formats nothing, and for code with loops, in which the next turn compares something else.
    """
    found: Optional[dict[int, int]] = _compared.get(code)
    if found is None:
        found = {}
        listed = bare_instructions(code) if _takers(code) else []
        if not any(map(is_jump_back, listed)):
            for at, one in enumerate(listed):
                taken = taker(listed, at + 1, joined=False) if one.opname == "LOAD_ATTR" else None
                if taken is not None and not taken.inside and taken.instruction.opname in ("COMPARE_OP", "CONTAINS_OP"):
                    found[one.offset] = taken.instruction.offset
        _compared.keep(code, found)
    return found


def _place(taken: Taker) -> int:
    if is_return(taken.instruction):
        return _RETURNED
    return _WITHIN - taken.instruction.offset if taken.inside else taken.instruction.offset


_kept = ByCode(1024)
_compared = ByCode(1024)
