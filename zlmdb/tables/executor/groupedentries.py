"""What the entries of an index tell of values: the first ones, how many there are, numbers of the records of each.

Entries of one value stand side by side. To find the next value, the entries of one are skipped, if there are few
values. The first of several entries with a whole index key is that of the first record. If the index has more fields
than those that are asked for, the first records of the table tell the order of most of their values. Records are
counted by reading all entries.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import add, attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ...keys import TupleKey
from ...query.accesses import Access
from ...query.following import Followed
from ...query.following.operations import Display
from ...query.inorder import SHARE
from ...query.recordpaths import needed
from ...query.terms import CAP, subject_of
from ...store.ranges import keys_from, seek, values_from
from ..indexstorage import IndexStorage
from ..keyrange import CHUNK
from ..scan import first_within, rows_within
from .accessreads import AccessReads
from .cachedscans import ScanParts
from .covered import EXACT
from .keylookups import total_of

if TYPE_CHECKING:
    from ..selection import Selection


FEW = 32
"""Values of which the first entries are looked up before it is known whether there are few of them."""
APART = 16
"""Entries of one value that are skipped faster than they are read."""
RECORDS = 64
"""Records that are asked first for the order of values."""


class Groups:
    """What entries tell of values: of each the *firsts* one, the *lasts*, and the key of the first record in *owners*.

    These are lists of bytes and numbers, and not one of objects, of which the garbage collector would look at each.
    """

    __slots__ = ("counts", "firsts", "lasts", "owners", "totals")

    def __init__(self, folds: int) -> None:
        self.firsts: list[bytes] = []
        self.lasts: list[bytes] = []
        self.owners: list[bytes] = []
        self.counts: list[int] = []
        self.totals: list[list[int]] = [[] for _ in range(folds)]

    def in_order(self) -> list[int]:
        """The numbers of the values, in the order of the first records."""
        return sorted(range(len(self.owners)), key=self.owners.__getitem__)


Fold = tuple[Followed, Callable[[Iterable[int]], int], Callable[[int, int], int]]
"""What is said of records, and what many of these numbers come to, and two of the results."""

_FOLDS: dict[str, tuple[Callable[[Iterable[int]], int], Callable[[int, int], int]]] = {
    "max": (max, max), "mean": (sum, add), "min": (min, min), "sum": (sum, add)
}  # fmt: skip


class Entries:
    """The entries of *access*, which have what *give* says of records: *wanted* parts of the index."""

    def __init__(self, selection: Selection[Any, Any], access: Access, give: Followed, wanted: int) -> None:
        table, reads = selection._table, AccessReads(selection._table)
        bound: Any = reads.bound(access)
        self._selection, self._give = selection, give
        self._access, self._parts = access, access.facts.parts
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
        rest: Any = -tail if self._whole else None
        if (
            not self._whole
            and isinstance(codec, TupleKey)
            and codec.width is not None
            and (tail or index.joined is None)
        ):
            rest = sum([one.width or 0 for one in codec.leaves[leading:]]) - tail
        if rest:  # so many bytes follow in each entry
            behind = b"\xff" * rest + b"\0"  # `after` takes longer
            return lambda entry: entry[:-rest] + behind
        if self._whole:
            return lambda entry: index.exactly(load_key(entry))[1]
        return lambda entry: index.span(load_key(entry)[:leading], None)[1]

    def _values_of(self, entries: list[bytes]) -> list[Any]:
        """What the records of *entries* have."""
        read = self._reader(self._give) if len(entries) > FEW else None
        return list(map(self._value, entries)) if read is None else read(entries)

    def _value(self, entry: bytes) -> Any:
        key = self._index.load_key(entry)
        if self._single:
            return (key,) if self._tuples else key
        values = key[self._wanted]
        return values if self._tuples else values[0]

    def values(self, *, soon: bool) -> Optional[list[Any]]:
        """Each value once; None if a scan is faster, with *soon* also if there are many values."""
        found = self._skipping(soon=soon)
        if found is not None:
            return self._in_order(found)
        if soon or not self._are_read():
            return None
        groups = self._groups(())
        return self._values_of([groups.firsts[one] for one in groups.in_order()])

    def shown(self) -> Optional[str]:
        """What is read for the `values`, for people; None if a scan is faster."""
        if self._skipping(soon=False) is not None:
            return "the first entry of each value"
        return "all entries" if self._are_read() else None

    def _are_read(self) -> bool:
        """Whether to read all entries is faster than a scan, where they are not skipped."""
        return self._whole and self._tail != 0 and not self._differ()

    def _skipping(self, *, soon: bool) -> Optional[list[bytes]]:
        """The first entry of each value; None if there are so many values that it is faster to read all entries.

        With *soon* also if these are too many before the first row.
        """
        found = self._firsts(FEW)
        if found is not None or (soon and not self._whole) or self._differ():
            return found
        return self._firsts(CAP if soon else max(CAP, total_of(self._table) // APART))

    def number(self) -> Optional[int]:
        """The number of values; None as of `numbers`."""
        found = self._skipping(soon=False)
        if found is not None:
            return len(found)
        return len(self._groups(()).firsts) if self._tail else None

    def numbers(self, asked: Sequence[tuple[str, Optional[Followed]]]) -> Optional[Iterator[tuple[Any, Any]]]:
        """Each value with what is *asked*; None if the entries do not end with the keys of their records."""
        if not self._tail:
            return None
        folds: list[Fold] = []
        told = [self._telling(kind, give, folds) for kind, give in asked]
        groups = self._groups(folds)
        order = groups.in_order()
        names = self._values_of([groups.firsts[one] for one in order])
        columns = [tell(groups) for tell in told] or [groups.counts]
        return zip(names, zip(*[[column[one] for one in order] for column in columns]))

    def _telling(self, kind: str, give: Optional[Followed], folds: list[Fold]) -> Callable[[Groups], list[Any]]:
        """What tells of groups what is asked; what that needs is put into *folds*."""
        if give is None:
            return attrgetter("counts")
        subject = subject_of(give.node, give.keyed)
        # Entries of one value are in the order of the part behind it.
        for number, part in enumerate(self._parts[: self._wanted.stop + 1] if kind in ("max", "min") else ()):
            if part.subject == subject and part.kind in EXACT:
                ends = attrgetter("lasts" if (kind == "max") is not part.descending else "firsts")
                return lambda groups: self._parts_of(ends(groups), give, number)
        place = len(folds)
        folds.append((give, *_FOLDS[kind]))
        if kind == "mean":
            return lambda groups: [total / count for total, count in zip(groups.totals[place], groups.counts)]
        return lambda groups: groups.totals[place]

    def _parts_of(self, entries: list[bytes], give: Followed, number: int) -> list[Any]:
        """The part with that *number*, which is what *give* says, of *entries*."""
        read = self._reader(give) if len(entries) > FEW else None
        if read is not None:
            return read(entries)
        keys = list(map(self._index.load_key, entries))
        return keys if self._single else [key[number] for key in keys]

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
            return self._values_of(sorted(firsts, key=itemgetter(slice(self._tail, None))))
        left = dict(zip(self._values_of(firsts), firsts))
        found = [] if self._whole else self._among_first(left)
        owners = sorted([(self._first_owner(entry), entry) for entry in left.values()])
        return [*found, *self._values_of([entry for _, entry in owners])]

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

    def _groups(self, folds: Sequence[Fold]) -> Groups:
        """What the entries, which end with the keys of their records, tell of all values."""
        end_of, owner, whole, found = (
            self._end_of,
            itemgetter(slice(self._tail, None)),
            self._whole,
            Groups(len(folds)),
        )
        firsts, lasts, owners, counts = found.firsts, found.lasts, found.owners, found.counts
        end = b""
        for block, columns in self._blocks([give for give, _, _ in folds]):
            begin = 0
            while begin < len(block):
                first = block[begin]
                begins = not end or first >= end  # else it is the rest of the last one of the block before
                if begins:
                    end = end_of(first)
                at = bisect_left(block, end, begin)
                least = owner(first) if whole else min(map(owner, block[begin:at]))
                if begins:
                    firsts.append(first)
                    lasts.append(block[at - 1])
                    owners.append(least)
                    counts.append(at - begin)
                else:
                    lasts[-1] = block[at - 1]
                    owners[-1] = min(owners[-1], least)
                    counts[-1] += at - begin
                for (_, of_many, of_two), totals, column in zip(folds, found.totals, columns):
                    total = of_many(column[begin:at])
                    totals.append(total if begins else of_two(totals.pop(), total))
                begin = at
        return found

    def _blocks(self, gives: Sequence[Followed]) -> Iterator[tuple[list[bytes], list[list[int]]]]:
        """All entries, many at a time, and what *gives* say of them. Raises LookupError if that is not whole numbers.

        Of these the order does not matter, which is not that of the records.
        """
        wanted = [self._covering(give) for give in gives]
        rows = rows_within(self._table, self._handle, self._within, False, keys_from)
        while block := list(islice(rows, CHUNK)):
            columns = [covering(block) for covering in wanted]
            if any([not {int}.issuperset(map(type, column)) for column in columns]):
                raise LookupError("other values than whole numbers are computed")
            yield block, columns

    def _covering(self, give: Followed) -> Callable[[list[bytes]], list[int]]:
        """As `_reader`, of all entries. Raises LookupError where records are read faster."""
        read = None if self._index.storage.key.width is None else self._reader(give)
        if read is None:
            raise LookupError("it is carried, or behind a text, which takes long to pass over")
        return read

    def _reader(self, give: Followed) -> Optional[Callable[[list[bytes]], list[Any]]]:
        """A function of entries, of what *give* says of them; None if their keys do not tell it."""
        selection = self._selection
        running = selection._with(query=selection._query._replace(where=()))._running(ordered=False)
        cover, fields = running.cover_of(self._access), needed((give,), (give,))
        if cover is None or fields is None or not fields <= cover.fields:
            return None
        prepared = running.prepared((give,), (give,), True, running.uncolumned())
        covering, paired = prepared.covering(cover, fields)
        return None if paired else lambda entries: covering(entries, None, (give,), *prepared.given)
