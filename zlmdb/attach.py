"""Bringing what a program declares and what a file has together: tables created, types compared, indexes built."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, Optional, TypeVar, get_args, get_origin
from uuid import UUID

from . import errors
from .catalogue import Catalogue, Slot, catalogue_of
from .index import DeclaredIndex
from .indexstorage import IndexStorage
from .keys import KeyCodec, key_codec
from .keys import from_name as key_from_name
from .query import Model
from .storage import Storage, Watched
from .store import Store
from .table import Table
from .tableclass import declared_indexes
from .typeargs import type_arguments
from .upkeep import build
from .values import FlatBuffersViewSerializer, serializer
from .values import from_name as value_from_name
from .values.base import Serializer

log = logging.getLogger("zlmdb")

OpenSpace = Callable[[bytes], Any]
EMPTY_KEY_PREFIX = b"k"
"""What entries of a unique index of texts begin with in a sub-database of their own, which has no empty keys."""

_PROGRESS = 100_000  # records between two lines in the log while an index is built


class Declaration(NamedTuple):
    """What a program says of one table. *strict*: its class says which indexes there are; others are dropped."""

    identity: str
    uuid: Optional[UUID]
    title: str
    description: Optional[str]
    key: KeyCodec[Any]
    value: Serializer[Any]
    model: Any
    indexes: Mapping[str, DeclaredIndex[Any]]
    strict: bool = False
    names: Optional[Mapping[str, Any]] = None

    def definitions(self) -> dict[str, dict[str, Any]]:
        """The definitions of the indexes, as the catalogue records them."""
        found: dict[str, dict[str, Any]] = {}
        for name, index in self.indexes.items():
            found[name] = index.definition(self.model)
            if index.adopts is not None:
                found[name]["table"] = str(index.adopts)
        return found


def declaration(declared: Any, attribute: str, localns: Optional[Mapping[str, Any]] = None) -> Declaration:
    """What *declared*, a subclass of Table or an alias ``Table[K, V]``, says; *attribute* names it in a schema."""
    cls: type[Table[Any, Any]] = get_origin(declared) or declared
    names = {**(localns or {}), **(cls.locals_seen or {})}
    uuid = cls.table_uuid
    try:
        arguments = type_arguments(declared, Table, names)
        if len(arguments) != 2 or isinstance(arguments[0], TypeVar):
            raise TypeError(f"{cls.__name__} says no types: derive it from Table[KeyType, ValueType]")
        key_type, value_type = arguments
        key, value = key_codec(key_type), serializer(value_type, localns=names)
    except TypeError as error:
        raise TypeError(f"table {attribute!r}: {error}") from error
    return Declaration(
        identity=str(uuid) if uuid is not None else cls.table_name or attribute,
        uuid=uuid,
        title=cls.__name__ if cls is not Table else attribute,
        description=None if cls is Table else (vars(cls).get("__doc__") or "").strip() or None,
        key=key,
        value=value,
        model=get_args(value_type)[0] if hasattr(value_type, "__metadata__") else value_type,
        indexes=declared_indexes(cls),
        strict=cls is not Table,
        names=names,
    )


def attach(
    store: Store, declarations: Sequence[Declaration], *, create: bool = True, timeout: Optional[float] = None
) -> list[Storage[Any, Any]]:  # fmt: skip
    """The storages of *declarations*, after creating the tables and building the indexes that the file lacks.

    What is missing is made in one write transaction, into which no other process can step. Raises `SchemaMismatch` when
    the file's types are others.
    """
    catalogue = catalogue_of(store)
    slots = _read(store, catalogue)
    for declared in declarations:
        _compare(store, slots.get(declared.identity), declared)
    if create and not store.readonly and any(_lacking(slots.get(one.identity), one) for one in declarations):
        slots = store.change(lambda txn, space: _create(store, catalogue, declarations, txn, space), timeout=timeout)
    store.open_spaces(_spaces(catalogue, slots), timeout=timeout)
    return [_storage(store, catalogue, slots, declared) for declared in declarations]


def undeclared(store: Store, identity: str) -> Optional[Storage[Any, Any]]:
    """The storage of a table that no schema declares, read as plain data; None when the file has no such table."""
    catalogue = catalogue_of(store)
    slots = _read(store, catalogue)
    slot = slots.get(identity)
    if slot is None:
        slot = next((slot for slot in slots.values() if slot.title == identity), None)
    if slot is None:
        return None
    if slot.key is None or slot.value is None:
        raise errors.SchemaMismatch(
            f"table {identity!r} was made by zlmdb <= 26, which does not store types: declare it with "
            f"uuid={identity!r}",
            table=identity,
        )
    try:
        key, value = key_from_name(slot.key), value_from_name(slot.value)
    except (TypeError, ValueError) as error:
        raise errors.SchemaMismatch(f"table {identity!r}: {error}", table=identity) from error
    store.open_spaces(_spaces(catalogue, {slot.identity: slot}))
    place = catalogue.place(slot)
    storage = Storage(slot.identity, place.space, place.prefix, key, value, store.env.max_key_size())
    storage.missing_indexes = (*slot.indexes, *slot.attached)
    return storage


def tables(store: Store) -> dict[str, Slot]:
    """Every table of the file, by identity."""
    return _read(store, catalogue_of(store))


def _read(store: Store, catalogue: Catalogue) -> dict[str, Slot]:
    with store.reading() as txn:
        return catalogue.read(txn)


def _spaces(catalogue: Catalogue, slots: Mapping[str, Slot]) -> list[bytes]:
    places = [catalogue.place(slot) for slot in slots.values()]
    places += [catalogue.index_place(slot, name) for slot in slots.values() for name in slot.indexes]
    return [place.space for place in places if place.space is not None]


def _stored_key(store: Store, declared: Declaration) -> KeyCodec[Any]:
    return declared.key.classic() if store.layout == "classic" else declared.key


def _stored_value(store: Store, declared: Declaration) -> Serializer[Any]:
    return declared.value.classic() if store.layout == "classic" else declared.value


def _compare(store: Store, slot: Optional[Slot], declared: Declaration) -> None:
    """Raise `SchemaMismatch` naming both sides when the file's types are not those declared."""
    if slot is None:
        return
    for what, stored, wanted in (
        ("keys", slot.key, _stored_key(store, declared).name),
        ("values", slot.value, declared.value.name),
    ):
        if stored is not None and stored != wanted:
            raise errors.SchemaMismatch(
                f"table {declared.identity!r} in the file has {what} of type {stored} (written by class "
                f"{slot.title}), {declared.title} declares {wanted}: declare the stored type, or use another name",
                table=declared.identity,
            )


