"""Processes with all that a program may use of one database, and a cache beside it; some or all are killed at once.

In one file are tables with indexes and links, records that expire, a change feed with two consumers (`roles`), and a
queue whose jobs have priorities and delays, fail and are tried again. The workers note in a cache what they have done.
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import zlmdb
from zlmdb.engines.lmdb import mapsize
from zlmdb.store import blockgroups, groups

from . import roles
from .command import forked, main

_ = blockgroups, groups
"""Not imported by several threads at once, as in `killgroups`."""

PRIORITIES = 5
AHEAD = [0.0]  # seconds that the clock of the queue is ahead, for the check of the order


class Jobs(zlmdb.Queue[int], lease=0.05, attempts=4, backoff=0.002, clock=lambda: time.time() + AHEAD[0]): ...


class Program(roles.Shop):
    jobs: Jobs
    mails: zlmdb.Queue[int]
    done: zlmdb.Table[int, int]
    sent: zlmdb.Table[int, int]


Report = Callable[[str], None]


def producer(db: zlmdb.Database[Any], cache: zlmdb.Cache[str, Any], report: Report) -> None:
    """Put a job and a mail in the transaction that counts them; sometimes revive the dead letters."""
    dice = random.Random(os.getpid())

    def work(t: Any) -> int:
        with suppress(roles.GivenUp), t.txn.savepoint():
            t.jobs.put(-1)
            raise roles.GivenUp
        number: int = t.issued.increment("jobs")
        t.jobs.put(number, priority=dice.randrange(PRIORITIES), delay=dice.choice([0, 0, 0.001, 0.02, 0.3]))
        t.mails.put(number, priority=number % 2)
        if dice.random() < 0.1:
            for key in t.jobs.dead.keys().all():
                t.jobs.revive(key)
        if dice.random() < 0.1:
            raise roles.GivenUp
        return number

    while True:
        with suppress(roles.GivenUp):
            report(f"put {db.run(work)}")


def finished(t: Any, lease: zlmdb.Lease[int]) -> None:
    """Acknowledge a job in the transaction that stores what it does."""
    t.done.increment(lease.body)
    t.jobs.done(lease)


def claimed(t: Any, report: Report) -> Any:
    """A job, which must be of the highest priority of all that are ready then."""
    lease = t.jobs.claim()
    after = t.jobs.ready.first()
    if lease is not None and after is not None and after[1].priority > lease.job.priority:
        report(f"wrong: a job of priority {lease.job.priority} was claimed, one of {after[1].priority} is ready")
    return lease


def worker(db: zlmdb.Database[Any], cache: zlmdb.Cache[str, Any], report: Report) -> None:
    """Three threads do jobs: from transactions of their own, from a `Worker`, and in blocks, of which many fail."""
    waiting = zlmdb.Worker(db, lambda t: t.jobs)
    mails = zlmdb.Worker(db, lambda t: t.mails, lease=0.05)

    def end(lease: Any, dice: random.Random) -> None:
        cache.set(f"job {lease.body}", lease.body)
        luck = dice.random()
        if luck < 0.1:
            waiting.fail(lease, OSError("no"), delay=dice.choice([None, 0, 0.01]))
        elif luck < 0.15:
            waiting.release(lease)
        elif luck < 0.2:
            time.sleep(0.06)  # longer than the lease
        elif luck < 0.25:
            waiting.extend(lease, 0.2)
        if not 0.1 <= luck < 0.15 and luck > 0.1:
            db.run(lambda t: finished(t, lease))
            report("done")

    def by_transactions(dice: random.Random) -> None:
        lease = db.run(lambda t: claimed(t, report))
        if lease is not None:
            end(lease, dice)

    def by_worker(dice: random.Random) -> None:
        end(waiting.get(0.5), dice)

    def by_blocks(dice: random.Random) -> None:
        with mails.job(0.5) as lease:
            db.run(lambda t: t.sent.increment(lease.body))
            if dice.random() < 0.05:
                raise OSError("no")

    for number, turn in enumerate((by_transactions, by_worker, by_blocks)):

        def work(turn: Callable[[random.Random], None] = turn, number: int = number) -> None:
            dice = random.Random(os.getpid() * 3 + number)
            while True:
                with suppress(zlmdb.LeaseLost, TimeoutError, OSError):
                    turn(dice)

        threading.Thread(target=reporting(work, report), daemon=True).start()
    while True:
        time.sleep(60)


def task_worker(db: zlmdb.Database[Any], cache: zlmdb.Cache[str, Any], report: Report) -> None:
    """Tasks do jobs, and some are cancelled."""
    dice = random.Random(os.getpid())
    waiting = zlmdb.Worker(db, lambda t: t.jobs)

    async def work() -> None:
        lease = await waiting.aget(0.5)
        cache.set(f"job {lease.body}", lease.body)
        await db.arun(lambda t: finished(t, lease))
        report("done")

    async def turns() -> None:
        while True:
            tasks = [asyncio.ensure_future(work()) for _ in range(4)]
            await asyncio.sleep(dice.random() * 0.02)
            tasks[0].cancel()
            for found in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(found, Exception) and not isinstance(found, (zlmdb.LeaseLost, TimeoutError)):
                    raise found

    asyncio.run(turns())


def cacher(db: zlmdb.Database[Any], cache: zlmdb.Cache[str, Any], report: Report) -> None:
    """Count in the cache; two entries change together, others expire; several processes compute one result."""
    square = cache.memoize(expire=0.01, lock=0.05, name="square")(_square)
    while True:
        with cache.transact():
            count = cache["a"] = cache["b"] = cache.incr("count")
        report(f"cached {count}")
        if square(count % 7) != (count % 7) ** 2:
            report(f"wrong: the square of {count % 7}")
        soon = f"soon {os.getpid()}"
        cache.set(soon, count, expire=0.001)
        time.sleep(0.002)
        if cache.get(soon) is not None:
            report("wrong: the cache has an entry that has expired")


def _square(number: int) -> int:
    time.sleep(0.001)
    return number**2


def role(work: Callable[..., object]) -> Callable[..., None]:
    """One of `roles`, as the others are."""
    return lambda db, cache, report: work(db, 0, report)


ROLES: tuple[Callable[..., None], ...] = (
    producer, worker, worker, task_worker, cacher, cacher,
    role(roles.clerk), role(roles.follower), role(roles.mirror),
)  # fmt: skip


def reporting(work: Callable[[], None], report: Report) -> Callable[[], None]:
    """*work*, whose exception is reported."""

    def run() -> None:
        try:
            work()
        except BaseException as error:
            report(f"wrong: {work.__qualname__} met {error!r}".replace("\n", " "))
            raise

    return run


def start(work: Callable[..., None], directory: Path, pipe: int, grows: bool) -> int:
    """The process id of a process that does *work* until it is killed; with a map that *grows* in small steps."""

    def run() -> None:
        if grows:
            mapsize.RESERVATION = 0
            mapsize.FIRST_SIZE = 1 << 20

        def report(text: str) -> None:
            os.write(pipe, text.encode() + b"\n")

        def opened() -> None:
            with zlmdb.open(directory / "data", Program) as db, zlmdb.Cache(directory / "cache") as cache:
                work(db, cache, report)

        reporting(opened, report)()

    return forked(run)


class Heard:
    """What the processes have reported: how much of it they have acknowledged, and what was wrong."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(("put", "done", "cached", *roles.WORDS), 0)
        self.follower = roles.Heard()
        self.failures: list[str] = []
        self._rest = b""

    def hear(self, pipe: int, seconds: float) -> bool:
        """Read reports for some *seconds*, or until no process is left; whether there was one."""
        until, heard = time.monotonic() + seconds, False
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                return heard
            more = os.read(pipe, 1 << 16)
            if not more:
                return heard
            heard = True
            *lines, self._rest = (self._rest + more).split(b"\n")
            for line in lines:
                self._enter(line.decode())

    def _enter(self, line: str) -> None:
        word, *words = line.split()
        if word == "wrong:":
            self.failures.append(line)
        elif word in roles.Heard.KINDS:
            self.failures += filter(None, [self.follower.hear(line.split())])
        else:
            self.counts[word] = max(int(words[0]), self.counts[word]) if words else self.counts[word] + 1

    def ended(self) -> None:
        """All processes are killed: half a line is of one that was killed."""
        self._rest = b""


