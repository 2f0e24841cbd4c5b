"""Lines that read parts of a stored object alone: lists, unions, objects inside it, and fields of these.

An object inside the record is a table with a vtable of its own. If that is one that zlmdb writes, its fields are at
constant offsets, as those of the record are; otherwise the whole record is left to the decoder.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

from ...codegen import Source
from ..paths import IS_NONE, LENGTH, Path
from .layout import Layout, Masks, codes_of
from .nodes import Field, InPlace, Node, Table, UnionOf, Vector, as_table, fill
from .references import References
from .view import KEPT, is_lazy, is_model

_ENDS = {IS_NONE: "_none", LENGTH: "_len"}


class Elsewhere(Exception):
    """A table inside the record is not as we write it."""


class Place:
    """Where a path leads: to a *field* of the object at *holder*, which is None for the record."""

    def __init__(self, holder: Optional[Place], field: Field, layout: Layout) -> None:
        """*layout* is that of the table with the field."""
        self.holder, self.field, self.layout = holder, field, layout
        self.number: str = f"{field.id}" if holder is None else f"{holder.number}_{field.id}"
        """What its variables end in."""

    @property
    def unsure(self) -> Optional[Place]:
        """The holder, if a record may lack it."""
        return None if self.holder is None or self.holder.always else self.holder

    @property
    def always(self) -> bool:
        """Whether every record has it."""
        return not self.field.optional and self.unsure is None

    @property
    def test(self) -> str:
        """The condition that a record has it."""
        tests = [] if self.unsure is None else [f"t{self.unsure.number}"]
        if self.field.optional:
            mask = "m" if self.holder is None else f"m{self.holder.number}"
            tests.append(f"{mask} & {1 << self.layout.optional.index(self.field)}")
            tests += [f"k{self.number}"] if isinstance(self.field.node, UnionOf) else []
        return " and ".join(tests) or "True"

    @property
    def missing(self) -> str:
        """What Python gives, or raises, for it where it is not there."""
        holder = self.unsure
        if holder is None:
            return "NONE"  # by a name: compilers warn of ``None["city"]``
        return f"(NONE if t{holder.number} else {self.broken})" if self.field.optional else self.broken

    @property
    def broken(self) -> str:
        """What raises as Python does where a record lacks its holder."""
        return fill(self.field.get, "NONE" if self.unsure is None else self.unsure.missing)

    def line(self) -> Iterator[Place]:
        """It, its holder, and so on."""
        yield self
        if self.holder is not None:
            yield from self.holder.line()

    def holders(self) -> Sequence[Place]:
        """What holds it, the outermost first."""
        return [*self.line()][:0:-1]


def reach(root: Table, path: Path, *, lazy: bool) -> Optional[Path]:
    """The beginning of *path* that can be read without the rest of a record of *root*; None if there is none.

    *lazy*: reading gives views, in which objects are views, too.
    """
    field: Optional[Field] = None
    node: Node = root
    for depth, name in enumerate(path):
        if field is not None and (name == IS_NONE or (name == LENGTH and _is_counted(field))):
            return path[: depth + 1]
        found = [one for one in as_table(node).fields if one.name == name] if is_model(node) else []
        if not found:
            path = path[:depth]
            break
        field, node = found[0], found[0].node
    return None if field is None or (lazy and is_lazy(node)) else path


def _is_counted(field: Field) -> bool:
    """Whether it has as many items as the vector, and is always there."""
    node = field.node
    return isinstance(node, Vector) and node.make in KEPT and not field.optional


class NestedColumns:
    """Writes such lines for one loop, beside the variables of `Columns`.

    ``t3`` is the position of the table that field 3 refers to, or 0, ``m3`` says which optional fields that has, and
    ``f3_1`` and ``x3_1`` are of its field 1. What a path leads to is in ``w3_1``.
    """

    def __init__(
        self, layouts: Mapping[str, Layout], root: Layout, start: int, space: Mapping[str, Any], paths: Sequence[Path]
    ) -> None:
        """*start* is where a record has its table. *space*: the names of the decoder."""
        self._layouts, self._root, self._start, self._space = layouts, root, start, space
        self._paths, self._opened = paths, set[str]()
        self._places = {path: self._place(path) for path in paths}
        foreign = Elsewhere, struct.error, IndexError
        self.names: dict[str, Any] = {"NONE": None, "Elsewhere": Elsewhere, "Foreign": foreign}
        """What the lines use."""

    def _place(self, path: Path) -> Place:
        place: Optional[Place] = None
        layout = self._root
        for name in path[:-1] if path[-1] in _ENDS else path:
            if place is not None:
                layout = self._layouts[as_table(place.field.node).fbs]
            place = Place(place, next(one for one in layout.table.fields if one.name == name), layout)
        if place is None:
            raise TypeError("a path without fields")
        return place

    def variable(self, path: Path) -> str:
        """The variable of what *path* leads to."""
        return f"w{self._places[path].number}{_ENDS.get(path[-1], '')}"

    def expression(self, path: Path) -> str:
        """What *path* leads to, of its variable. It raises what Python raises where the path breaks off."""
        place, variable = self._places[path], self.variable(path)
        holder = place.unsure
        return variable if holder is None else f"({variable} if t{holder.number} else {place.broken})"

    def opening(self, paths: Iterable[Path]) -> list[str]:
        """Lines that find the objects on *paths*, if they are not yet found. They may raise what ``Foreign`` is."""
        source = Source()
        for path in paths:
            for place in self._places[path].holders():
                if place.number not in self._opened:
                    self._opened.add(place.number)
                    self._open(source, place)
        return source.lines

    def _open(self, source: Source, place: Place) -> None:
        """Lines that find the object at *place*, and unpack those of its fields that any path leads to."""
        number, layout = place.number, self._layouts[as_table(place.field.node).fbs]
        fields = {one.number: one for path in self._paths for one in self._places[path].line()}
        inside = [one for one in fields.values() if one.holder is not None and one.holder.number == number]
        form, variables = _unpacked(layout, inside)
        self.names[f"unpack_{number}"] = form.unpack_from
        vtable = f"data[v:v + {4 + 2 * layout.count}]"
        if layout.optional:
            self.names[f"MASKS_{number}"] = Masks(layout.mask_of)
            foreign = f"(m{number} := MASKS_{number}[{vtable}]) < 0"
        else:
            self.names[f"VTABLE_{number}"] = layout.vtable(0)
            foreign = f"{vtable} != VTABLE_{number}"
        lines = [
            f"t{number} = {self._position(place)} + f{number}",
            f"{', '.join(['so', *variables])}, = unpack_{number}(data, t{number})",
            f"v = t{number} - so",
            f"if not f{number} or v < 0 or {foreign}: raise Elsewhere",
        ]
        self._where(source, place, lines, f"t{number} = 0")

    def _position(self, place: Place) -> str:
        """The expression of where the table of *place* has the field."""
        offset = place.layout.offsets[place.field.name]
        return str(self._start + offset) if place.holder is None else f"t{place.holder.number} + {offset}"

    def _where(self, source: Source, place: Place, lines: Sequence[str], otherwise: str) -> None:
        """*lines* where *place* is there, else *otherwise*."""
        if place.always:
            source.add(*lines)
            return
        with source.block(f"if {place.test}:"):
            source.add(*lines)
        with source.block("else:"):
            source.add(otherwise)

    def lines(self, path: Path) -> list[str]:
        """Lines that set the `variable` of *path*."""
        place, variable = self._places[path], self.variable(path)
        node, number = place.field.node, place.number
        source = Source()
        if path[-1] == IS_NONE:
            return [f"{variable} = not ({place.test})"]
        if isinstance(node, InPlace):
            lines = [f"{variable} = {node.make(node.variables(number))}"]
        else:
            lines = [f"if not f{number}: raise Corrupt('a reference to itself')"]
            lines += self._counted(place) if path[-1] == LENGTH else self._referred(place)
        self._where(source, place, lines, f"{variable} = None")
        return source.lines

    def _counted(self, place: Place) -> list[str]:
        item = place.field.node.item if isinstance(place.field.node, Vector) else place.field.node
        variable = f"w{place.number}{_ENDS[LENGTH]}"
        return [
            f"p = {self._position(place)} + f{place.number}",
            f"{variable}, = get_u32(data, p)",
            f"if p + 4 + {item.size} * {variable} > len(data): raise Corrupt('a vector beyond the end')",
        ]

    def _referred(self, place: Place) -> list[str]:
        references = References({}, views=False)
        references.reference(place.field.node, place.number, self._position(place), "")
        text = str(references.source)
        for name in re.findall(r"\w+", text):
            found = references.names.get(name, self._space.get(name))
            if found is not None:
                self.names[name] = found
        room = ["room = room_of(data)"] if re.search(r"\broom\b", text) else []
        return [*room, *references.source.lines, f"w{place.number} = x{place.number}"]


def _unpacked(layout: Layout, places: Sequence[Place]) -> tuple[struct.Struct, list[str]]:
    """How the fields at *places*, of a table with *layout*, are unpacked behind its first number; the variables."""
    numbers = {place.field.name: place.number for place in places}
    entries = [entry for entry in layout.entries if entry.field.name in numbers]
    codes, end = codes_of([(entry.offset, entry.code) for entry in entries], 4)
    variables = [variable for entry in entries for variable in entry.variables(numbers[entry.field.name])]
    return struct.Struct(f"<i{codes}{layout.inline - end}x"), variables
