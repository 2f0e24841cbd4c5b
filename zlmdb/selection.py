"""Many records, read lazily: what ``table.select(...)`` gives."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Optional, TypeVar, Union

from . import errors
from .query import Condition, Field, Filtered, Reads, Records, filtered, preview, projection
from .storage import TOP, Storage

if TYPE_CHECKING:
    from .table import Table

K = TypeVar("K")
V = TypeVar("V")

_CHUNK = 1000  # records that are deleted between two looks at the cursor, or counted at once


class Selection(Iterable[tuple[K, V]], Generic[K, V]):
    """Records of a table with keys in a range, in key order (backwards with *reverse*), at most *limit* of them.

    Nothing is read before the iteration, and each iteration reads afresh; it must happen inside the transaction, else
    `TransactionClosed`. O(log n) to start, O(1) a record. An iteration sees what its own transaction writes ahead of
    it, and never a record twice unless that moved ahead; the current record may be deleted or replaced.

    Iterating gives pairs of key and value; `keys` reads no values, `values` decodes no keys.
    """

    __slots__ = ("_limit", "_lower", "_reverse", "_table", "_upper")

    def __init__(
        self, table: Table[K, V], lower: bytes, upper: bytes, reverse: bool = False, limit: Optional[int] = None
    ) -> None:  # fmt: skip
        if limit is not None and limit < 0:
            raise ValueError(f"limit={limit}: give the greatest number of records, 0 or more, or None for all")
        self._table = table
        self._lower = lower
        self._upper = upper
        self._reverse = reverse
        self._limit = limit

    # -- reading --------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return islice(self._pairs(), self._limit)

    def keys(self) -> Reads[K]:
        """The keys only; the records are not read."""
        return Reads(lambda: islice(self._keys(), self._limit))

    def values(self) -> Reads[V]:
        """The values only; the keys are not decoded."""
        return Reads(lambda: islice(self._values(), self._limit))

    def where(self, condition: Union[Condition, Field], /) -> Filtered[K, V]:
        """The records that match *condition*: ``where((F.age > 30) & (F.city == "Bonn"))``, see `F`.

        Every record of the range is read for it, until *limit* have matched; of FlatBuffers only the fields named.
        Raises TypeError at once for a field that the model class does not have, and for a value that is not of the
        field's type.
        """
        return filtered(self, condition)

    def fields(self, *names: str) -> Reads[Any]:
        """Tuples of the fields *names* only; of one name the bare values. ``"address.city"`` is a field of a field.

        Of FlatBuffers only these are read: ``numpy.fromiter(t.rows.select().fields("price"), float)``. Raises TypeError
        at once for a field that the model class does not have.
        """
        return projection(self, names)

    def __getitem__(self, key: K) -> V:
        """The value of *key*, one of the selection's `keys`; with them it makes ``dict(selection)`` work.

        Raises `KeyError` for any other key.
        """
        if not self._lower <= self._table.storage.encode_key(key) < self._upper:
            raise KeyError(key)
        return self._table[key]

    def first(self) -> Optional[tuple[K, V]]:
        """The first pair of key and value; None when the selection is empty."""
        return next(islice(self._pairs(), self._limit), None)

    def last(self) -> Optional[tuple[K, V]]:
        """The last pair of key and value; None when the selection is empty. O(log n), with a limit O(limit)."""
        if self._limit is None:
            return next(self._replace(not self._reverse)._pairs(), None)
        pair = None
        for pair in islice(self._pairs(), self._limit):  # noqa: B007
            pass
        return pair

    def count(self) -> int:
        """The number of records. O(1) for a whole table with a key space of its own, else it reads every key."""
        if self._is_whole():
            entries = self._entries()
            return entries if self._limit is None else min(entries, self._limit)
        # Nobody writes between two keys here, so that they come in blocks, of which only the last one is looked into;
        # blocks grow, so that little is read beyond the end of a short range.
        forward, upper, found = self._replace(False) if self._reverse else self, self._upper, 0
        try:
            keys = islice(forward._from(None, values=False), self._limit)
            while block := list(islice(keys, min(_CHUNK, 8 + found // 2))):
                if block[-1] >= upper:
                    return found + bisect_left(block, upper)
                found += len(block)
        except Exception as error:
            raise (ours := self._table.txn.translate(error, table=self._table.label)) from errors.cause(ours, error)
        return found

    def __bool__(self) -> bool:
        return next(islice(self.engine_keys(), self._limit), None) is not None

    def delete(self) -> int:
        """Delete the records, index entries too; the number of records deleted."""
        table = self._table
        deleted = 0
        while True:
            most = _CHUNK if self._limit is None else min(_CHUNK, self._limit - deleted)
            chunk = list(islice(self._primary_keys(), most))
            if not chunk:
                return deleted
            removed = sum([table.remove(key) for key in chunk])
            if removed == 0:
                self._not_there(chunk[0])
            deleted += removed

    def range(self) -> tuple[Table[K, V], bytes, bytes, bool, Optional[int]]:
        """The arguments that make an equal selection."""
        return self._table, self._lower, self._upper, self._reverse, self._limit

    def only(self, key: K) -> Selection[K, V]:
        """The record of *key* alone, whether or not it is one of these."""
        lower = self._table.storage.encode_key(key)
        return Selection(self._table, lower, lower + b"\0")

    def records(self, keyed: bool) -> Records:
        """The records of the range, whatever the limit, for a loop of `query`. *keyed*: it wants the keys."""
        whole = self._is_whole()
        # In a read transaction nothing changes behind which a loop would have to go on.
        keyed = keyed or not whole or self._table.txn.write
        end = "" if whole else "key < bound" if self._reverse else "key >= bound"
        bound = self._lower if self._reverse else self._upper
        return Records(partial(self._from, values=True, keys=keyed), keyed, end, bound)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._table.label!r}: [{preview(lambda: iter(self))}]>"

    # -- the loops: one flat loop each, as every call within costs a tenth of a record ---------------------------------

    def _pairs(self) -> Iterator[tuple[K, V]]:
        table, txn, lower, upper, reverse = self._table, self._table.txn, self._lower, self._upper, self._reverse
        load_key, load = table.storage.load_key, table.storage.load
        place: Any = None
        key: Any = None
        data: Any = None
        try:
            while True:
                seen = txn.changes
                for key, data in self._from(place, True):
                    if (key < lower) if reverse else (key >= upper):
                        return
                    yield load_key(key), load(data)
                    if txn.changes != seen:
                        place = key
                        break
                else:
                    return
        except Exception as error:
            self.failed(error, key, data)

    def _values(self) -> Iterator[V]:
        return self._all(values=True) if self._is_still() else self._some_values()

    def _some_values(self) -> Iterator[V]:
        table, txn, lower, upper, reverse = self._table, self._table.txn, self._lower, self._upper, self._reverse
        load = table.storage.load
        place: Any = None
        key: Any = None
        data: Any = None
        try:
            while True:
                seen = txn.changes
                for key, data in self._from(place, True):
                    if (key < lower) if reverse else (key >= upper):
                        return
                    yield load(data)
                    if txn.changes != seen:
                        place = key
                        break
                else:
                    return
        except Exception as error:
            self.failed(error, key, data)

    def _keys(self) -> Iterator[K]:
        return self._all(values=False) if self._is_still() else self._some_keys()

    def _some_keys(self) -> Iterator[K]:
        load_key = self._table.storage.load_key
        key = b""
        try:
            for key in self.engine_keys():
                yield load_key(key)
        except Exception as error:
            self.failed(error, key, None)

    def _is_still(self) -> bool:
        """Whether these are all records of a key space, and nothing but the end of the transaction can come between."""
        return not self._table.txn.write and self._is_whole()

    def _all(self, values: bool) -> Iterator[Any]:
        """The values, or else the keys, where `_is_still`: what is not asked for need not be read."""
        txn, storage = self._table.txn, self._table.storage
        load: Any = storage.load if values else storage.load_key
        row: Any = None
        try:
            seen = txn.changes
            for row in self._from(None, values, not values):
                yield load(row)
                if txn.changes != seen:
                    self._cursor()  # raises
        except Exception as error:
            self.failed(error, *((None, row) if values else (row, None)))

    def engine_keys(self) -> Iterator[bytes]:
        """The engine's keys of the whole selection, whatever its limit."""
        return self.engine_rows(values=False)

    _primary_keys = engine_keys

    def engine_rows(self, values: bool = True) -> Iterator[Any]:
        """The engine's keys, or with *values* its pairs, of the whole selection whatever its limit."""
        txn, lower, upper, reverse = self._table.txn, self._lower, self._upper, self._reverse
        key: Any = None
        try:
            while True:
                seen = txn.changes
                for row in self._from(key, values):
                    key = row[0] if values else row
                    if (key < lower) if reverse else (key >= upper):
                        return
                    yield row
                    if txn.changes != seen:
                        break
                else:
                    return
        except Exception as error:
            raise (ours := txn.translate(error, table=self._table.label)) from errors.cause(ours, error)

    def _from(self, key: Optional[bytes], values: bool, keys: bool = True) -> Any:
        """The engine's records from the start of the selection, or from behind *key*, in its direction."""
        lower, upper, reverse = self._lower, self._upper, self._reverse
        if lower >= upper:
            return ()
        cursor = self._cursor()
        if reverse:
            found = self._seek_before(cursor, upper if key is None else key)
        else:
            found = cursor.set_range(lower if key is None else key) if lower or key else cursor.first()
            if found and key is not None and cursor.key() == key:
                found = cursor.next()
        if not found:
            return ()
        rows = cursor.iterprev(keys, values) if reverse else cursor.iternext(keys, values)
        return _copied(rows, keys, values) if self._table.txn.buffers else rows

    @staticmethod
    def _seek_before(cursor: Any, key: bytes) -> bool:
        if key is TOP or not cursor.set_range(key):
            return bool(cursor.last())
        return bool(cursor.prev())

    def _not_there(self, key: bytes) -> NoReturn:
        """Raise for the engine's *key* of a record that was read just now, and could not be deleted."""
        raise errors.DecodeError(f"table {self._table.label!r}: the record {key!r} is there and cannot be deleted")

    def _cursor(self) -> Any:
        return self._table.cursor()

    def _entries(self) -> int:
        return self._table.entries()

    def _is_whole(self, storage: Optional[Storage[Any, Any]] = None) -> bool:
        """Whether these are all records of a key space that holds nothing else."""
        storage = storage or self._table.storage
        return storage.alone and self._lower == storage.lower and self._upper == storage.upper

    def _replace(self, reverse: bool) -> Selection[K, V]:
        return type(self)(self._table, self._lower, self._upper, reverse, self._limit)

    def key_of(self, data: Any) -> bytes:
        """The engine's key of a record that has the bytes *data*: for an error, where a loop had no need of keys."""
        return next((key for key, other in self.records(True).rows(None) if other == data), b"")

    def failed(self, error: Exception, key: Any, data: Any) -> NoReturn:
        """Raise what *error* means: the engine's failure, or bytes that do not decode."""
        table = self._table
        ours = table.txn.translate(error, table=table.label)
        if isinstance(ours, (errors.Error, MemoryError)):
            raise ours from errors.cause(ours, error)
        if key is None and data is not None:
            key = self.key_of(data)
        if key is None:  # before the first record
            raise error
        decoded = table.storage.decode_key(key)
        if data is not None:
            table.storage.decode_value(data, decoded)
        raise error


def _copied(rows: Iterator[Any], keys: bool, values: bool) -> Iterator[Any]:
    """With memoryviews the keys are copied: bounds compare as bytes, and keys outlive the transaction."""
    if keys and values:
        return ((bytes(key), memoryview(data)) for key, data in rows)  # PyPy has a buffer type of cffi's here
    return (bytes(key) for key in rows) if keys else (memoryview(data) for data in rows)
