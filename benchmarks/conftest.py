"""How ``pytest benchmarks`` measures: all selected contenders of a workload take turns, then each is told as a test.

A test waits until the session has the rows of its workload, which is last those of all that is small; it hands the
samples of its contender and step to pytest-benchmark, which shows, saves and compares them. What cannot be measured is
a skipped test whose reason says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.compare import select
from benchmarks.report import show
from benchmarks.results import DEFAULT, Results
from benchmarks.session import Job, Rows, Session
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


COMPARISONS = pytest.StashKey[Session]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.option.benchmark_quiet = True  # our own tables have the ratios beside the times


def pytest_collection_finish(session: pytest.Session) -> None:
    """What was selected is what the session measures."""
    config = session.config
    wanted: dict[Job, set[str]] = {}
    for case in (item.callspec.params.get("case") for item in session.items if hasattr(item, "callspec")):
        if case is not None:
            wanted.setdefault(Job(case.workload, case.size), set()).add(case.label)
    jobs = {
        job: None if job.workload in INSIDE else select(WORKLOADS[job.workload], labels.__contains__)
        for job, labels in wanted.items()
    }
    results, size = Results(config.getoption("--results")), kind(config)
    command = " ".join(["pytest", *config.invocation_params.args])

    def save(job: Job, rows: Rows) -> None:
        results.save(*job, rows, command=command, kind=size)

    rounds = config.getoption("--rounds")
    config.stash[COMPARISONS] = Session(jobs, size, rounds=rounds, save=save, progress=partial(tell, config))


def tell(config: pytest.Config, text: str) -> None:
    """Show it in place of what was shown last, on a terminal: the first test waits for almost everything."""
    plugins = config.pluginmanager
    reporter: Any = plugins.get_plugin("terminalreporter")
    capture: Any = plugins.get_plugin("capturemanager")
    if reporter.isatty:
        with capture.global_and_fixture_disabled():
            reporter.rewrite(text, erase=True)


@pytest.fixture(scope="session")
def comparisons(request: pytest.FixtureRequest) -> Iterator[Session]:
    found = request.config.stash[COMPARISONS]
    yield found
    found.close()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The tables with the ratios, as ``python -m benchmarks`` prints them."""
    from rich.console import Console

    results = Results(config.getoption("--results"))
    console = Console(width=150)
    session = config.stash.get(COMPARISONS, None)
    for workload in dict.fromkeys(job.workload for job in session.rows) if session is not None else ():
        show(console, results.load(workload))
    terminalreporter.write_line(f"saved in {results.directory}")
