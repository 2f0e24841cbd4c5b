"""Dicts with recurring keys: many records often have the same keys.

In the bytes of such a dict only the values differ. A set of keys that occurs often gets its own function, which reads
all values at once and compares all other bytes with those seen before: the positions of the vtable, of the entries and
of their keys depend on nothing else, so reading entry by entry would give the same keys.
"""

from __future__ import annotations

import struct
from functools import partial
from itertools import chain
from typing import Any, Callable, Optional

from ...codegen import Recipe, Source
from ..recurring import Key, Known, Made
from .layout import Layout
from .nodes import Scalar, Text, fill
from .plans import Plan
from .runtime import BY_ARRAY, get_i32, get_u32

_READING = Recipe("reader of dicts")
_WRITING = Recipe("writer of dicts")

FEW = 33
"""Dicts of fewer entries than these are looked at."""

LONG = 4096
"""And of no more bytes than these."""

Write = Callable[[Any, Any], Optional[bytes]]


def has_keysets(layout: Layout) -> bool:
    """Whether tables of *layout* are entries of a dict from text to what lies in place, and both always there."""
    table = layout.table
    if not table.trusted or len(table.declared) != 2 or layout.optional or layout.joint is not table.declared[0]:
        return False
    key, value = table.declared[0].node, table.declared[1].node
    return isinstance(key, Text) and key.plain and isinstance(value, Scalar)


class Keyset:
    """The bytes of a dict with certain keys."""

    def __init__(self, layout: Layout, data: bytes, position: int, size: int = 0) -> None:
        """Those of the vector at *position* of *data*, of *size* bytes, or up to the end of the last key.

        Raises ValueError unless its entries lie in order and have our own vtable, once, before them.
        """
        key, value = layout.table.declared
        number = next(one for one in layout.entries if one.field is value)
        distance = layout.fixed - layout.offsets[key.name]
        self.keys: list[str] = []
        (count,) = get_u32(data, position)
        end, ends = position + 4 + 4 * count, [position]
        tables: list[int] = []
        values, rest, both = "<", "<", "<"
        for at in range(position + 4, end, 4):
            table = at + get_u32(data, at)[0]
            if table < end or get_u32(data, table + layout.offsets[key.name])[0] != distance:
                raise ValueError("entries that do not follow one another, or a key that is elsewhere")
            tables.append(table)
            text = table + layout.fixed + 4
            end = text + get_u32(data, text - 4)[0]
            if data[end]:
                raise ValueError("a key without its end")
            self.keys.append(data[text:end].decode())
            end += 1
            first = table + number.offset
            values += f"{first - ends[-1]}x{number.code}"
            rest += f"{first - ends[-1]}s{number.size}x"
            both += f"{first - ends[-1]}s{number.code}"
            ends.append(first + number.size)
        _check_vtable(layout, data, position + 4 + 4 * count, tables)
        self.size = size or end - position
        if self.size > LONG:
            raise ValueError("many bytes")
        last = f"{position + self.size - ends[-1]}s"
        self.pack = struct.Struct(both + last).pack
        self.one = struct.Struct(f"<{number.code}").pack
        self.values = struct.Struct(values)
        self.rest = struct.Struct(rest + last)
        self.known: tuple[bytes, ...] = self.rest.unpack_from(data, position)
        """All bytes but those of the values."""

    def packing(self, values: list[str]) -> str:
        """The expression of the bytes of these keys, and *values*; of `pack`, or on PyPy of `one`."""
        parts = [repr(part) for part in self.known]
        if BY_ARRAY:
            between = [f"one({value})" for value in values]
            return f"join(({', '.join([*chain.from_iterable(zip(parts, between)), parts[-1]])}))"
        return f"pack({', '.join([*chain.from_iterable(zip(parts, values)), parts[-1]])})"


def _check_vtable(layout: Layout, data: bytes, begin: int, tables: list[int]) -> None:
    """Raise ValueError unless all *tables* have our own vtable, the same one, between *begin* and the first."""
    vtable = layout.vtable(layout.full)
    vtables = {table - get_i32(data, table)[0] for table in tables}
    if len(vtables) != 1 or not begin <= min(vtables) <= tables[0] - len(vtable):
        raise ValueError("several vtables, or not before the entries")
    if not data.startswith(vtable, min(vtables)):
        raise ValueError("another vtable")


