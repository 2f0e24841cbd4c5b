"""Links between tables: what every way to write must refuse or entail, and what the file remembers of them."""

from __future__ import annotations

import io
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest

import zlmdb
from zlmdb import Cbor, ForeignKey, Table
from zlmdb.tables import links

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python


@dataclass
class Person:
    name: str
    boss: Optional[int] = None
    twin: Optional[int] = None


@dataclass
class Task:
    owner: int
    parent: Optional[int] = None


@dataclass
class Invoice:
    task: int


@dataclass
class Inner:
    boss: Optional[int]


@dataclass
class Outer:
    inner: Optional[Inner] = field(default_factory=lambda: Inner(1))


class People(Table[int, Person]):
    by_boss = ForeignKey["People"]("boss", on_delete="set_none")
    by_twin = ForeignKey["People"]("twin", deferred=True)


class Tasks(Table[int, Task]):
    by_owner = ForeignKey["People"]("owner", on_delete="cascade")
    by_parent = ForeignKey["Tasks"]("parent", on_delete="cascade")


class Invoices(Table[int, Invoice]):
    by_task = ForeignKey["Tasks"]("task")


class Office(zlmdb.Schema):
    people: People
    tasks: Tasks
    invoices: Invoices


class PeopleAlone(Table[int, Person]):
    pass


class Staff(zlmdb.Schema):
    """A program that knows nothing of links."""

    people: People


@pytest.fixture
def db(tmp_path: Path) -> Any:
    with zlmdb.open(tmp_path / "office", Office) as db:
        with db.write() as t:
            t.people.update({1: Person("ann"), 2: Person("bob", boss=1), 3: Person("cid", boss=2)})
            t.tasks.update({1: Task(1), 2: Task(1, 1), 3: Task(2, 2), 4: Task(3)})
            t.invoices[1] = Invoice(4)
        yield db


def contents(t: Any) -> dict[str, dict[Any, Any]]:
    return {name: dict(t[name].items()) for name in ("people", "tasks", "invoices")}


def refused(db: Any, change: Any, error: type[Exception]) -> Exception:
    """The error of *change*, which changes nothing, and does not hinder the transaction."""
    with db.write() as t:
        before = contents(t)
        with pytest.raises(error) as caught:
            change(t)
        assert contents(t) == before
        t.people[99] = Person("zoe")
    with db.write() as t:
        assert t.people.pop(99) == Person("zoe")
        assert contents(t) == before
    assert db.check().ok
    return caught.value


# -- a record that is written must refer to one that is there ----------------------------------------------------------


def edit(t: Any) -> None:
    with t.tasks.edit(1) as task:
        task.owner = 7


def edit_all(t: Any) -> None:
    with t.tasks.where(lambda task: task.owner == 1).edit() as tasks:
        for task in tasks:
            task.parent = 70


WRITES: dict[str, Any] = {
    "put": lambda t: t.tasks.__setitem__(9, Task(7)),
    "replace": lambda t: t.tasks.__setitem__(1, Task(7)),
    "add": lambda t: t.tasks.add(Task(7)),
    "put_new": lambda t: t.tasks.put_new(9, Task(7)),
    "setdefault": lambda t: t.tasks.setdefault(9, Task(7)),
    "replace if there": lambda t: t.tasks.replace(1, Task(7)),
    "update": lambda t: t.tasks.update({9: Task(7)}),
    "put_many of a list": lambda t: t.tasks.put_many([(9, Task(7))]),
    "put_many of a generator": lambda t: t.tasks.put_many(iter([(9, Task(7))]), append=True),
    "change": lambda t: t.tasks.change(1, lambda task: replace(task, owner=7)),
    "edit": edit,
    "selection.edit": edit_all,
    "selection.change": lambda t: t.tasks.select().change(lambda task: replace(task, owner=task.owner * 3)),
}


@pytest.mark.parametrize("how", WRITES)
def test_a_record_that_refers_to_none_is_refused_by_every_way_to_write(db: Any, how: str) -> None:
    error = refused(db, WRITES[how], zlmdb.DanglingLink)
    assert "no such record" in str(error)


def test_the_error_names_the_record_and_what_it_misses(db: Any) -> None:
    error: Any = refused(db, WRITES["put"], zlmdb.DanglingLink)
    assert (error.table, error.index, error.key, error.owner) == ("tasks", "by_owner", 9, 7)


def test_a_record_may_refer_to_itself_and_a_field_that_is_none_to_nothing(db: Any) -> None:
    with db.write() as t:
        t.people[5] = Person("eve", boss=5)
        t.people[6] = Person("fay")
        assert list(t.people.by_boss[5].keys()) == [5]


def test_a_link_that_does_not_change_refuses_nothing(db: Any) -> None:
    """A record with a broken link, of a file that was damaged, can be changed in all other respects."""
    with db.write() as t:
        t.people._remove_alone(t.people._storage.encode_key(1))
        with t.tasks.edit(2) as task:
            task.parent = None
        with pytest.raises(zlmdb.DanglingLink):
            t.tasks[3] = Task(1)
        t.tasks[2] = Task(2)


