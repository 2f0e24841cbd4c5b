"""Group commit of functions: one commit stores what many callers write at the same time.

A durable commit waits for the disk. Functions that come meanwhile wait in a queue. The thread that becomes the next
writer is the *leader*: it runs all of them in one transaction, and commits once. If a function raises, only its own
changes are undone. No caller gets a result or an exception before the commit, because the function may have read what
another member of the group wrote.

A savepoint takes longer than a short function. So all functions run in one savepoint until one raises. Then that
savepoint is undone, and they run again, each in a savepoint of its own; so do the functions of the next groups.

If the commit of a group fails, each member runs alone and meets its own error. The same happens if the leader was
interrupted before the commit: `Transaction._told` records the commit in the very call that commits. A member that is
neither in the queue nor stored has lost its leader. Waiting members look for that from time to time, so a lost signal
does not stop them for ever.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from .. import errors
from ..locks import monotonic as _clock
from . import programend
from .futures import Submitted
from .holds import is_stopped, refuse_to_wait
from .members import Member, Own, Runs, any_of, cancelled, is_own
from .results import BODIES, refuse_body
from .store import Store
from .transactionstate import undone
from .waking import Gathering, taken_lock, wake, wake_some, withdraw
from .writerlock import Claim, WriterLock

if TYPE_CHECKING:
    from .asyncfutures import Desks

R = TypeVar("R")
_get_ident = threading.get_ident

_LOOK_AGAIN = 0.05  # seconds after which a member that waits looks whether anybody leads
_LINGER = 0.1  # seconds without work after which the thread of `submit` ends
_SHORTEST = 0.0005  # seconds that a group takes members for, however fast the disk is
_GATHER = 0.25  # of the time of a commit: what a leader waits for those who were in the group before
_STORED = "stored"
_WARY = 1024  # functions that run in savepoints of their own after one has raised


class Groups:
    """The functions that wait for the writer of one database, and who leads them."""

    _desks: Optional[Desks] = None  # where the worker tells tasks of asyncio
    _worker: Optional[threading.Thread] = None  # taken by `setdefault`, in one call

    def __init__(self, store: Store) -> None:
        self._store = store
        # Whether a commit waits for the disk, and there are savepoints.
        self._joins = store.engine.nests and store.engine.options.durability != "none"
        self._reset()

    def _reset(self) -> None:
        self._queue: deque[Member] = deque()
        self._submitted: dict[Member, Member] = {}  # in order; until their futures know
        self._lead = WriterLock(None)
        self._recent = 1  # members of the last group
        self._gathering = Gathering(taken_lock())
        self._commit = 0.0  # seconds that its commit took
        self._wary = 0  # so many functions are to run in savepoints of their own
        self.__dict__.pop("_worker", None)
        self._workers: dict[threading.Thread, None] = {}  # that one, and earlier ones that have perhaps not yet ended
        self._work = taken_lock()
        self.__dict__.pop("_desks", None)
        self._closing = False
        self._writer = self._store.writer

    def is_of_parent(self) -> bool:
        """Whether this is a forked child, whose store has another writer, and all that waits is that of its parent."""
        return self._writer is not self._store.writer

    def is_alone(self) -> bool:
        """Whether who comes now has no group to join."""
        return not self._joins or (self._recent <= 1 and not self._queue and not self._store.writer.is_taken())

    def run(self, db: Runs, fn: Callable[[Any], R], timeout: Optional[float]) -> R:
        """The result of *fn*, stored. Raises `WriterTimeout` after *timeout* seconds without a turn."""
        result: R
        if not self._joins or self._store.writer.owner == _get_ident():
            result = db._run_alone(fn, True)
            return result
        if self._writer is not self._store.writer:  # as `is_of_parent`, without the call
            self._reset()
        member = Member(fn, taken_lock())
        self._queue.append(member)
        try:
            if len(self._queue) >= self._gathering.wanted:
                self._gathering.end()
            while not member.told:
                if not self._lead.is_taken():
                    if self._advance(db, member, timeout):
                        result = member.outcome() if member.told else db._run_alone(fn, True)
                        return result
                elif not member.woken.acquire(timeout=_LOOK_AGAIN):
                    self._give_up(member, timeout)
                    self._lead.end_leftovers()
            others, member.others = member.others, None
            if others:
                wake_some(others)
            result = member.outcome()
            return result
        finally:
            self._leave(member)

    def submit(self, db: Runs, fn: Callable[[Any], R]) -> Future[R]:
        """*fn* is run and stored soon, by a thread of its own; the future tells when it is."""
        if self._writer is not self._store.writer:  # as `is_of_parent`, without the call
            self._reset()
        future: Submitted[R] = Submitted()
        future._queues = self
        member = Member(fn, self._work, future)
        self._submit(db, member)
        if programend.begun:
            programend.work_here(self, db, member)
        return future

    def awaited(self, db: Runs, fn: Callable[[Any], R], kept: bool) -> Awaitable[R]:
        """As `submit`, for a task of asyncio. If it is *kept*, it runs even if the task is cancelled before."""
        if self._writer is not self._store.writer:  # as `is_of_parent`, without the call
            self._reset()
        awaited = (self._desks or self._make_desks()).awaited(kept)
        self._submit(db, Member(fn, self._work, awaited))
        return awaited.future

    def _make_desks(self) -> Desks:
        from .asyncfutures import Desks  # late: not every program uses it

        return self.__dict__.setdefault("_desks", Desks(self))

    def _submit(self, db: Runs, member: Member) -> None:
        if self._closing and threading.current_thread() not in self._workers:  # else `close` might never end
            raise errors.DatabaseClosed(
                "the database is being closed: submit nothing more, or open it again afterwards"
            )
        # In one call. For who is among the submitted but not in the queue is taken for one that has lost its leader.
        self._queue.extend(map(self._submitted.setdefault, (member,), (member,)))
        if self._worker is None:
            try:
                self._start(db)
            except RuntimeError:
                if programend.is_near() and not self.may_be_kept():
                    programend.work_here(self, db, member)
                    return
                if withdraw(self._queue, member):  # the caller gets no future: it is not to be stored later
                    self._submitted.pop(member, None)
                raise
        elif not self._lead.is_taken():
            member.wake()
        elif len(self._queue) >= self._gathering.wanted:
            self._gathering.end()

    def finish(self, until: float = 1e300) -> None:
        """Wait until what was submitted is stored, unless this thread itself keeps it from that; or that time comes."""
        me = threading.current_thread()
        if self.is_of_parent() or is_stopped():
            return
        self._closing = True
        try:
            ended = {me}
            while waited := [one for one in list(self._workers) if one not in ended]:  # others may begin meanwhile
                while self._store.writer.owner != me.ident and _clock() < until:
                    wake(self._work)
                    going = programend.goes_on(waited[0], _LOOK_AGAIN)
                    if not (self._worker is waited[0] if going is None else going):  # an interrupt stopped its start
                        break
                ended.add(waited[0])
        finally:
            self._closing = False

    def desk(self) -> Any:
        """That of the running event loop, which looks whether a task waits for itself; None without one."""
        from asyncio import get_running_loop  # late, as in `_make_desks`

        try:
            return (self._desks or self._make_desks()).desk(get_running_loop())
        except RuntimeError:
            return None

    def may_be_kept(self) -> bool:
        """Whether this thread has a write transaction open, or is the worker."""
        me, worker = _get_ident(), self._worker
        return self._store.writer.owner == me or (worker is not None and worker.ident == me)

    def is_kept(self) -> bool:
        """Whether what was submitted waits until this thread goes on.

        It is the worker, or it has a write transaction open, for whose end the one who leads waits.
        """
        me, worker, writer = _get_ident(), self._worker, self._store.writer
        if worker is not None and worker.ident == me:
            return True
        if writer.owner != me:
            return False
        waits = {hold.thread for hold in list(writer._waiters)}
        if self._store.turns is not None:
            waits.update([turn.hold.thread for turn in list(self._store.turns.queue)])
        return self._lead.owner in waits or (worker is not None and worker.ident in waits)

    def take_back(self, member: Member) -> bool:
        """Do not run *member*; False if it runs, or has run."""
        return withdraw(self._queue, member) and self._submitted.pop(member, None) is not None

    # -- to lead --------------------------------------------------------------------------------------------------

    def _advance(self, db: Runs, member: Member, timeout: Optional[float]) -> bool:
        """Lead a group, if nobody does. Whether *member* need not wait: it is stored, or has lost its leader."""
        members: list[Member] = []
        leads = False
        try:
            with Claim(self._lead, 0):
                leads = True
                if member.told:
                    return True
                if not self._store.engine.nests:
                    withdraw(self._queue, member)
                if member not in self._queue:  # or it had a leader, who is gone
                    return True
                self._lead_group(db, members, timeout)
        except errors.WriterTimeout:
            if leads and withdraw(self._queue, member):
                raise
        except Exception:
            if not members:
                raise  # nothing began
        finally:
            self._tell(members)
        return False

    def _lead_group(self, db: Runs, members: list[Member], timeout: Optional[float]) -> None:
        # Those of the last group have just been released, and may come again.
        self._gathering.wait(self._queue, self._recent, self._commit * _GATHER)
        told: list[object] = []
        # No signal interrupts a worker, so what comes in it is of the function.
        own = any_of if threading.current_thread() in self._workers else is_own
        block = db.write(timeout=timeout)
        hold = block.txn._hold
        join, hold.join = hold.join, None  # it leads a group of its own
        try:
            with block as tables:
                hold.join = join
                began = _clock()
                txn = tables.txn
                txn._odd = True
                txn._told = told
                txn._instruction = -1  # it is open in the rest of this function
                most = max(self._commit, _SHORTEST)
                if self._wary <= 0:
                    self._run_together(tables, members, told, own, began + most)
                while self._queue and (not members or _clock() - began <= most):
                    members.extend(islice(iter(self._queue.popleft, None), 1))  # in one call: no interrupt in between
                    self._run_member(tables, members[-1], told, own)
                committing = _clock()
        finally:
            hold.join = join  # it may not have begun
        self._commit = _clock() - committing
        self._recent = len(members)

    def _starts(self, member: Member) -> bool:
        """Whether *member* is to run: it was not cancelled."""
        future = member.future
        if future is not None and not member.begun:
            member.begun = True
            if not future.set_running_or_notify_cancel():
                self._cancel(member)
        return member.fn is not cancelled

    def _cancel(self, member: Member) -> bool:
        self._submitted.pop(member, None)
        member.fn = cancelled
        return False

    def _run_together(self, tables: Any, members: list[Member], told: list[object], own: Own, until: float) -> None:
        """Run those who wait in one savepoint, or, if one of them raises, each in a savepoint of its own."""
        txn, queue = tables.txn, self._queue
        taken = iter(queue.popleft, None)
        hooks = txn._hooks
        first = count = len(hooks)
        ends: list[tuple[Member, int]] = []  # of the hooks of those that have some
        try:
            with txn.savepoint():
                while queue and (not members or _clock() <= until):
                    members.extend(islice(taken, 1))  # as `_starts` and `Member.run`, without the calls
                    member = members[-1]
                    future = member.future
                    if future is None or member.begun:
                        starts = member.fn is not cancelled
                    else:
                        member.begun = True
                        starts = future.set_running_or_notify_cancel() or self._cancel(member)
                    if starts:
                        result = member.context.run(member.fn, tables)
                        if type(result) in BODIES:
                            refuse_body(result)
                        if txn._deferred is not None:  # a link is not to wait for what another function stores
                            txn._check_deferred()
                        member.result = result
                        if len(hooks) != count:
                            count = len(hooks)
                            ends.append((member, count))
        except BaseException as error:
            if txn._error is not None or not (isinstance(error, Exception) or (members and own(members[-1], error))):
                raise
            self._wary = _WARY
            for member in members:
                self._run_member(tables, member, told, own)
            return
        if txn._error is not None:
            raise txn._error
        added, start = hooks[first:], first
        del hooks[first:]
        for member, end in ends:
            member.hooks = added[start - first : end - first]
            start = end
        for member in members:
            member.told = told

    def _run_member(self, tables: Any, member: Member, told: list[object], own: Own) -> None:
        txn = tables.txn
        hooks = len(txn._hooks)
        self._wary -= 1
        if not self._starts(member):
            return
        try:
            with txn.savepoint():
                member.run(tables)
                if txn._deferred is not None:
                    txn._check_deferred()
        except errors.DatabaseInUse:  # perhaps it ends its transaction itself, and needs one of its own
            return
        except BaseException as error:
            if not isinstance(error, Exception) and not own(member, error):
                raise
            member.error = error
        if txn._error is not None:
            raise txn._error  # nothing can be committed
        member.hooks = txn._hooks[hooks:]
        del txn._hooks[hooks:]
        member.told = told

    def _tell(self, members: list[Member]) -> None:
        """After the group, when nobody leads: its members look what came of it, and the next one leads."""
        works, submitted = False, self._submitted
        stored: deque[Member] = deque()
        here = self._worker is threading.current_thread()
        for member in members:
            future = member.future
            if not member.told and member.hooks:  # its group is not stored, and it runs again
                hooks, member.hooks = member.hooks, ()
                undone(hooks)
            if future is None:
                if member.told:
                    member.others = stored
                    stored.append(member)
                else:
                    member.wake()
                continue
            works = True
            if here and member.told:
                if member.error is not None or member.hooks:
                    self._deliver(member, _STORED)
                elif submitted.pop(member, None) is not None:  # as `_deliver`, without the call
                    future.set_result(member.result)
        if works:
            if here:
                self._post()
            wake(self._work)  # it delivers the rest, as no signal can interrupt it
        if stored:
            wake_some(stored)
        with suppress(IndexError):
            self._queue[0].wake()

    def _give_up(self, member: Member, timeout: Optional[float]) -> None:
        refuse_to_wait(self._lead.owner, self._store.engine.path)
        if timeout is not None and _clock() - member.since > timeout and withdraw(self._queue, member):
            raise errors.WriterTimeout(
                f"other threads of this process have held the write transaction for more than the timeout of "
                f"{timeout} s: try again, or give a longer timeout",
                path=self._store.engine.path,
            )

    def _leave(self, member: Member) -> None:
        """The caller goes, perhaps by an interrupt: whoever is next is not to wait for it."""
        member.left = True  # first: who wakes it looks at that afterwards
        if member.others:
            wake_some(member.others)
        if not member.told:  # else a leader has taken it out
            withdraw(self._queue, member)
        if self._queue and not self._lead.is_taken():
            with suppress(IndexError):
                self._queue[0].wake()

    # -- what was submitted ---------------------------------------------------------------------------------------

    def _start(self, db: Runs) -> None:
        if is_stopped():
            raise RuntimeError("the program ends, and Python begins no more threads: write with run()")
        programend.watch(self)
        worker = threading.Thread(target=self._work_off, args=(db,), name=programend.WORKER, daemon=programend.begun)
        for one in list(self._workers):
            if one.ident is not None and not one.is_alive():
                self._workers.pop(one, None)
        try:
            self._workers[worker] = None
            other = self.__dict__.setdefault("_worker", worker)
            if other is not worker and other.is_alive():  # it was about to end, and has seen that there is work
                self._workers.pop(worker, None)
                return
            self._worker = worker
            worker.start()
        except BaseException as error:
            self.__dict__.pop("_worker", None)  # else nobody would start another, and what is submitted never ran
            if isinstance(error, RuntimeError):  # there is no room for a thread
                self._workers.pop(worker, None)
            raise

    def _work_off(self, db: Runs) -> None:
        """The thread of what was submitted. It ends when there was nothing to do for a while."""
        me = threading.current_thread()
        last: Optional[list[Member]] = None  # of what Python waits for
        while True:
            self._settle(db)
            if last is None and not me.daemon and programend.is_due():
                last = list(self._submitted)
            left = self._submitted if last is None else [one for one in last if one in self._submitted]
            if left or (last is None and not self._closing and self._work.acquire(timeout=_LINGER)):
                continue
            if self._worker is me:
                self.__dict__.pop("_worker", None)
            if last is not None or not self._submitted:
                return
            # It came before that was said. Two threads at once would call what waits for its commit in any order.
            if self.__dict__.setdefault("_worker", me) is not me:
                return

    def _settle(self, db: Runs) -> None:
        """Let what was submitted go on: lead, or see what became of it."""
        for member in list(self._submitted):
            if member not in self._submitted:  # it was told with its group
                continue
            if member.told:
                self._deliver(member, _STORED)
            elif self._lead.owner is None:
                self._post()
                try:
                    if self._advance(db, member, None) and not member.told:
                        self._deliver(member, partial(db._run_alone, member.fn, True))
                except BaseException as error:
                    withdraw(self._queue, member)
                    self._deliver(member, error)
            else:
                self._post()
                self._work.acquire(timeout=_LOOK_AGAIN)
                self._lead.end_leftovers()
                return
        self._post()

    def _post(self) -> None:
        """Tell the tasks of asyncio what became of their functions."""
        desks = self._desks
        if desks is not None and desks.outbox:
            desks.post()

    def _deliver(self, member: Member, outcome: Any) -> None:
        """Tell the future of *member* what *outcome*, an exception, a function, or `_STORED`, gives; once."""
        future: Any = member.future  # whatever is submitted has one
        if self._submitted.pop(member, None) is None:  # another thread has told it
            return
        if not member.begun and not future.set_running_or_notify_cancel():
            return
        if outcome is _STORED:
            if member.error is None and not member.hooks:  # as below, with less around it
                future.set_result(member.result)
                return
            outcome = member.outcome
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            result = member.context.run(outcome)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
