"""The read transaction of a schema object, which begins and ends as fast as possible in Python."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any, Optional

from .blocks import COUNTS_REFERENCES
from .ended import CLOSED, closed
from .pool import IN_LOOP, is_free, references
from .transaction import Transaction
from .transactionend import MOST_KEPT

_get_ident = threading.get_ident
_clock = time.monotonic


class Snapshot(Transaction):
    """A `Transaction` that reads for a schema object, without the steps that it does not need.

    In a loop of small transactions these steps take most of the time, and each program uses the same few tables in all
    of them. So the tables that the previous block used are re-aimed at once, if they are few: they then are attributes
    of the schema object. All uncommon cases are left to `Transaction`.
    """

    __slots__ = ()

    def _begin(self) -> None:
        store: Any = self._store  # without an environment the fast way fails, and the other way is gone
        self._in_with = False
        self._since = now = _clock()
        self._thread = _get_ident()
        sequence = store.sequence
        try:
            if store.gate is not None:
                super()._begin()
                sequence = self._sequence
            else:
                try:
                    self._raw = store.env.begin()
                except Exception:
                    super()._begin()  # mends what can be mended
                    sequence = self._sequence
            if sequence != self._sequence:
                self._forget_handles(sequence)
            for table in self._tables.values():
                if references(table) != IN_LOOP and not is_free(table, 3):
                    self._let_go()
                    break
                table._aim()
        except BaseException:
            self._clear()
            raise
        if now >= store.ages.look_at:
            store.look_at_reads(now)

    def _leave(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """The end of the ``with`` block."""
        try:
            raw = self._raw
            if raw is None or self._hooks or self._error is not None:
                super()._leave(kind, error, trace)
            else:
                raw.abort()
                self._end()
        except BaseException as failure:
            if not isinstance(failure, Exception):
                self._clear()
            elif self._raw is not None:
                self._commit_failed(self._raw, failure)
            raise

    def _end(self) -> None:
        self._raw = None
        tables, store, since = self._tables, self._store, self._since
        if self._scans is not None:
            self._scans.end(CLOSED)
            self._scans = None
        if tables:
            for table in tables.values():
                table._raw = CLOSED
                table._get = closed
        if self._mixed or len(tables) > MOST_KEPT:
            self._let_go()
        if store.gate is not None:
            store.gate.leave(self)
        if _clock() - since > store.ages.limit and since:
            store.ages.ended(self)
        self._since = 0.0
        if store.at_rest is not None:
            store.rest()
        self._block = None
        if since:  # once
            unit = self._unit
            unit.release(unit)

    if COUNTS_REFERENCES:  # the method that a `with` statement holds is counted: to watch it takes longer
        _exit_of_schema = _leave

        def _end_if_over(self) -> None:
            """The unit finds out whether anybody has the transaction."""
