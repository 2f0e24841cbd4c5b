"""The first rows of an index that has many entries come before all of these are read, and the order stays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb import desc
from zlmdb.query import plan
from zlmdb.tables.executor import accessreads, cachedcovered, cachedpaths, keylookups
from zlmdb.tables.executor.accesspaths import AccessPath
from zlmdb.tables.executor.foundkeys import FoundKeys

pytestmark = pytest.mark.once  # plans do not depend on the interpreter


@dataclass
class Row:
    place: int
    name: str
    tags: list[str]
    due: Optional[int] = None


class Rows(zlmdb.Table[int, Row]):
    by_place = zlmdb.Index[int]("place", carries=("name",))
    by_both = zlmdb.Index[tuple[str, int]]("name", "place")
    by_fold = zlmdb.Index[str]("name.casefold()")
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_due = zlmdb.Index[int](desc("due"))


class Named(zlmdb.Table[str, Row]):
    by_place = zlmdb.Index[int]("place")
    by_due = zlmdb.Index[int]("due", where=lambda r: r.place > 3)
    by_name = zlmdb.Index[str]("name")


class Plain(zlmdb.Table[int, Row]):
    """Without an index: what the others have to give."""


class Store(zlmdb.Schema):
    rows: Rows
    named: Named
    plain: Plain
    texts: zlmdb.Table[str, Row]


def row(dice: random.Random) -> Row:
    return Row(dice.randrange(30), dice.choice(["a", "A", "b"]), dice.sample(["x", "y", "z"], dice.randrange(3)),
               dice.choice([None, 1, 2, 3]))  # fmt: skip


def filled(dice: random.Random, count: int) -> Any:
    db = zlmdb.open(None, Store)
    rows = {number: row(dice) for number in range(0, 2 * count, 2)}
    with db.write() as t:
        t.rows.update(rows)
        t.plain.update(rows)
        t.named.update({f"{number:04}": one for number, one in rows.items()})
        t.texts.update({f"{number:04}": one for number, one in rows.items()})
    return db


QUERIES: list[Callable[[Any, int], Any]] = [
    lambda t, n: t.where(lambda r: r.place < n),
    lambda t, n: t.where(lambda r: r.place >= n and r.due != 2),
    lambda t, n: t.where(lambda r: r.name == "a" and r.place > n),
    lambda t, n: t.where(lambda r: r.name == "a"),
    lambda t, n: t.where(lambda r: r.name.casefold() == "a" and r.place != n),
    lambda t, n: t.where(lambda r: "x" in r.tags),
    lambda t, n: t.where(lambda r: any(tag < "z" for tag in r.tags) and r.place < n),
    lambda t, n: t.where(lambda r: r.due is not None and r.due < 3),
    lambda t, n: t.where(lambda r: r.due == 2 and r.place > 3),
    lambda t, n: t.where(lambda r: r.place < n or r.name == "b"),
    lambda t, n: t.where(lambda r: r.place in (n, n + 1, n + 2) or r.due == 1),
    lambda t, n: t.where(lambda r: r.name == "b").fields(lambda r: (r.name, r.place)),
    lambda t, n: t.where(lambda r: r.place < n).fields(lambda r: (r.name, r.place)),
]


@pytest.fixture(params=["a quarter", "all"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All stages are met with few records. An index is used for up to *a quarter* of them, or for *all*."""
    for module in (plan, keylookups, cachedcovered):
        monkeypatch.setattr(module, "CAP", 4)
    for module in (cachedpaths, cachedcovered):
        monkeypatch.setattr(module, "FEW", 2)
    monkeypatch.setattr(accessreads, "_FIRST", (2, 3))
    monkeypatch.setattr(keylookups, "_BLOCK", 5)
    monkeypatch.setattr(keylookups, "_FACTOR", 2)
    monkeypatch.setattr(cachedpaths, "BLOCK", 5)
    if request.param == "all":
        monkeypatch.setattr(plan, "most_entries", lambda total: total)


@pytest.mark.parametrize("way", ["read", "write"])
@pytest.mark.usefixtures("small")
def test_rows_of_many_entries_are_those_of_a_scan(way: str) -> None:
    dice = random.Random(way)
    db = filled(dice, 60)
    with getattr(db, way)() as t:
        for _ in range(2):
            if way == "write":
                for number in dice.sample(range(120), 20):
                    new = row(dice)
                    t.rows[number] = t.plain[number] = t.named[f"{number:04}"] = t.texts[f"{number:04}"] = new
            for ask in QUERIES:
                n, limit, skip = dice.randrange(32), dice.randrange(40), dice.randrange(5)
                for table, other, lower, upper in (
                    (t.rows, t.plain, 20, 100), (t.named, t.texts, "0020", "0100"), (t.rows, t.plain, 500, 600),
                ):  # fmt: skip
                    for reverse in (False, True):
                        part, same = table.select(lower, upper, reverse=reverse), other.select(
                            lower, upper, reverse=reverse
                        )  # fmt: skip
                        assert list(ask(part, n)) == list(ask(same, n))
                    found, expected = ask(table, n), list(ask(other, n))
                    assert list(found) == found.all() == expected
                    assert found.first() == next(iter(found), None) == (expected[0] if expected else None)
                    assert bool(found) is bool(expected)
                    if hasattr(found, "limit"):
                        some = found.limit(limit, skip)
                        assert list(some) == some.all() == expected[skip : skip + limit]
                        assert some.count() == len(expected[skip : skip + limit])
                        assert found.page(7).rows == expected[:7]
    db.close()


