"""Many threads and tasks, with a map that grows, timeouts and cancellations: nothing is lost and nothing is left.

Each thread and task has a counter, which it raises in transactions of all kinds. It knows how many of these were
acknowledged, and how many may have been stored: those that were cancelled, too. The file must agree, with the table and
its index. At the end there are no threads and no readers, and the memory has not grown since the first third.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Optional

import zlmdb
from zlmdb.engines.lmdb import mapsize

from .command import main

_TIMEOUT = 0.0005


@dataclass
class Count:
    number: int
    text: str


class Counts(zlmdb.Table[int, Count]):
    by_number = zlmdb.Index[int]("number")


class Tables(zlmdb.Schema):
    counts: Counts
    grows: zlmdb.Table[tuple[int, int], bytes]  # a record each time one of the counters is raised


class Tally:
    """What one thread or task knows of its own counter."""

    def __init__(self, key: int) -> None:
        self.key = key
        self.acknowledged = 0
        self.tried = 0
        self.dice = random.Random(key)

    def add(self, t: Any) -> None:
        """Raise the counter in the transaction of *t*."""
        count = t.counts.get(self.key) or Count(0, "")
        text = "x" * self.dice.choice([10, 100, 2000])
        t.counts[self.key] = Count(count.number + 1, text)
        t.grows[self.key, count.number + 1] = bytes(200)

    def change(self, db: Any) -> None:
        """Raise the counter by single operations."""
        number = db.auto.counts[self.key].number + 1
        db.auto.grows[self.key, number] = bytes(200)
        db.auto.counts.change(self.key, lambda count: Count(count.number + 1, count.text))


def work(db: Any, tally: Tally, stop: Callable[[], bool], seen: Counter[str]) -> None:
    """What a thread does until it is told to *stop*."""
    db.run(tally.add)
    tally.tried += 1
    tally.acknowledged += 1
    ways: list[Callable[[], object]] = [
        lambda: db.run(tally.add),
        lambda: db.submit(tally.add).result(),
        lambda: tally.change(db),
        partial(_block, db, tally, None),
        partial(_block, db, tally, _TIMEOUT),
    ]
    while not stop():
        if tally.dice.random() < 0.5:
            found = db.auto.counts.get(tally.key)
            if not tally.acknowledged <= found.number <= tally.tried:
                raise AssertionError(f"{tally.key}: read {found.number}, acknowledged {tally.acknowledged}")
            continue
        tally.tried += 1
        try:
            tally.dice.choice(ways)()
            tally.acknowledged += 1
        except zlmdb.WriterTimeout:
            tally.tried -= 1  # it never began
            seen["timeouts"] += 1
        except zlmdb.DatabaseFull:
            tally.tried -= 1  # it is not stored, and the map grows for the next one
            seen["full"] += 1


def _block(db: Any, tally: Tally, timeout: Optional[float]) -> None:
    with db.write(timeout=timeout) as t:
        tally.add(t)


async def task(db: Any, tally: Tally, stop: Callable[[], bool], seen: Counter[str]) -> None:
    """As `work`, in asyncio, with cancellations."""
    while not stop():
        await asyncio.sleep(tally.dice.random() * 0.2)
        if tally.dice.random() < 0.3:
            await db.aread(lambda t: t.counts.get(tally.key))
            continue
        tally.tried += 1
        try:
            wait = 0.0002 if tally.dice.random() < 0.1 else 60
            await asyncio.wait_for(db.arun(tally.add), wait)
            tally.acknowledged += 1
        except asyncio.TimeoutError:  # it may be stored all the same
            seen["cancelled"] += 1


async def _tasks(db: Any, tallies: list[Tally], stop: Callable[[], bool], seen: Counter[str]) -> None:
    await asyncio.gather(*[task(db, tally, stop, seen) for tally in tallies])


_GROWS_WITHIN = 60  # seconds more


def soak(directory: Path, run: int = 60, threads: int = 150, tasks: int = 1000) -> dict[str, Any]:
    """Let THREADS and TASKS write and read for RUN seconds, on a slow machine until the file has grown once."""
    seen: Counter[str] = Counter()
    failures: list[str] = []
    tallies = [Tally(key) for key in range(threads + tasks)]
    begun = time.monotonic()
    before = {thread.name for thread in threading.enumerate()}

    def stop() -> bool:
        passed = time.monotonic() - begun
        return passed > run and (db._open_store.grown > 0 or passed > run + _GROWS_WITHIN)

    def guarded(fn: Callable[[], object]) -> None:
        try:
            fn()
        except BaseException as error:
            failures.append(f"{type(error).__name__}: {error}")

    sizes = mapsize.RESERVATION, mapsize.FIRST_SIZE
    mapsize.RESERVATION, mapsize.FIRST_SIZE = 0, 1 << 18  # so that the map has to grow many times
    db = zlmdb.open(directory / "many", Tables)
    jobs: list[Callable[[], object]] = [partial(work, db, tally, stop, seen) for tally in tallies[:threads]]
    jobs.append(lambda: asyncio.run(_tasks(db, tallies[threads:], stop, seen)))
    workers = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for worker in workers:
        worker.start()
    time.sleep(run / 3)
    early = _memory()
    for worker in workers:
        worker.join(run + 120)
        if worker.is_alive():
            failures.append(f"{worker.name} has not ended")
    late = _memory()
    mapsize.RESERVATION, mapsize.FIRST_SIZE = sizes
    with db.read() as t:
        stored = {key: count.number for key, count in t.counts.items()}
        grown = Counter(key for key, _ in t.grows)
        indexed = {key for key, _ in t.counts.by_number.select()}
    if indexed != set(stored):
        failures.append("the index differs from the table")
    for key, number in stored.items():
        if grown[key] not in (number, number + 1):  # a single operation may have been refused between the two
            failures.append(f"{key}: counted {number}, and has {grown[key]} records")
    for tally in tallies:
        if not tally.acknowledged <= stored.get(tally.key, 0) <= tally.tried:
            failures.append(f"{tally.key}: {stored.get(tally.key)} of {tally.acknowledged} to {tally.tried}")
    readers = [reader for reader in db.readers() if reader.snapshot is not None]
    if readers:
        failures.append(f"readers are left: {readers}")
    report = db.check()
    failures += [str(problem) for problem in report.problems]
    growths = db._open_store.grown
    db.close()
    left = {thread.name for thread in threading.enumerate()} - before
    if left:
        failures.append(f"threads are left: {sorted(left)}")
    if late > early * 1.5 + 50:
        failures.append(f"the memory grew from {early} to {late} MB")
    return {
        "stored": sum(stored.values()),
        "acknowledged": sum(tally.acknowledged for tally in tallies),
        **seen,
        "growths": growths,
        "memory_mb": [early, late],
        "file_mb": os.path.getsize(directory / "many" / "data.mdb") >> 20,
        "failures": failures[:20],
    }


def _memory() -> int:
    """The memory of this process in MB, without the pages of the file; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as statm:
            resident, shared = map(int, statm.read().split()[1:3])
            return (resident - shared) * os.sysconf("SC_PAGE_SIZE") >> 20
    except OSError:
        return 0


if __name__ == "__main__":
    main(soak, run=60, threads=150, tasks=1000)
