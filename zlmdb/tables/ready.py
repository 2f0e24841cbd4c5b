"""Queries by an index that are known: from captured values to rows, with nothing looked at on the way but these.

To choose a plan takes longer than to read a record. For functions that were read before, by the same indexes, most of
it comes out alike, so it is kept: which index, how its ranges follow from the captured values, and one function that
lists what is wanted of the records. That serves read transactions, in which nothing changes while it runs. Whatever is
unusual (values that an index cannot hold, much of the table, a record that does not decode) is left to `Running`, which
handles all cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Optional, Union

from ..handlers import let_through
from ..keys import TupleKey
from ..query.asked import Asked
from ..query.cursors import Position
from ..query.following import Followed
from ..query.following.operations import Joined
from ..query.needed import needed
from ..query.plan import CAP, SHARE, SMALL, Access, Asking, accesses, conjuncts, order_access, ordered_by
from ..query.prepared import Prepared
from ..query.translated import Give, want_of
from ..query.want import PAIRS, VALUES
from ..store.blocks import COUNTS_REFERENCES
from ..store.ranges import keys_from, seek, values_from
from .accessranges import Find, Range, finder
from .covered import EXACT, cover_of
from .indexstorage import BoundIndex

if TYPE_CHECKING:
    from .running import Known, Running
    from .selection import Selection
    from .table import Table

_KEPT = 256
_FEW = 64
"""Entries that an index gives about as fast as a scan does, of any table."""

_FIRST_BLOCK, _BLOCK = 8, 1000


def ready_of(selection: Selection[Any, Any], give: Give) -> Optional[AnyReady]:
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
    where, order = query.where, query.order
    key: tuple[Any, ...]
    if order is None:
        key = (given, where[0].reading) if len(where) == 1 else (given, *[one.reading for one in where])
    elif where:
        return None
    else:
        key = (given, None, order.reading, query.backwards)
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
    readings = [one.reading for one in (*functions, *([] if query.order is None else [query.order]))]
    if any([one.to_check > 0 for one in readings]):
        return None
    programs, storage = table._storage.programs, table._storage
    if storage.expiring is not None or any([index.where for index in known.facts]):
        return False
    if not all([one.trusted and not one.calls for one in readings]):
        return False
    if query.order is not None:
        return _ordered(selection, query.order, functions, give, known)
    askings = [Asking(one.node, one.parameters, one.keyed, number=n) for n, one in enumerate(query.where)]
    parts = [asking.of(node) for asking in askings for node in conjuncts(asking.node)]
    found = accesses(parts, known.facts)
    running: Running = programs.running(selection)
    ways: list[Way] = []
    if found and found[0].rank == 0:
        del found[1:]
    elif any([one.links for one in readings]):
        from .linkedway import linked_ways  # late: few programs follow links

        ways += linked_ways(parts, known.facts, running, query.where)
    ways += [way_of(one, running, query.where) for one in found]
    if not ways:
        ways = _either(parts, known, running, query.where)
    if not ways:
        return False
    # A range of keys alone is read as any range, and a record that is not there means two things.
    if all([way.is_range_of_keys for way in ways]) or len({way.sparse for way in ways}) > 1:
        return False
    if _is_covered(functions, give, found, running):
        return False
    # An index has found the records, most of which match: single fields are not looked at before, as in a scan.
    asked = [Asked(one, node) for one in query.where for node in conjuncts(one.node)]
    prepared = Prepared(functions, None, asked, want_of((give,), programs, one=True), programs)
    return Ready(ways, prepared)


def _either(parts: Sequence[Asking], known: Known, running: Running, where: Sequence[Followed]) -> list[Way]:
    """Ways to find what one of *parts* wants that is true in several cases."""
    for part in parts:
        if isinstance(part.node, Joined) and part.node.word == "or":
            cases = [[part.of(node) for node in conjuncts(case)] for case in part.node.conditions]
            found = [accesses(case, known.facts)[:1] for case in cases]
            ways = [way_of(one, running, where) for few in found for one in few]
            if len(ways) == len(cases) and len({way.sparse for way in ways}) == 1:
                return [EitherWay(ways)]
    return []


def _ordered(
    selection: Selection[Any, Any], order: Followed, functions: Sequence[Followed], give: Give, known: Known
) -> Any:
    """As `_made`, of an index that has the order of all records."""
    table = selection._table
    subjects = ordered_by(order.node, order.keyed)
    found = [] if subjects is None else [order_access(index, subjects, ()) for index in known.facts]
    access = next((one for one in found if one is not None), None)
    running: Running = table._storage.programs.running(selection)
    bound = None if access is None else running._bound(access)
    if access is None or bound is None or _is_covered(functions, give, [access], running):
        return False
    programs = table._storage.programs
    prepared = Prepared(functions, None, (), want_of((give,), programs, one=True), programs)
    return Ordered(access, bound, prepared)


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


def way_of(access: Access, running: Running, where: Sequence[Followed]) -> Way:
    """What *access* reads, for the conditions *where*."""
    bound = running._bound(access)
    find = finder(running.storage if bound is None else bound.storage, access, where)
    return Way(access, bound, running.table, find)


class Way:
    """One index, and what is read of it."""

    __slots__ = ("find", "handle", "is_range_of_keys", "of_keys", "only", "prefix", "several", "sparse", "tail")

    def __init__(self, access: Access, bound: Optional[BoundIndex], table: Table[Any, Any], find: Find) -> None:
        """*find* gives the ranges of entries, of the conditions of a query."""
        storage = table._storage
        self.of_keys, self.find = bound is None, find
        self.handle: Any = None if bound is None else bound.handle
        self.prefix = storage.prefix
        self.tail = 0 if bound is None else bound.storage.tail
        self.several = access.facts.several
        self.only = access.rank == 0
        self.is_range_of_keys = bound is None and not (
            access.exact or (access.members is not None and len(access.equal) + 1 == len(access.facts.parts))
        )
        self.sparse = self.of_keys and not self.is_range_of_keys  # there may be no record

    def keys(self, table: Table[Any, Any], where: Sequence[Followed], most: int) -> Optional[list[bytes]]:
        """The engine's keys of the records that it finds, each once, at most so many; None if it cannot tell."""
        ranges = self.find(where)
        return None if not ranges else self._within(table, ranges, most)

    def key(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[bytes]:
        """The engine's key of the one record that there may be with a key of a unique index; raises for odd values."""
        ranges: Any = self.find(where)
        owner: Optional[bytes] = table._get(ranges[0][0], None, self.handle)
        return owner if owner is None or not self.prefix else self.prefix + owner

    def _within(self, table: Table[Any, Any], ranges: Sequence[Range], most: int) -> list[bytes]:
        """The engine's keys of the records in *ranges*."""
        if self.sparse:
            return list({one[0] for one in ranges}) if len(ranges) > 1 else [one[0] for one in ranges]
        if self.only:
            owner = table._get(ranges[0][0], None, self.handle)
            return [] if owner is None else [self.prefix + owner]
        found = self._entries(table, ranges, most)
        if self.prefix and not self.of_keys:
            prefix = self.prefix
            found = [prefix + one for one in found]
        return list(set(found)) if self.several else found

    def _entries(self, table: Table[Any, Any], ranges: Sequence[Range], most: int) -> list[bytes]:
        """The encoded primary keys of the records."""
        tail = self.tail
        found: list[bytes] = []
        cursor = table._raw.cursor(table._db if self.of_keys else self.handle)
        if tail and len(ranges) > 1:
            ranges = self._short_ranges(cursor, ranges, most, found)
        for lower, upper in ranges:
            if not seek(cursor, lower, upper):
                continue
            if self.of_keys:
                found += islice(keys_from(cursor, lower, upper), most - len(found))
            elif tail:
                rows = takewhile(upper.__gt__, cursor.iternext(True, False))
                found += [entry[tail:] for entry in islice(rows, most - len(found))]
            else:
                pairs = takewhile((upper,).__gt__, cursor.iternext(True, True))
                found += [owner for _, owner in islice(pairs, most - len(found))]
        if not COUNTS_REFERENCES:
            cursor.close()
        return found

    def _short_ranges(
        self, cursor: Any, ranges: Sequence[Range], most: int, found: list[bytes]
    ) -> Sequence[Range]:  # fmt: skip
        """Put into *found* what is in *ranges*, of which most are short, and may follow each other; none are left."""
        tail, add = self.tail, found.append
        entry: Optional[bytes] = b""
        rows: Iterator[bytes] = iter(())
        for lower, upper in sorted(ranges):
            if entry is None or entry < lower:
                if not cursor.set_range(lower):
                    break
                rows = cursor.iternext(True, False)
                entry = next(rows, None)
            while entry is not None and entry < upper:
                if len(found) >= most:
                    return ()
                add(entry[tail:])
                entry = next(rows, None)
        return ()


class EitherWay(Way):
    """Several ways, each of which finds some of the records. All or none of them are `sparse`."""

    __slots__ = ("_ways",)

    def __init__(self, ways: Sequence[Way]) -> None:
        self._ways, first, self.only = ways, ways[0], False
        self.of_keys = self.sparse = first.sparse
        self.is_range_of_keys = False

    def keys(self, table: Table[Any, Any], where: Sequence[Followed], most: int) -> Optional[list[bytes]]:
        found: set[bytes] = set()
        for way in self._ways:
            keys = way.keys(table, where, most)
            if keys is None:
                return None
            found.update(keys)
            if len(keys) >= most:  # more than that may be there
                return list(found) if len(found) >= most else None
        return list(found)


class Ready:
    """A query of which all is known but the captured values."""

    __slots__ = ("_list", "_only", "_ways")

    def __init__(self, ways: Sequence[Way], prepared: Prepared) -> None:
        self._ways = ways
        self._only = ways[0] if len(ways) == 1 and ways[0].only and not ways[0].sparse else None
        self._list = prepared.listing(sparse=ways[0].sparse)

    def all(
        self, selection: Selection[Any, Any], give: Give, limit: Optional[int]
    ) -> Optional[list[Any]]:  # fmt: skip
        """At most *limit* of the rows of *selection*; None where somebody else has to find out."""
        table, query = selection._table, selection._query
        functions = (*query.where, give)
        only = self._only
        try:
            if only is not None and not query.skip and limit != 0:  # one record, or none: without all that follows
                key = only.key(table, query.where)
                if key is None or not selection._lower <= key < selection._upper:
                    return []
                return self._list([key], table._get, table._db, functions)
            keys = self._keys(selection)
            if keys is None:
                return None
            if (limit is None and not query.skip) or len(keys) < 2:
                return self._list(keys, table._get, table._db, functions)[query.skip : limit]
            stop = None if limit is None else query.skip + limit
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
        found = self._found(table, where) if len(ways) == 1 else self._fewest(table, where)
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


class Ordered:
    """All records in the order of an index, of which all is known."""

    __slots__ = ("_bound", "_list", "access", "fingerprint")

    def __init__(self, access: Access, bound: BoundIndex, prepared: Prepared) -> None:
        self.access, self._bound = access, bound
        self._list = prepared.listing(sparse=False)
        self.fingerprint: Optional[str] = None  # of the query, if it depends on nothing else

    def all(
        self, selection: Selection[Any, Any], give: Give, limit: Optional[int]
    ) -> Optional[list[Any]]:  # fmt: skip
        """As `Ready.all`."""
        query, index = selection._query, self._bound.storage
        try:
            keys = self._keys(selection, index.lower, index.upper, query.skip, limit)
            return None if keys is None else self._rows(selection, give, keys)
        except Exception as error:  # the general form tells what it is
            let_through(error)
            return None

    def rows(self, selection: Selection[Any, Any], give: Give) -> Iterator[Any]:
        """As `Ready.rows`."""
        limit = selection._limit
        found = None if limit is None or limit > _BLOCK else self.all(selection, give, limit)
        if found is None:
            yield from selection._running().rows(give)
            return
        txn = selection._table._txn
        scans = txn._open_scans() if txn._scans is None else txn._scans
        for row in found:
            yield row
            if scans.ended is not None:
                scans.check()

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
            place = begin.place[len(selection._table._storage.prefix) :]
            entry = index.exactly(key if isinstance(index.storage.key, TupleKey) else key[0])[0] + place
            lower, upper = (lower, entry) if backwards else (entry + b"\0", upper)
        try:
            keys = self._keys(selection, lower, upper, 0, size + 1)
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
        self, selection: Selection[Any, Any], lower: bytes, upper: bytes, skip: int, limit: Optional[int]
    ) -> Optional[list[bytes]]:
        """The engine's keys of the records with these entries; None if it is not all records that are asked for."""
        table, reverse = selection._table, selection._query.backwards
        storage, index = table._storage, self._bound.storage
        if selection._lower != storage.lower or selection._upper != storage.upper or selection._reverse:
            return None
        stop = None if limit is None else skip + limit
        cursor, tail = table._raw.cursor(self._bound.handle), index.tail
        if not seek(cursor, lower, upper, reverse):
            return []
        if tail:
            entries = islice(keys_from(cursor, lower, upper, reverse), skip, stop)
            keys = [entry[tail:] for entry in entries]
        else:
            keys = list(islice(values_from(cursor, lower, upper, reverse), skip, stop))
        if not COUNTS_REFERENCES:
            cursor.close()
        prefix = storage.prefix
        return [prefix + key for key in keys] if prefix else keys

    def _rows(self, selection: Selection[Any, Any], give: Give, keys: list[bytes]) -> list[Any]:
        table = selection._table
        return self._list(keys, table._get, table._db, (give,))


AnyReady = Union[Ready, Ordered]


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
