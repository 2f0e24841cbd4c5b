"""Decimal numbers as keys: of any size and any number of digits, in the order of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable

from .base import Data, KeyCodec

if TYPE_CHECKING:
    from decimal import Decimal

# The first byte, in ascending order.
_LEAST, _NEGATIVE, _ZERO, _POSITIVE, _GREATEST = 0x10, 0x40, 0x80, 0xC0, 0xF0
_FEW = 126  # exponents up to this one, and down to minus it, are one byte
_BIAS = 2**63


class DecimalKey(KeyCodec["Decimal"]):
    """A `decimal.Decimal`: a byte for its sign, its exponent, and its digits two by two, each pair plus 1.

    The exponent is that of the first digit, plus 128, in one byte; beyond 126 either way 00 or ff and 8 bytes. Of
    negative numbers all that follows the first byte is inverted, and ff ends it. Zeros at the end of the digits are not
    kept: ``Decimal("1.50")`` comes back as its equal ``Decimal("1.5")``. NaN is refused, infinities are in order.
    """

    name = "decimal"
    expects = "a decimal.Decimal other than NaN, or an int"

    @property
    def examples(self) -> Sequence[Decimal]:
        from decimal import Decimal

        positive = [
            "1E-999999", "1E-127", "1E-126", "0.01", "0.1", "0.11", "0.9", "1", "1.01", "1.1", "9.99", "10", "12",
        ]  # fmt: skip
        numbers = [*positive, "123", "1E+126", "1E+127", "1.00000000000000000000000000000000001E+999999", "Infinity"]
        negative = [Decimal(f"-{one}") for one in reversed(numbers)]
        return [*negative, Decimal(0), *map(Decimal, numbers)]

    def encode(self, key: Decimal) -> bytes:
        from decimal import Decimal

        number: Any = key
        if not isinstance(number, Decimal):
            if not isinstance(number, int) or isinstance(number, bool):
                self.refuse(key)
            number = Decimal(number)
        if number.is_nan():
            self.refuse(key)
        if number.is_infinite():
            return bytes([_GREATEST if number > 0 else _LEAST])
        if not number:
            return bytes([_ZERO])
        sign, digits, exponent = number.as_tuple()
        written = "".join(map(str, digits))
        tail = _exponent(int(exponent) + len(written.lstrip("0")) - 1) + _pairs(written.strip("0"))
        return bytes([_NEGATIVE]) + _inverted(tail) + b"\xff" if sign else bytes([_POSITIVE]) + tail

    def decoder(self) -> Callable[[Data], Decimal]:
        from decimal import Decimal

        fixed = {bytes([_LEAST]): "-Infinity", bytes([_ZERO]): "0", bytes([_GREATEST]): "Infinity"}

        def decode(data: Data) -> Decimal:
            stored = bytes(data)
            if stored in fixed:
                return Decimal(fixed[stored])
            sign, tail = int(stored[0] == _NEGATIVE), stored[1:]
            if sign:
                tail = _inverted(tail[:-1])
            elif stored[0] != _POSITIVE:
                raise ValueError("no sign")
            written, exponent = _parsed(tail)
            number = Decimal((sign, tuple(map(int, written)), exponent - len(written) + 1))
            if self.encode(number) != stored:
                raise ValueError("not the encoding of a number")
            return number

        return decode


def _exponent(exponent: int) -> bytes:
    if -_FEW <= exponent <= _FEW:
        return bytes([exponent + 128])
    return (b"\0" if exponent < 0 else b"\xff") + (exponent + _BIAS).to_bytes(8, "big")


def _pairs(digits: str) -> bytes:
    return bytes([int(digits[i : i + 2].ljust(2, "0")) + 1 for i in range(0, len(digits), 2)])


def _inverted(data: bytes) -> bytes:
    return bytes([255 - byte for byte in data])


def _parsed(tail: bytes) -> tuple[str, int]:
    """The digits, and the exponent of the first one."""
    if tail[0] in (0, 255):
        return _digits(tail[9:]), int.from_bytes(tail[1:9], "big") - _BIAS
    return _digits(tail[1:]), tail[0] - 128


def _digits(pairs: bytes) -> str:
    return "".join([f"{pair - 1:02}" for pair in pairs]).rstrip("0")
