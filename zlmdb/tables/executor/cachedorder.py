"""Cached plans of queries in the order of an index: all records, and pages of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...keys import TupleKey
from ...query.accesses import Access
from ...query.cursors import Position
from ...query.prepared import Prepared
from ...query.projection import PAIRS, VALUES
from ...query.translated import Give
from ..indexstorage import BoundIndex
from ..scan import while_open
from .accessranges import UNFIT, Range
from .covered import EXACT
from .foundkeys import first_keys

if TYPE_CHECKING:
    from ..selection import Selection

BLOCK = 1000
"""Rows that are listed at once, at most."""


class CachedOrder:
    """All records in the order of an index, of which all is known."""

    __slots__ = ("_bound", "_list", "access", "fingerprint")

    def __init__(self, access: Access, bound: BoundIndex, prepared: Prepared) -> None:
        self.access, self._bound = access, bound
        self._list = prepared.listing(sparse=False)
        self.fingerprint: Optional[str] = None  # of the query, if it depends on nothing else

    def all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        """As `CachedPaths.all`."""
        query, index = selection._query, self._bound.storage
        try:
            stop = None if limit is None else query.skip + limit
            keys = self._keys(selection, (index.lower, index.upper), stop, query.skip)
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
        index, backwards = self._bound.storage, selection._query.backwards
        lower, upper = index.lower, index.upper
        if begin is not None:
            key = self.access.whole_key(begin.key)
            if key is None or not index.tail or not all([part.kind in EXACT for part in self.access.facts.parts]):
                return None
            primary = begin.entry[len(selection._table._storage.prefix) :]
            try:
                entry = index.exactly(key if isinstance(index.storage.key, TupleKey) else key[0])[0] + primary
            except UNFIT:  # of a cursor that nobody gave out
                return None
            lower, upper = (lower, entry) if backwards else (entry + b"\0", upper)
        try:
            keys = self._keys(selection, (lower, upper), size + 1)
            if keys is None:
                return None
            rows = self._rows(selection, give, keys[:size])
            if len(keys) <= size:
                return rows, None
            value = rows[-1] if give is VALUES else rows[-1][1] if give is PAIRS else None
            return rows, self._position(selection, keys[size - 1], value)
        except Exception as error:  # as above
            let_through(error)
            return None

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
        """The engine's keys of the records with these entries; None if it is not all records that are asked for."""
        if selection._reverse or not selection._is_all():
            return None
        bound, backwards = self._bound, selection._query.backwards
        return first_keys(selection._table, bound.handle, bound.storage.tail, within, backwards, stop, skip)

    def _rows(self, selection: Selection[Any, Any], give: Give, keys: list[bytes]) -> list[Any]:
        table = selection._table
        return self._list(keys, table._get, table._db, (give,))
