"""Sees to it that no second lock file is made for a data file that a program has open with the first one.

A reader is entered in LMDB's lock file. If somebody removes that, the next program that opens the database makes
another one, in which the reader is not: what it writes overwrites the pages that are being read (in a test, 44 of 118
scans were wrong without an error). So each process locks the data file itself while it has it open, and shares this
lock with the others. Whoever has to make the lock file must have it alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Optional

from ... import errors

try:
    import fcntl
except ImportError:  # Windows, where nobody removes a file that is open
    fcntl = None  # type: ignore[assignment]

_PAUSES = (0.01, 0.05, 0.2, 0.5, 1.0)  # seconds: so long others may take to make the lock file, or to close


class Presence:
    """The lock of this process on a data file, while it has that open."""

    def __init__(self) -> None:
        self._descriptor: Optional[int] = None

    @contextmanager
    def entering(self, file: str, lock: Optional[str]) -> Generator[None, None, None]:
        """A block in which LMDB opens the data file *file*, with the lock file *lock* if it is not None.

        Raises `DatabaseInUse` if *lock* is to be made, and another process has the file open.
        """
        self.leave()
        if lock is None or fcntl is None:
            yield
            return
        try:
            if os.path.exists(file):
                self._lock(file, lock)
            yield
            self._share(file)
        except BaseException:
            self.leave()
            raise

    def _lock(self, file: str, lock: str) -> None:
        for pause in (*_PAUSES, None):
            if os.path.exists(lock):
                self._share(file)
                return
            try:
                fcntl.flock(self._opened(file), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if pause is None:
                    raise errors.DatabaseInUse(
                        f"another process has {file!r} open without the lock file {lock!r}, which was removed "
                        f"meanwhile, or is that of another name of the file: what is written now would overwrite "
                        f"what that process reads. End it, and open the database then",
                        path=file,
                    ) from error
                time.sleep(pause)
            except OSError:  # a file system without locks
                return
            else:
                return

    def _share(self, file: str) -> None:
        """Lock the open *file*; whoever makes the lock file in just this moment may not let this be."""
        with suppress(OSError):
            fcntl.flock(self._opened(file), fcntl.LOCK_SH | fcntl.LOCK_NB)

    def _opened(self, file: str) -> int:
        if self._descriptor is None:
            self._descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        return self._descriptor

    def leave(self) -> None:
        """The file was closed; or this is a forked child, and the lock stays that of its parent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with suppress(OSError):  # the program has closed all that is open, as daemons do
                os.close(descriptor)
