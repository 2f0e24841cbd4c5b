"""A schema gives a program its tables in a transaction, and any other table of the file as plain data."""

from __future__ import annotations

import gc
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Callable, ClassVar, Generic, Optional, TypeVar
from uuid import UUID, uuid4

import pytest

import zlmdb

on_disk = pytest.mark.parametrize("combo", ["lmdb-tables", "lmdb-classic"], indirect=True)
T = TypeVar("T")


@dataclass
class User:
    name: str
    friend: Optional[User] = None


class Users(zlmdb.Table[int, User]):
    """Users."""


class Store(zlmdb.Schema):
    users: Users
    logins: zlmdb.Table[str, int]


class Nothing(zlmdb.Schema):
    """Declares no table."""


# -- declaring --------------------------------------------------------------------------------------------------------


def test_attributes_are_tables_of_their_class(make_db: Callable[..., Any]) -> None:
    with make_db(Store).write() as t:
        assert isinstance(t, Store)
        assert isinstance(t.users, Users)
        assert isinstance(t.logins, zlmdb.Table)
        assert t.users is t.users is t["users"]
        t.users[1] = User("ann", User("bob"))
        assert t.users[1].friend == User("bob")


def test_schemas_inherit_tables(make_db: Callable[..., Any]) -> None:
    class More(Store):
        more: zlmdb.Table[int, int]

    with make_db(More).write() as t:
        t.more[1] = 1
        t.logins["a"] = 1
        assert list(t) == ["users", "logins", "more"]


def test_two_attributes_that_are_one_table_are_refused(make_db: Callable[..., Any], combo: str) -> None:
    class People(zlmdb.Table[int, str], name="people"): ...

    class Archive(People): ...

    class Kept(People, name="kept"): ...

    class Old(zlmdb.Table[int, str], uuid="d6a4c7f0-0000-4000-8000-000000000021"): ...

    class Older(Old): ...

    class Derived(zlmdb.Schema):
        users: People
        archive: Archive

    class Uuids(zlmdb.Schema):
        old: Old
        older: Older

    class Named(zlmdb.Schema):
        people: zlmdb.Table[int, str]
        users: People

    for schema, names in (
        (Derived, "users and Derived.archive"),
        (Uuids, "old and Uuids.older"),
        (Named, "people and"),
    ):
        with pytest.raises(TypeError, match=f"{names}.* are the same table"):
            make_db(schema)

    class Apart(zlmdb.Schema):
        users: People
        archive: Kept

    class Alone(zlmdb.Schema):
        archive: Archive

    with make_db(Apart) as db, db.write() as t:
        t.users[1] = "ann"
        t.archive.clear()
        assert t.users[1] == "ann"
    with make_db(Alone) as db, db.read() as t:
        assert len(t.archive) == (not combo.startswith("memory"))


def test_schemas_may_be_mixed(make_db: Callable[..., Any]) -> None:
    class Orders(zlmdb.Schema):
        orders: zlmdb.Table[int, str]

    class Shop(Orders, Store): ...

    with make_db(Shop).write() as t:
        assert set(t) == {"users", "logins", "orders"}


def test_a_schema_inside_a_function_names_its_local_classes(make_db: Callable[..., Any]) -> None:
    """The annotations are strings here, by the import from __future__ at the top of this file."""

    @dataclass
    class Local:
        inner: Inner
        note: str = ""

    @dataclass
    class Inner:
        number: int

    Key = tuple[str, int]

    class Locals(zlmdb.Table[Key, Local]):
        by_note = zlmdb.Index("note")

    class LocalStore(zlmdb.Schema):
        locals: Locals
        plain: zlmdb.Table[Key, Local]
        json: zlmdb.Table[int, zlmdb.Json[Local]]

    assert LocalStore.__annotations__["plain"] == "zlmdb.Table[Key, Local]"
    with make_db(LocalStore).write() as t:
        value = Local(Inner(5), "n")
        for table, key in ((t.locals, ("a", 1)), (t.plain, ("a", 1)), (t.json, 7)):
            table[key] = value
            assert table[key] == value
        assert t.locals.by_note["n"].first() == (("a", 1), value)


