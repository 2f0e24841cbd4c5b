"""Conditions on linked records, where no index finds these: the other table is read once, in its own order.

To look up each linked record takes several times as long as to read it in a loop. Where all records of a query are
wanted, and the other table is no larger than this one, that table is asked for the keys of the records that fit. If
they are few, an index of the field that refers to them serves (see `semijoins`). If not, records that refer to none of
them are left out before anything is looked up. The condition is still asked of the others: what is found may be too
much, and never too little.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import islice
from typing import Any, Optional, cast
from uuid import UUID

from ..query.following import Followed, Node, walk
from ..query.following.following import Reading
from ..query.following.known import BOOL, SOMETHING, kind_of
from ..query.following.linked import Link
from ..query.following.nodes import Argument, Parameter
from ..query.following.operations import Compare
from ..query.plan import Asking
from ..query.remembered import links
from ..query.want import KEYS

MOST = 100_000
"""Keys that are kept at most."""

EXACT_KEYS = (int, str, bytes, UUID)
"""Types of keys that are equal if and only if they are the same key."""


def keys_that_fit(asking: Asking, followed: Followed, link: Link, table: Any, total: int) -> Optional[frozenset[Any]]:
    """The keys of the records of *table* that fit *asking*, a condition on *link*; None if that is not worth while.

    *asking* is a part of *followed*. *total*: the most records that the table may have.
    """
    storage = table._storage
    if link.key.known.cls not in EXACT_KEYS or not storage.alone or not table._steady or storage.expiring is not None:
        return None
    there = table._entries()
    if there > total or not all([private for _, private in links(asking.node)]):
        return None
    selection: Any = table.select()
    kept, key = followed.reading.kept, ("linked", asking.node)
    if key not in kept:
        argument = Argument(0, "value", link.known)
        kept[key] = Reading.of(_replaced(asking.node, {link: argument}), keyed=False)
    fits = Followed(kept[key], _nothing, asking.parameters)
    most = min(MOST, there // 2)
    found: list[Any] = list(islice(selection._with(selection._query._replace(where=(fits,)))._run(KEYS), most + 1))
    return None if len(found) > most else frozenset(found)


def among(followed: Followed, node: Node, link: Link, keys: frozenset[Any]) -> Followed:
    """The condition that *link* refers to one of *keys*; *node*, a part of *followed*, is not true otherwise."""
    kept, key = followed.reading.kept, ("among", node)
    if key not in kept:  # one for all runs, so that one loop serves them
        given = Parameter(0, "found", SOMETHING, True)
        kept[key] = Reading.of(Compare("in", link.key, given, False, BOOL), keyed=followed.keyed)
    return Followed(kept[key], _nothing, (keys,))


def _replaced(node: Node, known: dict[Node, Node]) -> Node:
    """*node* with the others in place of those that are *known*."""
    found = known.get(node)
    if found is None:
        found = node
        if any([one in known for one in walk(node)]):
            found = copy(node)
            for cls in type(node).__mro__:
                for name in cast("Sequence[str]", getattr(cls, "__slots__", ())):
                    setattr(found, name, _in_place(getattr(node, name), known))
        known[node] = found
    return found


def _in_place(value: Any, known: dict[Node, Node]) -> Any:
    if isinstance(value, Node):
        return _replaced(value, known)
    if kind_of(value) is tuple:
        return tuple([_in_place(one, known) for one in value])
    return value


def _nothing(*arguments: Any) -> Any:
    """In the place of the function, which is asked of other records."""
