"""The saved results: one JSON file a workload and interpreter, written after every size, so that a run can resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any, Optional

from . import machine
from .compare import BUDGET, LIMIT, Pool, compare, interpreter, select
from .remote import Absent, Remote
from .workloads import INSIDE, WORKLOADS
from .workloads.base import PYPY

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = ROOT / ".benchmarks" / "results"
POOLED = 10_000
PROCESSES = 1 if PYPY else 3
"""That share the rounds of a workload whose labels take turns inside one process; PyPy's must warm up."""


def compact(data: dict[str, Any]) -> str:
    """JSON with a line for each contender, so that a change of one is a change of one line."""
    rows: dict[str, str] = {}
    shown = {**data, "sizes": {}}
    for size, measured in data["sizes"].items():
        places = {}
        for label, row in measured["rows"].items():
            mark = f"<row {len(rows)}>"
            rows[json.dumps(mark)] = json.dumps(row)
            places[label] = mark
        shown["sizes"][size] = {**measured, "rows": places}
    text = json.dumps(shown, indent=1)
    for mark, row in rows.items():
        text = text.replace(mark, row, 1)
    return text + "\n"


class Results:
    """The results of one interpreter in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / interpreter()

    def path(self, workload: str) -> Path:
        return self.directory / f"{workload}.json"

    def load(self, workload: str) -> dict[str, Any]:
        """What is saved, or the frame of a new file."""
        path = self.path(workload)
        if path.exists():
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found
        title = (INSIDE.get(workload) or WORKLOADS[workload]).title
        return {"workload": workload, "title": title, "sizes": {}}

    def save(self, workload: str, size: int, rows: dict[str, Any], **facts: Any) -> None:
        """Add a size, with the machine it was measured on."""
        data = self.load(workload)
        for row in rows.values():
            row.pop("trace", None)
        data["sizes"][str(size)] = {"rows": rows, "machine": machine.describe(), **facts}
        data["sizes"] = dict(sorted(data["sizes"].items(), key=lambda item: int(item[0])))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.path(workload).write_text(compact(data), encoding="utf-8")

    def leave_out(self, workload: str, left_out: dict[int, str]) -> None:
        """Record which sizes were not run, and why."""
        data = self.load(workload)
        data["left_out"] = {str(size): reason for size, reason in left_out.items() if str(size) not in data["sizes"]}
        self.directory.mkdir(parents=True, exist_ok=True)
        self.path(workload).write_text(compact(data), encoding="utf-8")

    def smaller(self, workload: str, size: int) -> Optional[tuple[int, dict[str, Any]]]:
        """The next smaller size that is saved, and its rows."""
        sizes = {
            int(one): measured["rows"] for one, measured in self.load(workload)["sizes"].items() if int(one) < size
        }
        return max(sizes.items(), key=lambda item: item[0]) if sizes else None

    def has(self, workload: str, size: int) -> bool:
        return str(size) in self.load(workload)["sizes"]


def run(
    workload: str,
    size: int,
    labels: Optional[Iterable[str]] = None,
    *,
    rounds: int,
    limit: float = LIMIT["full"],
    budget: float = BUDGET["full"],
    progress: Callable[[str], None] = lambda text: None,
    pool: Optional[Pool] = None,
    smaller: Optional[tuple[int, dict[str, Any]]] = None,
) -> dict[str, Any]:
    """The rows of one workload at one size; *labels* are the contenders, by default all."""
    if workload in INSIDE:
        progress(f"{workload} {size:,}: {rounds} rounds")
        limit *= len(INSIDE[workload].labels)  # they take turns in one process
        rows: dict[str, Any] = {}
        try:
            for share in shares(rounds):
                add(rows, inside(workload, size, share, limit))
        except Absent as error:
            reason = f"not finished in {limit:.0f} seconds" if str(error) == "time limit" else str(error)
            return {"zlmdb": {"steps": {}, "skipped": {}, "note": "", "versions": {}, "absent": reason}}
        return rows
    chosen = WORKLOADS[workload]
    return compare(
        chosen, size, list(select(chosen) if labels is None else labels), rounds=rounds, limit=limit, budget=budget,
        progress=progress, pool=pool if size <= POOLED else None, smaller=smaller,
    )  # fmt: skip


def inside(workload: str, size: int, rounds: int, limit: float) -> dict[str, Any]:
    """The rows of a workload that is measured inside one process, by a new one."""
    remote = Remote()
    try:
        rows: dict[str, Any] = remote.call(limit, do="inside", workload=workload, size=size, rounds=rounds)["rows"]
    finally:
        remote.close()
    return rows


def shares(rounds: int, processes: int = PROCESSES) -> list[int]:
    """*rounds* dealt to *processes*.

    Where memory happens to lie in a process moves a ratio by some per cent, which rounds in one process do not show.

    >>> shares(5, 3), shares(1, 3)
    ([2, 2, 1], [1])
    """
    return [len(range(at, rounds, processes)) for at in range(min(rounds, processes))]


def add(rows: dict[str, Any], more: dict[str, Any]) -> None:
    """Add the rounds of *more*, which has the same steps, to *rows*."""
    if not rows:
        rows.update(more)
        return
    for label, row in more.items():
        for name, step in row["steps"].items():
            for clock in ("wall", "cpu"):
                rows[label]["steps"][name][clock] += step[clock]


# -- reading results ---------------------------------------------------------------------------------------------------


def per_operation(step: dict[str, Any], clock: str = "wall") -> list[float]:
    """Nanoseconds an operation, a round each; of what is repeated within a round, the median.

    >>> per_operation({"wall": [10, 12, 50, 20, 22, 60], "repeat": 3, "count": 2})
    [6.0, 11.0]
    """
    times, repeat = step[clock], step.get("repeat", 1)
    return [median(times[at : at + repeat]) / step["count"] for at in range(0, len(times), repeat)]


FEW = {3: 3.2, 4: 1.7, 5: 1.25}
"""By number of rounds: how many times the distance between their extremes the median of a rerun moves, at most.

