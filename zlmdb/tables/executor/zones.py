"""What is said when a query compares a time that has a time zone with one that has none: which, of which record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

from ... import errors
from ...handlers import let_through
from ...query.following import Followed, Node, walk
from ...query.following.nodes import Given
from ...query.following.operations import Binary, Compare
from ...shown import shortened
from ..storage import Storage


def lacks_zone(error: Exception) -> bool:
    """Whether Python raises *error* because only one of two times has a time zone."""
    said = str(error)
    return type(error) is TypeError and "naive" in said and "aware" in said  # with "offset-" on CPython


def tell_zones(
    storage: Storage[Any, Any], functions: Sequence[Followed], error: Exception, key: Any, data: Any
) -> None:  # fmt: skip
    """Raise *error*, that only one of two times has a time zone, with the record and what the function asked of it."""
    if key is None or data is None:
        return
    try:
        decoded = storage.decode_key(key)
        value = storage.decode_value(data, decoded)
    except errors.Error as unread:
        let_through(unread)
        return
    for followed in functions:
        given = Given((decoded, value) if followed.keyed else (value,), followed.parameters, followed.function)
        for node in walk(followed.node):
            zoneless = _zoneless(node, given)
            if zoneless is not None:
                where = f"table {storage.name!r}, key {shortened(decoded)}: {node!r}"
                advice = f"{zoneless!r} has no time zone, give it one: tzinfo=timezone.utc"
                raise TypeError(f"{where}: {error}; {advice}") from error
    if any([followed.reasons for followed in functions]):  # it was called, and what it asked is not known
        where = f"table {storage.name!r}, key {shortened(decoded)}"
        raise TypeError(f"{where}: {error}; give both a time zone, such as datetime.now(timezone.utc)") from error


def _zoneless(node: Node, given: Given) -> Optional[Node]:
    """Of two times that *node* compares or subtracts, the one without a time zone, if the other one has one."""
    if not isinstance(node, (Binary, Compare)):
        return None
    try:
        zones = [getattr(side.evaluate(given), "tzinfo", given) for side in (node.left, node.right)]
    except Exception as error:  # a variable of a loop, say
        let_through(error)
        return None
    if given in zones or (zones[0] is None) is (zones[1] is None):
        return None
    return node.left if zones[0] is None else node.right
