"""The different values of the fields of an index, and how many records have each: from its entries alone.

Of each value, the first entry has the first record, whose place is that of the value among the others. To find the next
value, the entries of one are skipped, if there are few values; records are counted by reading all of their entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...query.accesses import Access, order_access
from ...query.following import Followed
from ...query.following.operations import Display
from ...query.inorder import SHARE
from ...query.terms import CAP, KEY, subject_of
from ...store.ranges import after, keys_from, seek
from ..scan import first_within, rows_within, while_open
from .accessreads import AccessReads
from .cachedplans import parts_of
from .counted import is_all, known_of
from .covered import EXACT
from .indexfacts import vouches

if TYPE_CHECKING:
    from ...query.explained import Plan
    from ...query.translated import Give
    from ..selection import Selection


def different(selection: Selection[Any, Any], give: Give) -> Optional[Different]:
    """What tells the different things that *give* says of the records of *selection*; None if no index does."""
    if not isinstance(give, Followed) or selection._query.order is not None or selection._reverse:
        return None
    node = give.node
    nodes: Sequence[Any] = node.elements if isinstance(node, Display) and node.kind is tuple else (node,)
    subjects = [subject_of(one, give.keyed) for one in nodes]
    written = selection._table._txn._write  # the body of a loop over them may write
    known = known_of(selection) if subjects and all(subjects) and not written else None
    if known is None or selection._limit is not None or selection._query.skip:
        return None
    found = [
        one for one in known.facts if one.name != KEY and not one.unique and len(one.parts) >= len(subjects)
        and [part.subject for part in one.parts[-len(subjects) :]] == subjects
        and all([part.kind in EXACT for part in one.parts])
    ]  # fmt: skip
    if not found or not vouches(selection._table._storage.value.name):
        return None
    selection._running(ordered=False).settle(give)
    where = selection._query.where
    readings = [one.reading for one in (*where, give)]
    if any([one.to_check > 0 or not one.complete for one in readings]):
        return None
    parts = parts_of(where)
    for facts in found:
        access = order_access(facts, tuple([part.ordered for part in facts.parts[-len(subjects) :]]), parts)
        if access is not None and is_all(access, parts) and AccessReads(selection._table).measure(access, 0) == 0:
            return Different(selection, give, access)
    return None


class Different:
    """The different things that *give* says of the records of *selection*, of which the entries of *access* tell."""

    def __init__(self, selection: Selection[Any, Any], give: Followed, access: Access) -> None:
        self._selection, self._give, self._access = selection, give, access

    def rows(self, *, soon: bool) -> Optional[Iterator[Any]]:
        """Each of them once; with *soon* None if there are many, since all are found before the first one comes."""
        try:
            entries = _Entries(self._selection, self._access, self._give)
            if entries.differ():
                return None
            found = entries.firsts(CAP)
            if found is None and (soon or (found := entries.all_firsts()) is None):
                return None
            rows = [entries.value(entry) for _, entry in sorted(found)]
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None
        return while_open(self._selection._table, partial(iter, rows))

    def numbers(self) -> Optional[dict[Any, int]]:
        """How many records have each of them, in the order of the first records; None where it is not told."""
        try:
            return _Entries(self._selection, self._access, self._give).numbers()
        except Exception as error:  # as above
            let_through(error)
            return None

    def explained(self, plan: Plan) -> Plan:
        """*plan*, with what is read instead."""
        read, name = f"{self._access}: the first entry of each value", self._access.facts.name
        return plan._replace(read=(read,), indexes=(name,), covered=True, rejected=())


class _Entries:
    """The entries of *access*, which have what *give* says of records."""

    def __init__(self, selection: Selection[Any, Any], access: Access, give: Followed) -> None:
        table, reads = selection._table, AccessReads(selection._table)
        bound: Any = reads.bound(access)
        self._index = bound.storage
        self._tail: int = self._index.tail
        self._lower, self._upper = reads.ranges(access)[0]
        self._table, self._handle = table, bound.handle
        kind = give.node
        self._last = len(kind.elements) if isinstance(kind, Display) else 0
        self._tuples = len(access.facts.parts) > 1

    def value(self, entry: bytes) -> Any:
        """What the record of *entry* has."""
        key = self._index.load_key(entry)
        if self._last:
            return key[-self._last :] if self._tuples else (key,)
        return key[-1] if self._tuples else key

    def differ(self) -> bool:
        """Whether there are many values, of a few entries each, going by the first ones: a scan is faster then."""
        if not self._tail:
            return False
        first = first_within(self._table, self._handle, (self._lower, self._upper), False, CAP, keys_from)
        return len(first) == CAP and len({entry[: self._tail] for entry in first}) * SHARE > CAP

    def firsts(self, most: int) -> Optional[list[tuple[bytes, bytes]]]:
        """The first entry of each value, behind the key of its record; None if there are more than *most* values."""
        found: list[tuple[bytes, bytes]] = []
        tail, index, upper = self._tail, self._index, self._upper
        cursor, lower = self._table._cursor(self._handle), self._lower
        try:
            while seek(cursor, lower, upper) and (entry := cursor.key()) < upper:
                if len(found) >= most:
                    return None
                found.append((entry[tail:] if tail else cursor.value(), entry))
                lower = after(entry[:tail]) if tail else index.exactly(index.load_key(entry))[1]
            return found
        finally:
            cursor.close()

    def all_firsts(self) -> Optional[list[tuple[bytes, bytes]]]:
        """As `firsts`, of many values; None if the entries do not end with the keys of their records."""
        tail = self._tail
        if not tail:
            return None
        rows = rows_within(self._table, self._handle, (self._lower, self._upper), True, keys_from)
        return [(entry[tail:], entry) for entry in {entry[:tail]: entry for entry in rows}.values()]

    def numbers(self) -> Optional[dict[Any, int]]:
        """The number of entries of each value; None as of `all_firsts`."""
        tail = self._tail
        if not tail:
            return None
        rows = rows_within(self._table, self._handle, (self._lower, self._upper), False, keys_from)
        counts = Counter(map(itemgetter(slice(None, tail)), rows))
        cursor = self._table._cursor(self._handle)
        try:
            firsts = [cursor.key() for beginning in counts if cursor.set_range(beginning)]
        finally:
            cursor.close()
        firsts.sort(key=itemgetter(slice(tail, None)))
        return {self.value(entry): counts[entry[:tail]] for entry in firsts}
