"""How values are shown in messages."""

from __future__ import annotations


def shortened(value: object, limit: int = 80) -> str:
    """The repr of *value*, cut to *limit* characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
