"""The records of a file about itself: its tables and indexes, their types, and their keyspaces.

In the tables layout, the reserved sub-database ``__zlmdb__`` has a record for each table. In the classic layout, the
metadata records of slot 0 number the slots, as zlmdb 26 writes them, and one more record of slot 0, which zlmdb 26
ignores, holds the definitions that it does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple, Optional, Union
from uuid import UUID, uuid5

from .. import errors
from ..engines import Transaction
from ..values.base import is_a
from ..values.description import checked_description
from . import definitions, layout
from .ranges import prefixed
from .store import Store

FIRST_SLOT, LAST_SLOT = 1, 65534

_BY_HAND = b"a:slot "
_KINDS = (b"t:", b"a:", b"m:", layout.MAGIC_KEY)  # what keys of the catalogue of the tables layout begin with
"""What the catalogue's keys of the indexes of maps with hand-given slots begin with."""

_OF_SLOT_0 = b"\x00\x00"  # what keys of the catalogue of the classic layout begin with

_HISTORY = 32
"""Declarations of a table that are remembered."""

_NAMES = UUID("6f0a3b0e-5f3c-5d0c-9a58-7a6c6d646200")
"""Namespace of the UUIDs that tables and indexes without one get in a classic file."""


class Slot:
    """A table's number and stored definition.

    *name* is the UUID, or else the declared name. *key* and *value* are names of codecs, None if the file does not
    record them. *indexes* are definitions by name, *attached* those of `attach_index`; *class_name* and *model* are
    class names, for information. *records*: the bytes from which it was read. *fields* describes the fields of the
    values' models (`values.description`), None if they are not recorded; *history* names the declarations that the
    table has had, the latest one last; *unsettled* is the migration that has stored records of a shape which the next
    one has to complete; *key_field* is the field of the values that is their key; *was* are former names; *referred*
    names the links to its records, each as a table and its link. *feed*: ``{"after": number}``, if the changes of the
    table are recorded; its first change was the one after *number*. With ``"ended"`` they were recorded.
    """

    def __init__(
        self,
        name: str,
        number: int,
        uuid: Optional[UUID] = None,
        class_name: str = "",
        description: Optional[str] = None,
        key: Optional[str] = None,
        value: Optional[str] = None,
        model: Optional[str] = None,
        indexes: Optional[dict[str, dict[str, Any]]] = None,
        attached: Optional[dict[str, dict[str, Any]]] = None,
        records: tuple[Optional[bytes], ...] = (),
        fields: Optional[dict[str, Any]] = None,
        history: Sequence[str] = (),
        unsettled: Optional[str] = None,
        key_field: Optional[str] = None,
        was: Sequence[str] = (),
        referred: Sequence[Sequence[str]] = (),
        feed: Optional[dict[str, Any]] = None,
    ) -> None:
        self.name = name
        self.number = number
        self.uuid = uuid
        self.class_name = class_name
        self.description = description
        self.key = key
        self.value = value
        self.model = model
        self.indexes = {} if indexes is None else indexes
        self.attached = {} if attached is None else attached
        self.records = records
        self.fields = fields
        self.history = list(history)
        self.unsettled = unsettled
        self.key_field = key_field
        self.was = list(was)
        self.referred = referred
        self.feed = feed

    @property
    def has_feed(self) -> bool:
        """Whether the changes of the table are recorded."""
        return self.feed is not None and not self.feed.get("ended")

    def copy(self) -> Slot:
        """One that can be changed without this one."""
        found = copy(self)
        found.indexes, found.attached, found.history = dict(self.indexes), dict(self.attached), list(self.history)
        return found

    def definition(self) -> dict[str, Any]:
        """The part that zlmdb 26 does not store, as a catalogue record."""
        record = {"key": self.key, "value": self.value, "model": self.model, "indexes": self.indexes,
                  "fields": self.fields, "history": self.history, "unsettled": self.unsettled,
                  "key_field": self.key_field, "was": self.was, "referred": self.referred,
                  "feed": self.feed}  # fmt: skip
        return {name: entry for name, entry in record.items() if entry not in (None, {}, [], ())}

    def add_to_history(self, declaration: str) -> None:
        """Record *declaration* as the latest one."""
        earlier = [one for one in self.history if one != declaration]
        self.history = [*earlier[1 - _HISTORY :], declaration]


