"""What a function asks of the records of a key in an index, of each record: the same as calling the function gives."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Callable, Optional
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb import Cbor, FlatBuffers, ForeignKey, Index, Json, Msgpack, Pickle, Table, UniqueIndex
from zlmdb.query import nestedloops, nestedrows
from zlmdb.query.following.nested import Nested
from zlmdb.store.blocks import COUNTS_REFERENCES
from zlmdb.tables import indexview

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class User:
    name: str
    age: int
    town: Optional[str] = None


@dataclass
class Order:
    user: int
    key: UUID
    text: str
    items: list[int] = field(default_factory=list)
    total: float = 0.0
    note: Optional[str] = None
    parent: Optional[int] = None


def tables(codec: Any) -> Any:
    """The classes of a schema, of which the values have this *codec*."""
    order: Any = codec[Order] if codec else Order
    user: Any = codec[User] if codec else User

    class Users(Table[int, user]):  # type: ignore[valid-type]
        by_name = UniqueIndex[str]("name")
        by_town = Index[str]("town")

    class Named(Table[str, user]):  # type: ignore[valid-type]
        """Users by their names."""

    class Orders(Table[int, order]):  # type: ignore[valid-type]
        by_user = ForeignKey[Users]("user")
        by_key = Index[UUID]("key")
        by_text = Index[str]("text")
        by_item = Index[int]("items", each=True)
        by_pair = Index[tuple[int, str]]("user", "text")
        by_big = Index[int]("user", where=lambda o: o.total > 3)
        by_parent = Index[int]("parent")
        by_carried = Index[int]("user", carries=("total",))

    class Spelled(Table[str, order]):  # type: ignore[valid-type]
        by_user = Index[int]("user")
        by_text = Index[str]("text")

    class Identified(Table[UUID, order]):  # type: ignore[valid-type]
        by_user = Index[int]("user")

    class Shop(zlmdb.Schema):
        users: Users
        named: Named
        orders: Orders
        spelled: Spelled
        identified: Identified

    return Shop


def fill(t: Any, orders: int = 60) -> None:
    dice = random.Random(7)
    for n in range(12):
        t.users[n] = t.named[f"n{n}"] = User(f"n{n}", n * 5 % 7, None if n % 3 == 0 else f"t{n % 2}")
    for n in range(orders):
        of, items = dice.randrange(9), [dice.randrange(12) for _ in range(dice.randrange(4))]
        note, parent = None if n % 2 else f"é{n}", None if n % 4 == 0 else dice.randrange(12)
        one = Order(of, UUID(int=of << 70), f"n{of}", items, dice.random() * 8, note, parent)
        t.orders[n] = t.spelled[f"o{n}"] = t.identified[UUID(int=n << 80)] = one


CODECS = {"plain": None, "msgpack": Msgpack, "cbor": Cbor, "json": Json, "flat": FlatBuffers, "pickle": Pickle}


# That a codec gives the same on every interpreter is tried with its values.
EVERYWHERE = ("flat",)


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=[] if one in EVERYWHERE else pytest.mark.once) for one in CODECS],
)
def db(request: Any) -> Iterator[Any]:
    with zlmdb.open(None, tables(CODECS[request.param])) as db:
        with db.write() as t:
            fill(t)
        yield db


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each reader that was made is a generated one."""
    made: list[bool] = []

    def reader(self: Any, *arguments: Any) -> Any:
        found = original(self, *arguments)
        if found is None:
            made.append(False)
        return found

    def generated(self: Any, *arguments: Any) -> Any:
        made.append(True)
        return make(self, *arguments)

    original, make = indexview.IndexView._reader, nestedloops.Reader.made
    monkeypatch.setattr(indexview.IndexView, "_reader", reader)
    monkeypatch.setattr(nestedloops.Reader, "made", generated)
    return made


class Undone(Exception):
    """What ends a write transaction of which nothing is to be kept."""


class Unasked(Exception):
    """What the general form raises."""


def refuse(*arguments: Any) -> Any:
    raise Unasked


@pytest.fixture
def no_general(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nestedrows._Question, "__call__", refuse)


Make = Callable[[Any], Callable[..., Any]]

