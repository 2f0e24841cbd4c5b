"""Dicts whose keys have been met before: records tend to come with the same ones over and over.

Of the bytes of such a dict only the values differ. When a set of keys has been met often (`plans.OFTEN`), it gets a
function of its own, which reads all values at once and compares all other bytes with those seen before. They are what
decides how the dict is read, so that it would read the same keys from them.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Any, Callable

from . import plans
from .generate import Source
from .layout import Layout
from .nodes import Scalar, Text, fill
from .plans import Often, Plan
from .runtime import get_i32, get_u32

FEW = 33
"""Dicts of fewer entries than these are looked at."""

LONG = 4096
"""And of no more bytes than these."""

Write = Callable[[tuple[Any, ...], Any], bytes]


def has_keysets(layout: Layout) -> bool:
    """Whether tables of *layout* are entries of a dict from text to what lies in place, and both always there."""
    table = layout.table
    if not table.trusted or len(table.declared) != 2 or layout.optional or layout.joint is not table.declared[0]:
        return False
    key, value = table.declared[0].node, table.declared[1].node
    return isinstance(key, Text) and key.plain and isinstance(value, Scalar)


class Keyset:
    """The bytes of a dict with certain keys."""

    def __init__(self, layout: Layout, data: bytes, place: int, size: int = 0) -> None:
        """Those of the vector at *place* of *data*, of *size* bytes, or up to the end of the last key.

        Raises ValueError unless its entries lie in order and have our own vtable, once, before them.
        """
        key, value = layout.table.declared
        number = next(one for one in layout.places if one.field is value)
        distance = layout.fixed - layout.offsets[key.name]
        self.keys: list[str] = []
        (count,) = get_u32(data, place)
        end, ends = place + 4 + 4 * count, [place]
        tables: list[int] = []
        values, rest, self.format = "<", "<", "<"
        for at in range(place + 4, end, 4):
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
            self.format += f"{first - ends[-1]}s{number.code}"
            ends.append(first + number.size)
        _check_vtable(layout, data, place + 4 + 4 * count, tables)
        self.size = size or end - place
        if self.size > LONG:
            raise ValueError("many bytes")
        last = f"{place + self.size - ends[-1]}s"
        self.format += last
        self.values = struct.Struct(values)
        self.rest = struct.Struct(rest + last)
        self.known: tuple[bytes, ...] = self.rest.unpack_from(data, place)
        """All bytes but those of the values."""


def _check_vtable(layout: Layout, data: bytes, begin: int, tables: list[int]) -> None:
    """Raise ValueError unless all *tables* have our own vtable, the same one, between *begin* and the first."""
    vtable = layout.vtable(layout.full)
    places = {table - get_i32(data, table)[0] for table in tables}
    if len(places) != 1 or not begin <= min(places) <= tables[0] - len(vtable):
        raise ValueError("several vtables, or not before the entries")
    if not data.startswith(vtable, min(places)):
        raise ValueError("another vtable")


class Readers(Often[int, Plan]):
    """By how many entries a dict has and how far the last one is, what reads one with certain keys.

    It gives None for other keys, of which all together are as long.
    """

    def __init__(self, layout: Layout, names: dict[str, Any]) -> None:
        """*names* are those of the schema."""
        super().__init__(lambda number: partial(self._learn, number))
        self._layout, self._names = layout, names
        self._missed: dict[int, int] = {}
        self._patience: dict[int, int] = {}

    def _learn(self, number: int, data: bytes, place: int, room: list[int]) -> None:
        """Make the function for dicts with the keys of the one at *place*; this one is read without."""
        try:
            self[number] = self._make_reader(number, Keyset(self._layout, data, place))
        except (ValueError, IndexError, struct.error):
            self._forget(number)

    def _miss(self, number: int) -> None:
        """Other keys were found. Where that is common, looking is a waste."""
        missed = self._missed[number] = self._missed.get(number, 0) + 1
        if missed > plans.OFTEN:
            self._forget(number)

    def _forget(self, number: int) -> None:
        """Have it met more often than before until the next function is made, which takes as long as 200 dicts."""
        if len(self._patience) >= 1024:
            self._patience.clear()
        patience = self._patience[number] = 16 * self._patience.get(number, plans.OFTEN)
        self._met[hash(number)] = -patience
        self._missed.pop(number, None)
        self.pop(number, None)

    def _make_reader(self, number: int, keyset: Keyset) -> Plan:
        node = self._layout.table.declared[1].node
        load = node.load if isinstance(node, Scalar) else "$"
        values = [f"v{at}" for at in range(len(keyset.keys))]
        source = Source()
        with source.block("def read(data, place, room):"):
            with source.block(f"if place + {keyset.size} > len(data) or rest_of(data, place) != REST:"):
                source.add("return missed()")
            source.add(f"{', '.join(values)}, = values_of(data, place)")
            source.add(f"room[0] -= {keyset.size - 1 - 4 * len(values)}")
            pairs = [f"{key!r}: {fill(load, value)}" for key, value in zip(keyset.keys, values)]
            source.add(f"return {{{', '.join(pairs)}}}")
        names: dict[str, Any] = {"REST": keyset.known, "missed": partial(self._miss, number)}
        names.update(rest_of=keyset.rest.unpack_from, values_of=keyset.values.unpack_from)
        title = f"reader of {self._layout.table.fbs}, {len(values)} keys"
        read: Plan = source.run(title, {**self._names, **names})["read"]
        return read


class Writers(Often[tuple[Any, ...], Write]):
    """By the keys of a dict, the function from the keys and its values to the bytes."""

    def __init__(self, layout: Layout, names: dict[str, Any], checked: bool) -> None:
        """*names* are those of the schema."""
        super().__init__(lambda keys: self._learn)
        self.any_keys: Callable[[list[Any]], bytes] = lambda items: b""
        """The function for entries with any keys, once it is there."""
        self._layout, self._names, self._checked = layout, names, checked

    def _learn(self, keys: tuple[Any, ...], values: Any) -> bytes:
        """Make the function for *keys*; these values are written without."""
        data = self.any_keys(list(zip(keys, values)))
        try:
            self[keys] = self._make_writer(Keyset(self._layout, data, 0, len(data)))
        except (ValueError, IndexError, struct.error):
            self[keys] = None
        return data

    def _make_writer(self, keyset: Keyset) -> Write:
        table = self._layout.table
        key, value = (field.node for field in table.declared)
        dump = value.dump if isinstance(value, Scalar) else "$"
        keys = [f"k{at}" for at in range(len(keyset.keys))]
        values = [f"v{at}" for at in range(len(keyset.keys))]
        source = Source()
        with source.block("def write(keys, values):"):
            source.add(f"{', '.join(values)}, = values")
            if self._checked:  # keys that are equal need not be texts
                source.add(f"{', '.join(keys)}, = keys")
                tests = [fill(key.test, one) for one in keys] + [fill(value.test, one) for one in values]
                with source.block(f"if not ({' and '.join(tests)}):"):
                    source.add("raise Misfit")
            parts = [f"{rest!r}, {fill(dump, one)}" for rest, one in zip(keyset.known, values)]
            source.add(f"return pack({', '.join(parts)}, {keyset.known[-1]!r})")
        names = {**self._names, "pack": struct.Struct(keyset.format).pack}
        write: Write = source.run(f"writer of {table.fbs}, {len(values)} keys", names)["write"]
        return write
