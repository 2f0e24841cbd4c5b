"""The law, on random models, records and functions: what is read gives what calling the function gives."""

from __future__ import annotations

import linecache
import re
import sys
import types
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from followed import agree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zlmdb.query.following import Following

PRELUDE = """
import enum, math, re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal, NamedTuple, Optional, Union
from uuid import UUID

class Kind(enum.Enum):
    A = 1
    B = 2
    C = 3

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 9

@dataclass
class Home:
    city: str
    zip: Optional[str] = None
    rooms: int = 0

class Spot(NamedTuple):
    x: int
    label: str

WORDS = {"a", "", "b"}
LIST = ["a", "ab", None]
MAP = {"a": 1, "b": 0}
"""

TEXTS = ["", "a", "b", "ab", "B", "zz"]
INTS = [0, 1, -1, 2, 3, 10, 17]
VALUES: dict[str, list[str]] = {
    "int": [str(one) for one in INTS],
    "str": [repr(one) for one in TEXTS],
    "bool": ["True", "False"],
    "float": ["0.0", "-0.0", "1.0", "2.5", "float('nan')", "float('inf')", "3.0"],
    "Decimal": ["Decimal(0)", "Decimal('1.5')", "Decimal(3)"],
    "date": ["date(2000, 1, 1)", "date(1999, 12, 31)", "date(2020, 2, 29)"],
    "datetime": ["datetime(2000, 1, 1, tzinfo=timezone.utc)", "datetime(2020, 5, 5, 7, tzinfo=timezone.utc)"],
    "timedelta": ["timedelta(0)", "timedelta(days=2)", "timedelta(seconds=-5)"],
    "Kind": ["Kind.A", "Kind.B", "Kind.C"],
    "Level": ["Level.LOW", "Level.HIGH"],
    "UUID": ["UUID(int=1)", "UUID(int=2)"],
    "bytes": ["b''", "b'a'", "b'ab'"],
    "Home": ["Home('a')", "Home('ab', 'b', 2)", "Home('', '')"],
    "Spot": ["Spot(1, 'a')", "Spot(0, '')"],
    "list[str]": ["[]", "['a']", "['', 'ab', 'a']"],
    "list[int]": ["[]", "[1]", "[0, 3, 17]"],
    "list[Home]": ["[]", "[Home('a')]", "[Home('b', 'zz', 1), Home('')]"],
    "dict[str, int]": ["{}", "{'a': 1}", "{'b': 0, 'a': 3}"],
    "tuple[int, str]": ["(1, 'a')", "(0, '')"],
    "Any": ["None", "1", "'a'", "[]", "{'a': 1}", "True", "2.5"],
    "Union[int, str]": ["1", "'a'", "0", "''"],
    "Literal['a', 'b']": ["'a'", "'b'"],
}
TYPES = list(VALUES)
ORDERED = ["int", "str", "float", "Decimal", "date", "datetime", "timedelta", "bytes"]
SIGNS = ["==", "!=", "<", "<=", ">", ">="]

DERIVED: dict[str, list[str]] = {
    "int": [
        "(<int> <arithmetic> <int>)",
        "len(<str>)",
        "len(<list[str]>)",
        "len(<dict[str, int]>)",
        "abs(<int>)",
        "min(<int>, <int>)",
        "<date>.year",
        "sum(1 for x in <list[int]> if x > <int>)",
        "sum(x for x in <list[int]>)",
        "<dict[str, int]>.get(<str>, 5)",
        "<tuple[int, str]>[0]",
        "<Spot>.x",
        "<Home>.rooms",
        "(<int> if <bool> else <int>)",
        "int(<bool>)",
        "round(<int> / 2)",
        "helper(<int>)",
        "<list[int]>[0]",
        "(100 // <int>)",
    ],
    "str": [
        "(<str> + <str>)",
        "<str>.<method>()",
        "<str>[:1]",
        "<str>[-1:]",
        "<str>[0]",
        "<Home>.city",
        "<Spot>.label",
        "str(<int>)",
        "(<str> or <str>)",
        "(<str> and <str>)",
        "max(<list[str]>, default='')",
        "<tuple[int, str]>[1]",
        "<Kind>.name",
        "(<str> if <bool> else <str>)",
    ],
    "float": ["(<float> + <int>)", "(<int> / 4)", "sum([<float>, <float>, 0.1])", "(1 / <float>)"],
    "list[str]": ["sorted(<list[str]>)", "[<str>]", "[<str>, <str>]", "list(<list[str]>)"],
    "list[int]": ["[<int>, <int>]"],
    "tuple[int, str]": ["(<int>, <str>)"],
    "Home": ["Home(<str>)", "Home(<str>, <str>, <int>)"],
    "Spot": ["Spot(<int>, <str>)"],
}
"""Expressions of each type, of expressions."""

