"""Records the changes of a table, in the transaction that makes them: a follower of its storage."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

from .. import errors
from ..tables.storage import Storage
from ..tables.upkeep import Change, Written
from . import log
from .policy import Feed

if TYPE_CHECKING:
    from ..store.store import Store
    from ..store.transaction import Transaction

_NOTHING: Written = (0, 0)  # neither records nor index entries


class Present:
    """What a store knows of a feed in its current write transaction.

    *raw* is the engine's transaction or savepoint in which *number* was the last change. *outermost* is the
    transaction, if something waits for its end. *rung*: called after it has recorded changes.
    """

    def __init__(self) -> None:
        self.raw: Any = None
        self.number = 0
        self.time = 0
        self.outermost: Any = None
        self.rung: list[Callable[[], object]] = []

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
            for ring in self.rung:
                ring()


class Recorder:
    """Records the changes of one table; *keep* is the policy of its class."""

    def __init__(self, store: Store, space: bytes, keep: Optional[Feed]) -> None:
        self._space = space
        self._keep = None if keep is None or keep.keeps_all else keep
        self._present: Present = store.feeds.setdefault(space, Present())

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
        present, raw = self._present, txn._engine_txn
        number = present.next(txn, handle)
        try:
            log.append(raw, handle, number, log.encode(kind, raw.id(), present.time, key, old, new))
            if self._keep is not None:
                log.trim(raw, handle, self._keep, present.time, 2)  # of which there are fewer in the end
        except BaseException:
            present.raw = None
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
