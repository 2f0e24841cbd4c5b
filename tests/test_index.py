"""Indexes are in step with their table after every statement, and a refused statement changes nothing."""

from __future__ import annotations

import itertools
import logging
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, TypedDict
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import zlmdb

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python

CLASSIC_INDEX = "9a5f9b3e-2f5b-4d0c-8a58-7a6c6d646201"


@dataclass
class User:
    name: str
    email: Optional[str] = None
    age: Optional[int] = None
    city: str = ""


class Users(zlmdb.Table[int, User]):
    """Users, indexed in every way."""

    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")
    by_city_age = zlmdb.Index("city", "age")
    by_name_city = zlmdb.UniqueIndex("name", "city")
    by_initial = zlmdb.Index[str](lambda user: user.name[:1] or None, version=1)
    by_folded = zlmdb.UniqueIndex[str](lambda user: user.name.lower() + "/" + user.city, version=3)


class Store(zlmdb.Schema):
    users: Users
    plain: zlmdb.Table[int, int]


class Bare(zlmdb.Schema):
    """The same file, known without its classes."""

    users: zlmdb.Table[int, User]


PEOPLE = {
    1: User("Ann", "ann@x", 31, "Oslo"),
    2: User("Bob", "bob@x", 31, "Rome"),
    3: User("Cid", None, 40, "Oslo"),
    4: User("Dora", "dora@x", None, "Oslo"),
    5: User("Ann", "ann2@x", 25, "Rome"),
    -1: User("", "nobody@x", 0, ""),
}


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    with db.write() as t:
        t.users.update(PEOPLE)
        t.plain[1] = 1
    return db


@pytest.fixture
def t(db: Any) -> Iterator[Any]:
    with db.write() as tables:
        yield tables


def entries(table: Any) -> dict[str, list[Any]]:
    """Everything that is stored for a table and its indexes."""
    found: dict[str, list[Any]] = {"records": list(table.items())}
    for storage, handle in table._indexes:
        cursor = table._cursor(handle)
        place = storage.storage
        rows = cursor.iternext() if cursor.set_range(place.lower or b"\0") else ()
        found[storage.name] = [(bytes(key), bytes(data)) for key, data in rows if bytes(key) < place.upper]
    return found


# What a second opening finds: a database in memory has none.
on_disk = pytest.mark.parametrize("combo", ["lmdb-tables", "lmdb-classic"], indirect=True)


# -- reading ----------------------------------------------------------------------------------------------------------


def test_a_unique_index_finds_the_record(t: Any) -> None:
    view = t.users.by_email
    assert view["bob@x"] == PEOPLE[2]
    assert view.key("bob@x") == view.key("bob@x", None) == 2
    assert view.key("zz", None) is None
    assert view.get("bob@x") == PEOPLE[2]
    assert "bob@x" in view
    assert "zz" not in view
    assert view.get("zz") is None
    assert view.get("zz", PEOPLE[1]) is PEOPLE[1]
    for missing in (lambda: view["zz"], lambda: view.key("zz")):
        with pytest.raises(KeyError) as caught:
            missing()
        assert caught.value.args == ("zz",)


def test_a_unique_index_of_several_fields_takes_tuples(t: Any) -> None:
    view = t.users.by_name_city
    assert view["Ann", "Rome"] == PEOPLE[5]
    assert view.key(("Ann", "Oslo")) == 1
    assert view["", ""] == PEOPLE[-1]
    assert ("Bob", "Oslo") not in view
    assert list(view.select(prefix=("Ann",)).keys()) == [1, 5]
    assert list(view.select(("B", ""), ("D", ""))) == [(2, PEOPLE[2]), (3, PEOPLE[3])]


def test_an_index_gives_the_records_of_a_key_in_the_order_of_their_keys(t: Any) -> None:
    assert list(t.users.by_age[31]) == [(1, PEOPLE[1]), (2, PEOPLE[2])]
    assert list(t.users.by_age[31].keys()) == [1, 2]
    assert t.users.by_age[31].count() == 2
    assert list(t.users.by_age[0]) == [(-1, PEOPLE[-1])]
    assert list(t.users.by_age[99]) == []
    assert not t.users.by_age[99]
    assert 31 in t.users.by_age
    assert 0 in t.users.by_age
    assert 99 not in t.users.by_age
    assert t.users.by_age[31].first() == (1, PEOPLE[1])
    assert t.users.by_age[31].last() == (2, PEOPLE[2])


def test_index_order_bounds_reverse_and_limit(t: Any) -> None:
    view = t.users.by_age
    assert [user.age for user in view.select().values()] == [0, 25, 31, 31, 40]
    assert list(view.select().keys()) == [-1, 5, 1, 2, 3]
    assert list(view.select(reverse=True).keys()) == [3, 2, 1, 5, -1]
    assert list(view.select(25, 40).keys()) == [5, 1, 2]
    assert list(view.select(25, 40, reverse=True, limit=2).keys()) == [2, 1]
    assert list(view.select(0, 1).keys()) == [-1]
    assert list(view.select(None, 0).keys()) == []
    assert list(view.select(26).keys()) == [1, 2, 3]
    assert view.select(limit=2).count() == 2
    assert view.select().count() == 5
    assert view.select().first() == (-1, PEOPLE[-1])
    assert view.select().last() == (3, PEOPLE[3])


def test_composite_index_prefixes(t: Any) -> None:
    view = t.users.by_city_age
    assert list(view.select(prefix=("Oslo",)).keys()) == [1, 3]
    assert list(view.select(prefix=("Oslo", 40)).keys()) == [3]
    assert list(view.select(prefix=("Os",)).keys()) == []
    assert list(view.select(startswith="Os").keys()) == [1, 3]
    assert list(view.select(prefix=("Rome",), reverse=True).keys()) == [2, 5]
    assert list(view.select(("Oslo", 32), ("Rome", 30)).keys()) == [3, 5]
    assert list(view["Rome", 31].keys()) == [2]
    assert list(t.users.by_initial.select(startswith="A").keys()) == [1, 5]
    assert list(t.users.by_email.select(startswith="ann").keys()) == [5, 1]


def test_a_key_of_several_fields_is_given_whole(t: Any) -> None:
    assert list(t.users.by_city_age[("Oslo", 40)].keys()) == [3]
    for part in ("Oslo",), (), ("Oslo", 40, 3), "Oslo":
        with pytest.raises(zlmdb.EncodeError):
            t.users.by_city_age[part]
        with pytest.raises(zlmdb.EncodeError):
            part in t.users.by_city_age  # noqa: B015


@pytest.mark.parametrize("primary", [zlmdb.keys.Oid, zlmdb.keys.Uint8, int, str], ids=repr)
def test_a_text_at_the_end_of_an_index_key_is_whole(make_db: Callable[..., Any], primary: Any) -> None:
    """Whatever ends it in an entry: the first byte of some primary keys does."""

    @dataclass
    class Row:
        org: int
        name: str

    base: Any = zlmdb.Table[primary, Row]

    class Rows(base):  # type: ignore[misc]
        by = zlmdb.Index[tuple[zlmdb.keys.Oid, zlmdb.keys.String]]("org", "name")
        by_name = zlmdb.Index[zlmdb.keys.String]("name")
        by_unique = zlmdb.UniqueIndex[zlmdb.keys.String]("name")

    schema: Any = type("Named", (zlmdb.Schema,), {"__annotations__": {"rows": Rows}})
    keys = ["1", "2"] if primary is str else [1, 2]
    with make_db(schema).write() as t:
        t.rows[keys[0]], t.rows[keys[1]] = Row(1, "abc"), Row(1, "abcd")
        for text, found in (("ab", []), ("abc", keys[:1]), ("abcd", keys[1:])):
            assert list(t.rows.by[1, text].keys()) == list(t.rows.by_name[text].keys()) == found
            assert ((1, text) in t.rows.by) is (text in t.rows.by_name) is bool(found)
        assert [(key, list(rows.keys())) for key, rows in t.rows.by.groups()] == [
            ((1, "abc"), keys[:1]), ((1, "abcd"), keys[1:]),
        ]  # fmt: skip
        none: Any = None
        assert t.rows.by_name[none].count() == 0  # the empty text, of which there is no record
        t.rows[keys[0]] = Row(2, "")
        assert list(t.rows.by_name[none].keys()) == list(t.rows.by_name[""].keys()) == keys[:1]
        assert t.rows.by_unique.key("") == keys[0]


