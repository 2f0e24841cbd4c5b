"""Which records a loop by an index has to look at when its body writes, in a write transaction."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Optional

from ...store.scans import Written

if TYPE_CHECKING:
    from ..scan import Scan
    from ..table import Table

_BEGUN = Written(b"", b"", None, b"")  # of no space


class KeysAhead:
    """Which records of *table* a *scan* has to look at, by keys that indexes in *spaces* have just given for its range.

    The journal tells which entries are written from now on. It cannot tell what a savepoint that began earlier undoes:
    then, and when the table has other indexes, the keys are of no use any more.
    """

    __slots__ = ("_begun", "_mark", "_moved", "_scan", "_scans", "_spaces", "_state", "_table")

    def __init__(self, table: Table[Any, Any], scan: Scan, spaces: Collection[Optional[bytes]]) -> None:
        txn = table._txn
        scans = txn._open_scans()
        self._table, self._scan, self._scans, self._spaces = table, scan, scans, spaces
        for space in spaces:
            scans.watch(space, txn)
        self._state = table._index_state
        self._begun = len(scans.journal)
        scans.journal.append(_BEGUN)  # so that a savepoint that began earlier undoes it, and a later one does not
        self._mark = self._begun + 1
        scan._catch_up()
        self._moved: list[bytes] = []  # in order, each with an entry that was written since

    def close(self) -> None:
        """Nothing more is written down for it."""
        if self._scans and self._scans.ended is None:
            for space in self._spaces:
                self._scans.unwatch(space, self._table._txn)

    @property
    def are_known(self) -> bool:
        """Whether the keys tell which records may match."""
        return self._scans.journal[self._begun] is _BEGUN and self._table._index_state is self._state

    def rest(self, keys: Iterator[bytes], at: Optional[bytes]) -> Iterator[bytes]:
        """Those of *keys*, and of written records, that are behind *at* and not new, as long as they `are_known`."""
        journal, moved, scan = self._scans.journal, self._moved, self._scan
        first = -1 if scan._reverse else 0  # of those that moved
        key = next(keys, None)
        while self.are_known:
            if len(journal) != self._mark:
                self._catch_up(at)
            while key is not None and not self._is_behind(at, key):
                key = next(keys, None)
            if moved and (key is None or not self._is_behind(key, moved[first])):
                at = moved[first]
            elif key is None:
                return
            else:
                at = key
            while moved and moved[first] == at:
                del moved[first]
            if at not in scan._skipped:
                yield at

    def _is_behind(self, at: Optional[bytes], key: bytes) -> bool:
        """Whether the scan comes to *key* later than to *at*."""
        return at is None or (key < at if self._scan._reverse else key > at)

    def _catch_up(self, at: Optional[bytes]) -> None:
        """Note what was written since the last call to records behind *at*."""
        self._scan._catch_up()
        journal, scan, prefix = self._scans.journal, self._scan, self._table._storage.prefix
        for space, primary, _, new in journal[self._mark :]:  # `islice` would go through all of it
            key = prefix + primary
            is_within = scan._lower <= key < scan._upper and self._is_behind(at, key)
            if new is not None and space in self._spaces and is_within:
                insort(self._moved, key)
        self._mark = len(journal)
