"""The nodes of a page: an array of offsets grows from its beginning, the nodes from its end, and nothing else is there.

A leaf's node is a record, a branch's node leads to a page. LMDB moves the nodes that lie below one that it deletes by
the size that this claims, so that a wrong size damages the others, or what is in memory beside the page. Here every
page is taken apart at once, and the nodes have to fill it without a gap.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import islice
from operator import ge, sub

from ...namedtuples import NamedTuple
from .pages import BIG, SUBTREE, TREE, PageFile

_NODE = struct.Struct("=HHHH")
_BOUNDS = struct.Struct("=HH")
_INTEGER = 8  # bytes of a key in the tree of free pages
_SMALLEST = 8  # bytes of a node without key and value


class Damage(Exception):
    """What is wrong with a page, in words that follow its number."""


class Node(NamedTuple):
    """A node with flags, or of the tree of free pages: *where* its value or what refers to it begins in the page.

    *length* is that of the value, wherever that is.
    """

    key: bytes
    flags: int
    where: int
    length: int


class Nodes:
    """Takes the pages of one file apart. Raises `Damage` for those on which LMDB could not work."""

    def __init__(self, file: PageFile) -> None:
        self._header, self._base, self._size = file.header, file.base, file.page_size
        self._odd = 1 if file.header == 24 else 0  # LMDB 1.0 begins values at even offsets
        self.reference = 24 if file.header == 24 else 8
        """Bytes of what refers to a value that has pages of its own."""
        self._lowest = file.header - self._base + 2  # the lower bound of a page with one node
        self._highest = file.page_size - self._base - _SMALLEST
        self._most = self._lowest + 2 * ((file.page_size - file.header) // (_SMALLEST + 2) - 1)
        self._largest = ((file.page_size - file.header) // 2 & -2) - 2  # two nodes fit into a page
        self._longest = 511 if file.header == 16 else self._largest - _SMALLEST - TREE.size

    def leaf(self, page: bytes, integers: bool) -> tuple[list[bytes], list[Node]]:
        """The keys of a leaf, ascending, and the nodes that need another look: those with flags.

        Of the tree of free pages, whose keys are *integers*, these are all. This runs for every record of a file,
        which is why the loop calls nothing of ours.
        """
        offsets, begin, odd = self._offsets(page), self._base, self._odd
        unpack = _NODE.unpack_from
        keys: list[bytes] = []
        ends: list[int] = []
        nodes: list[Node] = []
        for offset in offsets:
            low, high, flags, length = unpack(page, offset + begin)
            offset += begin + _SMALLEST
            where = offset + length
            keys.append(page[offset:where])
            where += length & odd
            if flags or high or integers:
                size = low | high << 16
                nodes.append(Node(keys[-1], flags, where, size))
                ends.append(where + self._inline(flags, size) + 1 & -2)
            else:
                ends.append(where + low + 1 & -2)
        self._tiled(offsets, ends)
        self._lengths(keys, 1, integers)
        _ordered(keys, integers)
        return keys, nodes

    def branch(self, page: bytes, integers: bool) -> tuple[list[int], list[bytes]]:
        """The pages that a branch leads to, and the keys at which they begin. The first key means nothing."""
        offsets, base = self._offsets(page), self._base
        if len(offsets) < 2:
            raise Damage("leads to one page, which LMDB does not do")
        children: list[int] = []
        ends: list[int] = []
        keys: list[bytes] = []
        for offset in offsets:
            low, high, top, length = _NODE.unpack_from(page, offset + base)
            start = offset + base + _SMALLEST
            children.append(low | high << 16 | top << 32)
            keys.append(page[start : start + length])
            ends.append(start + length + 1 & -2)
        self._tiled(offsets, ends)
        self._lengths(keys[:1], 0, False)
        self._lengths(keys[1:], 1, integers)
        _ordered(keys[1:], integers)
        return children, keys

    def loose(self, page: bytes) -> Iterator[Node]:
        """The records of a damaged leaf that lie within the page, whatever else is wrong, with a note of none."""
        header, base, size = self._header, self._base, self._size
        lower = struct.unpack_from("=H", page, header - 4)[0] + base
        for (offset,) in struct.iter_unpack("=H", page[header : min(lower, size) & -2]):
            start = offset + base
            if start < header or start + _SMALLEST > size:
                continue
            low, high, flags, length = _NODE.unpack_from(page, start)
            end = start + _SMALLEST + length
            if end <= size:
                where = end + (length & self._odd)
                yield Node(page[start + _SMALLEST : end], flags, where, low | high << 16)

    def _inline(self, flags: int, size: int) -> int:
        """The bytes that a node with *flags* has in the page for a value of *size*."""
        if flags & ~(BIG | SUBTREE) or flags == BIG | SUBTREE:
            raise Damage(f"has a record with the flags {flags:#x}, which zlmdb does not use")
        if flags & SUBTREE and size != TREE.size:
            raise Damage("has a sub-database whose record is of another size")
        return self.reference if flags & BIG else size

    def _offsets(self, page: bytes) -> tuple[int, ...]:
        """Where the nodes of a page begin, all of them within the page."""
        lower, upper = _BOUNDS.unpack_from(page, self._header - 4)
        if not (self._lowest <= lower <= self._most and lower <= upper) or (lower | upper) & 1:
            raise Damage(f"has its bounds wrong ({lower}, {upper})")
        offsets = _array(lower + self._base - self._header >> 1).unpack_from(page, self._header)
        if min(offsets) != upper or max(offsets) > self._highest:
            raise Damage("has nodes that do not begin at its upper bound, or outside of it")
        return offsets

    def _tiled(self, offsets: tuple[int, ...], ends: list[int]) -> None:
        """Raise `Damage` unless the nodes fill the page from its upper bound to its end.

        In order, each has to begin where another one ends. As none is empty, it is the one before it.
        """
        base, largest = self._base, self._largest
        begins = sorted(offsets)
        ends.sort()
        last = ends.pop()
        if (begins[1:] if base == 0 else [begin + base for begin in begins[1:]]) != ends or last != self._size:
            raise Damage("has nodes that overlap, or do not fill it")
        if last - begins[0] - base > largest:
            ends.append(last)
            if max(map(sub, ends, begins)) - base > largest:
                raise Damage("has a node that is larger than LMDB makes them")

    def _lengths(self, keys: list[bytes], least: int, integers: bool) -> None:
        lengths = set(map(len, keys))
        if integers:
            if lengths != {_INTEGER}:
                raise Damage("has a key that is no number of a transaction")
        elif min(lengths) < least or max(lengths) > self._longest:
            raise Damage(f"has a key of {max(lengths)} bytes, those of this format have {least} to {self._longest}")


@cache
def _array(count: int) -> struct.Struct:
    return struct.Struct(f"={count}H")


def _ordered(keys: list[bytes], integers: bool) -> None:
    """Raise `Damage` unless *keys* ascend."""
    if integers:
        numbers = struct.unpack(f"={len(keys)}Q", b"".join(keys))
        wrong = any(map(ge, numbers, numbers[1:]))
    else:
        wrong = any(map(ge, keys, islice(keys, 1, None)))
    if wrong:
        raise Damage("has keys out of order")
