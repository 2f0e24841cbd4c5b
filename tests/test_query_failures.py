"""An exception of a compiled function comes from the line of the function, as if it had been called."""

from __future__ import annotations

import enum
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable

import pytest

import zlmdb


@dataclass
class Shop:
    name: str
    staff: int
    number: int
    prices: dict[str, int] = field(default_factory=dict)


class Shops(zlmdb.Table[int, Shop]):
    by_number = zlmdb.Index[int]("number", carries=("staff",))


class Store(zlmdb.Schema):
    plain: zlmdb.Table[int, Shop]
    flat: zlmdb.Table[int, zlmdb.FlatBuffers[Shop]]
    views: zlmdb.Table[int, zlmdb.values.FlatBuffersView[Shop]]
    pickled: zlmdb.Table[int, zlmdb.Pickle[Shop]]
    covered: Shops


def load(shop: Any) -> int:
    return 100 // int(shop.staff)


FUNCTIONS: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
    (ZeroDivisionError, "100 // int(shop.staff)", lambda s: s.number < 50 and load(s) > 3),
    (KeyError, 's.prices["tea"]', lambda s: s.prices["tea"] > 3),
    (ValueError, "int(s.name)", lambda s: int(s.name) > 3),
]
ASKED: list[Callable[[Any, Any], Any]] = [
    lambda table, function: table.where(function).keys().all(),
    lambda table, function: list(table.where(function)),
    lambda table, function: table.where(function).count(),
    lambda table, function: table.fields(function).all(),
    lambda table, function: table.fields(function).sum(),
    lambda table, function: table.order_by(function).limit(1).keys().all(),
    lambda table, function: table.group_by(function, lambda g: g.count()),
]


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            for table in (t.plain, t.flat, t.views, t.pickled, t.covered):
                for key in range(20):
                    empty = key == 12  # beyond the records that are compared when the function is new
                    table[key] = Shop("?" if empty else str(key), 0 if empty else 2, key, {} if empty else {"tea": key})
        yield db


@pytest.mark.parametrize("name", ["plain", "flat", "views", "pickled", "covered"])
@pytest.mark.parametrize(("kind", "line", "function"), FUNCTIONS, ids=lambda part: getattr(part, "__name__", None))
def test_it_ends_in_the_line_of_the_function(
    db: Any, name: str, kind: type[Exception], line: str, function: Callable[[Any], Any]
) -> None:
    for mode in (db.read, db.write):
        with mode() as t:
            for asked in ASKED:
                with pytest.raises(kind) as caught:
                    asked(getattr(t, name), function)
                last = traceback.extract_tb(caught.value.__traceback__)[-1]
                assert last.filename == __file__
                assert line in str(last.line)
                assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_query_that_reads_an_index_only_tells_it_too(db: Any) -> None:
    with db.read() as t:
        query = t.covered.where(lambda s: 5 < s.number < 15).fields(lambda s: load(s))
        assert "no records" in str(query.explain())
        with pytest.raises(ZeroDivisionError) as caught:
            query.all()
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "load"


def test_the_cause_that_a_function_gives_its_exception_is_kept(db: Any) -> None:
    def told(shop: Any) -> bool:
        try:
            return bool(shop.prices["tea"])
        except KeyError as error:
            raise LookupError("no tea") from error

    with db.read() as t, pytest.raises(LookupError, match="no tea") as caught:
        t.plain.where(told).keys().all()
    assert type(caught.value.__cause__) is KeyError


@dataclass
class Street:
    name: str
    note: str
    town: int
    length: int = 0
    width: int = 0


@dataclass
class House:
    number: int
    street: int


class Town(zlmdb.Schema):
    towns: zlmdb.Table[int, Shop]
    streets: zlmdb.Table[int, zlmdb.FlatBuffers[Street]]
    houses: zlmdb.Table[int, zlmdb.FlatBuffers[House]]
    packed_streets: zlmdb.Table[int, Street]
    packed_houses: zlmdb.Table[int, House]


def town_of(t: Any, streets: Any) -> Callable[[Any], Any]:
    return lambda h: t.towns[streets[h.street].town].number


@pytest.mark.parametrize("kind", ["", "packed_"])
def test_a_broken_linked_record_that_leads_nowhere_is_named_and_not_the_one_that_refers(kind: str) -> None:
    with zlmdb.open(None, Town) as db:
        with db.write() as t:
            streets, houses = getattr(t, f"{kind}streets"), getattr(t, f"{kind}houses")
            t.towns[1] = Shop("town", 1, 1)
            for key in range(20):
                streets[key] = Street("street", "NOTE", 1 if key != 12 else 99)
                houses[key] = House(key, key)
            key = streets._storage.encode_key(12)
            t.txn._raw.put(
                key, bytes(t.txn._raw.get(key, None, streets._db)).replace(b"NOTE", b"N\xff\xffE"), db=streets._db
            )
        for mode in (db.read, db.write):
            for asked in ASKED:
                with mode() as t, pytest.raises(zlmdb.DecodeError, match="table '.*streets', key 12") as caught:
                    asked(getattr(t, f"{kind}houses"), town_of(t, getattr(t, f"{kind}streets")))
                assert (caught.value.table, caught.value.key) == (f"{kind}streets", 12)


class Status(enum.Enum):
    """Members that equal their values, and each other without case."""

    NEW = "new"
    LOUD = "NEW"

    def __eq__(self, other: object) -> bool:
        return str(self.value).lower() == str(getattr(other, "value", other)).lower()

    def __hash__(self) -> int:
        return hash(str(self.value).lower())


@dataclass
class Order:
    status: Status


class Orders(zlmdb.Table[int, Order]):
    by_status = zlmdb.Index[Status]("status")


class Orderly(zlmdb.Schema):
    orders: Orders


def test_members_with_an_equality_of_their_own_are_compared_by_it() -> None:
    wanted = ["new", Status.LOUD]
    asked: list[Callable[[Any], Any]] = [
        lambda o: o.status == "new",
        lambda o: o.status == Status.NEW,
        lambda o: o.status in ("new", "old"),
        lambda o: o.status in wanted,
        lambda o: o.status != "old",
    ]
    with zlmdb.open(None, Orderly) as db:
        with db.write() as t:
            t.orders.update({key: Order([Status.NEW, Status.LOUD][key // 20]) for key in range(40)})
        with db.read() as t:
            for function in asked:
                assert t.orders.where(function).count() == 40
