"""Where in a value an int is that MessagePack cannot store: the text of the error says it, and the library does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .base import is_a, show, typename
from .depth import slot_names

_ADVICE = "give the values the type Cbor[...], Json[...] or Pickle[...], which store ints of any size"


def large_int(value: Any) -> str:
    """Words on the first int in *value* that has more than 64 bits, with its place; empty if there is none.

    It looks at every part of plain data, and of objects and what their attributes hold. *value* may hold itself.
    """
    places: list[tuple[str, Any]] = [(_top(value), value)]
    known: dict[int, Any] = {}
    while places:
        place, one = places.pop()
        if is_a(one, int):
            if not -(2**63) <= one < 2**64:
                return f"{place} is {show(one)}: {_ADVICE}"
        elif id(one) not in known:
            known[id(one)] = one
            places.extend(reversed(list(_inside(place, one))))
    return ""


def _top(value: Any) -> str:
    return "the value" if is_a(value, (int, dict, list, tuple, set, frozenset)) else typename(type(value))


def _inside(place: str, one: Any) -> Iterable[tuple[str, Any]]:
    """The parts of *one*, with their places, in the order in which they are stored."""
    if is_a(one, dict):
        for key, part in one.items():
            yield f"a key of {place}", key
            yield f"{place}[{key!r}]", part
    elif is_a(one, tuple) and hasattr(one, "_fields"):
        yield from [(f"{place}.{name}", part) for name, part in zip(one._fields, one)]
    elif is_a(one, (list, tuple)):
        yield from [(f"{place}[{number}]", part) for number, part in enumerate(one)]
    elif is_a(one, (set, frozenset)):
        yield from [(f"an element of {place}", part) for part in one]
    else:
        names: Any = getattr(one, "__dict__", None) or [
            name for base in reversed(type(one).__mro__) for name in slot_names(vars(base).get("__slots__"))
        ]
        yield from [(f"{place}.{name}", getattr(one, name, None)) for name in list(names)]
