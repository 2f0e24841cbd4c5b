"""Keys and values as bytes, for the stores that hold bytes: pickle, msgspec, or zlmdb's own codec."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from struct import Struct
from typing import Any
from uuid import UUID

from .records import Shape

Codec = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]


def key_encoder(shape: Shape) -> Callable[[Any], bytes]:
    """Big-endian numbers, UTF-8, the bytes of a UUID: they sort as the keys do."""
    encoders: dict[type, Callable[[Any], bytes]] = {
        int: Struct(">Q").pack, str: str.encode, UUID: attrgetter("bytes"), bytes: bytes,
    }  # fmt: skip
    return encoders[shape.key]


def pickle_codec(shape: Shape) -> Codec:
    """The newest protocol."""
    dumps = pickle.dumps
    return (lambda record: dumps(record, 5)), pickle.loads


def msgspec_codec(shape: Shape) -> Codec:
    """MessagePack by msgspec, typed: encoder and decoder made once, as its documentation recommends."""
    import msgspec

    return msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(shape.model).decode


def zlmdb_codec(shape: Shape, annotation: str = "") -> Codec:
    """The serializer that zlmdb uses for the type: the ratio to this is the price of the layer alone."""
    import zlmdb

    codec = zlmdb.values.serializer(getattr(zlmdb, annotation)[shape.model] if annotation else shape.model)
    return codec.encode, codec.decode


def bytes_codec(shape: Shape) -> Codec:
    """Bytes as they are, text as UTF-8."""
    if shape.model is bytes:
        return bytes, bytes
    return str.encode, bytes.decode


CODECS: dict[str, Callable[[Shape], Codec]] = {
    "bytes": bytes_codec, "pickle": pickle_codec, "msgspec": msgspec_codec, "zlmdb codec": zlmdb_codec,
    **{f"zlmdb {name}": partial(zlmdb_codec, annotation=name) for name in ("Json", "Cbor", "FlatBuffers")},
}  # fmt: skip
LIBRARY = {name: "msgspec" if name == "msgspec" else "zlmdb" for name in CODECS if name not in ("bytes", "pickle")}
"""What a codec needs to be installed."""
