"""An open database, and the ways to open one."""

# A Database, the functions of its module, its Schema and its classic maps know each other's insides.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Optional, TypeVar, Union, overload
from uuid import UUID

from . import errors
from .attach import Declaration, attach, tables
from .catalogue import FIRST_SLOT, Slot, catalogue_of
from .engines.lmdb import LmdbEngine, Options, data_file, lib_version, writer_lock
from .engines.memory.engine import MemoryEngine
from .keys import KeyCodec
from .layout import SLOTS, Layout
from .pmap import PersistentMap
from .schema import Schema, declarations
from .storage import Storage
from .store import Store
from .table import Table
from .transaction import Transaction, TransactionStats
from .values.base import Serializer

if TYPE_CHECKING:
    from typing_extensions import Self
    from typing_extensions import TypeVar as DefaultTypeVar

    # A function of a plain Database takes one of any schema.
    S_co = DefaultTypeVar("S_co", bound=Schema, default=Schema, covariant=True)
else:
    S_co = TypeVar("S_co", bound=Schema, covariant=True)
S = TypeVar("S", bound=Schema)
P = TypeVar("P", bound=PersistentMap[Any, Any])
R = TypeVar("R")
StrPath = Union[str, "os.PathLike[str]"]
Durability = Literal["full", "commit", "none"]


@dataclass(frozen=True)
class TableInfo:
    """A table of a file: names of its codecs (None where the file does not say), records, bytes, index names."""

    name: str
    uuid: Optional[UUID]
    key: Optional[str]
    value: Optional[str]
    count: int
    bytes: int
    indexes: tuple[str, ...]


@overload
def open(path: StrPath, /, *, readonly: bool = False, timeout: Optional[float] = None) -> Database[Schema]: ...
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
) -> Database[Any]:
    """Open the database at *path*, a directory or the data file itself; None is one in memory, gone on close.

    With a *schema* the tables and indexes that it declares and the file lacks are made before this returns, under the
    write lock, so that several processes may open at once. Without one the file must exist, and reads as plain data.

    *maxsize*: bytes, a hard limit beyond which writes raise `DatabaseFull`; None: grows by itself. *durability*:
    ``"full"`` (a commit survives a power loss), ``"commit"`` (the last ones may be lost, never consistency), ``"none"``
    (a power loss may cost everything, the end of the process nothing). *layout* is that of a new file; an existing one
    keeps its own. *timeout*: seconds to wait for another writer; None waits for ever, and logs so after a second.

    The same file opened again with the same options shares one environment. Raises `DatabaseInUse` when the options
    differ, `FileNotFoundError`, `InvalidDatabase`, `SchemaMismatch`, `WriterTimeout`.
    """
    if durability not in ("full", "commit", "none"):
        raise ValueError(f"durability={durability!r}: expected 'full', 'commit' or 'none'")
    if layout not in ("tables", "classic"):
        raise ValueError(f"layout={layout!r}: expected 'tables' or 'classic'")
    given: Any = schema
    if schema is not None and not (isinstance(given, type) and issubclass(given, Schema)):
        raise TypeError(f"expected a subclass of zlmdb.Schema, got {schema!r}: its attributes are the tables")
    if timeout is not None and timeout < 0:
        raise ValueError(f"timeout={timeout!r}: expected seconds, 0 or more, or None to wait for ever")
    options = _options(
        readonly=readonly, maxsize=maxsize, sync=durability != "none", metasync=durability == "full"
    )  # fmt: skip
    db: Database[Any] = object.__new__(Database)
    db._setup(path, options, schema or Schema, layout=layout)
    db._create = create and schema is not None
    db._timeout = timeout
    db._slots_expected = layout == "classic" and schema is not None
    db._open()
    return db


