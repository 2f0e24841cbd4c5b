"""The generated encoder: one function per table; that of the root also writes the constant head of a buffer."""

from __future__ import annotations

import struct
from typing import Any, Callable

from ...codegen import Recipe, Source
from ..base import Encode
from . import keysets, runtime
from .layout import ByMask, Layout, loops, reaches_eight
from .nodes import Blob, Field, InPlace, Node, Scalar, Struct, Table, Text, UnionOf, Vector, fill
from .schema import Schema
from .texts import BRIEF, SHORT, TOGETHER, TextLists, TextPacks, pack_short

_WRITING = Recipe("FlatBuffers writer")

EVENS = (b"", b"\0\0\0\0")
"""What ends a block whose size must be a multiple of eight, by bit 2 of the size so far."""


def make_encoder(schema: Schema, layouts: dict[str, Layout], *, checked: bool = True) -> Encode:
    """The function from a value to its bytes. It raises anything for a value that does not fit."""
    writer = _Writer(schema, layouts, checked)
    for table in schema.tables:
        if table is not schema.root or table.recursive:
            writer.function(table, root=False)
    writer.function(schema.root, root=True)
    encode: Callable[[Any], bytes] = _WRITING.functions(schema.label, str(writer.source), writer.names)["encode"]
    return (lambda value: encode((value,))) if schema.boxed else encode


class _Writer:
    def __init__(self, schema: Schema, layouts: dict[str, Layout], checked: bool) -> None:
        self.source = Source()
        self.layouts = layouts
        self.checked = checked
        self.names: dict[str, Any] = dict(schema.names)
        self.names.update(join=b"".join, EVENS=EVENS)
        for cls in (int, float, bool):
            self.names[f"only_{cls.__name__}"] = frozenset({cls}).issuperset

    def function(self, table: Table, *, root: bool) -> None:
        """One table. `_Body` has the parts of the story: fields, what they refer to, the bytes."""
        layout = self.layouts[table.fbs]
        depth = ", depth=0" if table.deep else ""
        title = "encode(v" if root else f"put__{table.fbs}(v, so"
        with self.source.block(f"def {title}{depth}):"):
            if table.recursive:
                self.source.add("depth = deeper(depth)")
            _Body(self, layout, root).write()
        self.source.add("")
        if not root and loops(table):
            self.function_of_many(layout, 0)
            if any(one.skew and table in one.tail[0].node.children() for one in self.layouts.values()):
                self.function_of_many(layout, 4)

    def function_of_many(self, layout: Layout, skew: int) -> None:
        """A vector of tables that all share one vtable, as `put_tables` writes them, in one loop."""
        table = layout.table
        vtable = f"VTABLE__{table.fbs}"
        self.names[vtable] = layout.padded_vtable(layout.full)
        number = {field.name: f"v{at}" for at, field in enumerate(table.fields)}
        taken = ", ".join(number[field.name] for field in table.declared)
        add = self.source.add
        with self.source.block(f"def puts__{name_of(table, skew)}(items):"):
            align = f"-start % {layout.align}" if not skew else f"({skew} - start) % {layout.align}"
            add("count = len(items)", "start = 4 + 4 * count", f"at = start + {align}")
            add(f"so = {len(layout.padded_vtable(layout.full))}", "offsets = [count]", "add_offset = offsets.append")
            add(f"blocks = [b'', {vtable}]", "add, extend = blocks.append, blocks.extend")
            with self.source.block(f"for {f'{taken},' if table.trusted else 'v'} in items:"):
                _Body(self, layout, False, loop=True).write()
            if layout.align == 8:
                with self.source.block("if start & 4:" if not skew else "if not start & 4:"):
                    add("add_offset(0)")
            add("blocks[0] = put_u32s(offsets)")
            add("return join(blocks)")
        add("")
        if keysets.has_keysets(layout):
            self.function_of_dict(layout, name_of(table, skew))

    def function_of_dict(self, layout: Layout, name: str) -> None:
        """A dict whose keys may have been met often."""
        writers = self.names[f"writers__{name}"] = keysets.Writers(layout, self.names)
        writers.checked = self.checked
        self.names[f"wait__{name}"] = writers.wait
        add, block = self.source.add, self.source.block
        with block(f"def put_dict__{name}(found):"):
            with block(f"if writers__{name} and 0 < len(found) < {keysets.FEW}:"):
                keys, key = ("found", "len(found)") if runtime.BY_ARRAY else ("keys", "keys := tuple(found)")
                add(f"write = writers__{name}.get({key})")
                with block("if write is not None:"):
                    add(f"data = write({keys}, found.values())")
                    with block("if data is not None:"):
                        add("return data")
            add(f"data = puts__{name}(list(found.items()))", f"wait__{name}[0] -= 1")
            with block(f"if wait__{name}[0] < 0 < len(found) < {keysets.FEW}:"):
                add(f"writers__{name}.look(found, data)")
            add("return data")
        add("")


