"""What queries give, in plain Python: lists with the methods of rows and of selections."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from zlmdb.query.sums import mean, total


def called(function: Any, key: Any, value: Any) -> Any:
    """What *function* gives of a record; one that takes the key calls it ``k``."""
    inner = function.func if isinstance(function, functools.partial) else function
    code = inner.__code__
    names = code.co_varnames[: code.co_argcount]
    return function(key, value) if "k" in names else function(value)


class Rows:
    """A list with the methods of a `Reads`."""

    def __init__(self, rows: Iterable[Any]) -> None:
        self.rows = list(rows)

    def all(self) -> list[Any]:
        return self.rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __bool__(self) -> bool:
        return bool(self.rows)

    def first(self) -> Any:
        return self.rows[0] if self.rows else None

    def last(self) -> Any:
        return self.rows[-1] if self.rows else None

    def count(self) -> int:
        return len(self.rows)

    def distinct(self) -> Rows:
        return Rows(dict.fromkeys(self.rows))

    def sum(self) -> Any:
        return total(iter(self.rows))

    def mean(self) -> Any:
        return mean(iter(self.rows))

    def min(self) -> Any:
        return min(self.rows, default=None)

    def max(self) -> Any:
        return max(self.rows, default=None)


class Pairs(Rows):
    """A list of pairs of key and value with the methods of a `Selection`."""

    def __contains__(self, key: Any) -> bool:
        return any(one == key for one, _ in self.rows)

    def where(self, matches: Any) -> Pairs:
        return Pairs(row for row in self.rows if called(matches, *row))

    def order_by(self, by: Any, reverse: bool = False) -> Pairs:
        rows = sorted(self.rows, key=lambda row: called(by, *row))
        return Pairs(rows[::-1] if reverse else rows)

    def limit(self, count: int, skip: int = 0) -> Pairs:
        return Pairs(self.rows[skip : skip + count])

    def fields(self, give: Any) -> Rows:
        return Rows(called(give, *row) for row in self.rows)

    def keys(self) -> Rows:
        return Rows(key for key, _ in self.rows)

    def values(self) -> Rows:
        return Rows(value for _, value in self.rows)

    def group_by(self, by: Any, into: Any) -> dict[Any, Any]:
        groups: dict[Any, list[Any]] = {}
        for row in self.rows:
            groups.setdefault(called(by, *row), []).append(row)
        return {key: into(Pairs(rows)) for key, rows in groups.items()}


class Records(Pairs):
    """The pairs of a table, in the order of their keys, with what a table does by its keys."""

    def __init__(self, rows: Iterable[tuple[Any, Any]]) -> None:
        super().__init__(rows)
        self.known = dict(self.rows)

    def __contains__(self, key: Any) -> bool:
        return key in self.known

    def __getitem__(self, key: Any) -> Any:
        return self.known[key]

    def get(self, key: Any, default: Any = None) -> Any:
        return self.known.get(key, default)

    def select(self, start: Any = None, stop: Any = None, *, reverse: bool = False, through: Any = None) -> Pairs:
        rows = [
            (k, v) for k, v in self.rows
            if (start is None or k >= start) and (stop is None or k < stop) and (through is None or k <= through)
        ]  # fmt: skip
        return Pairs(rows[::-1] if reverse else rows)


class ByKey:
    """An index, or what else has the pairs of one key: none are as if it had no such key."""

    def __getitem__(self, key: Any) -> Pairs:
        raise NotImplementedError

    def __contains__(self, key: Any) -> bool:
        return bool(self[key])
