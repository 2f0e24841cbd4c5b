"""The progress of long operations: what `Database.backup`, `check` and others pass to a function of the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional

from ..namedtuples import NamedTuple

EVERY = 10_000
"""Records between two reports of progress."""


class Progress(NamedTuple):
    """*done* of *total* units (bytes, pages or records) of one *stage*; *total* is None if it is not known."""

    stage: str
    done: int
    total: Optional[int] = None


Told = Callable[[Progress], object]
"""A function that is told the progress, from time to time and at the end of each stage."""


def silent(progress: Progress) -> None:
    """Ignores the progress; used if the caller gave no function."""
