"""ZDS: documents, written once, read all, read at random.

The published figures serialise ZDS' records outside the timer and SQLite's inside; here every contender serialises
inside. "Cold" there was a new handle in the same process; here it is a new process, opening included. The page cache
of the system is warm either way, and we say so.
"""

from __future__ import annotations

import random
from typing import Any

from ..clock import Clock
from ..contenders.base import Store
from ..records import DOCUMENTS, documents
from .base import Outcome, Step, Workload, fill

LOOKUPS = 1000


def write(store: Store, data: Any, clock: Clock) -> Outcome:
    fill(store, data.pairs, clock, len(data.pairs))
    return Outcome(len(data.pairs), lambda: check(store, data))


def check(store: Store, data: Any) -> None:
    """Every document is there and the same; the order of a scan is a contender's own."""
    found = sorted(store.scan(), key=lambda document: str(store.shape.values(document)[0]))
    store.shape.check_all(found, [record for _, record in data.pairs])


def read_all(store: Store, data: Any, clock: Clock) -> Outcome:
    with clock:
        count = sum(1 for _ in store.scan())
    return Outcome(count)


def lookup(store: Store, data: Any, clock: Clock) -> Outcome:
    keys, expected = data.lookups
    with clock:
        found = store.get_many(keys)
    return Outcome(len(keys), lambda: store.shape.check_all(found, expected))


class Data:
    def __init__(self, size: int) -> None:
        self.pairs = list(documents(size))
        chosen = random.Random(123).sample(self.pairs, min(LOOKUPS, size))
        self.lookups = [key for key, _ in chosen], [record for _, record in chosen]


class FreshData:
    """Keys only: the documents themselves would cost more time to make than to look up."""

    def __init__(self, size: int) -> None:
        chosen = random.Random(123).sample(range(size), min(LOOKUPS, size))
        self.lookups: Any = [f"record_{number:08d}" for number in chosen], []


class Zds(Workload):
    name = "zds"
    title = "ZDS: documents of 200 bytes"
    shape = DOCUMENTS
    patience = 2.0  # two new processes a round, which take some contenders a second each to start
    sizes = {"tiny": (50,), "small": (500,), "window": (100_000,), "full": (100_000,)}
    steps = (
        Step("write", write, "document"),
        Step("read all, new process", read_all, "document", fresh=True),
        Step("random, new process", lookup, "document", fresh=True),
        Step("read all, open handle", read_all, "document", repeat=3),
        Step("random, open handle", lookup, "document", repeat=5),
    )

    def prepare(self, size: int) -> Data:
        return Data(size)

    def prepare_fresh(self, size: int) -> FreshData:
        return FreshData(size)
