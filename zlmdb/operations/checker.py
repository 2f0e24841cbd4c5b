"""Checks an open database: every record can be decoded, every index entry has its record, and every record its entries.

It reads one snapshot, in one transaction, while others write. It uses the program's own types for declared and attached
tables, and the types recorded in the file for others; with those it never unpickles.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from .. import errors
from ..classic.attached import index_storages
from ..engines import Handle, Transaction
from ..keys import from_name as key_from_name
from ..shown import shortened
from ..store import layout
from ..store.catalogue import Catalogue, catalogue_of, spaces_of
from ..store.ranges import prefixed, prefixed_keys
from ..store.slots import Keyspace, Slot
from ..store.store import Store
from ..tables.indexstorage import IndexStorage
from ..tables.storage import FileIndexes, Storage
from ..values import from_name as value_from_name
from . import keyspaces, multicheck
from .brokenlinks import broken_links
from .progress import Progress, Told, counted, silent
from .report import CheckReport, Kind, Problem, TableReport
from .undeclaredindexes import NotComputable, index_storage

_OURS = (b"f:", b"i:", b"t:")  # what names of sub-databases of tables, their indexes and feeds begin with


def check(
    store: Store,
    declared: Mapping[str, Storage[Any, Any]],
    told: Optional[Told] = None,
    timeout: Optional[float] = None,
) -> CheckReport:
    """The report on the database open in *store*; *declared* are the storages of the schema's tables, by name.

    Raises `WriterTimeout` if the file looks damaged and a writer stays for more than *timeout* seconds.
    """
    return _Check(store, declared, told or silent, timeout).run()


class _Check:
    """One check of one store."""

    def __init__(
        self, store: Store, declared: Mapping[str, Storage[Any, Any]], told: Told, timeout: Optional[float]
    ) -> None:  # fmt: skip
        self.store = store
        self.timeout = timeout
        self.declared = declared
        self.told = told
        self.catalogue: Catalogue = catalogue_of(store)
        self.report = CheckReport(store.engine.path, store.layout)
        self.txn: Transaction

    def run(self) -> CheckReport:
        """Check everything, the structure first: records on damaged pages are not read."""
        started = time.perf_counter()
        report, store = self.report, self.store
        if store.engine.file is not None:
            self._structure(store.engine.file)
        if report.ok:
            self._contents()
        else:
            report._note("the records were not read: salvage the file, or restore a backup")
        report.seconds = time.perf_counter() - started
        return report

    def _contents(self) -> None:
        while True:
            slots = self._slots()
            if not self.report.ok or self._is_checked(slots):
                return

    def _is_checked(self, slots: dict[str, Slot]) -> bool:
        """Check everything in a new snapshot; False if others have changed the catalogue since *slots* were read."""
        with self.store.reading() as self.txn:
            try:
                if _records(self.catalogue.read(self.txn)) != _records(slots):
                    return False
                self._everything(slots)
            except Exception as error:
                ours = self.store.engine.translate(error)
                if isinstance(ours, errors.TransactionStale):  # of this process: it has a handle of what is not there
                    self._problem("catalogue", f"a table or an index was dropped by another program ({ours})")
                elif isinstance(ours, (errors.CorruptDatabase, errors.DiskError)):
                    self._problem("structure", str(ours))
                else:
                    raise
        return True

    def _problem(self, kind: Kind, text: str, **details: Any) -> None:
        self.report._add(Problem(kind, text, **details))

    # -- the file -------------------------------------------------------------------------------------------------

    def _structure(self, file: str) -> None:
        self.report.bytes = os.path.getsize(file)
        for text in self.store.verify(lambda done, total: self.told(Progress("pages", done, total)), self.timeout):
            self._problem("structure", text)

    # -- the catalogue --------------------------------------------------------------------------------------------

    def _slots(self) -> dict[str, Slot]:
        """The tables of the catalogue, their spaces open."""
        with self.store.reading() as txn:
            try:
                slots = self.catalogue.read(txn)
            except (errors.DecodeError, ValueError, TypeError, AttributeError) as error:
                self._problem("catalogue", f"the catalogue cannot be read: {error}")
                return {}
            unknown = self._in_main(txn)  # those of no table of the catalogue are opened, too, to see what is in them
        self.store.open_spaces({*unknown, *spaces_of(self.catalogue, slots.values())})
        return slots

    def _in_main(self, txn: Transaction) -> list[bytes]:
        """The names of sub-databases that look like ours."""
        if not (self.store.traits.spaces and self.store.engine.names_in_main):
            return []
        names = (bytes(key).rstrip(b"\0") for key in txn.cursor().iternext(True, False))
        return [name for name in names if name and name != layout.GUARD[0].rstrip(b"\0")]

    def _everything(self, slots: dict[str, Slot]) -> None:
        self._names(slots)
        for text in self.catalogue.damage(self.txn):
            self._problem("catalogue", text)
        maps = {
            (records.storage.space, records.storage.prefix): (pmap, records.storage)
            for pmap, records in list(self.store.maps.items())
        }
        for slot in slots.values():
            self._table(slot, maps)
        for problem in multicheck.problems(
            slots, lambda slot: keyspaces.rows(self.store, self.txn, self.catalogue.keyspace(slot))
        ):
            self.report._add(problem)
        self._by_hand(slots, maps)
        if any(slot.referred for slot in slots.values()):
            self._links(slots)

    def _links(self, slots: dict[str, Slot]) -> None:
        """Every link of a record leads to a record."""
        for lost in broken_links(self.store, self.txn, slots):
            self._problem("link", lost.text, table=lost.table, index=lost.name, key=shortened(lost.key))

    def _names(self, slots: dict[str, Slot]) -> None:
        """Every sub-database belongs to a table, and every table has its sub-database."""
        if not (self.store.traits.spaces and self.store.engine.names_in_main):
            return
        if self.txn.id() == 0:
            self.report._note("nothing was ever stored in the file: the first program that opened it ended before that")
            return
        known = {layout.CATALOGUE, layout.SLOTS, *spaces_of(self.catalogue, slots.values())}
        guard = self.txn.get(layout.GUARD[0])
        if guard != layout.GUARD[1]:
            self._problem("catalogue", "the record that keeps zlmdb <= 26 from writing here is gone")
        foreign = layout.foreign_key(self.txn)
        if foreign is not None:
            self._problem("catalogue", f"another program has written the key {foreign!r} into the main database")
        found = {bytes(key).rstrip(b"\0") for key in self.txn.cursor().iternext(True, False)} - {b""}
        for name in sorted(found - known - {layout.GUARD[0], foreign}):
            space = self.store.space(name)
            if not name.startswith(_OURS) if space is None else self._entries(space.handle):
                self._problem("catalogue", f"the sub-database {name.decode(errors='replace')!r} is of no known table")
        for name in sorted(known - found):
            self._problem("catalogue", f"the sub-database {name.decode(errors='replace')!r} is missing")

    def _entries(self, handle: Handle) -> int:
        return int(self.txn.stat(handle)["entries"])

    # -- tables ---------------------------------------------------------------------------------------------------

    def _table(self, slot: Slot, maps: Mapping[Any, Any]) -> None:
        keyspace = self.catalogue.keyspace(slot)
        report = self.report.tables[slot.name] = TableReport(slot.class_name if slot.uuid else slot.name)
        storage = self.declared.get(slot.name)
        if storage is not None:
            reason = self._found(storage).unreadable
            if reason is not None:  # it waits for a migration, or the file has had one: records of another type
                self.report._note(f"table {slot.name!r}: {reason}: checked by the types in the file")
                storage = None
        pmap, attached = maps.get((keyspace.space, keyspace.prefix), (None, None))
        if storage is not None or attached is not None:
            report.codecs = "declared"
        else:
            storage = self._undeclared(slot, keyspace, report)
        for name in slot.building:
            self.report._note(f"index {slot.name}.{name} is being built, and is checked when it has all entries")
        indexes = [] if storage is None else self._kept(storage)
        if storage is None:
            storage = attached
        if pmap is not None and storage is not None:
            indexes += index_storages(pmap._attached, self.store, slot.name)
        if report.codecs == "plain" and storage is not None:
            indexes = self._plain_indexes(slot, storage)
        self._records(slot.name, report, keyspace, storage, indexes)
        if slot.has_feed:
            self._feed(slot, self.handle(keyspace.space))

    def _feed(self, slot: Slot, table: Handle) -> None:
        """The change feed of a table: whole, and its last changes are those of the records."""
        from ..feed import log  # late: few programs use a feed

        space = self.catalogue.feed_space(slot.name)
        handle = None if space is None else self.handle(space)
        if handle is None:
            return  # reported among the names
        for text in log.wrong(self.txn, handle):
            self._problem("feed", text, table=slot.name)
        if self.report.ok:
            for number, key in log.differences(self.txn, handle, table):
                text = f"the change {number} is the last one of the record, and left another value or none"
                self._problem("feed", text, table=slot.name, key=key.hex())

    def _found(self, storage: Storage[Any, Any]) -> FileIndexes:
        """What this snapshot says of a declared table."""
        return storage.file_indexes if storage.find_indexes is None else storage.find_indexes(self.txn, None)

    def _kept(self, storage: Storage[Any, Any]) -> list[IndexStorage]:
        """The declared indexes, except those that another program has dropped or changed meanwhile."""
        found = self._found(storage)
        left_out = found.gone | found.building
        return [index for index in storage.indexes if index.name not in left_out]

    def _undeclared(self, slot: Slot, keyspace: Keyspace, report: TableReport) -> Optional[Storage[Any, Any]]:
        if slot.key is None or slot.value is None:
            report.codecs = "unknown"
            self.report._note(
                f"table {slot.name} ({slot.class_name}) was made by zlmdb <= 26, which stores no types: its records "
                f"were counted, attach or declare it to check them"
            )
            return None
        try:
            key, value = key_from_name(slot.key), value_from_name(slot.value)
        except ValueError as error:
            report.codecs = "unknown"
            self.report._note(f"table {slot.name}: {error}")
            return None
        if "pickle" in slot.value or "flatbuffers" in slot.value:
            self.report._note(f"the {slot.value} values of table {slot.name} were not decoded: declare the table")
        return Storage(slot.name, keyspace.space, keyspace.prefix, key, value, self.store.environment.max_key_size())

    def _plain_indexes(self, slot: Slot, storage: Storage[Any, Any]) -> list[IndexStorage]:
        found: list[IndexStorage] = []
        for name, definition in slot.indexes.items():
            if name in slot.building:
                continue
            try:
                keyspace = self.catalogue.index_keyspace(slot, name)
                found.append(index_storage(self.store, keyspace, name, definition, storage))
            except ValueError as error:
                self.report._note(f"index {slot.name}.{name}: {error}")
        for name in slot.attached:
            self.report._note(
                f"index {slot.name}.{name} was attached by a program, and is checked only where that attaches it"
            )
        return found

    def _by_hand(self, slots: dict[str, Slot], maps: Mapping[Any, Any]) -> None:
        """The slots that programs chose by hand: checked if this program has such a map, otherwise counted."""
        space = self.store.traits.slots
        for prefix in keyspaces.by_hand(self.store, self.txn, slots):
            if len(prefix) < 2:
                self._problem("catalogue", keyspaces.foreign(prefix))
                continue
            name = f"slot {int.from_bytes(prefix, 'big')}"
            pmap, storage = maps.get((space, prefix), (None, None))
            report = self.report.tables[name] = TableReport(name, codecs="unknown" if storage is None else "declared")
            indexes = [] if pmap is None else index_storages(pmap._attached, self.store, name)
            if storage is None:
                self.report._note(f"{name}: a map with a slot given by hand, whose types only its program knows")
            self._records(name, report, Keyspace(space, prefix), storage, indexes)

    def handle(self, space: Optional[bytes]) -> Handle:
        """The engine's handle of a space."""
        found = self.store.space(space)
        return None if found is None else found.handle

    # -- records --------------------------------------------------------------------------------------------------

    def _records(
        self, name: str, report: TableReport, keyspace: Keyspace, storage: Optional[Storage[Any, Any]],
        indexes: list[IndexStorage],
    ) -> None:  # fmt: skip
        handle = self.handle(keyspace.space)
        if handle is None and keyspace.space is not None:
            return  # reported among the names
        checks = [_IndexCheck(self, name, index) for index in indexes if self._has(index)]
        for raw_key, data in counted(_rows(self.txn, handle, keyspace.prefix), name, self.told):
            report.records += 1
            if storage is not None:
                self._record(name, storage, raw_key, data, checks)
        if not keyspace.prefix and self._entries(handle) != report.records:
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
        if storage.keyed and storage.key_field is not None:
            try:
                storage.key_field.check(name, key, value)
            except errors.EncodeError as error:
                self._problem("record", str(error), table=name, key=shortened(key))
        primary = raw_key[len(storage.prefix) :]
        for check in checks:
            check.record(key, primary, value, storage)


