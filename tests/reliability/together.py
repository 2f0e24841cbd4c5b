"""Writers, readers, a killer and a backup loop over one growing database, and what `roles` adds, all at once."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import zlmdb
from zlmdb.engines.lmdb import mapsize

from . import roles
from .command import main

BATCH = 5  # records a transaction


class Records(zlmdb.Table[tuple[int, int], zlmdb.Checked[zlmdb.Msgpack[tuple[int, bytes]]]]):
    """By writer and number; the value has the number of its transaction."""

    by_transaction = zlmdb.Index[tuple[int, int]](lambda value: (value[0], len(value[1])), version=1)


class Shared(roles.Shop):
    records: Records
    counts: zlmdb.Table[int, zlmdb.Checked[int]]


def wrong(t: Shared, began: float) -> str:
    """What is wrong with a snapshot: each writer has all records that it counted, whole transactions of them.

    It was begun after *began*.
    """
    counts = dict(t.counts)
    if len(t.records) != sum(counts.values()):
        return f"{len(t.records)} records, {sum(counts.values())} counted"
    for writer, count in counts.items():
        last = t.records.select(prefix=(writer,), reverse=True, limit=1).first()
        if count % BATCH or last is None or last[0] != (writer, count - 1):
            return f"writer {writer} counted {count}, its last record is {last and last[0]}"
    return roles.wrong(t, began)


def opened(path: Path, worker: int, schema: Any = Shared) -> zlmdb.Database[Any]:
    """Half of the processes have a map that must grow, in small steps; the others reserve what they may need."""
    if worker % 2:
        mapsize.RESERVATION = 0
        mapsize.FIRST_SIZE = 1 << 20
    return zlmdb.open(path, schema, durability="commit", timeout=60)


def write(path: Path, worker: int, report: int) -> None:
    """Add records and count them, for ever; each count is reported once it is stored."""
    rnd = random.Random(os.getpid())
    with opened(path, worker) as db:
        while True:

            def add(t: Shared) -> int:
                count = t.counts.get(worker, 0)
                for number in range(count, count + BATCH):
                    t.records[worker, number] = (number // BATCH, bytes(rnd.randrange(400)))
                t.counts[worker] = count + BATCH
                return count + BATCH

            os.write(report, b"%d %d\n" % (worker, db.run(add)))


def read(path: Path, worker: int, report: int) -> None:
    """Look at snapshots, for ever."""
    with opened(path, worker) as db:
        while True:
            began = time.time()
            with db.read() as t:
                problem = wrong(t, began)
            if problem:
                os.write(report, b"wrong: reader saw %s\n" % problem.encode())
            os.write(report, b"read\n")


def back_up(path: Path, worker: int, report: int) -> None:
    """Make copies, and look into each, for ever."""
    copy = path.with_name("copy.mdb")
    with opened(path, worker) as db:
        while True:
            db.backup(copy, overwrite=True, compact=bool(worker % 2))
            with zlmdb.open(copy, Shared, readonly=True) as other, other.read() as t:
                problem = wrong(t, 0.0)
            if problem:
                os.write(report, b"wrong: a backup has %s\n" % problem.encode())
            os.write(report, b"backup\n")


def role(work: Callable[..., object], schema: Any = Shared) -> Callable[[Path, int, int], None]:
    """One of `roles`, as the others are."""

    def run(path: Path, worker: int, report: int) -> None:
        with opened(path, worker, schema) as db:
            work(db, worker, lambda text: os.write(report, text.encode() + b"\n"))

    return run


def start(work: Callable[[Path, int, int], None], path: Path, worker: int, report: int) -> int:
    """A process that works; its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        work(path, worker, report)
    except BaseException as error:
        os.write(report, f"wrong: {work.__qualname__} {worker} met {error!r}".replace("\n", " ").encode() + b"\n")
    finally:
        os._exit(1)


def killed(pid: int) -> str:
    """Kill a process; what is wrong with it if it had ended by itself."""
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return "" if os.WIFSIGNALED(status) else f"a process ended by itself, with status {status}"


def together(directory: Path, run: float, writers: int = 4, readers: int = 8, seed: int = 1) -> dict[str, Any]:
    """Let WRITERS and READERS work for RUN seconds beside a killer and a backup loop; all counts are right then."""
    rnd, path = random.Random(seed), directory / "data"
    with zlmdb.open(path, Shared) as db:
        for name in ("follower", "mirror"):
            db.changes(roles.Tickets, consumer=name)
    reading, report = os.pipe()
    os.set_blocking(reading, False)
    jobs: list[tuple[Callable[[Path, int, int], None], int]] = [
        *((write, n) for n in range(writers)), *((read, n) for n in range(readers)), (back_up, 0),
        (role(roles.clerk), 0), (role(roles.clerk), 1), (role(roles.stranger, roles.Part), 0),
        (role(roles.follower), 0), (role(roles.mirror), 1),
    ]  # fmt: skip
    running = {start(work, path, worker, report): (work, worker) for work, worker in jobs}
    acknowledged, seen = dict.fromkeys(range(writers), 0), dict.fromkeys(("read", "backup", "kills", *roles.WORDS), 0)
    heard = roles.Heard()
    failures: list[str] = []
    rest = b""

    def listen() -> None:
        nonlocal rest
        with suppress(BlockingIOError):
            while True:
                rest += os.read(reading, 1 << 16)
        *lines, rest = rest.split(b"\n")
        for line in lines:
            words = line.decode().split()
            if words[0] in seen:
                seen[words[0]] += 1
            elif words[0] == "wrong:":
                failures.append(line.decode())
            elif words[0] in heard.KINDS:
                failures.extend(filter(None, [heard.hear(words)]))
            else:
                acknowledged[int(words[0])] = int(words[1])

    end = time.monotonic() + run
    while time.monotonic() < end and not failures:
        time.sleep(rnd.random() * 0.2)
        listen()
        victim = rnd.choice(list(running))
        work, worker = running.pop(victim)
        failures += filter(None, [killed(victim)])
        seen["kills"] += 1
        running[start(work, path, worker + 2 * rnd.randrange(2) * (work is read), report)] = (work, worker)
    for pid in running:
        failures += filter(None, [killed(pid)])
    listen()
    with zlmdb.open(path, Shared) as db:
        checked = db.check()
        failures += [problem.text for problem in checked.problems[:3]]
        with db.read() as t:
            failures += filter(None, [wrong(t, 0.0)])
            stored = dict(t.counts)
            for writer, count in acknowledged.items():
                if not count <= stored.get(writer, 0) <= count + BATCH:
                    failures.append(f"writer {writer}: {count} acknowledged, {stored.get(writer)} stored")
        failures += roles.finish(db, heard)
    size = (path / "data.mdb").stat().st_size
    return {**seen, "changes": heard.count, "records": sum(stored.values()), "bytes": size, "failures": failures[:20]}


if __name__ == "__main__":
    main(together, run=60.0, writers=4, readers=8, seed=1)
