"""ZipponDB: populate in transactions of 1,000 users, then ten queries, no index.

Queries give a list of objects, or where it says so the bytes of a JSON array of them. Q6 to Q9 ask tables of 4, 19 and
no records; they cost a transaction, and Q6 stands for them. Q10 deletes once; the published mean is of nine deletes of
an empty table and one of a full one. There are no threads: the published figures have 16.
"""

from __future__ import annotations

import json
from typing import Any

from ..clock import Clock
from ..contenders.base import Store
from ..records import PERSONS, persons
from .base import Outcome, Step, Workload

BATCH = 1_000


class Data:
    def __init__(self, size: int) -> None:
        self.size = size
        self.charlies = sum(1 for _, person in persons(size) if person.name == "Charlie")


def populate(store: Store, data: Data, clock: Clock) -> Outcome:
    batch: list[Any] = []
    for pair in persons(data.size):
        batch.append(pair)
        if len(batch) == BATCH:
            put(store, batch, clock)
            batch = []
    put(store, batch, clock)
    with clock:
        store.flush()
    return Outcome(data.size, lambda: verify(store, data))


def put(store: Store, batch: list[Any], clock: Clock) -> None:
    if batch:
        native = store.native(batch)
        with clock:
            store.put_many(native)


def verify(store: Store, data: Data) -> None:
    """Every record is there; the order of a scan is a contender's own."""
    expected: dict[tuple[Any, ...], int] = {}
    for _, person in persons(data.size):
        facts = tuple(store.shape.values(person))
        expected[facts] = expected.get(facts, 0) + 1
    for person in store.scan():
        expected[tuple(store.shape.values(person))] -= 1
    if any(expected.values()):
        raise AssertionError("not the records that were put")


def expect(count: int, expected: int) -> Outcome:
    if count != expected:
        raise AssertionError(f"{count} results, expected {expected}")
    return Outcome(count)


def everything(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        found = list(store.scan())
    return expect(len(found), data.size)


def as_json(store: Store, data: Data, clock: Clock) -> Outcome:
    names = list(store.shape.columns)
    with clock:
        rows = [{name: getattr(record, name) for name in names} for record in store.scan()]
        text = json.dumps(rows).encode()
    return Outcome(data.size, lambda: expect(len(json.loads(text)), data.size))


def no_hit(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        found = store.where("name", "asd")
    expect(len(found), 0)
    return Outcome(data.size)


def charlie(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        found = store.where("name", "Charlie")
    expect(len(found), data.charlies)
    return Outcome(data.size)


def first(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        found = store.first()
    if not found.name:
        raise AssertionError("no user")
    return Outcome(1)


def project(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        found = store.project("name")
    return expect(len(found), data.size)


def delete(store: Store, data: Data, clock: Clock) -> Outcome:
    with clock:
        store.clear()
    if store.count() != 0:
        raise AssertionError("records are left")
    return Outcome(data.size)


class Zippondb(Workload):
    name = "zippondb"
    title = "ZipponDB: persons, populate and query"
    shape = PERSONS
    sizes = {
        "tiny": (60,), "small": (2_000,), "window": (5_000, 100_000, 1_000_000),
        "full": (5_000, 100_000, 1_000_000, 10_000_000),
    }  # fmt: skip
    steps = (
        Step("populate", populate, "user"),
        Step("Q1 all users, objects", everything, "user", repeat=3),
        Step("Q1 all users, JSON bytes", as_json, "user", repeat=3),
        Step("Q2 name='asd', no hit", no_hit, "user searched", repeat=3),
        Step("Q3 limit 1", first, "query", repeat=3),
        Step("Q4 project name", project, "user", repeat=3),
        Step("Q5 name='Charlie', 20%", charlie, "user searched", repeat=3),
        Step("Q10 delete all, once", delete, "user"),
    )

    def prepare(self, size: int) -> Data:
        return Data(size)
