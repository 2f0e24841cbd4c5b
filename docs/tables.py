"""The tables of the performance page, as reStructuredText: every figure, and where others are faster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from saved import Rows, Saved, where

from benchmarks.report import duration, notes, steps_of
from benchmarks.results import common_base, per_operation, ratios, spread

LEFT_OUT_STEPS = ("seed-faithful", "prefill")
"""Not told among those that others win: they say little."""


def table(header: list[str], rows: Iterable[list[str]], widths: str = "auto") -> str:
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for cells in [header, *rows]:
        lines += [f"   {'* -' if at == 0 else '  -'} {escape(cell)}".rstrip() for at, cell in enumerate(cells)]
    return "\n".join(lines) + "\n\n"


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("`", "\\`").replace("|", "\\|").replace("_", "\\_")


def figures(saved: Saved) -> Iterator[str]:
    """Every figure: a section a workload and interpreter, a table a size."""
    for interpreter, workloads in saved.data.items():
        yield f"{interpreter}\n{'-' * len(interpreter)}\n\n"
        for data in workloads.values():
            for size, measured in data["sizes"].items():
                title = f"{data['title']}, {int(size):,}"
                yield f"{title}\n{'~' * len(title)}\n\n"
                yield from size_table(measured, int(size))
            for size, reason in data.get("left_out", {}).items():
                yield f"{data['title']}, {int(size):,}: not run, {escape(reason)}.\n\n"


def size_table(measured: Any, size: int) -> Iterator[str]:
    rows = measured["rows"]
    steps = steps_of(rows)
    if not steps:
        yield "\n".join(f"* {escape(line)}" for line in notes(rows)) + "\n\n"
        return
    extra = [name for name in ("bytes", "object_bytes", "memory_bytes") if any(name in row for row in rows.values())]
    titles = {"bytes": "disk, bytes/record", "object_bytes": "bytes/object", "memory_bytes": "memory, bytes/record"}
    body = []
    for label, row in rows.items():
        if "absent" in row:
            continue
        cells = [cell(rows, label, step) for step in steps]
        for name in extra:
            per = row.get(name, 0) / (size if name == "bytes" else 1)
            cells.append(f"{per:.0f}" if per else "")
        body.append([label, *cells])
    yield table(["", *steps, *(titles[name] for name in extra)], body)
    base = ", ".join(sorted({base for step in steps if (base := common_base(rows, step))}))
    yield (
        f"Median time of an operation; × is how many times the rate of {base}, and ± the spread of the rounds, half "
        f"the distance between the quartiles. {escape(where(measured, size))}. ``{measured['command']}``\n\n"
    )
    yield "".join(f"* {escape(line)}\n" for line in notes(rows)) + "\n"


def cell(rows: Rows, label: str, step: str) -> str:
    row = rows[label]
    if step not in row["steps"]:
        return "–" if step in row["skipped"] else ""
    each = per_operation(row["steps"][step])
    base = common_base(rows, step)
    times = f", ×{median(found):.2g}" if base and (found := ratios(row, rows[base], step)) else ""
    return f"{duration(median(each))}{times}, ±{spread(each):.0%}"


REASONS: tuple[tuple[str, str, str], ...] = (
    ("dict + lock", "", "in memory: no file, no encoding, no transaction, and the object itself comes back"),
    ("ZODB", "", "its cache holds the objects alive: what is read again is not decoded again"),
    ("pandas", "read all, open", "the open handle is a copy in memory, as columns"),
    ("pandas", "", "CSV is one text, read by C in one go; nothing can be changed in place"),
    ("Hugging Face", "write", "Arrow columns are written in bulk by C++"),
    ("sqlite3", "no hit", "SQLite compares in C, and makes no Python object; zlmdb decodes every record"),
    ("sqlite3", "Charlie", "SQLite filters in C and makes objects of the hits only; zlmdb decodes every record"),
    ("sqlite3", "project", "SQLite reads one column in C; zlmdb decodes whole records"),
    ("SQLAlchemy", "Q", "SQLite filters and projects in C; zlmdb decodes every record"),
    ("peewee", "Q", "SQLite filters and projects in C; zlmdb decodes every record"),
    ("ObjectBox", "Q", "its query runs in C++ inside the store; zlmdb decodes every record"),
    ("raw lmdb", "fill", "stores what it is given; a table checks that it can be read again"),
    ("raw lmdb", "", "the same engine with nothing around it: no checks, no translated errors, no table of types"),
    ("RocksDB", "query", "a read is one call: no transaction is begun for it"),
    ("LevelDB", "query", "a read is one call: no transaction is begun for it"),
    ("RocksDB", "thread", "a put appends to a log and a table in memory, and no transaction is begun for a read"),
    ("LevelDB", "thread", "a put appends to a log and a table in memory, and no transaction is begun for a read"),
    ("RocksDB", "", "an LSM tree appends to a log and sorts later; a B+tree finds its page, and copies it to commit"),
    ("LevelDB", "", "an LSM tree appends to a log and sorts later; a B+tree finds its page, and copies it to commit"),
    ("sqlite3", "synced", "one log is synced; LMDB writes and syncs the pages it copied"),
    ("sqlite3", "", "a prepared statement binds in C, and its transaction begins without a Python object"),
    ("shelve", "", "one file is appended to, without a transaction"),
    ("zlmdb 26", "", "the maps of the predecessor check nothing"),
)


def reason(label: str, step: str) -> str:
    return next((why for who, what, why in REASONS if label.startswith(who) and what in step), "not known")


def losses(saved: Saved) -> Iterator[str]:
    """Every step in which a contender is faster than a table of zlmdb with its default codec, by more than a tie."""
    rows_found = []
    for workload in ("fill_read", "zds", "zippondb", "db_benchmark", "db_benchmark_16", "db_benchmark_durable",
                     "go_persist", "go_persist_strings", "go_persist_commit", "go_persist_full", "growth"):  # fmt: skip
        for size, measured in saved.sizes(workload).items():
            rows = measured["rows"]
            for step in steps_of(rows):
                if "zlmdb" not in rows or step not in rows["zlmdb"]["steps"] or step.startswith(LEFT_OUT_STEPS):
                    continue
                for label, row in rows.items():
                    found = ratios(row, rows["zlmdb"], step)
                    if label.startswith("zlmdb") and not label.startswith("zlmdb 26"):
                        continue
                    if found and median(found) > 1.15:
                        name = f"{workload}, {size:,}: {step}"
                        rows_found.append([name, label, f"×{median(found):.2g}", reason(label, f"{workload} {step}")])
    if rows_found:
        yield table(["workload, records: step", "faster", "by", "why, as far as known"], rows_found, "34 22 8 36")


def commands(saved: Saved) -> Iterator[str]:
    seen = {
        (measured["command"], measured["machine"]["interpreter"])
        for workloads in saved.data.values()
        for data in workloads.values()
        for measured in data["sizes"].values()
    }
    for command, interpreter in sorted(seen):
        yield f"* ``{command}``, {interpreter}\n"
    yield "\n"
