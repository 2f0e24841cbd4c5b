"""What not all systems have, or do in their own way.

`fcntl` is None on Windows, `msvcrt` elsewhere; see what `posix` has before you use it.
"""

from __future__ import annotations

import os
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
