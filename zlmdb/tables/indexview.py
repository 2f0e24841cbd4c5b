"""A table read through one of its indexes: an index as an attribute of a table in a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Optional, TypeVar, Union, overload

from .. import errors
from ..codegen import Recipe
from ..handlers import let_through
from ..query import NoList, Reads, no_length, preview
from ..query.nolists import refuse_equal
from ..query.projection import KEYS, PAIRS, VALUES
from ..shown import NotGiven
from ..store.blocks import COUNTS_REFERENCES
from ..store.ranges import keys_from, pairs_from, seek
from .advice import tells_as_table
from .compiled.points import compiled, subclass
from .indexstorage import BoundIndex, IndexStorage
from .missing import missing, refuse_limit, refuse_position
from .ranged import Bounds, Ranged, limits
from .scan import IndexScan, Scan
from .selection import ALL, Selection
from .storage import Storage

if TYPE_CHECKING:
    from ..query.following.nested import Nested
    from ..query.nestedrows import Keys
    from ..query.translated import Give
    from .table import Table

_LOOKUPS = Recipe("look-ups")

I = TypeVar("I")  # noqa: E741 - the index key, as in IndexView[I, K, V]
K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

_ABSENT: Any = NotGiven()
_new: Any = object.__new__

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
    except Exception as error:
        let_through(error)  # the general form finds out why
    return general(self, key)
"""


def view_of(table: Table[Any, Any], name: str, kind: Any, bound: Optional[BoundIndex]) -> Any:
    """The view of *kind* of *table*, through the index *bound*; *bound* is None if the file lacks it."""
    plain: Any = UniqueIndexView
    if bound is None or bound.storage.building or kind is not plain or table._txn._buffers:
        return kind(table, name, bound)
    index = bound.storage
    if index.view is None:
        index.view = subclass(plain, _finding(plain, type(table), table._storage, index))
    return index.view(table, name, bound)


def _finding(kind: Any, table: type, storage: Storage[Any, Any], index: IndexStorage) -> dict[str, Any]:
    encode, names = index.storage.key.lookup_source(index.storage.prefix)
    source = _FINDING.format(encode=encode, primary=f"{storage.prefix!r} + primary" if storage.prefix else "primary")
    names = {**names, "load": storage.value.bytes_decode, "general": kind.__getitem__, "let_through": let_through}
    made = compiled(_LOOKUPS, index.storage, source, names, self=kind, table=table)
    return {"__getitem__": made["__getitem__"]}


_BY_KEY = {
    False: "write table[key] = value, or index[...].delete(), .change(...) or .edit() for the records that it finds",
    True: "write table[index.key(...)] = value, del table[index.key(...)], or table.edit(index.key(...))",
}