ASKED: dict[str, Make] = {
    "fields": lambda t: lambda k, u: (u.name, t.orders.by_user[k].fields(lambda o: (o.text, o.total)).all()),
    "one field": lambda t: lambda k, u: t.orders.by_user[k].fields(lambda o: o.total).all(),
    "the first": lambda t: lambda k, u: t.orders.by_user[k].limit(1).fields(lambda o: o.note).all(),
    "the first two": lambda t: lambda k, u: t.orders.by_user[k].limit(2).fields(lambda o: o.items).all(),
    "those behind": lambda t: lambda k, u: t.orders.by_user[k].limit(2, skip=1).fields(lambda o: o.total).all(),
    "none": lambda t: lambda k, u: t.orders.by_user[k].limit(0).fields(lambda o: o.total).all(),
    "with the key": lambda t: lambda k, u: t.orders.by_user[k].fields(lambda j, o: (j, o.text)).all(),
    "of the outer record": lambda t: (
        lambda k, u: t.orders.by_user[k].fields(lambda j, o: (u.name, k, j, o.total + u.age)).all()
    ),
    "outer value alone": lambda t: lambda u: t.orders.by_user[u.age].fields(lambda o: (o.text, u)).all(),
    "values": lambda t: lambda k, u: t.orders.by_user[k].values().all(),
    "first values": lambda t: lambda k, u: t.orders.by_user[k].limit(3).values().all(),
    "keys": lambda t: lambda k, u: t.orders.by_user[k].keys().all(),
    "first keys": lambda t: lambda k, u: t.orders.by_user[k].limit(1).keys().all(),
    "pairs": lambda t: lambda k, u: t.orders.by_user[k].all(),
    "first pairs": lambda t: lambda k, u: t.orders.by_user[k].limit(2).all(),
    "first": lambda t: lambda k, u: t.orders.by_user[k].first(),
    "first value": lambda t: lambda k, u: t.orders.by_user[k].values().first(),
    "first key": lambda t: lambda k, u: t.orders.by_user[k].keys().first(),
    "first field": lambda t: lambda k, u: t.orders.by_user[k].fields(lambda o: o.text).first(),
    "first behind": lambda t: lambda k, u: t.orders.by_user[k].limit(2, 1).fields(lambda o: o.total).first(),
    "field of the first": lambda t: (
        lambda k, u: None if (o := t.orders.by_user[k].values().first()) is None else o.text
    ),
    "count": lambda t: lambda k, u: t.orders.by_user[k].count(),
    "count of the first": lambda t: lambda k, u: t.orders.by_user[k].limit(3, 1).count(),
    "count of values": lambda t: lambda k, u: t.orders.by_user[k].values().count(),
    "count of fields": lambda t: lambda k, u: t.orders.by_user[k].fields(lambda o: o.text).count(),
    "truth": lambda t: lambda k, u: "some" if t.orders.by_user[k] else "none",
    "truth of the first": lambda t: lambda k, u: "some" if t.orders.by_user[k].limit(1) else "none",
    "truth behind": lambda t: lambda k, u: "some" if t.orders.by_user[k].limit(9, 4) else "none",
    "truth of fields": lambda t: lambda k, u: bool(t.orders.by_user[k].fields(lambda o: o.text)),
    "sum": lambda t: lambda k, u: t.orders.by_user[k].fields(lambda o: o.total).sum(),
    "mean": lambda t: lambda k, u: t.orders.by_user[k].fields(lambda o: o.total).mean(),
    "least": lambda t: lambda k, u: t.orders.by_user[k].fields(lambda o: o.total).min(),
    "greatest": lambda t: lambda k, u: t.orders.by_user[k].limit(3).fields(lambda o: o.text).max(),
    "length": lambda t: lambda k, u: len(t.orders.by_user[k].limit(3).values().all()) > 2,
    "any of the first": lambda t: lambda k, u: any(o.total > 4 for o in t.orders.by_user[k].limit(2).values()),
    "any of all": lambda t: lambda k, u: any(o.total > 4 + u.age for o in t.orders.by_user[k].values()),
    "elements": lambda t: lambda k, u: t.orders.by_item[k].fields(lambda o: (o.items, o.note)).all(),
    "the first of elements": lambda t: lambda k, u: t.orders.by_item[k].limit(1).fields(lambda j, o: j).all(),
    "texts": lambda t: lambda k, u: t.orders.by_text[u.name].limit(2).fields(lambda o: o.total).all(),
    "pair": lambda t: lambda k, u: t.orders.by_pair[k, u.name].fields(lambda o: o.total).all(),
    "uuids": lambda t: lambda k, u: t.orders.by_key[UUID(int=9)].fields(lambda o: o.total).all(),
    "partial": lambda t: lambda k, u: t.orders.by_big[k].fields(lambda o: o.total).all(),
    "carried": lambda t: lambda k, u: t.orders.by_carried[k].fields(lambda o: o.total).all(),
    "texts as keys": lambda t: lambda k, u: t.spelled.by_user[k].fields(lambda j, o: (j, o.total)).all(),
    "first of texts as keys": lambda t: lambda k, u: t.spelled.by_text[u.name].first(),
    "uuids as keys": lambda t: lambda k, u: t.identified.by_user[k].limit(2).fields(lambda j, o: (j, o.note)).all(),
    "link within": lambda t: (
        lambda k, u: t.orders.by_user[k].fields(lambda o: (o.text, t.users[o.user].name, t.users[o.user])).all()
    ),
    "within within": lambda t: (
        lambda k, u: (
            t.orders.by_user[k]
            .limit(3)
            .fields(
                lambda j, o: (
                    j,
                    t.spelled.by_user[o.user].limit(2).fields(lambda i, s: (i, s.text, j, o.total, u)).all(),
                )
            )
            .all()
        )
    ),
    "one beside another": lambda t: (
        lambda k, u: (
            t.orders.by_user[k].limit(1).fields(lambda o: (o.total, u.age)).all(),
            t.orders.by_user[k].limit(2).fields(lambda o: (o.text, k)).all(),
            t.orders.by_user[u.age].limit(1).fields(lambda o: o.total).all(),
        )
    ),
    "optional": lambda t: (
        lambda k, u: t.orders.by_user[k].fields(lambda o: o.note.upper() if o.note is not None else u.town).all()
    ),
    "optional outer": lambda t: (
        lambda k, u: [] if u.town is None else t.orders.by_user[k].fields(lambda o: (u.town, o.total)).all()
    ),
    "or": lambda t: lambda k, u: t.orders.by_user[k].fields(lambda o: o.total > 4 or o.note is None or k > 3).all(),
    "a captured number": lambda t: (n := 2) and (lambda k, u: t.orders.by_user[k].limit(n).fields(lambda o: n).all()),
    "a helper": lambda t: lambda k, u: t.orders.by_user[k].fields(helper).all(),
    "made by a helper": lambda t: lambda k, u: of_user(t, k),
    "of another record": lambda t: (
        lambda k, u: t.orders.by_user[t.users[k].age].limit(2).fields(lambda o: o.total).all()
    ),
    "elements of a list": lambda t: (
        lambda k, u: any(t.orders.by_item[i].limit(1).fields(lambda o: o.total > i).first() for i in (1, 2))  # noqa: B023
    ),
    "called": lambda t: lambda k, u: t.orders.by_user[k].group_by(lambda o: o.text, lambda g: g.count()),
    "listed": lambda t: lambda k, u: list(t.orders.by_user[k].limit(2).keys()),
    "loop": lambda t: lambda k, u: [o.total for o in t.orders.by_user[k].values()],
}
CALLED = {"called", "listed", "loop"}

