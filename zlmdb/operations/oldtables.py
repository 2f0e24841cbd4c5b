"""The tables as they were when a migration began, and the operations of a migration on them.

A step that changes the shape of a table works on plain data, because a class of the old shape may no longer exist. It
runs in one write transaction, and reads the old records in a snapshot of its own, so it never reads its own writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Optional, Union

from .. import errors
from ..engines import Handle, Transaction
from ..keys import from_name as key_from_name
from ..namedtuples import NamedTuple
from ..schema.changedshape import record
from ..schema.comparison import mismatch
from ..schema.declaration import Declaration
from ..schema.feeds import begin_in, cut_feed
from ..schema.indexbuilding import forget_index
from ..schema.links import record as record_links
from ..schema.plaindata import Plain, other_fields, plain_of, reader_of
from ..schema.rewrite import blocks
from ..schema.storages import storage_of
from ..schema.verdict import FITS
from ..shown import nearest
from ..store.catalogue import Catalogue, catalogue_of
from ..store.ranges import delete_prefixed, pairs_between, prefixed
from ..store.slots import Keyspace, Slot
from ..store.store import Store
from ..tables.storage import Storage
from ..tables.table import Table
from ..tables.upkeep import build
from .brokenlinks import check_links
from .progress import Told, counted

if TYPE_CHECKING:
    from .keptrecords import KeptRecords

Change = Callable[[Any, Any], Any]
"""Of a key and the fields of a record: the fields that it is to have, or None to leave it out."""


class Step(NamedTuple):
    """The objects of a step: the tables *t* of the schema in its transaction *txn*, and the *before* of it.

    *declared* has the declarations by name and *attributes* the tables' attributes and classes. *name* is the step's.
    In a dry run, *before* of a later step is its own transaction, since earlier ones have not committed. The first
    access to a keyspace then copies its records to *kept*.
    """

    store: Store
    t: Any
    before: Transaction
    declared: Mapping[str, Declaration]
    attributes: Mapping[str, tuple[str, type[Table[Any, Any]]]]
    name: str
    told: Told
    kept: dict[Keyspace, KeptRecords]

    @property
    def txn(self) -> Transaction:
        """The engine's transaction, for writing."""
        return self.t.txn._engine_txn

    @property
    def catalogue(self) -> Catalogue:
        """The file's records about its tables."""
        return catalogue_of(self.store)

    def handle(self, keyspace: Keyspace) -> Optional[tuple[Handle]]:
        """The handle of a keyspace as a 1-tuple; None if the keyspace does not exist."""
        space = self.store.space(keyspace.space)
        return None if space is None else (space.handle,)