@tells_as_table
class _View(NoList, Ranged[I, K, V], Generic[I, K, V]):
    """The common part of both kinds of views: an index of a table in a transaction."""

    __slots__ = ("_bound", "_handle", "_name", "_storage", "_table")

    _unique = False

    if not TYPE_CHECKING:  # checkers report it by themselves

        def __eq__(self, other):
            refuse_equal(f"{self._table._name}.{self._name}", other)
            return NotImplemented

        __hash__ = object.__hash__

    def __init__(self, table: Table[K, V], name: str, bound: Optional[BoundIndex]) -> None:
        self._table = table
        self._name = name
        if bound is None:
            raise errors.IndexNotBuilt(
                f"index {table._name}.{name} is not in the file{' as it is declared here' * table._found.older}: "
                + (
                    "the file is newer than this program, use a newer one; or, to go back to the indexes of this "
                    "program, open it writable once with drop_indexes=True"
                    if table._found.older
                    else "open it writable with a schema that declares the index, which builds it"
                ),
                table=table._name,
                index=name,
            )
        if bound.storage.building:
            raise errors.IndexNotBuilt(
                f"index {table._name}.{name} is being built, and does not have all records yet: open the database to "
                f"write, or call db.build_indexes(), which builds the rest",
                table=table._name,
                index=name,
            )
        self._bound = bound
        self._storage = bound.storage
        self._handle = bound.handle

    def _chosen(self, bounds: Optional[Bounds], reverse: bool, limit: Optional[int]) -> Selection[K, V]:
        spans = self._storage
        lower, upper = (spans.lower, spans.upper) if bounds is None else limits(spans, bounds)
        return self._kind(one_key=False)(self._table, lower, upper, reverse, limit, index=self._bound)

    def _kind(self, *, one_key: bool) -> type[IndexSelection[K, V]]:
        """The class of selections, of the records of *one_key* or of others."""
        if not self._storage.several or (one_key and not self._table._txn._write):
            return IndexSelection
        from .indexkinds.elementview import ElementSelection, OneElementSelection  # late: few have it

        if one_key:
            return OneElementSelection
        return ElementSelection

    def keys(self) -> Reads[K]:
        """The primary keys, in the order of the index."""
        return self._chosen(None, False, None).keys()

    def values(self) -> Reads[V]:
        """The values, in the order of the index."""
        return self._chosen(None, False, None).values()

    def __bool__(self) -> bool:
        return bool(self._chosen(None, False, None))

    if TYPE_CHECKING:  # checkers report by themselves what is not there
        __iter__ = None
    else:
        __len__ = no_length

        def __iter__(self) -> NoReturn:  # without it Python would try view[0], view[1], ... for ever
            raise TypeError(
                f"an index is not iterable: write t.{self._table._name}.{self._name}.select() for the records in its "
                "order, or .groups()"
            )

        def __setitem__(self, key: Any, value: Any) -> NoReturn:
            raise TypeError(
                f"an index supports no item assignment or deletion, as it follows its table: {_BY_KEY[self._unique]}"
            )

        def __delitem__(self, key: Any) -> NoReturn:
            self[key] = None  # which raises

    def _query_types(self) -> None:
        """Nothing is known: a function that has captured it is called for each record."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._table.__reduce_ex__(protocol)  # which refuses it

    def __repr__(self) -> str:
        shown = preview(lambda: iter(self.select(limit=4)))
        return f"<{type(self).__name__} {self._storage.storage.name}: [{shown}]>"

    def _only(self, key: I) -> Selection[K, V]:
        lower, upper = self._storage.exactly(key)
        kind: Any = self._kind(one_key=True) if self._storage.several else IndexSelection
        return kind(self._table, lower, upper, index=self._bound)


class IndexView(_View[I, K, V]):
    """Reads a table through a non-unique index: ``t.users.by_age[32]``."""

    def __getitem__(self, key: I) -> Selection[K, V]:
        """The records with this index key, in the order of their primary keys; empty when there are none."""
        storage = self._storage
        if storage.several:
            return self._only(key)
        made: IndexSelection[K, V] = _new(IndexSelection)  # what `_only` does, without the calls
        made._lower, made._upper = storage.exactly(key)
        made._table, made._index, made._reverse, made._limit, made._query = self._table, self._bound, False, None, ALL
        return made

    def __contains__(self, key: Any) -> bool:
        return bool(self._only(key))

    def _reader(
        self, node: Nested, parameters: Sequence[Any], question: Any, keys: Optional[Keys], still: bool,
        keep: Any = None,
    ) -> Any:  # fmt: skip
        """What reads the records of a key for *node*; None if *question* is as good.

        *keys*: in place of the key it takes an engine's key of that form, and what decodes it. *still*: nothing is
        written while it is in use. *keep* is handed what makes it.
        """
        from .executor.nestedreads import reader  # late: few programs ask for it

        return reader(self, node, parameters, question, keys, still, keep)

    def groups(self) -> Iterator[tuple[I, Selection[K, V]]]:
        """Each index key with the selection of its records, in the order of the index. O(log n) a group."""
        if self._table._txn._write:  # the body may write groups ahead, for ever
            for key in list(self._keys()):
                if group := self._only(key):
                    yield key, group
        else:
            for key in self._keys():
                yield key, self._only(key)

    def _keys(self) -> Iterator[I]:
        """Each index key once."""
        table, storage = self._table, self._storage
        lower, upper = storage.lower, storage.upper
        while True:
            cursor = table._cursor(self._handle)
            found = cursor.set_range(lower) if lower else cursor.first()
            entry = bytes(cursor.key()) if found else upper
            cursor.close()
            if entry >= upper:
                return
            key: I = storage.load_key(entry)
            yield key
            lower = storage.exactly(key)[1]


class UniqueIndexView(_View[I, K, V]):
    """Reads a table through a unique index: ``t.users.by_email["ann@example.com"]``."""

    _unique = True

    def __getitem__(self, key: I) -> V:
        """The record with this index key. Raises `KeyError` when there is none."""
        primary = self._primary(key)
        if primary is None:
            raise missing(key)
        return self._table._owned(primary, self._storage)

    def get(self, key: I, default: Optional[V] = None) -> Optional[V]:
        """The record with this index key, or *default*."""
        primary = self._primary(key)
        return default if primary is None else self._table._owned(primary, self._storage)

    @overload
    def key(self, key: I) -> K: ...
    @overload
    def key(self, key: I, default: D) -> Union[K, D]: ...
    def key(self, key: I, default: Any = _ABSENT) -> Any:
        """The primary key of the record with this index key, or *default*; the record is not read.

        Raises `KeyError` if there is no such record and no *default*.
        """
        primary = self._primary(key)
        if primary is not None:
            return self._table._storage.key.decode(primary)
        if default is _ABSENT:
            raise missing(key)
        return default

    def __contains__(self, key: object) -> bool:
        return self._primary(key) is not None

    def _primary(self, key: Any) -> Optional[bytes]:
        entry = self._storage.storage.lookup
        try:
            primary: Optional[bytes] = self._table._raw.get(entry(key), None, self._handle)
        except Exception as error:
            let_through(error)
            primary = self._again(key)
        if primary is None:
            self._entry(key)  # raises where the key could not be in the index at all
        return primary

    def _entry(self, key: Any) -> bytes:
        try:
            return self._storage.storage.encode_key(key)
        except errors.EncodeError:
            self._storage.exactly(key)  # its error names the index
            raise

    def _again(self, key: Any) -> Optional[bytes]:
        """Repeat a failed read by the general form of the key, and raise errors of zlmdb."""
        entry = self._entry(key)
        try:
            primary: Optional[bytes] = self._table._raw.get(entry, None, self._handle)
        except Exception as error:
            self._table._txn._fail(error, table=self._table._name, index=self._name, key=key)
        return primary


class IndexSelection(Selection[K, V]):
    """Records of a table in the order of an index."""

    __slots__ = ("_index",)

    _plain = False

    def __init__(
        self, table: Table[K, V], lower: bytes, upper: bytes, reverse: bool = False, limit: Optional[int] = None, *,
        index: BoundIndex,
    ) -> None:  # fmt: skip
        if limit is not None and limit < 0:
            refuse_limit(limit)
        # What the base does, without its call: most of these are for a few records of one key.
        self._table, self._lower, self._upper, self._index = table, lower, upper, index
        self._reverse, self._limit, self._query = reverse, limit, ALL

    def _copy(self) -> Selection[K, V]:
        cls: Any = IndexSelection
        made: IndexSelection[K, V] = cls.__new__(cls)
        made._index = self._index
        return made

    def _described(self) -> str:
        index = self._index.storage
        backwards = ", backwards" if self._reverse else ""
        if self._lower == index.lower and self._upper == index.upper:
            return f"index {index.name} of {self._table._name}{backwards}"
        return f"a range of index {index.name} of {self._table._name}{backwards}"

    def _within(self, key: K) -> V:
        try:
            value = self._table[key]
        except errors.EncodeError as error:
            refuse_position(key, error)
            raise
        if self._entry_of(value, self._table._storage.key.encode(key)) is None:
            raise missing(key)
        return value

    def _entry_of(self, value: V, primary: bytes) -> Optional[bytes]:
        """The entry of a stored record at which the selection reads it; None if it does not belong to it."""
        return self._index.storage.entry_within(value, primary, self._lower, self._upper)

    def _scan(self, cursor: Any = None) -> Scan:
        return IndexScan(self._table, self._lower, self._upper, self._reverse, self._index, cursor)

    def _listed(self, give: Give) -> list[Any]:
        found = self._at_once(give) if self._query is ALL else None
        return super()._listed(give) if found is None else found

    def _at_once(self, give: Give) -> Optional[list[Any]]:
        """What *give* says of each record, all at once; None where somebody else has to find out."""
        table, index = self._table, self._index
        tail = index.storage.tail
        if give is not PAIRS and give is not VALUES and give is not KEYS:
            return None
        if not table._steady or not tail:
            return None
        try:
            cursor, lower, upper = table._raw.cursor(index.handle), self._lower, self._upper
            entries: Iterable[bytes] = ()
            if lower and not self._reverse:  # `seek` and `keys_from` without the calls, for a few records of one key
                if cursor.set_range(lower):
                    entries = takewhile(upper.__gt__, cursor.iternext(True, False))
            elif seek(cursor, lower, upper, self._reverse):
                entries = keys_from(cursor, lower, upper, self._reverse)
            if self._limit is not None:
                entries = islice(entries, self._limit)
            if table._txn._write:
                entries = list(entries)  # what loads a record may write
            storage = table._storage
            prefix, get, handle, load = storage.prefix, table._get, table._db, storage.load
            keys: list[bytes] = []
            values: list[Any] = []
            for entry in entries:  # one loop: to set up one for each of these steps takes as long as a record
                key = prefix + entry[tail:]
                keys.append(key)
                if give is not KEYS:
                    data = get(key, None, handle)
                    if data is None:
                        return None
                    values.append(load(data))
            if not COUNTS_REFERENCES:
                cursor.close()
            if give is VALUES:
                return values
            return list(map(storage.load_key, keys)) if give is KEYS else [*zip(map(storage.load_key, keys), values)]
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def _owner(self, cursor: Any, entry: bytes) -> tuple[Any, bytes, Any]:
        table, index = self._table, self._index
        tail = index.storage.tail
        primary = entry[tail:] if tail else bytes(cursor.value())
        key = table._storage.prefix + primary
        data = table._get(key, None, table._db)
        if data is None:
            table._owned(primary, index.storage)  # raises
        return cursor, key, data

    def _record_keys(self, most: int) -> list[bytes]:
        prefix, tail = self._table._storage.prefix, self._index.storage.tail
        if tail:
            return [prefix + entry[tail:] for entry in self._first(keys_from, most)]
        return [prefix + bytes(owner) for _, owner in self._first(pairs_from, most)]

    def _not_there(self, key: bytes) -> NoReturn:
        self._table._owned(key[len(self._table._storage.prefix) :], self._index.storage)  # raises: it has no record
        super()._not_there(key)

    def _cursor(self) -> Any:
        return self._table._cursor(self._index.handle)

    def _entries(self) -> int:
        return self._table._entries(self._index.handle)

    def _is_whole(self, storage: Optional[Storage[Any, Any]] = None) -> bool:
        return super()._is_whole(self._index.storage.storage)
