"""The records of a data file that can be reached, however damaged it is, and what is wrong on the way.

Where `structure` refuses a page, this takes what it can out of it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, Optional

from ... import errors
from ..damaged import Record
from .nodes import Damage, Node
from .pages import (
    BEYOND,
    BIG,
    BRANCH,
    DEEPEST,
    FIRST_PAGE,
    LEAF,
    NO_PAGE,
    OVERFLOW,
    SUBTREE,
    TREE,
    U64,
    Meta,
    PageFile,
    Tree,
)
from .passes import Pass
from .roots import contradiction, most_likely


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


class LmdbState(Pass):
    """A state that one of the two meta pages leads to. *newest*: no later state can be read."""

    def __init__(self, file: PageFile, meta: Meta) -> None:
        super().__init__(file, meta)
        self.newest = meta is file.metas[0]

    def afresh(self) -> LmdbState:
        """The same state, with nothing of it read yet."""
        return LmdbState(self.file, self.meta)

    def main(self) -> Iterator[Record]:
        """The records of the main database."""
        return self.records("main database", self.meta.main)

    def records(self, name: str, tree: Tree) -> Iterator[Record]:
        """The records of *tree*, in order, past what cannot be read."""
        if tree.root == NO_PAGE:
            if tree.depth or tree.branches or tree.leaves or tree.overflows or tree.entries:
                self.problem(f"{name}: no root, but counts of pages or entries")
            return
        free = tree is self.meta.free  # whose keys are integers, and whose padding is the page size
        if not free and (tree.flags or tree.pad):
            self.problem(f"{name}: has the flags {tree.flags:#x} and the padding {tree.pad}, which zlmdb does not use")
            return
        yield from _TreePass(self, name, tree).records()

    def claim(self, name: str, number: int, count: int = 1) -> bool:
        """Mark pages as reached; False when they are out of range or were reached before."""
        wrong = self.reach(number, count)
        if wrong is not None:
            self.problem(f"{name}: {wrong}")
        return wrong is None


class _TreePass:
    """The pass over one tree."""

    def __init__(self, state: LmdbState, name: str, tree: Tree) -> None:
        self._state = state
        self._file = state.file
        self._nodes = state.nodes
        self._name = name
        self._tree = tree
        self._integers = tree is state.meta.free
        self._entries = 0

    def records(self) -> Iterator[Record]:
        """The records, then a comparison of how many there were with what the tree says of itself."""
        before = self._state.count
        stack = [(self._tree.root, 1)]
        while stack:
            number, level = stack.pop()
            page = self._page(number)
            kind = 0 if page is None else self._file.flags(page)
            if page is None:
                continue
            if kind == LEAF:
                yield from self._leaf(number, page)
            elif kind == BRANCH and level < DEEPEST:
                stack.extend((child, level + 1) for child in reversed(self._children(number, page)))
            else:
                self._problem(f"page {number} is neither a branch nor a leaf (flags {kind:#x})")
        if self._state.count == before and self._entries != self._tree.entries:  # else they cannot agree
            self._problem(f"{self._entries} entries found, {self._tree.entries} recorded")

    def _problem(self, text: str) -> None:
        self._state.problem(f"{self._name}: {text}")

    def _read(self, what: str, number: int, count: int = 1) -> Optional[bytes]:
        """Pages of the file; None where the file or the disk does not have them, which is noted of *what* they are."""
        try:
            data = self._file.read(number, count)
        except errors.DiskError as error:
            self._problem(f"{what} on a part of the disk that could not be read ({error.__cause__})")
            return None
        if data is None:
            self._problem(f"{what} {BEYOND}")
        return data

    def _page(self, number: int) -> Optional[bytes]:
        if not self._state.claim(self._name, number):
            return None
        page = self._read(f"page {number} is", number)
        if page is None:
            return None
        wrong = self._file.unsound(number, page, self._state.meta.txnid)
        if wrong is not None:
            self._problem(wrong)
            return None
        return page

    def _children(self, number: int, page: bytes) -> list[int]:
        try:
            return self._nodes.branch(page, self._integers)[0]
        except Damage as error:
            self._problem(f"page {number} {error}")
            return [node.length | node.flags << 32 for node in self._nodes.loose(page)]

    def _leaf(self, number: int, page: bytes) -> Iterator[Record]:
        try:
            self._nodes.leaf(page, self._integers)
        except Damage as error:
            self._problem(f"page {number} {error}")
        for node in self._nodes.loose(page):
            self._entries += 1
            yield self._record(number, page, node)

    def _record(self, number: int, page: bytes, node: Node) -> Record:
        key, flags, where, length = node
        if flags & ~(BIG | SUBTREE):
            self._problem(f"page {number}: the record {key[:40]!r} has the flags {flags:#x}, which zlmdb does not use")
            return Record(key, None, None)
        if flags & BIG:
            return Record(key, self._long(number, page, node), None)
        if where + length > self._file.page_size:
            self._problem(f"page {number}: the value of {key[:40]!r} is longer than the page")
            return Record(key, None, None)
        value = page[where : where + length]
        if flags & SUBTREE and length != TREE.size:
            self._problem(f"page {number}: {key[:40]!r} is no sub-database")
            return Record(key, None, None)
        return Record(key, value, Tree(*TREE.unpack(value)) if flags & SUBTREE else None)

    def _long(self, number: int, page: bytes, node: Node) -> Optional[bytes]:
        """A value on pages of its own. They may be more than it needs: LMDB puts a shorter value where a longer was."""
        file, key = self._file, node.key[:40]
        if node.where + self._nodes.reference > file.page_size:
            self._problem(f"page {number}: {key!r} has no room for the page of its value")
            return None
        (first,) = U64.unpack_from(page, node.where)
        needed = (file.header - 1 + node.length) // file.page_size + 1
        what = f"the value of {key!r} is on page {first},"
        head = self._read(what, first if FIRST_PAGE <= first < len(self._state.live) else -1)
        if head is None:
            return None
        (pages,) = struct.unpack_from("=I", head, file.header - 4)
        if file.flags(head) != OVERFLOW or pages < needed:
            self._problem(f"the value of {key!r} is not on page {first}")
            return None
        wrong = file.unsound(first, head, self._state.meta.txnid)
        if wrong is not None:
            self._problem(wrong)
            return None
        if not self._state.claim(self._name, first, pages):
            return None
        data = self._read(f"the value of {key!r} is", first, needed)
        return None if data is None else data[file.header : file.header + node.length]