class OldTables(Mapping[str, "OldTable"]):
    """The tables of the file as they were when the step began, by name; the second argument of a migration.

    ``old["users"]`` is a mapping from keys to plain data: a dict of the fields with their old names and with the values
    that the format stores (UUIDs, dates and decimals are text). It also has tables that the schema no longer declares.
    """

    def __init__(self, step: Step) -> None:
        self._step = step
        self._unpickled: set[str] = set()
        self._slots = step.catalogue.read(step.before)

    def __getitem__(self, name: str) -> OldTable:
        return OldTable(self._step, self._slot(name), unpickle=name in self._unpickled)

    def unpickled(self, name: str, /) -> OldTable:
        """As ``old[name]``, but loads pickles of a table even if the program does not declare them.

        Those of ``Table[K, Pickle]`` are the objects. Anyone who can write the file can then run code here. `take` and
        `rewrite` do the same afterwards.
        """
        self._unpickled.add(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._slots)

    def __len__(self) -> int:
        return len(self._slots)

    def take(self, name: str, /) -> OldTable:
        """The records of a table whose shape changes; the table is then empty, and takes records of the new shape.

        ``for key, fields in old.take("users").items(): t.users[key] = User(...)``. Raises `KeyError`.
        """
        old = self[name]
        declared = self._step.declared.get(name)
        if declared is None:
            raise KeyError(f"the schema declares no table {name!r}: read it as old[{name!r}], and old.drop({name!r})")
        slot = self._emptied(name)
        _define(self._step, slot, declared)
        _bind(self._step, slot, declared)
        return old

    def rewrite(self, name: str, change: Change, /) -> int:
        """Give each record the fields that ``change(key, fields)`` returns, or delete it for None; returns the number.

        The fields are plain data, before and after. The last step must give all records the fields of the class: zlmdb
        then compares them with the class and builds the indexes.
        """
        step, old = self._step, self[name]
        rows = ((key, change(step_key, value)) for key, step_key, value in old.rows())
        slot = self._emptied(name)
        handle = step.handle(step.catalogue.keyspace(slot))
        count = 0
        for key, fields in rows:
            if fields is not None and handle is not None:
                step.txn.put(key, old.encode(key, fields), db=handle[0])
                count += 1
        slot.value, slot.fields, slot.unsettled = old.plain.name, None, step.name
        slot.indexes, slot.building = {}, {}
        step.catalogue.write(step.txn, slot)
        step.t.txn._count(count, 0)
        return count

    def drop(self, name: str, /) -> int:
        """Drop a table that the schema no longer declares, with its indexes; returns the number of its records."""
        if name in self._step.declared:
            raise ValueError(f"the schema declares the table {name!r}: take it out of the schema, or t.{name}.clear()")
        written = self._step.t.txn
        dels = written._dels
        slot = self._emptied(name)
        count = written._dels - dels  # of records that nobody needs to be able to read
        feed = None if slot.feed is None else self._step.catalogue.feed_space(slot.name)
        if feed is not None:
            _clear(self._step, Keyspace(feed, b""))
        self._step.catalogue.remove(self._step.txn, slot)
        return count

    def drop_index(self, table: str, index: str, /) -> None:
        """Drop an index that the table class no longer declares. Raises `KeyError`."""
        step = self._step
        slot = self._slot(table)
        if index not in slot.indexes:
            raise KeyError(
                f"table {table!r} has no index {index!r} in the file, but {', '.join(slot.indexes) or 'none'}"
            )
        now = step.catalogue.slot(step.txn, table)
        if now is not None and index in now.indexes:
            _clear(step, step.catalogue.index_keyspace(now, index))
            forget_index(step.catalogue, now, index, step.txn)
            step.catalogue.write(step.txn, now)
            step.t.txn._catalogue_changed()
            for bound in list(step.t.txn._tables.values()):
                if bound._storage.name == table:
                    bound._look_again()

    def _slot(self, name: str) -> Slot:
        slot = self._slots.get(name)
        if slot is None:
            raise KeyError(f"no table {name!r} in the file; {nearest(name, self._slots)}")
        return slot

    def _emptied(self, name: str) -> Slot:
        """The table as it is now, without records and indexes."""
        step = self._step
        slot = step.catalogue.slot(step.txn, name) or self._slot(name)
        for index in list(slot.indexes):
            if slot.indexes[index].get("table") is None:
                _clear(step, step.catalogue.index_keyspace(slot, index))
                step.catalogue.remove_index(step.txn, slot, index)
        step.t.txn._count(0, _clear(step, step.catalogue.keyspace(slot)))
        feed = _feed(step, slot) if slot.has_feed else None
        if feed is not None:
            cut_feed(step.txn, feed[0])
        step.t.txn._catalogue_changed()
        if name in step.attributes:  # from now on it is looked up anew
            attribute, _ = step.attributes[name]
            view: Any = step.t
            view.__dict__.pop(attribute, None)
            step.t.txn._tables.pop(attribute, None)
            step.t.txn._mix()
        return slot


