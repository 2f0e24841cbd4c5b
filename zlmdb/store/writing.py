"""The write transaction of a schema object, which begins and ends as fast as possible in Python."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Optional

from ..handlers import let_through
from .blocks import COUNTS_REFERENCES
from .ended import CLOSED, closed
from .ownership import NOBODY, lock_of
from .pool import IN_LOOP, is_free, references
from .transaction import Transaction

_get_ident = threading.get_ident
_clock = time.monotonic


class SchemaWriting(Transaction):
    """A `Transaction` that writes for a schema object, without the steps that it does not need.

    That is, if nobody else writes and nothing else is to be done; all other cases are left to `Transaction`.
    """

    __slots__ = ()

    def _begin(self) -> None:
        store: Any = self._store  # without an environment the fast way fails, and the other way is gone
        self._in_with = self._block is not None
        self._since = now = _clock()
        self._thread = thread = _get_ident()
        try:
            if now >= store.quiet.writes or not store.writer.take(self._hold, thread):
                super()._begin()
                return
            held = self._held
            self._turn = None
            self._puts = self._dels = 0
            try:
                held.append(store.env.begin(None, None, True))
            except Exception as error:
                let_through(error)
                self._begin_engine(store)  # again, and mends what can be mended
            self._raw = raw = held[-1]
            if store.sequence != self._sequence:
                self._forget_handles(store.sequence)
            snapshot, era = store._era
            self._era = era = era if snapshot == raw.id() - 1 else store.era_to_write(raw)
            self._owner = owner = lock_of(thread)
            tables = self._tables
            if tables:
                self._unit.names.update(tables)
                for table in tables.values():
                    if references(table) != IN_LOOP and not is_free(table, 3):
                        self._let_go()
                        break
                    if table._steady and table._generated and table._era == era:
                        table._raw = raw
                        table._get = get = raw.get
                        table._put = put = raw.put
                        table._delete = delete = raw.delete
                        table._growing = True
                        table._watched = False
                        table._writer = owner, get, put, delete, table._db, False, table._handles
                    else:
                        table._aim()
        except BaseException as error:
            raw = get = put = delete = None  # see `_roll_back`
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
            super()._leave(kind, error, trace)
            return
        try:
            raw.commit()
        except BaseException as failure:  # also what a signal raises when it came while the disk was at work
            self._commit_failed(raw, failure)
        if (self._puts or self._dels) and self._era is not None:
            snapshot, era = store._era
            store._era = snapshot + 1, era
        # As `_end`, which does all of it once more after an interrupt.
        self._raw = None
        for table in self._tables.values():
            table._raw = CLOSED
            table._get = table._put = table._delete = closed
            table._writer = NOBODY
        unit = self._unit
        unit.names.clear()
        self._held.clear()
        store.writer.release(self._hold)
        self._since = 0.0
        if store.at_rest is not None:
            store.rest()
        if self._block is not None:
            self._block = None
            unit.release(unit)


SchemaWriter: type[Transaction] = SchemaWriting if COUNTS_REFERENCES else Transaction
"""Elsewhere only what `Transaction` does is sure to end."""
