"""Attaches the declarations of a program to a file, which gets what it lacks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Optional

from .. import errors
from ..store.catalogue import catalogue_of
from ..store.store import Store
from ..tables.storage import Storage
from .comparison import lacks, lacks_urgently, mismatch
from .contents import change_contents, open_contents, read_contents
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
    slots = contents.slots
    fitting: list[Declaration] = []
    waiting: dict[str, str] = {}
    former: dict[str, str] = {}
    for declared in declarations:
        slot = slots.get(declared.name)
        if slot is None and slots:
            from .renamedtables import former_slot  # late: most programs have the tables of their files

            slot = former_slot(slots, declared, declarations)
            if slot is not None:
                former[slot.name] = declared.name
        reason = mismatch(store, slot, declared)
        if reason is None:
            fitting.append(declared)
        elif migrating:
            waiting[declared.name] = reason
        else:
            raise errors.SchemaMismatch(reason, table=declared.name)
    create = create and not store.readonly
    created = False
    if former and create:
        from .creation import rename_and_create  # late, as above

        work = partial(rename_and_create, store, catalogue, former, fitting, drop_indexes=drop_indexes)
        contents, created = change_contents(store, work, timeout), True
    elif former and rename and not store.readonly:
        from .renamedtables import rename as rename_tables  # late, as above

        contents = change_contents(store, partial(rename_tables, catalogue, former), timeout)
    elif former:  # nothing is changed: what is there is read under the new name
        renamed = {new: contents.slots[old] for old, new in former.items()}
        contents = contents._replace(slots={**contents.slots, **renamed})
    slots = contents.slots
    lacking = shapes = False
    if create:
        for declared in fitting:
            lacking = lacking or lacks(slots.get(declared.name), declared, drop_indexes)
    if lacking:
        from .creation import create_lacking  # late: a file lacks something once

        work = partial(create_lacking, store, catalogue, fitting, drop_indexes=drop_indexes)
        if any(lacks_urgently(slots.get(one.name), one, drop_indexes) for one in fitting):
            contents, created = change_contents(store, work, timeout), True
        else:  # only a shape to record: a program that does not write changes nothing
            shapes = True
    absent = open_contents(store, contents, timeout)
    if absent and create:
        from .creation import create_lacking  # late, as above
        from .droppedparts import lost_parts

        if any(lost_parts(store, catalogue, contents.slots, one) for one in fitting):
            work = partial(create_lacking, store, catalogue, fitting, drop_indexes=drop_indexes, again=True)
            contents, created = change_contents(store, work, timeout), True
    if created and build and any([slot.building for slot in contents.slots.values()]):
        from .creation import create_lacking
        from .indexbatches import build_in_batches  # late: a large table gets an index once

        if build_in_batches(store, fitting, timeout):  # another process has dropped them; it may have met a record
            contents = change_contents(
                store, partial(create_lacking, store, catalogue, fitting, drop_indexes=False), timeout
            )
            build_in_batches(store, fitting, timeout)
        contents = read_contents(store, catalogue)
        open_contents(store, contents, timeout)
    snapshot, slots = contents.snapshot, contents.slots
    storages: list[Storage[Any, Any]] = []
    for declared in declarations:
        if declared.name in waiting:
            storages.append(waiting_storage(store, declared, waiting[declared.name]))
        else:
            storages.append(storage_of(store, catalogue, slots, declared))
            storages[-1].snapshot, storages[-1].opening = snapshot, opening
            slot = slots.get(declared.name)
            if slot is not None and slot.name != declared.name:
                from .renamedtables import read_only  # late, as above

                read_only(storages[-1], slot.name)
    if shapes:
        from .creation import record_shapes  # late, as above

        recorded = partial(record_shapes, store, catalogue, fitting)
        store.put_off(lambda timeout: change_contents(store, recorded, timeout), None if maps else storages[0])
    return storages
