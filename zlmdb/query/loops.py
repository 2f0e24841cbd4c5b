"""One flat loop for each kind of question, written out: the records in, what matches and is asked for out.

Every call within a loop costs a tenth of a record, so condition and projection stand in it as source. There are two
ways to read a record: as a whole by the table's decoder, or, of FlatBuffers, only the fields in question at their
constant offsets; a record that has them elsewhere (an older class wrote it, or another library) is read as a whole.
"""

from __future__ import annotations

import struct
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Optional
from uuid import UUID

from ..codegen import Recipe, Source
from ..namedtuples import NamedTuple
from ..values.base import is_a, is_free
from .expressions import Compare, Condition
from .expressionsource import Asked, captured_source
from .fieldsalone import fields_alone, spelled_in
from .fieldtypes import without_none
from .following.nested import Nested
from .forms import BLOCK, ROWS, Form, expression_of
from .loopruntime import among, take, take_if_any
from .neededfields import named
from .nestedrows import Again, is_of_key
from .projection import Projection
from .remembered import Looked, Remembered, look_up
from .scanned import Scanned

if TYPE_CHECKING:
    from .programs import Programs

_LOOPS = Recipe("query loop", scan=Scanned)
_LISTS = Recipe("query list")

_HASHED = (str, int, float, bytes, bool, UUID, datetime, date, time, timedelta, Decimal)


class Captured(NamedTuple):
    """What one of the asked has captured: the number of its function, those of values, the tables, what is nested.

    *keyed*: its function takes the keys of records.
    """

    function: int
    numbers: tuple[int, ...]
    links: tuple[Looked, ...]
    nested: tuple[Nested, ...]
    keyed: bool


