"""The slots that programs chose by hand, of which the file says nothing: their records are found by their keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .. import errors
from ..engines import Transaction
from ..store.catalogue import catalogue_of, has_names_only, prefixes_of
from ..store.ranges import slot_prefixes
from ..store.slots import LAST_SLOT, Slot
from ..store.store import Store


def prefixes(store: Store, txn: Transaction, slots: Mapping[str, Slot]) -> Iterator[bytes]:
    """What their keys begin with, besides those of *slots*, all tables of the file: two bytes, a seek for each.

    One byte is a key of another program.
    """
    space = store.space(store.traits.slots)
    if space is None or has_names_only(store, txn):
        return
    known = {b"\0\0", *prefixes_of(catalogue_of(store), slots.values())}
    for prefix in slot_prefixes(txn.cursor(space.handle)):
        if prefix not in known:
            yield prefix


def numbers(store: Store, txn: Transaction, slots: Mapping[str, Slot]) -> list[int]:
    """Their numbers. Raises `InvalidDatabase` for records in no slot that there can be."""
    found: list[int] = []
    for prefix in prefixes(store, txn, slots):
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
