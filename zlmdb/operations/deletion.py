"""Deletes a database, also while other programs make and delete files in its directory."""

from __future__ import annotations

import errno
import os
import shutil
import time
from contextlib import suppress

from .. import errors
from ..directories import advising
from ..engines import registry

_PAUSES = (0, 0.001, 0.01, 0.1, 0.5)  # seconds between two tries


def delete(path: str) -> None:
    """Delete the database at *path*, a directory or a file, or the content of the directory that a link leads to.

    Raises `InvalidDatabase` if a directory has files, and none of a database; `DatabaseInUse` if it gets new files all
    the time.
    """
    with advising(path):
        _require_database(path)
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            with advising(path):
                _delete(path)
                return
        except FileNotFoundError:  # somebody else deletes it, too
            pass
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    raise errors.DatabaseInUse(
        f"others make or delete files in {path!r} while it is deleted: end the programs that use the database, and try "
        f"again",
        path=path,
    )


def _require_database(path: str) -> None:
    names: list[str] = []
    with suppress(FileNotFoundError, NotADirectoryError):
        names = os.listdir(path)
    if names and {os.path.basename(file) for file in registry.engine(path).files()}.isdisjoint(names):
        raise errors.InvalidDatabase(
            f"the directory {path!r} has other files, and no database: nothing was deleted; give the path of a "
            f"database, or delete the directory with shutil.rmtree()",
            path=path,
        )


def _delete(path: str) -> None:
    if os.path.islink(path) and os.path.isdir(path):
        with os.scandir(path) as entries:
            for entry in list(entries):
                shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.remove(entry)
    elif os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)
