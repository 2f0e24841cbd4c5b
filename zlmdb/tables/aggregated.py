"""`group_by` with aggregates only: they are computed while the rows are read, and no row is kept.

``into`` is called with an object that knows nothing of a group but what was computed beforehand. To find out what that
has to be, it is called once with invented numbers. That is done only with functions that can do nothing else than ask
for aggregates and put them together; see `asks_only`. If it asks for something else for some group, the groups are made
of rows, as for all other functions.
"""

from __future__ import annotations

import dis
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial, partialmethod
from itertools import chain
from operator import itemgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, Optional, TypeVar

from ..namedtuples import NamedTuple
from ..query.following import Followed
from ..query.following.captured import counts_by_identity
from ..query.following.code import understood
from ..query.inorder import KEYS
from ..query.ordering import refuse_unordered
from ..query.projection import HITS
from ..query.sums import Sum
from ..values.base import is_a
from .foundrows import few_rows

if TYPE_CHECKING:
    from .selection import Selection

R = TypeVar("R")

_NAMES = frozenset(("count", "fields", "max", "mean", "min", "sum", "where"))
_PLAIN = (int, float, str, bytes, bool, type(None))
_HARMLESS = ("LOAD_", "LOOKUP_METHOD", "BINARY_", "BUILD_", "COMPARE_", "CALL", "PRECALL", "RETURN_", "UNARY_")
_OTHERS = frozenset((
    "CACHE", "CONTAINS_OP", "CONVERT_VALUE", "COPY_FREE_VARS", "EXTENDED_ARG", "FORMAT_SIMPLE", "FORMAT_VALUE",
    "FORMAT_WITH_SPEC", "IS_OP", "KW_NAMES", "MAKE_CELL", "MAKE_FUNCTION", "NOP", "PUSH_NULL", "RESUME",
    "SET_FUNCTION_ATTRIBUTE",
))  # fmt: skip
_STRANGE = ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_NAME", "LOAD_BUILD_CLASS", "LOAD_FROM_DICT_OR_DEREF")
_COMPUTING = ("BINARY_", "COMPARE_", "CONTAINS_", "IS_", "UNARY_")
_FEW_EACH = 16
"""Rows of a group that are put together with others first: to add them up takes longer than they do."""


class NeedsRowsError(BaseException):
    """The function asks for more of a group than aggregates. No `except Exception` of it catches this."""


class _Aggregate(NamedTuple):
    """One number of a group: *kind* of what *give* gives of the records for which *where* is true."""

    kind: str
    where: tuple[Followed, ...]
    give: Optional[Followed]

    def key(self) -> Any:
        """The same for two that are the same. Raises `NeedsRowsError` if it cannot be known."""
        found: list[Any] = [self.kind, len(self.where)]
        functions = (*self.where, *([] if self.give is None else [self.give]))
        if any([followed.node.risky for followed in functions[1:]]):  # it must not be asked of all records
            raise NeedsRowsError
        for followed in functions:
            found.append(followed.reading)
            for value in followed.parameters[1:]:
                kind: type[Any] = value.__class__
                if kind in _PLAIN:
                    found.append((kind, value))
                elif counts_by_identity(value) or kind is FunctionType or is_of_tables(kind):  # it is what it is
                    found.append((kind, id(value)))
                else:
                    raise NeedsRowsError
        return tuple(found)


def aggregated(selection: Selection[Any, Any], by: Followed, into: Callable[[Any], R]) -> Optional[dict[Any, R]]:
    """What *into* gives for each group; None if that takes the rows of the groups."""
    if not asks_only(into):
        return None
    asked: dict[Any, _Aggregate] = {}
    example: Any = None
    try:
        example = into(_Asking(selection, partial(_noted, asked)))
    except NeedsRowsError:
        return None
    except Exception:  # of invented numbers; those that are asked for behind it are not known
        pass
    groups = _summed(selection, by, list(asked.values()))
    pick = _picked(into.__code__, example)
    if pick is not None:
        return {name: pick(found) for name, found in groups}
    try:
        return {
            name: _plain(into(_Asking(selection, partial(_known, dict(zip(asked, found)))))) for name, found in groups
        }
    except NeedsRowsError:
        return None


def _picked(code: CodeType, example: Any) -> Optional[Callable[[Sequence[Any]], Any]]:
    """A function that gives what *code* does with the numbers of a group; None if that is not certain by an *example*.

    It is, if it gives one of them or a tuple of them, and does nothing with any. To call it takes longer.
    """
    if not _only_collects(code):
        return None
    if type(example) is _Invented:
        return itemgetter(example.place)
    parts: tuple[Any, ...] = example if is_a(example, tuple) else ()
    if not parts or any([type(one) is not _Invented for one in parts]):
        return None
    places = [one.place for one in parts]
    return itemgetter(*places) if len(places) > 1 else lambda found: (found[places[0]],)