def name_of(table: Table, skew: int) -> str:
    """What the functions for vectors of *table* are called, those for another beginning by another name."""
    return f"{skew}__{table.fbs}" if skew else table.fbs


class _Body:
    """The body of the function of one table."""

    def __init__(self, writer: _Writer, layout: Layout, root: bool, loop: bool = False) -> None:
        """*loop*: the body of a loop over tables that share a vtable."""
        self.writer, self.layout, self.root, self.loop = writer, layout, root, loop
        self.add, self.block = writer.source.add, writer.source.block
        self.names = writer.names
        self.table = layout.table
        self.var = {field.name: f"v{number}" for number, field in enumerate(self.table.fields)}
        self.number = {field.name: str(number) for number, field in enumerate(self.table.fields)}
        self.moving = False
        """Whether the position of the next thing is ``p`` and `past`, or `past` alone."""
        self.past = layout.fixed
        self.parts: list[str] = []
        self.texts: list[tuple[int, list[str]]] = []
        """Where in the parts those of texts that follow one another begin, and the numbers of the fields."""
        self.inline: dict[str, list[str]] = {}

    def write(self) -> None:
        for field in [] if self.loop and self.table.trusted else self.table.fields:
            self.add(f"{self.var[field.name]} = {fill(field.get, 'v')}")
        self.check()
        if self.layout.optional:
            self.add(f"m = {self.layout.full}")
        for field in self.table.fields:
            if isinstance(field.node, InPlace):
                self.in_place(field, field.node)
        for field in self.table.fields:
            if field.name in self.layout.pinned:
                self.inline[field.name] = [str(self.layout.pinned[field.name])]
        if self.packed_with_text():
            self.finish_with_text(self.layout.tail[0])
            return
        for field in self.layout.tail:
            self.referred(field)
        self.finish()

    def check(self) -> None:
        if not self.writer.checked:
            return
        tests = [] if self.table.trusted else [fill(self.table.test, "v")]
        for field in self.table.fields:
            test = self.test(field.node, self.var[field.name])
            if test:
                tests.append(f"({self.var[field.name]} is None or {test})" if field.optional else test)
        if tests:
            with self.block(f"if not ({' and '.join(tests)}):"):
                self.add("raise Misfit")

    def test(self, node: Node, var: str) -> str:
        if isinstance(node, (Table, UnionOf)):
            return ""  # they check themselves
        if not isinstance(node, Vector):
            return fill(node.test, var)
        item = node.item
        test = fill(node.test, var)
        if isinstance(item, Text) and item.plain:
            return test  # `put_strs` looks at each
        if isinstance(item, Scalar) and item.sure is not None and not runtime.BY_ARRAY:
            only = f"only_{item.sure.__name__}(map(type, {var}))"
            if item.sure is float:
                only = f"({only} or all([{fill(item.test, 'x')} for x in {var}]))"
            return f"{test} and {only}"
        if isinstance(item, (Text, Scalar, Struct)):
            return f"{test} and all([{fill(item.test, 'x')} for x in {var}])"
        return test

    def bit(self, field: Field) -> int:
        return 1 << self.layout.optional.index(field)

    def in_place(self, field: Field, node: InPlace) -> None:
        var = self.var[field.name]
        values = [fill(get, var) for get in node.gets]
        if field.optional:
            number = self.number[field.name]
            copies = [f"d{number}_{part}" for part in range(len(values))]
            with self.block(f"if {var} is None:"):
                self.add(f"m -= {self.bit(field)}", f"{' = '.join(copies)} = 0")
            with self.block("else:"):
                self.add(*[f"{copy} = {value}" for copy, value in zip(copies, values)])
            values = copies
        self.inline[field.name] = values

    # What is referred to

    def referred(self, field: Field) -> None:
        number, var = self.number[field.name], self.var[field.name]
        offset = self.layout.offsets[field.name]
        self.inline[field.name] = [f"o{number}"]
        if not field.optional:
            constant, growth, skip = self.bytes_of(field.node, number, var)
            self.add(f"o{number} = {self.position(skip, -offset)}")
            if not (self.root and field is self.layout.tail[-1]):
                self.advance(constant, growth)
            return
        self.settle()
        with self.block(f"if {var} is None:"):
            self.add(f"m -= {self.bit(field)}", f"o{number} = 0")
            start = len(self.parts)
            nothing = self.writer.source.lines
            line = len(nothing)
        with self.block("else:"):
            constant, growth, skip = self.bytes_of(field.node, number, var)
            self.add(f"o{number} = {self.position(skip, -offset)}")
            self.advance(constant, growth)
            self.settle()
            own = self.parts[start:]
            fresh = [part if part in (f"s{number}", f"b{number}") else f"h{number}_{at}" for at, part in enumerate(own)]
            self.add(*[f"{name} = {part}" for name, part in zip(fresh, own) if name != part])
        kind = [f"k{number}"] if isinstance(field.node, UnionOf) else []
        blank = " = ".join(dict.fromkeys(fresh))
        self.parts[start:] = fresh
        indent = "    " * (self.writer.source.depth + 1)
        nothing.insert(line, f"{indent}{blank} = b''")
        if kind:
            nothing.insert(line, f"{indent}{kind[0]} = 0")

    def position(self, skip: str, more: int) -> str:
        """The expression of the position of the next thing, *skip* and *more* further."""
        total = self.past + more
        terms = ["p"] if self.moving else []
        if skip:
            if skip.isdigit():
                total += int(skip)
            else:
                terms.append(skip)
        text = " + ".join(terms)
        if not text:
            return str(total)
        return f"{text} + {total}" if total > 0 else f"{text} - {-total}" if total else text

    def advance(self, constant: int, growth: str) -> None:
        """The next thing comes *constant* and *growth* bytes later."""
        self.past += constant
        if growth:
            self.add(f"p = {self.position('', 0)} + ({growth})")
            self.moving, self.past = True, 0

    def settle(self) -> None:
        """Have the position of the next thing in ``p``."""
        if not self.moving or self.past:
            self.add(f"p = {self.position('', 0)}")
            self.moving, self.past = True, 0

    def bytes_of(self, node: Node, number: str, var: str) -> tuple[int, str, str]:
        """Adds parts; gives how many bytes they are, constant and growing, and how far in them the object begins."""
        if isinstance(node, Text):
            return self.text(fill(node.dump, var), number, self.is_joint(number))
        if isinstance(node, Blob):
            return self.blob(node, number, var)
        if isinstance(node, Table):
            return self.one_table(node, number, var)
        if isinstance(node, UnionOf):
            return self.union(node, number, var)
        if isinstance(node, Vector):
            self.add(f"b{number} = {self.vector(node, number, var)}")
        self.parts.append(f"b{number}")
        return 0, f"len(b{number})", ""

    def text(self, data: str, number: str, joint: bool) -> tuple[int, str, str]:
        self.add(f"s{number} = {data}", f"n{number} = len(s{number})")
        size = f"n{number}"
        self.note_text(number)
        self.parts += [] if joint else [f"SIZES[{size}] if {size} < 1024 else u32({size})"]
        self.parts += [f"s{number}", f"PADS[{size} & 3]"]
        return 0, f"{size} + 8 & -4", ""

    def note_text(self, number: str) -> None:
        """Remember where the parts of a text begin."""
        start = len(self.parts)
        if self.texts:
            begin, numbers = self.texts[-1]
            if len(numbers) < TOGETHER and begin + self.parts_of_texts(numbers) == start:
                numbers.append(number)
                return
        self.texts.append((start, [number]))

    def parts_of_texts(self, numbers: list[str]) -> int:
        """Of how many parts these texts are: length, text and padding; the first length may be with the fields."""
        return 3 * len(numbers) - self.is_joint(numbers[0])

    def is_joint(self, number: str) -> bool:
        """Whether the text with this number comes right after the fields, which its length is the last of."""
        return self.layout.joint is not None and self.number[self.layout.joint.name] == number

    def blob(self, node: Blob, number: str, var: str) -> tuple[int, str, str]:
        data = fill(node.dump, var)
        if node.length is not None:
            self.add(f"s{number} = {data}")
            pad = bytes(-node.length % 4)
            self.parts += [repr(struct.pack("<I", node.length)), f"s{number}", *([repr(pad)] if pad else [])]
            return 4 + node.length + len(pad), "", ""
        self.add(f"s{number} = {data}", f"n{number} = len(s{number})")
        self.parts += [f"u32(n{number})", f"s{number}", f"FILLS[n{number} & 3]"]
        return 0, f"n{number} + 7 & -4", ""

    def vector(self, node: Vector, number: str, var: str) -> str:
        first, last = (
            field is not None and self.number[field.name] == number
            for field in (self.layout.tail[0], self.layout.last_eight)
        )
        item, items = node.item, fill(node.items, var)
        if isinstance(item, Text) and item.plain and self.writer.checked:
            if runtime.BY_ARRAY:  # PyPy, to which a tuple is a slow key
                return f"put_strs({items})"
            return f"{self.constant(f'strs__{self.table.fbs}_{number}', TextLists().write)}({items})"
        if isinstance(item, Text):
            return f"put_texts([{fill(item.dump, 'x')} for x in {items}], len({var}))"
        if isinstance(item, Scalar):
            values = items if item.dump == "$" else f"[{fill(item.dump, 'x')} for x in {items}]"
            name = f"{item.width.vector}_last" if last and item.width.size == 8 else item.width.vector
            put = f"put_all_{name}({values})"
            if values != var or runtime.BY_ARRAY:
                return put
            return f"packs_{name}[n](n, *{var}) if (n := len({var})) < 33 else {put}"
        if isinstance(item, Struct):
            pack = self.constant(f"pack__{item.fbs}", struct.Struct("<" + item.code).pack)
            gets = ", ".join(fill(get, "x") for get in item.gets)
            return f"put_structs([{pack}({gets}) for x in {items}], {item.align})"
        if isinstance(item, Table):
            layout = self.writer.layouts[item.fbs]
            if keysets.has_keysets(layout):
                return f"put_dict__{name_of(item, self.layout.skew * first)}({var})"
            if loops(item):
                return f"puts__{name_of(item, self.layout.skew * first)}({items})"
            depth = self.depth_for(item)
            return f"put_tables({items}, put__{item.fbs}, {self.vtable(layout)}, {layout.align}{depth})"
        return "b''"  # there are no other vectors

    def depth_for(self, table: Table) -> str:
        return ", depth" if table.deep else ""

    def vtable(self, layout: Layout) -> str:
        return self.constant(f"VTABLE__{layout.table.fbs}", layout.padded_vtable(layout.full))

    def constant(self, name: str, value: Any) -> str:
        self.names[name] = value
        return name

    def one_table(self, node: Table, number: str, var: str) -> tuple[int, str, str]:
        layout = self.writer.layouts[node.fbs]
        skip = len(layout.padded_vtable(layout.full))
        self.add(f"b{number} = put__{node.fbs}({var}, {skip}{self.depth_for(node)})")
        self.parts += [self.vtable(layout), f"b{number}"]
        return skip, f"len(b{number})", str(skip)

    def union(self, node: UnionOf, number: str, var: str) -> tuple[int, str, str]:
        """An if for each member; the bytes are padded to the alignment of the whole union."""
        eight = reaches_eight(node)
        for kind, (cls, table, boxed) in enumerate(node.members, 1):
            layout = self.writer.layouts[table.fbs]
            vtable = layout.padded_vtable(layout.full)
            vtable += bytes(-len(vtable) % (8 if eight else 4))
            name = self.constant(f"vtable__{node.fbs}_{kind}", vtable)
            cls_name = self.constant(f"class__{node.fbs}_{kind}", cls)
            value = f"({var},)" if boxed else var
            with self.block(f"{'if' if kind == 1 else 'elif'} type({var}) is {cls_name}:"):
                self.add(f"k{number}, l{number} = {kind}, {len(vtable)}")
                self.add(f"b{number} = {name} + put__{table.fbs}({value}, {len(vtable)}{self.depth_for(table)})")
        with self.block("else:"):
            self.add("raise Misfit")
        if eight:
            self.add(f"b{number} += EVENS[len(b{number}) >> 2 & 1]")
        self.parts.append(f"b{number}")
        return 0, f"len(b{number})", f"l{number}"

    # The bytes

    def values(self) -> list[str]:
        """The expressions of what is packed: the fields, and what is pinned behind them."""
        values: list[str] = []
        for entry in self.layout.entries:
            if entry.kind:
                values.append(f"k{self.number[entry.field.name]}")
            else:
                values += self.inline[entry.field.name]
        for field in self.table.fields:
            if field.name in self.layout.pinned and isinstance(field.node, Blob):
                values += [str(field.node.length), fill(field.node.dump, self.var[field.name])]
        return values

    def packed_with_text(self) -> bool:
        """Whether a table in a loop is its fields and one text: one packing does it all, by the length of the text."""
        layout = self.layout
        return self.loop and layout.joint is not None and layout.tail == [layout.joint]

    def finish_with_text(self, field: Field) -> None:
        """The end of the body of a loop over tables with one text."""
        layout, node = self.layout, field.node
        packs = TextPacks(f"<i{layout.codes}", layout.align)
        few = self.constant(f"PACK__{layout.table.fbs}", [packs[size] for size in range(BRIEF)])
        many = self.constant(f"PACKS__{layout.table.fbs}", packs)
        self.inline[field.name] = [str(layout.fixed - layout.offsets[field.name])]
        dump = node.dump if isinstance(node, Text) else "$"
        self.add(f"s = {fill(dump, self.var[field.name])}", "n = len(s)")
        self.add(f"pack, size = {few}[n] if n < {BRIEF} else {many}[n]")
        self.add(f"add(pack({', '.join(['so', *self.values(), 'n', 's'])}))")
        self.add("at -= 4", "add_offset(at + so)", "so += size")

    def finish(self) -> None:
        layout = self.layout
        values = self.values()
        if layout.joint is not None:
            values.append(f"n{self.number[layout.joint.name]}")
        if self.root:
            head = layout.head(layout.full)
            codes = f"<{len(head)}s{layout.codes}"
            pack = self.constant("pack_root", struct.Struct(codes).pack)
            self.constant("HEAD", head)
            self.constant("HEADS", ByMask(layout.head))
            first = "HEADS[m]" if layout.optional else "HEAD"
            if self.texts and not layout.optional and not runtime.BY_ARRAY:
                self.finish_short(codes, ", ".join([first, *values]))
        else:
            pack = self.constant(f"pack__{layout.table.fbs}", struct.Struct(f"<i{layout.codes}").pack)
            first = "so"
            self.close_block()
        whole = f"{pack}({', '.join([first, *values])})"
        if self.loop:
            extra = " + len(e)" if "e" in self.parts else ""
            self.add(f"add({whole})" if not self.parts else f"extend(({', '.join([whole, *self.parts])}))")
            self.add("at -= 4", "add_offset(at + so)")
            self.add(f"so += {self.position('', 0)}{extra}")
            return
        whole = f"join(({', '.join([whole, *self.parts])}))" if self.parts else whole
        self.give(whole, any_size=self.root and bool(self.parts))

    def give(self, whole: str, *, any_size: bool) -> None:
        """Return *whole*, unless it is longer than readers take, which one of *any_size* may be."""
        if any_size:
            most, too_long = self.constant("MOST", runtime.MOST), self.constant("too_long", runtime.too_long)
            self.add(f"data = {whole}", f"return data if len(data) <= {most} else {too_long}(data)")
        else:
            self.add(f"return {whole}")

    def finish_short(self, codes: str, values: str) -> None:
        """The end of the root's function if all texts are short: those side by side are packed at once.

        Not on PyPy, which is slow at packing by what is no constant.
        """
        whole = f"pack_root({values})"
        parts: list[str] = list(self.parts)
        for start, numbers in reversed(self.texts):
            lengths, joint = [f"n{number}" for number in numbers], self.is_joint(numbers[0])
            packs = pack_short(codes, len(numbers)) if joint else SHORT[len(numbers)]
            pack = self.constant("PACK_ROOT" if joint else f"PACK_{len(numbers)}", packs)
            pack += "".join(f"[{length} >> 2]" for length in lengths)
            items = ", ".join(f"n{number}, s{number}" for number in numbers)
            packed = [] if joint else [f"{pack}({items})"]
            whole = f"{pack}({values}, {items.partition(', ')[2]})" if joint else whole
            parts[start : start + self.parts_of_texts(numbers)] = packed
        lengths = [f"n{number}" for _, numbers in self.texts for number in numbers]
        with self.block(f"if {' and '.join(f'{length} < {BRIEF}' for length in lengths)}:"):
            whole = " + ".join([whole, *parts]) if len(parts) < 2 else f"join(({', '.join([whole, *parts])}))"
            self.give(
                whole, any_size=len(self.parts) > sum([self.parts_of_texts(numbers) for _, numbers in self.texts])
            )

    def close_block(self) -> None:
        """Padding, and the vtable of a table that cannot share the common one: behind it."""
        layout = self.layout
        if layout.align == 8 and self.parts:
            self.add(f"e = EVENS[({self.position('', 0)}) >> 2 & 1]")
            self.parts.append("e")
        if layout.optional:
            vtables = self.constant(f"VTABLES__{layout.table.fbs}", ByMask(layout.padded_vtable))
            extra = " + len(e)" if "e" in self.parts else ""
            with self.block(f"if m != {layout.full}:"):
                self.add(f"t = {vtables}[m]", f"so = -({self.position('', 0)}{extra})")
            with self.block("else:"):
                self.add("t = b''")
            self.parts.append("t")
