"""The records in the keyspaces of a file, as bytes; the slots that programs chose by hand, which it does not list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional

from .. import errors
from ..engines import Transaction
from ..keys import from_name as key_from_name
from ..store.catalogue import catalogue_of, has_names_only, prefixes_of
from ..store.ranges import prefixed, slot_prefixes
from ..store.slots import LAST_SLOT, Keyspace, Slot
from ..store.store import Store
from ..tables.storage import Storage
from ..values.bare import BYTES


def of_bytes(store: Store, slot: Slot) -> Optional[Storage[Any, Any]]:
    """Where the records of *slot* are, their values as bytes; None if the type of their keys is not known here."""
    keyspace = catalogue_of(store).keyspace(slot)
    try:
        key = key_from_name(str(slot.key))
    except ValueError:  # none, or one of a program's own
        return None
    return Storage(slot.name, keyspace.space, keyspace.prefix, key, BYTES, store.environment.max_key_size())


def rows(store: Store, txn: Transaction, keyspace: Keyspace) -> Iterator[tuple[bytes, bytes]]:
    """The keys, without the prefix, and values in a keyspace; none if its space is not open."""
    space = store.space(keyspace.space)
    if space is None:
        return
    skip = len(keyspace.prefix)
    for key, data in prefixed(txn.cursor(space.handle), keyspace.prefix):
        yield bytes(key[skip:]), bytes(data)


def by_hand(store: Store, txn: Transaction, slots: Mapping[str, Slot]) -> Iterator[bytes]:
    """The prefixes of slots with records that are of none of *slots*, all tables of the file: a seek for each.

    Each has two bytes. One byte is a key of another program.
    """
    space = store.space(store.traits.slots)
    if space is None or has_names_only(store, txn):
        return
    known = {b"\0\0", *prefixes_of(catalogue_of(store), slots.values())}
    for prefix in slot_prefixes(txn.cursor(space.handle)):
        if prefix not in known:
            yield prefix


def numbers_by_hand(store: Store, txn: Transaction, slots: Mapping[str, Slot]) -> list[int]:
    """The numbers of these slots. Raises `InvalidDatabase` for records in no slot that there can be."""
    found: list[int] = []
    for prefix in by_hand(store, txn, slots):
        number = int.from_bytes(prefix, "big")
        if len(prefix) < 2:
            raise errors.InvalidDatabase(foreign(prefix))
        if number > LAST_SLOT:  # which zlmdb <= 26 did not refuse
            raise errors.InvalidDatabase(
                f"the file has records in slot {number}, and slots are numbered from 1 to {LAST_SLOT}: store them in "
                f"another slot with the program that wrote them, or delete them"
            )
        found.append(number)
    return found


def foreign(key: bytes) -> str:
    """What to say of a key of another program."""
    return f"another program has written the key {key!r} into the file: check the path, or delete the record"
