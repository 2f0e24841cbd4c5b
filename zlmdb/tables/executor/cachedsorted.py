"""Cached plans of queries by an index whose rows, few of them, are sorted in memory, if no index has their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import isqrt
from typing import TYPE_CHECKING, Any, Optional

from ...query.cursors import Position
from ...query.following import Followed
from ...query.ordering import checked, first_of
from ...query.prepared import Prepared
from ...query.translated import Give
from .accesspaths import AccessPath
from .cachedorder import CachedOrder
from .cachedpaths import FEW, CachedPaths
from .cachedplan import PageRead
from .firstofeach import FirstOfEach
from .keylookups import most_kept, total_of

if TYPE_CHECKING:
    from ..selection import Selection
    from ..table import Table


class CachedSorted(CachedPaths):
    """As `CachedPaths`, of a query with an order. Its function lists sort keys, keys and rows."""

    __slots__ = ("_alike", "_covered", "_each", "_most", "ordered")

    def __init__(
        self, ways: Sequence[AccessPath], prepared: Prepared, most: int, ordered: Optional[CachedOrder],
        each: Optional[FirstOfEach], *, alike: bool, covered: bool,
    ) -> None:  # fmt: skip
        """*most*: records from which on there may be a better way to find them.

        *ordered* gives the first ones; *alike*: of the index that finds them all. *each* gives the first ones of each
        key that is asked for; *covered*: all others are left to `Covered`, which reads no records.
        """
        self._each, self._covered = each, covered
        super().__init__(ways, prepared)
        self._only, self.in_order, self.ordered, self._alike = None, False, ordered, alike
        self._most = most

    def _all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        table, query = selection._table, selection._query
        ordered = self.ordered
        if ordered is not None and ordered.exact and (limit is not None or self._alike):
            rows = ordered.whole(selection, give) if limit is None else ordered.all(selection, give, limit)
            if rows is not None:
                return rows
        stop = None if limit is None else query.skip + limit
        first = None if self._each is None or stop is None else self._each.keys(selection, stop)
        if first is not None:
            pairs = self._pairs(selection, give, first)
            if len(pairs) == len(first):  # else the index has others that fit
                return self._first_rows(selection, pairs, stop)
        if self._covered:
            return None
        most = self._most
        if stop is not None and ordered is not None and not ordered.exact:
            # To look for *stop* of so many in the order of the index takes as long as to read and sort them all.
            most = min(most, max(isqrt(stop * total_of(table)), FEW))
        found = self._fewer_than(table, query.where, most)
        keys = self._in_key_order(selection, found) if found else found
        if keys is None and ordered is not None and not ordered.exact and limit is not None:
            return ordered.all(selection, give, limit)
        if not keys:
            return keys
        return self._first_rows(selection, self._pairs(selection, give, keys), stop)

    def _first_rows(
        self, selection: Selection[Any, Any], pairs: Sequence[tuple[Any, Any]], stop: Optional[int]
    ) -> list[Any]:  # fmt: skip
        """The rows of *pairs*, sorted, up to *stop*; without those that are skipped."""
        query = selection._query
        first = first_of(checked(pairs), stop, backwards=query.backwards)
        return [row for _, (_, row) in islice(first, query.skip, stop)]

    def _pairs(self, selection: Selection[Any, Any], give: Give, keys: list[bytes]) -> Sequence[tuple[Any, Any]]:
        """The sort key of each of the records with *keys* that fits, and beside it its key and its row, in a pair."""
        table, query = selection._table, selection._query
        if len(keys) > 1:  # the greatest ones first: equal ones, too, come the other way round
            keys.sort(reverse=bool(selection._reverse) is not query.backwards)
        pairs: Sequence[tuple[Any, Any]] = self._list(keys, table._get, table._db, (*query.where, query.order, give))
        return pairs

    def _page(
        self, selection: Selection[Any, Any], give: Give, size: int, begin: Optional[Position]
    ) -> Optional[PageRead]:  # fmt: skip
        first = None if self._each is None else self._each.keys(selection, size + 1, begin)
        if first is not None:
            pairs = self._pairs(selection, give, first)
            if len(pairs) == len(first):  # else the index has others that fit
                return self._page_of(selection, pairs, size, begin)
        if self._covered:
            return None
        page = None if self.ordered is None else self.ordered.page(selection, give, size, begin)
        found = self._fewer_than(selection._table, selection._query.where, self._most) if page is None else None
        if found is None:
            return page
        keys = self._in_key_order(selection, found) if found else []
        return self._page_of(selection, self._pairs(selection, give, keys) if keys else (), size, begin)

    def _page_of(
        self, selection: Selection[Any, Any], pairs: Sequence[tuple[Any, Any]], size: int, begin: Optional[Position]
    ) -> PageRead:  # fmt: skip
        """The first *size* rows of *pairs* behind *begin*."""
        backwards, found = selection._query.backwards, checked(pairs)
        if begin is not None:
            down = bool(selection._reverse) is not backwards
            found = filter(lambda one: Position(one[0], one[1][0]).is_behind(begin, backwards, down), found)
        first = list(first_of(found, size + 1, backwards=backwards))
        rows = [row for _, (_, row) in first[:size]]
        ends = [Position(sort_key, key) for sort_key, (key, _) in (*first[:1], *first[size - 1 : size])]
        return rows, ends[0] if first and begin is not None else None, ends[-1] if len(first) > size else None

    def _fewer_than(self, table: Table[Any, Any], where: Sequence[Followed], most: int) -> Optional[list[bytes]]:
        """The keys that are found, if they are fewer than *most*, and not much of the table."""
        most = min(most, most_kept(table))
        found = self._ways[0].keys(table, where, most) if len(self._ways) == 1 else self._fewest(table, where)
        return None if found is None or len(found) >= most else found

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """The rows of *selection*. All are read before the first one comes."""
        return self._at_once(selection, give)
