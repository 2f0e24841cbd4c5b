"""What is the same for all runs of queries of the same code: the loop, and where its values come from.

Reading functions, choosing an index and finding the loop take longer than reading a record by an index. So what does
not depend on captured values is kept; see also `Question.accesses`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, Protocol

from ..handlers import let_through
from .expressionsource import Asked, arguments
from .fieldconditions import Condition, FieldCompare, compares_of
from .following import Followed
from .following.known import PLAIN
from .forms import ROWS, Form
from .loops import Captured, EntryReader, Writer
from .programs import Programs
from .projection import Projection
from .recordlines import Body

Loop = Callable[..., Iterator[Any]]


class HasReader(Protocol):
    """What the entries of an index have of records."""

    def reader(self, fields: frozenset[str], *, keyed: bool) -> EntryReader:
        """What reads *fields* of entries; *keyed*: and the engine's key of the record."""
        ...


class Prepared:
    """A query of *functions*: the *conditions* on single fields, what is *asked* of whole records, and what is wanted.

    It serves other functions of the same code if they are no others, or the condition can be `renewed` for them.
    """

    __slots__ = (
        "_body", "_coverings", "_given", "_late", "_listings", "_loops", "_programs", "_renewals", "_scannings",
        "_sources", "keyed", "needs", "of_keys",
    )  # fmt: skip

    def __init__(
        self, functions: Sequence[Followed], conditions: Sequence[Condition], asked: Sequence[Asked],
        want: Projection, programs: Programs,
    ) -> None:  # fmt: skip
        compares = compares_of(conditions)
        values, stored = programs.constants(compares)
        self._given = [*[compare.value for compare in compares], *values]
        self._body, self._programs = Body(conditions, stored, asked, want), programs
        numbers = {id(one): number for number, one in enumerate(functions)}
        self._renewals = _renewals(compares, stored, numbers, programs)
        # Of what is asked, the number of its function, those of the captured values, and the tables it looks into.
        every = self._body.every
        self._sources = tuple([
            Captured(
                numbers[id(one.followed)], tuple(one.numbers), tuple(one.links), tuple(one.nested), one.followed.keyed
            )
            for one in every
        ])  # fmt: skip
        for one in every:  # this is kept, and what these functions have captured must not be: it may be a transaction
            one.followed = one.followed.empty()
        self.of_keys = any([one.keyed for one in asked])
        """Whether something is asked of the keys of the records."""
        self.keyed = self.of_keys or want.keyed
        """Whether the loop needs these keys."""
        self.needs: Optional[frozenset[str]] = None
        """The fields that are enough for it; None if they are not known, or the whole record is needed."""
        self._late: Optional[bool] = None
        self._listings: dict[tuple[bool, bool], Callable[..., list[Any]]] = {}
        self._scannings: dict[bool, Callable[..., list[Any]]] = {}
        self._loops: dict[tuple[bool, bool, Form], Loop] = {}
        self._coverings: dict[Any, tuple[Callable[..., Any], bool]] = {}

    @property
    def renewable(self) -> bool:
        """Whether it may serve other functions of the same code."""
        return self._renewals is not None

    def renewed(self, functions: Sequence[Any]) -> Optional[Prepared]:
        """The same for other functions of the same code; None if they have captured values of other kinds.

        Whatever else is behind the last of the *functions* is not looked at.
        """
        if not self._renewals:
            return self
        given = self._given[:]
        half = len(given) // 2
        for position, function, number, kind, convert in self._renewals:
            value = functions[function].parameters[number]
            if type(value) is not kind:
                return None
            try:
                given[half + position] = value if convert is None else convert(value)
            except (TypeError, ValueError, ArithmeticError) as error:  # Python compares, or raises, for each record
                let_through(error)
                return None
            given[position] = value
        made: Prepared = object.__new__(Prepared)
        made._given = given
        made._body, made._renewals, made._programs, made._sources = (
            self._body, self._renewals, self._programs, self._sources
        )  # fmt: skip
        made.keyed, made.needs, made._loops, made._listings = self.keyed, self.needs, self._loops, self._listings
        made._late, made._scannings, made.of_keys = self._late, self._scannings, self.of_keys
        made._coverings = self._coverings
        return made

    @property
    def late(self) -> bool:
        """Whether only what stands beside a sort key is, or has, the key of the record, and it is nothing but that."""
        if self._late is None:
            self._late = _is_late(self._body)
        return self._late

    def loop(self, keyed: bool, views: bool, form: Form = ROWS) -> Loop:
        """The generator function ``(scan_of, load, load_key, failed, *given, *constants, *asked)``.

        *scan_of* gives the `Scan` of the records; with *keyed* the loop reads their keys, too. *given* are the values
        of the conditions as they are, *constants* in the form that is stored where that is so; *asked* are the
        `arguments` of what functions compute. *views*: the records are memoryviews. What the generator gives, *form*
        says.
        """
        found = self._loops.get((keyed, views, form))
        if found is None:
            key = "loop", self._body.shape(), keyed, views, form
            found = self._programs.once(key, lambda: self._writer(views=views, form=form).loop(keyed))
            self._loops[keyed, views, form] = found
        return found

    def listing(self, *, sparse: bool, dense: bool = False) -> Callable[..., list[Any]]:
        """The function ``(keys, get, handle, functions, *given, *constants)``, which lists what is wanted of records.

        They are those with the engine's *keys*, which ``get(key, None, handle)`` reads; with *dense* it is the ``get``
        of a cursor. *sparse*: there may be none of a key; otherwise that raises LookupError. Whatever it raises, the
        `loop` says what it means.
        """
        found = self._listings.get((sparse, dense))
        if found is None:
            key = "listing", self._body.shape(), self._sources, sparse, dense
            found = self._programs.once(key, lambda: self._writer().listing(self._sources, sparse, dense))
            self._listings[sparse, dense] = found
        return found

    def scanning(self, *, limited: bool) -> Callable[..., list[Any]]:
        """As `listing`: the function ``(rows, key_of, functions, *given, *constants)``, of the bytes of all records.

        If something is asked of keys, *rows* are pairs of the engine's key and the bytes; otherwise ``key_of()`` gives
        the key of the latest record, and is called for those that match. *limited*: the next argument is the number of
        rows to skip, then of those wanted, -1 for all.
        """
        found = self._scannings.get(limited)
        if found is None:
            key = "scanning", self._body.shape(), self._sources, self.of_keys, limited
            found = self._programs.once(key, lambda: self._writer().scanning(self._sources, self.of_keys, limited))
            self._scannings[limited] = found
        return found

    def covering(self, cover: HasReader, fields: frozenset[str], form: Form = ROWS) -> tuple[Callable[..., Any], bool]:
        """The function ``(entries, get, functions, *given, *constants)``: what is wanted of the entries of an index.

        Their *fields*, which *cover* knows to read, are all that is asked for. It gives a list, or with *form* a dict
        of lists. With it: whether it needs the values of the entries.
        """
        found = self._coverings.get((cover, fields, form))
        if found is None:
            reader = cover.reader(fields, keyed=self.keyed)
            covering = self._writer(form=form).covering(self._sources, reader)
            found = self._coverings[cover, fields, form] = covering, reader.paired
        return found

    def _writer(self, *, views: bool = False, form: Form = ROWS) -> Writer:
        return Writer(self._programs, self._body, views=views, form=form)

    @property
    def given(self) -> list[Any]:
        """The values of the condition, as they are and as they are stored."""
        return self._given

    def arguments(self, functions: Sequence[Followed], still: bool = False) -> list[Any]:
        """The last arguments of the loop: what *functions* are, and what they have captured.

        *still*: nothing is written while it runs.
        """
        found = self._given[:]
        for number, captured, links, nested, _ in self._sources:
            found += arguments(functions[number], captured, links, nested, self._programs.keys, still=still)
        return found

    def called(self, functions: Sequence[Followed]) -> list[Followed]:
        """Those of *functions* that are asked of whole records."""
        return [functions[number] for number, *_ in self._sources]


def _is_late(body: Body) -> bool:
    first, *more = body.want.parts
    rest = more[0].parts if len(more) == 1 and isinstance(more[0], Projection) and more[0].one else more
    if tuple(rest) != ("engine key",):
        return False
    return not (Projection((first,)).keyed or any([one.keyed for one in body.asked]))


_Renewal = tuple[int, int, int, type[Any], Optional[Callable[[Any], Any]]]
"""The number of a comparison; that of its function and of the captured value; its type, and what converts it."""


def _renewals(
    compares: Sequence[FieldCompare], stored: Sequence[bool], numbers: dict[int, int], programs: Programs
) -> Optional[list[_Renewal]]:  # fmt: skip
    """How the values of *compares* are found in other functions; None if they are not just captured ones."""
    found: list[_Renewal] = []
    for position, compare in enumerate(compares):
        if compare.source is not None:
            followed, number = compare.source
            compare.source = None  # what is kept must not hold what a function has captured
            kind: type[Any] = compare.value.__class__
            if kind not in PLAIN or kind is not type(followed.parameters[number]):
                return None
            convert = programs.columns.convert(compare.name, compare.value) if stored[position] else None
            found.append((position, numbers[id(followed)], number, kind, convert))
        elif not compare.constant:
            return None
    return found
