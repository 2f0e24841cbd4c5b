"""How a query runs: what `query` knows of functions and plans, put together with the ranges of tables and indexes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Optional

from ... import errors
from ...handlers import let_through
from ...namedtuples import NamedTuple
from ...query.accesses import Access, IndexFacts, ordered_by
from ...query.cursors import Position
from ...query.following import Followed
from ...query.following.linked import TableTypes
from ...query.following.nodes import Called
from ...query.forms import BLOCK, GROUPED, LISTED, ROWS, Form
from ...query.ordering import best_of, bounded, checked, first_of, sliced
from ...query.plan import SHARE, Choice, Kept, Question, choose
from ...query.prepared import Prepared
from ...query.programs import Programs
from ...query.recordpaths import needed
from ...query.terms import CAP, Asking, Subject
from ...query.translated import Give, translated, want_of, with_sort_key
from ..indexstorage import IndexStorage
from ..scan import or_else, while_open
from ..storage import Storage
from .accessreads import AccessReads
from .cachedplans import cached_plan_of
from .cachedscans import scanned_lists
from .covered import FIRST_BLOCK, Cover, Covered, Uncolumned, cover_of
from .indexfacts import index_facts, key_facts, key_field_facts
from .keylookups import PickedScan, StagedScan, most_of, total_of
from .linkedloops import rows_in_loop
from .orderscans import TOTAL, can_try, order_scan, partly_ordered, sorted_within, unless_few_fit
from .queryfailures import failed

if TYPE_CHECKING:
    from ..selection import Selection
    from .different import Different
    from .semijoins import SemiJoins

_second = itemgetter(1)


class Known(NamedTuple):
    """What the planner knows of a *state* of the indexes of a table. It is replaced as a whole.

    *facts* of the indexes, the key among them, the *accesses* that these offer to conditions, and *choices* that depend
    on no values.
    """

    state: Any  # an `IndexState`
    facts: Sequence[IndexFacts]
    accesses: Kept
    choices: dict[Any, Access]
    cached: dict[Any, Any]  # cached plans, by the readings of functions


def programs_of(storage: Storage[Any, Any]) -> Programs:
    """What is compiled for the table of *storage*."""
    programs = storage.generated.programs
    if programs is None:
        programs = Programs(storage)
        programs.running, programs.cached_plan = Running, cached_plan_of
        storage.generated.programs = programs  # when it is whole: an interrupt may come in between
    return programs


def types_of(storage: Storage[Any, Any]) -> TableTypes:
    """What queries of other tables know of the table of *storage*."""
    following = programs_of(storage).following
    return TableTypes(
        following.value_type, following.key_type, {index.name: index.unique for index in storage.indexes}
    )  # fmt: skip


class Running:
    """One run of the query of a selection: which records are read, what is asked of them, and in which order."""

    def __init__(self, selection: Selection[Any, Any], *, ordered: bool = True) -> None:
        self.selection = selection
        self.table = selection._table
        self.storage: Storage[Any, Any] = self.table._storage
        self.query = query = selection._query
        self.programs = programs_of(self.storage)
        self.order = query.order if ordered else None
        self.where: Sequence[Followed] = query.where  # what is asked of records: see `semijoins`
        self.joins: Optional[SemiJoins] = None
        self.explaining = False
        self.at_once = False  # nothing changes while it runs, in a write transaction either
        self.still = False  # the same, and no function is called, which could change something
        self.every = False  # all rows are wanted, and before the program continues
        self.picking = False  # in a loop that may write: what other tables tell only says where to look
        self.beside: Collection[Optional[bytes]] = ()  # the keyspaces that this depends on
        self.reads = AccessReads(self.table)
        self._begin: Optional[Position] = None  # from which on rows are wanted
        self._functions = query.where if self.order is None else (*query.where, self.order)
        for followed in self._functions:
            if followed.reading.to_check > 0:
                self.settle(followed)

    def settle(self, followed: Followed) -> None:
        """Compare what following a new function gave with what the function gives, of the first records."""
        reading = followed.reading
        if reading.to_check <= 0 or isinstance(followed.node, Called):
            return
        table = self.table
        try:
            for key, value in table.select(limit=reading.to_check):
                try:
                    followed(*((key, value) if followed.keyed else (value,)))
                except Exception as error:  # the query may never come to this record
                    let_through(error)
        except errors.Error as error:  # a record that is broken: reading it raises
            let_through(error)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def rows(self, *gives: Give, one: bool = True) -> Iterator[Any]:
        """What *gives* say of each record, in order, skipped and limited as asked."""
        if self.order is None:
            last = self._asked_last(gives, one) if self.query.skip else None
            if last is not None:
                return last
            if self.table._txn._write and not self.at_once and any([one.reading.links for one in self.query.where]):
                return rows_in_loop(self, gives, one)
            return self._rows(gives, one, None)
        limit, choice, write = self.selection._limit, None, self.table._txn._write
        still = not write or (self.at_once and all([one.reading.complete for one in self.asked(gives)]))
        if limit is not None and still and self.table._steady:
            from .firstfew import few, linked_order  # late: not all programs sort

            linked = linked_order(self)
            choice = self.choice() if linked is None and not write else None
            if linked is not None or (choice and choice.order is None and self.query.skip + limit <= CAP):
                return while_open(self.table, partial(few, self, choice, linked, gives, one))
        last = self._asked_last(gives, one) if limit is not None or self.query.skip else None
        if last is not None:
            return last
        rows = map(_second, self._rows(gives, one, None, choice))
        return rows if self.at_once else while_open(self.table, lambda: rows)

    def _asked_last(self, gives: Sequence[Give], one: bool) -> Optional[Iterator[Any]]:
        from .firstfew import asked_last  # late, as above

        return asked_last(self, gives, one)

    def groups(self, by: Give, gives: Sequence[Give]) -> Iterator[dict[Any, list[Any]]]:
        """What *gives* say of each record, by what *by* says of it: dicts of many records each.

        There are lists of what the only one of *gives* gives, or of tuples of something and of what all of them give.
        """
        if self.order is None and not self.query.skip and self.selection._limit is None:
            self.every = True
            yield from self._rows((by, *gives), False, None, form=GROUPED)
            return
        rows = self.rows(by, *gives, one=False)
        while block := list(islice(rows, BLOCK)):
            groups: dict[Any, list[Any]] = {}
            for row in block:
                groups.setdefault(row[0], []).append(row[1] if len(gives) == 1 else row)
            yield groups

    def lists(self, give: Give) -> Iterator[list[Any]]:
        """As `rows`, without an order and a limit: lists of many rows each."""
        self.every = True
        return self._rows((give,), True, None, form=LISTED)

    def different(self, give: Give, more: Sequence[Followed] = ()) -> Optional[Different]:
        """What tells the different things that *give* says, and what *more* says of these; None if no index does."""
        from .different import different  # late: few programs ask for them

        return different(self.selection, give, more)

    def rows_behind(
        self, gives: Sequence[Give], behind: Callable[[tuple[Any, Any]], bool], begin: Optional[Position]
    ) -> Iterator[tuple[Any, Any]]:  # fmt: skip
        """The sort key and what *gives* say of each record for which *behind*, asked of both, is true.

        It is true of none that comes before *begin*, if that is given.
        """
        self._begin = begin
        return self._rows(gives, False, behind)

    def _rows(
        self, gives: Sequence[Give], one: bool, behind: Optional[Callable[[tuple[Any, Any]], bool]],
        choice: Optional[Choice] = None, form: Form = ROWS,
    ) -> Iterator[Any]:  # fmt: skip
        """The rows, with an order each beside its sort key."""
        for give in gives:
            if isinstance(give, Followed):
                self.settle(give)
        skip, limit = self.query.skip, self.selection._limit
        functions = self.asked(gives)
        self.still = self.at_once and all([one.reading.complete for one in functions])
        choice = choice or self.choice(soon=self.order is None and not self.every)
        if self._is_staged(choice):
            return sliced(self._staged(gives, one), skip, limit)
        functions = self.asked(gives)
        prepared = self.prepared(functions, gives, one)
        scan_of = self._scan_of(choice) if choice.order is None else order_scan(self, choice.order, self._begin)
        many = self._many_rows(choice, prepared, functions, gives, one, form)
        if many is not None:
            rows = or_else(many, partial(self._loop, prepared, functions, scan_of, form), flat=form is ROWS)
            rows = while_open(self.table, partial(iter, rows)) if form is ROWS and self.order is None else rows
        elif limit is not None and choice.order is None and behind is None and bounded(self.order, skip + limit):
            return self._best(prepared, functions, scan_of, skip, skip + limit)
        else:
            rows = self._loop(prepared, functions, scan_of, form)
        return sliced(rows, skip, limit) if self.order is None else self._in_order(rows, choice, behind)

    def _in_order(
        self, loop: Iterator[Any], choice: Choice, behind: Optional[Callable[[tuple[Any, Any]], bool]]
    ) -> Iterator[Any]:  # fmt: skip
        """The rows that *loop* gives, which come with a sort key each, in order, skipped and limited as asked."""
        skip, limit = self.query.skip, self.selection._limit
        stop = None if limit is None else skip + limit
        rows = loop if behind is None else filter(behind, loop)
        if choice.order is None:
            return self._sorted(rows, skip, stop)
        if choice.parts:
            rows = sorted_within(rows, choice.parts, stop, backwards=self.query.backwards)
        rows = sliced(rows, skip, limit)
        if not self.table._txn._write:
            return rows
        found = list(rows)
        if isinstance(loop, GeneratorType):
            loop.close()  # with its cursors, before anything is written: the garbage collector may do it later
        return iter(found)

    def _many_rows(
        self, choice: Choice, prepared: Prepared, functions: Sequence[Followed], gives: Sequence[Give], one: bool,
        form: Form,
    ) -> Optional[Iterator[Any]]:  # fmt: skip
        """The rows of many entries or records at a time, by one generated function; None if they come one by one."""
        covered = self.covered(choice, prepared, functions, gives)
        if covered is not None:
            first = FIRST_BLOCK if form is ROWS else BLOCK
            return covered.rows(self.prepared(functions, gives, one, self.uncolumned()), functions, form, first)
        if not form.listed:
            return None
        if not choice.accesses:
            return scanned_lists(self, prepared, functions)
        if self.joins is None:
            return None
        from .pickedlists import lists  # late: few programs follow links

        return lists(self, choice, functions, gives)

    def asked(self, gives: Sequence[Give]) -> list[Followed]:
        """The functions that are asked of records."""
        given = [give for give in gives if isinstance(give, Followed)]
        return [*self.where, *([] if self.order is None else [self.order]), *given]

    def _is_staged(self, choice: Choice) -> bool:
        """Whether reading another table as a whole may pay, but not before some rows have been wanted."""
        joins = self.joins
        pending = joins is not None and joins.pending > 0 and not self.every
        return pending and self.order is None and not choice.accesses and self.selection._is_all()

    def _staged(self, gives: Sequence[Give], one: bool) -> Iterator[Any]:
        """The rows: the first ones by looking up what records refer to, the others by what other tables give."""
        selection, joins = self.selection, self.joins
        from .linkscans import LEAST  # late: few programs follow links

        if joins is None:
            return
        for few in (LEAST, joins.pending // SHARE - LEAST):  # the first row should not wait for the keys of many
            keys = selection._record_keys(few + 1) if few > 0 else [b""]
            if len(keys) <= few:
                yield from self._within(selection, gives, one)
                return
            if few <= 0:
                break
            last = keys[few - 1]
            if selection._reverse:
                first, selection = selection._with(lower=last), selection._with(upper=last)
            else:
                first, selection = selection._with(upper=last + b"\0"), selection._with(lower=last + b"\0")
            yield from self._within(first, gives, one)
        self.where = joins.conditions(self, scan=True)
        yield from self._within(selection, gives, one)

    def _within(self, selection: Selection[Any, Any], gives: Sequence[Give], one: bool) -> Iterator[Any]:
        """The rows of the records in the range of *selection*."""
        functions = self.asked(gives)
        return self._loop(self.prepared(functions, gives, one), functions, selection._scan, ROWS)

    def covered(
        self, choice: Choice, prepared: Prepared, functions: Sequence[Followed], gives: Sequence[Give]
    ) -> Optional[Covered]:  # fmt: skip
        """The entries to read in place of records, if they are enough."""
        fields, txn = prepared.needs, self.table._txn
        if (fields is None and self.programs.columns is None) or txn._write or txn.buffers:
            return None
        access = choice.order or (choice.accesses[0] if len(choice.accesses) == 1 else None)
        bound = None if access is None else self.reads.bound(access)
        if access is None or bound is None or access.ties or choice.many:
            return None
        if fields is None and bound.storage.carries:  # the values are of a format that is read by single fields
            fields = needed(functions, gives)
        if fields is None:
            return None
        cover = self.cover_of(access)
        if cover is None or not fields <= cover.fields:
            return None
        selection, ordered = self.selection, choice.order is not None
        reverse = self.query.backwards is not access.flipped if ordered else self._direction()
        ranges, within = self.reads.ranges(access), (selection._lower, selection._upper)
        return Covered(self.table, bound, ranges, ordered, reverse, *within, cover, fields)

    def cover_of(self, access: Access) -> Optional[Cover]:
        """How the entries of the index of *access* stand in for records; None if they cannot."""
        bound: Any = self.reads.bound(access)
        kept, key = self.programs.kept, (bound.storage, "cover")
        if key not in kept:
            kept[key] = cover_of(bound.storage, access.facts, self.storage, self.programs.following)
        return kept[key]

    def uncolumned(self) -> Programs:
        """The programs for objects with fields in place of records."""
        kept = self.programs.kept
        if "uncolumned" not in kept:
            kept["uncolumned"] = Uncolumned(self.programs)
        return kept["uncolumned"]

    def prepared(
        self, functions: Sequence[Followed], gives: Sequence[Give], one: bool, programs: Optional[Programs] = None
    ) -> Prepared:  # fmt: skip
        """The loop for *functions*, those of *gives* among them, and what it needs."""
        if programs is None:
            programs = self.programs
        key: Any = None
        if all([followed.reading.trusted for followed in functions]):
            fixed = [None if isinstance(give, Followed) else give for give in gives]
            key = (one, self.order is None, *fixed, *[followed.reading for followed in functions])
            found: Optional[Prepared] = programs.prepared.get(key)
            renewed = None if found is None else found.renewed(functions)
            if renewed is not None:
                return renewed
        want = want_of(tuple(gives), programs, one=one)
        if self.order is not None:
            want = with_sort_key(self.order, want, programs)
        conditions, asked = translated(self.where, programs)
        found = Prepared(functions, conditions, asked, want, programs)
        if key is not None and found.renewable:
            if programs.columns is None:
                found.needs = needed(functions, gives)
            programs.keep(key, found)
        return found

    def _sorted(self, pairs: Iterator[tuple[Any, Any]], skip: int, stop: Optional[int]) -> Iterator[Any]:
        """Rows that come with a sort key, sorted. Nothing is read before the first is asked for."""
        if not self._surely_ordered():
            pairs = checked(pairs)
        yield from islice(first_of(pairs, stop, backwards=self.query.backwards), skip, stop)

    def _best(
        self, prepared: Prepared, functions: Sequence[Followed], scan_of: Any, skip: int, stop: int
    ) -> Iterator[Any]:  # fmt: skip
        """As `_sorted`: the loop passes over the records that come behind those that are kept."""
        backwards, unsure = self.query.backwards, not self._surely_ordered()
        late = prepared.late and not (self.table._txn._write or self.table._txn.buffers or isinstance(scan_of, partial))
        bound: list[Any] = [None]
        rows = self._loop(prepared, functions, scan_of, Form("<" if backwards else ">", unsure, late), bound)
        if unsure:
            rows = checked(rows)
        yield from islice(best_of(rows, stop, backwards=backwards, bound=bound), skip, stop)

    def _surely_ordered(self) -> bool:
        order = self.order
        return order is not None and order.node.known.cls in TOTAL and not order.node.known.optional

    def _loop(
        self, prepared: Prepared, functions: Sequence[Followed], scan_of: Any, form: Form = ROWS, *more: Any
    ) -> Iterator[Any]:  # fmt: skip
        txn, storage = self.table._txn, self.storage
        # In a read transaction an error finds the record by itself, where a cursor stands at it.
        keyed = (prepared.keyed and not form.late) or txn._write or isinstance(scan_of, partial)
        on_failure = partial(failed, self.selection, functions, prepared)
        loop = prepared.loop(keyed, txn.buffers, form)
        still = self.at_once and all([one.reading.complete for one in functions])
        return loop(scan_of, storage.load, storage.load_key, on_failure, *prepared.arguments(functions, still), *more)

    # -- the plan -----------------------------------------------------------------------------------------------------

    def choice(self, *, soon: bool = False) -> Choice:
        """The indexes to use; *soon*: the caller may want a few rows only, so not all entries are counted."""
        selection, query = self.selection, self.query
        if not selection._plain or not self._functions:
            return Choice()
        known = self.known()
        indexes = known.facts
        key = tuple([followed.reading for followed in query.where]) if self.order is None else ()
        access: Optional[Access] = known.choices.get(key)
        if access is not None and all([reading.trusted for reading in key]):
            access = access.renewed(query.where)
            if access is not None and self.reads.measure(access, 0) is not None:
                return Choice((access,))
        order: Optional[tuple[Subject, ...]] = None
        if self.order is not None and not selection._reverse and selection._is_all():
            order = ordered_by(self.order.node, self.order.keyed)
        if not indexes:
            return Choice()
        joins = self._semi_joins()
        limit = None if selection._limit is None else selection._limit + query.skip
        kept = known.accesses if joins is None else None  # what is linked may be another one each time
        question = Question(
            self._askings(), indexes, total_of(self.table), order, limit, kept, tied=limit is not None,
            tried=limit is not None and can_try(self), soon=soon, hasty=not self.explaining,
        )  # fmt: skip
        choice = unless_few_fit(self, choose(question, self.reads.measure), question)
        if limit is not None and choice.order is None:
            choice = partly_ordered(self, choice, order or (), question) or choice
        used = choice.accesses or choice.order
        every = (self.every or self.order is not None) and not self.explaining
        if joins is not None and joins.pending and every and not used and selection._is_all():
            self.where = joins.conditions(self, scan=True)
            choice = choose(Question(self._askings(), indexes, total_of(self.table), order, limit), self.reads.measure)
        # The only record of a key: no other values make another index better, unless it is partial.
        if key and joins is None and [(one.rank, one.facts.where) for one in choice.accesses] == [(0, ())]:
            known.choices[key] = choice.accesses[0]
        return choice

    def _askings(self) -> list[Asking]:
        still = self.still
        return [Asking(one.node, one.parameters, one.keyed, number=n, still=still) for n, one in enumerate(self.where)]

    def _semi_joins(self) -> Optional[SemiJoins]:
        """What serves conditions on linked records."""
        if not any([one.reading.links for one in self.query.where]):
            return None
        from .semijoins import SemiJoins  # late: few programs follow links

        found = self.joins = SemiJoins()
        self.where = found.conditions(self)
        return found

    def known(self) -> Known:
        """What is known of the indexes that the table has in this transaction."""
        state = self.table._index_state
        known: Optional[Known] = self.programs.known
        if known is None or known.state != state:
            found = [self._facts_of(bound.storage) for bound in state.kept if not bound.storage.building]
            found += (self._facts_of(None), key_field_facts(self.storage, self.programs.following))
            known = self.programs.known = Known(state, [one for one in found if one is not None], {}, {}, {})
        return known

    def _facts_of(self, index: Optional[IndexStorage]) -> Optional[IndexFacts]:
        kept = self.programs.kept
        if index not in kept:
            storage = self.storage
            if index is not None and index.where is not None:
                self.settle(index.where)
            kept[index] = key_facts(storage) if index is None else index_facts(index, storage, self.programs.following)
        return kept[index]

    # -- scans --------------------------------------------------------------------------------------------------------

    def _direction(self) -> bool:
        """Whether records are read backwards: also for the greatest few, of which equal ones come in that order."""
        return bool(self.selection._reverse) is not (self.order is not None and self.query.backwards)

    def _scan_of(self, choice: Choice) -> Any:
        """The function that begins to read the records."""
        selection = self.selection
        if not choice.accesses:
            if self._direction() is not bool(selection._reverse):
                return selection._with(reverse=not selection._reverse)._scan
            return selection._scan
        if len(choice.accesses) == 1 and choice.accesses[0].is_range_of_keys:
            lower, upper = self.reads.ranges(choice.accesses[0])[0]
            lower, upper = max(lower, selection._lower), min(upper, selection._upper)
            return selection._with(lower=lower, upper=upper, reverse=self._direction())._scan
        return partial(self._staged_scan if choice.many else self._picked_scan, choice.accesses)

    def _picked_scan(self, accesses: Sequence[Access]) -> PickedScan:
        selection, reads, reverse = self.selection, self.reads, self._direction()
        keys = reads.picked(accesses, selection, reverse=reverse)
        lower, upper = selection._lower, selection._upper
        if not self.table._txn._write:
            return PickedScan(self.table, keys, lower, upper, reverse=reverse)
        find, spaces = partial(reads.few, accesses, selection), reads.spaces(accesses)
        return PickedScan(
            self.table, keys, lower, upper, reverse=reverse, find=find, spaces=spaces, beside=self.beside
        )  # fmt: skip

    def _staged_scan(self, accesses: Sequence[Access]) -> StagedScan:
        selection, reads, reverse = self.selection, self.reads, self._direction()
        return StagedScan(
            self.table, reads.found(accesses), partial(reads.few, accesses, selection),
            reads.firsts(accesses, selection, reverse=reverse), selection._lower, selection._upper, most_of(self.table),
            reverse=reverse, spaces=reads.spaces(accesses), beside=self.beside,
        )  # fmt: skip
