"""What a function that is followed calls in place of `len`, `any`, `isinstance` and the like.

Python wants a real number of `len`, and a real iterator for `sum`. These take what is recorded as well, and give what
is recorded then; for everything else they are the originals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Callable

from .generators import each
from .known import BOOL, CONTAINERS, FLOAT, INT, LIST, NUMBERS, PLAIN, SOMETHING, STR, UNKNOWN, Known, kind_of
from .nodeof import Proxy, holds_recorded
from .nodes import Node
from .operations import Apply, Each
from .recorder import Recorder, applied
from .trace import Trace

Own = Callable[..., Any]


def own_len(trace: Trace, value: Any, /) -> Any:
    """How long *value* is."""
    if type(value) is Recorder:
        cls: Any = value.zlmdb_known.cls
        return applied(trace, len, (value,), {}, INT, raises=cls not in CONTAINERS and cls not in (str, bytes))
    return len(value)


def own_isinstance(trace: Trace, value: Any, classes: Any, /) -> Any:
    """Whether *value* is an instance of *classes*, which are seen as captured."""
    real = _classes(trace, classes)
    if type(value) is Recorder:
        trace.current().doubt()
        node = trace.nodes.constant(isinstance)
        arguments: tuple[Node, ...] = (value.zlmdb_node, trace.nodes.constant(real))
        return trace.recorded(trace.nodes.make(Apply, node, arguments, (), False, BOOL))
    if isinstance(value, Proxy):
        return trace.block("isinstance() of something captured")
    return isinstance(value, real)


def _classes(trace: Trace, classes: Any) -> Any:
    if kind_of(classes) is tuple:
        return tuple([_classes(trace, one) for one in classes])
    found = classes.zlmdb_original() if isinstance(classes, Proxy) else classes
    if found is None or type(found) is not type:
        return trace.block("isinstance() of what is no plain class")
    return found


def own_bool(trace: Trace, value: Any = False, /) -> bool:
    """Whether *value* is true."""
    return bool(value)


def own_type(trace: Trace, *args: Any) -> Any:
    """Nothing recorded tells its class."""
    return trace.block("type()")


def own_getattr(trace: Trace, value: Any, name: Any, *default: Any) -> Any:
    """An attribute by its name, which has to be a text."""
    name = str(name)
    if name.startswith("__"):
        return trace.block(f"getattr() of {name}")
    if default and not (type(value) is Recorder and name in value.zlmdb_known.fields()):
        return trace.block("getattr() with a default")
    return getattr(value, name)


def own_replace(trace: Trace, value: Any, /, **changes: Any) -> Any:
    """A dataclass with some fields changed."""
    if type(value) is not Recorder:
        return trace.block("replace() of what is not recorded")
    names = value.zlmdb_known.fields()
    for name in changes:
        if names and name not in names:
            trace.refuse(
                f"replace({value.zlmdb_node!r}, {name}=...): it has no field {name!r}, it has {', '.join(names)}; name "
                f"one of its fields"
            )
    return applied(trace, replace, (value,), changes, value.zlmdb_known)


def _converting(function: Any, known: Known) -> Own:
    def own(trace: Trace, *args: Any, **kwargs: Any) -> Any:
        if holds_recorded(args) or holds_recorded(kwargs):
            return applied(trace, function, args, kwargs, known)
        return function(*args, **kwargs)

    return own


def _collecting(function: Any, known: Known) -> Own:
    """A function of an iterable, which may be a generator expression over something of the record."""

    def own(trace: Trace, *args: Any, **kwargs: Any) -> Any:
        node = each(trace, args[0]) if args else None
        if node is not None:
            return applied(trace, function, (Iterated(node), *args[1:]), kwargs, _collected(known, function, node))
        if len(args) >= 1 and type(args[0]) is Recorder and (len(args) == 1 or function is sum):
            return applied(trace, function, args, kwargs, known, raises=function not in (any, all, list, tuple))
        return function(*args, **kwargs)

    return own


def _collected(known: Known, function: Any, node: Each) -> Known:
    number = function is sum and node.value.known.cls in NUMBERS
    return node.value.known if number and node.value.known.cls is not bool else known


class Iterated(Proxy):
    """A generator expression among the arguments of a function."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def zlmdb_value(self) -> Node:
        return self._node


def own_sum(trace: Trace, values: Any, *start: Any, **kwargs: Any) -> Any:
    """The sum of *values*. Of floats Python adds more than the last digits of each: so it has to add them itself."""
    node = each(trace, values)
    if node is not None or type(values) is Recorder:
        known = SOMETHING if node is None else _collected(SOMETHING, sum, node)
        first = values if node is None else Iterated(node)
        return applied(trace, sum, (first, *start), kwargs, known)
    kept = list(values)
    if holds_recorded(kept):
        return applied(trace, sum, (kept, *start), kwargs, SOMETHING)
    return sum(kept, *start, **kwargs)


def _least(function: Any) -> Own:
    collecting = _collecting(function, UNKNOWN)

    def own(trace: Trace, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 and not kwargs and holds_recorded(args):
            kinds = [one.zlmdb_known if type(one) is Recorder else Known.of_value(one) for one in args]
            alike = kinds[0].cls in PLAIN and all([kind.cls is kinds[0].cls for kind in kinds])
            return applied(trace, function, args, {}, kinds[0] if alike else SOMETHING, raises=not alike)
        return collecting(trace, *args, **kwargs)

    return own


def own_range(trace: Trace, *args: Any) -> Any:
    """Numbers from one to another. ``x in range(9)`` is one question, not nine."""
    if any(type(one) is Recorder and not one.zlmdb_node.settled for one in args):
        return trace.block("range() of something of the record")
    known = SOMETHING.home.known(range)
    kinds = [one.zlmdb_known if type(one) is Recorder else Known.of_value(one) for one in args]
    if holds_recorded(args) and len(args) < 3 and all([kind is INT for kind in kinds]):
        return applied(trace, range, args, {}, known, raises=False)
    return Recorder(trace, trace.nodes.constant(range(*args), known), known)


def own_setattr(trace: Trace, value: Any, name: Any, what: Any, /) -> Any:
    """An assignment by the name of an attribute."""
    if type(value) is Recorder:
        setattr(value, str(name), what)
    return trace.block("setattr()")


STAND_INS: Mapping[Any, Own] = {
    len: own_len,
    isinstance: own_isinstance,
    bool: own_bool,
    type: own_type,
    getattr: own_getattr,
    setattr: own_setattr,
    replace: own_replace,
    range: own_range,
    any: _collecting(any, BOOL),
    all: _collecting(all, BOOL),
    sum: own_sum,
    min: _least(min),
    max: _least(max),
    sorted: _collecting(sorted, LIST),
    list: _collecting(list, LIST),
    tuple: _collecting(tuple, SOMETHING),
    set: _collecting(set, SOMETHING),
    frozenset: _collecting(frozenset, SOMETHING),
    dict: _collecting(dict, SOMETHING),
    int: _converting(int, INT),
    float: _converting(float, FLOAT),
    str: _converting(str, STR),
}
"""By the original function or class."""
