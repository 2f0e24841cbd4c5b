"""The key types of plain Python types, in which every value sorts. None has no place among them."""

from __future__ import annotations

import datetime as dt
import math
import struct
import sys
from collections.abc import Sequence
from operator import index
from typing import Any, Callable, Optional, SupportsIndex

from ..errors import EncodeError
from ..handlers import let_through
from .base import Data, Inline, KeyCodec
from .uuids import random_int

_BIAS = 2**63  # added to a signed number it flips the sign bit, so that the negative ones come first
_Q = struct.Struct(">Q")


class IntKey(KeyCodec[int]):
    """A signed whole number of 64 bits: big-endian with the sign bit flipped.

    Anything with ``__index__`` is taken, numpy's integers included, except bool.
    """

    counts_from = 0
    name = "int"
    width = 8
    expects = "an int from -2**63 to 2**63 - 1"

    @property
    def examples(self) -> Sequence[int]:
        return [-(2**63), -(2**32), -256, -255, -1, 0, 1, 255, 256, 2**32, 2**53 + 1, 2**63 - 1]

    def encode(self, key: int) -> bytes:
        if isinstance(key, bool):
            self.refuse(key)
        try:
            return _Q.pack(index(key) + _BIAS)
        except TypeError as error:
            let_through(error)
            self.refuse(key)
        except (struct.error, ValueError) as error:  # the second on PyPy
            let_through(error)
            self.refuse(key, "out of range")

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
        return f"pack({f'{prefix!r}, ' if prefix else ''}key + {_BIAS})", {"pack": pack}

    def inline(self) -> Inline:
        return Inline("Q", "type({x}) is int", f"{{x}} + {_BIAS}", f"{{x}} - {_BIAS}")

    def new_key(self, last: Optional[int] = None) -> int:
        if last is None:
            return random_int(8) >> 1
        if last >= _BIAS - 1:
            self.refuse(last + 1, "out of range")
        return last + 1


def side_of(key: Any, least: int, greatest: int) -> int:
    """`KeyCodec.side` of whole numbers from *least* to *greatest*."""
    if isinstance(key, bool) or not isinstance(key, SupportsIndex):
        return 0
    return (index(key) > greatest) - (index(key) < least)


class StrKey(KeyCodec[str]):
    """A text as UTF-8, which sorts by code point. In a tuple it may hold NUL in any place."""

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
        if isinstance(key, bool) or not isinstance(key, SupportsIndex):
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
        if isinstance(key, bool):
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


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_FIRST = -62_135_596_800_000_000  # year 1 to year 9999, in microseconds since 1970
_LAST = 253_402_300_799_999_999


class DatetimeKey(KeyCodec[dt.datetime]):
    """An aware `datetime.datetime` as microseconds since 1970 in UTC, signed, 64 bits, the sign bit flipped.

    It comes back in UTC. Naive ones, of which nobody can say when they were, are refused.
    """

    name = "datetime"
    width = 8
    expects = "a datetime with a time zone, such as datetime.now(timezone.utc), in the years 1 to 9999 of UTC"

    @property
    def examples(self) -> Sequence[dt.datetime]:
        micros = (_FIRST, _FIRST + 1, -1_000_001, -1, 0, 1, 1_700_000_000_123_456, _LAST)
        return [_EPOCH + dt.timedelta(microseconds=number) for number in micros]

    def encode(self, key: dt.datetime) -> bytes:
        return _Q.pack(self.biased_micros(key))

    def side(self, key: Any) -> int:
        if not isinstance(key, dt.datetime) or key.utcoffset() is None:
            return 0
        year = key.replace(tzinfo=None).year
        return 0 if 1 < year < 9999 else 1 if year > 1 else -1

    def biased_micros(self, key: dt.datetime) -> int:
        """The microseconds since 1970, plus 2**63."""
        if not isinstance(key, dt.datetime):  # pyright: ignore[reportUnnecessaryIsInstance]  # as in StrKey
            self.refuse(key)
        if key.utcoffset() is None:
            self.refuse(key, "it has no time zone")
        if getattr(key, "nanosecond", 0):  # pandas.Timestamp is a datetime, and finer
            self.refuse(key, "finer than microseconds")
        since = key - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        if not _FIRST <= micros <= _LAST:
            self.refuse(key, "out of range in UTC")
        return micros + _BIAS

    def decoder(self) -> Callable[[Data], dt.datetime]:
        unpack = _Q.unpack
        return lambda data: _from_biased(unpack(data)[0])

    def inline(self) -> Inline:
        names = {"from_biased": _from_biased}
        return Inline("Q", "True", "{codec}.biased_micros({x})", "from_biased({x})", names)

    def new_key(self, last: Optional[dt.datetime] = None) -> dt.datetime:
        """The present time, or a microsecond after *last* if that is later."""
        now = dt.datetime.now(dt.timezone.utc)
        return now if last is None else max(now, last + dt.timedelta(microseconds=1))


def _from_biased(number: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(0, 0, number - _BIAS)


class DateKey(KeyCodec[dt.date]):
    """A `datetime.date` as days since 1970, signed, 32 bits, the sign bit flipped. A datetime is not a date."""

    name = "date"
    width = 4
    expects = "a datetime.date that is not a datetime"

    @property
    def examples(self) -> Sequence[dt.date]:
        return [dt.date.min, dt.date(1, 1, 2), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date.max]

    def encode(self, key: dt.date) -> bytes:
        if isinstance(key, dt.datetime) or not isinstance(key, dt.date):  # pyright: ignore[reportUnnecessaryIsInstance]
            self.refuse(key)
        return struct.pack(">I", key.toordinal() - _DAY_0 + 2**31)

    def decoder(self) -> Callable[[Data], dt.date]:
        unpack, from_ordinal = struct.Struct(">I").unpack, dt.date.fromordinal
        return lambda data: from_ordinal(unpack(data)[0] - 2**31 + _DAY_0)


_DAY_0 = dt.date(1970, 1, 1).toordinal()