class Writer:
    """Writes one loop."""

    def __init__(
        self, programs: Programs, condition: Optional[Condition], stored: tuple[bool, ...], asked: Sequence[Asked],
        want: Projection, views: bool, form: Form = ROWS,
    ) -> None:  # fmt: skip
        self.form = form
        self.blocks = "defaultdict(list)" if form.grouped else "[]" if form.listed else ""  # what holds many rows
        self.programs, self.model, self.columns = programs, programs.model, programs.columns
        self.asked, self.want, self.stored, self.views = asked, want, stored, views
        self.measured: list[int] = []  # the constants whose lengths are compared, too
        self.short = False  # whether a text is read with numbers
        self.picking = True  # whether few records are expected to match
        self.alone: Optional[dict[str, str]] = None  # the variables of fields, where there is no whole record
        self.source = Source()
        self.add, self.block = self.source.add, self.source.block
        self.conjuncts: list[tuple[Condition, int]] = []
        """What must all hold of single fields, with the number of its first constant."""
        number = 0
        for part in () if condition is None else condition._conjuncts():
            self.conjuncts.append((part, number))
            number += sum(1 for _ in part._compares())
        self.names: dict[str, Any] = {"take": take, "take_if_any": take_if_any, "among": among}
        self.names["StructError"] = struct.error, IndexError  # it is shorter than it should be
        self.numbers = {id(one): number for number, one in enumerate([*asked, *want.asked])}

    def loop(self, keyed: bool) -> Callable[..., Iterator[Any]]:
        """The function."""
        numbers = range(len(self.stored))
        constants = "".join([*(f", given{number}" for number in numbers), *(f", c{number}" for number in numbers)])
        for number, one in enumerate([*self.asked, *self.want.asked]):
            constants += "".join([f", {name}" for name in one.names(number)])
        bound = ", bound" if self.form.best else ""
        with self.block(f"def loop(scan_of, load, load_key, failed{constants}{bound}):"):
            self.add("key = data = scan = None")
            begin = len(self.source.lines)
            self.add("rested = False")
            if self.form.best:
                self.add("top = None")
            if self.blocks:
                self.names.update(islice=islice, defaultdict=defaultdict)
                self.add(f"block = {self.blocks}")
            with self.block("try:"):
                self.add("scan = scan_of()")
                self.add(f"rows = scan.{'pairs' if keyed else 'values'}() if scan.any else ()")
                with self.block("while True:"):
                    with self.block("try:"):
                        if self.blocks:
                            self.in_blocks(keyed)
                        else:
                            self.rows(keyed)
                        self.add("if scan.any and not rested: scan.current()", "return")
                    with self.block("except Exception as error:"):
                        self.add("if rested or not scan.is_paused(error): raise")
                        self.add("rested = True", "rows = scan.rest()")
            with self.block("except Exception as error:"):
                self.add("failed(error, key, data, scan)")
            with self.block("finally:"):
                self.add("if scan is not None: scan.close()")
        self.source.lines[begin:begin] = [f"    size{number} = len(c{number})" for number in self.measured]
        made: Callable[..., Iterator[Any]]
        made = _LOOPS.functions(self.programs.name, str(self.source), self.names)["loop"]
        return made

    def listing(self, captured: Sequence[Captured], sparse: bool, dense: bool) -> Callable[..., list[Any]]:
        """The function that `Programs.listing` gives."""
        self.picking = False  # an index has found them
        numbers = range(len(self.stored))
        constants = "".join([*(f", given{number}" for number in numbers), *(f", c{number}" for number in numbers)])
        self.names.update(load=self.programs.load, load_key=self.programs.load_key)
        with self.block(f"def listing(keys, get, handle, functions{constants}):"):
            self.unpack(captured, many="len(keys)")
            self.add("rows = []", "add = rows.append")
            with self.block("for key in keys:"):
                self.add("data = get(key)" if dense else "data = get(key, None, handle)")
                self.add(f"if data is None: {'continue' if sparse else 'raise LookupError'}")
                if self.columns is None or not self.by_columns():
                    self.as_whole()
                self.add("add(found)")
            self.add("return rows")
        return self.made("listing")

    def made(self, name: str) -> Callable[..., list[Any]]:
        """The function *name* that was written."""
        source = str(self.source)
        if self.programs.key_in_place is not None:  # each call counts
            expression, names = self.programs.key_in_place
            source = source.replace("load_key(key)", expression)
            self.names.update(names)
        made: Callable[..., list[Any]] = _LISTS.functions(self.programs.name, source, self.names)[name]
        return made

    def unpack(self, captured: Sequence[Captured], many: Optional[str] = None) -> None:
        """Lines that take what is *captured* from the functions. *many* is the number of records, if that is known."""
        for number, one in enumerate(captured):
            self.add(f"function = functions[{one.function}]", f"asked{number} = function.function")
            for value in one.numbers:
                self.add(f"asked{number}_{value} = function.parameters[{value}]")
            for place, looked in enumerate(one.links):
                self.names.update(look_up=look_up, Remembered=Remembered)
                table = captured_source(looked.holder, number, self.names)
                if looked.numbered:
                    found = f"Remembered({table})"
                elif many is not None:
                    found = f"look_up({table}, {looked.private}, {many})"
                else:
                    self.names[f"looked{number}_{place}"] = looked
                    found = f"looked{number}_{place}.remembering(function.parameters)"
                self.add(f"asked{number}_link{place} = {found}")
            for place, nested in enumerate(one.nested):
                again = Again(nested, self.programs.keys, of_key=is_of_key(nested, keyed=one.keyed))
                rows: Any = nested.rows
                self.names[f"again{number}_{place}"] = again
                view = captured_source(rows.holder, number, self.names)
                self.add(f"asked{number}_rows{place} = again{number}_{place}({view}, function.parameters)")

    def scanning(self, captured: Sequence[Captured], keyed: bool, limited: bool) -> Callable[..., list[Any]]:
        """The function that `Programs.scanning` gives."""
        numbers = range(len(self.stored))
        constants = "".join([*(f", given{number}" for number in numbers), *(f", c{number}" for number in numbers)])
        self.names.update(load=self.programs.load, load_key=self.programs.load_key)
        with self.block(f"def scanning(rows, functions{', before, left' if limited else ''}{constants}):"):
            self.unpack(captured)
            begin = len(self.source.lines)
            self.add("found_rows = []", "add = found_rows.append")
            with self.block(f"for {'key, data' if keyed else 'data'} in rows:"):
                if self.columns is None or not self.by_columns():
                    self.as_whole()
                if limited:
                    with self.block("if before:"):
                        self.add("before -= 1", "continue")
                self.add("add(found)")
                if limited:
                    self.add("left -= 1")
                    with self.block("if not left:"):
                        self.add("break")
            self.add("return found_rows")
        self.source.lines[begin:begin] = [f"    size{number} = len(c{number})" for number in self.measured]
        return self.made("scanning")

    def rows(self, keyed: bool) -> None:
        """The loop itself."""
        with self.block(f"for {'key, data' if keyed else 'data'} in rows:"):
            if self.columns is None or not self.by_columns():
                self.as_whole()
            if self.form.late:
                self.add("found = (sort_key, scan.current()[0])")
            self.add("yield found")
            if self.form.best:
                self.add("top = bound[0]")

    def in_blocks(self, keyed: bool) -> None:
        """The loop that gives many rows at once."""
        some = f"islice(rows, {BLOCK})"
        self.add("rows = iter(rows)")
        with self.block("while True:"):
            self.add("data = None")
            begin = len(self.source.lines)
            with self.block(f"for {'key, data' if keyed else 'data'} in {some}:"):
                if self.columns is None or not self.by_columns():
                    self.as_whole()
            of_one = expression_of(self.source.lines[begin + 1 :]) if self.form.listed and not keyed else None
            if of_one is not None:  # nothing else is done with a record
                del self.source.lines[begin:]
                self.add(f"block = [{of_one} for data in {some}]", "if not block: break", "yield block", "block = []")
            else:
                self.add("if data is None: break", "if block: yield block", f"block = {self.blocks}")
        self.add("if block: yield block")

    def found(self, of_path: Callable[[tuple[str, ...]], str]) -> list[str]:
        """The lines for what is wanted of the record, whose fields *of_path* spells."""
        form = self.form
        if not form.best and not form.grouped:
            wanted = self.want.source(of_path, self.of_asked)
            return [f"block.append({wanted})" if form.listed else f"found = {wanted}"]
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

    def as_whole(self) -> None:
        """Lines that read the record as a whole."""
        self.remaining(self.conjuncts)

    def unless(self, part: Condition, first: int, write: Callable[[Compare, int], str]) -> None:
        """Lines that go on to the next record unless *part* holds. Its constants are numbered from *first*."""
        numbers = count(first)
        with self.block(f"if not {part._source(lambda compare: write(compare, next(numbers)))}:"):
            self.add("continue")

    def of_asked(self, asked: Asked) -> str:
        """The expression of *asked*, of ``value`` and ``key``."""
        stored: Mapping[str, str] = self.columns.stored if self.alone is not None else {}
        return asked.source(self.numbers[id(asked)], self.names, self.alone, stored, self.programs.vouched)

    # As a whole

    def path(self, path: tuple[str, ...]) -> str:
        """The expression of the field at *path* of ``value``."""
        if not path:
            return "value"
        origin: Any = typing.get_origin(self.model.annotation) or self.model.annotation
        found, rest = "value", path
        if is_a(origin, type) and not is_free(origin) and not self.model.is_union(()):
            if not issubclass(origin, Mapping):
                found, rest = f"value.{path[0]}" if path[0].isidentifier() else f"getattr(value, {path[0]!r})", path[1:]
            elif issubclass(origin, dict):
                found, rest = f"value.get({path[0]!r})", path[1:]
        for depth in range(len(path) - len(rest), len(path)):
            function = "take_if_any" if self.model.is_union(path[:depth]) else "take"
            found = f"{function}({found}, {path[depth]!r})"
        return found

    def compared(self, compare: Compare, number: int) -> str:
        """The expression of *compare*, of ``value``."""
        return self.compared_with(compare, self.path(compare.path), f"given{number}")

    def compared_with(self, compare: Compare, value: str, constant: str) -> str:
        """The expression that compares the expression *value* with *constant*."""
        operator = compare.operator
        if compare.value is None:
            return f"({value} is {'not ' if operator == '!=' else ''}None)"
        if operator in ("==", "!="):
            return f"({value} {operator} {constant})"
        if operator == "in":
            kind = without_none(self.model.type_of(compare.path))
            return f"({value} in {constant})" if kind in _HASHED else f"among({value}, {constant})"
        return f"((v := {value}) is not None and v {operator} {constant})"

    # By columns

    def by_columns(self) -> bool:
        """Lines that read single fields, where the record has them at their offsets; False if nothing is gained."""
        parts = [one for one in self.conjuncts if self.simple(compare.path for compare in one[0]._compares())]
        rest = [one for one in self.conjuncts if one not in parts]
        taken = fields_alone([*self.asked, *self.want.asked], self.columns.fields)
        whole = bool(rest) or taken is None or "value" in self.want.leaves() or not self.simple(self.want.paths)
        projected = [] if whole or taken is None else [*[path[0] for path in self.want.paths], *taken]
        if not parts and not projected:
            return False
        self.names.update(self.columns.names)
        names = [compare.path[0] for part, _ in parts for compare in part._compares()]
        known = self.begin(names or projected, short=not (parts or self.views))
        with self.block(f"if {known}:"):
            fetched = self.conditions(parts)
            if whole:
                self.remaining(rest)
            else:
                self.project(projected, taken or (), set(names or projected), fetched)
        with self.block("else:"):
            self.as_whole()
        return True

    def simple(self, paths: Iterable[tuple[str, ...]]) -> bool:
        """Whether all of *paths* are fields that can be read alone."""
        return all(len(path) == 1 and path[0] in self.columns.fields for path in paths)

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
            return sorted({compare.path[0] for compare in one[0]._compares() if self.columns.referred(compare.path[0])})

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
        if not isinstance(part, Compare) or part.operator != "==" or not self.stored[number]:
            return
        length = self.columns.length(part.path[0])
        if length is not None:
            self.measured.append(number)
            with self.block(f"if {length} != size{number}:"):
                self.add("continue")

    def compared_column(self, compare: Compare, number: int) -> str:
        """The expression of *compare*, of a single field."""
        name = compare.path[0]
        if compare.value is None:
            absent: str = self.columns.absent(name)
            return f"(not {absent})" if compare.operator == "!=" else absent
        if self.stored[number]:
            found: str = self.columns.compared(name, compare.operator, f"c{number}")
            return found
        return self.compared_with(compare, self.columns.value(name), f"given{number}")

    def narrowed(self, asked: Sequence[Asked], *, also: bool = False) -> Optional[str]:
        """The name of the function that decodes what *asked* need of a record, if there is one.

        *also*: one that decodes all fields will do, as it makes no object of the model class of them.
        """
        fields = named([(one.node, one.followed.keyed) for one in asked])
        found = self.programs.narrow(fields) if fields else None
        if found is None and fields and also and not self.views:
            parts = self.programs.parts()
            found = parts.decode if parts is not None and fields.issubset(parts.names) else None
        if found is None:
            return None
        self.names["narrow"] = found
        return "narrow"

    def load(self) -> None:
        """Lines that read the whole value."""
        parts = None if self.views else self.programs.parts()
        if parts is None:
            self.add("value = load(data)")
            return
        self.names.update(parts=parts.decode, new=object.__new__, Model=parts.cls)
        self.add("fields = parts(data)", "value = new(Model)")
        self.add(*[f"value.{name} = fields.{name}" for name in parts.names])

    def remaining(self, rest: list[tuple[Condition, int]]) -> None:
        """Lines that read the record as a whole, for the conditions *rest* and for what is asked for."""
        if rest or self.asked or self.want.whole or self.want.paths:
            every = [*self.asked, *self.want.asked]
            some = None if rest or self.want.paths or "value" in self.want.leaves() else self.narrowed(every, also=True)
            first_some = None if rest or some or not self.picking else self.narrowed(self.asked)
            if some or first_some:
                self.add(f"value = {some or first_some}(data)")
            else:
                self.load()
        else:
            first_some = None
        for part, first in rest:
            self.unless(part, first, self.compared)
        self.ask()
        if first_some and self.want.whole:
            self.load()
        self.add(*self.found(self.path))

    def project(self, names: Sequence[str], taken: Sequence[str], unpacked: set[str], fetched: set[str]) -> None:
        """Lines that read the fields *names*, of which some are *unpacked* and *fetched* already.

        *taken* are those that functions take.
        """
        more = sorted(set(names) - unpacked)
        elsewhere: Sequence[str] = ()
        if more:
            second = self.columns.unpacked(more)
            self.names["unpack_more"] = second.form.unpack_from
            self.add(f"{', '.join(second.variables)}, = unpack_more(data)")
            elsewhere = second.elsewhere
        if not elsewhere:
            self.fields(names, taken, fetched)
            return
        with self.block(f"if {' or '.join(elsewhere)}:"):
            self.add("value = load(data)")
            self.ask()
            self.add(*self.found(self.path))
        with self.block("else:"):
            self.fields(names, taken, fetched)

    def fields(self, names: Sequence[str], taken: Sequence[str], fetched: set[str]) -> None:
        """Lines for what is asked and wanted of the fields *names*, which are unpacked."""
        self.alone = {name: f"w{self.columns.fields[name].id}" for name in taken}
        asked = [self.of_asked(one) for one in self.asked]
        found = self.found(lambda path: self.columns.value(path[0]))
        first = fields_alone(self.asked, self.alone) or []
        self.have(first, first, fetched, asked)
        self.ask(asked)
        later = [name for name in taken if name not in first or not spelled_in(self.alone[name], asked)]
        self.have(sorted(set(names).difference(first)), later, fetched, found)
        self.add(*found)
        self.alone = None

    def have(self, names: Sequence[str], taken: Sequence[str], fetched: set[str], source: Sequence[str]) -> None:
        """Lines that fetch the fields *names*, and make variables of those *taken*, if *source* spells them."""
        columns = self.columns
        for name in names:
            if columns.referred(name) and name not in fetched:
                self.add(*columns.fetched(name, self.views, known=self.short))
        variables = [(f"w{columns.fields[name].id}", name) for name in taken]
        self.add(*[f"{one} = {columns.value(name)}" for one, name in variables if spelled_in(one, source)])

    def ask(self, asked: Optional[Sequence[str]] = None) -> None:
        """Lines that go on to the next record unless all that is *asked* of it holds."""
        for one in [self.of_asked(each) for each in self.asked] if asked is None else asked:
            with self.block(f"if not {one}:"):
                self.add("continue")
