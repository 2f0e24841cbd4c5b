"""Queries that an index answers without reading records."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Annotated, Any, Callable, Optional, TypedDict
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from zlmdb import desc
from zlmdb.query.prepared import Prepared
from zlmdb.store.ranges import pairs_between
from zlmdb.tables.executor import accesspaths, covered, foundkeys
from zlmdb.tables.executor.covered import cover_of
from zlmdb.tables.executor.execution import Running
from zlmdb.values import F32

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Part:
    name: str


@dataclass
class Book:
    country: str
    year: int
    price: float = 0.0
    title: str = ""
    editor: Optional[str] = None
    tags: list[str] = field(default_factory=list)
    part: Optional[Part] = None
    size: Annotated[float, F32] = 0.0

    @property
    def century(self) -> int:
        return self.year // 100


class Books(zlmdb.Table[int, Book]):
    by_place = zlmdb.Index("country", desc("year"))
    by_year = zlmdb.Index[int]("year", carries=("price", "title", "editor", "tags", "size"))
    by_price = zlmdb.Index[float]("price", carries="year")
    by_title = zlmdb.Index[str]("title.casefold()", carries=["title"])


class FlatBooks(zlmdb.Table[UUID, zlmdb.FlatBuffers[Book]]):
    by_place = zlmdb.Index("country", desc("year"))
    by_year = zlmdb.Index[int]("year", carries=("price", "title", "editor", "tags", "size"))
    by_price = zlmdb.Index[float]("price", carries="year")
    by_title = zlmdb.Index[str]("title.casefold()", carries=["title"])


class Named(zlmdb.Table[str, Book]):
    by_place = zlmdb.Index("country", desc("year"))
    by_one = zlmdb.UniqueIndex("year")


class Store(zlmdb.Schema):
    books: Books
    flat: FlatBooks
    named: Named


def some_books() -> list[Book]:
    return [
        Book(
            ["NO", "SE", "DK"][n % 3], 1900 + n % 40, [n / 2, -0.0, 0.0][n % 3], f"Title {n}",
            None if n % 5 else "ed", [str(n)] * (n % 3), Part(str(n)) if n % 4 else None, 0.1,
        )
        for n in range(200)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def t() -> Any:
    db = zlmdb.open(None, Store)
    with db.write() as t:
        for n, book in enumerate(some_books()):
            t.books[n] = book
            t.flat[UUID(int=n)] = book
            if n < 40:
                t.named[f"k{n}"] = book
    with db.read() as t:
        yield t
    db.close()


@pytest.fixture(params=["books", "flat", "named"])
def table(t: Any, request: pytest.FixtureRequest) -> Any:
    return getattr(t, request.param)


LOW = 1930
WHERE: list[Callable[..., Any]] = [
    lambda b: b.country == "NO" and b.year > 1935,
    lambda b: b.country == "NO" and b.year in (1903, 1912, 1900),
    lambda b: LOW < b.year <= 1933,
    lambda b: b.year == 1903 and b.title > "Title 1" and b.editor is None,
    lambda b: b.year == 1905 and len(b.tags) > 1,
    lambda b: b.price == 0.0 and b.year < 1903,
    lambda b: b.title.casefold() == "title 7",
    lambda k, b: b.year == 1907 and k is not None,
]
GIVE: list[Callable[..., Any]] = [
    lambda b: b.year,
    lambda b: (b.country, b.year),
    lambda b: (b.title, b.price, b.editor),
    lambda b: b.century,
    lambda b: b.tags,
    lambda b: None if b.part is None else b.part.name,
    lambda b: b.size,
    lambda k, b: (k, b.year),
    lambda b: b,
]


def of(function: Callable[..., Any], key: Any, book: Any) -> Any:
    return function(key, book) if function.__code__.co_argcount == 2 else function(book)


def shown(rows: Any) -> list[str]:
    """In full: 0.0 and -0.0 are equal."""
    return [repr(row) for row in rows]


@pytest.mark.parametrize("number", range(len(WHERE)))
def test_the_answer_is_that_of_the_records(table: Any, number: int) -> None:
    where = WHERE[number]
    rows = [(key, book) for key, book in table.items() if of(where, key, book)]
    found = table.where(where)
    assert found.count() == len(rows)
    assert found.keys().all() == [key for key, _ in rows]
    assert found.values().all() == [book for _, book in rows]
    for give in GIVE:
        assert shown(found.fields(give)) == shown([of(give, key, book) for key, book in rows])
        by_year = sorted(rows, key=lambda row: row[1].year)
        fields = table.where(where).order_by(lambda b: b.year).limit(5, 1).fields(give)
        assert shown(fields) == shown([of(give, key, book) for key, book in by_year[1:6]])


@pytest.mark.parametrize("reverse", [False, True])
def test_the_answer_in_the_order_of_an_index_is_that_of_the_records(table: Any, reverse: bool) -> None:
    rows = sorted(table.items(), key=lambda row: (row[1].country, desc(row[1].year)))
    for give in GIVE:
        found = table.order_by(lambda b: (b.country, desc(b.year)), reverse=reverse).limit(30).fields(give)
        assert shown(found) == shown([of(give, *row) for row in (rows[::-1] if reverse else rows)[:30]])


COVERED: list[tuple[Callable[[Any], Any], bool]] = [
    (lambda b: b.where(lambda b: b.country == "NO" and b.year > 1935).fields(lambda b: b.year), True),
    (lambda b: b.where(lambda b: b.country == "NO" and b.year > 1935).fields(lambda k, b: (k, b.country)), True),
    (lambda b: b.where(lambda b: b.country == "NO" and b.year > 1935).keys(), True),
    (lambda b: b.where(lambda b: b.year == 1935).fields(lambda b: (b.price, b.title, b.tags)), True),
    (lambda b: b.where(lambda b: b.year == 1935 and b.price > 3).fields(lambda b: b.century), True),
    (lambda b: b.where(lambda b: b.title.casefold() == "title 7").fields(lambda b: b.title), True),
    (lambda b: b.order_by(lambda b: (b.country, desc(b.year))).limit(3).fields(lambda b: b.year), True),
    (lambda b: b.where(lambda b: b.country == "NO" and b.year > 1935).fields(lambda b: b.price), False),
    (lambda b: b.where(lambda b: b.country == "NO" and b.year > 1935 and b.price > 1).keys(), False),
    (lambda b: b.where(lambda b: b.country == "NO" and b.year > 1935), False),
    (lambda b: b.where(lambda b: b.country == "NO" and b.year > 1935).values(), False),
    (lambda b: b.where(lambda b: b.country == "NO" and b.year > 1935).fields(lambda b: b), False),
    (lambda b: b.where(lambda b: b.price == 1.5).fields(lambda b: b.price), False),
    (lambda b: b.where(lambda b: (b.country == "NO" and b.year > 1935) or b.year == 1903).keys(), False),
    (lambda b: b.fields(lambda b: b.year), False),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(COVERED)))
def test_explain_tells_whether_records_are_read(t: Any, number: int) -> None:
    query, covered = COVERED[number]
    plan = query(t.books).explain()
    assert plan.covered is covered
    assert (", and no records" in str(plan)) is covered


def test_no_record_is_read(tmp_path: Any) -> None:
    """Which is seen where the records are broken: only who reads them is told."""
    with zlmdb.open(str(tmp_path), Store) as db:
        with db.write() as t:
            t.books.put_many([(n, book) for n, book in enumerate(some_books())])
            raw, handle = t.books._raw, t.books._db
            for key in range(20, 200):
                raw.put(t.books._storage.key.encode(key), b"\xc1", db=handle)
        with db.read() as t:
            found = t.books.where(lambda b: b.year == 1935)
            assert found.count() == 5
            assert found.fields(lambda b: b.title).all() == [f"Title {n}" for n in (35, 75, 115, 155, 195)]
            with pytest.raises(zlmdb.DecodeError):
                found.values().all()


def test_an_error_of_a_function_is_raised_as_it_is(t: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        t.books.where(lambda b: b.year == 1935).fields(lambda b: 1 // (b.year - 1935)).all()
    rows = iter(t.books.where(lambda b: b.year == 1935).fields(lambda b: b.year))
    assert next(rows) == 1935


def test_in_a_write_transaction_records_are_read_as_they_are() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        t.books.put_many([(n, Book("NO", 1900, title=str(n))) for n in range(5)])
        found = []
        for title in t.books.where(lambda b: b.year == 1900).fields(lambda b: b.title):
            found.append(title)
            t.books[3] = Book("NO", 1900, title="other")
            t.books.pop(4, None)
        assert found == ["0", "1", "2", "other"]


def test_an_iteration_ends_with_its_transaction() -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.books.put_many([(n, Book("NO", 1900)) for n in range(5)])
        for query in (
            lambda b: b.where(lambda b: b.country == "NO" and b.year == 1900).fields(lambda b: b.year),
            lambda b: b.order_by(lambda b: (b.country, desc(b.year))).fields(lambda b: b.year),
        ):
            with db.read() as t:
                rows = iter(query(t.books))
                next(rows)
            with pytest.raises(zlmdb.TransactionClosed):
                next(rows)


@pytest.mark.parametrize("give", GIVE)
def test_a_known_query_is_answered_from_entries_without_a_plan(
    table: Any, give: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = dict(table.items())
    raises = give is GIVE[3]  # a property may raise, so it is asked of no record that is skipped, which takes a plan
    planned: list[Running] = []
    choice = Running.choice

    def chosen(running: Running, **more: Any) -> Any:
        planned.append(running)
        return choice(running, **more)

    monkeypatch.setattr(Running, "choice", chosen)
    for year in [*range(1900, 1942), 1900]:
        found = table.where(lambda b, year=year: b.year == year)
        expected = [(key, book) for key, book in rows.items() if book.year == year]
        assert shown(found.fields(give)) == [repr(of(give, key, book)) for key, book in expected]
        known = len(planned)
        assert shown(found.limit(2, skip=1).fields(give)) == [repr(of(give, *one)) for one in expected[1:3]]
        if raises:
            del planned[known:]
        backwards = table.select(reverse=True).where(lambda b, year=year: b.year == year)
        assert shown(backwards.fields(give).all()) == [repr(of(give, *one)) for one in reversed(expected)]
        assert found.keys().all() == [key for key, _ in expected]
        assert found.count() == found.order_by(lambda b: b.title).count() == len(expected)
        assert found.limit(2, skip=1).count() == len(expected[1:3])
        assert bool(found) is bool(expected)
        assert not found.limit(0)
        if year == 1910:
            planned.clear()
    assert planned == []


@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_rows_of_a_known_query_take_no_loop(
    table: Any, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    looped: list[int] = []
    loop = Prepared.loop

    def counted(prepared: Prepared, *given: Any) -> Any:
        looped.append(1)
        return loop(prepared, *given)

    monkeypatch.setattr(Prepared, "loop", counted)
    rows = [(key, book) for key, book in table.items() if book.year == 1903]
    one = table.select(reverse=reverse).where(lambda k, b: b.year == 1903)
    later = table.select(reverse=reverse).where(lambda k, b: b.year == 1903 and k != first)
    for first in [*(key for key, _ in rows), rows[0][0]] * 3:
        ordered = rows[::-1] if reverse else rows
        one.limit(2).keys().all()
        looped.clear()
        assert one.limit(2, skip=1).keys().all() == [key for key, _ in ordered][1:3]
        assert one.limit(90).keys().all() == [key for key, _ in ordered]
        assert one.limit(9).keys().all() == [key for key, _ in ordered][:9]
        looked = list(looped)
        assert later.limit(1).keys().all() == [key for key, _ in ordered if key != first][:1]
        assert later.limit(0).keys().all() == []
    assert looked == []  # now that they are known


@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_rows_in_the_order_of_an_index_take_no_plan(
    table: Any, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = sorted(table.items(), key=lambda row: (row[1].country, desc(row[1].year)))
    whole = table.order_by(lambda b: (b.country, desc(b.year)), reverse=reverse).fields(lambda b: b.year)
    found = table.order_by(lambda b: (b.country, desc(b.year)), reverse=reverse)
    of_one = {
        country: table.where(lambda b, country=country: b.country == country).order_by(
            lambda b: desc(b.year), reverse=reverse
        )
        for country in sorted({book.country for _, book in rows})
    }
    expected = rows[::-1] if reverse else rows
    for turn in range(3):
        if turn == 2:
            monkeypatch.setattr(Running, "choice", None)  # no plan is made
        for limit, skip in ((1, 0), (5, 2), (7, 60), (0, 3), (500, 150)):
            wanted = [book.year for _, book in expected[skip : skip + limit]]
            assert found.limit(limit, skip).fields(lambda b: b.year).all() == wanted
            assert found.limit(limit, skip).keys().all() == [key for key, _ in expected[skip : skip + limit]]
            for country, few in of_one.items():
                some = [(key, book.year) for key, book in expected if book.country == country]
                given = few.limit(limit, skip).fields(lambda k, b: (k, b.year))
                assert given.all() == list(given) == some[skip : skip + limit]
        assert found.fields(lambda b: b.year).first() == expected[0][1].year
        if turn < 2:
            assert whole.all() == [book.year for _, book in expected]


# -- what entries carry ------------------------------------------------------------------------------------------------


def test_a_change_of_a_carried_field_is_written_to_the_entry() -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.books[1] = Book("NO", 1900, 1.5, "a", "ed", ["x"], Part("p"))
            t.books[1] = replace(t.books[1], price=2.5, editor=None, tags=[])
            with t.books.edit(1) as book:
                book.title = "b"
            t.books.change(1, lambda book: replace(book, part=None))
            t.books.put_many([(2, Book("NO", 1900, 3.5))], append=True)
            del t.books[2]
        with db.read() as t:
            found = t.books.where(lambda b: b.year == 1900).fields(lambda b: (b.price, b.title, b.editor, b.tags))
            assert found.explain().covered
            assert found.all() == [(2.5, "b", None, [])]
        assert db.check().ok


ROWS = st.builds(
    Book, st.sampled_from(["NO", "SE"]), st.integers(0, 2), st.sampled_from([0.0, -0.0, 1.5]), st.text(max_size=2),
    st.none() | st.text(max_size=2), st.lists(st.text(max_size=1), max_size=2),
)  # fmt: skip


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(st.tuples(st.integers(0, 4), st.none() | ROWS), max_size=12))
def test_entries_carry_what_records_have_after_any_writes(writes: list[tuple[int, Optional[Book]]]) -> None:
    with zlmdb.open(None, Store) as db:
        for key, book in writes:
            with db.write() as t:
                for table, number in ((t.books, key), (t.flat, UUID(int=key))):
                    if book is None:
                        table.pop(number, None)
                    else:
                        table[number] = book
        with db.read() as t:
            for table in (t.books, t.flat):
                for year in range(3):
                    found = table.where(lambda b: b.year == year)  # noqa: B023
                    fields = found.fields(lambda k, b: (k, b.price, b.title, b.editor, b.tags))
                    assert shown(fields) == shown(
                        [(k, b.price, b.title, b.editor, b.tags) for k, b in table.items() if b.year == year]
                    )
        assert db.check().ok


class Item(TypedDict):
    name: str
    year: int
    price: Optional[float]
    tags: list[str]


class Partly(TypedDict, total=False):
    year: int
    price: int


@pytest.mark.parametrize("kind", [zlmdb.Msgpack, zlmdb.Cbor, zlmdb.Json, zlmdb.FlatBuffers, zlmdb.Pickle])
@settings(max_examples=settings.default.max_examples // 5)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.none() | st.tuples(st.text(max_size=2), st.integers(0, 2), st.none() | st.floats(0, 2), st.just(["t"])),
        ),
        max_size=8,
    )
)
def test_entries_carry_items_of_typed_dicts(kind: Any, writes: list[tuple[int, Any]]) -> None:
    class Items(zlmdb.Table[int, kind[Item]]):
        by_year = zlmdb.Index[int]("year", carries=("price", "tags"))

    with zlmdb.open(None, type("Shelf", (zlmdb.Schema,), {"__annotations__": {"items": Items}})) as db:
        expected: dict[int, Any] = {}
        for key, given in writes:
            with db.write() as t:
                if given is None:
                    t.items.pop(key, None)
                    expected.pop(key, None)
                else:
                    expected[key] = t.items[key] = Item(name=given[0], year=given[1], price=given[2], tags=given[3])
                    with t.items.edit(key) as item:
                        item["tags"].append(given[0])
                    expected[key]["tags"] = ["t", given[0]]
        with db.read() as t:
            for year in range(3):
                found = t.items.where(lambda item: item["year"] == year)  # noqa: B023
                rows = [(key, one) for key, one in t.items.items() if one["year"] == year]  # in the order of their keys
                assert dict(rows) == {key: one for key, one in expected.items() if one["year"] == year}
                for _ in range(2):
                    for give in (
                        lambda k, i: (k, i["price"], i["tags"]),
                        lambda k, i: i.get("price"),
                        lambda k, i: (i["year"], len(i)),
                        lambda k, i: i["name"],
                        lambda k, i: i,
                        lambda k, i: "name" in i and list(i) and i["price"] is None,
                    ):
                        assert shown(found.fields(give)) == shown([give(*row) for row in rows])
                    cheap = found.where(lambda item: item["price"] is not None and item["price"] < 1)
                    keys = [key for key, one in rows if one["price"] is not None and one["price"] < 1]
                    assert (cheap.keys().all(), cheap.count()) == (keys, len(keys))
                fields = found.fields(lambda i: (i["price"], i["tags"]))
                assert fields.explain().covered is (kind is not zlmdb.Pickle)
                assert not found.fields(lambda i: i["name"]).explain().covered
        assert db.check().ok


@dataclass
class Count:
    name: str
    number: int


class Counts(zlmdb.Table[int, Count]):
    by_name = zlmdb.Index("name", carries="number")


class Counting(zlmdb.Schema):
    counts: Counts


def test_a_value_that_cannot_be_carried_is_refused_before_anything_is_written() -> None:
    with zlmdb.open(None, Counting) as db:
        with db.write() as t:
            t.counts[1] = Count("a", 5)
            for name in ("a", "b"):
                with pytest.raises(zlmdb.EncodeError, match=r"counts.by_name.*cannot carry the field 'number'"):
                    t.counts[1] = Count(name, 2**63)
            with pytest.raises(zlmdb.EncodeError):
                t.counts[2] = Count("a", 2**63)
            assert dict(t.counts) == {1: Count("a", 5)}
        assert db.check().ok


def test_another_order_of_carried_fields_is_another_index(tmp_path: Any) -> None:
    for carries in (("title", "country"), ("country", "title")):

        class Some(zlmdb.Table[int, Book]):
            by_year = zlmdb.Index[int]("year", carries=carries)

        class Shelf(zlmdb.Schema):
            some: Some

        with zlmdb.open(str(tmp_path), Shelf) as db:
            with db.write() as t:
                t.some.setdefault(1, Book("NO", 1900, title="a"))
            with db.read() as t:
                found = t.some.where(lambda b: b.year == 1900).fields(lambda b: (b.title, b.country))
                assert (found.all(), found.explain().covered) == ([("a", "NO")], True)
            assert db.check().ok


def test_check_finds_an_entry_that_carries_something_else(tmp_path: Any) -> None:
    with zlmdb.open(str(tmp_path), Store) as db:
        with db.write() as t:
            t.books[1] = Book("NO", 1900)
            ((index, handle),) = [one for one in t.books._indexes if one.storage.name == "by_price"]
            (entry,) = index.entries(t.books[1], t.books._storage.key.encode(1))
            t.books._raw.put(entry, b"\xff\xff\xff\xff", db=handle)
        report = db.check()
        assert not report.ok
        assert "carries other values" in report.problems[0].text


@pytest.mark.parametrize(
    ("key", "model", "make", "message"),
    [
        (int, Book, lambda: zlmdb.Index("year", carries="prise"), "carries='prise' is no field"),
        (int, Book, lambda: zlmdb.Index("year", carries=("part",)), "carries='part' is of type Part; expected numbers"),
        (int, dict, lambda: zlmdb.Index[int]("year", carries="price"), "carries='price' is no field"),
        (int, Item, lambda: zlmdb.Index("year", carries="prise"), "carries='prise' is no field"),
        (int, Partly, lambda: zlmdb.Index("year", carries="price"), "need not have, .* declare it without NotRequired"),
        (str, Book, lambda: zlmdb.Index("year", carries="price"), "needs primary keys of fixed width"),
        (int, Book, lambda: zlmdb.Index[str]("tags", each=True, carries="price"), "does not go with each"),
    ],
)
def test_what_cannot_be_carried_is_refused(key: Any, model: Any, make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        opened(key, model, make)


def opened(key: Any, model: Any, make: Any) -> None:
    class Table(zlmdb.Table[key, model]):
        by = make()

    class Schema(zlmdb.Schema):
        table: Table

    zlmdb.open(None, Schema).close()


def test_each_field_of_an_entry_is_that_of_the_record(t: Any) -> None:
    for table in (t.books, t.flat, t.named):
        running = Running(table.select())
        for facts in running.known().facts:
            bound = next((one for one in table._indexes if one.storage.name == facts.name), None)
            if bound is None:
                continue
            index = bound.storage
            cover = cover_of(index, facts, table._storage, running.programs.following)
            assert cover is not None
            pairs = dict(pairs_between(table._cursor(bound.handle), index.lower, index.upper))
            records = table.select().values().all()
            for name in cover.fields:
                give = running.programs.following.value(attrgetter(name))
                prepared = running.prepared([give], (give,), True, running.uncolumned())
                for fields in (frozenset([name]), cover.fields):
                    covering, _ = prepared.covering(cover, fields)
                    found = covering(list(pairs), pairs.__getitem__, [give], *prepared.given)
                    assert sorted(shown(found)) == sorted([repr(getattr(one, name)) for one in records])
                    if index.name == "by_price" and name == "year":
                        with pytest.raises((ValueError, LookupError, struct.error)):
                            covering(list(pairs), lambda entry: pairs[entry][:-1], [give], *prepared.given)  # noqa: B023


def test_what_a_broken_entry_should_carry_is_read_from_the_record() -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.books.put_many([(n, book) for n, book in enumerate(some_books())])
            bound = next(one for one in t.books._indexes if one.storage.name == "by_year")
            lower, upper = bound.storage.exactly(1935)
            entry, data = list(pairs_between(t.books._cursor(bound.handle), lower, upper))[3]
            t.books._raw.put(entry, data[:-20], db=bound.handle)
        with db.read() as t:
            for _ in range(2):
                found = t.books.where(lambda b: b.year == 1935).fields(lambda b: b.title)
                assert found.explain().covered
                assert found.all() == list(found) == [f"Title {n}" for n in (35, 75, 115, 155, 195)]
                assert (
                    found.all()[:4] == t.books.where(lambda b: b.year == 1935).limit(4).fields(lambda b: b.title).all()
                )
                groups = t.books.where(lambda b: b.year == 1935).group_by(lambda b: b.title, lambda g: g.count())
                assert list(groups.values()) == [1] * 5


class Numbers(zlmdb.Table[int, Book]):
    by_year = zlmdb.Index[int]("year", carries="title")


class NumberStore(zlmdb.Schema):
    books: Numbers


@pytest.fixture(scope="module")
def numbers() -> Any:
    with zlmdb.open(None, NumberStore) as db:
        with db.write() as t:
            t.books.update((n, Book("NO", n * 7 % 1000, title=str(n))) for n in range(6000))
        with db.read() as t:
            yield t


@pytest.mark.parametrize("title", [True, False])
def test_each_entry_is_read_once(numbers: Any, monkeypatch: pytest.MonkeyPatch, title: bool) -> None:
    read: list[Any] = []

    def noting(was: Any) -> Any:
        def rows(*args: Any) -> Any:
            for one in was(*args):
                read.append(one)
                yield one

        return rows

    for module in (accesspaths, covered, foundkeys):
        for name in ("pairs_from", "keys_from"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, noting(getattr(module, name)))
    query = numbers.books.where(lambda b: b.year < 200).fields((lambda b: b.title) if title else (lambda b: b.year))
    expected = [(str(n) if title else n * 7 % 1000) for n in range(6000) if n * 7 % 1000 < 200]
    query.all()
    read.clear()
    assert query.all() == expected
    assert len(read) <= len(expected) + 1
    assert query.explain().covered


@pytest.mark.parametrize("most", [3, 200, 700])
def test_what_an_index_finds_too_much_of_is_scanned(numbers: Any, most: int) -> None:
    query = numbers.books.where(lambda b: b.year < most).fields(lambda b: b.title)
    expected = [str(n) for n in range(6000) if n * 7 % 1000 < most]
    for _ in range(2):
        assert query.all() == list(query) == expected


@pytest.mark.parametrize("backwards", [False, True])
def test_entries_are_listed_many_at_once_where_all_are_wanted(
    numbers: Any, monkeypatch: pytest.MonkeyPatch, backwards: bool
) -> None:
    rows = list(numbers.books.items())
    parts = numbers.books.select(5, 5990, reverse=backwards).where(lambda b: b.year < 200)
    few = [(key, book) for key, book in (rows[::-1] if backwards else rows) if 5 <= key < 5990 and book.year < 200]
    expected: dict[str, list[int]] = {}
    for _, book in few:
        expected.setdefault(book.title[:1], []).append(book.year)
    by_year = sorted([book for _, book in rows], key=lambda b: b.year)[:: -1 if backwards else 1]
    by_title = sorted([book for _, book in few], key=lambda b: b.title[:2])[:: -1 if backwards else 1]

    def read(*given: Any) -> Any:
        raise AssertionError("one record after the other")

    monkeypatch.setattr(Prepared, "loop", read)
    for _ in range(2):
        found = parts.group_by(lambda b: b.title[:1], lambda g: (g.count(), g.fields(lambda b: b.year).sum()))
        assert list(found.items()) == [(one, (len(years), sum(years))) for one, years in expected.items()]
        inner = parts.order_by(lambda b: b.title[:2], reverse=backwards).fields(lambda b: b.title)
        assert list(inner) == [book.title for book in by_title]
        whole = numbers.books.order_by(lambda b: b.year, reverse=backwards).fields(lambda b: b.year)
        assert list(whole) == whole.all() == [book.year for book in by_year]
        assert whole.explain().covered


def test_rows_in_the_order_of_an_index_come_before_an_error_of_a_later_one(numbers: Any) -> None:
    rows = iter(numbers.books.order_by(lambda b: b.year).fields(lambda b: 1 // (b.year - 100)))
    for _ in range(600):
        next(rows)
    with pytest.raises(ZeroDivisionError):
        next(rows)


@pytest.mark.parametrize("title", [True, False])
def test_what_many_values_find_too_much_of_is_scanned_before_all_entries_are_read(
    numbers: Any, monkeypatch: pytest.MonkeyPatch, title: bool
) -> None:
    years = set(range(600))
    query = numbers.books.where(lambda b: b.year in years).fields((lambda b: b.title) if title else (lambda b: b.price))
    expected = [(book.title if title else book.price) for book in numbers.books.values() if book.year in years]
    assert query.all() == query.all() == expected
    read: list[int] = []
    fewer = foundkeys.FoundKeys.fewer

    def counted(found: Any, most: int) -> Any:
        read.append(most)
        return fewer(found, most)

    monkeypatch.setattr(foundkeys.FoundKeys, "fewer", counted)
    assert query.all() == expected
    assert max(read) <= 1000
    years.clear()
    years.update((3, 4))
    assert query.all() == [
        (book.title if title else book.price) for book in numbers.books.values() if book.year in (3, 4)
    ]
