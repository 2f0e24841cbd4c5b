"""Conditions on the records that refer to a record: told by one reading of their table, and the rows stay the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Callable, Literal, Optional
from uuid import UUID

import pytest

import zlmdb
from zlmdb import ForeignKey, Index, Table
from zlmdb.query.nestedloops import Reader
from zlmdb.tables.executor import linkscans, referring, semijoins

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python


@dataclass
class User:
    name: str
    boss: Optional[UUID] = None
    friends: list[UUID] = field(default_factory=list)


@dataclass
class Order:
    total: int
    user: UUID
    helpers: list[UUID] = field(default_factory=list)
    paid: Optional[int] = None


class Users(Table[UUID, User]):
    by_boss = ForeignKey["Users"]("boss", deferred=True)


class Orders(Table[UUID, Order]):
    by_user = ForeignKey["Users"]("user")
    by_helper = ForeignKey["Users"]("helpers", each=True)
    by_total = Index[int]("total")
    dear = Index[UUID]("user", where=lambda o: o.total > 50)


class Flat(Table[UUID, zlmdb.FlatBuffers[Order]]):
    by_user = ForeignKey["Users"]("user")
    by_helper = ForeignKey["Users"]("helpers", each=True)


class Shop(zlmdb.Schema):
    users: Users
    orders: Orders
    flat: Flat


def key(n: int) -> UUID:
    return UUID(int=(n * 0x9E3779B97F4A7C15F39CC0605CEDC835) % (1 << 128))


def fill(t: Shop, users: int = 60, orders: int = 150) -> None:
    for n in range(users):
        t.users[key(n)] = User(f"n{n % 7}", key(n // 3) if n % 4 else None, [key(n * 3 % users), key(n * 5 % users)])
    for n in range(orders):
        helpers = [key(n * one % users) for one in range(n % 4)]
        order = Order(n * 37 % 100, key(n * n % (users // 2)), [*helpers, *helpers[:1]], n if n % 3 else None)
        t.orders[key(1000 + n)] = t.flat[key(1000 + n)] = order


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with zlmdb.open(None, Shop) as db:
        with db.write() as t:
            fill(t)
        yield db


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkscans, "LEAST", 4)


Condition = Callable[[UUID, User], Any]
CONDITIONS: dict[str, Callable[[Any, Any], Condition]] = {
    "some": lambda t, o: lambda k, u: bool(o.by_user[k]),
    "none": lambda t, o: lambda k, u: not o.by_user[k],
    "held": lambda t, o: lambda k, u: k in o.by_helper and u.name != "n3",
    "not held": lambda t, o: lambda k, u: k not in o.by_user or u.name == "n3",
    "many": lambda t, o: lambda k, u: o.by_user[k].count() > 2,
    "few": lambda t, o: lambda k, u: not o.by_helper[k].count() > 2,
    "two counts": lambda t, o: lambda k, u: o.by_user[k].count() > o.by_helper[k].count() and u.name < "n5",
    "any": lambda t, o: lambda k, u: any(one.total > 60 for one in o.by_user[k].values()),
    "any, some": lambda t, o: lambda k, u: any(one.total > 60 for one in o.by_user[k].values() if one.helpers),
    "any, by an index": lambda t, o: lambda k, u: any(one.total == 37 for one in o.by_user[k].values()),
    "not any": lambda t, o: lambda k, u: not any(one.total > 60 for one in o.by_user[k].values()),
    "all": lambda t, o: lambda k, u: all(one.total > 20 for one in o.by_user[k].values()),
    "not all": lambda t, o: lambda k, u: not all(one.total > 20 for one in o.by_helper[k].values()),
    "all, some": lambda t, o: lambda k, u: all(one.total > 20 for one in o.by_user[k].values() if one.paid is None),
    "value": lambda t, o: lambda k, u: any(one.paid for one in o.by_user[k].values()),
    "of the element": lambda t, o: lambda k, u: any(k in one.helpers for one in o.by_user[k].values()),
    "either": lambda t, o: lambda k, u: u.name == "n1" or any(one.total < 9 for one in o.by_user[k].values()),
    "a choice": lambda t, o: lambda k, u: bool(o.by_user[k]) if u.name < "n4" else k in o.by_helper,
    "own": lambda t, o: lambda k, u: any(one.name == "n4" for one in t.users.by_boss[k].values()),
    "own, of a field": lambda t, o: lambda k, u: u.boss is not None and t.users.by_boss[u.boss].count() > 1,
    "of a field": lambda t, o: (
        lambda k, u: u.boss is not None and all(one.total > 20 for one in o.by_user[u.boss].values())
    ),
    "of elements": lambda t, o: (
        lambda k, u: any(any(one.total > 80 for one in o.by_user[f].values()) for f in u.friends)
    ),
    "of all elements": lambda t, o: lambda k, u: all(f in o.by_user for f in u.friends),
    "there and back": lambda t, o: (
        lambda k, u: any(t.users[one.user].name == "n2" for one in o.by_helper[k].values())
    ),
    "back and back": lambda t, o: (
        lambda k, u: any(
            any(one.total > 80 for one in o.by_user[v.friends[0]].values()) for v in t.users.by_boss[k].values()
        )
    ),
    "within": lambda t, o: (
        lambda k, u: any(any(t.users[h].name == "n3" for h in one.helpers) for one in o.by_user[k].values())
    ),
    "partial": lambda t, o: lambda k, u: any(one.total < 70 for one in t.orders.dear[k].values()),
    "partial, counted": lambda t, o: lambda k, u: t.orders.dear[k].count() == 1,
    "nobody": lambda t, o: lambda k, u: any(one.total > 600 for one in o.by_user[k].values()),
}  # fmt: skip


def loop(t: Any, condition: Condition) -> list[UUID]:
    return [k for k, u in t.users.items() if condition(k, u)]


def check(t: Any, make: Callable[[Any, Any], Condition]) -> None:
    for orders in (t.orders, t.flat):
        condition = make(t, orders)
        expected = loop(t, condition)
        query = t.users.where(make(t, orders))
        assert list(query.keys()) == query.keys().all() == expected
        assert (query.count(), bool(query), query.limit(3).keys().all()) == (
            len(expected),
            bool(expected),
            expected[:3],
        )
        assert query.fields(lambda u: u.name).all() == [t.users[k].name for k in expected]
        assert query.order_by(lambda u: u.name).keys().all() == sorted(expected, key=lambda k: t.users[k].name)


@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_are_those_of_a_loop(db: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with db.read() as t:
        check(t, CONDITIONS[name])
        monkeypatch.setattr(semijoins, "CAP", 3)
        check(t, CONDITIONS[name])
        for module in (linkscans, referring):
            monkeypatch.setattr(module, "MOST", 5)  # too many keys to keep
        check(t, CONDITIONS[name])


@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_while_writing_and_changes_by_them(db: Any, name: str) -> None:
    make = CONDITIONS[name]
    with db.write() as t:
        for n in range(0, 150, 4):
            t.orders[key(1000 + n)] = Order(n % 90, key(n % 60), [key(n % 7)])
            del t.flat[key(1000 + n)]
        check(t, make)
        expected = loop(t, make(t, t.orders))
        for k, _ in t.users.where(make(t, t.orders)):  # each is judged when its turn comes
            assert make(t, t.orders)(k, t.users[k])
            for order in list(t.orders.by_user[k].keys())[:1]:
                t.orders[order] = replace(t.orders[order], total=1)
        expected = loop(t, make(t, t.orders))
        assert t.users.where(make(t, t.orders)).change(lambda u: replace(u, name="changed")) == len(expected)
        t.txn.abort()


def told(query: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = query.explain().links
    return found


def test_the_plan_tells_how_those_that_refer_are_found(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with db.read() as t:
        dear = t.users.where(lambda k, u: any(o.total > 60 for o in t.flat.by_user[k].values()))
        assert dear.explain().called == ()
        assert dear.explain().scanned == ("flat",)
        text = "any((x0.total > 60) for x0 in t.flat.by_user[k].values()): all 150 records of flat are read once"
        assert told(dear) == (f"{text}, unless the first rows are enough",)
        few = t.users.where(lambda k, u: any(o.total == 37 for o in t.orders.by_user[k].values()))
        assert few.explain().indexes == ("(key)",)
        assert told(few)[0].endswith("2 records of orders, by index by_total")
        sorted_ = t.users.where(lambda k, u: t.orders.by_user[k].count() > 2).order_by(lambda u: u.name)
        text = "t.orders.by_user[k].count(): all entries of t.orders.by_user are read once, and no records"
        assert told(sorted_) == (text,)
        assert told(t.users.where(lambda k, u: t.orders.dear[k].count() > 2)) == (
            "t.orders.dear: asked for each record",
        )
        monkeypatch.setattr(linkscans, "LEAST", 1000)
        assert told(dear) == ("t.flat.by_user: asked for each record",)


def test_the_plan_tells_all_tables_of_a_chain(db: Any) -> None:
    with db.read() as t:
        chain = t.flat.where(lambda o: t.users[t.users[t.users[o.user].friends[0]].friends[0]].name > "n2")
        assert chain.count() == len([o for o in t.flat.values() if chain_of(t, o) > "n2"])
        assert chain.explain().scanned == ("users",)
        assert len([one for one in told(chain) if "are read once" in one]) == 3


def chain_of(t: Any, order: Order) -> str:
    name: str = t.users[t.users[t.users[order.user].friends[0]].friends[0]].name
    return name


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are read whole for a link."""
    found: list[str] = []
    rows_that_fit = linkscans.rows_that_fit

    def noted(fits: Any, table: Any, give: Any) -> Any:
        found.append(table._name)
        return rows_that_fit(fits, table, give)

    monkeypatch.setattr(linkscans, "rows_that_fit", noted)
    return found


