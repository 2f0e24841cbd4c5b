# ruff: noqa: E501  # lists of expressions
"""Random schemas, writes and queries, each beside the same over plain dicts; `python tests/query_fuzz.py` goes on.

A seed makes a schema: three tables with or without links, indexes of every kind, a feed, records that expire, any of
the formats. Then blocks of writing and of reading take turns, in which the same queries are asked again and again, so
that cached plans meet every state. The file is opened anew with more indexes, links and fields, also beside the one
that is open, and another process writes, with the same declarations or without them.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import datetime
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import new_class
from typing import Annotated, Any, NamedTuple, Optional

from bounds import lowered
from plain_rows import ByKey, Pairs, Records

import zlmdb
from zlmdb import desc

FORMATS: dict[str, Any] = {
    "msgpack": zlmdb.Msgpack, "cbor": zlmdb.Cbor, "json": zlmdb.Json, "flat": zlmdb.FlatBuffers, "pickle": zlmdb.Pickle,
}  # fmt: skip


@dataclass
class Author:
    name: str
    country: str
    age: int
    mentor: Optional[int] = None


@dataclass
class Book:
    title: str
    author: int
    year: int
    price: float = 0.0
    editor: Optional[int] = None
    helpers: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    sold: bool = False
    until: Optional[float] = None
    place: Optional[str] = None
    day: datetime.date = datetime.date(2020, 1, 1)


@dataclass
class Note:
    book: Optional[int]
    text: str
    stars: int


@dataclass
class LaterBook:
    """A renamed field, and one more."""

    title: str
    author: int
    written: Annotated[int, zlmdb.Was("year")]
    price: float = 0.0
    editor: Optional[int] = None
    helpers: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    sold: bool = False
    until: Optional[float] = None
    place: Optional[str] = None
    day: datetime.date = datetime.date(2020, 1, 1)
    pages: int = 7


class Link(NamedTuple):
    name: str
    source: str
    field: str
    target: str
    on_delete: str
    each: bool = False

    def keys(self, value: Any) -> list[int]:
        found = getattr(value, self.field)
        return [] if found is None else found if isinstance(found, list) else [found]


LINKS = [
    Link("by_mentor", "authors", "mentor", "authors", "set_none"),
    Link("by_author", "books", "author", "authors", "restrict"),
    Link("by_author", "books", "author", "authors", "cascade"),
    Link("by_editor", "books", "editor", "authors", "set_none"),
    Link("by_editor", "books", "editor", "authors", "cascade"),
    Link("by_helper", "books", "helpers", "authors", "set_none", True),
    Link("by_helper", "books", "helpers", "authors", "cascade", True),
    Link("by_book", "notes", "book", "books", "cascade"),
    Link("by_book", "notes", "book", "books", "set_none"),
    Link("by_book", "notes", "book", "books", "restrict"),
]

INDEXES: dict[str, dict[str, Callable[[], Any]]] = {
    "authors": {
        "by_name": lambda: zlmdb.Index[str]("name"),
        "by_fold": lambda: zlmdb.Index[str]("name.casefold()"),
        "by_country": lambda: zlmdb.Index[str]("country"),
        "by_both": lambda: zlmdb.Index[tuple[str, int]]("country", desc("age")),
        "by_age": lambda: zlmdb.Index[int]("age", carries=("country", "mentor")),
        "old": lambda: zlmdb.Index[str]("country", where=lambda a: a.age >= 3),
    },
    "books": {
        "by_year": lambda: zlmdb.Index[int]("year"),
        "by_year_covering": lambda: zlmdb.Index[int]("year", carries=("title", "price", "place")),
        "by_title": lambda: zlmdb.Index[str]("title.casefold()"),
        "by_place": lambda: zlmdb.Index[str]("place"),
        "by_place_year": lambda: zlmdb.Index[tuple[str, int]]("place", "year"),
        "by_price": lambda: zlmdb.Index[float]("price"),
        "by_word": lambda: zlmdb.Index[str]("words", each=True),
        "by_sold": lambda: zlmdb.Index[bool]("sold"),
        "sold_years": lambda: zlmdb.Index[int]("year", where=lambda b: b.sold),
        "placed": lambda: zlmdb.Index[int]("author", where=lambda b: b.place is not None),
        "newest": lambda: zlmdb.Index[tuple[int, str]](desc("year"), "title"),
        "shout": lambda: zlmdb.Index[str](lambda b: b.title.upper(), version=1),
        "by_day": lambda: zlmdb.Index[datetime.date]("day"),
        "newest_of": lambda: zlmdb.Index[tuple[int, int]]("author", desc("year")),
        "plain_author": lambda: zlmdb.Index[int]("author"),
    },
    "notes": {
        "by_stars": lambda: zlmdb.Index[int]("stars"),
        "by_text": lambda: zlmdb.Index[tuple[int, str]]("stars", "text"),
    },
}


class Spec(NamedTuple):
    """What a schema declares: all of it can be told to another process as its `repr`."""

    formats: tuple[str, str, str]
    links: tuple[int, ...]
    indexes: tuple[tuple[str, str], ...]
    feed: bool = False
    expires: bool = False
    later: bool = False

    def schema(self) -> Any:
        models = {"authors": Author, "books": LaterBook if self.later else Book, "notes": Note}
        classes: dict[str, Any] = {}
        for number, (name, model) in enumerate(models.items()):
            members = {link.name: made for link, made in self._links(name)}
            for table, index in self.indexes:
                if table == name and index not in members:
                    members[index] = self._renamed(INDEXES[table][index]())
            options: dict[str, Any] = {"feed": True} if self.feed else {}
            if self.expires and name == "books":
                options["expires"] = "until"
            classes[name] = new_class(
                name.title(), (zlmdb.Table[int, FORMATS[self.formats[number]][model]],), options,
                lambda space, members=members: space.update(members),
            )  # fmt: skip
        return type("Store", (zlmdb.Schema,), {"__annotations__": classes})

    def _renamed(self, index: Any) -> Any:
        if self.later:
            index._fields = tuple("written" if one == "year" else one for one in index._fields)
        return index

    def _links(self, name: str) -> Iterator[tuple[Link, Any]]:
        for link in (LINKS[number] for number in self.links):
            if link.source == name:
                more = {"each": True} if link.each else {}
                yield link, zlmdb.ForeignKey[link.target.title()](link.field, on_delete=link.on_delete, **more)


def spec_of(chance: Random) -> Spec:
    links: dict[str, int] = {}
    for number, link in enumerate(LINKS):
        if chance.random() < 0.4:
            links[link.name] = number
    expires = chance.random() < 0.3
    if expires and "by_book" in links:
        links["by_book"] = len(LINKS) - 1  # what becomes of links to what has expired is not said for the others
    indexes = [(t, name) for t, found in INDEXES.items() for name in found if chance.random() < 0.3]
    return Spec(
        tuple(chance.choice(list(FORMATS)) for _ in range(3)), tuple(links.values()), tuple(indexes),
        chance.random() < 0.3, expires,
    )  # type: ignore[arg-type]  # fmt: skip


# -- the same over plain dicts -----------------------------------------------------------------------------------------


class PlainTable(Records):
    def __getattr__(self, name: str) -> Any:
        link = next((one for one in LINKS if one.name == name), None)
        if link is None:
            raise AttributeError(name)
        return PlainIndex(self, link)


class PlainIndex(ByKey):
    def __init__(self, table: PlainTable, link: Link) -> None:
        self.table, self.link = table, link

    def __getitem__(self, key: Any) -> Pairs:
        return Pairs(row for row in self.table.rows if key in self.link.keys(row[1]))


class Model:
    """The records, and the rules of the links."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.records: dict[str, dict[int, Any]] = {"authors": {}, "books": {}, "notes": {}}

    @property
    def links(self) -> list[Link]:
        return [LINKS[number] for number in self.spec.links]

    def plain(self) -> Any:
        rows = {name: sorted(copy.deepcopy(rows).items()) for name, rows in self.records.items()}
        return type("Plain", (), {name: PlainTable(some) for name, some in rows.items()})()

    def dangles(self, table: str, key: int, value: Any) -> bool:
        old = self.records[table].get(key)
        for link in self.links:
            if link.source == table:
                known = [] if old is None else link.keys(old)
                for to in link.keys(value):
                    missing = to not in self.records[link.target] and (link.target, to) != (table, key)
                    if missing and not (self.spec.expires and link.target == "books" and to in known):
                        return True
        return False

    def put(self, table: str, key: int, value: Any) -> None:
        if self.dangles(table, key, value):
            raise Refused
        self.records[table][key] = copy.deepcopy(value)

    def delete(self, table: str, keys: Iterable[int]) -> int:
        going = {(table, key) for key in keys if key in self.records[table]}
        count, grown = len(going), True
        while grown:
            found = {
                (link.source, key)
                for link in self.links
                if link.on_delete == "cascade"
                for key, value in self.records[link.source].items()
                if any((link.target, to) in going for to in link.keys(value))
            }
            grown = not found <= going
            going |= found
        stays = [
            (n, key, value) for n, rows in self.records.items() for key, value in rows.items() if (n, key) not in going
        ]
        for name, _, value in stays:
            for link in self.links:
                restricts = link.source == name and link.on_delete == "restrict"
                if restricts and any((link.target, to) in going for to in link.keys(value)):
                    raise Refused
        for name, _, value in stays:
            for link in self.links:
                if link.source == name and link.on_delete == "set_none":
                    kept = [to for to in link.keys(value) if (link.target, to) not in going]
                    setattr(value, link.field, kept if link.each else (kept or [None])[0])
        for name, key in going:
            del self.records[name][key]
        return count


