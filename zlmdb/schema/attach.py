"""Attaches the declarations of a program to a file, which gets what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Optional

from .. import errors
from ..namedtuples import NamedTuple
from ..store.catalogue import Catalogue, catalogue_of
from ..store.slots import Slot
from ..store.store import Store
from ..tables.storage import Storage
from .comparison import lacks, lacks_urgently, mismatch
from .contents import Contents, change_contents, open_contents, read_contents
from .declaration import Declaration
from .storages import storage_of, waiting_storage


def attach(
    store: Store, declarations: Sequence[Declaration], *, create: bool = True, timeout: Optional[float] = None,
    drop_indexes: bool = False, migrating: bool = False, build: bool = True, maps: bool = False,
    rename: bool = False,
) -> list[Storage[Any, Any]]:  # fmt: skip
    """The storages of *declarations*, after creating the tables and building the indexes that the file lacks.

    Missing tables and indexes are created in one write transaction, so no other process can interfere. With
    *drop_indexes*, indexes that a table class does not declare are dropped. Raises `SchemaMismatch` if the file has
    other types; if *migrating*, only the use of such a table raises. Indexes of large tables are built in batches, each
    a transaction of its own, unless *build* is false. *maps*: the tables are used in transactions of any database.
    *rename*: tables get their new names even without *create*.
    """
    if store.layout == "raw":
        from .rawtables import attach_raw  # late: few programs have such files

        return attach_raw(store, declarations)
    catalogue, opening = catalogue_of(store), store.opening
    contents = read_contents(store, catalogue)
    found = _compared(store, contents.slots, declarations, migrating)
    file = _File(store, catalogue, contents, found.fitting, drop_indexes, timeout)
    create = create and not store.readonly
    if found.former:
        file.take_over(found.former, create=create, rename=rename and not store.readonly)
    shapes = create and file.create()
    absent = file.open()
    if absent and create:
        file.create_again()
    if file.created and build:
        file.build()
    contents = file.contents
    storages: list[Storage[Any, Any]] = []
    for declared in declarations:
        reason = found.waiting.get(declared.name)
        if reason is not None:
            storages.append(waiting_storage(store, declared, reason))
        else:
            storages.append(_storage(store, catalogue, contents.slots, declared))
            storages[-1].snapshot, storages[-1].opening = contents.snapshot, opening
    if shapes:
        from .creation import record_shapes  # late: a file gets the shape of a table once

        recorded = partial(record_shapes, store, catalogue, found.fitting)
        store.put_off(lambda timeout: change_contents(store, recorded, timeout), None if maps else storages[0])
    return storages


class _Compared(NamedTuple):
    """Declarations beside the file: those that are *fitting*, and the reasons why others are *waiting*, by name.

    *former*: the tables of the file that have other names now, from the old name to the new one.
    """

    fitting: list[Declaration]
    waiting: dict[str, str]
    former: dict[str, str]


def _compared(
    store: Store, slots: Mapping[str, Slot], declarations: Sequence[Declaration], migrating: bool
) -> _Compared:
    """Compare *declarations* with the tables of the file. Raises `SchemaMismatch`, unless *migrating*."""
    found = _Compared([], {}, {})
    for declared in declarations:
        slot = slots.get(declared.name)
        if slot is None and slots:
            from .renamedtables import former_slot  # late: most programs have the tables of their files

            slot = former_slot(slots, declared, declarations)
            if slot is not None:
                found.former[slot.name] = declared.name
        reason = mismatch(store, slot, declared)
        if reason is None:
            found.fitting.append(declared)
        elif migrating:
            found.waiting[declared.name] = reason
        else:
            raise errors.SchemaMismatch(reason, table=declared.name)
    return found


class _File:
    """The catalogue of an open file, which gets what it lacks of *declarations*, step by step.

    *contents*: what it has after the latest step. *created*: a step has created tables or indexes.
    """

    def __init__(
        self, store: Store, catalogue: Catalogue, contents: Contents, declarations: Sequence[Declaration],
        drop_indexes: bool, timeout: Optional[float],
    ) -> None:  # fmt: skip
        self.contents = contents
        self.created = False
        self._store = store
        self._catalogue = catalogue
        self._declarations = declarations
        self._drop_indexes = drop_indexes
        self._timeout = timeout

    def take_over(self, former: Mapping[str, str], *, create: bool, rename: bool) -> None:
        """Give tables their new names; with neither *create* nor *rename*, only read them under these."""
        if create:
            from .creation import rename_and_create  # late: a table gets its new name once

            self._create(partial(rename_and_create, self._store, self._catalogue, former))
        elif rename:
            from .renamedtables import rename as rename_tables  # late, as above

            work = partial(rename_tables, self._catalogue, former)
            self.contents = change_contents(self._store, work, self._timeout)
        else:
            slots = self.contents.slots
            renamed = {new: slots[old] for old, new in former.items()}
            self.contents = self.contents._replace(slots={**slots, **renamed})

    def create(self) -> bool:
        """Create what it lacks; if that is only the shape of a table, do nothing, and return True.

        So a program that does not write changes nothing.
        """
        slots, drop = self.contents.slots, self._drop_indexes
        if not any([lacks(slots.get(one.name), one, drop) for one in self._declarations]):
            return False
        if not any([lacks_urgently(slots.get(one.name), one, drop) for one in self._declarations]):
            return True
        self._create_lacking()
        return False

    def open(self) -> Sequence[bytes]:
        """Open the spaces of all tables and indexes; returns those that the catalogue lists and the file lacks."""
        return open_contents(self._store, self.contents, self._timeout)

    def create_again(self) -> None:
        """Create what the catalogue lists and another program has dropped."""
        from .droppedparts import lost_parts  # late: few files are changed by other programs

        slots = self.contents.slots
        if any([lost_parts(self._store, self._catalogue, slots, one) for one in self._declarations]):
            self._create_lacking(again=True)

    def build(self) -> None:
        """Build the indexes that were begun, of tables with many records."""
        if not any([slot.building for slot in self.contents.slots.values()]):
            return
        from .indexbatches import build_in_batches  # late: a large table gets an index once

        if build_in_batches(self._store, self._declarations, self._timeout):
            self._drop_indexes = False  # another process has dropped them; it may have met a record
            self._create_lacking()
            build_in_batches(self._store, self._declarations, self._timeout)
        self.contents = read_contents(self._store, self._catalogue)
        self.open()

    def _create_lacking(self, *, again: bool = False) -> None:
        from .creation import create_lacking  # late: a file lacks something once

        self._create(partial(create_lacking, self._store, self._catalogue, again=again))

    def _create(self, work: Callable[..., Contents]) -> None:
        work = partial(work, self._declarations, drop_indexes=self._drop_indexes)
        self.contents, self.created = change_contents(self._store, work, self._timeout), True


def _storage(
    store: Store, catalogue: Catalogue, slots: Mapping[str, Slot], declared: Declaration
) -> Storage[Any, Any]:  # fmt: skip
    """The storage of a table, which is only read under its new name if the file has the former one."""
    storage = storage_of(store, catalogue, slots, declared)
    slot = slots.get(declared.name)
    if slot is not None and slot.name != declared.name:
        from .renamedtables import read_only  # late: a table has its former name until somebody writes

        read_only(storage, slot.name)
    return storage
