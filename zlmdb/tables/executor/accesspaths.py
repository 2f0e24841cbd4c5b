"""The access paths of cached plans: from captured values to ranges of entries of an index, and to keys of records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Optional

from ...query.accesses import Access
from ...query.following import Followed
from ...store.blocks import COUNTS_REFERENCES
from ...store.ranges import keys_from, seek, values_from
from ..indexstorage import BoundIndex
from .accessranges import Find, Range, finder
from .foundkeys import EntryRanges, FoundKeys, first_keys, of_records

if TYPE_CHECKING:
    from ..selection import Selection
    from ..table import Table
    from .execution import Running


def way_of(access: Access, running: Running, where: Sequence[Followed]) -> AccessPath:
    """What *access* reads, for the conditions *where*."""
    bound = running.reads.bound(access)
    find = finder(running.storage if bound is None else bound.storage, access, where)
    return AccessPath(access, bound, running.table, find)


class AccessPath:
    """One index, and what is read of it."""

    __slots__ = (
        "find", "handle", "in_order", "is_range_of_keys", "of_keys", "only", "prefix", "several", "sparse", "tail",
    )  # fmt: skip

    def __init__(self, access: Access, bound: Optional[BoundIndex], table: Table[Any, Any], find: Find) -> None:
        """*find* gives the ranges of entries, of the conditions of a query."""
        storage = table._storage
        self.of_keys, self.find = bound is None, find
        self.handle: Any = None if bound is None else bound.handle
        self.prefix = storage.prefix
        self.tail = 0 if bound is None else bound.storage.tail
        self.several = access.facts.several
        self.only = access.rank == 0
        self.in_order = access.in_order
        self.is_range_of_keys = bound is None and not (
            access.exact or (access.members is not None and len(access.equal) + 1 == len(access.facts.parts))
        )
        self.sparse = self.of_keys and not self.is_range_of_keys  # there may be no record

    def keys(self, table: Table[Any, Any], where: Sequence[Followed], most: int) -> Optional[list[bytes]]:
        """The engine's keys of the records that it finds, each once, at most *most*; None if it cannot tell."""
        ranges = self.find(where)
        return None if not ranges else self._within(table, ranges, most)

    def found(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[FoundKeys]:
        """As `keys`, read as far as is asked for, in a range at least; None if it cannot tell."""
        found = self.entry_ranges(table, where)
        return None if not found else FoundKeys(table, found, once=not self.several)

    def entry_ranges(self, table: Table[Any, Any], where: Sequence[Followed]) -> list[EntryRanges]:
        """What is read of the index; nothing if it cannot tell."""
        ranges = self.find(where)
        return self._entry_ranges(table, ranges) if ranges else []

    def _entry_ranges(self, table: Table[Any, Any], ranges: Sequence[Range]) -> list[EntryRanges]:
        if self.of_keys:
            return [EntryRanges(table._db, 0, b"", ranges)]
        return [EntryRanges(self.handle, self.tail or None, self.prefix, ranges)]

    def narrowed(self, selection: Selection[Any, Any]) -> Optional[Range]:
        """The range of the entries of records of *selection*, if the way is `in_order`; None if it cannot be told."""
        ranges, storage = self.find(selection._query.where), selection._table._storage
        if not ranges or (selection._lower == storage.lower and selection._upper == storage.upper):
            return ranges[0] if ranges else None
        return of_records(ranges[0], selection, self.prefix) if self.tail else None

    def ends(self, selection: Selection[Any, Any], most: int) -> Optional[list[bytes]]:
        """The engine's keys of the first *most* records in the range of *selection*, as it has them, if `in_order`.

        None if it cannot be told.
        """
        within = self.narrowed(selection)
        if within is None:
            return None
        return first_keys(selection._table, self.handle, self.tail, within, bool(selection._reverse), most)

    def key(self, table: Table[Any, Any], where: Sequence[Followed]) -> Optional[bytes]:
        """The engine's key of the one record that a key of a unique index may have; None without one.

        Raises TypeError for a captured value of another type, for which there are no ranges.
        """
        ranges: Any = self.find(where)
        owner: Optional[bytes] = table._get(ranges[0][0], None, self.handle)
        return owner if owner is None or not self.prefix else self.prefix + owner

    def _within(self, table: Table[Any, Any], ranges: Sequence[Range], most: int) -> list[bytes]:
        """The engine's keys of the records in *ranges*, each once, at most *most*."""
        if self.sparse:
            return list({one[0] for one in ranges}) if len(ranges) > 1 else [one[0] for one in ranges]
        if self.only:
            owner = table._get(ranges[0][0], None, self.handle)
            return [] if owner is None else [self.prefix + owner]
        tail = self.tail
        found: list[bytes] = []  # the encoded primary keys
        cursor = table._raw.cursor(table._db if self.of_keys else self.handle)
        for lower, upper in ranges:
            if tail:  # a loop in Python: for few entries that takes less time than to set up another one
                if lower < upper and (cursor.set_range(lower) if lower else cursor.first()):
                    for entry in islice(cursor.iternext(True, False), most - len(found)):
                        if entry >= upper:
                            break
                        found.append(entry[tail:])
            elif seek(cursor, lower, upper):
                rows = (keys_from if self.of_keys else values_from)(cursor, lower, upper)
                found += islice(rows, most - len(found))
        if not COUNTS_REFERENCES:
            cursor.close()
        if self.prefix and not self.of_keys:
            prefix = self.prefix
            found = [prefix + one for one in found]
        return list(set(found)) if self.several and len(found) < most else found  # else not all entries were read


class EitherPath(AccessPath):
    """Several ways, each of which finds some of the records. All or none of them are `sparse`."""

    __slots__ = ("_ways",)

    def __init__(self, ways: Sequence[AccessPath]) -> None:
        self._ways, first, self.only, self.in_order, self.several = ways, ways[0], False, False, True
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

    def entry_ranges(self, table: Table[Any, Any], where: Sequence[Followed]) -> list[EntryRanges]:
        found = [way.entry_ranges(table, where) for way in self._ways]
        return [one for few in found for one in few] if all(found) else []
