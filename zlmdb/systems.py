"""What not all systems have, or do in their own way.

`fcntl` is None on Windows, `msvcrt` elsewhere; see what `posix` has before you use it.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import Any

fcntl: Any
msvcrt: Any
try:
    import fcntl as fcntl

    msvcrt = None
except ImportError:
    import msvcrt as msvcrt

    fcntl = None

WINDOWS: bool = os.name == "nt"

HAS_BYTE_LOCKS = sys.platform == "linux" and sys.maxsize > 1 << 32
"""Whether an open file, and not its process, can have locks on single bytes: with the numbers below, those of Linux."""
GET_LOCK, SET_LOCK = 36, 37  # F_OFD_GETLK and F_OFD_SETLK, for which Python 3.9 on PyPy has no names
SHARED, EXCLUSIVE, UNLOCKED = (0, 1, 2)  # F_RDLCK, F_WRLCK, F_UNLCK
_LOCK = struct.Struct("hhqqi4x")  # struct flock: kind, whence, start, length, process

posix: Any = os
"""`os` with the functions that checkers do not let a module for all systems call."""


def keep_standard_streams() -> None:
    """Take the descriptors 0, 1 and 2 where the program has closed them, as some daemons do.

    Else the next file gets one of them, and what is printed, also by the C library, is written into that file.
    """
    if not WINDOWS:
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:  # the file gets the least that is free, this one; to write there fails, as before
                os.open("/", getattr(os, "O_PATH", os.O_RDONLY))


def lock_byte(file: int, kind: int, byte: int, command: int = SET_LOCK) -> int:
    """Lock or unlock a *byte*, or ask for a lock that is in the way of that; the kind that the system answers.

    Raises `BlockingIOError` or `PermissionError` if another process has it.
    """
    return _LOCK.unpack(fcntl.fcntl(file, command, _LOCK.pack(kind, os.SEEK_SET, byte, 1, 0)))[0]


def flush(descriptor: int) -> None:
    """Flush an open file to the disk. On macOS `fsync` leaves it in the cache of the drive; LMDB does as this does."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
        except OSError:  # not every file system has it
            pass
        else:
            return
    os.fsync(descriptor)
