"""Cached plans of queries that no index answers: one generated function lists the rows of all records of a range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Optional

from ...query.following import Followed, walk
from ...query.following.known import PLAIN
from ...query.following.nodes import Parameter
from ...query.forms import BLOCK
from ...query.inorder import SHARE
from ...query.prepared import Prepared
from ...query.projection import HITS
from ...query.translated import Give
from ...store.blocks import COUNTS_REFERENCES
from ...store.ranges import pairs_from, seek, values_from
from .accessranges import Find
from .cachedplan import CachedPlan
from .indexfacts import vouches

if TYPE_CHECKING:
    from ..selection import Selection
    from .execution import Running


_KINDS = {*PLAIN, frozenset, list, set, tuple}


def scanned(running: Running, give: Give, find: Optional[Find] = None, *, beside: bool = False) -> Any:
    """The cached plan of the query of *running*, for which no index is of use; False if there is none.

    *find* gives the range of keys of the conditions. *beside*: somebody else decides whether an index is of use.
    """
    where = running.query.where
    functions = [*where, give] if isinstance(give, Followed) else [*where]
    captured: list[tuple[int, int, type[Any]]] = [
        (function, one.number, type(followed.parameters[one.number]))
        for function, followed in enumerate(where)
        for one in walk(followed.node)
        if isinstance(one, Parameter)
    ]
    # The size of a set decides whether an index is of use.
    if not {kind for _, _, kind in captured}.issubset(_KINDS if beside else PLAIN):
        return False
    prepared = running.prepared(functions, (give,), True)
    return CachedScan(prepared, captured, find) if prepared.renewable else False


def scanned_lists(running: Running, prepared: Prepared, functions: Sequence[Followed]) -> Optional[Iterator[list[Any]]]:
    """Lists of the rows of all records of the range of *running*; None if that is told in another way.

    In a write transaction, the caller takes them all before anything is written. Raises where somebody else has to find
    out.
    """
    table = running.table
    plain = table._steady and running.selection._plain and vouches(running.storage.value.name)
    alone = running.at_once or not table._txn._write
    if not plain or not alone or running.joins is not None:
        return None
    if not all([one.reading.complete for one in functions]):
        return None
    return _lists(running.selection, prepared, functions)


def _lists(selection: Selection[Any, Any], prepared: Prepared, functions: Sequence[Followed]) -> Iterator[list[Any]]:
    parts = ScanParts(selection, prepared, functions)
    try:
        while parts.are_left:
            block = parts.next(BLOCK)
            if block:
                yield block
    finally:
        parts.close()


def _scanned_rows(prepared: Prepared, cursor: Any, lower: bytes, upper: bytes, reverse: bool) -> Any:
    """What the function of `Prepared.scanning` reads, from where *cursor* is to the end of the range."""
    return (pairs_from if prepared.of_keys else values_from)(cursor, lower, upper, reverse)


class CachedScan(CachedPlan):
    """A query of which all is known but the captured values, and which reads all records of a range."""

    __slots__ = ("_captured", "_find", "_prepared")
    by_index = False

    def __init__(
        self, prepared: Prepared, captured: Sequence[tuple[int, int, type[Any]]], find: Optional[Find] = None
    ) -> None:  # fmt: skip
        """*captured*: of each captured value in a condition the numbers of both, and its type.

        If it is of another type, an index may be of use.
        """
        self._prepared, self._captured, self._find = prepared, captured, find

    def parts(self, selection: Selection[Any, Any], give: Give) -> ScanParts:
        """The rows of the records of *selection*, none of which is skipped, so many records at a time.

        Raises LookupError where somebody else has to find out.
        """
        where = selection._query.where
        functions = (*where, give) if isinstance(give, Followed) else where
        prepared = self._prepared.renewed(functions) if self._fits(where) else None
        if prepared is None:
            raise LookupError("values of other types are captured")
        return ScanParts(selection, prepared, functions)

    def _fits(self, where: Sequence[Followed]) -> bool:
        """Whether the captured values are of the types that are known."""
        captured = self._captured
        return not captured or all([type(where[function].parameters[n]) is kind for function, n, kind in captured])

    def _all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        table, query = selection._table, selection._query
        where, skip, raw = query.where, query.skip, table._raw
        if limit == 0:
            return []
        limited = limit is not None or skip > 0
        if give is HITS and not limited:  # to count them takes no list
            return None
        if not self._fits(where):
            return None
        functions = (*where, give) if isinstance(give, Followed) else where
        prepared = self._prepared.renewed(functions)
        if prepared is None:
            return None
        lower, upper = selection._lower, selection._upper
        if self._find is not None:
            ranges = self._find(where)
            if not ranges or len(ranges) > 1:
                return None
            lower, upper = max(lower, ranges[0][0]), min(upper, ranges[0][1])
        cursor = raw.cursor(table._db)
        reverse = bool(selection._reverse)
        if not seek(cursor, lower, upper, reverse):
            return []
        rows, key_of = _scanned_rows(prepared, cursor, lower, upper, reverse), cursor.key
        found: list[Any]
        if limited:
            left = -1 if limit is None else limit
            found = prepared.scanning(limited=True)(rows, key_of, functions, skip, left, *prepared.given)
        else:
            found = prepared.scanning(limited=False)(rows, key_of, functions, *prepared.given)
        if not COUNTS_REFERENCES:
            cursor.close()
        return found if table._raw is raw else None


def behind(selection: Selection[Any, Any], key: bytes) -> Selection[Any, Any]:
    """The part of *selection* behind the engine's *key* of one of its records."""
    return selection._with(upper=key) if selection._reverse else selection._with(lower=key + b"\0")


class ScanParts:
    """The rows of the records of *selection*, so many records at a time, while nothing is written."""

    __slots__ = ("_cursor", "_first", "_functions", "_given", "_prepared", "_rows", "_selection", "scanned")

    def __init__(self, selection: Selection[Any, Any], prepared: Prepared, functions: Sequence[Followed]) -> None:
        table, within = selection._table, (selection._lower, selection._upper, bool(selection._reverse))
        self._selection, self._prepared, self._functions = selection, prepared, functions
        cursor = self._cursor = table._raw.cursor(table._db)
        self._rows: Any = _scanned_rows(prepared, cursor, *within) if seek(cursor, *within) else iter(())
        self._first = next(self._rows, None)  # of what is left: the cursor is there
        self._given = self.scanned = 0

    @property
    def are_left(self) -> bool:
        """Whether there are more records."""
        return self._first is not None

    @property
    def are_dense(self) -> bool:
        """Whether so many of the records had a row that an index would not find them faster."""
        return self._given * SHARE >= self.scanned

    def next(self, most: int) -> list[Any]:
        """The rows of the next *most* records."""
        some = (self._first,) if self.are_left else ()
        prepared = self._prepared
        rows = prepared.scanning(limited=False)(
            chain(some, islice(self._rows, most - 1)), self._cursor.key, self._functions, *prepared.given
        )
        self._first = next(self._rows, None)
        self.scanned += most
        self._given += len(rows)
        return rows

    def rest(self) -> Selection[Any, Any]:
        """The part of the selection that is left."""
        key, selection = self._cursor.key(), self._selection
        return selection._with(upper=key + b"\0") if selection._reverse else selection._with(lower=key)

    def close(self) -> None:
        """Nothing more is asked of it."""
        self._cursor.close()  # LMDB looks at every open one whenever something is written
