"""The records that a statement has found: they take little memory, as there may be millions, or are few."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Optional, Union, overload

_BLOCK = 1 << 10
"""Keys that are objects at the same time, in an iteration."""

Row = tuple[bytes, Optional[bytes]]
"""The engine's key of a record, and what is stored there, if that was read already."""


class PackedKeys(Sequence[bytes]):
    """Engine's keys in one array of bytes: each takes its own bytes and 8 more. An object in a list takes 41 more."""

    __slots__ = ("_bytes", "_ends")

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._ends = array("Q", [0])  # where each key ends, and before them where the first one begins

    def add(self, keys: Sequence[bytes]) -> None:
        """Add *keys* behind the others."""
        self._ends.extend(list(accumulate(map(len, keys), initial=self._ends.pop())))
        self._bytes += b"".join(keys)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...

    def __getitem__(self, at: Union[int, slice]) -> Any:
        if not isinstance(at, slice):
            place = range(len(self))[at]
            return bytes(self._bytes[self._ends[place] : self._ends[place + 1]])
        start, stop, step = at.indices(len(self))
        if step != 1:
            return [self[place] for place in range(start, stop, step)]
        ends = self._ends[start : stop + 1]
        first = ends[0]
        data = bytes(self._bytes[first : ends[-1]])
        return [data[begin - first : end - first] for begin, end in zip(ends, ends[1:])]

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self), _BLOCK):
            yield from self[start : start + _BLOCK]


class FoundRows(Sequence[Row]):
    """The pairs *rows*, and behind them those of *keys*, of which it is not known what is stored."""

    __slots__ = ("_rows", "_unread")

    def __init__(self, rows: list[Row], unread: PackedKeys) -> None:
        self._rows, self._unread = rows, unread

    def keys(self) -> PackedKeys:
        """The keys of all rows."""
        keys = PackedKeys()
        keys.add([key for key, _ in self._rows])
        for start in range(0, len(self._unread), _BLOCK):
            keys.add(self._unread[start : start + _BLOCK])
        return keys

    def stored(self) -> list[Optional[bytes]]:
        """What is stored in the first rows, as far as it is known."""
        return [data for _, data in self._rows]

    def __len__(self) -> int:
        return len(self._rows) + len(self._unread)

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...

    def __getitem__(self, at: Union[int, slice]) -> Any:
        known = len(self._rows)
        if not isinstance(at, slice):
            place = range(len(self))[at]
            return self._rows[place] if place < known else (self._unread[place - known], None)
        start, stop, step = at.indices(len(self))
        if step != 1:
            return [self[place] for place in range(start, stop, step)]
        found = self._rows[start:stop]
        if stop > known:
            found += [(key, None) for key in self._unread[max(start - known, 0) : stop - known]]
        return found

    def __iter__(self) -> Iterator[Row]:
        yield from self._rows
        for key in self._unread:
            yield key, None


FEW = 256
"""Rows that are read again in less time than it takes to plan how they are found."""


def few_rows(selection: Any, give: Any) -> Optional[list[Any]]:
    """What *give* says of the records of *selection*, if an index finds fewer than `FEW`, as is known from before."""
    cached = selection._cached_plan(give, at_once=True)
    rows: Optional[list[Any]] = cached.all(selection, give, FEW) if cached is not None and cached.by_index else None
    return None if rows is None or len(rows) == FEW else rows
