"""Pickles under allow=: whatever their instructions are, they change nothing that was there before they were read."""

from __future__ import annotations

import contextlib
import copyreg
import enum
import pickle
import random
import struct
import sys
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Optional

import pytest

from zlmdb.errors import DecodeError, EncodeError
from zlmdb.values import PickleSerializer, serializer


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Planet(enum.Enum):
    MARS = 1.5

    def __init__(self, mass: float) -> None:
        self.mass = mass


class Point:
    """A class with attributes and a method."""

    unit = "m"

    def __init__(self, x: int = 0) -> None:
        self.x = x

    def norm(self) -> int:
        return abs(self.x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]


@dataclass
class Slotted:
    __slots__ = ("a",)
    a: int


class Kept:
    """A class that gives the same object again."""

    one: ClassVar[Optional[Kept]] = None

    def __new__(cls, *args: Any) -> Any:
        if cls.one is None:
            cls.one = object.__new__(cls)
        return cls.one


class Registry:
    """A class that is a registry itself."""

    names: ClassVar[list[Any]] = []

    @classmethod
    def append(cls, name: Any) -> None:
        cls.names.append(name)

    @classmethod
    def extend(cls, names: Any) -> None:
        cls.names.extend(names)

    add = append


class MetaOfItems(type):
    """A metaclass whose classes have items and remember who was called."""

    seen: ClassVar[list[Any]] = []

    def __setitem__(cls, name: str, value: Any) -> None:
        setattr(cls, name, value)

    def __call__(cls, *args: Any) -> Any:
        return cls


class OfItems(metaclass=MetaOfItems):
    pass


class Shared:
    """A class that gives a list that others have, too."""

    values: ClassVar[list[int]] = [1]

    def __new__(cls) -> Any:
        return cls.values


class Callable_:
    """A class whose objects can be called."""

    def __call__(self, *args: Any) -> Any:
        raise SystemExit("called")


class Stateful:
    def __init__(self, x: int) -> None:
        self.x = x

    def __getstate__(self) -> Any:
        return {"y": self.x}

    def __setstate__(self, state: Any) -> None:
        self.x = state["y"]


class Failed(Exception):
    pass


class Words(list):  # type: ignore[type-arg]
    pass


CLASSES: list[Any] = [
    Color, Planet, Point, Slotted, Kept, Registry, OfItems, Shared, Callable_, Stateful, Failed, Words, type, object,
    OrderedDict, defaultdict, deque, dict, list, set, complex, int,
]  # fmt: skip
CODEC = serializer(Annotated[Any, PickleSerializer(allow=CLASSES)])


def world() -> Any:
    """All that a pickle of these classes could change."""
    found: list[Any] = []
    for one in [*CLASSES, Color.RED, Color.BLUE, Planet.MARS, Kept(), MetaOfItems]:
        space = {} if one.__class__.__module__ == "builtins" and isinstance(one, type) else dict(vars(one))
        if isinstance(one, type) and one.__module__ == __name__:
            space = dict(vars(one))
        space.pop("__doc__", None)
        found.append(
            {name: (id(value), repr(value) if isinstance(value, (list, dict)) else "") for name, value in space.items()}
        )
    return found


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def name_of(cls: Any) -> bytes:
    return b"c" + cls.__module__.encode() + b"\n" + cls.__qualname__.encode() + b"\n"


def slots(name: str, value: bytes = b"K\x05") -> bytes:
    """The state (None, {name: value})."""
    return b"N(" + text(name) + value + b"d\x86"


RECONSTRUCTOR, GETATTR = b"ccopyreg\n_reconstructor\n", b"cbuiltins\ngetattr\n"
RED = name_of(Color) + text("red") + b"\x85R"

ATTACKS = {
    "a method": name_of(Point) + slots("norm") + b"b.",
    "an attribute by STACK_GLOBAL": text(__name__) + text("Point") + b"\x93" + slots("unit") + b"b.",
    "the table of an enum": name_of(Color) + slots("_value2member_map_", b"}") + b"b.",
    "a slot": name_of(Slotted) + slots("a") + b"b.",
    "a member by its value": RED + slots("_value_") + b"b.",
    "a member by its state": RED + b"(" + text("_value_") + b"K\x05db.",
    "a member by NEWOBJ": name_of(Color) + text("red") + b"\x85\x81" + slots("_value_") + b"b.",
    "a member by getattr": GETATTR + name_of(Color) + text("RED") + b"\x86R" + slots("_value_") + b"b.",
    "a member by OBJ": b"(" + name_of(Color) + text("red") + b"o" + slots("_value_") + b"b.",
    "a member by INST": b"(" + text("red") + b"i" + name_of(Color)[1:] + slots("_value_") + b"b.",
    "a member by _reconstructor": RECONSTRUCTOR + name_of(Color) + name_of(Planet) + b"G?\xf8" + bytes(6) + b"\x87R.",
    "a method of a member": RECONSTRUCTOR + name_of(Point) + name_of(Planet)
    + b"G?\xf8" + bytes(6) + b"\x85RG@" + bytes(7) + b"\x87R.",
    "the function for getattr": GETATTR + slots("__defaults__", b"N") + b"b.",
    "the function for objects": RECONSTRUCTOR + slots("__name__", text("x")) + b"b.",
    "an object that is kept": name_of(Kept) + b")\x81" + slots("unit") + b"b.",
    "an object that is kept, called": name_of(Kept) + b")R}" + text("unit") + b"K\x05sb.",
    "a registry": name_of(Registry) + b"K\x05a.",
    "a registry, many": name_of(Registry) + b"(K\x05K\x06e.",
    "a registry, as a set": name_of(Registry) + b"(K\x05K\x06\x90.",
    "an item of a class": name_of(OfItems) + text("x") + b"K\x05s.",
    "items of a class": name_of(OfItems) + b"(" + text("x") + b"K\x05u.",
    "a class that a call gave": name_of(OfItems) + b")R" + slots("x") + b"b.",
    "a list that others have": name_of(Shared) + b")RK\x05a.",
    "the class of an object": name_of(type) + RED + b"\x85R" + slots("x") + b"b.",
    "a new class": name_of(type) + text("X") + b")}\x87R.",
    "a new class by NEWOBJ": name_of(type) + text("X") + b")}\x87\x81.",
    "what an object does": name_of(Callable_) + b")\x81)R.",
    "the class of a new object": name_of(Point) + b")\x81" + slots("__class__", name_of(Stateful)) + b"b.",
}  # fmt: skip


