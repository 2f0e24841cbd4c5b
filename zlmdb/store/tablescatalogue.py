"""The catalogue of the tables layout: a record for each table in a sub-database of its own."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Optional

from .. import errors
from ..engines import Transaction
from . import layout
from .ranges import prefixed
from .slotrecords import slot_of
from .slots import Batch, Keyspace, Slot, checked_number, slot_prefix
from .store import Store

_BY_HAND = b"a:slot "
"""What the catalogue's keys of the indexes of maps with hand-given slots begin with."""

_KINDS = (b"t:", b"a:", b"m:", layout.MAGIC_KEY)  # what keys of the catalogue of the tables layout begin with


class TablesCatalogue:
    """The catalogue of the tables layout."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch: Optional[Batch] = None

    def read(self, txn: Transaction) -> dict[str, Slot]:
        """Every table of the file, by name."""
        slots: dict[str, Slot] = {}
        for key, data in self._rows(txn, b"t:"):
            name = _name(key)
            slots[name] = _slot(name, bytes(data), self._get(txn, b"a:", name))
        return slots

    def slot(self, txn: Transaction, name: str, number: int = 0) -> Optional[Slot]:
        """The table *name*, or None. *number* was its slot; it may have changed, or be 0 for one that is not known."""
        record, attached = self.records(txn, name)
        return None if record is None else _slot(name, record, attached)

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
        batch.last = number = checked_number(1 + batch.last)
        return number

    def keyspace(self, slot: Slot) -> Keyspace:
        """The keyspace of a table's records."""
        return Keyspace(b"t:" + slot.name.encode(), b"")

    def feed_space(self, name: str) -> Optional[bytes]:
        """The space of the change feed of the table *name*."""
        return b"f:" + name.encode()

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

    def remove_index(self, txn: Transaction, slot: Slot, name: str) -> None:
        """Nothing: an index has no record but the definition of its table."""

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
        data = self._get(txn, b"a:", name)
        return {} if data is None else dict(layout.decode(data))

    def records(self, txn: Transaction, name: str) -> tuple[Optional[bytes], ...]:
        """The bytes that record the indexes of a table, for comparison with those of another time."""
        space = self._store.space(layout.CATALOGUE)
        if space is None:
            return None, None
        # Without `_get`: each transaction after one of another process asks for these.
        encoded, handle = name.encode(), space.handle
        table, attached = txn.get(b"t:" + encoded, None, handle), txn.get(b"a:" + encoded, None, handle)
        return None if table is None else bytes(table), None if attached is None else bytes(attached)

    def _get(self, txn: Transaction, kind: bytes, name: str) -> Optional[bytes]:
        space = self._store.space(layout.CATALOGUE)
        data = None if space is None else txn.get(kind + name.encode(), None, space.handle)
        return None if data is None else bytes(data)

    def _rows(self, txn: Transaction, prefix: bytes) -> Iterator[tuple[Any, Any]]:
        """The records of the catalogue whose keys begin with *prefix*."""
        space = self._store.space(layout.CATALOGUE)
        return iter(()) if space is None else prefixed(txn.cursor(space.handle), prefix)

    def damage(self, txn: Transaction) -> list[str]:
        """The problems of the catalogue, although it can be read."""
        keys = (bytes(key) for key in txn.cursor(self._handle()).iternext(True, False))
        return [f"it has the key {key!r}, which says nothing" for key in keys if not key.startswith(_KINDS)]

    def guarded(self, txn: Transaction) -> dict[bytes, str]:
        """What raw keys begin with that raw writes would break, and what follows the records there."""
        rows = self._rows(txn, _BY_HAND)
        found = {bytes(key[len(_BY_HAND) :]): ", ".join(layout.decode(data)) for key, data in rows}
        return {slot_prefix(int(number)): f"the indexes {names}" for number, names in found.items() if names}

    def write_attached(self, txn: Transaction, name: str, indexes: dict[str, dict[str, Any]]) -> None:
        """Record the attached indexes of a map."""
        txn.put(b"a:" + name.encode(), layout.encode(indexes), db=self._handle())

    def migrations(self, txn: Transaction) -> list[dict[str, Any]]:
        """The steps applied to the schema, in order: their version, name and time."""
        return [dict(layout.decode(data)) for _, data in self._rows(txn, b"m:")]

    def write_migration(self, txn: Transaction, record: dict[str, Any]) -> None:
        """Record a step."""
        txn.put(b"m:" + int(record["version"]).to_bytes(8, "big"), layout.encode(record), db=self._handle())

    def _handle(self) -> Any:
        space = self._store.space(layout.CATALOGUE)
        return None if space is None else space.handle


def _slot(name: str, record: bytes, attached: Optional[bytes]) -> Slot:
    entries = {} if attached is None else dict(layout.decode(attached))
    return slot_of(name, {**layout.decode(record), "attached": entries}, (record, attached))


def _name(key: Any) -> str:
    try:
        return bytes(key[2:]).decode()
    except UnicodeDecodeError as error:
        raise errors.DecodeError(f"the catalogue has a table whose name is not text: {bytes(key)!r}") from error
