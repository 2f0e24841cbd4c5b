"""The changes of a table as they are stored: a keyspace of its own, in which changes are numbered without gaps.

Its records, by the first byte of their keys:

* ``00 73``: the number of the last change that was removed, u64 BE; there is no feed without it
* ``00 63`` and the name of a consumer: the number of the last change that it acknowledged, and when, both u64 BE
* ``01`` and the number of a change, u64 BE: what has changed, see `encode`
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from itertools import islice
from struct import Struct
from struct import error as StructError
from sys import maxsize
from typing import Any, Optional

from .. import errors
from ..namedtuples import NamedTuple
from ..store.ranges import pairs_between, prefixed
from .policy import Feed

PUT, DELETE, CLEAR = 1, 2, 3
"""What a change did."""

_CHANGE, _REMOVED, _CONSUMER = b"\x01", b"\x00s", b"\x00c"
_HAS_OLD = 0x10  # added to the kind
_HEAD = Struct(">BQQHI")  # kind, transaction, microseconds since 1970, sizes of the key and of the old value
_POSITION = Struct(">QQ")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_COMPARED = 10_000  # changes that a check compares with the records

LOST = 1 << 32
"""Added to the last known number if another program has dropped the keyspace: more changes than it can have had."""


class Entry(NamedTuple):
    """A stored change. *time* is in microseconds since 1970; of a clear, *old* is the number of records in 8 bytes."""

    number: int
    kind: int
    transaction: int
    time: int
    key: bytes
    old: Optional[bytes]
    new: Optional[bytes]


def key_of(number: int) -> bytes:
    """The key of the change *number*."""
    return _CHANGE + number.to_bytes(8, "big")


def encode(kind: int, transaction: int, time: int, key: bytes, old: Optional[bytes], new: Optional[bytes]) -> bytes:
    """A change as bytes: kind (16 more with an old value), transaction, time, two sizes, key, old and new value."""
    if old is None:
        return _HEAD.pack(kind, transaction, time, len(key), 0) + key + (new or b"")
    return _HEAD.pack(kind | _HAS_OLD, transaction, time, len(key), len(old)) + key + old + (new or b"")


def decode(key: Any, data: Any) -> Entry:
    """The change stored as *key* and *data*. Raises `DecodeError`."""
    stored = bytes(data)
    try:
        flags, transaction, time, key_size, old_size = _HEAD.unpack_from(stored)
    except StructError as error:
        raise errors.DecodeError(f"a change in the feed is damaged: {stored[:40]!r}") from error
    number, kind = number_of(bytes(key)), flags & ~_HAS_OLD
    middle = _HEAD.size + key_size
    end = middle + old_size
    if kind not in (PUT, DELETE, CLEAR) or end > len(stored) or (kind != PUT and end != len(stored)):
        raise errors.DecodeError(f"the change {number} in the feed is damaged: {stored[:40]!r}")
    old = stored[middle:end] if flags & _HAS_OLD else None
    new = stored[end:] if kind == PUT else None
    return Entry(number, kind, transaction, time, stored[_HEAD.size : middle], old, new)


def number_of(key: bytes) -> int:
    """The number of the change with this key. Raises `DecodeError`."""
    if key[:1] != _CHANGE or len(key) != 9:
        raise errors.DecodeError(f"the key {key[:40]!r} in a feed is that of no change")
    return int.from_bytes(key[1:], "big")


def begin(txn: Any, handle: Any, after: int) -> None:
    """Make an empty keyspace that of a feed whose first change is the one after *after*."""
    txn.put(_REMOVED, after.to_bytes(8, "big"), db=handle)


def removed(txn: Any, handle: Any) -> Optional[int]:
    """The number of the last change that was removed; None if there is no feed."""
    data = txn.get(_REMOVED, None, handle)
    return None if data is None else int.from_bytes(bytes(data), "big")


def last(txn: Any, handle: Any) -> int:
    """The number of the last change, which may have been removed."""
    cursor = txn.cursor(handle)
    try:
        key = bytes(cursor.key()) if cursor.last() else b""
    finally:
        cursor.close()
    return number_of(key) if key[:1] == _CHANGE else removed(txn, handle) or 0


def append(txn: Any, handle: Any, number: int, data: bytes) -> None:
    """Store the change *number*, which comes after the last one."""
    if not txn.put(_CHANGE + number.to_bytes(8, "big"), data, True, False, True, handle):
        raise errors.CorruptDatabase(f"the change {number} is in the feed already: check the database")


def read(txn: Any, handle: Any, after: int, most: int, size: int) -> list[Entry]:
    """Up to *most* changes after the number *after*, fewer if they take more than *size* bytes."""
    found: list[Entry] = []
    cursor = txn.cursor(handle)
    try:
        for key, data in islice(pairs_between(cursor, key_of(after + 1), b"\x02"), min(most, maxsize)):
            found.append(decode(key, data))
            size -= len(data)
            if size <= 0:
                break
    finally:
        cursor.close()
    return found


def rewrite(txn: Any, handle: Any, convert: Callable[[bytes], bytes]) -> None:
    """Replace each value by what *convert* makes of it."""
    after, final = removed(txn, handle) or 0, last(txn, handle)
    for number in range(after + 1, final + 1):  # one by one: a cursor must not see what is written
        data = txn.get(key_of(number), None, handle)
        if data is not None:
            kind, transaction, time, key, old, new = decode(key_of(number), data)[1:]
            if kind != CLEAR:
                old = None if old is None else convert(old)
            new = None if new is None else convert(new)
            txn.put(key_of(number), encode(kind, transaction, time, key, old, new), db=handle)


# -- removing ----------------------------------------------------------------------------------------------------------


def trim(txn: Any, handle: Any, keep: Feed, now: int, most: Optional[int] = None) -> int:
    """Remove the oldest changes that *keep* does not keep at the time *now*, up to *most*; returns their number."""
    bound, final = 0, last(txn, handle)
    if keep.max_count is not None:
        bound = max(bound, final - keep.max_count)
    if keep.acknowledged:
        bound = max(bound, acknowledged_by_all(txn, handle)[0])
    expired = None if keep.max_age is None else now - keep.max_age // timedelta(microseconds=1)
    return remove(txn, handle, (removed(txn, handle) or 0) + 1, final, bound, expired, most)


def remove(
    txn: Any, handle: Any, first: int, final: int, bound: int, expired: Optional[int], most: Optional[int]
) -> int:  # fmt: skip
    """Remove changes from *first* on, up to *most*: those up to *bound*, and those older than *expired*."""
    before = first
    while first <= final and (most is None or first - before < most):
        if first > bound and (expired is None or time_of(txn, handle, first) >= expired):
            break
        txn.delete(key_of(first), b"", handle)
        first += 1
    if first != before:
        begin(txn, handle, first - 1)
    return first - before


def time_of(txn: Any, handle: Any, number: int) -> int:
    """When the change *number* was made, in microseconds since 1970; 0 if it is missing."""
    data = txn.get(key_of(number), None, handle)
    return 0 if data is None else decode(key_of(number), data).time


def acknowledged_by_all(txn: Any, handle: Any) -> tuple[int, str]:
    """The number of the last change that every consumer has acknowledged, and who has no more; 0 if there is none."""
    return min(((number, name) for name, (number, _) in consumers(txn, handle).items()), default=(0, ""))


def trim_through(txn: Any, handle: Any, number: int) -> int:
    """Remove all changes up to *number*, with it; returns how many."""
    return trim(txn, handle, Feed(max_count=max(0, last(txn, handle) - number)), 0)


# -- consumers ---------------------------------------------------------------------------------------------------------


def consumers(txn: Any, handle: Any) -> dict[str, tuple[int, int]]:
    """The named consumers: the number of the last change that each acknowledged, and when it did."""
    cursor = txn.cursor(handle)
    try:
        rows = [(bytes(key), bytes(data)) for key, data in prefixed(cursor, _CONSUMER)]
    finally:
        cursor.close()
    return {_name(key): _position(key, data) for key, data in rows}


def _name(key: bytes) -> str:
    return key[len(_CONSUMER) :].decode(errors="replace")


def _position(key: bytes, data: bytes) -> tuple[int, int]:
    if len(data) != _POSITION.size:
        raise errors.DecodeError(f"the position of the consumer {_name(key)!r} in a feed is damaged: {data[:40]!r}")
    position, time = _POSITION.unpack(data)
    return position, time


def position(txn: Any, handle: Any, name: str) -> Optional[int]:
    """The number of the last change that the consumer *name* acknowledged; None if there is no such consumer."""
    key = _CONSUMER + name.encode()
    data = txn.get(key, None, handle)
    return None if data is None else _position(key, bytes(data))[0]


def acknowledge(txn: Any, handle: Any, name: str, number: int, now: int) -> None:
    """Record that the consumer *name* has acknowledged all changes up to *number*."""
    txn.put(_CONSUMER + name.encode(), _POSITION.pack(number, now), db=handle)


def forget(txn: Any, handle: Any, name: str) -> bool:
    """Remove the consumer *name*; False if there is none."""
    return bool(txn.delete(_CONSUMER + name.encode(), b"", handle))


def now() -> int:
    """The time in microseconds since 1970, as it is stored: without a sign, so that earlier times are 0."""
    return max(0, clock.time_ns() // 1000)


def when(time: int) -> datetime:
    """The time of *time* microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=time)


