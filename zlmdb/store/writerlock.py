"""Waits for the one writer of a database: with a time limit, and knowing the holder.

LMDB's own writer lock has neither. zlmdb's lock is taken before it: one within the process, which is here, and one
between processes, see `processlock`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Optional
from weakref import ref

from .. import errors
from ..locks import monotonic as _clock
from ..log import log
from . import lockfile
from .blocks import BlockExit, Leave, is_over, was_kept
from .holds import Hold, Holder, begun_at, is_alive, nested, refuse_to_wait
from .lockfile import BUSY, NAME_SIZE, NO_LOCKS, OTHERS, TRY, UNLOCK, WANTED, flock
from .processlock import LONGEST_PAUSE, PATIENCE, ProcessLock
from .waking import wake

if TYPE_CHECKING:
    from typing_extensions import Self

    from .blockgroups import Turn

_get_ident = threading.get_ident

_TURN = 0.001
"""Seconds that a thread writes while others wait. To hand the lock over takes as long as several short transactions."""

_GIVE_WAY = 0.002  # seconds that a thread which was called has for itself to take the lock


class WriterLock(ProcessLock):
    """A lock held by one thread of one process at a time. *path* is the lock file; None: within this process only.

    Within the process a dict is the lock: `dict.setdefault` claims it and records the holder in one step, which no
    exception can interrupt, so no claim is ever without a holder.

    A thread that comes again at once takes the lock before one that has to be woken. So the others wait until its turn
    is over. Then the one that has waited longest is called, and the rest give way to it for a moment; nothing is lost
    if an interrupt keeps it from coming.
    """

    def __init__(self, path: Optional[str], like: Optional[str] = None) -> None:
        super().__init__(path, like)
        self._claims: dict[int, Hold] = {}  # at most one, at 0
        self._lent: dict[Turn, None] = {}  # to whom the holder has lent it; two while one hands it to the next
        self._waiters: deque[Hold] = deque()
        self._next: Optional[Hold] = None  # who was called
        self._turn = 0.0  # when that was

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
        pause = LONGEST_PAUSE
        with suppress(IndexError):  # it was called already, and nobody waits
            if self._waiters[0] is hold:
                pause = _TURN
        hold.called.acquire(timeout=pause if most is None else min(pause, most))


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