def test_the_locals_of_each_function_are_its_own(make_db: Callable[..., Any]) -> None:
    def make(kind: type) -> type[zlmdb.Schema]:
        Value = kind

        class Local(zlmdb.Schema):
            table: zlmdb.Table[int, Value]

        return Local

    with zlmdb.open(None, make(int)) as one, zlmdb.open(None, make(str)) as other:
        with one.write() as t:
            t["table"][1] = 5
        with other.write() as t:
            t["table"][1] = "five"
            with pytest.raises(zlmdb.EncodeError):
                t["table"][1] = 5


def test_a_schema_names_tables_declared_after_it(make_db: Callable[..., Any]) -> None:
    class Early(zlmdb.Schema):
        late: Late

    class Late(zlmdb.Table[str, int]): ...

    globals()["Late"] = Late
    try:
        with make_db(Early).write() as t:
            t.late["a"] = 1
            assert isinstance(t.late, Late)
    finally:
        del globals()["Late"]


def test_class_variables_and_private_names_are_no_tables(make_db: Callable[..., Any]) -> None:
    class Mixed(zlmdb.Schema):
        version: ClassVar[int] = 3
        _hidden: int
        table: zlmdb.Table[int, int]

        def total(self) -> int:
            return sum(self.table.values())

    with make_db(Mixed).write() as t:
        assert list(t) == ["table"]
        assert t.version == 3
        t.table.update({1: 10, 2: 20})
        assert t.total() == 30


@pytest.mark.parametrize("wrong", [int, dict[str, int], Optional[Users], "zlmdb.Tabel[int, int]", User, "No"], ids=str)
def test_wrong_annotations_are_refused_with_schema_and_attribute(make_db: Callable[..., Any], wrong: Any) -> None:
    schema = type("Wrong", (zlmdb.Schema,), {"__annotations__": {"users": wrong}, "__module__": __name__})
    with pytest.raises((TypeError, NameError, AttributeError), match="users|Tabel|No"):
        make_db(schema)
    with make_db(Store) as db:
        assert db.is_open


def test_types_defined_in_the_body_of_a_schema_or_model_are_known(make_db: Callable[..., Any]) -> None:
    """The annotations are strings here, by the import from __future__ at the top of this file."""

    @dataclass
    class Person:
        @dataclass
        class Address:
            city: str

        Number = Annotated[int, "of a house"]

        address: Address
        number: Number = 0

    class People(zlmdb.Schema):
        @dataclass
        class Pet:
            name: str
            friend: Optional[Pet] = None  # noqa: F821

        class Users(zlmdb.Table[int, User]):
            by_name = zlmdb.Index("name")

        Pets = zlmdb.Table[int, Pet]

        users: Users
        pets: Pets
        people: zlmdb.Table[int, Person]
        flat: zlmdb.Table[int, zlmdb.FlatBuffers[Person]]

    with make_db(People).write() as t:
        t.users[1] = User("ann")
        assert list(t.users.by_name["ann"].keys()) == [1]
        t.pets[1] = People.Pet("rex", People.Pet("tom"))
        assert t.pets[1].friend == People.Pet("tom")
        t.people[1] = t.flat[1] = Person(Person.Address("Bonn"), 7)
        for table in (t.people, t.flat):
            assert list(table.where(lambda person: person.address.city == "Bonn").keys()) == [1]
            with pytest.raises(TypeError, match="no field 'town', it has city"):
                table.where(lambda person: person.address.town == "Bonn")


