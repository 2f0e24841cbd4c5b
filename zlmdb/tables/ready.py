"""Queries by an index that are known: from captured values to rows, with nothing looked at on the way but these.

To choose a plan takes longer than to read a record. For functions that were read before, by the same indexes, most of it
comes out alike, so it is kept: which index, how its ranges follow from the captured values, and one function that lists
what is wanted of the records. That serves read transactions, in which nothing changes while it runs. Whatever is
unusual (values that an index cannot hold, much of the table, a record that does not decode) is left to `Running`, which
handles all cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Optional

from ..handlers import let_through
from ..query.following import Followed
from ..query.needed import needed
from ..query.plan import CAP, KEY, SHARE, SMALL, Access, Asking, IndexFacts, accesses, conjuncts
from ..query.prepared import Prepared
from ..query.translated import Give, translated, want_of
from ..query.want import Want
from ..store.blocks import COUNTS_REFERENCES
from ..store.ranges import seek
from .accessranges import Range, finder
from .covered import cover_of
from .indexstorage import BoundIndex

if TYPE_CHECKING:
    from .running import Known, Running
    from .selection import Selection
    from .table import Table

_KEPT = 256
_FEW = 64
"""Entries that an index gives about as fast as a scan does, of any table."""

_FIRST_BLOCK, _BLOCK = 8, 1000


def ready_of(selection: Selection[Any, Any], give: Give) -> Optional[Ready]:
    """What is known of the query of *selection*, for what *give* says of each record; None if that is not enough."""
    table, query = selection._table, selection._query
    if table._txn._write or not table._steady or not selection._plain:
        return None
    known: Optional[Known] = table._storage.programs.known
    if known is None:
        return None
    state = table._index_state
    if known.state is not state and known.state != state:
        return None
    given = give.reading if isinstance(give, Followed) else give
    key = (given, *[followed.reading for followed in query.where])
    found: Any = known.ready.get(key)
    if found is None:
        found = _made(selection, give, known)
        if found is None:  # not yet
            return None
        if len(known.ready) >= _KEPT:
            known.ready.clear()
        known.ready[key] = found
    return found or None


def _made(selection: Selection[Any, Any], give: Give, known: Known) -> Any:
    """The `Ready` of a query; False if there is none, None if that cannot be told yet."""
    query, table = selection._query, selection._table
    functions = [*query.where, *([give] if isinstance(give, Followed) else [])]
    readings = [one.reading for one in functions]
    if any([one.to_check > 0 for one in readings]):
        return None
    programs, storage = table._storage.programs, table._storage
    if programs.columns is not None or storage.expiring is not None or any([index.where for index in known.facts]):
        return False
    if not all([one.trusted and not one.calls and not one.links for one in readings]):
        return False
    askings = [Asking(one.node, one.parameters, one.keyed, number=n) for n, one in enumerate(query.where)]
    found = accesses([asking.of(node) for asking in askings for node in conjuncts(asking.node)], known.facts)
    if not found:
        return False
    if found[0].rank == 0:
        del found[1:]
    running: Running = programs.running(selection)
    ways = [_Way(one, running._bound(one), table, query.where) for one in found]
    if any([way.is_range_of_keys for way in ways]) or _is_covered(functions, give, found, running):
        return False
    condition, asked = translated(query.where, programs)
    prepared = Prepared(functions, condition, asked, want_of((give,), programs, one=True), programs)
    return Ready(ways, prepared)


def _is_covered(functions: Sequence[Followed], give: Give, found: Sequence[Access], running: Running) -> bool:
    """Whether entries are enough."""
    fields = needed(functions, (give,))
    if fields is None or len(found) != 1:
        return False
    bound = running._bound(found[0])
    if bound is None:
        return False
    cover = cover_of(bound.storage, found[0].facts, running.storage, running.programs.following)
    return cover is not None and fields <= cover.fields


class _Way:
    """One index, and what is read of it."""

    __slots__ = ("exact", "find", "handle", "is_range_of_keys", "of_keys", "only", "prefix", "several", "tail")

    def __init__(
        self, access: Access, bound: Optional[BoundIndex], table: Table[Any, Any], where: Sequence[Followed]
    ) -> None:  # fmt: skip
        storage = table._storage
        self.of_keys = bound is None
        self.find = finder(storage if bound is None else bound.storage, access, where)
        self.handle = table._db if bound is None else bound.handle
        self.prefix = storage.prefix
        self.tail = 0 if bound is None else bound.storage.tail
        self.several = access.facts.several
        self.only = access.rank == 0
        self.exact = access.exact or access.members is not None
        self.is_range_of_keys = bound is None and not (
            access.exact or (access.members is not None and len(access.equal) + 1 == len(access.facts.parts))
        )

    def keys(self, table: Table[Any, Any], where: Sequence[Followed], most: int) -> Optional[list[bytes]]:
        """The engine's keys of the records that it finds, each once, at most so many; None if it cannot tell."""
        ranges = self.find(where)
        if ranges is None:
            return None
        if self.of_keys:
            return list({one[0] for one in ranges}) if len(ranges) > 1 else [ranges[0][0]]
        if self.only:
            owner = table._get(ranges[0][0], None, self.handle)
            return [] if owner is None else [self.prefix + owner]
        found = self._entries(table, ranges, most)
        if self.prefix:
            prefix = self.prefix
            found = [prefix + one for one in found]
        return list(set(found)) if self.several else found

    def _entries(self, table: Table[Any, Any], ranges: Sequence[Range], most: int) -> list[bytes]:
        """The encoded primary keys of the records."""
        tail = self.tail
        found: list[bytes] = []
        cursor = table._raw.cursor(self.handle)
        for lower, upper in ranges:
            if not seek(cursor, lower, upper):
                continue
            if tail:
                rows = takewhile(upper.__gt__, cursor.iternext(True, False))
                found += [entry[tail:] for entry in islice(rows, most - len(found))]
            else:
                pairs = takewhile((upper,).__gt__, cursor.iternext(True, True))
                found += [owner for _, owner in islice(pairs, most - len(found))]
        if not COUNTS_REFERENCES:
            cursor.close()
        return found