class Database(Generic[S_co]):
    """An open database. `zlmdb.open` makes one of a schema; the constructor is that of zlmdb <= 26.

    *dbpath*: a directory, made if needed; None is a private temporary one. *maxsize*: bytes, a hard limit; None (the
    default) grows by itself. *sync*: False leaves flushing to the system, so that a power loss may cost everything.
    *lib_version*: the LMDB format of a new file, ``"0.9"`` (the default) or ``"1.0"``. *context* and *log* are kept for
    the caller. *layout*: of a new file, ``"classic"`` for one that zlmdb <= 26 must read.

    Raises RuntimeError when the file is open in this process already; see `Database.open`.
    """

    _schema: type[S_co]
    _context: Any
    _log: Any
    _temporary: Optional[str] = None

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
        options = _options(
            readonly=readonly, maxsize=maxsize, sync=sync, metasync=sync, lock=lock, writemap=writemap,
            lib_version=lib_version,
        )  # fmt: skip
        path = dbpath
        if path is None:
            path = self._temporary = tempfile.mkdtemp(prefix="zlmdb-")
            weakref.finalize(self, _remove, path, os.getpid())
        self._setup(path, options, Schema, layout=layout)
        self._context = context
        self._log = log if log is not None else logging.getLogger("zlmdb")
        self._create = create
        self._exclusive = True
        self._slots_expected = True
        self._open_now = open_now
        if open_now:
            self._open()

    def _setup(self, path: Optional[StrPath], options: Options, schema: type[Any], *, layout: Layout) -> None:
        self._path = None if path is None else os.fspath(path)
        self._options = options
        self._schema = schema
        self._layout: Layout = layout
        self._context = None
        self._log = logging.getLogger("zlmdb")
        self._create = True
        self._exclusive = False
        self._slots_expected = False
        self._open_now = True
        self._timeout: Optional[float] = None
        self._entered = 0
        self._store: Optional[Store] = None
        self._maps: weakref.WeakSet[PersistentMap[Any, Any]] = weakref.WeakSet()
        self._storages: dict[str, tuple[type[Table[Any, Any]], Storage[Any, Any]]] = {}

    # -- opening and closing --------------------------------------------------------------------------------------

    def _open(self) -> None:
        declared = declarations(self._schema)
        with _registry_lock:
            store = _shared_store(self)
            store.users += 1
            self._store = store
        try:
            found = attach(
                store, [one for _, one in declared.values()], create=self._create, timeout=self._timeout
            )  # fmt: skip
        except BaseException:
            self.close()
            raise
        self._storages = {name: (cls, storage) for (name, (cls, _)), storage in zip(declared.items(), found)}
        for pmap in list(self._maps):  # attached before the database was closed, and opened again now
            pmap.adopt(store, self._classic_storage(pmap))

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

        Every call is matched by a `close` or the end of a ``with`` block. Raises `DatabaseInUse` when it is open with
        other options.
        """
        db: Database[Schema] = Database(
            dbpath, maxsize, readonly, lock, sync, create, False, writemap, context, log, lib_version
        )  # fmt: skip
        db._open_now = open_now
        db._exclusive = False
        with _registry_lock:
            key = None if db._path is None else _file_key(db._path)
            found = None if key is None else _instances.get(key)
            if found is not None and found.is_open:
                _check_options(found.store, db._options, str(db._path))
                found._entered += 1
                return found
            if open_now:
                db._open()
        return db

    @staticmethod
    def scratch(dbpath: StrPath) -> None:
        """Delete the database at *dbpath*, a directory or a file, with all that is in it; nothing when it is absent."""
        if os.path.isdir(dbpath):
            shutil.rmtree(dbpath)
        elif os.path.exists(dbpath):
            os.remove(dbpath)

    def close(self) -> None:
        """Close the database; the last handle of a file closes its environment. A closed one stays so.

        Raises `DatabaseInUse` when transactions are open.
        """
        if self._entered > 0:
            self._entered -= 1
            return
        store = self._store
        if store is None:
            return
        _release(store)
        self._store = None

    def __enter__(self) -> Self:
        if self._store is None:
            self._open()
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        try:
            self.close()
        except errors.DatabaseInUse:
            if kind is None:  # else that error is the one to see
                raise

    def __del__(self) -> None:
        store: Optional[Store] = self.__dict__.get("_store")
        if store is not None and store.env is not None:
            if store.live:
                store.at_rest = partial(_release, store, store.at_rest)
            else:
                _release(store)

    if not TYPE_CHECKING:  # checkers report the name

        def __getattr__(self, name):
            of_transaction = name in self.__dict__.get("_storages", ())
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                + (f": tables are in a transaction, `with db.read() as t:`, as t.{name}" if of_transaction else "")
            )

    def __repr__(self) -> str:
        return f"<database {self._path!r}, {'closed' if self._store is None else 'open'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._path is None or self._temporary is not None:
            raise TypeError("a database in memory or in a temporary directory cannot be pickled: give it a path")
        return _reopen, (self._path, self._options, self._schema, self._layout)

    @property
    def store(self) -> Store:
        """The open environment. Raises `DatabaseClosed`."""
        if self._store is None:
            raise errors.DatabaseClosed(
                f"the database {self._path!r} is not open: open it again, or use it in its with block"
            )
        return self._store

    # -- transactions ---------------------------------------------------------------------------------------------

    def read(self) -> S_co:
        """The tables in a read transaction: a snapshot, untouched by later writes. Never waits."""
        return self._tables(Transaction(self.store).begin())

    def write(self, *, timeout: Optional[float] = None) -> S_co:
        """The tables in a write transaction: committed at the end of the ``with`` block, aborted by an exception.

        There is one writer at a time; *timeout* is the time to wait for it, in seconds, by default that given to
        `open`. Raises `WriterTimeout`, `ReadonlyDatabase`, `NestedTransaction`.
        """
        wait = self._timeout if timeout is None else timeout
        return self._tables(Transaction(self.store, write=True, timeout=wait).begin())

    def run(self, fn: Callable[[S_co], R], /, *, write: bool = True) -> R:
        """The result of ``fn(tables)`` in a transaction of its own; run again where the engine asks for it.

        The engine does so when the map had to grow, so *fn* must not have effects outside the transaction.
        """
        while True:
            try:
                with self.write() if write else self.read() as tables:
                    return fn(tables)
            except errors.DatabaseFull:
                if not (write and self.store.grow(self._timeout)):
                    raise

    def begin(
        self, write: bool = False, buffers: bool = False, stats: Optional[TransactionStats] = None
    ) -> Transaction:  # fmt: skip
        """A transaction for ``with``; nothing begins before the block.

        *buffers*: reads give memoryviews, valid inside the block only; slices taken of them are not protected after it.
        *stats* counts what is written.
        """
        return Transaction(self.store, write, buffers, stats)

    def _tables(self, txn: Transaction) -> S_co:
        return self._schema._in(txn, self._storages)

    # -- tables ---------------------------------------------------------------------------------------------------

    def tables(self) -> dict[str, TableInfo]:
        """What the file holds, declared or not: by name (or UUID), with the number and bytes of the records."""
        store = self.store
        found: dict[str, TableInfo] = {}
        for identity, slot in tables(store).items():
            count, size = _measure(store, slot)
            found[identity] = TableInfo(identity, slot.uuid, slot.key, slot.value, count, size, tuple(slot.indexes))
        return found

    def attach_table(self, klass: type[P]) -> P:
        """The map of *klass*, a class decorated by `table`: in its slot, which is allocated when it has none yet.

        Must not be called inside a transaction of this thread. Raises `SchemaMismatch` when the file has other types.
        """
        given: Any = klass
        if not (isinstance(given, type) and issubclass(given, PersistentMap)):
            raise TypeError(f"cannot attach {klass!r}: a subclass of zlmdb.PersistentMap is required")
        oid = klass._zlmdb_oid
        if oid is None:
            raise TypeError(f"{klass!r} is not decorated as a table: put @zlmdb.table('<uuid>') before the class")
        self._refuse_in_transaction(klass)
        # A constructor of the user's own has a say in the codecs, and the number is in the catalogue.
        storage = self._classic_storage(klass.in_slot(FIRST_SLOT))
        if storage.number == 0:
            raise errors.ReadonlyDatabase(
                f"table {oid} of {klass.__name__} is not in {self._path!r}, which is open read-only: "
                "attach it writable first"
            )
        pmap = klass.in_slot(storage.number)
        pmap.adopt(self.store, storage)
        self._maps.add(pmap)
        return pmap

    def _classic_storage(self, pmap: PersistentMap[Any, Any]) -> Storage[Any, Any]:
        declared = _classic_declaration(type(pmap), *pmap.codecs())
        [storage] = attach(self.store, [declared], timeout=self._timeout)
        return storage

    def _refuse_in_transaction(self, klass: type) -> None:
        me = threading.get_ident()
        for ref in list(self.store.live.values()):
            txn: Any = ref()
            if txn is not None and txn.thread == me:
                raise errors.NestedTransaction(
                    f"{klass.__name__} cannot be attached inside a transaction of this thread: attach "
                    "tables before you begin one"
                )

    # -- facts ----------------------------------------------------------------------------------------------------

    @property
    def dbpath(self) -> Optional[str]:
        """The path as given; of a temporary database its directory; None in memory."""
        return self._path

    @property
    def maxsize(self) -> int:
        """The size in bytes to which the database may grow."""
        return int(self.store.env.info()["map_size"]) if self._options.maxsize is None else self._options.maxsize

    @property
    def context(self) -> Any:
        """What the caller gave to keep."""
        return self._context

    @property
    def log(self) -> Any:
        """The logger given, or that of zlmdb."""
        return self._log

    @property
    def is_open(self) -> bool:
        """Whether it is open."""
        return self._store is not None

    @property
    def is_sync(self) -> bool:
        """Whether a commit is flushed to the disk."""
        return self._options.sync

    @property
    def is_readonly(self) -> bool:
        """Whether it was opened read-only."""
        return self._options.readonly

    @property
    def is_writemap(self) -> bool:
        """Whether it writes through the memory map."""
        return self._options.writemap

    @property
    def lib_version(self) -> Optional[str]:
        """The LMDB format of the open file, "0.9" or "1.0"; None in memory; while closed, what was asked for."""
        if self._store is None:
            return self._options.lib_version
        return lib_version(self._store.env) if self._store.engine.persistent else None

    @property
    def layout(self) -> Layout:
        """The layout of the open file, "tables" or "classic"."""
        return self.store.layout

    def sync(self, force: bool = False) -> None:
        """Flush committed data to the disk; with *force* although ``sync=False`` was given."""
        try:
            self.store.env.sync(force)
        except Exception as error:
            raise self.store.engine.translate(error) from error

    def config(self) -> dict[str, Any]:
        """The options that the database was opened with."""
        options = self._options
        return {
            "is_temp": self._temporary is not None,
            "dbpath": self._path,
            "maxsize": options.maxsize if self._store is None else self.maxsize,
            "readonly": options.readonly,
            "lock": options.lock,
            "sync": options.sync,
            "create": self._create,
            "open_now": self._open_now,
            "writemap": options.writemap,
            "context": self._context,
        }

    def stats(self, include_slots: bool = False) -> dict[str, Any]:
        """Sizes in bytes and pages, LMDB's own statistics, and with *include_slots* a list of the attached tables."""
        store = self.store
        slots = [slot for slot in tables(store).values() if slot.uuid is not None]
        facts = {**store.env.stat(), **store.env.info()}
        pages = facts["branch_pages"] + facts["leaf_pages"] + facts["overflow_pages"]
        size = 0 if store.engine.file is None else os.path.getsize(store.engine.file)
        used = pages * facts["psize"]
        result = {
            "num_slots": len(slots), "current_size": size, "max_size": facts["map_size"], "page_size": facts["psize"],
            "pages": pages, "used": used, "free": 1.0 - used / facts["map_size"] if facts["map_size"] else 1.0,
            "read_only": self.is_readonly, "sync_enabled": self.is_sync, "lib_version": self.lib_version,
            "lmdb_version": _engine_version(store), **facts,
        }  # fmt: skip
        if include_slots:
            result["slots"] = [
                {"oid": str(slot.uuid), "slot": slot.number, "name": slot.title, "description": slot.description,
                 "records": _measure(store, slot)[0]}
                for slot in sorted(slots, key=lambda slot: slot.number)
            ]  # fmt: skip
        return result


