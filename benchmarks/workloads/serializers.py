"""zlmdb's serializer benchmark of 2018: objects/s and bytes/object, on the same full object for every serializer.

Two objects: the user of that benchmark with all its 11 fields, and a small record of five numbers and two texts. Each
round trip is checked before anything is timed. The ratings of all users have the same ten keys, which helps those who
remember keys; so there are users, too, of whom no two have a key in common. "published form" is the loop as published:
it makes the random user, marshals it and writes it, all inside the clock, so that making it dominates the fast ones.

"zlmdb ..." are this package's serializers as a table uses them, checks included; "Unchecked" leaves them out. "official
FlatBuffers" is the runtime of the flatbuffers package called by hand, as lean as can be. "flatc's code" is what people
have instead: the accessors that flatc generates, which look a vector up again for each item, or read vectors of numbers
through NumPy; it is there if flatc is installed. A view reads a field when it is asked for.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any
from uuid import UUID

from ..records import SixFields, Small, User, six_fields, small, users
from .inside import Inside, Question, Timed

Codec = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]
OFFICIAL, FLATC, FLATC_NUMPY = "official FlatBuffers", "flatc's code", "flatc's code, NumPy"
READERS = (FLATC, FLATC_NUMPY)
"""They would write by the official builder."""
SIX_ONLY = f"{OFFICIAL}, six fields only"
VIEW_ALL, VIEW_ONE = "zlmdb FlatBuffersView, all fields", "zlmdb FlatBuffersView, one field"
OURS = ("Json", "Cbor", "Msgpack", "Pickle", "FlatBuffers")


def marshal(value: Any) -> dict[str, Any]:
    """Plain data, as the published benchmark makes it."""
    data = dict(vars(value))
    if isinstance(value, User):
        day = value.birthday
        data["uuid"], data["birthday"] = value.uuid.hex, {"year": day.year, "month": day.month, "day": day.day}
    return data


def unmarshal(model: Any, data: dict[str, Any]) -> Any:
    if model is User:
        data["uuid"], data["birthday"] = UUID(hex=data["uuid"]), date(**data["birthday"])
    return model(**data)


def by_hand(dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any], model: Any) -> Codec:
    return (lambda value: dumps(marshal(value))), (lambda data: unmarshal(model, loads(data)))


def cbor(model: Any) -> Codec:
    import cbor2

    return by_hand(cbor2.dumps, cbor2.loads, model)


def msgspec_typed(model: Any) -> Codec:
    import msgspec

    return msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(model).decode


def built(build: Callable[[Any, Any], int]) -> Callable[[Any], bytes]:
    import flatbuffers

    def encode(value: Any) -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(build(value, builder))
        return bytes(builder.Output())

    return encode


def official(model: Any) -> Codec:
    from .. import official_flatbuffers as calls

    if model is User:
        return built(calls.build_user), calls.read_user
    return built(calls.build_small), calls.read_small


def flatc(model: Any, numpy: bool = False) -> Codec:
    """Reads with the module that flatc generates from our schema. It would write by the builder, in those calls."""
    from zlmdb.values import fbs

    from .. import flatc as code

    if numpy:
        import numpy as _  # noqa: F401 - what generated code gives is None without it
    root = code.generated(fbs(model))[model.__name__].GetRootAs
    readers = {User: code.read_user_by_numpy if numpy else code.read_user, Small: code.read_small}
    make = readers[model]
    return official(model)[0], lambda data: make(root(data, 0))


def ours(model: Any, *wrappers: str) -> Codec:
    import zlmdb
    from zlmdb.values import serializer

    annotation = model
    for wrapper in wrappers:
        annotation = getattr(zlmdb, wrapper)[annotation]
    codec = serializer(annotation)
    return codec.raw_encode, codec.raw_decode


def view(model: Any, names: list[str]) -> Codec:
    """All fields through a view, or only those of *names*, the others then left out of what is given back."""
    from zlmdb.values import FlatBuffers, FlatBuffersView, serializer

    read = serializer(FlatBuffersView[model]).raw_decode

    def decode(data: bytes) -> Any:
        one = read(data)
        return model(*[getattr(one, name) for name in names])

    return serializer(FlatBuffers[model]).raw_encode, decode


CODECS: dict[str, Callable[[Any], Codec]] = {
    "json, by hand": lambda model: by_hand(lambda data: json.dumps(data).encode(), json.loads, model),
    "cbor2, by hand": cbor,
    "pickle": lambda model: (partial(pickle.dumps, protocol=5), pickle.loads),
    "msgspec MessagePack": msgspec_typed,
    OFFICIAL: official,
    FLATC: flatc,
    FLATC_NUMPY: partial(flatc, numpy=True),
    "zlmdb default (MessagePack)": ours,
    **{f"zlmdb {name}": partial(lambda model, name: ours(model, name), name=name) for name in OURS},
    "zlmdb MessagePack, Unchecked": lambda model: ours(model, "Msgpack", "Unchecked"),
    "zlmdb FlatBuffers, Unchecked": lambda model: ours(model, "FlatBuffers", "Unchecked"),
    VIEW_ALL: lambda model: view(model, [field.name for field in fields(model)]),
}
del CODECS["zlmdb Msgpack"]  # is the default


@cache
def working(model: Any) -> tuple[dict[str, Codec], dict[str, str]]:
    """The codecs that give back an equal object of its class, and why the others do not take part."""
    sample = objects(model, 1)[0]
    found: dict[str, Codec] = {}
    absent: dict[str, str] = {}
    for label, make in CODECS.items():
        try:
            encode, decode = make(model)
            again = decode(encode(sample))
        except ImportError as error:
            absent[label] = f"not installed: {error}"
            continue
        except Exception as error:
            absent[label] = f"failed: {type(error).__name__}: {error}"[:200]
            continue
        if again == sample and type(again) is model:
            found[label] = encode, decode
        else:
            absent[label] = "gives back another object"
    return found, absent


def each(function: Callable[[Any], Any], values: list[Any]) -> int:
    for value in values:
        function(value)
    return len(values)


def published(encode: Callable[[Any], bytes], size: int) -> int:
    for _, user in users(size):
        encode(user)
    return size


def objects(model: Any, size: int, new_texts: bool = False) -> list[Any]:
    """*new_texts*: no two users share a tag or a key of their ratings, which are the same in all of the benchmark's."""
    if model is not User:
        return [small(number) for number in range(size)]
    found = [user for _, user in users(size)]
    if new_texts:
        for number, user in enumerate(found):
            user.ratings = {f"{key}-{number}": rating for key, rating in user.ratings.items()}
            user.tags = [f"{tag}-{number}" for tag in user.tags]
    return found