class Refused(Exception):
    """The rules refuse a statement."""


REFUSALS = (zlmdb.DanglingLink, zlmdb.StillLinked)


# -- writes ------------------------------------------------------------------------------------------------------------

NAMES = ["ann", "Ann", "bob", "", "b"]
COUNTRIES = ["NO", "SE", "DE"]
WORDS = ["x", "y", "", "z"]


def author_of(chance: Random) -> Author:
    return Author(chance.choice(NAMES), chance.choice(COUNTRIES), chance.randrange(6), maybe(chance, 8))


def maybe(chance: Random, keys: int) -> Optional[int]:
    return None if chance.random() < 0.4 else chance.randrange(keys)


def book_of(chance: Random, later: bool, now: float) -> Any:
    more: dict[str, Any] = {"written" if later else "year": chance.randrange(5)}
    if later:
        more["pages"] = chance.randrange(9)
    return (LaterBook if later else Book)(
        title=chance.choice(NAMES), author=chance.randrange(8), price=chance.choice([0.0, -0.0, 1.5, 2.0, 7.25]),
        editor=maybe(chance, 8), helpers=[chance.randrange(8) for _ in range(chance.choice([0, 0, 1, 2, 3]))],
        day=datetime.date(2018 + chance.randrange(5), chance.choice([1, 12]), chance.choice([1, 31])), words=[chance.choice(WORDS) for _ in range(chance.randrange(3))], sold=chance.random() < 0.5,
        until=chance.choice([None, None, now + 1, now + 5, now + 100]), place=chance.choice([None, "a", "ab", "b"]), **more,
    )  # fmt: skip


