"""Conditions that single fields decide: fields compared with values, joined by ``and``, ``or`` and ``not``.

`translated` makes them of what following a function gave; the loops read no more of a record than they name.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from operator import index
from typing import Any

from ..values.base import is_a

Leaf = Callable[["Compare"], str]


class Condition:
    """A condition on the fields of a value."""

    __slots__ = ()

    @abstractmethod
    def _compares(self) -> Iterator[Compare]:
        """The comparisons in it, from left to right."""

    @abstractmethod
    def _shape(self) -> Any:
        """What is the same for conditions that differ in nothing but the values compared with. Hashable."""

    @abstractmethod
    def _source(self, leaf: Leaf) -> str:
        """The expression in Python, *leaf* giving that of a comparison."""

    def _conjuncts(self) -> Iterator[Condition]:
        """Conditions that all have to hold."""
        yield self


class Compare(Condition):
    """The field *name* compared with a value, which is *constant* or else captured by a function: see `translated`."""

    __slots__ = ("constant", "name", "operator", "source", "value")

    def __init__(self, name: str, operator: str, value: Any, *, constant: bool = True) -> None:
        self.name, self.operator, self.value = name, operator, plain(value)
        self.constant = constant
        self.source: Any = None  # the function, and the number of the captured value, where it is one as it is

    def _compares(self) -> Iterator[Compare]:
        yield self

    def _shape(self) -> Any:
        return self.name, self.operator, self.value is None

    def _source(self, leaf: Leaf) -> str:
        return leaf(self)


class Joined(Condition):
    """Conditions joined by *word*: ``and`` or ``or``.

    It is flat however long: what is joined by the same word becomes part of it. Python's parser takes 200 parentheses
    inside each other, and 1,000 calls.
    """

    __slots__ = ("parts", "word")

    def __init__(self, word: str, *conditions: Condition) -> None:
        self.word = word
        parts: list[Condition] = []
        for one in conditions:
            parts.extend(one.parts if isinstance(one, Joined) and one.word == word else (one,))
        self.parts: tuple[Condition, ...] = tuple(parts)

    def _compares(self) -> Iterator[Compare]:
        for part in self.parts:
            yield from part._compares()

    def _conjuncts(self) -> Iterator[Condition]:
        if self.word == "or":
            yield self
        else:
            for part in self.parts:
                yield from part._conjuncts()

    def _shape(self) -> Any:
        return self.word, *(part._shape() for part in self.parts)

    def _source(self, leaf: Leaf) -> str:
        parts = f" {self.word} ".join([part._source(leaf) for part in self.parts])
        return f"({parts})"


class Negated(Condition):
    """What matches where *inner* does not."""

    __slots__ = ("inner",)

    def __init__(self, inner: Condition) -> None:
        self.inner = inner

    def _compares(self) -> Iterator[Compare]:
        yield from self.inner._compares()

    def _shape(self) -> Any:
        return "not", self.inner._shape()

    def _source(self, leaf: Leaf) -> str:
        return f"(not {self.inner._source(leaf)})"


def plain(value: Any) -> Any:
    """*value*; of the integers of other libraries, such as `numpy.int64`, the int."""
    if isinstance(value, (int, str, float, bytes)):
        return value
    from numbers import Integral  # late: seldom needed, as what follows

    try:
        return index(value) if is_a(value, Integral) else value
    except TypeError:  # numpy.timedelta64 passes for one
        return value
