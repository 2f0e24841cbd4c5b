"""The progress of long operations: what `Database.backup`, `check` and others pass to a function of the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Optional, TypeVar

from ..namedtuples import NamedTuple

R = TypeVar("R")

EVERY = 10_000
"""Records between two reports of progress."""


class Progress(NamedTuple):
    """*done* of *total* units (bytes, pages or records) of one *stage*; *total* is None if it is not known."""

    stage: str
    done: int
    total: Optional[int] = None


Told = Callable[[Progress], object]
"""A function that is told the progress, from time to time and at the end of each stage."""


def counted(rows: Iterable[R], stage: str, told: Told, total: Optional[int] = None) -> Iterator[R]:
    """The *rows*, of each of which *told* is told that it is done when the next one is asked for."""
    count = 0
    for count, row in enumerate(rows, 1):
        yield row
        if count % EVERY == 0:
            told(Progress(stage, count, total))
    told(Progress(stage, count, count if total is None else total))


def silent(progress: Progress) -> None:
    """Ignores the progress; used if the caller gave no function."""
