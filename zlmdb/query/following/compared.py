"""Comparisons of a recorder, and the mistakes in them that are told at once."""

from __future__ import annotations

import sys
import typing
from collections.abc import Mapping
from datetime import datetime, time
from decimal import Decimal
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, Optional

from ...values.base import show, typename
from .code import is_searching, is_searching_tuple
from .fields import Elements, iterated
from .formatted import answered, element_of, text_of, waiting
from .known import BOOL, CONTAINERS, NUMBERS, PLAIN, SOMETHING, Known, has_own_equality, is_enum, kind_of, names_of
from .nodeof import node_of
from .nodes import Argument, Constant, Node, Parameter
from .operations import Compare, Method
from .trace import Trace

if TYPE_CHECKING:
    from .recorder import Recorder

_QUICK = {int, str}
"""Types of what most things are compared with, and of which equal ones are the same."""

_SEARCHED_ELSE = (None, float, complex, Decimal)
"""What `in` does not find by ``==`` alone: it may have no hash, or be not a number."""

_NOT_OF_MEMBERS = (range, bytes, bytearray)
"""Containers in which `in` finds what is none of the elements, or which have too many of them."""

_ORDERING = ("<", "<=", ">", ">=")

_SETS = {set, frozenset}

_AWARE = (datetime, time)
"""Of these some cannot be ordered beside others: those with a time zone beside those without."""


def compared(recorder: Recorder, operator: str, other: Any) -> Any:
    """What ``recorder operator other`` gives."""
    trace, left = recorder.zlmdb_trace, recorder.zlmdb_node
    if kind_of(other) is tuple and isinstance(left, Parameter) and kind_of(trace.values[left.number]) is tuple:
        parts: Any = None if trace.texts or _is_searched(3) else iterated(recorder)
        if parts is not None and type(parts) is not Elements:  # part by part, as Python does where both are written out
            return Compare.functions[operator](tuple(parts), other)
    quick = type(other) in _QUICK and not trace.texts  # a text with a mark is another one each time
    key: Any = (operator, left, kind_of(other), other) if quick else None
    found = None if key is None else trace.memory.get(key)
    if found is not None:
        return trace.recorded(found)
    marks = waiting(trace, sys._getframe(2)) if trace.texts else ()  # documented, and there is no other way
    node = _comparison(recorder, operator, other)
    if type(node) is bool:
        return node
    if marks:
        return answered(trace, node, marks)
    if key is not None:
        trace.memory[key] = node
    return trace.recorded(node)


def _comparison(recorder: Recorder, operator: str, other: Any) -> Any:
    """The expression ``recorder operator other``, or True or False where it is that."""
    trace, left, known = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known
    if other is None and not known.optional:
        if operator in ("==", "!="):
            return operator == "!="
        if trace.current().met_none():  # of the record, perhaps
            raise TypeError(f"{left!r} {operator} None: 'NoneType' has no order")
        trace.refuse(f"{left!r} {operator} None: None has no order; ask `is None` or compare with a value")
    if type(other) in (float, Decimal, complex) and other != other:
        trace.block(f"comparing {left!r} with what is not a number")  # in a tuple it may be found by identity
    if operator == "==" and known.cls in _SEARCHED_ELSE and _is_searched():
        found: Any = getattr(other, "zlmdb_known", SOMETHING).cls
        if known.cls is not None or found not in PLAIN or found in _SEARCHED_ELSE or not _is_searched_tuple():
            trace.block(f"hash() or identity of {left!r}")
    if not trace.texts:
        right = node_of(trace, other)
    else:
        right = (element_of if _is_searched() else text_of)(trace, other, sys._getframe(3))
    right_known = getattr(other, "zlmdb_known", right.known)
    check(trace, left, known, operator, right, right_known)
    ordered = operator not in ("==", "!=")
    raises = ordered and not are_ordered(known, right_known)
    result = BOOL if is_sure(known) and is_sure(right_known) else SOMETHING
    return trace.nodes.make(Compare, operator, left, right, raises, result)


def _is_searched(depth: int = 4) -> bool:
    """Whether the function that compares searches just now, perhaps for what has no hash."""
    frame: FrameType = sys._getframe(depth)  # documented, and there is no other way
    return is_searching(frame.f_code, frame.f_lasti)


def _is_searched_tuple() -> bool:
    """As `_is_searched`, in a tuple: what it has needs no hash."""
    frame: FrameType = sys._getframe(4)
    return is_searching_tuple(frame.f_code, frame.f_lasti)


def contained(recorder: Recorder, member: Any) -> Node:
    """The expression ``member in recorder``."""
    trace, container, known = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known
    node = text_of(trace, member, sys._getframe(2))  # documented, and there is no other way
    if isinstance(container, Method) and container.name == "keys" and container.holder.known.cls is dict:
        container = container.holder
        known = container.known
    member_known = getattr(member, "zlmdb_known", node.known)
    if isinstance(container, Constant) and type(container.value) is str:
        check(trace, node, member_known, "in", container, container.known)
    elif isinstance(container, Constant) and type(container.value) not in _NOT_OF_MEMBERS:
        for one in container.value:
            check(trace, node, member_known, "in", trace.nodes.constant(one), Known.of_value(one), container)
    elif known.cls is not bytes and isinstance(node, Constant) and not isinstance(container, Parameter):
        check(trace, container, known.element(), "in", node, node.known, container)
    elif has_own_equality(member_known.cls):
        trace.block(f"{node!r} in {container!r}: {typename(member_known.cls)} has an __eq__ of its own")
    by_hash = known.cls in (set, frozenset, dict)
    raises = not (member_known.plain if by_hash else known.cls in (list, tuple))
    return trace.nodes.make(Compare, "in", node, container, raises, BOOL)


