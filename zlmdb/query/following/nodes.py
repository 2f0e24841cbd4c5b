"""What following a function gives: an expression. Here its leaves, and what all of its nodes have in common.

A node is immutable and pure: it imports no tables and knows nothing of how it was found. It can be evaluated, and
written as Python. Equal nodes of one expression are one object (see `Nodes`), so they are compared with ``is``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Optional, TypeVar, cast
from uuid import UUID

from ...values.base import is_a, show
from .known import UNKNOWN, Known, kind_of

N = TypeVar("N", bound="Node")
Spell = Callable[["Node"], str]


DEEPEST = 100
"""Levels of one expression, each of which takes some calls to evaluate and to write. A deeper one is not followed."""

LARGEST = 10_000
"""Nodes of one expression written out, where a part that is used twice counts twice. A larger one is not followed."""


class TooLarge(BaseException):
    """An expression has become deeper or larger than is worth following. No Exception, as `trace.Blocked` is none."""


class Given:
    """What an expression is evaluated with: a record, the captured values, and the function that it stands for."""

    __slots__ = ("arguments", "function", "parameters", "variables")

    def __init__(
        self,
        arguments: Sequence[Any] = (),
        parameters: Sequence[Any] = (),
        function: Optional[Callable[..., Any]] = None,
    ) -> None:
        self.arguments, self.parameters, self.function = arguments, parameters, function
        self.variables: dict[int, Any] = {}


class Node:
    """A part of an expression."""

    __slots__ = ("depth", "known", "risky", "settled", "size")

    raises: bool = False
    """Whether evaluating it may raise, its parts aside."""

    known: Known
    """What is known of its value."""

    settled: bool
    """Whether it depends on captured values only that cannot change while the query exists."""

    risky: bool
    """Whether evaluating it may raise."""

    depth: int
    """Levels of the expression that it is."""

    size: int
    """Nodes of the expression that it is, written out."""

    def __init__(self, known: Known, *, settled: Optional[bool] = None) -> None:
        parts = self.parts()
        self.depth = 1 + max([part.depth for part in parts], default=0)
        self.size = 1 + sum([part.size for part in parts])
        if self.depth > DEEPEST or self.size > LARGEST:
            raise TooLarge
        self.known = known
        self.settled = all([part.settled for part in parts]) if settled is None else settled
        self.risky = self.raises or any([part.risky for part in parts])

    def parts(self) -> Sequence[Node]:
        """The nodes it is made of, in the order in which they are evaluated."""
        return ()

    def certain(self) -> Sequence[Node]:
        """Those of its parts that are evaluated whenever it is."""
        return self.parts()

    @abstractmethod
    def evaluate(self, given: Given) -> Any:
        """Its value for one record. Raises what Python would raise."""

    @abstractmethod
    def source(self, spell: Spell) -> str:
        """It as a Python expression that can stand within another one; *spell* writes its parts."""

    def __repr__(self) -> str:
        return spelled(self)


class Argument(Node):
    """What the function is given: the value of a record, or its key."""

    __slots__ = ("name", "position")

    def __init__(self, position: int, name: str, known: Known) -> None:
        self.position, self.name = position, name
        super().__init__(known, settled=False)

    def evaluate(self, given: Given) -> Any:
        return given.arguments[self.position]

    def source(self, spell: Spell) -> str:
        return self.name


class Variable(Node):
    """What runs through the elements of an `Each`."""

    __slots__ = ("number",)

    def __init__(self, number: int, known: Known) -> None:
        self.number = number
        super().__init__(known, settled=False)

    def evaluate(self, given: Given) -> Any:
        return given.variables[self.number]

    def source(self, spell: Spell) -> str:
        return f"x{self.number}"


class Constant(Node):
    """A value that the code of the function spells out, or that is the same whenever the function is used."""

    __slots__ = ("value",)

    def __init__(self, value: Any, known: Known) -> None:
        self.value = value
        super().__init__(known, settled=True)

    def evaluate(self, given: Given) -> Any:
        return self.value

    def source(self, spell: Spell) -> str:
        return shown(self.value)


class Parameter(Node):
    """A captured value: each use of the function has its own. *name* is where it was captured, for people."""

    __slots__ = ("name", "number")

    def __init__(self, number: int, name: str, known: Known, settled: bool) -> None:
        self.number, self.name = number, name
        super().__init__(known, settled=settled)

    def evaluate(self, given: Given) -> Any:
        return given.parameters[self.number]

    def source(self, spell: Spell) -> str:
        return self.name


class Called(Node):
    """The function itself, called for the record: what cannot be followed. *reasons* tell why."""

    __slots__ = ("reasons",)

    raises = True

    def __init__(self, reasons: tuple[str, ...]) -> None:
        self.reasons = reasons
        super().__init__(UNKNOWN, settled=False)

    def evaluate(self, given: Given) -> Any:
        return cast("Callable[..., Any]", given.function)(*given.arguments)

    def source(self, spell: Spell) -> str:
        return "<called>"


class Nodes:
    """The nodes of one expression, each made once: equal ones are the same object."""

    def __init__(self) -> None:
        self._made: dict[Any, Any] = {}
        self.true = self.constant(True)
        self.false = self.constant(False)

    def make(self, kind: type[N], *parts: Any) -> N:
        """The node ``kind(*parts)``. All parts but the last, what is known of it, say which one it is."""
        key = (kind, *parts[:-1])
        found: Optional[N] = self._made.get(key)
        if found is None:  # as `once`, without the calls: most are made here
            found = self._made[key] = kind(*parts)
        return found

    def constant(self, value: Any, known: Optional[Known] = None) -> Constant:
        """The node of the constant *value*."""
        return self.once(identity(value), lambda: Constant(value, known or Known.of_value(value)))

    def once(self, key: Any, make: Callable[[], N]) -> N:
        """The node that *make* makes, if there is none for *key* yet."""
        found: Optional[N] = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found


_SHOWN = 8
"""Elements up to which a constant tuple is written out."""

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType)
_BY_VALUE = {int, str, bytes, bool}
_BY_TEXT = {float, complex, date, datetime, time, timedelta, timezone, Decimal, Fraction, UUID, range}
"""What equals each other and still is not the same, such as 0.0 and -0.0, differs in its repr."""


def identity(value: Any) -> Any:
    """What is equal for constants that are the same in all that Python could tell: 1, 1.0 and True are three."""
    kind = kind_of(value)
    if kind in _BY_VALUE:
        return kind, value
    if kind in _BY_TEXT:
        return kind, repr(value)
    if kind is tuple:
        return tuple, tuple([identity(one) for one in value])
    if kind is frozenset:
        return frozenset, frozenset([identity(one) for one in value])
    return kind, id(value)


def shown(value: Any) -> str:
    """A constant as one writes it, shortened where it is long."""
    if is_a(value, (set, frozenset)) and value:
        members = cast("frozenset[Any]", value)
        return "{" + ", ".join(sorted(map(shown, members))) + "}"
    kind: Any = kind_of(value)
    if kind is tuple and len(value) <= _SHOWN:
        texts = [shown(one) for one in value]
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
    if issubclass(kind, type):
        return str(value.__qualname__)
    if isinstance(value, Enum):
        return f"{kind.__qualname__}.{value.name}"
    if kind in _FUNCTIONS:
        return str(value.__name__)
    return show(value)


def spelled(node: Node) -> str:
    """*node* as a Python expression, for people: constants and captured values by their names."""
    return node.source(spelled)


def walk(node: Node) -> Iterator[Node]:
    """*node* and all that it is made of."""
    yield node
    for part in node.parts():
        yield from walk(part)


def replaced(node: Node, known: dict[Node, Node]) -> Node:
    """*node* with the others in place of those that are *known*."""
    found = known.get(node)
    if found is None:
        found = node
        if any([one in known for one in walk(node)]):
            found = copy(node)
            for cls in type(node).__mro__:
                for name in cast("Sequence[str]", getattr(cls, "__slots__", ())):
                    setattr(found, name, _in_place(getattr(node, name), known))
        known[node] = found
    return found


def _in_place(value: Any, known: dict[Node, Node]) -> Any:
    if isinstance(value, Node):
        return replaced(value, known)
    if kind_of(value) is tuple:
        return tuple([_in_place(one, known) for one in value])
    return value


def calls(node: Node) -> tuple[str, ...]:
    """Why parts of *node* call the function, each reason once; empty if none does."""
    found: dict[str, None] = {}
    for part in walk(node):
        if isinstance(part, Called):
            found.update(dict.fromkeys(part.reasons))
    return tuple(found)
