"""db_benchmark: insert, query, update and delete on a store of many records of 128 random bytes.

Two variants of each operation. "seed-faithful": 100 operations, and the update draws its random bytes inside the clock,
as published; mostly the price of drawing. "corrected": thousands of operations on data drawn before. An operation is a
transaction of its own where it says so, else 100 share one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..clock import Clock
from ..contenders.base import Store
from ..records import BLOBS_16, BLOBS_INT
from .base import Outcome, Pair, Step, Workload, fill

SEEDED, GROUP = 100, 100
WIDTH, CHUNK = 128, 10_000


class Data:
    """The keys, and the records of the operations, are drawn before; those to begin with as they are put."""

    def __init__(self, size: int, text: bool, operations: int) -> None:
        dice = self.dice = random.Random(size)
        many, few = min(operations, size // 2), min(SEEDED, size // 10)
        keys = distinct(dice, size + 2 * many + few, text)
        self.keys, spare = keys[:size], keys[size:]
        kept, self.gone_seeded = range(few, size), self.keys[:few]
        new = [(key, dice.randbytes(WIDTH)) for key in spare]
        self.new, self.new_grouped, self.new_seeded = new[:many], new[many : 2 * many], sorted(new[2 * many :])
        self.asked = [self.keys[at] for at in dice.choices(kept, k=many)]
        self.asked_seeded = self.asked[:few]
        self.changed = [(self.keys[at], dice.randbytes(WIDTH)) for at in dice.choices(kept, k=many)]
        self.gone = [self.keys[at] for at in dice.sample(kept, many)]
        self.left = size + 2 * many - many  # after every step: the seeded inserts and deletes cancel each other

    def records(self) -> Iterator[Pair]:
        """The keys in the order in which they were drawn, with random bytes; the same ones whenever it is called."""
        dice = random.Random(len(self.keys) + 1)
        for start in range(0, len(self.keys), CHUNK):
            keys = self.keys[start : start + CHUNK]
            data = dice.randbytes(WIDTH * len(keys))
            yield from zip(keys, (data[at : at + WIDTH] for at in range(0, len(data), WIDTH)))


def distinct(dice: random.Random, count: int, text: bool) -> list[Any]:
    """So many keys, no two the same: 16 random bytes, or 53 random bits, of which 0 is none."""
    found: dict[Any, None] = {0: None}
    while len(found) <= count:
        missing = count + 1 - len(found)
        if text:
            data = dice.randbytes(16 * missing)
            found.update(dict.fromkeys([data[at : at + 16] for at in range(0, len(data), 16)]))
        else:
            found.update(dict.fromkeys([dice.getrandbits(53) for _ in range(missing)]))
    del found[0]
    return list(found)


def prefill(store: Store, data: Data, clock: Clock) -> Outcome:
    fill(store, data.records(), clock, 10_000)
    return Outcome(len(data.keys))


def insert(store: Store, pairs: list[Any], clock: Clock) -> Outcome:
    native = store.native(pairs)
    with clock:
        for key, record in native:
            store.put(key, record)
    return Outcome(len(native), lambda: same(store, pairs))


def query(store: Store, keys: list[Any], clock: Clock) -> Outcome:
    with clock:
        for key in keys:
            store.get(key)
    return Outcome(len(keys))


def update(store: Store, pairs: list[Any], clock: Clock) -> Outcome:
    native = store.native(pairs)
    with clock:
        for key, record in native:
            store.get(key)
            store.put(key, record)
    return Outcome(len(native), lambda: same(store, list(dict(pairs).items())))


def update_seeded(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        for key in data.asked_seeded:
            store.get(key)
            store.put(*store.native([(key, data.dice.randbytes(WIDTH))])[0])
    return Outcome(len(data.asked_seeded))


def delete(store: Store, keys: list[Any], clock: Clock) -> Outcome:
    with clock:
        for key in keys:
            store.delete(key)
    return Outcome(len(keys))


def delete_last(store: Store, data: Data, clock: Clock) -> Outcome:
    return replace(delete(store, data.gone, clock), check=lambda: count(store, data.left))


def insert_grouped(store: Store, data: Data, clock: Clock) -> Outcome:
    fill(store, data.new_grouped, clock, GROUP)
    return Outcome(len(data.new_grouped), lambda: same(store, data.new_grouped))


def query_grouped(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        for start in range(0, len(data.asked), GROUP):
            store.get_many(data.asked[start : start + GROUP])
    return Outcome(len(data.asked))


def same(store: Store, pairs: list[tuple[Any, Any]]) -> None:
    store.shape.check_all(store.get_many([key for key, _ in pairs]), [record for _, record in pairs])


def count(store: Store, expected: int) -> None:
    if store.count() != expected:
        raise AssertionError(f"{store.count()} records after the deletes, expected {expected}")


class DbBenchmark(Workload):
    name = "db_benchmark"
    title = "db_benchmark: 8-byte integer keys, 128-byte values"
    shape = BLOBS_INT
    text = False
    operations = 10_000
    sizes = {
        "tiny": (200,), "small": (500,), "window": (100_000, 1_000_000), "full": (100_000, 1_000_000, 10_000_000),
    }  # fmt: skip
    steps = (
        Step("prefill", prefill),
        Step("seed-faithful insert", lambda store, data, clock: insert(store, data.new_seeded, clock)),
        Step("seed-faithful query", lambda store, data, clock: query(store, data.asked_seeded, clock)),
        Step("seed-faithful update", update_seeded),
        Step("seed-faithful delete", lambda store, data, clock: delete(store, data.gone_seeded, clock)),
        Step("insert", lambda store, data, clock: insert(store, data.new, clock)),
        Step("query", lambda store, data, clock: query(store, data.asked, clock)),
        Step("update", lambda store, data, clock: update(store, data.changed, clock)),
        Step("insert, 100 a transaction", insert_grouped),
        Step("query, 100 a transaction", query_grouped),
        Step("delete", delete_last),
    )

    def prepare(self, size: int) -> Data:
        return Data(size, self.text, self.operations)


class DbBenchmark16(DbBenchmark):
    name = "db_benchmark_16"
    title = "db_benchmark: 16-byte string keys, 128-byte values"
    shape = BLOBS_16
    text = True
    sizes = {"tiny": (200,), "small": (500,), "window": (100_000,), "full": (100_000, 1_000_000, 10_000_000)}
    only = ("zlmdb", "raw lmdb", "RocksDB", "LevelDB", "sqlite3")


class DbBenchmarkDurable(DbBenchmark):
    name = "db_benchmark_durable"
    title = "db_benchmark: 8-byte integer keys, every commit synced"
    durability = "full"
    operations = 2_000  # each of which waits for the disk
    sizes = {"tiny": (200,), "small": (200,), "window": (10_000,), "full": (100_000, 1_000_000)}
