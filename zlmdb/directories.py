"""Makes the directories that databases and caches are in."""

from __future__ import annotations

import errno
import os

from . import errors

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The errors of a disk that is full, or of a limit of its use."""


def make_directory(path: str, **mode: int) -> None:
    """Make the directory *path* where there is none.

    Raises `FileExistsError` where a file is, or a link that leads nowhere, `DiskError` where the disk is full.
    """
    try:
        os.makedirs(path, exist_ok=True, **mode)
    except FileExistsError as error:
        if os.path.isfile(path):
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
        raise
