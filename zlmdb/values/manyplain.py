"""Encodes many documents at once: the check of plain data looks at all of them together, in C.

What Python asks of each key and value by itself takes 20 ns. The garbage collector lists what is in many dicts and
lists in one call, and CPython leaves out the keys of a dict where all of them are text: of no other class, since no
object that might be part of a cycle may be left out. So the number of what is listed tells that all keys are text, and
only the values are asked for their types, in a loop in C: 8 ns for each. All of this only accepts; what it does not
accept is left to the check of single documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from gc import get_referents
from typing import Any, Callable

from .base import Encode
from .depth import DEPTH

MOST = 50_000
"""How much may be in the lists and dicts of one level; a list that holds itself many times has no end of it."""

LONGEST = 64
"""How many lists of documents are not looked at together, at most, after some that did not pass."""

_CONTAINERS = frozenset({list, dict})


class _Text(str):
    """Text that would be read back as another class."""

    __slots__ = ()


def keys_are_left_out() -> bool:
    """Whether this interpreter's collector lists the keys of a dict, unless all of them are text."""
    others: list[Any] = [1, 1.5, True, None, b"", (), _Text("b")]
    alone = get_referents({"": 0, "a": 1}) == [0, 1]
    return alone and all([len(get_referents({"a": 0, key: 1})) > 2 for key in others])


def all_plain(values: Sequence[Any], scalars: frozenset[type]) -> bool:
    """Whether each of *values*, lists and dicts, certainly has nothing in it but *scalars*, lists, and dicts by text.

    Where it is false, some may have nothing else all the same.
    """
    known = scalars | _CONTAINERS
    held = values
    for _ in range(DEPTH):
        count = sum(map(len, held))
        if count > MOST:
            return False
        inside = get_referents(*held)
        if len(inside) != count:
            return False
        width, begin, alike = len(held[0]) if held else 0, list[type](), False
        if width * len(held) == count:  # documents of one kind have values of the same types at the same places
            types = [*map(type, inside)]
            begin = types[:width]
            alike = types == begin * len(held)
            kinds = {*(begin if alike else types)}
        else:
            kinds = {*map(type, inside)}
        if kinds <= scalars:
            return True
        if not kinds <= known:
            return False
        if alike:
            places = [place for place, cls in enumerate(begin) if cls in _CONTAINERS]
            held = [one for place in places for one in inside[place::width]]
        else:
            held = [one for one in inside if type(one) in _CONTAINERS]
    return False


def encoder_of_lists(
    cls: type[Any], scalars: frozenset[type], encode: Encode, checked: Encode
) -> Callable[[Sequence[Any]], list[bytes]]:
    """A function that does *checked* with each value of a list: by *encode*, where all are plain data of *cls*.

    If some lists do not pass it looks at fewer of those to come, as this costs a third of the other check.
    """
    wait = missed = 0

    def encode_list(values: Sequence[Any]) -> list[bytes]:
        nonlocal wait, missed  # threads may count wrongly, and then look a little too often
        if wait > 0:
            wait -= 1
        elif {*map(type, values)} <= {cls} and all_plain(values, scalars):
            missed = 0
            return [*map(encode, values)]
        else:
            missed = min(2 * missed + 1, LONGEST)
            wait = missed
        return [*map(checked, values)]

    return encode_list
