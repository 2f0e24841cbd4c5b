"""Filling a database with records that are bytes already: what salvaging, loading and migrating have in common."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Optional, Union

from .. import errors
from ..catalogue import Place, Slot, catalogue_of
from ..engines import structure
from ..engines.lmdb import LmdbEngine, Options
from ..layout import Layout
from ..store import Store
from .backup import check_room, flush

StrPath = Union[str, "os.PathLike[str]"]

_BATCH = 10_000  # records in a transaction


@contextmanager
def new_file(
    target: StrPath, layout: Layout, lib_version: Optional[str] = None, needed: int = 0
) -> Generator[Store, None, None]:
    """A block that fills a new database, which at its clean end is the directory *target*. No trace is left otherwise.

    It is made beside *target*, checked, flushed to the disk and renamed. Raises FileExistsError when there is
    something, `DatabaseFull` when the disk has less than *needed* bytes free.
    """
    final: str = os.path.abspath(os.fspath(target))
    if os.path.lexists(final) and not (os.path.isdir(final) and not os.listdir(final)):
        raise FileExistsError(f"{final!r} exists: remove it, or choose another place")
    check_room(os.path.dirname(final), needed)
    temporary = f"{final}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
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
        _publish(engine.file, temporary, final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _publish(file: str, temporary: str, final: str) -> None:
    wrong = structure.check(file)
    if wrong:
        raise errors.CorruptDatabase(f"the new database {file!r} is damaged: {wrong[0]}", path=file)
    os.remove(os.path.join(temporary, "lock.mdb"))
    flush(temporary)
    os.rename(temporary, final)
    flush(os.path.dirname(final))


class Filler:
    """Writes records into a store, some thousands in a transaction. Nobody else writes meanwhile.

    Used in a ``with`` block, at whose clean end everything is committed.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.catalogue = catalogue_of(store)
        self._txn: Any = None
        self._pending = 0

    def __enter__(self) -> Filler:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self._commit()
        elif self._txn is not None:
            self._txn.abort()
            self._end()

    def table(self, slot: Slot) -> Place:
        """Enter *slot* into the catalogue, under a number of its own unless it has one; where its records go."""
        self._commit()

        def create(txn: Any, open_space: Any) -> Place:
            if slot.number == 0:
                slot.number = self.catalogue.allocate(txn, self.catalogue.read(txn))
            self.catalogue.write(txn, slot)
            place = self.catalogue.place(slot)
            if place.space is not None:
                open_space(place.space)
            return place

        return self.store.change(create)

    def attached(self, identity: str, indexes: dict[str, dict[str, Any]]) -> None:
        """Record the indexes that a classic program attached to a map."""
        self._commit()
        self.store.change(lambda txn, _: self.catalogue.write_attached(txn, identity, indexes))

    def copy_migrations(self, records: Sequence[dict[str, Any]]) -> None:
        """Record the steps of the schema that were applied to the source."""
        self._commit()

        def write(txn: Any, _: Any) -> None:
            for record in records:
                self.catalogue.write_migration(txn, record)

        if records:
            self.store.change(write)

    def put(self, place: Place, key: bytes, data: bytes) -> bool:
        """Store a record under the engine's *key*, without the prefix of *place*; False where there is one already."""
        if self._txn is None:
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
            raise self.store.engine.translate(error, key=key) from error
        self._pending += 1
        if self._pending >= _BATCH:
            self._commit()
        return stored

    def _commit(self) -> None:
        if self._txn is None:
            return
        try:
            self._txn.commit()
        except Exception as error:
            raise self.store.engine.translate(error) from error
        finally:
            self._end()

    def _end(self) -> None:
        self._txn = None
        self._pending = 0
        self.store.ended(threading.get_ident())
        self.store.writer.release()
