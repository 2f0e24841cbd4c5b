"""The content and the size of an open file, table by table."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional
from uuid import UUID

from ..engines import Cursor
from ..schema.contents import tables
from ..store.catalogue import catalogue_of
from ..store.environment import MAIN
from ..store.ranges import prefixed
from ..store.slots import Slot
from ..store.store import Store
from ..values.description import spelled

_PAGES = ("branch_pages", "leaf_pages", "overflow_pages")


@dataclass(frozen=True)
class TableInfo:
    """A table of a file: names of its codecs (None if the file does not record them), records, bytes, index names.

    The index names include attached indexes if the file records them: in the tables layout. *building* are the names of
    indexes that are being built, which are not among them yet. *fields* are those of the model of the values, in the
    notation of a declaration; None if the file does not record them.
    """

    name: str
    uuid: Optional[UUID]
    key: Optional[str]
    value: Optional[str]
    count: int
    bytes: int
    indexes: tuple[str, ...]
    fields: Optional[str] = None
    building: tuple[str, ...] = ()


def table_infos(store: Store) -> dict[str, TableInfo]:
    """Every table of the file, by name or, if it has none, by UUID."""
    found: dict[str, TableInfo] = {}
    for name, slot in tables(store).items():
        count, size = _measure(store, slot)
        indexes = tuple([name for name in {**slot.indexes, **slot.attached} if name not in slot.building])
        fields = None if slot.fields is None else spelled(slot.fields["type"], slot.fields["models"])
        building = tuple([name for name in slot.building if name in slot.indexes])
        found[name] = TableInfo(name, slot.uuid, slot.key, slot.value, count, size, indexes, fields, building)
    return found


def sizes(store: Store) -> dict[str, Any]:
    """Bytes and pages, used and free, and the engine's own statistics.

    Entries and pages are those of the main database and of all open spaces, in one snapshot. LMDB does not report the
    content of its free list, so *reclaimable* is the rest of the file: the pages of that list, and the list itself.
    """
    slots = len(_slots(store))  # before there is an environment in a variable: it may be opened anew for that
    names = list(store.spaces)  # first: a transaction does not see those of after it
    with store.reading() as txn:
        # Handles later: where the environment was opened anew for this transaction, they are others.
        found = [txn.stat(space.handle) for space in (MAIN, *[store.spaces[name] for name in names])]
    summed = {name: sum(one[name] for one in found) for name in ("entries", *_PAGES)}
    engine, env = store.engine, store.environment
    measured = {**found[0], **summed, **env.info()}
    pages = sum(measured[name] for name in _PAGES)
    used, capacity = pages * measured["psize"], engine.capacity(env)
    return {
        "num_slots": slots,
        "current_size": 0 if engine.file is None else os.path.getsize(engine.file),
        "max_size": capacity,
        "page_size": measured["psize"],
        "pages": pages,
        "used": used,
        "reclaimable": max(0, engine.data_pages(env) - pages) * measured["psize"],
        "free": max(0.0, 1.0 - used / capacity) if capacity else 1.0,
        "lib_version": engine.file_version(env),
        "lmdb_version": engine.library_version(env),
        **measured,
    }


def used(store: Store) -> int:
    """The bytes that `sizes` calls ``used``, in a third of its time."""
    names = list(store.spaces)  # first, and the handles later: as there
    with store.reading() as txn:
        found = [txn.stat(handle) for handle in (MAIN.handle, *[store.spaces[name].handle for name in names])]
    pages = sum([one["branch_pages"] + one["leaf_pages"] + one["overflow_pages"] for one in found])
    return int(pages * found[0]["psize"])


def slot_statistics(store: Store) -> list[dict[str, Any]]:
    """The tables that have a UUID, by slot: its number, names and records."""
    return [
        {
            "oid": str(slot.uuid),
            "slot": slot.number,
            "name": slot.class_name,
            "description": slot.description,
            "records": _measure(store, slot)[0],
        }
        for slot in sorted(_slots(store), key=lambda slot: slot.number)
    ]


def _slots(store: Store) -> list[Slot]:
    return [slot for slot in tables(store).values() if slot.uuid is not None]


def _measure(store: Store, slot: Slot) -> tuple[int, int]:
    """The records of a table, and the bytes that they take: whole pages in the tables layout, else keys and values."""
    keyspace = catalogue_of(store).keyspace(slot)
    if keyspace.space is not None and store.space(keyspace.space) is None:
        store.open_spaces([keyspace.space])
    with store.reading() as txn:
        space = store.space(keyspace.space)  # as in `sizes`
        if space is None:
            return 0, 0
        if not keyspace.prefix:
            measured = txn.stat(space.handle)
            return measured["entries"], sum(measured[name] for name in _PAGES) * measured["psize"]
        return _walk(txn.cursor(space.handle), keyspace.prefix)


def _walk(cursor: Cursor, prefix: bytes) -> tuple[int, int]:
    """The records under *prefix* and the bytes of their keys and values, by reading them all."""
    count = size = 0
    for key, data in prefixed(cursor, prefix):
        count, size = count + 1, size + len(key) + len(data)
    return count, size
