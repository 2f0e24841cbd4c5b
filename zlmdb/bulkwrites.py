"""Many records, written by the engine's own loop: the records, and where there are indexes each of those, at once.

This is for pairs that are in a list already, so that nobody can tell when each of them is stored. In a table with
indexes they must lie in order between two records, or behind the last one, so that they are new. All else is left to
one statement for each pair, also what does not fit or an index refuses: those before it are stored then, and the error
is that of the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt
from typing import TYPE_CHECKING, Any, Optional

from .indexwrites import batch_of

if TYPE_CHECKING:
    from .table import Table

CHUNK = 250
"""Pairs that are written at once."""

Rows = Sequence[tuple[bytes, bytes]]


def put_rows(table: Table[Any, Any], items: Sequence[Any], *, append: bool, last: Optional[bytes]) -> int:
    """Store the leading pairs of *items* in a table without indexes as long as they fit; how many.

    Unless *last* is None their keys must ascend from there. *append*: nothing comes after them.
    """
    storage = table.storage
    if storage.rows is None:
        storage.rows = batch_of(storage, ())
    done, cursor = 0, table.cursor()
    while done < len(items):
        try:
            rows, _ = storage.rows(items[done : done + CHUNK])
        except Exception:
            break  # the statement says why
        if last is not None:
            keys = [last, *(key for key, _ in rows)]
            if not all(map(lt, keys, keys[1:])):
                break
            last = keys[-1]
        try:
            cursor.putmulti(rows, True, True, append)
        except BaseException as error:
            table.half_written(None, error)
            raise
        done += len(rows)
        table.txn.count(len(rows), 0)
    return done


def put_batches(table: Table[Any, Any], items: Sequence[Any], batch: Any, *, append: bool) -> int:
    """Store the leading pairs of *items* as long as that can be done; how many. *batch* is that of the table's class.

    With *append* they are to come after the last record of the table.
    """
    done = 0
    while done < len(items) and _put_batch(table, items[done : done + CHUNK], batch, append):
        done = min(done + CHUNK, len(items))
    return done


def _put_batch(table: Table[Any, Any], items: Sequence[Any], batch: Any, append: bool) -> bool:
    """Store all *items*, or nothing: then it is false."""
    try:
        rows, entries = batch(items)
    except Exception:
        return False  # the statement says why
    if not _in_a_gap(table, [key for key, _ in rows], append):
        return False
    try:
        if not _claimed(table, entries):
            return False
        table.cursor().putmulti(rows, True, True, False)
        for (index, handle), found in zip(table.indexes, entries):
            if not index.unique:
                table.cursor(handle).putmulti(found, True, True, False)
    except BaseException as error:
        table.half_written(None, error)
        raise
    table.txn.count(len(rows) + sum(map(len, entries)), 0)
    return True


def _in_a_gap(table: Table[Any, Any], keys: Sequence[bytes], append: bool) -> bool:
    """Whether *keys* ascend, and there is no record from the first to the last; with *append* none after them, too."""
    if not all(map(lt, keys, keys[1:])):
        return False
    cursor = table.cursor()
    try:
        if not cursor.set_range(keys[0]):
            return True
        following = bytes(cursor.key())
    except Exception as error:
        raise table.txn.translate(error, table=table.label) from error
    return following >= table.storage.upper or (not append and following > keys[-1])


def _claimed(table: Table[Any, Any], entries: Sequence[Rows]) -> bool:
    """Write the entries of the unique indexes, all or, when one of them is another record's, none."""
    claimed: list[tuple[Any, Rows]] = []
    for (index, handle), found in zip(table.indexes, entries):
        if index.unique:
            claimed.append((handle, found))
            if table.cursor(handle).putmulti(found, True, False, False)[1] != len(found):
                _withdraw(table, claimed)
                return False
    return True


def _withdraw(table: Table[Any, Any], claimed: Sequence[tuple[Any, Rows]]) -> None:
    """Delete the entries that are those of the new records: nothing else can have their keys as its value."""
    raw = table.txn.raw
    table.txn.changes += 1
    for handle, entries in claimed:
        for entry, owner in entries:
            if raw.get(entry, None, handle) == owner:
                raw.delete(entry, b"", handle)
