"""Many records, read lazily: what ``table.select(...)`` gives."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional, TypeVar, cast, overload

from ..namedtuples import NamedTuple
from ..query import Ordered, Reads, SelectedRows, preview
from ..query.nolists import refuse_given, sized
from ..query.projection import HITS, KEYS, PAIRS, VALUES
from ..query.reads import first_of
from ..shown import shortened
from ..store.blocks import COUNTS_REFERENCES
from .advice import tells_as_selection
from .keyrange import FAST, KeyRange, few_of, pairs_of
from .missing import check_limit, missing, refuse_after_limit, refuse_call, refuse_limit, refuse_where

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ..query.explained import Plan
    from ..query.following import Followed, Following
    from ..query.pages import Page
    from ..query.translated import Give
    from .executor.cachedplan import CachedPlan
    from .executor.execution import Running
    from .table import Table

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")
G = TypeVar("G")

_KEPT: Any = object()


class Query(NamedTuple):
    """What a selection asks beside its range: conditions, the order, and how many rows are skipped."""

    where: tuple[Followed, ...] = ()
    order: Optional[Followed] = None
    backwards: bool = False
    skip: int = 0


_AS_TUPLE: Any = cast(Any, tuple).__new__  # of a named tuple: a tenth of the time

ALL = Query()
"""What a selection asks that is nothing but its range."""


@tells_as_selection
class Selection(KeyRange[K, V], Reads[tuple[K, V]]):
    """Records of a table, or of a range of it: those that match, in an order, up to a limit.

    Made by ``table.select(...)``, an index, and by `where`, `order_by` and `limit`, which take functions of a value, or
    of a key and a value: ``t.books.where(lambda b: b.year > 1990)``. They mean what `filter`, `sorted` and slicing
    mean; fields, indexes and limits that a function names only change the time. Functions are read when they are given
    (see "How a query is read"): mistakes raise `TypeError` then. They must give the same for the same record while the
    query runs.

    Nothing is read before the iteration, and each iteration reads afresh; it must happen inside the transaction, else
    `TransactionClosed`. O(log n) to start, O(1) a record.

    An iteration comes to its end whatever its body writes. It visits every record that was there when it began, once,
    as it is when its turn comes: also one that moves within an index meanwhile. It visits none that the body inserts,
    deletes, or takes out of the range. With an order, all is read before the first row comes.

    Iterating gives pairs of key and value; `keys` reads no values, `values` decodes no keys.
    """

    __slots__ = ("_query",)
    _of_records = True

    def __init__(
        self, table: Table[K, V], lower: bytes, upper: bytes, reverse: bool = False, limit: Optional[int] = None
    ) -> None:  # fmt: skip
        """What `Table._chosen` does without this call."""
        if limit is not None and limit < 0:
            refuse_limit(limit)
        self._table, self._lower, self._upper = table, lower, upper
        self._reverse, self._limit, self._query = reverse, limit, ALL

    # -- asking -----------------------------------------------------------------------------------------------------

    @overload
    def where(self, matches: Callable[[V], bool], /) -> Selection[K, V]: ...
    @overload
    def where(self, matches: Callable[[K, V], bool], /) -> Selection[K, V]: ...
    def where(self, matches: Any = None, /, *more: Any, **fields: Any) -> Selection[K, V]:
        """Those for which *matches*, a function of the value or of key and value, is true.

        Raises TypeError at once for fields that the model class does not have, for comparisons with values that a field
        never has, and after a `limit`.
        """
        if more or fields:
            refuse_where(more, fields)
        query = self._query
        if self._limit is not None or query.skip:
            refuse_after_limit("where")
        followed = self._following().condition(matches)
        return self._with(Query((*query.where, followed), query.order, query.backwards, query.skip))

    def _asked(self, matches: Any) -> Selection[K, V]:
        """As `where`, of a new selection of all, which itself becomes the one with the condition."""
        programs = self._table._storage.generated.programs
        following = self._following() if programs is None else programs.following
        # What `Following.condition` and `Query` come to, without the calls: most queries begin here.
        self._query = _AS_TUPLE(Query, ((following._followed(matches, True),), None, False, 0))
        return self

    @overload
    def order_by(self, by: Callable[[V], Ordered], /, *, reverse: bool = False) -> Selection[K, V]: ...
    @overload
    def order_by(self, by: Callable[[K, V], Ordered], /, *, reverse: bool = False) -> Selection[K, V]: ...
    def order_by(self, by: Any = None, /, *more: Any, reverse: bool = False, **options: Any) -> Selection[K, V]:
        """Sorted by what *by*, a function of the value or of key and value, gives; equal ones stay as they were.

        *reverse* turns everything round, equal ones too; `desc` turns round a part of the sort key. Raises TypeError
        after a `limit`; values without an order raise when it is read, NaN ValueError. It replaces an earlier order.
        """
        if more or options:
            refuse_call("order_by", more, options)
        query = self._query
        if self._limit is not None or query.skip:
            refuse_after_limit("order_by")
        followed = self._following().order(by)
        return self._with(Query(query.where, followed, bool(reverse), query.skip))

    def _sorted_by(self, by: Any, reverse: bool) -> Selection[K, V]:
        """As `order_by`, of a new selection of all, which itself is sorted then."""
        self._query = Query((), self._following().order(by), bool(reverse))
        return self

    def limit(self, count: int, skip: int = 0, **options: NoReturn) -> Selection[K, V]:
        """At most *count* of them, after the first *skip*."""
        limit, query = self._limit, self._query
        if skip or options or limit is not None or count.__class__ is not int or count < 0:
            check_limit(count, skip, options)
            count = count if limit is None else min(count, max(limit - skip, 0))
            query = Query(query.where, query.order, query.backwards, query.skip + skip) if skip else query
        made = self._copy()  # what `_with` comes to, without its questions
        made._table, made._lower, made._upper = self._table, self._lower, self._upper
        made._reverse, made._limit, made._query = self._reverse, count, query
        return made

    @overload
    def fields(self, give: Callable[[V], R], /) -> Reads[R]: ...
    @overload
    def fields(self, give: Callable[[K, V], R], /) -> Reads[R]: ...
    def fields(self, give: Any = None, /, *more: Any, **options: Any) -> Reads[Any]:
        """What *give*, a function of the value or of key and value, gives of each record.

        Of FlatBuffers only the fields that it names are read: ``select().fields(lambda r: (r.id, r.price))``.
        """
        if more or options:
            refuse_call("fields", more, options)
        return SelectedRows(self, self._following()._followed(give, False))  # `Following.value`, without the call

    def _giving(self, give: Followed) -> Reads[Any]:
        """As `fields`, of a function that was read before."""
        return SelectedRows(self, give)

    @overload
    def group_by(self, by: Callable[[V], G], into: Callable[[Selection[K, V]], R], /) -> dict[G, R]: ...
    @overload
    def group_by(self, by: Callable[[K, V], G], into: Callable[[Selection[K, V]], R], /) -> dict[G, R]: ...
    def group_by(self, by: Any = None, into: Any = None, /, *more: Any, **named: Any) -> dict[Any, Any]:
        """What *into* gives for each group of records for which *by* gives the same, in the order of their first ones.

        ``group_by(lambda b: b.country, lambda g: (g.count(), g.fields(lambda b: b.price).sum()))``: *into* is given a
        selection of the group. If it asks for more than counts, sums, means and extremes, all records are in memory.
        """
        from .grouped import grouped  # late, as what compiles

        return grouped(self, by, into, *more, **named)

    def keys(self, *given: NoReturn, **named: NoReturn) -> Reads[K]:
        """The keys only; the records are not read."""
        if given or named:
            refuse_given("keys", given, named)
        return SelectedRows(self, KEYS, "keys")

    def values(self, *given: NoReturn, **named: NoReturn) -> Reads[V]:
        """The values only; the keys are not decoded."""
        if given or named:
            refuse_given("values", given, named)
        return SelectedRows(self, VALUES, "values")

    def _following(self) -> Following:
        storage = self._table._storage
        programs = storage.generated.programs
        if programs is None:
            from .executor.execution import programs_of  # late: it is longer than all else

            programs = programs_of(storage)
        return programs.following

    def _with(
        self, query: Optional[Query] = None, *, limit: Any = _KEPT, lower: Optional[bytes] = None,
        upper: Optional[bytes] = None, reverse: Optional[bool] = None,
    ) -> Selection[K, V]:  # fmt: skip
        """The same selection, but for what is given."""
        made = self._copy()
        made._table = self._table
        made._lower = self._lower if lower is None else lower
        made._upper = self._upper if upper is None else upper
        made._reverse = self._reverse if reverse is None else reverse
        made._limit = self._limit if limit is _KEPT else limit
        made._query = self._query if query is None else query
        return made

    def _copy(self) -> Selection[K, V]:
        cls: Any = Selection
        return cls.__new__(cls)

    # -- reading --------------------------------------------------------------------------------------------------

    def _run(self, give: Give) -> Iterator[Any]:
        """What *give* says of each record."""
        if self._query is ALL:
            kind = FAST.get(id(give))
            if kind is not None:
                return self._read(kind) if self._limit is None else few_of(self._read(kind), self._limit)
        if self._query.skip and (behind := self._behind_skipped()) is not None:
            return behind._run(give)
        cached = self._cached_plan(give, at_once=self._query.order is not None)  # then all is read before the first one
        return self._running().rows(give) if cached is None else cached.rows(self, give)

    def _behind_skipped(self) -> Optional[Selection[K, V]]:
        """The same records, of a range that begins behind those that are skipped; None if these have to be read."""
        from .skipping import behind_skipped  # late: few programs skip

        return behind_skipped(self)

    def _cached_plan(self, give: Give, *, at_once: bool = False) -> Optional[CachedPlan]:
        """What is known of the query from before; *at_once*: for `all`, before the program continues."""
        query = self._query
        followed: Any = give if hasattr(give, "reading") else None
        if (not query.where and query.order is None and followed is None) or (
            query.skip and followed is not None and followed.node.risky  # asked of rows that come out: see `asked_last`
        ):
            return None
        programs = self._table._storage.generated.programs
        return None if programs is None else programs.cached_plan(self, give, at_once)

    def _listed(self, give: Give) -> list[Any]:
        """What *give* says of each record, in a list."""
        if self._query.skip and (behind := self._behind_skipped()) is not None:
            return behind._listed(give)
        cached = self._cached_plan(give, at_once=True)
        rows = None if cached is None else cached.all(self, give, self._limit)
        return self._every(give) if rows is None else rows

    def _every(self, give: Give) -> list[Any]:
        """What *give* says of each record, in a list, by what is not known from before."""
        query = self._query
        limited = query.order is not None or query.skip or self._limit is not None
        if (query is ALL and id(give) in FAST) or limited or self._table._txn._write or not self._plain:
            return self._all_at_once(give)
        running = self._running_all() if self._follows_links(give) else self._running()
        return list(chain.from_iterable(running.lists(give)))

    def all(self, *given: NoReturn, **named: NoReturn) -> list[tuple[K, V]]:
        """All pairs of key and value in a list."""
        if given or named:
            refuse_given("all", given, named)
        return self._listed(PAIRS)

    def _all_at_once(self, give: Give) -> list[Any]:
        """What *give* says of each record: all of it is read before the program continues."""
        return list(self._all_rows(give) if self._follows_links(give) else self._run(give))

    def _follows_links(self, give: Give = HITS) -> bool:
        """Whether a condition asks something of linked records; in a write transaction, also the order or *give*."""
        functions: Any = (*self._query.where, *((self._query.order, give) if self._table._txn._write else ()))
        return self._plain and any([hasattr(one, "reading") and one.reading.links for one in functions])

    def _all_rows(self, *gives: Give, ordered: bool = True, one: bool = True) -> Iterator[Any]:
        """What *gives* say of each record, for a caller who takes them all before the program continues."""
        return self._running_all(ordered=ordered).rows(*gives, one=one)

    def _running_all(self, *, ordered: bool = True) -> Running:
        """What runs the query for a caller who takes all rows before the program continues."""
        running = self._running(ordered=ordered)
        running.at_once, running.every = True, self._limit is None
        return running

    def _summed(self, give: Give) -> Iterator[Any]:
        """What *give* says of each record, as `_all_rows`, for one number."""
        write, linked = self._table._txn._write, self._follows_links(give)
        cached = self._cached_plan(give, at_once=True) if write or linked else None
        rows = cached.all(self, give, self._limit) if write and cached is not None and cached.by_index else None
        found = self._all_rows if linked and (write or cached is None) else self._run
        return found(give) if rows is None else iter(rows)

    def _running(self, *, ordered: bool = True) -> Running:
        programs = self._table._storage.generated.programs
        if programs is None:
            self._following()
            programs = self._table._storage.generated.loops
        return programs.running(self, ordered=ordered)

    def __iter__(self) -> Iterator[tuple[K, V]]:
        # Without the call of `_run`, if nothing is asked.
        return self._read(pairs_of) if self._query is ALL and self._limit is None else self._run(PAIRS)

    def __getitem__(self, key: K) -> V:
        """The value of *key*, one of the selection's `keys`; with them it makes ``dict(selection)`` work.

        O(log n), with a limit as long as it takes to read the keys. Raises `KeyError` for any other key, TypeError for
        a position where keys are no numbers.
        """
        value, query = self._within(key), self._query
        if self._limit is not None or query.skip:  # only the rows themselves tell which they are
            encode = self._table._storage.encode_key
            encoded = encode(key)
            if not any(encode(one) == encoded for one in self.keys()):
                raise missing(key)
            return value
        for followed in query.where:
            if not followed(*((key, value) if followed.keyed else (value,))):
                raise missing(key)
        return value

    if not TYPE_CHECKING:  # checkers take anything

        def __contains__(self, pair: object) -> bool:
            if isinstance(pair, tuple) and len(pair) == 2 and self._is_key(pair[0]):
                return any(row == pair for row in self)
            raise TypeError(
                f"{shortened(pair)} in a selection, which has pairs of key and value: write `in selection.keys()` or "
                "`in selection.values()`"
            )

    def first(self, *given: NoReturn, **named: NoReturn) -> Optional[tuple[K, V]]:
        """The first pair of key and value; None when the selection is empty."""
        if given or named:
            refuse_given("first", given, named)
        if self._query is not ALL or self._reverse or self._limit == 0 or not self._plain:
            return cast("Optional[tuple[K, V]]", self._first_of(PAIRS))
        # What `_at_end` and what it calls come to, without the calls.
        key = data = None
        try:
            table, lower = self._table, self._lower
            cursor = table._raw.cursor(table._db)
            if cursor.set_range(lower) if lower else cursor.first():
                key = cursor.key()
                if type(key) is not bytes:  # a memoryview
                    key = bytes(key)
                if key < self._upper:
                    data = cursor.value()
            if not COUNTS_REFERENCES:
                cursor.close()
            if data is None:
                return None
            storage = table._storage
            return storage.load_key(key), storage.load(data)
        except Exception as error:
            self._failed(error, key, data)

    def _first_of(self, give: Give) -> Any:
        """What *give* says of the first record; None if there is none."""
        if self._query is ALL and (give is VALUES or give is PAIRS or give is KEYS):
            return None if self._limit == 0 else self._at_end(self._reverse, give)
        if self._limit != 0:
            cached = self._cached_plan(give, at_once=True)
            rows = None if cached is None else cached.all(self, give, 1)
            if rows is not None:
                return rows[0] if rows else None
            if self._table._txn._write and not self._query.skip:  # not as in a loop, whose body may write
                return first_of(self._with(limit=1)._running_all().rows(give), None)
        return first_of(self._first_ones()._run(give), None)

    def _first_ones(self) -> Selection[K, V]:
        """The first record of these: a sort need not keep more."""
        return self if self._query.order is None else self.limit(1)

    def last(self) -> Optional[tuple[K, V]]:
        """The last pair of key and value; None when the selection is empty. O(log n), with a limit O(limit)."""
        if self._query is ALL and self._limit is None:
            return cast("Optional[tuple[K, V]]", self._at_end(not self._reverse))
        backwards = self._backwards()
        return super().last() if backwards is None else backwards.first()

    def _backwards(self) -> Optional[Selection[K, V]]:
        """The same records in the opposite order; None with a limit, which says at which end it begins."""
        query = self._query
        if self._limit is not None or query.skip:
            return None
        if query.order is not None:
            return self._with(query=query._replace(backwards=not query.backwards))
        return self._with(reverse=not self._reverse)

    def count(self, *given: NoReturn, **named: NoReturn) -> int:
        """The number of records. O(1) for a whole table with a keyspace of its own, else it reads every key.

        With `where` it reads what the conditions name of the records that an index finds, or counts its entries alone.
        """
        if given or named:
            refuse_given("count", given, named)
        query = self._query
        if query.where:
            from .executor.counted import counted  # late, as what compiles

            if self._limit is None and (entries := counted(self)) is not None:
                return max(entries - query.skip, 0)
            found = self._hits(self._limit)
            return sum(1 for _ in self._all_rows(HITS, ordered=False)) if found is None else len(found)
        most = None if self._limit is None else self._limit + query.skip
        return max(self._counted(most) - query.skip, 0)

    def _extreme_of(self, give: Give, which: Callable[..., Any]) -> Optional[tuple[Any]]:
        """The least or the greatest of what *give* says; None if no index tells it."""
        from .executor.counted import extreme  # late, as above

        return extreme(self, give, which)

    def _hits(self, most: Optional[int]) -> Optional[list[Any]]:
        """A list of as many items as there are rows, at most *most*; None if no cached plan tells."""
        plain = self if self._query.order is None else self._with(query=self._query._replace(order=None))
        cached = plain._cached_plan(HITS, at_once=True)
        return None if cached is None else cached.all(plain, HITS, most)

    def __bool__(self) -> bool:
        query = self._query
        if query.where:
            found = [] if self._limit == 0 else self._hits(1)
            if found is not None:
                return bool(found)
            running = self._running(ordered=False)
            running.at_once = True
            return first_of(running.rows(HITS), self) is None
        if query.skip:
            return self.count() > 0
        try:
            return self._limit != 0 and self._is_any()
        except Exception as error:
            self._failed(error, None, None)

    # -- pages and plans --------------------------------------------------------------------------------------------

    @sized
    def page(self, size: int, after: Optional[str] = None) -> Page[tuple[K, V]]:
        """The first *size* pairs, or those behind the cursor *after*, the `Page.next` of the page before.

        Raises ValueError for a cursor of another query, TypeError after a `limit`, whose place a page takes, and for
        sort keys that a cursor cannot hold.
        """
        return self._page(PAIRS, size, after)

    def _page(self, give: Give, size: int, after: Optional[str]) -> Page[Any]:
        from .paging import page  # late, as above

        if self._limit is not None or self._query.skip:
            refuse_after_limit("page")
        return page(self, give, size, after)

    def _plan(self) -> Plan:
        return self._explained(PAIRS, "")

    def _explained(self, give: Give, shown: str) -> Plan:
        from .executor.explaining import plan_of  # late, as above

        return plan_of(self._running(), give, shown)

    # -- changing ---------------------------------------------------------------------------------------------------

    def edit(self) -> AbstractContextManager[Iterator[V]]:
        """A block with an iterator over the objects, each of which is stored again when its turn is over.

        ``with t.books.where(...).edit() as books: for book in books: book.price *= 0.9``. Which records these are is
        known when the block begins. After ``break`` the last object is stored, too; after an error it is not, and those
        before it are stored.
        """
        from .editing import EditedRecords  # late: few programs need it

        return EditedRecords(self)

    def change(self, how: Callable[[V], V], /) -> int:
        """Store what *how* makes of each value in its place; how many. All or none, if one is refused."""
        from .changing import change  # late, as above

        return change(self, how)

    def delete(self, *given: NoReturn, **named: NoReturn) -> int:
        """Delete the records, index entries too; the number of records deleted."""
        if given or named:
            refuse_given("delete", given, named)
        if self._query is not ALL or self._table._storage.referrers:
            from .changing import delete  # late, as above

            return delete(self)
        return self._delete_range()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._table._name!r}: [{preview(lambda: iter(self))}]>"
