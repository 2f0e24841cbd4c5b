"""Fills a database with encoded records: the common part of salvage, load and conversion."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Optional, TypeVar

from .. import errors
from ..database.state import StrPath
from ..engines import Engine, Handle, Transaction, registry
from ..namedtuples import NamedTuple
from ..schema.links import record as record_links
from ..store.catalogue import catalogue_of
from ..store.holds import Hold
from ..store.layout import Layout
from ..store.slots import Keyspace, Slot
from ..store.store import OpenSpace, Store
from .backup import as_private_as, check_room, disk_errors, file_of, flush, publish
from .brokenlinks import check_links
from .temporary import named_as, remains, temporary_directory

R = TypeVar("R")

_BATCH, _BATCH_BYTES = 10_000, 16 << 20  # records, and bytes, in a transaction
_LARGE = 1 << 20


class Like(NamedTuple):
    """The permissions of a new database: those of a file, in a directory with at most this mode."""

    file: os.stat_result
    directory: int = 0o777


def like(engine: Engine) -> Like:
    """The permissions of the data file of *engine*; those of its directory count if it belongs to the database."""
    own = engine.directory
    return Like(os.stat(file_of(engine)), 0o777 if own is None else stat.S_IMODE(os.stat(own).st_mode) & 0o777)


@contextmanager
def new_file(
    target: StrPath,
    layout: Layout,
    lib_version: Optional[str] = None,
    needed: int = 0,
    like: Optional[Like] = None,
) -> Generator[Store, None, None]:
    """A block that fills a new database, which becomes the directory *target* at the normal end. Else it is removed.

    It is created beside *target*, checked, flushed to the disk and renamed. If *target* is an empty directory, which
    may be a mount point or a link, it is created inside, and the data file moved up. *like* has its permissions; if
    None, the umask determines them. Raises FileExistsError if there is a file, `DatabaseFull` if the disk has less than
    *needed* bytes free.
    """
    final: str = os.path.abspath(os.fspath(target))
    empty = os.path.isdir(final) and set(os.listdir(final)) <= set(remains(final))
    if os.path.lexists(final) and not empty:
        if os.path.isdir(final) and not registry.engine(final).exists():
            raise FileExistsError(f"{final!r} is a directory with other files in it: choose another path")
        raise FileExistsError(f"{final!r} exists: remove it, or choose another path")
    check_room(final if empty else os.path.dirname(final), needed)
    directory, stem = (final, "") if empty else os.path.split(final)
    with temporary_directory(directory, stem) as temporary:
        if empty and os.listdir(final) != [os.path.basename(temporary)]:
            raise FileExistsError(f"{final!r} is being written by another program")
        made = os.path.join(temporary, "new")
        os.mkdir(made, 0o777 if like is None else like.directory | 0o700)
        version = {} if lib_version is None else {"lib_version": lib_version}
        engine = registry.engine(made, registry.options(made, durability="none", **version), create=True)
        with named_as(final, made), _filled(engine, layout) as store:
            yield store
        with disk_errors(final), named_as(final, made):  # not around the block, which reads another file
            file = _finished(engine, like)
            if empty:
                publish(file, os.path.join(final, os.path.basename(file)), overwrite=False)
            else:
                _rename(made, final)
            flush(directory)


def _rename(made: str, final: str) -> None:
    """Give the new directory its name. Raises `FileExistsError` if another program was first."""
    try:
        os.rename(made, final)
    except OSError as error:
        if not os.path.lexists(final):
            raise
        raise FileExistsError(f"{final!r} was created by another program meanwhile") from error


@contextmanager
def _filled(engine: Engine, layout: Layout) -> Generator[Store, None, None]:
    """A block that fills the new database of *engine*."""
    store = Store(engine, layout)
    store.users = 1
    try:
        store.prepare(slots_expected=True)
        yield store
        with store.translated():
            store.environment.sync(True)
    finally:
        store.close()


def _finished(engine: Engine, like: Optional[Like]) -> str:
    """The new data file, checked; its name is flushed to the disk without those of its lock files."""
    file = file_of(engine)
    wrong = engine.verify(file)
    if wrong:
        raise errors.CorruptDatabase(f"the new database {file!r} is damaged: {wrong[0]}", path=file)
    for other in engine.files():
        if other != file and os.path.exists(other):
            os.remove(other)
    if like is not None:
        as_private_as(like.file, file)
    flush(os.path.dirname(file))
    return file


class Numbers:
    """The slot numbers of a file to which nobody else writes: the *last* one in use, if it is known."""

    def __init__(self) -> None:
        self.last: Optional[int] = None


class Writer:
    """Writes tables and records in *txn*, a transaction of `Store.change`; *open_space* is what that gives with it.

    *reserved* are slots that no table may get. *numbers* are known from the writer before.
    """

    def __init__(
        self, store: Store, txn: Transaction, open_space: OpenSpace, reserved: Collection[int],
        numbers: Optional[Numbers] = None,
    ) -> None:  # fmt: skip
        self.store = store
        self.catalogue = catalogue_of(store)
        self._txn = txn
        self._open_space = open_space
        self._reserved = reserved
        self._numbers = Numbers() if numbers is None else numbers
        self._handles: dict[Optional[bytes], Handle] = {None: None}

    def table(self, slot: Slot) -> Keyspace:
        """Write *slot* to the catalogue, with a free number unless it has one; returns the keyspace of its records."""
        txn, numbers = self._txn, self._numbers
        if slot.number == 0:
            slots = self.catalogue.read(txn) if numbers.last is None else {}
            with self.catalogue.batch(txn, numbers.last) as batch:
                slot.number = self.catalogue.allocate(txn, slots, self._reserved)
            numbers.last = batch.last
        elif numbers.last is not None:
            numbers.last = max(numbers.last, slot.number)
        if slot.feed is not None:
            self._begin_feed(slot)
        self.catalogue.write(txn, slot)
        keyspace = self.catalogue.keyspace(slot)
        self._handle(keyspace.space)
        return keyspace

    def _begin_feed(self, slot: Slot) -> None:
        """Begin the change feed of the table after the number that *slot* has, if the layout has feeds."""
        from ..feed.log import begin  # late: few programs use a feed

        space = self.catalogue.feed_space(slot.name)
        if space is None or slot.feed is None:
            slot.feed = None
        elif slot.has_feed:
            begin(self._txn, self._handle(space), slot.feed["after"])
        else:
            self._handle(space)

    def index(self, slot: Slot, name: str, definition: dict[str, Any]) -> Keyspace:
        """Write an index of *slot*, which has a number, to the catalogue; returns the keyspace of its entries."""
        txn, numbers = self._txn, self._numbers
        slots = {} if definition.get("table") is None else self.catalogue.read(txn)  # of which it uses one
        with self.catalogue.batch(txn, numbers.last) as batch:
            self.catalogue.add_index(txn, slots, slot, name, definition, self._reserved)
            self.catalogue.write(txn, slot)
        numbers.last = batch.last
        keyspace = self.catalogue.index_keyspace(slot, name)
        self._handle(keyspace.space)
        return keyspace

    def attached(self, name: str, indexes: dict[str, dict[str, Any]]) -> None:
        """Record the indexes that a classic program attached to a map."""
        self.catalogue.write_attached(self._txn, name, indexes)

    def links(self) -> None:
        """Record which links lead to which tables. Raises `DanglingLink` if one of a record leads nowhere."""
        slots = self.catalogue.read(self._txn)
        record_links(self.catalogue, self._txn, slots)
        check_links(self.store, self._txn, slots, lambda space: (self._handle(space),))

    def copy_migrations(self, records: Sequence[dict[str, Any]]) -> None:
        """Record the steps of the schema that were applied to the source."""
        present = {one["version"] for one in self.catalogue.migrations(self._txn)}
        for record in records:
            if record["version"] not in present:
                self.catalogue.write_migration(self._txn, record)

    def has(self, keyspace: Keyspace, key: bytes) -> bool:
        """Whether there is a record under the engine's *key*, without the prefix of *keyspace*."""
        return self._txn.get(keyspace.prefix + key, None, self._handle(keyspace.space)) is not None

    def put(self, keyspace: Keyspace, key: bytes, data: bytes) -> bool:
        """Store a record under the engine's *key*, without the prefix of *keyspace*; False if there is one."""
        return self._txn.put(keyspace.prefix + key, data, overwrite=False, db=self._handle(keyspace.space))

    def _handle(self, space: Optional[bytes]) -> Handle:
        if space not in self._handles and space is not None:
            self._handles[space] = self._open_space(space)
        return self._handles[space]