JOINED = [
    *["(<bool> and <bool>)"] * 3,
    *["(<bool> or <bool>)"] * 3,
    "(not <bool>)",
    "(<bool> if <bool> else <bool>)",
    "(<bool> & <bool>)",
    "(<bool> | <bool>)",
    "(<bool> == <bool>)",
    "any([<bool>, <bool>])",
    "(lambda: <bool>)()",
]

TESTS = [
    "(<ordered> <sign> <ordered>)",
    "(<ordered> <sign> <ordered>)",
    "(<int> <sign> <int>)",
    "(<str> <sign> <str>)",
    "(0 < <int> <= <int>)",
    "(<str> in <members str>)",
    "(<str> not in <members str>)",
    "(<int> in <members int>)",
    "(<Kind> in <members Kind>)",
    "(<str> in <list[str]>)",
    "(<str> in <dict[str, int]>)",
    "(<str> in <str>)",
    "(<str> in WORDS)",
    "(<str> in LIST)",
    "(MAP.get(<str>, 2) <sign> 1)",
    "(<Any> in LIST)",
    "<str>.startswith(<str>)",
    "(<Kind> is Kind.A)",
    "(<Kind> is not Kind.B)",
    "(<Kind> == Kind.A)",
    "(<Kind> != Kind.A)",
    "(<Level> <sign> 3)",
    "any(x <sign> <str> for x in <list[str]>)",
    "all(x <sign> <int> or x == 3 for x in <list[int]>)",
    "any(x.zip is not None and x.zip <sign> x.city for x in <list[Home]>)",
    "(<Home>.zip is None)",
    "(<Home>.zip == <str>)",
    "(<Home> == <Home>)",
    "(<tuple[int, str]> <sign> <tuple[int, str]>)",
    "(<Spot> <sign> <Spot>)",
    "(<Any> == <Any>)",
    "(<Any> != <int>)",
    "(<Any> is None)",
    "(<Any> <sign> 1)",
    "isinstance(<Any>, (int, str))",
    "isinstance(<Union[int, str]>, str)",
    "(<Literal['a', 'b']> == 'a')",
    "bool(<int>)",
    "bool(<list[str]>)",
    "bool(<Any>)",
    "bool(<timedelta>)",
    "bool(<Home>)",
    "(re.match('a', <str>) is not None)",
    "(len([x for x in <list[int]> if x]) > 1)",
    "(<bool> is True)",
    "(<UUID> == <UUID>)",
    "(<datetime>.hour == 7)",
]


