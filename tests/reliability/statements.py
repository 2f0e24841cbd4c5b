"""Statements on the tables of a release: chosen at random, carried out by the tables, and by plain dicts."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple, Optional

from . import rules
from .releases import KEYS, KINDS, SEVERAL, WORDS, Declared, Field, Release

ONE_KEY = ("put", "put", "put_new", "replace", "setdefault", "change", "edit", "pop", "del")
MANY = ("put_many", "update", "clear", "delete", "change_all", "edit_all")

SIZE = 12
"""So many different keys has a table at most."""


class Statement(NamedTuple):
    """A statement on a table, with its arguments; it is the same on both sides and in another process."""

    kind: str
    id: str
    args: tuple[Any, ...]


class Chosen(NamedTuple):
    """Some records of a table: which, in which order, and how many of them."""

    tests: tuple[tuple[str, bool, Any], ...]
    """A field, whether it is equal, and to what."""
    every: bool
    """Whether all tests must hold, or any."""
    order: Optional[str]
    reverse: bool
    limit: Optional[int]
    skip: int

    def keys(self, records: dict[Any, rules.Record]) -> list[Any]:
        some = all if self.every else any
        found = sorted(
            key
            for key, record in records.items()
            if some((record[field] == wanted) == equal for field, equal, wanted in self.tests)
        )
        if self.order is not None:
            found.sort(key=lambda key: records[key][self.order])
            if self.reverse:
                found.reverse()
        return found if self.limit is None else found[self.skip : self.skip + self.limit]


class Chooser:
    """Chooses statements at random, by what the tables have now."""

    def __init__(self, dice: Random, release: Release, content: rules.Content, now: float) -> None:
        self.dice, self.release, self.content, self.now = dice, release, content, now

    def statement(self) -> Statement:
        dice = self.dice
        if self.release.several and dice.random() < 0.15:
            return self.of_several(dice.choice(list(self.release.several)))
        id = dice.choice("abc")
        table = self.release.tables[id]
        kind = dice.choice([*ONE_KEY, *ONE_KEY, *MANY])
        if kind in ("pop", "del"):
            return Statement(kind, id, (self.key(id),))
        if kind in ("change", "edit"):
            changed = {one.id: value for one, value in self.some_fields(table)}
            return Statement(kind, id, (self.key(id), changed if kind == "edit" or dice.random() < 0.8 else None))
        if kind in ONE_KEY:
            return Statement(kind, id, (self.key(id), self.record(table)))
        if kind in ("put_many", "update"):
            return Statement(kind, id, ([(self.key(id), self.record(table)) for _ in range(dice.randrange(5))],))
        if kind == "clear":
            return Statement(kind, id, ()) if dice.random() < 0.3 else self.statement()
        plain = [one for one in table.fields if one.kind in KINDS]
        tests = [(one.id, dice.random() < 0.7, KINDS[one.kind].value(dice)) for one in dice.choices(plain, k=2)]
        sorts = [one.id for one in plain if one.kind in ("int", "str", "float", "date", "bool", "bytes")]
        chosen = Chosen(
            tuple(tests[: dice.choice([1, 1, 2])]),
            dice.random() < 0.6,
            dice.choice(sorts) if sorts and dice.random() < 0.4 else None,
            dice.random() < 0.5,
            dice.choice([None, None, 1, 3]),
            dice.randrange(2),
        )
        if kind == "delete":
            return Statement(kind, id, (chosen,))
        changed = {one.id: value for one, value in self.some_fields(table) if one.kind in KINDS}
        return Statement(kind, id, (chosen, changed))

    def of_several(self, id: str) -> Statement:
        """A statement on a set or a list of values."""
        dice, key = self.dice, KEYS[self.release.several[id][0]][1](self.dice.randrange(4))
        values: list[Any] = WORDS if id == "sets" else list(range(5))
        kind = dice.choice(["add", "add", "discard", "several", "several", "append", "clear", "del", "drop"])
        if kind == "append" and id == "sets":
            kind = "add"
        if kind == "drop" and dice.random() < 0.7:
            kind = "add"
        given = [dice.choice(values) for _ in range(dice.randrange(5))] if kind == "several" else dice.choice(values)
        return Statement(kind, id, (key, given))

    def some_fields(self, table: Declared) -> Iterator[tuple[Field, Any]]:
        whole = self.record(table)
        for one in self.dice.sample(table.fields, min(len(table.fields), self.dice.choice([1, 1, 2]))):
            yield one, whole[one.id]

    def record(self, table: Declared) -> rules.Record:
        """A record at random, whose links mostly lead to records."""
        dice, found = self.dice, {}
        for one in table.fields:
            if one.kind in KINDS:
                found[one.id] = KINDS[one.kind].value(dice)
            elif one.kind == "until":
                found[one.id] = dice.choice([None, None, self.now + 5, self.now + 20, self.now + 1])
                waits = any(link.deferred for link in table.links.values())  # for others, at the commit
                if self.release.expiring == "leaf" and not waits and dice.random() < 0.1:
                    found[one.id] = self.now - 1
            else:
                how, _, target = one.kind.partition(":")
                if how == "link":
                    found[one.id] = self.target(target) if dice.random() < 0.7 else None
                else:
                    found[one.id] = [self.target(target) for _ in range(dice.randrange(3))]
        return found

    def target(self, id: str) -> Any:
        known = list(self.content[id])
        return self.dice.choice(known) if known and self.dice.random() < 0.85 else self.key(id)

    def key(self, id: str) -> Any:
        return KEYS[self.release.tables[id].key][1](self.dice.randrange(SIZE))


class Program:
    """What a program of one release declares, and how it carries out statements."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.schema, self.models = release.declared()

    def object(self, id: str, record: rules.Record) -> Any:
        return self.models[id](**{one.name: copy.copy(record[one.id]) for one in self.release.tables[id].fields})

    def known(self, id: str, found: Any) -> rules.Record:
        """The record of the model that an object is."""
        return {one.id: getattr(found, one.name) for one in self.release.tables[id].fields}

    def perform(self, t: Any, one: Statement) -> Any:
        """The statement on the tables of a transaction."""
        if one.id in SEVERAL:
            return _perform_several(getattr(t, one.id), one)
        table, declared = getattr(t, one.id), self.release.tables[one.id]
        names = {field.id: field.name for field in declared.fields}

        def changed(value: Any, details: rules.Record) -> Any:
            for id, new in details.items():
                setattr(value, names[id], copy.copy(new))
            return value

        if one.kind in ("pop", "del"):
            if one.kind == "pop":
                found = table.pop(one.args[0], None)
                return None if found is None else self.known(one.id, found)
            del table[one.args[0]]
            return None
        if one.kind == "change":
            details = one.args[1]
            found = table.change(one.args[0], lambda value: None if details is None else changed(value, details))
            return None if found is None else self.known(one.id, found)
        if one.kind == "edit":
            with table.edit(one.args[0]) as value:
                changed(value, one.args[1])
            return None
        if one.kind in ONE_KEY:
            key, value = one.args[0], self.object(one.id, one.args[1])
            if one.kind == "put":
                table[key] = value
                return None
            found = getattr(table, one.kind)(key, value)
            return self.known(one.id, found) if one.kind == "setdefault" else found
        if one.kind == "put_many":
            return table.put_many([(key, self.object(one.id, record)) for key, record in one.args[0]])
        if one.kind == "update":
            table.update({key: self.object(one.id, record) for key, record in one.args[0]})
            return None
        if one.kind == "clear":
            table.clear()
            return None
        chosen = one.args[0]
        given = {f"given{number}": wanted for number, (_, _, wanted) in enumerate(chosen.tests)}
        tests = [
            f"record.{names[field]} {'==' if equal else '!='} {name}"
            for name, (field, equal, _) in zip(given, chosen.tests)
        ]
        condition = (" and " if chosen.every else " or ").join(tests)
        selected = table.where(eval(f"lambda record: {condition}", given))
        if chosen.order is not None:
            by = eval(f"lambda record: record.{names[chosen.order]}")
            selected = selected.order_by(by, reverse=chosen.reverse)
        if chosen.limit is not None:
            selected = selected.limit(chosen.limit, chosen.skip)
        if one.kind == "delete":
            return selected.delete()
        if one.kind == "change_all":
            return selected.change(lambda value: changed(value, one.args[1]))
        with selected.edit() as values:
            for value in values:
                changed(value, one.args[1])
        return None


