"""The read transaction of a schema object, which begins and ends as fast as possible in Python."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any, Optional

from ..handlers import let_through
from ..locks import monotonic as _clock
from ..missingattributes import say_more
from .access import CLOSED, NO_READER, closed
from .blocks import COUNTS_REFERENCES
from .pool import HELD, IN_LOOP, is_free, references
from .transaction import Transaction
from .transactionend import MOST_KEPT

_get_ident = threading.get_ident


class SchemaRead(Transaction):
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
        try:
            quiet = store.quiet
            if now < quiet.reads or (now < quiet.gated_reads and quiet.gate.admit(self)):
                sequence = store.sequence  # it may have waited at the gate
                try:
                    self._raw = raw = store.env.begin()
                except Exception as error:
                    let_through(error)
                    super()._begin()  # mends what can be mended
                    raw = self._raw
                    sequence = self._sequence
                if sequence != self._sequence:
                    self._forget_handles(sequence)
            else:
                super()._begin()
                raw = self._raw
            aimed = self._aimed
            if aimed:
                snapshot = raw.id()
                if snapshot != self._seen:
                    latest, era = store._era  # as `Store.era_of`, without the call
                    if era != self._seen_era or not store._era_first <= snapshot <= latest:
                        self._aim_tables()
                        return
                    self._seen = snapshot
                for table, handle in aimed:
                    if references(table) != IN_LOOP and not is_free(table, HELD):
                        self._let_go()
                        self._part_with_tables()
                        break
                    table._raw = raw
                    table._get = get = raw.get
                    table._reader = get, handle
            elif self._unit.tables:
                self._part_with_tables()
        except BaseException:
            self._clear()
            raise

    def _leave(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """The end of the ``with`` block."""
        try:
            if error is not None:
                say_more(error, self._tables.values())
            raw = self._raw
            if raw is None or self._odd:
                odd: Any = self._odd
                if raw is None or odd is True:
                    super()._leave(kind, error, trace)
                    return
                raw.abort()  # there is nothing else but a gate
                self._raw = None
                odd.leave(self)
                self._odd = False
            else:
                raw.abort()
                self._raw = None
            for table, _ in self._aimed:
                table._raw = CLOSED
                table._get = closed
                table._reader = NO_READER
            store, since = self._store, self._since
            if _clock() - since > store.ages.limit or store.at_rest is not None:
                self._end()
                return
            self._since = 0.0
            self._block = None
            unit = self._unit
            release = unit.release
            release(unit)
        except BaseException as failure:
            if not isinstance(failure, Exception):
                self._clear()
            elif self._raw is not None:
                self._commit_failed(self._raw, failure)
            raise

    def _end(self) -> None:
        self._raw = None
        for table in self._tables.values():
            table._raw = CLOSED
            table._get = closed
            table._reader = NO_READER
        if self._odd:
            if self._mixed or len(self._tables) > MOST_KEPT:
                self._let_go()
            self._end_oddities()
        store, since = self._store, self._since
        if _clock() - since > store.ages.limit and since:
            store.ages.ended(self)
        self._since = 0.0
        self._block = None
        if store.at_rest is not None:
            store.rest()
        if since:  # once
            unit = self._unit
            unit.release(unit)

    if COUNTS_REFERENCES:  # the method that a `with` statement holds is counted: to watch it takes longer

        def _end_if_over(self) -> None:
            """The unit finds out whether anybody has the transaction."""
