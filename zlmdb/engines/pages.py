"""Reading an LMDB data file page by page, without LMDB: a damaged file cannot crash the process here.

LMDB maps the file, so that a page that is missing ends the process by a signal, and trusts what the pages say. This
reads with ``seek`` and ``read``, believes nothing, and says what is wrong. It knows the pages of LMDB 0.9 and 1.0 on
this machine's byte order and 64 bit, and none of LMDB's duplicates, which zlmdb does not use.

The layout of the pages is that of LMDB's ``mdb.c``: https://git.openldap.org/openldap/openldap/-/tree/mdb.RE/0.9
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple, Optional

from .. import errors

MAGIC = 0xBEEFC0DE
NO_PAGE = (1 << 64) - 1
FIRST_PAGE = 2  # after the two meta pages
BEYOND = "beyond the end of the file"

BRANCH, LEAF, OVERFLOW, META, DIRTY = 0x01, 0x02, 0x04, 0x08, 0x10
BIG, SUBTREE = 0x01, 0x02
INTEGERS = 0x08

_ORDER = sys.byteorder
_KEEP = 200  # problems kept in words; the others are counted
_DEEPEST = 32
_BLOCK = 1 << 20
_PAGE_SIZES = tuple(1 << bits for bits in range(8, 17))
_NODE = struct.Struct("=HHHH")
_U64 = struct.Struct("=Q")
_TREE = struct.Struct("=IHHQQQQQ")
_FORMATS = {16: ("0.9", 1), 24: ("1.0", 3)}  # by the size of a page header: the format, and its number in the file


class Tree(NamedTuple):
    """What a file records of one B-tree: page counts, entries, and the page of its root."""

    pad: int
    flags: int
    depth: int
    branches: int
    leaves: int
    overflows: int
    entries: int
    root: int


class Meta(NamedTuple):
    """One of the two meta pages: the roots of a committed state. *last* is the greatest page number in use.

    *page* are the bytes that this was read from: a moment later, the file may have those of another commit.
    """

    number: int
    free: Tree
    main: Tree
    last: int
    txnid: int
    page: bytes


class Record(NamedTuple):
    """An entry of a tree. *value*: None when it cannot be read or was not asked for; *tree*: of a sub-database."""

    key: bytes
    value: Optional[bytes]
    tree: Optional[Tree]


class PageFile:
    """An LMDB data file. *metas* are the committed states that can be read, the newest first; *faults* the others.

    Raises `InvalidDatabase` for a file that is not LMDB's, or of another kind of machine.
    """

    def __init__(self, file: BinaryIO, path: str) -> None:
        self._file = file
        self.path = path
        self.size = os.fstat(file.fileno()).st_size
        self.header = self._header()
        self.format, self._number = _FORMATS[self.header]
        self.base = self.header if self.header == 24 else 0
        self.metas: list[Meta] = []
        self.faults: list[str] = []
        self.page_size = self._page_size()
        for number in (0, 1):
            meta = self._meta(number)
            if meta is not None:
                self.metas.append(meta)
        self.metas.sort(key=lambda meta: -meta.txnid)
        # Once more: commits make the file longer, and then name the pages.
        self.size = os.fstat(file.fileno()).st_size
        if not self.metas:
            raise errors.CorruptDatabase(
                f"{path!r}: neither of its two meta pages can be read ({'; '.join(self.faults)}): restore a backup",
                path=path,
            )

    def read(self, number: int, count: int = 1) -> Optional[bytes]:
        """The bytes of *count* pages from page *number* on; None where the file has not all of them."""
        size = self.page_size * count
        if number < 0 or (number + count) * self.page_size > self.size:
            return None
        self._file.seek(number * self.page_size)
        data = self._file.read(size)
        return data if len(data) == size else None

    def _header(self) -> int:
        head = b""
        for page in (0, *_PAGE_SIZES):  # the first meta page may be the damaged one
            self._file.seek(page)
            found = self._file.read(64)
            head = head or found
            for size in _FORMATS:
                if found[size : size + 4] == MAGIC.to_bytes(4, _ORDER):
                    return size
        raise errors.InvalidDatabase(
            f"{self.path!r} is no LMDB data file of this kind of machine: it begins {head[:32].hex() or 'nothing'}",
            path=self.path,
        )

    def _page_size(self) -> int:
        """The page size; where the first meta page lies about it, the one at which the second is found."""
        for size in (self._claimed(), *_PAGE_SIZES):
            if size in _PAGE_SIZES and self._is_meta(size, size):
                return size
        raise errors.CorruptDatabase(f"{self.path!r}: its second meta page is not found: restore a backup")

    def _claimed(self) -> int:
        self._file.seek(self.header + 24)
        return int.from_bytes(self._file.read(4), _ORDER)

    def _is_meta(self, offset: int, page_size: int) -> bool:
        self._file.seek(offset)
        page = self._file.read(self.header + 136)
        if len(page) < self.header + 136:
            return False
        magic, version = struct.unpack_from("=II", page, self.header)
        return bool(magic == MAGIC and version == self._number and self.flags(page) & META)

    def _meta(self, number: int) -> Optional[Meta]:
        page = self.read(number)
        if page is None or not self._is_meta(number * self.page_size, self.page_size):
            self.faults.append(f"meta page {number} is none")
            return None
        start = self.header + 24
        free, main = Tree(*_TREE.unpack_from(page, start)), Tree(*_TREE.unpack_from(page, start + 48))
        last, txnid = struct.unpack_from("=QQ", page, start + 96)
        meta = Meta(number, free, main, last, txnid, page)
        if free.pad != self.page_size:
            self.faults.append(f"meta page {number} claims a page size of {free.pad}, not {self.page_size}")
            return None
        if _U64.unpack_from(page, 0)[0] != number or (txnid and txnid % 2 != number):
            self.faults.append(f"meta page {number} has another page's number, or transaction {txnid}")
            return None
        # A forged number must not make anyone allocate for it. The file is made longer before a page is used.
        if not 1 <= last <= 2 * self.size // self.page_size + (1 << 20):
            self.faults.append(f"meta page {number} claims {last} pages, the file has {self.size} bytes")
            return None
        return meta

    def flags(self, page: bytes) -> int:
        """The flags in the header of *page*."""
        return int.from_bytes(page[self.header - 6 : self.header - 4], _ORDER)


class Walk:
    """One pass over the trees of one committed state: the records that can be reached, and what is wrong on the way.

    *problems* are in words, at most 200 of them; *count* is how many there were. *live* marks the pages reached.
    """

    def __init__(self, file: PageFile, meta: Meta) -> None:
        self.file = file
        self.meta = meta
        self.problems: list[str] = []
        self.count = 0
        self.live = bytearray(meta.last + 1)

    def problem(self, text: str) -> None:
        """Note what is wrong."""
        self.count += 1
        if self.count <= _KEEP:
            self.problems.append(text)

    def records(self, name: str, tree: Tree, *, values: bool = True) -> Iterator[Record]:
        """The records of *tree*, in order, past what cannot be read. Without *values* long ones are not read."""
        if tree.root == NO_PAGE:
            if tree.depth or tree.branches or tree.leaves or tree.overflows or tree.entries:
                self.problem(f"{name}: no root, but counts of pages or entries")
            return
        free = tree is self.meta.free  # whose keys are integers, and whose padding is the page size
        if (tree.flags & ~INTEGERS) if free else (tree.flags or tree.pad):
            self.problem(f"{name}: has the flags {tree.flags:#x} and the padding {tree.pad}, which zlmdb does not use")
            return
        yield from _TreeWalk(self, name, tree, values).records()

    def claim(self, name: str, number: int, count: int = 1) -> bool:
        """Mark pages as reached; False when they are out of range or were reached before."""
        if number < FIRST_PAGE or number + count > len(self.live):
            self.problem(f"{name}: refers to page {number}, the pages are {FIRST_PAGE} to {len(self.live) - 1}")
            return False
        if any(self.live[number : number + count]):
            self.problem(f"{name}: page {number} is in use twice")
            return False
        self.live[number : number + count] = b"\1" * count
        return True


class _TreeWalk:
    """The pass over one tree."""

    def __init__(self, walk: Walk, name: str, tree: Tree, values: bool) -> None:
        self._walk = walk
        self._file = walk.file
        self._name = name
        self._tree = tree
        self._values = values
        self._counts = {"depth": 0, "branch pages": 0, "leaf pages": 0, "overflow pages": 0, "entries": 0}
        self._last: Optional[bytes] = None
        self._integers = tree is walk.meta.free

    def records(self) -> Iterator[Record]:
        """The records, then a comparison of what was found with what the tree says of itself."""
        counts = self._counts
        before = self._walk.count
        stack: list[tuple[int, int, bytes]] = [(self._tree.root, 1, b"")]
        while stack:
            number, depth, least = stack.pop()
            page = self._page(number)
            if page is None:
                continue
            counts["depth"] = max(counts["depth"], depth)
            kind = self._file.flags(page)
            if kind == LEAF:
                counts["leaf pages"] += 1
                yield from self._leaf(number, page, least)
            elif kind == BRANCH and depth < _DEEPEST:
                counts["branch pages"] += 1
                children = list(self._children(number, page, least))
                stack.extend((child, depth + 1, separator) for child, separator in reversed(children))
            else:
                self._problem(f"page {number} is neither a branch nor a leaf (flags {self._file.flags(page):#x})")
        if self._walk.count == before:  # else they cannot agree
            self._compare()

    def _problem(self, text: str) -> None:
        self._walk.problem(f"{self._name}: {text}")

    def _compare(self) -> None:
        tree = self._tree
        said = (tree.depth, tree.branches, tree.leaves, tree.overflows, tree.entries)
        for (what, found), recorded in zip(self._counts.items(), said):
            if found != recorded:
                self._problem(f"{found} {what} found, {recorded} recorded")

    def _page(self, number: int) -> Optional[bytes]:
        if not self._walk.claim(self._name, number):
            return None
        page = self._file.read(number)
        if page is None:
            self._problem(f"page {number} is {BEYOND}")
            return None
        return page if self._is_sound(number, page) else None

    def _is_sound(self, number: int, page: bytes) -> bool:
        """Whether a page is the one it should be, and was committed. Its records are not to be believed otherwise."""
        stored = _U64.unpack_from(page, 0)[0]
        if stored != number:
            self._problem(f"page {number} says it is page {stored}")
            return False
        if self._file.header == 24:
            written = _U64.unpack_from(page, 8)[0]
            if written > self._walk.meta.txnid:
                self._problem(f"page {number} is of transaction {written}, which was not committed")
                return False
        elif self._file.flags(page) & DIRTY:
            self._problem(f"page {number} was not written out")
            return False
        return True

    def _nodes(self, number: int, page: bytes) -> Iterator[tuple[int, int, int, int, bytes]]:
        """Of each node: three numbers of its header, where its data begin, and its key."""
        header, base, size = self._file.header, self._file.base, self._file.page_size
        lower, upper = struct.unpack_from("=HH", page, header - 4)
        if not header - base <= lower <= upper <= size - base or (lower - header + base) % 2:
            self._problem(f"page {number} has its bounds wrong ({lower}, {upper})")
            return
        for (offset,) in struct.iter_unpack("=H", page[header : lower + base]):
            start = offset + base
            if start + 8 > size or offset < upper:
                self._problem(f"page {number} has a record outside")
                continue
            low, high, flags, length = _NODE.unpack_from(page, start)
            if start + 8 + length > size:
                self._problem(f"page {number} has a key that is longer than the page")
                continue
            yield low, high, flags, start + 8 + length, page[start + 8 : start + 8 + length]

    def _children(self, number: int, page: bytes, least: bytes) -> Iterator[tuple[int, bytes]]:
        last: Optional[bytes] = None
        empty = True
        for low, high, flags, _, key in self._nodes(number, page):
            # The first separator is not stored: it is that of the page above.
            separator = least if empty else key
            if last is not None and not self._ascends(last, separator):
                self._problem(f"branch page {number} is not in order")
            empty, last = False, separator
            yield low | high << 16 | flags << 32, separator
        if empty:
            self._problem(f"branch page {number} is empty")

    def _ascends(self, first: bytes, second: bytes) -> bool:
        if self._integers and len(first) == len(second) == 8:
            return bool(_U64.unpack(first)[0] < _U64.unpack(second)[0])
        return first < second

    def _leaf(self, number: int, page: bytes, least: bytes) -> Iterator[Record]:
        last, ascends, counts = self._last, self._ascends, self._counts
        if last is not None and least and not ascends(last, least):
            self._problem(f"a key before leaf page {number} belongs behind it")
        if self._nodes_least(number, page, least):
            self._problem(f"leaf page {number} begins before its separator")
        even = self._file.header == 24
        for low, high, flags, start, key in self._nodes(number, page):
            if last is not None and not ascends(last, key):
                self._problem(f"leaf page {number} is not in order")
            last = key
            counts["entries"] += 1
            where = start + (len(key) & 1) if even else start
            yield self._record(number, page, key, flags, where, low | high << 16)
        self._last = last

    def _nodes_least(self, number: int, page: bytes, least: bytes) -> bool:
        if not least:
            return False
        first = next(self._nodes(number, page), None)
        return first is not None and first[4] != least and not self._ascends(least, first[4])

    def _record(self, number: int, page: bytes, key: bytes, flags: int, where: int, length: int) -> Record:
        if flags & ~(BIG | SUBTREE):
            self._problem(f"page {number}: the record {key[:40]!r} has the flags {flags:#x}, which zlmdb does not use")
            return Record(key, None, None)
        if flags & BIG:
            return Record(key, self._long(number, page, key, where, length), None)
        if where + length > self._file.page_size:
            self._problem(f"page {number}: the value of {key[:40]!r} is longer than the page")
            return Record(key, None, None)
        value = page[where : where + length]
        if flags & SUBTREE:
            if length != _TREE.size:
                self._problem(f"page {number}: {key[:40]!r} is no sub-database")
                return Record(key, None, None)
            return Record(key, value, Tree(*_TREE.unpack(value)))
        return Record(key, value, None)

    def _long(self, number: int, page: bytes, key: bytes, where: int, length: int) -> Optional[bytes]:
        """A value on pages of its own. They may be more than it needs: LMDB puts a shorter value where a longer was.

        lmdb.verify takes that for damage (a value replaced twice in one transaction shows it).
        """
        file, size = self._file, self._file.page_size
        if where + (24 if file.header == 24 else 8) > size:
            self._problem(f"page {number}: {key[:40]!r} has no room for the page of its value")
            return None
        (first,) = _U64.unpack_from(page, where)
        needed = (file.header - 1 + length) // size + 1
        head = file.read(first) if FIRST_PAGE <= first < len(self._walk.live) else None
        if head is None:
            self._problem(f"the value of {key[:40]!r} is on page {first}, {BEYOND}")
            return None
        (pages,) = struct.unpack_from("=I", head, file.header - 4)
        if file.flags(head) != OVERFLOW or pages < needed:
            self._problem(f"the value of {key[:40]!r} is not on page {first}")
            return None
        if not self._is_sound(first, head) or not self._walk.claim(self._name, first, pages):
            return None
        self._counts["overflow pages"] += pages
        if (first + needed) * size > file.size:
            self._problem(f"the value of {key[:40]!r} is {BEYOND}")
            return None
        if not self._values:
            return None
        data = file.read(first, needed)
        return None if data is None else data[file.header : file.header + length]


def copy_pages(path: str, target: BinaryIO, told: Callable[[int, int], object]) -> None:
    """Write the newest committed state of the data file *path* to *target*, page by page, unused ones too.

    A read transaction has to be open meanwhile. LMDB's own copy of this kind waits for the writer, and on PyPy with a
    lock held that the writer needs.
    """
    with open(path, "rb") as data:
        file = PageFile(data, path)
        meta = file.metas[0]
        size = file.page_size
        pages = [_blank(file, meta.page, 1 - meta.number), meta.page]
        target.write(b"".join(pages if meta.number else pages[::-1]))
        total = (meta.last + 1) * size
        data.seek(2 * size)
        done = 2 * size
        while block := data.read(min(_BLOCK, total - done)):
            target.write(block)
            done += len(block)
            told(done, total)


def _blank(file: PageFile, page: bytes, number: int) -> bytes:
    """The other meta page of a copy: that of an empty database, which LMDB never chooses."""
    blank, start = bytearray(page), file.header + 24
    _U64.pack_into(blank, 0, number)
    for tree in (start, start + 48):
        pad, flags, *_ = _TREE.unpack_from(page, tree)
        _TREE.pack_into(blank, tree, pad, flags, 0, 0, 0, 0, 0, NO_PAGE)
    struct.pack_into("=QQ", blank, start + 96, 1, 0)
    return bytes(blank)
