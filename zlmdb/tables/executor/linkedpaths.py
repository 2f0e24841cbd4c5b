"""Conditions on linked records in cached plans: what `semijoins` does, from captured values to keys of records."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Optional

from ...query.accesses import Access, IndexFacts, accesses
from ...query.expressionsource import Asked
from ...query.following import Followed, Given, Node
from ...query.following.linked import Link
from ...query.prepared import Prepared
from ...query.programs import Programs
from ...query.projection import HITS
from ...query.terms import CAP, Asking, conjuncts
from ...query.translated import Give, want_of
from ...store.blocks import COUNTS_REFERENCES
from ..indexstorage import BoundIndex
from .accesspaths import AccessPath, way_of
from .accessranges import captured, finder_of
from .cachedlinkscans import begins_with_key, owners
from .cachedpaths import FEW, CachedPaths, fewest
from .covered import EXACT, cover_of
from .foundkeys import EntryRanges
from .keylookups import most_kept
from .linkednodes import Making, link_of, nothing
from .linkscans import EXACT_KEYS

if TYPE_CHECKING:
    from ..selection import Selection
    from ..storage import Storage
    from ..table import Table
    from .execution import Known, Running


def linked_ways(
    parts: Sequence[Asking], facts: Sequence[IndexFacts], running: Running, where: Sequence[Followed]
) -> list[AccessPath]:  # fmt: skip
    """How indexes of linked tables, and of the fields that refer to them, find what *parts* want."""
    by: dict[Any, list[Asking]] = {}
    for part in parts:
        by.setdefault((part.number, link_of(part.node)), []).append(part)
    ways: list[AccessPath] = []
    found: list[Any]
    for few in by.values():
        together = None if len(few) == 1 else _linked_way(few, facts, running, where)
        if together is not None:
            few = [one for one in few if one.node not in together.nodes]
        found = [_linked_way([one], facts, running, where) for one in few]
        found = [way for way in (together, *found) if way is not None]
        ways += [_fewest_of(found)] if len(found) > 1 else found
    return ways


def _fewest_of(ways: Sequence[LinkedPath]) -> LinkedPath:
    """One way in place of *ways*, which begin with the same link: the one that finds the fewest others."""
    alone = next((way for way in ways if way.inner.only), None)
    if alone is not None:
        return alone
    found = copy(ways[0])
    found.inner, found.told, found.exact = FewestPath([way.inner for way in ways]), None, False
    return found


def _linked_way(
    askings: Sequence[Asking], facts: Sequence[IndexFacts], running: Running, where: Sequence[Followed]
) -> Optional[LinkedPath]:  # fmt: skip
    """How to find what *askings* want of one linked record: several, if one index of its table serves them together."""
    asking = askings[0]
    link = _first_link(asking)
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
    if any([one.where for one in other.known().facts]):
        return None
    of_other = [one._replace(elements={link: ()}) for one in askings]
    inner = (_inner_way if link_of(asking.node) is link else _further_way)(of_other, other, where)
    if inner is None:
        return None
    way, nodes, tells_all = inner
    access = Access(index, members=(), nodes=nodes, rank=2)
    told = tells_all and link.key.known.cls in EXACT_KEYS
    return LinkedPath(access, running, where[asking.number], asking, link, way, other.known(), told, other.storage)


_InnerWay = tuple[AccessPath, tuple[Node, ...], bool]
"""What finds linked records, the conditions that it serves, and whether it finds exactly those that fit."""


def _inner_way(askings: Sequence[Asking], other: Running, where: Sequence[Followed]) -> Optional[_InnerWay]:
    """How an index of *other* finds what *askings* want: several, if it serves them together."""
    found = accesses(askings, other.known().facts)
    if len(askings) > 1:
        one_is_enough = not found or found[0].rank == 0
        found = [] if one_is_enough else [one for one in found if len(one.nodes) > 1]
    if not found or found[0].is_range_of_keys:
        return None
    return way_of(found[0], other, where), found[0].nodes, _tells_all(found[0], askings[0].node, other)


def _further_way(askings: Sequence[Asking], other: Running, where: Sequence[Followed]) -> Optional[_InnerWay]:
    """As `_inner_way`, where they ask something of what a record of *other* refers to."""
    further = _linked_way(askings, other.known().facts, other, where)
    return None if further is None else (further, further.nodes, further.exact)


def _first_link(asking: Asking) -> Optional[Link]:
    """The link to begin with, from a field of the record, to the one that *asking* asks something of."""
    link = link_of(asking.node)
    while link is not None and not asking.subject(link.key):
        link = None if link in asking.elements else link_of(link.key)
    return link


def _tells_all(access: Access, node: Node, other: Running) -> bool:
    """Whether the entries of *access* are of exactly those records of which *node*, a condition, is true."""
    bound = other.reads.bound(access)
    if bound is None or access.wide or [term.node for _, term in access.terms] != [node]:
        return False
    part, term = access.terms[0]
    if term.operator not in ("==", "in") or part.kind not in EXACT or len(part.subject) != 1:
        return False
    cover = cover_of(bound.storage, access.facts, other.storage, other.programs.following)
    return cover is not None and part.subject[0] in cover.fields


def cached_by_link(
    way: AccessPath, functions: Sequence[Followed], where: Sequence[Followed], give: Give, programs: Programs
) -> Optional[CachedPaths]:  # fmt: skip
    """The cached plan that finds its records by *way* alone, if the entries of the other index tell all of it."""
    if not isinstance(way, LinkedPath) or way.told is None or way.only:
        return None
    node, link = way.told
    asked = [Asked(one, part) for one in where for part in conjuncts(one.node) if part is not node]
    if way.exact:  # its entries are those of exactly the records that refer
        prepared = Prepared(functions, (), asked, want_of((give,), programs, one=True), programs)
        return CachedLinked(way, None, prepared, alone=not asked)
    making = Making(where[way.number])
    found = Followed(making.reading(making.among(link.key, 0), where[way.number].keyed), nothing, ())
    asked.append(Asked(found, found.node))
    prepared = Prepared([found, *functions], (), asked, want_of((give,), programs, one=True), programs)
    return CachedLinked(way, found, prepared)


def _nothing(functions: Sequence[Followed]) -> None:
    """In the place of what finds ranges by captured values alone."""


class LinkedPath(AccessPath):
    """The index of a field that refers to the records of another table, which *inner* finds."""

    __slots__ = ("_holder", "_known", "_of_values", "begins", "exact", "inner", "nodes", "number", "told")

    def __init__(
        self, access: Access, running: Running, followed: Followed, asking: Asking, link: Link, inner: AccessPath,
        known: Known, told: bool, other: Storage[Any, Any],
    ) -> None:  # fmt: skip
        bound = running.reads.bound(access)
        super().__init__(access, bound, running.table, _nothing)
        self.in_order = False  # several records may be referred to
        self._of_values = finder_of(running.storage if bound is None else bound.storage, access)
        self._holder = captured(followed, link.holder)
        self.number, self.inner, self._known = asking.number, inner, known
        self.nodes = access.nodes
        """The conditions that the other index serves."""
        self.told = (asking.node, link) if told else None
        """The condition, and what it is about, if no record of the other table has to be read for it."""
        self.begins: Optional[tuple[BoundIndex, int]] = None
        """The index, if its entries begin with an engine's key of the other table, and how much of that is left out."""
        if bound is not None and begins_with_key(bound.storage, other.key):
            self.begins = bound, len(other.prefix)
        self.exact = told and self.begins is not None and running.programs.vouched
        """Whether the records that it finds are exactly those that fit."""

    def keys(self, table: Table[Any, Any], where: Sequence[Followed], most: int) -> Optional[list[bytes]]:
        if self.begins is not None:
            others = self.others(table, where)
            return self.begun(table, others, most) if others else others
        values = self.values(table, where)
        return None if values is None else self.of_values(table, values, most)

    def entry_ranges(self, table: Table[Any, Any], where: Sequence[Followed]) -> list[EntryRanges]:
        values = self.values(table, where)
        return [] if values is None else self._entry_ranges(table, self._of_values(values) if values else ())

    def values(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[list[Any]]:
        """The keys of the records of the other table; None if it cannot tell, or they are many."""
        found = self.others(table, where)
        if not found:
            return found
        decode = self._holder(where[self.number])._storage.load_key
        return [decode(key) for key in found]

    def others(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[list[bytes]]:
        """As `values`, as the engine has these keys."""
        linked: Any = self._holder(where[self.number])
        known, state = self._known, linked._index_state
        if linked._txn is not table._txn or not linked._steady:
            return None
        if linked._storage.generated.loops.known is not known or known.state != state:
            return None
        inner = self.inner
        if inner.only:
            owner = inner.key(linked, where)
            return [] if owner is None else [owner]
        found = inner.keys(linked, where, CAP)
        return None if found is None or len(found) >= CAP else found

    def begun(self, table: Table[Any, Any], others: list[bytes], most: int) -> list[bytes]:
        """The engine's keys of the records that refer to those with the engine's keys *others*, at most *most*."""
        if self.begins is None:
            return []
        bound, cut = self.begins
        if len(others) > 1 or not self.tail:
            return owners(table, bound, sorted(others), cut, most)
        # What `owners` comes to for one key, in fewer steps: most links are asked for one record.
        cursor, tail, prefix = table._raw.cursor(self.handle), self.tail, self.prefix
        begin = bound.storage.storage.prefix + others[0][cut:]
        found: list[bytes] = []
        if cursor.set_range(begin):
            for entry in cursor.iternext(True, False):
                if len(found) >= most or not entry.startswith(begin):
                    break
                found.append(prefix + entry[tail:])
        if not COUNTS_REFERENCES:
            cursor.close()
        return found

    def of_values(self, table: Table[Any, Any], values: list[Any], most: int) -> list[bytes]:
        """The engine's keys of the records that refer to those with the keys *values*, at most *most*."""
        return self._within(table, self._of_values(values), most) if values else []


class FewestPath(AccessPath):
    """Several ways, each of which finds all that fit: the one with the fewest entries is read."""

    __slots__ = ("_ways",)

    def __init__(self, ways: Sequence[AccessPath]) -> None:
        self._ways, self.only = ways, False

    def keys(self, table: Table[Any, Any], where: Sequence[Followed], most: int) -> Optional[list[bytes]]:
        found = [way.found(table, where) for way in self._ways]
        return fewest([one for one in found if one is not None], most)


class CachedLinked(CachedPaths):
    """A cached plan of a query by one link: no record of the other table is read, only entries of its index."""

    __slots__ = ("_alone", "_among", "_way")

    def __init__(self, way: LinkedPath, found: Optional[Followed], prepared: Prepared, *, alone: bool = False) -> None:
        """*found*: the condition that a record refers to one of those that were found; None if that is known.

        *alone*: nothing else is asked of the records, which need not be read to be counted.
        """
        super().__init__([way], prepared)
        self._alone = alone
        self._way, self._among = way, None if found is None else found.reading

    def _whole(self, selection: Selection[Any, Any], give: Give) -> Optional[list[Any]]:
        return self._keys(selection, give)[0] if self._alone and give is HITS else super()._whole(selection, give)

    def _keys(self, selection: Selection[Any, Any], give: Give) -> tuple[Optional[list[bytes]], tuple[Any, ...]]:
        table, where, way, among = selection._table, selection._query.where, self._way, self._among
        values = way.others(table, where) if among is None else way.values(table, where)
        if not values:
            return values, ()
        find = way.begun if among is None else way.of_values
        keys = find(table, values, CAP)
        if not keys:
            return keys, ()
        if len(keys) >= FEW:
            most = most_kept(table)
            if len(keys) >= CAP:
                keys = find(table, values, most)
            if len(keys) >= most:
                return None, ()
        functions = (*where, give) if among is None else (Followed(among, nothing, (values,)), *where, give)
        return self._in_key_order(selection, keys), functions
