"""The keys of the records that indexes find, read as far as they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ...namedtuples import NamedTuple
from ...store.blocks import COUNTS_REFERENCES
from ...store.ranges import keys_from, pairs_from, seek, values_from
from ..indexstorage import BoundIndex, IndexStorage
from ..scan import rows_within
from .accessranges import Range

if TYPE_CHECKING:
    from ..selection import Selection
    from ..table import Table


class EntryRanges(NamedTuple):
    """*ranges* of the entries of one index, or of the records of a table.

    *cut*: where the primary key begins in the key of an entry; None where it is the value of the entry. *prefix* makes
    an engine's key of it.
    """

    handle: Any
    cut: Optional[int]
    prefix: bytes
    ranges: Sequence[Range]


def entry_ranges_of(table: Table[Any, Any], bound: Optional[BoundIndex], ranges: Sequence[Range]) -> EntryRanges:
    """The *ranges* of the index *bound*, of the records of *table* if that is None."""
    if bound is None:
        return EntryRanges(table._db, 0, b"", ranges)
    return EntryRanges(bound.handle, bound.storage.tail or None, table._storage.prefix, ranges)


def first_keys(
    table: Table[Any, Any], handle: Any, tail: int, within: Range, reverse: bool, stop: Optional[int], skip: int = 0
) -> list[bytes]:  # fmt: skip
    """The engine's keys of the records of the first entries *within* a range, in a read transaction.

    *tail*: see `IndexStorage`.
    """
    cursor, prefix = table._raw.cursor(handle), table._storage.prefix
    rows = (keys_from if tail else values_from)(cursor, *within, reverse) if seek(cursor, *within, reverse) else ()
    found = list(islice(rows, skip, stop))
    if not COUNTS_REFERENCES:
        cursor.close()
    if not prefix:
        return [one[tail:] for one in found] if tail else found
    return [prefix + one[tail:] for one in found]


def first_tied(
    table: Table[Any, Any], bound: BoundIndex, within: Range, reverse: bool, last: bool, stop: int, skip: int
) -> Optional[list[bytes]]:  # fmt: skip
    """As `tied_keys`, up to *stop*, of entries that end with the primary key and are equal in the whole index key.

    None if the last one is equal to the next one, so that more entries have to be read.
    """
    cursor, prefix, tail = table._raw.cursor(bound.handle), table._storage.prefix, bound.storage.tail
    rows = keys_from(cursor, *within, reverse) if seek(cursor, *within, reverse) else ()
    found = list(islice(rows, stop + 1))
    if not COUNTS_REFERENCES:
        cursor.close()
    index_keys = [one[:tail] for one in found]
    if len(set(index_keys)) == len(found):
        return [prefix + one[tail:] for one in found[skip:stop]]
    if len(found) > stop and index_keys[stop] == index_keys[stop - 1]:
        return None
    keys: list[bytes] = []
    for _, equal in groupby(found[:stop], lambda one: one[:tail]):
        few = [prefix + one[tail:] for one in equal]
        if len(few) > 1:
            few.sort(reverse=last)
        keys += few
    return keys[skip:]


def tied_keys(
    table: Table[Any, Any], bound: BoundIndex, within: Range, ties: int, backwards: bool, last: bool,
    most: Optional[int] = None,
) -> Generator[bytes, None, None]:  # fmt: skip
    """The engine's keys of the records of the entries *within* a range of *bound*, which is read *backwards* or not.

    Those of entries that are equal in their first *ties* parts come in their own order, with *last* the last one first.
    Raises LookupError if these are more than *most*.
    """
    prefix, tail = table._storage.prefix, bound.storage.tail
    with closing(rows_within(table, bound.handle, within, backwards)) as pairs:
        for _, entries in groupby(pairs, common_of(bound.storage, ties)):
            some = islice(entries, None if most is None else most + 1)
            keys = [prefix + (entry[tail:] if tail else bytes(owner)) for entry, owner in some]
            if most is not None and len(keys) > most:
                raise LookupError(f"more than {most:,} records are equal in the order")
            if len(keys) > 1:
                keys.sort(reverse=last)
            yield from keys


def common_of(index: IndexStorage, ties: int) -> Callable[[tuple[bytes, Any]], Any]:
    """What entries have in common that are equal in their first *ties* parts."""
    tail, load_key = index.tail, index.load_key
    whole = ties == len(index.definition["fields"])
    if whole and tail:
        return lambda pair: pair[0][:tail]
    return lambda pair: load_key(pair[0]) if whole else load_key(pair[0])[:ties]


def of_records(within: Range, selection: Selection[Any, Any], prefix: bytes) -> Range:
    """The part of *within*, the range of one index key, that is of records of *selection*.

    Behind the index key, an entry has that of the record, without the *prefix*.
    """
    (lower, upper), size = within, len(prefix)
    if selection._upper != selection._table._storage.upper:
        upper = lower + selection._upper[size:]
    return lower + selection._lower[size:], upper


class FoundKeys:
    """The engine's keys of the records in `EntryRanges` of *table*. However often asked, it reads each entry once.

    Nothing may be written to the table meanwhile. No cursor stays open.
    """

    __slots__ = ("_found", "_left", "_once", "_table")

    def __init__(self, table: Table[Any, Any], within: Iterable[EntryRanges], *, once: bool) -> None:
        """*once*: no record has several entries."""
        self._table, self._once = table, once
        self._found: list[bytes] = []
        self._left = [one._replace(ranges=sorted(one.ranges, reverse=True)) for one in within]

    def fewer(self, most: int) -> Optional[list[bytes]]:
        """All of them, each once, in any order; None if there are *most* entries or more."""
        while self._left and self._known() < most:
            if self._read(self._left[-1], most):
                self._left.pop()
        if self._left or self._known() >= most:
            return None
        return self._found if self._once else list(dict.fromkeys(self._found))

    def _known(self) -> int:
        """How many entries are known."""
        return len(self._found)

    def _read(self, within: EntryRanges, most: int) -> bool:
        """Read on in *within*, until *most* entries are known; whether nothing is left of it."""
        left: list[Range] = list(within.ranges)
        cursor = self._table._cursor(within.handle)
        try:
            while left and (wanted := most - self._known()) > 0:
                lower, upper = left.pop()
                if seek(cursor, lower, upper):
                    last = self._take(within, cursor, lower, upper, wanted)
                    if self._known() >= most:
                        left.append((last + b"\0", upper))
        finally:
            cursor.close()
        self._left[-1] = within._replace(ranges=left)
        return not left

    def _take(self, within: EntryRanges, cursor: Any, lower: bytes, upper: bytes, most: int) -> bytes:
        """Read the entries of a range from where *cursor* is, at most *most*; the last one."""
        _, cut, prefix, _ = within
        rows: Any = pairs_from if cut is None else keys_from
        block: list[Any] = list(islice(rows(cursor, lower, upper, False, self._table._txn.buffers), most))
        if cut is None:
            self._found += [prefix + bytes(owner) for _, owner in block]
            return block[-1][0] if block else b""
        self._found += [prefix + entry[cut:] for entry in block] if prefix else [entry[cut:] for entry in block]
        return block[-1] if block else b""


class FoundEntries(FoundKeys):
    """As `FoundKeys`, but it has the entries themselves, and with *paired* their values, in `values`."""

    __slots__ = ("_cut", "_prefix", "values")

    def __init__(self, table: Table[Any, Any], within: EntryRanges, *, paired: bool) -> None:
        super().__init__(table, (within,), once=True)
        self._cut, self._prefix = within.cut, within.prefix
        self.values: Optional[dict[bytes, bytes]] = {} if paired or within.cut is None else None

    def fewer(self, most: int) -> Optional[list[bytes]]:
        found = super().fewer(most)
        return found if found is None or self.values is None else list(self.values)

    def _known(self) -> int:
        return len(self._found) if self.values is None else len(self.values)

    def _take(self, within: EntryRanges, cursor: Any, lower: bytes, upper: bytes, most: int) -> bytes:
        if self.values is None:
            self._found += islice(keys_from(cursor, lower, upper), most)
            return self._found[-1] if self._found else b""
        self.values.update(islice(pairs_from(cursor, lower, upper), most))
        return next(reversed(self.values), b"")

    def in_key_order(self, entries: list[bytes], lower: bytes, upper: bytes, *, reverse: bool) -> list[bytes]:
        """Those of *entries* whose records have keys with ``lower <= key < upper``, in the order of these."""
        cut, prefix, storage = self._cut, self._prefix, self._table._storage
        owner: Any = itemgetter(slice(cut, None)) if self.values is None or cut is not None else self.values.__getitem__
        if lower != storage.lower or upper != storage.upper:
            entries = [entry for entry in entries if lower <= prefix + owner(entry) < upper]
        return sorted(entries, key=owner, reverse=reverse)
