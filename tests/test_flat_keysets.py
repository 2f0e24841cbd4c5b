"""Dicts in FlatBuffers whose keys come again and again: read and written at once, and no different for it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Annotated, Any, Optional

import pytest

from zlmdb.errors import EncodeError
from zlmdb.values import F32, I16, FlatBuffers, Unchecked, serializer
from zlmdb.values.flat import runtime
from zlmdb.values.flat.codec import Codec
from zlmdb.values.flat.keysets import FEW, LONG
from zlmdb.values.recurring import EVERY, MANY, MISSES, OFTEN, Known

from .test_flat_fuzz import BUFFERS, mutated, outcome

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python


class Colour(Enum):
    RED = 1
    BLUE = 2


VALUES: list[tuple[Any, list[Any]]] = [
    (float, [0.5, -1e300, 3]),
    (int, [0, -(2**63), 2**63 - 1]),
    (bool, [True, False]),
    (Annotated[float, F32], [0.5, -2.0]),
    (Annotated[int, I16], [-7, 300]),
    (datetime, [datetime(2001, 2, 3, 4, 5, 6, 789, tzinfo=timezone.utc)]),
    (Colour, list(Colour)),
]
TURNS = (EVERY + 1) * OFTEN
"""How many times a dict is read until its keys are known."""

KEYS = ("", "a", "bb", "a key of more bytes", "ccc", "ä", "日本", "quote ' and \" and \\ and \n", "nul \0")


@dataclass
class Scores:
    name: str
    scores: dict[str, float]


def readers(codec: Any) -> Any:
    """What the decoder knows of the dict of `Scores`."""
    return codec.raw_decode.__globals__["readers__ScoresScoresEntry"]


@pytest.mark.parametrize(("kind", "samples"), VALUES, ids=lambda one: getattr(one, "__name__", ""))
def test_known_keys_give_the_same_bytes_and_values(kind: Any, samples: list[Any]) -> None:
    for annotation in (FlatBuffers[dict[str, kind]], Unchecked[FlatBuffers[dict[str, kind]]]):  # type: ignore[valid-type]
        codec, fresh = serializer(annotation), serializer(FlatBuffers[dict[str, kind]])  # type: ignore[valid-type]
        for count in (0, 1, 2, len(KEYS)):
            for turn in range(TURNS + 2):
                value = {key: samples[(turn + at) % len(samples)] for at, key in enumerate(KEYS[:count])}
                data = codec.encode(value)
                if turn in (0, TURNS, TURNS + 1):
                    fresh = serializer(FlatBuffers[dict[str, kind]])  # type: ignore[valid-type]
                    assert data == fresh.encode(value)
                again = codec.decode(data)
                assert again == value
                assert list(again) == list(value)
                assert all(
                    type(one) is type(other) or kind is float for one, other in zip(again.values(), value.values())
                )


def test_known_keys_are_used() -> None:
    codec = serializer(FlatBuffers[Scores])
    for turn in range(TURNS):
        assert codec.decode(codec.encode(Scores("n", {"a": turn, "b": 0.5}))) == Scores("n", {"a": turn, "b": 0.5})
    (read,) = readers(codec).values()
    assert read.__code__.co_filename.startswith("<zlmdb reader of dicts of ScoresScoresEntry, 2 keys")
    (write,) = codec.raw_encode.__globals__["writers__4__ScoresScoresEntry"].values()
    assert write.__code__.co_filename.startswith("<zlmdb writer of dicts of ScoresScoresEntry, 2 keys")


def test_empty_dicts_in_between_are_no_matter() -> None:
    codec = serializer(FlatBuffers[Scores])
    for turn in range(12 * TURNS):
        value = Scores("n", {"a": 1.0 * turn} if turn % 10 == 0 else {})
        assert codec.decode(codec.encode(value)) == value
    assert len(readers(codec)) == 1


def test_other_keys_of_the_same_lengths() -> None:
    """What is known is given up when other keys keep coming, and found again later; the values are right throughout."""
    codec, dice = serializer(FlatBuffers[Scores]), random.Random(1)
    seen: set[int] = set()
    for turn in range(TURNS + 8 * MISSES):
        keys = ["aa", "bb"] if turn < TURNS + 9 else [f"{dice.randrange(100):02}", "bb"]
        value = Scores("n", {key: dice.random() for key in keys})
        assert codec.decode(codec.encode(value)) == value
        seen.add(len(readers(codec)))
    assert seen == {0, 1}
    assert not readers(codec)


def test_many_sets_of_keys_take_bounded_memory() -> None:
    codec = serializer(FlatBuffers[Scores])
    for count in range(2 * MANY):
        value = Scores("n", {f"{'k' * 8 * count}{at}": 1.5 for at in range(5)})
        for _ in range(2 * TURNS):
            assert codec.decode(codec.encode(value)) == value
    assert len(readers(codec)) == MANY
    for turn in range(20_000):
        readers(codec).often(turn)
    assert len(readers(codec)._met) < 1000


@pytest.mark.parametrize("value", [{f"{at}": 0.5 for at in range(FEW)}, {"k" * LONG: 0.5}, {"k" * 70_000: 0.5}])
def test_large_dicts_are_left_alone(value: dict[str, float]) -> None:
    codec = serializer(FlatBuffers[Scores])
    for _ in range(2 * TURNS):
        assert codec.decode(codec.encode(Scores("n", value))).scores == value
    assert not readers(codec)


class Text(str):
    """Equal to the str, and no str."""


@pytest.mark.parametrize("wrong", [{Text("a"): 0.5}, {"a": None}, {"a": "0.5"}, {"a": True}, {1: 0.5}, {"\ud800": 0.5}])
def test_known_keys_refuse_what_unknown_ones_refuse(wrong: Any) -> None:
    codec = serializer(FlatBuffers[Scores])
    for turn in range(3):
        with pytest.raises(EncodeError, match=r"scores"):
            codec.encode(Scores("n", wrong))
        for _ in range(TURNS if turn < 2 else 0):
            codec.encode(Scores("n", {"a": 0.5}))


def never(readers: Any, number: Any) -> None:
    """Other keys are no reason to give up."""


def entries(values: Optional[dict[str, float]] = None) -> Scores:
    return Scores("name", {"one": 1.0, "two": 2.0, "three": 3.0} if values is None else values)


def test_mutated_dicts_read_alike_with_known_keys_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    chooser = random.Random(11)
    slow, fast = serializer(FlatBuffers[Scores]), serializer(FlatBuffers[Scores])
    unknowing(slow)
    data = fast.encode(entries())
    monkeypatch.setattr(Known, "miss", never)
    for _ in range(TURNS):
        fast.decode(data)
    for number in range(max(1000, BUFFERS)):
        changed = mutated(data, chooser) if number else data
        assert outcome(fast, changed) == outcome(slow, changed)
    assert not readers(slow)
    assert readers(fast)


def test_every_byte_but_those_of_values_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed byte gives the same error, or the same other value, as from a decoder that knows no keys."""
    fresh = unknowing(serializer(FlatBuffers[Scores]))
    monkeypatch.setattr(Known, "miss", never)
    fast = serializer(FlatBuffers[Scores])
    data = fast.encode(entries())
    for _ in range(TURNS):
        fast.decode(data)
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            assert outcome(fast, bytes(changed)) == outcome(fresh, bytes(changed))
    assert readers(fast)
    for size in range(len(data)):
        assert outcome(fast, data[:size]) == outcome(fresh, data[:size])