def _plain(found: Any) -> Any:
    """*found*, unless a part of it is a group or its rows, which may be asked for anything later."""
    if is_a(found, (tuple, list, set)):
        for one in found:
            _plain(one)
    elif is_a(found, dict):
        for pair in found.items():
            _plain(pair)
    elif isinstance(found, _Asking) or isinstance(getattr(found, "__self__", None), _Asking):
        raise NeedsRowsError
    return found


def _summed(
    selection: Selection[Any, Any], by: Followed, asked: list[_Aggregate]
) -> Iterator[tuple[Any, Sequence[Any]]]:
    """Each group with its aggregates."""
    if not any([one.where for one in asked]):
        wanted = [one.give for one in asked if one.give is not None]
        different = selection._running(ordered=False).different(by, wanted)
        told = None if different is None else different.numbers([(one.kind, one.give) for one in asked])
        if told is not None:
            yield from told
            return
    counts = _counts(selection, by) if all([one.kind == "count" and not one.where for one in asked]) else None
    if counts is not None:
        for name, count in counts.items():
            yield name, [count] * len(asked)
        return
    gives: list[Followed] = []
    for one in asked:
        gives.extend(followed for followed in (*one.where, one.give) if followed is not None)
    sums: dict[Any, list[_Running]] = {}
    rows: list[Any] = gives or [HITS]
    kinds = [_columns(one, gives) for one in asked]
    few = _few_rows(selection, by, rows)
    for chunks in _collected(selection._running_all().groups(by, rows)) if few is None else few:
        for name, chunk in chunks.items():
            kept = sums.get(name)
            if kept is None:
                kept = sums[name] = [_Running(*kind) for kind in kinds]
            columns = [(), chunk] if len(rows) == 1 else list(zip(*chunk))
            for running in kept:
                running.add(columns, len(chunk))
    for name in list(sums):
        yield name, [running.found() for running in sums.pop(name)]


def _counts(selection: Selection[Any, Any], by: Followed) -> Optional[Counter[Any]]:
    """How many records there are of each group; None of a selection with an order or a limit."""
    query = selection._query
    if query.order is not None or query.skip or selection._limit is not None:
        return None
    found: Counter[Any] = Counter()
    few = few_rows(selection, by)
    for rows in selection._running_all().lists(by) if few is None else (few,):
        found.update(rows)
    return found


def _collected(groups: Iterable[dict[Any, list[Any]]]) -> Iterator[dict[Any, list[Any]]]:
    """*groups* of many rows each: those of a few rows are put together, up to `KEYS` rows."""
    kept: dict[Any, list[Any]] = {}
    rows = 0
    for chunks in groups:
        count = sum(map(len, chunks.values()))
        if not kept and len(chunks) * _FEW_EACH < count:
            yield chunks
            continue
        for name, chunk in chunks.items():
            known = kept.get(name)
            if known is None:
                kept[name] = chunk
            else:
                known += chunk
        rows += count
        if rows >= KEYS:
            yield kept
            kept, rows = {}, 0
    yield kept


def _few_rows(
    selection: Selection[Any, Any], by: Followed, gives: Sequence[Any]
) -> Optional[list[dict[Any, list[Any]]]]:  # fmt: skip
    """As `groups` of what runs the query, if it is known from before how an index finds the records, and few."""
    lists: list[list[Any]] = []
    if selection._query.order is not None or selection._limit is not None:
        return None
    for give in (by, *gives):
        rows = few_rows(selection, give)
        if rows is None:
            return None
        lists.append(rows)
    groups: dict[Any, list[Any]] = {}
    for row in zip(*lists):
        groups.setdefault(row[0], []).append(row[1] if len(gives) == 1 else row)
    return [groups]


class _Running:
    """An aggregate of one group, of the rows so far: *kind* of a column, of the rows for which other ones are true."""

    __slots__ = ("_best", "_count", "_kind", "_sum", "_value", "_where")

    def __init__(self, kind: str, where: list[int], value: Optional[int]) -> None:
        self._kind, self._where, self._value = kind, where, value
        self._count = 0
        self._sum = Sum() if kind in ("sum", "mean") else None
        self._best: Any = None

    def add(self, columns: list[Any], count: int) -> None:
        """Add rows, given as columns."""
        try:
            self._add(columns, count)
        except TypeError as error:
            refuse_unordered(error, self._kind)
            raise

    def _add(self, columns: list[Any], count: int) -> None:
        values: Any = () if self._value is None else columns[self._value]
        if self._where:
            matches = [all(row) for row in zip(*[columns[number] for number in self._where])]
            values = [value for value, match in zip(values, matches) if match]
            count = sum(matches)
        if self._sum is not None:
            self._sum.add(values)
        elif self._kind != "count" and values:
            best = min if self._kind == "min" else max
            if self._count:  # it goes on from what it had: of NaN it matters what comes before it
                self._best = best(chain((self._best,), values))
            else:
                self._best = values[0] if len(values) == 1 else best(values)
        self._count += count

    def found(self) -> Any:
        """What it comes to."""
        if self._kind == "count":
            return self._count
        if self._sum is None:
            return self._best
        if self._kind == "sum":
            return self._sum.total()
        return self._sum.total() / self._count if self._count else None


