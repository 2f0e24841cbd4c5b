"""The fields that a query needs of a record, if it does not need the whole record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from .following import Followed, Node
from .following.nodes import Argument, Called, Constant
from .following.operations import Attribute, Item
from .projection import Projection
from .translated import Give


def needed(functions: Iterable[Followed], gives: Sequence[Give]) -> Optional[frozenset[str]]:
    """The fields that *functions* ask a record for; None if they or *gives* need the whole record."""
    if any([isinstance(give, Projection) and (give.whole or give.paths) for give in gives]):
        return None
    return named([(followed.node, followed.keyed) for followed in functions])


def named(nodes: Iterable[tuple[Node, bool]]) -> Optional[frozenset[str]]:
    """The fields that expressions ask a record for, each said to take its key, too, or not; None as of `needed`."""
    found = [name for node, keyed in nodes for name in _names(node, 1 if keyed else 0)]
    return None if None in found else frozenset([name for name in found if name is not None])


def _names(node: Node, value: int) -> Iterator[Optional[str]]:
    if isinstance(node, Attribute) and isinstance(node.holder, Argument) and node.holder.position == value:
        yield node.name
    elif isinstance(node, Item) and _is_record(node.holder, value) and isinstance(node.key, Constant):
        yield node.key.value
    elif isinstance(node, Called) or (isinstance(node, Argument) and node.position == value):
        yield None
    else:
        for part in node.parts():
            yield from _names(part, value)


def _is_record(node: Node, value: int) -> bool:
    """Whether *node* is the record, and that a TypedDict."""
    return isinstance(node, Argument) and node.position == value and hasattr(node.known.cls, "__total__")
