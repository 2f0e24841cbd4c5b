"""Links between tables, checked for a whole file: by what the file says of them, without the classes of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Optional

from .. import errors
from ..engines import Transaction
from ..namedtuples import NamedTuple
from ..shown import shortened
from ..store.catalogue import catalogue_of
from ..store.slots import Slot
from ..store.store import Store
from ..tables.links import broken
from ..tables.storage import Storage
from .keyspaces import of_bytes
from .undeclaredindexes import index_storage


class BrokenLink(NamedTuple):
    """The link *name* of the record *key* of *table*, which leads to *missing*; *text* says so."""

    table: str
    name: str
    key: Any
    missing: Any
    text: str


Held = Callable[[Optional[bytes]], Optional[tuple[Any]]]
"""Of the name of a space: the engine's handle of it as a 1-tuple, or None if the file does not have it."""


def broken_links(
    store: Store, txn: Transaction, slots: Mapping[str, Slot], held: Optional[Held] = None
) -> Iterator[BrokenLink]:  # fmt: skip
    """The links of records of the tables *slots*, all of the file, that lead nowhere: one for each missing record.

    Links whose keys are of a program's own types are left out. *txn* is the engine's transaction, and *held*
    returns its handles.
    """
    handles = held or partial(_held, store)
    for slot in slots.values():
        source: Optional[Storage[Any, Any]] = None
        for name, definition in slot.indexes.items():
            if "link" in definition:
                source = source or of_bytes(store, slot)
                if source is not None:
                    yield from _broken(store, txn, slots, slot, source, name, definition, handles)


def check_links(store: Store, txn: Transaction, slots: Mapping[str, Slot], held: Held) -> None:
    """Raise `DanglingLink` for the first link of *slots* that leads nowhere."""
    for lost in broken_links(store, txn, slots, held):
        raise errors.DanglingLink(
            f"table {lost.table!r}, record {shortened(lost.key)}: {lost.text}",
            table=lost.table,
            index=lost.name,
            key=lost.key,
            owner=lost.missing,
        )


def _broken(
    store: Store, txn: Transaction, slots: Mapping[str, Slot], slot: Slot, source: Storage[Any, Any], name: str,
    definition: Mapping[str, Any], handles: Held,
) -> Iterator[BrokenLink]:  # fmt: skip
    to = str(definition["link"]["to"])
    keyspace = catalogue_of(store).index_keyspace(slot, name)
    entries = handles(keyspace.space)
    try:
        index = index_storage(store, keyspace, name, definition, source)
    except ValueError:
        return
    target = slots.get(to)
    storage = None if target is None else of_bytes(store, target)
    if entries is None or (target is not None and storage is None):
        return
    there = None if storage is None else handles(storage.space)
    for key, primary in broken(index, entries[0], storage or source, there, txn):
        owner = source.decode_key(source.prefix + primary)
        text = f"its link {name} leads to the record {shortened(key)} of {to!r}, which does not exist"
        yield BrokenLink(slot.name, name, owner, key, text)


def _held(store: Store, space: Optional[bytes]) -> Optional[tuple[Any]]:
    found = store.space(space)
    return None if found is None else (found.handle,)
