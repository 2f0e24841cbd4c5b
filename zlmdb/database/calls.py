"""Functions that a database runs in transactions: in this thread, in groups, in the background, and for asyncio."""

from __future__ import annotations

import os
import sys
import threading
from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextvars import copy_context
from functools import partial
from itertools import islice
from sys import _getframe
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, overload

from .. import errors
from ..numeric import is_whole
from ..schema.schema import Schema
from ..store.results import BODIES, refuse_body, refuse_uncallable
from ..tables.table import Table
from ..values.base import is_a
from .state import DatabaseState

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from typing_extensions import TypeVar as DefaultTypeVar

    from ..query import Reads
    from ..store.groups import Groups
    from ..store.store import Store

    S_co = DefaultTypeVar("S_co", bound=Schema, default=Schema, covariant=True)
else:
    S_co = TypeVar("S_co", bound=Schema, covariant=True)
R = TypeVar("R")
K = TypeVar("K")
V = TypeVar("V")

_CO_AWAITS = 0x280  # a coroutine or an asynchronous generator, as `inspect` has it, which takes long to import
_THREADS = 8
"""Threads that read for asyncio at the same time: more would wait for the interpreter."""


class Calls(DatabaseState, Generic[S_co]):
    """The part of `Database` that runs functions in transactions."""

    _groups: Optional[Groups] = None
    _threads: Optional[tuple[int, ThreadPoolExecutor]] = None  # with the process that began them

    if not TYPE_CHECKING:  # checkers report it

        def __aenter__(self):
            raise TypeError(
                "a database has no `async with`: write `with zlmdb.open(...) as db:`, in asyncio, too, and in the "
                "block `await db.arun(function)`"
            )

        __aexit__ = __aenter__

    @abstractmethod
    def read(self) -> S_co:
        """A block with the tables, for reading."""

    @abstractmethod
    def write(self, *, timeout: Optional[float] = None) -> S_co:
        """A block with the tables, for writing."""

    def run(self, fn: Callable[[S_co], R], /, *, write: bool = True) -> R:
        """The result of ``fn(tables)`` in a write transaction, returned when the changes are stored.

        If several threads wait for the writer at the same time, one commit stores the changes of all their functions
        and costs as much as the commit of one. An exception undoes only the changes of its own function. A function may
        run in another of these threads, in the context (`contextvars`) of its caller. Its result or its exception comes
        after the commit.

        *fn* runs again if the engine requires it: if the map had to grow, or if another transaction first changed what
        this one uses; or if another function of its group raises. So *fn* must not change anything outside the
        transaction. With *write* False, *fn* gets a snapshot. Raises what *fn* raises, and the errors of `write`;
        TypeError for a function with ``async`` or ``yield`` in it, whose body would not run.
        """
        if not callable(fn):
            refuse_uncallable("run", fn)
        if not write or self._writes_alone():
            return self._run_alone(fn, write)
        return self._group_commit().run(self, fn, self._timeout)

    def _writes_alone(self) -> bool:
        """Whether nobody else in this process seems to write now, so that there is no group to join."""
        groups = self._groups
        if groups is not None:
            return groups.is_alone()
        store = self._open_store
        return store.engine.options.durability == "none" or store.writer.owner is None

    def submit(self, fn: Callable[[S_co], R], /) -> Future[R]:
        """Run *fn* like `run`, but return at once; the future has the result when the changes are stored.

        One commit stores everything that was submitted during the previous commit. Functions run in the order in which
        they were submitted, in a thread of the database that ends when there is no work. A future that is cancelled
        before its function starts never runs it. `close` waits for submitted functions, and takes no more of them; the
        end of the program waits for them, too. Raises `ReadonlyDatabase`, `DatabaseClosed`.
        """
        if not callable(fn):
            refuse_uncallable("submit", fn)
        store = self._open_store
        if store.readonly:
            store.refuse_write()
        return self._group_commit().submit(self, fn)

    async def arun(self, fn: Callable[[S_co], R], /) -> R:
        """Run *fn* like `run` in an asyncio program; the event loop continues meanwhile.

        If the task is cancelled before *fn* starts, nothing is written. If it is cancelled later, the changes are
        stored all the same. Raises `NestedTransaction` if the task awaits it inside its own write block.
        """
        if not callable(fn):
            refuse_uncallable("arun", fn)
        return await self._awaited(fn, kept=False)

    def _awaited(self, fn: Callable[[S_co], R], *, kept: bool) -> Awaitable[R]:
        """As `arun`; if it is *kept*, *fn* runs even if the task is cancelled before it starts."""
        store = self._open_store
        if store.readonly:
            store.refuse_write()
        if store.writer.owner == threading.get_ident() and _awaits_in_block(store):
            from ..store.asyncfutures import NESTED  # late: it imports asyncio

            raise errors.NestedTransaction(NESTED)
        return self._group_commit().awaited(self, fn, kept)

    async def _refuse_to_wait(self) -> None:
        """Raise `NestedTransaction` if the task that runs, or one that waits for it, has a write transaction open.

        Or if the function has one that runs the event loop.
        """
        writer = self._open_store.writer
        if writer.owner == threading.get_ident():
            from ..store.asyncfutures import NESTED  # late, as above
            from ..store.deadlocks import is_of_this_task

            if _awaits_in_block(self._open_store) or await is_of_this_task(writer.holder_here):
                raise errors.NestedTransaction(NESTED)

    def _group_commit(self) -> Groups:
        """The group commit of this database, created when there are several writers for the first time."""
        if self._groups is None:
            from ..store.groups import Groups  # late: a program with one writer does not need it

            return self.__dict__.setdefault("_groups", Groups(self._open_store))
        return self._groups

    def _run_alone(self, fn: Callable[[S_co], R], write: bool) -> R:
        """`run` in a transaction of its own."""
        while True:
            stored: list[bool] = []
            grown = self._open_store.grown
            try:
                with self.write() if write else self.read() as tables:
                    tables.txn._hook(stored.append)
                    tables.txn._opener = getattr(fn, "__code__", tables.txn._opener)  # the program's part of it
                    tables.txn._instruction = -1
                    result = fn(tables)
                    if type(result) in BODIES:
                        refuse_body(result)
                    return result
            except errors.Error as error:  # also from another transaction, in what runs after the commit
                if True in stored or not self._to_run_again(error, write, grown):
                    raise

    def _to_run_again(self, error: BaseException, write: bool, grown: int) -> bool:
        """Whether to run a transaction again that failed with *error*; the map had *grown* so often when it began."""
        if isinstance(error, errors.TransactionPoisoned) and error.__cause__ is not None:
            error = error.__cause__  # the function has gone on after it
        if isinstance(error, errors.DatabaseFull):
            # What another thread met since then may have been an error of another kind.
            full = error.size is not None
            return write and self._open_store.grow(self._timeout, grown, full=full)
        return isinstance(error, errors.Conflict) and self._open_store.engine.retry(error)

    # -- asyncio --------------------------------------------------------------------------------------------------

    async def aread(self, fn: Callable[[S_co], R], /) -> R:
        """The result of ``fn(tables)``, called with a snapshot in a thread, while the event loop continues.

        For what reads much: to read a few records, ``with db.read()`` takes less time than handing them to a thread.
        If the task is cancelled, what the thread still reads is dropped.
        """
        if not callable(fn):
            refuse_uncallable("aread", fn)
        return await self._in_thread(lambda: self.run(fn, write=False))

    @overload
    def arows(
        self, choose: Callable[[S_co], Reads[R]], /, *, size: int = 1000, snapshot: bool = False
    ) -> AsyncGenerator[R, None]: ...
    @overload
    def arows(
        self, choose: Callable[[S_co], Table[K, V]], /, *, size: int = 1000, snapshot: bool = False
    ) -> AsyncGenerator[tuple[K, V], None]: ...
    def arows(
        self, choose: Callable[[S_co], Any], /, *, size: int = 1000, snapshot: bool = False
    ) -> AsyncGenerator[Any, None]:
        """The rows of the query that ``choose(tables)`` returns, for ``async for``, fetched by a thread.

        They come in pages of *size* rows. Each page is a snapshot of its own, so records that are written meanwhile may
        or may not be among the rows; none is there twice, unless its sort key changes. With *snapshot*, all rows are of
        one snapshot, and the file cannot reuse its pages for as long as the loop lasts: for short loops only. After a
        loop that is left early, the snapshot ends when the generator is closed or collected; `contextlib.aclosing`
        closes it at once.

        Raises TypeError for a query with a limit, unless *snapshot* is true, and ValueError for a *size* below 1.
        """
        if not is_whole(size) or not 0 < size <= sys.maxsize:
            raise ValueError(f"size={size!r}: give the number of rows that are fetched at once, 1 or more")
        from .asyncrows import AsyncRows  # late: few programs use asyncio

        return AsyncRows(self._snapshot_rows(choose, size) if snapshot else self._paged_rows(choose, size))

    async def _paged_rows(self, choose: Callable[[S_co], Any], size: int) -> AsyncGenerator[Any, None]:
        after: Optional[str] = None
        while True:
            page = await self.aread(partial(_page, choose, size, after))
            for row in page.rows:
                yield row
            after = page.next
            if after is None:
                return

    async def _snapshot_rows(self, choose: Callable[[S_co], Any], size: int) -> AsyncGenerator[Any, None]:
        rows: Optional[Iterator[Any]] = None
        tables = self.read()
        busy = threading.Lock()  # while a thread reads in the snapshot, or ends it
        left: list[bool] = []  # filled when the loop has ended; no variable, whose change a debugger may undo

        def fetch() -> list[Any]:
            nonlocal rows
            try:
                with busy:
                    if left:
                        return []
                    if rows is None:
                        rows = iter(_rows(choose(tables)))
                    return list(islice(rows, size))
            finally:
                if left:
                    end()

        def end() -> None:
            if busy.acquire(blocking=False):  # else the thread that reads ends it: the event loop does not wait
                try:
                    tables.txn.abort()
                finally:
                    busy.release()

        try:
            while found := await self._in_thread(fetch):
                for row in found:
                    yield row
        finally:
            left.append(True)
            end()

    def _in_thread(self, fn: Callable[[], R]) -> Awaitable[R]:
        from ..loops import running_loop  # late: it imports asyncio, which not every program uses

        loop = running_loop()
        call: Callable[[], R] = partial(copy_context().run, partial(_called, fn))
        while True:
            executor = self._executor()
            try:
                return loop.run_in_executor(executor, call)
            except RuntimeError:
                known = self._threads
                if known is not None and known[1] is executor:
                    raise  # else `close` has just ended it

    def _executor(self) -> ThreadPoolExecutor:
        known = self._threads
        if known is not None and known[0] != os.getpid():  # a forked child has none of the threads
            self.__dict__.pop("_threads", None)
            known = None
        if known is None:
            from concurrent.futures import ThreadPoolExecutor

            known = self.__dict__.setdefault("_threads", (os.getpid(), ThreadPoolExecutor(_THREADS, "zlmdb-read")))
            try:
                _ = self._open_store
            except errors.DatabaseClosed:
                self._end_threads()
                raise
        return known[1]

    def _end_calls(self) -> None:
        """Wait for what was submitted, and end the threads."""
        if self._groups is not None:
            self._groups.finish()
        self._end_threads()

    def _end_threads(self) -> None:
        known = self.__dict__.pop("_threads", None)
        if known is not None and known[0] == os.getpid():
            known[1].shutdown(wait=not threading.current_thread().name.startswith("zlmdb-read"))


