"""Two processes of eight threads each commit in groups; both are killed by ``kill -9``, again and again."""

from __future__ import annotations

import os
import random
import signal
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, NamedTuple

import zlmdb
from tests.office import Office, Person, change
from zlmdb.store import blockgroups, groups

from .command import forked, main

_ = blockgroups, groups
"""Not imported by several threads at once: pytest parses them, and before Python 3.11.5 two threads cannot do that."""

THREADS = 8
ACKNOWLEDGEMENT = struct.Struct(">HQ")


class Counters(zlmdb.Table[int, int], feed=zlmdb.Feed(acknowledged=True)):
    """Whose changes are recorded."""


class Jobs(zlmdb.Queue[tuple[int, int]], lease=0.05, attempts=1_000_000):
    """A job for each number of a thread; what a killed worker has claimed comes again soon."""


class Entry(NamedTuple):
    thread: int
    data: bytes


class Entries(zlmdb.Table[tuple[int, int], zlmdb.Msgpack[Entry]]):
    """By thread and number. Each refers to the counter of its thread, which is stored after it."""

    by_thread = zlmdb.ForeignKey["Counters"]("thread", deferred=True)


class Book(Office):
    """Each thread counts in a record of its own, enters each number once, and puts a job for it, for any thread.

    All change the tables of the office, where some of it is refused.
    """

    counters: Counters
    entries: Entries
    jobs: Jobs
    done: zlmdb.Table[tuple[int, int], int]


def counted(thread: int, n: int) -> Callable[[Any], int]:
    """The function that stores the number *n* of *thread*, and fails for some numbers in between."""

    def fn(t: Any) -> int:
        last: int = t.counters.get(thread, 0)
        t.entries[thread, last + 1] = Entry(thread, b"%d" % n * (1 + n % 50))
        change(t, thread << 32 | n)
        if n % 7 == 0 and last % 2:
            raise LookupError
        if n % 11 == 0:
            t.people[7] = Person(None, 8)  # who is not there: the end of the transaction, or of the function, says so
        t.counters[thread] = last + 1
        t.jobs.put((thread, last + 1), priority=n % 3, delay=n % 2 * 0.001)
        return last + 1

    return fn


def do_a_job(db: zlmdb.Database[Book]) -> None:
    """Claim a job in one transaction, and do it in another."""
    lease = db.run(lambda t: t.jobs.claim())
    if lease is not None:

        def work(t: Book) -> None:
            t.done.increment(lease.body)
            t.jobs.done(lease)

        with suppress(zlmdb.LeaseLost):  # this thread waited longer than its lease
            db.run(work)


def write(path: Path, process: int, acknowledged: int) -> None:
    """Threads that count for ever; each number is acknowledged once it is stored."""
    db = zlmdb.open(path, Book)

    def work(thread: int) -> None:
        n = 0
        while True:
            n += 1
            try:
                if thread % 4 == 0:
                    stored = db.submit(counted(thread, n)).result()
                elif thread % 4 == 1:
                    stored = db.run(counted(thread, n))
                else:
                    with db.write() as t:
                        stored = counted(thread, n)(t)
            except (LookupError, zlmdb.DanglingLink):
                continue
            if n % 11 == 0:
                os._exit(1)
            os.write(acknowledged, ACKNOWLEDGEMENT.pack(thread, stored))
            do_a_job(db)

    for thread in range(process * THREADS, (process + 1) * THREADS):
        threading.Thread(target=work, args=(thread,), daemon=True).start()
    while True:
        time.sleep(60)


def kill_two(path: Path, delay: float) -> dict[int, int]:
    """Start two writers, and kill them *delay* seconds after the first acknowledgement; what was acknowledged last."""
    reading, writing = os.pipe()
    pids = []
    for process in range(2):
        pids.append(forked(write, path, process, writing))
    os.close(writing)
    received = os.read(reading, 1 << 16)
    time.sleep(delay)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        status = os.waitpid(pid, 0)[1]
        if not os.WIFSIGNALED(status):
            raise RuntimeError(f"a writer ended by itself, with status {status}")
    while True:
        more = os.read(reading, 1 << 16)
        if not more:
            break
        received += more
    os.close(reading)
    last: dict[int, int] = {}
    for thread, n in ACKNOWLEDGEMENT.iter_unpack(received):
        last[thread] = max(n, last.get(thread, 0))
    return last


def wrong(db: Any, acknowledged: dict[int, int]) -> str:
    """What is lost or half; empty if nothing is."""
    with db.read() as t:
        counters = dict(t.counters)
        for thread, n in acknowledged.items():
            if counters.get(thread, 0) < n:
                return f"thread {thread}: {n} was acknowledged, {counters.get(thread, 0)} is stored"
        for thread, n in counters.items():
            keys = t.entries.select(prefix=(thread,)).keys()
            entries = [number for _, number in keys]
            if entries != list(range(1, n + 1)):
                return f"thread {thread}: the counter says {n}, and there are {len(entries)} entries"
    report = db.check()
    return f"check: {report.problems[0].text}" if report.problems else ""


def lost_jobs(db: Any) -> str:
    """Which number has no job, or several; a job that is done is gone."""
    with db.read() as t:
        waiting = [job.body for job in t.jobs.values()]
        done = dict(t.done)
        numbers = list(t.entries)
    if any(count != 1 for count in done.values()):
        return f"jobs were done several times: {[body for body, count in done.items() if count != 1][:5]}"
    if sorted([*waiting, *done]) != numbers:
        return f"{len(numbers)} jobs were put, {len(waiting)} wait, and {len(done)} are done"
    return ""


def unlike(db: Any, followed: dict[int, int]) -> str:
    """How the feed of the counters, which a consumer has *followed* so far, differs from them; empty if it does not."""
    changes = db.changes(Counters, consumer="check")
    for one in changes:
        if followed.get(one.key) != one.old:
            return f"change {one.number} has {one.old} before it, the one before left {followed.get(one.key)}"
        followed[one.key] = one.new
    changes.acknowledge()
    with db.read() as t:
        return "" if followed == dict(t.counters) else f"the feed leads to {followed}, there is {dict(t.counters)}"


def kills(directory: Path, count: int, seed: int = 1, longest: float = 0.1) -> dict[str, Any]:
    """Kill two writers COUNT times; after each, nothing acknowledged is lost and no group is stored by half.

    A kill comes at most *longest* seconds after the first acknowledgement.

    A consumer of the change feed, which goes on after each kill, is told of each change once, in order. Each job of a
    queue is done once, or waits.
    """
    rnd, path = random.Random(seed), directory / "data"
    zlmdb.open(path, Book).close()
    failures: list[str] = []
    acknowledged: dict[int, int] = {}
    followed: dict[int, int] = {}
    number = stored = commits = changes = jobs = 0
    for number in range(1, count + 1):
        acknowledged.update(kill_two(path, rnd.random() * rnd.choice([longest / 50, longest / 5, longest])))
        with zlmdb.open(path, Book) as db:
            problem = wrong(db, acknowledged) or unlike(db, followed) or lost_jobs(db)
            changes = db.changes(Counters).last()
            with db.read() as t:
                stored, commits = sum(t.counters.values()), t.txn.id()
                jobs = len(t.done)
        if problem:
            failures.append(f"kill {number}: {problem}")
            break
    return {
        "kills": 2 * number,
        "stored": stored,
        "commits": commits,
        "changes": changes,
        "jobs": jobs,
        "acknowledged": sum(acknowledged.values()),
        "failures": failures,
    }


if __name__ == "__main__":
    main(kills, count=500, seed=1, longest=0.1)
