"""Elements of captured containers, fields of named tuples, and partials: an index is asked for them as for others."""

from __future__ import annotations

import functools
import itertools
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any, NamedTuple, Optional
from zoneinfo import ZoneInfo

import pytest

import zlmdb


@dataclass
class Person:
    name: str
    age: int
    seen: datetime
    note: Optional[str] = None


class Persons(zlmdb.Table[int, Person]):
    by_name = zlmdb.Index[str]("name")
    by_age = zlmdb.Index[int]("age")
    by_seen = zlmdb.Index[datetime]("seen")
    by_note = zlmdb.Index[str]("note")


class Town(zlmdb.Schema):
    persons: Persons


class Typed(NamedTuple):
    age: int
    name: str


Untyped = namedtuple("Untyped", "age name")

NOON = datetime(2026, 10, 25, 12, tzinfo=timezone.utc)


@pytest.fixture
def t() -> Any:
    with zlmdb.open(None, Town) as db:
        with db.write() as t:
            for number in range(40):  # more than the first ones, which are compared
                t.persons[number] = Person(f"n{number}", number % 20, NOON.replace(minute=number))
        with db.read() as t:
            yield t


def older(person: Person, least: int, most: int = 99) -> bool:
    return least <= person.age < most


Make = Callable[[Any], Any]

BY_AN_INDEX: dict[str, tuple[Make, Any, Any]] = {
    "dict": (lambda form: lambda p: p.name == form["name"], {"name": "n3"}, {"name": "n30", "x": 1}),
    "get": (lambda form: lambda p: p.age == form.get("age"), {"age": 3}, {"age": 7}),
    "nested": (lambda form: lambda p: p.age == form["a"][1]["b"], {"a": [0, {"b": 3}]}, {"a": (0, {"b": 19})}),
    "list": (lambda row: lambda p: p.age >= row[1], [1, 18], [2, 19]),
    "prefix": (lambda form: lambda p: p.name.startswith(form["q"]), {"q": "n1"}, {"q": "n39"}),
    "tuple": (lambda row: lambda p: p.age == row[0] and p.name != row[-1], (3, "n3"), (4, "n24")),
    "unpacked": (lambda row: lambda p: (lambda age, name: p.age == age and p.name != name)(*row), (3, "n3"), (4, "x")),
    "prefixes": (lambda row: lambda p: p.age == 3 and any([p.name.endswith(one) for one in row]), ("3", "x"), ("q",)),
    "range": (lambda ages: lambda p: p.age in ages, range(2, 4), range(7, 8)),
    "among": (lambda ages: lambda p: p.age in ages, {3: "x", 4: "y"}, {7: "z"}),
    "split": (lambda text: lambda p: p.name == text.split(",")[1], "x,n3", "y,n7,z"),
    "first": (lambda text: lambda p: p.name.startswith(text[0]), "n", "x"),
    "computed": (lambda form: lambda p: p.age == form["age"] + 1, {"age": 2}, {"age": 6}),
    "keys": (lambda form: lambda p: p.age in form.keys(), {3: "x", 4: "y"}, {7: "z"}),  # noqa: SIM118
    "values": (lambda form: lambda p: p.age in form.values(), {"x": 3, "y": 4, "z": 3}, {"z": 7}),
    "no values": (lambda form: lambda p: p.age in form.values(), {"x": 3}, {}),
    "percent": (lambda age: lambda p: p.name == "n%s" % age, 3, 7),  # noqa: UP031
    "percent of an element": (lambda form: lambda p: p.name == "n%d" % form["age"], {"age": 3}, {"age": 7}),  # noqa: UP031
    "percents": (lambda row: lambda p: p.name == "%s%d" % (row[0], row[1]), ("n", 3), ("n", 7)),  # noqa: UP031
    "converted": (lambda age: lambda p: p.name == f"n{age!s}", 3, 7),
    "typed": (lambda row: lambda p: p.age == row.age and p.name != row.name, Typed(3, "n3"), Typed(4, "n24")),
    "untyped": (lambda row: lambda p: p.name == row.name, Untyped(3, "n3"), Untyped(4, "n24")),
    "partial": (lambda least: functools.partial(older, least=least), 3, 17),
    "partials": (lambda least: functools.partial(functools.partial(older, most=18), least=least), 3, 17),
}


