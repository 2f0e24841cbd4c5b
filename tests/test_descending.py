"""Descending parts of indexes: their keys, and what is read through them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from tests.test_keys import ATOM_KEYS
from zlmdb import desc
from zlmdb.errors import DecodeError, EncodeError
from zlmdb.keys import ATOMS, BytesKey, KeyCodec, TupleKey, from_name, key_codec
from zlmdb.keys.descending import DescendingKey
from zlmdb.keys.plain import BlobKey, IntKey, StrKey
from zlmdb.operations.keytext import from_plain, to_plain

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python

few = settings(max_examples=max(settings.default.max_examples // 5, 3))
KNOWN = [codec for codec in ATOMS if codec.name in ATOM_KEYS and codec.sorts and codec.name != "string-open"]
every = pytest.mark.parametrize("codec", KNOWN, ids=[codec.name for codec in KNOWN])


@every
@given(st.data())
@few
def test_the_encodings_sort_the_other_way_round(codec: KeyCodec[Any], data: Any) -> None:
    keys = data.draw(st.lists(ATOM_KEYS[codec.name], min_size=2, max_size=5))
    down = DescendingKey(codec)
    assert sorted(keys, key=down.encode) == sorted(keys, key=codec.encode, reverse=True)
    for key in keys:
        assert down.decode(down.encode(key)) == codec.decode(codec.encode(key))


@given(st.lists(st.tuples(st.text("\0\1a\xff", max_size=3), st.binary(max_size=3), st.integers(0, 3)), max_size=9))
def test_parts_of_any_length_sort_in_a_tuple(keys: list[tuple[str, bytes, int]]) -> None:
    codec = TupleKey([DescendingKey(StrKey()), BlobKey(), DescendingKey(IntKey())])
    assert sorted(keys, key=codec.encode) == sorted(keys, key=lambda key: (desc(key[0]), key[1], desc(key[2])))
    assert [codec.decode(codec.encode(key)) for key in keys] == keys
    last = TupleKey([IntKey(), DescendingKey(BlobKey())])
    rows = [(number, data) for _, data, number in keys]
    assert sorted(rows, key=last.encode) == sorted(rows, key=lambda row: (row[0], desc(row[1])))
    assert [last.decode(last.encode(row)) for row in rows] == rows


def test_the_bytes_are_the_complement() -> None:
    assert DescendingKey(IntKey()).encode(1).hex() == "7ffffffffffffffe"
    assert DescendingKey(StrKey()).encode("a\0").hex() == "9efffeffff"
    assert TupleKey([DescendingKey(StrKey()), IntKey()]).encode(("a", 1)).hex() == "9effff8000000000000001"


@pytest.mark.parametrize("name", ["desc(int)", "tuple(str,desc(str),desc(uuid))", "desc(tuple(str,int))"])
def test_a_file_knows_it_by_its_name(name: str) -> None:
    codec = from_name(name)
    assert codec.name == name
    assert codec.classic().name == name
    assert codec.examples


def test_what_does_not_fit_is_refused() -> None:
    codec = DescendingKey(StrKey())
    with pytest.raises(EncodeError, match="is not a key of type str"):
        codec.encode(5)
    for wrong in (b"", b"\x9e", b"\x9e\xff\xff\x00", b"\xff\x00\xff\xff"):
        with pytest.raises(DecodeError):
            codec.decode(wrong)
    with pytest.raises(DecodeError):
        TupleKey([codec, IntKey()]).decode(b"\x9e\xff")


def test_plain_data_are_those_of_the_keys() -> None:
    codec = TupleKey([DescendingKey(key_codec(bytes)), DescendingKey(IntKey())])
    assert to_plain(codec, (b"ab", 3)) == ["6162", 3]
    assert from_plain(codec, ["6162", 3]) == (b"ab", 3)


@dataclass
class Book:
    country: str
    year: int
    title: str = ""
    rank: Optional[int] = None


class Books(zlmdb.Table[int, Book]):
    by_place = zlmdb.Index("country", desc("year"))
    by_year = zlmdb.Index[int](desc("year"))
    by_title = zlmdb.UniqueIndex[str](desc("title.casefold()"))
    by_rank = zlmdb.Index(desc("rank"), "title")


class Store(zlmdb.Schema):
    books: Books


YEARS = st.integers(0, 4)


@given(st.lists(st.tuples(st.sampled_from("ab"), YEARS), max_size=8), YEARS, YEARS, st.booleans())
def test_a_range_is_one_in_the_order_of_the_index(
    rows: list[tuple[str, int]], start: int, stop: int, reverse: bool
) -> None:
    db = zlmdb.open(None, Store)
    with db.write() as t:
        t.books.put_many([(n, Book(country, year, f"t{n}")) for n, (country, year) in enumerate(rows)])

        def order(book: Book) -> Any:
            return book.country, -book.year

        def found(**bounds: Any) -> list[Any]:
            return [order(book) for book in t.books.by_place.select(reverse=reverse, **bounds).values()]

        books = sorted([(country, -year) for country, year in rows], reverse=reverse)
        assert found() == books
        lower, upper = ("a", -start), ("b", -stop)
        assert found(start=("a", start), stop=("b", stop)) == [one for one in books if lower <= one < upper]
        assert found(through=("b", stop)) == [one for one in books if one <= upper]
        assert found(start=("a", start), prefix=("a",)) == [one for one in books if one >= lower and one[0] == "a"]
        years = t.books.by_year.select(start, stop, reverse=reverse).values()
        assert [book.year for book in years] == sorted(
            [year for _, year in rows if start >= year > stop], reverse=not reverse
        )
        assert [year for year, _ in t.books.by_year.groups()] == sorted({year for _, year in rows}, reverse=True)
        assert t.books.by_year[start].count() == sum(year == start for _, year in rows)
    db.close()


def test_texts_begin_and_end_in_a_descending_index() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        for n, title in enumerate(["A", "ab", "Abc", "b", ""]):
            t.books[n] = Book("a", n, title, n or None)
        assert list(t.books.by_title.select().keys()) == [3, 2, 1, 0, 4]
        assert list(t.books.by_title.select(startswith="ab").keys()) == [2, 1]
        assert list(t.books.by_title.select("b", "ab").keys()) == [3, 2]
        assert (t.books.by_title.key("abc"), t.books.by_title.key("")) == (2, 4)
        assert list(t.books.by_rank.select().keys()) == [4, 3, 2, 1]
        with pytest.raises(zlmdb.DuplicateKey):
            t.books[9] = Book("a", 9, "ABC")
        assert list(t.books.by_year.select(10**30, -(10**30)).keys()) == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("codec", [BytesKey(3), BlobKey()], ids=["bytes3", "bytes"])
def test_bytes_with_a_nul_in_them_begin_as_they_do_in_ascending_order(codec: KeyCodec[bytes]) -> None:
    keys = [bytes(key) for key in itertools.product((0, 1, 255), repeat=3)]
    last, first = DescendingKey(codec), TupleKey([DescendingKey(codec), IntKey()])
    for start in (b"", b"\0", b"\1", b"\0\0", b"\0\1", b"\1\0", b"\xff\0", b"\0\0\0"):
        wanted = [key for key in keys if key.startswith(start)]
        for made, encoded in ((last, last.encode), (first, lambda key: first.encode((key, 1)))):
            lower, upper = made.span(startswith=start)
            assert [key for key in keys if lower <= encoded(key) < upper] == wanted


def test_an_order_and_its_mirror_come_from_the_index() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        t.books.put_many([(n, Book("ab"[n % 2], n % 3, f"t{n}")) for n in range(20)])
        for by, names in (
            (lambda b: (b.country, desc(b.year)), ("by_place",)),
            (lambda b: desc(b.year), ("by_year",)),
            (lambda b: (desc(b.rank or 0), b.title), ()),
        ):
            for backwards in (False, True):
                found = t.books.order_by(by, reverse=backwards).limit(7)
                assert found.explain().indexes == names
                rows = sorted(t.books.items(), key=lambda row: by(row[1]), reverse=backwards)
                if backwards:  # which mirrors those that are equal, too
                    rows = sorted(t.books.items(), key=lambda row: by(row[1]))[::-1]
                assert list(found) == rows[:7]
        page = t.books.order_by(lambda b: desc(b.year)).page(5)
        again = t.books.order_by(lambda b: desc(b.year)).page(50, page.next)
        assert [*page, *again] == sorted(t.books.items(), key=lambda row: desc(row[1].year))


def test_a_key_type_without_a_part_for_each_field_is_refused() -> None:
    with pytest.raises(TypeError, match="give it a tuple"):

        class Wrong(zlmdb.Table[int, Book]):
            by = zlmdb.Index[str](desc("country"), "title")
