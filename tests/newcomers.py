"""Models, tables, schemas and databases as newcomers write them, for the tests of what they get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from typing import Any, Optional
from uuid import UUID

import pytest

import zlmdb


@dataclass
class Note:
    title: str
    stars: int = 0
    due: Optional[datetime] = None
    tags: list[str] = field(default_factory=list)


class Notes(zlmdb.Table[int, Note]):
    by_title = zlmdb.UniqueIndex[str]("title")
    by_stars = zlmdb.Index[int]("stars")


class Notebook(zlmdb.Schema):
    notes: Notes
    hits: zlmdb.Table[str, int]


@dataclass
class Task:
    name: str
    stars: Optional[int] = None
    tags: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)

    @property
    def rank(self) -> int:
        return self.starz  # type: ignore[attr-defined, no-any-return]


class Tasks(zlmdb.Table[int, Task]):
    by_stars = zlmdb.Index[int]("stars")


class Planner(zlmdb.Schema):
    tasks: Tasks
    jobs: zlmdb.Queue[str]


@dataclass
class Post:
    title: str
    likes: int = 0
    tags: list[int] = field(default_factory=list)


@dataclass
class Numbered:
    title: str
    id: Optional[int] = None


class Posts(zlmdb.Table[int, Post]):
    by_tag = zlmdb.Index[int]("tags", each=True)


class Named(zlmdb.Table[int, Numbered], key="id"):
    """Records that have their key."""


class Blog(zlmdb.Schema):
    posts: Posts
    named: Named
    jobs: zlmdb.Queue[str]
    marks: zlmdb.SetTable[str, int]


class Waiting(zlmdb.Schema):
    jobs: zlmdb.Queue[str]


@dataclass
class Moment:
    when: datetime
    names: dict[str, int]


@dataclass
class Person:
    name: str
    born: date
    tags: list[str]
    city: Optional[str] = None

    def is_tagged(self) -> bool:
        return bool(self.tags)


@dataclass
class Customer:
    name: str
    email: str
    age: Optional[int] = None


class Customers(zlmdb.Table[UUID, Customer]):
    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")
    by_both = zlmdb.Index[tuple[str, int]]("name", "age")


class Shop(zlmdb.Schema):
    users: Customers
    days: zlmdb.Table[date, str]
    sold: zlmdb.Table[int, str]


@dataclass
class Member:
    name: str
    age: int
    nick: Optional[str] = None
    tags: list[str] = field(default_factory=list)


class Club(zlmdb.Schema):
    users: zlmdb.Table[int, Member]
    times: zlmdb.Table[int, datetime]
    jobs: zlmdb.Queue[str]


@dataclass
class Article:
    title: str
    published: Optional[datetime] = None
    stars: Optional[int] = None


class Magazine(zlmdb.Schema):
    posts: zlmdb.Table[int, Article]


@dataclass
class Account:
    name: str
    id: int = 0


class Accounts(zlmdb.Table[int, Account], key="id"):
    pass


class Books(zlmdb.Schema):
    users: Accounts
    texts: zlmdb.Table[str, str]


# -- databases of them, in memory; untyped, as what is tried with them is nothing that a type checker lets pass --------


@pytest.fixture
def notebook() -> Iterator[Any]:
    with zlmdb.open(None, Notebook) as database:
        with database.write() as t:
            t.notes.update({1: Note("One", 3), 2: Note("Two", 1, datetime(2030, 1, 1, tzinfo=timezone.utc))})
        yield database


@pytest.fixture
def planner() -> Iterator[Any]:
    with zlmdb.open(None, Planner) as database:
        with database.write() as t:
            t.tasks.update({1: Task("One", 3), 2: Task("Two", 1)})
        yield database


@pytest.fixture
def books() -> Iterator[Any]:
    with zlmdb.open(None, Books) as opened:
        yield opened


@pytest.fixture
def blog() -> Iterator[Any]:
    with zlmdb.open(None, Blog) as database:
        with database.write() as t:
            t.posts.update({1: Post("One", 3, [7]), 2: Post("Two")})
        yield database


@pytest.fixture
def shop() -> Iterator[Any]:
    with zlmdb.open(None, Shop) as database:
        with database.write() as t:
            t.users.add(Customer("Ann", "ann@x", 31))
            t.users.add(Customer("Bob", "bob@x"))
        yield database


@pytest.fixture
def t() -> Iterator[Any]:
    with zlmdb.open(None, Club) as db:
        with db.write() as t:
            t.users.add(Member("Ann", 31))
        with db.read() as t:
            yield t


@pytest.fixture
def magazine() -> Iterator[Any]:
    with zlmdb.open(None, Magazine) as magazine:
        yield magazine
