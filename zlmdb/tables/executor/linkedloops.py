"""Conditions on linked records in a loop within a write transaction, whose body may change what they are told by.

As in a read transaction, an index of the other table tells the keys of the records that fit, and the index of the link
finds what refers to these. The loop looks up each linked record nevertheless. When the body writes to the other table,
the loop goes on as a scan of the records that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...query.plan import Choice
from ...query.translated import Give

if TYPE_CHECKING:
    from .execution import Running


def rows_in_loop(running: Running, gives: Sequence[Give], one: bool) -> Iterator[Any]:
    """The rows of *running*. Nothing is read before the first one is asked for: what is written until then counts."""
    running.picking = True
    choice, joins = running.choice(soon=True), running.joins
    running.picking, running.where = False, running.query.where  # each record is judged when its turn comes
    if joins is not None and joins.spaces:
        running.beside = joins.spaces
        if any([access.is_range_of_keys for access in choice.accesses]):  # which is no hint, but all that is read
            choice = Choice()
    yield from running._rows(gives, one, None, choice)
