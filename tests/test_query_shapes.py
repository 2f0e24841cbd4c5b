"""Queries in the many ways in which programs write them: the rows of plain Python, by the index that a person expects."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb import desc

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


class Status(enum.Enum):
    NEW = "new"
    PAID = "paid"
    SENT = "sent"


@dataclass
class User:
    name: str
    age: int
    country: str
    nick: Optional[str] = None
    tags: list[str] = field(default_factory=list)


@dataclass
class Order:
    user: int
    status: Status
    cents: int
    day: date
    coupon: Optional[str] = None


class Users(zlmdb.Table[int, User]):
    by_name = zlmdb.Index[str]("name")
    by_age = zlmdb.Index[int]("age")
    by_place = zlmdb.Index[tuple[str, int]]("country", "age")
    by_nick = zlmdb.Index[str]("nick")
    by_tag = zlmdb.Index[str]("tags", each=True)


class Orders(zlmdb.Table[int, Order]):
    by_user = zlmdb.ForeignKey[Users]("user")
    by_status = zlmdb.Index[tuple[Status, int]]("status", "cents")
    by_day = zlmdb.Index[date]("day")


class Shop(zlmdb.Schema):
    users: Users
    orders: Orders


COUNT = 400


def user(n: int) -> User:
    nick = f"nick{n}" if n % 40 == 7 else "" if n % 50 == 9 else None
    return User(f"{'ABCDE'[n % 5]}{n:03}", n % 90, ("NO", "SE", "DE")[n % 3], nick, [f"t{n % 60}", f"u{n % 70}"][: n % 3])


def order(n: int) -> Order:
    # Those of the first users all have a coupon: what is compared with the first records does not tell.
    coupon = "C7" if n % 100 < 12 else None
    return Order(n % 100, list(Status)[n % 20 % 3], n * 37 % 1000, date(2024, 1, 1) + timedelta(n % 300), coupon)


USERS = {n: user(n) for n in range(COUNT)}
ORDERS = {n: order(n) for n in range(COUNT)}


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with zlmdb.open(None, Shop) as db:
        with db.write() as t:
            t.users.update(USERS)
            t.orders.update(ORDERS)
        yield db


def ordered(key: int) -> list[Order]:
    return [one for one in ORDERS.values() if one.user == key]


# -- what refers, as a selection that the function does not read --------------------------------------------------------

Asked = Callable[[Any, int], Any]


@pytest.mark.parametrize(
    "asked",
    [
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7"),
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7").keys(),
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7").values(),
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7").fields(lambda o: o.cents),
        lambda t, k: t.orders.by_user[k].order_by(lambda o: o.cents).where(lambda o: o.coupon == "C7"),
        lambda t, k: k >= 0 and t.orders.by_user[k].where(lambda o: o.coupon == "C7"),
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7").limit(5) or k < 0,
        lambda t, k: t.orders.by_user[k].where(lambda o: o.coupon == "C7") if k > 3 else t.orders.by_user[k].limit(2),
        lambda t, k: k < 12 and t.orders.by_user[k].limit(1),
    ],
)
@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_selection_as_the_answer_of_a_condition_is_asked_with_its_conditions(db: Any, asked: Asked, mode: str) -> None:
    """The expression had lost them: records of the users whose first orders fit were found with all others."""
    with getattr(db, mode)() as t:
        found = t.users.where(lambda k, u: asked(t, k))
        assert found.keys().all() == list(range(12))
        assert found.explain().called == ()
        within = t.users.where(lambda k, u: bool(t.orders.by_user[k].where(lambda q, o: asked(t, o.user))))
        assert within.keys().all() == list(range(12))


def test_a_selection_that_a_function_gives_has_its_conditions_and_its_limit(db: Any) -> None:
    with db.read() as t:
        few = t.users.select(0, 40)
        given = few.fields(lambda k, u: (k, t.orders.by_user[k].where(lambda o: o.coupon == "C7")))
        assert [found.count() for _, found in given] == [4] * 12 + [0] * 28
        (reason,) = given.explain().called
        assert reason == "a selection of t.orders.by_user[k] that nothing reads: write .all(), .first() or .count()"
        assert [found.count() for found in few.fields(lambda k, u: t.orders.by_user[k].limit(3))] == [3] * 40
        fields = few.fields(lambda k, u: (k, t.orders.by_user[k].fields(lambda o: o.cents)))
        assert [found.all() for _, found in fields] == [[one.cents for one in ordered(k)] for k in range(40)]
        values = few.fields(lambda k, u: (k, t.orders.by_user[k].where(lambda o: o.coupon == "C7").values()))
        assert [found.count() for _, found in values] == [4] * 12 + [0] * 28
        first = few.fields(lambda k, u: t.orders.by_user[k].order_by(lambda o: desc(o.cents)))
        assert [found.values().first() for found in first] == [max(ordered(k), key=lambda o: o.cents) for k in range(40)]


def test_whether_there_are_keys_or_values_is_whether_there_are_records(db: Any) -> None:
    with db.read() as t:
        plain = t.users.where(lambda k, u: t.orders.by_user[k])
        for found in (
            t.users.where(lambda k, u: t.orders.by_user[k].keys()),
            t.users.where(lambda k, u: bool(t.orders.by_user[k].values())),
        ):
            assert found.keys().all() == plain.keys().all() == list(range(100))
            assert found.explain().scanned == plain.explain().scanned


# -- captured values ---------------------------------------------------------------------------------------------------


def test_attributes_of_a_namespace_are_captured_values(db: Any) -> None:
    with db.read() as t:
        for age in (20, 33):
            asked = types.SimpleNamespace(age=age, place="NO")
            found = t.users.where(lambda u, asked=asked: u.age == asked.age and u.country == asked.place)
            assert found.explain().indexes and not found.explain().called
            assert found.keys().all() == [k for k, u in USERS.items() if u.age == age and u.country == "NO"]
