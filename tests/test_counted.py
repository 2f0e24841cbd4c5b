"""Counting what an index tells by itself: the same number as Python counts, and nothing is decoded."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from enum import Enum
from typing import Any, Callable, Optional

import pytest

import zlmdb
from tests.filled import filled_once, table_of
from zlmdb import desc
from zlmdb.tables.executor import counted
from zlmdb.tables.executor.counted import CachedCount
from zlmdb.tables.executor.execution import Running

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python

FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Kind(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    country: str
    city: str


@dataclass
class Person:
    name: str
    age: int
    score: float
    kind: Kind
    at: datetime
    place: Place
    nick: Optional[str] = None
    tags: list[str] = field(default_factory=list)


class People(zlmdb.Table[int, Person]):
    by_age = zlmdb.Index[int](desc("age"))
    by_name = zlmdb.Index[tuple[str, int]]("name", "age")
    by_score = zlmdb.Index[float]("score")
    by_kind = zlmdb.Index[Kind]("kind")
    by_at = zlmdb.Index[datetime]("at")
    by_nick = zlmdb.Index[str]("nick")
    by_case = zlmdb.Index[str]("place.city.casefold()")
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_young = zlmdb.Index[int]("age", where=lambda p: p.age < 3)


class Flat(zlmdb.Table[int, zlmdb.FlatBuffers[Person]]):
    by_age = zlmdb.Index[int](desc("age"))
    by_name = zlmdb.Index[tuple[str, int]]("name", "age")
    by_score = zlmdb.Index[float]("score")
    by_kind = zlmdb.Index[Kind]("kind")
    by_at = zlmdb.Index[datetime]("at")
    by_nick = zlmdb.Index[str]("nick")
    by_case = zlmdb.Index[str]("place.city.casefold()")
    by_tag = zlmdb.Index[str]("tags", each=True)


class Store(zlmdb.Schema):
    people: People
    flat: Flat


def person(n: int) -> Person:
    nick = None if n % 3 else f"nick{n % 10}"
    tags = [f"tag{n % 4}", f"tag{n % 5}"]
    place = Place("NO" if n % 2 else "SE", "Oslo" if n % 4 else "OSLO")
    return Person(f"name{n % 7}", n % 20, n / 3, list(Kind)[n % 2], FIRST + timedelta(hours=n), place, nick, tags)


db = filled_once(Store, lambda: {name: [(n, person(n)) for n in range(400)] for name in ("people", "flat")})
table = table_of("people", "flat")


def asked(x: int) -> dict[str, Callable[[Person], bool]]:
    """Conditions that captured *x*."""
    name, times, nick, tag = f"name{x % 7}", FIRST + timedelta(hours=x), f"nick{x % 10}", f"tag{x % 6}"
    few = (x, x + 1, x + 1)
    return {
        "equal": lambda p: p.age == x,
        "bounds": lambda p: x < p.age <= 15,
        "two": lambda p: p.age >= x and p.age < 9,
        "among": lambda p: p.age in few,
        "most of all": lambda p: p.age >= 0,
        "first part": lambda p: p.name == name,
        "both parts": lambda p: p.name == name and p.age > x,
        "begins": lambda p: p.name.startswith("name"),
        "member": lambda p: p.kind is Kind.RED,
        "not the member": lambda p: p.kind is not Kind.RED,
        "time": lambda p: p.at > times,
        "not None": lambda p: p.nick is not None and p.nick.startswith("nick"),
        "optional": lambda p: p.nick == nick,
        "folded": lambda p: p.place.city.casefold() == "oslo",
        "all that have one": lambda p: p.nick is not None,
        "all that have none": lambda p: p.nick is None,
        "not equal": lambda p: p.age != x,
        "not among": lambda p: p.age not in few,
        "another first part": lambda p: p.name != name,
        "another optional": lambda p: p.nick != nick,
        "another time": lambda p: p.at != times,
        "folded otherwise": lambda p: p.place.city.casefold() != "oslo",
        "without the element": lambda p: tag not in p.tags,
    }


@pytest.mark.parametrize("name", asked(0))
def test_entries_are_counted_where_they_tell_all_and_nothing_is_decoded(
    table: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    def count(x: int) -> int:
        found: int = table.where(asked(x)[name]).count()
        return found

    count(1), count(1)
    expected = [sum(1 for one in table.values() if asked(x)[name](one)) for x in range(25)]
    counts = CachedCount.count
    told: list[Any] = []
    monkeypatch.setattr(CachedCount, "count", lambda *args: told.append(counts(*args)) or told[-1])
    monkeypatch.delattr(Running, "rows")
    assert [count(x) for x in range(25)] == expected
    assert told == expected


UNTOLD: dict[str, Callable[[Person], bool]] = {
    "another field": lambda p: p.age == 3 and p.place.country == "NO",
    "twice": lambda p: p.age > 3 and p.age > 5,
    "a float": lambda p: p.score > 9,
    "an element": lambda p: "tag1" in p.tags,
    "no range": lambda p: p.age != 3 and p.score < 9,
    "another type": lambda p: p.age >= 3.5,
    "called": lambda p: p.age > 3 and len(repr(p)) > 9,
    "no bound": lambda p: not p.age > 3,
    "another float": lambda p: p.score != 3,
}


@pytest.mark.parametrize("name", UNTOLD)
def test_what_entries_do_not_tell_is_asked_of_records(table: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matches = UNTOLD[name]
    expected = sum(1 for one in table.values() if matches(one))
    assert [table.where(matches).count() for _ in range(3)] == [expected] * 3


def test_two_conditions_of_the_same_words_are_both_asked(table: Any) -> None:
    def over(x: int) -> Callable[[Person], bool]:
        return lambda p: p.age > x

    for few, many in ((3, 7), (7, 3), (3, 7)):
        assert table.where(over(few)).where(over(many)).count() == 400 // 20 * 12


def test_limits_and_skipped_rows_count(table: Any) -> None:
    found = table.where(lambda p: p.age >= 10)
    for _ in range(3):
        assert [found.count(), found.limit(30).count(), found.limit(30, 190).count(), found.limit(1, 900).count()] == [
            200, 30, 10, 0,
        ]  # fmt: skip
    assert table.select(100).where(lambda p: p.age >= 10).count() == 150


def test_a_time_without_a_zone_is_refused_as_ever(table: Any) -> None:
    def since(time: datetime) -> int:
        found: int = table.where(lambda p: p.at >= time).count()
        return found

    assert [since(FIRST), since(FIRST), since(FIRST)] == [400] * 3
    with pytest.raises(TypeError, match="time zone"):
        since(FIRST.replace(tzinfo=None))


def test_a_value_that_no_key_can_be_counts_as_python_counts(table: Any) -> None:
    def over(x: Any) -> int:
        found: int = table.where(lambda p: p.age > x).count()
        return found

    assert [over(3), over(3), over(2**70), over(-(2**70)), over(3.5), over(True)] == [320, 320, 0, 400, 320, 360]

    def other(x: Any) -> int:
        found: int = table.where(lambda p: p.age != x).count()
        return found

    assert [other(3), other(3), other(2**70), other(3.5), other(True), other(None)] == [380, 380, 400, 400, 380, 400]
    assert [other(float("nan")), other(3.0), other(3)] == [400, 380, 380]


@pytest.mark.parametrize("names", [("nick1", "nick2"), ("nick1", None), (None,), (), ["nick0", None], {"nick1", None}])
def test_none_among_the_members_counts_as_python_counts(table: Any, names: Any) -> None:
    rows = list(table.values())
    for _ in range(3):
        assert table.where(lambda p: p.nick in names).count() == sum(1 for p in rows if p.nick in names)
        assert table.where(lambda p: p.nick not in names).count() == sum(1 for p in rows if p.nick not in names)
        for name in names:
            assert table.where(lambda p, name=name: p.nick != name).count() == sum(1 for p in rows if p.nick != name)


def test_a_write_transaction_counts_what_it_has_written(db: Any) -> None:
    def older() -> tuple[int, int]:
        return t.people.where(lambda p: p.age > 10).count(), t.flat.where(lambda p: p.age > 10).count()

    with db.read() as t:
        older(), older()
    with db.write() as t:
        before = older()
        del t.people[19]
        t.flat[10_000] = person(15)
        after = older()
        t.txn.abort()
    assert (before, after) == ((180, 180), (179, 181))


ENDS: dict[str, Callable[[Person], Any]] = {
    "a descending index": lambda p: p.age,
    "a time": lambda p: p.at,
    "the second part": lambda p: p.age,
}


@pytest.mark.parametrize("name", ENDS)
def test_the_least_and_the_greatest_come_from_the_ends_of_an_index(
    table: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    def found(n: int) -> Any:
        text = f"name{n}"
        return (table.where(lambda p: p.name == text) if name == "the second part" else table).fields(ENDS[name])

    rows = list(table.values())
    found(0).max(), found(0).all()
    monkeypatch.delattr(Running, "rows")
    for n in (3, 4, 3):
        few = [ENDS[name](one) for one in rows if name != "the second part" or one.name == f"name{n}"]
        assert (found(n).min(), found(n).max()) == (min(few), max(few))
    if name == "the second part":
        assert (found(99).min(), found(99).max()) == (None, None)


def test_a_new_function_is_not_asked_of_all_records(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Running, "rows")
    assert table.fields(lambda p: p.age).max() == 19
    assert table.where(lambda p: p.age > 2).count() == 340


def test_the_least_of_what_no_index_sorts_alone_is_that_of_all_rows(table: Any) -> None:
    rows = list(table.values())
    for _ in range(3):
        assert table.fields(lambda p: p.score).max() == max(one.score for one in rows)
        assert table.fields(lambda p: -p.age).max() == max(-one.age for one in rows)
        assert table.where(lambda p: p.score < 9).fields(lambda p: p.age).max() == 19
        assert table.select(5, 9).fields(lambda p: p.age).min() == 5
        assert table.where(lambda p: p.nick is not None).fields(lambda p: p.nick).min() == "nick0"
        assert table.select().limit(4).fields(lambda p: p.age).max() == 3


def test_the_greatest_in_a_write_transaction_is_that_of_what_it_has_written(db: Any) -> None:
    with db.write() as t:
        t.people[5] = person(77)
        found = t.people.fields(lambda p: p.at).max()
        t.people[9_999] = person(9_999)
        assert (found, t.people.fields(lambda p: p.at).max()) == (person(399).at, person(9_999).at)
        t.txn.abort()


class Ambiguous(tzinfo):
    """A zone all of whose hours are shown twice, as one is at the end of summer."""

    def utcoffset(self, time: Optional[datetime], /) -> timedelta:
        return timedelta(hours=1 if time is not None and time.fold else 2)

    def dst(self, time: Optional[datetime], /) -> timedelta:
        return timedelta(0)

    def tzname(self, time: Optional[datetime], /) -> str:
        return "ambiguous"


@dataclass
class Visit:
    at: datetime
    number: int


class Visits(zlmdb.Table[int, Visit]):
    by_at = zlmdb.Index[datetime]("at")


class Both(zlmdb.Table[int, Visit]):
    by_both = zlmdb.Index[tuple[datetime, int]]("at", "number")


class Seen(zlmdb.Schema):
    visits: Visits
    both: Both


@pytest.mark.parametrize("table", ["visits", "both"])
def test_a_time_that_its_zone_shows_twice_equals_none_of_another_zone(table: str) -> None:
    """PEP 495; an index counted the records of the same moment, and gave them twice for this time and that one."""
    shown = datetime(2026, 10, 25, 2, 30, tzinfo=Ambiguous())
    moment = shown.astimezone(timezone.utc)
    with zlmdb.open(None, Seen) as db:
        with db.write() as t:
            for number in range(40):
                getattr(t, table)[number] = Visit(moment if number < 3 else FIRST + timedelta(hours=number), number)
        with db.read() as t:
            visits: Any = getattr(t, table)
            for time, members, found in ((shown, [shown, moment], 0), (moment, [moment, shown], 3)):
                for _ in range(3):  # the second time it is compiled
                    assert visits.where(lambda v, time=time: v.at == time).count() == found
                    assert len(visits.where(lambda v, time=time: v.at == time).values().all()) == found
                    greatest = visits.where(lambda v, time=time: v.at == time).fields(lambda v: v.number).max()
                    assert greatest == (2 if found else None)
                    among = visits.where(lambda v, members=members: v.at in members)
                    assert among.keys().all() == [0, 1, 2]
                    assert among.count() == 3
                    few = visits.where(lambda v, members=members: v.at in members and v.number in (1, 2))
                    assert few.keys().all() == [1, 2]


def test_entries_of_elements_and_of_partial_indexes_are_counted(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def counts(tag: str, age: int) -> list[int]:
        people = t.people
        return [
            people.where(lambda p: tag in p.tags).count(),
            people.where(lambda p: p.age < 3).count(),
            people.where(lambda p: p.age < 3 and p.age >= age).count(),
            people.where(lambda p: any(one == tag for one in p.tags)).count(),
            people.where(lambda p: any(one == tag and len(one) > 4 for one in p.tags)).count(),
            people.where(lambda p: tag in p.tags and p.age < 3).count(),
            people.where(lambda p: p.age < age).count(),
        ]

    def expected(tag: str, age: int) -> list[int]:
        rows = list(t.people.values())
        tagged = [one for one in rows if tag in one.tags]
        young = [one for one in rows if one.age < 3]
        return [
            len(tagged), len(young), len([one for one in young if one.age >= age]), len(tagged), 0,
            len([one for one in tagged if one.age < 3]), len([one for one in rows if one.age < age]),
        ]  # fmt: skip

    for begin in (db.read, db.write):
        with begin() as t:
            for tag, age in (("tag1", 1), ("tag4", 2), ("none", 0), ("tag0", 7), ("tag1", 3)):
                assert counts(tag, age) == expected(tag, age)
    told: list[Optional[int]] = []
    count = CachedCount.count
    monkeypatch.setattr(CachedCount, "count", lambda *given: told.append(count(*given)) or told[-1])
    with db.read() as t:
        found = counts("tag2", 2)
    assert told == [*found[:3], found[-1]]  # the others take records


EXTREMES: list[tuple[str, Callable[[Person], Any]]] = [
    ("equal", lambda p: p.age),
    ("bounds", lambda p: p.age),
    ("two", lambda p: p.age),
    ("most of all", lambda p: p.age),
    ("first part", lambda p: p.age),
    ("both parts", lambda p: p.age),
    ("time", lambda p: p.at),
    ("not None", lambda p: p.nick),
    ("folded", lambda p: p.place.city.casefold()),
    ("begins", lambda p: p.age),
    ("member", lambda p: p.age),
]


@pytest.mark.parametrize(("name", "give"), EXTREMES)
def test_extremes_of_other_captured_values_are_those_of_lists(
    table: Any, name: str, give: Callable[[Person], Any]
) -> None:
    people = list(table.values())
    for x in (5, 5, *range(25), 3.5, True, 2**70, -(2**70)):
        if name in ("first part", "time", "not None", "folded", "begins", "member") and not 0 <= x < 30:
            continue
        holds = asked(x if type(x) is int and abs(x) < 30 else 5)[name] if name != "most of all" else asked(0)[name]
        if name in ("equal", "two"):
            holds = {"equal": lambda p, x=x: p.age == x, "two": lambda p, x=x: p.age >= x and p.age < 9}[name]
        found = table.where(holds).fields(give)
        values = [give(one) for one in people if holds(one)]
        assert repr(found.max()) == repr(max(values, default=None))
        assert repr(found.min()) == repr(min(values, default=None))


def test_the_index_of_an_extreme_is_chosen_once(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def oldest(x: int) -> tuple[Any, ...]:
        name = f"name{x}"
        found, above = people.where(lambda p: p.name == name), people.where(lambda p: p.age > x)
        every = people.fields(lambda p: p.age)
        ages = found.fields(lambda p: p.age), above.fields(lambda p: p.age), every
        return tuple([(one.min(), one.max()) for one in ages])

    chosen: list[Any] = []
    choose = counted.order_access
    monkeypatch.setattr(counted, "order_access", lambda *args: chosen.append(args) or choose(*args))
    for begin in (db.read, db.write):
        with begin() as t:
            people = t.people
            for x in range(3):
                oldest(x)
            chosen.clear()
            assert [oldest(x) for x in (1, 6, 19)] == [
                ((0, 19), (2, 19), (0, 19)), ((0, 19), (7, 19), (0, 19)), ((None, None), (None, None), (0, 19)),
            ]  # fmt: skip
            assert not chosen
            if begin == db.write:
                people[1000] = Person("name1", 30, 0.0, Kind.RED, FIRST, Place("NO", "Oslo"))
                del people[0]
                assert oldest(1) == ((0, 30), (2, 30), (0, 30))
                t.txn.abort()
