"""From what the function holds back to expressions: recorders, captured things, constants, and displays of these."""

from __future__ import annotations

import sys
from datetime import datetime, time, timezone
from fractions import Fraction
from typing import Any, cast

from .known import CONTAINERS, LIST, PLAIN, SOMETHING, Known, kind_of
from .nodes import Argument, Node, Variable
from .operations import Attribute, Display, Item, Slice
from .trace import Trace

_ALSO_PLAIN = (Fraction, timezone, range)

MARK = "\ue000"
"""Begins and ends what stands in a text for a captured value: see `formatted`. Unicode leaves it to programs."""


class Proxy:
    """What a function that is followed sees in place of something that it captured and that is no plain value."""

    __slots__ = ()

    def zlmdb_value(self) -> Node:
        """It as a value."""
        raise NotImplementedError

    def zlmdb_original(self) -> Any:
        """The thing itself."""
        raise NotImplementedError


def node_of(trace: Trace, value: Any) -> Node:
    """The expression of *value*, which the function made or holds. Ends the way where there is none."""
    kind = kind_of(value)
    if getattr(kind, "zlmdb_node", None) is not None and not issubclass(kind, Proxy):
        if value.zlmdb_trace is not trace:
            trace.block("a recorder of another query")
        return cast("Node", value.zlmdb_node)
    if kind is str and MARK in value and not trace.texts_as_they_are:
        trace.keep_texts()
    if kind in PLAIN or value is ... or is_constant(value):
        return trace.nodes.constant(value)
    if isinstance(value, Proxy):
        return value.zlmdb_value()
    if kind is tuple:
        return _display(trace, tuple, value, Known.of_value(()))
    if kind is list:
        return _display(trace, list, value, LIST)
    if kind is dict:
        flat = [part for pair in value.items() for part in pair]
        return _display(trace, dict, flat, SOMETHING)
    if kind is slice:
        bounds = [None if one is None else node_of(trace, one) for one in (value.start, value.stop, value.step)]
        return trace.nodes.make(Slice, tuple(bounds), SOMETHING)
    return trace.block(f"a {kind.__name__} that is made while the function runs")


def _display(trace: Trace, kind: type[Any], values: Any, known: Known) -> Node:
    return trace.nodes.make(Display, kind, tuple([node_of(trace, value) for value in values]), known)


def is_constant(value: Any) -> bool:
    """Whether *value* is plain and cannot change."""
    kind = kind_of(value)
    if kind in PLAIN or value is None or kind in _ALSO_PLAIN:
        return True
    if kind is tuple or kind is frozenset:
        return all([is_constant(one) for one in value])
    return hasattr(kind, "__members__")


def has_fixed_zone(value: Any) -> bool:
    """Whether *value* is no time in a zone that changes its clocks, so that some times come twice."""
    return kind_of(value) not in (datetime, time) or isinstance(value.tzinfo, (type(None), timezone))


def has_plain_zone(value: Any) -> bool:
    """Whether *value* is no time in a zone whose rules may change. Those of a `zoneinfo.ZoneInfo` do not."""
    if has_fixed_zone(value):
        return True
    return kind_of(value) is datetime and type(value.tzinfo) is getattr(sys.modules.get("zoneinfo"), "ZoneInfo", None)


def holds_recorded(value: Any) -> bool:
    """Whether *value* is something that is recorded or captured, or a display that holds such."""
    kind = kind_of(value)
    if kind in PLAIN or value is None:
        return False
    if hasattr(kind, "zlmdb_node") or isinstance(value, Proxy):
        return True
    if kind is dict:
        return any([holds_recorded(one) for pair in value.items() for one in pair])
    return kind in CONTAINERS and any([holds_recorded(one) for one in value])


def of_the_record(node: Node) -> bool:
    """Whether *node* is a part of the record, so that changing it would change the record."""
    while isinstance(node, (Attribute, Item)):
        node = node.holder
    return isinstance(node, (Argument, Variable))
