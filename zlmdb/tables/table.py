"""A typed, ordered map inside a transaction.

These are the general forms. The class of a bound table, which `compiled.boundclass` makes, has generated functions in
place of the point reads and writes: see `compiled.points` and, for tables with indexes or links, `compiled.indexed`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Generic, NoReturn, Optional, TypeVar, Union, overload

from .. import errors
from ..handlers import let_through
from ..query import preview
from ..shown import NotGiven
from ..store.access import CLOSED, NO_READER, NOBODY, closed
from ..store.transaction import Transaction
from . import atomic
from .advice import tells_as_table
from .compiled.boundclass import bound_class
from .compiled.points import REQUIRED
from .missing import begun_with_a_pair, missing, refuse_limit
from .ranged import Bounds, Ranged, limits
from .recordwrites import RecordWrites
from .selection import ALL, Selection
from .storage import Nothing, Storage
from .tableclass import TableType, calling_locals, check_body, check_names, check_types, former_names, unknown_options

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from datetime import timedelta
    from uuid import UUID

    from typing_extensions import Self
    from typing_extensions import TypeVar as DefaultTypeVar

    from ..feed.policy import Feed
    from .mappingviews import Items, Keys, Values

    K = DefaultTypeVar("K", default=Any)
    V = DefaultTypeVar("V", default=Any)
else:
    K = TypeVar("K")
    V = TypeVar("V")
D = TypeVar("D")
W = TypeVar("W")

_get_ident = threading.get_ident
_new: Any = object.__new__  # without the call of `__init__`
_CHUNK = 1000
MISSING: Any = NotGiven()


@tells_as_table
class Table(RecordWrites[K, V], MutableMapping[K, V], Generic[K, V], metaclass=TableType):
    """The records of one table in one transaction, as a dict that is sorted by its keys.

    Declare a class with its key and value types, and open it through a schema::

        class Users(zlmdb.Table[UUID, User], key="id"):
            by_email = zlmdb.UniqueIndex[str]("email")

    *name* is the table's name in the file (by default that of the schema's attribute). *uuid* makes it use the table of
    a classic ``@table(uuid)``. *key* is how `add` gets the key of a new record: a field of the value, or a function
    without arguments (by default an int key is the last one plus one, and a UUID sorts by time). *was* is a former name
    of the table, or a tuple of several: the first program that opens the file to write stores the records under the new
    name. *expires* is the field with the time from which a record has expired, and is not there any more; with *ttl*, a
    timedelta or seconds, it expires that much later. With ``feed=True`` or a `Feed`, every change is recorded,
    for `Database.changes`.

    Looking up a record costs O(log n), `len` O(1) in the tables layout. All methods raise `TransactionClosed` after the
    end of the transaction, and `EncodeError` for keys and values that do not fit; a refused statement changes nothing.
    Writing while iterating is allowed: an iteration visits each record that existed when it began, once; see
    `Selection`.
    """

    __slots__ = ()

    _batch: ClassVar[Optional[Callable[[Any], Any]]] = None  # see `boundclass.bound_class`
    _plain: ClassVar[bool] = True  # whether records are stored by no method of a class derived from this one
    _point_reads: ClassVar[bool] = False  # whether generated functions look records up, as they are stored
    _table_name: ClassVar[Optional[str]] = None
    _table_uuid: ClassVar[Any] = None  # a UUID or None; `get_type_hints` finds no type that is imported late
    _table_was: ClassVar[tuple[str, ...]] = ()
    _feed: ClassVar[Any] = None  # what `feed=` gave
    _locals_seen: ClassVar[Optional[dict[str, Any]]] = None
    _expiry: ClassVar[Any] = None  # an `Expiry` or None, as above
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
        try:
            super().__init_subclass__(**kwargs)
        except TypeError as error:
            if kwargs:
                raise unknown_options(cls, kwargs) from error
            raise
        if "_plain" in vars(cls):
            return  # it was made by `specialised`, of a class that has all of this
        check_names(cls)
        if feed is not None:
            cls._feed = feed
        if name is not None:
            cls._table_name = name
        if uuid is not None:
            from uuid import UUID  # late: it takes a millisecond to import

            cls._table_uuid = UUID(str(uuid))
        if key is not None:
            cls._key_source = key if isinstance(key, str) else staticmethod(key)
        if was is not None:
            cls._table_was = former_names(was)
        if expires is not None or ttl is not None:
            from .expiry import declare  # late: the records of few tables expire

            declare(cls, expires, ttl)
        cls._locals_seen = calling_locals(mentioned=vars(cls).get("__orig_bases__", ()))
        check_body(cls)
        check_types(cls, Table)
        cls._plain = cls.__setitem__ is Table.__setitem__

    def __init__(self, *given: NoReturn, **named: NoReturn) -> None:
        raise TypeError(
            f"{type(self).__name__}() makes no table: annotate an attribute of a zlmdb.Schema with the class, "
            f"`users: {type(self).__name__}`, open a database with the schema, and take the table from "
            f"`with db.write() as t:` as t.users"
        )

    @classmethod
    def _bound(cls, txn: Transaction, storage: Storage[K, V]) -> Self:
        """The table that *storage* describes, in *txn*."""
        buffers = txn._buffers
        kind = cls if buffers else bound_class(cls, Table, storage)
        self: Self = object.__new__(kind if storage.expiring is None else storage.expiring(kind))
        self._txn, self._storage, self._name = txn, storage, storage.name
        self._lookup, self._load = storage.lookup, storage.load
        self._views = {}
        handle = txn._handle(storage.space)
        self._absent = Nothing(storage.name) if handle is None else None
        self._db = None if handle is None else handle[0]
        self._steady = handle is not None and not buffers
        self._checked, self._era = storage.find_indexes is not None, None
        self._snapshot = storage.snapshot if storage.opening == txn._store.opening else -1
        self._found = storage.file_indexes
        self._raw, self._get, self._reader = CLOSED, closed, NO_READER  # until it is aimed
        self._writer = NOBODY
        self._bind_indexes(self._found.unknown)
        self._aim()
        if self._found.unreadable is not None:
            self._refuse_shape(self._found.unreadable)
        return self

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
            return self._read_again(key, error, REQUIRED)
        self._storage.encode_key(key)  # what does not fit raises
        raise missing(key)

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
        if txn._scans is not None:  # that may be one that the encoder has begun
            self._pause_scans()
        try:
            if self._watched:
                self._tell_stored(encoded)
            self._raw.put(encoded, data, True, True, False, self._db)
        except Exception as error:
            self._write_failed(key, error)
        txn._count(1, 0)

    def __delitem__(self, key: K) -> None:
        if not self._remove(self._storage.encode_key(key)):
            raise missing(key)

    def add(self, value: V, /) -> K:
        """Store *value* under a new key, and return the key.

        The key is the field, or the result of the function, that the class declares as ``key=``. Otherwise it is the
        last int plus one, or a UUID that sorts by time; TypeError for texts and tuples. `DuplicateKey` if it exists.
        """
        key = self._new_key(value)
        if key in self:
            self._refuse_new(key)
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
        return atomic.increment(self, key, by)

    def edit(self, key: K, /) -> AbstractContextManager[V]:
        """A block that changes the object stored under *key*; the normal end of the block stores it.

        Raises `KeyError` if there is no record, TypeError for a value that cannot be changed in place, such as a
        number, `EncodeError` if the block has changed the field that is the key or has assigned to a misspelt one, also
        of a nested object, and ValueError for a record that an enclosing block is editing, or that was stored within
        the block by other means.
        """
        from .editing import EditedRecord  # late: many programs store other objects

        return EditedRecord(self, key)

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
        if isinstance(items, Mapping):
            raise TypeError("put_many() takes pairs of key and value: give the items() of the dict, or call update()")
        from .bulkwrites import put_all  # late: many programs store records one by one

        return put_all(self, begun_with_a_pair(items), append=append)

    if not TYPE_CHECKING:  # checkers have the signatures of `Ranged`

        def select(
            self, start=None, stop=None, *, through=None, prefix=None, startswith=None, reverse=False, limit=None,
            **fields,
        ):  # fmt: skip
            if fields:
                Ranged.select(self, **fields)  # which refuses them
            if stop is not None or through is not None or prefix is not None or startswith is not None:
                return self._chosen((start, stop, through, prefix, startswith), reverse, limit)
            # What `_chosen` and `limits` come to, without the calls: many want the first record only.
            spans = self._storage
            if start is None:
                lower = spans.lower
            elif type(start) is spans.exact:
                try:
                    lower = spans.lookup(start)
                except Exception as error:
                    let_through(error)
                    lower = spans.bound(start)
            else:
                spans.check_sorts()
                lower = spans.bound(start)
            if limit is not None and limit < 0:
                refuse_limit(limit)
            made = _new(Selection)
            made._table, made._lower, made._upper = self, lower, spans.upper
            made._reverse, made._limit, made._query = reverse, limit, ALL
            return made

        select.__doc__ = Ranged.select.__doc__

    def _chosen(self, bounds: Optional[Bounds], reverse: bool, limit: Optional[int]) -> Selection[K, V]:
        spans = self._storage
        lower, upper = (spans.lower, spans.upper) if bounds is None else limits(spans, bounds)
        if limit is not None and limit < 0:
            refuse_limit(limit)
        made: Selection[K, V] = _new(Selection)
        made._table, made._lower, made._upper = self, lower, upper
        made._reverse, made._limit, made._query = reverse, limit, ALL
        return made

    def __iter__(self) -> Iterator[K]:
        return iter(self.select().keys())

    def __reversed__(self) -> Iterator[K]:
        return iter(self.select(reverse=True).keys())

    def keys(self) -> Keys[K]:
        """The keys, in their order, as a view."""
        from .mappingviews import Keys  # late: most programs iterate over selections

        return Keys(self)

    def items(self) -> Items[K, V]:
        """The pairs of key and value, in key order, as a view."""
        from .mappingviews import Items  # late, as above

        return Items(self)

    def values(self) -> Values[V]:
        """The values, in key order, as a view."""
        from .mappingviews import Values  # late, as above

        return Values(self)

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
            self._half_written(None, error)
            raise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}: [{preview(lambda: iter(self.select(limit=4)))}]>"

    def _query_types(self) -> Any:
        """What is known of the values and keys, for queries of other tables; None if nothing is."""
        if (
            self._txn.buffers
            or self._part
            or not self._point_reads
            or type(self).__contains__ is not Table.__contains__
        ):
            return None
        from .executor.execution import types_of  # late, as above

        return types_of(self._storage)

    # -- views, and deletions with what they entail ----------------------------------------------------------------

    def _view(self, name: str, kind: type[W]) -> W:
        """The view of the declared index *name*."""
        view = self._views.get(name)
        if view is None:
            from .indexview import view_of  # late: many tables have no indexes

            bound = next((bound for bound in self._indexes if bound.storage.name == name), None)
            view = self._views[name] = view_of(self, name, kind, bound)
        return view

    def _remove(self, encoded: bytes) -> int:
        """Delete the record with the engine's key *encoded*, and what that entails; 1 if there was one, else 0."""
        if self._storage.referrers or self._found.undeletable is not None:
            from .removal import remove  # late: few tables have links to them

            return remove(self, (encoded,))
        return self._remove_alone(encoded)

    # -- keys without a record -------------------------------------------------------------------------------------

    def _missing(self, key: Any, default: Any) -> Any:
        """Return *default* for a missing record, or raise KeyError without one. Raise first if the key does not fit."""
        self._storage.encode_key(key)
        if default is REQUIRED:
            raise missing(key)
        return default

    def _read_again(self, key: Any, error: Exception, default: Any) -> Any:
        """Find the cause of *error* in the fast read, or the result of the slow one (None in a named key is a zero)."""
        let_through(error)
        ours = self._txn._translate(error, table=self._name, key=key)
        if isinstance(ours, MemoryError) or (isinstance(ours, errors.Error) and not isinstance(ours, ValueError)):
            errors.raise_as(ours, error)
        data = self._get(self._storage.encode_key(key), None, self._db)
        return self._missing(key, default) if data is None else self._storage.decode_value(data, key)
