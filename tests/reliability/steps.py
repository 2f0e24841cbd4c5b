"""Migrations of a release at random: what a step does to the stored tables, and what to the model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple, Optional

import zlmdb

from .releases import FORMATS, KEYS, KINDS, Declared, Field, Release
from .rules import Content


class Step(NamedTuple):
    """A migration that changes each record of a table."""

    kind: str
    id: str
    """Of the table."""
    name: str
    """Of the table, in the file."""
    field: Field
    value: Any = None

    def migration(self, version: int) -> zlmdb.Migration:
        return zlmdb.Migration(version, f"{self.kind} {self.field.name} of {self.name}", self._work())

    def _work(self) -> Callable[..., None]:
        if self.kind == "removed":
            return lambda t, old: old.drop(self.name)
        if self.kind != "loop":
            return lambda t, old: old.rewrite(self.name, self._rewritten)

        def loop(t: Any) -> None:
            table = getattr(t, self.id)
            for key, value in list(table.items()):
                setattr(value, self.field.name, copy.copy(self.value))
                table[key] = value

        return loop

    def _rewritten(self, key: Any, fields: dict[str, Any]) -> Optional[dict[str, Any]]:
        """The fields of a record, by their names."""
        name = self.field.name
        if self.kind == "drop":
            return {one: value for one, value in fields.items() if one != name}
        if self.kind == "retype":
            return {**fields, name: str(fields[name])}
        if self.kind == "delete":
            return None if fields[name] == self.value else fields
        return fields

    def apply(self, content: Content) -> None:
        """The step on the model."""
        records, id = content[self.id], self.field.id
        if self.kind == "removed":
            records.clear()
        for key, record in list(records.items()):
            if self.kind == "delete":
                if record[id] == self.value:
                    del records[key]
            elif self.kind == "drop":
                del record[id]
            elif self.kind == "retype":
                record[f"{id}-text"] = str(record.pop(id))
            elif self.kind == "loop":
                record[id] = copy.copy(self.value)


def next_release(release: Release, dice: Random) -> tuple[Release, list[Step]]:
    """A later release that differs by one or two steps."""
    later = copy.deepcopy(release)
    later.risky, later.dropped_feeds, later.several_were = False, [], {}
    for table in later.tables.values():
        table.was = None
        table.fields = [one._replace(was=None) for one in table.fields]
    steps: list[Step] = []
    for _ in range(dice.choice([1, 1, 2])):
        if steps and steps[0].kind in ("delete", "loop", "removed"):  # these are alone
            break
        if not steps and dice.random() < 0.2:
            step = _removed(later, dice)
        else:
            step = _step(dice, dice.choice(list(later.tables.values())), first=not steps)
        if step is not None:
            steps.append(step)
    later.steps += [step.migration(len(later.steps) + number) for number, step in enumerate(steps, 1)]
    return later, steps


def _removed(later: Release, dice: Random) -> Optional[Step]:
    """Another table takes the place of one that nothing refers to."""
    fields = [one for table in later.tables.values() for one in table.fields]
    free = [table for table in later.tables.values() if not any(one.kind.endswith(f":{table.id}") for one in fields)]
    if not free:
        return None
    table = dice.choice(free)
    before, table.name = table.name, later._name("table_")
    table.key = dice.choice(list(KEYS))
    if table.key in ("str", "tuple"):
        table.indexes = {name: one for name, one in table.indexes.items() if not one.carries}
    return Step("removed", table.id, before, table.fields[0])


def _step(dice: Random, table: Declared, *, first: bool) -> Optional[Step]:
    """A step, and the declaration of *table* after it."""
    plain = [one for one in table.fields if one.kind in KINDS]
    numbers = [one for one in plain if one.kind == "int"]
    kind = dice.choice(["drop", "retype", "delete", "format", "loop"])
    if kind in ("retype", "delete") and not numbers:
        return None
    one = dice.choice(numbers if kind in ("retype", "delete") else plain)
    place = table.fields.index(one)
    if kind == "drop":
        if one.required or len(plain) < 3:
            return None
        del table.fields[place]
        table.forget(one.id)
    elif kind == "retype":
        default = None if one.default is None else str(one.default)
        table.fields[place] = one._replace(id=f"{one.id}-text", kind="str", default=default)
        table.forget(one.id)
    elif kind == "delete":
        if not first:
            return None  # if links forbid that, the steps before it remain done
        return Step(kind, table.id, table.name, one, dice.randrange(6))
    elif kind == "format":
        if table.format != "pickle":
            table.format = dice.choice([name for name in FORMATS if name != "pickle"])
    elif not first or any(index.unique and one.id in index.parts for index in table.indexes.values()):
        return None  # a later step has no class for the table in between; and all records get the same value
    return Step(kind, table.id, table.name, one, KINDS[one.kind].value(dice))
