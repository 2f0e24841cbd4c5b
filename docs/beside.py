"""Tables of questions beside other stores: a row each, a column a store."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from saved import Rows, Saved, where
from tables import escape, table

from benchmarks.report import duration, factor, steps_of
from benchmarks.results import per_operation, ratio
from benchmarks.workloads.zippondb import PUBLISHED


def asked(saved: Saved) -> Iterator[str]:
    """The questions, at each size and on each interpreter."""
    for kind in ("cpython", "pypy"):
        for size, measured in sorted(saved.sizes("questions", kind).items()):
            rows = measured["rows"]
            others = [label for label in rows if not label.startswith("zlmdb") and rows[label]["steps"]]
            ours = [label for label in rows if label.startswith("zlmdb") and rows[label]["steps"]]
            if others and "zlmdb" in ours:
                body = [
                    [
                        step,
                        *(alone(rows, label, step) for label in ours),
                        *(times(rows, label, step) for label in others),
                    ]
                    for step in steps_of(rows)
                ]
                yield table(["", *ours, *others], body)
                yield f"{escape(where(measured, size))}. × is how many times as fast the faster zlmdb is.\n\n"


SMALL = ("Q6", "Q7", "Q8", "Q9")


def zippondb(saved: Saved) -> Iterator[str]:
    """ZipponDB's queries as it published them, and here."""
    labels = ("sqlite3, typed columns", "zlmdb", "zlmdb FlatBuffers")
    for size, measured in sorted(saved.sizes("zippondb").items()):
        rows = measured["rows"]
        present = [label for label in labels if rows.get(label, {"steps": {}})["steps"]]
        body = [
            [step, published(step, figures[size]), *(whole(rows[label]["steps"].get(step)) for label in present)]
            for step, figures in PUBLISHED.items()
            if size in figures and present
        ]
        if body:
            yield table([f"{size:,} users", "published", *present], body)
            yield f"{escape(where(measured, size))}.\n\n"


def published(step: str, figures: tuple[float, ...]) -> str:
    if step.startswith(SMALL):
        return " to ".join(f"{figure:g}" for figure in figures) + " ms"
    texts = [duration(figure * 1e6) for figure in figures]
    return texts[0] + "".join(f"; one thread {text}" for text in texts[1:])


def whole(step: Any) -> str:
    """The time of the step, however many records it reads."""
    return duration(median(per_operation(step)) * step["count"]) if step else ""


def links(saved: Saved) -> Iterator[str]:
    """Links, updates and deletes, beside SQLite."""
    for size, measured in sorted(saved.sizes("zippondb_links").items()):
        rows = measured["rows"]
        if rows.get("sqlite3", {"steps": {}})["steps"]:
            body = [[step, *(whole(row["steps"].get(step)) for row in rows.values())] for step in steps_of(rows)]
            yield table([f"{size:,} users and orders", *rows], body)
            yield f"{escape(where(measured, size))}.\n\n"


def alone(rows: Rows, label: str, step: str) -> str:
    found: Any = rows[label]["steps"].get(step)
    return duration(median(per_operation(found))) if found else ""


def times(rows: Rows, label: str, step: str) -> str:
    """The time, and how many times the rate of *label* the fastest of ours has."""
    if step not in rows[label]["steps"]:
        return "–" if step in rows[label]["skipped"] else ""
    best = max(ratio(row, rows[label], step) or 0 for ours, row in rows.items() if ours.startswith("zlmdb"))
    return alone(rows, label, step) + (f", ×{factor(best)}" if best else "")
