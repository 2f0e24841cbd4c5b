"""Layouts that others chose, and functions to read each: of older and newer classes, of the official builder.

A table whose vtable is not ours is read field by field. When the same vtable has been met a few times, it gets a
function of its own, which reads the fields at once as with our own layout.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Generic, Optional, TypeVar

from .layout import Layout
from .nodes import UnionOf

OFTEN = 64
"""How many times a vtable is met before it gets a function: making one takes as long as reading some hundred tables."""

MANY = 64
"""How many vtables of one table get functions."""

Plan = Callable[[Any, int, list[int]], Any]
Key = TypeVar("Key")
Made = TypeVar("Made")


class Foreign(Layout):
    """A layout read from a vtable."""

    def __init__(self, own: Layout, inline: int, offsets: tuple[int, ...]) -> None:
        """*offsets* of the fields by their ids, in a table of *inline* bytes. Raises ValueError if they overlap."""
        self.table = own.table
        self.inline = inline
        self.offsets = {}
        self.optional = []
        self.pinned = {}
        self.joint = None
        self.absent = set()
        self.places = []
        for place in own.places:
            field = place.field
            offset = offsets[place.id] if place.id < len(offsets) else 0
            if isinstance(field.node, UnionOf):
                raise ValueError("a union may be absent though the vtable has it")
            if offset:
                self.places.append(place.moved(offset))
                self.offsets[field.name] = offset
            else:
                self.absent.add(field.name)
        self.places.sort(key=lambda place: place.offset)
        self.tail = [field for field in own.table.fields if field.name in self.offsets and not field.in_place]
        self.unpack = struct.Struct(self._codes())

    def _codes(self) -> str:
        codes, end = "<4x", 4
        for place in self.places:
            if place.offset < end:
                raise ValueError("fields that overlap")
            codes += f"{place.offset - end}x{place.code}"
            end = place.offset + place.size
        if end > self.inline:
            raise ValueError("a field outside of its table")
        return codes


def read_vtable(vtable: bytes, own: Layout) -> Optional[Foreign]:
    """The layout that *vtable* describes; None if it is to be read field by field, or not at all."""
    if len(vtable) < 4 or len(vtable) % 2:
        return None
    size, inline, *offsets = struct.unpack(f"<{len(vtable) // 2}H", vtable)
    if size != len(vtable):
        return None
    try:
        return Foreign(own, inline, tuple(offsets))
    except ValueError:
        return None


class Often(dict[Key, Optional[Made]], Generic[Key, Made]):
    """By key, what *make* makes of it when it has been met often; None while there is nothing."""

    def __init__(self, make: Callable[[Key], Optional[Made]]) -> None:
        super().__init__()
        self._make = make
        self._met: dict[int, int] = {}
        """By hash: a key may be large, and one that is taken for another is only early."""

    def __missing__(self, key: Key) -> Optional[Made]:
        if len(self) >= MANY:
            return None
        number = hash(key)
        met = self._met.get(number, 0) + 1
        if met < OFTEN:
            if len(self._met) >= 1024:  # keys that come once are not worth the memory
                self._met.clear()
            self._met[number] = met
            return None
        made = self[key] = self._make(key)
        return made


Plans = Often[bytes, Plan]
"""By vtable, the functions that read such tables."""
