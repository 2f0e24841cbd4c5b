"""A transaction: all changes of its block are stored together, or none."""

from __future__ import annotations

import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import methodcaller
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from .. import errors
from ..handlers import let_through
from ..log import log
from .blocks import COUNTS_REFERENCES, BlockExit, Leave, is_over
from .ended import CLOSED, closed
from .pool import IN_LOOP, is_free, references
from .rawrecords import RawRecords
from .savepoints import Savepoints
from .scans import Scans
from .store import Store
from .transactionstate import needs_room
from .transactionstats import TransactionStats
from .writerlock import Hold, is_alive

_get_ident = threading.get_ident
_clock = time.monotonic
_NONE, _WRITE = (None,), (True,)
_COMMIT = methodcaller("commit")
MOST_KEPT = 2
"""So many tables, bound in one transaction of a schema object, are aimed at the start of the next one."""
_getframe = sys._getframe  # it has no other name


class Transaction(Savepoints, RawRecords):
    """A block that commits or aborts: ``with db.begin(write=True) as txn: ...``.

    The transaction begins with the block. The end of the block commits it, an exception aborts it; `commit` and `abort`
    end it earlier. A write transaction belongs to the thread that began it. After its end, its tables, views and
    selections raise `TransactionClosed`. Tables see the transaction's own writes immediately.
    """

    # The object may be used for one transaction after another. What is said of an end is undone step by step, each of
    # which may be done again: an interrupt can come between any two, and then `_clear` does all of them once more.

    __slots__ = ()

    PUT, DEL = 1, 2  # for programs of zlmdb <= 26
    _brief = False  # it lasts for one operation only, and nobody can forget it

    def __init__(
        self, store: Store, write: bool = False, buffers: bool = False, stats: Optional[TransactionStats] = None,
        timeout: Optional[float] = None,
    ) -> None:  # fmt: skip
        self._store = store
        self._buffers = buffers
        self._stats = stats
        self._timeout = timeout
        self._raw: Any = None
        self._held: list[Any] = []  # that of a write, from the moment when it begins
        self._error: Optional[BaseException] = None
        self._told: Optional[list[Any]] = None  # gets an item in the very call that commits
        self._outer: list[Any] = []  # the engine's transactions around the present savepoint
        self._write = write
        self._tables: dict[Any, Any] = {}
        self._scans: Optional[Scans] = None
        self._hooks: list[Callable[[bool], object]] = []
        self._deferred: Optional[dict[Any, None]] = None  # what is checked before the commit: see `tables.links`
        self._index_hooks: list[Callable[[Any, Sequence[str]], object]] = []  # called when `indexes_changed`
        self._views: list[memoryview] = []
        self._block: Optional[weakref.ref[Leave]] = None
        self._exit: list[Leave] = []
        self._in_with = False  # a ``with`` statement began this write
        self._hold = Hold(self, _join) if write else None
        self._turn: Any = None  # where it is a member of a group: see `turns`
        self._edited: set[tuple[str, bytes]] = set()  # by table and key: those that an `edit` is going on of
        self._odd = False  # besides the engine's transaction and the tables there is something to end
        self._is_forked = False  # this is a child process of that in which it began
        self._mixed = False  # *tables* has others than the attributes of the schema object, or that has others
        self._unit: Any = None  # what it is part of, and waits in for its next use: see `pool`
        self._since = 0.0  # when it began; 0 while it is not open
        self._now = 0.0, 0.0  # *_since*, and the time when a table asked for it: see `tables.expiring`
        self._puts = self._dels = self._thread = 0
        self._sequence = -1  # that of the store when it began: no handles of before then can be used
        store.live[id(self)] = weakref.ref(self)

    # -- begin and end --------------------------------------------------------------------------------------------

    def begin(self) -> Transaction:
        """Begin, as ``with`` does. Raises `ReadonlyDatabase`, `NestedTransaction`, `WriterTimeout`."""
        if self._raw is not None:
            raise errors.DatabaseInUse(f"{self!r} has begun already: use a new transaction, or txn.savepoint()")
        # A line number takes longer to find than a transaction to begin.
        try:
            caller = _getframe(2)  # of the with statement
        except ValueError:  # called from C, by no function of Python
            caller = _getframe(1)
        self._opener, self._instruction = caller.f_code, caller.f_lasti
        self._begin()
        return self

    def _refuse_use(self) -> NoReturn:
        """Raise: the transaction is not open, because it has ended, or because a write transaction has not begun."""
        self._check_forked()
        if self._write and not self._thread:
            raise errors.TransactionClosed(
                "a write transaction begins with its block, and this one was used without a block, so nothing "
                "would commit it: write `with db.write() as t:`"
            )
        raise errors.TransactionClosed("the transaction has ended: use its tables inside its with block")

    def _begin(self) -> None:
        # When `__enter__` was called by hand, there is no end but the call of `__exit__`.
        self._in_with = self._block is not None
        self._since = now = _clock()  # before it looks for the environment, since `Store.suspend` asks who has begun
        self._thread = _get_ident()
        store = self._store
        try:
            if self._write:
                self._begin_write(store)
            elif now < store.quiet.reads and not self._buffers and store.env is not None:
                sequence = store.sequence
                try:
                    self._raw = store.env.begin()
                except Exception as error:
                    let_through(error)
                    sequence, self._raw = store.begin_read(self, False)  # again, and mends what can be mended
                if sequence != self._sequence:
                    self._forget_handles(sequence)
            else:
                self._odd = True  # it goes through a gate, if there is one
                sequence, self._raw = store.begin_read(self, self._buffers)
                self._forget_handles(sequence)
        except BaseException as error:
            self._clear()
            if isinstance(error, Exception):
                store.fail(error)
            raise
        if now >= (store.quiet.writes if self._write else store.quiet.reads):
            if now >= store.ages.look_at:
                store.look_at_reads(now)
            store.look_around()

    def _forget_handles(self, sequence: int) -> None:
        """The handles now are those of *sequence*; tables that were bound before have other handles."""
        self._sequence = sequence
        if self._unit is not None:
            self._unit.tables.clear()
            self._let_go()

    def _let_go(self) -> None:
        """Drop the references to bound tables."""
        self._unit.names.clear()  # first: an attribute that is there is taken to be one of the tables
        self._tables.clear()
        self._mixed = False

    def _begin_write(self, store: Store) -> None:
        if store.readonly or self._hold is None:
            store.refuse_write()
        self._puts = self._dels = 0
        if store.wanted or store.pending:
            store.open_wanted(self._timeout)
        self._turn = turn = store.writer.acquire(self._timeout, self._hold)
        self._since = now = _clock()  # it may have waited
        if turn is not None:
            self._odd = True
            begin = partial(store.environment.begin, parent=turn.leader._raw, write=True, buffers=self._buffers)
            self._held.extend(map(begin, _NONE))
        else:
            if store.full:
                store.make_room()
            if now >= store.look_at:
                store.look_at_file(now, self._timeout)
            if store.gate is None and not store.provisional:
                self._begin_engine(store)
            else:
                self._odd = True
                store.begin(write=True, buffers=self._buffers, who=self, held=self._held)
        self._raw = raw = self._held[-1]
        if store.sequence != self._sequence:  # another writer made tables, or the environment was opened anew
            self._forget_handles(store.sequence)
        self._era: Optional[int] = store.era_to_write(raw)
        tables = self._tables
        if tables:
            self._unit.names.update(tables)
            for table in tables.values():
                if references(table) != IN_LOOP and not is_free(table, 3):
                    self._let_go()
                    break
                table._aim()

    def _begin_engine(self, store: Store) -> None:
        """Begin a write of the engine, where no gate is in the way."""
        env: Any = store.env
        held = self._held
        try:
            if COUNTS_REFERENCES:  # an interrupt that comes in between drops it, which aborts it
                held.append(env.begin(None, None, True, self._buffers))
            else:  # appended in the very call that begins it
                held.extend(map(env.begin, _NONE, _NONE, _WRITE, (self._buffers,)))
        except Exception as error:  # also where there is no environment: it mends what can be mended
            let_through(error)
            self._odd = True
            store.begin(write=True, buffers=self._buffers, who=self, held=held)

    def commit(self) -> None:
        """Store all changes and end. Raises `TransactionPoisoned` if an engine error broke the transaction."""
        raw = self._raw
        if raw is None or self._outer or (self._write and _get_ident() != self._thread):
            raw = self._check_end("commit")
        if self._error is not None:
            error = self._error
            self.abort()
            raise errors.TransactionPoisoned(
                f"an error in the middle of a write broke the transaction, which can only be aborted, nothing was "
                f"stored: {error!r}"
            ) from error
        if self._deferred is not None:
            self._check_deferred()
        try:
            if self._puts and self._store.limited:
                self._store.require_room(raw, self._sequence, {})
            if self._turn is not None:
                self._merge_turn(raw)
            elif self._told is None:
                raw.commit()
            else:
                self._told.extend(map(_COMMIT, (raw,)))
        except BaseException as error:  # also what a signal raises when it came while the disk was at work
            self._commit_failed(raw, error)
        if self._turn is not None:
            self._await_group()
        elif (self._puts or self._dels) and self._era is not None:
            self._store.wrote()
        hooks = self._hooks
        if hooks:
            self._hooks = []
        self._end()
        if hooks:
            committed(hooks)

    def _check_deferred(self) -> None:
        """Check what was put off until the commit; if it raises, nothing is stored."""
        try:
            for link, own in self._deferred or ():
                link.check_deferred(self, own)
        except BaseException:
            self.abort()
            raise

    def _merge_turn(self, raw: Any) -> None:
        """As a member of a group: hand the changes to its transaction."""
        leader = self._turn.leader
        if self._era is None:
            leader._era = None  # first: what others know of the catalogue may not hold any more
        self._pause()
        raw.commit()
        leader._puts += self._puts
        leader._dels += self._dels

    def _await_group(self) -> None:
        """Let the next member write, and wait until the group is stored."""
        try:
            failed = self._turn.outcome()
        except BaseException:  # it is stored, or will be, or not: nobody waits to see
            self._hooks.clear()
            self._end()
            raise
        if failed is not None:
            self._forget()
            self._end()
            raise failed

    def _commit_failed(self, raw: Any, error: BaseException) -> NoReturn:
        if isinstance(error, Exception):
            self._forget()
            ours = self._store.engine.translate(error)
            self._store.full = needs_room(ours)
            with suppress(Exception):  # it has ended, unless the error is ours
                raw.abort()
            self._end()
            errors.raise_as(ours, error)
        self._hooks.clear()
        try:
            with suppress(Exception):  # it may have been committed
                raw.abort()
        finally:
            self._end()
        raise error

    def after_commit(self, fn: Callable[[], object], /) -> None:
        """Call *fn* after this transaction is stored, in the order of the calls; never if it is aborted.

        The function runs at the end of the block, after the writer lock is released, so it may begin a transaction. A
        function given inside a savepoint that is undone does not run. All functions run even if one raises; the first
        exception then leaves the block, and all changes are stored nevertheless.

        Raises `ReadonlyDatabase` in a read transaction.
        """
        self._check_write()
        self._hook(lambda kept: fn() if kept else None)

    def abort(self) -> None:
        """Undo all changes and end. Does nothing if the transaction has ended."""
        if self._raw is not None:
            self._check_end("abort")
            self._abort()

    def _abort(self, wait: bool = True) -> None:
        # What a member of a group has read may come from others of it: what it does then waits for them, too.
        self._forget()
        turn = self._turn
        try:
            self._raw.abort()
        finally:
            self._end()
        if turn is not None and wait:
            failed = turn.outcome()
            if failed is not None:
                raise failed

    def _forget(self) -> None:
        """Nothing is stored: call no hooks, and count nothing."""
        self._hooks.clear()
        self._undo((0, 0, 0))

    def _check_end(self, verb: str) -> Any:
        if self._raw is None:
            self._check_forked()
            raise errors.TransactionClosed(f"{verb}: the transaction is not open")
        if self._outer:
            raise errors.DatabaseInUse(f"{verb}: leave the savepoint inside this transaction first")
        if self._write:
            self._check_thread()
        return self._raw

    def _end(self) -> None:
        """Release everything that was held for the engine's transaction, which has ended."""
        self._raw = None
        tables, store, unit = self._tables, self._store, self._unit
        if self._odd:
            self._end_oddities()
        for table in tables.values():  # what `Table.end` does, without the calls
            table._raw = CLOSED
            table._get = table._put = closed
            table._writer = None
        if unit is None:
            tables.clear()
        elif self._mixed or len(tables) > MOST_KEPT:
            self._let_go()
        else:  # the next transaction has them from its beginning, and nobody before
            unit.names.clear()
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
                unit.release(unit)

    def _end_oddities(self) -> None:
        """End what few transactions have. Whoever gives this one such a thing sets *_odd* before."""
        if self._scans is not None:
            self._scans.end(CLOSED)
            self._scans = None
        self._index_hooks.clear()
        if self._views:
            self._release_views()
        if self._store.gate is not None:
            self._store.gate.leave(self)
        self._error = self._told = self._deferred = None
        if self._hooks:
            self._hooks = []
        self._odd = False

    def _release_views(self) -> None:
        for view in self._views:
            with suppress(BufferError):  # something else still points into it
                view.release()
        self._views.clear()

    def __enter__(self) -> Transaction:
        return self.begin()

    if TYPE_CHECKING:

        def __exit__(
            self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
        ) -> None: ...

    else:
        __exit__ = _exit_of_schema = BlockExit()

    def _leave(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """The end of the ``with`` block."""
        raw = self._raw
        if raw is None:
            self._block = None
        elif kind is not None or self._outer:
            self._leave_badly(kind)
        elif self._write or self._error is not None or self._hooks:
            self.commit()
        else:
            try:
                raw.abort()
            except BaseException as failure:
                self._commit_failed(raw, failure)
            self._end()

    def _leave_badly(self, kind: Optional[type[BaseException]]) -> None:
        """The end of a block by an exception, or inside a savepoint."""
        left_open = self._leave_savepoints()
        if self._turn is not None and kind is not None and not issubclass(kind, Exception):
            self._check_end("abort")
            self._abort(wait=False)
        else:
            self.abort()
        if kind is None and left_open:
            raise errors.DatabaseInUse("the block ended inside a savepoint that was never left: nothing was stored")

    # -- what an interrupt left open ------------------------------------------------------------------------------

    def _left(self, block: weakref.ref[Leave]) -> None:
        """End what an interrupt left open, after the ``with`` statement dropped the block."""
        if self._block is block and self._since and (self._in_with or not self._write):
            self._clear()

    def _is_over(self) -> bool:
        return self._in_with and is_over(self)

    def _end_if_over(self) -> None:
        """End if the block is over without having ended, or if nothing refers to the transaction."""
        over = is_over(self) if not self._write or self._in_with else False
        unit = self._unit
        if not over and unit is not None and self._block is None:
            over = unit.is_unheld()
        if over:
            self._clear()

    def _clear(self) -> None:
        """End, in whatever state. The thread of a write transaction does so itself, as long as it lives."""
        # LMDB lets only the thread that began a write transaction end it.
        foreign = self._write and self._thread != _get_ident() and self._turn is None
        foreign = foreign and not hasattr(self._outermost, "abandon")
        if foreign and is_alive(self._thread) and self._hold is not None:
            self._hold.kept = self
        else:
            self._abandon()

    def __del__(self) -> None:
        if not getattr(self, "_since", 0.0):
            store: Optional[Store] = getattr(self, "_store", None)  # absent where making it failed
            if store is not None:
                store.live.pop(id(self), None)
                if store.at_rest is not None:  # PyPy clears weak references before: it counted as open until now
                    store.rest()
            return
        mine = not self._write or self._thread == _get_ident() or not is_alive(self._thread)
        when = "now" if mine or hasattr(self._outermost, "abandon") else "when its thread begins the next one"
        try:
            if self._raw is not None and (self._write or not self._in_with):  # else an interrupt came, at its end
                warnings.warn(
                    f"{self!r} was never ended: it is aborted {when}", ResourceWarning, source=self, stacklevel=1
                )
        finally:  # warnings may be errors
            self._clear()

    @property
    def _outermost(self) -> Any:
        """The engine's transaction around all savepoints."""
        return self._outer[0] if self._outer else self._held[0] if self._held else self._raw

    def _abandon(self) -> None:
        """Abort, from a finaliser: the memory engine must not wait for its lock, which a frame below may hold."""
        self._forget()
        abandon = getattr(self._outermost, "abandon", None)
        try:
            if abandon is not None:
                abandon()
            elif self._raw is not None or self._held:
                with suppress(Exception):  # it may have been ended
                    self._leave_savepoints()
                with suppress(Exception):
                    (self._held or [self._raw])[0].abort()
        finally:
            self._outer.clear()
            if self._hold is not None:
                self._hold.kept = None
            self._end()
            known = self._store.live.get(id(self))
            if known is not None and known() is None:  # this is a finaliser, or what one has put off
                del self._store.live[id(self)]

    def __repr__(self) -> str:
        state = "open" if self._raw is not None else "not open"
        return f"<{'write' if self._write else 'read'} transaction of {self._store.engine.path!r}, {state}>"


def _join(hold: Hold, timeout: Optional[float]) -> Any:
    """Wait for a turn in a group. None where there is none, or the transaction did not begin with a block."""
    txn: Any = hold.holder()
    if txn is None or not txn._in_with:
        return None
    store: Store = txn._store
    del txn
    if not store.shares_commits:
        return None
    if store.turns is None:
        from .turns import Turns  # late: a program with one writer does not need it

        store.turns = Turns(store, partial(Transaction, store, True))
    return store.turns.join(hold, timeout)


def committed(hooks: Sequence[Callable[[bool], object]]) -> None:
    """Call the *hooks* of a stored transaction; all of them, even if one raises."""
    failed: Optional[Exception] = None
    for hook in hooks:
        try:
            hook(True)
        except Exception as error:  # what is stored is stored: the others are told so, too
            if failed is not None:
                log.exception("another hook failed after the commit")
            failed = failed or error
    if failed is not None:
        raise failed
