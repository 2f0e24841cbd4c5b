"""Expressions of queries as Python source, for the generated loops.

The source says what the expression says, so it means what Python means by it. Captured values become arguments of the
loop, so that one loop serves all functions of the same code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from types import MappingProxyType
from typing import Any, Optional
from uuid import UUID

from ..codegen import parses
from ..values.paths import Path
from .following import Followed, Given, Node, walk
from .following.known import kind_of
from .following.linked import Link
from .following.nested import Nested
from .following.nodes import Argument, Called, Constant, Parameter, Variable, spelled
from .following.operations import Attribute, Not
from .nestedrows import Keys, is_of_key, outermost, reading
from .recordpaths import path_of
from .remembered import Looked, links

_NONE: Mapping[str, str] = MappingProxyType({})

_SHORT = 40
"""Characters up to which a constant is written into the source."""


class Asked:
    """A part of what a function says: *node*, asked of a record with what the function captured."""

    __slots__ = ("_nested", "followed", "keyed", "links", "node", "numbers")

    def __init__(self, followed: Followed, node: Node) -> None:
        self.followed, self.node = followed, node
        kept = followed.reading.kept.get(node)
        if kept is None:
            inside = list(walk(node))
            asks = followed.keyed and any([isinstance(one, (Argument, Called)) for one in inside])
            kept = (
                sorted({one.number for one in inside if isinstance(one, Parameter)}),
                asks,
                links(node),
                dict(outermost(node)),
            )
            followed.reading.kept[node] = kept
        self.numbers: list[int] = kept[0]
        """The captured values that it needs."""
        self.keyed: bool = kept[1]
        """Whether it asks for the key of a record."""
        self.links: list[Looked] = kept[2]
        """The tables in which it looks up records; see `remembered`."""
        self._nested: dict[Node, Nested] = kept[3]

    @property
    def by_texts(self) -> list[Node]:
        """The tables in which it can look up UUIDs by their texts, if it is short enough for the source of a loop."""
        found = [one.holder for one in self.links if one.keyed is UUID]
        return found if found and len(list(walk(self.node))) <= _SURELY else []

    @property
    def nested(self) -> list[Nested]:
        """What it asks of records that refer; see `nestedrows`."""
        return [*self._nested.values()]

    def shape(self) -> Any:
        """What is the same for two that differ in nothing but captured values. Hashable."""
        return self.node, self.followed.keyed

    def arguments(self) -> list[Any]:
        """What the loop is given for it."""
        return arguments(self.followed, self.numbers, self.links, self.nested)

    def names(self, number: int) -> list[str]:
        """What the loop calls the `arguments` of the asked one with that *number*."""
        found = [f"asked{number}", *[f"asked{number}_{one}" for one in self.numbers]]
        found += [f"asked{number}_link{one}" for one in range(len(self.links))]
        return found + [f"asked{number}_rows{one}" for one in range(len(self._nested))]

    def source(
        self, number: int, names: dict[str, Any], alone: Optional[Mapping[Path, str]] = None,
        stored: Mapping[str, str] = _NONE, vouched: bool = False,
    ) -> str:  # fmt: skip
        """The expression, of ``value`` and ``key``. It adds to *names* what it needs.

        *alone*: there is no ``value``, but expressions of all that is taken of it, by path. *stored*: expressions, by
        field, of UUIDs as they are stored, by which linked records are found, too. *vouched*: fields have the types
        that the model class says.
        """
        value = "value" if alone is None else "load(data)"
        records = ("load_key(key)", value) if self.followed.keyed else (value,)
        writing = _Writing(f"asked{number}", records, names, self.links, self._nested, alone, stored, vouched)
        source = writing.spell(self.node)
        if not parses(f"{'(' * _ROOM}{source}{')' * _ROOM}"):
            name = f"interpreted{len(names)}"
            names[name] = interpreted(self.node, self.numbers)
            return f"{name}([{', '.join(self.names(number))}], [{', '.join(records)}])"
        return source

    def __repr__(self) -> str:
        return spelled(self.node)


def arguments(
    followed: Followed, numbers: Sequence[int], tables: Sequence[Looked], nested: Sequence[Nested],
    keys: Optional[Keys] = None, *, still: bool = False,
) -> list[Any]:  # fmt: skip
    """What a loop is given for a part of *followed*: the function, captured values, and what looks up in *tables*.

    And what reads what is *nested*, of records whose keys are of the form *keys*. *still*: nothing is written
    meanwhile.
    """
    parameters = followed.parameters
    found = [followed.function, *[parameters[number] for number in numbers]]
    if tables:
        found += [one.remembering(parameters, still=still) for one in tables]
    if nested:
        keyed = followed.keyed
        found += [
            reading(one, parameters, of_key=is_of_key(one, keyed=keyed), keys=keys, still=still) for one in nested
        ]
    return found


def captured_source(node: Node, number: int, names: dict[str, Any]) -> str:
    """The expression of *node*, of values that the asked one with that *number* has captured; it adds to *names*."""
    return _Writing(f"asked{number}", (), names, (), {}).spell(node)


_ROOM = 8
"""Parentheses that the loop may put around an expression."""

_SURELY = 40
"""The parts of an expression up to which Python surely parses its source."""


def interpreted(node: Node, numbers: Sequence[int]) -> Callable[[list[Any], list[Any]], Any]:
    """The function that evaluates *node*, of what `Asked.arguments` gives and the arguments of the function."""
    count = max(numbers, default=-1) + 1

    def evaluate(arguments: list[Any], record: list[Any]) -> Any:
        parameters: list[Any] = [None] * count
        for number, value in zip(numbers, arguments[1:]):
            parameters[number] = value
        return node.evaluate(Given(record, parameters, arguments[0]))

    return evaluate


def taken_of(holder: str, name: str) -> str:
    """The expression of the attribute *name* of the expression *holder*."""
    return f"{holder}.{name}" if name.isidentifier() and not iskeyword(name) else f"getattr({holder}, {name!r})"


class _Writing:
    """Writes an expression as source."""

    def __init__(
        self, function: str, records: tuple[str, ...], names: dict[str, Any], tables: Sequence[Looked],
        nested: Mapping[Node, Nested], alone: Optional[Mapping[Path, str]] = None, stored: Mapping[str, str] = _NONE,
        vouched: bool = False,
    ) -> None:  # fmt: skip
        self.function, self.records, self.names, self.tables = function, records, names, tables
        self.nested, self.alone, self.stored, self.vouched = nested, alone, stored, vouched

    def spell(self, node: Node) -> str:
        """The source of *node*."""
        if isinstance(node, Argument):
            return self.records[node.position]
        if isinstance(node, Parameter):
            return f"{self.function}_{node.number}"
        if isinstance(node, Constant):
            return self.constant(node.value)
        if isinstance(node, Called):
            return f"{self.function}({', '.join(self.records)})"
        if isinstance(node, Variable):
            return f"each{node.number}"
        if isinstance(node, Link):
            return self.linked(node)
        nested = self.nested.get(node)
        if nested is not None:
            given: Any = nested.rows
            of_key = is_of_key(nested, keyed=len(self.records) > 1)
            texts = ["key, load_key" if of_key else self.spell(given.key), *[self.spell(one) for one in nested.outer]]
            return f"{self.function}_rows{list(self.nested).index(node)}({', '.join(texts)})"
        if isinstance(node, Not):
            return f"(not {self.spell(node.inner)})"
        path = None if self.alone is None else path_of(node, len(self.records) - 1)
        if self.alone is not None and path is not None and path in self.alone:
            return self.alone[path]
        if isinstance(node, Attribute):
            return taken_of(self.spell(node.holder), node.name)
        return node.source(self.spell)

    def linked(self, node: Link) -> str:
        """The source of a linked record, which is looked up once."""
        place = next(place for place, one in enumerate(self.tables) if one.holder == node.holder)
        link, key = f"{self.function}_link{place}", self.spell(node.key)
        kind = self.tables[place].keyed
        if kind is None:
            return f"{link}({key})"
        path = path_of(node.key, len(self.records) - 1)
        if kind is UUID and path is not None and len(path) == 1 and path[0] in self.stored:
            return f"{link}[{self.stored[path[0]]}]"
        spelled = f"{key}.int" if kind is UUID else key
        if self.vouched:
            return f"{link}[{spelled}]"
        self.names[kind.__name__] = kind
        return f"({link}[{spelled}] if type({key}) is {kind.__name__} else {link}.look({key}))"

    def constant(self, value: Any) -> str:
        """A constant, spelled out where it is short: Python folds and caches such ones."""
        kind = kind_of(value)
        if value is None or kind is bool:
            return repr(value)
        plain = kind in (int, str, bytes) or (kind is float and math.isfinite(value))
        if plain and (text := repr(value)) and len(text) <= _SHORT:
            return f"({text})" if kind in (int, float) else text
        name = f"constant{len(self.names)}"
        self.names[name] = value
        return name
