"""Converts a file of the classic layout, of zlmdb 26, to the tables layout; compares every record with its original."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from .. import errors
from ..classic.pmap import PersistentMap
from ..database.state import StrPath
from ..engines import Transaction, registry
from ..keys import KeyCodec, tables_codec
from ..keys import from_name as key_from_name
from ..namedtuples import NamedTuple
from ..shown import shortened
from ..store import openstores
from ..store.catalogue import catalogue_of
from ..store.layout import SLOTS
from ..store.slots import Keyspace, Slot, slot_prefix, uuid_of
from ..store.store import Store
from ..values import from_name as value_from_name
from ..values.base import Serializer, is_a
from .backup import file_of
from .filling import Filler, like, new_file
from .keyspaces import numbers_by_hand, rows
from .progress import EVERY, Progress, Told, counted, silent
from .report import KEPT
from .stream import SHAPE


@dataclass(frozen=True)
class Skipped:
    """A record that cannot be converted: its table, the stored key in hexadecimal, and the reason."""

    table: str
    key: str
    reason: str


@dataclass
class ConversionReport:
    """The result of a conversion: *records* by table; *keys* and *values* count those whose bytes have changed.

    *skipped* are the first 1,000 of *failed* records that could not be converted.
    """

    source: str
    target: Optional[str]
    records: dict[str, int] = field(default_factory=dict[str, int])
    keys: dict[str, int] = field(default_factory=dict[str, int])
    values: dict[str, int] = field(default_factory=dict[str, int])
    verified: int = 0
    failed: int = 0
    skipped: list[Skipped] = field(default_factory=list[Skipped])

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return asdict(self)


class _Plan(NamedTuple):
    """A table to convert: its new slot, its keyspace, and the codecs of its keys in the old and the new file."""

    name: str
    slot: Optional[Slot]
    keyspace: Keyspace
    old: KeyCodec[Any]
    new: KeyCodec[Any]
    value: Serializer[Any]


def convert(
    source: StrPath,
    target: Optional[StrPath],
    maps: Sequence[type[PersistentMap[Any, Any]]] = (),
    slots: Optional[Mapping[int, Any]] = None,
    *,
    skip: bool = False,
    lib_version: Optional[str] = None,
    told: Optional[Told] = None,
) -> ConversionReport:
    """Convert the classic database *source* to a new one of the tables layout at *target*; with None writes nothing."""
    path = os.fspath(source)
    options = registry.options(path, readonly=True)
    opening = openstores.Opening(path, options, create=False, slots_expected=True)
    store = openstores.acquire(opening, _Handle())
    try:
        if store.layout != "classic":
            raise errors.InvalidDatabase(
                f"{opening.path!r} has the tables layout already: there is nothing to convert; "
                f"`zlmdb upgrade` runs the migrations of a schema",
                path=opening.path,
            )
        report = ConversionReport(str(opening.path), None if target is None else os.path.abspath(os.fspath(target)))
        version = {} if lib_version is None else {"lib_version": lib_version}
        limit = registry.engine(path, registry.options(path, **version)).key_limit
        conversion = _Conversion(store, report, told or silent, skip, limit)
        with store.reading() as txn:  # one state: a program may make a table, or write, at any moment
            plans = _plans(store, txn, {cls._zlmdb_oid: cls for cls in maps}, slots or {})
            if target is None:
                conversion.run(txn, plans, None)
            else:
                needed = os.path.getsize(file_of(store.engine))
                with new_file(target, "tables", lib_version, needed, like(store.engine)) as made:
                    with Filler(made) as filler:
                        conversion.run(txn, plans, filler)
                    conversion.verify(txn, plans, made)
        return report
    finally:
        openstores.release(store)


class _Handle:
    """Represents the user of the open source."""

    is_open = False


def _plans(store: Store, txn: Transaction, maps: Mapping[Any, Any], slots: Mapping[int, Any]) -> list[_Plan]:
    """The tables that *txn* sees. Raises `SchemaMismatch` naming the tables whose types are unknown."""
    catalogue = catalogue_of(store)
    found = catalogue.read(txn)
    plans: list[_Plan] = []
    unknown: list[str] = []
    for slot in found.values():
        codecs = _codecs(slot, maps.get(slot.uuid))
        if codecs is None:
            unknown.append(f"{slot.name} ({slot.class_name})")
            continue
        old, new, value = codecs  # the name of the value type, which is pickle where its codec here is bytes
        uuid = None if slot.uuid == uuid_of(slot.name) else slot.uuid
        made = Slot(slot.name, slot.number, uuid, slot.class_name, slot.description, new.name, value, slot.model,
                    **{name: getattr(slot, name) for name in SHAPE})  # fmt: skip
        plans.append(_Plan(slot.name, made, catalogue.keyspace(slot), old, new, value_from_name(value)))
    for number in numbers_by_hand(store, txn, found):
        if number not in slots:
            unknown.append(f"slot {number}")
            continue
        key, serializer = _of_map(slots[number], number)
        keyspace = Keyspace(None, slot_prefix(number))
        plans.append(_Plan(f"slot {number}", None, keyspace, key.classic(), key, value_from_name(serializer.name)))
    if unknown:
        raise errors.SchemaMismatch(
            f"zlmdb <= 26 stores no types, and those of {', '.join(unknown)} are not given: name the map of each"
        )
    return plans


def _codecs(slot: Slot, cls: Any) -> Optional[tuple[KeyCodec[Any], KeyCodec[Any], str]]:
    """The codecs of the keys in the classic file and in the new one, and the name of the values' codec."""
    if cls is not None:
        key, value = _of_map(cls, slot.number)
        if slot.key is not None and slot.key != key.classic().name:
            raise errors.SchemaMismatch(f"table {slot.name} has keys of type {slot.key}, the map {key.name}")
        return key.classic(), key, value.name
    if slot.key is None or slot.value is None:
        return None
    stored = key_from_name(slot.key)
    return stored, tables_codec(stored), slot.value