def test_a_field_whose_type_is_defined_in_the_model_is_an_index_key(make_db: Callable[..., Any]) -> None:
    @dataclass
    class Model:
        Number = int
        number: Number

    class Models(zlmdb.Table[int, Model]):
        by_number = zlmdb.Index("number")

    class One(zlmdb.Schema):
        models: Models

    with make_db(One).write() as t:
        t.models[1] = Model(5)
        assert list(t.models.by_number[5].keys()) == [1]


def test_a_name_that_is_not_defined_is_told_with_the_schema(make_db: Callable[..., Any]) -> None:
    class Wrong(zlmdb.Schema):
        users: NoSuchTable  # noqa: F821

    with pytest.raises(TypeError, match="Wrong: name 'NoSuchTable' is not defined"):
        make_db(Wrong)


@pytest.mark.parametrize("name", ["txn"])
def test_reserved_names_are_refused(make_db: Callable[..., Any], name: str) -> None:
    schema = type("Wrong", (zlmdb.Schema,), {"__annotations__": {name: zlmdb.Table[int, int]}})
    with pytest.raises(TypeError, match=f"'{name}'"):
        make_db(schema)


@pytest.mark.parametrize("name", ["slot", "open", "close", "read", "write", "items", "commit", "Table", "e", "ünï"])
def test_every_other_name_is_free(make_db: Callable[..., Any], name: str) -> None:
    schema = type("Free", (zlmdb.Schema,), {"__annotations__": {name: zlmdb.Table[int, int]}})
    with make_db(schema).write() as t:
        getattr(t, name)[1] = 5
        assert t[name][1] == 5


def test_unknown_attributes_are_answered_with_the_nearest(make_db: Callable[..., Any]) -> None:
    db = make_db(Store)
    with pytest.raises(AttributeError, match="Store.*'user'.*'users'"), db.read() as t:
        t.user  # noqa: B018
    with pytest.raises(AttributeError, match="'zzzz'.*'users', 'logins'"), db.write() as t:
        t.zzzz  # noqa: B018
    with db.read() as t:
        assert not hasattr(t, "user")
        with pytest.raises(AttributeError):
            t.__wrapped__  # noqa: B018


def test_unknown_names_are_answered_with_the_nearest(make_db: Callable[..., Any]) -> None:
    with make_db(Store).read() as t:
        with pytest.raises(KeyError, match="login.*'logins'"):
            t["login"]
        with pytest.raises(KeyError):
            t["zzzz"]


def test_schemas_may_be_generic_in_their_values(make_db: Callable[..., Any]) -> None:
    class Box(zlmdb.Table[str, T], Generic[T]): ...

    class Boxes(zlmdb.Schema):
        numbers: Box[int]
        words: Box[str]

    with make_db(Boxes).write() as t:
        t.numbers["a"] = 1
        t.words["a"] = "x"
        with pytest.raises(zlmdb.EncodeError):
            t.words["a"] = 1


# -- tables that no schema declares -----------------------------------------------------------------------------------


@on_disk
def test_undeclared_tables_are_plain_data(make_db: Callable[..., Any]) -> None:
    class Everything(zlmdb.Schema):
        users: Users
        jsons: zlmdb.Table[UUID, zlmdb.Json[User]]
        cbors: zlmdb.Table[tuple[str, int], zlmdb.Cbor[User]]
        pickles: zlmdb.Table[str, zlmdb.Pickle[User]]
        texts: zlmdb.Table[bytes, str]
        numbers: zlmdb.Table[float, int]

    ident = uuid4()
    with make_db(Everything) as db, db.write() as t:
        t.users[1] = User("ann", User("bob"))
        t.jsons[ident] = User("ann")
        t.cbors["a", 1] = User("ann")
        t.pickles["p"] = User("ann")
        t.texts[b"x"] = "text"
        t.numbers[1.5] = 7
    plain = {"name": "ann", "friend": None}
    with make_db(Nothing) as db:
        with db.read() as t:
            assert set(t) == {"users", "jsons", "cbors", "pickles", "texts", "numbers"}
            assert dict(t["users"]) == {1: {"name": "ann", "friend": {"name": "bob", "friend": None}}}
            assert dict(t["jsons"]) == {ident: plain}
            assert dict(t["cbors"]) == {("a", 1): plain}
            assert dict(t["texts"]) == {b"x": "text"}
            assert dict(t["numbers"]) == {1.5: 7}
            assert t["users"] is t["users"]
            pickled = t["pickles"]["p"]
            assert isinstance(pickled, bytes)
            assert pickled.startswith(b"\x80\x05")
            assert list(t["cbors"].select(prefix=("a",)).keys()) == [("a", 1)]
        with db.write() as t:
            t["texts"][b"y"] = "more"
            t["numbers"][2.5] = 8
            with pytest.raises(zlmdb.EncodeError):
                t["numbers"]["x"] = 8
    with make_db(Everything) as db, db.read() as t:
        assert t.texts[b"y"] == "more"
        assert t.users[1] == User("ann", User("bob"))


