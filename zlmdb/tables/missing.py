"""A missing key of a table, an index or a selection, and what is no key and no number of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from types import FunctionType
from typing import Any, NoReturn

from ..query.nolists import SOME, shown_call, shown_position
from ..shown import shortened


def pairs(rows: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """The *rows* given to ``update``. Raises, as a dict does, TypeError or ValueError for what is no pair."""
    if not hasattr(rows, "__iter__"):
        _refuse_row(rows, TypeError)
    for row in rows:
        try:
            key, value = row
        except (TypeError, ValueError) as error:
            _refuse_row(row, TypeError if isinstance(error, TypeError) else ValueError)
        yield key, value


def begun_with_a_pair(rows: Any) -> Any:
    """The *rows* given to ``put_many``. Raises TypeError or ValueError if the first one is no pair."""
    several = type(rows) in (list, tuple)
    if not several and not hasattr(rows, "__iter__"):
        _refuse_row(rows, TypeError, _OF_MANY)
    left: Iterator[Any] = iter(rows)
    for first in left:
        if not hasattr(first, "__iter__"):
            _refuse_row(first, TypeError, _OF_MANY)
        if hasattr(first, "__len__") and len(first) != 2:
            _refuse_row(first, ValueError, _OF_MANY)
        return rows if several else chain((first,), left)
    return ()


_OF_MANY = "put_many() takes pairs of key and value"


def _refuse_row(
    row: object, kind: type[Exception], taken: str = "update() takes a dict, or pairs of key and value"
) -> NoReturn:
    raise kind(f"{taken}, got {shortened(row)}: table.add(value) stores a value under a new key") from None


def refuse_rest(*given: object, **named: object) -> NoReturn:
    """Raise TypeError for what is *given* to ``update`` beside a dict: a condition, perhaps."""
    raise TypeError(
        f"update() takes a dict of keys and records, or pairs, and got {shown_call(given, named)}: to change fields, "
        f"write .where(lambda record: ...).change(lambda record: ...), or `with table.edit(key) as record:`"
    )


class _NoPosition(KeyError):
    """A missing key that looks like a position of a list; ``args`` are those of the plain `KeyError`."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r} is not there: [...] looks up a key, as in a dict, and never a position: write .first() "
            f"or .last() for one record, .select(limit=10) or itertools.islice for some, list(...) for all"
        )

    def __reduce__(self) -> Any:
        return missing, self.args


# Tracebacks show a class by these.
_NoPosition.__module__, _NoPosition.__name__, _NoPosition.__qualname__ = "builtins", "KeyError", "KeyError"


def missing(key: object) -> KeyError:
    """The error of a *key* that is not there. For 0 and negative numbers, the text says how to read by position."""
    return _NoPosition(key) if type(key) is int and key <= 0 else KeyError(key)


def refuse_ranges(fields: Iterable[str]) -> NoReturn:
    """Raise TypeError for *fields*, or misspelt options, that are given by name to ``select``."""
    asked = " and ".join([f"record.{name} == ..." for name in fields])
    advice = f"write where(lambda record: {asked}) for a condition"
    if _BOUNDS.keys() >= set(fields):
        advice = f"write {' and '.join([_BOUNDS[name] for name in fields])}"
    raise TypeError(
        f"select() takes a range of keys (start, stop, through, prefix, startswith) and reverse and limit, and got "
        f"{', '.join(fields)}: {advice}"
    )


_BOUNDS = {
    **dict.fromkeys(("after", "begin", "first", "from_", "gt", "gte", "low", "lower", "min"), "start="),
    **dict.fromkeys(
        ("before", "end", "high", "last", "lt", "lte", "max", "to", "until", "upper"),
        "stop=, or through= to include it",
    ),
    **dict.fromkeys(("desc", "descending", "reversed"), "reverse=True"),
}
"""What bounds are called elsewhere, and here."""


_TAKEN = {
    "fields": "one function, which may return a tuple: write fields(lambda record: (record.name, ...))",
    "group_by": "two functions, without names: write group_by(lambda record: ..., lambda group: (group.count(), "
    "group.fields(lambda record: ...).sum()))",
    "limit": "two numbers: write limit(count, skip)",
    "order_by": "one function, which may return a tuple, (record.name, desc(record.age)), and reverse: write "
    "order_by(lambda record: ..., reverse=True), or desc(...) in it",
    "where": "one function: write where(lambda record: record.name == ... and ...)",
}


def refuse_call(method: str, given: Iterable[object], options: Mapping[str, object]) -> NoReturn:
    """Raise TypeError for a *method* of a query that is called with what is *given*, and *options*."""
    raise TypeError(f"{method}() takes {_TAKEN[method]}; it got {shown_call(given, options)} as well")


def refuse_where(more: tuple[object, ...], fields: Mapping[str, object]) -> NoReturn:
    """As `refuse_call`, of ``where``, whose *fields* may be given by name."""
    if more:
        refuse_call("where", more, fields)
    asked = " and ".join([f"record.{name} == ..." for name in fields])
    raise TypeError(f"where() takes a function of a record: write where(lambda record: {asked})")


OF_CLASS = "a class of tables has no records: read them in a transaction, `with db.read() as t:`,"
"""For messages; what to write comes after it."""
FUNCTION: Any = FunctionType
"""The class of what a method has in place of self if it is asked of a class; not the type that checkers see."""


def refuse_class(method: str) -> NoReturn:
    """Raise TypeError for a *method* that is asked of a class, ``Users.where(...)``: the function stands for self."""
    raise TypeError(f"{method}(): {OF_CLASS} as t.table.{method}(lambda record: ...)")


def refuse_limit(limit: int) -> NoReturn:
    """Raise ValueError for a negative *limit*."""
    raise ValueError(f"limit={limit}: give the greatest number of records, 0 or more, or None for all")


def check_limit(count: Any, skip: Any, options: Mapping[str, object]) -> None:
    """Raise ValueError or TypeError for what are no numbers of records, and for *options*, of which there are none."""
    if options:
        refuse_call("limit", (), options)
    try:
        wrong = count < 0 or skip < 0
    except TypeError:
        raise TypeError(f"limit({count!r}, {skip!r}): give numbers of records") from None
    if wrong:
        raise ValueError(f"limit({count}, {skip}): give numbers of records, 0 or more")


def refuse_after_limit(method: str) -> NoReturn:
    """Raise TypeError for *method* after a limit."""
    raise TypeError(
        f"{method}() after a limit can be meant in two ways: ask for it before limit(), or go on with the rows that "
        f"come out, in Python"
    )


def refuse_position(key: Any, error: Exception) -> None:
    """Raise `TypeError` for a position or a slice in place of a key."""
    if isinstance(key, (int, slice)):
        raise TypeError(
            f"selection[{shown_position(key)}]: a selection looks up keys and has no positions: {SOME}"
        ) from error
