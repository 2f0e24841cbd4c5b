"""One flat loop for each kind of question, written out: the records in, what matches and is asked for out.

Every call within a loop costs a tenth of a record, so condition and projection stand in it as source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Optional

from ..codegen import Recipe
from ..namedtuples import NamedTuple
from ..values.paths import Path
from .expressionsource import captured_source
from .following.nested import Nested
from .forms import BLOCK, expression_of
from .nestedrows import Again, is_of_key
from .recordlines import RecordLines
from .remembered import Looked, look_up
from .scanned import Scanned

_LOOPS = Recipe("query loop", scan=Scanned)
_LISTS = Recipe("query list")


class Captured(NamedTuple):
    """What one of the asked has captured: the number of its function, those of values, the tables, what is nested.

    *keyed*: its function takes the keys of records.
    """

    function: int
    numbers: tuple[int, ...]
    links: tuple[Looked, ...]
    nested: tuple[Nested, ...]
    keyed: bool


class EntryReader(NamedTuple):
    """*lines* that make a ``value`` with the fields of an ``entry`` of an index, and their *names*.

    The value is a dict, or the only object of the class *made*. *paired*: they ask ``get`` for the value of the entry.
    """

    lines: Sequence[str]
    names: dict[str, Any]
    made: Optional[type[Any]]
    paired: bool


class Writer(RecordLines):
    """Writes one loop."""

    @property
    def constants(self) -> str:
        """The arguments that the condition is compared with, as they are and as they are stored."""
        numbers = range(len(self.stored))
        return "".join([*(f", given{number}" for number in numbers), *(f", c{number}" for number in numbers)])

    def loop(self, keyed: bool) -> Callable[..., Iterator[Any]]:
        """The function."""
        constants = self.constants
        for number, one in enumerate(self.every):
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
        self.measure(begin)
        return _LOOPS.functions(self.programs.name, str(self.source), self.names)["loop"]

    def listing(self, captured: Sequence[Captured], sparse: bool, dense: bool) -> Callable[..., list[Any]]:
        """The function that `Prepared.listing` gives."""
        self.picking = False  # an index has found them
        self.names.update(load=self.programs.load, load_key=self.programs.load_key)
        with self.block(f"def listing(keys, get, handle, functions{self.constants}):"):
            self.unpack(captured, many="len(keys)")
            self.add("rows = []", "add = rows.append")
            with self.block("for key in keys:"):
                self.add("data = get(key)" if dense else "data = get(key, None, handle)")
                self.add(f"if data is None: {'continue' if sparse else 'raise LookupError'}")
                self.record()
                self.add("add(found)")
            self.add("return rows")
        return self.made("listing")

    def reading(self, paths: Sequence[Path]) -> Optional[Callable[[Any], Any]]:
        """The function that `Programs.of_linked` gives; None if single fields take no less time."""
        names = [path[0] for path in paths]
        self.names.update(load=self.programs.load, new=object.__new__, Part=type("Part", (), {"__slots__": names}))
        with self.block("def reading(data):"):
            if not self.by_columns():
                return None
            self.add("part = new(Part)", f"{', '.join([f'part.{name}' for name in names])}, = found", "return part")
        return _LOOPS.functions(self.programs.name, str(self.source), self.names)["reading"]

    def covering(self, captured: Sequence[Captured], reader: EntryReader) -> Callable[..., Any]:
        """The function that `Prepared.covering` gives."""
        self.names.update(reader.names, load_key=self.programs.load_key)
        with self.block(f"def covering(entries, get, functions{self.constants}):"):
            self.unpack(captured, many="len(entries)")
            if self.blocks:
                self.names["defaultdict"] = defaultdict
                self.add(f"block = {self.blocks}")
            else:
                self.add("rows = []", "add = rows.append")
            if reader.made is not None:
                self.names["Entry"] = reader.made
                self.add("value = Entry()")
            with self.block("for entry in entries:"):
                self.add(*reader.lines)
                self.instead = True
                self.as_whole()
                if not self.blocks:
                    self.add("add(found)")
            self.add("return block" if self.blocks else "return rows")
        return self.made("covering")

    def made(self, name: str, recipe: Recipe = _LISTS) -> Callable[..., Any]:
        """The function *name* that was written."""
        source = str(self.source)
        if self.programs.key_in_place is not None:  # each call counts
            expression, names = self.programs.key_in_place
            source = source.replace("load_key(key)", expression)
            self.names.update(names)
        return recipe.functions(self.programs.name, source, self.names)[name]

    def unpack(self, captured: Sequence[Captured], many: Optional[str] = None) -> None:
        """Lines that take what is *captured* from the functions. *many* is the number of records, if that is known."""
        for number, one in enumerate(captured):
            self.add(f"function = functions[{one.function}]", f"asked{number} = function.function")
            for value in one.numbers:
                self.add(f"asked{number}_{value} = function.parameters[{value}]")
            for place, looked in enumerate(one.links):
                self.names.update({"look_up": look_up, f"looked{number}_{place}": looked})
                table = captured_source(looked.holder, number, self.names)
                if looked.keyed is not None:
                    found = f"looked{number}_{place}.remembered({table})"
                elif many is not None:
                    found = f"look_up({table}, looked{number}_{place}, {many})"
                else:
                    found = f"looked{number}_{place}.remembering(function.parameters, still=True)"
                self.add(f"asked{number}_link{place} = {found}")
            for place, nested in enumerate(one.nested):
                again = Again(nested, self.programs.keys, of_key=is_of_key(nested, keyed=one.keyed))
                rows: Any = nested.rows
                self.names[f"again{number}_{place}"] = again
                view = captured_source(rows.holder, number, self.names)
                self.add(f"asked{number}_rows{place} = again{number}_{place}({view}, function.parameters)")

    def scanning(self, captured: Sequence[Captured], keyed: bool, limited: bool) -> Callable[..., list[Any]]:
        """The function that `Prepared.scanning` gives."""
        self.names.update(load=self.programs.load, load_key=self.programs.load_key)
        self.late = self.want.keyed and not keyed
        with self.block(f"def scanning(rows, key_of, functions{', before, left' if limited else ''}{self.constants}):"):
            self.unpack(captured)
            begin = len(self.source.lines)
            self.add("found_rows = []", "add = found_rows.append")
            with self.block(f"for {'key, data' if keyed else 'data'} in rows:"):
                self.record()
                if limited:
                    with self.block("if before:"):
                        self.add("before -= 1", "continue")
                self.add("add(found)")
                if limited:
                    self.add("left -= 1")
                    with self.block("if not left:"):
                        self.add("break")
            self.add("return found_rows")
        self.measure(begin)
        return self.made("scanning")

    def measure(self, at: int) -> None:
        """Put lines *at* that number that measure the constants whose lengths are compared."""
        self.source.lines[at:at] = [f"    size{number} = len(c{number})" for number in self.measured]

    def rows(self, keyed: bool) -> None:
        """The loop itself."""
        with self.block(f"for {'key, data' if keyed else 'data'} in rows:"):
            self.record()
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
                self.record()
            of_one = expression_of(self.source.lines[begin + 1 :]) if self.form.listed and not keyed else None
            if of_one is not None:  # nothing else is done with a record
                del self.source.lines[begin:]
                self.add(f"block = [{of_one} for data in {some}]", "if not block: break", "yield block", "block = []")
            else:
                self.add("if data is None: break", "if block: yield block", f"block = {self.blocks}")
        self.add("if block: yield block")
