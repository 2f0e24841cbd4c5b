"""Waits for the one writer of a database: with a time limit, and knowing the holder.

LMDB's own writer lock has neither. zlmdb's lock is taken before it: one within the process, and between processes an
advisory lock on a small file beside the data file, in which the holder writes its process id. While there is only one
process, it does without the latter: see `lockfile`.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Optional
from weakref import ref

from .. import errors
from ..handlers import close_files
from ..locks import monotonic as _clock
from ..log import log
from . import lockfile
from .blocks import BlockExit, Leave, is_over, was_kept
from .holds import Hold, Holder, begun_at, is_alive, nested, refuse_to_wait, wake
from .lockfile import BUSY, NAME_SIZE, NO_LOCKS, OTHERS, TRY, UNLOCK, WANTED, flock, is_at, read_at, write_at

if TYPE_CHECKING:
    from typing_extensions import Self

    from .blockgroups import Turn

_get_ident = threading.get_ident

PATIENCE = 1.0
"""Seconds after which a wait for another writer is logged."""

_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_TO_LOCK = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
_LOOKS = 30
"""So often a wait for another process only gives way: most write transactions end sooner than a sleep would."""

_FIRST_PAUSE, _SHORT_PAUSE, _LONGEST_PAUSE = 0.00005, 0.001, 0.05
_NEVER = float("inf")
_LOOK_AGAIN = 1.0  # seconds after which a process looks whether it is alone; most that open a file write only once

_TURN = 0.001
"""Seconds that a thread writes while others wait. To hand the lock over takes as long as several short transactions."""

_GIVE_WAY = 0.002  # seconds that a thread which was called has for itself to take the lock


class WriterLock:
    """A lock held by one thread of one process at a time. *path* is the lock file; None: within this process only.

    Within the process a dict is the lock: `dict.setdefault` claims it and records the holder in one step, which no
    exception can interrupt, so no claim is ever without a holder.

    A thread that comes again at once takes the lock before one that has to be woken. So the others wait until its turn
    is over. Then the one that has waited longest is called, and the rest give way to it for a moment; nothing is lost
    if an interrupt keeps it from coming.
    """

    def __init__(self, path: Optional[str], like: Optional[str] = None) -> None:
        """A new lock file is as private as the file *like*: who can open it can lock it."""
        self.path = path
        self.is_local = False
        """All processes that open the file are on one machine, and see the same memory."""
        self._like = like
        self._claims: dict[int, Hold] = {}  # at most one, at 0
        self._lent: dict[Turn, None] = {}  # to whom the holder has lent it; two while one hands it to the next
        self._waiters: deque[Hold] = deque()
        self._next: Optional[Hold] = None  # who was called
        self._turn = 0.0  # when that was
        self._abroad = False  # the holder waits for a writer of another process
        self._file: Optional[int] = None
        self._opened: list[int] = []  # that one, from the very call on that opens it
        self._name: Optional[mmap.mmap] = None  # the lock file as memory: who holds it
        self.alone: Optional[mmap.mmap] = None  # the lock file, while this is the only process, and locks no file
        self._met = False  # no other process takes itself for the only one any more, or there are no means to do so
        self._look_at = _NEVER  # when to look whether there are others
        self._signature = b"%-20d" % os.getpid()  # a forked child makes a lock of its own

    @property
    def owner(self) -> Optional[int]:
        """The thread that holds the lock."""
        hold = self._claims.get(0)
        if hold is None:
            return None
        return self._in_fact(hold).thread

    def is_taken(self) -> bool:
        """Whether any thread holds the lock."""
        return 0 in self._claims

    def _in_fact(self, hold: Hold) -> Hold:
        """The one to whom *hold* has lent the lock, or itself."""
        if self._lent:
            for turn in self.lent()[-1:]:
                return turn.hold
        return hold

    def holder_here(self) -> Optional[Holder]:
        """What has the lock, or to what it is lent, if that is an object of this thread."""
        hold = self._claims.get(0)
        if hold is None:
            return None
        hold = self._in_fact(hold)
        return hold.holder() if hold.thread == _get_ident() else None

    def acquire(self, timeout: Optional[float], hold: Hold) -> Optional[Turn]:
        """Become the writer: *hold* then has the lock until it is released. The turn, if the lock is lent to it.

        Raises `NestedTransaction` if this thread is the writer already, `WriterTimeout` after *timeout* seconds (None:
        waits forever, and logs this after a second).
        """
        hold.thread = _get_ident()
        hold.turn = start = None
        if self._next is not None or self._claims.setdefault(0, hold) is not hold:
            start = _clock()
            if hold.join is not None:
                turn = hold.join(hold, timeout)
                if turn is not None:
                    return turn
            self._wait_for_thread(hold, timeout)
        if self.path is not None:
            try:
                if self.alone is not None and self._is_still_alone():
                    return None
                file = self._file
                if file is None or not self._met or self._look_at <= _clock():
                    file = self._prepared(start, timeout)
                    if self.alone is not None:
                        return None
                name = self._name
                if name is not None and name[WANTED]:
                    lockfile.give_way(name)
                try:
                    flock(file, TRY)
                except BlockingIOError:
                    self._wait_for_process(partial(lockfile.locked, file), start, timeout)
                name = self._name
                if name is None or name[:NAME_SIZE] != self._signature:
                    self._sign(file)
            except BaseException as error:
                self.release(hold)
                if isinstance(error, OSError) and error.errno in NO_LOCKS:
                    raise lockfile.without_locks(self.path, error) from error
                raise
        return None

    def take(self, hold: Hold, thread: int) -> bool:
        """As `acquire`, if that takes no waiting, and the lock file is open; else False, and nothing has happened.

        *thread* is this one.
        """
        name = self._name
        if self._next is not None or name is None or not self._met or name[WANTED]:
            return False
        hold.thread, hold.turn = thread, None
        if self._claims.setdefault(0, hold) is not hold:
            return False
        try:
            if self.alone is not None:
                name[BUSY] = 1
                if not name[OTHERS]:
                    return True
                self.release(hold)
                return False
            flock(self._file, TRY)
            if name[:NAME_SIZE] != self._signature:
                self._sign(self._file or 0)
        except BaseException as error:
            self.release(hold)
            if isinstance(error, BlockingIOError) or (isinstance(error, OSError) and error.errno in NO_LOCKS):
                return False  # `acquire` waits, or tells why there is no lock
            raise
        return True

    def release(self, hold: Hold) -> None:
        """Let the next writer in, if *hold* has the lock; it may be released twice."""
        if hold.turn is not None:
            hold.turn.give_back()
        elif self._claims.get(0) is hold:
            alone, file = self.alone, self._file  # which another thread may be closing
            try:
                if alone is not None:
                    alone[BUSY] = 0
                elif file is not None:
                    flock(file, UNLOCK)
            except (OSError, ValueError):  # the file system has lost its locks: this one ends with the file
                self.close()
            del self._claims[0]
            if self._waiters:
                self.wake_next()

    # -- lending to members of a group: each of these is one step, whichever thread takes it ----------------------

    def lend(self, turns: Iterable[tuple[Turn, None]]) -> None:
        """The holder lends the lock to those *turns*, of which there is one."""
        self._lent.update(turns)

    def give_back(self, turn: Turn) -> None:
        """The lock is not lent any more to *turn*, nor to who handed it to that one."""
        lent = self.lent()
        if turn in lent:
            for one in lent[: lent.index(turn) + 1]:
                self._lent.pop(one, None)

    def lent(self) -> list[Turn]:
        """To whom it is lent: one, or nobody, and two while one hands it to the other."""
        return [*self._lent]

    def is_lent(self, turn: Turn) -> bool:
        """Whether *turn* has the lock."""
        return turn in self._lent

    def call(self, hold: Hold) -> None:
        """*hold* comes for the lock in a moment: others give way to it, unless one that has waited was called."""
        if self._next is None and not self._waiters:
            self._turn = _clock()
            self._next = hold

    def uncall(self, hold: Hold) -> None:
        """*hold* does not come."""
        if self._next is hold:
            self._next = None

    def shown_owner(self) -> str:
        """Who holds the lock, in words."""
        hold = self._claims.get(0)
        if self._abroad:
            return self._other_process()
        if hold is None:  # it has just ended
            return "another thread of this process"
        return f"thread {self._in_fact(hold).thread} of this process"

    def late(self, timeout: Optional[float]) -> errors.WriterTimeout:
        """The error of a writer that has waited for *timeout* seconds."""
        begun = [begun_at(self._in_fact(one)) for one in [*self._claims.values()] if not self._abroad]
        return self._timeout(timeout, self.shown_owner(), *begun)

    def check_file(self, timeout: Optional[float]) -> None:
        """While this thread has the lock: if the lock file was removed or replaced, lock what others lock now.

        Raises `WriterTimeout`.
        """
        file = self._file
        if file is None or self.path is None or is_at(file, self.path):
            return
        log.warning("%s was removed or replaced while it was locked; it is made again", self.path)
        self.close()
        file = self._prepared(None, timeout)
        if self.alone is None:
            if not lockfile.locked(file):
                self._wait_for_process(partial(lockfile.locked, file), None, timeout)
            self._sign(file)

    def end_leftovers(self) -> None:
        """Clear what was left open by a block that is over: of this thread, or of one that has ended meanwhile."""
        hold = self._claims.get(0)
        if hold is None:
            return
        hold = self._in_fact(hold)
        mine = hold.thread == _get_ident()
        if mine or not is_alive(hold.thread):
            holder = hold.kept or hold.holder()
            if holder is not None and (hold.kept is not None or not mine or holder._is_over()):  # the two work together
                holder._clear()

    def close(self) -> None:
        """Close the lock file."""
        self.alone = None
        name, self._name, self._file = self._name, None, None
        with suppress(OSError):  # the program has closed it itself
            close_files(self._opened)
        if name is not None:  # last: it ends by itself if an interrupt comes
            name.close()

    def wake_next(self) -> None:
        """Wake the thread that has waited longest, unless one was called a moment ago."""
        now = _clock()
        if self._turn <= now - _TURN:
            with suppress(IndexError):
                self._next = called = self._waiters.popleft()
                self._turn = now
                wake(called.called)

    def _wait_for_thread(self, hold: Hold, timeout: Optional[float]) -> None:
        start = _clock()
        deadline = None if timeout is None else start + timeout
        logged = looked = False
        if hold.called is None:
            hold.called = threading.Lock()
        hold.called.acquire(False)
        try:
            while True:
                self.end_leftovers()
                now = _clock()
                called = self._next
                if called is None or called is hold or now - self._turn > _GIVE_WAY:
                    other = self._claims.setdefault(0, hold)
                    if other is hold:
                        return
                else:
                    other = self._claims.get(0, called)
                other = self._in_fact(other)
                # Who was only called may be this thread, with a claim that it has given up meanwhile.
                if other.thread == hold.thread and self.owner == hold.thread:
                    if not looked and (looked := was_kept(other.holder())):  # it may be over in the next round
                        continue
                    raise nested(other, hold)
                shown = f"thread {other.thread} of this process"
                if deadline is not None and now >= deadline:
                    raise self._timeout(timeout, shown, begun_at(other))
                refuse_to_wait(other.thread, self.path)
                if now - start >= PATIENCE and not logged:
                    log.warning("waiting for %s to end its write transaction%s", shown, begun_at(other))
                    logged = True
                self._wait(hold, None if deadline is None else deadline - now)
        finally:
            with suppress(ValueError):
                self._waiters.remove(hold)
            if self._next is hold or _clock() - self._turn > _GIVE_WAY:  # afterwards: nobody calls it any more
                self._next = None
            with suppress(IndexError):  # it is the first one now, and looks more often
                wake(self._waiters[0].called)

    def _wait(self, hold: Hold, most: Optional[float]) -> None:
        """Wait until *hold* is called, *most* seconds if given. The first one in the queue looks often."""
        if hold not in self._waiters:
            self._waiters.append(hold)
        pause = _LONGEST_PAUSE
        with suppress(IndexError):  # it was called already, and nobody waits
            if self._waiters[0] is hold:
                pause = _TURN
        hold.called.acquire(timeout=pause if most is None else min(pause, most))

    # -- between processes ----------------------------------------------------------------------------------------

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
            with suppress(OSError, ValueError):
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
                log.warning("waiting for %s to end its write transaction on %s", self._other_process(), self.path)
                logged = True
            if self._name is not None:
                self._name[WANTED] = 1
            time.sleep(pause)
            pause = min(2 * pause, max(waited / 20, _SHORT_PAUSE), _LONGEST_PAUSE)

    def _sign(self, file: int) -> None:
        """Write the process id into the file, and keep the file mapped, so that reading it takes no system call."""
        with suppress(OSError, ValueError):  # on a full disk, others do not learn who holds it
            write_at(file, self._signature, 0)
            if self._name is None:
                self._name = lockfile.make_room(file)

    def _open(self, path: str) -> int:
        if self._opened:  # an interrupt has left it
            close_files(self._opened)
        mode = 0o666
        if self._like is not None:
            with suppress(OSError):
                mode &= os.stat(self._like).st_mode | 0o600
        try:
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


class Claim:
    """A block whose thread has *lock*. It ends however an interrupt comes; see `blocks`."""

    def __init__(self, lock: WriterLock, timeout: Optional[float]) -> None:
        self._lock = lock
        self._timeout = timeout
        self._hold = Hold(self)
        self._block: Optional[ref[Leave]] = None
        self._exit: list[Leave] = []

    def __enter__(self) -> Self:
        try:
            self._lock.acquire(self._timeout, self._hold)
            return self
        except BaseException:  # an interrupt may have come when it had the lock
            self._leave()
            raise

    if TYPE_CHECKING:

        def __exit__(self, *error: object) -> None: ...

    else:
        __exit__ = BlockExit()

    def _leave(self, *error: object) -> None:
        self._lock.release(self._hold)
        self._block = None

    def _left(self, block: ref[Leave]) -> None:
        if self._block is block:
            self._clear()

    def _is_over(self) -> bool:
        return is_over(self)

    def _clear(self) -> None:
        self._leave()  # whichever thread this is: there is nothing of an engine to end
