"""How values and names are shown in messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

_LIMIT = 80


def shortened(value: object) -> str:
    """The repr of *value*, cut to 80 characters."""
    text = repr(value)
    return text if len(text) <= _LIMIT else text[: _LIMIT - 3] + "..."


def shown_path(path: Optional[str]) -> str:
    """The path of a database, or words for one that has none."""
    return "in memory" if path is None else repr(path)


def nearest(name: str, known: Iterable[str], *, listed: bool = True) -> str:
    """Words for a message that misses *name*: the most similar one of those *known*.

    If none is similar: a list of them, or nothing if *listed* is False.
    """
    import difflib  # late: for this message only

    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are {', '.join(map(repr, names)) or 'none'}" if listed else ""
