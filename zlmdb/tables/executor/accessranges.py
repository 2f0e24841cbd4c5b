"""The ranges of entries that the accesses of a plan read: bytes, from the values that they look for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Optional

from ... import errors
from ...codegen import Recipe, Source
from ...keys import TupleKey
from ...keys.base import TOP, after
from ...keys.parts import Part
from ...query.accesses import Access, Bound
from ...query.expressionsource import Asked
from ...query.following import Followed, Node
from ...query.terms import CAP, MEMBERS, SIDES
from ...values.base import is_a
from ..indexstorage import IndexStorage
from ..ranged import limits
from ..storage import Storage

Range = tuple[bytes, bytes]
Find = Callable[[Sequence[Followed]], Optional[Sequence[Range]]]

UNFIT = (errors.EncodeError, ValueError, TypeError)
"""What a value raises that cannot be in an index."""

_RANGES = Recipe("ranges", general=("exactly", "bound"))

_FROM_INT = {
    Decimal: "{kind}({x}) if type({x}) is int else {x}",
    float: "{kind}({x}) if type({x}) is int and -(2**53) <= {x} <= 2**53 else {x}",
}
"""By the class of a part of a key: an expression of the number that is equal to a whole one."""


def ranges_of(spans: Any, access: Access) -> list[Range]:
    """The ranges that *access* reads of *spans*, a table or an index. Raises for values that do not fit."""
    return _ranges(
        spans, len(access.facts.parts), access.equal, access.members, access.begins, access.bounds[0], access.bounds[1]
    )  # fmt: skip


def _ranges(
    spans: Any, count: int, equal: tuple[Any, ...], members: Optional[Sequence[Any]], begins: Any,
    first: Optional[Bound], last: Optional[Bound],
) -> list[Range]:  # fmt: skip
    tuples = isinstance(_codec(spans), TupleKey)
    if len(equal) == count:
        return [spans.exactly(equal if tuples else equal[0])]
    if members is not None:
        if len(equal) + 1 == count:
            found = [spans.exactly((*equal, one) if tuples else one) for one in members]
        else:
            found = [limits(spans, (None, None, None, (*equal, one), None)) for one in members]
        return list(dict.fromkeys(found))  # one moment may be said by two times that are not equal
    if begins is not None:
        return [limits(spans, (None, None, None, equal if tuples else None, begins))]
    if first is None and last is None and tuples and equal:
        spans.check_sorts()
        return [spans.span(equal, None)]
    start = stop = through = None
    if first is not None:
        start = (*equal, first.value) if tuples else first.value
    if last is not None:
        end = (*equal, last.value) if tuples else last.value
        stop, through = (None, end) if last.inclusive else (end, None)
    lower, upper = limits(spans, (start, stop, through, equal if tuples and equal else None, None))
    if first is not None and not first.inclusive:
        lower = max(lower, spans.bound(start, through=True))
    return [(lower, upper)]


def _codec(spans: Any) -> Any:
    return spans.key if is_a(spans, Storage) else spans.storage.key


def finder(spans: Any, access: Access, functions: Sequence[Followed]) -> Find:
    """The function of *functions* with any captured values that gives the ranges of *access* for these values.

    It gives None, or raises, where these are of other types than those now. *functions* are the conditions of the
    query.
    """
    return _Writer(spans, access, functions).function()


def finder_of(spans: Any, access: Access) -> Callable[[Sequence[Any]], Sequence[Range]]:
    """The function of the values of the only part of *access* that gives its ranges."""
    writer = _Writer(spans, access, ())
    with writer.source.block("def find(values):"):
        with writer.source.block("if len(values) == 1:"):
            writer.source.add("one = values[0]", f"return ({writer.exactly('one')},)")
        writer.source.add(f"return [{writer.exactly('one')} for one in values]")
    return _RANGES.functions(access.facts.name, str(writer.source), writer.names)["find"]


def captured(followed: Followed, node: Node) -> Callable[[Followed], Any]:
    """The function of *followed*, or another function of the same code, that evaluates *node*, of captured values."""
    asked, names = Asked(followed, node), dict[str, Any]()
    source = Source()
    expression = asked.source(0, names)
    with source.block("def value(function):"):
        source.add(*[f"asked0_{one} = function.parameters[{one}]" for one in asked.numbers])
        source.add("asked0 = function.function", f"return {expression}")
    return _RANGES.functions("a captured value", str(source), names)["value"]


def ends_otherwise(form: Part) -> bool:
    """Whether a part is written in another way where it is the last one that is given."""
    kind: Any = type(form)
    return kind.encode_only is not Part.encode_only


class _Writer:
    """Writes the source of a `finder`."""

    def __init__(self, spans: Any, access: Access, functions: Sequence[Followed]) -> None:
        self.spans, self.access, self.functions = spans, access, functions
        self.names: dict[str, Any] = {"bound": spans.bound, "exactly": spans.exactly, "spans": spans, "after": after}
        self.source = Source()

    def function(self) -> Find:
        """The compiled function `find`, which asks of each captured value whether it has the expected type."""
        add = self.source.add
        equal: list[str] = []
        found: dict[str, str] = {}
        with self.source.block("def find(functions):"):
            for number, (part, term) in enumerate(self.access.terms):
                x = f"x{number}"
                self.value(number, x)
                kind = f"kind{number}"
                self.names[kind] = part.kind
                if term.operator == "in":
                    self.names.update(MEMBERS=MEMBERS)
                    add(f"if type({x}) not in MEMBERS or len({x}) > {CAP}: return None")
                    add(f"{x} = dict.fromkeys({x})")
                    if part.kind in _FROM_INT:
                        add(f"{x} = [{_FROM_INT[part.kind].format(x='one', kind=kind)} for one in {x}]")
                    with self.source.block(f"for one in {x}:"):
                        add(f"if type(one) is not {kind}: return None")
                    found["members"] = x
                    continue
                if part.kind in _FROM_INT:
                    add(f"{x} = {_FROM_INT[part.kind].format(x=x, kind=kind)}")
                add(f"if type({x}) is not {kind}: return None")
                if term.operator == "==":
                    equal.append(x)
                elif term.operator == "startswith":
                    found["begins"] = x
                else:
                    self.names["Bound"] = Bound
                    found[SIDES[term.operator]] = x
                    found[f"{SIDES[term.operator]} inclusive"] = repr("=" in term.operator)
            add(f"return {self.result(equal, found)}")
        return _RANGES.functions(self.access.facts.name, str(self.source), self.names)["find"]

    def value(self, number: int, x: str) -> None:
        """Lines that give *x* the value of the term with this *number*."""
        add, origin = self.source.add, self.access.terms[number][1].origin
        if origin is None:
            self.names[f"value{number}"] = self.access.terms[number][1].value
            add(f"{x} = value{number}")
            return
        asked = Asked(self.functions[origin.number], origin.node)
        if asked.links:  # a record of a table, with a key that was captured
            self.names[f"value{number}"] = origin.value
            add(f"{x} = value{number}(functions)")
            return
        expression = asked.source(number, self.names)
        add(f"function = functions[{origin.number}]")
        for one in asked.numbers:
            add(f"asked{number}_{one} = function.parameters[{one}]")
        add(f"asked{number} = function.function", f"{x} = {expression}")

    def result(self, equal: list[str], found: dict[str, str]) -> str:
        """The expression of the ranges."""
        spans, parts = self.spans, self.access.facts.parts
        if len(parts) == 1 and not isinstance(_codec(spans), TupleKey):
            if equal:
                return f"({self.exactly(equal[0])},)"
            if "members" in found:
                ranges = f"[{self.exactly('one')} for one in {found['members']}]"
                return f"list(dict.fromkeys({ranges}))" if parts[0].kind is datetime else ranges  # as in `_ranges`
            if "begins" not in found:
                return f"({self.between(found)},)"
        self.names["ranges"] = _ranges
        tuples = "".join([f"{one}, " for one in equal])
        first, last = "lower", "upper"
        if len(equal) < len(parts) and parts[len(equal)].descending:
            first, last = last, first
        sides = [
            f"Bound({found[one]}, {found[f'{one} inclusive']})" if one in found else "None" for one in (first, last)
        ]
        general = (
            f"ranges(spans, {len(parts)}, ({tuples}), {found.get('members')}, {found.get('begins')}, "
            f"{sides[0]}, {sides[1]})"
        )
        packed = self.leading(equal, found, first, last)
        return general if packed is None else f"({packed[1]},) if {packed[0]} else {general}"

    def leading(self, equal: list[str], found: dict[str, str], first: str, last: str) -> Optional[tuple[str, str]]:
        """As `pack`, the range of leading parts that are *equal*, and within *first* and *last* of the one behind them.

        It is what `_ranges` gives.
        """
        spans = self.spans
        joined = spans.joined if is_a(spans, IndexStorage) else None
        key: Any = None if joined is None else joined.parts[0]
        if joined is None or not equal or not key.sorts or len(key.leaves) != len(self.access.facts.parts):
            return None
        if "members" in found or "begins" in found:
            return None
        named = [*equal, *[found[one] for one in (first, last) if one in found]]
        if any([ends_otherwise(joined._forms[number]) for number in range(len(equal) + (len(named) > len(equal)))]):
            return None
        checks: list[str] = []
        values: dict[str, str] = {}
        for number, x in enumerate(named):
            number = min(number, len(equal))
            check, values[x], names = joined.leading_source(number, b"" if number else spans.storage.prefix, x)
            checks.append(check)
            self.names.update(names)
        self.names.update(greatest=spans.upper, TOP=TOP)
        begin = " + ".join([values[one] for one in equal])
        lower, upper = f"(begin := {begin})", "min(greatest, after(begin))"
        if first in found:
            lower += f" + {values[found[first]]}{' + TOP' if found[f'{first} inclusive'] == 'False' else ''}"
        if last in found:
            upper = f"begin + {values[found[last]]}{' + TOP' if found[f'{last} inclusive'] == 'True' else ''}"
        return " and ".join(checks), f"({lower}, {upper})"

    def pack(self, x: str) -> Optional[tuple[str, str]]:
        """Expressions of *x*: whether it can be encoded in place, and its encoding; None if there are none."""
        spans = self.spans
        if not is_a(spans, IndexStorage):
            return None
        joined = spans.joined
        if joined is not None and ends_otherwise(joined._forms[0]):
            return None
        check, value, names = spans.key_source(x, "")
        self.names.update(names)
        return check, value

    def exactly(self, x: str) -> str:
        """The expression of the range of the key *x*."""
        packed = self.pack(x)
        if packed is None:
            return f"exactly({x})"
        if self.spans.joined is None:
            end = "lower + b'\\0'"
        elif self.spans.tail:  # what follows in an entry is that long
            self.names["end"] = b"\xff" * (1 - self.spans.tail)
            end = "lower + end"
        else:
            end = "after(lower)"
        return f"((lower := {packed[1]}), {end}) if {packed[0]} else exactly({x})"

    def between(self, found: dict[str, str]) -> str:
        """The expression of the range between two bounds."""
        first, last = ("upper", "lower") if self.access.facts.parts[0].descending else ("lower", "upper")
        self.names.update(least=self.spans.lower, greatest=self.spans.upper, TOP=TOP)
        lower = upper = ""
        if first in found:
            lower = self.bound(found[first], through=found[f"{first} inclusive"] == "False")
        if last in found:
            upper = self.bound(found[last], through=found[f"{last} inclusive"] == "True")
        return f"({lower or 'least'}, {upper or 'greatest'})"

    def bound(self, x: str, *, through: bool) -> str:
        """The expression of a bound at *x*."""
        general = f"bound({x}, through={through})"
        packed = self.pack(x)
        end = ""
        if through:
            end = " + b'\\0'" if is_a(self.spans, IndexStorage) and self.spans.joined is None else " + TOP"
        found = general if packed is None else f"({packed[1]}{end} if {packed[0]} else {general})"
        return f"min(greatest, {found})" if through else found
