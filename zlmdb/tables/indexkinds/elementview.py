"""Reading a table through an index with an entry for each element: each record comes once.

A record may have several entries in a range. Its place is that of the first of them, whichever way the range is read:
so reversing a selection reverses its order. To know which entries are the first ones, all entries of the range are
read before the first record comes. A record has only one entry with a given index key, so that the selection of one
key is read as that of any index, but for a loop whose body can write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import tee
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from ...query.projection import PAIRS
from ...query.scanned import Scanned
from ..indexstorage import BoundIndex
from ..indexview import IndexSelection
from ..selection import Selection

if TYPE_CHECKING:
    from ...query.translated import Give
    from ..executor.execution import Running
    from ..storage import Storage
    from ..table import Table

K = TypeVar("K")
V = TypeVar("V")

_first, _second = itemgetter(0), itemgetter(1)


class ElementSelection(IndexSelection[K, V]):
    """Records of a table in the order of an index that may have several entries for each of them."""

    __slots__ = ("_whole",)

    def __init__(
        self, table: Table[K, V], lower: bytes, upper: bytes, reverse: bool = False, limit: Optional[int] = None, *,
        index: BoundIndex,
    ) -> None:  # fmt: skip
        super().__init__(table, lower, upper, reverse, limit, index=index)
        self._whole = lower, upper  # a page narrows the other bounds, and not what the first entry of a record is

    def _copy(self) -> Selection[K, V]:
        cls: Any = type(self)
        made: ElementSelection[K, V] = cls.__new__(cls)
        made._index, made._whole = self._index, self._whole
        return made

    def _entry_of(self, value: V, primary: bytes) -> Optional[bytes]:
        return self._index.storage.entry_within(value, primary, *self._whole)

    def found(self) -> list[tuple[bytes, bytes]]:
        """The first entry and the encoded primary key of each record, in the order of the selection."""
        lower, upper, tail = self._lower, self._upper, self._index.storage.tail
        first: dict[bytes, bytes] = {}
        whole = IndexSelection(self._table, *self._whole, index=self._index)
        for entry, owner in whole._engine_rows():
            first.setdefault(entry[tail:] if tail else bytes(owner), entry)
        rows = [(entry, primary) for primary, entry in first.items() if lower <= entry < upper]
        return rows[::-1] if self._reverse else rows

    def _scan(self, cursor: Any = None) -> Any:
        return ElementScan(self)

    def _read(self, kind: Callable[[Storage[Any, Any], Any], Iterator[Any]]) -> Iterator[Any]:
        scan = ElementScan(self)
        try:
            yield from kind(self._table._storage, scan)
            if scan.current()[0] is not None:
                raise StopIteration  # from a decoder, which must not look like the end of the records
        except Exception as error:
            self._failed(error, *scan.current(), scan)
        finally:
            scan.close()

    def _at_once(self, give: Any) -> None:
        """None: a record may have several entries."""

    def _at_end(self, reverse: bool, give: Give = PAIRS) -> Any:
        if not reverse and (self._lower, self._upper) == self._whole:  # its first entry is that of the first record
            return super()._at_end(reverse, give)
        return next(self._with(reverse=reverse, limit=1)._run(give), None)

    def _counted(self, most: Optional[int]) -> int:
        entries = len(self.found())
        return entries if most is None else min(entries, most)

    def _is_whole(self, storage: Optional[Storage[Any, Any]] = None) -> bool:
        return False

    def _record_keys(self, most: int) -> list[bytes]:
        prefix = self._table._storage.prefix
        return [prefix + primary for _, primary in self.found()[:most]]

    def _delete_range(self) -> int:
        from ..changing import delete  # late: few programs need it

        return delete(self)


_OfAny: Any = IndexSelection  # whose methods the next class takes over


class OneElementSelection(ElementSelection[K, V]):
    """The records with one index key, in a write transaction: all but a loop reads them as those of any index."""

    __slots__ = ()

    _at_once = _OfAny._at_once
    _at_end = _OfAny._at_end
    _counted = _OfAny._counted
    _record_keys = _OfAny._record_keys

    def _of_any(self) -> IndexSelection[K, V]:
        """The same records, for a caller who takes what it wants before the program continues."""
        same = IndexSelection(self._table, self._lower, self._upper, self._reverse, self._limit, index=self._index)
        same._query = self._query
        return same

    def _every(self, give: Give) -> list[Any]:
        return self._of_any()._every(give)

    def _first_of(self, give: Give) -> Any:
        return self._of_any()._first_of(give)

    def _summed(self, give: Give) -> Iterator[Any]:
        return self._of_any()._summed(give)

    def _running_all(self, *, ordered: bool = True) -> Running:
        return self._of_any()._running_all(ordered=ordered)

    def __bool__(self) -> bool:
        return bool(self._of_any())


class ElementScan(Scanned):
    """One iteration over the records that *selection* finds when it begins.

    In a write transaction each record is looked at again when its turn comes: those that the body of the loop inserted,
    deleted or took out of the range are left out.
    """

    def __init__(self, selection: ElementSelection[Any, Any]) -> None:
        self._table = table = selection._table
        self._selection, self._found = selection, selection.found()
        txn = table._txn
        self._scans = txn._open_scans() if txn._scans is None else txn._scans
        self._at: tuple[Optional[bytes], Any] = None, None
        self._inserted: set[bytes] = set()
        self._mark = self._scans.watch(table._storage.space, txn) if txn._write else None
        self.any = bool(self._found)

    def keys(self) -> Iterator[bytes]:
        """The engine's keys of the records."""
        return map(_first, self.pairs())

    def both(self) -> tuple[Iterator[bytes], Iterator[Any]]:
        """`keys` and `values`, for ``zip``."""
        keys, values = tee(self.pairs())
        return map(_first, keys), map(_second, values)

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's pairs of key and value."""
        table, index, prefix = self._table, self._selection._index.storage, self._table._storage.prefix
        for entry, primary in self._found:
            key = prefix + primary
            if self._mark is not None and key in self._news(self._mark):
                continue
            data = table._get(key, None, table._db)
            if self._mark is not None and not self._is_within(entry, primary, data):
                continue
            if data is None:
                table._owned(primary, index)  # raises
            self._at = key, data
            yield self._at
            self._scans.check()
        self._at = None, None

    def _news(self, mark: int) -> set[bytes]:
        """The engine's keys of the records that were inserted since the iteration began."""
        journal, space = self._scans.journal, self._table._storage.space
        for written in journal[mark:]:  # `islice` would go through all of it
            if written.space == space and written.old is None and written.new is not None:
                self._inserted.add(written.new)
        self._mark = len(journal)
        return self._inserted

    def _is_within(self, entry: bytes, primary: bytes, data: Any) -> bool:
        """Whether the record *primary* with the bytes *data* still belongs to the selection."""
        table, selection = self._table, self._selection
        if table._raw.get(entry, None, selection._index.handle) is not None:
            return True
        if data is None:
            return False
        storage = table._storage
        value = storage.decode_value(data, storage.key.decode(primary))
        return selection._index.storage.entry_within(value, primary, *selection._whole) is not None

    def current(self) -> tuple[Optional[bytes], Any]:
        """The engine's key and value of the record at which the iteration is."""
        return self._at

    def is_paused(self, error: Exception) -> bool:
        """False: it needs no pause. Raises when the transaction has ended."""
        self._scans.check()
        return False

    def close(self) -> None:
        """End the iteration."""
        scans = self._scans
        if self._mark is not None and scans and scans.ended is None:
            scans.unwatch(self._table._storage.space, self._table._txn)
