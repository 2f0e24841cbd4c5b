"""The first records of a condition in the order of an index: asked again, no more entries are read than rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from operator import attrgetter, itemgetter
from typing import Any, Callable, Optional

import pytest
from hypothesis import settings

import zlmdb
from tests.pagewalk import rows_of_pages
from zlmdb import desc
from zlmdb.tables.executor import cachedorder
from zlmdb.tables.executor.execution import Running

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python

OLDEST = date(2024, 1, 1)


@dataclass
class Order:
    state: str
    at: date
    price: int
    note: Optional[int] = None


class Orders(zlmdb.Table[int, Order]):
    newest = zlmdb.Index[tuple[str, date]]("state", desc("at"))
    by_price = zlmdb.Index[tuple[str, int]]("state", "price")
    by_at = zlmdb.Index[date]("at")
    open_notes = zlmdb.Index[int]("note", where=lambda o: o.state == "open")


class Shop(zlmdb.Schema):
    orders: Orders


def an_order(dice: random.Random) -> Order:
    note = dice.choice([None, dice.randrange(9)])
    return Order(
        dice.choice(["open", "paid", "sent"]), OLDEST + timedelta(dice.randrange(90)), dice.randrange(40), note
    )


@pytest.fixture(scope="module", params=["memory", "file"])
def db(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[zlmdb.Database[Shop]]:
    path = None if request.param == "memory" else tmp_path_factory.mktemp("first")
    dice = random.Random(11)
    with zlmdb.open(path, Shop) as opened:
        with opened.write() as t:
            for key in range(900):
                t.orders[key * 7 % 1009] = an_order(dice)
        yield opened


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Running]:
    """The queries that are planned."""
    found: list[Running] = []
    choice = Running.choice

    def choose(self: Running, **options: Any) -> Any:
        found.append(self)
        return choice(self, **options)

    monkeypatch.setattr(Running, "choice", choose)
    return found


Query = tuple[Callable[[Any, str, int], Any], Callable[[Order, str, int], bool], Callable[[Order], Any], bool]
"""The selection for captured values, the condition, what it is sorted by, whether the last one comes first."""

QUERIES: dict[str, Query] = {
    "as the index": (
        lambda t, state, n: t.where(lambda o: o.state == state).order_by(lambda o: desc(o.at)),
        lambda o, state, n: o.state == state,
        lambda o: -o.at.toordinal(),
        False,
    ),
    "the other way round": (
        lambda t, state, n: t.where(lambda o: o.state == state).order_by(lambda o: o.at),
        lambda o, state, n: o.state == state,
        attrgetter("at"),
        False,
    ),
    "reversed": (
        lambda t, state, n: t.where(lambda o: o.state == state).order_by(lambda o: o.price, reverse=True),
        lambda o, state, n: o.state == state,
        attrgetter("price"),
        True,
    ),
    "descending": (
        lambda t, state, n: t.where(lambda o: o.state == state).order_by(lambda o: desc(o.price)),
        lambda o, state, n: o.state == state,
        lambda o: -o.price,
        False,
    ),
    "descending, reversed": (
        lambda t, state, n: t.where(lambda o: o.state == state).order_by(lambda o: desc(o.price), reverse=True),
        lambda o, state, n: o.state == state,
        lambda o: -o.price,
        True,
    ),
    "negative, of a range": (
        lambda t, state, n: t.where(lambda o: o.state == state and o.price < n).order_by(lambda o: -o.price),
        lambda o, state, n: o.state == state and o.price < n,
        lambda o: -o.price,
        False,
    ),
    "two conditions": (
        lambda t, state, n: (
            t.where(lambda o: o.state == state).where(lambda o: n <= o.price).order_by(lambda o: o.price)
        ),
        lambda o, state, n: o.state == state and n <= o.price,
        attrgetter("price"),
        False,
    ),
    "a partial index": (
        lambda t, state, n: t.where(lambda o: o.state == "open" and o.note is not None).order_by(lambda o: o.note),
        lambda o, state, n: o.state == "open" and o.note is not None,
        attrgetter("note"),
        False,
    ),
    "all": (
        lambda t, state, n: t.order_by(lambda o: desc(o.at)),
        lambda o, state, n: True,
        lambda o: -o.at.toordinal(),
        False,
    ),
    "all, backwards": (
        lambda t, state, n: t.order_by(lambda o: o.at, reverse=True),
        lambda o, state, n: True,
        attrgetter("at"),
        True,
    ),
    "a condition without an index": (
        lambda t, state, n: t.where(lambda o: o.price >= n).order_by(lambda o: desc(o.at)),
        lambda o, state, n: o.price >= n,
        lambda o: -o.at.toordinal(),
        False,
    ),
    "one of two": (
        lambda t, state, n: t.where(lambda o: o.state in (state, "sent")).order_by(lambda o: o.at, reverse=True),
        lambda o, state, n: o.state in (state, "sent"),
        attrgetter("at"),
        True,
    ),
    "and more than the index has": (
        lambda t, state, n: t.where(lambda o: o.state == state and o.note == n % 9).order_by(lambda o: o.price),
        lambda o, state, n: o.state == state and o.note == n % 9,
        attrgetter("price"),
        False,
    ),
}


EXACT = ("as the index", "the other way round", "reversed", "descending", "negative, of a range", "two conditions")
"""Where an index has the order, and just what is asked for."""


def expected_of(pairs: list[Any], query: Query, state: str, n: int) -> list[Any]:
    _, condition, sort_key, backwards = query
    found = [pair for pair in pairs if condition(pair[1], state, n)]
    return sorted(reversed(found) if backwards else found, key=lambda pair: sort_key(pair[1]), reverse=backwards)


@pytest.mark.parametrize("what", QUERIES)
def test_the_first_are_those_of_a_sorted_list(db: Any, planned: list[Running], what: str) -> None:
    query, dice = QUERIES[what], random.Random(what)
    with db.read() as t:
        pairs = list(t.orders.items())
        for turn in range(max(6, min(12, settings.default.max_examples // 2))):
            state, n = dice.choice(["open", "paid", "sent", "none"]), dice.randrange(-1, 42)
            rows = expected_of(pairs, query, state, n)
            made = query[0](t.orders, state, n)
            planned.clear()
            for limit, skip in ((1, 0), (3, 2), (70, 5), (0, 0), (2000, 0), *[(many, 0) for many in range(8, 22)]):
                some = made.limit(limit, skip)
                assert some.all() == list(some) == rows[skip : skip + limit]
                assert some.values().all() == [value for _, value in rows[skip : skip + limit]]
            assert made.first() == (rows[0] if rows else None)
            assert made.limit(9).fields(lambda k, o: (o.state, k)).all() == [(o.state, k) for k, o in rows[:9]]
            assert turn < 4 or what not in EXACT or not planned
            assert made.all() == list(made) == rows
            assert made.last() == (rows[-1] if rows else None)
    with db.write() as t:
        assert query[0](t.orders, "open", 20).limit(10).all() == expected_of(pairs, query, "open", 20)[:10]
        t.txn.abort()


@pytest.mark.parametrize("what", QUERIES)
def test_pages_are_those_of_a_sorted_list(db: Any, what: str) -> None:
    query = QUERIES[what]
    with db.read() as t:
        rows = expected_of(list(t.orders.items()), query, "open", 20)
        assert rows_of_pages(query[0](t.orders, "open", 20), 40) == rows


def test_no_more_entries_are_read_than_rows_are_wanted(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(which: Any) -> Any:
        def keys(*arguments: Any) -> Any:
            found = which(*arguments)
            for key in found:
                read.append(1)
                yield key
            found.close()

        return keys

    first = cachedorder.first_keys
    monkeypatch.setattr(cachedorder, "first_keys", lambda *given: [read.append(1) or key for key in first(*given)])
    monkeypatch.setattr(cachedorder, "tied_keys", counted(cachedorder.tied_keys))
    with db.read() as t:
        for _ in range(5):
            read.clear()
            for sort_key in (lambda o: desc(o.at), lambda o: o.at):
                assert len(t.orders.where(lambda o: o.state == "paid").order_by(sort_key).limit(10).all()) == 10
        assert len(read) == 20


def test_values_that_the_index_cannot_hold_find_what_python_finds(db: Any) -> None:
    def some(t: Any, state: Any, n: Any) -> Any:
        return t.orders.where(lambda o: o.state == state and o.price >= n).order_by(lambda o: o.price).limit(5)

    with db.read() as t:
        rows = sorted([pair for pair in t.orders.items() if pair[1].state == "paid"], key=lambda pair: pair[1].price)
        for _ in range(3):
            assert some(t, "paid", 3).all() == [pair for pair in rows if pair[1].price >= 3][:5]
        assert some(t, "paid", 3.5).all() == [pair for pair in rows if pair[1].price >= 3.5][:5]
        assert some(t, "paid", 2**70).all() == []
        assert some(t, "paid", -(2**70)).all() == rows[:5]
        assert some(t, "paid", True).all() == [pair for pair in rows if pair[1].price >= 1][:5]
        with pytest.raises(TypeError):
            some(t, "paid", "3").all()


def test_a_part_of_the_table_is_not_what_the_index_has(db: Any) -> None:
    with db.read() as t:
        for reverse in (False, True):
            part = t.orders.select(100, 500, reverse=reverse).where(lambda o: o.state == "paid")
            rows = [pair for pair in t.orders.select(100, 500, reverse=reverse) if pair[1].state == "paid"]
            rows.sort(key=lambda pair: pair[1].at)
            for _ in range(4):
                assert part.order_by(lambda o: o.at).limit(7).all() == rows[:7]


def test_a_record_that_does_not_decode_raises_what_the_planner_raises() -> None:
    with zlmdb.open(None, Shop) as db:
        with db.write() as t:
            for n in range(100):
                t.orders[n] = Order("open", OLDEST, n)
            raw, handle = t.orders._raw, t.orders._db
            raw.put(t.orders._storage.encode_key(50), b"\xc1", db=handle)
        with db.read() as t:
            made = t.orders.where(lambda o: o.state == "open").order_by(lambda o: o.price)
            for _ in range(4):
                assert [key for key, _ in made.limit(10).all()] == list(range(10))
            for _ in range(2):
                with pytest.raises(zlmdb.DecodeError, match="50"):
                    made.limit(60).all()
            assert list(map(itemgetter(0), made.limit(10).all())) == list(range(10))


def test_records_are_read_in_order_as_long_as_enough_of_them_fit(db: Any, planned: list[Running]) -> None:
    def newest(t: Any, least: int) -> Any:
        return t.orders.where(lambda o: o.price >= least).order_by(lambda o: desc(o.at)).limit(5)

    with db.read() as t:
        rows = sorted(t.orders.items(), key=lambda pair: pair[1].at, reverse=True)
        for least in (0, 1, 2, 10, 15, 20):
            planned.clear()
            assert newest(t, least).all() == [pair for pair in rows if pair[1].price >= least][:5]
            assert least < 10 or not planned
        assert [pair for pair in rows if pair[1].price >= 20][:5] != rows[:5]
        assert newest(t, 40).all() == []
        assert len(planned) == 1  # which finds that all are read faster
        assert not newest(t, 40).explain().ordered


def test_an_order_in_which_very_many_are_equal_is_not_read_for_a_few() -> None:
    @dataclass
    class Job:
        rank: int
        done: bool

    class Jobs(zlmdb.Table[int, Job]):
        by_rank = zlmdb.Index[int]("rank")

    class Work(zlmdb.Schema):
        jobs: Jobs

    with zlmdb.open(None, Work) as db:
        with db.write() as t:
            t.jobs.put_many([(n, Job(n // 3000, n % 2 == 1)) for n in range(6000)])
        with db.read() as t:
            for _ in range(4):
                first = t.jobs.where(lambda j: j.done).order_by(lambda j: desc(j.rank)).limit(3)
                assert [key for key, _ in first.all()] == [3001, 3003, 3005]
            assert "375 records are equal in the order" in str(first.explain())


@dataclass
class Note:
    tags: list[str]
    year: int


class Notes(zlmdb.Table[int, Note]):
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_year = zlmdb.Index[int]("year")


class Notebook(zlmdb.Schema):
    notes: Notes


def test_few_records_of_an_element_are_sorted_and_of_many_the_first_are_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    first = cachedorder.CachedOrder.all
    monkeypatch.setattr(cachedorder.CachedOrder, "all", lambda *args: looked.append(1) or first(*args))
    with zlmdb.open(None, Notebook) as db:
        with db.write() as t:
            t.notes.put_many(
                (n, Note(["often"] if n % 50 else ["seldom", "often"], n * 7919 % 997)) for n in range(10_000)
            )
        with db.read() as t:
            rows = sorted(t.notes.items(), key=lambda pair: pair[1].year)

            def earliest(tag: str) -> list[Any]:
                return t.notes.where(lambda n: tag in n.tags).order_by(lambda n: n.year).limit(10).all()

            for tag, searches in (("seldom", 0), ("often", 1)):
                earliest(tag)
                looked.clear()
                assert earliest(tag) == [pair for pair in rows if tag in pair[1].tags][:10]
                assert len(looked) == searches
