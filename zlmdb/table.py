"""A typed, ordered map inside a transaction."""

from __future__ import annotations

import threading
from collections.abc import Generator, ItemsView, Iterable, Iterator, Mapping, MutableMapping, Sequence, ValuesView
from contextlib import contextmanager
from itertools import islice
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Generic, NoReturn, Optional, TypeVar, Union, overload
from uuid import UUID

from . import errors, upkeep
from .bulkwrites import put_all
from .hotpath import REQUIRED
from .index import DeclaredIndex
from .indexstorage import BoundIndex, IndexStorage
from .indexview import view_of
from .indexwrites import kind_of
from .selection import Selection
from .storage import Nothing, Storage, after, shortened
from .tableclass import TableType, calling_locals
from .transaction import Transaction

if TYPE_CHECKING:
    from typing_extensions import Self
    from typing_extensions import TypeVar as DefaultTypeVar

    K = DefaultTypeVar("K", default=Any)
    V = DefaultTypeVar("V", default=Any)
else:
    K = TypeVar("K")
    V = TypeVar("V")
D = TypeVar("D")
W = TypeVar("W")

_get_ident = threading.get_ident
_CHUNK = 1000
_NONE: frozenset[str] = frozenset()


class Table(MutableMapping[K, V], Generic[K, V], metaclass=TableType):
    """The records of one table in one transaction, as a dict that is ordered by its keys.

    Declared as a class with its key and value types, and opened through a schema::

        class Users(zlmdb.Table[UUID, User], key="id"):
            by_email = zlmdb.UniqueIndex[str]("email")

    *name* is the table's name in the file (by default that of the schema's attribute), *uuid* adopts the table of a
    classic ``@table(uuid)``, *key* tells `add` the key of a new record: a field of the value, or a function without
    arguments (by default int keys count up from the last one, and UUIDs are time-ordered).

    Looking up costs O(log n), `len` O(1) in the tables layout. Everything raises `TransactionClosed` after the end of
    the transaction, and `EncodeError` for keys and values that do not fit; a refused statement changes nothing.
    Iterating while writing is allowed: an iteration sees what the same transaction writes ahead of it.
    """

    __slots__ = (
        "__weakref__", "_db", "_get", "_load", "_lookup", "_missing_indexes", "_put", "_raw", "_views", "adopted",
        "gone", "growing", "handles", "indexes", "label", "prepared", "storage", "txn", "unknown", "writer",
    )  # fmt: skip

    txn: Transaction
    storage: Storage[K, V]
    label: str
    indexes: list[BoundIndex]
    gone: frozenset[str]  # indexes that another program dropped or changed
    growing: bool  # the latest write, if there was one, stored a new record
    handles: Optional[tuple[Any, ...]]  # of the indexes, where they are those that the generated functions know
    unknown: Sequence[str]  # the declared ones among the missing ones
    adopted: Mapping[str, Optional[str]]  # the tables of zlmdb <= 26 that declared indexes are
    writer: Optional[int]  # the thread that may write here by the generated functions
    prepared: Any  # of a classic map: the indexes that it had when it was made ready for them
    _raw: Any
    _db: Any
    _get: Callable[..., Any]
    _put: Callable[..., Any]
    _lookup: Callable[[Any], bytes]
    _load: Callable[[Any], V]
    _views: dict[str, Any]
    _missing_indexes: Sequence[str]

    batch: ClassVar[Optional[Callable[[Any], Any]]] = None  # see `indexwrites.kind_of`
    plain: ClassVar[bool] = True  # whether records are stored by no method of a class derived from this one
    kept: ClassVar[tuple[IndexStorage, ...]] = ()  # the indexes that the generated functions keep in step
    table_name: ClassVar[Optional[str]] = None
    table_uuid: ClassVar[Optional[UUID]] = None
    new_key: ClassVar[Any] = None  # a str, a callable or None
    locals_seen: ClassVar[Optional[dict[str, Any]]] = None

    def __init_subclass__(
        cls,
        *,
        name: Optional[str] = None,
        uuid: Union[UUID, str, None] = None,
        key: Union[str, Callable[[], Any], None] = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        for index, value in vars(cls).items():
            if isinstance(value, DeclaredIndex) and hasattr(Table, index):
                raise TypeError(f"an index cannot be called {index!r}, which every table has already: rename it")
        if name is not None:
            cls.table_name = name
        if uuid is not None:
            cls.table_uuid = UUID(str(uuid))
        if key is not None:
            cls.new_key = key if isinstance(key, str) else staticmethod(key)
        cls.locals_seen = calling_locals()
        if "plain" not in vars(cls):
            cls.plain = cls.__setitem__ is Table.__setitem__

    def __init__(self) -> None:
        raise TypeError(
            f"{type(self).__name__} is a table inside a transaction: declare it in a zlmdb.Schema, and take it from "
            f"`with db.write() as t:` as an attribute of t"
        )

    @classmethod
    def bound(cls, txn: Transaction, storage: Storage[K, V]) -> Self:
        """The table that *storage* describes, in *txn*."""
        buffers = txn.buffers
        self: Self = object.__new__(cls if buffers else kind_of(cls, Table, storage))
        self.txn = txn
        self.storage = storage
        self.label = storage.label
        self._lookup = storage.lookup
        self._load = storage.load
        self._views = {}
        self.prepared, self.growing = None, True
        raw, handle = txn.raw, txn.handle(storage.space)
        if handle is None:
            self._db = None
            self._through(Nothing(storage.label))
        else:
            self._db, self._raw, self._get, self._put = handle[0], raw, raw.get, raw.put
            if buffers:
                self._through(raw)
        self.gone, self._missing_indexes, self.adopted = _NONE, storage.missing_indexes, storage.adopted
        if storage.watch is not None and (txn.write or storage.indexes):
            try:
                self.gone, self._missing_indexes, self.adopted = storage.watch(raw, txn.era)
            except Exception as error:
                raise (ours := txn.translate(error, table=self.label)) from errors.cause(ours, error)
        self.unknown = self._missing_indexes
        if txn.write or storage.indexes:
            self.bind_indexes()
        else:  # what that comes to, without its calls
            self.indexes, self.handles, self.writer = [], (), None
        return self

    def bind_indexes(self) -> None:
        """Keep in step the indexes that the storage has now; those that the file lacks are left out."""
        indexes: list[BoundIndex] = []
        self.indexes = indexes
        for index in self.storage.indexes:
            handle = None if index.name in self.gone else self.txn.handle(index.storage.space)
            if handle is not None:
                indexes.append(BoundIndex(index, handle[0]))
        kept = type(self).kept
        if not indexes:
            self.handles = None if kept else ()
        else:
            known = tuple(index for index, _ in indexes) == kept
            self.handles = tuple(handle for _, handle in indexes) if known else None
        self._allow()

    @property
    def missing(self) -> Sequence[str]:
        """The indexes that the file has and this program does not keep in step, so that it must not write."""
        return self._missing_indexes

    @missing.setter
    def missing(self, names: Sequence[str]) -> None:
        self._missing_indexes = names
        self._allow()

    def _allow(self) -> None:
        """Let the generated functions write, or send them to the general form, which knows all cases."""
        txn = self.txn
        self.writer = txn.thread if txn.write and self.handles is not None and not self._missing_indexes else None

    def look_again(self) -> None:
        """The catalogue was changed in this transaction: find out which indexes the file has now."""
        watch = self.storage.watch
        if watch is not None and not isinstance(self._raw, Nothing):
            self.gone, self.missing, self.adopted = watch(self._raw, None)
            self.unknown = self.missing

    def use(self, raw: Any) -> None:
        """Read and write through *raw*, the engine's transaction or a savepoint of it."""
        if not isinstance(self._raw, Nothing):
            self._through(raw)

    def _through(self, raw: Any) -> None:
        self._raw = raw
        self._get, self._put = raw.get, raw.put
        if self.txn.buffers:
            watch = self.txn.watch

            def get(key: bytes, default: Any, db: Any) -> Any:
                return watch(raw.get(key, default, db))

            self._get = get

    def end(self, ended: Any) -> None:
        """The transaction has ended: every use raises what the functions of *ended* raise from now on."""
        self._raw = ended
        self._get = self._put = ended.get
        self.writer = self.handles = None

    # -- one record -----------------------------------------------------------------------------------------------

    def __getitem__(self, key: K) -> V:
        try:
            data = self._get(self._lookup(key), None, self._db)
            if data is not None:
                return self._load(data)
        except Exception as error:
            found: V = self._read_again(key, error, REQUIRED)
            return found
        self.storage.encode_key(key)  # what does not fit raises
        raise KeyError(key)

    @overload
    def get(self, key: K, default: None = None, /) -> Optional[V]: ...
    @overload
    def get(self, key: K, default: Union[V, D], /) -> Union[V, D]: ...
    def get(self, key: K, default: Any = None, /) -> Any:
        """The value of *key*, or *default*."""
        try:
            data = self._get(self._lookup(key), None, self._db)
            if data is not None:
                return self._load(data)
        except Exception as error:
            return self._read_again(key, error, default)
        return self._missing(key, default)

    def __contains__(self, key: Any) -> bool:
        try:
            if self._get(self._lookup(key), None, self._db) is not None:
                return True
        except Exception as error:
            return self._read_again(key, error, errors) is not errors
        self.storage.encode_key(key)  # what does not fit raises
        return False

    def __setitem__(self, key: K, value: V) -> None:
        txn, storage = self.txn, self.storage
        if not txn.write or self.missing or _get_ident() != txn.thread:
            self._check_write()
        encoded = storage.encode_key(key)
        try:
            data = storage.dump(value)
        except Exception:
            data = storage.encode_value(value, key)  # raises with the names
        if self.indexes:
            self._write(key, encoded, value, data)
            return
        try:
            self._raw.put(encoded, data, True, True, False, self._db)
        except Exception as error:
            self.write_failed(key, error)
        txn.count(1, 0)

    def _check_write(self) -> None:
        """Raise unless records may be written: a write transaction, and no index that only the file knows of."""
        self.txn.check_write()
        missing = self.missing
        if missing:
            raise errors.IndexNotAttached(
                f"table {self.label!r} has the indexes {', '.join(missing)} in the file, which this program does not "
                f"declare or attach, so that it would leave them incomplete: use the class that declares them",
                table=self.label,
                index=missing[0],
            )

    def __delitem__(self, key: K) -> None:
        if not self.remove(self.storage.encode_key(key)):
            raise KeyError(key)

    def add(self, value: V, /) -> K:
        """Store *value* under a new key, and return the key.

        The key is the field or the result of the function that the class was given as ``key=``; otherwise an int after
        the last one, or a time-ordered UUID. Raises `DuplicateKey` when the key is taken.
        """
        key = self._new_key(value)
        if key in self:
            raise errors.DuplicateKey(
                f"table {self.label!r} has a record with the key {shortened(key)} already: store under it with "
                f"table[key] = value to replace it",
                table=self.label,
                key=key,
                owner=key,
            )
        self[key] = value
        return key

    @contextmanager
    def edit(self, key: K, /) -> Generator[V, None, None]:
        """A block that changes the object stored under *key*; it is stored again at the clean end of the block.

        Raises `KeyError` when there is no record.
        """
        self._check_write()
        value = self[key]
        yield value
        self[key] = value

    # -- many records ---------------------------------------------------------------------------------------------

    def get_many(self, keys: Iterable[K], /) -> Iterator[Optional[V]]:
        """The values of *keys*, in the order asked, None for keys without a record.

        Keys are looked up in blocks of 1,000 in the order of the file, twice as fast as one by one on cold data.
        """
        remaining = iter(keys)
        encode = self.storage.encode_key
        while True:
            block = [(encode(key), key) for key in islice(remaining, _CHUNK)]
            if not block:
                return
            found = {encoded: self.get(key) for encoded, key in sorted(block, key=lambda pair: pair[0])}
            for encoded, _ in block:
                yield found[encoded]
                self.txn.raw  # noqa: B018 - raises where the transaction has ended meanwhile

    def put_many(self, items: Iterable[tuple[K, V]], /, *, append: bool = False) -> int:
        """Store many pairs of key and value; how many.

        *append*: the keys ascend and are greater than every key of the table, which fills pages completely and is
        faster; `EncodeError` when one is not. Those before a pair that is refused are stored. A list is faster than a
        generator, which may read meanwhile: with indexes by a third, if its records are new and in order of their keys.
        """
        self._check_write()
        return put_all(self, items, append=append)

    def select(
        self,
        start: Optional[K] = None,
        stop: Optional[K] = None,
        *,
        prefix: Any = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Selection[K, V]:
        """Records with ``start <= key < stop``, in key order; *reverse* from the last one backwards.

        *prefix* keeps those whose key begins with it: a str or bytes, or leading parts of a tuple; *limit* the first
        so many of what is left. Nothing is read until the selection is iterated; O(log n) to start, O(1) a record.
        Raises `EncodeError` if a bound does not fit, ValueError for a negative *limit*.
        """
        storage = self.storage
        lower, upper = storage.lower, storage.upper
        if start is not None or stop is not None or prefix is not None:
            storage.check_sorts()
            if start is not None:
                lower = storage.encode_bound(start)
            if stop is not None:
                upper = storage.encode_bound(stop)
            if prefix is not None:
                begin = storage.encode_prefix(prefix)
                lower, upper = max(lower, begin), min(upper, after(begin))
        return Selection(self, lower, upper, reverse, limit)

    def __iter__(self) -> Iterator[K]:
        return iter(self.select().keys())

    def __reversed__(self) -> Iterator[K]:
        return iter(self.select(reverse=True).keys())

    def items(self) -> ItemsView[K, V]:
        """The pairs of key and value, in key order, as a view."""
        return _Items(self)

    def values(self) -> ValuesView[V]:
        """The values, in key order, as a view."""
        return _Values(self)

    def __len__(self) -> int:
        return self.select().count()

    def __bool__(self) -> bool:
        return bool(self.select())

    def clear(self) -> None:
        """Delete every record. O(1) in the tables layout, indexes included."""
        self.truncate()

    def truncate(self) -> int:
        """Delete every record and index entry; how many of both."""
        self._check_write()
        try:
            deleted = self._drop(self.storage, self._db)
            return deleted + sum(self._drop(index.storage.storage, index.handle) for index in self.indexes)
        except BaseException as error:
            self.txn.poison(error)
            raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.label!r}: {self.select(limit=4)!r}>"

    # -- for selections and views ---------------------------------------------------------------------------------

    def cursor(self, handle: Any = None) -> Any:
        """A new cursor of the engine over the records, or over the index *handle*."""
        try:
            return self._raw.cursor(self._db if handle is None else handle)
        except Exception as error:
            raise (ours := self.txn.translate(error, table=self.label)) from errors.cause(ours, error)

    def entries(self, handle: Any = None) -> int:
        """The engine's count of records of the whole key space, in O(1)."""
        try:
            count: int = self._raw.stat(self._db if handle is None else handle)["entries"]
        except Exception as error:
            raise (ours := self.txn.translate(error, table=self.label)) from errors.cause(ours, error)
        return count

    def engine_get(self, key: bytes, default: Any, handle: Any) -> Any:
        """The engine's ``get``."""
        return self._raw.get(key, default, handle)

    def engine_getter(self) -> tuple[Callable[[bytes, Any, Any], Any], Any]:
        """The function that gets the bytes of a record, until something is written, and the handle to call it with."""
        return self._get, self._db

    def view(self, name: str, kind: type[W]) -> W:
        """The view of the declared index *name*."""
        view = self._views.get(name)
        if view is None:
            bound = next((bound for bound in self.indexes if bound.storage.name == name), None)
            view = self._views[name] = view_of(self, name, kind, bound)
        found: W = view
        return found

    def owned(self, primary: bytes, index: IndexStorage) -> V:
        """The record that an entry of *index* belongs to."""
        try:
            data = self._get(self.storage.prefix + primary, None, self._db)
        except Exception as error:
            raise (ours := self.txn.translate(error, table=self.label, index=index.name)) from errors.cause(ours, error)
        if data is None:
            raise errors.DecodeError(
                f"index {index.storage.label!r} has an entry for "
                f"{shortened(self.storage.key.decode(primary))}, which is "
                f"not in the table: rebuild the index",
                table=self.label,
                index=index.name,
            )
        try:
            return self._load(data)
        except Exception:
            return self.storage.decode_value(data, self.storage.key.decode(primary))

    # -- writing with indexes -------------------------------------------------------------------------------------

    def _write(self, key: K, encoded: bytes, value: V, data: bytes) -> None:
        """Store a record and the differences of its index entries; everything is checked before anything is written."""
        old = self._stored(encoded, key)
        primary = encoded[len(self.storage.prefix) :]
        if any(bound.storage.as_stored for bound in self.indexes):
            value = self.storage.decode_value(data, key)
        try:
            changes = upkeep.changes(self.indexes, self._raw, self.storage, key, primary, value, old)
        except Exception as error:
            self.write_failed(key, error)
        try:
            self._raw.put(encoded, data, True, True, False, self._db)
            puts, dels = upkeep.apply(changes, self._raw, key, primary)
        except BaseException as error:  # such as a KeyboardInterrupt between the record and an entry
            self.half_written(key, error)
            raise
        self.txn.count(1 + puts, dels)

    def half_written(self, key: Any, error: BaseException) -> None:
        """Nothing may be committed any more: *error* came when a statement was half written. Raises it as ours."""
        self.txn.poison(error)
        if isinstance(error, Exception):
            self.write_failed(key, error)

    def _stored(self, encoded: bytes, key: K) -> Optional[tuple[V]]:
        """The stored value as a 1-tuple, since it may be None or false; None when there is no record."""
        try:
            data = self._get(encoded, None, self._db)
        except Exception as error:
            self.write_failed(key, error)
        return None if data is None else (self.storage.decode_value(data, key),)

    def remove(self, encoded: bytes) -> int:
        """Delete the record with the engine's key *encoded*, and its index entries; how many records, 0 or 1."""
        txn, raw = self.txn, self._raw
        self._check_write()
        key: Any = None
        dels, begun = 0, False
        try:
            if self.indexes:
                key = self.storage.decode_key(encoded)
                old = self._stored(encoded, key)
                if old is None:
                    return 0
                primary = encoded[len(self.storage.prefix) :]
                entries = [(bound, bound.storage.entry(old[0], primary, stored=True)) for bound in self.indexes]
                begun = True
                for (index, handle), entry in entries:
                    if entry is not None:
                        dels += upkeep.delete_entry(index, handle, entry, raw, key, primary)
            deleted = int(raw.delete(encoded, db=self._db))
        except BaseException as error:
            if begun:
                txn.poison(error)
            if isinstance(error, Exception):
                self.write_failed(key, error)
            raise
        txn.count(0, dels + deleted)
        return deleted

    def _drop(self, storage: Storage[Any, Any], handle: Any) -> int:
        """Delete every record of a key space, or of the prefix that *storage* has in it; how many."""
        raw, deleted = self._raw, 0
        try:
            if storage.alone:
                deleted = raw.stat(handle)["entries"]
                raw.drop(handle, delete=False)
            else:
                deleted = self._delete_range(storage, handle)
        except Exception as error:
            self.write_failed(None, error)
        self.txn.count(0, deleted)
        return deleted

    def rebuild(self, bound: BoundIndex) -> tuple[int, int]:
        """Delete the entries of an index and write them anew; how many were deleted, and how many written."""
        self.txn.check_write()
        index, handle = bound
        with self.txn.statement():
            deleted = self._drop(index.storage, handle)
            inserted = upkeep.build(self.select().engine_rows(), self.storage, index, self._raw, handle)
            self.txn.count(inserted, 0)
        return deleted, inserted

    def _delete_range(self, storage: Storage[Any, Any], handle: Any) -> int:
        raw, lower, upper, deleted = self._raw, storage.lower, storage.upper, 0
        while True:
            cursor = raw.cursor(handle)
            rows = cursor.iternext(True, False) if cursor.set_range(lower) else ()
            chunk = [bytes(key) for key in islice(rows, _CHUNK) if key[: len(lower)] == lower and bytes(key) < upper]
            if not chunk:
                return deleted
            deleted += sum(raw.delete(key, db=handle) for key in chunk)

    # -- keys of new records, and failures ------------------------------------------------------------------------

    def _new_key(self, value: V) -> K:
        rule = type(self).new_key
        if isinstance(rule, str):
            take: Any = itemgetter(rule) if isinstance(value, dict) else attrgetter(rule)
            key: K = take(value)
            return key
        if rule is not None:
            made: K = rule()
            return made
        codec = self.storage.key
        counted: Any = codec.counts_from
        last = None if counted is None else next(iter(self.select(reverse=True, limit=1).keys()), counted)
        return codec.new_key(last)

    def _missing(self, key: Any, default: Any) -> Any:
        """There is no record: *default*, or KeyError where one is required; a key that does not fit raises first."""
        self.storage.encode_key(key)
        if default is REQUIRED:
            raise KeyError(key)
        return default

    def _read_again(self, key: Any, error: Exception, default: Any) -> Any:
        """The fast way met *error*: find out why, or what the slow way gives (a None in a named key is a zero)."""
        ours = self.txn.translate(error, table=self.label, key=key)
        if isinstance(ours, MemoryError) or (isinstance(ours, errors.Error) and not isinstance(ours, ValueError)):
            raise ours from errors.cause(ours, error)
        data = self._get(self.storage.encode_key(key), None, self._db)
        return self._missing(key, default) if data is None else self.storage.decode_value(data, key)

    def write_failed(self, key: Any, error: Exception) -> NoReturn:
        """Raise *error*, met by a write to the record *key*, as ours."""
        ours = self.txn.translate(error, table=self.label, key=key)
        raise ours from errors.cause(ours, error)


class _Items(ItemsView[K, V]):
    def __init__(self, table: Table[K, V]) -> None:
        super().__init__(table)
        self._table = table

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return iter(self._table.select())


class _Values(ValuesView[V]):
    def __init__(self, table: Table[Any, V]) -> None:
        super().__init__(table)
        self._table = table

    def __iter__(self) -> Iterator[V]:
        return iter(self._table.select().values())
