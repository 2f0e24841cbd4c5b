"""Cached plans of queries in the order of an index, and pages of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional

from ...keys import TupleKey
from ...query.accesses import Access, IndexFacts, order_access, ordered_by
from ...query.cursors import Position
from ...query.expressionsource import Asked
from ...query.following import Followed
from ...query.plan import SHARE
from ...query.prepared import Prepared
from ...query.projection import PAIRS, VALUES
from ...query.terms import CAP, Asking, conjuncts
from ...query.translated import Give, want_of
from ..indexstorage import BoundIndex
from .accessranges import UNFIT, Find, Range, finder
from .cachedplan import CachedPlan, PageRead
from .covered import EXACT
from .foundkeys import first_keys, first_tied, tied_keys
from .keylookups import most_kept, total_of

if TYPE_CHECKING:
    from ..selection import Selection
    from .execution import Running

BLOCK = 1000
"""Rows that are listed at once, at most."""


class CachedOrder(CachedPlan):
    """The records of a range of an index, in its order, of which all is known but the captured values.

    Either the range has just what is asked for, and is `exact`, or the first rows are looked for in it.
    """

    __slots__ = ("_bound", "_find", "_list", "access", "exact", "fingerprint")

    def __init__(
        self, access: Access, bound: BoundIndex, prepared: Prepared, find: Optional[Find] = None, *, exact: bool = True
    ) -> None:  # fmt: skip
        """*find* gives the range, of the conditions of a query; without it it is the whole index."""
        self.access, self._bound, self._find, self.exact = access, bound, find, exact
        self._list = prepared.listing(sparse=False)
        self.fingerprint: Optional[str] = None  # of the query, if it depends on nothing else

    def _all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        query = selection._query
        if limit is None and (self._find is not None or self.access.ties):  # to sort fewer may be better
            return None
        within = self._range(selection)
        stop = None if limit is None else query.skip + limit
        if within is None:
            return None
        if not self.exact:
            return self._fitting(selection, give, within, query.skip, stop or 0)
        keys = self._keys(selection, within, stop, query.skip)
        return None if keys is None else self._rows(selection, give, keys)

    def whole(self, selection: Selection[Any, Any], give: Give) -> Optional[list[Any]]:
        """All rows, if the range is `exact` and not much of the table; None where somebody else has to find out."""
        within, skip, most = self._range(selection), selection._query.skip, most_kept(selection._table)
        keys = None if within is None else self._keys(selection, within, most)
        return None if keys is None or len(keys) >= most else self._rows(selection, give, keys[skip:])

    def _fitting(
        self, selection: Selection[Any, Any], give: Give, within: Range, skip: int, stop: int
    ) -> Optional[list[Any]]:  # fmt: skip
        """The rows of the first records that fit; None if these are not found soon, and all may be read faster."""
        table, functions = selection._table, (*selection._query.where, give)
        rows: list[Any] = []
        total = total_of(table)
        read, size, most = 0, max(stop, 1), min(CAP, total // (4 * SHARE))
        while size <= most or len(rows) * total > stop * SHARE * read:  # as the planner has it, of the first `CAP`
            keys = self._keys(selection, within, size, most=most)
            if keys is None:
                return None
            rows += self._list(keys[read:], table._get, table._db, functions)
            if len(rows) >= stop or len(keys) < size:
                return rows[skip:stop]
            read, size = size, most if size < most < size * 2 else size * 2
        return None

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """As `CachedPlan.rows`: few are read before the first one comes."""
        limit = selection._limit
        return super().rows(selection, give) if limit is None or limit > BLOCK else self._at_once(selection, give)

    def _page(
        self, selection: Selection[Any, Any], give: Give, size: int, begin: Optional[Position]
    ) -> Optional[PageRead]:  # fmt: skip
        keys = self._keys_behind(selection, begin, size + 1) if self.exact else None
        rows = None if keys is None else self._rows(selection, give, keys[:size])
        if keys is None or rows is None:
            return None
        first = None if begin is None or not keys else self._position(selection, keys[0], give, rows[0])
        return rows, first, self._position(selection, keys[size - 1], give, rows[-1]) if len(keys) > size else None

    def _range(self, selection: Selection[Any, Any]) -> Optional[Range]:
        """The range of the entries that are asked for; None if it cannot be told."""
        if self._find is None:
            return self._bound.storage.lower, self._bound.storage.upper
        ranges = self._find(selection._query.where)
        return ranges[0] if ranges and len(ranges) == 1 else None

    def _keys_behind(
        self, selection: Selection[Any, Any], begin: Optional[Position], stop: int
    ) -> Optional[list[bytes]]:  # fmt: skip
        """As `_keys`, of the entries of the range behind *begin*."""
        within, index = self._range(selection), self._bound.storage
        if begin is None or within is None:
            return None if within is None else self._keys(selection, within, stop)
        access = self.access.renewed(selection._query.where)
        key = None if access is None else access.whole_key(begin.key)
        if key is None or not index.tail or not all([part.kind in EXACT for part in self.access.facts.parts]):
            return None
        try:
            first, end = index.exactly(key if isinstance(index.storage.key, TupleKey) else key[0])
        except UNFIT:  # of a cursor that nobody gave out
            return None
        last, (lower, upper) = selection._query.backwards, within
        if not self.access.ties:
            entry = first + begin.entry[len(selection._table._storage.prefix) :]
            backwards = last is not self.access.flipped
            within = (lower, min(upper, entry)) if backwards else (max(lower, entry + b"\0"), upper)
            return self._keys(selection, within, stop)
        # Those that are equal to it come in the order of their keys, whichever way the entries are read.
        equal = self._keys(selection, (max(lower, first), min(upper, end)), None)
        within = (lower, min(upper, first)) if last is not self.access.flipped else (max(lower, end), upper)
        others = self._keys(selection, within, stop)
        if equal is None or others is None:
            return None
        return [*[one for one in equal if (one < begin.entry if last else one > begin.entry)], *others][:stop]

    def _position(self, selection: Selection[Any, Any], key: bytes, give: Give, row: Any) -> Position:
        """Where the record with *key* stands, of which *row* is what *give* gives."""
        table, order = selection._table, selection._query.order
        storage = table._storage
        value = row if give is VALUES else row[1] if give is PAIRS else storage.load(table._get(key, None, table._db))
        arguments = (storage.load_key(key), value) if order is not None and order.keyed else (value,)
        return Position(None if order is None else order.evaluated(*arguments), key)

    def _keys(
        self, selection: Selection[Any, Any], within: Range, stop: Optional[int], skip: int = 0,
        most: Optional[int] = None,
    ) -> Optional[list[bytes]]:  # fmt: skip
        """The engine's keys of the records with these entries; None if it is a part of the table that is asked for.

        Raises LookupError if more than *most* entries are equal in the order, so that all have to be read for one.
        """
        if selection._reverse or not selection._is_all():
            return None
        table, bound, access, last = selection._table, self._bound, self.access, selection._query.backwards
        backwards = last is not access.flipped
        if not access.ties:
            return first_keys(table, bound.handle, bound.storage.tail, within, backwards, stop, skip)
        if stop is not None and access.ties == len(access.facts.parts) and bound.storage.tail:
            found = first_tied(table, bound, within, backwards, last, stop, skip)
            if found is not None:
                return found
        with closing(tied_keys(table, bound, within, access.ties, backwards, last, most)) as keys:
            return list(islice(keys, skip, stop))

    def _rows(self, selection: Selection[Any, Any], give: Give, keys: list[bytes]) -> Optional[list[Any]]:
        """The rows of the records with these *keys*; None if a condition is not true of one of them."""
        table = selection._table
        rows = self._list(keys, table._get, table._db, (*selection._query.where, give))
        return rows if len(rows) == len(keys) else None


def first_in_order(
    where: Sequence[Followed], order: Followed, functions: Sequence[Followed], give: Give,
    parts: Sequence[Asking], facts: Sequence[IndexFacts], running: Running,
) -> Optional[CachedOrder]:  # fmt: skip
    """What gives the first records for which *where*, all of *parts*, is true: of an index that has *order*."""
    subjects = ordered_by(order.node, order.keyed)
    if subjects is None or any([one.reading.links for one in (*functions, order)]):
        return None
    found = [access for one in facts if (access := order_access(one, subjects, parts, tied=True)) is not None]
    if not found:
        return None
    access = max(found, key=lambda one: (one.serves(parts), len(one.nodes)))
    bound = running.reads.bound(access)
    if bound is None:
        return None
    programs = running.programs
    asked = [Asked(one, node) for one in where for node in conjuncts(one.node)]
    prepared = Prepared(functions, (), asked, want_of((give,), programs, one=True), programs)
    find = finder(bound.storage, access, where)
    return CachedOrder(access, bound, prepared, find, exact=access.serves(parts))


def has_order(order: Followed, parts: Sequence[Asking], facts: Sequence[IndexFacts]) -> bool:
    """Whether an index may have the records for *parts* in *order*: with a limit, few of many are read then."""
    subjects = ordered_by(order.node, order.keyed)
    return subjects is not None and any([order_access(one, subjects, parts) is not None for one in facts])
