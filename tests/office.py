"""Tables with links of every kind, rings and links to themselves among them; and their rules, on plain dicts.

`change` is a transaction at random on either. The tests of links run programs against the dicts; the commands of
`tests.reliability` know by these what a file must hold after any number of transactions.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

import zlmdb
from zlmdb import Checked, ForeignKey, Table


@dataclass
class Person:
    boss: Optional[int] = None
    twin: Optional[int] = None
    friends: list[int] = field(default_factory=list)


@dataclass
class Task:
    owner: int
    parent: Optional[int] = None


@dataclass
class Note:
    task: Optional[int] = None
    author: Optional[int] = None


class People(Table[int, Checked[Person]]):
    by_boss = ForeignKey["People"]("boss", on_delete="set_none")
    by_twin = ForeignKey["People"]("twin", deferred=True)
    by_friend = ForeignKey["People"]("friends", each=True, on_delete="set_none")


class Tasks(Table[int, Checked[Task]]):
    by_owner = ForeignKey["People"]("owner", on_delete="cascade")
    by_parent = ForeignKey["Tasks"]("parent", on_delete="cascade")


class Notes(Table[int, Checked[Note]]):
    by_task = ForeignKey["Tasks"]("task")
    by_author = ForeignKey["People"]("author", on_delete="set_none")


class Office(zlmdb.Schema):
    people: People
    tasks: Tasks
    notes: Notes


class Link(NamedTuple):
    source: str
    field: str
    target: str
    on_delete: str = "restrict"
    deferred: bool = False

    def keys(self, value: Any) -> list[int]:
        found = getattr(value, self.field)
        return [] if found is None else found if isinstance(found, list) else [found]


LINKS = [
    Link("people", "boss", "people", "set_none"),
    Link("people", "twin", "people", deferred=True),
    Link("people", "friends", "people", "set_none"),
    Link("tasks", "owner", "people", "cascade"),
    Link("tasks", "parent", "tasks", "cascade"),
    Link("notes", "task", "tasks"),
    Link("notes", "author", "people", "set_none"),
]

Model = dict[str, dict[int, Any]]


class Refused(zlmdb.ConstraintError):
    """The rules refuse a statement."""


def dangles(model: Model, table: str, key: int, value: Any, *, deferred: bool) -> bool:
    """Whether a link of a record leads nowhere."""
    for link in LINKS:
        if link.source == table and link.deferred == deferred:
            for to in link.keys(value):
                if to not in model[link.target] and (link.target, to) != (table, key):
                    return True
    return False


def delete(model: Model, table: str, keys: Iterable[int]) -> None:
    """The rules of a deletion, the slow way."""
    going = {(table, key) for key in keys if key in model[table]}
    grown = True
    while grown:
        found = {
            (link.source, key)
            for link in LINKS
            if link.on_delete == "cascade"
            for key, value in model[link.source].items()
            if any((link.target, to) in going for to in link.keys(value))
        }
        grown = not found <= going
        going |= found
    stays = [(name, key, value) for name in model for key, value in model[name].items() if (name, key) not in going]
    for name, _, value in stays:
        for link in LINKS:
            restricts = link.source == name and link.on_delete == "restrict"
            if restricts and any((link.target, to) in going for to in link.keys(value)):
                raise Refused
    for name, _, value in stays:
        for link in LINKS:
            if link.source == name and link.on_delete == "set_none":
                kept = [to for to in link.keys(value) if (link.target, to) not in going]
                now: Any = kept if link.field == "friends" else (kept or [None])[0]
                setattr(value, link.field, now)
    for name, key in going:
        del model[name][key]


def change(tables: Any, seed: int) -> None:
    """A few statements at random, on the tables of a transaction or on a `Plain`; what the rules refuse is left out."""
    dice = random.Random(seed)
    for _ in range(dice.randrange(1, 4)):
        key, other, third = (dice.randrange(1, 7) for _ in range(3))
        with suppress(zlmdb.ConstraintError):
            kind = dice.randrange(6)
            if kind == 0:
                tables.people[key] = Person(None, other, [])
                if other not in tables.people:  # a deferred link may lead nowhere until the commit
                    tables.people[other] = Person(third if third in tables.people else None)
            elif kind == 1:
                tables.people[key] = Person(other, None, [third, other])
            elif kind == 2:
                tables.tasks[key] = Task(other, third if dice.random() < 0.5 else None)
            elif kind == 3:
                tables.notes[key] = Note(other if dice.random() < 0.5 else None, third)
            elif kind == 4:
                tables.people.pop(key, None)
            else:
                dice.choice([tables.tasks, tables.notes]).pop(key, None)


class Plain:
    """The tables as dicts that follow the rules, and refuse what a transaction refuses; twins are not looked at."""

    def __init__(self) -> None:
        model: Model = {"people": {}, "tasks": {}, "notes": {}}
        self.people, self.tasks, self.notes = (PlainTable(name, model) for name in model)


class PlainTable:
    """One of the dicts."""

    def __init__(self, name: str, model: Model) -> None:
        self._name, self._model = name, model

    def __contains__(self, key: int) -> bool:
        return key in self._model[self._name]

    def __setitem__(self, key: int, value: Any) -> None:
        if dangles(self._model, self._name, key, value, deferred=False):
            raise Refused
        self._model[self._name][key] = copy.deepcopy(value)

    def pop(self, key: int, default: None) -> None:
        """Delete a record, if there is one, with what the links declare."""
        delete(self._model, self._name, [key])

    def items(self) -> Any:
        """The records."""
        return self._model[self._name].items()
