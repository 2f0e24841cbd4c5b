"""Stores all records of a table again, under the write lock, because the names of their fields have changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from .. import errors
from ..engines import Handle, Transaction
from ..log import log
from ..store.ranges import pairs_between
from ..tables.storage import Storage
from ..values.base import Serializer

_BLOCK = 1000  # records read before they are written: a cursor must not see its own writes
_PROGRESS = 100_000


def rewrite(txn: Transaction, handle: Handle, storage: Storage[Any, Any], reading: Serializer[Any]) -> int:
    """Read every record of *storage* with *reading*, and store it with the table's serializer.

    Returns the number of records. Raises `DecodeError` or `EncodeError`, naming the first record that fails.
    """
    count = 0
    for block in blocks(txn, handle, storage):
        for key, data in block:
            txn.put(key, _converted(storage, reading, key, data), db=handle)
            count += 1
            if count % _PROGRESS == 0:
                log.info("storing the records of %s with new names: %d", storage.name, count)
    return count


def _converted(storage: Storage[Any, Any], reading: Serializer[Any], key: bytes, data: bytes) -> bytes:
    try:
        return storage.value.encode(reading.decode(data))
    except errors.Error as error:
        raise storage.named(error, storage.decode_key(key)) from error.__cause__


def blocks(txn: Transaction, handle: Handle, storage: Storage[Any, Any]) -> Iterator[list[tuple[bytes, bytes]]]:
    """The keys and values of *storage*, in blocks, each read by a cursor of its own."""
    lower = storage.lower
    while True:
        rows = pairs_between(txn.cursor(handle), lower, storage.upper)
        block = [(bytes(key), bytes(data)) for key, data in islice(rows, _BLOCK)]
        if not block:
            return
        yield block
        lower = block[-1][0] + b"\0"
