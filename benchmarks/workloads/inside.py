"""Workloads measured inside one process: differences too small to be told across processes.

A question is a context manager that yields what to time, by label; the labels take turns within each round.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..clock import Clock, set_aside
from .base import collects

Timed = dict[str, Callable[[], int]]
"""By label what is timed, and returns how many operations it did."""


@dataclass(frozen=True)
class Prepared:
    """What is timed, and what has to be done each time before it, outside the clock."""

    run: Callable[[], int]
    before: Callable[[], object]

    def __call__(self) -> int:
        return self.run()


@dataclass(frozen=True)
class Question:
    """*ask* is handed a directory and the size; *raw* is the label that ratios are taken to."""

    name: str
    ask: Callable[[Path, int], AbstractContextManager[Timed]]
    raw: str
    unit: str = "record"


class Inside:
    """A workload of questions."""

    name: ClassVar[str]
    title: ClassVar[str]
    sizes: ClassVar[dict[str, tuple[int, ...]]]
    questions: ClassVar[tuple[Question, ...]]
    labels: ClassVar[tuple[str, ...]]
    """All that any question may yield."""
    filled_once: ClassVar[bool] = False
    """Whether filling takes longer than many rounds: beyond `LARGE` records all rounds are in one process."""

    def measure(self, size: int, rounds: int) -> dict[str, Any]:
        """Rows by label, as `benchmarks.compare.compare` gives them. A first round warms up."""
        rows: dict[str, Any] = {}
        for question in self.questions:
            with tempfile.TemporaryDirectory(prefix="zlmdb-bench-") as directory:
                try:
                    with question.ask(Path(directory), size) as timed:
                        self._interleave(question, timed, rounds, rows, size)
                except ImportError as error:
                    row(rows, question.raw)["skipped"][question.name] = f"not installed: {error}"
        return rows

    def _interleave(self, question: Question, timed: Timed, rounds: int, rows: dict[str, Any], size: int) -> None:
        set_aside()
        always = collects(size)
        for number in range(rounds + 1):
            for turn, (label, run) in enumerate(timed.items()):
                clock = Clock()
                getattr(run, "before", bool)()
                if always or number == turn == 0:
                    gc.collect()
                with clock:
                    count = run()
                if number > 0:
                    new: dict[str, Any] = {"unit": question.unit, "count": count, "wall": [], "cpu": []}
                    seen = row(rows, label)["steps"].setdefault(question.name, new)
                    seen["wall"].append(clock.wall)
                    seen["cpu"].append(clock.cpu)


def row(rows: dict[str, Any], label: str) -> dict[str, Any]:
    found: dict[str, Any] = rows.setdefault(label, {"steps": {}, "skipped": {}, "note": "", "versions": {}})
    return found
