"""Conditions on linked records, where no index finds these: the other table is read once, in its own order.

To look up each linked record takes several times as long as to read it in a loop. Where the other table is no larger
than what is read of this one, it is asked for the keys of the records that fit. Then a record fits if it refers to one
of them, and nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Optional
from uuid import UUID

from ...query.following import Followed, Node
from ...query.inorder import KEYS
from ...query.translated import Give

LEAST = 256
"""Records whose links are looked up in less time than it takes to think about it."""

EXACT_KEYS = (int, str, bytes, UUID)
"""Types of keys that are equal if and only if they are the same key."""


def can_be_read_once(key: Node, table: Any, total: int) -> bool:
    """Whether *table* may be read instead of looking up *key* in it, or in an index of it, for so many records."""
    alone = table._storage.alone and table._steady
    return key.known.cls in EXACT_KEYS and alone and table._entries() <= total


def keys_of(rows: Iterator[Any]) -> Optional[frozenset[Any]]:
    """The keys in *rows*; None if these are too many to keep."""
    found: list[Any] = list(islice(rows, KEYS + 1))
    return None if len(found) > KEYS else frozenset(found)


def rows_that_fit(fits: Sequence[Followed], table: Any, give: Give) -> Iterator[Any]:
    """What *give* says of the records of *table* of which all *fits* are true."""
    selection: Any = table.select()
    running = selection._with(selection._query._replace(where=tuple(fits)))._running()
    running.at_once = running.every = True
    return running.rows(give)
