"""Pickled model classes: field tuples and plain objects, what is checked, older classes, and which classes may load."""

from __future__ import annotations

import abc
import enum
import functools
import pickle
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, Protocol, TypedDict, TypeVar, Union
from uuid import UUID, SafeUUID

import pytest

import zlmdb
from zlmdb.errors import DecodeError, EncodeError
from zlmdb.values import Compressed, Pickle, PickleSerializer, Unchecked, Zlib, serializer

attrs = pytest.importorskip("attrs")
try:
    import msgspec
except ImportError:  # PyPy
    msgspec = None

T = TypeVar("T")


class Color(enum.Enum):
    RED = "red"
    MIXED = 1.5


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


@dataclass
class Point:
    x: int
    y: float = 0.5


@dataclass
class Point3(Point):
    z: int = 0


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Options(TypedDict, total=False):
    depth: int


class Named(Protocol):
    name: str


@dataclass
class User:
    name: str
    age: int
    id: UUID
    joined: datetime
    born: date
    balance: Decimal
    color: Color
    rights: Rights
    role: Literal["admin", True]
    place: Point
    pair: Pair
    options: Options
    either: Union[str, bytes, Point, Pair, None] = None
    tags: list[str] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    by_place: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    anything: Any = None
    number: complex = 0j
    who: Optional[Named] = None
    path: tuple[int, ...] = ()
    places: list[Point] = field(default_factory=list)


def ann(**changes: Any) -> User:
    given: dict[str, Any] = {
        "name": "Ann", "age": 31, "id": UUID(int=5), "joined": datetime(2020, 1, 2, tzinfo=timezone(timedelta(0, 60))),
        "born": date(1990, 1, 1), "balance": Decimal("1.5"), "color": Color.MIXED, "rights": Rights.READ, "role": True,
        "place": Point(1), "pair": Pair(1), "options": {"depth": 1}, "tags": ["a"], "scores": {"a": 1.0},
        "by_place": {(1, 2): {3}}, "anything": (1, {2}), "number": 2j, "path": (1, 2), "places": [Point(2), Point3(3)],
    }  # fmt: skip
    return User(**{**given, **changes})


@dataclass(frozen=True)
class Frozen:
    a: int
    b: list[int] = field(default_factory=list)


options_of_dataclass: dict[str, Any] = {"slots": True, "kw_only": True} if sys.version_info >= (3, 10) else {}


@dataclass(frozen=True, **options_of_dataclass)
class Slotted:
    a: int
    b: list[int] = field(default_factory=list)


@dataclass
class Box(Generic[T]):
    content: T


@attrs.define
class Book:
    title: str
    pages: int = attrs.field(default=1, validator=attrs.validators.gt(0))
    _secret: Optional[int] = None


@attrs.frozen
class Shelf:
    books: list[Book]


@attrs.define(slots=False)
class Loose:
    a: int


@dataclass
class Empty:
    pass


AS_FIELDS: list[tuple[Any, Any]] = [
    (User, ann()),
    (Point, Point(1)),
    (Point3, Point3(1, 2.0, 3)),
    (Frozen, Frozen(1, [2])),
    (Slotted, Slotted(a=1, b=[2])),
    (Box[int], Box(5)),
    (Book, Book("b", 3, 5)),
    (Shelf, Shelf([Book("c")])),
    (Loose, Loose(5)),
    (Pair, Pair(3)),
    (Empty, Empty()),
]
if msgspec is not None:

    class Cat(msgspec.Struct, tag="cat", kw_only=True):
        name: str
        friends: set[str] = msgspec.field(default_factory=set)

    AS_FIELDS.append((Cat, Cat(name="Tom", friends={"a"})))


@pytest.mark.parametrize(("model", "value"), AS_FIELDS, ids=lambda part: repr(part)[:20])
def test_model_classes_are_pickled_as_their_fields(model: Any, value: Any) -> None:
    codec = serializer(Pickle[model])
    data = codec.encode(value)
    fingerprint, *fields = pickle.loads(data)
    names = fingerprint.partition(":")[2]
    assert len(fields) == len(names.split(",") if names else [])
    for stored in (data, memoryview(data)):
        again = codec.decode(stored)
        assert again == value
        assert type(again) is type(value)
    assert len(data) <= len(pickle.dumps(value, 5)) + len(fingerprint) + 10


