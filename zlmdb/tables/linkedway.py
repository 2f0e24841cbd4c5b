"""Conditions on linked records in known queries: what `semijoins` does, from captured values to keys of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional

from ..query.following import Followed, Given, Node
from ..query.plan import CAP, Access, Asking, IndexFacts, accesses
from .accessranges import captured, finder_of
from .ready import Way, way_of
from .semijoins import link_of

if TYPE_CHECKING:
    from .running import Known, Running
    from .table import Table


def linked_ways(
    parts: Sequence[Asking], facts: Sequence[IndexFacts], running: Running, where: Sequence[Followed]
) -> list[Way]:  # fmt: skip
    """How indexes of linked tables, and of the fields that refer to them, find what *parts* want."""
    found = [_linked_way(part, facts, running, where) for part in parts]
    return [way for way in found if way is not None]


def _linked_way(
    asking: Asking, facts: Sequence[IndexFacts], running: Running, where: Sequence[Followed]
) -> Optional[Way]:  # fmt: skip
    link = link_of(asking.node)
    subject = None if link is None else asking.subject(link.key)
    if link is None or not subject:
        return None
    index = next(
        (one for one in facts if len(one.parts) == 1 and one.parts[0].subject == subject and not one.several), None
    )
    linked: Any = link.holder.evaluate(Given((), asking.parameters))
    if index is None or linked._txn is not running.table._txn or linked._storage.expiring is not None:
        return None
    other = type(running)(linked.select())
    other_facts = other._facts()
    if any([one.where for one in other_facts]):
        return None
    inner = accesses([asking._replace(elements={link: ()}, linked=None)], other_facts)
    if not inner or inner[0].is_range_of_keys:
        return None
    access = Access(index, members=(), nodes=(asking.node,), rank=2)
    way = way_of(inner[0], other, where)
    return LinkedWay(access, running, where[asking.number], link.holder, asking.number, way, other._known())


def _nothing(functions: Sequence[Followed]) -> None:
    """In the place of what finds ranges by captured values alone."""


class LinkedWay(Way):
    """The index of a field that refers to the records of another table, which *inner* finds."""

    __slots__ = ("_holder", "_inner", "_known", "_number", "_of_values")

    def __init__(
        self, access: Access, running: Running, followed: Followed, holder: Node, number: int, inner: Way, known: Known
    ) -> None:  # fmt: skip
        bound = running._bound(access)
        super().__init__(access, bound, running.table, _nothing)
        self._of_values = finder_of(running.storage if bound is None else bound.storage, access)
        self._holder, self._number, self._inner, self._known = captured(followed, holder), number, inner, known

    def keys(self, table: Table[Any, Any], where: Sequence[Followed], most: int) -> Optional[list[bytes]]:
        linked: Any = self._holder(where[self._number])
        known, state = self._known, linked._index_state
        if linked._txn is not table._txn or not linked._steady:
            return None
        if linked._storage.programs.known is not known or (known.state is not state and known.state != state):
            return None
        found = self._inner.keys(linked, where, CAP)
        if found is None or len(found) >= CAP:
            return None
        decode = linked._storage.load_key
        return self._within(table, self._of_values([decode(key) for key in found]), most)
