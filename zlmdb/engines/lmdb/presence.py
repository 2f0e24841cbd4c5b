"""Sees to it that no second lock file is made for a data file that a program has open with the first one.

A reader is entered in LMDB's lock file. If somebody removes that, the next program that opens the database makes
another one, in which the reader is not: what it writes overwrites the pages that are being read (in a test, 44 of 118
scans were wrong without an error). So each process locks the data file itself while it has it open, and shares this
lock with the others. Whoever has to make the lock file must have it alone.

So must the first one that opens the database, until LMDB has prepared the lock file for it. Another one would wait for
that in LMDB, and take the lock file for prepared even if the first was killed: without the number of the last
transaction, it would go on from an old state, and overwrite the last one.

LMDB's own locks on its lock file say that a process has the environment open, and that the process of a reader lives.
The system drops all locks of this kind that a process has on a file when the process closes any descriptor of it, as
after copying the directory, or reading all files in it. The next program that opens the database would then take the
lock file for that of nobody, and clear the readers (in a test, a scan ended in an assertion of LMDB). So there are
locks on the same bytes that belong to an open file, and stay.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from contextlib import suppress
from typing import Optional

import lmdb

from ... import errors
from ...lockedfiles import LockedFile
from ...log import log
from ...systems import GET_LOCK, HAS_BYTE_LOCKS, SHARED, UNLOCKED, fcntl, lock_byte
from .allocated import IN_USE

_PAUSES = (0.001, 0.01, 0.05, 0.2, 0.5, 1.0)  # seconds: so long others may take to make the lock file, or to close


class OpenAgain(Exception):
    """The environment is closed, and is to be opened again, from `enter` on.

    Another process has replaced the data file since then, and LMDB may have opened either of the two. Or a killed
    process that had the id of this one, as in a container, had left readers.
    """


def _unlock(present: LockedFile) -> None:
    """End the locks, which closing does not if a child has the files, too.

    One that another thread forked while they were opened does not know of them. If this process opened the database
    again, it would take that child for another process with its own number, as long as the child lives.
    """
    with suppress(OSError):
        fcntl.flock(present.descriptor, fcntl.LOCK_UN)
    for descriptor in present.opened[1:]:
        for byte in (IN_USE, present.process):
            with suppress(OSError):
                lock_byte(descriptor, UNLOCKED, byte)


def enter(file: str, lock: str) -> Optional[LockedFile]:
    """Lock the data file *file* before LMDB opens it with the lock file *lock*; what is to be kept for `leave`.

    `share` opens the lock file in addition.

    None where that cannot be, as of a new file. Raises `DatabaseInUse` if *lock* is to be made, and another process has
    the file open.
    """
    if fcntl is None:  # Windows, where nobody removes a file that is open
        return None
    try:
        present = LockedFile(file)
    except OSError:
        return None
    try:
        try:
            fcntl.flock(present.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            _lock(present.descriptor, file, lock)
    except BaseException:
        present.close()
        raise
    return present


def _lock(descriptor: int, file: str, lock: str) -> None:
    """Lock the data file, unless the file system cannot do that. Raises as `enter`."""
    pauses, waits = iter(_PAUSES), False
    while True:
        made = os.path.exists(lock)
        try:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            fcntl.flock(descriptor, (fcntl.LOCK_SH if made else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            pause = next(pauses, None)
            if pause is None and not made:
                raise errors.DatabaseInUse(
                    f"another process replaces {file!r}, or has it open without the lock file {lock!r}, which was "
                    f"removed meanwhile, or is that of another name of the file: what is written now would overwrite "
                    f"what that process reads. Let it end, and open the database then",
                    path=file,
                ) from error
            if pause is None:
                if not _is_shut(lock):
                    return
                if not waits:
                    log.warning("waiting for another process that replaces %r", file)
                waits, pause = True, _PAUSES[2]
            time.sleep(pause)
        except OSError:  # a file system without locks
            return


def _is_shut(lock: str) -> bool:
    """Whether another process has the lock file for itself, as while it replaces the data file.

    LMDB would wait for that, too, and then take the lock file for one that somebody has prepared for this data file.
    """
    with suppress(OSError):
        descriptor = os.open(lock, os.O_RDONLY)
        try:
            return HAS_BYTE_LOCKS and lock_byte(descriptor, SHARED, IN_USE, GET_LOCK) != UNLOCKED
        finally:
            os.close(descriptor)
    return False


def share(env: lmdb.Environment, file: str, lock: str, present: Optional[LockedFile]) -> Optional[LockedFile]:
    """LMDB has opened *env*; *present* is what `enter` has returned, as is what this returns.

    Raises `OpenAgain`.
    """
    if fcntl is None:
        return None
    with suppress(OSError):  # as in `enter`
        if present is None:  # of a new file
            present = LockedFile(file)
        if HAS_BYTE_LOCKS:
            number = os.getpid()
            with suppress(lmdb.Error):  # perhaps another process has this id, in another PID namespace
                env.begin().abort()  # with its first reader LMDB locks the second byte, which must come before
                if env.readers().count(f"{number:10d} ") > 1:
                    # LMDB takes all of them for readers of this process: the file would grow for as long as that lives.
                    env.close()  # it frees them
                    raise OpenAgain
            present.opened.extend(map(os.open, (lock,), (os.O_RDONLY,)))
            file_lock = present.opened[-1]
            lock_byte(file_lock, SHARED, IN_USE)
            # LMDB's own lock would be in the way. It is made a shared one, in one step: without any, the next process
            # that clears the readers would free the slot of this one, and might take it
            lock_byte(file_lock, SHARED, number, fcntl.F_SETLK)
            lock_byte(file_lock, SHARED, number)
    if present is not None:
        with suppress(FileNotFoundError):  # it was removed, as `check_file` tells
            if not os.path.samestat(os.fstat(present.descriptor), os.stat(file)):
                env.close()
                raise OpenAgain
        try:
            fcntl.flock(present.descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            _let_in(present.descriptor)
    return present


def _let_in(descriptor: int) -> None:
    """Let others open the database."""
    for pause in _PAUSES[:4]:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        except BlockingIOError:  # another one came in between, but it gets no further while LMDB has its lock
            time.sleep(pause)
        except OSError:  # as in `enter`
            return


def require_open(present: Optional[LockedFile], opened: Hashable, path: str) -> None:
    """Raise `DiskError` where the descriptor of *present* is no more that of the file *opened*.

    Then the program has closed it, and perhaps all others. What it has opened since has their numbers, and LMDB would
    write pages into that.
    """
    if present is not None:
        try:
            found = os.fstat(present.descriptor)
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != opened:
            raise errors.DiskError(
                f"this program has closed the files of {path!r}, as os.closerange() does, and may have got their "
                f"descriptors for others: nothing can be written any more. Leave the files open, or close the database "
                f"before; a forked child, such as a daemon, may close all that is open",
                path=path,
            )


def leave(present: Optional[LockedFile]) -> None:
    """The file was closed; or this is a forked child, and the lock stays that of its parent."""
    if present is not None:
        if present.opened and present.process == os.getpid():
            _unlock(present)
        present.close()
