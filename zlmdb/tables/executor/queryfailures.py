"""What an error in the loop of a query means: the engine failed, a record is broken, or a function raised it.

Of two times that are compared, of which one has a time zone, it says which has none, and of which record.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Optional

from ... import errors
from ...handlers import let_through, of_program
from ...query.following import Followed, Node, walk
from ...query.following.nodes import Given
from ...query.following.operations import Binary, Compare
from ...query.prepared import Prepared
from ...query.scanned import Scanned
from ...shown import shortened
from ..storage import Storage

if TYPE_CHECKING:
    from ..selection import Selection


def failed(
    selection: Selection[Any, Any], functions: Sequence[Followed], prepared: Prepared, error: Exception, key: Any,
    data: Any, scan: Optional[Scanned],
) -> NoReturn:  # fmt: skip
    """Raise what *error* means; of a record read by single fields, that it is broken."""
    table, read = selection._table, data is not None
    storage = table._storage
    columns = storage.generated.loops.columns
    # Neither the engine nor zlmdb has raised it, but what the query does with a record.
    own_error = not isinstance(table._txn._translate(error, table=table._name), (errors.Error, MemoryError))
    if own_error:
        if key is None and scan is not None and scan.any:  # the loop had no need of keys
            key, data = scan.current()
        if _lacks_zone(error):
            _tell_zones(storage, functions, error, key, data)
        _raise_own(storage, functions, error, key, data)
    if not read or columns is None or not isinstance(error, (errors.DecodeError, *_broken())):
        selection._failed(error, key, data, scan)
    if key is None and scan is not None:
        key, data = scan.current()
    own = _raised(storage, prepared.called(functions), error, key, data)
    if type(own) is type(error):
        raise error
    if own is not None:
        raise own from own.__cause__
    try:
        selection._failed(error, key, data)
    except errors.Error as ours:
        let_through(ours)
        if ours.table is not None:
            raise
    except _broken() as unread:  # the record decodes, as a view at least
        let_through(unread)
    text = str(error) or type(error).__name__
    decoded = storage.decode_key(key)
    raise storage.named(errors.DecodeError(text, size=len(data)), decoded) from error


def _raise_own(
    storage: Storage[Any, Any], functions: Sequence[Followed], error: Exception, key: Any, data: Any
) -> None:  # fmt: skip
    """Raise what *error* is, the error of a compiled function, as the function itself raises it: from its own line."""
    if key is None or data is None or any(of_program(error.__traceback__)):
        return  # there is no record, or it is the function that raised it
    own = _raised(storage, functions, error, key, data)
    if own is not None:
        raise own from own.__cause__


def _raised(
    storage: Storage[Any, Any], functions: Sequence[Followed], error: Exception, key: Any, data: Any
) -> Optional[Exception]:
    """The exception of the type of *error* that one of *functions* raises for a record that can be read.

    Or that of a broken record in another table, of which the loop read only what the functions name.
    """
    record = _decoded(storage, key, data)
    if record is None:
        return None
    for followed in functions:
        try:
            followed.function(*(record if followed.keyed else record[1:]))
        except Exception as own:
            let_through(own)
            if type(own) is type(error) or (isinstance(own, errors.DecodeError) and own.table is not None):
                return own
    return None


def _decoded(storage: Storage[Any, Any], key: Any, data: Any) -> Any:
    """The key and the value of a record; None if they do not decode."""
    try:
        decoded = storage.decode_key(key)
        return decoded, storage.decode_value(data, decoded)
    except errors.Error as unread:
        let_through(unread)
        return None


def _broken() -> tuple[type[Exception], ...]:
    """What reading a field that is not what it should be raises."""
    import struct

    return ValueError, LookupError, ArithmeticError, struct.error


def _lacks_zone(error: Exception) -> bool:
    """Whether Python raises *error* because only one of two times has a time zone."""
    said = str(error)
    return type(error) is TypeError and "naive" in said and "aware" in said  # with "offset-" on CPython


def _tell_zones(
    storage: Storage[Any, Any], functions: Sequence[Followed], error: Exception, key: Any, data: Any
) -> None:  # fmt: skip
    """Raise *error*, that only one of two times has a time zone, with the record and what the function asked of it."""
    record = None if key is None or data is None else _decoded(storage, key, data)
    if record is None:
        return
    shown = f"table {storage.name!r}, key {shortened(record[0])}"
    for followed in functions:
        given = Given(record if followed.keyed else record[1:], followed.parameters, followed.function)
        for node in walk(followed.node):
            zoneless = _zoneless(node, given)
            if zoneless is not None:
                advice = f"{zoneless!r} has no time zone, give it one: tzinfo=timezone.utc"
                raise TypeError(f"{shown}: {node!r}: {error}; {advice}") from error
    if any([followed.reasons for followed in functions]):  # it was called, and what it asked is not known
        raise TypeError(f"{shown}: {error}; give both a time zone, such as datetime.now(timezone.utc)") from error


def _zoneless(node: Node, given: Given) -> Optional[Node]:
    """Of two times that *node* compares or subtracts, the one without a time zone, if the other one has one."""
    if not isinstance(node, (Binary, Compare)):
        return None
    try:
        zones = [getattr(side.evaluate(given), "tzinfo", given) for side in (node.left, node.right)]
    except Exception as error:  # a variable of a loop, say
        let_through(error)
        return None
    if given in zones or (zones[0] is None) is (zones[1] is None):
        return None
    return node.left if zones[0] is None else node.right
