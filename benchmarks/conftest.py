"""How ``pytest benchmarks`` measures: all selected contenders of a workload take turns, then each is told as a test.

The rows are measured when the first test of a workload runs, in processes of their own; a test hands the samples of its
contender and step to pytest-benchmark, which shows, saves and compares them. What cannot be measured is a skipped test
whose reason says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.compare import BUDGET, LIMIT, ROUNDS, Pool, select
from benchmarks.report import show
from benchmarks.results import DEFAULT, Results, run
from benchmarks.workloads import ALL, INSIDE, WORKLOADS


class Case(NamedTuple):
    """A test: one contender at one step of one workload at one size."""

    workload: str
    size: int
    step: str
    label: str

    @property
    def id(self) -> str:
        return "-".join(str(part).replace(" ", "_") for part in self)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("comparison")
    group.addoption("--full", action="store_true", help="the published sizes: hours")
    group.addoption("--tiny", action="store_true", help="to see that it runs; the figures mean nothing")
    group.addoption("--rounds", type=int, default=None, help="repetitions of each contender")
    group.addoption("--results", type=Path, default=DEFAULT, help="directory of the JSON files")


def kind(config: pytest.Config) -> str:
    return "full" if config.getoption("--full") else "tiny" if config.getoption("--tiny") else "small"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        cases = [
            Case(name, size, step, label)
            for name, workload in ALL.items()
            for size in workload.sizes[kind(metafunc.config)]
            for step, label in steps(name)
        ]
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])


def steps(name: str) -> Iterator[tuple[str, str]]:
    """The steps of a workload, and the labels that may take part."""
    if name in INSIDE:
        yield from ((question.name, label) for question in INSIDE[name].questions for label in INSIDE[name].labels)
    else:
        yield from ((step.name, label) for step in WORKLOADS[name].steps for label in select(WORKLOADS[name]))


class Comparisons:
    """What was measured in this session. The raw rows always take part: the others are told as ratios to them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.selected: list[Case] = []
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}
        self.pool = Pool()

    def of(self, case: Case) -> dict[str, Any]:
        found = self.rows.get((case.workload, case.size))
        if found is None:
            found = self.rows[case.workload, case.size] = self._measure(case)
        return found

    def _measure(self, case: Case) -> dict[str, Any]:
        size = kind(self.config)
        labels = None
        if case.workload not in INSIDE:
            wanted = {one.label for one in self.selected if one[:2] == case[:2]}
            labels = [one for one in select(WORKLOADS[case.workload]) if one in wanted or one.startswith("raw lmdb")]
        rounds = self.config.getoption("--rounds") or ROUNDS[size]
        rows = run(
            case.workload, case.size, labels, rounds=rounds, limit=LIMIT[size], budget=BUDGET[size], pool=self.pool
        )
        results = Results(self.config.getoption("--results"))
        command = " ".join(["pytest", *self.config.invocation_params.args])
        results.save(case.workload, case.size, rows, command=command, kind=size)
        return rows


COMPARISONS = pytest.StashKey[Comparisons]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.benchmark_quiet = True  # our own tables have the ratios beside the times
    config.stash[COMPARISONS] = Comparisons(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    cases = [item.callspec.params.get("case") for item in session.items if hasattr(item, "callspec")]
    session.config.stash[COMPARISONS].selected = [case for case in cases if case is not None]


@pytest.fixture(scope="session")
def comparisons(request: pytest.FixtureRequest) -> Iterator[Comparisons]:
    found = request.config.stash[COMPARISONS]
    yield found
    found.pool.close()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The tables with the ratios, as ``python -m benchmarks`` prints them."""
    from rich.console import Console

    results = Results(config.getoption("--results"))
    console = Console(width=150)
    for workload in dict.fromkeys(name for name, _ in config.stash[COMPARISONS].rows):
        show(console, results.load(workload))
    terminalreporter.write_line(f"saved in {results.directory}")
