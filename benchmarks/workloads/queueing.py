"""`zlmdb.Queue` beside diskcache's Deque: what the two have in common, one transaction a call.

The queue of zlmdb gives each job a lease and acknowledges it, which is a transaction more. A Deque does not, so what it
loses when a worker dies is lost; "popleft" has the queue promise as little, by taking and acknowledging at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .inside import Prepared, Timed

MOST, FEW = 2_000, 100
Theirs = Callable[..., dict[str, Any]]
"""Makes the cache of diskcache, if that is installed."""


@dataclass(frozen=True)
class Method:
    """*deque* and *queue* do it with a Deque, and with a database whose schema has the queue ``jobs``.

    *full*: the jobs are there before; otherwise there is none. *durability*: of the commits.
    """

    name: str
    deque: Callable[[Any, list[str]], object]
    queue: Callable[[Any, list[str]], object]
    full: bool = False
    unit: str = "job"
    durability: str = "none"
    most: int = MOST


@contextmanager
def queues(directory: Path, size: int, method: Method, theirs: Theirs) -> Iterator[Timed]:
    import zlmdb

    class Tables(zlmdb.Schema):
        jobs: zlmdb.Queue[str]

    jobs = [f"job {number}" for number in range(min(size, method.most))]
    begun = jobs if method.full else []
    with ExitStack() as stack:
        db = stack.enter_context(zlmdb.open(directory / "ours", Tables, durability=method.durability))

        def of_queue() -> int:
            method.queue(db, jobs)
            return len(jobs)

        def fill_queue() -> None:
            with db.write() as t:
                t.jobs.clear()
                for job in begun:
                    t.jobs.put(job)

        timed: Timed = {}
        for label, cache in theirs(directory, stack, synchronous=0 if method.durability == "none" else 2).items():
            from diskcache import Deque

            deque = Deque.fromcache(cache)

            def of_deque(deque: Any = deque) -> int:
                method.deque(deque, jobs)
                return len(jobs)

            def fill_deque(deque: Any = deque) -> None:
                deque.clear()
                deque.extend(begun)

            timed[label] = Prepared(of_deque, fill_deque)
        yield {**timed, "zlmdb": Prepared(of_queue, fill_queue)}


# -- a Deque ----------------------------------------------------------------------------------------------------------


def append(deque: Any, jobs: list[str]) -> None:
    for job in jobs:
        deque.append(job)


def append_left(deque: Any, jobs: list[str]) -> None:
    for job in jobs:
        deque.appendleft(job)


def extend(deque: Any, jobs: list[str]) -> None:
    deque.extend(jobs)


def pop_left(deque: Any, jobs: list[str]) -> None:
    for _ in jobs:
        deque.popleft()


def through(deque: Any, jobs: list[str]) -> None:
    append(deque, jobs)
    pop_left(deque, jobs)


def peek_left(deque: Any, jobs: list[str]) -> None:
    for _ in jobs:
        deque.peekleft()


def peek_last(deque: Any, jobs: list[str]) -> None:
    for _ in jobs:
        deque.peek()


def iterate(deque: Any, jobs: list[str]) -> None:
    list(deque)


def backwards(deque: Any, jobs: list[str]) -> None:
    list(reversed(deque))


def length(deque: Any, jobs: list[str]) -> None:
    for _ in jobs:
        len(deque)


def count(deque: Any, jobs: list[str]) -> None:
    deque.count(jobs[0])


def remove(deque: Any, jobs: list[str]) -> None:
    """The last of all."""
    deque.remove(jobs[-1])


def clear(deque: Any, jobs: list[str]) -> None:
    deque.clear()


# -- a queue ----------------------------------------------------------------------------------------------------------


def put(db: Any, jobs: list[str]) -> None:
    for job in jobs:
        with db.write() as t:
            t.jobs.put(job)


def put_first(db: Any, jobs: list[str]) -> None:
    for job in jobs:
        with db.write() as t:
            t.jobs.put(job, priority=1)


def put_all(db: Any, jobs: list[str]) -> None:
    with db.write() as t:
        for job in jobs:
            t.jobs.put(job)


def claim(db: Any, jobs: list[str]) -> None:
    for _ in jobs:
        with db.write() as t:
            t.jobs.done(t.jobs.claim())


def taken(db: Any, jobs: list[str]) -> None:
    for _ in jobs:
        with db.write() as t:
            key, _ = t.jobs.ready.first()
            del t.jobs[key]


def worked(db: Any, jobs: list[str]) -> None:
    put(db, jobs)
    for _ in jobs:
        with db.write() as t:
            lease = t.jobs.claim()
        with db.write() as t:
            t.jobs.done(lease)


def first(db: Any, jobs: list[str]) -> None:
    for _ in jobs:
        with db.read() as t:
            t.jobs.ready.first()


def last(db: Any, jobs: list[str]) -> None:
    for _ in jobs:
        with db.read() as t:
            t.jobs.ready.last()


def every(db: Any, jobs: list[str]) -> None:
    with db.read() as t:
        list(t.jobs.ready.values())


def every_backwards(db: Any, jobs: list[str]) -> None:
    with db.read() as t:
        list(t.jobs.select(prefix=(0,), reverse=True).values())


def number(db: Any, jobs: list[str]) -> None:
    for _ in jobs:
        with db.read() as t:
            len(t.jobs)


def number_of(db: Any, jobs: list[str]) -> None:
    wanted = jobs[0]
    with db.read() as t:
        t.jobs.ready.where(lambda job: job.body == wanted).count()


def delete(db: Any, jobs: list[str]) -> None:
    wanted = jobs[-1]
    with db.write() as t:
        t.jobs.ready.where(lambda job: job.body == wanted).limit(1).delete()


def delete_all(db: Any, jobs: list[str]) -> None:
    with db.write() as t:
        t.jobs.clear()


METHODS = (
    Method("a queue: put, take and done", through, worked),
    Method("a queue: append, put", append, put),
    Method("a queue: append, put, each synced", append, put, durability="full", most=FEW),
    Method("a queue: appendleft, put with priority", append_left, put_first),
    Method("a queue: extend, put in one transaction", extend, put_all),
    Method("a queue: popleft, claim and done at once", pop_left, claim, full=True),
    Method("a queue: popleft, the first that is ready deleted", pop_left, taken, full=True),
    Method("a queue: peekleft, the first that is ready", peek_left, first, full=True, unit="call"),
    Method("a queue: peek, the last that is ready", peek_last, last, full=True, unit="call"),
    Method("a queue: list(deque), all that are ready", iterate, every, full=True),
    Method("a queue: list(reversed(deque)), the same", backwards, every_backwards, full=True),
    Method("a queue: len", length, number, full=True, unit="call"),
    Method("a queue: count of a job", count, number_of, full=True, unit="job searched"),
    Method("a queue: remove of the last job", remove, delete, full=True, unit="job searched"),
    Method("a queue: clear", clear, delete_all, full=True),
)
