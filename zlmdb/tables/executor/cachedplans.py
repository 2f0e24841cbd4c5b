"""Cached plans of queries by an index: from captured values to rows, without planning.

To choose a plan takes longer than to read a record. For functions that were read before, by the same indexes, most of
it comes out alike, so it is kept: which index, how its ranges follow from the captured values, and one function that
lists what is wanted of the records. That serves read transactions, in which nothing changes while it runs, and in write
transactions what lists all rows, without an order, before the program continues. Whatever is unusual (values that an
index cannot hold, much of the table, a record that does not decode) is left to `Running`, which handles all cases.

What a query asks, and which indexes there are, decide its kind:

* `CachedPaths`: indexes, or the key, find the records. Rows come in the order of the keys.
* `CachedSorted`: as above, and these rows, few of them, are sorted in memory. `CachedOrder` may have the first ones.
* `CachedCovered`: the entries of one index have all that is asked for.
* `CachedLinked`: the condition is on a linked record, and entries of indexes, one for each link on the way, tell all.
* `CachedLinkScan`: the same without such an index: the other table is read.
* `CachedOrder`: all records, or just those of a range, in the order of an index.
* `CachedScan`: no index is of use.
* `CachedPartial`: one of these for each set of partial indexes that the captured values allow.

How many records there are is told by `counted.CachedCount`, if by an index alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Optional, Union

from ...handlers import let_through
from ...query.accesses import ONE_SIDED, Access, IndexFacts, accesses, order_access, ordered_by
from ...query.expressionsource import Asked
from ...query.following import Followed
from ...query.inorder import KEYS
from ...query.plan import DEEP, split
from ...query.prepared import Prepared
from ...query.recordpaths import needed
from ...query.terms import CAP, Asking, conjuncts
from ...query.translated import Give, want_of, with_sort_key
from ..indexstorage import BoundIndex
from ..scan import while_open
from .accesspaths import AccessPath, EitherPath, way_of
from .cachedorder import BLOCK, CachedOrder, first_in_order, has_order
from .cachedpartial import CachedPartial
from .cachedscans import CachedScan, behind, scanned
from .covered import Cover, cover_of
from .foundkeys import FoundKeys
from .keylookups import most_kept, most_of, stages

if TYPE_CHECKING:
    from ..selection import Selection
    from ..table import Table
    from .cachedlinkscans import CachedLinkScan
    from .execution import Known, Running

KEPT = 256
"""Cached plans of a table that are kept at most."""
FEW = 64
"""Entries that an index gives about as fast as a scan does, of any table."""

_FIRST_BLOCK = 8
_FIRST_STEP = 16


def cached_plan_of(selection: Selection[Any, Any], give: Give, at_once: bool = False) -> Optional[CachedPlan]:
    """The cached plan of *selection*, for what *give* says of each record; None where `Running` has to find out.

    *at_once*: its rows are all listed before the program continues, so it may be of a write transaction.
    """
    table, query = selection._table, selection._query
    where, order = query.where, query.order
    if not table._steady or not selection._plain or (table._txn._write and not (at_once and order is None)):
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
    query = selection._query
    functions = [*query.where, *([give] if isinstance(give, Followed) else [])]
    programs, parts = selection._table._storage.generated.loops, parts_of(query.where)
    found = accesses(parts, facts)
    running: Running = programs.running(selection)
    ways: list[AccessPath] = []
    if found and found[0].rank == 0:
        del found[1:]
    elif any([one.reading.links for one in functions]):
        from .linkedpaths import cached_by_link, linked_ways  # late: few programs follow links

        found = [one for one in found if one.terms or one.facts.where]  # that there is a link is no reason by itself
        ways += linked_ways(parts, facts, running, query.where)
        if len(ways) == 1 and not found and query.order is None:
            cached = cached_by_link(ways[0], functions, query.where, give, programs)
            if cached is not None:
                return cached
    ways += [way_of(one, running, query.where) for one in found]
    if not ways:
        ways = _either(parts, [one for one in facts if not one.where], running, query.where)
    if not ways:
        if query.order is not None:
            return first_in_order(query.where, query.order, functions, give, parts, facts, running) or False
        if not any([one.reading.links for one in query.where]):
            return scanned(running, give)
        from .cachedlinkscans import cached_by_scan  # late, as above

        return cached_by_scan(facts, running, query.where, give) or False
    # A range of keys alone is read as any range, and a record that is not there means two things.
    if all([way.is_range_of_keys for way in ways]) or len({way.sparse for way in ways}) > 1:
        return False
    alone = not any([way.of_keys for way in ways]) and not any([one.reading.links for one in query.where])
    scan = scanned(running, give, beside=True) or None if alone and query.order is None else None
    asking = functions if query.order is None else [*functions, query.order]
    covered = _covered(asking, give, found, running)
    if covered is not None:
        if query.order is not None or len(ways) != 1:
            return False
        from .cachedcovered import CachedCovered  # late: it is one of these

        prepared = running.prepared(functions, (give,), True, running.uncolumned())
        return CachedCovered(ways[0], prepared, *covered, scan) if prepared.renewable else False
    # An index has found the records, most of which match: single fields are not looked at before, as in a scan.
    asked = [Asked(one, node) for one in query.where for node in conjuncts(one.node)]
    want = want_of((give,), programs, one=True)
    if query.order is not None:
        from .cachedsorted import CachedSorted  # late: it is one of these

        want = with_sort_key(query.order, want, programs)
        sorting = [*query.where, query.order, *([give] if isinstance(give, Followed) else [])]
        ordered = first_in_order(query.where, query.order, functions, give, parts, facts, running)
        same, most = None, CAP  # the index that has just these records in order
        if ordered is not None and ordered.exact:
            same = ordered.access.facts
            most = FEW if has_order(query.order, parts, known.facts) else CAP
        alike = len(found) == len(ways) == 1 and found[0].facts is same
        return CachedSorted(ways, Prepared(sorting, (), asked, want, programs), most, ordered, alike=alike)
    return CachedPaths(ways, Prepared(functions, (), asked, want, programs), scan)


def _either(
    parts: Sequence[Asking], facts: Sequence[IndexFacts], running: Running, where: Sequence[Followed]
) -> list[AccessPath]:  # fmt: skip
    """Ways to find what one of *parts* wants that is true in several cases."""
    found = _cases(parts, facts, DEEP)
    ways = [] if found is None else [way_of(one, running, where) for one in found]
    return [EitherPath(ways)] if ways and len({way.sparse for way in ways}) == 1 else []


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
    if access is None or bound is None or _covered(functions, give, [access], running) is not None:
        return False
    prepared = Prepared(functions, (), (), want_of((give,), programs, one=True), programs)
    return CachedOrder(access, bound, prepared)


def _covered(
    functions: Sequence[Followed], give: Give, found: Sequence[Access], running: Running
) -> Optional[tuple[BoundIndex, Cover, frozenset[str]]]:  # fmt: skip
    """The index whose entries are enough, what they have of a record, and what is needed of that."""
    fields = needed(functions, (give,))
    bound = running.reads.bound(found[0]) if len(found) == 1 and fields is not None else None
    if bound is None or (running.programs.columns is not None and not bound.storage.carries):
        return None
    cover = cover_of(bound.storage, found[0].facts, running.storage, running.programs.following)
    return (bound, cover, fields) if cover is not None and fields is not None and fields <= cover.fields else None


class CachedPaths:
    """A query of which all is known but the captured values."""

    __slots__ = ("_list", "_only", "_scan", "_ways", "in_order")

    def __init__(self, ways: Sequence[AccessPath], prepared: Prepared, scan: Optional[CachedScan] = None) -> None:
        """*scan*: what answers it without an index."""
        self._ways, self._scan = ways, scan
        self.in_order = len(ways) == 1 and ways[0].in_order
        self._only = ways[0] if len(ways) == 1 and ways[0].only and not ways[0].sparse else None
        self._list = prepared.listing(sparse=ways[0].sparse)

    def all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        """At most *limit* of the rows of *selection*; None where somebody else has to find out."""
        table, query = selection._table, selection._query
        only = self._only
        try:
            if only is not None and not query.skip and limit != 0:  # one record, or none: without all that follows
                key = only.key(table, query.where)
                if key is None or not selection._lower <= key < selection._upper:
                    return []
                return self._list([key], table._get, table._db, (*query.where, give))
            if limit is None:
                whole = self._whole(selection, give)
                return whole[query.skip :] if whole and query.skip else whole
            stop = query.skip + limit
            few = self._first(selection, give, stop) if self.in_order and stop <= CAP else None
            if few is not None:
                return few[query.skip :]
            rows: list[Any] = []
            for some in self._lists(selection, give, stop):
                rows += some
                if len(rows) >= stop:
                    break
            return rows[query.skip : stop]
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def _whole(self, selection: Selection[Any, Any], give: Give) -> Optional[list[Any]]:
        """All rows; None if that takes a plan."""
        table, functions, scan = selection._table, (*selection._query.where, give), self._scan
        if scan is None:
            keys, asked = self._keys(selection, give)
            return self._list(keys, table._get, table._db, asked) if keys else keys
        keys = self._few(table, selection._query.where)
        if keys is None:
            found = self._finds(table, selection._query.where)
            keys = fewest(found, min(most_of(table), CAP))
            if keys is None:
                return self._all_staged(found, selection, give, scan)
        return self._list(self._in_key_order(selection, keys), table._get, table._db, functions) if keys else keys

    def _few(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[list[bytes]]:
        """The keys that the first way finds that has few; None if none has."""
        few = FEW if len(self._ways) == 1 else _FIRST_STEP
        for way in self._ways:
            keys = way.keys(table, where, few)
            if keys is None or len(keys) < few:
                return keys
        return None

    def _all_staged(
        self, found: Sequence[FoundKeys], selection: Selection[Any, Any], give: Give, scan: CachedScan
    ) -> list[Any]:  # fmt: skip
        """All rows, of many entries. Raises as `_lists`."""
        counted = stages(most_of(selection._table))
        return list(chain.from_iterable(self._staged(found, selection, give, BLOCK, scan, counted)))

    def _first(self, selection: Selection[Any, Any], give: Give, stop: int) -> Optional[list[Any]]:
        """At most *stop* rows, if these are known of few entries: then it does not matter how many there are."""
        table, functions = selection._table, (*selection._query.where, give)
        for most in (stop, max(stop, FEW)):
            keys = self._ways[0].ends(selection, most)
            if keys is None:
                return None
            rows = self._list(keys, table._get, table._db, functions)
            if len(rows) >= stop or len(keys) < most:
                return rows[:stop]
        return None

    def _lists(self, selection: Selection[Any, Any], give: Give, first: int) -> Iterator[list[Any]]:
        """Lists of the rows, of *first* ones to begin with. Raises where somebody else has to find out."""
        table, scan, functions = selection._table, self._scan, (*selection._query.where, give)
        most = most_of(table)
        read, size, until = 0, FEW, FEW if scan is None else most
        while self.in_order and read < until:  # the entries are in the order of the records
            few = self._ways[0].ends(selection, size)
            if few is None:
                break
            for block in _blocks(few, max(first, read)):
                yield self._list(block, table._get, table._db, functions)
            if len(few) < size:
                return
            selection = behind(selection, few[-1])
            read, size = read + size, min(2 * size, BLOCK)
        if scan is not None:
            counted = ((FEW, FEW), *stages(most)) if read < most else ((0, sys.maxsize),)
            yield from self._staged(self._finds(table, selection._query.where), selection, give, first, scan, counted)
            return
        keys, functions = self._keys(selection, give)
        if keys is None:
            raise LookupError("so many are read faster in the order of the table")
        for block in _blocks(keys, first):
            yield self._list(block, table._get, table._db, functions)

    def _staged(
        self, found: Sequence[FoundKeys], selection: Selection[Any, Any], give: Give, first: int, scan: CachedScan,
        counted: Iterable[tuple[int, int]],
    ) -> Iterator[list[Any]]:  # fmt: skip
        """As `_lists`: records are read in their order until it is known, by *counted*, whether few are *found*.

        *counted* is as `stages`.
        """
        parts = scan.parts(selection, give)
        keys: Optional[list[bytes]] = None
        try:
            if not parts.are_left:
                return
            for entries, records in counted:
                keys = fewest(found, min(entries, KEYS))
                if keys is not None or entries > KEYS:
                    break
                # Where many of them match, reading the records one after the other is the faster way anyhow.
                while records > 0 or parts.are_dense:
                    size = min(records if records > 0 else parts.scanned, BLOCK)
                    yield parts.next(size)
                    records -= size
                    if not parts.are_left:
                        return
            selection = parts.rest()
        finally:
            parts.close()
        if keys is None:
            raise LookupError("so many would take much memory")
        yield from self._lists_of(found, keys, selection, give, first)

    def _finds(self, table: Table[Any, Any], where: Sequence[Followed]) -> Sequence[FoundKeys]:
        """The keys that each way finds. Raises as `_lists`."""
        found = [way.found(table, where) for way in self._ways]
        return [one for one in found if one is not None] or given(None)  # another one finds all that fit, too

    def _lists_of(
        self, found: Sequence[FoundKeys], keys: list[bytes], selection: Selection[Any, Any], give: Give, first: int
    ) -> Iterator[list[Any]]:  # fmt: skip
        """Lists of the rows of what one of *found* has found, *keys*."""
        table, functions = selection._table, (*selection._query.where, give)
        for block in _blocks(self._in_key_order(selection, keys), first):
            yield self._list(block, table._get, table._db, functions)

    def _keys(self, selection: Selection[Any, Any], give: Give) -> tuple[Optional[list[bytes]], tuple[Any, ...]]:
        """The engine's keys of the records that may fit, in order, and the functions that they are listed for."""
        table, where = selection._table, selection._query.where
        ways = self._ways
        found = self._found(table, where) if len(ways) == 1 else self._fewest(table, where)
        return self._in_key_order(selection, found) if found else found, (*where, give)

    def _in_key_order(self, selection: Selection[Any, Any], found: list[bytes]) -> list[bytes]:
        """Those of the keys *found* that are in the range of *selection*, in its order."""
        if not selection._is_all():
            lower, upper = selection._lower, selection._upper
            found = [key for key in found if lower <= key < upper]
        if len(found) > 1:
            found.sort(reverse=selection._reverse)
        return found

    def _found(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[list[bytes]]:
        way = self._ways[0]
        if way.of_keys:
            return way.keys(table, where, CAP)
        found = way.keys(table, where, FEW)
        if found is None or len(found) < FEW:
            return found
        entries = way.found(table, where)
        return None if entries is None else entries.fewer(most_kept(table))

    def _fewest(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[list[bytes]]:
        """As the planner has it: of several indexes the one with the fewest entries."""
        most = min(most_of(table), CAP)
        if not self._ways[0].sparse:
            return fewest(self._finds(table, where), most)
        keys = [given(way.keys(table, where, most)) for way in self._ways]  # without reading any
        return min([few for few in keys if len(few) < most], key=len, default=None)

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """The rows of *selection*, read in blocks: few at first, because the caller may stop."""
        table, query = selection._table, selection._query
        raw = table._raw
        left, skip = selection._limit, query.skip
        given = 0
        if left is not None and skip + left <= FEW:
            yield from while_open(table, partial(self._all_or, selection, give))
            return
        lists = self._lists(selection, give, 1 if left is None else skip + left)
        while True:
            try:
                found = next(lists, None)
            except Exception as error:
                let_through(error)
                break
            if found is None:
                return
            if skip:
                skipped = min(skip, len(found))
                skip -= skipped
                del found[:skipped]
            if left is not None:
                del found[left - given :]
            for row in found:
                yield row
                if table._raw is not raw:
                    table._cursor()  # raises: the transaction has ended
            given += len(found)
            if left is not None and given >= left:
                return
        yield from islice(selection._running().rows(give), given, None)

    def _all_or(self, selection: Selection[Any, Any], give: Give) -> Iterable[Any]:
        found = self.all(selection, give, selection._limit)
        return selection._running().rows(give) if found is None else found


CachedPlan = Union[CachedPaths, CachedOrder, CachedScan, "CachedLinkScan"]


def fewest(found: Sequence[FoundKeys], most: int) -> Optional[list[bytes]]:
    """The fewest keys of one of *found*; None if each has *most* or more.

    They are read in steps, up to the first in which one of them ends: it takes as long as that one has entries.
    """
    step = _FIRST_STEP if len(found) > 1 else most
    while True:
        few = [keys for way in found if (keys := way.fewer(min(step, most))) is not None]
        if few or step >= most:
            return min(few, key=len, default=None)
        step *= 4


def given(keys: Optional[Any]) -> Any:
    """*keys*, as `AccessPath.found` gives them. Raises LookupError if it cannot tell."""
    if keys is None:
        raise LookupError("the index cannot hold such a value")
    return keys


def _blocks(keys: list[bytes], first: int) -> Iterator[list[bytes]]:
    """*keys* in blocks, of which the first is small."""
    at, size = 0, min(max(first, 1), BLOCK)
    while at < len(keys):
        yield keys[at : at + size]
        at += size
        size = min(max(2 * size, _FIRST_BLOCK), BLOCK)
