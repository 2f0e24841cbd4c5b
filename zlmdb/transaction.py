"""A transaction: everything in its block is stored together, or nothing is."""

from __future__ import annotations

import logging
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, NoReturn, Optional

from . import errors
from .layout import SLOTS
from .store import Store
from .writerlock import is_alive

_POISON = (errors.DatabaseFull, errors.DiskError, errors.CorruptDatabase, MemoryError)
_get_ident = threading.get_ident
_clock = time.monotonic
_getframe = sys._getframe  # pyright: ignore[reportPrivateUsage]  # it has no other name

log = logging.getLogger("zlmdb")


class TransactionStats:
    """What transactions wrote, added up over all that were given this object.

    ``puts`` and ``dels`` count records and index entries really written and deleted; ``started`` is the time of
    creation or reset, in nanoseconds since 1970; ``duration`` the nanoseconds from then to the end of the last
    transaction, or to now while none has ended.

    >>> stats = TransactionStats()
    >>> stats.puts, stats.dels
    (0, 0)
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Count from zero, beginning now."""
        self.puts = 0
        self.dels = 0
        self._started = time.time_ns()
        self._clock = time.perf_counter_ns()
        self._duration: Optional[int] = None

    @property
    def started(self) -> int:
        """When counting began, in nanoseconds since 1970."""
        return self._started

    @property
    def duration(self) -> int:
        """Nanoseconds from the beginning to the end of the last transaction, or to now while none has ended."""
        return time.perf_counter_ns() - self._clock if self._duration is None else self._duration

    def freeze(self) -> None:
        """Stop the clock: a transaction has ended."""
        self._duration = time.perf_counter_ns() - self._clock


