"""Waits for the one writer of a database: with a time limit, and knowing the holder.

LMDB's own writer lock has neither. zlmdb's lock is taken before it: one within the process, and between processes an
advisory lock on a small file beside the data file, in which the holder writes its process id.
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
from typing import TYPE_CHECKING, Any, Optional, Protocol
from weakref import ref

from .. import errors
from ..log import log
from .blocks import BlockExit, Leave, is_over

if TYPE_CHECKING:
    from typing_extensions import Self

try:
    import fcntl
except ImportError:  # Windows: within the process only
    fcntl = None  # type: ignore[assignment]

_get_ident = threading.get_ident
_clock = time.monotonic

PATIENCE = 1.0
"""Seconds after which a wait for another writer is logged."""

_SIZE = 20
"""Bytes of the lock file: the process id as text, filled up with blanks."""

_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
_TRY, _UNLOCK = (0, 0) if fcntl is None else (fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN)
_flock: Any = None if fcntl is None else fcntl.flock
_LOOKS = 30
"""So often a wait for another process only gives way: most write transactions end sooner than a sleep would."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.00005, 0.05

_TURN = 0.001
"""Seconds that a thread writes while others wait. To hand the lock over takes as long as several short transactions."""

_GIVE_WAY = 0.002  # seconds that a thread which was called has for itself to take the lock


class Holder(Protocol):
    """The object that is the writer, for as long as a block lasts."""

    def _is_over(self) -> bool:
        """Whether nobody is in the block any more, although it has not ended because of an interrupt."""
        ...

    def _clear(self) -> None:
        """End what the block left open, and release the lock."""
        ...


class Turn(Protocol):
    """The turn of a writer in a group, who has the lock while it is lent to it."""

    hold: Hold
    gone: bool
    leader: Any

    def wake(self) -> None:
        """Let it see that it has the lock."""
        ...

    def give_back(self) -> None:
        """The turn is over, or is not wanted any more. Calling this twice is allowed."""
        ...


class Hold:
    """A claim to the lock, by a *thread* for a *holder*, which it does not keep alive unless it is *kept*.

    *join* waits for a turn in a group, if the lock is taken; *turn* is that turn.
    """

    __slots__ = ("called", "holder", "join", "kept", "thread", "turn")

    def __init__(self, holder: Optional[Holder] = None, join: Optional[Join] = None) -> None:
        self.thread = 0
        self.called: Any = None  # a lock that is released to wake the thread
        self.holder: Callable[[], Optional[Holder]] = _nobody if holder is None else ref(holder)
        self.kept: Optional[Holder] = None
        self.join = join
        self.turn: Optional[Turn] = None


Join = Callable[[Hold, Optional[float]], Optional[Turn]]


