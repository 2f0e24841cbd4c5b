"""How fast each serializer fills, reads and scans its table, and how many bytes it takes.

Serializers take turns in reading and scanning, piece by piece, so that what disturbs the machine disturbs all of them.
Rates are medians of the pieces. Making the data, choosing the keys and checking what came back is outside the timers.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from itertools import islice
from statistics import mean, median
from time import perf_counter
from typing import Callable, Optional

import zlmdb

from ..namedtuples import NamedTuple
from .cities import City, DemoError, Tile
from .machine import interpreter
from .world import Cities, Load, World, formats

BATCH = 1000  # records in a transaction that fills, and in a piece of a scan
READS = 10  # rounds of random reads
READS_A_ROUND = 1000
_SAMPLE = 1000  # records whose length is measured

Advance = Callable[[int], None]
"""Told of so many more records, between the timers."""


class Figures(NamedTuple):
    """What was measured of one serializer: rates in records a second, sizes in bytes a record."""

    format: str
    fill: float
    read: float
    scan: float
    value_bytes: float  # the value alone
    file_bytes: float  # pages of the table: keys and free space too, indexes not


def fill(
    db: zlmdb.Database[World], name: str, records: Sequence[tuple[Tile, City]], limit: Optional[int], advance: Advance
) -> Load:  # fmt: skip
    """Fill the table *name* with *records*, a durable commit each `BATCH`; how it went, which is stored beside it.

    What an interrupted run has left in the table is deleted first.
    """
    with db.write() as world:
        formats(world)[name].clear()
    rates: list[float] = []
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        began = perf_counter()
        with db.write() as world:
            formats(world)[name].put_many(batch)
        rates.append(len(batch) / (perf_counter() - began))
        advance(len(batch))
    with db.write() as world:
        load = Load(
            cities=len(records),
            limit=limit,
            rate=median(rates),
            value_bytes=_value_bytes(formats(world)[name], records),
            interpreter=interpreter(),
            date=datetime.now(timezone.utc).date().isoformat(),
        )
        world.loads[name] = load
    return load


def _value_bytes(table: Cities[City], records: Sequence[tuple[Tile, City]]) -> float:
    """The mean length of the values, from a sample that is spread over *records*."""
    step = max(1, len(records) // _SAMPLE)
    return mean(len(table._storage.value.encode(city)) for _, city in records[::step])


def read_rates(tables: Mapping[str, Cities[City]], keys: Sequence[Tile], advance: Advance) -> dict[str, float]:
    """Records a second of looking up random *keys*, by serializer."""
    choose = random.Random(27)
    rates: dict[str, list[float]] = {name: [] for name in tables}
    for _ in range(READS):
        chosen = choose.choices(keys, k=READS_A_ROUND)
        for name, table in tables.items():
            began = perf_counter()
            for key in chosen:
                table[key]
            rates[name].append(len(chosen) / (perf_counter() - began))
            advance(len(chosen))
    return {name: median(found) for name, found in rates.items()}


def scan_rates(tables: Mapping[str, Cities[City]], expected: Mapping[Tile, City], advance: Advance) -> dict[str, float]:
    """Records a second of reading whole tables in the order of their keys, by serializer.

    Raises `DemoError` unless each table holds the records of *expected* and no others.
    """
    rates: dict[str, list[float]] = {name: [] for name in tables}
    found = dict.fromkeys(tables, 0)
    # Timed is a reading that lets go of each record, as a search does; what is compared is read once more.
    timed = {name: iter(table.select()) for name, table in tables.items()}
    compared = {name: iter(table.select()) for name, table in tables.items()}
    for _ in range(0, len(expected) + 1, BATCH):  # one more than there should be
        for name in tables:
            began = perf_counter()
            deque(islice(timed[name], BATCH), maxlen=0)
            seconds = perf_counter() - began
            piece = list(islice(compared[name], BATCH))
            _check(name, piece, expected)
            found[name] += len(piece)
            if piece:
                rates[name].append(len(piece) / seconds)
                advance(len(piece))
    for name, count in found.items():
        if count != len(expected):
            raise DemoError(f"The table {name!r} has {count:,} records, expected {len(expected):,}")
    return {name: median(found) for name, found in rates.items()}


def _check(name: str, piece: Sequence[tuple[Tile, City]], expected: Mapping[Tile, City]) -> None:
    for key, city in piece:
        if expected.get(key) != city:
            raise DemoError(f"The table {name!r} has {city} under {key}, expected {expected.get(key)}")
