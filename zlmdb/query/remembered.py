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
from .following import Given, Node
from .following.known import PLAIN
from .following.linked import Link
from .following.nested import Nested
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
    for part in node.certain() if isinstance(node, Nested) else node.parts():  # what reads those rows looks up itself
        if not isinstance(part, Link):
            yield from _uses(part)
            continue
        yield part, isinstance(node, Attribute) and node.known.required.cls in PLAIN
        for inner in part.parts():
            yield from _uses(inner)


def remembering(holder: Node, private: bool, parameters: Sequence[Any]) -> Callable[[Any], Any]:
    """The function that looks up a key in the table *holder*, an expression of captured values."""
    tables: list[Any] = []

    def table_of() -> Any:
        if not tables:  # not before a record asks: a query that looks up nothing raises no error
            tables.append(holder.evaluate(Given((), parameters)))
        return tables[0]

    return _objects(table_of) if private else _bytes(table_of)


_FEW = 4


def look_up(table: Any, private: bool, most: int) -> Callable[[Any], Any]:
    """The function that looks up at most *most* keys in *table*, in a read transaction."""
    if most < _FEW:  # there is little to remember
        found: Callable[[Any], Any] = table.__getitem__
        return found
    return (_objects if private else _bytes)(lambda: table)


def _objects(table_of: Callable[[], Any]) -> Callable[[Any], Any]:
    """As ``table[key]``, with one object for each record."""
    known: dict[Any, Any] = {}

    def look_up(key: object) -> Any:
        hashed: Any
        if type(key) is UUID:
            hashed = key.int  # a number is found without a call of `UUID.__hash__` and another one of `UUID.__eq__`
        elif type(key) in _EXACT:
            hashed = type(key), key
        else:
            return table_of()[key]
        found = known.get(hashed, known)
        if found is known:
            table = table_of()
            found = table[key]
            if table._txn._write:
                return found
            if len(known) >= MOST:
                known.clear()
            known[hashed] = found
        return found

    return look_up


def _bytes(table_of: Callable[[], Any]) -> Callable[[Any], Any]:
    """As ``table[key]``: the bytes of a record are remembered, and each call returns a new object."""
    known: dict[Any, Any] = {}
    loads: list[Callable[[Any], Any]] = []

    def look_up(key: object) -> Any:
        hashed: Any
        if type(key) is UUID:
            hashed = key.int
        elif type(key) in _EXACT:
            hashed = type(key), key
        else:
            return table_of()[key]
        data = known.get(hashed)
        if data is None:
            table = table_of()
            if table._txn._write:
                return table[key]
            try:
                data = table._get(table._lookup(key), None, table._db)
                if data is None:
                    return table[key]  # raises
                if not loads:
                    loads.append(table._load)
            except Exception as error:
                let_through(error)
                return table[key]  # which raises what it has to
            if len(known) >= MOST:
                known.clear()
            known[hashed] = data
        try:
            return loads[0](data)
        except Exception as error:
            let_through(error)
            return table_of()[key]

    return look_up
