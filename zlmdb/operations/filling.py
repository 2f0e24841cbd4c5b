"""Filling a database with records that are bytes already: what salvaging, loading and migrating have in common."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Optional, TypeVar, Union

from .. import errors
from ..catalogue import Place, Slot, catalogue_of
from ..engines import structure
from ..engines.lmdb import LmdbEngine, Options
from ..layout import Layout
from ..store import Store
from .backup import check_room, flush, publish

StrPath = Union[str, "os.PathLike[str]"]
R = TypeVar("R")

_BATCH, _BATCH_BYTES = 10_000, 16 << 20  # records, and bytes, in a transaction
_LARGE = 1 << 20


@contextmanager
def new_file(
    target: StrPath, layout: Layout, lib_version: Optional[str] = None, needed: int = 0
) -> Generator[Store, None, None]:
    """A block that fills a new database, which at its clean end is the directory *target*. No trace is left otherwise.

    It is made beside *target*, checked, flushed to the disk and renamed; in an empty directory, which may be a mount
    point or a link, it is made there, and the data file moved up. Raises FileExistsError when there is something,
    `DatabaseFull` when the disk has less than *needed* bytes free.
    """
    final: str = os.path.abspath(os.fspath(target))
    empty = os.path.isdir(final) and not os.listdir(final)
    if os.path.lexists(final) and not empty:
        raise FileExistsError(f"{final!r} exists: remove it, or choose another place")
    check_room(final if empty else os.path.dirname(final), needed)
    name = f"{os.getpid()}.{secrets.token_hex(4)}.tmp"
    temporary = os.path.join(final, name) if empty else f"{final}.{name}"
    engine: Any = LmdbEngine(temporary, Options(sync=False, metasync=False, lib_version=lib_version), create=True)
    try:
        store = Store(engine, layout, readonly=False, lock_path=None, options=engine.options)
        store.users = 1
        try:
            store.prepare(slots_expected=True)
            yield store
            store.env.sync(True)
        finally:
            store.close()
        _finish(engine.file)
        if empty:
            publish(engine.file, os.path.join(final, "data.mdb"), overwrite=False)
            flush(final)
        else:
            os.rename(temporary, final)
            flush(os.path.dirname(final))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _finish(file: str) -> None:
    """Check the new data file, and flush its name to the disk without that of its lock file."""
    wrong = structure.check(file)
    if wrong:
        raise errors.CorruptDatabase(f"the new database {file!r} is damaged: {wrong[0]}", path=file)
    directory = os.path.dirname(file)
    os.remove(os.path.join(directory, "lock.mdb"))
    flush(directory)


class Writer:
    """Writes tables and records in *txn*, a transaction of `Store.change`; *open_space* is what that gives with it.

    *reserved* are slots that no table may get.
    """

    def __init__(self, store: Store, txn: Any, open_space: Callable[[bytes], Any], reserved: Collection[int]) -> None:
        self.store = store
        self.catalogue = catalogue_of(store)
        self._txn = txn
        self._open_space = open_space
        self._reserved = reserved
        self._handles: dict[Optional[bytes], Any] = {None: None}

    def table(self, slot: Slot) -> Place:
        """Enter *slot* into the catalogue, under a number of its own unless it has one; where its records go."""
        txn = self._txn
        if slot.number == 0:
            slot.number = self.catalogue.allocate(txn, self.catalogue.read(txn), self._reserved)
        self.catalogue.write(txn, slot)
        place = self.catalogue.place(slot)
        self._handle(place.space)
        return place

    def attached(self, identity: str, indexes: dict[str, dict[str, Any]]) -> None:
        """Record the indexes that a classic program attached to a map."""
        self.catalogue.write_attached(self._txn, identity, indexes)

    def copy_migrations(self, records: Sequence[dict[str, Any]]) -> None:
        """Record the steps of the schema that were applied to the source."""
        present = {one["version"] for one in self.catalogue.migrations(self._txn)}
        for record in records:
            if record["version"] not in present:
                self.catalogue.write_migration(self._txn, record)

    def put(self, place: Place, key: bytes, data: bytes) -> bool:
        """Store a record under the engine's *key*, without the prefix of *place*; False where there is one already."""
        stored: bool = self._txn.put(place.prefix + key, data, overwrite=False, db=self._handle(place.space))
        return stored

    def _handle(self, space: Optional[bytes]) -> Any:
        if space not in self._handles and space is not None:
            self._handles[space] = self._open_space(space)
        return self._handles[space]


class Filler:
    """Does what `Writer` does in a new file: some thousand records in a transaction. Nobody else writes meanwhile.

    Used in a ``with`` block, at whose clean end everything is committed.
    """

    def __init__(self, store: Store, reserved: Collection[int] = ()) -> None:
        self.store = store
        self.catalogue = catalogue_of(store)
        self._reserved = reserved
        self._txn: Any = None
        self._pending = self._bytes = 0

    def __enter__(self) -> Filler:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self._commit()
        elif self._txn is not None:
            self._txn.abort()
            self._end()

    def table(self, slot: Slot) -> Place:
        """As `Writer.table`."""
        return self._change(lambda writer: writer.table(slot))

    def attached(self, identity: str, indexes: dict[str, dict[str, Any]]) -> None:
        """As `Writer.attached`."""
        self._change(lambda writer: writer.attached(identity, indexes))

    def copy_migrations(self, records: Sequence[dict[str, Any]]) -> None:
        """As `Writer.copy_migrations`."""
        if records:
            self._change(lambda writer: writer.copy_migrations(records))

    def _change(self, work: Callable[[Writer], R]) -> R:
        self._commit()
        return self.store.change(lambda txn, open_space: work(Writer(self.store, txn, open_space, self._reserved)))

    def put(self, place: Place, key: bytes, data: bytes) -> bool:
        """Store a record under the engine's *key*, without the prefix of *place*; False where there is one already."""
        if len(data) > _LARGE:
            self._commit()
        if self._txn is None:
            self._make_room(len(data))
            self.store.writer.acquire(None)
            try:
                self._txn = self.store.begin(write=True)
            except BaseException:
                self.store.writer.release()
                raise
        space = self.store.space(place.space)
        handle = None if space is None else space.handle
        try:
            stored: bool = self._txn.put(place.prefix + key, data, overwrite=False, db=handle)
        except Exception as error:
            raise (ours := self.store.engine.translate(error, key=key)) from errors.cause(ours, error)
        self._pending += 1
        self._bytes += len(data)
        if self._pending >= _BATCH or self._bytes > _BATCH_BYTES:
            self._commit()
        return stored

    def _make_room(self, size: int) -> None:
        """Before a transaction that begins with a value of *size* bytes: where the map has to grow, let it."""
        store = self.store
        while store.engine.moves and store.can_grow:
            info = store.env.info()
            used = (info["last_pgno"] + 1) * store.env.stat()["psize"]
            if info["map_size"] - used > 3 * (size + _BATCH_BYTES):  # pages are copied, and not quite filled
                return
            with store.writing(None):
                store.full = True
                if not store.make_room():
                    return

    def _commit(self) -> None:
        if self._txn is None:
            return
        try:
            self._txn.commit()
        except Exception as error:
            raise (ours := self.store.engine.translate(error)) from errors.cause(ours, error)
        finally:
            self._end()

    def _end(self) -> None:
        self._txn = None
        self._pending = self._bytes = 0
        self.store.ended(threading.get_ident())
        self.store.writer.release()
