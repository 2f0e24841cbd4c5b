"""The key types of plain Python types, in which every value sorts. None has no place among them."""

from __future__ import annotations

import math
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, Callable, Optional, SupportsIndex

from ..errors import EncodeError
from ..handlers import let_through
from .base import Data, Inline, KeyCodec

_BIAS = 2**63  # added to a signed number it flips the sign bit, so that the negative ones come first
_Q = struct.Struct(">Q")
NO_BOOL = "(type(key) is int or key.__class__.__name__[:4] != 'bool')"
"""Of all that `struct` packs as a number, what is certainly a key: no bool, and no `bool_` of numpy."""


def is_bool(key: object) -> bool:
    """Whether *key* is a bool, or one of numpy, which has ``__index__``, too."""
    return isinstance(key, bool) or (type(key).__name__ in ("bool", "bool_") and type(key).__module__ == "numpy")


def random_int(width: int) -> int:
    """A random number of *width* bytes from the system. (The module secrets would take 10 ms to import.)"""
    return int.from_bytes(os.urandom(width), "big")


class IntKey(KeyCodec[int]):
    """A signed whole number of 64 bits: big-endian with the sign bit flipped.

    Anything with ``__index__`` is taken, numpy's integers included, except bool.
    """

    counts_from = 0
    exact = int
    name = "int"
    width = 8
    expects = "an int from -2**63 to 2**63 - 1"
    made_of_text = "int(...)"

    @property
    def examples(self) -> Sequence[int]:
        return [-(2**63), -(2**32), -256, -255, -1, 0, 1, 255, 256, 2**32, 2**53 + 1, 2**63 - 1]

    def encode(self, key: int) -> bytes:
        if type(key) is int and -_BIAS <= key < _BIAS:
            return _Q.pack(key + _BIAS)
        return _Q.pack(whole_number(self, key, -_BIAS, _BIAS - 1) + _BIAS)

    def side(self, key: Any) -> int:
        return side_of(key, -_BIAS, _BIAS - 1)

    def decoder(self) -> Callable[[Data], int]:
        unpack = _Q.unpack
        return lambda data: unpack(data)[0] - _BIAS

    def lookup(self, prefix: bytes = b"") -> Callable[[int], bytes]:
        pack, as_int = struct.Struct(f">{len(prefix)}sQ").pack, index
        return lambda key: pack(prefix, as_int(key) + _BIAS)

    def lookup_source(self, prefix: bytes = b"") -> tuple[str, dict[str, Any]]:
        pack = struct.Struct(f">{len(prefix)}sQ").pack if prefix else _Q.pack
        quick = f"pack({f'{prefix!r}, ' if prefix else ''}key + {_BIAS})"
        # Others add in ways of their own: an unsigned number of numpy goes on at 0.
        return f"({quick} if type(key) is int else lookup(key))", {"pack": pack, "lookup": self.lookup(prefix)}

    def inline(self) -> Inline:
        return Inline("Q", "type({x}) is int", f"{{x}} + {_BIAS}", f"{{x}} - {_BIAS}")

    def new_key(self, last: Optional[int] = None) -> int:
        return random_int(8) >> 1 if last is None else whole_number(self, last + 1, -_BIAS, _BIAS - 1)


def whole_number(codec: KeyCodec[Any], key: Any, least: int, greatest: int) -> int:
    """*key* as an int from *least* to *greatest*. Anything else *codec* refuses."""
    if type(key) is not int and is_bool(key):
        codec.refuse(key)
    try:
        number = index(key)
    except TypeError as error:
        let_through(error)
        codec.refuse(key)
    if not least <= number <= greatest:
        codec.refuse(key, "out of range")
    return number


def side_of(key: Any, least: int, greatest: int) -> int:
    """`KeyCodec.side` of whole numbers from *least* to *greatest*."""
    if is_bool(key) or not isinstance(key, SupportsIndex):
        return 0
    return (index(key) > greatest) - (index(key) < least)


class StrKey(KeyCodec[str]):
    """A text as UTF-8, which sorts by code point. In a tuple it may hold NUL in any place."""

    exact = str
    name = "str"
    expects = "a str that UTF-8 can hold (no lone surrogates)"

    @property
    def examples(self) -> Sequence[str]:
        low = ["", "\0", "\0\0", "\0\1", "\0a", "\1", "\1\0", "a", "a\0", "a\0\0", "a\0\1", "a\0b", "a\1", "aa", "b"]
        return [*low, "ä", "日本", "\uffff", "\U0001f600"]

    def encode(self, key: str) -> bytes:
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all checked
            self.refuse(key)
        try:
            return str.encode(key)
        except UnicodeEncodeError as error:
            self.refuse(key, str(error))

    def beginning(self, start: str) -> bytes:
        return self.encode(start)

    def decoder(self) -> Callable[[Data], str]:
        return lambda data: bytes(data).decode()  # str(data, "utf-8") takes lone surrogates on PyPy

    def lookup(self, prefix: bytes = b"") -> Callable[[str], bytes]:
        encode = str.encode
        return (lambda key: prefix + encode(key)) if prefix else encode

    def lookup_source(self, prefix: bytes = b"") -> tuple[str, dict[str, Any]]:
        return f"{prefix!r} + key.encode()" if prefix else "key.encode()", {}

    def inline(self) -> Inline:
        return Inline("", "type({x}) is str", "{x}.encode()", "{x}.decode()")


