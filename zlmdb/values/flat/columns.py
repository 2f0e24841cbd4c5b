"""Single fields of stored objects, read at their constant offsets, for filters and projections.

A record that begins as zlmdb writes it has its fields at the positions in `layout`. One `unpack_from` reads that
beginning together with the numbers of the required fields; the decoder reads a record with any other beginning.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from datetime import datetime, time, timedelta, timezone
from typing import Any, Callable, Optional
from uuid import UUID

from ...namedtuples import NamedTuple
from ..paths import Path
from . import runtime
from .codec import Codec
from .layout import Masks, codes_of
from .nestedcolumns import NestedColumns, reach
from .nodes import Blob, Field, InPlace, Scalar, Text, fill

Convert = Callable[[Any], Any]

_SHORT = 63
"""Bytes of a text that is read together with numbers."""


def same(value: Any) -> Any:
    """*value*."""
    return value


class Unpacked(NamedTuple):
    """How the numbers of some fields are read: what to call, the variables, and what else must hold of them."""

    form: struct.Struct
    variables: Sequence[str]
    elsewhere: Sequence[str]
    """Conditions, one of which is true when the record is for the decoder after all."""

    forms: Sequence[Callable[[Any], tuple[Any, ...]]] = ()
    """What to call in place of *form*, by the byte at *at* in the record, the length of a text: that is read, too."""

    at: int = 0


class Columns:
    """The fields of one model class that can be read without the others: numbers, texts, bytes, structs.

    Of other fields it only unpacks the references; what these lead to, `NestedColumns` reads.

    Variables of the generated lines are called by the id of the field: ``f3`` what lies in the table, ``f3_0`` a number
    of a struct, ``x3`` the bytes of a text, ``n3`` and ``z3`` how many they are, ``y3`` the next one. ``data`` is the
    record, ``m`` says which optional fields are there; ``p``, ``e`` and ``z`` are used by one field after another. The
    loop around them has names of its own: ``given3``, ``c3`` and words (see `query.recordlines`).
    """

    def __init__(self, codec: Codec, *, lazy: bool) -> None:
        """*lazy*: reading gives views."""
        schema = codec.schema
        self._codec, self.lazy = codec, lazy
        self.layout = codec.layouts[schema.root.fbs]
        self.names: dict[str, Any] = schema.names
        self.head = self.layout.head(self.layout.full)
        self.full = self.layout.full
        self.masks = Masks(self.layout.mask_of_head)
        self.start = len(self.head) - 4
        """Where the table begins."""
        simple = (InPlace, Text, Blob)
        self.fields = {field.name: field for field in schema.root.fields if isinstance(field.node, simple)}
        self.stored = {
            field.name: f"x{field.id}"
            for field in self.fields.values()
            if isinstance(field.node, Blob) and field.node.load == "uuid_from_bytes($)" and not field.optional
        }
        """The variables with the bytes of UUIDs."""

    def reach(self, path: Path) -> Optional[Path]:
        """The beginning of *path* that can be read without the rest of the record; None if there is none."""
        return reach(self._codec.schema.root, path, lazy=self.lazy)

    def nested(self, paths: Sequence[Path]) -> NestedColumns:
        """What writes the lines that read the parts at *paths*."""
        return NestedColumns(self._codec.layouts, self.layout, self.start, self._codec.space, paths)

    def optional(self, name: str) -> bool:
        """Whether the field may be absent, so that its expressions need ``m``."""
        return self.fields[name].optional

    def referred(self, name: str) -> bool:
        """Whether the field lies behind a reference, which takes lines of its own to read."""
        return not self.fields[name].in_place and name not in self.layout.pinned

    def unpacked(self, names: Iterable[str]) -> Unpacked:
        """How the fields *names* are read, after the beginning of the record, which is called ``head``."""
        layout = self.layout
        parts: list[tuple[int, str, list[str]]] = []  # offset in the table, format, variables
        elsewhere: list[str] = []
        chosen = set(names)
        for entry in layout.entries:
            field, name = entry.field, entry.field.name
            if name not in chosen:
                continue
            number, node = field.id, field.node
            parts.append((entry.offset, entry.code, entry.variables(number)))
            if isinstance(node, Blob) and name in layout.pinned:
                at, length = layout.offsets[name] + layout.pinned[name], node.length or 0
                parts.append((at, f"I{length}s", [f"n{number}", f"x{number}"]))
                elsewhere.append(f"f{number} != {layout.pinned[name]} or n{number} != {length}")
            elif field is layout.joint:
                parts.append((layout.fixed, "I", [f"z{number}"]))
                elsewhere.append(f"f{number} != {layout.fixed - layout.offsets[name]}")
        parts.sort()
        codes, end = codes_of([(offset, code) for offset, code, _ in parts], 4)
        # What is shorter than all of ours is for the decoder.
        form = struct.Struct(f"<{len(self.head)}s{codes}{layout.unpack.size - end}x")
        return Unpacked(form, ["head", *(one for _, _, variables in parts for one in variables)], elsewhere)

    def unpacked_with_text(self, names: Iterable[str]) -> Optional[Unpacked]:
        """As `unpacked`, with the bytes of the text whose length is read with the numbers; None if it is not wanted."""
        field, names = self.layout.joint, list(names)
        if field is None or field.name not in names:
            return None
        found = self.unpacked(names)
        codes = found.form.format
        longer = struct.Struct(f"{codes}0sB").unpack_from
        forms = [struct.Struct(f"{codes}{n}sB").unpack_from if n <= _SHORT else longer for n in range(256)]
        variables = [*found.variables, f"x{field.id}", f"y{field.id}"]
        return found._replace(variables=variables, forms=forms, at=self.start + self.layout.fixed)

    def fetched(self, name: str, views: bool, *, known: bool = False) -> list[str]:
        """Lines that make ``x`` of a field behind a reference: its bytes, or None. *views*: of a memoryview.

        *known*: what is read is `unpacked_with_text`.
        """
        field = self.fields[name]
        number = field.id
        node = field.node
        begin = "p"
        if field is self.layout.joint:
            begin = str(self.start + self.layout.fixed + 4)
            lines = [f"e = {begin} + z{number}"]
        else:
            position = self.start + self.layout.offsets[name]
            lines = [
                f"if not f{number}:", "    raise Corrupt('a reference to itself')",
                f"p = f{number} + {position + 4}", "z, = get_u32(data, p - 4)", "e = p + z",
            ]  # fmt: skip
        if isinstance(node, Text):
            lines += ["if data[e]:", "    raise Corrupt('a string without its end')"]
        else:
            wrong = "" if not isinstance(node, Blob) or node.length is None else f" or z != {node.length}"
            lines += [f"if e > len(data){wrong}:", "    raise Corrupt('bytes beyond the end, or of a wrong length')"]
        piece = f"data[{begin}:e]"
        lines.append(f"x{number} = {f'bytes({piece})' if views else piece}")
        if known and field is self.layout.joint:
            return [f"if z{number} > {_SHORT}:", *[f"    {line}" for line in lines], f"elif y{number}:", lines[2]]
        if not field.optional:
            return lines
        return [f"if {self._there(field)}:", *(f"    {line}" for line in lines), "else:", f"    x{number} = None"]

    def length(self, name: str) -> Optional[str]:
        """The variable with the number of bytes of a text, known before these are `fetched`; None if it is not."""
        field = self.fields[name]
        joint = field is self.layout.joint and isinstance(field.node, Text) and not field.optional
        return f"z{field.id}" if joint else None

    def value(self, name: str) -> str:
        """The expression of the field's value."""
        field = self.fields[name]
        number, node = field.id, field.node
        if isinstance(node, InPlace):
            made = node.make(node.variables(number))
        elif isinstance(node, Text):
            made = fill(node.load, f"x{number}.decode()")
        elif isinstance(node, Blob):
            made = fill(node.load, f"x{number}")
        else:
            raise TypeError(f"{name} is no simple field")
        return f"({made} if {self._there(field)} else None)" if field.optional else made

    def convert(self, name: str, value: Any) -> Optional[Convert]:
        """The function that makes of *value*, and of all of its type, what `compared` compares with.

        None if it is to be compared with the field's value.
        """
        node = self.fields[name].node
        if isinstance(node, Scalar):
            cls, number_of = _NUMBERED.get(node.load, (object, same))
            return number_of if isinstance(value, cls) and (node.load == "$" or cls is not object) else None
        if isinstance(node, Text):
            return str.encode if node.plain and type(value) is str and _encodable(value) else None
        if isinstance(node, Blob) and node.load == "$":
            return same if type(value) is bytes else None
        return _uuid_bytes if isinstance(node, Blob) and isinstance(value, UUID) else None

    def compared(self, name: str, operator: str, constant: str) -> str:
        """The expression that compares the field, as it is stored, with *constant*, the name of a converted value.

        The bytes of texts sort as the texts do, and those of UUIDs, times and durations likewise.
        """
        field = self.fields[name]
        node = field.node
        variable = f"{'f' if isinstance(node, Scalar) else 'x'}{field.id}"
        found = f"{variable} {operator} {constant}"
        if isinstance(node, Scalar) and node.load in _RANGES:
            least, most = _RANGES[node.load]
            # What is outside raises as it does when it is read.
            found = f"({found} if {least} <= {variable} <= {most} else {fill(node.load, variable)})"
        if not field.optional:
            return f"({found})"
        absent = {"==": "False", "!=": "True", "in": f"None in {constant}"}.get(operator, "False")
        return f"({found} if {self._there(field)} else {absent})"

    def absent(self, name: str) -> str:
        """The expression that is true when the field is None."""
        field = self.fields[name]
        return f"(not {self._there(field)})" if field.optional else "False"

    def _there(self, field: Field) -> str:
        return f"m & {1 << self.layout.optional.index(field)}"


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _uuid_bytes(value: Any) -> bytes:
    return value.bytes


def _instant(value: Any) -> int:
    if not runtime.is_aware(value):
        raise TypeError(f"{value!r} has no time zone, and the times that are stored do: give it one")
    return runtime.micros(value - runtime.EPOCH)


def _day_time(value: Any) -> int:
    if value.tzinfo is not None:
        raise TypeError(f"{value!r} has a time zone, and the times of a day that are stored have none: leave it out")
    return runtime.day_micros(value)


_NUMBERED: dict[str, tuple[type[Any], Convert]] = {
    runtime.INSTANT: (datetime, _instant),
    "day_time($)": (time, _day_time),
    runtime.DURATION: (timedelta, runtime.micros),
}
"""By the way of loading: what is stored as a number that sorts as it does, and the function to that number."""

_UTC = timezone.utc
_RANGES = {
    runtime.INSTANT: (_instant(datetime.min.replace(tzinfo=_UTC)), _instant(datetime.max.replace(tzinfo=_UTC))),
    "day_time($)": (0, 24 * 3600 * 1_000_000 - 1),
}
"""The numbers that can be loaded so; others raise."""