def note_of(chance: Random) -> Note:
    return Note(maybe(chance, 12), chance.choice(NAMES), chance.randrange(4))


class Write(NamedTuple):
    """A statement. It is told to another process as its `repr`."""

    verb: str
    table: str
    keys: tuple[int, ...]
    values: tuple[Any, ...] = ()

    def real(self, t: Any) -> None:
        table = t[self.table]
        if self.verb == "put":
            table[self.keys[0]] = copy.deepcopy(self.values[0])
        elif self.verb == "change":
            table.change(self.keys[0], lambda old: copy.deepcopy(self.values[0]), default=None)
        elif self.verb == "edit":
            if self.keys[0] in table:
                with table.edit(self.keys[0]) as record:
                    record.__dict__.update(copy.deepcopy(self.values[0]).__dict__)
        elif self.verb == "bulk":
            with t.txn.savepoint():
                table.put_many(zip(self.keys, copy.deepcopy(self.values)))
        elif self.verb == "delete":
            table.pop(self.keys[0], None)
        elif self.verb == "delete some":
            table.where(lambda k, v: k in self.keys).delete()
        elif self.verb == "replace some":
            table.where(lambda k, v: k in self.keys).change(lambda old: copy.deepcopy(self.values[0]))
        elif self.verb == "edit some":
            with t.txn.savepoint(), table.where(lambda k, v: k in self.keys).edit() as records:
                for record in records:
                    record.__dict__.update(copy.deepcopy(self.values[0]).__dict__)
        elif self.verb == "clear":
            table.clear()

    def plain(self, model: Model) -> None:
        records = model.records[self.table]
        if self.verb in ("put", "change"):
            model.put(self.table, self.keys[0], self.values[0])
        elif self.verb == "bulk":
            for key, value in zip(self.keys, self.values):
                model.put(self.table, key, value)
        elif self.verb in ("edit", "replace some", "edit some"):
            for key in sorted(set(self.keys[:1] if self.verb == "edit" else self.keys)):
                if key in records:
                    model.put(self.table, key, self.values[0])
        elif self.verb == "delete":
            model.delete(self.table, self.keys[:1])
        elif self.verb == "delete some":
            model.delete(self.table, self.keys)
        elif self.verb == "clear":
            model.delete(self.table, list(records))


VERBS = ["put"] * 12 + [
    "change",
    "edit",
    "bulk",
    "bulk",
    "delete",
    "delete",
    "delete some",
    "replace some",
    "edit some",
]


def write_of(chance: Random, later: bool, now: float) -> Write:
    verb = "clear" if chance.random() < 0.01 else chance.choice(VERBS)
    table = chance.choice(["authors", "books", "books", "notes"])
    count = chance.randrange(1, 6)
    keys = tuple(chance.randrange({"authors": 8, "books": 12, "notes": 10}[table]) for _ in range(count))
    if verb == "bulk" and chance.random() < 0.5:
        keys = tuple(sorted(set(keys)))
    make: dict[str, Callable[[], Any]] = {
        "authors": lambda: author_of(chance), "books": lambda: book_of(chance, later, now), "notes": lambda: note_of(chance),
    }  # fmt: skip
    return Write(verb, table, keys, tuple(make[table]() for _ in keys))


# -- queries -----------------------------------------------------------------------------------------------------------

