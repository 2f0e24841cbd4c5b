"""Indexes: entries that are kept in step with the records of a table, and the views that read through them.

The key of an entry is the encoded index key; where several records may have one, the encoded primary key follows it.
The encoded primary key also is the entry's value, so that looking up needs no decoder, unless it is the last bytes of
the entry's key, as many as every primary key of that type has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, Optional, TypeVar, Union, get_origin, overload
from uuid import UUID

from . import errors
from .keys import KeyCodec, TupleKey, key_codec
from .selection import Selection
from .storage import Storage, after, shortened
from .typeargs import field_types

if TYPE_CHECKING:
    from typing_extensions import Self

    from .table import Table

_FIELD_LISTS = ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__", "_fields")

I = TypeVar("I")  # noqa: E741 - the index key, as in IndexView[I, K, V]
K = TypeVar("K")
V = TypeVar("V")


class DeclaredIndex(Generic[I]):
    """What `Index` and `UniqueIndex` share: the declaration of an index on a table class."""

    unique = False

    def __init__(
        self,
        field_or_fn: Union[str, Callable[[Any], Optional[I]]],
        /,
        *fields: str,
        version: Optional[int] = None,
        table: Union[UUID, str, None] = None,
        key: Any = None,
    ) -> None:
        if callable(field_or_fn):
            if version is None or fields:
                raise TypeError(
                    "an index of a function takes version=1 (count it up when the function changes) and no fields"
                )
            self.function: Optional[Callable[[Any], Any]] = field_or_fn
            self.fields: tuple[str, ...] = ()
        else:
            self.function = None
            self.fields = (field_or_fn, *fields)
        self.version = version
        self.adopts = None if table is None else UUID(str(table))
        self.key_type = key
        self.name = ""
        self.owner: Optional[type] = None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.owner = owner

    def declared_key(self, model: Any) -> KeyCodec[Any]:
        """The codec of the index key: of ``key=``, of the type argument, or of the fields in *model*."""
        declared = self._declared(model)
        try:
            return key_codec(declared)
        except TypeError as error:
            raise TypeError(f"index {self.name!r}: {error}") from error

    def _declared(self, model: Any) -> Any:
        """The type of the index key."""
        self._check_fields(get_origin(model) or model)
        if self.key_type is not None:
            return self.key_type
        alias = getattr(self, "__orig_class__", None)
        if alias is not None and not isinstance(alias.__args__[0], TypeVar):
            return alias.__args__[0]
        if not self.fields:
            raise TypeError(
                f"the index {self.name!r} of a function needs its key type: {type(self).__name__}[str](...)"
            )
        parts = tuple(self._field_type(model, field) for field in self.fields)
        return parts[0] if len(parts) == 1 else GenericAlias(tuple, parts)

    def _check_fields(self, cls: Any) -> None:
        """Raise `TypeError` for a field that *cls* does not list: the first record would fail."""
        listed = [getattr(field, "name", field) for mark in _FIELD_LISTS for field in getattr(cls, mark, ())]
        for field in self.fields:
            name = field.partition(".")[0]
            if listed and name not in listed and not hasattr(cls, name):
                raise TypeError(
                    f"index {self.name!r}: {cls.__name__} has no field {name!r} (it has {', '.join(listed)}): name one "
                    f"of its fields or properties"
                )

    def _field_type(self, model: Any, field: str) -> Any:
        try:
            types = field_types(model, getattr(self.owner, "locals_seen", None))
        except NameError as error:
            raise TypeError(f"index {self.name!r}: give the key type, Index[str]({field!r}), as {error}") from error
        if field not in types:
            raise TypeError(
                f"index {self.name!r}: {getattr(model, '__name__', model)} has no field {field!r} with a type (it has "
                f"{', '.join(types) or 'none'}): name one of its fields, or give the key type: Index[str]({field!r})"
            )
        return types[field]

    def getter(self, model: Any) -> Callable[[Any], Any]:
        """The function that takes the index key from a value."""
        if self.function is not None:
            return self.function
        cls = get_origin(model) or model
        if isinstance(cls, type) and not issubclass(cls, Mapping):  # a TypedDict is a dict, too
            return attrgetter(*self.fields)
        return _from_plain_data(self.fields)

    def definition(self, model: Any) -> dict[str, Any]:
        """What the catalogue records: a change of it rebuilds the index."""
        source: dict[str, Any] = {"fields": list(self.fields)} if self.function is None else {"version": self.version}
        return {"unique": self.unique, "key": self.declared_key(model).name, **source}


class Index(DeclaredIndex[I]):
    """An index declared on a table class: several records may have one index key.

    ``by_age = Index[int]("age")`` takes the key from a field, several fields make a tuple. A function of the value
    takes a *version*: a changed function needs a new one, which rebuilds the index at the next opening. *table*
    is the UUID of the index table of zlmdb <= 26 to adopt. A record whose index key is None, or a tuple with a None, is
    not in the index. Without a type argument the key type is read from the model's annotations.

    On a table the attribute is an `IndexView`.
    """

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Table[K, V], owner: type) -> IndexView[I, K, V]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance.view(self.name, IndexView)


class UniqueIndex(DeclaredIndex[I]):
    """An index declared on a table class: at most one record has an index key; a second one raises `DuplicateKey`.

    Arguments as for `Index`. On a table the attribute is a `UniqueIndexView`.
    """

    unique = True

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Table[K, V], owner: type) -> UniqueIndexView[I, K, V]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance.view(self.name, UniqueIndexView)


def _from_plain_data(fields: tuple[str, ...]) -> Callable[[Any], Any]:
    """Fields of dicts, and of models where the declared type allows both; absent ones are None."""
    if len(fields) == 1:
        field = fields[0]
        return lambda value: _member(value, field)
    return lambda value: tuple([_member(value, field) for field in fields])


def _member(value: Any, field: str) -> Any:
    holder: Any = value
    return holder.get(field) if isinstance(value, Mapping) else getattr(holder, field, None)


class IndexStorage:
    """One index of one table in one open store: where its entries are, and how they are made of a record.

    *null_error* is what to raise for a null index key; None: the record is not in the index. *owner* gives an entry's
    value from the primary key and its encoding. *enforced* is false in classic files, where several records may have
    one unique key: the entry then belongs to one of them. *table* is the label of the table; by default its index is
    labelled ``table.index``.
    """

    def __init__(
        self,
        name: str,
        storage: Storage[Any, Any],
        *,
        unique: bool,
        get_key: Callable[[Any], Any],
        primary: Optional[KeyCodec[Any]] = None,
        adopted: bool = False,
        owner: Optional[Callable[[Any, bytes], bytes]] = None,
        not_null: bool = False,
        enforced: bool = True,
        table: Optional[str] = None,
    ) -> None:
        self.name = name
        self.storage = storage
        self.unique = unique
        self.get_key = get_key
        self.owner = owner
        self.not_null = not_null
        self.enforced = enforced
        self.table = storage.label.rpartition(".")[0] if table is None else table
        self.label = f"{self.table}.{name}"
        self.joined = None if primary is None else TupleKey((storage.key, primary))
        # A primary key of fixed width is the end of the entry's key already; adopted tables have it as the value, too.
        self.tail = 0 if primary is None or primary.width is None or adopted else -primary.width

    def entry(self, value: Any, primary: bytes, *, stored: bool = False) -> Optional[bytes]:
        """The entry's key for a record; None when the record is not in the index.

        Raises `NullValueConstraint`, or `EncodeError` for an index key that does not fit. With *stored* the record is
        in the table already, and a null is none of its problems.
        """
        key = self.get_key(value)
        if key is None or (type(key) is tuple and None in key):
            if self.not_null and not stored:
                raise errors.NullValueConstraint(
                    f"index {self.label!r}: the index key is {key}, and the index was attached with "
                    f"nullable=False: give the record a key, or attach the index with nullable=True",
                    index=self.name,
                    table=self.table,
                )
            return None
        storage = self.storage
        if self.joined is None:
            return storage.encode_key(key)
        try:
            entry = storage.prefix + self.joined.encode_prefix((key,)) + primary
        except errors.EncodeError as error:
            raise errors.EncodeError(f"index {storage.label!r}: {error}", index=self.name, key=key) from error
        if len(entry) > storage.max_key_size:
            storage.bad_size(key, len(entry))
        return entry

    def owned(self, key: Any, primary: bytes) -> bytes:
        """The value of the entry of the record *key*."""
        if self.tail:
            return b""
        return primary if self.owner is None else self.owner(key, primary)

    def belongs(self, data: Any, key: Any, primary: bytes) -> bool:
        """Whether the value *data* of an entry is that of the record *key*."""
        if data == self.owned(key, primary):
            return True
        # The bytes may have been written in another way: by another version of pickle, say.
        return self.owner is not None and bool(self.storage.value.decode(data) == key)

    def owner_of(self, data: Any, table: Storage[Any, Any]) -> Any:
        """The primary key that the value *data* of an entry stands for."""
        codec = table.key if self.owner is None else self.storage.value
        return codec.decode(data)

    def bounds(self, start: Any, stop: Any, prefix: Any) -> tuple[bytes, bytes]:
        """The range of entries with ``start <= index key < stop`` that begin with *prefix*; None leaves a side open."""
        storage = self.storage
        lower, upper = storage.lower, storage.upper
        if start is not None:
            lower = self._bound(start)
        if stop is not None:
            upper = self._bound(stop)
        if prefix is not None:
            begin = storage.prefix + self._prefix(prefix)
            lower, upper = max(lower, begin), min(upper, after(begin))
        return lower, upper

    def exactly(self, key: Any) -> tuple[bytes, bytes]:
        """The range of the entries of one index key."""
        lower = self._bound(key)
        return lower, after(lower) if self.joined is not None else lower + b"\0"

    def load_key(self, entry: bytes) -> Any:
        """The index key of an entry."""
        storage = self.storage
        if self.joined is None:
            return storage.decode_key(entry)
        return self.joined.decode(entry[len(storage.prefix) :])[0]

    def _bound(self, key: Any) -> bytes:
        try:
            encoded = self.storage.key.encode(key) if self.joined is None else self.joined.encode_prefix((key,))
        except errors.EncodeError as error:
            raise errors.EncodeError(f"index {self.storage.label!r}: {error}", index=self.name, key=key) from error
        return self.storage.prefix + encoded

    def _prefix(self, prefix: Any) -> bytes:
        codec = self.storage.key
        try:
            return codec.encode_prefix(prefix) if self.joined is None else codec.part_prefix(prefix)
        except errors.EncodeError as error:
            raise errors.EncodeError(f"index {self.storage.label!r}: {error}", index=self.name, key=prefix) from error

    def conflict(self, key: Any, owner: Any) -> errors.DuplicateKey:
        """The error for an index key that another record has."""
        return errors.DuplicateKey(
            f"unique index {self.label!r}: the key {shortened(key)} belongs to the record {shortened(owner)} "
            f"already: change one of them first"
            + (
                ""
                if self.owner is None
                else "; where several may have it, put the primary key last, or declare an Index"
            ),
            table=self.table,
            index=self.name,
            key=key,
            owner=owner,
        )


class BoundIndex(NamedTuple):
    """An index in one transaction: its storage, and the engine's handle."""

    storage: IndexStorage
    handle: Any