class Transaction:
    """A block that commits or aborts: ``with db.begin(write=True) as txn: ...``.

    Nothing begins before the block. Leaving it commits, an exception in it aborts; `commit` and `abort` end it earlier.
    A write transaction belongs to the thread that began it. After the end every table, view and selection of the
    transaction raises `TransactionClosed`. Tables see the transaction's own writes at once.
    """

    __slots__ = (
        "__weakref__", "_buffers", "_era", "_error", "_outer", "_raw", "_sequence", "_store", "_timeout", "_views",
        "changes", "dels", "hooks", "instruction", "opener", "puts", "since", "stats", "tables", "thread", "write",
    )  # fmt: skip

    PUT, DEL = 1, 2  # for programs of zlmdb <= 26

    def __init__(
        self, store: Store, write: bool = False, buffers: bool = False, stats: Optional[TransactionStats] = None,
        timeout: Optional[float] = None,
    ) -> None:  # fmt: skip
        self._store = store
        self._buffers = buffers
        self.stats = stats
        self._timeout = timeout
        self._raw: Any = None
        self._error: Optional[BaseException] = None
        self._outer: list[Any] = []  # the engine's transactions around the present savepoint
        self.write = write
        self.tables: dict[Any, Any] = {}
        self.hooks: list[Callable[[bool], object]] = []

    # -- begin and end --------------------------------------------------------------------------------------------

    def begin(self) -> Transaction:
        """Start; what ``with`` does. Raises `ReadonlyDatabase`, `NestedTransaction`, `WriterTimeout`."""
        if self._raw is not None:
            raise errors.DatabaseInUse(f"{self!r} has begun already: use a new transaction, or txn.savepoint()")
        store = self._store
        # What the end needs comes first: an exception, such as that of a signal, may come at any line.
        self.thread = _get_ident()
        self._error = None
        self._views: list[memoryview] = []
        self.changes = self.puts = self.dels = 0
        # A line number takes longer to find than a transaction to begin.
        try:
            caller = _getframe(2)  # of db.read() or the with statement
        except ValueError:  # called from C, by no function of Python
            caller = _getframe(1)
        self.opener = caller.f_code
        self.instruction = caller.f_lasti
        self.since = now = _clock()
        if self.write:
            self._begin_write(store)
            self.since = now = _clock()
            store.live[id(self)] = weakref.ref(self)
        else:
            store.live[id(self)] = weakref.ref(self)  # before it looks for the environment: see `Store.suspend`
            try:
                env, self._sequence = store.env, store.sequence
                self._raw = store.begin(buffers=self._buffers)
                if store.env is not env:  # opened anew, with new handles
                    self._sequence = store.sequence
            except BaseException:
                store.live.pop(id(self), None)
                if store.at_rest is not None and not store.live:
                    store.at_rest()
                raise
        if now >= store.ages.look_at:
            store.ages.look(now, store.live)
        return self

    def _begin_write(self, store: Store) -> None:
        if store.readonly:
            raise errors.ReadonlyDatabase(
                f"the database {store.engine.path!r} was opened read-only: open it with readonly=False to write",
                path=store.engine.path,
            )
        store.open_wanted(self._timeout)
        store.writer.acquire(self._timeout)
        try:
            if store.full:
                store.make_room()
            store.clear_readers_at_times()
            self._raw = store.begin(write=True, buffers=self._buffers)
            self._sequence = store.sequence  # that of before may be of before another writer made tables
            self._era: Optional[int] = store.era_to_write(self._raw)
        except BaseException as error:
            if self._raw is not None:
                self._raw.abort()
                self._raw = None
                store.ended(_get_ident())
            store.writer.release()
            if isinstance(error, Exception):
                raise (ours := store.engine.translate(error)) from errors.cause(ours, error)
            raise

    def commit(self) -> None:
        """Store everything durably and end. Raises `TransactionPoisoned` when an engine error broke the transaction."""
        raw = self._raw
        if raw is None or self.write or self._outer:
            raw = self._check_end("commit")
        if self._error is not None:
            self.abort()
            raise errors.TransactionPoisoned(
                f"the transaction met an error in the midst of a write and can only be aborted, nothing was stored: "
                f"{self._error!r}"
            ) from self._error
        try:
            raw.commit()
        except BaseException as error:  # also what a signal raises when it came while the disk was at work
            self._commit_failed(raw, error)
        if (self.puts or self.dels) and self._era is not None:
            self._store.wrote()
        self._end()
        if self.hooks:
            self._committed()

    def _commit_failed(self, raw: Any, error: BaseException) -> NoReturn:
        if isinstance(error, Exception):
            self._forget()
            ours = self._store.engine.translate(error)
            self._store.full = _needs_room(ours)
            self._end()
            raise ours from errors.cause(ours, error)
        self.hooks.clear()
        try:
            with suppress(Exception):  # it may have been committed
                raw.abort()
        finally:
            self._end()
        raise error

    def _committed(self) -> None:
        hooks, self.hooks = self.hooks, []
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

    def after_commit(self, fn: Callable[[], object], /) -> None:
        """Call *fn* once this transaction is stored, in the order of the calls; never when it is aborted.

        It runs at the end of the block, after the writer lock has been given back, so that it may begin a transaction.
        What was asked for inside a savepoint that is undone does not run. All of them run, though one raises; the first
        exception then leaves the block, and everything is stored all the same.

        Raises `ReadonlyDatabase` in a read transaction.
        """
        self.check_write()
        self.hooks.append(lambda kept: fn() if kept else None)

    def abort(self) -> None:
        """Forget everything written and end. An ended transaction stays as it is."""
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
        """Nothing is stored: no hook is told of it, and nothing is counted."""
        self.hooks.clear()
        self._undo((0, 0, 0))

    def _check_end(self, verb: str) -> Any:
        if self._raw is None:
            raise errors.TransactionClosed(f"{verb}: the transaction is not open")
        if self._outer:
            raise errors.DatabaseInUse(f"{verb}: leave the savepoint inside this transaction first")
        if self.write:
            self.check_thread()
        return self._raw

    def _end(self) -> None:
        self._raw = None
        self.changes += 1  # whoever iterates over a table looks again, and finds the end
        store = self._store
        try:
            store.live.pop(id(self), None)
            if self.tables:
                for table in self.tables.values():
                    table.end(_CLOSED)
                self.tables = {}
            for view in self._views:
                with suppress(BufferError):  # something else still points into it
                    view.release()
        finally:
            if store.gate is not None:  # a call less where there is none
                store.ended(self.thread)
            if self.write:
                store.writer.release()
        if not self.write and _clock() - self.since > store.ages.limit:
            store.ages.ended(self)
        if store.at_rest is not None and not store.live:
            store.at_rest()
        stats = self.stats
        if stats is not None:
            stats.freeze()

    def __enter__(self) -> Transaction:
        return self.begin()

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._raw is None:
            return
        if kind is None and not self._outer:
            self.commit()
            return
        left_open = self._leave_savepoints()
        self.abort()
        if kind is None and left_open:
            raise errors.DatabaseInUse("the block ended inside a savepoint that was never left: nothing was stored")

    def _leave_savepoints(self) -> int:
        """Abort the savepoints that are open, the innermost first; how many there were."""
        count = len(self._outer)
        while self._outer:
            self._raw.abort()
            self._raw = self._outer.pop()
        return count

    def __del__(self) -> None:
        if getattr(self, "_raw", None) is None:
            return
        # The collector runs in any thread, and LMDB lets only the one that began a write transaction end it.
        foreign = self.write and self.thread != _get_ident() and not hasattr(self._outermost, "abandon")
        elsewhere = foreign and is_alive(self.thread)
        when = "when its thread begins the next one" if elsewhere else "now"
        try:
            warnings.warn(f"{self!r} was never ended: it is aborted {when}", ResourceWarning, source=self, stacklevel=1)
        finally:  # warnings may be errors
            if elsewhere:
                self._store.writer.lose(self._abandon)
            else:
                self._abandon()

    @property
    def _outermost(self) -> Any:
        """The engine's transaction around all savepoints."""
        return self._outer[0] if self._outer else self._raw

    def _abandon(self) -> None:
        """Abort, from a finaliser: an engine in memory must not wait for its lock, which may be held further up."""
        abandon = getattr(self._outermost, "abandon", None)
        if abandon is None:
            self._leave_savepoints()
            self._abort()
            return
        self._forget()
        try:
            abandon()
        finally:
            self._end()

    def __repr__(self) -> str:
        state = "open" if self._raw is not None else "not open"
        return f"<{'write' if self.write else 'read'} transaction of {self._store.engine.path!r}, {state}>"

    # -- savepoints -----------------------------------------------------------------------------------------------

    @contextmanager
    def savepoint(self) -> Generator[Transaction, None, None]:
        """A block of its own inside this write transaction: an exception undoes the block only, and goes on upwards.

        Savepoints nest. Selections that are being iterated go on after the block where they were.
        """
        parent = self.raw
        self.check_write()
        child = self._nested(parent)
        counts = self.puts, self.dels, len(self.hooks)
        self._outer.append(parent)
        self._switch(child)
        try:
            yield self
            if self._raw is child and self._error is None:
                self._merge(child)
        except BaseException:
            if self._raw is child:
                self._leave(child, counts)
            raise
        if self._raw is child:
            self._leave(child, counts)

    def _nested(self, parent: Any) -> Any:
        try:
            return self._store.env.begin(parent=parent, write=True, buffers=self._buffers)
        except Exception as error:
            raise (ours := self.translate(error)) from errors.cause(ours, error)

    def _merge(self, child: Any) -> None:
        try:
            child.commit()
        except Exception as error:
            raise (ours := self.translate(error)) from errors.cause(ours, error)
        self._switch(self._outer.pop())

    def _leave(self, child: Any, counts: tuple[int, int, int]) -> None:
        child.abort()
        self._undo(counts)
        self._switch(self._outer.pop())

    @contextmanager
    def statement(self) -> Generator[None, None, None]:
        """A block undone as a whole when it raises; where the engine cannot, the transaction is, as a whole."""
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
        self.changes += 1
        for table in self.tables.values():
            table.use(raw)

    def _undo(self, counts: tuple[int, int, int]) -> None:
        stats = self.stats
        if stats is not None:
            stats.puts = max(0, stats.puts + counts[0] - self.puts)  # they may have been reset meanwhile
            stats.dels = max(0, stats.dels + counts[1] - self.dels)
        self.puts, self.dels, hooks = counts
        for hook in self.hooks[hooks:]:
            hook(False)
        del self.hooks[hooks:]

    @property
    def begun(self) -> bool:
        """Whether it is open."""
        return self._raw is not None

    # -- for tables -----------------------------------------------------------------------------------------------

    @property
    def raw(self) -> Any:
        """The engine's transaction. Raises `TransactionClosed` when there is none."""
        raw = self._raw
        if raw is None:
            raise errors.TransactionClosed("the transaction is not open: use it inside its with block")
        return raw

    @property
    def store(self) -> Store:
        """The open environment that this is a transaction of."""
        return self._store

    @property
    def era(self) -> Optional[int]:
        """What is known of the tables' indexes in one transaction is true in others of the same era; None: of none."""
        return self._era if self.write else self._store.era_of(self._raw)

    def indexes_changed(self, by: Any, names: Sequence[str]) -> None:
        """What the catalogue says of the indexes *names* was changed here, for the sake of the bound table *by*.

        With this transaction an era ends, and the same table, bound as another one, finds out anew what it may do.
        """
        self._era = None
        for table in self.tables.values():
            if table is by or table.label != by.label:
                continue
            if table.prepared is None:
                table.look_again()
            else:  # another classic map of it
                table.prepared, table.missing = None, names

    @property
    def buffers(self) -> bool:
        """Whether reads give memoryviews that are valid inside the transaction only."""
        return self._buffers

    def check_thread(self) -> None:
        """Raise `WrongThread` unless this is the thread that began the transaction."""
        if _get_ident() != self.thread:
            raise errors.WrongThread(
                f"this write transaction belongs to thread {self.thread}, not to this one ({_get_ident()}): "
                f"begin one here, or hand the work to that thread"
            )

    def check_write(self) -> None:
        """Raise unless this thread can write: `ReadonlyDatabase`, `TransactionClosed`, `WrongThread`."""
        if not self.write:
            raise errors.ReadonlyDatabase("this is a read transaction: write in db.write() or begin(write=True)")
        if self._raw is None:
            raise errors.TransactionClosed("the transaction is not open: use it inside its with block")
        if _get_ident() != self.thread:
            self.check_thread()

    def handle(self, name: Optional[bytes]) -> Optional[Any]:
        """The engine's handle of the space *name* as a 1-tuple; None where the file does not have the space.

        Raises `TransactionStale` when the space was opened after this transaction began.
        """
        space = self._store.space(name)
        if space is None:
            return None
        if space.since > self._sequence:
            raise errors.TransactionStale(
                f"this transaction began before table {(name or b'').decode()!r} was attached: begin again"
            )
        return (space.handle,)

    def count(self, puts: int, dels: int) -> None:
        """Count records and index entries written and deleted."""
        self.changes += 1
        self.puts += puts
        self.dels += dels
        stats = self.stats
        if stats is not None:
            stats.puts += puts
            stats.dels += dels

    def translate(self, error: Exception, **facts: Any) -> Exception:
        """Our error for one of the engine. Those after which nothing may be committed poison the transaction."""
        ours = self._store.engine.translate(error, **facts)
        if isinstance(ours, _POISON) and self.write:
            self._error = ours
            self._store.full = _needs_room(ours)
        return ours

    def poison(self, error: BaseException) -> None:
        """Half of a statement was written when *error* came: refuse to commit."""
        if self.write and self._error is None:
            self._error = error

    def watch(self, data: Any) -> Any:
        """Remember *data*, a memoryview just read, so that it is released at the end of the transaction."""
        if not self._buffers or data is None:
            return data
        view = memoryview(data)  # PyPy has a buffer type of cffi's here
        self._views.append(view)
        return view

    def forked(self) -> None:
        """In a forked child: leave the parent's transaction alone, and refuse every further use."""
        for table in self.tables.values():
            table.end(_FORKED)
        self.tables = {}
        self.changes += 1
        self._raw = None
        self._views = []

    # -- raw records ----------------------------------------------------------------------------------------------

    def id(self) -> int:
        """The number of the snapshot that this transaction reads, or of the one that it writes."""
        number: int = self.raw.id()
        return number

    def get(self, key: bytes) -> Any:
        """The stored bytes of the raw *key* (slot, u16 big-endian, then the encoded key); None when there are none."""
        raw = self.raw
        self._store.check_key(key)
        try:
            return self.watch(raw.get(key, None, self._slots()))
        except Exception as error:
            raise (ours := self.translate(error, key=key)) from errors.cause(ours, error)

    def put(self, key: bytes, data: bytes, overwrite: bool = True) -> bool:
        """Store *data* under the raw *key*; False, storing nothing, when it exists and *overwrite* is false.

        Indexes are not kept in step. Raises `EncodeError` for an empty or over-long key.
        """
        self.check_write()
        self._store.check_key(key)
        try:
            stored: bool = self.raw.put(key, data, overwrite=overwrite, db=self._slots())
        except Exception as error:
            raise (ours := self.translate(error, key=key)) from errors.cause(ours, error)
        self.count(int(stored), 0)
        return stored

    def delete(self, key: bytes) -> bool:
        """Delete the raw *key*; False when there was no such record. Indexes are not kept in step."""
        self.check_write()
        self._store.check_key(key)
        try:
            deleted: bool = self.raw.delete(key, db=self._slots())
        except Exception as error:
            raise (ours := self.translate(error, key=key)) from errors.cause(ours, error)
        self.count(0, int(deleted))
        return deleted

    def _slots(self) -> Any:
        """The handle of the space that raw keys live in: the main one of a classic file, else the reserved one."""
        handle = self.handle(None if self._store.layout == "classic" else SLOTS)
        return None if handle is None else handle[0]


def _needs_room(error: Exception) -> bool:
    """Whether a larger map would have helped; of other limits the error gives no size."""
    return isinstance(error, errors.DatabaseFull) and error.size is not None


def closed(*args: Any, **kwargs: Any) -> NoReturn:
    """Stands in for the engine's functions after the end of a transaction."""
    raise errors.TransactionClosed("the transaction has ended: use its tables inside its with block")


def forked(*args: Any, **kwargs: Any) -> NoReturn:
    """Stands in for the engine's functions in a forked child."""
    raise errors.ForkedTransaction("this transaction was begun before fork(): begin one in the child process")


class Ended:
    """What a table has for the engine's transaction once that has ended: every use raises."""

    def __init__(self, refuse: Callable[..., NoReturn]) -> None:
        self.get = self.put = self.delete = self.drop = self.cursor = self.stat = refuse


_CLOSED, _FORKED = Ended(closed), Ended(forked)