CONDITIONS: dict[str, list[str]] = {
    "authors": [
        "v.country == s", "v.country in {'NO', s}", "v.age > n", "n <= v.age < n + 2", "v.age == n", "v.name == w",
        "v.name.casefold() == w.casefold()", "v.mentor is None", "v.mentor == n", "k > n", "k in (1, n, 5)",
        "v.country == s and v.age >= 3", "v.name.startswith(w[:1])", "v.name[:1] == w[:1]", "v.age in ns",
        "(v.mentor is not None and v.mentor in t.authors and t.authors[v.mentor].country == s)",
        "(v.mentor is not None and v.mentor in t.authors and t.authors[v.mentor].age > n)",
    ],
    "books": [
        "v.year == n", "v.year > n", "n - 1 < v.year <= n + 1", "v.year in ns", "v.title.casefold() == w.casefold()",
        "v.title == w", "v.place == 'a'", "v.place == f'{w}'", "(v.place is not None and v.place in (f'a{w}', f'{w}'))", "v.place is None", "(v.place is not None and v.place > 'a')", "v.price > 1.0",
        "v.price == 0.0", "v.price in (1.5, 2)", "x in v.words", "any(one == x for one in v.words)", "v.sold", "not v.sold",
        "v.sold and v.year > n", "v.author == n", "v.author in ns", "v.editor == n", "v.editor is not None", "n in v.helpers",
        "v.day.year == 2016 + n", "v.day.year >= 2016 + n", "v.day.year < 2020", "v.day.year == 2020 and v.day > date(2020, 1, 1)",
        "v.day.year == 2016 + n and v.day.month == 12", "(v.day.month == n and v.day.year == 2020 and v.day.day == 31)", "v.place is not None and v.place[:1] == w[:1]", "v.title.casefold()[:1] == w",
        "(v.author, v.year) in ((n, 1), (2, n), (n, 3))", "(v.place, v.year) in {('a', n), (None, 2)}", "v.author in (n, 2, 5)", "v.author in ns",
        "v.place is not None and v.author == n", "k < n + 3", "k == n", "len(v.words) > 1", "v.title.upper() == w.upper()",
        "(v.author in t.authors and t.authors[v.author].country == s)", "(v.author in t.authors and t.authors[v.author].age == n)",
        "(v.editor is not None and v.editor in t.authors and t.authors[v.editor].name == w)",
        "any(one in t.authors and t.authors[one].country == s for one in v.helpers)",
        "(v.editor is None or v.editor not in t.authors or t.authors[v.editor].age >= n)",
        "((y := t.authors.get(v.author)) is not None and y.country == s)", "((y := t.authors.get(v.author)) and y.age == n)",
        "((y := t.authors.get(v.author)) is None or y.country == s)", "(v.editor is not None and (y := t.authors.get(v.editor)) is not None and y.name == w)",
        "any(t.authors.get(one) is not None and t.authors.get(one).country == s for one in v.helpers)",
    ],
    "notes": [
        "v.stars == n", "v.stars > n", "v.text == w", "v.book is None", "v.book == n", "v.stars in ns",
        "(v.book is not None and v.book in t.books and t.books[v.book].year > n)",
        "(v.book is not None and (y := t.books.get(v.book)) is not None and (z := t.authors.get(y.author)) is not None and z.country == s)",
        "(v.book is not None and v.book in t.books and t.books[v.book].author in t.authors and "
        "t.authors[t.books[v.book].author].country == s)",
    ],
}  # fmt: skip
STRICT: dict[str, list[str]] = {
    "books": ["t.authors[v.author].country == s", "t.authors[v.author].age > n and v.sold", "t.authors[v.author].name != w"],
    "notes": ["v.book is not None and t.books[v.book].sold", "v.book is not None and t.books[v.book].title == w"],
    "authors": ["v.mentor is not None and t.authors[v.mentor].age < n"],
}  # fmt: skip
BACK: dict[str, list[tuple[str, str]]] = {
    "authors": [
        ("by_author", "t.books.by_author[k]"), ("by_author", "(k in t.books.by_author)"), ("by_editor", "not t.books.by_editor[k]"),
        ("by_author", "t.books.by_author[k].count() > 1"), ("by_author", "any(b.year == n for b in t.books.by_author[k].values())"),
        ("by_helper", "any(b.sold for b in t.books.by_helper[k].values())"), ("by_mentor", "t.authors.by_mentor[k].count() == 1"),
        ("by_editor", "all(b.place is None for b in t.books.by_editor[k].values())"),
    ],
    "books": [("by_book", "t.notes.by_book[k]"), ("by_book", "any(o.stars > n for o in t.notes.by_book[k].values())")],
    "notes": [],
}  # fmt: skip
GIVES: dict[str, list[str]] = {
    "authors": ["v.name", "(k, v.country, v.age)", "v", "v.mentor", "(v.name, None if v.mentor is None else t.authors.get(v.mentor))"],
    "books": [
        "v.title", "(k, v.year)", "(v.year, v.price, v.place)", "v", "v.price", "len(v.words)", "(v.title, t.authors.get(v.author))",
        "((y := t.authors.get(v.author)) is None, y and y.name)", "(y.age if (y := t.authors.get(v.author)) is not None else -1)", "(v.place or '-', v.sold)", "v.words", "(t.authors[v.author].name if v.author in t.authors else None)", "v.year",
    ],
    "notes": ["v.text", "(k, v.stars)", "v.stars", "(None if v.book is None else t.books.get(v.book))"],
}  # fmt: skip
NESTED: dict[str, list[tuple[str, str]]] = {
    "authors": [
        ("by_author", "(v.name, t.books.by_author[k].limit(2).fields(lambda b: (b.title, b.year)).all())"),
        ("by_author", "t.books.by_author[k].fields(lambda b: b.price).max()"),
        ("by_helper", "(k, t.books.by_helper[k].count())"), ("by_editor", "t.books.by_editor[k].keys().first()"),
        ("by_mentor", "t.authors.by_mentor[k].fields(lambda a: a.name).all()"),
        ("by_author", "t.books.by_author[k].where(lambda b: b.sold).order_by(lambda b: b.title).keys().all()"),
        ("by_author", "[b.title for b in t.books.by_author[k].values()]"),
    ],
    "books": [("by_book", "(v.title, t.notes.by_book[k].limit(1, 1).fields(lambda o: o.text).all())")],
    "notes": [],
}  # fmt: skip
ORDERS: dict[str, list[str]] = {
    "authors": ["v.name", "v.age", "(v.country, -v.age)", "(v.country, desc(v.age))", "desc(v.age)", "(v.country, k)", "v.name.casefold()"],
    "books": [
        "v.year", "desc(v.year)", "(desc(v.year), v.title)", "v.title.casefold()", "v.price", "(v.place is None, v.place or '')",
        "(v.sold, v.year)", "(t.authors[v.author].name if v.author in t.authors else '')", "v.author", "(v.year, desc(k))", "desc(v.year)", "(v.author, desc(v.year))",
        "(desc(v.year), k)", "v.day", "desc(v.day)", "(v.author, desc(v.price))", "(desc(v.year), v.price)",
    ],
    "notes": ["v.stars", "(v.stars, v.text)", "v.text", "desc(v.stars)"],
}  # fmt: skip
ENDS = [
    ".all()", ".count()", ".first()", ".keys().all()", ".values().all()", ".limit(3).all()", ".limit(2, 1).keys().all()",
    ".last()", ".keys().first()",
]  # fmt: skip
BOOL_END = "bool({})"


