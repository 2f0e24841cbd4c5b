"""Links that lead nowhere: how a salvage leaves them, and how they are found and mended."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import pytest
from click.testing import CliRunner, Result
from operated import flip

import zlmdb
from zlmdb.cli import main

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python


@dataclass
class Person:
    name: str
    boss: Optional[int] = None
    friends: list[int] = field(default_factory=list)


@dataclass
class Task:
    owner: int
    after: Optional[int] = None


class People(zlmdb.Table[int, zlmdb.Checked[Person]]):
    of_boss = zlmdb.ForeignKey["People"]("boss", on_delete="set_none")
    of_friend = zlmdb.ForeignKey["People"]("friends", each=True, on_delete="set_none")


class Tasks(zlmdb.Table[int, Task], feed=True):
    of_owner = zlmdb.ForeignKey["People"]("owner", on_delete="cascade")
    following = zlmdb.ForeignKey["Tasks"]("after")
    by_after = zlmdb.Index[int]("after")


class Office(zlmdb.Schema):
    people: People
    tasks: Tasks


class FreePeople(zlmdb.Table[int, zlmdb.Checked[Person]]):
    pass


class FreeTasks(zlmdb.Table[int, Task], feed=True):
    pass


class Free(zlmdb.Schema):
    people: FreePeople
    tasks: FreeTasks


PEOPLE = {1: Person("Ann"), 2: Person("Bob", 3, [1, 3]), 3: Person("Cid", 1), 4: Person("Eve", 3, [3, 2])}
TASKS = {1: Task(1), 2: Task(3), 3: Task(2, 1), 4: Task(1, 3), 5: Task(3, 2)}


@pytest.fixture(params=["tables", pytest.param("classic", marks=pytest.mark.once)])
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A salvaged file: Cid (3) is lost. Bob, Eve and two tasks refer to Cid; the last task to one of these."""
    feedless = request.param == "classic"
    schema: Any = Classic if feedless else Office
    with zlmdb.open(tmp_path / "db", schema, layout=request.param, durability="none") as db, db.write() as t:
        t.people.update({key: Person(one.name) for key, one in PEOPLE.items()})
        t.people.update(PEOPLE)
        t.tasks.update(TASKS)
    assert flip(tmp_path / "db", b"Cid")
    report = zlmdb.Database.salvage(tmp_path / "db", tmp_path / "salvaged")
    assert [lost.table for lost in report.lost] == ["people"]
    assert "mend-links" in " ".join(report.notes)
    return tmp_path / "salvaged"


class ClassicTasks(zlmdb.Table[int, Task], name="tasks"):
    of_owner = zlmdb.ForeignKey["People"]("owner", on_delete="cascade")
    following = zlmdb.ForeignKey["ClassicTasks"]("after")


class Classic(zlmdb.Schema):
    people: People
    tasks: ClassicTasks


def schema_of(path: Path) -> Any:
    with zlmdb.open(path, readonly=True) as db:
        return Classic if db.layout == "classic" else Office


def found(report: Any) -> list[tuple[str, str, int, int]]:
    return [(one.table, one.name, one.key, one.missing) for one in report.links]


LOST = [
    ("people", "of_boss", 2, 3),
    ("people", "of_friend", 2, 3),
    ("people", "of_boss", 4, 3),
    ("people", "of_friend", 4, 3),
    ("tasks", "of_owner", 2, 3),
    ("tasks", "of_owner", 5, 3),
]


def test_the_error_of_opening_names_the_command_and_it_lists_all(broken: Path) -> None:
    schema = schema_of(broken)
    for _ in range(2):
        with pytest.raises(zlmdb.SchemaMismatch, match="zlmdb mend-links PATH MODULE:SCHEMA"):
            zlmdb.open(broken, schema)
    with zlmdb.open(broken, schema, readonly=True) as db:
        report = db.mend_links()
        assert found(report) == LOST
        assert (report.found, report.deleted, report.cleared, report.ok) == (6, 0, 0, False)
        with pytest.raises(zlmdb.ReadonlyDatabase):
            db.mend_links("delete")


def test_what_the_links_declare_is_done(broken: Path) -> None:
    schema = schema_of(broken)
    with zlmdb.open(broken, schema, create=False) as db:
        with pytest.raises(zlmdb.DanglingLink, match="following of the record 5 leads to 2"):
            db.mend_links("declared")  # its predecessor goes with Cid, and that link restricts
        with db.write() as t:
            assert t.people[4] == PEOPLE[4], "nothing was changed"
            t.tasks[5] = Task(3)
        report = db.mend_links("declared")
        assert (report.found, report.deleted, report.cleared) == (6, 2, 2)
        assert db.mend_links().ok
    with zlmdb.open(broken, schema) as db:
        with db.read() as t:
            assert dict(t.people) == {1: PEOPLE[1], 2: Person("Bob", None, [1]), 4: Person("Eve", None, [2])}
            assert dict(t.tasks) == {1: Task(1), 3: Task(2, 1), 4: Task(1, 3)}
        assert db.check().ok


