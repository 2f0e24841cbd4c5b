"""Cached plans where records change: in write transactions, of ranges of keys, and of pages; the rows are a list's."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Callable, Optional

import pytest
from hypothesis import settings

import zlmdb
from tests.pagewalk import rows_of_pages
from zlmdb import desc
from zlmdb.query.projection import PAIRS
from zlmdb.tables.executor import cachedpaths
from zlmdb.tables.executor.accesspaths import AccessPath
from zlmdb.tables.executor.cachedpaths import FEW
from zlmdb.tables.executor.execution import Running
from zlmdb.tables.executor.foundkeys import FoundKeys

pytestmark = pytest.mark.once  # plans do not depend on the interpreter


@dataclass
class Post:
    author: int
    year: int
    score: int
    title: str
    due: Optional[int] = None


class Posts(zlmdb.Table[int, Post]):
    by_author = zlmdb.Index[int]("author")
    by_author_year = zlmdb.Index[tuple[int, int]]("author", "year")
    by_score = zlmdb.Index[int]("score")
    by_author_due = zlmdb.Index[tuple[int, int]]("author", "due")


class Store(zlmdb.Schema):
    posts: Posts


def post(dice: random.Random) -> Post:
    due = dice.choice([None, dice.randrange(9)])
    return Post(dice.randrange(12), 1990 + dice.randrange(9), dice.randrange(60), f"t{dice.randrange(30)}", due)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Running]:
    """The plans that are made."""
    found: list[Running] = []
    choice = Running.choice

    def counted(self: Running, **options: Any) -> Any:
        found.append(self)
        return choice(self, **options)

    monkeypatch.setattr(Running, "choice", counted)
    return found


Condition = Callable[[int], Any]
CONDITIONS: dict[str, Condition] = {
    "author": lambda n: lambda p: p.author == n % 12,
    "two": lambda n: lambda p: p.author == n % 12 and p.year > 1988 + n % 9,
    "members": lambda n: lambda p: p.author in (n % 12, 3) and p.score < 40,
    "present": lambda n: lambda p: p.author == n % 12 and p.due is not None,
    "score": lambda n: lambda p: p.score >= n % 60,
    "either": lambda n: lambda p: p.author == n % 12 or p.score == n % 60,
    "nothing indexed": lambda n: lambda p: p.year == 1990 + n % 9,
    "keys": lambda n: lambda k, p: k >= n and k < n + 20 and p.year > 1991,
}  # fmt: skip
ORDERS: dict[str, Callable[[Post], Any]] = {
    "year": lambda p: p.year,
    "score": lambda p: p.score,
    "title": lambda p: (p.title, desc(p.score)),
    "descending": lambda p: desc(p.score),
}


def keyed(function: Any) -> Callable[[int, Post], Any]:
    return function if function.__code__.co_argcount == 2 else lambda _, p: function(p)


def read_all(found: Any, rows: list[tuple[int, Post]], dice: random.Random) -> None:
    """*found* has the *rows*, however it is read."""
    assert found.all() == rows
    assert list(found) == rows
    assert found.first() == (rows[0] if rows else None)
    assert found.last() == (rows[-1] if rows else None)
    assert bool(found) is bool(rows)
    assert found.count() == len(rows)
    assert found.fields(lambda p: p.title).all() == [p.title for _, p in rows]
    most, skip = dice.randrange(12), dice.randrange(3)
    assert found.limit(most, skip).all() == list(found.limit(most, skip)) == rows[skip : skip + most]
    size = dice.randrange(1, 15)
    assert rows_of_pages(found, size, most=4) == rows[: 4 * size]


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("few", [None, 4])
def test_rows_are_those_of_a_list_while_records_change(
    write: bool, few: Optional[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    if few is not None:
        monkeypatch.setattr(cachedpaths, "FEW", few)
        monkeypatch.setattr(cachedpaths, "_SHORT", few)
    dice = random.Random(few or 1)
    db = zlmdb.open(None, Store)
    with db.write() as t:
        for n in range(400):
            t.posts[n] = post(dice)
    for _ in range(min(12, settings.default.max_examples // 2)):
        with db.write() if write else db.read() as t:
            for _ in range(6):
                if write:
                    for _ in range(dice.randrange(20)):
                        t.posts[dice.randrange(450)] = post(dice)
                    for key in dice.sample(range(450), 3):
                        t.posts.pop(key, None)
                value, name = dice.randrange(100), dice.choice(list(CONDITIONS))
                lower, reverse = dice.randrange(300), dice.random() < 0.3
                upper = lower + dice.choice([5, 60, 400])
                matches = CONDITIONS[name](value)
                ranged = dice.random() < 0.5
                part = t.posts.select(lower, upper, reverse=reverse) if ranged else t.posts.select(reverse=reverse)
                fits = keyed(matches)
                rows = [
                    (k, p) for k, p in t.posts.items() if fits(k, p) and (not ranged or lower <= k < upper)
                ]  # fmt: skip
                if reverse:
                    rows.reverse()
                found: Any = part.where(matches)
                read_all(found, rows, dice)
                by = ORDERS[dice.choice(list(ORDERS))]
                back = dice.random() < 0.4
                rows = sorted(rows, key=lambda row: by(row[1]))
                if back:
                    rows.reverse()
                read_all(found.order_by(by, reverse=back), rows, dice)
    db.close()


def of_author(t: Any, author: int) -> Any:
    return t.posts.where(lambda p: p.author == author)


@pytest.fixture
def db() -> Any:
    dice = random.Random(3)
    with zlmdb.open(None, Store) as made:
        with made.write() as t:
            t.posts.put_many([(n, Post(n % 100, 1990 + n % 9, n % 50, f"t{n}")) for n in range(5000)])
            t.posts.put_many([(n, post(dice)) for n in range(5000, 5020)])
        yield made


def test_an_order_is_not_planned_in_a_write_transaction(db: Any, planned: list[Running]) -> None:
    def asked(t: Any, n: int) -> list[Any]:
        found = of_author(t, n)
        by_year, by_title = found.order_by(lambda p: p.year), found.order_by(lambda p: p.title)
        page = by_title.page(5)
        return [
            by_year.all(), by_title.all(), list(by_year), list(by_title), by_year.limit(3).all(), by_title.first(),
            by_year.page(4), page, by_title.page(5, page.next), list(by_title.limit(2)),
        ]  # fmt: skip

    with db.write() as t:
        for n in range(10):
            asked(t, n)
        t.posts[7] = Post(20, 1980, 1, "a")
        planned.clear()
        found = asked(t, 20)
        assert not planned
        rows = [(k, p) for k, p in t.posts.items() if p.author == 20]
        assert found[0] == found[2] == sorted(rows, key=lambda row: row[1].year)
        assert found[1] == found[3] == sorted(rows, key=lambda row: row[1].title)
        assert found[0][0] == found[4][0] == found[6].rows[0] == found[5] == (7, Post(20, 1980, 1, "a"))
        assert found[7].rows + found[8].rows == found[1][:10]


def test_a_loop_over_sorted_records_that_writes_has_them_as_they_were(db: Any, planned: list[Running]) -> None:
    with db.write() as t:
        for n in range(8):
            rows = of_author(t, n).order_by(lambda p: p.title).all()
            planned.clear()
            seen = []
            for key, one in of_author(t, n).order_by(lambda p: p.title):
                seen.append((key, one))
                for other, _ in rows:
                    t.posts[other] = Post(n, 1, 1, "z")
                t.posts.pop(rows[-1][0], None)
            assert seen == rows
        assert not planned


def test_a_plan_reads_one_of_two_indexes_with_the_same_records(db: Any) -> None:
    with db.read() as t:
        for n in range(10):
            found = of_author(t, n)
            assert bool(found)
            assert len(found.all()) >= 50
        ready = found._cached_plan(PAIRS)
        assert len(ready._ways) == 1
        assert ready.in_order
        with_due = t.posts.where(lambda p: p.author == 3 and p.due is not None)  # an index that has fewer
        for _ in range(10):
            with_due.all()
        assert len(with_due._cached_plan(PAIRS)._ways) == 2


def test_bool_of_alternatives_reads_few_entries(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def either(n: int) -> Any:
        return t.posts.where(lambda p: p.score == n or p.author == n)

    read: list[int] = []
    within = AccessPath._within

    def counted(self: Any, *arguments: Any) -> Any:
        found = within(self, *arguments)
        read.append(len(found))
        return found

    def all_counted(self: Any, most: int) -> Any:
        read.append(most)
        return fewer(self, most)

    fewer = FoundKeys.fewer
    monkeypatch.setattr(FoundKeys, "fewer", all_counted)
    monkeypatch.setattr(AccessPath, "_within", counted)
    with db.read() as t:
        for n in range(12):
            read.clear()
            assert bool(either(n))
        assert sum(read) <= 16
        assert not bool(either(1000))


def test_bool_of_what_may_raise_is_asked_in_the_order_of_the_records(db: Any) -> None:
    def of(t: Any, score: int, author: int) -> Any:
        return t.posts.where(lambda p: (p.score == score or p.author == author) and 1 / p.author > 0)

    with db.read() as t:
        for n in range(1, 12):
            assert bool(of(t, n, n))
        with pytest.raises(ZeroDivisionError):  # the first record, and none that the first index finds
            bool(of(t, 13, 0))


def test_a_short_range_of_keys_is_read_before_many_entries(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    fewer = FoundKeys.fewer

    def counted(self: Any, most: int) -> Any:
        asked.append(most)
        return fewer(self, most)

    def within(n: int) -> Any:
        return t.posts.select(n * 100, n * 100 + 100).where(lambda p: p.score > n + 39)

    monkeypatch.setattr(FoundKeys, "fewer", counted)
    with db.read() as t:
        for n in range(10):
            asked.clear()
            found = within(n)
            rows = [(k, p) for k, p in t.posts.items() if n * 100 <= k < n * 100 + 100 and p.score > n + 39]
            assert found.all() == list(found) == rows
        assert max(asked) <= FEW


def test_the_first_records_in_an_order_are_tried_once(db: Any, planned: list[Running]) -> None:
    def of_year(year: int) -> Any:
        return t.posts.where(lambda p: p.year == year).order_by(lambda p: p.score).limit(100)

    with db.read() as t:
        for year in range(1990, 1999):
            planned.clear()
            rows = sorted([(k, p) for k, p in t.posts.items() if p.year == year], key=lambda row: row[1].score)
            assert of_year(year).all() == rows[:100]
        assert not planned


def test_a_range_of_keys_in_a_condition_is_planned_once(db: Any, planned: list[Running]) -> None:
    def between(t: Any, lower: Any, upper: Any) -> Any:
        return t.posts.where(lambda k, p: k >= lower and k < upper and p.year > 1991)

    for begin in (db.read, db.write):
        with begin() as t:
            for n in range(10):
                planned.clear()
                rows = [(k, p) for k, p in t.posts.items() if n * 90 <= k < n * 100 and p.year > 1991]
                assert between(t, n * 90, n * 100).all() == rows
                assert between(t, n * 90, n * 100).limit(5, 1).all() == rows[1:6]
                assert between(t, n * 90, n * 100).first() == (rows[0] if rows else None)
                part = t.posts.select(n * 95, reverse=True).where(lambda k, p: k >= 50 and k < 800 and p.year > 1991)
                assert (
                    part.all()
                    == [(k, p) for k, p in t.posts.items() if max(n * 95, 50) <= k < 800 if p.year > 1991][::-1]
                )
            assert not planned
            for odd in (5.5, 2**70, -(2**70), float("inf"), True):
                rows = [(k, p) for k, p in t.posts.items() if 3 <= k < odd and p.year > 1991]
                assert between(t, 3, odd).all() == rows


def test_explain_says_the_same_of_an_order_in_a_write_transaction(db: Any) -> None:
    def plans(t: Any) -> list[str]:
        found = t.posts.where(lambda p: p.year > 1990).order_by(lambda p: p.score)
        rare = t.posts.where(lambda p: p.title == "t7").order_by(lambda p: p.score)
        return [str(one.limit(3).explain()) for one in (found, rare, of_author(t, 3).order_by(lambda p: p.year))]

    with db.read() as t:
        before = plans(t)
    assert "p.score: from the index" in before[0]
    assert "all are read faster" in before[1]
    with db.write() as t:
        assert plans(t) == before


def test_the_first_in_an_order_are_deleted_without_a_plan_for_each(db: Any, planned: list[Running]) -> None:
    """The index has all that is asked, and a statement wants the keys of the records."""
    with db.write() as t:
        for n in range(20):
            if n == 3:
                planned.clear()
            first = min(t.posts.items(), key=lambda row: (row[1].score, row[0]))[0]
            assert t.posts.order_by(lambda p: p.score).limit(1).delete() == 1
            assert first not in t.posts
            of_one = [row for row in t.posts.items() if row[1].author == n % 4]
            last = min(of_one, key=lambda row: (-row[1].year, row[0]))[0]
            author = n % 4
            latest = t.posts.where(lambda p: p.author == author).order_by(lambda p: desc(p.year))  # noqa: B023
            assert latest.limit(1).delete() == 1
            assert last not in t.posts
        assert not planned
        t.txn.abort()
