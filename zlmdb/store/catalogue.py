"""The records of a file about itself: its tables and indexes, their types, and their keyspaces.

In the tables layout, the reserved sub-database ``__zlmdb__`` has a record for each table. In the classic layout, the
metadata records of slot 0 number the slots, as zlmdb 26 writes them, and one more record of slot 0, which zlmdb 26
ignores, holds the definitions that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Union

from ..engines import Transaction
from .slots import Keyspace, Slot
from .store import Store
from .tablescatalogue import TablesCatalogue

if TYPE_CHECKING:
    from .classiccatalogue import ClassicCatalogue

    Catalogue = Union[TablesCatalogue, ClassicCatalogue]
else:
    Catalogue = TablesCatalogue  # a name in annotations


def catalogue_of(store: Store) -> Catalogue:
    """The catalogue of an open store, after its layout."""
    if store.layout == "raw":
        from .rawcatalogue import RawCatalogue  # late: few programs have such files

        return RawCatalogue(store)
    if store.layout == "classic":
        from .classiccatalogue import ClassicCatalogue  # late: few files of zlmdb 27 are classic

        return ClassicCatalogue(store)
    return TablesCatalogue(store)


def spaces_of(catalogue: Catalogue, slots: Iterable[Slot]) -> list[bytes]:
    """The spaces of tables, with those of their indexes and change feeds."""
    spaces: list[bytes] = []
    for space, _ in _keyspaces(catalogue, slots):
        if space is not None:
            spaces.append(space)
    return spaces


def prefixes_of(catalogue: Catalogue, slots: Iterable[Slot]) -> set[bytes]:
    """What the keys of tables and of their indexes begin with, of those that have no space of their own."""
    return {keyspace.prefix for keyspace in _keyspaces(catalogue, slots) if keyspace.space is None}


def _keyspaces(catalogue: Catalogue, slots: Iterable[Slot]) -> list[Keyspace]:
    found: list[Keyspace] = []
    for slot in slots:
        found.append(catalogue.keyspace(slot))
        for name in slot.indexes:
            found.append(catalogue.index_keyspace(slot, name))
        feed = None if slot.feed is None else catalogue.feed_space(slot.name)
        if feed is not None:
            found.append(Keyspace(feed, b""))
    return found


def has_names_only(store: Store, txn: Transaction) -> bool:
    """Whether it is a file of another program, with nothing but the names of its tables in the main database."""
    if store.layout != "raw":
        return False
    names = store.engine.space_names(store.environment, txn)
    return bool(sum(1 for _ in names) == txn.stat()["entries"])
