"""The kinds of indexes, each with conditions and orders that it serves: the tests run over this list."""

from __future__ import annotations

import enum
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Callable, Literal, NamedTuple, Optional
from unicodedata import normalize

from hypothesis import strategies as st

import zlmdb
from zlmdb import desc

TEXTS = ("", "a", "b", "B", "ab", "Ab", "\u00e9", "e\u0301", "\u00c9")
LEAST = 1
CITIES = ("Rome", "Oslo", "")


class Level(enum.Enum):
    LOW = 3
    MIDDLE = 2
    HIGH = 1


@dataclass
class Home:
    city: str
    zip: Optional[int] = None


@dataclass
class Row:
    name: str
    tags: list[str] = field(default_factory=list)
    marks: Optional[frozenset[int]] = None
    price: int = 0
    state: str = "open"
    home: Optional[Home] = None
    due: Optional[int] = None
    level: Level = Level.LOW
    size: Optional[Literal["big", "small"]] = None


class Kind(NamedTuple):
    """*asks* are conditions, *orders* sort keys, for which the planner reads the index; *never* where it must not."""

    name: str
    declare: Callable[[], Any]
    asks: tuple[Callable[..., Any], ...]
    orders: tuple[Callable[..., Any], ...] = ()
    never: tuple[Callable[..., Any], ...] = ()
    never_orders: tuple[Callable[..., Any], ...] = ()