CHOSEN: dict[str, Make] = {
    "those that fit": lambda t: (
        lambda k, u: t.orders.by_user[k].where(lambda o: o.total > 3).fields(lambda o: o.text).all()
    ),
    "pairs that fit": lambda t: lambda k, u: t.orders.by_user[k].where(lambda j, o: o.total > 3 and j % 2 == 0).all(),
    "keys that fit": lambda t: lambda k, u: t.orders.by_user[k].where(lambda o: o.note is not None).keys().all(),
    "count of those that fit": lambda t: lambda k, u: t.orders.by_user[k].where(lambda o: o.total > u.age).count(),
    "the first that fit": lambda t: (
        lambda k, u: t.orders.by_user[k].where(lambda o: o.total > 2).limit(2, 1).keys().all()
    ),
    "the first that fits": lambda t: lambda k, u: t.orders.by_user[k].where(lambda o: o.total > 2).first(),
    "truth of those that fit": lambda t: lambda k, u: 1 if t.orders.by_user[k].where(lambda o: o.total > 7) else 0,
    "fit both": lambda t: (
        lambda k, u: (
            t.orders.by_user[k].where(lambda o: o.total > 2).where(lambda j, o: j > k).fields(lambda o: o.total).sum()
        )
    ),
    "any of those that fit": lambda t: (
        lambda k, u: any(o.note is None for o in t.orders.by_user[k].where(lambda o: o.total > 6).values())
    ),
    "sorted": lambda t: lambda k, u: t.orders.by_user[k].order_by(lambda o: o.total).fields(lambda o: o.total).all(),
    "sorted the other way": lambda t: (
        lambda k, u: t.orders.by_user[k].order_by(lambda o: len(o.items), reverse=True).keys().all()
    ),
    "sorted by parts": lambda t: (
        lambda k, u: t.orders.by_user[k].order_by(lambda j, o: (zlmdb.desc(len(o.items)), j)).all()
    ),
    "the best": lambda t: lambda k, u: t.orders.by_user[k].order_by(lambda o: o.total).values().last(),
    "the least": lambda t: lambda k, u: t.orders.by_user[k].order_by(lambda o: (len(o.items), o.total)).first(),
    "the best two": lambda t: (
        lambda k, u: t.orders.by_user[k].order_by(lambda o: len(o.items), reverse=True).limit(2, 1).keys().all()
    ),
    "the last of the best": lambda t: (
        lambda k, u: t.orders.by_user[k].order_by(lambda o: len(o.items)).limit(3).fields(lambda j, o: (j, u)).last()
    ),
    "count of sorted": lambda t: lambda k, u: t.orders.by_user[k].order_by(lambda o: o.note).count(),
    "fit and sorted": lambda t: (
        lambda k, u: (
            t.orders.by_user[k]
            .where(lambda o: o.total > u.age)
            .order_by(lambda j, o: (o.note or "", -j))
            .fields(lambda o: (o.note, k))
            .all()
        )
    ),
    "fit by a link": lambda t: (
        lambda k, u: t.orders.by_user[k].where(lambda o: t.users[o.user].age > 3).fields(lambda o: o.total).all()
    ),
    "fit by what is within": lambda t: (
        lambda k, u: (
            t.orders.by_user[k]
            .where(lambda j, o: t.spelled.by_user[o.user].where(lambda s: s.total > o.total + j / 30).count() > u.age)
            .keys()
            .all()
        )
    ),
    "last": lambda t: lambda k, u: t.orders.by_user[k].last(),
    "last value": lambda t: lambda k, u: t.orders.by_user[k].values().last(),
    "last of the first": lambda t: lambda k, u: t.orders.by_user[k].limit(3).fields(lambda o: o.total).last(),
    "last that fits": lambda t: lambda k, u: t.orders.by_user[k].where(lambda o: o.total > 3).keys().last(),
}


