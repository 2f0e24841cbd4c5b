"""Cached plans of conditions on linked records that no index finds: the same rows as a plain loop gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional
from uuid import UUID

import pytest

import zlmdb
from tests.answers import CODECS, LINKED, answers
from zlmdb import ForeignKey, Index, Table
from zlmdb.tables.executor.cachedlinkscans import CachedLinkScan

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class User:
    name: str
    age: int


@dataclass
class Order:
    user: int
    by: UUID
    to: str
    at: int
    half: Optional[int] = None


def schema(codec: Any) -> Any:
    order, user = (codec[model] if codec else model for model in (Order, User))

    class Users(Table[int, user]):  # type: ignore[valid-type]
        """Users by number."""

    class People(Table[UUID, user]):  # type: ignore[valid-type]
        """Users by UUID."""

    class Named(Table[str, user]):  # type: ignore[valid-type]
        """Users by name."""

    class Orders(Table[int, order]):  # type: ignore[valid-type]
        by_user = ForeignKey[Users]("user")
        by_by = Index[UUID]("by")
        by_to = Index[str]("to")
        by_half = Index[int]("half")

    class Shop(zlmdb.Schema):
        users: Users
        people: People
        named: Named
        orders: Orders

    return Shop


PEOPLE = 50


def person(n: int) -> UUID:
    return UUID(int=n * 7 % PEOPLE << 64 | n)


@pytest.fixture(params=LINKED)
def db(request: Any) -> Iterator[Any]:
    codec, layout = request.param
    with zlmdb.open(None, schema(CODECS[codec]), layout=layout) as db:
        with db.write() as t:
            for n in range(PEOPLE):
                t.users[n] = t.people[person(n)] = t.named[f"k{n}"] = User(f"n{n % 9}", n)
            for n in range(300):
                of = n * 11 % 40
                t.orders[n] = Order(of, person(of), f"k{of}", n * 3, of if n % 3 else None)
        yield db


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each cached plan that was asked gave the rows."""
    return answers(monkeypatch, CachedLinkScan, "all")


ASKED: dict[str, Any] = {
    "number": lambda t, name: lambda o: t.users[o.user].name == name,
    "uuid": lambda t, name: lambda o: t.people[o.by].name == name,
    "text": lambda t, name: lambda o: t.named[o.to].name == name,
    "most": lambda t, name: lambda o: t.people[o.by].name > name,
    "two": lambda t, name: lambda o: t.users[o.user].name == name and t.users[o.user].age > 10,
    "not": lambda t, name: lambda o: t.people[o.by].name != name,
    "none": lambda t, name: lambda o: t.users[o.user].name == name + "x",
    "optional": lambda t, name: lambda o: o.half is not None and t.users[o.half].name == name,
    "several": lambda t, name: lambda o: t.users[o.user].name == name and o.at > 90,
}


@pytest.mark.parametrize("name", ASKED)
def test_rows_are_those_of_a_loop(db: Any, name: str, listed: list[bool]) -> None:
    for how in ("read", "write"):
        with getattr(db, how)() as t:
            for text in ("n3", "n4", "n4", "nobody", "n1"):
                condition = ASKED[name](t, text)
                rows = [(k, o) for k, o in t.orders.items() if condition(o)]
                fit = t.orders.where(condition)
                assert fit.fields(lambda o: o.at).all() == [o.at for _, o in rows]
                assert fit.fields(lambda k, o: (k, o.to, o.half)).all() == [(k, o.to, o.half) for k, o in rows]
                assert fit.all() == list(fit) == rows
                assert fit.keys().all() == [k for k, _ in rows]
                assert fit.count() == len(rows)
                assert bool(fit) is bool(rows)
                assert fit.limit(3, 1).values().all() == [o for _, o in rows[1:4]]
                assert t.orders.select(reverse=True).where(condition).all() == rows[::-1]
                some = t.orders.select(20, 250, reverse=True).where(condition)
                assert some.values().all() == [o for k, o in rows if 20 <= k < 250][::-1]
    with db.read() as t:
        storage = t.orders._storage
    if name in ("number", "uuid", "two"):
        assert any(listed) is (storage.alone and "pickle" not in str(storage.value).lower())