def changes(dice: random.Random, table: Any, key: int, value: Row) -> Iterator[Callable[[], Any]]:
    """What the body of a loop may do to *table* when it is at *key*."""
    other = dice.randrange(80)
    yield lambda: table.pop(other, None)
    yield lambda: table.pop(key, None)
    yield lambda: table.__setitem__(other, row(random.Random(other)))
    yield lambda: table.__setitem__(key, replace(value, place=(value.place + 7) % 30))
    yield lambda: table.__setitem__(1000 + other, value)


@pytest.mark.usefixtures("small")
def test_a_loop_that_writes_visits_what_a_scan_visits() -> None:
    db = filled(random.Random(), 1)
    for seed in range(40):
        dice = random.Random(seed)
        ask, n, at, which = dice.choice(QUERIES[:11]), dice.randrange(32), dice.randrange(12), dice.randrange(5)
        rows = {number: row(dice) for number in range(0, 80, 2)}
        with db.write() as t:
            t.rows.clear()
            t.plain.clear()
            t.rows.update(rows)
            t.plain.update(rows)
            seen: list[list[Any]] = []
            for table in (t.rows, t.plain):
                again = random.Random(seed)
                found: list[Any] = []
                for number, (key, value) in enumerate(ask(table, n)):
                    found.append((key, value))
                    if number >= at and again.random() < 0.5:
                        list(changes(again, table, key, value))[which]()
                seen.append(found)
            assert seen[0] == seen[1], seed
            assert list(t.rows.items()) == list(t.plain.items())
    db.close()


def test_a_queue_in_a_write_transaction_is_emptied_without_reading_all_that_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that are done stay before the others, so that the first records of the table are of no use."""
    sizes: list[int] = []
    monkeypatch.setattr(FoundKeys, "_read", lambda found, *args: pytest.fail("the entries were read"))
    firsts = accessreads.AccessReads.firsts

    def counted(*args: Any, **named: Any) -> Iterator[list[bytes]]:
        for keys in firsts(*args, **named):
            sizes.append(len(keys))
            yield keys

    known: list[int] = []
    ends = AccessPath.ends

    def counted_too(path: Any, selection: Any, most: int) -> Any:
        keys = ends(path, selection, most)
        known.append(len(keys or ()))
        return keys

    with zlmdb.open(None, Store) as db, db.write() as t:
        t.rows.put_many((number, Row(int(number >= 8000), "a", [])) for number in range(10_000))
        monkeypatch.setattr(accessreads.AccessReads, "firsts", counted)
        monkeypatch.setattr(AccessPath, "ends", counted_too)
        for number in range(8000, 8020):
            waiting = t.rows.where(lambda r: r.place == 1)
            found = waiting.first()
            assert found == next(iter(waiting)) == waiting.limit(1).all()[0] == (number, Row(1, "a", []))
            assert waiting.last() == (9999, Row(1, "a", []))
            t.rows[number] = replace(found[1], place=0)
        assert sizes == [16] * 21  # the first time, and in each loop
        assert known == [1] * 59
        assert t.rows.select(9900).where(lambda r: r.place == 1).limit(2).keys().all() == [9900, 9901]


def below(table: Any, place: int) -> Any:
    return table.where(lambda r: r.place < place)


@pytest.mark.parametrize("way", ["read", "write"])
def test_the_first_row_does_not_wait_for_all_entries(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    opened = FoundKeys._read

    def counted(found: FoundKeys, *args: Any) -> bool:
        before = len(found._found)
        done = opened(found, *args)
        read.extend(found._found[before:])
        return done

    db = zlmdb.open(None, Store)
    with db.write() as t:
        t.rows.update({number: Row(number % 10, "a", []) for number in range(10_000)})
    monkeypatch.setattr(FoundKeys, "_read", counted)
    with getattr(db, way)() as t:
        for place in (2, 1):  # from a fifth of them on; then by what is known of the query
            expected = [(number, t.rows[number]) for number in range(3)]
            found = below(t.rows, place)
            assert next(iter(found)) == found.first() == expected[0]
            assert found.limit(1).all() == list(found.limit(1)) == expected[:1]
            assert len(read) <= 2 * plan.CAP
            read.clear()
            assert list(found.keys()) == [number for number in range(10_000) if number % 10 < place]
            assert len(read) == len(set(read)), "an entry is read once"
            read.clear()
        told = "index by_place: (r.place < place); the first records are read before"
        found = below(t.rows, 1)
        assert found.explain().read == (told,)
        assert found.order_by(lambda r: r.name).explain().read == (told[:33],)
    db.close()


@pytest.mark.once
def test_of_two_indexes_with_many_entries_one_with_too_many_is_left_alone() -> None:
    db = zlmdb.open(None, Store)
    with db.write() as t:
        t.named.update({f"{n:05}": Row(n % 10, "a", []) for n in range(6_000)})
    with db.read() as t:
        chosen = t.named.where(lambda r: r.name == "a" and r.place < 2).explain()
        assert chosen.indexes == ("by_place",)
        assert chosen.rejected == (
            "index by_name: (r.name == 'a'): 1,500 or more of 6,000 records, all are read faster",
        )
    db.close()