@pytest.mark.parametrize(("model", "value"), AS_FIELDS, ids=lambda part: repr(part)[:20])
def test_plainly_pickled_objects_are_read(model: Any, value: Any) -> None:
    codec = serializer(Pickle[model])
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = codec.decode(pickle.dumps(value, protocol))
        assert again == value
        assert type(again) is type(value)


# Classes of which the fields are not all


@dataclass
class Node:
    value: int
    parent: Optional[Node] = None
    children: list[Node] = field(default_factory=list)


@dataclass
class Derived:
    first: str

    def __post_init__(self) -> None:
        self.shout = self.first.upper()


@dataclass
class Locked:
    a: int

    def __getstate__(self) -> dict[str, Any]:
        return {"a": self.a + 1}


class WithInit:
    def __init__(self) -> None:
        self.cache = {"a": 1}


@dataclass
class OfInit(WithInit):
    a: int

    def __post_init__(self) -> None:
        WithInit.__init__(self)


@dataclass
class Failure(Exception):
    code: int


class Abstract(abc.ABC):
    @abc.abstractmethod
    def area(self) -> float: ...


@dataclass
class Square(Abstract):
    side: float

    def area(self) -> float:
        return self.side**2


@dataclass
class Drawing:
    shapes: list[Abstract]
    first: Abstract


def test_a_graph_keeps_its_shape() -> None:
    root = Node(1)
    root.children = [Node(2, root), Node(3, root)]
    codec = serializer(Pickle[Node])
    again = codec.decode(codec.encode(root))
    assert [child.parent for child in again.children] == [again, again]
    assert again.children[0].parent is again


def test_what_a_class_computes_or_says_is_kept() -> None:
    derived = serializer(Pickle[Derived])
    assert derived.decode(derived.encode(Derived("a"))).shout == "A"
    locked = serializer(Pickle[Locked])
    assert locked.decode(locked.encode(Locked(1))) == Locked(2)
    with_init = serializer(Pickle[OfInit])
    assert with_init.decode(with_init.encode(OfInit(1))).cache == {"a": 1}
    failure = serializer(Pickle[Failure])
    assert failure.decode(pickle.dumps(Failure(5))).code == 5


def test_subclasses_come_back_as_such() -> None:
    codec = serializer(Pickle[Point])
    assert codec.decode(codec.encode(Point3(1, 2.0, 3))) == Point3(1, 2.0, 3)
    drawing = serializer(Pickle[Drawing])
    value = Drawing([Square(2.0)], Square(1.0))
    assert drawing.decode(drawing.encode(value)) == value
    mapping = serializer(Pickle[dict[str, int]])
    assert type(mapping.decode(mapping.encode(OrderedDict(a=1)))) is OrderedDict


def test_any_class_can_be_pickled() -> None:
    codec = serializer(Pickle[functools.partial])
    assert codec.decode(codec.encode(functools.partial(int, "5")))() == 5
    assert serializer(Pickle[list[complex]]).decode(pickle.dumps([1j])) == [1j]


# What does not fit


REFUSED: list[tuple[Any, Any, str]] = [
    (User, ann(name=5), r"User.name: expected str, got 5 \(int\)"),
    (User, ann(age=True), "User.age: expected int, got True"),
    (User, ann(joined=date(2020, 1, 1)), "User.joined: expected datetime.datetime"),
    (User, ann(born=datetime(2020, 1, 1)), "User.born: expected datetime.date"),
    (User, ann(color="red"), "User.color: expected .*Color"),
    (User, ann(role=1), "User.role: expected Literal"),
    (User, ann(place=(1, 2.0)), "User.place: expected .*Point"),
    (User, ann(place=Point("x")), "User.place.x: expected int"),  # type: ignore[arg-type]
    (User, ann(pair=(1, "r")), "User.pair: expected .*Pair"),
    (User, ann(either=5), r"User.either: expected (.*Union|str \|)"),
    (User, ann(tags=["a", 5]), r"User.tags\[1\]: expected str"),
    (User, ann(scores={"a": "b"}), r"User.scores\['a'\]: expected float"),
    (User, ann(by_place={(1, "2"): {3}}), "a key of .*User.by_place"),
    (User, ann(path=[1]), "User.path: expected tuple"),
    (User, ann(places=[Point(1), Point(1, "x")]), r"User.places\[1\].y: expected float"),  # type: ignore[arg-type]
    (User, {"name": "Ann"}, "expected .*User"),
    (Node, Node("x"), "Node.value: expected int"),  # type: ignore[arg-type]
    (Frozen, Frozen(1, ["x"]), r"Frozen.b\[0\]: expected int"),  # type: ignore[list-item]
    (list[Point], [Point(1), None], r"\[1\]: expected .*Point"),
    (Options, {"depth": "x"}, r"\['depth'\]: expected int"),
    (Pair, (1, "r"), "expected .*Pair"),
    (Optional[Point], Pair(1), "expected"),
]