def _of_map(given: Any, number: int) -> tuple[KeyCodec[Any], Serializer[Any]]:
    """The codecs of a map, or of a class of maps."""
    made: PersistentMap[Any, Any] = given._in_slot(number) if is_a(given, type) else given
    return made._both_codecs()


class _Conversion:
    """One pass that writes, and one that compares."""

    def __init__(self, source: Store, report: ConversionReport, told: Told, skip: bool, limit: int) -> None:
        """*limit*: the maximum size of a key in the new file, in bytes."""
        self._source = source
        self._limit = limit
        self._report = report
        self._told = told
        self._skip = skip

    def run(self, txn: Transaction, plans: Sequence[_Plan], filler: Optional[Filler]) -> None:
        """Convert every record that *txn* reads; without a *filler* nothing is written."""
        report = self._report
        if filler is not None:
            filler.copy_migrations(catalogue_of(self._source).migrations(txn))
        for plan in plans:
            keyspace = None
            if filler is not None:
                keyspace = _new_keyspace(plan, filler.store)
                if plan.slot is not None:
                    filler.table(plan.slot)
            report.records[plan.name] = report.keys[plan.name] = report.values[plan.name] = 0
            for key, data in counted(rows(self._source, txn, plan.keyspace), plan.name, self._told):
                converted = self._converted(plan, key, data)
                if converted is None:
                    continue
                report.records[plan.name] += 1
                report.keys[plan.name] += converted[0] != key
                report.values[plan.name] += converted[1] != data
                if filler is not None and keyspace is not None:
                    filler.put(keyspace, *converted)
        if report.failed and not self._skip:
            first = report.skipped[0]
            raise errors.DecodeError(
                f"{report.failed} records cannot be converted, first {first.key} of {first.table}: {first.reason}. "
                f"Delete them, or say that they are to be skipped",
                table=first.table,
            )

    def _converted(self, plan: _Plan, key: bytes, data: bytes) -> Optional[tuple[bytes, bytes]]:
        """The key and value of the new file; None if the record is skipped."""
        try:
            decoded, made = self._new_key(plan, key)
            if plan.new.decode(made) != decoded:
                raise ValueError(f"the key {decoded!r} would be read back as another key")
            value = plan.value.decode(data)
            # Sets are written in another order, without what was there twice. Other bytes stay: they hold the same.
            return made, plan.value.encode(value) if "set" in plan.value.name else data
        except ValueError as error:
            self._report.failed += 1
            if len(self._report.skipped) < KEPT:
                self._report.skipped.append(Skipped(plan.name, key.hex(), str(error)))
            return None

    def verify(self, old: Transaction, plans: Sequence[_Plan], made: Store) -> None:
        """Compare the new file with what *old* reads, record by record. Raises `CorruptDatabase`."""
        report = self._report
        with made.reading() as new:
            for plan in plans:
                keyspace = _new_keyspace(plan, made)
                handle = getattr(made.space(keyspace.space), "handle", None)
                for key, data in rows(self._source, old, plan.keyspace):
                    try:
                        (decoded, made_key), value = self._new_key(plan, key), plan.value.decode(data)
                    except ValueError:
                        continue  # reported when it was skipped
                    stored = new.get(keyspace.prefix + made_key, None, handle)
                    # Equal bytes first: there are values, such as NaN, that equal nothing.
                    if stored is None or (stored != data and plan.value.decode(stored) != value):
                        raise errors.CorruptDatabase(
                            f"the record {decoded!r} of {plan.name} is different in the new file"
                        )
                    report.verified += 1
                    if report.verified % EVERY == 0:
                        self._told(Progress("verify", report.verified, sum(report.records.values())))
        if report.verified != sum(report.records.values()):
            raise errors.CorruptDatabase(f"{report.verified} of {sum(report.records.values())} records arrived")
        self._told(Progress("verify", report.verified, report.verified))

    def _new_key(self, plan: _Plan, key: bytes) -> tuple[Any, bytes]:
        """The key encoded in *key*, and its bytes in the new file. Raises ValueError if there is none."""
        decoded = plan.old.decode(key)
        made = plan.new.encode(decoded)
        size = len(made) + (len(plan.keyspace.prefix) if plan.slot is None else 0)
        if not 0 < size <= self._limit:
            raise ValueError(f"the key {shortened(decoded)} takes {size} bytes, 1 to {self._limit} fit in the new file")
        return decoded, made


def _new_keyspace(plan: _Plan, made: Store) -> Keyspace:
    return Keyspace(SLOTS, plan.keyspace.prefix) if plan.slot is None else catalogue_of(made).keyspace(plan.slot)
