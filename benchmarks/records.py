"""The records that the workloads store, and what a contender must know of them: columns, and when two are the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import date, datetime
from functools import cached_property
from typing import Any, Optional
from uuid import UUID


@dataclass
class User:
    """The user of zlmdb's own benchmark of 2018, all 11 fields."""

    oid: int
    name: str
    authid: str
    uuid: UUID
    email: str
    birthday: date
    is_friendly: bool
    tags: list[str]
    ratings: dict[str, float]
    friends: list[int]
    referred_by: int


@dataclass
class SixFields:
    """The part of the user that the published FlatBuffers benchmark wrote (four fields and the oid are left out)."""

    name: str
    authid: str
    email: str
    birthday: date
    is_friendly: bool
    referred_by: int


@dataclass
class Small:
    """Five numbers and two texts."""

    id: int
    count: int
    price: float
    kind: int
    weight: float
    name: str
    city: str


@dataclass
class Person:
    """The user of ZipponDB's benchmark."""

    name: str
    email: str
    age: int
    address: str


@dataclass
class Category:
    """A category of ZipponDB's benchmark."""

    name: str


@dataclass
class Item:
    """What ZipponDB's benchmark sells; *category* is the key of one."""

    name: str
    price: float
    category: UUID


@dataclass
class Order:
    """An order of ZipponDB's benchmark: keys of items, how many of each, when, and the key of a user."""

    items: list[UUID]
    quantity: list[int]
    at: datetime
    from_: UUID


@dataclass
class Example:
    """The struct of go-persist's benchmark."""

    field1: int
    field2: str


Document = dict[str, Any]
DOCUMENT_COLUMNS = {
    "id": "str", "name": "str", "email": "str", "age": "int", "score": "float", "active": "bool", "tags": "json",
    "metadata": "json",
}  # fmt: skip
_KINDS = {
    "int": "int",
    "str": "str",
    "float": "float",
    "bool": "bool",
    "bytes": "bytes",
    "UUID": "uuid",
    "date": "date",
    "datetime": "datetime",
    "list[UUID]": "uuids",
}


@dataclass(frozen=True)
class Shape:
    """A kind of record: the types of its key and value. *key_field* is the field that repeats the key.

    *beside* are the kinds that further tables of the same database hold.
    """

    name: str
    key: type
    model: Any
    key_field: Optional[str] = None
    beside: tuple[Shape, ...] = ()

    @property
    def is_bytes(self) -> bool:
        """Whether the value is bytes, or text, that stores hold as they are."""
        return self.model in (bytes, str)

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns of a value by name, and what is in them: the keys and values of `_KINDS`, or json."""
        if self.is_bytes:
            return {"data": "bytes" if self.model is bytes else "str"}
        if self.model is Document:
            return DOCUMENT_COLUMNS
        return {field.name: _KINDS.get(str(field.type), "json") for field in fields(self.model)}

    @cached_property
    def values(self) -> Callable[[Any], list[Any]]:
        """The function from a record to the values of its columns."""
        names = list(self.columns)
        if self.is_bytes:
            return lambda record: [getattr(record, "data", record)]
        return lambda record: (
            [record[name] for name in names] if isinstance(record, dict) else [_field(record, name) for name in names]
        )

    def make(self, values: Any) -> Any:
        """A record of the values of its columns."""
        if self.is_bytes:
            return values[0]
        if self.model is Document:
            return dict(zip(self.columns, values))
        return self.model(*values)

    def check_same(self, found: Any, expected: Any) -> None:
        """Raise `Wrong` unless *found*, of whatever class a contender gives, has the fields of *expected*."""
        if found is None or self.values(found) != self.values(expected):
            raise Wrong(f"expected {expected!r}, found {found!r}")

    def check_all(self, found: Any, expected: list[Any]) -> None:
        """Raise `Wrong` unless these are the same records in the same order."""
        records = list(found)
        if len(records) != len(expected):
            raise Wrong(f"expected {len(expected)} records, found {len(records)}")
        for one, other in zip(records, expected):
            self.check_same(one, other)


def _field(record: Any, name: str) -> Any:
    if name == "metadata" and hasattr(record, "metadata_"):  # SQLAlchemy keeps the other name for itself
        return record.metadata_
    return getattr(record, name)


class Wrong(Exception):
    """A contender gave back something else than was stored."""


USERS = Shape("users", int, User, "oid")
SIX_FIELDS = Shape("six_fields", int, SixFields)
CATEGORIES = Shape("categories", UUID, Category)
ITEMS = Shape("items", UUID, Item)
ORDERS = Shape("orders", UUID, Order)
PERSONS = Shape("persons", UUID, Person, beside=(CATEGORIES, ITEMS, ORDERS))
ACCOUNTS = Shape("accounts", int, Person)
DOCUMENTS = Shape("documents", str, Document, "id")
STRUCTS = Shape("structs", str, Example)
STRINGS = Shape("strings", str, str)
ROWS = Shape("rows", int, Example)
BLOBS_INT = Shape("blobs_int", int, bytes)
BLOBS_16 = Shape("blobs_16", bytes, bytes)


def users(count: int, seed: int = 1) -> Iterator[tuple[int, User]]:
    """Users as the predecessor's benchmark makes them, of a seed; oids are distinct."""
    dice = random.Random(seed)
    for oid in dice.sample(range(1, 2**53), count):
        yield oid, User(
            oid, f"Test {oid}", f"test-{oid}", UUID(int=dice.getrandbits(128), version=4), f"test-{oid}@example.com",
            date(1950, 12, 24), True, ["geek", "sudoko", "yellow"],
            {f"test-rating-{j}": dice.random() for j in range(10)},
            [dice.randint(0, 2**53) for _ in range(10)], dice.randint(0, 2**53),
        )  # fmt: skip


