"""Writes many records by the engine's own loop: the records, and the entries of each index, at once.

This needs pairs that are in a list already, so that nobody can see when each of them is stored. In a table with indexes
they must lie in order between two records, or after the last one, so that they are new. All other cases use one
statement for each pair, also pairs that do not fit or that an index refuses: then the pairs before them are stored, and
the error is that of the statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import lt
from typing import TYPE_CHECKING, Any, Optional

from ..handlers import let_through
from ..store.access import NOBODY
from ..store.ranges import keys_from
from .compiled.indexed import batch_of
from .compiled.points import stream_of
from .storage import Pairs, Storage

if TYPE_CHECKING:
    from .table import Table

CHUNK = 250
"""Pairs that are written at once."""


def put_all(table: Table[Any, Any], items: Iterable[tuple[Any, Any]], *, append: bool) -> int:
    """Store all *items*, for `Table.put_many`; returns their number."""
    if table._plain and not (table._indexes or table._storage.followers or table._watched):
        # A prefixed table shares its keyspace: only the engine's greatest prefix could be appended to.
        last, append = (_last_key(table), not table._storage.prefix) if append else (None, False)
        return _put_stream(table, items, append, last)
    done = _put_batches(table, items, append)
    return done + _put_each(table, islice(items, done, None), _last_key(table) if append else None)


def _put_each(table: Table[Any, Any], items: Iterator[Any], last: Optional[bytes]) -> int:
    """Store pairs, each by a statement of its own; with *last* the keys must ascend from there."""
    done = 0
    for key, value in items if last is None else _ascending(table._storage, items, last):
        table[key] = value
        done += 1
    return done


def _is_read(table: Table[Any, Any]) -> bool:
    """Whether a scan runs, which an encoder has begun, say: it has to be paused, and told of each record."""
    scans = table._txn._scans
    return scans is not None and (table._watched or scans.runs(table._storage.spaces))


def _last_key(table: Table[Any, Any]) -> bytes:
    """The engine's key of the last record, or no bytes."""
    return next(iter(table.select(reverse=True)._first(keys_from, 1)), b"")


def _ascending(storage: Storage[Any, Any], items: Iterable[Any], last: bytes) -> Iterator[Any]:
    for key, value in items:
        encoded = storage.encode_key(key)
        if encoded <= last:
            storage.not_ascending(key, last)
        last = encoded
        yield key, value


# -- without indexes ---------------------------------------------------------------------------------------------------


def _put_stream(table: Table[Any, Any], items: Iterable[Any], append: bool, last: Optional[bytes]) -> int:
    """Store pairs; with *last* the keys must ascend from there."""
    done = 0
    if isinstance(items, (list, tuple)):
        done = _put_rows(table, items, append, last)
        if done == len(items):
            return done
        last = table._storage.encode_key(items[done - 1][0]) if done and last is not None else last
        if _is_read(table):
            return done + _put_each(table, islice(items, done, None), last)
    return done + _put_one_by_one(table, islice(items, done, None), append, last)


def put_rows(table: Table[Any, Any], handle: Any, rows: Any, append: bool = False, *, overwrite: bool = True) -> int:
    """Store *rows* by LMDB's own loop, in the table or the index *handle*; how many were stored."""
    cursor = table._cursor(handle)
    try:
        stored: int = cursor.putmulti(rows, True, overwrite, append)[1]
    finally:
        cursor.close()
    return stored


def _put_one_by_one(table: Table[Any, Any], items: Iterable[Any], append: bool, last: Optional[bytes]) -> int:
    storage = table._storage
    stream = storage.generated.stream
    if stream is None:
        stream = storage.generated.stream = stream_of(storage, storage.not_ascending)
    rows, progress = stream(items, last)
    try:
        with table._txn._open_scans().stream(storage.space):
            put_rows(table, None, rows, append)
    except Exception as error:
        table._write_failed(progress()[1], error)
    finally:
        table._txn._count(progress()[0], 0)
    return progress()[0]


def _put_rows(table: Table[Any, Any], items: Sequence[Any], append: bool, last: Optional[bytes]) -> int:
    """Store the leading pairs of *items* as long as they fit; returns their number.

    Unless *last* is None their keys must ascend from there. *append*: nothing comes after them.
    """
    batch = table._storage.generated.batch
    if batch is None:
        batch = table._storage.generated.batch = batch_of(table._storage, ())
    done = 0
    while done < len(items):
        try:
            rows, _ = batch(items[done : done + CHUNK])
        except Exception as error:
            let_through(error)
            break  # the statement says why
        if _is_read(table):
            break
        if last is not None:
            keys = [last, *(key for key, _ in rows)]
            if not all(map(lt, keys, keys[1:])):
                break
            last = keys[-1]
        try:
            put_rows(table, None, rows, append)
        except BaseException as error:
            table._half_written(None, error)
            raise
        done += len(rows)
        table._txn._count(len(rows), 0)
    return done


# -- with indexes ------------------------------------------------------------------------------------------------------


def _put_batches(table: Table[Any, Any], items: Iterable[Any], append: bool) -> int:
    """Store the leading pairs of *items* as long as possible; returns their number.

    With *append* they must come after the last record of the table.
    """
    batch, done = table._batch, 0
    if batch is None or table._writer is NOBODY or table._watched or not isinstance(items, (list, tuple)):
        return 0
    while done < len(items) and _put_batch(table, items[done : done + CHUNK], batch, append):
        done = min(done + CHUNK, len(items))
    return done


def _put_batch(table: Table[Any, Any], items: Sequence[Any], batch: Any, append: bool) -> bool:
    """Store all *items*, or none and return False."""
    try:
        rows, entries = batch(items)
    except Exception as error:
        let_through(error)
        return False  # the statement says why
    if _is_read(table) or not _in_a_gap(table, [key for key, _ in rows], append):
        return False
    try:
        if not _claimed(table, entries):
            return False
        put_rows(table, None, rows)
        for (index, handle), found in zip(table._indexes, entries):
            if not index.unique:
                put_rows(table, handle, found)
    except BaseException as error:
        table._half_written(None, error)
        raise
    table._txn._count(len(rows) + sum(map(len, entries)), 0)
    return True


def _in_a_gap(table: Table[Any, Any], keys: Sequence[bytes], append: bool) -> bool:
    """Whether *keys* ascend without a record from the first to the last; with *append* also none after them."""
    if not all(map(lt, keys, keys[1:])):
        return False
    cursor = table._cursor()
    try:
        if not cursor.set_range(keys[0]):
            return True
        found = bytes(cursor.key())
    except Exception as error:
        table._txn._fail(error, table=table._name)
    finally:
        cursor.close()
    return found >= table._storage.upper or (not append and found > keys[-1])


def _claimed(table: Table[Any, Any], entries: Sequence[Pairs]) -> bool:
    """Write the entries of the unique indexes; none if one of them belongs to another record."""
    claimed: list[tuple[Any, Pairs]] = []
    for (index, handle), found in zip(table._indexes, entries):
        if index.unique:
            claimed.append((handle, found))
            if put_rows(table, handle, found, overwrite=False) != len(found):
                _withdraw(table, claimed)
                return False
    return True


def _withdraw(table: Table[Any, Any], claimed: Sequence[tuple[Any, Pairs]]) -> None:
    """Delete the entries of the new records: no others can have their keys as value."""
    raw = table._txn._engine_txn
    for handle, entries in claimed:
        for entry, owner in entries:
            if raw.get(entry, None, handle) == owner:
                raw.delete(entry, b"", handle)
