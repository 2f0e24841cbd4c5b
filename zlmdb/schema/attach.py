"""Compares the declarations of a program with a file: creates tables, compares types, builds indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Optional

from .. import errors
from ..engines import Handle, Transaction
from ..keys import KeyCodec
from ..keys import from_name as key_from_name
from ..log import log
from ..store.catalogue import Catalogue, Slot, catalogue_of
from ..store.ranges import pairs_from, prefixed_keys, seek
from ..store.store import OpenSpace, Store
from ..tables.expiry import INDEX as EXPIRES
from ..tables.keyfield import KeyField
from ..tables.storage import FileIndexes, Storage
from ..tables.upkeep import build
from ..values.base import Serializer
from ..values.resolve import from_name as value_from_name
from .declaration import Declaration
from .evolution import Relation, renamed_path
from .links import record as record_links
from .links import undeletable, unknown_referrers, verify
from .renamedtables import former_slot, read_only, rename
from .rewrite import rewrite
from .verdict import FITS, Verdict, of_feed, of_plain_data, record, verdict

EMPTY_KEY_PREFIX = b"k"
"""What entries of a unique index of texts begin with in a sub-database of their own, which has no empty keys."""

_ABSENT = b"?"  # a space that no file has
_TABLE = ""  # in a list of indexes: the table itself
_PROGRESS = 100_000  # records between two lines in the log while an index is built


class Contents(NamedTuple):
    """The tables of the file in *snapshot*, by name. Nothing in it changes: another one replaces it.

    *unopened*: the spaces of tables and indexes that are not open, or were not when this was read. *last*: the largest
    slot number, if it is known.
    """

    snapshot: int
    slots: dict[str, Slot]
    unopened: Sequence[bytes]
    last: Optional[int] = None


def attach(
    store: Store, declarations: Sequence[Declaration], *, create: bool = True, timeout: Optional[float] = None,
    drop_indexes: bool = False, migrating: bool = False,
) -> list[Storage[Any, Any]]:  # fmt: skip
    """The storages of *declarations*, after creating the tables and building the indexes that the file lacks.

    Missing tables and indexes are created in one write transaction, so no other process can interfere. With
    *drop_indexes*, indexes that a table class does not declare are dropped. Raises `SchemaMismatch` if the file has
    other types; if *migrating*, only the use of such a table raises.
    """
    if store.layout == "raw":
        from .rawtables import attach_raw  # late: few programs have such files

        return attach_raw(store, declarations)
    catalogue = catalogue_of(store)
    contents = _read(store, catalogue)
    slots = contents.slots
    fitting: list[Declaration] = []
    waiting: dict[str, str] = {}
    former: dict[str, str] = {}
    for declared in declarations:
        slot = slots.get(declared.name)
        if slot is None and slots:
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
    if former and create:
        contents = _changed(store, partial(_rename, store, catalogue, former), timeout)
    elif former:  # nothing is changed: what is there is read under the new name
        renamed = {new: contents.slots[old] for old, new in former.items()}
        contents = contents._replace(slots={**contents.slots, **renamed})
    slots = contents.slots
    if create and any(_lacking(slots.get(one.name), one, drop_indexes) for one in fitting):
        work = partial(_create, store, catalogue, fitting, drop_indexes=drop_indexes)
        if any(_urgent(slots.get(one.name), one, drop_indexes) for one in fitting):
            contents = _changed(store, work, timeout)
        else:  # only a shape to record: a program that does not write changes nothing
            store.pending.append(lambda timeout: _changed(store, work, timeout))
    absent = _open_all(store, contents, timeout)
    if absent and create and any(_lost(store, catalogue, contents.slots, one) for one in fitting):
        work = partial(_create, store, catalogue, fitting, drop_indexes=drop_indexes, again=True)
        contents = _changed(store, work, timeout)
    snapshot, slots = contents.snapshot, contents.slots
    storages: list[Storage[Any, Any]] = []
    for declared in declarations:
        if declared.name in waiting:
            storages.append(_waiting(store, declared, waiting[declared.name]))
        else:
            storages.append(storage_of(store, catalogue, slots, declared))
            storages[-1].snapshot = snapshot
            if former and slots[declared.name].name != declared.name:
                read_only(storages[-1], slots[declared.name].name)
    return storages


def _rename(
    store: Store, catalogue: Catalogue, names: Mapping[str, str], txn: Transaction, open_space: OpenSpace
) -> Contents:  # fmt: skip
    """Give tables their new names."""
    slots = catalogue.read(txn)
    with catalogue.batch(txn):
        rename(catalogue, names, slots, txn, open_space)
    slots = catalogue.read(txn)
    return Contents(txn.id(), slots, _spaces(catalogue, slots))


def _waiting(store: Store, declared: Declaration, reason: str) -> Storage[Any, Any]:
    """The storage of a table that a migration must change first: it reads as absent, and says why."""
    size = store.environment.max_key_size()
    storage = Storage(declared.name, _ABSENT, b"", _stored_key(store, declared), _stored_value(store, declared), size)
    storage.model = declared.model, declared.names
    todo = f"the schema has migrations to apply: call db.migrate(); one of them needs old.take({declared.name!r})"
    storage.file_indexes = FileIndexes(unreadable=f"{reason}; {todo}")
    return storage


def undeclared(store: Store, name: str, *, by_fields: bool = False) -> Optional[Storage[Any, Any]]:
    """The storage of a table that no schema declares, read as plain data; None if the file has no such table.

    With *by_fields*, values are objects with the recorded fields, if the file records them, and can be written.
    """
    if store.layout == "raw":
        from .rawtables import raw_table  # late, as above

        return raw_table(store, name)
    catalogue = catalogue_of(store)
    slots = _read(store, catalogue).slots
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
    store.open_spaces(_spaces(catalogue, {slot.name: slot}))
    keyspace = catalogue.keyspace(slot)
    unwritable = of_plain_data(slot)
    if by_fields and slot.unsettled is None:
        from ..values.recorded import recorded  # late: commands need it

        found = recorded(slot.value, slot.fields)
        value, unwritable = (value, unwritable) if found is None else (found, None)
    storage = Storage(slot.name, keyspace.space, keyspace.prefix, key, value, store.environment.max_key_size())
    if slot.has_feed:
        _record_changes(store, catalogue, storage, slot.number, None)
    if slot.key_field is not None and "." not in slot.key_field:  # plain data have no paths
        storage.key_field = KeyField(slot.key_field)
    links = [f"{table}.{link}" for table, link in slot.referred]
    storage.file_indexes = FileIndexes(
        unknown=(*slot.indexes, *slot.attached),
        unwritable=unwritable,
        undeletable=undeletable(links) if links else None,
    )
    return storage


def drop_index(store: Store, table: str, index: str, timeout: Optional[float] = None) -> None:
    """Drop an index from the file. Raises `KeyError` if the table or the index does not exist."""
    catalogue = catalogue_of(store)

    def work(txn: Transaction, open_space: OpenSpace) -> None:
        slot = catalogue.slot(txn, table)
        if slot is None or index not in slot.indexes:
            there = "no such table" if slot is None else f"there are {', '.join(slot.indexes) or 'none'}"
            raise KeyError(f"no index {index!r} of table {table!r} in the file: {there}")
        _empty(catalogue, slot, index, txn, open_space)
        is_link = "link" in slot.indexes.pop(index)
        with catalogue.batch(txn):
            catalogue.write(txn, slot)
        if is_link:
            record_links(catalogue, txn, catalogue.read(txn))

    store.change(work, timeout=timeout)


def drop_feed(store: Store, table: str, timeout: Optional[float] = None) -> int:
    """Drop the change feed of a table; returns the number of its last change. Raises `KeyError` if there is none."""
    from ..feed import log as feeds  # late, as wherever a feed is used

    catalogue = catalogue_of(store)

    def work(txn: Transaction, open_space: OpenSpace) -> int:
        slot = catalogue.slot(txn, table)
        keyspace = catalogue.feed_keyspace(table)
        if slot is None or keyspace is None or keyspace.space is None or not slot.has_feed:
            raise KeyError(f"table {table!r} has no change feed in the file")
        handle = open_space(keyspace.space)
        last = feeds.last(txn, handle)
        txn.drop(handle, delete=False)
        slot.feed = {"after": last, "ended": True}
        catalogue.write(txn, slot)
        return last

    return store.change(work, timeout=timeout)


def open_all(store: Store) -> None:
    """Open the spaces of every table and index of the file."""
    _open_all(store, _read(store, catalogue_of(store)), None)


def tables(store: Store) -> dict[str, Slot]:
    """Every table of the file, by name."""
    return _read(store, catalogue_of(store)).slots


def _read(store: Store, catalogue: Catalogue) -> Contents:
    """The current content of the catalogue: decoded once, until another program or a migration changes it."""
    with store.reading() as txn:
        found = store.contents = _contents(store, catalogue, txn, txn.id())
        return found


def _contents(store: Store, catalogue: Catalogue, txn: Transaction, snapshot: int) -> Contents:
    """The content of the catalogue in *snapshot*, which *txn* reads, or in which its changes begin."""
    known: Optional[Contents] = store.contents
    if known is not None and store.same_catalogue(known.snapshot, snapshot):
        return known
    slots = catalogue.read(txn)
    return Contents(snapshot, slots, _spaces(catalogue, slots))


def _changed(store: Store, work: Callable[[Transaction, OpenSpace], Contents], timeout: Optional[float]) -> Contents:
    """The content of the catalogue after the change *work*, which is kept for the next one."""
    found = store.contents = store.change(work, timeout=timeout)
    return found


def _open_all(store: Store, contents: Contents, timeout: Optional[float]) -> Sequence[bytes]:
    """Open the spaces of every table and index; returns those that the file has not."""
    if contents.unopened:
        store.open_spaces(contents.unopened, timeout=timeout)
        absent = [space for space in contents.unopened if space not in store.spaces]
        if store.contents is contents:
            store.contents = contents._replace(unopened=absent)
        return absent
    return ()


def _spaces(catalogue: Catalogue, slots: Mapping[str, Slot]) -> list[bytes]:
    keyspaces = [catalogue.keyspace(slot) for slot in slots.values()]
    keyspaces += [catalogue.index_keyspace(slot, name) for slot in slots.values() for name in slot.indexes]
    feeds = [catalogue.feed_keyspace(slot.name) for slot in slots.values() if slot.feed is not None]
    keyspaces += [keyspace for keyspace in feeds if keyspace is not None]
    return [keyspace.space for keyspace in keyspaces if keyspace.space is not None]


def _stored_key(store: Store, declared: Declaration) -> KeyCodec[Any]:
    return store.traits.codec(declared.key)


def _stored_value(store: Store, declared: Declaration) -> Serializer[Any]:
    return store.traits.codec(declared.value)


def mismatch(store: Store, slot: Optional[Slot], declared: Declaration) -> Optional[str]:
    """The reason why *declared* cannot be the table *slot* of the file, naming both; None if it can."""
    if declared.feed is not None and not (store.traits.by_name or store.readonly):
        return (
            f"table {declared.name!r}, class {declared.class_name}, has a change feed, and in a file of the classic "
            f"layout zlmdb 26 could change records without recording that: convert the file, or declare no feed"
        )
    if slot is None:
        return None
    for what, stored, wanted in (
        ("keys", slot.key, _stored_key(store, declared).name),
        ("values", slot.value, declared.value.name),
    ):
        if stored is not None and stored != wanted:
            return (
                f"table {declared.name!r} in the file has {what} of type {stored} (written by class "
                f"{slot.class_name}), {declared.class_name} declares {wanted}: declare the stored type, use "
                f"another name, or convert the records with a migration"
            )
    if slot.fields == declared.described and slot.unsettled is None:  # as nearly always; this saves calls
        return None
    found = verdict(slot, declared, opening=not store.readonly)
    if found.refused is None:
        return None
    return f"table {declared.name!r}, class {declared.class_name}: {found.refused}"


def _compare(store: Store, slot: Optional[Slot], declared: Declaration) -> None:
    """Raise `SchemaMismatch` if *declared* cannot be the table of the file."""
    reason = mismatch(store, slot, declared)
    if reason is not None:
        raise errors.SchemaMismatch(reason, table=declared.name)


def _lacking(slot: Optional[Slot], declared: Declaration, drop_indexes: bool) -> bool:
    """Whether the file must change for *declared*."""
    if slot is None or slot.key is None or slot.value is None or (declared.feed is not None and not slot.has_feed):
        return True
    if slot.fields == declared.described and not drop_indexes:
        outdated = _outdated(slot, declared)
        return bool(outdated) and bool(_to_build(slot, declared, verdict(slot, declared, opening=True), drop_indexes))
    found = verdict(slot, declared, opening=True)
    if found.changes or (drop_indexes and _unwanted(slot, declared)):
        return True
    return bool(_to_build(slot, declared, found, drop_indexes))


def _urgent(slot: Optional[Slot], declared: Declaration, drop_indexes: bool) -> bool:
    """Whether the table cannot be used before the file changes; it can if only its shape has to be recorded."""
    if slot is None or slot.key is None or slot.value is None or (declared.feed is not None and not slot.has_feed):
        return True
    found = verdict(slot, declared, opening=True)
    if found.relation is not None and found.relation.renames:
        return True
    return bool((drop_indexes and _unwanted(slot, declared)) or _to_build(slot, declared, found, drop_indexes))


def _unwanted(slot: Slot, declared: Declaration) -> list[str]:
    """The indexes of the file that a table class does not declare."""
    return [name for name in slot.indexes if declared.strict and name not in declared.definitions]


def _to_build(slot: Slot, declared: Declaration, found: Verdict, drop_indexes: bool) -> list[str]:
    """The declared indexes to build: those that the file lacks, or has with an older definition."""
    outdated = [] if found.unwritable is not None else _outdated(slot, declared)
    if outdated and declared.fingerprint in slot.history[:-1] and not drop_indexes:  # that of the file is the newer one
        outdated = [name for name in outdated if name not in slot.indexes]
    return outdated


def _outdated(slot: Slot, declared: Declaration) -> list[str]:
    """The declared indexes that the file lacks, or has with another definition."""
    found: list[str] = []
    indexes = slot.indexes if slot.fields == declared.described else _indexes(slot, declared)
    for name, definition in declared.definitions.items():
        stored = indexes.get(name)
        if stored != definition and (stored is None or {**stored, "slot": 0} != {**definition, "slot": 0}):
            found.append(name)
    return found


def _indexes(slot: Slot, declared: Declaration) -> dict[str, dict[str, Any]]:
    """The definitions of the indexes of the file, with the current names of fields."""
    if slot.fields is None or declared.fields is None or not any(declared.fields.former):
        return slot.indexes
    relation = Relation(slot.fields, declared.fields)
    found: dict[str, dict[str, Any]] = {}
    for name, definition in slot.indexes.items():
        paths = [renamed_path(path, slot.fields, relation.renames) for path in definition.get("fields", [])]
        found[name] = {**definition, "fields": paths} if paths else definition
    return found


def _lost(store: Store, catalogue: Catalogue, slots: Mapping[str, Slot], declared: Declaration) -> list[str]:
    """The declared indexes that the catalogue has and the file lacks, because another program has dropped them.

    If the table itself was dropped, with its records, those are all its indexes.
    """
    slot = slots.get(declared.name)
    if slot is None:
        return []
    known = [name for name in declared.definitions if name in slot.indexes]
    if store.space(catalogue.keyspace(slot).space) is None:
        return known or [_TABLE]
    lost = [name for name in known if store.space(catalogue.index_keyspace(slot, name).space) is None]
    return lost or ([_TABLE] if _lost_feed(store, catalogue, slot) else [])


def _lost_feed(store: Store, catalogue: Catalogue, slot: Slot) -> bool:
    """Whether the file lacks the change feed that the catalogue has."""
    keyspace = catalogue.feed_keyspace(slot.name) if slot.has_feed else None
    return keyspace is not None and store.space(keyspace.space) is None


def _create(
    store: Store, catalogue: Catalogue, declarations: Sequence[Declaration], txn: Transaction, open_space: OpenSpace,
    *, drop_indexes: bool, again: bool = False,
) -> Contents:  # fmt: skip
    """Create what the file lacks; with *again* also what it once had.

    Reads the catalogue again, if another process may have created the same meanwhile.
    """
    now = txn.id()
    before = _contents(store, catalogue, txn, now - 1)
    making = _Making(store, catalogue, dict(before.slots), txn, open_space, drop_indexes, again, [])
    with catalogue.batch(txn, before.last) as batch:
        made = [_make(making, declared) for declared in declarations]
        if making.links:
            _check_links(making, declarations)
            record_links(catalogue, txn, making.slots)
    if again or making.links:  # other tables may have changed, too
        return Contents(now, catalogue.read(txn), _spaces(catalogue, making.slots))
    changed = {slot.name: slot for slot in made if slot is not None}
    for name, slot in changed.items():
        slot.records = catalogue.records(txn, name)
    return Contents(now, making.slots, [*before.unopened, *_spaces(catalogue, changed)], batch.last)


def _check_links(making: _Making, declarations: Sequence[Declaration]) -> None:
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
        handle = _open(link.storage.space, making.open_space)
        verify(link, storage, target, handle, (_open(target.space, making.open_space),), making.txn)


class _Making(NamedTuple):
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


def _make(making: _Making, declared: Declaration) -> Optional[Slot]:
    """Create what the file lacks of one table; returns its slot, if that has changed."""
    store, catalogue, slots, txn, open_space, drop_indexes, again, links = making
    slot = slots.get(declared.name)
    _compare(store, slot, declared)
    new = slot is None
    if slot is None:
        number = catalogue.allocate(txn, slots)
        slot = Slot(declared.name, number, declared.uuid, declared.class_name, declared.description)
        slots[declared.name] = slot
    lost = _lost(store, catalogue, slots, declared) if again else []
    if lost:
        log.warning("%s: another program dropped the table or one of its indexes: it is created again", slot.name)
        _forget_attached(catalogue, slots, declared.name, txn)
    if not (lost or new or _lacking(slot, declared, drop_indexes)):
        return None
    slot = slots[declared.name] = slot.copy()
    found = verdict(slot, declared, opening=True)
    build = _to_build(slot, declared, found, drop_indexes)
    reading = None if new else _reading(store, slot, declared, found)
    slot.indexes = dict(_indexes(slot, declared))
    slot.key, slot.value = _stored_key(store, declared).name, declared.value.name
    slot.model = declared.value.model
    slot.key_field = None if declared.key_field is None else declared.key_field.path
    record(slot, declared, found, new=new)
    slot.add_to_history(declared.fingerprint)
    handle = _open(catalogue.keyspace(slot).space, open_space)
    if declared.feed is not None or slot.has_feed:
        _begin_feed(making, slot, txn.stat(handle)["entries"] if handle is not None else 0)
    catalogue.write(txn, slot)
    if reading is not None:
        count = rewrite(txn, handle, storage_of(store, catalogue, slots, declared), reading)
        _rewrite_feed(making, slot, storage_of(store, catalogue, slots, declared), reading)
        log.info("%s: %d records have the new names of their fields", slot.name, count)
    if drop_indexes:
        links += [(declared, name) for name in _unwanted(slot, declared) if "link" in slot.indexes[name]]
        _drop_others(store, catalogue, slot, declared, txn, open_space)
    for name in dict.fromkeys((*build, *filter(None, lost))):
        _build(store, catalogue, slots, declared, name, txn, open_space)
        if name and "link" in declared.definitions[name]:
            links.append((declared, name))
    catalogue.write(txn, slot)
    return slot


def _reading(store: Store, slot: Slot, declared: Declaration, found: Verdict) -> Optional[Serializer[Any]]:
    """The reader of records whose fields have other names than declared; None if they have the declared names."""
    relation = found.relation
    if relation is None or not relation.rewritten or slot.fields is None or not relation.readable:
        return None
    from ..values.renamedfields import renamed_serializer  # late: it is needed once for a name

    return renamed_serializer(_stored_value(store, declared), slot.fields, relation.renames)


def _begin_feed(making: _Making, slot: Slot, records: int) -> None:
    """Begin the change feed of a table, which has so many records, unless the file has it."""
    from ..feed.log import LOST, begin  # late, as wherever a feed is used

    lost = _lost_feed(making.store, making.catalogue, slot) and making.again
    keyspace = making.catalogue.feed_keyspace(slot.name)
    if keyspace is None or keyspace.space is None or (slot.has_feed and not lost):
        return
    # Who begins with the first change must know of records from before, and who went on of changes in between.
    after = min(records, 1) if slot.feed is None else slot.feed["after"] + (LOST if lost else 1)
    slot.feed = {"after": after}
    begin(making.txn, making.open_space(keyspace.space), after)


def _rewrite_feed(making: _Making, slot: Slot, storage: Storage[Any, Any], reading: Serializer[Any]) -> None:
    """Give the values in the change feed of a table, if it has one, the names that its records have now."""
    keyspace = making.catalogue.feed_keyspace(slot.name) if slot.has_feed else None
    if keyspace is not None and keyspace.space is not None:
        from ..feed.log import rewrite  # late, as wherever a feed is used

        rewrite(making.txn, making.open_space(keyspace.space), lambda data: storage.value.encode(reading.decode(data)))


def _record_changes(
    store: Store, catalogue: Catalogue, storage: Storage[Any, Any], number: int, keep: Any
) -> None:  # fmt: skip
    """Let the changes of a table with a change feed be recorded."""
    from ..feed.recorder import Recorder  # late: few tables have one

    keyspace = catalogue.feed_keyspace(storage.name)
    if keyspace is not None and keyspace.space is not None:
        storage.followers = (*storage.followers, Recorder(store, keyspace.space, number, keep))


def _forget_attached(catalogue: Catalogue, slots: Mapping[str, Slot], target: str, txn: Transaction) -> None:
    """Remove the record that classic maps have the table *target* as an index: they then build it again."""
    for slot in slots.values():
        kept = {name: record for name, record in slot.attached.items() if record.get("target") != target}
        if len(kept) != len(slot.attached):
            catalogue.write_attached(txn, slot.name, kept)


def _open(space: Optional[bytes], open_space: OpenSpace) -> Handle:
    return None if space is None else open_space(space)


def _drop_others(
    store: Store, catalogue: Catalogue, slot: Slot, declared: Declaration, txn: Transaction, open_space: OpenSpace
) -> None:
    for name in _unwanted(slot, declared):
        log.warning("index %s.%s is no longer declared: dropped, as requested", slot.name, name)
        _empty(catalogue, slot, name, txn, open_space)
        del slot.indexes[name]


def _empty(catalogue: Catalogue, slot: Slot, name: str, txn: Transaction, open_space: OpenSpace) -> None:
    """Delete the entries of an index, unless they belong to a classic table that the index uses."""
    if slot.indexes[name].get("table") is not None:
        return
    keyspace = catalogue.index_keyspace(slot, name)
    handle = _open(keyspace.space, open_space)
    if not keyspace.prefix:
        txn.drop(handle, delete=False)
        return
    cursor = txn.cursor(handle)
    for key in list(prefixed_keys(cursor, keyspace.prefix)):
        txn.delete(key, db=handle)


def _build(
    store: Store, catalogue: Catalogue, slots: dict[str, Slot], declared: Declaration, name: str, txn: Transaction,
    open_space: OpenSpace,
) -> None:  # fmt: skip
    """Define the index *name* again and write its entries for the records of the table."""
    slot = slots[declared.name]
    definition = dict(declared.definitions[name])
    known = name in slot.indexes and slot.indexes[name].get("table") == definition.get("table")
    if known:
        _empty(catalogue, slot, name, txn, open_space)
        slot.indexes[name] = {
            **definition,
            **{key: slot.indexes[name][key] for key in ("slot",) if key in slot.indexes[name]},
        }
    else:
        catalogue.add_index(txn, slots, slot, name, definition)
        _empty(catalogue, slot, name, txn, open_space)  # of what a program wrote that knew an index of this name before
    storage = storage_of(store, catalogue, slots, declared)
    index = next(index for index in storage.indexes if index.name == name)
    handle = _open(index.storage.space, open_space)
    table_handle = _open(storage.space, open_space)
    if declared.indexes[name].adopts is not None and index.storage.any(txn.cursor(handle)):
        return  # written by zlmdb <= 26, and trusted
    entries = build(_logged(_rows(txn, table_handle, storage), index.storage.name), storage, index, txn, handle)
    if entries:
        log.info("index %s built: %d entries", index.storage.name, entries)


def _rows(txn: Transaction, handle: Handle, storage: Storage[Any, Any]) -> Iterator[tuple[bytes, Any]]:
    cursor = txn.cursor(handle)
    found = seek(cursor, storage.lower, storage.upper)
    return pairs_from(cursor, storage.lower, storage.upper) if found else iter(())


def _logged(rows: Any, index: str) -> Any:
    for count, row in enumerate(rows, 1):
        if count % _PROGRESS == 0:
            log.info("building index %s: %d records", index, count)
        yield row


def storage_of(
    store: Store, catalogue: Catalogue, slots: Mapping[str, Slot], declared: Declaration
) -> Storage[Any, Any]:
    """The storage of a declared table. A table that the file does not have reads as empty."""
    slot = slots.get(declared.name) or Slot(declared.name, 1)
    size = store.environment.max_key_size()
    keyspace = catalogue.keyspace(slot)
    key = _stored_key(store, declared)
    absent = declared.name not in slots
    known = _known(slot, declared)
    space = b"t:" + declared.name.encode() if absent else keyspace.space
    value = None
    if slot.fields != declared.described:
        value = _reading(store, slot, declared, verdict(slot, declared, opening=False))
    value = _stored_value(store, declared) if value is None else value
    storage = Storage(declared.name, space, keyspace.prefix, key, value, size)
    storage.key_field = declared.key_field
    storage.number = 0 if absent else slot.number
    storage.alone = not keyspace.prefix
    storage.model = declared.model, declared.names
    storage.key_type = declared.key_type
    for name, index in declared.indexes.items():
        if name not in known:
            continue
        index_keyspace = catalogue.index_keyspace(slot, name)
        index_key = index.key.classic() if store.layout == "classic" else index.key
        full_name = f"{declared.name}.{name}"
        prefix = index_keyspace.prefix
        if index.unique and index_key.width is None and index.adopts is None:
            prefix = prefix or EMPTY_KEY_PREFIX
        entries = Storage(full_name, index_keyspace.space, prefix, index_key, declared.value, size)
        entries.alone = not index_keyspace.prefix
        storage.indexes.append(
            index.storage(
                name,
                entries,
                unique=index.unique,
                get_key=index.get_key,
                primary=None if index.unique else key,
                adopted=index.adopts is not None,
                enforced=index.adopts is None,
                field=index.field,
                as_stored=index.as_stored,
                definition=index.definition,
                where=index.where,
            )
        )
    if declared.expiry is not None:
        from ..tables.expiring import Kinds  # late: in many programs nothing expires

        times = declared.indexes[EXPIRES]
        storage.expiring = Kinds(declared.expiry, times.key.name, times.get_key)
    if declared.feed is not None and slot.has_feed:
        _record_changes(store, catalogue, storage, slot.number, declared.feed)
    storage.find_indexes = _IndexFinder(store, catalogue, slot, known, declared)
    storage.file_indexes = storage.find_indexes.first
    return storage


def _adopted(slot: Slot) -> dict[str, Optional[str]]:
    """The tables of zlmdb 26 that declared indexes use, by the name of the index."""
    return {name: definition.get("table") for name, definition in slot.indexes.items()}


def _known(slot: Slot, declared: Declaration) -> dict[str, dict[str, Any]]:
    """The indexes that the file has with their declared definitions."""
    outdated = _outdated(slot, declared)
    return {name: slot.indexes[name] for name in declared.definitions if name not in outdated}


class _IndexFinder:
    """Compares the declared indexes and fields of a table with those of the file, in a transaction.

    Another program may have added, changed or dropped indexes: this program must neither leave them incomplete nor read
    them. It may also have given the records another shape.
    """

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        slot: Slot,
        known: Mapping[str, dict[str, Any]],
        declared: Declaration,
    ) -> None:
        self._catalogue = catalogue
        self._name = slot.name
        self._known = known
        self._declared = declared
        self._key = slot.key
        self._number = slot.number
        self._latest: int = store.environment.info()[
            "last_txnid"
        ]  # snapshots up to this one may be older than the table
        self.first = self._verdict(slot)
        self._seen: tuple[Optional[int], Any, Any] = None, slot.records, self.first

    def __call__(self, txn: Transaction, era: Optional[int]) -> FileIndexes:
        """The state of the known indexes, the unknown ones, and what the shape of the records allows.

        The catalogue is read again if the transaction has no *era*, or another one than the latest.
        """
        known, records, verdict = self._seen  # in one step: other threads ask as well
        if era is None or era != known:
            now = self._catalogue.records(txn, self._name)
            if now != records:
                slot = self._catalogue.slot(txn, self._name, self._number)
                older = slot is None and txn.id() <= self._latest  # than the table, of which it has no records
                verdict = FileIndexes() if older else self._verdict(slot or Slot(self._name, 1))
            self._seen = era, now, verdict
        found: FileIndexes = verdict
        return found

    def _verdict(self, slot: Slot) -> FileIndexes:
        if slot.key is None and self._key is not None:
            return FileIndexes(unreadable="another program has dropped it from the file: open the database again")
        gone = frozenset(name for name, definition in self._known.items() if slot.indexes.get(name) != definition)
        declared = self._declared
        if slot.key is None or (slot.fields == declared.described and slot.unsettled is None):
            found = FITS
        else:
            found = verdict(slot, declared, opening=False)
        older = len(slot.history) > 1 and self._declared.fingerprint in slot.history[:-1]
        unwritable = found.unwritable
        if slot.feed is not None or declared.feed is not None:
            unwritable = unwritable or of_feed(slot, declared, older)
        undeletable = (unknown_referrers(slot, declared) or None) if slot.referred else None
        return FileIndexes(gone, self.unknown(slot), _adopted(slot), older, found.refused, unwritable, undeletable)

    def unknown(self, slot: Slot) -> tuple[str, ...]:
        """The indexes of the file that this program does not maintain."""
        if not slot.indexes and not slot.attached:
            return ()
        ours = {definition.get("table") for definition in self._known.values()}
        attached = [
            name for name, record in slot.attached.items() if self._declared.strict and record.get("target") not in ours
        ]
        return (*(name for name, one in slot.indexes.items() if self._known.get(name) != one), *attached)
