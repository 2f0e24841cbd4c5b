"""What the processes of the tests run: importable, as ``spawn`` and ``forkserver`` need it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zlmdb
from zlmdb.engines.lmdb import mapsize

ROWS = 200


class Store(zlmdb.Schema):
    rows: zlmdb.Table[int, bytes]
    counts: zlmdb.Table[str, int]


def fill(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        t.rows.put_many((n, b"%d" % n) for n in range(ROWS))


def part(db: zlmdb.Database[Store], worker: int, workers: int) -> int:
    """The sum of the rows of one worker's part; a note of who did it is written."""
    with db.read() as t:
        found = sum(int(data) for key, data in t.rows.items() if key % workers == worker)
    with db.write() as t:
        t.counts[f"worker {worker}"] = os.getpid()
    return found


_db: Any = None


def take(db: zlmdb.Database[Store]) -> None:
    """The initializer of a pool: the workers keep the database they were given."""
    global _db
    _db = db


def row(key: int) -> bytes:
    """A row, read by a worker of a pool."""
    with _db.read() as t:
        found: bytes = t.rows[key]
        return found


class Rows:
    """A data set as loaders of machine learning want it: a length and items, handed to worker processes as it is."""

    def __init__(self, db: zlmdb.Database[Store]) -> None:
        self.db = db
        with db.read() as t:  # as programs do, before the workers are made
            self.length = len(t.rows)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, key: int) -> bytes:
        with self.db.read() as t:
            return t.rows[key]


def load(rows: Rows, wanted: Any, loaded: Any) -> None:
    """One worker of a loader: takes lists of keys from one queue, puts batches into the other, until it gets None."""
    for number, keys in iter(wanted.get, None):
        loaded.put((number, [rows[key] for key in keys]))


def batches(rows: Rows, context: Any, workers: int, size: int) -> Iterator[list[bytes]]:
    """The rows in batches, in order, loaded by worker processes: what torch.utils.data.DataLoader does."""
    wanted, loaded = [context.Queue() for _ in range(workers)], context.Queue()
    processes = [context.Process(target=load, args=(rows, queue, loaded), daemon=True) for queue in wanted]
    for process in processes:
        process.start()
    starts = range(0, len(rows), size)
    for number, start in enumerate(starts):
        wanted[number % workers].put((number, list(range(start, min(start + size, len(rows))))))
    waiting: dict[int, list[bytes]] = {}
    for number in range(len(starts)):
        while number not in waiting:
            arrived, batch = loaded.get(timeout=60)
            waiting[arrived] = batch
        yield waiting.pop(number)
    for queue, process in zip(wanted, processes):
        queue.put(None)
        process.join(60)
        if process.exitcode != 0:
            raise RuntimeError(f"a worker ended with {process.exitcode}")


def small_steps() -> None:
    """No reservation of address space, as on Windows and 32-bit systems, and a small first size."""
    mapsize.RESERVATION = 0
    mapsize.FIRST_SIZE = 1 << 18


def grow(path: str, worker: int, transactions: int) -> None:
    """Write rows of its own under a small map that grows, while threads of the process read."""
    small_steps()
    sys.setswitchinterval(1e-5)
    with zlmdb.open(path, Store, durability="none") as db:
        stop, wrong = threading.Event(), []

        def read() -> None:
            while not stop.is_set():
                with db.read() as t:
                    keys = list(t.rows)
                    if len(keys) != len(t.rows) or len(keys) % 20:
                        wrong.append(f"{len(keys)} keys, {len(t.rows)} rows")

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(transactions):
                first = (worker * transactions + number) * 20
                db.run(lambda t, first=first: t.rows.put_many((first + n, b"x" * 1500) for n in range(20)))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        if wrong:
            raise RuntimeError(wrong[0])


def kill(process: Any) -> Any:
    """Kill a `Popen`, which must not have ended by itself, as it does when one of its threads fails; what it wrote."""
    process.kill()
    said, _ = process.communicate()
    assert process.returncode < 0, f"the process ended by itself, with status {process.returncode}"
    return said


def surroundings(**more: str) -> dict[str, str]:
    """The environment of a process that imports zlmdb from here; with *more*."""
    paths = [str(Path(__file__).resolve().parent.parent), os.environ["PYTHONPATH"]]  # conftest.py has set it
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}
