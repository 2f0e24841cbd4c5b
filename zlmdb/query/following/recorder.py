"""The recorder: what a function that is followed sees in place of a value, and that notes what is done to it."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterator
from datetime import date, datetime, time
from types import FrameType
from typing import Any, Callable, Optional

from ...handlers import is_debugging
from ...values.base import typename
from . import compared, fields
from .formatted import marked, none_given
from .known import BOOL, FLOAT, INT, NUMBERS, PLAIN, SOMETHING, STR, UNKNOWN, Known, is_bare_enum, is_enum
from .nodeof import node_of
from .nodes import Constant, Node
from .operations import ARITHMETIC, Apply, Binary, Compare, IsNone, Unary
from .trace import Trace

_SMALL = 16
"""Members up to which a field of an Enum is followed one by one where the function asks what is a member."""


def _comparing(operator: str) -> Any:
    def method(self: Any, other: Any) -> Any:
        return compared.compared(self, operator, other)

    return method


class Recorder:
    """Stands for a value. Operators give recorders; asking whether it is true chooses a way."""

    __slots__ = ("zlmdb_known", "zlmdb_node", "zlmdb_trace")

    zlmdb_known: Known
    zlmdb_node: Node
    zlmdb_trace: Trace

    def __init__(self, trace: Trace, node: Node, known: Known) -> None:
        set_trace(self, trace)
        set_node(self, node)
        set_known(self, known)

    def __getattr__(self, name: str) -> Any:
        trace = self.zlmdb_trace
        found = trace.memory.get((self.zlmdb_node, name))
        value = fields.attribute(self, name) if found is None else trace.recorded(found)
        if value is None:
            none_given(trace, sys._getframe(1))
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        fields.changed(self, f".{name} = ...")

    def __delattr__(self, name: str) -> None:
        fields.changed(self, f".{name} deleted")

    def __setitem__(self, key: Any, value: Any) -> None:
        fields.changed(self, "[...] = ...")

    def __delitem__(self, key: Any) -> None:
        fields.changed(self, "[...] deleted")

    def __getitem__(self, key: Any) -> Any:
        return fields.item(self, key)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.zlmdb_trace.block(f"a call of {self.zlmdb_node!r}")

    def __contains__(self, member: Any) -> bool:
        trace: Trace = self.zlmdb_trace
        return trace.truth(compared.contained(self, member))

    def __iter__(self) -> Iterator[Any]:
        return fields.iterated(self)

    def __bool__(self) -> bool:
        trace: Trace = self.zlmdb_trace
        return always_true(self.zlmdb_known) or trace.truth(self.zlmdb_node)

    def __hash__(self) -> int:
        return hash(concrete(self, "hash()"))

    def __len__(self) -> int:
        return len(concrete(self, "len()"))

    def __str__(self) -> str:
        mark = _marked(self, None, sys._getframe(1))
        return str(concrete(self, "str()", tuple)) if mark is None else mark

    def __repr__(self) -> str:
        if is_debugging(sys._getframe(1)):  # nothing that the function does
            return f"<placeholder {self.zlmdb_node!r}, while zlmdb reads the function>"
        return repr(concrete(self, "repr()", tuple))

    def __format__(self, how: str) -> str:
        mark = _marked(self, how, sys._getframe(1))
        return format(concrete(self, "format()"), how) if mark is None else mark

    def __int__(self) -> int:
        return int(concrete(self, "int()", str, bytes))

    def __float__(self) -> float:
        return float(concrete(self, "float()", str, bytes))

    def __index__(self) -> int:
        return operator.index(concrete(self, "a position"))

    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = map(_comparing, ("==", "!=", "<", "<=", ">", ">="))

    def __neg__(self) -> Any:
        return signed(self, "-")

    def __pos__(self) -> Any:
        return signed(self, "+")

    def __invert__(self) -> Any:
        return signed(self, "~")

    def __abs__(self) -> Any:
        return applied(self.zlmdb_trace, abs, (self,), {}, _sign(self.zlmdb_known))

    def __round__(self, digits: Any = None) -> Any:
        known = self.zlmdb_known
        number = known.cls in NUMBERS
        result = (INT if digits is None else INT if known.cls is bool else known) if number else UNKNOWN
        return applied(self.zlmdb_trace, round, (self,) if digits is None else (self, digits), {}, result)

    def __trunc__(self) -> Any:
        return applied(self.zlmdb_trace, math.trunc, (self,), {}, UNKNOWN)

    def __floor__(self) -> Any:
        return applied(self.zlmdb_trace, math.floor, (self,), {}, UNKNOWN)

    def __ceil__(self) -> Any:
        return applied(self.zlmdb_trace, math.ceil, (self,), {}, UNKNOWN)

    def __divmod__(self, other: Any) -> Any:
        return applied(self.zlmdb_trace, divmod, (self, other), {}, UNKNOWN)

    def __rdivmod__(self, other: Any) -> Any:
        return applied(self.zlmdb_trace, divmod, (other, self), {}, UNKNOWN)


set_trace: Any = vars(Recorder)["zlmdb_trace"].__set__
set_node: Any = vars(Recorder)["zlmdb_node"].__set__
set_known: Any = vars(Recorder)["zlmdb_known"].__set__


def _arithmetic(sign: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    def forward(self: Any, other: Any) -> Any:
        return combined(self.zlmdb_trace, sign, self, other)

    def backward(self: Any, other: Any) -> Any:
        return combined(self.zlmdb_trace, sign, other, self)

    return forward, backward


def _in_place(sign: str, name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        cls: Any = self.zlmdb_known.cls
        if cls is None or hasattr(cls, name):  # else Python computes a new value, for the variable only
            fields.changed(self, f" {sign}= ...")
        return combined(self.zlmdb_trace, sign, self, other)

    return method


for _sign_of, _name in ARITHMETIC.items():
    _forward, _backward = _arithmetic(_sign_of)
    setattr(Recorder, f"__{_name}__", _forward)
    setattr(Recorder, f"__r{_name}__", _backward)
    setattr(Recorder, f"__i{_name}__", _in_place(_sign_of, f"__i{_name}__"))


def recorded(trace: Trace, node: Node) -> Any:
    """What the function sees of *node*: None where it is None on this way; else a recorder.

    Where the function asks what *is* something else, too, it sees True, False and the members of an Enum themselves.
    """
    if node.raises:
        trace.current().raising.append(node)
    known = node.known
    if known.optional and (trace.tests_none or not known.unknown):
        if trace.truth(trace.nodes.make(IsNone, node, BOOL)):
            if known.unknown:
                trace.current().doubt()
            return None
        known = known.required
    if trace.tests_members:
        found = _member(trace, node, known)
        if found is not None:
            return found
    found = trace.recorders.get(node)
    if found is None or found.zlmdb_known is not known:
        found = trace.recorders[node] = Recorder(trace, node, known)
    return found


def _marked(recorder: Recorder, how: Optional[str], frame: FrameType) -> Optional[str]:
    return None if isinstance(recorder.zlmdb_node, Constant) else marked(recorder, how, frame)


def _member(trace: Trace, node: Node, known: Known) -> Optional[Any]:
    if known.cls is bool:
        return trace.truth(node)
    if known.cls is None:
        return trace.block(f"it asks what {node!r} is, of which the type is not known")
    if is_enum(known):
        cls: Any = known.cls
        members: list[Any] = list(cls)
        if not members or len(members) > _SMALL or not is_bare_enum(cls):
            return trace.block(f"it asks which member {node!r} is, of many or with methods")
        for member in members[:-1]:
            equal = trace.nodes.make(Compare, "==", node, trace.nodes.constant(member), False, BOOL)
            if trace.truth(equal):
                return member
        return members[-1]
    return None


def concrete(recorder: Recorder, what: str, *handled: type[Any]) -> Any:
    """The value of *recorder* where captured values alone decide it. Python wants it for *what*.

    *handled*: types that ``"%s" % x`` and ``"%d" % x`` handle in another way than *what* does.
    """
    node = recorder.zlmdb_node
    if not node.settled:
        recorder.zlmdb_trace.block(f"{what} of {node!r}")
    found = recorder.zlmdb_trace.concrete(node)
    return recorder.zlmdb_trace.block(f"{what} of {node!r}") if isinstance(found, handled) else found


def always_true(known: Known) -> bool:
    """Whether everything of which this is known is true where Python asks."""
    cls = known.cls
    return cls is not None and not known.optional and not hasattr(cls, "__bool__") and not hasattr(cls, "__len__")


def applied(
    trace: Trace, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], known: Known, raises: bool = True
) -> Any:
    """What the pure *function* gives for arguments of which some are recorded."""
    values = [*args, *kwargs.values()]
    nodes = tuple([node_of(trace, value) for value in values])
    constant = trace.nodes.constant(function)
    return recorded(trace, trace.nodes.make(Apply, constant, nodes, tuple(kwargs), raises, known))


_JOINING = {"&": "and", "|": "or"}


def combined(trace: Trace, sign: str, left: Any, right: Any) -> Any:
    """What arithmetic of *left* and *right* gives."""
    one, two = node_of(trace, left), node_of(trace, right)
    pair = {one.known.cls, two.known.cls}
    if sign in _JOINING and pair.issubset(PLAIN) and not pair <= {int, bool}:
        trace.refuse(
            f"{one!r} {sign} {two!r}: {sign} joins whole numbers, and comes before a comparison; between conditions, "
            f"write `{_JOINING[sign]}`"
        )
    known, raises = _result(sign, one.known.required, two.known.required)
    if known is INT and isinstance(two, Constant) and two.value:  # a divisor that is not 0
        raises = False
    return recorded(trace, trace.nodes.make(Binary, sign, one, two, raises, known))


def _result(sign: str, left: Known, right: Known) -> tuple[Known, bool]:
    """What is known of the result of arithmetic, and whether it may raise."""
    pair = {left.cls, right.cls}
    if sign in "&|^" and pair == {bool}:
        return BOOL, False
    if pair <= {int, bool} and sign in ("+", "-", "*", "&", "|", "^"):
        return INT, False
    if pair <= {int, bool} and sign in ("//", "%"):
        return INT, True
    if pair <= {int, bool, float} and sign in ("+", "-", "*"):
        return FLOAT, int in pair  # an int may be too large for a float
    if pair == {str} and sign == "+":
        return STR, False
    if left.cls is str and sign == "%":
        return STR, True
    alike = left.cls is right.cls and left.cls in NUMBERS and left.cls is not bool
    return left if alike else SOMETHING, True


_UNSIGNED = {str, bytes, date, datetime, time}
"""Types of which values are sorted, and have no negative."""


def signed(recorder: Recorder, sign: str) -> Any:
    """What a sign before *recorder* gives."""
    trace, known = recorder.zlmdb_trace, recorder.zlmdb_known
    if known.cls in _UNSIGNED and not known.optional:
        trace.refuse(f"{sign}{recorder.zlmdb_node!r}: a {typename(known.cls)} has no sign; write desc(...) in order_by")
    if sign == "~" and known.cls is bool and not known.optional:
        trace.refuse(f"~{recorder.zlmdb_node!r}: ~ of a truth value is -1 or -2, which are both true; write `not ...`")
    raises = known.cls not in (int, float, bool) or (sign == "~" and known.cls is float)
    return recorded(trace, trace.nodes.make(Unary, sign, recorder.zlmdb_node, raises, _sign(known)))


def _sign(known: Known) -> Known:
    return INT if known.cls is bool else known
