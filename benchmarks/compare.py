"""Contenders take turns, round by round (A B C, A B C, ...), each in a process of its own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, perf_counter_ns
from typing import Any, NamedTuple, Optional

from . import machine
from .contenders import contenders
from .remote import NOT_INSTALLED, Absent, Deadline, Remote, Skipped, predecessor
from .worker import needs
from .workloads import INSIDE, WORKLOADS, Step, Workload
from .workloads.base import LARGE, PYPY, WARMED_UP
from .workloads.inside import row

TOGETHER, TOGETHER_SMALL = 500_000_000, 100_000_000
"""Nanoseconds that processes which work at the same time have to prepare; up to `WARMED_UP` records the latter."""

Result = dict[str, Any]
"""``steps``: by name the ``count``, and ``wall`` and ``cpu``, nanoseconds a round; ``absent``: the reason, if any."""


class Bounds(NamedTuple):
    """How much is measured: a contender repeats until it has the *rounds*, or used up the *budget*."""

    rounds: int = 5
    limit: float = 600.0
    """Seconds for a contender at one size: what takes longer is no figure."""
    budget: float = 8.0
    """Seconds, times the patience of the workload; one round it has always."""
    warm_up: bool = True
    """Whether few records are done once before; where it is only tried that all runs, the first round tells that."""


BOUNDS = {
    "tiny": Bounds(1, 30.0, 5.0, warm_up=False),
    "small": Bounds(3, 30.0, 2.0),
    "window": Bounds(5, 45.0, 8.0),
    "full": Bounds(),
}


# -- who takes part ----------------------------------------------------------------------------------------------------


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
    "zlmdb Pickle, plain dict": ("zds",),
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


def said(error: Absent, limit: float) -> str:
    """Why a contender is absent."""
    return f"not finished in {limit:.0f} seconds" if str(error) == "time limit" else str(error)


def told_without_a_process(module: Any, label: str) -> None:
    """Raises `Absent` if this interpreter, which would run the contender, lacks a package of it: most lack some."""
    for name, requirement in needs(module, label).items():
        if find_spec(name.partition(".")[0]) is None:
            raise Absent(f"{NOT_INSTALLED} (No module named {name!r}): {requirement}")


# -- one contender -----------------------------------------------------------------------------------------------------


class Contender:
    """One contender at one size of one workload. *spent* are the seconds that all of its rounds took."""

    def __init__(self, label: str, workload: Workload, size: int, place: Path, limit: float) -> None:
        self.label, self.workload, self.size = label, workload, size
        self.place, self.limit = place, limit
        self.spent = 0.0
        self.rounds = 0
        self.checked = False
        self.modules: list[str] = []
        self.versions: tuple[dict[str, str], str] = ({}, "")
        self.result: Result = {"steps": {}, "skipped": {}, "note": "", "versions": {}}
        self.remote: Optional[Remote] = None
        self.finished = False

    def round(self, told: bool = True) -> None:
        """All steps once, in a fresh directory. What is read is checked in the first. It may become absent."""
        began = monotonic()
        try:
            self._round(Deadline(max(0.0, self.limit - self.spent)), told)
            self.rounds += told
            self.checked = True
        except Absent as error:
            self.give_up(said(error, self.limit))
        finally:
            self.result["seconds"] = monotonic() - began
            self.spent += self.result["seconds"]

    def foresee(self, size: int, before: Result) -> None:
        """Be absent if it could not do its task at the smaller *size*, or would need more memory than there is."""
        reason = before.get("absent", "")
        if reason.startswith(("not finished", "failed", "the process ended")):
            reason = f"not tried: at {size:,} {reason}"
        elif before.get("rss", 0) * self.size > machine.memory() * size:
            reason = f"not tried, for memory: at {size:,} it had {before['rss'] / 2**30:.1f} GiB"
        if reason and not reason.startswith(NOT_INSTALLED):
            self.give_up(reason)

    def give_up(self, reason: str) -> None:
        if self.rounds == 0:
            self.result.update(absent=reason, steps={})  # a round that was not finished is none
        else:
            self.result["note"] = "; ".join(filter(None, [self.result["note"], f"round {self.rounds + 1}: {reason}"]))
        self.finished = True
        self.stop()

    def stop(self) -> None:
        if self.remote is not None:
            self.remote.close()
            self.remote = None

    def _start(self, deadline: Deadline, fresh: bool = False, processes: int = 1) -> list[Remote]:
        """Processes with the contender imported and the data made, all at the same time."""
        module = contenders()[self.label]
        python = predecessor() if getattr(module, "PREDECESSOR", False) else None
        if python is None:
            told_without_a_process(module, self.label)
        remotes = [Remote(python) for _ in range(processes)]
        try:
            for number, remote in enumerate(remotes):
                remote.send(
                    do="prepare", contender=self.label, workload=self.workload.name, size=self.size,
                    path=str(self.place / "db"), fresh=fresh, modules=self.modules if fresh else [],
                    process=number + 1 if processes > 1 else 0,
                )  # fmt: skip
            replies = [remote.receive(deadline.left) for remote in remotes]
        except Absent:
            for remote in remotes:
                remote.close()
            raise
        there = replies[0]["python"]
        self.versions = replies[0]["versions"], "" if there == sys.version else f"runs on {there.splitlines()[0]}"
        return remotes

    def _round(self, deadline: Deadline, told: bool) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        if self.remote is None:
            (self.remote,) = self._start(deadline)
        remote = self.remote
        opened = remote.call(deadline.left, do="open")
        self.result["versions"], runs_on = self.versions
        self.result["note"] = "; ".join(filter(None, [opened["note"], runs_on]))
        is_open = True
        for step in self.workload.steps:
            elsewhere = step.fresh or step.processes > 1
            if elsewhere and ((step.fresh and not told) or self._cannot_elsewhere(step, opened)):
                continue
            if is_open is elsewhere:
                command = {"do": "close", "remove": False} if elsewhere else {"do": "open"}
                self.modules = remote.call(deadline.left, **command).get("modules", self.modules)
                is_open = not elsewhere
            times = self._elsewhere(step, deadline) if elsewhere else self._here(remote, step, deadline)
            if times is not None and told:
                self._note(step, times)
        closed = remote.call(deadline.left, do="close", remove=True)
        if told and not any(step.sized for step in self.workload.steps):
            self.result["bytes"] = closed["bytes"]
        self.result["rss"] = closed["rss"]
        if self.size > LARGE:
            self.stop()

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

    def _elsewhere(self, step: Step, deadline: Deadline) -> Result:
        """The step in other processes, which open the same database."""
        with ExitStack() as stack:
            others = self._start(deadline, fresh=step.fresh, processes=step.processes)
            for other in others:
                stack.callback(other.close)
            for other in others if not step.fresh else ():
                other.call(deadline.left, do="open")
            ahead = TOGETHER_SMALL if self.size <= WARMED_UP else TOGETHER
            at = perf_counter_ns() + ahead if step.processes > 1 else 0
            for other in others:
                other.send(do="step", step=step.name, check=False, at=at)
            replies = [other.receive(deadline.left) for other in others]
            for other in others:
                other.call(deadline.left, do="close", remove=False)
        if len(replies) == 1:
            return replies[0]
        return {
            "wall": max(reply["ended"] for reply in replies) - min(reply["began"] for reply in replies),
            "cpu": sum(reply["cpu"] for reply in replies),
            "count": sum(reply["count"] for reply in replies),
        }

    def _note(self, step: Step, reply: Result) -> None:
        new = {"unit": step.unit, "count": reply["count"], "wall": [], "cpu": []}
        seen = self.result["steps"].setdefault(step.name, new)
        seen["wall"].append(reply["wall"])
        seen["cpu"].append(reply["cpu"])
        if "batches" in reply:
            seen["batches"] = reply["batches"]
        if "bytes" in reply:
            self.result["bytes"] = reply["bytes"]


# -- all of them -------------------------------------------------------------------------------------------------------


def compare(
    workload: Workload,
    size: int,
    labels: Iterable[str],
    bounds: Bounds = BOUNDS["full"],
    *,
    smaller: Optional[tuple[int, dict[str, Result]]] = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Result]:
    """What each contender did. Up to `WARMED_UP` records they warm up before; *smaller* is a size and what they did."""
    with tempfile.TemporaryDirectory(prefix="zlmdb-bench-") as directory:
        taking = [
            Contender(label, workload, size, Path(directory, str(number)), bounds.limit)
            for number, label in enumerate(labels)
        ]
        try:
            before_size, before = smaller or (0, {})
            for one in taking:
                one.foresee(before_size, before.get(one.label, {}))
            for number in range(0 if bounds.warm_up and size <= WARMED_UP else 1, bounds.rounds + 1):
                for one in taking:
                    if not one.finished and (one.rounds == 0 or one.spent < bounds.budget * workload.patience):
                        progress(f"{workload.name} {size:,}: round {number}, {one.label}")
                        one.round(told=number > 0)
        finally:
            for one in taking:
                one.stop()
    return {one.label: one.result for one in taking}


def compare_inside(
    name: str, size: int, bounds: Bounds = BOUNDS["full"], progress: Callable[[str], None] = lambda text: None
) -> dict[str, Result]:
    """What all labels of a workload did that is measured inside one process: a new one each round, as a rule.

    Not on PyPy, and not where filling takes long.
    Where memory happens to lie in a process moves a ratio by a tenth, and no further round in it shows that.
    """
    rows: dict[str, Result] = {}
    limit = bounds.limit * len(INSIDE[name].labels)  # they take turns
    together = PYPY or (size > LARGE and INSIDE[name].filled_once)
    for number in range(1 if together else bounds.rounds):
        progress(f"{name} {size:,}: round {number + 1}")
        remote = Remote()
        try:
            rounds = bounds.rounds if together else 1
            add(rows, remote.call(limit, do="inside", workload=name, size=size, rounds=rounds)["rows"])
        except Absent as error:  # it would be again
            told = "note" if rows else "absent"
            row(rows, "zlmdb")[told] = said(error, limit)
            break
        finally:
            remote.close()
    return rows


def add(rows: dict[str, Result], more: dict[str, Result]) -> None:
    """Add the rounds of *more*, which has the same steps, to *rows*."""
    for label, found in more.items():
        seen = rows.setdefault(label, found)
        for name, step in found["steps"].items() if seen is not found else ():
            for clock in ("wall", "cpu"):
                seen["steps"][name][clock] += step[clock]


def measure(name: str, size: int, labels: Optional[Iterable[str]], bounds: Bounds, **more: Any) -> dict[str, Result]:
    """The rows of any workload; *labels* None for all that can take part."""
    if name in INSIDE:
        more.pop("smaller", None)
        return compare_inside(name, size, bounds, **more)
    workload = WORKLOADS[name]
    return compare(workload, size, select(workload) if labels is None else labels, bounds, **more)


def interpreter() -> str:
    """``cpython-3.11``, ``pypy-3.9``: the name of the directory that results of this interpreter go to."""
    return f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}"
