"""The layout of the buffers that zlmdb writes: one per table, in which only the vtable says which fields are absent.

A block is a table and everything that it refers to; positions in it count from the start of the table. The fields lie
in the order of their sizes, so that none needs padding; absent fields keep their space. The objects that it refers to
follow: first those that always take the same number of bytes, which are then written and read with the fields; then
those that contain eight-byte numbers; then the rest. Blocks that contain eight-byte numbers begin four bytes past a
multiple of eight; only vectors of tables of one vtable, if they come first, may begin on one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Callable, Optional, Union

from .nodes import Blob, Field, InPlace, Node, Table, Text, UnionOf, Vector


class Entry:
    """An entry of the vtable: a field, or the kind of a union, and its offset in the table."""

    def __init__(self, field: Field, id: int, code: str, size: int, align: int, kind: bool = False) -> None:
        self.field, self.id, self.code, self.size, self.align, self.kind = field, id, code, size, align, kind
        self.offset = 0

    def moved(self, offset: int) -> Entry:
        """The same at *offset*."""
        entry = Entry(self.field, self.id, self.code, self.size, self.align, self.kind)
        entry.offset = offset
        return entry

    def variables(self, number: Union[int, str]) -> list[str]:
        """The variables of generated lines that it is unpacked into, where its field is called *number*."""
        node = self.field.node
        return node.variables(number) if isinstance(node, InPlace) else [f"{'k' if self.kind else 'f'}{number}"]


def codes_of(numbers: Iterable[tuple[int, str]], end: int) -> tuple[str, int]:
    """The format in `struct` of *numbers*, which are given by offset and code, from *end* on; and where it ends.

    Raises ValueError where they overlap.
    """
    codes = ""
    for offset, code in numbers:
        if offset < end:
            raise ValueError("fields that overlap")
        codes += f"{offset - end}x{code}"
        end = offset + struct.calcsize(f"<{code}")
    return codes, end


class Layout:
    """The layout of one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.align = 8 if reaches_eight(table) else 4
        entries = [entry for field in table.fields for entry in _entries(field)]
        self.count = 1 + max((entry.id for entry in entries), default=-1)
        """Entries of the vtable."""
        taken = {entry.id: entry.size for entry in entries}
        self.sizes = tuple([taken.get(id, 0) for id in range(self.count)])
        """The bytes of the fields in the table, by their ids."""
        self.entries: list[Entry] = sorted(entries, key=lambda entry: (-entry.align, entry.size, entry.id))
        self.offsets: dict[str, int] = {}
        """Where each reference lies."""
        self.inline = self._place()
        codes = self.codes = "".join(entry.code for entry in self.entries)
        references = [field for field in table.fields if not field.in_place]
        self.tail = [field for field in references if not pinned_length(field)]
        self.tail.sort(key=lambda field: (not reaches_eight(field.node), field.id))
        self.pinned: dict[str, int] = {}
        """How far behind its reference each thing of a constant length lies: always at the same distance."""
        end = self._pin(references)
        eight = self.align == 8 if not self.tail else reaches_eight(self.tail[0].node)
        settles = bool(self.tail) and _settles(self.tail[0])
        self.fixed = end + (-end % (8 if eight and not settles else 4))
        """The size with padding and what always follows: where the first other reference may lead."""
        self.skew = self.fixed % 8 if settles else 0
        """4 where the fields end four bytes off a multiple of eight and what follows first settles that itself, else 0.

        A vector of tables that hold such numbers does: it pads behind its offsets where it must, not before.
        """
        eights = [field for field in self.tail if reaches_eight(field.node)]
        self.last_eight = eights[-1] if eights else None
        """The last reference to what holds eight-byte numbers: behind it things begin on any multiple of four."""
        self.absent: set[str] = set()
        """The fields that are never there."""
        self.optional = [field for field in table.fields if field.optional]
        self.full = (1 << len(self.optional)) - 1
        """The mask of a table in which nothing is absent."""
        self.codes += f"{self.fixed - end}x"
        first = self.tail[0] if self.tail else None
        joint = first is not None and not first.optional and isinstance(first.node, Text)
        self.joint: Optional[Field] = first if joint else None
        """The text that always lies right behind the fields, so that its length is written and read with them."""
        if joint:
            self.codes += "I"
        self.unpack = struct.Struct(f"<i{self.codes if joint or self.pinned else codes}")

    def _place(self) -> int:
        """Give each entry its offset. Returns where the last one ends."""
        end = 4
        for entry in self.entries:
            entry.offset = end
            end += entry.size
            if not entry.kind:
                self.offsets[entry.field.name] = entry.offset
        return end

    def _pin(self, references: Iterable[Field]) -> int:
        """Place what is of a constant length right behind the entries. Returns where the last one ends."""
        end = self.inline
        for field in references:
            length = pinned_length(field)
            if length:
                pad = -end % 4
                self.pinned[field.name] = end + pad - self.offsets[field.name]
                self.codes += f"{pad}xI{length}s"
                end += pad + 4 + length
        return end

    def vtable(self, mask: int) -> bytes:
        """The vtable of a table with those optional fields whose bits are in *mask*."""
        offsets = [0] * self.count
        absent = {field.name for bit, field in enumerate(self.optional) if not mask >> bit & 1}
        for entry in self.entries:
            if entry.field.name not in absent:
                offsets[entry.id] = entry.offset
        return struct.pack(f"<{self.count + 2}H", 4 + 2 * self.count, self.inline, *offsets)

    def padded_vtable(self, mask: int) -> bytes:
        """The vtable with padding behind it, as long as blocks are aligned."""
        vtable = self.vtable(mask)
        return vtable + bytes(-len(vtable) % self.align)

    def head(self, mask: int) -> bytes:
        """What a buffer begins with: the reference to the root, the vtable, and the root's way back to it."""
        vtable = self.vtable(mask)
        table = 4 + len(vtable)
        table += (4 - table) % 8 if self.align == 8 else -table % 4
        return struct.pack("<I", table) + vtable + bytes(table - 4 - len(vtable)) + struct.pack("<i", table - 4)

    def mask_of(self, vtable: bytes) -> int:
        """The mask of *vtable* if we could have written it, else -1."""
        if len(vtable) != 4 + 2 * self.count:
            return -1
        offsets = struct.unpack(f"<{self.count + 2}H", vtable)[2:]
        there = {entry.field.name for entry in self.entries if offsets[entry.id]}
        mask = sum(1 << bit for bit, field in enumerate(self.optional) if field.name in there)
        return mask if self.vtable(mask) == vtable else -1

    def mask_of_head(self, head: bytes) -> int:
        """The mask of a buffer that begins with *head*, if that is ours, else -1."""
        mask = self.mask_of(head[4 : 8 + 2 * self.count])
        return mask if mask >= 0 and self.head(mask) == head else -1


