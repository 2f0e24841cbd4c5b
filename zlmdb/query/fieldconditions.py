"""Conditions that single fields decide: fields compared with values, joined by ``and``, ``or`` and ``not``.

`translated` finds them in what following a function gave; the loops read no more of a record than they name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import index
from typing import Any, Optional

from ..values.base import is_a
from .following import Node
from .following.operations import Not


class FieldCompare:
    """The field *name* compared with a value, which is *constant* or else captured by a function: see `translated`."""

    __slots__ = ("constant", "name", "operator", "source", "value")

    def __init__(self, name: str, operator: str, value: Any, *, constant: bool) -> None:
        self.name, self.operator, self.value = name, operator, plain(value)
        self.constant = constant
        self.source: Any = None  # the function, and the number of the captured value, where it is one as it is


Leaf = Callable[[FieldCompare, int], str]
"""The source of a comparison, and of the value with that number that it compares with."""


class Condition:
    """The condition *node*, all of whose parts that are not joined ones are *compares* on the fields of a value."""

    __slots__ = ("_compares", "_node")

    def __init__(self, node: Node, compares: Mapping[Node, FieldCompare]) -> None:
        self._node, self._compares = node, compares

    @property
    def compares(self) -> Iterable[FieldCompare]:
        """The comparisons in it, each once, from left to right."""
        return self._compares.values()

    @property
    def only(self) -> Optional[FieldCompare]:
        """The comparison that it is, if it is nothing else."""
        return self._compares.get(self._node)

    def source(self, leaf: Leaf, first: int = 0) -> str:
        """The expression in Python, *leaf* giving that of a comparison. These are numbered from *first*."""
        numbers = {node: number for number, node in enumerate(self._compares, first)}

        def spell(node: Node) -> str:
            if node in numbers:
                return leaf(self._compares[node], numbers[node])
            return f"(not {spell(node.inner)})" if isinstance(node, Not) else node.source(spell)

        return spell(self._node)

    def shape(self) -> str:
        """What is the same for conditions that differ in nothing but the values compared with."""
        return self.source(lambda one, number: repr((number, one.name, one.operator, one.value is None)))


def compares_of(conditions: Iterable[Condition]) -> list[FieldCompare]:
    """The comparisons in *conditions*, in their order."""
    return [compare for condition in conditions for compare in condition.compares]


def plain(value: Any) -> Any:
    """*value*; of the integers of other libraries, such as `numpy.int64`, the int."""
    if isinstance(value, (int, str, float, bytes)):
        return value
    from numbers import Integral  # late: seldom needed, as what follows

    try:
        return index(value) if is_a(value, Integral) else value
    except TypeError:  # numpy.timedelta64 passes for one
        return value
