"""The classic interface of a table: a map that takes the transaction as an argument, ``m[txn, key]``.

It runs the same code as a table: a map in a transaction is a `Table`, which `PersistentMap.bind` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Optional, TypeVar, Union, overload

from .. import errors
from ..handlers import let_through
from ..keys import TupleKey, key_codec
from ..shown import shortened
from ..store.catalogue import catalogue_of
from ..store.transaction import Transaction
from ..tables.selection import Selection
from ..tables.table import Table
from ..values.base import is_a
from .attached import Attached, Built, check_built, prepare
from .codecs import map_types
from .selection import ClassicSelection
from .storedmap import StoredMap

if TYPE_CHECKING:
    from typing_extensions import TypeVar as DefaultTypeVar

    K = DefaultTypeVar("K", default=Any)
    V = DefaultTypeVar("V", default=Any)
else:
    K = TypeVar("K")
    V = TypeVar("V")
D = TypeVar("D")


class PersistentMap(StoredMap[K, V]):
    """A typed map of a database that takes the transaction in each operation: ``users[txn, key]``.

    *slot*, 1 to 65534, is the number of a map that is created by hand; ``db.attach_table(cls)`` numbers maps of classes
    decorated by `table`. *compress* is `COMPRESS_ZLIB` or `COMPRESS_SNAPPY`. JSON and CBOR maps take *marshal* (object
    to plain data) and *unmarshal* (back), FlatBuffers maps *build* (object and builder to offset) and *cast* (bytes to
    object), in this order if they are positional.

    A class that defines ``_serialize_key``, ``_deserialize_key``, ``_serialize_value`` or ``_deserialize_value``
    determines these bytes itself; the file then calls them ``custom``.

    ``m[txn, key]`` is None if there is no record. ``bind(txn)`` returns the `Table` of the same records, which behaves
    as a dict. A map is always true, and equal only to itself.
    """

    _attached: Mapping[str, Attached] = MappingProxyType({})  # replaced when it changes, never changed
    _detached: frozenset[str] = frozenset()
    _index_attached_to: Optional[PersistentMap[Any, Any]] = None
    _was_index = False

    # -- in a transaction -----------------------------------------------------------------------------------------

    def bind(self, txn: Transaction) -> Table[K, V]:
        """The records of this map in *txn* as a `Table`, which behaves as a dict."""
        return self._bound(txn)[0]

    def _bound(self, txn: Transaction) -> tuple[Table[K, V], Built]:
        """The table, and the indexes that were built for it just now."""
        if not isinstance(txn, Transaction):  # pyright: ignore[reportUnnecessaryIsInstance]  # a common mistake
            raise TypeError(f"expected a transaction, got {shortened(txn)}: write m[txn, key] or m.bind(txn)")
        table: Optional[Table[K, V]] = txn._tables.get(self)
        if table is not None:
            return table, {} if self._wiring in txn._tables else self._prepare(txn, table)
        txn._engine_txn  # noqa: B018 - raises where the transaction is not open
        self._check_slot(txn)
        txn._mix()
        table = txn._tables[self] = Table._bound(txn, self._storage_in(txn._store))
        try:
            return table, self._prepare(txn, table)
        except BaseException:
            del txn._tables[self]
            raise

    def _check_slot(self, txn: Transaction) -> None:
        """Raise unless the slot given by hand is free: an attached table may have the number."""
        if not self._is_attached and self._slot is not None:
            oid = catalogue_of(txn._store).registered(txn._engine_txn, self._slot)
            if oid is not None:
                raise errors.SchemaMismatch(
                    f"slot {self._slot} holds the table {oid}, {type(self).__name__}({self._slot}) would mix its "
                    f"records with those: attach that table with db.attach_table, or choose another number",
                    table=oid,
                )

    def _prepare(self, txn: Transaction, table: Table[K, V]) -> Built:
        """Let *table* maintain the attached indexes; returns those that had to be built for it."""
        wiring, owner = self._wiring, self._index_attached_to
        if owner is not None and txn._write:
            owner.bind(txn)  # which builds this index where it has to
        self._records_in(txn._store).rewire(self._attached, txn._store, wiring)
        table._bind_indexes_again()
        built: Built = {}
        if txn._write:
            built = prepare(self, txn, table)
        elif owner is not None:
            check_built(owner, self, txn, table)
        # Under what is attached, too: it is there for as long as nothing else is attached, nor the catalogue changed.
        txn._tables[wiring] = table
        txn._mix()
        txn._index_hooks.append(partial(self._indexes_changed, txn))
        return built

    def _unprepare(self, txn: Transaction) -> None:
        """Read the state of the indexes again when the map is next used in *txn*."""
        txn._tables.pop(self._wiring, None)

    def _indexes_changed(self, txn: Transaction, by: Table[Any, Any], names: Sequence[str]) -> None:
        table = txn._tables.get(self)
        if table is not None and table is not by and table._name == by._name:  # another map of the same table
            self._unprepare(txn)
            table._refuse_without(names)

    # -- one record -----------------------------------------------------------------------------------------------

    def __getitem__(self, txn_key: tuple[Transaction, K]) -> Optional[V]:
        try:  # what `_unpacked` does, without the call: half the cost of reading through a map
            txn, key = txn_key
            table: Table[K, V] = txn._tables[self._wiring]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            let_through(error)
            table, key = self._unpacked_first(txn_key)
        try:
            return table.get(key)
        except errors.EncodeError as error:
            return _absent(error, None)

    def __setitem__(self, txn_key: tuple[Transaction, K], value: V) -> None:
        table, key = self._unpacked(txn_key)
        table[key] = value

    def __delitem__(self, txn_key: tuple[Transaction, K]) -> None:
        table, key = self._unpacked(txn_key)
        try:
            table._remove(table._storage.encode_key(key))
        except errors.EncodeError as error:
            _absent(error, None)
            table._txn._check_write()

    def __contains__(self, txn_key: tuple[Transaction, K]) -> bool:
        table, key = self._unpacked(txn_key)
        try:
            return key in table
        except errors.EncodeError as error:
            return _absent(error, False)

    def get(self, txn_key: tuple[Transaction, K], default: Any = None) -> Any:
        """The value, or *default*."""
        table, key = self._unpacked(txn_key)
        try:
            return table.get(key, default)
        except errors.EncodeError as error:
            return _absent(error, default)

    def setdefault(self, txn_key: tuple[Transaction, K], default: V) -> V:
        """The value; if there is none, *default*, which is stored."""
        table, key = self._unpacked(txn_key)
        return table.setdefault(key, default)

    def pop(self, txn_key: tuple[Transaction, K], default: Any = None) -> Any:
        """The value, whose record is deleted; *default* if there is none."""
        table, key = self._unpacked(txn_key)
        try:
            return table.pop(key, default)
        except errors.EncodeError as error:
            return _absent(error, default)

    def update(
        self, items: Union[Mapping[tuple[Transaction, K], V], Iterable[tuple[tuple[Transaction, K], V]]]
    ) -> None:  # fmt: skip
        """Store all *items*, whose keys are pairs of transaction and key."""
        given: Any = items
        pairs: Iterable[tuple[tuple[Transaction, K], V]] = given.items() if isinstance(items, Mapping) else given
        for txn_key, value in pairs:
            self[txn_key] = value

    def _unpacked(self, txn_key: Any) -> tuple[Table[K, V], K]:
        """The bound table and the key; this is the common case."""
        try:
            txn, key = txn_key
            table: Table[K, V] = txn._tables[self._wiring]
            return table, key
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            let_through(error)
        return self._unpacked_first(txn_key)

    def _unpacked_first(self, txn_key: Any) -> tuple[Table[K, V], K]:
        pair: tuple[Any, ...] = txn_key
        if not isinstance(txn_key, tuple) or len(pair) != 2:
            raise TypeError(
                f"expected a transaction and a key, got {shortened(pair)}: write m[txn, key], and m[txn, (a, b)] "
                f"where the key is a tuple"
            )
        return self.bind(pair[0]), pair[1]

    # -- many records ---------------------------------------------------------------------------------------------

    @overload
    def select(
        self, txn: Transaction, from_key: Optional[K] = None, to_key: Optional[K] = None,
        return_keys: Literal[True] = True, return_values: Literal[True] = True, reverse: bool = False,
        limit: Optional[int] = None,
    ) -> ClassicSelection[K, V, tuple[K, V]]: ...  # fmt: skip
    @overload
    def select(
        self, txn: Transaction, from_key: Optional[K] = None, to_key: Optional[K] = None,
        return_keys: Literal[True] = True, *, return_values: Literal[False], reverse: bool = False,
        limit: Optional[int] = None,
    ) -> ClassicSelection[K, V, K]: ...  # fmt: skip
    @overload
    def select(
        self, txn: Transaction, from_key: Optional[K] = None, to_key: Optional[K] = None, *,
        return_keys: Literal[False], return_values: Literal[True] = True, reverse: bool = False,
        limit: Optional[int] = None,
    ) -> ClassicSelection[K, V, V]: ...  # fmt: skip
    @overload
    def select(
        self, txn: Transaction, from_key: Optional[K] = None, to_key: Optional[K] = None,
        return_keys: bool = True, return_values: bool = True, reverse: bool = False, limit: Optional[int] = None,
    ) -> ClassicSelection[K, V, Any]: ...  # fmt: skip
    def select(
        self,
        txn: Transaction,
        from_key: Optional[K] = None,
        to_key: Optional[K] = None,
        return_keys: bool = True,
        return_values: bool = True,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> ClassicSelection[K, V, Any]:
        """Records with ``from_key <= key < to_key``, in key order, or backwards with *reverse*; at most *limit*.

        Iteration, or `next`, returns pairs of key and value, or only keys, or only values, or None for neither. Nothing
        is read before that. Raises `EncodeError` if a bound does not fit the key type, `ValueError` for a negative
        limit.
        """
        chosen = self.bind(txn).select(from_key, to_key, reverse=reverse, limit=limit)
        return ClassicSelection[K, V, Any].of(chosen, return_keys, return_values)

    def count(self, txn: Transaction, prefix: Any = None) -> int:
        """The number of records, or of those whose key begins with *prefix*: text, or leading parts of a tuple."""
        table = self.bind(txn)
        parts: Any = prefix
        if isinstance(prefix, tuple):  # (uuid, None) asks for all that begin with uuid, and (None, None) for all
            while parts and parts[-1] is None:
                parts = parts[:-1]
        if prefix is None or (isinstance(prefix, (str, bytes, tuple)) and len(parts) == 0):
            return len(table)
        return _beginning(table, parts).count()

    def count_range(self, txn: Transaction, from_key: K, to_key: K) -> int:
        """The number of records with ``from_key <= key < to_key``."""
        if from_key is None or to_key is None:
            raise TypeError("count_range needs both keys: count(txn) counts all records")
        return self.bind(txn).select(from_key, to_key).count()

    def truncate(self, txn: Transaction, rebuild_indexes: bool = True) -> int:
        """Delete every record and its index entries; returns the number of both.

        *rebuild_indexes* is accepted for old code and has no effect: an index never keeps entries of deleted records.
        """
        return self.bind(txn).truncate()

    @classmethod
    def new_key(cls, secure: bool = False) -> Any:
        """A new key: random, or the current time. *secure* is accepted for old code: all random keys are secure."""
        return key_codec(map_types(cls, PersistentMap, cls._locals_seen)[0]).new_key()

    # -- indexes --------------------------------------------------------------------------------------------------

    def attach_index(
        self,
        name: str,
        pmap: PersistentMap[Any, Any],
        fkey: Callable[[V], Any],
        nullable: bool = False,
        unique: bool = True,
    ) -> None:
        """Maintain *pmap*, a map from index keys to the keys of this map, as an index of the records.

        *fkey* takes the index key from a value. A record whose index key is None, or a tuple with a None, is left out
        if *nullable* is true; otherwise it raises `NullValueConstraint`. An index key belongs to one record; a second
        raises `DuplicateKey`. To let several records have one, put the primary key last into it. If there are records
        when the index is new, the next write transaction that uses the map builds it. Raises `ValueError` if *name* or
        *pmap* is in use.
        """
        if name in self._attached:
            raise ValueError(f"{self!r} has an index {name!r} already: detach it first, or choose another name")
        why = self._no_index(pmap)
        if why:
            raise ValueError(f"{pmap!r} cannot be the index {name!r} of {self!r}: {why}")
        pmap._index_attached_to = self
        self._detached -= {name}
        attached = Attached(pmap, fkey, nullable, unique, trusted=not pmap._was_index, token=object())
        self._attach({**self._attached, name: attached}, pmap)

    def _no_index(self, pmap: PersistentMap[Any, Any]) -> str:
        """The reason why *pmap* cannot be an index of this map, if there is one."""
        if pmap is self:
            return "an index is a map of its own"
        if pmap._index_attached_to is not None:
            return f"it is an index of {pmap._index_attached_to!r}: detach it there, or make another map"
        if self._index_attached_to is not None:
            return f"that is itself an index of {self._index_attached_to!r}, and an index has no indexes"
        return f"it has the indexes {pmap.indexes()}, and an index has none" if pmap._attached else ""

    def detach_index(self, name: str) -> None:
        """Stop maintaining the index *name*: its entries stay, and the file no longer records it.

        A name that is not attached is allowed, so that a program can detach an index that only the file knows.
        """
        self._detached |= {name}
        gone = self._attached.get(name)
        pmap = None if gone is None else gone.pmap
        if pmap is not None:
            pmap._index_attached_to = None
            pmap._was_index = True
        self._attach({other: one for other, one in self._attached.items() if other != name}, pmap)

    def _attach(self, attached: Mapping[str, Attached], pmap: Optional[PersistentMap[Any, Any]]) -> None:
        self._attached = attached
        self._wiring = object()
        if pmap is not None:
            pmap._wiring = object()

    def indexes(self) -> list[str]:
        """The names of the attached indexes, sorted."""
        return sorted(self._attached)

    def is_index(self) -> bool:
        """Whether this map is an index of another one."""
        return self._index_attached_to is not None

    def rebuild_index(self, txn: Transaction, name: str) -> tuple[int, int]:
        """Delete the entries of an index and write them again; returns both numbers.

        Raises `DuplicateKey` if two records have one index key, `NullValueConstraint`, `KeyError` for another name.
        """
        if name not in self._attached:
            raise KeyError(f"{self!r} has no index {name!r}, it has {self.indexes()}")
        return self._rebuild(txn, [name])

    def rebuild_indexes(self, txn: Transaction) -> tuple[int, int]:
        """Call `rebuild_index` for every index; returns the sums."""
        return self._rebuild(txn, self._attached)

    def _rebuild(self, txn: Transaction, names: Iterable[str]) -> tuple[int, int]:
        table, built = self._bound(txn)
        results = [
            # One that was built on the way here is not built twice.
            built[bound.storage.name] if bound.storage.name in built else table._rebuild(bound)
            for bound in table._indexes
            if bound.storage.name in names
        ]
        return sum(deleted for deleted, _ in results), sum(written for _, written in results)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, slot {self._slot}>"


def _beginning(table: Table[Any, Any], prefix: Any) -> Selection[Any, Any]:
    """The records whose key begins with *prefix*, as in zlmdb 26: the last text may be the beginning of a text."""
    codec = table._storage.key
    if isinstance(prefix, (str, bytes)):
        return table.select(startswith=prefix)
    if not isinstance(codec, TupleKey):
        return table.select(prefix, through=prefix)
    parts: tuple[Any, ...] = prefix if is_a(prefix, tuple) else (prefix,)
    if any(part is None for part in parts):
        codec.refuse(prefix, "None before a given part")
    if len(parts) == len(codec.parts) and isinstance(parts[-1], (str, bytes)):
        return table.select(prefix=parts[:-1], startswith=parts[-1])
    return table.select(prefix=parts)


def _absent(error: errors.EncodeError, default: D) -> D:
    """*default* for a key without bytes, which no record has, but programs of zlmdb 26 look up. Else raise *error*."""
    if error.size != 0:
        raise error
    return default
