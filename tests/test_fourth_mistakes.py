"""What newcomers write first, in notebooks, in tests and from other stores: the last line says what to do."""

from __future__ import annotations

import enum
import sys
import typing
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, make_dataclass
from datetime import date, datetime
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb.values import serializer


class Store(zlmdb.Schema):
    jobs: zlmdb.Queue[str]


class Local(datetime):
    """As pandas and freezegun have one."""


class Stamp(datetime):
    def to_pydatetime(self) -> datetime:
        return datetime(self.year, self.month, self.day)


class NaTType(datetime):
    """As pandas has one, for a time that is missing; its ``to_pydatetime`` returns itself."""

    __module__ = "pandas.api.typing"


class Ambiguous:
    """As arrays and ``pandas.NA`` are, it cannot be asked whether it equals something."""

    def __eq__(self, other: object) -> Any:
        return self

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise ValueError("the truth value is ambiguous")

    def __repr__(self) -> str:
        return "an array of numbers"


@dataclass
class Moment:
    when: datetime
    names: dict[str, int]


@pytest.mark.parametrize("form", [zlmdb.Msgpack, zlmdb.Json])
@pytest.mark.parametrize("around", [lambda cls: cls, lambda cls: Optional[cls], lambda cls: list[cls]])
def test_an_object_of_a_class_that_was_defined_again_is_told_as_such(form: Any, around: Any) -> None:
    """A cell of a notebook that runs twice makes another class of the same name."""
    one, other = make_dataclass("City", [("name", str)]), make_dataclass("City", [("name", str)])
    one.__module__ = other.__module__ = __name__
    value = [other("Bonn")] if around(one) == list[one] else other("Bonn")  # type: ignore[valid-type]
    with pytest.raises(zlmdb.EncodeError, match=r"another class of this name: it was defined again.* open the data"):
        serializer(form[around(one)]).encode(value)


def test_a_member_of_an_enum_that_was_defined_again_is_told_as_such() -> None:
    one, other = enum.Enum("Color", {"RED": "red"}), enum.Enum("Color", {"RED": "red"})
    with pytest.raises(zlmdb.EncodeError, match="another class of this name"):
        serializer(one).encode(other.RED)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (Moment(Local(2026, 1, 1), {}), "a subclass, which would be read as datetime.datetime: convert it, with datet"),
        (Moment(Stamp(2026, 1, 1), {}), r"convert it, with its .to_pydatetime\(\)"),
        (
            Moment(NaTType(1, 1, 1), {}),
            "as pandas has for a missing value: give None in place of it, and the field an Op",
        ),
        (Moment(float("nan"), {}), r"got nan \(float\), as pandas has for a missing value: give None"),  # type: ignore[arg-type]
        (Moment(Ambiguous(), {}), "expected datetime.datetime, got an array of numbers"),  # type: ignore[arg-type]
        (Moment(datetime(2026, 1, 1), OrderedDict(a=1)), r"read as dict: convert it, with dict\(...\)"),
    ],
)
def test_an_object_of_a_subclass_is_refused_with_what_to_do(value: Moment, advice: str) -> None:
    with pytest.raises(zlmdb.EncodeError, match=advice):
        serializer(Moment).encode(value)


def test_get_of_a_queue_without_a_key_says_how_a_job_is_claimed() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        queue: Any = t.jobs
        with pytest.raises(TypeError, match=r"get\(\) looks up the key of a job: write .claim\(\)"):
            queue.get()
        t.jobs.put("one")
        key, job = next(iter(t.jobs.items()))
        assert t.jobs.get(key) == job
        assert queue.get((0, 0, key[2]), None) == job


