"""Groups of records, and the selection that each is: rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NoReturn, Optional, TypeVar

from ..query.explained import Plan
from ..query.following import Followed, spelled
from ..query.nolists import refuse_given
from ..query.ordering import checked, first_of, sliced
from ..query.projection import ENGINE_KEYS, KEYS, PAIRS, VALUES
from ..query.reads import Reads
from ..values.base import is_a
from .aggregated import aggregated
from .missing import missing, refuse_call
from .selection import ALL, Selection

if TYPE_CHECKING:
    from ..query.translated import Give
    from .table import Table

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


def grouped(
    selection: Selection[K, V], by: Any, into: Callable[[Selection[K, V]], R], /, *more: Any, **named: Any
) -> dict[Any, R]:  # fmt: skip
    """What *into* gives for each group of the rows of *selection*. Raises `TypeError` if it is no function of one."""
    if more or named:
        refuse_call("group_by", more, named)
    by = selection._following().group(by)
    if not callable(into) or _takes_more(into):
        raise TypeError(
            f"group_by() takes a function that returns the group of a record, and a function of the selection of a "
            f"group, and got {into!r} for the second: write group_by(lambda record: ..., lambda group: group.count()), "
            f"or group.fields(lambda record: ...).sum()"
        )
    try:
        found = aggregated(selection, by, into)
        groups = {} if found is not None else _kept(selection, by)
    except TypeError as error:
        if "unhashable" not in str(error):  # with what it is to be before that, since Python 3.14
            raise
        raise TypeError(f"group_by: {error}: give a function that returns no lists, but tuple(...)") from error
    if found is not None:
        return found
    return {name: _answer(into(Group(selection._table, *group))) for name, group in groups.items()}


def _takes_more(function: Any) -> bool:
    """Whether it is a function of more than a group, or the built-in ``sum``, which adds no pairs."""
    if type(function) is not FunctionType:
        return function is sum
    return function.__code__.co_argcount - len(function.__defaults__ or ()) > 1


def _answer(found: R) -> R:
    """What the second function has *found* for a group. Raises TypeError for a method of the group, uncalled."""
    whole: Any = found
    parts: tuple[Any, ...] = whole if is_a(whole, tuple) else (whole,)
    for part in parts:
        if type(part) is MethodType and isinstance(part.__self__, Reads):
            name = part.__name__
            raise TypeError(f"group_by: the function gives the method {name} itself: call it, {name}()")
    return found


def _kept(selection: Selection[K, V], by: Followed) -> dict[Any, tuple[list[K], list[V]]]:
    """The keys and values of each group."""
    # No pairs are kept: the garbage collector would look at each of so many again and again.
    groups: dict[Any, tuple[list[K], list[V]]] = {}
    for name, key, value in selection._all_rows(by, KEYS, VALUES, one=False):
        group = groups.get(name)
        if group is None:
            group = groups[name] = ([], [])
        group[0].append(key)
        group[1].append(value)
    return groups


class Group(Selection[K, V]):
    """The records of one group, as they were when they were read."""

    __slots__ = ("_keys", "_values")

    _plain = False

    def __init__(self, table: Table[K, V], keys: Sequence[K], values: Sequence[V]) -> None:
        storage = table._storage
        super().__init__(table, storage.lower, storage.upper)
        self._keys, self._values = keys, values

    def _copy(self) -> Selection[K, V]:
        cls: Any = Group
        made: Group[K, V] = cls.__new__(cls)
        made._keys, made._values = self._keys, self._values
        return made

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._run(PAIRS)

    def _run(self, give: Give) -> Iterator[Any]:
        query = self._query
        if query is ALL and self._limit is None and not self._reverse:
            return self._given(give)
        rows = self._pairs()
        for followed in query.where:
            rows = filter(_of_pair(followed), rows)
        if query.order is not None:
            rows = self._sorted(list(rows), query.order)
        else:
            rows = sliced(rows, query.skip, self._limit)
        return map(self._giver(give), rows)

    def _pairs(self) -> Iterator[tuple[K, V]]:
        return zip(reversed(self._keys), reversed(self._values)) if self._reverse else zip(self._keys, self._values)

    def _given(self, give: Give) -> Iterator[Any]:
        """As `_run`, of all rows."""
        if give is VALUES or give is KEYS:
            return iter(self._values if give is VALUES else self._keys)
        if isinstance(give, Followed) and not give.keyed:
            return map(_direct(give), self._values)
        return map(self._giver(give), self._pairs())

    def _all_at_once(self, give: Give) -> list[Any]:
        return list(self._run(give))

    def _sorted(self, rows: list[tuple[K, V]], order: Followed) -> Iterator[tuple[K, V]]:
        query = self._query
        key = _of_pair(order)
        if query.backwards:
            rows.reverse()
        stop = None if self._limit is None else query.skip + self._limit
        found = first_of(checked((key(pair), pair) for pair in rows), stop, backwards=query.backwards)
        return (pair for _, pair in islice(found, query.skip, stop))

    def _giver(self, give: Give) -> Callable[[tuple[K, V]], Any]:
        if isinstance(give, Followed):
            return _of_pair(give)
        if give is ENGINE_KEYS:
            encode = self._table._storage.encode_key
            return lambda pair: encode(pair[0])
        return _GIVERS[give]

    def _first_of(self, give: Give) -> Any:
        return next(self._first_ones()._run(give), None)

    def last(self) -> Optional[tuple[K, V]]:
        """The last pair; None when there is none."""
        pair = None
        for pair in self:  # noqa: B007
            pass
        return pair

    def count(self, *given: NoReturn, **named: NoReturn) -> int:
        """The number of records."""
        if given or named:
            refuse_given("count", given, named)
        return len(self._keys) if self._query is ALL and self._limit is None else sum(1 for _ in self._run(KEYS))

    def __bool__(self) -> bool:
        return self.first() is not None

    def _within(self, key: K) -> V:
        for one, value in zip(self._keys, self._values):
            if one == key:
                return value
        raise missing(key)

    def group_by(self, by: Any = None, into: Any = None, /, *more: Any, **named: Any) -> dict[Any, Any]:
        """As of every selection."""
        if more or named or not callable(into):
            return super().group_by(by, into, *more, **named)  # which refuses it
        name_of = _of_pair(self._following().group(by))
        groups: dict[Any, list[tuple[K, V]]] = {}
        for pair in self:
            groups.setdefault(name_of(pair), []).append(pair)
        return {name: _answer(into(Group(self._table, *map(list, zip(*rows))))) for name, rows in groups.items()}

    def _delete_range(self) -> int:
        from .changing import delete

        return delete(self)

    def _page(self, give: Give, size: int, after: Optional[str]) -> Any:
        raise TypeError("page() of a group: ask for pages of the table, by where()")

    def _explained(self, give: Give, shown: str) -> Plan:
        query = self._query
        order = None if query.order is None else f"{spelled(query.order.node)}: sorted in memory"
        keep = tuple([spelled(one.node) for one in query.where])
        return Plan(read=(f"{len(self._keys):,} records of a group, in memory",), keep=keep, order=order)


_GIVERS: dict[Any, Callable[[tuple[Any, Any]], Any]] = {
    PAIRS: lambda pair: pair,
    KEYS: lambda pair: pair[0],
    VALUES: lambda pair: pair[1],
}


def _direct(followed: Followed) -> Callable[..., Any]:
    """The function itself where nothing that it captured can change meanwhile: that takes a fraction of the time."""
    return followed.function if len(followed.parameters) == 1 and not followed.reading.condition else followed


def _of_pair(followed: Followed) -> Callable[[tuple[Any, Any]], Any]:
    """*followed* as a function of a pair of key and value."""
    asked = _direct(followed)
    if followed.keyed:
        return lambda pair: asked(*pair)
    return lambda pair: asked(pair[1])
