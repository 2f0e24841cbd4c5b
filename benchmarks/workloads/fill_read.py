"""zlmdb's own benchmark of 2018: fill with users in write transactions of 10,000, then read at random.

Two forms: the full object, all 11 fields; and, labelled so, the six fields that the published FlatBuffers builder
wrote. Published was a rate that includes making the objects and drawing the keys; here both are made before.
"""

from __future__ import annotations

import random

from ..clock import Clock
from ..contenders.base import Store
from ..records import SIX_FIELDS, USERS, six_fields, users
from .base import Outcome, Step, Workload, fill

BATCH = 10_000


class Data:
    def __init__(self, size: int, full: bool) -> None:
        self.pairs = [(oid, user if full else six_fields(user)) for oid, user in users(size)]
        chosen = random.Random(7).sample(self.pairs, min(10_000, size))
        self.keys, self.expected = [key for key, _ in chosen], [record for _, record in chosen]


def write(store: Store, data: Data, clock: Clock) -> Outcome:
    batches = fill(store, data.pairs, clock, BATCH)
    return Outcome(len(data.pairs), lambda: check_count(store, len(data.pairs)), batches)


def check_count(store: Store, expected: int) -> None:
    if store.count() != expected:
        raise AssertionError(f"{store.count()} records, {expected} were put")


def read(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        found = store.get_many(data.keys)
    return Outcome(len(found), lambda: store.shape.check_all(found, data.expected))


def read_field(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        found = store.get_field(data.keys, "referred_by")
    if found != [record.referred_by for record in data.expected]:
        raise AssertionError("a field was read wrongly")
    return Outcome(len(found))


def scan(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        count = sum(1 for _ in store.scan())
    return Outcome(count)


class FillRead(Workload):
    name = "fill_read"
    title = "zlmdb 2018: users of 11 fields"
    shape = USERS
    durability = "full"
    patience = 10.0  # the targets are read from it
    sizes = {"tiny": (50,), "small": (500,), "window": (50_000,), "full": (50_000,)}
    steps = (
        Step("fill", write, "user"),
        Step("random get", read, "user", repeat=5),
        Step("random get, one field", read_field, "user", repeat=5),
        Step("scan", scan, "user", repeat=3),
    )

    def prepare(self, size: int) -> Data:
        return Data(size, full=True)


class FillReadPublished(FillRead):
    name = "fill_read_published"
    title = "zlmdb 2018, as published: six of the 11 fields"
    shape = SIX_FIELDS
    sizes = {"tiny": (50,), "small": (500,), "window": (20_000,), "full": (50_000,)}
    only = ("zlmdb", "raw lmdb")

    def prepare(self, size: int) -> Data:
        return Data(size, full=False)
