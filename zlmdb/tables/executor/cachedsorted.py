"""Cached plans of queries by an index whose rows, few of them, are sorted in memory, if no index has their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...query.following import Followed
from ...query.ordering import checked, first_of
from ...query.prepared import Prepared
from ...query.translated import Give
from ..scan import while_open
from .accesspaths import AccessPath
from .cachedorder import CachedOrder
from .cachedplans import CachedPaths
from .keylookups import most_kept

if TYPE_CHECKING:
    from ..selection import Selection
    from ..table import Table

_row = itemgetter(1)


class CachedSorted(CachedPaths):
    """As `CachedPaths`, of a query with an order. The function that lists its records gives pairs: sort key and row."""

    __slots__ = ("_most", "ordered")

    def __init__(
        self, ways: Sequence[AccessPath], prepared: Prepared, most: int, ordered: Optional[CachedOrder]
    ) -> None:  # fmt: skip
        """*most*: records from which on there may be a better way to find them. *ordered* gives the first ones."""
        super().__init__(ways, prepared)
        self._only, self.in_order, self._most, self.ordered = None, False, most, ordered

    def all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        """At most *limit* of the rows of *selection*; None where somebody else has to find out."""
        table, query = selection._table, selection._query
        order: Optional[Followed] = query.order
        first = None if self.ordered is None or limit is None else self.ordered.all(selection, give, limit)
        if first is not None:
            return first
        try:
            keys, _ = self._keys(selection, give)
            if not keys:
                return keys
            if len(keys) > 1:  # the greatest ones first: equal ones, too, come the other way round
                keys.sort(reverse=bool(selection._reverse) is not query.backwards)
            pairs = self._list(keys, table._get, table._db, (*query.where, order, give))
            stop = None if limit is None else query.skip + limit
            found = first_of(checked(pairs), stop, backwards=query.backwards)
            return list(map(_row, islice(found, query.skip, stop)))
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def _found(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[list[bytes]]:
        most = min(self._most, most_kept(table))
        found = self._ways[0].keys(table, where, most)
        return None if found is None or len(found) >= most else found

    def _fewest(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[list[bytes]]:
        found = super()._fewest(table, where)
        return None if found is None or len(found) >= self._most else found

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """The rows of *selection*. All are read before the first one comes."""
        return while_open(selection._table, partial(self._all_or, selection, give))
