"""A range of the records of a table, and how it is read: what a selection is before anything is asked of it."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Generic, NoReturn, Optional, TypeVar

from .. import errors
from ..handlers import let_through
from ..query.projection import KEYS, PAIRS, VALUES
from ..store.blocks import COUNTS_REFERENCES
from ..store.ranges import TOP, keys_from, pairs_from, seek
from .missing import missing, refuse_position
from .scan import Scan
from .storage import Storage

if TYPE_CHECKING:
    from ..query.scanned import Scanned
    from ..query.translated import Give
    from .table import Table

K = TypeVar("K")
V = TypeVar("V")

CHUNK = 1000
"""Records that are deleted between two looks at the cursor, or counted at once."""


def pairs_of(storage: Storage[Any, Any], scan: Scan) -> Iterator[Any]:
    """The pairs of key and value that *scan* has ahead."""
    keys, values = scan.both()
    return zip(map(storage.load_key, keys), map(storage.load, values))


def _keys(storage: Storage[Any, Any], scan: Scan) -> Iterator[Any]:
    return map(storage.load_key, scan.keys())


def _values(storage: Storage[Any, Any], scan: Scan) -> Iterator[Any]:
    return map(storage.load, scan.values())


FAST = {id(PAIRS): pairs_of, id(KEYS): _keys, id(VALUES): _values}
"""What is read without asking anything, by what is wanted."""


def count_in(cursor: Any, lower: bytes, upper: bytes, most: Optional[int] = None, *, views: bool = False) -> int:
    """The number of keys with ``lower <= key < upper``, counted up to *most*.

    Blocks are counted to the end of the range by C; they grow, so that little is read beyond a short range.
    """
    if not seek(cursor, lower, upper):
        return 0
    found, rows = 0, keys_from(cursor, b"", TOP, False, views)
    if most is not None:
        rows = islice(rows, most)
    while block := list(islice(rows, min(CHUNK, 8 + found // 2))):
        if block[-1] >= upper:
            return found + bisect_left(block, upper)
        found += len(block)
    return found


def few_of(rows: Iterator[Any], limit: int) -> Iterator[Any]:
    """The first of *rows*, which are not read any more afterwards."""
    return islice(rows, limit) if COUNTS_REFERENCES else _few_closed(rows, limit)


def _few_closed(rows: Any, limit: int) -> Iterator[Any]:
    try:
        yield from islice(rows, limit)
    finally:  # else its cursor would be open until a collection, and writes take longer
        rows.close()


class KeyRange(Generic[K, V]):
    """The records of a table whose engine keys are at least *_lower* and below *_upper*, with *_reverse* backwards.

    What makes one sets the slots itself, which saves a call for each selection.
    """

    __slots__ = ("_limit", "_lower", "_reverse", "_table", "_upper")

    _table: Table[K, V]
    _lower: bytes
    _upper: bytes
    _reverse: bool
    _limit: Optional[int]

    _plain: ClassVar[bool] = True
    """Whether it is a range of the table's own keys."""

    def __copy__(self) -> Any:
        selection: Any = self  # every range is one
        return selection._with()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._table.__reduce_ex__(protocol)  # which refuses it

    def _range(self) -> tuple[Table[K, V], bytes, bytes, bool, Optional[int]]:
        """The arguments that make a selection of the same range."""
        return self._table, self._lower, self._upper, self._reverse, self._limit

    def _at_end(self, reverse: bool, give: Give = PAIRS) -> Any:
        """*give*, pairs, keys or values, of the first record of the range, with *reverse* of the last one.

        Whatever the limit; None if there is none.
        """
        key: Any = None
        data: Any = None
        try:
            cursor, key, data = self._edge(reverse)
            if not COUNTS_REFERENCES:
                cursor.close()
            if key is None:
                return None
            storage = self._table._storage
            if give is VALUES:
                return storage.load(data)
            return storage.load_key(key) if give is KEYS else (storage.load_key(key), storage.load(data))
        except Exception as error:
            self._failed(error, key, data)

    def _edge(self, reverse: bool) -> tuple[Any, Any, Any]:
        """A cursor at the first record of the range, with *reverse* the last one, and the engine's key and value of it.

        The key is None when the range is empty.
        """
        table, lower, plain = self._table, self._lower, self._plain
        cursor = table._raw.cursor(table._db) if plain else self._cursor()
        if reverse:
            found = seek(cursor, lower, self._upper, reverse)
        else:
            found = cursor.set_range(lower) if lower else cursor.first()
        if found:
            entry = cursor.key()
            if type(entry) is not bytes:  # a memoryview
                entry = bytes(entry)
            if lower <= entry < self._upper:
                return (cursor, entry, cursor.value()) if plain else self._owner(cursor, entry)
        return cursor, None, None

    def _owner(self, cursor: Any, entry: bytes) -> tuple[Any, bytes, Any]:
        """As `_edge`, of an index whose *entry* the cursor is at."""
        raise NotImplementedError

    def _is_key(self, key: Any) -> bool:
        try:
            self._table._storage.encode_key(key)
        except errors.EncodeError:
            return False
        return True

    def _within(self, key: K) -> V:
        """The value of *key*, one of the range."""
        try:
            encoded = self._table._storage.encode_key(key)
        except errors.EncodeError as error:
            refuse_position(key, error)
            raise
        if not self._lower <= encoded < self._upper:
            raise missing(key)
        return self._table[key]

    def _is_any(self) -> bool:
        lower, upper = self._lower, self._upper
        if lower >= upper:
            return False
        cursor = self._cursor()
        found: bool = seek(cursor, lower, upper) and cursor.key() < upper
        cursor.close()
        return found

    def _counted(self, most: Optional[int]) -> int:
        """The number of records of the range, counted up to *most*."""
        if self._is_whole():
            entries = self._entries()
            return entries if most is None else min(entries, most)
        cursor = None
        try:
            cursor = self._cursor()
            return count_in(cursor, self._lower, self._upper, most, views=self._table._txn.buffers)
        except Exception as error:
            errors.raise_as(self._table._txn._translate(error, table=self._table._name), error)
        finally:
            if cursor is not None:
                cursor.close()

    def _is_all(self) -> bool:
        """Whether the range has all keys of the table."""
        storage = self._table._storage
        return self._lower == storage.lower and self._upper == storage.upper

    def _is_whole(self, storage: Optional[Storage[Any, Any]] = None) -> bool:
        """Whether these are all records of a keyspace that holds nothing else."""
        storage = self._table._storage if storage is None else storage
        return storage.alone and self._lower == storage.lower and self._upper == storage.upper

    def _entries(self) -> int:
        return self._table._entries()

    def _cursor(self) -> Any:
        return self._table._cursor()

    # -- the loop -------------------------------------------------------------------------------------------------

    def _read(self, kind: Callable[[Storage[Any, Any], Scan], Iterator[Any]]) -> Iterator[Any]:
        """What *kind* gives of each record: in one loop of C, until something is written to the keyspace."""
        table = self._table
        storage, txn = table._storage, table._txn
        load_key, load = storage.load_key, storage.load
        scan: Optional[Scan] = None
        raw: Any = None
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
                raw = table._raw
                cursor, key, data = self._edge(self._reverse)
            if key is not None:
                yield (
                    load(data) if kind is _values else load_key(key) if kind is _keys else (load_key(key), load(data))
                )
            elif scan is None or not scan.paused:
                return
            key = data = None
            if scan is None:
                if table._raw is not raw:  # the transaction has ended
                    table._cursor()  # raises
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
                    load(data) if kind is _values else load_key(key) if kind is _keys else (load_key(key), load(data))
                )
        except Exception as error:
            self._loop_failed(error, key, data, scan)
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
        if key is not None:  # else it was before the first record, or at the last one
            decoded = table._storage.decode_key(key)
            if data is not None:
                table._storage.decode_value(data, decoded)
        raise error

    def _loop_failed(self, error: Exception, key: Any, data: Any, scan: Optional[Scanned]) -> NoReturn:
        """As `_failed`, where nothing but codecs is called."""
        try:
            self._failed(error, key, data, scan)
        except struct.error as same:  # the record decodes that the engine is at: it is of another key
            name = self._table._name
            raise errors.DecodeError(f"table {name!r}: a key is damaged: {same}", table=name) from same

    def _described(self) -> str:
        """What is read where no index is, for people."""
        storage = self._table._storage
        backwards = ", backwards" if self._reverse else ""
        if self._is_all():
            return f"all records of {storage.name}{backwards}"
        return f"a range of the keys of {storage.name}{backwards}"

    # -- the engine's records, while nothing is written to the keyspace --------------------------------------------

    def _engine_rows(self, rows_from: Callable[..., Iterator[Any]] = pairs_from) -> Iterator[Any]:
        """The engine's rows of the range, whatever the limit: pairs of key and value, or what *rows_from* gives."""
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
        """The first of the engine's rows, at most *most*."""
        rows: Any = self._engine_rows(rows_from)
        found: list[Any] = list(islice(rows, most))
        rows.close()
        return found

    def _record_keys(self, most: int) -> list[bytes]:
        """The engine's keys of the first records of the range, at most *most*."""
        return self._first(keys_from, most)

    def _delete_range(self) -> int:
        """Delete the records of the range, at most the limit; how many there were."""
        table = self._table
        if self._limit is None and self._plain and table._plain and not table._storage.followers and self._is_whole():
            deleted = self._entries()
            table.truncate()
            return deleted
        from .compiled.selected import remove_all  # late: few programs delete many records

        deleted = 0
        while True:
            most = CHUNK if self._limit is None else min(CHUNK, self._limit - deleted)
            chunk = self._record_keys(most)
            if not chunk:
                return deleted
            table._check_write()
            removed = remove_all(table, chunk, type(table)._remove)
            if removed == 0:
                self._not_there(chunk[0])
            deleted += removed

    def _not_there(self, key: bytes) -> NoReturn:
        """Raise for the engine's *key* of a record that was read just now, and could not be deleted."""
        raise errors.DecodeError(f"table {self._table._name!r}: the record {key!r} is there and cannot be deleted")