def check(
    trace: Trace, left: Node, known: Known, operator: str, right: Node, right_known: Known, container: Any = None
) -> None:
    """Refuse a comparison of values of which none ever equals or precedes the other."""
    if has_own_equality(known.cls):
        trace.block(f"{left!r} {operator} {right!r}: {typename(known.cls)} has an __eq__ of its own")
    if operator not in _ORDERING and not of_records(left, right):
        return
    if isinstance(left, Argument) and right_known.cls in PLAIN:
        _check_argument(trace, left, known, operator, right)
    if isinstance(right, Constant):
        value = right.value
    elif isinstance(right, Parameter) and typing.get_origin(known.annotation) is not Literal:
        value = trace.values[right.number]
    else:
        _check_types(trace, left, known, operator, right, right_known)
        return
    if value is None or known.fits(value):
        if known.cls in PLAIN:
            _check_record(trace, left, operator, right, kind_of(value))
        return
    shown, subject = f"{left!r} {operator} {right!r}", repr(left)
    if container is left:
        shown, subject = f"{right!r} in {container!r}", f"an element of {left!r}"
    elif container is not None:
        shown = f"{left!r} in {container!r}"
    trace.refuse(
        f"{shown}: {subject} is of type {typename(known.annotation)}, which {show(value)} "
        f"({typename(type(value))}) is not; compare it with a value of its type"
    )


def _check_argument(trace: Trace, record: Argument, known: Known, operator: str, right: Node) -> None:
    """Refuse a comparison of the whole *record* with a plain value, which is never a record."""
    cls: Any = known.cls
    plain: Any = object
    if _equals_its_own_only(cls) and (operator not in _ORDERING or cls.__lt__ is plain.__lt__):
        name, asked = record.name, "..." if operator == "in" else repr(right)
        trace.refuse(
            f"{name} {operator} {asked}: {name} is the record, of {typename(cls)}: compare a field of it, "
            f"{name}.{next(iter(known.fields()), 'field')}, or its key, which a function of two arguments gets first: "
            f"lambda key, record: key {operator} {asked}"
        )


def of_records(*nodes: Node) -> bool:
    """Whether one of *nodes* is more than what the function holds: the next use of it may hold what is of another type.

    ``wanted == "all" or b.number == wanted`` is no mistake, neither where *wanted* is a text nor where it is a number.
    """
    return not all([isinstance(node, (Constant, Parameter)) for node in nodes])


def _check_types(trace: Trace, left: Node, known: Known, operator: str, right: Node, right_known: Known) -> None:
    one, two = known.cls, right_known.cls
    plain = one in PLAIN and two in PLAIN and not {one, two} <= NUMBERS
    if one is not two and (plain or _is_unlike(known, right_known)):
        trace.refuse(
            f"{left!r} {operator} {right!r}: {left!r} is of type {typename(one)}, {right!r} of type {typename(two)}; "
            f"compare values of one type"
        )
    if left.known.plain:  # else both may be None, on another way through the function
        _check_record(trace, left, operator, right, two)


def _check_record(trace: Trace, left: Node, operator: str, right: Node, cls: Optional[type[Any]]) -> None:
    """Refuse *right*, if it is a record of *cls*, beside a plain value."""
    if _equals_its_own_only(cls):
        trace.refuse(
            f"{left!r} {operator} {right!r}: {right!r} is a record of {typename(cls)}, and {left!r} is not one; "
            "compare with its key, which add() and .key(...) of a unique index return, or with a field"
        )


def _equals_its_own_only(cls: Any) -> bool:
    """Whether *cls* is a dataclass with the ``__eq__`` that `dataclasses` makes."""
    own: Mapping[str, Any] = {} if cls is None else names_of(cls)
    code: Any = getattr(own.get("__eq__"), "__code__", None)
    return "__dataclass_params__" in own and code is not None and code.co_filename == "<string>"


def _is_unlike(left: Known, right: Known) -> bool:
    """Whether one of these is a list or the like, and the other one is something else, which never equals it."""
    kinds = {left.cls, right.cls}
    if kinds <= _SETS or (left.optional and right.optional):
        return False
    return not kinds.isdisjoint(CONTAINERS) and all([cls in CONTAINERS or cls in PLAIN for cls in kinds])


def are_ordered(left: Known, right: Known) -> bool:
    """Whether ordering values of these two never raises."""
    if left.cls in NUMBERS and right.cls in NUMBERS:
        return Decimal not in (left.cls, right.cls)  # it raises beside what is not a number
    return left.cls is right.cls and left.cls in PLAIN and left.cls not in _AWARE and left.cls is not complex


def is_sure(known: Known) -> bool:
    """Whether comparing values of this gives True or False, and nothing else, as arrays do."""
    return known.cls in PLAIN or known.cls in CONTAINERS or is_enum(known)
