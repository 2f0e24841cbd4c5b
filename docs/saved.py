"""The saved results that the performance page is made from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.results import per_operation

Rows = dict[str, Any]


class Saved:
    """All results of a directory: by interpreter and workload."""

    def __init__(self, directory: Path) -> None:
        self.data: dict[str, dict[str, Any]] = {}
        for path in sorted(directory.glob("*/*.json")):
            self.data.setdefault(path.parent.name, {})[path.stem] = json.loads(path.read_text(encoding="utf-8"))

    def interpreter(self, kind: str) -> Optional[str]:
        """The newest directory of ``cpython`` or ``pypy``."""
        return max((name for name in self.data if name.startswith(kind)), default=None)

    def sizes(self, workload: str, kind: str = "cpython") -> dict[int, Any]:
        data = self.data.get(self.interpreter(kind) or "", {}).get(workload, {"sizes": {}})
        return {int(size): measured for size, measured in data["sizes"].items()}

    def largest(self, workload: str, kind: str = "cpython", least: Optional[int] = None) -> tuple[int, Any]:
        """The largest size at which at least so many contenders took part, by default half of the most that ever did.

        0 and nothing when there is none.
        """
        sizes = sorted(self.sizes(workload, kind).items())
        takers = [sum("absent" not in row for row in measured["rows"].values()) for _, measured in sizes]
        enough = max(takers, default=0) / 2 if least is None else least
        found: tuple[int, Any] = (0, {"rows": {}, "machine": {}})
        for (size, measured), count in zip(sizes, takers):
            if count >= enough or not found[0]:
                found = size, measured
        return found


def where(measured: Any, size: int) -> str:
    """The line under a chart: the number of records, and the machine."""
    return f"{size:,} records. {machine_of(measured)}"


def machine_of(measured: Any) -> str:
    """On what a run was made, and when."""
    machine = measured["machine"]
    facts = (
        machine["interpreter"],
        machine["cpu"],
        f"{machine['cores']} cores",
        machine["date"][:16].replace("T", " ") + " UTC",
    )
    return ", ".join(facts)


def rates(step: Any) -> list[float]:
    """Operations a second, of each round."""
    return [1e9 / each for each in per_operation(step)]
