"""The tables of an open file: read once, until the catalogue changes; and a change of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Optional

from ..engines import Handle, Transaction
from ..namedtuples import NamedTuple
from ..store.catalogue import Catalogue, catalogue_of, spaces_of
from ..store.slots import Slot
from ..store.store import OpenSpace, Store
from .declaration import Declaration


class Contents(NamedTuple):
    """The tables of the file in *snapshot*, by name. Nothing in it changes: another one replaces it.

    *unopened*: the spaces of tables and indexes that are not open, or were not when this was read. *last*: the largest
    slot number, if it is known.
    """

    snapshot: int
    slots: dict[str, Slot]
    unopened: Sequence[bytes]
    last: Optional[int] = None


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


def tables(store: Store) -> dict[str, Slot]:
    """Every table of the file, by name."""
    return read_contents(store, catalogue_of(store)).slots


def open_all(store: Store) -> None:
    """Open the spaces of every table and index of the file."""
    open_contents(store, read_contents(store, catalogue_of(store)), None)


def read_contents(store: Store, catalogue: Catalogue) -> Contents:
    """The current content of the catalogue: decoded once, until another program or a migration changes it."""
    with store.reading() as txn:
        found = store.contents = contents_in(store, catalogue, txn, txn.id())
        return found


def contents_in(store: Store, catalogue: Catalogue, txn: Transaction, snapshot: int) -> Contents:
    """The content of the catalogue in *snapshot*, which *txn* reads, or in which its changes begin."""
    known: Optional[Contents] = store.contents
    if known is not None and store.same_catalogue(known.snapshot, snapshot):
        return known
    slots = catalogue.read(txn)
    return Contents(snapshot, slots, spaces_of(catalogue, slots.values()))


def change_contents(
    store: Store, work: Callable[[Transaction, OpenSpace], Contents], timeout: Optional[float]
) -> Contents:
    """The content of the catalogue after the change *work*, which is kept for the next one."""
    found = store.contents = store.change(work, timeout=timeout)
    return found


def open_contents(store: Store, contents: Contents, timeout: Optional[float]) -> Sequence[bytes]:
    """Open the spaces of every table and index; returns those that the file lacks."""
    if contents.unopened:
        store.open_spaces(contents.unopened, timeout=timeout)
        absent = [space for space in contents.unopened if space not in store.spaces]
        if store.contents is contents:
            store.contents = contents._replace(unopened=absent)
        return absent
    return ()


def open_handle(space: Optional[bytes], open_space: OpenSpace) -> Handle:
    """The handle of a space; None if there is none."""
    return None if space is None else open_space(space)
