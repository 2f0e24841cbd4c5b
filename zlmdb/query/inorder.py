"""What an index finds, in the order of the primary keys: with so many keys in memory, however many there are.

An index has its entries in an order of its own, so the keys of the records are sorted. Of more than `KEYS` entries, the
first `KEYS` are sorted and given, then the index is read again for the next ones. That takes less time than to read the
whole table if the index is read a few times only, which `most_entries` sees to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import isqrt
from typing import TypeVar

R = TypeVar("R")

KEYS = 100_000
"""Keys that a query has in memory, at most twice as many while it sorts them."""

BLOCK = 10_000
"""Entries that are looked at together."""

SHARE = 4
"""An index is used for less than this part of a table; more is read faster in its own order."""


def most_entries(total: int) -> int:
    """From how many entries on all *total* records of a table are read faster, in their own order.

    To look up a quarter of the records takes as long. To read so many entries once for each `KEYS` of them takes, with
    twice the time for a record as for an entry, as long at the root of ``2 * KEYS * total``.
    """
    return max(min(total // SHARE, isqrt(2 * KEYS * total)), 1)


def in_order(
    read: Callable[[], Iterable[dict[bytes, R]]], lower: bytes, upper: bytes, *, reverse: bool
) -> Iterator[dict[bytes, R]]:
    """What belongs to the keys with ``lower <= key < upper`` that *read* gives, sorted by these; backwards: *reverse*.

    *read* is called for `KEYS` of them at a time.
    """
    while True:
        found = _first(read(), lower, upper, reverse)
        yield found
        if len(found) < KEYS:
            return
        last = next(reversed(found))
        if reverse:
            upper = last
        else:
            lower = last + b"\0"


def _first(blocks: Iterable[dict[bytes, R]], lower: bytes, upper: bytes, reverse: bool) -> dict[bytes, R]:
    """The first `KEYS` of what belongs to these keys, sorted."""
    found: dict[bytes, R] = {}
    for block in blocks:
        found.update({key: row for key, row in block.items() if lower <= key < upper})
        if len(found) >= 2 * KEYS:
            found = _sorted(found, reverse)
            last = next(reversed(found))
            if reverse:
                lower = last + b"\0"
            else:
                upper = last
    return _sorted(found, reverse)


def _sorted(found: dict[bytes, R], reverse: bool) -> dict[bytes, R]:
    return {key: found[key] for key in islice(sorted(found, reverse=reverse), KEYS)}


def blocks_of(rows: Iterable[R]) -> Iterator[list[R]]:
    """*rows* in lists of `BLOCK`."""
    rest = iter(rows)
    while block := list(islice(rest, BLOCK)):
        yield block
