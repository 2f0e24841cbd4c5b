"""Some fields of MessagePack decoded alone: what queries give is the same, and what they do not name is passed over."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb.values.cbor import CborSerializer
from zlmdb.values.json import JsonSerializer
from zlmdb.values.msgpack import MsgpackSerializer

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

msgspec = pytest.importorskip("msgspec")


@dataclass
class Inner:
    a: int = 3


@dataclass
class Plain:
    number: int
    name: str
    inner: Inner
    more: Optional[int] = None
    names: list[str] = field(default_factory=lambda: ["made"])

    @property
    def double(self) -> int:
        return 2 * self.number


class Renamed(msgspec.Struct, rename="camel"):
    first_name: str
    last_name: str = "none"
    in_all: list[int] = []  # noqa: RUF012 - each object has its own


@dataclass(frozen=True)
class Frozen:
    number: int
    name: str


@dataclass
class Judged:
    number: int
    name: str

    def __post_init__(self) -> None:
        self.name = self.name.upper()


@dataclass
class Watched:
    number: int
    name: str

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class Kept:
    """A descriptor that stands for a field."""

    def __get__(self, holder: Any, cls: Any = None) -> Any:
        return 7 if holder is None else holder.__dict__["kept"] * 10

    def __set__(self, holder: Any, value: Any) -> None:
        holder.__dict__["kept"] = value


@dataclass
class Descriptive:
    number: int
    name: str
    kept: int = Kept()  # type: ignore[assignment]  # a descriptor, which dataclasses allow


class Tagged(msgspec.Struct, tag=True):
    number: int
    name: str


def test_some_fields_are_of_the_same_types_with_the_same_defaults() -> None:
    serializer: Any = MsgpackSerializer(Plain)
    narrow = serializer.narrow([("number",), ("inner",)])
    found = narrow(serializer.encode(Plain(5, "a", Inner(4))))
    assert (found.number, found.inner) == (5, Inner(4))
    assert not hasattr(found, "name")
    names = serializer.narrow([("names",), ("more",)])
    short = msgspec.msgpack.encode({"number": 1, "name": "b", "inner": {}})
    assert (names(short).names, names(short).more) == (["made"], None)
    assert names(short).names is not names(short).names
    with pytest.raises(msgspec.ValidationError):
        narrow(msgspec.msgpack.encode({"number": "one", "inner": {}}))
    renamed: Any = MsgpackSerializer(Renamed)
    assert renamed.narrow([("last_name",)])(renamed.encode(Renamed("a", "b"))).last_name == "b"
    assert renamed.narrow([("in_all",)])(msgspec.msgpack.encode({"firstName": "a"})).in_all == []


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (Plain, ("number", "name", "inner", "more")), (Plain, ("double",)), (Judged, ("number",)),
        (Tagged, ("number",)), (Watched, ("number",)), (Descriptive, ("kept",)), (dict[str, int], ("number",)),
        (Any, ("number",)), (int, ("real",)),
    ],
)  # fmt: skip
def test_where_it_gains_nothing_or_may_differ_there_is_none(model: Any, names: tuple[str, ...]) -> None:
    assert MsgpackSerializer(model).narrow([(name,) for name in names]) is None


def test_of_frozen_classes_some_fields_can_be_read() -> None:
    serializer: Any = MsgpackSerializer(Frozen)
    assert serializer.narrow([("number",)])(serializer.encode(Frozen(1, "a"))).number == 1
    assert serializer.parts() is None


def test_the_parts_of_a_dataclass_make_the_same_object() -> None:
    serializer: Any = MsgpackSerializer(Plain)
    parts = serializer.parts()
    if sys.version_info < (3, 11):
        assert parts is None
        return
    for one in (Plain(5, "a", Inner(4)), Plain(1, "", Inner(), 3, [])):
        read = parts.decode(serializer.encode(one))
        made = object.__new__(parts.cls)
        for name in parts.names:
            setattr(made, name, getattr(read, name))
        assert type(made) is Plain
        assert made == one
    for model in (Judged, Tagged, Watched, Descriptive, Renamed, dict[str, int]):
        assert MsgpackSerializer(model).parts() is None


@dataclass
class Numbers:
    whole: int
    ratio: float
    text: str = "none"
    maybe: Optional[str] = None
    data: bytes = b"d"
    anything: Any = 5
    at: Optional[datetime] = None


ODD: list[dict[str, Any]] = [
    {"whole": 1, "ratio": 2, "text": "t"},
    {"whole": 1.0, "ratio": -0.0, "maybe": ""},
    {"whole": 2**64, "ratio": 1e300, "more": [1]},
    {"whole": True, "ratio": "1", "text": None},
    {"whole": -1, "ratio": 0.5, "data": b"\0", "anything": {"a": [None]}, "at": "2020-01-01T00:00:00Z"},
    {"ratio": 1.5},
    {"whole": "1", "ratio": None},
]


@dataclass
class Outer:
    number: int
    inner: Plain
    other: Optional[Plain]
    judged: Judged


OUTER = Outer(1, Plain(2, "a", Inner(3)), None, Judged(4, "B"))


@pytest.mark.parametrize("form", [MsgpackSerializer, CborSerializer, JsonSerializer])
def test_of_an_object_inside_a_record_some_fields_can_be_read(form: Any) -> None:
    serializer = form(Outer)
    narrow = serializer.narrow([("inner", "inner", "a"), ("inner", "name"), ("other", "is None"), ("judged", "name")])
    found = narrow(serializer.encode(OUTER))
    assert (found.inner.inner.a, found.inner.name, found.other, found.judged) == (3, "a", None, OUTER.judged)
    assert not hasattr(found, "number")
    assert not hasattr(found.inner, "number")
    there = replace(OUTER, other=OUTER.inner)
    assert narrow(serializer.encode(there)).other is not None
    whole = serializer.narrow([("inner", "double"), ("other", "names", "len()")])(serializer.encode(there))
    assert (whole.inner, whole.other.names) == (OUTER.inner, ["made"])
    assert not hasattr(whole.other, "name")


@pytest.mark.parametrize("form", [CborSerializer, JsonSerializer])
def test_other_formats_read_of_a_field_what_the_whole_record_has(form: Any) -> None:
    """However another program has written it."""
    cbor2 = pytest.importorskip("cbor2")
    serializer = form(Numbers)
    stored = [serializer.encode(Numbers(n, n / 3, f"t{n}", "m", b"x", [n])) for n in (0, -1, 24, 2**40)]
    for one in ODD:
        if form is JsonSerializer:
            stored.append(json.dumps({**one, "data": "eA=="}).encode())
        else:
            stored += [cbor2.dumps(one), cbor2.dumps(one, canonical=True)]
    if form is CborSerializer:
        stored += [
            b"\xbfewhole\x01eratio\xf9\x3c\x00dtext\x7faaab\xc3\xa9\xff\xff",  # lengths left open, a half float
            b"\xa3ewhole\x01ewhole\x02eratio\x00", b"\xa2ewhole\x18\x01eratio\xfa\x3f\x80\x00\x00",
            b"\xa2\x78\x05whole\x1b\0\0\0\0\0\0\0\x01eratio\xfb\x7f\xf8\0\0\0\0\0\0", b"\xa1ewhole", b"", b"\x01",
        ]  # fmt: skip
    told = 0
    for names in [("whole",), ("ratio", "text"), ("maybe", "data", "at"), ("anything",)]:
        narrow = serializer.narrow([(name,) for name in names])
        for data in stored:
            try:
                whole = serializer.raw_decode(data)
            except Exception:
                continue
            found = narrow(data)
            assert [repr(getattr(found, name)) for name in names] == [repr(getattr(whole, name)) for name in names]
            told += 1
    assert told > 20
    assert serializer.narrow([("whole",), ("ratio",), ("text",), ("maybe",)]) is None
    assert form(Judged).narrow([("number",)]) is None
    assert form(Any).narrow([("number",)]) is None


class Rows(zlmdb.Table[int, Plain]):
    by_number = zlmdb.Index[int]("number")


class Store(zlmdb.Schema):
    rows: Rows
    judged: zlmdb.Table[int, Judged]
    watched: zlmdb.Table[int, Watched]


QUERIES: list[Callable[[Any], Any]] = [
    lambda t: t.rows.where(lambda p: p.number > 90),
    lambda t: t.rows.where(lambda p: p.number > 90).fields(lambda p: p.number),
    lambda t: t.rows.where(lambda p: p.double == 84).fields(lambda p: p.inner.a),
    lambda t: t.rows.where(lambda k, p: k < 40 and p.more is None).fields(lambda k, p: (k, p.number)),
    lambda t: t.rows.where(lambda p: p.number == 42).fields(lambda p: (p, p.number)),
    lambda t: t.judged.where(lambda p: p.name == "N3"),
    lambda t: t.watched.where(lambda p: p.number in (3, 4)).fields(lambda p: p.name),
]


@pytest.mark.parametrize("query", range(len(QUERIES)))
def test_queries_give_the_same_with_and_without(query: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> list[Any]:
        found: list[Any] = []
        with zlmdb.open(None, Store) as db:
            with db.write() as t:
                for n in range(100):
                    t.rows[n] = Plain(n, f"n{n}", Inner(n % 3), None if n % 2 else n)
                    t.judged[n] = Judged(n, f"n{n}")
                    t.watched[n] = Watched(n, f"n{n}")
                found.append(list(QUERIES[query](t)))
            with db.read() as t:
                for _ in range(3):
                    rows = QUERIES[query](t)
                    found += [list(rows), [rows.first()]]
        return found

    with_it = asked()
    assert any(with_it)
    for name in ("narrow", "parts"):
        monkeypatch.setattr(MsgpackSerializer, name, lambda *args: None)
    assert asked() == with_it


def test_each_row_has_its_own_objects() -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            for n in range(100):
                t.rows[n] = Plain(n % 50, "a", Inner(), names=["x"])
        with db.read() as t:
            for _ in range(3):
                one, other = t.rows.where(lambda p: p.number == 7).fields(lambda p: p.names).all()
                one.append("y")
                assert other == ["x"]
                first, second = t.rows.where(lambda p: p.number == 7).values().all()
                assert first == second
                assert first is not second
                assert vars(first) == {"number": 7, "name": "a", "inner": Inner(), "more": None, "names": ["x"]}


def test_what_a_query_does_not_name_is_not_looked_at(tmp_path: Any) -> None:
    with zlmdb.open(tmp_path, Store) as db:
        with db.write() as t:
            for n in range(40):
                t.rows[n] = Plain(n, "a", Inner())
            broken = {"number": 7, "name": None, "inner": {}}
            t.rows._raw.put(t.rows._storage.encode_key(7), msgspec.msgpack.encode(broken), db=t.rows._db)
        with db.read() as t:
            assert t.rows.where(lambda p: p.number < 9).fields(lambda p: p.number).all() == list(range(9))
            assert [key for key, _ in t.rows.where(lambda p: p.number > 35)] == [36, 37, 38, 39]
            with pytest.raises(zlmdb.DecodeError, match="key 7"):
                t.rows.where(lambda p: p.number < 9).all()