def test_none_is_asked_for_as_the_zero_of_a_named_type(make_db: Callable[..., Any]) -> None:
    @dataclass
    class Doc:
        owner: UUID

    class Docs(zlmdb.Table[int, Doc]):
        by_owner = zlmdb.UniqueIndex[zlmdb.keys.Uuid]("owner")

    class Store(zlmdb.Schema):
        docs: Docs

    none: Any = None
    with make_db(Store).write() as t:
        t.docs[1] = Doc(UUID(int=1))
        assert t.docs.by_owner.get(none) is None
        assert none not in t.docs.by_owner
        t.docs[2] = Doc(UUID(int=0))
        assert t.docs.by_owner.key(none) == 2


def test_groups_are_the_keys_with_their_records(t: Any) -> None:
    assert [(age, list(rows.keys())) for age, rows in t.users.by_age.groups()] == [
        (0, [-1]), (25, [5]), (31, [1, 2]), (40, [3]),
    ]  # fmt: skip
    pairs = [key for key, _ in t.users.by_city_age.groups()]
    assert pairs == [("", 0), ("Oslo", 31), ("Oslo", 40), ("Rome", 25), ("Rome", 31)]
    groups = t.users.by_age.groups()
    assert next(groups)[0] == 0
    t.users[6] = User("Eve", age=7)
    t.users.by_age[31].delete()
    assert [age for age, _ in groups] == [25, 40]  # of those that were there when it began
    t.users.clear()
    assert list(t.users.by_age.groups()) == []


def test_index_keys_are_those_of_the_whole_type(make_db: Callable[..., Any], check_indexes: Any) -> None:
    class Word(NamedTuple):
        text: str
        raw: bytes
        when: datetime

    class Words(zlmdb.Table[str, Word]):
        by_text = zlmdb.Index("text")
        by_raw = zlmdb.Index("raw")
        by_when = zlmdb.Index("when")
        by_all = zlmdb.Index("text", "raw", "when")

    class Book(zlmdb.Schema):
        words: Words

    when = datetime(2024, 1, 1, tzinfo=timezone.utc)
    texts = ["", "\x00", "\x00\x00", "\x00\x01", "a", "a\x00", "a\x00b", "aa", "b", "é"]
    with make_db(Book).write() as t:
        for i, (text, raw) in enumerate(itertools.product(texts, [b"", b"\x00", b"\xff"])):
            t.words[f"{i:03}"] = Word(text, raw, when)
            t.words["\x00" + f"{i:03}"] = Word(text, raw, when)
        check_indexes(t.words)
        ordered = [word.text for word in t.words.by_text.select().values()]
        assert ordered == sorted(ordered)
        for text in texts:
            assert {word.text for word in t.words.by_text[text].values()} == {text}
            assert t.words.by_text[text].count() == 6
            assert t.words.by_text.select(startswith=text).count() == 6 * sum(other.startswith(text) for other in texts)
        assert t.words.by_raw[b""].count() == 20
        assert t.words.by_raw.select(startswith=b"").count() == 60
        assert t.words.by_when[when].count() == 60
        assert list(t.words.by_all["a", b"\x00", when].keys()) == ["\x00013", "013"]


def test_index_keys_of_the_wrong_type_are_refused_with_the_index(t: Any) -> None:
    for use in (
        lambda: t.users.by_email[5], lambda: t.users.by_email.key(5), lambda: t.users.by_email.get(5),
        lambda: 5 in t.users.by_email, lambda: t.users.by_email.select(5), lambda: t.users.by_age["x"],
        lambda: "x" in t.users.by_age, lambda: t.users.by_age.select(stop="x"), lambda: t.users.by_city_age["Oslo"],
        lambda: t.users.by_email.select(startswith=5), lambda: t.users.by_age[None], lambda: t.users.by_email[None],
    ):  # fmt: skip
        with pytest.raises(zlmdb.EncodeError, match="users.by_"):
            use()


def test_views_are_read_by_their_table_and_have_a_repr(t: Any) -> None:
    assert "users.by_email" in repr(t.users.by_email)
    assert isinstance(t.users.by_email, zlmdb.UniqueIndexView)
    assert isinstance(t.users.by_age, zlmdb.IndexView)
    assert isinstance(Users.by_age, zlmdb.Index)
    assert isinstance(Users.by_email, zlmdb.UniqueIndex)
    assert t.users.by_age is t.users.by_age


