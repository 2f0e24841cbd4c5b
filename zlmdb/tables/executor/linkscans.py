"""Conditions on linked records, where no index finds these: the other table is read once, in its own order.

To look up each linked record takes several times as long as to read it in a loop. Where the other table is no larger
than what is read of this one, it is asked for the keys of the records that fit. Then a record fits if it refers to one
of them, and nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Optional, Union
from uuid import UUID

from ...query.following import Followed, Node
from ...query.inorder import BLOCK
from ...query.terms import CAP
from ...query.translated import Give

MOST = 400_000
"""Keys that are kept of one condition at most: of UUIDs about 40 MB. Beyond it each record is looked up."""

LEAST = 256
"""Records whose links are looked up in less time than it takes to think about it."""

EXACT_KEYS = (int, str, bytes, UUID)
"""Types of keys that are equal if and only if they are the same key."""


def can_be_read_once(key: Node, table: Any, total: int) -> bool:
    """Whether *table* may be read instead of looking up *key* in it, or in an index of it, for so many records."""
    alone = table._storage.alone and table._steady
    return key.known.cls in EXACT_KEYS and alone and table._entries() <= total


class Numbers:
    """Many UUIDs, of which only the *numbers* are kept: they take less than half the memory."""

    __slots__ = ("numbers",)

    def __init__(self, numbers: set[int]) -> None:
        self.numbers = numbers

    def __contains__(self, key: object) -> bool:
        return isinstance(key, UUID) and key.int in self.numbers


Keys = Union[set[Any], Numbers]
"""Keys of records, among which another one is looked for."""

_number_of = attrgetter("int")


def keys_of(rows: Iterator[Any], *, numbers: bool) -> Optional[Keys]:
    """The keys in *rows*; None if these are too many to keep. *numbers*: they are UUIDs, sought by their numbers.

    Of more than an index would look for, the numbers are enough.
    """
    found: set[Any] = set()
    numbered = False
    while block := list(islice(rows, BLOCK)):
        found.update(map(_number_of, block) if numbered else block)
        if len(found) > MOST:
            return None
        if numbers and not numbered and len(found) > CAP:
            found, numbered = set(map(_number_of, found)), True
    return Numbers(found) if numbered else found


def numbers_of(keys: Keys) -> set[int]:
    """The numbers of *keys*, which are UUIDs."""
    return keys.numbers if isinstance(keys, Numbers) else set(map(_number_of, keys))


def rows_that_fit(fits: Sequence[Followed], table: Any, give: Give) -> Iterator[Any]:
    """What *give* says of the records of *table* of which all *fits* are true."""
    selection: Any = table.select()
    running = selection._with(selection._query._replace(where=tuple(fits)))._running()
    running.at_once = running.every = True
    return running.rows(give)
