"""A transaction: all changes of its block are stored together, or none."""

from __future__ import annotations

import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import methodcaller
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from .. import errors
from ..handlers import let_through
from ..log import log
from .blocks import BlockExit, Leave, is_over
from .catalogue import catalogue_of
from .layout import shown_space
from .pool import IN_LOOP, is_free, references
from .scans import Scans, Written
from .store import Store
from .transactionstats import TransactionStats
from .writerlock import Hold, is_alive

_POISON = (errors.DatabaseFull, errors.DiskError, errors.CorruptDatabase, errors.Conflict, MemoryError)
_get_ident = threading.get_ident
_clock = time.monotonic
_NONE, _WRITE = (None,), (True,)
_COMMIT = methodcaller("commit")
MOST_KEPT = 2
"""So many tables, bound in one transaction of a schema object, are aimed at the start of the next one."""
_getframe = sys._getframe  # it has no other name


class Transaction:
    """A block that commits or aborts: ``with db.begin(write=True) as txn: ...``.

    The transaction begins with the block. The end of the block commits it, an exception aborts it; `commit` and `abort`
    end it earlier. A write transaction belongs to the thread that began it. After its end, its tables, views and
    selections raise `TransactionClosed`. Tables see the transaction's own writes immediately.
    """

    # The object may be used for one transaction after another. What is said of an end is undone step by step, each of
    # which may be done again: an interrupt can come between any two, and then `_clear` does all of them once more.

    __slots__ = (
        "__weakref__",
        "_block",
        "_buffers",
        "_changes",
        "_deferred",
        "_dels",
        "_edited",
        "_era",
        "_error",
        "_exit",
        "_held",
        "_hold",
        "_hooks",
        "_in_with",
        "_index_hooks",
        "_instruction",
        "_is_forked",
        "_mixed",
        "_now",
        "_opener",
        "_outer",
        "_puts",
        "_raw",
        "_scans",
        "_sequence",
        "_since",
        "_stats",
        "_store",
        "_tables",
        "_thread",
        "_timeout",
        "_told",
        "_unit",
        "_views",
        "_write",
    )  # fmt: skip

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
        self._hold = Hold(self) if write else None
        self._edited: set[tuple[str, bytes]] = set()  # by table and key: those that an `edit` is going on of
        self._is_forked = False  # this is a child process of that in which it began
        self._mixed = False  # *tables* has others than the attributes of the schema object, or that has others
        self._unit: Any = None  # what it is part of, and waits in for its next use: see `pool`
        self._since = 0.0  # when it began; 0 while it is not open
        self._now = 0.0, 0.0  # *_since*, and the time when a table asked for it: see `tables.expiring`
        self._changes = self._puts = self._dels = self._thread = 0
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

    def _enter(self) -> None:
        """The schema object of this transaction enters its block."""
        if not self._write or self._thread:
            self._refuse_use()
        self._begin()

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
            elif store.gate is None and not self._buffers and store.env is not None:
                sequence = store.sequence
                try:
                    self._raw = store.env.begin()
                except Exception as error:
                    let_through(error)
                    sequence, self._raw = store.begin_read(self, False)  # again, and mends what can be mended
                if sequence != self._sequence:
                    self._forget_handles(sequence)
            else:
                sequence, self._raw = store.begin_read(self, self._buffers)
                self._forget_handles(sequence)
        except BaseException as error:
            self._clear()
            if isinstance(error, Exception):
                store.fail(error)
            raise
        if now >= store.ages.look_at:
            store.look_at_reads(now)

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
        self._error, self._puts, self._dels, self._told = None, 0, 0, None  # those of the transaction before
        if self._hooks:
            self._hooks = []
        self._deferred = None
        if store.wanted or store.pending:
            store.open_wanted(self._timeout)
        store.writer.acquire(self._timeout, self._hold)
        self._since = now = _clock()  # it may have waited
        if store.full:
            store.make_room()
        if now >= store.look_at:
            store.look_at_file(now, self._timeout)
        held = self._held
        if store.gate is None and not store.provisional:
            try:
                # Appended in the very call that begins it, so that no interrupt can come in between.
                env: Any = store.env
                held.extend(map(env.begin, _NONE, _NONE, _WRITE, (self._buffers,)))
            except Exception:  # also where there is no environment: it mends what can be mended
                store.begin(write=True, buffers=self._buffers, who=self, held=held)
        else:
            store.begin(write=True, buffers=self._buffers, who=self, held=held)
        self._raw = raw = held[-1]
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
            if self._told is None:
                raw.commit()
            else:
                self._told.extend(map(_COMMIT, (raw,)))
        except BaseException as error:  # also what a signal raises when it came while the disk was at work
            self._commit_failed(raw, error)
        if (self._puts or self._dels) and self._era is not None:
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

    def _commit_failed(self, raw: Any, error: BaseException) -> NoReturn:
        if isinstance(error, Exception):
            self._forget()
            ours = self._store.engine.translate(error)
            self._store.full = _needs_room(ours)
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
        self._hooks.append(lambda kept: fn() if kept else None)

    def abort(self) -> None:
        """Undo all changes and end. Does nothing if the transaction has ended."""
        if self._raw is not None:
            self._check_end("abort")
            self._abort()

    def _abort(self) -> None:
        self._forget()
        try:
            self._raw.abort()
        finally:
            self._end()

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
        self._changes += 1  # whoever iterates over a table looks again, and finds the end
        tables, store, unit = self._tables, self._store, self._unit
        if self._scans is not None:
            self._scans.end(CLOSED)
            self._scans = None
        if tables:
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
        if self._index_hooks:
            self._index_hooks.clear()
        if self._views:
            self._release_views()
        if store.gate is not None:  # a call less where there is none
            store.gate.leave(self)
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
        self.abort()
        if kind is None and left_open:
            raise errors.DatabaseInUse("the block ended inside a savepoint that was never left: nothing was stored")

    def _leave_savepoints(self) -> int:
        """Abort the open savepoints, the innermost first; returns their number."""
        count = len(self._outer)
        while self._outer:
            self._raw.abort()
            self._raw = self._outer.pop()
        return count

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
        foreign = self._write and self._thread != _get_ident() and not hasattr(self._outermost, "abandon")
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

    # -- savepoints -----------------------------------------------------------------------------------------------

    @contextmanager
    def savepoint(self) -> Generator[Transaction, None, None]:
        """A block inside this write transaction: an exception undoes only this block, and then continues upwards.

        Savepoints can be nested. Running iterations continue after the block in which they were. Raises
        `NestedTransaction` if the engine has no savepoints: with ``writemap=True``. The transaction then continues.
        """
        parent = self._engine_txn
        self._check_write()
        if not self._store.can_nest:
            raise errors.NestedTransaction(
                "there are no savepoints with writemap=True, because LMDB has no nested transactions there: use a "
                "transaction of its own, or open the database without writemap",
                path=self._store.engine.path,
            )
        self._pause()
        children: list[Any] = []
        counts = self._puts, self._dels, len(self._hooks)
        try:
            self._enter_savepoint(parent, children)
            yield self
            if self._raw is children[0] and self._error is None:
                self._merge(children[0])
            else:
                self._leave_savepoint(parent, children, counts)
        except BaseException as error:
            if children and parent not in self._outer and not isinstance(error, GeneratorExit):
                self._poison(error)  # it was merged, and says that it failed
            self._leave_savepoint(parent, children, counts)
            raise

    def _enter_savepoint(self, parent: Any, children: list[Any]) -> None:
        try:  # the very call that begins it appends it, so that no interrupt can come in between
            begin = partial(self._store.environment.begin, parent=parent, write=True, buffers=self._buffers)
            children.extend(map(begin, (None,)))
        except BaseException as error:
            if isinstance(error, Exception):
                self._fail(error)
            self._poison(error)  # an engine in Python may have begun it
            raise
        self._outer.append(parent)
        self._switch(children[0])

    def _merge(self, child: Any) -> None:
        self._pause()
        try:
            child.commit()
            self._switch(self._outer[-1])
            self._outer.pop()
        except BaseException as error:  # such as what a signal raises, after which nobody knows whether it is merged
            self._poison(error)
            if isinstance(error, Exception):
                self._fail(error)
            raise

    def _leave_savepoint(self, parent: Any, children: list[Any], counts: tuple[int, int, int]) -> None:
        """Undo the savepoint, unless it was merged or the transaction has ended. Calling this twice is allowed."""
        if self._raw is None or not children:
            return
        inside = parent in self._outer
        if inside:
            self._pause()
        children[0].abort()
        if inside:
            self._undo(counts)
            self._switch(parent)
            self._outer.pop()

    def _pause(self) -> None:
        """Close the cursors of scans, which live in one savepoint only; scans continue with new ones."""
        if self._scans is not None:
            self._scans.pause()

    @contextmanager
    def _statement(self) -> Generator[None, None, None]:
        """A block that is undone completely if it raises; if the engine cannot undo it, the transaction is undone."""
        if self._store.can_nest:
            with self.savepoint():
                yield
            return
        try:
            yield
        except Exception as error:
            self._error = error
            raise

    def _switch(self, raw: Any) -> None:
        self._raw = raw
        self._changes += 1
        for table in self._tables.values():
            table._use(raw)

    def _undo(self, counts: tuple[int, int, int]) -> None:
        stats = self._stats
        if stats is not None:
            stats.puts = max(0, stats.puts + counts[0] - self._puts)  # they may have been reset meanwhile
            stats.dels = max(0, stats.dels + counts[1] - self._dels)
        self._puts, self._dels, hooks = counts
        for hook in self._hooks[hooks:]:
            hook(False)
        del self._hooks[hooks:]

    @property
    def _begun(self) -> bool:
        """Whether the transaction is open."""
        return self._raw is not None

    @property
    def active(self) -> bool:
        """Whether the transaction is open, or about to be."""
        return self._since != 0.0

    # -- for tables -----------------------------------------------------------------------------------------------

    @property
    def _engine_txn(self) -> Any:
        """The engine's transaction. Raises `TransactionClosed` when there is none."""
        raw = self._raw
        if raw is None:
            self._check_forked()
            raise errors.TransactionClosed("the transaction is not open: use it inside its with block")
        return raw

    @property
    def _era_now(self) -> Optional[int]:
        """The era: what is known of indexes in one transaction holds in all of the same era. None: no era."""
        return self._era if self._write else self._store.era_of(self._raw)

    def _indexes_changed(self, by: Any, names: Sequence[str]) -> None:
        """The catalogue's record of the indexes *names* was changed here, for the bound table *by*.

        With this transaction an era ends; other bound tables of the same table read the catalogue again.
        """
        self._catalogue_changed()
        for table in list(self._tables.values()):
            if table is not by and table._name == by._name:
                table._look_again()
        for changed in self._index_hooks:
            changed(by, names)

    def _catalogue_changed(self) -> None:
        """The catalogue was changed here: with this transaction an era ends."""
        self._era = None

    @property
    def buffers(self) -> bool:
        """Whether reads return memoryviews, which are valid inside the transaction only."""
        return self._buffers

    def _check_thread(self) -> None:
        """Raise `WrongThread` unless this is the thread that began the transaction."""
        if _get_ident() != self._thread:
            raise errors.WrongThread(
                f"this write transaction belongs to thread {self._thread}, not to this one ({_get_ident()}): "
                f"begin one here, or hand the work to that thread"
            )

    def _check_write(self) -> None:
        """Raise unless this thread can write: `ReadonlyDatabase`, `TransactionClosed`, `WrongThread`."""
        if self._raw is None:
            self._check_forked()
        if not self._write:
            raise errors.ReadonlyDatabase("this is a read transaction: write in db.write() or begin(write=True)")
        if self._raw is None:
            raise errors.TransactionClosed("the transaction is not open: use it inside its with block")
        if _get_ident() != self._thread:
            self._check_thread()

    def _open_scans(self) -> Scans:
        """The running scans."""
        if self._scans is None:
            self._scans = Scans()
        return self._scans

    def _allow_tables(self) -> None:
        """Let tables write by their generated functions, unless a scan must be told of their writes."""
        for table in self._tables.values():
            table._allow()

    def _handle(self, name: Optional[bytes]) -> Optional[Any]:
        """The engine's handle of the space *name* as a 1-tuple; None if the file lacks the space.

        Raises `TransactionStale` if the space was opened after this transaction began.
        """
        space = self._store.space(name)
        if space is None:
            return None
        if space.since > self._sequence:
            raise errors.TransactionStale(
                f"this transaction began before {shown_space(name)} was attached or made: begin again"
            )
        return (space.handle,)

    def _count(self, puts: int, dels: int) -> None:
        """Count records and index entries written and deleted."""
        self._changes += 1
        self._puts += puts
        self._dels += dels
        stats = self._stats
        if stats is not None:
            stats.puts += puts
            stats.dels += dels

    def _translate(self, error: Exception, **details: Any) -> Exception:
        """The error of zlmdb for an error of the engine. Poisons the transaction if nothing may be committed."""
        ours = self._store.engine.translate(error, **details)
        if isinstance(ours, _POISON) and self._write:
            self._error = ours
            self._store.full = _needs_room(ours)
        return ours

    def _fail(self, error: Exception, **details: Any) -> NoReturn:
        """Raise the error of zlmdb for *error* of the engine, with *details* as its attributes."""
        errors.raise_as(self._translate(error, **details), error)

    def _poison(self, error: BaseException) -> None:
        """Refuse to commit: half of a statement was written when *error* came."""
        if self._write and self._error is None:
            self._error = error

    def _keep_view(self, data: Any) -> Any:
        """Remember *data*, a memoryview just read, so that it is released at the end of the transaction."""
        if not self._buffers or data is None:
            return data
        view = memoryview(data)  # PyPy has a buffer type of cffi's here
        self._views.append(view)
        return view

    def _forked(self) -> None:
        """In a forked child: leave the parent's transaction alone, and refuse every further use."""
        self._is_forked = True
        if self._scans is not None:
            self._scans.fork(FORKED)
            self._scans = None
        for table in self._tables.values():
            table._end(FORKED)
        self._tables.clear()
        self._changes += 1
        self._raw = self._block = self._unit = None
        self._held.clear()
        self._since = 0.0
        self._views.clear()

    def _check_forked(self) -> None:
        """Raise `ForkedTransaction` in a child of the process in which the transaction began."""
        if self._is_forked:
            forked()

    # -- raw records ----------------------------------------------------------------------------------------------

    def id(self) -> int:
        """The number of the snapshot that this transaction reads, or of the one that it writes."""
        number: int = self._engine_txn.id()
        return number

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


def _needs_room(error: Exception) -> bool:
    """Whether a larger map would have helped; errors for other limits have no size."""
    return isinstance(error, errors.DatabaseFull) and error.size is not None


def closed(*args: Any, **kwargs: Any) -> NoReturn:
    """Replaces the engine's functions after the end of a transaction."""
    raise errors.TransactionClosed("the transaction has ended: use its tables inside its with block")


def forked(*args: Any, **kwargs: Any) -> NoReturn:
    """Replaces the engine's functions in a forked child."""
    raise errors.ForkedTransaction("this transaction was begun before fork(): begin one in the child process")


class Ended:
    """Replaces the engine's transaction in a table after the end: every use raises."""

    def __init__(self, refuse: Callable[..., NoReturn]) -> None:
        self.get = self.put = self.delete = self.drop = self.cursor = self.stat = refuse


CLOSED, FORKED = Ended(closed), Ended(forked)
