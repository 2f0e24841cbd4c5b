"""go-persist: reads and writes mixed, one transaction an operation, by one thread, many threads, several processes.

Operations are dealt evenly; keys are uniform, drawn before. Threads of CPython share one lock, the GIL: many threads
do not make it faster, and the figures say what they cost. They have started, and have their connections, when the clock
does. Processes share the file, where the store allows it; each has operations of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ..clock import Clock
from ..contenders.base import Store
from ..records import STRINGS, STRUCTS, Example
from .base import Outcome, Pair, Step, Workload, fill
from .crowd import in_threads, shared_out

TEXT = "gq2ip4;9209;4fm2d1d3DJ138D2L38<TAB>2FP2938FP238HFP2H  FDAUWF1<TAB>2"
PROCESSES = 2


class Data:
    """The keys of the operations are drawn before; the records to begin with are made as they are put."""

    def __init__(self, size: int, strings: bool, operations: int, process: int = 0) -> None:
        dice = random.Random(size + process)
        self.size = size
        self.before: Any = (lambda i: TEXT) if strings else (lambda i: Example(i, "example struct"))
        self.after: Any = (lambda i: TEXT + " updated") if strings else (lambda i: Example(i, "updated struct"))
        self.keys = [dice.randrange(size) for _ in range(operations)]
        self.dice = [dice.randrange(100) for _ in range(operations)]

    def records(self) -> Iterator[Pair]:
        return ((str(i), self.before(i)) for i in range(self.size))


def prefill(store: Store, data: Data, clock: Clock) -> Outcome:
    fill(store, data.records(), clock, 10_000)
    return Outcome(data.size, lambda: store.shape.check_all(store.get_many(["0"]), [data.before(0)]))


def mix(store: Store, data: Data, clock: Clock, writes: int, threads: int) -> Outcome:
    """*writes* per cent of the operations put a record, the others get one, which must be there."""
    made = [(key, data.after(key) if die < writes else None) for key, die in zip(data.keys, data.dice)]
    put = {i for i, (_, record) in enumerate(made) if record is not None}
    native = store.native([(str(key), record) for key, record in made if record is not None])
    queue = iter(native)
    operations = [next(queue) if i in put else (str(key), None) for i, (key, _) in enumerate(made)]
    get, put_one = store.get, store.put

    def work(share: Sequence[tuple[str, Any]]) -> None:
        for key, record in share:
            if record is not None:
                put_one(key, record)
            elif get(key) is None:
                raise AssertionError(f"the record {key} is not there")

    # To get one first makes the connection of a thread, for stores that have one for each.
    in_threads(shared_out(operations, threads), clock, partial(get, "0"), work)
    return Outcome(len(operations))


def steps(threads: tuple[int, ...], writes: int, processes: bool) -> tuple[Step, ...]:
    mixes = [
        Step(
            f"{100 - writes}/{writes}, {count} thread{'s' * (count > 1)}",
            partial(mix, writes=writes, threads=count),
            "op",
        )
        for count in threads
    ]
    if processes:
        mixed = partial(mix, writes=writes, threads=1)
        mixes.append(Step(f"{100 - writes}/{writes}, {PROCESSES} processes", mixed, "op", processes=PROCESSES))
    return (Step("prefill", prefill), *mixes)


class GoPersist(Workload):
    name = "go_persist"
    title = "go-persist: 80/20 mix, structs, no sync"
    shape = STRUCTS
    strings = False
    operations = 20_000
    patience = 2.0
    sizes = {"tiny": (50,), "small": (200,), "window": (10_000,), "full": (10_000, 100_000, 5_000_000)}
    steps = (*steps((1, 10, 150), 20, True), *steps((10,), 10, False)[1:])

    def prepare(self, size: int) -> Data:
        return self.prepare_beside(size, 0)

    def prepare_beside(self, size: int, process: int) -> Data:
        return Data(size, self.strings, max(200, min(self.operations, size)), process)


class GoPersistStrings(GoPersist):
    name = "go_persist_strings"
    title = "go-persist: 80/20 mix, strings, no sync"
    shape = STRINGS
    strings = True
    only = ("zlmdb", "raw lmdb", "RocksDB", "LevelDB", "sqlite3", "dict")
    sizes = {"tiny": (50,), "small": (200,), "window": (10_000,), "full": (100_000, 5_000_000)}


class GoPersistCommit(GoPersist):
    name = "go_persist_commit"
    title = 'go-persist: 80/20 mix, structs, durability "commit"'
    durability = "commit"
    operations = 1_000
    sizes = {"tiny": (50,), "small": (200,), "window": (10_000,), "full": (10_000, 100_000)}
    steps = steps((1, 10), 20, False)


class GoPersistFull(GoPersistCommit):
    name = "go_persist_full"
    title = "go-persist: 80/20 mix, structs, fsync on every write"
    durability = "full"
