"""Makes the directories that databases and caches are in."""

from __future__ import annotations

import os


def make_directory(path: str, **mode: int) -> None:
    """Make the directory *path* where there is none. Raises `FileExistsError` where a link leads nowhere."""
    try:
        os.makedirs(path, exist_ok=True, **mode)
    except FileExistsError as error:
        if not os.path.islink(path):
            raise
        raise FileExistsError(
            f"{path!r} is a link to {os.readlink(path)!r}, where no directory is: make that, or choose another path"
        ) from error
