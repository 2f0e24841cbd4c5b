"""The nodes that compute: fields, comparisons, arithmetic, calls of pure functions, and what joins conditions."""

from __future__ import annotations

import operator as operators
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Callable, ClassVar, Optional
from uuid import UUID

from .known import BOOL, SOMETHING, Known
from .nodes import Constant, Given, Node, Spell, Variable


class Attribute(Node):
    """A field of a model, or an attribute of a plain value: ``b.author``, ``b.printed.year``."""

    __slots__ = ("holder", "name", "raises")

    def __init__(self, holder: Node, name: str, raises: bool, known: Known) -> None:
        self.holder, self.name, self.raises = holder, name, raises
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return (self.holder,)

    def evaluate(self, given: Given) -> Any:
        return getattr(self.holder.evaluate(given), self.name)

    def source(self, spell: Spell) -> str:
        return f"{spell(self.holder)}.{self.name}"


class Item(Node):
    """An element by its key, number or slice: ``b.extra["x"]``."""

    __slots__ = ("holder", "key", "raises")

    def __init__(self, holder: Node, key: Node, raises: bool, known: Known) -> None:
        self.holder, self.key, self.raises = holder, key, raises
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return self.holder, self.key

    def evaluate(self, given: Given) -> Any:
        return self.holder.evaluate(given)[self.key.evaluate(given)]

    def source(self, spell: Spell) -> str:
        return f"{spell(self.holder)}[{spell(self.key)}]"


class Slice(Node):
    """What stands between the brackets of ``b.title[:3]``."""

    __slots__ = ("bounds",)

    def __init__(self, bounds: tuple[Optional[Node], ...], known: Known) -> None:
        self.bounds = bounds
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return [bound for bound in self.bounds if bound is not None]

    def evaluate(self, given: Given) -> Any:
        return slice(*[None if bound is None else bound.evaluate(given) for bound in self.bounds])

    def source(self, spell: Spell) -> str:
        start, stop, step = ["" if bound is None else spell(bound) for bound in self.bounds]
        return f"{start}:{stop}" + (f":{step}" if step else "")


def _contained(member: Any, container: Any) -> Any:
    return member in container


class _OfTwo(Node):
    """An operator between two values."""

    __slots__ = ("left", "operator", "raises", "right")

    functions: ClassVar[dict[str, Any]]

    def __init__(self, operator: str, left: Node, right: Node, raises: bool, known: Known) -> None:
        self.operator, self.left, self.right, self.raises = operator, left, right, raises
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return self.left, self.right

    def evaluate(self, given: Given) -> Any:
        return self.functions[self.operator](self.left.evaluate(given), self.right.evaluate(given))

    def source(self, spell: Spell) -> str:
        return f"({spell(self.left)} {self.operator} {spell(self.right)})"


