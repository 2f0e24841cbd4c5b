"""Whether LMDB can open a data file without a crash: its two meta pages fit each other, and no page is missing."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from itertools import takewhile
from typing import BinaryIO

from ... import errors
from ...systems import fcntl
from .access import open_to_read
from .allocated import IN_USE
from .nodes import Damage, Node, Nodes
from .pages import BEYOND, BIG, BRANCH, FIRST_PAGE, NO_PAGE, U64, PageFile
from .roots import contradiction

_TRIES = 5  # to read the list of free pages, while others write


def check_opening(path: str, lock: str, create: bool) -> int:
    """The number of entries of the main database.

    Raise `InvalidDatabase` for a file that is not LMDB's and has no *lock* file; an empty one is, if *create*. So is
    one that LMDB could not finish, which is emptied.

    Raise `CorruptDatabase` for a file on which LMDB would crash, or go on from a state that is not the last one.

    That is when pages in use are missing at its end, or when its two meta pages cannot both be true. Reads these, and
    the greatest number in their lists of free pages; all of the list where the file is shorter than its last page
    number says; and more only where pages that it lacks are not in that list.
    """
    with open_to_read(path) as data:
        try:
            file = PageFile(data, path)
        except errors.InvalidDatabase:
            # LMDB would say so, too, but leave a new lock file beside it. It makes that one before a new data file, so
            # where there is one, another process may be about to write the meta pages, for which LMDB waits.
            if os.path.exists(lock) or (create and not os.fstat(data.fileno()).st_size):
                return 0
            raise
        if create and file.size < FIRST_PAGE * file.page_size and fcntl is not None and _is_unfinished(file):
            _empty(path, lock)
            return 0
        wrong = contradiction(file)
        if wrong is not None:
            raise errors.CorruptDatabase(
                f"{path!r}: {wrong}: restore a backup, or take out what there is with zlmdb.Database.salvage()",
                path=path,
            )
        _check_length(data, file)
        return file.metas[0].main.entries


def _is_unfinished(file: PageFile) -> bool:
    """Whether LMDB made the file, and wrote the first of its two pages only: the disk was full, or it was killed."""
    meta, least = file.metas[0], FIRST_PAGE * file.page_size
    return file.size < least and not meta.txnid and meta.main.root == meta.free.root == NO_PAGE


def _empty(path: str, lock: str) -> None:
    """Let LMDB make the unfinished data file anew, unless another process makes it just now: that locks *lock*."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, os.stat(path).st_mode & 0o666 | 0o600)
    try:
        with suppress(OSError, errors.InvalidDatabase):  # it is locked; or it was emptied by another process
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, IN_USE)
            with open_to_read(path) as data:
                if _is_unfinished(PageFile(data, path)):
                    os.truncate(path, 0)
    finally:
        os.close(descriptor)


def check_length(path: str) -> None:
    """Raise `CorruptDatabase` where pages in use are missing at the end of the file. Others may write meanwhile."""
    try:
        data = open(path, "rb", buffering=0)  # noqa: SIM115 - only what this raises is another matter
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):  # all else goes on without a further descriptor
            return
        raise
    with data:
        try:
            file = PageFile(data, path)
        except errors.InvalidDatabase:
            return
        _check_length(data, file)


def _check_length(data: BinaryIO, file: PageFile) -> None:
    path, last = file.path, file.metas[0].last
    size = data.seek(0, 2)  # now: a writer makes the file longer before it says so
    for _ in range(_TRIES):
        if (last + 1) * file.page_size <= size or _are_unused(file, size // file.page_size):
            return
        again = PageFile(data, path)
        if again.roots == file.roots:
            break
        file, last, size = again, again.metas[0].last, again.size  # a writer is at work
    from . import structure  # late: hardly any file is truncated

    wrong = [text for text in structure.check(path) if BEYOND in text]  # the rest may be of a writer at work
    if wrong:
        raise errors.CorruptDatabase(
            f"{path!r} is truncated: it has {size} bytes, its {last + 1} pages take "
            f"{(last + 1) * file.page_size} ({wrong[0]}): restore a backup, or salvage what is left with "
            f"zlmdb.Database.salvage()",
            path=path,
            size=size,
            limit=(last + 1) * file.page_size,
        )


def _are_unused(file: PageFile, first: int) -> bool:
    """Whether the list of free pages has all pages from *first* on.

    LMDB does not write what a transaction allocates and frees. If that is at its end, the file stays shorter until
    these pages are used, perhaps for long, and each program looks at it again and again: so only the list is read, and
    of its long values the beginning, where the greatest numbers are.
    """
    meta, nodes, found, seen = file.metas[0], Nodes(file), set[int](), set[int]()
    waiting = [meta.free.root]
    try:
        while waiting:
            number = waiting.pop()
            page = None if number in seen else file.read(number)
            if page is None or file.unsound(number, page, meta.txnid) is not None:
                return False
            seen.add(number)
            if file.flags(page) == BRANCH:
                waiting += nodes.branch(page, True)[0]
            else:
                for node in nodes.leaf(page, True)[1]:
                    found.update(takewhile(first.__le__, _freed(file, page, node, first)))
    except (Damage, IndexError, struct.error):  # there is no such page, or it is written just now
        return False
    return len(found) == meta.last + 1 - first


def _freed(file: PageFile, page: bytes, node: Node, least: int) -> Iterable[int]:
    """The page numbers of a record of the list of free pages, descending; some if none is as great as *least*."""
    start, size = node.where, node.length
    if node.flags & BIG:
        at, start = U64.unpack_from(page, node.where)[0], file.header
        page = _some(file, at, 1)
        if U64.unpack_from(page, start + 8)[0] < least:
            return ()
        page = _some(file, at, (start - 1 + size) // file.page_size + 1)
    numbers: tuple[int, ...] = struct.unpack_from(f"={size // 8}Q", page, start)
    return numbers[1:]


def _some(file: PageFile, number: int, count: int) -> bytes:
    """*count* pages. Raises IndexError where the file has not all of them."""
    data = file.read(number, count)
    if data is None:
        raise IndexError
    return data