# -- check -------------------------------------------------------------------------------------------------------------


def wrong(txn: Any, handle: Any) -> Iterator[str]:
    """What is wrong with the records of a feed, in words."""
    expected = removed(txn, handle)
    if expected is None:
        yield "the feed lacks its first record"
        return
    for key, data in txn.cursor(handle).iternext():
        key = bytes(key)
        try:
            if key[:1] == _CHANGE:
                number = decode(key, data).number
                if number != expected + 1:
                    yield f"the change {expected + 1} is missing, {number} follows"
                expected = number
            elif key[:2] == _CONSUMER:
                _position(key, bytes(data))
            elif key != _REMOVED:
                yield f"the key {key[:40]!r} in the feed says nothing"
        except errors.DecodeError as error:
            yield str(error)


def differences(txn: Any, handle: Any, table: Any) -> Iterator[tuple[int, bytes]]:
    """Those of the latest changes that are the last ones of their records in *table*, and did not leave these values.

    Each with its number and the key of the record.
    """
    seen: set[bytes] = set()
    cursor = txn.cursor(handle)
    rows: Iterator[Any] = cursor.iterprev() if cursor.last() else iter(())
    for key, data in islice(rows, _COMPARED):
        entry = decode(key, data) if bytes(key[:1]) == _CHANGE else None
        if entry is None or entry.kind == CLEAR:
            return
        if entry.key not in seen:
            seen.add(entry.key)
            stored = txn.get(entry.key, None, table)
            if (None if stored is None else bytes(stored)) != entry.new:
                yield entry.number, entry.key
