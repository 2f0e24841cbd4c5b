"""Keys as the plain data of JSON and back: what the command line reads and prints, and a dump holds.

Numbers are numbers, texts texts; a UUID is its canonical text, bytes are hexadecimal, a date or time is by ISO 8601, a
decimal number and the seconds of a duration are texts, a `numpy.datetime64` the number of its nanoseconds since 1970, a
tuple a list of its parts. The codec says which.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from typing import Any
from uuid import UUID

from ..errors import EncodeError
from ..keys import KeyCodec, TupleKey
from ..keys.dates import DateKey, DatetimeKey
from ..keys.decimals import DecimalKey
from ..keys.descending import DescendingKey
from ..keys.durations import TimedeltaKey, TimeKey, from_seconds, to_seconds
from ..keys.plain import BlobKey, BoolKey, FloatKey
from ..keys.timestamp import TimestampKey
from ..values.base import is_a

_HEX = re.compile(r"bytes(\d+)?")


def to_plain(codec: KeyCodec[Any], key: Any) -> Any:
    """*key*, one of *codec*'s, as plain data.

    >>> from zlmdb.keys import key_codec
    >>> to_plain(key_codec(tuple[UUID, bytes]), (UUID(int=1), b"ab"))
    ['00000000-0000-0000-0000-000000000001', '6162']
    """
    if isinstance(codec, DescendingKey):
        return to_plain(codec.inner, key)
    if isinstance(codec, TupleKey):
        return [to_plain(part, one) for part, one in zip(codec.parts, key)]
    if isinstance(key, bytes):
        return key.hex()
    if isinstance(codec, TimestampKey):
        return int(key.astype("datetime64[ns]").astype("int64"))
    if isinstance(key, dt.timedelta):
        return to_seconds(key)
    if isinstance(key, (dt.date, dt.datetime, dt.time)):
        return key.isoformat()
    if isinstance(key, float):
        return key if math.isfinite(key) else str(key)
    return key if isinstance(key, (bool, int, str)) else str(key)


def from_plain(codec: KeyCodec[Any], data: Any) -> Any:
    """The key of *codec* for plain *data*. Raises `EncodeError` for invalid data."""
    try:
        return _from_plain(codec, data)
    except EncodeError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise EncodeError(
            f"{data!r} is not a key of type {codec.name}: {error}; expected one such as {_example(codec)}", key=data
        ) from error


def _from_plain(codec: KeyCodec[Any], data: Any) -> Any:
    if isinstance(codec, DescendingKey):
        return _from_plain(codec.inner, data)
    if isinstance(codec, TupleKey):
        parts: list[Any] = data if is_a(data, list) else []
        if len(parts) != len(codec.parts):
            raise ValueError(f"expected a list of {len(codec.parts)} parts")
        return tuple([_from_plain(part, one) for part, one in zip(codec.parts, parts)])
    if isinstance(codec, TimestampKey):
        import numpy

        return numpy.datetime64(data, "ns")
    if isinstance(codec, FloatKey) and isinstance(data, (int, str)) and not isinstance(data, bool):
        return float(data)
    if isinstance(codec, BoolKey) or not isinstance(data, str):
        return data
    return _from_text(codec, data)


def is_bytes(codec: KeyCodec[Any]) -> bool:
    """Whether keys of *codec* are bytes, which are hexadecimal in text."""
    return isinstance(codec, BlobKey) or _HEX.fullmatch(codec.name) is not None


def _from_text(codec: KeyCodec[Any], text: str) -> Any:
    if is_bytes(codec):
        return bytes.fromhex(text)
    if isinstance(codec, DatetimeKey):
        return dt.datetime.fromisoformat(re.sub("[Zz]$", "+00:00", text))
    if isinstance(codec, DateKey):
        return dt.date.fromisoformat(text)
    if isinstance(codec, TimeKey):
        return dt.time.fromisoformat(text)
    if isinstance(codec, TimedeltaKey):
        return from_seconds(text)
    if isinstance(codec, DecimalKey):
        return _decimal(text)
    return UUID(text) if codec.name == "uuid" else text


def _decimal(text: str) -> Any:
    from decimal import Decimal, InvalidOperation

    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is no number") from error


def parse(codec: KeyCodec[Any], text: str) -> Any:
    """The key that *text* from a command line means: JSON, or for a key that is no list and no number the bare text.

    >>> from zlmdb.keys import key_codec
    >>> parse(key_codec(int), "7"), parse(key_codec(str), "7"), parse(key_codec(tuple[str, int]), '["a", 7]')
    (7, '7', ('a', 7))

    Raises `EncodeError`.
    """
    if isinstance(codec, TupleKey) or not _is_text(codec):
        try:
            return from_plain(codec, json.loads(text))
        except json.JSONDecodeError as error:
            raise EncodeError(
                f"{text!r} is not a key of type {codec.name}: expected JSON, such as {_example(codec)}", key=text
            ) from error
    return from_plain(codec, text)


def _is_text(codec: KeyCodec[Any]) -> bool:
    """Whether plain keys of *codec* are text."""
    return isinstance(to_plain(codec, codec.examples[0]), str)


def _example(codec: KeyCodec[Any]) -> str:
    """A short key of *codec*, as JSON, for a message."""
    if isinstance(codec, TupleKey):
        return f"[{', '.join(map(_example, codec.parts))}]"
    greater = codec.examples[len(codec.examples) // 2 :]  # the others begin with the least key that there can be
    return min([json.dumps(to_plain(codec, key)) for key in greater], key=len)
