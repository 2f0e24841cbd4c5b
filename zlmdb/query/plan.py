"""Which index answers a query: conditions and facts about indexes in, a plan out. No table is read here.

What is read through an index may be more than what matches, and never less: every condition is asked again of the
record. So a plan only decides the time that a query takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Optional

from ..namedtuples import NamedTuple
from .accesses import Access, IndexFacts, accesses, order_access
from .following import Node, calls
from .inorder import SHARE as SHARE
from .inorder import most_entries
from .terms import CAP, Asking, Subject, cases, conjuncts

SMALL = 20
"""Records of a table up to which any index is as good as reading it all."""

DEEP = 4
"""How often cases are looked for in the cases of a condition: each part of a compared tuple has some."""

_MOST_KEPT = 256
_FIRST_STEP = 16


class Choice(NamedTuple):
    """What the planner chose: ranges to read and sort, or one index that gives the *order*, or neither.

    *many*: it was not counted how many entries there are, so it may still be better to read all records. *parts*: so
    many parts of the sort key does *order* have, and what is equal in these has to be sorted; 0 for all of them.
    """

    accesses: tuple[Access, ...] = ()
    order: Optional[Access] = None
    rejected: tuple[tuple[Access, str], ...] = ()
    many: bool = False
    parts: int = 0


Kept = dict[tuple[tuple[Node, int], ...], list[Access]]
"""Accesses that were found for conditions, by these and the numbers of the functions that they are of."""

Measure = Callable[[Access, int], Optional[int]]
"""How many entries an access has, counted up to a number; None where its values cannot be in the index."""


class Question:
    """What is planned: conditions, indexes, how many records there are, the order wanted and the limit.

    *tied*: few rows are wanted: an index gives an order, too, if what is equal in it has to be sorted. *tried*: whether
    enough of its first records fit other conditions will be tried. *soon*: the first row is wanted soon: no more than
    `CAP` entries of an index are counted, and *many* becomes true where that is not enough. *hasty*: nobody asks how
    many entries the other indexes have, which are not counted further than the best one.
    *rejected* are the indexes that will not be used, and why not. *kept*, if given, has the accesses that these indexes
    offer to conditions which came before, and gets those of new ones.
    """

    __slots__ = (
        "askings", "hasty", "indexes", "kept", "limit", "many", "order", "rejected", "soon", "tied", "total", "tried",
    )  # fmt: skip

    def __init__(
        self, askings: Sequence[Asking], indexes: Sequence[IndexFacts], total: int,
        order: Optional[tuple[Subject, ...]] = None, limit: Optional[int] = None, kept: Optional[Kept] = None, *,
        tied: bool = False, tried: bool = False, soon: bool = False, hasty: bool = False,
    ) -> None:  # fmt: skip
        self.kept, self.tied, self.tried, self.soon, self.hasty = kept, tied, tried, soon, hasty
        self.many = False
        self.askings, self.indexes, self.total, self.order, self.limit = askings, indexes, total, order, limit
        self.rejected: list[tuple[Access, str]] = []

    def accesses(self, parts: Sequence[Asking]) -> list[Access]:
        """As `accesses`, for the values that are captured now."""
        if self.kept is None:
            return accesses(parts, self.indexes, self.parts)
        # Whether a partial index may be used depends on the values that a query compares with.
        partial = [index for index in self.indexes if index.where]
        found = self._kept_accesses(parts, self.kept, [index for index in self.indexes if not index.where])
        if partial:
            found.extend(accesses(parts, partial, self.parts))
            found.sort(key=lambda one: one.rank)
        return found

    def _kept_accesses(self, parts: Sequence[Asking], kept: Kept, indexes: Sequence[IndexFacts]) -> list[Access]:
        key = tuple([(part.node, part.number) for part in parts])
        known = kept.get(key)
        if known is not None:
            found = [one.renewed(self.askings) for one in known]
            if None not in found:
                return [one for one in found if one is not None]
        made = accesses(parts, indexes)
        if known is None:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = made[:]
        return made

    def parts(self) -> list[Asking]:
        """Conditions that all have to hold."""
        return [asking.of(node) for asking in self.askings for node in conjuncts(asking.node)]


def choose(question: Question, measure: Measure) -> Choice:
    """The plan for *question*; *measure* counts entries."""
    order = _order_alone(question, measure)
    if order is not None:
        return Choice((), order)
    found = _ways(question.parts(), question, measure, DEEP) or ()  # none to read all records
    order = _order(question, found, measure)
    if order is not None:
        return Choice((), order, tuple([one for one in question.rejected if one[0].facts is not order.facts]))
    return Choice(found, None, tuple(question.rejected), bool(found) and question.many)


def _order_alone(question: Question, measure: Measure) -> Optional[Access]:
    """The index that has exactly what is asked for in the order: no more of it is read than is wanted."""
    parts = question.parts()
    for index in question.indexes if question.order is not None and question.tied and parts else ():
        access = order_access(index, question.order or (), parts, tied=True)
        if access is not None and access.serves(parts) and measure(access, 0) is not None:
            return access
    return None


def _order(question: Question, found: tuple[Access, ...], measure: Measure) -> Optional[Access]:
    """The index that gives the order, where that is better than to read *found* and sort."""
    if question.order is None:
        return None
    parts = question.parts()
    for index in question.indexes:
        access = order_access(index, question.order, parts, tied=question.tied)
        if access is None or measure(access, 0) is None:
            continue
        if (access.flipped or access.ties) and not question.tried and not access.serves(parts):
            continue  # few may match, and all be looked up
        alike = len(found) == 1 and found[0].facts.name == index.name and found[0].equal == access.equal
        if not found or (alike and found[0].members is None):
            return access
        many = question.limit is not None and all([one.rank > 0 for one in found])
        if many and sum([measure(one, CAP) or 0 for one in found]) >= CAP:
            return access
    return None


def _ways(parts: Sequence[Asking], question: Question, measure: Measure, deep: int) -> Optional[tuple[Access, ...]]:
    """The ranges that have all that *parts* want: of one index, or of one for each case. None if there are none."""
    one = _best(parts, question, measure)
    if one is not None:
        return (one,)
    for each in split(parts, deep):
        ways = [_ways(case, question, measure, deep - 1) for case in each]
        if None not in ways:
            return tuple([access for few in ways if few is not None for access in few])
    return None


def split(parts: Sequence[Asking], deep: int) -> Iterator[list[list[Asking]]]:
    """The cases of each of *parts* that has some, *deep* times at most; within a case with what else holds there."""
    for part in parts if deep else ():
        others = [one for one in parts if one is not part] if deep < DEEP else []
        found = [[*map(part.of, case), *others] for case in cases(part.node)]
        if found:
            yield found


def _best(parts: Sequence[Asking], question: Question, measure: Measure) -> Optional[Access]:
    """The best access that finds what all of *parts* want."""
    found = question.accesses(parts)
    if not found:
        return None
    if found[0].rank == 0 and measure(found[0], 0) is not None:
        return found[0]
    most = most_of(question.total)
    some = min(CAP, most) if len(found) > 1 or question.soon else most
    counted: list[tuple[int, int, Access]] = []
    for number, (access, entries) in enumerate(zip(found, _measured(found, measure, some, hasty=question.hasty))):
        if entries is None:
            question.rejected.append((access, "it cannot hold such a value"))
        elif not _is_too_many(access, entries, question):
            counted.append((entries, number, access))
    counted.sort()  # no two have the same number
    best: Optional[Access] = None
    for entries, _, access in counted:
        if best is not None:
            question.rejected.append((access, f"{entries:,}{' or more' if entries >= some else ''} entries"))
        elif some <= entries < most and not access.is_range_of_keys:
            if question.soon:
                question.many, best = True, access
            elif not _is_too_many(access, measure(access, most) or 0, question):
                best = access
        else:
            best = access
    return best


def _measured(found: list[Access], measure: Measure, most: int, *, hasty: bool) -> list[Optional[int]]:
    """What *measure* says of *found*, at most *most*; *hasty*: in steps, up to the first in which one of them ends."""
    step = _FIRST_STEP if hasty and len(found) > 1 else most
    while True:
        entries = [measure(access, min(step, most)) for access in found]
        if step >= most or any([one is not None and one < step for one in entries]):
            return entries
        step *= 4


def _is_too_many(access: Access, entries: int, question: Question) -> bool:
    """Whether all records are read faster than *entries* of *access*, which is rejected then."""
    if entries < most_of(question.total) or question.total <= SMALL or access.is_range_of_keys:
        return False
    why = f"{entries:,} or more of {question.total:,} records, all are read faster"
    question.rejected.append((access, why))
    return True


def most_of(total: int) -> int:
    """From how many entries of an index on all *total* records are read faster."""
    return CAP if total <= SMALL else most_entries(total)


def reasons(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Why the functions are called for records."""
    return tuple(dict.fromkeys([reason for node in nodes for reason in calls(node)]))
