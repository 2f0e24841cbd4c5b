"""Looks up the records whose keys an index gave, in the order of the table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

from ... import errors
from ...handlers import let_through
from ...query.inorder import KEYS
from ...query.plan import SHARE
from ...query.plan import most_of as most_of_total
from ...query.scanned import Scanned
from ...query.terms import CAP
from ...store.blocks import COUNTS_REFERENCES
from ..scan import Scan, first_within
from .foundkeys import FoundKeys
from .keysahead import KeysAhead

if TYPE_CHECKING:
    from ..table import Table


Find = Callable[..., Optional[Iterable[bytes]]]
"""Gives the keys that indexes find in a range, in order; None if there are as many entries as a number: see `few`."""

_MANY = 64 if COUNTS_REFERENCES else sys.maxsize  # without counts a cursor would have to be closed
_PAGE = 16
"""Records that a page has, about."""


def by_cursor(table: Table[Any, Any], keys: Sequence[bytes]) -> Optional[Callable[[bytes], Any]]:
    """The ``get`` of a cursor over *table*, where that finds the records of *keys*, in order, faster than without one.

    If they are many, the next record is often on the page on which the cursor is, and it need not search the tree.
    Otherwise a cursor takes longer. In a read transaction.
    """
    if len(keys) > _MANY and len(keys) * _PAGE > table._entries_stored():
        return table._raw.cursor(table._db).get
    return None


def most_kept(table: Table[Any, Any]) -> int:
    """Entries from which on all records are read faster, or the keys would take much memory."""
    return min(most_of(table), KEYS)


def most_of(table: Table[Any, Any]) -> int:
    """Entries from which on all records are read faster: see `plan`."""
    return most_of_total(total_of(table))


def total_of(table: Table[Any, Any]) -> int:
    """About how many records there are."""
    return table._entries_stored() if table._storage.alone else SHARE * CAP


class _Beside:
    """Tells *scan* when something is written to *space*, which is that of another table."""

    __slots__ = ("_scan", "space")

    def __init__(self, space: Optional[bytes], scan: PickedScan) -> None:
        self.space, self._scan = space, scan

    def pause(self) -> None:
        self._scan.pause()


class PickedScan(Scanned):
    """The records of *table* with the engine's *keys*, which are in order, backwards with *reverse*.

    In a write transaction it is a scan of ``lower <= key < upper`` that knows beforehand which records it has to look
    at. Once something is written, it asks *find* for the keys in the range, which indexes in *spaces* find then, and
    looks at the records of which an entry is written later. If *find* is not given, or gives None, it goes on as such
    a scan behind the record at which something was written; and also if something is written to one of the spaces
    *beside*, of other tables.
    """

    def __init__(
        self, table: Table[Any, Any], keys: Iterable[bytes], lower: bytes, upper: bytes, *, reverse: bool,
        find: Optional[Find] = None, spaces: Collection[Optional[bytes]] = (),
        beside: Collection[Optional[bytes]] = (),
    ) -> None:  # fmt: skip
        txn = table._txn
        self._table, self._keys = table, keys
        self._close_keys: Any = getattr(keys, "close", None)
        self._scans = txn._open_scans() if txn._scans is None else txn._scans
        self._scan = Scan(table, table._storage.space, None, lower, upper, reverse) if txn._write else None
        self._at: tuple[Optional[bytes], Any] = None, None
        self._find_again, self._spaces, self._state = find, spaces, table._index_state
        self._beside = [_Beside(space, self) for space in beside]
        if self._beside:
            self._scans.running.update(self._beside)
            txn._allow_tables(beside)

    def pause(self) -> None:
        """It goes on as a scan: what is written to another table may change which records it has to look at."""
        self._find_again = None
        if self._scan is not None:
            self._scan.pause()

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's pairs of key and value."""
        scan, table, scans = self._scan, self._table, self._scans
        for key in self._keys:
            if scan is not None and scan.paused:
                break
            data = table._get(key, None, table._db)
            if data is None:
                raise errors.DecodeError(
                    f"table {table._name!r}: an index has an entry for the record {key!r}, which is not there: rebuild "
                    f"the index",
                    table=table._name,
                )
            self._at = key, data
            yield self._at
            scans.check()
        if scan is not None and scan.paused:
            yield from self._rest(scan)

    def _rest(self, scan: Scan) -> Iterator[tuple[bytes, Any]]:
        """The pairs that are left when something was written."""
        while self._finds() and (keys := self._found(scan)) is not None:
            ahead = KeysAhead(self._table, scan, self._spaces)
            try:
                for key in ahead.rest(iter(keys), self._at[0]):
                    data = scan._get(key)
                    if data is not None:
                        self._at = key, data
                        yield self._at
                        self._scans.check()
                    if not self._finds():
                        break
                else:
                    if ahead.are_known:
                        return
            finally:
                ahead.close()
        scan._position = self._at[0]
        for pair in scan.rest():
            self._at = pair
            yield pair

    def _finds(self) -> bool:
        """Whether the indexes still tell which records may match."""
        return self._find_again is not None and self._table._index_state is self._state

    def _found(self, scan: Scan) -> Optional[Iterable[bytes]]:
        """The keys that the indexes find now; None if these are too many."""
        find = self._find_again
        return None if find is None else find(scan._lower, scan._upper, most_kept(self._table), reverse=scan._reverse)

    def current(self) -> tuple[Optional[bytes], Any]:
        """The engine's key and value of the record at which the iteration is."""
        return self._at

    def is_paused(self, error: Exception) -> bool:
        """False: it goes on by itself. Raises when the transaction has ended."""
        let_through(error)
        self._scans.check()
        return False

    def close(self) -> None:
        """Nothing more is asked of it."""
        if self._beside:
            self._scans.running.difference_update(self._beside)
            if self._scans.ended is None:
                self._table._txn._allow_tables([one.space for one in self._beside])
        if self._scan is not None:
            self._scan.close()
        if self._close_keys is not None:  # they are of a generator
            self._close_keys()