class Keyspace(NamedTuple):
    """The place of records: the name of the space (None: the main one), and the prefix of their keys there."""

    space: Optional[bytes]
    prefix: bytes


def uuid_of(name: str) -> UUID:
    """The UUID that a table or index without one gets in a classic file: derived from its name."""
    return uuid5(_NAMES, name)


def slot_prefix(number: int) -> bytes:
    """The prefix of the keys of slot *number*.

    Raises `ValueError` outside 1 to 65534, `TypeError` for a value that is not an int.
    """
    if not isinstance(number, int) or isinstance(number, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"slot {number!r}: a slot is an int from {FIRST_SLOT} to {LAST_SLOT}")
    if not FIRST_SLOT <= number <= LAST_SLOT:
        raise ValueError(f"slot {number}: slots are numbered from {FIRST_SLOT} to {LAST_SLOT}")
    return number.to_bytes(2, "big")


class TablesCatalogue:
    """The catalogue of the tables layout."""

    records_attached = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch: Optional[Batch] = None

    def read(self, txn: Transaction) -> dict[str, Slot]:
        """Every table of the file, by name."""
        space = self._store.space(layout.CATALOGUE)
        if space is None:
            return {}
        rows = prefixed(txn.cursor(space.handle), b"t:")
        records = {_name(key): bytes(data) for key, data in rows}
        return {name: self._slot(txn, name, record) for name, record in records.items()}

    def slot(self, txn: Transaction, name: str, number: int = 0) -> Optional[Slot]:
        """The table *name*, or None. *number* was its slot; it may have changed, or be 0 for one that is not known."""
        record = self.records(txn, name)[0]
        return None if record is None else self._slot(txn, name, record)

    def _slot(self, txn: Transaction, name: str, record: bytes) -> Slot:
        attached = _copied(self._get(txn, b"a:" + name.encode()))
        entries = {} if attached is None else dict(layout.decode(attached))
        return slot_of(name, {**layout.decode(record), "attached": entries}, (record, attached))

    def write(self, txn: Transaction, slot: Slot) -> None:
        """Record *slot*."""
        record: dict[str, Any] = {"slot": slot.number, "name": slot.class_name}
        if slot.uuid is not None:
            record["uuid"] = str(slot.uuid)
        if slot.description:
            record["description"] = slot.description
        txn.put(b"t:" + slot.name.encode(), layout.encode({**record, **slot.definition()}), db=self._handle())

    def remove(self, txn: Transaction, slot: Slot) -> None:
        """Remove the record of the table *slot*."""
        for kind in (b"t:", b"a:"):
            txn.delete(kind + slot.name.encode(), db=self._handle())

    def allocate(self, txn: Transaction, slots: dict[str, Slot], reserved: Collection[int] = ()) -> int:
        """A free slot number. Slots given by hand have numbers of their own here."""
        batch = self._batch
        if batch is None or batch.txn is not txn:
            batch = Batch(txn)
        if batch.last is None:
            batch.last = max((slot.number for slot in slots.values()), default=0)
        batch.last = number = _checked(1 + batch.last)
        return number

    def keyspace(self, slot: Slot) -> Keyspace:
        """The keyspace of a table's records."""
        return Keyspace(b"t:" + slot.name.encode(), b"")

    def feed_keyspace(self, name: str) -> Optional[Keyspace]:
        """The keyspace of the change feed of the table *name*."""
        return Keyspace(b"f:" + name.encode(), b"")

    def slot_keyspace(self, number: int) -> Keyspace:
        """The keyspace of a map with a slot given by hand."""
        return Keyspace(layout.SLOTS, slot_prefix(number))

    def registered(self, txn: Transaction, number: int) -> Optional[str]:
        """None: slots given by hand have a keyspace of their own here."""
        return None

    def index_keyspace(self, slot: Slot, name: str) -> Keyspace:
        """The keyspace of a declared index's entries."""
        adopted = slot.indexes[name].get("table")
        if adopted is not None:
            return Keyspace(b"t:" + adopted.encode(), b"")
        return Keyspace(f"i:{slot.name}:{name}".encode(), b"")

    def moved_index(self, txn: Transaction, slot: Slot, name: str) -> None:
        """Nothing: an index has no record but the definition of its table."""

    def add_index(
        self, txn: Transaction, slots: dict[str, Slot], slot: Slot, name: str, definition: dict[str, Any],
        reserved: Collection[int] = (),
    ) -> None:  # fmt: skip
        """Put an index into the definition of *slot*."""
        slot.indexes[name] = definition

    @contextmanager
    def batch(self, txn: Transaction, last: Optional[int] = None) -> Generator[Batch, None, None]:
        """A block that writes many tables in *txn*: each has a record of its own, but the last number is read once.

        Or not at all, if *last* is known.
        """
        batch = self._batch = Batch(txn, last)
        try:
            yield batch
        finally:
            self._batch = None

    def attached(self, txn: Transaction, name: str) -> dict[str, dict[str, Any]]:
        """The indexes that `attach_index` recorded for a map, by name."""
        data = self._get(txn, b"a:" + name.encode())
        return {} if data is None else dict(layout.decode(data))

    def records(self, txn: Transaction, name: str) -> tuple[Optional[bytes], ...]:
        """The bytes that record the indexes of a table, for comparison with those of another time."""
        encoded = name.encode()
        return _copied(self._get(txn, b"t:" + encoded)), _copied(self._get(txn, b"a:" + encoded))

    def _get(self, txn: Transaction, key: bytes) -> Any:
        space = self._store.space(layout.CATALOGUE)
        return None if space is None else txn.get(key, None, space.handle)

    def damage(self, txn: Transaction) -> list[str]:
        """The problems of the catalogue, although it can be read."""
        keys = (bytes(key) for key in txn.cursor(self._handle()).iternext(True, False))
        return [f"it has the key {key!r}, which says nothing" for key in keys if not key.startswith(_KINDS)]

    def guarded(self, txn: Transaction) -> dict[bytes, str]:
        """What raw keys begin with that raw writes would break, and what follows the records there."""
        space = self._store.space(layout.CATALOGUE)
        if space is None:
            return {}
        rows = prefixed(txn.cursor(space.handle), _BY_HAND)
        found = {bytes(key[len(_BY_HAND) :]): ", ".join(layout.decode(data)) for key, data in rows}
        return {slot_prefix(int(number)): f"the indexes {names}" for number, names in found.items() if names}

    def write_attached(self, txn: Transaction, name: str, indexes: dict[str, dict[str, Any]]) -> None:
        """Record the attached indexes of a map."""
        txn.put(b"a:" + name.encode(), layout.encode(indexes), db=self._handle())

    def migrations(self, txn: Transaction) -> list[dict[str, Any]]:
        """The steps applied to the schema, in order: their version, name and time."""
        space = self._store.space(layout.CATALOGUE)
        if space is None:
            return []
        rows = prefixed(txn.cursor(space.handle), b"m:")
        return [dict(layout.decode(data)) for _, data in rows]

    def write_migration(self, txn: Transaction, record: dict[str, Any]) -> None:
        """Record a step."""
        txn.put(b"m:" + int(record["version"]).to_bytes(8, "big"), layout.encode(record), db=self._handle())

    def _handle(self) -> Any:
        space = self._store.space(layout.CATALOGUE)
        return None if space is None else space.handle


