"""What cannot be asked of rows that are read lazily, and look like a list: the error says what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar, cast

from ..shown import shortened

_LISTS = (list, tuple, dict, set, frozenset)

SOME = "write .first() or .last() for one, select(..., limit=10) or itertools.islice for some, list(...) for all"
"""How positions are asked for."""


def no_length(given: object) -> int:
    """Raise `TypeError`: counting may read every record, which `len` does not say."""
    raise TypeError("len(...): counting may read every record: write .count(), or list(...) to read all")


class NoList:
    """Positions, `reversed` and comparisons with lists, of rows that are read when they are asked for."""

    __slots__ = ()

    _some: ClassVar[str] = SOME

    if not TYPE_CHECKING:  # checkers report it by themselves

        def __getitem__(self, position: Any) -> NoReturn:
            raise TypeError(f"[{shown_position(position)}]: what is read lazily has no positions: {self._some}")

        def __reversed__(self) -> NoReturn:
            raise TypeError(
                "reversed(...): the order is chosen when reading begins: write select(..., reverse=True), "
                "or order_by(..., reverse=True)"
            )

        def __eq__(self, other: object) -> bool:
            if isinstance(other, _LISTS):
                raise TypeError(
                    f"what is read lazily is never equal to a {type(other).__name__}: "
                    f"compare {type(other).__name__}(...)"
                )
            return NotImplemented

        __hash__ = object.__hash__


_VALUES = (str, bytes, int, float)


def refuse_equal(shown: str, other: object) -> None:
    """Raise TypeError if *other* is a value: an index is never equal to one, as columns of ORMs seem to be."""
    given: Any = other
    if isinstance(given, (*_VALUES, *_LISTS)):
        raise TypeError(
            f"{shown} == {shortened(other)}: an index is no field, and never equal to a value: write index[key], or "
            f".where(lambda record: record.field == ...) of the table"
        )


def shown_position(position: Any) -> str:
    """A position or a slice as it is written in brackets."""
    if position.__class__ is not slice:
        return repr(position)
    parts = ["" if part is None else repr(part) for part in (position.start, position.stop)]
    return ":".join(parts if position.step is None else [*parts, repr(position.step)])


_OF_SOME = "write .where(lambda record: ...).{method}() for those of a condition, {one} for one record"
_TAKEN = "write .fields(lambda record: (record.name, ...)), which gives what is computed of each record"
_ADVICE = {
    "all": "write .limit(count).all() for the first ones, .where(lambda record: ...).all() for those of a condition",
    "count": _OF_SOME.format(method="count", one="key in table"),
    "delete": _OF_SOME.format(method="delete", one="del table[key]"),
    "keys": _TAKEN,
    "values": _TAKEN,
}
_NONE = "; it returns None if there is none, so `if row is None` is what a default is for"


def shown_call(given: Iterable[object], named: Mapping[str, object]) -> str:
    """The arguments of a call, for people."""
    return ", ".join([*map(shortened, given), *[f"{name}={shortened(one)}" for name, one in named.items()]])


def refuse_given(method: str, given: Iterable[object], named: Mapping[str, object]) -> NoReturn:
    """Raise TypeError for what is given to *method*, which takes nothing: a condition, perhaps, a key or a default."""
    advice = _ADVICE.get(method) or _OF_SOME.format(method=method, one="table.get(key)") + _NONE
    raise TypeError(f"{method}() takes no arguments, and got {shown_call(given, named)}: {advice}")


def refuse_computing(method: str, given: Iterable[object], named: Mapping[str, object]) -> NoReturn:
    """Raise TypeError for *method*, such as ``max``, of pairs of key and value, or with what is *given* to it."""
    shown = shown_call(given, named)
    why = f"takes no arguments, and got {shown}" if shown else "of pairs of key and value says nothing of a field"
    raise TypeError(f"{method}() {why}: write .fields(lambda record: ...).{method}(), or .keys().{method}() of keys")


F = TypeVar("F", bound=Callable[..., Any])


def sized(method: F) -> F:
    """The *method* ``page``, which refuses anything but a size and a cursor: the number of a page, perhaps."""

    @wraps(method)
    def page(self: Any, *given: Any, **named: Any) -> Any:
        if len(given) > 2 or not (given or "size" in named) or not named.keys() <= {"size", "after"}:
            raise TypeError(
                f"page() takes size and after, the .next of the page before, and got {shown_call(given, named)}: write "
                f"page(size, before.next) for the page behind another, limit(size, skip) for one of a number"
            )
        return method(self, *given, **named)

    return cast("F", page)
