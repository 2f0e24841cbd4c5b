"""Contenders take turns, round by round (A B C, A B C, ...), each in a process of its own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, perf_counter_ns
from typing import Any, Optional

from . import machine
from .contenders import contenders
from .remote import NOT_INSTALLED, Absent, Deadline, Remote, Skipped, predecessor
from .workloads import Step, Workload
from .workloads.base import LARGE, PYPY, WARMED_UP

TOGETHER, TOGETHER_SMALL = 500_000_000, 100_000_000
"""Nanoseconds that processes which work at the same time have to prepare; up to `WARMED_UP` records the latter."""

ROUNDS = {"tiny": 1, "small": 4 if PYPY else 6, "window": 5, "full": 5}
"""Of each contender, unless its budget ends before. PyPy warms up for so long that as many would not be small."""

BUDGET = {"tiny": 5.0, "small": 2.5 if PYPY else 6.0, "window": 8.0, "full": 8.0}
"""Seconds after which a contender repeats no more, times the patience of the workload: one round it has always."""

LIMIT = {"tiny": 30.0, "small": 30.0, "window": 45.0, "full": 600.0}
"""Seconds for a contender at one size: what takes longer is no figure."""

Result = dict[str, Any]
"""``steps``: by name the ``count``, and ``wall`` and ``cpu`` in nanoseconds a round; ``absent``: the reason, if any."""


def takes_part(label: str, workload: Workload) -> bool:
    """Whether a contender has a row. One that holds bytes has a row for each codec, or for bytes as they are."""
    if not workload.wants(label):
        return False
    if workload.name not in getattr(contenders()[label], "WORKLOADS", (workload.name,)):
        return False
    if workload.name not in EXTRA_CODECS.get(label, (workload.name,)):
        return False
    if label in OF_BYTES:
        return workload.shape.is_bytes or label == "zlmdb 26 Pickle"
    if label.startswith(("zlmdb ", "raw lmdb", "RocksDB", "LevelDB")):
        return not workload.shape.is_bytes
    return True


_FILLS = ("fill_read", "fill_read_published")
EXTRA_CODECS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("zlmdb Json", "zlmdb Cbor", "zlmdb 26 Json", "zlmdb 26 Cbor"), (*_FILLS, "zds")),
    **dict.fromkeys(("raw lmdb + zlmdb Json", "raw lmdb + zlmdb Cbor"), (*_FILLS, "zds")),
    "raw lmdb + zlmdb FlatBuffers": _FILLS,
    "zlmdb FlatBuffers, key by key": ("fill_read",),
    "zlmdb 26 FlatBuffers": ("fill_read",),
    "zlmdb 26 FlatBuffers, NumPy": ("fill_read",),
    "zlmdb 26 FlatBuffers, by hand": _FILLS,
}
"""Told where the codec is the question: the workloads."""

OF_BYTES = ("raw lmdb + bytes", "RocksDB + bytes", "LevelDB + bytes", "zlmdb 26 Pickle")


def select(workload: Workload, wanted: Callable[[str], bool] = lambda label: True) -> list[str]:
    """The labels of the contenders that have a row: those *wanted*, and the raw ones, which ratios are taken to."""
    return [
        label for label in contenders() if takes_part(label, workload) and (wanted(label) or label.startswith("raw"))
    ]


class Pool:
    """Processes that are idle between two small comparisons: to start them anew takes longer than to measure."""

    def __init__(self) -> None:
        self.idle: dict[str, list[Remote]] = {}
        self.missing: dict[str, str] = {}
        """Who is not installed, and how it would be: the other comparisons need not ask."""

    def take(self, label: str, count: int) -> list[Remote]:
        """So many, or as many as there are; who was left last is taken first."""
        idle = self.idle.get(label, [])
        return [idle.pop() for _ in range(min(count, len(idle)))]

    def leave(self, label: str, remote: Remote) -> None:
        self.idle.setdefault(label, []).append(remote)

    def close(self) -> None:
        for idle in self.idle.values():
            while idle:
                idle.pop().close()


class Contender:
    """One contender at one size of one workload. *spent* are the seconds that all of its rounds took."""

    def __init__(
        self, label: str, workload: Workload, size: int, place: Path, limit: float, pool: Optional[Pool]
    ) -> None:
        self.label, self.workload, self.size, self.limit = label, workload, size, limit
        self.place, self.pool = place, pool
        self.spent = 0.0
        self.rounds = 0
        self.finished = False
        self.checked = False
        self.prepared = 0
        self.elsewhere_on = ""
        self.modules: list[str] = []
        self.result: Result = {"steps": {}, "skipped": {}, "note": "", "versions": {}}
        self.remote: Optional[Remote] = None
        self.started: list[Remote] = []
        """New processes for the steps of a round that want one."""

    def warm_up(self) -> None:
        """A round that is not told: the first time a whole one, and a tiny one in a process that is new."""
        if self.rounds == 0:
            self.round(self.size, told=False)
        elif self.pool is None or not self.pool.idle.get(self.label):
            self.round(min(self.size, *self.workload.sizes["tiny"]), told=False)

    def round(self, size: int, told: bool = True) -> None:
        """All steps once, in a fresh directory. Notes what cannot be done; the contender may become absent.

        All that is read is checked in the first, unless it was at a smaller size of the workload.
        """
        began = monotonic()
        try:
            self._round(Deadline(max(0.0, self.limit - self.spent)), size, told)
            self.rounds += told
            self.checked = self.checked or size == self.size
        except Absent as error:
            self.give_up(str(error))
            if self.pool is not None and str(error).startswith(NOT_INSTALLED):
                self.pool.missing[self.label] = str(error)
        finally:
            seconds = monotonic() - began
            self.spent += seconds
            self.result["seconds"] = seconds

    def foresee(self, size: int, rows: dict[str, Result]) -> None:
        """Be absent if it could not do its task at *size*, or what it took there says that it would take too much here.

        That is time beyond the limit, or more memory than there is.
        """
        before = rows.get(self.label, {})
        reason = before.get("absent", "")
        if not before or reason.startswith(NOT_INSTALLED):
            return
        self.checked = not reason
        expected = 0.0 if reason else self._expected(size, before)
        if reason.startswith(("not finished", "failed", "the process ended")):
            reason = f"not tried, limit {self.limit:.0f} s: at {size:,} {reason}"
        elif before.get("rss", 0) * self.size / size > machine.memory():
            reason = f"not tried, for memory: at {size:,} it had {before['rss'] / 2**30:.1f} GiB"
        elif expected > self.limit:
            told = f"a round took {before['seconds']:.1f} s, {expected:.0f} s are expected here"
            reason = f"not tried, limit {self.limit:.0f} s: at {size:,} {told}"
        if reason:
            self.result["absent"] = reason
            self.finished = True

    def _expected(self, size: int, before: Result) -> float:
        """Seconds of a round, by the last one at *size*.

        Steps of a fixed number of operations, or of far fewer than there are records, do not grow.
        """
        growth = self.size / size
        rest, steps = before.get("seconds", 0.0), 0.0
        for step in self.workload.steps:
            found = before["steps"].get(step.name)
            if found is not None:
                last = found["wall"][-step.times(size) :]
                grows = found["count"] > max(size // 10, self.workload.operations * step.processes)
                rest -= sum(last) / 1e9
                steps += float(sum(last)) / len(last) / 1e9 * step.times(self.size) * (growth if grows else 1)
        return max(rest, 0.0) * growth + steps

    def give_up(self, reason: str) -> None:
        if reason == "time limit":
            reason = f"not finished in {self.limit:.0f} seconds"
        if self.rounds == 0:
            self.result["absent"] = reason
            self.result["steps"] = {}  # a round that was not finished is none
        else:
            self.result["note"] = "; ".join(filter(None, [self.result["note"], f"round {self.rounds + 1}: {reason}"]))
        self.finished = True
        self.stop(keep=False)

    def _start(
        self, pool: Optional[Pool], deadline: Deadline, size: int, fresh: bool = False, processes: int = 1
    ) -> list[Remote]:
        """Processes with the contender imported and the data made, all at the same time."""
        python = predecessor() if getattr(contenders()[self.label], "PREDECESSOR", False) else None
        remotes = [] if pool is None else pool.take(self.label, processes)
        remotes += [Remote(python) for _ in range(processes - len(remotes))]
        for number, remote in enumerate(remotes):
            remote.send(
                do="prepare", contender=self.label, workload=self.workload.name, size=size,
                path=str(self.place / "db"), fresh=fresh, modules=self.modules if fresh else [],
                process=number + 1 if processes > 1 and not fresh else 0,
            )  # fmt: skip
        try:
            replies = [remote.receive(deadline.left) for remote in remotes]
        except Absent:
            for remote in remotes:
                remote.close()
            raise
        python_there = replies[0]["python"]
        self.result["versions"] = replies[0]["versions"]
        self.elsewhere_on = "" if python_there == sys.version else f"runs on {python_there.splitlines()[0]}"
        return remotes

    def _round(self, deadline: Deadline, size: int, told: bool) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        if size != self.prepared:
            self.stop()
        if self.remote is None:
            self.remote = self._start(self.pool, deadline, size)[0]
            self.prepared = size
        remote = self.remote
        opened = remote.call(deadline.left, do="open")
        self.result["note"] = "; ".join(filter(None, [opened["note"], self.elsewhere_on]))
        is_open = True
        for step in self.workload.steps:
            elsewhere = step.fresh or step.processes > 1
            if elsewhere and ((step.fresh and not told) or self._cannot_elsewhere(step, opened)):
                continue
            if is_open is elsewhere:
                reply = remote.call(
                    deadline.left, **({"do": "close", "remove": False} if elsewhere else {"do": "open"})
                )
                is_open = not elsewhere
                self.modules = reply.get("modules", self.modules)
            times = self._elsewhere(step, deadline) if elsewhere else self._here(remote, step, deadline)
            if times is not None and told:
                self._note(step, times)
        closed = remote.call(deadline.left, do="close", remove=True)
        if told and not any(step.sized for step in self.workload.steps):
            self.result["bytes"] = closed["bytes"]
        if self.pool is None:
            self.result["rss"] = closed["rss"]
        if self.size > LARGE:
            self.stop(keep=False)

    def _cannot_elsewhere(self, step: Step, opened: dict[str, Any]) -> bool:
        if opened["in_memory"]:
            self.result["skipped"][step.name] = "in memory: another process has none of it"
        elif step.processes > 1 and not opened["processes"]:
            self.result["skipped"][step.name] = "one process at a time only"
        return step.name in self.result["skipped"]

    def _here(self, remote: Remote, step: Step, deadline: Deadline) -> Optional[Result]:
        if step.name in self.result["skipped"]:
            return None
        try:
            return remote.call(deadline.left, do="step", step=step.name, check=not self.checked)
        except Skipped as error:
            self.result["skipped"][step.name] = str(error)
            return None

    def _others(self, step: Step, deadline: Deadline) -> list[Remote]:
        """Other processes for a step. New ones for all `Step.fresh` of a round are started at the same time."""
        if not step.fresh:
            return self._start(self.pool, deadline, self.size, processes=step.processes)
        if not self.started:
            fresh = sum(step.fresh for step in self.workload.steps)
            self.started = self._start(None, deadline, self.size, fresh=True, processes=fresh)
        return [self.started.pop()]

    def _elsewhere(self, step: Step, deadline: Deadline) -> Result:
        """The step in other processes, which open the same database."""
        with ExitStack() as stack:
            others = self._others(step, deadline)
            for other in others:
                stack.callback(other.close)
                if not step.fresh:
                    other.call(deadline.left, do="open")
            ahead = TOGETHER_SMALL if self.size <= WARMED_UP else TOGETHER
            at = perf_counter_ns() + ahead if step.processes > 1 else 0
            for other in others:
                other.send(do="step", step=step.name, check=False, at=at)
            replies = [other.receive(deadline.left) for other in others]
            for other in others:
                other.call(deadline.left, do="close", remove=False)
            if self.pool is not None and not step.fresh:
                stack.pop_all()
                for other in others:
                    self.pool.leave(self.label, other)
        if len(replies) == 1:
            return replies[0]
        return {
            "wall": [max(reply["ended"] for reply in replies) - min(reply["began"] for reply in replies)],
            "cpu": [sum(reply["cpu"][0] for reply in replies)],
            "count": sum(reply["count"] for reply in replies),
        }

    def _note(self, step: Step, reply: Result) -> None:
        new = {"unit": step.unit, "count": reply["count"], "wall": [], "cpu": []}
        seen = self.result["steps"].setdefault(step.name, new)
        seen["wall"] += reply["wall"]
        seen["cpu"] += reply["cpu"]
        seen["repeat"] = len(reply["wall"])
        if "batches" in reply:
            seen["batches"] = reply["batches"]
        if "bytes" in reply:
            self.result["bytes"] = reply["bytes"]

    def stop(self, keep: bool = True) -> None:
        """End the process, or *keep* it for the next comparison."""
        while self.started:
            self.started.pop().close()
        if self.remote is None:
            return
        if keep and self.pool is not None:
            self.pool.leave(self.label, self.remote)
        else:
            self.remote.close()
        self.remote = None


class Comparison:
    """What *labels* do in one workload at one size.

    After *budget* seconds, times the patience of the workload, a contender repeats no more: its rounds say how often it
    did. *smaller* is what they did at a smaller size: who was so slow that the limit cannot be held is not tried.
    """

    def __init__(
        self,
        workload: Workload,
        size: int,
        labels: Iterable[str],
        *,
        limit: float = LIMIT["full"],
        budget: float = BUDGET["full"],
        progress: Callable[[str], None] = lambda text: None,
        pool: Optional[Pool] = None,
        smaller: Optional[tuple[int, dict[str, Result]]] = None,
    ) -> None:
        self.workload, self.size, self.progress = workload, size, progress
        self.budget = budget * workload.patience
        self._directory = tempfile.TemporaryDirectory(prefix="zlmdb-bench-")
        place = Path(self._directory.name)
        self.taking = [
            Contender(label, workload, size, place / str(number), limit, pool) for number, label in enumerate(labels)
        ]
        for one in self.taking:
            one.foresee(*(smaller or (0, {})))
            if pool is not None and one.label in pool.missing:
                one.give_up(pool.missing[one.label])

    def turn(self, rounds: int) -> None:
        """Some rounds of each, A B C, A B C; up to `WARMED_UP` records they warm up before."""
        try:
            for number in range(1 if self.size > WARMED_UP else 0, rounds + 1):
                for one in active(self.taking, self.budget):
                    told = "warming up" if number == 0 else f"round {one.rounds + 1}"
                    self.progress(f"{self.workload.name} {self.size:,}: {told}, {one.label}")
                    one.warm_up() if number == 0 else one.round(self.size)
        finally:
            for one in self.taking:
                one.stop()

    @property
    def rows(self) -> dict[str, Result]:
        return {one.label: one.result for one in self.taking}

    def close(self) -> None:
        self._directory.cleanup()


def compare(workload: Workload, size: int, labels: Iterable[str], *, rounds: int, **bounds: Any) -> dict[str, Result]:
    """What each contender did in so many rounds, all in one turn."""
    comparison = Comparison(workload, size, labels, **bounds)
    try:
        comparison.turn(rounds)
    finally:
        comparison.close()
    return comparison.rows


def active(taking: Iterable[Contender], budget: float) -> Iterator[Contender]:
    """Those that still repeat: at least once beyond the warm-up, and until their budget is spent."""
    for one in taking:
        if not one.finished and (one.rounds == 0 or one.spent < budget):
            yield one


def interpreter() -> str:
    """``cpython-3.11``, ``pypy-3.9``: the name of the directory that results of this interpreter go to."""
    return f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}"