@pytest.mark.parametrize(
    "use",
    [
        lambda view: view.by_email["ann@x"], lambda view: view.by_email.get("ann@x"),
        lambda view: view.by_email.key("ann@x"), lambda view: "ann@x" in view.by_email,
        lambda view: view.by_age[31].count(), lambda view: list(view.by_age.groups()), lambda view: 31 in view.by_age,
        lambda view: list(view.by_age.select()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("write", [False, True])
def test_views_raise_after_the_end(db: Any, use: Callable[[Any], Any], write: bool) -> None:
    class Kept(NamedTuple):
        by_email: Any
        by_age: Any

    t = db.write().__enter__() if write else db.read()
    views = Kept(t.users.by_email, t.users.by_age)
    table = t.users
    use(views)
    t.txn.commit()
    with pytest.raises(zlmdb.TransactionClosed):
        use(views)
    with pytest.raises(zlmdb.TransactionClosed):
        use(table)


# -- what is in an index ----------------------------------------------------------------------------------------------


def test_records_without_an_index_key_are_not_in_the_index(t: Any, check_indexes: Any) -> None:
    assert 3 not in t.users.by_email.select().keys()  # noqa: SIM118 - of a selection, not of a dict
    assert 4 not in t.users.by_age.select().keys()  # noqa: SIM118
    assert 4 not in t.users.by_city_age.select().keys()  # noqa: SIM118
    assert -1 not in t.users.by_initial.select().keys()  # noqa: SIM118
    t.users[3] = replace(PEOPLE[3], email="cid@x")
    assert t.users.by_email.key("cid@x") == 3
    t.users[3] = PEOPLE[3]
    assert "cid@x" not in t.users.by_email
    check_indexes(t.users)


def test_many_records_without_a_key_are_allowed_in_a_unique_index(t: Any, check_indexes: Any) -> None:
    for i in range(10, 15):
        t.users[i] = User(f"n{i}", None)
    assert t.users.by_email.select().count() == 5
    check_indexes(t.users)


def test_key_types_are_read_from_the_model(make_db: Callable[..., Any]) -> None:
    @dataclass
    class Model:
        number: int
        maybe: Optional[int]
        text: Optional[str]
        ident: UUID
        pair: tuple[int, str]

    class Models(zlmdb.Table[int, Model]):
        by_number = zlmdb.Index("number")
        by_maybe = zlmdb.UniqueIndex("maybe")
        by_text = zlmdb.Index("text")
        by_ident = zlmdb.Index("ident")
        by_pair = zlmdb.Index("pair")
        by_mixed = zlmdb.UniqueIndex("ident", "maybe", "pair")
        by_narrow = zlmdb.Index[zlmdb.keys.Uint16]("number")
        by_keyword = zlmdb.Index("number", key=float)

    class One(zlmdb.Schema):
        models: Models

    with make_db(One).write() as t:
        ident = uuid4()
        t.models[1] = Model(5, None, None, ident, (1, "x"))
        t.models[2] = Model(-5 + 10, 7, "t", ident, (1, "x"))
        assert list(t.models.by_number[5].keys()) == [1, 2]
        assert t.models.by_maybe.key(7) == 2
        assert list(t.models.by_text.select().keys()) == [2]
        assert list(t.models.by_ident[ident].keys()) == [1, 2]
        assert list(t.models.by_pair[1, "x"].keys()) == [1, 2]
        assert t.models.by_mixed.key((ident, 7, (1, "x"))) == 2
        assert list(t.models.by_narrow[5].keys()) == [1, 2]
        assert list(t.models.by_keyword[5.0].keys()) == [1, 2]
        with pytest.raises(zlmdb.EncodeError, match="by_narrow"):
            t.models[3] = Model(-1, None, None, ident, (1, "x"))
        assert len(t.models) == 2


@pytest.mark.parametrize("kind", ["dataclass", "namedtuple", "typeddict", "dict", "attrs", "pickled"])
def test_fields_are_read_of_every_kind_of_model(make_db: Callable[..., Any], kind: str, check_indexes: Any) -> None:
    attrs = pytest.importorskip("attrs")

    @dataclass
    class AsDataclass:
        name: str
        age: Optional[int]

    class AsNamedTuple(NamedTuple):
        name: str
        age: Optional[int]

    class AsTypedDict(TypedDict):
        name: str
        age: Optional[int]

    @attrs.define
    class AsAttrs:
        name: str
        age: Optional[int]

    value, model = {
        "dataclass": (AsDataclass, AsDataclass),
        "namedtuple": (AsNamedTuple, AsNamedTuple),
        "typeddict": (AsTypedDict, AsTypedDict),
        "dict": (zlmdb.Cbor[dict[str, Any]], dict),
        "attrs": (AsAttrs, AsAttrs),
        "pickled": (zlmdb.Pickle[User], User),
    }[kind]

    class Models(zlmdb.Table[int, value]):  # type: ignore[valid-type]
        by_name = zlmdb.UniqueIndex[str]("name")
        by_both = zlmdb.Index[tuple[str, int]]("name", "age")

    class One(zlmdb.Schema):
        models: Models

    with make_db(One).write() as t:
        t.models[1] = model(name="a", age=5)
        t.models[2] = model(name="b", age=None)
        assert t.models.by_name.key("b") == 2
        assert list(t.models.by_both["a", 5].keys()) == [1]
        assert t.models.by_both.select().count() == 1
        with pytest.raises(zlmdb.DuplicateKey):
            t.models[3] = model(name="a", age=1)
        check_indexes(t.models)


def test_members_that_plain_data_may_lack_are_no_index_key(make_db: Callable[..., Any], check_indexes: Any) -> None:
    class Partial(TypedDict, total=False):
        name: str
        age: int

    class Partials(zlmdb.Table[int, Partial]):
        by_name = zlmdb.UniqueIndex[str]("name")
        by_both = zlmdb.Index[tuple[str, int]]("name", "age")

    class Plain(zlmdb.Table[int, zlmdb.Json[dict[str, Any]]]):
        by_name = zlmdb.UniqueIndex[str]("name")
        by_both = zlmdb.Index[tuple[str, int]]("name", "age")

    class One(zlmdb.Schema):
        partials: Partials
        plain: Plain

    with make_db(One).write() as t:
        for table in (t.partials, t.plain):
            table[1] = {}
            table[2] = {"age": 5}
            table[3] = {"name": "x", "age": 5}
            assert list(table.by_name.select().keys()) == [3]
            assert list(table.by_both.select().keys()) == [3]
            check_indexes(table)


def test_models_that_are_false_or_empty_are_indexed(make_db: Callable[..., Any], check_indexes: Any) -> None:
    @dataclass
    class Falsy:
        name: str

        def __bool__(self) -> bool:
            return False

        def __len__(self) -> int:
            return 0

    class Things(zlmdb.Table[int, Falsy]):
        by_name = zlmdb.UniqueIndex[str]("name")
        by_length = zlmdb.Index[int](lambda thing: len(thing.name), version=1)

    class One(zlmdb.Schema):
        things: Things

    with make_db(One).write() as t:
        t.things[0] = Falsy("")
        t.things[1] = Falsy("a")
        assert t.things.by_name[""] == Falsy("")
        assert t.things.by_name.key("") == 0
        assert list(t.things.by_length[0].keys()) == [0]
        t.things[0] = Falsy("b")
        assert "" not in t.things.by_name
        check_indexes(t.things)
        del t.things[0]
        check_indexes(t.things)
        assert t.things.by_name.select().count() == 1


# -- declaring --------------------------------------------------------------------------------------------------------


def test_a_function_needs_a_version_and_a_type(make_db: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="version=1"):
        zlmdb.Index[str](lambda user: user.name)

    class Untyped(zlmdb.Table[int, User]):
        by_name = zlmdb.Index(lambda user: user.name, version=1)

    class One(zlmdb.Schema):
        users: Untyped

    with pytest.raises(TypeError, match="by_name"):
        make_db(One)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (zlmdb.Index("nome"), "by_x.*no field 'nome'.*name"),
        (zlmdb.Index[complex]("name"), "by_x|complex"),
    ],
)
def test_wrong_declarations_are_refused_when_opening(make_db: Callable[..., Any], index: Any, words: str) -> None:
    def opened() -> None:  # the class refuses a field that there is not, as `test_first_steps` says
        class Wrong(zlmdb.Table[int, User]):
            by_x = index

        class One(zlmdb.Schema):
            users: Wrong

        make_db(One)

    with pytest.raises(TypeError, match=words):
        opened()


def test_indexes_are_inherited(make_db: Callable[..., Any], check_indexes: Any) -> None:
    class More(Users):
        by_city = zlmdb.Index[str]("city")

    class One(zlmdb.Schema):
        more: More

    with make_db(One).write() as t:
        t.more.update(PEOPLE)
        assert list(t.more.by_city["Oslo"].keys()) == [1, 3, 4]
        assert t.more.by_email.key("ann@x") == 1
        assert len(t.more._indexes) == 7
        check_indexes(t.more)


def test_two_tables_of_one_class_have_indexes_of_their_own(make_db: Callable[..., Any], check_indexes: Any) -> None:
    class Two(zlmdb.Schema):
        one: Users
        other: Users

    with make_db(Two).write() as t:
        t.one.update(PEOPLE)
        t.other[7] = PEOPLE[1]
        assert t.one.by_email.key("ann@x") == 1
        assert t.other.by_email.key("ann@x") == 7
        t.one.clear()
        assert t.other.by_email.key("ann@x") == 7
        assert "ann@x" not in t.one.by_email
        check_indexes(t.one)
        check_indexes(t.other)


# -- entries in step --------------------------------------------------------------------------------------------------


def test_entries_follow_every_statement(t: Any, check_indexes: Any) -> None:
    users = t.users
    check_indexes(users)
    users[1] = replace(PEOPLE[1], age=77)
    check_indexes(users)
    users[2] = replace(PEOPLE[2], email=None, age=None)
    check_indexes(users)
    del users[3]
    check_indexes(users)
    users.pop(4)
    check_indexes(users)
    users.popitem()
    check_indexes(users)
    users.setdefault(9, User("Zed", "zed@x", 1))
    users.setdefault(9, User("Zed", "other@x", 1))
    check_indexes(users)
    with users.edit(9) as user:
        user.name, user.email = "Zack", "zack@x"
    check_indexes(users)
    users.put_many((i, User(f"p{i}", f"p{i}@x", i % 3)) for i in range(20, 40))
    check_indexes(users)
    users.put_many(((i, User(f"p{i}", f"p{i}@x", i % 3)) for i in range(100, 140)), append=True)
    check_indexes(users)
    users.add(User("added", "added@x", 1))
    check_indexes(users)
    assert users.select(20, 30).delete() == 10
    assert users.by_age[1].delete() > 5
    check_indexes(users)
    users.clear()
    check_indexes(users)
    assert all(not rows for rows in entries(users).values())
    users.update(PEOPLE)
    check_indexes(users)
    assert dict(t.plain) == {1: 1}


def test_entries_follow_savepoints(t: Any, check_indexes: Any) -> None:
    before = entries(t.users)
    with suppress(ZeroDivisionError), t.txn.savepoint():
        t.users[1] = User("changed", "changed@x", 1)
        del t.users[2]
        t.users.by_city_age.select().delete()
        raise ZeroDivisionError
    assert entries(t.users) == before
    with t.txn.savepoint():
        t.users[1] = User("changed", "changed@x", 1)
    assert t.users.by_email.key("changed@x") == 1
    check_indexes(t.users)


def test_entries_follow_aborts(db: Any, check_indexes: Any) -> None:
    with suppress(ZeroDivisionError), db.write() as t:
        t.users.clear()
        t.users[50] = User("new", "new@x")
        raise ZeroDivisionError
    with db.read() as t:
        assert dict(t.users) == PEOPLE
        assert t.users.by_email.key("ann@x") == 1
        assert "new@x" not in t.users.by_email
        check_indexes(t.users)


def test_an_index_key_moves_between_records(t: Any, check_indexes: Any) -> None:
    t.users[1] = replace(PEOPLE[1], email=None)
    t.users[2] = replace(PEOPLE[2], email="ann@x")
    assert t.users.by_email.key("ann@x") == 2
    del t.users[2]
    t.users[4] = replace(PEOPLE[4], email="ann@x")
    assert t.users.by_email.key("ann@x") == 4
    check_indexes(t.users)


people = st.builds(
    User, st.sampled_from(["", "a", "A", "b", "bb"]), st.none() | st.sampled_from(["x", "y", "z", ""]),
    st.none() | st.integers(-2, 2), st.sampled_from(["", "p", "q"]),
)  # fmt: skip
statements = st.lists(
    st.tuples(st.sampled_from(["put", "put", "put", "del", "truncate", "select", "index"]), st.integers(0, 6), people),
    max_size=25,
)  # fmt: skip


@pytest.fixture(scope="module", params=["tables", "classic"])
def shared(request: pytest.FixtureRequest) -> Iterator[Any]:
    with zlmdb.open(None, Store, layout=request.param) as db:
        yield db


@given(statements)
@settings(
    max_examples=min(50, settings.default.max_examples), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_random_statements_leave_indexes_and_records_in_step(shared: Any, check_indexes: Any, todo: Any) -> None:
    t = shared.write().__enter__()
    users, expected = t.users, {}
    for verb, key, user in todo:
        if verb == "put":
            taken = any(
                other != key
                and (
                    (user.email is not None and user.email == one.email)
                    or (one.name, one.city) == (user.name, user.city)
                    or (one.name.lower(), one.city) == (user.name.lower(), user.city)
                )
                for other, one in expected.items()
            )
            before = entries(users) if taken else None
            try:
                users[key] = user
            except zlmdb.DuplicateKey:
                assert taken
                assert entries(users) == before
            else:
                assert not taken
                expected[key] = user
        elif verb == "del":
            assert users.pop(key, None) == expected.pop(key, None)
        elif verb == "truncate":
            users.clear()
            expected.clear()
        elif verb == "select":
            doomed = [other for other in expected if other >= key]
            assert users.select(key).delete() == len(doomed)
            expected = {other: one for other, one in expected.items() if other < key}
        else:
            doomed = [other for other, one in expected.items() if one.age == user.age and one.age is not None]
            if user.age is not None:
                assert users.by_age[user.age].delete() == len(doomed)
                expected = {other: one for other, one in expected.items() if other not in doomed}
    assert dict(users) == expected
    check_indexes(users)
    t.txn.abort()


# -- only the differences ---------------------------------------------------------------------------------------------


def test_only_the_differences_are_written(make_db: Callable[..., Any]) -> None:
    db = make_db(Store)
    with db.write() as t:
        counts = t.txn

        def spent() -> tuple[int, int]:
            change = counts._puts - spent.before[0], counts._dels - spent.before[1]  # type: ignore[attr-defined]
            spent.before = counts._puts, counts._dels  # type: ignore[attr-defined]
            return change

        spent.before = counts._puts, counts._dels  # type: ignore[attr-defined]
        t.users[1] = PEOPLE[1]
        assert spent() == (7, 0)
        t.users[1] = PEOPLE[1]
        assert spent() == (1, 0)
        t.users[1] = replace(PEOPLE[1], age=32)
        assert spent() == (3, 2)
        t.users[1] = replace(PEOPLE[1], age=None)
        assert spent() == (1, 2)
        t.users[1] = replace(PEOPLE[1], email=None, age=None)
        assert spent() == (1, 1)
        t.users[2] = PEOPLE[2]
        assert spent() == (7, 0)
        del t.users[1]
        assert spent() == (0, 4)
        with suppress(KeyError):
            del t.users[1]
        assert spent() == (0, 0)
        with suppress(zlmdb.DuplicateKey):
            t.users[3] = PEOPLE[2]
        assert spent() == (0, 0)
        t.users.truncate()
        assert spent() == (0, 7)


# -- refused statements -----------------------------------------------------------------------------------------------


def test_duplicate_key_says_everything(t: Any) -> None:
    with pytest.raises(zlmdb.DuplicateKey) as caught:
        t.users[9] = User("new", "ann@x")
    error = caught.value
    assert (error.table, error.index, error.key, error.owner) == ("users", "by_email", "ann@x", 1)
    for word in ("users.by_email", "'ann@x'", "1"):
        assert word in str(error)
    with pytest.raises(zlmdb.DuplicateKey) as caught:
        t.users[9] = User("Ann", None, None, "Rome")
    assert (caught.value.index, caught.value.key, caught.value.owner) == ("by_name_city", ("Ann", "Rome"), 5)


WRITES: dict[str, Callable[[Any, int, User], Any]] = {
    "setitem": lambda users, key, user: users.__setitem__(key, user),
    "update": lambda users, key, user: users.update({key: user}),
    "put_many": lambda users, key, user: users.put_many([(key, user)]),
    "append": lambda users, key, user: users.put_many([(key, user)], append=True),
    "setdefault": lambda users, key, user: users.setdefault(key, user),
}


@pytest.mark.parametrize(
    ("write", "order"),
    [("setitem", order) for order in itertools.permutations(["by_a", "by_b", "by_c"])]
    + [(write, ("by_c", "by_b", "by_a")) for write in WRITES],
)  # fmt: skip
def test_a_refused_statement_changes_nothing_whichever_index_refused(
    make_db: Callable[..., Any], check_indexes: Any, order: tuple[str, ...], write: str
) -> None:
    declared: dict[str, Any] = {
        "by_a": zlmdb.UniqueIndex[str]("email"),
        "by_b": zlmdb.Index[int]("age"),
        "by_c": zlmdb.UniqueIndex[str]("city"),
    }
    with make_db(schema_with(**{name: declared[name] for name in order})).write() as t:
        users = t.users
        assert [bound.storage.name for bound in users._indexes] == list(order)
        users[1] = User("one", "1@x", 1, "A")
        users[2] = User("two", "2@x", 2, "B")
        before = entries(users)
        refused = [
            (9, User("new", "1@x", 3, "C")),
            (9, User("new", "9@x", 3, "B")),
            (9, User("new", "1@x", 3, "B")),
            (9, User("new", "x" * 3000, 3, "C")),
            (9, User("new", "9@x", 2**70, "C")),
            (9, User("new", "9@x", 3, "C" * 3000)),
        ]
        if write in ("setitem", "update", "put_many"):
            refused += [(1, User("one", "2@x", 5, "D")), (1, User("one", "3@x", 5, "B"))]
        for key, user in refused:
            with pytest.raises((zlmdb.DuplicateKey, zlmdb.EncodeError)):
                WRITES[write](users, key, user)
            assert entries(users) == before
        WRITES[write](users, 9, User("new", "9@x", 3, "C"))
        check_indexes(users)


def test_put_many_with_indexes_stores_those_before_the_refused_pair(t: Any, check_indexes: Any) -> None:
    for append in (False, True):
        t.users.clear()
        items = [(1, User("a", "a@x")), (2, User("b", "b@x")), (3, User("c", "a@x")), (4, User("d", "d@x"))]
        with pytest.raises(zlmdb.DuplicateKey):
            t.users.put_many(items, append=append)
        assert dict(t.users) == dict(items[:2])
        check_indexes(t.users)


def test_an_index_function_that_fails_changes_nothing(make_db: Callable[..., Any], check_indexes: Any) -> None:
    class Fussy(zlmdb.Table[int, User]):
        by_email = zlmdb.UniqueIndex[str]("email")
        by_ratio = zlmdb.Index[float](lambda user: None if user.age is None else 100 / user.age, version=1)
        by_city = zlmdb.Index[str]("city")

    class One(zlmdb.Schema):
        users: Fussy

    with make_db(One).write() as t:
        t.users[1] = User("a", "a@x", 5)
        before = entries(t.users)
        for key in (1, 2):
            with pytest.raises(ZeroDivisionError):
                t.users[key] = User("b", "b@x", 0)
            assert entries(t.users) == before
        check_indexes(t.users)


def test_index_keys_that_do_not_fit_are_refused_with_the_index(make_db: Callable[..., Any]) -> None:
    class Typed(zlmdb.Table[int, zlmdb.Json[dict[str, Any]]]):
        by_name = zlmdb.UniqueIndex[str]("name")
        by_age = zlmdb.Index[int]("age")

    class One(zlmdb.Schema):
        users: Typed

    with make_db(One).write() as t:
        for value, index in (({"name": 5}, "by_name"), ({"age": "old"}, "by_age"), ({"age": True}, "by_age")):
            with pytest.raises(zlmdb.EncodeError, match=f"users.{index}"):
                t.users[1] = value
        assert entries(t.users) == {"records": [], "by_name": [], "by_age": []}


def test_over_long_index_keys_are_refused_with_size_and_limit(t: Any) -> None:
    limit = t.txn._store.env.max_key_size()
    before = entries(t.users)
    for user in (User("x", "e" * (limit + 1)), User("x", city="c" * (limit + 1), age=1)):
        with pytest.raises(zlmdb.EncodeError) as caught:
            t.users[9] = user
        assert caught.value.limit == limit
        assert caught.value.size is not None
        assert caught.value.size > limit
        assert "users.by_" in str(caught.value)
    assert entries(t.users) == before


def test_the_empty_text_is_an_index_key(t: Any, check_indexes: Any) -> None:
    t.users[9] = User("x", "")
    assert t.users.by_email.key("") == 9
    assert t.users.by_email.select().first() == (9, User("x", ""))
    assert list(t.users.by_email.select("", "a").keys()) == [9]
    with pytest.raises(zlmdb.DuplicateKey):
        t.users[10] = User("y", "")
    check_indexes(t.users)


# -- building, rebuilding, dropping -----------------------------------------------------------------------------------


class UsersBefore(zlmdb.Table[int, User]):
    """Without any index."""


class Before(zlmdb.Schema):
    users: UsersBefore


def schema_with(**indexes: Any) -> type[zlmdb.Schema]:
    table: Any = type("Users", (zlmdb.Table,), {"__orig_bases__": (zlmdb.Table[int, User],), **indexes})
    return type("Store", (zlmdb.Schema,), {"__annotations__": {"users": table}})


@on_disk
def test_an_index_new_to_a_populated_file_is_built_when_it_is_opened(
    make_db: Callable[..., Any], combo: str, check_indexes: Any
) -> None:
    with make_db(Before) as db, db.write() as t:
        t.users.update(PEOPLE)
    with make_db(Store) as db:
        with db.read() as t:
            assert t.users.by_email.key("ann@x") == 1
            assert list(t.users.by_age[31].keys()) == [1, 2]
            check_indexes(t.users)
        with db.write() as t:
            t.users[1] = replace(PEOPLE[1], age=5)
            check_indexes(t.users)


@on_disk
def test_building_is_logged(make_db: Callable[..., Any], combo: str, caplog: pytest.LogCaptureFixture) -> None:
    with make_db(Before) as db, db.write() as t:
        t.users.update(PEOPLE)
    with caplog.at_level(logging.INFO, "zlmdb"), make_db(Store):
        pass
    assert "users.by_email built: 5 entries" in caplog.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda: zlmdb.Index[str]("name"), lambda: zlmdb.Index[str]("city")),
        (lambda: zlmdb.Index[int]("age"), lambda: zlmdb.Index[float]("age")),
        (lambda: zlmdb.Index[str]("email"), lambda: zlmdb.UniqueIndex[str]("email")),
        (lambda: zlmdb.UniqueIndex[str]("email"), lambda: zlmdb.Index[str]("email")),
        (lambda: zlmdb.Index("city", "age"), lambda: zlmdb.Index("age", "city")),
        (lambda: zlmdb.Index("city"), lambda: zlmdb.Index("city", "age")),
        (
            lambda: zlmdb.Index[str](lambda user: user.name, version=1),
            lambda: zlmdb.Index[str](lambda user: user.city, version=2),
        ),
        (lambda: zlmdb.Index[str](lambda user: user.name, version=1), lambda: zlmdb.Index[str]("city")),
    ],
)  # fmt: skip
@on_disk
def test_a_changed_definition_rebuilds_the_index(
    make_db: Callable[..., Any], combo: str, check_indexes: Any, before: Any, after: Any
) -> None:
    with make_db(schema_with(by_x=before())) as db, db.write() as t:
        t.users.update(PEOPLE)
        check_indexes(t.users)
    with make_db(schema_with(by_x=after())) as db, db.write() as t:
        check_indexes(t.users)
        assert t.users.by_x.select()
        t.users[1] = replace(PEOPLE[1], age=5, city="Bern")
        check_indexes(t.users)


