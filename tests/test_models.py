"""Model classes as values: every kind of class in every format, the same bytes on CPython and PyPy, what is refused."""

from __future__ import annotations

import contextlib
import enum
import sys
import typing
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, make_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlmdb import values
from zlmdb.errors import DecodeError, EncodeError
from zlmdb.values import serializer

attrs = pytest.importorskip("attrs")
try:
    import msgspec
except ImportError:  # PyPy
    msgspec = None

FORMATS = {"msgpack": values.Msgpack, "cbor": values.Cbor, "json": values.Json, "pickle": values.Pickle}
CHECKED = {name: alias for name, alias in FORMATS.items() if name != "pickle"}
each_format = pytest.mark.parametrize("alias", FORMATS.values(), ids=FORMATS)
each_checked = pytest.mark.parametrize("alias", CHECKED.values(), ids=CHECKED)

EAST = timezone(timedelta(hours=2))
T = TypeVar("T")
UserId = NewType("UserId", int)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Options(TypedDict, total=False):
    depth: int
    names: list[str]


class Movie(TypedDict):
    title: str
    year: int


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 0.5


@dataclass
class User:
    """One field of every kind."""

    name: str
    age: int
    score: float
    friendly: bool
    photo: bytes
    id: UUID
    joined: datetime
    born: date
    wakes: time
    sleeps: timedelta
    balance: Decimal
    color: Color
    level: Level
    role: Literal["admin", "guest"]
    place: Point
    pair: Pair
    options: Options
    number: UserId
    tags: list[str] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    codes: frozenset[int] = frozenset()
    size: tuple[int, int] = (0, 0)
    path: tuple[str, ...] = ()
    scores: dict[str, float] = field(default_factory=dict)
    by_id: dict[UUID, Point] = field(default_factory=dict)
    by_number: dict[int, str] = field(default_factory=dict)
    friend: Optional[User] = None
    either: Union[int, str, None] = None
    anything: Any = None
    aliases: Sequence[str] = ()  # type: ignore[assignment]
    facts: Mapping[str, int] = field(default_factory=dict)
    _private: int = 0

    def __post_init__(self) -> None:
        if self.age < 0:
            raise ValueError("nobody is younger than 0")


def ann(**changes: Any) -> User:
    given_fields: dict[str, Any] = {
        "name": "Ann", "age": 31, "score": 1.5, "friendly": True, "photo": b"\x00\xff",
        "id": UUID("10111213-1415-1617-1819-1a1b1c1d1e1f"),
        "joined": datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=EAST), "born": date(1990, 12, 31),
        "wakes": time(6, 30), "sleeps": timedelta(hours=25, microseconds=500), "balance": Decimal("10.50"),
        "color": Color.BLUE, "level": Level.HIGH, "role": "admin", "place": Point(3), "pair": Pair(1),
        "options": {"depth": 3}, "number": UserId(7), "tags": ["a", "\u00e9"], "groups": {"b", "aa", "c"},
        "codes": frozenset({300, -1, 5}), "size": (2, 3), "path": ("x", "y"), "scores": {"b": 2.0, "a": 1.0},
        "by_id": {UUID(int=1): Point(1, 2.5)}, "by_number": {5: "five", -1: "minus"}, "either": "text",
        "anything": {"a": [1, None, {"b": 2.5}]}, "aliases": ["Annie"], "facts": {"x": 1}, "_private": 9,
    }  # fmt: skip
    return User(**{**given_fields, **changes})


@attrs.define
class Book:
    title: str
    pages: int = attrs.field(default=1, validator=attrs.validators.gt(0))
    tags: list[str] = attrs.field(factory=list)
    _secret: Optional[int] = None


@attrs.frozen
class Shelf:
    books: list[Book]


class Bare:
    """A class that is no model."""


options_of_dataclass: dict[str, Any] = {"slots": True, "kw_only": True} if sys.version_info >= (3, 10) else {}


@dataclass(**options_of_dataclass)
class Slotted:
    a: int
    b: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Sub(Point):
    z: int = 0


@dataclass
class Node:
    value: int
    left: Optional[Node] = None
    children: list[Node] = field(default_factory=list)


@dataclass
class Box(Generic[T]):
    content: T
    more: list[T] = field(default_factory=list)


@dataclass
class Counted:
    """A field that is set after the others."""

    text: str
    length: int = field(default=-1, init=False)

    def __post_init__(self) -> None:
        self.length = len(self.text)


MODELS: list[tuple[Any, Any]] = [
    (User, ann()),
    (User, ann(friend=ann(name="Bob"), either=None)),
    (User, ann(either=5, joined=datetime(1960, 1, 1, tzinfo=timezone.utc), anything=[])),
    (Point, Point(1, 2.0)),
    (Slotted, Slotted(a=1, b=[2])),
    (Sub, Sub(1, 2.0, 3)),
    (Pair, Pair(1, "x")),
    (Movie, {"title": "M", "year": 1931}),
    (Options, {}),
    (Options, {"names": ["a"]}),
    (Book, Book("B", 3, ["x"], 5)),
    (Shelf, Shelf([Book("B"), Book("C", 2)])),
    (Node, Node(1, Node(2), [Node(3, None, [Node(4)])])),
    (Box[int], Box(1, [2])),
    (Box[Optional[Point]], Box(Point(1), [None])),
    (Counted, Counted("abc")),
    (Optional[Point], None),
    (Optional[Point], Point(1)),
    (list[Point], [Point(1), Point(2)]),
    (dict[str, Point], {"b": Point(1), "a": Point(2)}),
    (set[Point], {Point(1), Point(2), Point(-1)}),
    (tuple[int, Optional[str]], (1, None)),
    (tuple[()], ()),
    (dict[int, set[str]], {1: {"a", "b"}}),
    (Union[int, float, None], 2),
    (Union[Point, int, str, None], Point(1)),
    (Color, Color.RED),
    (Rights, Rights.WRITE),
    (Literal["a", 1, None], 1),
    (UserId, UserId(5)),
    (datetime, datetime(2020, 1, 1, tzinfo=timezone.utc)),
    (datetime, datetime(2020, 1, 1, 12, 0, 0, 1)),
    (datetime, datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)),
    (datetime, datetime(1900, 1, 1, 0, 0, 0, 1, tzinfo=timezone.utc)),
    (datetime, datetime(2262, 4, 11, 23, 47, 16, 854775, tzinfo=timezone.utc)),
    (datetime, datetime(2600, 1, 1, tzinfo=EAST)),
    (datetime, datetime(1, 1, 1, tzinfo=timezone.utc)),
    (datetime, datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)),
    (time, time(1, 2, 3, 40, tzinfo=timezone.utc)),
    (time, time(1, 2, tzinfo=EAST)),
    (timedelta, timedelta(days=-3, seconds=1)),
    (timedelta, timedelta.max),
    (timedelta, timedelta.min),
    (Decimal, Decimal("-1E+5")),
    (dict[date, Decimal], {date(2020, 1, 1): Decimal("0.1")}),
    (dict[Color, int], {Color.RED: 1}),
]


