"""The methods of a database that operate on its whole file.

They import their modules when they are called, because most programs call none of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from io import TextIOBase
from typing import IO, TYPE_CHECKING, Any, Optional, TypeVar, Union, overload

from ..database.state import DatabaseState, StrPath
from ..store.readers import Reader, readers

if TYPE_CHECKING:
    from ..classic.pmap import PersistentMap
    from ..feed.changes import Changes
    from ..schema.runtimetables import MadeTable
    from ..tables.table import Table
    from .backup import Backup, Compaction
    from .conversion import ConversionReport
    from .mending import How, LinksReport
    from .migrations import Applied
    from .progress import Told
    from .report import CheckReport
    from .salvage import SalvageReport
    from .statistics import TableInfo
    from .stream import Streamed

K = TypeVar("K")
V = TypeVar("V")


class Operations(DatabaseState):
    """The part of `Database` that operates on the whole file. *progress* is called with the progress so far."""

    if TYPE_CHECKING:

        def write(self, *, timeout: Optional[float] = None) -> Any:
            """A block with the tables."""
            ...

        def read(self) -> Any:
            """A block with the tables, which reads."""
            ...

    # -- what there is ------------------------------------------------------------------------------------------------

    def tables(self) -> dict[str, TableInfo]:
        """The tables of the file, declared or not, by name (or UUID), with number and bytes of their records."""
        from . import statistics

        return statistics.table_infos(self._open_store)

    def readers(self) -> list[Reader]:
        """The readers of the file in all processes; those of this process also have their age and origin."""
        store = self._open_store
        with store.translated():
            return readers(store.engine.readers(store.environment), store.live.reading())

    def clear_readers(self) -> int:
        """Free the slots of killed readers, and with them the pages that they kept; returns their number.

        Opening does this too, as do writers ten times a second, and a full table of readers.
        """
        store = self._open_store
        with store.translated():
            return store.clear_readers()

    def stats(self, include_slots: bool = False) -> dict[str, Any]:
        """Sizes in bytes and pages, LMDB's own statistics, and with *include_slots* a list of the attached tables.

        ``used`` are the bytes of the pages in use, in all tables and indexes that this process has open;
        ``reclaimable`` those of the unused pages, which are written again before the file grows.
        """
        from . import statistics

        options, store = self._opening.options, self._open_store
        with store.translated():
            found = {
                **statistics.sizes(store),
                "read_only": options.readonly,
                "sync_enabled": options.durability != "none",
            }
            return {**found, "slots": statistics.slot_statistics(store)} if include_slots else found

    def _used(self) -> int:
        """``stats()["used"]`` alone: a cache looks at it often."""
        from . import statistics

        return statistics.used(self._open_store)

    def flush(self) -> None:
        """Flush committed data to the disk now, whatever the *durability*: see `zlmdb.open`."""
        self.sync(True)

    def sync(self, force: bool = False) -> None:
        """Flush committed data to the disk; with *force* even if ``sync=False`` was given."""
        store = self._open_store
        with store.translated():
            if not store.provisional:  # else nothing was written
                store.environment.sync(force)

    # -- what takes its time ------------------------------------------------------------------------------------------

    def sweep(self, limit: Optional[int] = None) -> int:
        """Delete expired records, at most *limit*; returns their number.

        Nobody sees them any more, but they take room until they are deleted. Each write to a table deletes a few; a
        table that is seldom written needs this from time to time. It takes a transaction for 500 records.
        """
        from .sweeping import sweep  # late, as all operations

        return sweep(self, self._storages, limit)

    def build_indexes(self, *, progress: Optional[Told] = None, timeout: Optional[float] = None) -> None:
        """Build the indexes that an opening with ``build_indexes=False`` has left, or one that was interrupted.

        It takes many short transactions, between which others write, so that a thread can do it while the program
        works. Queries use an index when the last of them is done. *timeout*: seconds to wait for another writer, each
        time; by default that of the database. If a record does not fit, raises `DuplicateKey`, `EncodeError`,
        `DecodeError` or `SchemaMismatch`, and the file gets none of these indexes. Raises `IndexNotBuilt` if another
        process drops them meanwhile. Does nothing if all are complete.
        """
        from ..schema.schema import declarations
        from .unfinishedindexes import build_indexes  # late, as all operations

        declared = [one for _, one in declarations(self._schema).values()]
        declared += [one.declared for one in self._made.values()]
        build_indexes(self._open_store, declared, progress, self._timeout if timeout is None else timeout)

    def mend_links(
        self,
        how: Optional[How] = None,
        *,
        progress: Optional[Told] = None,
        timeout: Optional[float] = None,
    ) -> LinksReport:
        """Find the links that lead to no record, and with *how* mend them, all in one transaction.

        For a file that `salvage` has made, open it with ``create=False``: otherwise such links keep it from being
        opened with a schema that declares them. *how*: ``"delete"`` deletes the records with such links, and then those
        that refer to these; ``"clear"`` sets the fields to None, and takes the keys out of lists; ``"declared"`` does
        what each link says for a deletion, ``cascade`` or ``set_none``, and raises `DanglingLink` if one restricts.
        None only reports. All records of the tables with links are read.
        """
        from .mending import mend_links
        from .progress import silent

        if how not in (None, "declared", "delete", "clear"):
            raise ValueError(f"how={how!r}: expected 'declared', 'delete' or 'clear', or None for a report")
        return mend_links(self, self._storages, how, progress or silent, timeout)

    def backup(
        self, path: StrPath, *, compact: bool = True, overwrite: bool = False, progress: Optional[Told] = None
    ) -> Backup:
        """Copy the database to the file *path* (in an existing directory, to ``data.mdb`` in it), while others write.

        The copy is one snapshot, the state when the copying begins. It is written beside its target, checked page by
        page, flushed to the disk and then renamed, so that *path* is never half a copy. *compact* leaves out unused
        pages; without it, copying is faster and the copy as large as the original. An existing *path* is kept unless
        *overwrite* is true. The copy is a database, which `zlmdb.open` opens by its path, and has the permissions of
        the original.

        Pages that writers free while the copy is made are reused only after it. Raises FileExistsError, `DatabaseInUse`
        if this or another process has *path* open, FileNotFoundError if its directory does not exist, `DatabaseFull` if
        the disk has no room, `DiskError`, `CorruptDatabase` if the copy is damaged, `FileRequired` in memory.
        """
        from .backup import back_up

        return back_up(self._open_store, path, compact=compact, overwrite=overwrite, told=progress)

    @staticmethod
    def restore(
        backup: StrPath, path: StrPath, *, overwrite: bool = False, progress: Optional[Told] = None
    ) -> Backup:  # fmt: skip
        """Put the copy *backup* at the database's *path*, a directory or a data file; it is checked, then renamed.

        An existing database is kept unless *overwrite* is true; the new file gets its permissions and, if that is
        permitted, its owner. Raises `DatabaseInUse` if this or another process has the database open, or writes to
        *backup* meanwhile, FileExistsError, FileNotFoundError, `CorruptDatabase` if the copy is damaged,
        `InvalidDatabase` if it is not a database, `DatabaseFull`, `DiskError`.
        """
        from .backup import restore

        return restore(backup, path, overwrite=overwrite, told=progress)

    def compact(self, *, progress: Optional[Told] = None) -> Compaction:
        """Replace the file by a copy without unused pages; returns the sizes in bytes before and after.

        A file never becomes smaller by itself; its unused pages are reused. Writers wait meanwhile. Raises
        `DatabaseInUse` if this process has open transactions, or another process has the database open;
        `ReadonlyDatabase`, `FileRequired`, `WriterTimeout`, and the errors of `backup`. After an error the database has
        not changed.
        """
        from .backup import compact

        return compact(self._open_store, progress, self._timeout)

    def check(self, *, progress: Optional[Told] = None) -> CheckReport:
        """Check everything that can be checked, while others write; `CheckReport.ok` is the result.

        Every page is in its place; every key and value can be decoded; every index entry has its record and every
        record its entries; catalogue and counts agree. Declared and attached tables are read by the program's types,
        others by the types recorded in the file. Nothing is unpickled that the program does not declare as Pickle.
        Reads the whole file twice, and looks up each index entry: O(n log n) for n records and entries. Raises
        `WriterTimeout` if pages look damaged, so that it has to see them while nobody writes, and a writer stays;
        `InvalidDatabase` if the file was replaced or removed since it was opened.
        """
        from .checker import check

        self._open_store.engine.check_file()
        declared = {storage.name: storage for _, storage in list(self._storages.values())}
        return check(self._open_store, declared, progress, self._timeout)

    def dump(
        self, file: IO[bytes], *, tables: Optional[Sequence[str]] = None, progress: Optional[Told] = None
    ) -> Streamed:  # fmt: skip
        """Write the database, or the named *tables*, to the open binary *file* as a portable stream of JSON lines.

        The stream contains the schema, typed keys, the stored bytes of the values, and checksums; it is one snapshot.
        It can be loaded into the other layout, another LMDB version or engine, on another machine. Never unpickles.
        Keys of a program's own types are written as bytes. Raises `KeyError` for a table that does not exist,
        `DecodeError` for a key that cannot be decoded, and what *file* raises, such as OSError for a full disk: it has
        a part of the stream then, which `load` refuses.
        """
        from .stream import dump

        if not hasattr(file, "write") or isinstance(file, TextIOBase):
            raise TypeError(f"dump({file!r}): give an open binary file, with open(path, 'wb') as file: db.dump(file)")
        names: Any = tables or ()
        if isinstance(tables, str) or not all([isinstance(name, str) for name in names]):
            raise TypeError(f"dump(tables={tables!r}): give a list of names of tables, such as tables=['users']")
        return dump(self._open_store, file, tables, progress)

    def load(
        self,
        file: IO[bytes],
        *,
        check: bool = True,
        max_line: Optional[int] = None,
        progress: Optional[Told] = None,
    ) -> Streamed:
        """Store the tables of a stream that `dump` wrote, with their indexes; none of them may exist here.

        The whole stream is checked first, and then stored in one transaction, completely or not at all. With *check*
        each value is read by its type, and by the fields that the stream records. A line may have up to *max_line*
        bytes, by default 512 MiB, which is enough for a value of 384 MiB. Raises `DecodeError` if a line is longer, if
        the stream was cut off or has changed, or if a value cannot be read; `ConstraintError` if a table or slot
        already exists; `SchemaMismatch` for a table without types from the other layout, and if stream and database
        have different migrations; `DiskError` if there is no room to copy a stream that can be read only once, such as
        a pipe; `ReadonlyDatabase`, `NestedTransaction`, `WriterTimeout`.
        """
        from .loading import load
        from .stream import MAX_LINE

        if not hasattr(file, "read") or isinstance(file, TextIOBase):
            raise TypeError(f"load({file!r}): give an open binary file, with open(path, 'rb') as file: db.load(file)")
        most = MAX_LINE if max_line is None else max_line
        return load(self._open_store, file, progress, max_line=most, check=check, timeout=self._timeout)

    @staticmethod
    def convert(
        source: StrPath,
        target: Optional[StrPath],
        *,
        maps: Sequence[type[PersistentMap[Any, Any]]] = (),
        slots: Optional[Mapping[int, Any]] = None,
        skip: bool = False,
        lib_version: Optional[str] = None,
        progress: Optional[Told] = None,
    ) -> ConversionReport:
        """Write the classic database *source*, of zlmdb 26, as a new database of the tables layout at *target*.

        zlmdb 26 stores no types: *maps* are the classes, decorated by `table`, of its tables, and *slots* the maps, or
        classes, of the slots given by hand. Little-endian keys are stored in an encoding that sorts, sets are stored
        completely. Every record is compared with its original. Nothing is unpickled. *source* is not changed. With None
        as *target*, every record is converted and nothing is written.

        A record that cannot be converted raises an error, and no *target* is written; with *skip* the record is left
        out and reported. Raises `SchemaMismatch` if types are missing, FileExistsError, `InvalidDatabase` if *source*
        has the tables layout, `DatabaseFull`, `DiskError`.
        """
        from .conversion import convert

        return convert(source, target, maps, slots, skip=skip, lib_version=lib_version, told=progress)

    def migrate(self, *, dry_run: bool = False, progress: Optional[Told] = None) -> list[Applied]:
        """Apply the `migrations` of the schema that the file lacks, in order; returns those applied.

        Each is one transaction, committed with the record that it was applied. If one raises, the file keeps the
        version before it. With *dry_run* all run in one transaction, which is aborted. Tables that have another shape
        in the file can be used after all steps are applied; the last step must make them fit. Raises `SchemaMismatch`
        if the file is newer than the program, or if a table does not fit at the end.
        """
        from .migrations import migrate

        return migrate(self, self._schema, dry_run=dry_run, told=progress)

    def drop_index(self, table: str, index: str, /) -> None:
        """Drop a declared index from the file permanently.

        Programs that declare it can continue to write to the table, and build it again when they next open the file to
        write. Raises `KeyError` if the file has no such index, `NestedTransaction`, `ReadonlyDatabase` and
        `WriterTimeout`.
        """
        from ..schema.indexbuilding import drop_index

        if self._open_store.readonly:
            self._open_store.refuse_write()
        drop_index(self._open_store, table, index, self._timeout)

    @overload
    def changes(
        self, table: Union[type[Table[K, V]], MadeTable[Table[K, V]]], /, *, after: Optional[int] = None,
        consumer: Optional[str] = None, timeout: Optional[float] = 0,
    ) -> Changes[K, V]: ...  # fmt: skip
    @overload
    def changes(
        self, table: str, /, *, after: Optional[int] = None, consumer: Optional[str] = None,
        timeout: Optional[float] = 0,
    ) -> Changes[Any, Any]: ...  # fmt: skip
    def changes(
        self, table: Any, /, *, after: Optional[int] = None, consumer: Optional[str] = None,
        timeout: Optional[float] = 0,
    ) -> Any:  # fmt: skip
        """The committed changes of *table* after the number *after*, in order; its class declares ``feed=True``.

        *table* is its name, or the class in the schema, for type checkers. *after* is by default 0: all changes. A
        *consumer* has a name, under which the file keeps the number of the last change that it acknowledged; it goes on
        after that one, and *after* counts only when the file does not know the name yet. *timeout*: how many seconds an
        iteration waits for the next change; with 0 it ends with the last one, with None it waits for ever.

        Raises `SchemaMismatch` if the table has no feed, `ReadonlyDatabase` for a new consumer in a read-only database.
        Reading raises `ChangesLost` if the feed has not all changes after *after*; so does a new consumer that begins
        after changes which are not there yet.
        """
        from ..feed.changes import Changes

        found: Changes[Any, Any] = Changes(self, table, after, consumer, timeout)
        return found

    def drop_feed(self, table: str, /) -> int:
        """Drop the change feed of *table*, with its changes and consumers; returns the number of its last change.

        Programs whose class declares the feed begin a new one, with higher numbers, when they open the file to write.
        Raises `KeyError` if the file has no such feed, `NestedTransaction`, `ReadonlyDatabase`, `WriterTimeout`.
        """
        from ..schema.feeds import drop_feed

        if self._open_store.readonly:
            self._open_store.refuse_write()
        return drop_feed(self._open_store, table, self._timeout)

    def _check_migrations(self) -> bool:
        """Whether the schema has steps that the file lacks. Raises `SchemaMismatch` if the file is newer."""
        from .migrations import check

        return check(self._open_store, self._schema)

    @property
    def schema_version(self) -> int:
        """The version of the schema of the file: that of the last applied migration, or 0."""
        from .migrations import recorded

        return max(recorded(self._open_store), default=0)

    @staticmethod
    def salvage(source: StrPath, target: StrPath, *, progress: Optional[Told] = None) -> SalvageReport:
        """Copy all that can be decoded from the damaged database *source* into a new one at *target*, a directory.

        The report lists what was not copied. Reads each page of *source* once, without LMDB, and never unpickles.
        Indexes are not copied; they are built again when a program that declares them opens *target*. *source* is not
        changed. Raises FileExistsError, `CorruptDatabase` if no table is found, `InvalidDatabase` if *source* is not an
        LMDB file, `DatabaseInUse` if a program writes to it meanwhile, `DatabaseFull`, `DiskError`.
        """
        from .salvage import salvage

        return salvage(source, target, progress)

    @staticmethod
    def verify(path: StrPath, *, progress: Optional[Told] = None) -> list[str]:
        """The problems in the pages of the file at *path*, which is not opened; an empty list if there are none.

        Reads the file without LMDB, so a damaged or hostile file cannot crash the process. Checks each node of each
        page in use, the lists of free pages and the two meta pages. A file that passes is safe to open, to read and to
        write; `check` also checks the content of its records. ``zlmdb.open(..., verify=True)`` does both in one step.
        Nobody should write to the file meanwhile: pages that are reused look damaged. Raises `InvalidDatabase` if it is
        not an LMDB file, FileNotFoundError.
        """
        from ..engines import registry
        from .backup import file_of
        from .progress import Progress, silent

        told = progress or silent
        engine = registry.engine(os.fspath(path))
        return engine.verify(file_of(engine), lambda done, total: told(Progress("pages", done, total)))
