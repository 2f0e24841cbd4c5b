# ruff: noqa: B023  # queries are asked within the loop that they capture a variable of
"""Conditions on a part of a field, or on tuples of fields, and the first rows of several keys: indexes serve them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, Callable, Optional

import pytest

import zlmdb
from zlmdb import desc
from zlmdb.tables.executor import firstofeach
from zlmdb.tables.executor.counted import counted
from zlmdb.tables.executor.execution import Running

pytestmark = pytest.mark.once  # plans do not depend on the interpreter

NOON = datetime(2020, 1, 1, 12, tzinfo=timezone.utc)


@dataclass
class Post:
    day: date
    at: datetime
    due: Optional[date]
    author: int
    year: int
    score: int


class Posts(zlmdb.Table[int, Post]):
    by_day = zlmdb.Index[date]("day")
    by_at = zlmdb.Index[datetime]("at")
    by_due = zlmdb.Index[date]("due")
    by_author_year = zlmdb.Index[tuple[int, int]]("author", "year")
    newest = zlmdb.Index[tuple[int, int]]("score", desc("year"))


class Zoned(zlmdb.Table[int, zlmdb.Pickle[Post]]):
    by_at = zlmdb.Index[datetime]("at")


class Store(zlmdb.Schema):
    posts: Posts
    zoned: Zoned


def post(dice: random.Random) -> Post:
    zone = timezone(timedelta(hours=dice.choice([-12, -5, 0, 5, 14])))
    day = date(2000, 1, 1) + timedelta(days=dice.choice([0, 365, 366, *[dice.randrange(9_000)] * 9]))
    at = (NOON + timedelta(hours=dice.randrange(-9_000, 9_000))).astimezone(zone)
    due = dice.choice([None, day])
    return Post(day, at, due, dice.randrange(30), 1990 + dice.randrange(20), dice.randrange(40))


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    dice = random.Random(1)
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            for n in range(400):
                t.posts[n] = t.zoned[n] = post(dice)
        yield db


def same(table: Any, condition: Callable[[Any], bool]) -> Any:
    """The selection for *condition*, whose rows are those of a list, however it is asked."""
    wanted = [(key, value) for key, value in table.select() if condition(value)]
    found = table.where(condition)
    for _ in range(3):
        assert found.all() == wanted
        assert list(found) == wanted
        assert found.count() == len(wanted)
        assert found.limit(3, 1).all() == wanted[1:4]
    return found


def test_the_year_of_a_date_is_a_range_of_its_index(db: Any) -> None:
    with db.read() as t:
        for year in (1999, 2000, 2001, 2010):
            assert same(t.posts, lambda p: p.day.year == year).explain().indexes == ("by_day",)
            assert same(t.posts, lambda p: year == p.day.year).explain().indexes == ("by_day",)
            assert same(t.posts, lambda p: p.due is not None and p.due.year == year).explain().indexes == ("by_due",)
            for condition in (
                lambda p: p.day.year < year,
                lambda p: p.day.year <= year,
                lambda p: p.day.year > year,
                lambda p: p.day.year >= year,
                lambda p: year - 2 < p.day.year <= year,
            ):
                assert counted(same(t.posts, condition)) is not None


def test_a_year_beside_another_bound_counts_both(db: Any) -> None:
    with db.read() as t:
        for day in (date(2000, 1, 1), date(2005, 1, 1), date(2005, 6, 1), date(2024, 1, 1)):
            same(t.posts, lambda p: p.day >= day and p.day.year == 2005)
            same(t.posts, lambda p: p.day.year == 2005 and p.day >= day)
            same(t.posts, lambda p: p.day <= day and p.day.year == 2005)
            ordered = t.posts.where(lambda p: p.day >= day and p.day.year == 2005).order_by(lambda p: p.day)
            wanted = sorted([p.day for p in t.posts.values() if p.day >= day and p.day.year == 2005])
            for _ in range(3):
                assert [p.day for p in ordered.limit(5).values()] == wanted[:5]


def test_years_that_no_date_has_find_nothing(db: Any) -> None:
    with db.read() as t:
        for year in (-1, 0, 1, 9_999, 10_000):
            same(t.posts, lambda p: p.day.year == year)
            same(t.posts, lambda p: p.day.year <= year)
            same(t.posts, lambda p: p.at.year >= year)
            same(t.posts, lambda p: p.at.year == year)
        for odd in (2005.0, True):
            same(t.posts, lambda p: p.day.year == odd)


@pytest.mark.parametrize("name", ["posts", "zoned"])
def test_the_day_of_a_moment_is_about_a_range_of_its_index(db: Any, name: str) -> None:
    """In the time zone of the moment; a record may keep it, and its entry does not."""
    with db.read() as t:
        table = getattr(t, name)

        def check(condition: Any) -> None:
            assert counted(same(table, condition)) is None
            ordered = table.where(condition).order_by(lambda p: p.at)
            wanted = sorted([p.at for p in table.values() if condition(p)])
            for _ in range(3):
                assert [p.at for p in ordered.limit(3).values()] == wanted[:3]
                assert table.where(condition).fields(lambda p: p.at).min() == min(wanted, default=None)

        for number in range(-3, 4):
            day = NOON.date() + timedelta(days=number)
            found = same(table, lambda p: p.at.date() == day)
            assert found.explain().indexes == ("by_at",)
            assert counted(found) is None
            check(lambda p: p.at.date() < day)
            check(lambda p: p.at.date() <= day)
            check(lambda p: day < p.at.date())
            check(lambda p: p.at.date() >= day)
        check(lambda p: p.at.year == 2019)
        check(lambda p: p.at.year > 2019)


def test_a_tuple_among_tuples_is_found_by_its_fields(db: Any) -> None:
    with db.read() as t:
        for pairs in ([(1, 1990), (2, 1995), (9, 1)], {(3, 2000)}, (), [(1,), (1, 2, 3)], {(4, 1999): "x"}):
            assert same(t.posts, lambda p: (p.author, p.year) in pairs).explain().indexes == ("by_author_year",)
        for odd in ([(1.0, 1990), [2, 1995]], [(True, 1990)], [(None, 1990)], [(1, 1990), 5], range(3)):
            same(t.posts, lambda p: (p.author, p.year) in odd)
        many = [(n, 1990) for n in range(-2_000, 2_000)]
        same(t.posts, lambda p: (p.author, p.year) in many)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many keys are read of each range in the order of an index."""
    found: list[int] = []
    for name in ("first_keys", "tied_keys"):
        original = getattr(firstofeach, name)

        def noted(*arguments: Any, original: Any = original) -> Any:
            keys = original(*arguments)
            found.append(len(keys) if type(keys) is list else 0)
            return keys

        monkeypatch.setattr(firstofeach, name, noted)
    return found


