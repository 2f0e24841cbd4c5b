"""Saved results in the units of the five systems that published theirs: ``python -m benchmarks.published``.

zlmdb told rows a second of each transaction, ZipponDB mean, least and most in milliseconds, ZDS records a second,
db_benchmark nanoseconds a record, go-persist milliseconds, operations a second and nanoseconds an operation. What
differs in what is measured is said in docs/performance.rst.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean, median
from typing import Any

from rich.console import Console
from rich.table import Table

from .results import DEFAULT, Results, per_operation

PUBLISHED = ("fill_read", "zds", "zippondb", "db_benchmark", "go_persist")
"""Beginnings of the names of workloads."""


def forms(label: str, row: dict[str, Any], size: int) -> Table:
    """A line for each step of a contender, in all units."""
    disk = f", {row['bytes'] / 1e6:,.2f} MB" if "bytes" in row else ""
    picture = Table(
        f"{label}, {size:,}{disk}", "mean ms", "min ms", "max ms", "per s", "ns each", "per s, by transaction"
    )
    for name, step in row["steps"].items():
        times = [wall / 1e6 for wall in step["wall"]]
        each = median(per_operation(step))
        batches = step.get("batches", ())
        puts = " ".join(f"{step['count'] / len(batches) * 1e9 / batch:,.0f}" for batch in batches)
        picture.add_row(name, *(f"{one:,.2f}" for one in (mean(times), min(times), max(times))),
                        f"{1e9 / each:,.0f}", f"{each:,.0f}", puts)  # fmt: skip
    return picture


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.published", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", type=Path, default=DEFAULT, help="directory of the JSON files")
    parser.add_argument("-k", default="", help="workloads whose name contains this")
    options = parser.parse_args()
    results, console = Results(options.results), Console(width=150)
    for path in sorted(results.directory.glob("*.json")):
        if options.k in path.stem and path.stem.startswith(PUBLISHED):
            data = results.load(path.stem)
            console.rule(data["title"])
            for size, measured in data["sizes"].items():
                for label, row in measured["rows"].items():
                    if "absent" not in row:
                        console.print(forms(label, row, int(size)))


if __name__ == "__main__":
    main()