@on_disk
def test_an_unchanged_definition_is_not_rebuilt(
    make_db: Callable[..., Any], combo: str, caplog: pytest.LogCaptureFixture
) -> None:
    with make_db(Store) as db:
        with db.write() as t:
            t.users.update(PEOPLE)
        before = db.stats()["last_txnid"]
    with caplog.at_level(logging.INFO, "zlmdb"), make_db(Store) as db:
        assert db.stats()["last_txnid"] == before
    assert caplog.text == ""


@on_disk
def test_an_index_that_the_class_lost_is_dropped_when_that_is_asked_for(
    make_db: Callable[..., Any], combo: str, check_indexes: Any
) -> None:
    email, age = zlmdb.UniqueIndex[str]("email"), zlmdb.Index[int]("age")
    with make_db(schema_with(by_email=email, by_age=age)) as db, db.write() as t:
        t.users.update(PEOPLE)
    with make_db(schema_with(by_age=age), drop_indexes=True) as db:
        assert db.tables()["users"].indexes == ("by_age",)
        with db.write() as t:
            t.users[9] = User("twice", "ann@x", 31)
            check_indexes(t.users)
    with make_db(Before, drop_indexes=True) as db:
        assert db.tables()["users"].indexes == ()
        with db.write() as t:
            t.users[10] = User("more", "z@x", 31)
    del_twice = schema_with(by_age=age, by_name=zlmdb.Index[str]("name"))
    with make_db(del_twice) as db, db.write() as t:
        assert list(t.users.by_age[31].keys()) == [1, 2, 9, 10]
        check_indexes(t.users)