def helper(order: Any) -> Any:
    return order.text + "!" if order.total > 2 else order.note


def of_user(t: Any, key: int) -> Any:
    wanted = t.orders.by_user[key].limit(2)
    return wanted.fields(lambda o: o.text).all()


def expected(t: Any, function: Callable[..., Any], name: str = "users") -> list[Any]:
    both = function.__code__.co_argcount == 2
    return [function(k, u) if both else function(u) for k, u in t[name].items()]


@pytest.mark.parametrize("name", ASKED)
def test_rows_are_those_of_the_called_function(db: Any, name: str) -> None:
    with db.read() as t:
        function = ASKED[name](t)
        rows = expected(t, function)
        for _ in range(3):
            assert t.users.fields(function).all() == list(t.users.fields(function)) == rows
        assert t.users.fields(function).first() == rows[0]
        assert t.users.limit(3, 1).fields(function).all() == rows[1:4]
        named = "n4"
        found = t.users.where(lambda u: u.name == named).fields(function)
        assert [found.all(), found.all()] == [rows[4:5], rows[4:5]]
        assert (t.users.fields(function).explain().called == ()) is (name not in CALLED)
    with db.write() as t:
        assert t.users.fields(ASKED[name](t)).all() == rows


@pytest.mark.parametrize("name", set(ASKED) - CALLED - {"none", "truth", "any of all"})
def test_no_selection_is_made_for_a_record(db: Any, name: str, fast: list[bool], no_general: None) -> None:
    with db.read() as t:
        function = ASKED[name](t)
        rows = expected(t, function)
        t.users.fields(function).first()  # the first records are compared with what the function gives
        fast.clear()
        assert t.users.fields(function).all() == rows
        assert fast
        assert all(fast)