BYTES_LIKE = (bytes, bytearray, memoryview)
"""What keys of bytes are made from. They come back as bytes."""


class BlobKey(KeyCodec[bytes]):
    """Bytes as they are, of any length. In a tuple they may hold NUL in any place.

    bytearray and memoryview are taken, too.
    """

    exact = bytes
    name = "bytes"
    expects = "bytes"

    @property
    def examples(self) -> Sequence[bytes]:
        low = [b"", b"\0", b"\0\0", b"\0\0\1", b"\0\1", b"\1", b"a", b"a\0", b"a\0\1", b"a\1"]
        return [*low, b"\xff", b"\xff\0", b"\xff\xff"]

    def encode(self, key: bytes) -> bytes:
        if isinstance(key, BYTES_LIKE):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all checked
            return bytes(key)
        self.refuse(key)

    def beginning(self, start: bytes) -> bytes:
        return self.encode(start)

    def decoder(self) -> Callable[[Data], bytes]:
        return bytes

    def lookup(self, prefix: bytes = b"") -> Callable[[bytes], bytes]:
        encode = self.encode  # for others: numpy's scalars would add up with bytes as well
        return lambda key: prefix + (key if type(key) is bytes else encode(key))

    def inline(self) -> Inline:
        return Inline("", "type({x}) is bytes", "{x}", "{x}")


class BoolKey(KeyCodec[bool]):
    """False as the byte 00, True as 01."""

    name = "bool"
    width = 1
    expects = "True or False"

    @property
    def examples(self) -> Sequence[bool]:
        return [False, True]

    def encode(self, key: bool) -> bytes:
        if key is True:
            return b"\1"
        if key is False:
            return b"\0"
        self.refuse(key)

    def decoder(self) -> Callable[[Data], bool]:
        unpack = struct.Struct("B").unpack
        keys = [False, True]

        def decode(data: Data) -> bool:
            number: int = unpack(data)[0]
            return keys[number]

        return decode


class FloatKey(KeyCodec[float]):
    """A float of 64 bits: IEEE 754 big-endian, the sign bit flipped, and for negative ones all other bits too.

    -0.0 is stored as 0.0, its equal. Infinities are in order at both ends; NaN, which has no order, is refused. Whole
    numbers that a float holds exactly are taken.
    """

    name = "float"
    width = 8
    expects = "a float other than NaN, or an int that a float holds exactly"

    @property
    def examples(self) -> Sequence[float]:
        tiny, greatest = 5e-324, 1.7976931348623157e308
        positive = [tiny, 2.2250738585072014e-308, 0.1, 1.0, 1.0000000000000002, 1e16, greatest, float("inf")]
        return [*(-number for number in reversed(positive)), 0.0, *positive]

    def encode(self, key: float) -> bytes:
        number = key if type(key) is float else self._exact(key)
        if number != number:
            self.refuse(key)
        (bits,) = _Q.unpack(struct.pack(">d", number + 0.0))  # -0.0 + 0.0 is 0.0
        return _Q.pack(bits ^ (2**64 - 1) if bits & _BIAS else bits | _BIAS)

    def beyond(self, key: Any, error: EncodeError) -> bytes:
        """Between two keys, too: a whole number that no float is."""
        if is_bool(key) or not isinstance(key, SupportsIndex):
            raise error
        whole = index(key)
        try:
            number = float(whole)
        except OverflowError:
            number = math.inf if whole > 0 else -sys.float_info.max
        return self.encode(number if number > whole else math.nextafter(number, math.inf))

    def _exact(self, key: object) -> float:
        if isinstance(key, float):
            return float(key)
        if type(key) is not int and is_bool(key):
            self.refuse(key)
        try:
            whole = index(key)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # it is asked here
            number = float(whole)
        except (TypeError, OverflowError) as error:
            let_through(error)
            self.refuse(key)
        if number != whole:
            self.refuse(key, "not exact")
        return number

    def decoder(self) -> Callable[[Data], float]:
        def decode(data: Data) -> float:
            (bits,) = _Q.unpack(data)
            number: float
            (number,) = struct.unpack(">d", _Q.pack(bits ^ _BIAS if bits & _BIAS else bits ^ (2**64 - 1)))
            if number != number or bits == _BIAS - 1:
                raise ValueError("NaN or -0.0")
            return number

        return decode


COMMON: Mapping[Any, KeyCodec[Any]] = {
    int: IntKey(),
    str: StrKey(),
    bytes: BlobKey(),
    bool: BoolKey(),
    float: FloatKey(),
}
"""The codecs of the types that most keys have."""


def key_codec(annotation: Any) -> KeyCodec[Any]:
    """The codec that an annotation means: of a plain type, of ``Annotated`` with a codec in it, of a tuple of these.

    >>> from uuid import UUID
    >>> key_codec(tuple[UUID, str])
    <key codec tuple(uuid,str)>

    Raises `TypeError`, with a list of what there is, for anything else.
    """
    codec = COMMON.get(annotation) if isinstance(annotation, type) else None
    if codec is None:
        from .registry import codec_of  # late: it has UUIDs, tuples, and whatever else a key can be

        return codec_of(annotation)
    return codec
