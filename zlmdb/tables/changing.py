"""Changing the records of a selection: `edit`, `change` and `delete`. Which ones these are is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, Union
from weakref import WeakKeyDictionary

from ..query.projection import ENGINE_KEYS, RECORDS
from ..shown import shortened
from ..values.constant import varies
from .editing import EditedRecord, check_edit
from .foundrows import FoundRows, PackedKeys, few_rows
from .misspelt import assigned_to, nested_in

if TYPE_CHECKING:
    from ..store.transaction import Transaction
    from .compiled.selected import Rows
    from .selection import Selection
    from .table import Table

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

FOLLOWED = 64
"""Records, of one call or of several, for which following the function that changes them pays."""

_KEPT = 1 << 26
"""Bytes of memory for the records that are kept from the filter to the change, as far as averages tell."""

_PAIR = 148
"""Bytes that a record takes there beside those of its key and value: a tuple, two objects and a place in a list."""

_LISTED = 1 << 14
"""Keys that are kept as objects; if there are more, all of them are packed."""

_LONG = 1 << 12
"""Bytes of an average record from which on to look it up again takes no longer than to keep it."""


def delete(selection: Selection[Any, Any]) -> int:
    """Delete the records of *selection*, or none if one is refused; how many."""
    table = selection._table
    table._check_write()
    from .compiled.selected import remove_all, wants_stored  # late: many programs change one record at a time

    rows = _found(selection, _rows_of) if wants_stored(table) and not table._storage.referrers else None
    if rows is None:
        keys, stored = _found(selection, _keys_of), None
    elif isinstance(rows, FoundRows):
        keys, stored = rows.keys(), rows.stored()
    else:
        keys, stored = [key for key, _ in rows], [data for _, data in rows]
    if not keys:
        return 0
    if table._storage.referrers:
        from .removal import remove  # late: few tables have links to them

        return remove(table, keys)
    rows = None  # a pair takes more memory than the key in it
    with table._txn._statement():
        return remove_all(table, keys, type(table)._remove, stored)


def change(selection: Selection[Any, V], how: Callable[[V], V]) -> int:
    """Store what *how* makes of each record of *selection*, or change none if one is refused; how many."""
    from .compiled.selected import GONE, read, selected_of, store  # late, as above

    table = selection._table
    table._check_write()
    if not callable(how):
        raise TypeError(f"change() takes a function that returns the new record of each one, and got {shortened(how)}")
    rows = _found(selection, _rows_of)
    if not rows:
        return 0
    made, changed = selected_of(table), 0
    known = None
    if made is not None and made.change is not None and _is_used_much(how, len(rows)):
        from .followedchanges import replacing  # late, as above

        known = replacing(selection, how)
    with table._txn._statement():
        if known is not None:
            return known(table, rows)
        if made is not None and made.change is not None:
            return made.change(table, rows, how)
        for key, _ in rows:
            value: Any = read(table, key)
            if value is not GONE:
                store(table, key, how(value))
                changed += 1
    return changed


def _is_used_much(how: Callable[..., Any], count: int) -> bool:
    """Whether *how* changes so many records, with these *count*, that following it pays."""
    code = how.__code__ if type(how) is FunctionType else None
    if count < FOLLOWED and type(code) is CodeType:  # that of a function which is built into PyPy is not
        count += _changed.get(code, 0)
        _changed[code] = min(count, FOLLOWED)
    return count >= FOLLOWED


_changed: WeakKeyDictionary[CodeType, int] = WeakKeyDictionary()
"""How many records functions of a code have changed, a few at a time."""


def edits(selection: Selection[Any, V]) -> Edits[V]:
    """The objects of *selection*, for a block: each is stored again when its turn is over."""
    from .compiled.selected import selected_of  # late, as above

    table = selection._table
    table._check_write()
    rows = _found(selection, _rows_of)
    made = selected_of(table)
    if made is None or made.edit is None:
        return _Editing(table, rows.keys() if isinstance(rows, FoundRows) else [key for key, _ in rows])
    return EditedRows(made.edit, table, rows)


def _is_listed(selection: Selection[Any, Any]) -> bool:
    """Whether all records that match are meant, in the order of the table."""
    query = selection._query
    return query.order is None and not query.skip and selection._limit is None and selection._plain


def _found(selection: Selection[Any, Any], read: Callable[[Selection[Any, Any]], R]) -> R:
    """What *read* finds of *selection*."""
    try:
        return read(selection)
    except Exception as error:
        selection._table._txn._fail(error, table=selection._table._name)


def _keys_of(selection: Selection[Any, Any]) -> Sequence[bytes]:
    """The engine's keys of the records of *selection*."""
    if not _is_listed(selection):
        return selection._listed(ENGINE_KEYS)
    few = few_rows(selection, ENGINE_KEYS)
    if few is not None:
        return few
    keys: list[bytes] = []
    packed: Optional[PackedKeys] = None
    for block in selection._running_all().lists(ENGINE_KEYS):
        if packed is not None:
            packed.add(block)
            continue
        keys += block
        if len(keys) > _LISTED:
            packed = PackedKeys()
            packed.add(keys)
            keys.clear()
    return keys if packed is None else packed


