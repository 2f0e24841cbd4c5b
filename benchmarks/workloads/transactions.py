"""Small transactions: one operation each, by one, ten and 150 threads, 64 in flight from one thread, 100 asyncio tasks.

Small records with integer keys. What is written replaces a record that is there. "zlmdb" uses ``db.auto``, for writes
in flight ``db.submit``, and in tasks ``db.arun``. A store whose calls return when they are done has one in flight,
whatever the step is called; where it has no asyncio, tasks hand the calls to threads.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import partial

from ..clock import Clock
from ..contenders.base import Store
from ..records import ACCOUNTS, Person
from .base import PYPY, Outcome, Pair, Step, Workload, fill
from .crowd import in_tasks, in_threads, shared_out

THREADS, MANY_THREADS, IN_FLIGHT, TASKS = 10, 150, 64, 100
WRITTEN = 20
"""Per cent of the operations that write, where reads and writes are mixed."""


def account(key: int, age: int) -> Person:
    """A record; *age* tells what was written there last."""
    return Person(f"name {key}", f"account{key}@example.com", age, f"{key % 97} Main Street")


class Data:
    """Keys are drawn before. What is written differs from step to step, so that a lost write is seen."""

    def __init__(self, size: int, operations: int) -> None:
        dice = random.Random(size)
        self.size, self.turn = size, 0
        self.keys = [dice.randrange(1, size + 1) for _ in range(operations)]
        self.written = [dice.randrange(100) < WRITTEN for _ in self.keys]
        self.expected: dict[int, Person] = {}
        """What was written last by key; others have what was there to begin with."""

    def changed(self, keys: Iterable[int]) -> list[Pair]:
        """New records for these, which are remembered as written."""
        self.turn += 1
        pairs = [(key, account(key, self.turn)) for key in keys]
        self.expected.update(pairs)
        return pairs


def prefill(store: Store, data: Data, clock: Clock) -> Outcome:
    data.expected.clear()
    fill(store, ((key, account(key, 0)) for key in range(1, data.size + 1)), clock, 10_000)
    return Outcome(data.size, lambda: check(store, {data.keys[0]: account(data.keys[0], 0)}))


def check(store: Store, expected: dict[int, Person]) -> None:
    store.shape.check_all(store.get_many(list(expected)), list(expected.values()))


def written(store: Store, data: Data, count: int) -> Outcome:
    expected = dict(data.expected)
    return Outcome(count, lambda: check(store, expected))


def read(store: Store, data: Data, clock: Clock) -> Outcome:
    keys, get = data.keys, store.get
    found = [None] * len(keys)
    with clock:
        for at, key in enumerate(keys):
            found[at] = get(key)
    return Outcome(len(keys), lambda: [store.shape.check_same(one, account(key, 0)) for one, key in zip(found, keys)])


def write(store: Store, data: Data, clock: Clock) -> Outcome:
    native, put = store.native(data.changed(data.keys)), store.put
    with clock:
        for key, record in native:
            put(key, record)
    return written(store, data, len(native))


def threads(store: Store, data: Data, clock: Clock, mixed: bool, count: int = THREADS) -> Outcome:
    """By *count* threads: writes, or *mixed* with reads."""
    writes = [not mixed or write for write in data.written]
    native = iter(store.native(data.changed(key for key, write in zip(data.keys, writes) if write)))
    operations = [next(native) if write else (key, None) for key, write in zip(data.keys, writes)]
    get, put = store.get, store.put

    def work(share: Sequence[Pair]) -> None:
        for key, record in share:
            if record is not None:
                put(key, record)
            elif get(key) is None:
                raise AssertionError(f"the record {key} is not there")

    in_threads(shared_out(operations, count), clock, partial(get, data.keys[0]), work)
    return written(store, data, len(operations))


def in_flight(store: Store, data: Data, clock: Clock) -> Outcome:
    native = store.native(data.changed(data.keys))
    with clock:
        store.put_in_flight(native, IN_FLIGHT)
    return written(store, data, len(native))


def tasks(store: Store, data: Data, clock: Clock) -> Outcome:
    native = store.native(data.changed(data.keys))

    async def work(share: Sequence[Pair]) -> None:
        for key, record in share:
            await store.aput(key, record)

    in_tasks(shared_out(native, TASKS), clock, partial(store.get, data.keys[0]), work, store.helpers)
    return written(store, data, len(native))


BY_THREADS = (
    Step("write, ten threads", partial(threads, mixed=False), "write"),
    Step("80/20 mixed, ten threads", partial(threads, mixed=True), "op"),
    Step(f"write, {MANY_THREADS} threads", partial(threads, mixed=False, count=MANY_THREADS), "write"),
    Step(f"80/20 mixed, {MANY_THREADS} threads", partial(threads, mixed=True, count=MANY_THREADS), "op"),
)
BESIDE = (
    "LevelDB + msgspec", "RocksDB + msgspec", "sqlite3, typed columns", "diskcache", "ObjectBox", "raw lmdb + pickle",
    "raw lmdb + zlmdb codec" if PYPY else "raw lmdb + msgspec", "zlmdb", "zlmdb, with blocks", "zlmdb, run",
)  # fmt: skip


class Transactions(Workload):
    name = "transactions"
    title = "Small transactions, no sync"
    shape = ACCOUNTS
    operations = 10_000
    sizes = {"tiny": (50,), "small": (500,), "window": (10_000,), "full": (100_000,)}
    steps = (
        Step("prefill", prefill),
        Step("read, one thread", read, "read"),
        Step("write, one thread", write, "write"),
        *BY_THREADS,
    )

    def wants(self, label: str) -> bool:
        """ObjectBox always syncs: it is one of those beside which that is measured."""
        return label in BESIDE and (label != "ObjectBox" or self.durability == "full")

    def prepare(self, size: int) -> Data:
        return Data(size, min(self.operations, size))


class TransactionsDurable(Transactions):
    name = "transactions_durable"
    title = "Small transactions, fsync before each returns"
    durability = "full"
    operations = 1_000
    steps = (
        Step("prefill", prefill),
        Step("write, one thread", write, "write"),
        *BY_THREADS,
        Step(f"writes of one thread, {IN_FLIGHT} may be in flight", in_flight, "write"),
        Step(f"writes of {TASKS} tasks of asyncio", tasks, "write"),
    )
