"""Attaches the declarations of a program to a file, which gets what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Optional

from .. import errors
from ..engines import Transaction
from ..namedtuples import NamedTuple
from ..store.catalogue import Catalogue, catalogue_of
from ..store.slots import Slot
from ..store.store import OpenSpace, Store
from ..tables.storage import Storage
from .comparison import lacks, lacks_urgently, mismatch
from .contents import Contents, change_contents, open_contents, read_contents
from .declaration import Declaration
from .storages import storage_of, waiting_storage


def attach(
    store: Store, declarations: Sequence[Declaration], *, create: bool = True, timeout: Optional[float] = None,
    drop_indexes: bool = False, migrating: bool = False, build: bool = True, maps: bool = False,
    rename: bool = False, whole: bool = False,
) -> list[Storage[Any, Any]]:  # fmt: skip
    """The storages of *declarations*, after creating the tables and building the indexes that the file lacks.

    Missing tables and indexes are created in one write transaction, so no other process can interfere. With
    *drop_indexes*, indexes that a table class does not declare are dropped. Raises `SchemaMismatch` if the file has
    other types; if *migrating*, only the use of such a table raises. Indexes of large tables are built in batches, each
    a transaction of its own, unless *build* is false. *maps*: the tables are used in transactions of any database.
    *rename*: tables get their new names even without *create*. *whole*: these are all tables of a program.
    """
    if store.layout == "raw":
        from .rawtables import attach_raw  # late: few programs have such files

        return attach_raw(store, declarations)
    catalogue, opening = catalogue_of(store), store.opening
    contents = read_contents(store, catalogue)
    found = _compared(store, contents.slots, declarations, migrating)
    change = _Change(store, catalogue, found.fitting, drop_indexes, timeout)
    create = create and not store.readonly
    created = False
    if found.former:
        created = create
        contents = change.rename(contents, found.former, create=create, rename=rename and not store.readonly)
    shapes = False
    if create and change.is_needed(contents):
        if change.is_urgent(contents):
            if whole and contents.slots and not migrating:
                from .renamedtables import tell_left_behind  # late: a file lacks something once

                tell_left_behind(contents.slots, declarations)
            contents, created = change.create(), True
        else:  # only a shape to record: a program that does not write changes nothing
            shapes = True
    absent = open_contents(store, contents, timeout)
    if absent and create and change.has_lost(contents):
        contents, created = change.create(again=True), True
    if created and build and any([slot.building for slot in contents.slots.values()]):
        contents = change.build()
    storages: list[Storage[Any, Any]] = []
    for declared in declarations:
        if declared.name in found.waiting:
            storages.append(waiting_storage(store, declared, found.waiting[declared.name]))
            continue
        storage = storage_of(store, catalogue, contents.slots, declared)
        storage.snapshot, storage.opening = contents.snapshot, opening
        storages.append(storage)
        if found.former:
            from .renamedtables import restrict  # late: tables have their former names until somebody writes

            restrict(storage, contents.slots, found.former)
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
    left = dict(slots)
    while slots and _take_over(left, declarations, found.former):
        pass  # a table that gets another name may leave its own to one that follows
    for declared in declarations:
        slot = left.get(declared.name)
        if found.former:
            slot = next((slots[old] for old, new in found.former.items() if new == declared.name), slot)
        reason = mismatch(store, slot, declared)
        if reason is None and declared.was and slot is not None and slot.name == declared.name:
            from .renamedtables import left_behind  # late, as below

            reason = left_behind(left, slot, declarations, declared)
        if reason is None:
            found.fitting.append(declared)
        elif migrating:
            found.waiting[declared.name] = reason
        else:
            raise errors.SchemaMismatch(reason, table=declared.name)
    return found


def _take_over(left: dict[str, Slot], declarations: Sequence[Declaration], former: dict[str, str]) -> bool:
    """Move one table of *left* that a declaration has under another name to *former*; whether there was one."""
    for declared in declarations:
        if declared.name not in left and declared.name not in former.values():
            from .renamedtables import former_slot  # late: most programs have the tables of their files

            slot = former_slot(left, declared, declarations)
            if slot is not None:
                former[slot.name] = declared.name
                del left[slot.name]
                return True
    return False


class _Change(NamedTuple):
    """Changes of a file that lacks something of *declarations*; they return what it has then."""

    store: Store
    catalogue: Catalogue
    declarations: Sequence[Declaration]
    drop_indexes: bool
    timeout: Optional[float]

    def rename(self, contents: Contents, former: Mapping[str, str], *, create: bool, rename: bool) -> Contents:
        """Give tables their new names; with neither *create* nor *rename*, only read them under these."""
        if create:
            from .creation import rename_and_create  # late: a table gets its new name once

            work = partial(rename_and_create, self.store, self.catalogue, former, self.declarations)
            return self._changed(partial(work, drop_indexes=self.drop_indexes))
        if rename:
            from .renamedtables import rename as rename_tables  # late, as above

            return change_contents(self.store, partial(rename_tables, self.catalogue, former), self.timeout)
        kept = {name: slot for name, slot in contents.slots.items() if name not in former}
        return contents._replace(slots={**kept, **{new: contents.slots[old] for old, new in former.items()}})

    def is_needed(self, contents: Contents) -> bool:
        """Whether the file lacks something."""
        return any(lacks(contents.slots.get(one.name), one, self.drop_indexes) for one in self.declarations)

    def is_urgent(self, contents: Contents) -> bool:
        """Whether the tables cannot be used before the file has what it lacks."""
        return any(lacks_urgently(contents.slots.get(one.name), one, self.drop_indexes) for one in self.declarations)

    def has_lost(self, contents: Contents) -> bool:
        """Whether another program has dropped something that the catalogue lists."""
        from .droppedparts import lost_parts  # late: few files are changed by other programs

        return any(lost_parts(self.store, self.catalogue, contents.slots, one) for one in self.declarations)

    def create(self, *, again: bool = False) -> Contents:
        """Create what the file lacks; with *again* also what it has lost."""
        from .creation import create_lacking  # late: a file lacks something once

        work = partial(create_lacking, self.store, self.catalogue, self.declarations, drop_indexes=self.drop_indexes)
        return self._changed(partial(work, again=again))

    def _changed(self, work: Callable[[Transaction, OpenSpace], Contents]) -> Contents:
        """As `change_contents`. All that the file has is opened before: so it gets no more than can be open at once."""
        open_contents(self.store, read_contents(self.store, self.catalogue), self.timeout)
        return change_contents(self.store, work, self.timeout)

    def build(self) -> Contents:
        """Build the indexes that were begun, of tables with many records."""
        from .indexbatches import build_in_batches  # late: a large table gets an index once

        store, timeout = self.store, self.timeout
        if build_in_batches(store, self.declarations, timeout):  # another process, which met a record, has dropped them
            self._replace(drop_indexes=False).create()
            build_in_batches(store, self.declarations, timeout)
        contents = read_contents(store, self.catalogue)
        open_contents(store, contents, timeout)
        return contents
