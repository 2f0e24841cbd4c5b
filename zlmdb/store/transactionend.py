"""The end of a transaction: of its block, after an interrupt, or when nothing refers to it any more."""

from __future__ import annotations

import threading
import warnings
import weakref
from contextlib import suppress
from typing import Any, Optional

from ..locks import monotonic as _clock
from ..locks import undisturbed
from .access import CLOSED, NO_READER, NOBODY, closed
from .blocks import Leave, is_over
from .holds import is_alive
from .pool import HELD, is_free
from .savepoints import Savepoints
from .store import Store
from .transactionstate import undone

_get_ident = threading.get_ident
MOST_KEPT = 2
"""So many tables, bound in one transaction of a schema object, are aimed at the start of the next one."""


class TransactionEnd(Savepoints):
    """The part of a `Transaction` that ends it, in whatever state it is."""

    # The object may be used for one transaction after another. What is said of an end is undone step by step, each of
    # which may be done again: an interrupt can come between any two, and then `_clear` does all of them once more.

    __slots__ = ()

    def _end(self) -> None:
        """Release everything that was held for the engine's transaction, which has ended."""
        self._raw = None
        tables, store, unit = self._tables, self._store, self._unit
        if self._odd:
            self._end_oddities()
        for table in tables.values():  # what `_end` of a table does, without the calls
            table._raw = CLOSED
            table._get = closed
            table._reader = NO_READER
            table._writer = NOBODY
        if unit is None:
            tables.clear()
        elif self._mixed or len(tables) > MOST_KEPT:
            self._let_go()
        if self._hold is not None:
            self._held.clear()
            store.writer.release(self._hold)
        elif _clock() - self._since > store.ages.limit:
            store.ages.ended(self)
        self._since = 0.0
        if store.at_rest is not None:
            store.rest()
        if self._stats is not None:
            self._stats._freeze()
        if self._block is not None:
            self._block = None
            if unit is not None:
                unit.give_back()

    def _roll_back(self) -> None:
        """Abort the engine's transaction, to which nothing refers any more: see `Engine.abort`. Then `_end` is due."""
        if self._scans is not None:
            with suppress(Exception):
                self._scans.pause()  # it closes their cursors
        if self._views:
            self._release_views()
        for table in self._tables.values():
            table._end(CLOSED)
        held = self._held
        if not held:  # where an interrupt leaves it for `_clear`, while a traceback may keep what this frame has
            held.append(self._raw)
        self._raw = None
        self._store.engine.abort(held)

    def _end_oddities(self) -> None:
        """End what few transactions have. Whoever gives this one such a thing sets *_odd* before."""
        if self._scans is not None:
            self._scans.end(CLOSED)
            self._scans = None
            self._look_at_tables()
        self._index_hooks.clear()
        self._edited.clear()  # an interrupt may have left something in it
        if self._views:
            self._release_views()
        if self._store.gate is not None:
            self._store.gate.leave(self)
        self._error = self._told = self._deferred = None
        if self._hooks:
            self._hooks = []
        self._odd = False

    def _let_go(self) -> None:
        """Drop the references to bound tables."""
        self._unit.names.clear()  # first: an attribute that is there is taken to be one of the tables
        self._tables.clear()
        self._aimed.clear()
        self._mixed = False

    def _part_with_tables(self, free: bool = False) -> None:
        """Give the tables that the program keeps of an earlier transaction another one, which has ended.

        What is done with them would else reach this one, which may even be of another thread. If *free*, do so with
        those that nobody has, too: they refer to their views, which refer to them, until the collector comes. The
        caller has let go of the tables. Those that stay are had by who binds them next, and by nobody else.
        """
        unit = self._unit
        ended: Any = None
        for name in list(unit.tables):
            table = unit.tables[name]
            if free or not is_free(table):
                if ended is None:
                    ended = type(self)(self._store, self._write)
                    ended._thread = self._thread
                table._txn = ended
                del unit.tables[name]
        if ended is not None:
            unit.look_at_tables()

    def _aim_tables(self) -> None:
        """Aim the bound tables of the schema object, and find out whether the quick way serves them next time."""
        tables, self._seen, self._seen_era = self._tables, -1, -1
        for table in tables.values():
            if not is_free(table, HELD):
                self._let_go()
                self._part_with_tables()
                return
            table._aim()
        # Afterwards: what one of them finds out may concern another. A comprehension would be a call.
        write, quick = self._write, True
        eras: set[int] = set()
        now: list[Any] = []
        for table in tables.values():
            now.append((table, table._db, table._handles) if write else (table, table._db))  # as `Schema` binds it
            quick = quick and table._steady and (table._generated or not write)
            if table._checked:
                eras.add(table._era)
        self._aimed[:] = now
        if quick and -1 not in eras:
            self._seen = snapshot = self._raw.id()
            era = self._store.era_of(snapshot - self._write)
            if era is not None and eras <= {era}:
                self._seen_era = era

    def _release_views(self) -> None:
        for view in self._views:
            with suppress(BufferError):  # something else still points into it
                view.release()
        self._views.clear()

    def _forget(self) -> None:
        """Nothing is stored: call no hooks but those that ask for that, and count nothing."""
        if self._hooks:
            undone(self._hooks)
            self._hooks.clear()
        self._undo((0, 0, 0, 0))

    # -- what an interrupt left open ------------------------------------------------------------------------------

    def _left(self, block: weakref.ref[Leave]) -> None:
        """End what an interrupt left open, after the ``with`` statement dropped the block."""
        if self._block is block and self._since and (self._in_with or not self._write):
            self._clear()

    def _is_over(self) -> bool:
        return self._in_with and is_over(self)

    def _end_if_over(self) -> None:
        """End if the block is over without having ended, or if nothing refers to the transaction.

        Where references are not counted, the collector has just run.
        """
        over = (self._in_with or not self._write) and is_over(self, collected=True)
        unit = self._unit
        if not over and unit is not None and self._block is None:
            over = unit.is_unheld()
        if over:
            self._clear()

    def _clear(self) -> None:
        """End, in whatever state. The thread of a write transaction does so itself, as long as it lives."""
        # LMDB lets only the thread that began a write transaction end it.
        foreign = self._write and self._thread != _get_ident() and self._turn is None
        foreign = foreign and not self._abandons
        if foreign and is_alive(self._thread) and self._hold is not None:
            self._hold.kept = self
        else:
            self._abandon()

    def _clear_begun(self) -> None:
        """End, where the block is not entered after all."""
        if self._since:
            self._clear()

    def _abandon(self) -> None:
        """Abort, from a finaliser: the memory engine must not wait for its lock, which a frame below may hold."""
        with undisturbed:  # else an interrupt could release the writer lock while the engine's transaction goes on
            self._abandon_now()

    def _abandon_now(self) -> None:
        try:
            try:
                self._forget()
                self._abort_raw()
            finally:
                self._abort_raw()  # another interrupt may have come before
        finally:
            self._outer.clear()
            self._held.clear()
            if self._hold is not None:
                self._hold.kept = None
            self._end()
            known = self._store.live.get(id(self))
            if known is not None and known() is None:  # this is a finaliser, or what one has put off
                del self._store.live[id(self)]

    def _abort_raw(self) -> None:
        """Abort the engine's transaction, and begin again after each further interrupt.

        If it stayed open, who writes next would wait for its lock for ever.
        """
        if self._outermost is None:
            return
        try:
            if self._abandons:
                self._outermost.abandon()
            else:
                with suppress(Exception):  # it may have been ended
                    self._leave_savepoints()
                with suppress(Exception):
                    self._roll_back()
        except Exception:
            raise
        except BaseException:
            self._abort_raw()
            raise

    @property
    def _abandons(self) -> bool:
        """Whether any thread may end the engine's transaction."""
        return self._store.engine.abandons and self._outermost is not None

    @property
    def _outermost(self) -> Any:
        """The engine's transaction around all savepoints."""
        return self._outer[0] if self._outer else self._held[0] if self._held else self._raw

    def __del__(self) -> None:
        if not getattr(self, "_since", 0.0):
            store: Optional[Store] = getattr(self, "_store", None)  # absent where making it failed
            if store is not None:
                store.live.pop(id(self), None)
                if store.at_rest is not None:  # PyPy clears weak references before: it counted as open until now
                    store.rest()
            return
        mine = not self._write or self._thread == _get_ident() or not is_alive(self._thread)
        when = "now" if mine or self._abandons else "when its thread begins the next one"
        try:
            if self._raw is not None and (self._write or not self._in_with):  # else an interrupt came, at its end
                warnings.warn(
                    f"{self!r} was never ended: it is aborted {when}", ResourceWarning, source=self, stacklevel=1
                )
        finally:  # warnings may be errors
            self._clear()