class Query:
    """A query as source, with the function that asks it of tables: real ones, or plain ones."""

    def __init__(self, chance: Random, spec: Spec) -> None:
        self.strict, self.links = False, set(spec.links)
        self.source = self.written(chance, spec)
        if spec.later:
            self.source = (
                self.source.replace("v.year", "v.written").replace("b.year", "b.written").replace("].year", "].written")
            )
        made = f"def made(t, n, s, w, x, ns):\n    return lambda: {self.source}\n"
        space: dict[str, Any] = {"desc": desc, "date": datetime.date}
        exec(compile(made, "<query>", "exec"), space)
        self.made = space["made"]

    def written(self, chance: Random, spec: Spec) -> str:
        table = chance.choice(["authors", "books", "books", "notes"])
        names = {LINKS[number].name for number in spec.links}
        made = f"t.{table}"
        backwards = chance.random() < 0.15
        if backwards:
            made += ".select(reverse=True)"
        elif chance.random() < 0.1 and "by_author" in names and table == "books":
            made += ".by_author[n]"
        elif chance.random() < 0.1 and "by_helper" in names and table == "books":
            made += ".by_helper[n]"
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            made += f".where(lambda k, v: {self.condition(chance, table, names, chance.randrange(3))})"
        ordered = chance.random() < 0.4
        if ordered:
            made += f".order_by(lambda k, v: {chance.choice(ORDERS[table])}{', reverse=True' if chance.random() < 0.3 else ''})"
        if made == f"t.{table}":
            made += ".select()"
        ending = chance.random()
        if ending < 0.4:
            if chance.random() < 0.3:
                made += f".limit({chance.randrange(5)}, {chance.randrange(3)})"
            gives = [*GIVES[table], *[give for name, give in NESTED[table] if name in names] * 2]
            made += f".fields(lambda k, v: {chance.choice(gives)})"
            return made + chance.choice([".all()", ".all()", ".first()", ".count()", ".last()"])
        if ending < 0.5:
            number = {"authors": "v.age", "books": "v.year", "notes": "v.stars"}[table]
            return (
                made
                + f".fields(lambda v: {number})"
                + chance.choice([".sum()", ".min()", ".max()", ".distinct().all()"])
            )
        if ending < 0.6:
            by = {"authors": "v.country", "books": "v.place", "notes": "v.stars"}[table]
            into = chance.choice(["g.count()", "g.keys().all()", "g.fields(lambda k, v: k).max()"])
            return made + f".group_by(lambda v: {by}, lambda g: {into})"
        return BOOL_END.format(made) if ending < 0.65 else made + chance.choice(ENDS)

    def condition(self, chance: Random, table: str, names: set[str], depth: int) -> str:
        if depth > 0:
            parts = [self.condition(chance, table, names, depth - 1) for _ in range(2)]
            return chance.choice(["({} and {})", "({} or {})", "(not {} and {})", "({} if k % 2 else {})"]).format(
                *parts
            )
        if chance.random() < 0.08:
            self.strict = True
            return f"({chance.choice(STRICT[table])})"
        back = [text for name, text in BACK[table] if name in names]
        if back and chance.random() < 0.3:
            return f"bool({chance.choice(back)})"
        return f"({chance.choice(CONDITIONS[table])})"

    def outcome(self, t: Any, given: tuple[Any, ...]) -> str:
        try:
            return repr(self.made(t, *given)())
        except KeyError:
            return "raises KeyError"
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            return f"raises {type(error).__name__}: {error}"


