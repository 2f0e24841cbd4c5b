"""Pages of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Optional, TypeVar

from ..shown import shortened

R_co = TypeVar("R_co", covariant=True)


class Page(Generic[R_co]):
    """Some rows of a query, and the cursors of the pages beside it.

    *next* is the cursor of what comes after them, None behind the last ones; *previous* that of what comes before them,
    None where a query begins. `page` takes either.
    """

    __slots__ = ("next", "previous", "rows")

    def __init__(self, rows: list[R_co], next: Optional[str], previous: Optional[str] = None) -> None:
        self.rows = rows
        self.next = next
        self.previous = previous

    def __iter__(self) -> Iterator[R_co]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"<Page [{', '.join(map(shortened, self.rows))}]{'' if self.next is None else ', and more'}>"
