"""A position in the records of one keyspace in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Optional

from .records import ENDED, KeyspaceHandle, Records, as_bytes

if TYPE_CHECKING:
    from .transaction import MemoryTransaction


class MemoryCursor:
    """A position in one keyspace, as a key: if its record is deleted, it stays between the neighbours.

    `next` then goes to the following record and `prev` to the preceding one. Accessing `key` or `value` there moves the
    cursor to the following record, as LMDB does. After a failed move the cursor has no position for `key`, `value` and
    the iterators; continue with `first`, `last` or `set_range`.
    """

    __slots__ = ("_at", "_db", "_here", "_key", "_reverse", "_stamp", "_txn", "_walk")

    def __init__(self, txn: MemoryTransaction, db: KeyspaceHandle) -> None:
        self._txn: Optional[MemoryTransaction] = txn
        self._db = db
        self._key: Optional[bytes] = None
        self._here = False  # whether the cursor stands on the record of _key
        # The walk of the last step, good while the cursor is _at where that step left it and the keys have that stamp.
        self._walk: Iterator[bytes] = iter(())
        self._at: Optional[bytes] = None
        self._stamp = 0
        self._reverse = False
        self._records()

    def _records(self) -> Records:
        return ENDED[self._db] if self._txn is None else self._txn.spaces[self._db]

    def _go(self, key: Optional[bytes]) -> bool:
        self._here = key is not None
        if key is not None:
            self._key = key
        return self._here

    def first(self) -> bool:
        """Go to the first record; False if there is none."""
        keys = self._records().keys
        return self._go(keys[0] if len(keys) else None)

    def last(self) -> bool:
        """Go to the last record; False if there is none."""
        keys = self._records().keys
        return self._go(keys[-1] if len(keys) else None)

    def next(self) -> bool:
        """Go to the following record (without a position, the first); False at the end. O(1) while no key changes."""
        return self._step(False) if self._key is not None else self.first()

    def prev(self) -> bool:
        """Go to the preceding record (without a position, the last); False at the start. O(1) while no key changes."""
        return self._step(True) if self._key is not None else self.last()

    def _step(self, reverse: bool) -> bool:
        records = self._records()
        key = self._key
        if key is None or key is not self._at or records.stamp != self._stamp or reverse is not self._reverse:
            self._walk = records.walk(key or b"", reverse)
            self._stamp = records.stamp
            self._reverse = reverse
        self._at = next(self._walk, None)
        return self._go(self._at)

    def set_range(self, key: bytes, /) -> bool:
        """Go to the first record whose key is *key* or greater; False if there is none. O(log n)."""
        wanted = as_bytes(key)
        found = next(self._records().keys.irange(minimum=wanted), None)
        self._key = wanted
        return self._go(found)

    def get(self, key: bytes, default: Any = None) -> Any:
        """The value of *key*, to which it goes, or *default*."""
        wanted = as_bytes(key)
        value = self._records().values.get(wanted)
        if value is not None:
            self._go(wanted)
            return self._give(value)
        self._go(None)
        if self._txn is not None:
            self._txn._env.check_key(wanted, reading=True)
        return default

    def _current(self) -> Optional[bytes]:
        records = self._records()
        if self._here and self._key is not None and self._key not in records.values:
            self._go(next(records.walk(self._key, False), None))
        return self._key if self._here else None

    def key(self) -> Any:
        """The key at the position."""
        key = self._current()
        return self._give(b"" if key is None else key)

    def value(self) -> Any:
        """The value at the position."""
        key = self._current()
        return self._give(b"" if key is None else self._records().values[key])

    def _give(self, data: bytes) -> Any:
        return data if self._txn is None or not self._txn.buffers else self._txn.lend(data)

    def putmulti(
        self, items: Iterable[tuple[bytes, bytes]], dupdata: bool = True, overwrite: bool = True, append: bool = False
    ) -> tuple[int, int]:
        """Store many records: how many were consumed, and how many of them added or replaced.

        Those not stored exist already (*overwrite* false) or do not come after the last key (*append*).
        """
        self._records()
        if self._txn is None:
            return 0, 0  # not reached: _records has raised
        consumed = stored = 0
        for item in items:
            if type(item) is not tuple or len(item) != 2:
                raise TypeError(f"putmulti takes tuples of key and value, not {type(item).__name__}")
            consumed += 1
            if self._txn.store(item[0], item[1], overwrite, append, self._db):
                stored += 1
                self._go(as_bytes(item[0]))
        return consumed, stored

    def iternext(self, keys: bool = True, values: bool = True) -> Any:
        """Records from here on (from the first one when nowhere), in order: pairs, keys or values.

        Sees what its own transaction inserts ahead. O(1) a record while no key changes, else O(log n).
        """
        return self._iterate(False, keys, values) if self._here or self.first() else iter(())

    def iterprev(self, keys: bool = True, values: bool = True) -> Any:
        """Records from here backwards (from the last one when nowhere): pairs, keys or values."""
        return self._iterate(True, keys, values) if self._here or self.last() else iter(())

    def _iterate(self, reverse: bool, keys: bool, values: bool) -> Iterator[Any]:
        rows = self._rows(reverse, keys, values)
        txn = self._txn
        if txn is None or not txn.buffers:
            return rows
        return map(txn.lend_pair if keys and values else txn.lend, rows)

    def _rows(self, reverse: bool, keys: bool, values: bool) -> Iterator[Any]:
        # One flat loop, because most scans spend their time here; the outer one restarts it after a change.
        key = self._current()
        txn, db = self._txn, self._db
        walk: Iterator[bytes] = iter(() if key is None else (key,))
        begun = False
        while txn is not None:
            records = self._records()
            stamp, found = records.stamp, records.values
            for key in walk:
                self._key = key
                if not values:
                    yield key
                elif keys:
                    yield key, found[key]
                else:
                    yield found[key]
                if self._key is not key or records.stamp != stamp or txn.spaces[db] is not records:
                    break
            else:
                if begun:
                    self._here = False
                    return
            begun = True
            walk = self._records().walk(self._key or b"", reverse)

    def close(self) -> None:
        """Release the cursor; safe to call twice."""
        self._txn = None
        self._key = None