def given_of(chance: Random) -> tuple[Any, ...]:
    n = chance.randrange(7)
    ns: Any = chance.choice([(n, 1), [n, 3, 0], {n, 2}, (), frozenset({1, 4, 6})])
    return n, chance.choice(COUNTRIES), chance.choice(NAMES), chance.choice(WORDS), ns


# -- one run -----------------------------------------------------------------------------------------------------------


class Run:
    """One seed: a file or a database in memory, the model beside it, and the queries."""

    def __init__(self, seed: int, engine: str, directory: Optional[str], blocks: int, processes: float) -> None:
        self.chance = Random(seed)
        self.spec = spec_of(self.chance)
        self.seed, self.engine, self.directory, self.blocks = seed, engine, directory, blocks
        self.now = 1000.0
        self.model = Model(self.spec)
        self.path = None if directory is None else str(Path(directory) / f"db{seed}")
        self.layout: Any = "classic" if self.chance.random() < 0.3 and not self.spec.feed else "tables"
        self.db = self.opened(self.spec)
        self.queries = [Query(self.chance, self.spec) for _ in range(10)]
        self.others: list[Any] = []
        self.asked = 0
        self.process: Optional[Other] = None
        if self.path is not None and self.chance.random() < processes:
            bare = self.spec._replace(links=(), indexes=(), expires=False, feed=False)
            self.process = Other(self.path, bare if self.chance.random() < 0.3 else self.spec, self.layout)

    def opened(self, spec: Spec) -> Any:
        db = zlmdb.open(self.path, spec.schema(), layout=self.layout, durability="none")
        db.clock = lambda: self.now
        return db

    def close(self) -> None:
        for db in (self.db, *[other for other, _ in self.others]):
            db.close()
        if self.process is not None:
            self.process.end()

    def __call__(self) -> int:
        try:
            self.fill()
            for _ in range(self.blocks):
                if self.process is not None and self.chance.random() < 0.5:
                    self.write_elsewhere(self.process)
                elif self.chance.random() < 0.2:
                    self.write_singly()
                else:
                    self.write_block()
                if self.spec.expires and self.chance.random() < 0.4:
                    self.later()
                self.read_block()
                if self.path is not None and self.chance.random() < 0.2:
                    self.evolve()
                if self.chance.random() < 0.1:
                    self.queries.append(Query(self.chance, self.spec))
            if self.spec.feed and not self.spec.later:
                self.replay()
            report = self.db.check()
            assert report.ok, report.problems
        except Exception as error:
            raise AssertionError(f"seed {self.seed} on {self.engine}: {self.spec}\n{error}") from error
        finally:
            self.close()
        return self.asked

    def replay(self) -> None:
        """The change feeds, from the beginning, come to what the tables have."""
        for name, rows in self.model.records.items():
            found: dict[int, Any] = {}
            for change in self.db.changes(name, timeout=0):
                if change.key is None:
                    found.clear()
                    continue
                assert repr(change.old) == repr(found.get(change.key)), (name, change, found)
                if change.new is None:
                    del found[change.key]
                else:
                    found[change.key] = change.new
            if self.spec.expires and name == "books":
                found = {key: one for key, one in found.items() if one.until is None or one.until > self.now}
            assert repr(sorted(found.items())) == repr(sorted(rows.items())), (name, found, rows)

    def fill(self) -> None:
        """Records to begin with, whose links hold."""
        chance, later, now = self.chance, self.spec.later, self.now
        made = [("authors", 8, lambda: author_of(chance)), ("books", 12, lambda: book_of(chance, later, now))]
        made += [("notes", 10, lambda: note_of(chance))]
        with self.db.write() as t:
            for table, count, make in made:
                for key in range(count):
                    for _ in range(3):
                        value = make()
                        if not self.model.dangles(table, key, value):
                            self.model.put(table, key, value)
                            t[table][key] = value
                            break

    def later(self) -> None:
        """Some time passes; what has expired is gone."""
        self.now += self.chance.choice([1, 2, 6])
        books = self.model.records["books"]
        for key in [key for key, one in books.items() if one.until is not None and one.until <= self.now]:
            del books[key]

    def compare(self, t: Any, model: Model, count: int, spec: Optional[Spec] = None) -> None:
        links = set((self.spec if spec is None else spec).links)
        for name, rows in model.records.items():
            found = list(t[name].items())
            assert repr(found) == repr(sorted(rows.items())), (name, found, sorted(rows.items()))
        plain = model.plain()
        for query in self.chance.choices([one for one in self.queries if one.links <= links], k=count):
            given = given_of(self.chance)
            wanted = query.outcome(plain, given)
            found = query.outcome(t, given)
            self.asked += 1
            if found != wanted and not (query.strict and wanted == "raises KeyError"):
                raise AssertionError(
                    f"{query.source}\nwith {given} in a {'writing' if t.txn._write else 'reading'} block\n"
                    f"found  {found}\nwanted {wanted}\n{model.records}"
                )

    def read_block(self) -> None:
        for db, spec in ((self.db, self.spec), *self.others):
            if self.chance.random() < 0.1:
                asyncio.run(self.read_in_tasks(db, spec))
            else:
                with db.read() as t:
                    self.compare(t, self.model, 12, spec)

    async def read_in_tasks(self, db: Any, spec: Spec) -> None:
        """The same questions in a thread, and all authors in pages."""
        await db.aread(lambda t: self.compare(t, self.model, 12, spec))
        size, snapshot = self.chance.randrange(1, 5), self.chance.random() < 0.5
        rows = [key async for key, _ in db.arows(lambda t: t.authors, size=size, snapshot=snapshot)]
        assert rows == sorted(self.model.records["authors"])

    def statement(self, t: Any) -> None:
        write = write_of(self.chance, self.spec.later, self.now)
        before = copy.deepcopy(self.model.records)
        refused = False
        try:
            write.plain(self.model)
        except Refused:
            self.model.records, refused = before, True
        try:
            write.real(t)
        except REFUSALS as error:
            if self.spec.expires and isinstance(error, zlmdb.StillLinked):  # by a note of a book that has expired
                self.model.records = before
            elif not refused:
                raise AssertionError(f"{write} is refused: {error}\n{before}") from error
        else:
            assert not refused, (write, before)

    def write_elsewhere(self, process: Other) -> None:
        """Statements in the other process, which refuses at least what the rules refuse."""
        writes = [write_of(self.chance, process.spec.later, self.now) for _ in range(self.chance.randrange(1, 6))]
        for write, outcome in zip(writes, process.write(self.now, writes)):
            before = copy.deepcopy(self.model.records)
            refused = False
            try:
                write.plain(self.model)
            except Refused:
                refused = True
            if outcome != "done":
                self.model.records = before
            assert not (refused and outcome == "done"), (write, before)
            if process.spec == self.spec and not refused and outcome != "done":
                assert (self.spec.expires, outcome) == (True, "StillLinked"), (outcome, write, before)

    def write_singly(self) -> None:
        """Statements as transactions of their own: functions in a group of writers, or tables without a block."""
        writes = [write_of(self.chance, self.spec.later, self.now) for _ in range(self.chance.randrange(1, 6))]
        how = self.chance.choice(["alone", "alone", "submit", "arun"])
        waits: list[Any] = [None] * len(writes)
        if how == "submit":
            waits = [self.db.submit(write.real).result for write in writes]
        elif how == "arun":
            waits = [given.result for given in asyncio.run(self.in_tasks(writes))]
        for write, wait in zip(writes, waits):
            before = copy.deepcopy(self.model.records)
            refused = False
            try:
                write.plain(self.model)
            except Refused:
                self.model.records, refused = before, True
            try:
                if wait is not None:
                    wait()
                elif write.verb in ("put", "change", "delete"):
                    write.real(self.db.auto)
                else:
                    self.db.run(write.real)
            except REFUSALS as error:
                if self.spec.expires and isinstance(error, zlmdb.StillLinked):
                    self.model.records = before
                elif not refused:
                    raise AssertionError(f"{write} is refused: {error}\n{before}") from error
            else:
                assert not refused, (write, before)

    async def in_tasks(self, writes: Sequence[Any]) -> list[asyncio.Task[Any]]:
        """A task for each statement, which has ended; those of one event loop write in a group, in their order."""
        tasks = [asyncio.ensure_future(self.db.arun(write.real)) for write in writes]
        await asyncio.wait(tasks)
        return tasks

    def write_block(self) -> None:
        before, keep = copy.deepcopy(self.model.records), self.chance.random() < 0.85
        with suppress(Undo), self.db.write() as t:
            for _ in range(self.chance.randrange(1, 8)):
                if self.chance.random() < 0.15:
                    inner, undo = copy.deepcopy(self.model.records), self.chance.random() < 0.5
                    with suppress(Undo), t.txn.savepoint():
                        for _ in range(3):
                            self.statement(t)
                        if self.chance.random() < 0.5:
                            self.compare(t, self.model, 2)
                        if undo:
                            raise Undo
                    if undo:
                        self.model.records = inner
                else:
                    self.statement(t)
                if self.chance.random() < 0.3:
                    self.compare(t, self.model, 3)
            if not keep:
                raise Undo
        if not keep:
            self.model.records = before

    def evolve(self) -> None:
        """More indexes, links that hold, a renamed field; the older program may stay open, and read."""
        spec, chance = self.spec, self.chance
        more = {(t, name) for t, found in INDEXES.items() for name in found if chance.random() < 0.15}
        links = list(spec.links)
        names = {LINKS[number].name for number in links}
        for number, link in enumerate(LINKS):
            if link.name not in names and chance.random() < 0.3 and not (spec.expires and link.source != "authors"):
                rows, target = self.model.records[link.source], self.model.records[link.target]
                if all(to in target for value in rows.values() for to in link.keys(value)):
                    names.add(link.name)
                    links.append(number)
        beside = chance.random() < 0.4
        by_name = self.layout == "classic" and spec.formats[1] == "pickle"  # such pickles have the name of the class
        later = spec.later or (not beside and not by_name and chance.random() < 0.3)
        changed = spec._replace(links=tuple(links), indexes=tuple({*spec.indexes, *more}), later=later)
        if later and not spec.later:
            books = self.model.records["books"]
            for key, book in books.items():
                details = dict(book.__dict__)
                books[key] = LaterBook(written=details.pop("year"), **details)
        if self.process is not None and not beside:
            self.process.end()
            self.process = None
        if beside:
            self.others.append((self.db, spec))
            del self.others[:-2]
        else:
            self.close()
            self.others.clear()
        self.db = self.opened(changed)
        self.spec = self.model.spec = changed
        if later and not spec.later:
            self.queries = [Query(chance, changed) for _ in range(10)]
        else:
            self.queries += [Query(chance, changed) for _ in range(3)] if not beside else []


