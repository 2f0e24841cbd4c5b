"""Waiting for the one writer of a database: with a time limit, and knowing who holds it.

LMDB's own writer lock knows neither. Ours is taken before it: a `threading.Lock` within the process, and between
processes an advisory lock on a small file beside the data file, in which the holder leaves its process id.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Optional

from . import errors

try:
    import fcntl
except ImportError:  # Windows: within the process only
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("zlmdb")
_get_ident = threading.get_ident

PATIENCE = 1.0
"""Seconds after which a wait for another writer is logged."""

_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_LOOKS = 30
"""So often a wait for another process only gives way: most write transactions end sooner than a sleep would."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.00005, 0.05


class WriterLock:
    """Held by one thread of one process at a time. *path* is the lock file; None: within this process only."""

    def __init__(self, path: Optional[str]) -> None:
        self.path = path
        self.owner: Optional[int] = None
        self._lost: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._file: Optional[int] = None
        self._signature = b"%-20d" % os.getpid()  # a forked child makes a lock of its own

    def acquire(self, timeout: Optional[float]) -> None:
        """Become the writer.

        Raises `NestedTransaction` when this thread is it already, `WriterTimeout` after *timeout* seconds (None: waits
        for ever, and logs so after a second).
        """
        me = _get_ident()
        if self.owner is not None:
            self.settle()
        if self.owner == me:
            raise errors.NestedTransaction(
                "this thread has a write transaction open already, and would wait for itself for ever: "
                "use txn.savepoint() inside it"
            )
        start = None
        if not self._lock.acquire(False):
            start = time.monotonic()
            self._wait_for_thread(timeout)
        try:
            if self.path is not None and fcntl is not None:
                if self._file is None:
                    self._file = self._opened(self.path)
                if not _locked(self._file):
                    self._wait_for_process(self._file, time.monotonic() if start is None else start, timeout)
                self._sign(self._file)
        except BaseException:
            self.release()
            raise
        self.owner = me

    def try_acquire(self) -> bool:
        """Become the writer if nobody is; False when somebody is, also when it is another process or not known."""
        try:
            self.acquire(0)
        except errors.WriterTimeout:
            return False
        return True

    def release(self) -> None:
        """Let the next writer in."""
        if self._file is not None and fcntl is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self.owner = None
        self._lost.clear()
        self._lock.release()

    def lose(self, end: Callable[[], object]) -> None:
        """Nobody can use the owner's transaction any more: *end* ends it, and so releases this (see `settle`)."""
        self._lost.append(end)

    def settle(self) -> None:
        """End a transaction that was lost, if it is this thread's, or that of a thread that has ended meanwhile."""
        owner = self.owner
        if self._lost and owner is not None and (owner == _get_ident() or not is_alive(owner)):
            try:
                end = self._lost.pop()
            except IndexError:  # another thread does it
                return
            end()

    def close(self) -> None:
        """Close the lock file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _wait_for_thread(self, timeout: Optional[float]) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        logged = False
        while True:  # the owner may end without having ended its transaction
            left = PATIENCE if deadline is None else deadline - time.monotonic()
            if self._lock.acquire(timeout=max(min(left, PATIENCE), 0.0)):
                return
            if left <= PATIENCE and deadline is not None:
                raise self._timeout(timeout, f"thread {self.owner} of this process")
            if not logged:
                log.warning("waiting for thread %s of this process to end its write transaction", self.owner)
                logged = True
            self.settle()

    def _wait_for_process(self, file: int, start: float, timeout: Optional[float]) -> None:
        pause, logged = _FIRST_PAUSE, False
        for _ in range(_LOOKS):
            time.sleep(0)
            if _locked(file):
                return
        while not _locked(file):
            waited = time.monotonic() - start
            if timeout is not None and waited >= timeout:
                raise self._timeout(timeout, self._holder())
            if waited > PATIENCE and not logged:
                log.warning("waiting for %s to end its write transaction on %s", self._holder(), self.path)
                logged = True
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _sign(self, file: int) -> None:
        """Leave the process id in the file. Reading what is there costs less than writing it again."""
        try:
            if os.pread(file, 20, 0) != self._signature:
                os.pwrite(file, self._signature, 0)
        except OSError:  # on a full disk, others do not learn who holds it
            pass

    @staticmethod
    def _opened(path: str) -> int:
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            ours = errors.ReadonlyDatabase if error.errno in _READ_ONLY else errors.DiskError
            raise ours(
                f"the lock file {path!r} of the writers cannot be opened ({error.strerror}): make its directory "
                f"writable, give the disk some room, or open the database with readonly=True",
                path=path,
            ) from error

    def _holder(self) -> str:
        try:
            return f"process {int(os.pread(self._file or 0, 20, 0))}"
        except (OSError, ValueError):
            return "an unknown process"

    def _timeout(self, timeout: Optional[float], holder: str) -> errors.WriterTimeout:
        return errors.WriterTimeout(
            f"{holder} has held the write transaction for more than the timeout of {timeout} s: "
            f"try again, or give a longer timeout",
            path=self.path,
            owner=holder,
        )


def is_alive(thread: int) -> bool:
    """Whether there is a thread of this identity."""
    return any(one.ident == thread for one in threading.enumerate())


def _locked(file: int) -> bool:
    """Whether the lock on *file* could be had."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