class Writer:
    """Writes a model, and functions of its records, as *chance* has it."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.fields: dict[str, list[str]] = {}
        self.optional: list[tuple[str, str]] = []
        self.captured: dict[str, list[str]] = {}
        self.members: list[str] = []

    def one(self, choices: Any) -> Any:
        return self.chance.choice(list(choices))

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    def model(self) -> str:
        lines = ["@dataclass", "class Record:"]
        for number in range(self.chance.randint(4, 10)):
            kind, name = self.one(TYPES), f"f{number}"
            if self.maybe(0.3) and kind != "Any":
                self.optional.append((name, kind))
                lines.append(f"    {name}: Optional[{kind}]")
            else:
                self.fields.setdefault(kind, []).append(name)
                lines.append(f"    {name}: {kind}")
        for kind in ("int", "str", "bool", "Any"):
            self.fields.setdefault(kind, []).append(f"g_{kind}")
            lines.append(f"    g_{kind}: {kind}")
        for number in range(self.chance.randint(0, 3)):
            body = self.text("bool", "self", 2)
            if self.maybe(0.5):
                lines += ["    @property", f"    def m{number}(self): return {body}"]
                self.members = [*self.members, f"m{number}"]
            else:
                lines += [f"    def m{number}(self, other=3): return {body}"]
                self.members = [*self.members, f"m{number}()"]
        return "\n".join(lines)

    def record(self, kinds: list[str]) -> str:
        values = [
            "None" if kind.startswith("Optional[") and self.maybe(0.4) else self.one(VALUES[bare(kind)])
            for kind in kinds
        ]
        return f"Record({', '.join(values)})"

    def text(self, kind: str, record: str, depth: int) -> str:
        """An expression of the type *kind*."""
        if kind == "bool":
            return self.condition(record, depth)
        choices = [self.one(VALUES[kind]), *self.captured.get(kind, [])]
        own = [f"{record}.{name}" for name in self.fields.get(kind, [])]
        if kind == "Any" or (own and "Union" in kind):
            return str(self.one(own))  # what is written out has a type, and comparisons of other types are refused
        choices += own * 3
        if kind == "str":
            choices += self.formatted()
        if depth > 0:
            choices += self.chance.sample(DERIVED.get(kind, []), min(3, len(DERIVED.get(kind, []))))
            guarded = "({0} if {0} is not None else <{1}>)"
            choices += [guarded.format(f"{record}.{name}", its) for name, its in self.optional if its == kind]
        return self.filled(self.one(choices), record, depth)

    def formatted(self) -> list[str]:
        """Texts of captured values."""
        names = [name for several in self.captured.values() for name in several]
        if not names:
            return []
        first, second = self.one(names), self.one(names)
        one, two = f"{{{first}}}", f"{{{second}}}"
        return [f"f'{one}'", f"f'a{one}'", f"f'{one}{{{second}!s:>2}}b'", f"'{{:>2}}b{{}}'.format(f'{two}', {first})"]

    def filled(self, template: str, record: str, depth: int) -> str:
        """*template* with something for each ``<...>``."""
        ordered, sign = self.one([*ORDERED, *(kind for kind in self.fields if kind in ORDERED)]), self.one(SIGNS)

        def found(match: re.Match[str]) -> str:
            what = match.group(1)
            if what == "sign":
                return str(sign)
            if what == "arithmetic":
                return str(self.one(["+", "-", "*", "//", "%"]))
            if what == "method":
                return str(self.one(["lower", "upper", "strip", "title"]))
            if what.startswith("members "):
                return self.members_of(what[len("members ") :], record)
            return self.text(ordered if what == "ordered" else what, record, depth - 1)

        return re.sub("<([A-Za-z][^<>=]*)>", found, template)

    def condition(self, record: str, depth: int) -> str:
        if depth > 0 and self.maybe(0.85):
            return self.filled(self.one(JOINED), record, depth)
        own = [f"{record}.{name}" for name in self.fields.get("bool", [])]
        if depth < 0:
            return str(self.one([*own, *VALUES["bool"], *self.captured.get("bool", [])]))
        tests = self.chance.sample(TESTS, 12) + own + [f"{record}.{member}" for member in self.members]
        tests += self.captured.get("bool", [])
        for name, its in self.optional[:3]:
            field = f"{record}.{name}"
            tests += [f"({field} is None)", f"({field} == <{its}>)", f"({field} in (None, <{its}>))", f"bool({field})"]
            if its in ORDERED:
                tests += [f"({field} is not None and {field} <sign> <{its}>)"] * 2
            if its == "Home":
                tests += [f"({field} is not None and {field}.city == 'a')", f"bool({field} and {field}.zip)"] * 2
        return self.filled(self.one(tests), record, max(depth, 1))

    def members_of(self, kind: str, record: str) -> str:
        values = ", ".join([self.text(kind, record, 0) for _ in range(self.chance.randint(1, 4))])
        plain = ", ".join([self.one(VALUES[kind]) for _ in range(self.chance.randint(1, 4))])
        return str(self.one([f"({values},)", f"[{values}]", f"({plain},)", f"{{{plain}}}", f"{{{values}}}"]))

    def function(self) -> tuple[str, dict[str, str]]:
        """A function that makes functions of records, and the types of the values that these capture."""
        names = {
            f"c{number}": self.one(["int", "str", "bool", "float", "Kind", "list[str]", "date", "tuple[int, str]"])
            for number in range(3)
        }
        for name, kind in names.items():
            self.captured.setdefault(kind, []).append(name)
        shape = self.one(["lambda", "lambda", "ifs", "locals", "default"])
        if shape == "lambda":
            body = f"    return lambda r: {self.result()}"
        elif shape == "default":
            body = f"    return lambda r, c0=c0: {self.condition('r', 2)}"
        elif shape == "ifs":
            body = (
                f"    def f(r):\n        if {self.condition('r', 1)}:\n            return {self.result()}\n"
                f"        elif {self.condition('r', 1)}:\n            return {self.condition('r', 1)}\n"
                f"        return {self.result()}\n    return f"
            )
        else:
            body = (
                f"    def f(r):\n        found = {self.condition('r', 2)}\n"
                f"        number = {self.text('int', 'r', 2)}\n"
                f"        if found:\n            number += 1\n        return number > 2 and {self.condition('r', 1)}\n"
                f"    return f"
            )
        helper = f"def helper(n):\n    return n + 1 if n > {self.one(INTS)} else -n\n"
        return f"{helper}\ndef make({', '.join(names)}):\n{body}\n", names

    def result(self) -> str:
        if self.maybe(0.7):
            return self.condition("r", self.one([1, 2, 3]))
        kinds = ["int", "str", "bool", "tuple[int, str]", "float", "list[str]"]
        parts = [self.text(self.one(kinds), "r", 1) for _ in range(self.chance.randint(1, 3))]
        parts += [f"r.{name}" for name, _ in self.optional[:1]]
        return str(self.one([f"({', '.join(parts)},)", f"[{', '.join(parts)}]", f"{{'a': {parts[0]}}}", parts[0]]))


def bare(kind: str) -> str:
    """The text of a type without its Optional."""
    return kind[len("Optional[") : -1] if kind.startswith("Optional[") else kind


_numbers = iter(range(10**9))


def run(source: str, space: dict[str, Any]) -> dict[str, Any]:
    """*space* with the names of *source*, whose lines tracebacks can show."""
    file = f"<law {next(_numbers)}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    exec(compile(source, file, "exec", dont_inherit=True), space)
    return space


def check(chance: Random) -> tuple[int, int]:
    """One model with some functions. Gives how many functions there were, and how many of them are called at all."""
    writer = Writer(chance)
    model = writer.model()
    kinds = [
        line.partition(": ")[2]
        for line in model.splitlines()
        if line.startswith("    ") and "def " not in line and ": " in line
    ]
    reads = called = 0
    module = types.ModuleType("followed_law")
    sys.modules[module.__name__] = module  # where names in annotations are looked up
    space = run(chance.choice(["", "", "from __future__ import annotations"]) + PRELUDE + model, vars(module))
    if chance.random() < 0.2:
        del sys.modules[module.__name__]  # then nothing is known of fields but their names, if annotations are texts
    records = [eval(writer.record(kinds), space) for _ in range(12)]
    following = Following(space["Record"])
    for _ in range(4):
        writer.captured = {}
        source, names = writer.function()
        run(source, space)
        for _ in range(2):  # the second time from what is kept
            arguments = [eval(chance.choice(VALUES[kind]), space) for kind in names.values()]
            function: Callable[[Any], Any] = space["make"](*arguments)
            for condition in (True, False):
                read = following.condition if condition else following.value
                try:
                    followed = read(function)
                except TypeError as error:
                    raise AssertionError(f"refused: {error}\n{model}\n{source}") from error
                try:
                    agree(followed, function, records, condition=condition)
                except AssertionError as error:
                    raise AssertionError(f"{model}\n{source}\n{arguments}\n{error}") from None
                reads, called = reads + 1, called + bool(followed.reasons)
    return reads, called


@settings(max_examples=min(30, settings.default.max_examples), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_what_is_read_gives_what_the_function_gives(seed: int) -> None:
    check(Random(seed))


@pytest.mark.slow
def test_most_random_functions_are_followed() -> None:
    counts = [check(Random(seed)) for seed in range(25)]
    reads, called = (sum(numbers) for numbers in zip(*counts))
    assert called < reads * 0.35
