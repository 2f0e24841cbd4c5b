"""The lines of a loop that read one record, ask the conditions of it and make what is wanted of it.

There are two ways to read a record: as a whole by the table's decoder, or, of FlatBuffers, only the fields in question
at their constant offsets; a record that has them elsewhere (an older class wrote it, or another library) is read as a
whole.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Optional
from uuid import UUID

from ..codegen import Source
from ..handlers import let_through
from ..namedtuples import NamedTuple
from ..values.paths import AS_TEXT, Path, without_parts
from .expressionsource import Asked, taken_of
from .fieldconditions import Condition, FieldCompare, Leaf
from .forms import ROWS, Form
from .projection import Projection
from .recordpaths import parts_alone, taken

if TYPE_CHECKING:
    from .programs import Programs

_HASHED: tuple[Any, ...] = (str, int, float, bytes, bool, UUID, datetime, date, time, timedelta, Decimal)


def among(value: Any, given: Any) -> bool:
    """Whether *value* equals one of *given*, also when it can be in no set."""
    try:
        return value in given
    except TypeError:
        return any(value == one for one in given)


def _of_value(path: Path) -> str:
    """The expression of the field at *path*, which is one name, of ``value``."""
    return taken_of("value", path[0])


def spelled_in(variable: str, source: Sequence[str]) -> bool:
    """Whether lines of *source* name a *variable*."""
    return any([re.search(rf"\b{variable}\b", line) for line in source])


class Body(NamedTuple):
    """What a loop does with a record: it gives *want* if all *conditions* and all that is *asked* of it hold.

    *stored*: of each value that the conditions compare with, whether it is in the form that is stored.
    """

    conditions: Sequence[Condition]
    stored: tuple[bool, ...]
    asked: Sequence[Asked]
    want: Projection

    @property
    def every(self) -> list[Asked]:
        """All that functions compute of the record."""
        return [*self.asked, *self.want.asked]

    def shape(self) -> Any:
        """What is the same for two that differ in nothing but the values compared with and captured. Hashable."""
        shapes = tuple([one.shape() for one in self.conditions])
        return shapes, self.stored, tuple([one.shape() for one in self.asked]), self.want.shape()


class RecordLines:
    """Writes such lines."""

    def __init__(self, programs: Programs, body: Body, *, views: bool = False, form: Form = ROWS) -> None:
        self.form = form
        self.blocks = "defaultdict(list)" if form.grouped else "[]" if form.listed else ""  # what holds many rows
        self.programs, self.columns = programs, programs.columns
        self.asked, self.want, self.stored, self.every = body.asked, body.want, body.stored, body.every
        self.views = views
        self.measured: list[int] = []  # the constants whose lengths are compared, too
        self.short = False  # whether a text is read with numbers
        self.picking = True  # whether few records are expected to match
        self.late = False  # whether the key of a record is read once it matches
        self.texts: dict[str, str] = {}  # UUIDs that ``value`` has as texts
        self.instead = False  # whether something else with its fields is there in place of a record
        self.alone: Optional[dict[Path, str]] = None  # the expressions of parts, where there is no whole record
        self.source = Source()
        self.add, self.block = self.source.add, self.source.block
        self.conjuncts: list[tuple[Condition, int]] = []
        """What must all hold of single fields, with the number of its first constant."""
        number = 0
        for part in body.conditions:
            self.conjuncts.append((part, number))
            number += len(list(part.compares))
        self.names: dict[str, Any] = {"among": among}
        self.names["StructError"] = struct.error, IndexError  # it is shorter than it should be
        self.numbers = {id(one): number for number, one in enumerate(self.every)}

    def found(self, of_path: Callable[[tuple[str, ...]], str]) -> list[str]:
        """The lines for what is wanted of the record, whose fields *of_path* spells."""
        form = self.form
        if not form.best and not form.grouped:
            wanted = self.want.source(of_path, self.of_asked)
            key = ["key = key_of()"] if self.late else []
            return [*key, f"block.append({wanted})" if form.listed else f"found = {wanted}"]
        first, *more = [Projection((part,)).source(of_path, self.of_asked) for part in self.want.parts]
        if form.grouped:
            value = more[0] if len(more) == 1 else f"(None, {', '.join(more)})"
            return [f"block[{first}].append({value})"]
        unsure = " and sort_key == sort_key" if form.unsure else ""
        return [
            f"sort_key = {first}",
            f"if top is not None and not (top {form.best} sort_key){unsure}: continue",
            "pass" if form.late else f"found = (sort_key, {', '.join(more)})",
        ]

    def record(self) -> None:
        """Lines that read one record, ask the conditions of it and make what is wanted: by single fields if it pays."""
        if self.columns is None or not self.by_columns():
            self.as_whole()

    def as_whole(self) -> None:
        """Lines that read the record as a whole."""
        self.remaining(self.conjuncts)

    def unless(self, part: Condition, first: int, write: Leaf) -> None:
        """Lines that go on to the next record unless *part* holds. Its constants are numbered from *first*."""
        with self.block(f"if not {part.source(write, first)}:"):
            self.add("continue")

    def of_asked(self, asked: Asked) -> str:
        """The expression of *asked*, of ``value`` and ``key``."""
        stored: Mapping[str, str] = self.columns.stored if self.alone is not None else self.texts
        return asked.source(self.numbers[id(asked)], self.names, self.alone, stored, self.programs.vouched)

    # As a whole

    def compared(self, compare: FieldCompare, number: int) -> str:
        """The expression of *compare*, of ``value``."""
        return self.compared_with(compare, taken_of("value", compare.name), f"given{number}")

    def compared_with(self, compare: FieldCompare, value: str, constant: str) -> str:
        """The expression that compares the expression *value* with *constant*."""
        operator = compare.operator
        if compare.value is None:
            return f"({value} is {'not ' if operator == '!=' else ''}None)"
        if operator in ("==", "!="):
            return f"({value} {operator} {constant})"
        if operator == "in":
            hashed = self.programs.type_of(compare.name) in _HASHED
            return f"({value} in {constant})" if hashed else f"among({value}, {constant})"
        return f"((v := {value}) is not None and v {operator} {constant})"

    # By columns

    def by_columns(self) -> bool:
        """Lines that read single fields, where the record has them at their offsets; False if nothing is gained."""
        columns, parts = self.columns, self.conjuncts
        asked = parts_alone(self.asked, columns.reach)
        wanted = None if "value" in self.want.leaves() else parts_alone(self.want.asked, columns.reach)
        if wanted is None and not (asked and self.picking):
            asked = None  # the whole record is needed, of most of them
        taken, projected = list[Path](), list[str]()
        if asked is not None:
            taken = without_parts([*asked, *(wanted or ())])
            projected = [path[0] for path in (*taken, *(() if wanted is None else self.want.paths))]
        if not parts and not projected:
            return False
        self.names.update(columns.names)
        names = [compare.name for part, _ in parts for compare in part.compares]
        known = self.begin(names or projected, short=not (parts or self.views))
        with self.block(f"if {known}:"):
            fetched = self.conditions(parts)
            if asked is None:
                self.remaining([])
            else:
                self.project(projected, taken, set(names or projected), fetched, whole=wanted is None)
        with self.block("else:"):
            self.as_whole()
        return True

    def begin(self, names: Iterable[str], *, short: bool) -> str:
        """Lines that unpack the fields *names*; the condition that they are where they should be.

        *short*: also the bytes of a text that is not too long.
        """
        columns, wanted = self.columns, sorted(set(names))
        unpacked = columns.unpacked_with_text(wanted) if short else None
        self.short = unpacked is not None
        unpack = "unpack" if unpacked is None else f"forms[data[{unpacked.at}]]"
        unpacked = unpacked or columns.unpacked(wanted)
        self.names.update(
            unpack=unpacked.form.unpack_from, forms=unpacked.forms, HEAD=columns.head, masks=columns.masks
        )  # fmt: skip
        with self.block("try:"):
            self.add(f"{', '.join(unpacked.variables)}, = {unpack}(data)")
        with self.block("except StructError:"):
            self.add("head = b''")
        tests = ["head == HEAD"]
        if columns.full:
            self.add(f"m = {columns.full} if head == HEAD else masks[head]")
            tests = ["m >= 0"]
        return " and ".join([*tests, *(f"not ({test})" for test in unpacked.elsewhere)])

    def conditions(self, parts: list[tuple[Condition, int]]) -> set[str]:
        """Lines for what can be told by single fields, numbers before texts; the fields fetched for it."""
        fetched = set[str]()

        def referred(one: tuple[Condition, int]) -> list[str]:
            return sorted({compare.name for compare in one[0].compares if self.columns.referred(compare.name)})

        for part, first in sorted(parts, key=lambda one: len(referred(one))):
            self.lengths(part, first)
            for name in referred((part, first)):
                if name not in fetched:
                    self.add(*self.columns.fetched(name, self.views))
                    fetched.add(name)
            self.unless(part, first, self.compared_column)
        return fetched

    def lengths(self, part: Condition, number: int) -> None:
        """Lines that go on to the next record where a text has another length than the one that it should be."""
        compare = part.only
        if compare is None or compare.operator != "==" or not self.stored[number]:
            return
        length = self.columns.length(compare.name)
        if length is not None:
            self.measured.append(number)
            with self.block(f"if {length} != size{number}:"):
                self.add("continue")

    def compared_column(self, compare: FieldCompare, number: int) -> str:
        """The expression of *compare*, of a single field."""
        name = compare.name
        if compare.value is None:
            absent: str = self.columns.absent(name)
            return f"(not {absent})" if compare.operator == "!=" else absent
        if self.stored[number]:
            return self.columns.compared(name, compare.operator, f"c{number}")
        return self.compared_with(compare, self.columns.value(name), f"given{number}")

    def narrowed(self, asked: Sequence[Asked], *, also: bool = False) -> Optional[str]:
        """The name of the function that decodes what *asked* need of a record, if there is one.

        *also*: one that decodes all fields will do, as it makes no object of the model class of them.
        """
        nodes = [(one.node, one.followed.keyed) for one in asked]
        paths = taken(nodes)
        found = self._with_texts(asked) if paths and self.programs.vouched else None
        if found is None:
            self.texts = {}
            found = self.programs.narrow(paths) if paths else None
        if found is None and paths and also and not self.views:
            parts = self.programs.parts()
            found = parts.decode if parts is not None and {path[0] for path in paths}.issubset(parts.names) else None
        if found is None:
            return None
        self.names["narrow"] = found
        return "narrow"

    def _with_texts(self, asked: Sequence[Asked]) -> Optional[Callable[[Any], Any]]:
        """As `narrowed`, where keys of linked records are read as texts; then `texts` has them."""
        each = [taken([(one.node, one.followed.keyed)], one.by_texts) or () for one in asked]
        paths = without_parts(chain(*each))
        texts = [path[0] for path in paths if path[-1] == AS_TEXT]
        if not texts or len({path[0] for path in paths}) < len(paths):
            return None
        self.texts = {name: taken_of("value", name) for name in texts}
        return self.programs.narrow(paths)

    def load_some(self, narrow: Optional[str]) -> None:
        """Lines that read what *narrow* decodes; the whole value if a UUID is not stored as a text."""
        if not self.texts:
            self.add(f"value = {narrow}(data)")
            return
        self.names["let_through"] = let_through
        with self.block("try:"):
            self.add(f"value = {narrow}(data)")
        with self.block("except Exception as error:"):
            self.add("let_through(error)", "value = load(data)")

    def load(self) -> None:
        """Lines that read the whole value."""
        self.texts = {}
        parts = None if self.views else self.programs.parts()
        if parts is None:
            self.add("value = load(data)")
            return
        self.names.update(parts=parts.decode, new=object.__new__, Model=parts.cls)
        self.add("fields = parts(data)", "value = new(Model)")
        self.add(*[f"value.{name} = fields.{name}" for name in parts.names])

    def remaining(self, rest: list[tuple[Condition, int]]) -> None:
        """Lines that read the record as a whole, for the conditions *rest* and for what is asked for."""
        if not self.instead and (rest or self.asked or self.want.whole or self.want.paths):
            parted = not rest and not self.want.paths and "value" not in self.want.leaves()
            some = self.narrowed(self.every, also=True) if parted else None
            first_some = None if rest or some or not self.picking else self.narrowed(self.asked)
            if some or first_some:
                self.load_some(some or first_some)
            else:
                self.load()
        else:
            first_some = None
        for part, first in rest:
            self.unless(part, first, self.compared)
        self.ask()
        if first_some and self.want.whole:
            self.load()
        self.add(*self.found(_of_value))

    def project(
        self, names: Sequence[str], taken: Sequence[Path], unpacked: set[str], fetched: set[str], *, whole: bool
    ) -> None:
        """Lines that read the fields *names*, of which some are *unpacked* and *fetched* already.

        *taken* is what functions take of them. *whole*: what is wanted is a matter of the whole record.
        """
        more = sorted(set(names) - unpacked)
        elsewhere: Sequence[str] = ()
        if more:
            second = self.columns.unpacked(more)
            self.names["unpack_more"] = second.form.unpack_from
            self.add(f"{', '.join(second.variables)}, = unpack_more(data)")
            elsewhere = second.elsewhere
        with self.unless_elsewhere(elsewhere):
            self.parts(taken, fetched, whole=whole)

    @contextmanager
    def unless_elsewhere(self, tests: Sequence[str], *, asked: bool = False) -> Generator[None, None, None]:
        """The block for records of which none of *tests* is true; the others are read as a whole.

        *asked*: all that is asked of the record holds.
        """
        if not tests:
            yield
            return
        alone, self.alone = self.alone, None
        with self.block(f"if {' or '.join(tests)}:"):
            self.add("value = load(data)")
            if not asked:
                self.ask()
            self.add(*self.found(_of_value))
        self.alone = alone
        with self.block("else:"):
            yield

    def parts(self, taken: Sequence[Path], fetched: set[str], *, whole: bool) -> None:
        """Lines for what is asked and wanted, of the parts *taken* of fields that are unpacked."""
        nested = self.columns.nested(taken)
        self.alone = {path: nested.expression(path) for path in taken}
        if self.views and any([path[1:] or path[0] not in self.columns.fields for path in taken]):
            self.add("data = bytes(data)")
        asked = [self.of_asked(one) for one in self.asked]
        wanted = [] if whole else self.found(lambda path: self.columns.value(path[0]))
        first = [path for path in taken if spelled_in(nested.variable(path), asked)]
        later = [path for path in taken if path not in first and spelled_in(nested.variable(path), wanted)]
        with self.unless_elsewhere(self.opened(nested, first)):
            for one in asked:
                now = [path for path in first if spelled_in(nested.variable(path), [one])]
                self.have(nested, now, fetched)
                self.ask([one])
                first = [path for path in first if path not in now]
            if whole:
                self.alone = None
                self.load()
                self.add(*self.found(_of_value))
            else:
                with self.unless_elsewhere(self.opened(nested, later), asked=True):
                    self.have(nested, later, fetched)
                    self.fetch([path[0] for path in self.want.paths], fetched)
                    self.add(*wanted)
        self.names.update(nested.names)
        self.alone = None

    def opened(self, nested: Any, paths: Sequence[Path]) -> Sequence[str]:
        """Lines that find the objects in which *paths* lead; the condition that the record has others than ours."""
        lines = nested.opening(paths)
        if not lines:
            return ()
        self.add("foreign = False")
        with self.block("try:"):
            self.add(*lines)
        with self.block("except Foreign:"):
            self.add("foreign = True")
        return ("foreign",)

    def have(self, nested: Any, paths: Sequence[Path], fetched: set[str]) -> None:
        """Lines that make the variables of *paths*."""
        columns = self.columns
        for path in paths:
            name = path[0]
            if len(path) == 1 and name in columns.fields:
                self.fetch([name], fetched)
                self.add(f"{nested.variable(path)} = {columns.value(name)}")
            else:
                self.add(*nested.lines(path))

    def fetch(self, names: Sequence[str], fetched: set[str]) -> None:
        """Lines that fetch the fields *names*, but those that are *fetched*."""
        for name in names:
            if self.columns.referred(name) and name not in fetched:
                self.add(*self.columns.fetched(name, self.views, known=self.short))
                fetched.add(name)

    def ask(self, asked: Optional[Sequence[str]] = None) -> None:
        """Lines that go on to the next record unless all that is *asked* of it holds."""
        for one in [self.of_asked(each) for each in self.asked] if asked is None else asked:
            with self.block(f"if not {one}:"):
                self.add("continue")
