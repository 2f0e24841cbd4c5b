"""Cached plans of queries for which indexes, or the key, find the records: rows come in the order of the keys."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Optional

from ...query.following import Followed
from ...query.inorder import KEYS
from ...query.prepared import Prepared
from ...query.projection import HITS
from ...query.terms import CAP
from ...query.translated import Give
from ..scan import or_else, while_open
from .accesspaths import AccessPath
from .cachedorder import BLOCK
from .cachedplan import CachedPlan
from .cachedscans import CachedScan, behind
from .foundkeys import FoundKeys
from .keylookups import most_kept, most_of, stages

if TYPE_CHECKING:
    from ..selection import Selection
    from ..table import Table

FEW = 64
"""Entries that an index gives about as fast as a scan does, of any table."""

_SHORT = 256
"""Records of a range of keys that are read about as fast as the entries of an index for most of the table."""

_FIRST_BLOCK = 8
_FIRST_STEP = 16


class CachedPaths(CachedPlan):
    """A query of which all is known but the captured values."""

    __slots__ = ("_list", "_only", "_scan", "_ways", "in_order")

    def __init__(self, ways: Sequence[AccessPath], prepared: Prepared, scan: Optional[CachedScan] = None) -> None:
        """*scan*: what answers it without an index."""
        self._ways, self._scan = ways, scan
        self.in_order = len(ways) == 1 and ways[0].in_order
        self._only = ways[0] if len(ways) == 1 and ways[0].only and not ways[0].sparse else None
        self._list = prepared.listing(sparse=ways[0].sparse)

    def _all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        table, query = selection._table, selection._query
        only = self._only
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
        if give is HITS and limit == 1 and not query.skip and not any([one.node.risky for one in query.where]):
            keys = self._ways[0].keys(table, query.where, _FIRST_STEP)  # any record will do: in any order
            if keys is not None:
                inside = self._in_key_order(selection, keys)
                hits = self._list(inside, table._get, table._db, (*query.where, give)) if inside else []
                if hits or len(keys) < _FIRST_STEP:
                    return hits[:1]
        rows: list[Any] = []
        for some in self._lists(selection, give, stop):
            rows += some
            if len(rows) >= stop:
                break
        return rows[query.skip : stop]

    def _whole(self, selection: Selection[Any, Any], give: Give) -> Optional[list[Any]]:
        """All rows; None if that takes a plan."""
        table, functions, scan = selection._table, (*selection._query.where, give), self._scan
        if scan is None:
            keys, asked = self._keys(selection, give)
            return self._list(keys, table._get, table._db, asked) if keys else keys
        keys = self._few(table, selection._query.where)
        if keys is None:
            found = self._finds(table, selection._query.where)
            keys = fewest(found, min(most_of(table), CAP)) if selection._is_all() else None
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
        counted = _stages(selection, 0)
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
            counted = _stages(selection, FEW) if read < most else ((0, sys.maxsize),)
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
        skip, stop = selection._query.skip, None
        if selection._limit is not None:
            stop = skip + selection._limit
            if stop <= FEW:
                return self._at_once(selection, give)
        lists = _within(self._lists(selection, give, 1 if stop is None else stop), skip, stop)
        rows = or_else(lists, lambda: selection._running().rows(give), flat=True)
        return while_open(selection._table, partial(iter, rows))


def _stages(selection: Selection[Any, Any], first: int) -> Iterable[tuple[int, int]]:
    """As `stages`, behind *first* records. A range of keys may be short: then it is read before many entries are."""
    first = first if selection._is_all() else _SHORT
    return chain(((FEW, first),) if first else (), stages(most_of(selection._table)))


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


def _within(lists: Iterator[list[Any]], skip: int, stop: Optional[int]) -> Iterator[list[Any]]:
    """*lists* of rows, without the first *skip* of all rows, and of those from *stop* on."""
    at = 0
    for rows in lists:
        yield rows[max(skip - at, 0) : None if stop is None else stop - at]
        at += len(rows)
        if stop is not None and at >= stop:
            return


def _blocks(keys: list[bytes], first: int) -> Iterator[list[bytes]]:
    """*keys* in blocks, of which the first is small."""
    at, size = 0, min(max(first, 1), BLOCK)
    while at < len(keys):
        yield keys[at : at + size]
        at += size
        size = min(max(2 * size, _FIRST_BLOCK), BLOCK)
