"""Many records, read lazily: what ``table.select(...)`` gives."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, Generic, NoReturn, Optional, TypeVar, Union

from .. import errors
from ..handlers import let_through
from ..query import Condition, Field, Filtered, Reads, filtered, preview, projection
from ..query.filtered import no_length
from ..query.scanned import Scanned
from ..store.blocks import COUNTS_REFERENCES
from ..store.ranges import TOP, keys_from, pairs_from, seek
from .scan import Scan
from .storage import Storage

if TYPE_CHECKING:
    from .table import Table

K = TypeVar("K")
V = TypeVar("V")

_CHUNK = 1000  # records that are deleted between two looks at the cursor, or counted at once


def _pairs(storage: Storage[Any, Any], scan: Scan) -> Iterator[Any]:
    keys, values = scan.both()
    return zip(map(storage.load_key, keys), map(storage.load, values))


def _keys(storage: Storage[Any, Any], scan: Scan) -> Iterator[Any]:
    return map(storage.load_key, scan.keys())


def _values(storage: Storage[Any, Any], scan: Scan) -> Iterator[Any]:
    return map(storage.load, scan.values())


def refuse_position(key: object, error: Exception) -> None:
    """Raise `TypeError` for a position or a slice in place of a key."""
    if isinstance(key, (int, slice)):
        raise TypeError(
            f"selection[{key!r}] looks up a key, and keys here are no numbers: write .first() or .last() for one "
            f"record, select(..., limit=10) or itertools.islice for some, list(selection) for all"
        ) from error


class Selection(Iterable[tuple[K, V]], Generic[K, V]):
    """Records of a table with keys in a range, in key order (backwards with *reverse*), at most *limit* of them.

    Nothing is read before the iteration, and each iteration reads afresh; it must happen inside the transaction, else
    `TransactionClosed`. O(log n) to start, O(1) a record.

    An iteration comes to its end whatever its body writes. It visits every record that was there when it began, once,
    as it is when its turn comes: also one that moves within an index meanwhile. It visits none that the body inserts,
    deletes, or takes out of the range.

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
        rows = self._read(_pairs)
        return rows if self._limit is None else islice(rows, self._limit)

    def keys(self) -> Reads[K]:
        """The keys only; the records are not read."""
        return Reads(lambda: islice(self._read(_keys), self._limit))

    def values(self) -> Reads[V]:
        """The values only; the keys are not decoded."""
        return Reads(lambda: islice(self._read(_values), self._limit))

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

        Raises `KeyError` for any other key, TypeError for a position where keys are no numbers.
        """
        try:
            encoded = self._table._storage.encode_key(key)
        except errors.EncodeError as error:
            refuse_position(key, error)
            raise
        if not self._lower <= encoded < self._upper:
            raise KeyError(key)
        return self._table[key]

    if not TYPE_CHECKING:  # checkers report it by themselves
        __len__ = no_length

    def first(self) -> Optional[tuple[K, V]]:
        """The first pair of key and value; None when the selection is empty."""
        return None if self._limit == 0 else self._at_end(self._reverse)

    def last(self) -> Optional[tuple[K, V]]:
        """The last pair of key and value; None when the selection is empty. O(log n), with a limit O(limit)."""
        if self._limit is None:
            return self._at_end(not self._reverse)
        pair = None
        for pair in self:  # noqa: B007
            pass
        return pair

    def _at_end(self, reverse: bool) -> Optional[tuple[K, V]]:
        """The first record of the range, with *reverse* the last one, whatever the limit."""
        key: Any = None
        data: Any = None
        try:
            cursor, key, data = self._edge(reverse)
            if not COUNTS_REFERENCES:
                cursor.close()
            if key is None:
                return None
            storage = self._table._storage
            return storage.load_key(key), storage.load(data)
        except Exception as error:
            self._failed(error, key, data)

    def _edge(self, reverse: bool) -> tuple[Any, Any, Any]:
        """A cursor at the first record of the range, with *reverse* the last one, and the engine's key and value of it.

        The key is None when the range is empty.
        """
        table, lower = self._table, self._lower
        cursor = table._cursor()
        if seek(cursor, lower, self._upper, reverse) if reverse or not lower else cursor.set_range(lower):
            key = cursor.key()
            if type(key) is not bytes:  # a memoryview
                key = bytes(key)
            if lower <= key < self._upper:
                return cursor, key, cursor.value()
        return cursor, None, None

    def count(self) -> int:
        """The number of records. O(1) for a whole table with a key space of its own, else it reads every key."""
        if self._is_whole():
            entries = self._entries()
            return entries if self._limit is None else min(entries, self._limit)
        found, cursor = 0, None
        try:
            # Blocks are counted to the end of the range by C; they grow, so that little is read beyond a short range.
            cursor, upper = self._cursor(), self._upper
            rows = keys_from(cursor, b"", TOP, False, self._table._txn.buffers)
            rows = islice(rows if seek(cursor, self._lower, upper) else (), self._limit)
            while block := list(islice(rows, min(_CHUNK, 8 + found // 2))):
                if block[-1] >= upper:
                    return found + bisect_left(block, upper)
                found += len(block)
            return found
        except Exception as error:
            errors.raise_as(self._table._txn._translate(error, table=self._table._name), error)
        finally:
            if cursor is not None:
                cursor.close()

    def __bool__(self) -> bool:
        try:
            return self._limit != 0 and self._is_any()
        except Exception as error:
            self._failed(error, None, None)

    def _is_any(self) -> bool:
        lower, upper = self._lower, self._upper
        if lower >= upper:
            return False
        cursor = self._cursor()
        found: bool = seek(cursor, lower, upper) and cursor.key() < upper
        cursor.close()
        return found

    def delete(self) -> int:
        """Delete the records, index entries too; the number of records deleted."""
        table = self._table
        deleted = 0
        while True:
            most = _CHUNK if self._limit is None else min(_CHUNK, self._limit - deleted)
            chunk = self._record_keys(most)
            if not chunk:
                return deleted
            removed = sum([table._remove(key) for key in chunk])
            if removed == 0:
                self._not_there(chunk[0])
            deleted += removed

    def _range(self) -> tuple[Table[K, V], bytes, bytes, bool, Optional[int]]:
        """The arguments that make an equal selection."""
        return self._table, self._lower, self._upper, self._reverse, self._limit

    def _only(self, key: K) -> Selection[K, V]:
        """The record of *key* alone, whether or not it is one of these."""
        lower = self._table._storage.encode_key(key)
        return Selection(self._table, lower, lower + b"\0")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._table._name!r}: [{preview(lambda: iter(self))}]>"

    # -- the loop -------------------------------------------------------------------------------------------------

    def _read(self, kind: Callable[[Storage[Any, Any], Scan], Iterator[Any]]) -> Iterator[Any]:
        """What *kind* gives of each record: in one loop of C, until something is written to the key space."""
        storage, txn = self._table._storage, self._table._txn
        load_key, load = storage.load_key, storage.load
        scan: Optional[Scan] = None
        scans: Any = None
        cursor: Any = None
        key: Any = None
        data: Any = None
        try:
            # The first record comes by itself: many want no more, and a scan takes time to set up.
            if txn._write:
                scan = self._scan()
                if scan.any and not scan.paused:
                    key, data = scan.current()
            else:
                scans = txn._scans
                if scans is None:
                    scans = txn._open_scans()
                cursor, key, data = self._edge(self._reverse)
            if key is not None:
                yield (
                    (load_key(key), load(data)) if kind is _pairs else load(data) if kind is _values else load_key(key)
                )
            elif scan is None or not scan.paused:
                return
            key = data = None
            if scan is None:
                scans.check()
                scan = self._scan(cursor)
            try:
                if scan.step():
                    yield from kind(storage, scan)
                    key, data = scan.current()
                    if key is not None:
                        raise StopIteration  # from a decoder, which must not look like the end of the records
                return
            except Exception as error:
                if not scan.is_paused(error):
                    raise
            for key, data in scan.rest():
                yield (
                    (load_key(key), load(data)) if kind is _pairs else load(data) if kind is _values else load_key(key)
                )
        except Exception as error:
            self._failed(error, key, data, scan)
        finally:
            if scan is not None:
                scan.close()
            elif cursor is not None and not COUNTS_REFERENCES:
                cursor.close()

    def _scan(self, cursor: Any = None) -> Scan:
        """One iteration over the records of the range, whatever the limit; from where *cursor* is, if there is one."""
        table = self._table
        return Scan(table, table._storage.space, None, self._lower, self._upper, self._reverse, cursor)

    def _failed(self, error: Exception, key: Any, data: Any, scan: Optional[Scanned] = None) -> NoReturn:
        """Raise what *error* means, the engine's failure or bytes that do not decode.

        *key* and *data* are those of the record in the engine; where they are not known it is the one that *scan* is
        at.
        """
        let_through(error)
        table = self._table
        ours = table._txn._translate(error, table=table._name)
        if isinstance(ours, (errors.Error, MemoryError)):
            errors.raise_as(ours, error)
        if key is None and scan is not None and scan.any:
            key, data = scan.current()
        if key is None:  # before the first record
            raise error
        decoded = table._storage.decode_key(key)
        if data is not None:
            table._storage.decode_value(data, decoded)
        raise error

    # -- the engine's records, while nothing is written to the key space --------------------------------------------

    def _engine_rows(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's pairs of key and value of the range, whatever the limit."""
        return self._engine(pairs_from)

    def _engine(self, rows_from: Callable[..., Iterator[Any]]) -> Iterator[Any]:
        table, lower, upper, reverse = self._table, self._lower, self._upper, self._reverse
        cursor: Any = None
        try:
            cursor = self._cursor()
            if seek(cursor, lower, upper, reverse):
                yield from rows_from(cursor, lower, upper, reverse, table._txn.buffers)
        except Exception as error:
            errors.raise_as(table._txn._translate(error, table=table._name), error)
        finally:
            if cursor is not None:
                cursor.close()

    def _first(self, rows_from: Callable[..., Iterator[Any]], most: int) -> list[Any]:
        """The first of the engine's rows, at most so many."""
        rows: Any = self._engine(rows_from)
        found: list[Any] = list(islice(rows, most))
        rows.close()
        return found

    def _record_keys(self, most: int) -> list[bytes]:
        """The engine's keys of the first records of the range, at most so many."""
        return self._first(keys_from, most)

    def _not_there(self, key: bytes) -> NoReturn:
        """Raise for the engine's *key* of a record that was read just now, and could not be deleted."""
        raise errors.DecodeError(f"table {self._table._name!r}: the record {key!r} is there and cannot be deleted")

    def _cursor(self) -> Any:
        return self._table._cursor()

    def _entries(self) -> int:
        return self._table._entries()

    def _is_whole(self, storage: Optional[Storage[Any, Any]] = None) -> bool:
        """Whether these are all records of a key space that holds nothing else."""
        storage = storage or self._table._storage
        return storage.alone and self._lower == storage.lower and self._upper == storage.upper