class Ready:
    """A query of which all is known but the captured values."""

    __slots__ = ("_list", "_ways")

    def __init__(self, ways: Sequence[_Way], prepared: Prepared) -> None:
        self._ways = ways
        self._list = prepared.listing(sparse=any([way.of_keys for way in ways]))

    def all(self, selection: Selection[Any, Any], give: Give) -> Optional[list[Any]]:
        """All rows of *selection*; None where somebody else has to find out."""
        table, query = selection._table, selection._query
        where = query.where
        try:
            keys = self._keys(selection)
            if keys is None:
                return None
            functions = (*where, give)
            if selection._limit is None and not query.skip:
                return self._list(keys, table._get, table._db, functions)
            stop = None if selection._limit is None else query.skip + selection._limit
            rows: list[Any] = []
            for block in _blocks(keys, stop):
                rows += self._list(block, table._get, table._db, functions)
                if stop is not None and len(rows) >= stop:
                    break
            return rows[query.skip : stop]
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def _keys(self, selection: Selection[Any, Any]) -> Optional[list[bytes]]:
        """The engine's keys of the records that may fit, in order."""
        table, where = selection._table, selection._query.where
        ways = self._ways
        if len(ways) == 1:
            found = self._found(table, where)
        else:
            found = self._fewest(table, where)
        if not found:
            return found
        lower, upper, storage = selection._lower, selection._upper, table._storage
        if lower != storage.lower or upper != storage.upper:
            found = [key for key in found if lower <= key < upper]
        if len(found) > 1:
            found.sort(reverse=selection._reverse)
        return found

    def _found(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[list[bytes]]:
        way = self._ways[0]
        found = way.keys(table, where, CAP)
        if found is None or len(found) < _FEW or way.of_keys:
            return found
        most = _most(table)
        if len(found) >= CAP:
            found = way.keys(table, where, most)
        return None if found is None or len(found) >= most else found

    def _fewest(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[list[bytes]]:
        """As the planner has it: of several indexes the one with the fewest entries."""
        most = min(_most(table), CAP)
        best: Optional[list[bytes]] = None
        for way in self._ways:
            found = way.keys(table, where, most)
            if found is None:
                return None
            if len(found) < most and (best is None or len(found) < len(best)):
                best = found
        return best

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """The rows of *selection*, read in blocks: few at first, because the caller may stop."""
        table, query = selection._table, selection._query
        txn = table._txn
        scans = txn._open_scans() if txn._scans is None else txn._scans
        functions = (*query.where, give)
        left, skip = selection._limit, query.skip
        given = 0
        try:
            scans.check()
            keys = self._keys(selection)
            blocks = None if keys is None else _blocks(keys, 1 if left is None else skip + left)
        except Exception as error:
            let_through(error)
            blocks = None
        while blocks is not None:
            try:
                block = next(blocks, None)
                if block is None:
                    return
                found = self._list(block, table._get, table._db, functions)
            except Exception as error:
                let_through(error)
                break
            if skip:
                skipped = min(skip, len(found))
                skip -= skipped
                del found[:skipped]
            for row in found:
                if left is not None and given >= left:
                    return
                given += 1
                yield row
                if scans.ended is not None:
                    scans.check()
        yield from islice(selection._running().rows(give), given, None)


def _most(table: Table[Any, Any]) -> int:
    """Entries from which on all records are read faster; see `plan`."""
    total = table._entries() if table._storage.alone else SHARE * CAP
    return CAP if total <= SMALL else max(total // SHARE, 1)


def _blocks(keys: list[bytes], first: Optional[int]) -> Iterator[list[bytes]]:
    """*keys* in blocks, of which the first is small."""
    at, size = 0, min(max(first or 1, 1), _BLOCK)
    while at < len(keys):
        yield keys[at : at + size]
        at += size
        size = min(max(2 * size, _FIRST_BLOCK), _BLOCK)
