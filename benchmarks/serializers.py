"""How fast is each serializer on the same full object? FlatBuffers beside the official runtime and the others.

    python benchmarks/serializers.py            about a minute
    python benchmarks/serializers.py --smoke    a second or two: that it runs, not what it says

Two objects: the user of the zlmdb serializer benchmark with all its 11 fields, and a small record of five numbers and
two texts. Every contender writes the whole object and reads the whole object back; that it comes back equal is checked
before anything is timed. The contenders take turns within each round; told are ratios to the official FlatBuffers
runtime, of the fastest round of each, since what disturbs a shared machine only ever adds.

"official" is the runtime of the flatbuffers package called by hand, as lean as it can be: its builder with one call a
field, its table reader with each vector looked up once. "flatc's code" is what people have instead, over the same
runtime: the accessors that flatc generates, which look a vector up again for each item. It is there if flatc is
installed (Debian: flatbuffers-compiler). zlmdb writes checked values; "Unchecked" leaves the checks out.

What it cannot tell: anything about the map around the serializer, or about other objects.
"""

from __future__ import annotations

import argparse
import json
import pickle
import platform
import random
import runpy
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, NamedTuple, Optional
from uuid import UUID

import cbor2
import flatbuffers
from flatbuffers import encode, number_types, packer
from flatbuffers.table import Table as Reader
from rich.console import Console
from rich.table import Table

from zlmdb.values import U16, U64, Cbor, FlatBuffers, FlatBuffersView, Json, Msgpack, Pickle, Unchecked, fbs, serializer

try:
    import msgspec
except ImportError:  # PyPy
    msgspec = None


@dataclass
class User:
    """The user, all 11 fields."""

    oid: Annotated[int, U64]
    name: str
    authid: str
    uuid: UUID
    email: str
    birthday: date
    is_friendly: bool
    tags: list[str]
    ratings: dict[str, float]
    friends: list[Annotated[int, U64]]
    referred_by: Annotated[int, U64]


@dataclass
class Small:
    """Five numbers and two texts."""

    id: int
    count: int
    price: float
    kind: Annotated[int, U16]
    weight: float
    name: str
    city: str


def user(seed: int) -> User:
    dice = random.Random(seed)
    oid = dice.randint(0, 2**53)
    return User(
        oid=oid, name=f"Test {oid}", authid=f"test-{oid}", uuid=UUID(int=dice.getrandbits(128)),
        email=f"test-{oid}@example.com", birthday=date(1950, 12, 24), is_friendly=True,
        tags=["geek", "sudoko", "yellow"], ratings={f"test-rating-{j}": dice.random() for j in range(10)},
        friends=[dice.randint(0, 2**53) for _ in range(10)], referred_by=dice.randint(0, 2**53),
    )  # fmt: skip


def small(seed: int) -> Small:
    dice = random.Random(seed)
    return Small(seed, dice.randint(0, 1000), dice.random(), 7, dice.random(), f"record {seed}", "Gothenburg")


# The official runtime, as flatc's generated code calls it. The schemas are those of zlmdb.values.fbs(User), (Small).


def vector(builder: Any, size: int, items: list[Any], prepend: Callable[[Any], None]) -> int:
    builder.StartVector(size, len(items), size)
    for item in reversed(items):
        prepend(item)
    return int(builder.EndVector())