@each_format
@pytest.mark.parametrize(("model", "value"), MODELS, ids=lambda part: repr(part)[:30])
def test_models_come_back_equal_and_of_the_same_type(alias: Any, model: Any, value: Any) -> None:
    codec = serializer(alias[model])
    data = codec.encode(value)
    for stored in (data, memoryview(data)):
        again = codec.decode(stored)
        assert again == value
        assert type(again) is type(value)


def test_a_bare_model_class_is_messagepack() -> None:
    codec = serializer(Point)
    assert (codec.name, codec.model) == ("msgpack", f"{__name__}.Point")
    assert codec.encode(Point(1, 2.0)) == bytes.fromhex("82a17801a179cb4000000000000000")


# Pinned by CPython with msgspec; PyPy with cattrs and msgpack must give the same.
GOLDEN: list[tuple[Any, Any, str, str]] = [
    (
        User,
        ann(),
        "de0020a46e616d65a3416e6ea36167651fa573636f7265cb3ff8000000000000a8667269656e646c79c3a570686f746fc402"
        "00ffa26964d92431303131313231332d313431352d313631372d313831392d316131623163316431653166a66a6f696e6564"
        "d7ff00005dc05e0d4185a4626f726eaa313939302d31322d3331a577616b6573a830363a33303a3030a6736c65657073ae50"
        "314454333630302e3030303553a762616c616e6365a531302e3530a5636f6c6f72a4626c7565a56c6576656c02a4726f6c65"
        "a561646d696ea5706c61636582a17803a179cb3fe0000000000000a4706169729201a172a76f7074696f6e7381a564657074"
        "6803a66e756d62657207a47461677392a161a2c3a9a667726f75707393a162a163a26161a5636f6465739305cd012cffa473"
        "697a65920203a47061746892a178a179a673636f72657382a162cb4000000000000000a161cb3ff0000000000000a562795f"
        "696481d92430303030303030302d303030302d303030302d303030302d30303030303030303030303182a17801a179cb4004"
        "000000000000a962795f6e756d6265728205a466697665ffa56d696e7573a6667269656e64c0a6656974686572a474657874"
        "a8616e797468696e6781a1619301c081a162cb4004000000000000a7616c696173657391a5416e6e6965a5666163747381a1"
        "7801a85f7072697661746509",
        "b820646e616d6563416e6e63616765181f6573636f7265fb3ff800000000000068667269656e646c79f56570686f746f4200"
        "ff626964782431303131313231332d313431352d313631372d313831392d316131623163316431653166666a6f696e656478"
        "1b323032302d30312d30325430313a30343a30352e3030303030365a64626f726e6a313939302d31322d33316577616b6573"
        "6830363a33303a303066736c656570736e50314454333630302e30303035536762616c616e63656531302e353065636f6c6f"
        "7264626c7565656c6576656c0264726f6c656561646d696e65706c616365a26178036179fb3fe00000000000006470616972"
        "82016172676f7074696f6e73a165646570746803666e756d62657207647461677382616162c3a96667726f75707383616261"
        "6362616165636f646573830519012c206473697a65820203647061746882617861796673636f726573a26162fb4000000000"
        "0000006161fb3ff00000000000006562795f6964a1782430303030303030302d303030302d303030302d303030302d303030"
        "303030303030303031a26178016179fb40040000000000006962795f6e756d626572a205646669766520656d696e75736666"
        "7269656e64f666656974686572647465787468616e797468696e67a161618301f6a16162fb400400000000000067616c6961"
        "7365738165416e6e6965656661637473a1617801685f7072697661746509",
    ),
    (
        Pair,
        Pair(1, "x"),
        "9201a178",
        "82016178",
    ),
    (
        Movie,
        {"title": "M", "year": 1931},
        "82a57469746c65a14da479656172cd078b",
        "a2657469746c65614d647965617219078b",
    ),
    (
        Book,
        Book("B", 3, ["x"], 5),
        "84a57469746c65a142a5706167657303a47461677391a178a75f73656372657405",
        "a4647461677381617865706167657303657469746c656142675f73656372657405",
    ),
    (
        Node,
        Node(1, Node(2)),
        "83a576616c756501a46c65667483a576616c756502a46c656674c0a86368696c6472656e90a86368696c6472656e90",
        "a36576616c756501646c656674a36576616c756502646c656674f6686368696c6472656e80686368696c6472656e80",
    ),
    (
        Box[int],
        Box(1, [2]),
        "82a7636f6e74656e7401a46d6f72659102",
        "a2646d6f7265810267636f6e74656e7401",
    ),
    (
        Counted,
        Counted("abc"),
        "82a474657874a3616263a66c656e67746803",
        "a2647465787463616263666c656e67746803",
    ),
    (
        set[Point],
        {Point(1), Point(2), Point(-1)},
        "9382a17801a179cb3fe000000000000082a17802a179cb3fe000000000000082a178ffa179cb3fe0000000000000",
        "83a26178016179fb3fe0000000000000a26178026179fb3fe0000000000000a26178206179fb3fe0000000000000",
    ),
    (
        set[int],
        {300, -1, 5, 2**40, -(2**40)},
        "9505cd012ccf0000010000000000d3ffffff0000000000ff",
        "850519012c1b0000010000000000203b000000ffffffffff",
    ),
    (
        set[str],
        {"b", "aa", "\u00e9"},
        "93a162a26161a2c3a9",
        "83616262616162c3a9",
    ),
    (
        Union[int, float, None],
        2.0,
        "cb4000000000000000",
        "fb4000000000000000",
    ),
    (
        datetime,
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
        "c70cff3b9ac618ffffffffffffffff",
        "781b313936392d31322d33315432333a35393a35392e3939393939395a",
    ),
    (
        datetime,
        datetime(2020, 1, 1, 12, 0, 0, 1),
        "ba323032302d30312d30315431323a30303a30302e303030303031",
        "781a323032302d30312d30315431323a30303a30302e303030303031",
    ),
    (
        datetime,
        datetime(2600, 1, 1, tzinfo=EAST),
        "c70cff0000000000000004a0fe5660",
        "74323539392d31322d33315432323a30303a30305a",
    ),
    (
        time,
        time(1, 2, 3, 40, tzinfo=timezone.utc),
        "b030313a30323a30332e3030303034305a",
        "7030313a30323a30332e3030303034305a",
    ),
    (
        timedelta,
        timedelta(days=-3, seconds=1),
        "ab2d50324454383633393953",
        "6b2d50324454383633393953",
    ),
    (
        timedelta,
        timedelta.max,
        "b950393939393939393939445438363339392e39393939393953",
        "781950393939393939393939445438363339392e39393939393953",
    ),
    (
        Decimal,
        Decimal("-1E+5"),
        "a52d31452b35",
        "652d31452b35",
    ),
    (
        dict[date, Decimal],
        {date(2020, 1, 1): Decimal("0.1")},
        "81aa323032302d30312d3031a3302e31",
        "a16a323032302d30312d303163302e31",
    ),
]


