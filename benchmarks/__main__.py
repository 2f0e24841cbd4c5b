"""Runs the comparison and prints its tables: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from time import monotonic

from rich.console import Console

from .compare import BUDGET, ROUNDS, select
from .report import show
from .reruns import moves, pairs, show_moves
from .results import DEFAULT, Results
from .session import Job, Rows, Session
from .workloads import ALL, INSIDE, WORKLOADS
from .workloads.base import LARGE

LEFT_OUT = "did not fit the time this run was given; `python -m benchmarks --size full` measures it"
ORDER = (
    "serializers", "layer", "caching", "questions", "filtering", "fill_read", "zds", "growth", "transactions",
    "go_persist",
    "db_benchmark", "zippondb",
)  # fmt: skip
"""Of the sizes that are alike: what takes longest comes last, and after it the variants."""

ALSO = ("serializers", "layer", "fill_read", "zds")
"""What the charts that compare interpreters are made of."""


BUDGET_HELP = (
    "seconds after which a contender repeats no more, at the earliest after one round; by default "
    + ", ".join(f"{seconds:g} ({size})" for size, seconds in BUDGET.items())
    + "; "
    + ", ".join(f"{name} has {one.patience:g} times that" for name, one in WORKLOADS.items() if one.patience != 1)
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--size",
        choices=list(ROUNDS),
        default="small",
        help="small: minutes; window: half an hour; full: the published sizes, hours",
    )
    parser.add_argument("--results", type=Path, default=DEFAULT, help="directory of the JSON files")
    parser.add_argument("--resume", action="store_true", help="leave sizes that are saved already")
    parser.add_argument("--print", action="store_true", help="print the tables of what is saved, and run nothing")
    parser.add_argument("--against", type=Path, help="another directory of results: how its ratios compare with these")
    parser.add_argument("--rounds", type=int, help="repetitions of each contender")
    parser.add_argument("--limit", type=float, help="seconds for a contender at one size; beyond, it is told as such")
    parser.add_argument("--budget", type=float, help=BUDGET_HELP)
    parser.add_argument("--minutes", type=float, help="start no further size after so many minutes")
    parser.add_argument("--max-records", type=int, help="leave out larger sizes")
    parser.add_argument("-k", default="", help="workloads whose names contain one of these, with commas between")
    parser.add_argument("--also", metavar="PYTHON", help=f"first let this interpreter run {', '.join(ALSO)}")
    parser.add_argument("-c", default="", help="contenders whose label contains this, and the raw ones")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    console = Console(width=150)
    results = Results(options.results)
    names = [name for name in ALL if any(one in name for one in options.k.split(","))]
    if options.also:
        command = [options.also, "-m", "benchmarks", "--size", options.size, "--results", str(options.results)]
        subprocess.run([*command, "-k", ",".join(ALSO), *(["--resume"] if options.resume else [])], check=True)
    if not options.print:
        measure(options, results, names, console)
    for name in names:
        if results.path(name).exists():
            show(console, results.load(name))
    if options.against:
        old = Results(options.against)
        runs = [(old.load(name), results.load(name)) for name in names]
        show_moves(console, [one for run in runs for one in moves(*run)], [one for run in runs for one in pairs(*run)])


def measure(options: argparse.Namespace, results: Results, names: list[str], console: Console) -> None:
    size_name, began = options.size, monotonic()
    # It is published with the results: an interpreter by its name, without the directories of this machine.
    words = [Path(word).name if word == options.also else word for word in sys.argv[1:]]
    command = " ".join(["python -m benchmarks", *words])
    work = [Job(name, size) for name in names for size in ALL[name].sizes[size_name]]
    # When time runs out it is the largest that are missing, and before them the variants.
    place = {name: number for number, name in enumerate(ORDER)}
    work.sort(key=lambda job: (job.size if job.size > LARGE else 0, place.get(job.workload, len(ORDER))))
    jobs = {
        job: None if job.workload in INSIDE else select(WORKLOADS[job.workload], lambda label: options.c in label)
        for job in work
        if not (options.resume and results.has(*job))
        and (options.max_records is None or job.size <= options.max_records)
    }

    def save(job: Job, rows: Rows) -> None:
        results.save(*job, rows, command=command, kind=size_name)
        console.print(f"{job.workload} {job.size:,}: {(monotonic() - began) / 60:.1f} minutes since the start")

    with console.status("") as status:
        session = Session(
            jobs, size_name, rounds=options.rounds, limit=options.limit, budget=options.budget, save=save,
            smaller=lambda job: results.smaller(*job), progress=status.update,
        )  # fmt: skip
        while session.parts:
            session.advance()
            if options.minutes is not None and (monotonic() - began) / 60 > options.minutes:
                session.only_begun()
        session.close()
    for name in names:
        wanted = set(ALL[name].sizes["full"]) | set(ALL[name].sizes[size_name])
        results.leave_out(name, {size: LEFT_OUT for size in sorted(wanted) if not results.has(name, size)})


if __name__ == "__main__":
    main()
