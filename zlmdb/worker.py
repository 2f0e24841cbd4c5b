"""Waiting for the jobs of a queue, in threads and in tasks of asyncio."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar
from uuid import UUID

from . import Database, Schema, errors
from .feed.doorbell import PATIENCE, Doorbell
from .locks import monotonic
from .loops import running_loop
from .missingattributes import has_no
from .numeric import checked_seconds
from .queue import Lease, Queue, checked_time
from .shown import shortened
from .store.asyncfutures import waits_for

S = TypeVar("S", bound=Schema)
T = TypeVar("T")

_LONG = 1.0  # seconds after which nobody leaves a job to a claim any more: its task may never go on
_LEAST = 0.001  # seconds to wait for a delay to end, of which less may be left for long where a test stops the clock
_COUNT = "ask the queue: `with db.read() as t:`, and in it t.jobs.ready.count()"
_INSTEAD = {
    **dict.fromkeys(("claim", "dequeue", "pop", "receive"), "write .get(), which waits for a job"),
    **dict.fromkeys(("ack", "acknowledge", "complete", "task_done"), "write .done(lease)"),
    **dict.fromkeys(("nack", "reject", "requeue", "retry"), "write .fail(lease), or .release(lease) if not tried"),
    **dict.fromkeys(("empty", "qsize", "size"), _COUNT),
    "get_nowait": "write .get(timeout=0)",
    "put_nowait": "write .put(body)",
}
"""What to write in place of methods that other queues have."""

_NO_JOB = "no job could be claimed within {} seconds"


class Worker(Generic[T]):
    """Puts and gets the jobs of one queue, each operation in a transaction of its own.

    ``Worker(db, lambda t: t.mails)``: the function returns the queue in a transaction. *lease*: the seconds for a job,
    by default those of the queue.

    A worker can be used by any number of threads and tasks. A worker that waits sleeps. It is woken by the commit of a
    job, in this process or another, and by the end of a delay or a lease. Where the system has no named pipes (Windows)
    it looks for the jobs of other processes every 20 ms.
    """

    def __init__(self, db: Database[S], queue: Callable[[S], Queue[T]], /, *, lease: Optional[float] = None) -> None:
        given: Any = queue
        if not callable(given):
            raise TypeError(
                f"expected a function that returns the queue, got {shortened(given)}: Worker(db, lambda t: t.jobs)"
            )
        given = db
        if not isinstance(given, Database):
            raise TypeError(
                f"expected a database, got {shortened(given)}: Worker(db, lambda t: t.jobs), outside of its blocks"
            )
        if lease is not None:
            checked_time("lease", lease)
        self._db: Database[Any] = db
        self._given: Callable[[Any], Queue[T]] = queue
        self._seconds = lease

    def __repr__(self) -> str:
        return f"<worker of {self._db!r}>"

    if not TYPE_CHECKING:  # checkers report it

        def __iter__(self):
            raise TypeError("a worker is not iterated over: write `while True:` and in it `with worker.job() as job:`")

        def __getattr__(self, name):
            raise AttributeError(has_no(self, name, _INSTEAD.get(name, "")))

    # -- in threads -------------------------------------------------------------------------------------------------

    def put(self, body: T, /, *, priority: int = 0, delay: float = 0) -> UUID:
        """`Queue.put`; returns when the job is stored. The jobs that several threads put share their commits."""
        return self._db.run(lambda t: self._queue(t).put(body, priority=priority, delay=delay))

    def get(self, timeout: Optional[float] = None) -> Lease[T]:
        """Claim the next job; wait for one if there is none. Raises TimeoutError after *timeout* seconds without one.

        If more than 1000 delays or leases have ended, and *timeout* is over before all of them are sorted by priority,
        the job is the first of those that are.

        Must not be called inside a write transaction of this thread, which raises `NestedTransaction`.
        """
        mine: list[Lease[T]] = []
        try:
            lease = self._get(timeout, mine)
        except BaseException as error:
            self._give_back_unseen(mine, error)
            raise
        return lease

    def _get(self, timeout: Optional[float], mine: list[Lease[T]]) -> Lease[T]:
        """As `get`; *mine* has the lease as soon as there is one, for a caller that is interrupted."""

        def claimed() -> Optional[Lease[T]]:
            with _Claim(self, bell):
                while True:
                    sorts = waits.may_go_on
                    lease, more = self._db.run(partial(self._claim_as, mine, sorts))
                    if lease is not None or not (more and sorts):
                        return lease

        waits = _Waits(timeout)
        pause, bell = self._look()
        found = claimed() if pause == 0 else None
        if found is not None:
            return found
        waits.next(pause)  # raises without a pipe if there is no time to wait
        if self._db._open_store.writer.owner == get_ident():
            raise errors.NestedTransaction(
                "get() waits for a job, which nobody can put while this thread has a write transaction open: call it "
                "outside of the block, or use the queue's claim() inside, which does not wait"
            )
        with bell.listen() as wait:
            heard = False
            while True:
                pause = self._look_again(bell, heard)
                found = claimed() if pause == 0 else None
                if found is not None:
                    return found
                heard = wait(waits.next(pause))

    def done(self, lease: Lease[T], /) -> None:
        """`Queue.done`."""
        self._db.run(lambda t: self._queue(t).done(lease))

    def fail(self, lease: Lease[T], /, error: object = "", *, delay: Optional[float] = None) -> None:
        """`Queue.fail`."""
        self._db.run(lambda t: self._queue(t).fail(lease, error, delay=delay))

    def release(self, lease: Lease[T], /) -> None:
        """`Queue.release`."""
        self._db.run(lambda t: self._queue(t).release(lease))

    def extend(self, lease: Lease[T], /, seconds: Optional[float] = None) -> Lease[T]:
        """`Queue.extend`."""
        return self._db.run(lambda t: self._queue(t).extend(lease, seconds))

    def job(self, timeout: Optional[float] = None) -> AbstractContextManager[Lease[T], None]:
        """A block with the next job: its end acknowledges the job, and an exception gives it back as failed.

        The exception leaves the block. An exception that is no `Exception`, such as KeyboardInterrupt, releases the
        job. Raises TimeoutError as `get`, and `LeaseLost`.
        """
        return _JobBlock(self, timeout)

    def _give_back(self, lease: Lease[T], error: BaseException) -> None:
        with suppress(errors.Error):  # the exception of the block tells more, and the lease ends in any case
            if isinstance(error, Exception):
                self.fail(lease, error)
            else:
                self.release(lease)

    def _give_back_unseen(self, mine: list[Lease[T]], error: BaseException) -> None:
        """Release what was claimed for a caller that *error* interrupts, who does not see the lease.

        After an interrupt, another thread may still claim it in its commit; what is submitted comes after that.
        """
        if mine or not isinstance(error, Exception):
            with suppress(errors.Error, RuntimeError):  # no room for a thread: the lease ends in any case
                self._db.submit(lambda t: self._released(t, *mine))

    # -- in asyncio -------------------------------------------------------------------------------------------------

    async def aput(self, body: T, /, *, priority: int = 0, delay: float = 0) -> UUID:
        """As `put`, in asyncio."""
        return await self._db.arun(lambda t: self._queue(t).put(body, priority=priority, delay=delay))

    async def aget(self, timeout: Optional[float] = None) -> Lease[T]:
        """As `get`, in asyncio. A job that was claimed for a task that is cancelled meanwhile is released."""
        mine: list[Lease[T]] = []
        asked: list[None] = []  # not empty while a claim is on its way, or has given a job
        try:
            lease = await self._aget(timeout, mine, asked)
        except BaseException as error:  # it is cancelled, interrupted, or collected after the end of its loop
            if asked:
                self._give_back_unseen(mine, error)
            raise
        return lease

    async def _aget(self, timeout: Optional[float], mine: list[Lease[T]], asked: list[None]) -> Lease[T]:
        waits = _Waits(timeout)
        pause, bell = self._look()
        found = await self._aclaim(bell, waits, mine, asked) if pause == 0 else None
        if found is not None:
            return found
        waits.next(pause)
        async with bell.alisten() as wait:
            heard = False
            while True:
                await self._db._refuse_to_wait()
                pause = self._look_again(bell, heard)
                found = await self._aclaim(bell, waits, mine, asked) if pause == 0 else None
                if found is not None:
                    return found
                heard = await wait(waits.next(pause))

    async def adone(self, lease: Lease[T], /) -> None:
        """As `done`, in asyncio. If the task is cancelled meanwhile, the job is acknowledged all the same."""
        await self._db._awaited(lambda t: self._queue(t).done(lease), kept=True)

    async def afail(self, lease: Lease[T], /, error: object = "", *, delay: Optional[float] = None) -> None:
        """As `fail`, in asyncio. If the task is cancelled meanwhile, the job is given back all the same."""
        await self._db._awaited(lambda t: self._queue(t).fail(lease, error, delay=delay), kept=True)

    async def arelease(self, lease: Lease[T], /) -> None:
        """As `release`, in asyncio. If the task is cancelled meanwhile, the job is given back all the same."""
        await self._db._awaited(lambda t: self._queue(t).release(lease), kept=True)

    async def aextend(self, lease: Lease[T], /, seconds: Optional[float] = None) -> Lease[T]:
        """As `extend`, in asyncio. If the task is cancelled meanwhile, the lease may be extended or not."""
        return await self._db.arun(lambda t: self._queue(t).extend(lease, seconds))

    def ajob(self, timeout: Optional[float] = None) -> AbstractAsyncContextManager[Lease[T], None]:
        """As `job`, in asyncio. A task that is cancelled releases its job."""
        return _AsyncJobBlock(self, timeout)

    async def _agive_back(self, lease: Lease[T], error: BaseException) -> None:
        with suppress(errors.Error):  # as in `_give_back`
            if isinstance(error, Exception):
                await self.afail(lease, error)
            else:
                self._db.submit(lambda t: self._released(t, lease))

    async def _aclaim(
        self, bell: Doorbell, waits: _Waits, mine: list[Lease[T]], asked: list[None]
    ) -> Optional[Lease[T]]:  # fmt: skip
        loop = running_loop()  # raises before anything is claimed
        with _Claim(self, bell):
            while True:
                await self._db._refuse_to_wait()
                asked.append(None)
                sorts = waits.may_go_on
                future = self._db.submit(partial(self._claim_as, mine, sorts))
                try:
                    lease, more = await waits_for(future, loop)
                except BaseException:
                    if future.cancel():
                        asked.clear()
                    raise
                if lease is not None:
                    return lease
                asked.clear()
                if not (more and sorts):
                    return None

    def _released(self, t: Any, *leases: Lease[T]) -> None:
        for lease in leases:
            with suppress(errors.LeaseLost):
                self._queue(t).release(lease)

    # -- looking ----------------------------------------------------------------------------------------------------

    def _queue(self, t: Any) -> Queue[T]:
        found = self._given(t)
        given: Any = found
        if not isinstance(given, Queue):
            raise TypeError(
                f"the function of the worker returns {shortened(given)}, no queue: Worker(db, lambda t: t.jobs)"
            )
        if given.txn is not t.txn:
            raise ValueError(
                "the function of the worker returns the queue of another transaction: Worker(db, lambda t: t.jobs), "
                "with the t that it is given"
            )
        return found

    def _claim_as(self, mine: list[Lease[T]], sorts: bool, t: Any) -> tuple[Optional[Lease[T]], bool]:
        """The next job, which is put into *mine*; with *sorts* None, and true, where more have to be sorted before."""
        lease, more = self._queue(t)._claim(self._seconds, sorts=sorts)
        mine[:] = () if lease is None else (lease,)  # in place of that of a transaction that was undone
        return lease, more

    def _look(self) -> tuple[Optional[float], Doorbell]:
        """`Queue.pause` and the bell of the queue, in a snapshot: a worker that waits disturbs no writer.

        Of those who wait, no more are to claim a job than there are jobs: others may be about to.
        """
        with self._db.read() as t:
            queue = self._queue(t)
            bell = queue._bell()
            notifier = bell.notifier
            if not notifier.claims:
                return queue.pause(), bell
            notifier.missed = True  # first: who ends a claim looks at that afterwards
            return queue._pause(notifier.claiming(monotonic() - _LONG)), bell

    def _look_again(self, bell: Doorbell, heard: bool) -> Optional[float]:
        """As `_look`, for one who listens; who has *heard* the bell need not, if another one has looked since."""
        notifier = bell.notifier
        if notifier.claims:
            notifier.missed = True
        latest = notifier.latest
        known, until = notifier.idle
        if heard and known is latest and until > monotonic():
            return until - monotonic()
        pause, _ = self._look()
        if pause != 0:
            notifier.idle = latest, monotonic() + (PATIENCE if pause is None else min(pause, PATIENCE))
        return pause


class _Claim:
    """A block in which a job is claimed: others of this process leave as many jobs as there are such blocks."""

    def __init__(self, worker: Worker[Any], bell: Doorbell) -> None:
        self._worker, self._bell = worker, bell

    def __enter__(self) -> None:
        self._bell.notifier.claims[self] = monotonic()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        notifier = self._bell.notifier
        notifier.claims.pop(self, None)
        if notifier.missed:
            notifier.missed = False
            pause: Optional[float] = 0.0
            if kind is None:
                with suppress(errors.Error):
                    pause, _ = self._worker._look()
            if pause == 0:
                self._bell.ring()


class _Unentered(Generic[T]):
    """The block of a job of *worker*, which is claimed when the block begins."""

    _written = ""

    def __init__(self, worker: Worker[T], timeout: Optional[float]) -> None:
        self._worker = worker
        self._timeout = timeout
        self._lease: Optional[Lease[T]] = None

    if not TYPE_CHECKING:  # checkers report it

        def __getattr__(self, name):
            advice = "" if name.startswith("_") else f": a job is claimed for a block: write `{self._written} as job:`"
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}")

        def _refuse(self, *error):
            raise TypeError("write `with worker.job() as job:`, or in asyncio `async with worker.ajob() as job:`")


class _JobBlock(_Unentered[T]):
    """The block of `Worker.job`."""

    _written = "with worker.job()"
    if not TYPE_CHECKING:
        __aenter__ = __aexit__ = _Unentered._refuse

    def __enter__(self) -> Lease[T]:
        mine: list[Lease[T]] = []
        try:
            lease = self._lease = self._worker._get(self._timeout, mine)
        except BaseException as error:
            self._lease = None
            self._worker._give_back_unseen(mine, error)
            raise
        return lease

    def __exit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        lease, self._lease = self._lease, None
        if lease is None:
            return
        if error is None:
            self._worker.done(lease)
        else:
            self._worker._give_back(lease, error)


class _AsyncJobBlock(_Unentered[T]):
    """The block of `Worker.ajob`."""

    _written = "async with worker.ajob()"
    if not TYPE_CHECKING:
        __enter__ = __exit__ = _Unentered._refuse

    async def __aenter__(self) -> Lease[T]:
        lease = self._lease = await self._worker.aget(self._timeout)
        return lease

    async def __aexit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        lease, self._lease = self._lease, None
        if lease is None:
            return
        if error is None:
            await self._worker.adone(lease)
        else:
            await self._worker._agive_back(lease, error)


class _Waits:
    """How long a worker waits until it looks again, while there is no job."""

    def __init__(self, timeout: Optional[float]) -> None:
        if timeout is not None:
            timeout = checked_seconds("timeout", timeout, ", or None to wait for ever", negative=True)
        self._timeout = timeout
        self._end = None if timeout is None else monotonic() + timeout

    @property
    def may_go_on(self) -> bool:
        """Whether there is time left: to sort all jobs that are due may take longer."""
        return self._end is None or monotonic() < self._end

    def next(self, pause: Optional[float]) -> float:
        """The seconds to wait for the bell. *pause*: until a job can be claimed, as far as is known.

        Raises TimeoutError if there are none left.
        """
        seconds = PATIENCE if pause is None else min(max(pause, _LEAST), PATIENCE) if pause else 0.0
        if self._end is not None:
            left = self._end - monotonic()
            if left <= 0:
                raise TimeoutError(_NO_JOB.format(self._timeout))
            seconds = min(seconds, left)
        return seconds
