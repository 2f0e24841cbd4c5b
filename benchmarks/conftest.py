"""How ``pytest benchmarks`` measures: a test is one contender at one step of one workload at one size.

The first test of a workload measures it, with all selected contenders, and saves the rows. Each test hands the samples
of its own to pytest-benchmark, which shows, saves and compares them. What cannot be measured is a skipped test whose
reason says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.compare import BOUNDS, measure, select
from benchmarks.report import show
from benchmarks.results import DEFAULT, Results, recorded
from benchmarks.workloads import ALL, INSIDE, WORKLOADS


class Case(NamedTuple):
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
    group.addoption("--rounds", type=int, default=None, help="turns of each contender")
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


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.benchmark_quiet = True  # our own tables have the ratios beside the times


MEASURED = pytest.StashKey[dict[str, None]]()
"""The workloads of this run."""


@pytest.fixture(scope="session")
def rows_of(request: pytest.FixtureRequest) -> Callable[[Case], dict[str, Any]]:
    """The rows of the workload and size of a case, measured when they are first asked for."""
    config = request.config
    results, size_name = Results(config.getoption("--results")), kind(config)
    rounds, command = config.getoption("--rounds"), recorded("pytest", *map(str, config.invocation_params.args))
    bounds = BOUNDS[size_name]._replace(**({} if rounds is None else {"rounds": rounds}))
    seen: dict[tuple[str, int], dict[str, Any]] = {}
    measured = config.stash[MEASURED] = {}
    chosen: dict[tuple[str, int], set[str]] = {}
    for case in (item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")):
        if case is not None:
            chosen.setdefault(case[:2], set()).add(case.label)

    def rows(case: Case) -> dict[str, Any]:
        name, size = job = case[:2]
        if job not in seen:
            labels = select(WORKLOADS[name], chosen[job].__contains__) if name in WORKLOADS else None
            seen[job] = measure(name, size, labels, bounds, smaller=results.smaller(name, size))
            results.save(name, size, seen[job], command=command, kind=size_name)
            measured[name] = None
        return seen[job]

    return rows


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The tables with the ratios, as ``python -m benchmarks`` prints them."""
    from rich.console import Console

    results = Results(config.getoption("--results"))
    console = Console(width=150)
    for workload in config.stash.get(MEASURED, {}):
        show(console, results.load(workload))
    terminalreporter.write_line(f"saved in {results.directory}")
