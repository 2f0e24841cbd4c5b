"""A queue of jobs, as a table of a schema: what changes it is part of the transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Optional, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from . import Selection, Table, errors, keys
from .feed.doorbell import Doorbell
from .log import log
from .missingattributes import tell_more
from .numeric import checked_seconds, is_whole
from .shown import shortened, show
from .store.transactionstate import Undone
from .tables.advice import OF_QUEUES

T = TypeVar("T")

JobKey = tuple[int, int, UUID]
"""The key of a job: its state, its rank among the jobs in this state, and its id."""

_READY, _DELAYED, _LEASED, _DEAD = range(4)
_SECOND = 1_000_000
_AT_ONCE = 1000  # jobs whose delay or lease is over and that one claim makes ready; or leases that it shortens
_LONGEST = 3600.0
_A_CLOCK = "expected a function that returns the time in seconds since 1970"
_LONGEST_OF_ALL = 10**12  # seconds: when they are over is a part of a key, in microseconds, of 64 bits
_MOST = (1 << 63) - 1  # as a priority: its negative is a part of the key
_bells: WeakKeyDictionary[Any, Doorbell] = WeakKeyDictionary()  # by the storage of the queue
_looked: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # when this process has looked at its leases
_shortened: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # up to which key, while there are more to look at
_new_id = keys.key_codec(UUID).new_key


@dataclass
class Job(Generic[T]):
    """A job as a `Queue` stores it.

    *attempts* counts how often it was claimed, and *error* is what the last failed attempt left. *lease*: for how many
    seconds it was claimed. *claims* counts also what `Queue.release` and `Queue.revive` take from the attempts.
    """

    body: T
    priority: int = 0
    attempts: int = 0
    error: str = ""
    lease: float = 0.0
    claims: int = field(default=0, compare=False)  # which tells one lease of the job from all others


@dataclass(frozen=True)
class Lease(Generic[T]):
    """A job that a worker has claimed, until *until* in seconds since 1970."""

    key: JobKey
    job: Job[T] = field(hash=False)  # it can be changed, and its body may have no hash
    # Where the job is since it was extended, the last one last: a transaction may be undone.
    _moved: list[JobKey] = field(default_factory=list[JobKey], repr=False, compare=False)

    @property
    def body(self) -> T:
        """What was put into the queue."""
        return self.job.body

    @property
    def id(self) -> UUID:
        """The id that `Queue.put` returned."""
        return self.key[2]

    @property
    def attempts(self) -> int:
        """How often the job was claimed, this time included."""
        return self.job.attempts

    @property
    def until(self) -> float:
        """When the lease ends, in seconds since 1970."""
        return self.key[1] / _SECOND

    if not TYPE_CHECKING:  # checkers report it

        def __enter__(self):
            raise TypeError("a lease is no block: write `with worker.job() as job:`, the end of which acknowledges it")

        def __exit__(self, *error):
            """Never reached."""


class Queue(Table[tuple[keys.Uint8, int, UUID], Job[T]], Generic[T]):
    """A table of jobs. A worker claims a job for some time; what it does not acknowledge in time is claimed again.

    Declare it like a table, ``mails: zlmdb.Queue[Mail]``, or with options as a class of its own::

        class Mails(zlmdb.Queue[Mail], lease=30, attempts=3, backoff=10): ...

    *lease*: the seconds that a worker has for a job, by default 60. *attempts*: how often a job is tried before it is a
    dead letter, by default 5. *backoff*: the seconds between the first attempt and the second, by default 1; each
    further pause is twice as long, up to an hour. *clock*: a function that returns the time in seconds since 1970, for
    tests.

    Jobs of a higher *priority* come first; jobs of one priority in the order in which they were put, which between
    processes is that of their clocks, to the millisecond. All methods are part of the transaction and cost O(log n). A
    `Worker` waits for jobs. The records are jobs by state, rank and id; `ready`, `delayed`, `leased` and `dead` select
    them.
    """

    _lease: ClassVar[float] = 60.0
    _attempts: ClassVar[int] = 5
    _backoff: ClassVar[float] = 1.0
    _clock: ClassVar[tuple[Callable[[], float]]] = (lambda: time.time(),)  # in a tuple it is no method

    def __init_subclass__(
        cls,
        *,
        lease: Optional[float] = None,
        attempts: Optional[int] = None,
        backoff: Optional[float] = None,
        clock: Optional[Callable[[], float]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if lease is not None:
            cls._lease = checked_time("lease", lease)
        if attempts is not None:
            if not is_whole(attempts) or attempts < 1:
                raise ValueError(
                    f"attempts={shortened(attempts)}: expected an int, 1 or more: a job is tried once at least"
                )
            cls._attempts = attempts
        if backoff is not None:
            cls._backoff = checked_time("backoff", backoff)
        if clock is not None:
            if not callable(clock):
                raise TypeError(f"clock={shortened(clock)}: {_A_CLOCK}")
            cls._clock = (clock,)

    def put(self, body: T, /, *, priority: int = 0, delay: float = 0) -> UUID:
        """Add a job, and return its id. It can be claimed when *delay* seconds have passed.

        The commit wakes the workers that wait for the queue, in all processes.
        """
        checked_time("delay", delay)
        if not is_whole(priority) or not -_MOST <= priority <= _MOST:
            raise ValueError(f"priority={shortened(priority)}: expected an int of 64 bits, more than {-_MOST - 1}")
        id: UUID = _new_id(None)
        self._enqueue(id, Job(body, priority), delay)
        return id

    if not TYPE_CHECKING:  # checkers know that of the table, which takes a key

        def get(self, *given: Any) -> Any:
            """As of a table. Without a key, as of another queue, it says what to write."""
            if not given:
                raise TypeError("get() looks up the key of a job: write .claim(), which gives the next job, or None")
            return super().get(*given)

    def add(self, value: Job[T], /) -> NoReturn:
        """Refused: a new key would be no state of a job. Use `put`."""
        raise TypeError(f"a job is put, not added: write .put({shortened(value)}), with what the worker gets")

    def claim(self, *, lease: Optional[float] = None) -> Optional[Lease[T]]:
        """The next job, which nobody else gets for *lease* seconds; None if no job is ready.

        A claimed job must be acknowledged by `done`, or given back by `fail` or `release`. A job whose lease ends is
        claimed again, or is a dead letter if it has had all its attempts. If the clock is set back, a lease ends as
        many seconds after the first look as it had in the beginning, at the latest.

        A job that cannot be decoded becomes a dead letter as it is, and the error is logged; in a queue with indexes or
        a feed it raises `DecodeError`.

        Where more than 1000 delays have ended since the last claim, or leases, it knows the priorities of 1000 of them.
        A `Worker` takes all into account, as long as its timeout lets it.
        """
        return self._claim(lease)[0]

    def _claim(self, lease: Optional[float], *, sorts: bool = False) -> tuple[Optional[Lease[T]], bool]:
        """As `claim`, and whether there may be more jobs to make ready; if there are and *sorts*, it claims none."""
        self._check_write()  # also where there is no job, which a read transaction would take for an empty queue
        now = self._now()
        seconds = self._lease if lease is None else checked_time("lease", lease)
        try:
            more = self._wake_up(now)
            found = self.first()
        except errors.DecodeError:
            more, found = self._past_unreadable(now)
        if (more and sorts) or found is None or found[0][0] != _READY:
            return None, more
        key, job = found
        job.attempts += 1
        job.claims += 1
        return self._leased(key, job, now, seconds), more

    def done(self, lease: Lease[T], /) -> None:
        """Acknowledge a claimed job, which deletes it.

        Raises `LeaseLost` if the lease has ended and the job was claimed again, or became a dead letter. The
        transaction should be undone then, with what it did for the job.
        """
        del self[self._held(lease)[0]]

    def fail(self, lease: Lease[T], /, error: object = "", *, delay: Optional[float] = None) -> None:
        """Give back a claimed job that failed with *error*: it is tried again after a pause, or becomes a dead letter.

        *delay*: the pause in seconds, in place of the one that grows with the attempts. Raises `LeaseLost`.
        """
        key, job = self._held(lease)
        job.error = _text_of(error)
        if job.attempts >= self._attempts:
            self._bury(key, job)
        else:
            pause = min(self._backoff * 2 ** min(job.attempts - 1, 64), max(_LONGEST, self._backoff))
            self._enqueue(lease.id, job, pause if delay is None else checked_time("delay", delay), key)

    def release(self, lease: Lease[T], /) -> None:
        """Give back a claimed job that was not tried: it can be claimed at once. Raises `LeaseLost`."""
        key, job = self._held(lease)
        job.attempts -= 1
        self._enqueue(lease.id, job, 0, key)

    def extend(self, lease: Lease[T], /, seconds: Optional[float] = None) -> Lease[T]:
        """A lease that ends in *seconds*, by default the time of the queue; *lease* still stands for the job, too.

        Raises `LeaseLost`.
        """
        key, job = self._held(lease)
        seconds = self._lease if seconds is None else checked_time("seconds", seconds)
        extended = self._leased(key, job, self._now(), seconds)
        lease._moved.append(extended.key)
        return Lease(extended.key, job, lease._moved)

    def revive(self, key: JobKey, /) -> None:
        """Make the dead letter *key*, one of the keys of `dead`, ready again, with all its attempts.

        Raises `KeyError` if it is not there, ValueError for the key of another job.
        """
        given: Any = key
        if not isinstance(given, tuple) or key[:1] != (_DEAD,):
            raise ValueError(f"revive({shortened(key)}): expected the key of a dead letter, as queue.dead has them")
        job = self[key]
        job.attempts = 0
        self._enqueue(key[2], job, 0, key)

    @property
    def ready(self) -> Selection[JobKey, Job[T]]:
        """The jobs that can be claimed, in the order in which they will be."""
        return self.select(prefix=(_READY,))

    @property
    def delayed(self) -> Selection[JobKey, Job[T]]:
        """The jobs that wait for their time, in the order of it; those that a claim has not yet found due included."""
        return self.select(prefix=(_DELAYED,))

    @property
    def leased(self) -> Selection[JobKey, Job[T]]:
        """The jobs that workers have, in the order in which their leases end."""
        return self.select(prefix=(_LEASED,))

    @property
    def dead(self) -> Selection[JobKey, Job[T]]:
        """The dead letters, the oldest first: jobs that failed in every attempt, or that could not be decoded."""
        return self.select(prefix=(_DEAD,))

    def pause(self) -> Optional[float]:
        """The seconds until a job can be claimed: 0 if there is one; None if only a `put` can change that."""
        return self._pause(0)

    def _pause(self, claims: int) -> Optional[float]:
        """As `pause`, without the jobs that *claims* others of this process are about to get."""
        if self.ready if claims == 0 else next(iter(self.ready.limit(1, claims).keys()), None) is not None:
            return 0
        now = self._now()
        if claims == 0 and (self._storage in _shortened or self._was_set_back(now, _looked.get(self._storage, 0))):
            return 0
        # What is due now, one of the others makes ready.
        first = [
            self.select((state,) if claims == 0 else (state, now + 1), (state + 1,), limit=1).keys()
            for state in (_DELAYED, _LEASED)
        ]
        times = [key[1] for jobs in first for key in jobs]
        return max(min(times) - now, 0) / _SECOND if times else None

    def _bell(self) -> Doorbell:
        """What a commit that adds jobs rings, for the workers of all processes."""
        storage = self._storage
        bell = _bells.get(storage)
        if bell is None:
            engine = self.txn._store.engine
            made = Doorbell(engine.file, storage.number, shared=engine.path is not None)
            bell = _bells.setdefault(storage, made)
        return bell

    # -- moving jobs --------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        now = self._clock[0]()
        try:
            return _micros(now + 0.0)
        except (TypeError, ValueError, OverflowError):  # a datetime, NaN, infinity
            raise TypeError(f"the clock of {self._name!r} returns {shortened(now)}: {_A_CLOCK}") from None

    def _enqueue(self, id: UUID, job: Job[T], delay: float, old: Optional[JobKey] = None) -> None:
        if delay:
            self._store((_DELAYED, self._now() + _micros(delay), id), job, old)
        else:
            self._store((_READY, -job.priority, id), job, old)
        self.txn.after_commit(self._bell().ring)

    def _leased(self, old: JobKey, job: Job[T], now: int, seconds: float) -> Lease[T]:
        key = (_LEASED, now + _micros(seconds), old[2])
        self._store(key, job, old, seconds)
        return Lease(key, job)

    def _bury(self, old: JobKey, job: Job[T]) -> None:
        self._store((_DEAD, self._now(), old[2]), job, old)

    def _store(self, key: JobKey, job: Job[T], old: Optional[JobKey], lease: float = 0.0) -> None:
        """Store *job* under *key*, and no more under *old*. What is refused is still there."""
        job.lease = lease
        if old is None or old == key:
            self[key] = job
        elif any([bound.storage.unique for bound in self._index_state.kept]):  # it would be in its own way
            with self.txn._statement():
                del self[old]
                self[key] = job
        else:
            self[key] = job
            del self[old]

    def _held(self, lease: Lease[T]) -> tuple[JobKey, Job[T]]:
        """The job of *lease* as stored, with its key. Raises `LeaseLost` if another worker has it, or had it."""
        try:
            found = [*reversed(lease._moved), lease.key]
        except AttributeError:
            raise TypeError(
                f"{shortened(lease)} is no lease: give what claim() has returned, which is None when no job is ready"
            ) from None
        claims = lease.job.claims
        for key in found:
            job = self.get(key)
            if job is not None and job.claims == claims:
                return key, job
        # Perhaps it was shortened, since the clock was set back: then it stands before.
        for key, job in self._readable_leases(lease.id, max(found)):
            if job.claims == claims:
                return key, job
        raise errors.LeaseLost(
            f"the lease of the job {lease.id} has ended, and the job is not this worker's any more: undo what was "
            f"done for it, and use a longer lease, or extend(lease) while you work",
            key=lease.key,
        )

    def _wake_up(self, now: int) -> bool:
        """Make ready, or bury, the jobs whose delay or lease is over at *now*; whether there may be more of them."""
        more = False
        first = self.select((_DELAYED,)).first()  # most of the time this look is all there is to do
        if first is not None and first[0][0] == _DELAYED:
            if first[0][1] <= now:
                more = self._end_delays(now)
            first = self.select((_LEASED,)).first()
        if first is not None and first[0][0] == _LEASED:
            if first[0][1] <= now:
                more = self._end_leases(now) or more
            self._mind_the_clock(now)
        else:
            _shortened.pop(self._storage, None)
        _looked[self._storage] = now
        return more

    def _mind_the_clock(self, now: int) -> None:
        """Shorten the leases if the clock was set back, some now and the others in the next claims."""
        storage = self._storage
        looked = _looked.get(storage, _MOST)
        before = _shortened.get(storage) if now >= looked - _SECOND else None
        if before is not None or self._was_set_back(now, looked):
            self.txn._hook(Undone(partial(_looked.__setitem__, storage, _MOST)))  # so that the next one begins again
            last = self._shorten_leases(now, (_LEASED,) if before is None else before)
            if last is None:
                _shortened.pop(storage, None)
            else:
                _shortened[storage] = last

    def _was_set_back(self, now: int, looked: int) -> bool:
        """Whether the clock was set back since this process has *looked*, or before.

        Before: the last lease to end has more time left than it had in the beginning.
        """
        if now < looked - _SECOND:  # less is of threads that read the clock one after the other
            return True
        try:
            last = self.select(None, (_DEAD,), reverse=True, limit=1).first()
        except errors.DecodeError:
            return False
        return last is not None and last[0][0] == _LEASED and _ends_late(last[0], last[1], now)

    def _shorten_leases(self, now: int, first: Any) -> Optional[JobKey]:
        """Shorten leases from the key *first* on: a shortened one comes to stand before. The last key, if not of all.

        In this order the last lease to end tells another process that there is more to do, if this one is killed.
        """
        keys = self.select(first, (_DEAD,), limit=_AT_ONCE).keys().all()
        for key in keys:
            with suppress(errors.DecodeError):
                job = self[key]
                if _ends_late(key, job, now):
                    self._leased(key, job, now, job.lease)
        return keys[-1] if len(keys) == _AT_ONCE else None

    def _end_delays(self, now: int) -> bool:
        over = self.select((_DELAYED,), (_DELAYED, now + 1), limit=_AT_ONCE).all()
        for key, job in over:
            self._store((_READY, -job.priority, key[2]), job, key)
        return len(over) == _AT_ONCE

    def _end_leases(self, now: int) -> bool:
        over = self.select((_LEASED,), (_LEASED, now + 1), limit=_AT_ONCE).all()
        for key, job in over:
            if job.attempts >= self._attempts:
                job.error = job.error or "the lease ended in every attempt"
                self._bury(key, job)
            else:
                self._store((_READY, -job.priority, key[2]), job, key)
        return len(over) == _AT_ONCE

    # -- jobs that cannot be decoded ----------------------------------------------------------------------------------

    def _readable_leases(self, id: UUID, before: JobKey) -> Iterator[tuple[JobKey, Job[T]]]:
        keys = self.select((_LEASED,), before).keys()
        for key in keys:
            if key[2] == id:
                with suppress(errors.DecodeError):
                    yield key, self[key]

    def _past_unreadable(self, now: int) -> tuple[bool, Optional[tuple[JobKey, Job[T]]]]:
        """As in `_claim`, but jobs that are in the way and cannot be decoded become dead letters; the next job."""
        for state in (_DELAYED, _LEASED):
            over = self.select((state,), (state, now + 1), limit=_AT_ONCE).keys()
            for key in over:
                self._readable(key, now)
        more = [self._end_delays(now), self._end_leases(now)]
        self._mind_the_clock(now)
        _looked[self._storage] = now
        keys = self.ready.keys()
        jobs = ((key, self._readable(key, now)) for key in keys)
        return any(more), next(((key, job) for key, job in jobs if job is not None), None)

    def _readable(self, key: JobKey, now: int) -> Optional[Job[T]]:
        """The job *key*; None if it cannot be decoded and was made a dead letter, with the same bytes."""
        try:
            return self[key]
        except errors.DecodeError as error:
            if self._index_state.kept or self._storage.followers:
                raise
            self._bury_as_stored(key, now)
            text = f"the job {key[2]} cannot be read, and is a dead letter now: {error}"
            self.txn.after_commit(partial(log.error, "%s", text))
            return None

    def _bury_as_stored(self, key: JobKey, now: int) -> None:
        encode = self._storage.encode_key
        data, dead = bytes(self._raw.get(encode(key), None, self._db)), encode((_DEAD, now, key[2]))
        self._check_write()
        try:
            if self._watched:
                self._tell_stored(dead)
            self._raw.put(dead, data, True, True, False, self._db)
        except Exception as error:
            self._write_failed(key, error)
        self.txn._count(1, 0)
        del self[key]


def _ends_late(key: JobKey, job: Job[Any], now: int) -> bool:
    return 0 < _micros(job.lease) < key[1] - now  # 0 is of an earlier version, which did not store it


def _text_of(error: object) -> str:
    """What is stored of *error*. What is no character, such as a byte of a file's name, is written out."""
    try:
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    except Exception:  # of its own __str__: the job is given back all the same
        text = f"{type(error).__name__}: {show(error)}"
    return text.encode(errors="backslashreplace").decode()


def _micros(seconds: float) -> int:
    return int(seconds * _SECOND)


def checked_time(name: str, seconds: float) -> float:
    """*seconds*, given as *name*, if a key can tell when they are over. Raises TypeError or ValueError."""
    return checked_seconds(name, seconds, f", and not more than {_LONGEST_OF_ALL}", most=_LONGEST_OF_ALL)


tell_more(Queue, OF_QUEUES)
