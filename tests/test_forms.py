"""The first few in an order, and groups of many records: loops that do not give each row, beside lists in memory."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Optional
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from zlmdb import desc
from zlmdb.query import loops
from zlmdb.values import FlatBuffersView


@dataclass
class Row:
    number: int
    score: float
    name: str
    id: UUID
    flag: bool = False
    maybe: Optional[int] = None


class Store(zlmdb.Schema):
    default: zlmdb.Table[int, Row]
    flat: zlmdb.Table[int, zlmdb.FlatBuffers[Row]]
    cbor: zlmdb.Table[int, zlmdb.Cbor[Row]]
    views: zlmdb.Table[int, FlatBuffersView[Row]]


NAMES = list(Store.__annotations__)
ORDERS: dict[str, Any] = {
    "int": lambda r: r.number,
    "float": lambda r: r.score,
    "text": lambda r: r.name,
    "uuid": lambda r: r.id,
    "bool": lambda r: r.flag,
    "sum": lambda r: r.number + r.score,
    "key": lambda k, r: -k,
    "both": lambda k, r: r.number - k % 3,
    "tuple": lambda r: (r.flag, desc(r.number)),
    "called": lambda r: str(r.number),
}


def row(dice: random.Random) -> Row:
    return Row(
        dice.choice((-1, 0, 0, 3, 2**60)), dice.choice((-0.0, 0.0, 1.5, -math.inf, 7.25)),
        dice.choice(("", "a", "é", "ab")), UUID(int=dice.randrange(4)), dice.random() < 0.5, dice.choice((None, 1, 2)),
    )  # fmt: skip


def test_the_least_of_a_group_is_what_python_finds_although_nan_has_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """`min` goes on from what it had: it keeps a NaN that comes first, and takes none that comes later."""

    class Floats(zlmdb.Schema):
        floats: zlmdb.Table[int, float]

    nan = float("nan")
    monkeypatch.setattr(loops, "BLOCK", 2)
    with zlmdb.open(None, Floats) as db, db.write() as t:
        for given in ([5.0, 3.0, nan, 1.0], [1.0, 2.0, nan, 7.0], [nan, 1.0, 0.0, 9.0], [1.0, nan, 0.0, 2.0]):
            t.floats.clear()
            t.floats.update(enumerate(given))
            rows = t.floats.fields(lambda n: n)
            found = t.floats.group_by(lambda n: 0, lambda g: (g.fields(lambda n: n).min(), g.fields(lambda n: n).max()))
            assert repr(found[0]) == repr((rows.min(), rows.max())) == repr((min(given), max(given)))


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    before, loops.BLOCK = loops.BLOCK, 7  # rows that are grouped together
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            dice = random.Random(5)
            for number in range(60):
                made = row(dice)
                for name in NAMES:
                    t[name][number] = made
        yield db
    loops.BLOCK = before


def by(order: Any) -> Any:
    keyed = order.__code__.co_argcount == 2
    return lambda pair: order(*pair) if keyed else order(pair[1])


def plain(pairs: Any) -> list[tuple[int, int, float, str]]:
    return [(key, one.number, one.score, one.name) for key, one in pairs]


@settings(max_examples=max(20, settings.default.max_examples), deadline=None)
@given(
    st.sampled_from(NAMES), st.sampled_from(sorted(ORDERS)), st.integers(0, 12), st.integers(0, 9), st.booleans(),
    st.integers(-2, 3), st.integers(0, 40), st.booleans(), st.booleans(),
)  # fmt: skip
def test_the_first_few_are_those_of_a_sort(
    db: Any,
    name: str,
    order: str,
    count: int,
    skip: int,
    reverse: bool,
    least: int,
    begin: int,
    write: bool,
    ranged: bool,
) -> None:
    """Equal ones too; in a range, with a condition, and while a transaction writes."""
    with db.write() if write else db.read() as t:
        table = t[name]
        if write:
            table.put_many([(key, row(random.Random(key))) for key in range(50, 70)])
        chosen = table.select(begin) if ranged else table.select()
        expected = [pair for pair in chosen if pair[1].number >= least]
        if reverse:  # which turns equal ones round, too
            expected.reverse()
        expected.sort(key=by(ORDERS[order]), reverse=reverse)
        found = chosen.where(lambda r: r.number >= least).order_by(ORDERS[order], reverse=reverse).limit(count, skip)
        assert plain(found) == plain(expected[skip : skip + count])
        assert list(found.keys()) == [key for key, _ in expected[skip : skip + count]]
        assert found.fields(lambda r: r.name).all() == [one.name for _, one in expected[skip : skip + count]]
        if write:
            for key in range(60, 70):
                del table[key]


@pytest.mark.parametrize("name", NAMES)
def test_groups_are_those_of_a_loop(db: Any, name: str) -> None:
    with db.read() as t:
        table = t[name]
        for chosen in (table.select(), table.where(lambda r: r.number >= 0), table.select(limit=20)):
            expected: dict[Any, list[Any]] = {}
            for _, one in chosen:
                expected.setdefault(one.name, []).append(one)
            found = chosen.group_by(
                lambda r: r.name,
                lambda g: (g.count(), g.fields(lambda r: r.number).sum(), g.fields(lambda r: r.flag).max()),
            )  # fmt: skip
            assert found == {
                text: (len(rows), sum(one.number for one in rows), max(one.flag for one in rows))
                for text, rows in expected.items()
            }
            assert list(found) == list(expected)
            counts = chosen.group_by(lambda r: r.name, lambda g: g.where(lambda r: r.maybe is not None).count())
            assert counts == {text: sum(one.maybe is not None for one in rows) for text, rows in expected.items()}
        assert table.where(lambda r: r.number > 2**61).group_by(lambda r: r.name, lambda g: g.count()) == {}


FIELDS: list[Any] = [
    lambda r: r.name, lambda r: (r.number, r.score), lambda r: "value", lambda r: r.name == "value" or r.name,
    lambda k, r: (k, r.name), lambda r: r.number + r.number, lambda r: str(r.id), lambda r: r.maybe,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_list_of_all_is_that_of_a_loop(db: Any, name: str) -> None:
    with db.read() as t:
        table = t[name]
        for chosen in (table.select(), table.select(7, 50, reverse=True), table.where(lambda r: r.number >= 0)):
            for give in FIELDS:
                assert chosen.fields(give).all() == list(chosen.fields(give))
            assert plain(chosen.all()) == plain(chosen)
            assert [one.name for one in chosen.values().all()] == [one.name for _, one in chosen]
        assert table.where(lambda r: r.number > 2**61).fields(lambda r: r.name).all() == []


@pytest.mark.parametrize("name", ["default", "flat", "cbor"])
def test_a_record_in_a_list_that_is_broken_is_named(name: str) -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            for number in range(20):
                t[name][number] = row(random.Random(number))
            t[name]._raw.put(t[name]._storage.encode_key(11), b"\xa1", db=t[name]._db)
        with db.read() as t:
            for give in (lambda r: r.name, lambda r: r, lambda k, r: (k, r.number)):
                with pytest.raises(zlmdb.DecodeError, match="key 11"):
                    t[name].fields(give).all()
            with pytest.raises(ZeroDivisionError):
                t[name].select(0, 11).fields(lambda r: r.number / 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_what_has_no_order_is_refused_wherever_it_is(name: str) -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            for number in range(20):
                made = row(random.Random(number))
                t[name][number] = made
            made.score = math.nan
            t[name][30] = made
        with db.read() as t:
            for reverse in (False, True):
                with pytest.raises(ValueError, match="no order"):
                    t[name].order_by(lambda r: r.score, reverse=reverse).limit(2).all()


@dataclass
class Typed:
    whole: int
    ratio: float
    text: str
    flag: bool
    id: UUID
    at: datetime
    maybe: Optional[int] = None


class Several(zlmdb.Schema):
    flat: zlmdb.Table[int, zlmdb.FlatBuffers[Typed]]
    default: zlmdb.Table[int, Typed]


AT = datetime(2026, 1, 1, tzinfo=timezone.utc)
CAPTURED: list[Any] = [
    0, 1, True, 1.0, -0.0, 2**70, None, "", "a", "é", "\udc80", math.inf, UUID(int=1), AT, AT + timedelta(1),
    AT.replace(tzinfo=None), b"a", (1, 2),
]  # fmt: skip


@pytest.mark.parametrize("field", ["whole", "ratio", "text", "flag", "id", "at", "maybe"])
@pytest.mark.parametrize("operator", ["==", "!=", "<"])
def test_the_same_code_with_another_value_is_asked_that(field: str, operator: str) -> None:
    """Whatever its type is, and whatever was captured before."""
    space: dict[str, Any] = {}
    exec(f"def asked(x, y): return lambda r: r.{field} {operator} x and r.whole != y", space)
    asked = space["asked"]
    with zlmdb.open(None, Several) as db:
        rows = [
            Typed(n % 3, n % 2 - 0.5, "aé"[: n % 3], n % 2 == 0, UUID(int=n % 3), AT + timedelta(n % 2), n % 2 or None)
            for n in range(12)
        ]
        with db.write() as t:
            for n, one in enumerate(rows):
                t.flat[n] = t.default[n] = one
        with db.read() as t:
            for value in [*CAPTURED, *reversed(CAPTURED)]:
                for other in (2, 1.0):
                    told: list[Any] = []
                    for table in (t.flat, t.default, rows):
                        try:
                            matches = asked(value, other)
                            told.append(
                                [one for one in table if matches(one)] if table is rows else
                                table.where(matches).values().all()
                            )  # fmt: skip
                        except TypeError:
                            told.append(TypeError)
                    if told[0] is not TypeError:  # refused at once
                        assert told[0] == told[2]
                    assert told[0] == told[1]
