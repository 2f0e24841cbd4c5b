"""The fields that a query needs of a record, if it does not need the whole record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

from .following import Followed, Node
from .projection import Projection
from .recordpaths import paths
from .translated import Give


def needed(functions: Iterable[Followed], gives: Sequence[Give]) -> Optional[frozenset[str]]:
    """The fields that *functions* ask a record for; None if they or *gives* need the whole record."""
    if any([isinstance(give, Projection) and (give.whole or give.paths) for give in gives]):
        return None
    return named([(followed.node, followed.keyed) for followed in functions])


def named(nodes: Iterable[tuple[Node, bool]]) -> Optional[frozenset[str]]:
    """The fields that expressions ask a record for, each said to take its key, too, or not; None as of `needed`."""
    found = [path for node, keyed in nodes for path in paths(node, 1 if keyed else 0)]
    return None if None in found else frozenset([path[0] for path in found if path is not None])
