"""One run: what it measures, in which order.

Rounds that follow each other in one process are too much alike. A machine has slower minutes, and where memory happens
to lie in a process moves a ratio by a tenth. So what is small takes turns as contenders do: a round of every workload,
all in new processes, then the next of every workload; the spread that is printed then knows of both. PyPy's processes
stay, since they must warm up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Optional

from .compare import BUDGET, LIMIT, ROUNDS, Comparison, Pool, select
from .remote import Absent, Remote
from .workloads import INSIDE, WORKLOADS
from .workloads.base import PYPY, WARMED_UP

Rows = dict[str, Any]


class Job(NamedTuple):
    """A workload at one size."""

    workload: str
    size: int


class Part(NamedTuple):
    """Some rounds of a job, in one go; *number* are before them."""

    job: Job
    number: int
    rounds: int


def takes_turns(job: Job) -> bool:
    """Whether it is measured a round at a time, and the processes of its contenders are kept for the next workload."""
    return job.workload in INSIDE or job.size <= WARMED_UP


def plan(jobs: Iterable[Job], rounds: int) -> list[Part]:
    """Single rounds of what is small or inside one process, then the others whole, which take hours, in their order.

    >>> parts = plan([Job("db_benchmark", 100_000), Job("zds", 500), Job("layer", 5_000)], 2)
    >>> [(part.job.workload, part.number, part.rounds) for part in parts]
    [('zds', 0, 1), ('layer', 0, 1), ('zds', 1, 1), ('layer', 1, 1), ('db_benchmark', 0, 2)]
    """
    chosen = list(jobs)
    turns = [job for job in chosen if takes_turns(job)]
    whole = [Part(job, 0, rounds) for job in chosen if not takes_turns(job)]
    return [Part(job, number, 1) for number in range(rounds) for job in turns] + whole


class Session:
    """Measures *jobs*, given with the contenders that take part, or None for all that can.

    *kind* is one of `SIZES` and gives the other bounds where they are None: *rounds* of each, *limit*, the seconds that
    a contender has, and *budget*, those after which it repeats no more. *save* is handed a job and its rows when they
    are complete, *smaller* answers with the rows of a smaller size, and *progress* is told what is going on.
    """

    def __init__(
        self,
        jobs: Mapping[Job, Optional[Iterable[str]]],
        kind: str,
        *,
        save: Callable[[Job, Rows], None],
        rounds: Optional[int] = None,
        limit: Optional[float] = None,
        budget: Optional[float] = None,
        smaller: Callable[[Job], Optional[tuple[int, Rows]]] = lambda job: None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.jobs, self.save, self.smaller, self.progress = jobs, save, smaller, progress
        self.limit = LIMIT[kind] if limit is None else limit
        self.budget = BUDGET[kind] if budget is None else budget
        self.parts = plan(jobs, ROUNDS[kind] if rounds is None else rounds)
        self.pool = Pool()
        self.rows: dict[Job, Rows] = {}
        """Of the jobs that are complete."""
        self._inside: dict[Job, Rows] = {}
        self._comparisons: dict[Job, Comparison] = {}
        self._warm: dict[Job, Remote] = {}
        self._number = 0

    def of(self, job: Job) -> Rows:
        """The rows of a job; what comes before it is measured first."""
        if job not in self.rows:
            while job not in self.rows:
                self.advance()
            self.progress("")
        return self.rows[job]

    def advance(self) -> None:
        """Run the next part."""
        part = self.parts.pop(0)
        if part.number != self._number:
            self._number = part.number
            if not PYPY:
                self.pool.close()
        rows = self._run_inside(part) if part.job.workload in INSIDE else self._compare(part)
        if not any(one.job == part.job for one in self.parts):
            self._release(part.job)
            self.rows[part.job] = rows
            self.save(part.job, rows)

    def only_begun(self) -> None:
        """Leave out what is not begun."""
        begun = {*self._inside, *self._comparisons}
        self.parts = [part for part in self.parts if part.job in begun]

    def close(self) -> None:
        self.pool.close()
        for job in self.jobs:
            self._release(job)

    def _release(self, job: Job) -> None:
        remote, comparison = self._warm.pop(job, None), self._comparisons.pop(job, None)
        if remote is not None:
            remote.close()
        if comparison is not None:
            comparison.close()

    def _compare(self, part: Part) -> Rows:
        comparison = self._comparisons.get(part.job)
        if comparison is None:
            workload, labels = WORKLOADS[part.job.workload], self.jobs[part.job]
            comparison = self._comparisons[part.job] = Comparison(
                workload, part.job.size, select(workload) if labels is None else labels, limit=self.limit,
                budget=self.budget, progress=self.progress, pool=self.pool if takes_turns(part.job) else None,
                smaller=self.smaller(part.job),
            )  # fmt: skip
        comparison.turn(part.rounds)
        return comparison.rows

    def _run_inside(self, part: Part) -> Rows:
        workload, size = part.job
        rows = self._inside.setdefault(part.job, {})
        self.progress(f"{workload} {size:,}: round {part.number + 1}")
        limit = self.limit * len(INSIDE[workload].labels)  # they take turns in one process
        remote = self._warm.pop(part.job, None) or Remote()
        try:
            add(rows, remote.call(limit, do="inside", workload=workload, size=size, rounds=part.rounds)["rows"])
        except Absent as error:  # it would be again
            self.parts = [one for one in self.parts if one.job != part.job]
            reason = f"not finished in {limit:.0f} seconds" if str(error) == "time limit" else str(error)
            return {"zlmdb": {"steps": {}, "skipped": {}, "note": "", "versions": {}, "absent": reason}}
        finally:
            if PYPY:
                self._warm[part.job] = remote
            else:
                remote.close()
        return rows


def add(rows: Rows, more: Rows) -> None:
    """Add the rounds of *more*, which has the same steps, to *rows*."""
    if not rows:
        rows.update(more)
        return
    for label, row in more.items():
        for name, step in row["steps"].items():
            for clock in ("wall", "cpu"):
                rows[label]["steps"][name][clock] += step[clock]