class Batch:
    """What is written together in *txn*: definitions of tables, None to remove one; the *last* slot number in use."""

    def __init__(self, txn: Transaction, last: Optional[int] = None) -> None:
        self.txn = txn
        self.last = last
        self.changed: dict[str, Optional[dict[str, Any]]] = {}


class ClassicCatalogue:
    """The catalogue of the classic layout."""

    records_attached = False

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch: Optional[Batch] = None

    @contextmanager
    def batch(self, txn: Transaction, last: Optional[int] = None) -> Generator[Batch, None, None]:
        """A block that writes many tables in *txn*: definitions that share a record are written at its end, together.

        If the *last* slot number in use is known, it is not read.
        """
        batch = self._batch = Batch(txn, last)
        try:
            yield batch
        finally:
            self._batch = None
        if batch.changed:
            definitions.write(self._store, txn, batch.changed)

    def _batch_of(self, txn: Transaction) -> Optional[Batch]:
        batch = self._batch  # other threads read meanwhile, in transactions of their own
        return batch if batch is not None and batch.txn is txn else None

    def read(self, txn: Transaction) -> dict[str, Slot]:
        """Every table of the file, by name; the slots of declared indexes are not tables."""
        records, defined, numbers = self._all(txn)
        names = {str(uuid_of(name)): name for name in defined}
        entries = [entry for record in defined.values() for entry in record.get("indexes", {}).values()]
        hidden = {entry.get("slot") for entry in entries if "table" not in entry}
        alone = records.get(layout.DEFINITIONS_KEY)
        slots: dict[str, Slot] = {}
        for number, record in numbers:
            if number in hidden or "oid" not in record:
                continue
            oid = str(record["oid"])
            name = names.get(oid, oid)
            bytes_of = records.get(definitions.key_of(name)), alone
            slots[name] = slot_of(name, {**record, "uuid": oid, **defined.get(name, {})}, bytes_of)
        return slots

    def _all(
        self, txn: Transaction
    ) -> tuple[dict[bytes, bytes], dict[str, dict[str, Any]], list[tuple[int, dict[str, Any]]]]:
        """The records of definitions, the definitions in them, and the metadata records by their slot."""
        records: dict[bytes, bytes] = {}
        numbers: list[tuple[int, dict[str, Any]]] = []
        for key, data in prefixed(txn.cursor(), _OF_SLOT_0):
            if len(key) == 4:
                numbers.append((int.from_bytes(key[2:], "big"), layout.metadata(data)))
            elif definitions.is_key(bytes(key)):
                records[bytes(key)] = bytes(data)
        defined: dict[str, dict[str, Any]] = {}
        for key, record in records.items():
            defined.update(definitions.decode(self._store, key, record))
        batch = self._batch_of(txn)
        if batch is not None:
            for name, definition in batch.changed.items():
                defined.pop(name, None)
                defined.update({} if definition is None else {name: definition})
        return records, defined, numbers

    def slot(self, txn: Transaction, name: str, number: int = 0) -> Optional[Slot]:
        """The table *name*, or None. *number* was its slot; it may have changed, or be 0 for one that is not known."""
        data = None if number == 0 else txn.get(_OF_SLOT_0 + slot_prefix(number))
        record = {} if data is None or self._batch_of(txn) is not None else layout.metadata(data)
        oid = str(record.get("oid"))
        if oid != name and oid != str(uuid_of(name)):
            return self.read(txn).get(name)
        records, definition = definitions.of_table(self._store, txn, name)
        return slot_of(name, {**record, "uuid": oid, **(definition or {})}, records)

    def write(self, txn: Transaction, slot: Slot) -> None:
        """Record *slot*: its metadata as zlmdb <= 26 does, where there is none yet, and its definition."""
        uuid = slot.uuid = slot.uuid or uuid_of(slot.name)
        self._write_number(txn, slot.number, uuid, slot.class_name, slot.description)
        self._define(txn, slot.name, slot.definition())

    def _define(self, txn: Transaction, name: str, definition: Optional[dict[str, Any]]) -> None:
        batch = self._batch_of(txn)
        if batch is None:
            definitions.write(self._store, txn, {name: definition})
        else:
            batch.changed[name] = definition

    def remove(self, txn: Transaction, slot: Slot) -> None:
        """Remove the record of the table *slot*."""
        self._define(txn, slot.name, None)
        entries = [one["slot"] for one in slot.indexes.values() if "slot" in one and "table" not in one]
        for number in (slot.number, *entries):
            txn.delete(_OF_SLOT_0 + slot_prefix(number))

    def allocate(self, txn: Transaction, slots: dict[str, Slot], reserved: Collection[int] = ()) -> int:
        """A slot number after all that have a metadata record, which no map with a hand-given slot uses.

        Nor is it one of *reserved*. Raises `CorruptDatabase` where a metadata record is damaged: it may be that of the
        table for which a number is asked.
        """
        batch = self._batch_of(txn)
        last = self._last(txn) if batch is None or batch.last is None else batch.last
        cursor = txn.cursor()
        by_hand = self._store.by_hand
        number = _checked(1 + last)
        while number in by_hand or number in reserved or _has_records(cursor, number):
            number = _checked(number + 1)
        cursor.close()
        if batch is not None:
            batch.last = number
        return number

    @staticmethod
    def _last(txn: Transaction) -> int:
        """The largest slot number that has a metadata record, or 0. Raises `CorruptDatabase` where one is damaged."""
        for damaged in _damaged(txn):
            raise errors.CorruptDatabase(
                f"the metadata record of slot {damaged} is damaged, so the name of a table is lost: restore a backup"
            )
        return max((number for number, _ in layout.slot_records(txn)), default=0)

    def keyspace(self, slot: Slot) -> Keyspace:
        """The keyspace of a table's records."""
        return self.slot_keyspace(slot.number)

    def feed_keyspace(self, name: str) -> Optional[Keyspace]:
        """None: zlmdb 26 would write to the table without recording anything."""
        return None

    def slot_keyspace(self, number: int) -> Keyspace:
        """The keyspace of a map with a slot given by hand."""
        return Keyspace(None, slot_prefix(number))

    def registered(self, txn: Transaction, number: int) -> Optional[str]:
        """The UUID of the table whose metadata record has the slot *number*, if any."""
        data = txn.get(_OF_SLOT_0 + slot_prefix(number))
        return None if data is None else str(layout.decode(data).get("oid"))

    def index_keyspace(self, slot: Slot, name: str) -> Keyspace:
        """The keyspace of a declared index's entries."""
        return self.slot_keyspace(slot.indexes[name]["slot"])

    def add_index(
        self, txn: Transaction, slots: dict[str, Slot], slot: Slot, name: str, definition: dict[str, Any],
        reserved: Collection[int] = (),
    ) -> None:  # fmt: skip
        """Add an index to the definition of *slot*, with a slot of its own, or that of the table it uses."""
        adopted = definition.get("table")
        if adopted is not None:
            if adopted not in slots:
                raise errors.SchemaMismatch(
                    f"index {slot.name}.{name} adopts table {adopted}, which is not in the file"
                )
            number = slots[adopted].number
        else:
            number = self.allocate(txn, slots, reserved)
            self._write_index(txn, slot, name, number)
        slot.indexes[name] = {**definition, "slot": number}

    def moved_index(self, txn: Transaction, slot: Slot, name: str) -> None:
        """Record the number of an index of *slot*, which has got another name."""
        self._write_index(txn, slot, name, slot.indexes[name]["slot"])

    def _write_index(self, txn: Transaction, slot: Slot, name: str, number: int) -> None:
        self._write_number(txn, number, uuid_of(f"{slot.name}:{name}"), f"{slot.class_name}.{name}", None)

    def attached(self, txn: Transaction, name: str) -> dict[str, dict[str, Any]]:
        """None: a classic file does not record the indexes of a map."""
        return {}

    def records(self, txn: Transaction, name: str) -> tuple[Optional[bytes], ...]:
        """The bytes that record the indexes of a table, for comparison with those of another time."""
        return definitions.bytes_of(txn, name)

    def damage(self, txn: Transaction) -> list[str]:
        """The problems of the catalogue, although it can be read."""
        known = self.read(txn)
        lost = [name for name in self._all(txn)[1] if name not in known]
        return [
            *(f"the metadata record of slot {number} is damaged" for number in _damaged(txn)),
            *(f"table {name} is defined, and has no metadata record" for name in lost),
        ]

    def guarded(self, txn: Transaction) -> dict[bytes, str]:
        """What raw keys begin with that raw writes would break, and what follows the records there."""
        found: dict[bytes, str] = {}
        for slot in self.read(txn).values():
            if slot.indexes:
                found[slot_prefix(slot.number)] = f"the indexes {', '.join(slot.indexes)}"
            elif slot.fields is not None:
                found[slot_prefix(slot.number)] = "the fields of its values"
            elif slot.referred:
                found[slot_prefix(slot.number)] = "links to its records"
            entries = [one for one in slot.indexes.values() if "table" not in one]
            found.update((slot_prefix(one["slot"]), "the records of the index") for one in entries if "slot" in one)
        return found

    def write_attached(self, txn: Transaction, name: str, indexes: dict[str, dict[str, Any]]) -> None:
        """Record nothing, because zlmdb 26 would not maintain the record."""

    def migrations(self, txn: Transaction) -> list[dict[str, Any]]:
        """The steps applied to the schema, in order: their version, name and time."""
        data = txn.get(layout.MIGRATIONS_KEY)
        return [] if data is None else [dict(record) for record in layout.decode(data)["migrations"]]

    def write_migration(self, txn: Transaction, record: dict[str, Any]) -> None:
        """Record a step."""
        records = [*self.migrations(txn), record]
        txn.put(layout.MIGRATIONS_KEY, layout.encode({"migrations": records}))

    def _write_number(
        self, txn: Transaction, number: int, uuid: UUID, class_name: str, description: Optional[str]
    ) -> None:
        # Members, and their order, as zlmdb <= 26 writes them: it finds the table again by them.
        record: dict[str, Any] = {"oid": str(uuid), "name": class_name}
        if description:
            record["description"] = description
        record.update(creator="unknown", slot=number)
        txn.put(_OF_SLOT_0 + slot_prefix(number), layout.encode(record), overwrite=False)


