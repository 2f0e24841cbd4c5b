"""FlatBuffers of classes and fields that may be called anything, also what the generated functions are called."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, make_dataclass
from datetime import date
from typing import Annotated, Any, NamedTuple, Optional, TypedDict

import pytest

import zlmdb
from zlmdb.values import FlatBuffers, FlatBuffersView, InStruct, fbs, load, serializer

pytestmark = pytest.mark.once  # the sources are the same everywhere


class _Point(NamedTuple):
    x: int
    y: int


class _Flags(enum.Flag):
    A = 1
    B = 2


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Kind(enum.Enum):
    NEW = "new"
    OLD = "old"


class __Leaf(NamedTuple):
    size: Size


Leaf = __Leaf


@dataclass
class Private:
    at: Annotated[_Point, InStruct]
    flags: _Flags
    leaf: Annotated[Leaf, InStruct]


def comes_back(model: Any, value: Any) -> None:
    """Check that *value* does, from both kinds of FlatBuffers."""
    codec, views = serializer(FlatBuffers[model]), serializer(FlatBuffersView[model])
    data = codec.encode(value)
    assert codec.decode(data) == value
    assert views.encode(value) == data
    view = views.decode(data)
    loaded = load(view) if "View" in type(view).__name__ else view
    assert loaded == value


def test_a_class_whose_name_begins_with_an_underscore_is_read_in_a_view() -> None:
    value = Private(_Point(1, 2), _Flags.A | _Flags.B, Leaf(Size.LARGE))
    comes_back(Private, value)
    view = serializer(FlatBuffersView[Private]).decode(serializer(FlatBuffers[Private]).encode(value))
    assert (view.at, view.flags, view.leaf) == (value.at, value.flags, value.leaf)


def test_a_field_called_property_leaves_the_others_alone() -> None:
    model: Any = make_dataclass("Flat", [("property", str), ("name", str), ("View", int), ("data", int)])
    comes_back(model, model("house", "Ann", 1, 2))
    view = serializer(FlatBuffersView[model]).decode(serializer(FlatBuffers[model]).encode(model("house", "Ann", 1, 2)))
    assert (view.property, view.name, view.View, view.data) == ("house", "Ann", 1, 2)


WORDS = [
    *("root", "plan", "short", "texts", "strs", "tables", "structs", "u32s", "all_u32", "u32", "dict_X", "X_4", "ROOT"),
    *("X", "decode", "encode", "data", "Corrupt", "Misfit", "UUID", "date", "text", "offsets", "_", "__X"),
]


@pytest.mark.parametrize("place", range(5))
@pytest.mark.parametrize("word", WORDS)
def test_a_class_may_be_called_as_what_is_generated(word: str, place: int) -> None:
    names = ["Struct", "Inner", "Nested", "Other", "Model"]
    names[place] = word
    struct: Any = make_dataclass(names[0], [("a", int), ("b", float)])
    inner: Any = make_dataclass(names[1], [("name", str), ("day", date)])
    nested: Any = make_dataclass(names[2], [("a", Optional[int]), ("one", inner)])
    other: Any = make_dataclass(names[3], [("a", list[float])])
    model: Any = make_dataclass(
        names[4],
        [
            ("name", str), ("n", int), ("at", Annotated[struct, InStruct]), ("one", Optional[nested]),
            ("more", list[inner]), ("others", list[other]), ("texts", list[str]), ("numbers", dict[str, float]),
            ("structs", list[Annotated[struct, InStruct]]), ("many", list[nested]), ("flags", list[int]),
        ],
    )  # fmt: skip
    one = inner("b", date(2026, 1, 1))
    comes_back(
        model,
        model(
            "a", 1, struct(1, 2.0), nested(None, one), [one, one], [other([1.0])], ["x", "y"], {"k": 1.0},
            [struct(3, 4.0)], [nested(1, one), nested(None, one)], [1, 2],
        ),
    )  # fmt: skip


Odd = TypedDict(
    "Odd", {"$ref": str, "from": int, "my-key": Optional[int], "a\\$1'\"": str, "$": list[int], "": int, "mro": int}
)


@dataclass
class Holder:
    odd: Odd
    odds: list[Odd]


class Odds(zlmdb.Schema):
    odds: zlmdb.Table[int, FlatBuffers[Odd]]
    views: zlmdb.Table[int, FlatBuffersView[Odd]]


def test_keys_of_a_typed_dict_need_not_be_identifiers() -> None:
    odd: Odd = {"$ref": "#/a", "from": 1, "my-key": None, "a\\$1'\"": "x", "$": [1, 2], "": 3, "mro": 4}
    comes_back(Odd, odd)
    comes_back(Holder, Holder(odd, [odd, odd]))
    assert "ref" in fbs(Odd)
    with zlmdb.open(None, Odds) as db, db.write() as t:
        t.odds[1] = t.views[1] = odd
        assert getattr(t.views[1], "my-key") is None
        assert getattr(t.views[1], "from") == 1
        assert list(t.odds.where(lambda odd: odd["from"] == 1).fields(lambda odd: odd["$ref"])) == ["#/a"]
        views = t.views.where(lambda odd: getattr(odd, "$ref") == "#/a")
        assert list(views.fields(lambda odd: (getattr(odd, "from"), getattr(odd, "my-key")))) == [(1, None)]
        assert t.odds.where(lambda odd: odd["from"] == 1 and odd["$"] == [1, 2]).count() == 1


def test_a_struct_with_a_keyword_as_a_field_is_refused_when_it_is_declared() -> None:
    msgspec = pytest.importorskip("msgspec")
    model: Any = msgspec.defstruct("Mail", [("from", str), ("n", int)])

    class Mails(zlmdb.Schema):
        flat: zlmdb.Table[int, FlatBuffers[model]]

    with pytest.raises(TypeError, match=r"Mail\.from"):
        zlmdb.open(None, Mails)


Spot = Annotated[_Point, InStruct]
Sized = Annotated[Leaf, InStruct]


@dataclass(frozen=True)
class Place:
    size: Size
    at: Spot


@dataclass
class Sets:
    points: set[Spot] = field(default_factory=set)
    places: frozenset[Annotated[Place, InStruct]] = frozenset()
    maybe: set[Optional[int]] = field(default_factory=set)
    texts: set[Optional[str]] = field(default_factory=set)
    sizes: set[Optional[Size]] = field(default_factory=set)
    kinds: set[Optional[Kind]] = field(default_factory=set)
    spots: set[Optional[Annotated[Place, InStruct]]] = field(default_factory=set)
    days: set[Optional[date]] = field(default_factory=set)
    paths: set[tuple[str, ...]] = field(default_factory=set)
    gaps: set[tuple[Optional[int], ...]] = field(default_factory=set)
    types: set[tuple[Kind, ...]] = field(default_factory=set)
    lists: set[Optional[tuple[int, ...]]] = field(default_factory=set)


def test_sets_of_structs_and_of_optional_values_are_stored() -> None:
    places = [Place(size, _Point(x, 1)) for size in Size for x in range(3)]
    value = Sets(
        {_Point(2, 1), _Point(1, 2), _Point(-1, 3)}, frozenset(places), {1, None, -1}, {"b", None, "a"},
        {Size.SMALL, None, Size.LARGE}, {Kind.NEW, Kind.OLD, None}, {None, *places},
        {date(2026, 1, 2), None, date(2026, 1, 1)}, {("b",), ("a", "b")}, {(None, 1), (1,), ()},
        {(Kind.NEW,), (Kind.OLD, Kind.NEW)}, {None, (1,), (2,)},
    )  # fmt: skip
    comes_back(Sets, value)
    comes_back(set[Spot], value.points)
    codec = serializer(FlatBuffers[Sets])
    for points in ({1, 2, None}, {None, 2, 1}):
        again = Sets(maybe=points, points={_Point(x, x) for x in (5, 1, 9)})
        assert codec.encode(again) == codec.encode(Sets(maybe={2, None, 1}, points={_Point(x, x) for x in (9, 1, 5)}))
