"""What the bytes of an entry of a cache say of it, before its value: until when it is kept, and its tag."""

from __future__ import annotations

import time
from struct import Struct
from typing import Optional

HEAD = Struct("<dII")
"""Until, the round in which it was stored, the bytes of the tag; then follow the tag, and the value."""

SIZE = HEAD.size
"""Bytes of the head."""

NEVER = float("inf")
"""The time of entries that do not expire."""

_clock = time.time


def until_of(expire: Optional[float]) -> float:
    """The time when what is stored now for *expire* seconds has expired."""
    return NEVER if expire is None else _clock() + expire


def tag_of(data: bytes, size: int) -> str:
    """The tag of an entry, which takes *size* bytes of it."""
    return data[SIZE : SIZE + size].decode() if size else ""
