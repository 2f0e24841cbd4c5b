"""How the cost of an operation grows with the number of records: the same steps, from 10 thousand to 10 million."""

from __future__ import annotations

import random
from itertools import cycle

from ..clock import Clock
from ..contenders.base import Store
from ..records import ROWS, Example
from .base import Outcome, Step, Workload

BATCH, LOOKUPS, COUNTS = 10_000, 1_000, 5
REPEAT = 5


class Data:
    def __init__(self, size: int) -> None:
        dice = random.Random(size)
        self.size = size
        self.keys = [[2 * dice.randrange(1, size + 1) for _ in range(min(LOOKUPS, size))] for _ in range(REPEAT)]
        self.turns = cycle(
            self.keys
        )  # other keys each time: to ask again for what was just read says little of the size
        self.new = [(2 * at + 1, Example(at, "new")) for at in dice.sample(range(1, size + 1), min(LOOKUPS, size))]


def populate(store: Store, data: Data, clock: Clock) -> Outcome:
    for start in range(1, data.size + 1, BATCH):
        stop = min(start + BATCH, data.size + 1)
        native = store.native([(2 * i, Example(i, "example struct")) for i in range(start, stop)])
        with clock:
            store.put_many(native)
    with clock:
        store.flush()
    return Outcome(data.size)


def get(store: Store, data: Data, clock: Clock) -> Outcome:
    keys = next(data.turns)
    with clock:
        found = store.get_many(keys)
    if [record.field1 * 2 for record in found] != keys:
        raise AssertionError("other records than were asked for")
    return Outcome(len(found))


def insert(store: Store, data: Data, clock: Clock) -> Outcome:
    native = store.native(data.new)
    with clock:
        store.put_many(native)
    return Outcome(len(native))


def scan(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        count = sum(1 for _ in store.scan())
    return Outcome(count)


def count(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        for _ in range(COUNTS):
            found = store.count()
    if found != data.size + len(data.new):
        raise AssertionError(f"counted {found}")
    return Outcome(COUNTS)


class Growth(Workload):
    name = "growth"
    title = "Growth: small records, integer keys"
    shape = ROWS
    sizes = {
        "tiny": (50,), "small": (1_000, 10_000), "window": (10_000, 100_000, 1_000_000),
        "full": (10_000, 100_000, 1_000_000, 10_000_000),
    }  # fmt: skip
    steps = (
        Step("insert in order", populate),
        Step("get", get, repeat=REPEAT, quick=True),
        Step("scan", scan, repeat=5),
        Step("insert at random places", insert),
        Step("count", count, "count", repeat=5, quick=True),
    )
    only = ("zlmdb", "raw lmdb", "RocksDB + msgspec", "LevelDB + msgspec", "sqlite3, typed")

    def prepare(self, size: int) -> Data:
        return Data(size)