@pytest.mark.parametrize(("model", "value", "text"), REFUSED, ids=lambda part: repr(part)[:30])
def test_what_does_not_fit_is_refused_with_its_path(model: Any, value: Any, text: str) -> None:
    codec = serializer(Pickle[model])
    with pytest.raises(EncodeError, match=text):
        codec.encode(value)
    with pytest.raises(DecodeError, match=text):
        codec.decode(pickle.dumps(value, 5))


def test_a_typed_dict_with_keys_that_its_class_lacks_is_not_stored() -> None:
    with pytest.raises(EncodeError, match="User.options: .*which it does not have"):
        serializer(Pickle[User]).encode(ann(options={"dept": 1}))


def test_unchecked_stores_what_does_not_fit_and_reading_refuses_it() -> None:
    for annotation in (Unchecked[Pickle[User]], Unchecked[Zlib[Pickle[User]]], Unchecked[Pickle[list[User]]]):
        codec = serializer(annotation)
        bad: Any = ann(name=5)
        value = [bad] if "list" in str(annotation) else bad
        data = codec.encode(value)
        with pytest.raises(DecodeError, match="name: expected str"):
            codec.decode(data)
    codec = serializer(Unchecked[Pickle[User]])
    assert codec.decode(codec.encode(ann())) == ann()
    assert serializer(Pickle[User]).decode(codec.encode(ann())) == ann()


def test_what_cannot_be_pickled_is_an_encode_error() -> None:
    with pytest.raises(EncodeError, match="pickle"):
        serializer(Pickle[User]).encode(ann(anything=threading.Lock()))


def test_a_name_that_is_only_there_for_checkers_is_no_obstacle() -> None:
    codec = serializer(Pickle[Unresolved])
    assert codec.decode(codec.encode(Unresolved(5))) == Unresolved(5)


@dataclass
class Unresolved:
    a: NotThere  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "stored",
    [
        (),
        (5,),
        ("no fingerprint", 1),
        (":x,y", 1),
        (":x", "1"),
        (":y", 1.0),
        ("00000000:x,y", 1, 2.0, 3),
        [1, 2],
        {"x": 1},
        None,
    ],
    ids=repr,
)
def test_tuples_that_are_no_fields_are_a_decode_error(stored: Any) -> None:
    with pytest.raises(DecodeError):
        serializer(Pickle[Point]).decode(pickle.dumps(stored))


# Evolution, by stored bytes of an older class


@dataclass
class Address:
    street: str
    country: str = "de"
    lines: list[str] = field(default_factory=list)


@dataclass
class Person:
    name: str
    added: int = 5
    made: list[int] = field(default_factory=list)
    home: Optional[Address] = None
    others: list[Address] = field(default_factory=list)


# ("0badc0de:removed,name", 1, "Ann")
OLD_TUPLE = bytes.fromhex("80058c1530626164633064653a72656d6f7665642c6e616d654b018c03416e6e87942e")


def test_stored_bytes_of_an_older_class_are_read() -> None:
    assert pickle.loads(OLD_TUPLE) == ("0badc0de:removed,name", 1, "Ann")
    assert serializer(Pickle[Person]).decode(OLD_TUPLE) == Person("Ann")


def plain(cls: type, **state: Any) -> Any:
    """An object of *cls* as it comes out of the pickle of an older version of it."""
    value = object.__new__(cls)
    vars(value).update(state)
    return value


def test_plainly_pickled_objects_of_an_older_class_get_their_new_fields() -> None:
    old = plain(Person, name="Ann", removed=1, home=plain(Address, street="s"), others=[plain(Address, street="t")])
    for stored in (old, ("0badc0de:removed,name,home,others", 1, "Ann", old.home, old.others)):
        again = serializer(Pickle[Person]).decode(pickle.dumps(stored, 5))
        assert again == Person("Ann", 5, [], Address("s", "de", []), [Address("t", "de", [])])
        again.made.append(1)
        assert Person("Bob").made == []


