"""ZipponDB: populate in transactions of 1,000 users, then ten queries, no index.

Beside the users are tables of 4 categories, 19 items and no orders, as published; links are keys. The first two are put
within the populating, a transaction each. Queries give a list of objects, or where it says so the bytes of a JSON array
of them. Q10 deletes once; the published mean is of nine deletes of an empty table and one of a full one. There are no
threads: the published figures have 16.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import partial

from ..clock import Clock
from ..contenders.base import Store
from ..records import CATEGORIES, ITEMS, ORDERS, PERSONS, Shape, goods, persons
from .base import Outcome, Pair, Step, Workload, parts

BATCH = 1_000


PUBLISHED: dict[str, dict[int, tuple[float, ...]]] = {
    "populate": {5_000: (36,), 100_000: (708,), 1_000_000: (7030,)},
    "Q1 all users, JSON bytes": {5_000: (16.90,), 100_000: (126.99,), 1_000_000: (250.77, 1720)},
    "Q2 name='asd', no hit": {5_000: (2.62,), 100_000: (38.12,), 1_000_000: (67.90, 511)},
    "Q3 limit 1": {5_000: (0.16,), 100_000: (0.19,), 1_000_000: (8.92, 4.34)},
    "Q4 project name": {5_000: (7.88,), 100_000: (59.33,), 1_000_000: (110.08, 789)},
    "Q5 name='Charlie', 20%": {5_000: (3.87,), 100_000: (53.29,), 1_000_000: (73.65, 764)},
    **{
        step: {5_000: (0.13, 0.23), 100_000: (0.13, 0.23), 1_000_000: (0.13, 0.23)}
        for step in ("Q6 all categories", "Q7 all items", "Q8 all orders", "Q9 orders projected")
    },
    "Q10 delete all, once": {5_000: (4.04,), 100_000: (57.07,), 1_000_000: (114.30, 787)},
}
"""ZipponDB's own milliseconds on 16 hardware threads, and behind them those of one thread where it published them; for
the four small queries the least and the most of all sizes."""


class Data:
    """Users are made as they are put; how many are called Charlie is counted there."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.charlies = 0
        categories, items = goods()
        self.beside: dict[str, list[Pair]] = {CATEGORIES.name: categories, ITEMS.name: items, ORDERS.name: []}


def populate(store: Store, data: Data, clock: Clock) -> Outcome:
    data.charlies = 0
    for batch in parts(persons(data.size), BATCH):
        data.charlies += sum(1 for _, person in batch if person.name == "Charlie")
        put(store, batch, clock)
    for shape in PERSONS.beside:
        put(store.beside(shape), data.beside[shape.name], clock)
    with clock:
        store.flush()
    return Outcome(data.size, lambda: verify(store, data))


def put(store: Store, batch: list[Pair], clock: Clock) -> None:
    if batch:
        native = store.native(batch)
        with clock:
            store.put_many(native)


def verify(store: Store, data: Data) -> None:
    """Every record is there; the order of a scan is a contender's own."""
    same_records(store, persons(data.size))
    for shape in PERSONS.beside:
        same_records(store.beside(shape), data.beside[shape.name])


def same_records(store: Store, pairs: Iterable[Pair]) -> None:
    values = store.shape.values
    expected = Counter(tuple(values(record)) for _, record in pairs)
    expected.subtract(Counter(tuple(values(record)) for record in store.scan()))
    if any(expected.values()):
        raise AssertionError(f"not the {store.shape.name} that were put")


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


def all_beside(store: Store, data: Data, clock: Clock, shape: Shape) -> Outcome:
    table, expected = store.beside(shape), data.beside[shape.name]
    with clock:
        found = list(table.scan())
    expect(len(found), len(expected))
    return Outcome(1, lambda: same_records(table, expected))


def project_orders(store: Store, data: Data, clock: Clock) -> Outcome:
    table = store.beside(ORDERS)
    with clock:
        found = table.project("from_", "items", "quantity", "at")
    expect(len(found), len(data.beside[ORDERS.name]))
    return Outcome(1)


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
        "tiny": (60,), "small": (500,), "window": (5_000, 100_000, 1_000_000),
        "full": (5_000, 100_000, 1_000_000, 10_000_000),
    }  # fmt: skip
    steps = (
        Step("populate", populate, "user", sized=True),
        Step("Q1 all users, objects", everything, "user", repeat=3),
        Step("Q1 all users, JSON bytes", as_json, "user", repeat=3),
        Step("Q2 name='asd', no hit", no_hit, "user searched", repeat=3),
        Step("Q3 limit 1", first, "query", repeat=3, quick=True),
        Step("Q4 project name", project, "user", repeat=3),
        Step("Q5 name='Charlie', 20%", charlie, "user searched", repeat=3),
        Step("Q6 all categories", partial(all_beside, shape=CATEGORIES), "query", repeat=10, quick=True),
        Step("Q7 all items", partial(all_beside, shape=ITEMS), "query", repeat=10, quick=True),
        Step("Q8 all orders", partial(all_beside, shape=ORDERS), "query", repeat=10, quick=True),
        Step("Q9 orders projected", project_orders, "query", repeat=10, quick=True),
        Step("Q10 delete all, once", delete, "user"),
    )

    def prepare(self, size: int) -> Data:
        return Data(size)
