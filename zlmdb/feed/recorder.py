"""Records the changes of a table, in the transaction that makes them: a follower of its storage."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
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

    *raw* is the engine's transaction or savepoint in which *number* was the last change; *handle* and *table* are the
    handles of feed and table there, *id* its number. *outermost* is the transaction at whose end `ended` is called.
    *bell* wakes those who wait for changes; *topic* is the table's slot.

    For feeds that do not keep all changes, once it was asked for: *first*, the number of the first change, *oldest*,
    when that was made, and *acknowledged*, the last one that all consumers have acknowledged, or any before *first*.
    *slowest* is the consumer that had acknowledged fewest changes when all were read.
    """

    def __init__(self, store: Store, topic: int) -> None:
        engine = store.engine
        self.bell = Doorbell(engine.file, topic, shared=engine.path is not None)
        self.raw: Any = None
        self.handle: Any = None
        self.table: Any = None
        self.id = self.number = self.time = 0
        self.outermost: Any = None
        self.first: Optional[int] = None
        self.oldest: Optional[int] = None
        self.acknowledged: Optional[int] = None
        self.slowest = ""

    def aim(self, txn: Transaction, space: bytes, table: Storage[Any, Any]) -> None:
        """*txn* begins, or a savepoint in it has begun or ended, with or without its changes."""
        raw, found, stored = txn._engine_txn, txn._handle(space), txn._handle(table.space)
        if found is None or stored is None:
            raise errors.SchemaMismatch(
                f"table {table.name!r}: another program has dropped its change feed from the file: open the database "
                f"again, with its schema, which begins a new one",
                table=table.name,
            )
        (self.handle,), (self.table,) = found, stored
        self.number, self.id = log.last(raw, self.handle), raw.id()
        self.first = self.oldest = self.acknowledged = None
        if txn._outermost is not self.outermost:
            self.time = log.now()
            txn._hook(self.ended)  # first: an interrupt may come, and to ring twice does no harm
            self.outermost = txn._outermost
        self.raw = raw

    def ended(self, kept: bool) -> None:
        """The transaction is stored, or the savepoint is undone in which the first change was."""
        if kept:  # the next one may be writing by now: what is known belongs to that
            self.bell.ring()
        else:
            self.raw = self.outermost = None


def present(store: Store, space: bytes, topic: int) -> Present:
    """What *store* knows of the feed in *space*."""
    found: Optional[Present] = store.feeds.get(space)
    return store.feeds.setdefault(space, Present(store, topic)) if found is None else found


class Recorder:
    """Records the changes of one table with the slot *topic*; *keep* is the policy of its class."""

    def __init__(self, store: Store, space: bytes, topic: int, keep: Optional[Feed]) -> None:
        self._space = space
        self.keep = None if keep is None or keep.keeps_all else keep
        self._age = keep.max_age // timedelta(microseconds=1) if keep is not None and keep.max_age is not None else None
        self.present = present(store, space, topic)

    def plan(self, txn: Transaction, change: Change) -> Callable[[], Written]:
        """The write that records *change*."""
        known, raw, key = self.present, txn._raw, change.primary
        if raw is not known.raw:
            known.aim(txn, self._space, change.table)
        old = None if change.old is None else bytes(raw.get(change.table.prefix + key, None, known.table))
        return partial(self.record, key, old, change.data)

    def cleared(self, txn: Transaction, table: Storage[Any, Any], count: int) -> Written:
        """Record that all *count* records of the table are deleted."""
        if count:
            if txn._raw is not self.present.raw:
                self.present.aim(txn, self._space, table)
            self.record(b"", count.to_bytes(8, "big"), None, log.CLEAR)
        return _NOTHING

    def aim(self, table: Any) -> None:
        """The bound *table*, whose changes are recorded, is about to write in a transaction that has not yet."""
        self.present.aim(table._txn, self._space, table._storage)

    def record(self, key: bytes, old: Optional[bytes], new: Optional[bytes], kind: int = 0) -> Written:
        """Record a change in the transaction that was aimed at: of the record *key*, whose value was *old*.

        Without a *kind* it was put, or deleted where *new* is None.
        """
        known = self.present
        try:
            known.number += 1
            data = log.encode(kind or (log.DELETE if new is None else log.PUT), known.id, known.time, key, old, new)
            log.append(known.raw, known.handle, known.number, data)
            if self.keep is not None:
                self._trim(self.keep)
        except BaseException:
            known.raw = None
            raise
        return _NOTHING

    def _trim(self, keep: Feed) -> None:
        """As `log.trim` of two changes, so that there are fewer in the end; without reading what is known already."""
        known, age = self.present, self._age
        raw, handle, first = known.raw, known.handle, known.first
        if first is None:
            first = known.first = (log.removed(raw, handle) or 0) + 1
        bound = 0 if keep.max_count is None else known.number - keep.max_count
        if keep.acknowledged:
            if known.acknowledged is None:
                known.acknowledged = self._acknowledged(raw, handle, first)
            bound = max(bound, known.acknowledged)
        expired = None if age is None else known.time - age
        if first > bound:
            if expired is None:
                return
            if known.oldest is None:
                known.oldest = log.time_of(raw, handle, first)
            if known.oldest >= expired:
                return
        known.first = first + log.remove(raw, handle, first, known.number, bound, expired, 2)
        known.oldest = None

    def _acknowledged(self, raw: Any, handle: Any, first: int) -> int:
        """The last change that all consumers have acknowledged, or one before *first*, as nothing is removed then.

        As long as the one that was last stays where it is, it alone is read.
        """
        known = self.present
        if known.slowest:
            number = log.position(raw, handle, known.slowest)
            if number is not None and number < first:
                return number
        number, known.slowest = log.acknowledged_by_all(raw, handle)
        return number
