"""Copies of a database file: one made while it is in use, one put back in its place, and one without unused pages.

A copy is written beside its target under a name of its own, checked, flushed to the disk, and only then given the name:
whatever happens on the way, the target is what it was. Copying the file by other means while somebody writes gives a
damaged copy (5 of 30 in a test with ``cp``).
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Optional, Union

from .. import errors, openstores
from ..engines import structure
from ..engines.lmdb import data_file, lock_file
from ..engines.pages import copy_pages
from ..store import Store
from .progress import Progress, Told, silent

try:
    import fcntl
except ImportError:  # Windows refuses to replace a file that is open
    fcntl = None  # type: ignore[assignment]

StrPath = Union[str, "os.PathLike[str]"]

_PAUSE = 0.1  # seconds between two reports of progress
_BLOCK = 1 << 20


class Backup(NamedTuple):
    """A copy that was made: its file, and its size in bytes."""

    path: str
    bytes: int


class Compaction(NamedTuple):
    """The size of a file in bytes, before it was compacted and after."""

    before: int
    after: int


def back_up(
    source: Store, target: StrPath, *, compact: bool = True, overwrite: bool = False, told: Optional[Told] = None
) -> Backup:
    """Copy the database open in *source* into the file *target*; of a directory, into ``data.mdb`` in it."""
    file = _file_of(source)
    final: str = os.path.abspath(os.fspath(target))
    if os.path.isdir(final):
        final = os.path.join(final, "data.mdb")
    if os.path.exists(final) and os.path.samefile(final, file):
        raise errors.DatabaseInUse(f"{final!r} is the database itself: choose another place for its backup", path=final)
    _refuse_existing(final, overwrite)
    _refuse_open(final)
    with alone(final, lock_file(os.fspath(target))), replacing(final, overwrite, _size(source)) as temporary:
        _copy(source, temporary, compact, told or silent)
        _verify(temporary, told or silent)
        _as_private_as(file, temporary)
    return Backup(final, os.path.getsize(final))


def restore(backup: StrPath, target: StrPath, *, overwrite: bool = False, told: Optional[Told] = None) -> Backup:
    """Put a copy of the database file *backup* where a database at *target* is kept."""
    told = told or silent
    source, final = data_file(os.fspath(backup)), _followed(data_file(os.fspath(target)))
    if not os.path.isfile(source):
        raise FileNotFoundError(f"no database at {os.fspath(backup)!r}: check the path of the backup")
    _verify(source, told)
    present = os.path.exists(final)
    if present and os.path.samefile(source, final):
        raise errors.DatabaseInUse(f"{final!r} is the backup itself: restore it to another place", path=final)
    _refuse_existing(final, overwrite)
    _refuse_open(final)
    if not os.path.isdir(os.path.dirname(final)):
        os.makedirs(os.path.dirname(final))
    lock, size = lock_file(os.fspath(target)), os.path.getsize(source)
    with alone(final, lock), replacing(final, overwrite, size) as temporary:
        _copy_file(source, temporary, told)
        _verify(temporary, told)
        if present:
            _like(final, temporary)
        else:
            _as_private_as(source, temporary)
    return Backup(final, os.path.getsize(final))


def compact(of: Store, told: Optional[Told] = None) -> Compaction:
    """Replace the file of *of* by a copy without unused pages."""
    file = _followed(_file_of(of))
    if of.readonly:
        raise errors.ReadonlyDatabase(f"{file!r} is open read-only: open it writable to compact it", path=file)
    before = os.path.getsize(file)
    with of.writing(None), of.lock:
        _refuse_transactions(of)
        with replacing(file, True, _size(of)) as temporary:
            _copy(of, temporary, True, told or silent)
            _verify(temporary, told or silent)
            _like(file, temporary)
            _swap(of, temporary, file)
    return Compaction(before, os.path.getsize(file))


def _swap(of: Store, temporary: str, file: str) -> None:
    """Replace the file of an open store, whose environment is closed meanwhile."""
    with openstores.lock:
        of.suspend(lambda: _refuse_transactions(of))
        try:
            with alone(file, of.engine.lock_file):
                flush(temporary)
                os.replace(temporary, file)
            openstores.moved(of)
        finally:
            of.reopen()


def _followed(file: str) -> str:
    """The file that *file* leads to, if it is a link: that is to be replaced, and the link to stay."""
    return os.path.realpath(file) if os.path.islink(file) else file


def _file_of(of: Store) -> str:
    if of.engine.file is None:
        raise errors.FileRequired(
            "this database is in memory and has no file: write what is in it to a stream with db.dump(file)"
        )
    return of.engine.file


def _refuse_transactions(of: Store) -> None:
    live = [one for one in (ref() for ref in list(of.live.values())) if one is not None]
    if live or of.reads:
        raise errors.DatabaseInUse(
            f"{of.engine.path!r} has open transactions: {live or 'a backup, a dump or the like'}; end them before "
            f"compact()",
            path=of.engine.path,
        )


def _size(of: Store) -> int:
    """The bytes that a copy takes at most."""
    env = of.reopen() if of.env is None else of.env
    return int((env.info()["last_pgno"] + 1) * env.stat()["psize"])


# -- writing ------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(final: str, overwrite: bool, needed: int) -> Generator[str, None, None]:
    """A block that writes the file yielded, which at its clean end is *final*. No trace is left otherwise."""
    _refuse_existing(final, overwrite)
    directory = os.path.dirname(final)
    if not os.path.isdir(directory):
        raise FileNotFoundError(f"no directory {directory!r}: make it first")
    check_room(directory, needed)
    temporary = f"{final}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        yield temporary
        if os.path.exists(temporary):  # else the block has put it in its place
            flush(temporary)
            publish(temporary, final, overwrite)
        flush(directory)
    except OSError as error:
        if isinstance(error, errors.Error) or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            raise
        raise errors.DiskError(f"{final!r} could not be written: {error}", path=final) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _refuse_existing(final: str, overwrite: bool) -> None:
    if os.path.exists(final) and not overwrite:
        raise FileExistsError(f"{final!r} exists: remove it, choose another place, or say overwrite=True")


def _refuse_open(final: str) -> None:
    if openstores.is_open(final):
        raise errors.DatabaseInUse(f"{final!r} is open in this process: close it first", path=final)


def check_room(directory: str, needed: int) -> None:
    """Raise `DatabaseFull` unless the disk has *needed* bytes free."""
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise errors.DatabaseFull(
            f"{directory!r} has {free} bytes free, the copy may take {needed}: make room, or choose another place",
            path=directory,
            size=needed,
            limit=free,
        )


def publish(temporary: str, final: str, overwrite: bool) -> None:
    """Give the finished file its name: an existing file is never replaced unless that was asked for."""
    if not overwrite:
        with suppress(OSError, AttributeError):  # file systems without links
            os.link(temporary, final)
            return
        if os.path.exists(final):
            raise FileExistsError(f"{final!r} was made by somebody else meanwhile")
    os.replace(temporary, final)


def _created(temporary: str) -> int:
    """A descriptor of the new file *temporary*, which nobody else may read: who may read the copy is known later."""
    return os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)


def _like(file: str, temporary: str) -> None:
    """Give *temporary*, which is to replace *file*, its mode and, where that is permitted, its owner and group."""
    found = os.stat(file)
    if hasattr(os, "chown"):
        for ids in ((-1, found.st_gid), (found.st_uid, -1)):
            with suppress(OSError):
                os.chown(temporary, *ids)
    os.chmod(temporary, stat.S_IMODE(found.st_mode))  # chown takes bits of it away


def _as_private_as(file: str, temporary: str) -> None:
    """Let those read and write *temporary*, a copy of *file* in another place, who may do so there, and its owner."""
    os.chmod(temporary, stat.S_IMODE(os.stat(file).st_mode) | 0o600)


def flush(path: str) -> None:
    """Flush a file, or the names in a directory, to the disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # Windows opens no directories
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(source: Store, temporary: str, compact: bool, told: Told) -> None:
    """Write a copy of one snapshot."""
    if not compact:
        # The transaction keeps the pages of the snapshot from being used again.
        with source.reading(), os.fdopen(_created(temporary), "wb") as copy:
            copy_pages(_file_of(source), copy, lambda done, total: told(Progress("copy", done, total)))
        return
    total = _size(source)
    descriptor = _created(temporary)
    done = threading.Event()
    failed: list[Exception] = []

    def write() -> None:
        try:
            source.env.copyfd(descriptor, compact=True)
        except Exception as error:
            failed.append(error)
        finally:
            done.set()

    try:
        with source.reading():  # so that the map is not moved meanwhile
            writer = threading.Thread(target=write, name="zlmdb-backup")
            writer.start()
            try:
                while not done.wait(_PAUSE):
                    told(Progress("copy", min(os.fstat(descriptor).st_size, total), total))
            finally:  # whatever *told* raises: the descriptor, whose number others get, must outlive the thread
                writer.join()
        if failed:
            raise (ours := source.engine.translate(failed[0])) from errors.cause(ours, failed[0])
        os.fsync(descriptor)
        size = os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
    told(Progress("copy", size, size))