@pytest.mark.parametrize("name", BY_AN_INDEX)
def test_an_index_is_asked_for_the_value(t: Any, name: str) -> None:
    make, first, second = BY_AN_INDEX[name]
    for given in (first, second, first):
        asked = t.persons.where(make(given))
        assert "index by_" in str(asked.explain())
        assert asked.keys().all() == [key for key, person in t.persons.items() if make(given)(person)]


def test_it_is_what_the_container_holds_when_the_query_runs(t: Any) -> None:
    form: dict[str, Any] = {"age": 3}
    asked = t.persons.where(lambda p: p.age == form["age"])
    for age in (3, 4, 3, "3", None, 3.0, True):
        form["age"] = age
        assert asked.keys().all() == [key for key, person in t.persons.items() if person.age == age]
        assert asked.count() == asked.keys().count() == len(asked.keys().all())


def test_the_values_of_a_dict_are_compared_as_python_does(t: Any) -> None:
    form: dict[str, Any] = {}

    def asked() -> Any:
        return t.persons.where(lambda p: p.age in form.values())

    before = asked()
    for values in ([3], [3, 4], [3, "3"], [None], [[3], 4], [3.0, 4.5], [True, 1], [float("nan")], [2**70], []):
        form.clear()
        form.update(enumerate(values))
        expected = [key for key, person in t.persons.items() if person.age in values]
        for one in (before, asked(), asked()):
            assert one.keys().all() == expected
            assert one.count() == len(expected)


def test_a_key_that_is_not_there_is_the_error_of_the_function(t: Any) -> None:
    form: dict[str, Any] = {"age": 3}

    def asked() -> Any:
        return t.persons.where(lambda p: p.age == form["age"])

    assert asked().count() == 2
    before = asked()
    del form["age"]
    for one in (before, asked()):
        with pytest.raises(KeyError, match="age"):
            one.keys().all()
    text = ""
    with pytest.raises(IndexError):
        t.persons.where(lambda p: p.name == text[0]).first()


def test_none_and_values_of_other_types_are_compared_as_python_does(t: Any) -> None:
    for value in (None, 3, "n3", ["n3"], {"n3"}, b"n3"):
        form = {"name": value}
        assert t.persons.where(lambda p: p.note == form["name"]).count() == (40 if value is None else 0)  # noqa: B023
        assert t.persons.where(lambda p: p.name == form["name"]).count() == (value == "n3")  # noqa: B023


def test_percent_takes_the_elements_of_a_tuple(t: Any) -> None:
    def asked(value: Any) -> Any:
        return t.persons.where(lambda p: p.name == "%s" % value)  # noqa: UP031

    assert [asked(value).keys().all() for value in ("n30", ("n30",), ["n30"], ("n31",))] == [[30], [30], [], [31]]


def test_texts_made_by_percent_are_read_once(t: Any) -> None:
    def asked(value: Any) -> Any:
        return t.persons.where(lambda p: p.name == "n%s" % value or f"{value!s}" == p.name)  # noqa: UP031

    for value in (3, 7, 39, True, "30", 3.0, None, -0.0, 0.0):
        assert asked(value).keys().all() == [n for n in range(40) if f"n{n}" == f"n{value}"]
    said = [str(asked(value).explain()) for value in (3, 7)]
    assert said[0] == said[1]
    assert "str(value)" in said[0]


def test_a_text_that_percent_takes_may_be_other_things_too(t: Any) -> None:
    def asked(value: Any) -> Any:
        return t.persons.where(lambda p: "n%s" % value == p.name and p.name != "n%s")  # noqa: UP031

    def padded(value: Any) -> Any:
        return t.persons.where(lambda p: p.name == f"{value!s:>3}".strip() or p.name == f"{value}%s" % 1)

    for value in (3, 7):
        assert asked(value).keys().all() == [value]
        assert padded(f"n{value}").keys().all() == [value, value * 10 + 1][: 2 if value < 4 else 1]