def test_new_fields_of_attrs_and_namedtuples_get_their_defaults() -> None:
    assert serializer(Pickle[Book]).decode(pickle.dumps(("0badc0de:title,gone", "t", 1))) == Book("t")
    assert serializer(Pickle[Pair]).decode(pickle.dumps(("0badc0de:left", 1))) == Pair(1)
    assert serializer(Pickle[Slotted]).decode(pickle.dumps(("0badc0de:a", 1))) == Slotted(a=1)
    if msgspec is not None:
        assert serializer(Pickle[Cat]).decode(pickle.dumps(("0badc0de:name", "Tom"))) == Cat(name="Tom")


def test_a_typed_dict_loses_the_keys_that_its_class_lacks_but_none_of_another_member_of_a_union() -> None:
    Named = TypedDict("Named", {"name": str})  # noqa: UP013 - twice in one line each
    Aged = TypedDict("Aged", {"age": int}, total=False)  # noqa: UP013
    old = {"name": "Ann", "removed": 1}
    assert serializer(Pickle[Named]).decode(pickle.dumps(old)) == {"name": "Ann"}
    assert serializer(Pickle[dict[str, list[Optional[Named]]]]).decode(pickle.dumps({"a": [old]})) == {
        "a": [{"name": "Ann"}]
    }
    for other in (Aged, dict[str, int], Mapping[str, int]):
        either = serializer(Pickle[Union[Named, other]])
        assert either.decode(pickle.dumps({"age": 1})) == {"age": 1}
        with pytest.raises(DecodeError):
            either.decode(pickle.dumps(old))


def test_a_new_field_without_a_default_is_a_decode_error() -> None:
    for stored in (("0badc0de:added", 1), plain(Person, added=1)):
        with pytest.raises(DecodeError, match="without 'name'"):
            serializer(Pickle[Person]).decode(pickle.dumps(stored))


def test_a_changed_type_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="Person.added: expected int, got 'five'"):
        serializer(Pickle[Person]).decode(pickle.dumps(("0badc0de:name,added", "Ann", "five")))


def test_the_fingerprint_depends_on_the_types_of_all_that_is_inside() -> None:
    def fingerprint(model: Any, value: Any) -> str:
        found: str = pickle.loads(serializer(Pickle[model]).encode(value))[0]
        return found

    assert fingerprint(Box[int], Box(1)) == fingerprint(Box[int], Box(2))
    assert fingerprint(Box[int], Box(1)) != fingerprint(Box[str], Box("1"))
    assert fingerprint(Box[Box[int]], Box(Box(1))) != fingerprint(Box[Box[str]], Box(Box("1")))


# Which classes may load


class Shout:
    def __reduce__(self) -> Any:
        return print, ("unpickling runs code",)


@dataclass
class Holder:
    anything: Any
    place: Optional[Point] = None


def test_allow_refuses_every_class_but_those_listed_and_those_of_the_type(capsys: pytest.CaptureFixture[str]) -> None:
    codec = serializer(Annotated[Holder, PickleSerializer(allow=[Pair])])
    assert codec.model == f"{__name__}.Holder"
    for value in (Holder(1), Holder(Pair(1), Point(2)), Holder([Point(1)])):
        assert codec.decode(codec.encode(value)) == value
        assert codec.decode(pickle.dumps(value)) == value
    for bad in (Holder(Shout()), Holder(UUID(int=1)), Holder(Color.RED)):
        with pytest.raises((EncodeError, DecodeError), match="allow="):
            codec.encode(bad)
        with pytest.raises(DecodeError, match="allow="):
            codec.decode(serializer(Pickle[Holder]).encode(bad))
        with pytest.raises(DecodeError, match="allow="):
            codec.decode(pickle.dumps(bad))
    with pytest.raises(DecodeError, match=r"names builtins\.print"):
        codec.decode(pickle.dumps(Shout()))
    assert not capsys.readouterr().out


@dataclass
class Plain:
    id: UUID
    when: datetime
    born: date
    amount: Decimal
    color: Color
    groups: set[str]
    codes: frozenset[int]
    place: Optional[Point]
    lasting: timedelta
    options: Options


def test_the_classes_of_the_type_need_not_be_listed() -> None:
    codec = serializer(Annotated[Plain, PickleSerializer(allow=[])])
    value = Plain(
        UUID(int=1), datetime(2020, 1, 1, tzinfo=timezone.utc), date(2020, 1, 1), Decimal(1), Color.RED, {"a"},
        frozenset({1}), Point(1), timedelta(1), {"depth": 1},
    )  # fmt: skip
    assert codec.decode(codec.encode(value)) == value
    assert codec.decode(pickle.dumps(value, 5)) == value