def unknowing(codec: Any) -> Any:
    """*codec*, which will not look at keys."""
    codec.raw_decode.__globals__["wait__ScoresScoresEntry"][0] = 1 << 60
    return codec


MANY_KEYS = {f"key {at}": 0.5 for at in range(30)}


def test_entries_without_a_value_are_not_taken_for_known_ones() -> None:
    """Other writers leave out what is zero: a table with another vtable, among those with ours."""
    flatbuffers = pytest.importorskip("flatbuffers")

    def written(values: dict[str, float]) -> bytes:
        builder = flatbuffers.Builder(0)
        tables = []
        for key, value in values.items():
            text = builder.CreateString(key)
            builder.StartObject(2)
            builder.PrependUOffsetTRelativeSlot(0, text, 0)
            builder.PrependFloat64Slot(1, value, 0.0)
            tables.append(builder.EndObject())
        builder.StartVector(4, len(tables), 4)
        for table in reversed(tables):
            builder.PrependUOffsetTRelative(table)
        vector = builder.EndVector()
        name = builder.CreateString("name")
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, name, 0)
        builder.PrependUOffsetTRelativeSlot(1, vector, 0)
        builder.Finish(builder.EndObject())
        return bytes(builder.Output())

    codec = serializer(FlatBuffers[Scores])
    for turn in range(3 * TURNS):
        value = {"one": 1.0 * (turn % 3), "two": 2.0, "three": 1.0 * (turn % 2)}
        assert codec.decode(written(value)) == Scores("name", value)


def test_one_dict_in_many_records_is_still_counted() -> None:
    """Known keys or not, references to the same place again and again are refused."""
    codec = Codec(list[Scores])
    data = bytearray(codec.encoder(codec.decoder(), checked=True)([entries({})] * 2000 + [entries(MANY_KEYS)]))
    decode = codec.decoder()
    for _ in range(TURNS):
        assert decode(bytes(data))[-1].scores == MANY_KEYS
    box = 4 * 2 + int.from_bytes(data[:4], "little") - 4
    box += int.from_bytes(data[box : box + 4], "little")
    tables = [at + int.from_bytes(data[at : at + 4], "little") for at in range(box + 4, box + 4 + 4 * 2001, 4)]
    places = [table + codec.layouts["Scores"].offsets["scores"] for table in tables]
    shared = places[-1] + int.from_bytes(data[places[-1] : places[-1] + 4], "little")
    for place in places:
        data[place : place + 4] = (shared - place).to_bytes(4, "little")
    with pytest.raises(runtime.Corrupt, match="over and over"):
        decode(bytes(data))
