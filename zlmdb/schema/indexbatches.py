"""Builds the indexes of large tables in batches, each a transaction of its own, so that others can write in between.

While an index is being built, the file says with its definition how far that is (`Slot.building`). Two rules make the
result right. Whoever writes to the table knows the index, since others are refused as for any index, and maintains its
entries of all records, those that the build has reached and those that it has not. And the build writes the entries of
each record that it comes to, whether they are there or not. So it does not matter in which order they come. Nobody
reads the index before the last batch.

A unique key that two records have is found by the build, when it comes to the second one, or by the writer. A link is
checked as the build comes to it. It stays right, because until the end no record that a link may lead to is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Optional

from .. import errors
from ..engines import Handle, Transaction
from ..locks import monotonic
from ..log import log
from ..namedtuples import NamedTuple
from ..store.catalogue import Catalogue, catalogue_of
from ..store.ranges import pairs_between
from ..store.slots import Slot
from ..store.store import OpenSpace, Store
from ..tables.indexstorage import IndexStorage
from ..tables.links import leads
from ..tables.storage import Storage
from ..tables.upkeep import entries_to_build
from . import indexbuilding
from .comparison import compare, unfinished
from .contents import open_handle
from .declaration import Declaration
from .indexbuilding import is_steady, remove_index
from .links import SHOWN, dangling
from .links import record as record_links
from .storages import known_indexes, storage_of

_TURN = 0.055
"""Seconds between two batches: other processes that want to write look for the lock every 0.05 seconds."""

_ENTRIES = 4  # for each record of a batch, so many entries may wait in memory to be sorted; more end the batch
_READING = 0.5  # seconds after which a batch reads no more records: writers wait for twice as long, about

Told = Callable[[str, int, Optional[int]], object]
"""Called with the names of indexes, the records done, and the number of all, if that is known."""


class _Unfit(Exception):
    """A record does not fit an index; *error* says why."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _Step(NamedTuple):
    """What a batch has done: *names* are the indexes. *error*: they were given up."""

    names: str = ""
    records: int = 0
    total: Optional[int] = None
    over: bool = False
    error: Optional[Exception] = None


class _Part(NamedTuple):
    """One of the indexes of a batch, and its entries. *target*: where the records are that it, a link, leads to."""

    storage: IndexStorage
    handle: Handle
    target: Optional[tuple[Storage[Any, Any], Handle]]
    rows: list[tuple[bytes, bytes]]


def build_in_batches(
    store: Store, declarations: Sequence[Declaration], timeout: Optional[float], told: Optional[Told] = None
) -> list[str]:
    """Build what the file lacks of the declared indexes that it has begun; other processes may do the same meanwhile.

    Returns the names of those that another process has dropped meanwhile, or has declared with another definition.
    Raises `DuplicateKey`, `EncodeError`, `DecodeError` or `SchemaMismatch` for a record that does not fit, and drops
    these indexes then.
    """
    builder = _Builder(store, catalogue_of(store), declarations)
    for declared in declarations:
        over = False
        while not over:
            began = monotonic()
            try:
                step = store.change(partial(builder.batch, declared), timeout=timeout)
            except errors.DatabaseFull as error:
                raise builder.without_room(declared, error) from error.__cause__
            if step.error is not None:
                raise step.error
            over = step.over
            if step.names:
                if over:
                    log.info("index %s built: %d records", step.names, step.records)
                else:
                    log.info("building index %s: %d of %s records", step.names, step.records, step.total or "the")
                if told is not None:
                    told(step.names, step.records, step.total)
            if not over and store.engine.writer_lock is not None:
                time.sleep(min(_TURN, monotonic() - began))
    return builder.gone()