@pytest.mark.parametrize(("model", "value", "msgpack", "cbor"), GOLDEN, ids=lambda part: repr(part)[:30])
def test_bytes_are_the_same_on_every_interpreter(model: Any, value: Any, msgpack: str, cbor: str) -> None:
    assert serializer(values.Msgpack[model]).encode(value).hex() == msgpack
    assert serializer(values.Cbor[model]).encode(value).hex() == cbor
    assert serializer(values.Msgpack[model]).decode(bytes.fromhex(msgpack)) == value
    assert serializer(values.Cbor[model]).decode(bytes.fromhex(cbor)) == value


GOLDEN_JSON = [  # of the values of GOLDEN, in its order
    (
        '{"name":"Ann","age":31,"score":1.5,"friendly":true,"photo":"AP8=","id":"10111213-1415-1617-1819-1a1b'
        '1c1d1e1f","joined":"2020-01-02T01:04:05.000006Z","born":"1990-12-31","wakes":"06:30:00","sleeps":"P1'
        'DT3600.0005S","balance":"10.50","color":"blue","level":2,"role":"admin","place":{"x":3,"y":0.5},"pai'
        'r":[1,"r"],"options":{"depth":3},"number":7,"tags":["a","é"],"groups":["aa","b","c"],"codes":[-1,300'
        ',5],"size":[2,3],"path":["x","y"],"scores":{"b":2.0,"a":1.0},"by_id":{"00000000-0000-0000-0000-00000'
        '0000001":{"x":1,"y":2.5}},"by_number":{"5":"five","-1":"minus"},"friend":null,"either":"text","anyth'
        'ing":{"a":[1,null,{"b":2.5}]},"aliases":["Annie"],"facts":{"x":1},"_private":9}'
    ),
    '[1,"x"]',
    '{"title":"M","year":1931}',
    '{"title":"B","pages":3,"tags":["x"],"_secret":5}',
    '{"value":1,"left":{"value":2,"left":null,"children":[]},"children":[]}',
    '{"content":1,"more":[2]}',
    '{"text":"abc","length":3}',
    '[{"x":-1,"y":0.5},{"x":1,"y":0.5},{"x":2,"y":0.5}]',
    "[-1,-1099511627776,1099511627776,300,5]",
    '["aa","b","é"]',
    "2.0",
    '"1969-12-31T23:59:59.999999Z"',
    '"2020-01-01T12:00:00.000001"',
    '"2599-12-31T22:00:00Z"',
    '"01:02:03.000040Z"',
    '"-P2DT86399S"',
    '"P999999999DT86399.999999S"',
    '"-1E+5"',
    '{"2020-01-01":"0.1"}',
]


@pytest.mark.parametrize(
    ("model", "value", "json"),
    [(model, value, json) for (model, value, *_), json in zip(GOLDEN, GOLDEN_JSON)],
    ids=lambda part: repr(part)[:30],
)
def test_json_is_the_same_on_every_interpreter(model: Any, value: Any, json: str) -> None:
    assert serializer(values.Json[model]).encode(value).decode() == json
    assert serializer(values.Json[model]).decode(json.encode()) == value


def test_every_golden_value_has_its_json() -> None:
    assert len(GOLDEN_JSON) == len(GOLDEN)


def test_json_of_a_model_is_readable() -> None:
    data = serializer(values.Json[Shelf]).encode(Shelf([Book("\u00e9")]))
    assert data == '{"books":[{"title":"\u00e9","pages":1,"tags":[],"_secret":null}]}'.encode()


def test_unchecked_writes_the_same_bytes() -> None:
    for alias in CHECKED.values():
        for model, value in MODELS[:4]:
            checked, unchecked = serializer(alias[model]), serializer(values.Unchecked[alias[model]])
            assert unchecked.encode(value) == checked.encode(value)
            assert unchecked.name == checked.name
    assert serializer(values.Unchecked[values.Zlib[values.Cbor[Point]]]).name == "zlib(cbor)"


def test_unchecked_stores_what_cannot_be_read_and_says_so_in_reading() -> None:
    codec = serializer(values.Unchecked[Point])
    data = codec.encode(Point("x"))  # type: ignore[arg-type]
    with pytest.raises(DecodeError):
        codec.decode(data)


@pytest.mark.skipif(msgspec is None, reason="no msgspec here")
def test_reading_and_unchecked_writing_are_the_methods_of_msgspec() -> None:
    codec = serializer(values.Unchecked[Point])
    for method in (codec.raw_encode, codec.raw_decode):
        assert type(method).__name__ == "builtin_function_or_method"


