"""An LMDB data file as a row of pages, read without LMDB: a damaged file cannot crash the process here.

LMDB maps the file, so that a page that is missing ends the process by a signal, and trusts what the pages say. This
reads with ``seek`` and ``read``, and believes nothing. It knows the pages of LMDB 0.9 and 1.0 on this machine's byte
order and 64 bit, and none of LMDB's duplicates, which zlmdb does not use.

The layout of the pages is that of LMDB's ``mdb.c``: https://git.openldap.org/openldap/openldap/-/tree/mdb.RE/0.9
"""

from __future__ import annotations

import os
import struct
import sys
from operator import attrgetter
from typing import BinaryIO, Optional

from ... import errors
from ...namedtuples import NamedTuple

MAGIC = 0xBEEFC0DE
NO_PAGE = (1 << 64) - 1
FIRST_PAGE = 2  # after the two meta pages
DEEPEST = 32  # levels that a cursor of LMDB can go down
BEYOND = "beyond the end of the file"

BRANCH, LEAF, OVERFLOW, META, DIRTY = 0x01, 0x02, 0x04, 0x08, 0x10
BIG, SUBTREE = 0x01, 0x02
INTEGERS, SINGLE_FILE = 0x08, 0x4000  # flags of the tree of free pages; the second says that there is no directory

U64 = struct.Struct("=Q")
_U16 = struct.Struct("=H")
TREE = struct.Struct("=IHHQQQQQ")

_ORDER = sys.byteorder
_HEAD = 2 * 4096  # bytes that are read at first, both meta pages in most files
_PAGE_SIZES = tuple(1 << bits for bits in range(8, 17))
_FRONT_0_9, _FRONT_1_0 = struct.Struct("=QxxH"), struct.Struct("=QQxxH")  # number, transaction, flags of a page
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

    def describes(self) -> tuple[object, ...]:
        """The state that it describes, without the number of the transaction."""
        return self.free, self.main, self.last


class PageFile:
    """An LMDB data file. *metas* are the committed states that can be read, the newest first; *faults* the others.

    *doubtful* are those whose number cannot be right, with all else in order: what is salvaged may be reached by them.
    *roots* are the bytes of both.
    Raises `InvalidDatabase` for a file that is not LMDB's, or of another kind of machine, `CorruptDatabase` where
    neither of the two can be read.
    """

    def __init__(self, file: BinaryIO, path: str) -> None:
        self.data = file
        self.path = path
        self.size = os.fstat(file.fileno()).st_size
        self._head = self.bytes_at(0, _HEAD)
        self.header = self._header()
        self.format, self._number = _FORMATS[self.header]
        self.base = self.header if self.header == 24 else 0
        self.metas: list[Meta] = []
        self.doubtful: list[Meta] = []
        self.faults: list[str] = []
        self.page_size = self._page_size()
        self.roots = self.bytes_at(0, 2 * self.page_size)  # at once: a commit in between must not show
        for number in (0, 1):
            meta = self._meta(number, self.roots[number * self.page_size : (number + 1) * self.page_size])
            if meta is not None:
                self.metas.append(meta)
        self.metas.sort(key=attrgetter("txnid"), reverse=True)
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
        data = self.bytes_at(number * self.page_size, size)
        return data if len(data) == size else None

    def unsound(self, number: int, page: bytes, txnid: int) -> Optional[str]:
        """What says that *page* is not page *number* of the state of transaction *txnid*, or is not committed."""
        if self.base:
            stored, written, flags = _FRONT_1_0.unpack_from(page)
        else:
            (stored, flags), written = _FRONT_0_9.unpack_from(page), 0
        if stored != number:
            return f"page {number} says it is page {stored}"
        if written > txnid:
            return f"page {number} is of transaction {written}, which was not committed"
        if flags & DIRTY and not self.base:
            return f"page {number} was not written out"
        return None

    def flags(self, page: bytes) -> int:
        """The flags in the header of *page*."""
        return _U16.unpack_from(page, self.header - 6)[0]

    def bytes_at(self, offset: int, size: int) -> bytes:
        """What the file has of *size* bytes from *offset* on. Raises `DiskError` if the disk does not give them."""
        try:
            self.data.seek(offset)
            data = self.data.read(size)
            while len(data) < size:  # one call reads 2 GiB at most
                more = self.data.read(size - len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise errors.DiskError(
                f"{self.path!r} could not be read: {error}: salvage what is left with zlmdb.Database.salvage(), or "
                f"restore a backup",
                path=self.path,
            ) from error
        return data

    def _header(self) -> int:
        for page in (0, *_PAGE_SIZES):  # the first meta page may be the damaged one
            found = self.bytes_at(page, 64) if page else self._head
            for size in _FORMATS:
                if found[size : size + 4] == MAGIC.to_bytes(4, _ORDER):
                    return size
        if not self._head:
            raise errors.InvalidDatabase(
                f"{self.path!r} is empty: check the path; to open it writable with a schema makes a new database in it",
                path=self.path,
            )
        raise errors.InvalidDatabase(
            f"{self.path!r} is no LMDB data file of this kind of machine, it begins with {self._head[:32]!r}: check "
            "the path; a new database takes a path where there is no file",
            path=self.path,
        )

    def _page_size(self) -> int:
        """The page size; where the first meta page lies about it, the one at which the second is found."""
        at = self.header + 24
        claimed = int.from_bytes(self._head[at : at + 4], _ORDER)
        for size in (claimed, *_PAGE_SIZES):
            if size in _PAGE_SIZES and self._is_meta(self.bytes_at(size, self.header + 136)):
                return size
        if claimed in _PAGE_SIZES and self._is_meta(self._head):
            return claimed
        raise errors.CorruptDatabase(f"{self.path!r}: its second meta page is not found: restore a backup")

    def _is_meta(self, page: bytes) -> bool:
        if len(page) < self.header + 136:
            return False
        magic, version = struct.unpack_from("=II", page, self.header)
        return bool(magic == MAGIC and version == self._number and self.flags(page) == META)

    def _meta(self, number: int, page: bytes) -> Optional[Meta]:
        if len(page) < self.page_size or not self._is_meta(page):
            self.faults.append(f"meta page {number} is none")
            return None
        start = self.header + 24
        free, main = Tree(*TREE.unpack_from(page, start)), Tree(*TREE.unpack_from(page, start + 48))
        last, txnid = struct.unpack_from("=QQ", page, start + 96)
        if free.pad != self.page_size:
            self.faults.append(f"meta page {number} claims a page size of {free.pad}, not {self.page_size}")
            return None
        # A forged number must not make anyone allocate for it. The file is made longer before a page is used.
        if not 1 <= last <= 2 * self.size // self.page_size + (1 << 20):
            self.faults.append(f"meta page {number} claims {last} pages, the file has {self.size} bytes")
            return None
        meta = Meta(number, free, main, last, txnid, page)
        if U64.unpack_from(page, 0)[0] != number or (txnid and txnid % 2 != number):
            self.faults.append(f"meta page {number} has another page's number, or transaction {txnid}")
            self.doubtful.append(meta)
            return None
        return meta