class _Builder:
    """Builds indexes of *declarations*."""

    def __init__(self, store: Store, catalogue: Catalogue, declarations: Sequence[Declaration]) -> None:
        self._store = store
        self._catalogue = catalogue
        self._declarations = declarations
        self._begun: dict[str, set[str]] = {}  # the indexes of each table, by name

    def without_room(self, declared: Declaration, error: errors.DatabaseFull) -> errors.DatabaseFull:
        """The *error* of a batch, with what becomes of the indexes that it is of; as it is before there are any."""
        if declared.name not in self._begun:
            return error
        names = " and ".join(sorted(f"{declared.name}.{one}" for one in self._begun[declared.name]))
        return errors.DatabaseFull(
            f"{error}. So far a part of the index {names} is built, and the next opening goes on with the rest; with "
            f"build_indexes=False the database is opened without it",
            **vars(error),
        )

    def gone(self) -> list[str]:
        """The indexes that it has begun to build, and that the file does not have any more."""
        with self._store.reading() as txn:
            slots = self._catalogue.read(txn) if self._begun else {}
        found: list[str] = []
        for declared in self._declarations:
            slot = slots.get(declared.name)
            known = {} if slot is None else known_indexes(slot, declared)
            found += [f"{declared.name}.{one}" for one in self._begun.get(declared.name, ()) if one not in known]
        return found

    def batch(self, declared: Declaration, txn: Transaction, open_space: OpenSpace) -> _Step:
        """Build the entries of the next records of a table, of those indexes that are behind the others."""
        slots = self._catalogue.read(txn)
        slot = slots.get(declared.name)
        names = [] if slot is None or not slot.building else unfinished(slot, declared)
        if slot is None or not names:
            return _Step(over=True)
        self._begun.setdefault(declared.name, set()).update(names)
        compare(self._store, slot, declared)
        reached, *further = sorted([slot.building[name] for name in names], key=_position)
        behind = [name for name in names if _position(slot.building[name]) == _position(reached)]
        met = further[len(behind) - 1] if len(behind) < len(names) else None  # from there on all are built together
        storage = storage_of(self._store, self._catalogue, slots, declared)
        storage.steady = is_steady(slot)
        parts = [self._part(one, slots, open_space) for one in storage.indexes if one.name in behind]
        handle = open_handle(storage.space, open_space)
        lower = storage.prefix + reached["after"] + b"\0" if reached["records"] else storage.lower
        upper = storage.upper if met is None else storage.prefix + met["after"] + b"\0"
        try:
            count, last = _read(parts, storage, pairs_between(txn.cursor(handle), lower, upper))
            for part in parts:
                _write(part, storage, txn)
        except _Unfit as unfit:
            self._give_up(slots, txn, open_space)
            return _Step(error=unfit.error)
        slot = slot.copy()
        records = reached["records"] + count
        for name in behind:
            if last is not None:
                slot.building[name] = {"after": last, "records": records}
            elif met is not None:
                slot.building[name] = met
            else:
                del slot.building[name]
        self._catalogue.write(txn, slot)
        total = int(txn.stat(handle)["entries"]) if storage.alone else None
        return _Step(", ".join([part.storage.full_name for part in parts]), records, total, not slot.building)

    def _part(self, index: IndexStorage, slots: dict[str, Slot], open_space: OpenSpace) -> _Part:
        target = None
        if "link" in index.definition:
            to = next((one for one in self._declarations if one.name == index.definition["link"]["to"]), None)
            if to is not None:  # else it waits for a migration, at whose end all links are checked
                storage = storage_of(self._store, self._catalogue, slots, to)
                target = storage, open_handle(storage.space, open_space)
        return _Part(index, open_handle(index.storage.space, open_space), target, [])

    def _give_up(self, slots: dict[str, Slot], txn: Transaction, open_space: OpenSpace) -> None:
        """Drop the indexes that are being built."""
        links = False
        for declared in self._declarations:
            slot = slots.get(declared.name)
            if slot is not None and slot.building:
                names, slot = unfinished(slot, declared), slot.copy()
                for name in names:
                    links = "link" in remove_index(self._catalogue, slot, name, txn, open_space) or links
                self._catalogue.write(txn, slot)
        if links:
            record_links(self._catalogue, txn, self._catalogue.read(txn))


def _position(reached: dict[str, Any]) -> tuple[int, bytes]:
    return min(1, reached["records"]), reached["after"]


def _read(
    parts: Sequence[_Part], storage: Storage[Any, Any], rows: Iterator[tuple[bytes, Any]]
) -> tuple[int, Optional[bytes]]:
    """Collect the entries of the next records; how many these are, and the last primary key if others may follow."""
    count, entries, skip = 0, 0, len(storage.prefix)
    until = monotonic() + _READING
    for count, (raw_key, data) in enumerate(rows, 1):
        primary = bytes(raw_key[skip:])
        try:
            key = storage.decode_key(raw_key)
            value = storage.decode_value(data, key)
            for index, _, _, found in parts:
                for entry in entries_to_build(index, storage, data, key, value, primary):
                    found.append((entry, index.entry_value(value, key, primary)))
                    entries += 1
        except Exception as error:  # also of the program's own functions
            raise _Unfit(error) from error
        most = indexbuilding.BATCH
        if count >= most or entries >= _ENTRIES * most or monotonic() >= until:
            return count, primary
    return count, None


def _write(part: _Part, storage: Storage[Any, Any], txn: Transaction) -> None:
    """Write the entries of a batch in their order, which changes each page once."""
    index, handle, _, rows = part
    rows.sort()
    _check_links(part, storage, txn)
    cursor = txn.cursor(handle)
    _, added = cursor.putmulti(rows, True, not index.unique)
    cursor.close()
    if index.unique and added != len(rows):
        for entry, data in rows:
            found = txn.get(entry, None, handle)
            if found != data:  # else somebody has written it meanwhile
                second = storage.key.decode(data)
                raise _Unfit(index.conflict(index.load_key(entry), index.owner_of(found, storage), second))


def _check_links(part: _Part, storage: Storage[Any, Any], txn: Transaction) -> None:
    """Give up if the entries are those of a link, and lead to no record."""
    index, target = part.storage, part.target
    if target is None:
        return
    there, handle = target
    lost: list[tuple[Any, bytes]] = []
    before: Any = None
    for entry, data in part.rows:
        key = index.load_key(entry)
        if key != before and not leads(there, key, handle, txn):
            lost.append((key, entry[index.tail :] if index.tail else data))
            if len(lost) > SHOWN:
                break
        before = key
    if lost:
        raise _Unfit(dangling(index, storage, there, lost))
