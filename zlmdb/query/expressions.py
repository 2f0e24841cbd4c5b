"""Conditions on the fields of a value, written as Python: ``(F.kind == 3) & ~(F.city == "Bonn")``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from operator import index
from typing import Any, ClassVar, NoReturn

from ..values.base import is_a

Leaf = Callable[["Compare"], str]


class Combined:
    """What conditions and fields share: ``&``, ``|``, ``~``, and that they are neither true nor false themselves."""

    __slots__ = ()

    @abstractmethod
    def _as_condition(self) -> Condition:
        """The condition that this is where one is needed: of a field, that it is True."""

    def __and__(self, other: Combined) -> Condition:
        return Joined("and", self._as_condition(), condition_of(other))

    def __or__(self, other: Combined) -> Condition:
        return Joined("or", self._as_condition(), condition_of(other))

    def __invert__(self) -> Condition:
        return Negated(self._as_condition())

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} is neither true nor false, it asks for records: combine conditions by & | ~ with each in "
            f"parentheses, where Python's and, or, not and chains such as 1 < F.x < 9 want a truth value; for a set of "
            f"values use F.x.in_({{1, 2}})"
        )


class Condition(Combined):
    """A condition on the fields of a value. Made by comparing fields of `F`; combined by ``&``, ``|`` and ``~``."""

    __slots__ = ()

    def _as_condition(self) -> Condition:
        return self

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
    """A field compared with a value."""

    __slots__ = ("operator", "path", "value")

    def __init__(self, path: tuple[str, ...], operator: str, value: Any) -> None:
        if isinstance(value, Combined):
            raise TypeError(
                f"{spelled(path)} {operator} {value!r}: compare a field with a value, not with another field"
            )
        self.path, self.operator, self.value = path, operator, plain(value)

    def _compares(self) -> Iterator[Compare]:
        yield self

    def _shape(self) -> Any:
        return self.path, self.operator, self.value is None

    def _source(self, leaf: Leaf) -> str:
        return leaf(self)

    def __repr__(self) -> str:
        if self.operator == "in":
            return f"{spelled(self.path)}.in_({self.value!r})"
        return f"({spelled(self.path)} {self.operator} {self.value!r})"


class Joined(Condition):
    """Conditions joined by *word*: ``and`` or ``or``.

    It is flat however long: what is joined by the same word becomes part of it. Python's parser takes 200 parentheses
    inside each other, and 1,000 calls.
    """

    __slots__ = ("parts", "word")

    signs: ClassVar[dict[str, str]] = {"and": " & ", "or": " | "}

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

    def __repr__(self) -> str:
        return f"({self.signs[self.word].join(map(repr, self.parts))})"


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

    def __repr__(self) -> str:
        return f"~{self.inner!r}"


class Field(Combined):
    """A field of the values of a table, for conditions. `F` is the value itself, ``F.name`` a field of it.

    ``F.address.city`` is a field of a field, of dicts an item. A name that Python or this class has other plans for is
    written ``F["in_"]``. Comparing gives a `Condition`: ``==``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, `in_`, `is_none`.

    None equals None only (``F.x == None`` is ``F.x.is_none()``), and an ordered comparison of None never matches, so
    ``~(F.age > 30)`` finds also records whose age is None. A field of None, and an item that a dict lacks, are None,
    too. Texts compare by code points, as in Python. A field of type bool may stand alone: ``F.active``.
    """

    __slots__ = ("_path",)

    __iter__ = None  # else Python would try F[0], F[1], ... for ever

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        self._path = path

    def _as_condition(self) -> Condition:
        return Compare(self._path, "==", True)

    def __getattr__(self, name: str) -> Field:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # what `copy` and the like ask for
        return Field((*self._path, name))

    def __getitem__(self, name: str) -> Field:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # not everybody uses a checker
            raise TypeError(f"{self!r}[{name!r}]: a field is named by a str")
        return Field((*self._path, name))

    # mypy and pyright: object's own take and give less; that these give conditions is what they are for.
    def __eq__(self, other: object) -> Condition:  # type: ignore[override]  # pyright: ignore
        return Compare(self._path, "==", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]  # pyright: ignore
        return Compare(self._path, "!=", other)

    __hash__ = None  # type: ignore[assignment]  # pyright: ignore

    def __lt__(self, other: Any) -> Condition:
        return Compare(self._path, "<", other)

    def __le__(self, other: Any) -> Condition:
        return Compare(self._path, "<=", other)

    def __gt__(self, other: Any) -> Condition:
        return Compare(self._path, ">", other)

    def __ge__(self, other: Any) -> Condition:
        return Compare(self._path, ">=", other)

    def __contains__(self, value: object) -> NoReturn:
        raise TypeError(f"{value!r} in {self!r}: there is no condition on what a field contains; filter the values")

    def in_(self, values: Iterable[Any], /) -> Condition:
        """Whether the field equals one of *values*. O(1) for values that can be in a set."""
        if isinstance(values, (str, bytes)):
            raise TypeError(f"{self!r}.in_({values!r}): give the values in a set or list; this would be its characters")
        kept = [plain(one) for one in values]
        try:
            return Compare(self._path, "in", frozenset(kept))
        except TypeError:
            return Compare(self._path, "in", tuple(kept))

    def is_none(self) -> Condition:
        """Whether the field is None; the same as ``== None``."""
        return Compare(self._path, "==", None)

    def __repr__(self) -> str:
        return spelled(self._path)


F = Field()
"""The value of a record, in conditions: ``F.age > 30`` compares its field *age*, ``F > 30`` the value itself."""


def plain(value: Any) -> Any:
    """*value*; of the integers of other libraries, such as `numpy.int64`, the int."""
    if isinstance(value, (int, str, float, bytes)):
        return value
    from numbers import Integral  # late: seldom needed, as what follows

    try:
        return index(value) if is_a(value, Integral) else value
    except TypeError:  # numpy.timedelta64 passes for one
        return value


def condition_of(given: object) -> Condition:
    """*given* as a condition. Raises `TypeError` for what is none."""
    if not isinstance(given, Combined):
        raise TypeError(f"expected a condition such as F.age > 30, got {given!r}: put each comparison in parentheses")
    return given._as_condition()


def spelled(path: tuple[str, ...]) -> str:
    """*path* as one writes it."""
    return "F" + "".join(f".{name}" if name.isidentifier() else f"[{name!r}]" for name in path)
