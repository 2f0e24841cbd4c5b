"""The records of a selection that match a condition, and the fields of records."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Optional, TypeVar, Union

from .. import errors
from ..shown import shortened
from .expressions import Condition, Field, Joined, condition_of
from .scanned import Scanned
from .want import Want

if TYPE_CHECKING:
    from ..tables.selection import Selection
    from .loops import Programs

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
D = TypeVar("D")

_BROKEN = (ValueError, LookupError, ArithmeticError, struct.error)
"""What reading a field that is not what it should be raises."""

_CHUNK = 1000  # records deleted between two looks at the cursor


def no_length(given: object) -> int:
    """Raise `TypeError`: counting may read every record, which `len` does not say."""
    raise TypeError(f"{type(given).__name__} has no len(), since counting may read every record: write .count()")


class Reads(Iterable[R]):
    """The keys, the values, or fields of a selection. Each iteration reads afresh."""

    def __init__(self, read: Callable[[], Iterator[R]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[R]:
        return self._read()

    def first(self) -> Optional[R]:
        """The first of them; None when there is none."""
        return _next(self._read(), None)

    def count(self) -> int:
        """How many there are. Reads all of them."""
        return sum(1 for _ in self._read())

    def __bool__(self) -> bool:
        return _next(self._read(), self) is not self

    if not TYPE_CHECKING:  # checkers report it by themselves
        __len__ = no_length

    def __repr__(self) -> str:
        return f"[{preview(self._read)}]"


class Filtered(Iterable[tuple[K, V]], Generic[K, V]):
    """The records of a selection that match a condition, in the order of the selection, at most its *limit* of them.

    As with the selection, nothing is read before the iteration, and each iteration reads afresh, inside the
    transaction. Every record of the selection's range is read, until *limit* have matched. The condition is compiled
    once for its form, whatever the values in it (about a millisecond). Of ``FlatBuffers[T]`` only the fields that it
    names are read; what is not read is not checked, a record that is broken elsewhere is filtered all the same.
    """

    __slots__ = ("_condition", "_selection")

    def __init__(self, selection: Selection[K, V], condition: Condition) -> None:
        self._selection = selection
        self._condition = condition

    def where(self, condition: Union[Condition, Field], /) -> Filtered[K, V]:
        """Those that match *condition*, too."""
        return filtered(self._selection, condition, self._condition)

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._read(Want("pairs"))

    def keys(self) -> Reads[K]:
        """The keys only."""
        return Reads(lambda: self._read(Want("keys")))

    def values(self) -> Reads[V]:
        """The values only; the keys are not decoded."""
        return Reads(lambda: self._read(Want("values")))

    def fields(self, *names: str) -> Reads[Any]:
        """Tuples of the fields *names* only, as `Selection.fields`."""
        return projection(self._selection, names, self._condition)

    def __getitem__(self, key: K) -> V:
        """The value of *key*, one of `keys`; with them it makes ``dict(filtered)`` work.

        Raises `KeyError` for any other key.
        """
        self._selection[key]
        for value in Filtered(self._selection._only(key), self._condition).values():
            return value
        raise KeyError(key)

    def first(self) -> Optional[tuple[K, V]]:
        """The first pair of key and value; None when nothing matches."""
        return _next(self._read(Want("pairs")), None)

    if not TYPE_CHECKING:
        __len__ = no_length

    def count(self) -> int:
        """The number of records that match. Reads every record of the selection."""
        return sum(1 for _ in self._read(Want("hits")))

    def __bool__(self) -> bool:
        return _next(self._read(Want("hits")), self) is None

    def delete(self) -> int:
        """Delete the records, index entries too; the number of records deleted."""
        table = self._selection._range()[0]
        keys = self._read(Want("engine keys"))
        deleted = 0
        while chunk := list(islice(keys, _CHUNK)):
            for key in chunk:
                deleted += table._remove(key)
        return deleted

    def _read(self, want: Want) -> Iterator[Any]:
        return read(self._selection, want, self._condition)

    def __repr__(self) -> str:
        name = self._selection._range()[0]._name
        return f"<{type(self).__name__} of {name!r} where {self._condition!r}: [{preview(lambda: iter(self))}]>"


def filtered(
    selection: Selection[K, V], given: Union[Condition, Field], before: Optional[Condition] = None
) -> Filtered[K, V]:  # fmt: skip
    """The records of *selection* that match *given*, and the condition *before*. Raises `TypeError` at once."""
    condition = condition_of(given)
    programs = _programs(selection)
    for compare in condition._compares():
        programs.model.check(compare)
    programs.constants(condition)  # raises for what cannot be compared
    return Filtered(selection, condition if before is None else Joined("and", before, condition))


def projection(
    selection: Selection[Any, Any], names: tuple[str, ...], condition: Optional[Condition] = None
) -> Reads[Any]:  # fmt: skip
    """The fields *names* of the records of *selection* that match *condition*. Raises `TypeError` at once."""
    if not names:
        raise TypeError(
            "fields() takes the names of fields, such as fields('id', 'address.city'); values() has all of them"
        )
    model = _programs(selection).model
    paths = tuple(tuple(name.split(".")) for name in names)
    for path in paths:
        model.type_of(path)
    want = Want("fields", paths, len(paths) == 1)
    return Reads(lambda: read(selection, want, condition))


def read(selection: Selection[Any, Any], want: Want, condition: Optional[Condition]) -> Iterator[Any]:
    """What *want* says of the records of *selection* that match *condition*."""
    table, _, _, _, limit = selection._range()
    txn, storage = table._txn, table._storage
    programs = _programs(selection)
    keyed = want.keyed or txn._write  # in a read transaction an error finds the record by itself
    values, stored = programs.constants(condition)
    given = [] if condition is None else [compare.value for compare in condition._compares()]
    loop = programs.loop(condition, stored, want, keyed, txn.buffers)

    def failed(error: Exception, key: Any, data: Any, scan: Optional[Scanned]) -> NoReturn:
        _failed(selection, programs, error, key, data, scan)

    rows = loop(selection._scan, storage.load, storage.load_key, failed, *given, *values)
    return rows if limit is None else islice(rows, limit)  # a generator can be closed


def _next(rows: Iterator[R], default: D) -> Union[R, D]:
    """The first of *rows*, whose cursor is closed then."""
    found = next(rows, default)
    if isinstance(rows, GeneratorType):
        rows.close()
    return found


def preview(read: Callable[[], Iterator[Any]]) -> str:
    """The first rows, for a repr."""
    try:
        rows = [shortened(row) for row in islice(read(), 4)]
    except errors.TransactionClosed:
        return "its transaction has ended"
    return ", ".join(rows[:3] + ["..."] * (len(rows) > 3))


def _programs(selection: Selection[Any, Any]) -> Programs:
    storage = selection._range()[0]._storage
    if storage.programs is None:
        from .loops import Programs  # late: it is as long as the rest of the package, and brings decimal with it

        storage.programs = Programs(storage)
    programs: Programs = storage.programs
    return programs


def _failed(
    selection: Selection[Any, Any], programs: Programs, error: Exception, key: Any, data: Any, scan: Optional[Scanned]
) -> NoReturn:
    """Raise what *error* means; of a record read by single fields, that it is broken."""
    table = selection._range()[0]
    if data is None or programs.columns is None or not isinstance(error, (errors.DecodeError, *_BROKEN)):
        selection._failed(error, key, data, scan)
    if key is None and scan is not None:  # the loop had no need of keys
        key, data = scan.current()
    try:
        selection._failed(error, key, data)
    except errors.Error as ours:
        if ours.table is not None:
            raise
    except _BROKEN:  # the record decodes, as a view at least
        pass
    text = str(error) or type(error).__name__
    raise table._storage.named(errors.DecodeError(text, size=len(data)), table._storage.decode_key(key)) from error
