"""The types of fields in FlatBuffers, with the Python source that checks, writes and reads them.

The source is in templates: expressions in which ``$`` is the value. The names that they use are kept beside the schema
(`Schema.names`).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time
from typing import Any, Optional, Union

from ...codegen import value_of
from ..base import show, typename
from .markers import Width

Names = Mapping[str, Any]


def fill(template: str, *values: str) -> str:
    """*template* with *values* for its ``$``, or for ``$0``, ``$1``, ...

    >>> fill("f($)", "x"), fill("f($0, $1)", "x", "y")
    ('f(x)', 'f(x, y)')
    """
    return re.sub(r"\$(\d*)", lambda found: values[int(found[1] or 0)], template)


def run(template: str, names: Names, value: Any) -> Any:
    """What *template* gives for *value*."""
    return value_of(fill(template, "value"), names, value)


class Node:
    """One type of a field."""

    label: str = ""
    """The annotation, as one would write it."""

    fbs: str = ""
    """The type in the language of flatc."""

    size: int = 4
    """Bytes in the table itself: of a reference, four."""

    align: int = 4

    test: str = ""
    """An expression that is true of what fits (items and fields inside not considered)."""

    def misfit(self, value: Any, path: str, names: Names) -> Optional[str]:
        """Why *value*, found at *path*, does not fit; None if it does."""
        try:
            return None if run(self.test, names, value) and self.packs(value, names) else self.refusal(value, path)
        except Exception as error:
            return f"{self.refusal(value, path)}: {error}"

    def packs(self, value: Any, names: Names) -> bool:
        """Whether *value*, of the right type, can be written. May raise, which means no."""
        return True

    def refusal(self, value: Any, path: str) -> str:
        """The text that says so."""
        stored = f" (stored as {self.fbs})" if self.fbs not in ("", self.label) else ""
        naive = self.label == "datetime" and type(value) is datetime and value.utcoffset() is None
        wanted = " with a time zone, such as datetime.now(timezone.utc)" if naive else ""
        if self.label == "time" and type(value) is time and value.tzinfo is not None:
            wanted = " without a time zone"
        return f"{path}: expected {self.label}{wanted}{stored}, got {show(value)} ({typename(type(value))})"

    def children(self) -> Iterable[Node]:
        """The nodes this one is made of."""
        return ()


class InPlace(Node):
    """What lies in the table itself: one number, or several."""

    code: str
    """The format of the numbers in `struct`."""

    gets: list[str]
    """The numbers, as templates of the value."""

    def make(self, numbers: Sequence[str]) -> str:
        """The expression that makes the value of its *numbers*, as they are unpacked."""
        raise NotImplementedError

    def variables(self, number: Union[int, str]) -> list[str]:
        """The variables that the numbers of the field called *number* are unpacked into."""
        raise NotImplementedError

    def packs(self, value: Any, names: Names) -> bool:
        struct.pack("<" + self.code, *[run(get, names, value) for get in self.gets])
        return True


class Scalar(InPlace):
    """A number, a bool, or what is stored as one: enums, times."""

    def __init__(self, label: str, width: Width, test: str, dump: str = "$", load: str = "$", *, zero: Any = 0) -> None:
        """*zero* is what is read, before *load*, when the field is absent and has no default."""
        self.label, self.width, self.test, self.dump, self.load, self.zero = label, width, test, dump, load, zero
        self.fbs, self.code, self.gets = width.fbs, width.code, [dump]
        self.size = self.align = width.size
        self.sure: Optional[type[Any]] = None
        """The type whose values all fit as they are, and are packed as they are."""

    def make(self, numbers: Sequence[str]) -> str:
        return fill(self.load, *numbers)

    def variables(self, number: Union[int, str]) -> list[str]:
        return [f"f{number}"]


class Struct(InPlace):
    """Scalars in place, in a fixed order, with the padding that C would give them."""

    def __init__(self, label: str, fbs: str, test: str, members: Sequence[tuple[str, str, InPlace]], load: str) -> None:
        """*members*: name, how it is got from the object, what it is. *load* makes the object of ``$0``, ``$1``, ..."""
        self.label, self.fbs, self.members, self.load = label, fbs, members, load
        self.align = max((node.align for _, _, node in members), default=1)
        self.size = 0
        self.code = ""
        self.gets: list[str] = []
        self._loads: list[str] = []
        tests = [test]
        for _, get, node in members:
            self._place(get, node)
            tests.append(fill(node.test, get))
        pad = -self.size % self.align
        self.code += f"{pad}x" if pad else ""
        self.size += pad
        self.test = " and ".join(tests)

    def _place(self, get: str, node: InPlace) -> None:
        pad = -self.size % node.align
        self.code += (f"{pad}x" if pad else "") + node.code
        self.size += pad + node.size
        self._loads.append(node.make([f"${number}" for number, _ in enumerate(node.gets, len(self.gets))]))
        self.gets += [fill(inner, get) for inner in node.gets]

    def make(self, numbers: Sequence[str]) -> str:
        return fill(self.load, *[fill(load, *numbers) for load in self._loads])

    def variables(self, number: Union[int, str]) -> list[str]:
        return [f"f{number}_{part}" for part in range(len(self.gets))]

    def children(self) -> Iterable[Node]:
        return [node for _, _, node in self.members]

    def misfit(self, value: Any, path: str, names: Names) -> Optional[str]:
        reason = None
        for name, get, node in self.members:
            try:
                reason = reason or node.misfit(run(get, names, value), f"{path}.{name}", names)
            except Exception:
                return self.refusal(value, path)
        return reason or super().misfit(value, path, names)


class Text(Node):
    """UTF-8, or what is stored as text: decimals, enums of texts."""

    fbs = "string"

    def __init__(
        self, label: str, test: str, dump: str = "$.encode()", load: str = "$", *, plain: bool = False
    ) -> None:
        """*dump* gives bytes, *load* takes a str. *plain*: nothing but str."""
        self.label, self.test, self.dump, self.load, self.plain = label, test, dump, load, plain

    def packs(self, value: Any, names: Names) -> bool:
        run(self.dump, names, value)
        return True


class Blob(Node):
    """Bytes: a vector of ubyte, of any length or of *length*."""

    fbs = "[ubyte]"

    def __init__(
        self, label: str, test: str, dump: str = "$", load: str = "$", *, length: Optional[int] = None
    ) -> None:
        self.label, self.test, self.dump, self.load, self.length = label, test, dump, load, length


class Vector(Node):
    """Many of one kind: a list, or any container that *items* makes a sequence of and *make* is made from one by."""

    def __init__(self, label: str, item: Node, test: str, items: str = "$", make: str = "$") -> None:
        self.label, self.item, self.test, self.items, self.make = label, item, test, items, make
        self.fbs = f"[{item.fbs}]"

    def children(self) -> Iterable[Node]:
        return (self.item,)

    def misfit(self, value: Any, path: str, names: Names) -> Optional[str]:
        reason = Node.misfit(self, value, path, names)
        if reason is not None:
            return reason
        try:
            items = run(self.items, names, value)
        except Exception as error:  # a set whose members have no order
            return f"{self.refusal(value, path)}: {error}"
        for position, item in enumerate(items):
            reason = self.item.misfit(item, f"{path}[{position}]", names)
            if reason is not None:
                return reason
        return None


class Field:
    """A field of a table."""

    def __init__(self, name: str, get: str, node: Node, optional: bool) -> None:
        self.name, self.get, self.node, self.optional = name, get, node, optional
        self.id = -1
        self.default: Optional[str] = None
        """The expression that gives the value when the field is absent; None: it must be there."""
        self.default_value: Any = None
        """The default of a scalar, as it is stored."""
        self.build: str = "$"
        """Its part in the call that makes the object."""
        self.late = False
        """Whether it is set after the object is made."""
        self.in_place = isinstance(node, InPlace)
        """Whether it lies in the table itself, and not behind a reference."""


class Table(Node):
    """A model class, or what holds several values where FlatBuffers knows only tables: an entry of a dict."""

    def __init__(self, label: str, fbs: str, test: str) -> None:
        self.label, self.fbs, self.test = label, fbs, test
        self.fields: list[Field] = []
        """In the order of their ids."""
        self.declared: list[Field] = []
        """In the order of the class."""
        self.call = "$"
        """The expression that makes the object of its arguments, which stand for ``$``."""
        self.cls = ""
        """The name of the class."""
        self.bare = False
        """Whether making an object is nothing but setting its attributes."""
        self.trusted = False
        """Whether its objects are made by us, when a dict or the like is taken apart."""
        self.recursive = False
        """Whether it may hold itself, at some depth."""
        self.deep = False
        """Whether it may hold, or is, a recursive one."""
        self.shared = False
        """Whether a buffer may refer to the same one many times: as an item of a vector, or in a recursive one."""
        self.path = "."
        """What stands before a field's name in a path."""

    def children(self) -> Iterable[Node]:
        return [field.node for field in self.fields]

    def misfit(self, value: Any, path: str, names: Names) -> Optional[str]:
        reason = Node.misfit(self, value, path, names)
        if reason is not None:
            return reason
        for field in self.fields:
            where = f"{path}.{field.name}" if self.path == "." else path
            try:
                item = run(field.get, names, value)
            except Exception as error:
                return f"{where}: {error}"
            if item is None and field.optional:
                continue
            reason = field.node.misfit(item, where, names)
            if reason is not None:
                return reason
        return None


class UnionOf(Node):
    """One of several tables, told apart by the class of the value. Members that are no tables are put into one."""

    test = "True"

    def __init__(self, label: str, fbs: str) -> None:
        self.label, self.fbs = label, fbs
        self.members: list[tuple[type[Any], Table, bool]] = []
        """The class of the values, the table, whether the value is put into it."""

    def children(self) -> Iterable[Node]:
        return [table for _, table, _ in self.members]

    def misfit(self, value: Any, path: str, names: Names) -> Optional[str]:
        for cls, table, boxed in self.members:
            if type(value) is cls:
                return table.misfit((value,) if boxed else value, path, names)
        return self.refusal(value, path)


def as_table(node: Node) -> Table:
    """*node*, which is known to be a table."""
    if isinstance(node, Table):
        return node
    raise TypeError(f"{node.label} is not a table")