def test_a_deferred_link_is_checked_at_the_commit_which_then_fails_whole(db: Any) -> None:
    with db.write() as t:
        t.people[5] = Person("eve", twin=6)
        t.people[6] = Person("fay", twin=5)
    commit = db.write()
    commit.__enter__()
    commit.people.update({7: Person("guy"), 8: Person("hal", twin=9)})
    with pytest.raises(zlmdb.DanglingLink, match="no such record: store that one first$"):
        commit.txn.commit()
    with db.read() as t:
        assert list(t.people) == [1, 2, 3, 5, 6]
    with pytest.raises(zlmdb.DanglingLink):
        db.run(lambda t: t.people.__setitem__(8, Person("hal", twin=9)))
    with db.write() as t:  # nothing is left over of the transaction before
        t.people[7] = Person("guy")


def test_a_deferred_link_of_a_record_that_went_again_is_no_matter(db: Any) -> None:
    with db.write() as t:
        t.people[5] = Person("eve", twin=9)
        del t.people[5]
        with suppress(ZeroDivisionError), t.txn.savepoint():
            t.people[6] = Person("fay", twin=9)
            raise ZeroDivisionError
        t.people[7] = Person("guy", twin=9)
        t.people[7] = Person("guy")
    assert db.check().ok


def test_a_deferred_link_in_a_group_of_writers_fails_alone(db: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def put(key: int) -> Any:
        try:
            db.run(lambda t: t.people.__setitem__(key, Person("x", twin=999 if key == 103 else None)))
        except zlmdb.DanglingLink:
            return "dangling"
        return "stored"

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(put, range(100, 108))) == ["stored"] * 3 + ["dangling"] + ["stored"] * 4


@pytest.mark.parametrize("wary", [0, 9])
def test_a_deferred_link_does_not_wait_for_another_function_of_the_group(db: Any, wary: int) -> None:
    def put(key: int, twin: int) -> Any:
        return lambda t: t.people.__setitem__(key, Person("x", twin=twin))

    with db.write():  # all wait for this block, and are one group then
        waiting = [db.submit(put(100, 101)), db.submit(put(101, 101)), db.submit(put(102, 101))]
        db._group_commit()._wary = wary  # savepoints of their own
    with pytest.raises(zlmdb.DanglingLink, match="twin of the record 100 is 101"):
        waiting[0].result()
    assert [one.result() for one in waiting[1:]] == [None, None]
    with db.read() as t:
        assert [key for key in t.people if key >= 100] == [101, 102]
    assert db.check().ok