def official_put_user(value: User) -> bytes:
    builder = flatbuffers.Builder(1024)
    text, reference = builder.CreateString, builder.PrependUOffsetTRelative
    ratings: list[int] = []
    for name, rating in value.ratings.items():
        key = text(name)
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, key, 0)
        builder.PrependFloat64Slot(1, rating, 0.0)
        ratings.append(builder.EndObject())
    all_ratings = vector(builder, 4, ratings, reference)
    tags = vector(builder, 4, [text(tag) for tag in value.tags], reference)
    friends = vector(builder, 8, value.friends, builder.PrependUint64)
    name, authid, email = text(value.name), text(value.authid), text(value.email)
    uuid = builder.CreateByteVector(value.uuid.bytes)
    builder.StartObject(11)
    builder.PrependUint64Slot(0, value.oid, 0)
    builder.PrependUOffsetTRelativeSlot(1, name, 0)
    builder.PrependUOffsetTRelativeSlot(2, authid, 0)
    builder.PrependUOffsetTRelativeSlot(3, uuid, 0)
    builder.PrependUOffsetTRelativeSlot(4, email, 0)
    builder.Prep(2, 4)
    builder.PrependUint8(value.birthday.day)
    builder.PrependUint8(value.birthday.month)
    builder.PrependUint16(value.birthday.year)
    builder.PrependStructSlot(5, builder.Offset(), 0)
    builder.PrependBoolSlot(6, value.is_friendly, 0)
    builder.PrependUOffsetTRelativeSlot(7, tags, 0)
    builder.PrependUOffsetTRelativeSlot(8, all_ratings, 0)
    builder.PrependUOffsetTRelativeSlot(9, friends, 0)
    builder.PrependUint64Slot(10, value.referred_by, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


UINT64, INT64, FLOAT64 = number_types.Uint64Flags, number_types.Int64Flags, number_types.Float64Flags
UINT8, UINT16, BOOL = number_types.Uint8Flags, number_types.Uint16Flags, number_types.BoolFlags


def root(data: bytes) -> Any:
    return Reader(data, encode.Get(packer.uoffset, data, 0))


def number(table: Any, slot: int, flags: Any) -> Any:
    offset = table.Offset(slot)
    return table.Get(flags, offset + table.Pos) if offset else 0


def string(table: Any, slot: int) -> str:
    offset = table.Offset(slot)
    text: bytes = table.String(offset + table.Pos)
    return text.decode()


def items(table: Any, slot: int) -> tuple[int, int]:
    offset = table.Offset(slot)
    return table.Vector(offset), table.VectorLen(offset)


def official_get_user(data: bytes) -> User:
    table = root(data)
    place, count = items(table, 10)
    uuid = UUID(bytes=bytes(data[place : place + count]))
    day = table.Offset(14) + table.Pos
    place, count = items(table, 18)
    tags = [table.String(place + 4 * j).decode() for j in range(count)]
    ratings: dict[str, float] = {}
    place, count = items(table, 20)
    for j in range(count):
        rating = Reader(data, table.Indirect(place + 4 * j))
        ratings[string(rating, 4)] = number(rating, 6, FLOAT64)
    place, count = items(table, 22)
    return User(
        number(table, 4, UINT64), string(table, 6), string(table, 8), uuid, string(table, 12),
        date(table.Get(UINT16, day), table.Get(UINT8, day + 2), table.Get(UINT8, day + 3)),
        bool(number(table, 16, BOOL)), tags, ratings, [table.Get(UINT64, place + 8 * j) for j in range(count)],
        number(table, 24, UINT64),
    )  # fmt: skip


def official_put_small(value: Small) -> bytes:
    builder = flatbuffers.Builder(1024)
    name, city = builder.CreateString(value.name), builder.CreateString(value.city)
    builder.StartObject(7)
    builder.PrependInt64Slot(0, value.id, 0)
    builder.PrependInt64Slot(1, value.count, 0)
    builder.PrependFloat64Slot(2, value.price, 0.0)
    builder.PrependUint16Slot(3, value.kind, 0)
    builder.PrependFloat64Slot(4, value.weight, 0.0)
    builder.PrependUOffsetTRelativeSlot(5, name, 0)
    builder.PrependUOffsetTRelativeSlot(6, city, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def official_get_small(data: bytes) -> Small:
    table = root(data)
    return Small(
        number(table, 4, INT64), number(table, 6, INT64), number(table, 8, FLOAT64), number(table, 10, UINT16),
        number(table, 12, FLOAT64), string(table, 14), string(table, 16),
    )  # fmt: skip


def flatc(cls: Any) -> Any:
    """The module that flatc generates from our schema; None without flatc."""
    program = shutil.which("flatc")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "model.fbs").write_text(fbs(cls))
        subprocess.run([program, "--python", "--gen-onefile", "model.fbs"], cwd=directory, check=True)
        return runpy.run_path(str(Path(directory, "model_generated.py")))


def flatc_get_user(space: Any) -> Callable[[bytes], User]:
    root = space["User"].GetRootAs

    def get(data: bytes) -> User:
        one = root(data, 0)
        ratings: dict[str, float] = {}
        for j in range(one.RatingsLength()):
            rating = one.Ratings(j)
            ratings[rating.Key().decode()] = rating.Value()
        day = one.Birthday()
        return User(
            one.Oid(), one.Name().decode(), one.Authid().decode(),
            UUID(bytes=bytes([one.Uuid(j) for j in range(one.UuidLength())])), one.Email().decode(),
            date(day.Year(), day.Month(), day.Day()), one.IsFriendly(),
            [one.Tags(j).decode() for j in range(one.TagsLength())], ratings,
            [one.Friends(j) for j in range(one.FriendsLength())], one.ReferredBy(),
        )  # fmt: skip

    return get


def flatc_get_small(space: Any) -> Callable[[bytes], Small]:
    root = space["Small"].GetRootAs

    def get(data: bytes) -> Small:
        one = root(data, 0)
        return Small(
            one.Id(), one.Count(), one.Price(), one.Kind(), one.Weight(), one.Name().decode(), one.City().decode()
        )

    return get


# The contenders that know no classes get functions to and from plain data, written by hand.


def plain(value: Any) -> dict[str, Any]:
    data = dict(vars(value))
    if isinstance(value, User):
        data["uuid"], data["birthday"] = value.uuid.hex, value.birthday.isoformat()
    return data


def whole(cls: Any, data: dict[str, Any]) -> Any:
    if cls is User:
        data["uuid"], data["birthday"] = UUID(data["uuid"]), date.fromisoformat(data["birthday"])
    return cls(**data)


class Contender(NamedTuple):
    """What is measured: from an object to bytes, and back."""

    put: Callable[[Any], bytes]
    get: Callable[[bytes], Any]


def touch_all(cls: Any) -> Callable[[bytes], Any]:
    view = serializer(FlatBuffersView[cls]).raw_decode
    names = [field.name for field in fields(cls)]

    def get(data: bytes) -> Any:
        one = view(data)
        return cls(*[getattr(one, name) for name in names])

    return get


def touch_one(cls: Any) -> Callable[[bytes], Any]:
    view = serializer(FlatBuffersView[cls]).raw_decode
    return lambda data: view(data).name


def contenders(cls: Any) -> dict[str, Contender]:
    official = (official_put_user, official_get_user) if cls is User else (official_put_small, official_get_small)
    found: dict[str, Optional[Contender]] = {"official flatbuffers": Contender(*official)}
    space = flatc(cls)
    if space is not None:  # what it writes with is the builder, in the same calls
        get = flatc_get_user(space) if cls is User else flatc_get_small(space)
        found["flatc's code"] = Contender(official[0], get)
    aliases: list[tuple[str, Any]] = [
        ("FlatBuffers[T]", FlatBuffers[cls]), ("Unchecked[FlatBuffers[T]]", Unchecked[FlatBuffers[cls]]),
        ("Msgpack[T]", Msgpack[cls]), ("Cbor[T]", Cbor[cls]), ("Json[T]", Json[cls]), ("Pickle[T]", Pickle[cls]),
    ]  # fmt: skip
    for label, alias in aliases:
        codec = serializer(alias)
        found[label] = Contender(codec.raw_encode, codec.raw_decode)
    put = serializer(FlatBuffers[cls]).raw_encode
    found["FlatBuffersView[T], all fields"] = Contender(put, touch_all(cls))
    if msgspec is not None:
        found["msgspec msgpack"] = Contender(msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(cls).decode)
        found["msgspec json"] = Contender(msgspec.json.Encoder().encode, msgspec.json.Decoder(cls).decode)
    found["cbor2"] = Contender(lambda value: cbor2.dumps(plain(value)), lambda data: whole(cls, cbor2.loads(data)))
    found["json"] = Contender(
        lambda value: json.dumps(plain(value)).encode(), lambda data: whole(cls, json.loads(data))
    )
    found["pickle 5"] = Contender(lambda value: pickle.dumps(value, 5), pickle.loads)
    return {label: one for label, one in found.items() if one is not None}


def check(cls: Any, objects: list[Any], label: str, one: Contender) -> None:
    for value in objects:
        again = one.get(one.put(value))
        if again != value or type(again) is not cls:
            raise SystemExit(f"{label} does not give back {value}: {again}")


def fastest(function: Callable[[Any], Any], arguments: list[Any], best: float) -> float:
    """The lesser of *best* and the seconds a call takes now."""
    begin = perf_counter()
    for argument in arguments:
        function(argument)
    return min(best, (perf_counter() - begin) / len(arguments))


def show(console: Console, cls: Any, make: Callable[[int], Any], size: Size) -> None:
    objects = [make(seed) for seed in range(size.objects)]
    found = contenders(cls)
    stored: dict[str, list[bytes]] = {}
    for label, one in found.items():
        check(cls, objects[:20], label, one)
        stored[label] = [one.put(value) for value in objects]
    put = dict.fromkeys(found, float("inf"))
    get = dict.fromkeys(found, float("inf"))
    for _ in range(size.rounds):
        for label, one in found.items():
            put[label] = fastest(one.put, objects, put[label])
            get[label] = fastest(one.get, stored[label], get[label])
    base = next(iter(found))
    picture = Table("x official runtime", "encode x", "decode x", "encode us", "decode us", "bytes", title=cls.__doc__)
    for label in found:
        mean = sum(map(len, stored[label])) / len(objects)
        picture.add_row(
            label, f"{put[base] / put[label]:.1f}", f"{get[base] / get[label]:.1f}",
            f"{put[label] * 1e6:.2f}", f"{get[label] * 1e6:.2f}", f"{mean:.0f}",
        )  # fmt: skip
    console.print(picture)
    name = touch_one(cls)
    one_field = float("inf")
    for _ in range(size.rounds):
        one_field = fastest(name, stored["FlatBuffers[T]"], one_field)
    console.print(f"FlatBuffersView[T], one field: {one_field * 1e6:.2f} us\n")


class Size(NamedTuple):
    """How much work a run is."""

    objects: int
    rounds: int


FULL = Size(objects=40, rounds=500)
SMOKE = Size(objects=20, rounds=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="small, to see that it runs; the figures mean nothing")
    size = SMOKE if parser.parse_args().smoke else FULL
    console = Console()
    console.print(f"{platform.python_implementation()} {platform.python_version()}, {size}; fastest round of each")
    show(console, User, user, size)
    show(console, Small, small, size)


if __name__ == "__main__":
    main()