In 999 of 1,000 reruns, if rounds are distributed normally (simulated; more rounds move by less than that distance). It
agrees with what was measured: of 1,252 ratios, most of five rounds, six moved by more than the distance itself.
"""


def spread(figures: list[float]) -> Optional[float]:
    """How far the median of a rerun may be, as a part of it: the distance between the extremes, widened if of `FEW`.

    A twentieth at either end is left out. None for less than three figures, which do not tell.

    >>> spread([9.0, 10.0, 11.0, 10.0, 9.0, 10.0]), spread([9.0, 10.0, 11.0, 10.0, 9.0]), spread([9.0, 11.0])
    (0.2, 0.25, None)
    """
    if len(figures) < 3:
        return None
    ordered = sorted(figures)
    cut = len(ordered) // 20
    return (ordered[-1 - cut] - ordered[cut]) / median(ordered) * FEW.get(len(ordered), 1.0)


def ratios(row: dict[str, Any], base: dict[str, Any], step: str) -> list[float]:
    """How many times the rate of *base*, round by round: those beside each other in time are compared."""
    if step not in row["steps"] or step not in base["steps"]:
        return []
    ours, theirs = per_operation(row["steps"][step]), per_operation(base["steps"][step])
    return [their / our for our, their in zip(ours, theirs)]


def same_codec(label: str, rows: dict[str, Any]) -> Optional[str]:
    """The raw lmdb row with the codec of *label*: that of zlmdb's default is msgspec where there is msgspec."""
    choices = {
        "zlmdb": ("raw lmdb + msgspec", "raw lmdb + zlmdb codec", "raw lmdb + bytes"),
        "zlmdb Unchecked": ("raw lmdb + msgspec",),
        "zlmdb Pickle": ("raw lmdb + pickle",),
        "zlmdb 26 Pickle": ("raw lmdb + pickle", "raw lmdb + bytes"),
        **{f"zlmdb {name}": (f"raw lmdb + zlmdb {name}",) for name in ("Json", "Cbor", "FlatBuffers")},
    }.get(label)
    if choices is None and " + " in label and not label.startswith(("raw", "dict")):
        choices = (f"raw lmdb + {label.partition(' + ')[2]}",)
    return next((one for one in choices or () if rows.get(one, {}).get("steps")), None)


def common_base(rows: dict[str, Any], step: str) -> Optional[str]:
    """The row that all ratios of a table are to."""
    for label in ("raw lmdb + pickle", "raw lmdb + bytes", "raw lmdb", "raw lmdb, values only", "official FlatBuffers"):
        if step in rows.get(label, {}).get("steps", {}):
            return label
    return None
