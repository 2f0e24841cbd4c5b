"""The lock of the writers between processes: an advisory lock on a small file beside the data file.

The holder writes its process id into the file. While there is only one process, it does without the lock: see
`lockfile`.
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Optional

from .. import errors, locks
from ..handlers import close_files
from ..locks import monotonic as _clock
from ..log import log
from . import lockfile
from .lockfile import BUSY, NAME_SIZE, OTHERS, WANTED, is_at, read_at, write_at

PATIENCE = 1.0
"""Seconds after which a wait for another writer is logged."""

LONGEST_PAUSE = 0.05
"""Seconds after which a writer that waits looks again, at the latest."""

_FIRST_PAUSE, _SHORT_PAUSE = 0.00005, 0.001
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_TO_LOCK = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
_LOOKS = 30
"""So often a wait for another process only gives way: most write transactions end sooner than a sleep would."""

_NEVER = float("inf")
_LOOK_AGAIN = 1.0  # seconds after which a process looks whether it is alone; most that open a file write only once


opening = locks.rlock()
"""Held while a lock file is opened, and mapped, which opens it once more.

A fork waits for that: the child could not close what it does not know of, and a lock of the parent would outlive it.
"""


class ProcessLock:
    """The lock file *path*, and whether this process has to lock it. None: there is only this process.

    The methods are for the one thread of the process that is about to write.
    """

    def __init__(self, path: Optional[str], like: Optional[str] = None) -> None:
        """A new lock file is as private as the file *like*: who can open it can lock it."""
        self.path = path
        self.is_local = False
        """All processes that open the file are on one machine, and see the same memory."""
        self._like = like
        self._abroad = False  # this process waits for a writer of another one
        self._file: Optional[int] = None
        self._opened: list[int] = []  # that one, from the very call on that opens it
        self._name: Optional[mmap.mmap] = None  # the lock file as memory: who holds it
        self.alone: Optional[mmap.mmap] = None  # the lock file, while this is the only process, and locks no file
        self._met = False  # no other process takes itself for the only one any more, or there are no means to do so
        self._look_at = _NEVER  # when to look whether there are others
        self._signature = b"%-20d" % os.getpid()  # a forked child makes a lock of its own

    def check_file(self, timeout: Optional[float]) -> None:
        """While this thread has the lock: if the lock file was removed or replaced, lock what others lock now.

        Raises `WriterTimeout`.
        """
        file = self._file
        if file is None or self.path is None or is_at(file, self.path):
            return
        log.warning("%r was removed or replaced while it was locked; it is made again", self.path)
        self.close()
        file = self._prepared(None, timeout)
        if self.alone is None:
            if not lockfile.locked(file):
                self._wait_for_process(partial(lockfile.locked, file), None, timeout)
            self._sign(file)

    def close(self) -> None:
        """Close the lock file."""
        self.alone = None
        name, self._name, self._file = self._name, None, None
        with suppress(OSError):  # the program has closed it itself
            close_files(self._opened)
        if name is not None:  # last: it ends by itself if an interrupt comes
            name.close()

    def _prepared(self, start: Optional[float], timeout: Optional[float]) -> int:
        """The lock file, open, and known to those who have it open, too; or this process is *alone* now."""
        file = self._file
        if file is None:
            file = self._open(self.path or "")
            here = lockfile.enter(file) if self.is_local else None
            self._met = not here
            self._look_at = _NEVER if here is None else _clock() + _LOOK_AGAIN
            self._file = file  # last: an interrupt that comes before leaves nothing half done
        if not self._met:
            self._meet(file, start, timeout)
        if self._look_at <= _clock():
            self._look_at = _clock() + _LOOK_AGAIN
            self._try_alone(file)
        return file

    def _try_alone(self, file: int) -> None:
        """If there is no other process, do without the lock on the file from now on."""
        if self._name is None:
            with suppress(OSError, ValueError), opening:
                self._name = lockfile.make_room(file)
        if self._name is not None and lockfile.be_alone(file, self._name):
            self._sign(file)
            self.alone = self._name
            self._is_still_alone()

    def _is_still_alone(self) -> bool:
        """Say that this process, which was alone, is busy; False if others have come, and it has to lock the file."""
        name, file = self._name, self._file
        if name is None or file is None:
            return False
        name[BUSY] = 1
        if not name[OTHERS]:
            return True
        # In this order: after an interrupt it is at most less alone than others think.
        name[BUSY] = 0
        self.alone = None
        lockfile.end_alone(file)
        return False

    def _meet(self, file: int, start: Optional[float], timeout: Optional[float]) -> None:
        """Have a process that is alone lock the file, and wait for the write that it has begun without that."""
        lockfile.interrupt(file)
        if lockfile.is_busy(file):
            self._wait_for_process(lambda: not lockfile.is_busy(file), start, timeout)
        self._met = True

    def _wait_for_process(self, is_over: Callable[[], bool], start: Optional[float], timeout: Optional[float]) -> None:
        """Wait for another process, until *is_over*."""
        self._abroad = True
        try:
            self._poll(is_over, _clock() if start is None else start, timeout)
        finally:
            self._abroad = False

    def _poll(self, is_over: Callable[[], bool], start: float, timeout: Optional[float]) -> None:
        pause, logged = _FIRST_PAUSE, False
        for _ in range(_LOOKS):
            time.sleep(0)
            if is_over():
                return
        while not is_over():
            waited = _clock() - start
            if timeout is not None and waited >= timeout:
                raise self._timeout(timeout, self._other_process())
            if waited > PATIENCE and not logged:
                log.warning("waiting for %s to end its write transaction on %r", self._other_process(), self.path)
                logged = True
            if self._name is not None:
                self._name[WANTED] = 1
            time.sleep(pause)
            pause = min(2 * pause, max(waited / 20, _SHORT_PAUSE), LONGEST_PAUSE)

    def _sign(self, file: int) -> None:
        """Write the process id into the file, and keep the file mapped, so that reading it takes no system call."""
        with suppress(OSError, ValueError):  # on a full disk, others do not learn who holds it
            write_at(file, self._signature, 0)
            if self._name is None:
                with opening:
                    self._name = lockfile.make_room(file)

    def _open(self, path: str) -> int:
        if self._opened:  # an interrupt has left it
            close_files(self._opened)
        mode = 0o666
        if self._like is not None:
            with suppress(OSError):
                mode &= os.stat(self._like).st_mode | 0o600
        try:
            with opening:
                self._opened.extend(map(os.open, (path,), (_TO_LOCK,), (mode,)))
        except OSError as error:
            ours = errors.ReadonlyDatabase if error.errno in _READ_ONLY else errors.DiskError
            raise ours(
                f"the lock file {path!r} of the writers cannot be opened ({error.strerror}): let this user "
                f"write it and its directory, free disk space or file descriptors (ulimit -n), or give readonly=True",
                path=path,
            ) from error
        return self._opened[-1]

    def _other_process(self) -> str:
        try:
            return f"process {int(read_at(self._file or 0, NAME_SIZE, 0))}"
        except (OSError, ValueError):
            return "an unknown process"

    def _timeout(self, timeout: Optional[float], holder: str, begun: str = "") -> errors.WriterTimeout:
        return errors.WriterTimeout(
            f"{holder} has held the write transaction{begun and begun + ','} for more than the timeout of {timeout} s: "
            f"try again, or give a longer timeout",
            path=self.path,
            owner=holder,
        )