@each_checked
@given(numbers=st.sets(st.integers(-(2**63), 2**63 - 1)), texts=st.frozensets(st.text(max_size=5)))
def test_equal_sets_are_equal_bytes(alias: Any, numbers: set[int], texts: frozenset[str]) -> None:
    for model, one in ((set[int], numbers), (frozenset[str], texts)):
        codec = serializer(alias[model])
        backwards = type(one)(sorted(one, reverse=True))
        assert codec.encode(one) == codec.encode(backwards)
        assert codec.decode(codec.encode(one)) == one


# What does not fit


REFUSED: list[tuple[Any, Any, str]] = [
    (User, ann(name=5), r"User.name: expected str, got 5 \(int\)"),
    (User, ann(id="10111213-1415-1617-1819-1a1b1c1d1e1f"), "id: expected uuid.UUID"),
    (User, ann(name=UUID(int=1)), "name: expected str"),
    (User, ann(age=True), "age: expected int"),
    (User, ann(age=1.0), "age: expected int"),
    (User, ann(age=Level.LOW), "age: expected int"),
    (User, ann(score="1"), "score: expected float"),
    (User, ann(score=2**53 + 1), "score: expected float"),
    (User, ann(joined=date(2020, 1, 1)), "joined: expected datetime"),
    (User, ann(born=datetime(2020, 1, 1)), "born: expected datetime.date"),
    (User, ann(tags=["a", 5]), r"tags\[1\]: expected str"),
    (User, ann(tags=("a",)), "tags: expected list"),
    (User, ann(tags="abc"), "tags: expected list"),
    (User, ann(groups=["a"]), "groups: expected set"),
    (User, ann(groups={1}), r"groups\[0\]: expected str"),
    (User, ann(size=(1,)), "size: expected tuple"),
    (User, ann(size=[1, 2]), "size: expected tuple"),
    (User, ann(size=(1, "2")), r"size\[1\]: expected int"),
    (User, ann(path=(1,)), r"path\[0\]: expected str"),
    (User, ann(scores={"a": "b"}), r"scores\['a'\]: expected float"),
    (User, ann(scores={1: 1.0}), "a key of .*scores: expected str"),
    (User, ann(by_id={UUID(int=1): Point("x")}), r"by_id\[.*\].x: expected int"),  # type: ignore[arg-type]
    (User, ann(color="red"), "color: expected .*Color"),
    (User, ann(role="king"), "role: expected Literal"),
    (User, ann(level=2), "level: expected .*Level"),
    (User, ann(place=Sub(1, 2.0, 3)), "place: expected .*Point"),
    (User, ann(place={"x": 1, "y": 2.0}), "place: expected .*Point"),
    (User, ann(pair=(1, "r")), "pair: expected .*Pair"),
    (User, ann(options={"dept": 3}), "options: .*Options with 'dept', which it does not have"),
    (User, ann(options={"depth": "3"}), r"options\['depth'\]: expected int"),
    (User, ann(friend=ann(tags=[None])), r"friend.tags\[0\]: expected str"),
    (User, ann(either=1.5), r"either: expected (.*Union|int \| str)"),
    (User, ann(anything={"a": (1, 2)}), r"anything\['a'\]: expected plain data"),
    (User, ann(anything=[{1, 2}]), r"anything\[0\]: expected plain data"),
    (User, ann(anything=Point(1)), "anything: expected plain data"),
    (Movie, {"title": "M"}, "Movie with no 'year'"),
    (Movie, [], "expected .*Movie"),
    (Point, None, "expected .*Point, got None"),
    (Point, ann(), "expected .*Point"),
    (Rights, Rights.READ | Rights.WRITE, "Rights.*, which is no member: give the combination a name"),
    (list[int], [1, None], r"list\[int\]\[1\]: expected int"),
    (set[str], {"\ud800"}, "surrogates"),
    (datetime, datetime(1, 1, 1, tzinfo=EAST), "datetime|range"),
    (list[datetime], [datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2)))], "datetime|range"),
    (time, time(1, 2, tzinfo=timezone(timedelta(seconds=30))), "expected datetime.time"),
]


@each_checked
@pytest.mark.parametrize(("model", "value", "text"), REFUSED, ids=lambda part: repr(part)[:30])
def test_what_does_not_fit_is_refused_with_its_path(alias: Any, model: Any, value: Any, text: str) -> None:
    with pytest.raises(EncodeError, match=text):
        serializer(alias[model]).encode(value)


class Nothing(TypedDict):
    pass


class Texts(list[str]):
    pass


NESTED: list[tuple[Any, Any, Any]] = [
    # a type, what fits it, and what does not because of something deep inside
    (list[list[list[list[list[list[int]]]]]], [[[[[[1, 2]]]]]], [[[[[[1, 2.5]]]]]]),
    (dict[str, list[dict[int, tuple[str, ...]]]], {"a": [{1: ("b",)}]}, {"a": [{1: ("b", 2)}]}),
    (tuple[int, tuple[str, list[int]]], (1, ("a", [2])), (1, ("a", [None]))),
    (Optional[list[int]], [1], [True]),
    (list[Optional[str]], ["a", None], ["a", b"b"]),
    (list[Optional[Point]], [Point(1), None], [Point(1), Point("x")]),  # type: ignore[arg-type]
    (list[Optional[datetime]], [None, datetime(2020, 1, 1, tzinfo=EAST)], [None, date(2020, 1, 1)]),
    (list[float], [1.5, 2], [1.5, 2**53 + 1]),
    (dict[str, set[int]], {"a": {1, 2}}, {"a": {1, "2"}}),
    (list[Movie], [{"title": "M", "year": 1}], [{"title": "M", "year": "1"}]),
    (Nothing, {}, {"a": 1}),
    (dict[str, Any], {"a": [1.5, None, {"b": True}], "c": {}}, {"a": [1.5, None, {"b": (True,)}], "c": {}}),
    (dict[str, Any], {"a": [[[["b"]]]]}, {"a": [[[[{"b"}]]]]}),
    (list[Any], [{"a": {1: b"b"}}], [{"a": {1.5: b"b"}}]),
]


@pytest.mark.parametrize(("model", "fitting", "wrong"), NESTED, ids=lambda part: repr(part)[:30])
def test_what_is_deep_inside_is_checked_too(model: Any, fitting: Any, wrong: Any) -> None:
    codec = serializer(model)
    assert codec.decode(codec.encode(fitting)) == fitting
    with pytest.raises(EncodeError):
        codec.encode(wrong)


class Word(str):
    pass


class Number(int):
    pass


