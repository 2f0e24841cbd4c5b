"""Functions to read layouts of other writers: of older and newer classes, and of the official builder.

A table with another vtable than zlmdb's is read field by field. A vtable that occurs a few times gets its own function,
which reads the fields at once, as with zlmdb's own layout.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Optional

from .layout import Layout, codes_of
from .nodes import UnionOf

OFTEN = 64
"""How many times a vtable is met before it gets a function: making one takes as long as reading some hundred tables."""

MANY = 64
"""How many vtables of one table get functions."""

Plan = Callable[[Any, int, list[int]], Any]


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
        self.entries = []
        for entry in own.entries:
            field = entry.field
            offset = offsets[entry.id] if entry.id < len(offsets) else 0
            if isinstance(field.node, UnionOf):
                raise ValueError("a union may be absent though the vtable has it")
            if offset:
                self.entries.append(entry.moved(offset))
                self.offsets[field.name] = offset
            else:
                self.absent.add(field.name)
        self.entries.sort(key=lambda entry: entry.offset)
        self.tail = [field for field in own.table.fields if field.name in self.offsets and not field.in_place]
        codes, end = codes_of([(entry.offset, entry.code) for entry in self.entries], 4)
        if end > inline:
            raise ValueError("a field outside of its table")
        self.unpack = struct.Struct(f"<4x{codes}")


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


class Plans(dict[bytes, Optional[Plan]]):
    """By vtable, the function that reads such tables; None while there is none."""

    def __init__(self, make: Callable[[bytes], Optional[Plan]]) -> None:
        super().__init__()
        self._make = make
        self._met: dict[bytes, int] = {}

    def __missing__(self, vtable: bytes) -> Optional[Plan]:
        if len(self) >= MANY:
            return None
        met = self._met.get(vtable, 0) + 1
        if met < OFTEN:
            if len(self._met) >= 1024:  # vtables that come once are not worth the memory
                self._met.clear()
            self._met[vtable] = met
            return None
        plan = self[vtable] = self._make(vtable)
        return plan
