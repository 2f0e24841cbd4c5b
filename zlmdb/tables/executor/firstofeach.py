"""The first rows in an order, of the records of several keys: ``b.author in followed``, the newest ten of them.

An index of the author and of what sorts has the records of each author in order. So the first rows are among the first
of each one, and only these are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional

from ...query.accesses import Access, order_access, ordered_by, sort_values
from ...query.cursors import Position
from ...query.following import Followed
from ...query.plan import SHARE
from ...query.terms import CAP, DESCENDING, KEY, NEGATIVE, Asking, Subject
from ..indexstorage import BoundIndex
from ..keyrange import count_in
from .accessranges import Find, Range, finder, ranges_of
from .foundkeys import first_keys, tied_keys
from .keylookups import total_of

if TYPE_CHECKING:
    from ..selection import Selection
    from .execution import Running

_MOST = 10_000
"""Entries that are read at most, or a part of the table; of more it is as good to read all."""


class FirstOfEach:
    """The records of each of some ranges of the index *bound*, as far as they may be among the first of all of them.

    *find* gives the ranges, those of *access*. *inner* is the order within one of them: an access of the parts of the
    index behind the one that has several values. It is None if all that is sorted by is the same there.
    """

    __slots__ = ("_access", "_bound", "_find", "_inner")

    def __init__(self, find: Find, bound: BoundIndex, access: Access, inner: Optional[Access]) -> None:
        self._find, self._bound, self._access, self._inner = find, bound, access, inner

    def keys(
        self, selection: Selection[Any, Any], stop: int, begin: Optional[Position] = None
    ) -> Optional[list[bytes]]:  # fmt: skip
        """The engine's keys of the first *stop* records of each range; None if these are many, or others are asked.

        Of those behind *begin*, if that is given; some that are equal to it in the order may be there, too.
        """
        if selection._reverse or not selection._is_all():
            return None
        query, inner = selection._query, self._inner
        backwards = query.backwards is not (inner is not None and inner.flipped)
        if begin is not None:
            found = self._behind(selection, begin, stop, backwards)
        else:
            ranges = self._find(query.where)
            found = None if ranges is None else [(one, stop) for one in ranges]
        if not found or sum([most for _, most in found]) > max(_MOST, total_of(selection._table) // SHARE):
            return None
        try:
            return [key for within, most in found for key in self._first(selection, within, most, backwards)]
        except LookupError:  # too many are equal in the order
            return None

    def _first(self, selection: Selection[Any, Any], within: Range, most: int, backwards: bool) -> list[bytes]:
        """As `keys`, of one range."""
        table, bound, inner = selection._table, self._bound, self._inner
        if inner is None or not inner.ties:
            return first_keys(table, bound.handle, bound.storage.tail, within, backwards, most)
        ties = len(self._access.equal) + 1 + inner.ties
        with closing(tied_keys(table, bound, within, ties, backwards, selection._query.backwards, CAP)) as keys:
            return list(islice(keys, most))

    def _behind(
        self, selection: Selection[Any, Any], begin: Position, stop: int, backwards: bool
    ) -> Optional[list[tuple[Range, int]]]:  # fmt: skip
        """Of each range what is not before *begin* in the order, and how many of its entries to read for *stop* rows.

        None where that is not known.
        """
        access, inner = self._access.renewed(selection._query.where), self._inner
        if access is None or inner is None or len(sort_values(begin.key)) != len(inner.signs):
            return None
        index, cursor = self._bound.storage, selection._table._raw.cursor(self._bound.handle)
        found: list[tuple[Range, int]] = []
        try:
            for member in access.members or ():
                one = access._replace(equal=(*access.equal, member), members=None, signs=inner.signs)
                behind = one.from_key(begin.key, backwards=backwards)
                bound = behind.lower or behind.upper
                if bound is None:
                    return None
                (same,) = ranges_of(index, behind._replace(lower=bound, upper=bound))
                (within,) = ranges_of(index, behind)
                found.append((within, stop + count_in(cursor, *same)))
        finally:
            cursor.close()
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
            return FirstOfEach(finder(bound.storage, access, where), bound, access, *way)
    return None


def _within(
    access: Access, subjects: Sequence[Subject], parts: Sequence[Asking]
) -> Optional[tuple[Optional[Access]]]:  # fmt: skip
    """The order of *subjects* among the entries of one of the keys of *access*, as `FirstOfEach` takes it.

    None if these are in another order.
    """
    facts, count = access.facts, len(access.equal) + 1
    same = [part.subject for part in facts.parts[:count]]
    rest = list(subjects)
    while rest and (rest[0][1:] if rest[0][0] in (DESCENDING, NEGATIVE) else rest[0]) in same:
        del rest[0]
    if not rest:
        return (None,) if count == len(facts.parts) else None
    inner = order_access(facts._replace(parts=facts.parts[count:]), tuple(rest), parts, tied=True)
    return None if inner is None else (inner,)
