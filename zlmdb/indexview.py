"""A table read through one of its indexes: what an index gives as an attribute of a table in a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Optional, TypeVar

from . import errors
from .hotpath import compiled, subclass
from .indexstorage import BoundIndex, IndexStorage
from .query import Records
from .selection import Selection
from .storage import Storage

if TYPE_CHECKING:
    from .table import Table

I = TypeVar("I")  # noqa: E741 - the index key, as in IndexView[I, K, V]
K = TypeVar("K")
V = TypeVar("V")

# `UniqueIndexView.__getitem__` and what it calls, in one function: 0.9 of a hand-written loop where they reach 0.8.
_FINDING = """\
def __getitem__(self, key):
    table = self._table
    get = table._get
    try:
        primary = get({encode}, None, self._handle)
        if primary is not None:
            data = get({primary}, None, table._db)
            if data is not None:
                return load(data)
    except Exception:
        pass  # the general form finds out why
    return general(self, key)
"""


def view_of(table: Table[Any, Any], name: str, kind: Any, bound: Optional[BoundIndex]) -> Any:
    """The view of *kind* of the index *bound*, None where the file lacks it, of *table*."""
    plain: Any = UniqueIndexView
    if bound is None or kind is not plain or table.txn.buffers:
        return kind(table, name, bound)
    index = bound.storage
    if index.view is None:
        index.view = subclass(plain, {"__getitem__": _finding(plain, table.storage, index)})
    return index.view(table, name, bound)


def _finding(kind: Any, storage: Storage[Any, Any], index: IndexStorage) -> Any:
    encode, names = index.storage.key.lookup_source(index.storage.prefix)
    source = _FINDING.format(encode=encode, primary=f"{storage.prefix!r} + primary" if storage.prefix else "primary")
    names = {**names, "load": storage.value.bytes_decode, "general": kind.__getitem__}
    made = compiled("look-ups", index.storage, source, names)["__getitem__"]
    made.__doc__ = kind.__getitem__.__doc__
    return made


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

        *prefix* keeps those whose index key begins with it: a str or bytes, or leading parts of a tuple; *limit* the
        first so many of what is left. Nothing is read until the selection is iterated; each record read costs O(log n).
        Raises `EncodeError` if a bound does not fit, ValueError for a negative *limit*.
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
        except Exception:
            primary = self._again(key)
        if primary is None:
            self._storage.storage.encode_key(key)  # raises where the key could not be in the index at all
        return primary

    def _again(self, key: Any) -> Optional[bytes]:
        """After a failure: with the key as it is encoded where it need not be fast, and with our errors."""
        entry = self._storage.storage.encode_key(key)
        try:
            primary: Optional[bytes] = self._table.engine_get(entry, None, self._handle)
        except Exception as error:
            ours = self._table.txn.translate(error, table=self._table.label, index=self._name, key=key)
            raise ours from errors.cause(ours, error)
        return primary


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
        return self._read(keyed=True)

    def _values(self) -> Iterator[V]:
        return self._read(keyed=False)

    def _read(self, keyed: bool) -> Iterator[Any]:
        """The records, with *keyed* pairs of key and value. One flat loop, as those of `Selection`."""
        table, txn, lower, upper, reverse = self._table, self._table.txn, self._lower, self._upper, self._reverse
        index, storage = self._index.storage, table.storage
        prefix, load_key, load, tail = storage.prefix, storage.key.raw_decode, storage.load, index.tail
        place: Any = None
        primary: Any = b""
        data: Any = None
        try:
            while True:
                seen = txn.changes
                get, handle = table.engine_getter()
                for entry, owner in self._from(place, True):
                    if (entry < lower) if reverse else (entry >= upper):
                        return
                    primary = entry[tail:] if tail else owner
                    data = get(prefix + primary, None, handle)
                    if data is None:
                        table.owned(primary, index)  # raises
                    yield (load_key(primary), load(data)) if keyed else load(data)
                    if txn.changes != seen:
                        place = entry
                        break
                else:
                    return
        except Exception as error:
            self.failed(error, prefix + primary, data)

    def _keys(self) -> Iterator[K]:
        load_key = self._table.storage.key.decode
        for primary in self._primaries():
            yield load_key(primary)

    def records(self, keyed: bool) -> Records:
        return Records(self._owned, True, "", b"", resumes=False)

    def _owned(self, place: Optional[bytes] = None) -> Iterator[tuple[bytes, Any]]:
        """The table's own keys and values, in the order of the entries."""
        table, storage = self._table, self._table.storage
        txn = table.txn
        handle = txn.handle(storage.space)
        for primary in self._primaries():
            data = None if handle is None else txn.watch(table.engine_get(storage.prefix + primary, None, handle[0]))
            if data is None:
                table.owned(primary, self._index.storage)  # raises
            yield storage.prefix + primary, data

    def _primary_keys(self) -> Iterator[bytes]:
        prefix = self._table.storage.prefix
        for primary in self._primaries():
            yield prefix + primary

    def _not_there(self, key: bytes) -> NoReturn:
        self._table.owned(key[len(self._table.storage.prefix) :], self._index.storage)  # raises: it has no record
        super()._not_there(key)

    def _cursor(self) -> Any:
        return self._table.cursor(self._index.handle)

    def _entries(self) -> int:
        return self._table.entries(self._index.handle)

    def _is_whole(self, storage: Optional[Storage[Any, Any]] = None) -> bool:
        return super()._is_whole(self._index.storage.storage)

    def _replace(self, reverse: bool) -> Selection[K, V]:
        return IndexSelection(self._table, self._lower, self._upper, reverse, self._limit, index=self._index)
