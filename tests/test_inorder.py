"""What an index finds comes in the order of the primary keys, and no more than so many keys are in memory for it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from tests.filled import filled_once
from zlmdb.query import inorder, loops, plan
from zlmdb.tables.executor import accessreads, cachedpaths, keylookups

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python

KEYS = 7


@dataclass
class Row:
    place: int
    amount: float
    tags: list[str] = field(default_factory=list)


class Rows(zlmdb.Table[int, Row]):
    by_place = zlmdb.Index[int]("place")
    by_tag = zlmdb.Index[str]("tags", each=True)


class Carried(zlmdb.Table[int, Row]):
    by_place = zlmdb.Index[int]("place", carries=("amount",))


class Store(zlmdb.Schema):
    rows: Rows
    carried: Carried


def row(number: int) -> Row:
    return Row(number * 7919 % 100, number / 8, [f"t{number % 3}", f"t{number % 5}"])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (inorder, accessreads, cachedpaths, keylookups):
        monkeypatch.setattr(module, "KEYS", KEYS)
    monkeypatch.setattr(inorder, "BLOCK", 3)
    monkeypatch.setattr(plan, "most_entries", lambda total: total)


db = filled_once(Store, lambda: {name: [(n, row(n)) for n in range(400)] for name in ("rows", "carried")})


@given(st.lists(st.binary(max_size=2)), st.binary(max_size=2), st.binary(max_size=2), st.booleans(), st.integers(1, 9))
def test_keys_come_in_order_each_once(keys: list[bytes], lower: bytes, upper: bytes, reverse: bool, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inorder, "KEYS", most)
        halves = keys[:5], keys[5:]
        blocks = list(inorder.in_order(lambda: map(dict.fromkeys, halves), lower, upper, reverse=reverse))
        assert max(map(len, blocks)) <= most
        found = [key for block in blocks for key in block]
    assert found == sorted({key for key in keys if lower <= key < upper}, reverse=reverse)


def test_an_index_is_used_for_a_quarter_of_a_table_and_less_of_a_huge_one() -> None:
    assert [inorder.most_entries(total) for total in (0, 1, 400, 1_000_000)] == [1, 1, 100, 250_000]
    assert inorder.most_entries(10**8) == 4_472_135


QUERIES: dict[str, Callable[[Any], Any]] = {
    "range": lambda s: s.where(lambda r: 10 <= r.place < 30).values().all(),
    "equal": lambda s: s.where(lambda r: r.place == 17).all(),
    "few": lambda s: s.where(lambda r: 10 <= r.place < 30).limit(11, skip=3).keys().all(),
    "several": lambda s: s.where(lambda r: r.place in {3, 5, 8, 13, 21}).keys().all(),
    "sum": lambda s: s.where(lambda r: 10 <= r.place < 30).fields(lambda r: r.amount).sum(),
    "count": lambda s: s.where(lambda r: 10 <= r.place < 30).count(),
    "places": lambda s: s.where(lambda r: 10 <= r.place < 30).fields(lambda r: r.place).all(),
    "sorted": lambda s: s.where(lambda r: 10 <= r.place < 30).order_by(lambda r: -r.amount).limit(9).keys().all(),
    "groups": lambda s: s.where(lambda r: 10 <= r.place < 30).group_by(lambda r: r.place, lambda g: g.count()),
    "first": lambda s: s.where(lambda r: 10 <= r.place < 30).first(),
    "iterated": lambda s: list(s.where(lambda r: 10 <= r.place < 30)),
    "either": lambda s: s.where(lambda r: r.place < 8 or r.place == 40).keys().all(),
    "backwards": lambda s: list(s.where(lambda r: 10 <= r.place < 30).keys()),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("table", Store.__annotations__)
@pytest.mark.usefixtures("small")
def test_a_query_by_an_index_that_finds_many_gives_what_a_plain_list_gives(db: Any, name: str, table: str) -> None:
    ask = QUERIES[name]
    with pytest.MonkeyPatch.context() as patch, db.read() as t:
        patch.setattr(plan, "most_entries", lambda total: 1)  # then all records are read
        expected = ask(getattr(t, table).select(reverse=name == "backwards"))
    for begin in (db.read, db.read, db.write):
        with begin() as t:
            for chosen in (t.rows, t.carried):
                assert ask(chosen.select(reverse=name == "backwards")) == expected


@pytest.mark.usefixtures("small")
def test_each_record_of_an_index_of_elements_comes_once(db: Any) -> None:
    with db.read() as t:
        found = t.rows.where(lambda r: "t4" in r.tags).keys()
        assert found.all() == [number for number in range(400) if number % 5 == 4]
        assert found.explain().indexes == ("by_tag",)


@pytest.mark.usefixtures("small")
def test_writes_between_records_are_seen(db: Any) -> None:
    with db.write() as t:
        seen: list[int] = []
        for key, _ in t.rows.where(lambda r: 10 <= r.place < 30):
            seen.append(key)
            if len(seen) == KEYS:  # all that are in memory have been given
                t.rows.pop(key + 100, None)
                t.rows[key + 1] = Row(20, 0.0)
        expected = [n for n in range(400) if 10 <= row(n).place < 30 or n == seen[KEYS - 1] + 1]
        assert seen == [n for n in expected if n != seen[KEYS - 1] + 100]
        t.txn.abort()


@pytest.mark.skipif(
    sys.implementation.name != "cpython", reason="tracemalloc, which measures the memory here, is part of CPython only"
)
@pytest.mark.parametrize("name", ["few", "sum", "count", "sorted", "groups", "places"])
def test_memory_does_not_grow_with_the_table(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    import tracemalloc

    for module in (inorder, accessreads, cachedpaths, keylookups):
        monkeypatch.setattr(module, "KEYS", 100)
    monkeypatch.setattr(inorder, "BLOCK", 50)
    monkeypatch.setattr(loops, "BLOCK", 50)
    monkeypatch.setattr(plan, "most_entries", lambda total: total)
    ask = QUERIES[name]
    peaks: list[int] = []
    for count in (2_500, 5_000):
        with zlmdb.open(None, Store) as db:
            with db.write() as t:
                for table in (t.rows, t.carried):
                    table.put_many((number, row(number)) for number in range(count))
            with db.read() as t:
                for table in (t.rows, t.carried):
                    runs: list[int] = []
                    for _ in range(4):  # once to compile, and by what is kept; garbage counts in some of these
                        tracemalloc.start()
                        answer = ask(table.select()) if name != "places" else sum(
                            1 for _ in table.where(lambda r: 10 <= r.place < 30).fields(lambda r: r.place)
                        )  # fmt: skip
                        runs.append(tracemalloc.get_traced_memory()[1])
                        tracemalloc.stop()
                        assert answer
                    peaks.append(min(runs[1:]))
    small, large = peaks[:2], peaks[2:]
    assert all([after < before + 20_000 for before, after in zip(small, large)]), peaks
