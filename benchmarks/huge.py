"""db_benchmark's case that is larger than memory: opt in, with the size and the disk space that you allow it.

    python -m benchmarks.huge --records 150000000 --disk 40    # as published: 20 GB of records; hours

Integer keys 0, 2, 4, ... ascending with 128 random bytes each; then inserts of random odd keys, queries, updates and
deletes of random even ones, each a transaction of its own, no sync. Published were 100 of each; here as many as
--operations. zlmdb is measured beside py-lmdb by hand, one after the other, each in its own directory, which is deleted
before the next begins. Filling stops, and says so, when the directory reaches --disk gigabytes.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from . import machine
from .contenders import contenders
from .records import BLOBS_INT

BATCH = 10_000


def size_of(directory: Path) -> int:
    """Bytes on the disk."""
    return sum(file.stat().st_blocks * 512 for file in directory.rglob("*") if file.is_file())


def filled(store: Any, directory: Path, records: int, disk: float, progress: Progress, label: str) -> int:
    """Put records until there are so many, or the disk budget is used; how many there are."""
    task = progress.add_task(f"{label}: fill", total=records)
    dice = random.Random(1)
    for start in range(0, records, BATCH):
        if size_of(directory) > disk * 1e9:
            progress.console.print(f"{label}: stopped at {start:,} records, {disk:g} GB are used")
            return start
        stop = min(start + BATCH, records)
        store.put_many([(2 * key, dice.randbytes(128)) for key in range(start, stop)])
        progress.advance(task, stop - start)
    return records


def timed(operations: list[Any]) -> float:
    """Nanoseconds of each call."""
    begin = perf_counter_ns()
    for operation, *arguments in operations:
        operation(*arguments)
    return (perf_counter_ns() - begin) / len(operations)


def measure(label: str, directory: Path, options: argparse.Namespace, progress: Progress) -> dict[str, float]:
    store = contenders()[label].VARIANTS[label](directory, BLOBS_INT, "none")
    try:
        count = filled(store, directory, options.records, options.disk, progress, label)
        dice = random.Random(2)

        def even() -> int:
            return 2 * dice.randrange(count)

        repeat = range(options.operations)
        # Drawn before the clock starts.
        plans: dict[str, list[Any]] = {
            "insert": [(store.put, even() + 1, dice.randbytes(128)) for _ in repeat],
            "query": [(store.get, even()) for _ in repeat],
            "update": [(store.put, even(), dice.randbytes(128)) for _ in repeat],
            "delete": [(store.delete, even()) for _ in repeat],
        }
        found = {name: timed(plan) for name, plan in plans.items()}
        return {"records": float(count), "GB": size_of(directory) / 1e9, **found}
    finally:
        store.close()


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.huge", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=int, required=True, help="the published size is 150000000")
    parser.add_argument("--disk", type=float, required=True, help="gigabytes that one database may take")
    parser.add_argument("--operations", type=int, default=10_000, help="of each kind; the published number is 100")
    parser.add_argument("--directory", type=Path, help="on the disk to measure; by default that of temporary files")
    options = parser.parse_args()
    console = Console(width=120)
    facts = machine.describe()
    memory = f"{facts['ram'] / 2**30:.0f} GiB of memory"
    console.print(f"{facts['interpreter']}, {facts['cpu']}, {memory}, {facts['kernel']}, {facts['date']}")
    picture = Table("ns each", "records", "GB", "insert", "query", "update", "delete")
    for label in ("zlmdb", "raw lmdb + bytes"):
        directory = Path(tempfile.mkdtemp(prefix="zlmdb-huge-", dir=options.directory))
        try:
            with Progress(console=console) as progress:
                row = measure(label, directory / "db", options, progress)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        cells = [f"{row['records']:,.0f}", f"{row['GB']:.1f}"]
        picture.add_row(label, *cells, *[f"{row[name]:,.0f}" for name in ("insert", "query", "update", "delete")])
    console.print(picture)


if __name__ == "__main__":
    main()