@on_disk
def test_a_file_opens_without_any_schema(make_db: Callable[..., Any], tmp_path: Any) -> None:
    with make_db(Store) as db, db.write() as t:
        t.logins["ann"] = 5
    with zlmdb.open(tmp_path / "db") as db:
        with db.read() as t:
            assert type(t) is zlmdb.Schema
            assert list(t) == ["users", "logins"] or set(t) == {"users", "logins"}
            assert t["logins"]["ann"] == 5
        with db.write() as t:
            t["logins"]["bob"] = 6
    with make_db(Store) as db, db.read() as t:
        assert dict(t.logins) == {"ann": 5, "bob": 6}


@on_disk
def test_extra_tables_in_a_file_are_left_alone(make_db: Callable[..., Any]) -> None:
    class Other(zlmdb.Schema):
        other: zlmdb.Table[int, int]

    with make_db(Store) as db, db.write() as t:
        t.logins["ann"] = 5
    with make_db(Other) as db, db.write() as t:
        t.other[1] = 1
        assert set(t) == {"other", "users", "logins"}
        assert next(iter(t)) == "other"
    with make_db(Store) as db, db.read() as t:
        assert dict(t.logins) == {"ann": 5}
        assert t["other"][1] == 1


@on_disk
@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (zlmdb.Table[int, int], zlmdb.Table[str, int], "keys of type int.*str"),
        (zlmdb.Table[int, int], zlmdb.Table[int, str], "values of type int.*str"),
        (zlmdb.Table[int, User], zlmdb.Table[int, zlmdb.Json[User]], "values of type msgpack.*json"),
        (zlmdb.Table[tuple[int, str], int], zlmdb.Table[tuple[str, int], int], r"keys.*\(int,str\).*\(str,int\)"),
        # As people try it who come from a classic map: a name for keys where that for values belongs.
        (zlmdb.Table[int, zlmdb.values.Oid], zlmdb.Table[int, zlmdb.keys.Oid], "stored type, zlmdb.values.Oid, use"),
        (zlmdb.Table[zlmdb.keys.String, int], zlmdb.Table[str, int], "stored type, zlmdb.keys.String, use"),
    ],
)  # fmt: skip
def test_other_types_than_the_file_has_are_refused_with_both(
    make_db: Callable[..., Any], before: Any, after: Any, words: str
) -> None:
    def schema(table: Any) -> type[zlmdb.Schema]:
        return type("Typed", (zlmdb.Schema,), {"__annotations__": {"things": table}})

    with make_db(schema(before)):
        pass
    for _ in range(2):
        with pytest.raises(zlmdb.SchemaMismatch, match=f"'things'.*{words}") as caught:
            make_db(schema(after))
        assert caught.value.table == "things"
        assert isinstance(caught.value, TypeError)
    with make_db(schema(before)) as db:
        assert db.is_open


