"""Every call fails once: of the engine, one after the other, and of the operating system below it.

A mixed workload runs until its Nth call fails, for N = 1, 2, ... until it gets through. After each failure the data
equal the last commit, the same `Database` goes on, and check() is clean.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Optional

import zlmdb
from tests.office import Person, Task

from . import shim
from .command import loud, main
from .ledger import EXPIRED, Item, Ledger, Mark, Marks, Model, digest, reached, step, wrong

lmdb = zlmdb.lmdb

# -- the engine -------------------------------------------------------------------------------------------------------

ENGINE_ERRORS: dict[str, Callable[[], Exception]] = {
    "map full": lambda: lmdb.MapFullError("MDB_MAP_FULL: Environment mapsize limit reached"),
    "no space": lambda: lmdb.DiskError(f"mdb_txn_commit: {os.strerror(errno.ENOSPC)}"),
    "i/o error": lambda: lmdb.Error(f"mdb_txn_commit: {os.strerror(errno.EIO)}"),
    "engine memory": lambda: lmdb.MemoryError(os.strerror(errno.ENOMEM)),
    "memory": MemoryError,
}
_CALLS = frozenset(["begin", "get", "put", "delete", "cursor", "commit", "drop", "stat", "set_range", "first", "last",
                    "next", "prev", "putmulti", "iternext", "iterprev", "open_db"])  # fmt: skip


class Fuse:
    """Counts calls of the engine; the one numbered *at* raises what *error* makes."""

    def __init__(self, error: Callable[[], Exception]) -> None:
        self.error = error
        self.calls = 0
        self.at: Optional[int] = None

    def light(self, at: Optional[int]) -> None:
        """Count from now."""
        self.calls, self.at = 0, at

    def burn(self) -> None:
        """One call."""
        self.calls += 1
        if self.calls == self.at:
            raise self.error()


class Fused:
    """An environment, transaction or cursor of an engine, each call of which burns the fuse."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in _CALLS:
            return found
        inner, fuse = self._inner, self._fuse

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                fuse.burn()
            except BaseException:
                if name == "commit":  # LMDB ends a transaction whose commit fails
                    inner.abort()
                raise
            for key in ("parent", "txn"):
                if isinstance(kwargs.get(key), Fused):
                    kwargs[key] = kwargs[key]._inner
            made = found(*args, **kwargs)
            return Fused(made, fuse) if name in ("begin", "cursor") else made

        return call

    def __enter__(self) -> Fused:
        return self

    def __exit__(self, *error: object) -> None:
        self.abort()


def workload(db: zlmdb.Database[Ledger], n: int) -> int:
    """Transactions of every kind after the *n*-th; the number of the last one stored."""
    with db.write() as t:
        step(t, n + 1)
    with db.write() as t:
        with suppress(KeyError), t.txn.savepoint():
            t.items.clear()
            rarer(t)
            raise KeyError
        with t.txn.savepoint():
            step(t, n + 2)
    db.run(lambda t: step(t, n + 3))
    with db.write() as t:
        extra = max(t.items, default=0) + 1
        t.items.put_many((extra + i, Item(f"extra {i}", i, b"x" * 5000)) for i in range(5))
        t.items.put_many([(extra + i, Item(f"extra {i}", i, b"x" * 5000)) for i in range(5, 10)])  # by another way
        t.items.select(extra).delete()
        step(t, n + 4)
    with db.read() as t:
        list(t.items.by_group.select(1, 3))
        digest(t)
    follow(db)
    return n + 4


def rarer(t: Any) -> None:
    """Statements that `step` does not have, each of which may be refused."""
    people = {key: Person(None, None, [key]) for key in range(1, 5)}
    statements: list[Callable[[], object]] = [
        lambda: t.people.put_many(people.items()),
        lambda: t.tasks.put_many([(key, Task(key)) for key in people]),
        lambda: t.people.where(lambda r: r.boss is None).change(lambda r: Person(1, 2, [3])),
        lambda: t.people.select(2, 4).delete(),
        lambda: t.people.where(lambda r: 3 in r.friends).delete(),
        lambda: t.marks.put_many([(n, Mark(f"o{n}", ["a"], n, EXPIRED if n % 2 else None)) for n in range(5)]),
        lambda: t.marks.put_new(1, Mark("o3", ["b"], 3, None)),
        lambda: t.marks.where(lambda r: r.group > 2).delete(),
        lambda: (len(t.marks), list(t.marks.by_tag.select()), t.marks.by_group.count(), list(t.marks.items())),
        t.marks.clear, t.notes.clear, t.tasks.clear, t.people.clear,
    ]  # fmt: skip
    for statement in statements:
        with suppress(zlmdb.ConstraintError):
            statement()


def follow(db: Any) -> None:
    """Read a feed in each way, and delete what has expired."""
    changes = db.changes(Marks, consumer="new", after=db.changes(Marks).first() - 1)
    changes.take(2)
    changes.acknowledge()
    changes.forget()
    db.sweep()