def _columns(aggregate: _Aggregate, gives: list[Followed]) -> tuple[str, list[int], Optional[int]]:
    """The arguments of `_Running` for *aggregate*: the numbers of its functions among *gives*, from 1 on."""
    numbers = {id(followed): number for number, followed in enumerate(gives, 1)}
    where = [numbers[id(followed)] for followed in aggregate.where]
    return aggregate.kind, where, None if aggregate.give is None else numbers[id(aggregate.give)]


class _Invented(int):
    """An invented number for one of the aggregates, which are in order."""

    place = 0


def _noted(asked: dict[Any, _Aggregate], aggregate: _Aggregate) -> int:
    """An invented number for *aggregate*, which is noted in *asked*."""
    key = aggregate.key()
    asked.setdefault(key, aggregate)
    number = _Invented(1)
    number.place = list(asked).index(key)
    return number


def _known(values: dict[Any, Any], aggregate: _Aggregate) -> Any:
    """What *aggregate* came to."""
    key = aggregate.key()
    if key not in values:
        raise NeedsRowsError
    return values[key]


class _Asking:
    """A group as *into* sees it, of which only aggregates can be asked, and *answer* gives; and its `fields`."""

    __slots__ = ("_answer", "_give", "_selection", "_where")

    def __init__(
        self, selection: Selection[Any, Any], answer: Callable[[_Aggregate], Any], where: tuple[Followed, ...] = (),
        give: Optional[Followed] = None,
    ) -> None:  # fmt: skip
        self._selection, self._answer, self._where, self._give = selection, answer, where, give

    def where(self, matches: Any = None, /, *more: Any, **named: Any) -> _Asking:
        """As of a selection."""
        if self._give is not None or matches is None or more or named:
            raise NeedsRowsError  # which says what is wrong
        following = self._selection._following()
        following.condition(matches)  # raises for mistakes
        return _Asking(self._selection, self._answer, (*self._where, following.value(matches)))

    def fields(self, give: Any = None, /, *more: Any, **named: Any) -> _Asking:
        """As of a selection."""
        if self._give is not None or give is None or more or named:
            raise NeedsRowsError
        return _Asking(self._selection, self._answer, self._where, self._selection._following().value(give))

    def count(self, *given: Any, **named: Any) -> Any:
        """As of a selection."""
        if given or named:
            raise NeedsRowsError
        return self._answer(_Aggregate("count", self._where, None))

    def _of_rows(self, kind: str, *given: Any, **named: Any) -> Any:
        if self._give is None or given or named:
            raise NeedsRowsError
        return self._answer(_Aggregate(kind, self._where, self._give))

    sum = partialmethod(_of_rows, "sum")
    mean = partialmethod(_of_rows, "mean")
    min = partialmethod(_of_rows, "min")
    max = partialmethod(_of_rows, "max")

    def _refuse(self, *args: Any) -> NoReturn:
        raise NeedsRowsError

    __bool__ = __eq__ = __ne__ = __hash__ = __iter__ = __contains__ = _refuse
    __repr__ = __str__ = __format__ = __len__ = __getitem__ = _refuse


def is_of_tables(kind: type[Any]) -> bool:
    """Whether a value of *kind* is a table or has tables, in which links are looked up."""
    return hasattr(kind, "_query_table") or hasattr(kind, "_query_types")


@lru_cache(maxsize=256)
def _only_collects(code: CodeType) -> bool:
    """Whether *code*, of a function that `asks_only`, does nothing with what it gets but to put it together."""
    return not any([one.opname.startswith(_COMPUTING) for one in dis.get_instructions(code)])


def asks_only(into: Any) -> bool:
    """Whether *into* can only ask its argument for aggregates, and put together what it gets.

    Then it does not matter how often it is called. Functions that are not known to be such are not taken for them.
    """
    if type(into) is not FunctionType or into.__defaults__ or into.__kwdefaults__ or not understood():
        return False
    return _asks_only(into.__code__)


@lru_cache(maxsize=256)
def _asks_only(code: CodeType) -> bool:
    if code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & 0x2AC:  # *args, **kwargs, generators
        return False
    if not _NAMES.issuperset(code.co_names):
        return False
    for one in dis.get_instructions(code):
        known = one.opname in _OTHERS or one.opname.startswith(_HARMLESS)
        # Without jumps all that is asked for is asked for of every group. A variable of the function around may be
        # anything, and be called: it may go into inner functions only.
        if not known or one.opname in _STRANGE:
            return False
    return True
