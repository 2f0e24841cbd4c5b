"""The tables of the performance page, as reStructuredText: every figure, and where others are faster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import Any

from saved import Rows, Saved, where

from benchmarks.report import between, duration, factor, notes, steps_of, times
from benchmarks.results import common_base, per_operation, ratio, same_codec

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
    yield f"× is to {base}. " if base else ""
    yield f"{escape(where(measured, size))}. ``{measured['command']}``\n\n"
    yield "".join(f"* {escape(line)}\n" for line in notes(rows)) + "\n"


def cell(rows: Rows, label: str, step: str) -> str:
    row = rows[label]
    if step not in row["steps"]:
        return "–" if step in row["skipped"] else ""
    each = per_operation(row["steps"][step])
    base, own = common_base(rows, step), same_codec(label, rows)
    found = [duration(median(each)), f"({between(each)})" if len(each) > 1 else ""]
    found.append(f"×{times(rows, label, base, step)}" if base and base != label else "")
    found.append(f"codec ×{same}" if own != base and (same := times(rows, label, own, step)) else "")
    busy = sum(per_operation(row["steps"][step], "cpu")) / sum(each)
    found.append("" if 0.9 <= busy <= 1.1 else f"CPU {busy:.0%}")
    return ", ".join(filter(None, found)).replace(", (", " (")


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
    return f"{duration(median(per_operation(rows[label]['steps'][step])))}, ×{times(rows, label, base, step)}"


REASONS = {
    "dict + lock": "It is in memory: no file, no encoding, no transaction. It returns the object itself.",
    "raw lmdb": "The same engine without a layer: no transaction object, no types, no checks, no translated errors.",
    "RocksDB": "An LSM tree: a put appends to a log and a table in memory. A read begins no transaction.",
    "LevelDB": "As RocksDB.",
    "sqlite3": "It filters in C, and gives only the fields that are asked for. A commit appends to one log.",
    "SQLAlchemy": "As sqlite3.",
    "peewee": "As sqlite3.",
    "diskcache": "As sqlite3.",
    "ObjectBox": "Its query runs inside the store, in C. A read of a few records begins no Python transaction.",
    "ZODB": "Its cache keeps the objects, so it does not decode them again. Emptying drops the root of the tree.",
    "pandas": "One CSV file, read at once by C code. Nothing can be changed in place.",
    "Hugging Face": "Arrow columns, written in bulk by C++.",
    "shelve": "A hash table of the system's dbm: no order, no transactions, no readers beside a writer.",
    "zlmdb 26": "It checks nothing when it writes, and waits for other processes in LMDB's own lock, without a limit.",
    "msgspec MessagePack": "It does not check values. Unchecked is the same code.",
    "official FlatBuffers, six fields only": "It writes six of the 11 fields.",
    "official FlatBuffers": "PyPy compiles its reads at fixed offsets, as those of zlmdb FlatBuffers.",
    "flatc's code": "As official FlatBuffers.",
}
"""Why a store is faster, by the beginning of its label."""

COMPETED = (
    "serializers", "fill_read", "zds", "zippondb", "db_benchmark", "db_benchmark_durable", "go_persist",
    "go_persist_commit", "go_persist_full", "growth", "transactions", "transactions_durable",
)  # fmt: skip


def losses(saved: Saved) -> Iterator[str]:
    """Where a store is faster than a table of zlmdb with its default codec, at the size of the charts, by its fastest
    variant."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for kind, suffix in (("cpython", ""), ("pypy", ", PyPy")):
        for workload in COMPETED:
            rows = saved.largest(workload, kind)[1]["rows"]
            own = rows.get("zlmdb") or rows.get("zlmdb default (MessagePack)") or {"steps": {}}
            for label in rows:
                for step in own["steps"] if not label.startswith("zlmdb") or label.startswith("zlmdb 26") else ():
                    times = ratio(rows[label], own, step) or 0
                    if times > TIE and not step.startswith(LEFT_OUT_STEPS):
                        steps = found.setdefault(store(label), {}).setdefault(workload + suffix, {})
                        steps[step] = max(times, steps.get(step, 0))
    for label in sorted(found, key=[*REASONS, *found].index):
        yield f"**{escape(label)}.** {escape(REASONS.get(label, 'The reason is not known.'))}\n\n"
        for run, steps in found[label].items():
            yield f"* {escape(run)}: {escape('; '.join(f'{step} ×{factor(times)}' for step, times in steps.items()))}\n"
        yield "\n"


TIE = 1.15
"""Less is none."""


def store(label: str) -> str:
    """The name of a contender among the `REASONS`, or its label."""
    return next((one for one in REASONS if label.startswith(one)), label)


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
