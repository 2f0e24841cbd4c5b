"""The directory of a cache: whether its file survived, and who uses it.

The file is written without syncs. While the machine runs, the page cache of the system keeps what was written, whatever
happens to processes. If the machine stops without writing it out, the file may be damaged in any way, so it must not be
opened then. The directory tells: a mark names the boot during which the file was last in use, and the last user who
closes it syncs the file and marks it clean.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Any, NoReturn, Optional

from .. import Database, DiskError, Error, InvalidDatabase
from ..directories import NO_ROOM, make_directory
from ..lockedfiles import close_in_child
from ..shown import shortened
from ..store.lockfile import NO_LOCKS
from ..systems import fcntl, flush

_CLEAN = "clean"
_OWN = frozenset(("data.mdb", "data.mdb-waiting", "lock.mdb", "writer.lock"))  # what the directory of the file holds
_TOO_MANY = (errno.EMFILE, errno.ENFILE)  # open files, which says nothing of the one that is to be opened
_SAME_BOOT = 120  # seconds by which the time of one boot may seem to move, where the system does not name boots


def boot() -> str:
    """A text that names the current boot of the machine."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError as error:
        if error.errno in _TOO_MANY:
            raise
        return str(int(time.time() - _since_boot()))


def _since_boot() -> float:
    """Seconds since the boot. On macOS `monotonic` stands still while the machine sleeps; this clock does not."""
    if sys.platform == "win32":  # what type checkers understand
        return time.monotonic()
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def is_same_boot(one: str, other: str) -> bool:
    """Whether two texts name one boot."""
    if one.isdigit() and other.isdigit():
        return abs(int(one) - int(other)) <= _SAME_BOOT
    return one == other


def path_of(path: Any) -> Optional[str]:
    """The *path* given for a cache, as a text that holds in any working directory, so that a cache can be closed there.

    Raises TypeError for what is none, such as a database.
    """
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"expected a path, or None for a cache in memory, got {shortened(path)}: zlmdb.Cache(path)")
    text: str = os.fspath(path)
    return os.path.abspath(text) if text else text  # an empty one is refused, and is not the working directory