def _called(fn: Callable[[], R]) -> R:
    """The result of *fn*, for a future of asyncio, which would wait for ever if it were given a StopIteration."""
    try:
        return fn()
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


def _awaits_in_block(store: Store) -> bool:
    """Whether the caller, or a coroutine that awaits it, has the tables of the write transaction in a variable.

    Or the function that has begun it runs the event loop. If another task has them, the caller only waits until the
    block of that task ends.
    """
    txns = [one for one in store.live.alive() if one._write and one.active]
    views = [one._unit.view for one in txns if one._unit is not None]
    openers = [getattr(one, "_opener", None) for one in txns]
    frame: Optional[FrameType] = _getframe(2)
    while frame is not None and frame.f_code.co_flags & _CO_AWAITS:
        if any([value is view for value in frame.f_locals.values() for view in views]):
            return True
        frame = frame.f_back
    while frame is not None:
        # A coroutine that runs the event loop, as nest_asyncio lets it, goes on when that returns.
        code = frame.f_code
        if any([code is opener for opener in openers]):
            return True
        frame = frame.f_back
    return False


def _rows(chosen: Any) -> Reads[Any]:
    if type(chosen) in BODIES:
        refuse_body(chosen)
    rows: Reads[Any] = chosen.select() if is_a(chosen, Table) else chosen
    if not hasattr(rows, "page"):
        raise TypeError(f"arows() takes a function that returns a table or a query, and this one returned {chosen!r}")
    return rows


def _page(choose: Callable[[Any], Any], size: int, after: Optional[str], tables: Any) -> Any:
    return _rows(choose(tables)).page(size, after)
