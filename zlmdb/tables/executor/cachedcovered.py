"""Cached plans of queries that the entries of an index answer: no record is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional

from ...query.following import Followed
from ...query.forms import ROWS
from ...query.prepared import Prepared
from ...query.projection import HITS
from ...query.terms import CAP
from ...query.translated import Give
from ...store.blocks import COUNTS_REFERENCES
from ...store.ranges import keys_from, pairs_from, seek
from ..indexstorage import BoundIndex
from .accesspaths import AccessPath
from .accessranges import Range
from .cachedorder import CachedOrder
from .cachedpaths import FEW, CachedPaths, given
from .cachedscans import CachedScan
from .covered import Cover, Covered
from .foundkeys import FoundEntries
from .keylookups import most_kept, most_of, stages

if TYPE_CHECKING:
    from ..selection import Selection
    from ..table import Table


class CachedCovered(CachedPaths):
    """As `CachedPaths`, of one index whose entries have all that is asked for."""

    __slots__ = ("_bound", "_cover", "_covering", "_fields", "_paired", "_prepared")

    def __init__(
        self, way: AccessPath, prepared: Prepared, bound: BoundIndex, cover: Cover, fields: frozenset[str],
        scan: Optional[CachedScan],
    ) -> None:  # fmt: skip
        """*prepared* serves objects with *fields* of entries, which have what *cover* says."""
        self._ways: Sequence[AccessPath] = (way,)
        self._scan = scan
        self.in_order = way.in_order
        self._prepared, self._bound, self._cover, self._fields = prepared, bound, cover, fields
        self._covering, self._paired = prepared.covering(cover, fields)

    def _all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        table, query = selection._table, selection._query
        if limit is not None:
            return self._limited(selection, give, limit)
        found, scan, most = self._finds(table, query.where), self._scan, most_kept(table)
        entries = found[0].fewer(most if scan is None else min(most, CAP))
        if entries is not None:
            return self._rows_of(found[0], entries, selection, give)[query.skip :]
        return None if scan is None else self._all_staged(found, selection, give, scan)[query.skip :]

    def _finds(self, table: Table[Any, Any], where: Sequence[Followed]) -> Sequence[FoundEntries]:
        found = self._ways[0].entry_ranges(table, where)
        return [FoundEntries(table, given(found[0] if found else None), paired=self._paired)]

    def _rows_of(
        self, found: FoundEntries, entries: list[bytes], selection: Selection[Any, Any], give: Give
    ) -> list[Any]:  # fmt: skip
        """The rows of *entries*, which were *found*."""
        functions = (*selection._query.where, give)
        prepared = given(self._prepared.renewed(functions))
        values = found.values
        entries = found.in_key_order(entries, selection._lower, selection._upper, reverse=bool(selection._reverse))
        get = None if values is None else values.__getitem__
        return self._covering(entries, get, functions, *prepared.given)

    def _lists_of(
        self, found: Sequence[Any], keys: list[bytes], selection: Selection[Any, Any], give: Give, first: int
    ) -> Iterator[list[Any]]:  # fmt: skip
        yield self._rows_of(found[0], keys, selection, give)

    def _limited(self, selection: Selection[Any, Any], give: Give, limit: int) -> Optional[list[Any]]:
        """As `all`. Raises where somebody else has to find out."""
        table, query, way = selection._table, selection._query, self._ways[0]
        functions, skip, stop = (*query.where, give), query.skip, query.skip + limit
        prepared = self._prepared.renewed(functions)
        # Then the order of the index is that of the keys, and no more is read than is wanted.
        within = way.narrowed(selection) if way.in_order else None
        ranges = way.find(query.where) if within is None else (within,)
        if prepared is None or not ranges:
            return None
        if within is not None and stop <= FEW:
            pairs = self._first_pairs(selection, within, stop)
            rows: list[Any] = self._covering(list(pairs), pairs.__getitem__, functions, *prepared.given)
            if len(rows) == stop or len(pairs) < stop:
                return rows[skip:]
        ordered = within is not None or (give is HITS and selection._is_all())
        if not ordered and not way.only:
            found = self._finds(table, query.where)[0]
            few = found.fewer(FEW)
            if few is None and self._scan is not None and stop <= FEW:  # the first records may have as many
                parts = self._scan.parts(selection, give)
                first = parts.next(FEW)
                parts.close()
                if len(first) >= stop:
                    return first[skip:stop]
            few = found.fewer(CAP) if few is None else few
            return None if few is None else self._rows_of(found, few, selection, give)[skip:stop]
        within_keys = selection._lower, selection._upper
        covered = Covered(
            table, self._bound, ranges, ordered, bool(selection._reverse), *within_keys, self._cover, self._fields
        )
        rows = []
        for some in covered.rows(prepared, functions, ROWS, max(stop, 1)):
            rows += some
            if len(rows) >= stop:
                break
        return rows[skip:stop]

    def _first_pairs(self, selection: Selection[Any, Any], within: Range, most: int) -> dict[bytes, bytes]:
        """The first entries *within* a range, at most *most*, with their values."""
        cursor, reverse = selection._table._raw.cursor(self._bound.handle), bool(selection._reverse)
        found = dict(islice(pairs_from(cursor, *within, reverse), most)) if seek(cursor, *within, reverse) else {}
        if not COUNTS_REFERENCES:
            cursor.close()
        return found

    def _lists(self, selection: Selection[Any, Any], give: Give, first: int) -> Iterator[list[Any]]:
        table, scan = selection._table, self._scan
        found = self._finds(table, selection._query.where)
        if scan is not None:
            counted = ((FEW, FEW), *stages(most_of(table)))
            yield from self._staged(found, selection, give, first, scan, counted)
            return
        yield from self._lists_of(found, given(found[0].fewer(CAP)), selection, give, first)

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """The rows of *selection*. All entries are read before the first one comes, if they are few."""
        if selection._limit is None and not self._ways[0].only:
            return super().rows(selection, give)
        return self._at_once(selection, give)


class CachedCoveredOrder(CachedOrder):
    """As `CachedOrder`, of an index whose entries have all that is asked for, and are in just the order of the rows."""

    __slots__ = ("_covering", "_paired", "_prepared")

    def __init__(self, ordered: CachedOrder, prepared: Prepared, cover: Cover, fields: frozenset[str]) -> None:
        """*ordered* does the same by records, which pages are read by; the others are as of `CachedCovered`."""
        self.access, self.exact, self.fingerprint = ordered.access, ordered.exact, None
        self._bound, self._find, self._list = ordered._bound, ordered._find, ordered._list
        self._prepared = prepared
        self._covering, self._paired = prepared.covering(cover, fields)

    def _all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        if limit is None or selection._reverse or not selection._is_all():
            return None
        query, within = selection._query, self._range(selection)
        functions = (*query.where, give)
        prepared = self._prepared.renewed(functions)
        if prepared is None or within is None:
            return None
        cursor, backwards = selection._table._raw.cursor(self._bound.handle), query.backwards is not self.access.flipped
        rows = pairs_from if self._paired else keys_from
        there = seek(cursor, *within, backwards)
        found: Any = islice(rows(cursor, *within, backwards), query.skip, query.skip + limit) if there else ()
        get, entries = None, list(found)
        if self._paired:
            pairs = dict(entries)
            get, entries = pairs.__getitem__, list(pairs)
        if not COUNTS_REFERENCES:
            cursor.close()
        listed: list[Any] = self._covering(entries, get, functions, *prepared.given)
        return listed if len(listed) == len(entries) else None
