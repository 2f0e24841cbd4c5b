"""Who may open a data file: what it is, who else can write to it, and whether it is still the one that was opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable
from io import FileIO
from typing import Optional

from ... import errors
from ...directories import advising
from .filesystem import is_mounted_read_only, is_read_only


def require_permitted(file: str) -> None:
    """Raise `PermissionError` where this user may not know whether there is a *file*."""
    try:
        with advising(file):
            os.stat(file)
    except PermissionError:
        raise
    except (OSError, ValueError):
        pass


def open_to_read(file: str) -> FileIO:
    """The data file *file*, without a buffer. Raises the built-in exception, with what to do."""
    with advising(file):
        return open(file, "rb", buffering=0)


def require_regular(file: str) -> None:
    """Raise `InvalidDatabase` where *file* is a pipe, a device or the like, which to open may wait for ever."""
    try:
        mode = os.stat(file).st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        kind = next((name for name, test in _KINDS if test(mode)), "no file")
        raise errors.InvalidDatabase(f"{file!r} is {kind}, not a data file: check the path", path=file)


def require_file(file: str) -> None:
    """As `require_regular`; also raise `FileNotFoundError` where there is nothing."""
    if not os.path.exists(file):
        require_permitted(file)
        leads = f", a link to {os.readlink(file)!r}, where nothing is" if os.path.islink(file) else ""
        raise FileNotFoundError(f"no database at {file!r}{leads}: check the path")
    require_regular(file)


_KINDS = (
    ("a pipe (FIFO)", stat.S_ISFIFO),
    ("a device", stat.S_ISCHR),
    ("a device", stat.S_ISBLK),
    ("a socket", stat.S_ISSOCK),
    ("a directory", stat.S_ISDIR),
)


def can_lock(lock: str) -> bool:
    """Whether this user may enter a reader in the lock file *lock*, which may have to be made."""
    target = lock if os.path.exists(lock) else os.path.dirname(lock)
    effective = os.access in os.supports_effective_ids
    return os.access(target, os.W_OK, effective_ids=effective)


def nobody_writes(file: str, lock: str) -> bool:
    """Whether nobody can write to the data file *file*: it is on a read-only medium, or nobody is permitted to.

    A writer needs to write to the file and to its *lock* file, and to make that where it is not there.
    """
    lock = lock if os.path.exists(lock) else os.path.dirname(lock)
    return is_read_only(file) or not (_writable(file) and _writable(lock))


def _writable(path: str) -> bool:
    """Whether the mode of *path* lets anybody write."""
    return bool(stat.S_IMODE(os.stat(path).st_mode) & 0o222)


def require_reader(path: str, file: str, lock: str) -> bool:
    """Whether a reader of *file* locks; False where it need not, since nobody writes. Raises `ReadonlyDatabase`.

    A reader that is not entered in the lock file reads pages that a writer overwrites at the same time.
    """
    if can_lock(lock):
        return True
    if nobody_writes(file, lock):
        return False
    if is_mounted_read_only(file):
        raise errors.ReadonlyDatabase(
            f"{path!r} cannot be read safely: its file system is mounted read-only here, and may be written by another "
            f"mount; readers enter themselves in {lock!r}, and without that a writer overwrites what is being read. "
            f"Mount it writable, or read a copy; where nobody writes meanwhile, open it with lock=False",
            path=path,
        )
    raise errors.ReadonlyDatabase(
        f"{path!r} cannot be read safely: readers enter themselves in {lock!r}, which {_whose(lock)} and this user may "
        "not write; without that a writer overwrites what is being read. Permit it to read the data file and to write "
        "the lock file (a common group, and umask 002 in the programs that write), or read a copy; where nobody writes "
        "meanwhile, open it with lock=False",
        path=path,
    )


def _whose(lock: str) -> str:
    """Who may write the lock file, for an error."""
    try:
        found = os.stat(lock)
    except OSError:
        return "is not there"
    return f"has the mode {stat.S_IMODE(found.st_mode):04o}, owner {found.st_uid} and group {found.st_gid},"


def identity_of(file: str) -> Optional[Hashable]:
    """Device and inode of *file*; None while it does not exist."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def require_same(path: str, file: str, opened: Hashable, found: Optional[Hashable]) -> None:
    """Raise `InvalidDatabase` where *found*, the identity of *file* now, is not that of the file *opened*.

    Writes would go to a file without a name, or exclude nobody. None stands for a file that is not there. Raises
    `PermissionError` where this user may not know any more which file is there.
    """
    if found != opened:
        if found is None:
            require_permitted(file)
        what = "was removed" if found is None else "was replaced by another file"
        raise errors.InvalidDatabase(
            f"{file!r} {what} while it is open here: what is written now would be lost, or what other programs have "
            "written since. Close the database, and open it again",
            path=path,
        )
