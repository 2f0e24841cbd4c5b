"""The tables of the file of a cache."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .. import Schema, Table
from ..shown import shortened


def tables_for(key: Any) -> type[Schema]:
    """The tables of a cache with keys of the type *key*."""
    if isinstance(key, str):  # which Python takes for the name of a type
        raise TypeError(f"keys: {shortened(key)} is a text: expected a type, such as str")
    return _kept(key) if type(key) is type else _made(key)


def _made(key: Any) -> type[Schema]:
    table: Any = Table
    parts = {
        "entries": table[key, bytes],
        "until": table[tuple[float, key], bytes],
        "tags": table[tuple[str, key], bytes],
        "used": table[key, int],
        "hand": table[int, key],
        "rounds": table[str, int],
        "pending": table[key, float],
        "types": table[str, str],
    }
    return type("CacheTables", (Schema,), {"__annotations__": parts, "__module__": __name__})


_kept = lru_cache(16)(_made)  # of classes only: Literal["a", "b"] is equal to Literal["b", "a"], which sorts otherwise
