"""A writer is killed by ``kill -9`` in mid-write, again and again, over one database."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import zlmdb

from .command import forked, main
from .ledger import Ledger, Model, reached, step, wrong


def write(path: Path, durability: Any, acknowledged: int) -> None:
    """Run transactions from where the database is, for ever; the number of each is acknowledged once it is stored."""
    with zlmdb.open(path, Ledger, durability=durability) as db:
        n = reached(db)[0]
        while True:
            n += 1
            with db.write() as t:
                step(t, n)
            os.write(acknowledged, n.to_bytes(8, "big"))


def kill_one(path: Path, durability: Any, delay: float) -> int:
    """Start a writer, kill it *delay* seconds after its first acknowledgement; the number acknowledged last."""
    reading, writing = os.pipe()
    pid = forked(write, path, durability, writing)
    os.close(writing)
    received = os.read(reading, 8)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    while True:
        more = os.read(reading, 1 << 16)
        if not more:
            break
        received += more
    os.close(reading)
    if not os.WIFSIGNALED(status):
        raise RuntimeError(f"the writer ended by itself, with status {status}")
    return int.from_bytes(received[-8:], "big")


def kills(
    directory: Path, count: int, durability: str = "full", seed: int = 1, longest: float = 0.02
) -> dict[str, Any]:
    """Kill a writer COUNT times; after each, nothing acknowledged is lost, nothing is half, and check() is clean.

    A kill comes at most *longest* seconds after the first acknowledgement.
    """
    rnd, model, path = random.Random(seed), Model(), directory / "data"
    mode: Any = durability
    zlmdb.open(path, Ledger).close()
    failures: list[str] = []
    in_flight = last = 0
    for number in range(count):
        acknowledged = kill_one(path, mode, rnd.random() * rnd.choice([longest / 40, longest / 4, longest]))
        with zlmdb.open(path, Ledger, durability=mode) as db:
            problem = wrong(db, model, acknowledged, acknowledged + 1)
            last = reached(db)[0]
        in_flight += last > acknowledged
        if problem:
            failures.append(f"kill {number}: {problem}")
            break
    return {"kills": number + 1, "transactions": last, "stored_but_not_acknowledged": in_flight, "failures": failures}


if __name__ == "__main__":
    main(kills, count=1000, durability="full", seed=1, longest=0.02)
