"""Rows of many records that an index found by linked records, in lists: the same as a plain loop gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

import pytest

import zlmdb
from tests.answers import CODECS, LINKED, answers
from zlmdb import ForeignKey, Index, Table
from zlmdb.tables.executor import pickedlists

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Category:
    name: str


@dataclass
class Item:
    name: str
    category: int


@dataclass
class Order:
    items: list[int]
    at: int
    note: Optional[str] = None


def schema(codec: Any) -> Any:
    order: Any = codec[Order] if codec else Order

    class Categories(Table[int, Category]):
        """Categories by key."""

    class Items(Table[int, Item]):
        by_category = ForeignKey[Categories]("category")

    class Orders(Table[int, order]):  # type: ignore[valid-type]
        by_item = ForeignKey[Items]("items", each=True)
        by_note = Index[str]("note")

    class Shop(zlmdb.Schema):
        categories: Categories
        items: Items
        orders: Orders

    return Shop


@pytest.fixture(params=LINKED)
def db(request: Any) -> Iterator[Any]:
    codec, layout = request.param
    with zlmdb.open(None, schema(CODECS[codec]), layout=layout) as db:
        with db.write() as t:
            t.categories.update({n: Category(f"c{n % 5}") for n in range(10)})
            t.items.update({n: Item(f"i{n}", n % 10) for n in range(60)})
            t.orders.update({
                n: Order([n * 7 % 60, n * 7 % 60, n * 11 % 60][: n % 4], n * 3, None if n % 3 else f"o{n % 4}")
                for n in range(300)
            })  # fmt: skip
        yield db


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each time that rows were listed, whether the index alone told which records fit."""
    return answers(monkeypatch, pickedlists, "told_by")


def test_rows_are_those_of_a_loop(db: Any, told: list[bool]) -> None:
    with db.read() as t:
        for name in ("c1", "c3", "c3", "none"):
            numbers = {k for k, c in t.categories.items() if c.name == name}
            wanted = {k for k, i in t.items.items() if i.category in numbers}
            orders = [(k, o) for k, o in t.orders.items() if wanted.intersection(o.items)]
            fit = t.orders.where(lambda o: any(t.categories[t.items[i].category].name == name for i in o.items))  # noqa: B023
            for _ in range(3):
                assert fit.fields(lambda o: o.at).all() == [o.at for _, o in orders]
                assert fit.fields(lambda k, o: (k, o.note, o.items)).all() == [(k, o.note, o.items) for k, o in orders]
                assert fit.all() == orders
                assert fit.keys().all() == [k for k, _ in orders]
                assert fit.limit(3, 1).values().all() == [o for _, o in orders[1:4]]
                late = fit.where(lambda o: o.at > 300).fields(lambda o: o.at)
                assert late.all() == [o.at for _, o in orders if o.at > 300]
                backwards = t.orders.select(50, 200, reverse=True).where(
                    lambda o: any(t.categories[t.items[i].category].name == name for i in o.items)  # noqa: B023
                )
                assert backwards.fields(lambda o: o.at).all() == [o.at for k, o in orders if 50 <= k < 200][::-1]
        assert bool(told) is t.orders._storage.alone
        assert not told or all(told) is ("pickle" not in str(type(t.orders._storage.value)).lower())
    with db.write() as t:
        assert t.orders.where(
            lambda o: any(t.categories[t.items[i].category].name == "c1" for i in o.items)
        ).fields(lambda o: o.at).all() == [
            o.at for o in t.orders.values() if any(t.items[i].category % 5 == 1 for i in o.items)
        ]  # fmt: skip


def test_what_is_raised_is_raised(db: Any) -> None:
    with db.read() as t:
        fit = t.orders.where(lambda o: any(t.categories[t.items[i].category].name == "c1" for i in o.items))
        at = fit.fields(lambda o: o.at).all()[2]
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                fit.fields(lambda o: 1 // (o.at - at)).all()
        key = fit.keys().all()[2]
    with db.write() as t:
        t.txn._engine_txn.put(t.orders._storage.encode_key(key), b"\xc1", db=t.orders._db)
    with db.read() as t:
        fit = t.orders.where(lambda o: any(t.categories[t.items[i].category].name == "c1" for i in o.items))
        for _ in range(2):
            with pytest.raises(zlmdb.DecodeError) as caught:
                fit.fields(lambda o: o.at).all()
            assert caught.value.key == key
