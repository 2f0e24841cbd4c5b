"""Conditions that an index serves though nobody wrote `or` or a constant: cases, tuples, captured lists and sets."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Callable

import pytest

import zlmdb
from tests.filled import filled_once, table_of
from tests.pagewalk import rows_of_pages
from zlmdb.tables.executor.execution import Running

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Person:
    team: str
    age: int
    town: str
    active: bool


class People(zlmdb.Table[int, Person]):
    by_team = zlmdb.Index[tuple[str, int]]("team", "age")
    by_town = zlmdb.Index[str]("town")


class Flat(zlmdb.Table[int, zlmdb.FlatBuffers[Person]]):
    by_team = zlmdb.Index[tuple[str, int]]("team", "age")
    by_town = zlmdb.Index[str]("town")


class Store(zlmdb.Schema):
    people: People
    flat: Flat


PEOPLE = [(n, Person(f"team{n % 40:02}", n % 30, f"town{n % 50:02}", n % 3 == 0)) for n in range(1200)]
db = filled_once(Store, lambda: {"people": PEOPLE, "flat": PEOPLE})
table = table_of("people", "flat")


def asked(n: int) -> dict[str, Callable[[Person], bool]]:
    """Conditions that captured what depends on *n*."""
    team, town, after = f"team{n:02}", f"town{n:02}", f"team{n + 1:02}"
    few, many = [town], {"town03", "town09"}
    return {
        "one of two, told by a third": lambda p: (p.team == team and p.active) or (p.town == town and not p.active),
        "a conditional": lambda p: p.team == team if p.active else p.town == town,
        "between two tuples": lambda p: (team, 10) <= (p.team, p.age) < (after, 5),
        "the tuple itself": lambda p: (p.team, p.age) == (team, 8),
        "behind the last of a page": lambda p: (p.team, p.age) > ("team38", n),
        "a captured list": lambda p: p.town in few,
        "a captured set": lambda p: p.town in many and p.active,
    }


@pytest.mark.parametrize("name", asked(0))
def test_an_index_serves_the_cases_of_a_condition(
    table: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    rows = list(table.values())
    for n in range(3):
        plan = table.where(asked(n)[name]).explain()
        assert plan.indexes, plan
        assert table.where(asked(n)[name]).values().all() == [one for one in rows if asked(n)[name](one)]
    with monkeypatch.context() as patched:
        patched.delattr(Running, "choice")  # it is not planned again
        for n in range(3, 20):
            assert table.where(asked(n)[name]).values().all() == [one for one in rows if asked(n)[name](one)]


def test_a_captured_list_counts_as_it_is_when_the_rows_are_read(table: Any) -> None:
    towns: list[Any] = ["town01"]
    found = table.where(lambda p: p.town in towns)
    for added in ("town02", "town03", None, 7, "town04"):
        assert found.values().all() == [one for one in table.values() if one.town in towns]
        towns.append(added)
    towns[:] = [f"town{n:02}" for n in range(45)] * 40
    assert found.count() == 45 * 24
    towns.clear()
    assert found.count() == 0
    assert found.first() is None


def test_a_condition_of_many_cases_is_planned_as_quickly_as_others(table: Any) -> None:
    def odd(p: Person) -> bool:
        if p.age == 1:
            return p.active
        if p.age == 2:
            return not p.active
        if p.age == 3:
            return p.town > "town07"
        if p.age == 4:
            return p.town < "town07"
        return p.active if p.age == 5 else p.town == "town08"

    assert table.where(odd).values().all() == list(filter(odd, table.values()))
    assert table.where(odd).explain().indexes == ()


def test_the_negative_of_a_number_sorts_as_desc_does(table: Any) -> None:
    rows = list(table.values())
    team = "team07"
    found = table.where(lambda p: p.team == team).order_by(lambda p: -p.age).limit(3)
    assert found.values().all() == sorted([one for one in rows if one.team == team], key=lambda p: -p.age)[:3]


class Scores(zlmdb.Table[int, Person]):
    by_age = zlmdb.Index[int](zlmdb.desc("age"))
    by_place = zlmdb.Index[tuple[str, int]]("town", zlmdb.desc("age"))


class Game(zlmdb.Schema):
    scores: Scores
    words: zlmdb.Table[str, int]


game = filled_once(
    Game,
    lambda: {
        "scores": [(n, Person("t", n * 7 % 30 - 10, f"town{n % 3}", False)) for n in range(200)],
        "words": [(f"w{n:02}", n * 7 % 5) for n in range(50)],
    },
)


def test_an_index_gives_the_order_of_negative_numbers_and_their_pages(game: Any) -> None:
    with game.read() as t:
        rows = list(t.scores.items())
        expected = sorted(rows, key=lambda pair: -pair[1].age)
        for _ in range(3):
            ordered = t.scores.order_by(lambda p: -p.age)
            assert ordered.limit(20).explain().indexes == ("by_age",)
            assert ordered.limit(20).all() == expected[:20]
            assert ordered.last() == expected[-1]
            assert t.scores.order_by(lambda p: -p.age, reverse=True).limit(9).all() == expected[:-10:-1]
        assert rows_of_pages(ordered, 17) == expected
        town = t.scores.where(lambda p: p.town == "town1").order_by(lambda p: (p.town, -p.age))
        of_town = sorted([pair for pair in rows if pair[1].town == "town1"], key=lambda pair: -pair[1].age)
        first = town.page(30)
        assert first.rows + town.page(90, first.next).rows == of_town


def test_an_order_by_the_value_and_then_the_key_is_not_that_of_the_keys(game: Any) -> None:
    with game.read() as t:
        rows = sorted(t.words.items(), key=lambda pair: (pair[1], pair[0]))
        assert t.words.order_by(lambda k, v: (v, k)).all() == rows
        assert t.words.order_by(lambda k, v: (v, k)).limit(7).all() == rows[:7]
        assert not t.words.order_by(lambda k, v: (v, k)).explain().ordered


class Many(zlmdb.Table[int, Person]):
    by_team = zlmdb.Index[tuple[str, int]]("team", "age")
    by_town = zlmdb.Index[tuple[str, int]]("town", zlmdb.desc("age"))
    by_age = zlmdb.Index[int]("age")


class Texts(zlmdb.Table[str, zlmdb.FlatBuffers[Person]]):
    by_team = zlmdb.Index[tuple[str, int]]("team", "age")
    by_town = zlmdb.Index[tuple[str, int]]("town", zlmdb.desc("age"))
    by_age = zlmdb.Index[int]("age")


class Tied(zlmdb.Schema):
    numbers: Many
    texts: Texts


TIES = [(n, Person(f"team{n % 4}", n * 7 % 9 - 4, f"town{n % 3}", n % 2 == 0)) for n in range(300)]
tied = filled_once(
    Tied, lambda: {"numbers": TIES, "texts": [(f"key {n}", one) for n, one in TIES]}, ["tables", "classic"]
)


ORDERS: dict[str, tuple[Callable[..., Any], Callable[..., Any], str]] = {
    "a number backwards": (lambda p: zlmdb.desc(p.age), lambda k, p: -p.age, "by_age"),
    "its negative": (lambda p: -p.age, lambda k, p: -p.age, "by_age"),
    "the first part": (lambda p: p.team, lambda k, p: p.team, "by_team"),
    "the first part backwards": (lambda p: zlmdb.desc(p.team), lambda k, p: -int(p.team[4:]), "by_team"),
    "both backwards": (
        lambda p: (zlmdb.desc(p.town), p.age), lambda k, p: (-int(p.town[4:]), p.age), "by_town",
    ),
    "the key backwards": (lambda k, p: zlmdb.desc(k), lambda k, p: zlmdb.desc(k), "(key)"),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("of", ["numbers", "texts"])
@pytest.mark.parametrize("reverse", [False, True])
def test_an_index_gives_the_first_of_an_order_though_equal_ones_have_to_be_sorted(
    tied: Any, name: str, of: str, reverse: bool
) -> None:  # fmt: skip
    order, plain, index = ORDERS[name]
    with tied.read() as t:
        table = getattr(t, of)
        rows = sorted(table.items(), key=lambda pair: plain(*pair))
        if reverse:
            rows.reverse()
        ordered = table.order_by(order, reverse=reverse)
        plan = ordered.limit(10).explain()
        assert (plan.indexes, plan.ordered) == ((index,), True)
        for _ in range(3):
            assert ordered.limit(40).all() == rows[:40]
            assert ordered.limit(20, 90).fields(lambda p: p.team).all() == [one.team for _, one in rows[90:110]]
            assert (ordered.first(), ordered.last()) == (rows[0], rows[-1])
            assert ordered.all() == rows
        kept = table.where(lambda p: p.active).order_by(order, reverse=reverse)
        assert kept.limit(25).all() == [pair for pair in rows if pair[1].active][:25]
        assert rows_of_pages(ordered, 70) == rows


def test_the_rest_of_an_index_behind_equal_parts_is_read_backwards_for_an_order(tied: Any) -> None:
    with tied.read() as t:
        rows = list(t.numbers.items())
        team = "team1"
        found = t.numbers.where(lambda p: p.team == team).order_by(lambda p: -p.age)
        expected = sorted([pair for pair in rows if pair[1].team == team], key=lambda pair: -pair[1].age)
        assert found.limit(9).all() == expected[:9]
        assert found.limit(9).explain().indexes == ("by_team",)
        assert found.all() == expected
        tried = t.numbers.where(lambda p: p.active).order_by(lambda p: -p.age).limit(9).explain().ordered
    with tied.write() as t:
        few = t.numbers.where(lambda p: p.active).order_by(lambda p: -p.age).limit(9)
        assert few.explain().ordered is tried  # as in a read transaction
        assert few.all() == sorted([pair for pair in rows if pair[1].active], key=lambda pair: -pair[1].age)[:9]
        none = t.numbers.where(lambda p: p.town == "nowhere").order_by(lambda p: -p.age).limit(9)
        assert none.all() == []
        t.txn.abort()


def test_a_write_transaction_reads_the_few_that_an_index_has_the_other_way_round(tied: Any) -> None:
    with tied.write() as t:
        found = t.numbers.order_by(lambda p: -p.age).limit(9)
        expected = sorted(t.numbers.items(), key=lambda pair: -pair[1].age)[:9]
        assert found.all() == expected
        assert found.explain().ordered
        assert found.delete() == 9
        assert not [key for key, _ in expected if key in t.numbers]
        t.txn.abort()


@dataclass
class Article:
    price: Decimal
    weight: float


class Articles(zlmdb.Table[int, Article]):
    by_price = zlmdb.Index[Decimal]("price")
    by_weight = zlmdb.Index[tuple[float, Decimal]]("weight", zlmdb.desc("price"))


class Shop(zlmdb.Schema):
    articles: Articles


shop = filled_once(Shop, lambda: {"articles": [(n, Article(Decimal(n % 500) / 4, n % 300 / 2)) for n in range(3000)]})


def test_an_index_of_decimals_or_floats_serves_whole_numbers(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked_of(n: int) -> list[Callable[[Article], bool]]:
        numbers = [n, n + 9]
        return [
            lambda a: a.price == n, lambda a: a.price > 120 and n < 400, lambda a: n <= a.price < n + 2,
            lambda a: a.price in numbers, lambda a: a.weight == n, lambda a: a.weight < 3,
            lambda a: a.weight == n and a.price > 100, lambda a: a.weight == 7 and a.price <= n,
        ]  # fmt: skip

    with shop.read() as t:
        rows = list(t.articles.values())
        for n in range(3):
            for number, condition in enumerate(asked_of(n)):
                assert t.articles.where(condition).explain().indexes, number
                assert t.articles.where(condition).values().all() == [*filter(condition, rows)], number
        monkeypatch.delattr(Running, "choice")  # it is not planned again
        for n in range(3, 9):
            for number, condition in enumerate(asked_of(n)):
                assert t.articles.where(condition).values().all() == [*filter(condition, rows)], number