@pytest.mark.parametrize(
    ("condition", "order"),
    [
        (lambda p: p.author in (3, 4, 20), lambda p: p.year),
        (lambda p: p.author in (3, 4, 20), lambda p: desc(p.year)),
        (lambda p: p.author in (3, 4, 20), lambda p: (desc(p.author), desc(p.year))),
        (lambda p: p.author in (3, 4, 20), lambda p: (-p.year, p.author)),
        (lambda p: p.score in [7, 7, 8, 99], lambda p: desc(p.year)),
        (lambda p: p.score in [7, 7, 8, 99], lambda p: p.year),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_of_several_keys_are_the_first_of_each(
    db: Any, read: list[int], monkeypatch: pytest.MonkeyPatch, condition: Any, order: Any, reverse: bool
) -> None:
    with db.read() as t:
        rows = sorted([row for row in t.posts.select() if condition(row[1])], key=lambda row: order(row[1]))
        rows = rows[::-1] if reverse else rows  # equal ones, too
        found = t.posts.where(condition).order_by(order, reverse=reverse)
        for count, skip in ((2, 0), (5, 3), (0, 0), (500, 0)):
            for _ in range(3):
                assert found.limit(count, skip).all() == rows[skip : skip + count]
        assert found.all() == rows
        if order(rows[0][1]) == (-rows[0][1].year, rows[0][1].author):
            return  # no index has that order
        read.clear()
        monkeypatch.setattr(Running, "choice", None)  # no plan is made
        assert found.limit(2).keys().all() == [key for key, _ in rows[:2]]
        assert read
        assert all([one <= 2 for one in read])


def test_what_else_is_asked_reads_all_that_the_index_finds(db: Any, read: list[int]) -> None:
    with db.read() as t:
        found = t.posts.where(lambda p: p.author in (3, 4) and p.score > 20).order_by(lambda p: p.year)
        rows = sorted([p for p in t.posts.values() if p.author in (3, 4) and p.score > 20], key=lambda p: p.year)
        for _ in range(3):
            assert found.limit(3).values().all() == rows[:3]
        assert read == []


def pages_of(found: Any, size: int) -> list[Any]:
    """The rows of all pages of *found*."""
    rows: list[Any] = []
    after = None
    while True:
        page = found.page(size, after=after)
        rows += page
        after = page.next
        if after is None:
            return rows


@pytest.mark.parametrize(
    ("condition", "order", "known"),
    [
        (lambda p: p.author in (3, 4, 20), lambda p: p.year, True),
        (lambda p: p.author in (3, 4, 20), lambda p: desc(p.year), True),
        (lambda p: p.author in (3, 4, 20), lambda p: -p.year, True),
        (lambda p: p.author in (3, 4, 20), lambda p: (desc(p.author), desc(p.year)), False),
        (lambda p: p.score in [7, 7, 8, 99], lambda p: desc(p.year), True),
        (lambda p: p.score in [7, 7, 8, 99], lambda p: p.year, True),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_pages_of_several_keys_read_the_first_of_each(
    db: Any, read: list[int], monkeypatch: pytest.MonkeyPatch, condition: Any, order: Any, known: bool, reverse: bool
) -> None:
    with db.read() as t:
        rows = sorted([row for row in t.posts.select() if condition(row[1])], key=lambda row: order(row[1]))
        rows = rows[::-1] if reverse else rows
        found = t.posts.where(condition).order_by(order, reverse=reverse)
        for size in (1, 2, 7, 500):
            assert pages_of(found, size) == rows
        assert pages_of(found.fields(lambda p: p.year), 3) == [post.year for _, post in rows]
        first = found.page(2)
        if known:
            read.clear()
            monkeypatch.setattr(Running, "choice", None)  # no plan is made
            assert list(found.page(2)) == rows[:2]
            assert list(found.page(2, after=first.next)) == rows[2:4]
            equal = sum([order(post) == order(rows[1][1]) for _, post in rows])
            assert len(read) == 6
            assert all([one <= 3 + equal for one in read])


@dataclass
class News:
    author: int
    at: datetime


class Feed(zlmdb.Table[int, News]):
    by_author = zlmdb.Index[tuple[int, datetime]]("author", "at")


class Blog(zlmdb.Schema):
    feed: Feed


def test_a_page_of_several_keys_begins_behind_a_record_that_is_gone(
    read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = {0, 2}
    with zlmdb.open(None, Blog) as db:

        def newest(t: Any) -> Any:
            return t.feed.where(lambda n: n.author in followed).order_by(lambda n: desc(n.at))

        with db.write() as t:
            t.feed.put_many([(n, News(n % 3, NOON + timedelta(hours=n // 9))) for n in range(60)])
        with db.read() as t:
            pages_of(newest(t), 4)
            monkeypatch.setattr(Running, "choice", None)  # no plan is made
            first = newest(t).page(4)
        with db.write() as t:
            del t.feed[first.rows[-1][0]]
            t.feed[1000] = News(2, NOON + timedelta(days=9))  # before the cursor
        with db.read() as t:
            rows = sorted(
                [row for row in t.feed.select() if row[1].author in followed], key=lambda row: desc(row[1].at)
            )
            assert list(newest(t).page(4)) == rows[:4]
            assert list(newest(t).page(100, after=first.next)) == rows[4:]
            monkeypatch.undo()
            with pytest.raises(ValueError, match="no cursor of this query"):
                newest(t).page(4, after="x")
