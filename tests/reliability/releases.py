"""What a program declares, release after release: three tables at random, and what the next release changes of them.

A field or a table has an id for ever, and a name that a release may change. The model of `rules` knows ids only.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass, replace
from datetime import date
from random import Random
from types import new_class
from typing import Annotated, Any, NamedTuple, Optional
from uuid import UUID

import zlmdb
from zlmdb import desc

FORMATS: dict[str, Any] = {
    "msgpack": zlmdb.Msgpack,
    "cbor": zlmdb.Cbor,
    "json": zlmdb.Json,
    "flat": zlmdb.FlatBuffers,
    "pickle": zlmdb.Pickle,
}

KEYS: dict[str, tuple[Any, Callable[[int], Any]]] = {
    "int": (int, lambda n: n - 3),
    "str": (str, lambda n: "k" * (n % 3) + str(n)),
    "uuid": (UUID, lambda n: UUID(int=n * 7919 % 1009)),
    "tuple": (tuple[str, int], lambda n: ("ab"[n % 2], n)),
    "date": (date, lambda n: date(2000, 1, 1 + n)),
}
"""Of a type of keys, the type itself and the key of a number."""

WORDS = ["", "a", "A", "ab", "b", "\u00e9", "stra\u00dfe", "STRASSE", "a\0"]


SEVERAL = ("sets", "lists")
"""The ids of the tables with several values of a key."""


class Field(NamedTuple):
    id: str
    name: str
    kind: str
    default: Any = None
    required: bool = False
    was: Optional[str] = None


class Kind(NamedTuple):
    """Of a kind of field: its type, a value at random, and whether it has an order to index."""

    type: Any
    value: Callable[[Random], Any]
    sorts: bool = True


KINDS: dict[str, Kind] = {
    "int": Kind(int, lambda dice: dice.randrange(6)),
    "maybe": Kind(Optional[int], lambda dice: dice.choice([None, 0, 1, 2])),
    "str": Kind(str, lambda dice: dice.choice(WORDS)),
    "text": Kind(Optional[str], lambda dice: dice.choice([None, *WORDS[:4]])),
    "float": Kind(float, lambda dice: dice.choice([0.0, 0.5, -1.0, 1e9])),
    "date": Kind(date, lambda dice: date(1999 + dice.randrange(3), 1, 1)),
    "bool": Kind(bool, lambda dice: dice.random() < 0.5),
    "tags": Kind(list[str], lambda dice: [dice.choice(WORDS[:5]) for _ in range(dice.randrange(4))], sorts=False),
    "bytes": Kind(bytes, lambda dice: dice.choice([b"", b"a", b"ab", b"\xff"])),
}


class Index(NamedTuple):
    """An index of fields by their ids."""

    parts: tuple[str, ...]
    down: bool = False
    fold: bool = False
    each: bool = False
    unique: bool = False
    where: Optional[str] = None
    carries: tuple[str, ...] = ()

    def keys(self, record: dict[str, Any]) -> list[tuple[Any, ...]]:
        """The index keys of a record, as the model has it."""
        if self.where is not None and not record[self.where]:
            return []
        if self.each:
            return [(one,) for one in dict.fromkeys(record[self.parts[0]])]
        key = tuple(record[part] for part in self.parts)
        if self.fold and key[0] is not None:
            key = (key[0].casefold(), *key[1:])
        return [] if None in key else [key]


class Link(NamedTuple):
    """A link of a field to the table *target*, by their ids."""

    field: str
    target: str
    on_delete: str
    deferred: bool = False
    each: bool = False

    def keys(self, record: dict[str, Any]) -> list[Any]:
        found = record[self.field]
        return [] if found is None else found if self.each else [found]


@dataclass
class Declared:
    """A table as one release declares it."""

    id: str
    name: str
    key: str
    format: str
    checked: bool
    fields: list[Field]
    indexes: dict[str, Index] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    feed: bool = False
    expires: bool = False
    was: Optional[str] = None

    def named(self, id: str) -> str:
        return next(one.name for one in self.fields if one.id == id)

    def forget(self, id: str) -> None:
        """Have no index of the field *id*."""
        self.indexes = {
            name: one for name, one in self.indexes.items() if id not in (*one.parts, *one.carries, one.where)
        }

    def as_stored(self) -> Declared:
        """Without the names that it and its fields had before."""
        return replace(self, was=None, fields=[one._replace(was=None) for one in self.fields])

    def has_all_of(self, stored: Declared) -> bool:
        """Whether a program with this declaration may write to a table that the file has as *stored*.

        It may have indexes and links that the file no longer has.
        """
        both = self.as_stored(), stored.as_stored()
        own, other = (replace(one, indexes={}, links={}) for one in both)
        return own == other and all(
            {**mine, **theirs} == mine for mine, theirs in ((self.indexes, stored.indexes), (self.links, stored.links))
        )


class Release:
    """Three tables; `next` is a later release, and `declared` what Python declares for this one."""

    def __init__(self, dice: Random, *, classic: bool = False) -> None:
        self.count = 0
        self.feeds = not classic
        self.formats = [name for name in FORMATS if not classic or name != "pickle"]  # of classes that can be imported
        self.tables: dict[str, Declared] = {}
        self.dropped_feeds: list[str] = []
        self.risky = False
        self.several_were: dict[str, str] = {}
        self.steps: list[zlmdb.Migration] = []
        self.several: dict[str, tuple[str, str]] = {}
        """Of the tables "sets" and "lists", as far as there are any, the kind of the keys and the name."""
        for id in SEVERAL:
            if dice.random() < 0.4:
                self.several[id] = dice.choice(list(KEYS)), id
        for id in "abc":
            self.tables[id] = Declared(
                id, f"table_{id}", dice.choice(list(KEYS)), dice.choice(self.formats), dice.random() < 0.3,
                [
                    Field(f"{id}{n}", f"f{n}", dice.choice(list(KINDS)), required=n == 0)
                    for n in range(2 + dice.randrange(4))
                ],
                feed=dice.random() < 0.4 and self.feeds,
            )  # fmt: skip
            self.tables[id].fields = [
                one._replace(default=KINDS[one.kind].value(dice)) if not one.required else one
                for one in self.tables[id].fields
            ]
        self.expiring = dice.choice([None, None, "leaf", "hub"])
        if self.expiring is not None:
            table = self.tables["c" if self.expiring == "leaf" else "a"]
            table.expires = True
            table.fields.append(Field("until", "until", "until"))
        for id in "abc":
            for number in range(dice.randrange(3)):
                self._add_link_field(dice, self.tables[id], number)
            for _ in range(dice.randrange(4)):
                self._add_index(dice, self.tables[id])

    def _name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def type_of(self, kind: str) -> Any:
        if kind in KINDS:
            return KINDS[kind].type
        if kind == "until":
            return Optional[float]
        how, _, target = kind.partition(":")
        key = KEYS[self.tables[target].key][0]
        return Optional[key] if how == "link" else list[key]

    # -- what releases add ------------------------------------------------------------------------------------------

    def _add_link_field(self, dice: Random, table: Declared, number: int) -> None:
        target = dice.choice("ab" if self.expiring == "leaf" else "abc")
        each = dice.random() < 0.3
        name = self._name("ref")
        one = Field(f"{table.id}-{name}", name, f"{'links' if each else 'link'}:{target}", [] if each else None)
        table.fields.append(one)
        if dice.random() < 0.8:
            table.links[self._name("of_")] = self._link(dice, one)

    def _link(self, dice: Random, one: Field) -> Link:
        how, _, target = one.kind.partition(":")
        rules = ["cascade", "set_none"] if self.expiring == "hub" else ["restrict", "cascade", "set_none"]
        return Link(one.id, target, dice.choice(rules), self.expiring != "hub" and dice.random() < 0.2, how == "links")

    def _add_index(self, dice: Random, table: Declared) -> None:
        sorted_ones = [one for one in table.fields if one.kind in KINDS and KINDS[one.kind].sorts]
        tags = [one for one in table.fields if one.kind == "tags"]
        flags = [one for one in table.fields if one.kind in ("bool", "int", "str", "tags")]
        where = dice.choice(flags).id if flags and dice.random() < 0.2 else None
        if tags and dice.random() < 0.3:
            table.indexes[self._name("by_")] = Index((dice.choice(tags).id,), each=True, where=where)
            return
        if not sorted_ones:
            return
        parts = dice.sample(sorted_ones, min(len(sorted_ones), dice.choice([1, 1, 2])))
        fixed = table.key in ("int", "uuid", "date")
        index = Index(
            tuple(one.id for one in parts),
            dice.random() < 0.3,
            parts[0].kind in ("str", "text") and dice.random() < 0.5,
            False,
            dice.random() < 0.15,
            where,
            tuple(one.id for one in dice.sample(table.fields, min(2, len(table.fields))))
            if fixed and dice.random() < 0.3
            else (),
        )
        if index.unique:
            index = index._replace(carries=())
        table.indexes[self._name("by_")] = index

    def next(self, dice: Random) -> Release:
        """A later release; what may be refused by records, a unique index or a link, makes it `risky`."""
        later = copy.deepcopy(self)
        later.risky, later.dropped_feeds = False, []
        for table in later.tables.values():
            table.was = None
            table.fields = [one._replace(was=None) for one in table.fields]
        for _ in range(dice.randrange(1, 4)):
            later._change(dice, dice.choice(list(later.tables.values())))
        for table in later.tables.values():
            if later.risky and table.expires and table.was is not None:  # it has its new name even if that is refused
                table.was, table.name = None, table.was
        later.several_were = {}
        for id in SEVERAL:
            if id not in self.several and dice.random() < 0.2:
                later.several[id] = dice.choice(list(KEYS)), id
            elif id in self.several and dice.random() < 0.2 and not later.risky:
                key, name = self.several[id]
                later.several_were[id] = name
                later.several[id] = key, later._name(f"{id}_")
        later.dropped_feeds = [
            table.name for id, table in self.tables.items() if table.feed and not later.tables[id].feed
        ]
        return later

    def _change(self, dice: Random, table: Declared) -> None:
        what = dice.randrange(9)
        if what == 0:
            kind = dice.choice(list(KINDS))
            nothing = table.format == "flat" and type(None) in getattr(KINDS[kind].type, "__args__", ())
            name = self._name("g")
            default = None if nothing else KINDS[kind].value(dice)
            table.fields.append(Field(f"{table.id}-{name}", name, kind, default))
        elif what == 1:
            place = dice.randrange(len(table.fields))
            one = table.fields[place]
            if one.was is None and one.id != "until":
                table.fields[place] = one._replace(name=self._name("h"), was=one.name)
        elif what == 2 and table.was is None:
            table.was, table.name = table.name, self._name("table_")
        elif what in (3, 4):
            before = set(table.indexes)
            self._add_index(dice, table)
            self.risky |= any(table.indexes[one].unique for one in set(table.indexes) - before)
        elif what == 5 and table.indexes:
            del table.indexes[dice.choice(list(table.indexes))]
        elif what == 6 and not self.risky:
            linked = {link.field for link in table.links.values()}
            free = [one for one in table.fields if ":" in one.kind and one.id not in linked]
            if free:
                table.links[self._name("of_")] = self._link(dice, dice.choice(free))
                self.risky = True
        elif what == 7 and table.links:
            del table.links[dice.choice(list(table.links))]
        elif what == 8:
            table.feed = self.feeds and not table.feed

    def as_stored(self) -> dict[str, Declared]:
        """The tables without the names that they and their fields had before."""
        return {id: table.as_stored() for id, table in self.tables.items()}

    def lacking(self, dice: Random) -> Release:
        """A release that lacks some declarations of this one."""
        other = copy.deepcopy(self)
        for table in other.tables.values():
            table.indexes = {name: one for name, one in table.indexes.items() if dice.random() < 0.8}
            table.links = {name: one for name, one in table.links.items() if dice.random() < 0.8}
            table.feed &= dice.random() < 0.8
            table.expires &= dice.random() < 0.8
        return other

    def complete(self, id: str, records: dict[Any, dict[str, Any]]) -> None:
        """Give *records* of an earlier release the fields that they lack."""
        for record in records.values():
            for one in self.tables[id].fields:
                if one.id not in record:
                    record[one.id] = copy.copy(one.default)

    # -- what Python declares ---------------------------------------------------------------------------------------

    def declared(self) -> tuple[Any, dict[str, Any]]:
        """The schema class, and the new model class of each table."""
        classes: dict[str, Any] = {}
        models = {id: self.model(table) for id, table in self.tables.items()}
        for table in self.tables.values():
            model = models[table.id]
            value = FORMATS[table.format][model]
            if table.checked:
                value = zlmdb.Checked[value]
            options: dict[str, Any] = {"name": table.name}
            if table.feed:
                options["feed"] = zlmdb.Feed(acknowledged=True) if table.id == "b" else True
            if table.expires:
                options["expires"] = "until"
            if table.was is not None:
                options["was"] = table.was
            members = {name: self._index(table, one) for name, one in table.indexes.items()}
            members |= {name: self._foreign(table, one) for name, one in table.links.items()}
            classes[table.id] = new_class(
                f"Table_{table.id}", (zlmdb.Table[KEYS[table.key][0], value],), options,
                lambda space, members=members: space.update(members),
            )  # fmt: skip
        for id, (key, name) in self.several.items():
            made: Any = zlmdb.SetTable[KEYS[key][0], str] if id == "sets" else zlmdb.ListTable[KEYS[key][0], int]
            named = {"name": name} | ({"was": self.several_were[id]} if id in self.several_were else {})
            classes[id] = new_class(f"Table_{id}", (made,), named)
        body = {"__annotations__": classes, "migrations": tuple(self.steps)}
        return type("Store", (zlmdb.Schema,), body), models

    def model(self, table: Declared) -> Any:
        """The model class of a table."""
        details: list[Any] = []
        for one in table.fields:
            kind = self.type_of(one.kind)
            if one.was is not None:
                kind = Annotated[kind, zlmdb.Was(one.was)]
            if one.required:
                details.append((one.name, kind))
            elif isinstance(one.default, list):
                details.append((one.name, kind, field(default_factory=lambda given=one.default: list(given))))
            else:
                details.append((one.name, kind, field(default=one.default)))
        return make_dataclass(f"Record_{table.id}", details)

    def _index(self, table: Declared, one: Index) -> Any:
        names: list[Any] = [table.named(part) for part in one.parts]
        if one.fold:
            names[0] += ".casefold()"
        if one.down:
            names[-1] = desc(names[-1])
        options: dict[str, Any] = {"each": True} if one.each else {}
        if one.where is not None:
            options["where"] = _truth_of(table.named(one.where))
        if one.carries:
            options["carries"] = tuple(table.named(part) for part in one.carries)
        return (zlmdb.UniqueIndex if one.unique else zlmdb.Index)(*names, **options)

    def _foreign(self, table: Declared, one: Link) -> Any:
        options: dict[str, Any] = {"on_delete": one.on_delete}
        if one.deferred:
            options["deferred"] = True
        if one.each:
            options["each"] = True
        return zlmdb.ForeignKey[f"Table_{one.target}"](table.named(one.field), **options)


def _truth_of(name: str) -> Callable[[Any], Any]:
    return eval(f"lambda record: record.{name}")  # a function that can be followed names the field in its code
