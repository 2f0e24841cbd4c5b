"""``pytest benchmarks``: a test a workload, size, step and contender; ``-k "zds and zlmdb"`` picks. See conftest.py.

pytest-benchmark is handed the samples that the comparison took, in seconds an operation, through a timer that replays
them: its statistics, its JSON and its comparison of runs then work as for any other benchmark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from benchmarks.results import common_base, per_operation, ratio, same_codec


class Replay:
    """A timer whose readings are so far apart as the samples say."""

    def __init__(self) -> None:
        self._readings: list[float] = []

    def load(self, samples: Iterable[float]) -> None:
        self._readings = [reading for sample in samples for reading in (0.0, sample)]

    def __call__(self) -> float:
        return self._readings.pop(0)


REPLAY = Replay()


@pytest.mark.benchmark(timer=REPLAY)
def test_comparison(case: Any, rows_of: Any, benchmark: Any) -> None:
    rows = rows_of(case)
    row = rows.get(case.label)
    if row is None:
        pytest.skip(f"{case.label} is no contender in {case.workload}")
    reason = row.get("absent") or row["skipped"].get(case.step)
    if reason is not None:
        pytest.skip(f"{case.label}: {reason}")
    if case.step not in row["steps"]:
        pytest.skip(f"{case.label} has nothing that corresponds to: {case.step}")
    step = row["steps"][case.step]
    samples = [each / 1e9 for each in per_operation(step)]
    benchmark.group = f"{case.workload} {case.size:,}: {case.step}"
    cpu = per_operation(step, "cpu")
    benchmark.extra_info.update(
        unit=step["unit"], operations=step["count"], cpu_seconds=[each / 1e9 for each in cpu],
        bytes_on_disk=row.get("bytes"), note=row["note"],
    )  # fmt: skip
    for base in dict.fromkeys((common_base(rows, case.step), same_codec(case.label, rows))):
        if base is not None:
            benchmark.extra_info[f"x {base}"] = ratio(row, rows[base], case.step)
    REPLAY.load(samples)
    benchmark.pedantic(bool, rounds=len(samples), iterations=1)
