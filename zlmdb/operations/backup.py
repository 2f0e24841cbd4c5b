"""Copies of a database file: backup, restore and compaction.

A copy is written beside its target with a name of its own, checked, flushed to the disk, and only then renamed:
whatever fails before, the target does not change. Copying the file by other means while a program writes gives a
damaged copy (5 of 30 in a test with ``cp``).
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, nullcontext, suppress
from typing import BinaryIO, Optional

from .. import errors, systems
from ..database.state import StrPath
from ..directories import advising, make_directory
from ..engines import Engine, registry
from ..lockedfiles import LockedFile
from ..namedtuples import NamedTuple
from ..store import openstores
from ..store.lockfile import NO_LOCKS, without_locks
from ..store.store import Store
from ..systems import WINDOWS, fcntl
from .progress import Progress, Told, silent
from .temporary import named_as, temporary_file
from .unwritten import roots_of, unwritten

_BLOCK = 1 << 20
_TO_FLUSH = os.O_RDWR if WINDOWS else os.O_RDONLY  # Windows flushes only what is open to write
_PAUSES = (0.01, 0.05, 0.2)  # seconds: so long another process may take to finish a copy, or to look who has it open
_BESIDE = ("-lock", "-writer.lock", "-waiting")
"""What follows the name of a data file in those that are made beside it, now or where it is opened by its own name."""


class Backup(NamedTuple):
    """A finished copy: its file, and its size in bytes."""

    path: str
    bytes: int


class Compaction(NamedTuple):
    """The size of a file in bytes, before and after compaction."""

    before: int
    after: int


def back_up(
    source: Store, target: StrPath, *, compact: bool = True, overwrite: bool = False, told: Optional[Told] = None
) -> Backup:
    """Copy the database open in *source* into the file *target*; of a directory, into ``data.mdb`` in it."""
    file = file_of(source.engine)
    source.engine.check_file()
    there = registry.engine(os.fspath(target))
    final: str = os.path.abspath(os.fspath(target))
    if os.path.isdir(final):
        final = there.file or final
    # Also over a lock file: programs that open the database would have another one than those that have it open.
    own = [one for one in source.engine.files() if os.path.exists(one)]
    if os.path.exists(final) and any(os.path.samefile(final, one) for one in own):
        raise errors.DatabaseInUse(f"{final!r} is the database itself: choose another path for its backup", path=final)
    _refuse_reserved(final, [*source.engine.files(), *(file + end for end in _BESIDE)])
    _refuse_existing(final, overwrite)
    with (
        openstores.kept_closed(final),
        alone(final, there.lock_file),
        replacing(final, overwrite, _size(source), is_database=True) as temporary,
    ):
        _copy(source, temporary, compact, told or silent)
        _verify(source.engine, temporary, told or silent)
        as_private_as(os.stat(file), temporary)
    return Backup(final, os.path.getsize(final))


def restore(backup: StrPath, target: StrPath, *, overwrite: bool = False, told: Optional[Told] = None) -> Backup:
    """Put a copy of the database file *backup* at the path of a database, *target*."""
    told = told or silent
    engine, there = registry.engine(os.fspath(backup)), registry.engine(os.fspath(target))
    source, final = file_of(engine), _followed(file_of(there))
    if not os.path.isfile(source):
        with suppress(FileNotFoundError, NotADirectoryError), advising(source):
            os.stat(source)  # which this user may not be permitted
        raise FileNotFoundError(f"no database at {os.fspath(backup)!r}: check the path of the backup")
    with unwritten(engine):
        _verify(engine, source, told)
    present = os.path.exists(final)
    if present and os.path.samefile(source, final):
        raise errors.DatabaseInUse(f"{final!r} is the backup itself: restore it to another place", path=final)
    _refuse_existing(final, overwrite)
    with (
        openstores.kept_closed(final),
        _directory(os.path.dirname(final)),
        alone(final, there.lock_file),
        replacing(final, overwrite, os.path.getsize(source), is_database=True) as temporary,
    ):
        with unwritten(engine):
            _copy_file(source, temporary, told)
            _verify(engine, temporary, told)
        if present:
            _like(final, temporary)
        else:
            as_private_as(os.stat(source), temporary)
    return Backup(final, os.path.getsize(final))


def compact(of: Store, told: Optional[Told] = None, timeout: Optional[float] = None) -> Compaction:
    """Replace the file of *of* by a copy without unused pages. *timeout*: seconds to wait for another writer."""
    file = _followed(file_of(of.engine))
    if of.readonly:
        raise errors.ReadonlyDatabase(f"{file!r} is open read-only: open it writable to compact it", path=file)
    of.engine.check_file()
    before = os.path.getsize(file)
    with of.writing(timeout):
        _refuse_transactions(of)
        roots = roots_of(of.engine)
        with replacing(file, True, _size(of)) as temporary:
            with of.lock:  # without it the environment could be closed meanwhile
                of.reopen()
                _copy(of, temporary, True, told or silent)
                _verify(of.engine, temporary, told or silent)
            _like(file, temporary)
            _swap(of, temporary, file, roots)
    return Compaction(before, os.path.getsize(file))


def _swap(of: Store, temporary: str, file: str, roots: Optional[bytes]) -> None:
    """Replace the file of an open store, whose environment is closed meanwhile; it was copied with these *roots*."""
    with openstores.lock, of.lock:  # in this order, as where a file is closed
        of.reopen()  # raises if that came first: another process may have written since then
        of.suspend(lambda: _refuse_transactions(of))
        try:
            with alone(file, of.engine.lock_file):
                with unwritten(of.engine, roots):  # by a program of LMDB, which does not know our lock of the writers
                    flush(temporary)
                _replace(temporary, file)
                _prepare_lock_file(file)
            openstores.moved(of)
        finally:
            of.reopen()


def _followed(file: str) -> str:
    """The file to which the link *file* leads: it is replaced, and the link stays."""
    return os.path.realpath(file) if os.path.islink(file) else file


def file_of(engine: Engine) -> str:
    """The file with the data. Raises `FileRequired` if there is none."""
    if engine.file is None:
        raise errors.FileRequired(
            "this database is in memory and has no file: write its content to a stream with db.dump(file)"
            if engine.path is None
            else f"{engine.path!r} is not a file that can be copied: write its content to a stream with db.dump(file)"
        )
    return engine.file


def _refuse_transactions(of: Store) -> None:
    if any(one.active for one in of.live.alive()):  # perhaps what an interrupt has left open
        of.end_leftovers()
    live = [one for one in of.live.alive() if one.active]
    if live or of.reads:
        raise errors.DatabaseInUse(
            f"{of.engine.path!r} has open transactions: {live or 'a backup, a dump or the like'}; end them before "
            f"compact()",
            path=of.engine.path,
        )


def _size(of: Store) -> int:
    """The maximum size of a copy, in bytes."""
    return of.engine.used(of.environment)


# -- writing ------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(final: str, overwrite: bool, needed: int, is_database: bool = False) -> Generator[str, None, None]:
    """A block that writes the yielded file, which becomes *final* at the normal end. Otherwise the file is removed.

    Only its owner may read it, until the block gives it other permissions. *is_database*: no other process may have it
    open then.
    """
    _refuse_existing(final, overwrite)
    present = os.path.lexists(final)
    directory = os.path.dirname(final)
    check_room(directory, needed)
    with disk_errors(final), temporary_file(directory, os.path.basename(final)) as temporary:
        with named_as(final, temporary):
            yield temporary
        if os.path.exists(temporary):  # else the block has put it in its place
            flush(temporary)
            if not is_database:
                publish(temporary, final, overwrite)
            else:
                _publish_database(temporary, final, overwrite, present)
        flush(directory)


@contextmanager
def _directory(path: str) -> Generator[None, None, None]:
    """A block that needs the directory *path*, which is made, and removed where the block fails."""
    missing = not os.path.isdir(path)
    make_directory(path)
    try:
        yield
    except BaseException:
        if missing:
            with suppress(OSError):  # another program has put something there
                os.rmdir(path)
        raise


@contextmanager
def disk_errors(final: str) -> Generator[None, None, None]:
    """A block that writes *final*. Raises `DiskError` if the disk does not let it."""
    try:
        yield
    except OSError as error:
        if isinstance(error, errors.Error) or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            raise
        raise errors.DiskError(f"{final!r} could not be written: {error}", path=final) from error


def _refuse_existing(final: str, overwrite: bool) -> None:
    if os.path.lexists(final) and not overwrite:
        raise FileExistsError(f"{final!r} exists: remove it, choose another path, or give overwrite=True")
    if os.path.exists(final) and not os.path.isfile(final):  # also behind a link, such as /dev/stdout
        raise FileExistsError(
            f"{final!r} is a device, a pipe or a directory, which is not replaced: choose another path"
        )


def _refuse_reserved(final: str, names: Iterable[str]) -> None:
    if _directory_followed(final) in map(_directory_followed, names):
        raise errors.DatabaseInUse(
            f"{final!r} is a name that the database needs for itself: choose another path for its backup", path=final
        )


def _directory_followed(path: str) -> str:
    directory, name = os.path.split(path)
    return os.path.join(os.path.realpath(directory), name)


def check_room(directory: str, needed: int) -> None:
    """Raise `DatabaseFull` unless the disk of *directory* has *needed* bytes free, another OSError if it is none."""
    if not os.path.isdir(directory):
        if os.path.exists(directory):
            raise NotADirectoryError(f"{directory!r} is a file, not a directory: choose another path")
        raise FileNotFoundError(f"no directory {directory!r}: create it first")
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise errors.DatabaseFull(
            f"{directory!r} has {free} bytes free, the copy may take {needed}: make room, or choose another path",
            path=directory,
            size=needed,
            limit=free,
        )


def publish(temporary: str, final: str, overwrite: bool) -> None:
    """Give the finished file its name; an existing file is replaced only if the caller asked for it."""
    if not overwrite:
        with suppress(OSError, AttributeError):  # file systems without links
            os.link(temporary, final)
            return
        if os.path.lexists(final):
            raise FileExistsError(f"{final!r} was created by another program meanwhile")
    _replace(temporary, final)


def _publish_database(temporary: str, final: str, overwrite: bool, present: bool) -> None:
    """Give the finished file of a database its name, as `publish`. What was *present* before, this process has locked.

    Raises `DatabaseInUse` if another program has made a database there meanwhile, or its lock file, and has it open.
    """
    engine = registry.engine(final)
    there = os.path.lexists(final)
    with (
        openstores.kept_closed(temporary),  # until it is prepared under its other name
        nullcontext() if present else _data_file_alone(engine.file),
        _lock_file_alone(final, engine.lock_file),
    ):
        publish(temporary, final, overwrite and there)
        _prepare_lock_file(final)


def _prepare_lock_file(final: str) -> None:
    """Let LMDB prepare its lock file for the new data file *final*, while this process has it alone.

    A program of LMDB that has waited for the lock file takes it for prepared, also where it still has the number of the
    last transaction of the old data file. The first one to open the new one prepares it.
    """
    engine = registry.engine(final)
    if engine.lock_file is not None and os.path.exists(engine.lock_file):
        with suppress(errors.Error, OSError):  # its mode, perhaps: whoever opens it gets to know
            engine.open(readonly=True).close()
        engine.closed()


def _replace(temporary: str, final: str) -> None:
    """Rename *temporary* to *final*. Raises `DatabaseInUse` where Windows refuses that, because *final* is open."""
    try:
        os.replace(temporary, final)
    except PermissionError as error:
        if not WINDOWS or not os.path.exists(final):
            raise
        raise _in_use(final) from error


def _like(file: str, temporary: str) -> None:
    """Give *temporary*, which replaces *file*, its permissions and, if permitted, its owner and group."""
    found = os.stat(file)
    if hasattr(os, "chown"):
        for ids in ((-1, found.st_gid), (found.st_uid, -1)):
            with suppress(OSError):
                os.chown(temporary, *ids)
    os.chmod(temporary, stat.S_IMODE(found.st_mode))  # chown takes bits of it away


def as_private_as(source: os.stat_result, copy: str) -> None:
    """Let the users read and write *copy* who may do so with its *source*, and its owner.

    If the copy cannot have the group of its source, its own group gets no permissions.
    """
    mode = stat.S_IMODE(source.st_mode) & 0o777 | 0o600
    if hasattr(os, "chown") and os.stat(copy).st_gid != source.st_gid:
        try:
            os.chown(copy, -1, source.st_gid)
        except OSError:
            mode &= ~0o070
    os.chmod(copy, mode)


def flush(path: str) -> None:
    """Flush a file, or the names in a directory, to the disk."""
    try:
        descriptor = os.open(path, _TO_FLUSH)
    except OSError as error:  # Windows opens no directories
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise  # else a copy could replace a database before it is on the disk
        return
    try:
        systems.flush(descriptor)
    finally:
        os.close(descriptor)


def _copy(source: Store, temporary: str, compact: bool, told: Told) -> None:
    """Write a copy of one snapshot."""
    engine = source.engine
    descriptor = os.open(temporary, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        with source.reading():  # so that its pages are not used again, and the map is not moved meanwhile
            engine.copy_to(
                source.environment, descriptor, compact=compact,
                told=lambda done, total: told(Progress("copy", done, total)),
            )  # fmt: skip
        systems.flush(descriptor)
    finally:
        os.close(descriptor)


def _copy_file(source: str, temporary: str, told: Told) -> None:
    total, done = os.path.getsize(source), 0
    with open(source, "rb") as reader, open(temporary, "wb") as writer:
        while block := _read(reader, source):
            writer.write(block)
            done += len(block)
            told(Progress("copy", done, total))


def _read(reader: BinaryIO, source: str) -> bytes:
    """The next block of the file *source*. Raises `DiskError` if the disk does not give it."""
    try:
        return reader.read(_BLOCK)
    except OSError as error:
        raise errors.DiskError(f"{source!r} could not be read: {error}", path=source) from error


def _verify(engine: Engine, file: str, told: Told) -> None:
    """Raise `CorruptDatabase` unless the structure of *file* is sound."""
    wrong = engine.verify(file, lambda done, total: told(Progress("verify", done, total)))
    if wrong:
        raise errors.CorruptDatabase(
            f"{file!r} is damaged: {wrong[0]}{f' (and {len(wrong) - 1} problems more)' * (len(wrong) > 1)}", path=file
        )


# -- who else has it open -------------------------------------------------------------------------------------------


def in_use(path: str) -> bool:
    """Whether this process or another one has the database at *path* open; False if that cannot be found out."""
    if openstores.is_open(path):
        return True
    try:
        with alone(path):
            return False
    except errors.DatabaseInUse:
        return True
    except OSError:  # a directory where nothing can be written
        return False


def _in_use(path: str) -> errors.DatabaseInUse:
    return errors.DatabaseInUse(
        f"another process has {path!r} open: its file can be replaced after all processes have closed it", path=path
    )


@contextmanager
def alone(path: str, lock: Optional[str] = None) -> Generator[None, None, None]:
    """A block in which no other process has the database at *path* open. Raises `DatabaseInUse`.

    *lock* is its lock file, if it is not the one that belongs to *path*.
    """
    engine = registry.engine(path)
    with _data_file_alone(engine.file), _lock_file_alone(path, engine.lock_file if lock is None else lock):
        yield


@contextmanager
def _data_file_alone(path: Optional[str]) -> Generator[None, None, None]:
    """A block that no process of ours enters with the data file *path*: each locks that before it opens it."""
    if fcntl is None or path is None or not os.path.isfile(path):
        yield
        return
    try:
        file = LockedFile(path)
    except OSError:  # there is none, or it is none of this user
        yield
        return
    with file:
        for pause in (*_PAUSES, None):
            try:
                fcntl.flock(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if pause is None:
                    raise _in_use(path) from error
                time.sleep(pause)
            except OSError:  # a file system without locks
                break
        yield


@contextmanager
def _lock_file_alone(path: str, lock: Optional[str]) -> Generator[None, None, None]:
    """A block in which no other process has the database at *path* open with the lock file *lock*.

    Every process with an open environment holds a shared lock on the first byte of the lock file. A process with the
    old file open would use the lock file of the new one. This process must not have it open: the system drops all of a
    process's locks on a file when the process closes any descriptor of it.
    """
    if fcntl is None or lock is None or not os.path.exists(lock):  # Windows refuses to replace a file that is open
        yield
        return
    with advising(lock):
        descriptor = os.open(lock, os.O_RDWR)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            if error.errno in NO_LOCKS:
                raise without_locks(lock, error) from error
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise _in_use(path) from error
        yield
    finally:
        os.close(descriptor)
