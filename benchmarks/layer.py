"""What does the layer cost over raw LMDB? Point reads, `len`, and the import.

    python benchmarks/layer.py            about half a minute
    python benchmarks/layer.py --smoke    a second or two: that it runs, not what it says

Reads are hot: every record is in memory and was read before. The contenders take turns within each round (A B C,
A B C, ...), so that what disturbs the machine disturbs all of them. Told are medians over the rounds, of the time of a
read and of its distance to the raw loop of the same round. Imports are of fresh processes, which take turns likewise.

What it cannot tell: anything about cold data, other keys and values, or writing. Trust the ratios before the figures.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from struct import Struct
from time import perf_counter_ns
from typing import NamedTuple

import lmdb
from rich.console import Console
from rich.table import Table

import zlmdb
from zlmdb.maps import MapOidString

Read = Callable[[list[int]], None]
"""Reads each of these keys once."""


class Names(zlmdb.Schema):
    """Names by number."""

    names: zlmdb.Table[int, str]


@zlmdb.table("6a6ef0a8-86c5-4b1c-a69b-6fd0ea3e49a2")
class ClassicNames(MapOidString):
    """Names by number, as a classic map."""


def name(key: int) -> str:
    return f"the name of record {key}"


# The contenders fill a database and give a loop that reads from it: one shape for all, and nothing around the read.


@contextmanager
def raw(directory: Path, records: int) -> Iterator[Read]:
    pack, loads = Struct(">Q").pack, bytes.decode
    with lmdb.open(str(directory), max_dbs=1, map_size=1 << 30) as env:
        names = env.open_db(b"names")
        with env.begin(names, write=True) as txn:
            for key in range(records):
                txn.put(pack(key), name(key).encode())
        with env.begin(names) as txn:
            get = txn.get

            def read(keys: list[int]) -> None:
                for key in keys:
                    loads(get(pack(key)))

            yield read


@contextmanager
def bound_table(directory: Path, records: int) -> Iterator[Read]:
    with zlmdb.open(directory, Names) as db:
        with db.write() as t:
            t.names.put_many(((key, name(key)) for key in range(records)), append=True)
        with db.read() as t:
            names = t.names

            def read(keys: list[int]) -> None:
                for key in keys:
                    names[key]

            yield read


@contextmanager
def classic_map(directory: Path, records: int) -> Iterator[Read]:
    with zlmdb.Database(str(directory)) as db:
        names = db.attach_table(ClassicNames)
        with db.begin(write=True) as txn:
            for key in range(records):
                names[txn, key] = name(key)
        with db.begin() as txn:

            def read(keys: list[int]) -> None:
                for key in keys:
                    names[txn, key]

            yield read


CONTENDERS: dict[str, Callable[[Path, int], AbstractContextManager[Read]]] = {
    "raw: loads(get(pack(key)))": raw,
    "bound table: names[key]": bound_table,
    "classic map: names[txn, key]": classic_map,
}
TARGETS = {"bound table: names[key]": 70, "classic map: names[txn, key]": 150}
"""Nanoseconds over raw, on CPython."""


def interleave(contenders: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each contender measured in each round; a first round warms up and is not told."""
    seen: dict[str, list[float]] = {label: [] for label in contenders}
    for _ in range(rounds + 1):
        for label, measure in contenders.items():
            seen[label].append(measure())
    return {label: figures[1:] for label, figures in seen.items()}


def read_time(read: Read, keys: list[int]) -> float:
    """Nanoseconds a read."""
    start = perf_counter_ns()
    read(keys)
    return (perf_counter_ns() - start) / len(keys)


def len_time(table: zlmdb.Table[int, str], repeat: int) -> float:
    """Nanoseconds of ``len(table)``."""
    start = perf_counter_ns()
    for _ in range(repeat):
        len(table)
    return (perf_counter_ns() - start) / repeat


def import_time(module: str) -> float:
    """Milliseconds of ``import module`` in a fresh process, from compiled files as an installed package has them."""
    program = f"from time import perf_counter as now; t = now(); import {module}; print((now() - t) * 1000)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def show_reads(console: Console, directory: Path, size: Size) -> None:
    keys = random.Random(1).sample(range(size.records), size.records)
    contenders: dict[str, Callable[[], float]] = {}
    with ExitStack() as stack:
        for number, (label, contender) in enumerate(CONTENDERS.items()):
            place = directory / f"reads{number}"
            place.mkdir()
            contenders[label] = partial(read_time, stack.enter_context(contender(place, size.records)), keys)
        seen = interleave(contenders, size.rounds)
    base = seen[next(iter(CONTENDERS))]
    picture = Table("point reads, int key, str value", "x raw", "ns more", "target", "ns a read", title_justify="left")
    for label, figures in seen.items():
        ratio = median(ours / raw for ours, raw in zip(figures, base))
        more = median(ours - raw for ours, raw in zip(figures, base))
        target = f"<= {TARGETS[label]}" if label in TARGETS else ""
        picture.add_row(label, f"{ratio:.2f}", f"{more:.0f}", target, f"{median(figures):.0f}")
    console.print(picture)


def show_len(console: Console, directory: Path, size: Size) -> None:
    contenders: dict[str, Callable[[], float]] = {}
    with ExitStack() as stack:
        for records in size.tables:
            db = stack.enter_context(zlmdb.open(directory / f"len{records}", Names))
            with db.write() as t:
                t.names.put_many(((key, "") for key in range(records)), append=True)
            names = stack.enter_context(db.read()).names
            contenders[f"{records:,} records"] = partial(len_time, names, size.repeat)
        seen = interleave(contenders, size.rounds)
    base = seen[next(iter(seen))]
    picture = Table("len(table)", "x the smallest", "ns")
    for label, figures in seen.items():
        ratio = median(larger / smallest for larger, smallest in zip(figures, base))
        picture.add_row(label, f"{ratio:.2f}", f"{median(figures):.0f}")
    console.print(picture)


def show_import(console: Console, size: Size) -> None:
    seen = interleave({module: partial(import_time, module) for module in ("lmdb", "zlmdb")}, size.rounds)
    picture = Table("import, fresh process", "ms", "target")
    for module, figures in seen.items():
        picture.add_row(module, f"{median(figures):.1f}", "< 60 on CPython" if module == "zlmdb" else "")
    console.print(picture)


class Size(NamedTuple):
    """How much work a run is."""

    records: int
    rounds: int
    tables: tuple[int, ...]
    repeat: int


FULL = Size(records=100_000, rounds=15, tables=(1_000, 100_000), repeat=20_000)
SMOKE = Size(records=1_000, rounds=2, tables=(10, 1_000), repeat=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="small, to see that it runs; the figures mean nothing")
    size = SMOKE if parser.parse_args().smoke else FULL
    console = Console()
    console.print(f"{platform.python_implementation()} {platform.python_version()}, zlmdb {zlmdb.__version__}, {size}")
    with tempfile.TemporaryDirectory() as directory:
        show_reads(console, Path(directory), size)
        show_len(console, Path(directory), size)
    show_import(console, size)


if __name__ == "__main__":
    main()
