"""Terms that follow from a condition on a part of what a field is: ``b.day.year == 2026``, ``b.at.date() == day``.

The index has the whole value, so such a condition is a range of it. Conditions on the year and on the month are one
range. A text of which the first letters are compared, ``b.title[:2] == "Su"``, begins with these. A tuple of fields
that is one of several tuples, ``(b.country, b.year) in pairs``, says of each field what it is one of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any, Optional

from .following import Node
from .following.known import PLAIN, SOMETHING
from .following.nodes import Constant
from .following.operations import Apply, Attribute, Compare, Display, Item, Method, Slice
from .terms import CAP, FLIPPED, MEMBERS, NOTHING, Asking, Origin, Subject, Term, members_of

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
    if operator == "==" and (begins := _beginning(asking, left, right) or _beginning(asking, right, left)):
        return [begins]
    edges = _edges_of(left)
    if edges is None:
        edges, operator, left, right = _edges_of(right), FLIPPED[operator], right, left
    return [] if edges is None else list(_of_part(asking, edges, operator, left, right))


def months(askings: Sequence[Asking]) -> list[Term]:
    """What several of *askings* say of a date together: ``b.day.year == y and b.day.month == m``, or also the day."""
    asked: dict[Any, dict[str, tuple[Asking, Node]]] = {}
    for one in askings:
        node = one.node
        if not isinstance(node, Compare) or node.operator != "==":
            continue
        for part, value in ((node.left, node.right), (node.right, node.left)):
            if isinstance(part, Attribute) and part.name in _PARTS and (subject := one.subject(part.holder)):
                cls = part.holder.known.required.cls
                if cls in _MONTHS and value.size <= _LARGEST:
                    asked.setdefault((subject, one.number, cls), {}).setdefault(part.name, (one, value))
    return [term for (subject, _, cls), parts in asked.items() for term in _month(subject, cls, parts)]


def _month(subject: Subject, cls: Any, parts: Mapping[str, tuple[Asking, Node]]) -> Iterator[Term]:
    """What all of *parts* say of *subject*, a date or a moment.

    Both bounds come before those of other conditions, so an index uses both of them or none.
    """
    if "year" not in parts or "month" not in parts:
        return
    asking = parts["year"][0]
    first, *others = [parts[name][1] for name in _PARTS if name in parts]
    for bound, edge, part in ((">=", _FIRST, "year"), ("<=", _LAST, "month")):
        origin = Apply(Constant(_MONTHS[cls][edge], SOMETHING), (first, *others), (), True, SOMETHING)
        found = asking.value(origin)
        if found is NOTHING:
            return
        yield Term(subject, bound, found, parts[part][0].node, Origin(asking.number, origin), wide=cls is datetime)


def _beginning(asking: Asking, part: Node, value: Node) -> Optional[Term]:
    """What *asking* says of a text if it compares *part*, the first letters of it, with *value*.

    The text begins with that, however many letters these are; it may be longer than so many, or shorter.
    """
    if not isinstance(part, Item) or not isinstance(part.key, Slice) or part.key.risky:
        return None
    start, _, step = part.key.bounds
    if step is not None or not (start is None or (isinstance(start, Constant) and start.value == 0)):
        return None
    subject, found = asking.subject(part.holder), asking.value(value)
    if not subject or type(found) not in (str, bytes) or part.holder.known.required.cls is not type(found):
        return None
    return Term(subject, "startswith", found, asking.node, Origin(asking.number, value), wide=True)


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
_PARTS = ("year", "month", "day")


def _first_of(year: Any, month: Any, day: Any = 1) -> date:
    return date(_year(year), _year(month), _year(day))


def _last_of(year: Any, month: Any, day: Any = None) -> date:
    if day is not None:
        return _first_of(year, month, day)
    from calendar import monthrange  # late: few need it

    return _first_of(year, month, monthrange(_year(year), _year(month))[1])


def _first_moment_of(year: Any, month: Any, day: Any = 1) -> datetime:
    return _day(_first_of(year, month, day)) - _DAY


def _last_moment_of(year: Any, month: Any, day: Any = None) -> datetime:
    return _day(_last_of(year, month, day)) + 2 * _DAY


_MONTHS: Mapping[Any, tuple[Callable[..., date], Callable[..., date]]] = {
    date: (_first_of, _last_of),
    datetime: (_first_moment_of, _last_moment_of),
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
