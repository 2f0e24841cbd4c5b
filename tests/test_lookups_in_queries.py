"""Look-ups that give None for a missing key, ``t.users.get(key)``: they use indexes as ``t.users[key]`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

import pytest

import zlmdb


@dataclass
class User:
    city: str
    age: int
    friend: Optional[int] = None


@dataclass
class Order:
    user: int
    helpers: list[int] = field(default_factory=list)
    seller: Optional[int] = None


class Users(zlmdb.Table[int, User]):
    by_city = zlmdb.Index[str]("city")
    by_friend = zlmdb.Index[int]("friend")


class Orders(zlmdb.Table[int, Order]):
    by_user = zlmdb.Index[int]("user")
    by_seller = zlmdb.Index[int]("seller")
    by_helper = zlmdb.Index[int]("helpers", each=True)


class Shop(zlmdb.Schema):
    users: Users
    orders: Orders
    maybe: zlmdb.Table[int, Optional[User]]


@pytest.fixture
def shop() -> Iterator[Any]:
    with zlmdb.open(None, Shop) as db:
        with db.write() as t:
            for n in range(400):
                t.users[n] = User("Rome" if n % 100 == 0 else f"city {n % 50}", n % 90, n + 1 if n % 3 else None)
            for n in range(1000):  # a tenth of them lead to no user
                t.orders[n] = Order(n % 440, [n % 440, n % 7 + 395], None if n % 2 else n % 430)
        yield db


def _written_out(t: Any) -> Callable[[Order], bool]:
    def function(o: Order) -> bool:
        user = t.users.get(o.user)
        return user is not None and user.city == "Rome"

    return function


def _returned_early(t: Any) -> Callable[[Order], bool]:
    def function(o: Order) -> bool:
        user = t.users.get(o.user, None)
        if user is None:
            return False
        return user.city == "Rome" and user.age > 5

    return function


def _by_truth(t: Any) -> Callable[[Order], Any]:
    def function(o: Order) -> Any:
        user = t.users.get(o.user)
        return user.city == "Rome" if user else False

    return function


def _chained(t: Any) -> Callable[[Order], bool]:
    def function(o: Order) -> bool:
        user = t.users.get(o.user)
        if user is None or user.friend is None:
            return False
        friend = t.users.get(user.friend)
        return friend is not None and friend.city == "Rome"

    return function


FORMS: dict[str, tuple[str, Callable[[Any], Callable[[Order], Any]]]] = {
    "in one line": ("by_user", lambda t: lambda o: (x := t.users.get(o.user)) is not None and x.city == "Rome"),
    "twice": ("by_user", lambda t: lambda o: t.users.get(o.user) is not None and t.users.get(o.user).city == "Rome"),
    "by truth": ("by_user", lambda t: lambda o: (x := t.users.get(o.user)) and x.city == "Rome"),
    "denied": ("by_user", lambda t: lambda o: not ((x := t.users.get(o.user)) is None or x.city != "Rome")),
    "of a field": (
        "by_seller",
        lambda t: lambda o: o.seller is not None and (x := t.users.get(o.seller)) is not None and x.city == "Rome",
    ),
    "of an element": (
        "by_helper",
        lambda t: lambda o: any(t.users.get(a) is not None and t.users.get(a).city == "Rome" for a in o.helpers),
    ),
    "written out": ("by_user", _written_out),
    "returned early": ("by_user", _returned_early),
    "a choice": ("by_user", _by_truth),
    "of a linked record": ("by_user", _chained),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_lookup_that_found_a_record_is_a_link(shop: Any, name: str) -> None:
    index, form = FORMS[name]
    for begin in (shop.read, shop.write):
        with begin() as t:
            function = form(t)
            query = t.orders.where(function)
            rows = [(key, order) for key, order in t.orders.items() if function(order)]
            assert rows
            assert query.all() == query.all() == list(query) == rows
            assert query.count() == len(rows)
    with shop.read() as t:
        plan = t.orders.where(form(t)).explain()
        assert plan.indexes == (index,), plan
        assert plan.called == ()


ALSO: dict[str, Callable[[Any], Callable[[Order], Any]]] = {
    "missing or": lambda t: lambda o: (x := t.users.get(o.user)) is None or x.city == "Rome",
    "missing": lambda t: lambda o: t.users.get(o.user) is None,
    "there": lambda t: lambda o: t.users.get(o.user) is not None,
    "not only there": lambda t: lambda o: (x := t.users.get(o.user)) is None or (x.age > 80 and o.seller is None),
    "None is a value": lambda t: lambda o: (x := t.maybe.get(o.user)) is not None and x.city == "Rome",
    "no value is None": lambda t: lambda o: t.maybe.get(o.user) is None,
}


@pytest.mark.parametrize("name", ALSO)
def test_other_lookups_give_the_same(shop: Any, name: str) -> None:
    with shop.write() as t:
        for key in range(300):
            t.maybe[key] = None if key % 2 else User("Rome", 7)
    for begin in (shop.read, shop.write):
        with begin() as t:
            function = ALSO[name](t)
            rows = [key for key, order in t.orders.items() if function(order)]
            assert rows
            assert t.orders.where(function).keys().all() == list(t.orders.where(function).keys()) == rows


def test_where_the_other_table_is_read_once_nothing_is_looked_up(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    contains = zlmdb.Table.__contains__

    def noting(table: Any, key: Any) -> bool:
        asked.append(key)
        return contains(table, key)

    monkeypatch.setattr(zlmdb.Table, "__contains__", noting)
    with shop.read() as t:
        users = dict(t.users.items())
        query = t.orders.where(lambda o: (x := t.users.get(o.user)) is not None and x.age % 7 == 2)
        rows = [key for key, o in t.orders.items() if o.user in users and users[o.user].age % 7 == 2]
        assert query.explain().scanned == ("users",)
        del asked[:]
        assert query.keys().all() == rows
        assert query.count() == len(rows) > 0
        assert not asked
        both = t.orders.where(lambda o: o.user in t.users and t.users[o.user].age % 7 == 2 and o.seller is None)
        assert both.keys().all() == [key for key in rows if t.orders[key].seller is None]


def test_fields_of_a_record_that_may_be_missing(shop: Any) -> None:
    with shop.read() as t:
        query = t.orders.fields(lambda o: x.city if (x := t.users.get(o.user)) is not None else None)
        users = dict(t.users.items())
        assert query.all() == [users[o.user].city if o.user in users else None for o in t.orders.values()]
        assert "link   t.users: each record is looked up once" in str(query.explain())
        whole = t.orders.fields(lambda o: (o.user, t.users.get(o.user)))
        assert whole.all() == [(o.user, users.get(o.user)) for o in t.orders.values()]


def test_what_may_be_none_must_be_asked(shop: Any) -> None:
    with shop.read() as t, pytest.raises(TypeError, match=r"t\.users\.get\(o\.user\) may be None"):
        t.orders.where(lambda o: t.users.get(o.user).city == "Rome")