class Change(NamedTuple):
    """What a statement does to one index: the entry to delete and the one to write, each possibly None."""

    bound: BoundIndex
    old: Optional[bytes]
    new: Optional[bytes]


class _View(Generic[I, K, V]):
    """What both kinds of views share: an index of a table in a transaction."""

    __iter__ = None  # not iterable: Python would try view[0], view[1], ... for ever; select() and groups() are

    def __init__(self, table: Table[K, V], name: str, bound: Optional[BoundIndex]) -> None:
        self._table = table
        self._name = name
        if bound is None:
            raise errors.IndexNotBuilt(
                f"index {table.label}.{name} is not in the file: open it writable with a schema that "
                "declares the index, "
                f"which builds it",
                table=table.label,
                index=name,
            )
        self._storage = bound.storage
        self._handle = bound.handle

    def select(
        self,
        start: Optional[I] = None,
        stop: Optional[I] = None,
        *,
        prefix: Any = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Selection[K, V]:
        """Records with ``start <= index key < stop``, in the order of the index; keys are the table's.

        *prefix* keeps those whose index key begins with it: a str or bytes, or leading parts of a tuple. Nothing is
        read until the selection is iterated; each record read costs O(log n).
        """
        lower, upper = self._storage.bounds(start, stop, prefix)
        return IndexSelection(self._table, lower, upper, reverse, limit, index=self._bound())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._storage.storage.label}>"

    def _bound(self) -> BoundIndex:
        return BoundIndex(self._storage, self._handle)

    def _only(self, key: I) -> Selection[K, V]:
        lower, upper = self._storage.exactly(key)
        return IndexSelection(self._table, lower, upper, index=self._bound())


