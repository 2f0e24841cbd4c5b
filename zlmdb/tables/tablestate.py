"""What a bound table is made of and reads by, and how it follows its transaction and the indexes of the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Optional, TypeVar

from .. import errors
from ..handlers import let_through
from ..namedtuples import NamedTuple
from ..shown import shortened
from ..store.access import NOBODY, Ended
from ..store.transaction import Transaction
from ..values.base import is_a, typenames
from .indexstorage import BoundIndex, IndexStorage
from .missing import OF_CLASS
from .ranged import Ranged
from .storage import FileIndexes, Nothing, Storage

K = TypeVar("K")
V = TypeVar("V")


def expect_two(cls: Any, types: Any, said: str) -> None:
    """Raise TypeError unless *types*, in the brackets of *cls*, are those of keys and of what *said* names."""
    if len(cls.__parameters__) == 2 and not (is_a(types, tuple) and len(types) == 2):
        given = f"{cls.__name__}[{typenames(types)}]"
        raise TypeError(f"{given}: expected the types of the keys and of {said.format(cls=cls.__name__)}")


class IndexState(NamedTuple):
    """The indexes of a bound table; replaced as a whole when one of them changes.

    *kept* are maintained with the records. *missing* are in the file and not maintained, so the table must not be
    written to; nor if it is *barred*, because its records have another shape, or because of links to them that only the
    general form knows. *handles* are those of *kept*, if the generated functions know these indexes.
    """

    kept: tuple[BoundIndex, ...] = ()
    missing: tuple[str, ...] = ()
    handles: Optional[tuple[Any, ...]] = ()
    barred: bool = False

    @property
    def generated(self) -> bool:
        """Whether the generated functions may write; otherwise the general form writes, or refuses."""
        return self.handles is not None and not self.missing and not self.barred


class TableState(Ranged[K, K, V], Generic[K, V]):
    """The state of a `Table`, which `Table._bound` makes and a transaction ends."""

    __slots__ = (
        "__weakref__", "_absent", "_checked", "_db", "_era", "_found", "_generated", "_get", "_handles",
        "_index_state", "_load", "_lookup", "_name", "_raw", "_reader", "_snapshot", "_steady", "_storage", "_txn",
        "_views", "_watched", "_writer",
    )  # fmt: skip

    _txn: Transaction
    _storage: Storage[K, V]
    _name: str
    _watched: bool  # scans have to be told of what is written
    # For the generated functions: what the thread holds that may write by them (`store.access`), the transaction,
    # the engine's transaction, the handle, `_watched`, and `_handles`. One tuple, since these need them all, and see
    # by it whether something has changed; up to Python 3.10 each attribute takes as long to read.
    _writer: tuple[Any, Any, Any, Any, bool, Any]
    _reader: tuple[Any, Any]  # in the same way `_get` and the handle
    _raw: Any
    _db: Any
    _get: Callable[..., Any]
    _lookup: Callable[[Any], bytes]
    _load: Callable[[Any], V]
    _views: dict[str, Any]
    _absent: Optional[Nothing]  # stands in for the keyspace where the file does not have it
    _steady: bool  # the engine's own functions serve it: it is in the file, not as views, and no record expires
    _checked: bool  # another program may have changed what the file says of the table
    _era: Optional[int]  # the latest one that they were looked for in
    _snapshot: int  # the latest one, of those read, that they were looked for in
    _found: FileIndexes  # in this transaction
    _index_state: IndexState
    _handles: Any  # those of it, for the generated functions
    _generated: bool  # those let the generated functions write

    _kept: ClassVar[tuple[IndexStorage, ...]] = ()  # the indexes that the generated functions keep in step

    if not TYPE_CHECKING:  # checkers report it

        def __class_getitem__(cls, types):
            expect_two(cls, types, "the values, such as {cls}[int, User]")
            if not cls.__parameters__:
                raise TypeError(f"{cls.__name__}[{shortened(types)}]: {OF_CLASS} as t.table[key]")
            return super().__class_getitem__(types)

    def _aim(self) -> None:
        """Read and write in the transaction, which has just begun. The handles are those of the previous one."""
        txn = self._txn
        if self._steady:
            self._raw = raw = txn._raw
            self._get = get = raw.get
            self._reader = get, self._db
        else:
            self._through(txn._engine_txn if self._absent is None else self._absent)
        if txn._write:
            era = txn._era
            if self._checked and (era is None or era != self._era):
                self._see_file(era)
            if txn._scans is not None:
                self._allow()
            else:  # what that comes to, without the call
                self._watched = False
                if self._generated:
                    self._writer = self._writing()
        elif self._checked:
            snapshot = txn._raw.id()
            if snapshot != self._snapshot:
                self._see_snapshot(snapshot)

    def _see_snapshot(self, snapshot: int) -> None:
        """Read the catalogue's record of the table in another *snapshot*, unless it is known to be the same."""
        self._snapshot = snapshot
        era = self._txn._store.era_of(snapshot)
        if era is None or era != self._era:
            self._see_file(era)

    def _see_file(self, era: Optional[int]) -> None:
        """Read the catalogue's record of the table in this transaction, which belongs to *era*."""
        find = self._storage.find_indexes
        if find is not None:
            try:
                found = find(self._txn._engine_txn, era)
            except Exception as error:
                self._txn._fail(error, table=self._name)
            self._era = era
            if found is not self._found:
                self._found = found
                self._bind_indexes(found.unknown)
            if found.unreadable is not None:
                self._era, self._snapshot = -1, -1  # asked again when it is aimed again
                self._txn._look_at_tables()
                self._end(Ended(self._refuse_reading))

    def _refuse_reading(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Replaces the engine's functions if the class would read the records wrongly."""
        self._refuse_shape(self._found.unreadable or "")

    def _refuse_shape(self, reason: str) -> NoReturn:
        """Raise `SchemaMismatch`: the records have another shape than the class."""
        raise errors.SchemaMismatch(f"table {self._name!r}: {reason}", table=self._name)

    def _bind_indexes(self, missing: Sequence[str]) -> None:
        """Maintain the indexes of the storage, except those that the file lacks."""
        bound: list[BoundIndex] = []
        handles: list[Any] = []
        known: list[IndexStorage] = []
        lost: list[str] = []
        for index in self._storage.indexes:
            if index.name in self._found.building:
                index = index.unfinished()
            if index.name not in self._found.gone:
                handle = self._txn._handle(index.storage.space)
                if handle is None:  # another program has dropped its sub-database: the next opening builds it again
                    lost.append(index.name)
                else:
                    bound.append(BoundIndex(index, handle[0]))
                    handles.append(handle[0])
                    known.append(index)
        self._views.clear()
        found = self._found
        barred = (found.unreadable, found.unwritable, found.undeletable) != (None, None, None)
        generated = tuple(handles) if tuple(known) == type(self)._kept else None
        self._keep(IndexState(tuple(bound), (*missing, *lost), generated, barred))

    def _bind_indexes_again(self) -> None:
        """Maintain the indexes that the storage has now, after they have changed."""
        self._bind_indexes(self._index_state.missing)

    def _keep(self, state: IndexState) -> None:
        """Maintain the indexes of *state*; they determine whether and how this table may write."""
        self._index_state = state
        self._generated = state.generated
        self._handles = state.handles
        self._txn._look_at_tables()
        self._allow()

    def _refuse_without(self, missing: Sequence[str]) -> None:
        """Refuse to write if there are *missing* indexes, which the file has and this table does not maintain."""
        self._keep(self._index_state._replace(missing=tuple(missing)))

    def _allow(self) -> None:
        """Let the generated functions write, or replace them by the general form, which handles all cases."""
        txn = self._txn
        scans, self._watched = txn._scans, False
        writes = txn._write and self._generated
        if scans:
            spaces = self._storage.spaces
            self._watched = scans.watches(spaces)
            if scans.runs(spaces):
                writes = False  # these scans have to be paused first
        if writes:
            self._writer = self._writing()
        else:
            self._writer = NOBODY

    def _writing(self) -> Any:
        """`_writer` where its thread may write."""
        raw, txn = self._raw, self._txn
        return txn._owner, txn, raw, self._db, self._watched, self._handles

    def _look_again(self) -> None:
        """Read the indexes of the file again, after the catalogue was changed in this transaction."""
        if self._absent is None:
            self._see_file(None)

    @property
    def _indexes(self) -> tuple[BoundIndex, ...]:
        """The indexes that this table maintains."""
        return self._index_state.kept

    def _use(self, raw: Any) -> None:
        """Read and write through *raw*, the engine's transaction or a savepoint of it."""
        if self._absent is None and self._found.unreadable is None:
            self._through(raw)

    def _through(self, raw: Any) -> None:
        self._raw = raw
        self._get = raw.get
        if self._txn.buffers:
            keep = self._txn._keep_view

            def get(key: bytes, default: Any, db: Any) -> Any:
                return keep(raw.get(key, default, db))

            self._get = get
        self._reader = self._get, self._db
        if self._writer is not NOBODY:
            self._writer = self._writing()

    def _release(self, ended: Any) -> None:
        """Refer to no transaction of the engine, as one that is to be dropped. `_use` is due afterwards."""
        if self._absent is None and self._found.unreadable is None:
            self._raw = ended
            self._get = ended.get
            self._reader = ended.reader
            if self._writer is not NOBODY:
                self._writer = (*NOBODY,)  # not that itself: where its thread may write, `_use` says so again

    def _end(self, ended: Any) -> None:
        """End with the transaction: from now on every use raises what the functions of *ended* raise."""
        self._raw = ended
        self._get = ended.get
        self._reader = ended.reader
        self._writer = NOBODY

    # -- what selections and views read, by the functions of the engine -------------------------------------------

    def _cursor(self, handle: Any = None) -> Any:
        """A new cursor of the engine over the records, or over the index *handle*."""
        try:
            return self._raw.cursor(self._db if handle is None else handle)
        except Exception as error:
            self._txn._fail(error, table=self._name)

    def _entries(self, handle: Any = None) -> int:
        """The engine's number of records in the whole keyspace, in O(1)."""
        try:
            count: int = self._raw.stat(self._db if handle is None else handle)["entries"]
        except Exception as error:
            self._txn._fail(error, table=self._name)
        return count

    def _entries_stored(self) -> int:
        """About the number of records, in O(1) also where what has expired is left out: for estimates."""
        return self._entries()

    def _owned(self, primary: bytes, index: IndexStorage) -> V:
        """The record to which an entry of *index* belongs."""
        try:
            data = self._get(self._storage.prefix + primary, None, self._db)
        except Exception as error:
            self._txn._fail(error, table=self._name, index=index.name)
        if data is None:
            raise errors.DecodeError(
                f"index {index.storage.name!r} has an entry for "
                f"{shortened(self._storage.key.decode(primary))}, which is "
                f"not in the table: rebuild the index",
                table=self._name,
                index=index.name,
            )
        try:
            return self._load(data)
        except Exception as error:
            let_through(error)
            return self._storage.decode_value(data, self._storage.key.decode(primary))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"table {self._name!r} belongs to a transaction of this process, and is neither copied nor pickled: "
            f"dict(table) has its records, and a database in a file can be pickled"
        )
