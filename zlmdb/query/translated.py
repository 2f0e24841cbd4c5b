"""From what following a function gave to what the loops ask: single fields where they decide, else the whole record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Optional, Union

from ..handlers import let_through
from ..values.paths import Path
from .expressionsource import Asked
from .fieldconditions import Condition, FieldCompare
from .fieldtypes import compares
from .following import Followed, Node
from .following import operations as ops
from .following.nodes import Argument, Constant, Parameter
from .projection import Projection
from .terms import FLIPPED, NOTHING, conjuncts, value_of

if TYPE_CHECKING:
    from .programs import Programs

Give = Union[Projection, Followed]
"""What is given of each record: something known, or what a function gives."""


def translated(conditions: Iterable[Followed], programs: Programs) -> tuple[list[Condition], list[Asked]]:
    """What is asked of single fields, and what of whole records, in this order."""
    simple: list[Condition] = []
    asked: list[Asked] = []
    for followed in conditions:
        for node in conjuncts(followed.node):
            found = None if programs.columns is None else _Translation(followed, programs).condition(node)
            if found is None:
                asked.append(Asked(followed, node))
            else:
                simple.append(found)
    return simple, asked


def want_of(gives: tuple[Give, ...], programs: Programs, *, one: bool) -> Projection:
    """What a loop is to give for *gives*."""
    parts: list[Any] = []
    for give in gives:
        found = give if isinstance(give, Projection) else _given(give, programs)
        parts.append(found.parts[0] if found.one else found)
    return parts[0] if one and isinstance(parts[0], Projection) else Projection(tuple(parts), one)


def with_sort_key(order: Followed, want: Projection, programs: Programs) -> Projection:
    """*want* behind what *order* gives of a record."""
    sort_key = want_of((order,), programs, one=True)
    return Projection((sort_key.parts[0] if sort_key.one else sort_key, want), one=False)


def _given(followed: Followed, programs: Programs) -> Projection:
    node = followed.node
    if programs.columns is not None:
        several = isinstance(node, ops.Display) and node.kind is tuple
        paths = [_path(one, followed, programs) for one in (node.parts() if several else (node,))]
        if paths and None not in paths:
            return Projection(tuple(paths), one=not several)
    return Projection((Asked(followed, node),))


def _path(node: Node, followed: Followed, programs: Programs) -> Optional[Path]:
    """The path of the field that *node* is, if it can be read alone."""
    if not isinstance(node, ops.Attribute) or not isinstance(node.holder, Argument):
        return None
    if (followed.keyed and node.holder.position == 0) or node.name not in programs.columns.fields:
        return None
    return (node.name,)


class _Translation:
    """Makes conditions on single fields of a part of what a function says."""

    def __init__(self, followed: Followed, programs: Programs) -> None:
        self.followed, self.programs = followed, programs

    def condition(self, node: Node) -> Optional[Condition]:
        """*node* as a condition on fields; None if it is more than that."""
        compares: dict[Node, FieldCompare] = {}
        return Condition(node, compares) if self._find(node, compares) else None

    def _find(self, node: Node, compares: dict[Node, FieldCompare]) -> bool:
        """Put the comparisons of *node* into *compares*; False if it is more than these."""
        if isinstance(node, ops.Not):
            return self._find(node.inner, compares)
        if isinstance(node, ops.Joined):
            return all([self._find(part, compares) for part in node.conditions])
        compare = self._one(node)
        if compare is not None:
            compares[node] = compare
        return compare is not None

    def _one(self, node: Node) -> Optional[FieldCompare]:
        """*node* as one comparison."""
        if isinstance(node, ops.IsNone):
            return self._compare(node.inner, "==", None)
        if isinstance(node, ops.Compare):
            return self._compared(node)
        if node.known.cls is bool and not node.known.optional:
            return self._compare(node, "==", True)
        return None

    def _compared(self, node: ops.Compare) -> Optional[FieldCompare]:
        if node.right.settled:
            return self._with(node.left, node.operator, node.right)
        if node.left.settled and node.operator in FLIPPED:
            return self._with(node.right, FLIPPED[node.operator], node.left)
        return None

    def _with(self, field: Node, operator: str, other: Node) -> Optional[FieldCompare]:
        if not isinstance(field, ops.Attribute):
            return None
        value = value_of(other, self.followed.parameters)
        if value is None or value is NOTHING:
            return None
        if operator == "in":
            if type(value) not in (tuple, frozenset):
                return None
            try:
                value = frozenset(value)
            except TypeError as error:
                let_through(error)
                return None
        found = self._compare(field, operator, value, constant=isinstance(other, Constant))
        if found is not None and isinstance(other, Parameter) and operator != "in":
            found.source = self.followed, other.number
        return found

    def _compare(self, field: Node, operator: str, value: Any, *, constant: bool = True) -> Optional[FieldCompare]:
        path = _path(field, self.followed, self.programs)
        if path is None:
            return None
        compare = FieldCompare(path[0], operator, value, constant=constant)
        try:
            if value is not None and not compares(self.programs.type_of(compare.name), operator, compare.value):
                return None
            self.programs.constants([compare])
        except (TypeError, ValueError, ArithmeticError) as error:  # Python compares, or raises, for each record
            let_through(error)
            return None
        return compare
