"""Checking an open database: every record decodes, every index entry has its row, and every row its entries.

It reads one snapshot, in one transaction, while others write. The program's own types are used where it declared or
attached a table; else those that the file names, by which nothing is ever unpickled.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any, Optional

from .. import errors, layout
from ..catalogue import Catalogue, Place, Slot, catalogue_of
from ..classic.attached import index_storages
from ..engines import structure
from ..indexstorage import IndexStorage
from ..keys import from_name as key_from_name
from ..storage import Storage, shortened
from ..store import Store
from ..values import from_name as value_from_name
from .progress import Progress, Told, silent
from .report import CheckReport, Kind, Problem, TableReport
from .undeclared import NotComputable, index_storage

_EVERY = 10_000  # records between two reports of progress


def check(store: Store, declared: Mapping[str, Storage[Any, Any]], told: Optional[Told] = None) -> CheckReport:
    """The report on the database open in *store*; *declared* are the storages of the schema's tables, by identity."""
    return _Check(store, declared, told or silent).run()


class _Check:
    """One check of one store."""

    def __init__(self, store: Store, declared: Mapping[str, Storage[Any, Any]], told: Told) -> None:
        self.store = store
        self.declared = declared
        self.told = told
        self.catalogue: Catalogue = catalogue_of(store)
        self.report = CheckReport(store.engine.path, store.layout)
        self.txn: Any = None

    def run(self) -> CheckReport:
        """Check everything, the structure first: records are not read through pages that are damaged."""
        started = time.perf_counter()
        report, store = self.report, self.store
        if store.engine.file is not None:
            self._structure(store.engine.file)
        if report.ok:
            self._contents()
        else:
            report.note("the records were not read: salvage the file, or restore a backup")
        report.seconds = time.perf_counter() - started
        return report

    def _contents(self) -> None:
        slots = self._slots()
        if not self.report.ok:
            return
        with self.store.reading() as self.txn:
            try:
                self._everything(slots)
            except Exception as error:
                ours = self.store.engine.translate(error)
                if not isinstance(ours, (errors.CorruptDatabase, errors.DiskError)):
                    raise
                self._problem("structure", str(ours))

    def _problem(self, kind: Kind, text: str, **facts: Any) -> None:
        self.report.add(Problem(kind, text, **facts))

    # -- the file -------------------------------------------------------------------------------------------------

    def _structure(self, file: str) -> None:
        with self.store.reading():  # keeps the pages of this state from being used again by writers
            wrong = self._walk(file)
        if wrong:  # perhaps a meta page was read while it was being written
            with nullcontext() if self.store.readonly else self.store.writing(None), self.store.reading():
                wrong = self._walk(file)
        for text in wrong:
            self._problem("structure", text)

    def _walk(self, file: str) -> list[str]:
        with open(file, "rb") as data:
            self.report.bytes = data.seek(0, 2)
        try:
            return structure.check(file, lambda done, total: self.told(Progress("pages", done, total)))
        except (errors.CorruptDatabase, errors.InvalidDatabase) as error:
            return [str(error)]

    # -- the catalogue --------------------------------------------------------------------------------------------

    def _slots(self) -> dict[str, Slot]:
        """The tables of the catalogue, their spaces open."""
        with self.store.reading() as txn:
            try:
                slots = self.catalogue.read(txn)
            except (errors.DecodeError, ValueError, TypeError, AttributeError) as error:
                self._problem("catalogue", f"the catalogue cannot be read: {error}")
                return {}
        places = [place for slot in slots.values() for place in self._places(slot)]
        self.store.open_spaces([place.space for place in places if place.space is not None])
        return slots

    def _places(self, slot: Slot) -> list[Place]:
        return [self.catalogue.place(slot), *(self.catalogue.index_place(slot, name) for name in slot.indexes)]

    def _everything(self, slots: dict[str, Slot]) -> None:
        self._names(slots)
        for text in self.catalogue.damage(self.txn):
            self._problem("catalogue", text)
        maps = {(storage.space, storage.prefix): (pmap, storage) for pmap, storage in list(self.store.maps.items())}
        for slot in slots.values():
            self._table(slot, maps)
        self._by_hand(slots, maps)

    def _names(self, slots: dict[str, Slot]) -> None:
        """Every sub-database belongs to a table, and every table has its sub-database."""
        if self.store.layout == "classic" or not self.store.engine.persistent:
            return
        known = {layout.CATALOGUE, layout.SLOTS}
        known.update(place.space for slot in slots.values() for place in self._places(slot) if place.space is not None)
        guard = self.txn.get(layout.GUARD[0])
        if guard != layout.GUARD[1]:
            self._problem("catalogue", "the record that keeps zlmdb <= 26 from writing here is gone")
        foreign = layout.foreign_key(self.txn)
        if foreign is not None:
            self._problem("catalogue", f"another program has written the key {foreign!r} into the main database")
        found = {bytes(key).rstrip(b"\0") for key in self.txn.cursor().iternext(True, False)} - {b""}
        for name in sorted(found - known - {layout.GUARD[0], foreign}):
            space = self.store.space(name)
            if not name.startswith(b"i:") or (space is not None and self._entries(space.handle)):
                self._problem("catalogue", f"the sub-database {name.decode(errors='replace')!r} is of no known table")
        for name in sorted(known - found):
            self._problem("catalogue", f"the sub-database {name.decode(errors='replace')!r} is missing")

    def _entries(self, handle: Any) -> int:
        return int(self.txn.stat(handle)["entries"])

    # -- tables ---------------------------------------------------------------------------------------------------

    def _table(self, slot: Slot, maps: Mapping[Any, Any]) -> None:
        place = self.catalogue.place(slot)
        report = self.report.tables[slot.identity] = TableReport(slot.title if slot.uuid else slot.identity)
        storage = self.declared.get(slot.identity)
        pmap, attached = maps.get((place.space, place.prefix), (None, None))
        if storage is not None or attached is not None:
            report.codecs = "declared"
        else:
            storage = self._undeclared(slot, place, report)
        indexes = [] if storage is None else self._kept(storage)
        if storage is None:
            storage = attached
        if pmap is not None and storage is not None:
            indexes += index_storages(pmap.attached, self.store, slot.identity)
        if report.codecs == "plain" and storage is not None:
            indexes = self._plain_indexes(slot, storage)
        self._records(slot.identity, report, place, storage, indexes)

    def _kept(self, storage: Storage[Any, Any]) -> list[IndexStorage]:
        """The declared indexes, without those that another program has dropped or changed meanwhile."""
        gone = frozenset[str]() if storage.watch is None else storage.watch(self.txn, None)[0]
        return [index for index in storage.indexes if index.name not in gone]

    def _undeclared(self, slot: Slot, place: Place, report: TableReport) -> Optional[Storage[Any, Any]]:
        if slot.key is None or slot.value is None:
            report.codecs = "unknown"
            self.report.note(
                f"table {slot.identity} ({slot.title}) was made by zlmdb <= 26, which stores no types: its records "
                f"were counted, attach or declare it to check them"
            )
            return None
        try:
            key, value = key_from_name(slot.key), value_from_name(slot.value)
        except ValueError as error:
            report.codecs = "unknown"
            self.report.note(f"table {slot.identity}: {error}")
            return None
        if "pickle" in slot.value or "flatbuffers" in slot.value:
            self.report.note(f"the {slot.value} values of table {slot.identity} were not decoded: declare the table")
        return Storage(slot.identity, place.space, place.prefix, key, value, self.store.env.max_key_size())

    def _plain_indexes(self, slot: Slot, storage: Storage[Any, Any]) -> list[IndexStorage]:
        found: list[IndexStorage] = []
        for name, definition in slot.indexes.items():
            try:
                place = self.catalogue.index_place(slot, name)
                found.append(index_storage(self.store, place, name, definition, storage))
            except ValueError as error:
                self.report.note(f"index {slot.identity}.{name}: {error}")
        for name in slot.attached:
            self.report.note(
                f"index {slot.identity}.{name} was attached by a program, and is checked only where that attaches it"
            )
        return found

    def _by_hand(self, slots: dict[str, Slot], maps: Mapping[Any, Any]) -> None:
        """The slots that programs chose by hand: checked where this program has such a map, else counted."""
        space = None if self.store.layout == "classic" else layout.SLOTS
        places = [place for slot in slots.values() for place in self._places(slot)]
        known = {place.prefix for place in places if place.space is None}
        for prefix in _prefixes(self.txn, self.handle(space)):
            number = int.from_bytes(prefix, "big")
            if prefix in known or number == 0:
                continue
            name = f"slot {number}"
            pmap, storage = maps.get((space, prefix), (None, None))
            report = self.report.tables[name] = TableReport(name, codecs="unknown" if storage is None else "declared")
            indexes = [] if pmap is None else index_storages(pmap.attached, self.store, name)
            if storage is None:
                self.report.note(f"{name}: a map with a slot given by hand, whose types only its program knows")
            self._records(name, report, Place(space, prefix), storage, indexes)

    def handle(self, space: Optional[bytes]) -> Any:
        """The engine's handle of a space."""
        found = self.store.space(space)
        return None if found is None else found.handle

    # -- records --------------------------------------------------------------------------------------------------

    def _records(
        self, name: str, report: TableReport, place: Place, storage: Optional[Storage[Any, Any]],
        indexes: list[IndexStorage],
    ) -> None:  # fmt: skip
        handle = self.handle(place.space)
        if handle is None and place.space is not None:
            return  # reported among the names
        checks = [_IndexCheck(self, name, index) for index in indexes if self._has(index)]
        for raw_key, data in _rows(self.txn, handle, place.prefix):
            report.records += 1
            if report.records % _EVERY == 0:
                self.told(Progress(name, report.records))
            if storage is not None:
                self._record(name, storage, raw_key, data, checks)
        self.told(Progress(name, report.records, report.records))
        if not place.prefix and self._entries(handle) != report.records:
            self._problem(
                "count", f"{report.records} records, LMDB counts {self._entries(handle)}", table=name
            )  # fmt: skip
        for index in checks:
            report.indexes[index.storage.name] = index.finish(storage, handle)

    def _has(self, index: IndexStorage) -> bool:
        return index.storage.space is None or self.store.space(index.storage.space) is not None

    def _record(
        self, name: str, storage: Storage[Any, Any], raw_key: bytes, data: Any, checks: list[_IndexCheck]
    ) -> None:
        try:
            key = storage.decode_key(raw_key)
        except errors.DecodeError as error:
            self._problem("record", f"the key does not decode: {error}", table=name, key=raw_key.hex())
            return
        try:
            value = storage.decode_value(data, key)
        except Exception as error:
            self._problem("record", f"the value does not decode: {error}", table=name, key=shortened(key))
            for check in checks:
                check.blind = True  # what the index should have for it is not known
            return
        primary = raw_key[len(storage.prefix) :]
        for check in checks:
            check.record(key, primary, value, storage)


