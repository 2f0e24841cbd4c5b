"""What an open file holds and how large it is, table by table."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional
from uuid import UUID

from .attach import tables
from .catalogue import Slot, catalogue_of
from .engines.lmdb import lib_version
from .layout import SLOTS
from .store import MAIN, Store

_PAGES = ("branch_pages", "leaf_pages", "overflow_pages")
_META_PAGES = 2  # at the beginning of every file of LMDB


@dataclass(frozen=True)
class TableInfo:
    """A table of a file: names of its codecs (None where the file does not say), records, bytes, index names.

    Of attached indexes the names are there, too, where the file records them: in the tables layout.
    """

    name: str
    uuid: Optional[UUID]
    key: Optional[str]
    value: Optional[str]
    count: int
    bytes: int
    indexes: tuple[str, ...]


def table_infos(store: Store) -> dict[str, TableInfo]:
    """Every table of the file, by name or, where it has none, by UUID."""
    found: dict[str, TableInfo] = {}
    for identity, slot in tables(store).items():
        count, size = _measure(store, slot)
        indexes = tuple({**slot.indexes, **slot.attached})
        found[identity] = TableInfo(identity, slot.uuid, slot.key, slot.value, count, size, indexes)
    return found


def sizes(store: Store) -> dict[str, Any]:
    """Bytes and pages, used and free, and what the engine itself says of its environment.

    Entries and pages are those of the main database and of all open spaces, in one snapshot. LMDB does not tell what
    is in its free list, so that *reclaimable* is the rest of the file: the pages of that list, and the list itself.
    """
    spaces = [MAIN, *store.spaces.values()]  # first: a transaction does not see those of after it
    with store.reading() as txn:
        found = [txn.stat(space.handle) for space in spaces]
    summed = {name: sum(one[name] for one in found) for name in ("entries", *_PAGES)}
    facts = {**found[0], **summed, **store.env.info()}
    pages = sum(facts[name] for name in _PAGES)
    used = pages * facts["psize"]
    in_file = facts["last_pgno"] + 1 - _META_PAGES
    return {
        "num_slots": len(_slots(store)),
        "current_size": 0 if store.engine.file is None else os.path.getsize(store.engine.file),
        "max_size": facts["map_size"],
        "page_size": facts["psize"],
        "pages": pages,
        "used": used,
        "reclaimable": max(0, in_file - pages) * facts["psize"],
        "free": 1.0 - used / facts["map_size"] if facts["map_size"] else 1.0,
        "lib_version": file_version(store),
        "lmdb_version": _engine_version(store),
        **facts,
    }


def slot_facts(store: Store) -> list[dict[str, Any]]:
    """The tables that have a UUID, by slot: its number, names and records."""
    return [
        {
            "oid": str(slot.uuid),
            "slot": slot.number,
            "name": slot.title,
            "description": slot.description,
            "records": _measure(store, slot)[0],
        }
        for slot in sorted(_slots(store), key=lambda slot: slot.number)
    ]


def file_version(store: Store) -> Optional[str]:
    """The LMDB format of the file, "0.9" or "1.0"; None in memory."""
    return lib_version(store.env) if store.engine.persistent else None


def _slots(store: Store) -> list[Slot]:
    return [slot for slot in tables(store).values() if slot.uuid is not None]


def _measure(store: Store, slot: Slot) -> tuple[int, int]:
    """The records of a table, and the bytes that they take: whole pages in the tables layout, else keys and values."""
    place = catalogue_of(store).place(slot)
    space = store.space(place.space)
    if space is None:
        store.open_spaces([place.space or SLOTS])
        space = store.space(place.space)
    if space is None:
        return 0, 0
    with store.reading() as txn:
        if not place.prefix:
            facts = txn.stat(space.handle)
            pages = facts.get("branch_pages", 0) + facts.get("leaf_pages", 0) + facts.get("overflow_pages", 0)
            return facts["entries"], pages * facts.get("psize", 0)
        return _walk(txn.cursor(space.handle), place.prefix)


def _walk(cursor: Any, prefix: bytes) -> tuple[int, int]:
    """The records under *prefix* and the bytes of their keys and values, by reading them all."""
    count = size = 0
    for key, data in cursor.iternext() if cursor.set_range(prefix) else ():
        if key[: len(prefix)] != prefix:
            break
        count, size = count + 1, size + len(key) + len(data)
    return count, size


def _engine_version(store: Store) -> str:
    version = getattr(store.env, "lib_version", None)
    return ".".join(map(str, version())) if version is not None else "memory"
