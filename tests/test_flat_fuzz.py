"""Arbitrary bytes as FlatBuffers: a value or a `DecodeError`, in bounded time and memory."""

from __future__ import annotations

import contextlib
import os
import random
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import pytest

from zlmdb.codegen import Recipe
from zlmdb.errors import DecodeError
from zlmdb.values import FlatBuffers, FlatBuffersView, FunctionSerializer, Unchecked, load, serializer
from zlmdb.values.depth import DEPTH
from zlmdb.values.flat import plans, runtime
from zlmdb.values.flat.codec import Codec
from zlmdb.values.flat.reader import Reader

from .test_flatbuffers import (
    MODELS,
    Node,
    Optionals,
    Small,
    User,
    ann,
    chain,
    is_view,
    needs_flatc,
    rewritten_by_flatc,
    small,
)

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

BUFFERS = int(os.environ.get("ZLMDB_FUZZ_BUFFERS", "5000"))
"""How many mutated buffers are read; `tox -e thorough` takes 100,000."""


def mutated(data: bytes, random: random.Random) -> bytes:
    """*data* with a few bytes changed, a word that could be an offset or a length put in, or cut or glued."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        place = random.randrange(len(changed))
        kind = random.randrange(6)
        if kind == 0:
            changed[place] = random.randrange(256)
        elif kind == 1:
            changed[place] ^= 1 << random.randrange(8)
        elif kind == 2 and len(changed) >= 4:
            place = min(place, len(changed) - 4) & -4
            word = random.choice((0, 1, 4, 8, len(data), len(data) - 1, 2**31, 2**31 - 1, 2**32 - 1, 2**32 - 4))
            changed[place : place + 4] = struct.pack("<I", word)
        elif kind == 3 and len(changed) >= 4:
            place = min(place, len(changed) - 4) & -4
            word = struct.unpack_from("<I", changed, place)[0] + random.choice((-8, -4, -1, 1, 4, 8))
            changed[place : place + 4] = struct.pack("<I", word % 2**32)
        elif kind == 4:
            del changed[place + 1 :]
        else:
            changed[place:place] = bytes(random.randrange(256) for _ in range(random.randrange(1, 9)))
    return bytes(changed)


def touched(value: Any) -> None:
    """Read all of a view."""
    if is_view(value):
        for name in type(value)._names:
            with contextlib.suppress(DecodeError):
                touched(getattr(value, name))
        load(value)
    elif isinstance(value, list):
        for item in value[:5]:
            touched(item)


def test_mutated_buffers_give_a_value_or_a_decode_error() -> None:
    chooser = random.Random(7)
    pairs: list[tuple[Any, Any, bytes]] = []
    for model, value in MODELS:
        codec = serializer(FlatBuffers[model])
        data = codec.encode(value)
        if len(data) < 3000:
            pairs.append((codec, serializer(FlatBuffersView[model]), data))
    read = refused = 0
    for number in range(BUFFERS):
        codec, views, data = pairs[number % len(pairs)]
        changed = mutated(data, chooser)
        try:
            codec.decode(changed)
            read += 1
        except DecodeError:
            refused += 1
        if number % 16 == 0:
            with contextlib.suppress(DecodeError):
                touched(views.decode(changed))
    assert read + refused == BUFFERS
    assert min(read, refused) > BUFFERS / 50


def outcome(codec: Any, data: bytes) -> Any:
    """The value of *data*, as text because NaN is unequal to itself, or the class of the error."""
    try:
        return repr(codec.decode(data))
    except DecodeError:
        return DecodeError


@needs_flatc
def test_layouts_of_others_read_alike_at_once_and_field_by_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What flatc's builder wrote, mutated: a vtable gets a function of its own when it has been met often."""
    chooser = random.Random(9)
    for model, value in MODELS:
        data = rewritten_by_flatc(model, value, tmp_path)
        slow, fast = serializer(FlatBuffers[model]), serializer(FlatBuffers[model])
        for number in range(max(20, BUFFERS // 100)):
            changed = mutated(data, chooser) if number else data
            monkeypatch.setattr(plans, "MANY", 0)
            expected = outcome(slow, changed)
            monkeypatch.undo()
            monkeypatch.setattr(plans, "OFTEN", 1)
            monkeypatch.setattr(plans, "MANY", 8)
            assert outcome(fast, changed) == expected
            monkeypatch.undo()
        assert fast.decode(data) == value


def field_by_field(model: Any) -> Any:
    """The decoder that expects no layout, for tables inside either."""
    codec = Codec(model)
    reader = Reader(codec.schema, codec.layouts)
    reader.functions()
    space = Recipe.known["FlatBuffers reader"].functions("any layout", str(reader.source), reader.names)
    for table in codec.schema.tables:
        space[f"read__{table.fbs}"] = space[f"any__{table.fbs}"]
    read = space[f"any__{codec.schema.root.fbs}"]

    def decode(data: bytes) -> Any:
        value = read(data, runtime.follow(data, 0), runtime.room_of(data))
        return value[0] if codec.schema.boxed else value

    return FunctionSerializer("flatbuffers", bytes, decode)


def test_our_layout_reads_alike_at_once_and_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    chooser = random.Random(10)
    monkeypatch.setattr(plans, "MANY", 0)
    for model, value in MODELS:
        slow, fast = field_by_field(model), serializer(FlatBuffers[model])
        data = fast.encode(value)
        for number in range(max(20, BUFFERS // 100)):
            changed = mutated(data, chooser) if number else data
            assert outcome(fast, changed) == outcome(slow, changed)


def test_records_of_an_older_class_are_read_alike_every_time() -> None:
    @dataclass
    class Old:
        name: str
        size: int
        tags: list[str]

    @dataclass
    class New:
        name: str
        size: int
        tags: list[str]
        note: Optional[str] = None
        more: list[int] = field(default_factory=lambda: [1])

    old, new = serializer(FlatBuffers[list[Old]]), serializer(FlatBuffers[list[New]])
    data = old.encode([Old(f"n{size}", size, ["t"] * size) for size in range(3)])
    for _ in range(3 * plans.OFTEN):
        again = new.decode(data)
        assert again == [New(f"n{size}", size, ["t"] * size) for size in range(3)]
        assert again[0].more is not again[1].more
    one, newer = serializer(FlatBuffers[Old]).encode(Old("n", 1, [])), serializer(FlatBuffers[New])
    for _ in range(plans.OFTEN):
        assert newer.decode(one) == New("n", 1, [])
    made = newer.raw_decode.__globals__["plans__New"]
    assert [plan is not None for plan in made.values()] == [True]


def test_what_is_read_from_a_mutated_buffer_can_be_written() -> None:
    """Nothing that is read has a part of a wrong type."""
    chooser = random.Random(8)
    for model, value in MODELS[:6]:
        codec = serializer(FlatBuffers[model])
        data = codec.encode(value)
        for _ in range(300):
            try:
                again = codec.decode(mutated(data, chooser))
            except DecodeError:
                continue
            codec.encode(again)


def test_short_buffers() -> None:
    for model, value in MODELS:
        for codec in (serializer(FlatBuffers[model]), serializer(FlatBuffersView[model])):
            data = codec.encode(value)
            for size in (0, 1, 3, 4, 5, 8, 12):
                with pytest.raises(DecodeError):
                    codec.decode(data[:size])


def test_every_truncation_of_a_user() -> None:
    model = type(ann())
    codec = serializer(FlatBuffers[model])
    data = codec.encode(ann())
    for size in range(len(data) - 8):
        with pytest.raises(DecodeError):
            codec.decode(data[:size])


@pytest.mark.parametrize("text", ["", "x" * 100])
def test_a_reference_to_itself_is_no_empty_value(text: str) -> None:
    """The four zero bytes of the reference would be the length of a text without bytes, or of an empty vector."""
    references: list[tuple[Any, Any, str]] = [
        (Small, small(text), "s t"),
        (Optionals, Optionals(b=text, g=b"g", c=[1]), "b c g"),
        (User, ann(), "name authid uuid email tags ratings friends"),
    ]
    for model, given, names in references:
        codec = serializer(FlatBuffers[model])
        data = codec.encode(given)
        table = struct.unpack_from("<I", data)[0]
        vtable = table - struct.unpack_from("<i", data, table)[0]
        for name in names.split():
            field = list(model.__dataclass_fields__).index(name)
            place = struct.unpack_from("<H", data, vtable + 4 + 2 * field)[0]
            changed = bytearray(data)
            struct.pack_into("<I", changed, table + place, 0)
            with pytest.raises(DecodeError):
                codec.decode(bytes(changed))


def test_tables_that_are_shared_do_not_multiply() -> None:
    """Each of 60 nodes has two children, both the same next node: 2**60 objects, if one believes it."""
    # vtable: value at 12, left absent, children at 8
    vtable = struct.pack("<HHHHHH", 10, 20, 12, 0, 8, 0)
    data = bytearray(struct.pack("<I", 16) + vtable)
    for level in range(60):
        place = len(data)
        data += struct.pack("<iIIq", place - 4, 0, 12, level)  # children right behind
        data += struct.pack("<III", 2, 8, 4) if level < 59 else struct.pack("<III", 0, 0, 0)
    codec = serializer(FlatBuffers[Node])
    with pytest.raises(DecodeError, match="over and over|levels"):
        codec.decode(bytes(data))
    with pytest.raises(DecodeError):
        load(serializer(FlatBuffersView[Node]).decode(bytes(data)))


def test_texts_that_are_shared_do_not_multiply() -> None:
    """A vector of 50,000 references to one text of 200 KB: 10 GB, if one believes it."""
    codec = serializer(FlatBuffers[list[str]])
    count, size = 50_000, 200_000
    data = bytearray(codec.encode([""]))
    vector = len(data)
    box = struct.unpack_from("<I", data)[0]
    struct.pack_into("<I", data, box + 4, vector - box - 4)
    text = vector + 4 + 4 * count
    data += struct.pack("<I", count) + b"".join(struct.pack("<I", text - vector - 4 - 4 * n) for n in range(count))
    data += struct.pack("<I", size) + b"x" * size + b"\0"
    with pytest.raises(DecodeError, match="over and over"):
        codec.decode(bytes(data))
    with pytest.raises(DecodeError, match="over and over"):
        serializer(FlatBuffersView[list[str]]).decode(bytes(data))


def test_shared_texts_within_reason_are_read() -> None:
    flatbuffers = pytest.importorskip("flatbuffers")
    builder = flatbuffers.Builder(0)
    text = builder.CreateString("shared " * 10)
    builder.StartVector(4, 500, 4)
    for _ in range(500):
        builder.PrependUOffsetTRelative(text)
    vector = builder.EndVector()
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, vector, 0)
    builder.Finish(builder.EndObject())
    assert serializer(FlatBuffers[list[str]]).decode(bytes(builder.Output())) == ["shared " * 10] * 500


def test_a_chain_deeper_than_the_limit_is_refused() -> None:
    codec = serializer(FlatBuffers[Node])
    good = serializer(Unchecked[FlatBuffers[Node]]).encode(chain(DEPTH))
    assert codec.decode(good) == chain(DEPTH)
    # One more node before the first: the old root becomes its left.
    ours = codec.encode(Node(0, Node(1)))
    place = struct.unpack_from("<I", ours)[0]
    old = struct.unpack_from("<I", good)[0]
    left = struct.unpack_from("<H", ours, 4 + 4 + 2)[0]
    head = ours[: len(ours)]
    data = bytearray(head + bytes(-len(head) % 8) + good)
    struct.pack_into("<I", data, place + left, len(data) - len(good) + old - place - left)
    with pytest.raises(DecodeError, match="levels"):
        codec.decode(bytes(data))
