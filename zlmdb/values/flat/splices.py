"""Generated functions that store a record again of which some numbers and texts are set: all other bytes stay.

They know records that begin as zlmdb writes them, with the texts in their places. Of any other record they give the
object that the decoder makes, and write it as the encoder does.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import Any, Optional

from ...codegen import Recipe, Source
from ..base import Decode, Encode
from . import runtime
from .codec import Codec
from .layout import codes_of
from .nodes import Blob, Field, Scalar, Text, Vector, fill

_SPLICES = Recipe("FlatBuffers splices")


def make_splices(
    codec: Codec, fields: Collection[str], read: Collection[str], decode: Decode, encode: Encode
) -> Optional[tuple[Decode, Encode]]:
    """What `Serializer.rewriter` gives, of a *codec* with *decode* and *encode*; None for fields of other kinds."""
    schema = codec.schema
    if schema.boxed or schema.recheck or schema.root.recursive:
        return None
    splices = _Splices(codec, fields, read)
    if not splices.possible():
        return None
    splices.load()
    splices.dump()
    names = {**schema.names, **splices.names, "decode": decode, "encode": encode}
    space = _SPLICES.functions(schema.label, str(splices.source), names)
    return space["load"], space["dump"]


class _Splices:
    """Writes both functions. Variables are called by the id of the field.

    ``f3`` is what lies in the table; of a text ``p3`` is where it begins, with its length ``z3``, and ``e3`` where the
    next one does.
    """

    def __init__(self, codec: Codec, fields: Collection[str], read: Collection[str]) -> None:
        root = codec.schema.root
        self.layout = layout = codec.layouts[root.fbs]
        self.head = layout.head(layout.full)
        self.start = len(self.head) - 4
        """Where the table begins."""
        self.at = {entry.field.name: self.start + entry.offset for entry in layout.entries if not entry.kind}
        """Where each field lies in the record, or the reference to it."""
        self.set = [field for field in root.fields if field.name in fields]
        self.read = [field for field in root.fields if field.name in read]
        self.missing = {*fields, *read} - {field.name for field in root.fields}
        names = {field.name for field in (*self.set, *self.read)}
        last = max([number for number, one in enumerate(layout.tail) if one.name in names], default=-1)
        self.texts = [field for field in layout.tail if field in self.set]
        self.lined = layout.tail[: last + 1]
        """The texts that have to be in their places, up to the last one that is set or read."""
        first = layout.tail.index(self.texts[0]) if self.texts else len(layout.tail)
        self.moving = layout.tail[first + 1 :]
        """What is behind a text that is set."""
        self.source = Source()
        self.add, self.block = self.source.add, self.source.block
        self.names: dict[str, Any] = {"HEAD": self.head, "join": b"".join, "new": object.__new__}
        self.names["Spliced"] = type("Spliced", (), {"__slots__": ("splice__", *sorted(names))})

    def possible(self) -> bool:
        """Whether the fields are of the kinds that are known here."""
        own = [*self.set, *self.read]
        return (
            not self.missing
            and all([one.get == f"$.{one.name}" and (one in self.lined or isinstance(one.node, Scalar)) for one in own])
            and all([isinstance(one.node, Text) for one in self.lined])
            and all([_is_movable(one) for one in self.moving])
            and not any([one.optional for one in (*own, *self.lined, *self.moving)])
        )

    def load(self) -> None:
        """``load``: the object with the fields that are read, and the places of those that are set."""
        pinned = self.layout.pinned if self.texts else {}
        behind = [field for field in self.moving if field not in self.lined]
        names = {field.name for field in (*self.lined, *behind, *self.read)} | {*pinned}
        entries = [entry for entry in self.layout.entries if entry.field.name in names]
        codes, end = codes_of([(self.start + entry.offset, entry.code) for entry in entries], len(self.head))
        variables = ["head", *(f"f{entry.field.id}" for entry in entries)]
        fixed, other = self.start + self.layout.fixed, ": return decode(data)"
        form = struct.Struct(f"<{len(self.head)}s{codes}{fixed - end}x")
        self.names["unpack"] = form.unpack_from  # raises for what is shorter
        tests = [f"f{one.id} != {pinned[one.name]}" for one in self.layout.table.fields if one.name in pinned]
        with self.block("def load(data):"):
            self.add(f"{', '.join(variables)}, = unpack(data)")
            self.add(f"if {' or '.join(['head != HEAD', *tests])}{other}")
            self.texts_in_place(fixed, other)
            for field in behind:
                self.add(f"if f{field.id} + {self.at[field.name]} < e{self.lined[-1].id}{other}")
            self.add("one = new(Spliced)", f"one.splice__ = {', '.join(self.kept())},")
            for field in self.read:
                n, node = field.id, field.node
                data = f"data[p{n} + 4:p{n} + 4 + z{n}].decode()" if field in self.lined else f"f{n}"
                self.add(f"one.{field.name} = {fill(node.load, data) if isinstance(node, (Scalar, Text)) else data}")
            self.add("return one")

    def texts_in_place(self, fixed: int, other: str) -> None:
        """Lines that find the texts, and do *other* unless each is behind the one before, the first one at *fixed*."""
        places = {one.name: f"f{one.id} + {self.at[one.name]}" for one in self.lined}
        for number, field in enumerate(self.lined):
            if self.ends_at(field) or field in self.texts or (number and self.ends_at(self.lined[number - 1])):
                self.add(f"p{field.id} = {places[field.name]}")
                places[field.name] = f"p{field.id}"
        if self.lined:
            self.add(f"if not ({fixed} == {' < '.join(places.values())} < len(data)){other}")
        for field, after in zip(self.lined, [*self.lined[1:], None]):
            n = field.id
            if self.ends_at(field):
                wrong = f"!= p{after.id}" if after is not None else "> len(data)"
                self.add(f"z{n}, = get_u32(data, p{n})", f"e{n} = p{n} + (z{n} + 8 & -4)")
                self.add(f"if e{n} {wrong} or data[p{n} + 4 + z{n}]{other}")

    def ends_at(self, field: Field) -> bool:
        """Whether it matters where the text *field* ends: there is nothing behind the last one."""
        return field in self.read or (field in self.texts and field is not self.layout.tail[-1])

    def kept(self) -> list[str]:
        """The variables that ``dump`` needs, too."""
        places = [f"{name}{one.id}" for one in self.texts for name in ("pe" if self.ends_at(one) else "p")]
        return ["data", *places, *[f"f{field.id}" for field in self.moving]]

    def dump(self) -> None:
        """``dump``: the bytes of such an object."""
        patches: dict[int, tuple[str, str]] = {}
        with self.block("def dump(one):"):
            self.add("if type(one) is not Spliced: return encode(one)", f"{', '.join(self.kept())}, = one.splice__")
            self.add(*[f"v{field.id} = one.{field.name}" for field in self.set])
            self.add(f"if not ({' and '.join([fill(one.node.test, f'v{one.id}') for one in self.set])}): raise Misfit")
            for field in self.set:
                if isinstance(field.node, Scalar):
                    patches[self.at[field.name]] = field.node.code, fill(field.node.dump, f"v{field.id}")
            if self.moving:
                self.add("by = 0")
            for field in self.layout.tail:
                n = field.id
                if field in self.moving:
                    patches[self.at[field.name]] = "I", f"r{n}"
                    self.add(f"r{n} = f{n} + by")
                if field in self.texts and isinstance(field.node, Text):
                    self.add(f"s{n} = {fill(field.node.dump, f'v{n}')}", f"n{n} = len(s{n})")
                    if field is not self.layout.tail[-1]:
                        self.add(f"by += (n{n} + 8 & -4) - e{n} + p{n}")
            self.names.update(MOST=runtime.MOST, too_long=runtime.too_long)
            self.add(f"made = join(({', '.join(self.pieces(patches))}))")
            self.add("return made if len(made) <= MOST else too_long(made)")

    def pieces(self, patches: dict[int, tuple[str, str]]) -> Sequence[str]:
        """The expressions of the parts of the record. *patches*: the number at a position, and its code."""
        pieces: list[str] = []
        end = "0"
        for at, (code, value) in sorted(patches.items()):
            form = struct.Struct(f"<{code}")
            self.names[f"pack{at}"] = form.pack
            pieces += [*([] if end == str(at) else [f"data[{end}:{at}]"]), f"pack{at}({value})"]
            end = str(at + form.size)
        for field in self.texts:
            n = field.id
            pieces += [f"data[{end}:p{n}]", f"SIZES[n{n}] if n{n} < 1024 else u32(n{n})", f"s{n}", f"PADS[n{n} & 3]"]
            end = f"e{n}"
        return pieces if self.texts and self.texts[-1] is self.layout.tail[-1] else [*pieces, f"data[{end}:]"]


def _is_movable(field: Field) -> bool:
    """Whether what *field* refers to has no place that it needs but multiples of four, and refers to nothing before."""
    node = field.node.item if isinstance(field.node, Vector) else field.node
    return isinstance(node, (Text, Blob, Scalar)) and node.align < 8
