"""Lists of texts in FlatBuffers that come again and again: written at once, and no different for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from zlmdb.errors import EncodeError
from zlmdb.values import FlatBuffers, serializer
from zlmdb.values.flat import runtime
from zlmdb.values.flat.texts import FEW, LONG, TextLists
from zlmdb.values.recurring import EVERY, MANY, OFTEN

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

TURNS = (EVERY + 1) * OFTEN
"""How many times a list is written until it is known."""


class Word(str, Enum):
    GEEK = "geek"


class Text(str):
    """Text, and not str."""


@dataclass
class Tagged:
    name: str
    tags: list[str]


def test_a_list_that_recurs_is_the_same_bytes() -> None:
    for tags in ([], [""], ["geek", "sudoko", "yellow"], ["ä", "日本"], ["x"] * FEW, ["y" * LONG]):
        codec = serializer(FlatBuffers[Tagged])
        fresh = codec.encode(Tagged("n", tags))
        for _ in range(TURNS):
            assert codec.encode(Tagged("n", tags)) == fresh
        assert codec.decode(fresh) == Tagged("n", tags)


def test_what_recurs_is_remembered_and_nothing_else() -> None:
    lists = TextLists()
    for turn in range(20 * TURNS):
        lists.write([str(turn)])
    assert not lists
    for _ in range(600 * TURNS):  # after so many that are all different, it seldom looks
        lists.write(["geek", "yellow"])
    assert list(lists) == [("geek", "yellow")]
    assert lists.write(["geek", "yellow"]) is lists["geek", "yellow"]
    for turn in range(3 * MANY):
        for _ in range(2 * TURNS):
            lists.write([f"tag {turn}"])
    assert len(lists) <= MANY


def test_long_lists_are_not_remembered() -> None:
    lists = TextLists()
    for _ in range(2 * TURNS):
        lists.write(["x"] * FEW)
        lists.write(["y" * LONG])
    assert not lists


@pytest.mark.parametrize("wrong", [Word.GEEK, Text("geek"), b"geek", None, 1])
def test_a_known_list_refuses_what_an_unknown_one_refuses(wrong: Any) -> None:
    codec = serializer(FlatBuffers[Tagged])
    for turn in range(2):
        with pytest.raises(EncodeError, match="tags"):
            codec.encode(Tagged("n", [wrong]))
        for _ in range(TURNS):
            codec.encode(Tagged("n", ["geek"]))
        if turn == 0 and not runtime.BY_ARRAY:
            names = codec.raw_encode.__globals__
            (known,) = (one for name, one in names.items() if name.startswith("strs__"))
            assert list(known.__self__) == [("geek",)]
