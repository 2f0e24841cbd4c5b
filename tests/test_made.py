"""Tables made at run time: typed by the arguments of `Database.table`, opened again, compared with the file."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

import zlmdb

from .interrupts import traces_instructions


@dataclass
class User:
    name: str
    age: int = 0


class Users(zlmdb.Table[int, User]):
    by_name = zlmdb.UniqueIndex[str]("name")


class Store(zlmdb.Schema):
    logins: zlmdb.Table[str, int]


@pytest.fixture(params=["memory", "tables", "classic"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    layout: Any = "tables" if request.param == "memory" else request.param
    path: Optional[Path] = None if request.param == "memory" else tmp_path / "db"
    with zlmdb.open(path, Store, layout=layout) as opened:
        yield opened


def test_a_table_is_made_and_used_in_every_transaction_after_it(db: Any) -> None:
    with db.write() as t:
        t.logins["ann"] = 1
    counts = db.table("counts", tuple[str, int], int)
    users = db.table("users", Users)
    with db.write() as t:
        t[counts]["a", 1] = 5
        t["counts"]["a", 2] = 6
        t[users][1] = User("Ann")
        with pytest.raises(zlmdb.EncodeError):
            t[counts]["a", 1] = "five"
    for _ in range(3):  # of which some use the objects of the one before
        with db.read() as t:
            assert list(t[counts].select(("a",)).values()) == [5, 6]
            assert t[users].by_name["Ann"] == User("Ann")
            assert t.logins["ann"] == 1
            assert sorted(t) == ["counts", "logins", "users"]
    with pytest.raises(zlmdb.DuplicateKey), db.write() as t:
        t[users][2] = User("Ann")
    assert db.check().ok


def test_a_table_is_made_in_memory_without_a_schema_and_in_a_file_with_one(tmp_path: Path) -> None:
    with zlmdb.open(None) as db:
        counts = db.table("counts", str, int)
        with db.write() as t:
            t[counts]["a"] = 1
        with db.read() as t:
            assert t[counts] == t["counts"] == {"a": 1}
    zlmdb.open(tmp_path, Store).close()
    with zlmdb.open(tmp_path) as db:
        counts = db.table("counts", str, int)
        with pytest.raises(zlmdb.SchemaMismatch, match=r"not in .* without a schema, .*Store\) makes"), db.write() as t:
            t[counts]["a"] = 1


def test_the_same_call_gives_the_same_table(db: Any) -> None:
    counts = db.table("counts", str, int)
    assert db.table("counts", str, int) is counts
    with pytest.raises(zlmdb.SchemaMismatch, match="before"):
        db.table("counts", str, str)
    with db.read() as t:
        assert db.table("counts", str, int) is counts
        assert len(t[counts]) == 0


def test_what_cannot_be_made_says_why(db: Any) -> None:
    with pytest.raises(TypeError, match=r"needs a table class, or types.*is t\['users'\]"):
        db.table("users")
    with pytest.raises(ValueError, match=r"declared by Store: use t\.logins"):
        db.table("logins", str, int)
    with pytest.raises(TypeError, match="a class of zlmdb.Table"):
        db.table("other", int)
    with pytest.raises(TypeError, match="table 'other'"):
        db.table("other", object, int)
    with db.write(), pytest.raises(zlmdb.Error):
        db.table("other", str, int)
    assert sorted(db.tables()) == ["logins"]
    with db.read() as t:
        late = db.table("late", str, int)
        # In a classic file it is empty, since all tables are in one space.
        with pytest.raises((zlmdb.TransactionStale, KeyError), match="the table 'late' was attached or made|'a'"):
            t[late]["a"]


def test_a_made_table_is_compared_with_the_file_when_it_is_opened_again(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store) as db:
        users = db.table("users", Users)
        with db.write() as t:
            t[users][1] = User("Ann")
        db.close()
        with db, db.read() as t:  # the same object, opened again, has it
            assert t[users][1] == User("Ann")

    @dataclass
    class Other:
        name: str

    with zlmdb.open(tmp_path, Store) as db:
        with pytest.raises(zlmdb.SchemaMismatch, match="keys of type int"):
            db.table("users", str, User)
        with pytest.raises(zlmdb.SchemaMismatch, match="lacks age"):
            db.table("users", int, Other)
        with db.read() as t:
            assert t[db.table("users", Users)].by_name["Ann"].age == 0
    with zlmdb.open(tmp_path, Store, readonly=True) as db:
        nothing = db.table("nothing", str, int)
        with db.read() as t:
            assert dict(t[nothing]) == {}


def test_a_table_of_another_database_says_so() -> None:
    with zlmdb.open(None, Store) as one, zlmdb.open(None, Store) as other:
        counts = one.table("counts", str, int)
        with other.read() as t, pytest.raises(KeyError, match="made for another database"):
            t[counts]


def test_threads_may_make_one_table(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store, durability="none") as db:

        def work(n: int) -> None:
            made = db.table(f"table {n % 3}", str, int)
            with db.write() as t:
                t[made][str(n)] = n

        threads = [threading.Thread(target=work, args=(n,)) for n in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {name: info.count for name, info in db.tables().items()} == {
            "logins": 0, "table 0": 3, "table 1": 3, "table 2": 3
        }  # fmt: skip


@dataclass
class Visit:
    until: float
    of: Optional[int] = None


class Visits(zlmdb.Table[int, Visit], expires="until"):
    after = zlmdb.ForeignKey["Visits"]("of", on_delete="set_none")


class Visited(zlmdb.Schema):
    logins: zlmdb.Table[str, int]
    visits: Visits


def asks_for_changes(db: Any) -> None:
    with pytest.raises(KeyError):
        db.changes("nowhere", after=0)


def writes_what_was_put_off(db: Any) -> None:
    db._open_store.put_off(lambda timeout: None)
    with db.write() as t:
        t.logins["ann"] = 1


@traces_instructions
@pytest.mark.parametrize(
    "work",
    [
        lambda db: db.sweep(),
        lambda db: db.check(),
        lambda db: db.mend_links(),
        lambda db: list(db.auto),
        asks_for_changes,
        writes_what_was_put_off,
    ],
)
def test_a_table_may_be_made_while_another_thread_looks_through_all(work: Callable[[Any], Any]) -> None:
    """It raised RuntimeError: dictionary changed size during iteration."""
    package = os.path.dirname(zlmdb.__file__)
    with zlmdb.open(None, Visited) as db:
        made = db.table("made", str, int)
        work(db)
        storages, count = db._storages, itertools.count()

        def trace(frame: Any, event: str, arg: Any) -> Any:
            if not frame.f_code.co_filename.startswith(package):
                return None
            del arg
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_code.co_name not in ("__getitem__", "__len__"):
                storages[f"made {next(count)}"] = storages[made.name]
            return trace

        sys.settrace(trace)
        try:
            work(db)
        finally:
            sys.settrace(None)
        assert next(count) > 10
        for name in [one for one in storages if one.startswith("made ")]:
            del storages[name]


class Interrupted(dict[str, Any]):
    """An interrupt comes after the first item."""

    def setdefault(self, name: str, item: Any = None) -> Any:
        super().setdefault(name, item)
        raise KeyboardInterrupt


def test_a_table_whose_making_was_interrupted_is_made_by_the_next_call(db: Any) -> None:
    """It was given as known, and was in no transaction until the database was opened again."""
    db._made = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        db.table("counts", str, int)
    db._made = dict(db._made)
    counts = db.table("counts", str, int)
    with db.write() as t:
        t[counts]["a"] = 1


def test_opening_many_tables_decodes_the_catalogue_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zlmdb.store import tablescatalogue

    with zlmdb.open(tmp_path, Store, durability="none") as db:
        for n in range(30):
            db.table(f"t{n}", str, int)
    decoded: list[Any] = []
    real = tablescatalogue.slot_of
    monkeypatch.setattr(tablescatalogue, "slot_of", lambda *given: decoded.append(given) or real(*given))
    with zlmdb.open(tmp_path, Store) as db:
        for n in range(30):
            db.table(f"t{n}", str, int)
    assert len(decoded) <= 62
