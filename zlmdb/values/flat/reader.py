"""The generated eager decoder.

A buffer that begins with our own head, or a table with our own vtable, is read by one `unpack_from` at constant
offsets. Any other layout is read field by field (``any_`` functions), until it has a function of its own (see `plans`).

Two underscores stand between what a generated function is for and the name of the type it is of, ``read__User``. No
other names have two, so that a class may be called ``root`` or ``texts``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import Any, Callable, Optional

from ...codegen import Recipe
from ..base import Decode
from . import runtime
from .keysets import FEW, Readers, has_keysets
from .layout import Layout, Masks
from .nodes import Blob, InPlace, Table, Text, UnionOf, fill
from .plans import Plan, Plans, read_vtable
from .references import References
from .runtime import SHARING, SLACK
from .schema import Schema

_READING = Recipe("FlatBuffers reader", general=("any__",))
_PLANS = Recipe("FlatBuffers reader of a layout", general=("any__",))


def make_decoder(schema: Schema, layouts: dict[str, Layout]) -> tuple[Decode, dict[str, Any]]:
    """The function from bytes to a value, and what its lines have defined.

    It raises anything, but MemoryError, for bytes that do not fit.
    """
    reader = Reader(schema, layouts)
    reader.functions()
    reader.space = _READING.functions(schema.label, str(reader.source), reader.names)
    decode: Callable[[Any], Any] = reader.space["decode"]
    return (lambda data: decode(data)[0]) if schema.boxed else decode, reader.space


class Reader(References):
    """Writes the functions that read the tables of a schema."""

    def __init__(self, schema: Schema, layouts: dict[str, Layout], *, views: bool = False) -> None:
        """*views*: what is read may be a memoryview."""
        super().__init__(schema.names, views=views)
        self.space: dict[str, Any] = {}
        """What the lines have defined, once they have been run."""
        self.schema, self.layouts = schema, layouts
        self.names.update(late=object.__setattr__, new=object.__new__)

    def functions(self) -> None:
        """All functions of all tables."""
        for table in self.schema.tables:
            self.any_layout(table)
            self.one(table)
            self.all(table)
            if table.trusted and len(table.fields) == 2:  # an entry of a dict
                self.all(table, as_dict=True)
        self.root(self.schema.root)

    # Functions

    def any_layout(self, table: Table) -> None:
        """``any_T``: the table at a position, whatever its layout."""
        layout = self.layouts[table.fbs]
        known = self.constant(f"known__{table.fbs}", {})
        with self.block(f"def any__{table.fbs}(data, t, room):"):
            if not self.views:
                plans = self.constant(f"plans__{table.fbs}", Plans(partial(self.plan, layout)))
                self.add("so, = get_i32(data, t)", "w = t - so")
                with self.block("if w >= 0:"):
                    self.add("size, = get_u16(data, w)", f"plan = {plans}[data[w:w + size]]")
                    with self.block("if plan is not None:"):
                        self.add("return plan(data, t, room)")
            self.add(f"fields = fields_of(data, t, {layout.sizes}, {known})")
            self.enter(table)
            values = {field.name: self.any_field(field, number) for number, field in enumerate(table.fields)}
            self.leave(table, values)
        self.add("")

    def plan(self, own: Layout, vtable: bytes) -> Optional[Plan]:
        """The function for tables with *vtable*, made now; None if they have to be read field by field."""
        layout = read_vtable(vtable, own)
        if layout is None:
            return None
        more = Reader(self.schema, self.layouts)
        more.planned(layout)
        name = f"{layout.table.fbs} in {self.schema.label}, {vtable.hex()}"
        return _PLANS.functions(name, str(more.source), {**self.space, **more.names})["plan"]

    def planned(self, layout: Layout) -> None:
        """``plan``: the table at a position, which has *layout*."""
        table = layout.table
        with self.block("def plan(data, t, room):"):
            with self.block(f"if t + {layout.inline} > len(data):"):
                self.add("raise Corrupt('a table beyond the end')")
            if layout.entries:
                unpack = self.constant("unpack_plan", layout.unpack.unpack_from)
                self.add(f"{', '.join(self.unpacked(layout))}, = {unpack}(data, t)")
            self.elsewhere(layout, ["raise Corrupt('a reference to itself')"])
            self.enter(table)
            self.leave(table, self.known_fields(layout, "t", 0, "room[0]" if table.shared else ""))

    def one(self, table: Table) -> None:
        """``read_T``: the table at a position, at once if it has our layout."""
        layout = self.layouts[table.fbs]
        with self.block(f"def read__{table.fbs}(data, t, room):"):
            self.known_or(table, f"return any__{table.fbs}(data, t, room)")
            self.enter(table)
            values = self.known_fields(layout, "t", 0, "room[0]" if table.shared else "")
            self.leave(table, values)
        self.add("")

    def known_or(self, table: Table, otherwise: str) -> None:
        """Unpack the table at ``t``, or do *otherwise*."""
        layout = self.layouts[table.fbs]
        name = table.fbs
        self.constant(f"unpack__{name}", layout.unpack.unpack_from)
        with self.block(f"if t + {layout.unpack.size} > len(data):"):
            self.add(otherwise)
        self.add(f"{', '.join(['so', *self.unpacked(layout)])}, = unpack__{name}(data, t)", "w = t - so")
        with self.block(f"if w < 0 or {self.foreign(layout)}:"):
            self.add(otherwise)
        self.elsewhere(layout, [otherwise])

    def foreign(self, layout: Layout) -> str:
        """The condition that the vtable at ``w`` is not ours; sets ``m`` where there are optional fields."""
        name = layout.table.fbs
        vtable = f"data[w:w + {4 + 2 * layout.count}]"
        if not layout.optional:
            return f"{vtable} != {self.constant(f'VTABLE__{name}', layout.vtable(0))}"
        return f"(m := {self.constant(f'MASKS__{name}', Masks(layout.mask_of))}[{vtable}]) < 0"

    def all(self, table: Table, *, as_dict: bool = False) -> None:
        """``all_T``: the vector of tables at a position. Those that share a vtable have it looked at once.

        *as_dict*: ``dict_T``, the dict of the entries at a position.
        """
        layout = self.layouts[table.fbs]
        left = _left(layout)
        with self.block(f"def {'dict' if as_dict else 'all'}__{table.fbs}(data, position, room):"):
            if as_dict and not self.views and has_keysets(layout):
                self.known_keys(layout)
            self.add(*["found = {}"] if as_dict else ["found = []", "add = found.append"])
            self.add(f"last = len(data) - {layout.unpack.size}", "seen = -1")
            self.offsets(left)
            if table.recursive:
                with self.block("if offsets:"):
                    self.deeper()
            with self.block("for offset in offsets:"):
                self.item(layout, left, as_dict)
            if not left:
                self.add("room[0] -= e - begin")
            elif left == "left":
                self.add("room[0] = left")
            if table.recursive:
                with self.block("if offsets:"):
                    self.add("room[1] -= 1")
            self.add("return found")
        self.add("")

    def offsets(self, left: str) -> None:
        """Lines that read the references to the tables of a vector, whose bytes *left* counts."""
        if left:
            self.add("offsets = get_offsets(data, position, room)")
        elif runtime.BY_ARRAY:  # PyPy makes single loads of this
            self.add("z, = get_u32(data, position)")
            self.within("position", 4)
            self.add("offsets = [get_u32(data, q)[0] for q in range(position + 4, position + 4 + 4 * z, 4)]")
        else:
            self.add("z, = get_u32(data, position)")
            self.add("offsets = few_u32[z](data, position + 4) if z < 33 else get_offsets(data, position, room)")
        if not left:
            self.add("begin = e = position + 4 * len(offsets)")
        elif left == "left":
            self.add("left = room[0]")

    def item(self, layout: Layout, left: str, as_dict: bool) -> None:
        """The body of the loop of `all`: one table, whose bytes *left* counts."""
        table = layout.table
        others = self.other_item(table, left, as_dict)
        self.add("position += 4", "t = position + offset")
        with self.block("if t > last:" if left else "if not e <= t <= last:"):
            self.add(*others)
        self.add(f"{', '.join(['so', *self.unpacked(layout)])}, = unpack__{table.fbs}(data, t)")
        with self.block("if t - so != seen:"):
            self.add("w = t - so")
            with self.block(f"if w < 0 or {self.foreign(layout)}:"):
                self.add(*others)
            self.add("seen = w")
        self.elsewhere(layout, others)
        values = self.known_fields(layout, "t", 0, left)
        if left and layout.tail:
            with self.block(f"if {left} < 0:"):
                self.add("raise Corrupt(OVERGROWN)")
        if as_dict:
            key, value = table.declared
            self.add(f"found[{values[key.name]}] = {values[value.name]}")
        else:
            self.made(table, values, "add($)")

    def other_item(self, table: Table, left: str, as_dict: bool) -> list[str]:
        """The lines of that loop for a table of another layout."""
        other = f"any__{table.fbs}(data, t, room)"
        lines = [f"pair = {other}", "found[pair[0]] = pair[1]"] if as_dict else [f"add({other})"]
        if table.recursive:  # the function called counts the level that has been counted here
            lines = ["room[1] -= 1", *lines, "room[1] += 1"]
        if left == "left":
            lines = ["room[0] = left", *lines, "left = room[0]"]
        return [*lines, "continue"]

    def known_keys(self, layout: Layout) -> None:
        """Lines that read a dict at once if it has keys that have been met often."""
        readers = Readers(layout, dict(self.schema.names))
        name = self.constant(f"readers__{layout.table.fbs}", readers)
        wait = self.constant(f"wait__{layout.table.fbs}", readers.wait)
        self.add("z, = get_u32(data, position)")
        with self.block(f"if 0 < z < {FEW}:"):
            with self.block(f"if {name}:"):
                self.add(f"read = {name}.get(get_u32(data, position + 4 * z)[0] << 6 | z)")
                with self.block("if read is not None:"):
                    self.add("found = read(data, position, room)")
                    with self.block("if found is not None:"):
                        self.add("return found")
            self.add(f"{wait}[0] -= 1")
            with self.block(f"if {wait}[0] < 0:"):
                self.add(f"{name}.look(data, position)")

    def root(self, table: Table) -> None:
        """``decode``: the whole buffer."""
        layout = self.layouts[table.fbs]
        head = layout.head(layout.full)
        start = len(head) - 4
        form = struct.Struct(f"<{len(head)}s{layout.unpack.format[2:]}")
        with self.block("def decode(data):"):
            with self.block("if type(data) is not bytes:"):
                self.add("data = bytes(data)")
            other = f"return any__{table.fbs}(data, follow(data, 0), room_of(data))"
            with self.block(f"if len(data) < {form.size}:"):
                self.add(other)
            self.constant("unpack_root", form.unpack_from)
            self.constant("HEAD", head)
            self.add(f"{', '.join(['head', *self.unpacked(layout)])}, = unpack_root(data)")
            if layout.optional:
                self.constant("HEADS", Masks(layout.mask_of_head))
                self.add(f"m = {layout.full}")
                with self.block("if head != HEAD:"):
                    self.add("m = HEADS[head]")
                    with self.block("if m < 0:"):
                        self.add(other)
            else:
                with self.block("if head != HEAD:"):
                    self.add(other)
            self.elsewhere(layout, [other])
            if any(not isinstance(field.node, (Text, Blob)) for field in layout.tail) or table.recursive:
                self.add(f"room = [{SHARING} * len(data) + {SLACK}, 0]")
            if table.recursive:
                self.add("room[1] = 1")
            values = self.known_fields(layout, "", start, "")
            self.made(table, values, "return $")

    def enter(self, table: Table) -> None:
        """Lines that count a table that may be referred to many times."""
        if table.shared:
            self.add("room[0] -= 8")
            with self.block("if room[0] < 0:"):
                self.add("raise Corrupt(OVERGROWN)")
        if table.recursive:
            self.deeper()

    def deeper(self) -> None:
        """Lines that count a level of tables inside tables of their own kind."""
        self.add("room[1] += 1")
        with self.block("if room[1] > DEPTH:"):
            self.add("raise Corrupt('too many levels of tables inside tables of their own kind')")

    def leave(self, table: Table, values: dict[str, str]) -> None:
        """Lines that end the function of a table whose fields are the expressions *values*."""
        if table.recursive:
            self.add("room[1] -= 1")
        self.made(table, values, "return $")

    def made(self, table: Table, values: dict[str, str], then: str) -> None:
        """Make the object of the expressions *values*, by field, and do what *then* says with it."""
        if table.bare and not runtime.BY_ARRAY:
            self.add(f"one = new({table.cls})")
            self.add(*[f"one.{field.name} = {values[field.name]}" for field in table.declared])
            self.add(then.replace("$", "one"))
            return
        builds = [fill(field.build, values[field.name]) for field in table.declared if not field.late]
        keywords = {fill(field.build, values[field.name]) for field in table.declared if "=$" in field.build}
        arguments = [build for build in builds if build not in keywords] + [one for one in builds if one in keywords]
        made = fill(table.call, ", ".join(arguments))
        late = [field for field in table.declared if field.late]
        if late:
            self.add(f"one = {made}")
            self.add(*[f"late(one, {field.name!r}, {values[field.name]})" for field in late])
            made = "one"
        self.add(then.replace("$", made))

    # Fields of our own layout

    def unpacked(self, layout: Layout) -> list[str]:
        """The variables that the numbers of the table are unpacked into."""
        found: list[str] = []
        for entry in layout.entries:
            found += entry.variables(layout.table.fields.index(entry.field))
        for name in layout.pinned:
            number = self.number(layout.table, name)
            found += [f"c{number}", f"b{number}"]
        return found if layout.joint is None else [*found, "z"]

    def number(self, table: Table, name: str) -> int:
        """The number by which the variables of the field *name* are called."""
        return next(number for number, field in enumerate(table.fields) if field.name == name)

    def elsewhere(self, layout: Layout, otherwise: Sequence[str]) -> None:
        """Do *otherwise* if what was unpacked behind the fields is not what they refer to."""
        tests = self.misplaced(layout)
        if tests:
            with self.block(f"if {' or '.join(tests)}:"):
                self.add(*otherwise)

    def misplaced(self, layout: Layout) -> list[str]:
        """The conditions of `elsewhere`."""
        tests: list[str] = []
        for name, distance in layout.pinned.items():
            number = self.number(layout.table, name)
            node = layout.table.fields[number].node
            length = node.length if isinstance(node, Blob) else 0
            tests.append(f"f{number} != {distance} or c{number} != {length}")
        if layout.joint is not None:
            number = self.number(layout.table, layout.joint.name)
            tests.append(f"f{number} != {layout.fixed - layout.offsets[layout.joint.name]}")
        must = [field for field in layout.tail if field not in layout.optional and field is not layout.joint]
        if must:  # a reference to itself would be a text of no bytes
            references = [f"f{self.number(layout.table, field.name)}" for field in must]
            tests.append(f"not {references[0]}" if len(must) == 1 else f"not ({' and '.join(references)})")
        return tests

    def known_fields(self, layout: Layout, base: str, start: int, left: str) -> dict[str, str]:
        """Lines that read the fields of a table unpacked at *base* + *start*; the expressions of their values.

        *left*: what counts the bytes that are still allowed; without it none are counted.
        """
        table = layout.table
        values: dict[str, str] = {}
        if layout.joint is not None:  # before ``z`` is used for others
            number = table.fields.index(layout.joint)
            after = start + layout.fixed + 4
            self.add(f"p = {base} + {after}" if base else f"p = {after}", "e = p + z")
            self.text_between(layout.joint.node, number, left)
            values[layout.joint.name] = f"x{number}"
        for number, field in enumerate(table.fields):
            node = field.node
            if field.name in values:
                continue
            if isinstance(node, Blob) and field.name in layout.pinned:
                values[field.name] = fill(node.load, f"b{number}")
                continue
            if field.name in layout.absent:
                values[field.name] = f"x{number}"
                self.add(self.absent(field, f"x{number} ="))
                continue
            there = f"m & {1 << layout.optional.index(field)}" if field in layout.optional else ""
            if isinstance(node, InPlace):
                made = node.make(node.variables(number))
                values[field.name] = f"({made} if {there} else None)" if there else made
                continue
            if there and isinstance(node, UnionOf):
                there = f"{there} and k{number}"
            values[field.name] = f"x{number}"
            offset = start + layout.offsets[field.name]
            position = f"{base} + {offset}" if base else str(offset)
            if there:
                with self.block(f"if {there}:"):
                    with self.block(f"if not f{number}:"):
                        self.add("raise Corrupt('a reference to itself')")
                    self.reference(node, number, position, left)
                with self.block("else:"):
                    self.add(f"x{number} = None")
            else:
                self.reference(node, number, position, left)
        return values


def _left(layout: Layout) -> str:
    """What counts the bytes that may still be spelled out, where tables of *layout* are read in a loop.

    Empty where all that a table refers to is one text right behind it: texts that follow one another are no more than
    the buffer.
    """
    if layout.joint is not None and layout.tail == [layout.joint]:
        return ""
    return "left" if all(isinstance(field.node, (Text, Blob)) for field in layout.tail) else "room[0]"
