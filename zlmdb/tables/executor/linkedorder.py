"""The first few records in the order of a field of the records that they refer to.

``t.orders.order_by(lambda o: t.users[o.user].name).limit(10)``: the users are read in the order of their names, and the
orders of each are found by the index of the link, until there are ten. Orders of users with equal names come in the
order of their keys. So no order is read but those that are given, and if an index has the order of the users, of these
only the first, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...query.following import Followed, Given
from ...query.following.linked import Link
from ...query.following.operations import Apply, Attribute
from ...query.inorder import KEYS
from ...query.ordering import desc
from ...query.plan import Choice
from ...query.projection import ENGINE_KEYS
from ...query.terms import CAP, subject_of
from ..indexstorage import BoundIndex
from .cachedlinkscans import begins_with_key, owners
from .cachedpaths import FEW
from .cachedplans import keep
from .indexfacts import vouches
from .linkednodes import Making, nothing
from .linkscans import can_be_read_once
from .orderscans import TOTAL

if TYPE_CHECKING:
    from ..selection import Selection
    from .execution import Running

_MORE = 4
"""Records that are looked at for each row, of some of which there are none."""


def linked_order(running: Running) -> Optional[LinkedOrder]:
    """How the first rows of *running*, while which nothing is written, are found so; None if they are found otherwise.

    What is not read must not be able to raise: the link is one that the database keeps, and any two values compare.
    """
    selection, order, table = running.selection, running.order, running.table
    node: Any = None if order is None else order.node
    down = isinstance(node, Apply) and node.function.value is desc and len(node.arguments) == 1
    part: Any = node.arguments[0] if down else node
    link = part.holder if isinstance(part, Attribute) else None
    if order is None or not isinstance(link, Link) or part.known.cls not in TOTAL or part.known.optional:
        return None
    most = None if selection._limit is None else selection._limit + running.query.skip
    if most is None or most > CAP or running.query.where or selection._reverse or not selection._is_all():
        return None
    if (table._txn._write and not running.at_once) or not table._steady or not selection._plain:
        return None
    linked: Any = link.holder.evaluate(Given((), order.parameters))
    bound = _kept(running, order, link, linked)
    if bound is None or linked._txn is not table._txn or not vouches(linked._storage.value.name):
        return None
    if not linked._steady:  # what has expired is referred to
        return None
    by = Followed(Making(order).of_value(node, link), nothing, order.parameters)
    query = running.query._replace(order=by, skip=0)
    selections = [linked.select()._with(query, limit=linked._entries())]
    other = type(running)(selections[0])
    known, key = other.known(), ("order", by.reading, query.backwards)
    choice: Optional[Choice] = known.cached.get(key)
    if choice is None:  # it depends on no values
        choice = other.choice()
        keep(known.cached, key, choice)
    if choice.order is None and not can_be_read_once(link.key, linked, table._entries()):
        return None
    if choice.order is None or table._txn._write:  # in which as many are read as are asked for
        # The first ones are kept in less time than all are sorted, and most often they have enough.
        selections = [linked.select()._with(query, limit=limit) for limit in (most * _MORE + FEW, None)]
    return LinkedOrder(running, selections, bound, most, choice)


def _kept(running: Running, order: Followed, link: Link, linked: Any) -> Optional[BoundIndex]:
    """The index of the link that leads from each record of *running* to one of *linked*."""
    subject = subject_of(link.key, order.keyed)
    wanted = [(subject, True)] if subject else None
    for facts in running.known().facts:
        if [(part.subject, part.present) for part in facts.parts] == wanted and not facts.several and not facts.where:
            bound = next((one for one in running.table._indexes if one.storage.name == facts.name), None)
            leads: Any = None if bound is None else bound.storage.definition.get("link")
            if bound is not None and leads is not None and leads["to"] == linked._storage.name:
                return bound if begins_with_key(bound.storage, linked._storage.key) else None
    return None


class LinkedOrder:
    """The first records of *running*, at most *most*: what refers, by *index*, to others in their order.

    *selections* are of these others: the first ones, until there are enough. *choice* is how they are found.
    """

    def __init__(
        self, running: Running, selections: Sequence[Selection[Any, Any]], index: BoundIndex, most: int, choice: Choice
    ) -> None:  # fmt: skip
        self._running, self._selections, self._choice = running, selections, choice
        self._index, self._most = index, most

    def keys(self) -> Optional[list[bytes]]:
        """The engine's keys, in order, without those that are skipped; None where somebody else has to find out."""
        try:
            found = next((found for one in self._selections if (found := self._within(one)) is not None), None)
        except Exception as error:  # the general form tells what it is, if it is of a record that is referred to
            let_through(error)
            return None
        return None if found is None else found[self._running.query.skip : self._most]

    def _within(self, others: Selection[Any, Any]) -> Optional[list[bytes]]:
        """The keys, of what refers to *others*; None if these are too few."""
        table, backwards, most = self._running.table, self._running.query.backwards, self._most
        other = type(self._running)(others)
        other.at_once = True
        pairs = other._rows((ENGINE_KEYS,), True, None, self._choice)
        unsure: Any = pairs  # a sort key that more than those have
        if others._limit is not None and len(self._selections) > 1:
            few = list(pairs)
            unsure, pairs = few[-1][0] if len(few) == others._limit else pairs, iter(few)
        found: list[bytes] = []
        for by, equal in groupby(pairs, itemgetter(0)):
            if by == unsure:
                return None
            keys = sorted([key for _, key in equal])
            some = owners(table, self._index, keys, len(others._table._storage.prefix), KEYS + 1)
            if len(some) > KEYS:
                return None
            found += sorted(some, reverse=backwards)
            if len(found) >= most:
                break
        return found

    @property
    def told(self) -> tuple[str, str]:
        """The name of the index, and what is read, for `explain`."""
        name, order = self._index.storage.name, self._choice.order
        read = "all of which are read" if order is None else f"by {order}"
        others = self._selections[0]._table._name
        return name, f"{name}: what refers to the records of {others} in their order, {read}"
