"""Two processes write to one file, and one of them lacks what the other declares: it is refused, and breaks nothing.

One table for each declaration, so that nothing else refuses. The other process has opened the file before.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import new_class
from typing import Any, Callable, Optional

import pytest

import zlmdb
from zlmdb import desc
from zlmdb.schema import attach as attaching
from zlmdb.schema import indexbuilding

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

ROOT = str(Path(__file__).parents[1])


@dataclass
class Row:
    name: str
    n: int = 0
    tags: list[str] = field(default_factory=list)
    to: Optional[int] = None


class Unique(zlmdb.Table[int, Row]):
    by = zlmdb.UniqueIndex[str]("name")


class Each(zlmdb.Table[int, Row]):
    by = zlmdb.Index[str]("tags", each=True)


class Carries(zlmdb.Table[int, Row]):
    by = zlmdb.Index[str]("name", carries=("n",))


class Partial(zlmdb.Table[int, Row]):
    by = zlmdb.Index[str]("name", where=lambda r: r.n > 100)


class Falling(zlmdb.Table[int, Row]):
    by = zlmdb.Index(desc("n"))


class Folded(zlmdb.Table[int, Row]):
    by = zlmdb.Index[str]("name.casefold()")


class Expiring(zlmdb.Table[int, Row], expires="to"):
    pass


class Fed(zlmdb.Table[int, Row], feed=True):
    pass


class Target(zlmdb.Table[int, Row]):
    pass


class Linked(zlmdb.Table[int, Row]):
    by = zlmdb.ForeignKey["Target"]("to", on_delete="cascade")


class Building(zlmdb.Table[int, Row]):
    by = zlmdb.Index[int]("n")


class Full(zlmdb.Schema):
    unique: Unique
    each: Each
    carries: Carries
    partial: Partial
    falling: Falling
    folded: Folded
    expiring: Expiring
    fed: Fed
    target: Target
    linked: Linked
    building: Building


class Bare(zlmdb.Schema):
    unique: zlmdb.Table[int, Row]
    each: zlmdb.Table[int, Row]
    carries: zlmdb.Table[int, Row]
    partial: zlmdb.Table[int, Row]
    falling: zlmdb.Table[int, Row]
    folded: zlmdb.Table[int, Row]
    expiring: zlmdb.Table[int, Row]
    fed: zlmdb.Table[int, Row]
    target: zlmdb.Table[int, Row]
    linked: zlmdb.Table[int, Row]
    building: zlmdb.Table[int, Row]


NAMES = list(Bare.__annotations__)


def row(n: int) -> Row:
    return Row(f"Name {n}", n, [f"t{n % 3}"], None)


def edit(table: Any) -> None:
    with table.edit(1) as found:
        found.n = 7


STORES: dict[str, Callable[[Any], Any]] = {
    "put": lambda table: table.__setitem__(1, row(1)),
    "new": lambda table: table.put_new(50, row(50)),
    "replace": lambda table: table.replace(1, row(2)),
    "bulk": lambda table: table.put_many([(60, row(60)), (61, row(61))]),
    "append": lambda table: table.put_many([(1000 + len(table), row(70))], append=True),
    "change": lambda table: table.change(1, lambda old: Row(old.name, 8)),
    "edit": edit,
    "edited selection": lambda table: table.where(lambda r: r.n == 2).change(lambda r: Row(r.name, 9)),
}
DELETES: dict[str, Callable[[Any], Any]] = {
    "delete": lambda table: table.__delitem__(2),
    "pop": lambda table: table.pop(3),
    "selection": lambda table: table.where(lambda r: r.n == 4).delete(),
    "range": lambda table: table.select(5, 7).delete(),
    "clear": lambda table: table.clear(),
}


def other() -> None:
    """What the other process does: it opens the file, waits for a line, and tries all there is."""
    with zlmdb.open(sys.argv[1], Bare, durability="none") as db:
        with db.write() as t:
            for name in NAMES:
                t[name][0] = Row("first")
        print("ready", flush=True)
        sys.stdin.readline()
        for again in (db, None):  # then as a program that opens the file when all is declared
            with again or zlmdb.open(sys.argv[1], Bare, durability="none") as tried:
                for text in attempts(tried):
                    print(text, flush=True)
    print("done", flush=True)


def attempts(db: Any) -> Iterator[str]:
    """The names of what was not refused, after a word of the error that was expected."""
    for name in NAMES:
        for how, write in {**STORES, **DELETES}.items():
            try:
                with db.write() as t:
                    write(t[name])
            except zlmdb.IndexNotAttached:
                continue
            except zlmdb.SchemaMismatch:
                if name == "fed":
                    continue
                raise
            yield f"{name} {how}"
        with db.read() as t:
            if t[name].get(1) is None:
                yield f"{name} cannot be read"


PROGRAM = "import sys; sys.path.insert(0, sys.argv[2]); from tests.test_two_programs import other; other()"


@pytest.mark.once
def test_who_lacks_a_declaration_changes_nothing_that_it_would_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexbuilding, "BATCH", 15)
    path = str(tmp_path / "db")
    with zlmdb.open(path, Bare, durability="none") as db, db.write() as t:
        for name in NAMES:
            t[name].put_many([(n, row(n)) for n in range(1, 31 if name == "building" else 11)])
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, path, ROOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with zlmdb.open(path, Full, durability="none", build_indexes=False) as db:
            process.stdin.write("go\n")
            process.stdin.flush()
            for turn in range(12):
                with db.write() as t:
                    for name in NAMES:
                        t[name][turn % 10 + 1] = Row(f"Turn {turn}", turn, [f"t{turn}"])
                    t.linked[turn + 1] = Row("x", to=turn % 10 + 1)
            said = process.stdout.read().split("\n")
            assert process.wait(60) == 0
            db.build_indexes()
            assert db.check().ok, db.check().problems
            assert len(list(db.changes(Fed, after=1))) == 12
            with db.write() as t:
                t.target.clear()
                assert len(t.linked.where(lambda r: r.to is not None).keys().all()) == 0
    allowed = [f"target {how}" for how in STORES]
    assert said == [*allowed, *allowed, "done", ""]


class Named(zlmdb.Schema):
    rows: Unique


def first() -> None:
    """What another process does in turn: it opens the file first, and then changes it once."""
    with zlmdb.open(sys.argv[1], Named, layout="classic" if "classic" in sys.argv else "tables") as db:
        print("open", flush=True)
        if sys.stdin.readline() == "drop\n":
            db.drop_index("rows", "by")
        else:
            db.table("other", str, str)
        print("done", flush=True)
        sys.stdin.readline()


@pytest.mark.twice
@pytest.mark.parametrize("layout", ["tables", pytest.param("classic", marks=pytest.mark.once)])
@pytest.mark.parametrize("change", ["drop", "make"])
def test_who_finds_a_file_made_meanwhile_does_not_take_the_next_change_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: Any, change: str
) -> None:
    """It wanted to make the tables, and stored nothing: the number of the snapshot went to the next transaction."""
    path = str(tmp_path / "db")
    zlmdb.open(path, new_class("Empty", (zlmdb.Schema,)), layout=layout).close()
    program = PROGRAM.replace("other", "first")
    process = subprocess.Popen(
        [sys.executable, "-c", program, path, ROOT, layout], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        output = process.stdout
        with monkeypatch.context() as patch:
            change_contents = attaching.change_contents

            def after_the_other(*args: Any) -> Any:
                assert output.readline() == "open\n"
                return change_contents(*args)

            patch.setattr(attaching, "change_contents", after_the_other)
            db: Any = zlmdb.open(path, Named, layout=layout)
        with db:
            process.stdin.write(f"{change}\n")
            process.stdin.flush()
            assert output.readline() == "done\n"
            if change == "drop":
                with pytest.raises(zlmdb.IndexNotBuilt), db.read() as t:
                    t.rows.by.get("a")
            else:
                with pytest.raises(zlmdb.SchemaMismatch, match="keys of type str"):
                    db.table("other", int, int)
        process.stdin.close()
        assert process.wait(60) == 0


class Kept(zlmdb.Schema):
    kept: zlmdb.Table[int, str]


class Before(Kept):
    rows: zlmdb.Table[int, str]


class Between(Kept):
    others: zlmdb.Table[int, str]


class After(Between):
    rows: zlmdb.Table[int, str]


class Dropping(Kept):
    migrations = (zlmdb.Migration(1, "drop", lambda t, old: old.drop("rows")),)


def drop_and_make() -> None:
    """What another process does: another table gets the number of one that it drops, which it then makes again."""
    for schema in (Dropping, Between, After):
        with zlmdb.open(sys.argv[1], schema) as db:
            if schema is Dropping:
                db.migrate()
    with zlmdb.open(sys.argv[1], After) as db, db.write() as t:
        t.others[1] = "another"


@pytest.mark.twice
def test_a_table_whose_number_another_one_has_got_is_not_taken_for_that(tmp_path: Path) -> None:
    """In the classic layout keys begin with the number of the table."""
    with zlmdb.open(tmp_path / "db", Before, layout="classic") as db:
        with db.write() as t:
            t.rows[1] = "one"
        assert db.auto.rows[1] == "one"
        program = PROGRAM.replace("other", "drop_and_make")
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "db"), ROOT], check=True)
        with pytest.raises(zlmdb.SchemaMismatch, match="open the database again"), db.read() as t:
            t.rows.get(1)
        with pytest.raises(zlmdb.SchemaMismatch, match="open the database again"):
            db.auto.rows.get(1)
        with pytest.raises(zlmdb.SchemaMismatch, match="open the database again"), db.write() as t:
            t.rows[1] = "mine"
        with db.write() as t:
            t.kept[1] = "kept"
    with zlmdb.open(tmp_path / "db", After) as again, again.read() as u:
        assert (dict(u.kept), dict(u.others), dict(u.rows)) == ({1: "kept"}, {1: "another"}, {})