def _yields_nothing() -> int:
    return 1


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda cache: cache.set(1, 2), "the cache, key 1: 1 is not a key of type str"),
        (lambda cache: cache.set("", 2), "the cache: the key is empty"),
        (lambda cache: cache.evict(5), r"evict\(5\): expected a tag, which is a text"),
        (
            lambda cache: cache.memoize(60)(_yields_nothing),
            r"memoize\(60\): expected the name of the results.* write expire=",
        ),
        (lambda cache: zlmdb.Cache(None, Moment, str), r"Cache\(path, key, value\): .*Moment is not a key type"),
    ],
)
def test_a_mistake_with_a_cache_is_told_of_the_cache_and_not_of_its_tables(asked: Any, advice: str) -> None:
    with zlmdb.Cache(None) as cache, pytest.raises((TypeError, zlmdb.EncodeError), match=f"^{advice}"):
        asked(cache)


@dataclass
class Person:
    name: str
    born: date
    tags: list[str]
    city: Optional[str] = None

    def is_tagged(self) -> bool:
        return bool(self.tags)


class People(zlmdb.Schema):
    people: zlmdb.Table[int, Person]


def _yields(person: Person) -> Iterator[bool]:
    yield person.name == "Ann"


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda p: p.order_by(lambda r: -r.name), r"-r.name: a str has no sign; write desc\(...\) in order_by"),
        (lambda p: p.order_by(lambda r: (r.name, -r.born)), "-r.born: a datetime.date has no sign; write desc"),
        (lambda p: p.fields(lambda r: r.name).sum(), "sum: unsupported .*: give a function that returns numbers"),
        (lambda p: p.fields(lambda r: r.city).mean(), "mean: unsupported .*: give a function that returns numbers"),
        (lambda p: p.fields(lambda r: r.tags).distinct().all(), r"distinct: unhashable .* no lists, but tuple\(...\)"),
        (lambda p: p.group_by(lambda r: r.tags, lambda g: g.count()), r"group_by: unhashable .*, but tuple\(...\)"),
        (lambda p: p.group_by(lambda r: r.tags, lambda g: g.first()), r"group_by: unhashable .*, but tuple\(...\)"),
        (lambda p: p.where(_yields), "_yields .* has 'yield' in it: a query needs the answer itself"),
        (lambda p: p.where(lambda r: r.is_tagged), r"gives the method is_tagged itself.*: call it, is_tagged\(\)"),
        (lambda p: p.where(lambda r: r.born and r.name.isupper), r"the method isupper itself.*: call it, isupper\(\)"),
    ],
)
def test_a_function_that_gives_no_answer_says_what_it_should_give(asked: Any, advice: str) -> None:
    with zlmdb.open(None, People) as db:
        with db.write() as t:
            t.people[1] = Person("Ann", date(2000, 1, 1), ["a"])
            t.people[2] = Person("Bob", date(2001, 1, 1), [])
        with db.read() as t, pytest.raises(TypeError, match=advice):
            asked(t.people)


@pytest.mark.parametrize(
    ("field", "advice"), [("name.upper", r"or write 'name.upper\(\)'"), ("-name", r", or desc\('name'\)")]
)
def test_an_index_of_a_field_that_is_written_otherwise_says_how(field: str, advice: str) -> None:
    class Indexed(zlmdb.Table[int, Person]):
        by_name = zlmdb.Index[str](field)

    class Wrong(zlmdb.Schema):
        people: Indexed

    with pytest.raises(TypeError, match=advice):
        zlmdb.open(None, Wrong)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="typing has ReadOnly since Python 3.13")
@pytest.mark.parametrize("form", [zlmdb.Msgpack, zlmdb.Json, zlmdb.Cbor, zlmdb.FlatBuffers])
def test_an_item_that_is_read_only_for_checkers_is_stored_as_any_other(form: Any) -> None:
    read_only: Any = vars(typing)["ReadOnly"]
    Item: Any = typing.TypedDict("Item", {"a": int, "b": read_only[str]})
    Items = make_dataclass("Items", [("one", Item), ("all", list[Item])])
    value = Items({"a": 1, "b": "x"}, [{"a": 2, "b": "y"}])
    codec = serializer(form[Items])
    assert codec.decode(codec.encode(value)) == value
    with pytest.raises(zlmdb.EncodeError, match=r"one.*b.*: expected str.*, got 3"):
        codec.encode(Items({"a": 1, "b": 3}, []))
