"""Ranges of keys in the engine: their bounds, iteration over them, and deletion.

All functions that read use iterators of the engine and of `itertools`, so no Python function is called per record.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any

from ..keys.base import TOP as TOP
from ..keys.base import after as after

_CHUNK = 1000  # records that are deleted at once
_value_of = itemgetter(1)


def seek(cursor: Any, lower: bytes, upper: bytes, reverse: bool = False) -> bool:
    """Go to the first record with ``lower <= key < upper``, with *reverse* to the last one.

    False if there is no record on that side; otherwise the record may lie outside the range.
    """
    if lower >= upper:
        return False
    if not reverse:
        return bool(cursor.set_range(lower) if lower else cursor.first())
    if upper is TOP or not cursor.set_range(upper):
        return bool(cursor.last())
    return bool(cursor.prev())


def seek_behind(cursor: Any, position: bytes, reverse: bool) -> bool:
    """Go to the record that follows the key *position*, with *reverse* to the one before it; False if there is none."""
    if not cursor.set_range(position):
        return bool(reverse and cursor.last())
    if reverse:
        return bool(cursor.prev())
    return cursor.key() != position or bool(cursor.next())


def within(lower: bytes, upper: bytes, reverse: bool) -> Any:
    """A function that is true for a key before the end of the range; None if every key is."""
    if reverse:
        return lower.__le__ if lower else None
    return None if upper is TOP else upper.__gt__


def keys_from(cursor: Any, lower: bytes, upper: bytes, reverse: bool = False, views: bool = False) -> Iterator[bytes]:
    """The keys from the position of *cursor* to the end of the range. *views*: it returns memoryviews to copy."""
    rows: Iterator[Any] = cursor.iterprev(True, False) if reverse else cursor.iternext(True, False)
    if views:
        rows = map(bytes, rows)
    inside = within(lower, upper, reverse)
    return rows if inside is None else takewhile(inside, rows)


def pairs_from(
    cursor: Any, lower: bytes, upper: bytes, reverse: bool = False, views: bool = False
) -> Iterator[tuple[bytes, Any]]:  # fmt: skip
    """The pairs from the position of *cursor* to the end of the range. Keys are copied from *views*."""
    rows: Iterator[tuple[Any, Any]] = cursor.iterprev(True, True) if reverse else cursor.iternext(True, True)
    if views:
        rows = ((bytes(key), memoryview(data)) for key, data in rows)  # PyPy has a buffer type of cffi's here
    if within(lower, upper, reverse) is None:
        return rows
    # A pair compares with a tuple of the bound alone by its key; where that is equal the shorter tuple is the lesser.
    return takewhile((lower,).__le__ if reverse else (upper,).__gt__, rows)


def values_from(cursor: Any, lower: bytes, upper: bytes, reverse: bool = False, views: bool = False) -> Iterator[Any]:
    """The values from the position of *cursor* to the end of the range."""
    if within(lower, upper, reverse) is not None:
        return map(_value_of, pairs_from(cursor, lower, upper, reverse, views))
    rows: Iterator[Any] = cursor.iterprev(False, True) if reverse else cursor.iternext(False, True)
    return map(memoryview, rows) if views else rows


def pairs_between(cursor: Any, lower: bytes, upper: bytes, views: bool = False) -> Iterator[tuple[bytes, Any]]:
    """The pairs with ``lower <= key < upper``. Keys are copied from *views*."""
    return pairs_from(cursor, lower, upper, views=views) if seek(cursor, lower, upper) else iter(())


def prefixed(cursor: Any, prefix: bytes) -> Iterator[tuple[Any, Any]]:
    """The pairs of key and value whose key begins with *prefix*."""
    upper = after(prefix)  # and not by `pairs_between`: each opening would take a call more
    return pairs_from(cursor, prefix, upper) if seek(cursor, prefix, upper) else iter(())


def prefixed_keys(cursor: Any, prefix: bytes) -> Iterator[Any]:
    """The keys that begin with *prefix*, even if the engine returns memoryviews; the values are not read."""
    upper = after(prefix)
    return keys_from(cursor, prefix, upper, views=True) if seek(cursor, prefix, upper) else iter(())


def delete_prefixed(txn: Any, handle: Any, prefix: bytes) -> int:
    """Delete the records whose keys begin with *prefix*, of a keyspace with others; returns their number."""
    deleted = 0
    while True:
        cursor = txn.cursor(handle)
        keys = list(islice(prefixed_keys(cursor, prefix), _CHUNK))
        cursor.close()
        if not keys:
            return deleted
        deleted += sum([txn.delete(key, db=handle) for key in keys])


def slot_prefixes(cursor: Any) -> Iterator[bytes]:
    """The first two bytes of the keys, each once, which say the slot: a seek for each. Also keys of one byte."""
    found = cursor.first()
    while found:
        prefix = bytes(cursor.key()[:2])
        yield prefix
        if len(prefix) < 2:
            found = cursor.next()
        else:
            number = int.from_bytes(prefix, "big") + 1
            found = number < 1 << 16 and cursor.set_range(number.to_bytes(2, "big"))
