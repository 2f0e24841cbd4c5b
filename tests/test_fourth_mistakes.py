"""What newcomers write first, in notebooks, in tests and from other stores: the last line says what to do."""

from __future__ import annotations

import enum
from collections import OrderedDict
from dataclasses import dataclass, make_dataclass
from datetime import datetime
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
