"""What the file says about itself: its tables and indexes, their types, and where they are kept.

In the tables layout a record for each table lives in the reserved sub-database ``__zlmdb__``. In the classic layout the
slots are numbered by the metadata records of slot 0 as zlmdb <= 26 writes them, and one more record of slot 0, which it
ignores, holds the definitions that it does not know.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional, Union
from uuid import UUID, uuid5

from . import errors, layout
from .store import Store
from .values.base import is_a

FIRST_SLOT, LAST_SLOT = 1, 65534

_NAMES = UUID("6f0a3b0e-5f3c-5d0c-9a58-7a6c6d646200")
"""Namespace of the UUIDs that tables and indexes without one get in a classic file."""


@dataclass
class Slot:
    """A table's number and stored definition.

    *identity* is the UUID or else the name that it is declared with. *key* and *value* are names of codecs, None where
    the file does not say. *indexes* are definitions by name, *attached* those of
    `attach_index`; *title* and *model* are class names, for information.
    """

    identity: str
    number: int
    uuid: Optional[UUID] = None
    title: str = ""
    description: Optional[str] = None
    key: Optional[str] = None
    value: Optional[str] = None
    model: Optional[str] = None
    indexes: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])
    attached: dict[str, dict[str, Any]] = field(default_factory=dict[str, "dict[str, Any]"])

    def definition(self) -> dict[str, Any]:
        """The part that zlmdb <= 26 does not store, as a catalogue record."""
        record = {"key": self.key, "value": self.value, "model": self.model, "indexes": self.indexes}
        return {name: entry for name, entry in record.items() if entry not in (None, {})}


class Place(NamedTuple):
    """Where records are: the name of the space (None: the main one), and what their keys begin with there."""

    space: Optional[bytes]
    prefix: bytes


def uuid_of(identity: str) -> UUID:
    """The UUID that a table or index without one gets in a classic file: made of its name."""
    return uuid5(_NAMES, identity)


def slot_prefix(number: int) -> bytes:
    """What the keys of slot *number* begin with.

    Raises `ValueError` outside 1 to 65534, `TypeError` for what is no int.
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

    def read(self, txn: Any) -> dict[str, Slot]:
        """Every table of the file, by identity."""
        space = self._store.space(layout.CATALOGUE)
        if space is None:
            return {}
        cursor = txn.cursor(space.handle)
        rows = cursor.iternext() if cursor.set_range(b"t:") else ()
        records = {_identity(key): layout.decode(data) for key, data in rows if key[:2] == b"t:"}
        return {
            identity: slot_of(identity, {**record, "attached": self.attached(txn, identity)})
            for identity, record in records.items()
        }

    def write(self, txn: Any, slot: Slot) -> None:
        """Record *slot*."""
        record: dict[str, Any] = {"slot": slot.number, "name": slot.title}
        if slot.uuid is not None:
            record["uuid"] = str(slot.uuid)
        if slot.description:
            record["description"] = slot.description
        txn.put(b"t:" + slot.identity.encode(), layout.encode({**record, **slot.definition()}), db=self._handle())

    def allocate(self, txn: Any, slots: dict[str, Slot], reserved: Collection[int] = ()) -> int:
        """A slot number that no table has. Slots given by hand have numbers of their own here."""
        return _checked(1 + max((slot.number for slot in slots.values()), default=0))

    def place(self, slot: Slot) -> Place:
        """Where the records of a table are."""
        return Place(b"t:" + slot.identity.encode(), b"")

    def slot_place(self, number: int) -> Place:
        """Where a map with a hand-given slot is."""
        return Place(layout.SLOTS, slot_prefix(number))

    def registered(self, txn: Any, number: int) -> Optional[str]:
        """None: slots given by hand have a key space of their own here."""
        return None

    def index_place(self, slot: Slot, name: str) -> Place:
        """Where the entries of a declared index are."""
        adopted = slot.indexes[name].get("table")
        if adopted is not None:
            return Place(b"t:" + adopted.encode(), b"")
        return Place(f"i:{slot.identity}:{name}".encode(), b"")

    def add_index(self, txn: Any, slots: dict[str, Slot], slot: Slot, name: str, definition: dict[str, Any]) -> None:
        """Put an index into the definition of *slot*."""
        slot.indexes[name] = definition

    def attached(self, txn: Any, identity: str) -> dict[str, dict[str, Any]]:
        """The indexes that `attach_index` recorded for a map, by name."""
        space = self._store.space(layout.CATALOGUE)
        data = None if space is None else txn.get(b"a:" + identity.encode(), None, space.handle)
        return {} if data is None else dict(layout.decode(data))

    def records(self, txn: Any, identity: str) -> tuple[Optional[bytes], ...]:
        """The bytes that say which indexes a table has, to be compared with those of another time."""
        space = self._store.space(layout.CATALOGUE)
        if space is None:
            return (None, None)
        name, handle = identity.encode(), space.handle
        return _copied(txn.get(b"t:" + name, None, handle)), _copied(txn.get(b"a:" + name, None, handle))

    def damage(self, txn: Any) -> list[str]:
        """What is wrong with the catalogue although it can be read."""
        return []

    def write_attached(self, txn: Any, identity: str, indexes: dict[str, dict[str, Any]]) -> None:
        """Record the attached indexes of a map."""
        txn.put(b"a:" + identity.encode(), layout.encode(indexes), db=self._handle())

    def migrations(self, txn: Any) -> list[dict[str, Any]]:
        """The steps applied to the schema, in order: their version, name and time."""
        space = self._store.space(layout.CATALOGUE)
        if space is None:
            return []
        cursor = txn.cursor(space.handle)
        rows = cursor.iternext() if cursor.set_range(b"m:") else ()
        return [dict(layout.decode(data)) for key, data in rows if key[:2] == b"m:"]

    def write_migration(self, txn: Any, record: dict[str, Any]) -> None:
        """Record a step."""
        txn.put(b"m:" + int(record["version"]).to_bytes(8, "big"), layout.encode(record), db=self._handle())

    def _handle(self) -> Any:
        space = self._store.space(layout.CATALOGUE)
        return None if space is None else space.handle


