"""FlatBuffers of model classes: standard bytes both ways, evolution, what is refused, what is corrupt."""

from __future__ import annotations

import enum
import importlib.util
import itertools
import json
import re
import shutil
import struct
import subprocess
import sys
import traceback
from dataclasses import dataclass, field, make_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Optional, TypedDict, Union
from uuid import UUID

import pytest

import zlmdb
from zlmdb import values
from zlmdb.errors import DecodeError, EncodeError
from zlmdb.values import (
    F32,
    I8,
    I16,
    I32,
    U8,
    U16,
    U32,
    U64,
    FlatBuffers,
    FlatBuffersView,
    Id,
    InStruct,
    Unchecked,
    fbs,
    load,
    serializer,
)
from zlmdb.values.depth import DEPTH
from zlmdb.values.fields import fields_of
from zlmdb.values.flat import runtime
from zlmdb.values.modelclasses import is_bare

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

attrs = pytest.importorskip("attrs")
try:
    import msgspec
except ImportError:  # PyPy
    msgspec = None

FLATC = shutil.which("flatc")
needs_flatc = pytest.mark.skipif(FLATC is None, reason="flatc (Debian: flatbuffers-compiler) is not installed")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Kind(enum.Enum):
    NONE = 0
    FEW = 5


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


@dataclass
class Point:
    x: Annotated[int, I32]
    y: float


@dataclass
class Segment:
    kind: Annotated[Kind, I8]
    begin: Annotated[Point, InStruct]
    end: Annotated[Point, InStruct]


@dataclass
class Small:
    a: int
    b: int
    c: float
    d: Annotated[int, U16]
    e: float
    s: str
    t: str


@dataclass
class User:
    """The user of the serializer benchmark."""

    oid: Annotated[int, U64]
    name: str
    authid: str
    uuid: UUID
    email: str
    birthday: date
    is_friendly: bool
    tags: list[str]
    ratings: dict[str, float]
    friends: list[Annotated[int, U64]]
    referred_by: Annotated[int, U64]


def ann() -> User:
    return User(
        oid=2**53, name="Test 1", authid="test-1", uuid=UUID(int=2**127 + 5), email="test-1@example.com",
        birthday=date(1950, 12, 24), is_friendly=True, tags=["geek", "sudoko", "yellow"],
        ratings={f"test-rating-{j}": 1 / (1 << j) for j in range(10)}, friends=[2**53 - j for j in range(10)],
        referred_by=2**64 - 1,
    )  # fmt: skip


@dataclass
class Numbers:
    i8: Annotated[int, I8]
    u8: Annotated[int, U8]
    i16: Annotated[int, I16]
    u16: Annotated[int, U16]
    i32: Annotated[int, I32]
    u32: Annotated[int, U32]
    i64: int
    u64: Annotated[int, U64]
    f32: Annotated[float, F32]
    f64: float
    flag: bool
    many8: list[Annotated[int, I8]]
    many16: list[Annotated[int, U16]]
    many32: list[Annotated[int, I32]]
    many64: list[int]
    floats: list[Annotated[float, F32]]
    doubles: tuple[float, ...]
    bools: list[bool]


@dataclass
class Optionals:
    a: Optional[int] = None
    b: Optional[str] = None
    c: Optional[list[int]] = None
    d: Optional[Annotated[Point, InStruct]] = None
    e: Optional[Small] = None
    f: Optional[bool] = None
    g: Optional[bytes] = None
    h: Optional[Annotated[float, F32]] = None
    id: Optional[UUID] = None
    j: Optional[Kind] = None
    k: Optional[list[Small]] = None
    last: int = 7


@dataclass
class Leaves:
    raw: bytes
    id: UUID
    at: datetime
    day: date
    wakes: time
    lasts: timedelta
    price: Decimal
    color: Color
    level: Level
    kind: Annotated[Kind, U8]
    rights: Rights
    role: Literal["admin", "guest"]
    number: Literal[3, 1]


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Movie(TypedDict):
    title: str
    year: int


@attrs.define
class Book:
    title: str
    pages: int = 1
    tags: list[str] = attrs.field(factory=list)
    _secret: Optional[int] = None


@dataclass(frozen=True)
class Frozen:
    a: int
    b: str = "b"


@dataclass
class Vectors:
    texts: list[str]
    points: list[Annotated[Point, InStruct]]
    segments: list[Annotated[Segment, InStruct]]
    pairs: list[Pair]
    users: list[User]
    optionals: list[Optionals]
    blobs: list[bytes]
    ids: set[UUID]
    matrix: list[list[int]]
    maybe: list[Optional[int]]
    colors: list[Color]
    kinds: tuple[Kind, ...]
    by_id: dict[UUID, Point]
    by_number: dict[int, list[str]]
    sorted: set[str]
    frozen: frozenset[int]
    size: tuple[int, str]
    days: list[date]


@dataclass
class Node:
    value: int
    left: Optional[Node] = None
    children: list[Node] = field(default_factory=list)


@dataclass
class Choice:
    either: Union[Small, Point, Pair]
    perhaps: Union[Point, Small, None]
    mixed: Union[int, str, list[int]]
    all: list[Union[Point, Pair]]


@dataclass
class Nested:
    pair: Pair
    book: Book
    movie: Movie
    frozen: Frozen
    segment: Annotated[Segment, InStruct]
    small: Small
    number: Annotated[int, U8]


class Word(enum.Enum):
    null = 0
    class_ = 1
    größe = 2
    true = 3


@dataclass
class string:
    string: str
    double: int


@dataclass
class Words:
    """Names that mean something to flatc, or that it does not know."""

    table: int
    struct: string
    namespace: Annotated[string, "as a table of its own"]
    enum: Word
    root_type: Word = Word.null
    true: bool = True
    null: Optional[int] = None
    nan: float = 1.0
    init: str = "x"
    größe: list[Word] = field(default_factory=list)
    a_b: int = 1
    aB: int = 2
    include: Union[string, Point, None] = None
    include_type: int = 3
    key: Word = Word.true
    required: tuple[int, ...] = ()
    None_: int = 0
    lambda_: int = 0