# -- the environments open in this process ------------------------------------------------------------------------

_registry_lock = threading.RLock()
_open_stores: dict[tuple[int, int], Store] = {}
_instances: weakref.WeakValueDictionary[tuple[int, int], Database[Any]] = weakref.WeakValueDictionary()


def _options(*, maxsize: Optional[int], **others: Any) -> Options:
    if maxsize is not None and (type(maxsize) is bool or not hasattr(maxsize, "__index__")):
        raise TypeError(f"maxsize={maxsize!r}: expected a number of bytes, or None to grow without limit")
    if maxsize is not None and maxsize <= 0:
        raise ValueError(f"maxsize={maxsize!r}: expected a number of bytes above 0, or None to grow without limit")
    return Options(maxsize=maxsize, **others)


def _file_key(path: str) -> Optional[tuple[int, int]]:
    """What identifies a file however its path is spelt: device and inode. None while it does not exist."""
    try:
        stat = os.stat(data_file(path))
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _shared_store(db: Database[Any]) -> Store:
    """The open store of the file of *db*, or a new one. Under the registry's lock."""
    if db._path is None:
        return _new_store(db, MemoryEngine(db._options.maxsize))
    key = _file_key(db._path)
    store = None if key is None else _open_stores.get(key)
    if store is not None:
        if db._exclusive:
            raise errors.DatabaseInUse(
                f"{db._path!r} is open in this process already: use Database.open(), which shares it, or "
                "close the other one"
            )
        _check_options(store, db._options, db._path)
        present = _instances.get(key) if key is not None else None
        if key is not None and (present is None or not present.is_open):
            _instances[key] = db
        return store
    store = _new_store(db, LmdbEngine(db._path, db._options, create=db._create))
    key = _file_key(db._path)
    if key is not None:
        _open_stores[key] = store
        _instances[key] = db
    return store


