"""`zlmdb.open`: its arguments, and what is wrong with them."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional, TypeVar, overload

from ..engines import Durability
from ..numeric import checked_seconds, is_number
from ..schema.schema import Schema
from ..shown import NotGiven, refuse_options
from ..store import openstores
from ..store.layout import Layout
from ..store.openstores import Opening
from .database import Database, opened
from .state import StrPath

S = TypeVar("S", bound=Schema)

_MISSING: Any = NotGiven()

_SIZE = "the file grows by itself, up to maxsize= bytes if that is given"
_INSTEAD = {
    **dict.fromkeys(("map_size", "mapsize", "size_limit"), _SIZE),
    **dict.fromkeys(("sync", "metasync", "writemap", "fsync"), "write durability='full', 'commit' or 'none'"),
    **dict.fromkeys(("flag", "writable", "write"), "a database is opened to write unless readonly=True is given"),
    **dict.fromkeys(("max_dbs", "max_readers", "max_spare_txns"), "leave it out: there is no such limit to set"),
    "writeback": "a changed record is stored by table[key] = record, or in the block `with table.edit(key) as record:`",
}
"""Options of other stores."""


@overload
def open(
    path: StrPath,
    /,
    *,
    readonly: bool = False,
    timeout: Optional[float] = None,
    lock: bool = True,
    verify: bool = False,
) -> Database[Schema]: ...
@overload
def open(
    path: Optional[StrPath],
    schema: type[S],
    /,
    *,
    readonly: bool = False,
    create: bool = True,
    maxsize: Optional[int] = None,
    durability: Durability = "full",
    layout: Layout = "tables",
    timeout: Optional[float] = None,
    lock: bool = True,
    verify: bool = False,
    drop_indexes: bool = False,
    build_indexes: bool = True,
    lib_version: Optional[str] = None,
    mode: Optional[int] = None,
    flush_every: Optional[float] = None,
) -> Database[S]: ...
def open(
    path: Optional[StrPath] = _MISSING,
    schema: Optional[type[Any]] = None,
    /,
    *more: Any,
    readonly: bool = False,
    create: bool = True,
    maxsize: Optional[int] = None,
    durability: Durability = "full",
    layout: Layout = "tables",
    timeout: Optional[float] = None,
    lock: bool = True,
    verify: bool = False,
    drop_indexes: bool = False,
    build_indexes: bool = True,
    lib_version: Optional[str] = None,
    mode: Optional[int] = None,
    flush_every: Optional[float] = None,
    **unknown: Any,
) -> Database[Any]:
    """Open the database at *path*, a directory or the data file itself; None creates one in memory.

    A new database is made in the directory *path*, or, if that ends in ``data.mdb``, as that file. A directory with
    another database takes a new one only by the name of the file.

    With a *schema*, this function creates the declared tables and indexes that the file lacks, under the write lock, so
    several processes may open the database at once. Without a schema the file must exist, its records are read as
    plain data, and nothing is created in it; in memory, `Database.table` makes the tables.

    What may be written:

    * *readonly*: nothing is written and nothing is created; a declared table that the file lacks is empty.
    * *create* False: the file must exist, and nothing is created in it.
    * *maxsize*: a hard limit in bytes; a write beyond it raises `DatabaseFull`, unless it makes room. With None the
      file grows by itself.
    * *timeout*: seconds to wait for another writer; with None it waits forever, and logs this after a second.

    What a power cut may cost:

    * *durability* ``"full"``: no commit. ``"commit"``: the last commits; the file stays consistent. ``"none"``: the
      file. If only the process ends, nothing is lost in any case.
    * *flush_every*, with ``durability="commit"`` or ``"none"``: the seconds between two flushes, by a thread, of
      what was committed meanwhile; `close` flushes once more. A power cut can harm only what was committed after the
      last flush, but with ``"none"`` the whole file if it comes while the system writes unflushed pages.

    The indexes of the file and those of the table classes:

    * *build_indexes* False: new indexes of tables with many records are not built before this function returns, but by
      `Database.build_indexes`. Until then they are maintained, and queries do without them.
    * *drop_indexes*: the indexes are dropped that tables of the schema have in the file, and do not declare. Otherwise
      they stay, and their tables can only be read.

    New files (an existing file keeps its own layout and format):

    * *layout* ``"classic"`` makes a file that zlmdb 26 can read. ``"raw"`` opens an LMDB file of another program: its
      sub-databases are the tables, without indexes, and nothing is created.
    * *lib_version*: the LMDB format, ``"0.9"`` (the default) or ``"1.0"``, which has longer keys.
    * *mode*: the mode of new files, such as ``0o600``, from which the umask takes bits away. Copies and backups keep
      it.

    Files that others may have written:

    * *verify*: all pages are checked before LMDB reads any of them, as `Database.verify` does; it takes some seconds
      per GB.
    * *lock* False, with *readonly*: read without LMDB's locks, as zlmdb does by itself if nobody can write. If a
      program does write, the reader gets wrong data.

    Opening the same file again with the same options shares one environment. Raises `DatabaseInUse` if the options
    differ, FileNotFoundError, `InvalidDatabase`, `CorruptDatabase`, `SchemaMismatch` and `WriterTimeout`. If a new
    index does not fit a record, raises `DuplicateKey`, `EncodeError` or `DecodeError`, and the file does not get it.
    Raises ValueError or TypeError for an empty *path* and for options that have no meaning.
    """
    if path is _MISSING:
        raise TypeError(
            "open() takes the path and the schema without their names: write zlmdb.open(path, Schema), or "
            "zlmdb.open(None, Schema) for a database in memory"
        )
    if more:
        raise TypeError(
            f"open() takes a path and a schema, and got {', '.join(map(repr, more))} as well: a database is created if "
            f"there is none, readonly=True only reads it, and other options are given by name, too"
        )
    if unknown:
        refuse_options("open", unknown, open.__kwdefaults__ or (), _INSTEAD)
    flushes = durability != "full" and path is not None and not readonly
    _check_options(durability, layout, mode, flush_every, flushes=flushes)
    if timeout is not None:
        timeout = checked_seconds("timeout", timeout, ", or None to wait forever")
    if not lock and not readonly:
        raise ValueError("lock=False is for reading: add readonly=True, or leave it out")
    if layout == "raw" and path is None:
        raise ValueError("layout='raw' is for files of other programs: give the path of one")
    if drop_indexes and (readonly or not create or schema is None):
        raise ValueError("drop_indexes=True changes the file: it takes a schema, and neither readonly nor create=False")
    location = _checked_location(path, schema)
    if "freezegun" in sys.modules:
        from ..frozentime import load_with_true_times  # late: for tests only

        load_with_true_times()
    options = openstores.checked_options(
        location, readonly=readonly, maxsize=maxsize, durability=durability,
        lock=lock, lib_version=lib_version, mode=mode,
    )  # fmt: skip
    return opened(
        Opening(
            location,
            options,
            layout,
            create=create and (schema is not None or path is None) and layout != "raw",
            slots_expected=layout == "classic" and schema is not None,
            timeout=timeout,
            verify=verify,
            drop_indexes=drop_indexes,
            build_indexes=build_indexes,
        ),
        schema or Schema,
        flush_every,
    )


def _check_options(durability: object, layout: object, mode: object, flush_every: Any, *, flushes: bool) -> None:
    """Raise ValueError for an option with a value that it cannot have. *flushes*: there is something to flush."""
    if durability not in ("full", "commit", "none"):
        raise ValueError(f"durability={durability!r}: expected 'full', 'commit' or 'none'")
    if layout not in ("tables", "classic", "raw"):
        raise ValueError(f"layout={layout!r}: expected 'tables' or 'classic', or 'raw' for a file of another program")
    if mode is not None and not (type(mode) is int and 0o600 <= mode <= 0o777):
        raise ValueError(
            f"mode={mode!r}: expected the mode of new files, with which the owner reads and writes, such as 0o600"
            + ("; to open a file to read, give readonly=True" if isinstance(mode, str) else "")
        )
    if flush_every is not None and not (flushes and is_number(flush_every) and flush_every > 0):
        raise ValueError(
            f"flush_every={flush_every!r} takes a number of seconds, and a file opened to write with durability "
            f"'commit' or 'none': with 'full' each commit is flushed"
        )


def _checked_location(path: Optional[StrPath], schema: Optional[type[Any]]) -> Optional[str]:
    """The *path* as text. Raises `TypeError` or `ValueError` for what is no path, or no schema class."""
    given: Any = schema
    if schema is not None and not (isinstance(given, type) and issubclass(given, Schema)):
        if isinstance(path, type):
            raise TypeError(f"the path comes first: write zlmdb.open({given!r}, {path.__name__})")
        if isinstance(given, str):
            raise TypeError(
                f"expected a subclass of zlmdb.Schema, got {given!r}: give the class that declares the tables; a "
                f"database is created if there is none, and readonly=True only reads it"
            )
        raise TypeError(
            f"expected a subclass of zlmdb.Schema, got {schema!r}: declare the tables as its attributes, "
            f"class Store(zlmdb.Schema): users: Users; and give Store itself, zlmdb.open(path, Store)"
        )
    given = path
    if given is not None and not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"expected a path, or None for a database in memory, got {path!r}: zlmdb.open(path, Schema)")
    location = None if path is None else os.fspath(path)
    given = location
    if isinstance(given, bytes):
        raise TypeError(f"expected a path of text, got {path!r} of bytes: zlmdb.open(os.fsdecode(path), Schema)")
    if location == "":
        raise ValueError("the path is empty: give the directory of the database, or None for one in memory")
    if location is not None and "\0" in location:
        raise ValueError(f"the path {location!r} has a NUL character, which no path may have: choose another path")
    return location
