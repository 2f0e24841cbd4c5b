"""The LMDB engine: opening environments, their map size, and LMDB's errors as ours.

`lmdb.Environment` satisfies the Protocols of `zlmdb.engines` as it is, so this file only opens it and speaks for it.
"""

from __future__ import annotations

import errno
import logging
import mmap
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Optional

import lmdb

from .. import errors
from .place import look_at, no_space
from .structure import check_length

log = logging.getLogger("zlmdb")

TIB = 1 << 40
RESERVATION = TIB
"""Address space reserved for a database without a `maxsize`, in bytes. It costs neither memory nor disk."""

BUDGET = 16 * TIB
"""Address space that the reservations of one process may add up to; 127 TiB exhaust a 47-bit address space."""

FIRST_SIZE = 64 << 20
"""The first map size, in bytes, where no address space can be reserved; it then doubles as the data grow."""

_LEAST_SIZE = 1 << 16
_LOCK_PAUSES = (0.02, 0.1, 0.5)  # seconds
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_looked_at: set[str] = set()  # places that were warned of, if need be

MAX_KEY_SIZES = {"0.9": 511, "1.0": 1978}
"""The bytes that a key may take in a file of either format of LMDB, as py-lmdb builds it."""

MAX_TABLES = 1024
MAX_READERS = 1024
SPARE_READERS = 8

# Where LMDB is called through cffi (PyPy), the read transaction that opens a handle in a read-only environment is kept
# as a spare one instead of being committed, and the handle dies with it.
_HANDLES_NEED_COMMIT = lmdb.Environment.__module__ == "lmdb.cffi"

_NO_SPACE = "the address space or memory of this process is used up"
_LIB_VERSIONS = {"0.9": 0, "1.0": 1}
_reserved = 0
_keys_of = 0  # the child process in which py-lmdb was told to forget what its parent has open


@dataclass(frozen=True)
class Options:
    """How an environment is opened. Two handles of one file share it when their options are equal."""

    readonly: bool = False
    maxsize: Optional[int] = None
    sync: bool = True
    metasync: bool = True
    lock: bool = True
    writemap: bool = False
    lib_version: Optional[str] = None


def data_file(path: str) -> str:
    """The data file of the database at *path*, which is its directory or the data file itself."""
    return os.path.realpath(path) if os.path.isfile(path) else os.path.join(os.path.abspath(path), "data.mdb")


def _place(path: str) -> tuple[str, bool]:
    """What LMDB is to open for *path*, and whether that is a directory.

    Of a ``data.mdb`` it is the directory: whoever names the one or the other must meet in one lock file.
    """
    file = data_file(path)
    directory, name = os.path.split(file)
    return (directory, True) if name == "data.mdb" and not os.path.exists(file + "-lock") else (file, False)


def writer_lock(path: str) -> str:
    """The file that our writers lock: ``writer.lock`` in the directory, or beside a data file with its own name."""
    place, is_directory = _place(path)
    return os.path.join(place, "writer.lock") if is_directory else place + "-writer.lock"


def lock_file(path: str) -> str:
    """LMDB's lock file: ``lock.mdb`` in the directory, or beside a data file with its own name."""
    place, is_directory = _place(path)
    return os.path.join(place, "lock.mdb") if is_directory else place + "-lock"


