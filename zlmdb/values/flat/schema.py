"""From a model class to a FlatBuffers schema.

========================================  =======================================================
in Python                                 in FlatBuffers
========================================  =======================================================
``int``, ``Annotated[int, U16]``          ``long``, ``ushort``
``float``, ``Annotated[float, F32]``      ``double``, ``float`` (rounded)
``bool``, ``str``, ``bytes``              ``bool``, ``string``, ``[ubyte]``
``UUID``                                  ``[ubyte]``, 16 of them, big-endian
``datetime`` (aware; comes back in UTC)   ``long``: microseconds since 1970
``time`` (naive), ``timedelta``           ``long``: microseconds
``date``                                  ``struct Date { year:ushort; month:ubyte; day:ubyte; }``
``Decimal``, an Enum or Literal of texts  ``string``
an Enum or Literal of integers            ``enum``, of ints if they fit; ``long``
a model class                             ``table``, or ``struct`` with `InStruct`
``list``, ``tuple[T, ...]``, sets         a vector (sets in ascending order)
``dict[K, V]``                            a vector of tables with ``key`` and ``value``
``Union`` of model classes                ``union``; other members are put into tables
``Optional``                              absent when None; a number gets ``= null``
========================================  =======================================================

Vectors of what FlatBuffers has no vectors of (vectors, optional values, unions) are vectors of tables with one field
``value``, and so is the whole when it is no model class. Numbers are always written, also those that equal the default.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from ..base import typename
from . import runtime
from .annotations import AnnotationReader
from .markers import Width
from .nodes import Node, Struct, Table, UnionOf, Vector, as_table


class Schema:
    """The tables that values of one type are made of."""

    def __init__(self, annotation: Any, localns: Optional[Mapping[str, Any]] = None) -> None:
        """Raises TypeError for a type that FlatBuffers cannot hold, naming the field."""
        self.label = typename(annotation)
        self.names: dict[str, Any] = dict(runtime.NAMES)
        """The objects that templates name."""
        self.tables: list[Table] = []
        self.structs: dict[str, Struct] = {}
        self.enums: dict[str, tuple[type[enum.Enum], Width]] = {}
        self.unions: dict[str, UnionOf] = {}
        self.recheck = False
        """Whether a class has a say when it is made, so that only reading back tells if a value can be read back."""
        reader = AnnotationReader(self, localns)
        inner, optional = reader.strip_optional(annotation)
        root = reader.node(inner, self.label)
        self.boxed = optional or not isinstance(root, Table) or root.path != "."
        self.root: Table = reader.box(root, optional) if self.boxed else as_table(root)
        _mark(self.tables)

    def misfit(self, value: Any) -> Optional[str]:
        """Why *value* cannot be written; None if it can."""
        given = (value,) if self.boxed else value
        return self.root.misfit(given, self.label, self.names)


def _reachable(start: Iterable[Node]) -> list[Node]:
    """*start*, and what those are made of."""
    left, found = list(start), dict[int, Node]()
    while left:
        node = left.pop()
        if id(node) not in found:
            found[id(node)] = node
            left.extend(node.children())
    return list(found.values())


def _mark(tables: Sequence[Table]) -> None:
    """Tell each of *tables* about its place among the others."""
    for table in tables:
        table.recursive = any(node is table for node in _reachable(table.children()))
    for table in tables:
        table.deep = any(isinstance(node, Table) and node.recursive for node in _reachable([table]))
    vectors = [node for node in _reachable(tables) if isinstance(node, Vector)]
    many = [vector.item for vector in vectors] + [table for table in tables if table.recursive]
    for node in _reachable(many):
        if isinstance(node, Table):
            node.shared = True
