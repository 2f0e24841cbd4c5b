"""The key types of times of day and of durations, to the microsecond."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Callable

from .base import Data, KeyCodec

_DAY = 86_400 * 10**6
_MICROSECOND = dt.timedelta(microseconds=1)
_BIAS = 1 << 71


class TimeKey(KeyCodec[dt.time]):
    """A naive `datetime.time` as the microseconds since midnight: 40 bits, big-endian."""

    name = "time"
    width = 5
    expects = "a datetime.time without a time zone"

    @property
    def examples(self) -> Sequence[dt.time]:
        return [dt.time(), dt.time(microsecond=1), dt.time(0, 0, 1), dt.time(12, 30), dt.time(23, 59, 59, 999_999)]

    def encode(self, key: dt.time) -> bytes:
        if not isinstance(key, dt.time):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all checked
            self.refuse(key)
        if key.tzinfo is not None:
            self.refuse(key, "it has a time zone, so its order depends on the day")
        return (((key.hour * 60 + key.minute) * 60 + key.second) * 10**6 + key.microsecond).to_bytes(5, "big")

    def decoder(self) -> Callable[[Data], dt.time]:
        def decode(data: Data) -> dt.time:
            micros = int.from_bytes(data, "big")
            if len(data) != 5 or micros >= _DAY:
                raise ValueError("no time of day")
            seconds, micros = divmod(micros, 10**6)
            return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)

        return decode


class TimedeltaKey(KeyCodec[dt.timedelta]):
    """A `datetime.timedelta` as its microseconds: 72 bits, big-endian, the sign bit flipped."""

    name = "timedelta"
    width = 9
    expects = "a datetime.timedelta"

    @property
    def examples(self) -> Sequence[dt.timedelta]:
        micro, day = _MICROSECOND, dt.timedelta(days=1)
        return [dt.timedelta.min, -day, -micro, dt.timedelta(0), micro, day, 300 * 365 * day, dt.timedelta.max]

    def encode(self, key: dt.timedelta) -> bytes:
        if not isinstance(key, dt.timedelta):  # pyright: ignore[reportUnnecessaryIsInstance]  # as above
            self.refuse(key)
        if getattr(key, "nanoseconds", 0):  # pandas.Timedelta is one, and finer
            self.refuse(key, "finer than microseconds")
        return ((key.days * 86_400 + key.seconds) * 10**6 + key.microseconds + _BIAS).to_bytes(9, "big")

    def decoder(self) -> Callable[[Data], dt.timedelta]:
        def decode(data: Data) -> dt.timedelta:
            if len(data) != 9:
                raise ValueError("9 bytes expected")
            return (int.from_bytes(data, "big") - _BIAS) * _MICROSECOND

        return decode


def to_seconds(key: dt.timedelta) -> str:
    """A duration as the text of its seconds, exactly.

    >>> to_seconds(dt.timedelta(seconds=-1, microseconds=500_000)), to_seconds(dt.timedelta(minutes=1))
    ('-0.500000', '60')
    """
    micros: Any = key // _MICROSECOND
    whole, rest = divmod(abs(micros), 10**6)
    return f"{'-' if micros < 0 else ''}{whole}{f'.{rest:06}' if rest else ''}"


def from_seconds(text: str) -> dt.timedelta:
    """What `to_seconds` gives. Raises `ValueError` for any other text."""
    from decimal import Decimal, InvalidOperation

    try:
        micros = Decimal(text) * 10**6
        if micros != int(micros):
            raise ValueError(f"{text!r} is finer than microseconds")
        return dt.timedelta(microseconds=int(micros))
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a number of seconds") from error
