"""Values as JSON (RFC 8259), UTF-8 and compact.

Without a type, and without callables, values are what the standard library's json holds, with its ways: tuples come
back as lists, keys that are int, float, bool or None as text. The bytes are those of zlmdb <= 26. NaN and the
infinities, which are no JSON, are read and never written. A value of a model class is an object of its fields by name,
in the order of the class; bytes are base64 text, other types text as in `leaves`. Equal values are read on CPython and
PyPy; that they write the same bytes is not promised.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from .base import Data, Decode, Encode
from .documents import DocumentSerializer
from .models import Model, find_msgspec

T = TypeVar("T")

_to_text = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def dumps(plain: Any) -> bytes:
    """Plain data as JSON."""
    return _to_text(plain).encode()


def loads(data: Data) -> Any:
    """The plain data of JSON text; json itself reads no memoryview."""
    try:
        return json.loads(bytes(data).decode())  # str(data, "utf-8") takes lone surrogates on PyPy
    except json.JSONDecodeError as error:
        # PyPy's own message may quote half a character, and then nothing can print it.
        raise ValueError(f"no JSON from line {error.lineno} column {error.colno} on") from None


class JsonSerializer(DocumentSerializer[T]):
    """Values of a type, or plain data, as JSON."""

    form = "json"

    @classmethod
    def codec(cls) -> tuple[Encode, Decode]:
        """The standard library's encoder and decoder."""
        return dumps, loads

    def typed_codec(self, model: Model) -> tuple[Encode, Decode]:
        """msgspec's encoder and decoder, where there is msgspec."""
        msgspec = find_msgspec()
        if msgspec is None:
            return super().typed_codec(model)
        decode: Decode = msgspec.json.Decoder(model.annotation).decode
        if not model.native:
            dump = model.shape.dump
            return lambda value: dumps(dump(value)), decode
        encode: Encode = msgspec.json.Encoder().encode
        return encode, decode