def test_a_getattr_gives_members_of_allowed_enums_only() -> None:
    """As CPython 3.11.0 to 3.11.3 pickle them."""

    class Getattr:
        def __init__(self, *arguments: Any) -> None:
            self.arguments = arguments

        def __reduce__(self) -> Any:
            return getattr, self.arguments

    codec = serializer(Annotated[Color, PickleSerializer(allow=[])])
    assert codec.decode(pickle.dumps(Getattr(Color, "RED"))) is Color.RED
    for arguments in ((Color, "__subclasses__"), (Color, "mro"), (1, "real"), ("", "format")):
        with pytest.raises(DecodeError, match="not an enum with that member"):
            codec.decode(pickle.dumps(Getattr(*arguments)))
    with pytest.raises(DecodeError, match="names"):
        serializer(Annotated[int, PickleSerializer(allow=[])]).decode(pickle.dumps(Getattr(Color, "RED")))


def test_with_allow_no_fingerprint_is_believed() -> None:
    trusting, careful = serializer(Pickle[Point]), serializer(Annotated[Point, PickleSerializer(allow=[])])
    fingerprint = pickle.loads(trusting.encode(Point(1)))[0]
    forged = pickle.dumps((fingerprint, "x", 1.0))
    with pytest.raises(DecodeError, match="x: expected int"):
        careful.decode(forged)


def test_options_hold_inside_of_wrappers_and_for_classes_in_quotes(tmp_path: Any) -> None:
    class Store(zlmdb.Schema):
        points: zlmdb.Table[int, Compressed[Annotated[Point, PickleSerializer(allow=[])]]]

    with zlmdb.open(tmp_path, Store) as db, db.write() as t:
        t.points[1] = Point(1)
        assert t.points[1] == Point(1)
        with pytest.raises(EncodeError, match=r"x: expected int"):
            t.points[2] = Point("x")  # type: ignore[arg-type]


# The classic layout


def test_a_classic_file_holds_plain_pickles_which_its_predecessor_reads(tmp_path: Any) -> None:
    class Store(zlmdb.Schema):
        points: zlmdb.Table[int, zlmdb.Zlib[zlmdb.Pickle[Point]]]
        mixed: zlmdb.Table[int, zlmdb.Compressed[zlmdb.Pickle[Point]]]
        plain: zlmdb.Table[int, zlmdb.Pickle[Point]]

    for name, expected in (("classic", Point), ("tables", tuple)):
        layout: Any = name
        with zlmdb.open(tmp_path / name, Store, layout=layout) as db, db.write() as t:
            for table in (t.points, t.mixed, t.plain):
                table[1] = Point(1)
                assert table[1] == Point(1)
            stored = t.plain._storage.dump(Point(1))
            assert type(pickle.loads(stored)) is expected
            assert t.plain._storage.load(serializer(Pickle[Point]).encode(Point(2))) == Point(2)


def test_a_map_with_a_slot_in_a_classic_file_is_plain(tmp_path: Any) -> None:
    class Points(zlmdb.MapOidPickle[Point]):
        """Points by number."""

    zlmdb.open(tmp_path, zlmdb.Schema, layout="classic").close()
    points = Points(1)
    with zlmdb.Database(str(tmp_path)) as db, db.begin(write=True) as txn:
        points[txn, 1] = Point(1)
        assert pickle.loads(txn.get(b"\0\1" + bytes(7) + b"\1")) == Point(1)


# UUIDs, dates and times are packed


class Day(date):
    pass


class Ident(UUID):
    pass


@dataclass
class Stamped:
    id: UUID
    born: date
    seen: Optional[datetime] = None
    met: Optional[date] = None


