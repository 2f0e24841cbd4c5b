"""The maximum depth of a value: the same in every format, so that every reader of the file can read it.

Every library has a limit of its own, and so have the stack of Python and the tools of other languages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable, Optional

from .base import Encode, is_a, is_of_depth

DEPTH = 100
"""The levels of lists, dicts, records and the like inside each other that a value may have: ``[[]]`` has two."""

_FLAT = frozenset({str, int, float, bool, type(None), bytes})

TOO_DEEP = f"nested deeper than {DEPTH} levels: store the inner parts as records of their own, or as text"


def too_deep(value: Any) -> bool:
    """Whether plain data, or objects and what their attributes hold, are nested deeper than `DEPTH`.

    An object that is in several places counts where it is nearest to the top.
    """
    level: list[Any] = [value]
    known: dict[int, Any] = {}
    for _ in range(DEPTH + 1):
        level = [one for one in level if type(one) not in _FLAT and id(one) not in known]
        known.update((id(one), one) for one in level)
        inner = [_inside(one) for one in level]
        if all(items is None for items in inner):
            return False
        level = [item for items in inner if items is not None for item in items]
    return True


def _inside(one: Any) -> Optional[Iterable[Any]]:
    """What *one* holds; None for what is no container."""
    if is_a(one, dict):
        return [*one.keys(), *one.values()]
    if is_a(one, (list, tuple, set, frozenset)):
        return one
    attributes: Any = getattr(one, "__dict__", None)
    if is_a(attributes, dict):
        return list(attributes.values())
    slots = [name for base in type(one).__mro__ for name in slot_names(vars(base).get("__slots__"))]
    return [getattr(one, name, None) for name in slots] if slots else None


def slot_names(slots: Any) -> Iterable[str]:
    """The names in a ``__slots__``, which may be one name."""
    return () if slots is None else (slots,) if is_a(slots, str) else tuple(slots)


def shallow(value: Any, left: int = DEPTH) -> bool:
    """Whether plain data has at most *left* levels. For what must be known before a library is given the value."""
    items: Iterable[Any]
    if is_a(value, dict):
        items = value.values()
    elif is_a(value, (list, tuple, set, frozenset)):
        items = value
    elif type(value) in _FLAT or not hasattr(value, "tag"):
        return True
    else:
        items = (getattr(value, "value", None),)
    if not left:
        return False
    return all(type(item) in _FLAT or shallow(item, left - 1) for item in items)


def limited(encode: Encode, maybe: Callable[[bytes], bool]) -> Encode:
    """*encode*, refusing values that are nested too deeply. *maybe* looks at the bytes alone, and is quick.

    It raises ValueError.
    """

    def encode_limited(value: Any) -> bytes:
        try:
            data = encode(value)
        except (RecursionError, TypeError) as error:
            if is_of_depth(error):
                raise ValueError(TOO_DEEP) from None
            raise
        return not_deep(value, data) if len(data) > DEPTH and maybe(data) else data

    return encode_limited


def not_deep(value: Any, data: bytes) -> bytes:
    """*data*, which are the bytes of *value*. Raises ValueError where that is nested too deeply."""
    if too_deep(value):
        raise ValueError(TOO_DEEP)
    return data


def may_be_deep(shape: Any) -> bool:
    """Whether values of *shape* may be nested to any depth: it says nothing of what is inside, or holds itself."""
    return _height(shape, ()) > DEPTH


def _height(shape: Any, above: tuple[Any, ...]) -> int:
    if shape.unbounded or shape in above:
        return DEPTH + 1
    return 1 + max((_height(part, (*above, shape)) for part in shape.children()), default=0)


def text_may_be_deep(data: bytes) -> bool:
    """Whether JSON may be nested too deeply."""
    return data.count(b"[") + data.count(b"{") > DEPTH


_NO_MSGPACK = bytes(byte for byte in range(256) if not (0x80 <= byte < 0xA0 or 0xDC <= byte < 0xE0))
_NO_CBOR = bytes(byte for byte in range(256) if not 0x80 <= byte < 0xDC)


def msgpack_may_be_deep(data: bytes) -> bool:
    """Whether MessagePack may be nested too deeply: it has so many bytes that may begin an array or a map."""
    return len(data.translate(None, _NO_MSGPACK)) > DEPTH


def cbor_may_be_deep(data: bytes) -> bool:
    """Whether CBOR may be nested too deeply: it has so many bytes that may begin an array, a map or a tag."""
    return len(data.translate(None, _NO_CBOR)) > DEPTH


MEMOIZE = b"\x94"
"""The instruction of a pickle to keep what was made last."""


SHORT_PICKLE = 2 * DEPTH
"""The length up to which a pickle cannot be nested too deeply: a level has an instruction to make it, and `MEMOIZE`.

Counting in a pickle of this length takes a fifth of the time of writing it.
"""


def pickle_may_be_deep(data: bytes) -> bool:
    """Whether a pickle may be nested too deeply: it keeps each container in its memo, but an empty tuple."""
    return len(data) > SHORT_PICKLE and data.count(MEMOIZE) >= DEPTH


MAYBE: dict[str, Callable[[bytes], bool]] = {
    "json": text_may_be_deep,
    "msgpack": msgpack_may_be_deep,
    "cbor": cbor_may_be_deep,
}
"""By the format of a `Model`, the quick look at the bytes of a value."""