def six_fields(user: User) -> SixFields:
    """The part of *user* that the published FlatBuffers benchmark wrote."""
    return SixFields(user.name, user.authid, user.email, user.birthday, user.is_friendly, user.referred_by)


def small(number: int) -> Small:
    """A small record, the same for the same number."""
    dice = random.Random(number)
    return Small(number, dice.randint(0, 1000), dice.random(), 7, dice.random(), f"record {number}", "Gothenburg")


PERSON_NAMES = ("Alice", "Bob", "Charlie", "Dave", "Eve")
PERSON_EMAILS = tuple(f"{name.lower()}@email.com" for name in PERSON_NAMES)
PERSON_AGES = (15, 11, 53, 34, 96, 64)
PERSON_ADDRESSES = (
    "01 rue Notre Dame", "11 street St Bob", "Route to Heaven bis", "Here", "Not here", "Maybe here",
)  # fmt: skip
PERSON_COLUMNS: tuple[tuple[Any, ...], ...] = (PERSON_NAMES, PERSON_EMAILS, PERSON_AGES, PERSON_ADDRESSES)
CHUNK = 10_000


def persons(count: int) -> Iterator[tuple[UUID, Person]]:
    """ZipponDB's users: four independent draws each, seeded with 0; keys are random, and ascend.

    Columns are drawn in chunks, which is several times faster than row by row. At most 2**32 - 2 users: the step from
    key to key then has more than the 96 bits that are random.
    """
    dice, keys = random.Random(0), random.Random(1).getrandbits
    step = (1 << 128) // (count + 1)
    for start in range(0, count, CHUNK):
        numbers = range(start, min(start + CHUNK, count))
        columns = [dice.choices(column, k=len(numbers)) for column in PERSON_COLUMNS]
        yield from zip([UUID(int=number * step + keys(96)) for number in numbers], map(Person, *columns))


GOODS: dict[str, dict[str, float]] = {
    "Book": dict(zip([f"Book{n}" for n in range(1, 8)], (12.45, 10.45, 12.45, 2.00, 59.99, 10.45, 10.45))),
    "Food": {f"Food{n}": 1.45 for n in (1, 2, 3, 4, 6, 7, 8)},
    "Toy": {"Toy1": 10.45, "Toy2": 4.45, "Toy3": 6.45, "Toy4": 1.45},
    "Other": {"Other": 0.99},
}
"""ZipponDB's items and their prices, by category."""


def goods() -> tuple[list[tuple[UUID, Category]], list[tuple[UUID, Item]]]:
    """ZipponDB's categories and items, with their keys; each item has the key of its category."""
    dice = random.Random(2)
    categories = {UUID(int=dice.getrandbits(128), version=4): Category(name) for name in GOODS}
    items = [
        (UUID(int=dice.getrandbits(128), version=4), Item(name, price, key))
        for key, category in categories.items()
        for name, price in GOODS[category.name].items()
    ]
    return sorted(categories.items()), sorted(items, key=lambda pair: pair[0])


def documents(count: int) -> Iterator[tuple[str, Document]]:
    """ZDS' documents, in its order of draws: record 0 has age 58, score 11.13 and tags ["b"]."""
    dice = random.Random(42)
    for i in range(count):
        document: Document = {
            "id": f"record_{i:08d}", "name": f"User {i}", "email": f"user{i}@example.com",
            "age": dice.randint(18, 80), "score": round(dice.uniform(0, 100), 2), "active": dice.choice([True, False]),
        }  # fmt: skip
        document["tags"] = dice.sample(["a", "b", "c", "d", "e"], dice.randint(1, 3))
        document["metadata"] = {
            "created": f"2025-01-{(i % 28) + 1:02d}", "source": dice.choice(["web", "mobile", "api"]),
        }  # fmt: skip
        yield document["id"], document


def uuids_to_text(value: list[UUID]) -> str:
    """A list of UUIDs as JSON text."""
    return json.dumps([one.hex for one in value])


def uuids_from_text(text: str) -> list[UUID]:
    """The opposite of `uuids_to_text`."""
    return [UUID(one) for one in json.loads(text)]


def column_to_store(kind: str) -> Callable[[Any], Any]:
    """How a column that SQL has no type for is stored: UUIDs as bytes, dates as text, lists and dicts as JSON text."""
    conversions: dict[str, Callable[[Any], Any]] = {
        "uuid": lambda value: value.bytes, "date": date.isoformat, "json": json.dumps, "bool": int,
        "datetime": datetime.isoformat, "uuids": uuids_to_text,
    }  # fmt: skip
    return conversions.get(kind, lambda value: value)


def column_from_store(kind: str) -> Callable[[Any], Any]:
    """The opposite of `column_to_store`."""
    conversions: dict[str, Callable[[Any], Any]] = {
        "uuid": lambda value: UUID(bytes=value), "date": date.fromisoformat, "json": json.loads, "bool": bool,
        "datetime": datetime.fromisoformat, "uuids": uuids_from_text,
    }  # fmt: skip
    return conversions.get(kind, lambda value: value)
