"""Records in the order of a field of what they refer to: the same rows as sorting all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Optional
from uuid import UUID

import pytest

import zlmdb
from zlmdb import ForeignKey, Index, Table, desc

from .answers import CODECS, FLAT

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Author:
    name: str
    born: int
    weight: float = 0.0
    nick: Optional[str] = None


@dataclass
class Book:
    title: str
    author: UUID
    other: Optional[UUID]
    bare: UUID


def schema(codec: Any) -> Any:
    book, author = (codec[model] if codec else model for model in (Book, Author))

    class Authors(Table[UUID, author]):  # type: ignore[valid-type]
        by_born = Index[int]("born")

    class Books(Table[int, book]):  # type: ignore[valid-type]
        by_author = ForeignKey[Authors]("author")
        by_other = ForeignKey[Authors]("other")
        by_bare = Index[UUID]("bare")

    class Library(zlmdb.Schema):
        books: Books
        authors: Authors

    return Library


def key(n: int) -> UUID:
    return UUID(int=n * 7919 << 60 | n)


@pytest.fixture(
    params=[FLAT, *(pytest.param(one, marks=pytest.mark.once) for one in (("msgpack", "tables"), ("plain", "classic")))]
)
def db(request: Any) -> Iterator[Any]:
    codec, layout = request.param
    with zlmdb.open(None, schema(CODECS[codec]), layout=layout) as db:
        with db.write() as t:
            for n in range(40):
                name = "abcdefg"[n * 5 % 7] * (n % 3 + 1)
                t.authors[key(n)] = Author(name, n * 11 % 13, n / 4, "n" if n % 2 else None)
            for n in range(90):
                author = key(n * 7 % 30)  # ten have no books
                t.books[n * 3 - 135] = Book(f"b{n}", author, author if n % 3 else None, author)
        yield db


ORDERS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "by all that are referred to": lambda t: lambda b: t.authors[b.author].name,
    "by an index": lambda t: lambda b: t.authors[b.author].born,
    "by all, the greatest first": lambda t: lambda b: desc(t.authors[b.author].name),
    "by an index, the greatest first": lambda t: lambda b: desc(t.authors[b.author].born),
    "of a function of the key, too": lambda t: lambda k, b: t.authors[b.author].born,
    "of floats": lambda t: lambda b: t.authors[b.author].weight,
    "of what may be None": lambda t: lambda b: t.authors[b.author].nick or "",
    "of what is computed": lambda t: lambda b: -t.authors[b.author].born,
    "of a link that may be None": lambda t: lambda b: "" if b.other is None else t.authors[b.other].name,
    "of no link that the database keeps": lambda t: lambda b: t.authors[b.bare].name,
    "then of the record": lambda t: lambda b: (t.authors[b.author].name, b.title),
}


@pytest.mark.parametrize("name", ORDERS)
def test_rows_come_in_the_order_of_what_the_function_gives(db: Any, name: str) -> None:
    for how in (db.read, db.write):
        with how() as t:
            by = ORDERS[name](t)
            pairs = t.books.items()
            keyed = by.__code__.co_argcount == 2
            rows = sorted(pairs, key=lambda pair: by(*pair) if keyed else by(pair[1]))
            for backwards in (False, True):
                wanted = rows[::-1] if backwards else rows
                found = t.books.order_by(by, reverse=backwards)
                limits = [(5, 9), (1, 0), (1000, 0), (0, 0), (10, 500)]  # in a write transaction all rows are sorted
                for limit, skip in limits if how == db.read else limits[:1]:
                    assert found.limit(limit, skip).all() == wanted[skip : skip + limit]
                assert found.limit(9).fields(lambda k, b: (k, b.title)).all() == [(k, b.title) for k, b in wanted[:9]]
                assert found.first() == wanted[0]
                assert list(found.limit(4).keys()) == [k for k, _ in wanted[:4]]
                some = t.books.select(-60, 60).order_by(by, reverse=backwards).limit(8).all()
                assert some == [pair for pair in wanted if -60 <= pair[0] < 60][:8]


def test_the_index_of_the_link_finds_them(db: Any) -> None:
    with db.read() as t:
        for _ in range(2):
            by_name = t.books.order_by(lambda b: t.authors[b.author].name).limit(5).explain()
            if t.authors._storage.alone:  # else it is not known that the authors are fewer
                assert (by_name.indexes, by_name.ordered) == (("by_author",), True)
                assert by_name.order == "t.authors[b.author].name: from what the records refer to"
            by_born = t.books.order_by(lambda b: t.authors[b.author].born, reverse=True).limit(5).explain()
            assert by_born.indexes == ("by_author",)
            assert "by index by_born" in by_born.read[0]
            last = t.books.order_by(lambda b: desc(t.authors[b.author].born)).limit(5).explain()
            assert (last.indexes, last.ordered) == (("by_author",), True)
            assert "by index by_born" in last.read[0]
        for other in ("of floats", "of no link that the database keeps", "of a link that may be None"):
            assert t.books.order_by(ORDERS[other](t)).limit(5).explain().indexes == ()
        assert t.books.order_by(lambda b: t.authors[b.author].name).explain().indexes == ()


def test_only_a_damaged_record_that_is_referred_to_raises(db: Any) -> None:
    with db.write() as t:
        t.txn._engine_txn.put(t.authors._storage.encode_key(key(39)), b"\xc1", db=t.authors._db)
    for _ in range(2):
        with db.read() as t:
            rows = sorted(t.books.items(), key=lambda pair: t.authors[pair[1].author].name)
            assert t.books.order_by(lambda b: t.authors[b.author].name).limit(6).all() == rows[:6]
    with db.write() as t:
        t.txn._engine_txn.put(t.authors._storage.encode_key(key(2)), b"\xc1", db=t.authors._db)
    with db.read() as t, pytest.raises(zlmdb.DecodeError):
        t.books.order_by(lambda b: t.authors[b.author].name).limit(6).all()


@dataclass
class Session:
    rank: int
    until: datetime


@dataclass
class Use:
    session: int


class Sessions(Table[int, Session], expires="until"):
    by_rank = Index[int]("rank")


class Uses(Table[int, Use]):
    by_session = ForeignKey[Sessions]("session", on_delete="cascade")


class Expiring(zlmdb.Schema):
    sessions: Sessions
    uses: Uses


def test_what_refers_to_a_record_that_has_expired_is_looked_up() -> None:
    later = datetime.now(timezone.utc) + timedelta(days=1)
    with zlmdb.open(None, Expiring) as db:
        with db.write() as t:
            for n in range(20):
                t.sessions[n] = Session(20 - n, later)
                t.uses[n] = Use(n)
            t.sessions[19] = Session(0, later - timedelta(days=2))
        for _ in range(2):
            with db.read() as t, pytest.raises(KeyError, match="19"):
                t.uses.order_by(lambda u: t.sessions[u.session].rank).limit(3).all()
