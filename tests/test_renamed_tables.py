"""Tables with a former name: ``was="users"``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import zlmdb

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python


@dataclass
class User:
    name: str
    age: int = 0


class Users(zlmdb.Table[int, User]):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_age = zlmdb.Index[int]("age")


class Old(zlmdb.Schema):
    users: Users
    tags: zlmdb.SetTable[str, int]
    counts: zlmdb.Table[str, int]


class People(Users, was=("persons", "users")): ...


class Labels(zlmdb.SetTable[str, int], was="tags"): ...


class New(zlmdb.Schema):
    people: People
    labels: Labels
    counts: zlmdb.Table[str, int]


ANN, BOB = User("Ann", 31), User("Bob", 45)


@pytest.fixture(params=["tables", pytest.param("classic", marks=pytest.mark.once)])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with zlmdb.open(tmp_path / "db", Old, layout=request.param, durability="none") as db, db.write() as t:
        t.users.update({1: ANN, 2: BOB})
        t.tags["a"].update([1, 2])
        t.counts["n"] = 5
    return tmp_path / "db"


def test_the_records_and_indexes_come_under_the_new_name(path: Path) -> None:
    with zlmdb.open(path, New) as db:
        with db.write() as t:
            assert dict(t.people) == {1: ANN, 2: BOB}
            assert t.people.by_name["Bob"] == BOB
            assert list(t.people.by_age.select()) == [(1, ANN), (2, BOB)]
            assert list(t.labels.items()) == [("a", 1), ("a", 2)]
            assert t.counts["n"] == 5
            t.people[3] = User("Cid", 31)
            t.labels.add("a", 3)
        assert sorted(db.tables()) == ["counts", "labels", "labels.values", "people"]
        assert db.check().ok
    with zlmdb.open(path, New) as db, db.read() as t:
        assert [key for key, _ in t.people.by_age.select(31, 32)] == [1, 3]
        assert list(t.labels["a"]) == [1, 2, 3]


def test_a_program_that_only_reads_sees_the_new_name_and_changes_nothing(path: Path) -> None:
    data = (path / "data.mdb").read_bytes()
    with zlmdb.open(path, New, readonly=True) as db, db.read() as t:
        assert dict(t.people) == {1: ANN, 2: BOB}
        assert t.people.by_name["Ann"] == ANN
        assert list(t.labels["a"]) == [1, 2]
    assert (path / "data.mdb").read_bytes() == data
    with zlmdb.open(path, Old) as db, db.read() as t:
        assert dict(t.users) == {1: ANN, 2: BOB}


@pytest.mark.parametrize("option", [{"readonly": True}, {"create": False}])
def test_a_renamed_table_that_is_only_read_may_stand_beside_one_that_the_file_lacks(
    path: Path, option: dict[str, Any]
) -> None:
    class Newer(New):
        pets: zlmdb.Table[str, int]

    with zlmdb.open(path, Newer, **option) as db, db.read() as t:
        assert dict(t.people) == {1: ANN, 2: BOB}
        assert dict(t.pets) == {}


def test_programs_with_the_old_name_are_refused(path: Path) -> None:
    with zlmdb.open(path, Old) as old:
        with zlmdb.open(path, New):
            pass
        with (
            pytest.raises(zlmdb.Error, match="another program has dropped it|open the database again"),
            old.read() as t,
        ):
            t.users[1]
    with pytest.raises(zlmdb.SchemaMismatch, match="'users' was renamed, and is 'people' in the file"):
        zlmdb.open(path, Old)
    with zlmdb.open(path, New) as db:
        assert db.check().ok


class Unique(Users, was="users"):
    only = zlmdb.UniqueIndex[int]("age")


class Expiring(Users, name="users", expires="age"): ...


class Short(Users, was="users", expires="age"):
    only = zlmdb.UniqueIndex[int](lambda u: 1, version=1)


def test_whoever_is_refused_for_a_record_has_renamed_nothing(path: Path) -> None:
    class Later(zlmdb.Schema):
        labels: Labels
        people: Unique

    with zlmdb.open(path, Old) as db, db.write() as t:
        t.users[3] = User("Cid", 31)
    with pytest.raises(zlmdb.DuplicateKey, match="'people.only'"):
        zlmdb.open(path, Later)
    with zlmdb.open(path, Old) as db, db.write() as t:  # the program of before goes on
        assert len(t.users) == 3
        assert list(t.tags["a"]) == [1, 2]
        del t.users[3]
    with zlmdb.open(path, Later) as new, new.read() as u:
        assert (u.people.only[45], list(u.labels["a"])) == (BOB, [1, 2])
        assert new.check().ok


def test_what_has_expired_is_in_the_way_of_no_index_of_a_renamed_table(path: Path) -> None:
    class Before(zlmdb.Schema):
        users: Expiring

    class After(zlmdb.Schema):
        people: Short

    with zlmdb.open(path, Before) as db:
        db.clock = lambda: 0.0
        with db.write() as t:
            t.users[2] = User("Bob", 1 << 40)
    with zlmdb.open(path, After) as new, new.read() as u:
        assert [user.name for user in u.people.values()] == ["Bob"]


def test_a_table_of_the_old_name_may_be_begun_by_a_program_that_knows_the_new_one(path: Path) -> None:
    class Both(zlmdb.Schema):
        people: People
        users: zlmdb.Table[str, int]
        labels: Labels

    zlmdb.open(path, New).close()
    for _ in range(2):
        with zlmdb.open(path, Both) as db, db.write() as t:
            t.users["n"] = 1
            assert (dict(t.people), dict(t.users)) == ({1: ANN, 2: BOB}, {"n": 1})


class Wide(People, name="wide", was="people"): ...


class Narrow(zlmdb.Table[str, str], name="users"): ...


class Moved(zlmdb.Schema):
    people: People
    wide: Wide
    users: Narrow
    labels: Labels


def test_a_table_takes_the_name_that_another_one_leaves_in_the_same_opening(path: Path) -> None:
    class Others(Users, name="people"): ...

    class Before(Old):
        people: Others

    other = User("Cid", 40)
    with zlmdb.open(path, Before) as db, db.write() as t:
        t.people[9] = other
    for option in ({"readonly": True}, {"create": False}, {}, {}):
        with zlmdb.open(path, Moved, **option) as db, db.read() as t:
            assert (dict(t.wide), dict(t.people)) == ({9: other}, {1: ANN, 2: BOB})
            assert (t.wide.by_name["Cid"], t.people.by_name["Ann"]) == (other, ANN)
            if option:
                with pytest.raises(zlmdb.SchemaMismatch, match="'users'.* the file is now called 'people': open it"):
                    dict(t.users)
            else:
                assert dict(t.users) == {}
                assert db.check().ok


def test_links_follow_a_renamed_table(tmp_path: Path) -> None:
    @dataclass
    class Pet:
        name: str
        owner: int

    class Pets(zlmdb.Table[int, Pet]):
        owner = zlmdb.ForeignKey[Users]("owner")

    class NewPets(zlmdb.Table[int, Pet], was="pets"):
        owner = zlmdb.ForeignKey[People]("owner")

    class Before(zlmdb.Schema):
        users: Users
        pets: Pets

    class After(zlmdb.Schema):
        people: People
        animals: NewPets

    with zlmdb.open(tmp_path / "db", Before) as db, db.write() as t:
        t.users[1] = ANN
        t.pets[1] = Pet("Rex", 1)
    for _ in range(2):
        with zlmdb.open(tmp_path / "db", After) as db:
            with db.write() as t:
                assert [pet.name for pet in t.animals.owner[1].values()] == ["Rex"]
                with pytest.raises(zlmdb.ConstraintError):
                    del t.people[1]
            assert db.check().ok


def test_a_feed_and_times_of_expiry_follow_a_renamed_table(tmp_path: Path) -> None:
    class Sessions(zlmdb.Table[str, User], feed=True, expires="age"):
        by_name = zlmdb.Index[str]("name")

    class Visits(Sessions, was="sessions"): ...

    class Before(zlmdb.Schema):
        sessions: Sessions

    class After(zlmdb.Schema):
        visits: Visits

    with zlmdb.open(tmp_path / "db", Before) as db:
        db.clock = lambda: 10.0
        with db.write() as t:
            t.sessions.update({"a": User("Ann", 20), "b": User("Bob", 30)})
    with zlmdb.open(tmp_path / "db", After, readonly=True) as db:
        db.clock = lambda: 10.0
        with db.read() as t:
            assert sorted(t.visits) == ["a", "b"]
    not_renamed = pytest.raises(zlmdb.SchemaMismatch, match="is called 'sessions' in the file")
    with zlmdb.open(tmp_path / "db", After, create=False) as db, not_renamed:
        db.run(lambda t: t.visits.update({"c": User("Cid", 40)}))
    with zlmdb.open(tmp_path / "db", After) as db:
        db.clock = lambda: 25.0
        with db.write() as t:
            assert sorted(t.visits) == ["b"]
            t.visits["c"] = User("Cid", 40)
        changes = [(change.kind, change.key) for change in db.changes(Visits)]
        assert changes[:2] == [("put", "a"), ("put", "b")]
        assert sorted(changes[2:]) == [("delete", "a"), ("put", "c")]  # the expired one was swept
        assert db.check().ok


def test_a_dump_keeps_the_former_names(path: Path, tmp_path: Path) -> None:
    with zlmdb.open(path, New) as db, (tmp_path / "dump").open("wb") as out:
        db.dump(out)
    with zlmdb.open(tmp_path / "loaded", zlmdb.Schema) as db, (tmp_path / "dump").open("rb") as dumped:
        db.load(dumped)
    with pytest.raises(zlmdb.SchemaMismatch, match="was renamed"):
        zlmdb.open(tmp_path / "loaded", Old)


MEMBERS, NAMES = "40ce61ae-3c59-45f3-9a5b-0d8f7c4c3ab0", "40ce61ae-3c59-45f3-9a5b-0d8f7c4c3ab1"


@zlmdb.table(MEMBERS, marshal=vars, parse=lambda data: User(**data))
class MembersMap(zlmdb.MapOidCbor): ...


@zlmdb.table(NAMES)
class NamesMap(zlmdb.MapStringOid): ...


class Members(zlmdb.Table[zlmdb.keys.Oid, zlmdb.Cbor[User]], was=MEMBERS):
    by_name = zlmdb.UniqueIndex[zlmdb.keys.String]("name", table=NAMES)


class Club(zlmdb.Schema):
    members: Members


@pytest.mark.parametrize("layout", ["tables", pytest.param("classic", marks=pytest.mark.once)])
def test_a_classic_map_gets_a_name_and_keeps_its_attached_index(layout: str, tmp_path: Path) -> None:
    with zlmdb.Database(tmp_path / "db", layout=layout) as old:
        members, names = old.attach_table(MembersMap), old.attach_table(NamesMap)
        members.attach_index("names", names, lambda user: user.name)
        with old.begin(write=True) as txn:
            members[txn, 1] = ANN
    for number in (2, 3):
        with zlmdb.open(tmp_path / "db", Club) as db:
            with db.write() as t:
                t.members[number] = User(f"user {number}")
                assert t.members.by_name["Ann"] == ANN
                assert t.members.by_name.key(f"user {number}") == number
            assert "members" in db.tables()
            assert db.check().ok


def test_a_wrong_former_name_is_refused() -> None:
    for was in (5, "", ("users", 5), ["users"]):
        wrong: Any = was
        with pytest.raises(TypeError, match="expected the former name"):

            class Bad(zlmdb.Table[int, str], was=wrong): ...