def test_generated_functions_store_what_surely_has_its_links(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    general: list[int] = []
    write = Table._write
    monkeypatch.setattr(Table, "_write", lambda self, key, *rest: general.append(key) or write(self, key, *rest))
    with db.write() as t:
        t.tasks[5] = Task(1)
        t.tasks[5] = Task(2, 1)
        t.people[6] = Person("fay", twin=1)
        assert general == []
        t.people[7] = Person("guy", boss=7)
        t.people[8] = Person("hal", twin=9)
        t.people[9] = Person("ida")
        assert general == [7, 8]
        del t.invoices[1]
        assert list(t.tasks.by_owner[2].keys()) == [3, 5]
    assert db.check().ok


# -- a deletion is one statement ---------------------------------------------------------------------------------------

DELETIONS: dict[str, Any] = {
    "del": lambda t: t.people.__delitem__(3),
    "pop": lambda t: t.people.pop(3),
    "change": lambda t: t.people.change(3, lambda _: None),
    "selection.delete of a range": lambda t: t.people.select(3).delete(),
    "selection.delete of a query": lambda t: t.people.where(lambda p: p.name == "cid").delete(),
    "selection.delete by an index": lambda t: t.people.by_boss[2].delete(),
    "clear": lambda t: t.people.clear(),
    "truncate": lambda t: t.people.truncate(),
    "popitem": lambda t: [t.people.popitem() for _ in range(3)],
}


@pytest.mark.parametrize("how", [name for name in DELETIONS if name != "popitem"])
def test_a_deletion_that_something_restricts_changes_nothing_in_any_table(db: Any, how: str) -> None:
    error: Any = refused(db, DELETIONS[how], zlmdb.StillLinked)
    assert (error.table, error.index, error.key, error.owner) == ("tasks", "by_task", 4, 1)


@pytest.mark.parametrize("how", DELETIONS)
def test_a_deletion_takes_along_what_cascades_and_no_more(db: Any, how: str) -> None:
    with db.write() as t:
        del t.invoices[1]
        DELETIONS[how](t)
        everything = how in ("clear", "truncate", "popitem")
        assert list(t.people) == ([] if everything else [1, 2])
        assert list(t.tasks) == ([] if everything else [1, 2, 3])
    assert db.check().ok


def test_a_refused_deletion_reads_one_of_the_records_that_refer(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[bytes]] = []
    of = links.Owners.of
    monkeypatch.setattr(links.Owners, "of", lambda owners, key: [found.append(of(owners, key)), found[-1]][1])
    with db.write() as t:
        t.invoices.update({number: Invoice(4) for number in range(10, 60)})
        with pytest.raises(zlmdb.StillLinked):
            del t.tasks[4]
    assert max(map(len, found)) == 1


def test_fields_are_set_to_none_and_rings_end(db: Any) -> None:
    with db.write() as t:
        t.tasks[1] = Task(1, 3)  # a ring: 1, 2, 3
        del t.tasks[2]
        assert list(t.tasks) == [4]
        t.people[1] = Person("ann", boss=1)
        assert t.people.where(lambda k, p: k < 3).delete() == 2
        assert dict(t.people) == {3: Person("cid")}
        assert list(t.people.by_boss.select()) == []
    assert db.check().ok


def test_those_that_restrict_each_other_go_together(db: Any) -> None:
    with db.write() as t:
        t.people.update({5: Person("eve", twin=6), 6: Person("fay", twin=5)})
        with pytest.raises(zlmdb.StillLinked, match="the record 6 of 'people' refers to it by by_twin"):
            del t.people[5]
        assert t.people.select(5).delete() == 2
        assert list(t.people) == [1, 2, 3]


def test_a_deletion_of_nothing_is_what_it_always_was(db: Any) -> None:
    with db.write() as t:
        with pytest.raises(KeyError):
            del t.people[77]
        assert t.people.pop(77, None) is None
        assert t.people.where(lambda p: p.name == "nobody").delete() == 0


def test_clearing_costs_no_look_up_while_nothing_refers_to_the_table(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from zlmdb.tables import removal

    with db.write() as t:
        t.invoices.clear()
        t.tasks.clear()
        monkeypatch.setattr(removal, "remove", None)
        assert t.people.truncate() == 3 + 2  # the records, and the entries of `by_boss`
        assert len(t.people) == 0


def test_iterating_while_deleting_visits_what_is_left(db: Any) -> None:
    with db.write() as t:
        t.invoices.clear()
        seen = []
        for key in t.tasks:
            seen.append(key)
            t.tasks.pop(key, None)
        assert seen == [1, 4]


def test_an_iteration_goes_on_while_a_deletion_elsewhere_takes_records_from_its_table(db: Any) -> None:
    with db.write() as t:
        t.invoices.clear()
        seen = []
        for key in t.tasks:
            seen.append(key)
            t.people.pop(1, None)  # with the tasks 1, 2 and 3
        assert seen == [1, 4]
        t.tasks[5] = Task(2)
        for key, task in t.tasks.by_owner.select():
            assert (key, task) == (5, Task(2))
            del t.people[2]
            del t.people[3]


def test_commands_cannot_break_links(db: Any) -> None:
    from click.testing import CliRunner

    from zlmdb.cli import main

    def refused(*arguments: str) -> str:
        result = CliRunner().invoke(main, [arguments[0], db.dbpath, *arguments[1:]])
        assert result.exit_code == 1, result.output
        return str(result.output)

    before = db.dbpath, contents_of(db)
    assert "the indexes by_owner, by_parent" in refused("put", "tasks", "9", '{"owner": 77}')
    assert "the indexes by_boss, by_twin" in refused("delete", "people", "1")
    assert "the indexes by_task" in refused("put", "invoices", "9", '{"task": 77}')
    assert before == (db.dbpath, contents_of(db))


def contents_of(db: Any) -> Any:
    with db.read() as t:
        return contents(t)


def test_deletions_are_counted_with_what_they_entail(db: Any) -> None:
    with db.write() as t:
        before = t.txn._dels
        del t.tasks[1]
        assert t.txn._dels - before == 3 + 3 + 2  # three records, each with an owner, and two with a parent


def test_tables_without_a_block_keep_links(db: Any) -> None:
    auto = db.auto
    with pytest.raises(zlmdb.DanglingLink):
        auto.tasks[9] = Task(7)
    with pytest.raises(zlmdb.StillLinked):
        del auto.people[3]
    del auto.people[2]
    with db.read() as t:
        assert (list(t.people), list(t.tasks)) == ([1, 3], [1, 2, 4])


# -- declarations ------------------------------------------------------------------------------------------------------


def opened(*tables: tuple[str, Any]) -> Any:
    schema: Any = type("Some", (zlmdb.Schema,), {"__annotations__": dict(tables), "__module__": __name__})
    return zlmdb.open(None, schema)


def with_link(**kwargs: Any) -> Any:
    class Named(NamedTuple):
        to: int

    class Linked(Table[int, Cbor[Named]]):
        link = ForeignKey[People]("to", **kwargs)

    return Linked


def test_a_link_names_a_class_or_its_name_and_it_must_be_one_table_of_the_schema() -> None:
    with opened(("linked", with_link()), ("people", People)) as db, db.write() as t:
        assert t.linked._storage.followers[0].target == "people"
    with pytest.raises(TypeError, match="the schema has no table of that class, but Linked"):
        opened(("linked", with_link()))

    class Others(People, name="others"):
        pass

    with pytest.raises(TypeError, match="the tables people, others are of that class"):
        opened(("linked", with_link()), ("people", People), ("others", Others))
    with pytest.raises(TypeError, match="declare both in one zlmdb.Schema"):
        opened(("people", People)).table("linked", with_link())


def test_keys_are_compared_when_the_link_is_declared() -> None:
    class Words(Table[str, int]):
        pass

    @dataclass
    class Book:
        words: int

    class Books(Table[int, Book]):
        link = ForeignKey[Words]("words")

    with pytest.raises(TypeError, match="the field 'words' is int, and the keys of Words are str"):
        opened(("books", Books), ("words", Words))

    class Pairs(Table[tuple[int, str], int]):
        pass

    class OfPairs(Table[int, Book]):
        link = ForeignKey[Pairs]("words")

    with pytest.raises(TypeError, match="the field 'words' is int, and the keys of Pairs are tuple"):
        opened(("books", OfPairs), ("pairs", Pairs))


def test_set_none_needs_an_optional_field() -> None:
    with pytest.raises(TypeError, match="its type is int: make it Optional\\[int\\]"):
        opened(("linked", with_link(on_delete="set_none")), ("people", People))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ForeignKey["People"](), "name the fields"),
        (lambda: ForeignKey["People"](lambda one: one), "name the fields"),
        (lambda: ForeignKey["People"]("x", on_delete="explode"), "on_delete='explode': expected one of 'restrict'"),
    ],
)
def test_wrong_arguments_are_refused(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_a_link_of_several_fields_leads_to_a_key_of_several_parts() -> None:
    @dataclass
    class Place:
        people: int

    @dataclass
    class House:
        country: Optional[str]
        town: Optional[str]
        number: int

    class Places(Table[tuple[str, str], Place]):
        pass

    class Houses(Table[int, House]):
        by_place = ForeignKey[Places]("country", "town", on_delete="set_none")

    with opened(("houses", Houses), ("places", Places)) as db, db.write() as t:
        t.places["NO", "Oslo"] = Place(7)
        t.houses.update({1: House("NO", "Oslo", 1), 2: House("NO", None, 2)})
        with pytest.raises(zlmdb.DanglingLink):
            t.houses[3] = House("NO", "Bergen", 3)
        assert list(t.houses.by_place["NO", "Oslo"].keys()) == [1]
        del t.places["NO", "Oslo"]
        assert t.houses[1] == House(None, None, 1)


def test_records_of_any_model_lose_their_link() -> None:
    class Tuple(NamedTuple):
        boss: Optional[int]

    @dataclass(frozen=True)
    class Frozen:
        boss: Optional[int]

    def table(model: Any, path: str) -> Any:
        generic: Any = Table

        class Made(generic[int, model]):  # type: ignore[misc]
            link = ForeignKey[PeopleAlone](path, on_delete="set_none")

        return Made

    given: dict[str, Any] = {"tuple": Tuple(1), "frozen": Frozen(1), "outer": Outer(), "plain": {"boss": 1}}
    with suppress(ImportError):  # on PyPy
        import msgspec

        given["struct"] = msgspec.defstruct("Struct", [("boss", Optional[int])], frozen=True)(boss=1)
    tables = {name: table(type(one), "inner.boss" if name == "outer" else "boss") for name, one in given.items()}
    with opened(*tables.items(), ("people", PeopleAlone)) as db, db.write() as t:
        t.people[1] = Person("ann")
        for name, one in given.items():
            t[name][1] = one
        del t.people[1]
        assert (t["tuple"][1], t["frozen"][1], t["plain"][1]) == (Tuple(None), Frozen(None), {"boss": None})
        assert t["outer"][1] == Outer(Inner(None))
        assert "struct" not in given or t["struct"][1].boss is None


@dataclass
class Friend:
    friends: list[int]
    groups: frozenset[str] = frozenset()


class Groups(Table[str, int]):
    pass


class Friends(Table[int, Friend]):
    by_friend = ForeignKey["Friends"]("friends", each=True, on_delete="set_none")
    by_group = ForeignKey[Groups]("groups", each=True)


def test_each_element_of_a_list_is_a_link(tmp_path: Path) -> None:
    with opened(("friends", Friends), ("groups", Groups)) as db:
        with db.write() as t:
            t.groups["a"] = 1
            t.friends.update({1: Friend([]), 2: Friend([2, 1, 2]), 3: Friend([1, 2, 1], frozenset("a"))})
            assert list(t.friends.by_friend[1].keys()) == [2, 3]
            for wrong in (Friend([1, 9]), Friend([], frozenset("ab"))):
                with pytest.raises(zlmdb.DanglingLink):
                    t.friends[4] = wrong
            with pytest.raises(zlmdb.StillLinked):
                del t.groups["a"]
            del t.friends[1]
            assert dict(t.friends) == {2: Friend([2, 2]), 3: Friend([2], frozenset("a"))}
            with t.friends.edit(3) as third:
                third.groups = frozenset()
            del t.groups["a"]
            assert t.friends.select(through=2).delete() == 1
            assert dict(t.friends) == {3: Friend([])}
        assert db.check().ok
    with pytest.raises(TypeError, match="has elements of the type str, and the keys of People are int"):
        opened(("wrong", with_each("groups")), ("people", People))


def with_each(field: str) -> Any:
    class Wrong(Table[int, Friend]):
        link = ForeignKey[People](field, each=True)

    return Wrong


# -- the file ----------------------------------------------------------------------------------------------------------


class OtherPeople(Table[int, Person], name="people"):
    by_boss = zlmdb.Index[int]("boss")


class Bare(Table[int, Person], name="people"):
    pass


class BareTasks(Table[int, Task], name="tasks"):
    pass


class Without(zlmdb.Schema):
    """A program that does not declare the links of tasks, nor those of people."""

    people: Bare
    tasks: BareTasks


class OnlyTasks(zlmdb.Schema):
    tasks: BareTasks


class Empty(zlmdb.Schema):
    pass


class Targets(zlmdb.Schema):
    people: People
    tasks: Tasks


def test_a_program_without_the_declarations_writes_neither_links_nor_deletes_what_they_lead_to(db: Any) -> None:
    with zlmdb.open(db.dbpath, Without) as other:
        with other.write() as t, pytest.raises(zlmdb.IndexNotAttached, match="by_owner, by_parent"):
            t.tasks[9] = Task(77)
        with other.write() as t, pytest.raises(zlmdb.IndexNotAttached):
            del t.people[3]
    with zlmdb.open(db.dbpath, Targets) as other:  # it lacks the invoices
        with other.write() as t:
            t.tasks[9] = Task(1)
            t.tasks.put_many([(10, Task(1)), (11, Task(1))])
            for delete in (
                lambda: t.tasks.__delitem__(9), lambda: t.tasks.clear(), lambda: t.tasks.select().delete(),
                lambda: t.people.__delitem__(1), lambda: t.people.clear(), lambda: t.tasks.pop(9),
                lambda: t["tasks"].where(lambda task: task.owner == 1).delete(),
            ):  # fmt: skip
                with pytest.raises(zlmdb.IndexNotAttached, match=r"invoices\.by_task"):
                    delete()
        with other.read() as t:
            assert list(t.tasks) == [1, 2, 3, 4, 9, 10, 11]
    with zlmdb.open(db.dbpath) as other, other.write() as u, pytest.raises(zlmdb.IndexNotAttached):
        del u["tasks"][1]
    assert db.check().ok


def test_what_another_program_declares_is_seen_in_the_next_transaction(tmp_path: Path) -> None:
    class Tasks0(Table[int, Task], name="tasks"):
        pass

    class People0(Table[int, Person], name="people"):
        pass

    class Tasks1(Table[int, Task], name="tasks"):
        by_owner = ForeignKey["People0"]("owner")

    class Before(zlmdb.Schema):
        people: People0
        tasks: Tasks0

    class After(zlmdb.Schema):
        people: People0
        tasks: Tasks1

    with zlmdb.open(tmp_path / "db", Before) as old:
        with old.write() as t:
            t.people[1] = Person("ann")
            t.tasks[1] = Task(1)
            del t.people[1]
            t.people[1] = Person("ann")
        with zlmdb.open(tmp_path / "db", After) as new:
            with old.write() as t, pytest.raises(zlmdb.IndexNotAttached, match=r"the links tasks\.by_owner"):
                del t.people[1]
            with old.write() as t:
                t.people[2] = Person("bob")
            with new.write() as t, pytest.raises(zlmdb.StillLinked):
                del t.people[1]
            new.drop_index("tasks", "by_owner")
            with old.write() as t:
                del t.people[2]
            with new.write() as t:
                del t.people[1]


def test_a_link_declared_later_is_checked_and_refused_with_the_records(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Without) as db, db.write() as t:
        t.people[1] = Person("ann")
        t.tasks.update({key: Task(key % 3) for key in range(20)})
    with pytest.raises(zlmdb.SchemaMismatch, match=r"tasks\.by_owner cannot be declared.* 0 \(to 0\), 2 \(to 2\);"):
        zlmdb.open(tmp_path / "db", Office)
    with zlmdb.open(tmp_path / "db", Without) as db, db.write() as t:
        assert len(t.tasks) == 20
        t.people.update({0: Person("zoe"), 2: Person("bob")})
    with zlmdb.open(tmp_path / "db", Office) as office, office.write() as u:
        assert u.tasks.by_owner[1].count() == 7
        with pytest.raises(zlmdb.DanglingLink):
            u.tasks[1] = Task(5)


def test_a_renamed_field_keeps_its_link(tmp_path: Path) -> None:
    from typing import Annotated

    @dataclass
    class Renamed:
        holder: Annotated[int, zlmdb.Was("owner")]
        parent: Optional[int] = None

    class RenamedTasks(Table[int, Renamed], name="tasks"):
        by_owner = ForeignKey["Bare"]("holder", on_delete="cascade")

    class FirstTasks(Table[int, Task], name="tasks"):
        by_owner = ForeignKey["Bare"]("owner", on_delete="cascade")

    class First(zlmdb.Schema):
        people: Bare
        tasks: FirstTasks

    class Later(zlmdb.Schema):
        people: Bare
        tasks: RenamedTasks

    with zlmdb.open(tmp_path / "db", First) as db, db.write() as t:
        t.people[1] = Person("ann")
        t.tasks[1] = Task(1)
    with zlmdb.open(tmp_path / "db", Later) as later, later.write() as u:
        assert u.tasks[1] == Renamed(1)
        del u.people[1]
        assert len(u.tasks) == 0


def test_check_finds_broken_links(db: Any) -> None:
    with db.write() as t:
        t.people._remove_alone(t.people._storage.encode_key(1))
    report = db.check()
    found = [(one.kind, one.table, one.index, one.key) for one in report.problems]
    assert found == [("link", "people", "by_boss", "2"), ("link", "tasks", "by_owner", "1")]
    assert "its link by_owner leads to the record 1 of 'people', which does not exist" in str(report.problems[1].text)


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_links_are_dumped_and_loaded_in_any_order(db: Any, tmp_path: Path, layout: Any) -> None:
    stream = io.BytesIO()
    db.dump(stream, tables=["tasks", "people", "invoices"])
    stream.seek(0)
    with zlmdb.open(tmp_path / "new", Empty, layout=layout) as new:
        new.load(stream)
        assert new.check().ok
    with zlmdb.open(tmp_path / "new", Targets, layout=layout) as other, other.write() as t:
        assert len(t.people) == 3
        with pytest.raises(zlmdb.IndexNotAttached):
            del t.people[3]
    with zlmdb.open(tmp_path / "new", Office, layout=layout) as office, office.write() as u:
        with pytest.raises(zlmdb.StillLinked):
            del u.people[3]
        del u.people[2]
        assert list(u.tasks) == [1, 2, 4]


def test_a_part_of_a_dump_whose_links_lead_nowhere_is_not_loaded(db: Any, tmp_path: Path) -> None:
    stream = io.BytesIO()
    db.dump(stream, tables=["tasks"])
    stream.seek(0)
    with zlmdb.open(tmp_path / "new", Empty) as new:
        with pytest.raises(zlmdb.DanglingLink, match="leads to the record 1 of 'people', which does not exist"):
            new.load(stream)
        with new.read() as t:
            assert list(t) == []


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_salvage_leaves_the_links_to_the_program_that_declares_them(tmp_path: Path, layout: Any) -> None:
    from zlmdb.operations.salvage import salvage

    with zlmdb.open(tmp_path / "db", Office, layout=layout) as db, db.write() as t:
        t.people[1] = Person("ann")
        t.tasks[1] = Task(1)
    salvage(tmp_path / "db", tmp_path / "saved")
    with zlmdb.open(tmp_path / "saved", Without) as db2, db2.write() as u:
        u.tasks[2] = Task(1)
        del u.people[1]
    with pytest.raises(zlmdb.SchemaMismatch, match=r"1 \(to 1\)"):
        zlmdb.open(tmp_path / "saved", Office)


def test_classic_maps_cannot_break_links(tmp_path: Path) -> None:
    from uuid import UUID

    oid = UUID("8e5f2c3e-9a2b-4d0e-8f5c-0123456789ab")

    class Users(Table[UUID, Cbor[Any]], uuid=oid):
        pass

    @dataclass
    class Login:
        user: UUID

    class Logins(Table[int, Login]):
        by_user = ForeignKey["Users"]("user")

    class Site(zlmdb.Schema):
        users: Users
        logins: Logins

    @zlmdb.table(oid)
    class OldUsers(zlmdb.MapUuidCbor):
        pass

    ann = UUID(int=1)
    with zlmdb.open(tmp_path / "db", Site) as db:
        with db.write() as t:
            t.users[ann] = {}
            t.logins[1] = Login(ann)
        old = db.attach_table(OldUsers)
        with db.begin(write=True) as txn:
            with pytest.raises(zlmdb.IndexNotAttached, match=r"logins\.by_user"):
                del old[txn, ann]
            with pytest.raises(zlmdb.IndexNotAttached):
                old.truncate(txn)
            old[txn, UUID(int=2)] = {}
        with db.read() as t:
            assert len(t.users) == 2


def test_a_migration_may_break_links_meanwhile_but_not_at_its_end(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Office) as db, db.write() as t:
        t.people.update({1: Person("ann"), 2: Person("bob", boss=1)})
        t.tasks[1] = Task(2)

    def renumber(t: Any, old: Any) -> None:
        for key, person in old.take("people").items():
            t.people[key + shift] = Person(person["name"], None if person["boss"] is None else person["boss"] + shift)
        for key, task in old.take("tasks").items():
            t.tasks[key] = Task(task["owner"] + 10)

    class Migrated(Office):
        migrations = (zlmdb.Migration(1, "renumber", renumber),)

    shift = 100
    with zlmdb.open(tmp_path / "db", Migrated) as new:
        with pytest.raises(zlmdb.DanglingLink, match="leads to the record 12 of 'people'"):
            new.migrate()
        with new.read() as u:
            assert list(u.people) == [1, 2]
        shift = 10
        new.migrate(dry_run=True)
        new.migrate()
        with new.write() as u:
            assert dict(u.people) == {11: Person("ann"), 12: Person("bob", 11)}
            del u.people[12]
            assert len(u.tasks) == 0
        assert new.check().ok


def test_a_migration_of_the_keys_takes_along_what_refers_to_them(tmp_path: Path) -> None:
    class Named(Table[str, Person], name="people"): ...

    @dataclass
    class Job:
        owner: str

    class Jobs(Table[int, Job], name="tasks"):
        by_owner = ForeignKey[Named]("owner")

    def rename(t: Any, old: Any) -> None:
        for key, person in old.take("people").items():
            t.people[f"p{key}"] = Person(person["name"])

    def rename_both(t: Any, old: Any) -> None:
        rename(t, old)
        for key, task in old.take("tasks").items():
            t.tasks[key] = Job(f"p{task['owner']}")

    class Half(zlmdb.Schema):
        people: Named
        migrations = (zlmdb.Migration(1, "names", rename),)

    class Whole(zlmdb.Schema):
        people: Named
        tasks: Jobs
        migrations = (zlmdb.Migration(1, "names", rename_both),)

    with zlmdb.open(tmp_path, Targets) as db, db.write() as t:
        t.people.update({1: Person("ann"), 2: Person("bob")})
        t.tasks.update({1: Task(1), 2: Task(2)})
    with zlmdb.open(tmp_path, Half) as half:
        assert half.check().ok
        with pytest.raises(zlmdb.DanglingLink, match="leads to the record 1 of 'people', which does not exist"):
            half.migrate()
    with zlmdb.open(tmp_path, Whole) as whole:
        assert whole.check().ok
        whole.migrate()
        with whole.write() as u:
            assert list(u.tasks.by_owner["p2"].keys()) == [2]
            with pytest.raises(zlmdb.StillLinked):
                del u.people["p2"]
        assert whole.check().ok


def test_a_rewritten_table_has_its_links_again_and_a_dropped_one_binds_nobody(tmp_path: Path) -> None:
    @dataclass
    class Job:
        holder: int
        parent: Optional[int]

    def rename(t: Any, old: Any) -> None:
        old.drop_index("people", "by_boss")
        old.rewrite("tasks", lambda key, task: {"holder": task["owner"] + shift, "parent": None})

    class Loose(Table[int, Person], name="people"):
        by_twin = ForeignKey["Loose"]("twin", deferred=True)

    class JobsOfLoose(Table[int, Job], name="tasks"):
        by_owner = ForeignKey["Loose"]("holder", on_delete="cascade")

    class Migrated(zlmdb.Schema):
        people: Loose
        tasks: JobsOfLoose
        migrations = (zlmdb.Migration(1, "holder", rename),)

    with zlmdb.open(tmp_path / "db", Targets) as db, db.write() as t:
        t.people.update({1: Person("ann"), 2: Person("bob", boss=1)})
        t.tasks.update({1: Task(1), 2: Task(2, 1)})
    shift = 10
    with zlmdb.open(tmp_path / "db", Migrated) as new:
        with pytest.raises(zlmdb.DanglingLink, match="leads to the record 11 of 'people'"):
            new.migrate()
        shift = 0
        new.migrate()
        with new.write() as u:
            with pytest.raises(zlmdb.DanglingLink):
                u.tasks[3] = Job(9, None)
            del u.people[1]
            assert (dict(u.people), dict(u.tasks)) == ({2: Person("bob", 1)}, {2: Job(2, None)})
        assert new.check().ok


def test_tables_without_links_have_no_followers_and_keep_their_generated_functions() -> None:
    class Plain(zlmdb.Schema):
        people: OtherPeople

    with zlmdb.open(None, Plain) as db, db.write() as t:
        storage = t.people._storage
        assert (storage.followers, storage.referrers) == ((), ())
        assert type(t.people).__delitem__ is not Table.__delitem__


# -- with records that expire ------------------------------------------------------------------------------------------


@dataclass
class Guest:
    name: str
    until: Optional[float] = None


@dataclass
class Visit:
    guest: int
    until: Optional[float] = None


class Guests(Table[int, Guest], expires="until"):
    pass


class Visits(Table[int, Visit], expires="until"):
    by_guest = ForeignKey[Guests]("guest")


class Hotel(zlmdb.Schema):
    guests: Guests
    visits: Visits


def test_expired_records_neither_hinder_a_deletion_nor_stay_behind_it() -> None:
    now = 1000.0
    with zlmdb.open(None, Hotel) as db:
        db.clock = lambda: now
        with db.write() as t:
            t.guests.update({1: Guest("ann"), 2: Guest("bob"), 3: Guest("cid", 1010)})
            t.visits.update({1: Visit(1, 1010), 2: Visit(2, 1010), 3: Visit(2), 4: Visit(3)})
        now = 1020.0
        with db.write() as t:
            with pytest.raises(zlmdb.StillLinked, match="the record 3 of 'visits'"):
                del t.guests[2]
            del t.guests[1]
            with pytest.raises(zlmdb.DanglingLink):
                t.visits[5] = Visit(3)
        assert db.check().ok
        with db.write() as t:
            del t.visits[3]
            del t.visits[4]
            t.guests.clear()
            assert list(t.guests) == []
        assert db.check().ok


def test_an_expired_record_stays_in_the_file_while_others_refer_to_it() -> None:
    now = 1000.0
    with zlmdb.open(None, Hotel) as db:
        db.clock = lambda: now
        with db.write() as t:
            t.guests[1] = Guest("ann", 1010)
            t.visits[1] = Visit(1)
        now = 1020.0
        db.sweep()
        with db.write() as t:
            assert 1 not in t.guests
            t.visits[1] = Visit(1, 3000)
        assert db.check().ok
        with db.write() as t:
            del t.visits[1]
        db.sweep()
        assert db.check().ok


def test_a_record_that_has_expired_when_it_is_stored_has_its_deferred_links_checked() -> None:
    class Notes(zlmdb.Table[int, Visit], expires="until"):
        by_guest = ForeignKey["Guests"]("guest", deferred=True)

    class Noted(zlmdb.Schema):
        guests: Guests
        notes: Notes

    with zlmdb.open(None, Noted) as db:
        with pytest.raises(zlmdb.DanglingLink, match="guest of the record 1 is 7"), db.write() as t:
            t.notes[1] = Visit(7, 5.0)
        assert db.check().ok


class FedTasks(Table[int, Task], name="tasks", feed=True):
    by_owner = ForeignKey["People"]("owner", on_delete="cascade")


class FedPeople(People, name="people", feed=True):
    pass


class Fed(zlmdb.Schema):
    people: FedPeople
    tasks: FedTasks


def test_a_feed_tells_what_a_deletion_entails_in_each_table() -> None:
    with zlmdb.open(None, Fed) as db:
        with db.write() as t:
            t.people.update({1: Person("ann"), 2: Person("bob", boss=1)})
            t.tasks.update({1: Task(1), 2: Task(2)})
            del t.people[1]
            with pytest.raises(zlmdb.DanglingLink):
                t.tasks[3] = Task(1)
        people = [(one.kind, one.key, one.new) for one in db.changes(FedPeople)]
        assert people[2:] == [("put", 2, Person("bob")), ("delete", 1, None)]
        assert [(one.kind, one.key) for one in db.changes(FedTasks)] == [("put", 1), ("put", 2), ("delete", 1)]


def test_a_renamed_table_keeps_its_links(tmp_path: Path) -> None:
    class Staff(Table[int, Person], name="staff", was="people"):
        by_boss = ForeignKey["Staff"]("boss", on_delete="set_none")
        by_twin = ForeignKey["Staff"]("twin", deferred=True)

    class Jobs(Table[int, Task], name="jobs", was="tasks"):
        by_owner = ForeignKey["Staff"]("owner", on_delete="cascade")
        by_parent = ForeignKey["Jobs"]("parent", on_delete="cascade")

    class Renamed(zlmdb.Schema):
        staff: Staff
        jobs: Jobs

    with zlmdb.open(tmp_path / "db", Targets) as db, db.write() as t:
        t.people.update({1: Person("ann"), 2: Person("bob", boss=1)})
        t.tasks.update({1: Task(1), 2: Task(2, 1), 3: Task(2)})
    with zlmdb.open(tmp_path / "db", Renamed) as new:
        with new.write() as u:
            with pytest.raises(zlmdb.DanglingLink):
                u.jobs[4] = Task(7)
            del u.staff[1]
            assert (dict(u.staff), list(u.jobs)) == ({2: Person("bob")}, [3])
        assert new.check().ok
    with pytest.raises(zlmdb.SchemaMismatch):
        zlmdb.open(tmp_path / "db", Targets)


def test_links_that_become_none_take_little_memory_until_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    tracemalloc = pytest.importorskip("tracemalloc")  # PyPy has none
    many, held = 20_000, []

    def remove_all(*_: object) -> int:
        held.append(tracemalloc.get_traced_memory()[1])
        return 0

    with zlmdb.open(None, Office) as db, db.write() as t:
        t.people.update({number: Person("x", None) for number in range(many)})
        t.people.update({many + number: Person("x", number) for number in range(many)})
        monkeypatch.setattr("zlmdb.tables.removal.remove_all", remove_all)
        found = t.people.where(lambda person: person.boss is None)
        tracemalloc.start()
        try:
            found.delete()
        finally:
            tracemalloc.stop()
        assert t.people[many] == Person("x", None)
    assert held[0] < 900 * many  # a dict and a set for each would take 550 more
