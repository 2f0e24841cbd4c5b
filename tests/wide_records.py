# ruff: noqa: E501  # lists of expressions
"""A model with fields of most types, an older shape of it, and random records, indexes and schemas of it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from types import new_class
from typing import Annotated, Any, Literal, NamedTuple, Optional
from unicodedata import normalize
from uuid import UUID

import zlmdb
from zlmdb import desc

FORMATS: dict[str, Any] = {
    "msgpack": zlmdb.Msgpack, "cbor": zlmdb.Cbor, "json": zlmdb.Json, "flat": zlmdb.FlatBuffers, "pickle": zlmdb.Pickle,
}  # fmt: skip


class Kind(enum.Enum):
    A = "a"
    B = "b"
    C = "c"


NOWHERE = UUID(int=0)


@dataclass
class Street:
    name: str
    number: Optional[int] = None


@dataclass
class Home:
    city: str
    zip: Optional[int] = None
    street: Optional[Street] = None


@dataclass
class Owner:
    name: str
    country: str
    age: Optional[int] = None
    boss: Optional[int] = None


@dataclass
class OldItem:
    """Before `Item`: it lacks fields, and one has another name."""

    name: str
    n: int = 0
    m: Optional[int] = None
    kind: Kind = Kind.A
    price: float = 0.0
    cost: Optional[float] = None
    day: date = date(2000, 1, 1)
    at: Optional[datetime] = None
    tags: list[str] = field(default_factory=list)
    home: Optional[Home] = None
    ref: Optional[int] = None
    was: int = 2
    until: Optional[float] = None
    who: int = 0
    place: UUID = NOWHERE


@dataclass
class Item:
    name: str
    n: int = 0
    m: Optional[int] = None
    kind: Kind = Kind.A
    price: float = 0.0
    cost: Optional[float] = None
    day: date = date(2000, 1, 1)
    at: Optional[datetime] = None
    tags: list[str] = field(default_factory=list)
    home: Optional[Home] = None
    ref: Optional[int] = None
    now: Annotated[int, zlmdb.Was("was")] = 2
    until: Optional[float] = None
    who: int = 0
    place: UUID = NOWHERE
    size: Optional[Literal["big", "small"]] = "big"
    dec: Decimal = Decimal(1)
    span: timedelta = timedelta(0)
    uid: Optional[UUID] = None
    raw: bytes = b"a"
    marks: Optional[frozenset[int]] = frozenset({2})
    pair: Optional[tuple[int, str]] = None
    scores: dict[str, int] = field(default_factory=dict)
    homes: list[Home] = field(default_factory=list)
    refs: Optional[list[int]] = None
    flag: bool = True
    odd: float = 1.0

    @property
    def short(self) -> str:
        return self.name[:1]

    def above(self, least: int, most: int = 9) -> bool:
        return least < self.n < most


# fmt: off
TEXTS = ["", "a", "A", "ab", "b", "stra\u00dfe", "STRASSE", "\u0130x", "i\u0307x", "\u00e9", "e\u0301", "\u00c9", "a\0", "\ufb01", "\u03c3", "\u03c2", "\uffff", "\U0001f600", "\U0010ffff"]
CITIES = ["Rome", "rome", "Oslo", ""]
MOMENTS = [datetime(2000, 1, 1, tzinfo=timezone.utc) + timedelta(hours=12 * one) for one in range(5)]
DAYS = [date(1999, 12, 30) + timedelta(days=one) for one in range(5)]
UIDS = [UUID(int=one) for one in (1, 2, 2**127)]
DECS = [Decimal(0), Decimal("1.5"), Decimal("-2"), Decimal("1.50"), Decimal(7)]
PRICES = [0.0, -0.0, 0.1, 0.2, 0.3, 1e16, 1.0, -1e16, 2.5]

# fmt: on

KEYS: dict[str, tuple[Any, Callable[[int], Any]]] = {
    "int": (int, lambda n: n - 20),
    "str": (str, lambda n: f"k{n * 7 % 100}"),
    "tuple": (tuple[str, int], lambda n: (TEXTS[n % 4], n)),
    "uuid": (UUID, lambda n: UUID(int=n * 7919 % 1009)),
    "date": (date, lambda n: date(2000, 1, 1) + timedelta(days=n)),
}


class Shape(NamedTuple):
    """An index: how it is declared, its index keys in Python, and a source of them."""

    declare: Callable[[], Any]
    keys: Callable[[Any], list[Any]]
    down: tuple[bool, ...] = ()


def _some(*parts: Any) -> list[Any]:
    return [] if None in parts else [parts]


INDEXES: dict[str, Shape] = {
    "name": Shape(lambda: zlmdb.Index[str]("name"), lambda v: _some(v.name)),
    "fold": Shape(lambda: zlmdb.Index[str]("name.casefold()"), lambda v: _some(v.name.casefold())),
    "nfkc": Shape(lambda: zlmdb.Index[tuple[str, int]]("normalize('NFKC', name).casefold()", "n"), lambda v: _some(normalize("NFKC", v.name).casefold(), v.n)),
    "upper": Shape(lambda: zlmdb.Index[tuple[int, str]]("n", "name.upper()"), lambda v: _some(v.n, v.name.upper())),
    "n": Shape(lambda: zlmdb.Index[int]("n"), lambda v: _some(v.n)),
    "n_down": Shape(lambda: zlmdb.Index[int](desc("n")), lambda v: _some(v.n), (True,)),
    "m": Shape(lambda: zlmdb.Index[int]("m"), lambda v: _some(v.m)),
    "n_m": Shape(lambda: zlmdb.Index("n", "m"), lambda v: _some(v.n, v.m)),
    "m_n_down": Shape(lambda: zlmdb.Index("m", desc("n")), lambda v: _some(v.m, v.n), (False, True)),
    "kind": Shape(lambda: zlmdb.Index("kind", "day"), lambda v: _some(v.kind, v.day)),
    "day": Shape(lambda: zlmdb.Index[date]("day"), lambda v: _some(v.day)),
    "day_down": Shape(lambda: zlmdb.Index(desc("day"), desc("name")), lambda v: _some(v.day, v.name), (True, True)),
    "at": Shape(lambda: zlmdb.Index[datetime]("at"), lambda v: _some(v.at)),
    "price": Shape(lambda: zlmdb.Index[float]("price"), lambda v: _some(v.price)),
    "cost": Shape(lambda: zlmdb.Index("cost", "n"), lambda v: _some(v.cost, v.n)),
    "tags": Shape(lambda: zlmdb.Index[str]("tags", each=True), lambda v: [(one,) for one in set(v.tags)]),
    "tags_n": Shape(lambda: zlmdb.Index[str]("tags", each=True, where=lambda v: v.n > 2), lambda v: [(one,) for one in set(v.tags)] if v.n > 2 else []),
    "city": Shape(lambda: zlmdb.Index("home.city"), lambda v: [] if v.home is None else _some(v.home.city)),
    "city_zip": Shape(lambda: zlmdb.Index("home.city.lower()", desc("home.zip")), lambda v: [] if v.home is None else _some(v.home.city.lower(), v.home.zip), (False, True)),
    "street": Shape(lambda: zlmdb.Index("home.street.number", "n"), lambda v: [] if v.home is None or v.home.street is None else _some(v.home.street.number, v.n)),
    "ref": Shape(lambda: zlmdb.Index[int]("ref"), lambda v: _some(v.ref)),
    "n_carry": Shape(lambda: zlmdb.Index[int]("n", carries=("name", "m", "price", "tags")), lambda v: _some(v.n)),
    "kind_carry": Shape(lambda: zlmdb.Index("kind", desc("n"), carries=("at", "cost", "ref")), lambda v: _some(v.kind, v.n), (False, True)),
    "m_some": Shape(lambda: zlmdb.Index[int]("n", where=lambda v: v.m is not None), lambda v: _some(v.n) if v.m is not None else []),
    "rome": Shape(lambda: zlmdb.Index[str]("name", where=lambda v: v.home is not None and v.home.city == "Rome"), lambda v: _some(v.name) if v.home is not None and v.home.city == "Rome" else []),
    "cheap": Shape(lambda: zlmdb.Index("kind", "n", where=lambda v: v.price < 1.0), lambda v: _some(v.kind, v.n) if v.price < 1.0 else []),
    "a_or_b": Shape(lambda: zlmdb.Index[int]("m", where=lambda v: v.kind is Kind.A or v.kind is Kind.B), lambda v: _some(v.m) if v.kind in (Kind.A, Kind.B) else []),
    "call": Shape(lambda: zlmdb.Index[int](lambda v: v.n % 3 or None, version=1), lambda v: _some(v.n % 3 or None)),
}  # fmt: skip
OF_OWNER = Shape(lambda: None, lambda v: _some(v.ref))
LATER: dict[str, Shape] = {
    "now": Shape(lambda: zlmdb.Index("now", "n"), lambda v: _some(v.now, v.n)),
    "size": Shape(lambda: zlmdb.Index("size", "n"), lambda v: _some(v.size, v.n)),
    "dec": Shape(lambda: zlmdb.Index[Decimal]("dec"), lambda v: _some(v.dec)),
    "span": Shape(lambda: zlmdb.Index(desc("span")), lambda v: _some(v.span), (True,)),
    "uid": Shape(lambda: zlmdb.Index("uid"), lambda v: _some(v.uid)),
    "raw": Shape(lambda: zlmdb.Index("raw", "n"), lambda v: _some(v.raw, v.n)),
    "marks": Shape(lambda: zlmdb.Index("marks", each=True), lambda v: [(one,) for one in v.marks or ()]),
    "refs": Shape(lambda: zlmdb.Index("refs", each=True), lambda v: [(one,) for one in set(v.refs or ())]),
    "flag": Shape(lambda: zlmdb.Index("flag", "n"), lambda v: _some(v.flag, v.n)),
    "late_carry": Shape(lambda: zlmdb.Index("n", carries=("marks", "scores", "now", "dec", "odd")), lambda v: _some(v.n)),
    "flagged": Shape(lambda: zlmdb.Index[int]("now", where=lambda v: v.flag), lambda v: _some(v.now) if v.flag else []),
    "no_marks": Shape(lambda: zlmdb.Index[str]("name", where=lambda v: not v.marks, carries=("uid",)), lambda v: _some(v.name) if not v.marks else []),
    "pair": Shape(lambda: zlmdb.Index[int](lambda v: None if v.pair is None else v.pair[0], version=1), lambda v: [] if v.pair is None else _some(v.pair[0])),
}  # fmt: skip


class Spec(NamedTuple):
    format: str
    key: str
    indexes: tuple[str, ...]
    owner_indexes: bool
    link: bool
    later: bool
    expires: bool

    def schema(self) -> Any:
        model = Item if self.later else OldItem
        shapes = {**INDEXES, **LATER}
        members = {f"by_{name}": shapes[name].declare() for name in self.indexes}
        if self.link:
            members["of_owner"] = zlmdb.ForeignKey["Owners"]("ref", on_delete="set_none")
            members["of_who"] = zlmdb.ForeignKey["Owners"]("who")
            members["of_place"] = zlmdb.ForeignKey["Places"]("place")
        options: dict[str, Any] = {"expires": "until"} if self.expires else {}
        items = new_class(
            "Items", (zlmdb.Table[KEYS[self.key][0], FORMATS[self.format][model]],), {"name": "items", **options},
            lambda space: space.update(members),
        )  # fmt: skip
        more = {
            "by_country": zlmdb.Index[str]("country"),
            "by_age": zlmdb.Index[int]("age"),
            "by_fold": zlmdb.Index[str]("name.casefold()"),
            "by_name": zlmdb.Index[str]("name"),
        }
        owners, places = (
            new_class(
                name, (zlmdb.Table[key, Owner],), {}, lambda space: space.update(more if self.owner_indexes else {})
            )
            for name, key in (("Owners", int), ("Places", UUID))
        )
        return type("Store", (zlmdb.Schema,), {"__annotations__": {"items": items, "owners": owners, "places": places}})


def spec_of(chance: Random) -> Spec:
    key = chance.choice(["int", "int", *KEYS])
    names = [one for one in INDEXES if key in ("int", "uuid") or not one.endswith("carry")]
    later = chance.random() < 0.5
    if later:
        names += [one for one in LATER if key in ("int", "uuid") or (not one.endswith("carry") and one != "no_marks")]
    share = chance.choice([0.0, 0.1, 0.3, 1.0])
    indexes = tuple(one for one in names if chance.random() < share)
    return Spec(
        chance.choice(list(FORMATS)),
        key,
        indexes,
        chance.random() < 0.6,
        chance.random() < 0.5,
        later,
        chance.random() < 0.2,
    )


def maybe(chance: Random, some: Iterable[Any], none: float = 0.35) -> Any:
    return None if chance.random() < none else chance.choice(list(some))


def home_of(chance: Random) -> Home:
    street = maybe(chance, [Street("s"), Street("s", 1), Street("", 3)])
    return Home(chance.choice(CITIES), maybe(chance, range(6)), street)


def item_of(chance: Random, later: bool, now: float, wide: int, nan: bool) -> Any:
    old = {
        "name": chance.choice(TEXTS), "n": chance.randrange(wide), "m": maybe(chance, range(6)), "kind": chance.choice(list(Kind)),
        "price": chance.choice(PRICES), "cost": maybe(chance, [0.1, 0.2, 0.3, -0.0, 1e9]), "day": chance.choice(DAYS), "at": maybe(chance, MOMENTS),
        "tags": [chance.choice(TEXTS[:5]) for _ in range(chance.randrange(4))], "home": home_of(chance) if chance.random() < 0.6 else None,
        "ref": maybe(chance, range(8)), "until": maybe(chance, [now + 1, now + 5, now + 1e6], 0.6), "who": chance.randrange(8), "place": UUID(int=chance.randrange(5)),
    }  # fmt: skip
    if not later:
        return OldItem(**old, was=chance.randrange(4))
    return Item(
        **old, now=chance.randrange(4), size=maybe(chance, ["big", "small"]), dec=chance.choice(DECS), span=timedelta(hours=chance.randrange(-2, 3)),
        uid=maybe(chance, UIDS), raw=chance.choice([b"", b"a", b"ab", b"b\0", b"\xff", b"\xff\xff"]), marks=maybe(chance, [frozenset(), frozenset({1}), frozenset({2, 5})]),
        pair=maybe(chance, [(1, "a"), (3, "")]), scores={one: chance.randrange(4) for one in TEXTS[:3] if chance.random() < 0.4},
        homes=[home_of(chance) for _ in range(chance.randrange(3))], refs=maybe(chance, [[], [1, 3, 1], [7]]), flag=chance.random() < 0.5,
        odd=chance.choice([0.0, -0.0, 1.0, 2.0, float("nan"), float("inf")]) if nan else 1.0,
    )  # fmt: skip
