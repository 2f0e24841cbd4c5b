"""What many tables cost: with four times as many, each operation makes about four times as many calls."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb.store.access import NOBODY

FEW, MANY = 40, 160


def office(number: int) -> type[zlmdb.Schema]:
    """A schema of *number* tables, each of a class of its own, with an index and a link to the one before it."""
    tables: dict[str, Any] = {}
    before: Any = None
    for position in range(number):
        fields = [("age", int), ("boss", Optional[int], None)]
        indexes: dict[str, Any] = {"by_age": zlmdb.Index[int]("age")}
        if before is not None:
            indexes["by_boss"] = zlmdb.ForeignKey[before]("boss")
        model: Any = make_dataclass(f"Record{position}", fields)
        base: Any = zlmdb.Table[int, model]
        before = types.new_class(f"Table{position}", (base,), {}, lambda names, new=indexes: names.update(new))
        before.model = model
        tables[f"t{position}"] = before
    schema: Any = types.new_class("Office", (zlmdb.Schema,), {}, lambda names: names.update(__annotations__=tables))
    return schema


def calls(work: Callable[[], object]) -> int:
    """How many functions *work* calls, generators that go on included."""
    found = [0]

    def count(frame: object, event: str, _: object) -> None:
        found[0] += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found[0]


def opened(number: int, path: Path) -> int:
    schema = office(number)
    return calls(lambda: zlmdb.open(path, schema, durability="none").close())


def reopened(number: int, path: Path) -> int:
    schema = office(number)
    zlmdb.open(path, schema, durability="none").close()
    return opened(number, path)


def read_and_written(number: int, path: Path) -> int:
    """Each table is read in a loop and written in one transaction, as by a migration."""
    with zlmdb.open(None, office(number)) as db:

        def work() -> None:
            with db.write() as t:
                for name in list(db.tables()):
                    table = getattr(t, name)
                    for key, record in table.items():
                        table[key] = record
                    table.where(lambda record: record.age > 1).keys().all()

        with db.write() as t:
            for name in list(db.tables()):
                table = getattr(t, name)
                table[1] = type(table).model(1)
        work()
        return calls(work)


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="calls are not seen in loops that are compiled")
@pytest.mark.parametrize("operation", [opened, reopened, read_and_written])
def test_calls_grow_as_the_number_of_tables(tmp_path: Path, operation: Callable[[int, Path], int]) -> None:
    operation(2, tmp_path / "first")  # what is done once in a process
    few, many = operation(FEW, tmp_path / "few"), operation(MANY, tmp_path / "many")
    assert many < 4.3 * few, (few, many)


@dataclass
class Author:
    country: str


@dataclass
class Book:
    author: int


class Authors(zlmdb.Table[int, Author]):
    by_country = zlmdb.Index[str]("country")


class Books(zlmdb.Table[int, Book]):
    by_author = zlmdb.ForeignKey[Authors]("author")


class Library(zlmdb.Schema):
    authors: Authors
    books: Books
    readers: zlmdb.Table[int, str]


def test_tables_that_a_loop_reads_write_by_generated_functions_again_when_it_has_ended() -> None:
    def general(t: Library) -> list[bool]:
        return [table._writer is NOBODY for table in (t.authors, t.books, t.readers)]

    with zlmdb.open(None, Library) as db:
        with db.write() as t:
            t.authors.put_many((number, Author("NO" if number < 5 else "SE")) for number in range(200))
            t.books.put_many((number, Book(number % 200)) for number in range(600))
        with db.write() as t:
            t.authors[1], t.books[1], t.readers[1] = Author("NO"), Book(1), "Ann"
            assert general(t) == [False, False, False]
            for _ in t.books.where(lambda book: t.authors[book.author].country == "NO"):
                assert general(t) == [True, True, False]
            assert general(t) == [False, False, False]
