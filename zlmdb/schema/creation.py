"""Creates what a file lacks: tables, indexes, change feeds, and records with the present names of fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Optional

from ..engines import Transaction
from ..log import log
from ..store.catalogue import Catalogue, spaces_of
from ..store.slots import Slot
from ..store.store import OpenSpace, Store
from .changedshape import record
from .comparison import (
    compare,
    indexes_to_build,
    lacks,
    lacks_urgently,
    stored_indexes,
    undeclared_indexes,
)
from .contents import Contents, FileChange, contents_in, open_handle
from .declaration import Declaration
from .droppedparts import lost_parts
from .feeds import begin_feed, rewrite_feed
from .indexbuilding import build_index, drop_undeclared
from .links import record as record_links
from .links import verify
from .rewrite import rewrite
from .storages import former_reader, storage_of
from .verdict import verdict


def create_lacking(
    store: Store, catalogue: Catalogue, declarations: Sequence[Declaration], txn: Transaction, open_space: OpenSpace,
    *, drop_indexes: bool, again: bool = False, renamed: Optional[Contents] = None,
) -> Contents:  # fmt: skip
    """Create what the file lacks; with *again* also what it once had. *renamed*: what `rename` has left in *txn*.

    Reads the catalogue again, if another process may have created the same meanwhile.
    """
    now = txn.id()
    before = contents_in(store, catalogue, txn, now - 1) if renamed is None else renamed
    making = FileChange(store, catalogue, dict(before.slots), txn, open_space, drop_indexes, again, [])
    with catalogue.batch(txn, before.last) as batch:
        made = list(map(partial(_make, making), declarations))  # no closure has it, see `Engine.abort`
        if making.links:
            _check_links(making, declarations)
            record_links(catalogue, txn, making.slots)
    if not any(made):  # another process was first: nothing is stored, and *now* will be a snapshot of others
        return before
    if again or making.links or before.snapshot == now:  # other tables may have changed, too
        return Contents(now, catalogue.read(txn), spaces_of(catalogue, making.slots.values()))
    changed = {slot.name: slot for slot in made if slot is not None}
    for name, slot in changed.items():
        slot.records = catalogue.records(txn, name)
    # A transaction that changes nothing, since only entries of indexes are lacking, leaves its number to the next one.
    if all(name in before.slots and before.slots[name].records == slot.records for name, slot in changed.items()):
        now -= 1
    return Contents(now, making.slots, [*before.unopened, *spaces_of(catalogue, changed.values())], batch.last)


def rename_and_create(
    store: Store, catalogue: Catalogue, former: Mapping[str, str], declarations: Sequence[Declaration],
    txn: Transaction, open_space: OpenSpace, *, drop_indexes: bool,
) -> Contents:  # fmt: skip
    """Give tables the new names of *former*, and create what the file lacks then: if that is refused, nothing changes.

    Else a program of before could not open the file any more, although this one cannot either.
    """
    from .renamedtables import rename  # late: most programs have the tables of their files

    renamed = rename(catalogue, former, txn, open_space)
    return create_lacking(store, catalogue, declarations, txn, open_space, drop_indexes=drop_indexes, renamed=renamed)


def record_shapes(
    store: Store, catalogue: Catalogue, declarations: Sequence[Declaration], txn: Transaction, open_space: OpenSpace
) -> Contents:
    """Record the shapes of tables that a program could read as they were, now that it writes.

    Nothing is recorded if another program has made the file lack more since, such as an index that it dropped: to
    create that is left to the next opening, and a write to a table whose shape is not recorded is refused.
    """
    before = contents_in(store, catalogue, txn, txn.id() - 1)
    for declared in declarations:
        slot = before.slots.get(declared.name)
        compare(store, slot, declared)
        if lacks_urgently(slot, declared, False):
            return before
    return create_lacking(store, catalogue, declarations, txn, open_space, drop_indexes=False)


def _check_links(making: FileChange, declarations: Sequence[Declaration]) -> None:
    """Raise `SchemaMismatch` if a record has one of the links that were just built, and it leads nowhere."""
    by_name = {one.name: one for one in declarations}
    for declared, name in making.links:
        index = declared.indexes.get(name)
        if index is None or "link" not in index.definition:
            continue  # dropped
        storage = storage_of(making.store, making.catalogue, making.slots, declared)
        to = by_name.get(index.definition["link"]["to"])
        if to is None:
            continue  # it waits for a migration, at whose end all links are checked
        target = storage_of(making.store, making.catalogue, making.slots, to)
        link = next(one for one in storage.indexes if one.name == name)
        handle = open_handle(link.storage.space, making.open_space)
        verify(link, storage, target, handle, (open_handle(target.space, making.open_space),), making.txn)


def _make(making: FileChange, declared: Declaration) -> Optional[Slot]:
    """Create what the file lacks of one table; returns its slot, if that has changed."""
    store, catalogue, slots, txn, _, drop_indexes, again, links = making
    slot = slots.get(declared.name)
    compare(store, slot, declared)
    new = slot is None
    if slot is None:
        number = catalogue.allocate(txn, slots)
        slot = Slot(declared.name, number, declared.uuid, declared.class_name, declared.description)
        slots[declared.name] = slot
    lost = lost_parts(store, catalogue, slots, declared) if again else []
    if lost:
        log.warning("%s: another program dropped the table or one of its indexes: it is created again", slot.name)
        _forget_attached(catalogue, slots, declared.name, txn)
    if not (lost or new or lacks(slot, declared, drop_indexes)):
        return None
    slot = slots[declared.name] = slot.copy()
    found = verdict(slot, declared, opening=True)
    build = indexes_to_build(slot, declared, found, drop_indexes)
    reading = None if new else former_reader(store, slot, declared, found)
    slot.indexes = dict(stored_indexes(slot, declared))
    record(store, slot, declared, found, new=new)
    if new and store.layout == "tables" and slot.uuid is None and slot.key_field is not None:
        # No classic map opens it. Programs that do not declare it keep to it, too, unless it is in a nested model.
        slot.keyed = "." not in slot.key_field or None
    handle = open_handle(catalogue.keyspace(slot).space, making.open_space)
    if declared.feed is not None or slot.has_feed:
        begin_feed(making, slot, txn.stat(handle)["entries"] if handle is not None else 0)
    catalogue.write(txn, slot)
    if reading is not None:
        count = rewrite(txn, handle, storage_of(store, catalogue, slots, declared), reading)
        rewrite_feed(making, slot, storage_of(store, catalogue, slots, declared), reading)
        log.info("%s: %d records have the new names of their fields", slot.name, count)
    if drop_indexes:
        links += [(declared, name) for name in undeclared_indexes(slot, declared) if "link" in slot.indexes[name]]
        drop_undeclared(making, slot, declared)
    for name in dict.fromkeys((*build, *filter(None, lost))):
        build_index(making, declared, name)
        if name and "link" in declared.definitions[name]:
            links.append((declared, name))
    catalogue.write(txn, slot)
    return slot


def _forget_attached(catalogue: Catalogue, slots: Mapping[str, Slot], target: str, txn: Transaction) -> None:
    """Remove the record that classic maps have the table *target* as an index: they then build it again."""
    for slot in slots.values():
        kept = {name: record for name, record in slot.attached.items() if record.get("target") != target}
        if len(kept) != len(slot.attached):
            catalogue.write_attached(txn, slot.name, kept)