def small(text: str = "hello") -> Small:
    return Small(1, -2, 3.5, 65535, -0.25, text, "w\u00f6rld" * 3)


SEGMENT = Segment(Kind.FEW, Point(1, 2.5), Point(-3, 4.0))
UTC = timezone.utc

MODELS: list[tuple[Any, Any]] = [
    (Small, small()),
    (Small, small("")),
    (Small, small("x" * 5000)),
    (User, ann()),
    (Point, Point(-5, 0.5)),
    (Numbers, Numbers(-128, 255, -(2**15), 2**16 - 1, -(2**31), 2**32 - 1, -(2**63), 2**64 - 1, 0.5, 1e300, True,
                      [1, -1, 2], [3], [2**31 - 1, 0, 1], [2**62], [0.5, 1.5, 2.0], (1.0, 2.0), [True, False, True])),
    (Numbers, Numbers(0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, False, [], [], [], [], [], (), [])),
    (Optionals, Optionals()),
    (Optionals, Optionals(0, "", [], Point(0, 0.0), small(), False, b"", 0.0, UUID(int=0), Kind.NONE, [])),
    (Optionals, Optionals(b="b", e=small())),
    (Optionals, Optionals(5, None, [1, 2], None, None, True, b"12345", None, UUID(int=5), None, [small(), small("")])),
    (Leaves, Leaves(b"\x00\xff", UUID(int=77), datetime(2020, 1, 2, 3, 4, 5, 6, UTC), date(1, 1, 1), time(23, 59, 1, 2),
                    timedelta(days=-5, microseconds=1), Decimal("-1.50"), Color.BLUE, Level.HIGH, Kind.FEW,
                    Rights.READ | Rights.WRITE, "guest", 1)),
    (Vectors, Vectors(["", "a", "\u00e9" * 300], [Point(1, 2.0), Point(3, 4.0)], [SEGMENT, SEGMENT],
                      [Pair(1), Pair(2, "")], [ann()],
                      [Optionals(), Optionals(a=1), Optionals(b="x", id=UUID(int=1)), Optionals()],
                      [b"", b"123"], {UUID(int=2), UUID(int=1)}, [[], [1, 2]], [None, 1, 0], [Color.RED],
                      (Kind.FEW, Kind.NONE),
                      {UUID(int=1): Point(1, 2.0)}, {5: ["a", "b"], -1: []}, {"b", "a"}, frozenset({3, 1}), (1, "x"),
                      [date(2020, 2, 29)])),
    (Vectors, Vectors([], [], [], [], [], [], [], set(), [], [], [], (), {}, {}, set(), frozenset(), (0, ""), [])),
    (Node, Node(1, Node(2, None, [Node(4)]), [Node(3), Node(5, Node(6))])),
    (Choice, Choice(small(), None, 5, [])),
    (Choice, Choice(Pair(1), Point(1, 2.0), "text", [Point(3, 4.0), Pair(5, "y")])),
    (Choice, Choice(Point(1, 2.0), small(), [1, 2], [Pair(5, "y")])),
    (Nested, Nested(Pair(1, "x"), Book("B", 3, ["x"], 5), {"title": "M", "year": 1931}, Frozen(1), SEGMENT, small(),
                    9)),
    (Words, Words(1, string("a", 1), string("b", 2), Word.größe, größe=[Word.class_, Word.null])),
    (Words, Words(1, string("a", 1), string("b", 2), Word.null, Word.true, include=Point(1, 2.0), include_type=9)),
    (Pair, Pair(1, "x")),
    (Movie, {"title": "M", "year": 1931}),
    (Book, Book("B")),
    (Frozen, Frozen(3, "x")),
    (list[Point], [Point(1, 2.0)]),
    (Optional[Point], None),
    (Optional[Point], Point(1, 2.0)),
    (dict[str, int], {"b": 1, "a": 2}),
    (Union[Point, Pair], Pair(1, "2")),
    (date, date(2020, 1, 1)),
    (list[str], []),
]  # fmt: skip
each = pytest.mark.parametrize(("model", "value"), MODELS, ids=lambda part: repr(part)[:30])


@each
def test_models_come_back_equal_and_of_the_same_type(model: Any, value: Any) -> None:
    codec = serializer(FlatBuffers[model])
    data = codec.encode(value)
    assert type(data) is bytes
    for stored in (data, bytearray(data), memoryview(data)):
        again = codec.decode(stored)  # type: ignore[arg-type]  # a bytearray works as well
        assert again == value
        assert type(again) is type(value)
    assert codec.name == "flatbuffers"
    assert serializer(Unchecked[FlatBuffers[model]]).encode(value) == data


@pytest.mark.skipif(msgspec is None, reason="msgspec does not install on PyPy")
def test_structs_of_msgspec() -> None:
    class Thing(msgspec.Struct, kw_only=True, frozen=True):  # type: ignore[misc]  # None on PyPy
        name: str
        sizes: list[int] = msgspec.field(default_factory=list)
        note: Optional[str] = None

    codec = serializer(FlatBuffers[Thing], localns={"Optional": Optional})
    for value in (Thing(name="x"), Thing(name="", sizes=[1], note="n")):
        assert codec.decode(codec.encode(value)) == value


