"""An open database, and the functions that open one."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, Union, get_origin, overload

from . import errors
from .calls import Calls
from .engines import Durability
from .operations.methods import Operations
from .schema.attach import attach
from .schema.declaration import Declaration, declaration
from .schema.made import Made, MadeTable
from .schema.schema import Schema, declarations, unit_of
from .store import openstores
from .store.layout import Layout
from .store.openstores import Opening
from .store.pool import Pool, Unit
from .store.readers import Reader, readers
from .store.slots import FIRST_SLOT
from .store.snapshot import Snapshot
from .store.store import Store
from .store.transaction import Transaction
from .store.transactionstats import TransactionStats
from .store.writing import SchemaWriter
from .tables.storage import Storage
from .tables.table import Table

if TYPE_CHECKING:
    from typing_extensions import Self
    from typing_extensions import TypeVar as DefaultTypeVar

    from .classic.pmap import PersistentMap
    from .flushing import Flusher
    from .operations.statistics import TableInfo
    from .schema.multi import Several

    # A function of a plain Database takes one of any schema.
    S_co = DefaultTypeVar("S_co", bound=Schema, default=Schema, covariant=True)
else:
    S_co = TypeVar("S_co", bound=Schema, covariant=True)
S = TypeVar("S", bound=Schema)
P = TypeVar("P", bound="PersistentMap[Any, Any]")
T = TypeVar("T", bound=Table[Any, Any])
M = TypeVar("M", bound="Several[Any, Any]")
K = TypeVar("K")
V = TypeVar("V")
_MISSING: Any = object()
_getframe = sys._getframe  # it has no other name
StrPath = Union[str, "os.PathLike[str]"]


@overload
def open(
    path: StrPath,
    /,
    *,
    readonly: bool = False,
    timeout: Optional[float] = None,
    lock: bool = True,
    verify: bool = False,
) -> Database[Schema]: ...
@overload
def open(
    path: Optional[StrPath],
    schema: type[S],
    /,
    *,
    readonly: bool = False,
    create: bool = True,
    maxsize: Optional[int] = None,
    durability: Durability = "full",
    layout: Layout = "tables",
    timeout: Optional[float] = None,
    lock: bool = True,
    verify: bool = False,
    drop_indexes: bool = False,
    build_indexes: bool = True,
    lib_version: Optional[str] = None,
    mode: Optional[int] = None,
    flush_every: Optional[float] = None,
) -> Database[S]: ...
def open(
    path: Optional[StrPath],
    schema: Optional[type[Any]] = None,
    /,
    *,
    readonly: bool = False,
    create: bool = True,
    maxsize: Optional[int] = None,
    durability: Durability = "full",
    layout: Layout = "tables",
    timeout: Optional[float] = None,
    lock: bool = True,
    verify: bool = False,
    drop_indexes: bool = False,
    build_indexes: bool = True,
    lib_version: Optional[str] = None,
    mode: Optional[int] = None,
    flush_every: Optional[float] = None,
) -> Database[Any]:
    """Open the database at *path*, a directory or the data file itself; None creates one in memory.

    With a *schema*, this function creates the declared tables and indexes that the file lacks, under the write lock, so
    several processes may open the database at once. Without a schema the file must exist, and its records are read as
    plain data.

    *maxsize*: a hard limit in bytes; a write beyond it raises `DatabaseFull`, unless it makes room. With None the file
    grows by itself. *durability*: ``"full"``: every commit survives a power cut. ``"commit"``: a power cut may lose the
    last commits, and the file stays consistent. ``"none"``: a power cut may destroy the file; the end of the process
    loses nothing. *layout*: the layout of a new file; an existing file keeps its own.
    ``"raw"`` opens an LMDB file of another program: its sub-databases are the tables, without indexes, and nothing is
    created. *timeout*: seconds to wait for another writer; with None it waits forever, and logs this after a second.
    *readonly*: nothing can be written and
    nothing is created; a declared table that the file lacks is empty. *create* False: the file must exist, and nothing
    is created in it. *lock* False, with *readonly*: read without LMDB's locks, as zlmdb does by itself if nobody can
    write; if a program does write, the reader gets wrong data. *verify*: check all pages before LMDB reads any of them,
    as `Database.verify` does, for files that others may have written; it takes some seconds per GB. *drop_indexes*:
    drop the indexes of the file that no table class declares; otherwise they stay, and their tables can only be read.
    *build_indexes* False: new indexes of tables with many records are not built before this function returns, but by
    `Database.build_indexes`; until then they are maintained, and queries do without them.
    *lib_version*: the LMDB format of a new file, ``"0.9"`` (the default) or ``"1.0"``, which has longer keys. *mode*:
    the mode of new files, such as ``0o600``, from which the umask takes bits away; copies and backups keep it.
    *flush_every*, with ``durability="commit"`` or ``"none"``: a thread flushes every so many seconds what was committed
    since, and `close` does so once more; a power cut can harm only what was committed after the last flush, but with
    ``"none"`` the whole file if it comes while the system writes unflushed pages.

    Opening the same file again with the same options shares one environment. Raises `DatabaseInUse` if the options
    differ, FileNotFoundError, `InvalidDatabase`, `CorruptDatabase`, `SchemaMismatch` and `WriterTimeout`. If a new
    index does not fit a record, raises `DuplicateKey`, `EncodeError` or `DecodeError`, and the file does not get it. An
    empty *path* raises ValueError.
    """
    if not lock and not readonly:
        raise ValueError("lock=False is for reading: add readonly=True, or leave it out")
    if durability not in ("full", "commit", "none"):
        raise ValueError(f"durability={durability!r}: expected 'full', 'commit' or 'none'")
    if lib_version not in (None, "0.9", "1.0"):
        raise ValueError(f"lib_version={lib_version!r}: expected '0.9', '1.0', or None for what the file has")
    if mode is not None and not (type(mode) is int and 0o600 <= mode <= 0o777):
        raise ValueError(f"mode={mode!r}: expected one with which the owner reads and writes, such as 0o600")
    if flush_every is not None and not (flush_every > 0 and durability != "full" and path is not None and not readonly):
        raise ValueError(
            f"flush_every={flush_every!r} takes a number of seconds, and a file opened to write with durability "
            f"'commit' or 'none': with 'full' each commit is flushed"
        )
    if layout not in ("tables", "classic", "raw"):
        raise ValueError(f"layout={layout!r}: expected 'tables' or 'classic', or 'raw' for a file of another program")
    if layout == "raw" and path is None:
        raise ValueError("layout='raw' is for files of other programs: give the path of one")
    if drop_indexes and (readonly or not create or schema is None):
        raise ValueError("drop_indexes=True changes the file: it takes a schema, and neither readonly nor create=False")
    given: Any = schema
    if schema is not None and not (isinstance(given, type) and issubclass(given, Schema)):
        raise TypeError(f"expected a subclass of zlmdb.Schema, got {schema!r}: its attributes are the tables")
    if path is not None and not os.fspath(path):
        raise ValueError("the path is empty: give the directory of the database, or None for one in memory")
    if timeout is not None and timeout < 0:
        raise ValueError(f"timeout={timeout!r}: expected seconds, 0 or more, or None to wait forever")
    location = None if path is None else os.fspath(path)
    others: dict[str, Any] = {} if lock else {"lock": False}  # an engine need not know what is not asked for
    if lib_version is not None:
        others["lib_version"] = lib_version
    if mode is not None:
        others["mode"] = mode
    options = openstores.checked_options(
        location, readonly=readonly, maxsize=maxsize, durability=durability, **others
    )  # fmt: skip
    return _opened(
        Opening(
            location,
            options,
            layout,
            create=create and schema is not None and layout != "raw",
            slots_expected=layout == "classic" and schema is not None,
            timeout=timeout,
            verify=verify,
            drop_indexes=drop_indexes,
            build_indexes=build_indexes,
        ),
        schema or Schema,
        flush_every,
    )


class Database(Calls[S_co], Operations, Generic[S_co]):
    """An open database. `zlmdb.open` creates one from a schema; the constructor is that of zlmdb 26.

    *dbpath*: a directory, created if needed; None, or an empty text, means a private temporary one. *maxsize*: a hard
    limit in bytes; with None (the default) the file grows by itself. *readonly*: nothing can be written. *lock*: False
    means that LMDB takes no locks; no other process may write then. *sync*: False means that commits are not flushed,
    so a power cut may destroy the file. *create*: False if the directory must exist. *open_now*: False to open the
    database at the beginning of the ``with`` block. *writemap*: write through the memory map, which needs *maxsize* and
    has no savepoints. *lib_version*: the LMDB format of a new file, ``"0.9"`` (the default) or ``"1.0"``. *context* and
    *log* are stored for the caller. *layout*: the layout of a new file; ``"classic"`` if zlmdb 26 must read it.

    Raises `DatabaseInUse`, a RuntimeError, if this process already has the file open; see `Database.open`.
    """

    _schema: type[S_co]
    _context: Any
    _log: Any
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
        if lib_version not in (None, "0.9", "1.0"):
            raise ValueError(f"lib_version={lib_version!r}: expected '0.9', '1.0', or None for what the file has")
        path = "" if dbpath is None else os.fspath(dbpath)
        options = openstores.checked_options(
            path, readonly=readonly, maxsize=maxsize, durability="full" if sync else "none",
            **_unusual(lock=(lock, True), writemap=(writemap, False), lib_version=(lib_version, None)),
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
        weakref.finalize(self, _remove, self._temporary, os.getpid())
        return self._temporary

    def _setup(self, opening: Opening, schema: type[Any]) -> None:
        self._opening = opening
        self._timeout = opening.timeout
        self._schema = schema
        self._context = None
        self._log = None
        self._open_now = True
        self._entered = 0
        self._store: Optional[Store] = None
        self._maps: weakref.WeakSet[PersistentMap[Any, Any]] = weakref.WeakSet()
        self._storages: dict[str, tuple[type[Table[Any, Any]], Storage[Any, Any]]] = {}
        self._made: dict[str, Made] = {}
        self._readers: Pool[S_co] = Pool()
        self._writers: Pool[S_co] = Pool()

    # -- opening and closing --------------------------------------------------------------------------------------

    def _open(self) -> None:
        store = self._store = openstores.acquire(self._opening_now(), self)
        try:
            # First: a program that is too old must not change the file.
            migrating = hasattr(self._schema, "migrations") and self._check_migrations()
            self._attach_tables(create=self._opening.create, migrating=migrating)
            for pmap in list(self._maps):  # attached before the database was closed, and opened again now
                pmap._adopt(store, self._classic_storage(pmap))
            if self._flush_every is not None:
                from .flushing import Flusher  # late: few programs use it

                self._flusher = Flusher(store, self._flush_every)
        except BaseException:
            self._close()
            raise

    def _attach_tables(self, *, create: bool, migrating: bool) -> None:
        """Compare schema and file, and create what is missing. *migrating*: tables that differ wait for migrations."""
        declared = declarations(self._schema)
        if self._made:
            declared = {**declared, **{name: (one.cls, one.declared) for name, one in self._made.items()}}
        store = self._store
        found = attach(
            self._open_store if store is None else store,
            [one for _, one in declared.values()],
            create=create,
            timeout=self._opening.timeout,
            drop_indexes=self._opening.drop_indexes,
            migrating=migrating,
            build=self._opening.build_indexes,
        )
        self._storages = {name: (cls, storage) for (name, (cls, _)), storage in zip(declared.items(), found)}
        self.__dict__.pop("auto", None)
        for _, one in declared.values():
            if one.linked:
                from .schema.links import wire  # late: few schemas have links

                wire(declared, self._storages)
                break

    def _attach_again(self) -> None:
        """Use the new shape of tables in all transactions from now on."""
        self._attach_tables(create=True, migrating=False)
        self._readers, self._writers = Pool(), Pool()

    def _opening_now(self) -> Opening:
        """How to open it, as things are: to the constructor a directory that is there is one to make the file in."""
        opening = self._opening
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
                    return found
            if open_now:
                db._open()
        return db

    @staticmethod
    def scratch(dbpath: StrPath) -> None:
        """Delete the database at *dbpath*, a directory or a file, with its content; do nothing if it does not exist."""
        import shutil  # late, like tempfile

        if os.path.isdir(dbpath):
            shutil.rmtree(dbpath)
        elif os.path.exists(dbpath):
            os.remove(dbpath)

    def close(self) -> None:
        """Close the database; closing the last one of a file closes its environment. Closing twice does nothing.

        Raises `DatabaseInUse` if it has open transactions.
        """
        self._close()

    def _close(self) -> None:
        """Close as `close` does, even if a subclass has a method of that name that leaves the block."""
        if not self._entered:
            self._end_calls()
        with openstores.lock:  # in which `Database.open` counts
            if self._entered > 0:
                self._entered -= 1
            elif self._store is not None:
                if self._flusher is not None:
                    self._flusher.stop()
                openstores.release(self._store)
                self._store = None
                self.__dict__.pop("_groups", None)
                self._readers, self._writers = Pool(), Pool()

    def __enter__(self) -> Self:
        if self._store is None:
            self._open()
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            self._close()
        except errors.DatabaseInUse:
            if kind is None:  # else that error is the one to see
                raise

    def __del__(self) -> None:
        store: Optional[Store] = self.__dict__.get("_store")
        if store is not None and store.env is not None:
            if any(live is None or live.active for live in [ref() for ref in list(store.live.values())]):
                store.at_rest = partial(openstores.release, store, store.at_rest)
            else:
                openstores.release(store)

    if not TYPE_CHECKING:  # checkers report the name

        def __getattr__(self, name):
            of_transaction = name in self.__dict__.get("_storages", ())
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                + (f": tables are in a transaction, `with db.read() as t:`, as t.{name}" if of_transaction else "")
            )

    def __repr__(self) -> str:
        return f"<database {self.dbpath!r}, {'closed' if self._store is None else 'open'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.dbpath is None or self._temporary is not None:
            raise TypeError("a database in memory or in a temporary directory cannot be pickled: give it a path")
        return _opened_again, (self._opening._replace(exclusive=False, slots_expected=True), self._schema)

    @property
    def _open_store(self) -> Store:
        """The open environment. Raises `DatabaseClosed`."""
        store = self._store
        if store is None:
            raise errors.DatabaseClosed(
                f"the database {self.dbpath!r} is not open: open it again, or use it in its with block"
            )
        if store.env is None:  # in a forked child
            store.reopen()
        return store

    # -- transactions ---------------------------------------------------------------------------------------------

    def read(self) -> S_co:
        """The tables in a read transaction: a snapshot that never changes. Never waits."""
        unit: Optional[Unit[S_co]] = self._readers.take()
        if unit is None:
            unit = self._reader()
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
        from .schema.auto import AutoTables  # late: not every program uses it

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
        unit: Optional[Unit[S_co]] = self._lonely_writer() if alone else self._writers.take()
        if unit is None:
            unit = self._writer()
        txn = unit.txn
        txn._thread = 0  # it begins with the block
        txn._timeout = self._timeout if timeout is None else timeout
        caller = _getframe(1)
        txn._opener = caller.f_code
        txn._instruction = caller.f_lasti
        return unit.view

    def _reader(self) -> Unit[Any]:
        """A new read transaction and its tables, if the pool has none."""
        store = self._open_store
        store.end_dropped()
        return unit_of(self._readers, Snapshot(store), self._schema, self._storages)

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
        return unit_of(self._writers, SchemaWriter(store, write=True), self._schema, self._storages)

    def begin(
        self, write: bool = False, buffers: bool = False, stats: Optional[TransactionStats] = None
    ) -> Transaction:  # fmt: skip
        """A transaction for a ``with`` statement; it begins with the block.

        *buffers*: reads return memoryviews, which are valid inside the block only; slices of them are not protected
        after it. *stats* counts the writes.
        """
        return Transaction(self._open_store, write, buffers, stats)

    # -- tables ---------------------------------------------------------------------------------------------------

    def tables(self) -> dict[str, TableInfo]:
        """The tables of the file, declared or not, by name (or UUID), with number and bytes of their records."""
        from .operations import statistics

        return statistics.table_infos(self._open_store)

    @overload
    def table(self, name: str, cls: type[T], /) -> MadeTable[T]: ...
    @overload
    def table(self, name: str, cls: type[M], /) -> MadeTable[M]: ...
    @overload
    def table(self, name: str, key: type[K], value: type[V], /) -> MadeTable[Table[K, V]]: ...
    @overload
    def table(self, name: str, key: Any, value: Any, /) -> MadeTable[Table[Any, Any]]: ...
    def table(self, name: str, key: Any, value: Any = _MISSING, /) -> MadeTable[Any]:
        """The table *name*, which no schema has to declare: created if the file lacks it, with its types compared.

        Give the types of keys and values, ``db.table("counts", str, int)``, or a table class, for its indexes:
        ``db.table("users", Users)``, ``db.table("tags", SetTable[str, str])``. What is returned is the key to the table
        in a transaction: ``t[counts]["a"] = 1``.
        The next call with the same arguments costs a look-up. Creating a table takes a transaction of its own, so it
        cannot be done inside a write transaction of this thread.

        Raises TypeError for types that cannot be stored, `SchemaMismatch` where the file or an earlier call has others,
        ValueError for a name that the schema has, `NestedTransaction`.
        """
        types = (key, value)
        known = self._made.get(name)
        if known is not None and known.made._types == types:
            return known.made
        return self._make_table(name, key, value, known)

    def _make_table(self, name: str, key: Any, value: Any, known: Optional[Made]) -> MadeTable[Any]:
        cls: Any = key
        if value is not _MISSING:
            generic: Any = Table
            cls = generic[key, value]
        several = get_origin(cls) or cls
        if value is not _MISSING or not hasattr(several, "_parts"):
            several = None
        of: Any = get_origin(cls) or cls
        if not name or (several is None and value is _MISSING and not (isinstance(of, type) and issubclass(of, Table))):
            raise TypeError(
                f"table({name!r}, {key!r}): give a name and the types of keys and values, or a class of zlmdb.Table"
            )
        parts: dict[str, tuple[Any, Declaration]]
        parts = (
            {name: (get_origin(cls) or cls, declaration(cls, name))} if several is None else several._parts(cls, name)
        )
        if known is not None:
            if all([self._is_made(part, one) for part, (_, one) in parts.items()]):
                return known.made
            raise errors.SchemaMismatch(
                f"table {name!r} was made with the types {known.made._types!r} before: use these, or another name",
                table=name,
            )
        taken = declarations(self._schema)
        names = {*taken, *(one.name for _, one in taken.values())}
        if not names.isdisjoint([*parts, *(one.name for _, one in parts.values())]):
            raise ValueError(f"table {name!r} is declared by {self._schema.__name__}: use t.{name}, or another name")
        opening = self._opening
        declared = [one for _, one in parts.values()]
        try:
            storages = attach(self._open_store, declared, create=opening.create, timeout=opening.timeout)
        except errors.NestedTransaction as error:
            raise errors.NestedTransaction(
                f"table {name!r} cannot be made inside a write transaction of this thread: call "
                f"db.table({name!r}, ...) before the block, and use what it returns inside, as t[table]"
            ) from error
        # Another thread may have made it meanwhile: both give the same object. That of *name*, by which others find it,
        # comes last.
        made: MadeTable[Any] = MadeTable(name, (key, value), several)
        for (part, (part_cls, one)), storage in reversed(list(zip(parts.items(), storages))):
            found = self._made.setdefault(part, Made(made, part_cls, one))
            self._storages.setdefault(part, (found.cls, storage))
        return self._made[name].made

    def _is_made(self, name: str, declared: Declaration) -> bool:
        known = self._made.get(name)
        return known is not None and known.declared.fingerprint == declared.fingerprint

    def adopt(self) -> int:
        """Make a file of another program, open with ``layout="raw"``, one of zlmdb; returns the number of records.

        The sub-databases become tables: those that the schema declares with its types, others with keys and values of
        bytes. The records are stored again under the names that zlmdb uses, in one transaction, after each was read by
        its type. The other program cannot find them any more. The database stays open, as one of the tables layout;
        open it with other schemas, for example with indexes, from then on.

        Raises `DecodeError` for the first record that does not fit, `SchemaMismatch` for a sub-database that cannot be
        a table, `ConstraintError` for records outside of sub-databases, ValueError for a file of zlmdb.
        """
        from .operations.adoption import adopt

        store = self._open_store
        if store.layout != "raw":
            raise ValueError(f"{self.dbpath!r} is a file of zlmdb already: adopt() is for layout='raw'")
        if store.users > 1:
            raise errors.DatabaseInUse(
                f"{self.dbpath!r} is open more than once in this process: close the others first"
            )
        declared = {one.name: (one, self._storages[name][1]) for name, (_, one) in declarations(self._schema).items()}
        count = adopt(store, declared)
        self._opening = self._opening._replace(layout="tables", create=True)
        self._attach_again()
        return count

    def attach_table(self, klass: type[P]) -> P:
        """The map of *klass*, a class decorated by `table`; it gets a slot if it has none.

        Must not be called while this thread has an open transaction. Raises `SchemaMismatch` if the table in the file
        has other types.
        """
        return self._attach(klass, record=True)

    def _attach(self, klass: type[P], *, record: bool) -> P:
        """As `attach_table`; without *record* only in a slot that the file has, and without storing the types there."""
        from .classic.pmap import PersistentMap  # late, as below, what not every program uses

        given: Any = klass
        if not (isinstance(given, type) and issubclass(given, PersistentMap)):
            types = given.__name__ if isinstance(given, type) and issubclass(given, Table) else "KeyType, ValueType"
            raise TypeError(
                f"cannot attach {klass!r}: a subclass of zlmdb.PersistentMap is required; a table made at run time is "
                f"db.table(name, {types})"
            )
        self._refuse_in_transaction(klass)
        # A constructor of the user's own has a say in the codecs, and the number is in the catalogue.
        storage = self._classic_storage(klass._in_slot(FIRST_SLOT), record=record)
        if storage.number == 0:
            raise errors.ReadonlyDatabase(
                f"table {storage.name} of {klass.__name__} is not in {self.dbpath!r}, which is open read-only: "
                "attach it writable first"
            )
        pmap = klass._in_slot(storage.number)
        pmap._adopt(self._open_store, storage)
        self._maps.add(pmap)
        return pmap

    def _classic_storage(self, pmap: PersistentMap[Any, Any], *, record: bool = True) -> Storage[Any, Any]:
        [storage] = attach(self._open_store, [pmap._declaration()], create=record, timeout=self._opening.timeout)
        return storage

    def _refuse_in_transaction(self, klass: type) -> None:
        me = threading.get_ident()
        for ref in list(self._open_store.live.values()):
            txn: Any = ref()
            if txn is not None and txn.active and txn._thread == me:
                raise errors.NestedTransaction(
                    f"{klass.__name__} cannot be attached inside a transaction of this thread: attach "
                    "tables before you begin one"
                )

    # -- readers --------------------------------------------------------------------------------------------------

    def readers(self) -> list[Reader]:
        """The readers of the file in all processes; those of this process also have their age and origin."""
        store = self._open_store
        return readers(store.engine.readers(store.environment), store.live)

    def clear_readers(self) -> int:
        """Free the slots of killed readers, and with them the pages that they kept; returns their number.

        Opening does this too, as do every 1,000th write transaction and a full table of readers.
        """
        return self._open_store.clear_readers()

    @property
    def long_read(self) -> float:
        """Seconds after which an open read transaction is logged as a warning, once: 60.

        The warning names the line that began it. It is logged when the next transaction begins in this process, at most
        a quarter of the time late, or else when the long transaction ends. ``math.inf`` turns it off.
        """
        return self._open_store.ages.limit

    @long_read.setter
    def long_read(self, seconds: float) -> None:
        store = self._open_store
        store.ages.warn_after(seconds)
        store.disturb()

    # -- statistics ------------------------------------------------------------------------------------------------

    @property
    def dbpath(self) -> Optional[str]:
        """The path as given; of a temporary database its directory; None in memory."""
        return self._opening.path

    @property
    def maxsize(self) -> int:
        """The size in bytes to which the database may grow; while it is closed, the given or the default size."""
        given = self._opening.options.maxsize
        if given is not None:
            return given
        if self._store is None:
            return self._opening.engine.capacity(None)
        return self._open_store.engine.capacity(self._open_store.environment)

    @property
    def context(self) -> Any:
        """The object that the caller gave as *context*."""
        return self._context

    @property
    def log(self) -> Any:
        """The given logger, or that of zlmdb. It is stored for the caller, who may set another one."""
        import logging  # late, as in `log`

        return logging.getLogger("zlmdb") if self._log is None else self._log

    @log.setter
    def log(self, log: Any) -> None:
        self._log = log

    @property
    def is_open(self) -> bool:
        """Whether the database is open."""
        return self._store is not None

    @property
    def is_sync(self) -> bool:
        """Whether a commit is flushed to the disk."""
        return self._opening.options.durability != "none"

    @property
    def is_readonly(self) -> bool:
        """Whether the database was opened read-only."""
        return self._opening.options.readonly

    def _option(self, name: str, default: Any) -> Any:
        """What was given of an option that not every engine has."""
        return getattr(self._opening.options, name, default)

    @property
    def is_writemap(self) -> bool:
        """Whether the database writes through the memory map."""
        return bool(self._option("writemap", False))

    @property
    def lib_version(self) -> Optional[str]:
        """The LMDB format of the open file, "0.9" or "1.0"; None in memory; while closed, the requested format."""
        if self._store is None:
            found: Optional[str] = self._option("lib_version", None)
            return found
        return self._open_store.engine.file_version(self._open_store.environment)

    @property
    def layout(self) -> Layout:
        """The layout of the open file: "tables", "classic", or "raw" for a file of another program."""
        return self._open_store.layout

    def flush(self) -> None:
        """Flush committed data to the disk now, whatever the *durability*: see `zlmdb.open`."""
        self.sync(True)

    def sync(self, force: bool = False) -> None:
        """Flush committed data to the disk; with *force* even if ``sync=False`` was given."""
        store = self._open_store
        try:
            if not store.provisional:  # else nothing was written
                store.environment.sync(force)
        except Exception as error:
            store.fail(error)

    def config(self) -> dict[str, Any]:
        """The options that the database was opened with, *context* as text: plain data, for a log or a page."""
        options = self._opening.options
        return {
            "is_temp": self._temporary is not None,
            "dbpath": self.dbpath,
            "maxsize": self.maxsize,
            "readonly": options.readonly,
            "lock": self._option("lock", True),
            "sync": self.is_sync,
            "create": self._opening.create,
            "open_now": self._open_now,
            "writemap": self.is_writemap,
            "context": None if self._context is None else str(self._context),
        }

    def stats(self, include_slots: bool = False) -> dict[str, Any]:
        """Sizes in bytes and pages, LMDB's own statistics, and with *include_slots* a list of the attached tables.

        ``used`` are the bytes of the pages in use, in all tables and indexes that this process has open;
        ``reclaimable`` those of the unused pages, which are written again before the file grows.
        """
        from .operations import statistics

        found = {**statistics.sizes(self._open_store), "read_only": self.is_readonly, "sync_enabled": self.is_sync}
        return {**found, "slots": statistics.slot_statistics(self._open_store)} if include_slots else found


# -- helpers -----------------------------------------------------------------------------------------------------


def _unusual(**given: tuple[Any, Any]) -> dict[str, Any]:
    """Those of the values that differ from their defaults: an engine need not know the options."""
    return {name: value for name, (value, usual) in given.items() if value != usual}


def _remove(directory: str, process: int) -> None:
    """Delete a temporary directory, except in a child of the process that created it."""
    if os.getpid() == process:
        import shutil

        shutil.rmtree(directory, ignore_errors=True)


def _opened(opening: Opening, schema: type[Any], flush_every: Optional[float] = None) -> Database[Any]:
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
    return _opened(opening, schema)
