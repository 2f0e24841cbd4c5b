"""Records the changes of a table, in the transaction that makes them: a follower of its storage."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

from .. import errors
from ..tables.storage import Storage
from ..tables.upkeep import Change, Written
from . import log
from .doorbell import Doorbell
from .policy import Feed

if TYPE_CHECKING:
    from ..store.store import Store
    from ..store.transaction import Transaction

_NOTHING: Written = (0, 0)  # neither records nor index entries


class Present:
    """What a store knows of a feed in its current write transaction.

    *raw* is the engine's transaction or savepoint in which *number* was the last change. *outermost* is the
    transaction, if `ended` is called at its end. *bell* wakes those who wait for changes; *topic* is the table's slot.
    """

    def __init__(self, store: Store, topic: int) -> None:
        engine = store.engine
        self.bell = Doorbell(engine.file, topic, shared=engine.path is not None)
        self.raw: Any = None
        self.number = 0
        self.time = 0
        self.outermost: Any = None

    def next(self, txn: Transaction, handle: Any) -> int:
        """The number of the next change in *txn*."""
        raw = txn._engine_txn
        if raw is not self.raw:  # it begins, or a savepoint has ended, with or without its changes
            self.number = log.last(raw, handle)
            self.raw = raw
            if txn._outermost is not self.outermost:
                self.outermost = txn._outermost
                self.time = time.time_ns() // 1000
                txn._hooks.append(self.ended)
        self.number += 1
        return self.number

    def ended(self, kept: bool) -> None:
        """The transaction is stored, or the savepoint is undone in which the first change was."""
        self.raw = self.outermost = None
        if kept:
            self.bell.ring()


def present(store: Store, space: bytes, topic: int) -> Present:
    """What *store* knows of the feed in *space*."""
    found: Optional[Present] = store.feeds.get(space)
    return store.feeds.setdefault(space, Present(store, topic)) if found is None else found


class Recorder:
    """Records the changes of one table with the slot *topic*; *keep* is the policy of its class."""

    def __init__(self, store: Store, space: bytes, topic: int, keep: Optional[Feed]) -> None:
        self._space = space
        self.keep = None if keep is None or keep.keeps_all else keep
        self._present = present(store, space, topic)

    def plan(self, txn: Transaction, change: Change) -> Callable[[], Written]:
        """The write that records *change*."""
        table, raw = change.table, txn._engine_txn
        handle, stored = self._handle(txn, table), txn._handle(table.space)
        old = None
        if change.old is not None and stored is not None:
            old = bytes(raw.get(table.prefix + change.primary, None, stored[0]))

        def write() -> Written:
            kind = log.DELETE if change.new is None else log.PUT
            self._record(txn, handle, kind, change.primary, old, change.data)
            return _NOTHING

        return write

    def cleared(self, txn: Transaction, table: Storage[Any, Any], count: int) -> Written:
        """Record that all *count* records of the table are deleted."""
        if count:
            self._record(txn, self._handle(txn, table), log.CLEAR, b"", count.to_bytes(8, "big"), None)
        return _NOTHING

    def _record(
        self, txn: Transaction, handle: Any, kind: int, key: bytes, old: Optional[bytes], new: Optional[bytes]
    ) -> None:  # fmt: skip
        known, raw = self._present, txn._engine_txn
        number = known.next(txn, handle)
        try:
            log.append(raw, handle, number, log.encode(kind, raw.id(), known.time, key, old, new))
            if self.keep is not None:
                log.trim(raw, handle, self.keep, known.time, 2)  # of which there are fewer in the end
        except BaseException:
            known.raw = None
            raise

    def _handle(self, txn: Transaction, table: Storage[Any, Any]) -> Any:
        found = txn._handle(self._space)
        if found is None:
            raise errors.SchemaMismatch(
                f"table {table.name!r}: another program has dropped its change feed from the file: open the database "
                f"again, with its schema, which begins a new one",
                table=table.name,
            )
        return found[0]