def _lacking(slot: Optional[Slot], declared: Declaration) -> bool:
    """Whether the file has to be changed for *declared*."""
    if slot is None or slot.key is None or slot.value is None:
        return True
    return bool(_outdated(slot, declared)) or (declared.strict and bool(slot.indexes.keys() - declared.indexes.keys()))


def _outdated(slot: Slot, declared: Declaration) -> list[str]:
    """The declared indexes that the file lacks, or has by another definition."""
    stored = {
        name: {key: value for key, value in definition.items() if key != "slot"}
        for name, definition in slot.indexes.items()
    }
    return [name for name, definition in declared.definitions().items() if stored.get(name) != definition]


def _create(
    store: Store, catalogue: Catalogue, declarations: Sequence[Declaration], txn: Any, open_space: OpenSpace
) -> dict[str, Slot]:
    """Make what the file lacks. Reads the catalogue again: another process may have made it meanwhile."""
    slots = catalogue.read(txn)
    for declared in declarations:
        slot = slots.get(declared.identity)
        _compare(store, slot, declared)
        if slot is None:
            slot = Slot(
                declared.identity, catalogue.allocate(txn, slots), declared.uuid, declared.title, declared.description
            )
            slots[declared.identity] = slot
        if _lacking(slot, declared):
            slot.key, slot.value = _stored_key(store, declared).name, declared.value.name
            slot.model = declared.value.model
            _open(catalogue.place(slot).space, open_space)
            catalogue.write(txn, slot)
            if declared.strict:
                _drop_others(store, catalogue, slot, declared, txn, open_space)
            for name in _outdated(slot, declared):
                _build(store, catalogue, slots, declared, name, txn, open_space)
            catalogue.write(txn, slot)
    return slots


def _open(space: Optional[bytes], open_space: OpenSpace) -> Any:
    return None if space is None else open_space(space)


def _drop_others(
    store: Store, catalogue: Catalogue, slot: Slot, declared: Declaration, txn: Any, open_space: OpenSpace
) -> None:
    for name in slot.indexes.keys() - declared.indexes.keys():
        log.warning("index %s.%s is not declared any more: dropped", slot.identity, name)
        _empty(catalogue, slot, name, txn, open_space)
        del slot.indexes[name]


def _empty(catalogue: Catalogue, slot: Slot, name: str, txn: Any, open_space: OpenSpace) -> None:
    """Delete the entries of an index, unless they are those of a classic table that was adopted."""
    if slot.indexes[name].get("table") is not None:
        return
    place = catalogue.index_place(slot, name)
    handle = _open(place.space, open_space)
    if not place.prefix:
        txn.drop(handle, delete=False)
        return
    cursor = txn.cursor(handle)
    rows = cursor.iternext(True, False) if cursor.set_range(place.prefix) else ()
    keys = [bytes(key) for key in _while_prefix(rows, place.prefix)]
    for key in keys:
        txn.delete(key, db=handle)


def _while_prefix(rows: Any, prefix: bytes) -> Any:
    for key in rows:
        if key[: len(prefix)] != prefix:
            return
        yield key


