"""How an open file stores a declared table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ..keys import KeyCodec
from ..store.catalogue import Catalogue
from ..store.slots import Keyspace, Slot
from ..store.store import Store
from ..tables.indexstorage import IndexStorage
from ..tables.storage import FileIndexes, Storage
from ..values.base import Serializer
from .comparison import outdated_indexes
from .declaration import Declaration, IndexForm
from .indexfinder import IndexFinder
from .verdict import Verdict, verdict

_EMPTY_KEY_PREFIX = b"k"
"""What entries of a unique index of texts begin with in a sub-database of their own, which has no empty keys."""
_ABSENT = b"?"  # a space that no file has


def storage_of(
    store: Store, catalogue: Catalogue, slots: Mapping[str, Slot], declared: Declaration
) -> Storage[Any, Any]:
    """The storage of a declared table. A table that the file does not have reads as empty."""
    slot = slots.get(declared.name) or Slot(declared.name, 1)
    size = store.environment.max_key_size()
    keyspace = catalogue.keyspace(slot)
    key = store.traits.codec(declared.key)
    absent = declared.name not in slots
    known = known_indexes(slot, declared)
    space = b"t:" + declared.name.encode() if absent else keyspace.space
    value = None
    if slot.fields != declared.described:
        value = former_reader(store, slot, declared, verdict(slot, declared, opening=False))
    value = store.traits.codec(declared.value) if value is None else value
    storage = Storage(declared.name, space, keyspace.prefix, key, value, size)
    storage.key_field = declared.key_field
    storage.keyed = slot.keyed is True and declared.key_field is not None and declared.key_field.path == slot.key_field
    storage.number = 0 if absent else slot.number
    storage.alone = not keyspace.prefix
    storage.model = declared.model, declared.names
    storage.key_type = declared.key_type
    indexes: list[IndexStorage] = []
    for name, form in declared.indexes.items():
        if name in known:
            indexes.append(_index_storage(storage, name, form, store, catalogue.index_keyspace(slot, name)))
    if indexes:
        storage.maintain(indexes)
    if declared.expiry is not None:
        from ..tables.expiring import Kinds  # late: in many programs nothing expires
        from ..tables.expiry import INDEX as EXPIRES

        times = declared.indexes[EXPIRES]
        storage.expiring = Kinds(declared.expiry, times.key.name, times.get_key)
    if declared.feed is not None and slot.has_feed:
        record_changes(store, catalogue, storage, slot.number, declared.feed)
    storage.find_indexes = IndexFinder(store, catalogue, slot, known, declared)
    storage.file_indexes = storage.find_indexes.first
    return storage


def _index_storage(
    table: Storage[Any, Any], name: str, form: IndexForm, store: Store, keyspace: Keyspace
) -> IndexStorage:
    """How the file stores the declared index *name* of *table*, with its entries in *keyspace*."""
    adopted = form.adopts is not None
    return form.storage(
        name,
        entries_storage(table, name, store, keyspace, form.key, unique=form.unique, adopted=adopted),
        unique=form.unique,
        get_key=form.get_key,
        primary=None if form.unique else table.key,
        adopted=adopted,
        enforced=not adopted,
        field=form.field,
        as_stored=form.as_stored,
        definition=form.definition,
        where=form.where,
    )


def entries_storage(
    table: Storage[Any, Any], name: str, store: Store, keyspace: Keyspace, key: KeyCodec[Any], *, unique: bool,
    adopted: bool,
) -> Storage[Any, Any]:  # fmt: skip
    """Where the entries of the index *name* of *table* are. *adopted*: they are the records of another table."""
    stored = store.traits.codec(key)
    prefix = keyspace.prefix
    if unique and stored.width is None and not adopted:
        prefix = prefix or _EMPTY_KEY_PREFIX
    title, size = f"{table.name}.{name}", table.max_key_size
    entries: Storage[Any, Any] = Storage(title, keyspace.space, prefix, stored, table.value, size)
    entries.alone = not keyspace.prefix
    return entries


def known_indexes(slot: Slot, declared: Declaration) -> dict[str, dict[str, Any]]:
    """The indexes that the file has with their declared definitions."""
    if slot.indexes == declared.definitions and slot.fields == declared.described:  # as nearly always
        return dict(slot.indexes)
    outdated = outdated_indexes(slot, declared)
    return {name: slot.indexes[name] for name in declared.definitions if name not in outdated}


def former_reader(store: Store, slot: Slot, declared: Declaration, found: Verdict) -> Optional[Serializer[Any]]:
    """The reader of records whose fields have other names than declared; None if they have the declared names."""
    relation = found.relation
    if relation is None or not relation.rewritten or slot.fields is None or not relation.readable:
        return None
    from ..values.renamedfields import renamed_serializer  # late: it is needed once for a name

    return renamed_serializer(store.traits.codec(declared.value), slot.fields, relation.renames)


def record_changes(
    store: Store, catalogue: Catalogue, storage: Storage[Any, Any], number: int, keep: Any
) -> None:  # fmt: skip
    """Let the changes of a table with a change feed be recorded."""
    from ..feed.recorder import Recorder  # late: few tables have one

    space = catalogue.feed_space(storage.name)
    if space is not None:
        storage.followers = (*storage.followers, Recorder(store, space, number, keep))


def waiting_storage(store: Store, declared: Declaration, reason: str) -> Storage[Any, Any]:
    """The storage of a table that a migration must change first: it reads as absent, and says why."""
    size = store.environment.max_key_size()
    storage = Storage(
        declared.name, _ABSENT, b"", store.traits.codec(declared.key), store.traits.codec(declared.value), size
    )
    storage.model = declared.model, declared.names
    name = declared.name
    todo = (
        f"the schema has migrations to apply: call db.migrate(). Until the last one has run, they read the table by "
        f"old[{name!r}], and change it by old.rewrite({name!r}, ...) or old.take({name!r})"
    )
    for named in (f"table {name!r}, ", f"table {name!r}: ", f"table {name!r} of the class {declared.class_name}: "):
        reason = reason.removeprefix(named)  # the error will name it
    storage.file_indexes = FileIndexes(unreadable=f"{reason}; {todo}")
    return storage
