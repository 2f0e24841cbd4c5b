"""The scalar types of a model: their checks, and their form in formats that do not have the type.

MessagePack, CBOR and JSON have null, bool, int, float and text; the first two also have bytes, and MessagePack points
in time. All other types are text: UUIDs canonical, decimals as printed, enums as their values, dates and times by RFC
3339 (aware datetimes in UTC with ``Z``), durations by ISO 8601. msgspec writes the same texts on CPython.
"""

from __future__ import annotations

import base64
import enum
import re
from collections.abc import Collection, Iterable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import isfinite
from typing import Any, Callable, Literal, Optional
from uuid import UUID

from .base import KEEP, is_a, near, show, typename
from .checks import Check
from .depth import DEPTH, TOO_DEEP, too_deep

Form = Literal["msgpack", "cbor", "json"]
"""The formats that model classes are converted for."""

Kind = Literal["any", "null", "bool", "int", "float", "text", "list", "map"]
"""What a type looks like when it is stored, which is all that tells the members of a Union apart."""


class Shape:
    """What one annotation asks of a value, and how to turn such a value into plain data and back."""

    label: str = ""
    """The annotation, as one would write it."""

    kind: Kind = "any"

    sure: frozenset[type] = frozenset()
    """A value of exactly one of these types fits, with no need to look inside."""

    native: bool = True
    """Whether msgspec's own encoder writes the bytes that `dump` would lead to (children not considered)."""

    foreign: bool = False
    """Whether msgspec knows nothing of it, so that `load` has to make what holds one (children not considered)."""

    recheck: bool = False
    """Whether only reading back tells that a value can be read back (children not considered)."""

    loose: bool = False
    """Whether this is plain data: nothing that needs converting, nothing said about what is inside."""

    unbounded: bool = False
    """Whether it says nothing of what is inside, so that a value may be nested to any depth."""

    anything: bool = False
    """Whether every value fits, so that there is nothing to test."""

    holds_records: Optional[bool] = None
    """Whether there is a model class in it, at any depth; None until somebody has asked."""

    def fits(self, value: Any) -> bool:
        """Whether *value* is one of this shape. May raise, which means no."""
        raise NotImplementedError

    def dump(self, value: Any) -> Any:
        """*value*, which fits, as plain data."""
        return value

    def load(self, data: Any) -> Any:
        """The value of plain *data*; raises ValueError or TypeError for what does not fit."""
        raise NotImplementedError

    def test(self, check: Check, x: str) -> None:
        """Add lines to *check* that refuse the variable *x* unless it fits."""
        tests = [f"type({x}) is not {check.constant(cls)}" for cls in self.sure if cls is not type(None)]
        if type(None) in self.sure:
            tests.append(f"{x} is not None")
        fits = check.general(self.fits) if tests else check.constant(self.fits)
        check.refuse_if(" and ".join([*tests, f"not {fits}({x})"]))

    def test_key(self, check: Check, x: str) -> None:
        """The same for a key of a dict, which is neither a list nor a dict."""
        self.test(check, x)

    def test_value(self, check: Check) -> None:
        """The same for ``value``, where that is all there is to check."""
        self.test(check, "value")

    def children(self) -> Iterable[Shape]:
        """The shapes this one is made of."""
        return ()

    def misfit(self, value: Any, path: str) -> str:
        """Why *value*, found at *path* and not fitting, does not fit."""
        said = f"{path}: expected {self.label}, got {show(value)} ({typename(type(value))})"
        return said + near(value, self.classes())

    def classes(self) -> Collection[type[Any]]:
        """The classes that its values have; none where these are not known."""
        cls: Optional[type[Any]] = getattr(self, "cls", None)
        return () if cls is None else (cls,)


