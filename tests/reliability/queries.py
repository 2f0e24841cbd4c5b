"""Queries at random, as texts of Python that tables and lists of `plain_rows` both understand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

from ..plain_rows import ByKey, Pairs, Records
from .releases import KINDS, Field, Link, Release
from .rules import Content

OPTIONAL = ("maybe", "text")
"""Kinds whose values may be None, which has no order."""


WITHOUT_OBJECTS = (".count()", ".keys()", ".fields(", ".group_by(")
"""What is in queries whose results have no records in them."""


class Question(NamedTuple):
    """A query of the table *id*, as text, with the values of the names in it."""

    id: str
    query: str
    given: dict[str, Any]

    def ask(self, t: Any) -> Any:
        """What it gives of the tables *t*."""
        return eval(f"lambda table: table{self.query}", {**self.given, "t": t})(getattr(t, self.id))

    def part(self, query: str) -> Question:
        """The same with another text."""
        return self._replace(query=query)


class PlainTable(Records):
    """The records of a table, with its links by their names."""

    def __init__(self, rows: list[tuple[Any, Any]], links: dict[str, tuple[Link, str]]) -> None:
        super().__init__(rows)
        self.links = links

    def __getattr__(self, name: str) -> PlainLink:
        return PlainLink(self, *self.links[name])


class PlainLink(ByKey):
    """Of each key, the records that refer to it in the field *name*."""

    def __init__(self, table: PlainTable, link: Link, name: str) -> None:
        self.table, self.link, self.name = table, link, name

    def __getitem__(self, key: Any) -> Pairs:
        return Pairs(row for row in self.table.rows if key in self.link.keys({self.link.field: self.of(row[1])}))

    def of(self, value: Any) -> Any:
        return getattr(value, self.name)


def plain_tables(release: Release, content: Content, made: Callable[[str, Any], Any]) -> Any:
    """The tables as lists; *made* gives the object of a record."""
    return SimpleNamespace(
        **{
            id: PlainTable(
                [(key, made(id, record)) for key, record in sorted(content[id].items())],
                {name: (link, table.named(link.field)) for name, link in table.links.items()},
            )
            for id, table in release.tables.items()
        }
    )


def query_of(release: Release, id: str, dice: Random, *, links: bool = False) -> Question:
    """A query at random of the table *id*; with *links*, its conditions may read other tables."""
    table = release.tables[id]
    plain = [one for one in table.fields if one.kind in KINDS]
    given: dict[str, Any] = {}
    sorts = [one.name for one in plain if KINDS[one.kind].sorts and one.kind not in OPTIONAL]
    text = ""
    if dice.random() < 0.7:
        asked = [_condition(release, id, dice, given, links=links) for _ in range(dice.choice([1, 1, 2, 3]))]
        joined = dice.choice([" and ", " and ", " or "]).join(asked)
        text += f".where(lambda k, v: {joined})"
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
    return Question(id, text + dice.choice(ends), given)


def _condition(release: Release, id: str, dice: Random, given: dict[str, Any], *, links: bool) -> str:
    """A condition of records of the table *id*, whose values it adds to *given*."""
    over = list(_over_links(release, id, dice, given)) if links and dice.random() < 0.4 else []
    if over:
        return dice.choice(over)
    return _of_field(_plain(release, id, dice), "v", dice, given)


def _over_links(release: Release, id: str, dice: Random, given: dict[str, Any]) -> Iterator[str]:
    """Conditions on records that a record refers to, and on those that refer to it."""

    def asked(table: str, record: str) -> str:
        return _of_field(_plain(release, table, dice), record, dice, given)

    for one in release.tables[id].fields:
        how, _, to = one.kind.partition(":")
        name = f"v.{one.name}"
        if how == "link":
            yield f"({name} is not None and {name} in t.{to} and {asked(to, f't.{to}[{name}]')})"
        elif how == "links":
            yield f"any(o in t.{to} and {asked(to, f't.{to}[o]')} for o in {name})"
    for other in release.tables.values():
        for link_name, link in other.links.items():
            if link.target == id:
                those = f"t.{other.id}.{link_name}[k]"
                yield f"({those}.count() > {dice.randrange(3)})"
                yield f"(not {those})"
                yield f"{dice.choice(['any', 'all'])}({asked(other.id, 'w')} for w in {those}.values())"


def _plain(release: Release, id: str, dice: Random) -> Field:
    """A field of the table that is no link."""
    return dice.choice([one for one in release.tables[id].fields if one.kind in KINDS])


def _of_field(one: Field, record: str, dice: Random, values: dict[str, Any]) -> str:
    """A condition on a field of *record*, which is true or false of any; its value gets a name in *values*."""
    value, given = f"{record}.{one.name}", f"given{len(values)}"
    wanted = KINDS[one.kind].value(dice)
    values[given] = dice.choice(wanted or [""]) if one.kind == "tags" else wanted
    if one.kind == "tags":
        tests = [f"{given} in {value}", f"{given} not in {value}", f"len({value}) > 1", f"not {value}"]
        return f"({dice.choice(tests)})"
    found = [f"{value} == {given}", f"{value} != {given}", f"{value} in ({given},)", f"not {value}", value]
    if one.kind in OPTIONAL:
        found += [f"{value} is None", f"{value} is not None"]
        if wanted is not None:
            found.append(f"{value} is not None and {value} >= {given}")
    else:
        found += [f"{value} {sign} {given}" for sign in ("<", "<=", ">", ">=")]
    if one.kind == "str":
        found += [f"{value}.startswith({given})", f"{value}.casefold() == {given}.casefold()"]
    return f"({dice.choice(found)})"
