"""The methods of a database that look after its file.

The work is in a module of each own, imported when it is asked for: a program that opens a database seldom does any
of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Optional, Union

from ..store.store import Store
from ..tables.storage import Storage

if TYPE_CHECKING:
    from ..classic.pmap import PersistentMap
    from ..tables.table import Table
    from .backup import Backup, Compaction
    from .conversion import ConversionReport
    from .migrations import Applied
    from .progress import Told
    from .report import CheckReport
    from .salvage import SalvageReport
    from .stream import Streamed

StrPath = Union[str, "os.PathLike[str]"]


class Operations:
    """The part of `Database` that looks after the file. *progress* is always told how far the work is."""

    if TYPE_CHECKING:

        @property
        def _open_store(self) -> Store:
            """The open environment."""
            ...

        _storages: dict[str, tuple[type[Table[Any, Any]], Storage[Any, Any]]]

    def backup(
        self, path: StrPath, *, compact: bool = True, overwrite: bool = False, progress: Optional[Told] = None
    ) -> Backup:
        """Copy the database to the file *path* (in an existing directory, to ``data.mdb`` in it), while others write.

        The copy is one snapshot, the state when the copying begins. It is written beside its target, checked page by
        page, flushed to the disk and then renamed, so that *path* never is half a copy. *compact* leaves out unused
        pages; without it copying is faster and the file as large as the original. An existing *path* is kept unless
        *overwrite* is true. The copy opens as a database, by `zlmdb.open` with its path, and has the mode of the
        original.

        Pages that writers free while the copy is made are used again only after it. Raises FileExistsError,
        `DatabaseInUse` when this or another process has *path* open, FileNotFoundError when there is no directory for
        it, `DatabaseFull` when the disk has no room, `DiskError`, `CorruptDatabase` when the copy is damaged,
        `FileRequired` in memory.
        """
        from .backup import back_up

        return back_up(self._open_store, path, compact=compact, overwrite=overwrite, told=progress)

    @staticmethod
    def restore(
        backup: StrPath, path: StrPath, *, overwrite: bool = False, progress: Optional[Told] = None
    ) -> Backup:  # fmt: skip
        """Put the copy *backup* in the place of the database *path*, a directory or a data file; checked, then renamed.

        An existing database is kept unless *overwrite* is true; the new file gets its mode and, where that is
        permitted, its owner. Raises `DatabaseInUse` while this or another process has it open, FileExistsError,
        FileNotFoundError, `CorruptDatabase` when the copy is damaged, `InvalidDatabase` when it is none,
        `DatabaseFull`, `DiskError`.
        """
        from .backup import restore

        return restore(backup, path, overwrite=overwrite, told=progress)

    def compact(self, *, progress: Optional[Told] = None) -> Compaction:
        """Replace the file by a copy without unused pages: the sizes in bytes before and after.

        A file never becomes smaller by itself; its unused pages are used again. Writers wait meanwhile. Raises
        `DatabaseInUse` when transactions of this process are open, or another process has the database open;
        `ReadonlyDatabase`, `FileRequired`, and what `backup` raises. The database stays as it was then.
        """
        from .backup import compact

        return compact(self._open_store, progress)

    def check(self, *, progress: Optional[Told] = None) -> CheckReport:
        """Check everything that can be checked, while others write; `CheckReport.ok` says the result.

        Every page is where it should be; every key and value decodes; every index entry has its record and every record
        its entries; catalogue and counts agree. Declared and attached tables are read by the program's types, others by
        those that the file names, and nothing is unpickled that the program does not declare.
        Reads the whole file twice, and looks each index entry up: O(n log n) of records and entries.
        """
        from .checker import check

        return check(self._open_store, {storage.name: storage for _, storage in self._storages.values()}, progress)

    def dump(
        self, file: IO[bytes], *, tables: Optional[Sequence[str]] = None, progress: Optional[Told] = None
    ) -> Streamed:  # fmt: skip
        """Write the database, or the *tables* named, to the open binary *file* as a portable stream of JSON lines.

        The stream holds the schema, typed keys, the stored bytes of the values, and checksums; it is one snapshot.
        It can be loaded into the other layout, another LMDB version or engine, on another machine. Never unpickles.
        Keys of a program's own types are written as their bytes. Raises `KeyError` for a table that is not there,
        `DecodeError` for a key that does not decode.
        """
        from .stream import dump

        return dump(self._open_store, file, tables, progress)

    def load(
        self,
        file: IO[bytes],
        *,
        check: bool = True,
        max_line: Optional[int] = None,
        progress: Optional[Told] = None,
    ) -> Streamed:
        """Store the tables of a stream that `dump` wrote, none of which this database has yet, with their indexes.

        The whole stream is checked first, and then stored in one transaction: all of it, or nothing. With *check* each
        value is read by its type, and by the fields that the stream records of it. A line may have *max_line* bytes,
        512 MiB by default, which is one of a value of 384 MiB. Raises `DecodeError` when a line is longer, the stream
        was cut off or has changed, or a value cannot be read; `ConstraintError` when a table or slot is there already,
        `SchemaMismatch` for a table
        without types from the other layout, and where both have migrations, which differ; `ReadonlyDatabase`,
        `NestedTransaction`.
        """
        from .loading import load
        from .stream import MAX_LINE

        return load(self._open_store, file, progress, max_line=MAX_LINE if max_line is None else max_line, check=check)

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
        """Write the classic database *source*, of zlmdb <= 26, as a new one of the tables layout at *target*.

        zlmdb <= 26 stores no types: *maps* are the classes, decorated by `table`, of its tables, and *slots* the
        maps, or classes, of the slots given by hand. Little-endian keys become ones that sort, sets are written
        whole. Every record is compared afterwards with the one it was made of. Nothing is unpickled. *source* is not
        changed; *target* None only tries.

        A record that cannot be converted is an error, and there is no *target* then; with *skip* it is left out and
        reported. Raises `SchemaMismatch` when types are missing, FileExistsError, `InvalidDatabase` when *source*
        has the tables layout, `DatabaseFull`, `DiskError`.
        """
        from .conversion import convert

        return convert(source, target, maps, slots, skip=skip, lib_version=lib_version, told=progress)

    def migrate(self, *, dry_run: bool = False, progress: Optional[Told] = None) -> list[Applied]:
        """Apply the `migrations` of the schema that the file lacks, in order: what was applied.

        Each is one transaction, committed with the record that it was applied; one that raises leaves the file at the
        version before it. With *dry_run* all are run in one transaction, which is aborted. Tables whose shape is
        another one in the file can be used when all steps have been applied, the last of which has to make them fit.
        Raises `SchemaMismatch` when the file is newer than the program, or a table does not fit in the end.
        """
        from .migrations import migrate

        return migrate(self, vars(self)["_schema"], dry_run=dry_run, told=progress)

    def drop_index(self, table: str, index: str, /) -> None:
        """Drop a declared index from the file, for good.

        Programs that declare it may go on writing to the table, and build it again when they next open the file to
        write. Raises `KeyError` where the file has no such index, `NestedTransaction`, `ReadonlyDatabase`.
        """
        from ..schema.attach import drop_index

        if self._open_store.readonly:
            self._open_store.refuse_write()
        drop_index(self._open_store, table, index)

    def _check_migrations(self) -> bool:
        """Whether the schema has steps that the file lacks. Raises `SchemaMismatch` when the file is the newer one."""
        from .migrations import check

        return check(self._open_store, vars(self)["_schema"])

    @property
    def schema_version(self) -> int:
        """The version of the schema of the file: that of the last migration applied, or 0."""
        from .migrations import recorded

        return max(recorded(self._open_store), default=0)

    @staticmethod
    def salvage(source: StrPath, target: StrPath, *, progress: Optional[Told] = None) -> SalvageReport:
        """Copy all that still decodes from the damaged database *source* into a new one at *target*, a directory.

        The report lists what did not. Reads each page of *source* once, without LMDB, and never unpickles. Indexes
        are not copied but built again when a program that declares them opens *target*. *source* is not changed, and
        must not be written to meanwhile. Raises FileExistsError, `CorruptDatabase` when no table is found,
        `InvalidDatabase` when *source* is not LMDB's, `DatabaseFull`, `DiskError`.
        """
        from .salvage import salvage

        return salvage(source, target, progress)

    @staticmethod
    def verify(path: StrPath, *, progress: Optional[Told] = None) -> list[str]:
        """What is wrong with the pages of the file at *path*, which is not opened; empty when nothing is.

        The file is read without LMDB, so that one that is damaged, or made to do harm, cannot crash the process. Each
        node of each page in use is looked at, lists of free pages and the two meta pages too. A file that passes is
        safe to open, to read and to write; what its records say is for `check`. ``zlmdb.open(..., verify=True)`` does
        both in one step. Nobody should write to the file meanwhile: pages that are used again look damaged. Raises
        `InvalidDatabase` when it is not LMDB's, FileNotFoundError.
        """
        from ..engines import registry
        from .backup import file_of
        from .progress import Progress, silent

        told = progress or silent
        engine = registry.engine(os.fspath(path))
        return engine.verify(file_of(engine), lambda done, total: told(Progress("pages", done, total)))