def test_what_is_raised_is_raised(db: Any) -> None:
    for _ in range(3):
        with db.read() as t:
            fit = t.orders.where(lambda o: t.users[o.user].name == "n3")
            at = fit.fields(lambda o: o.at).all()[1]
            with pytest.raises(ZeroDivisionError):
                fit.fields(lambda o: 1 // (o.at - at)).all()  # noqa: B023
            with pytest.raises(ZeroDivisionError):
                t.orders.where(lambda o: 1 // (t.users[o.user].age - 7) > 5).values().all()
            key = fit.keys().all()[1]
    with db.write() as t:
        t.txn._engine_txn.put(t.orders._storage.encode_key(key), b"\xc1", db=t.orders._db)
    with db.read() as t, pytest.raises(zlmdb.DecodeError) as caught:
        t.orders.where(lambda o: t.users[o.user].name == "n3").fields(lambda o: o.at).all()
    assert caught.value.key == key


def test_what_was_written_in_between_counts(db: Any) -> None:
    for n in range(4):
        with db.write() as t:
            t.users[3] = User(f"m{n}", n)
            t.orders[1000 + n] = Order(3, person(3), "k3", n)
        for name in (f"m{n}", "m0"):
            with db.read() as t:
                found = t.orders.where(lambda o: t.users[o.user].name == name).keys().all()  # noqa: B023
                assert found == [k for k, o in t.orders.items() if t.users[o.user].name == name]


def test_tables_of_another_transaction_are_looked_up_in(db: Any) -> None:
    with db.read() as old:
        with db.write() as t:
            t.users[3] = User("new", 1)
        for _ in range(2):
            for one in (old, None):
                with db.read() as t:
                    other = one or t
                    found = t.orders.where(lambda o: other.users[o.user].name == "new").keys().all()  # noqa: B023
                    assert found == [k for k, o in t.orders.items() if other.users[o.user].name == "new"]


@pytest.mark.parametrize("name", ASKED)
def test_explain_tells_which_index_of_a_link_is_read(db: Any, name: str, listed: list[bool]) -> None:
    with db.read() as t:
        few, all_of = t.orders.where(ASKED[name](t, "n3")).fields(lambda o: o.at), "all records of orders"
        first = few.explain()
        for _ in range(3):
            few.all()
        listed.clear()
        few.all()
        plan = few.explain()
        if name in ("number", "uuid", "two"):
            index = "by_by" if name == "uuid" else "by_user"
            linked = "people" if name == "uuid" else "users"
            assert first.read == (all_of,)  # the first records are compared with what the function gives
            assert bool(plan.indexes) is any(listed)
            if any(listed):
                assert plan.indexes == (index,)
                assert plan.read == (
                    f"{index}: what refers to the records of {linked} that fit; {all_of}, if these are many or not all "
                    f"rows are wanted at once",
                )  # fmt: skip
                assert plan.scanned == (linked,)
        elif name == "none":
            assert any(listed) <= bool(plan.indexes)
        if not plan.indexes:
            assert not any(listed)
        fit = t.orders.where(ASKED[name](t, "n3"))
        own = [(), ("by_half",)] if name == "optional" else [()]  # an index of the link has the records that have one
        for other in (fit.limit(5), fit.order_by(lambda o: o.at), t.orders.select(3, 90).where(ASKED[name](t, "n3"))):
            other.fields(lambda o: o.at).all()
            plan = other.fields(lambda o: o.at).explain()
            assert plan.indexes in own
    with db.write() as t:
        assert t.orders.where(ASKED[name](t, "n3")).fields(lambda o: o.at).explain().indexes in own
