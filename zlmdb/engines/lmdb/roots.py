"""The two meta pages of a data file, of which the one with the greater number of a transaction leads to the data.

Each commit writes one of them, in turn, so that they are always those of the last two transactions. LMDB believes the
greater number, whatever else the page says: one bit of it, changed in the page that is out of date, brings an old state
back, or an empty one where the other page of a copy describes nothing. Here the two pages are compared.
"""

from __future__ import annotations

import os
import struct
import time
from typing import BinaryIO, Optional

from ... import errors
from ..engine import Told
from .pages import BRANCH, DEEPEST, FIRST_PAGE, LEAF, NO_PAGE, U64, Meta, PageFile

_TRIES = 20
_PAUSE = 0.0005  # seconds
_BLOCK = 1 << 20
_AT_TXNID = 24 + 104  # bytes behind the header of a meta page


def contradiction(file: PageFile) -> Optional[str]:
    """Why the two meta pages of *file* cannot both be true, in words; None where they can.

    Where a program commits meanwhile, it reads them again; one that does so all the time leaves no time to doubt it.
    """
    for _ in range(_TRIES):
        wrong = _contradiction(file)
        if wrong is None:
            return None
        again = PageFile(file.data, file.path)
        if again.roots == file.roots:
            return wrong
        file = again
        time.sleep(_PAUSE)
    return None


def _contradiction(file: PageFile) -> Optional[str]:
    if file.faults:
        return "; ".join(file.faults)
    newest, other = file.metas
    numbers = f"meta pages of transactions {newest.txnid} and {other.txnid}"
    same = newest.describes() == other.describes()
    # Where the first or second commit of a file cannot write its meta page, LMDB gives that back its number 0 and the
    # last page of an empty file, and not what it leads to.
    unwritten = other.txnid == 0 and other.last < FIRST_PAGE
    first = newest.txnid == 0 and (same or (unwritten and newest.main.root == newest.free.root == NO_PAGE))
    if newest.txnid != other.txnid + 1 and not first:
        return f"its {numbers} are not those of two commits, one after the other"
    if newest.free.flags != other.free.flags:
        return f"its {numbers} have the flags {newest.free.flags:#x} and {other.free.flags:#x}"
    if newest.last < other.last:
        return f"of its {numbers}, the newer one knows {newest.last + 1} pages, the older one {other.last + 1}"
    if same or unwritten:
        return None
    # Whatever a commit changes in what is there, it frees pages of the state before it, under its own number. In the
    # list of the older state there may be anything: after a power cut its pages may be in use again, and where writing
    # a meta page fails, LMDB gives it back its number, and not what it leads to.
    if other.main.root != NO_PAGE and last_freed(file, newest) != newest.txnid:
        return f"of its {numbers}, the newer one has freed no page of the older one"
    return None


def last_freed(file: PageFile, meta: Meta) -> int:
    """The number of the last transaction that freed pages, in the list of a state; 0 for none.

    NO_PAGE where it cannot be read. O(depth of the list).
    """
    number = meta.free.root
    if number == NO_PAGE:
        return 0
    for _ in range(DEEPEST):
        page = file.read(number) if FIRST_PAGE <= number <= meta.last else None
        if page is None or file.unsound(number, page, NO_PAGE) is not None:
            return NO_PAGE
        try:
            kind, key, number = _last_node(file, page)
        except struct.error:
            return NO_PAGE
        if kind == LEAF:
            return int(U64.unpack(key)[0]) if len(key) == 8 else NO_PAGE
        if kind != BRANCH:
            return NO_PAGE
    return NO_PAGE


def _last_node(file: PageFile, page: bytes) -> tuple[int, bytes, int]:
    """Of the last node of a page: the kind of the page, its key, and the page that it leads to from a branch."""
    (lower,) = struct.unpack_from("=H", page, file.header - 4)
    (offset,) = struct.unpack_from("=H", page, max(lower + file.base - 2, file.header))
    low, high, top, length = struct.unpack_from("=HHHH", page, offset + file.base)
    start = offset + file.base + 8
    return file.flags(page), page[start : start + length], low | high << 16 | top << 32


def most_likely(file: PageFile) -> list[Meta]:
    """The states of a file, the one to be believed first; where the numbers cannot be right, that is the fullest."""
    try:
        if not file.faults and _contradiction(file) is None:
            return file.metas
    except errors.DiskError:  # of the list of free pages, which leads to no record
        return file.metas

    def likely(meta: Meta) -> tuple[int, int, int]:
        freed = last_freed(file, meta)
        return (-1 if freed == NO_PAGE else freed), meta.last, meta.txnid

    return sorted([*file.metas, *file.doubtful], key=likely, reverse=True)


def twin(file: PageFile, meta: Meta) -> bytes:
    """The other meta page for the state of *meta*, as if one more commit had changed nothing.

    With both, damage of either number shows no other state.
    """
    return _numbered(file, meta, 1 - meta.number, meta.txnid + 1)


def _numbered(file: PageFile, meta: Meta, number: int, txnid: int) -> bytes:
    """The meta page *number* for the state of *meta*, as that of transaction *txnid*."""
    page = bytearray(meta.page)
    U64.pack_into(page, 0, number)
    U64.pack_into(page, file.header + _AT_TXNID, txnid)
    return bytes(page)


def finish_copy(target: int, last: int) -> None:
    """Let both meta pages of a copy, the open file *target*, describe what is in it, with numbers from *last* on.

    LMDB describes an empty database in one of them, and begins anew with 1. *last* is the number of the last
    transaction of the original: what change feeds have recorded by such a number is that of no other one then.
    """
    with os.fdopen(target, "r+b", buffering=0, closefd=False) as data:
        file = PageFile(data, "the copy")
        newest = file.metas[0]
        newest = newest._replace(txnid=last + (last + newest.number) % 2)  # each page has every second one
        for number, page in (
            (newest.number, _numbered(file, newest, newest.number, newest.txnid)),
            (1 - newest.number, twin(file, newest)),
        ):
            data.seek(number * file.page_size)
            data.write(page)


def copy_pages(path: str, target: BinaryIO, told: Told) -> None:
    """Write the newest committed state of the data file *path* to *target*, page by page, unused ones too.

    A read transaction has to be open meanwhile. LMDB's own copy of this kind waits for the writer, and on PyPy with a
    lock held that the writer needs.
    """
    with open(path, "rb", buffering=0) as data:
        file = PageFile(data, path)
        meta = file.metas[0]
        size = file.page_size
        pages = [twin(file, meta), meta.page]
        target.write(b"".join(pages if meta.number else pages[::-1]))
        total = (meta.last + 1) * size
        done = 2 * size
        while block := file.bytes_at(done, min(_BLOCK, total - done)):
            target.write(block)
            done += len(block)
            told(done, total)