class _IndexCheck:
    """The comparison of one index with the records of its table.

    Each record's entry is looked up. If all are there and the index has as many entries as there were records for
    it, it is right; else its entries are walked. *blind*: some record's entry cannot be computed, so that only the
    owners of the entries are looked up.
    """

    def __init__(self, check: _Check, table: str, storage: IndexStorage) -> None:
        self.storage = storage
        self.blind = False
        self._check = check
        self._table = table
        self._expected = 0
        self._handle = check.handle(storage.storage.space)

    def _problem(self, kind: Kind, text: str, key: Any = None) -> None:
        shown = None if key is None else shortened(key)
        self._check.report.add(Problem(kind, text, self._table, self.storage.name, shown))

    def record(self, key: Any, primary: bytes, value: Any, table: Storage[Any, Any]) -> None:
        """Look up the entry of a record."""
        if self.blind:
            return
        try:
            entry = self.storage.entry(value, primary, stored=True)
        except NotComputable as error:
            self.blind = True
            self._check.report.note(f"index {self._table}.{self.storage.name}: {error}")
            return
        except Exception as error:  # the index function is the user's
            self.blind = True
            self._problem("index", f"the index key cannot be computed: {error!r}", key)
            return
        if entry is None:
            return
        self._expected += 1
        data = self._check.txn.get(entry, None, self._handle)
        if data is None:
            self._problem("index", "the record has no entry", key)
        elif not self.storage.belongs(data, key, primary):
            owner = shortened(self.storage.owner_of(data, table))
            self._problem("duplicate", f"the index key of the record leads to the record {owner}", key)

    def finish(self, table: Optional[Storage[Any, Any]], handle: Any) -> int:
        """Compare the number of entries, and find those that should not be there. The number of entries."""
        storage = self.storage.storage
        entries = sum(1 for _ in _rows(self._check.txn, self._handle, storage.prefix, values=False))
        if table is not None and (self.blind or entries != self._expected):
            for entry, data in _rows(self._check.txn, self._handle, storage.prefix):
                self._entry(bytes(entry), data, table, handle)
        return entries

    def _entry(self, entry: bytes, data: Any, table: Storage[Any, Any], handle: Any) -> None:
        index = self.storage
        try:
            primary = entry[index.tail :] if index.tail else self._primary(data, table)
            stored = self._check.txn.get(table.prefix + primary, None, handle)
            if stored is None:
                self._problem("index", f"the entry {entry.hex()} has no record", primary.hex())
            elif not self.blind:
                key = table.decode_key(table.prefix + primary)
                if index.entry(table.decode_value(stored, key), primary, stored=True) != entry:
                    self._problem("index", f"the entry {entry.hex()} is not that of its record", key)
        except (errors.DecodeError, errors.EncodeError) as error:
            self._problem("index", f"the entry {entry.hex()} does not decode: {error}")

    def _primary(self, data: Any, table: Storage[Any, Any]) -> bytes:
        if self.storage.owner is None:
            return bytes(data)
        return table.encode_key(self.storage.owner_of(data, table))[len(table.prefix) :]


def _rows(txn: Any, handle: Any, prefix: bytes, *, values: bool = True) -> Iterator[Any]:
    """The engine's records whose keys begin with *prefix*, or their keys."""
    cursor = txn.cursor(handle)
    found = cursor.set_range(prefix) if prefix else cursor.first()
    if not found:
        return
    for row in cursor.iternext(True, values):
        key = row[0] if values else row
        if key[: len(prefix)] != prefix:
            return
        yield row


def _prefixes(txn: Any, handle: Any) -> Iterator[bytes]:
    """The slots that have records, as the two bytes that their keys begin with."""
    cursor = txn.cursor(handle)
    found = cursor.first()
    while found:
        prefix = bytes(cursor.key()[:2])
        yield prefix
        number = int.from_bytes(prefix, "big") + 1
        found = number < 1 << 16 and cursor.set_range(number.to_bytes(2, "big"))
