"""Operations of a process that has reached a limit of the system: descriptors, memory, size of files, threads.

Each operation runs again and again, in a process of its own, with a little more room each time, until it succeeds. What
was refused is as before or as after the operation; the same ``Database`` goes on, and does the operation once the limit
is gone; and the error is one of ours, a MemoryError, or that of the system which names the limit.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import subprocess
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import zlmdb

from .command import Crash, in_children, main


class CannotMountError(Exception):
    """This system, such as a container, lets not even root mount a disk."""


ROWS = 2000
WIDE = "x" * 500  # so that some hundred records take more room than there is


@dataclass
class Row:
    name: str
    n: int
    text: str = ""


@dataclass
class Visit:
    until: float


class Rows(zlmdb.Table[int, Row], name="rows", feed=True):
    by_n = zlmdb.Index[int]("n")


class Named(zlmdb.Table[int, Row], name="rows", feed=True):
    by_n = zlmdb.Index[int]("n")
    by_name = zlmdb.UniqueIndex[str]("name")


class Visits(zlmdb.Table[int, Visit], expires="until"):
    pass


class Store(zlmdb.Schema):
    rows: Rows
    visits: Visits
    jobs: zlmdb.Queue[str]


class WithNames(Store):
    rows: Named


def rewrite(t: Any, old: zlmdb.OldTables) -> None:
    old.rewrite("rows", lambda key, fields: {**fields, "n": fields["n"] + 1})


class Migrated(Store):
    migrations = (zlmdb.Migration(1, "add", rewrite),)


# -- what a program does: each is given the open database and a directory of its own -----------------------------------


def block(db: Any, place: Path) -> None:
    with db.write() as t:
        t.rows[1] = Row("changed", 7, WIDE)
        with t.txn.savepoint():
            t.rows[2] = Row("two", 7)
        t.rows.where(lambda r: r.n == 3).change(lambda r: replace(r, text=WIDE))


def run(db: Any, place: Path) -> None:
    db.run(lambda t: t.rows.put_many([(n, Row(f"name {n}", n, WIDE)) for n in range(500)]))


def without_block(db: Any, place: Path) -> None:
    db.auto.rows[1] = Row("changed", 8, WIDE)


def delete(db: Any, place: Path) -> None:
    with db.write() as t:
        t.rows.where(lambda r: r.n < 5).delete()


def query(db: Any, place: Path) -> None:
    with db.read() as t:
        list(t.rows.where(lambda r: r.n > 50 and r.name.startswith("name")).order_by(lambda r: r.name))
        t.rows.group_by(lambda r: r.n, lambda group: group.count())
        t.rows.where(lambda r: r.n == 3).count()


def submit(db: Any, place: Path) -> None:
    futures = [db.submit(lambda t, n=n: t.rows.put_many([(n, Row("submitted", n, WIDE))])) for n in range(20)]
    for future in futures:
        future.result(10)


def tasks(db: Any, place: Path) -> None:
    async def all_of_them() -> None:
        await asyncio.gather(*[db.arun(lambda t, n=n: t.rows.put_many([(n, Row("task", n, WIDE))])) for n in range(20)])

    LOOPS[0].run_until_complete(all_of_them())


def read_tasks(db: Any, place: Path) -> None:
    async def read() -> None:
        await db.aread(lambda t: t.rows[1])
        async for _ in db.arows(lambda t: t.rows):
            pass

    LOOPS[0].run_until_complete(read())


def flushed(db: Any, place: Path) -> None:
    with zlmdb.open(place / "source", Store, durability="none", flush_every=5) as other, other.write() as t:
        t.rows[1] = Row("other", 1)


def threads(db: Any, place: Path) -> None:
    """The program's own threads begin before there is no room for one."""
    failed: list[BaseException] = []
    for n, go in enumerate(BEGUN):
        go(lambda n=n: _in_block(db, n, failed))
    for go in BEGUN:
        go(None)
    if failed:
        raise failed[0]


def _in_block(db: Any, number: int, failed: list[BaseException]) -> None:
    try:
        with db.write() as t:
            t.rows[number] = Row("thread", number, WIDE)
    except BaseException as error:
        failed.append(error)


LOOPS: list[asyncio.AbstractEventLoop] = []
"""That of the program, which was made before there was no room for it."""

BEGUN: list[Callable[..., None]] = []
"""Gives work to a thread, or with None waits for its end."""


def begin_threads(count: int = 8) -> None:
    for _ in range(count):
        given: list[Any] = []
        there, done = threading.Semaphore(0), threading.Semaphore(0)

        def work(given: list[Any] = given, there: Any = there, done: Any = done) -> None:
            while True:
                there.acquire()
                given.pop()()
                done.release()

        def go(one: Any, given: list[Any] = given, there: Any = there, done: Any = done) -> None:
            if one is None:
                done.acquire()
            else:
                given.append(one)
                there.release()

        threading.Thread(target=work, daemon=True).start()
        BEGUN.append(go)