class Leaf(Shape):
    """A scalar. Values must be of exactly this type: a subclass would come back as its base."""

    def __init__(
        self,
        cls: type,
        kind: Kind,
        dump: Optional[Callable[[Any], Any]] = None,
        load: Optional[Callable[[Any], Any]] = None,
        *,
        native: bool = True,
        test: Optional[Callable[[Any], bool]] = None,
    ) -> None:
        """*test*: what a value of the type must pass besides; without it all of them fit."""
        self.label = "None" if cls is type(None) else typename(cls)
        self.kind = kind
        self.cls = cls
        self.native = native
        self._test = test
        if test is None:
            self.sure = frozenset({cls})
        if dump is not None:
            self.__dict__["dump"] = dump
        self._load = load
        self.stored_as_it_is = load is None and dump is None
        """Whether plain data has it as it is."""

    def fits(self, value: Any) -> bool:
        return type(value) is self.cls and (self._test is None or self._test(value))

    def test(self, check: Check, x: str) -> None:
        if self._test is None:
            super().test(check, x)
        else:
            check.refuse_if(f"type({x}) is not {check.constant(self.cls)} or not {check.constant(self._test)}({x})")

    def load(self, data: Any) -> Any:
        # The type itself is accepted too: other writers of CBOR tag their dates and UUIDs.
        if type(data) is self.cls:
            return data
        if self._load is None or type(data) is not str:
            raise ValueError(f"expected {self.label}, got {show(data)}")
        return self._load(data)


class Float(Shape):
    """A float, or an int that a float holds exactly. JSON has no way to write NaN and the infinities."""

    label = "float"
    kind: Kind = "float"

    def __init__(self, form: Form, *, whole: bool = True) -> None:
        """*whole*: whether it takes ints. Not in a Union with another type that is stored as an int."""
        self.form: Form = form
        self._any = form != "json"
        self._whole = whole
        self.sure = frozenset({float} if self._any else ())

    def fits(self, value: Any) -> bool:
        if type(value) is float:
            return self._any or isfinite(value)
        return self._whole and type(value) is int and float(value) == value

    def load(self, data: Any) -> Any:
        if type(data) not in (float, int):
            raise ValueError(f"expected float, got {show(data)}")
        return float(data)

    def misfit(self, value: Any, path: str) -> str:
        if type(value) is float:
            return f"{path}: JSON cannot write {value}"
        return super().misfit(value, path)


class DecimalLeaf(Leaf):
    """A decimal: text, though numbers are read as well."""

    def __init__(self) -> None:
        super().__init__(Decimal, "text", str, Decimal)

    def load(self, data: Any) -> Any:
        return Decimal(str(data)) if type(data) in (int, float) else super().load(data)


class Choice(Shape):
    """One of certain texts or numbers: an Enum, stored by value, or a Literal."""

    def __init__(self, label: str, values: dict[Any, Any]) -> None:
        """*values*: what is stored, to what the program sees."""
        kinds: set[Any] = {type(value) for value in values}
        if not values or not kinds <= {str, int, type(None)}:
            raise TypeError(f"{label}: only text and integers can be told apart when they are read back")
        self.label = label
        self.kind = "text" if str in kinds else "int"
        self.mixed = len(kinds) > 1
        self.has_ints = int in kinds
        # Keyed with the type: 1 and True are equal, and not the same choice.
        self._stored: dict[Any, Any] = {(type(seen), seen): stored for stored, seen in values.items()}
        self._seen: dict[Any, Any] = {(type(stored), stored): seen for stored, seen in values.items()}

    def fits(self, value: Any) -> bool:
        return (type(value), value) in self._stored

    def classes(self) -> Collection[type[Any]]:
        return {cls for cls, _ in self._stored}

    def dump(self, value: Any) -> Any:
        return self._stored[type(value), value]

    def misfit(self, value: Any, path: str) -> str:
        said = super().misfit(value, path)
        if not isinstance(value, enum.Flag) or type(value) not in self.classes():
            return said
        return (
            f"{said}, which is no member: give the combination a name in the class, declare the type int, or store "
            f"FlatBuffers of a class with such a field, where a Flag has all combinations"
        )

    def load(self, data: Any) -> Any:
        try:
            return self._seen[type(data), data]
        except KeyError:
            raise ValueError(f"expected {self.label}, got {show(data)}") from None


