"""The keys of the records that indexes find, read as far as they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional

from ...namedtuples import NamedTuple
from ...store.ranges import keys_from, pairs_from, seek
from ..indexstorage import BoundIndex
from .accessranges import Range

if TYPE_CHECKING:
    from ..table import Table


class Spans(NamedTuple):
    """*ranges* of the entries of one index, or of the records of a table.

    *cut*: where the primary key begins in the key of an entry; None where it is the value of the entry. *prefix* makes
    an engine's key of it.
    """

    handle: Any
    cut: Optional[int]
    prefix: bytes
    ranges: Sequence[Range]


def spans_of(table: Table[Any, Any], bound: Optional[BoundIndex], ranges: Sequence[Range]) -> Spans:
    """The *ranges* of the index *bound*, of the records of *table* if that is None."""
    if bound is None:
        return Spans(table._db, 0, b"", ranges)
    return Spans(bound.handle, bound.storage.tail or None, table._storage.prefix, ranges)


class FoundKeys:
    """The engine's keys of the records in some `Spans` of *table*. However often it is asked, each entry is read once.

    Nothing may be written to the table meanwhile. No cursor stays open.
    """

    __slots__ = ("_found", "_left", "_once", "_table")

    def __init__(self, table: Table[Any, Any], spans: Iterable[Spans], *, once: bool) -> None:
        """*once*: no record has several entries."""
        self._table, self._once = table, once
        self._found: list[bytes] = []
        self._left = [one._replace(ranges=sorted(one.ranges, reverse=True)) for one in spans]

    def fewer(self, most: int) -> Optional[list[bytes]]:
        """All of them, each once, in any order; None if there are *most* entries or more."""
        while self._left and self._known() < most:
            if self._read(self._left[-1], most):
                self._left.pop()
        if self._left or self._known() >= most:
            return None
        return self._found if self._once else list(dict.fromkeys(self._found))

    def _known(self) -> int:
        """How many entries are known."""
        return len(self._found)

    def _read(self, spans: Spans, most: int) -> bool:
        """Read on in *spans*, until *most* entries are known; whether nothing is left of it."""
        handle, cut, prefix, ranges = spans
        found, views = self._found, self._table._txn.buffers
        left: list[Range] = list(ranges)
        cursor = self._table._cursor(handle)
        try:
            while left and len(found) < most:
                lower, upper = left.pop()
                if not seek(cursor, lower, upper):
                    continue
                rows: Any = keys_from if cut is not None else pairs_from
                block: list[Any] = list(islice(rows(cursor, lower, upper, False, views), most - len(found)))
                if cut is None:
                    found += [prefix + bytes(owner) for _, owner in block]
                elif prefix:
                    found += [prefix + entry[cut:] for entry in block]
                else:
                    found += [entry[cut:] for entry in block]
                if len(found) >= most:
                    last = block[-1][0] if cut is None else block[-1]
                    left.append((last + b"\0", upper))
        finally:
            cursor.close()
        self._left[-1] = spans._replace(ranges=left)
        return not left


class FoundEntries(FoundKeys):
    """As `FoundKeys`, but it has the entries themselves, and with *paired* their values, in `values`."""

    __slots__ = ("_cut", "_prefix", "values")

    def __init__(self, table: Table[Any, Any], spans: Spans, *, paired: bool) -> None:
        super().__init__(table, (spans,), once=True)
        self._cut, self._prefix = spans.cut, spans.prefix
        self.values: Optional[dict[bytes, bytes]] = {} if paired or spans.cut is None else None

    def fewer(self, most: int) -> Optional[list[bytes]]:
        found = super().fewer(most)
        return found if found is None or self.values is None else list(self.values)

    def _known(self) -> int:
        return len(self._found) if self.values is None else len(self.values)

    def _read(self, spans: Spans, most: int) -> bool:
        found, values, left = self._found, self.values, list(spans.ranges)
        cursor = self._table._cursor(spans.handle)
        try:
            while left and self._known() < most:
                lower, upper = left.pop()
                if not seek(cursor, lower, upper):
                    continue
                if values is None:
                    found += islice(keys_from(cursor, lower, upper), most - len(found))
                else:
                    values.update(islice(pairs_from(cursor, lower, upper), most - len(values)))
                if self._known() >= most:
                    left.append(((found[-1] if values is None else next(reversed(values))) + b"\0", upper))
        finally:
            cursor.close()
        self._left[-1] = spans._replace(ranges=left)
        return not left

    def in_key_order(self, entries: list[bytes], lower: bytes, upper: bytes, *, reverse: bool) -> list[bytes]:
        """Those of *entries* whose records have keys with ``lower <= key < upper``, in the order of these."""
        cut, prefix, storage = self._cut, self._prefix, self._table._storage
        owner: Any = itemgetter(slice(cut, None)) if self.values is None or cut is not None else self.values.__getitem__
        if lower != storage.lower or upper != storage.upper:
            entries = [entry for entry in entries if lower <= prefix + owner(entry) < upper]
        return sorted(entries, key=owner, reverse=reverse)
