"""Tables with a former name: ``class People(zlmdb.Table[str, int], was="users")`` takes over the table ``users``.

The records are stored again under the new name, since an engine cannot rename a keyspace. The table remembers its
former names, so that a program which still uses one is refused, and does not begin an empty table beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from .. import errors
from ..engines import Handle, Transaction
from ..log import log
from ..store.catalogue import Catalogue, spaces_of
from ..store.ranges import prefixed
from ..store.slots import Keyspace, Slot, uuid_of
from ..store.store import OpenSpace
from ..tables.storage import Storage
from .contents import Contents
from .declaration import Declaration


def former_slot(
    slots: Mapping[str, Slot], declared: Declaration, declarations: Iterable[Declaration]
) -> Optional[Slot]:  # fmt: skip
    """The table of the file that *declared*, which is not among *slots*, has to take over; None if it is a new one.

    Raises `SchemaMismatch` if it is the former name of a table that the program does not know under its new name.
    """
    for name in (*declared.was, str(uuid_of(declared.name))):  # the latter where a salvaged classic file lost the name
        if name in slots:
            return slots[name]
    for slot in slots.values():
        if declared.name in slot.was and not any(declared.name in other.was for other in declarations):
            raise errors.SchemaMismatch(
                f"table {declared.name!r} was renamed, and is {slot.name!r} in the file, which is newer than this "
                f"program: use a newer one, or declare that class {declared.class_name} is the table of that name",
                table=declared.name,
            )
    return None


def left_behind(
    slots: Mapping[str, Slot], slot: Slot, declarations: Iterable[Declaration], declared: Declaration
) -> Optional[str]:  # fmt: skip
    """Why *declared*, which has *slot*, does not get the records of its former name; None if it has them.

    A program that had the new name before it had ``was=`` has begun an empty table beside the other one.
    """
    known = {one.name for one in declarations}
    for name in declared.was:
        if name in slots and name not in slot.was and name not in known:
            return (
                f"table {declared.name!r} of the class {declared.class_name} was begun before the class had "
                f"was={name!r}, and the file has both tables: leave out was=, and move the records with a migration: "
                f"zlmdb.Migration(version, name, step), where def step(t, old): for key, fields in "
                f"old[{name!r}].items(): store each in t, and then old.drop({name!r})"
            )
    return None


def tell_left_behind(slots: Mapping[str, Slot], declarations: Sequence[Declaration]) -> None:
    """Log a warning for a table that *slots* lack, where a table of the same class is declared no more."""
    known = {one.name for one in declarations}
    for declared in declarations:
        for slot in () if declared.name in slots else slots.values():
            if slot.class_name == declared.class_name and slot.name not in known:
                log.warning(
                    "table %s is new and empty, and %s, of the same class %s, is in the file: if that is its former "
                    "name, move the records with a migration, in which they are old[%r]",
                    declared.name, slot.name, slot.class_name, slot.name,
                )  # fmt: skip


def restrict(storage: Storage[Any, Any], slots: Mapping[str, Slot], former: Mapping[str, str]) -> None:
    """Refuse writes to a table that still has its former name in the file, and all use of one that is to get that name.

    *former* has the new names by the old ones; *slots* has tables that are not renamed yet under the new ones.
    """
    name = storage.name
    slot = slots.get(name)
    said = "it to write, without create=False, to rename it"
    limits: dict[str, Any]
    if slot is not None and slot.name != name:
        limits = {"unwritable": f"the table is called {slot.name!r} in the file: open {said}"}
    elif slot is None and name in former and slots[former[name]].name == name:
        limits = {"unreadable": f"the table of this name in the file is now called {former[name]!r}: open {said}"}
    else:
        return
    storage.find_indexes = None
    storage.file_indexes = storage.file_indexes._replace(**limits)


def rename(
    catalogue: Catalogue, names: Mapping[str, str], txn: Transaction, open_space: OpenSpace
) -> Contents:  # fmt: skip
    """Give tables their new names."""
    slots = catalogue.read(txn)
    with catalogue.batch(txn):
        renamed = _rename(catalogue, names, slots, txn, open_space)
    slots = catalogue.read(txn)
    now = txn.id() if renamed else txn.id() - 1  # if nothing is stored, the next snapshot is that of another process
    return Contents(now, slots, spaces_of(catalogue, slots.values()))


def _rename(
    catalogue: Catalogue, names: Mapping[str, str], slots: dict[str, Slot], txn: Transaction, open_space: OpenSpace
) -> int:
    """Give the tables of *names*, from the old name to the new one, their new names, in the file and in *slots*.

    Returns the number of tables.
    """
    renamed = 0
    for old, new in names.items():
        if old not in slots or new in slots:  # another process has renamed it meanwhile
            continue
        before = slots.pop(old)
        after = slots[new] = before.copy()
        after.name, after.was = new, before.was if old == str(uuid_of(new)) else [*before.was, old]
        after.uuid = None  # in a classic file one that is derived from the name
        if before.attached:
            catalogue.write_attached(txn, new, before.attached)
        catalogue.remove(txn, before)
        catalogue.write(txn, after)
        count = _moved(catalogue.keyspace(before), catalogue.keyspace(after), txn, open_space)
        for index, definition in before.indexes.items():
            if definition.get("table") is None:
                catalogue.moved_index(txn, after, index)
                _moved(catalogue.index_keyspace(before, index), catalogue.index_keyspace(after, index), txn, open_space)
        if before.feed is not None:
            feeds = Keyspace(catalogue.feed_space(old), b""), Keyspace(catalogue.feed_space(new), b"")
            _moved(*feeds, txn, open_space)
        _refer(catalogue, old, new, slots, txn)
        renamed += 1
        log.info("table %s has the name %s now: %d records were stored again", old, new, count)
    return renamed


def _moved(before: Keyspace, after: Keyspace, txn: Transaction, open_space: OpenSpace) -> int:
    """Store the records of *before* in *after*; returns their number, 0 if they can stay where they are."""
    if before == after or before.space is None or after.space is None:
        return 0
    old: Handle = open_space(before.space)
    new: Handle = open_space(after.space)
    txn.drop(new, delete=False)  # what a table of this name had left
    rows = prefixed(txn.cursor(old), before.prefix)
    count, _ = txn.cursor(new).putmulti(((bytes(key), bytes(data)) for key, data in rows), append=True)
    txn.drop(old, delete=False)
    return count


def _refer(catalogue: Catalogue, old: str, new: str, slots: dict[str, Slot], txn: Transaction) -> None:
    """Let links, their own and those to them, name the table by its new name."""
    for name, slot in list(slots.items()):
        links = {index: one for index, one in slot.indexes.items() if "link" in one and one["link"]["to"] == old}
        referred: Sequence[Sequence[str]] = [[new if table == old else table, link] for table, link in slot.referred]
        if links or [list(one) for one in slot.referred] != referred:
            changed = slots[name] = slot.copy()
            changed.referred = referred
            for index, one in links.items():
                changed.indexes[index] = {**one, "link": {**one["link"], "to": new}}
            catalogue.write(txn, changed)
