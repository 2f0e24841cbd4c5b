"""A change of a file that lacks what a program declares."""

from __future__ import annotations

from ..engines import Transaction
from ..namedtuples import NamedTuple
from ..store.catalogue import Catalogue
from ..store.slots import Slot
from ..store.store import OpenSpace, Store
from .declaration import Declaration


class FileChange(NamedTuple):
    """A change of a file that lacks something. *slots* are those of the file; *again*: create what it once had.

    *links* gets those that are built or dropped. A slot is replaced, and not changed, as others may know it.
    """

    store: Store
    catalogue: Catalogue
    slots: dict[str, Slot]
    txn: Transaction
    open_space: OpenSpace
    drop_indexes: bool
    again: bool
    links: list[tuple[Declaration, str]]