def wrong(db: zlmdb.Database[Any], cache: zlmdb.Cache[str, Any], heard: Heard) -> list[str]:
    """What is wrong when all processes are killed."""
    problems = [problem.text for problem in [*db.check().problems, *cache._db.check().problems]]
    began = time.time()
    with db.read() as t:
        problems += filter(None, [roles.wrong(t, began), lost(t, heard)])
        done = set(t.done)
    with db.write() as t:
        problems += filter(None, [out_of_order(t)])
    problems += roles.finish(db, heard.follower)
    problems += [f"job {one} is done, and not in the cache" for one in done if cache.get(f"job {one}") != one][:1]
    counted = cache.get("count", 0)
    if counted < heard.counts["cached"] or not counted == cache.get("a", 0) == cache.get("b", 0):
        problems.append(f"the cache has {counted}, {cache.get('a')}, {cache.get('b')} of {heard.counts['cached']}")
    return problems


def lost(t: Any, heard: Heard) -> str:
    """Which job is there twice or not at all, or was done twice."""
    numbers = list(range(1, t.issued.get("jobs", 0) + 1))
    if len(numbers) < heard.counts["put"]:
        return f"{heard.counts['put']} jobs were put, {len(numbers)} are stored"
    if sorted([*(job.body for job in t.jobs.values()), *t.done]) != numbers:
        return f"{len(numbers)} jobs were put, {len(t.jobs)} wait, and {len(t.done)} are done"
    if len(t.done) < heard.counts["done"] or set(t.done.values()) - {1}:
        return f"{len(t.done)} jobs are done, {heard.counts['done']} were acknowledged; done twice: " + str(
            [body for body, count in t.done.items() if count != 1][:5]
        )
    unsent = set(numbers).difference((job.body for job in t.mails.values()), t.sent)
    return f"mails that are neither sent nor waiting: {sorted(unsent)[:5]}" if unsent else ""


