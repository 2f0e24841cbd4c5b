"""What an index alone tells of the records that a query finds: their number, the least and the greatest of a field.

Entries are counted, and nothing is decoded or compared, if the whole condition is what one index is asked for, of types
of which an entry says exactly what the record does. Then it does not matter how much of the table it is. If the index
tells of the contrary, as of ``!=`` and ``is None``, these are subtracted from all records. The least value of a field
that an index sorts is in the record of the first entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Optional
from uuid import UUID

from ...handlers import let_through
from ...keys import TupleKey
from ...keys.dates import is_ambiguous
from ...query.accesses import Access, IndexFacts, accesses, has_all, in_all, order_access
from ...query.following import Followed
from ...query.following.known import kind_of
from ...query.following.nodes import Parameter, walk
from ...query.following.operations import Compare, IsNone, Not
from ...query.terms import DESCENDING, KEY, Asking, Origin, Subject, subject_of
from ...store.ranges import seek
from ..indexstorage import BoundIndex
from ..keyrange import count_in
from .accesspaths import way_of
from .accessranges import Find, Range
from .accessreads import AccessReads
from .cachedplans import keep, parts_of
from .covered import EXACT
from .foundkeys import first_keys
from .indexfacts import vouches

if TYPE_CHECKING:
    from ...query.translated import Give
    from ..selection import Selection
    from ..table import Table
    from .execution import Known


class CachedCount:
    """How the entries of one index are counted for the conditions of a query: *find* gives their ranges.

    *times* are as of `_captured_times`. *others*: the records counted are those without such an entry.
    """

    __slots__ = ("_bound", "_find", "_others", "_times")

    def __init__(self, find: Find, bound: BoundIndex, times: Sequence[Origin], *, others: bool) -> None:
        self._find, self._bound, self._times, self._others = find, bound, times, others

    def count(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[int]:
        """How many records there are; None where somebody else has to find out."""
        try:
            if not _are_moments(self._times, where):
                return None
            ranges, index = self._find(where), self._bound.storage
            if not ranges:
                return None
            if index.storage.alone and tuple(ranges) == ((index.lower, index.upper),):
                found = table._entries(self._bound.handle)
            else:
                found = self._entries_in(table, set(ranges))
            return table._entries() - found if self._others else found
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def _entries_in(self, table: Table[Any, Any], ranges: set[Range]) -> int:
        cursor = table._raw.cursor(self._bound.handle)
        try:
            return sum([count_in(cursor, lower, upper) for lower, upper in ranges])
        finally:
            cursor.close()


def _captured_times(access: Access) -> list[Origin]:
    """The captured times that *access* depends on: entries tell all of a time that is one moment, in a time zone."""
    return [term.origin for part, term in access.terms if part.kind is datetime and term.origin is not None]


def _are_moments(times: Sequence[Origin], where: Sequence[Followed]) -> bool:
    """Whether each of the captured *times* is one moment, in a time zone."""
    for origin in times:
        time = origin.value(where)
        if time.tzinfo is None or is_ambiguous(time):
            return False
    return True


class CachedExtreme:
    """At which end of which entries the least or the greatest of a field is.

    *find* and *times* are as of `CachedCount`. *part*: the entry has it, as the part of the index with that number;
    else the record is asked.
    """

    __slots__ = ("_bound", "_find", "_last", "_part", "_times")

    def __init__(
        self, find: Find, bound: BoundIndex, times: Sequence[Origin], part: Optional[int], *, last: bool
    ) -> None:  # fmt: skip
        self._find, self._bound, self._times, self._part, self._last = find, bound, times, part, last

    def of(self, selection: Selection[Any, Any], give: Followed) -> Optional[tuple[Any]]:
        """What *give* says of the record at that end, None if there is none; None where somebody else has to find out.

        What it says stands in a tuple.
        """
        table, where, index = selection._table, selection._query.where, self._bound.storage
        try:
            if self._times and not _are_moments(self._times, where):
                return None
            ranges = self._find(where)
            if not ranges:
                return None
            if self._part is None:
                return _at_end(selection, self._bound, ranges[0], give, last=self._last)
            cursor, (lower, upper) = table._raw.cursor(self._bound.handle), ranges[0]
            try:
                entry = cursor.key() if seek(cursor, lower, upper, self._last) else upper
            finally:
                cursor.close()
            if not lower <= entry < upper:
                return (None,)
            key = index.load_key(entry)
            return (key[self._part] if isinstance(index.storage.key, TupleKey) else key,)
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None


def counted(selection: Selection[Any, Any]) -> Optional[int]:
    """How many records fit the conditions of *selection*; None if an index does not tell it by itself."""
    known, where = known_of(selection), selection._query.where
    if known is None:
        return None
    key = ("count", *[one.reading for one in where])
    found: Any = known.cached.get(key)
    if found is None:
        if any([one.reading.to_check > 0 for one in where]):  # new functions; this compares them with the first records
            selection._running(ordered=False)
        found = _made(selection, where, known)
        if found is None:  # not yet
            return None
        keep(known.cached, key, found)
    return None if found is False else found.count(selection._table, where)


def known_of(selection: Selection[Any, Any]) -> Optional[Known]:
    """What is known of the indexes; None if their entries are not enough for *selection*."""
    table, programs = selection._table, selection._table._storage.generated.programs
    if not table._steady:
        return None
    if not selection._plain or not selection._is_all():
        return None
    known: Optional[Known] = None if programs is None else programs.known
    return selection._running().known() if known is None or known.state != table._index_state else known


def extreme(selection: Selection[Any, Any], give: Give, which: Callable[..., Any]) -> Optional[tuple[Any]]:
    """The least or the greatest of what *give* says of the records of *selection*; None if no index tells it."""
    where = selection._query.where
    known = known_of(selection) if isinstance(give, Followed) and selection._limit is None else None
    if known is None or not isinstance(give, Followed) or selection._query.skip:
        return None
    key = (which.__name__, give.reading, *[one.reading for one in where])
    cached: Any = known.cached.get(key)
    if cached is not None and (told := cached.of(selection, give)) is not None:
        return told
    subject = subject_of(give.node, give.keyed)
    found = [one for one in known.facts if one.name != KEY and any([part.subject == subject for part in one.parts])]
    if not found or not subject:
        return None
    if give.reading.to_check > 0:  # of a new function; else all records would be read to compare the first ones
        selection._running(ordered=False).settle(give)
    if any([one.reading.to_check > 0 or not one.reading.complete for one in (*where, give)]):
        return None
    access = next(_in_order_of(subject, found, parts_of(where)), None)
    if access is None:
        return None
    last = (which is max) is not access.facts.parts[-1].descending
    reads = AccessReads(selection._table)
    bound: Any = reads.bound(access)
    # It depends on captured values whether a partial index may be used.
    if not access.facts.where and not any([one.reading.links for one in where]):
        keep(known.cached, key, _cached_extreme(selection, access, bound, last=last))
    try:
        return _at_end(selection, bound, reads.ranges(access)[0], give, last=last)
    except Exception as error:  # the general form tells what it is
        let_through(error)
        return None


def _in_order_of(
    subject: Subject, indexes: Sequence[IndexFacts], parts: Sequence[Asking]
) -> Iterator[Access]:  # fmt: skip
    """Those of *indexes*, asked for all *parts*, that have exactly what fits in the order of *subject*, up or down."""
    for facts in indexes:
        for way in (subject, (DESCENDING, *subject)):
            access = order_access(facts, (way,), parts)
            if access is not None and access.facts.parts[-1].kind in _SORTED and is_all(access, parts):
                yield access


def _cached_extreme(selection: Selection[Any, Any], access: Access, bound: BoundIndex, *, last: bool) -> CachedExtreme:
    """What finds the last or the first entry of *access* for other captured values."""
    parts, where = access.facts.parts, selection._query.where
    way = way_of(access, selection._running(ordered=False), where)
    told = parts[-1].kind in EXACT and vouches(selection._table._storage.value.name)
    return CachedExtreme(way.find, bound, _captured_times(access), len(parts) - 1 if told else None, last=last)


def is_all(access: Access, parts: Sequence[Asking]) -> bool:
    """Whether *access*, of an order, finds exactly the records that fit all of *parts*."""
    return access.serves(parts) and fits(access)


def fits(access: Access) -> bool:
    """Whether the values that *access*, of an order, is asked for are of the types of which entries tell all."""
    kind = access.facts.parts[len(access.equal)].kind
    bounds = [one for one in (access.lower, access.upper) if one is not None]
    if any([type(one) is datetime and is_ambiguous(one) for one in access.equal]):  # it equals none that is stored
        return False
    return all([kind_of(one.value) is kind for one in bounds])


def _at_end(
    selection: Selection[Any, Any], bound: BoundIndex, within: Range, give: Followed, *, last: bool
) -> tuple[Any]:  # fmt: skip
    """What *give* says of the record of the first or the last entry *within* a range; None if there is no entry."""
    table, storage = selection._table, selection._table._storage
    keys = first_keys(table, bound.handle, bound.storage.tail, within, last, 1)
    if not keys:
        return (None,)
    value = storage.load(table._get(keys[0], None, table._db))
    return (give.evaluated(*((storage.load_key(keys[0]), value) if give.keyed else (value,))),)


_SORTED = (int, str, bytes, UUID, date, timedelta, datetime)
"""Types of which equal values are the same, and all have an order: not floats, because of 0.0 and NaN."""


def _made(selection: Selection[Any, Any], where: Sequence[Followed], known: Known) -> Any:
    """The `CachedCount` of a query; False if there is none, None if that cannot be told yet."""
    readings = [one.reading for one in where]
    if any([one.to_check > 0 for one in readings]):
        return None
    vouched = vouches(selection._table._storage.value.name)
    if not vouched or not all([one.complete and not one.links for one in readings]):
        return False
    parts: Sequence[Asking] = parts_of(where)
    facts = [one for one in known.facts if one.name != KEY]
    others = False
    access = next((one for one in accesses(parts, facts) if _tells(one, parts)), None)
    if access is None and len(parts) == 1 and selection._table._storage.alone:
        parts = _contrary(parts[0])
        others = bool(parts)
        access = next((one for one in accesses(parts, facts) if _tells(one, parts)), None)
    if access is None:
        return False
    running = selection._running(ordered=False)
    bound: Any = AccessReads(selection._table).bound(access)
    return CachedCount(way_of(access, running, where).find, bound, _captured_times(access), others=others)


def _contrary(asking: Asking) -> Sequence[Asking]:
    """What all other records fit, and no record raises for, if an index may tell it: most may be without an entry."""
    node = asking.node
    if node.risky:
        return ()
    if isinstance(node, IsNone):
        return (asking.of(Not(node)),)
    if isinstance(node, Not) and isinstance(node.inner, Compare) and node.inner.operator in ("==", "in"):
        return (asking.of(node.inner),)
    return ()


def _tells(access: Access, parts: Sequence[Asking]) -> bool:
    """Whether the records that *access* finds, each by one entry, are those that fit all of *parts*."""
    facts, used = access.facts, {term.node for _, term in access.terms}
    rest = [one for one in parts if one.node not in used]
    if access.wide or len(parts) - len(rest) != len(used) or not all([in_all(facts, one) for one in rest]):
        return False
    if facts.where:  # that of a partial index, whatever values are captured
        captured = any([isinstance(node, Parameter) for one in rest for node in walk(one.node)])
        if captured or not has_all(facts, rest):
            return False
    if facts.several and not (access.exact and isinstance(access.terms[0][1].node, Compare)):
        return False
    return all([
        part.kind in EXACT or issubclass(part.kind, Enum) or (part.kind is datetime and term.origin is not None)
        for part, term in access.terms
    ])  # fmt: skip
