"""Timestamps in nanoseconds, which are numpy's: the one key type that needs numpy, imported on first use."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional

from ..locks import cached_property
from .base import Data, Inline, KeyCodec

if TYPE_CHECKING:
    import numpy

_MAXIMUM = 2**63 - 1
_SECONDS = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60, "s": 1}
_NS = {**{unit: seconds * 10**9 for unit, seconds in _SECONDS.items()}, "ms": 10**6, "us": 1000, "ns": 1}
_PER_NS = {"ps": 10**3, "fs": 10**6, "as": 10**9}
_LAST_YEAR = {"Y": 2262 - 1970, "M": (2262 - 1970) * 12 + 3}  # the last ones that begin before 2**63 ns


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise ImportError("keys of type Timestamp need numpy: pip install zlmdb[numpy]") from error
    return numpy


class TimestampKey(KeyCodec["numpy.datetime64"]):
    """A `numpy.datetime64` as its nanoseconds since 1970, a signed 64-bit number, most significant byte first.

    Every unit is taken if nanoseconds can hold the time exactly; years 1970 to 2262. Earlier ones would not sort and
    are refused, though stored ones can be read. Use the plain type `datetime.datetime` for times before 1970.
    """

    name = "timestamp"
    width = 8
    by_clock = True
    takes_none = True
    expects = "a numpy.datetime64 from 1970 on that is exact in nanoseconds"

    def __init__(self, *, little: bool = False) -> None:
        self.sorts = not little
        self._struct = struct.Struct("<q" if little else ">q")
        if little:
            self.name = "timestamp-le"

    @property
    def examples(self) -> Sequence[numpy.datetime64]:
        times = (0, 1, 255, 256, 1_700_000_000_123_456_789, _MAXIMUM - 1, _MAXIMUM)
        return [_numpy().datetime64(number, "ns") for number in times]

    def encode(self, key: Optional[numpy.datetime64]) -> bytes:
        return self._struct.pack(self._nanoseconds(key))

    @cached_property
    def _nanoseconds(self) -> Callable[[object], int]:
        """The nanoseconds since 1970 of any key."""
        numpy = _numpy()
        datetime64, native = numpy.datetime64, numpy.dtype("M8[ns]")

        def nanoseconds(key: Any) -> int:
            if type(key) is datetime64 and key.dtype == native:
                number = key.item()  # an int or, for NaT, None
                if number is not None and number >= 0:
                    return int(number)
            return self._from_other_unit(key)

        return nanoseconds

    def _from_other_unit(self, key: Any) -> int:
        numpy = _numpy()
        if key is None:
            return 0
        if not isinstance(key, numpy.datetime64):
            self.refuse(key)
        if numpy.isnat(key):
            self.refuse(key, "not a time")
        unit, count = numpy.datetime_data(key.dtype)
        number: int = int(key.astype("i8")) * count
        if unit in _LAST_YEAR:  # these have no fixed length, numpy knows the calendar
            if not 0 <= number <= _LAST_YEAR[unit]:
                self.refuse(key, "out of range")
            number, unit = int(key.astype("M8[D]").astype("i8")), "D"
        if unit not in _NS and unit not in _PER_NS:
            self.refuse(key, "it has no unit")
        number, rest = divmod(number * _NS.get(unit, 1), _PER_NS.get(unit, 1))
        if rest:
            self.refuse(key, f"{unit} are finer than nanoseconds")
        if not 0 <= number <= _MAXIMUM:
            self.refuse(key, "before 1970" if number < 0 else "beyond 2262")
        return number

    def side(self, key: Any) -> int:
        numpy = _numpy()
        if not isinstance(key, numpy.datetime64) or numpy.isnat(key):
            return 0
        unit, count = numpy.datetime_data(key.dtype)
        number = int(key.astype("i8")) * count
        last = _LAST_YEAR[unit] if unit in _LAST_YEAR else _MAXIMUM // _NS[unit] if unit in _NS else None
        return 0 if last is None else (number > last) - (number < 0)

    def decoder(self) -> Callable[[Data], numpy.datetime64]:
        unpack, datetime64 = self._struct.unpack, _numpy().datetime64
        return lambda data: datetime64(unpack(data)[0], "ns")

    def inline(self) -> Inline:
        if not self.sorts:
            return super().inline()
        names = {"nanoseconds": self._nanoseconds, "datetime64": _numpy().datetime64}
        return Inline("q", "True", "nanoseconds({x})", "datetime64({x}, 'ns')", names)

    def new_key(self, last: Optional[numpy.datetime64] = None) -> numpy.datetime64:
        """The present time, or a nanosecond after *last* if that is later."""
        now = time.time_ns()
        if last is not None:
            now = max(now, self._nanoseconds(last) + 1)
        return _numpy().datetime64(now, "ns")
