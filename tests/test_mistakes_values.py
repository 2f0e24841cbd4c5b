"""What newcomers get wrong with values: each is told what to write instead."""

from __future__ import annotations

import enum
import sys
import typing
from collections import OrderedDict
from dataclasses import dataclass, field, make_dataclass
from datetime import datetime
from typing import Any, Optional

import pytest
from newcomers import Moment, Post, Task

import zlmdb
from zlmdb.values import serializer
from zlmdb.values.base import FunctionSerializer
from zlmdb.values.depth import limited


def test_plain_data_that_does_not_fit_is_called_the_value() -> None:
    told = r"^the cache, key 'task': the value: expected plain data"
    with zlmdb.Cache(None) as cache, pytest.raises(zlmdb.EncodeError, match=told):
        cache["task"] = Task("One")


def test_a_member_of_another_type_than_the_elements_is_named_before_the_list(blog: Any) -> None:
    said = r"'python' in p.tags: an element of p.tags is of type int, which 'python' \(str\) is not"
    with blog.read() as t:
        with pytest.raises(TypeError, match=said):
            t.posts.where(lambda p: "python" in p.tags)
        with pytest.raises(TypeError, match=r"p.likes in .*: p.likes is of type int"):
            t.posts.where(lambda p: p.likes in ["a"])


def test_an_object_that_holds_itself_is_told_so() -> None:
    @dataclass
    class Node:
        inner: list[Node] = field(default_factory=list)

    class Tree(zlmdb.Schema):
        nodes: zlmdb.Table[int, Node]

    node = Node()
    node.inner.append(node)
    with zlmdb.open(None, Tree) as tree, tree.write() as t, pytest.raises(zlmdb.EncodeError, match="nested"):
        t.nodes[1] = node


def test_an_end_of_the_stack_while_an_exception_is_noted_is_told_too() -> None:
    def encode(value: Any) -> bytes:  # what PyPy raises at some depths
        raise TypeError("couldn't record exception context for exception 'RecursionError', got: RecursionError('...')")

    with pytest.raises(zlmdb.EncodeError, match="nested"):
        FunctionSerializer("test", encode, bytes).encode([])
    with pytest.raises(ValueError, match="nested"):
        limited(encode, bool)([])


def test_a_number_of_numpy_in_a_field_is_told_how_to_convert_it(blog: Any) -> None:
    numpy = pytest.importorskip("numpy", reason="the test needs numpy")
    with blog.write() as t, pytest.raises(zlmdb.EncodeError, match=r"expected int, .*convert it, with its .item\(\)"):
        t.posts[3] = Post("x", numpy.int64(3))


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