def _has_records(cursor: Any, number: int) -> bool:
    prefix = slot_prefix(number)
    return bool(cursor.set_range(prefix)) and cursor.key()[:2] == prefix


def _damaged(txn: Transaction) -> list[int]:
    """The slots of a classic file whose metadata records do not name their table."""
    return [number for number, record in layout.slot_records(txn) if "oid" not in record]


Catalogue = Union[TablesCatalogue, ClassicCatalogue]


def catalogue_of(store: Store) -> Catalogue:
    """The catalogue of an open store, after its layout."""
    if store.layout == "raw":
        from .rawcatalogue import RawCatalogue  # late: few programs have such files

        return RawCatalogue(store)
    return ClassicCatalogue(store) if store.layout == "classic" else TablesCatalogue(store)


def _name(key: Any) -> str:
    try:
        return bytes(key[2:]).decode()
    except UnicodeDecodeError as error:
        raise errors.DecodeError(f"the catalogue has a table whose name is not text: {bytes(key)!r}") from error


def _copied(data: Any) -> Optional[bytes]:
    return None if data is None else bytes(data)


def slot_of(name: str, record: dict[str, Any], records: tuple[Optional[bytes], ...] = ()) -> Slot:
    """The slot that a catalogue *record* describes, read from *records*. Raises `DecodeError` if it is damaged."""
    try:
        return _slot_of(name, record, records)
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise errors.DecodeError(f"the catalogue's record of table {name!r} is damaged: {error}") from error


