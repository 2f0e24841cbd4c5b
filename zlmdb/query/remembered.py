"""Links of one run of a query: each record of another table is looked up once, however many records refer to it.

This holds in a read transaction, in which nothing changes. In a write transaction the other record is looked up each
time, as it may have changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any
from uuid import UUID

from ..handlers import let_through
from .following import Given, Node, walk
from .following.known import PLAIN, kind_of
from .following.linked import Link
from .following.operations import Attribute

MOST = 10_000
"""Records that are remembered at once; with more of them, all are forgotten, and it begins again."""

_EXACT = (int, str, bytes, UUID, date)
"""Types of keys that are equal only if they are the same key."""


def links(node: Node) -> list[tuple[Node, bool]]:
    """The tables that *node* looks up records in: each as an expression, and whether only plain fields are taken.

    The objects of the records themselves must be new ones for each row, as they can be changed.
    """
    found: dict[Node, bool] = {}
    for link, private in _uses(node):
        found[link.holder] = found.get(link.holder, True) and private
    return list(found.items())


def _uses(node: Node) -> Iterator[tuple[Link, bool]]:
    if isinstance(node, Link):
        yield node, False
    for one in walk(node):
        for part in one.parts():
            if isinstance(part, Link):
                yield part, isinstance(one, Attribute) and one.known.required.cls in PLAIN


def remembering(holder: Node, private: bool, parameters: Sequence[Any]) -> Callable[[Any], Any]:
    """The function that looks up a key in the table *holder*, an expression of captured values."""
    look_up: list[Callable[[Any], Any]] = []

    def first(key: Any) -> Any:
        if not look_up:  # not before a record asks: whoever asks nothing sees no error
            table: Any = holder.evaluate(Given((), parameters))
            if table._txn._write:
                look_up.append(table.__getitem__)
            else:
                look_up.append(_objects(table) if private else _bytes(table))
        return look_up[0](key)

    return first


_FEW = 4


def look_up(table: Any, private: bool, most: int) -> Callable[[Any], Any]:
    """The function that looks up at most so many keys in *table*, in a read transaction."""
    if most < _FEW:  # there is little to remember
        found: Callable[[Any], Any] = table.__getitem__
        return found
    return _objects(table) if private else _bytes(table)


def _objects(table: Any) -> Callable[[Any], Any]:
    """As ``table[key]``, with one object for each record."""
    known: dict[Any, Any] = {}
    get = table.__getitem__

    def look_up(key: Any) -> Any:
        kind = kind_of(key)
        if kind not in _EXACT:
            return get(key)
        found = known.get((kind, key), known)
        if found is known:
            found = get(key)
            if len(known) >= MOST:
                known.clear()
            known[kind, key] = found
        return found

    return look_up


def _bytes(table: Any) -> Callable[[Any], Any]:
    """As ``table[key]``: the bytes of a record are remembered, and each call returns a new object."""
    known: dict[Any, Any] = {}
    get, load, encode, handle = table._get, table._load, table._lookup, table._db

    def look_up(key: Any) -> Any:
        kind = kind_of(key)
        try:
            if kind not in _EXACT:
                return table[key]
            data = known.get((kind, key))
            if data is None:
                data = get(encode(key), None, handle)
                if len(known) >= MOST:
                    known.clear()
                if data is None:
                    return table[key]  # raises
                known[kind, key] = data
            return load(data)
        except Exception as error:
            let_through(error)
            return table[key]  # which raises what it has to

    return look_up