def out_of_order(t: Any) -> str:
    """What is wrong with the order in which all jobs could be claimed an hour later; nothing is changed."""
    expected = sorted((-job.priority, key[2]) for key, job in t.jobs.items() if key[0] != 3)
    AHEAD[0] = 3600.0
    try:
        with suppress(roles.GivenUp), t.txn.savepoint():
            leases = list(iter(lambda: t.jobs.claim(lease=3600), None))
            dead = {key[2] for key in t.jobs.dead.keys().all()}
            raise roles.GivenUp
    finally:
        AHEAD[0] = 0.0
    found = [(-one.job.priority, one.id) for one in leases]
    left = [one for one in expected if one[1] not in dead]
    if found == left:
        return ""
    at = next((at for at, (one, other) in enumerate(zip(found, left)) if one != other), min(len(found), len(left)))
    return f"of {len(found)} jobs {at} come in order, then {found[at : at + 3]}, expected {left[at : at + 3]}"


def kills(directory: Path, count: int, seed: int = 1, longest: float = 0.3) -> dict[str, Any]:
    """Kill COUNT processes that use all of one database and a cache; each time all are dead, everything is right.

    The first kill of a round comes at most *longest* seconds after the first report, and the last one as long after it.
    """
    rnd, heard, killed, rounds = random.Random(seed), Heard(), 0, 0
    with zlmdb.open(directory / "data", Program) as db:
        for name in ("follower", "mirror"):
            db.changes(roles.Tickets, consumer=name)
    jobs = waiting = 0
    while killed < count and not heard.failures:
        reading, writing = os.pipe()
        pids = [start(work, directory, writing, rnd.random() < 0.5) for work in ROLES]
        os.close(writing)
        heard.hear(reading, 0.0)
        while not heard.hear(reading, 0.01):
            pass
        heard.hear(reading, rnd.random() * rnd.choice([longest / 20, longest]))
        rnd.shuffle(pids)
        pause = rnd.choice([0, 0, longest]) * rnd.random() / len(pids)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            status = os.waitpid(pid, 0)[1]
            if not os.WIFSIGNALED(status):
                heard.failures.append(f"a process ended by itself, with status {status}")
            heard.hear(reading, pause)
        heard.hear(reading, 60)
        heard.ended()
        os.close(reading)
        killed, rounds = killed + len(pids), rounds + 1
        with zlmdb.open(directory / "data", Program) as db, zlmdb.Cache(directory / "cache") as cache:
            heard.failures += [f"round {rounds}: {problem}" for problem in wrong(db, cache, heard)]
            with db.read() as t:
                jobs, waiting = len(t.done), len(t.jobs)
    changes = heard.follower.count
    return {"kills": killed, "rounds": rounds, "jobs": jobs, "waiting": waiting, "changes": changes, **heard.counts,
            "failures": heard.failures}  # fmt: skip


if __name__ == "__main__":
    main(kills, count=500, seed=1, longest=0.3)
