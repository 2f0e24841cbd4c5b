"""A missing key of a table, an index or a selection, and what is no key and no number of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from ..query.nolists import SOME, shown_position
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


def _refuse_row(row: object, kind: type[Exception]) -> NoReturn:
    raise kind(
        f"update() takes a dict, or pairs of key and value, got {shortened(row)}: table.add(value) stores a value "
        f"under a new key"
    ) from None


class _NoPosition(KeyError):
    """A missing key that looks like a position of a list; ``args`` are those of the plain `KeyError`."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r} is not there: [...] looks up a key, as in a dict, and never a position: write .first() "
            f"or .last() for one record, .select(limit=10) or itertools.islice for some, list(...) for all"
        )


def missing(key: object) -> KeyError:
    """The error of a *key* that is not there. For 0 and negative numbers, the text says how to read by position."""
    return _NoPosition(key) if type(key) is int and key <= 0 else KeyError(key)


def refuse_ranges(fields: Iterable[str]) -> NoReturn:
    """Raise TypeError for *fields*, or misspelt options, that are given by name to ``select``."""
    asked = " and ".join([f"record.{name} == ..." for name in fields])
    raise TypeError(
        f"select() takes a range of keys (start, stop, through, prefix, startswith) and reverse and limit, and got "
        f"{', '.join(fields)}: write where(lambda record: {asked}) for a condition"
    )


def refuse_limit(limit: int) -> NoReturn:
    """Raise ValueError for a negative *limit*."""
    raise ValueError(f"limit={limit}: give the greatest number of records, 0 or more, or None for all")


def check_limit(count: Any, skip: Any) -> None:
    """Raise ValueError or TypeError for what are no numbers of records."""
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
