"""Values of the plain types str, bytes, int, float and bool, which refuse None. `named` has those of other types.

The bytes are those of zlmdb 26. Integers are big-endian. All read memoryviews as well as bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from operator import index
from typing import Any, Callable, Optional

from ..keys.plain import is_bool
from .base import Data, FunctionSerializer, is_a, typename

_int64 = struct.Struct(">q")
_float64 = struct.Struct(">d")


class PlainSerializer(FunctionSerializer[Any]):
    """One type, one layout; *expects* says in words what fits."""

    def __init__(
        self,
        name: str,
        encode: Callable[[Any], bytes],
        decode: Callable[[Any], Any],
        *,
        expects: str,
        examples: Sequence[Any],
        zero: Optional[bytes] = None,
    ) -> None:
        """*zero* are the bytes of None; without it None is refused."""
        super().__init__(name, encode if zero is None else none_as(zero, encode), decode, examples=examples)
        self.expects = expects
        self.zero = zero


class TextSerializer(PlainSerializer):
    """Text, which bytes decode themselves in less time than any function can look at them."""

    @property
    def bytes_decode(self) -> Callable[[Any], Any]:
        return bytes.decode


def none_as(zero: bytes, encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """*encode*, with None stored as *zero*."""

    def encode_or_zero(value: Any) -> bytes:
        return zero if value is None else encode(value)

    return encode_or_zero


def check_width(data: Data, width: int) -> Data:
    """*data*, which must be *width* bytes long."""
    if len(data) != width:
        raise ValueError(f"{len(data)} bytes instead of {width}")
    return data


# str, bytes


def decode_text(data: Data) -> str:
    """The text of UTF-8 *data*."""
    return bytes(data).decode()  # str(data, "utf-8") takes lone surrogates on PyPy


def encode_bytes(value: Any) -> bytes:
    """A bytes-like *value* as bytes."""
    if type(value) is bytes:
        return value
    if is_a(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"got {typename(type(value))}")


# int, float, bool


def encode_int(value: Any) -> bytes:
    """A signed 64 bit integer, two's complement. A bool is not an integer here."""
    if type(value) is not int and is_bool(value):
        raise TypeError("got bool")
    return _int64.pack(index(value))


def decode_int(data: Data) -> int:
    """The integer of 8 bytes."""
    return int(_int64.unpack(data)[0])


def encode_float(value: Any) -> bytes:
    """A float, or an int that a float holds exactly, as IEEE 754 binary64."""
    if isinstance(value, float):
        return _float64.pack(value)
    if hasattr(value, "__index__") and not is_bool(value):  # also one of numpy
        whole = index(value)
        if float(whole) == whole:
            return _float64.pack(float(whole))
    raise TypeError(f"got {typename(type(value))}, or not exact as a float")


def decode_float(data: Data) -> float:
    """The float of 8 bytes."""
    return float(_float64.unpack(data)[0])


def encode_bool(value: Any) -> bytes:
    """One byte: 0 or 1."""
    if value is True:
        return b"\x01"
    if value is False:
        return b"\x00"
    raise TypeError(f"got {typename(type(value))}")


def decode_bool(data: Data) -> bool:
    """The bool of one byte."""
    if data == b"\x01":
        return True
    if data == b"\x00":
        return False
    raise ValueError("neither 00 nor 01")


# The serializers

TEXT_EXPECTS = "str that UTF-8 can write (no lone surrogates)"
TEXTS = ["", "ab", "a\0b", "na\u00efve", "\U0001f600", "x" * 1000]
_INTS = [0, 1, -1, 300, 2**63 - 1, -(2**63)]
_FLOATS = [0.0, 1.5, -1e300, float("inf"), float("-inf")]

TEXT = TextSerializer("string", str.encode, decode_text, expects=TEXT_EXPECTS, examples=TEXTS)
BYTES = PlainSerializer("bytes", encode_bytes, bytes, expects="bytes", examples=[b"", b"\0", bytes(range(256))])
INT = PlainSerializer("int64", encode_int, decode_int, expects="an int from -2**63 to 2**63 - 1", examples=_INTS)
FLOAT = PlainSerializer("float64", encode_float, decode_float, expects="float", examples=_FLOATS)
BOOL = PlainSerializer("bool", encode_bool, decode_bool, expects="True or False", examples=[False, True])

BARE: dict[Any, PlainSerializer] = {str: TEXT, bytes: BYTES, int: INT, float: FLOAT, bool: BOOL}
"""The serializers of these types."""
