"""A program is killed by ``kill -9`` in the midst of one long operation on many records, again and again.

Building an index, a migration, `Selection.change` and `Selection.delete`, trimming a feed, deleting expired records,
and copies of every kind. Each round begins with a copy of the same file. After the kill the file is as before the
operation or as after it; an index that is partly built is read by nobody, and the next opening completes it. What an
operation has written beside its target, the next one removes.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import zlmdb
from zlmdb.schema import indexbuilding

from .command import forked, main


@dataclass
class Row:
    name: str
    n: int
    parent: int


@dataclass
class Visit:
    until: float


class Visits(zlmdb.Table[int, Visit], name="visits", expires="until", feed=True):
    by_until = zlmdb.Index[float]("until")


class Parents(zlmdb.Table[int, str], name="parents"):
    pass


class Plain(zlmdb.Table[int, Row], name="rows", feed=True):
    by_parent = zlmdb.ForeignKey["Parents"]("parent")


class Indexed(zlmdb.Table[int, Row], name="rows", feed=True):
    by_parent = zlmdb.ForeignKey["Parents"]("parent")
    by_name = zlmdb.UniqueIndex[str]("name")
    by_n = zlmdb.Index[int]("n")


class Before(zlmdb.Schema):
    parents: Parents
    visits: Visits
    rows: Plain


class After(zlmdb.Schema):
    parents: Parents
    visits: Visits
    rows: Indexed


def changed(row: Row) -> Row:
    return replace(row, n=row.n + 1000)


def rewrite(t: Any, old: zlmdb.OldTables) -> None:
    """The step of the migration: both kinds of writes that a step has."""
    old.rewrite("rows", lambda key, fields: {**fields, "n": fields["n"] + 1000})
    for key in t.parents:
        t.parents[key] += "!"


class Migrated(Before):
    migrations = (zlmdb.Migration(1, "add", rewrite),)


def index(path: Path, begun: Callable[[], None]) -> None:
    begun()
    with mock.patch.object(indexbuilding, "BATCH", 1000):  # so that there are many batches
        zlmdb.open(path, After, durability="none").close()


def migration(path: Path, begun: Callable[[], None]) -> None:
    with zlmdb.open(path, Migrated, durability="none") as db:
        begun()
        db.migrate()


def change(path: Path, begun: Callable[[], None]) -> None:
    with zlmdb.open(path, Before, durability="none") as db, db.write() as t:
        begun()
        t.rows.where(lambda r: r.n < 50).change(changed)


def delete(path: Path, begun: Callable[[], None]) -> None:
    with zlmdb.open(path, Before, durability="none") as db, db.write() as t:
        begun()
        t.rows.where(lambda r: r.n < 50).delete()


def trim(path: Path, begun: Callable[[], None]) -> None:
    with zlmdb.open(path, Before, durability="none") as db:
        begun()
        db.changes(Plain).trim(through=db.changes(Plain).last())


def sweep(path: Path, begun: Callable[[], None]) -> None:
    with zlmdb.open(path, Before, durability="none") as db:
        begun()
        db.sweep()
        left = db.tables()["visits"].count
    if left != LASTING:
        raise RuntimeError(f"{left} of {LASTING} visits are left")


def compact(path: Path, begun: Callable[[], None]) -> None:
    with zlmdb.open(path, Before, durability="none") as db:
        begun()
        db.compact()


def backup(path: Path, begun: Callable[[], None]) -> None:
    """Of another database, over the one at *path*; so does `restore`."""
    with zlmdb.open(path.parent / "other", Before, durability="none") as db:
        begun()
        db.backup(path, overwrite=True)


def restore(path: Path, begun: Callable[[], None]) -> None:
    begun()
    zlmdb.Database.restore(path.parent / "other", path, overwrite=True)


def load(path: Path, begun: Callable[[], None]) -> None:
    with zlmdb.open(path, zlmdb.Schema, durability="none") as db, open(path.parent / "dumped", "rb") as stream:
        begun()
        if not db.tables():
            db.load(stream)


def salvage(path: Path, begun: Callable[[], None]) -> None:
    begun()
    if not path.exists():
        zlmdb.Database.salvage(path.parent / "other", path)


WORKS = (index, migration, change, delete, trim, sweep, compact, backup, restore, load, salvage)
MAKE = (load, salvage)  # the database at the path
LASTING = 10  # visits that have not expired


def fill(path: Path, rows: int) -> None:
    with zlmdb.open(path, Before, durability="none") as db, db.write() as t:
        t.parents.put_many([(number, f"p{number}") for number in range(100)])
        t.rows.put_many([(number, Row(f"name {number}", number * 31 % 100, number % 100)) for number in range(rows)])
        for number in range(LASTING + rows // 2):
            t.visits[number] = Visit(time.time() + 1e6 if number < LASTING else 1.0)


def state(path: Path, schema: Any, table: Any) -> Any:
    """The records and the last change, as a program sees them before it completes an index, and what `check` finds."""
    if not path.exists():
        return [], None
    with zlmdb.open(path, durability="none") as db:
        if not db.tables():
            return [], None
    with zlmdb.open(path, schema, durability="none", build_indexes=False) as db:
        problems = [one.text for one in db.check().problems]
        with db.read() as t:
            rows = dict(t.rows)
            found = set(t.rows.where(lambda r: r.n == 7).keys())
            if found != {key for key, row in rows.items() if row.n == 7}:
                problems.append(f"a query finds {len(found)} rows")
            return problems, dict(t.parents), rows, dict(t.visits), db.changes(table).last()


def renew(path: Path, work: Callable[..., None], source: Path) -> None:
    """Put there what the operation begins with."""
    shutil.rmtree(path, ignore_errors=True)
    if work not in MAKE:
        shutil.copytree(source, path)


def kill_one(work: Callable[..., None], path: Path, delay: float) -> bool:
    """Run *work* and kill it *delay* seconds after it has begun; whether it had not ended by then."""
    reading, writing = os.pipe()
    pid = forked(_work, work, path, writing)
    os.close(writing)
    os.read(reading, 1)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    os.close(reading)
    if not os.WIFSIGNALED(status) and status != 0:
        raise RuntimeError(f"the work ended by itself, with status {status}")
    return os.WIFSIGNALED(status)


def wrong(work: Callable[..., None], path: Path, allowed: list[Any]) -> str:
    """What is wrong with the file after a kill; empty if nothing is."""
    schema, table = (After, Indexed) if work is index else (Before, Plain)
    found = state(path, schema, table)
    if found not in allowed:
        return f"neither before nor after: {found[0] or [found[-1], *map(len, found[1:-1])]}"
    work(path, lambda: None)  # goes on, or does it again
    remains = [*path.parent.glob("*.tmp"), *path.glob("*.tmp")]
    if remains:
        return f"the next run left {remains}"
    with zlmdb.open(path, schema, durability="none") as db:
        report = db.check()
    return "" if report.ok else f"after the next run: {report.problems}"


def kills(directory: Path, count: int, rows: int = 10000, seed: int = 1, only: str = "") -> dict[str, Any]:
    """Kill each operation, or the *only* one, COUNT times, at any time of its run."""
    rnd, source, path, other = random.Random(seed), directory / "source", directory / "data", directory / "other"
    fill(source, rows)
    fill(other, rows + 1)
    with zlmdb.open(other, Before) as db, open(directory / "dumped", "wb") as stream:
        db.dump(stream)
    failures: list[str] = []
    killed: dict[str, int] = {}
    for work in WORKS:
        name = work.__name__
        if only not in ("", name):
            continue
        schema, table = (After, Indexed) if work is index else (Before, Plain)
        renew(path, work, source)
        allowed = [state(path, Before, Plain)]
        renew(path, work, source)
        began: list[float] = []
        work(path, lambda began=began: began.append(time.perf_counter()))
        longest = time.perf_counter() - began[0]
        allowed.append(state(path, schema, table))
        failures += [f"{name}: {one[0]}" for one in allowed if one[0]]
        for number in range(count):
            renew(path, work, source)
            killed[name] = killed.get(name, 0) + kill_one(work, path, rnd.random() * longest)
            problem = wrong(work, path, allowed)
            if problem:
                failures.append(f"{name}, kill {number}: {problem}")
                break
    return {"kills": killed, "failures": failures}


def _work(work: Callable[..., None], path: Path, writing: int) -> None:
    work(path, lambda: os.write(writing, b"."))
    os._exit(0)


if __name__ == "__main__":
    main(kills, count=100, rows=10000, seed=1, only="")
