"""Cached plans over several links, of several conditions on one linked record, and orders in write transactions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional

import pytest

import zlmdb
from zlmdb import ForeignKey, Index, Table
from zlmdb.tables.executor import linkedpaths
from zlmdb.tables.executor.execution import Running

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Country:
    region: str


@dataclass
class City:
    name: str
    country: str


@dataclass
class User:
    name: str
    city: int
    age: int
    home: Optional[int] = None
    boss: Optional[int] = None


@dataclass
class Post:
    title: str
    author: int
    likes: int
    editor: Optional[int] = None


class Countries(Table[str, Country]):
    by_region = Index[str]("region")


class Cities(Table[int, City]):
    by_country = ForeignKey["Countries"]("country")
    by_name = Index[str]("name")


class Users(Table[int, User]):
    by_city = ForeignKey["Cities"]("city")
    by_home = ForeignKey["Cities"]("home")
    by_boss = ForeignKey["Users"]("boss", on_delete="set_none")
    by_name = Index[str]("name")
    by_age = Index[int]("age")


class Posts(Table[int, Post]):
    by_author = ForeignKey["Users"]("author", on_delete="cascade")
    by_editor = ForeignKey["Users"]("editor", on_delete="set_none")
    by_likes = Index[int]("likes")


class World(zlmdb.Schema):
    countries: Countries
    cities: Cities
    users: Users
    posts: Posts


USERS, POSTS = 600, 2000


def fill(t: World) -> None:
    dice = random.Random(3)
    for n in range(20):
        t.countries[f"K{n}"] = Country(f"R{n % 10}")
    for n in range(100):
        t.cities[n] = City(f"c{n // 2}", f"K{n % 20}")
    for n in range(USERS):
        home = None if n % 3 else dice.randrange(100)
        t.users[n] = User(f"u{n:04}", dice.randrange(100), n % 80, home, None if n % 2 else n // 2)
    for n in range(POSTS):
        editor = None if n % 2 else dice.randrange(USERS)
        t.posts[n] = Post(f"p{n}", dice.randrange(USERS), dice.randrange(100), editor)


@pytest.fixture(scope="module")
def db() -> Iterator[zlmdb.Database[World]]:
    with zlmdb.open(None, World) as db:
        with db.write() as t:
            fill(t)
        yield db


def condition(t: Any, name: str, n: int) -> Any:
    """A condition with that *name*, with captured values that depend on *n*."""
    country, city, region, number, title = f"K{n % 20}", f"c{n % 50}", f"R{n % 10}", n % 100, f"u{n:04}"
    cities = (city, f"c{(n + 1) % 50}")
    found: dict[str, Callable[..., Any]] = {
        "country": lambda p: t.cities[t.users[p.author].city].country == country,
        "city": lambda p: t.cities[t.users[p.author].city].name == city,
        "cities": lambda p: t.cities[t.users[p.author].city].name in cities,
        "three": lambda p: t.countries[t.cities[t.users[p.author].city].country].region == region,
        "optional": lambda p: p.editor is not None and t.cities[t.users[p.editor].city].name == city,
        "optional on the way": lambda p: (
            t.users[p.author].home is not None and t.cities[t.users[p.author].home].name == city
        ),
        "one table twice": lambda p: (
            t.users[p.author].boss is not None and t.users[t.users[p.author].boss].name == title
        ),
        "and an index": lambda p: p.likes > 20 and t.cities[t.users[p.author].city].name == city,
        "keyed": lambda k, p: k % 2 == 0 and t.cities[t.users[p.author].city].name == city,
        "two of one": lambda p: t.users[p.author].city == number and t.users[p.author].age > 40,
        "near and far": lambda p: (
            t.users[p.author].age == number % 80 and t.cities[t.users[p.author].city].name == city
        ),
    }
    return found[name]


NAMES = (
    "country", "city", "cities", "three", "optional", "optional on the way", "one table twice", "and an index", "keyed",
    "two of one", "near and far",
)  # fmt: skip


def fits(asked: Callable[..., Any], key: int, post: Post) -> bool:
    return bool(asked(key, post) if asked.__code__.co_argcount == 2 else asked(post))


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Running]:
    """What was planned."""
    made: list[Running] = []
    choice = Running.choice

    def noted(self: Running, **how: Any) -> Any:
        made.append(self)
        return choice(self, **how)

    monkeypatch.setattr(Running, "choice", noted)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_conditions_over_several_links_are_planned_once(db: Any, name: str, plans: list[Running]) -> None:
    for n in (3, 4, 5, 60, 161, 90):
        with db.read() as t:
            asked = condition(t, name, n)
            expected = [(k, p) for k, p in t.posts.items() if fits(asked, k, p)]
            plans.clear()
            found = t.posts.where(asked)
            assert found.all() == expected
            assert found.limit(3, 1).all() == expected[1:4]
            assert found.count() == len(expected)
            assert found.order_by(lambda p: p.likes).limit(5).all() == sorted(expected, key=lambda kp: kp[1].likes)[:5]
            assert found.fields(lambda p: t.users[p.author].name).all() == [t.users[p.author].name for _, p in expected]
            assert n < 60 or not plans
            assert (
                t.posts.select(300, 1500, reverse=True).where(asked).all()
                == [one for one in expected if 300 <= one[0] < 1500][::-1]
            )


def test_what_finds_too_many_linked_records_is_passed_over(
    db: Any, plans: list[Running], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setattr(linkedpaths, "CAP", 100)  # that old are more of the users

    def one(t: Any, n: int) -> Any:
        return lambda p: t.users[p.author].city == n and t.users[p.author].age > 40

    def two(t: Any, n: int) -> Any:
        return lambda p: t.users[p.author].city == n and p.editor is not None and t.users[p.editor].age > 40

    for make in (one, two):
        for n in range(6):
            with db.read() as t:
                asked = make(t, n)
                expected = [post for post in t.posts.values() if asked(post)]
                plans.clear()
                assert t.posts.where(asked).values().all() == expected
                assert n < 3 or not plans


def test_what_is_written_counts_over_several_links() -> None:
    with zlmdb.open(None, World) as db:
        with db.write() as t:
            fill(t)
        dice = random.Random(8)
        for step in range(5):
            with db.write() as t:
                for name in NAMES:
                    asked = condition(t, name, step * 17)
                    expected = [(k, p) for k, p in t.posts.items() if fits(asked, k, p)]
                    assert t.posts.where(asked).all() == list(t.posts.where(asked)) == expected
                    assert t.posts.where(asked).count() == len(expected)
                    if expected:
                        del t.posts[expected[0][0]]
                        assert t.posts.where(asked).all() == expected[1:]
                t.users[step] = User("new", dice.randrange(100), 50)
                t.cities[step] = City(f"c{step * 17 % 50}", "K3")


def test_only_entries_are_read_to_count_over_several_links(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def count(t: Any, city: str) -> Any:
        return t.posts.where(lambda p: t.cities[t.users[p.author].city].name == city).count()

    with db.read() as t:
        expected = [count(t, f"c{n}") for n in range(3)]
    with db.read() as t:
        for storage in (t.users._storage, t.cities._storage, t.posts._storage):
            monkeypatch.setattr(storage, "load", None)
        monkeypatch.setattr(Running, "choice", None)
        assert [count(t, f"c{n}") for n in range(3)] == expected


def test_the_order_of_linked_records_in_a_write_transaction() -> None:
    def read(t: Any, backwards: bool) -> Any:
        by = (lambda p: zlmdb.desc(t.users[p.author].name)) if backwards else (lambda p: t.users[p.author].name)
        return t.posts.order_by(by).limit(5, 2).all()

    def expected(t: Any, backwards: bool) -> Any:
        return sorted(t.posts.items(), key=lambda kp: t.users[kp[1].author].name, reverse=backwards)[2:7]

    def refused(self: Running, *how: Any) -> Any:
        raise AssertionError("all records are read")

    with zlmdb.open(None, World) as db:
        with db.write() as t:
            fill(t)
        for _ in range(3):
            with db.write() as t:
                for backwards in (False, True):
                    found = read(t, backwards)
                    assert found == expected(t, backwards)
                    del t.users[t.posts[found[0][0]].author]
                    assert read(t, backwards) == expected(t, backwards)
        with db.write() as t, pytest.MonkeyPatch.context() as patch:
            patch.setattr(Running, "_best", refused)
            assert read(t, False) == expected(t, False)