def _new_store(db: Database[Any], engine: Any) -> Store:
    options = db._options
    lock_path = None
    if engine.persistent and options.lock and not options.readonly:
        lock_path = writer_lock(db._path or "")
    store = Store(engine, db._layout, readonly=options.readonly, lock_path=lock_path, options=options)
    try:
        store.prepare(slots_expected=db._slots_expected, timeout=db._timeout)
    except BaseException:
        store.close()
        raise
    return store


def _remove(directory: str, process: int) -> None:
    """Delete a temporary directory, unless this is a child of the process that made it."""
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)


def _release(store: Store, earlier: Optional[Callable[[], None]] = None) -> None:
    """One handle less; the last one closes the environment. *earlier*: what else was put off until now."""
    if earlier is not None:
        earlier()
    with _registry_lock:
        store.at_rest = None
        if store.users <= 1:
            store.close()
            for key, known in list(_open_stores.items()):
                if known is store:
                    del _open_stores[key]
        store.users -= 1


def _check_options(store: Store, wanted: Options, path: str) -> None:
    found: Options = replace(store.options, lib_version=lib_version(store.env or store.reopen()))
    if wanted.lib_version is None:  # any will do
        wanted = replace(wanted, lib_version=found.lib_version)
    if found != wanted:
        differ = [name for name, value in vars(found).items() if value != getattr(wanted, name)]
        has, asked = (", ".join(f"{name}={getattr(one, name)!r}" for name in differ) for one in (found, wanted))
        raise errors.DatabaseInUse(
            f"{path!r} is open in this process already with {has}, and was asked for with {asked}: use the same "
            f"options, or close it first"
        )


