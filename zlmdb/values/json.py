"""Values as JSON (RFC 8259), UTF-8 and compact.

Without a type, and without callables, values are the plain data of the standard library's json. Values that would be
read back changed, such as tuples and keys that are not text, are refused, except in classic maps and unchecked. The
bytes are those of zlmdb 26. NaN and the infinities, which are not JSON, are read and never written. A value of a model
class is an object of its fields by name, in the order of the class; bytes are base64 text, other types text as in
`scalars`. CPython and PyPy read equal values, but need not write the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from .base import Data, Decode, Encode
from .depth import limited, text_may_be_deep
from .documents import DocumentSerializer
from .models import Model, find_msgspec

if TYPE_CHECKING:
    from types import ModuleType

T = TypeVar("T")

_to_text: Any = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode

dumps: Encode = limited(lambda plain: _to_text(plain).encode(), text_may_be_deep)
"""Plain data as JSON. Raises ValueError for what is nested too deeply."""


def loads(data: Data) -> Any:
    """The plain data of JSON text; json itself does not read memoryviews."""
    try:
        return json.loads(bytes(data).decode())  # str(data, "utf-8") takes lone surrogates on PyPy
    except json.JSONDecodeError as error:
        # PyPy's own message may quote half a character, and then nothing can print it.
        raise ValueError(f"not JSON from line {error.lineno} column {error.colno} on") from None


class JsonSerializer(DocumentSerializer[T]):
    """Values of a type, or plain data, as JSON."""

    form = "json"

    @classmethod
    def codec(cls) -> tuple[Encode, Decode]:
        """The encoder and decoder of the standard library, or those of msgspec where both do the same."""
        msgspec = find_msgspec()
        return (dumps, loads) if msgspec is None else (_alike_or(dumps, msgspec), _loads_with(msgspec))

    @classmethod
    def faithful(cls) -> Encode:
        """An encoder that checks most documents in one pass."""
        msgspec = find_msgspec()
        general = super().faithful()
        return general if msgspec is None else _alike_or(general, msgspec)

    def typed_codec(self, model: Model) -> tuple[Encode, Decode]:
        """msgspec's encoder and decoder, if msgspec is installed."""
        msgspec = find_msgspec()
        if msgspec is None:
            from .jsonwriter import writer

            encode, load = super().typed_codec(model)
            return writer(model.shape, _to_text) or encode, load
        if model.foreign:
            return super().typed_codec(model)
        decode: Decode = msgspec.json.Decoder(model.annotation).decode
        if not model.native:
            dump = model.shape.dump
            return lambda value: dumps(dump(value)), decode
        encode = msgspec.json.Encoder().encode
        return encode, decode

    def rewriter(self, fields: Collection[str], read: Collection[str]) -> Optional[tuple[Decode, Encode]]:
        given, msgspec = self._given, find_msgspec()
        if msgspec is None or not self._typed or type(self) is not JsonSerializer:
            return None
        from .narrow import rewriting  # late: few programs change many records

        return rewriting(Model(given["annotation"], self.form, dumps, given["localns"]), fields, msgspec.json)


def _alike_or(general: Encode, msgspec: ModuleType) -> Encode:
    """*general*, but by msgspec, in half of the time, what that writes alike."""
    is_alike, to_bytes = _is_alike(), msgspec.json.Encoder().encode

    def encode(value: Any) -> bytes:
        try:
            if is_alike(value):
                return to_bytes(value)
        except (OverflowError, RecursionError, UnicodeError):  # integers of more than 64 bits, deep nesting
            pass
        return general(value)

    return encode


def _loads_with(msgspec: ModuleType) -> Decode:
    """`loads`, but by msgspec, in a third of the time, what that reads."""
    from_bytes, refusal = msgspec.json.Decoder().decode, msgspec.DecodeError

    def decode(data: Data) -> Any:
        try:
            return from_bytes(data)
        except (refusal, RecursionError, UnicodeError):  # NaN, lone surrogates; and to say what is wrong
            return loads(data)

    return decode


def _is_alike() -> Callable[[Any], bool]:
    """The test whether msgspec writes plain data as the standard library does, and reads it back unchanged."""
    from .scalars import plain_data

    return plain_data(frozenset({type(None), bool, int, str}), frozenset({str}), _is_short)


def _is_short(value: Any) -> bool:
    """Whether *value* is a float that all libraries write without an exponent."""
    return type(value) is float and (1e-4 <= abs(value) < 1e16 or value == 0)
