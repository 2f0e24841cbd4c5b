"""Indexes with an entry for each element: what is declared, and what is read through one."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Callable, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from tests.pagewalk import rows_of_pages
from zlmdb.tables.indexkinds import elementview
from zlmdb.values import F32

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python


@dataclass
class Book:
    title: str
    tags: list[str] = field(default_factory=list)


class Books(zlmdb.Table[str, Book]):
    by_tag = zlmdb.Index[str]("tags", each=True)


class Store(zlmdb.Schema):
    books: Books


BOOKS = {
    "k1": Book("one", ["z", "a", "a"]),
    "k2": Book("two", ["m"]),
    "k3": Book("three", []),
    "k4": Book("four", ["b", "n", "m"]),
}


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    with db.write() as t:
        t.books.update(BOOKS)
    return db


@pytest.fixture(params=["read", "write"])
def books(db: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    with db.write() if request.param == "write" else db.read() as t:
        yield t.books


def test_each_element_leads_to_the_record_once(books: Any) -> None:
    assert list(books.by_tag["m"].keys()) == ["k2", "k4"]
    assert list(books.by_tag["a"]) == [("k1", BOOKS["k1"])]
    assert (books.by_tag["a"].count(), "m" in books.by_tag, "x" in books.by_tag) == (1, True, False)
    assert [(tag, group.count()) for tag, group in books.by_tag.groups()] == [
        ("a", 1), ("b", 1), ("m", 2), ("n", 1), ("z", 1)
    ]  # fmt: skip


def test_a_record_comes_once_in_a_range_at_its_first_element(books: Any) -> None:
    every = books.by_tag.select()
    assert list(every.keys()) == ["k1", "k4", "k2"]
    assert list(books.by_tag.select(reverse=True).keys()) == ["k2", "k4", "k1"]
    assert list(every) == [(key, BOOKS[key]) for key in ("k1", "k4", "k2")]
    assert list(every.values()) == [BOOKS[key] for key in ("k1", "k4", "k2")]
    assert (every.count(), every.first(), every.last()) == (3, ("k1", BOOKS["k1"]), ("k2", BOOKS["k2"]))
    assert list(books.by_tag.select("m", "o").keys()) == ["k2", "k4"]
    assert list(books.by_tag.select("n").keys()) == ["k4", "k1"]
    assert list(books.by_tag.select(limit=2).keys()) == ["k1", "k4"]
    assert books.by_tag.select(limit=2).count() == 2
    assert bool(every)
    assert not books.by_tag.select("x", "y")
    assert dict(every)["k4"] == BOOKS["k4"]
    with pytest.raises(KeyError):
        every["k3"]
    assert [k for k, _ in every.where(lambda b: "m" in b.tags)] == ["k4", "k2"]
    assert every.order_by(lambda b: b.title).fields(lambda b: b.title).all() == ["four", "one", "two"]
    assert every.group_by(lambda b: len(b.tags), lambda g: g.count()) == {3: 2, 1: 1}
    assert str(every.explain()) == "read   index by_tag of books"
    assert repr(every.explain()) == str(every.explain())  # in a shell


class Numbered(zlmdb.Table[int, Book]):
    by_tag = zlmdb.Index[str]("tags", each=True)


class NumberedStore(zlmdb.Schema):
    books: Numbered


def test_one_key_is_read_as_that_of_any_index_in_a_write_transaction(
    make_db: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """first(), last() and count() read all entries of the key, and a list was that of a loop."""
    with make_db(NumberedStore).write() as t:
        t.books.update({number: Book(str(number), ["x", f"y{number % 3}", "m"]) for number in range(50)})
        expected = list(t.books.items())
        searched: list[Any] = []
        found = elementview.ElementSelection.found
        monkeypatch.setattr(elementview.ElementSelection, "found", lambda self: searched.append(self) or found(self))
        for _ in range(2):
            named = t.books.by_tag["m"]
            assert (named.first(), named.last(), named.count()) == (expected[0], expected[-1], len(expected))
            assert (named.keys().first(), named.values().last()) == (expected[0][0], expected[-1][1])
            assert named.all() == expected
            assert named.keys().all() == [key for key, _ in expected]
            assert named.limit(3).all() == expected[:3]
            assert named.limit(3).count() == 3
            assert t.books.by_tag["none"].all() == []
            assert t.books.by_tag["none"].first() is None
            late = named.where(lambda book: "y1" in book.tags)
            expected_late = [pair for pair in expected if "y1" in pair[1].tags]
            assert (late.first(), late.count(), bool(late)) == (expected_late[0], len(expected_late), True)
            assert late.all() == expected_late
            assert (
                late.order_by(lambda book: book.title).limit(2).all()
                == sorted(expected_late, key=lambda pair: pair[1].title)[:2]
            )
            assert named.limit(2).fields(lambda book: book.title).all() == [book.title for _, book in expected[:2]]
            assert late.fields(lambda book: len(book.tags)).sum() == sum(len(book.tags) for _, book in expected_late)
            assert t.books.by_tag.select("y", "z").first() == (0, t.books[0])
            assert not searched
            t.books[48] = Book("changed", ["a"])
            t.books[77] = Book("new", ["m", "m", "n"])
            expected = [(key, book) for key, book in t.books.items() if "m" in book.tags]
        assert list(t.books.by_tag["m"]) == expected
        assert t.books.by_tag.select("x", "y0").last() == expected[-2]
        assert len(searched) == 2
        assert t.books.by_tag["m"].limit(2).delete() == 2
        assert t.books.by_tag["m"].all() == expected[2:]


@dataclass
class Writing:
    """A record that writes to its table when it is read."""

    tags: list[str]

    def __post_init__(self) -> None:
        if TO_WRITE:
            table = TO_WRITE.pop()
            del table[1]
            table[4] = Writing(["m"])
            table[2] = Writing(["m", "n"])


TO_WRITE: list[Any] = []


class Writers(zlmdb.Table[int, Writing]):
    by_tag = zlmdb.Index[str]("tags", each=True)


class WritingStore(zlmdb.Schema):
    writers: Writers


def test_what_loads_a_record_may_write_while_one_key_is_listed(make_db: Callable[..., Any]) -> None:
    with make_db(WritingStore).write() as t:
        t.writers.update({number: Writing(["m"]) for number in range(4)})
        TO_WRITE.append(t.writers)
        assert [key for key, _ in t.writers.by_tag["m"].all()] == [0, 2, 3, 4]
        assert t.writers.by_tag["m"].all()[1] == (2, Writing(["m", "n"]))


@pytest.mark.parametrize("reverse", [False, True])
def test_pages_show_each_record_once(books: Any, reverse: bool) -> None:
    keys = books.by_tag.select(reverse=reverse).keys()
    assert rows_of_pages(keys, 1) == list(keys)


def test_a_selection_deletes_and_changes_each_record_once(db: Any) -> None:
    with db.write() as t:
        with t.books.by_tag.select().edit() as books:
            for book in books:
                book.title += "!"
        assert [book.title for book in t.books.values()] == ["one!", "two!", "three", "four!"]
        assert t.books.by_tag.select("b", "n").delete() == 2
        assert list(t.books) == ["k1", "k3"]
        assert t.books.by_tag.select(limit=1).delete() == 1
        assert list(t.books) == ["k3"]
        assert t.books.by_tag.select().delete() == 0
    assert db.check().ok


TAGS = st.lists(st.sampled_from("abcde"), max_size=4)


@given(st.lists(TAGS, max_size=6), st.sampled_from("abcde"), st.sampled_from("abcdef"), st.booleans())
def test_a_range_is_that_of_a_list(tags: list[list[str]], lower: str, upper: str, reverse: bool) -> None:
    db = zlmdb.open(None, Store)
    with db.write() as t:
        t.books.put_many([(str(number), Book("", one)) for number, one in enumerate(tags)])
        firsts = [
            (min([tag for tag in one if lower <= tag < upper], default=""), key)
            for key, one in zip(map(str, range(9)), tags)
        ]
        expected = sorted([(tag, key) for tag, key in firsts if tag], reverse=reverse)
        found = t.books.by_tag.select(lower, upper, reverse=reverse)
        assert list(found.keys()) == [key for _, key in expected]
    with db.read() as t:
        found = t.books.by_tag.select(lower, upper, reverse=reverse)
        assert [key for key, _ in found] == [key for _, key in expected]
        assert found.count() == len(expected)
        last = found.last()
        assert (None if last is None else last[0]) == (expected[-1][1] if expected else None)
        assert list(t.books.by_tag[lower].keys()) == [str(n) for n, one in enumerate(tags) if lower in one]
    db.close()


def test_an_iteration_ends_whatever_its_body_writes(db: Any) -> None:
    """It visits no record twice, and none that is new, deleted or out of the range by then."""
    for select in (lambda b: b.by_tag.select("a", "zz"), lambda b: b.by_tag["m"]):
        for give in (lambda s: s.keys(), lambda s: s.where(lambda b: b.title != "").keys()):
            with db.write() as t:
                found = []
                for key in give(select(t.books)):
                    found.append(key)
                    t.books[f"{key} again"] = Book("new", ["m", "y"])
                    t.books[key] = Book("moved", ["m", "z"])
                    if key != "k4":
                        t.books["k4"] = Book("out", ["0"])
                assert found == [key for key in select_keys(select) if key == found[0] or key != "k4"]
                t.txn.abort()
    with db.write() as t:
        found = []
        for key, _ in t.books.by_tag.select():
            found.append(key)
            t.books.clear()
        assert found == ["k1"]
        t.txn.abort()


def select_keys(select: Callable[[Any], Any]) -> list[str]:
    with zlmdb.open(None, Store) as db, db.write() as t:
        t.books.update(BOOKS)
        return list(select(t.books).keys())


def test_one_record_after_the_end_of_the_transaction_raises(db: Any) -> None:
    with db.read() as t:
        rows = iter(t.books.by_tag.select())
        next(rows)
    with pytest.raises(zlmdb.TransactionClosed):
        next(rows)


# -- declaring ---------------------------------------------------------------------------------------------------------


def declared(**fields: Any) -> Callable[[Any], Any]:
    model: Any = dataclass(type("Model", (), {"__annotations__": fields}))

    def declare(index: Any) -> Any:
        table: Any = types.new_class("Models", (zlmdb.Table[int, model],), {}, lambda names: names.update(by=index))
        return zlmdb.open(None, type("Schema", (zlmdb.Schema,), {"__annotations__": {"models": table}}))

    return declare


@pytest.mark.parametrize(
    ("annotation", "key"),
    [
        (list[str], "str"), (Optional[set[int]], "int"), (frozenset[int], "int"), (tuple[str, ...], "str"),
        (tuple[int, int], "int"), (Annotated[list[str], 1], "str"), (Sequence[int], "int"),
        (list[Optional[str]], "str"),
    ],
)  # fmt: skip
def test_the_key_type_is_that_of_the_elements(annotation: Any, key: str) -> None:
    index: Any = zlmdb.Index("them", each=True)
    declared(them=annotation)(index).close()
    assert index._declared_key(index._owner.__orig_bases__[0].__args__[1]).name == key


@pytest.mark.parametrize(
    ("annotation", "index", "message"),
    [
        (str, lambda: zlmdb.Index[str]("them", each=True), "needs a list, set or tuple"),
        (dict[str, int], lambda: zlmdb.Index[str]("them", each=True), "needs a list, set or tuple"),
        (tuple[int, str], lambda: zlmdb.Index[str]("them", each=True), "of one type"),
        (list[int], lambda: zlmdb.Index[str]("them", each=True), "has elements of the type int"),
        (list, lambda: zlmdb.Index("them", each=True), "type of its elements"),
    ],
)
def test_what_has_no_elements_is_refused(annotation: Any, index: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        declared(them=annotation)(index())


def test_each_takes_one_field() -> None:
    with pytest.raises(TypeError, match="one field"):
        zlmdb.Index[tuple[str, str]]("a", "b", each=True)


class Documents(zlmdb.Table[int, zlmdb.Json[Any]]):
    by_word = zlmdb.Index[str]("words", each=True)
    by_half = zlmdb.Index[str](lambda d: d.get("halves"), version=1, each=True)


class Plain(zlmdb.Schema):
    documents: Documents


def test_plain_data_without_elements_is_refused() -> None:
    with zlmdb.open(None, Plain) as db, db.write() as t:
        t.documents[1] = {"words": ["a", "b", None], "halves": ["x"]}
        t.documents[2] = {"words": None}
        t.documents[3] = {}
        for wrong in ("text", {"a": 1}, 5):
            with pytest.raises(zlmdb.EncodeError, match="needs a list, set or tuple"):
                t.documents[4] = {"words": wrong}
            with pytest.raises(zlmdb.EncodeError, match="needs a list, set or tuple"):
                t.documents[4] = {"halves": wrong}
        with pytest.raises(zlmdb.EncodeError):
            t.documents[4] = {"words": ["a", 1]}
        assert list(t.documents) == [1, 2, 3]
        assert list(t.documents.by_word["b"].keys()) == [1]
        assert list(t.documents.by_half["x"].keys()) == [1]


@dataclass
class Item:
    prices: list[Annotated[float, F32]]


class Items(zlmdb.Table[int, zlmdb.FlatBuffers[Item]]):
    by_price = zlmdb.Index[float]("prices", each=True)


class Shop(zlmdb.Schema):
    items: Items


def test_the_elements_are_those_that_are_read() -> None:
    """Numbers are rounded as they are stored."""
    with zlmdb.open(None, Shop) as db, db.write() as t:
        t.items[1] = Item([0.1, 2.5])
        (stored, _) = t.items[1].prices
        assert stored != 0.1
        assert list(t.items.by_price[stored].keys()) == [1]
        assert t.items.where(lambda i: stored in i.prices).count() == 1


@dataclass
class Note:
    tags: list[str]
    until: float


class Notes(zlmdb.Table[int, Note], expires="until"):
    by_tag = zlmdb.Index[str]("tags", each=True)


class Board(zlmdb.Schema):
    notes: Notes


def test_expired_records_are_in_no_range() -> None:
    with zlmdb.open(None, Board) as db:
        with db.write() as t:
            t.notes.put_many([(n, Note(["a", f"b{n}"], 1.0 if n % 2 else 4e9)) for n in range(6)])
        with db.read() as t:
            assert list(t.notes.by_tag.select().keys()) == [0, 2, 4]
            assert t.notes.by_tag.select("b").count() == 3
            assert t.notes.by_tag["a"].count() == 3
            assert t.notes.where(lambda n: "b1" in n.tags).count() == 0
            assert t.notes.where(lambda n: "b2" in n.tags).count() == 1
        with db.write() as t:
            t.notes[1] = Note(["a", "c"], 4e9)
            assert list(t.notes.by_tag.select(reverse=True).keys()) == [4, 2, 1, 0]
            assert t.notes.by_tag.select().delete() == 4
        assert db.check().ok


def test_a_record_with_several_elements_in_what_is_read_comes_once(db: Any) -> None:
    conditions: list[Callable[[Book], bool]] = [
        lambda b: any("b" <= tag < "o" for tag in b.tags),
        lambda b: any(tag in {"b", "n", "m"} for tag in b.tags),
        lambda b: any(tag == "m" for tag in b.tags),
        lambda b: any(tag == "m" or tag == "n" for tag in b.tags),
    ]
    with db.write() as t:
        for number in range(200):  # so that an index is read at all
            t.books[f"other{number}"] = Book("other", ["q"])
    for condition in conditions:
        expected = [key for key, book in BOOKS.items() if condition(book)]
        with db.read() as t:
            for _ in range(3):  # planned, and from a cached plan
                query = t.books.where(condition)
                assert query.explain().indexes == ("by_tag",)
                assert list(query.keys()) == query.keys().all() == expected
                assert [key for key, _ in query] == expected
                assert query.limit(5).fields(lambda k, b: k).all() == expected
                assert t.books.select(reverse=True).where(condition).keys().all() == expected[::-1]
                assert t.books.select("k3", "k5").where(condition).keys().all() == [k for k in expected if k > "k2"]