@on_disk
def test_renaming_a_model_class_locks_nobody_out(make_db: Callable[..., Any]) -> None:
    @dataclass
    class Person:
        name: str
        friend: Optional[User] = None

    class Renamed(zlmdb.Schema):
        users: zlmdb.Table[int, Person]

    with make_db(Store) as db, db.write() as t:
        t.users[1] = User("ann")
    with make_db(Renamed) as db, db.read() as t:
        assert t.users[1] == Person("ann")


# -- transactions -----------------------------------------------------------------------------------------------------


def test_leaving_the_block_commits_and_an_exception_aborts(make_db: Callable[..., Any]) -> None:
    db = make_db(Store)
    with db.write() as t:
        t.logins["a"] = 1
    with pytest.raises(ZeroDivisionError):  # noqa: PT012, SIM117
        with db.write() as t:
            t.logins["a"] = 2
            t.logins["b"] = 2
            raise ZeroDivisionError
    with db.read() as t:
        assert dict(t.logins) == {"a": 1}


def test_tables_work_without_a_block(make_db: Callable[..., Any]) -> None:
    db = make_db(Store)
    t = db.write().__enter__()
    t.logins["a"] = 1
    t.txn.commit()
    with pytest.raises(zlmdb.TransactionClosed):
        t.logins["a"]
    t = db.read()
    assert t.logins["a"] == 1
    t.txn.abort()
    t.txn.abort()
    t = db.write().__enter__()
    t.logins["a"] = 2
    t.txn.abort()
    with db.read() as t:
        assert t.logins["a"] == 1


def test_a_block_may_end_early(make_db: Callable[..., Any]) -> None:
    db = make_db(Store)
    with db.write() as t:
        t.logins["a"] = 1
        t.txn.commit()
        with pytest.raises(zlmdb.TransactionClosed):
            t.logins["b"] = 1
    with db.write() as t:
        t.logins["a"] = 2
        t.txn.abort()
    with db.read() as t:
        assert dict(t.logins) == {"a": 1}


@pytest.mark.parametrize("name", ["users", "logins", "undeclared"])
def test_tables_taken_after_the_end_raise(make_db: Callable[..., Any], name: str) -> None:
    db = make_db(Store)
    with db.read() as t:
        pass
    with pytest.raises(zlmdb.TransactionClosed):
        len(getattr(t, name) if name != "undeclared" else t["users"])
    with pytest.raises(zlmdb.TransactionClosed), t:
        pytest.fail("an ended transaction does not begin again")


def test_nested_blocks_of_one_transaction_are_one(make_db: Callable[..., Any]) -> None:
    db = make_db(Store)
    t = db.write().__enter__()
    with t:
        t.logins["a"] = 1
    with pytest.raises(zlmdb.TransactionClosed):
        t.logins["a"]


def test_a_table_keeps_its_transaction_alive(make_db: Callable[..., Any]) -> None:
    db = make_db(Store)
    with db.write() as t:
        t.logins["a"] = 1
    t = db.read()
    table, txn = t.logins, t.txn
    del t
    gc.collect()
    assert table["a"] == 1
    txn.abort()


def test_run_gives_the_result_and_commits(make_db: Callable[..., Any]) -> None:
    db = make_db(Store)

    def bump(t: Store) -> int:
        t.logins["a"] = t.logins.get("a", 0) + 1
        return t.logins["a"]

    assert [db.run(bump), db.run(bump)] == [1, 2]
    assert db.run(lambda t: t.logins["a"], write=False) == 2
    with pytest.raises(zlmdb.ReadonlyDatabase):
        db.run(bump, write=False)

    def fails(t: Store) -> None:
        t.logins["a"] = 100
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.run(fails)
    assert db.run(lambda t: dict(t.logins), write=False) == {"a": 2}


# -- programs of zlmdb <= 26 ------------------------------------------------------------------------------------------


