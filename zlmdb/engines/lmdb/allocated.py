"""Gives the files that LMDB maps as memory and writes there their room on the disk beforehand.

Where such a file is a hole and the disk is full, the system has no page for what is written, and kills the process with
SIGBUS. LMDB makes its lock file as one large hole. So that happened where a database was opened on a full disk, and
might happen where more threads read than the first page of the lock file has room for.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Optional

from ... import errors
from ...directories import NO_ROOM
from ...handlers import close_files
from ...systems import EXCLUSIVE, GET_LOCK, HAS_BYTE_LOCKS, UNLOCKED, lock_byte

_READER, _HEAD = 64, 128  # bytes of the lock file on 64-bit systems; where they are more, the rest stays a hole
_FIRST = 4096
_BLOCK = 512  # the unit of st_blocks

IN_USE = 0
"""The byte of the lock file that LMDB locks while the environment is open."""


def allocate(descriptor: int, size: int) -> None:
    """Allocate the first *size* bytes of an open file, which grows to that size, if the system can do that.

    Raises OSError if there is no room.
    """
    call: Any = getattr(os, "posix_fallocate", None)
    if call is not None:
        failed: Optional[int] = call(descriptor, 0, size)
        if failed:  # PyPy returns what CPython raises
            raise OSError(failed, os.strerror(failed))


def _is_open(lock: int) -> bool:
    """Whether a process has the environment of the lock file open, and so has mapped as much of that as it was then.

    It looks at the slots of all readers, and would be killed if some were beyond.
    """
    return HAS_BYTE_LOCKS and lock_byte(lock, EXCLUSIVE, IN_USE, GET_LOCK) != UNLOCKED


def allocate_locks(lock: str, readers: int, mode: int, kept: Optional[list[int]] = None) -> None:
    """Allocate the lock file *lock* for so many *readers*, made with *mode*; no environment of this process has it.

    Its descriptor is added to *kept*, if that is given: to close it would end the locks that this process has on it
    while it replaces the data file, and a program of LMDB that waits for them would come in.

    On a full disk the first page must do, which an existing file has. Raises `DiskError` if it has not.
    """
    if not hasattr(os, "posix_fallocate"):  # as on Windows, which makes no holes
        return
    size = readers * _READER + _HEAD
    found: Any = None
    try:
        found = os.stat(lock)
        if found.st_blocks * _BLOCK >= found.st_size >= size:
            return
        size = max(found.st_size, size)
    except FileNotFoundError:
        pass
    except OSError:  # opening the database says what is wrong
        return
    opened = list[int]() if kept is None else kept
    try:
        opened.extend(map(os.open, (lock,), (os.O_RDWR | os.O_CREAT,), (mode,)))  # in one step, as it is closed
    except OSError:  # opening the database says what is wrong
        return
    try:
        descriptor = opened[-1]
        if found is not None and _is_open(descriptor):
            size = found.st_size
        with suppress(OSError):
            allocate(descriptor, size)
            return
        allocate(descriptor, _FIRST)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise errors.DiskError(f"no room on the disk for the lock file {lock!r}: {error}", path=lock) from error
    finally:
        if kept is None:
            close_files(opened)
