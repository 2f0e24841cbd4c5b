"""What this version set out to reach, and what the saved results say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import NamedTuple, Optional

from saved import Saved
from tables import table

from benchmarks.report import duration
from benchmarks.results import per_operation, ratio
from benchmarks.workloads.caching import Caching
from benchmarks.workloads.layer import FIRST_EACH, FIRST_INSIDE
from benchmarks.workloads.questions import BY_INDEX


class Target(NamedTuple):
    what: str
    goal: str
    found: Optional[float]
    shown: str
    met: Optional[bool]


def unmeasured(what: str, goal: str) -> Target:
    """One of which there are no results."""
    return Target(what, goal, None, "not measured", None)


_MANY = 12  # figures that a row has room for


def quotient(saved: Saved, kind: str, workload: str, label: str, base: str, step: str) -> Optional[float]:
    """How many times the rate of *base*, at the largest size that has both."""
    for _, measured in sorted(saved.sizes(workload, kind).items(), reverse=True):
        rows = measured["rows"]
        if label in rows and base in rows and (found := ratio(rows[label], rows[base], step)):
            return found
    return None


def at_least(what: str, goal: float, found: Iterable[Optional[float]]) -> Target:
    """Met when the least of *found* is."""
    known = [figure for figure in found if figure is not None]
    if not known:
        return unmeasured(what, f">= {goal:g}")
    least, missed = min(known), [figure for figure in known if figure < goal]
    places = 3 if missed and round(least, 2) >= goal else 2  # the figure does not contradict the verdict
    if len(known) > _MANY:
        shown = f"{len(known)} figures from {least:.{places}f} to {max(known):.0f} ×, {len(missed)} below the goal"
    else:
        shown = ", ".join(f"{figure:.{places}f}" if figure < 10 else f"{figure:.1f}" for figure in known) + " ×"
    return Target(what, f">= {goal:g}", least, shown, not missed)


POINT, READ = "point read over the raw loop", "point read, int key, str value"


def more_than_raw(saved: Saved, label: str, goal: float) -> Target:
    what = f"{POINT}: {label}"
    for _, measured in saved.sizes("layer").items():
        rows = measured["rows"]
        if READ in rows.get(label, {"steps": {}})["steps"]:
            ours, raw = (median(per_operation(rows[one]["steps"][READ])) for one in (label, "raw lmdb"))
            found = ours - raw
            return Target(what, f"<= {goal:g} ns", found, f"{found:.0f} ns", found <= goal)
    return unmeasured(what, f"<= {goal:g} ns")


OURS, OLD = "zlmdb FlatBuffers", "zlmdb 26 FlatBuffers"
OTHER_WAYS = {
    "flatc's code": ("flatc's code, NumPy", "official FlatBuffers"),
    OLD: (f"{OLD}, NumPy", f"{OLD}, by hand"),
}
"""Leaner ways to call the official runtime than that of its tutorial, which the goals were set with."""
GET, INDEX = "random get", "one unique index: "
POPULATE = ("populate",)
Ratio = tuple[str, float, str, str, str, tuple[str, ...]]
JSON_USERS: Ratio = (
    "JSON users, fill and get, over zlmdb 26", 1.5, "fill_read", "zlmdb Json", "zlmdb 26 Json", ("fill", GET),
)  # fmt: skip
RATIOS: tuple[Ratio, ...] = (
    ("FlatBuffers users, users[key] = user, over zlmdb 26", 15, "fill_read", f"{OURS}, key by key", OLD, ("fill",)),
    ("FlatBuffers users, put_many, over zlmdb 26", 15, "fill_read", OURS, OLD, ("fill",)),
    ("FlatBuffers users, get and scan of all fields, over zlmdb 26", 18, "fill_read", OURS, OLD, (GET, "scan")),
    ("pickled users, fill and get, over zlmdb 26", 1.5, "fill_read", "zlmdb Pickle", "zlmdb 26 Pickle", ("fill", GET)),
    JSON_USERS,
    ("CBOR users, fill and get, over zlmdb 26", 1.5, "fill_read", "zlmdb Cbor", "zlmdb 26 Cbor", ("fill", GET)),
    (
        "default codec, get and scan, over raw lmdb + msgspec",
        0.85, "fill_read", "zlmdb", "raw lmdb + msgspec", (GET, "scan"),
    ),
    ("fill, checked, over raw lmdb + msgspec", 0.6, "fill_read", "zlmdb", "raw lmdb + msgspec", ("fill",)),
    ("fill, Unchecked, over raw lmdb + msgspec", 0.85, "fill_read", "zlmdb Unchecked", "raw lmdb + msgspec", ("fill",)),
    (
        "one unique index: insert, get by it, update, insert and delete, over a loop by hand",
        0.8, "layer", "zlmdb", "raw lmdb",
        tuple(INDEX + one for one in ("insert", "get by index", "update of the indexed field", "insert and delete")),
    ),
    ("no index: delete, over a loop by hand", 0.85, "layer", "zlmdb", "raw lmdb", ("no index: delete",)),
    ("bulk load over a loop of txn.put", 1.2, "layer", "zlmdb", "raw lmdb", ("bulk load of small records",)),
    (
        "scan of small records, over a raw loop with the same decoder",
        1, "layer", "zlmdb", "raw lmdb", ("scan of small records",),
    ),
    ("persons, populate, checked, over raw lmdb + msgspec", 0.7, "zippondb", "zlmdb", "raw lmdb + msgspec", POPULATE),
    (
        "persons, populate, Unchecked, over raw lmdb + msgspec",
        0.95, "zippondb", "zlmdb Unchecked", "raw lmdb + msgspec", POPULATE,
    ),
    (
        "first record of a selection, asked many times in a transaction, over a loop by hand",
        0.5, "layer", "zlmdb", "raw lmdb", (FIRST_INSIDE,),
    ),
    (
        "first record of a selection, asked many times in a transaction each, over a loop by hand",
        0.5, "layer", "zlmdb", "raw lmdb", (FIRST_EACH,),
    ),
    ("documents, write, checked, over raw lmdb + msgspec", 0.75, "zds", "zlmdb", "raw lmdb + msgspec", ("write",)),
    (
        "documents, Pickle[dict], write and read all, over raw lmdb + pickle",
        0.9, "zds", "zlmdb Pickle, plain dict", "raw lmdb + pickle", ("write", "read all, open handle"),
    ),
    (
        "ZDS documents, read all and random get, over sqlite3 with JSON text",
        2, "zds", "zlmdb", "sqlite3, JSON text", ("read all, open handle", "random, open handle"),
    ),
    (
        "filter FlatBuffers rows to 1%, two fields, over raw iteration of the values",
        0.38, "filtering", "zlmdb where, FlatBuffers", "raw lmdb, values only", ("filter to 1%, two fields",),
    ),
    (
        "one read in a transaction of its own, without a block, over raw lmdb",
        0.8, "layer", "zlmdb auto", "raw lmdb", ("one read, one transaction",),
    ),
    (
        "one write in a block of its own, without sync, over raw lmdb",
        0.8, "layer", "zlmdb", "raw lmdb", ("one write, one transaction",),
    ),
    (
        "durable writes of one thread, 64 in flight, over raw lmdb",
        20, "layer", "zlmdb submit", "raw lmdb", ("durable writes, one transaction each",),
    ),
    (
        "one transaction each, no sync: reads, writes, ten threads, ten threads mixed, over raw lmdb + msgspec",
        0.8, "transactions", "zlmdb", "raw lmdb + msgspec",
        ("read, one thread", "write, one thread", "write, ten threads", "80/20 mixed, ten threads"),
    ),
    (
        "durable writes of ten threads, over raw lmdb + msgspec",
        4, "transactions_durable", "zlmdb", "raw lmdb + msgspec", ("write, ten threads",),
    ),
    (
        "durable writes of ten threads, over LevelDB",
        1, "transactions_durable", "zlmdb", "LevelDB + msgspec", ("write, ten threads",),
    ),
    (
        "durable writes of 100 tasks of asyncio, over raw lmdb + msgspec",
        15, "transactions_durable", "zlmdb", "raw lmdb + msgspec", ("writes of 100 tasks of asyncio",),
    ),
    (
        "questions that an index answers, over sqlite3, which gives tuples",
        1, "questions", "zlmdb", "sqlite3", tuple(question.name for question in BY_INDEX),
    ),
    (
        "one field of all records, FlatBuffers, over a raw loop with msgspec",
        1, "questions", "zlmdb FlatBuffers", "raw lmdb + msgspec", ("no index: one field of all",),
    ),
    (
        "every method of Cache and Queue, over diskcache's Cache and Deque",
        1, "caching", "zlmdb", "diskcache", tuple(question.name for question in Caching.questions),
    ),
)  # fmt: skip
FLATBUFFERS = (
    ("user: encode", "official FlatBuffers", 15, 2.2), ("small record: encode", "official FlatBuffers", 30, 5),
    ("user: decode", "flatc's code", 20, 2), ("small record: decode", "flatc's code", 15, 1.5),
)  # fmt: skip
"""What is encoded or decoded, and how many times the rate of the official runtime, on CPython and on PyPy."""


def over(
    saved: Saved, kind: str, what: str, goal: float, workload: str, label: str, base: str, steps: tuple[str, ...]
) -> Target:  # fmt: skip
    """Met when *label* is *goal* times as fast as *base* at all *steps*."""

    def found(base: str) -> list[Optional[float]]:
        return [quotient(saved, kind, workload, label, base, step) for step in steps]

    target = at_least(what, goal, found(base))
    others = [at_least("", goal, found(other)).shown + f" over {other}" for other in OTHER_WAYS.get(base, ())]
    others = [other for other in others if not other.startswith("not measured")]
    return target._replace(shown="; ".join([target.shown, *others]))


def targets(saved: Saved, kind: str = "cpython") -> list[Target]:
    """The targets of an interpreter."""
    found = [
        over(saved, kind, f"FlatBuffers, {step}, over {base}", on_pypy if kind == "pypy" else on_cpython, "serializers",
             OURS, base, (step,))
        for step, base, on_cpython, on_pypy in FLATBUFFERS
    ]  # fmt: skip
    if kind == "pypy":
        return [
            over(saved, kind, POINT, 0.9, "layer", "zlmdb", "raw lmdb", (READ,)),
            over(saved, kind, *JSON_USERS),
            *found,
        ]
    return [
        more_than_raw(saved, "zlmdb", 70),
        more_than_raw(saved, "zlmdb classic map", 150),
        *found,
        *(
            over(saved, kind, what, goal, workload, label, base, steps)
            for what, goal, workload, label, base, steps in RATIOS
        ),
        once(saved),
        length(saved),
        imported(saved),
        rows_a_second(saved, "FlatBuffers, filter without a match", "no index: where(), no match", 5),
        rows_a_second(saved, "FlatBuffers, group by with two aggregates", "no index: group by, count and sum", 2.5),
    ]


def rows_a_second(saved: Saved, what: str, step: str, goal: float) -> Target:
    """Millions, at the largest size."""
    for size, measured in sorted(saved.sizes("questions").items(), reverse=True):
        found = measured["rows"].get("zlmdb FlatBuffers", {"steps": {}})["steps"].get(step)
        if found:
            millions = 1e3 / median(per_operation(found))
            return Target(what, f">= {goal:g} M rows/s", millions, f"{millions:.2f} M at {size:,}", millions >= goal)
    return unmeasured(what, f">= {goal:g} M rows/s")


def once(saved: Saved) -> Target:
    """The first record where it is asked for once and its code is cold: worse than the figures with a goal."""
    found = quotient(saved, "cpython", "zippondb", "zlmdb", "raw lmdb + msgspec", "Q3 limit 1")
    shown = "not measured" if found is None else f"{found:.2f} ×"
    return Target("first record of a selection, asked once between other questions, over raw lmdb + msgspec",
                  "none: cold code", found, shown, None)  # fmt: skip


def length(saved: Saved) -> Target:
    """``len``, which must not depend on the number of records; the chart of growth shows that."""
    what, goal, step = "len(table)", "< 5 µs", "len of a table"
    for measured in saved.sizes("layer").values():
        if step in measured["rows"].get("zlmdb", {"steps": {}})["steps"]:
            found = median(per_operation(measured["rows"]["zlmdb"]["steps"][step]))
            return Target(what, goal, found, duration(found), found < 5000)
    return unmeasured(what, goal)


def imported(saved: Saved) -> Target:
    """The time of processes that only import it, and of those that import what many programs do."""
    what, goal, step = (
        "time of import zlmdb, over that of import asyncio, sqlite3",
        "<= 0.9",
        "import, in a fresh process",
    )
    found = quotient(saved, "cpython", "layer", "zlmdb", "asyncio and sqlite3", step)
    if found is None:
        return unmeasured(what, goal)
    return Target(what, goal, 1 / found, f"{1 / found:.2f} ×", 1 / found <= 0.9)


def target_table(saved: Saved) -> Iterator[str]:
    rows = []
    for kind in ("cpython", "pypy"):
        for target in targets(saved, kind) if saved.interpreter(kind) else ():
            verdict = {True: "met", False: "missed", None: ""}[target.met]
            rows.append([target.what + (", PyPy" if kind == "pypy" else ""), target.goal, target.shown, verdict])
    if rows:
        yield table(["target", "goal", "measured", ""], rows, "46 14 30 10")
