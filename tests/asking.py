"""Conditions built from parts, for tests that draw them at random: ``ask((F.age > 3) & ~F.city.is_none())``.

What comes out is an ordinary function, ``lambda v: v.age > 3 and not v.city is None``, made from source. An ordered
comparison asks before whether there is a value, as a program has to.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

_numbers = itertools.count()


class Expression:
    """Source of ``v``, with the constants that it names."""

    def __init__(self, source: str, names: dict[str, Any]) -> None:
        self.source, self.names = source, names

    def __and__(self, other: Expression) -> Expression:
        return Expression(f"({self.source} and {other.source})", {**self.names, **other.names})

    def __or__(self, other: Expression) -> Expression:
        return Expression(f"({self.source} or {other.source})", {**self.names, **other.names})

    def __invert__(self) -> Expression:
        return Expression(f"(not {self.source})", self.names)

    def __repr__(self) -> str:
        return f"{self.source} with {self.names}"


class Field:
    """A field of the value, or the value itself."""

    __hash__ = None  # type: ignore[assignment]  # pyright: ignore

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Field:
        return Field((*self._path, name))

    def __getitem__(self, name: str) -> Field:
        return Field((*self._path, name))

    @property
    def _source(self) -> str:
        return path_source(self._path)

    def _compared(self, operator: str, other: Any) -> Expression:
        name = f"c{next(_numbers)}"
        return Expression(f"({self._source} {operator} {name})", {name: other})

    def _ordered(self, operator: str, other: Any) -> Expression:
        return ~self.is_none() & self._compared(operator, other)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]  # pyright: ignore
        return self.is_none() if other is None else self._compared("==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]  # pyright: ignore
        return ~self.is_none() if other is None else self._compared("!=", other)

    def __lt__(self, other: Any) -> Expression:
        return self._ordered("<", other)

    def __le__(self, other: Any) -> Expression:
        return self._ordered("<=", other)

    def __gt__(self, other: Any) -> Expression:
        return self._ordered(">", other)

    def __ge__(self, other: Any) -> Expression:
        return self._ordered(">=", other)

    def in_(self, values: Iterable[Any]) -> Expression:
        return self._compared("in", tuple(values))

    def is_none(self) -> Expression:
        return Expression(f"({self._source} is None)", {})


F: Any = Field()


def path_source(path: Iterable[str]) -> str:
    """The expression of the field at *path* of ``v``; None where a holder is."""
    source = "v"
    for number, name in enumerate(path):
        step = (
            f"{source}.{name}" if name.isidentifier() and name not in ("from", "in") else f"getattr({source}, {name!r})"
        )
        source = step if number == 0 else f"(None if {source} is None else {step})"
    return source


def ask(expression: Expression) -> Callable[[Any], bool]:
    """The function of *expression*."""
    function: Callable[[Any], bool] = eval(f"lambda v: {expression.source}", dict(expression.names))
    return function


def give(*paths: str) -> Callable[[Any], Any]:
    """The function that gives the fields *paths*, bare where there is one."""
    sources = [path_source(path.split(".")) for path in paths]
    function: Callable[[Any], Any] = eval(
        f"lambda v: {sources[0] if len(paths) == 1 else f'({chr(44).join(sources)})'}"
    )
    return function