def _nobody() -> None:
    return None


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
        self._like = like
        self._claims: dict[int, Hold] = {}  # at most one, at 0
        self._lent: dict[Turn, None] = {}  # to whom the holder has lent it; two while one hands it to the next
        self._waiters: deque[Hold] = deque()
        self._next: Optional[Hold] = None  # who was called
        self._turn = 0.0  # when that was
        self._abroad = False  # the holder waits for a writer of another process
        self._file: Optional[int] = None
        self._name: Optional[mmap.mmap] = None  # the lock file as memory: who holds it
        self._signature = b"%-20d" % os.getpid()  # a forked child makes a lock of its own

    @property
    def owner(self) -> Optional[int]:
        """The thread that holds the lock."""
        hold = self._claims.get(0)
        if hold is None:
            return None
        return self._in_fact(hold).thread

    def _in_fact(self, hold: Hold) -> Hold:
        """The one to whom *hold* has lent the lock, or itself."""
        if self._lent:
            for turn in self.lent()[-1:]:
                return turn.hold
        return hold

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
        if self.path is not None and fcntl is not None:
            try:
                file = self._file
                if file is None:
                    file = self._file = self._opened(self.path)
                try:
                    fcntl.flock(file, _TRY)
                except BlockingIOError:
                    self._wait_for_process(file, _clock() if start is None else start, timeout)
                name = self._name
                if name is None or name[:_SIZE] != self._signature:
                    self._sign(file)
            except BaseException:
                self.release(hold)
                raise
        return None

    def take(self, hold: Hold) -> bool:
        """As `acquire`, if that takes no waiting, and the lock file is open; else False, and nothing has happened."""
        if self._next is not None or self._name is None:
            return False
        hold.thread = _get_ident()
        hold.turn = None
        if self._claims.setdefault(0, hold) is not hold:
            return False
        try:
            _flock(self._file, _TRY)
            if self._name[:_SIZE] != self._signature:
                self._sign(self._file or 0)
        except BaseException as error:
            self.release(hold)
            if isinstance(error, BlockingIOError):
                return False
            raise
        return True

    def release(self, hold: Hold) -> None:
        """Let the next writer in, if *hold* has the lock; it may be released twice."""
        if hold.turn is not None:
            hold.turn.give_back()
        elif self._claims.get(0) is hold:
            if self._file is not None:
                _flock(self._file, _UNLOCK)
            del self._claims[0]
            if self._waiters:
                self._call(_clock() - _TURN)

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
        return self._timeout(timeout, self.shown_owner())

    def check_file(self, timeout: Optional[float]) -> None:
        """While this thread has the lock: if the lock file was removed or replaced, lock what others lock now.

        Raises `WriterTimeout`.
        """
        file = self._file
        if file is None or self.path is None or fcntl is None or _is_at(file, self.path):
            return
        log.warning("%s was removed or replaced while it was locked; it is made again", self.path)
        self.close()
        file = self._file = self._opened(self.path)
        if not _locked(file):
            self._wait_for_process(file, _clock(), timeout)
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
        name, file = self._name, self._file
        self._name = self._file = None
        if name is not None:
            name.close()
        if file is not None:
            os.close(file)

    def _call(self, since: float) -> None:
        """Wake the thread that has waited longest, unless the last one was called after *since*."""
        if self._turn <= since:
            with suppress(IndexError):
                self._next = called = self._waiters.popleft()
                self._turn = since + _TURN
                _wake(called)

    def _wait_for_thread(self, hold: Hold, timeout: Optional[float]) -> None:
        start = _clock()
        deadline = None if timeout is None else start + timeout
        logged = False
        if hold.called is None:
            hold.called = threading.Lock()
        hold.called.acquire(False)
        try:
            while True:
                self.end_leftovers()
                now = _clock()
                if self._next is None or self._next is hold or now - self._turn > _GIVE_WAY:
                    other = self._claims.setdefault(0, hold)
                    if other is hold:
                        return
                else:
                    other = self._claims.get(0, self._next)
                other = self._in_fact(other)
                # Who was only called may be this thread, with a claim that it has given up meanwhile.
                if other.thread == hold.thread and self.owner == hold.thread:
                    raise errors.NestedTransaction(
                        "this thread has a write transaction open already, and would wait for itself forever: "
                        "use txn.savepoint() inside it"
                    )
                if deadline is not None and now >= deadline:
                    raise self._timeout(timeout, f"thread {other.thread} of this process")
                if now - start >= PATIENCE and not logged:
                    log.warning("waiting for thread %s of this process to end its write transaction", other.thread)
                    logged = True
                self._wait(hold, None if deadline is None else deadline - now)
        finally:
            with suppress(ValueError):
                self._waiters.remove(hold)
            if self._next is hold or _clock() - self._turn > _GIVE_WAY:  # afterwards: nobody calls it any more
                self._next = None
            with suppress(IndexError):  # it is the first one now, and looks more often
                _wake(self._waiters[0])

    def _wait(self, hold: Hold, most: Optional[float]) -> None:
        """Wait until *hold* is called, *most* seconds if given. The first one in the queue looks often."""
        if hold not in self._waiters:
            self._waiters.append(hold)
        pause = _LONGEST_PAUSE
        with suppress(IndexError):  # it was called already, and nobody waits
            if self._waiters[0] is hold:
                pause = _TURN
        hold.called.acquire(timeout=pause if most is None else min(pause, most))

    def _wait_for_process(self, file: int, start: float, timeout: Optional[float]) -> None:
        self._abroad = True
        try:
            self._poll_file(file, start, timeout)
        finally:
            self._abroad = False

    def _poll_file(self, file: int, start: float, timeout: Optional[float]) -> None:
        pause, logged = _FIRST_PAUSE, False
        for _ in range(_LOOKS):
            time.sleep(0)
            if _locked(file):
                return
        while not _locked(file):
            waited = _clock() - start
            if timeout is not None and waited >= timeout:
                raise self._timeout(timeout, self._other_process())
            if waited > PATIENCE and not logged:
                log.warning("waiting for %s to end its write transaction on %s", self._other_process(), self.path)
                logged = True
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _sign(self, file: int) -> None:
        """Write the process id into the file, and keep the file mapped, so that reading it takes no system call."""
        try:
            os.pwrite(file, self._signature, 0)
            if self._name is None:
                self._name = mmap.mmap(file, _SIZE, prot=mmap.PROT_READ)
        except (OSError, ValueError):  # on a full disk, others do not learn who holds it
            pass

    def _opened(self, path: str) -> int:
        mode = 0o666
        if self._like is not None:
            with suppress(OSError):
                mode &= os.stat(self._like).st_mode | 0o600
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
        except OSError as error:
            ours = errors.ReadonlyDatabase if error.errno in _READ_ONLY else errors.DiskError
            raise ours(
                f"the lock file {path!r} of the writers cannot be opened ({error.strerror}): make its directory "
                f"writable, free some disk space, or open the database with readonly=True",
                path=path,
            ) from error

    def _other_process(self) -> str:
        try:
            return f"process {int(os.pread(self._file or 0, _SIZE, 0))}"
        except (OSError, ValueError):
            return "an unknown process"

    def _timeout(self, timeout: Optional[float], holder: str) -> errors.WriterTimeout:
        return errors.WriterTimeout(
            f"{holder} has held the write transaction for more than the timeout of {timeout} s: "
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
        self._lock.acquire(self._timeout, self._hold)
        return self

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
        """End, unless this is another thread than the one that began; that one does so when it comes here."""
        if self._hold.thread == _get_ident() or not is_alive(self._hold.thread):
            self._leave()
        else:
            self._hold.kept = self


def _wake(hold: Hold) -> None:
    with suppress(RuntimeError):  # it was woken already
        hold.called.release()


def is_alive(thread: int) -> bool:
    """Whether there is a thread with this identifier."""
    return any(one.ident == thread for one in threading.enumerate())


def _is_at(file: int, path: str) -> bool:
    """Whether the open *file* is what has that path."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except OSError:
        return False


def _locked(file: int) -> bool:
    """Whether the lock on *file* could be taken."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, _TRY)
    except BlockingIOError:
        return False
    return True
