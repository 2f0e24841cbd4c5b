"""The LMDB engine: opening environments, their map size, and LMDB's errors as ours.

`lmdb.Environment` satisfies the Protocols of `zlmdb.engines` as it is, so this file only opens it and speaks for it.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Callable, Generator, Hashable, Iterable
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Optional

import lmdb

from ... import errors
from ...directories import NO_ROOM, make_directory
from ...lockedfiles import LockedFile
from ...log import log
from ...systems import keep_standard_streams
from ..engine import Told, known_options
from ..environment import Handle
from . import manyspaces, mapsize, openable, presence, readertable, rollback, room
from .access import (
    identity_of,
    open_to_read,
    require_file,
    require_permitted,
    require_reader,
    require_regular,
    require_same,
)
from .allocated import allocate, allocate_locks
from .copying import copy_compact, copy_whole
from .damaged import LmdbRemains
from .errors import MAX_READERS, MAX_TABLES, NO_SPACE, translate
from .filesystem import look_at, no_space
from .inpython import undisturb
from .options import LmdbOptions
from .places import DATA, data_file, env_path, refuse_others

_LEAST_SIZE = 1 << 16
_LOCK_PAUSES = (0.02, 0.1, 0.5)  # seconds
WRITEMAP_SIZE = 10 << 20
"""The map size with ``writemap=True`` and no maxsize: the default of zlmdb <= 26."""

_local: dict[str, bool] = {}  # by path, whose file was looked at: whether it is on no network
_KEY_SIZES = {"0.9": 511, "1.0": 1978}  # of a file of either format, as py-lmdb builds LMDB
_SAMPLE = 1024  # a file of named sub-databases has fewer entries than this in its main database
SPARE_READERS = 8

# Where LMDB is called through cffi (PyPy), the read transaction that opens a handle in a read-only environment is kept
# as a spare one instead of being committed, and the handle dies with it.
_HANDLES_NEED_COMMIT = lmdb.Environment.__module__ == "lmdb.cffi"

_LIB_VERSIONS = {"0.9": 0, "1.0": 1}
_inherited: list[lmdb.Environment] = []
_keys_of = 0  # the child process in which py-lmdb was told to forget what its parent has open


class LmdbEngine:
    """One LMDB environment to open: its path and options.

    *path* is a directory, or the data file itself. Opening raises `FileNotFoundError` when it is absent and *create* is
    false or it is to be read only, `ValueError` when the file has another LMDB format than ``options.lib_version``,
    `InvalidDatabase` when it is not LMDB's.
    """

    names_in_main, abandons = True, False

    def __init__(self, path: str, options: LmdbOptions, *, create: bool) -> None:
        self.path = path
        self.options = options
        self.create = create
        self.can_grow = options.maxsize is None and not options.readonly
        self.limited = (options.maxsize is not None or options.writemap) and not options.readonly
        self.nests = not options.writemap  # LMDB cannot do both
        self.lends = self.nests  # a transaction inside another may be that of any thread, one at a time
        self.file = data_file(path)
        self._env_path, self._subdir = env_path(self.file)
        self.lock_file = self._beside("lock.mdb", "-lock")
        self._writer_lock = self._beside("writer.lock", "-writer.lock")
        self._size = self._reserved = 0
        self._handles = MAX_TABLES  # how many LMDB can open
        self._opened: Optional[Hashable] = None
        self._locked: Optional[Hashable] = None
        self._present: Optional[LockedFile] = None  # what `presence` has locked
        self.is_local = False  # all processes that open the file are on one machine; known when it is open

    def _beside(self, name: str, ending: str) -> str:
        """The file *name* in the directory; of a data file with another name, that and *ending*."""
        return os.path.join(self._env_path, name) if self._subdir else self._env_path + ending

    @classmethod
    def make_options(cls, **given: Any) -> LmdbOptions:
        """The options *given*."""
        return LmdbOptions(**known_options(given, LmdbOptions._fields))

    @property
    def directory(self) -> Optional[str]:
        """The directory of the data file, unless that has a name of its own: then there may be others in it."""
        directory, name = os.path.split(self.file)
        return directory if name == DATA else None

    @property
    def writer_lock(self) -> Optional[str]:
        """The file that our writers lock; None where there are none, or the user wants no locks."""
        return self._writer_lock if self.options.lock and not self.options.readonly else None

    @property
    def key_limit(self) -> int:
        """The bytes that a key may take in a new file."""
        return _KEY_SIZES[self.options.lib_version or "0.9"]

    def identity(self) -> Optional[Hashable]:
        """Device and inode of the data file, the same however its path is spelt; None while it does not exist."""
        return identity_of(self.file)

    def exists(self) -> bool:
        """Whether the data file is there."""
        return os.path.exists(self.file)

    def files(self) -> tuple[str, ...]:
        """The data file, and those of the locks."""
        return self.file, self.lock_file, self._writer_lock

    def verify(self, file: str, told: Optional[Told] = None) -> list[str]:
        """What is wrong with the pages of the data file *file*, which is read without LMDB."""
        from . import structure  # late: few programs look at all pages

        return structure.check(file, told)

    @contextmanager
    def remains(self) -> Generator[LmdbRemains, None, None]:
        """A block that reads the data file, which may be damaged, page by page."""
        require_file(self.file)
        with open_to_read(self.file) as data:
            yield LmdbRemains(data, self.file)

    @property
    def moves(self) -> bool:
        """Whether the open map may have to move, to grow or to follow another process that did."""
        return self._reserved == 0

    def open(self, *, readonly: bool = False) -> lmdb.Environment:
        """A new environment, *readonly* if only for now. Reserves address space when no maximum size is given."""
        path, options = self.path, self.options._replace(readonly=True) if readonly else self.options
        new = not os.path.exists(self.file)
        entries = self._look_at_file(new, creates=self.create and not options.readonly)
        if self._env_path not in _local:
            _local[self._env_path] = look_at(self.file)
        self.is_local = _local[self._env_path]
        keywords = self._keywords(new, options)
        if entries > MAX_TABLES:
            keywords["max_dbs"] = manyspaces.handles(self.file, MAX_TABLES)
        self._handles = keywords["max_dbs"]
        if options.writemap and options.maxsize is None:  # the file is allocated in full, so it needs a size
            options = self.options = self.options._replace(maxsize=max(WRITEMAP_SIZE, mapsize.used(self.file)))
        if options.maxsize is None:
            self._size, self._reserved = mapsize.map_size(self.file)
        else:
            self._size, self._reserved = self._limited_size(options.maxsize), 0
        env: Optional[lmdb.Environment] = None
        try:
            env = self._open(keywords)
            self._opened, self._locked = self.identity(), identity_of(self.lock_file) if options.lock else None
            found = self.file_version(env)
            if options.lib_version not in (None, found):
                raise ValueError(
                    f"{path!r} has the LMDB {found} format, lib_version={options.lib_version!r} was asked for: leave "
                    f"it out"
                )
            if options.writemap:
                self._allocate()
            return env
        except BaseException:
            if env is not None:
                env.close()
            self.closed()  # after that: it ends all locks on LMDB's lock file
            raise

    def _look_at_file(self, new: bool, *, creates: bool) -> int:
        """The number of entries of the main database, 0 of a *new* file.

        Raises `FileNotFoundError` where there is no file and this one *creates* none, and as `openable.check_opening`.
        """
        if not new:
            require_regular(self.file)
            return openable.check_opening(self.file, self.lock_file, creates)
        require_permitted(self.file)
        if not creates:
            raise FileNotFoundError(
                f"no database at {self.path!r}: check the path, or open it writable with a schema (and create=True) "
                f"to make it"
            )
        return 0

    def require_reader(self) -> None:
        """Raise `ReadonlyDatabase` where this user may not lock the file while it reads, and others may write to it."""
        require_reader(self.path, self.file, self.lock_file)

    def check_file(self) -> None:
        """Raise `InvalidDatabase` or `CorruptDatabase` where the open file was replaced, removed or cut off meanwhile.

        Called before a write begins, since what is written then would be lost. So it would be without LMDB's lock file,
        as programs that open the file make another one, and do not know of this program.
        """
        if self._opened is None:
            return
        require_same(self.path, self.file, self._opened, self.identity())
        presence.require_open(self._present, self._opened, self.path)
        if self._locked is not None:
            require_same(self.path, self.lock_file, self._locked, identity_of(self.lock_file))
        openable.check_length(self.file)

    def _allocate(self) -> None:
        """Give the file all the room that it may need: writing to a map on a full disk would kill the process."""
        try:
            with open(self.file, "r+b") as data:
                allocate(data.fileno(), self._size)
        except OSError as error:
            ours = errors.DatabaseFull if error.errno in NO_ROOM else errors.DiskError
            raise ours(
                f"writemap=True allocates {self._size} bytes for {self.file!r}, which failed ({error}): make room, or "
                f"open it with a smaller maxsize",
                path=self.path, size=self._size,
            ) from error  # fmt: skip

    def _keywords(self, new: bool, options: LmdbOptions) -> dict[str, Any]:
        keywords: dict[str, Any] = {
            "subdir": self._subdir, "readonly": options.readonly, "lock": options.lock,
            "sync": options.durability != "none", "metasync": options.durability == "full",
            "writemap": options.writemap, "max_dbs": MAX_TABLES, "max_readers": MAX_READERS,
            "max_spare_txns": 0 if options.readonly and _HANDLES_NEED_COMMIT else SPARE_READERS,
        }  # fmt: skip
        if new:
            size = options.maxsize
            if size is not None and size < mapsize.LEAST:
                raise ValueError(
                    f"maxsize={size}: a database takes {mapsize.LEAST} bytes or more: give it some megabytes"
                )
            given = {} if options.mode is None else {"mode": options.mode | (options.mode & 0o444) >> 2}
            directory = os.path.dirname(self.file)
            refuse_others(self.path, directory)
            make_directory(directory, **given)  # who may read files may look into their directory
            if options.mode is not None:
                keywords["mode"] = options.mode
        elif not options.readonly:
            with suppress(OSError):  # opening it says what is wrong
                found = os.stat(self.file)
                keywords["mode"] = found.st_mode & 0o666 | 0o600  # LMDB makes its lock file as private as the data
                new = not found.st_size  # perhaps another process has made it just now
        if new and options.lib_version is not None:
            keywords["lib_version"] = _LIB_VERSIONS[options.lib_version]
        return keywords

    def _open(self, keywords: dict[str, Any]) -> lmdb.Environment:
        if keywords["readonly"] and keywords["lock"] and not require_reader(self.path, self.file, self.lock_file):
            # Without a lock file there is no table of readers, which only matters beside a writer.
            log.info("%r opens without locks: nobody can write there", self.path)
            keywords = {**keywords, "lock": False}
        keep_standard_streams()
        try:
            return self._fitting(keywords)
        except lmdb.DiskError as error:
            raise no_space(self.file, error) or self.translate(error) from error
        except lmdb.Error as error:
            raise self.translate(error) from error

    def _fitting(self, keywords: dict[str, Any]) -> lmdb.Environment:
        """An environment with the map size that is wanted; where the address space is short, with a smaller one."""
        shows = self.is_local and keywords["lock"]
        while True:
            try:
                if shows:
                    self._present = present = presence.enter(self.file, self.lock_file)
                    mode, kept = keywords.get("mode", 0o644) & 0o666, None if present is None else present.opened
                    allocate_locks(self.lock_file, keywords["max_readers"], mode, kept)
                env = self._patient(keywords)
                if shows:
                    self._present = presence.share(env, self.file, self.lock_file, self._present)
                return env
            except (lmdb.MapResizedError, presence.OpenAgain):  # another process did that in just this moment
                self.closed()
                limit = self.options.maxsize
                self._size = mapsize.growable(self.file) if limit is None else self._limited_size(limit)
            except lmdb.MemoryError:
                size = self._size
                first, least = mapsize.growable(self.file), max(mapsize.used(self.file), _LEAST_SIZE)
                if self.options.maxsize is not None or size <= least:
                    raise
                self.closed()
                self._size = first if first < size else max(size // 2, least)

    def _patient(self, keywords: dict[str, Any]) -> lmdb.Environment:
        """Open, and again shortly after where the lock file is not to be had: in clusters that passes."""
        pauses = iter(() if keywords["readonly"] else _LOCK_PAUSES)
        while True:
            try:
                env = lmdb.open(os.fsencode(self._env_path), map_size=self._size, **keywords)
                break
            except lmdb.LockError:
                pause = next(pauses, None)
                if pause is None:
                    raise
                time.sleep(pause)
        if _HANDLES_NEED_COMMIT:
            undisturb(env)
        env.reader_check()  # what readers that were killed have left
        return env

    def open_existing(self, env: lmdb.Environment, name: bytes) -> Handle:
        """The handle of the sub-database *name*, or None where there is none."""
        try:
            return env.open_db(name, create=False)
        except (lmdb.NotFoundError, lmdb.IncompatibleError):
            return None
        except lmdb.MapResizedError:  # the store makes it good
            raise
        except lmdb.Error as error:
            raise self.translate(error) from error

    def holds_spaces(self, env: lmdb.Environment, txn: lmdb.Transaction[Any]) -> bool:
        """Whether there is any sub-database. A file full of records is taken to have none."""
        return self._handles > MAX_TABLES if txn.stat()["entries"] > _SAMPLE else any(env.dbs(txn))

    def space_names(self, env: lmdb.Environment, txn: lmdb.Transaction[Any]) -> Iterable[bytes]:
        """The names of all sub-databases. Raises `DatabaseFull` where there are more than can be open at once."""
        names = [bytes(name) for name in env.dbs(txn)]
        if len(names) >= self._handles and txn.stat()["entries"] > len(names):  # py-lmdb lists those that it can open
            raise self.translate(lmdb.DbsFullError("env_dbs"))
        return names

    def closed(self) -> None:
        """Give the reservation of a closed environment back to the budget of the process."""
        presence.leave(self._present)
        self._present = self._opened = None  # the next file may be another one, as after `compact`
        mapsize.release(self._reserved)
        self._size = self._reserved = 0

    abort = staticmethod(rollback.abort)

    def capacity(self, env: Optional[lmdb.Environment]) -> int:
        """The map size; of a file that is not open, what the user set or would be reserved."""
        if self.options.maxsize is not None:
            return self.options.maxsize
        return mapsize.RESERVATION if env is None else env.info()["map_size"]

    def used(self, env: lmdb.Environment) -> int:
        """The bytes of all pages, of those too that are free."""
        return (env.info()["last_pgno"] + 1) * env.stat()["psize"]

    def data_pages(self, env: lmdb.Environment) -> int:
        """The pages of the file without its meta pages."""
        return env.info()["last_pgno"] + 1 - room.META_PAGES

    def copy_to(self, env: lmdb.Environment, target: int, *, compact: bool, told: Told) -> None:
        """Write a copy into the new file *target*: by LMDB, without unused pages, or page by page."""
        if compact:
            copy_compact(env, target, self.used(env), told)
        else:
            copy_whole(self.file, target, told)

    def readers(self, env: lmdb.Environment) -> list[tuple[int, Optional[int]]]:
        """LMDB's table of readers."""
        return readertable.slots(env)

    def clear_readers(self, env: lmdb.Environment) -> int:
        """Free the slots of readers whose processes were killed; how many."""
        return env.reader_check()

    def settled(self, env: lmdb.Environment, options: LmdbOptions) -> LmdbOptions:
        """*options* with the format of the file, unless they name one, and with ``writemap`` with its size.

        The mode is left out: it is that of a new file.
        """
        size = self.options.maxsize if options.writemap and options.maxsize is None else options.maxsize
        return options._replace(lib_version=options.lib_version or self.file_version(env), maxsize=size, mode=None)

    def file_version(self, env: lmdb.Environment) -> str:
        """The LMDB format of the file: "0.9" or "1.0"."""
        return "0.9" if env.lib_version()[0] < 1 else "1.0"

    def library_version(self, env: lmdb.Environment) -> str:
        """The version of the LMDB that has the file open."""
        return ".".join(map(str, env.lib_version()))

    def grow(self, env: lmdb.Environment) -> None:
        """Double the map, unless the user set its size. No transaction of this process may be open."""
        if self.can_grow:
            size = env.info()["map_size"]
            self._require_space(size)
            log.info("%r grows to %d bytes", self.path, 2 * size)
            mapsize.set_size(env, 2 * size)

    def adopt_size(self, env: lmdb.Environment) -> None:
        """Follow another process that made the file larger. No transaction of this process may be open."""
        limit, used = self.options.maxsize, mapsize.used(self.file)
        self._require_space(used - env.info()["map_size"])
        mapsize.set_size(env, 0 if limit is None else self._limited_size(limit))

    def _limited_size(self, limit: int) -> int:
        """The map size for a file of at most *limit* bytes, with room for deletions, or for what it takes already."""
        if self.options.writemap:  # that is allocated as it is
            return max(limit, mapsize.used(self.file))
        return mapsize.limited(self.file, limit)

    def require_room(
        self, env: lmdb.Environment, txn: lmdb.Transaction[Any], handles: Iterable[Handle], begun: float
    ) -> float:  # fmt: skip
        """Raise `DatabaseFull` where *txn* stores what leaves no room for deletions. Until when not to ask again."""
        limit = self.options.maxsize
        if limit is None:
            return 0.0
        spare = mapsize.room_to_delete(limit)
        if self.options.writemap:
            spare = min(spare, limit // 4)
            limit -= spare
        found = room.excess(env, txn, handles, limit, spare, begun)
        if isinstance(found, str):
            raise self._full({}, found)
        return found

    def _require_space(self, size: int) -> None:
        """Raise `DatabaseFull` where the address space has no room for *size* bytes more.

        LMDB gives the old map up before it has the new one, and cannot be sure to get the old one again.
        """
        if size > 0 and sys.platform != "win32":
            try:
                mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ).close()
            except OSError as error:
                raise errors.DatabaseFull(
                    f"{NO_SPACE} ({error}): {self.path!r} keeps its map, and needs {size} bytes more",
                    path=self.path, size=mapsize.used(self.file),
                ) from error  # fmt: skip

    def fatal(self, error: Exception) -> bool:
        """Whether the environment that gave *error* has to be opened anew: LMDB stopped it, or py-lmdb closed it."""
        return isinstance(error, lmdb.PanicError) or "closed/deleted/dropped" in str(error)

    def resized(self, error: Exception) -> bool:
        """Whether *error* says that another process made the file larger than this map."""
        return isinstance(error, lmdb.MapResizedError)

    def retry(self, error: Exception) -> bool:
        """False: there is one writer at a time, so that nothing conflicts."""
        return False

    def translate(self, error: Exception, **details: Any) -> Exception:
        """Our error for *error* of LMDB, to be raised ``from`` it; any other exception comes back as it is."""
        ours = translate(error, path=self.path, **details)
        return self._full(details) if isinstance(error, lmdb.MapFullError) else ours

    def _full(self, details: dict[str, Any], reason: str = "") -> errors.DatabaseFull:
        limit, size = self.options.maxsize, mapsize.taken(self.file)
        if limit is None:
            text = f"the memory map of {self.path!r} is full: it grows before the next transaction, run this one again"
        else:
            if not reason and size < limit:  # LMDB has written nothing of the transaction that did not fit
                reason = "what this transaction stores needs more than is left"
            text = (
                f"{self.path!r} takes {size} bytes and has a maxsize of {limit}{reason and ', '}{reason}: delete "
                f"records, for which there is room kept, or open it with a larger one"
            )
        return errors.DatabaseFull(text, **{**details, "path": self.path, "size": size, "limit": limit})

    def before_fork(self, env: lmdb.Environment) -> list[Any]:
        """Take the spare read transactions out of py-lmdb's cache, so that a child cannot free their reader slots."""
        with suppress(ImportError):  # for the child, which must not import: another thread may be importing it now
            import_module("_ctypes")
        held: list[Any] = []
        with suppress(lmdb.Error):  # no more reader slots: then no spare one is left either
            for _ in range(SPARE_READERS):
                held.append(env.begin())
        return held

    def in_child(self, env: Optional[lmdb.Environment]) -> None:
        """Let inherited files be opened again, although iterators and the like still refer to the environments.

        *env* is never freed: py-lmdb would first wait for the calls in which other threads of the parent were when it
        forked, and in this process these never return. Hence the second reference, which outlives the end of Python.
        """
        global _keys_of
        presence.leave(self._present)
        self._present = None
        if env is not None:
            _inherited.append(env)
            increase = getattr(sys.modules.get("_ctypes"), "Py_INCREF", None)
            if increase is not None:  # CPython
                increase(env)
        envid: Any = sys.modules.get("lmdb._envid")
        if envid is not None and _keys_of != os.getpid():
            _keys_of = os.getpid()
            inherited: Callable[..., tuple[Any, ...]] = envid.env_keys
            # py-lmdb refuses files that are open in the process, and cannot know that here they are the parent's.
            envid.env_keys = lambda *args: tuple(("child", _keys_of, *key) for key in inherited(*args))  # pyright: ignore[reportUnknownLambdaType]  # a lambda's *args cannot be annotated