def _copy_file(source: str, temporary: str, told: Told) -> None:
    total, done = os.path.getsize(source), 0
    with open(source, "rb") as reader, os.fdopen(_created(temporary), "wb") as writer:
        while block := reader.read(_BLOCK):
            writer.write(block)
            done += len(block)
            told(Progress("copy", done, total))


def _verify(file: str, told: Told) -> None:
    """Raise `CorruptDatabase` unless the structure of *file* is sound."""
    wrong = structure.check(file, lambda done, total: told(Progress("verify", done, total)))
    if wrong:
        raise errors.CorruptDatabase(
            f"{file!r} is damaged: {wrong[0]}{f' (and {len(wrong) - 1} problems more)' * (len(wrong) > 1)}", path=file
        )


# -- who else has it open -------------------------------------------------------------------------------------------


def in_use(path: str) -> bool:
    """Whether this process or another one has the database at *path* open; False where nobody can tell."""
    if openstores.is_open(path):
        return True
    try:
        with alone(path):
            return False
    except errors.DatabaseInUse:
        return True
    except OSError:  # a directory where nothing can be written
        return False


@contextmanager
def alone(path: str, lock: Optional[str] = None) -> Generator[None, None, None]:
    """A block in which no other process has the database at *path* open. Raises `DatabaseInUse`.

    *lock* is its lock file, where that is not the one that *path* leads to.

    Everyone who has an environment open holds a shared lock on the first byte of LMDB's lock file. A process that has
    the old file open would go on with the lock file of the new one. This process must not have it open: the system
    gives up all of a process's locks on a file when it closes any descriptor of it.
    """
    lock = lock_file(path) if lock is None else lock
    if fcntl is None or not os.path.exists(lock):
        yield
        return
    descriptor = os.open(lock, os.O_RDWR)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                raise
            raise errors.DatabaseInUse(
                f"another process has {path!r} open: its file can be replaced when all have closed it", path=path
            ) from error
        yield
    finally:
        os.close(descriptor)