def test_the_other_table_is_read_once(db: Any, reads: list[str]) -> None:
    with db.read() as t:
        t.users.where(lambda k, u: not any(o.total > 60 for o in t.flat.by_user[k].values())).count()
        assert reads == ["flat"]
        for _ in range(3):
            assert t.users.where(lambda k, u: t.flat.by_user[k].count() > 2).count() > 0
            assert t.users.where(lambda k, u: not t.flat.by_helper[k]).count() > 0
        assert reads == ["flat"]  # entries of the index tell


def test_the_first_row_in_a_write_transaction_is_not_that_of_a_loop(db: Any, reads: list[str]) -> None:
    """first() asked the index for each record up to it, as in a loop whose body may write."""
    with db.write() as t:
        last = list(t.users)[-1]
        t.flat[key(5000)] = Order(1000, last)

        def fits(k: UUID, u: User) -> bool:
            return any(o.total > 900 for o in t.flat.by_user[k].values())

        for give in (lambda rows: rows, lambda rows: rows.values(), lambda rows: rows.fields(lambda u: u.name)):
            query = t.users.where(lambda k, u: any(o.total > 900 for o in t.flat.by_user[k].values()))
            assert give(query).first() == give(t.users.select(last)).first()
            assert query.limit(0).first() is None
            assert query.limit(1, skip=1).first() is None
            assert reads
            reads.clear()
        assert t.users.where(fits).keys().all() == [last]
        t.txn.abort()


