"""Generated lines that read what a reference leads to: texts, bytes, vectors, tables and unions."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Union

from ...codegen import Source
from . import runtime
from .nodes import Blob, Field, Node, Scalar, Struct, Table, Text, UnionOf, Vector, fill


class References:
    """The part of a `Reader` that writes such lines. A value is in ``x<number>``, its position in ``p``."""

    def __init__(self, names: Mapping[str, Any], *, views: bool) -> None:
        """*views*: what is read may be a memoryview."""
        self.text = "bytes(data[p:e]).decode()" if views else "data[p:e].decode()"
        self.views = views
        self.source = Source()
        self.add, self.block = self.source.add, self.source.block
        self.names: dict[str, Any] = dict(names)

    def constant(self, name: str, value: Any) -> str:
        """*name*, which stands for *value* in the generated lines."""
        self.names[name] = value
        return name

    def reference(self, node: Node, number: Union[int, str], position: str, left: str) -> None:
        """Lines that read what the reference unpacked from *position* leads to."""
        self.add(f"p = f{number} + {position}")
        if isinstance(node, Text):
            self.text_at(node, number, left)
        elif isinstance(node, Blob):
            self.blob(node, number, left)
        elif isinstance(node, UnionOf):
            self.union(node, number)
        elif isinstance(node, Vector) and isinstance(node.item, Scalar) and not left:
            self.few_scalars(node, node.item, number)
        elif isinstance(node, Vector) and isinstance(node.item, Text) and not left:
            self.few_texts(node, number)
        else:
            self.add(f"x{number} = {self.value(node)}")

    def few_texts(self, node: Vector, number: Union[int, str]) -> None:
        """Lines that read a short vector of texts in place, if they follow one another as we write them."""
        self.add(f"x{number} = []", "z, = get_u32(data, p)", "q = p", "e = p + 4 + 4 * z")
        if runtime.BY_ARRAY:  # PyPy makes single loads of this
            self.within("p", 4)
            head = "for q in range(p + 4, e, 4):"
            offset = ["at = q + get_u32(data, q)[0]"]
        else:
            head = "for offset in few_u32[z](data, p + 4) if z < 33 else (0,):"  # 0: not in line, so all at once
            offset = ["q += 4", "at = q + offset"]
        with self.block(head):
            self.add(*offset)
            with self.block("if at < e:"):
                self.add(f"x{number} = get_texts(data, p, room)", "break")
            self.add("z, = get_u32(data, at)", "at += 4", "e = at + z")
            with self.block("if data[e]:"):
                self.add("raise Corrupt('a string without its end')")
            self.add(f"x{number}.append(data[at:e].decode())")
        made = self.value_of_texts(node, f"x{number}")
        self.add(*[f"x{number} = {made}"] if made != f"x{number}" else [])

    def value_of_texts(self, node: Vector, texts: str) -> str:
        """The expression of the vector *node* made of the list *texts*."""
        load = node.item.load if isinstance(node.item, Text) else "$"
        return fill(node.make, texts if load == "$" else f"[{fill(load, 'x')} for x in {texts}]")

    def within(self, position: str, size: int) -> None:
        """Lines that refuse ``z`` items of *size* bytes at *position* if the buffer ends before them.

        They come before a list is made: PyPy takes the memory for as many as the range has.
        """
        with self.block(f"if {position} + 4 + {size} * z > len(data):"):
            self.add("raise Corrupt('a vector beyond the end')")

    def few_scalars(self, node: Vector, item: Scalar, number: Union[int, str]) -> None:
        """Lines that read a vector of scalars in place."""
        name, size = item.width.vector, item.width.size
        self.add("z, = get_u32(data, p)")
        if runtime.BY_ARRAY:  # PyPy makes single loads of this
            self.within("p", size)
            self.add(f"x{number} = [{type(item.zero)()}] * z", "q = p + 4", "i = 0")
            with self.block("while i < z:"):
                self.add(f"x{number}[i] = one_{name}(data, q)[0]", f"q += {size}", "i += 1")
            if not item.load == node.make == "$":
                self.add(f"x{number} = {self.made_of(node, f'x{number}')}")
            return
        few = self.made_of(node, f"few_{name}[z](data, p + 4)")
        self.add(f"x{number} = {few} if z < 33 else {self.value(node)}")

    def text_at(self, node: Node, number: Union[int, str], left: str) -> None:
        """Lines that read the text at ``p``."""
        self.add("z, = get_u32(data, p)", "p += 4", "e = p + z")
        self.text_between(node, number, left)

    def text_between(self, node: Node, number: Union[int, str], left: str) -> None:
        """Lines that read the text from ``p`` to ``e``."""
        with self.block("if data[e]:"):
            self.add("raise Corrupt('a string without its end')")
        if left:
            self.add(f"{left} -= z")
        self.add(f"x{number} = {fill(node.load if isinstance(node, Text) else '$', self.text)}")

    def blob(self, node: Blob, number: Union[int, str], left: str) -> None:
        """Lines that read the vector of bytes at ``p``."""
        self.add("z, = get_u32(data, p)", "p += 4", "e = p + z")
        with self.block(f"if e > len(data){f' or z != {node.length}' if node.length is not None else ''}:"):
            self.add("raise Corrupt('a vector beyond the end, or of a wrong length')")
        if left:
            self.add(f"{left} -= z")
        self.add(f"x{number} = {fill(node.load, 'bytes(data[p:e])' if node.length is None else 'data[p:e]')}")

    # References, whatever the layout

    def value(self, node: Node) -> str:
        """The expression of what lies at ``p``."""
        if isinstance(node, Text):
            return fill(node.load, "get_text(data, p, room)")
        if isinstance(node, Table):
            return f"read__{node.fbs}(data, p, room)"
        if not isinstance(node, Vector):
            return "None"  # the callers have the others
        item = node.item
        if isinstance(item, Text):
            return self.value_of_texts(node, "get_texts(data, p, room)")
        if isinstance(item, Scalar):
            return self.made_of(node, f"get_all_{item.width.vector}(data, p, room)")
        if isinstance(item, Struct):
            structs = f"get_structs(data, p, room, {self.form(item)})"
            return fill(node.make, f"[{_made_of_x(item)} for x in {structs}]")
        if node.make == "dict($)":
            return f"dict__{item.fbs}(data, p, room)"
        return fill(node.make, f"all__{item.fbs}(data, p, room)")

    def form(self, node: Struct) -> str:
        """The name of the `struct.Struct` of *node*."""
        return self.constant(f"form__{node.fbs}", struct.Struct("<" + node.code))

    def made_of(self, node: Vector, numbers: str) -> str:
        """The expression of the vector of scalars *node* made of *numbers*, a sequence."""
        load = node.item.load if isinstance(node.item, Scalar) else "$"
        if load != "$":
            numbers = f"[{fill(load, 'x')} for x in {numbers}]"
        elif node.make == "$":
            numbers = f"list({numbers})"
        return fill(node.make, numbers)

    def union(self, node: UnionOf, number: Union[int, str]) -> None:
        """Lines that read the member of a union at ``p``."""
        for kind, (_, table, boxed) in enumerate(node.members, 1):
            with self.block(f"{'if' if kind == 1 else 'elif'} k{number} == {kind}:"):
                self.add(f"x{number} = read__{table.fbs}(data, p, room){'[0]' if boxed else ''}")
        with self.block("else:"):
            self.add(f"raise Corrupt(f'member {{k{number}}} of a union that has {len(node.members)}')")

    # Fields of any layout

    def any_field(self, field: Field, number: int) -> str:
        """Lines that read *field* of the table at ``t`` whose fields are at ``fields``; the name of its value."""
        node = field.node
        if isinstance(node, UnionOf):
            self.add(f"k{number} = fields[{field.id - 1}]")
            self.add(f"k{number} = k{number} and one_u8(data, t + k{number})[0]")
            self.add(f"p = fields[{field.id}] if k{number} else 0")
        else:
            self.add(f"p = fields[{field.id}]")
        with self.block("if p:"):
            self.add("p += t")
            self.any_value(node, number)
        with self.block("else:"):
            self.add(self.absent(field, f"x{number} ="))
        return f"x{number}"

    def absent(self, field: Field, then: str) -> str:
        """The line that does *then*, ``x3 =`` or ``return``, with what *field* is when it is not there; or raises."""
        if field.default is None:
            return f"raise Corrupt({f'the field {field.name} is not there'!r})"
        return f"{then} {field.default}"

    def any_value(self, node: Node, number: int) -> None:
        """Lines that read what a table has at ``p``."""
        if isinstance(node, Scalar):
            self.add(f"x{number} = {fill(node.load, f'one_{node.width.vector}(data, p)[0]')}")
            return
        if isinstance(node, Struct):
            self.add(f"x = {self.form(node)}.unpack_from(data, p)", f"x{number} = {_made_of_x(node)}")
            return
        self.add("p = follow(data, p)")
        if isinstance(node, Blob):
            self.blob(node, number, "room[0]")
        elif isinstance(node, UnionOf):
            self.union(node, number)
        else:
            self.add(f"x{number} = {self.value(node)}")


def _made_of_x(node: Struct) -> str:
    """The expression of the struct *node* whose numbers are in ``x``."""
    return node.make([f"x[{part}]" for part in range(len(node.gets))])
