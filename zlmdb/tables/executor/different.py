"""The different values of the fields of an index, and how many records have each: from its entries alone.

The values are in the order of the records that have them first. To find the next value, the entries of one are skipped,
if there are few values. The first of several entries with a whole index key is that of the first record. If the index
has more fields than those that are asked for, the first records of the table tell the order of most of their values.
Records are counted by reading all entries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...keys import TupleKey
from ...query.accesses import Access, order_access
from ...query.following import Followed
from ...query.following.operations import Display
from ...query.inorder import SHARE
from ...query.terms import CAP, KEY, subject_of
from ...store.ranges import after, keys_from, seek, values_from
from ..indexstorage import IndexStorage
from ..keyrange import CHUNK
from ..scan import first_within, rows_within, while_open
from .accessreads import AccessReads
from .cachedplans import parts_of
from .cachedscans import ScanParts
from .counted import is_all, known_of
from .covered import EXACT
from .indexfacts import vouches
from .keylookups import total_of

if TYPE_CHECKING:
    from ...query.explained import Plan
    from ...query.translated import Give
    from ..selection import Selection

FEW = 32
"""Values of which the first entries are looked up before it is known whether there are few of them."""
APART = 16
"""Entries of one value that are skipped faster than they are read."""
RECORDS = 64
"""Records that are asked first for the order of values."""


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
    wanted = len(subjects)
    found = [
        (len(one.parts) - at, one) for one in known.facts if one.name != KEY
        for at in range(len(one.parts) - wanted + 1)
        if [part.subject for part in one.parts[at : at + wanted]] == subjects
        and all([part.kind in EXACT for part in one.parts[: at + wanted]])
        and not (one.unique and at + wanted == len(one.parts))  # then each record has another value
    ]  # fmt: skip
    if not found or not vouches(selection._table._storage.value.name):
        return None
    selection._running(ordered=False).settle(give)
    where = selection._query.where
    readings = [one.reading for one in (*where, give)]
    if any([one.to_check > 0 or not one.complete for one in readings]):
        return None
    parts = parts_of(where)
    found.sort(key=itemgetter(0))  # whole index keys first: these need no record
    for rest, facts in found:
        access = order_access(facts, tuple([part.ordered for part in facts.parts[-rest:]]), parts)
        if access is not None and is_all(access, parts) and AccessReads(selection._table).measure(access, 0) == 0:
            return Different(selection, give, access, wanted)
    return None


class Different:
    """The different things that *give* says of the records of *selection*, of which the entries of *access* tell.

    They are *wanted* parts of the index, behind those that *access* has equal to something.
    """

    def __init__(self, selection: Selection[Any, Any], give: Followed, access: Access, wanted: int) -> None:
        self._selection, self._give, self._access, self._wanted = selection, give, access, wanted

    def rows(self, *, soon: bool) -> Optional[Iterator[Any]]:
        """Each of them once; with *soon* None if there are many, since all are found before the first one comes."""
        rows = self._told(partial(_Entries.values, soon=soon))
        return None if rows is None else while_open(self._selection._table, partial(iter, rows))

    def number(self) -> Optional[int]:
        """How many of them there are; None where it is not told."""
        found: Optional[int] = self._told(_Entries.number)
        return found

    def numbers(self) -> Optional[dict[Any, int]]:
        """How many records have each of them, in the order of the first records; None where it is not told."""
        found: Optional[dict[Any, int]] = self._told(_Entries.numbers)
        return found

    def _told(self, by: Callable[[_Entries], Any]) -> Any:
        try:
            return by(_Entries(self._selection, self._access, self._give, self._wanted))
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def explained(self, plan: Plan) -> Plan:
        """*plan*, with what is read instead."""
        facts = self._access.facts
        whole = len(self._access.equal) + self._wanted == len(facts.parts)
        read = (
            f"{self._access}: the first entry of each value{'' if whole else ', and the first records for the order'}"
        )
        return plan._replace(read=(read,), indexes=(facts.name,), covered=whole, rejected=())


_Group = tuple[bytes, int, bytes]
"""The first entry of a value, the number of its entries, and the key of the first record."""


class _Entries:
    """The entries of *access*, which have what *give* says of records: *wanted* parts of the index."""

    def __init__(self, selection: Selection[Any, Any], access: Access, give: Followed, wanted: int) -> None:
        table, reads = selection._table, AccessReads(selection._table)
        bound: Any = reads.bound(access)
        self._selection, self._give = selection, give
        self._index: IndexStorage = bound.storage
        self._tail: int = self._index.tail
        self._within = reads.ranges(access)[0]
        self._table, self._handle = table, bound.handle
        self._tuples = isinstance(give.node, Display)
        begin, end = len(access.equal), len(access.equal) + wanted
        self._wanted = slice(begin, end)
        self._single = len(access.facts.parts) == 1
        self._whole = end == len(access.facts.parts)
        self._end_of = self._ends(end)

    def _ends(self, leading: int) -> Callable[[bytes], bytes]:
        """A function of an entry: where the entries end that have the same *leading* parts."""
        index, tail, codec = self._index, self._tail, self._index.storage.key
        load_key = index.load_key
        if self._whole and tail:
            behind = b"\xff" * -tail + b"\0"  # `after` takes longer
            return lambda entry: entry[:tail] + behind
        if self._whole:
            return lambda entry: index.exactly(load_key(entry))[1]
        leaves = codec.leaves[:leading] if isinstance(codec, TupleKey) else ()
        widths = [one.width for one in leaves]
        if None not in widths:
            cut = len(index.storage.prefix) + sum([width for width in widths if width is not None])
            return lambda entry: after(entry[:cut])
        return lambda entry: index.span(load_key(entry)[:leading], None)[1]

    def value(self, entry: bytes) -> Any:
        """What the record of *entry* has."""
        key = self._index.load_key(entry)
        if self._single:
            return (key,) if self._tuples else key
        values = key[self._wanted]
        return values if self._tuples else values[0]

    def values(self, *, soon: bool) -> Optional[list[Any]]:
        """Each value once; None if a scan is faster, with *soon* also if there are many values."""
        found = self._firsts(FEW)
        if found is None:
            if self._differ():
                return None
            found = self._firsts(CAP if soon else self._most())
        if found is not None:
            return self._in_order(found)
        if soon or not (self._whole and self._tail):
            return None
        return [self.value(entry) for entry, _, _ in self._groups()]

    def number(self) -> Optional[int]:
        """The number of values; None as of `numbers`."""
        found = self._firsts(FEW)
        if found is None and not self._differ():
            found = self._firsts(self._most())
        if found is not None:
            return len(found)
        return len(self._groups()) if self._tail else None

    def numbers(self) -> Optional[dict[Any, int]]:
        """The number of entries of each value; None if the entries do not end with the keys of their records."""
        return {self.value(entry): count for entry, count, _ in self._groups()} if self._tail else None

    def _most(self) -> int:
        """How many values there may be for that their entries are skipped."""
        return max(CAP, total_of(self._table) // APART)

    def _differ(self) -> bool:
        """Whether there are many values, of a few entries each, going by the first ones: a scan is faster then."""
        first = first_within(self._table, self._handle, self._within, False, CAP, keys_from)
        at = values = 0
        while at < len(first) == CAP:
            at = bisect_left(first, self._end_of(first[at]), at)
            values += 1
            if values * SHARE > CAP:
                return True
        return False

    def _firsts(self, most: int) -> Optional[list[bytes]]:
        """The first entry of each value; None if there are more than *most* values."""
        found: list[bytes] = []
        end_of, (lower, upper) = self._end_of, self._within
        cursor = self._table._cursor(self._handle)
        try:
            while seek(cursor, lower, upper) and (entry := cursor.key()) < upper:
                if len(found) >= most:
                    return None
                found.append(entry)
                lower = end_of(entry)
            return found
        finally:
            cursor.close()

    def _in_order(self, firsts: list[bytes]) -> list[Any]:
        """The values of the entries *firsts* in the order of their first records."""
        if self._whole and self._tail:
            return list(map(self.value, sorted(firsts, key=itemgetter(slice(self._tail, None)))))
        left = {self.value(entry): entry for entry in firsts}
        found = [] if self._whole else self._among_first(left)
        owners = sorted([(self._first_owner(entry), entry) for entry in left.values()])
        return [*found, *[self.value(entry) for _, entry in owners]]

    def _among_first(self, left: dict[Any, bytes]) -> list[Any]:
        """The values that the first records have, in their order: they are taken from *left*."""
        selection, give, found = self._selection, self._give, list[Any]()
        functions = [*selection._query.where, give]
        prepared = selection._running(ordered=False).prepared(functions, (give,), True)
        # As many as have almost all of the values, if these are in no order.
        most = min(RECORDS + APART * len(left), max(RECORDS, total_of(self._table) // SHARE))
        parts = ScanParts(selection, prepared, functions)
        try:
            while left and parts.are_left and parts.scanned < most:
                rows = parts.next(max(RECORDS, min(parts.scanned, CAP)))
                new = [row for row in dict.fromkeys(rows) if left.pop(row, None) is not None]
                if not new and parts.scanned > RECORDS:
                    break
                found += new
        finally:
            parts.close()
        return found

    def _first_owner(self, entry: bytes) -> bytes:
        """The key of the first record of the value of which *entry* is the first one."""
        tail, within = self._tail, (entry, self._end_of(entry))
        if self._whole:
            (owner,) = first_within(self._table, self._handle, within, False, 1, values_from)
            return bytes(owner)
        rows = rows_within(self._table, self._handle, within, False, keys_from if tail else values_from)
        owners: Iterator[bytes] = map(itemgetter(slice(tail, None)) if tail else bytes, rows)
        return min(owners)

    def _groups(self) -> list[_Group]:
        """All values with the number of entries, in the order of their first records, whose keys end the entries."""
        end_of, owner, found = self._end_of, itemgetter(slice(self._tail, None)), list[_Group]()
        first, end, count, least = b"", b"", 0, b""
        rows, size = rows_within(self._table, self._handle, self._within, False, keys_from), CHUNK
        while block := list(islice(rows, size)):
            at = 0
            while at < len(block):
                if count and block[at] < end:  # the rest of the last one of the block before
                    begin, at = at, bisect_left(block, end)
                    count += at - begin
                    least = least if self._whole else min(least, *map(owner, block[begin:at]))
                    continue
                if count:
                    found.append((first, count, least))
                begin, first = at, block[at]
                end = end_of(first)
                at = bisect_left(block, end, begin)
                count = at - begin
                least = owner(first) if self._whole else min(map(owner, block[begin:at]))
        if count:
            found.append((first, count, least))
        found.sort(key=itemgetter(2))
        return found