class CacheFile:
    """The directory *path* of a cache, in use until `close`. With *keep*, it is never emptied.

    Raises `InvalidDatabase` if the directory belongs to something else, which emptying the cache would delete.
    """

    def __init__(self, path: str, *, keep: bool) -> None:
        self.database = os.path.join(path, "data")
        self._mark = os.path.join(path, "boot")
        self._guard = os.path.join(path, "guard")
        self._path = path
        others = [one for one in (self.database, os.path.join(path, "data.mdb")) if os.path.lexists(one)]
        if others and not os.path.isfile(self._mark):  # looked at last: a cache makes its mark first
            self._refuse(others[0])
        make_directory(path)
        with self._disk_errors():
            self._begin(keep)

    def _begin(self, keep: bool) -> None:
        users = self._open_users()
        self._users: Optional[IO[bytes]] = users
        try:
            with self._alone():
                if fcntl is None or self._is_only_user():  # who uses it now has left the mark of this boot
                    mark = self._read_mark()
                    if not keep and mark != _CLEAN and not is_same_boot(mark, boot()):
                        self._empty()
                    self._write_mark(boot())
                self._lock(users, exclusive=False)
        except BaseException:
            self._end(users)
            raise

    @contextmanager
    def _disk_errors(self) -> Generator[None, None, None]:
        """A block that writes the small files of the cache. Raises `DiskError` if the disk does not let it."""
        try:
            yield
        except OSError as error:
            if isinstance(error, Error) or error.errno not in (*NO_ROOM, errno.EIO):
                raise
            raise DiskError(
                f"the files of the cache {self._path!r} could not be written ({error}): make room, or choose another "
                f"path",
                path=self._path,
            ) from error

    def _empty(self) -> None:
        """Delete the file of the cache; its directory, which may be a link to another disk, stays."""
        try:
            names = sorted(os.listdir(self.database))
        except FileNotFoundError:
            return
        for name in names:
            if name not in _OWN and not name.endswith(".tmp"):
                self._refuse(os.path.join(self.database, name))
        for name in names:
            path = os.path.join(self.database, name)
            os.remove(path) if os.path.islink(path) else Database.scratch(path)

    def _refuse(self, found: str) -> NoReturn:
        raise InvalidDatabase(
            f"{self._path!r} is not the directory of a cache, as it contains {found!r}: a cache takes a directory of "
            f"its own, which is emptied when the machine has stopped while it was in use; choose another path",
            path=self._path,
        )

    def _open_users(self) -> IO[bytes]:
        # Held while in use. Without a buffer, whose lock may be taken in a child: see `lockedfiles`.
        users = open(os.path.join(self._path, "users"), "ab", buffering=0)  # noqa: SIM115 - it stays open
        close_in_child(users)
        return users

    def after_fork(self) -> None:
        """In the child: use the file in its own name. What it inherited ends with its parent."""
        if self._users is None or fcntl is None:
            return
        self._users = users = self._open_users()
        with self._alone():
            self._lock(users, exclusive=False)
            if self._read_mark() == _CLEAN:  # the parent has closed it meanwhile
                self._write_mark(boot())

    def close(self, db: Optional[Database[Any]]) -> None:
        """Close *db*, which has the file open; the last user syncs it first. None: it could not be opened."""
        users = self._users
        if users is None:
            return
        if db is not None:
            with ExitStack() as guarded:
                try:
                    guarded.enter_context(self._alone())
                    clean = self._is_only_user()
                except OSError as error:
                    if error.errno not in _TOO_MANY:
                        raise
                    clean = False  # to be closed, which makes room, it needs no other file
                try:
                    if clean:
                        try:
                            db.sync(force=True)
                        except Error:  # the disk refuses: if the machine stops, the cache is empty afterwards
                            clean = False
                    db.close()
                except BaseException:  # it is still in use
                    self._lock(users, exclusive=False)
                    raise
                if clean:
                    with suppress(OSError):
                        self._write_mark(_CLEAN)
        self._end(users)

    def _end(self, users: IO[bytes]) -> None:
        self._users = None
        self._unlock(users)
        users.close()

    @contextmanager
    def _alone(self) -> Generator[None, None, None]:
        """A block that one user at a time is in."""
        with open(self._guard, "ab", buffering=0) as guard:
            close_in_child(guard)
            try:
                self._lock(guard, exclusive=True)
                yield
            finally:
                self._unlock(guard)

    @staticmethod
    def _unlock(file: IO[bytes]) -> None:
        """Before *file* is closed: a process that was forked meanwhile has it, too, and would keep the lock."""
        if fcntl is not None:
            with suppress(OSError, ValueError):  # it could not be locked; or the child of a fork has closed it
                fcntl.flock(file, fcntl.LOCK_UN)

    @staticmethod
    def _lock(file: IO[bytes], *, exclusive: bool) -> None:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            except OSError as error:
                if error.errno not in NO_LOCKS:  # an error that a signal handler has raised
                    raise
                raise DiskError(
                    f"the file {file.name!r} of the cache cannot be locked ({error.strerror}): keep the cache on a "
                    f"local file system",
                    path=file.name,
                ) from error

    def _is_only_user(self) -> bool:
        if fcntl is None or self._users is None:  # Windows: nobody knows it, so a cache is never marked clean
            return False
        with suppress(OSError):
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def _read_mark(self) -> str:
        """The mark; empty if there is none, or none that can be read."""
        try:
            with open(self._mark, encoding="ascii") as file:
                return file.read()
        except OSError as error:
            if error.errno in _TOO_MANY:  # else the cache would be taken for one that did not survive, and emptied
                raise
            return ""
        except UnicodeDecodeError:
            return ""

    def _write_mark(self, text: str) -> None:
        """Replace the mark, on the disk as well: it must not be older than the file."""
        new = self._mark + ".new"
        with open(new, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            flush(file.fileno())
        os.replace(new, self._mark)
        if fcntl is not None:
            directory = os.open(self._path, os.O_RDONLY)
            try:
                flush(directory)
            finally:
                os.close(directory)