class ClassicCatalogue:
    """The catalogue of the classic layout."""

    records_attached = False

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, txn: Any) -> dict[str, Slot]:
        """Every table of the file, by identity; the slots of declared indexes are not tables."""
        definitions = self._definitions(txn)
        names = {str(uuid_of(identity)): identity for identity in definitions}
        entries = [entry for record in definitions.values() for entry in record.get("indexes", {}).values()]
        hidden = {entry.get("slot") for entry in entries if "table" not in entry}
        slots: dict[str, Slot] = {}
        for number, record in layout.slot_records(txn):
            if number in hidden or "oid" not in record:
                continue
            oid = str(record["oid"])
            identity = names.get(oid, oid)
            slot = slot_of(identity, {**record, "uuid": oid, **definitions.get(identity, {})})
            slots[identity] = slot
        return slots

    def write(self, txn: Any, slot: Slot) -> None:
        """Record *slot*: its metadata as zlmdb <= 26 does, where there is none yet, and its definition."""
        uuid = slot.uuid = slot.uuid or uuid_of(slot.identity)
        self._write_number(txn, slot.number, uuid, slot.title, slot.description)
        definitions = self._definitions(txn)
        definitions[slot.identity] = slot.definition()
        txn.put(layout.DEFINITIONS_KEY, layout.encode(definitions))

    def allocate(self, txn: Any, slots: dict[str, Slot], reserved: Collection[int] = ()) -> int:
        """A slot number after all that have a metadata record, which no map with a hand-given slot uses.

        Nor is it one of *reserved*. Raises `CorruptDatabase` where a metadata record is damaged: it may be that of the
        table for which a number is asked.
        """
        for damaged in _damaged(txn):
            raise errors.CorruptDatabase(
                f"the metadata record of slot {damaged} is damaged, and with it the name of a table is lost: restore a "
                f"backup"
            )
        cursor = txn.cursor()
        by_hand = {storage.number for storage in list(self._store.maps.values())}.union(reserved)
        number = _checked(1 + max((number for number, _ in layout.slot_records(txn)), default=0))
        while number in by_hand or (cursor.set_range(slot_prefix(number)) and cursor.key()[:2] == slot_prefix(number)):
            number = _checked(number + 1)
        return number

    def place(self, slot: Slot) -> Place:
        """Where the records of a table are."""
        return self.slot_place(slot.number)

    def slot_place(self, number: int) -> Place:
        """Where a map with a hand-given slot is."""
        return Place(None, slot_prefix(number))

    def registered(self, txn: Any, number: int) -> Optional[str]:
        """The UUID of the table whose metadata record has the slot *number*, if any."""
        data = txn.get(b"\x00\x00" + slot_prefix(number))
        return None if data is None else str(layout.decode(data).get("oid"))

    def index_place(self, slot: Slot, name: str) -> Place:
        """Where the entries of a declared index are."""
        return self.slot_place(slot.indexes[name]["slot"])

    def add_index(self, txn: Any, slots: dict[str, Slot], slot: Slot, name: str, definition: dict[str, Any]) -> None:
        """Put an index into the definition of *slot*, and give it a slot of its own, or that of the table it adopts."""
        adopted = definition.get("table")
        if adopted is not None:
            if adopted not in slots:
                raise errors.SchemaMismatch(
                    f"index {slot.identity}.{name} adopts table {adopted}, which is not in the file"
                )
            number = slots[adopted].number
        else:
            number = self.allocate(txn, slots)
            self._write_number(txn, number, uuid_of(f"{slot.identity}:{name}"), f"{slot.title}.{name}", None)
        slot.indexes[name] = {**definition, "slot": number}

    def attached(self, txn: Any, identity: str) -> dict[str, dict[str, Any]]:
        """None: a classic file does not say which indexes a map has."""
        return {}

    def records(self, txn: Any, identity: str) -> tuple[Optional[bytes], ...]:
        """The bytes that say which indexes a table has, to be compared with those of another time."""
        return (_copied(txn.get(layout.DEFINITIONS_KEY)),)

    def damage(self, txn: Any) -> list[str]:
        """What is wrong with the catalogue although it can be read."""
        known = self.read(txn)
        lost = [identity for identity in self._definitions(txn) if identity not in known]
        return [
            *(f"the metadata record of slot {number} is damaged" for number in _damaged(txn)),
            *(f"table {identity} is defined, and has no metadata record" for identity in lost),
        ]

    def write_attached(self, txn: Any, identity: str, indexes: dict[str, dict[str, Any]]) -> None:
        """Record nothing, as zlmdb <= 26 would not keep it in step."""

    def migrations(self, txn: Any) -> list[dict[str, Any]]:
        """The steps applied to the schema, in order: their version, name and time."""
        data = txn.get(layout.MIGRATIONS_KEY)
        return [] if data is None else [dict(record) for record in layout.decode(data)["migrations"]]

    def write_migration(self, txn: Any, record: dict[str, Any]) -> None:
        """Record a step."""
        records = [*self.migrations(txn), record]
        txn.put(layout.MIGRATIONS_KEY, layout.encode({"migrations": records}))

    def _definitions(self, txn: Any) -> dict[str, Any]:
        data = txn.get(layout.DEFINITIONS_KEY)
        found: dict[str, Any] = {} if data is None else layout.decode(data)
        try:
            for record in found.values():
                for entry in record.get("indexes", {}).values():
                    int(entry.get("slot", 0))
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise errors.DecodeError(f"the definitions of the file are damaged: {error}") from error
        return found

    def _write_number(self, txn: Any, number: int, uuid: UUID, title: str, description: Optional[str]) -> None:
        # Members, and their order, as zlmdb <= 26 writes them: it finds the table again by them.
        record: dict[str, Any] = {"oid": str(uuid), "name": title}
        if description:
            record["description"] = description
        record.update(creator="unknown", slot=number)
        txn.put(b"\x00\x00" + slot_prefix(number), layout.encode(record), overwrite=False)