CONTRARY = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""What is true of two values of which one comes first, or both are equal, where a comparison is not."""

_ORDERED = (int, str, bytes, date, datetime, timedelta, UUID)
"""Types of which any two values are so, or cannot be compared at all."""


class Compare(_OfTwo):
    """A comparison: ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, or ``in``."""

    __slots__ = ()

    functions: ClassVar[dict[str, Any]] = {
        "==": operators.eq,
        "!=": operators.ne,
        "<": operators.lt,
        "<=": operators.le,
        ">": operators.gt,
        ">=": operators.ge,
        "in": _contained,
    }

    @property
    def denies(self) -> bool:
        """Whether this is ``x != y`` and surely the contrary of ``x == y``: objects of a class may say anything."""
        if self.operator != "!=":
            return False
        left, right = self.left.known, self.right.known
        return (left.plain or right.plain) and left is not SOMETHING and right is not SOMETHING

    @property
    def contrary(self) -> str:
        """The operator that says surely the contrary; empty if there is none: what is not a number has no order."""
        left, right = self.left.known.cls, self.right.known.cls
        return CONTRARY.get(self.operator, "") if left is right and left in _ORDERED else ""


class _Test(Node):
    """What asks one thing of *inner*."""

    __slots__ = ("inner",)

    def __init__(self, inner: Node, known: Known = BOOL) -> None:
        self.inner = inner
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return (self.inner,)


class IsNone(_Test):
    """Whether something is None."""

    __slots__ = ()

    def evaluate(self, given: Given) -> bool:
        return self.inner.evaluate(given) is None

    def source(self, spell: Spell) -> str:
        return f"({spell(self.inner)} is None)"


ARITHMETIC: Mapping[str, str] = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "<<": "lshift",
    ">>": "rshift", "&": "and", "|": "or", "^": "xor", "@": "matmul",
}  # fmt: skip
"""Operators, with the names of their methods."""


class Binary(_OfTwo):
    """Arithmetic of two values."""

    __slots__ = ()

    functions: ClassVar[dict[str, Any]] = {sign: getattr(operators, f"__{name}__") for sign, name in ARITHMETIC.items()}


class Unary(Node):
    """A sign before a value: ``-b.age``."""

    __slots__ = ("inner", "raises", "sign")

    functions: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "-": operators.neg,
        "+": operators.pos,
        "~": operators.inv,
    }

    def __init__(self, sign: str, inner: Node, raises: bool, known: Known) -> None:
        self.sign, self.inner, self.raises = sign, inner, raises
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return (self.inner,)

    def evaluate(self, given: Given) -> Any:
        return self.functions[self.sign](self.inner.evaluate(given))

    def source(self, spell: Spell) -> str:
        return f"({self.sign}{spell(self.inner)})"


class Apply(Node):
    """A call of a pure function: ``len(b.tags)``. *names* are those of its last arguments, given by keyword."""

    __slots__ = ("arguments", "function", "names", "raises")

    def __init__(
        self, function: Constant, arguments: tuple[Node, ...], names: tuple[str, ...], raises: bool, known: Known
    ) -> None:
        self.function, self.arguments, self.names, self.raises = function, arguments, names, raises
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return self.arguments

    def evaluate(self, given: Given) -> Any:
        values = [argument.evaluate(given) for argument in self.arguments]
        return called(self.function.value, values, self.names)

    def source(self, spell: Spell) -> str:
        return f"{spell(self.function)}({listed(self.arguments, self.names, spell)})"


class Method(Node):
    """A call of a pure method of a plain value: ``b.title.lower()``."""

    __slots__ = ("arguments", "holder", "name", "names", "raises")

    def __init__(
        self, holder: Node, name: str, arguments: tuple[Node, ...], names: tuple[str, ...], raises: bool, known: Known
    ) -> None:
        self.holder, self.name, self.arguments, self.names, self.raises = holder, name, arguments, names, raises
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return self.holder, *self.arguments

    def evaluate(self, given: Given) -> Any:
        function = getattr(self.holder.evaluate(given), self.name)
        return called(function, [argument.evaluate(given) for argument in self.arguments], self.names)

    def source(self, spell: Spell) -> str:
        return f"{spell(self.holder)}.{self.name}({listed(self.arguments, self.names, spell)})"


class Display(Node):
    """A tuple, list or dict that the function writes out; of a dict the parts are keys and values in turns."""

    __slots__ = ("elements", "kind")

    def __init__(self, kind: type[Any], elements: tuple[Node, ...], known: Known) -> None:
        self.kind, self.elements = kind, elements
        super().__init__(known, settled=None if kind is tuple else False)  # lists and dicts are new each time

    def parts(self) -> Sequence[Node]:
        return self.elements

    def evaluate(self, given: Given) -> Any:
        values = [element.evaluate(given) for element in self.elements]
        return dict(zip(values[::2], values[1::2])) if self.kind is dict else self.kind(values)

    def source(self, spell: Spell) -> str:
        texts = [spell(element) for element in self.elements]
        if self.kind is dict:
            return "{" + ", ".join([f"{key}: {value}" for key, value in zip(texts[::2], texts[1::2])]) + "}"
        if self.kind is list:
            return f"[{', '.join(texts)}]"
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


class Each(Node):
    """A generator expression over something of the record: ``t.name for t in b.tags if t.shown``."""

    __slots__ = ("condition", "iterable", "value", "variable")

    def __init__(self, iterable: Node, variable: Variable, condition: Node, value: Node, known: Known) -> None:
        self.iterable, self.variable, self.condition, self.value = iterable, variable, condition, value
        super().__init__(known, settled=False)

    def parts(self) -> Sequence[Node]:
        return self.iterable, self.condition, self.value

    def certain(self) -> Sequence[Node]:
        return (self.iterable,)

    def evaluate(self, given: Given) -> Iterator[Any]:
        return self._rows(iter(self.iterable.evaluate(given)), given)

    def _rows(self, elements: Iterator[Any], given: Given) -> Iterator[Any]:
        for element in elements:
            given.variables[self.variable.number] = element
            if self.condition.evaluate(given):
                yield self.value.evaluate(given)

    def source(self, spell: Spell) -> str:
        always = isinstance(self.condition, Constant) and self.condition.value is True
        test = "" if always else f" if {spell(self.condition)}"
        return f"({spell(self.value)} for {spell(self.variable)} in {spell(self.iterable)}{test})"


class Not(_Test):
    """What is true where *inner* is not."""

    __slots__ = ()

    def evaluate(self, given: Given) -> bool:
        return not self.inner.evaluate(given)

    def source(self, spell: Spell) -> str:
        inner = self.inner
        if isinstance(inner, IsNone):
            return f"({spell(inner.inner)} is not None)"
        if isinstance(inner, Compare) and inner.operator in ("==", "in"):
            word = "!=" if inner.operator == "==" else "not in"
            return f"({spell(inner.left)} {word} {spell(inner.right)})"
        return f"(not {spell(inner)})"


class Joined(Node):
    """Conditions joined by *word*, ``and`` or ``or``, asked from left to right as in Python. Flat however long."""

    __slots__ = ("conditions", "word")

    def __init__(self, word: str, conditions: tuple[Node, ...], known: Known) -> None:
        self.word, self.conditions = word, conditions
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return self.conditions

    def certain(self) -> Sequence[Node]:
        return self.conditions[:1]

    def evaluate(self, given: Given) -> Any:
        stop, value = self.word == "or", None
        for condition in self.conditions:
            value = condition.evaluate(given)
            if bool(value) is stop:
                break
        return value

    def source(self, spell: Spell) -> str:
        return "(" + f" {self.word} ".join([spell(one) for one in self.conditions]) + ")"


class Conditional(Node):
    """A conditional expression: *yes* where *condition* is true, else *no*."""

    __slots__ = ("condition", "no", "yes")

    def __init__(self, condition: Node, yes: Node, no: Node, known: Known) -> None:
        self.condition, self.yes, self.no = condition, yes, no
        super().__init__(known)

    def parts(self) -> Sequence[Node]:
        return self.condition, self.yes, self.no

    def certain(self) -> Sequence[Node]:
        return (self.condition,)

    def evaluate(self, given: Given) -> Any:
        return (self.yes if self.condition.evaluate(given) else self.no).evaluate(given)

    def source(self, spell: Spell) -> str:
        return f"({spell(self.yes)} if {spell(self.condition)} else {spell(self.no)})"


def called(function: Callable[..., Any], values: Sequence[Any], names: tuple[str, ...]) -> Any:
    """*function* called with *values*, of which the last have *names*."""
    if not names:
        return function(*values)
    at = len(values) - len(names)
    return function(*values[:at], **dict(zip(names, values[at:])))


def listed(arguments: Sequence[Node], names: tuple[str, ...], spell: Spell) -> str:
    """*arguments* as they stand between parentheses, the last ones with their *names*."""
    texts = [spell(argument) for argument in arguments]
    at = len(texts) - len(names)
    if len(texts) == 1 and not names and isinstance(arguments[0], Each):
        return texts[0][1:-1]
    return ", ".join([*texts[:at], *[f"{name}={text}" for name, text in zip(names, texts[at:])]])


def joined_known(left: Known, right: Known) -> Known:
    """What is known of a value that is one of two."""
    return left if left is right else BOOL if left.cls is right.cls is bool else SOMETHING