def test_classic_schemas_have_constructors_of_their_own() -> None:
    class Classic(zlmdb.Schema):
        def __init__(self, db: Any) -> None:
            self.db = db
            self.users = db.attach_table(ClassicUsers)

        @staticmethod
        def attach(db: Any) -> Classic:
            return Classic(db)

    @zlmdb.table("0d1f7a50-6a4c-4b57-9d52-4a45b6a3a001")
    class ClassicUsers(zlmdb.MapOidJson): ...

    with zlmdb.Database() as db:
        schema = Classic.attach(db)
        with db.begin(write=True) as txn:
            schema.users[txn, 1] = {"name": "ann"}
        with db.begin() as txn:
            assert schema.users[txn, 1] == {"name": "ann"}
        with pytest.raises(AttributeError):
            schema.other  # noqa: B018


def test_classic_schemas_hold_annotated_maps() -> None:
    class Classic(zlmdb.Schema):
        users: zlmdb.MapOidString
        by_name: zlmdb.MapStringOid

        def __init__(self) -> None:
            self.users = zlmdb.MapOidString(1)
            self.by_name = zlmdb.MapStringOid(2)
            self.users.attach_index("by_name", self.by_name, lambda name: name)

    schema = Classic()
    with zlmdb.Database() as db, db.begin(write=True) as txn:
        schema.users[txn, 5] = "ann"
        assert schema.by_name[txn, "ann"] == 5


def test_slot_numbers_a_map() -> None:
    schema = zlmdb.Schema()
    users = schema.slot(1)(zlmdb.MapOidString())
    ages = schema.slot(2)(zlmdb.MapOidOid())
    with zlmdb.Database() as db, db.begin(write=True) as txn:
        users[txn, 1] = "ann"
        ages[txn, 1] = 31
        assert users[txn, 1] == "ann"
        assert ages[txn, 1] == 31


def test_slot_takes_the_callables() -> None:
    schema = zlmdb.Schema()
    slot = schema.slot(1, marshal=lambda user: {"n": user.name}, unmarshal=lambda data: User(data["n"]))
    users = slot(zlmdb.MapOidJson())
    with zlmdb.Database() as db, db.begin(write=True) as txn:
        users[txn, 1] = User("ann")
        assert users[txn, 1] == User("ann")


def test_slot_numbers_are_given_once() -> None:
    schema = zlmdb.Schema()
    schema.slot(1)(zlmdb.MapOidString())
    with pytest.raises(ValueError, match="slot 1"):
        schema.slot(1)(zlmdb.MapOidOid())
    with pytest.raises(TypeError, match="instance"):
        schema.slot(2)(zlmdb.MapOidOid)
    zlmdb.Schema().slot(1)(zlmdb.MapOidString())


def test_classes_whose_module_is_gone_are_used_as_others(tmp_path: Path) -> None:
    """`runpy.run_path` leaves them. Python 3.9 raised KeyError where their fields were looked up."""
    program = """
import dataclasses, zlmdb
@dataclasses.dataclass
class Address:
    city: str
@dataclasses.dataclass
class User:
    age: int
    home: Address
class Users(zlmdb.Table[int, User]):
    by_age = zlmdb.Index[int]("age")
class Store(zlmdb.Schema):
    users: Users
    flat: zlmdb.Table[int, zlmdb.FlatBuffers[User]]
    """
    (tmp_path / "program.py").write_text(program)
    names = runpy.run_path(str(tmp_path / "program.py"))
    user = names["User"](2, names["Address"]("Rome"))
    with zlmdb.open(tmp_path / "db", names["Store"]) as db:
        with db.write() as t:
            t.users[1] = t.flat[1] = user
        with db.read() as t:
            for table in (t.users, t.flat):
                assert table.where(lambda user: user.age == 2 and user.home.city == "Rome").values().all() == [user]


def test_a_database_that_dies_with_the_interpreter_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    db = zlmdb.open(None, Store)
    with monkeypatch.context() as patched:
        patched.setattr("zlmdb.store.openstores.release", None)  # as modules are emptied then
        db.__del__(lambda: True)
        with pytest.raises(TypeError):
            db.__del__()
    db.close()
