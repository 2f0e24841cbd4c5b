"""A new user's first mistakes are answered with what to do instead."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import new_class
from typing import Any, get_type_hints
from uuid import UUID

import pytest

import zlmdb


@dataclass
class User:
    name: str
    email: str
    age: int


class Users(zlmdb.Table[UUID, User]):
    """Users by id."""

    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")


class Store(zlmdb.Schema):
    users: Users
    logins: zlmdb.Table[str, int]


NAMES_THE_OBJECT = hasattr(AttributeError(), "obj")
"""Whether an error of Python itself has the object, as since 3.10, so that the end of a block can say more."""
ANN = User("Ann", "ann@example.com", 31)


@pytest.fixture
def db() -> Iterator[Any]:
    """A database in memory; untyped, as these uses are none that a type checker lets pass."""
    with zlmdb.open(None, Store) as database:
        yield database


@pytest.mark.parametrize("schema", [Users, Store(), "Store", Users.by_age])
def test_a_schema_that_is_none_is_named(schema: Any) -> None:
    with pytest.raises(TypeError, match=r"expected a subclass of zlmdb\.Schema, got"):
        zlmdb.open(None, schema)


def test_a_table_of_the_database_itself_is_answered_with_a_transaction(db: Any) -> None:
    with pytest.raises(AttributeError, match=r"with db\.read\(\) as t:.* t\.users"):
        _ = db.users
    with pytest.raises(AttributeError, match="'Database' object has no attribute 'user'$"):
        _ = db.user


def test_a_table_of_a_schema_made_by_hand_is_answered_with_a_transaction() -> None:
    with pytest.raises(AttributeError, match=r"with db\.write\(\) as t:"):
        _ = Store().users
    with pytest.raises(AttributeError, match="'Store' object has no attribute 'user'$"):
        _ = Store().user  # type: ignore[attr-defined]
    with (
        zlmdb.open(None, Store),
        pytest.raises(AttributeError, match=r"^Store\.users is a table: .*with db\.write\(\) as t:"),
    ):
        _ = Store.users


def test_a_table_made_by_hand_is_answered_with_a_schema() -> None:
    with pytest.raises(TypeError, match=r"annotate an attribute of a zlmdb\.Schema"):
        Users()


def test_a_misspelt_table_is_answered_with_the_nearest_one(db: Any) -> None:
    for block in (db.read, db.write):
        with (
            pytest.raises(AttributeError, match=r"^Store declares no table 'user'; did you mean 'users'\?$"),
            block() as t,
        ):
            _ = t.user
        with pytest.raises(AttributeError, match="'other'; there are 'users', 'logins'$"), block() as t:
            _ = t.other
    with db.read() as t, pytest.raises(KeyError, match="did you mean 'logins'"):
        _ = t["login"]


@pytest.mark.parametrize(
    ("name", "advice"),
    [("paginate", r"\.page\(count, cursor\)"),
     ("append", r"table\.add\(value\)"), ("filter", r"\.where\("), ("all", r"\.select\(\)\.all\(\)"),
     ("sum", r"\.fields\(")],
)  # fmt: skip
def test_what_a_table_does_not_have_is_answered_with_what_to_write(db: Any, name: str, advice: str) -> None:
    with db.read() as t:
        with pytest.raises(AttributeError, match=f"'Users' object has no attribute '{name}': .*{advice}") as caught:
            getattr(t.users, name)
        assert not hasattr(t.users, name)
    assert getattr(caught.value, "obj", None) is None  # else Python would add a suggestion


@pytest.mark.parametrize(
    ("name", "advice"), [("by_aeg", ": did you mean 'by_age'?"), ("selekt", ": did you mean 'select'?"), ("zzzz", "")]
)
def test_what_is_misspelt_of_a_table_is_answered_with_the_nearest_name(db: Any, name: str, advice: str) -> None:
    for block in (db.read, db.write):
        with pytest.raises(AttributeError) as caught, block() as t:
            getattr(t.users, name)
        assert str(caught.value) == f"'Users' object has no attribute '{name}'" + advice * NAMES_THE_OBJECT
        shown = "".join(traceback.format_exception(AttributeError, caught.value, None, chain=False))
        assert shown == f"AttributeError: {caught.value}\n"  # and no suggestion of Python's own


def test_a_field_of_many_records_is_answered_with_how_to_take_one(db: Any) -> None:
    advice = r": .* any number of records: write .values\(\)\.first\(\)" if NAMES_THE_OBJECT else "$"
    for many in (lambda t: t.users.by_age[32], lambda t: t.users.select()):
        with pytest.raises(AttributeError, match=rf"no attribute 'email'{advice}"), db.read() as t:
            _ = many(t).email
    with db.read() as t:
        with pytest.raises(AttributeError, match=r"'filter': write \.where\("):
            _ = t.users.by_age.filter
        with pytest.raises(AttributeError, match=r"'get': write selection\[key\]"):
            _ = t.users.select().get
        with pytest.raises(AttributeError, match=r"'items': a selection gives the pairs itself"):
            _ = t.users.where(lambda user: user.age == 32).items


def test_fields_given_to_where_by_name_are_answered_with_a_function(db: Any) -> None:
    with db.read() as t:
        for where in (t.users.where, t.users.select().where, t.users.by_age.where):
            with pytest.raises(TypeError, match=r"write where\(lambda record: record\.email == .* and record\.age =="):
                where(email="ann@example.com", age=32)
            with pytest.raises(TypeError, match="expected a function"):
                where()


def test_a_dict_given_to_put_many_is_refused(db: Any) -> None:
    """Its keys would be taken apart as pairs: "ab" into "a" and "b"."""
    with db.write() as t:
        with pytest.raises(TypeError, match=r"items\(\) of the dict, or call update\(\)"):
            t.logins.put_many({"ab": 1})
        assert t.logins.put_many({"ab": 1}.items()) == 1
    with pytest.raises(TypeError, match=r"items\(\) of the dict, or call update\(\)"):
        db.auto.logins.put_many({"ab": 1})


def test_a_table_is_not_replaced_by_assigning_to_it(db: Any) -> None:
    with db.write() as t:
        with pytest.raises(AttributeError, match=r"t\.logins\.update"):
            t.logins = {"ann": 1}
        t.logins["ann"] = 1
    with db.read() as t:
        assert dict(t.logins) == {"ann": 1}


@pytest.mark.parametrize("index", ["by_email", "by_age"])
def test_an_index_is_not_iterated_over_and_not_assigned_to(db: Any, index: str) -> None:
    with db.write() as t:
        t.users.add(ANN)
        view = getattr(t.users, index)
        with pytest.raises(TypeError, match="not iterable"):
            list(view)  # would try view[0], view[1], ... for ever
        with pytest.raises(TypeError, match="item assignment"):
            view["ann@example.com"] = ANN


def test_adding_without_a_rule_for_keys_says_how_to_give_one(db: Any) -> None:
    with db.write() as t, pytest.raises(TypeError, match=r"table\[key\] = value, or .* key="):
        t.logins.add(1)


def test_a_path_without_a_database_says_how_one_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="check the path, or open it writable with a schema"):
        zlmdb.open(tmp_path / "typo")


def test_options_that_differ_are_named_and_no_others(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store), pytest.raises(zlmdb.DatabaseInUse) as caught:
        zlmdb.open(tmp_path, Store, readonly=True)
    assert "with readonly=False, not with readonly=True:" in str(caught.value)


def test_a_part_of_a_key_that_does_not_fit_is_shown_whole() -> None:
    codec = zlmdb.keys.key_codec(tuple[str, UUID])
    with pytest.raises(zlmdb.EncodeError, match=r"part 2 of tuple\(str,uuid\): '0{8}-(0{4}-){3}0{12}' is not a key"):
        codec.encode(("ann", str(UUID(int=0))))


def test_the_hints_of_a_table_class_can_be_looked_up() -> None:
    assert get_type_hints(Users)["_name"] is str


class NoKeyType(zlmdb.Table[UUID, User]):
    """An index whose keys cannot be sorted."""

    by_name = zlmdb.Index[list]("name")  # type: ignore[type-arg]


class NoTypes(zlmdb.Table):
    """A table that says nothing."""


class NoModel(zlmdb.Table[UUID, "Usr"]):  # type: ignore[name-defined]
    """A table of what is not defined."""


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (NoKeyType, r"index 'by_name': list is not a key type; there are int, str,"),
        (NoTypes, r"table 'rows': NoTypes declares no types: derive it from Table\[KeyType, ValueType\]"),
        (NoModel, r"table 'rows': the type .*'Usr'.* is not defined"),
        (dict[str, int], r"Wrong\.rows is annotated with dict\[str, int\], which is not a table"),
    ],
)
def test_a_declaration_that_means_nothing_is_refused_before_there_is_a_record(table: Any, said: str) -> None:
    class Wrong(zlmdb.Schema):
        rows: table

    with pytest.raises(TypeError, match=said):
        zlmdb.open(None, Wrong)


def test_an_index_may_name_a_property_and_a_field_of_a_field() -> None:
    @dataclass
    class Shop:
        owner: User

        @property
        def initial(self) -> str:
            return self.owner.name[0]

    class Shops(zlmdb.Table[int, Shop]):
        """Shops, numbered."""

        by_initial = zlmdb.Index[str]("initial")
        by_email = zlmdb.UniqueIndex[str]("owner.email")

    class Town(zlmdb.Schema):
        shops: Shops

    with zlmdb.open(None, Town) as db, db.write() as t:
        key = t.shops.add(Shop(ANN))
        assert t.shops.by_email.key("ann@example.com") == key
        assert t.shops.by_initial["A"].count() == 1


def with_body(**body: Any) -> Any:
    return lambda: new_class("Posts", (zlmdb.Table[int, User],), {}, lambda namespace: namespace.update(body))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (with_body(by_age=zlmdb.Index[int]), 'by_age = zlmdb.Index[int]("field")'),
        (with_body(by_age=zlmdb.UniqueIndex), 'by_age = zlmdb.UniqueIndex("field")'),
        (with_body(__annotations__={"by_age": zlmdb.Index[int]}), 'by_age = zlmdb.Index[int]("field")'),
        (with_body(__annotations__={"by_age": zlmdb.Index[int]("age")}), "for the colon, by_age = Index[int]('age')"),
        (with_body(__annotations__={"by_age": "zlmdb.Index[int]"}, __module__=__name__), "declares no index: call it"),
        (with_body(by=zlmdb.UniqueIndex[str]("mai")), "index 'by': User has no field 'mai' (it has name, email, age)"),
        (with_body(by=zlmdb.Index("mail.host")), "index 'by': User has no field 'mail' (it has name, email, age)"),
        (
            lambda: new_class("Posts", (zlmdb.Table[int, User],), {"expires": "untill"}),
            "expires='untill': User has no field 'untill' (it has name, email, age)",
        ),
        (
            lambda: new_class("Posts", (zlmdb.Table[int, User],), {"expires": "name"}),
            "expires='name': the field is of ",
        ),
        (lambda: new_class("Posts", (zlmdb.Table[int, User],), {"key": "idd"}), "has no field 'idd' (it has "),
        (lambda: new_class("Posts", (zlmdb.Table[int, User],), {"key": "email"}), "'email' that key= names is str"),
    ],
)
def test_an_index_or_key_that_the_class_cannot_have_is_refused_when_it_is_made(made: Any, said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        made()


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda db: db.attach_table(Users), TypeError, "db.table(name, Users)"),
        (
            lambda db: db.table("rows", type("Rows", (zlmdb.Table,), {})),
            TypeError,
            "db.table(name, KeyType, ValueType)",
        ),
        (lambda db: db.table("", str, int), TypeError, "give a name and the types"),
        (lambda db: db.run(lambda t: db.table("rows", str, int)), zlmdb.NestedTransaction, "before the block"),
        (lambda db: db.dump("file"), TypeError, "open(path, 'wb')"),
        (lambda db: db.load("file"), TypeError, "open(path, 'rb')"),
        (lambda db: zlmdb.open("data", Store, mode="600"), ValueError, "such as 0o600"),
    ],
)
def test_the_wrong_way_names_the_right_one(db: Any, call: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=re.escape(said)):
        call(db)


def test_a_table_is_made_of_an_alias_as_a_schema_declares_one(db: Any) -> None:
    counts = db.table("counts", zlmdb.Table[str, int])
    with db.write() as t:
        t[counts]["a"] = 1
        assert dict(t["counts"]) == {"a": 1}


def test_the_types_of_plain_values_are_changed_by_the_migration_that_the_error_names(tmp_path: Path) -> None:
    class Shares(zlmdb.Schema):
        logins: zlmdb.Table[str, float]

    with zlmdb.open(tmp_path, Store) as db, db.write() as t:
        t.logins["ann"] = 3
    with pytest.raises(zlmdb.SchemaMismatch, match=re.escape("for key, value in old.take('logins').items()")):
        zlmdb.open(tmp_path, Shares)

    def step(t: Any, old: Any) -> None:
        for key, value in old.take("logins").items():
            t.logins[key] = value / 2

    class Halves(Shares):
        migrations = (zlmdb.Migration(1, "halves", step),)

    with zlmdb.open(tmp_path, Halves) as db:
        db.migrate()
        with db.read() as t:
            assert dict(t.logins) == {"ann": 1.5}
