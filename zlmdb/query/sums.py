"""Sums that are the same on every Python: those of floats are compensated, in the order of the rows.

Since Python 3.12 `sum` does so; before, and on PyPy, it rounds after each addition.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

from ..values.base import is_a

_BUILT_IN = sum([0.1] * 10) == 1.0


def total(values: Iterable[Any]) -> Any:
    """The sum of *values*, 0 of none."""
    return sum(values) if _BUILT_IN else compensated(values)


def compensated(values: Iterable[Any]) -> Any:
    """`sum` as Python 3.12 has it, by Neumaier's method."""
    found = Sum()
    found.add(values)
    return found.total()


class Sum:
    """A sum by Neumaier's method, of which the values come in several parts."""

    __slots__ = ("_found", "_lost")

    def __init__(self) -> None:
        self._found: Any = 0
        self._lost = 0.0

    def add(self, values: Iterable[Any]) -> None:
        """Add *values*, in order."""
        found, lost = self._found, self._lost
        if is_a(values, list) and type(found) in (int, float) and {float}.issuperset(map(type, values)):
            self._add_floats(values)
            return
        for value in values:
            if type(value) is float and type(found) in (int, float):
                after = found + value
                if type(found) is float:
                    lost += (found - after) + value if abs(found) >= abs(value) else (value - after) + found
                found = after
            else:
                if lost and type(found) is float and type(value) is not int:
                    found, lost = _with(found, lost), 0.0
                found = found + value
        self._found, self._lost = found, lost

    def _add_floats(self, values: Iterable[Any]) -> None:
        """As `add`, of nothing but floats to a number."""
        found: Any = self._found
        lost: float = self._lost
        rest = iter(values)
        if type(found) is int:
            found += next(rest, 0)
        for value in rest:
            after = found + value
            # As with absolute values, without the calls; the first test is true of most sums of positive numbers.
            if -found <= value <= found or found <= value <= -found:
                lost += (found - after) + value
            else:
                lost += (value - after) + found
            found = after
        self._found, self._lost = found, lost

    def total(self) -> Any:
        """The sum of all values."""
        return _with(self._found, self._lost)


def _with(found: Any, lost: float) -> Any:
    return found + lost if lost and isfinite(lost) else found


def mean(values: Iterable[Any]) -> Any:
    """The mean of *values*; None of none."""
    kept = _Counted(values)
    found = total(kept)
    return found / kept.count if kept.count else None


class _Counted:
    """*values*, counted while they are run through."""

    def __init__(self, values: Iterable[Any]) -> None:
        self.values, self.count = values, 0

    def __iter__(self) -> Any:
        for value in self.values:
            self.count += 1
            yield value