@pytest.mark.parametrize("wrong", [Word("a"), Number(1), Level.LOW, (1,), {1}, Texts(), bytearray(b"a"), Point(1)])
def test_documents_hold_no_subclasses_and_nothing_that_comes_back_as_another_type(wrong: Any) -> None:
    codec = serializer(dict[str, Any])
    for document in ({"a": wrong}, {"a": [wrong]}, {"a": {"b": wrong}}, {"a": [[{"b": [wrong]}]]}):
        with pytest.raises(EncodeError, match="expected plain data"):
            codec.encode(document)
    for key in (Word("a"), Number(1)):
        with pytest.raises(EncodeError):
            codec.encode({"a": {key: 1}})


IMPOSTORS = st.sampled_from([Word("a"), Number(1), Level.LOW, Color.RED, (1,), (), {1}, Texts(), bytearray(b"a"),
                             Decimal(1), UUID(int=1), datetime(2000, 1, 1), date(2000, 1, 1), Point(1)])  # fmt: skip
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=3) | st.binary()
    | st.datetimes(timezones=st.just(timezone.utc)) | IMPOSTORS,
    lambda inside: st.lists(inside, max_size=3)
    | st.dictionaries(st.text(max_size=2) | st.integers(0, 9) | st.sampled_from([b"k", True, 1.5, Word("k"), None]),
                      inside, max_size=3),
    max_leaves=8,
)  # fmt: skip


def is_document(value: Any) -> bool:
    """Whether MessagePack holds *value*, and all that is in it, as it is."""
    if type(value) is dict:
        return all(type(key) in (str, int, bytes) and is_document(item) for key, item in value.items())
    if type(value) is list:
        return all(map(is_document, value))
    return value is None or type(value) in (bool, int, float, str, bytes) or (type(value) is datetime and value.tzinfo)


def types_in(value: Any) -> Any:
    if isinstance(value, dict):
        return dict, [(type(key), key, types_in(item)) for key, item in value.items()]
    if isinstance(value, datetime):
        value = value.replace(fold=0)  # which has no meaning in UTC, and no part in whether two are equal
    return type(value), [types_in(item) for item in value] if isinstance(value, list) else repr(value)


@given(st.dictionaries(st.text(max_size=2), DOCUMENTS, max_size=4) | st.lists(DOCUMENTS, max_size=4))
def test_a_document_is_stored_if_all_that_is_in_it_comes_back_as_it_was(value: Any) -> None:
    codec = serializer(type(value))
    if not is_document(value):
        with pytest.raises(EncodeError):
            codec.encode(value)
        return
    again = codec.decode(codec.encode(value))
    assert types_in(again) == types_in(value)


@pytest.mark.parametrize("annotation", [dict, dict[str, Any]])
@pytest.mark.parametrize("alias", [values.Pickle, values.Msgpack])
@given(value=st.dictionaries(st.text(max_size=2) | st.integers(0, 9), st.none() | st.text(max_size=3)) | st.text())
def test_a_dict_is_what_its_annotation_says(alias: Any, annotation: Any, value: Any) -> None:
    codec, free = serializer(alias[annotation]), serializer(alias[Any])
    fits = isinstance(value, dict) and (annotation is dict or all(type(key) is str for key in value))
    for use, given_value in ((codec.encode, value), (codec.decode, free.encode(value))):
        if fits:
            use(given_value)
        else:
            with pytest.raises((EncodeError, DecodeError)):
                use(given_value)


def test_the_keys_of_a_document_are_of_its_key_type() -> None:
    with pytest.raises(EncodeError, match=r"a key of .*: expected str"):
        serializer(dict[str, Any]).encode({1: 2})


def test_what_the_class_itself_refuses_is_not_stored() -> None:
    value = ann()
    value.age = -1  # as User(age=-1) would refuse
    for alias in CHECKED.values():
        with pytest.raises(EncodeError, match="younger"):
            serializer(alias[User]).encode(value)


def test_a_deleted_field_is_refused() -> None:
    value = ann()
    del value.name
    with pytest.raises(EncodeError, match="name"):
        serializer(User).encode(value)


def test_json_refuses_what_it_cannot_write() -> None:
    for bad in (float("nan"), float("inf")):
        with pytest.raises(EncodeError, match="JSON cannot write"):
            serializer(values.Json[Point]).encode(Point(1, bad))
        with pytest.raises(EncodeError):
            serializer(values.Json[User]).encode(ann(anything=[bad]))
        again = serializer(values.Cbor[Point]).decode(serializer(values.Cbor[Point]).encode(Point(1, bad)))
        assert repr(again.y) == repr(bad)
    with pytest.raises(EncodeError, match="would not come back"):
        serializer(values.Json[User]).encode(ann(anything={1: 2}))


def test_a_float_field_takes_an_exact_int() -> None:
    for alias in CHECKED.values():
        again = serializer(alias[Point]).decode(serializer(alias[Point]).encode(Point(1, 2)))
        assert (again.y, type(again.y)) == (2.0, float)


@each_checked
@pytest.mark.parametrize(
    ("model", "plain"),
    [
        (Point, {"x": "1", "y": 2.0}),
        (Point, {"x": True, "y": 2.0}),
        (Point, {"x": 1.5, "y": 2.0}),
        (Point, {"y": 2.0}),
        (Point, [1, 2.0]),
        (Point, None),
        (Pair, {"left": 1}),
        (Pair, []),
        (Movie, {"title": "M"}),
        (list[int], {"0": 1}),
        (list[int], "12"),
        (list[str], "ab"),
        (dict[str, int], [1]),
        (tuple[int, int], [1]),
        (set[int], [[1]]),
        (Color, "green"),
        (Level, 3),
        (Literal["a", 1], "b"),
        (Literal[1], True),
        (UUID, "no"),
        (datetime, "yesterday"),
        (date, "2020-13-01"),
        (time, "25:00"),
        (timedelta, "P"),
        (Decimal, "x"),
        (Union[int, str, None], 1.5),
        (Optional[Point], {"x": "y"}),
        (bool, 1),
        (str, 1),
    ],
)
def test_stored_data_that_does_not_fit_is_a_decode_error(alias: Any, model: Any, plain: Any) -> None:
    data = serializer(alias[Any]).encode(plain)
    with pytest.raises(DecodeError):
        serializer(alias[model]).decode(data)


