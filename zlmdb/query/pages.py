"""Pages of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Optional, TypeVar

from ..shown import shortened

R_co = TypeVar("R_co", covariant=True)


class Page(Generic[R_co]):
    """Some rows of a query, and the cursor of what comes after them; None behind the last ones."""

    __slots__ = ("next", "rows")

    def __init__(self, rows: list[R_co], next: Optional[str]) -> None:
        self.rows = rows
        self.next = next

    def __iter__(self) -> Iterator[R_co]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"<Page [{', '.join(map(shortened, self.rows))}]{'' if self.next is None else ', and more'}>"