def test_what_a_class_does_when_an_object_is_made_is_done() -> None:
    seen: list[Any] = []

    @dataclass
    class OwnInit:
        a: int
        b: int = 1

        def __init__(self, a: int, b: int) -> None:
            seen.append("init")
            self.a, self.b = a, b

    @dataclass
    class Base:
        a: int
        b: int = 1

    class Below(Base):
        def __init__(self, a: int, b: int) -> None:
            seen.append("below")
            super().__init__(a, b)

    @dataclass
    class Watched:
        a: int
        b: int = 1

        def __setattr__(self, name: str, value: Any) -> None:
            seen.append(name)
            super().__setattr__(name, value)

    class Described:
        def __set__(self, one: Any, value: Any) -> None:
            seen.append("set")
            one.__dict__["a"] = value

    @dataclass
    class New:
        a: int
        b: int = 1

        def __new__(cls, *given: Any) -> Any:
            seen.append("new")
            return super().__new__(cls)

    @dataclass
    class WithDescriptor:
        a: int
        b: int = 1

    WithDescriptor.a = Described()  # type: ignore[assignment]
    for model, traces in (
        (Base, []), (OwnInit, ["init"]), (Below, ["below"]), (Watched, ["a", "b"]), (New, ["new"]),
        (WithDescriptor, ["set"]),
    ):  # fmt: skip
        codec = serializer(FlatBuffers[model])
        data = codec.encode(model(5, 6))
        seen.clear()
        again = codec.decode(data)
        assert seen == traces
        assert (type(again), vars(again)) == (model, {"a": 5, "b": 6})


def test_plain_dataclasses_are_made_without_calling_them() -> None:
    """The fast way; what a class would do besides is in the test before this."""

    @dataclass
    class Derived(Optionals):
        more: list[int] = field(default_factory=list)

    @dataclass
    class Slotted:
        __slots__ = ("a", "b")
        a: int
        b: str

    assert [is_bare(model) for model in (User, Small, Optionals, Words, Derived, Slotted)] == [True] * 6
    assert [is_bare(model) for model in (Frozen, Pair, Movie, Book)] == [False] * 4
    codec = serializer(FlatBuffers[Slotted])
    assert codec.decode(codec.encode(Slotted(1, "x"))) == Slotted(1, "x")


def test_fields_set_late_and_keywords() -> None:
    options: dict[str, Any] = {"kw_only": True, "slots": True} if sys.version_info >= (3, 10) else {}

    @dataclass(**options)
    class Thing:
        a: int = field(metadata={"id": 1})
        b: str = field(metadata={"id": 0})

    @dataclass
    class Counted:
        text: str
        length: int = field(default=-1, init=False)

        def __post_init__(self) -> None:
            self.length = len(self.text)

    for model, value in ((Thing, Thing(a=1, b="x")), (Counted, Counted("abc"))):
        codec = serializer(FlatBuffers[model])
        assert codec.decode(codec.encode(value)) == value


# The bytes (docs/format.rst has one more)

GOLDEN: list[tuple[Any, Any, str]] = [
    (
        list[Pair],
        [Pair(1, "a"), Pair(2, "")],
        "0c00000006000800040000000800000004000000020000001400000028000000000000000800100004000c0008000000"
        "0100000000000000040000000100000061000000200000000200000000000000040000000000000000000000",
    ),
    (
        Union[Point, Pair],
        Point(-1, 0.5),
        "0c000000080009000800040008000000140000000100000000000000080010000c00040008000000000000000000e03fffffffff",
    ),
    (
        dict[str, float],
        {"x": 1.5},
        "0c00000006000800040000000800000004000000010000000c000000080010000c00040008000000000000000000f83f"
        "040000000100000078000000",
    ),
    (
        Optional[UUID],
        None,
        "0c00000006000800000000000800000000000000",
    ),
    (
        list[Optional[int]],
        [None, 7],
        "0c000000060008000400000008000000040000000200000014000000280000000000000006000c0004000000f0ffffff"
        "00000000000000000000000006000c000000000020000000070000000000000000000000",
    ),
    (
        tuple[UUID, date],
        (UUID(int=1), date(2020, 2, 29)),
        "0c0000000600080004000000080000000c00000008000c00040008000800000008000000e407021d1000000000000000"
        "000000000000000000000001",
    ),
]


@pytest.mark.parametrize(("model", "value", "stored"), GOLDEN, ids=lambda part: repr(part)[:30])
def test_bytes_stay_what_they_are(model: Any, value: Any, stored: str) -> None:
    codec = serializer(FlatBuffers[model])
    assert codec.encode(value).hex() == stored
    assert codec.decode(bytes.fromhex(stored)) == value


# Standard bytes, both ways


def flatc(*arguments: str, at: Path) -> None:
    subprocess.run([str(FLATC), *arguments], cwd=at, check=True, capture_output=True)


