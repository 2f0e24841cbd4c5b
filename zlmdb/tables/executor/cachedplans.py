"""Which cached plan a query has: it is looked up by the functions of the query, and made if it is the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

from ...query.accesses import ONE_SIDED, Access, IndexFacts, accesses, order_access, ordered_by
from ...query.expressionsource import Asked
from ...query.following import Followed
from ...query.plan import DEEP, split
from ...query.prepared import Prepared
from ...query.projection import ENGINE_KEYS
from ...query.recordpaths import needed
from ...query.terms import CAP, Asking, conjuncts
from ...query.translated import Give, translated, want_of, with_sort_key
from ..indexstorage import BoundIndex
from .accesspaths import AccessPath, EitherPath, way_of
from .cachedcovered import CachedCovered, CachedCoveredOrder
from .cachedorder import CachedOrder, first_in_order, has_order
from .cachedpartial import CachedPartial
from .cachedpaths import FEW, CachedPaths
from .cachedplan import CachedPlan
from .cachedscans import scanned
from .cachedsorted import CachedSorted
from .covered import Cover, cover_of
from .firstofeach import first_of_each

if TYPE_CHECKING:
    from ..selection import Selection
    from .execution import Known, Running

KEPT = 256
"""Cached plans of a table that are kept at most."""


def cached_plan_of(selection: Selection[Any, Any], give: Give, at_once: bool = False) -> Optional[CachedPlan]:
    """The cached plan of *selection*, for what *give* says of each record; None where `Running` has to find out.

    *at_once*: its rows are all listed before the program continues, so it may be of a write transaction.
    """
    table, query = selection._table, selection._query
    where, order = query.where, query.order
    if not table._steady or not selection._plain or (table._txn._write and not at_once):
        return None
    programs = table._storage.generated.programs
    if programs is None:
        return None
    known: Optional[Known] = programs.known
    state = table._index_state
    if known is None or known.state != state:
        if where or order is not None:
            return None
        running: Running = programs.running(selection)
        known = running.known()
    given = give.reading if isinstance(give, Followed) else give
    key: tuple[Any, ...]
    if order is None:
        key = (given, where[0].reading) if len(where) == 1 else (given, *[one.reading for one in where])
    elif where:
        key = (given, *[one.reading for one in where], None, order.reading)
    else:
        key = (given, None, order.reading, query.backwards)
    found: Any = known.cached.get(key)
    if found is None:
        found = _made(selection, give, known)
        if found is None:  # not yet
            return None
        keep(known.cached, key, found)
    if type(found) is CachedPartial:
        found = found.of(where, partial(_planned, selection, give, known))
    return found or None


def keep(cached: dict[Any, Any], key: Any, found: Any) -> None:
    """Keep what was *found* out for *key*, with fewer than `KEPT` others."""
    if len(cached) >= KEPT:
        cached.clear()
    cached[key] = found


def _made(selection: Selection[Any, Any], give: Give, known: Known) -> Any:
    """The cached plan of a query; False if there is none, None if that cannot be told yet."""
    query, table = selection._query, selection._table
    functions = [*query.where, *([give] if isinstance(give, Followed) else [])]
    readings = [one.reading for one in (*functions, *([] if query.order is None else [query.order]))]
    if any([one.to_check > 0 for one in readings]):
        return None
    if not all([one.complete for one in readings]):
        return False
    if query.order is not None and not query.where:
        return _ordered(selection, query.order, functions, give, known)
    if not query.where:
        return scanned(table._storage.generated.loops.running(selection), give)
    if any([index.where for index in known.facts]):
        return CachedPartial(known.facts, parts_of(query.where))
    return _planned(selection, give, known, known.facts)


def parts_of(where: Sequence[Followed]) -> list[Asking]:
    """Conditions that all have to hold, where nothing changes while the query runs."""
    askings = [Asking(one.node, one.parameters, one.keyed, number=n, still=True) for n, one in enumerate(where)]
    return [asking.of(node) for asking in askings for node in conjuncts(asking.node)]


def _planned(selection: Selection[Any, Any], give: Give, known: Known, facts: Sequence[IndexFacts]) -> Any:
    """As `_made`, by the indexes with these *facts*."""
    return _Planning(selection, give, known, facts).plan()


class _Planning:
    """How the cached plan is made of a query with conditions, by the indexes with these *facts*."""

    def __init__(
        self, selection: Selection[Any, Any], give: Give, known: Known, facts: Sequence[IndexFacts]
    ) -> None:  # fmt: skip
        query = selection._query
        self.give, self.known, self.facts, self.where, self.order = give, known, facts, query.where, query.order
        self.functions = [*query.where, *([give] if isinstance(give, Followed) else [])]
        self.programs = selection._table._storage.generated.loops
        self.running: Running = self.programs.running(selection)
        self.parts = parts_of(query.where)
        self.linked = any([one.reading.links for one in query.where])

    def plan(self) -> Any:
        """The cached plan; False if there is none."""
        every = accesses(self.parts, self.facts)
        found = _fewest(every)
        ways: list[AccessPath] = []
        if found and found[0].rank == 0:
            del found[1:]
        elif any([one.reading.links for one in self.functions]):
            from .linkedpaths import cached_by_link, linked_ways  # late: few programs follow links

            # That there is a link is no reason by itself.
            found = [one for one in found if one.terms or one.facts.where]
            ways += linked_ways(self.parts, self.facts, self.running, self.where)
            if len(ways) == 1 and not found and self.order is None:
                cached = cached_by_link(ways[0], self.functions, self.where, self.give, self.programs)
                if cached is not None:
                    return cached
        ways += [way_of(one, self.running, self.where) for one in found]
        ways = ways or self._either()
        if not ways:
            return self._without_index()
        if all([way.is_range_of_keys for way in ways]):  # it is read as any range
            alone = len(ways) == 1 and self.order is None and not self.linked
            return scanned(self.running, self.give, ways[0].find, beside=True) if alone else False
        if len({way.sparse for way in ways}) > 1:  # a record that is not there means two things
            return False
        if self.order is None:
            return self._by_key(ways, found)
        return self._sorted(self.order, ways, found, every)

    def _without_index(self) -> Any:
        """As `plan`, where no index finds the records."""
        if self.order is not None:
            return self._first_in(self.order) or False
        if not self.linked:
            return scanned(self.running, self.give)
        from .cachedlinkscans import cached_by_scan  # late, as above

        return cached_by_scan(self.facts, self.running, self.where, self.give) or False

    def _by_key(self, ways: list[AccessPath], found: list[Access]) -> Any:
        """As `plan`, of records that *ways* find, in the order of their keys."""
        alone = not any([way.of_keys for way in ways]) and not self.linked
        scan = scanned(self.running, self.give, beside=True) or None if alone else None
        covered = _covered(self.functions, self.give, found, self.running, sorts=False)
        if covered is not None:
            if len(ways) != 1:
                return False
            prepared = self.running.prepared(self.functions, (self.give,), True, self.running.uncolumned())
            return CachedCovered(ways[0], prepared, *covered, scan) if prepared.renewable else False
        want = want_of((self.give,), self.programs, one=True)
        prepared = Prepared(self.functions, (), self._asked(), want, self.programs)
        return CachedPaths(self._with_either(ways, found), prepared, scan)

    def _sorted(self, order: Followed, ways: list[AccessPath], found: list[Access], every: Sequence[Access]) -> Any:
        """As `plan`, of records that *ways* find, to be put in *order*."""
        covered = _covered([*self.functions, order], self.give, every, self.running, sorts=True)
        each = first_of_each(self.where, order, self.parts, found, self.running)
        ordered = self._first_in(order)
        if covered is not None and each is None:
            return _from_entries(ordered, self.functions, self.give, self.running) or False
        ways = self._with_either(ways, found)
        want = want_of((ENGINE_KEYS, self.give), self.programs, one=False)
        want = with_sort_key(order, want, self.programs)
        functions = [*self.where, order, *self.functions[len(self.where) :]]
        same, most = None, CAP  # the index that has just these records in order
        if ordered is not None and ordered.exact:
            same = ordered.access.facts
            most = FEW if has_order(order, self.parts, self.known.facts) else CAP
        alike = len(found) == len(ways) == 1 and found[0].facts is same
        return CachedSorted(
            ways, Prepared(functions, (), self._asked(), want, self.programs), most, ordered, each, alike=alike,
            covered=covered is not None,
        )  # fmt: skip

    def _first_in(self, order: Followed) -> Optional[CachedOrder]:
        return first_in_order(
            self.where, order, self.functions, self.give, self.parts, self.facts, self.running
        )  # fmt: skip

    def _asked(self) -> list[Asked]:
        """What is asked of records that an index found.

        Most of them match: single fields are not looked at before, as in a scan.
        """
        return [Asked(one, node) for one in self.where for node in conjuncts(one.node)]

    def _with_either(self, ways: list[AccessPath], found: Sequence[Access]) -> list[AccessPath]:
        """*ways*, and one of several cases if each of *found*, by which these are, may be most of the table."""
        if len(found) < len(ways) or any([one.rank < ONE_SIDED for one in found]):
            return ways
        return [*[one for one in self._either(least=True) if one.sparse == ways[0].sparse], *ways]

    def _either(self, *, least: bool = False) -> list[AccessPath]:
        """A way to find what a condition wants that is true in several cases; *least*: only if all have two ends."""
        found = _cases(self.parts, [one for one in self.facts if not one.where], DEEP)
        if found is not None and least and any([one.rank >= ONE_SIDED for one in found]):
            return []
        ways = [] if found is None else [way_of(one, self.running, self.where) for one in found]
        return [EitherPath(ways)] if ways and len({way.sparse for way in ways}) == 1 else []


def _fewest(found: Sequence[Access]) -> list[Access]:
    """Those of *found*, the most promising first, of which no other one surely finds the same records, or fewer."""
    kept: list[Access] = []
    for one in found:
        nodes, whole = set(one.nodes), not one.facts.where and all([part.present for part in one.facts.parts])
        fewer = [each for each in found if nodes < set(each.nodes) and each.members is None]
        same = [each for each in kept if nodes == set(each.nodes)]
        if not whole or not nodes or all([each.facts.several for each in (*fewer, *same)]):
            kept.append(one)
    return kept


def _cases(parts: Sequence[Asking], facts: Sequence[IndexFacts], deep: int) -> Optional[list[Access]]:
    """An access for each case of one of *parts*. Within a case, a range with one end only is the last resort."""
    one = next(iter(accesses(parts, facts)), None) if deep < DEEP else None
    if one is not None and one.rank < ONE_SIDED:
        return [one]
    for each in split(parts, deep):
        found = [_cases(case, facts, deep - 1) for case in each]
        if None not in found:
            return [access for few in found if few is not None for access in few]
    return None if one is None else [one]


def _ordered(
    selection: Selection[Any, Any], order: Followed, functions: Sequence[Followed], give: Give, known: Known
) -> Any:
    """As `_made`, of an index that has the order of all records."""
    table = selection._table
    subjects = ordered_by(order.node, order.keyed)
    found = [] if subjects is None else [order_access(index, subjects, (), tied=True) for index in known.facts]
    access = min([one for one in found if one is not None], key=lambda one: one.ties, default=None)
    programs = table._storage.generated.loops
    running: Running = programs.running(selection)
    bound = None if access is None else running.reads.bound(access)
    if access is None or bound is None:
        return False
    prepared = Prepared(functions, (), (), want_of((give,), programs, one=True), programs)
    ordered = CachedOrder(access, bound, prepared)
    covered = _covered(functions, give, [access], running, sorts=True) is not None
    return (_from_entries(ordered, functions, give, running) or False) if covered else ordered


def _from_entries(
    ordered: Optional[CachedOrder], functions: Sequence[Followed], give: Give, running: Running
) -> Optional[CachedOrder]:  # fmt: skip
    """*ordered*, reading entries in place of records if these have the order itself; None if they do not tell all."""
    if ordered is None or not ordered.exact:
        return None
    covered = _covered(functions, give, [ordered.access], running, sorts=True)
    if covered is None or ordered.access.ties:
        return ordered
    programs = running.uncolumned()
    conditions, asked = translated(running.query.where, programs)
    prepared = Prepared(functions, conditions, asked, want_of((give,), programs, one=True), programs)
    return CachedCoveredOrder(ordered, prepared, *covered[1:]) if prepared.renewable else None


def _covered(
    functions: Sequence[Followed], give: Give, found: Sequence[Access], running: Running, *, sorts: bool
) -> Optional[tuple[BoundIndex, Cover, frozenset[str]]]:  # fmt: skip
    """The index whose entries are enough, what they have of a record, and what is needed of that.

    None for what a statement sorts, of which it wants the keys: entries are not read in place of records there.
    """
    if give is ENGINE_KEYS and sorts:
        return None
    fields = needed(functions, (give,))
    bound = running.reads.bound(found[0]) if len(found) == 1 and fields is not None else None
    if bound is None or (running.programs.columns is not None and not bound.storage.carries):
        return None
    cover = cover_of(bound.storage, found[0].facts, running.storage, running.programs.following)
    return (bound, cover, fields) if cover is not None and fields is not None and fields <= cover.fields else None