class LmdbEngine:
    """One LMDB environment to open: its place and options.

    *path* is a directory, or the data file itself. Opening raises `FileNotFoundError` when it is absent and *create* is
    false or it is to be read only, `ValueError` when the file has another LMDB format than ``options.lib_version``,
    `InvalidDatabase` when it is not LMDB's.
    """

    persistent = True

    def __init__(self, path: str, options: Options, *, create: bool) -> None:
        self.path = path
        self.options = options
        self.create = create
        self.can_grow = options.maxsize is None and not options.readonly
        self.file = data_file(path)
        self.lock_file = lock_file(path)
        self._place, self._subdir = _place(path)
        self._size = self._reserved = 0

    @property
    def moves(self) -> bool:
        """Whether the open map may have to move, to grow or to follow another process that did."""
        return self._reserved == 0

    def open(self, *, readonly: bool = False) -> lmdb.Environment:
        """A new environment, *readonly* if only for now. Reserves address space when no maximum size is given."""
        path, options = self.path, self.options if not readonly else replace(self.options, readonly=True)
        if options.writemap and options.maxsize is None:
            raise ValueError(
                "writemap=True needs a maxsize: the file is allocated in full against a disk that fills up"
            )
        new = not os.path.exists(self.file)
        if new and (options.readonly or not self.create):
            raise FileNotFoundError(
                f"no database at {path!r}: check the path, or open it writable with a schema (and create=True) "
                "to make it"
            )
        if not new:
            check_length(self.file)
        if self._place not in _looked_at:
            _looked_at.add(self._place)
            look_at(self.file)
        keywords = self._keywords(new, options)
        self._size, self._reserved = _map_size(self.file, options.maxsize)
        try:
            env = self._open(keywords)
        except BaseException:
            self.closed()
            raise
        found = lib_version(env)
        if options.lib_version not in (None, found):
            self.closed()
            env.close()
            raise ValueError(
                f"{path!r} has the LMDB {found} format, lib_version={options.lib_version!r} was asked for: leave it out"
            )
        if options.writemap:
            try:
                self._allocate()
            except BaseException:
                self.closed()
                env.close()
                raise
        return env

    def _allocate(self) -> None:
        """Give the file all the room that it may need: writing to a map on a full disk would kill the process."""
        if not hasattr(os, "posix_fallocate"):
            return
        try:
            with open(self.file, "r+b") as data:
                os.posix_fallocate(data.fileno(), 0, self._size)
        except OSError as error:
            ours = errors.DatabaseFull if error.errno in _NO_ROOM else errors.DiskError
            raise ours(
                f"writemap=True allocates {self._size} bytes for {self.file!r}, which failed ({error}): make room, or "
                f"open it with a smaller maxsize",
                path=self.path, size=self._size,
            ) from error  # fmt: skip

    def _keywords(self, new: bool, options: Options) -> dict[str, Any]:
        keywords: dict[str, Any] = {
            "subdir": self._subdir, "readonly": options.readonly, "lock": options.lock,
            "sync": options.sync, "metasync": options.metasync, "writemap": options.writemap,
            "max_dbs": MAX_TABLES, "max_readers": MAX_READERS,
            "max_spare_txns": 0 if options.readonly and _HANDLES_NEED_COMMIT else SPARE_READERS,
        }  # fmt: skip
        if new:
            os.makedirs(self._place, exist_ok=True)
            if options.lib_version is not None:
                keywords["lib_version"] = _LIB_VERSIONS[options.lib_version]
        return keywords

    def _open(self, keywords: dict[str, Any]) -> lmdb.Environment:
        try:
            return self._fitting(keywords)
        except (lmdb.ReadonlyError, lmdb.LockError) as error:
            # Read-only media: without a lock file there is no table of readers, which only matters beside a writer.
            if not (keywords["readonly"] and keywords["lock"]):
                raise self.translate(error) from error
            log.warning("%s opens read-only without a lock file: no other process may write to it", self.path)
            return self._fitting({**keywords, "lock": False})
        except lmdb.DiskError as error:
            raise no_space(self.file, error) or self.translate(error) from error
        except lmdb.Error as error:
            raise self.translate(error) from error

    def _fitting(self, keywords: dict[str, Any]) -> lmdb.Environment:
        """An environment with the map size that is wanted; where the address space is short, with a smaller one."""
        growable, least = _growable(self.file), max(_used(self.file), _LEAST_SIZE)
        while True:
            try:
                return self._patient(keywords)
            except lmdb.MapResizedError:  # another process made the file larger in just this moment
                self.closed()
                self._size = max(self.options.maxsize or _growable(self.file), _used(self.file))
            except lmdb.MemoryError:
                size = self._size
                if self.options.maxsize is not None or size <= least:
                    raise
                self.closed()
                self._size = growable if growable < size else max(size // 2, least)

    def _patient(self, keywords: dict[str, Any]) -> lmdb.Environment:
        """Open, and again shortly after where the lock file is not to be had: in clusters that passes."""
        for pause in _LOCK_PAUSES:
            try:
                env = lmdb.open(self._place, map_size=self._size, **keywords)
            except lmdb.LockError:
                if keywords["readonly"]:
                    raise
                time.sleep(pause)
            else:
                break
        else:
            env = lmdb.open(self._place, map_size=self._size, **keywords)
        env.reader_check()  # what readers that were killed have left
        return env

    def open_existing(self, env: Any, name: bytes) -> Any:
        """The handle of the sub-database *name*, or None where there is none."""
        try:
            return env.open_db(name, create=False)
        except (lmdb.NotFoundError, lmdb.IncompatibleError):
            return None
        except lmdb.MapResizedError:  # the store makes it good
            raise
        except lmdb.Error as error:
            raise self.translate(error) from error

    def closed(self) -> None:
        """Give the reservation of a closed environment back to the budget of the process."""
        global _reserved
        _reserved -= self._reserved
        self._size = self._reserved = 0

    def grow(self, env: Any) -> None:
        """Double the map, unless the user set its size. No transaction of this process may be open."""
        if self.can_grow:
            size = env.info()["map_size"]
            self._require_space(size)
            log.info("%s grows to %d bytes", self.path, 2 * size)
            _set_size(env, 2 * size)

    def adopt_size(self, env: Any) -> None:
        """Follow another process that made the file larger. No transaction of this process may be open."""
        limit, used = self.options.maxsize, _used(self.file)
        self._require_space(used - env.info()["map_size"])
        _set_size(env, 0 if limit is None else max(limit, used))

    def _require_space(self, size: int) -> None:
        """Raise `DatabaseFull` where the address space has no room for *size* bytes more.

        LMDB gives the old map up before it has the new one, and cannot be sure to get the old one again.
        """
        if size > 0 and sys.platform != "win32":
            try:
                mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ).close()
            except OSError as error:
                raise errors.DatabaseFull(
                    f"{_NO_SPACE} ({error}): {self.path!r} keeps its map, and needs {size} bytes more",
                    path=self.path, size=_used(self.file),
                ) from error  # fmt: skip

    def fatal(self, error: Exception) -> bool:
        """Whether the environment that gave *error* has to be opened anew: LMDB stopped it, or py-lmdb closed it."""
        return isinstance(error, lmdb.PanicError) or "closed/deleted/dropped" in str(error)

    def resized(self, error: Exception) -> bool:
        """Whether *error* says that another process made the file larger than this map."""
        return isinstance(error, lmdb.MapResizedError)

    def translate(self, error: Exception, **facts: Any) -> Exception:
        """Our error for *error* of LMDB, to be raised ``from`` it; any other exception comes back as it is."""
        ours = translate(error, path=self.path, **facts)
        return self._full(facts) if isinstance(error, lmdb.MapFullError) else ours

    def _full(self, facts: dict[str, Any]) -> errors.DatabaseFull:
        limit, size = self.options.maxsize, _used(self.file)
        if limit is None:
            text = f"the memory map of {self.path!r} is full: it grows before the next transaction, run this one again"
        else:
            text = f"{self.path!r} takes {size} bytes and has a maxsize of {limit}: open it with a larger one"
        return errors.DatabaseFull(text, **{**facts, "path": self.path, "size": size, "limit": limit})

    def before_fork(self, env: Any) -> list[Any]:
        """Take the spare read transactions out of py-lmdb's cache, so that a child cannot free their reader slots."""
        held: list[Any] = []
        with suppress(lmdb.Error):  # no more reader slots: then no spare one is left either
            for _ in range(SPARE_READERS):
                held.append(env.begin())
        return held

    def in_child(self) -> None:
        """Let inherited files be opened again, although iterators and the like still refer to the environments."""
        global _keys_of
        envid: Any = sys.modules.get("lmdb._envid")
        if envid is not None and _keys_of != os.getpid():
            _keys_of = os.getpid()
            inherited: Callable[..., tuple[Any, ...]] = envid.env_keys
            # py-lmdb refuses files that are open in the process, and cannot know that here they are the parent's.
            envid.env_keys = lambda *args: tuple(("child", _keys_of, *key) for key in inherited(*args))  # pyright: ignore[reportUnknownLambdaType]  # a lambda's *args cannot be annotated


