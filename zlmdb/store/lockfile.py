"""The lock file of the writers: the bytes in it, and whether this process is the only one that has it open.

Each process keeps a shared lock on one byte of the lock file, from its first write until it closes the file. A process
that finds no other such lock, and has an exclusive one on a second byte, is *alone*. Its writers then take no lock
between processes; they only say in a byte of the file, which is mapped as memory, that they are `BUSY`.

A process that comes later finds the second byte locked. It sets a byte, `OTHERS`, and waits until the first process is
not busy, or has ended. The first process looks at that byte after it has said that it is busy, and goes back to the
ordinary lock. So one write, at most, is waited for without that lock, and from then on all of them use it.

Nothing here orders what the two processors do with their two bytes: the first process might say that it is busy and
look, both before the other one sees the former or has done the latter. But what a processor has written reaches the
others within much less than a millisecond, and so long the other one waits before it looks (`SETTLING`). If this should
ever fail, a writer waits for another one at LMDB's own lock, that is without a time limit; no data are in danger.

The kernel ends all these locks with the process, and with the last descriptor of the opened file. They belong to the
opened file and not to the process, so a forked child closes what it inherited. The numbers below are those of Linux;
elsewhere, and where the file system has no such locks, no process is alone. Windows locks bytes, not files: the
ordinary lock is one on a byte beyond the end there.
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Optional

from .. import errors
from ..systems import EXCLUSIVE, GET_LOCK, HAS_BYTE_LOCKS, SHARED, UNLOCKED, WINDOWS, fcntl, lock_byte, msvcrt

NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EIO, errno.ESTALE, errno.EBADF)
"""The errors of a file system that has no locks, or has lost them, and of a program that has closed the file."""

NAME_SIZE = 20
"""Bytes at the beginning of the lock file: the process id of a writer as text, filled up with blanks."""
BUSY, OTHERS, WANTED = NAME_SIZE, NAME_SIZE + 1, NAME_SIZE + 2
"""The bytes that follow. The last of them says that a process waits for the lock: see `give_way`."""
FILE_SIZE = NAME_SIZE + 4
"""With a last byte that is written only to give the file this size, whatever another process writes meanwhile."""

SETTLING = 0.001
"""Seconds after which what one process has written is seen by all, with a margin of some thousand times."""

WAY = 0.002
"""Seconds for which others are given way, longer than one that waits sleeps between two looks at first."""

_HERE, _ALONE, _FILE = 64, 65, 66  # bytes, beyond the end of the file, that are locked


def _flock(file: int, operation: int) -> None:
    """What `fcntl.flock` does, for Windows: with *operation* `UNLOCK` nothing is done where there is no lock."""
    os.lseek(file, _FILE, os.SEEK_SET)
    try:
        msvcrt.locking(file, msvcrt.LK_NBLCK if operation == TRY else msvcrt.LK_UNLCK, 1)
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise
        if operation == UNLOCK:
            return
        with suppress(OSError):  # an interrupt has left it locked by this file; else another process has it
            msvcrt.locking(file, msvcrt.LK_UNLCK, 1)
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            return
        raise BlockingIOError(*error.args) from None


flock: Any = getattr(fcntl, "flock", _flock)
"""Locks an open file, or raises `BlockingIOError` where another process has it: ``flock(file, TRY)``."""
TRY: int = getattr(fcntl, "LOCK_EX", 1) | getattr(fcntl, "LOCK_NB", 0)
UNLOCK: int = getattr(fcntl, "LOCK_UN", 0)


def _read_at(file: int, size: int, at: int) -> bytes:
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, size)


def _write_at(file: int, data: bytes, at: int) -> int:
    os.lseek(file, at, os.SEEK_SET)
    return os.write(file, data)


# Windows has none. There is one position in a file, but also one thread at a time that comes here.
read_at: Callable[[int, int, int], bytes] = getattr(os, "pread", _read_at)
write_at: Callable[[int, bytes, int], int] = getattr(os, "pwrite", _write_at)


def make_room(file: int) -> mmap.mmap:
    """The lock file as memory. Raises OSError or ValueError if there is no room for it, or it cannot be mapped."""
    if os.fstat(file).st_size < FILE_SIZE:
        write_at(file, b"\n", FILE_SIZE - 1)
    return mmap.mmap(file, FILE_SIZE)


def give_way(name: mmap.mmap) -> None:
    """Let a process that waits have the lock: it looks again and again, and between two groups it is free for no time.

    Who waits sets the byte after each look. If it was killed since then, this takes a pause in vain, once.
    """
    name[WANTED] = 0
    time.sleep(WAY)


def without_locks(path: Optional[str], error: OSError) -> errors.DiskError:
    """What is raised where the lock file *path* cannot be locked."""
    if error.errno == errno.EBADF:
        return errors.DiskError(
            f"this program has closed the lock file {path!r} of the writers, as os.closerange() does: leave it open",
            path=path,
        )
    return errors.DiskError(
        f"the lock file {path!r} of the writers cannot be locked ({error.strerror}): keep the database on a local file "
        f"system, start the lock service of a network file system, or open it with readonly=True",
        path=path,
    )


def locked(file: int) -> bool:
    """Whether the lock on *file* could be taken."""
    try:
        flock(file, TRY)
    except BlockingIOError:
        return False
    return True


def is_at(file: int, path: str) -> bool:
    """Whether the open *file* is what has that path."""
    try:
        found = os.stat(path)
        # Windows lets nobody remove a file that is open, and may not tell which one it is.
        return WINDOWS or os.path.samestat(os.fstat(file), found)
    except OSError:
        return False


def enter(file: int) -> Optional[bool]:
    """Say that this process is here. Whether another one is alone, or may be; None where there are no such locks."""
    if not HAS_BYTE_LOCKS:
        return None
    try:
        lock_byte(file, SHARED, _HERE)
        return is_one_alone(file)
    except OSError:
        return None


def be_alone(file: int, memory: mmap.mmap) -> bool:
    """Whether this process, which has entered, is alone: from now on until it sees `OTHERS`."""
    try:
        lock_byte(file, EXCLUSIVE, _ALONE)
        memory[BUSY] = memory[OTHERS] = 0  # before it looks: who comes after that says so again
        if lock_byte(file, EXCLUSIVE, _HERE, GET_LOCK) == UNLOCKED:
            return True
    except OSError:  # another one has the lock
        pass
    except BaseException:  # one that was killed may have been busy: nobody is to think that this one is
        end_alone(file)
        raise
    end_alone(file)
    return False


def end_alone(file: int) -> None:
    """Go back to the ordinary lock, while not busy."""
    with suppress(OSError):
        lock_byte(file, UNLOCKED, _ALONE)


def is_one_alone(file: int) -> bool:
    """Whether another process is alone, or just finds out whether it is."""
    return lock_byte(file, EXCLUSIVE, _ALONE, GET_LOCK) != UNLOCKED


def interrupt(file: int) -> None:
    """Have the process that is alone go back to the ordinary lock with its next write."""
    write_at(file, b"\1", OTHERS)
    time.sleep(SETTLING)


def is_busy(file: int) -> bool:
    """Whether the process that was interrupted is still in the write that it had begun before."""
    return read_at(file, 1, BUSY) == b"\1" and is_one_alone(file)
