"""Cached plans of queries that the entries of an index answer: no record is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...query.ordering import sliced
from ...query.prepared import Prepared
from ...query.projection import HITS
from ...query.terms import CAP
from ...query.translated import Give
from ..indexstorage import BoundIndex
from ..scan import while_open
from .accesspaths import AccessPath
from .cachedplans import FEW, Ready
from .cachedscans import ScanReady
from .covered import Covered

if TYPE_CHECKING:
    from ..selection import Selection


class CoveredReady(Ready):
    """As `Ready`, of one index whose entries have all that is asked for."""

    __slots__ = ("_bound", "_functions", "_prepared", "_row")

    def __init__(
        self, way: AccessPath, prepared: Prepared, bound: BoundIndex, row: Callable[[bytes, bytes], Any],
        scan: Optional[ScanReady], *, gives: bool,
    ) -> None:  # fmt: skip
        """*prepared* serves objects with the fields of entries, which *row* makes.

        *gives*: what is given is a function, too.
        """
        self._ways: Sequence[AccessPath] = (way,)
        self._scan = scan
        self.in_order = way.in_order
        self._prepared, self._bound, self._row, self._functions = prepared, bound, row, gives

    def all(
        self, selection: Selection[Any, Any], give: Give, limit: Optional[int]
    ) -> Optional[list[Any]]:  # fmt: skip
        """At most *limit* of the rows of *selection*; None where somebody else has to find out."""
        table, query = selection._table, selection._query
        way, where = self._ways[0], query.where
        if table._txn.buffers:
            return None
        try:
            functions: list[Any] = [*where, give] if self._functions else [*where]
            prepared, ranges = self._prepared.renewed(functions), way.find(where)
            if prepared is None or not ranges:
                return None
            lower, upper, storage = selection._lower, selection._upper, table._storage
            # Then the order of the index is that of the keys, and no more is read than is wanted.
            within = way.narrowed(selection) if limit is not None and way.in_order else None
            anyhow = give is HITS and limit is not None and lower == storage.lower and upper == storage.upper
            ordered = within is not None or anyhow
            if within is not None:
                ranges = (within,)
            if not ordered and not way.only:
                few = self._found(table, where) if limit is None else self._fewer(table, where, FEW)
                if few is None and limit is not None:
                    stop = query.skip + limit
                    if self._scan is not None and stop <= FEW:
                        parts = self._scan.parts(selection, give)
                        first = parts.next(FEW)
                        parts.close()
                        if len(first) >= stop:
                            return first[query.skip : stop]
                    few = self._fewer(table, where, CAP)
                if few is None:
                    return None
            covered = Covered(
                table, self._bound, ranges, ordered, selection._reverse, lower, upper, self._row
            )  # fmt: skip
            loop = prepared.loop(prepared.keyed, False)
            failed = partial(covered.failed, functions)
            rows = loop(covered.scan, _itself, storage.load_key, failed, *prepared.arguments(functions))
            return list(sliced(rows, query.skip, limit))
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """The rows of *selection*. All entries are read before the first one comes, if they are few."""
        return while_open(selection._table, partial(self._few_or, selection, give))

    def _few_or(self, selection: Selection[Any, Any], give: Give) -> Iterable[Any]:
        try:
            known = self._ways[0].only or selection._limit is not None
            few = known or self._fewer(selection._table, selection._query.where, CAP) is not None
        except Exception as error:  # the general form tells what it is
            let_through(error)
            few = False
        return self._all_or(selection, give) if few else selection._running().rows(give)


def _itself(value: Any) -> Any:
    return value