def _entries(field: Field) -> list[Entry]:
    node = field.node
    if isinstance(node, InPlace):
        return [Entry(field, field.id, node.code, node.size, node.align)]
    kind = [Entry(field, field.id - 1, "B", 1, 1, kind=True)] if isinstance(node, UnionOf) else []
    return [*kind, Entry(field, field.id, "I", 4, 4)]


def pinned_length(field: Field) -> int:
    """The bytes of what *field* refers to if they are always there, and always as many; else 0."""
    return field.node.length or 0 if isinstance(field.node, Blob) and not field.optional else 0


def reaches_eight(node: Node) -> bool:
    """Whether *node*, or what it refers to, holds what is aligned on eight bytes."""
    left, seen = [node], set[int]()
    while left:
        one = left.pop()
        if one.align == 8:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            left.extend(one.children())
    return False


class Masks(dict[bytes, int]):
    """Masks by vtable or head, found when they are first met."""

    def __init__(self, find: Callable[[bytes], int]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, key: bytes) -> int:
        key = bytes(key)
        mask = self._find(key)
        if len(self) < 4096:
            self[key] = mask
        return mask


class ByMask(dict[int, bytes]):
    """What depends on which optional fields are there, made when it is first asked for."""

    def __init__(self, make: Callable[[int], bytes]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, mask: int) -> bytes:
        made: bytes = self._make(mask)
        if len(self) < 4096:
            self[mask] = made
        return made


def loops(table: Table) -> bool:
    """Whether vectors of the table are written in one loop: all share one vtable."""
    return bool(table.fields) and not table.deep and not any(field.optional for field in table.fields)


def _settles(field: Field) -> bool:
    """Whether it refers to a vector that is always there, and finds its alignment wherever it begins."""
    item = field.node.item if isinstance(field.node, Vector) and not field.optional else None
    return isinstance(item, Table) and loops(item) and reaches_eight(item)