@on_disk
def test_a_program_that_goes_back_to_an_older_definition_is_told_how(
    make_db: Callable[..., Any], combo: str, check_indexes: Any
) -> None:
    """Opening it to write builds nothing, as the file is newer, and this was advised."""
    by_age, by_name = (schema_with(by=zlmdb.Index(field)) for field in ("age", "name"))
    for schema in (by_age, by_name):
        with make_db(schema) as db, db.write() as t:
            t.users.update(PEOPLE)
    with make_db(by_age) as db, db.write() as t:
        with pytest.raises(zlmdb.IndexNotAttached, match="go back.*drop_indexes=True"):
            t.users[9] = User("nine", "nine@x", 9)
        with pytest.raises(zlmdb.IndexNotBuilt, match="as it is declared here: .*drop_indexes=True"):
            t.users.by[31].keys()
    with make_db(by_age, drop_indexes=True) as db, db.write() as t:
        assert list(t.users.by[31].keys()) == [1, 2]
        check_indexes(t.users)


@on_disk
def test_an_older_class_never_drops_a_newer_index(make_db: Callable[..., Any], combo: str, check_indexes: Any) -> None:
    email, age = zlmdb.UniqueIndex[str]("email"), zlmdb.Index[int]("age")
    older, newer = schema_with(by_age=age), schema_with(by_age=age, by_email=email)
    with make_db(older) as db, db.write() as t:
        t.users.update(PEOPLE)
    with make_db(newer) as db:
        assert db.tables()["users"].indexes == ("by_age", "by_email")
        before = db.stats()["last_txnid"]
    for options in ({}, {"readonly": True}):
        with make_db(older, **options) as db:
            assert db.tables()["users"].indexes == ("by_age", "by_email")
            assert db.stats()["last_txnid"] == before, "opening it has changed nothing"
            with db.read() as t:
                assert list(t.users.by_age[31].keys()) == [1, 2]
    with make_db(older) as db, db.write() as t:
        with pytest.raises(zlmdb.IndexNotAttached, match="by_email.*the file is newer than this program"):
            t.users[9] = User("nine", "nine@x", 9)
        with pytest.raises(zlmdb.IndexNotAttached):
            del t.users[1]
        with pytest.raises(zlmdb.IndexNotAttached):
            t.users.clear()
    never_in_this_file = pytest.raises(zlmdb.IndexNotAttached, match="drop_indexes=True")
    with make_db(Before) as db, db.write() as t, never_in_this_file:
        t.users[9] = User("nine", "nine@x", 9)
    with make_db(newer) as db, db.write() as t:
        t.users[9] = User("nine", "nine@x", 9)
        check_indexes(t.users)


