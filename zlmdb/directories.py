"""Makes the directories that databases and caches are in, and says what to do where a path cannot be used."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from . import errors

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of a disk that is full, or of a limit of its use."""


_PERMIT = "permit this user to use it and the directories above it, or choose another path"
_ADVICE = {
    errno.EACCES: _PERMIT,
    errno.EPERM: _PERMIT,
    errno.EROFS: "choose another path, or mount it so that it can be written",
    errno.ENAMETOOLONG: "choose a shorter path",
    errno.ELOOP: "a symbolic link there leads to itself: remove it, or choose another path",
    errno.ENOTDIR: "a file is where a directory would be: choose another path",
    errno.ENOENT: "nothing can be made there: choose another path",
}


@contextmanager
def advising(path: str) -> Generator[None, None, None]:
    """A block that uses *path*. What the system refuses in it stays the built-in exception, and says what to do."""
    try:
        yield
    except OSError as error:
        advice = "" if isinstance(error, errors.Error) else _ADVICE.get(error.errno or 0, "")
        if not advice or error.strerror is None:  # it is ours, or says more already
            raise
        told = type(error)(f"{path!r} cannot be used ({error.strerror}): {advice}")
        told.errno = error.errno
        raise told from error


def make_directory(path: str, **mode: int) -> None:
    """Make the directory *path* where there is none.

    Raises `FileExistsError` where a file is, or a link that leads nowhere, `DiskError` where the disk is full.
    """
    try:
        os.makedirs(path, exist_ok=True, **mode)
    except FileExistsError as error:
        if os.path.exists(path):
            raise FileExistsError(
                f"{path!r} is a file, not a directory: give its path without a slash at the end, or choose another path"
            ) from error
        if not os.path.islink(path):
            raise
        raise FileExistsError(
            f"{path!r} is a link to {os.readlink(path)!r}, where no directory is: make that, or choose another path"
        ) from error
    except OSError as error:
        if error.errno in NO_ROOM:
            raise errors.DiskError(f"no room on the disk for the directory {path!r}: {error}", path=path) from error
        with advising(path):
            raise
