"""What opening a file and using a table for the first time take: calls of Python, and sources compiled.

Counts are the same on every machine. The bounds leave a little room; a change that needs more has to say why.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import zlmdb

PROGRAM = """
import json, sys
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID
import zlmdb, zlmdb.tables.compiled.indexed  # which the second write imports

@dataclass
class User:
    name: str
    email: str
    age: int

class Users(zlmdb.Table[UUID, User]):
    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")

class Store(zlmdb.Schema):
    users: Users
    logins: zlmdb.Table[str, int]

ours, compiled = str(Path(zlmdb.__file__).parent), 0
ann = UUID(int=1)

def audit(event, arguments):
    global compiled
    compiled += event == "compile"

sys.addaudithook(audit)

def counted(work):
    "The calls of functions in files of ours, and the sources compiled, while *work* runs."
    global compiled
    calls = compiled = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith((ours, "<zlmdb"))

    sys.setprofile(count)
    result = work()
    sys.setprofile(None)
    return result, (calls, compiled)

def write():
    with db.write() as t:
        t.users[ann] = User("Ann", "ann@example.com", 31)

def read():
    with db.read() as t:
        return t.users[ann]

def query():
    with db.read() as t:
        return t.users.by_email["ann@example.com"]

found = {}
with zlmdb.open(sys.argv[1], Store):  # libraries are imported
    pass
db, found["open"] = counted(lambda: zlmdb.open(sys.argv[1], Store))
for name, work in (("write", write), ("read", read), ("query", query), ("again", write)):
    _, found[name] = counted(work)
db.close()
print(json.dumps(found))
"""

needs_counts = pytest.mark.skipif(
    platform.python_implementation() != "CPython", reason="PyPy reports calls that it has inlined, and calls of its own"
)


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The calls and the sources compiled, by what was done."""
    path = tmp_path_factory.mktemp("counts") / "db"
    for _ in range(2):  # the second finds what the first has made
        done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True)
    found: dict[str, list[int]] = json.loads(done.stdout)
    return found


@needs_counts
def test_opening_a_known_file_takes_few_calls_and_compiles_nothing(counts: dict[str, list[int]]) -> None:
    """Declarations are kept with the schema class; the catalogue is read once. It once took 545 calls."""
    calls, sources = counts["open"]
    assert calls <= 545 // 2
    assert sources == 0


@needs_counts
@pytest.mark.parametrize(("work", "calls", "sources"), [("write", 102, 0), ("read", 45, 1), ("query", 27, 1)])
def test_the_first_use_of_a_table_compiles_what_reads_it_and_writes_by_the_general_form(
    counts: dict[str, list[int]], work: str, calls: int, sources: int
) -> None:
    """Before generated methods waited for their use, it took 342 calls and 6 sources; a write 259 and 5 of these.

    Three of these calls prepare what makes the blocks after the first one shorter.
    """
    if sys.version_info < (3, 11) and work == "query":
        calls += 23  # what counts keeps the table of the read before, which is parted with, and bound anew
    if sys.version_info < (3, 12) and work == "write":
        calls += 1  # the class of a cached property, which later is the one of the library
    assert counts[work][0] <= calls
    assert counts[work][1] <= sources


@needs_counts
def test_the_second_write_of_a_table_compiles_the_function_that_writes_it(counts: dict[str, list[int]]) -> None:
    assert counts["again"][1] == 1


class Numbers(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]


def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The records of catalogues that are decoded from now on."""
    from zlmdb.store import layout

    seen: list[Any] = []
    decode = layout.decode
    monkeypatch.setattr(layout, "decode", lambda data: seen.append(data) or decode(data))
    return seen


def test_many_tables_are_opened_one_by_one_with_one_reading_of_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = [zlmdb.table(UUID(int=n))(type(f"Map{n}", (zlmdb.MapStringString,), {})) for n in range(1, 21)]
    with zlmdb.Database(str(tmp_path)) as db:
        for cls in classes:
            db.attach_table(cls)
    with zlmdb.Database(str(tmp_path)) as db:
        seen = decoded(monkeypatch)
        for cls in classes:
            db.attach_table(cls)
        assert len(seen) <= len(classes) + 2


def test_the_catalogue_is_read_again_after_another_process_has_written_it(tmp_path: Path) -> None:
    program = f"""
import zlmdb
class More(zlmdb.Schema):
    texts: zlmdb.Table[str, str]
with zlmdb.open({str(tmp_path)!r}, More) as db, db.write() as t:
    t.texts["a"] = "b"
"""
    with zlmdb.open(tmp_path, Numbers) as db:
        assert list(db.tables()) == ["numbers"]
        subprocess.run([sys.executable, "-c", program], check=True)
        assert list(db.tables()) == ["numbers", "texts"]
        with db.read() as t:
            assert dict(t["texts"]) == {"a": "b"}


def test_the_catalogue_is_read_again_after_the_file_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zlmdb.open(tmp_path, Numbers) as db:
        before = db.tables()
        db.compact()
        seen = decoded(monkeypatch)
        assert db.tables().keys() == before.keys()
        assert len(seen) == 1


def test_a_schema_that_was_refused_is_looked_at_anew() -> None:
    class Later(zlmdb.Schema):
        rows: zlmdb.Table[int, Row]  # noqa: F821

    with pytest.raises(TypeError, match="Row"):
        zlmdb.open(None, Later)
    Later._locals_seen = {"Row": str}
    with zlmdb.open(None, Later) as db, db.write() as t:
        t.rows[1] = "a"


def test_a_derived_schema_has_its_own_tables() -> None:
    class More(Numbers):
        texts: zlmdb.Table[str, str]

    with zlmdb.open(None, Numbers) as db, db.write() as t:
        t.numbers[1] = 1
        assert list(t) == ["numbers"]
    with zlmdb.open(None, More) as db, db.write() as t:
        t.texts["a"] = "b"
        assert list(t) == ["numbers", "texts"]