@each_checked
def test_any_bytes_give_a_user_or_a_decode_error(alias: Any) -> None:
    codec = serializer(alias[User])
    whole = codec.encode(ann())

    @given(st.binary(max_size=40), st.integers(0, len(whole)), st.binary(min_size=1, max_size=3))
    def check(garbage: bytes, place: int, damage: bytes) -> None:
        for data in (garbage, whole[:place], whole[:place] + damage + whole[place + len(damage) :]):
            with contextlib.suppress(DecodeError):
                assert isinstance(codec.decode(data), User)

    check()


# Evolution


@dataclass
class OldUser:
    name: str
    removed: int


@dataclass
class NewUser:
    name: str
    added: int = 5
    made: list[int] = field(default_factory=list)
    perhaps: Optional[Point] = None


@attrs.define
class NewBook:
    name: str
    added: int = 5
    made: list[int] = attrs.field(factory=list)


class NewPair(NamedTuple):
    left: int
    right: str = "r"
    added: Optional[int] = None


class NewOptions(TypedDict, total=False):
    names: list[str]


@each_checked
def test_records_of_an_older_class_are_read(alias: Any) -> None:
    data = serializer(alias[OldUser]).encode(OldUser("Ann", 1))
    assert serializer(alias[NewUser]).decode(data) == NewUser("Ann")
    assert serializer(alias[NewBook]).decode(data) == NewBook("Ann")
    assert serializer(alias[NewPair]).decode(serializer(alias[Pair]).encode(Pair(1, "x"))) == NewPair(1, "x", None)
    options = serializer(alias[Options]).encode({"depth": 1, "names": ["a"]})
    assert serializer(alias[NewOptions]).decode(options) == {"names": ["a"]}


def test_stored_bytes_of_an_older_class_are_read() -> None:
    msgpack = bytes.fromhex("82a46e616d65a3416e6ea772656d6f76656401")
    cbor = bytes.fromhex("a2646e616d6563416e6e6772656d6f76656401")
    assert serializer(NewUser).decode(msgpack) == NewUser("Ann")
    assert serializer(values.Cbor[NewUser]).decode(cbor) == NewUser("Ann")
    assert serializer(values.Json[NewUser]).decode(b'{"name": "Ann", "removed": 1}') == NewUser("Ann")


def test_a_required_field_that_is_missing_is_a_decode_error() -> None:
    for alias in CHECKED.values():
        data = serializer(alias[NewUser]).encode(NewUser("Ann"))
        with pytest.raises(DecodeError, match="removed"):
            serializer(alias[OldUser]).decode(data)


# Types that cannot be stored


@dataclass
class WithInitVar:
    a: int
    b: InitVar[int]


class Mixed(enum.Enum):
    A = "a"
    B = 2


@dataclass
class Holder:
    inside: Optional[Bare] = None


IMPOSSIBLE: list[tuple[Any, str]] = [
    (Bare, "Bare cannot be stored: use a dataclass"),
    (Holder, r"Holder.inside: .*Bare cannot be stored"),
    (complex, "complex cannot be stored.* of a class that is not yours, a text or a number"),
    (typing.Callable[[], int], "cannot be stored|not a type that can be stored"),
    (WithInitVar, "InitVar, .*: make it a field, or take the value in a classmethod"),
    (Mixed, "Mixed: .*all text or all integers"),
    (Literal[True], "Literal"),
    (dict[Point, int], "Point cannot be a key|text keys"),
    (dict[tuple[int, int], int], "cannot be a key|text keys"),
    (Union[str, bytes], "str and bytes cannot be told apart"),
    (Union[UUID, datetime, None], "UUID and datetime.datetime cannot be told apart"),
    (Union[Point, Book], "Point and .*Book cannot be told apart"),
    (Union[Point, dict[str, int]], "cannot be told apart"),
    (Union[list[int], set[int]], "cannot be told apart"),
    (Union[Pair, list[int]], "cannot be told apart"),
    (Union[Level, int], "cannot be told apart"),
    (Union[str, Color], "cannot be told apart"),
    (Union[Decimal, Any], "a value of .*Decimal could not be told apart from plain data"),
    (Optional[Union[Any, Point, date]], "a value of .*Point or .*date could not be told apart"),
    (Union[Color, object, list[str]], "a value of .*Color could"),
    (Union[Any, tuple[int, ...], list[date]], "a value of .*tuple.* or .*list.* could"),
    (list[Union[Level, Literal["a", 1]]], "cannot be told apart"),
]


@each_checked
@pytest.mark.parametrize(("model", "text"), IMPOSSIBLE, ids=lambda part: str(part)[:30])
def test_types_that_cannot_be_read_back_are_refused_when_declared(alias: Any, model: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        serializer(alias[model])


@each_checked
@pytest.mark.parametrize(
    "model", [Union[Any, int], Union[list[str], Any], Union[dict[str, Union[float, list[int]]], None, Any]], ids=str
)
def test_plain_data_may_be_beside_types_that_are_plain(alias: Any, model: Any) -> None:
    codec = serializer(alias[list[model]])
    value = [1, ["a"], {"a": [1]}, None, {"b": [None]}]
    assert codec.decode(codec.encode(value)) == value


def test_json_keys_must_be_texts_or_numbers() -> None:
    with pytest.raises(TypeError, match="JSON has text keys"):
        serializer(values.Json[dict[float, int]])
    codec = serializer(values.Msgpack[dict[float, int]])
    assert codec.decode(codec.encode({1.5: 1})) == {1.5: 1}


# Annotations that need help


def test_models_of_a_function_find_each_other_by_localns() -> None:
    @dataclass
    class Inner:
        a: int

    @dataclass
    class Outer:
        inner: Inner
        many: list[Inner]
        again: Optional[Outer] = None

    value = Outer(Inner(1), [Inner(2)], Outer(Inner(3), []))
    for alias in FORMATS.values():
        if alias is not values.Pickle:
            with_names = serializer(alias[Outer], localns=locals())
            assert with_names.decode(with_names.encode(value)) == value


def test_named_tuples_and_names_inside_of_others_find_the_classes_of_their_function() -> None:
    class Dot(NamedTuple):
        x: int

    class Stroke(NamedTuple):
        start: Dot
        others: list[Dot]

    class Spot(TypedDict):
        at: Dot
        lines: dict[str, Stroke]

    class Drawing:
        """Its names are texts inside of others, which typing makes ForwardRefs."""

        __annotations__ = {"lines": typing.List["Stroke"], "one": typing.Optional["Dot"]}  # noqa: UP006

    area: Any = dataclass(Drawing)
    line = Stroke(Dot(1), [Dot(2)])
    for alias in (*FORMATS.values(), values.FlatBuffers):
        if alias is values.Pickle:
            continue
        for model, value in ((Stroke, line), (Spot, {"at": Dot(3), "lines": {"a": line}}), (area, area([line], None))):
            codec = serializer(alias[model], localns=locals())
            assert codec.decode(codec.encode(value)) == value


def test_an_unknown_name_in_an_annotation_is_named() -> None:
    class Missing:
        pass

    @dataclass
    class Outer:
        inner: Missing

    with pytest.raises(TypeError, match="Missing.*localns"):
        serializer(Outer)
    with pytest.raises(TypeError, match="Missing.*localns"):
        serializer(Outer, localns={"Other": int})


@pytest.mark.skipif(sys.version_info >= (3, 10), reason="X | None works here")
def test_new_unions_on_python_39_are_explained() -> None:
    @dataclass
    class Modern:
        a: int | None

    with pytest.raises(TypeError, match="Optional"):
        serializer(Modern)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="X | None is for 3.10")
