"""Walks over the pages of a query, forth and back."""

from __future__ import annotations

from typing import Any, Optional


def rows_of_pages(query: Any, size: int, most: Optional[int] = None) -> list[Any]:
    """The rows of the pages of *query*, of *most* pages at most; the way back shows the same pages."""
    pages = [query.page(size)]
    while pages[-1].next is not None and len(pages) != most:
        pages.append(query.page(size, pages[-1].next))
    shown = pages[-1]
    for page in reversed(pages[:-1]):
        later, shown = shown, query.page(size, shown.previous)
        assert shown.rows == page.rows
        assert query.page(size, shown.next).rows == later.rows
    assert shown.previous is None
    return [row for page in pages for row in page]