class Undo(Exception):
    """Ends a block."""


class Other:
    """Another process, which has the file open, and declares what *spec* says."""

    def __init__(self, path: str, spec: Spec, layout: str) -> None:
        self.spec = spec
        command = [sys.executable, __file__, "--serve", path, repr(spec), layout]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def write(self, now: float, writes: Sequence[Write]) -> list[str]:
        """What comes of each of *writes*, as a block each."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(repr((now, list(writes))) + "\n")
        self.process.stdin.flush()
        found: list[str] = self.process.stdout.readline().split()
        return found

    def end(self) -> None:
        self.process.communicate()


def serve(path: str, spec: Spec, layout: Any) -> None:
    """Be the other process."""
    now = 1000.0
    with zlmdb.open(path, spec.schema(), layout=layout, durability="none", create=False) as db:
        db.clock = lambda: now
        for line in sys.stdin:
            now, writes = eval(line)
            outcomes: list[str] = []
            for write in writes:
                try:
                    with db.write() as t:
                        write.real(t)
                    outcomes.append("done")
                except zlmdb.Error as error:
                    outcomes.append(type(error).__name__)
            sys.stdout.write(" ".join(outcomes) + "\n")
            sys.stdout.flush()


def run(seed: int, engine: str, blocks: int = 8, processes: float = 0.1) -> int:
    """One seed on *engine*; how many queries were compared. *processes*: how often another process writes, too."""
    chance = Random(f"bounds {seed}")
    with ExitStack() as stack:
        stack.enter_context(lowered(chance, chance.choice([0.0, 0.0, 0.2, 0.6])))
        directory = None if engine == "memory" else stack.enter_context(tempfile.TemporaryDirectory())
        return Run(seed, engine, directory, blocks, processes)()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--engine", choices=["memory", "lmdb", "both"], default="both")
    parser.add_argument("--processes", type=float, default=0.1, help="how often another process writes, too")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        path, spec, layout = given.serve
        serve(path, eval(spec), layout)
        return
    end, seed, asked = time.monotonic() + given.seconds, given.first, 0
    while time.monotonic() < end:
        for engine in ("memory", "lmdb") if given.engine == "both" else (given.engine,):
            asked += run(seed, engine, processes=given.processes)
        seed += 1
    sys.stdout.write(f"{seed - given.first} seeds, {asked} queries\n")


if __name__ == "__main__":
    import query_fuzz  # pickles name the classes of this module, in all processes alike

    query_fuzz.main()
