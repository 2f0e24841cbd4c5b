"""Changes of one record: what `change`, `increment` and `replace` of a table do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from .. import errors
from ..shown import shortened
from .missing import missing

if TYPE_CHECKING:
    from .table import Table

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Any = object()


def change(table: Table[K, V], key: K, how: Callable[[Any], Optional[V]], default: Optional[tuple[Any]]) -> Optional[V]:
    """Store and return what *how* makes of the value under *key*; None deletes the record.

    If there is no record, *how* gets the value in *default*; without one, this raises KeyError.
    """
    table._check_write()
    encoded = table._storage.encode_key(key)
    if table._txn._is_edited(table._name, encoded):
        raise ValueError(
            f"table {table._name!r}: a block around this call edits the record {shortened(key)}, and would replace the "
            f"new value with its own object: change the object of the block"
        )
    if not callable(how):
        raise TypeError(
            f"change() takes a function that returns the new value, and got {shortened(how)}: write change(key, lambda "
            f"record: ...), or table[key] = value"
        )
    old = table._stored(encoded, key)
    given = default if old is None else old
    if given is None:
        raise missing(key)
    new = how(given[0])
    if new is not None:
        table[key] = new
    elif old is not None:
        _check_unchanged(table, key, given[0])
        table._remove(encoded)
    return new


def _check_unchanged(table: Table[K, V], key: K, value: V) -> None:
    """Raise if a function that returned None has changed *value* in place: it forgot to return the object."""
    storage = table._storage
    if storage.encode_record(value, key) != storage.encode_record(table[key], key):
        raise TypeError(
            f"table {table._name!r}: the function changed the object of the record {shortened(key)} and returned None, "
            f"which deletes the record: return the object"
        )


def increment(table: Table[K, Any], key: K, by: Any) -> Any:
    """Add *by* to the number under *key*, and return the sum; if there is no record, store *by*."""
    if not _is_number(by):
        raise TypeError(f"increment(by={by!r}): expected a number")

    def added(value: Any) -> Any:
        if value is _ABSENT:
            return by
        if not _is_number(value):
            raise TypeError(
                f"table {table._name!r}: increment() adds to a number, and the value of {shortened(key)} is "
                f"{shortened(value)} ({type(value).__name__}): use change()"
            )
        total: Any = value
        try:
            return total + by
        except ArithmeticError as error:  # of a float and an int beyond all floats, of a signalling NaN
            raise errors.EncodeError(
                f"table {table._name!r}: increment() cannot add {shortened(by)} to the value of {shortened(key)}, "
                f"{shortened(value)} ({type(value).__name__}): {error}",
                table=table._name,
                key=key,
            ) from error

    return change(table, key, added, (_ABSENT,))


def _is_number(value: object) -> bool:
    if isinstance(value, (int, float, complex)):
        return True
    from numbers import Number  # late: few programs count in others

    return isinstance(value, Number)


def replace(table: Table[K, V], key: K, value: V) -> bool:
    """Store *value* if there is a record under *key*; whether there is one."""
    table._check_write()
    if key not in table:
        table._storage.encode_record(value, key)  # what does not fit raises in any case
        return False
    table[key] = value
    return True
