"""An open database: opening and closing it, and its transactions."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, Union

from .. import errors
from ..engines import registry
from ..locks import cached_property
from ..missingattributes import say_more, tell
from ..numeric import checked_seconds
from ..operations.methods import Operations
from ..schema.schema import Schema, unit_of
from ..shown import shown_path
from ..store import openstores
from ..store.layout import Layout
from ..store.openstores import Opening
from ..store.pool import IDLE, Pool, Unit, references
from ..store.schemaread import SchemaRead
from ..store.schemawrite import WriteTransaction
from ..store.store import Store
from ..store.transaction import Transaction
from .advice import BLOCKS, OF_OTHERS, of_database
from .calls import Calls
from .settings import Settings
from .state import StrPath
from .tables import Attaching

if TYPE_CHECKING:
    from typing_extensions import Self
    from typing_extensions import TypeVar as DefaultTypeVar

    from ..store.transactionstats import TransactionStats
    from .flushing import Flusher

    # A function of a plain Database takes one of any schema.
    S_co = DefaultTypeVar("S_co", bound=Schema, default=Schema, covariant=True)
else:
    S_co = TypeVar("S_co", bound=Schema, covariant=True)
_getframe = sys._getframe  # it has no other name


class Database(Calls[S_co], Attaching, Settings, Operations, Generic[S_co]):
    """An open database. `zlmdb.open` creates one from a schema; the constructor is that of zlmdb 26.

    *dbpath*: a directory, created if needed; None, or an empty text, means a private temporary one. *maxsize*: a hard
    limit in bytes; with None (the default) the file grows by itself. *readonly*: nothing can be written. *lock*: False
    means that LMDB takes no locks; no other process may write then. *sync*: False means that commits are not flushed,
    so a power cut may destroy the file. *create*: False if the directory must exist. *open_now*: False to open the
    database at the beginning of the ``with`` block. *writemap*: write through the memory map, in a file of a fixed size
    (10 MiB without *maxsize*) and without savepoints. *lib_version*: the LMDB format of a new file, ``"0.9"`` (the
    default) or ``"1.0"``. *context* and *log* are stored for the caller. *layout*: the layout of a new file;
    ``"classic"`` if zlmdb 26 must read it.

    Raises `DatabaseInUse`, a RuntimeError, if this process already has the file open; see `Database.open`.
    """

    _temporary: Optional[str] = None
    _flush_every: Optional[float] = None
    _flusher: Optional[Flusher] = None

    def __init__(
        self,
        dbpath: Optional[StrPath] = None,
        maxsize: Optional[int] = None,
        readonly: bool = False,
        lock: bool = True,
        sync: bool = True,
        create: bool = True,
        open_now: bool = True,
        writemap: bool = False,
        context: Any = None,
        log: Any = None,
        lib_version: Optional[str] = None,
        *,
        layout: Layout = "tables",
    ) -> None:
        path = "" if dbpath is None else os.fspath(dbpath)
        options = openstores.checked_options(
            path, readonly=readonly, maxsize=maxsize, durability="full" if sync else "none",
            lock=lock, writemap=writemap, lib_version=lib_version,
        )  # fmt: skip
        if not path:
            path = self._temporary_directory()
        opening = Opening(
            path, options, layout, create=create, exclusive=True, slots_expected=True, directory_only=True
        )
        self._setup(opening, Schema)
        self._context = context
        self._log = log
        self._open_now = open_now
        if open_now:
            self._open()

    def _temporary_directory(self) -> str:
        import tempfile  # late: most databases are somewhere

        self._temporary = tempfile.mkdtemp(prefix="zlmdb-")
        weakref.finalize(self, _remove, self._temporary, os.getpid(), weakref.ref(self))
        return self._temporary

    def _setup(self, opening: Opening, schema: type[Any]) -> None:
        self._opening = opening
        self._lasting = None
        self._timeout = opening.timeout
        self._schema = schema
        self._context = None
        self._log = None
        self._open_now = True
        self._entered = 0
        self._store = None
        self._maps = weakref.WeakSet()
        self._storages = {}
        self._made = {}
        self._readers: Pool[S_co] = Pool()
        self._writers: Pool[S_co] = Pool()

    # -- opening and closing --------------------------------------------------------------------------------------

    def _open(self) -> None:
        try:
            opening = self._opening_now()
            store = openstores.acquire(opening, self)
            path = opening.path
            self._lasting = path if path is None or path[:1] == os.sep else registry.lasting(path)
            # First: a program that is too old must not change the file.
            migrating = hasattr(self._schema, "migrations") and self._check_migrations()
            try:
                self._attach_tables(create=self._opening.create, migrating=migrating)
            except (errors.SchemaMismatch, errors.DuplicateKey) as error:
                self._attach_swept(error, migrating=migrating)
            for pmap in list(self._maps):  # attached before the database was closed, and opened again now
                pmap._adopt(store, self._classic_storage(pmap))
            if self._flush_every is not None:
                from .flushing import Flusher  # late: few programs use it

                self._flusher = Flusher(store, self._flush_every)
        except BaseException:
            if self._store is not None:
                self._close()
            raise

    def _attach_swept(self, error: Union[errors.SchemaMismatch, errors.DuplicateKey], *, migrating: bool) -> None:
        """`_attach_tables` again without what has expired, where a record was in the way of an index or a link.

        *error* says so; it is raised if nothing has expired.
        """
        if error.index is None:
            raise error
        from ..operations.sweeping import sweep  # late: hardly any program needs it here

        swept = 0
        with suppress(errors.Error):  # the first one says what is wrong
            self._attach_tables(create=False, migrating=migrating)
            expiring = [storage for _, storage in self._storages.values() if storage.expiring is not None]
            if any(storage.find_indexes is None for storage in expiring):  # under its former name it is only read
                self._attach_tables(create=False, migrating=migrating, rename=True)
            swept = sweep(self, self._storages, None)
            self._readers, self._writers = Pool(), Pool()
        if not swept:
            raise error
        self._attach_tables(create=self._opening.create, migrating=migrating)

    def _opening_now(self) -> Opening:
        """How to open it, as things are: to the constructor a directory that is there is one to make the file in.

        What was open before is opened again in its place, whatever the working directory is now.
        """
        opening = self._opening
        if self._lasting is not None:
            opening = opening._replace(path=self._lasting)
        if opening.directory_only and opening.path is not None and os.path.isdir(opening.path):
            return opening._replace(create=True)
        return opening

    @staticmethod
    def open(
        dbpath: Optional[StrPath] = None,
        maxsize: Optional[int] = None,
        readonly: bool = False,
        lock: bool = True,
        sync: bool = True,
        create: bool = True,
        open_now: bool = True,
        writemap: bool = False,
        context: Any = None,
        log: Any = None,
        lib_version: Optional[str] = None,
    ) -> Database[Schema]:
        """The instance that has *dbpath* open in this process, or a new one.

        Each call needs its own `close` or end of a ``with`` block. Raises `DatabaseInUse` if the database is open with
        other options.
        """
        db: Database[Schema] = Database(
            dbpath, maxsize, readonly, lock, sync, create, False, writemap, context, log, lib_version
        )  # fmt: skip
        db._open_now = open_now
        db._opening = db._opening._replace(exclusive=False)
        with openstores.sharing:
            with openstores.lock:
                found: Optional[Database[Schema]] = openstores.present(db._opening)
                if found is not None:
                    found._entered += 1
                    if found._store is not None:
                        found._store.go_on()  # another thread may be about to close it
                    return found
            if open_now:
                db._open()
        return db

    @staticmethod
    def scratch(dbpath: StrPath) -> None:
        """Delete the database at *dbpath*, a directory or a file, with its content; do nothing if it does not exist.

        Of a link to a directory, the content is deleted. Raises `InvalidDatabase` if a directory has files, and none
        of a database; `DatabaseInUse` if other programs make files there all the time.
        """
        from ..operations.deletion import delete  # late: it takes `shutil`

        delete(os.fspath(dbpath))

    def close(self, *, timeout: Optional[float] = None) -> None:
        """Close the database; closing the last one of a file closes its environment. Closing twice does nothing.

        Raises `DatabaseInUse` if it has open transactions, `DiskError` if the last flush of ``flush_every=`` fails; it
        is open then, and can be closed again.

        With a *timeout*, transactions have so many seconds to end. From the call on, no other thread begins one: that
        raises `DatabaseClosed`. What was submitted is stored, and a thread that has a transaction open may begin others
        until that ends. If something is still open after the *timeout*, the database goes on, and this raises
        `DatabaseInUse`. It does so at once if the transaction is of the calling thread.
        """
        if timeout is None:
            self._close()
        else:
            from .closing import close_within  # late: most programs have ended their transactions

            close_within(self, timeout)

    def _close(self) -> None:
        """As `close`, for the end of a block: the `close` of a subclass may itself leave the block."""
        if not self._entered:
            self._end_calls()
        with openstores.lock:  # in which `Database.open` counts
            if self._entered > 0:
                self._entered -= 1
            elif self._store is not None:
                flusher = self._flusher
                try:
                    if flusher is not None:
                        flusher.stop()
                    openstores.release(self._store)
                except BaseException:  # also of the last flush, or an interrupt
                    if flusher is not None and self._store.present is not None:  # the database goes on
                        with suppress(RuntimeError):  # there is no room for a thread
                            flusher.start()
                    raise
                self._store = None
                tables: Any = self.__dict__.get("auto")
                if tables is not None:
                    tables._forget()
                self.__dict__.pop("_groups", None)
                self._readers, self._writers = Pool(), Pool()
        if self._store is None:
            for wake in openstores.at_close:
                wake()
            self._end_threads()  # those that another thread has begun meanwhile

    def __enter__(self) -> Self:
        if self._store is None:
            self._open()
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            if error is not None:
                say_more(error)
            self._close()
        except errors.DatabaseInUse:
            if kind is None:  # else that error is the one to see
                raise

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        store: Optional[Store] = self.__dict__.get("_store")
        # At the end of the program the system closes what is open. Modules may be empty then, and a daemon thread that
        # Python has stopped may have the lock of `openstores`.
        if store is not None and store.env is not None and not is_ending():
            if any(live is None or live.active for live in [ref() for ref in list(store.live.values())]):
                store.at_rest = partial(openstores.release, store, store.at_rest)
            else:
                openstores.release(store)

    if not TYPE_CHECKING:  # checkers report the name

        def _no_dict(self, *_):
            raise TypeError(f"a database is no dict of records: {BLOCKS}")

        __getitem__ = __setitem__ = __delitem__ = __iter__ = __contains__ = _no_dict

    def __repr__(self) -> str:
        return f"<database {shown_path(self.dbpath)}, {'closed' if self._store is None else 'open'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.dbpath is None or self._temporary is not None:
            raise TypeError("a database in memory or in a temporary directory cannot be pickled: give it a path")
        path = self._lasting or registry.lasting(self.dbpath)
        return _opened_again, (self._opening._replace(path=path, exclusive=False, slots_expected=True), self._schema)

    # -- transactions ---------------------------------------------------------------------------------------------

    def read(self) -> S_co:
        """The tables in a read transaction: a snapshot that never changes. Never waits.

        It ends with its block, ``with db.read() as t:``; without one, with ``t.txn.abort()``.
        """
        pool = self._readers
        try:
            unit: Unit[S_co] = pool.idle.popleft()
        except IndexError:
            unit = self._reader()
        if references(unit.txn) != unit.count or references(unit.view) != IDLE or references(unit.exit) != IDLE:
            unit = pool.another(unit) or self._reader()
        txn = unit.txn
        caller = _getframe(1)
        txn._opener = caller.f_code
        txn._instruction = caller.f_lasti
        txn._begin()
        return unit.view

    @cached_property
    def auto(self) -> S_co:
        """The tables without a block: each operation on a record is a transaction of its own.

        ``db.auto.users[key]`` reads from the latest snapshot, ``db.auto.users[key] = user`` is stored when it returns,
        like `run`. There are `get`, ``in``, `len`, `first`, `last`, `count`, `get_many`, all methods that write, but
        `edit`, and the look-ups of unique indexes. Iterations and selections take a block; their error names it. Two
        operations see two snapshots, and changes of others may come in between. So what belongs together, such as a
        read and the write that follows from it, goes into one block, or into one operation: `Table.change`.
        """
        from ..schema.auto import AutoTables  # late: not every program uses it

        tables: Any = AutoTables(self)
        typed: S_co = tables  # it has the operations of the tables that take no block
        return typed

    def write(self, *, timeout: Optional[float] = None, alone: bool = False) -> S_co:
        """The tables in a write transaction: the end of the ``with`` block commits it, an exception aborts it.

        There is one writer at a time; *timeout* is the time to wait for it, in seconds, by default that given to
        `open`. Blocks of several threads that wait for the writer share a commit, unless *alone* is true: a block whose
        body waits for another thread that writes must be alone. Raises `WriterTimeout`, `ReadonlyDatabase`,
        `NestedTransaction`.
        """
        if timeout is None:
            timeout = self._timeout
        else:
            timeout = checked_seconds("timeout", timeout, ", or None for what was given to open()", negative=True)
        pool = self._writers
        try:
            unit: Unit[S_co] = self._lonely_writer() if alone else pool.idle.popleft()
        except IndexError:
            unit = self._writer()
        if references(unit.txn) != unit.count or references(unit.view) != IDLE or references(unit.exit) != IDLE:
            unit = pool.another(unit) or self._writer()
        txn = unit.txn
        txn._thread = 0  # it begins with the block
        txn._timeout = timeout
        caller = _getframe(1)
        txn._opener = caller.f_code
        txn._instruction = caller.f_lasti
        return unit.view

    def _reader(self) -> Unit[Any]:
        """A new read transaction and its tables, if the pool has none."""
        store = self._open_store
        store.live.end_dropped()
        return unit_of(self._readers, SchemaRead(store), self._schema, self._storages)

    def _lonely_writer(self) -> Unit[Any]:
        """As `_writer`, for one block that joins no group."""
        unit = self._writer()
        unit.stay_alone()
        return unit

    def _writer(self) -> Unit[Any]:
        """A new write transaction and its tables."""
        store = self._open_store
        if store.readonly:
            store.refuse_write()
        return unit_of(self._writers, WriteTransaction(store, write=True), self._schema, self._storages)

    def begin(
        self, write: bool = False, buffers: bool = False, stats: Optional[TransactionStats] = None
    ) -> Transaction:  # fmt: skip
        """A transaction for a ``with`` statement; it begins with the block.

        *buffers*: reads return memoryviews, which are valid inside the block only; slices of them are not protected
        after it. *stats* counts the writes.
        """
        return Transaction(self._open_store, write, buffers, stats)


# -- helpers -----------------------------------------------------------------------------------------------------


def _remove(directory: str, process: int, known: weakref.ref[Database[Any]]) -> None:
    """Delete the temporary directory of a database, except in a child of the process that created it."""
    if os.getpid() == process:
        import shutil

        db = known() if os.name == "nt" else None  # which deletes no open file; known() if it is the program that ends
        if db is not None:
            with suppress(errors.Error):
                db._close()
        shutil.rmtree(directory, ignore_errors=True)


def opened(opening: Opening, schema: type[Any], flush_every: Optional[float] = None) -> Database[Any]:
    """A new handle."""
    db: Database[Any] = object.__new__(Database)
    db._setup(opening, schema)
    db._flush_every = flush_every
    db._open()
    return db


def _opened_again(opening: Opening, schema: type[Any]) -> Database[Any]:
    """The database of a pickle: opens the file again. Raises FileNotFoundError."""
    if not opening.engine.exists():
        raise FileNotFoundError(f"the database that was pickled is not at {opening.path!r} any more: check the path")
    return opened(opening, schema)


tell(Database, OF_OTHERS, of_database)
