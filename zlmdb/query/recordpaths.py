"""The paths of what an expression takes of a record: of fields, and of parts of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Optional

from ..values.paths import AS_TEXT, IS_NONE, LENGTH, Path
from .following import Node
from .following.linked import Link
from .following.nested import Nested
from .following.nodes import Argument, Called, Constant
from .following.operations import Apply, Attribute, IsNone, Item


def paths(node: Node, value: int, texts: Collection[Node] = ()) -> Iterator[Optional[Path]]:
    """The paths that *node* takes of the argument number *value*; None where it takes that as it is.

    The keys that it looks up in the tables *texts* are taken as texts.
    """
    found = path_of(node, value)
    if isinstance(node, Link) and node.holder in texts:
        key = path_of(node.key, value)
        if key is not None and len(key) == 1:
            yield (*key, AS_TEXT)
            return  # and the table is none of the record
    if found is not None:
        yield found or None
    elif isinstance(node, Called):
        yield None
    elif isinstance(node, Nested):  # its function is handed what belongs to the one around it
        for part in (*node.certain(), *node.outer):
            yield from paths(part, value, texts)
    else:
        for part in node.parts():
            yield from paths(part, value, texts)


def path_of(node: Node, value: int) -> Optional[Path]:
    """The path of what *node* is, or asks, of the argument number *value*: empty for itself; None for anything else."""
    if isinstance(node, Argument):
        return () if node.position == value else None
    if isinstance(node, Attribute):
        holder, name = node.holder, node.name
    elif isinstance(node, Item) and isinstance(node.key, Constant) and hasattr(node.holder.known.cls, "__total__"):
        holder, name = node.holder, node.key.value  # of a TypedDict
    elif isinstance(node, IsNone):
        holder, name = node.inner, IS_NONE
    elif isinstance(node, Apply) and node.function.value is len and len(node.arguments) == 1:
        holder, name = node.arguments[0], LENGTH
    else:
        return None
    found = path_of(holder, value)
    return None if found is None or (not found and name in (IS_NONE, LENGTH)) else (*found, name)
