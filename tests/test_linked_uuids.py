"""Links by UUIDs, which queries remember by their numbers and bytes: the same as calling the function gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Optional, Union
from uuid import UUID

import pytest

import zlmdb
from zlmdb import Index, Table
from zlmdb.query import remembered

from .answers import CODECS, LINKED

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Author:
    name: str
    born: int
    tags: list[str]


@dataclass
class Book:
    title: str
    author: UUID
    other: Optional[UUID] = None


class Odd(UUID):
    """A key of another type."""


def schema(codec: Any) -> Any:
    book, author = (codec[model] if codec else model for model in (Book, Author))

    class Authors(Table[UUID, author]):  # type: ignore[valid-type]
        """Authors by UUID."""

    class Books(Table[int, book]):  # type: ignore[valid-type]
        by_author = Index[UUID]("author")

    class Library(zlmdb.Schema):
        authors: Authors
        books: Books

    return Library


def key(n: int) -> UUID:
    return UUID(int=n * 7919 << 60 | n)


@pytest.fixture(params=LINKED)
def db(request: Any) -> Iterator[Any]:
    codec, layout = request.param
    with zlmdb.open(None, schema(CODECS[codec]), layout=layout) as db:
        with db.write() as t:
            for n in range(9):
                t.authors[key(n)] = Author(f"a{n}", 1900 + n, ["x"] * n)
            for n in range(60):
                t.books[n] = Book(f"b{n}", key(n * 5 % 8), key(n % 9) if n % 3 else None)
        yield db


GIVEN: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "name": lambda t: lambda b: (b.title, t.authors[b.author].name),
    "twice": lambda t: lambda b: (t.authors[b.author].name, b.author, t.authors[b.author].born),
    "record": lambda t: lambda b: (b.title, t.authors[b.author].name, t.authors[b.author].tags),
    "optional": lambda t: lambda b: None if b.other is None else t.authors[b.other].born + t.authors[b.author].born,
    "keyed": lambda t: lambda k, b: (k, t.authors[b.author].name),
    "each": lambda t: lambda b: [t.authors[one].name for one in (b.author, b.author)],
}


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("most", [2, remembered.MOST])
def test_rows_are_what_the_function_gives(
    db: Any, name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(remembered, "MOST", most)
    keyed = name == "keyed"
    for how in (db.read, db.read, db.write):
        with how() as t:
            function = GIVEN[name](t)
            rows = [function(k, b) if keyed else function(b) for k, b in t.books.items()]
            assert t.books.fields(function).all() == list(t.books.fields(function)) == rows
            assert t.books.fields(function).first() == rows[0]
            wanted, old = key(3), 1905
            few = t.books.where(lambda b: b.author == wanted).fields(function).all()  # noqa: B023
            assert few == [row for row, b in zip(rows, t.books.values()) if b.author == wanted]
            found = t.books.where(lambda b: b.title > "b3" and t.authors[b.author].born > old)  # noqa: B023
            some = [row for row, b in zip(rows, t.books.values()) if b.title > "b3" and t.authors[b.author].born > old]
            assert found.fields(function).all() == some
            assert found.limit(3).fields(function).all() == some[:3]


def test_what_is_wrong_is_raised_by_the_record_that_asks(db: Any) -> None:
    with db.write() as t:
        t.books[30] = Book("lost", key(100))
        t.txn._engine_txn.put(t.authors._storage.encode_key(key(2)), b"\xc1", db=t.authors._db)
    for _ in range(3):
        with db.read() as t:
            for read in (list, lambda rows: rows.all()):
                with pytest.raises(KeyError) as lost:
                    read(t.books.select(30, 31).fields(lambda b: (b.title, t.authors[b.author].name)))
                assert lost.value.args == (key(100),)
                with pytest.raises(zlmdb.DecodeError):
                    read(t.books.fields(lambda b: (t.authors[b.author].name, b.title)))
            fine = t.books.select(0, 2).fields(lambda b: t.authors[b.author].name)
            assert fine.all() == ["a0", "a5"]


def test_a_record_that_was_written_is_read_again(db: Any) -> None:
    with db.write() as t:
        names = []
        for n, name in enumerate(t.books.fields(lambda b: t.authors[b.author].name)):
            names.append(name)
            t.authors[key(0)] = Author(f"new{n}", 1, [])
        assert names[:16:8] == ["a0", "new7"]


def test_a_pickled_key_of_another_type_is_looked_up_as_it_is() -> None:
    with zlmdb.open(None, schema(zlmdb.Pickle)) as db:
        with db.write() as t:
            t.authors[key(1)] = Author("a", 1, [])
            for n in range(20):
                t.books[n] = Book("b", Odd(int=key(1).int) if n == 12 else key(1))
        for _ in range(3):
            with db.read() as t:
                rows = t.books.fields(lambda b: (b.title, t.authors[b.author].name)).all()
                assert rows == [("b", "a")] * 20


@pytest.mark.parametrize("codec", ["plain", "msgpack", "cbor", "flat"])
def test_a_linked_record_is_read_once_where_the_engine_has_it(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []

    def look(self: Any, found: Any) -> Any:
        looked.append(found)
        return original(self, found)

    original = remembered.Remembered.look
    monkeypatch.setattr(remembered.Remembered, "look", look)
    with zlmdb.open(None, schema(CODECS[codec])) as db:
        with db.write() as t:
            for n in range(4):
                t.authors[key(n)] = Author(f"a{n}", n, [])
            for n in range(30):
                t.books[n] = Book("b", key(n % 4))
        with db.read() as t:
            rows = t.books.fields(lambda b: (b.title, t.authors[b.author].name))
            for _ in range(3):
                looked.clear()
                assert rows.all() == [("b", f"a{n % 4}") for n in range(30)]
                assert not looked  # by the table, each of which takes several calls


@dataclass
class Note:
    text: str
    number: int
    word: str


def by_number_and_word(codec: Any) -> Any:
    note, author = (codec[model] if codec else model for model in (Note, Author))

    class Tables(zlmdb.Schema):
        numbers: Table[int, author]  # type: ignore[valid-type]
        words: Table[str, author]  # type: ignore[valid-type]
        notes: Table[int, note]  # type: ignore[valid-type]

    return Tables


@pytest.mark.parametrize("codec", ["plain", "flat", "pickle"])
def test_links_by_numbers_and_texts_give_what_the_function_gives(codec: str) -> None:
    with zlmdb.open(None, by_number_and_word(CODECS[codec])) as db:
        with db.write() as t:
            for n in range(-3, 6):
                t.numbers[n] = t.words[f"w{n}"] = Author(f"a{n}", n, ["x"])
            for n in range(40):
                t.notes[n] = Note(f"n{n}", n * 3 % 9 - 3, f"w{n % 6}")
            t.notes[40], t.notes[41] = Note("lost", 7, "w1"), Note("lost", 1, "none")
        for how in (db.read, db.read, db.write):
            with how() as t:
                functions: list[Callable[..., Any]] = [
                    lambda n: (n.text, t.numbers[n.number].name),
                    lambda n: t.words[n.word].born + t.numbers[n.number].born,
                ]
                for function in functions:
                    fine = t.notes.select(0, 40)
                    expected = [function(note) for note in fine.values()]
                    assert fine.fields(function).all() == list(fine.fields(function)) == expected
                    in_order = [function(note) for note in sorted(fine.values(), key=function)]
                    assert fine.order_by(function).fields(function).all() == in_order
                    assert fine.order_by(function).limit(5).fields(function).all() == in_order[:5]
                with pytest.raises(KeyError, match="7"):
                    t.notes.fields(functions[0]).all()
                with pytest.raises(KeyError, match="none"):
                    t.notes.select(41).fields(functions[1]).all()


class Many(int):
    """A number of another type."""


def test_a_pickled_number_of_another_type_is_looked_up_as_it_is() -> None:
    with zlmdb.open(None, by_number_and_word(zlmdb.Pickle)) as db:
        with db.write() as t:
            t.numbers[1] = Author("a", 1, [])
            for n in range(20):
                t.notes[n] = Note("n", Many(1) if n == 12 else 1, "1")
        for _ in range(3):
            with db.read() as t:
                assert t.notes.fields(lambda n: t.numbers[n.number].name).all() == ["a"] * 20


def spelled(table: Any, text: Union[str, bytes]) -> bytes:
    """The bytes of a book whose author has the key that *text* spells, or damages."""
    data, zero = bytes(table._storage.value.encode(Book("b", UUID(int=0)))), str(UUID(int=0)).encode()
    before, after = data.split(zero)
    if isinstance(text, bytes):  # the bytes of MessagePack, which other programs write
        return before[:-2] + b"\xc4\x10" + text + after
    length = b"" if before.endswith(b'"') else bytes([len(text.encode())])
    return before[: len(before) - len(length)] + length + text.encode() + after


@pytest.mark.once  # all of these are read by one library, which PyPy does not have
@pytest.mark.parametrize("codec", [zlmdb.Msgpack, zlmdb.Json, zlmdb.Cbor])
def test_a_uuid_that_is_spelled_in_another_way_or_damaged_is_read_as_in_the_record(codec: Any) -> None:
    usual, bare, upper, missing = key(1), key(2), UUID(int=0xABC << 100), UUID(int=7)
    text = str(usual)
    damaged = ("", "x", f"{{{usual}}}", f"urn:uuid:{usual}", f" {usual}", text.replace("-", " "), f"{usual}0",
               f"{text[:8]}{text[9:]}-", f"{text[:-1]}-", text.replace("0", "\u0660", 1))  # fmt: skip
    with zlmdb.open(None, schema(codec)) as db:

        def put(n: int, text: Union[str, bytes]) -> None:
            with db.write() as t:
                t.txn._engine_txn.put(t.books._storage.encode_key(n), spelled(t.books, text), db=t.books._db)

        with db.write() as t:
            for n, one in enumerate((usual, bare, upper)):
                t.authors[one] = Author(f"a{n}", n, [])
            for n in range(30):
                t.books[n] = Book("b", (usual, bare, upper)[n % 3])
        put(1, bare.hex)
        put(2, str(upper).upper())
        if codec is zlmdb.Msgpack:
            put(3, usual.bytes)
        for _ in range(3):
            with db.read() as t:
                rows = [(b.title, t.authors[b.author].name) for b in t.books.values()]
                assert t.books.fields(lambda b: (b.title, t.authors[b.author].name)).all() == rows
                found = t.books.where(lambda b: t.authors[b.author].born == 1).keys().all()
                assert found == [k for k, b in t.books.items() if t.authors[b.author].born == 1]
        for one in damaged:
            put(30, one)
            with db.read() as t:
                with pytest.raises(zlmdb.DecodeError) as expected:
                    t.books[30]
                given = t.books.fields(lambda b: (b.title, t.authors[b.author].name))
                for read in (list, lambda rows: rows.all()):
                    with pytest.raises(zlmdb.DecodeError) as raised:
                        read(given)
                    assert str(raised.value) == str(expected.value)
        put(30, missing.hex)
        with db.read() as t, pytest.raises(KeyError) as lost:
            t.books.fields(lambda b: (b.title, t.authors[b.author].name)).all()
        assert lost.value.args == (missing,)
