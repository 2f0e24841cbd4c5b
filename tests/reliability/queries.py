"""Queries at random, as texts of Python that tables and lists of `plain_rows` both understand."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from .releases import KINDS, Declared, Field

OPTIONAL = ("maybe", "text")
"""Kinds whose values may be None, which has no order."""


WITHOUT_OBJECTS = (".count()", ".keys()", ".fields(", ".group_by(")
"""What is in queries whose results have no records in them."""


class Question(NamedTuple):
    """A query of the table *id*, as text, with the value of ``given`` in it."""

    id: str
    query: str
    given: Any

    def ask(self, table: Any) -> Any:
        return eval(f"lambda table: table{self.query}", {"given": self.given})(table)


def query_of(table: Declared, dice: Random) -> tuple[str, Any]:
    """What follows the name of a table, and the value of ``given`` in it."""
    plain = [one for one in table.fields if one.kind in KINDS]
    by = dice.choice(plain)
    given = KINDS[by.kind].value(dice)
    if by.kind == "tags":
        given = dice.choice(given or [""])
    sorts = [one.name for one in plain if KINDS[one.kind].sorts and one.kind not in OPTIONAL]
    text = ""
    if dice.random() < 0.7:
        text += f".where(lambda v: {condition(by, given, dice)})"
    if sorts and dice.random() < 0.5:
        chosen = [f"v.{name}" for name in dice.sample(sorts, min(len(sorts), dice.choice([1, 1, 2])))]
        order = chosen[0] if len(chosen) == 1 else f"({', '.join(chosen)})"
        text += f".order_by(lambda v: {order}{dice.choice(['', ', reverse=True'])})"
    if dice.random() < 0.4:
        text += f".limit({dice.randrange(5)}, {dice.choice([0, 0, 1, 3])})"
    if not text:
        text = ".where(lambda v: True)"
    hashed = [one.name for one in plain if one.kind != "tags"]
    ends = [".all()", ".first()", ".last()", ".count()", ".keys().all()", ".values().first()"]
    if hashed:
        name = dice.choice(hashed)
        ends += [
            f".fields(lambda v: v.{name}).all()",
            f".fields(lambda v: v.{name}).distinct().all()",
            f".fields(lambda v: v.{name}).distinct().count()",
            f".group_by(lambda v: v.{name}, lambda g: g.count())",
            f".group_by(lambda v: v.{name}, lambda g: g.keys().all())",
        ]
    if sorts:
        name = dice.choice(sorts)
        ends += [f".fields(lambda v: v.{name}).{end}()" for end in ("min", "max")]
    return text + dice.choice(ends), given


def condition(one: Field, given: Any, dice: Random) -> str:
    """A condition on a field, which is true or false of any record."""
    value = f"v.{one.name}"
    if one.kind == "tags":
        return dice.choice([f"given in {value}", f"given not in {value}", f"len({value}) > 1", f"not {value}"])
    found = [f"{value} == given", f"{value} != given", f"{value} in (given,)", f"not {value}", value]
    if one.kind in OPTIONAL:
        found += [f"{value} is None", f"{value} is not None"]
        if given is not None:
            found.append(f"{value} is not None and {value} >= given")
    else:
        found += [f"{value} {sign} given" for sign in ("<", "<=", ">", ">=")]
    if one.kind == "str":
        found += [f"{value}.startswith(given)", f"{value}.casefold() == given.casefold()"]
    return dice.choice(found)
