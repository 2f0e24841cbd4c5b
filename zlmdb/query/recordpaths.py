"""The paths of what expressions take of a record: of fields, and of parts of them, where that is not all of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Optional

from ..values.paths import AS_TEXT, IS_NONE, LENGTH, Path, without_parts
from .following import Followed, Node
from .following.linked import Link
from .following.nested import Nested
from .following.nodes import Argument, Called, Constant
from .following.operations import Apply, Attribute, IsNone, Item
from .projection import Projection

if TYPE_CHECKING:
    from .expressionsource import Asked
    from .translated import Give


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


def needed(functions: Iterable[Followed], gives: Sequence[Give]) -> Optional[frozenset[str]]:
    """The fields that *functions* ask a record for; None if they or *gives* need the whole record."""
    if any([isinstance(give, Projection) and (give.whole or give.paths) for give in gives]):
        return None
    found = taken([(followed.node, followed.keyed) for followed in functions])
    return None if found is None else frozenset([path[0] for path in found])


def taken(nodes: Iterable[tuple[Node, bool]], texts: Collection[Node] = ()) -> Optional[list[Path]]:
    """The paths that expressions take of a record, each said to take its key, too, or not; None as of `needed`.

    What is nothing but a key that is looked up in one of the tables *texts*, is taken as a text.
    """
    found = [path for node, keyed in nodes for path in paths(node, 1 if keyed else 0, texts)]
    return None if None in found else without_parts([path for path in found if path is not None])


def parts_alone(every: Sequence[Asked], reach: Callable[[Path], Optional[Path]]) -> Optional[list[Path]]:
    """The paths of what *every* one of these takes; None if one takes the record itself, or what *reach* does not."""
    taken = {path for one in every for path in paths(one.node, 1 if one.followed.keyed else 0)}
    found = [None if path is None or iskeyword(path[0]) else reach(path) for path in taken]
    return None if None in found else without_parts([path for path in found if path is not None])
