"""Group commit of write blocks: one commit stores those that wait for the writer at the same time.

Each block runs in its own thread, but LMDB lets only the thread that began a write transaction end it. So a thread of
the database, the *lender*, begins the transaction of a group and lends it to one block after another. A block writes in
a child transaction of it, begun in the thread of the block, and gives it back. Then the lender commits, and all blocks
of the group return.

LMDB holds no lock for a child transaction, so any thread may undo that of a block that is over. Therefore an interrupt
of one block does not harm the others, and the lender cannot be interrupted: Python runs signal handlers in the main
thread only.

If a block raises, only its own changes are undone. It still returns only when the group is stored, because it may have
read what another block of the group wrote. If the commit fails, all blocks raise.

A block hands the transaction directly to the next block, which saves a change of threads. `WriterLock` says who has it.
One call of a C function takes the next block from the queue and gives it the lock, so no interrupt can come in between,
and the lock always has a holder until the group is over. Waiting blocks check from time to time whether they still have
to wait, so a lost signal does not stop them for ever.
"""

from __future__ import annotations

import copy
import gc
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any, Optional

from .. import errors
from ..locks import monotonic as _clock
from ..log import log
from .blocks import COUNTS_REFERENCES
from .holds import Hold, is_stopped
from .processlock import PATIENCE
from .store import Store
from .waking import NEVER_SO_MANY, Gathering, taken_lock, wake, wake_some, withdraw
from .writerlock import WriterLock

_LOOK_AGAIN = 0.05  # seconds after which a waiting thread looks whether the other one still exists
_LINGER = 0.1  # seconds without work after which the lender ends
_SHORTEST = 0.002  # seconds that a group takes blocks for, however fast the disk is
_GATHER = 0.5  # of the time of a commit: what the lender waits for those who were in the group before
_FAST = 0.00006  # seconds of a commit that takes no longer than to hand the transaction over: there is nothing to share
_REST = 1.0  # seconds after which such a disk is tried again
_NONE = (None,)
_take: Callable[[Any], Any] = vars(deque)["popleft"]
_PAUSE = 0.001  # seconds between two looks whether the lender has ended its transaction
_LOOKS = 20  # so many times the lender looks at a block, until it collects what is left of one


class Turn:
    """A write block that waits for the transaction of a group, and then for its commit."""

    __slots__ = (
        "_called", "_told", "_turns", "alone", "deadline", "error", "gone", "hold", "leader", "left", "others", "right"
    )  # fmt: skip

    def __init__(self, turns: Turns, hold: Hold, deadline: Optional[float]) -> None:
        self._turns = turns
        self.hold = hold
        self.deadline = deadline
        """When it gives up."""
        self._called = taken_lock()
        self._told = False
        self.right = [turns.queue]
        """To hand the transaction to the next one in the queue: gone, when that is done."""
        self.leader: Any = None
        """The transaction that was lent to it."""
        self.alone = False
        """There is no group for it: it has to wait for the writer itself."""
        self.gone = False
        """It has ended, or does not wait any more."""
        self.error: Optional[Exception] = None
        self.others: deque[Turn] = deque()
        """Those of its group who are still to be woken."""
        self.left = False
        """It does not wait for the commit any more."""

    def wake(self) -> None:
        """Let it see that it has the lock, or what came of its group."""
        wake(self._called)

    def give_back(self) -> None:
        """The block is over, or does not want to begin any more. Calling this twice is allowed."""
        self._turns.given_back(self)

    def tell(self, error: Optional[Exception], others: deque[Turn]) -> None:
        """The group is stored, or failed with *error*. It wakes *others*, when it is woken itself."""
        self.error = error
        self.others = others
        self._told = True

    def wait(self, seconds: float) -> bool:
        """Wait until it is woken; False when so many *seconds* have passed."""
        return self._called.acquire(timeout=seconds)

    def outcome(self) -> Optional[Exception]:
        """Give the transaction back, and wait for the commit. What it failed with, as an object for this thread."""
        self.give_back()
        try:
            while not self._told:
                if not self._called.acquire(timeout=_LOOK_AGAIN) and not self._turns.is_led() and not self._told:
                    return errors.DiskError("the thread that commits has ended, nobody knows whether this was stored")
        finally:
            self.left = True  # first: who wakes it looks at that afterwards
            wake_some(self.others)
        error = self.error
        if error is None:
            return None
        own = copy.copy(error)
        own.__cause__ = error
        return own