def lib_version(env: Any) -> str:
    """The LMDB file format of *env*: "0.9" or "1.0"."""
    return "0.9" if env.lib_version()[0] < 1 else "1.0"


def _set_size(env: Any, size: int) -> None:
    try:
        env.set_mapsize(size)
    except lmdb.MemoryError:
        # py-lmdb has closed the environment. With cffi (PyPy) it goes on to take the file for open in this process.
        cffi: Any = sys.modules.get("lmdb.cffi")
        keys = getattr(env, "_open_keys", None)
        if cffi is not None and keys:
            cffi._open_env_keys.difference_update(keys)
        raise


def _map_size(file: str, maxsize: Optional[int]) -> tuple[int, int]:
    """The map size to open *file* with: *maxsize* (at least what is used), or a reservation; and what is reserved."""
    global _reserved
    if maxsize is not None:
        return max(maxsize, _used(file)), 0
    growable, wanted = _growable(file), _reservation()
    if wanted < growable or _reserved + wanted > BUDGET:
        return growable, 0
    _reserved += wanted
    return wanted, wanted


def _growable(file: str) -> int:
    """The map size to start from where the map has to grow with the data."""
    return max(FIRST_SIZE, 2 * _used(file))


def _reservation() -> int:
    """The address space to reserve, in bytes: 0 where reserving it would cost something."""
    if sys.maxsize <= 1 << 32 or sys.platform not in ("linux", "darwin"):
        return 0
    return min(RESERVATION, _address_space() // 4)


def _address_space() -> int:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, OSError):  # Windows has no such limit
        return 1 << 62
    return 1 << 62 if limit in (resource.RLIM_INFINITY, -1) else limit


