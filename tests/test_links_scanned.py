"""Conditions on linked records that no index finds: the other table is read once, and the rows stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional

import pytest

import zlmdb
from zlmdb import ForeignKey, Table
from zlmdb.query.following import Followed
from zlmdb.tables import linkscans, semijoins


@dataclass
class Author:
    name: str
    born: int
    mentor: Optional[int] = None


@dataclass
class Book:
    title: str
    author: int
    editor: Optional[int]
    judges: list[int]


class Authors(Table[int, Author]):
    by_mentor = ForeignKey["Authors"]("mentor", deferred=True)


class Books(Table[int, Book]):
    by_author = ForeignKey["Authors"]("author")
    by_editor = ForeignKey["Authors"]("editor")
    by_judge = ForeignKey["Authors"]("judges", each=True)


class Flat(Table[int, zlmdb.FlatBuffers[Book]]):
    by_author = ForeignKey["Authors"]("author")


class Library(zlmdb.Schema):
    authors: Authors
    books: Books
    flat: Flat
    bare: Table[int, Book]


def fill(t: Library) -> None:
    for key in range(100):
        t.authors[key] = Author(f"{'abcd'[key % 4]}{key // 20}", key % 9, None if key % 3 else key // 2)
    for key in range(400):
        book = Book(f"b{key}", key * 7 % 100, key % 100 if key % 4 else None, [key % 50, key % 7])
        t.books[key] = t.flat[key] = t.bare[key] = book


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with zlmdb.open(None, Library) as db:
        with db.write() as t:
            fill(t)
        yield db


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[Optional[int]]:
    """How many keys were found by reading the other table, of each time that this was tried."""
    found: list[Optional[int]] = []
    keys_that_fit = linkscans.keys_that_fit

    def watched(*arguments: Any) -> Any:
        keys = keys_that_fit(*arguments)
        found.append(None if keys is None else len(keys))
        return keys

    monkeypatch.setattr(linkscans, "keys_that_fit", watched)
    return found


CONDITIONS: dict[str, Callable[[Any, str], Callable[[Book], Any]]] = {
    "equal": lambda t, name: lambda b: t.authors[b.author].name == name,
    "not": lambda t, name: lambda b: not t.authors[b.author].name >= name,
    "method": lambda t, name: lambda b: t.authors[b.author].name.startswith(name[0]) and b.author != 4,
    "two fields": lambda t, name: lambda b: t.authors[b.author].born < 5 and t.authors[b.author].name < name,
    "two of one": lambda t, name: (
        lambda b: t.authors[b.author].name[0] + str(t.authors[b.author].born) == name[0] + "3"
    ),
    "either, of one": lambda t, name: lambda b: t.authors[b.author].name == name or t.authors[b.author].born == 3,
    "either, of the record": lambda t, name: lambda b: t.authors[b.author].name == name or b.author == 3,
    "both ways": lambda t, name: (
        lambda b: (t.authors[b.author].name == name and b.author > 9) or (b.author == 3 and b.editor != 5)
    ),
    "optional": lambda t, name: lambda b: b.editor is not None and t.authors[b.editor].name == name,
    "two links": lambda t, name: (
        lambda b: b.editor is not None and t.authors[b.editor].born < 4 and t.authors[b.author].name[0] == "b"
    ),
    "with the record": lambda t, name: lambda b: t.authors[b.author].name[1:] == b.title[1:],
    "each": lambda t, name: lambda b: any(t.authors[one].name == name for one in b.judges),
    "all": lambda t, name: lambda b: all(t.authors[one].name != name for one in b.judges),
    "of nobody": lambda t, name: lambda b: t.authors[b.author].name == name + "?",
    "mentor": lambda t, name: lambda b: t.authors[b.author].mentor is None,
}


@pytest.mark.parametrize("few", [1000, 3])
@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_are_those_of_a_loop(db: Any, name: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semijoins, "CAP", few)
    with db.read() as t:
        for table in (t.books, t.flat, t.bare):
            for text in ("b1", "c3", "a0"):
                condition = CONDITIONS[name](t, text)
                expected = [(key, book) for key, book in table.items() if condition(book)]
                query = table.where(condition)
                assert query.all() == expected
                assert query.values().all() == [book for _, book in expected]
                assert query.fields(lambda k, b: (k, b.title)).all() == [(k, b.title) for k, b in expected]
                assert query.order_by(lambda b: b.title).all() == sorted(expected, key=lambda pair: pair[1].title)
                assert query.limit(2).all() == expected[:2]


def test_few_are_found_by_the_index_of_the_link(db: Any, scanned: list[Optional[int]]) -> None:
    with db.read() as t:
        query = t.books.where(lambda b: t.authors[b.author].name == "b1")
        assert query.keys().all() == [key for key in t.books if t.authors[t.books[key].author].name == "b1"]
        assert scanned == [5]


def test_what_is_wanted_in_part_reads_no_other_table(db: Any, scanned: list[Optional[int]]) -> None:
    with db.read() as t:
        query = t.books.where(lambda b: t.authors[b.author].name == "b1")
        assert query.first() == next(iter(query)) == query.limit(1).all()[0]
        assert query
        assert t.bare.where(lambda b: t.authors[b.author].name == "b1").all() == query.all()
        assert scanned == [5]  # of the last one, which has an index


def test_a_range_or_a_group_reads_no_other_table(db: Any, scanned: list[Optional[int]]) -> None:
    with db.read() as t:
        condition = CONDITIONS["equal"](t, "b1")
        expected = [key for key, book in t.books.items() if condition(book)]
        assert t.books.select(100, 300).where(condition).keys().all() == [k for k in expected if 100 <= k < 300]
        found = t.books.select().group_by(lambda b: b.author > 50, lambda g: g.where(condition).keys().all())
        assert found[False] == expected
        assert found[True] == []
        assert not scanned


def test_another_condition_may_leave_little_to_look_up(db: Any, scanned: list[Optional[int]]) -> None:
    with db.read() as t:
        t.books.where(lambda b: b.title == "b3" and t.authors[b.author].name == "b1").all()
        assert scanned == [5]  # a fourth of the records at most


def test_most_of_the_other_table_and_a_small_table_are_looked_up(db: Any, scanned: list[Optional[int]]) -> None:
    with db.read() as t:
        assert len(t.books.where(lambda b: t.authors[b.author].name[0] != "b").all()) == 300
        assert scanned == [None]
    with zlmdb.open(None, Library) as small:
        with small.write() as t:
            t.authors[1] = Author("Ann", 1)
            t.books[1] = Book("Seas", 1, None, [])
        with small.read() as t:
            assert t.books.where(lambda b: t.authors[b.author].name == "Ann").keys().all() == [1]
    assert scanned == [None]


def test_other_values_of_the_same_function_find_other_records(db: Any, scanned: list[Optional[int]]) -> None:
    with db.read() as t:
        for name in ("b1", "c3", "a0", "nobody", "b1"):
            query = t.flat.where(CONDITIONS["equal"](t, name))
            assert query.keys().all() == [k for k, b in t.flat.items() if t.authors[b.author].name == name]
            twice = t.flat.where(CONDITIONS["equal"](t, name)).where(CONDITIONS["equal"](t, "b1"))
            assert twice.count() == len(twice.all()) == (20 if name == "b1" else 0)
    assert None not in scanned


def test_a_change_of_many_sees_what_its_transaction_has_written(db: Any, scanned: list[Optional[int]]) -> None:
    with db.write() as t:
        t.authors[8] = Author("new", 1)
        expected = [key for key, book in t.books.items() if book.author == 8]
        assert t.books.where(lambda b: t.authors[b.author].name == "new").delete() == len(expected) == 4
        assert scanned == [1]
        assert not [key for key in expected if key in t.books]
        t.txn.abort()


def test_what_the_other_table_cannot_tell_is_asked_of_the_records_that_are_there(db: Any) -> None:
    with db.write() as t:
        t.authors[1000] = Author("", 1)  # nobody refers to it
    with db.read() as t:
        query = t.books.where(lambda b: t.authors[b.author].name[1] == "1")
        assert query.keys().all() == [k for k, b in t.books.items() if t.authors[b.author].name[1] == "1"]
    with db.write() as t:
        del t.authors[1000]


def test_a_condition_made_of_another_is_a_condition(db: Any) -> None:
    with db.read() as t:
        query = t.books.where(lambda b: t.authors[b.author].name == "b1")
        followed: Followed = query._query.where[0]
        query.all()
        made = [one for one in followed.reading.kept.values() if hasattr(one, "steps")]
        assert sorted(map(repr, (one.node for one in made))) == ["(b.author in found)", "(value.name == 'b1')"]