def enum_choice(cls: type[enum.Enum]) -> Choice:
    """The members of *cls*, which must be all text or all integers."""
    # Iterating a Flag leaves out members of no bit and of several; aliases are the member itself.
    choice = Choice(typename(cls), {member.value: member for member in cls.__members__.values()})
    if choice.mixed:
        raise TypeError(f"{choice.label}: the values of an Enum must be all text or all integers")
    if not issubclass(cls, enum.Flag):  # a combination of flags is of the class, and no member of it
        choice.sure = frozenset({cls})
    return choice


def literal_choice(label: str, values: tuple[Any, ...]) -> Choice:
    """The texts, integers and None of a Literal."""
    if bool in map(type, values):
        raise TypeError(f"{label}: True and False would be read back as 1 and 0; declare a bool")
    return Choice(label, {value: value for value in values})


_INLINE = 2
"""Loops within one another in which `PlainData` tests what is inside; further inside it calls a function."""


class PlainData(Shape):
    """Anything that the format holds by itself: no tuples and sets, which would come back as lists."""

    label = "plain data"
    loose = True
    unbounded = True

    def __init__(self, form: Form) -> None:
        self.scalars = frozenset({type(None), bool, int, str} | ({bytes, float} if form != "json" else set[type]()))
        """The types of what is in it, but for lists, dicts, and what needs a closer look."""
        keys: set[type] = {str}
        if form != "json":
            keys |= {int, bytes}
        self._keys = frozenset(keys)
        self.label = f"plain data ({form})"
        others = {"msgpack": _is_aware, "json": _is_finite, "cbor": _is_none_of_them}
        self.__dict__["fits"] = plain_data(self.scalars, self._keys, others[form])

    def test(self, check: Check, x: str) -> None:
        if check.loops >= _INLINE:
            self.test_key(check, x)
            return
        scalars, text = check.constant(self.scalars), check.constant(str)
        fits = f"{check.constant(self.fits)}({x}, {DEPTH - check.loops})"
        # What is inside is tested here, too: a call takes as long as the test of a small list.
        cls, item = check.variable(), check.variable()
        check.add(f"{cls} = type({x})")
        with check.block(f"if {cls} is not {text} and {cls} not in {scalars}:"):
            with check.block(f"if {cls} is {check.constant(list)}:"), check.loop(f"for {item} in {x}:"):
                self.test(check, item)
            with check.block(f"elif {cls} is {check.constant(dict)}:"):
                key = check.variable()
                with check.loop(f"for {key}, {item} in {x}.items():"):
                    check.refuse_if(f"type({key}) is not {text} and type({key}) not in {check.constant(self._keys)}")
                    self.test(check, item)
            check.add(f"elif not {fits}: return {check.no}")

    def test_key(self, check: Check, x: str) -> None:
        fits = f"{check.constant(self.fits)}({x}, {DEPTH - check.loops})"
        scalars = check.constant(self.scalars)
        check.refuse_if(f"type({x}) is not {check.constant(str)} and type({x}) not in {scalars} and not {fits}")

    def load(self, data: Any) -> Any:
        return data

    def misfit(self, value: Any, path: str) -> str:
        if too_deep(value):
            return f"{path}: {TOO_DEEP}"
        if is_a(value, dict):
            for key, item in value.items():
                if type(key) not in self._keys:
                    return f"{path}: the key {show(key)} would not come back as a {typename(type(key))}: {KEEP}"
                if not self.fits(item):
                    return self.misfit(item, f"{path}[{show(key)}]")
        if is_a(value, list):
            for position, item in enumerate(value):
                if not self.fits(item):
                    return self.misfit(item, f"{path}[{position}]")
        said = super().misfit(value, path)
        if type(value) is datetime and value.utcoffset() is None:
            return f"{said}, which has no time zone: give it one, such as datetime.now(timezone.utc), or {KEEP}"
        return f"{said}: {KEEP}"


