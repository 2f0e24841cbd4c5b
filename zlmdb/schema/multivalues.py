"""The values of one key of a `SetTable` or a `ListTable`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Optional, TypeVar, Union

from ..errors import EncodeError
from ..missingattributes import tell
from ..query import NoList, Reads, preview, shown_position
from ..query.explained import Plan
from ..query.pages import Page
from ..shown import shortened
from ..tables.selection import Selection
from .advice import BY_POSITION, FEW, OF_VALUE_LISTS, OF_VALUE_SETS, says

if TYPE_CHECKING:
    from .multi import SetTable, Several

K = TypeVar("K")
V = TypeVar("V")


class Values(NoList, Generic[K, V]):
    """What a `ValueSet` and a `ValueList` have in common."""

    __slots__ = ("_key", "_table")

    _some: ClassVar[str] = FEW

    def __init__(self, table: Any, key: K) -> None:
        self._table = table
        self._key = key

    def _chosen(self, **bounds: Any) -> Selection[Any, Any]:
        table: Several[K, V] = self._table
        number = table._numbers.get(self._key)
        return table._values.select(limit=0) if number is None else table._of(number, **bounds)

    def _read(self, chosen: Selection[Any, Any]) -> Reads[V]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[V]:
        return iter(self._read(self._chosen()))

    def __reversed__(self) -> Iterator[V]:
        return iter(self._read(self._chosen(reverse=True)))

    def __bool__(self) -> bool:
        return self._key in self._table

    def __len__(self) -> int:
        return self.count()

    def count(self) -> int:
        """The number of values. O(number)."""
        return self._chosen().count()

    def first(self) -> Optional[V]:
        """The first value; None if there is none. O(log n)."""
        return self._read(self._chosen(limit=1)).first()

    def last(self) -> Optional[V]:
        """The last value; None if there is none. O(log n)."""
        return self._read(self._chosen(reverse=True, limit=1)).first()

    def clear(self) -> int:
        """Delete all values; returns their number."""
        return self._table._delete(self._key)

    def add(self, value: V, /) -> bool:
        """Add *value* unless it is there; whether it was added."""
        return self._table.add(self._key, value)

    def discard(self, value: V, /) -> bool:
        """Remove *value*; whether it was there."""
        return self._table.discard(self._key, value)

    def remove(self, value: V, /) -> None:
        """Remove *value*. Raises `KeyError` if it is not there."""
        if not self.discard(value):
            raise KeyError(value)

    if not TYPE_CHECKING:  # checkers report it by themselves

        def __setitem__(self, position: Any, value: Any) -> NoReturn:
            raise TypeError(f"[{shown_position(position)}]: values are not replaced by position: {BY_POSITION}")

        def __delitem__(self, position: Any) -> NoReturn:
            self[position] = None

        def __and__(self, other: object) -> NoReturn:
            raise TypeError("a set of Python has that operator: write set(values)")

        __or__ = __sub__ = __xor__ = __rand__ = __ror__ = __rsub__ = __rxor__ = __and__

    def __repr__(self) -> str:
        shown = preview(lambda: iter(self._read(self._chosen(limit=4))))
        return f"<values of {shortened(self._key)} in {self._table._numbers._name!r}: [{shown}]>"


class ValueSet(Values[K, V]):
    """The sorted values of one key of a `SetTable`, in a transaction."""

    __slots__ = ()

    def _read(self, chosen: Selection[Any, Any]) -> Reads[V]:
        return Taken(chosen)

    def __contains__(self, value: Any) -> bool:
        table: SetTable[K, V] = self._table
        number = table._numbers.get(self._key)
        try:
            return (-1 if number is None else number, value) in table._values
        except EncodeError as error:
            raise table._unfit(self._key, error) from error.__cause__

    def update(self, values: Iterable[V], /) -> int:
        """Add all *values*; returns how many were not there before."""
        return sum([self.add(value) for value in values])

    def select(
        self,
        start: Optional[V] = None,
        stop: Optional[V] = None,
        *,
        through: Optional[V] = None,
        startswith: Union[str, bytes, None] = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Reads[V]:
        """The values from *start* to *stop*, which is excluded, or *through* one that is included."""
        table: SetTable[K, V] = self._table
        number = table._numbers.get(self._key)
        if number is None:
            return Taken(table._values.select(limit=0))
        given = {"start": start, "stop": stop, "through": through}
        bounds: dict[str, Any] = {name: (number, value) for name, value in given.items() if value is not None}
        try:
            return Taken(table._of(number, startswith=startswith, reverse=reverse, limit=limit, **bounds))
        except EncodeError as error:
            raise table._unfit(self._key, error) from error.__cause__


tell(ValueSet, OF_VALUE_SETS, says(OF_VALUE_SETS))


class ValueList(Values[K, V]):
    """The values of one key of a `ListTable` in the order of their insertion, in a transaction."""

    __slots__ = ()

    def _read(self, chosen: Selection[Any, Any]) -> Reads[V]:
        return chosen.values()

    def __contains__(self, value: Any) -> bool:
        return any(found == value for found in self)

    def append(self, value: V, /) -> None:
        """Append *value*, also if the list has an equal one."""
        self._table.append(self._key, value)

    def extend(self, values: Iterable[V], /) -> None:
        """Append all *values*."""
        for value in values:
            self.append(value)


tell(ValueList, OF_VALUE_LISTS, says(OF_VALUE_LISTS))


class Taken(Reads[V]):
    """The values of a range of a `SetTable`, which are parts of keys."""

    __slots__ = ("_selection",)

    def __init__(self, selection: Selection[Any, Any]) -> None:
        self._selection = selection

    def __iter__(self) -> Iterator[V]:
        return map(itemgetter(1), iter(self._selection.keys()))

    def __bool__(self) -> bool:
        return bool(self._selection)

    def last(self) -> Optional[V]:
        """The last value; None when there is none."""
        entry = self._selection.keys().last()
        return None if entry is None else entry[1]

    def count(self) -> int:
        """How many values there are."""
        return self._selection.count()

    def page(self, size: int, after: Optional[str] = None) -> Page[V]:
        """As of every `Reads`."""
        page: Page[Any] = self._selection.keys().page(size, after)
        return page._with([value for _, value in page.rows])

    def _plan(self) -> Plan:
        return self._selection._plan()