class _IndexCheck:
    """The comparison of one index with the records of its table.

    The entry of each record is looked up. If all exist and the index has as many entries as there were records for it,
    the index is right; otherwise its entries are read. *blind*: the entry of some record cannot be computed, so only
    the owners of the entries are looked up.
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
        self._check.report._add(Problem(kind, text, self._table, self.storage.name, shown))

    def record(self, key: Any, primary: bytes, value: Any, table: Storage[Any, Any]) -> None:
        """Look up the entry of a record."""
        if self.blind:
            return
        try:
            entries = self.storage.entries(value, primary, stored=True)
        except NotComputable as error:
            self.blind = True
            self._check.report._note(f"index {self._table}.{self.storage.name}: {error}")
            return
        except Exception as error:  # the index function is the user's
            self.blind = True
            self._problem("index", f"the index key cannot be computed: {error!r}", key)
            return
        for entry in entries:
            self._expected += 1
            data = self._check.txn.get(entry, None, self._handle)
            if data is None:
                self._problem("index", "the record has no entry", key)
            elif not self.storage.belongs(data, key, primary):
                owner = shortened(self.storage.owner_of(data, table))
                self._problem("duplicate", f"the index key of the record leads to the record {owner}", key)
            elif self.storage.carries and bytes(data) != self.storage.entry_value(value, key, primary):
                self._problem("index", "the entry of the record carries other values than the record has", key)

    def finish(self, table: Optional[Storage[Any, Any]], handle: Handle) -> int:
        """Compare the number of entries, and find those that should not exist. Returns the number of entries."""
        storage = self.storage.storage
        entries = sum(1 for _ in _rows(self._check.txn, self._handle, storage.prefix, values=False))
        if table is not None and (self.blind or entries != self._expected):
            for entry, data in _rows(self._check.txn, self._handle, storage.prefix):
                self._entry(bytes(entry), data, table, handle)
        return entries

    def _entry(self, entry: bytes, data: Any, table: Storage[Any, Any], handle: Handle) -> None:
        index = self.storage
        try:
            primary = entry[index.tail :] if index.tail else self._primary(data, table)
            stored = self._check.txn.get(table.prefix + primary, None, handle)
            if stored is None:
                self._problem("index", f"the entry {entry.hex()} has no record", primary.hex())
            elif not self.blind:
                key = table.decode_key(table.prefix + primary)
                if entry not in index.entries(table.decode_value(stored, key), primary, stored=True):
                    self._problem("index", f"the entry {entry.hex()} is not that of its record", key)
        except (errors.DecodeError, errors.EncodeError) as error:
            self._problem("index", f"the entry {entry.hex()} does not decode: {error}")

    def _primary(self, data: Any, table: Storage[Any, Any]) -> bytes:
        if self.storage.owner is None:
            return bytes(data)
        return table.encode_key(self.storage.owner_of(data, table))[len(table.prefix) :]


def _rows(txn: Transaction, handle: Handle, prefix: bytes, *, values: bool = True) -> Iterator[Any]:
    """The engine's records whose keys begin with *prefix*, or their keys."""
    cursor = txn.cursor(handle)
    return prefixed(cursor, prefix) if values else prefixed_keys(cursor, prefix)


def _records(slots: Mapping[str, Slot]) -> dict[str, tuple[Optional[bytes], ...]]:
    """The bytes of *slots*, to compare them."""
    return {name: slot.records for name, slot in slots.items()}