@pytest.mark.parametrize("program", ATTACKS.values(), ids=ATTACKS)
def test_a_pickle_changes_nothing_that_was_there_before(program: bytes) -> None:
    before = world()
    with pytest.raises(DecodeError):
        CODEC.decode(b"\x80\x02" + program)
    assert world() == before


def test_a_number_in_copyreg_names_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Python keeps what such a number stood for once, and asks nobody about it the next time."""
    copyreg.add_extension("builtins", "print", 240)
    try:
        pickle.loads(b"\x80\x02\x82\xf0.")
        for codec in (CODEC, serializer(Annotated[int, PickleSerializer(allow=[])])):
            with pytest.raises(DecodeError, match="copyreg"):
                codec.decode(b"\x80\x02\x82\xf0X\2\0\0\0hi\x85R.")
    finally:
        copyreg.remove_extension("builtins", "print", 240)
    assert not capsys.readouterr().out


VALUES: list[Any] = [
    Color.RED, Planet.MARS, Point(3), Slotted(1), Stateful(5), Words(["a", "b"]), OrderedDict(a=1, b=[2]),
    defaultdict(list, a=[1]), deque([1, 2, 3]), {1, 2, 3}, 2j, [Point(1), Point(1)], {"a": Point(2)}, Point,
    list(range(3000)),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_whatever_allowed_classes_pickle_is_read(value: Any) -> None:
    for protocol in range(2 if isinstance(value, Slotted) else 0, pickle.HIGHEST_PROTOCOL + 1):
        again = CODEC.decode(pickle.dumps(value, protocol))
        assert type(again) is type(value)
        assert vars(again) == vars(value) if isinstance(value, Stateful) else again == value
    assert CODEC.decode(CODEC.encode(value)) is not None


def test_an_exception_keeps_its_attributes() -> None:
    value = Failed("no", 5)
    value.code = 7  # type: ignore[attr-defined]
    again = CODEC.decode(CODEC.encode(value))
    assert (again.args, again.code) == (("no", 5), 7)


def test_what_could_not_be_read_again_is_not_stored() -> None:
    kept = Kept()
    kept.unit = "m"
    try:
        with pytest.raises((EncodeError, DecodeError), match="may have been there before"):
            CODEC.encode(kept)
    finally:
        del kept.unit


# -- random programs ------------------------------------------------------------------------------------------------

PIECES = [name_of(cls) for cls in CLASSES] + [
    RECONSTRUCTOR, GETATTR, RED, text("red"), text("RED"), text("_value_"), text("norm"), text("a"), text("__class__"),
    b"N", b")", b"}", b"]", b"\x8f", b"(", b"(", b"K\x05", b"G?\xf8" + bytes(6), b"\x88", b"0", b"2", b"\x94", b"h\0",
    b"h\1", b"\x85", b"\x86", b"\x87", b"t", b"l", b"d", b"R", b"R", b"\x81", b"\x92", b"b", b"b", b"b", b"o", b"a",
    b"e", b"s", b"u", b"\x90", b"\x91", b"1", slots("norm"), slots("_value_"), slots("unit"), slots("__class__"),
    b"}" + text("x") + b"K\x05s", b"i" + name_of(Color)[1:], b"\x93", text(__name__),
]  # fmt: skip


def test_random_programs_change_nothing() -> None:
    chosen = random.Random(5)
    before, read = world(), 0
    for _ in range(20_000):
        program = b"\x80\4" + b"".join(chosen.choices(PIECES, k=chosen.randrange(2, 14))) + b"."
        try:
            CODEC.decode(program)
            read += 1
        except DecodeError:
            pass
    assert read > 200
    assert world() == before


def test_changed_pickles_change_nothing() -> None:
    chosen = random.Random(6)
    programs = [pickle.dumps(value, protocol) for value in VALUES[:-1] for protocol in range(2, 6)]
    before = world()  # not earlier: PyPy keeps the names of the slots that it has looked up in the class
    for _ in range(10_000):
        program = bytearray(chosen.choice(programs))
        for _ in range(chosen.randrange(1, 4)):
            program[chosen.randrange(len(program))] = chosen.choice((chosen.randrange(256), *b"bRaes\x81"))
        with contextlib.suppress(DecodeError, MemoryError):
            CODEC.decode(bytes(program))
    assert world() == before


def test_the_instructions_of_this_python_are_those_that_are_known() -> None:
    """A new one that calls or changes something must be added to those replaced."""
    known = (
        b".0(12FIJKLMTGNVXSUBPQRabcdeghijlopqrstu})]"
        b"\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98CB"
    )
    assert set(vars(pickle._Unpickler)["dispatch"]) == set(known)  # type: ignore[attr-defined]
    assert sys.version_info < (3, 16)