@pytest.mark.twice
@pytest.mark.parametrize("codec", [Msgpack, FlatBuffers])
def test_conditions_orders_and_the_last_one_are_those_of_the_called_function(
    codec: Any, fast: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    with zlmdb.open(None, tables(codec)) as db:
        with db.write() as t:
            fill(t)
        for name, make in CHOSEN.items():
            with db.write() as t:
                rows = expected(t, make(t))
                assert t.users.fields(make(t)).all() == rows, name
            with db.read() as t:
                function = make(t)
                assert t.users.fields(function).explain().called == (), name
                assert list(t.users.fields(function)) == t.users.fields(function).all() == rows, name
                fast.clear()
                with monkeypatch.context() as patch:
                    patch.setattr(nestedrows._Question, "__call__", refuse)
                    assert t.users.fields(function).all() == rows, name
                    assert t.users.limit(3, 1).fields(function).all() == rows[1:4], name
                assert fast, name
                assert all(fast), name


def test_a_condition_or_an_order_after_a_limit_is_refused_as_python_would(db: Any) -> None:
    with db.read() as t:
        for function in (
            lambda k, u: t.orders.by_user[k].limit(2).where(lambda o: o.total > 3).all() if k > 4 else None,
            lambda k, u: t.orders.by_user[k].limit(2).order_by(lambda o: o.total).all() if k > 4 else None,
        ):
            assert t.users.where(lambda k, u: k <= 4).fields(function).all() == [None] * 5
            with pytest.raises(TypeError, match="before limit"):
                t.users.fields(function).all()


def test_the_records_are_those_of_the_captured_index_and_limit(db: Any, fast: list[bool]) -> None:
    with zlmdb.open(None, tables(Msgpack)) as other:
        with other.write() as t:
            fill(t, 25)
        with db.read() as mine, other.read() as theirs:
            for turn in range(8):
                for t, most in ((mine, 1), (theirs, 2), (mine, turn + 1)):
                    by_user = t.orders.by_user
                    limited = mine.users.fields(lambda k, u: by_user[k].limit(most).keys().all())  # noqa: B023
                    assert limited.all() == [by_user[k].limit(most).keys().all() for k in mine.users]
                    fixed = mine.users.fields(lambda k, u: t.orders.by_user[k].limit(2).keys().all())  # noqa: B023
                    assert fixed.all() == [by_user[k].limit(2).keys().all() for k in mine.users]
    assert fast.count(True) > 8


def test_a_write_transaction_reads_directly_only_what_is_taken_at_once(db: Any, fast: list[bool]) -> None:
    def ask(t: Any) -> Any:
        return t.users.fields(lambda k, u: t.orders.by_user[k].limit(2).keys().all())

    for _ in range(3):
        with db.read() as t:
            rows = ask(t).all()
    assert fast.pop()
    fast.clear()
    with suppress(Undone), db.write() as t:
        for key in list(t.orders.by_user[3].keys()):
            t.orders[key] = Order(4, UUID(int=0), "moved")
        for user in (4, 3, 5):
            assert ask(t).all() == [t.orders.by_user[k].limit(2).keys().all() for k in t.users] != rows
            assert (True in fast) is COUNTS_REFERENCES  # else the cursor would be open when something is written
            fast.clear()
            for row, key in zip(ask(t), t.users):
                assert row == t.orders.by_user[key].limit(2).keys().all()
                t.orders[next(iter(t.orders))] = Order(user, UUID(int=0), "moved again")
            assert True not in fast
        raise Undone


def test_conditions_and_orders_may_ask_for_the_records_that_refer(db: Any) -> None:
    with db.read() as t:
        users = t.users.items()
        some = t.users.where(lambda k, u: len(t.orders.by_user[k].limit(3).keys().all()) == 3)
        assert some.keys().all() == [k for k, u in users if len(t.orders.by_user[k].limit(3).keys().all()) == 3]
        best = t.users.where(lambda k, u: (t.orders.by_user[k].fields(lambda o: o.total).max() or 0) > 5)
        assert best.count() == sum((t.orders.by_user[k].fields(lambda o: o.total).max() or 0) > 5 for k, u in users)
        few = t.users.order_by(lambda k, u: (t.orders.by_user[k].fields(lambda o: o.total).sum(), k)).keys().all()
        assert few == sorted(t.users, key=lambda k: (t.orders.by_user[k].fields(lambda o: o.total).sum(), k))
        linked = t.orders.where(lambda o: t.users.by_town["t1"].limit(1).fields(lambda u: u.age).first() == o.user)
        age = t.users.by_town["t1"].values().first().age
        assert linked.keys().all() == [k for k, o in t.orders.items() if o.user == age]
        deep = t.orders.where(
            lambda o: len(t.users.by_town["t1"].fields(lambda u: t.users[u.age].name).all()) > 1 and o.user == 3
        )
        assert deep.keys().all() == [k for k, o in t.orders.items() if o.user == 3]
        dear = t.users.where(
            lambda k, u: u.age > 2 and t.orders.by_user[k].where(lambda o: o.total > u.age).count() > 1
        )
        assert dear.explain().called == ()
        counts = {k: sum(o.total > u.age for o in t.orders.by_user[k].values()) for k, u in users if u.age > 2}
        assert dear.keys().all() == [k for k, number in counts.items() if number > 1]
        groups = t.users.group_by(lambda k, u: t.orders.by_user[k].limit(4).count(), lambda g: g.count())
        assert sum(groups.values()) == 12


def test_each_row_has_its_own_objects(db: Any) -> None:
    with db.read() as t:
        for function in (
            lambda k, u: t.orders.by_user[3].values().all(),
            lambda k, u: t.orders.by_user[3].limit(1).values().all(),
            lambda k, u: t.orders.by_user[3].fields(lambda o: t.users[o.user]).all(),
        ):
            rows = t.users.fields(function).all()
            assert len(rows[0]) > 0
            assert len({id(one) for row in rows for one in row}) == sum(map(len, rows))


def test_what_the_function_raises_is_raised(db: Any) -> None:
    for how in ("read", "write"):
        with getattr(db, how)() as t:
            for function, error in (
                (lambda k, u: t.orders.by_user[k].fields(lambda o: 1 // (k - 5)).all(), ZeroDivisionError),
                (lambda k, u: t.orders.by_user[k].fields(lambda o: t.users[o.user + 90].name).all(), KeyError),
                (lambda k, u: t.orders.by_user[f"{k}"].fields(lambda o: o.total).all(), zlmdb.EncodeError),
                (lambda k, u: t.orders.by_user[2**80].limit(1).fields(lambda o: o.total).all(), zlmdb.EncodeError),
                (lambda k, u: t.orders.by_user[k].limit(-1).fields(lambda o: o.total).all(), ValueError),
                (lambda k, u: t.orders.by_user[k].limit(1, -1).keys().all(), ValueError),
                (lambda k, u: t.orders.by_user[k].fields(lambda o: o.note).min(), TypeError),
                (lambda k, u: t.orders.by_user[k].fields(lambda o: o.text).sum(), TypeError),
                (lambda k, u: t.orders.by_user[k].where(lambda o: 1 // (k - 5) > 0).count(), ZeroDivisionError),
                (lambda k, u: t.orders.by_user[k].order_by(lambda o: o.note).first(), TypeError),
                (lambda k, u: t.orders.by_user[k].order_by(lambda o: o.total * math.nan).all(), ValueError),
            ):
                with pytest.raises(error):
                    expected(t, function)
                with pytest.raises(error):
                    t.users.fields(function).all()
            good = t.users.where(lambda k, u: k < 5).fields(
                lambda k, u: t.orders.by_user[k].fields(lambda o: 1 // (k - 5)).all()
            )
            assert len(good.all()) == 5


def test_mistakes_in_the_inner_function_are_told_when_the_query_is_made(db: Any) -> None:
    with db.read() as t:
        with pytest.raises(TypeError, match="Order has no field 'totl'"):
            t.users.fields(lambda k, u: t.orders.by_user[k].fields(lambda o: o.totl).all())
        with pytest.raises(TypeError, match="Order has no field 'totl'"):
            t.users.where(lambda k, u: t.orders.by_user[k].where(lambda o: o.totl > 3).count() > 2)
        with pytest.raises(TypeError, match="Order has no field 'totl'"):
            t.users.fields(lambda k, u: t.orders.by_user[k].order_by(lambda o: o.totl).last())
        with pytest.raises(TypeError, match="a query changes nothing"):
            t.users.fields(lambda k, u: t.orders.by_user[k].fields(lambda o: o.items.append(1)).all())


def test_what_is_made_of_the_rows_afterwards_is_called(db: Any) -> None:
    def changed(t: Any) -> Callable[..., Any]:
        def function(k: int, u: User) -> Any:
            rows = t.orders.by_user[k].limit(2).fields(lambda o: o.total).all()
            rows.append(u.age)
            return rows

        return function

    def unused(t: Any) -> Callable[..., Any]:
        return lambda k, u: (t.orders.by_user[k + "x"].limit(1), k)[1]

    def unused_within(t: Any) -> Callable[..., Any]:
        return lambda k, u: t.orders.by_user[k].fields(lambda o: (1 // (k - 3), o.total)[1]).all()

    def counted(t: Any) -> Callable[..., Any]:
        def function(k: int, u: User) -> Any:
            number = 0

            def give(order: Order) -> int:
                nonlocal number
                number += 1
                return number

            return t.orders.by_user[k].fields(give).all()

        return function

    with db.read() as t:
        for make in (changed, counted):
            function = make(t)
            assert t.users.fields(function).explain().called != ()
            assert t.users.fields(function).all() == expected(t, function)
        for make, error in ((unused, TypeError), (unused_within, ZeroDivisionError)):
            with pytest.raises(error):
                expected(t, make(t))
            with pytest.raises(error):
                t.users.fields(make(t)).all()


def test_explain_says_what_is_read_for_each_record(db: Any) -> None:
    with db.read() as t:
        plan = t.users.fields(
            lambda k, u: (u.name, t.orders.by_user[k].limit(2).fields(lambda o: (o.total, t.users[o.user].age)).all())
        ).explain()
        assert str(plan) == (
            "read   all records of users\n"
            "give   (u.name, t.orders.by_user[k].limit(2).fields(lambda x0: (x0.total, t.users[x0.user].age)).all())\n"
            "link   t.users: each record is looked up once\n"
            "link   t.orders.by_user: the records of a key are read for each record"
        )
        plan = t.users.fields(lambda k, u: (t.orders.by_user[k].count(), bool(t.orders.by_item[k].limit(1)))).explain()
        assert plan.links == (
            "t.orders.by_item: the records of a key are read for each record",
            "t.orders.by_user: asked for each record",
        )


def test_what_is_written_in_between_counts() -> None:
    def ask(t: Any) -> Any:
        return t.users.fields(lambda k, u: t.orders.by_user[k].limit(2).fields(lambda j, o: (j, o.text)).all()).all()

    with zlmdb.open(None, tables(None)) as db:
        with db.write() as t:
            fill(t)
        with db.read() as old:
            before = ask(old)
            with db.write() as t:
                assert ask(t) == before
                for key in list(t.orders.by_user[3].keys())[:2]:
                    del t.orders[key]
                t.orders[100] = Order(10, UUID(int=1), "new")
                after = ask(t)
                assert after[10] == [(100, "new")]
                assert after != before
            assert ask(old) == before
            with db.read() as t:
                assert ask(t) == after
                mixed = t.users.fields(lambda k, u: old.orders.by_user[k].keys().all()).all()
                assert mixed == [old.orders.by_user[k].keys().all() for k in t.users]


def test_rows_of_a_loop_that_writes_are_as_they_are_then() -> None:
    with zlmdb.open(None, tables(None)) as db, db.write() as t:
        fill(t)
        seen = []
        for key, rows in t.users.fields(lambda k, u: (k, t.orders.by_user[k].keys().all())):
            assert rows == t.orders.by_user[key].keys().all()
            seen.append(rows)
            t.orders[1000 + key] = Order(min(key + 1, 11), UUID(int=1), "new")
        assert [rows[-1] for rows in seen[1:]] == [1000 + key for key in range(11)]


def test_a_transaction_that_has_ended_is_not_read_any_more() -> None:
    with zlmdb.open(None, tables(None)) as db:
        with db.write() as t:
            fill(t)
        with db.read() as t:
            with db.read() as other:
                rows = iter(t.users.fields(lambda k, u: other.orders.by_user[k].limit(1).keys().all()))
                next(rows)
            with pytest.raises(zlmdb.TransactionClosed):
                list(rows)


@pytest.mark.parametrize(
    ("layout", "stored"), [pytest.param("classic", True, marks=pytest.mark.once), ("classic", False), ("tables", True)]
)
def test_every_layout_and_engine_gives_the_same(tmp_path: Path, layout: Any, stored: bool) -> None:
    with zlmdb.open(tmp_path / "db" if stored else None, tables(None), layout=layout, durability="none") as db:
        with db.write() as t:
            fill(t)
        for name in ASKED:
            with db.read() as t:
                rows = expected(t, ASKED[name](t))
                assert t.users.fields(ASKED[name](t)).all() == t.users.fields(ASKED[name](t)).all() == rows, name


Told = tuple[Any, Callable[[int], Any]]
KEYS: dict[str, Told] = {
    "int": (int, lambda n: n * 7 - 20),
    "uuid": (UUID, lambda n: UUID(int=n << 100 | n)),
    "text": (str, lambda n: "ab\0" * n + "c"),
    "bytes": (bytes, lambda n: b"\xff\0" * n + b"c"),
    "time": (datetime, lambda n: datetime(2026, 1, 1, 0, 0, n, tzinfo=timezone.utc)),
    "pair": (tuple[int, str], lambda n: (n, "a" * n)),
    "pair of numbers": (tuple[int, int], lambda n: (n, -n)),
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("layout", ["classic", "tables"])
def test_the_key_of_the_outer_record_may_be_of_any_kind(kind: str, layout: Any, fast: list[bool]) -> None:
    annotation, make = KEYS[kind]
    holder: Any = dataclass(type("Holder", (), {"__annotations__": {"name": str, "of": annotation}}))

    class Outer(Table[annotation, User]):  # type: ignore[valid-type]
        """Users by keys of some kind."""

    class Inner(Table[int, holder]):  # type: ignore[valid-type]
        by_of = Index[annotation]("of")  # type: ignore[valid-type]

    class Both(zlmdb.Schema):
        outer: Outer
        inner: Inner

    with zlmdb.open(None, Both, layout=layout) as db:
        with db.write() as t:
            t.outer.update({make(n): User(f"n{n}", n) for n in range(9)})
            t.inner.update({n: holder(f"i{n}", make(n % 7)) for n in range(30)})
        with db.read() as t:
            for function in (
                lambda k, u: t.inner.by_of[k].fields(lambda o: (o.name, k, u.age)).all(),
                lambda k, u: t.inner.by_of[k].limit(1).keys().all(),
                lambda k, u: t.inner.by_of[k].limit(2).fields(
                    lambda j, o: (j, t.inner.by_of[o.of].limit(2).keys().all(), k)
                ).all(),
            ):  # fmt: skip
                rows = expected(t, function, "outer")
                for _ in range(3):
                    assert t.outer.fields(function).all() == list(t.outer.fields(function)) == rows
                name = "n3"
                for _ in range(2):
                    assert t.outer.where(lambda u: u.name == name).fields(function).all() == [  # noqa: B023
                        row for row, one in zip(rows, t.outer.values()) if one.name == "n3"
                    ]
            assert all(fast)


def test_records_may_be_memoryviews(db: Any) -> None:
    with db.begin(buffers=True) as txn, db.read() as t:
        users, orders = (db._storages[name][0]._bound(txn, db._storages[name][1]) for name in ("users", "orders"))
        for inner, called in ((orders, True), (t.orders, False)):
            for function in (
                lambda k, u: inner.by_user[k].fields(lambda o: (o.text, o.total)).all(),  # noqa: B023
                lambda k, u: inner.by_user[k].limit(1).fields(lambda o: o.items).all(),  # noqa: B023
                lambda k, u: (u.name, inner.by_item[k].keys().all()),  # noqa: B023
                lambda k, u: inner.by_text[u.name].limit(2).count(),  # noqa: B023
            ):
                assert bool(users.fields(function).explain().called) is called
                rows = [function(k, u) for k, u in users.items()]
                assert users.fields(function).all() == users.fields(function).all() == rows


def test_what_was_misread_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nested, "asked", lambda *arguments: ["wrong"])
    with zlmdb.open(None, tables(None)) as db:
        with db.write() as t:
            fill(t)
        with db.read() as t:
            function = lambda k, u: t.orders.by_user[k].fields(lambda o: o.total).all()  # noqa: E731
            assert t.users.fields(function).explain().called == ()
            for _ in range(3):
                assert t.users.fields(function).all() == expected(t, function)
            assert "another answer than the function" in str(t.users.fields(function).explain())


def expression(chance: random.Random, depth: int, names: tuple[str, ...], *, order: bool) -> str:
    """A random expression of what is in reach: of a user, or of an *order*."""
    key, value = names[-2:]
    number, text = f"{value}.{'total' if order else 'age'}", f"{value}.{'text' if order else 'name'}"
    maybe = f"{value}.{'note' if order else 'town'}"
    plain = [key, number, text, maybe, f"({key}, {value})", "w + 1", *names]
    if order:
        plain += [f"t.users[{value}.user].name", f"({maybe} is not None and {maybe} > 'e3')", f"{value}.items[0]"]
    kind = chance.choice(["plain", "tuple", "if", *["nested"] * 3]) if depth > 0 else "plain"
    if kind == "plain":
        return chance.choice(plain)
    if kind == "tuple":
        parts = [expression(chance, depth - 1, names, order=order) for _ in range(chance.randint(1, 3))]
        return f"({', '.join(parts)},)"
    if kind == "if":
        one, two = (expression(chance, depth - 1, names, order=order) for _ in range(2))
        return f"({one} if {chance.choice([f'{number} > w', f'{maybe} is None'])} else {two})"
    return question(chance, depth, names, order=order)


def question(chance: random.Random, depth: int, names: tuple[str, ...], *, order: bool) -> str:
    """A random question to an index."""
    key, value = names[-2:]
    number, text = f"{value}.user" if order else key, f"{value}.{'text' if order else 'name'}"
    index = chance.choice([
        f"t.orders.by_user[{number}]", f"t.orders.by_item[{number}]", f"t.spelled.by_user[{number}]",
        f"t.orders.by_text[{text}]", f"t.orders.by_big[{number}]", f"t.orders.by_parent[{number}]",
        f"t.orders.by_pair[{number}, {text}]", "t.identified.by_user[w]",
    ])  # fmt: skip
    limit = chance.choice(["", ".limit(1)", ".limit(2)", ".limit(w)", ".limit(2, 1)", ".limit(w, skip=w)"])
    one, two = f"k{len(names)}", f"v{len(names)}"
    inner = expression(chance, depth - 1, (*names, one, two), order=True)
    arguments = f"{one}, {two}" if one in inner else two
    give = chance.choice([*[f".fields(lambda {arguments}: {inner})"] * 4, "", ".values()", ".keys()"])
    some = sorted_by = ""
    if chance.random() < 0.4:
        asked = expression(chance, 0, (*names, one, two), order=True)
        some = f".where(lambda {one}, {two}: {two}.total > w or {asked})"
    if chance.random() < 0.4:
        key = chance.choice([f"{two}.total", f"len({two}.items)", f"({two}.note or '', {one})", f"{two}.note"])
        sorted_by = f".order_by(lambda {one}, {two}: {key}{chance.choice([', reverse=True', ''])})"
    how = chance.choice([*[".all()"] * 4, ".first()", ".count()", ".last()"])
    return f"{index}{some}{sorted_by}{limit}{give}{how}"


@given(seed=st.integers(0, 2**32))
def test_random_functions_give_what_calling_them_gives(db: Any, seed: int) -> None:
    chance = random.Random(seed)
    one = question(chance, 2, ("k", "u"), order=False)
    source = f"lambda k, u: ({one}, {expression(chance, 1, ('k', 'u'), order=False)})"
    with getattr(db, chance.choice(["read", "read", "write"]))() as t:
        function = eval(source, {"t": t, "w": seed % 4})
        answers: list[Any] = []
        for ask in (lambda: expected(t, function), *[lambda: t.users.fields(function).all()] * 2):
            try:
                answers.append(ask())
            except Exception as error:
                answers.append(type(error))
        skips = "skip=" in source or "(2, 1)" in source
        if isinstance(answers[0], list) or not skips:  # of records that are passed over, nothing is asked here
            assert answers[0] == answers[1] == answers[2], source
        if isinstance(answers[0], list):
            assert list(t.users.fields(function)) == answers[0], source
            assert t.users.limit(2, 3).fields(function).all() == answers[0][3:5], source


@dataclass
class Visit:
    user: int
    until: datetime


class Visits(Table[int, Visit], expires="until"):
    by_user = Index[int]("user")


class Visited(zlmdb.Schema):
    users: Table[int, User]
    visits: Visits


def test_expired_records_are_not_given() -> None:
    now = datetime.now(timezone.utc)
    with zlmdb.open(None, Visited) as db:
        with db.write() as t:
            t.users.update({n: User(f"n{n}", n) for n in range(9)})
            t.visits.update({n: Visit(n % 9, now + timedelta(days=1)) for n in range(30)})
            t.visits.update({100 + n: Visit(n % 9, now - timedelta(days=1)) for n in range(30)})
        for how in ("read", "write"):
            with getattr(db, how)() as t:
                rows = t.users.fields(lambda k, u: t.visits.by_user[k].fields(lambda j, v: j).all())  # noqa: B023
                for _ in range(2):
                    assert rows.all() == [[j for j in range(30) if j % 9 == k] for k in range(9)]
