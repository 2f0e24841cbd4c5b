"""Methods that select ranges of keys, for tables and indexes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Optional, Protocol, TypeVar, Union, overload

from ..query.nolists import refuse_given
from .missing import FUNCTION, refuse_call, refuse_class, refuse_ranges, refuse_where

if TYPE_CHECKING:
    from ..query import Ordered, Reads
    from ..query.explained import Plan
    from .selection import Selection

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
I = TypeVar("I")  # noqa: E741 - the key that the order is of, as in IndexView[I, K, V]
K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
G = TypeVar("G")

Two = Union[tuple[A], tuple[A, B]]
Three = Union[tuple[A], tuple[A, B], tuple[A, B, C]]
Four = Union[tuple[A], tuple[A, B], tuple[A, B, C], tuple[A, B, C, D]]
Five = Union[tuple[A], tuple[A, B], tuple[A, B, C], tuple[A, B, C, D], tuple[A, B, C, D, E]]
"""The leading parts of tuples of two, three, four and five."""


class Spans(Protocol):
    """The storage of a table or of an index: it converts ranges of keys to ranges of bytes."""

    @property
    def lower(self) -> bytes:
        """The beginning of the whole range."""
        raise NotImplementedError

    @property
    def upper(self) -> bytes:
        """The end of the whole range."""
        raise NotImplementedError

    def check_sorts(self) -> None:
        """Raise unless ranges mean something."""
        raise NotImplementedError

    def bound(self, key: Any, *, through: bool = False) -> bytes:
        """The position of *key* in a range, or with *through* the position after it."""
        raise NotImplementedError

    def span(self, prefix: Any, startswith: Any) -> tuple[bytes, bytes]:
        """The range of the keys that begin with the given parts."""
        raise NotImplementedError


Bounds = tuple[Any, Any, Any, Any, Any]
"""The range that `Ranged.select` asks for: *start*, *stop*, *through*, *prefix* and *startswith*."""


def limits(spans: Spans, bounds: Bounds) -> tuple[bytes, bytes]:
    """The bytes at which the range of *bounds* begins and ends. Raises `EncodeError`."""
    lower, upper = spans.lower, spans.upper
    start, stop, through, prefix, startswith = bounds
    spans.check_sorts()
    if start is not None:
        lower = spans.bound(start)
    if stop is not None:
        upper = spans.bound(stop)
    if through is not None:
        upper = min(upper, spans.bound(through, through=True))
    if prefix is not None or startswith is not None:
        first, end = spans.span(prefix, startswith)
        lower, upper = max(lower, first), min(upper, end)
    return lower, upper


class Ranged(Generic[I, K, V]):
    """Records with the keys K and the values V, sorted by the keys I: of a table, or of one of its indexes."""

    __slots__ = ()

    # For checkers: bounds and prefixes of a tuple may be its leading parts. They know tuples of up to five parts.
    @overload
    def select(
        self: Ranged[tuple[A, B], K, V],
        start: Optional[Two[A, B]] = None,
        stop: Optional[Two[A, B]] = None,
        *,
        through: Optional[Two[A, B]] = None,
        prefix: Optional[Two[A, B]] = None,
        startswith: Union[str, bytes, None] = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Selection[K, V]: ...
    @overload
    def select(
        self: Ranged[tuple[A, B, C], K, V],
        start: Optional[Three[A, B, C]] = None,
        stop: Optional[Three[A, B, C]] = None,
        *,
        through: Optional[Three[A, B, C]] = None,
        prefix: Optional[Three[A, B, C]] = None,
        startswith: Union[str, bytes, None] = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Selection[K, V]: ...
    @overload
    def select(
        self: Ranged[tuple[A, B, C, D], K, V],
        start: Optional[Four[A, B, C, D]] = None,
        stop: Optional[Four[A, B, C, D]] = None,
        *,
        through: Optional[Four[A, B, C, D]] = None,
        prefix: Optional[Four[A, B, C, D]] = None,
        startswith: Union[str, bytes, None] = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Selection[K, V]: ...
    @overload
    def select(
        self: Ranged[tuple[A, B, C, D, E], K, V],
        start: Optional[Five[A, B, C, D, E]] = None,
        stop: Optional[Five[A, B, C, D, E]] = None,
        *,
        through: Optional[Five[A, B, C, D, E]] = None,
        prefix: Optional[Five[A, B, C, D, E]] = None,
        startswith: Union[str, bytes, None] = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Selection[K, V]: ...
    @overload
    def select(
        self: Ranged[str, K, V],
        start: Optional[str] = None,
        stop: Optional[str] = None,
        *,
        through: Optional[str] = None,
        startswith: Optional[str] = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Selection[K, V]: ...
    @overload
    def select(
        self: Ranged[bytes, K, V],
        start: Optional[bytes] = None,
        stop: Optional[bytes] = None,
        *,
        through: Optional[bytes] = None,
        startswith: Optional[bytes] = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Selection[K, V]: ...
    @overload
    def select(
        self,
        start: Optional[I] = None,
        stop: Optional[I] = None,
        *,
        through: Optional[I] = None,
        reverse: bool = False,
        limit: Optional[int] = None,
    ) -> Selection[K, V]: ...
    def select(
        self,
        start: Any = None,
        stop: Any = None,
        *,
        through: Any = None,
        prefix: Optional[tuple[Any, ...]] = None,
        startswith: Union[str, bytes, None] = None,
        reverse: bool = False,
        limit: Optional[int] = None,
        **fields: Any,
    ) -> Selection[K, V]:
        """Records with ``start <= key < stop`` in key order, backwards with *reverse*, at most *limit*.

        *through* is a last key that is included. Of tuples, bounds may be leading parts: they come before all keys that
        begin with them, as in Python, and ``through=("a",)`` includes all of those. *prefix* selects by leading parts
        of a tuple, each of them complete: ``("s1",)`` does not select ``("s10", 5)``. *startswith* selects by the
        beginning of a text or bytes: of the key, or of the part after *prefix*.

        Nothing is read until the selection is iterated. Starting costs O(log n), a record O(1), and through an index
        O(log n). Raises `EncodeError` for a bound of another type, ValueError for a negative *limit*.
        """
        if fields:
            refuse_ranges(fields)
        if start is None and stop is None and through is None and prefix is None and startswith is None:
            return self._chosen(None, reverse, limit)
        return self._chosen((start, stop, through, prefix, startswith), reverse, limit)

    # What a selection of all of them has, for short.

    @overload
    def where(self, matches: Callable[[V], bool], /) -> Selection[K, V]: ...
    @overload
    def where(self, matches: Callable[[K, V], bool], /) -> Selection[K, V]: ...
    def where(self, matches: Any = None, /, *more: Any, **fields: Any) -> Selection[K, V]:
        """The records for which *matches* is true, ``t.users.where(lambda user: user.age > 30)``.

        *matches* is a function of the value, or of key and value. Short for ``select().where(...)``: `Selection.where`.
        """
        if more or fields:
            refuse_where(more, fields)
        if matches is None and self.__class__ is FUNCTION:
            refuse_class("where")
        return self._chosen(None, False, None)._asked(matches)

    @overload
    def order_by(self, by: Callable[[V], Ordered], /, *, reverse: bool = False) -> Selection[K, V]: ...
    @overload
    def order_by(self, by: Callable[[K, V], Ordered], /, *, reverse: bool = False) -> Selection[K, V]: ...
    def order_by(self, by: Any = None, /, *more: Any, reverse: bool = False, **options: Any) -> Selection[K, V]:
        """The records sorted by what *by* gives, ``t.users.order_by(lambda user: user.name)``.

        *by* is a function of the value, or of key and value. For short; see `Selection.order_by`.
        """
        if more or options:
            refuse_call("order_by", more, options)
        if by is None and self.__class__ is FUNCTION:
            refuse_class("order_by")
        return self._chosen(None, False, None)._sorted_by(by, reverse)

    def limit(self, count: int, skip: int = 0, **options: NoReturn) -> Selection[K, V]:
        """At most *count* records, after the first *skip*; ``select().limit(...)``."""
        if skip or options or count.__class__ is not int or count < 0:
            return self._chosen(None, False, None).limit(count, skip, **options)
        return self._chosen(None, False, count)

    @overload
    def fields(self, give: Callable[[V], R], /) -> Reads[R]: ...
    @overload
    def fields(self, give: Callable[[K, V], R], /) -> Reads[R]: ...
    def fields(self, give: Any = None, /, *more: Any, **options: Any) -> Reads[Any]:
        """What *give* returns for each record, ``t.users.fields(lambda user: (user.name, user.age))``.

        *give* is a function of the value, or of key and value. Short for ``select().fields(...)``: `Selection.fields`.
        """
        if more or options:
            refuse_call("fields", more, options)
        if self.__class__ is FUNCTION:
            refuse_class("fields")
        return self._chosen(None, False, None).fields(give)

    @overload
    def group_by(self, by: Callable[[V], G], into: Callable[[Selection[K, V]], R], /) -> dict[G, R]: ...
    @overload
    def group_by(self, by: Callable[[K, V], G], into: Callable[[Selection[K, V]], R], /) -> dict[G, R]: ...
    def group_by(self, by: Any = None, into: Any = None, /, *more: Any, **named: Any) -> dict[Any, Any]:
        """A dict of groups, ``t.users.group_by(lambda user: user.age, lambda group: group.count())``.

        Short for ``select().group_by(...)``, see `Selection.group_by`.
        """
        if self.__class__ is FUNCTION:
            refuse_class("group_by")
        return self._chosen(None, False, None).group_by(by, into, *more, **named)

    def first(self, *given: NoReturn, **named: NoReturn) -> Optional[tuple[K, V]]:
        """The first pair of key and value; None when there is none."""
        if given or named:
            refuse_given("first", given, named)
        return self._chosen(None, False, None).first()

    def last(self, *given: NoReturn, **named: NoReturn) -> Optional[tuple[K, V]]:
        """The last pair of key and value; None when there is none."""
        if given or named:
            refuse_given("last", given, named)
        return self._chosen(None, False, None).last()

    def count(self, *given: NoReturn, **named: NoReturn) -> int:
        """The number of records."""
        if given or named:
            refuse_given("count", given, named)
        return self._chosen(None, False, None).count()

    def delete(self, *given: NoReturn, **named: NoReturn) -> int:
        """Delete all these records, as ``select().delete()`` does; returns how many."""
        if given or named:
            refuse_given("delete", given, named)
        return self._chosen(None, False, None).delete()

    def explain(self) -> Plan:
        """How all records are read, ``select().explain()``: `Reads.explain`."""
        return self._chosen(None, False, None).explain()

    def _chosen(self, bounds: Optional[Bounds], reverse: bool, limit: Optional[int]) -> Selection[K, V]:
        """The selection of the range *bounds*, None for all of it."""
        raise NotImplementedError
