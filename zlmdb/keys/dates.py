"""The keys of the types `datetime.datetime` and `datetime.date`."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Sequence
from typing import Any, Callable, Optional

from .base import Data, Inline, KeyCodec

_BIAS = 2**63  # flips the sign bit, so that the times before 1970 come first
_Q = struct.Struct(">Q")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)
_FIRST = -62_135_596_800_000_000  # year 1 to year 9999, in microseconds since 1970
_LAST = 253_402_300_799_999_999


class DatetimeKey(KeyCodec[dt.datetime]):
    """An aware `datetime.datetime` as microseconds since 1970 in UTC: 64 bits, big-endian, the sign bit flipped.

    It comes back in UTC. Naive ones, of which nobody can say when they were, are refused.
    """

    name = "datetime"
    width = 8
    by_clock = True
    expects = "a datetime with a time zone, such as datetime.now(timezone.utc), in the years 1 to 9999 of UTC"
    made_of_text = "datetime.fromisoformat(...)"

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


def is_ambiguous(time: dt.datetime) -> bool:
    """Whether the clocks of its zone show *time* twice, or never: it equals none of another zone (PEP 495)."""
    if time.tzinfo is None or type(time.tzinfo) is dt.timezone:
        return False
    return time.replace(fold=1 - time.fold).utcoffset() != time.utcoffset()


def _from_biased(number: int) -> dt.datetime:
    return _EPOCH + (number - _BIAS) * _MICROSECOND  # the constructor takes thrice as long as to multiply


class DateKey(KeyCodec[dt.date]):
    """A `datetime.date` as days since 1970: 32 bits, big-endian, the sign bit flipped. A datetime is not a date."""

    name = "date"
    width = 4
    expects = "a datetime.date that is not a datetime"
    made_of_text = "date.fromisoformat(...)"

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
