"""Tables of a file that no schema declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from .. import errors
from ..keys import from_name as key_from_name
from ..store.catalogue import catalogue_of, spaces_of
from ..store.slots import Slot
from ..store.store import Store
from ..tables.keyfield import KeyField
from ..tables.storage import FileIndexes, Storage
from ..values.named import LIST_NUMBER, SET_NUMBER
from ..values.resolve import from_name as value_from_name
from .changedshape import of_plain_data
from .contents import read_contents
from .links import undeletable
from .multi import VALUES
from .storages import record_changes


def undeclared(store: Store, name: str, *, by_fields: bool = False) -> Optional[Storage[Any, Any]]:
    """The storage of a table that no schema declares, read as plain data; None if the file has no such table.

    With *by_fields*, values are objects with the recorded fields, if the file records them, and can be written.
    """
    if store.layout == "raw":
        from .rawtables import raw_table  # late: few programs have such files

        return raw_table(store, name)
    catalogue = catalogue_of(store)
    slots = read_contents(store, catalogue).slots
    slot = slots.get(name)
    if slot is None:
        slot = next((slot for slot in slots.values() if slot.class_name == name), None)
    if slot is None:
        return None
    if slot.key is None or slot.value is None:
        raise errors.SchemaMismatch(
            f"table {name!r} was made by zlmdb <= 26, which does not store types: declare it with uuid={name!r}",
            table=name,
        )
    try:
        key, value = key_from_name(slot.key), value_from_name(slot.value)
    except (TypeError, ValueError) as error:
        raise errors.SchemaMismatch(f"table {name!r}: {error}", table=name) from error
    store.open_spaces(spaces_of(catalogue, [slot]))
    keyspace = catalogue.keyspace(slot)
    unwritable = of_plain_data(slot)
    if by_fields and slot.unsettled is None:
        from ..values.recorded import recorded  # late: commands need it

        found = recorded(slot.value, slot.fields, slot.model)
        value, unwritable = (value, unwritable) if found is None else (found, None)
    storage = Storage(slot.name, keyspace.space, keyspace.prefix, key, value, store.environment.max_key_size())
    if slot.has_feed:
        record_changes(store, catalogue, storage, slot.number, None)
    if slot.key_field is not None and "." not in slot.key_field:  # plain data have no paths
        storage.key_field = KeyField(slot.key_field)
    links = [f"{table}.{link}" for table, link in slot.referred]
    storage.file_indexes = FileIndexes(
        unknown=(*slot.indexes, *slot.attached),
        unwritable=_of_several(slot, slots) or unwritable,
        undeletable=undeletable(links) if links else None,
    )
    return storage


def _of_several(slot: Slot, slots: Mapping[str, Slot]) -> Optional[str]:
    """The reason why a part of a set or list table may not be written alone; None if *slot* is none."""
    whole = slot.name
    numbers: Optional[Slot] = slot
    if whole.endswith(VALUES):
        whole = whole[: -len(VALUES)]
        numbers = slots.get(whole)
    kinds = {SET_NUMBER: "SetTable", LIST_NUMBER: "ListTable"}
    kind = None if numbers is None else next((kind for of, kind in kinds.items() if of.name == numbers.value), None)
    if kind is None:
        return None
    return (
        f"it is one of the two tables of a {kind}, and written alone it would not fit the other one: declare "
        f"{whole}: zlmdb.{kind}[KeyType, ValueType] in the schema, and write through that"
    )
