"""Conditions on linked records that no index finds: the other table is read once, and the rows stay the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional
from uuid import UUID

import pytest

import zlmdb
from zlmdb import ForeignKey, Table, desc
from zlmdb.query.following import Followed
from zlmdb.tables.executor import cachedlinkscans, linkscans, semijoins
from zlmdb.tables.executor.cachedlinkscans import CachedLinkScan

pytestmark = pytest.mark.once  # plans do not depend on the interpreter


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
    found: list[Any] = []
    rows_that_fit = linkscans.rows_that_fit

    def watched(*arguments: Any) -> Any:
        keys = list(rows_that_fit(*arguments))
        found.append(len(keys) if len(keys) <= linkscans.MOST else None)
        return iter(keys)

    def watched_too(*arguments: Any) -> Any:
        found.append(0)
        for keys in fitting(*arguments):
            found[-1] += len(keys)
            yield keys

    fitting = CachedLinkScan.fitting
    monkeypatch.setattr(linkscans, "rows_that_fit", watched)
    monkeypatch.setattr(CachedLinkScan, "fitting", staticmethod(watched_too))
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
    "each, of two links": lambda t, name: (
        lambda b: any(t.authors[one].name == name and t.authors[one].born > 2 for one in b.judges)
    ),
    "each, of the record and a link": lambda t, name: (
        lambda b: any(t.authors[one].born > 3 and one != b.author for one in b.judges if t.authors[one].name > name)
    ),
    "all, of some": lambda t, name: (
        lambda b: all(t.authors[one].name < "d" for one in b.judges if t.authors[one].born > 3)
    ),
    "link of a link": lambda t, name: (
        lambda b: (
            t.authors[b.author].mentor is not None and t.authors[t.authors[b.author].mentor].name == "a" + name[1:]
        )
    ),
    "each, link of a link": lambda t, name: (
        lambda b: any(t.authors[j].mentor is not None and t.authors[t.authors[j].mentor].born > 3 for j in b.judges)
    ),
    "not of two": lambda t, name: (
        lambda b: not (t.authors[b.author].name == name or (t.authors[b.author].born > 3 and b.author < 50))
    ),
    "a choice": lambda t, name: lambda b: t.authors[b.author].born > 3 if b.author > 50 else b.editor is None,
    "of nobody": lambda t, name: lambda b: t.authors[b.author].name == name + "?",
    "mentor": lambda t, name: lambda b: t.authors[b.author].mentor is None,
}


def tables(t: Any) -> list[Any]:
    """Tables with the same records: by an index of the link, without one, and in another format, on one interpreter."""
    return [t.books, t.bare] if sys.implementation.name == "pypy" else [t.books, t.bare, t.flat]


@pytest.mark.parametrize("few", [1000, 3])
@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_are_those_of_a_loop(db: Any, name: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semijoins, "CAP", few)
    with db.read() as t:
        for text in ("b1", "c3", "a0")[: len(tables(t))]:
            condition = CONDITIONS[name](t, text)
            expected = [(key, book) for key, book in t.books.items() if condition(book)]
            for table in tables(t):
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


def test_the_first_rows_are_looked_up_before_the_other_table_is_read(db: Any, scanned: list[Optional[int]]) -> None:
    with db.read() as t:
        query = t.books.where(lambda b: t.authors[b.author].name == "b1")
        assert query.first() == next(iter(query)) == query.limit(1).all()[0]
        assert query
        assert not scanned
        many = list(query)
        assert scanned == [5]
        assert t.bare.where(lambda b: t.authors[b.author].name == "b1").all() == query.all() == many
        assert scanned == [5, 5, 5]


def consumed(t: Any, make: Callable[[Any, str], Any], table: Any) -> dict[str, Any]:
    """What can be asked of a query by `CONDITIONS`."""
    query = table.where(make(t, "b1"))
    titles = query.fields(lambda b: b.title)
    authors = query.fields(lambda b: b.author)
    first = query.page(4)
    return {
        "count": query.count(),
        "truth": bool(query),
        "first": query.first(),
        "last": query.last(),
        "limit": query.limit(3, 2).all(),
        "count of a limit": query.limit(3, 2).count(),
        "rows": list(query),
        "order": query.order_by(lambda b: (b.author, desc(b.title))).keys().all(),
        "order, few": query.order_by(lambda b: b.author).limit(3).keys().all(),
        "by key": list(dict(query)),
        "sum": authors.sum(),
        "mean": authors.mean(),
        "min": authors.min(),
        "max": titles.max(),
        "distinct": (authors.distinct().all(), authors.distinct().count()),
        "groups": query.group_by(lambda b: b.author % 3, lambda g: (g.count(), g.fields(lambda b: b.author).sum())),
        "rows of groups": query.group_by(lambda b: b.author % 3, lambda g: g.order_by(lambda b: b.title).keys().all()),
        "pages": (first.rows, query.page(4, first.next).rows if first.next else None),
    }


def expected(t: Any, make: Callable[[Any, str], Any], table: Any) -> dict[str, Any]:
    """The same of a list."""
    condition = make(t, "b1")
    rows = [(key, book) for key, book in table.items() if condition(book)]
    authors = [book.author for _, book in rows]
    groups: dict[int, list[Any]] = {}
    for key, book in rows:
        groups.setdefault(book.author % 3, []).append((key, book))
    down = sorted(sorted(rows, key=lambda pair: pair[1].title, reverse=True), key=lambda pair: pair[1].author)
    return {
        "count": len(rows),
        "truth": bool(rows),
        "first": rows[0] if rows else None,
        "last": rows[-1] if rows else None,
        "limit": rows[2:5],
        "count of a limit": len(rows[2:5]),
        "rows": rows,
        "order": [key for key, _ in down],
        "order, few": [key for key, _ in sorted(rows, key=lambda pair: pair[1].author)[:3]],
        "by key": [key for key, _ in rows],
        "sum": sum(authors),
        "mean": sum(authors) / len(authors) if authors else None,
        "min": min(authors, default=None),
        "max": max([book.title for _, book in rows], default=None),
        "distinct": (list(dict.fromkeys(authors)), len(set(authors))),
        "groups": {name: (len(few), sum(book.author for _, book in few)) for name, few in groups.items()},
        "rows of groups": {
            name: [key for key, _ in sorted(few, key=lambda pair: pair[1].title)] for name, few in groups.items()
        },
        "pages": (rows[:4], rows[4:8] if len(rows) > 4 else None),
    }


@pytest.mark.parametrize("name", CONDITIONS)
def test_all_that_a_query_can_be_asked(db: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkscans, "LEAST", 16)
    with db.read() as t:
        for table in tables(t):
            assert consumed(t, CONDITIONS[name], table) == expected(t, CONDITIONS[name], table)
        rows = [key for key, book in t.books.items() if CONDITIONS[name](t, "c3")(book)]
        assert list(t.books.select(reverse=True).where(CONDITIONS[name](t, "c3")).keys()) == rows[::-1]


@pytest.mark.parametrize("name", CONDITIONS)
def test_all_that_a_query_can_be_asked_while_writing(db: Any, name: str) -> None:
    make = CONDITIONS[name]
    with db.write() as t:
        for turn in range(2):
            assert consumed(t, make, t.books) == expected(t, make, t.books)
            for key in range(turn, 100, 9):
                t.authors[key] = Author(f"b{key % 4}", 8 - key % 9, (key + 1) % 100)
        for book in t.books.where(make(t, "b1")).values():  # the loop changes what it asks for
            assert make(t, "b1")(book)
            t.authors[book.author] = Author("b1", 3, 5)
        keys = expected(t, make, t.books)["by key"]
        assert t.books.where(make(t, "b1")).change(lambda b: replace(b, title="changed")) == len(keys)
        assert [key for key, book in t.books.items() if book.title == "changed"] == keys
        with t.books.where(make(t, "b1")).edit() as books:
            for book in books:
                book.title = "edited"
        assert [key for key, book in t.books.items() if book.title == "edited"] == keys
        assert t.books.where(make(t, "b1")).delete() == len(keys)
        assert not [key for key in keys if key in t.books]
        t.txn.abort()


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "count": lambda q: q.count(),
    "sum": lambda q: q.fields(lambda b: b.author).sum(),
    "mean": lambda q: q.fields(lambda b: b.author).mean(),
    "max": lambda q: q.keys().max(),
    "order": lambda q: q.order_by(lambda b: b.title).limit(1).all(),
    "distinct": lambda q: q.fields(lambda b: b.author).distinct().count(),
    "groups": lambda q: q.group_by(lambda b: b.author, lambda g: g.count()),
    "rows of groups": lambda q: q.group_by(lambda b: b.author, lambda g: g.keys().all()),
}


@pytest.mark.parametrize("how", NUMBERS)
def test_numbers_read_the_other_table_once(db: Any, how: str, scanned: list[Optional[int]]) -> None:
    looked: list[int] = []

    def look_up(self: Any, key: int) -> Any:
        looked.append(key)
        return Authors.__getitem__(self, key)

    for begin in (db.read, db.write):
        scanned.clear()
        with begin() as t:
            query = t.bare.where(lambda b: t.authors[b.author].born == 3)
            query.all()
            original = type(t.authors)
            t.authors.__class__ = type("Counting", (original,), {"__slots__": (), "__getitem__": look_up})
            NUMBERS[how](query)
            t.authors.__class__ = original
        assert scanned == [11, 11]
    assert not looked


def test_the_plan_tells_of_the_other_table(db: Any, scanned: list[Optional[int]]) -> None:
    with db.read() as t:
        query = t.books.where(lambda b: t.authors[b.author].name == "b1")
        for _ in range(3):  # the first records are compared with what the function gives
            query.all()
        scanned.clear()
        plan = query.explain()
        assert plan.scanned == ("authors",)
        assert str(plan) == (
            "read   by_author: what refers to the records of authors that fit; all records of books, if these are many"
            " or not all rows are wanted at once\n"
            "keep   (t.authors[b.author].name == 'b1')\n"
            "link   t.authors: each record is looked up once\n"
            "link   (t.authors[b.author].name == 'b1'): all 100 records of authors are read once, unless the first rows"
            " are enough"
        )
        assert str(query.order_by(lambda b: b.title).explain()).endswith("all 100 records of authors are read once")
        assert t.books.where(lambda b: b.author == 3).explain().scanned == ()
        assert not scanned


def test_a_link_to_no_record_raises_where_a_row_depends_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkscans, "LEAST", 1)
    with zlmdb.open(None, Library) as loose:
        with loose.write() as t:
            fill(t)
            t.bare[400] = Book("b", 1000, None, [1000])  # its author is not there
        with loose.read() as t:
            for condition in (
                lambda b: t.authors[b.author].name == "b1" or b.title == "b",
                lambda b: all(t.authors[one].born > 3 for one in b.judges if t.authors[one].name < "c"),
            ):
                with pytest.raises(KeyError):
                    [book for book in t.bare.values() if condition(book)]
                with pytest.raises(KeyError):
                    t.bare.where(condition).all()
            assert t.bare.where(lambda b: t.authors[b.author].name == "b1").count() == 20


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


def test_a_small_table_is_looked_up(scanned: list[Optional[int]]) -> None:
    with zlmdb.open(None, Library) as small:
        with small.write() as t:
            t.authors[1] = Author("Ann", 1)
            t.books[1] = Book("Seas", 1, None, [])
        with small.read() as t:
            assert t.books.where(lambda b: t.authors[b.author].name == "Ann").keys().all() == [1]
    assert not scanned


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


@dataclass
class Tag:
    name: str


@dataclass
class Item:
    name: str
    kind: UUID


@dataclass
class Order:
    first: UUID
    items: list[UUID]
    gift: Optional[UUID] = None


class Kinds(Table[UUID, Tag]):
    """Nothing has an index, but the links."""


class Items(Table[UUID, Item]):
    by_kind = ForeignKey["Kinds"]("kind")


class Orders(Table[UUID, Order]):
    by_item = ForeignKey["Items"]("items", each=True)


class Shop(zlmdb.Schema):
    kinds: Kinds
    items: Items
    orders: Orders
    flat: Table[UUID, zlmdb.FlatBuffers[Order]]


@pytest.mark.parametrize("few", [1000, 3])
def test_links_by_uuids(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semijoins, "CAP", few)
    with zlmdb.open(None, Shop) as db:
        with db.write() as t:
            kinds = [UUID(int=n << 90) for n in range(9)]
            items = [UUID(int=n << 80) for n in range(60)]
            t.kinds.update({key: Tag(f"k{n}") for n, key in enumerate(kinds)})
            t.items.update({key: Item(f"i{n}", kinds[n % 9]) for n, key in enumerate(items)})
            for n in range(400):
                order = Order(items[n % 60], items[n % 50 : n % 50 + n % 4], items[n % 7] if n % 3 else None)
                t.orders[UUID(int=n + 1)] = t.flat[UUID(int=n + 1)] = order
        with db.read() as t:
            for name in ("k1", "k5", "nothing"):
                conditions: list[Callable[[Order], bool]] = [
                    lambda o, name=name: any(t.kinds[t.items[i].kind].name == name for i in o.items),  # type: ignore[misc]
                    lambda o, name=name: t.kinds[t.items[o.first].kind].name == name,  # type: ignore[misc]
                    lambda o, name=name: o.gift is not None and t.items[o.gift].name[1:] == name[1:],  # type: ignore[misc]
                    lambda o, name=name: any(t.items[i].name[1] == name[1] and i != o.first for i in o.items),  # type: ignore[misc]
                ]
                for condition in conditions:
                    for table in (t.orders, t.flat):
                        expected = [key for key, order in table.items() if condition(order)]
                        for _ in range(2):
                            assert table.where(condition).keys().all() == expected
                        assert table.where(condition).count() == len(expected)
                        assert list(table.where(condition).keys()) == expected


def test_many_keys_are_kept_those_of_uuids_as_numbers() -> None:
    found: Any = linkscans.keys_of(iter(range(150_000)), numbers=False)
    assert found == set(range(150_000))
    few, many = [UUID(int=n) for n in range(900)], [UUID(int=n) for n in range(1_100)]
    assert linkscans.keys_of(iter(few), numbers=True) == set(few)  # an index finds them
    assert linkscans.keys_of(iter(many), numbers=False) == set(many)
    kept: Any = linkscans.keys_of(iter(many), numbers=True)
    assert isinstance(kept, linkscans.Numbers)
    assert linkscans.numbers_of(kept) == kept.numbers == set(range(1_100))
    assert all(one in kept for one in many)
    assert not any(one in kept for one in (UUID(int=2_000), 3, None))


@pytest.mark.parametrize("most", [20, 399])
def test_no_more_keys_are_kept_than_a_bound(
    db: Any, scanned: list[Optional[int]], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Whatever the bound is, the rows are those of a loop, in its order."""
    for module in (linkscans, cachedlinkscans):
        monkeypatch.setattr(module, "MOST", most)
        monkeypatch.setattr(module, "BLOCK", 10)
    with db.read() as t:
        for name in ("equal", "not", "each"):
            condition = CONDITIONS[name](t, "b1")
            expected = [key for key, book in t.books.items() if condition(book)]
            query = t.books.where(condition)
            assert query.keys().all() == list(query.keys()) == expected
            assert query.count() == len(expected)


def test_that_too_many_fit_is_known_after_a_part_of_the_other_table(
    db: Any, scanned: list[Optional[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cachedlinkscans, "BLOCK", 10)
    with db.read() as t:
        for _ in range(2):
            scanned.clear()
            expected = [key for key, book in t.books.items() if t.authors[book.author].born < 7]
            assert t.books.where(lambda b: t.authors[b.author].born < 7).keys().all() == expected
    assert scanned == [16, 78]  # by the index of the link, which is given up, and by reading all of both tables
