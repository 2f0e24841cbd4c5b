"""The consequences of a change of a record: its index entries, and those of other followers.

All changes of records pass through this module: once before anything is written, when a follower may refuse, and once
when the record is written. Generated functions do this in code of their own, which is compared with this module; only
the general form writes to a table with followers that they do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Optional, Protocol

from ..engines import Handle
from ..engines import Transaction as EngineTransaction
from ..errors import SchemaMismatch
from ..namedtuples import NamedTuple
from ..shown import shortened
from .indexstorage import BoundIndex, IndexStorage
from .storage import Storage

if TYPE_CHECKING:
    from ..store.transaction import Transaction

Written = tuple[int, int]
"""How many records a follower put, and how many it deleted."""


class Change(NamedTuple):
    """A change of the record *key*, encoded *primary*: its value before and after as 1-tuples, None without one.

    *data* are the bytes that are stored.
    """

    table: Storage[Any, Any]
    key: Any
    primary: bytes
    old: Optional[tuple[Any]]
    new: Optional[tuple[Any]]
    data: Optional[bytes] = None


class Follower(Protocol):
    """Follows the records of a table, by writes to the same transaction."""

    def plan(self, txn: Transaction, change: Change, /) -> Optional[Callable[[], Written]]:
        """The write to make after that of the record, or None. Raises to refuse the change; writes nothing."""
        ...

    def cleared(self, txn: Transaction, table: Storage[Any, Any], count: int, /) -> Written:
        """All *count* records of *table* are deleted: delete everything that belonged to them."""
        ...


def plan(indexes: Iterable[BoundIndex], txn: Transaction, change: Change) -> list[Callable[[], Written]]:
    """The effects of a change on *indexes* and the other followers of its table. Nothing is written.

    Raises `DuplicateKey`, `NullValueConstraint` or `EncodeError` if an index refuses it, and any error of a follower.
    """
    steps: list[Callable[[], Written]] = []
    for bound in indexes:
        found = _entries(bound, txn._engine_txn, change)
        if found is not None:
            steps.append(found)
    for follower in change.table.followers:
        step = follower.plan(txn, change)
        if step is not None:
            steps.append(step)
    return steps


def carry_out(steps: Iterable[Callable[[], Written]]) -> Written:
    """Make the planned writes; returns how many records and entries were written, and how many deleted."""
    puts = dels = 0
    for step in steps:
        written, deleted = step()
        puts, dels = puts + written, dels + deleted
    return puts, dels


class Entries:
    """The effect of a change on one index: the *old* entry and the *new* one with its *data*, each possibly None.

    If they are the same one, only its data changes.
    """

    __slots__ = ("_change", "_data", "_new", "_old", "_raw", "bound")

    def __init__(
        self, bound: BoundIndex, old: Optional[bytes], new: Optional[bytes], data: bytes, raw: Any, change: Change
    ) -> None:  # fmt: skip
        self.bound, self._old, self._new, self._data = bound, old, new, data
        self._raw, self._change = raw, change

    @property
    def moved(self) -> tuple[Optional[bytes], Optional[bytes]]:
        """The entry that goes and the one that comes, for running scans."""
        return (None, None) if self._old == self._new else (self._old, self._new)

    def __call__(self) -> Written:
        (_, handle), (old, _), new, raw = self.bound, self.moved, self._new, self._raw
        key, primary = self._change.key, self._change.primary
        dels = 0 if old is None else _delete_entry(self.bound, old, raw, key, primary)
        if new is not None:
            raw.put(new, self._data, db=handle)
        return int(new is not None), dels


def _entries(bound: BoundIndex, raw: Any, change: Change) -> Optional[Callable[[], Written]]:
    """The effect of a change on the entries of one index: only the differences."""
    index, (_, key, primary, old, new, _) = bound.storage, change
    if index.several:
        return _elements(bound, raw, change)
    new_entry = None if new is None else index.entry(new[0], primary)
    old_entry = None if old is None else index.entry(old[0], primary, stored=True)
    claims = new_entry is not None and index.joined is None and (new_entry != old_entry or not index.enforced)
    if claims and new is not None and new_entry is not None:
        owner = raw.get(new_entry, None, bound.handle)
        if owner is None:  # also where an old file lost the entry together with another record of the same key
            old_entry = None if new_entry == old_entry else old_entry
        elif not index.belongs(owner, key, primary):
            raise index.conflict(index.get_key(new[0]), index.owner_of(owner, change.table))
    stays = new_entry == old_entry
    if stays and (new_entry is None or not index.carries):
        return None
    data = b"" if new is None or new_entry is None else index.entry_value(new[0], key, primary)
    if stays and (old is None or data == index.entry_value(old[0], key, primary)):
        return None
    return Entries(bound, old_entry, new_entry, data, raw, change)


class Elements:
    """The effect of a change on an index that may have several entries for a record: those that come, and that go."""

    __slots__ = ("_added", "_change", "_gone", "_raw", "bound")

    def __init__(self, bound: BoundIndex, added: set[bytes], gone: set[bytes], raw: Any, change: Change) -> None:
        self.bound, self._added, self._gone, self._raw, self._change = bound, added, gone, raw, change

    @property
    def moved(self) -> tuple[Optional[bytes], Optional[bytes]]:
        """For running scans, to which it is enough that an entry comes: one of them."""
        return None, next(iter(self._added), None)

    def __call__(self) -> Written:
        (index, handle), raw, change = self.bound, self._raw, self._change
        dels = sum([int(raw.delete(entry, db=handle)) for entry in self._gone])
        for entry in self._added:
            raw.put(entry, index.owned(change.key, change.primary), db=handle)
        return len(self._added), dels


def _elements(bound: BoundIndex, raw: Any, change: Change) -> Optional[Elements]:
    """As `_entries`, for an index that may have several entries for a record."""
    index, (_, _, primary, old, new, _) = bound.storage, change
    now = set[bytes]() if new is None else set(index.entries(new[0], primary))
    before = set[bytes]() if old is None else set(index.entries(old[0], primary, stored=True))
    return None if now == before else Elements(bound, now - before, before - now, raw, change)


def _delete_entry(bound: BoundIndex, entry: bytes, raw: Any, key: Any, primary: bytes) -> int:
    """Delete an entry of the record *key*, unless it belongs to another record; returns the number, 0 or 1."""
    index, handle = bound
    if not index.sole:
        owner = raw.get(entry, None, handle)
        if owner is None or not index.belongs(owner, key, primary):
            return 0
    return int(raw.delete(entry, db=handle))


def entries_to_build(
    index: IndexStorage, table: Storage[Any, Any], data: Any, key: Any, value: Any, primary: bytes
) -> Iterable[bytes]:
    """The entries of the record of *key*, whose *value* was read of *data*.

    Raises `SchemaMismatch` if they are others each time the record is read, as nobody would find them again.
    """
    entries = index.entries(value, primary)
    if table.steady:
        return entries
    found = list(entries)
    if list(index.entries(table.decode_value(data, key), primary)) != found:
        raise SchemaMismatch(
            f"index {index.full_name!r} cannot be built: the record {shortened(key)} lacks a field, and the default "
            f"of its class is another one each time the record is read: store the records again, by a class that does "
            f"not declare the index, and then declare it",
            table=table.name,
        )
    return found


def build(
    rows: Iterator[tuple[bytes, bytes]],
    table: Storage[Any, Any],
    index: IndexStorage,
    txn: EngineTransaction,
    handle: Handle,
) -> int:
    """Write the entries of *index* for the engine's *rows* of *table*; returns their number.

    Raises `DuplicateKey` if two records have one key of a unique index.
    """
    entries = 0
    skip = len(table.prefix)
    for raw_key, data in rows:
        primary = bytes(raw_key[skip:])
        key = table.decode_key(raw_key)
        value = table.decode_value(data, key)
        for entry in entries_to_build(index, table, data, key, value, primary):
            if not txn.put(entry, index.entry_value(value, key, primary), overwrite=not index.unique, db=handle):
                raise index.conflict(index.get_key(value), index.owner_of(txn.get(entry, None, handle), table), key)
            entries += 1
    return entries