KINDS = [
    Kind(
        "each",
        lambda: zlmdb.Index[str]("tags", each=True),
        (
            lambda r: "a" in r.tags,
            lambda r: "a" in r.tags and "b" in r.tags,
            lambda r: any(tag == "b" for tag in r.tags),
            lambda r: any(tag.startswith("A") for tag in r.tags),
            lambda r: any("a" < tag <= "ab" for tag in r.tags),
            lambda r: any(tag > "b" for tag in r.tags) and any(tag < "B" for tag in r.tags),
            lambda r: any(tag in ("a", "ab") for tag in r.tags if tag != "b"),
            lambda r: "Ab" in r.tags or "ab" in r.tags,
            lambda r: r.price == 1 and "a" in r.tags,
        ),
        never=(
            lambda r: "a" not in r.tags,
            lambda r: all(tag == "a" for tag in r.tags),
            lambda r: len(r.tags) == 2,
            lambda r: r.tags == ["a"],
            lambda r: any(tag + "b" == "ab" for tag in r.tags),
        ),
    ),
    Kind(
        "each of a set that may be None",
        lambda: zlmdb.Index("marks", each=True),
        (
            lambda r: r.marks is not None and 2 in r.marks,
            lambda r: any(mark > 2 for mark in r.marks or ()),
            lambda r: r.marks is not None and any(mark in {1, 3} for mark in r.marks),
            lambda r: r.marks is not None and 1.5 in r.marks,
        ),
        never=(lambda r: r.marks is None, lambda r: not r.marks),
    ),
    Kind(
        "each of a function",
        lambda: zlmdb.Index[str](lambda r: [r.name.casefold(), *r.tags, None], version=1, each=True),
        (),
        never=(lambda r: r.name.casefold() == "a",),
    ),
    Kind(
        "casefold",
        lambda: zlmdb.Index[str]("name.casefold()"),
        (
            lambda r: r.name.casefold() == "ab",
            lambda r: r.name.casefold() in ("a", "\u00e9"),
            lambda r: r.name.casefold().startswith("a"),
            lambda r: "a" <= r.name.casefold() < "b",
            lambda r: r.name.casefold() == "AB",
        ),
        orders=(lambda r: r.name.casefold(),),
        never=(
            lambda r: r.name == "ab",
            lambda r: r.name.lower() == "ab",
            lambda r: r.name.casefold() == r.state,
            lambda r: r.name.casefold().upper() == "AB",
            lambda r: r.name[:1].casefold() == "a",
        ),
    ),
    Kind(
        "normalize and casefold, and another field",
        lambda: zlmdb.Index[tuple[str, int]]("normalize('NFKC', name).casefold()", "price"),
        (
            lambda r: normalize("NFKC", r.name).casefold() == "\u00e9",
            lambda r: unicodedata.normalize("NFKC", r.name).casefold() == "ab" and r.price > 1,
            lambda r: folded(r.name) in {"a", "b"},
        ),
        orders=(lambda r: (folded(r.name), r.price),),
        never=(
            lambda r: normalize("NFC", r.name).casefold() == "\u00e9",
            lambda r: normalize("NFKC", r.name.casefold()) == "\u00e9",
            lambda r: normalize("NFKC", r.name) == "\u00e9",
        ),
    ),
    Kind(
        "path",
        lambda: zlmdb.Index("home.city"),
        (
            lambda r: r.home is not None and r.home.city == "Rome",
            lambda r: r.home is not None and (r.home.city == "Oslo" or r.home.city.startswith("R")),
            lambda r: r.home.city == "Rome" if r.home else False,
        ),
        never=(lambda r: r.home is None, lambda r: r.home is None or r.home.city == "Rome"),
    ),
    Kind(
        "path to what may be None, and a text at a path",
        lambda: zlmdb.Index[tuple[str, int]]("home.city.lower()", "home.zip"),
        (
            lambda r: r.home is not None and r.home.city.lower() == "rome" and r.home.zip == 1,
            lambda r: (
                r.home is not None and r.home.city.lower() == "rome" and r.home.zip is not None and r.home.zip > 0
            ),
        ),
        never=(lambda r: r.home is not None and r.home.city.lower() == "rome",),
    ),
    Kind(
        "partial",
        lambda: zlmdb.Index[int]("price", where=lambda r: r.state == "open"),
        (
            lambda r: r.state == "open" and r.price == 1,
            lambda r: r.state == "open",
            lambda b: b.price > 1 and b.state == "open",
            lambda r: r.state == "open" and (r.price == 1 or r.price == 2),
            lambda r: r.state == "open" and r.name == "a",
            lambda r: r.state in ("open",) and r.price == 2,
        ),
        never=(
            lambda r: r.price == 1,
            lambda r: r.state == "done" and r.price == 1,
            lambda r: r.state != "open" and r.price == 1,
            lambda r: (r.state == "open" or r.name == "a") and r.price == 1,
            lambda r: r.state >= "open" and r.price == 1,
            lambda r: r.state.startswith("open") and r.price == 1,
        ),
    ),
    Kind(
        "partial by a range and None",
        lambda: zlmdb.Index(
            "due", where=lambda r: r.due is not None and r.price >= LEAST and r.state in {"open", "late"}
        ),
        (
            lambda r: r.due is not None and r.due > 1 and r.price == 2 and r.state == "open",
            lambda r: r.due == 3 and r.price > 1 and r.state == "late",
            lambda r: r.due == 3 and r.price >= 2 and r.state in ("late", "open"),
            lambda r: r.due is not None and r.due > 2 and r.price in (1, 2) and r.state in {"open", "late"},
        ),
        never=(
            lambda r: r.due == 3 and r.price > 0 and r.state == "late",
            lambda r: r.due == 3 and r.price <= 2 and r.state == "late",
            lambda r: r.due == 3 and r.price in (0, 1) and r.state == "late",
            lambda r: r.due == 3 and r.price == 1 and r.state in ("late", "done"),
            lambda r: r.price == 1 and r.state == "open",
        ),
    ),
    Kind(
        "partial in an order",
        lambda: zlmdb.Index[tuple[int, str]]("price", "name.casefold()", where=lambda r: "a" in r.tags or not r.marks),
        (lambda r: r.price == 1 and ("a" in r.tags or not r.marks), lambda r: not r.marks, lambda r: "a" in r.tags),
        never=(lambda r: r.price == 1, lambda r: r.price == 1 and "b" in r.tags),
    ),
    Kind(
        "partial of elements",
        lambda: zlmdb.Index[str]("tags", where=lambda r: r.price > 1, each=True),
        (lambda r: "a" in r.tags and r.price == 3, lambda r: r.price > 1 and any(tag > "b" for tag in r.tags)),
        never=(lambda r: "a" in r.tags, lambda r: r.price > 1, lambda r: "a" in r.tags and r.price >= 1),
    ),
    Kind(
        "partial by a function that is called",
        lambda: zlmdb.Index[int]("price", where=odd, version=1),
        (),
        never=(lambda r: odd(r) and r.price == 1, lambda r: r.price == 1),
    ),
    Kind(
        "descending",
        lambda: zlmdb.Index(desc("price")),
        (
            lambda r: r.price == 1,
            lambda r: r.price > 1,
            lambda r: r.price >= 1,
            lambda r: r.price < 2,
            lambda r: r.price <= 2,
            lambda r: 0 < r.price <= 2,
            lambda r: 0 <= r.price < 2,
            lambda r: r.price in (1, 3),
            lambda r: r.price < 1.5,
            lambda r: r.price < 10**30,
            lambda r: r.price >= -(10**30),
        ),
        orders=(lambda r: desc(r.price), lambda r: r.price),
        never=(lambda r: -r.price == 1,),
    ),
    Kind(
        "descending text between others",
        lambda: zlmdb.Index[tuple[str, str, int]]("state", desc("name"), desc("price")),
        (
            lambda r: r.state == "open" and r.name == "a",
            lambda r: r.state == "open" and r.name.startswith("a"),
            lambda r: r.state == "open" and r.name > "a",
            lambda r: r.state == "open" and "a" <= r.name < "b",
            lambda r: r.state == "open" and r.name <= "a",
            lambda r: r.state == "open" and r.name in ("a", ""),
            lambda r: r.state == "open" and r.name == "" and r.price >= 1,
        ),
        orders=(lambda r: (r.state, desc(r.name), desc(r.price)), lambda r: (desc(r.state), r.name, r.price)),
        never_orders=(lambda r: (r.state, desc(r.name), r.price),),
    ),
    Kind(
        "members of an Enum, and a Literal",
        lambda: zlmdb.Index("level", desc("size")),
        (
            lambda r: r.level is Level.HIGH and r.size == "big",
            lambda r: r.level == Level.HIGH and r.size in ("small", "big"),
            lambda r: r.level is Level.MIDDLE and r.size is not None and r.size < "small",
            lambda r: r.level is Level.MIDDLE and r.size is not None and r.size >= "big",
        ),
        never=(
            lambda r: r.level.name == "LOW" and r.size == "big",
            lambda r: r.size == "big",
            lambda r: r.level is Level.LOW,
        ),
    ),
    Kind(
        "members of an Enum alone",
        lambda: zlmdb.Index("level", "price"),
        (
            lambda r: r.level is Level.HIGH,
            lambda r: r.level in {Level.HIGH, Level.MIDDLE} and r.name == "a",
            lambda r: r.level != Level.LOW,
            lambda r: r.level is not Level.LOW and r.level is not Level.HIGH and r.price > 1,
        ),
        never_orders=(lambda r: (r.level.value, r.price),),
    ),
    Kind(
        "carrying",
        lambda: zlmdb.Index[int]("price", carries=("name", "tags", "due")),
        (lambda r: r.price == 1, lambda r: r.price > 1 and r.name == "a" and "a" in r.tags),
        orders=(lambda r: r.price,),
        never=(lambda r: r.name == "a",),
    ),
    Kind(
        "partial, descending and carrying",
        lambda: zlmdb.Index("name", desc("price"), where=lambda r: r.marks is None, carries=("marks", "state")),
        (lambda r: r.marks is None and r.name == "a", lambda r: r.marks is None),
        orders=(),
        never=(lambda r: r.name == "a",),
    ),
]


def odd(row: Row) -> bool:
    found = False
    for letter in row.name:
        found = found or letter in "aB"
    return found


def folded(text: str) -> str:
    return normalize("NFKC", text).casefold()


ROWS = st.builds(
    Row,
    name=st.sampled_from(TEXTS),
    tags=st.lists(st.sampled_from(TEXTS), max_size=4),
    marks=st.none() | st.frozensets(st.integers(0, 4), max_size=3),
    price=st.integers(0, 3),
    state=st.sampled_from(["open", "done", "late"]),
    home=st.none() | st.builds(Home, st.sampled_from(CITIES), st.none() | st.integers(0, 2)),
    due=st.none() | st.integers(0, 5),
    level=st.sampled_from(Level),
    size=st.sampled_from([None, "big", "small"]),
)
