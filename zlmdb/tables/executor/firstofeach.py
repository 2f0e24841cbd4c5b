"""The first rows in an order, of the records of several keys: ``b.author in followed``, the newest ten of them.

An index of the author and of what sorts has the records of each author in order. So the first rows are among the first
of each one, and only these are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional

from ...query.accesses import Access, order_access, ordered_by
from ...query.following import Followed
from ...query.terms import CAP, DESCENDING, KEY, NEGATIVE, Asking, Subject
from ..indexstorage import BoundIndex
from .accessranges import Find, finder
from .foundkeys import first_keys, tied_keys

if TYPE_CHECKING:
    from ..selection import Selection
    from .execution import Running

_MOST = 10_000
"""Entries that are read at most; of more it is as good to read all."""


class FirstOfEach:
    """The records of each of some ranges of the index *bound*, as far as they may be among the first of all of them.

    *find* gives the ranges. What is equal in its first *ties* parts comes in the order of the keys, unless they are 0;
    *flipped*: the index has the order the other way round.
    """

    __slots__ = ("_bound", "_find", "_flipped", "_ties")

    def __init__(self, find: Find, bound: BoundIndex, ties: int, *, flipped: bool) -> None:
        self._find, self._bound, self._ties, self._flipped = find, bound, ties, flipped

    def keys(self, selection: Selection[Any, Any], stop: int) -> Optional[list[bytes]]:
        """The engine's keys of the first *stop* records of each range; None if these are many, or others are asked."""
        if selection._reverse or not selection._is_all():
            return None
        query, table, bound = selection._query, selection._table, self._bound
        ranges = self._find(query.where)
        if not ranges or len(ranges) * stop > _MOST:
            return None
        last = query.backwards
        backwards, tail = last is not self._flipped, bound.storage.tail
        found: list[bytes] = []
        for within in ranges:
            if not self._ties:
                found += first_keys(table, bound.handle, tail, within, backwards, stop)
                continue
            with closing(tied_keys(table, bound, within, self._ties, backwards, last, CAP)) as keys:
                try:
                    found += islice(keys, stop)
                except LookupError:  # too many are equal in the order
                    return None
        return found


def first_of_each(
    where: Sequence[Followed], order: Followed, parts: Sequence[Asking], found: Sequence[Access], running: Running
) -> Optional[FirstOfEach]:  # fmt: skip
    """What reads the first records for which *where*, all of *parts*, is true: by an access of *found* to several keys.

    None if its index does not have the records of each key in *order*.
    """
    subjects = ordered_by(order.node, order.keyed)
    for access in () if subjects is None or () in subjects else found:
        facts = access.facts
        if access.members is None or facts.several or facts.where or facts.name == KEY or not access.serves(parts):
            continue
        bound, way = running.reads.bound(access), _within(access, subjects or (), parts)
        if bound is not None and way is not None:
            ties, flipped = way
            return FirstOfEach(finder(bound.storage, access, where), bound, ties, flipped=flipped)
    return None


def _within(access: Access, subjects: Sequence[Subject], parts: Sequence[Asking]) -> Optional[tuple[int, bool]]:
    """How many parts are equal in what is equal in the order of *subjects*, and whether that is the other way round.

    It is so among the entries of one of the keys of *access*; None if these are in another order.
    """
    facts, count = access.facts, len(access.equal) + 1
    same = [part.subject for part in facts.parts[:count]]
    rest = list(subjects)
    while rest and (rest[0][1:] if rest[0][0] in (DESCENDING, NEGATIVE) else rest[0]) in same:
        del rest[0]
    if not rest:
        return (0, False) if count == len(facts.parts) else None
    inner = order_access(facts._replace(parts=facts.parts[count:]), tuple(rest), parts, tied=True)
    return None if inner is None else (inner.ties and count + inner.ties, inner.flipped)
