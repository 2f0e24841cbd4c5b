"""Simulated power cuts: the writes of a program are recorded and replayed to any point, without what was not synced.

The model of the disk: what was flushed before the cut is there; of what was not any writes are, each
whole or torn into sectors of 512 bytes of which any are there. A sector is never half. That is what SQLite, LMDB and
redb assume of disks, too.
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Optional

import zlmdb

from . import shim
from .command import Crash, in_children, loud, main
from .ledger import Ledger, Model, reached, step, wrong

WRITE, FLUSH, TRUNCATE, ACKNOWLEDGED = 1, 2, 3, 4
SECTOR = 512
_HEAD = struct.Struct("=5q")


class Session(NamedTuple):
    """A record that expires at once, by the clock of the test."""

    number: int
    until: float


class Sessions(zlmdb.Table[int, zlmdb.Checked[zlmdb.Msgpack[Session]]], expires="until"):
    """Of which the next transactions delete what has expired."""


class Latest(zlmdb.Table[int, zlmdb.Checked[int]], feed=True):
    """Whose changes are recorded."""


class Book(Ledger):
    """The ledger, with what is built on tables: a change feed and its consumer, a queue, and records that expire."""

    latest: Latest
    jobs: zlmdb.Queue[int]
    done: zlmdb.Table[int, zlmdb.Checked[int]]
    sessions: Sessions


def enter(t: Any, n: int) -> None:
    """Transaction *n*."""
    step(t, n)
    for key, new in change(n):
        if new is None:
            t.latest.pop(key, None)
        else:
            t.latest[key] = new
    t.jobs.put(n)
    if n % 2 == 0:
        lease = t.jobs.claim()
        t.done[lease.body] = n
        t.jobs.done(lease)
    t.sessions[n] = Session(n, float(n))


def change(n: int) -> list[tuple[int, Optional[int]]]:
    """What transaction *n* stores as the latest number of a key, or None."""
    return [(n % 5, n), ((n + 2) % 5, None if n % 3 == 0 else n)]


def unlike(db: zlmdb.Database[Book], n: int) -> str:
    """How the feed, the queue or what has expired are not as after *n* transactions; empty if they are."""
    state: dict[int, int] = {}
    expected: list[tuple[int, Optional[int], Optional[int]]] = []
    for number in range(1, n + 1):
        for key, new in change(number):
            if new is not None or key in state:
                expected.append((key, state.get(key), new))
            if new is None:
                state.pop(key, None)
            else:
                state[key] = new
    found = [(one.key, one.old, one.new) for one in db.changes(Latest)]
    if found != expected:
        return f"the feed has {len(found)} changes after {n} transactions, expected {len(expected)}"
    with db.read() as t:
        if dict(t.latest) != state:
            return f"the table with a feed is not that after {n} transactions"
        if sorted(t.done) != list(range(1, n // 2 + 1)):
            return f"{len(t.done)} jobs are done after {n} transactions"
        if [job.body for job in t.jobs.values()] != list(range(n // 2 + 1, n + 1)):
            return f"{len(t.jobs)} jobs wait after {n} transactions"
        if len(t.sessions):
            return "there is something that has expired"
    return ""


class Event(NamedTuple):
    """A write, a flush, a new length, or the acknowledgement of the transaction whose number is the offset."""

    kind: int
    synchronous: bool
    offset: int
    data: bytes


def make(path: Path, trace: Path, transactions: int, durability: Any, lib_version: str, together: int) -> None:
    """The program that is recorded.

    It commits in groups if more than one transaction is under way *together*: by turns of functions, and of blocks.
    """
    zlmdb.Database(str(path), lib_version=lib_version, sync=durability != "none").close()
    opened = zlmdb.open(path, Book, durability=durability)
    with open(trace, "ab", buffering=0) as notes, opened as db, ThreadPoolExecutor(together) as threads:
        notes.write(_HEAD.pack(ACKNOWLEDGED, 0, 0, 0, 0))
        for first in range(1, transactions + 1, together):
            numbers = range(first, min(first + together, transactions + 1))
            if together == 1:
                block(db, iter(numbers))
            else:
                by_blocks = first // together % 2
                of_all = iter(numbers)
                for future in [
                    threads.submit(block, db, of_all) if by_blocks else db.submit(partial(enter, n=n)) for n in numbers
                ]:
                    future.result()
            notes.write(_HEAD.pack(ACKNOWLEDGED, 0, numbers[-1], 0, 0))


def block(db: zlmdb.Database[Book], numbers: Iterator[int]) -> None:
    """The transaction with the next of *numbers*: blocks come one after the other, whichever thread is first."""
    with db.write() as t:
        enter(t, next(numbers))


def record(directory: Path, transactions: int, durability: str, lib_version: str, together: int) -> list[Event]:
    """What the program wrote, in order."""
    library, trace = shim.build(directory), directory / "trace"
    arguments = [str(directory / "recorded"), str(trace), str(transactions), durability, lib_version]
    arguments.append(str(together))
    command = [sys.executable, "-m", __spec__.name, "--record", *arguments]
    subprocess.run(command, env=shim.environment(library, ZLMDB_TRACE=str(trace)), cwd=shim.ROOT, check=True)
    events, data, at = [], trace.read_bytes(), 0
    while at < len(data):
        kind, synchronous, offset, length, _ = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        held = length if kind == WRITE else 0
        events.append(Event(kind, bool(synchronous), offset, data[at : at + held]))
        at += held
    return events


def cut(events: list[Event], point: int, rnd: random.Random) -> bytes:
    """The file after a power cut while ``events[point]`` was under way."""
    durable: list[Event] = []
    pending: list[Event] = []
    for event in events[:point]:
        if event.kind == FLUSH:
            durable += pending
            pending = []
        elif event.kind in (WRITE, TRUNCATE):
            (durable if event.synchronous and event.kind == WRITE else pending).append(event)
    if events[point].kind == WRITE:
        pending.append(events[point])
    image = bytearray()
    for event in durable:
        apply(image, event, 0, len(event.data))
    share = rnd.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    torn = rnd.random() < 0.5
    chosen = [event for event in pending if rnd.random() < share]
    for event in chosen:  # in the order of the writes: the later of two to one sector wins where both arrived
        if not torn or event.kind == TRUNCATE:
            apply(image, event, 0, len(event.data))
            continue
        for start in range(0, len(event.data), SECTOR):
            if rnd.random() < 0.5:
                apply(image, event, start, start + SECTOR)
    return bytes(image)


def apply(image: bytearray, event: Event, start: int, stop: int) -> None:
    """Put the bytes from *start* to *stop* of a write into *image*."""
    if event.kind == TRUNCATE:
        del image[event.offset :]
        image.extend(bytes(event.offset - len(image)))
        return
    data = event.data[start:stop]
    end = event.offset + start + len(data)
    image.extend(bytes(max(0, end - len(image))))
    image[event.offset + start : end] = data


def outcome(
    path: Path, image: bytes, acknowledged: int, model: Model, durability: Any, together: int = 1
) -> tuple[str, int]:  # fmt: skip
    """What opening *image* gives, in a word or a sentence; and how many acknowledged transactions were lost."""
    path.mkdir(exist_ok=True)
    for file in path.iterdir():
        file.unlink()
    (path / "data.mdb").write_bytes(image)
    try:
        problems = zlmdb.Database.verify(path)
        if problems:
            return "refused by verify", 0
        with zlmdb.open(path, Book, durability=durability) as db:
            n = reached(db)[0]
            problem = wrong(db, model, 0, acknowledged + together) or unlike(db, n)
            if not problem:
                with db.write() as t:  # and it goes on
                    enter(t, n + 1)
                problem = wrong(db, model, n + 1, n + 1) or unlike(db, n + 1)
    except zlmdb.Error as error:
        return f"refused: {type(error).__name__}", 0
    return problem or "whole", max(0, acknowledged - n)


def cuts(
    directory: Path,
    images: int,
    transactions: int = 60,
    durability: str = "full",
    format: str = "0.9",
    seed: int = 1,
    together: int = 1,
) -> dict[str, Any]:
    """Replay IMAGES power cuts of a program with DURABILITY on the LMDB FORMAT; outcomes as docs/reliability.rst says.

    "full": nothing acknowledged is lost. "commit": at most the last two transactions are, and what is left is whole.
    "none": anything may be lost, and parts of transactions may be left; no file harms who asks `Database.verify` first.
    With more than one transaction TOGETHER, they are stored in groups.
    """
    events = record(directory, transactions, durability, format, together)
    opened = next(i for i, event in enumerate(events) if event.kind == ACKNOWLEDGED)
    model, place = Model(), directory / "image"
    rnd = random.Random(seed)
    points = [rnd.randrange(opened + 1, len(events)) for _ in range(images)]
    acknowledged = [max(e.offset for e in events[:point] if e.kind == ACKNOWLEDGED) for point in points]
    model.after(transactions + together + 1)

    def one(number: int) -> tuple[str, int]:
        image = cut(events, points[number], random.Random(seed * images + number))
        return outcome(place, image, acknowledged[number], model, durability, together)

    outcomes: Counter[str] = Counter()
    lost: Counter[int] = Counter()
    failures: list[str] = []
    for number, found in in_children(one, range(images)):
        text, missing = (f"crash by signal {found.signal}", 0) if isinstance(found, Crash) else found
        outcomes[text] += 1
        lost[missing] += text == "whole"
        good = text == "whole" or (durability == "none" and not isinstance(found, Crash))
        if not good or (durability == "full" and missing) or (durability == "commit" and missing > 2):
            failures.append(f"image {number}, cut at {points[number]}: {text}, {missing} transactions lost")
    return {
        "events": len(events),
        "outcomes": dict(outcomes),
        "lost_transactions": {str(count): times for count, times in sorted(lost.items())},
        "failures": failures[:20],
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        loud()
        make(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6], int(sys.argv[7]))
        os._exit(0)
    main(cuts, images=1000, transactions=60, durability="full", format="0.9", seed=1, together=1)
