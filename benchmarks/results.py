"""The saved results: one JSON file a workload and interpreter, written after every size, so that a run can resume."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any, Optional

from . import machine
from .compare import interpreter
from .workloads import ALL

PLACE = "--results"
ROOT = Path(__file__).resolve().parent.parent
DEFAULT = ROOT / ".benchmarks" / "results"


def recorded(*words: str) -> str:
    """The command of these *words* as it is saved: without the directory of its results, which is a machine's own.

    >>> recorded("python -m benchmarks", "--results", "/tmp/mine", "-k", "zds")
    'python -m benchmarks -k zds'
    """
    kept: list[str] = []
    for before, word in zip(("", *words), words):
        if before != PLACE and word != PLACE and not word.startswith(f"{PLACE}="):
            kept.append(word)
    return " ".join(kept)


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
        return {"workload": workload, "title": ALL[workload].title, "sizes": {}}

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


# -- reading results ---------------------------------------------------------------------------------------------------


def per_operation(step: dict[str, Any], clock: str = "wall") -> list[float]:
    """Nanoseconds an operation, a round each.

    >>> per_operation({"wall": [10, 12, 50], "count": 2})
    [5.0, 6.0, 25.0]
    """
    return [each / step["count"] for each in step[clock]]


def ratio(row: dict[str, Any], base: dict[str, Any], step: str) -> Optional[float]:
    """How many times the rate of *base*, by the medians; None where either did not do the step.

    >>> fast, slow = ({"steps": {"get": {"wall": walls, "count": 1}}} for walls in ([9, 1, 2], [5, 4, 3]))
    >>> ratio(fast, slow, "get")
    2.0
    """
    if step not in row["steps"] or step not in base["steps"]:
        return None
    return median(per_operation(base["steps"][step])) / median(per_operation(row["steps"][step]))


def same_codec(label: str, rows: dict[str, Any]) -> Optional[str]:
    """The raw lmdb row with the codec of *label*: that of zlmdb's default is msgspec where there is msgspec."""
    choices = {
        "zlmdb": ("raw lmdb + msgspec", "raw lmdb + zlmdb codec", "raw lmdb + bytes"),
        "zlmdb Unchecked": ("raw lmdb + msgspec",),
        **dict.fromkeys(("zlmdb Pickle", "zlmdb Pickle, plain dict"), ("raw lmdb + pickle",)),
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
