"""The blocks of ``table.edit(key)`` and ``selection.edit()``, which store what they have changed."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar

from ..shown import shortened
from ..values.constant import is_constant, new_value
from .misspelt import assigned_to, check_names, check_nested, nested_in

if TYPE_CHECKING:
    from .changing import Edits
    from .selection import Selection
    from .table import Table

V = TypeVar("V")


def check_edit(table: Table[Any, Any], key: Any, encoded: bytes, value: Any) -> None:
    """Raise unless the object *value* of the record *key*, which *encoded* is in the engine, may be edited now."""
    if is_constant(value):
        raise TypeError(
            f"table {table._name!r}: edit() changes the object that is stored, and {shortened(value)} "
            f"({type(value).__name__}) cannot be changed in place: store another one, "
            f"table[{shortened(key)}] = {new_value(value)}"
        )
    if table._txn._is_edited(table._name, encoded):
        raise ValueError(
            f"table {table._name!r}: the record {shortened(key)} is edited by a block around this one, which would "
            f"store its own object over that of this block: change the object of the outer block"
        )


def check_alone(table: Table[Any, Any], key: Any, encoded: bytes, before: Optional[bytes], value: Any) -> None:
    """Raise if a block has written the record that it edits, which was *before*, and which *value* would replace.

    A write does not ask whether a block edits its record, which would slow all of them: a block that wrote asks at its
    end.
    """
    stored = stored_now(table, encoded)
    if stored != before and (stored is None or stored != table._storage.encode_record(value, key)):
        done = "deleted" if stored is None else "stored"
        raise ValueError(
            f"table {table._name!r}: the record {shortened(key)} was {done} within the block that edits it, whose end "
            f"would store the object of the block instead: change only that object, or write the record after the block"
        )


def stored_now(table: Table[Any, Any], encoded: bytes) -> Optional[bytes]:
    """What is stored of the record *encoded*; None if there is none."""
    data = table._get(encoded, None, table._db)
    return None if data is None else bytes(data)  # that may be a view of a page which changes


class _Block:
    """A block. What is meant for its objects is refused: the first users forget the ``with``."""

    __slots__ = ()
    _call = _result = ""
    """How it is called, and what its result is, in a message."""

    if not TYPE_CHECKING:  # checkers report the name

        def __getattr__(self, name):
            raise AttributeError(self._advice(f"no attribute {name!r}"))

        def __setattr__(self, name, value):
            if not name.startswith("_"):
                raise AttributeError(self._advice(f"no attribute {name!r}, and would not store it"))
            object.__setattr__(self, name, value)

        def __iter__(self):
            raise TypeError(self._advice("no objects before it begins"))

    def __repr__(self) -> str:
        return f"<a block: write `with {self._call} as {self._result}:`>"

    def _advice(self, lack: str) -> str:
        return f"{self._call} is a block, which has {lack}: write `with {self._call} as {self._result}:`"


class EditedRecord(_Block, Generic[V]):
    """The object of one record: the normal end of the block stores it."""

    __slots__ = ("_before", "_counts", "_edited", "_key", "_table", "_value")
    _call = "table.edit(key)"
    _result = "record"

    def __init__(self, table: Table[Any, V], key: Any) -> None:
        self._table, self._key = table, key

    def __enter__(self) -> V:
        table, key = self._table, self._key
        table._check_write()
        value, edited = table[key], (table._name, table._storage.encode_key(key))
        check_edit(table, key, edited[1], value)
        txn = table._txn
        txn._odd = True
        self._value, self._edited = value, edited
        self._before, self._counts = stored_now(table, edited[1]), (txn._puts, txn._dels)
        txn._edited.add(edited)
        return value

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        table = self._table
        try:
            if kind is None:
                fields = assigned_to(type(self._value))
                if fields is not None and len(vars(self._value)) > len(fields):
                    check_names(table, self._key, self._value)
                if nested_in(type(self._value)):
                    check_nested(table, self._key, self._value)
                if (table._txn._puts, table._txn._dels) != self._counts:
                    check_alone(table, self._key, self._edited[1], self._before, self._value)
                table[self._key] = self._value
        finally:
            table._txn._edited.discard(self._edited)


class EditedRecords(_Block, Generic[V]):
    """An iterator over the objects of a selection: each is stored when its turn is over."""

    __slots__ = ("_edits", "_selection")
    _call = "selection.edit()"
    _result = "records"

    def __init__(self, selection: Selection[Any, V]) -> None:
        self._selection = selection

    def __enter__(self) -> Iterator[V]:
        from .changing import edits  # late: few programs need it

        self._edits: Edits[V] = edits(self._selection)
        return iter(self._edits)

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._edits.end(error)