class OldTable(Mapping[Any, Any]):
    """A table as it was when the step began: keys of its type, values as plain data."""

    def __init__(self, step: Step, slot: Slot, *, unpickle: bool = False) -> None:
        self._step = step
        self._slot = slot
        self.plain: Plain = plain_of(slot, step.declared.get(slot.name), unpickle=unpickle)
        self._key = step.store.traits.codec(key_from_name(str(slot.key)))
        self._keyspace = step.catalogue.keyspace(slot)
        self._handle = step.handle(self._keyspace)
        self._rows: Union[Transaction, KeptRecords] = step.before
        if step.before is step.txn and self._handle is not None:
            kept = step.kept.get(self._keyspace)
            if kept is None:
                from .keptrecords import KeptRecords  # late: of dry runs only

                rows = prefixed(step.before.cursor(self._handle[0]), self._keyspace.prefix)
                kept = step.kept[self._keyspace] = KeptRecords(rows)
            self._rows = kept

    def __getitem__(self, key: Any) -> Any:
        raw = self._keyspace.prefix + self._key.encode(key)
        found = None if self._handle is None else self._rows.get(raw, None, self._handle[0])
        if found is None:
            raise KeyError(key)
        return self._decoded(key, found)

    def __iter__(self) -> Iterator[Any]:
        return (key for _, key, _ in self._records())

    def __len__(self) -> int:
        if self._handle is None:
            return 0
        if not self._keyspace.prefix:
            return int(self._rows.stat(self._handle[0])["entries"])
        return sum(1 for _ in self._records())

    def items(self) -> Any:
        """The pairs of key and plain data, in the order of the keys."""
        return _Items(self)

    def rows(self) -> Iterator[tuple[bytes, Any, Any]]:
        """The encoded key, the key and the plain data of each record; reports the progress."""
        step = self._step
        for encoded, key, data in counted(self._records(), f"{step.name}: {self._slot.name}", step.told, len(self)):
            yield encoded, key, self._decoded(key, data)

    def _records(self) -> Iterator[tuple[bytes, Any, Any]]:
        if self._handle is None:
            return
        skip = len(self._keyspace.prefix)
        for encoded, data in prefixed(self._rows.cursor(self._handle[0]), self._keyspace.prefix):
            yield bytes(encoded), self._key.decode(bytes(encoded)[skip:]), data

    def _decoded(self, key: Any, data: Any) -> Any:
        try:
            return self.plain.decode(bytes(data))
        except errors.DecodeError as error:
            raise errors.DecodeError(
                f"table {self._slot.name!r}, key {key!r}: {error}", table=self._slot.name, key=key
            ) from error.__cause__

    def encode(self, key: bytes, fields: Any) -> bytes:
        """The bytes of plain data. Raises `EncodeError`."""
        try:
            return self.plain.encode(fields)
        except errors.EncodeError as error:
            name = self._slot.name
            raise errors.EncodeError(f"table {name!r}, key {key!r}: {error}", table=name, key=key) from error.__cause__