def sweep(db: Any, place: Path) -> None:
    db.sweep()


def changes(db: Any, place: Path) -> None:
    following = db.changes(Rows, consumer="mine")
    for _ in following:
        pass
    following.acknowledge()
    db.changes(Rows).trim(through=5)


def queue(db: Any, place: Path) -> None:
    worker = zlmdb.Worker(db, lambda t: t.jobs)
    worker.put("work")
    with worker.job(timeout=5):
        pass


def index(db: Any, place: Path) -> None:
    with zlmdb.open(place / "source", WithNames, build_indexes=False) as other:
        other.build_indexes()


def migrate(db: Any, place: Path) -> None:
    with zlmdb.open(place / "source", Migrated) as other:
        other.migrate()


def backup(db: Any, place: Path) -> None:
    db.backup(place / "copy.mdb", overwrite=True)


def compact(db: Any, place: Path) -> None:
    db.compact()


def dump(db: Any, place: Path) -> None:
    with open(place / "dumped", "wb") as file:
        db.dump(file)


def load(db: Any, place: Path) -> None:
    shutil.rmtree(place / "loaded", ignore_errors=True)
    with open(place / "stream", "rb") as file, zlmdb.open(place / "loaded", zlmdb.Schema) as other:
        other.load(file)


def restore(db: Any, place: Path) -> None:
    zlmdb.Database.restore(place / "source", place / "restored", overwrite=True)


def salvage(db: Any, place: Path) -> None:
    shutil.rmtree(place / "salvaged", ignore_errors=True)
    zlmdb.Database.salvage(place / "source", place / "salvaged")


def look(db: Any, place: Path) -> None:
    if not db.check().ok:
        raise ValueError("check() finds a problem")
    db.stats(), db.tables(), db.readers()
    db.flush()


def open_again(db: Any, place: Path) -> None:
    with zlmdb.open(place / "source", Store) as other, other.write() as t:
        t.rows[1] = Row("other", 1)


def cache(db: Any, place: Path) -> None:
    with zlmdb.Cache(place / "cache") as cache:
        cache["a"] = WIDE
        if cache.get("a") != WIDE:
            raise ValueError("the cache has lost a value")


WORKS = (
    block, run, without_block, delete, query, submit, tasks, read_tasks, flushed, threads, sweep, changes, queue, index,
    migrate, backup, compact, dump, load, restore, salvage, look, open_again, cache,
)  # fmt: skip


# -- the limits --------------------------------------------------------------------------------------------------------


@contextmanager
def descriptors(left: int, path: Path) -> Iterator[None]:
    """So many more files may be opened."""
    free = []
    for _ in range(left):
        free.append(os.open("/dev/null", os.O_RDONLY))
    taken = []
    with _limited(resource.RLIMIT_NOFILE, 256):
        with suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        for one in free:
            os.close(one)
        try:
            yield
        finally:
            for one in taken:
                os.close(one)


@contextmanager
def memory(left: int, path: Path) -> Iterator[None]:
    """So many more pages of address space, of 64 KiB each."""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    with _limited(resource.RLIMIT_AS, used + (left << 16)):
        yield


@contextmanager
def sizes(left: int, path: Path) -> Iterator[None]:
    """Files may be larger than the data file now, by so many pages."""
    with _limited(resource.RLIMIT_FSIZE, (path / "data.mdb").stat().st_size + 4096 * left):
        yield