class Turns:
    """The write blocks that wait for the writer of one store, and the thread that lends them its transaction."""

    def __init__(self, store: Store, begin: Callable[[], Any]) -> None:
        """*begin* gives a new write transaction, which begins with its block."""
        self._store = store
        self._lock: WriterLock = store.writer
        self.queue: deque[Turn] = deque()
        self._lenders: dict[int, threading.Thread] = {}  # at most one, at 0
        self._work = taken_lock()
        self._gathering = Gathering(self._work)
        self._gathering.wanted = 1
        self._members: list[Turn] = []  # of the present group
        self._until = 0.0  # when it takes no more of them
        self._recent = 1  # blocks in the last group
        self._commit = 0.0  # seconds that its commit took
        self._rest_until = 0.0
        self._ended = False
        self._new = begin
        self._txn = self._next()

    def join(self, hold: Hold, timeout: Optional[float]) -> Optional[Turn]:
        """Wait until the writer lock is lent to *hold*. None: it has to wait for the lock by itself."""
        lock = self._lock
        start = _clock()
        if lock.owner == hold.thread or start < self._rest_until or is_stopped():
            return None
        deadline = None if timeout is None else start + timeout
        turn = Turn(self, hold, deadline)
        hold.turn = turn
        self.queue.append(turn)
        self._call()
        logged = False
        while not lock.is_lent(turn):
            if turn.alone and withdraw(self.queue, turn):
                hold.turn = None
                return None
            if turn.wait(_LOOK_AGAIN if deadline is None else max(0.0, min(_LOOK_AGAIN, deadline - _clock()))):
                continue
            now = _clock()
            if deadline is not None and now >= deadline and withdraw(self.queue, turn):
                raise lock.late(timeout)
            if now - start >= PATIENCE and not logged:
                log.warning("waiting for %s to end its write transaction", lock.shown_owner())
                logged = True
            lock.end_leftovers()
            if not self.is_led():
                turn.alone = True
        turn.leader = self._txn
        self._members.append(turn)
        return turn

    def given_back(self, turn: Turn) -> None:
        """The block of *turn* is over, or does not want to begin any more."""
        turn.gone = True  # first: who lends it the lock looks at that afterwards
        withdraw(self.queue, turn)
        lock = self._lock
        if lock.is_lent(turn):
            # One that changed the catalogue is the last: what others would find out holds only if that is stored.
            if self._txn._era is not None and _clock() <= self._until:
                self._lend_next(turn.right, turn)
            else:
                turn.right.clear()
            lock.give_back(turn)
            for one in lock.lent():
                one.wake()
                return
            wake(self._work)

    def _lend_next(self, right: list[deque[Turn]], by: Optional[Turn] = None) -> None:
        """By a *right* to do so, that of a member or the first one, lend the lock to the next in the queue."""
        with suppress(IndexError):  # nobody waits, or it was done
            self._lock.lend(zip(map(_take, islice(iter(right.pop, None), 1)), _NONE))
        for one in self._lock.lent()[-1:]:
            if one.gone and one is not by:
                one.give_back()

    def settle(self) -> None:
        """Wait until the lender has no transaction any more, if it has one for those who have given up."""
        end = _clock() + PATIENCE
        while self._txn.active and not self.queue and not self._members and _clock() < end:
            time.sleep(_PAUSE)

    def end(self) -> None:
        """The store is closed: let the lender end, too, and wait until it has."""
        self._ended = True
        lender = self._lenders.get(0)
        wake(self._work)
        if lender is not None and lender is not threading.current_thread():
            with suppress(RuntimeError):  # Python ends, and no longer waits for a thread
                lender.join(PATIENCE)

    def is_led(self) -> bool:
        """Whether there is a lender."""
        lender = self._lenders.get(0)
        return lender is not None and lender.is_alive()

    def _call(self) -> None:
        """See that there is a lender, who knows of the queue."""
        if not self._lenders:
            with suppress(RuntimeError):  # no more threads, or the program ends: they will see that nobody leads
                threading.Thread(target=self._lend, name="zlmdb-commit", daemon=True).start()
        elif len(self.queue) >= self._gathering.wanted:
            wake(self._work)

    # -- the lender -----------------------------------------------------------------------------------------------

    def _lend(self) -> None:
        me = threading.current_thread()
        if self._lenders.setdefault(0, me) is not me:
            return
        try:
            self._work_off()
        finally:
            del self._lenders[0]
        if self.queue:  # one came before that was said
            self._call()

    def _work_off(self) -> None:
        while True:
            self._gathering.wanted = 1
            if self.queue:
                self._gathering.wanted = NEVER_SO_MANY
                self._lead()
                self._gather()
            elif self._ended or not self._work.acquire(timeout=_LINGER):
                return

    def _lead(self) -> None:
        """Begin a transaction, lend it to those who wait, and commit."""
        failed: Optional[Exception] = None
        try:
            self._lend_to_all()
        except Exception as error:
            failed = error
            self._store.new_era()  # what was found out in this transaction does not hold
            late = isinstance(error, errors.WriterTimeout)  # who waited has given up; for others it begins again
            if not self._members and not late:  # each waits by itself, and meets its own error
                for turn in list(self.queue):
                    turn.alone = True
                    turn.wake()
        finally:
            members, self._members = self._members, []
            self._txn = self._next()
            self._lock.call(self._txn._hold)
            others: deque[Turn] = deque()
            for turn in members:
                turn.tell(failed, others)
            others.extend(members)  # afterwards: each of them is told
            wake_some(others)
            del failed

    def _lend_to_all(self) -> None:
        txn, lock = self._txn, self._lock
        # No longer than somebody waits for it: the database may be closed then.
        deadlines = [turn.deadline for turn in list(self.queue)]
        patient = [deadline for deadline in deadlines if deadline is not None]
        txn._timeout = max(0.0, max(patient, default=0.0) - _clock()) if len(patient) == len(deadlines) else None
        with txn:
            self._until = _clock() + max(self._commit, _SHORTEST)
            self._lend_next([self.queue])
            for first in lock.lent():
                first.wake()
            self._wait_for_members()
            committing = _clock()
        now = _clock()
        self._commit = now - committing
        self._recent = len(self._members)
        if self._commit < _FAST and txn._puts:
            self._rest_until = now + _REST

    def _wait_for_members(self) -> None:
        """Until the lock is lent to nobody. No exception leaves this: a member is writing in the transaction."""
        looks = 0
        while self._lock.lent():
            if not self._work.acquire(timeout=_LOOK_AGAIN):
                looks += 1
                try:
                    self._lock.end_leftovers()  # of a thread that has ended
                except Exception:
                    log.exception("a write block whose thread has ended could not be undone, and is tried again")
                if not COUNTS_REFERENCES and looks % _LOOKS == 0:
                    gc.collect()

    def _next(self) -> Any:
        """The transaction of the next group."""
        txn = self._new()
        txn._hold.join = None
        return txn

    def _gather(self) -> None:
        """Wait a little for those of the last group, who have just been released and may come again."""
        self._gathering.wait(self.queue, self._recent, self._commit * _GATHER)
        if not self.queue:
            self._lock.uncall(self._txn._hold)
