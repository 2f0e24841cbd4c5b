"""What does a table of a model class cost over a loop written by hand with raw lmdb and msgspec?

    python benchmarks/default_codec.py            about a minute
    python benchmarks/default_codec.py --smoke    a second or two: that it runs, not what it says

By hand is a typed msgspec MessagePack encoder and decoder, ``struct`` for the int key, one call of py-lmdb a record:
the practical ceiling of any object layer on CPython. Two records: the user of the zlmdb benchmark with its 11 fields,
and a small one of five numbers and two texts. Three operations, each on every record: fill a new database in one
transaction with its commit (no fsync), get each record by its key in random order, scan them all with their keys.

The contenders take turns within each round; told are ratios of speed to the loop by hand, of the fastest round of each,
since what disturbs a shared machine only ever adds. Every contender's records are read back and compared first, and
those in the files must be the same bytes. By hand and "Unchecked" store whatever they are given; a table by itself
refuses what does not fit its type, and that is part of its fill.

What it cannot tell: anything about other records, cold data or threads. On PyPy, which has no msgspec, it says nothing.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from struct import Struct
from time import perf_counter
from typing import Any, NamedTuple, Optional
from uuid import UUID

import lmdb
import msgspec
from rich.console import Console
from rich.table import Table

import zlmdb


@dataclass
class User:
    """The user, all 11 fields."""

    oid: int
    name: str
    authid: str
    uuid: UUID
    email: str
    birthday: date
    is_friendly: bool
    tags: list[str]
    ratings: dict[str, float]
    friends: list[int]
    referred_by: int


@dataclass
class Small:
    """Five numbers and two texts."""

    id: int
    a: int
    b: int
    x: float
    y: float
    name: str
    label: Optional[str]


def user(number: int, rng: random.Random) -> User:
    return User(
        oid=number,
        name=f"Test {number}",
        authid=f"test-{number}",
        uuid=UUID(int=rng.getrandbits(128)),
        email=f"test-{number}@example.com",
        birthday=date(1950, 12, 24),
        is_friendly=True,
        tags=["geek", "sudoko", "yellow"],
        ratings={f"test-rating-{j}": 1 / (j + 1) for j in range(10)},
        friends=[rng.randrange(2**53) for _ in range(10)],
        referred_by=rng.randrange(2**53),
    )


def small(number: int, rng: random.Random) -> Small:
    return Small(number, rng.randrange(1000), rng.randrange(10**9), rng.random(), rng.random(), f"name {number}", None)


BIAS = 2**63
"""Added to a number by hand too, so that negative ones sort."""

Rows = list[tuple[int, Any]]


class Loops(NamedTuple):
    """The operations of one contender on its own file; reads happen in one open transaction."""

    fill: Callable[[Rows], None]
    reading: Callable[
        [], AbstractContextManager[tuple[Callable[[list[int]], None], Callable[[], Iterator[tuple[int, Any]]]]]
    ]


@contextmanager
def by_hand(directory: Path, model: type) -> Iterator[Loops]:
    pack, unpack = Struct(">Q").pack, Struct(">Q").unpack
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(model).decode
    with lmdb.open(str(directory), max_dbs=1, map_size=1 << 32, sync=False) as env:
        db = env.open_db(b"records")

        def fill(rows: Rows) -> None:
            with env.begin(db, write=True) as txn:
                put = txn.put
                for key, value in rows:
                    put(pack(key + BIAS), encode(value))

        @contextmanager
        def reading() -> Iterator[Any]:
            with env.begin(db) as txn:
                get = txn.get

                def read(keys: list[int]) -> None:
                    for key in keys:
                        decode(get(pack(key + BIAS)))

                def scan() -> Iterator[tuple[int, Any]]:
                    for key, data in txn.cursor():
                        yield unpack(key)[0] - BIAS, decode(data)

                yield read, scan

        yield Loops(fill, reading)


@contextmanager
def table(directory: Path, model: type, *, unchecked: bool = False, at_once: bool = False) -> Iterator[Loops]:
    value: Any = zlmdb.Unchecked[model] if unchecked else model  # type: ignore[valid-type]

    class Store(zlmdb.Schema):
        records: zlmdb.Table[int, value]

    with zlmdb.open(directory, Store, durability="none") as db:

        def fill(rows: Rows) -> None:
            with db.write() as t:
                records = t.records
                if at_once:
                    records.put_many(rows)
                    return
                for key, value in rows:
                    records[key] = value

        @contextmanager
        def reading() -> Iterator[Any]:
            with db.read() as t:
                records = t.records

                def read(keys: list[int]) -> None:
                    for key in keys:
                        records[key]

                yield read, lambda: iter(records.select())

        yield Loops(fill, reading)


CONTENDERS: dict[str, Callable[[Path, type], AbstractContextManager[Loops]]] = {
    "by hand: lmdb + msgspec": by_hand,
    "record by record": table,
    "record by record, Unchecked": partial(table, unchecked=True),
    "put_many": partial(table, at_once=True),
    "put_many, Unchecked": partial(table, unchecked=True, at_once=True),
}
TARGETS = {"fill": {True: 0.85, False: 0.6}, "get": {True: 0.85, False: 0.85}, "scan": {True: 0.85, False: 0.85}}
"""The least ratio to the loop by hand, for Unchecked tables and others."""


def consume(rows: Iterator[Any]) -> None:
    for _key, _value in rows:
        pass


def seconds(act: Callable[[], Any]) -> float:
    gc.collect()
    start = perf_counter()
    act()
    return perf_counter() - start


def measure(model: type, rows: Rows, rounds: int, place: Path) -> dict[str, dict[str, float]]:
    """The seconds of the fastest round, by operation and contender."""
    fastest: dict[str, dict[str, float]] = {operation: {} for operation in TARGETS}
    keys = [key for key, _ in rows]
    random.Random(1).shuffle(keys)
    for round_ in range(rounds):
        with ExitStack() as stack:
            for number, (label, contender) in enumerate(CONTENDERS.items()):
                directory = place / f"{model.__name__}-{round_}-{number}"
                directory.mkdir()
                loops = stack.enter_context(contender(directory, model))
                seen = {"fill": seconds(lambda loops=loops: loops.fill(rows))}
                with loops.reading() as (read, scan):
                    if list(scan()) != rows:
                        raise SystemExit(f"{label}: what was stored does not come back")
                    seen["get"] = seconds(lambda read=read: read(keys))
                    seen["scan"] = seconds(lambda scan=scan: consume(scan()))
                for operation, took in seen.items():
                    fastest[operation][label] = min(took, fastest[operation].get(label, took))
        if round_ == 0:
            check_bytes(place, model)
    return fastest


def check_bytes(place: Path, model: type) -> None:
    """Raise unless the records of the first two contenders are the same bytes."""
    found = []
    for number, name in enumerate((b"records", b"t:records")):
        file = str(place / f"{model.__name__}-0-{number}")
        with lmdb.open(file, max_dbs=8, readonly=True, lock=False) as env, env.begin() as txn:
            found.append([data for _, data in txn.cursor(env.open_db(name, txn, create=False))])
    if found[0] != found[1]:
        raise SystemExit("the table stores other bytes than the loop by hand")


def show(console: Console, model: type, count: int, fastest: dict[str, dict[str, float]]) -> None:
    picture = Table(f"{model.__name__}, {count:,} records", *TARGETS, title_justify="left")
    base = next(iter(CONTENDERS))
    for label in CONTENDERS:
        cells = []
        for operation, took in fastest.items():
            ratio = took[base] / took[label]
            least = TARGETS[operation]["Unchecked" in label]
            told = "" if label == base else f" (>= {least})"
            cells.append(f"{ratio:.2f}{told}  {took[label] / count * 1e6:.2f} us")
        picture.add_row(label, *cells)
    console.print(picture)


class Size(NamedTuple):
    """How much work a run is."""

    records: int
    rounds: int


FULL = Size(records=50_000, rounds=7)
SMOKE = Size(records=500, rounds=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="small, to see that it runs; the figures mean nothing")
    parser.add_argument("--rounds", type=int, help="how often each contender takes its turn")
    given = parser.parse_args()
    size = SMOKE if given.smoke else FULL
    size = size._replace(rounds=given.rounds or size.rounds)
    console = Console(width=110)
    console.print(
        f"{platform.python_implementation()} {platform.python_version()}, zlmdb {zlmdb.__version__}, "
        f"lmdb {lmdb.__version__}, msgspec {msgspec.__version__}, {size}"
    )
    for model, make in ((User, user), (Small, small)):
        rng = random.Random(7)
        rows: Rows = [(number, make(number, rng)) for number in range(size.records)]
        with tempfile.TemporaryDirectory() as directory:
            show(console, model, size.records, measure(model, rows, size.rounds, Path(directory)))


if __name__ == "__main__":
    main()
