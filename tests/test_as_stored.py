"""The entries of an index are those of the record as it is read, also where that is not what was given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Annotated, Any, Callable, Optional, TypedDict

import attrs
import pytest

import zlmdb
from zlmdb.values import F32

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python


@dataclass
class Item:
    price: Annotated[float, F32]


class Items(zlmdb.Table[int, zlmdb.FlatBuffers[Item]]):
    """Numbers that are rounded as they are stored."""

    by_price = zlmdb.Index[float]("price")


@dataclass
class Event:
    when: datetime


class Events(zlmdb.Table[int, Event]):
    """Points in time, which come back in UTC."""

    by_day = zlmdb.UniqueIndex[date](lambda event: event.when.date(), version=1)


class Documents(zlmdb.Table[int, zlmdb.Unchecked[zlmdb.Json[Any]]]):
    """Plain data, where a tuple comes back as a list."""

    by_kind = zlmdb.Index[str](lambda document: type(document["at"]).__name__, version=1)


class Address(TypedDict):
    city: str


class Person(TypedDict):
    address: Address


class People(zlmdb.Table[int, Person]):
    by_city = zlmdb.UniqueIndex[str]("address.city")


@dataclass
class Place:
    city: Optional[str]


@dataclass
class User:
    address: Optional[Place]
    age: int = 0


class Users(zlmdb.Table[int, User]):
    by_city = zlmdb.Index[str]("address.city")
    by_both = zlmdb.Index[tuple[str, int]]("address.city", "age")


@dataclass
class Account:
    """Its address is written in small letters, each time that an object is made."""

    email: str

    def __post_init__(self) -> None:
        self.email = self.email.lower()


class Accounts(zlmdb.Table[int, Account]):
    by_email = zlmdb.UniqueIndex[str]("email")


@attrs.define(on_setattr=[])
class Login:
    name: str = attrs.field(converter=str.lower)


class Logins(zlmdb.Table[int, zlmdb.FlatBuffers[Login]]):  # msgspec calls no converters
    by_name = zlmdb.UniqueIndex[str]("name")


@dataclass(init=False)
class Host:
    name: str

    def __init__(self, name: str) -> None:
        self.name = name.lower()


class Hosts(zlmdb.Table[int, zlmdb.FlatBuffers[Host]]):
    by_name = zlmdb.UniqueIndex[str]("name")


class Store(zlmdb.Schema):
    accounts: Accounts
    logins: Logins
    hosts: Hosts
    items: Items
    events: Events
    documents: Documents
    people: People
    users: Users


NIGHT = datetime(2024, 1, 2, 0, 30, tzinfo=timezone(timedelta(hours=2)))


@pytest.fixture
def t(make_db: Callable[..., Any]) -> Iterator[Any]:
    db = make_db(Store)
    with db.write() as t:
        yield t
    report = db.check()
    assert report.ok, report.problems


def store(table: Any, key: int, value: Any, how: str) -> None:
    if how == "one":
        table[key] = value
    elif how == "many":
        table.put_many([(key, value)])
    else:
        table.put_many(pair for pair in [(key, value)])


ways = pytest.mark.parametrize("how", ["one", "many", "generator"])


@ways
def test_a_number_that_is_rounded_leaves_no_entry_behind(t: Any, how: str) -> None:
    store(t.items, 1, Item(0.1), how)
    [(rounded, found)] = t.items.by_price.groups()
    assert (rounded, dict(found)) == (t.items[1].price, {1: t.items[1]})
    store(t.items, 1, Item(0.5), how)
    assert [key for key, _ in t.items.by_price.groups()] == [0.5]
    del t.items[1]
    assert t.items.by_price.select().count() == 0


@ways
def test_a_function_is_asked_of_the_record_as_it_is_read(t: Any, how: str) -> None:
    store(t.events, 1, Event(NIGHT), how)
    assert t.events.by_day.key(date(2024, 1, 1)) == 1
    with pytest.raises(zlmdb.DuplicateKey):
        store(t.events, 2, Event(NIGHT + timedelta(minutes=1)), how)
    del t.events[1]
    store(t.events, 2, Event(NIGHT), how)
    assert list(t.events.by_day.select()) == [(2, t.events[2])]
    store(t.documents, 1, {"at": (1, 2)}, how)
    store(t.documents, 1, {"at": 1}, how)
    assert [key for key, _ in t.documents.by_kind.groups()] == ["int"]


@ways
def test_a_path_leads_through_dicts(t: Any, how: str) -> None:
    store(t.people, 1, {"address": {"city": "Bonn"}}, how)
    assert t.people.by_city["Bonn"] == {"address": {"city": "Bonn"}}
    with pytest.raises(zlmdb.DuplicateKey):
        store(t.people, 2, {"address": {"city": "Bonn"}}, how)
    store(t.people, 1, {"address": {"city": "Köln"}}, how)
    assert "Bonn" not in t.people.by_city


@ways
def test_a_none_on_the_way_is_no_entry(t: Any, how: str) -> None:
    for key, user in enumerate([User(None), User(Place(None)), User(Place("Bonn"), 7)]):
        store(t.users, key, user, how)
    assert list(t.users.by_city.select().keys()) == [2]
    assert list(t.users.by_both.select().keys()) == [2]
    store(t.users, 2, User(None), how)
    assert t.users.by_city.select().count() == 0


@ways
@pytest.mark.parametrize(
    ("name", "field", "make"),
    [("accounts", "email", Account), ("logins", "name", Login), ("hosts", "name", Host)],
    ids=["__post_init__", "converter", "__init__"],
)
def test_what_a_class_makes_of_its_fields_is_what_is_indexed(
    t: Any, name: str, field: str, make: Any, how: str
) -> None:
    table = t[name]
    index = getattr(table, f"by_{field}")
    store(table, 1, make("ann"), how)
    changed = make("bob")
    setattr(changed, field, "ANN")
    with pytest.raises(zlmdb.DuplicateKey):
        store(table, 2, changed, how)
    setattr(changed, field, "BOB")
    store(table, 2, changed, how)
    assert (index.key("ann"), index.key("bob"), "BOB" in index) == (1, 2, False)
    store(table, 2, make("carl"), how)
    del table[2]
    assert list(index.select().keys()) == [1]