@contextmanager
def encoding(directory: Path, size: int, model: Any, new_texts: bool = False) -> Iterator[Timed]:
    values = objects(model, size, new_texts)
    found, _ = working(model)
    timed: Timed = {
        label: partial(each, encode, values) for label, (encode, _) in found.items() if label not in READERS
    }
    if model is User and not new_texts:
        timed[SIX_ONLY] = partial(each, six_only(), [six_fields(user) for user in values])
    yield timed


@contextmanager
def decoding(directory: Path, size: int, model: Any, new_texts: bool = False) -> Iterator[Timed]:
    values = objects(model, size, new_texts)
    found, _ = working(model)
    timed: Timed = {
        label: partial(each, decode, [encode(value) for value in values]) for label, (encode, decode) in found.items()
    }
    if VIEW_ALL in found and not new_texts:
        from zlmdb.values import FlatBuffersView, serializer

        read = serializer(FlatBuffersView[model]).raw_decode
        encode = found[VIEW_ALL][0]
        timed[VIEW_ONE] = partial(each, lambda data: read(data).name, [encode(value) for value in values])
    yield timed


@contextmanager
def as_published(directory: Path, size: int) -> Iterator[Timed]:
    found, _ = working(User)
    yield {label: partial(published, encode, size) for label, (encode, _) in found.items() if label not in READERS}


def six_only() -> Callable[[SixFields], bytes]:
    """What the published FlatBuffers figures measured: no uuid, tags, ratings, friends."""
    from .. import official_flatbuffers as calls

    return built(calls.build_six_fields)


class Serializers(Inside):
    name = "serializers"
    title = "Serializers: the user of 11 fields, and a small record"
    sizes = {"tiny": (20,), "small": (500,), "window": (2_000,), "full": (10_000,)}
    labels = (*CODECS, SIX_ONLY, VIEW_ONE)
    questions = (
        Question("user: encode", partial(encoding, model=User), OFFICIAL, "object"),
        Question("user: decode", partial(decoding, model=User), OFFICIAL, "object"),
        Question(
            "user, other texts in each: encode",
            partial(encoding, model=User, new_texts=True),
            OFFICIAL,
            "object",
        ),
        Question(
            "user, other texts in each: decode",
            partial(decoding, model=User, new_texts=True),
            OFFICIAL,
            "object",
        ),
        Question("small record: encode", partial(encoding, model=Small), OFFICIAL, "object"),
        Question("small record: decode", partial(decoding, model=Small), OFFICIAL, "object"),
        Question("user, published form: make, marshal, encode", as_published, OFFICIAL, "object"),
    )

    def measure(self, size: int, rounds: int) -> dict[str, Any]:
        rows = super().measure(size, rounds)
        values = objects(User, 100)
        found, absent = working(User)
        for label, (encode, _) in found.items():
            rows[label]["object_bytes"] = sum(len(encode(user)) for user in values) / len(values)
        six = six_only()
        rows[SIX_ONLY]["object_bytes"] = sum(len(six(six_fields(user))) for user in values) / len(values)
        rows[SIX_ONLY]["note"] = "not the same object: as published, without uuid, tags, ratings and friends"
        for label, reason in absent.items():
            rows[label] = {"steps": {}, "skipped": {}, "note": "", "versions": {}, "absent": reason}
        return rows
