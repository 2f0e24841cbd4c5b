"""An entry of a cache: what its bytes say before the value, until when it is kept and its tag; and its details."""

from __future__ import annotations

import time
from struct import Struct
from typing import Any, Optional

from ..errors import EncodeError, SchemaMismatch
from ..namedtuples import NamedTuple
from ..numeric import checked_seconds
from ..shown import shortened

HEAD = Struct("<dII")
"""Until, the round in which it was stored (with `MOVED`), the bytes before the value: of the tag, and of a `TIME`."""

SIZE = HEAD.size
"""Bytes of the head."""

MOVED = 1 << 31
"""The list by time has the entry under an earlier time, which `TIME` tells, and not under its own: see `Cache._put`."""

TIME = Struct("<d")

NEVER = float("inf")
"""The time of entries that do not expire."""

_clock = time.time


class CacheDetails(NamedTuple):
    """An entry of a cache: its value, when it expires in seconds since 1970, or None, and its tag, or None."""

    value: Any
    expire_time: Optional[float]
    tag: Optional[str]


def until_of(expire: Optional[float]) -> float:
    """The time when what is stored now for *expire* seconds has expired."""
    if expire is None:
        return NEVER
    return _clock() + checked_seconds("expire", expire, ", or None for ever", negative=True)


def stored_tag(tag: Any) -> bytes:
    """A given *tag* as it is stored. Raises TypeError, ValueError or `EncodeError`."""
    if tag is None:
        return b""
    if not isinstance(tag, str):
        raise TypeError(f"tag={shortened(tag)}: expected a text, or None")
    if not tag:
        raise ValueError("tag='': expected a text of at least one character, or None")
    try:
        return tag.encode()
    except UnicodeEncodeError:
        raise EncodeError(f"tag={shortened(tag)}: expected a text that UTF-8 can hold (no lone surrogates)") from None


def check_keys(path: Optional[str], key: Any, error: BaseException) -> None:
    """If *error* says of the table of a cache that its keys are of another type, or of none, say so of the cache."""
    if type(error) is TypeError:
        raise TypeError(f"Cache(path, key, value): {str(error).partition(': ')[2]}") from error
    if not isinstance(error, SchemaMismatch) or "has keys of type" not in str(error):
        return
    given = getattr(key, "__name__", key)
    raise SchemaMismatch(
        f"the cache {path!r} does not have keys of type {given}: give the type with which it was made, "
        f"zlmdb.Cache(path, key, value), or another path"
    ) from error


def shown(db: Any) -> Any:
    """*db*, whose errors now name the cache, and not the tables."""
    for name, (_, storage) in list(db._storages.items()):
        storage.shown, storage.roomier = "the cache", ""  # nobody chooses the format of its file
        storage.shown_key = _KEYS.get(name, storage.shown_key)
    return db


_KEYS = {"tags": "the tag with the key", "until": "the time of expiry with the key"}
"""What the keys of tables consist of, for people."""


def tag_bytes_of(data: bytes) -> bytes:
    """The tag of an entry, as it is stored."""
    _, round, size = HEAD.unpack_from(data)
    return data[SIZE : SIZE + size - TIME.size] if round & MOVED else data[SIZE : SIZE + size]


def tag_of(data: bytes) -> str:
    """The tag of an entry; an empty text if it has none."""
    return tag_bytes_of(data).decode()


def listed_of(data: bytes) -> float:
    """The time under which the list by time has an entry."""
    until, round, size = HEAD.unpack_from(data)
    return TIME.unpack_from(data, SIZE + size - TIME.size)[0] if round & MOVED else until


def listed_at(data: bytes, listed: float) -> bytes:
    """The entry *data*, which the list by time has under the time *listed*."""
    until, round, size = HEAD.unpack_from(data)
    tag = tag_bytes_of(data)
    if listed == until:
        return HEAD.pack(until, round & ~MOVED, len(tag)) + tag + data[SIZE + size :]
    time = TIME.pack(listed)
    return HEAD.pack(until, round | MOVED, len(tag) + TIME.size) + tag + time + data[SIZE + size :]


def added(key: Any, number: Any, delta: Any) -> Any:
    """The sum of *number*, the value of *key*, and *delta*. Raises TypeError, and `EncodeError` if there is none."""
    try:
        return number + delta
    except TypeError as error:
        raise TypeError(
            f"incr({key!r}, {shortened(delta)}): the value is {shortened(number)} ({type(number).__name__}), to which "
            f"{shortened(delta)} cannot be added"
        ) from error
    except ArithmeticError as error:  # of a float and an int beyond all floats, of a signalling NaN
        raise EncodeError(
            f"incr({key!r}, {shortened(delta)}): the sum of {shortened(number)} ({type(number).__name__}) and that "
            f"cannot be computed: {error}"
        ) from error


def negated(key: Any, delta: Any) -> Any:
    """What is added to the value of *key* so that *delta* is subtracted. Raises TypeError."""
    try:
        return -delta
    except (TypeError, ArithmeticError) as error:  # the latter of a signalling NaN
        raise TypeError(
            f"decr({key!r}, {shortened(delta)}): expected a number to subtract, got {type(delta).__name__}"
        ) from error