def test_errors_are_those_of_the_function(db: Any) -> None:
    with db.read() as t:
        paid = t.users.where(lambda k, u: any(o.paid * 2 > 600 for o in t.orders.by_user[k].values()))
        with pytest.raises(TypeError):
            paid.all()
        with pytest.raises(TypeError, match="no field 'totl'"):
            t.users.where(lambda k, u: any(o.totl for o in t.orders.by_user[k].values()))


@dataclass
class Size:
    size: int


class Sized(Table[int, Size]):
    by_size = Index[int]("size")


@dataclass
class Note:
    about: str
    by: str


class Notes(Table[int, Note]):
    by_about = Index[str]("about")


class Bare(Table[int, zlmdb.Pickle[Note]]):
    by_about = Index[str]("about")


class Literals(Table[int, "Chosen"]):
    by_size = Index[Literal["s", "l"]]("size")


@dataclass
class Chosen:
    size: Literal["s", "l"]


class Named(zlmdb.Schema):
    chosen: Literals
    texts: Table[str, str]
    sizes: Table[int, Size]
    sized: Sized
    notes: Notes
    bare: Bare


def refusing(table: Any) -> list[Callable[[Note], Any]]:
    return [
        lambda v: table.by_about[v.by].count() == 0,
        lambda v: not table.by_about[v.by],
        lambda v: any(one.by == "p3" for one in table.by_about[v.by].values()),
        lambda v: all(one.by > "p3" for one in table.by_about[v.by].values()),
    ]


