"""Whether a data file is sound: every page of every tree where it should be, and no page in use twice or lost.

What lmdb.verify checks, without its known false alarm: it takes a value that was replaced by a shorter one in the same
transaction for damage. A file that passes is safe to hand to LMDB, whoever wrote it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from typing import Optional

from .. import errors
from .pages import BEYOND, FIRST_PAGE, Meta, PageFile, Walk

Told = Callable[[int, int], object]
"""Is told how many pages were looked at, and how many there are."""

_EVERY = 2048  # pages between two reports


def check(path: str, told: Optional[Told] = None) -> list[str]:
    """What is wrong with the structure of the data file *path*, in words; empty when nothing is.

    Reads each page once. Of a file that is being written to, the caller keeps a read transaction open meanwhile, so
    that the pages of the state it reads are not used again. Raises `InvalidDatabase` when the file is not LMDB's,
    `CorruptDatabase` when nothing of it can be read.
    """
    with open(path, "rb") as data:
        file = PageFile(data, path)
        walk = Walk(file, file.metas[0])
        for fault in file.faults:
            walk.problem(fault)
        if not file.faults or file.metas[0].txnid > 0:
            _check(walk, file.metas[0], told)
        hidden = walk.count - len(walk.problems)
        return walk.problems + ([f"and {hidden} problems more"] if hidden else [])


def _check(walk: Walk, meta: Meta, told: Optional[Told]) -> None:
    total = len(walk.live)
    free = bytearray(total)
    for record in walk.records("free pages", meta.free):
        _free(walk, free, record.key, record.value)
    trees = [("main database", meta.main)]
    while trees:
        name, tree = trees.pop()
        for count, record in enumerate(walk.records(name, tree, values=False)):
            if record.tree is not None:
                trees.append((record.key.rstrip(b"\0").decode(errors="backslashreplace"), record.tree))
            if told is not None and count % _EVERY == 0:
                told(walk.live.count(1), total)
    _cover(walk, free)
    if told is not None:
        told(total, total)


def _free(walk: Walk, free: bytearray, key: bytes, value: Optional[bytes]) -> None:
    """Mark the pages that one record of the list of free pages names: their number, and then they, descending."""
    if value is None or len(key) != 8 or len(value) < 8 or len(value) % 8:
        walk.problem("free pages: a record is no list of pages")
        return
    (txnid,) = struct.unpack("=Q", key)
    count, *pages = struct.unpack(f"={len(value) // 8}Q", value)
    if not 1 <= txnid <= walk.meta.txnid or count != len(pages):
        walk.problem(f"free pages: the record of transaction {txnid} counts {count} pages and has {len(pages)}")
        return
    for page, following in zip(pages, [*pages[1:], -1]):
        if page <= following or not FIRST_PAGE <= page < len(free):
            walk.problem(f"free pages: page {page} of transaction {txnid} is out of order, or not in the file")
        elif free[page]:
            walk.problem(f"free pages: page {page} is named twice")
        else:
            free[page] = 1


def _cover(walk: Walk, free: bytearray) -> None:
    """Each page is in use, or free."""
    if walk.count:
        return  # what could not be followed is missing here, too
    pages = range(FIRST_PAGE, len(free))
    both = [page for page in pages if free[page] and walk.live[page]]
    if both:
        walk.problem(f"{len(both)} pages are both in use and free, the first is page {both[0]}")
    lost = sum(1 for page in pages if not (free[page] or walk.live[page]))
    if lost:
        walk.problem(f"{lost} pages are neither in use nor free")


def check_length(path: str) -> None:
    """Raise `CorruptDatabase` when pages that are in use are missing at the end of the file: LMDB would crash on them.

    O(1), unless the file is shorter than its last page number says, which is rare and may be in order.
    """
    with open(path, "rb") as data:
        try:
            file = PageFile(data, path)
        except errors.InvalidDatabase:
            return  # LMDB has more to say
        last = file.metas[0].last
        size = os.fstat(data.fileno()).st_size  # now: a writer makes the file longer before it says so
        if (last + 1) * file.page_size <= size:
            return
        wrong = [text for text in check(path) if BEYOND in text]  # the rest may be of a writer at work
        if wrong:
            raise errors.CorruptDatabase(
                f"{path!r} is truncated: it has {size} bytes, its {last + 1} pages take "
                f"{(last + 1) * file.page_size} ({wrong[0]}): restore a backup, or salvage what is left with "
                f"zlmdb.salvage()",
                path=path,
                size=size,
                limit=(last + 1) * file.page_size,
            )