class IndexView(_View[I, K, V]):
    """Reads a table through a non-unique index: ``t.users.by_age[32]``."""

    def __getitem__(self, key: I) -> Selection[K, V]:
        """The records with this index key, in the order of their primary keys; empty when there are none."""
        return self._only(key)

    def __contains__(self, key: Any) -> bool:
        return bool(self._only(key))

    def groups(self) -> Iterator[tuple[I, Selection[K, V]]]:
        """Each index key with the selection of its records, in the order of the index. O(log n) a group."""
        table, storage = self._table, self._storage
        lower, upper = storage.bounds(None, None, None)
        while True:
            cursor = table.cursor(self._handle)
            found = cursor.set_range(lower) if lower else cursor.first()
            entry = bytes(cursor.key()) if found else upper
            if entry >= upper:
                return
            key = storage.load_key(entry)
            yield key, self._only(key)
            lower = storage.exactly(key)[1]


class UniqueIndexView(_View[I, K, V]):
    """Reads a table through a unique index: ``t.users.by_email["ann@example.com"]``."""

    def __getitem__(self, key: I) -> V:
        """The record with this index key. Raises `KeyError` when there is none."""
        primary = self._primary(key)
        if primary is None:
            raise KeyError(key)
        return self._table.owned(primary, self._storage)

    def get(self, key: I, default: Optional[V] = None) -> Optional[V]:
        """The record with this index key, or *default*."""
        primary = self._primary(key)
        return default if primary is None else self._table.owned(primary, self._storage)

    def key(self, key: I) -> K:
        """The primary key of the record with this index key; the record is not read. Raises `KeyError`."""
        primary = self._primary(key)
        if primary is None:
            raise KeyError(key)
        return self._table.storage.key.decode(primary)

    def __contains__(self, key: object) -> bool:
        return self._primary(key) is not None

    def _primary(self, key: Any) -> Optional[bytes]:
        entry = self._storage.storage.lookup
        try:
            primary: Optional[bytes] = self._table.engine_get(entry(key), None, self._handle)
        except Exception as error:
            self._failed(key, error)
        if primary is None:
            self._storage.storage.encode_key(key)  # raises where the key could not be in the index at all
        return primary

    def _failed(self, key: Any, error: Exception) -> NoReturn:
        self._storage.storage.encode_key(key)
        raise self._table.txn.translate(error, table=self._table.label, index=self._name, key=key) from error