def loop_of(table: Any, condition: Callable[[Note], Any]) -> list[int]:
    return [k for k, v in table.items() if condition(v)]


def loop_of_pairs(table: Any, condition: Callable[..., Any]) -> list[Any]:
    return [k for k, v in table.items() if condition(k, v)]


def outcome(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except zlmdb.Error as error:
        return type(error)


def test_keys_that_an_index_may_refuse_are_asked_for_by_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    with zlmdb.open(None, Named) as db:
        with db.write() as t:
            for n in range(40):
                t.notes[n] = t.bare[n] = Note(f"p{n % 7}", f"p{n}")
            for n in range(20):
                t.chosen[n], t.texts["smlx"[n % 4] * (n // 4 + 1)] = Chosen("s" if n % 3 else "l"), "l"
                t.sizes[n], t.sized[n] = Size(n % 7 if n < 19 else 1 << 63), Size(n % 5)
            t.bare[40] = Note("p1", "\ud800")  # no text that UTF-8 can hold
        with db.read() as t:
            more: list[tuple[Any, Callable[..., Any]]] = [
                (t.sizes, lambda k, v: t.sized.by_size[v.size].count() < 2),
                (t.sizes, lambda k, v: not t.sized.by_size[v.size]),
                (t.sizes, lambda k, v: v.size < 9 and all(one.size < 3 for one in t.sized.by_size[v.size].values())),
                (t.sizes, lambda k, v: t.sized.by_size[k].count() < 2),
                (t.texts, lambda k, v: t.chosen.by_size[k].count() == 0),
                (t.texts, lambda k, v: k in ("s", "l") and t.chosen.by_size[k].count() > 0),
                (t.texts, lambda k, v: not t.chosen.by_size[k]),
            ]
            for table, condition in more:
                expected = outcome(partial(loop_of_pairs, table, condition))
                assert outcome(table.where(condition).keys().all) == expected
            for table in (t.notes, t.bare):
                for condition in refusing(table):
                    expected = outcome(partial(loop_of, table, condition))
                    assert outcome(table.where(condition).keys().all) == expected


# -- across changes of a schema, and expiry ---------------------------------------------------------------------------


@dataclass
class OldAuthor:
    title: str


@dataclass
class OldBook:
    price: int
    writer: int


@dataclass
class Author:
    name: Annotated[str, zlmdb.Was("title")]
    born: int = 1900


@dataclass
class Book:
    price: int
    author: Annotated[int, zlmdb.Was("writer")]
    editor: Optional[int] = None


class OldShape(zlmdb.Schema):
    authors: Table[int, OldAuthor]
    books: Table[int, OldBook]


class Authors(Table[int, Author]):
    """Authors by number."""


class Books(Table[int, Book]):
    by_author = ForeignKey["Authors"]("author")
    by_editor = ForeignKey["Authors"]("editor")


class NewShape(zlmdb.Schema):
    authors: Authors
    books: Books


class Unlinked(zlmdb.Schema):
    authors: Table[int, Author]
    books: Table[int, Book]


SHAPES: list[Callable[[Any], Callable[..., Any]]] = [
    lambda t: lambda b: t.authors[b.author].name < "a4",
    lambda t: lambda b: not t.authors[b.author].born > 1900 and b.price > 3,
    lambda t: lambda b: b.editor is None or t.authors[b.editor].name == "a3",
]
BACK_SHAPES: list[Callable[[Any], Callable[..., Any]]] = [
    lambda t: lambda k, a: any(b.price > 5 and b.editor is None for b in t.books.by_author[k].values()),
    lambda t: lambda k, a: t.books.by_author[k].count() > 3 and a.born == 1900,
    lambda t: lambda k, a: not t.books.by_editor[k] and a.name != "a1",
]


def check_shapes(t: Any, *, back: bool) -> None:
    for make in SHAPES:
        condition = make(t)
        assert t.books.where(make(t)).keys().all() == [k for k, b in t.books.items() if condition(b)]
    for make in BACK_SHAPES if back else ():
        condition = make(t)
        assert t.authors.where(make(t)).keys().all() == [k for k, a in t.authors.items() if condition(k, a)]


def test_records_of_an_older_shape_and_a_link_declared_later(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with zlmdb.open(path, OldShape) as db, db.write() as t:
        for n in range(20):
            t.authors[n] = OldAuthor(f"a{n % 9}")
        for n in range(60):
            t.books[n] = OldBook(n % 11, n * 7 % 18)
    with zlmdb.open(path, Unlinked, readonly=True) as db, db.read() as t:
        check_shapes(t, back=False)  # mapped in memory
    with zlmdb.open(path, NewShape) as db:
        with db.read() as t:
            check_shapes(t, back=True)
        with db.write() as t:
            for n in range(0, 60, 5):
                t.books[n] = Book(n % 9, n % 20, n % 3)
                t.authors[n % 20] = Author(f"a{n % 4}", 1800 + n * 3)
            check_shapes(t, back=True)
        with db.read() as t:
            check_shapes(t, back=True)


@dataclass
class Session:
    name: str
    until: datetime


@dataclass
class Click:
    session: int
    until: datetime
    at: int


class Sessions(Table[int, Session], expires="until"):
    """Sessions by number."""


class Clicks(Table[int, Click], expires="until"):
    by_session = Index[int]("session")


class Plain(Table[int, int]):
    """Numbers of sessions."""


class Web(zlmdb.Schema):
    sessions: Sessions
    clicks: Clicks
    plain: Plain


def test_expired_records_of_the_other_table_are_absent() -> None:
    now = datetime.now(timezone.utc)
    dice = random.Random(1)
    past, future = now - timedelta(days=1), now + timedelta(days=1)
    with zlmdb.open(None, Web) as db:
        with db.write() as t:
            for n in range(40):
                t.sessions[n] = Session(f"s{n % 3}", past if n % 4 == 0 else future)
                t.plain[n] = n * 7 % 40
            for n in range(70):
                t.clicks[n] = Click(dice.randrange(40), past if n % 5 == 0 else future, n)
        for begin in (db.read, db.write):
            with begin() as t:
                conditions: list[tuple[Any, Any]] = [
                    (t.plain, lambda k, v: t.sessions.get(v) is not None),
                    (t.plain, lambda k, v: v % 4 > 0 and t.sessions[v].name == "s1"),
                    (t.plain, lambda k, v: any(c.at > 50 for c in t.clicks.by_session[v].values())),
                    (t.plain, lambda k, v: t.clicks.by_session[v].count() == 1),
                    (t.sessions, lambda k, v: all(c.at > 20 for c in t.clicks.by_session[k].values())),
                    (t.sessions, lambda k, v: k not in t.clicks.by_session),
                ]  # fmt: skip
                for table, condition in conditions:
                    expected = [k for k, v in table.items() if condition(k, v)]
                    assert expected
                    assert table.where(condition).keys().all() == expected
                with pytest.raises(KeyError):
                    t.plain.where(lambda k, v: t.sessions[v].name == "s1" or v > 0).all()


# -- counts of a key that is a field ----------------------------------------------------------------------------------


@dataclass
class Member:
    id: int


@dataclass
class Loan:
    member: int


class Members(Table[int, Member], key="id"):
    """Members, each under the number that it has."""


class Loans(Table[int, Loan]):
    by_member = ForeignKey[Members]("member")


class Library(zlmdb.Schema):
    members: Members
    loans: Loans


def test_counts_of_a_key_that_is_a_field_ask_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    original = Reader.made

    def noted(reader: Reader, *given: Any) -> Any:
        made.append(reader)
        return original(reader, *given)

    with zlmdb.open(None, Library) as db:
        with db.write() as t:
            t.members.put_many([(n, Member(n)) for n in range(50)])
            t.loans.put_many([(n, Loan(n * n % 31)) for n in range(200)])
        with db.read() as t:
            for most in (0, 2, 9):
                expected = [k for k in range(50) if t.loans.by_member[k].count() <= most]
                for _ in range(3):
                    found = t.members.where(lambda m, most=most: t.loans.by_member[m.id].count() <= most)
                    assert found.keys().all() == expected
                monkeypatch.setattr(Reader, "made", noted)
            assert made == []
