"""The order of records: `desc`, and sorting by what a function gives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional, Protocol, cast

from ..typeargs import is_uuid

if TYPE_CHECKING:
    from .following import Followed


class Ordered(Protocol):
    """What can be sorted."""

    def __lt__(self, other: Any, /) -> bool: ...


class Descending:
    """A value that sorts in descending order. Made by `desc`."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: Any, /) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"desc({self.value!r})"


def desc(value: Optional[Ordered], /) -> Descending:
    """*value*, in descending order: ``order_by(lambda b: (desc(b.price), b.title))``.

    Records that are equal in it stay in the order of their keys. ``reverse=True`` reverses the order of these, too.
    None has no order, which checkers do not report: leave out such records, ``where(lambda b: b.price is not None)``.
    """
    return Descending(value)


_first = itemgetter(0)


def checked(rows: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """*rows*, which begin with what they are sorted by. Raises ValueError for what has no order: NaN."""
    for row in rows:
        key = row[0]
        if not (key == key if type(key) is float else _has_order(key)):  # most are floats, and need no call
            raise ValueError(f"order_by: {key!r} has no order: leave such records out by where(), or give another key")
        yield row


def _has_order(key: Any) -> bool:
    if isinstance(key, (tuple, list)):  # these are equal to themselves, whatever they hold
        parts = cast("Sequence[Any]", key)
        return all(map(_has_order, parts))
    if type(key) is Descending:
        return _has_order(key.value)
    return bool(key == key)


def first_of(pairs: Iterable[tuple[Any, Any]], count: Optional[int], *, backwards: bool) -> Iterator[tuple[Any, Any]]:
    """The first *count* of *pairs*, all for None, sorted by their first parts; what is equal stays as it comes.

    *backwards*: the greatest first. A count keeps no more than so many pairs in memory.
    """
    try:
        if count is None:
            return _all_sorted(pairs, backwards)
        import heapq  # late: most programs sort by an index, or not at all

        return iter((heapq.nlargest if backwards else heapq.nsmallest)(count, pairs, key=_first))
    except TypeError as error:
        refuse_unordered(error, "order_by")
        raise


def _all_sorted(pairs: Iterable[tuple[Any, Any]], backwards: bool) -> Iterator[tuple[Any, Any]]:
    """All of *pairs*, sorted. None is kept: the garbage collector would look at each of so many again and again."""
    keys: list[Any] = []
    rows: list[Any] = []
    add_key, add_row = keys.append, rows.append
    for key, row in pairs:
        add_key(key)
        add_row(row)
    places = sorted(range(len(keys)), key=keys.__getitem__, reverse=backwards)
    return ((keys[place], rows[place]) for place in places)


def refuse_unordered(error: TypeError, method: str) -> None:
    """Raise what to do if *error* is that two values have no order, and not of a function that the program gave."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not re.fullmatch(_COMPARING, trace.tb_frame.f_globals.get("__name__", "")):
        return
    advice = "give a function whose results can be compared with each other"
    if method in ("sum", "mean"):
        advice = "give a function that returns numbers; leave out None by where(lambda r: r.field is not None)"
        if "timedelta" in str(error):
            advice = "give a function that returns numbers, as lambda r: r.field.total_seconds()"
    elif "NoneType" in str(error):
        advice = "leave out the records with None by where(lambda r: r.field is not None)"
        if method == "order_by":
            advice += ", or say where they come: order_by(lambda r: (r.field is None, r.field or 0))"
    raise TypeError(f"{method}: {error}: {advice}") from error


_COMPARING = r"heapq|zlmdb\.query\.(ordering|reads|sums)|zlmdb\.tables\.aggregated"
"""The modules in which values are compared and added."""


_MOST = 1000
"""Rows that `best_of` keeps at most: each better one takes a place in a list."""


def bounded(order: Optional[Followed], count: int) -> bool:
    """Whether the first *count* in this order are found by `best_of`: they are few, and any two compare."""
    if order is None or not 0 < count <= _MOST:
        return False
    from datetime import date, timedelta  # late: `import zlmdb` needs neither, and it is a twenty-fifth of its time

    known = order.node.known
    compared = (bool, int, float, str, bytes, date, timedelta)  # any two values of one of these can be
    return (known.cls in compared or is_uuid(known.cls)) and not known.optional


def best_of(
    rows: Iterable[tuple[Any, ...]], count: int, *, backwards: bool, bound: list[Any]
) -> Iterator[tuple[Any, ...]]:  # fmt: skip
    """As `first_of`. Once there are *count*, ``bound[0]`` is the sort key of the last one; only better rows need come.

    Keys that are neither less nor greater than each other are equal.
    """
    from bisect import insort  # late, as above

    kept: list[tuple[Any, int, tuple[Any, ...]]] = []
    step, worst = (-1, 0) if backwards else (1, -1)  # of equal ones the first to come is the better one
    number = 0
    for row in rows:
        number += step
        if len(kept) == count:
            top = kept[worst][0]
            if not (top < row[0] if backwards else row[0] < top):
                continue
            del kept[worst]
        insort(kept, (row[0], number, row))
        if len(kept) == count:
            bound[0] = kept[worst][0]
    if backwards:
        kept.reverse()
    for _, _, row in kept:
        yield row


def sliced(rows: Iterator[Any], skip: int, limit: Optional[int]) -> Iterator[Any]:
    """*limit* of *rows* after the first *skip*."""
    if skip == 0 and limit is None:
        return rows
    return islice(rows, skip, None if limit is None else skip + limit)
