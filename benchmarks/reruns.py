"""Two runs of the same workloads: which ratios have moved, and whether one says the reverse of the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console

from .report import steps_of
from .results import common_base, ratios, spread


class Move(NamedTuple):
    """The ratio of two contenders in two runs, and how far it may move by what either run says of its own spread."""

    where: str
    before: float
    after: float
    allowed: float
    reversed: bool
    """Each run says that another of the two is faster, by more than its own spread."""

    @property
    def far(self) -> bool:
        return abs(self.after - self.before) > self.allowed * self.before


Run = dict[str, Any]
"""A saved workload, or the rows of one size of it."""


def moves(before: Run, after: Run) -> Iterator[Move]:
    """Every ratio to raw LMDB that the tables of two runs of a workload have in common."""
    for where, step, old, rows in common(before, after):
        base = common_base(rows, step)
        for label in rows:
            if base is not None and base != label and base in old:
                yield from move(f"{where}: {label}", step, old, rows, label, base)


def pairs(before: Run, after: Run) -> Iterator[Move]:
    """The ratio of every two contenders in every step of two runs of a workload."""
    for where, step, old, rows in common(before, after):
        for label, other in combinations(rows, 2):
            yield from move(f"{where}: {label} to {other}", step, old, rows, label, other)


def common(before: Run, after: Run) -> Iterator[tuple[str, str, Run, Run]]:
    """Where it is, the step, the rows of the earlier run, and those of the later."""
    for size, measured in after["sizes"].items():
        old = before["sizes"].get(size, {"rows": {}})["rows"]
        for step in steps_of(measured["rows"]):
            yield f"{after['workload']} {int(size):,}, {step}", step, old, measured["rows"]


def move(where: str, step: str, old: Run, rows: Run, label: str, base: str) -> Iterator[Move]:
    """One, if both runs have both contenders, in rounds enough to tell their spread."""
    if label not in old or base not in old:
        return
    then, now = ratios(old[label], old[base], step), ratios(rows[label], rows[base], step)
    spreads = spread(then), spread(now)
    if spreads[0] is not None and spreads[1] is not None:
        said = verdict(median(then), spreads[0]), verdict(median(now), spreads[1])
        yield Move(where, median(then), median(now), max(spreads), said[0] * said[1] < 0)


def verdict(ratio: float, allowed: float) -> int:
    """1 if a ratio is that of the faster, -1 of the slower, 0 if it is 1 within its spread.

    >>> verdict(1.2, 0.1), verdict(1.05, 0.1), verdict(0.8, 0.1)
    (1, 0, -1)
    """
    return 0 if abs(ratio - 1) <= allowed * ratio else 1 if ratio > 1 else -1


def show_moves(console: Console, of_tables: Iterable[Move], of_pairs: Iterable[Move]) -> None:
    """Which ratios moved by more than the spread that either run printed, and which pairs changed sides."""
    found, compared = list(of_tables), list(of_pairs)
    far = sorted((one for one in found if one.far), key=lambda one: -abs(one.after / one.before - 1))
    console.print(f"{len(far)} of {len(found)} ratios moved by more than their spread")
    tell(console, far)
    turned = [one for one in compared if one.reversed]
    console.print(f"{len(turned)} of {len(compared)} pairs of contenders changed sides by more than the spread")
    tell(console, turned)


def tell(console: Console, found: list[Move]) -> None:
    for one in found:
        console.print(f"  {one.where}: {one.before:.2f}, then {one.after:.2f}; spread {one.allowed:.0%}")
