"""Whether a data file is sound: every page of every tree where it should be, and no page in use twice or lost.

Every node of every page that can be reached is looked at: it lies within the page, overlaps no other, has a sensible
size and flags; keys ascend inside of the pages and across them; trees are as deep and as large as they say. What passes
is safe to hand to LMDB, to read and to write, whoever wrote it. What lmdb.verify takes for damage although it is none,
a value that was replaced by a shorter one in the same transaction, passes, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import repeat
from operator import itemgetter, le
from typing import Optional

from ... import errors
from ..engine import Told
from .access import open_to_read, require_file
from .nodes import Damage, Node
from .pages import (
    BEYOND,
    BIG,
    BRANCH,
    DEEPEST,
    FIRST_PAGE,
    INTEGERS,
    LEAF,
    NO_PAGE,
    OVERFLOW,
    SINGLE_FILE,
    SUBTREE,
    TREE,
    U64,
    Meta,
    PageFile,
    Tree,
)  # fmt: skip
from .passes import Pass
from .roots import contradiction

_EVERY = 2048  # pages between two reports
_BATCH = 50_000  # leaf pages that are read in the order of the file
_RUN = 256  # pages that are read at once, where they follow each other


def check(path: str, told: Optional[Told] = None) -> list[str]:
    """What is wrong with the structure of the data file *path*, in words; empty when nothing is.

    Reads each page once, values with pages of their own only as far as their first page. Of a file that is being
    written to, the caller keeps a read transaction open meanwhile, so that the pages of the state it reads are not used
    again. Raises `InvalidDatabase` when the file is not LMDB's.
    """
    require_file(path)
    with open_to_read(path) as data:
        try:
            file = PageFile(data, path)
        except errors.CorruptDatabase as error:
            return [str(error)]
        wrong = contradiction(file)
        walk = _Check(file, file.metas[0], told)
        walk.run()
        hidden = walk.count - len(walk.problems)
        return ([wrong] if wrong is not None else []) + walk.problems + ([f"and {hidden} more"] if hidden else [])


_Page = tuple[int, int, bytes, Optional[bytes]]
"""A page to look at: its number and level, the least key that it may have, and the one before which its keys end."""


class _Check(Pass):
    """A pass over every page. *live* and *free* mark the pages in use, and not in use."""

    def __init__(self, file: PageFile, meta: Meta, told: Optional[Told]) -> None:
        super().__init__(file, meta)
        self.free = bytearray(meta.last + 1)
        self._told = told
        self._seen = 0

    def run(self) -> None:
        """Look at everything."""
        _TreeCheck(self, "free pages", self.meta.free, integers=True).run()
        main = _TreeCheck(self, "main database", self.meta.main, nested=True)
        main.run()
        for name, tree in main.trees:
            _TreeCheck(self, name, tree).run()
        if not self.count:  # what could not be followed would be missing, too
            self._cover()
        if self._told is not None:
            self._told(len(self.live), len(self.live))

    def claim(self, number: int, count: int = 1) -> Optional[str]:
        """As `reach`, and tell how many there were by now."""
        wrong = self.reach(number, count)
        if wrong is not None:
            return wrong
        self._seen += 1
        if self._told is not None and self._seen % _EVERY == 0:
            self._told(self.live.count(1), len(self.live))
        return None

    def unused(self, key: bytes, value: Optional[bytes]) -> None:
        """Mark the pages that one record of the list of free pages names: their number, and then they, descending."""
        if value is None or len(value) < 8 or len(value) % 8:
            self.problem("free pages: a record is no list of pages")
            return
        (txnid,) = U64.unpack(key)
        count, *pages = struct.unpack(f"={len(value) // 8}Q", value)
        if not 1 <= txnid <= self.meta.txnid or count != len(pages):
            self.problem(f"free pages: the record of transaction {txnid} counts {count} pages and has {len(pages)}")
        elif pages and (any(map(le, pages, pages[1:])) or pages[0] >= len(self.free) or pages[-1] < FIRST_PAGE):
            self.problem(f"free pages: those of transaction {txnid} are out of order, or not in the file")
        else:
            for page in pages:
                if self.free[page]:
                    self.problem(f"free pages: page {page} is named twice")
                self.free[page] = 1

    def _cover(self) -> None:
        """Each page is in use, or free."""
        live, free = self.live, self.free
        both = [page for page, (used, unused) in enumerate(zip(live, free)) if used and unused]
        if both:
            self.problem(f"{len(both)} pages are both in use and free, the first is page {both[0]}")
        lost = len(live) - FIRST_PAGE - live.count(1) - free.count(1) + len(both)
        if lost:
            self.problem(f"{lost} pages are neither in use nor free")


class _TreeCheck:
    """The pass over one tree. *nested*: it may have sub-databases, which are put into *trees*."""

    def __init__(
        self, check: _Check, name: str, tree: Tree, *, integers: bool = False, nested: bool = False
    ) -> None:  # fmt: skip
        self.trees: list[tuple[str, Tree]] = []
        self._check = check
        self._file = check.file
        self._name = name
        self._tree = tree
        self._integers = integers
        self._nested = nested
        self._branches = self._leaves = self._overflows = self._entries = 0

    def run(self) -> None:
        """Look at every page, then compare what was found with what the tree says of itself."""
        tree, before = self._tree, self._check.count
        flags = tree.flags & ~SINGLE_FILE if self._integers else tree.flags
        if flags != (INTEGERS if self._integers else 0) or tree.pad != (self._file.page_size * self._integers):
            self._problem(f"has the flags {tree.flags:#x} and the padding {tree.pad}, which zlmdb does not use")
        elif tree.root == NO_PAGE:
            self._compare(0)
        elif not 1 <= tree.depth <= DEEPEST:
            self._problem(f"is {tree.depth} levels deep")
        else:
            self._pages((tree.root, 1, b"", None))
            if self._check.count == before:  # else they cannot agree
                self._compare(tree.depth)

    def _problem(self, text: str) -> None:
        self._check.problem(f"{self._name}: {text}")

    def _compare(self, depth: int) -> None:
        tree = self._tree
        for what, found, recorded in (
            ("levels", depth, tree.depth),
            ("branch pages", self._branches, tree.branches),
            ("leaf pages", self._leaves, tree.leaves),
            ("overflow pages", self._overflows, tree.overflows),
            ("entries", self._entries, tree.entries),
        ):
            if found != recorded:
                self._problem(f"{found} {what} found, {recorded} recorded")

    def _pages(self, root: _Page) -> None:
        """Look at the pages of the tree: branches as they are met, leaves in the order of the file, many at once."""
        stack, leaves, depth = [root], list[_Page](), self._tree.depth
        while stack:
            expected = stack.pop()
            wrong = self._check.claim(expected[0])
            if wrong is not None:
                self._problem(wrong)
            elif expected[1] < depth:
                page = self._file.read(expected[0])
                self._page(expected, page, stack)
            else:
                leaves.append(expected)
            if leaves and (len(leaves) >= _BATCH or not stack):
                leaves.sort(key=itemgetter(0))
                self._read(leaves)
                leaves.clear()

    def _read(self, leaves: list[_Page]) -> None:
        """Look at leaves, in order; those that follow each other are read at once."""
        size, begin = self._file.page_size, 0
        for index, expected in enumerate(leaves, 1):
            first, count = leaves[begin][0], index - begin
            if index < len(leaves) and count < _RUN and leaves[index][0] == expected[0] + 1:
                continue
            data = self._file.read(first, count)
            for at, one in enumerate(leaves[begin:index]):
                page = self._file.read(one[0]) if data is None else data[at * size : (at + 1) * size]
                self._page(one, page, [])
            begin = index

    def _page(self, expected: _Page, page: Optional[bytes], below: list[_Page]) -> None:
        """Look at one page. All leaves are on the last level, so that a cursor goes as deep as the tree says."""
        number, level = expected[:2]
        wrong = (
            f"page {number} is {BEYOND}" if page is None else self._file.unsound(number, page, self._check.meta.txnid)
        )
        if page is None or wrong is not None:
            self._problem(str(wrong))
            return
        kind, found = LEAF if level == self._tree.depth else BRANCH, self._file.flags(page)
        if found != kind:
            what = "leaf" if kind == LEAF else "branch"
            self._problem(f"page {number} is no {what} (flags {found:#x}), on level {level}")
            return
        try:
            self._leaf(expected, page) if kind == LEAF else below.extend(self._branch(expected, page))
        except Damage as error:
            self._problem(f"page {number} {error}")

    def _branch(self, expected: _Page, page: bytes) -> Iterable[_Page]:
        """The pages that a branch leads to."""
        _, level, least, bound = expected
        children, keys = self._check.nodes.branch(page, self._integers)
        self._within(expected, keys[1], keys[-1])
        if least and not self._before(least, keys[1]):
            raise Damage("begins its second page at the key of the first one")
        self._branches += 1
        keys[0] = least
        return zip(children, repeat(level + 1), keys, [*keys[1:], bound])

    def _leaf(self, expected: _Page, page: bytes) -> None:
        keys, nodes = self._check.nodes.leaf(page, self._integers)
        self._within(expected, keys[0], keys[-1])
        self._leaves += 1
        self._entries += len(keys)
        for node in nodes:
            self._node(page, node)

    def _within(self, expected: _Page, first: bytes, last: bytes) -> None:
        """Raise `Damage` unless the keys from *first* to *last* belong to a page."""
        _, _, least, bound = expected
        if least and self._before(first, least):
            raise Damage("begins before the key that leads to it")
        if bound is not None and not self._before(last, bound):
            raise Damage("ends behind the key at which the next one begins")

    def _before(self, key: bytes, other: bytes) -> bool:
        if self._integers:
            return bool(U64.unpack(key)[0] < U64.unpack(other)[0])
        return key < other

    def _node(self, page: bytes, node: Node) -> None:
        """Look at what a record refers to: pages of its own, free pages or a sub-database."""
        value: Optional[bytes] = page[node.where : node.where + node.length]
        if node.flags & BIG:
            value = self._big(page, node)
        if node.flags & SUBTREE:
            if not self._nested:
                raise Damage("has a sub-database, which only the main database has")
            name = node.key.rstrip(b"\0").decode(errors="backslashreplace")
            self.trees.append((name, Tree(*TREE.unpack(value or b""))))
        elif self._integers:
            self._check.unused(node.key, value)

    def _big(self, page: bytes, node: Node) -> Optional[bytes]:
        """The value of a list of free pages, that of others is not read.

        There may be more pages than it needs: LMDB puts a shorter value where a longer was.
        """
        file, key, (first,) = self._file, node.key[:40], U64.unpack_from(page, node.where)
        needed = (file.header - 1 + node.length) // file.page_size + 1
        head = file.read(first) if FIRST_PAGE <= first < len(self._check.live) else None
        if head is None:
            self._problem(f"the value of {key!r} is on page {first}, {BEYOND}")
            return None
        (count,) = struct.unpack_from("=I", head, file.header - 4)
        told = count if file.header == 16 else U64.unpack_from(page, node.where + 16)[0]
        if file.flags(head) != OVERFLOW or count < needed or count != told:
            self._problem(f"the value of {key!r} is not on page {first}")
            return None
        wrong = file.unsound(first, head, self._check.meta.txnid) or self._check.claim(first, count)
        if wrong is None and (first + needed) * file.page_size > file.size:
            wrong = f"the value of {key!r} is {BEYOND}"
        if wrong is not None:
            self._problem(wrong)
            return None
        self._overflows += count
        data = file.read(first, needed) if self._integers else None
        return None if data is None else data[file.header : file.header + node.length]
