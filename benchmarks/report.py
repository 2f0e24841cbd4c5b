"""Tables of saved results, for people."""

from __future__ import annotations

from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from .results import common_base, per_operation, ratios, same_codec, spread


def duration(nanoseconds: float) -> str:
    """Three digits and a unit."""
    for unit, size in (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)):
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


def show(console: Console, data: dict[str, Any], only: str = "") -> None:
    """Every size and step of a workload as a table, then who did not take part, and why."""
    for size, measured in data["sizes"].items():
        rows = measured["rows"]
        console.rule(f"{data['title']}, {int(size):,}")
        facts = measured["machine"]
        console.print(
            f"{facts['interpreter']}, {facts['cpu']}, {facts['cores']} cores, {facts['kernel']}, {facts['date']}"
        )
        for step in steps_of(rows):
            if only in step:
                console.print(step_table(rows, step))
        console.print(*notes(rows), sep="\n")
    for size, reason in data.get("left_out", {}).items():
        console.print(f"{int(size):,}: left out: {reason}")


def step_table(rows: dict[str, Any], step: str) -> Table:
    base = common_base(rows, step)
    picture = Table(step, "per s", "each", "± spread", "cpu each", f"x {base or '-'}", "x raw, same codec", "rounds")
    for label, row in rows.items():
        if step not in row["steps"]:
            reason = row.get("absent") or row["skipped"].get(step)
            if reason:
                picture.add_row(label, "-", "", "", "", "", "", "see below")
            continue
        wall = per_operation(row["steps"][step])
        cpu = per_operation(row["steps"][step], "cpu")
        own = same_codec(label, rows)
        picture.add_row(
            label, rate(median(wall)), duration(median(wall)), plus_minus(wall).strip("± "), duration(median(cpu)),
            "" if base is None else "1" if label == base else ratio(ratios(row, rows[base], step)),
            ratio(ratios(row, rows[own], step)) if own else "", rounds(row["steps"][step]),
        )  # fmt: skip
    return picture


def rounds(step: dict[str, Any]) -> str:
    """Of the contender, and how often it did the step in each."""
    repeat = step.get("repeat", 1)
    return f"{len(step['wall']) // repeat}" + (f" x {repeat}" if repeat > 1 else "")


def ratio(figures: list[float]) -> str:
    return f"{median(figures):.2f}{plus_minus(figures)}" if figures else ""


def plus_minus(figures: list[float]) -> str:
    """The spread; nothing where there are too few rounds to tell."""
    found = spread(figures)
    return "" if found is None else f" ± {found:.0%}"


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
