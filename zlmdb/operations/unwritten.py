"""Sees to it that nobody commits to a file while its pages are read directly."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from typing import Optional

from .. import errors
from ..engines import Engine


@contextmanager
def unwritten(engine: Engine, roots: Optional[bytes] = None) -> Generator[None, None, None]:
    """A block that reads pages of the file of *engine*. Raises `DatabaseInUse` if a program commits meanwhile.

    *roots* are those of the state that is read, if they were read before.

    The pages of the newest state stay as they are until the next commit. After it they are written again, so that what
    was read may be of two states, or look damaged.
    """
    before = roots_of(engine) if roots is None else roots
    try:
        yield
    except Exception as error:
        _compare(engine, before, error)
        raise
    _compare(engine, before, None)


def _compare(engine: Engine, before: Optional[bytes], error: Optional[Exception]) -> None:
    try:
        now = roots_of(engine)
    except errors.DiskError:
        return  # nothing says that there was a commit, and what the disk still gave is worth keeping
    except OSError:
        if error is None:
            raise
        return  # the *error* tells more
    if now != before:
        raise errors.DatabaseInUse(
            f"a program wrote to {engine.path!r} while it was read, so that the copy would have parts of two states: "
            f"make a backup of it, which is one state, or end the programs that write to it",
            path=engine.path,
        ) from error


def roots_of(engine: Engine) -> Optional[bytes]:
    """The pages that lead to the committed states, which each commit changes; None if they are damaged."""
    try:
        with engine.remains() as file:
            return file.roots
    except errors.DiskError:
        raise
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise  # this says nothing of the file
        return None
    except errors.Error:
        return None
