"""What every pass over the pages of a data file keeps: which ones it has reached, and what is wrong with them."""

from __future__ import annotations

from typing import Optional

from .nodes import Nodes
from .pages import FIRST_PAGE, Meta, PageFile

_KEEP = 200  # problems kept in words; the others are counted


class Pass:
    """One pass over the trees of one committed state.

    *problems* are in words, at most 200 of them; *count* is how many there were. *live* marks the pages reached.
    """

    def __init__(self, file: PageFile, meta: Meta) -> None:
        self.file = file
        self.meta = meta
        self.nodes = Nodes(file)
        self.problems: list[str] = []
        self.count = 0
        self.live = bytearray(meta.last + 1)

    def problem(self, text: str) -> None:
        """Note what is wrong."""
        self.count += 1
        if self.count <= _KEEP:
            self.problems.append(text)

    def reach(self, number: int, count: int) -> Optional[str]:
        """Mark pages as reached; what is wrong when they are out of range or were reached before."""
        if number < FIRST_PAGE or number + count > len(self.live):
            return f"refers to page {number}, the pages are {FIRST_PAGE} to {len(self.live) - 1}"
        if self.live.find(1, number, number + count) >= 0:
            return f"page {number} is in use twice"
        self.live[number : number + count] = b"\1" * count
        return None