def test_all_records_that_lead_nowhere_are_deleted(broken: Path) -> None:
    schema = schema_of(broken)
    seen: list[Any] = []
    with zlmdb.open(broken, schema, create=False) as db:
        report = db.mend_links("delete", progress=seen.append)
        assert (report.deleted, report.cleared) == (6, 0)
        assert seen[-1].stage == "links of tasks"
    with zlmdb.open(broken, schema) as db:
        with db.read() as t:
            assert dict(t.people) == {1: PEOPLE[1]}
            assert dict(t.tasks) == {1: Task(1)}
        assert db.check().ok


def test_what_cannot_be_cleared_changes_nothing(broken: Path) -> None:
    with zlmdb.open(broken, schema_of(broken), create=False) as db:
        with pytest.raises(zlmdb.DanglingLink, match="of_owner of the record 2 leads nowhere, and cannot be cleared"):
            db.mend_links("clear")
        with db.read() as t:
            assert t.people[4] == PEOPLE[4]
        how: Any = "mend"
        with pytest.raises(ValueError, match="'declared', 'delete' or 'clear'"):
            db.mend_links(how)


def test_links_that_the_file_has_are_mended_with_their_indexes(tmp_path: Path) -> None:
    """As if another program had deleted a record without looking."""
    with zlmdb.open(tmp_path / "db", Office, durability="none") as db:
        with db.write() as t:
            t.people.update({key: Person(one.name) for key, one in PEOPLE.items()})
            t.people.update(PEOPLE)
            t.tasks.update(TASKS)
        with db.write() as t:
            t.people._remove_alone(t.people._storage.encode_key(3))
        assert not db.check().ok
        with db.write() as t:
            del t.tasks[5]
        assert db.mend_links("declared").deleted == 1
        assert db.check().ok
        with db.read() as t:
            assert t.people.of_boss[3].count() == 0


def test_expired_records_are_mended_too(tmp_path: Path) -> None:
    @dataclass
    class Row:
        to: Optional[int]
        until: Optional[int] = None

    class Loose(zlmdb.Table[int, Row], expires="until"):
        pass

    class Bound(zlmdb.Table[int, Row], expires="until"):
        of = zlmdb.ForeignKey["Bound"]("to", on_delete="set_none")

    class Before(zlmdb.Schema):
        rows: Loose

    class After(zlmdb.Schema):
        rows: Bound

    with zlmdb.open(tmp_path / "db", Before, durability="none") as db, db.write() as t:
        db.clock = lambda: 0
        t.rows.update({1: Row(2, 5), 2: Row(9, 9), 3: Row(2), 4: Row(8, 99)})
    with zlmdb.open(tmp_path / "db", After, create=False) as db:
        db.clock = lambda: 10
        assert [(one.key, one.missing) for one in db.mend_links().links] == [(2, 9), (4, 8)]
        db.mend_links("declared")
        with db.read() as t:
            assert dict(t.rows) == {3: Row(None), 4: Row(None, 99)}, "2 has expired, and goes; 1 and 3 referred to it"
    with zlmdb.open(tmp_path / "db", After) as db:
        assert db.check().ok


# -- the command ------------------------------------------------------------------------------------------------------


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


def test_where_the_file_lacks_more_than_the_links_the_error_says_how_it_gets_there(tmp_path: Path) -> None:
    class Before(zlmdb.Table[int, Task], name="tasks"):
        pass

    class Plain(zlmdb.Schema):
        people: FreePeople
        tasks: Before

    with zlmdb.open(tmp_path, Plain) as plain, plain.write() as before:
        before.tasks[1] = Task(7)
    with zlmdb.open(tmp_path, Office, create=False) as db:
        with pytest.raises(zlmdb.SchemaMismatch, match="change feed.*once with the class without its links") as caught:
            db.mend_links("delete")
        assert caught.value.table == "tasks"
    zlmdb.open(tmp_path, Free).close()
    with zlmdb.open(tmp_path, Office, create=False) as db:
        assert db.mend_links("delete").deleted == 1
    zlmdb.open(tmp_path, Office).close()


def test_the_command_lists_and_mends(broken: Path) -> None:
    schema = f"{__name__}:{schema_of(broken).__name__}"
    result = run("mend-links", broken, schema)
    assert result.exit_code == 3
    assert "people: the link of_boss of the record 2 leads to 3 of 'people', which does not exist" in result.output
    assert run("mend-links", broken, schema, "--declared").exit_code == 1
    result = run("mend-links", broken, schema, "--delete", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    assert (answer["found"], answer["deleted"], answer["cleared"]) == (10, 6, 0)
    result = run("mend-links", broken, schema)
    assert result.exit_code == 0
    assert "0 links lead nowhere" in result.output


def test_an_error_of_many_links_shows_some_and_counts_the_others(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Free, durability="none") as db, db.write() as t:
        t.people[1] = Person("Ann")
        t.tasks.update({number: Task(1, 100 + number) for number in range(1, 9)})
    with (
        zlmdb.open(tmp_path / "db", Office, create=False) as db,
        pytest.raises(zlmdb.DanglingLink, match=r"record 5 leads to 105 [^;]*; and 3 others\. ") as caught,
    ):
        db.mend_links("declared")
    assert caught.value.key == 1
