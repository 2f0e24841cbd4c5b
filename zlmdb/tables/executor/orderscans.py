"""Reading the records of a query in the order that an index gives.

What is equal in that order comes in the order of the keys. Where entries do not, because the index is read backwards or
has more parts, the keys of those that are equal are sorted; then no more than these are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...keys import TupleKey
from ...query.accesses import Access, order_access
from ...query.cursors import Position
from ...query.expressionsource import Asked
from ...query.following.known import PLAIN
from ...query.following.operations import Apply, Display, Unary
from ...query.ordering import first_of
from ...query.plan import SHARE, Choice, Question, choose, most_of
from ...query.prepared import Prepared
from ...query.projection import HITS
from ...query.terms import CAP, DESCENDING, NEGATIVE, Subject, conjuncts
from ...query.translated import want_of
from ..indexstorage import BoundIndex
from ..scan import IndexScan, first_within, rows_within
from .accessranges import UNFIT, Range
from .cachedplans import parts_of
from .foundkeys import common_of, first_keys, tied_keys
from .keylookups import PickedScan

if TYPE_CHECKING:
    from ..table import Table
    from .execution import Running


def order_scan(running: Running, access: Access, begin: Optional[Position]) -> Any:
    """The function that begins to read the records of *access* in its order, about from *begin* on, if it is given."""
    reads, selection, table = running.reads, running.selection, running.table
    bound, last = reads.bound(access), running.query.backwards
    within, backwards = _entries(running, access)
    if begin is not None:
        with suppress(*UNFIT):  # of a cursor that nobody gave out
            within = _behind(running, access, within, begin, backwards=backwards)
    if bound is None:
        return selection._with(lower=within[0], upper=within[1], reverse=backwards)._scan
    if access.ties:
        return partial(_tied_scan, table, bound, within, access.ties, backwards, last)
    return partial(IndexScan, table, *within, backwards, bound)


def _behind(running: Running, access: Access, within: Range, begin: Position, *, backwards: bool) -> Range:
    """The part of *within*, the range of *access*, from *begin* on."""
    bound, (lower, upper) = running.reads.bound(access), within
    first, last = running.reads.ranges(access.from_key(begin.key, backwards=backwards))[0]
    lower, upper = max(lower, first), min(upper, last)
    key = None if access.ties else access.whole_key(begin.key)
    if key is None or bound is None or not bound.storage.tail:
        return lower, upper
    whole = isinstance(bound.storage.storage.key, TupleKey)
    entry = bound.storage.exactly(key if whole else key[0])[0] + begin.entry[len(running.storage.prefix) :]
    return (lower, min(upper, entry)) if backwards else (max(lower, entry), upper)


def _entries(running: Running, access: Access) -> tuple[Range, bool]:
    """The range of entries that *access* has in the order of *running*, and whether it is read backwards."""
    return running.reads.ranges(access)[0], running.query.backwards is not access.flipped


def _tied_scan(
    table: Table[Any, Any], bound: BoundIndex, within: Range, ties: int, backwards: bool, last: bool
) -> PickedScan:  # fmt: skip
    """The records of the entries *within* a range of *bound*.

    The entries are read *backwards* or not. Those that are equal in their first *ties* parts come in the order of their
    keys, with *last* the last one first.
    """
    keys = tied_keys(table, bound, within, ties, backwards, last)
    return PickedScan(table, keys, table._storage.lower, table._storage.upper, reverse=False)


def unless_few_fit(running: Running, choice: Choice, question: Question) -> Choice:
    """*choice*; if its index gives the order and few of the records fit, what is best without that."""
    access = choice.order
    why = None if access is None else _too_few_fit(running, access, question.limit, question.total)
    if access is None or why is None:
        return choice
    question.order, question.rejected = None, [(access, why)]
    return choose(question, running.reads.measure)


def _too_few_fit(running: Running, access: Access, limit: Optional[int], total: int) -> Optional[str]:
    """Why reading all records is better than the order of *access*, which does not serve all conditions; else None.

    Its first records tell how many of the others fit, and so how many are read for *limit* rows.
    """
    table, bound, where = running.table, running.reads.bound(access), running.where
    if bound is None or not can_try(running) or access.serves(parts_of(where)):
        return None
    most = min(CAP, total // (4 * SHARE))
    within, backwards = _entries(running, access)
    keys = first_keys(table, bound.handle, bound.storage.tail, within, backwards, most)
    if access.ties and _are_equal(running, bound, access, most):
        return f"its first {most:,} records are equal in the order, all are read faster"
    first = len(keys) if limit is None else min(2 * limit, len(keys))
    fit = _fitting(running, keys[:first])
    if limit is not None and fit < limit:
        fit += _fitting(running, keys[first:])
    if len(keys) < most or (limit is not None and fit >= limit):
        return None
    if fit * 2 >= most if limit is None else fit * total > limit * SHARE * most:
        return None
    return f"{fit:,} of its first {most:,} records fit, all are read faster"


def _are_equal(running: Running, bound: BoundIndex, access: Access, most: int) -> bool:
    """Whether the first *most* entries of *access*, or more, are equal in its order: for one, all would be read."""
    within, backwards = _entries(running, access)
    found = first_within(running.table, bound.handle, within, backwards, most)
    common = common_of(bound.storage, access.ties)
    return 0 < most <= len(found) and common(found[0]) == common(found[-1])


def can_try(running: Running) -> bool:
    """Whether it can be tried how many of the first records in an order fit, before it is chosen."""
    table = running.table
    plain = [one.reading.complete and not one.reading.links for one in running.where]
    return table._steady and all(plain)


def _fitting(running: Running, keys: Sequence[bytes]) -> int:
    """How many of the records with *keys* fit the conditions; all where one cannot be asked."""
    table, where, programs = running.table, running.where, running.programs
    key = "fitting", *[one.reading for one in where]
    prepared = programs.prepared.get(key)
    if prepared is None:
        asked = [Asked(one, node) for one in where for node in conjuncts(one.node)]
        prepared = Prepared(where, (), asked, want_of((HITS,), programs, one=True), programs)
        programs.keep(key, prepared)
    try:
        return len(prepared.listing(sparse=False)(keys, table._get, table._db, where))
    except Exception as error:  # whoever reads the record tells what it is
        let_through(error)
        return len(keys)


# -- an index of the first parts of a sort key

TOTAL = {one for one in PLAIN if one.__name__ not in ("float", "Decimal", "complex", "time", "datetime")}
"""Types all of whose values are ordered."""

_IN_INDEXES = (float, Decimal, datetime)
"""Types all of whose values that an index can hold are ordered: it holds no NaN, and no times without a zone."""


def partly_ordered(running: Running, choice: Choice, order: Sequence[Subject], question: Question) -> Optional[Choice]:
    """The choice of an index that has the first parts of the sort key, if that is better than *choice*; else None.

    What is equal in these parts is read as a whole and sorted, so that must not be much of the table. The other parts
    must be such that any two compare: what is not read cannot raise.
    """
    limit, parts = question.limit or 0, question.parts()
    node: Any = None if running.order is None else running.order.node
    if len(order) < 2 or not isinstance(node, Display):
        return None
    if choice.accesses and sum([running.reads.measure(one, CAP) or 0 for one in choice.accesses]) < CAP:
        return None
    whole = [one for one in question.indexes if not (one.where or one.several) and all([a.present for a in one.parts])]
    sure = [part.subject for one in whole for part in one.parts]  # of all records, as each of them has an entry
    for count in range(len(order) - 1, 0, -1):
        uncertain = _uncertain(node.elements[count:], order[count:])
        if uncertain is None:
            return None
        for index in question.indexes:
            if not uncertain.issubset((*sure, *[part.subject for part in index.parts])):
                continue
            access = order_access(index, tuple(order[:count]), parts, tied=True)
            if access is None or not access.serves(parts) or running.reads.measure(access, 0) is None:
                continue
            if _is_little(running, access, count, limit, most_of(question.total)):
                return Choice((), access, choice.rejected, parts=count)
    return None


def _uncertain(elements: Sequence[Any], subjects: Sequence[Subject]) -> Optional[set[Subject]]:
    """Those of *subjects*, the *elements* of a tuple, of which two values may not compare unless they are in an index.

    None if there is one whose values may not compare there, either, or that may be None.
    """
    found: set[Subject] = set()
    for one, subject in zip(elements, subjects):
        inner = one.arguments[0] if isinstance(one, Apply) else one.inner if isinstance(one, Unary) else one
        cls = inner.known.cls
        if inner.known.optional or cls not in (*TOTAL, *_IN_INDEXES):
            return None
        if cls not in TOTAL:
            found.add(subject[1:] if subject[0] in (DESCENDING, NEGATIVE) else subject)
    return found


def _is_little(running: Running, access: Access, count: int, limit: int, most: int) -> bool:
    """Whether fewer than *most* entries of *access* are read for *limit* rows, with what is equal to the last one."""
    bound = running.reads.bound(access)
    if bound is None or limit >= most:
        return False
    within, backwards = _entries(running, access)
    common = common_of(bound.storage, access.ties or len(access.equal) + count)
    last = None
    with closing(rows_within(running.table, bound.handle, within, backwards)) as pairs:
        for read, pair in enumerate(pairs, 1):
            if read == limit:
                last = common(pair)
            elif read > limit and common(pair) != last:
                break
            if read >= most:
                return False
    return True


def sorted_within(
    rows: Iterator[tuple[Any, Any]], parts: int, stop: Optional[int], *, backwards: bool
) -> Iterator[tuple[Any, Any]]:  # fmt: skip
    """*rows*, which are in the order of the first *parts* of their sort keys, in that of the whole sort keys.

    No more than *stop* of those that are equal in these parts, if it is given.
    """
    for _, equal in groupby(rows, lambda row: row[0][:parts]):
        yield from first_of(equal, stop, backwards=backwards)
