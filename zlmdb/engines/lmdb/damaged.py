"""What can be read of a damaged data file, as salvaging asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from ..damaged import Record
from .pages import Meta, PageFile, Tree
from .roots import contradiction, most_likely
from .walk import Walk


class LmdbRemains:
    """A data file, read page by page. Raises `InvalidDatabase`, `CorruptDatabase` where there is nothing to read."""

    def __init__(self, data: BinaryIO, path: str) -> None:
        file = PageFile(data, path)
        self.path = path
        self.size = file.size
        self.format = file.format
        self.roots = file.roots
        wrong = contradiction(file)
        self.faults = [] if wrong is None else [wrong]
        self.states = [LmdbState(file, meta) for meta in most_likely(file)]


class LmdbState:
    """A state that one of the two meta pages leads to. *problems*: what was wrong with the pages read so far."""

    def __init__(self, file: PageFile, meta: Meta) -> None:
        self._file = file
        self._meta = meta
        self._walk = Walk(file, meta)
        self.newest = meta is file.metas[0]
        self.problems = self._walk.problems

    def afresh(self) -> LmdbState:
        """The same state, with nothing of it read yet."""
        return LmdbState(self._file, self._meta)

    def main(self) -> Iterator[Record]:
        """The records of the main database."""
        return self._walk.records("main database", self._meta.main)

    def records(self, name: str, tree: Tree) -> Iterator[Record]:
        """Those of a sub-database."""
        return self._walk.records(name, tree)