def _perform_several(table: Any, one: Statement) -> Any:
    key, given = one.args
    if one.kind == "several":
        return table[key].update(given) if one.id == "sets" else table[key].extend(given)
    if one.kind == "clear":
        return table[key].clear()
    if one.kind == "drop":
        return table.clear()
    if one.kind == "del":
        del table[key]
        return None
    return getattr(table, one.kind)(key, given)


def _apply_several(content: dict[Any, Any], one: Statement) -> Any:
    key, given = one.args
    if one.kind == "drop":
        content.clear()
        return None
    if one.kind == "del":
        del content[key]
        return None
    values = content.setdefault(key, [])
    try:
        if one.kind == "clear":
            count = len(values)
            values.clear()
            return count
        if one.kind == "discard":
            there = given in values
            if there:
                values.remove(given)
            return there
        new = given if one.kind == "several" else [given]
        if one.id == "sets":
            new = [value for value in dict.fromkeys(new) if value not in values]
        elif one.kind == "add" and given in values:
            return False
        values += new
        if one.id == "sets":
            values.sort()
            return len(new) if one.kind == "several" else bool(new)
        return True if one.kind == "add" else None
    finally:
        if not values:
            del content[key]


def apply(release: Release, content: rules.Content, one: Statement, now: float) -> Any:
    """The statement on the model; raises `rules.Refused` or KeyError. What was stored before a refusal remains."""
    if one.id in SEVERAL:
        return _apply_several(content[one.id], one)
    records = content[one.id]

    def put(key: Any, record: rules.Record) -> None:
        rules.put(release, content, one.id, key, copy.deepcopy(record))
        rules.expire(release, content, now)

    if one.kind in ("pop", "del"):
        if one.kind == "del" and one.args[0] not in records:
            raise KeyError
        found = records.get(one.args[0])
        rules.delete(release, content, one.id, [one.args[0]])
        return found if one.kind == "pop" else None
    if one.kind in ("change", "edit"):
        if one.args[0] not in records:
            raise KeyError
        if one.args[1] is None:
            rules.delete(release, content, one.id, [one.args[0]])
            return None
        new = {**records[one.args[0]], **one.args[1]}
        put(one.args[0], new)
        return new if one.kind == "change" else None
    if one.kind in ONE_KEY:
        key, record = one.args
        if one.kind == "put":
            put(key, record)
            return None
        if one.kind == "setdefault":
            found = records.get(key, record)
            if key not in records:
                put(key, record)
            return found
        if (key in records) == (one.kind == "put_new"):
            return False
        put(key, record)
        return True
    if one.kind in ("put_many", "update"):
        pairs = one.args[0] if one.kind == "put_many" else dict(one.args[0]).items()
        for key, record in pairs:
            put(key, record)
        return len(pairs) if one.kind == "put_many" else None
    if one.kind == "clear":
        rules.delete(release, content, one.id, list(records))
        return None
    chosen = one.args[0].keys(records)
    if one.kind == "delete":
        rules.delete(release, content, one.id, chosen)
        return len(chosen)
    for key in chosen:
        put(key, {**records[key], **one.args[1]})
    return len(chosen) if one.kind == "change_all" else None