def test_new_unions_are_unions() -> None:
    @dataclass
    class Modern:
        a: int | None

    codec = serializer(Modern)
    assert codec.decode(codec.encode(Modern(None))) == Modern(None)


def test_a_member_that_hides_a_type_is_told_of() -> None:
    @dataclass
    class Shadowed:
        label: str
        old: range[int]  # type: ignore  # as `list` is where the class has a method of that name, since Python 3.14

    advice = "hides a type of the same name" if sys.version_info >= (3, 10) else r"written Optional\[X\]"
    with pytest.raises(TypeError, match=advice):
        serializer(Shadowed)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement `type X = ...` needs Python 3.12")
@each_format
def test_an_alias_with_parameters_is_what_it_stands_for(alias: Any) -> None:
    made: dict[str, Any] = {}
    exec("type Maybe[T] = T | None\ntype Rows[K, V] = dict[K, list[Maybe[V]]]\ntype Turned[A, B] = tuple[B, A]", made)
    model = make_dataclass("M", [("a", made["Maybe"][str]), ("b", made["Rows"][str, int])])
    codec = serializer(alias[model])
    for value in (model("x", {"k": [1, None]}), model(None, {})):
        assert codec.decode(codec.encode(value)) == value
    if alias is not values.Pickle:
        with pytest.raises(EncodeError, match="a: expected"):
            codec.encode(model(3, {}))
        with pytest.raises(TypeError, match="Turned"):  # msgspec would take one parameter for the other
            serializer(alias[made["Turned"][int, str]])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement `type X = ...` needs Python 3.12")
@each_checked
def test_an_alias_that_contains_itself_is_told_of(alias: Any) -> None:
    made: dict[str, Any] = {}
    exec("type Tree = int | list[Tree]\ntype Even[T] = list[Odd[T]]\ntype Odd[T] = int | dict[str, Even[T]]", made)
    tree, even = made["Tree"], made["Even"]
    for one in (tree, make_dataclass("M", [("tree", tree)]), list[even[int]]):
        with pytest.raises(TypeError, match="contains itself: use Any"):
            serializer(alias[one])


def test_a_namedtuple_without_types_holds_plain_data() -> None:
    codec = serializer(Untyped)
    assert codec.decode(codec.encode(Untyped(1, "b"))) == Untyped(1, "b")


Untyped = namedtuple("Untyped", ["a", "b"])


def test_not_required_keys_may_be_missing() -> None:
    extensions = pytest.importorskip("typing_extensions")
    Loose = extensions.TypedDict("Loose", {"a": int, "b": extensions.NotRequired[int]})
    codec = serializer(Loose)
    assert codec.decode(codec.encode({"a": 1})) == {"a": 1}
    assert codec.decode(codec.encode({"a": 1, "b": 2})) == {"a": 1, "b": 2}
    with pytest.raises(EncodeError):
        codec.encode({"b": 2})


def test_self_is_answered_with_the_name_of_the_class() -> None:
    extensions = pytest.importorskip("typing_extensions")
    tree = make_dataclass("Tree", [("branches", list[extensions.Self])])
    with pytest.raises(TypeError, match=r"Tree.branches\[\]: .*Self is not .*: write the name of the class$"):
        serializer(tree)


# msgspec's own


@pytest.mark.skipif(msgspec is None, reason="no msgspec here")
@each_format
def test_structs_with_their_options(alias: Any) -> None:
    for model, value in STRUCTS:
        codec = serializer(alias[model])
        assert codec.decode(codec.encode(value)) == value


@pytest.mark.skipif(msgspec is None, reason="no msgspec here")
def test_constraints_of_msgspec_are_checked_in_writing() -> None:
    positive = Annotated[int, msgspec.Meta(gt=0)]
    for annotation in (positive, values.Cbor[positive], list[positive]):
        codec = serializer(annotation)
        good: Any = [5] if annotation == list[positive] else 5
        assert codec.decode(codec.encode(good)) == good
        with pytest.raises(EncodeError):
            codec.encode([-5] if annotation == list[positive] else -5)


STRUCTS: list[tuple[Any, Any]] = []
if msgspec is not None:

    class Cat(msgspec.Struct, tag="cat"):
        name: str
        born: Optional[datetime] = None
        friends: set[str] = msgspec.field(default_factory=set)

    class Dog(msgspec.Struct, tag="dog", rename="camel", omit_defaults=True):
        first_name: str
        seen_at: Optional[datetime] = None

    class Row(msgspec.Struct, array_like=True, frozen=True):
        a: int
        b: frozenset[int] = frozenset()

    STRUCTS = [
        (Cat, Cat("Tom", datetime(2020, 1, 1, tzinfo=EAST), {"b", "a"})),
        (Dog, Dog("Rex", datetime(2020, 1, 1, tzinfo=EAST))),
        (Union[Cat, Dog, None], Dog("Rex")),
        (list[Union[Cat, Dog]], [Dog("Rex"), Cat("Tom")]),
        (Row, Row(1, frozenset({2, 1}))),
        (Optional[Row], Row(1)),
        (dict[str, Row], {"a": Row(1)}),
    ]