ID = UUID("10111213-1415-1617-1819-1a1b1c1d1e1f")
STAMPED = Stamped(ID, date(2020, 2, 29), datetime(2020, 2, 29, 12, 30, tzinfo=timezone.utc))
PACKED = bytes.fromhex(
    "8005954e00000000000000288c2136636666363063633a69643d752c626f726e3d642c7365656e3d742c6d65743d64948a101f1e1d1c1b1a1918"
    "17161514131211104acc400b00430b07e4021d0c1e000000005a944e74942e"
)
# The same with the objects pickled as they are.
NOT_PACKED = bytes.fromhex(
    "800595bc00000000000000288c1936636666363063633a69642c626f726e2c7365656e2c6d6574948c0475756964948c04555549449493942981"
    "947d948c03696e74948a101f1e1d1c1b1a1918171615141312111073628c086461746574696d65948c0464617465949394430407e4021d948594"
    "529468078c086461746574696d65949394430a07e4021d0c1e000000009468078c0874696d657a6f6e6594939468078c0974696d6564656c7461"
    "9493944b004b004b008794529485945294869452944e74942e"
)
OPTIONS = {"free": Pickle[Stamped], "allow": Annotated[Stamped, PickleSerializer(allow=[Day, Ident])]}
each_option = pytest.mark.parametrize("annotation", OPTIONS.values(), ids=OPTIONS)


@each_option
def test_packed_fields_keep_their_bytes_and_unpacked_ones_are_read(annotation: Any) -> None:
    codec = serializer(annotation)
    for data in (PACKED, NOT_PACKED):
        again = codec.decode(data)
        assert again == STAMPED
        assert (again.id.is_safe, again.seen.tzinfo) == (STAMPED.id.is_safe, timezone.utc)
    assert serializer(Pickle[Stamped]).encode(STAMPED)[-40:] == PACKED[-40:]  # the checksum has the module's name in it


@each_option
@pytest.mark.parametrize(
    "value",
    [
        Stamped(Ident(int=5), Day(2020, 1, 1), None, Day(2021, 1, 1)),
        Stamped(UUID(int=0), date.min, datetime.min, date.max),
        Stamped(UUID(int=2**128 - 1), date.max, datetime.max.replace(tzinfo=timezone.utc)),
        Stamped(ID, date(2020, 1, 1), datetime(2020, 10, 25, 2, 30, 0, 999999, fold=1)),
        Stamped(ID, date(2020, 1, 1), datetime(2020, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=-5), "EST"))),
        Stamped(UUID(int=5, is_safe=SafeUUID.safe), date(2020, 1, 1)),
    ],
    ids=repr,
)
def test_packed_values_come_back_as_they_were(annotation: Any, value: Stamped) -> None:
    for written in (annotation, Unchecked[annotation]):
        again = serializer(annotation).decode(serializer(written).encode(value))
        assert again == value
        assert [type(one) for one in vars(again).values()] == [type(one) for one in vars(value).values()]
        assert again.id.is_safe is value.id.is_safe
        if value.seen is not None:
            assert again.seen.fold == value.seen.fold
            assert again.seen.tzname() == value.seen.tzname()


def test_what_only_looks_packed_does_not_become_a_uuid_or_a_date() -> None:
    for wrong in (Stamped(5, date(2020, 1, 1)), Stamped(ID, 5), Stamped(ID, date(2020, 1, 1), b"x" * 10)):  # type: ignore[arg-type]
        with pytest.raises(EncodeError):
            serializer(Pickle[Stamped]).encode(wrong)
        data = serializer(Unchecked[Pickle[Stamped]]).encode(wrong)
        for annotation in OPTIONS.values():
            with pytest.raises(DecodeError):
                serializer(annotation).decode(data)


@each_option
def test_packed_fields_that_nobody_packed_are_a_decode_error(annotation: Any) -> None:
    codec = serializer(annotation)
    mark = pickle.loads(codec.encode(STAMPED))[0]
    for fingerprint in (mark, ":id=u,born=d,seen=t,met=d"):
        for fields in ((-1, 1, None, None), (1 << 128, 1, None, None), (1, 0, None, None), (1, 1, b"short", None),
                       (1, 1, b"\xff" * 10, None), (1, 1, b"\xff" * 10 + b"Z", None), (1, 1, b"", None)):  # fmt: skip
            with pytest.raises(DecodeError):
                codec.decode(pickle.dumps((fingerprint, *fields)))
    with pytest.raises(DecodeError, match="id is stored as 'new', which this version does not know"):
        codec.decode(pickle.dumps((":id=new,born", 1, date(2020, 1, 1))))


def test_a_field_that_is_no_longer_of_a_packed_type_is_checked() -> None:
    with pytest.raises(DecodeError, match=r"name: expected str, got UUID"):
        serializer(Pickle[Person]).decode(pickle.dumps(("0badc0de:name=u", 5)))
    assert serializer(Pickle[Box[Any]]).decode(pickle.dumps(("0badc0de:content=u", 5))) == Box(UUID(int=5))
