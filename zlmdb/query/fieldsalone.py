"""What functions take of a record, if these are fields that can be read without the others, as of FlatBuffers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from keyword import iskeyword
from typing import Optional

from .expressionsource import Asked
from .following import Node
from .following.nested import Nested
from .following.nodes import Argument, Called
from .following.operations import Attribute


def fields_alone(every: Sequence[Asked], fields: Collection[str]) -> Optional[list[str]]:
    """The fields that *every* one of these takes; None if one takes the record itself, or what is not in *fields*."""
    found = {name for one in every for name in _taken(one.node, 1 if one.followed.keyed else 0)}
    if not all([name is not None and name in fields and not iskeyword(name) for name in found]):
        return None
    return sorted([name for name in found if name is not None])


def _taken(node: Node, position: int) -> Iterator[Optional[str]]:
    """The names of the fields of the argument at *position*; None where it is taken as it is."""
    if isinstance(node, Attribute) and _is(node.holder, position):
        yield node.name
    elif isinstance(node, Called) or _is(node, position):
        yield None
    elif isinstance(node, Nested):  # its function is handed what belongs to the one around it
        for part in (*node.certain(), *node.outer):
            yield from _taken(part, position)
    else:
        for part in node.parts():
            yield from _taken(part, position)


def _is(node: Node, position: int) -> bool:
    return isinstance(node, Argument) and node.position == position


def spelled_in(variable: str, source: Sequence[str]) -> bool:
    """Whether lines of *source* name a *variable*."""
    return any([re.search(rf"\b{variable}\b", line) for line in source])
