"""Records as bytes under raw keys: the number of a slot, two bytes big-endian, and then the encoded key."""

from __future__ import annotations

from typing import Any

from .. import errors
from .catalogue import catalogue_of
from .scans import Written
from .transactionstate import TransactionState


class RawRecords(TransactionState):
    """The part of a `Transaction` that reads and writes raw records, as programs of zlmdb <= 26 do."""

    __slots__ = ()

    def id(self) -> int:
        """The number of the snapshot that this transaction reads, or of the one that it writes."""
        return self._engine_txn.id()

    def get(self, key: bytes) -> Any:
        """The stored bytes of the raw *key* (slot, u16 big-endian, then the encoded key); None if there are none."""
        raw = self._engine_txn
        self._store.check_key(key)
        try:
            return self._keep_view(raw.get(key, None, self._slots()))
        except Exception as error:
            self._fail(error, key=key)

    def put(self, key: bytes, data: bytes, overwrite: bool = True) -> bool:
        """Store *data* under the raw *key*; returns False and stores nothing if it exists and *overwrite* is false.

        Raises `EncodeError` for an empty or over-long key, `IndexNotAttached` if the table has indexes.
        """
        self._check_write()
        self._store.check_key(key)
        try:
            self._check_raw(key)
            self._tell(key)
            stored: bool = self._engine_txn.put(key, data, overwrite=overwrite, db=self._slots())
        except Exception as error:
            self._fail(error, key=key)
        self._count(int(stored), 0)
        return stored

    def delete(self, key: bytes) -> bool:
        """Delete the raw *key*; returns False if there was no such record. Refused as `put` is."""
        self._check_write()
        self._store.check_key(key)
        try:
            self._check_raw(key)
            self._tell(key)
            deleted: bool = self._engine_txn.delete(key, db=self._slots())
        except Exception as error:
            self._fail(error, key=key)
        self._count(0, int(deleted))
        return deleted

    def _check_raw(self, key: bytes) -> None:
        """Raise `IndexNotAttached` if the file records indexes, or other followers, for the slot of *key*."""
        store, era = self._store, self._era
        known, guarded = store.guarded
        if era is None or known != era:
            guarded = catalogue_of(store).guarded(self._engine_txn)
            store.guarded = era, guarded
        if key[:2] in guarded:
            raise errors.IndexNotAttached(
                f"the raw key {key[:40]!r} is in slot {int.from_bytes(key[:2], 'big')}, and the file records "
                f"{guarded[key[:2]]}, which a raw write would not update: write through the table or map"
            )
        if key[:2] == b"\0\0":  # the catalogue of a classic file
            self._catalogue_changed()

    def _tell(self, key: bytes) -> None:
        """Tell the scans of the space of raw keys that *key* is about to be written."""
        scans = self._scans
        if scans is not None:
            space = self._store.traits.slots
            scans.pause((space,))
            if scans.watches((space,)) and self._engine_txn.get(key, None, self._slots()) is None:
                scans.journal.append(Written(space, key, None, key))

    def _slots(self) -> Any:
        """The handle of the space of raw keys: the main one of a classic file, else the reserved one."""
        handle = self._handle(self._store.traits.slots)
        return None if handle is None else handle[0]
