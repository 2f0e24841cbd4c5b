"""The write transaction of a schema object, which begins and ends as fast as possible in Python."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Optional

from ..handlers import let_through
from ..locks import monotonic as _clock
from .access import CLOSED, LOCKS, NO_READER, NOBODY, closed, lock_of
from .blocks import COUNTS_REFERENCES
from .lockfile import BUSY, OTHERS
from .pool import HELD, IN_LOOP, is_free, references
from .transaction import Transaction

_get_ident = threading.get_ident


class SchemaWrite(Transaction):
    """A `Transaction` that writes for a schema object, without the steps that it does not need.

    That is, if nobody else writes and nothing else is to be done; all other cases are left to `Transaction`.
    """

    __slots__ = ()

    def _begin(self) -> None:
        store: Any = self._store  # without an environment the fast way fails, and the other way is gone
        unit = self._unit
        now = _clock()
        self._thread = thread = _get_ident()
        unit.exit = unit.other  # so that only the statement, if there is one, has the method that it got
        watch = unit.watch
        if watch() is not None:
            self._block = watch
        self._in_with = self._block is not None
        self._since = now
        try:
            quiet = store.quiet
            gate = None
            if now >= quiet.writes:
                if now < quiet.gated_writes:
                    gate = quiet.gate
                if gate is None:
                    super()._begin()
                    return
            writer = store.writer
            hold: Any = self._hold
            alone = writer.alone
            if alone is None or writer._next is not None:
                taken = writer.take(hold, thread)
            else:  # as `WriterLock.take`, without the call
                hold.thread = thread
                hold.turn = None
                taken = writer._claims.setdefault(0, hold) is hold
                if taken:
                    alone[BUSY] = 1
                    if alone[OTHERS]:
                        writer.release(hold)
                        taken = False
            if not taken:
                super()._begin()
                return
            self._turn = None
            self._puts = self._dels = 0
            if gate is not None:
                gate.admit(self)
            try:
                self._raw = raw = store.env.begin(None, None, True)
            except Exception as error:
                let_through(error)
                self._begin_engine(store)  # again, and mends what can be mended
                self._raw = raw = self._held[-1]
            if store.sequence != self._sequence:
                self._forget_handles(store.sequence)
            snapshot, era = store._era
            self._era = era = era if snapshot == raw.id() - 1 else store.era_to_write(raw)
            self._owner = owner = LOCKS.get(thread) or lock_of(thread)
            aimed = self._aimed
            if aimed:
                if era != self._seen_era:
                    self._aim_tables()
                    return
                for table, handle, handles in aimed:
                    if references(table) != IN_LOOP and not is_free(table, HELD):
                        self._let_go()
                        self._part_with_tables()
                        break
                    table._raw = raw
                    table._get = get = raw.get
                    table._reader = get, handle
                    table._writer = owner, self, raw, handle, False, handles
            elif unit.tables:
                self._part_with_tables()
        except BaseException as error:
            raw = get = None  # see `_roll_back`
            if self._since:
                self._clear()
                if isinstance(error, Exception):
                    store.fail(error)
            raise

    def _leave(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """The end of the ``with`` block."""
        raw = self._raw
        store: Any = self._store
        if self._odd or kind is not None or raw is None or store.limited or _get_ident() != self._thread:
            del raw  # see `_roll_back`
            if kind is not None or not self._commit_inside():
                super()._leave(kind, error, trace)
                return
        else:
            try:
                if (self._puts or self._dels) and self._era is not None:
                    snapshot, era = store._era
                    store._era = snapshot + 1, era  # before others read it: as `Store.goes_on`
                raw.commit()
            except BaseException as failure:  # also what a signal raises when it came while the disk was at work
                self._commit_failed(raw, failure)
        # As `_end`, which does all of it once more after an interrupt.
        self._raw = None
        for table, _, _ in self._aimed:
            table._raw = CLOSED
            table._get = closed
            table._reader = NO_READER
            table._writer = NOBODY
        unit = self._unit
        if self._held:
            self._held.clear()
        writer = store.writer
        if writer.alone is None:
            writer.release(self._hold)
        else:  # as `WriterLock.release`, without the call
            writer.alone[BUSY] = 0
            del writer._claims[0]
            if writer._waiters:
                writer.wake_next()
        self._since = 0.0
        if store.at_rest is not None:
            store.rest()
        block = self._block
        if block is not None:
            self._block = None
            if block is unit.watch:
                unit.exit = block()
                release = unit.release
                release(unit)
            else:
                unit.give_back()

    def _commit_inside(self) -> bool:
        """Commit, and leave the gate, if there is nothing else to end. Whether it is so."""
        raw, gate = self._raw, self._odd
        if raw is None or isinstance(gate, bool) or _get_ident() != self._thread:
            return False
        store: Any = self._store
        try:
            if self._puts and store.limited and _clock() >= store.quiet.roomy:
                store.require_room(raw, self._sequence, {}, self._since)
            if (self._puts or self._dels) and self._era is not None:
                snapshot, era = store._era
                store._era = snapshot + 1, era
            raw.commit()
        except BaseException as failure:
            self._commit_failed(raw, failure)
        gate.leave(self)
        self._odd = False
        return True


WriteTransaction: type[Transaction] = SchemaWrite if COUNTS_REFERENCES else Transaction
"""Elsewhere only what `Transaction` does is sure to end."""
