"""The tables of the performance page, as reStructuredText: every figure, and where others are faster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from saved import Rows, Saved, where

from benchmarks.report import duration, factor, notes, plus_minus, steps_of
from benchmarks.results import common_base, per_operation, ratios, same_codec

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
        f"Median time of an operation; × is how many times the rate of {base}, round by round, and ± "
        "how far that, or the time where there is none, may be in a rerun; same codec × is to raw lmdb with the same "
        "codec, where that is another; CPU the processor time, of all threads, where it is not that of the clock. "
        f"{escape(where(measured, size))}. "
        f"``{measured['command']}``\n\n"
    )
    yield "".join(f"* {escape(line)}\n" for line in notes(rows)) + "\n"


def cell(rows: Rows, label: str, step: str) -> str:
    row = rows[label]
    if step not in row["steps"]:
        return "–" if step in row["skipped"] else ""
    each = per_operation(row["steps"][step])
    base = common_base(rows, step)
    found = ratios(row, rows[base], step) if base and base != label else []
    times = f", ×{factor(median(found))}" if found else ""
    own = same_codec(label, rows)
    same = ratios(row, rows[own], step) if own and own != base else []
    with_it = f", same codec ×{factor(median(same))}" if same else ""
    busy = sum(per_operation(row["steps"][step], "cpu")) / sum(each)
    cpu = "" if 0.9 <= busy <= 1.1 else f", CPU {busy:.0%}"
    return f"{duration(median(each))}{times}{plus_minus(found or each).replace(' ± ', ', ±')}{with_it}{cpu}"


SINGLE = ("one read, one transaction", "one write, one transaction", "durable writes, one transaction each")


def operations(saved: Saved) -> Iterator[str]:
    """Single operations and caches, each beside one other."""
    for workload, base in (("layer", "raw lmdb"), ("caching", "diskcache")):
        size, measured = saved.largest(workload, least=1)
        rows = measured["rows"]
        steps = [one for one in steps_of(rows) if workload != "layer" or one in SINGLE] if base in rows else []
        body = [
            [step, duration(median(per_operation(rows[base]["steps"][step]))), label, of_base(rows, label, base, step)]
            for step in steps
            for label, row in rows.items()
            if label != base and step in row["steps"] and step in rows[base]["steps"]
        ]
        if body:
            yield table(["operation", base, "", "times as fast"], body)
            yield f"{escape(where(measured, size))}.\n\n"


def of_base(rows: Rows, label: str, base: str, step: str) -> str:
    """Time, and how many times as fast as *base*."""
    each = duration(median(per_operation(rows[label]["steps"][step])))
    return f"{each}, ×{factor(median(ratios(rows[label], rows[base], step)))}"


IN_C = "in C; zlmdb's default codec creates every object first, a table of FlatBuffers reads only the field"
FILTERS = ("no hit", "Charlie", "project")
FEW = ("Q3", "Q6", "Q7", "Q8", "Q9", "count")
READS = ("get", "random,", "query", "scan", "read all", "Q1 ", *FEW, *FILTERS)
BEGUN = "the step reads few records or none: beginning and ending a zlmdb transaction takes some forty Python calls"
IN_PLACE = "on PyPy, FlatBuffers are read at fixed offsets, as in zlmdb FlatBuffers; MessagePack is read byte by byte"
ONE_FIELD = "it reads only this field, as zlmdb FlatBuffers does; zlmdb's default codec creates the object first"
ON_SQLITE = ("sqlite3", "SQLAlchemy", "peewee", "diskcache")
ONE_LOG = "SQLite appends to one log; LMDB writes the pages that it copied"
LATER = "here SQLite syncs when it copies its log, zlmdb with each commit"
REASONS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "",
        ("new process",),
        "the measured time includes the creation of zlmdb's codecs; on PyPy nothing is compiled yet",
    ),
    ("msgspec MessagePack", ("encode",), "it does not check values; zlmdb's MessagePack, Unchecked, is the same code"),
    ("official FlatBuffers, six fields only", ("",), "it writes six of the 11 fields"),
    *((who, ("one field",), ONE_FIELD) for who in ("sqlite3", "zlmdb 26 FlatBuffers")),
    *((who, ("decode",), IN_PLACE) for who in ("official FlatBuffers", "flatc's code")),
    (
        "sqlite3, JSON text",
        ("read all",),
        "on PyPy, json is part of the compiled interpreter, while Python code reads MessagePack",
    ),
    ("ZODB", ("delete all",), "it drops the root of the tree; the records are removed when the file is packed"),
    ("dict + lock", ("",), "in memory: no file, no encoding, no transaction; it returns the object itself"),
    *((who, FEW, BEGUN) for who in ("sqlite3", "ObjectBox", "diskcache", "zlmdb 26", "RocksDB", "LevelDB")),
    ("ZODB", READS, "its cache keeps the objects, so it does not decode them again"),
    ("pandas", ("read all, open",), "the open handle is a copy in memory, as columns"),
    ("pandas", ("",), "CSV is one text, which C code reads at once; nothing can be changed in place"),
    ("Hugging Face", ("write",), "Arrow columns are written in bulk by C++"),
    ("sqlite3", FILTERS, f"SQLite filters and projects {IN_C}"),
    ("SQLAlchemy", FILTERS, f"SQLite filters and projects {IN_C}"),
    ("peewee", FILTERS, f"SQLite filters and projects {IN_C}"),
    ("ObjectBox", ("no hit", "Charlie"), f"its query runs inside the store, {IN_C}"),
    (
        "raw lmdb",
        (*READS, "delete"),
        "the same engine without a layer: no transaction object, no types, no translated errors",
    ),
    ("raw lmdb", ("",), "the same engine without a layer: values are not checked, errors are not translated"),
    ("RocksDB", ("thread",), "a put appends to a log and a table in memory, and a read begins no transaction"),
    ("LevelDB", ("thread",), "a put appends to a log and a table in memory, and a read begins no transaction"),
    ("RocksDB", ("query", "seed-faithful query"), "a read is one C++ call and begins no transaction"),
    ("LevelDB", ("query", "seed-faithful query"), "a read is one C++ call and begins no transaction"),
    (
        "RocksDB",
        READS,
        "not known: like the raw loop of lmdb it has no layer, and it reads from tables and caches in memory",
    ),
    (
        "LevelDB",
        READS,
        "not known: like the raw loop of lmdb it has no layer, and it reads from tables and caches in memory",
    ),
    (
        "RocksDB",
        ("",),
        "an LSM tree appends to a log and sorts later; a B+tree finds the page and copies it for the commit",
    ),
    (
        "LevelDB",
        ("",),
        "an LSM tree appends to a log and sorts later; a B+tree finds the page and copies it for the commit",
    ),
    *((who, ("go_persist_commit",), LATER) for who in ON_SQLITE),
    *((who, ("insert", "update", "delete", "thread"), ONE_LOG) for who in ON_SQLITE),
    ("sqlite3", ("processes", "query"), "its transaction begins in C, without a Python object"),
    ("shelve", ("",), "a hash table of the system's dbm: no order, no transactions, no readers beside a writer"),
    (
        "zlmdb 26",
        ("processes",),
        "it waits in LMDB's own lock, which wakes it but has no time limit; zlmdb polls a file lock",
    ),
    ("zlmdb 26", ("fill", "populate", "insert", "write"), "the maps of zlmdb 26 check nothing"),
)


UNKNOWN = "not known"
CHANCE = "; perhaps chance: there are only one or two rounds, and equal code can differ by as much"
SWING = 1.5
"""Rounds of the same code were seen to differ by 1.4, so a ratio of two may by more."""
FEW_ROUNDS = 3


def reason(label: str, step: str, workload: str = "") -> str:
    """Why *label* is faster in *step* of *workload*, as far as known."""
    for who, parts, why in REASONS:
        if label.startswith(who) and any(part in step or part == workload for part in parts):
            return why
    return UNKNOWN


COMPETED = (
    "serializers", "fill_read", "fill_read_published", "zds", "zippondb", "db_benchmark", "db_benchmark_16",
    "db_benchmark_durable", "go_persist", "go_persist_strings", "go_persist_commit", "go_persist_full", "growth",
    "transactions", "transactions_durable",
)  # fmt: skip


def losses(saved: Saved) -> Iterator[str]:
    """Every step in which a contender is faster than a table of zlmdb with its default codec, grouped by the reason."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for kind in ("cpython", "pypy"):
        for workload in COMPETED:
            for size, measured in saved.sizes(workload, kind).items():
                rows = measured["rows"]
                run = f"{workload}, {size:,}" + (", PyPy" if kind == "pypy" else "")
                for step in steps_of(rows):
                    if not step.startswith(LEFT_OUT_STEPS):
                        for who, why in faster(rows, step, workload):
                            by_reason.setdefault(why, {}).setdefault(run, []).append(
                                f"**{escape(step)}**: {escape(who)}"
                            )
    for why, runs in sorted(by_reason.items(), key=lambda item: -sum(map(len, item[1].values()))):
        yield f"{escape(why[0].upper() + why[1:])}:\n\n"
        yield "".join(f"* {escape(run)}. {'; '.join(steps)}\n" for run, steps in runs.items()) + "\n"


def faster(rows: Rows, step: str, workload: str) -> list[tuple[str, str]]:
    """The contenders that are faster in *step*, with their ratios: for each reason, those who share it."""
    own = "zlmdb" if "zlmdb" in rows else "zlmdb default (MessagePack)"
    if step not in rows.get(own, {"steps": {}})["steps"]:
        return []
    by_reason: dict[str, list[str]] = {}
    for label, row in rows.items():
        times = ratios(row, rows[own], step)
        ours = label.startswith("zlmdb") and not label.startswith("zlmdb 26")
        if times and not ours and median(times) > 1.15:
            why = reason(label, step, workload)
            if why.startswith(UNKNOWN) and median(times) <= SWING and len(times) < FEW_ROUNDS:
                why += CHANCE
            by_reason.setdefault(why, []).append(f"{label} ×{factor(median(times))}")
    return [(", ".join(who), why) for why, who in by_reason.items()]


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
