"""The definitions of the tables of a classic file: what zlmdb 26 does not record, in records that it ignores.

Their keys are of three bytes, so there is not one for each table. But they are many, so that the definition of another
table costs about the same in a file of thousands as in a small one.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Mapping
from typing import Any, Optional

from .. import errors
from ..engines import Transaction
from . import layout
from .store import Store

_FIRST, _COUNT = 0x80, 0x80  # the last bytes of the keys


def key_of(table: str) -> bytes:
    """The key of the record that has the definition of *table*."""
    return b"\x00\x00" + bytes((_FIRST + crc32(table.encode(errors="surrogatepass")) % _COUNT,))


def is_key(key: bytes) -> bool:
    """Whether *key* is that of a record of definitions."""
    return len(key) == 3 and key[:2] == b"\x00\x00" and (key[2] >= _FIRST or key == layout.DEFINITIONS_KEY)


def decode(store: Store, key: bytes, data: bytes) -> dict[str, Any]:
    """The definitions in the record *key*, by table: not to be changed. Raises `DecodeError` if they are damaged."""
    known = store.definitions.get(key)
    if known is not None and known[0] == data:
        return known[1]
    found: dict[str, Any] = layout.decode(data)
    try:
        for record in found.values():
            for entry in record.get("indexes", {}).values():
                int(entry.get("slot", 0))
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise errors.DecodeError(f"the definitions of the file are damaged: {error}") from error
    store.definitions[key] = bytes(data), found
    return found


Records = tuple[Optional[bytes], ...]


def of_table(store: Store, txn: Transaction, table: str) -> tuple[Records, Optional[dict[str, Any]]]:
    """The bytes that the definition of *table* is a part of, and the definition; None if there is none."""
    records = bytes_of(txn, table)
    for key, data in zip((key_of(table), layout.DEFINITIONS_KEY), records):
        definition = None if data is None else decode(store, key, data).get(table)
        if definition is not None:
            return records, definition
    return records, None


def bytes_of(txn: Transaction, table: str) -> Records:
    """The bytes of the records in which the definition of *table* can be."""
    found = txn.get(key_of(table)), txn.get(layout.DEFINITIONS_KEY)
    return tuple(None if data is None else bytes(data) for data in found)


def write(store: Store, txn: Transaction, changed: Mapping[str, Optional[dict[str, Any]]]) -> None:
    """Record the definitions of the tables *changed*, None to remove one."""
    alone = txn.get(layout.DEFINITIONS_KEY)  # all of them, as the first versions of zlmdb 27 wrote
    if alone is None or bytes(alone) != layout.NO_DEFINITIONS:
        changed = {**(decode(store, layout.DEFINITIONS_KEY, alone) if alone is not None else {}), **changed}
        txn.put(layout.DEFINITIONS_KEY, layout.NO_DEFINITIONS)
    records: dict[bytes, dict[str, Any]] = {}
    for table, definition in changed.items():
        key = key_of(table)
        record = records.get(key)
        if record is None:
            data = txn.get(key)
            record = records[key] = {} if data is None else dict(decode(store, key, data))
        if definition is None:
            record.pop(table, None)
        else:
            record[table] = definition
    for key, record in records.items():
        before, after = txn.get(key), layout.encode(record)
        if not record:
            txn.delete(key)
        elif before is None or bytes(before) != after:
            txn.put(key, after)
            store.definitions[key] = after, record
