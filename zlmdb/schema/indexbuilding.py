"""Builds and drops the indexes of a file."""

from __future__ import annotations

from itertools import islice
from typing import Any, Optional

from ..engines import Handle, Transaction
from ..log import log
from ..shown import nearest
from ..store.catalogue import Catalogue, catalogue_of
from ..store.ranges import delete_prefixed, pairs_between, prefixed_keys
from ..store.slots import Slot
from ..store.store import OpenSpace, Store
from ..tables.storage import Storage
from ..tables.upkeep import build
from .comparison import undeclared_indexes
from .contents import FileChange, open_handle
from .declaration import Declaration
from .links import record as record_links
from .storages import storage_of

BATCH = 50_000
"""The most records of which one transaction builds an index: it takes about half a second."""


def build_index(making: FileChange, declared: Declaration, name: str) -> None:
    """Define the index *name* again and write its entries for the records of the table.

    If there are many, this is only begun, and `indexbatches` does it.
    """
    catalogue, slots, txn, open_space = making.catalogue, making.slots, making.txn, making.open_space
    slot = slots[declared.name]
    slot.building.pop(name, None)
    definition = dict(declared.definitions[name])
    known = name in slot.indexes and slot.indexes[name].get("table") == definition.get("table")
    if known:
        empty_index(catalogue, slot, name, txn, open_space)
        number = slot.indexes[name].get("slot")
        slot.indexes[name] = definition if number is None else {**definition, "slot": number}
    else:
        if name in slot.indexes:  # it adopts a table now, or does so no more
            remove_index(catalogue, slot, name, txn, open_space)
        catalogue.add_index(txn, slots, slot, name, definition)
        # A program that knew an index of this name before may have written entries.
        empty_index(catalogue, slot, name, txn, open_space)
    storage = storage_of(making.store, catalogue, slots, declared)
    storage.steady = is_steady(slot)
    index = next(index for index in storage.indexes if index.name == name)
    handle = open_handle(index.storage.space, open_space)
    table_handle = open_handle(storage.space, open_space)
    if declared.indexes[name].adopts is None:
        if are_many(txn, table_handle, storage):
            slot.building[name] = {"after": b"", "records": 0}
            return
    elif index.storage.any(txn.cursor(handle)):
        return  # written by zlmdb <= 26, and trusted
    entries = build(pairs_between(txn.cursor(table_handle), storage.lower, storage.upper), storage, index, txn, handle)
    if entries:
        log.info("index %s built: %d entries", index.storage.name, entries)


def is_steady(slot: Slot) -> bool:
    """Whether no record may lack a field whose default is made by a function."""
    models: list[Any] = [] if slot.fields is None else slot.fields["models"]
    return not any("absent" in field and "made" in field for model in models for field in model["fields"])


def are_many(txn: Transaction, handle: Handle, storage: Storage[Any, Any]) -> bool:
    """Whether the table has more records than one transaction should build an index of."""
    if storage.alone:
        return bool(txn.stat(handle)["entries"] > BATCH)
    return len(list(islice(prefixed_keys(txn.cursor(handle), storage.prefix), BATCH + 1))) > BATCH


def drop_undeclared(making: FileChange, slot: Slot, declared: Declaration) -> None:
    """Drop the indexes that the program does not declare."""
    for name in undeclared_indexes(slot, declared):
        log.warning("index %s.%s is no longer declared: dropped, as requested", slot.name, name)
        remove_index(making.catalogue, slot, name, making.txn, making.open_space)


def remove_index(
    catalogue: Catalogue, slot: Slot, name: str, txn: Transaction, open_space: OpenSpace
) -> dict[str, Any]:  # fmt: skip
    """Delete the entries of an index, and take it out of the definition of its table; returns its own."""
    empty_index(catalogue, slot, name, txn, open_space)
    return forget_index(catalogue, slot, name, txn)


def forget_index(catalogue: Catalogue, slot: Slot, name: str, txn: Transaction) -> dict[str, Any]:
    """Take an index out of the definition of its table; returns its own."""
    slot.building.pop(name, None)
    catalogue.remove_index(txn, slot, name)
    return slot.indexes.pop(name)


def empty_index(catalogue: Catalogue, slot: Slot, name: str, txn: Transaction, open_space: OpenSpace) -> None:
    """Delete the entries of an index, unless they belong to a classic table that the index uses."""
    if slot.indexes[name].get("table") is not None:
        return
    keyspace = catalogue.index_keyspace(slot, name)
    handle = open_handle(keyspace.space, open_space)
    if keyspace.prefix:
        delete_prefixed(txn, handle, keyspace.prefix)
    else:
        txn.drop(handle, delete=False)


def drop_index(store: Store, table: str, index: str, timeout: Optional[float]) -> None:
    """Drop an index from the file. Raises `KeyError` if the table or the index does not exist."""
    catalogue = catalogue_of(store)

    def work(txn: Transaction, open_space: OpenSpace) -> None:
        slot = catalogue.slot(txn, table)
        if slot is None:
            raise KeyError(f"no table {table!r} in the file; {nearest(table, catalogue.read(txn))}")
        if index not in slot.indexes:
            raise KeyError(
                f"no index {index!r} of table {table!r} in the file: there are {', '.join(slot.indexes) or 'none'}"
            )
        is_link = "link" in remove_index(catalogue, slot, index, txn, open_space)
        catalogue.write(txn, slot)
        if is_link:
            record_links(catalogue, txn, catalogue.read(txn))

    store.change(work, timeout=timeout)