def official(model: Any, at: Path) -> Any:
    """The module that flatc generates for *model*."""
    (at / "model.fbs").write_text(fbs(model))
    flatc("--python", "--gen-object-api", "--gen-onefile", "model.fbs", at=at)
    spec = importlib.util.spec_from_file_location("model_generated", at / "model_generated.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def root_name(model: Any) -> str:
    return fbs(model).rpartition("root_type ")[2].split(";")[0]


def rewritten_by_flatc(model: Any, value: Any, at: Path) -> bytes:
    """*value* as flatc writes it: our bytes, made JSON and then a buffer again."""
    (at / "model.fbs").write_text(fbs(model))
    (at / "data.bin").write_bytes(serializer(FlatBuffers[model]).encode(value))
    flatc("--json", "--raw-binary", "--strict-json", "model.fbs", "--", "data.bin", at=at)
    assert isinstance(json.loads((at / "data.json").read_text()), dict)
    flatc("--binary", "model.fbs", "data.json", at=at)
    return (at / "data.bin").read_bytes()


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@needs_flatc
@each
def test_flatc_prints_our_bytes_and_we_read_what_it_makes_of_that(model: Any, value: Any, tmp_path: Path) -> None:
    codec = serializer(FlatBuffers[model])
    again = rewritten_by_flatc(model, value, tmp_path)
    assert codec.decode(again) == value
    view = serializer(FlatBuffersView[model]).decode(again)
    assert (load(view) if is_view(view) else view) == value


def is_view(value: Any) -> bool:
    return type(value).__name__.endswith("View")


@needs_flatc
@each
def test_the_official_runtime_reads_our_bytes_and_we_its(model: Any, value: Any, tmp_path: Path) -> None:
    flatbuffers = pytest.importorskip("flatbuffers")
    codec = serializer(FlatBuffers[model])
    module = official(model, tmp_path)
    name = root_name(model)
    data = codec.encode(value)
    read = getattr(module, f"{name}T").InitFromObj(getattr(module, name).GetRootAs(data, 0))
    builder = flatbuffers.Builder(0)
    builder.Finish(read.Pack(builder))
    assert codec.decode(bytes(builder.Output())) == value


@needs_flatc
def test_the_official_reader_sees_each_field(tmp_path: Path) -> None:
    module = official(User, tmp_path)
    user = ann()
    seen = module.User.GetRootAs(serializer(FlatBuffers[User]).encode(user), 0)
    assert (seen.Oid(), seen.Name(), seen.Email()) == (user.oid, b"Test 1", b"test-1@example.com")
    assert bytes(seen.Uuid(j) for j in range(seen.UuidLength())) == user.uuid.bytes
    assert (seen.Birthday().Year(), seen.Birthday().Month(), seen.Birthday().Day()) == (1950, 12, 24)
    assert [seen.Tags(j).decode() for j in range(seen.TagsLength())] == user.tags
    ratings = [seen.Ratings(j) for j in range(seen.RatingsLength())]
    assert {one.Key().decode(): one.Value() for one in ratings} == user.ratings
    assert [seen.Friends(j) for j in range(seen.FriendsLength())] == user.friends


def test_a_field_that_was_written_with_fewer_bytes_than_the_class_declares_is_refused() -> None:
    """It would be read together with the bytes of the field behind it."""
    narrow = make_dataclass(
        "Person", [("name", str), ("age", Annotated[int, U32], 0), ("year", Annotated[int, U32], 0)]
    )
    wide = make_dataclass("Person", [("name", str), ("age", int, 0), ("year", int, 0)])
    older = make_dataclass("Person", [("name", str), ("age", Annotated[int, U32], 0)])
    data = serializer(FlatBuffers[narrow]).encode(narrow("Ann", 31, 1995))
    assert serializer(FlatBuffers[older]).decode(data).age == 31
    with pytest.raises(zlmdb.DecodeError, match=r"field 1 has 4 bytes at most, and the class declares 8: .*int, U32\]"):
        serializer(FlatBuffers[wide]).decode(data)
    with pytest.raises(zlmdb.DecodeError, match="field 1 has 4 bytes at most"):
        _ = serializer(FlatBuffersView[wide]).decode(data).age


def test_the_schema_as_text() -> None:
    @dataclass
    class Thing:
        at: Annotated[Point, InStruct]
        kind: Annotated[Kind, I8] = Kind.FEW
        name: str = "x"
        size: Optional[Annotated[int, U16]] = None
        big: int = 5
        yes: bool = True

    text = fbs(Thing)
    assert "struct Point {\n  x: int;\n  y: double;\n}\n" in text
    assert "enum Kind:byte {\n  NONE = 0,\n  FEW = 5\n}\n" in text
    assert text.endswith(
        "table Thing {\n"
        "  at: Point (id: 0, required);\n"
        "  kind: Kind = FEW (id: 1);\n"
        "  name: string (id: 2);\n"
        "  size: ushort = null (id: 3);\n"
        "  big: long = 5 (id: 4);\n"
        "  yes: bool = true (id: 5);\n"
        "}\n\nroot_type Thing;\n"
    )


# Layouts that are not ours


def table_of(vtable: list[int], body: bytes) -> bytes:
    """*vtable* and *body* as a buffer of which the root is the body, with its vtable before it."""
    packed = struct.pack(f"<{len(vtable)}H", *vtable)
    packed += bytes(-len(packed) % 4)
    return struct.pack("<I", 4 + len(packed)) + packed + struct.pack("<i", len(packed)) + body


@dataclass
class Flat:
    a: Annotated[int, I32] = 3
    b: Annotated[int, I32] = 4


FLAT = serializer(FlatBuffers[Flat])


def test_the_vtable_may_come_after_the_table() -> None:
    data = struct.pack("<IiiiHHHH", 4, -12, 7, 8, 8, 12, 4, 8)
    assert FLAT.decode(data) == Flat(7, 8)
    assert load(serializer(FlatBuffersView[Flat]).decode(data)) == Flat(7, 8)


def test_a_root_far_from_the_beginning() -> None:
    for gap in (4, 252, 256, 1000, 70000):
        data = struct.pack("<I", 4 + gap + 8) + bytes(gap) + struct.pack("<HHHHiii", 8, 12, 8, 4, 8, 8, 7)
        assert FLAT.decode(data) == Flat(7, 8)


def test_a_first_vtable_that_is_ours_but_belongs_to_no_root() -> None:
    ours = FLAT.encode(Flat(1, 2))
    moved = struct.pack("<I", len(ours) + 8) + ours[4:] + struct.pack("<HHHHiii", 8, 12, 4, 8, 8, 5, 6)
    assert FLAT.decode(moved) == Flat(5, 6)


def test_a_table_shorter_than_ours_at_the_end() -> None:
    assert FLAT.decode(table_of([6, 8, 4], struct.pack("<i", 9))) == Flat(9, 4)
    assert FLAT.decode(table_of([4, 4], b"")) == Flat(3, 4)
    with pytest.raises(DecodeError):
        FLAT.decode(table_of([6, 8, 4], b""))


def test_newer_fields_are_skipped_and_older_ones_get_their_default() -> None:
    @dataclass
    class Old:
        name: str
        size: int

    @dataclass
    class New:
        name: str
        size: int
        tags: list[str] = field(default_factory=lambda: ["none"])
        note: Optional[str] = None
        more: Annotated[int, U16] = 9
        kind: Kind = Kind.FEW
        born: date = date(2000, 1, 1)
        point: Point = field(default_factory=lambda: Point(0, 1.0))
        text: str = "text"

    old, new = serializer(FlatBuffers[Old]), serializer(FlatBuffers[New])
    stored = old.encode(Old("a", 5))
    assert new.decode(stored) == New("a", 5)
    assert new.decode(stored).tags is not new.decode(stored).tags
    view = serializer(FlatBuffersView[New]).decode(stored)
    assert (view.tags, view.note, view.more, view.text) == (["none"], None, 9, "text")
    assert old.decode(new.encode(New("b", 6, ["x"], "note"))) == Old("b", 6)
    many_old, many_new = serializer(FlatBuffers[list[Old]]), serializer(FlatBuffers[list[New]])
    assert many_new.decode(many_old.encode([Old("a", 1), Old("b", 2)])) == [New("a", 1), New("b", 2)]
    assert many_old.decode(many_new.encode([New("a", 1), New("b", 2)])) == [Old("a", 1), Old("b", 2)]


def test_a_removed_field_leaves_its_id() -> None:
    @dataclass
    class Before:
        a: int
        b: str
        c: int

    @dataclass
    class After:
        c: int = field(metadata={"id": 2})
        a: int = field(metadata={"id": 0})

    class Tuple(NamedTuple):
        c: Annotated[int, Id(2)]
        a: Annotated[int, Id(0)]

    stored = serializer(FlatBuffers[Before]).encode(Before(1, "x", 3))
    codec = serializer(FlatBuffers[After])
    assert codec.decode(stored) == After(c=3, a=1)
    assert codec.decode(codec.encode(After(4, 5))) == After(4, 5)
    assert "removed_1: ubyte (id: 1, deprecated);" in fbs(After)
    assert serializer(FlatBuffers[Tuple]).decode(stored) == Tuple(c=3, a=1)


def test_an_id_inside_of_required_counts_and_the_file_records_the_id_that_is_stored() -> None:
    extensions = pytest.importorskip("typing_extensions")
    required: Any = extensions.Required
    keys: Any = {"a": required[Annotated[int, Id(1)]], "b": required[Annotated[int, Id(0)]]}
    by_keys: Any = extensions.TypedDict("by_keys", keys)
    assert "b: long (id: 0);\n  a: long (id: 1);" in fbs(by_keys)

    @dataclass
    class Both:
        a: Annotated[int, Id(1)] = field(default=0, metadata={"id": 0})
        b: int = field(default=0, metadata={"id": 1})

    for model in (by_keys, Both):
        recorded = fields_of(model, serializer(FlatBuffers[model]))
        assert recorded is not None
        for one in recorded.description["models"][0]["fields"]:
            assert f"{one['name']}: long (id: {one['id']});" in fbs(model)


def test_a_missing_field_without_default_is_an_error() -> None:
    codec = serializer(FlatBuffers[Frozen])
    assert serializer(FlatBuffers[Flat]).decode(table_of([4, 4], b"")) == Flat()
    with pytest.raises(DecodeError, match="name is not there"):
        serializer(FlatBuffers[User]).decode(table_of([4, 4], b""))
    assert codec.decode(table_of([4, 4], b"")) == Frozen(0, "b")  # numbers are 0, as FlatBuffers has it


@pytest.mark.parametrize("mask", range(2**5))
def test_every_mask_of_absent_fields(mask: int) -> None:
    given = dict(zip("abdeg", (1, "b", Point(1, 2.0), small(), b"x")))
    chosen = {name: one for bit, (name, one) in enumerate(given.items()) if mask >> bit & 1}
    value = Optionals(**chosen)
    codec = serializer(FlatBuffers[Optionals])
    assert codec.decode(codec.encode(value)) == value
    many = serializer(FlatBuffers[list[Optionals]])
    assert many.decode(many.encode([value, Optionals(), value])) == [value, Optionals(), value]


def alignments(data: bytes, table: int, sizes: list[int]) -> list[int]:
    """Where, modulo their sizes, the fields of the table at *table* lie."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    offsets = struct.unpack_from(f"<{len(sizes)}H", data, vtable + 4)
    return [(table + offset) % size for offset, size in zip(offsets, sizes)]


def test_numbers_are_aligned() -> None:
    data = serializer(FlatBuffers[Numbers]).encode(MODELS[5][1])
    root = struct.unpack_from("<I", data)[0]
    assert alignments(data, root, [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1]) == [0] * 11
    many = serializer(FlatBuffers[list[Small]]).encode([small("x" * n) for n in range(9)])
    box = struct.unpack_from("<I", many)[0]
    vector = box + 4
    vector += struct.unpack_from("<I", many, vector)[0]
    for number in range(9):
        place = vector + 4 + 4 * number
        assert alignments(many, place + struct.unpack_from("<I", many, place)[0], [8, 8, 8, 2, 8]) == [0] * 5


@pytest.mark.parametrize("more", [None, int, Annotated[int, I32], str, UUID], ids=["", "i64", "i32", "str", "UUID"])
@pytest.mark.parametrize("order", ["sb", "bs", "sbt", "tbs", "bt", "ts", "n", "nb", "nsb"])
def test_vectors_are_aligned_wherever_they_begin(more: Any, order: str) -> None:
    """Of entries with numbers of eight bytes (s, n) and of such numbers (b), beside texts (t), after any field."""
    kinds: dict[str, Any] = {"s": dict[str, float], "b": list[int], "t": list[str], "n": list[Small]}
    sizes = {"s": [4, 8], "n": [8, 8, 8, 2, 8]}
    fields = [("x", more)] if more is not None else []
    model: Any = make_dataclass("Model", [*fields, *[(name, kinds[name]) for name in order]])
    codec: Any = serializer(FlatBuffers[model])
    before: list[Any] = [{str: "text", UUID: UUID(int=5)}.get(more, 7)] if fields else []
    for count in range(4):
        numbers = list(range(count))
        given = {"s": {"k" * n: n / 2 for n in numbers}, "b": numbers, "t": ["t" * n for n in numbers]}
        given["n"] = [small("x" * n) for n in numbers]
        data = codec.encode(model(*before, *[given[name] for name in order]))
        assert codec.encode(codec.decode(data)) == data
        table = struct.unpack_from("<I", data)[0]
        vtable = table - struct.unpack_from("<i", data, table)[0]
        for at, name in enumerate(order, len(fields)):
            vector = table + struct.unpack_from("<H", data, vtable + 4 + 2 * at)[0]
            vector += struct.unpack_from("<I", data, vector)[0]
            assert vector % 8 == 4 if name == "b" else vector % 4 == 0
            for place in range(vector + 4, vector + 4 + 4 * count, 4) if name in sizes else ():
                entry = place + struct.unpack_from("<I", data, place)[0]
                assert alignments(data, entry, sizes[name]) == [0] * len(sizes[name])


# What is refused

WRONG: list[tuple[Any, Any, str]] = [
    (Small, small()._replace if hasattr(small(), "_replace") else 5, "Small"),
    (Small, Small(True, 1, 1.0, 1, 1.0, "", ""), r"Small\.a"),
    (Small, Small(1, 2**63, 1.0, 1, 1.0, "", ""), r"Small\.b"),
    (Small, Small(1, 1, "x", 1, 1.0, "", ""), r"Small\.c"),  # type: ignore[arg-type]
    (Small, Small(1, 1, 2**53 + 1, 1, 1.0, "", ""), r"Small\.c"),
    (Small, Small(1, 1, 1.0, 65536, 1.0, "", ""), r"Small\.d.*ushort"),
    (Small, Small(1, 1, 1.0, -1, 1.0, "", ""), r"Small\.d"),
    (Small, Small(1, 1, 1.0, 1, 1.0, "\ud800", ""), r"Small\.s"),
    (Small, Small(1, 1, 1.0, 1, 1.0, None, ""), r"Small\.s"),  # type: ignore[arg-type]
    (list[Small], [small(), Small(1, 1, 1.0, 1, 1.0, "", b"")], r"\[1\].*\.t"),  # type: ignore[arg-type]
    (list[int], [1, True], r"\[1\]"),
    (list[float], [1.0, "x"], r"\[1\]"),
    (list[str], ["a", 5], r"\[1\]"),
    (dict[str, int], {"a": "b"}, "dict"),
    (set[Color], {Color.RED, None}, r"set\[.*Color\]"),
    (frozenset[Optional[Level]], {Level.LOW, "x"}, "frozenset"),
    (set[Decimal], {Decimal("NaN"), Decimal(1)}, "set.*Decimal"),
    (Optional[int], "x", "int"),
    (Union[Point, Pair], small(), "Union"),
    (Optionals, Optionals(d=Point(2**31, 0.0)), r"Optionals\.d\.x"),
    (Leaves, None, "Leaves"),
    (datetime, datetime(2020, 1, 1), "datetime"),
    (time, time(1, tzinfo=UTC), "time"),
    (timedelta, timedelta.max, "timedelta"),
    (Color, Kind.NONE, "Color"),
    (Literal["a"], "b", "Literal"),
    (Annotated[float, F32], 1e300, "float"),
    (Node, Node("x"), r"Node\.value"),  # type: ignore[arg-type]
    (Node, Node(1, None, [Node(1), Node(2, Node("x"))]), r"Node\.children\[1\]\.left\.value"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("model", "value", "match"), WRONG, ids=lambda part: repr(part)[:30])
def test_values_that_do_not_fit_are_refused_with_their_path(model: Any, value: Any, match: str) -> None:
    codec = serializer(FlatBuffers[model])
    with pytest.raises(EncodeError, match=match):
        codec.encode(value)
    with pytest.raises(EncodeError, match=match):
        serializer(FlatBuffersView[model]).encode(value)


def test_a_value_that_other_readers_could_not_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their offsets are signed: from 2 GiB on they refuse it, or read something else."""

    @dataclass
    class Part:
        name: str
        number: int = 0

    @dataclass
    class Whole:
        name: str
        data: bytes = b""
        parts: list[Part] = field(default_factory=list)

    monkeypatch.setattr(runtime, "MOST", 200)
    codec: Any = serializer(FlatBuffers[Whole], localns=locals())
    assert codec.decode(codec.encode(Whole("a"))) == Whole("a")
    for value in (Whole("a" * 200), Whole("a", b"b" * 200), Whole("a", parts=[Part("c" * 9)] * 20)):
        with pytest.raises(EncodeError, match=r"Whole: the value has \d+ bytes, and FlatBuffers have up to 200: "):
            codec.encode(value)
        assert len(codec.encode(Whole("a", b"c" * 100))) <= 200
    load, dump = serializer(FlatBuffers[Part]).rewriter({"name"}, set()) or (None, None)
    assert load is not None
    assert dump is not None
    part = load(serializer(FlatBuffers[Part]).encode(Part("d")))
    part.name = "d" * 200
    with pytest.raises(ValueError, match="up to 200"):
        dump(part)


def test_a_subclass_would_not_come_back_and_is_refused() -> None:
    class Other(Point):
        pass

    with pytest.raises(EncodeError, match="Point"):
        serializer(FlatBuffers[Point]).encode(Other(1, 2.0))


def test_an_int_that_a_float_holds_is_a_float() -> None:
    codec = serializer(FlatBuffers[Point])
    assert codec.decode(codec.encode(Point(1, 2))) == Point(1, 2.0)


def test_unchecked_looks_at_nothing_that_fits_the_bytes() -> None:
    codec = serializer(Unchecked[FlatBuffers[Point]])
    assert codec.decode(codec.encode(Point(True, 2.0))) == Point(1, 2.0)
    with pytest.raises(EncodeError):
        codec.encode(Point("x", 2.0))  # type: ignore[arg-type]


def test_a_class_that_would_refuse_the_object_is_asked() -> None:
    @dataclass
    class Person:
        age: int

        def __post_init__(self) -> None:
            if self.age < 0:
                raise ValueError("nobody is younger than 0")

    person = Person(5)
    person.age = -1
    with pytest.raises(EncodeError, match="younger"):
        serializer(FlatBuffers[Person]).encode(person)


def chain(length: int) -> Node:
    node = Node(0)
    for number in range(1, length):
        node = Node(number, node)
    return node


def test_recursion_ends_at_the_depth_of_all_formats_both_ways() -> None:
    codec = serializer(FlatBuffers[Node])
    deepest = chain(DEPTH - 1)  # the list in the last node is a level, too
    assert codec.decode(codec.encode(deepest)) == deepest
    for node in (chain(DEPTH), chain(DEPTH + 1), chain(5000)):
        with pytest.raises(EncodeError, match="levels"):
            codec.encode(node)
    loop = Node(1)
    loop.children = [loop]
    with pytest.raises(EncodeError, match="levels"):
        codec.encode(loop)


class Bare:
    """A class that is no model."""


REFUSED: list[tuple[Any, str]] = [
    (list[Any], "Any"),
    (dict[str, object], "object"),
    (Annotated[str, U8], "width"),
    (Annotated[int, F32], "int is not stored as float"),
    (Annotated[float, I8], "float is not stored as byte"),
    (Annotated[Small, InStruct], r"\.s: a struct"),
    (list[Bare], "Bare"),
    (Union[list[int], list[str]], "told"),
]


@pytest.mark.parametrize(("model", "match"), REFUSED, ids=lambda part: repr(part)[:30])
def test_types_that_cannot_be_stored_are_refused_before_the_first_value(model: Any, match: str) -> None:
    codec = serializer(FlatBuffers[model])
    with pytest.raises(TypeError, match=match):
        _ = codec.raw_encode
    with pytest.raises(TypeError, match=match):
        fbs(model)


def test_ids_are_all_or_none_and_each_once() -> None:
    @dataclass
    class Some:
        a: int = field(metadata={"id": 0})
        b: int

    @dataclass
    class Twice:
        a: int = field(metadata={"id": 0})
        b: int = field(metadata={"id": 0})

    for model, match in ((Some, "all or none"), (Twice, "the id 0 is that of a")):
        with pytest.raises(TypeError, match=match):
            fbs(model)


# The classic callables


def test_a_model_class_with_classic_callables_is_theirs() -> None:
    codec = serializer(FlatBuffers[Bare]).configured(
        build=lambda value, builder: 0, cast=lambda data: ("cast", bytes(data))
    )
    assert codec.decode(b"ab") == ("cast", b"ab")
    model = serializer(FlatBuffers[Small])
    model.encode(small())
    assert model.configured(cast=len).decode(b"abc") == 3
    with pytest.raises(EncodeError, match="build="):
        serializer(FlatBuffers[Bare]).encode(Bare())


def test_a_serializer_in_an_annotation_is_told_its_type() -> None:
    codec = serializer(Annotated[Point, values.FlatBuffersSerializer(checked=False)])
    assert codec.decode(codec.encode(Point(True, 2.0))) == Point(1, 2.0)
    assert codec.model is not None
    assert codec.model.endswith("Point")
    classic = values.FlatBuffersSerializer(cast=len)
    assert serializer(Annotated[Bare, classic]) is classic


def test_a_class_that_refers_to_later_ones_is_looked_at_late() -> None:
    class Table(zlmdb.Table[int, Annotated["Later", values.FlatBuffersSerializer()]]):
        """Of a class that is not there yet."""

    @dataclass
    class Later:
        next: Optional[Later] = None

    class Schema(zlmdb.Schema):
        later: Table

    with zlmdb.open(None, Schema) as db, db.write() as t:
        t.later[1] = Later(Later())
        assert t.later[1] == Later(Later())


def test_a_file_alone_gives_the_bytes() -> None:
    data = serializer(FlatBuffers[Small]).encode(small())
    assert values.from_name("flatbuffers").decode(data) == data


# Views


@each
def test_views_read_the_same(model: Any, value: Any) -> None:
    data = serializer(FlatBuffers[model]).encode(value)
    codec = serializer(FlatBuffersView[model])
    for stored in (data, memoryview(data)):
        view = codec.decode(stored)
        if not is_view(view):
            assert view == value
            continue
        assert load(view) == value
        assert codec.encode(view) == data
        assert view == codec.decode(data)
        assert "View" in repr(view)
        assert codec.encode(value) == data


def test_a_view_reads_what_is_touched_and_only_that() -> None:
    user = ann()
    data = bytearray(serializer(FlatBuffers[User]).encode(user))
    data[data.index(b"test-1@") + 2] = 0xFF  # no UTF-8
    view = serializer(FlatBuffersView[User]).decode(bytes(data))
    assert view.name == "Test 1"
    assert view.ratings == user.ratings
    assert view.birthday == user.birthday
    with pytest.raises(DecodeError, match=r"UserView\.email"):
        _ = view.email
    with pytest.raises(AttributeError):
        view.name = "other"
    with pytest.raises(TypeError):
        load(user)


def test_a_lone_surrogate_in_the_file_is_no_text() -> None:
    data = serializer(FlatBuffers[User]).encode(ann()).replace(b"test-1@", b"te\xed\xa0\x801@")
    with pytest.raises(DecodeError):
        serializer(FlatBuffers[User]).decode(data)
    view = serializer(FlatBuffersView[User]).decode(data)
    with pytest.raises(DecodeError, match=r"UserView\.email"):
        _ = view.email


def test_views_of_tables_inside_are_views() -> None:
    node = Node(1, Node(2), [Node(3), Node(4)])
    view = serializer(FlatBuffersView[Node]).decode(serializer(FlatBuffers[Node]).encode(node))
    assert is_view(view.left)
    assert view.left.value == 2
    assert [child.value for child in view.children] == [3, 4]
    assert view.left.left is None


class Nodes(zlmdb.Schema):
    nodes: zlmdb.Table[int, FlatBuffersView[Node]]
    maybe: zlmdb.Table[int, FlatBuffersView[Optional[Node]]]


def test_a_view_of_a_part_is_stored_as_that_part() -> None:
    with zlmdb.open(None, Nodes) as db, db.write() as t:
        t.nodes[1] = Node(1, Node(2, Node(5)), [Node(3), Node(4)])
        t.nodes[2] = t.nodes[1].left
        t.nodes[3] = t.nodes[1].children[1]
        t.nodes[4] = t.nodes[2]
        t.maybe[1] = t.nodes[1]
        found = {key: load(t.nodes[key]) for key in t.nodes}
        assert found[2] == found[4] == Node(2, Node(5))
        assert found[3] == Node(4)
        assert t.maybe[1] == found[1]


def test_a_view_of_another_class_is_refused() -> None:
    leaf = make_dataclass("Leaf", [("value", int)])  # whose bytes would do
    view = serializer(FlatBuffersView[leaf]).decode(serializer(FlatBuffers[leaf]).encode(leaf(1)))
    with pytest.raises(EncodeError, match=r"expected .*Node.*, got LeafView"):
        serializer(FlatBuffersView[Node]).encode(view)


@dataclass
class Texts:
    a: str
    b: str
    number: int
    c: str
    scores: list[int]
    d: str


def test_texts_side_by_side_of_every_length_come_back() -> None:
    codec, unchecked = serializer(FlatBuffers[Texts]), serializer(Unchecked[FlatBuffers[Texts]])
    lengths = (0, 1, 3, 4, 5, 31, 59, 60, 62, 63, 64, 65)
    for a, b in itertools.product(lengths, lengths):
        value = Texts("ä" * (a // 2) + "a" * (a % 2), "b" * b, a, "c" * (63 - b % 64), list(range(b)), "d" * a)
        data = codec.encode(value)
        assert len(data) % 4 == 0
        assert codec.decode(data) == value
        assert unchecked.encode(value) == data
        view = serializer(FlatBuffersView[Texts]).decode(data)
        assert (view.a, view.b, view.c, view.d) == (value.a, value.b, value.c, value.d)


# The machinery


def test_tracebacks_show_the_generated_lines() -> None:
    codec = serializer(FlatBuffers[Small])
    try:
        codec.raw_encode(Small(1, 1, 1.0, 70000, 1.0, "", ""))
    except struct.error:
        text = traceback.format_exc()
    assert re.search(r"(pack_root\(|PACK_ROOT\[)", text)
    assert "writer of" in text


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_our_code_needs_no_flatbuffers_package() -> None:
    program = (
        "import sys; sys.modules['flatbuffers'] = None\n"
        "from typing import NamedTuple\n"
        "from zlmdb.values import FlatBuffers, serializer\n"
        "class P(NamedTuple):\n    x: int\n    s: str\n"
        "c = serializer(FlatBuffers[P])\n"
        "print(c.decode(c.encode(P(1, 'a'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "P(x=1, s='a')\n"


class Users(zlmdb.Table[UUID, FlatBuffers[User]]):
    """Users."""

    by_email = zlmdb.UniqueIndex[str]("email")


class Lazy(zlmdb.Table[UUID, FlatBuffersView[User]]):
    """The same, as views."""


class Store(zlmdb.Schema):
    """Both."""

    users: Users
    lazy: Lazy


def test_tables_of_flatbuffers() -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            key = t.users.add(ann())
            t.lazy[key] = ann()
            with t.users.edit(key) as user:
                user.email = "new@example.com"
            with pytest.raises(EncodeError, match=r"User\.oid"):
                t.users[key] = User(**{**vars(ann()), "oid": -1})
        with db.read() as t:
            assert t.users[key].email == "new@example.com"
            assert t.users.by_email["new@example.com"] == t.users[key]
            assert t.lazy[key].email == ann().email


@dataclass
class Reply:
    text: str
    to: Final[Optional[int]] = None


def test_an_optional_field_is_one_also_inside_final() -> None:
    codec = serializer(FlatBuffers[Reply])
    for reply in (Reply("a"), Reply("a", 3)):
        assert codec.decode(codec.encode(reply)) == reply


@dataclass
class Branch:
    value: int
    children: list[Branch] = field(default_factory=list)


@dataclass
class Noted:
    """The same with a field more."""

    value: int
    children: list[Noted] = field(default_factory=list)
    note: Optional[str] = None


def tree(cls: Any, levels: int) -> Any:
    found = cls(0)
    for level in range(1, levels):
        found = cls(level, [found])
    return found


def test_trees_in_lists_are_read_as_deep_by_a_class_with_more_fields() -> None:
    new, old = serializer(FlatBuffers[Noted]), serializer(FlatBuffers[Branch])
    for levels in (20, DEPTH // 2):  # a list is a level, too
        data = old.encode(tree(Branch, levels))
        assert old.decode(data) == tree(Branch, levels)
        assert new.decode(data) == tree(Noted, levels)


@pytest.mark.parametrize("name", ["_data", "_table", "_fields", "_sizes", "_known", "_names", "_modelled", "_eager"])
def test_a_view_refuses_fields_by_the_names_that_it_has_itself(name: str) -> None:
    cls = make_dataclass("Stats", [("name", str), (name, int)])
    with pytest.raises(TypeError, match=f"{name}: views reserve that name"):
        serializer(values.FlatBuffersView[cls]).encode(cls("a", 99))
    codec: Any = serializer(FlatBuffers[cls])
    assert codec.decode(codec.encode(cls("a", 99))) == cls("a", 99)


@attrs.define
class Parsed:
    x: int

    def __init__(self, text: str) -> None:
        self.__attrs_init__(int(text))  # type: ignore[attr-defined]


class _Halves(NamedTuple):
    a: int
    b: int


class Halves(_Halves):
    def __new__(cls, text: str) -> Halves:
        return super().__new__(cls, *map(int, text.split()))


@pytest.mark.parametrize("value", [Parsed("5"), Halves("1 2")], ids=["attrs", "namedtuple"])
def test_what_its_own_constructor_cannot_make_again_is_not_stored(value: Any) -> None:
    with pytest.raises(EncodeError):
        serializer(FlatBuffers[type(value)]).encode(value)


@pytest.mark.skipif(msgspec is None, reason="of Structs of msgspec, which does not install on PyPy")
def test_structs_of_a_function_find_each_other_by_localns() -> None:
    Inner = msgspec.defstruct("Inner", [("a", int)])
    Outer = msgspec.defstruct("Outer", [("x", "Inner"), ("y", int, 3)])
    codec: Any = serializer(FlatBuffers[Outer], localns={"Inner": Inner})
    assert codec.decode(codec.encode(Outer(Inner(1)))) == Outer(Inner(1), 3)
