"""Cached plans of a condition on a linked record that no index finds: the other table is read, then the index of links.

``t.orders.where(lambda o: t.users[o.user].name == "Bob")``: the users are read once, in their order, and of those that
fit only the engine's keys are taken. With each of them begin the entries of the orders that refer to it, in an index
that has the same order. So nothing is decoded but what the condition asks of users, and what is given of the orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

from ...keys import TupleKey
from ...query.accesses import IndexFacts, accesses
from ...query.following import Followed, Given
from ...query.following.linked import Link
from ...query.inorder import BLOCK, SHARE
from ...query.prepared import Prepared
from ...query.projection import ENGINE_KEYS
from ...query.terms import Asking, conjuncts, subject_of
from ...query.translated import Give, want_of
from ...store.blocks import COUNTS_REFERENCES
from ..indexstorage import BoundIndex, IndexStorage
from .accessranges import captured, ends_otherwise
from .cachedplan import CachedPlan
from .cachedscans import ScanParts
from .indexfacts import vouches
from .keylookups import by_cursor
from .linkednodes import Making, link_of, nothing
from .linkscans import EXACT_KEYS, LEAST, MOST, can_be_read_once

if TYPE_CHECKING:
    from ..selection import Selection
    from ..table import Table
    from .execution import Known, Running


def cached_by_scan(
    facts: Sequence[IndexFacts], running: Running, where: Sequence[Followed], give: Give
) -> Optional[CachedLinkScan]:  # fmt: skip
    """The cached plan for *where*, if it is one condition, on what one field refers to."""
    followed = where[0]
    link = link_of(followed.node) if len(where) == 1 else None
    subject = None if link is None else subject_of(link.key, followed.keyed)
    if link is None or not subject or link.key.known.cls not in EXACT_KEYS:
        return None
    found = [one for one in facts if [part.subject for part in one.parts] == [subject] and not one.several]
    index = next((one for one in found if not one.where), None)
    linked: Any = link.holder.evaluate(Given((), followed.parameters))
    if index is None or not vouches(running.storage.value.name) or linked._txn is not running.table._txn:
        return None
    bound = next((one for one in running.table._indexes if one.storage.name == index.name), None)
    if bound is None or not begins_with_key(bound.storage, linked._storage.key):
        return None
    reading = Making(followed).of_record(followed.node, link)
    fits, selection = Followed(reading, nothing, followed.parameters), linked.select()
    other = type(running)(selection._with(selection._query._replace(where=(fits,))))
    inner = [Asking(node, followed.parameters, False) for node in conjuncts(reading.node)]
    if reading.links or reading.calls or accesses(inner, other.known().facts):
        return None
    prepared = other.prepared([fits], (ENGINE_KEYS,), True)
    return (
        CachedLinkScan(followed, link, prepared, fits, other.known(), bound, give, running)
        if prepared.renewable
        else None
    )


def begins_with_key(index: IndexStorage, key: Any) -> bool:
    """Whether the entries for a *key* of the other table begin with the bytes that this table has it as."""
    joined = index.joined
    if joined is None or index.owner is not None or index.adopted or isinstance(key, TupleKey) or not key.width:
        return False
    return bool(joined.parts[0] == key) and not ends_otherwise(joined._forms[0])


class CachedLinkScan(CachedPlan):
    """A query by what one field refers to, of which all is known but the captured values."""

    __slots__ = ("_bound", "_fits", "_holder", "_key", "_known", "_listed", "_prepared")
    by_index = False

    def __init__(
        self, followed: Followed, link: Link, prepared: Prepared, fits: Followed, known: Known, bound: BoundIndex,
        give: Give, running: Running,
    ) -> None:  # fmt: skip
        """*prepared* lists the keys of the linked records for which *fits* is true."""
        self._holder, self._key, self._known = captured(followed, link.holder), link.key, known
        self._prepared, self._fits, self._bound = prepared, fits.reading, bound
        functions = [give] if isinstance(give, Followed) else []
        want = want_of((give,), running.programs, one=True)
        self._listed = Prepared(functions, (), (), want, running.programs)

    def _all(self, selection: Selection[Any, Any], give: Give, limit: Optional[int]) -> Optional[list[Any]]:
        table, query = selection._table, selection._query
        if limit is not None or not _is_whole(selection):
            return None
        keys = self._keys(table, query.where[0])
        if keys is None:
            return None
        keys.sort(reverse=bool(selection._reverse))
        get = by_cursor(table, keys)
        listing = self._listed.listing(sparse=False, dense=get is not None)
        return listing(keys, table._get if get is None else get, table._db, (give,))

    def _keys(self, table: Table[Any, Any], followed: Followed) -> Optional[list[bytes]]:
        """The engine's keys of the records that refer to those that fit; None if the other table is not to be read."""
        linked, total = self._linked(table, followed), table._entries()
        functions = [Followed(self._fits, nothing, followed.parameters)]
        prepared = self._prepared.renewed(functions)
        if linked is None or prepared is None:
            return None
        most, every, seen = min(MOST, total // 2), linked._entries(), 0  # more are read faster in their order
        found: list[bytes] = []
        for some in self.fitting(linked, prepared, functions):
            found += owners(table, self._bound, some, len(linked._storage.prefix), most + 1 - len(found))
            seen = min(seen + BLOCK, every)
            if len(found) * every > most * max(seen, every // SHARE):  # there are, or will be, more
                return None
        return found

    def _linked(self, table: Table[Any, Any], followed: Followed) -> Any:
        """The other table; None if it is not to be read."""
        linked: Any = self._holder(followed)
        state, total = linked._index_state, table._entries()
        known = linked._storage.generated.programs.known
        if linked._txn is not table._txn or known is not self._known or known.state != state:
            return None
        once = table._storage.alone and total >= LEAST and can_be_read_once(self._key, linked, total)
        return linked if once else None

    def told(self, selection: Selection[Any, Any]) -> Optional[tuple[str, str]]:
        table, followed = selection._table, selection._query.where[0]
        linked = self._linked(table, followed) if selection._limit is None and _is_whole(selection) else None
        if linked is None or self._prepared.renewed([Followed(self._fits, nothing, followed.parameters)]) is None:
            return None
        name = self._bound.storage.name
        others = f"all records of {table._name}, if these are many or not all rows are wanted at once"
        return name, f"{name}: what refers to the records of {linked._name} that fit; {others}"

    @staticmethod
    def fitting(linked: Table[Any, Any], prepared: Prepared, functions: Sequence[Followed]) -> Iterator[list[bytes]]:
        """The engine's keys of the records of the other table that fit, all of which are read, some at a time."""
        parts = ScanParts(linked.select(), prepared, functions)
        try:
            while parts.are_left:
                yield parts.next(BLOCK)
        finally:
            parts.close()


def _is_whole(selection: Selection[Any, Any]) -> bool:
    """Whether all records of the table are meant."""
    return selection._is_all() and not selection._query.skip


def owners(table: Table[Any, Any], bound: BoundIndex, keys: Sequence[bytes], cut: int, most: int) -> list[bytes]:
    """The engine's keys of the records whose entries begin with *keys*, which are in order, without *cut* bytes.

    At most *most* of them.
    """
    first, tail, prefix = bound.storage.storage.prefix, bound.storage.tail, table._storage.prefix
    cursor = table._raw.cursor(bound.handle)
    find, value = cursor.set_range, cursor.value
    rows: Any = None
    found: list[bytes] = []
    add = found.append
    entry: Any = b""
    for key in keys:
        begin = first + key[cut:]
        if entry < begin:
            if not find(begin):
                break
            if rows is None:
                rows = cursor.iternext(True, False)
                entry = next(rows)  # the entry that was found; from now on it gives what follows the position
            else:
                entry = cursor.key()
        while entry.startswith(begin):
            add(prefix + (entry[tail:] if tail else value()))
            entry = next(rows, None)
            if entry is None or len(found) >= most:
                break
        if entry is None or len(found) >= most:
            break
    if not COUNTS_REFERENCES:
        cursor.close()
    return found