class Filler:
    """A `Writer` for a new file: some thousand records per transaction. Nobody else writes meanwhile.

    Used in a ``with`` block, whose normal end commits everything.
    """

    def __init__(self, store: Store, reserved: Collection[int] = ()) -> None:
        self._hold = Hold()
        self.store = store
        self.catalogue = catalogue_of(store)
        self._reserved = reserved
        self._numbers = Numbers()
        self._txn: Optional[Transaction] = None
        self._pending = self._bytes = 0

    def __enter__(self) -> Filler:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self._commit()
        elif self._txn is not None:
            self._txn.abort()
            self._end()

    def table(self, slot: Slot) -> Keyspace:
        """As `Writer.table`."""
        return self._change(lambda writer: writer.table(slot))

    def index(self, slot: Slot, name: str, definition: dict[str, Any]) -> Keyspace:
        """As `Writer.index`."""
        return self._change(lambda writer: writer.index(slot, name, definition))

    def attached(self, name: str, indexes: dict[str, dict[str, Any]]) -> None:
        """As `Writer.attached`."""
        self._change(lambda writer: writer.attached(name, indexes))

    def copy_migrations(self, records: Sequence[dict[str, Any]]) -> None:
        """As `Writer.copy_migrations`."""
        if records:
            self._change(lambda writer: writer.copy_migrations(records))

    def links(self) -> None:
        """As `Writer.links`."""
        self._change(lambda writer: writer.links())

    def _change(self, work: Callable[[Writer], R]) -> R:
        self._commit()
        numbers = self._numbers
        return self.store.change(
            lambda txn, open_space: work(Writer(self.store, txn, open_space, self._reserved, numbers))
        )

    def has(self, keyspace: Keyspace, key: bytes) -> bool:
        """As `Writer.has`."""
        txn = self._begun(0)
        return txn.get(keyspace.prefix + key, None, self._handle(keyspace)) is not None

    def _handle(self, keyspace: Keyspace) -> Handle:
        space = self.store.space(keyspace.space)
        return None if space is None else space.handle

    def _begun(self, size: int) -> Transaction:
        """The transaction, begun if there is none; a value of *size* bytes is next."""
        if self._txn is None:
            self._make_room(size)
            self.store.writer.acquire(None, self._hold)
            try:
                self._txn = self.store.begin(write=True, who=self)
            except BaseException:
                self.store.writer.release(self._hold)
                raise
        return self._txn

    def put(self, keyspace: Keyspace, key: bytes, data: bytes) -> bool:
        """Store a record under the engine's *key*, without the prefix of *keyspace*; False where there is one."""
        if len(data) > _LARGE:
            self._commit()
        txn = self._begun(len(data))
        try:
            stored: bool = txn.put(keyspace.prefix + key, data, overwrite=False, db=self._handle(keyspace))
        except Exception as error:
            self.store.fail(error, key=key)
        self._pending += 1
        self._bytes += len(data)
        if self._pending >= _BATCH or self._bytes > _BATCH_BYTES:
            self._commit()
        return stored

    def _make_room(self, size: int) -> None:
        """Before a transaction that begins with a value of *size* bytes: let the map grow if necessary."""
        store = self.store
        while store.engine.moves and store.engine.can_grow:
            engine, env = store.engine, store.environment
            left = engine.capacity(env) - engine.used(env)
            if left > 3 * (size + _BATCH_BYTES):  # pages are copied, and not quite filled
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
            self.store.fail(error)
        finally:
            self._end()

    def _end(self) -> None:
        self._txn = None
        self._pending = self._bytes = 0
        self.store.ended(self)
        self.store.writer.release(self._hold)
