"""Writes that are read back at once, where only that tells whether a value can be read, and as what.

That is so where the class of a value has a say when an object of it is made: a validator of Pydantic, a converter of
attrs, a ``__post_init__``. It may make something else of a value once (a text in small letters, say), but has to leave
what it made as it is: else each edit of a record would change it further.
"""

from __future__ import annotations

from collections.abc import Iterable
from pickle import dumps
from typing import Any, Optional

from .base import Decode, Encode, show, typename

_ABSENT = object()


def reread(encode: Encode, decode: Decode, label: str) -> Encode:
    """*encode*, but refuses what *decode* does not read, or changes each time. Equal values have equal bytes."""

    def encode_reread(value: Any) -> bytes:
        data = encode(value)
        found = decode(data)
        again = encode(found)
        if again != data:
            settled(found, decode(again), label)
        return data

    return encode_reread


def settled(found: Any, again: Any, label: str) -> None:
    """Raise ValueError unless *found*, which was read, and *again*, as which it is read after a write, are equal."""
    what = difference(found, again, label)
    if what is not None:
        raise ValueError(
            f"{what}, and so on. Validators, converters and __post_init__ run each time a record is read: "
            "they have to accept what they return, and to leave it as it is"
        )


def difference(value: Any, found: Any, path: str, *, of_types: bool = False) -> Optional[str]:
    """The first place where *found*, as which *value* is read, is not *value*; None if they are equal.

    Objects are compared by their fields; *of_types*: what they hold only by its type.
    """
    return _difference(value, found, path, set(), of_types)


def _difference(value: Any, found: Any, path: str, seen: set[int], of_types: bool) -> Optional[str]:
    if value is found or id(value) in seen:
        return None
    parts = _parts(value, found)
    if parts is None:
        same = value.__class__ is found.__class__ if of_types else _equal(value, found)
        return None if same else f"{path}: {_shown(value, found)} would be read as {_shown(found, value)}"
    seen.add(id(value))
    differences = (_difference(one, other, path + step, seen, of_types) for step, one, other in parts)
    return next(filter(None, differences), None)


def _parts(value: Any, found: Any) -> Optional[Iterable[tuple[str, Any, Any]]]:
    """What two values hold: how it is written, and of each. None where they have to be compared as they are."""
    cls: Any = value.__class__
    if cls is not found.__class__:
        return None
    if cls in (list, tuple) and len(value) == len(found):
        return [(f"[{position}]", one, other) for position, (one, other) in enumerate(zip(value, found))]
    if cls is dict and list(value) == list(found):
        return [(f"[{show(key)}]", value[key], found[key]) for key in value]
    names = _fields(cls)
    return [(f".{name}", getattr(value, name, _ABSENT), getattr(found, name, _ABSENT)) for name in names] or None


def _fields(cls: Any) -> list[str]:
    """The names of the fields of a model class."""
    for attribute in ("__dataclass_fields__", "__pydantic_fields__", "__struct_fields__"):
        if hasattr(cls, attribute):
            return list(getattr(cls, attribute))
    return [one.name for one in getattr(cls, "__attrs_attrs__", ())]


def _equal(value: Any, found: Any) -> bool:
    try:
        if value == found:
            return True
    except Exception:
        pass  # an array has no truth; what follows tells
    try:
        return dumps(value, 5) == dumps(found, 5)  # NaN, and arrays
    except Exception:
        return False


def _shown(value: Any, other: Any) -> str:
    text = show(value)
    return text if text != show(other) else f"{text} ({typename(type(value))})"
