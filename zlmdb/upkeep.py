"""What a write to a table does to the entries of its indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional

from .indexstorage import BoundIndex, IndexStorage
from .storage import Storage


class Change(NamedTuple):
    """What a statement does to one index: the entry to delete and the one to write, each possibly None."""

    bound: BoundIndex
    old: Optional[bytes]
    new: Optional[bytes]


def changes(
    indexes: Sequence[BoundIndex],
    raw: Any,
    table: Storage[Any, Any],
    key: Any,
    primary: bytes,
    value: Any,
    old: Optional[tuple[Any]],
) -> list[Change]:
    """What storing *value* in place of *old* does to the entries: the differences only. Nothing is written.

    Raises `DuplicateKey`, `NullValueConstraint` or `EncodeError` where an index refuses *value*.
    """
    found: list[Change] = []
    for bound in indexes:
        index = bound.storage
        new_entry = index.entry(value, primary)
        old_entry = None if old is None else index.entry(old[0], primary, stored=True)
        if new_entry is not None and index.joined is None and (new_entry != old_entry or not index.enforced):
            owner = raw.get(new_entry, None, bound.handle)
            if owner is None:  # also where an old file lost the entry together with another record of the same key
                old_entry = None if new_entry == old_entry else old_entry
            elif not index.belongs(owner, key, primary):
                raise index.conflict(index.get_key(value), index.owner_of(owner, table))
        if new_entry != old_entry:
            found.append(Change(bound, old_entry, new_entry))
    return found


def apply(found: Sequence[Change], raw: Any, key: Any, primary: bytes) -> tuple[int, int]:
    """Write *found*, the `changes` of the record *key*; how many entries were written, and how many deleted."""
    puts = dels = 0
    for (index, handle), old_entry, new_entry in found:
        if old_entry is not None:
            dels += delete_entry(index, handle, old_entry, raw, key, primary)
        if new_entry is not None:
            raw.put(new_entry, index.owned(key, primary), db=handle)
            puts += 1
    return puts, dels


def delete_entry(index: IndexStorage, handle: Any, entry: bytes, raw: Any, key: Any, primary: bytes) -> int:
    """Delete an entry of the record *key*, unless it is another record's; how many, 0 or 1."""
    if not index.sole:
        owner = raw.get(entry, None, handle)
        if owner is None or not index.belongs(owner, key, primary):
            return 0
    return int(raw.delete(entry, db=handle))


def build(
    rows: Iterator[tuple[bytes, bytes]], table: Storage[Any, Any], index: IndexStorage, txn: Any, handle: Any
) -> int:  # fmt: skip
    """Write the entries of *index* for the engine's *rows* of *table*; the number of entries.

    Raises `DuplicateKey` when two records have one key of a unique index.
    """
    entries = 0
    skip = len(table.prefix)
    for raw_key, data in rows:
        primary = bytes(raw_key[skip:])
        key = table.decode_key(raw_key)
        value = table.decode_value(data, key)
        entry = index.entry(value, primary)
        if entry is not None:
            if not txn.put(entry, index.owned(key, primary), overwrite=not index.unique, db=handle):
                raise index.conflict(index.get_key(value), index.owner_of(txn.get(entry, None, handle), table))
            entries += 1
    return entries