def _used(file: str) -> int:
    try:
        return os.stat(file).st_size
    except OSError:
        return 0


NESTED = "this thread has a write transaction open already, and a second one would wait for ever: use txn.savepoint()"

_DAMAGED = "the data file is damaged: restore a backup"
_REOPEN = "the environment met a fatal error: close it and open it again"

# LMDB's error, ours, and what the user can do.
_ERRORS: dict[str, tuple[type[errors.Error], str]] = {
    "MapFullError": (errors.DatabaseFull, "the database has reached its maximum size: open it with a larger maxsize"),
    "TxnFullError": (errors.DatabaseFull, "the transaction has too many changes: commit more often"),
    "DbsFullError": (errors.DatabaseFull, f"the database has the {MAX_TABLES} tables and indexes of MAX_TABLES"),
    "ReadersFullError": (errors.DatabaseFull, f"all {MAX_READERS} reader slots (MAX_READERS) are taken: end some"),
    "MemoryError": (errors.DatabaseFull, _NO_SPACE),
    "ReadonlyError": (errors.ReadonlyDatabase, "nothing can be written here: use db.write() or begin(write=True)"),
    "BadTxnError": (errors.TransactionClosed, "the transaction has ended or cannot go on: begin a new one"),
    "BadRslotError": (errors.TransactionClosed, "the reader slot belongs to another thread: begin a new transaction"),
    "BadDbiError": (errors.TransactionStale, "the transaction began before the table was attached: begin again"),
    "DiskError": (errors.DiskError, "the operating system could not read or write the files: is the disk full?"),
    "LockError": (errors.DiskError, "the lock file could not be used: does the file system support locks?"),
    "CorruptedError": (errors.CorruptDatabase, _DAMAGED),
    "PageNotFoundError": (errors.CorruptDatabase, _DAMAGED),
    "BadChecksumError": (errors.CorruptDatabase, _DAMAGED),
    "PanicError": (errors.CorruptDatabase, _REOPEN),
    "ProblemError": (errors.CorruptDatabase, _REOPEN),
    "InvalidError": (errors.InvalidDatabase, "this is no LMDB data file"),
    "VersionMismatchError": (errors.InvalidDatabase, "the lock file is of another LMDB version: close all other users"),
    "IncompatibleError": (errors.InvalidDatabase, "the file uses the name of a table for something else"),
    "BadValsizeError": (errors.EncodeError, "the key is empty or too long for this LMDB format"),
}


def translate(error: Exception, **facts: Any) -> Exception:
    """Our error for *error* of LMDB, to be raised ``from`` it; any other exception comes back as it is."""
    if not isinstance(error, lmdb.Error):
        return error
    text = str(error)
    if "closed/deleted/dropped" in text:
        return errors.TransactionClosed("the transaction has ended: begin a new one", **facts)
    if "same thread" in text:
        return errors.NestedTransaction(NESTED, **facts)
    if os.strerror(errno.EROFS) in text:
        return errors.ReadonlyDatabase(
            f"the file system can only be read: open it with readonly=True ({text})", **facts
        )
    name = "DiskError" if os.strerror(errno.EIO) in text else type(error).__name__  # a short write, on a full disk
    ours, advice = _ERRORS.get(name, (errors.DiskError, "the engine failed"))
    return ours(f"{advice} ({text})", **facts)
