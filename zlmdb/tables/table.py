"""A typed, ordered map inside a transaction."""

from __future__ import annotations

import threading
from collections.abc import Generator, ItemsView, Iterable, Iterator, MutableMapping, Sequence, ValuesView
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Generic, NoReturn, Optional, TypeVar, Union, overload
from uuid import UUID

from .. import errors, reserved
from ..handlers import let_through
from ..shown import shortened
from ..store.ended import Ended
from ..store.ranges import keys_from, seek
from ..store.scans import Written
from ..store.transaction import Transaction
from . import atomic, upkeep
from .bulkwrites import put_all
from .compiled.indexed import kind_of
from .compiled.points import REQUIRED
from .expiry import Expiry
from .expiry import declare as declare_expiry
from .index import DeclaredIndex
from .indexstate import IndexState
from .indexstorage import BoundIndex, IndexStorage
from .indexview import view_of
from .keyfield import KeyField
from .ranged import Bounds, Ranged, limits
from .selection import Selection
from .storage import FileIndexes, Nothing, Storage
from .tableclass import TableType, calling_locals, check_index_types, former_names
from .upkeep import Change

if TYPE_CHECKING:
    from typing_extensions import Self
    from typing_extensions import TypeVar as DefaultTypeVar

    from ..feed.policy import Feed

    K = DefaultTypeVar("K", default=Any)
    V = DefaultTypeVar("V", default=Any)
else:
    K = TypeVar("K")
    V = TypeVar("V")
D = TypeVar("D")
W = TypeVar("W")

_get_ident = threading.get_ident
_CHUNK = 1000
MISSING: Any = object()  # no argument