class _Items:
    """The pairs of an old table; counting does not read them."""

    def __init__(self, table: OldTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return ((key, value) for _, key, value in self._table.rows())


def settle(step: Step) -> None:
    """After the last step: convert rewritten tables to their classes. Raises `SchemaMismatch` if one does not fit."""
    for name, declared in step.declared.items():
        slot = step.catalogue.slot(step.txn, name)
        if slot is not None and slot.unsettled is not None:
            _settle(step, slot, declared)
            slot = step.catalogue.slot(step.txn, name)
        reason = mismatch(step.store, slot, declared)
        if reason is not None:
            raise errors.SchemaMismatch(
                f"all migrations have run, and {reason}; in the last one, old.rewrite({name!r}, change) or "
                f"old.take({name!r}) gives the records the shape of the class",
                table=name,
            )
        if slot is not None:
            _try_indexes(step, slot, declared)


def settle_links(step: Step, *, last: bool) -> None:
    """After a step: record which links lead to which tables; after the *last* one, check that none leads nowhere."""
    slots = step.catalogue.read(step.txn)
    if any(slot.referred for slot in slots.values()) or any(one.linked for one in step.declared.values()):
        record_links(step.catalogue, step.txn, slots)
        step.t.txn._catalogue_changed()
        if last:
            check_links(step.store, step.txn, slots, lambda space: step.handle(Keyspace(space, b"")))


def _settle(step: Step, slot: Slot, declared: Declaration) -> None:
    """Store the plain data of a rewritten table as values of its class, and build its indexes."""
    if slot.key != step.store.traits.codec(declared.key).name:
        raise errors.SchemaMismatch(
            f"table {slot.name!r} was rewritten with keys of type {slot.key}, and the class has {declared.key.name}: "
            f"use old.take({slot.name!r}), and store each record under its new key",
            table=slot.name,
        )
    stored = str(slot.value)
    read = reader_of(stored, declared)
    _define(step, slot, declared)
    storage = _storage(step, slot, declared)
    handle = step.handle(Keyspace(storage.space, storage.prefix))
    if handle is None:
        return
    others = partial(other_fields, stored, declared)
    found = (pair for block in blocks(step.txn, handle[0], storage) for pair in block)
    total = int(step.txn.stat(handle[0])["entries"]) if storage.alone else None
    for key, data in counted(found, f"{step.name}: {slot.name} fits", step.told, total):
        step.txn.put(key, _fitting(storage, read, key, data, others), db=handle[0])
    for index in storage.indexes:
        entries = step.handle(Keyspace(index.storage.space, index.storage.prefix))
        if entries is not None:
            stage = f"{step.name}: index {slot.name}.{index.name}"
            rows = counted(_rows(step, handle[0], storage), stage, step.told, total)
            step.t.txn._count(build(rows, storage, index, step.txn, entries[0]), 0)


def _try_indexes(step: Step, slot: Slot, declared: Declaration) -> None:
    """In a dry run: compute the entries of the indexes that the file lacks, since no sub-database can be made."""
    known = slot.indexes
    lacking = {name: dict(definition) for name, definition in declared.definitions.items() if name not in known}
    if not (lacking and step.store.traits.by_name):
        return
    slot = copy(slot)
    slot.indexes = {**known, **lacking}
    storage = _storage(step, slot, declared)
    handle = step.handle(Keyspace(storage.space, storage.prefix))
    for index in storage.indexes:
        if handle is not None and index.name in lacking and step.handle(Keyspace(index.storage.space, b"")) is None:
            step.t.txn._count(_try_index(partial(_rows, step, handle[0], storage), storage, index), 0)


def _try_index(rows: Callable[[], Iterator[tuple[bytes, bytes]]], storage: Storage[Any, Any], index: Any) -> int:
    """Compute the entries of *index*; their number. Raises `DuplicateKey` as `build` does."""
    from .triedentries import FirstOwner, TriedEntries  # late: of dry runs only

    with TriedEntries() as tried:
        target: Any = tried
        count = build(rows(), storage, index, target, None)
        twice = tried.twice()
    if twice is not None:
        target = FirstOwner(twice)
        build(rows(), storage, index, target, None)
    return count


def _rows(step: Step, handle: Handle, storage: Storage[Any, Any]) -> Iterator[tuple[bytes, bytes]]:
    return pairs_between(step.txn.cursor(handle), storage.lower, storage.upper)


def _fitting(
    storage: Storage[Any, Any], read: Callable[[Any], Any], key: bytes, data: bytes, others: Callable[[bytes], str]
) -> bytes:  # fmt: skip
    try:
        value = read(data)
        if storage.key_field is not None:
            storage.key_field.check(storage.name, storage.decode_key(key), value)
        return storage.value.encode(value)
    except (errors.DecodeError, errors.EncodeError) as error:
        shown = storage.decode_key(key)
        raise errors.SchemaMismatch(
            f"table {storage.name!r}, key {shown!r}: the migrations gave it fields that do not fit the class"
            f"{others(data)}: {error}",
            table=storage.name,
            key=shown,
        ) from error


def _feed(step: Step, slot: Slot) -> Optional[tuple[Handle]]:
    """Where the changes of a table are recorded; None in a layout without feeds, and in a dry run before the first."""
    space = step.catalogue.feed_space(slot.name)
    return None if space is None else step.handle(Keyspace(space, b""))


def _define(step: Step, slot: Slot, declared: Declaration) -> None:
    """Record the declared types, fields and indexes for the table."""
    catalogue, txn = step.catalogue, step.txn
    slot.fields = slot.unsettled = None
    record(step.store, slot, declared, FITS, new=True)
    indexes: dict[str, dict[str, Any]] = {}
    slot.indexes, slot.building = indexes, {}
    slots = catalogue.read(txn)
    for name, definition in declared.definitions.items():
        catalogue.add_index(txn, slots, slot, name, dict(definition))
        keyspace = catalogue.index_keyspace(slot, name)
        if step.handle(keyspace) is None:
            del indexes[name]  # a dry run makes no sub-databases
        elif definition.get("table") is None:
            _clear(step, keyspace)
    feed = None if declared.feed is None or slot.has_feed else _feed(step, slot)
    if feed is not None:
        records = step.handle(catalogue.keyspace(slot))
        begin_in(txn, feed[0], slot, 0 if records is None else int(txn.stat(records[0])["entries"]))
    catalogue.write(txn, slot)


def _storage(step: Step, slot: Slot, declared: Declaration) -> Storage[Any, Any]:
    if declared.feed is not None and not slot.has_feed:
        declared = copy(declared)  # a dry run makes no feed, either
        declared.feed = None
    return storage_of(step.store, step.catalogue, {slot.name: slot}, declared)


def _bind(step: Step, slot: Slot, declared: Declaration) -> None:
    """Give the schema object the table in its new shape."""
    attribute, cls = step.attributes[slot.name]
    txn = step.t.txn
    table = cls._bound(txn, _storage(step, slot, declared))
    txn._mix()
    txn._tables[attribute] = vars(step.t)[attribute] = table


def _clear(step: Step, keyspace: Keyspace) -> int:
    """Delete the content of a keyspace; returns the number of records."""
    handle = step.handle(keyspace)
    if handle is None:
        return 0
    if not keyspace.prefix:
        count = int(step.txn.stat(handle[0])["entries"])
        step.txn.drop(handle[0], delete=False)
        return count
    return delete_prefixed(step.txn, handle[0], keyspace.prefix)
