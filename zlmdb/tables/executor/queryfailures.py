"""What an error in the loop of a query means: the engine failed, a record is broken, or a function raised it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from ... import errors
from ...handlers import let_through
from ...query.following import Followed
from ...query.prepared import Prepared
from ...query.scanned import Scanned
from ..storage import Storage
from .zones import lacks_zone, tell_zones

if TYPE_CHECKING:
    from ..selection import Selection


def failed(
    selection: Selection[Any, Any], functions: Sequence[Followed], prepared: Prepared, error: Exception, key: Any,
    data: Any, scan: Optional[Scanned],
) -> NoReturn:  # fmt: skip
    """Raise what *error* means; of a record read by single fields, that it is broken."""
    storage = selection._table._storage
    columns = storage.generated.loops.columns
    if lacks_zone(error):
        if key is None and scan is not None and scan.any:
            key, data = scan.current()
        tell_zones(storage, functions, error, key, data)
    if data is None or columns is None or not isinstance(error, (errors.DecodeError, *_broken())):
        selection._failed(error, key, data, scan)
    if key is None and scan is not None:  # the loop had no need of keys
        key, data = scan.current()
    if _raises_it(storage, prepared.called(functions), error, key, data):
        raise error
    try:
        selection._failed(error, key, data)
    except errors.Error as ours:
        let_through(ours)
        if ours.table is not None:
            raise
    except _broken() as own:  # the record decodes, as a view at least
        let_through(own)
    text = str(error) or type(error).__name__
    decoded = storage.decode_key(key)
    raise storage.named(errors.DecodeError(text, size=len(data)), decoded) from error


def _raises_it(
    storage: Storage[Any, Any], functions: Sequence[Followed], error: Exception, key: Any, data: Any
) -> bool:
    """Whether it is a function of the query that raises *error* for a record that can be read."""
    try:
        decoded = storage.decode_key(key)
        value = storage.decode_value(data, decoded)
    except errors.Error as unread:
        let_through(unread)
        return False
    for followed in functions:
        try:
            followed.function(*((decoded, value) if followed.keyed else (value,)))
        except Exception as own:
            let_through(own)
            if type(own) is type(error):
                return True
    return False


def _broken() -> tuple[type[Exception], ...]:
    """What reading a field that is not what it should be raises."""
    import struct

    return ValueError, LookupError, ArithmeticError, struct.error
