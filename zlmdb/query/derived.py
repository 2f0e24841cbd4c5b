"""Terms that follow from a condition on a part of what a field is: ``b.day.year == 2026``, ``b.at.date() == day``.

The index has the whole value, so such a condition is a range of it. A tuple of fields that is one of several tuples,
``(b.country, b.year) in pairs``, says of each field what it is one of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any, Optional

from .following import Node
from .following.known import PLAIN, SOMETHING
from .following.nodes import Constant
from .following.operations import Apply, Attribute, Compare, Display, Method
from .terms import CAP, FLIPPED, MEMBERS, NOTHING, Asking, Origin, Term, members_of

_LARGEST = 100
"""Nodes of a compared value up to which something is computed of it."""


def derived_terms(asking: Asking) -> list[Term]:
    """What *asking* says of fields of which it compares a part, or a tuple."""
    node = asking.node
    if not isinstance(node, Compare):
        return []
    operator, left, right = node.operator, node.left, node.right
    if operator == "in":
        return list(_of_tuple(asking, left, right)) if isinstance(left, Display) and left.kind is tuple else []
    edges = _edges_of(left)
    if edges is None:
        edges, operator, left, right = _edges_of(right), FLIPPED[operator], right, left
    return [] if edges is None else list(_of_part(asking, edges, operator, left, right))


_Edge = Callable[[Any], Any]
_Edges = tuple[_Edge, _Edge]


def _of_part(asking: Asking, edges: _Edges, operator: str, part: Any, value: Node) -> Iterator[Term]:
    """What *asking* says of the field that has *part*, which it compares with *value*."""
    subject = asking.subject(part.holder)
    if not subject or value.size > _LARGEST:
        return
    wide = part.holder.known.required.cls is datetime
    bounds = _BOUNDS.get(_WIDER.get(operator, operator) if wide else operator, ())
    for bound, edge in bounds:
        origin = _computed(edges[edge], value)
        found = asking.value(origin)
        if found is not NOTHING:
            half = len(bounds) > 1
            yield Term(subject, bound, found, asking.node, Origin(asking.number, origin), wide=wide, half=half)


_FIRST, _LAST = 0, 1

_BOUNDS: Mapping[str, Sequence[tuple[str, int]]] = {
    "==": ((">=", _FIRST), ("<=", _LAST)),
    "<": (("<", _FIRST),),
    "<=": (("<=", _LAST),),
    ">": ((">", _LAST),),
    ">=": ((">=", _FIRST),),
}
"""By what a part is compared with: the bounds of the whole, and which edge of those that have this part they are."""

_WIDER = {"<": "<=", ">": ">="}
"""Of moments: those of one day overlap with those of the next one, in other time zones."""


def _edges_of(node: Node) -> Optional[_Edges]:
    """What gives the first and the last value that has a given part, if *node* is such a part of something."""
    if isinstance(node, Attribute) and node.name == "year":
        return _YEARS.get(node.holder.known.required.cls)
    if isinstance(node, Method) and node.name == "date" and not node.arguments and not node.names:
        return _DAYS if node.holder.known.required.cls is datetime else None
    return None


def _year(year: Any) -> int:
    if type(year) is not int:
        raise TypeError
    return year


def _day(day: Any) -> datetime:
    if type(day) is not date:
        raise TypeError
    return datetime(day.year, day.month, day.day, tzinfo=timezone.utc)


_DAY = timedelta(days=1)  # a time zone is less than that before or behind UTC

_YEARS: Mapping[Any, _Edges] = {
    date: (lambda year: date(_year(year), 1, 1), lambda year: date(_year(year), 12, 31)),
    datetime: (
        lambda year: _day(date(_year(year), 1, 1)) - _DAY,
        lambda year: _day(date(_year(year), 12, 31)) + 2 * _DAY,
    ),
}
_DAYS: _Edges = (lambda day: _day(day) - _DAY, lambda day: _day(day) + 2 * _DAY)


def _of_tuple(asking: Asking, fields: Display, tuples: Node) -> Iterator[Term]:
    """What *asking*, that *fields* are one of *tuples*, says of each of them."""
    if tuples.size > _LARGEST or fields.risky or not all([one.known.required.cls in PLAIN for one in fields.elements]):
        return  # to look for it may raise
    for number, field in enumerate(fields.elements):
        subject = asking.subject(field)
        if not subject:
            continue
        origin = _computed(_NTH[number], tuples, len(fields.elements)) if number < len(_NTH) else None
        found = NOTHING if origin is None else members_of(origin, asking.parameters, still=asking.still)
        if origin is None or found is NOTHING:
            return
        yield Term(subject, "in", found, asking.node, Origin(asking.number, origin), wide=True)


def _nth(number: int) -> Callable[[Any, int], tuple[Any, ...]]:
    """The function of tuples and their length that gives what their elements with this *number* are."""

    def nth(tuples: Any, length: int) -> tuple[Any, ...]:
        if type(tuples) not in MEMBERS or len(tuples) > CAP or not all([type(one) is tuple for one in tuples]):
            raise TypeError
        return tuple(dict.fromkeys([one[number] for one in tuples if len(one) == length]))

    return nth


_NTH = [_nth(number) for number in range(4)]


def _computed(function: Callable[..., Any], value: Node, *more: Any) -> Node:
    """The expression of what *function* makes of *value*. It raises for a value that is none of those it is for."""
    arguments = (value, *[Constant(one, SOMETHING) for one in more])
    return Apply(Constant(function, SOMETHING), arguments, (), True, SOMETHING)