class Table(Ranged[K, K, V], MutableMapping[K, V], Generic[K, V], metaclass=TableType):
    """The records of one table in one transaction, as a dict that is sorted by its keys.

    Declare a class with its key and value types, and open it through a schema::

        class Users(zlmdb.Table[UUID, User], key="id"):
            by_email = zlmdb.UniqueIndex[str]("email")

    *name* is the table's name in the file (by default that of the schema's attribute). *uuid* makes it use the table of
    a classic ``@table(uuid)``. *key* is how `add` gets the key of a new record: a field of the value, or a function
    without arguments (by default an int key is the last one plus one, and a UUID sorts by time). *was* is a former name
    of the table, or a tuple of several: the first program that opens the file to write stores the records under the new
    name. *expires* is the field with the time from which a record has expired, and is not there any more; with *ttl*, a
    timedelta or seconds, it expires so long after that time. With ``feed=True`` or a `Feed`, every change is recorded,
    for `Database.changes`.

    Looking up a record costs O(log n), `len` O(1) in the tables layout. All methods raise `TransactionClosed` after the
    end of the transaction, and `EncodeError` for keys and values that do not fit; a refused statement changes nothing.
    Writing while iterating is allowed: an iteration visits each record that existed when it began, once; see
    `Selection`.
    """

    __slots__ = (
        "__weakref__",
        "_absent",
        "_checked",
        "_db",
        "_era",
        "_found",
        "_generated",
        "_get",
        "_growing",
        "_index_state",
        "_load",
        "_lookup",
        "_name",
        "_put",
        "_raw",
        "_snapshot",
        "_steady",
        "_storage",
        "_txn",
        "_views",
        "_watched",
        "_writer",
    )  # fmt: skip

    _txn: Transaction
    _storage: Storage[K, V]
    _name: str
    _growing: bool  # the latest write, if there was one, stored a new record
    _watched: bool  # scans have to be told of what is written
    _writer: Optional[int]  # the thread that may write here by the generated functions
    _raw: Any
    _db: Any
    _get: Callable[..., Any]
    _put: Callable[..., Any]
    _lookup: Callable[[Any], bytes]
    _load: Callable[[Any], V]
    _views: dict[str, Any]
    _absent: Optional[Nothing]  # stands in for the keyspace where the file does not have it
    _steady: bool  # the engine's own functions serve it
    _checked: bool  # another program may have changed what the file says of the table
    _era: Optional[int]  # the latest one that they were looked for in
    _snapshot: int  # the latest one, of those read, that they were looked for in
    _found: FileIndexes
    _index_state: IndexState
    _generated: bool  # those let the generated functions write

    _batch: ClassVar[Optional[Callable[[Any], Any]]] = None  # see `indexed.kind_of`
    _plain: ClassVar[bool] = True  # whether records are stored by no method of a class derived from this one
    _point_reads: ClassVar[bool] = False  # whether generated functions look records up, as they are stored
    _kept: ClassVar[tuple[IndexStorage, ...]] = ()  # the indexes that the generated functions keep in step
    _table_name: ClassVar[Optional[str]] = None
    _table_uuid: ClassVar[Optional[UUID]] = None
    _table_was: ClassVar[tuple[str, ...]] = ()
    _key_source: ClassVar[Any] = None  # of new keys: a str, a callable or None
    _feed: ClassVar[Any] = None  # what `feed=` gave
    _locals_seen: ClassVar[Optional[dict[str, Any]]] = None
    _expiry: ClassVar[Optional[Expiry]] = None
    _part: ClassVar[bool] = False  # it is one of the tables that a `schema.multi.Several` consists of

    def __init_subclass__(
        cls,
        *,
        name: Optional[str] = None,
        uuid: Union[UUID, str, None] = None,
        key: Union[str, Callable[[], Any], None] = None,
        was: Union[str, tuple[str, ...], None] = None,
        expires: Optional[str] = None,
        ttl: Union[timedelta, float, None] = None,
        feed: Union[bool, Feed, None] = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if feed is not None:
            cls._feed = feed
        for index, value in vars(cls).items():
            why = reserved.refused(index, reserved.INDEXES) if isinstance(value, DeclaredIndex) else ""
            if why:
                raise TypeError(
                    f"an index cannot be called {index!r}, {why}: rename it (see Reserved names in the API)"
                )
        if name is not None:
            cls._table_name = name
        if uuid is not None:
            cls._table_uuid = UUID(str(uuid))
        if key is not None:
            cls._key_source = key if isinstance(key, str) else staticmethod(key)
        if was is not None:
            cls._table_was = former_names(was)
        if expires is not None or ttl is not None:
            declare_expiry(cls, expires, ttl)
        if "_plain" not in vars(cls):  # else it was made by `specialised`, of a class that has these
            cls._locals_seen = calling_locals(mentioned=vars(cls).get("__orig_bases__", ()))
            check_index_types(cls, Table)
            cls._plain = cls.__setitem__ is Table.__setitem__

    def __init__(self) -> None:
        raise TypeError(
            f"{type(self).__name__}() makes no table: annotate an attribute of a zlmdb.Schema with the class, "
            f"`users: {type(self).__name__}`, open a database with the schema, and take the table from "
            f"`with db.write() as t:` as t.users"
        )

    @classmethod
    def _bound(cls, txn: Transaction, storage: Storage[K, V]) -> Self:
        """The table that *storage* describes, in *txn*."""
        buffers = txn.buffers
        kind = cls if buffers else kind_of(cls, Table, storage)
        self: Self = object.__new__(kind if storage.expiring is None else storage.expiring(kind))
        self._txn = txn
        self._storage = storage
        self._name = storage.name
        self._lookup = storage.lookup
        self._load = storage.load
        self._views = {}
        handle = txn._handle(storage.space)
        self._absent = Nothing(storage.name) if handle is None else None
        self._db = None if handle is None else handle[0]
        self._steady = handle is not None and not buffers
        self._checked, self._era, self._snapshot = storage.find_indexes is not None, None, storage.snapshot
        self._found = storage.file_indexes
        self._bind_indexes(self._found.unknown)
        self._aim()
        if self._found.unreadable is not None:
            self._refuse_shape(self._found.unreadable)
        return self

    def _aim(self) -> None:
        """Read and write in the transaction, which has just begun. The handles are those of the previous one."""
        txn = self._txn
        if self._steady:
            self._raw = raw = txn._raw
            self._get = raw.get
            if txn._write:
                self._put = raw.put
        else:
            self._through(txn._engine_txn if self._absent is None else self._absent)
        if txn._write:
            era = txn._era
            if self._checked and (era is None or era != self._era):
                self._see_file(era)
            self._growing = True
            if txn._scans is not None:
                self._allow()
            else:  # what that comes to, without the call
                self._watched = False
                if self._generated:
                    self._writer = txn._thread
        elif self._checked:
            snapshot = txn._raw.id()
            if snapshot != self._snapshot:
                self._snapshot = snapshot
                latest, era = txn._store._era
                if latest != snapshot:
                    self._see_file(None)
                elif era != self._era:
                    self._see_file(era)

    def _see_file(self, era: Optional[int]) -> None:
        """Read the catalogue's record of the table in this transaction, which belongs to *era*."""
        watch = self._storage.find_indexes
        if watch is not None:
            try:
                found = watch(self._txn._engine_txn, era)
            except Exception as error:
                self._txn._fail(error, table=self._name)
            self._era = era
            if found is not self._found:
                self._found = found
                self._bind_indexes(found.unknown)
            if found.unreadable is not None:
                self._era, self._snapshot = -1, -1  # asked again when it is aimed again
                self._end(Ended(self._refuse_reading))

    def _refuse_reading(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Replaces the engine's functions if the class would read the records wrongly."""
        self._refuse_shape(self._found.unreadable or "")

    def _refuse_shape(self, reason: str) -> NoReturn:
        """Raise `SchemaMismatch`: the records have another shape than the class."""
        raise errors.SchemaMismatch(f"table {self._name!r}: {reason}", table=self._name)

    def _bind_indexes(self, missing: Sequence[str]) -> None:
        """Maintain the indexes of the storage, except those that the file lacks."""
        bound: list[BoundIndex] = []
        lost: list[str] = []
        for index in self._storage.indexes:
            if index.name not in self._found.gone:
                handle = self._txn._handle(index.storage.space)
                if handle is None:  # another program has dropped its sub-database: the next opening builds it again
                    lost.append(index.name)
                else:
                    bound.append(BoundIndex(index, handle[0]))
        known = tuple([index for index, _ in bound]) == type(self)._kept
        handles = tuple([handle for _, handle in bound]) if known else None
        self._views.clear()
        barred = self._found.unwritable is not None or self._found.undeletable is not None
        self._keep(IndexState(tuple(bound), (*missing, *lost), handles, barred))

    def _bind_indexes_again(self) -> None:
        """Maintain the indexes that the storage has now, after they have changed."""
        self._bind_indexes(self._index_state.missing)

    def _keep(self, state: IndexState) -> None:
        """Maintain the indexes of *state*; they determine whether and how this table may write."""
        self._index_state = state
        self._generated = state.generated
        self._allow()

    def _refuse_without(self, missing: Sequence[str]) -> None:
        """Refuse to write if there are *missing* indexes, which the file has and this table does not maintain."""
        self._keep(self._index_state._replace(missing=tuple(missing)))

    @property
    def _file_indexes(self) -> FileIndexes:
        """The indexes of the table in the file, in this transaction."""
        return self._found

    def _allow(self) -> None:
        """Let the generated functions write, or replace them by the general form, which handles all cases."""
        txn = self._txn
        self._writer = txn._thread if txn._write and self._generated else None
        scans, self._watched = txn._scans, False
        if scans:
            spaces = self._storage.spaces
            self._watched = scans.watches(spaces)
            if scans.runs(spaces):
                self._writer = None  # these scans have to be paused first

    def _look_again(self) -> None:
        """Read the indexes of the file again, after the catalogue was changed in this transaction."""
        if self._absent is None:
            self._see_file(None)

    @property
    def _indexes(self) -> tuple[BoundIndex, ...]:
        """The indexes that this table maintains."""
        return self._index_state.kept

    def _use(self, raw: Any) -> None:
        """Read and write through *raw*, the engine's transaction or a savepoint of it."""
        if self._absent is None and self._found.unreadable is None:
            self._through(raw)

    def _through(self, raw: Any) -> None:
        self._raw = raw
        self._get, self._put = raw.get, raw.put
        if self._txn.buffers:
            watch = self._txn._keep_view

            def get(key: bytes, default: Any, db: Any) -> Any:
                return watch(raw.get(key, default, db))

            self._get = get

    def _end(self, ended: Any) -> None:
        """End with the transaction: from now on every use raises what the functions of *ended* raise."""
        self._raw = ended
        self._get = self._put = ended.get
        self._writer = None

    @property
    def txn(self) -> Transaction:
        """The transaction, as that of the schema object: ``table.txn.after_commit(function)``."""
        return self._txn

    # -- one record -----------------------------------------------------------------------------------------------

    def __getitem__(self, key: K) -> V:
        try:
            data = self._get(self._lookup(key), None, self._db)
            if data is not None:
                return self._load(data)
        except Exception as error:
            found: V = self._read_again(key, error, REQUIRED)
            return found
        self._storage.encode_key(key)  # what does not fit raises
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
        self._storage.encode_key(key)  # what does not fit raises
        return False

    def __setitem__(self, key: K, value: V) -> None:
        txn, storage = self._txn, self._storage
        if not (txn._write and self._generated and txn._scans is None and _get_ident() == txn._thread):
            self._check_write()
        encoded = storage.encode_key(key)
        if storage.key_field is not None:
            storage.check_key(key, value)
        try:
            data = storage.dump(value)
        except Exception as error:
            let_through(error)
            data = storage.encode_value(value, key)  # raises with the names
        if self._index_state.kept or storage.followers:
            self._write(key, encoded, value, data)
            return
        try:
            if self._watched:
                self._tell_stored(encoded)
            self._raw.put(encoded, data, True, True, False, self._db)
        except Exception as error:
            self._write_failed(key, error)
        txn._count(1, 0)

    def _tell(self, encoded: bytes, new: bool, entries: Iterable[tuple[Optional[bytes], Optional[bytes]]]) -> None:
        """Tell the scans what is written for the record *encoded*: whether it is *new*, its old and new *entries*."""
        scans = self._txn._open_scans()
        storage = self._storage
        primary = encoded[len(storage.prefix) :]
        if new:
            scans.journal.append(Written(storage.space, primary, None, encoded))
        for (index, _), (old, entry) in zip(self._indexes, entries):
            scans.journal.append(Written(index.storage.space, primary, old, entry))

    def _tell_stored(self, encoded: bytes) -> None:
        """Tell the scans of the record *encoded*, which is about to be stored."""
        self._tell(encoded, self._raw.get(encoded, None, self._db) is None, ())

    def _check_write(self) -> None:
        """Raise unless records may be written: in a write transaction, with all indexes of the file known."""
        self._txn._check_write()
        missing = self._index_state.missing
        if missing:
            self._check_dropped()
            raise errors.IndexNotAttached(
                f"table {self._name!r} has the indexes {', '.join(missing)} in the file, which this program does not "
                f"declare or attach, so that it would leave them incomplete: {self._way_out()}",
                table=self._name,
                index=missing[0],
            )
        if self._found.unwritable is not None:
            self._refuse_shape(self._found.unwritable)
        self._pause_scans()

    def _way_out(self) -> str:
        """The advice for a file with an index that the program does not have."""
        if self._found.older:
            return "the file is newer than this program, use a newer one, which declares them"
        return (
            "use the class that declares them; or, where this program is the newer one and they are not wanted any "
            "more, drop them: zlmdb.open(..., drop_indexes=True)"
        )

    def _check_dropped(self) -> None:
        """Raise `IndexNotBuilt` if the keyspace of a declared index is gone, although the catalogue names the index."""
        bound = {index.name for index, _ in self._indexes}
        for index in self._storage.indexes:
            if index.name not in bound and index.name not in self._found.gone:
                raise errors.IndexNotBuilt(
                    f"the index {self._name}.{index.name} was dropped from the file by another program, and writing "
                    f"would leave it incomplete: open the database again, with its schema, which builds it",
                    table=self._name,
                    index=index.name,
                )

    def _pause_scans(self) -> None:
        """Prepare the scans for a write to what they read."""
        scans = self._txn._scans
        if scans is not None and scans.runs(self._storage.spaces):
            scans.pause(self._storage.spaces)
            self._txn._allow_tables()

    def __delitem__(self, key: K) -> None:
        if not self._remove(self._storage.encode_key(key)):
            raise KeyError(key)

    def add(self, value: V, /) -> K:
        """Store *value* under a new key, and return the key.

        The key is the field, or the result of the function, that the class declares as ``key=``. Otherwise it is the
        last int plus one, or a UUID that sorts by time. Raises `DuplicateKey` if the key exists.
        """
        key = self._new_key(value)
        if key in self:
            raise errors.DuplicateKey(
                f"table {self._name!r} has a record with the key {shortened(key)} already: replace it with "
                f"table[key] = value",
                table=self._name,
                key=key,
                owner=key,
            )
        self[key] = value
        return key

    def put_new(self, key: K, value: V, /) -> bool:
        """Store *value* under *key* unless there is a record already; whether it was stored.

        A value that does not fit raises in either case. It takes one look-up where the table has no indexes.
        """
        storage = self._storage
        self._check_write()
        encoded, data = storage.encode_key(key), storage.encode_record(value, key)
        if self._index_state.kept or storage.followers or self._watched or not self._plain:
            if key in self:
                return False
            self[key] = value
            return True
        try:
            stored: bool = self._raw.put(encoded, data, True, False, False, self._db)
        except Exception as error:
            self._write_failed(key, error)
        if stored:
            self._txn._count(1, 0)
        return stored

    def replace(self, key: K, value: V, /) -> bool:
        """Store *value* under *key* if there is a record already; whether it was stored.

        A value that does not fit raises in either case.
        """
        return atomic.replace(self, key, value)

    def change(self, key: K, how: Callable[[V], Optional[V]], /, default: V = MISSING) -> Optional[V]:
        """Call *how* with the value under *key*, store what it returns, and return that.

        If *how* returns None, the record is deleted; if it raises, nothing changes. If there is no record, *how* gets
        *default*; without a default, this raises `KeyError`. A function that changes the object in place must return
        it: None after such a change raises TypeError. Raises ValueError for a record that an enclosing `edit` block is
        editing.
        """
        return atomic.change(self, key, how, None if default is MISSING else (default,))

    def increment(self, key: K, /, by: Any = 1) -> V:
        """Add *by* to the number under *key*, and return the sum. If there is no record, store *by*.

        Raises TypeError if the value is not a number, `EncodeError` if the sum does not fit its type.
        """
        total: V = atomic.increment(self, key, by)
        return total

    @contextmanager
    def edit(self, key: K, /) -> Generator[V, None, None]:
        """A block that changes the object stored under *key*; the normal end of the block stores it.

        Raises `KeyError` if there is no record, TypeError for a value that cannot be changed in place, such as a
        number, `EncodeError` if the block has changed the field that is the key, and ValueError for a record that an
        enclosing block is editing.
        """
        from ..values.constant import is_constant, new_value  # late: few programs edit

        self._check_write()
        value = self[key]
        if is_constant(value):
            raise TypeError(
                f"table {self._name!r}: edit() changes the object that is stored, and {shortened(value)} "
                f"({type(value).__name__}) cannot be changed in place: store another one, "
                f"table[{shortened(key)}] = {new_value(value)}"
            )
        edited = self._name, self._storage.encode_key(key)
        if edited in self._txn._edited:
            raise ValueError(
                f"table {self._name!r}: the record {shortened(key)} is edited by a block around this one, which would "
                f"store its own object over that of this block: change the object of the outer block"
            )
        self._txn._edited.add(edited)
        try:
            yield value
            self[key] = value
        finally:
            self._txn._edited.discard(edited)

    # -- many records ---------------------------------------------------------------------------------------------

    def get_many(self, keys: Iterable[K], /) -> Iterator[Optional[V]]:
        """The values of *keys*, in the given order, with None for each key without a record.

        Keys are looked up in blocks of 1,000 in the order of the file, which is twice as fast as one by one on cold
        data.
        """
        remaining = iter(keys)
        encode = self._storage.encode_key
        while True:
            block = [(encode(key), key) for key in islice(remaining, _CHUNK)]
            if not block:
                return
            found = {encoded: self.get(key) for encoded, key in sorted(block, key=lambda pair: pair[0])}
            for encoded, _ in block:
                yield found[encoded]
                self._txn._engine_txn  # noqa: B018 - raises where the transaction has ended meanwhile

    def put_many(self, items: Iterable[tuple[K, V]], /, *, append: bool = False) -> int:
        """Store many pairs of key and value; returns their number.

        *append*: the keys ascend and are greater than every key of the table, which fills pages completely and is
        faster; otherwise `EncodeError`. Pairs before a refused pair are stored. A list is faster than a generator,
        which may read meanwhile: with indexes by a third, if its records are new and sorted by key.
        """
        self._check_write()
        return put_all(self, items, append=append)

    def _chosen(self, bounds: Optional[Bounds], reverse: bool, limit: Optional[int]) -> Selection[K, V]:
        spans = self._storage
        lower, upper = (spans.lower, spans.upper) if bounds is None else limits(spans, bounds)
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
        """Delete every record and index entry; returns the number of both."""
        self._check_write()
        if self._storage.referrers or self._found.undeletable is not None:
            from .removal import clear  # late, as below

            entailed = clear(self)
            if entailed is not None:
                return entailed
        try:
            deleted = count = self._drop(self._storage, self._db)
            deleted += sum([self._drop(index.storage.storage, index.handle) for index in self._index_state.kept])
            for follower in self._storage.followers:
                puts, dels = follower.cleared(self._txn, self._storage, count)
                self._txn._count(puts, dels)
                deleted += dels
            return deleted
        except BaseException as error:
            self._txn._poison(error)
            raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}: {self.select(limit=4)!r}>"

    def _query_types(self) -> Any:
        """What is known of the values and keys, for queries of other tables; None if nothing is."""
        if (
            self._txn.buffers
            or self._part
            or not self._point_reads
            or type(self).__contains__ is not Table.__contains__
        ):
            return None
        from .running import types_of  # late, as above

        return types_of(self._storage)

    # -- for selections and views ---------------------------------------------------------------------------------

    def _cursor(self, handle: Any = None) -> Any:
        """A new cursor of the engine over the records, or over the index *handle*."""
        try:
            return self._raw.cursor(self._db if handle is None else handle)
        except Exception as error:
            self._txn._fail(error, table=self._name)

    def _entries(self, handle: Any = None) -> int:
        """The engine's number of records in the whole keyspace, in O(1)."""
        try:
            count: int = self._raw.stat(self._db if handle is None else handle)["entries"]
        except Exception as error:
            self._txn._fail(error, table=self._name)
        return count

    def _engine_get(self, key: bytes, default: Any, handle: Any) -> Any:
        """The engine's ``get``."""
        return self._raw.get(key, default, handle)

    def _engine_getter(self) -> tuple[Callable[[bytes, Any, Any], Any], Any]:
        """The function that returns the bytes of a record, until the next write, and the handle to call it with."""
        return self._get, self._db

    def _view(self, name: str, kind: type[W]) -> W:
        """The view of the declared index *name*."""
        view = self._views.get(name)
        if view is None:
            bound = next((bound for bound in self._indexes if bound.storage.name == name), None)
            view = self._views[name] = view_of(self, name, kind, bound)
        found: W = view
        return found

    def _owned(self, primary: bytes, index: IndexStorage) -> V:
        """The record to which an entry of *index* belongs."""
        try:
            data = self._get(self._storage.prefix + primary, None, self._db)
        except Exception as error:
            self._txn._fail(error, table=self._name, index=index.name)
        if data is None:
            raise errors.DecodeError(
                f"index {index.storage.name!r} has an entry for "
                f"{shortened(self._storage.key.decode(primary))}, which is "
                f"not in the table: rebuild the index",
                table=self._name,
                index=index.name,
            )
        try:
            return self._load(data)
        except Exception as error:
            let_through(error)
            return self._storage.decode_value(data, self._storage.key.decode(primary))

    # -- writing with indexes -------------------------------------------------------------------------------------

    def _write(self, key: K, encoded: bytes, value: V, data: bytes) -> None:
        """Store a record and let its followers run; everything is checked before anything is written."""
        txn, storage = self._txn, self._storage
        old = self._stored(encoded, key)
        if storage.followers or any([bound.storage.as_stored for bound in self._index_state.kept]):
            value = storage.decode_value(data, key)
        change = Change(storage, key, encoded[len(storage.prefix) :], old, (value,), data)
        try:
            steps = upkeep.plan(self._index_state.kept, txn, change)
        except Exception as error:
            self._write_failed(key, error)
        try:
            if self._watched:
                moved = {step.bound: (step.old, step.new) for step in steps if isinstance(step, upkeep.Entries)}
                self._tell(encoded, old is None, [moved.get(bound, (None, None)) for bound in self._indexes])
            self._raw.put(encoded, data, True, True, False, self._db)
            puts, dels = upkeep.carry_out(steps)
        except BaseException as error:  # such as a KeyboardInterrupt between the record and an entry
            self._half_written(key, error)
            raise
        txn._count(1 + puts, dels)

    def _half_written(self, key: Any, error: BaseException) -> None:
        """Poison the transaction: *error* came in the middle of a write. Raises it as an error of zlmdb."""
        self._txn._poison(error)
        if isinstance(error, Exception):
            self._write_failed(key, error)

    def _stored(self, encoded: bytes, key: K) -> Optional[tuple[V]]:
        """The stored value as a 1-tuple, because it may be None or false; None if there is no record."""
        try:
            data = self._get(encoded, None, self._db)
        except Exception as error:
            self._write_failed(key, error)
        return None if data is None else (self._storage.decode_value(data, key),)

    def _remove(self, encoded: bytes) -> int:
        """Delete the record with the engine's key *encoded*, and what that entails; 1 if there was one, else 0."""
        if self._storage.referrers or self._found.undeletable is not None:
            from .removal import remove  # late: few tables have links to them

            return remove(self, (encoded,))
        return self._remove_alone(encoded)

    def _remove_alone(self, encoded: bytes) -> int:
        """Delete the record with the engine's key *encoded*, and its index entries; returns the number of records."""
        txn, storage = self._txn, self._storage
        self._check_write()
        key: Any = None
        steps: list[Any] = []
        dels, begun = 0, False
        try:
            if self._index_state.kept or storage.followers:
                key = storage.decode_key(encoded)
                old = self._stored(encoded, key)
                if old is None:
                    return 0
                change = Change(storage, key, encoded[len(storage.prefix) :], old, None)
                steps = upkeep.plan(self._index_state.kept, txn, change)
                begun = True
            puts, dels = upkeep.carry_out(steps)
            deleted = int(self._raw.delete(encoded, b"", self._db))
        except BaseException as error:
            if begun:
                txn._poison(error)
            if isinstance(error, Exception):
                self._write_failed(key, error)
            raise
        txn._count(puts, dels + deleted)
        return deleted

    def _drop(self, storage: Storage[Any, Any], handle: Any) -> int:
        """Delete every record of a keyspace, or of the prefix that *storage* has in it; returns their number."""
        raw, deleted = self._raw, 0
        try:
            if storage.alone:
                deleted = raw.stat(handle)["entries"]
                raw.drop(handle, delete=False)
            else:
                deleted = self._delete_range(storage, handle)
        except Exception as error:
            self._write_failed(None, error)
        self._txn._count(0, deleted)
        return deleted

    def _rebuild(self, bound: BoundIndex) -> tuple[int, int]:
        """Delete the entries of an index and write them again; returns how many were deleted, and how many written."""
        self._txn._check_write()
        index, handle = bound
        self._pause_scans()
        with self._txn._statement():
            deleted = self._drop(index.storage, handle)
            inserted = upkeep.build(self.select()._engine_rows(), self._storage, index, self._raw, handle)
            self._txn._count(inserted, 0)
        return deleted, inserted

    def _delete_range(self, storage: Storage[Any, Any], handle: Any) -> int:
        raw, lower, upper, deleted = self._raw, storage.lower, storage.upper, 0
        while True:
            cursor = raw.cursor(handle)
            rows = keys_from(cursor, lower, upper, views=True) if seek(cursor, lower, upper) else ()
            chunk = list(islice(rows, _CHUNK))
            cursor.close()
            if not chunk:
                return deleted
            deleted += sum(raw.delete(key, db=handle) for key in chunk)

    # -- keys of new records, and failures ------------------------------------------------------------------------

    def _new_key(self, value: V) -> K:
        rule = type(self)._key_source
        if isinstance(rule, str):
            key: K = (self._storage.key_field or KeyField(rule)).of(value)
            return key
        if rule is not None:
            made: K = rule()
            return made
        codec = self._storage.key
        counted: Any = codec.counts_from
        last = None if counted is None else next(iter(self.select(reverse=True, limit=1).keys()), counted)
        return codec.new_key(last)

    def _missing(self, key: Any, default: Any) -> Any:
        """Return *default* for a missing record, or raise KeyError without one. Raise first if the key does not fit."""
        self._storage.encode_key(key)
        if default is REQUIRED:
            raise KeyError(key)
        return default

    def _read_again(self, key: Any, error: Exception, default: Any) -> Any:
        """Find the cause of *error* in the fast read, or the result of the slow one (None in a named key is a zero)."""
        let_through(error)
        ours = self._txn._translate(error, table=self._name, key=key)
        if isinstance(ours, MemoryError) or (isinstance(ours, errors.Error) and not isinstance(ours, ValueError)):
            errors.raise_as(ours, error)
        data = self._get(self._storage.encode_key(key), None, self._db)
        return self._missing(key, default) if data is None else self._storage.decode_value(data, key)

    def _write_failed(self, key: Any, error: Exception) -> NoReturn:
        """Raise *error*, from a write of the record *key*, as an error of zlmdb."""
        self._txn._fail(error, table=self._name, key=key)


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