Thing = TypeVar("Thing")
Other = TypeVar("Other")


@dataclass
class Box(Generic[Thing]):
    value: Thing


@dataclass
class Crate(Box[list[Thing]], Generic[Thing, Other]):
    """Its own variables are not those of its base."""

    label: Other


@dataclass
class Ticket(Box[UUID]):
    seat: int


@dataclass
class Late(Ticket):
    """Derived from what was derived."""

    at: date


@dataclass
class Dated(Crate[date, str]):
    extra: int = 0


every_format = pytest.mark.parametrize("name", ["Msgpack", "Json", "Cbor", "FlatBuffers", "Pickle"])


@every_format
def test_a_class_derived_from_a_generic_one_with_types_has_those(name: str) -> None:
    wrapper: Any = getattr(values, name)
    for value in (
        Ticket(UUID(int=7), 5),
        Late(UUID(int=7), 5, date(2024, 1, 2)),
        Dated([date(2024, 1, 2)], "label"),
    ):
        codec: Any = serializer(wrapper[type(value)])
        assert codec.decode(codec.encode(value)) == value
    wrong: Any = Ticket("00000000-0000-0000-0000-000000000000", 5)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="expected .*UUID"):
        serializer(wrapper[Ticket]).encode(wrong)
    wrong = Dated(["2024-01-02"], "label")  # type: ignore[list-item]
    with pytest.raises(EncodeError):
        serializer(wrapper[Dated]).encode(wrong)


class Perm(enum.Flag):
    NONE = 0
    READ = 1
    WRITE = 2
    RW = 3


@dataclass
class Allowed:
    perm: Perm = Perm.NONE


@every_format
def test_flags_of_no_bit_and_of_several_are_members_too(name: str) -> None:
    codec: Any = serializer(getattr(values, name)[Allowed])
    for perm in (Perm.NONE, Perm.READ, Perm.RW):
        assert codec.decode(codec.encode(Allowed(perm))) == Allowed(perm)


def held_by(alias: Any, annotation: Any, value: Any) -> Any:
    """What comes back of *value*, which is stored by itself."""
    codec = serializer(alias[annotation])
    return codec.decode(codec.encode(value))


@each_checked
def test_a_whole_number_in_a_union_is_never_read_as_a_member_of_an_enum(alias: Any) -> None:
    codec = serializer(alias[Union[float, Level]])
    assert held_by(alias, Union[float, Level], Level.LOW) is Level.LOW
    assert type(held_by(alias, Union[float, Level], 1.0)) is float
    for whole in (1, 7):  # stored as Level.LOW and as no level at all
        with pytest.raises(EncodeError, match=r"expected (Union|float \|)"):
            codec.encode(whole)


@each_checked
def test_numbers_in_a_union_with_decimals_stay_numbers(alias: Any) -> None:
    for value in (1.5, Decimal("1.5"), Decimal(1)):
        found = held_by(alias, Union[Decimal, float], value)
        assert (type(found), found) == (type(value), value)
    assert type(held_by(alias, Union[Decimal, int], 1)) is int


@each_checked
def test_unions_within_unions_are_checked_too(alias: Any) -> None:
    with pytest.raises(TypeError, match="cannot be told apart"):
        serializer(alias[Union[Annotated[Union[int, str], "a name or a number"], UUID]])
    assert held_by(alias, Union[Annotated[Union[int, str], "a name or a number"], float], "a") == "a"


@each_checked
def test_the_empty_tuple_is_a_type_of_its_own(alias: Any) -> None:
    assert held_by(alias, tuple[()], ()) == ()
    with pytest.raises(EncodeError, match="expected tuple"):
        serializer(alias[tuple[()]]).encode((1,))
    assert held_by(alias, typing.Tuple, (1,)) == held_by(alias, tuple, (1,)) == (1,)  # noqa: UP006


@dataclass
class Free:
    items: dict  # type: ignore[type-arg]


def test_keys_of_free_dicts_in_json_are_text() -> None:
    codec = serializer(values.Json[Free])
    assert codec.decode(codec.encode(Free({"a": 1}))) == Free({"a": 1})
    for wrong in ({1: "a", "1": "b"}, {None: 1}, {True: 1}, {1.5: 1}):
        with pytest.raises(EncodeError, match="a key of .*: expected str"):
            codec.encode(Free(wrong))


@pytest.mark.parametrize("alias", [values.Msgpack, values.FlatBuffers])
def test_times_without_a_year_in_utc_are_refused(alias: Any) -> None:
    codec = serializer(alias[datetime] if alias is values.FlatBuffers else alias)
    for moment in (datetime.max.replace(tzinfo=timezone(-timedelta(hours=5))), datetime.min.replace(tzinfo=EAST)):
        with pytest.raises(EncodeError):
            codec.encode(moment)
    edge = datetime.max.replace(tzinfo=timezone.utc)
    assert codec.decode(codec.encode(edge)) == edge


class NumberList(list[int]):
    pass


class TagSet(set[str]):
    pass


class HowDeep(TypedDict):
    depth: int


@dataclass
class Containers:
    numbers: list[int]
    pair: tuple[int, str] = (1, "r")
    counts: dict[str, int] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    options: Optional[HowDeep] = None


SUBCLASSES = [
    Containers(NumberList([1])),
    Containers([], Pair(1)),
    Containers([], counts=defaultdict(int, a=1)),
    Containers([], tags=TagSet("a")),
    Containers([], options=OrderedDict(depth=1)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("held", SUBCLASSES, ids=lambda held: repr(held)[:60])
def test_containers_of_subclasses_do_not_become_their_bases(held: Containers) -> None:
    for alias in CHECKED.values():
        with pytest.raises(EncodeError, match="expected "):
            serializer(alias[Containers]).encode(held)
    pickled = serializer(values.Pickle[Containers])
    back = pickled.decode(pickled.encode(held))
    assert [type(item) for item in vars(back).values()] == [type(item) for item in vars(held).values()]


@each_checked
def test_literals_of_bools_are_refused(alias: Any) -> None:
    with pytest.raises(TypeError, match="declare a bool"):
        serializer(alias[Literal[0, False]])