@contextmanager
def room(left: int, path: Path) -> Iterator[None]:
    """So many more pages on the disk, which is a small one: see `small_disk`."""
    rest = path.parent / "rest"
    with open(rest, "wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    os.truncate(rest, max(0, rest.stat().st_size - 4096 * left))
    try:
        yield
    finally:
        rest.unlink()


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """A disk of 8 MB at *place*, which only root can mount. Raises `CannotMountError`."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMountError(done.stderr)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def tasks_limit(left: int, path: Path) -> Iterator[None]:
    """So many more threads of this user, which must not be root."""
    with _limited(resource.RLIMIT_NPROC, 0 if left == 0 else threads_of_user() + left):
        yield


def threads_of_user() -> int:
    return sum(
        sum(1 for _ in (one / "task").iterdir())
        for one in Path("/proc").iterdir()
        if one.name.isdigit() and one.stat().st_uid == os.geteuid()
    )


def none(left: int, path: Path) -> Any:
    """No limit: to see that the operations work."""
    return nullcontext()


@contextmanager
def _limited(kind: int, value: int) -> Iterator[None]:
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (value, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


LIMITS: dict[str, tuple[Callable[[int, Path], Any], int, set[int]]] = {
    "none": (none, 1, set()),
    "descriptors": (descriptors, 40, {errno.EMFILE}),
    "memory": (memory, 200, {errno.ENOMEM}),
    "sizes": (sizes, 400, {errno.EFBIG}),
    "room": (room, 400, {errno.ENOSPC}),
    "threads": (tasks_limit, 4, set()),
}
"""The limit, the most room that is tried, and the errors of the system that name it."""


# -- trying them -------------------------------------------------------------------------------------------------------


def fill(path: Path) -> None:
    with zlmdb.open(path, Store) as db, db.write() as t:
        t.rows.put_many([(n, Row(f"name {n}", n % 100)) for n in range(ROWS)])
        for number in range(1200):
            t.visits[number] = Visit(1e12 if number < 10 else 1.0)


def content(db: Any) -> Any:
    with db.read() as t:
        jobs = len(t.jobs)
        return dict(t.rows), dict(t.visits), jobs, db.changes(Rows).first()


@dataclass
class Tried:
    """What became of an operation with so much room: its error, and what is wrong."""

    error: str = ""
    wrong: str = ""


def tried(work: Callable[..., None], limit: str, left: int, source: Path, place: Path) -> Tried:
    """Run *work* under the limit, then without it, in this process."""
    path, found = place / "data", Tried()
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(exist_ok=True)
    shutil.copytree(source, path)
    shutil.copytree(source, place / "source")
    if work is load:
        with zlmdb.open(place / "source", Store) as db, open(place / "stream", "wb") as stream:
            db.dump(stream)
    constrain, _, codes = LIMITS[limit]
    LOOPS.append(asyncio.new_event_loop())
    if work is threads:
        begin_threads()
    if limit == "threads":
        shutil.copytree(source, place / "warm")
        with zlmdb.open(place / "warm", Store) as db:  # as nobody may see the files of what is imported late
            work(db, place)
        for one in (place, *place.rglob("*")):
            os.chown(one, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    with zlmdb.open(path, Store, timeout=20) as db:
        before = content(db)
        try:
            with constrain(left, path):
                work(db, place)
        except (zlmdb.Error, MemoryError) as error:
            found.error = f"{type(error).__name__}: {error}"
        except OSError as error:
            found.error = f"{type(error).__name__}: {error}"
            if error.errno not in codes:
                found.wrong = traceback.format_exc()
        except Exception as error:
            found.error = f"{type(error).__name__}: {error}"
            # What Python itself says, where it has no better error.
            if not ("thread" in found.error or (limit == "memory" and isinstance(error, SyntaxError))):
                found.wrong = traceback.format_exc()
        for loop in LOOPS:
            loop.close()
        LOOPS[:] = [asyncio.new_event_loop()]
        try:
            during = content(db)
            work(db, place)  # the limit is gone
            report = db.check()
            if not report.ok:
                found.wrong += f"{report.problems}"
            after = content(db)
            steps = work in (submit, tasks, threads, queue, changes)
            if during not in (before, after) and not steps:
                found.wrong += "it is neither as before nor as after\n"
            with db.write() as t:
                t.rows[1] = Row("last", 5)
        except Exception:
            found.wrong += "without the limit: " + traceback.format_exc()
    for one in ("data", "source", "loaded", "restored", "salvaged"):
        if (place / one).exists():
            with zlmdb.open(place / one) as db:
                if not db.check().ok:
                    found.wrong += f"{one} is damaged"
    return found


def limits(
    directory: Path, limit: str = "", only: str = "", every: int = 1, show: bool = False, most: int = 1000
) -> dict[str, Any]:
    """Run each operation, or the *only* one, under each *limit* with more and more room, EVERY so much, up to MOST."""
    source = directory / "source"
    directory.chmod(0o755)
    fill(source)
    failures: list[str] = []
    seen: dict[str, Any] = {}
    for name, (_, greatest, _) in LIMITS.items():
        if limit not in ("", name):
            continue
        for work in WORKS:
            if only not in ("", work.__name__):
                continue
            refused = Counter[str]()
            for left in range(0, min(most, greatest), every):
                found = _in_child(work, name, left, source, directory / "place")
                what = f"{name}, {work.__name__}, {left}"
                if isinstance(found, Crash):
                    failures.append(f"{what}: signal {found.signal}")
                    continue
                if found.wrong:
                    failures.append(f"{what}: {found.error}\n{found.wrong}")
                    print(failures[-1][-2500:], file=sys.stderr)
                if found.error:
                    refused[found.error if show else found.error.split(":")[0]] += 1
                elif left and (name != "memory" or left > 150):
                    break
            seen[f"{name}, {work.__name__}"] = dict(refused)
    return {"errors": seen, "failures": failures}


def _in_child(work: Callable[..., None], name: str, left: int, source: Path, place: Path) -> Any:
    shutil.rmtree(place, ignore_errors=True)
    with small_disk(place) if name == "room" else nullcontext():
        ((_, found),) = in_children(lambda left: tried(work, name, left, source, place), [left])
    return found


if __name__ == "__main__":
    main(limits, limit="", only="", every=1, show=False)