def _build(
    store: Store, catalogue: Catalogue, slots: dict[str, Slot], declared: Declaration, name: str, txn: Any,
    open_space: OpenSpace,
) -> None:  # fmt: skip
    """Define the index *name* anew and write its entries for the records that the table has."""
    slot = slots[declared.identity]
    definition = declared.definitions()[name]
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
    storage = _storage(store, catalogue, slots, declared)
    index = next(index for index in storage.indexes if index.name == name)
    handle = _open(index.storage.space, open_space)
    table_handle = _open(storage.space, open_space)
    if declared.indexes[name].adopts is not None and index.storage.any(txn.cursor(handle)):
        return  # written by zlmdb <= 26, and trusted
    entries = build(_logged(_rows(txn, table_handle, storage), index.storage.label), storage, index, txn, handle)
    if entries:
        log.info("index %s built: %d entries", index.storage.label, entries)


def _rows(txn: Any, handle: Any, storage: Storage[Any, Any]) -> Any:
    cursor = txn.cursor(handle)
    found = cursor.set_range(storage.lower) if storage.lower else cursor.first()
    for row in cursor.iternext() if found else ():
        if row[0] >= storage.upper:
            return
        yield row


def _logged(rows: Any, label: str) -> Any:
    for count, row in enumerate(rows, 1):
        if count % _PROGRESS == 0:
            log.info("building index %s: %d records", label, count)
        yield row


def _storage(store: Store, catalogue: Catalogue, slots: Mapping[str, Slot], declared: Declaration) -> Storage[Any, Any]:
    """The storage of a declared table. One that the file does not have reads as empty."""
    slot = slots.get(declared.identity) or Slot(declared.identity, 1)
    size = store.env.max_key_size()
    place = catalogue.place(slot)
    key = _stored_key(store, declared)
    absent = declared.identity not in slots
    known = _known(slot, declared)
    space = b"t:" + declared.identity.encode() if absent else place.space
    storage = Storage(declared.identity, space, place.prefix, key, _stored_value(store, declared), size)
    storage.number = 0 if absent else slot.number
    storage.alone = not place.prefix
    storage.model = Model(declared.model, declared.names, listed=isinstance(declared.value, FlatBuffersViewSerializer))
    for name, index in declared.indexes.items():
        if name not in known:
            continue
        index_place = catalogue.index_place(slot, name)
        index_key = index.declared_key(declared.model)
        if store.layout == "classic":
            index_key = index_key.classic()
        label = f"{declared.identity}.{name}"
        prefix = index_place.prefix
        if index.unique and index_key.width is None and index.adopts is None:
            prefix = prefix or EMPTY_KEY_PREFIX
        entries = Storage(label, index_place.space, prefix, index_key, declared.value, size)
        entries.alone = not index_place.prefix
        storage.indexes.append(
            IndexStorage(
                name,
                entries,
                unique=index.unique,
                get_key=index.getter(declared.model),
                primary=None if index.unique else key,
                adopted=index.adopts is not None,
                enforced=index.adopts is None,
                field=index.attribute(declared.model),
                as_stored=not index.comes_back(declared.model),
            )
        )
    storage.watch = _Watch(catalogue, slot, known, strict=declared.strict)
    storage.missing_indexes = storage.watch.unknown(slot)
    storage.adopted = _adopted(slot)
    return storage


def _adopted(slot: Slot) -> dict[str, Optional[str]]:
    """The tables of zlmdb <= 26 that declared indexes are, by the name of the index."""
    return {name: definition.get("table") for name, definition in slot.indexes.items()}


def _known(slot: Slot, declared: Declaration) -> dict[str, dict[str, Any]]:
    """The indexes that the file has as they are declared."""
    outdated = _outdated(slot, declared)
    return {name: slot.indexes[name] for name in declared.indexes if name not in outdated}


class _Watch:
    """Compares the indexes that a program knows of a table with those that the file has in a transaction.

    Another program may have added, changed or dropped some: this one must neither leave them incomplete nor read them.
    """

    def __init__(self, catalogue: Catalogue, slot: Slot, known: Mapping[str, dict[str, Any]], *, strict: bool) -> None:
        self._catalogue = catalogue
        self._identity = slot.identity
        self._known = known
        self._strict = strict
        self._seen: tuple[Optional[int], Any, Any] = None, None, None

    def __call__(self, txn: Any, era: Optional[int]) -> Watched:
        """Which of the known indexes are gone or changed, which others there are, and which tables those adopt.

        They are read again where the transaction is of no *era*, or of another than the latest one.
        """
        known, records, verdict = self._seen  # in one step: other threads ask as well
        if era is None or era != known:
            now = self._catalogue.records(txn, self._identity)
            if now != records:
                verdict = self._verdict(txn)
            self._seen = era, now, verdict
        found: Watched = verdict
        return found

    def _verdict(self, txn: Any) -> Watched:
        slot = self._catalogue.read(txn).get(self._identity) or Slot(self._identity, 1)
        gone = frozenset(name for name, definition in self._known.items() if slot.indexes.get(name) != definition)
        return gone, self.unknown(slot), _adopted(slot)

    def unknown(self, slot: Slot) -> tuple[str, ...]:
        """The indexes of the file that this program does not keep in step."""
        ours = {definition.get("table") for definition in self._known.values()}
        attached = [name for name, record in slot.attached.items() if self._strict and record.get("target") not in ours]
        return (*(name for name, one in slot.indexes.items() if self._known.get(name) != one), *attached)
