"""Conditions on linked records in loops within a write transaction: each record is judged when its turn comes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Callable

import pytest

import zlmdb
from zlmdb import ForeignKey, Index, Table

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Country:
    name: str


@dataclass
class Author:
    name: str
    country: int


@dataclass
class Book:
    title: str
    author: int
    judges: list[int]


class Countries(Table[int, Country]):
    by_name = Index[str]("name")


class Authors(Table[int, Author]):
    by_name = Index[str]("name")
    by_country = ForeignKey[Countries]("country")


class Books(Table[int, Book]):
    by_author = ForeignKey[Authors]("author", deferred=True)
    by_judge = ForeignKey[Authors]("judges", each=True, deferred=True)


class Library(zlmdb.Schema):
    countries: Countries
    authors: Authors
    books: Books
    others: Table[int, int]


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with zlmdb.open(None, Library) as db:
        with db.write() as t:
            t.countries.update({n: Country(f"c{n}") for n in range(10)})
            t.authors.update({n: Author(f"a{n % 50}", n % 10) for n in range(100)})
            t.books.update({n: Book(f"b{n}", n % 100, [n % 7, n % 90]) for n in range(1000)})
        yield db


CONDITIONS: dict[str, Callable[[Any, str], Callable[[Book], Any]]] = {
    "name": lambda t, n: lambda b: t.authors[b.author].name == f"a{n}",
    "country": lambda t, n: lambda b: t.countries[t.authors[b.author].country].name == f"c{n}",
    "either": lambda t, n: lambda b: t.authors[b.author].name == f"a{n}" or b.author == 9,
    "both": lambda t, n: (
        lambda b: t.authors[b.author].name == f"a{n}" and t.countries[t.authors[b.author].country].name != "c0"
    ),
    "each": lambda t, n: lambda b: any(t.authors[one].name == f"a{n}" for one in b.judges),
}


def counting(t: Any, name: str) -> list[Any]:
    """The keys that are looked up in the table *name* from now on."""
    looked: list[Any] = []
    table = getattr(t, name)
    original = type(table)

    def look_up(self: Any, key: Any) -> Any:
        looked.append(key)
        return original.__getitem__(self, key)

    table.__class__ = type("Counting", (original,), {"__slots__": (), "__getitem__": look_up})
    return looked


def test_only_what_an_index_finds_is_looked_up(db: Any) -> None:
    with db.write() as t:
        query = t.books.where(CONDITIONS["name"](t, "3"))
        query.all()  # the first records are compared with what the function gives
        looked = counting(t, "authors")
        found = []
        for key, _ in query:
            found.append(key)
            t.others[key] = 1  # nothing depends on that
        assert len(found) == len(looked) == 20
        looked.clear()
        assert next(iter(query.keys())) == 3
        assert looked == [3]
        t.txn.abort()


@pytest.mark.parametrize("begins", ["the other table", "this table"])
def test_what_is_written_before_the_first_row_is_asked_for_counts(db: Any, begins: str) -> None:
    with db.write() as t:
        rows = iter(t.books.where(CONDITIONS["name"](t, "3")).keys())
        if begins == "this table":
            t.books[4] = Book("", 3, [])
        else:
            t.authors[4] = Author("a3", 1)
        assert 4 in rows
        t.txn.abort()


def changes(dice: random.Random, t: Any) -> None:
    kind = dice.randrange(8)
    author, book = dice.randrange(100), dice.randrange(1010)
    if kind == 0:
        t.authors[author] = replace(t.authors[author], name=f"a{dice.randrange(6)}")
    elif kind == 1:
        t.authors[author] = replace(t.authors[author], country=dice.randrange(10))
    elif kind == 2:
        t.countries[dice.randrange(10)] = Country(f"c{dice.randrange(10)}")
    elif kind == 3:
        t.books[book] = Book("", dice.randrange(20), [author])
    elif kind == 4:
        t.books.pop(book, None)
    elif kind == 5:
        t.others[book] = 1
    elif kind == 6:
        with t.txn.savepoint():
            t.authors[author] = replace(t.authors[author], name="a3")


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("often", [0.04, 1])
def test_rows_are_those_of_a_loop_whatever_the_body_writes(db: Any, name: str, often: float) -> None:
    for seed in range(12):
        found: list[list[int]] = []
        for query in (True, False):
            dice = random.Random(seed)
            number, reverse = str(dice.randrange(6)), dice.random() < 0.3
            found.append([])
            with db.write() as t:
                condition = CONDITIONS[name](t, number)
                rows = t.books.select(dice.randrange(300), reverse=reverse)
                if query:
                    rows = rows.where(condition)
                for key, book in rows:
                    if query or condition(book):
                        found[-1].append(key)
                        if dice.random() < often:
                            changes(dice, t)
                t.txn.abort()
        assert found[0] == found[1], seed