def test_what_a_method_refuses_is_the_error_of_the_function(t: Any) -> None:
    for value in ("n30", 3):
        asked = t.persons.where(lambda p: p.age == 19 and all((p.age == 20, p.name.startswith(value))))  # noqa: B023
        if value == "n30":
            assert asked.count() == 0
        else:
            with pytest.raises(TypeError, match="startswith"):
                asked.count()
    for value in (3, "3"):
        asked = t.persons.where(lambda p: p.age == 19 and p.name == "n%d" % value)  # noqa: B023, UP031
        if value == 3:
            assert asked.count() == 0
        else:
            with pytest.raises(TypeError, match="%d"):
                asked.count()


class Ruled(tzinfo):
    """A zone of a program: nothing says that its rules stay."""

    def utcoffset(self, when: Optional[datetime]) -> timedelta:
        return timedelta(hours=1)

    def dst(self, when: Optional[datetime]) -> timedelta:
        return timedelta(0)


def test_times_in_zones_whose_rules_may_change_are_asked_of_each_record(t: Any) -> None:
    for zone in (timezone.utc, ZoneInfo("Europe/Berlin"), Ruled(), timezone.utc):
        form = {"at": NOON.replace(minute=38).astimezone(zone)}
        asked = t.persons.where(lambda p: p.seen >= form["at"])  # noqa: B023
        assert asked.keys().all() == [38, 39]
        assert ("all records" in str(asked.explain())) is isinstance(zone, Ruled)


def test_an_index_finds_times_of_a_zone_whatever_was_asked_before() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    twice = [datetime(2026, 10, 25, 2, minute, tzinfo=berlin, fold=fold) for minute in (15, 45) for fold in (0, 1)]
    never, once = datetime(2026, 3, 29, 2, 30, tzinfo=berlin), datetime(2026, 10, 25, 3, 1, tzinfo=berlin)
    with zlmdb.open(None, Town) as db:
        with db.write() as t:
            for n in range(400):
                seen = datetime(2026, 10, 24, 23, tzinfo=timezone.utc) + timedelta(minutes=n)
                t.persons[n] = Person(f"n{n}", n % 50, seen)
        with db.read() as t:
            persons = dict(t.persons)
            for one, other in itertools.product([*twice, never, once, once.astimezone(timezone.utc)], repeat=2):
                for function in (
                    lambda p: one <= p.seen < other,  # noqa: B023
                    lambda p: one < p.seen and other < p.seen,  # noqa: B023
                    lambda p: p.seen < one and p.seen < other,  # noqa: B023
                    lambda p: p.seen == one,  # noqa: B023
                    lambda p: p.seen in (one, other),  # noqa: B023
                    lambda p: p.seen >= one and p.seen == other,  # noqa: B023
                ):
                    asked = t.persons.where(function)
                    found = [key for key, person in persons.items() if function(person)]
                    assert (asked.keys().all(), asked.count()) == (found, len(found))
            plan = t.persons.where(lambda p: twice[2] <= p.seen < twice[1]).explain()
            assert plan.indexes == ("by_seen",)


class Number(float):
    """As numpy's float64, a float that compares by functions of its own."""

    def __gt__(self, other: object) -> bool:
        return isinstance(other, float) and float(self) > other


def test_the_plan_says_that_a_value_of_another_type_is_compared(t: Any) -> None:
    limit = Number(3.5)
    asked = t.persons.where(lambda p: limit > p.age)
    assert asked.keys().all() == [key for key, person in t.persons.items() if limit > person.age]
    assert "zlmdb" not in str(asked.explain())
    numpy = pytest.importorskip("numpy")
    for number in (numpy.float64(3.5), numpy.int64(3)):
        asked = t.persons.where(lambda p: p.age < number)  # noqa: B023
        assert asked.count() == sum(person.age < number for person in t.persons.values())
        assert f"comparing of number, which is a {type(number).__name__}" in str(asked.explain())


def test_an_error_that_names_what_was_searched_is_the_functions(t: Any) -> None:
    ages = 3, 4
    asked = t.persons.where(lambda p: p.age < 99 and list(ages).index(p.age) == 0)
    with pytest.raises(ValueError, match="not in list"):
        asked.count()
    kept = t.persons.where(lambda p: p.age in (3, 4) and [3, 4].index(p.age) == 1)
    assert kept.keys().all() == [4, 24]
