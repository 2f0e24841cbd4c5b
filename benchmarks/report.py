"""Tables of saved results, for people."""

from __future__ import annotations

from statistics import median
from typing import Any, Optional

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .results import common_base, per_operation, ratio, same_codec


def duration(nanoseconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)):
        if nanoseconds < 1000 * size or unit == "s":
            return (
                f"{nanoseconds / size:.3g} {unit}" if nanoseconds < 1000 * size else f"{nanoseconds / size:.0f} {unit}"
            )
    raise ValueError(nanoseconds)


def rate(nanoseconds: float) -> str:
    """Operations a second, in three digits."""
    found = 1e9 / nanoseconds
    for unit, size in (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if found < 1000 * size:
            return f"{found / size:.3g}{unit}"
    return f"{found / 1e9:,.0f}G"


def factor(ratio: float) -> str:
    """How many times: ``1.6``, ``160``."""
    if ratio < 0.001:
        return "<0.001"
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}"


def steps_of(rows: dict[str, Any]) -> list[str]:
    """The steps that any contender did, in order."""
    seen: dict[str, None] = {}
    for row in rows.values():
        seen.update(dict.fromkeys(row["steps"]))
    return list(seen)


def show(console: Console, data: dict[str, Any]) -> None:
    """Every size and step of a workload as a table, then who did not take part, and why."""
    for size, measured in data["sizes"].items():
        rows = measured["rows"]
        console.rule(f"{data['title']}, {int(size):,}")
        facts = measured["machine"]
        console.print(
            f"{facts['interpreter']}, {facts['cpu']}, {facts['cores']} cores, {facts['kernel']}, {facts['date']}"
        )
        for step in steps_of(rows):
            console.print(step_table(rows, step))
        console.print(*notes(rows), sep="\n")
    for size, reason in data.get("left_out", {}).items():
        console.print(f"{int(size):,}: left out: {reason}")


def step_table(rows: dict[str, Any], step: str) -> Table:
    base = common_base(rows, step)
    picture = Table(
        escape(step), "per s", "each", "least to greatest", "cpu each", f"x {base or '-'}", "x raw, same codec", "of"
    )
    for label, row in rows.items():
        if step not in row["steps"]:
            if row.get("absent") or row["skipped"].get(step):
                picture.add_row(label, "-", "", "", "", "", "", "see below")
            continue
        wall, cpu = (per_operation(row["steps"][step], clock) for clock in ("wall", "cpu"))
        picture.add_row(
            label, rate(median(wall)), duration(median(wall)), between(wall), duration(median(cpu)),
            times(rows, label, base, step), times(rows, label, same_codec(label, rows), step), str(len(wall)),
        )  # fmt: skip
    return picture


def times(rows: dict[str, Any], label: str, base: Optional[str], step: str) -> str:
    """How many times the rate of *base*; nothing if there is none."""
    found = None if base is None else ratio(rows[label], rows[base], step)
    return "" if found is None else factor(found)


def between(figures: list[float]) -> str:
    """The least and the greatest, of more than one: ``1.2 to 1.4 ms``."""
    low, high = duration(min(figures)), duration(max(figures))
    same = low.split()[1] == high.split()[1]
    return f"{low.split()[0] if same else low} to {high}" if len(figures) > 1 else ""


def notes(rows: dict[str, Any]) -> list[str]:
    """What to know of a contender; why it is absent, or skipped a step."""
    lines = []
    for label, row in rows.items():
        if "absent" in row:
            lines.append(f"{label}: does not take part: {row['absent']}")
            continue
        if row["note"]:
            lines.append(f"{label}: {row['note']}")
        lines += [f"{label}: {step}: {reason}" for step, reason in row["skipped"].items()]
    return lines
