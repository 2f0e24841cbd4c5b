"""The small table of the README and of the first page: zlmdb beside sqlite3, an ORM, diskcache and raw lmdb."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from saved import Saved, rates

from benchmarks.report import rate

OTHERS = {
    "sqlite3": "sqlite3, typed columns",
    "SQLAlchemy": "SQLAlchemy ORM",
    "diskcache": "diskcache",
    "raw lmdb": "raw lmdb + msgspec",
}
"""The columns, and the contenders in them."""

PLAIN = {"sqlite3, typed columns": "sqlite3"}
"""The name of a contender where its workload has only one form of it."""


class Row(NamedTuple):
    """An operation, as the table names it, and where its results are."""

    text: str
    workload: str
    size: int
    step: str


ROWS = (
    Row("read one of 50,000 objects by its key", "fill_read", 50_000, "random get"),
    Row("read all of them", "fill_read", 50_000, "scan"),
    Row("store them, 10,000 in a transaction", "fill_read", 50_000, "fill"),
    Row("10 threads, 80% reads and 20% synced writes", "go_persist_full", 100_000, "80/20, 10 threads"),
    Row("find 100 of 100,000 records by an index", "questions", 100_000, "where() equal, one thousandth"),
    Row("look at all of 100,000 records, without an index", "zippondb", 100_000, "Q2 name='asd', no hit"),
)
"""Reading and writing by key, durable writes, a question by an index, and one without, which others answer faster."""

PACKAGES = {
    "zlmdb": "zlmdb", "lmdb": "lmdb", "msgspec": "msgspec", "sqlite": "SQLite", "sqlalchemy": "SQLAlchemy",
    "diskcache": "diskcache",
}  # fmt: skip
"""What the line below the table names."""

OF = "Medians, of one run in each row"

BEGIN, END = "<!-- table: written by docs/charts.py -->\n", "<!-- end of table -->"


def cells(saved: Saved) -> tuple[list[str], list[list[str]], str]:
    """The head, the rows, and the line below: rates of zlmdb, and those of the others as multiples of it."""
    found: list[list[str]] = []
    machine: Any = {}
    days: set[str] = set()
    for row in ROWS:
        measured = saved.sizes(row.workload).get(row.size, {"rows": {}})
        ours = measured["rows"].get("zlmdb", {"steps": {}})["steps"].get(row.step)
        if ours is None:
            continue
        machine = machine or measured["machine"]
        days.add(measured["machine"].get("date", "")[:10])
        middle = median(rates(ours))
        line = [row.text, f"{rate(1e9 / middle)}/s"]
        contenders = measured["rows"]
        for label in OTHERS.values():
            one = contenders.get(label) or contenders.get(PLAIN.get(label, label), {"steps": {}})
            step = one["steps"].get(row.step)
            line.append("" if step is None else f"{median(rates(step)) / middle:.2g}")
        found.append(line)
    packages = machine.get("packages", {})
    shown = [f"{name} {packages[package]}" for package, name in PACKAGES.items() if package in packages]
    facts = [str(machine[name]) for name in ("interpreter", "cpu") if name in machine]
    foot = ", ".join([*facts, f"{machine.get('cores', '?')} cores", *shown, " and ".join(sorted(days))])
    return ["operation", "zlmdb", *OTHERS], found, foot


def markdown(saved: Saved) -> str:
    """The table for the README."""
    head, rows, foot = cells(saved)
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]
    return "\n".join(lines) + f"\n\n{OF}: {foot}.\n"


def restructured(saved: Saved) -> str:
    """The table for the first page."""
    head, rows, foot = cells(saved)
    if not rows:
        return "No results are saved.\n"
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: auto", ""]
    narrow = [name.replace("SQLA", "SQL\u200bA").replace("diskc", "disk\u200bc") for name in head]  # may break there
    for row in (narrow, *rows):
        lines += [f"   {'* -' if at == 0 else '  -'} {cell}" for at, cell in enumerate(row)]
    return "\n".join(lines) + f"\n\n{OF}: {foot}.\n"


def renew(saved: Saved, page: Path) -> None:
    """Write the table between its marks in *page*."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    page.write_text(f"{before}{begin}{markdown(saved)}{end}{after}", encoding="utf-8")