class _OfTables(Known[Key, Made]):
    """Known functions for the entries of dicts, tables of one *layout*."""

    def __init__(self, layout: Layout, names: dict[str, Any]) -> None:
        """*names* are those of the schema."""
        super().__init__()
        self.layout, self.names = layout, names


class Readers(_OfTables[int, Plan]):
    """By how many entries a dict has and how far the last one is, what reads one with certain keys.

    It gives None for other keys, of which all together are as long.
    """

    def look(self, data: bytes, position: int) -> None:
        """See whether the dict at *position* has keys that come often, and make the function for them."""
        (count,) = get_u32(data, position)
        number: int = get_u32(data, position + 4 * count)[0] << 6 | count
        if self.often(number):
            self.learn(number, lambda: self._make_reader(number, Keyset(self.layout, data, position)))

    def _make_reader(self, number: int, keyset: Keyset) -> Plan:
        node = self.layout.table.declared[1].node
        load = node.load if isinstance(node, Scalar) else "$"
        values = [f"v{at}" for at in range(len(keyset.keys))]
        source = Source()
        with source.block("def read(data, position, room):"):
            with source.block(f"if position + {keyset.size} > len(data) or rest_of(data, position) != REST:"):
                source.add("return general_missed()")
            source.add(f"{', '.join(values)}, = values_of(data, position)")
            source.add(f"room[0] -= {keyset.size - 1 - 4 * len(values)}")
            pairs = [f"{key!r}: {fill(load, value)}" for key, value in zip(keyset.keys, values)]
            source.add(f"return {{{', '.join(pairs)}}}")
        names: dict[str, Any] = {"REST": keyset.known, "general_missed": partial(self.miss, number)}
        names.update(rest_of=keyset.rest.unpack_from, values_of=keyset.values.unpack_from)
        subject = f"{self.layout.table.fbs}, {len(values)} keys"
        return _READING.functions(subject, str(source), {**self.names, **names})["read"]


class Writers(_OfTables[Any, Write]):
    """By the keys of a dict, the function from the keys and its values to the bytes.

    On PyPy, to which a tuple of keys is a slow key, by how many they are, and the function gives None for other ones.
    """

    checked = True

    def look(self, found: dict[Any, Any], data: bytes) -> None:
        """See whether *found*, of which *data* are the bytes, has keys that come often, and make the function."""
        key = len(found) if BY_ARRAY else tuple(found)
        if self.often(key):
            self.learn(key, lambda: self._make_writer(key, Keyset(self.layout, data, 0, len(data))))

    def _make_writer(self, known: Any, keyset: Keyset) -> Write:
        key, value = (field.node for field in self.layout.table.declared)
        dump = value.dump if isinstance(value, Scalar) else "$"
        keys = [f"k{at}" for at in range(len(keyset.keys))]
        values = [f"v{at}" for at in range(len(keyset.keys))]
        tests = [fill(key.test, one) for one in keys] if self.checked else []  # what is equal need not be text
        if BY_ARRAY:
            tests = [f"{one} == {text!r} and {fill(key.test, one)}" for one, text in zip(keys, keyset.keys)]
        source = Source()
        with source.block("def write(keys, values):"):
            if tests:
                source.add(f"{', '.join(keys)}, = keys")
                with source.block(f"if not ({' and '.join(tests)}):"):
                    source.add("return general_missed()")
            source.add(f"{', '.join(values)}, = values")
            if self.checked:
                with source.block(f"if not ({' and '.join(fill(value.test, one) for one in values)}):"):
                    source.add("raise Misfit")
            source.add(f"return {keyset.packing([fill(dump, one) for one in values])}")
        names = {"join": b"".join, "one": keyset.one, "pack": keyset.pack, "general_missed": partial(self.miss, known)}
        subject = f"{self.layout.table.fbs}, {len(values)} keys"
        return _WRITING.functions(subject, str(source), {**self.names, **names})["write"]
