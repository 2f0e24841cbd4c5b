"""What a cached plan is: a query of which all is known but the captured values.

To choose a plan takes longer than to read a record. For functions that were read before, by the same indexes, most of
it comes out alike, so it is kept: which index, how its ranges follow from the captured values, and one function that
lists what is wanted of the records.

A plan is kept by the readings of the functions of a query: the code of each, without what it captured. `cachedplans`
keeps it and makes it, once all functions have been compared with records. It may be used again as long as the table has
the same indexes (`Known.state`), in a read transaction, in which nothing changes while it runs, and in a write
transaction for what takes all rows before the program continues, as whatever sorts does. So a plan must keep nothing of
a query but its form: no captured value, no bound of a selection, nothing of a transaction.

What a query asks, and which indexes there are, decide its kind:

* `CachedPaths`: indexes, or the key, find the records. Rows come in the order of the keys.
* `CachedSorted`: as above, and these rows, few of them, are sorted in memory. `CachedOrder` may have the first ones.
* `CachedCovered`: the entries of one index have all that is asked for.
* `CachedLinked`: the condition is on a linked record, and entries of indexes, one for each link on the way, tell all.
* `CachedLinkScan`: the same without such an index: the other table is read.
* `CachedOrder`: all records, or just those of a range, in the order of an index.
* `CachedScan`: no index is of use. All records are read, or those of a range of keys.

`CachedPartial` keeps one of these for each set of partial indexes that the captured values allow. How many records
there are is told by `counted.CachedCount`, if by an index alone.

To add a kind, write a class with `_all`, and let `cachedplans` make it for the queries that it serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...query.cursors import Position
from ...query.translated import Give
from ..scan import while_open

if TYPE_CHECKING:
    from ..selection import Selection

PageRead = tuple[list[Any], Optional[Position], Optional[Position]]
"""The rows of a page, the position of the first one if others may precede it, and of the last one if more follow."""


class CachedPlan:
    """A query of which all is known but the captured values; *give* is always the one that the plan is made for."""

    __slots__ = ()

    by_index = True
    """Whether it reads no more than an index finds, and never the whole table."""
    in_order = False
    """Whether an index has the rows in the order of their keys: the first ones are read without the others."""

    def _all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        """As `all`. Whatever is unusual may raise: values that an index cannot hold, a record that does not decode."""
        raise NotImplementedError

    def all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        """At most *limit* of the rows of *selection*; None where `Running` has to find out, which handles all cases."""
        try:
            return self._all(selection, give, limit)
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def page(
        self, selection: Selection[Any, Any], give: Give, size: int, begin: Optional[Position]
    ) -> Optional[PageRead]:  # fmt: skip
        """A page behind *begin*; None as `all`."""
        try:
            return self._page(selection, give, size, begin)
        except Exception as error:  # as above
            let_through(error)
            return None

    def _page(
        self, selection: Selection[Any, Any], give: Give, size: int, begin: Optional[Position]
    ) -> Optional[PageRead]:  # fmt: skip
        """As `page`, of what has an order. It may raise, as `_all`."""
        return None

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """The rows of *selection*, which the caller may not want all."""
        return selection._running().rows(give)

    def _at_once(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """As `rows`. All are read before the first one comes."""
        return while_open(selection._table, partial(self._all_or_run, selection, give))

    def _all_or_run(self, selection: Selection[Any, Any], give: Give) -> Iterable[Any]:
        found = self.all(selection, give, selection._limit)
        return selection._running().rows(give) if found is None else found

    def told(self, selection: Selection[Any, Any]) -> Optional[tuple[str, str]]:
        """The name of the index that `all` reads, and how, for `explain`; None if it reads what the planner says."""
        return None
