"""Records that expire: what a table class declares of it, and when a record has expired."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from math import floor
from typing import Any, Optional, Union

from ..keys import KeyCodec
from ..namedtuples import NamedTuple
from .index import Index

INDEX = "expires"
"""The name of the index of the times; no index of a program can have it."""


class Expiry(NamedTuple):
    """The *field* with the time from which a record has expired; with *ttl* so many seconds after it."""

    field: str
    ttl: float = 0.0


class ExpiryIndex(Index[Any]):
    """The index of the times. The file records it as what it is: a program without it cannot write to the table."""

    @property
    def _called(self) -> str:
        return f"expires={self._fields[0]!r}"

    def _check_types(self, model: Any) -> None:
        super()._check_types(model)
        if self._known_type(model, self._fields[0]) is not None:  # else it may be known when the database is opened
            self._declared_key(model)

    def _declared_key(self, model: Any) -> KeyCodec[Any]:
        codec = super()._declared_key(model)
        if codec.name not in CUTS:
            raise TypeError(
                f"expires={self._fields[0]!r}: the field is of type {codec.name}; expected datetime, or float or int "
                f"for seconds since 1970, or Optional of these"
            )
        return codec

    def _definition(self, model: Any) -> dict[str, Any]:
        return {**super()._definition(model), "expires": True}


def declare(cls: Any, field: Optional[str], ttl: Union[timedelta, float, None]) -> None:
    """Let the records of the table class *cls* expire, as ``expires=field, ttl=ttl`` say."""
    if field is None:
        raise TypeError(f"ttl={ttl!r} is counted from the time in a field: add expires=, with the name of the field")
    given: Any = field
    if not isinstance(given, str):
        raise TypeError(
            f"expires={field!r}: expected the name of a field, which has the time when its record expires, or with "
            f"ttl=... the time from which that is counted"
        )
    given = 0 if ttl is None else ttl
    try:
        seconds = given.total_seconds() if isinstance(given, timedelta) else float(given)
    except (TypeError, ValueError, OverflowError):
        seconds = -1.0
    if isinstance(given, (str, bytes, bytearray, bool)):  # which float() takes, too
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"ttl={ttl!r}: expected a timedelta, or seconds, not negative")
    index = ExpiryIndex(field)
    index.__set_name__(cls, INDEX)
    setattr(cls, INDEX, index)
    cls._expiry = Expiry(field, seconds)


def _datetime(seconds: float) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:  # a clock or a ttl beyond all times
        return (datetime.max if seconds > 0 else datetime.min).replace(tzinfo=timezone.utc)


def _int(seconds: float) -> int:
    return floor(max(-_LATEST, min(seconds, _LATEST)))


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LATEST = float(1 << 63)
CUTS: Mapping[str, Callable[[float], Any]] = {"datetime": _datetime, "float": float, "int": _int}
"""The functions that give the latest time of an expired record, by the type of the field."""
