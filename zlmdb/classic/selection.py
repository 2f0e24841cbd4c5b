"""The result of ``select`` of a classic map: a selection that is also an iterator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Optional, TypeVar

from ..tables.selection import Selection

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class ClassicSelection(Selection[K, V], Generic[K, V, R]):
    """A `Selection` that returns pairs, keys, values, or None for each record, as `PersistentMap.select` was called.

    Each ``for`` loop reads the records again. `next` continues from one call to the next, from the start of the
    selection.
    """

    __slots__ = ("_returns", "_rows")

    _returns: tuple[bool, bool]
    _rows: Optional[Iterator[R]]

    @classmethod
    def of(cls, chosen: Selection[K, V], keys: bool, values: bool) -> ClassicSelection[K, V, R]:
        """*chosen*, iterating over keys, values, pairs of both, or neither."""
        self = cls(*chosen._range())
        self._returns = bool(keys), bool(values)
        self._rows = None
        return self

    # mypy: a Selection gives pairs; what this one gives is its third type argument.
    def __iter__(self) -> Iterator[R]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        rows: Any
        if self._returns == (True, True):
            rows = super().__iter__()
        elif self._returns == (True, False):
            rows = iter(self.keys())
        elif self._returns == (False, True):
            rows = iter(self.values())
        else:
            rows = (None for _ in self.keys())
        return rows

    def __next__(self) -> R:
        if self._rows is None:
            self._rows = iter(self)
        return next(self._rows)

    def next(self) -> R:
        """The next record. Raises `StopIteration` after the last one."""
        return next(self)
