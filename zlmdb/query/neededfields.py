"""The fields that a query needs of a record, if it does not need the whole record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Optional

from ..values.paths import Path, without_parts
from .following import Followed, Node
from .projection import Projection
from .recordpaths import paths
from .translated import Give


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