def checked_migration(record: Any) -> dict[str, Any]:
    """*record*, if it is a valid record of a step, with version and name. Raises `DecodeError`."""
    found: dict[str, Any] = record if is_a(record, dict) else {}
    version = found.get("version")
    if type(version) is not int or not 0 < version < 1 << 64 or not is_a(found.get("name"), str):
        raise errors.DecodeError(f"the record of a migration is damaged: {record!r}")
    return found


def _slot_of(name: str, record: dict[str, Any], records: tuple[Optional[bytes], ...]) -> Slot:
    uuid = record.get("uuid")
    for index, definition in record.get("indexes", {}).items():
        _check_texts([("index", index), ("table", definition.get("table"))])  # AttributeError for what is no definition
    texts = ("name", "description", "key", "value", "model", "unsettled", "key_field")
    history, fields, was = record.get("history", ()), record.get("fields"), record.get("was", ())
    lists = [*zip(("history",) * len(history), history), *zip(("was",) * len(was), was)]
    _check_texts([*[(member, record.get(member)) for member in texts], *lists])
    referred: Any = record.get("referred", ())
    if referred:
        referred = [[str(table), str(link)] for table, link in referred]
    return Slot(
        name=name,
        number=int(record.get("slot", 0)),
        uuid=None if uuid is None else UUID(uuid),
        class_name=str(record.get("name", "")),
        description=record.get("description"),
        key=record.get("key"),
        value=record.get("value"),
        model=record.get("model"),
        indexes=dict(record.get("indexes", {})),
        attached=dict(record.get("attached", {})),
        records=records,
        fields=None if fields is None else checked_description(fields),
        history=history,
        unsettled=record.get("unsettled"),
        key_field=record.get("key_field"),
        was=was,
        referred=referred,
        feed=None if record.get("feed") is None else checked_feed(record["feed"]),
    )


def checked_feed(feed: Any) -> dict[str, Any]:
    """*feed*, if it is a valid record of a change feed. Raises TypeError."""
    if not is_a(feed, dict) or type(feed.get("after")) is not int or feed["after"] < 0:
        raise TypeError(f"its feed is none: {feed!r}")
    found: dict[str, Any] = feed
    return found


def _check_texts(members: Iterable[tuple[str, Any]]) -> None:
    """Raise TypeError unless each is text or None. In CBOR one bit makes bytes of a text, and they name no type."""
    for member, value in members:
        if value is not None and not isinstance(value, str):
            raise TypeError(f"its {member} is not text: {value!r}")


def _checked(number: int) -> int:
    if number > LAST_SLOT:
        raise errors.DatabaseFull(f"all slots up to {LAST_SLOT} are taken")
    return number
