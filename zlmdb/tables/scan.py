"""One iteration over the records of a table: fast while nothing changes, and exact when something does.

It begins with iterators of the engine, which read without a Python function per record. Before a write to the same
keyspace, and when a savepoint begins or ends, the scan is paused: it notes its position, closes the engine's cursors,
and continues in blocks of keys, looking up each record when its turn comes. A journal notes the writes meanwhile, so
that the scan does not visit records inserted since it began, or visit records again that moved ahead in an index. The
journal takes memory only for inserted and moved records, and none while no scan runs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import chain, islice, repeat, takewhile, tee
from operator import is_not, itemgetter
from typing import TYPE_CHECKING, Any, Optional

from .. import errors
from ..handlers import let_through
from ..store.blocks import COUNTS_REFERENCES
from ..store.ranges import keys_from, pairs_from, seek, seek_behind, values_from
from ..store.scans import Written
from .indexstorage import BoundIndex

if TYPE_CHECKING:
    from .table import Table

_FIRST_BLOCK, _BLOCK = 8, 1000

_is_there: Callable[[Any], bool] = partial(is_not, None)
_value_of = itemgetter(1)


def while_open(table: Table[Any, Any], read: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """What *read* gives of *table*, which it is asked for when the first row is; only in its transaction.

    The transaction need not know of it: at its end it gives the table something else to read with.
    """
    return _while_aimed(table, table._raw, read)


def _while_aimed(table: Table[Any, Any], raw: object, read: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    for row in read():
        if table._raw is not raw:
            table._cursor().close()  # raises, unless a savepoint began or ended
            raw = table._raw
        yield row


def rows_within(
    table: Table[Any, Any], handle: Any, within: tuple[bytes, bytes], reverse: bool = False,
    rows_from: Callable[..., Iterator[Any]] = pairs_from,
) -> Generator[Any, None, None]:  # fmt: skip
    """The engine's rows of *table*, or of the index *handle*, in a range, while nothing is written there.

    They are pairs, or what *rows_from* gives. The cursor is closed at their end, or with them.
    """
    cursor = table._cursor(handle)
    try:
        if seek(cursor, *within, reverse):
            yield from rows_from(cursor, *within, reverse, table._txn.buffers)
    finally:
        cursor.close()


def first_within(
    table: Table[Any, Any], handle: Any, within: tuple[bytes, bytes], reverse: bool, most: int,
    rows_from: Callable[..., Iterator[Any]] = pairs_from,
) -> list[Any]:  # fmt: skip
    """The first of `rows_within`, at most *most*."""
    with closing(rows_within(table, handle, within, reverse, rows_from)) as rows:
        return list(islice(rows, most))


def or_else(blocks: Iterator[Any], general: Callable[[], Iterator[Any]], *, flat: bool) -> Iterator[Any]:
    """What is in *blocks* if *flat*, else these. Where that raises, *general* gives the rest, or tells what it is."""
    return chain.from_iterable(_parts(blocks if flat else zip(blocks), general))


def _parts(blocks: Iterator[Any], general: Callable[[], Iterator[Any]]) -> Iterator[Iterable[Any]]:
    given = 0
    while True:
        try:
            block = next(blocks, None)
        except Exception as error:
            let_through(error)
            break
        if block is None:
            return
        yield block
        given += len(block)
    yield islice(general(), given, None)


class Scan:
    """The records of *table* with ``lower <= key < upper`` in the engine, in order, backwards with *reverse*.

    It begins at the position of *cursor*, if one is given. The caller uses one of `keys`, `values`, `pairs` and `both`,
    once, if there are *any*; it begins with the `current` record. If it raises and `is_paused`, the remaining records
    are those of `rest`. The caller calls `close` at the end.
    """

    __slots__ = (
        "_all", "_keys", "_lower", "_mark", "_position", "_reverse", "_scans", "_skipped", "_table", "_upper",
        "_values", "any", "paused", "space",
    )  # fmt: skip

    def __init__(
        self, table: Table[Any, Any], space: Optional[bytes], handle: Any, lower: bytes, upper: bytes, reverse: bool,
        cursor: Any = None,
    ) -> None:  # fmt: skip
        self._table, self.space = table, space
        self._lower, self._upper, self._reverse = lower, upper, reverse
        self.paused = False
        self._position: Optional[bytes] = None
        self._values: Any = None
        self._all: Optional[list[Any]] = None
        txn = table._txn
        self.any = True
        if cursor is None:
            cursor = table._cursor(handle)
            self.any = seek(cursor, lower, upper, reverse)
        self._keys = cursor
        scans = self._scans = txn._open_scans() if txn._scans is None else txn._scans
        scans.running.add(self)
        if txn._write:
            self._skipped: set[bytes] = set()  # what must not be visited
            self._mark = scans.watch(space, txn)
            if self.any and space in scans.streams:  # what is written just now is in no journal
                self._all = list(self._block(cursor))
                self.pause()

    # -- its life ---------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the scan."""
        scans = self._scans
        scans.running.discard(self)
        if not COUNTS_REFERENCES:
            self._close_cursors()
        if scans and scans.ended is None:
            scans.unwatch(self.space, self._table._txn)

    def pause(self) -> None:
        """Prepare for a write: `rest` reads the remaining records."""
        if not self.paused:
            self.paused = True
            self._position = bytes(self._keys.key())
            self._close_cursors()

    def _close_cursors(self) -> None:
        """Close the engine's cursors: LMDB looks at every open one whenever something is written."""
        self._keys.close()
        if self._values is not None:
            self._values.close()

    def is_paused(self, error: Exception) -> bool:
        """Whether *error* came after the scan was paused. Raises if the transaction has ended."""
        let_through(error)
        self._scans.check()
        return self.paused and isinstance(self._table._txn._translate(error), errors.TransactionClosed)

    # -- while nothing changes --------------------------------------------------------------------------------------

    def keys(self) -> Iterator[bytes]:
        """The engine's keys of the records."""
        return keys_from(self._keys, self._lower, self._upper, self._reverse, self._table._txn.buffers)

    def values(self) -> Iterator[Any]:
        """The stored bytes of the records."""
        return values_from(self._keys, self._lower, self._upper, self._reverse, self._table._txn.buffers)

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's pairs of key and value."""
        return pairs_from(self._keys, self._lower, self._upper, self._reverse, self._table._txn.buffers)

    def both(self) -> tuple[Iterator[bytes], Iterator[Any]]:
        """`keys`, and the values of the same records, for ``zip``: each by a cursor of its own."""
        keys, values = self.keys(), self._cursor()
        self._values = values
        values.set_range(bytes(self._keys.key()))  # PyPy has a buffer type of cffi's there
        rows = values.iterprev(False, True) if self._reverse else values.iternext(False, True)
        return keys, map(memoryview, rows) if self._table._txn.buffers else rows

    def step(self) -> bool:
        """Go to the next record; False if there is none."""
        return bool(self._keys.prev() if self._reverse else self._keys.next())

    def current(self) -> tuple[Optional[bytes], Any]:
        """The engine's key and value of the current record; (None, None) after the last one."""
        key = self._keys.key()
        if self._table._txn.buffers:
            key = bytes(key)
        if not key or (key < self._lower if self._reverse else key >= self._upper):
            return None, None
        return self._record(key)

    def _record(self, key: bytes) -> tuple[bytes, Any]:
        """The record at which the cursor stands, at *key*."""
        return key, self._keys.value()

    # -- when something has changed ---------------------------------------------------------------------------------

    def rest(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's remaining pairs of key and value, each read when its turn comes."""
        journal, skipped = self._scans.journal, self._skipped
        for key in self._ahead():
            if len(journal) != self._mark:
                self._catch_up()
            data = None if key in skipped else self._get(key)  # one that was deleted and put again is new
            if data is not None:
                yield key, data
                self._scans.check()

    def _get(self, key: bytes) -> Any:
        return self._table._get(key, None, self._table._db)

    def _ahead(self) -> Iterator[bytes]:
        """The remaining records, read in blocks: few at first, because the caller may stop."""
        size = _FIRST_BLOCK
        if self._all is not None:
            yield from self._chosen(self._all)
            return
        while True:
            self._catch_up()
            cursor = self._cursor()
            at, lower, upper, reverse = self._position, self._lower, self._upper, self._reverse
            found = seek(cursor, lower, upper, reverse) if at is None else seek_behind(cursor, at, reverse)
            block = list(islice(self._block(cursor), size)) if found else []
            cursor.close()
            if not block:
                return
            yield from self._chosen(block)
            size = min(2 * size, _BLOCK)

    def _block(self, cursor: Any) -> Iterator[Any]:
        return keys_from(cursor, self._lower, self._upper, self._reverse, self._table._txn.buffers)

    def _chosen(self, block: list[bytes]) -> Iterator[bytes]:
        """Those of *block* that are to be visited; the position is then after the block."""
        self._position = block[-1]
        return iter([key for key in block if key not in self._skipped] if self._skipped else block)

    def _catch_up(self) -> None:
        """Note what was inserted since the last block was read."""
        for written in self._news():
            if written.old is None and written.new is not None:
                self._skipped.add(written.new)

    def _news(self) -> Iterable[Written]:
        """The writes to the keyspace since the last call."""
        journal = self._scans.journal
        mark, self._mark = self._mark, len(journal)
        return [written for written in journal[mark:] if written.space == self.space]

    def _cursor(self) -> Any:
        return self._table._cursor()


class IndexScan(Scan):
    """The records of *table* in the order of the entries of *index* with ``lower <= entry < upper``."""

    __slots__ = ("_index", "_strays")

    def __init__(
        self, table: Table[Any, Any], lower: bytes, upper: bytes, reverse: bool, index: BoundIndex, cursor: Any = None
    ) -> None:  # fmt: skip
        self._index = index
        self._strays: dict[bytes, None] = {}  # not visited yet, and moved to where the scan has been
        super().__init__(table, index.storage.storage.space, index.handle, lower, upper, reverse, cursor)

    def keys(self) -> Iterator[bytes]:
        prefix = self._table._storage.prefix
        return map(prefix.__add__, self._primaries()) if prefix else self._primaries()

    def values(self) -> Iterator[Any]:
        return self._values_of(self.keys())

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        return zip(*self.both())

    def both(self) -> tuple[Iterator[bytes], Iterator[Any]]:
        keys, again = tee(self.keys())
        return keys, self._values_of(again)

    def _primaries(self) -> Iterator[bytes]:
        """The encoded primary keys, in the order of the entries."""
        tail = self._index.storage.tail
        if tail:
            return map(itemgetter(slice(tail, None)), super().keys())
        owners = super().values()
        return map(bytes, owners) if self._table._txn.buffers else owners

    def _values_of(self, keys: Iterator[bytes]) -> Iterator[Any]:
        """The stored bytes of the records *keys*, up to the first that does not exist, whose entry is left over."""
        table = self._table
        return takewhile(_is_there, map(table._get, keys, repeat(None), repeat(table._db)))

    def _record(self, key: bytes) -> tuple[bytes, Any]:
        primary = self._primary(key, self._keys.value())
        key = self._table._storage.prefix + primary
        data = self._get(key)
        if data is None:
            self._table._owned(primary, self._index.storage)  # raises
        return key, data

    def _primary(self, entry: bytes, owner: Any) -> bytes:
        tail = self._index.storage.tail
        return entry[tail:] if tail else bytes(owner)

    def rest(self) -> Iterator[tuple[bytes, Any]]:
        table, index = self._table, self._index
        prefix = table._storage.prefix
        for entry, primary in self._ahead():
            if primary in self._skipped:  # a savepoint that was undone has put it back into the block
                continue
            key = prefix + primary
            data = self._get(key)
            if entry is not None and self._is_entry(entry, primary):
                if data is None:
                    table._owned(primary, index.storage)  # raises
                yield key, data
                self._scans.check()
            elif data is not None and self._is_within(primary, data):  # it has moved within the range
                self._skipped.add(primary)
                yield key, data
                self._scans.check()

    def _is_entry(self, entry: bytes, primary: bytes) -> bool:
        """Whether *entry* is still an entry of the record *primary*."""
        owner = self._table._raw.get(entry, None, self._index.handle)
        return owner is not None and self._primary(entry, owner) == primary

    def _is_within(self, primary: bytes, data: Any) -> bool:
        storage = self._table._storage
        value = storage.decode_value(data, storage.key.decode(primary))
        return self._index.storage.entry_within(value, primary, self._lower, self._upper) is not None

    def _block(self, cursor: Any) -> Iterator[Any]:
        return pairs_from(cursor, self._lower, self._upper, self._reverse, self._table._txn.buffers)

    def _chosen(self, block: list[Any]) -> Iterator[Any]:
        """The entries of *block*, and the records that have moved behind them, with None."""
        self._position = block[-1][0]
        skipped = self._skipped
        found = [(entry, self._primary(entry, owner)) for entry, owner in block]
        return iter([pair for pair in found if pair[1] not in skipped] if skipped else found)

    def _ahead(self) -> Iterator[Any]:
        for pair in super()._ahead():
            yield from self._stray()
            yield pair
        yield from self._stray()
        self._catch_up()
        yield from self._stray()

    def _stray(self) -> Iterator[tuple[None, bytes]]:
        while self._strays:
            yield None, self._strays.popitem()[0]

    def _catch_up(self) -> None:
        """Note which records moved, as seen from the last entry that was read."""
        position, reverse, strays, skipped = self._position, self._reverse, self._strays, self._skipped
        first, end = self._index.storage.lower, self._index.storage.upper

        def is_ahead(entry: Optional[bytes]) -> bool:
            if entry is None or not self._lower <= entry < self._upper:
                return False
            return position is None or (entry < position if reverse else entry > position)

        for _, primary, old, new in self._news():
            if not any([one is not None and first <= one < end for one in (old, new)]):
                continue  # the entry stays, or it is one of another index in the same keyspace
            if primary in strays or (is_ahead(old) and primary not in skipped):  # not visited yet
                strays.pop(primary, None)
                if new is not None and not is_ahead(new):
                    strays[primary] = None
            elif is_ahead(new):
                skipped.add(primary)

    def _cursor(self) -> Any:
        return self._table._cursor(self._index.handle)
