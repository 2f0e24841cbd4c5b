"""Pages of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, Optional, TypeVar

from ..missingattributes import tell_each
from ..shown import shortened

if TYPE_CHECKING:
    from .cursors import Position

R_co = TypeVar("R_co", covariant=True)


class Page(Generic[R_co]):
    """Some rows of a query, and the cursors of the pages beside it.

    *next* is the cursor of what comes after them, None behind the last ones; *previous* is that of what comes before
    them. `page` takes either.
    """

    __slots__ = ("_before", "_query", "next", "rows")

    def __init__(
        self, rows: list[R_co], next: Optional[str], before: Optional[Position] = None, query: str = ""
    ) -> None:  # fmt: skip
        """*before* is the position of the first row, if others may precede it, and *query* the fingerprint."""
        self.rows = rows
        self.next = next
        self._before = before
        self._query = query

    @property
    def previous(self) -> Optional[str]:
        """The cursor of the page before it; None where the query begins."""
        if self._before is None:
            return None
        from .cursors import recent  # late: it reads modules that few programs need

        return recent.cursor(self._before, self._query, before=True)  # made now: most programs only go on

    def _with(self, rows: list[R_co]) -> Page[R_co]:
        """The same page with other *rows*."""
        return Page(rows, self.next, self._before, self._query)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[R_co]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"<Page [{', '.join(map(shortened, self.rows))}]{'' if self.next is None else ', and more'}>"


tell_each(
    Page,
    {
        **dict.fromkeys(("count", "data", "items", "object_list", "results", "values"), "write .rows, which is a list"),
        **dict.fromkeys(("has_next", "has_more"), "write .next is not None"),
        **dict.fromkeys(("has_prev", "has_previous"), "write .previous is not None"),
        **dict.fromkeys(("cursor", "next_cursor", "after"), "write .next, which page(size, after) takes"),
    },
)
