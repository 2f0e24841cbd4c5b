"""Saved results in the forms in which the five systems published theirs: ``python -m benchmarks.published``.

zlmdb told puts and rows a second of each transaction, ZipponDB mean, deviation, least and most in milliseconds, ZDS
records a second, db_benchmark nanoseconds a record, go-persist milliseconds, operations a second and nanoseconds an
operation. Ours are here in those forms, so that they can be laid beside the published tables; what differs in what is
measured is said in docs/performance.rst.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean, median, pstdev
from typing import Any

from rich.console import Console
from rich.table import Table

from .report import rate
from .results import DEFAULT, Results, per_operation


def fills(console: Console, rows: dict[str, Any], size: str) -> None:
    """Rows a second of each write transaction, as zlmdb printed them, and of the random reads."""
    picture = Table("zlmdb: fill", "rows/s of each transaction", "random read, rows/s")
    for label, row in rows.items():
        step = row["steps"].get("fill")
        if step is not None and step.get("batches"):
            each = step["count"] / len(step["batches"])
            puts = " ".join(f"{each * 1e9 / batch:,.0f}" for batch in step["batches"])
            picture.add_row(label, puts, rate(median(per_operation(row["steps"]["random get, one field"]))))
    console.print(picture)


DONE = {"populate": "written", "Q2": "searched", "Q5": "searched", "Q10": "deleted"}
"""What is done with the entities in a second, by the beginning of a step's name."""


def queries(console: Console, rows: dict[str, Any], size: str) -> None:
    """ZipponDB's table of one size: milliseconds of the whole query; entities/s named for what they are."""
    for label, row in rows.items():
        if "absent" in row:
            continue
        picture = Table(f"ZipponDB: {label}, {int(size):,}", "mean ms", "deviation", "min", "max", "entities/s")
        for name, step in row["steps"].items():
            times = [wall / 1e6 for wall in step["wall"]]
            entities = f"{int(size) / mean(times) * 1000:,.0f} {DONE.get(name.partition(' ')[0], 'read')}"
            found = (mean(times), pstdev(times) if len(times) > 1 else None, min(times), max(times))
            cells = ["-" if figure is None else f"{figure:.2f}" for figure in found]
            picture.add_row(name, *cells, entities if step["unit"] != "query" else "")
        console.print(picture)
        if "bytes" in row:
            console.print(f"{row['bytes'] / 2**20:.2f} MiB on disk, populated")


def records_a_second(console: Console, rows: dict[str, Any], size: str) -> None:
    steps = list(dict.fromkeys(step for row in rows.values() for step in row["steps"]))
    picture = Table("ZDS: records/s", *steps, "MB")
    for label, row in rows.items():
        found = [row["steps"].get(step) for step in steps]
        cells = [rate(median(per_operation(step))) if step else "-" for step in found]
        picture.add_row(label, *cells, f"{row.get('bytes', 0) / 1e6:.1f}")
    console.print(picture)


def nanoseconds(console: Console, rows: dict[str, Any], size: str) -> None:
    steps = list(dict.fromkeys(step for row in rows.values() for step in row["steps"] if step != "prefill"))
    picture = Table(f"db_benchmark: ns a record, {int(size):,}", *steps)
    for label, row in rows.items():
        found = [row["steps"].get(step) for step in steps]
        picture.add_row(label, *[f"{median(per_operation(step)):,.0f}" if step else "-" for step in found])
    console.print(picture)


def operations(console: Console, rows: dict[str, Any], size: str) -> None:
    picture = Table(f"go-persist, {int(size):,} keys", "mix", "ms", "ops/s", "ns/op", "MB")
    for label, row in rows.items():
        for name, step in row["steps"].items():
            if name != "prefill":
                each = median(per_operation(step))
                cells = [f"{each * step['count'] / 1e6:,.0f}", f"{1e9 / each:,.0f}", f"{each:,.0f}"]
                picture.add_row(label, name, *cells, f"{row.get('bytes', 0) / 1e6:.2f}")
    console.print(picture)


FORMS = {
    "fill_read": fills, "fill_read_published": fills, "zippondb": queries, "zds": records_a_second,
    "db_benchmark": nanoseconds, "db_benchmark_16": nanoseconds, "db_benchmark_durable": nanoseconds,
    "go_persist": operations, "go_persist_strings": operations, "go_persist_commit": operations,
    "go_persist_full": operations,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.published", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, default=DEFAULT, help="directory of the JSON files")
    parser.add_argument("-k", default="", help="workloads whose name contains this")
    options = parser.parse_args()
    results, console = Results(options.results), Console(width=170)
    for workload, form in FORMS.items():
        if options.k in workload and results.path(workload).exists():
            data = results.load(workload)
            console.rule(data["title"])
            for size, measured in data["sizes"].items():
                form(console, measured["rows"], size)


if __name__ == "__main__":
    main()
