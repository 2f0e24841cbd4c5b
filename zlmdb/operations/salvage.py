"""Copies the readable records of a damaged file into a new database.

The damaged file is read page by page without LMDB, which would crash on some damage; damage to one page costs the
records on it, or on pages below it, and no others.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from .. import errors
from ..database.state import StrPath
from ..engines import Record, Remains, State, Transaction, Tree, registry
from ..keys import from_name as key_from_name
from ..namedtuples import NamedTuple
from ..schema.contents import open_handle
from ..store import layout
from ..store.catalogue import catalogue_of
from ..store.definitions import is_key
from ..store.layout import Layout
from ..store.slotrecords import checked_migration, slot_of
from ..store.slots import LAST_SLOT, Keyspace, Slot, slot_prefix, uuid_of
from ..store.store import OpenSpace, Store
from ..tables.storage import Storage
from ..values import from_name as value_from_name
from ..values.base import is_a
from .backup import file_of
from .filling import Filler, like, new_file
from .keyspaces import rows
from .multicheck import empty_keys
from .progress import Told, counted, silent
from .report import KEPT
from .unwritten import unwritten


@dataclass(frozen=True)
class Lost:
    """A record that was not copied: its table, the stored key in hexadecimal, and the reason."""

    table: str
    key: str
    reason: str


@dataclass
class SalvageReport:
    """The result of a salvage.

    *copied*: records by table. *lost*: the first 1,000 of *missing* records that were found but could not be read.
    *damage*: problems of the pages; records below a lost page are in no list, *expected* is the number that the file
    claims to have. *notes*: what to do next.
    """

    source: str
    target: str
    layout: str = ""
    copied: dict[str, int] = field(default_factory=dict[str, int])
    expected: dict[str, int] = field(default_factory=dict[str, int])
    lost: list[Lost] = field(default_factory=list[Lost])
    missing: int = 0
    damage: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def complete(self) -> bool:
        """Whether there was no damage, and every record was copied."""
        return not (self.missing or self.damage) and all(
            self.copied.get(name) == count for name, count in self.expected.items()
        )

    @property
    def records(self) -> int:
        """The number of copied records, of all tables."""
        return sum(self.copied.values())

    def _lose(self, table: str, key: bytes, reason: str) -> None:
        """Count a lost record, and keep it if it is one of the first."""
        self.missing += 1
        if len(self.lost) < KEPT:
            self.lost.append(Lost(table, key.hex(), reason))

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return {"complete": self.complete, "records": self.records, **asdict(self)}


def salvage(source: StrPath, target: StrPath, told: Optional[Told] = None) -> SalvageReport:
    """Copy the readable content of the database at *source* into a new one at *target*."""
    engine = registry.engine(os.fspath(source))
    report = SalvageReport(file_of(engine), os.path.abspath(os.fspath(target)))
    with engine.remains() as file:
        found = _found(file)
        report.layout = found.layout
        if not found.state.newest or file.faults:
            report.notes.append(
                "the last commits may be missing: a meta page, or the tables it leads to, cannot be read"
            )
        report.damage += file.faults
        with new_file(target, found.layout, file.format, file.size, like(engine)) as store:
            with unwritten(engine, file.roots), Filler(store) as filler:
                salvaging = _Salvage(found.state, filler, report, told or silent)
                salvaging.tables() if found.layout == "tables" else salvaging.classic(found.catalogue)
            _drop_empty_keys(store, report)
        report.damage += salvaging.state.problems
    return report


def _drop_empty_keys(store: Store, report: SalvageReport) -> None:
    """Delete keys of a `SetTable` or `ListTable` whose values are lost: a new key would get the number of one."""

    def drop(txn: Transaction, open_space: OpenSpace) -> None:
        catalogue = catalogue_of(store)
        slots = catalogue.read(txn)

        for slot, key in list(empty_keys(slots, lambda slot: rows(store, txn, catalogue.keyspace(slot)))):
            keyspace = catalogue.keyspace(slot)
            txn.delete(keyspace.prefix + key, db=open_handle(keyspace.space, open_space))
            report.copied[slot.name] -= 1
            report._lose(slot.name, key, "its values are lost")

    store.change(drop)


class _Found(NamedTuple):
    """A committed state of the file that has tables. *catalogue*: in the classic layout, what the file says of them."""

    state: State
    layout: Layout
    catalogue: Mapping[bytes, Optional[bytes]]


def _found(file: Remains) -> _Found:
    """The newest state in which tables are found. Raises `CorruptDatabase`, `InvalidDatabase`."""
    for state in file.states:
        catalogue: dict[bytes, Optional[bytes]] = {}
        trees = slots = False
        for record in state.main():
            if _name(record) == layout.CATALOGUE:
                return _Found(state, "tables", {})
            trees, slots = trees or record.tree is not None, slots or len(record.key) >= 2
            if record.key[:2] == b"\0\0":
                catalogue[record.key] = record.value
        if slots and not trees:
            return _Found(state, "classic", catalogue)
    wrong = [problem for state in file.states for problem in state.problems]
    why = f": the pages that lead to them cannot be read ({wrong[0]}); restore a backup" if wrong else ""
    raise errors.CorruptDatabase(f"{file.path!r}: the file contains no tables of zlmdb{why}", path=file.path)


def _name(record: Record) -> Optional[bytes]:
    """The name of a sub-database, which LMDB 1.0 ends with a NUL."""
    return None if record.tree is None else record.key.rstrip(b"\0")


def _is_index(name: Any, entry: Any) -> bool:
    """Whether a classic file says with *entry* where the entries of the index *name* are."""
    if not (is_a(name, str) and is_a(entry, dict)):
        return False
    return type(entry.get("slot")) is int and is_a(entry.get("table", ""), str)


class _Salvage:
    """One run over one state."""

    def __init__(self, state: State, filler: Filler, report: SalvageReport, told: Told) -> None:
        self.state = state.afresh()
        self.filler = filler
        self.report = report
        self.told = told

    # -- the tables layout ----------------------------------------------------------------------------------------

    def tables(self) -> None:
        """Copy the tables that the catalogue names, and those that it has lost."""
        trees = {
            name: record.tree for record in self.state.main() if (name := _name(record)) and record.tree is not None
        }
        catalogue = trees.pop(layout.CATALOGUE, None)
        if catalogue is None:  # it was there a moment ago
            raise errors.DiskError(
                f"{self.report.source!r}: the disk gave the page that leads to the tables only once: try again",
                path=self.report.source,
            )
        definitions = self._definitions(catalogue)
        adopted = {entry.get("table") for slot in definitions.values() for entry in slot.indexes.values()}
        for table, slot in definitions.items():
            tree = trees.pop(b"t:" + table.encode(), None)
            self._table(slot, tree, empty=table in adopted)
        for name, tree in trees.items():
            if name.startswith(b"t:") and not tree.entries:
                continue  # what a table that was renamed or dropped leaves behind
            if name.startswith(b"t:"):
                table = name[2:].decode(errors="replace")
                self.report.damage.append(f"table {table}: its types are not found in the catalogue")
                self._table(Slot(table, 0), tree)
            elif name == layout.SLOTS:
                self._records("slots", tree, Keyspace(layout.SLOTS, b""), None)

    def _definitions(self, tree: Tree) -> dict[str, Slot]:
        found: dict[str, Slot] = {}
        for record in self.state.records("catalogue", tree):
            try:
                if record.key[:2] == b"m:":
                    self.filler.copy_migrations([checked_migration(layout.decode(record.value or b""))])
                elif record.key[:2] == b"t:":
                    table = record.key[2:].decode()
                    found[table] = slot_of(table, layout.decode(record.value or b""))
            except (ValueError, TypeError, AttributeError) as error:
                self.report._lose("catalogue", record.key, str(error))
        return found

    def _table(self, slot: Slot, tree: Optional[Tree], *, empty: bool = False) -> None:
        if slot.indexes:
            names = ", ".join(slot.indexes)
            self.report.notes.append(
                f"the indexes of {slot.name} ({names}) are built again when a program that has them opens the file"
            )
        self._note_links(slot.name, slot.indexes)
        slot.indexes, slot.building, slot.referred = {}, {}, []
        slot.keyed = None  # bits of records may have flipped
        if slot.feed is not None and slot.has_feed:
            from ..feed.log import LOST  # late: few programs use a feed

            slot.feed = {"after": slot.feed["after"] + LOST}  # a number after all that there can have been
            self.report.notes.append(
                f"the change feed of {slot.name} is not copied: a new one begins, and its consumers are told so"
            )
        keyspace = self.filler.table(slot)
        if tree is None:
            self.report.damage.append(f"table {slot.name}: its pages are not found")
            self.report.copied[slot.name] = 0
        elif not empty:
            self._records(slot.name, tree, keyspace, self._codecs(slot, keyspace))

    def _note_links(self, table: str, indexes: Mapping[str, Any]) -> None:
        """Say what to do if links lead to records that are lost."""
        links = [name for name, definition in indexes.items() if "link" in definition]
        if links:
            self.report.notes.append(
                f"the links of {table} ({', '.join(links)}) may lead to records that are lost, so that programs which "
                f"declare them cannot open the file: zlmdb mend-links lists such links, and deletes or clears them"
            )

    def _codecs(self, slot: Slot, keyspace: Keyspace) -> Optional[Storage[Any, Any]]:
        if slot.key is None or slot.value is None:
            return None
        try:
            key, value = key_from_name(slot.key), value_from_name(slot.value)
        except ValueError as error:
            self.report.notes.append(f"the records of {slot.name} are copied as they are: {error}")
            return None
        return Storage(slot.name, keyspace.space, b"", key, value, 1 << 16)

    def _records(self, name: str, tree: Tree, keyspace: Keyspace, storage: Optional[Storage[Any, Any]]) -> None:
        self.report.copied[name] = 0
        self.report.expected[name] = tree.entries
        for record in counted(self.state.records(name, tree), name, self.told, tree.entries):
            self._record(name, record.key, record.value, keyspace, storage)

    def _record(
        self, name: str, key: bytes, data: Optional[bytes], keyspace: Keyspace, storage: Optional[Storage[Any, Any]]
    ) -> None:
        """Copy a record if it can be decoded."""
        if data is None:
            self.report._lose(name, key, "its value cannot be read")
            return
        if storage is not None:
            try:
                storage.decode_value(data, storage.decode_key(key))
            except Exception as error:
                self.report._lose(name, key, str(error))
                return
        try:
            stored = self.filler.put(keyspace, key, data)
        except errors.EncodeError as error:
            self.report._lose(name, key, str(error))
            return
        if stored:
            self.report.copied[name] = self.report.copied.get(name, 0) + 1
        else:
            self.report._lose(name, key, "another record has the key already")

    # -- the classic layout ---------------------------------------------------------------------------------------

    def classic(self, records: Mapping[bytes, Optional[bytes]]) -> None:
        """Copy the slots, except those of the indexes that are built again. *records* are those of the catalogue."""
        definitions = self._classic_definitions(records)
        self._classic_migrations(records)
        hidden = {entry.get("slot") for one in definitions.values() for entry in one.get("indexes", {}).values()}
        names, storages = self._slots(records, definitions)
        for record in self.state.main():
            number = int.from_bytes(record.key[:2], "big")
            if number == 0 or number in hidden or len(record.key) < 2:
                continue
            if number > LAST_SLOT:  # which zlmdb <= 26 did not refuse
                self.report._lose(f"slot {number}", record.key[2:], f"slots are numbered from 1 to {LAST_SLOT}")
                continue
            keyspace, name = Keyspace(None, slot_prefix(number)), names.get(number, f"slot {number}")
            self._record(name, record.key[2:], record.value, keyspace, storages.get(number))
        for table, one in definitions.items():
            self._note_links(table, one.get("indexes", {}))
        if any(one.get("indexes") for one in definitions.values()):
            self.report.notes.append("declared indexes are built again when a program opens the database writable")
        self.report.notes.append(
            "indexes attached to classic maps are copied as they were: rebuild them with m.rebuild_indexes(txn)"
        )

    def _classic_definitions(self, records: Mapping[bytes, Optional[bytes]]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for key, data in records.items():
            if not is_key(key):
                continue
            try:
                for table, definition in layout.decode(data or b"").items():
                    if is_a(table, str):
                        found[table] = self._definition(key, table, definition)
                    else:
                        self._lose_definition(key, f"{table!r} is no name of a table")
            except (ValueError, TypeError) as error:
                self._lose_definition(key, str(error))
        return found

    def _definition(self, key: bytes, table: str, definition: Any) -> dict[str, Any]:
        """The valid part of a table's definition; the table is known by its name in any case."""
        known: dict[str, Any] = dict(definition) if is_a(definition, dict) else {}
        indexes = known.pop("indexes", {})
        if not (is_a(definition, dict) and is_a(indexes, dict)):
            self._lose_definition(key, f"the definition of table {table} is damaged")
            return known
        sound = known["indexes"] = {name: entry for name, entry in indexes.items() if _is_index(name, entry)}
        for name in indexes:
            if name not in sound:
                self._lose_definition(key, f"the definition of the index {table}.{name} is damaged")
        return known

    def _lose_definition(self, key: bytes, reason: str) -> None:
        self.report._lose("catalogue", key, reason)

    def _classic_migrations(self, records: Mapping[bytes, Optional[bytes]]) -> None:
        data = records.get(layout.MIGRATIONS_KEY)
        if data is None:
            return
        try:
            found = list(layout.decode(data)["migrations"])
        except (ValueError, TypeError, KeyError) as error:
            self.report._lose("catalogue", layout.MIGRATIONS_KEY, str(error))
            return
        for record in found:
            try:
                self.filler.copy_migrations([checked_migration(record)])
            except (ValueError, TypeError) as error:
                self.report._lose("catalogue", layout.MIGRATIONS_KEY, str(error))

    def _slots(
        self, records: Mapping[bytes, Optional[bytes]], definitions: Mapping[str, dict[str, Any]]
    ) -> tuple[dict[int, str], dict[int, Storage[Any, Any]]]:
        """The tables by slot, entered into the new catalogue: names, and codecs where the file names them."""
        by_uuid = {str(uuid_of(table)): table for table in definitions}
        entries = [entry for one in definitions.values() for entry in one.get("indexes", {}).values()]
        hidden = {entry.get("slot") for entry in entries if "table" not in entry}
        names: dict[int, str] = {}
        storages: dict[int, Storage[Any, Any]] = {}
        for key, data in records.items():
            number = int.from_bytes(key[2:], "big")
            if len(key) != 4 or number in hidden or number > LAST_SLOT:
                continue
            try:
                record = dict(layout.decode(data or b""))
                table = by_uuid.get(str(record["oid"]), str(record["oid"]))
                definition = definitions.get(table, {})
                slot = slot_of(table, {**record, "uuid": str(record["oid"]), **definition, "slot": number})
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                self.report._lose("catalogue", key, str(error))
                continue
            slot.indexes, slot.building, slot.referred = {}, {}, []
            slot.keyed = None
            keyspace = self.filler.table(slot)
            names[number] = table
            codecs = self._codecs(slot, keyspace)
            if codecs is not None:
                storages[number] = codecs
        return names, storages