def test_a_class_whose_index_was_built_after_the_file_was_opened_is_told_to_open_it_again(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Bare) as db, db.write() as t:
        t.users.update(PEOPLE)
    told = pytest.raises(zlmdb.IndexNotAttached, match=r"did not find as it opened.*: open the database again")
    with zlmdb.open(tmp_path, Store, create=False) as db, zlmdb.open(tmp_path, Store), told:
        db.auto.users[9] = User("nine", "nine@x", 9)
    with zlmdb.open(tmp_path, Store) as db:
        db.auto.users[9] = User("nine", "nine@x", 9)
        assert db.check().ok


@on_disk
def test_the_error_tells_how_a_table_without_a_class_of_its_own_gets_rid_of_an_index(
    make_db: Callable[..., Any], combo: str
) -> None:
    class Plain(zlmdb.Schema):
        users: zlmdb.Table[int, User]

    with make_db(schema_with(by_age=zlmdb.Index[int]("age"))) as db, db.write() as t:
        t.users.update(PEOPLE)
    with make_db(Plain) as db:
        with db.write() as t, pytest.raises(zlmdb.IndexNotAttached, match="drop_indexes=True") as told:
            t.users[9] = User("nine", "nine@x", 9)
        eval(re.findall(r"db\.drop_index\(.*\)", str(told.value))[0], {"db": db})
        with db.write() as t:
            t.users[9] = User("nine", "nine@x", 9)


@on_disk
def test_a_table_without_a_class_of_its_own_loses_its_indexes_as_requested(
    make_db: Callable[..., Any], combo: str
) -> None:
    class Plain(zlmdb.Schema):
        users: zlmdb.Table[int, User]

    with make_db(schema_with(by_age=zlmdb.Index[int]("age"))) as db, db.write() as t:
        t.users.update(PEOPLE)
    with make_db(Plain, drop_indexes=True) as db:
        with db.write() as t:
            t.users[9] = User("nine", "nine@x", 9)
        assert "by_age" not in str(db.tables())


@on_disk
def test_two_versions_of_a_program_do_not_rebuild_an_index_in_turn(make_db: Callable[..., Any], combo: str) -> None:
    first = schema_with(by_name=zlmdb.Index[str](lambda user: user.name[:1], version=1))
    second = schema_with(by_name=zlmdb.Index[str](lambda user: user.name[:2], version=2))
    with make_db(first) as db, db.write() as t:
        t.users.update(PEOPLE)
    with make_db(second) as db, db.read() as t:
        before = db.stats()["last_txnid"]
        assert t.users.by_name.select().count() == len(PEOPLE)
    with make_db(first) as db:
        with db.write() as t:
            with pytest.raises(zlmdb.IndexNotBuilt):
                t.users.by_name  # noqa: B018
            with pytest.raises(zlmdb.IndexNotAttached, match="newer"):
                t.users[9] = User("nine", "nine@x", 9)
        assert db.stats()["last_txnid"] == before
    with make_db(first, drop_indexes=True) as db, db.write() as t:  # which was asked for
        assert t.users.by_name["A"].count() == 2
        t.users[9] = User("Arne", "nine@x", 9)


