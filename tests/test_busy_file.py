"""A file that another process writes to for long: what needs nothing written does not wait for that."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

import zlmdb

from .waiters import in_another_thread

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different


class Numbers(zlmdb.Table[str, int]): ...


class Store(zlmdb.Schema):
    numbers: Numbers


class More(Store):
    others: zlmdb.Table[str, int]


@zlmdb.table("1b0fd5bc-4a1c-4d6b-8b0e-7a6f4f0d8c11")
class Names(zlmdb.MapOidString):
    """Names of things."""


WRITER = """if 1:
    import sys, zlmdb
    with zlmdb.open(sys.argv[1]) as db, db.write() as t:
        t["numbers"]["b"] = 2
        print("ready", flush=True)
        sys.stdin.readline()
"""
Busy = Callable[[], None]


@pytest.fixture(params=["tables", pytest.param("classic", marks=pytest.mark.once)])
def layout(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def path(tmp_path: Path, layout: Any) -> Path:
    with zlmdb.open(tmp_path / "db", Store, layout=layout) as db, db.write() as t:
        t.numbers["a"] = 1
    with zlmdb.Database(tmp_path / "db") as db:
        names = db.attach_table(Names)
        with db.begin(write=True) as txn:
            names[txn, 1] = "one"
    return tmp_path / "db"


@pytest.fixture
def busy(path: Path) -> Iterator[Busy]:
    """While another process is in a write transaction; what is called lets it end."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"

        def end() -> None:
            assert other.returncode is None
            other.communicate("go\n", timeout=60)
            assert other.returncode == 0

        yield end
        other.kill()


def numbers(db: Any) -> dict[str, int]:
    with db.read() as t:
        return dict(t.numbers)


def test_opening_what_is_there_does_not_wait(path: Path, layout: Any, busy: Busy) -> None:
    with zlmdb.open(path, Store, layout=layout) as db:
        assert numbers(db) == {"a": 1}
        with pytest.raises(zlmdb.WriterTimeout), db.write(timeout=0):
            pass
        assert numbers(db) == {"a": 1}
        db.sync(force=True)
        assert db.check().ok
        assert db.backup(path.parent / "copy").bytes > 0
        with zlmdb.open(path, Store, layout=layout) as again:
            assert again.tables().keys() == db.tables().keys()
        busy()
        assert numbers(db) == {"a": 1, "b": 2}
        with db.write(timeout=0) as t:
            t.numbers["c"] = 3
        assert numbers(db) == {"a": 1, "b": 2, "c": 3}
    with zlmdb.open(path) as plain:
        assert len(plain.tables()) == 2


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.twice
@pytest.mark.parametrize("asked", ["stats", "tables", "check"])
def test_what_is_asked_as_the_first_thing_after_the_writer_has_ended(
    path: Path, layout: Any, busy: Busy, asked: str
) -> None:
    """It opens the file anew, whose handles are others then."""
    with zlmdb.open(path, Store, layout=layout) as db:
        assert db._open_store.provisional
        busy()
        db._open_store._try_at = 0.0
        assert getattr(db, asked)() is not None
        if asked == "stats":
            assert not db._open_store.provisional
        assert numbers(db) == {"a": 1, "b": 2}


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_opening_without_a_schema_does_not_wait(path: Path, busy: Busy) -> None:
    with zlmdb.open(path) as db, db.read() as t:
        assert dict(t["numbers"]) == {"a": 1}
    with zlmdb.Database(path) as db:
        names = db.attach_table(Names)
        with db.begin() as txn:
            assert names[txn, 1] == "one"
        busy()
        with db.begin(write=True) as txn:
            names[txn, 2] = "two"
    with zlmdb.Database(path) as db:
        names = db.attach_table(Names)
        with db.begin() as txn:
            assert names[txn, 2] == "two"


@pytest.mark.twice
def test_drops_wait_as_long_as_the_database_waits(tmp_path: Path) -> None:
    class Fed(zlmdb.Table[str, int], feed=True):
        by_number = zlmdb.Index[int](lambda number: number, version=1)

    class Feeding(zlmdb.Schema):
        fed: Fed

    with zlmdb.open(tmp_path / "fed", Feeding, timeout=0.05) as db:
        with in_another_thread(db.write):
            with pytest.raises(zlmdb.WriterTimeout):
                db.drop_index("fed", "by_number")
            with pytest.raises(zlmdb.WriterTimeout):
                db.drop_feed("fed")
        db.drop_index("fed", "by_number")
        assert db.drop_feed("fed") == 0


def test_opening_with_a_new_table_waits(path: Path, layout: Any, busy: Busy) -> None:
    with pytest.raises(zlmdb.WriterTimeout, match="process"):
        zlmdb.open(path, More, layout=layout, timeout=0.05)
    opened: list[Any] = []
    thread = threading.Thread(target=lambda: opened.append(zlmdb.open(path, More, layout=layout, timeout=60)))
    thread.start()
    thread.join(0.3)
    assert not opened
    busy()
    thread.join(60)
    with opened[0] as db:
        with db.write(timeout=0) as t:
            t.others["a"] = 1
        assert numbers(db) == {"a": 1, "b": 2}


def test_the_first_write_waits_for_reads_of_other_threads(path: Path, layout: Any, busy: Busy) -> None:
    with zlmdb.open(path, Store, layout=layout) as db:
        reading, end = threading.Event(), threading.Event()
        seen: list[Any] = []

        def read() -> None:
            with db.read() as t:
                reading.set()
                end.wait(60)
                seen.append(dict(t.numbers))

        reader = threading.Thread(target=read)
        reader.start()
        reading.wait(60)
        busy()

        def write() -> None:
            with db.write() as t:
                t.numbers["c"] = 3
            seen.append("written")

        writer = threading.Thread(target=write)
        writer.start()
        writer.join(0.1)
        assert not seen
        end.set()
        reader.join(60)
        writer.join(60)
        assert seen == [{"a": 1}, "written"]
        assert numbers(db) == {"a": 1, "b": 2, "c": 3}


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_first_write_inside_a_read_says_what_to_do(path: Path, layout: Any, busy: Busy) -> None:
    with zlmdb.open(path, Store, layout=layout) as db:
        with db.read() as old:
            busy()
            with pytest.raises(zlmdb.DatabaseInUse, match="end the read transactions"), db.write():
                pass
            assert dict(old.numbers) == {"a": 1}
        with db.read() as old, db.write() as t:  # by now it is open for good
            t.numbers["c"] = 3
            assert dict(old.numbers) == {"a": 1, "b": 2}
