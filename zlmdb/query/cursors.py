"""The cursors that say where a page begins or ends.

A cursor holds the sort key and the key of a row, a fingerprint of the query, and whether the page comes before that
row or behind it: it is text, can be given to anybody, and reveals what it holds. What stands on the other side of its
row is not shown, whatever was inserted meanwhile.
"""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from ..namedtuples import NamedTuple
from ..shown import shortened
from .following.known import kind_of
from .ordering import Descending

_encode = json.JSONEncoder(separators=(",", ":")).encode  # which `json.dumps` would make each time


class Position(NamedTuple):
    """Where a row stands: its sort key, None without an order, and its key in the engine or in an index."""

    key: Any
    entry: bytes

    def is_behind(self, begin: Position, backwards: bool, down: bool) -> bool:
        """Whether it comes behind *begin*: *backwards*, the greatest first; *down*, equal ones the last one first."""
        one, other = (self.key, begin.key) if backwards else (begin.key, self.key)
        if one < other:
            return True
        if other < one:
            return False
        return self.entry < begin.entry if down else self.entry > begin.entry


class Mark(NamedTuple):
    """Where a page is: behind a position, or *before* it."""

    position: Position
    before: bool


_BEFORE = "before"


def fingerprint(*said: Any) -> str:
    """A short name for a query of which *said* is all."""
    return hashlib.blake2b(repr(said).encode("utf-8", "backslashreplace"), digest_size=9).hexdigest()


def cursor_of(mark: Mark, query: str) -> str:
    """The text of a cursor. Raises `TypeError` for sort keys that cannot be written."""
    position, before = mark
    said = [query, position.entry.hex(), _written(position.key)]
    if before:
        said.append(_BEFORE)
    return base64.urlsafe_b64encode(_encode(said).encode()).decode().rstrip("=")


def mark_of(cursor: str, query: str) -> Mark:
    """What *cursor* says. Raises ValueError for one of another query, or that is none."""
    wrong = none_of_this_query(cursor)
    try:
        said: Any = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode())
        name, entry, key, *before = said
        if name != query or before not in ([], [_BEFORE]):
            raise ValueError(wrong)
        return Mark(Position(_read(key), bytes.fromhex(entry)), bool(before))
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise ValueError(wrong) from error


def none_of_this_query(cursor: Any) -> str:
    """What says that *cursor* is not one that a page of the query has given."""
    return (
        f"after={shortened(cursor)} is no cursor of this query: give the .next or .previous of a page of the same "
        f"query, or None"
    )


class Recent:
    """Cursors that were given out not long ago: who goes on reads few pages later, often in the same process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._marks: dict[tuple[str, str], Mark] = {}

    def cursor(self, position: Position, query: str, *, before: bool = False) -> str:
        """As `cursor_of`, of the page behind *position*, or *before* it."""
        mark = Mark(position, before)
        made = cursor_of(mark, query)
        self._keep(made, query, mark)
        return made

    def mark(self, cursor: str, query: str) -> Mark:
        """As `mark_of`."""
        found = self._marks.get((cursor, query))
        if found is None:
            found = mark_of(cursor, query)
            self._keep(cursor, query, found)
        return found

    def _keep(self, cursor: str, query: str, mark: Mark) -> None:
        if len(self._marks) >= self._most:
            self._marks.clear()  # an interrupt may come between any two steps here
        self._marks[cursor, query] = mark


recent = Recent(256)


def _written(value: Any) -> Any:
    kind = kind_of(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is tuple:
        return ["t", [_written(part) for part in value]]
    if kind is Descending:
        return ["d", _written(value.value)]
    write = _WRITE.get(kind)
    if write is None:
        raise TypeError(
            f"page() cannot put a sort key of type {kind.__name__} into its cursor: sort by numbers, texts, bytes, "
            f"dates, UUIDs, or tuples of these"
        )
    return [kind.__name__, write(value)]


def _read(written: Any) -> Any:
    if not isinstance(written, list):
        return written
    kind, value = written  # pyright: ignore[reportUnknownVariableType]  # what json gives
    if kind == "t":
        return tuple([_read(part) for part in value])  # pyright: ignore[reportUnknownVariableType]
    return Descending(_read(value)) if kind == "d" else _READ[kind](value)


def _parts_of(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _of_parts(parts: list[int]) -> timedelta:
    return timedelta(*parts)


_WRITE: dict[Any, Any] = {
    float: float.hex, bytes: bytes.hex, Decimal: str, UUID: str, datetime: datetime.isoformat, date: date.isoformat,
    time: time.isoformat, timedelta: _parts_of,
}  # fmt: skip
_READ: dict[str, Any] = {
    "float": float.fromhex, "bytes": bytes.fromhex, "Decimal": Decimal, "UUID": UUID,
    "datetime": datetime.fromisoformat, "date": date.fromisoformat, "time": time.fromisoformat,
    "timedelta": _of_parts,
}  # fmt: skip