@on_disk
def test_an_index_is_dropped_by_name(make_db: Callable[..., Any], combo: str, check_indexes: Any) -> None:
    email, age = zlmdb.UniqueIndex[str]("email"), zlmdb.Index[int]("age")
    both = schema_with(by_email=email, by_age=age)
    with make_db(both) as db:
        with db.write() as t:
            t.users.update(PEOPLE)
        with pytest.raises(KeyError, match="there are by_email, by_age"):
            db.drop_index("users", "by_name")
        db.drop_index("users", "by_email")
        assert db.tables()["users"].indexes == ("by_age",)
        assert list(db.tables()) == ["users"]
        with db.write() as t:  # it was open before, and goes on without the index
            t.users[9] = User("twice", "ann@x", 31)
            with pytest.raises(zlmdb.IndexNotBuilt):
                t.users.by_email  # noqa: B018
    with make_db(schema_with(by_age=age)) as db, db.write() as t:
        t.users[10] = User("more", "z@x", 31)
        check_indexes(t.users)


def test_drop_indexes_is_refused_where_nothing_may_be_changed(tmp_path: Path) -> None:
    for options in ({"readonly": True}, {"create": False}):
        with pytest.raises(ValueError, match="drop_indexes=True changes the file"):
            zlmdb.open(tmp_path / "db", Before, drop_indexes=True, **options)


@on_disk
def test_a_duplicate_key_while_building_leaves_the_file_as_it_was(
    make_db: Callable[..., Any], combo: str, check_indexes: Any
) -> None:
    city, age = zlmdb.UniqueIndex[str]("city"), zlmdb.Index[int]("age")
    with make_db(schema_with(by_age=age)) as db, db.write() as t:
        t.users.update(PEOPLE)
    for _ in range(2):
        with pytest.raises(zlmdb.DuplicateKey) as caught:
            make_db(schema_with(by_city=city, by_email=zlmdb.UniqueIndex[str]("email")))
        assert (caught.value.table, caught.value.index, caught.value.key) == ("users", "by_city", "Oslo")
        assert caught.value.owner in (1, 3, 4)
    with make_db(schema_with(by_age=age)) as db:
        assert db.tables()["users"].indexes == ("by_age",)
        with db.write() as t:
            assert dict(t.users) == PEOPLE
            check_indexes(t.users)
            for i, key in enumerate(t.users):
                t.users[key] = replace(t.users[key], city=f"city {i}")
    with make_db(schema_with(by_city=city)) as db, db.read() as t:
        assert t.users.by_city.select().count() == 6
        check_indexes(t.users)


@on_disk
def test_records_that_do_not_decode_stop_the_building(make_db: Callable[..., Any], combo: str) -> None:
    with make_db(Before) as db, db.write() as t:
        t.users.update(PEOPLE)
        place = t.users._storage
        t.txn._engine_txn.put(place.encode_key(3), b"\xc1", db=t.txn._handle(place.space)[0])
    with pytest.raises(zlmdb.DecodeError, match="users.*3"):
        make_db(Store)
    with make_db(Before) as db, db.write() as t:
        assert t.users[1] == PEOPLE[1]


@on_disk
def test_an_index_declared_again_after_others_wrote_without_it_is_complete(
    make_db: Callable[..., Any], combo: str, check_indexes: Any
) -> None:
    """A handle of the same file that still knows a dropped index may write its entries until it is closed."""
    age = zlmdb.Index[int]("age")
    with make_db(schema_with(by_age=age)) as old:
        with old.write() as t:
            t.users.update(PEOPLE)
        with make_db(Before):
            with suppress(zlmdb.Error), old.write() as t:
                t.users[7] = User("seven", None, 7)
            with suppress(zlmdb.Error), old.write() as t:
                del t.users[1]
    with make_db(schema_with(by_age=age)) as db, db.read() as t:
        check_indexes(t.users)


# -- writers that do not know an index --------------------------------------------------------------------------------


@on_disk
def test_writers_that_do_not_declare_an_index_are_refused(make_db: Callable[..., Any], combo: str) -> None:
    with make_db(Store) as db, db.write() as t:
        t.users.update(PEOPLE)
    with make_db(Bare) as db:
        with db.read() as t:
            assert dict(t.users) == PEOPLE
        with db.write() as t:
            assert t.users[1] == PEOPLE[1]
            for write in (
                lambda: t.users.__setitem__(1, PEOPLE[1]), lambda: t.users.__delitem__(1), lambda: t.users.clear(),
                lambda: t.users.put_many([(9, PEOPLE[1])]), lambda: t.users.put_many([(9, PEOPLE[1])], append=True),
                lambda: t.users.select().delete(), lambda: t.users.pop(1), lambda: t.users.add(PEOPLE[1]),
                lambda: t.users.edit(1).__enter__(), lambda: t.users.truncate(), lambda: t.users.popitem(),
            ):  # fmt: skip
                with pytest.raises(zlmdb.IndexNotAttached, match="'users'.*by_") as caught:
                    write()
                assert caught.value.table == "users"
                assert caught.value.index in vars(Users)
            assert dict(t.users) == PEOPLE


@on_disk
def test_undeclared_tables_with_indexes_are_read_only(make_db: Callable[..., Any], combo: str) -> None:

    class Empty(zlmdb.Schema): ...

    with make_db(Store) as db, db.write() as t:
        t.users.update(PEOPLE)
        t.plain[2] = 2
    with make_db(Empty) as db, db.write() as t:
        assert t["users"][1]["name"] == "Ann"
        with pytest.raises(zlmdb.IndexNotAttached):
            del t["users"][1]
        t["plain"][3] = 3
        assert dict(t["plain"]) == {2: 2, 3: 3}


@on_disk
def test_a_handle_opened_before_an_index_was_added_cannot_leave_it_incomplete(
    make_db: Callable[..., Any], combo: str, check_indexes: Any
) -> None:
    with make_db(Before) as old:
        with old.write() as t:
            t.users.update(PEOPLE)
        with make_db(Store) as new:
            with pytest.raises(zlmdb.Error), old.write() as t:
                t.users[9] = User("nine", "ann@x")
            with new.read() as t:
                assert dict(t.users) == PEOPLE
                check_indexes(t.users)
            with old.read() as t:
                assert dict(t.users) == PEOPLE


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.parametrize("combo", ["lmdb-tables"], indirect=True)  # another process is slow to start on PyPy
def test_another_process_cannot_leave_a_new_index_incomplete(
    make_db: Callable[..., Any], combo: str, tmp_path: Any, check_indexes: Any
) -> None:
    """A program of an old version runs on while that of a new one adds an index."""
    program = f"""if 1:
        import sys, zlmdb
        from dataclasses import dataclass
        from typing import Optional
        @dataclass
        class User:
            name: str
            email: Optional[str] = None
            age: Optional[int] = None
            city: str = ""
        class Users(zlmdb.Table[int, User]): ...
        class Before(zlmdb.Schema):
            users: Users
        with zlmdb.open({str(tmp_path / "db")!r}, Before, layout={combo.split("-")[1]!r}, durability="none") as db:
            with db.write() as t:
                t.users[1] = User("Ann", "ann@x", 31)
            print("ready", flush=True)
            sys.stdin.readline()
            try:
                with db.write() as t:
                    t.users[2] = User("Ann", "ann@x", 31)
                print("wrote")
            except zlmdb.Error as error:
                print(type(error).__name__)
    """
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as old:  # fmt: skip
        assert old.stdout is not None
        assert old.stdout.readline() == "ready\n"
        with make_db(Store) as new:
            with new.read() as t:
                assert t.users.by_email.key("ann@x") == 1
            answer, _ = old.communicate("go\n", timeout=300)
            with new.read() as t:
                check_indexes(t.users)
                assert len(t.users) == 1
            assert answer != "wrote\n"


