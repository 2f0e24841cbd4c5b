"""Looks up the records whose keys an index gave, in the order of the table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ... import errors
from ...handlers import let_through
from ...store.blocks import COUNTS_REFERENCES
from ..scan import Scan

if TYPE_CHECKING:
    from ..table import Table


_MANY = 64 if COUNTS_REFERENCES else sys.maxsize  # without counts a cursor would have to be closed
_PAGE = 16
"""Records that a page has, about."""


def by_cursor(table: Table[Any, Any], keys: Sequence[bytes]) -> Optional[Callable[[bytes], Any]]:
    """The ``get`` of a cursor over *table*, where that finds the records of *keys*, in order, faster than without one.

    If they are many, the next record is often on the page on which the cursor is, and it need not search the tree.
    Otherwise a cursor takes longer. In a read transaction.
    """
    if len(keys) > _MANY and len(keys) * _PAGE > table._entries():
        found: Callable[[bytes], Any] = table._raw.cursor(table._db).get
        return found
    return None


class PickedScan:
    """The records of *table* with the engine's *keys*, which are in order, backwards with *reverse*.

    In a write transaction it is a scan of ``lower <= key < upper`` that knows beforehand which records it has to look
    at: since any write may change that, it goes on as such a scan behind the record at which something was written.
    """

    any = True

    def __init__(
        self, table: Table[Any, Any], keys: Iterable[bytes], lower: bytes, upper: bytes, *, reverse: bool
    ) -> None:  # fmt: skip
        txn = table._txn
        self._table, self._keys = table, keys
        self._close_keys: Any = getattr(keys, "close", None)
        self._scans = txn._open_scans() if txn._scans is None else txn._scans
        self._scan = Scan(table, table._storage.space, None, lower, upper, reverse) if txn._write else None
        self._at: tuple[Optional[bytes], Any] = None, None

    def values(self) -> Iterator[Any]:
        """The stored bytes of the records."""
        return map(itemgetter(1), self.pairs())

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's pairs of key and value."""
        scan, table, scans = self._scan, self._table, self._scans
        for key in self._keys:
            if scan is not None and scan.paused:
                break
            get, handle = table._engine_getter()
            data = get(key, None, handle)
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
            scan._position = self._at[0]
            for pair in scan.rest():
                self._at = pair
                yield pair

    def current(self) -> tuple[Optional[bytes], Any]:
        """The engine's key and value of the record at which the iteration is."""
        return self._at

    def is_paused(self, error: Exception) -> bool:
        """False: it goes on by itself. Raises when the transaction has ended."""
        let_through(error)
        self._scans.check()
        return False

    def rest(self) -> Iterator[tuple[bytes, Any]]:
        """Nothing is left."""
        return iter(())

    def close(self) -> None:
        """Nothing more is asked of it."""
        if self._scan is not None:
            self._scan.close()
        if self._close_keys is not None:  # they are of a generator
            self._close_keys()
