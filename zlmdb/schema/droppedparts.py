"""Tables, indexes and feeds that the catalogue lists and the file lacks, because another program has dropped them."""

from __future__ import annotations

from collections.abc import Mapping

from ..store.catalogue import Catalogue
from ..store.slots import Slot
from ..store.store import Store
from .declaration import Declaration

_TABLE = ""  # in a list of indexes: the table itself


def lost_parts(store: Store, catalogue: Catalogue, slots: Mapping[str, Slot], declared: Declaration) -> list[str]:
    """The declared indexes that the catalogue has and the file lacks, because another program has dropped them.

    If the table itself was dropped, with its records, those are all its indexes.
    """
    slot = slots.get(declared.name)
    if slot is None:
        return []
    known = [name for name in declared.definitions if name in slot.indexes]
    if store.space(catalogue.keyspace(slot).space) is None:
        return known or [_TABLE]
    lost = [name for name in known if store.space(catalogue.index_keyspace(slot, name).space) is None]
    return lost or ([_TABLE] if lost_feed(store, catalogue, slot) else [])


def lost_feed(store: Store, catalogue: Catalogue, slot: Slot) -> bool:
    """Whether the file lacks the change feed that the catalogue has."""
    space = catalogue.feed_space(slot.name) if slot.has_feed else None
    return space is not None and store.space(space) is None
