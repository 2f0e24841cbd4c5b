"""Runs the comparison and prints its tables: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import monotonic

from rich.console import Console

from .compare import BOUNDS, measure, select
from .report import show
from .results import DEFAULT, Results, recorded
from .workloads import ALL, WORKLOADS
from .workloads.base import LARGE

LEFT_OUT = "did not fit the time this run was given; `python -m benchmarks --size full` measures it"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--size",
        choices=list(BOUNDS),
        default="small",
        help="small: minutes; window: half an hour; full: the published sizes, hours",
    )
    parser.add_argument("--results", type=Path, default=DEFAULT, help="directory of the JSON files")
    parser.add_argument("--resume", action="store_true", help="leave sizes that are saved already")
    parser.add_argument("--print", action="store_true", help="print the tables of what is saved, and run nothing")
    parser.add_argument("--rounds", type=int, help="turns of each contender")
    parser.add_argument("--limit", type=float, help="seconds for a contender at one size; beyond, it is told as such")
    parser.add_argument("--minutes", type=float, help="begin no further size after so many minutes")
    parser.add_argument("--max-records", type=int, help="leave out larger sizes")
    parser.add_argument("-k", default="", help="workloads whose names contain one of these, with commas between")
    parser.add_argument("-c", default="", help="contenders whose label contains this, and the raw ones")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    console = Console(width=150)
    results = Results(options.results)
    names = [name for name in ALL if any(one in name for one in options.k.split(","))]
    if not options.print:
        run(options, results, names, console)
    for name in names:
        if results.path(name).exists():
            show(console, results.load(name))


def run(options: argparse.Namespace, results: Results, names: list[str], console: Console) -> None:
    size_name, began = options.size, monotonic()
    command = recorded("python -m benchmarks", *sys.argv[1:])
    given = {"rounds": options.rounds, "limit": options.limit}
    bounds = BOUNDS[size_name]._replace(**{name: value for name, value in given.items() if value is not None})
    work = [(name, size) for name in names for size in ALL[name].sizes[size_name]]
    work.sort(key=lambda job: job[1] if job[1] > LARGE else 0)  # what takes hours comes last
    with console.status("") as status:
        for name, size in work:
            if options.minutes is not None and (monotonic() - began) / 60 > options.minutes:
                break
            if (options.resume and results.has(name, size)) or size > (options.max_records or size):
                continue
            labels = select(WORKLOADS[name], lambda label: options.c in label) if name in WORKLOADS else None
            rows = measure(name, size, labels, bounds, smaller=results.smaller(name, size), progress=status.update)
            results.save(name, size, rows, command=command, kind=size_name)
            console.print(f"{name} {size:,}: {(monotonic() - began) / 60:.1f} minutes since the start")
    for name in names:
        wanted = set(ALL[name].sizes["full"]) | set(ALL[name].sizes[size_name])
        results.leave_out(name, {size: LEFT_OUT for size in sorted(wanted) if not results.has(name, size)})


if __name__ == "__main__":
    main()
