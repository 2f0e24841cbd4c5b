"""The catalogue of the classic layout: the metadata records of slot 0, and definitions beside them."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Any, Optional
from uuid import UUID

from .. import errors
from ..engines import Transaction
from . import definitions, layout
from .ranges import prefixed
from .slotrecords import slot_of
from .slots import Batch, Keyspace, Slot, checked_number, slot_prefix, uuid_of
from .store import Store

_OF_SLOT_0 = b"\x00\x00"  # what keys of the catalogue of the classic layout begin with


class ClassicCatalogue:
    """The catalogue of the classic layout."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch: Optional[Batch] = None

    @contextmanager
    def batch(self, txn: Transaction, last: Optional[int] = None) -> Generator[Batch, None, None]:
        """A block that writes many tables in *txn*: definitions that share a record are written at its end, together.

        Until then, those of before are read. If the *last* slot number in use is known, it is not read.
        """
        batch = self._batch = Batch(txn, last)
        try:
            yield batch
        finally:
            self._batch = None
        if batch.changed:
            definitions.write(self._store, txn, batch.changed)

    def _batch_of(self, txn: Transaction) -> Optional[Batch]:
        batch = self._batch  # an interrupt may have left that of another transaction
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
        return records, defined, numbers

    def slot(self, txn: Transaction, name: str, number: int = 0) -> Optional[Slot]:
        """The table *name*, or None. *number* was its slot; it may have changed, or be 0 for one that is not known."""
        data = None if number == 0 else txn.get(_OF_SLOT_0 + slot_prefix(number))
        record = {} if data is None else layout.metadata(data)
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
        txn.delete(_OF_SLOT_0 + slot_prefix(slot.number))
        for name in slot.indexes:
            self.remove_index(txn, slot, name)

    def allocate(self, txn: Transaction, slots: dict[str, Slot], reserved: Collection[int] = ()) -> int:
        """A slot number after all that have a metadata record, which no map with a hand-given slot uses.

        Nor is it one of *reserved*. Raises `CorruptDatabase` where a metadata record is damaged: it may be that of the
        table for which a number is asked.
        """
        batch = self._batch_of(txn)
        last = self._last(txn) if batch is None or batch.last is None else batch.last
        cursor = txn.cursor()
        by_hand = self._store.by_hand
        number = checked_number(1 + last)
        while number in by_hand or number in reserved or _has_records(cursor, number):
            number = checked_number(number + 1)
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

    def feed_space(self, name: str) -> Optional[bytes]:
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

    def remove_index(self, txn: Transaction, slot: Slot, name: str) -> None:
        """Remove the record of the number of an index of *slot*, which would be that of a table without it."""
        entry = slot.indexes[name]
        if "slot" in entry and "table" not in entry:
            txn.delete(_OF_SLOT_0 + slot_prefix(entry["slot"]))

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