def _reopen(path: str, options: Options, schema: type[Any], layout: Layout) -> Database[Any]:
    """What a pickled database comes back as: the same file, opened with the same options and schema."""
    db: Database[Any] = object.__new__(Database)
    db._setup(path, options, schema, layout=layout)
    db._slots_expected = True
    db._open()
    return db


# -- classic tables -----------------------------------------------------------------------------------------------


def _classic_declaration(
    klass: type[PersistentMap[Any, Any]], key: KeyCodec[Any], value: Serializer[Any]
) -> Declaration:  # fmt: skip
    oid = klass._zlmdb_oid
    return Declaration(
        identity=str(oid),
        uuid=oid,
        title=klass.__name__,
        description=(vars(klass).get("__doc__") or "").strip() or None,
        key=key,
        value=value,
        model=None,
        indexes={},
    )


def _measure(store: Store, slot: Slot) -> tuple[int, int]:
    """The records of a table, and the bytes that they take: whole pages in the tables layout, else keys and values."""
    place = catalogue_of(store).place(slot)
    space = store.space(place.space)
    if space is None:
        store.open_spaces([place.space or SLOTS])
        space = store.space(place.space)
    if space is None:
        return 0, 0
    with store.reading() as txn:
        if not place.prefix:
            facts = txn.stat(space.handle)
            pages = facts.get("branch_pages", 0) + facts.get("leaf_pages", 0) + facts.get("overflow_pages", 0)
            return facts["entries"], pages * facts.get("psize", 0)
        cursor, count, size = txn.cursor(space.handle), 0, 0
        for key, data in cursor.iternext() if cursor.set_range(place.prefix) else ():
            if key[:2] != place.prefix:
                break
            count, size = count + 1, size + len(key) + len(data)
        return count, size


def _engine_version(store: Store) -> str:
    version = getattr(store.env, "lib_version", None)
    return ".".join(map(str, version())) if version is not None else "memory"