class IndexSelection(Selection[K, V]):
    """Records of a table in the order of an index."""

    __slots__ = ("_index",)

    def __init__(
        self, table: Table[K, V], lower: bytes, upper: bytes, reverse: bool = False, limit: Optional[int] = None, *,
        index: BoundIndex,
    ) -> None:  # fmt: skip
        super().__init__(table, lower, upper, reverse, limit)
        self._index = index

    def __getitem__(self, key: K) -> V:
        value = self._table[key]
        entry = self._index.storage.entry(value, self._table.storage.key.encode(key), stored=True)
        if entry is None or not self._lower <= entry < self._upper:
            raise KeyError(key)
        return value

    def _primaries(self) -> Iterator[Any]:
        """The encoded primary keys, in the order of the entries."""
        tail = self._index.storage.tail
        if tail:
            return (entry[tail:] for entry in self.engine_rows(values=False))
        return (primary for _, primary in self.engine_rows())

    def _pairs(self) -> Iterator[tuple[K, V]]:
        table, storage = self._table, self._index.storage
        load_key = table.storage.key.decode
        for primary in self._primaries():
            yield load_key(primary), table.owned(primary, storage)

    def _values(self) -> Iterator[V]:
        table, storage = self._table, self._index.storage
        for primary in self._primaries():
            yield table.owned(primary, storage)

    def _keys(self) -> Iterator[K]:
        load_key = self._table.storage.key.decode
        for primary in self._primaries():
            yield load_key(primary)

    def _primary_keys(self) -> Iterator[bytes]:
        prefix = self._table.storage.prefix
        for primary in self._primaries():
            yield prefix + primary

    def _cursor(self) -> Any:
        return self._table.cursor(self._index.handle)

    def _entries(self) -> int:
        return self._table.entries(self._index.handle)

    def _is_whole(self, storage: Optional[Storage[Any, Any]] = None) -> bool:
        return super()._is_whole(self._index.storage.storage)

    def _replace(self, reverse: bool) -> Selection[K, V]:
        return IndexSelection(self._table, self._lower, self._upper, reverse, self._limit, index=self._index)


def build(
    rows: Iterator[tuple[bytes, bytes]], table: Storage[Any, Any], index: IndexStorage, txn: Any, handle: Any
) -> int:  # fmt: skip
    """Write the entries of *index* for the engine's *rows* of *table*; the number of entries.

    Raises `DuplicateKey` when two records have one key of a unique index.
    """
    entries = 0
    skip = len(table.prefix)
    for raw_key, data in rows:
        primary = bytes(raw_key[skip:])
        key = table.decode_key(raw_key)
        value = table.decode_value(data, key)
        entry = index.entry(value, primary)
        if entry is not None:
            if not txn.put(entry, index.owned(key, primary), overwrite=not index.unique, db=handle):
                raise index.conflict(index.get_key(value), index.owner_of(txn.get(entry, None, handle), table))
            entries += 1
    return entries
