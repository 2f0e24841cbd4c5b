"""Where and how an open store keeps a table: its keyspace, its codecs, its generated functions, errors that name it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Optional, TypeVar

from .. import errors
from ..keys import KeyCodec
from ..namedtuples import NamedTuple
from ..protocols import Protocol
from ..shown import shortened
from ..store.ranges import TOP, after, prefixed_keys
from ..values.base import Serializer

if TYPE_CHECKING:
    from ..engines import Transaction
    from ..query.programs import Programs
    from .indexstorage import IndexStorage
    from .keyfield import KeyField
    from .links import Link
    from .upkeep import Follower

K = TypeVar("K")
V = TypeVar("V")
_SPACE = attrgetter("storage.space")


class FileIndexes(NamedTuple):
    """The indexes of a table in the file, compared with those that the program knows.

    *gone*: known ones that another program dropped or changed. *unknown*: those that the program does not know.
    *building*: known ones that do not have all entries yet: they are maintained, and nobody reads them.
    *definitions*: what the file records of each. *older*: the file once had the program's declaration, and has a later
    one now.

    For the shape of its records: why the program cannot read them, and why it may not write any; None if it may.
    *undeletable*: why it may not delete any, because of links to them.
    """

    gone: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    definitions: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    older: bool = False
    unreadable: Optional[str] = None
    unwritable: Optional[str] = None
    undeletable: Optional[str] = None
    building: frozenset[str] = frozenset()


Pairs = Sequence[tuple[bytes, bytes]]
"""Pairs for the engine, of a table or of an index."""

Stream = Callable[[Iterable[Any], Any], tuple[Iterator[tuple[bytes, bytes]], Callable[[], tuple[int, Any]]]]
"""See `points.stream_of`."""

Batch = Callable[[Sequence[Any]], tuple[Pairs, Sequence[Pairs]]]
"""See `indexed.batch_of`."""


class Selected(NamedTuple):
    """The functions for many records.

    *change* is a function of a bound table, of `selected.Rows`, and of what makes a new value of an old
    one: it gives the number of records. *edit* is a generator function: see `changing.EditedRows`. *remove* deletes the
    records of some keys, and is given what is stored there, where that is known; it gives their number, or None, if
    nothing was done, because it is not the common case.
    """

    change: Optional[Callable[..., int]]
    edit: Optional[Callable[..., Iterator[Any]]]
    remove: Callable[[Any, Sequence[bytes], Iterable[Optional[bytes]]], Optional[int]]


class Generated:
    """The functions and classes of one `Storage`, which the first use makes.

    *classes*: for a table class, the list of indexes that the class of its bound tables was made for, and that class
    (`compiled.boundclass`). *stream* and *batch* write lists of records without indexes (`bulkwrites`). *selected*: the
    list of indexes, and the functions that were made for it (`compiled.selected`). *programs* are the loops of queries.
    """

    # Class attributes, as opening a file makes one of these for each table: a function of its own would take longer.
    classes: Mapping[type, tuple[Sequence[object], Any]] = MappingProxyType({})
    stream: Optional[Stream] = None
    batch: Optional[Batch] = None
    selected: Optional[tuple[Sequence[object], Optional[Selected]]] = None
    programs: Optional[Programs] = None

    @property
    def loops(self) -> Programs:
        """*programs*, of a table that was queried before."""
        if self.programs is None:
            raise LookupError("no query of the table was begun")
        return self.programs


class Expires(Protocol):
    """That the records of a table expire: makes the classes of its bound tables (see `expiring`).

    *base* is what they have in common; *index* is the name of the index of times.
    """

    base: type[Any]
    index: str

    def __call__(self, cls: type[Any], /) -> type[Any]:
        """*cls*, with records that expire."""
        ...


class Storage(Generic[K, V]):
    """A table's keyspace (*space*, or None for the main one, and the *prefix* of its keys there) and codecs.

    *name* names the table in errors. *indexes* are maintained with the records, and *followers* are called for every
    change, too (see `upkeep`). *file_indexes* are those of the file when it was opened; *find_indexes* takes an
    engine's transaction and its era, and returns the indexes that the file has in it. *number* is the slot. *alone*:
    the space contains nothing else. *steady*: no record lacks a field whose default a function makes. *model* is the
    type of the values, and the names that it may use; *key_type* is the annotation of the keys. *generated* is filled
    by the modules that generate.
    """

    def __init__(
        self, name: str, space: Optional[bytes], prefix: bytes, key: KeyCodec[K], value: Serializer[V], max_key_size:
        int
    ) -> None:  # fmt: skip
        self.name = name
        self.shown = f"table {name!r}"  # in errors
        self.shown_key = "the key"
        self.roomier = "" if max_key_size > 511 else " (1978 in a database made with lib_version=1.0)"
        self.space = space
        self.prefix = prefix
        self.key = key
        self.value = value
        self.max_key_size = max_key_size
        self.number = 0
        self.alone = False
        self.steady = True
        self.lookup: Callable[[Any], bytes] = key.lookup(prefix)
        self.exact = key.exact if key.sorts else None
        self.load: Callable[[Any], V] = value.raw_decode
        self.dump: Callable[[V], bytes] = value.raw_encode
        self.indexes: Sequence[IndexStorage] = ()
        # The keyspaces that a write to the table may change: each scan asks all tables of its transaction for them.
        self.spaces = frozenset((space,))
        self.followers: Sequence[Follower] = ()
        self.referrers: Sequence[Link] = ()  # the links to its records
        self.file_indexes = FileIndexes()
        self.snapshot = -1  # in which *file_indexes* are what the file says, as `OpenEnvironment.opening` numbers them
        self.opening = 0
        self.find_indexes: Optional[Callable[[Transaction, Optional[int]], FileIndexes]] = None
        self.expiring: Optional[Expires] = None
        self.generated = Generated()
        self.model: Optional[tuple[Any, Optional[Mapping[str, Any]]]] = None
        self.key_type: Any = Any
        self.key_field: Optional[KeyField] = None
        self.keyed = False  # whether that is certain of all records in the file
        self.lower = prefix
        self.upper = after(prefix) if prefix else TOP
        skip = len(prefix)
        raw_decode = key.raw_decode
        self.load_key: Callable[[Any], K] = raw_decode if skip == 0 else lambda data: raw_decode(data[skip:])

    def maintain(self, indexes: Sequence[IndexStorage]) -> None:
        """Maintain *indexes*, and no others, with the records."""
        self.spaces = frozenset((self.space, *map(_SPACE, indexes)))
        self.indexes = indexes

    def encode_key(self, key: K) -> bytes:
        """The engine's key of *key*. Raises `EncodeError` naming the table."""
        try:
            encoded = self.prefix + self.key.encode(key)
        except errors.EncodeError as error:
            raise self.named(error, key) from error.__cause__
        if not 0 < len(encoded) <= self.max_key_size:
            self.bad_size(key, len(encoded))
        return encoded

    def fits(self, width: Optional[int]) -> bool:
        """Whether the engine takes every key with so many bytes behind the prefix; False if that is not known."""
        return width is not None and 0 < len(self.prefix) + width <= self.max_key_size

    def bound(self, key: Any, *, through: bool = False) -> bytes:
        """The position of *key* in a range, or with *through* the position after it. Raises `EncodeError`."""
        try:
            return self.prefix + self.key.bound(key, through=through)
        except errors.EncodeError as error:
            raise self.named(error, key) from error.__cause__

    def exactly(self, key: Any) -> tuple[bytes, bytes]:
        """The range of the one record *key*. Raises `EncodeError`."""
        encoded = self.encode_key(key)
        return encoded, encoded + b"\0"

    def span(self, prefix: Any, startswith: Any) -> tuple[bytes, bytes]:
        """The range of the keys that `KeyCodec.span` asks for. Raises `EncodeError`."""
        try:
            lower, upper = self.key.span(prefix, startswith)
        except errors.EncodeError as error:
            raise self.named(error, startswith if prefix is None else prefix) from error.__cause__
        return self.prefix + lower, self.upper if upper is TOP else self.prefix + upper

    def encode_value(self, value: V, key: Any = None) -> bytes:
        """The bytes of *value*. Raises `EncodeError` naming the table and *key*."""
        try:
            return self.value.encode(value)
        except errors.EncodeError as error:
            raise self.named(error, key) from error.__cause__

    def check_key(self, key: Any, value: V) -> None:
        """Raise `EncodeError` if the class of the table names a key field, and its value is not *key*."""
        if self.key_field is not None:
            self.key_field.check(self.name, key, value)

    def encode_record(self, value: V, key: Any) -> bytes:
        """The bytes of *value*, the record of *key*. Raises `EncodeError` naming the table and *key*."""
        self.check_key(key, value)
        return self.encode_value(value, key)

    def decode_key(self, data: Any) -> K:
        """The key whose encoding in the engine is *data*. Raises `DecodeError` naming the table."""
        try:
            return self.key.decode(data[len(self.prefix) :])
        except errors.DecodeError as error:
            raise self.named(error, bytes(data)) from error.__cause__

    def decode_value(self, data: Any, key: Any) -> V:
        """The value of the stored *data*. Raises `DecodeError` naming the table and *key*."""
        try:
            return self.value.decode(data)
        except errors.DecodeError as error:
            raise self.named(error, key) from error.__cause__

    def bad_size(self, key: Any, size: int, primary: bytes = b"") -> NoReturn:
        """Raise `EncodeError` for a *key* of *size* bytes in the engine, of which the last ones are *primary*."""
        if size == 0:
            text = "the key is empty, and this engine has no empty keys: give it at least one byte"
        else:
            after = f" with the {len(primary)} of the primary key after it" if primary else ""
            text = (
                f"{self.shown_key} {shortened(key)} takes {size} bytes{after}, at most {self.max_key_size} fit"
                f"{self.roomier}: shorten {'one of them' if primary else 'it'}"
            )
        raise errors.EncodeError(f"{self.shown}: {text}", table=self.name, key=key, size=size, limit=self.max_key_size)

    def not_ascending(self, key: Any, last: bytes) -> NoReturn:
        """Raise `EncodeError` for a *key* to be appended that is not greater than the one of the bytes *last*."""
        raise errors.EncodeError(
            f"{self.shown}: append=True needs ascending keys after the last one, "
            f"{shortened(key)} does not come after {shortened(self.decode_key(last))}",
            table=self.name,
            key=key,
        )

    def any(self, cursor: Any) -> bool:
        """Whether there is a record, using a *cursor* over the keyspace."""
        return next(prefixed_keys(cursor, self.prefix), None) is not None

    def check_sorts(self) -> None:
        """Raise if keys do not sort in this layout, so that ranges have no meaning."""
        if not self.key.sorts:
            raise errors.EncodeError(
                f"table {self.name!r}: zlmdb <= 26 stored the keys {self.key.name} little-endian, so a "
                "range over them "
                f"has no meaning: read the whole table, or migrate the file to the tables layout",
                table=self.name,
            )

    def named(self, error: errors.Error, key: Any) -> errors.Error:
        """*error*, with the name of the table and *key*."""
        details = {**error.__dict__, "table": self.name, "key": key}
        return type(error)(f"{self.shown}, key {shortened(key)}: {error}", **details)


class Nothing:
    """Represents a table that the file does not have: reads as an empty keyspace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get(self, key: bytes, default: Any = None, db: Any = None) -> Any:
        """*default*."""
        return default

    def cursor(self, db: Any = None) -> Nothing:
        """A cursor over no records."""
        return self

    def first(self, *args: Any) -> bool:
        """False: there is no record."""
        return False

    last = set_range = prev = next = first

    def close(self) -> None:
        """Nothing to do."""

    def iternext(self, *args: Any) -> Iterator[Any]:
        """No records."""
        return iter(())

    iterprev = iternext

    def stat(self, db: Any = None) -> dict[str, int]:
        """No entries."""
        return {"entries": 0}

    def put(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: the file has no such keyspace."""
        raise errors.SchemaMismatch(
            f"table {self._name!r} is not in the file, and nothing is made in one that is opened without a schema, "
            f"with create=False or layout='raw': zlmdb.open(path, Store) makes what it and db.table(...) declare",
            table=self._name,
        )

    delete = drop = put