def _damaged(txn: Any) -> list[int]:
    """The slots of a classic file whose metadata records do not say which table they are of."""
    return [number for number, record in layout.slot_records(txn) if "oid" not in record]


Catalogue = Union[TablesCatalogue, ClassicCatalogue]


def catalogue_of(store: Store) -> Catalogue:
    """The catalogue of an open store, after its layout."""
    return ClassicCatalogue(store) if store.layout == "classic" else TablesCatalogue(store)


def _identity(key: Any) -> str:
    try:
        return bytes(key[2:]).decode()
    except UnicodeDecodeError as error:
        raise errors.DecodeError(f"the catalogue has a table whose name is no text: {bytes(key)!r}") from error


def _copied(data: Any) -> Optional[bytes]:
    return None if data is None else bytes(data)


def slot_of(identity: str, record: dict[str, Any]) -> Slot:
    """The slot that a catalogue *record* describes. Raises `DecodeError` for what describes none."""
    try:
        return _slot_of(identity, record)
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise errors.DecodeError(f"the catalogue's record of table {identity!r} is damaged: {error}") from error


def checked_migration(record: Any) -> dict[str, Any]:
    """*record*, if it is one of a step of the schema, with its version and name. Raises `DecodeError`."""
    found: dict[str, Any] = record if is_a(record, dict) else {}
    version = found.get("version")
    if type(version) is not int or not 0 < version < 1 << 64 or not is_a(found.get("name"), str):
        raise errors.DecodeError(f"the record of a migration is damaged: {record!r}")
    return found


def _slot_of(identity: str, record: dict[str, Any]) -> Slot:
    uuid = record.get("uuid")
    for name, definition in record.get("indexes", {}).items():
        _text("index", name)
        _text("table", definition.get("table"))  # AttributeError for what is no definition
    return Slot(
        identity=identity,
        number=int(record.get("slot", 0)),
        uuid=None if uuid is None else UUID(uuid),
        title=str(_text("name", record.get("name", ""))),
        description=_text("description", record.get("description")),
        key=_text("key", record.get("key")),
        value=_text("value", record.get("value")),
        model=_text("model", record.get("model")),
        indexes=dict(record.get("indexes", {})),
        attached=dict(record.get("attached", {})),
    )


def _text(member: str, value: Any) -> Optional[str]:
    """*value*, if it is text or None. CBOR tells text from bytes by one bit, and those are no name of a type."""
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"its {member} is no text: {value!r}")


def _checked(number: int) -> int:
    if number > LAST_SLOT:
        raise errors.DatabaseFull(f"all slots up to {LAST_SLOT} are taken")
    return number
