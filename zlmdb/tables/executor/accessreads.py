"""What a query reads of indexes: the ranges of entries of an access, how many there are, and the records they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Optional

from ...handlers import let_through
from ...query.accesses import Access
from ...query.inorder import KEYS, blocks_of, in_order
from ...query.terms import KEY
from ...store.ranges import keys_from, pairs_from
from ..indexstorage import BoundIndex
from ..scan import first_within, rows_within
from .accessranges import UNFIT, Range, ranges_of
from .foundkeys import FoundKeys, entry_ranges_of, of_records

if TYPE_CHECKING:
    from ..selection import Selection
    from ..table import Table

_FIRST = (16, 1000)
"""Entries that are read together, where they are in the order of the records, before it is known how many there are."""


class AccessReads:
    """What one run of a query reads of the indexes of *table*, and of its keys; nothing is counted or read twice."""

    def __init__(self, table: Table[Any, Any]) -> None:
        self._table = table
        self._storage = table._storage
        self._bounds: Optional[dict[str, BoundIndex]] = None
        self._known_ranges: dict[int, tuple[Access, list[Range]]] = {}  # with the access, so that its id stays its own
        self._known_entries: dict[int, tuple[Access, list[Any]]] = {}

    def bound(self, access: Access) -> Optional[BoundIndex]:
        """The index that *access* reads; None if it is the key."""
        name = access.facts.name
        if name == KEY:
            return None
        if self._bounds is None:
            self._bounds = {bound.storage.name: bound for bound in self._table._indexes}
        return self._bounds[name]

    def spaces(self, accesses: Iterable[Access]) -> set[Optional[bytes]]:
        """The keyspaces of the indexes that *accesses* read."""
        return {bound.storage.storage.space for bound in map(self.bound, accesses) if bound is not None}

    def ranges(self, access: Access) -> list[Range]:
        """The ranges of entries that *access* reads. Raises one of `UNFIT` for values that do not fit."""
        known = self._known_ranges.get(id(access))
        if known is None:
            bound = self.bound(access)
            spans = self._storage if bound is None else bound.storage
            known = self._known_ranges[id(access)] = access, ranges_of(spans, access)
        return known[1]

    def measure(self, access: Access, most: int) -> Optional[int]:
        """How many entries *access* has, counted up to *most*; None where its values cannot be in the index."""
        try:
            ranges = self.ranges(access)
        except UNFIT as error:
            let_through(error)
            return None
        if most == 0:
            return 0
        found: list[Any] = []
        count = 0
        for lower, upper in ranges:
            for block in blocks_of(islice(self._entries(access, lower, upper), most - count)):
                count += len(block)
                if count <= KEYS:
                    found += block
                else:
                    found.clear()
            if count >= most:
                break
        else:
            if count == len(found):
                self._known_entries[id(access)] = access, found  # it will hardly be left out
        return count

    def _entries(self, access: Access, lower: bytes, upper: bytes) -> Iterator[Any]:
        """The entries of *access* in a range: their keys if these end with the primary key, else pairs."""
        bound = self.bound(access)
        rows: Any = keys_from if bound is None or bound.storage.tail else pairs_from
        return rows_within(self._table, None if bound is None else bound.handle, (lower, upper), False, rows)

    def _all_entries(self, access: Access) -> Iterable[Any]:
        known = self._known_entries.get(id(access))
        if known is not None and not self._table._txn._write:
            return known[1]
        return chain.from_iterable([self._entries(access, *one) for one in self.ranges(access)])

    def found(self, accesses: Sequence[Access]) -> FoundKeys:
        """The keys of the records that *accesses* find, which are not read before they are asked for."""
        within = [entry_ranges_of(self._table, self.bound(one), self.ranges(one)) for one in accesses]
        return FoundKeys(self._table, within, once=self._finds_once(accesses))

    def firsts(
        self, accesses: Sequence[Access], selection: Selection[Any, Any], *, reverse: bool
    ) -> Iterator[list[bytes]]:  # fmt: skip
        """The engine's keys of the first records that *accesses* find, if entries are in the order of the records."""
        access = accesses[0]
        bound, prefix = self.bound(access), self._storage.prefix
        if bound is None or len(accesses) > 1 or not access.in_order:
            return
        tail = bound.storage.tail
        within = self.ranges(access)[0]
        lower, upper = of_records(within, selection, prefix) if tail else within
        for most in _FIRST:
            pairs = first_within(self._table, bound.handle, (lower, upper), reverse, most)
            yield [prefix + (entry[tail:] if tail else bytes(owner)) for entry, owner in pairs]
            if len(pairs) < most:
                return
            if reverse:
                upper = pairs[-1][0]
            else:
                lower = pairs[-1][0] + b"\0"

    def few(
        self, accesses: Sequence[Access], selection: Selection[Any, Any], lower: bytes, upper: bytes, most: int, *,
        reverse: bool,
    ) -> Optional[Iterable[bytes]]:  # fmt: skip
        """As `picked`, with ``lower <= key < upper``, if each of *accesses* has fewer entries than *most*."""
        for access in accesses:
            entries = self.measure(access, most)
            if entries is None or entries >= most:
                return None
        return self.picked(accesses, selection._with(lower=lower, upper=upper), reverse=reverse)

    def picked(self, accesses: Sequence[Access], selection: Selection[Any, Any], *, reverse: bool) -> Iterable[bytes]:
        """The engine's keys of the records that *accesses* find, in *selection*, in the order of their keys.

        The first ones are read at once, others when it is their turn; see `query.inorder`.
        """
        if len(accesses) == 1 and accesses[0].rank == 0:
            return self._one_picked(accesses[0], selection)
        lower, upper, storage = selection._lower, selection._upper, self._storage
        known = [self._known_entries.get(id(one), (one, None))[1] for one in accesses]
        if not self._table._txn._write and sum([KEYS if one is None else len(one) for one in known]) < KEYS:
            keys = list(chain.from_iterable(self._key_lists(accesses)))
            if not self._finds_once(accesses):
                keys = list(dict.fromkeys(keys))
            if lower != storage.lower or upper != storage.upper:
                keys = [key for key in keys if lower <= key < upper]
            keys.sort(reverse=reverse)
            return keys
        sorted_blocks = in_order(partial(self._blocks, accesses), lower, upper, reverse=reverse)
        first = next(sorted_blocks)
        return first if len(first) < KEYS else chain(first, chain.from_iterable(sorted_blocks))

    def _finds_once(self, accesses: Sequence[Access]) -> bool:
        """Whether no record is found twice: there is one range, of one key, or of an index with an entry a record."""
        first = accesses[0]
        if len(accesses) > 1 or len(self.ranges(first)) > 1:
            return False
        of_members = first.members is not None and len(first.equal) + 1 == len(first.facts.parts)
        return not first.facts.several or first.exact or of_members

    def _blocks(self, accesses: Sequence[Access]) -> Iterator[dict[bytes, None]]:
        """The engine's keys of the records that *accesses* find, some at a time."""
        return map(dict.fromkeys, self._key_lists(accesses))

    def _key_lists(self, accesses: Sequence[Access]) -> Iterator[list[bytes]]:
        """As `_blocks`, in lists."""
        prefix = self._storage.prefix
        for access in accesses:
            bound = self.bound(access)
            tail = 0 if bound is None else bound.storage.tail
            for block in blocks_of(self._all_entries(access)):
                if bound is None:
                    keys = block
                elif tail:
                    keys = [prefix + entry[tail:] for entry in block] if prefix else [entry[tail:] for entry in block]
                else:
                    keys = [prefix + bytes(owner) for _, owner in block]
                yield keys

    def _one_picked(self, access: Access, selection: Selection[Any, Any]) -> list[bytes]:
        """As `picked`, of one whole key of a unique index or of the table."""
        bound = self.bound(access)
        entry = self.ranges(access)[0][0]
        if bound is not None:
            try:
                owner = self._table._raw.get(entry, None, bound.handle)
            except Exception as error:
                self._table._txn._fail(error, table=self._table._name, index=bound.storage.name)
            if owner is None:
                return []
            entry = self._storage.prefix + bytes(owner)
        elif self._table._get(entry, None, self._table._db) is None:
            return []
        return [entry] if selection._lower <= entry < selection._upper else []
