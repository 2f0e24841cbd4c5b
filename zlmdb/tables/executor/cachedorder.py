"""Cached plans of queries in the order of an index, whose entries are just what is asked for, and pages of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...keys import TupleKey
from ...query.accesses import Access, IndexFacts, order_access, ordered_by
from ...query.cursors import Position
from ...query.expressionsource import Asked
from ...query.following import Followed
from ...query.prepared import Prepared
from ...query.projection import PAIRS, VALUES
from ...query.terms import Asking, conjuncts
from ...query.translated import Give, want_of
from ..indexstorage import BoundIndex
from ..scan import while_open
from .accessranges import UNFIT, Find, Range, finder
from .covered import EXACT
from .foundkeys import first_different, first_keys, tied_keys

if TYPE_CHECKING:
    from ..selection import Selection
    from .execution import Running

BLOCK = 1000
"""Rows that are listed at once, at most."""


class CachedOrder:
    """The records of a range of an index, in its order, of which all is known but the captured values."""

    __slots__ = ("_bound", "_find", "_list", "access", "fingerprint")

    def __init__(self, access: Access, bound: BoundIndex, prepared: Prepared, find: Optional[Find] = None) -> None:
        """*find* gives the range, of the conditions of a query; without it it is the whole index."""
        self.access, self._bound, self._find = access, bound, find
        self._list = prepared.listing(sparse=False)
        self.fingerprint: Optional[str] = None  # of the query, if it depends on nothing else

    def all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        """As `CachedPaths.all`."""
        query = selection._query
        if limit is None and self._find is not None:  # another index may have fewer entries, to be sorted
            return None
        try:
            within = self._range(selection)
            stop = None if limit is None else query.skip + limit
            keys = None if within is None else self._keys(selection, within, stop, query.skip)
            return None if keys is None else self._rows(selection, give, keys)
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """As `CachedPaths.rows`."""
        return while_open(selection._table, partial(self._few_or, selection, give))

    def _few_or(self, selection: Selection[Any, Any], give: Give) -> Iterable[Any]:
        limit = selection._limit
        found = None if limit is None or limit > BLOCK else self.all(selection, give, limit)
        return selection._running().rows(give) if found is None else found

    def page(
        self, selection: Selection[Any, Any], give: Give, size: int, begin: Optional[Position]
    ) -> Optional[tuple[list[Any], Optional[Position]]]:  # fmt: skip
        """The rows of a page behind *begin*, and the position of the last one if there are more."""
        if self.access.ties:
            return None
        try:
            within = self._range(selection) if begin is None else self._range_behind(selection, begin)
            keys = None if within is None else self._keys(selection, within, size + 1)
            rows = None if keys is None else self._rows(selection, give, keys[:size])
            if keys is None or rows is None:
                return None
            if len(keys) <= size:
                return rows, None
            value = rows[-1] if give is VALUES else rows[-1][1] if give is PAIRS else None
            return rows, self._position(selection, keys[size - 1], value)
        except Exception as error:  # as above
            let_through(error)
            return None

    def _range(self, selection: Selection[Any, Any]) -> Optional[Range]:
        """The range of the entries that are asked for; None if it cannot be told."""
        if self._find is None:
            return self._bound.storage.lower, self._bound.storage.upper
        ranges = self._find(selection._query.where)
        return ranges[0] if ranges and len(ranges) == 1 else None

    def _range_behind(self, selection: Selection[Any, Any], begin: Position) -> Optional[Range]:
        """As `_range`, behind *begin*."""
        index, within = self._bound.storage, self._range(selection)
        access = self.access.renewed(selection._query.where)
        key = None if access is None else access.whole_key(begin.key)
        if key is None or within is None:
            return None
        if not index.tail or not all([part.kind in EXACT for part in self.access.facts.parts]):
            return None
        primary = begin.entry[len(selection._table._storage.prefix) :]
        try:
            entry = index.exactly(key if isinstance(index.storage.key, TupleKey) else key[0])[0] + primary
        except UNFIT:  # of a cursor that nobody gave out
            return None
        lower, upper = within
        return (lower, min(upper, entry)) if selection._query.backwards else (max(lower, entry + b"\0"), upper)

    def _position(self, selection: Selection[Any, Any], key: bytes, value: Any) -> Position:
        table, order = selection._table, selection._query.order
        storage = table._storage
        if value is None:
            value = storage.load(table._get(key, None, table._db))
        arguments = (storage.load_key(key), value) if order is not None and order.keyed else (value,)
        return Position(None if order is None else order.evaluated(*arguments), key)

    def _keys(
        self, selection: Selection[Any, Any], within: Range, stop: Optional[int], skip: int = 0
    ) -> Optional[list[bytes]]:
        """The engine's keys of the records with these entries; None if it is a part of the table that is asked for."""
        if selection._reverse or not selection._is_all():
            return None
        table, bound, access, last = selection._table, self._bound, self.access, selection._query.backwards
        backwards = last is not access.flipped
        if not access.ties:
            return first_keys(table, bound.handle, bound.storage.tail, within, backwards, stop, skip)
        if stop is not None and access.ties == len(access.facts.parts) and bound.storage.tail:
            found = first_different(table, bound, within, backwards, stop, skip)
            if found is not None:
                return found
        with closing(tied_keys(table, bound, within, access.ties, backwards, last)) as keys:
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
    """What gives the first records for which *where*, all of *parts*, is true: of an index that has them in *order*."""
    subjects = ordered_by(order.node, order.keyed)
    if subjects is None or any([one.reading.links for one in (*functions, order)]):
        return None
    found = [order_access(index, subjects, parts, tied=True) for index in facts]
    access = next((one for one in found if one is not None and one.serves(parts)), None)
    bound = None if access is None else running.reads.bound(access)
    if access is None or bound is None:
        return None
    programs = running.programs
    asked = [Asked(one, node) for one in where for node in conjuncts(one.node)]
    prepared = Prepared(functions, (), asked, want_of((give,), programs, one=True), programs)
    return CachedOrder(access, bound, prepared, finder(bound.storage, access, where))
