"""Arguments given to methods that ask for rows and take none: the error says what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

from ..shown import shortened

_SOME = "write .where(lambda record: ...).{method}() for those of a condition, {one} for one record"
_TAKEN = "write .fields(lambda record: (record.name, ...)), which gives what is computed of each record"
_ADVICE = {
    "all": "write .limit(count).all() for the first ones, .where(lambda record: ...).all() for those of a condition",
    "count": _SOME.format(method="count", one="key in table"),
    "delete": _SOME.format(method="delete", one="del table[key]"),
    "keys": _TAKEN,
    "values": _TAKEN,
}
_NONE = "; it returns None if there is none, so `if row is None` is what a default is for"


def shown_call(given: Iterable[object], named: Mapping[str, object]) -> str:
    """The arguments of a call, for people."""
    return ", ".join([*map(shortened, given), *[f"{name}={shortened(one)}" for name, one in named.items()]])


def refuse_given(method: str, given: Iterable[object], named: Mapping[str, object]) -> NoReturn:
    """Raise TypeError for what is given to *method*, which takes nothing: a condition, perhaps, a key or a default."""
    advice = _ADVICE.get(method) or _SOME.format(method=method, one="table.get(key)") + _NONE
    raise TypeError(f"{method}() takes no arguments, and got {shown_call(given, named)}: {advice}")


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
