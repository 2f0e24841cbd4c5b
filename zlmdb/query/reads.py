"""What a query gives, row by row: `Reads`, of which a selection is one, and what can be asked of rows of any kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import GeneratorType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Optional, TypeVar, Union, overload

from .. import errors
from ..missingattributes import tell
from ..shown import shortened
from .nolists import NoList, no_length, refuse_computing, refuse_given, sized
from .ordering import Ordered, refuse_unordered

if TYPE_CHECKING:
    from decimal import Decimal

    from ..tables.selection import Selection
    from .explained import Plan
    from .pages import Page
    from .translated import Give

R_co = TypeVar("R_co", covariant=True)
D = TypeVar("D")
O = TypeVar("O", bound=Ordered)  # noqa: E741 - what has an order

_OF_RECORDS = frozenset(("change", "delete", "edit", "fields", "group_by", "limit", "order_by", "select", "where"))
"""What can be done with records, and not any more with the rows that are taken of them."""
_ELSEWHERE = {
    **dict.fromkeys(("average", "avg"), ": write .mean()"),
    **dict.fromkeys(("fetchall", "to_list", "tolist"), ": write .all()"),
    "unique": ": write .distinct()",
    "nunique": ": write .distinct().count()",
    "value_counts": ": write collections.Counter(rows), or table.group_by(lambda record: ..., lambda g: g.count())",
    **dict.fromkeys(("sort", "sort_values"), ": write sorted(rows), or .order_by(lambda record: ...) before fields()"),
    **dict.fromkeys(("to_numpy", "to_series"), ": write numpy.array(rows.all()), or pandas.Series(rows.all())"),
    "quantile": ": write statistics.quantiles(rows)",
    **dict.fromkeys(("median", "mode", "quantiles", "stdev", "variance"), ": write statistics.{}(rows)"),
    **dict.fromkeys(("std", "var"), ": write statistics.stdev(rows), or .variance"),
}
"""Names that others have for what rows can do."""


def _of_rows(rows: object, name: str) -> str:
    """What to write for *name*, which *rows* do not have."""
    advice = _ELSEWHERE.get(name, "").format(name)
    if name in _OF_RECORDS:
        advice = f": rows are what was taken of records: write .{name}(...) before fields(), keys() or values()"
    return f"rows of a query have no attribute {name!r}{advice}"


def first_of(rows: Iterator[R_co], default: D) -> Union[R_co, D]:
    """The first of *rows*, whose cursor is closed then: LMDB looks at open ones whenever something is written."""
    found = next(rows, default)
    if isinstance(rows, GeneratorType):
        rows.close()
    return found


class Reads(NoList, Iterable[R_co], Generic[R_co]):
    """Rows of a query: pairs of key and value, or what `fields` gives. Each iteration reads afresh.

    Nothing is read before the iteration, which must happen inside the transaction, else `TransactionClosed`.
    """

    __slots__ = ()

    _of_records: ClassVar[bool] = False
    """Whether the rows are pairs of key and value, with which nothing is computed."""

    @abstractmethod
    def __iter__(self) -> Iterator[R_co]: ...

    @abstractmethod
    def count(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def page(self, size: int, after: Optional[str] = None) -> Page[R_co]:
        """The first *size* rows, or those behind the cursor *after*, the `Page.next` of the page before.

        Raises ValueError for a cursor of another query, TypeError after a `limit`, whose place a page takes, and for
        sort keys that a cursor cannot hold.
        """

    @abstractmethod
    def _plan(self) -> Plan:
        """How it is answered."""

    def _summed_rows(self) -> Iterator[Any]:
        """The rows, for a caller who takes them all before the program continues."""
        return iter(self)

    def _different_rows(self, *, soon: bool) -> Optional[Iterator[Any]]:
        """Each row once, if that is known without reading all; with *soon*, the first of them early."""

    def _different_number(self) -> Optional[int]:
        """How many different rows there are, as `_different_rows`."""

    def _different_plan(self) -> Plan:
        """How `_different_rows` are found, or else the rows."""
        return self._plan()

    def first(self, *given: NoReturn, **named: NoReturn) -> Optional[R_co]:
        """The first row; None when there is none."""
        if given or named:
            refuse_given("first", given, named)
        return first_of(iter(self), None)

    def last(self) -> Optional[R_co]:
        """The last row; None when there is none. It may read all rows."""
        row = None
        for row in self:  # noqa: B007
            pass
        return row

    def all(self) -> list[R_co]:
        """All rows in a list."""
        return list(self)

    def __bool__(self) -> bool:
        return first_of(iter(self), self) is not self

    if not TYPE_CHECKING:  # checkers report it by themselves
        __len__ = no_length

    def distinct(self) -> Reads[R_co]:
        """Each row once, where it comes first. Raises TypeError for rows that cannot be in a set."""
        return Distinct(self)

    @overload
    def sum(self: Reads[int]) -> int: ...
    @overload
    def sum(self: Reads[float]) -> float: ...
    @overload
    def sum(self: Reads[Decimal]) -> Decimal: ...
    def sum(self: Reads[Any], *given: NoReturn, **named: NoReturn) -> Any:
        """The sum of the rows, which are numbers; 0 without any. Floats are added in order, compensated."""
        if given or named or self._of_records:
            refuse_computing("sum", given, named)
        from .sums import total  # late: many programs sum nothing

        return self._computed("sum", total)

    def mean(self: Reads[float], *given: NoReturn, **named: NoReturn) -> Optional[float]:
        """The mean of the rows, which are numbers; None without any."""
        if given or named or self._of_records:
            refuse_computing("mean", given, named)
        from .sums import mean  # late, as above

        return self._computed("mean", mean)

    def min(self: Reads[O], *given: NoReturn, **named: NoReturn) -> Optional[O]:
        """The least row; None without any."""
        if given or named or self._of_records:
            refuse_computing("min", given, named)
        return self._extreme(min)

    def max(self: Reads[O], *given: NoReturn, **named: NoReturn) -> Optional[O]:
        """The greatest row; None without any."""
        if given or named or self._of_records:
            refuse_computing("max", given, named)
        return self._extreme(max)

    def _extreme(self, which: Callable[..., Any]) -> Any:
        """The least or the greatest row."""
        return self._computed(which.__name__, which, default=None)

    def _computed(self, method: str, compute: Callable[..., Any], **options: Any) -> Any:
        """What *compute* gives for all rows, as *method* does."""
        try:
            return compute(self._summed_rows(), **options)
        except TypeError as error:
            refuse_unordered(error, method)
            raise

    def explain(self) -> Plan:
        """How the rows are found: which index is read, what is asked of each record, what is called and why.

        ``print(reads.explain())`` shows it. Entries of indexes may be counted for it, records are not read.
        """
        return self._plan()

    def __repr__(self) -> str:
        return f"[{preview(lambda: iter(self))}]"


class SelectedRows(Reads[R_co]):
    """What is given of each record of a selection."""

    __slots__ = ("_give", "_name", "_selection")

    def __init__(self, selection: Selection[Any, Any], give: Give, name: Optional[str] = None) -> None:
        self._selection, self._give, self._name = selection, give, name

    @property
    def _shown(self) -> str:
        """What is given, for people."""
        return repr(self._give) if self._name is None else self._name

    def __iter__(self) -> Iterator[R_co]:
        return self._selection._run(self._give)

    def _summed_rows(self) -> Iterator[Any]:
        return self._selection._summed(self._give)

    def _different_rows(self, *, soon: bool) -> Optional[Iterator[Any]]:
        found = self._selection._running(ordered=False).different(self._give)
        return None if found is None else found.rows(soon=soon)

    def _different_number(self) -> Optional[int]:
        found = self._selection._running(ordered=False).different(self._give)
        return None if found is None else found.number()

    def _different_plan(self) -> Plan:
        found = self._selection._running(ordered=False).different(self._give)
        return self._plan() if found is None else found.explained(self._plan())

    def _extreme(self, which: Callable[..., Any]) -> Any:
        found = self._selection._extreme_of(self._give, which)
        return super()._extreme(which) if found is None else found[0]

    def all(self, *given: NoReturn, **named: NoReturn) -> list[R_co]:
        """All rows in a list."""
        if given or named:
            refuse_given("all", given, named)
        return self._selection._listed(self._give)

    def first(self, *given: NoReturn, **named: NoReturn) -> Optional[R_co]:
        """The first row; None when there is none."""
        if given or named:
            refuse_given("first", given, named)
        return self._selection._first_of(self._give)

    def last(self) -> Optional[R_co]:
        """The last row; None when there is none. O(log n) for a range of keys, with a limit O(limit)."""
        backwards = self._selection._backwards()
        return super().last() if backwards is None else SelectedRows[R_co](backwards, self._give, self._name).first()

    def __bool__(self) -> bool:
        return bool(self._selection)

    def count(self, *given: NoReturn, **named: NoReturn) -> int:
        """How many rows there are: as many as records, `fields` is not asked."""
        return self._selection.count(*given, **named)

    @sized
    def page(self, size: int, after: Optional[str] = None) -> Page[R_co]:
        """As of every `Reads`."""
        return self._selection._page(self._give, size, after)

    def _plan(self) -> Plan:
        return self._selection._explained(self._give, self._shown)


class Distinct(Reads[R_co]):
    """Rows of others, each once."""

    __slots__ = ("_reads",)

    def __init__(self, reads: Reads[R_co]) -> None:
        self._reads = reads

    def __iter__(self) -> Iterator[R_co]:
        return self._different(self._reads.__iter__, soon=True)

    def _summed_rows(self) -> Iterator[Any]:
        return self._different(self._reads._summed_rows, soon=False)

    def _different(self, read: Callable[[], Iterator[R_co]], *, soon: bool) -> Iterator[R_co]:
        found = self._reads._different_rows(soon=soon)
        if found is not None:
            yield from found
            return
        seen: set[Any] = set()
        for row in read():
            try:
                is_known = row in seen
            except TypeError as error:
                raise TypeError(f"distinct: {error}: give a function that returns no lists, but tuple(...)") from error
            if not is_known:
                seen.add(row)
                yield row

    def all(self) -> list[R_co]:
        """All rows in a list."""
        return list(self._summed_rows())

    def count(self) -> int:
        """How many different rows there are."""
        found = self._reads._different_number()
        return sum(1 for _ in self._summed_rows()) if found is None else found

    def page(self, size: int, after: Optional[str] = None) -> Page[R_co]:
        """Refused: a page would have to know all rows of the pages before."""
        raise TypeError(
            "page() of distinct rows would read all of them for each page: use all() and slices of the list"
        )

    def _plan(self) -> Plan:
        plan = self._reads._different_plan()
        return plan._replace(give=f"{plan.give or 'pairs of key and value'}, each once")


def preview(read: Callable[[], Iterator[Any]]) -> str:
    """The first rows, for a repr."""
    try:
        rows = [shortened(row) for row in islice(read(), 4)]
    except errors.TransactionClosed:
        return "its transaction has ended"
    return ", ".join(rows[:3] + ["..."] * (len(rows) > 3))


tell(Reads, [*_ELSEWHERE, *_OF_RECORDS], _of_rows)
