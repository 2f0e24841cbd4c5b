"""The records of a file about itself: its tables and indexes, their types, and their keyspaces.

In the tables layout, the reserved sub-database ``__zlmdb__`` has a record for each table. In the classic layout, the
metadata records of slot 0 number the slots, as zlmdb 26 writes them, and one more record of slot 0, which zlmdb 26
ignores, holds the definitions that it does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

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