def broken_calls(
    db: zlmdb.Database[Ledger], fuse: Fuse, most: int, every: int, first: int = 0
) -> tuple[Counter[str], list[str], int]:
    """Let each call of `workload` fail: the errors it ended with, what was wrong after, and the number of calls.

    With more than one call left out between, the *first* says which ones are tried.
    """
    model, seen, failures = Model(), Counter[str](), list[str]()
    at = 1 + first % every
    while at <= most:
        n = reached(db)[0]
        fuse.light(at)
        try:
            workload(db, n)
        except (zlmdb.Error, MemoryError) as error:
            seen[type(error).__name__] += 1
        except Exception as error:  # LMDB's own: it should have been one of ours
            where = [frame for frame in traceback.extract_tb(error.__traceback__) if "zlmdb" in frame.filename][-1]
            failures.append(f"call {at}: {error!r} came out of {where.filename}:{where.lineno}")
        calls, _ = fuse.calls, fuse.light(None)
        problem = wrong(db, model, n, n + 4)
        if not problem:
            n = reached(db)[0]
            with db.write() as t:
                step(t, n + 1)
            problem = wrong(db, model, n + 1, n + 1)
        if problem:
            failures.append(f"call {at}: {problem}")
        if calls < at:
            break
        at += every
    return seen, failures, at


def engine_calls(directory: Path, most: int = 100_000, every: int = 1) -> dict[str, Any]:
    """Let each call of the engine fail with each of its errors, on LMDB and in memory.

    With EVERY more than 1, only each so many-th call fails, and another one of them with each error.
    """
    found: dict[str, Any] = {"failures": []}
    for engine in ("lmdb", "memory"):
        kinds = ENGINE_ERRORS if engine == "lmdb" else {"memory": MemoryError, "full": zlmdb.DatabaseFull}
        for turn, (name, error) in enumerate(kinds.items()):
            fuse = Fuse(error)
            path = None if engine == "memory" else directory / name.replace("/", "")
            db = zlmdb.open(path, Ledger, durability="none", maxsize=1 << 26)
            for n in range(1, 30):
                db.run(lambda t, n=n: step(t, n))
            db._open_store.env = Fused(db._open_store.env, fuse)
            seen, failures, calls = broken_calls(db, fuse, most, every, turn)
            found[f"{engine}, {name}"] = {"calls": calls, **seen}
            found["failures"] += [f"{engine}, {name}, {failure}" for failure in failures[:50]]
            db._open_store.env = db._open_store.env._inner
            db.close()
    return found


# -- the operating system ----------------------------------------------------------------------------------------------

SYSTEM_ERRORS = {"no space": (errno.ENOSPC, 0), "i/o error": (errno.EIO, 0), "half a write": (0, 1)}


def system_calls_here(directory: Path, most: int, every: int, durability: Any) -> dict[str, Any]:
    """As `system_calls`, in a process that has the shim."""
    library: Any = ctypes.CDLL(None)
    library.shim_calls.restype = ctypes.c_long
    found: dict[str, Any] = {"failures": []}

    class Writes(Fuse):
        how = (0, 0)

        def light(self, at: Optional[int]) -> None:
            self.before = library.shim_calls()
            library.shim_fail(ctypes.c_long(at or 0), *self.how)

        @property
        def calls(self) -> int:  # type: ignore[override]
            return int(library.shim_calls()) - self.before

        @calls.setter
        def calls(self, value: int) -> None: ...

    for name, how in SYSTEM_ERRORS.items():
        with zlmdb.open(directory / name.replace("/", ""), Ledger, durability=durability) as db:
            for n in range(1, 30):
                db.run(lambda t, n=n: step(t, n))
            writes = Writes(MemoryError)
            writes.how = how
            seen, failures, calls = broken_calls(db, writes, most, every)
            found[f"{durability}, {name}"] = {"calls": calls, **seen}
            found["failures"] += [f"{name}, {failure}" for failure in failures[:50]]
    return found


def system_calls(directory: Path, most: int = 100_000, every: int = 1) -> dict[str, Any]:
    """Let each write and flush of the data file fail in the C library, in a process of its own."""
    import json

    library = shim.build(directory)
    found: dict[str, Any] = {"failures": []}
    for durability in ("full", "commit", "none"):
        arguments = ["--here", str(directory / durability), str(most), str(every), durability]
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name, *arguments],
            env=shim.environment(library), cwd=shim.ROOT, check=False, stdout=subprocess.PIPE,
        )  # fmt: skip
        if done.returncode:
            found["failures"].append(f"{durability}: the process ended with {done.returncode}")
            continue
        part = json.loads(done.stdout)
        found["failures"] += part.pop("failures")
        found.update(part)
    return found


def both(directory: Path, most: int, every: int) -> dict[str, Any]:
    """Let every call of the engine fail once, and every write and flush of the operating system."""
    found = engine_calls(directory, most, every)
    if shim.compiler() is None:
        return {**found, "system calls": "not tried: no C compiler"}
    shutil.rmtree(directory)
    directory.mkdir()
    below = system_calls(directory, most, every)
    return {**found, **below, "failures": found["failures"] + below["failures"]}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        import json

        loud()
        print(json.dumps(system_calls_here(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])))
        sys.exit(0)
    main(both, most=100_000, every=1)
