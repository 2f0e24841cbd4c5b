"""What a web developer, an analyst and an operator wrote in their first hour: the last line says what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Optional
from uuid import UUID

import pytest

import zlmdb


@dataclass
class User:
    name: str
    email: str
    age: Optional[int] = None


class Users(zlmdb.Table[UUID, User]):
    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")
    by_both = zlmdb.Index[tuple[str, int]]("name", "age")


class Shop(zlmdb.Schema):
    users: Users
    days: zlmdb.Table[date, str]
    sold: zlmdb.Table[int, str]


@pytest.fixture
def db() -> Iterator[Any]:
    with zlmdb.open(None, Shop) as database:
        with database.write() as t:
            t.users.add(User("Ann", "ann@x", 31))
            t.users.add(User("Bob", "bob@x"))
        yield database


ANY: Any = zlmdb
CLASS: Any = Users


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: ANY.Index[int]("age", nullable=True), r"Optional\[...\]: a record with None in it has no entry"),
        (lambda: ANY.UniqueIndex[str]("email", null=True), r"Optional\[...\]: a record with None in it has no entry"),
        (lambda: ANY.ForeignKey[Users]("user", nullable=True), r"Optional\[...\]: a record with None in it has no"),
        (lambda: ANY.Index[int]("age", name="ix_age"), "an index has the name of its attribute, by_name = "),
        (lambda: ANY.Index[int]("id", primary_key=True), r"first type of the table, Table\[int, User\]; key='id'"),
    ],
)
def test_an_option_of_a_column_elsewhere_is_answered_with_the_declaration_here(made: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        made()


@pytest.mark.parametrize(
    "asked",
    [
        lambda t: t.users.by_age[None],
        lambda t: t.users.by_email[None],
        lambda t: t.users.by_email.get(None),
        lambda t: None in t.users.by_age,
        lambda t: t.users.by_both["Bob", None].count(),
    ],
)
def test_none_in_an_index_is_answered_with_the_condition(db: Any, asked: Any) -> None:
    with (
        db.read() as t,
        pytest.raises(zlmdb.EncodeError, match=r"^index '.* no entry for None: write .where\(lambda record: record\.f"),
    ):
        asked(t)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda t: t.users["01a21db7-2b4f-7177-b3a7-53c1be3c853f"], r"expected a uuid.UUID; write UUID\(...\) for a t"),
        (lambda t: t.sold.get("7"), r"2\*\*63 - 1; write int\(...\) for a text$"),
        (lambda t: t.days["2026-01-01"], r"write date.fromisoformat\(...\) for a text$"),
        (lambda t: t.users.by_age["31"], r"^index 'users.by_age': .*; write int\(...\) for a text$"),
    ],
)
def test_a_text_in_place_of_a_key_is_answered_with_what_makes_the_key(db: Any, asked: Any, said: str) -> None:
    with db.read() as t, pytest.raises(zlmdb.EncodeError, match=said):
        asked(t)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            lambda: CLASS.where(lambda user: user.age == 31),
            r"^where\(\): a class of tables .* as t.table.where\(",
        ),
        (lambda: CLASS.order_by(lambda user: user.name), r"^order_by\(\): a class of tables has no records"),
        (lambda: CLASS.fields(lambda user: user.name), r"^fields\(\): a class of tables has no records"),
        (lambda: CLASS.group_by(lambda user: user.name, len), r"^group_by\(\): a class of tables has no records"),
        (lambda: CLASS[UUID(int=7)], r"^Users\[UUID.*\]: a class of tables has no records: read them in a transaction"),
    ],
)
def test_a_query_of_a_table_class_is_answered_with_a_transaction(asked: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        asked()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda t: t.users.columns, r"'columns': those of the class are its fields; db.tables\(\)"),
        (lambda t: t.users.describe(), r"'describe': write .fields\(lambda record: record.field\), which has .count"),
        (lambda t: t.users.sample(3), r"'sample': write table.get_many\(random.sample\(table.keys\(\).all\(\), 10\)\)"),
        (lambda t: t.users.fields(lambda u: u.name).std(), r"'std': write statistics.stdev\(rows\)"),
        (lambda t: t.users.fields(lambda u: u.name).median(), r"'median': write statistics.median\(rows\)"),
    ],
)
def test_methods_of_frames_are_answered_with_what_to_write(db: Any, asked: Any, said: str) -> None:
    t = db.read()
    with pytest.raises(AttributeError, match=said):
        asked(t)
    t.txn.abort()


@pytest.mark.skipif(
    sys.version_info < (3, 10) or sys.implementation.name == "pypy",
    reason="only CPython, from 3.10 on, says in an error which object has no such attribute, and whose method it is",
)
def test_the_end_of_a_block_says_what_a_table_has(db: Any) -> None:
    with (
        pytest.raises(AttributeError, match=r"'name': a table is any number of records: write table\[key\].name fo"),
        db.read() as t,
    ):
        _ = t.users.name
    with pytest.raises(TypeError, match="'age'; it takes a function that returns the new record"), db.write() as t:
        t.users.where(lambda u: u.age == 31).change(age=32)


@pytest.mark.parametrize(
    ("into", "said"),
    [
        (lambda g: g.fields(lambda u: u.age).sum(), "^sum: unsupported .*; leave out None by where"),
        (lambda g: g.fields(lambda u: u.age).mean(), "^mean: unsupported .*; leave out None by where"),
        (lambda g: g.fields(lambda u: u.age).max(), r"^max: .*leave out the records with None by where\([^()]*\)$"),
        (
            lambda g: (g.fields(lambda u: u.age).min(), list(g)),
            r"^min: .*leave out the records with None by where\([^()]*\)$",
        ),
    ],
)
def test_none_in_an_aggregate_of_groups_is_told_as_in_one_of_all(db: Any, into: Any, said: str) -> None:
    with db.read() as t, pytest.raises(TypeError, match=said):
        t.users.group_by(lambda u: u.email[3:], into)


@pytest.mark.parametrize(
    ("name", "said"), [("path", "write .dbpath"), ("size", r"db.stats\(\)"), ("schema", r"db.tables\(\)")]
)
def test_what_a_database_is_asked_for_elsewhere_says_where_it_is(db: Any, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=rf"'{name}': .*{said}"):
        getattr(db, name)
    assert name not in dir(db)


def test_a_table_of_a_file_that_is_open_without_a_schema_is_answered_with_its_name() -> None:
    with zlmdb.open(None) as db:
        with pytest.raises(
            AttributeError, match=r"^db.auto has the tables that a schema declares, .* and t\['users'\]"
        ):
            _ = db.auto.users
        named = (
            r"^'Schema' object has no attribute 'users'(: without a schema, a table of the file is t\['users'\]; s|$)"
        )
        with pytest.raises(AttributeError, match=named), db.read() as t:
            _ = t.users  # type: ignore[attr-defined]