@on_disk
def test_a_read_only_file_without_the_index_raises_on_access(make_db: Callable[..., Any], combo: str) -> None:
    with make_db(Before) as db, db.write() as t:
        t.users.update(PEOPLE)
    with make_db(Store, readonly=True) as db, db.read() as t:
        assert dict(t.users) == PEOPLE
        for use in (lambda: t.users.by_email, lambda: t.users.by_age):
            with pytest.raises(zlmdb.IndexNotBuilt, match="users.by_") as caught:
                use()
            assert caught.value.table == "users"
            assert caught.value.index in ("by_email", "by_age")


@on_disk
def test_a_read_only_file_with_a_changed_index_raises_on_access(make_db: Callable[..., Any], combo: str) -> None:
    with make_db(schema_with(by_x=zlmdb.Index[str]("name"))) as db, db.write() as t:
        t.users.update(PEOPLE)
    with make_db(schema_with(by_x=zlmdb.Index[str]("city")), readonly=True) as db, db.read() as t:
        assert dict(t.users) == PEOPLE
        with pytest.raises(zlmdb.IndexNotBuilt, match="users.by_x"):
            list(t.users.by_x.select())


@on_disk
def test_a_table_that_a_read_only_file_lacks_reads_as_empty(make_db: Callable[..., Any], combo: str) -> None:

    class Other(zlmdb.Schema):
        other: zlmdb.Table[int, int]

    with make_db(Other):
        pass
    with make_db(Store, readonly=True) as db:
        with db.read() as t:
            users = t.users
            assert len(users) == 0
            assert not users
            assert list(users) == list(users.items()) == list(users.values()) == []
            assert list(reversed(users)) == []
            assert users.get(1) is None
            assert 1 not in users
            assert users.select().first() is None
            assert users.select().last() is None
            assert users.select(1, 5).count() == 0
            assert list(users.get_many([1, 2])) == [None, None]
            with pytest.raises(KeyError):
                users[1]
            with pytest.raises(zlmdb.IndexNotBuilt):
                users.by_email  # noqa: B018
            with pytest.raises(zlmdb.ReadonlyDatabase):
                users[1] = PEOPLE[1]
            assert "users" in repr(users)
        with pytest.raises(zlmdb.TransactionClosed):
            len(users)
        with pytest.raises(zlmdb.TransactionClosed):
            users.get(1)


# -- indexes of classic tables ----------------------------------------------------------------------------------------


@on_disk
def test_the_index_of_a_classic_table_is_adopted(make_db: Callable[..., Any], combo: str, check_indexes: Any) -> None:
    table_id = "9a5f9b3e-2f5b-4d0c-8a58-7a6c6d646200"

    @zlmdb.table(table_id, marshal=lambda user: user, parse=lambda user: user)
    class ClassicUsers(zlmdb.MapOidJson): ...

    @zlmdb.table(CLASSIC_INDEX)
    class ClassicByName(zlmdb.MapStringOid): ...

    class Empty(zlmdb.Schema): ...

    with make_db(Empty) as db:
        users, by_name = db.attach_table(ClassicUsers), db.attach_table(ClassicByName)
        users.attach_index("by_name", by_name, lambda user: user["name"])
        with db.begin(write=True) as txn:
            for i, name in enumerate(["ann", "bob", "cid"], 1):
                users[txn, i] = {"name": name}

    class Adopted(zlmdb.Table[zlmdb.keys.Oid, zlmdb.Json[dict[str, Any]]], uuid=table_id):
        by_name = zlmdb.UniqueIndex[zlmdb.keys.String]("name", table=CLASSIC_INDEX)

    class Declared(zlmdb.Schema):
        users: Adopted

    with make_db(Declared) as db, db.write() as t:
        assert dict(t.users) == {1: {"name": "ann"}, 2: {"name": "bob"}, 3: {"name": "cid"}}
        assert t.users.by_name.key("bob") == 2
        t.users[2] = {"name": "bert"}
        t.users[4] = {"name": "dora"}
        with pytest.raises(zlmdb.DuplicateKey):
            t.users[5] = {"name": "ann"}
        check_indexes(t.users)
    with make_db(Empty) as db:
        users, by_name = db.attach_table(ClassicUsers), db.attach_table(ClassicByName)
        users.attach_index("by_name", by_name, lambda user: user["name"])
        with db.begin(write=True) as txn:
            assert by_name[txn, "bert"] == 2
            assert by_name[txn, "bob"] is None
            assert by_name[txn, "dora"] == 4
            users[txn, 1] = {"name": "anna"}
    with make_db(Declared) as db, db.read() as t:
        assert t.users.by_name.key("anna") == 1
        check_indexes(t.users)


@on_disk
def test_a_map_opened_before_its_index_was_adopted_writes_on(make_db: Callable[..., Any], check_indexes: Any) -> None:
    table_id = "9a5f9b3e-2f5b-4d0c-8a58-7a6c6d646299"

    @zlmdb.table(table_id, marshal=lambda user: user, parse=lambda user: user)
    class ClassicUsers(zlmdb.MapOidJson): ...

    @zlmdb.table(CLASSIC_INDEX)
    class ClassicByName(zlmdb.MapStringOid): ...

    class Adopted(zlmdb.Table[zlmdb.keys.Oid, zlmdb.Json[dict[str, Any]]], uuid=table_id):
        by_name = zlmdb.UniqueIndex[zlmdb.keys.String]("name", table=CLASSIC_INDEX)

    class Empty(zlmdb.Schema): ...

    class Declared(zlmdb.Schema):
        users: Adopted

    with make_db(Empty) as db:
        users, by_name = db.attach_table(ClassicUsers), db.attach_table(ClassicByName)
        with db.begin(write=True) as txn:
            users[txn, 1] = {"name": "ann"}
        users.attach_index("by_name", by_name, lambda user: user["name"])
        with db.begin(write=True) as txn:
            users[txn, 2] = {"name": "bob"}
        with make_db(Declared) as declared:
            with db.begin(write=True) as txn:
                users[txn, 3] = {"name": "cid"}
            with declared.read() as t:
                assert [t.users.by_name.key(name) for name in ("ann", "bob", "cid")] == [1, 2, 3]
                check_indexes(t.users)
        users.detach_index("by_name")
        with db.begin(write=True) as txn, pytest.raises(zlmdb.IndexNotAttached, match="by_name"):
            users[txn, 4] = {"name": "dora"}


def test_an_adopted_index_must_be_in_the_file(make_db: Callable[..., Any], combo: str) -> None:
    class Adopted(zlmdb.Table[int, User]):
        by_name = zlmdb.UniqueIndex[str]("name", table=CLASSIC_INDEX)

    class Declared(zlmdb.Schema):
        users: Adopted

    if combo.endswith("classic"):
        with pytest.raises(zlmdb.SchemaMismatch, match=CLASSIC_INDEX):
            make_db(Declared)


def test_shuffled_writes_give_one_order(make_db: Callable[..., Any], check_indexes: Any) -> None:
    with make_db(Store).write() as t:
        keys = list(range(300))
        random.Random(5).shuffle(keys)
        for key in keys:
            t.users[key] = User(f"n{key % 50}", f"e{key}", key % 7, f"c{key}")
        for key in keys[:150]:
            t.users[key] = User(f"n{key % 50}", f"e{key}", -key % 7, f"c{key}")
        check_indexes(t.users)
        ordered = [(user.age, key) for key, user in t.users.by_age.select()]
        assert ordered == sorted(ordered)
