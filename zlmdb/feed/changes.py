"""Reading the change feed of a table: what `Database.changes` returns."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Optional, TypeVar, Union

from .. import errors
from ..locks import monotonic
from ..missingattributes import tell_each
from ..numeric import checked_seconds
from ..schema.contents import tables
from ..schema.schema import Schema
from ..schema.undeclared import undeclared
from ..shown import nearest, shortened
from ..store.catalogue import catalogue_of
from ..store.transaction import Transaction
from ..store.transactionstate import Undone
from ..tables.storage import Storage
from . import log
from .advice import OF_CHANGES
from .change import Change, Codecs
from .doorbell import PATIENCE, AsyncWait, Doorbell, Wait
from .given import check_consumer, check_number, check_whole
from .policy import Feed
from .recorder import Present, present

if TYPE_CHECKING:
    from ..database.database import Database
    from ..store.store import Store

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

_PAGE = 256  # changes that are read at once
_PAGE_BYTES = 4 << 20
_MOST = "the greatest number of changes, 0 or more"


class Changes(Generic[K, V]):
    """The changes of a table after a number, in order; what `Database.changes` returns.

    Iterating gives those that come after the last one given, in short read transactions. At the end of the feed it
    waits up to *timeout* seconds for the next one, None: for ever, and ends then; another loop continues. What was
    given inside of a write transaction of this thread that is undone is given again.
    """

    def __init__(
        self, db: Any, table: Any, after: Optional[int], consumer: Optional[str], timeout: Optional[float]
    ) -> None:  # fmt: skip
        if timeout is not None:
            timeout = checked_seconds("timeout", timeout, ", or None to wait for ever")
        if after is not None:
            check_number(after, "after=", "the number of a change, or 0 for all")
        if consumer is not None:
            check_consumer(consumer)
        self._db: Database[Any] = db
        self._attribute, self._name = _named(db, table)
        self._consumer = consumer
        self._timeout = timeout
        self._space = self._opened()
        self._after = 0 if after is None else after
        if consumer is not None:
            self._after = self._registered(consumer, after)

    def __repr__(self) -> str:
        consumer = "" if self._consumer is None else f" for {self._consumer!r}"
        return f"<changes of {self._name!r}{consumer} after {self._after}>"

    # -- what is there ----------------------------------------------------------------------------------------------

    @property
    def after(self) -> int:
        """The number of the last change that was given, or after which it began."""
        return self._after

    def first(self, t: Optional[Schema] = None) -> int:
        """The number of the oldest change that is kept, or of the next one, if none is; in the transaction of *t*."""
        return self._read(t, lambda raw, handle: 1 + self._removed(raw, handle))

    def last(self, t: Optional[Schema] = None) -> int:
        """The number of the last change, 0 before the first; with *t* of the last one that its transaction sees.

        This is where to begin after copying the table in that transaction.
        """
        return self._read(t, log.last)

    # -- reading ----------------------------------------------------------------------------------------------------

    def take(self, most: int = _PAGE) -> list[Change[K, V]]:
        """The next changes, up to *most*, as a list; waits as an iteration does, and is empty after *timeout*.

        It ends with the change that completes 4 MiB, so that large values do not fill the memory: fewer than *most* are
        not yet all.
        """
        check_number(most, "take(", _MOST)
        page = self._page(most)
        if not page and self._may_wait():
            with self._bell().listen() as wait:
                page = self._waited(wait, most)
        return self._taken(page)

    async def atake(self, most: int = _PAGE) -> list[Change[K, V]]:
        """As `take`, in asyncio."""
        check_number(most, "atake(", _MOST)
        page = self._page(most)
        if not page and self._timeout != 0:
            async with self._bell().alisten() as wait:
                page = await self._awaited(wait, most)
        return self._taken(page)

    def __iter__(self) -> Iterator[Change[K, V]]:
        with ExitStack() as stack:
            wait: Optional[Wait] = None
            while True:
                page = self._page(_PAGE)
                if not page and self._may_wait():
                    if wait is None:
                        wait = stack.enter_context(self._bell().listen())
                    page = self._waited(wait, _PAGE)
                if not page:
                    return
                yield from self._given(page)

    async def __aiter__(self) -> AsyncIterator[Change[K, V]]:
        async with AsyncExitStack() as stack:
            wait: Optional[AsyncWait] = None
            while True:
                page = self._page(_PAGE)
                if not page and self._timeout != 0:
                    if wait is None:
                        wait = await stack.enter_async_context(self._bell().alisten())
                    page = await self._awaited(wait, _PAGE)
                if not page:
                    return
                for change in self._given(page):
                    yield change

    def _waited(self, wait: Wait, most: int) -> list[Change[K, V]]:
        """As `_page`, as soon as there are changes, for which it waits by *wait*; none after *timeout*."""
        for pause in self._pauses():
            page = self._page(most)
            if page:
                return page
            wait(pause)
        return []

    async def _awaited(self, wait: AsyncWait, most: int) -> list[Change[K, V]]:
        """As `_waited`, in asyncio."""
        for pause in self._pauses():
            await self._db._refuse_to_wait()
            page = self._page(most)
            if page:
                return page
            await wait(pause)
        return []

    def _taken(self, page: list[Change[K, V]]) -> list[Change[K, V]]:
        if page:
            self._after = page[-1].number
        return page

    def _given(self, page: list[Change[K, V]]) -> Iterator[Change[K, V]]:
        for change in page:
            if change.number != self._after + 1:
                return  # another loop has gone on meanwhile
            self._after = change.number
            yield change

    def _may_wait(self) -> bool:
        """Whether to wait for the next change. Raises `NestedTransaction` where none can come."""
        if self._timeout == 0:
            return False
        if self._db._open_store.writer.owner == threading.get_ident():
            raise errors.NestedTransaction(
                "waiting for changes inside a write transaction of this thread, in which nobody else can make any: "
                "end it first, or read with timeout=0"
            )
        return True

    def _pauses(self) -> Iterator[float]:
        """How long to wait before each further look; the last look is after *timeout*.

        Raises `InvalidDatabase` if the file was replaced meanwhile, to which no change would come any more.
        """
        end = None if self._timeout is None else monotonic() + self._timeout
        looked = monotonic()
        while True:
            if monotonic() - looked >= PATIENCE:
                looked = monotonic()
                self._db._open_store.engine.check_file()
            left = PATIENCE if end is None else min(end - monotonic(), PATIENCE)
            yield max(left, 0.0)
            if left <= 0:
                return

    def _bell(self) -> Doorbell:
        return self._present(self._db._open_store).bell

    def _present(self, store: Store) -> Present:
        slot = tables(store).get(self._name)
        if slot is None:
            raise errors.SchemaMismatch(
                f"table {self._name!r}: another program has dropped or renamed it: open the database again, with its "
                f"schema",
                table=self._name,
            )
        return present(store, self._space, slot.number)

    def _page(self, most: int) -> list[Change[K, V]]:
        """The next changes that are there, up to *most*."""
        with self._db.read() as t:
            codecs = self._codecs(t)
            entries = self._read(t, lambda raw, handle: self._next(raw, handle, most))
        if entries and entries[0].number != self._after + 1:
            raise errors.CorruptDatabase(f"table {self._name!r}: the change {self._after + 1} is missing in the feed")
        if entries:
            self._give_again_if_undone()
        return [Change(entry, codecs) for entry in entries]

    def _next(self, raw: Any, handle: Any, most: int) -> list[log.Entry]:
        self._check_position(raw, handle)
        return log.read(raw, handle, self._after, most, _PAGE_BYTES)

    def _give_again_if_undone(self) -> None:
        """If this thread is in a write transaction, and that is undone, go back to where this object is now."""
        txn: Any = self._db._open_store.writer.holder_here()
        if isinstance(txn, Transaction) and txn.active:
            txn._hook(Undone(partial(self._go_back, self._after)))

    def _go_back(self, number: int) -> None:
        self._after = min(self._after, number)

    def _check_position(self, raw: Any, handle: Any) -> None:
        """Raise `ChangesLost` if the next change is not to be had."""
        first, last = self._removed(raw, handle) + 1, log.last(raw, handle)
        if not first <= self._after + 1 <= last + 1:
            what = (
                f"are removed: {first} is the oldest that is kept"
                if self._after + 1 < first
                else f"are not there: the feed ends with {last}"
            )
            raise errors.ChangesLost(
                f"table {self._name!r}: changes after {self._after} were asked for, and some of them {what}. Copy the "
                f"table in a read transaction t, and go on after changes.last(t)",
                table=self._name,
            )

    # -- named consumers --------------------------------------------------------------------------------------------

    def acknowledge(self, through: Union[Change[Any, Any], int, None] = None, t: Optional[Schema] = None) -> None:
        """Record that the consumer is done with all changes up to *through*: a change or its number.

        By default that is the last change given. The next program that asks with the name of the consumer gets those
        after it, as this object does. With *t*, a write transaction, this is stored with the changes of *t*, or not at
        all; without it, in a transaction of its own. Raises ValueError without a consumer, or for a change that was
        never recorded.
        """
        name = self._consumer
        if name is None:
            raise ValueError("acknowledge() is for a named consumer: db.changes(..., consumer='name')")
        number = self._after if through is None else through.number if isinstance(through, Change) else through
        check_whole(number, "acknowledge(", "a change, or its number")

        def store(raw: Any, handle: Any) -> bool:
            last = log.last(raw, handle)
            if not 0 <= number <= last:
                raise ValueError(f"acknowledge({shortened(number)}): the changes of {self._name!r} end with {last}")
            later = number >= (log.position(raw, handle, name) or 0)
            if later:
                log.acknowledge(raw, handle, name, number, log.now())
            return later

        self._write(t, store)
        if number > self._after:  # of a table that was copied
            if t is None:
                self._go_on(number)
            else:
                t.txn.after_commit(partial(self._go_on, number))

    def _go_on(self, number: int) -> None:
        self._after = max(self._after, number)

    async def aacknowledge(self, through: Union[Change[Any, Any], int, None] = None) -> None:
        """As `acknowledge`, in asyncio: the event loop goes on while it is stored."""
        number = self._after if through is None else through
        await self._db.arun(lambda t: self.acknowledge(number, t))

    def forget(self, t: Optional[Schema] = None) -> None:
        """Remove the named consumer: nothing is kept for it any more. With *t* in that write transaction."""
        name = self._consumer
        if name is None:
            raise ValueError("forget() is for a named consumer: db.changes(..., consumer='name')")
        self._write(t, lambda raw, handle: log.forget(raw, handle, name))

    def consumers(self) -> dict[str, int]:
        """The named consumers of the table, with the number of the last change that each has acknowledged."""
        return {name: number for name, (number, _) in self._read(None, log.consumers).items()}

    def trim(
        self,
        *,
        through: Optional[int] = None,
        max_count: Optional[int] = None,
        max_age: Optional[timedelta] = None,
        acknowledged: bool = False,
    ) -> int:
        """Remove the oldest changes, in a transaction; returns their number.

        *through*: all up to this number. Others as in `Feed`. Without any of them, as the class of the table says.
        """
        if through is not None:
            check_number(through, "trim(through=", "the number of a change")
        keep = Feed(max_count, max_age, acknowledged)
        if keep.keeps_all and through is None:
            declared = self._declared()
            keep = keep if declared is None else declared

        def remove(raw: Any, handle: Any) -> int:
            count = 0 if through is None else log.trim_through(raw, handle, through)
            return count if keep.keeps_all else count + log.trim(raw, handle, keep, log.now())

        return self._write(None, remove)

    # -- the file -----------------------------------------------------------------------------------------------------

    def _registered(self, consumer: str, after: Optional[int]) -> int:
        """The position of the consumer, which is entered after *after* if the file does not know it."""
        known = self._read(None, lambda raw, handle: log.position(raw, handle, consumer))
        if known is not None:
            return known

        def enter(raw: Any, handle: Any) -> bool:
            nonlocal known
            known = log.position(raw, handle, consumer)
            if known is None:
                if log.last(raw, handle) < self._after:  # nobody would keep for it what comes until then
                    self._check_position(raw, handle)
                log.acknowledge(raw, handle, consumer, after or 0, log.now())
            return known is None

        self._write(None, enter)
        return after or 0 if known is None else known

    def _opened(self) -> bytes:
        """The space of the feed. Raises `SchemaMismatch` if the table has none."""
        store = self._db._open_store
        space = catalogue_of(store).feed_space(self._name)
        if space is not None:
            store.open_spaces([space])
            if store.space(space) is not None:
                return space
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise errors.SchemaMismatch(
            f"table {self._name!r} has no change feed: declare it, `class ...(Table[...], feed=True)`, and open the "
            f"database with that class",
            table=self._name,
        )

    def _handle(self, txn: Transaction) -> Any:
        found = txn._handle(self._space)
        if found is None:
            self._refuse()
        return found[0]

    def _removed(self, raw: Any, handle: Any) -> int:
        found = log.removed(raw, handle)
        if found is None:
            self._refuse()
        return found

    def _codecs(self, t: Any) -> Codecs:
        """How keys and values are read. Raises `SchemaMismatch` if the file has another shape than the class."""
        if self._attribute is None:
            storage = undeclared(t.txn._store, self._name)
            if storage is None:
                raise KeyError(f"no table {self._name!r} in the file")
        else:
            table = t[self._attribute]
            storage = table._storage
            if table._found.unreadable is not None:
                table._refuse_shape(table._found.unreadable)
        return Codecs(partial(_key_of, storage), storage.decode_value)

    def _declared(self) -> Optional[Feed]:
        found: Optional[Feed] = None
        if self._attribute is not None:
            _, storage = self._db._storages[self._attribute]
            for follower in storage.followers:
                found = getattr(follower, "keep", None) or found
        return found

    def _read(self, t: Optional[Schema], work: Callable[[Any, Any], R]) -> R:
        """The result of *work* in the transaction of *t*, or in one of its own."""
        if t is None:
            with self._db.read() as own:
                return self._read(own, work)
        self._check_own(t)
        raw, handle = t.txn._engine_txn, self._handle(t.txn)
        try:
            self._removed(raw, handle)  # else another program has dropped the feed
            return work(raw, handle)
        except Exception as error:
            t.txn._fail(error, table=self._name)

    def _check_own(self, t: Schema) -> None:
        given: Any = t
        if not isinstance(given, Schema):
            raise TypeError(f"t={shortened(given)}: expected what `with db.write() as t:` gives, or None")
        if t.txn._store is not self._db._open_store:
            raise ValueError("t is a transaction of another database: give one of that which the changes are of")

    def _write(self, t: Optional[Schema], work: Callable[[Any, Any], int]) -> int:
        """Do *work* in the write transaction of *t*, or in one of its own; it returns whether it has written."""
        if t is None:
            return self._db.run(lambda own: self._write(own, work))
        self._check_own(t)
        txn = t.txn
        txn._check_write()
        raw, handle = txn._engine_txn, self._handle(txn)
        self._present(txn._store).raw = None  # who writes next looks again where the feed begins
        try:
            self._removed(raw, handle)
            written = work(raw, handle)
        except Exception as error:
            txn._fail(error, table=self._name)
        if written:  # else the engine stores nothing, and the next snapshot is that of another process
            txn._count(1, 0)
        return written


tell_each(Changes, OF_CHANGES)


def _key_of(storage: Storage[Any, Any], primary: bytes) -> Any:
    return storage.decode_key(storage.prefix + primary)


def _named(db: Database[Any], table: Any) -> tuple[Optional[str], str]:
    """The attribute by which a schema object has *table*, None if it is not declared, and its name in the file.

    Raises `KeyError` if the file has no such table.
    """
    from ..schema.runtimetables import MadeTable

    if isinstance(table, MadeTable):
        table = table.name
    declared = list(db._storages.items())  # of which another thread may make more meanwhile
    for attribute, (cls, storage) in declared:
        if table == attribute or table is cls:
            return attribute, storage.name
    if not isinstance(table, str):
        raise TypeError(
            f"changes({shortened(table)}): give the name of a table, or the class by which the schema declares it"
        )
    for attribute, (_, storage) in declared:
        if storage.name == table:
            return attribute, table
    known = tables(db._open_store)
    if table not in known:
        raise KeyError(f"no table {table!r} in the file; {nearest(table, dict.fromkeys([*db._storages, *known]))}")
    return None, table