_BLOCK = 1000
"""Records that are read together while others are looked for, at most."""
_FACTOR = 16
"""How many times as many entries are looked at next: reading them all takes less time than reading records in vain."""


def stages(most: int) -> Iterator[tuple[int, int]]:
    """How many entries are looked at, of an index that may have many, and how many records are read meanwhile.

    As far as the records have what is asked for, the first rows come before all entries are known. If there turn out to
    be fewer than *most* entries, few records were read in vain, compared with all that are looked up.
    """
    entries = CAP
    while entries < most:
        yield entries, entries // (2 * SHARE) + 1
        entries *= _FACTOR
    yield most, sys.maxsize


class StagedScan(PickedScan):
    """As `PickedScan`, of an index that may have many entries: until that is known, records are read in their order.

    *found* has the keys, as long as nothing is written; of more than fit in memory *find* gives those in a range, if
    there are fewer entries than a number. From *most* entries on all records are read. *firsts* are lists of the first
    keys of all, where the index has them in the order of the records.
    """

    def __init__(
        self, table: Table[Any, Any], found: FoundKeys, find: Find, firsts: Iterable[Sequence[bytes]], lower: bytes,
        upper: bytes, most: int, *, reverse: bool, spaces: Collection[Optional[bytes]],
        beside: Collection[Optional[bytes]],
    ) -> None:  # fmt: skip
        super().__init__(table, (), lower, upper, reverse=reverse, find=find, spaces=spaces, beside=beside)
        self._found_keys, self._find, self._firsts, self._most = found, find, firsts, most
        self._lower, self._upper, self._reverse = lower, upper, reverse

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's pairs of key and value.

        Those of the first keys, then of all records, and then of those whose keys were found.
        """
        yield from self._first_pairs()
        if self._is_written():
            return
        scans = self._scans
        for entries, records in stages(self._most):
            if self._is_found(entries):
                break
            for _ in range(0, records, _BLOCK):
                size = min(records, _BLOCK)
                block = self._block(size)
                for pair in block:
                    if self._is_written():
                        break
                    self._at = pair
                    yield pair
                    scans.check()
                if len(block) < size or self._is_written():
                    yield from super().pairs()
                    return
        yield from super().pairs()

    def _first_pairs(self) -> Iterator[tuple[bytes, Any]]:
        """Those of the first keys; if something is written meanwhile, then all that follow."""
        for keys in self._firsts:
            self._keys = [key for key in keys if self._lower <= key < self._upper]
            yield from super().pairs()
            if self._is_written():
                return
            if self._keys and self._reverse:
                self._upper = self._keys[-1]
            elif self._keys:
                self._lower = self._keys[-1] + b"\0"
        self._keys = ()

    def _is_written(self) -> bool:
        """Whether something was written, so that what was read beforehand is of no use."""
        return self._scan is not None and self._scan.paused

    def _is_found(self, entries: int) -> bool:
        """Whether the keys of the other records are known, as there are fewer *entries*, or not wanted."""
        if self._is_written():
            return True
        lower, upper, reverse = self._lower, self._upper, self._reverse
        keys: Optional[Iterable[bytes]] = None
        if entries > KEYS:
            keys = self._find(lower, upper, entries, reverse=reverse)
        elif entries != CAP:  # that there are so many is known
            few = self._found_keys.fewer(entries)
            keys = None if few is None else sorted([key for key in few if lower <= key < upper], reverse=reverse)
        if keys is not None:
            self._keys, self._close_keys = keys, getattr(keys, "close", None)
        return keys is not None

    def _block(self, most: int) -> list[tuple[bytes, Any]]:
        """The next records of the range, which then begins behind them."""
        block = first_within(self._table, None, (self._lower, self._upper), self._reverse, most)
        if block and self._reverse:
            self._upper = block[-1][0]
        elif block:
            self._lower = block[-1][0] + b"\0"
        return block
