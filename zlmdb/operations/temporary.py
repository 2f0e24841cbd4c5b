"""Files and directories that are written beside their place, under a name of their own, until they are whole.

Each is locked while it is written. What has such a name and no lock was left by a process that was killed, and the next
copy to the place removes it.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial

from .. import errors
from ..directories import NO_ROOM, advising
from ..lockedfiles import LockedFile
from ..systems import fcntl, keep_standard_streams, posix

_NAME = r"\d+\.[0-9a-f]{8}\.tmp"


def temporary_file(directory: str, stem: str = "") -> AbstractContextManager[str]:
    """A block with a new, empty file in *directory* that only its owner may read, removed at the end if it is there.

    A child of a fork in the block, which leaves it as well, removes nothing.
    """
    return _temporary(directory, stem, _new_file, _remove_file)


def temporary_directory(directory: str, stem: str = "") -> AbstractContextManager[str]:
    """As `temporary_file`, with a new directory that only its owner may enter."""
    return _temporary(directory, stem, _new_directory, partial(shutil.rmtree, ignore_errors=True))


@contextmanager
def _temporary(
    directory: str, stem: str, make: Callable[[str], None], remove: Callable[[str], object]
) -> Generator[str, None, None]:
    _remove_remains(directory, stem)
    with _locked(directory, stem, make) as path:
        maker = os.getpid()
        try:
            yield path
        finally:
            if os.getpid() == maker:
                remove(path)


@contextmanager
def named_as(final: str, made: str) -> Generator[None, None, None]:
    """A block whose errors of the database *made* name *final*, which it is to become: nobody knows the other name."""
    try:
        yield
    except errors.Error as error:
        text = str(error)
        said = text.replace(repr(made)[1:-1], repr(final)[1:-1]).replace(made, final)  # most messages have the repr
        if error.path == made or said != text:
            error.args = (said,)
            error.path = final
        raise


def remains(directory: str, stem: str = "") -> list[str]:
    """The names in *directory* that temporary files for *stem* have, whoever writes them."""
    pattern = re.compile(re.escape(f"{stem}." if stem else "") + _NAME)
    with advising(directory):
        names = os.listdir(directory)
    return [name for name in names if pattern.fullmatch(name)]


def _new_file(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _remove_file(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _new_directory(path: str) -> None:
    os.mkdir(path, 0o700)


@contextmanager
def _locked(directory: str, stem: str, make: Callable[[str], None]) -> Generator[str, None, None]:
    keep_standard_streams()
    while True:
        path = os.path.join(directory, f"{stem}{'.' * bool(stem)}{os.getpid()}.{secrets.token_hex(4)}.tmp")
        try:
            make(path)
        except OSError as error:
            _refuse(directory, error)
            with advising(path):
                raise
        if fcntl is None:
            yield path
            return
        try:
            file = LockedFile(path)
        except FileNotFoundError:  # another copy has taken it for one that a killed process has left
            continue
        except BaseException:  # of those, this process has too many
            with suppress(OSError):
                os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
            raise
        with file:
            # Shared: it may become an open database before its end.
            try:
                fcntl.flock(file.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:  # another copy is about to remove it
                continue
            except OSError:  # a file system without locks
                pass
            if _is(path, file.descriptor):  # else another copy has removed it before it was locked
                yield path
                return


def _refuse(directory: str, error: OSError) -> None:
    """Raise what *error* means if nothing can be made in *directory*: `DiskError` or PermissionError."""
    if error.errno in NO_ROOM:
        raise errors.DiskError(
            f"no room on the disk for a new file in {directory!r} ({error.strerror}): make room, or choose another "
            f"path",
            path=directory,
        ) from error
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        raise PermissionError(
            f"nothing can be written in the directory {directory!r} ({error.strerror}), where a new file is made "
            f"beside its place: permit this user to write there, or choose another path"
        ) from error


def _is(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _remove_remains(directory: str, stem: str) -> None:
    if fcntl is None or not os.path.isdir(directory):  # Windows, where nobody can tell who is alive
        return
    for name in remains(directory, stem):
        with suppress(OSError):  # somebody else's, or locked
            _remove(os.path.join(directory, name))


def _remove(path: str) -> None:
    """Remove *path*, which this user made, unless it is locked."""
    found = os.lstat(path)
    if found.st_uid != posix.geteuid() or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        return
    with LockedFile(path, os.O_RDONLY | posix.O_NOFOLLOW | posix.O_NONBLOCK) as file:
        fcntl.flock(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is(path, file.descriptor):
            shutil.rmtree(path) if stat.S_ISDIR(found.st_mode) else os.unlink(path)