def plain_data(scalars: frozenset[type], keys: frozenset[type], other: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The test whether a value is of *scalars* in lists, and in dicts with *keys*; *other* tests what is neither.

    There are no calls for scalars, as documents are what Python has to look at most. *left* is how many levels there
    may be.
    """

    def fits(value: Any, left: int = DEPTH) -> bool:
        cls: object = type(value)  # pyright: ignore[reportUnknownVariableType] - as it is, of an Any
        if cls is dict:
            if not left:
                return False
            for key, item in value.items():
                if type(key) is not str and type(key) not in keys:
                    return False
                if type(item) is not str and type(item) not in scalars and not fits(item, left - 1):
                    return False
            return True
        if cls is list:
            if not left:
                return False
            for item in value:
                if type(item) is not str and type(item) not in scalars and not fits(item, left - 1):
                    return False
            return True
        return cls in scalars or other(value)

    return fits


def _is_aware(value: Any) -> bool:
    return type(value) is datetime and value.utcoffset() is not None and in_range(value)


def _is_finite(value: Any) -> bool:
    return type(value) is float and isfinite(value)


def _is_none_of_them(value: Any) -> bool:
    return False


def utc_text(value: datetime) -> str:
    """RFC 3339 in UTC with ``Z``; a naive time without it."""
    if value.utcoffset() is None:
        return value.isoformat()
    return value.astimezone(timezone.utc).replace(tzinfo=None).isoformat() + "Z"


def _instant(value: datetime) -> Any:
    # MessagePack has a type for points in time, not for local ones.
    return value.isoformat() if value.utcoffset() is None else value


def in_range(value: datetime) -> bool:
    """Whether *value* has a year from 1 to 9999 in UTC, too."""
    return 1 < value.year < 9999 or value.utcoffset() is None or bool(value.astimezone(timezone.utc))


def whole_minutes(value: time) -> bool:
    """Whether the UTC offset of *value*, if any, is one that RFC 3339 can write."""
    offset = value.utcoffset()
    return offset is None or not offset % timedelta(minutes=1)


def _zulu(text: str) -> str:
    return re.sub("[Zz]$", "+00:00", text)


def time_text(value: time) -> str:
    """RFC 3339, with ``Z`` for UTC."""
    text = value.isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") else text


def duration_text(value: timedelta) -> str:
    """ISO 8601 in days and seconds: ``P1DT3600.5S``."""
    sign, value = ("-", -value) if value < timedelta() else ("", value)
    days = f"{value.days}D" if value.days or not (value.seconds or value.microseconds) else ""
    fraction = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    seconds = f"T{value.seconds}{fraction}S" if value.seconds or fraction else ""
    return f"{sign}P{days}{seconds}"


# No pattern yet: making it takes longer than all else in this module, and few models have durations.
_DURATION = r"([-+]?)P(?=.)(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,6}))?S)?)?"


def duration(text: str) -> timedelta:
    """The duration that ISO 8601 *text* says, to the microsecond."""
    match = re.fullmatch(_DURATION, text, re.ASCII)
    if match is None:
        raise ValueError(f"{show(text)} is not an ISO 8601 duration")
    sign, *numbers, fraction = match.groups()
    weeks, days, hours, minutes, seconds = (int(number or 0) for number in numbers)
    micros = int((fraction or "0").ljust(6, "0"))
    factor = -1 if sign == "-" else 1
    return timedelta(
        weeks=factor * weeks, days=factor * days, hours=factor * hours, minutes=factor * minutes,
        seconds=factor * seconds, microseconds=factor * micros,
    )  # fmt: skip


def _unbase64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def scalars(form: Form) -> dict[Any, Shape]:
    """The shape of each scalar type in *form*."""
    points = Leaf(
        datetime,
        "text",
        _instant if form == "msgpack" else utc_text,
        lambda text: datetime.fromisoformat(_zulu(text)),
        native=form == "msgpack",
        test=in_range,
    )
    binary = Leaf(bytes, "text", _base64, _unbase64) if form == "json" else Leaf(bytes, "text")
    return {
        type(None): Leaf(type(None), "null"),
        bool: Leaf(bool, "bool"),
        int: Leaf(int, "int"),
        float: Float(form),
        str: Leaf(str, "text"),
        bytes: binary,
        UUID: Leaf(UUID, "text", str, UUID),
        datetime: points,
        date: Leaf(date, "text", date.isoformat, date.fromisoformat),
        time: Leaf(time, "text", time_text, lambda text: time.fromisoformat(_zulu(text)), test=whole_minutes),
        timedelta: Leaf(timedelta, "text", duration_text, duration),
        Decimal: DecimalLeaf(),
    }
