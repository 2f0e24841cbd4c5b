"""How far long work is: what `Database.backup`, `check` and their like tell a function that they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Optional


class Progress(NamedTuple):
    """*done* of *total* units (bytes, pages or records) of one *stage*; *total* is None while it is not known."""

    stage: str
    done: int
    total: Optional[int] = None


Told = Callable[[Progress], object]
"""A function that is told the progress, from time to time and at the end of each stage."""


def silent(progress: Progress) -> None:
    """Told, and says nothing: what there is when no function was given."""
