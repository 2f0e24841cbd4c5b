"""The general form of writing to a bound table: what it checks, and records with what follows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Optional, TypeVar

from .. import errors
from ..shown import shortened
from ..store.ranges import delete_prefixed
from ..store.scans import Written
from . import upkeep
from .indexstorage import BoundIndex
from .storage import Storage
from .tablestate import TableState
from .upkeep import Change

K = TypeVar("K")
V = TypeVar("V")


class RecordWrites(TableState[K, V]):
    """The part of a `Table` that checks writes, and carries them out with all that follows."""

    __slots__ = ()

    _key_source: ClassVar[Any] = None  # of new keys: a str, a callable or None

    def _new_key(self, value: V) -> K:
        """The key for a new record with this value."""
        rule = self._key_source
        if isinstance(rule, str):
            from .keyfield import KeyField  # late: the key of few tables is a field

            key: K = (self._storage.key_field or KeyField(rule)).of(value)
            if key is None:
                self._check_none(rule)
            return key
        if rule is not None:
            return rule()
        codec = self._storage.key
        counted: Any = codec.counts_from
        last = None if counted is None else next(iter(self.select(reverse=True, limit=1).keys()), counted)
        new = codec.next_key(last)
        if codec.by_clock:  # which may show one time for long, or stand still in a test
            taken = self.select(new).keys()
            for other in taken:
                if other != new:
                    break
                new = codec.new_key(other)
        return new

    def _refuse_new(self, key: K) -> NoReturn:
        """Raise `DuplicateKey` for the *key* of a new record, which another one has."""
        rule, advice = self._key_source, "replace it with table[key] = value"
        if isinstance(rule, str):  # as with an id that is 0 until a database gives one
            advice = (
                f"add() takes the key from the field {rule!r}, since the class declares key={rule!r}: give the record "
                f"another one, or replace the other record with table[key] = value"
            )
        raise errors.DuplicateKey(
            f"table {self._name!r} has a record with the key {shortened(key)} already: {advice}",
            table=self._name,
            key=key,
            owner=key,
        )

    def _check_none(self, field: str) -> None:
        """Raise `EncodeError` if None, which a record has in the *field* of its key, is no key of this table."""
        try:
            none: Any = None
            self._storage.encode_key(none)  # keys of some named types may be None
        except errors.EncodeError as error:
            raise errors.EncodeError(
                f"{error}; add() takes the key from the field {field!r}, since the class declares key={field!r}: give "
                f"the record its key, or leave out key=, and add() makes a key and returns it",
                table=self._name,
            ) from None

    if not TYPE_CHECKING:  # checkers have the signatures of MutableMapping

        def update(self, other=(), /, *rest, **more):
            """Store the records of a dict, or of pairs of key and value."""
            from .missing import pairs, refuse_rest  # here, since checkers would miss its use

            if rest or (more and not hasattr(other, "__iter__")):
                refuse_rest(other, *rest, **more)
            super().update(other if hasattr(other, "keys") else pairs(other), **more)

    def _check_write(self) -> None:
        """Raise unless records may be written: in a write transaction, with all indexes of the file known."""
        self._txn._check_write()
        missing = self._index_state.missing
        if missing:
            self._check_dropped()
            lacks = "did not find as it opened the file" if self._is_late() else "does not declare or attach"
            raise errors.IndexNotAttached(
                f"table {self._name!r} has the indexes {', '.join(missing)} in the file, which this program {lacks}, "
                f"so that it would leave them incomplete: {self._way_out()}",
                table=self._name,
                index=missing[0],
            )
        reason = self._found.unreadable or self._found.unwritable
        if reason is not None:
            self._refuse_shape(reason)
        self._pause_scans()

    def _is_late(self) -> bool:
        """Whether the class declares the missing indexes, which another program has built meanwhile."""
        return not self._found.older and all([hasattr(type(self), name) for name in self._index_state.missing])

    def _way_out(self) -> str:
        """The advice for a file with an index that the program does not have."""
        if self._found.older:
            back = "; or, to go back to the indexes of this program, open it once with drop_indexes=True"
            newer = "the file is newer than this program, use a newer one, which declares them"
            return newer + back * (self._found.unwritable is None)
        if self._is_late():
            return "open the database again, to write, with its schema, which declares them"
        return (
            "use the class that declares them; or, where this program is the newer one and they are not wanted any "
            f"more, drop them: zlmdb.open(..., drop_indexes=True), or "
            f"db.drop_index({self._name!r}, {self._index_state.missing[0]!r})"
        )

    def _check_dropped(self) -> None:
        """Raise `IndexNotBuilt` if the keyspace of a declared index is gone, although the catalogue names the index."""
        bound = {index.name for index, _ in self._indexes}
        for index in self._storage.indexes:
            if index.name not in bound and index.name not in self._found.gone:
                raise errors.IndexNotBuilt(
                    f"the index {self._name}.{index.name} was dropped from the file by another program, and writing "
                    f"would leave it incomplete: open the database again, with its schema, which builds it",
                    table=self._name,
                    index=index.name,
                )

    def _pause_scans(self) -> None:
        """Prepare the scans for a write to what they read."""
        scans = self._txn._scans
        if scans is not None and scans.runs(self._storage.spaces):
            scans.pause(self._storage.spaces)
            self._txn._allow_tables(self._storage.spaces)

    def _tell(self, encoded: bytes, new: bool, entries: Iterable[tuple[Optional[bytes], Optional[bytes]]]) -> None:
        """Tell the scans what is written for the record *encoded*: whether it is *new*, its old and new *entries*.

        Only what a scan asks for is noted, because the journal stays in memory until the scans end.
        """
        scans = self._txn._open_scans()
        storage = self._storage
        primary = encoded[len(storage.prefix) :]
        if new and scans.watches((storage.space,)):
            scans.journal.append(Written(storage.space, primary, None, encoded))
        for (index, _), (old, entry) in zip(self._indexes, entries):
            if old != entry and scans.watches((index.storage.space,)):
                scans.journal.append(Written(index.storage.space, primary, old, entry))

    def _tell_stored(self, encoded: bytes) -> None:
        """Tell the scans of the record *encoded*, which is about to be stored."""
        self._tell(encoded, self._raw.get(encoded, None, self._db) is None, ())

    def _write(self, key: K, encoded: bytes, value: V, data: bytes) -> None:
        """Store a record and let its followers run; everything is checked before anything is written."""
        txn, storage = self._txn, self._storage
        old = self._stored(encoded, key)
        if storage.followers or any([bound.storage.as_stored for bound in self._index_state.kept]):
            value = storage.decode_value(data, key)
        change = Change(storage, key, encoded[len(storage.prefix) :], old, (value,), data)
        try:
            steps = upkeep.plan(self._index_state.kept, txn, change)
        except Exception as error:
            self._write_failed(key, error)
        if txn._scans is not None:  # that may be one that the encoder or the function of an index has begun
            self._pause_scans()
        try:
            if self._watched:
                told = [step for step in steps if isinstance(step, (upkeep.Entries, upkeep.Elements))]
                moved = {step.bound: step.moved for step in told}
                self._tell(encoded, old is None, [moved.get(bound, (None, None)) for bound in self._indexes])
            self._raw.put(encoded, data, True, True, False, self._db)
            puts, dels = upkeep.carry_out(steps)
        except BaseException as error:  # such as a KeyboardInterrupt between the record and an entry
            self._half_written(key, error)
            raise
        txn._count(1 + puts, dels)

    def _half_written(self, key: Any, error: BaseException) -> None:
        """Poison the transaction: *error* came in the middle of a write. Raises it as an error of zlmdb."""
        self._txn._poison(error)
        if isinstance(error, Exception):
            self._write_failed(key, error)

    def _stored(self, encoded: bytes, key: K) -> Optional[tuple[V]]:
        """The stored value as a 1-tuple, because it may be None or false; None if there is no record."""
        try:
            data = self._get(encoded, None, self._db)
        except Exception as error:
            self._write_failed(key, error)
        return None if data is None else (self._storage.decode_value(data, key),)

    def _remove_alone(self, encoded: bytes) -> int:
        """Delete the record with the engine's key *encoded*, and its index entries; returns the number of records."""
        txn, storage = self._txn, self._storage
        self._check_write()
        key: Any = None
        steps: list[Any] = []
        dels, begun = 0, False
        try:
            if self._index_state.kept or storage.followers:
                key = storage.decode_key(encoded)
                old = self._stored(encoded, key)
                if old is None:
                    return 0
                change = Change(storage, key, encoded[len(storage.prefix) :], old, None)
                steps = upkeep.plan(self._index_state.kept, txn, change)
                begun = True
            puts, dels = upkeep.carry_out(steps)
            deleted = int(self._raw.delete(encoded, b"", self._db))
        except BaseException as error:
            if begun:
                txn._poison(error)
            if isinstance(error, Exception):
                self._write_failed(key, error)
            raise
        txn._count(puts, dels + deleted)
        return deleted

    def _drop(self, storage: Storage[Any, Any], handle: Any) -> int:
        """Delete every record of a keyspace, or of the prefix that *storage* has in it; returns their number."""
        raw, deleted = self._raw, 0
        try:
            if storage.alone:
                deleted = raw.stat(handle)["entries"]
                raw.drop(handle, delete=False)
            else:
                deleted = delete_prefixed(raw, handle, storage.prefix)
        except Exception as error:
            self._write_failed(None, error)
        self._txn._count(0, deleted)
        return deleted

    def _rebuild(self, bound: BoundIndex) -> tuple[int, int]:
        """Delete the entries of an index and write them again; returns how many were deleted, and how many written."""
        self._txn._check_write()
        index, handle = bound
        self._pause_scans()
        with self._txn._statement():
            deleted = self._drop(index.storage, handle)
            inserted = upkeep.build(self.select()._engine_rows(), self._storage, index, self._raw, handle)
            self._txn._count(inserted, 0)
        return deleted, inserted

    def _write_failed(self, key: Any, error: Exception) -> NoReturn:
        """Raise *error*, from a write of the record *key*, as an error of zlmdb."""
        self._txn._fail(error, table=self._name, key=key)