def _rows_of(selection: Selection[Any, Any]) -> Rows:
    """The records of *selection*. What is stored of them stays in memory, unless that is much."""
    rows: list[Any] = []
    most = _kept(selection._table) if _is_listed(selection) and not selection._follows_links() else 0
    if most == 0:
        return _unread(_keys_of(selection))
    few = few_rows(selection, ENGINE_KEYS)
    if few is not None:
        return _unread(few)
    counts = selection._table._txn._puts, selection._table._txn._dels
    packed: Optional[PackedKeys] = None
    for block in selection._running_all().lists(RECORDS):
        if len(rows) < most:
            rows += block
        else:
            packed = PackedKeys() if packed is None else packed
            packed.add([key for key, _ in block])
    found: Rows = rows if packed is None else FoundRows(rows, packed)
    if counts != (selection._table._txn._puts, selection._table._txn._dels):  # a function of the query has written
        return _unread([key for key, _ in rows] if packed is None else FoundRows(rows, packed).keys())
    return found


def _unread(keys: Sequence[bytes]) -> Rows:
    """The rows of *keys*, to be looked up."""
    return FoundRows([], keys) if isinstance(keys, PackedKeys) else [(key, None) for key in keys]


def _kept(table: Table[Any, Any]) -> int:
    """How many records of *table* may be in memory."""
    txn = table._txn
    pages: dict[str, int] = {} if txn.buffers else txn._engine_txn.stat(table._db)
    size = pages.get("psize", 0) * (pages.get("leaf_pages", 0) + pages.get("overflow_pages", 0))
    average = size // max(pages.get("entries", 0), 1)
    return 0 if not 0 < average <= _LONG else _KEPT // (average + _PAIR)


class EditedRows:
    """The objects of records, one at a time, by a generated function: see `compiled.selected`.

    *at* is the engine's key of the record whose turn it is, or None; *over* when the block is, or somebody has closed
    the iterator; *failed* after an error. Objects of the class *kind* can be changed. They have *most* attributes, or
    more that no class declares; None if that does not matter. Those in the fields *nested* may have such, too.
    """

    __slots__ = ("_counts", "_name", "_rows", "_txn", "at", "failed", "kind", "most", "nested", "over")

    def __init__(self, rows_of: Callable[..., Iterator[Any]], table: Table[Any, Any], rows: Rows) -> None:
        self.over = self.failed = False
        self.at: Optional[bytes] = None
        self.kind: Optional[type[Any]] = None
        self.most: Optional[int] = None
        self.nested: tuple[str, ...] = ()
        self._txn, self._name = table._txn, table._name
        self._counts = self._txn._puts, self._txn._dels
        self._rows: Any = rows_of(table, rows, self)

    def __iter__(self) -> Iterator[Any]:
        rows: Iterator[Any] = self._rows
        return rows

    def begin(self, txn: Transaction) -> bool:
        """The first record is wanted; whether nothing was written since these were found."""
        txn._odd = True
        txn._edited.add(self)
        return (txn._puts, txn._dels) == self._counts

    def is_at(self, table: str, encoded: bytes) -> bool:
        """Whether it is the turn of the record *encoded* of the *table* with that name."""
        return self.at == encoded and self._name == table

    def check(self, table: Table[Any, Any], encoded: bytes, value: Any) -> None:
        """Raise unless the object *value* of the record *encoded* may be changed; as `Table.edit`."""
        check_edit(table, table._storage.decode_key(encoded), encoded, value)
        self.kind = None if varies(value.__class__) else type(value)
        fields = assigned_to(type(value))
        self.most = None if fields is None else len(fields)
        self.nested = nested_in(type(value))

    def end(self, error: Optional[BaseException]) -> None:
        """The block is over."""
        self.over = True
        self._txn._edited.discard(self)
        if self.at is not None:
            if error is None:
                next(self._rows, None)  # which stores the last one, and stops there
            else:
                self.failed = True
                self._rows.close()


class _Editing(Generic[V]):
    """As `EditedRows`, for any table."""

    def __init__(self, table: Table[Any, V], keys: Iterable[bytes]) -> None:
        self._table, self._keys = table, keys
        self._open: Optional[EditedRecord[V]] = None
        self._over = False

    def __iter__(self) -> Iterator[V]:
        for encoded in self._keys:
            if self._over:
                raise RuntimeError("the block of edit() is over: iterate over its objects inside the block")
            key = self._table._storage.decode_key(encoded)
            if key not in self._table:  # deleted meanwhile
                continue
            self._open = EditedRecord(self._table, key)
            yield self._open.__enter__()
            self.leave(None)

    def end(self, error: Optional[BaseException]) -> None:
        """The block is over."""
        self._over = True
        self.leave(error)

    def leave(self, error: Optional[BaseException]) -> None:
        """The turn of the current object is over: it is stored, unless there was an *error*."""
        opened, self._open = self._open, None
        if opened is not None:
            if error is None:
                opened.__exit__(None, None, None)
            else:
                opened.__exit__(type(error), error, error.__traceback__)


Edits = Union[EditedRows, _Editing[V]]
"""The objects of a selection: an iterator, and `end`, which the end of the block calls."""
