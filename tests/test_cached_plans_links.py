"""Cached plans over one link: the rows of a loop, while of the other table only entries of an index are read."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional
from uuid import UUID

import pytest

import zlmdb
from zlmdb import ForeignKey, Index, Table, UniqueIndex
from zlmdb.tables.executor.execution import Running
from zlmdb.tables.executor.linkedpaths import CachedLinked, LinkedPath

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Author:
    name: str
    email: str
    born: int
    rate: float
    nick: Optional[str] = None


class Numbered(Table[int, Author]):
    by_name = Index[str]("name")
    by_email = UniqueIndex[str]("email")
    by_rate = Index[float]("rate")
    by_nick = Index[str]("nick")
    by_both = Index[tuple[int, str]]("born", "name")
    by_fold = Index[str]("name.casefold()")


class Spelled(Table[str, Author]):
    by_name = Index[str]("name")
    by_email = UniqueIndex[str]("email")


class Identified(Table[UUID, Author]):
    by_name = Index[str]("name")
    by_email = UniqueIndex[str]("email")


class Paired(Table[tuple[str, int], Author]):
    by_name = Index[str]("name")
    by_email = UniqueIndex[str]("email")


@dataclass
class Book:
    title: str
    number: int
    text: str
    uuid: UUID
    pair: tuple[str, int]
    editor: Optional[int] = None


class Books(Table[int, Book]):
    by_number = ForeignKey["Numbered"]("number")
    by_text = ForeignKey["Spelled"]("text")
    by_uuid = ForeignKey["Identified"]("uuid")
    by_pair = ForeignKey["Paired"]("pair")
    by_editor = ForeignKey["Numbered"]("editor")


class Library(zlmdb.Schema):
    numbered: Numbered
    spelled: Spelled
    identified: Identified
    paired: Paired
    books: Books


SIZE = 90


def author(n: int) -> Author:
    return Author(f"{'Abc'[n % 3]}{n // 9}", f"e{n}", n % 5, n / 4, None if n % 4 else f"n{n // 8}")


def key(n: int) -> str:
    return f"{'xyz'[n % 3]}\0{n}"


def fill(t: Library) -> None:
    dice = random.Random(5)
    for n in range(SIZE):
        one = author(n)
        t.numbered[n] = t.spelled[key(n)] = t.identified[UUID(int=n << 70)] = t.paired[key(n), n] = one
    for n in range(1000):
        of = dice.randrange(SIZE)
        editor = None if n % 2 else dice.randrange(SIZE)
        t.books[n] = Book(f"b{n}", of, key(of), UUID(int=of << 70), (key(of), of), editor)


@pytest.fixture(scope="module")
def db() -> Iterator[zlmdb.Database[Library]]:
    with zlmdb.open(None, Library) as db:
        with db.write() as t:
            fill(t)
        yield db


Make = Callable[[Any, int], Callable[..., Any]]

TOLD: dict[str, Make] = {
    "unique": lambda t, n: (email := f"e{n}") and (lambda b: t.numbered[b.number].email == email),
    "several": lambda t, n: (name := author(n).name) and (lambda b: t.numbered[b.number].name == name),
    "text key": lambda t, n: (email := f"e{n}") and (lambda b: t.spelled[b.text].email == email),
    "several, text key": lambda t, n: (name := author(n).name) and (lambda b: t.spelled[b.text].name == name),
    "uuid key": lambda t, n: (email := f"e{n}") and (lambda b: t.identified[b.uuid].email == email),
    "among": lambda t, n: (some := (f"e{n}", f"e{n + 1}")) and (lambda b: t.numbered[b.number].email in some),
    "of an optional field": lambda t, n: (nick := f"n{n // 8}") and (lambda b: t.numbered[b.number].nick == nick),
    "optional": lambda t, n: (
        (email := f"e{n}") and (lambda b: b.editor is not None and t.numbered[b.editor].email == email)
    ),
    "with another": lambda t, n: (
        (name := author(n).name) and (lambda k, b: t.numbered[b.number].name == name and k % 2 == 0 and "1" in b.title)
    ),
}
ASKED: dict[str, Make] = {  # the entries do not tell all, or another index may be better
    "range": lambda t, n: (name := author(n).name) and (lambda b: name <= t.numbered[b.number].name <= name),
    "float": lambda t, n: (rate := n / 4) and (lambda b: t.numbered[b.number].rate == rate),
    "text as it is indexed": lambda t, n: (
        (name := author(n).name.casefold()) and (lambda b: t.numbered[b.number].name.casefold() == name)
    ),
    "two of one": lambda t, n: (
        (one := author(n)) and (lambda b: t.numbered[b.number].name == one.name and t.numbered[b.number].born == 3)
    ),
    "either": lambda t, n: (
        (email := f"e{n}") and (lambda b: t.numbered[b.number].email == email or t.numbered[b.number].email == "e3")
    ),
    "two links": lambda t, n: (
        (name := author(n).name) and (lambda b: t.numbered[b.number].name == name and t.spelled[b.text].name == name)
    ),
    "pair": lambda t, n: (email := f"e{n}") and (lambda b: t.paired[b.pair].email == email),
    "and an index": lambda t, n: (
        (email := f"e{n}") and (lambda b: t.numbered[b.number].email == email and b.text == key(n))
    ),
}


def ready(t: Any, condition: Any) -> set[type]:
    """What is known of queries with the code of *condition*."""
    known = t.books._storage.generated.programs.known
    return {
        type(one) for names, one in known.cached.items() if t.books.where(condition)._query.where[0].reading in names
    }


@pytest.mark.parametrize("name", [*TOLD, *ASKED])
def test_rows_are_those_of_a_loop(db: Any, name: str) -> None:
    make = {**TOLD, **ASKED}[name]
    for n in (3, 40, 41, 89, 3, 200):
        with db.read() as t:
            condition = make(t, n)
            both = condition.__code__.co_argcount == 2
            expected = [(k, b) for k, b in t.books.items() if (condition(k, b) if both else condition(b))]
            found = t.books.where(condition)
            for _ in range(2):
                assert found.all() == list(found) == expected
            assert found.first() == (expected[0] if expected else None)
            assert found.limit(3, 1).all() == list(found.limit(3, 1)) == expected[1:4]
            assert found.fields(lambda b: (b.title, b.number)).all() == [(b.title, b.number) for _, b in expected]
            assert found.fields(lambda b: t.numbered[b.number].email).all() == [f"e{b.number}" for _, b in expected]
            part = t.books.select(100, 700, reverse=True).where(condition)
            assert part.keys().all() == [k for k, _ in expected if 100 <= k < 700][::-1]
            assert found.count() == len(expected)
            if n == 89:
                assert (CachedLinked in ready(t, condition)) is (name in TOLD)


@pytest.mark.parametrize("name", TOLD)
def test_no_record_of_the_other_table_is_read(
    db: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    make = TOLD[name]
    with db.read() as t:
        for n in (3, 40, 41):
            t.books.where(make(t, n)).all()
    with db.read() as t:
        expected = t.books.where(make(t, 5)).all()
        for table in (t.numbered, t.spelled, t.identified):

            def refused(self: Any, key: Any) -> Any:
                raise AssertionError(key)

            monkeypatch.setattr(
                table, "__class__", type("Refusing", (type(table),), {"__slots__": (), "__getitem__": refused})
            )
        monkeypatch.setattr(Running, "choice", refused)
        assert expected
        assert t.books.where(make(t, 5)).all() == expected
        monkeypatch.undo()


def test_what_is_written_in_between_counts() -> None:
    def keys(t: Any, email: str) -> Any:
        return t.books.where(lambda b: t.numbered[b.number].email == email).keys().all()

    with zlmdb.open(None, Library) as db:
        with db.write() as t:
            fill(t)
        for _ in range(3):
            with db.read() as t:
                before = keys(t, "e7")
        assert before
        with db.write() as t:
            t.numbered[7] = author(7000)
            assert keys(t, "e7") == []
            t.numbered[8] = author(7)
            changed = keys(t, "e7")
            assert changed == [k for k, b in t.books.items() if b.number == 8]
        with db.read() as t:
            assert keys(t, "e7") == changed
            assert keys(t, "e7000") == before
            with db.write() as w:
                del w.books[changed[0]]
            assert keys(t, "e7") == changed
        with db.read() as t, db.read() as old:
            assert keys(t, "e7") == changed[1:]
            assert t.books.where(lambda b: old.numbered[b.number].email == "e7").keys().all() == changed[1:]
        with db.read() as t:
            for value in ("\ud800", "e7" * 400, ""):
                assert keys(t, value) == []


def test_conditions_on_one_linked_record_use_one_index_of_its_table_together(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    others = LinkedPath.others

    def noted(path: Any, table: Any, where: Any) -> Any:
        found = others(path, table, where)
        read.append(len(found or ()))
        return found

    def ask(n: int) -> Any:
        born, name = author(n).born, author(n).name
        return t.books.where(lambda b: t.numbered[b.number].born == born and t.numbered[b.number].name == name)

    with db.read() as t:
        ask(1).all(), ask(2).all()
        monkeypatch.setattr(LinkedPath, "others", noted)
        for n in (3, 40, 89):
            same = [k for k, one in t.numbered.items() if (one.born, one.name) == (author(n).born, author(n).name)]
            read.clear()
            assert ask(n).keys().all() == [k for k, b in t.books.items() if b.number in same]
            assert read == [len(same)]


def test_the_records_that_refer_to_what_an_index_finds_are_counted_unread(db: Any) -> None:
    def count(name: str, lower: int = 0) -> int:
        found = t.books.select(lower) if lower else t.books
        return int(found.where(lambda b: t.numbered[b.number].name == name).count())

    with db.read() as t:
        first, second = author(1).name, author(40).name
        count(first), count(first)
        plans = [
            one for one in t.books._storage.generated.programs.known.cached.values()
            if isinstance(one, CachedLinked) and one._alone
        ]  # fmt: skip
        lists = [one._list for one in plans]
        try:
            for one in plans:
                one._list = lambda *given: pytest.fail("records were read")
            for name in (first, second, "nobody"):
                names = [t.numbered[b.number].name for b in t.books.values()]
                assert count(name) == names.count(name)
                assert count(name, 500) == names[500:].count(name)
        finally:
            for one, listing in zip(plans, lists):
                one._list = listing
        assert plans
