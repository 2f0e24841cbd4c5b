"""Filtering and projection give what a filter in Python gives, of every serializer, and never a wrong value."""

from __future__ import annotations

import operator
import random
import struct
from array import array
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, Union
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from zlmdb.schema.schema import unit_of
from zlmdb.schema.undeclared import undeclared
from zlmdb.store.pool import Pool
from zlmdb.values import F32, U16, FlatBuffersView, InStruct

from .asking import F, ask, give
from .test_selection import Cities, City


class Size(IntEnum):
    SMALL = 1
    LARGE = 7


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: float
    y: float


@dataclass
class Address:
    city: str
    number: int = 0


@dataclass
class Row:
    id: int
    price: float
    kind: int
    active: bool
    name: str
    city: str
    code: Annotated[int, U16]
    ratio: Annotated[float, F32]
    data: bytes
    key: UUID
    born: date
    seen: datetime
    took: timedelta
    cost: Decimal
    size: Size
    colour: Colour
    mode: Literal["a", "b"]
    tags: list[str]
    address: Address
    at: Annotated[Point, InStruct]
    nick: Optional[str] = None
    age: Optional[int] = None
    other: Optional[UUID] = None
    second: Optional[Address] = None
    last: Optional[datetime] = None

    @property
    def twice(self) -> int:
        return self.id * 2


EPOCH = datetime(2020, 1, 1, tzinfo=timezone.utc)
TEXTS = ("", "Bonn", "Köln", "Zürich", "a longer text than others", "\U0001f40d", "\uffff")


def row(number: int) -> Row:
    dice = random.Random(number)
    some: Callable[[Any], Any] = lambda value: value if dice.random() < 0.6 else None  # noqa: E731
    return Row(
        id=number, price=dice.choice([0.0, 1.5, number / 3]), kind=dice.randrange(5), active=dice.random() < 0.5,
        name=f"name {number}", city=dice.choice(TEXTS), code=dice.choice([0, 1, 65535]), ratio=dice.choice([0.5, -2.0]),
        data=dice.choice([b"", b"\0", b"abc", b"\xff" * 9]), key=UUID(int=dice.choice([0, 1, 1 << 127, number])),
        born=date(1950 + dice.randrange(3), 1, 1), seen=EPOCH + timedelta(microseconds=dice.randrange(3)),
        took=timedelta(seconds=dice.randrange(-1, 2)), cost=Decimal(dice.choice(["1", "1.0", "2.50"])),
        size=dice.choice(list(Size)), colour=dice.choice(list(Colour)), mode=dice.choice(["a", "b"]),
        tags=dice.sample(TEXTS, 2), address=Address(dice.choice(TEXTS), dice.randrange(3)), at=Point(number % 2, 1.0),
        nick=some(dice.choice(TEXTS)), age=some(dice.randrange(3)), other=some(UUID(int=dice.randrange(3))),
        second=some(Address(dice.choice(TEXTS))), last=some(EPOCH),
    )  # fmt: skip


ROWS = {number: row(number) for number in range(60)}
FORMATS: dict[str, Any] = {
    "flat": zlmdb.FlatBuffers[Row], "view": FlatBuffersView[Row], "msgpack": Row, "json": zlmdb.Json[Row],
    "cbor": zlmdb.Cbor[Row], "pickle": zlmdb.Pickle[Row], "zipped": zlmdb.Zlib[zlmdb.FlatBuffers[Row]],
    "checked": zlmdb.Checked[zlmdb.Msgpack[Row]],
}  # fmt: skip
Store = type(
    "Store", (zlmdb.Schema,), {"__annotations__": {name: zlmdb.Table[int, one] for name, one in FORMATS.items()}}
)


KINDS = [
    "lmdb-tables", "lmdb-tables, buffers",
    *(pytest.param(kind, marks=pytest.mark.once) for kind in ("memory-tables, write", "lmdb-classic")),
]  # fmt: skip
"""What is read does not depend on where it is from, but whether it comes as bytes or as memoryviews."""


@pytest.fixture(scope="module", params=KINDS)
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The tables in a transaction, each with the same records."""
    engine, layout = request.param.partition(",")[0].split("-")
    place = str(tmp_path_factory.mktemp("db")) if engine == "lmdb" else None
    with zlmdb.open(place, Store, layout=layout, durability="none") as db:
        with db.write() as t:
            for name in FORMATS:
                t[name].update(ROWS)
        options = {"buffers": request.param.endswith("buffers"), "write": request.param.endswith("write")}
        txn = db.begin(**options).begin()  # which a schema object of a user's never has with memoryviews
        with unit_of(Pool(), txn, db._schema, db._storages).view as t:
            yield t


# -- the same as in Python -----------------------------------------------------------------------------------------

SAMPLES: dict[str, list[Any]] = {
    name: [operator.attrgetter(name)(one) for one in ROWS.values()]
    for name in [*Row.__dataclass_fields__, "address.city", "address.number"]
}
SAMPLES["second.city"] = [one.second.city for one in ROWS.values() if one.second is not None]
UNORDERED = {"colour", "address", "second", "size"}
COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Pair = tuple[Any, Callable[[Any], bool]]
"""A condition, and the same in Python."""


def plain(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


def at(path: str) -> Any:
    found: Any = F
    for name in path.split("."):
        found = found[name]
    return found


@st.composite
def comparison(draw: Any) -> Pair:
    path = draw(st.sampled_from(sorted(SAMPLES)))
    present = [value for value in SAMPLES[path] if value is not None]
    how = draw(st.sampled_from(["==", "!=", "in", "none", "some"] + ["<", "<=", ">", ">="] * (path not in UNORDERED)))
    if how == "none":
        return at(path).is_none(), lambda value: plain(value, path) is None
    if how == "some":
        return at(path) != None, lambda value: plain(value, path) is not None  # noqa: E711
    if how == "in":
        chosen = draw(st.lists(st.sampled_from(present), max_size=3)) + draw(st.sampled_from([[], [None]]))
        return at(path).in_(chosen), lambda value: plain(value, path) in chosen
    constant, compare = draw(st.sampled_from(present)), COMPARE[how]
    if how in ("==", "!="):
        return compare(at(path), constant), lambda value: compare(plain(value, path), constant)
    return compare(
        at(path), constant
    ), lambda value: plain(value, path) is not None and compare(plain(value, path), constant)


def joined(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    return st.one_of(
        st.tuples(inner, inner).map(lambda two: (two[0][0] & two[1][0], lambda v: two[0][1](v) and two[1][1](v))),
        st.tuples(inner, inner).map(lambda two: (two[0][0] | two[1][0], lambda v: two[0][1](v) or two[1][1](v))),
        inner.map(lambda one: (~one[0], lambda v: not one[1](v))),
    )


conditions = st.recursive(comparison(), joined, max_leaves=5)
FIELDS = sorted({*SAMPLES} - {"tags", "second", "address"})


@pytest.mark.twice  # how what was read is answered does not depend on the version of Python
@settings(max_examples=settings.default.max_examples // 5)
@given(
    pair=conditions, paths=st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4),
    bounds=st.tuples(st.none() | st.integers(0, 60), st.none() | st.integers(0, 60)), reverse=st.booleans(),
    limit=st.none() | st.integers(0, 9),
)  # fmt: skip
def test_a_filter_gives_what_python_gives(
    tables: Any, pair: Pair, paths: Any, bounds: Any, reverse: bool, limit: Any
) -> None:
    condition, holds = pair
    start, stop = bounds
    numbers = [n for n in ROWS if (start is None or n >= start) and (stop is None or n < stop)]
    numbers = numbers[::-1] if reverse else numbers
    question, fields_of = ask(condition), give(*paths)
    for name in FORMATS:
        # A view of an object equals no object.
        same = holds if name != "view" else question
        found = [n for n in numbers if same(ROWS[n] if name != "view" else tables.view[n])][:limit]
        projected = [tuple(plain(ROWS[n], path) for path in paths) for n in found]
        chosen = tables[name].select(start, stop, reverse=reverse).where(question)
        chosen = chosen if limit is None else chosen.limit(limit)
        assert list(chosen.keys()) == found, name
        assert chosen.count() == len(found)
        assert bool(chosen) == bool(found)
        expected = projected if len(paths) > 1 else [one for (one,) in projected]
        assert list(chosen.fields(fields_of)) == expected, name
        if name != "view":
            assert list(chosen) == [(n, ROWS[n]) for n in found]
            assert chosen.first() == ((found[0], ROWS[found[0]]) if found else None)
        else:
            assert [value.name for value in chosen.values()] == [ROWS[n].name for n in found]


@pytest.mark.twice
def test_one_program_serves_other_values(tables: Any) -> None:
    expected = [n for n, one in ROWS.items() if one.kind == 3]
    for name in FORMATS:
        table = tables[name]
        assert list(table.where(lambda v: v.kind == 3).where(lambda v: v.kind == 3).keys()) == expected
        assert table.where(lambda v: v.kind == 3 and v.kind == 4).count() == 0
        assert list(table.where(lambda v: v.kind == 3).where(lambda v: v.id > 20).keys()) == [
            n for n in expected if n > 20
        ]
        programs = len(table._storage.generated.programs._made)
        for kind in range(5):
            found = table.where(lambda v: v.kind == kind).count()  # noqa: B023
            assert found == sum(one.kind == kind for one in ROWS.values())
        assert len(table._storage.generated.programs._made) <= programs + 1


def test_fields_come_as_the_function_gives_them(tables: Any) -> None:
    for name in FORMATS:
        table = tables[name]
        prices = [one.price for one in ROWS.values()]
        assert list(array("d", table.fields(lambda v: v.price))) == prices
        assert list(table.fields(lambda v: (v.id, v.address.city))) == [
            (n, one.address.city) for n, one in ROWS.items()
        ]
        assert table.where(lambda v: v.active and v.kind != 3).count() == sum(
            one.active and one.kind != 3 for one in ROWS.values()
        )
        assert list(table.fields(lambda k, v: (k, v.kind))) == [(n, one.kind) for n, one in ROWS.items()]
        assert repr(table.limit(1).fields(lambda v: v.id)) == "[0]"


def test_a_property_is_followed_where_the_record_has_it(tables: Any) -> None:
    for name in FORMATS:
        found = tables[name].where(lambda v: v.twice == 6)
        if name == "view":
            with pytest.raises(AttributeError, match="twice"):
                found.keys().all()
        else:
            assert list(found.fields(lambda v: v.twice)) == [6]


def test_only_the_fields_in_question_are_read_of_flatbuffers(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: Any) -> Any:
        raise AssertionError

    for name in ("flat", "view"):
        table = tables[name]
        matches, gives = (lambda v: v.price > 1 and v.city in ("Bonn", "")), (lambda v: (v.id, v.name))
        expected = table.where(matches).fields(gives).all()
        assert expected
        nicked = table.where(lambda v: v.active and v.nick is not None and v.nick > "B")
        assert nicked.keys().all()
        monkeypatch.setattr(table._storage, "load", refuse)
        assert table.where(matches).fields(gives).all() == expected
        assert nicked.keys().all()
        assert table.order_by(lambda v: v.price).fields(lambda v: v.id).count() == len(ROWS)
        monkeypatch.undo()


# -- records that others wrote ----------------------------------------------------------------------------------------


@dataclass
class Thing:
    id: int
    name: str
    price: float = 9.5
    label: Optional[str] = None
    count: Optional[int] = None
    key: UUID = UUID(int=3)  # noqa: RUF009


class Things(zlmdb.Schema):
    things: zlmdb.Table[int, zlmdb.FlatBuffers[Thing]]
    views: zlmdb.Table[int, FlatBuffersView[Thing]]
    raw: zlmdb.Table[int, bytes]


@dataclass
class OldThing:
    id: int
    name: str


def by_builder(thing: Thing) -> bytes:
    """As the official runtime writes it: strings first, defaults left out, its own vtable."""
    flatbuffers = pytest.importorskip("flatbuffers")
    builder = flatbuffers.Builder(64)
    name = builder.CreateString(thing.name)
    label = None if thing.label is None else builder.CreateString(thing.label)
    key = builder.CreateByteVector(thing.key.bytes)
    builder.StartObject(6)
    builder.PrependInt64Slot(0, thing.id, 0)
    builder.PrependUOffsetTRelativeSlot(1, name, 0)
    builder.PrependFloat64Slot(2, thing.price, 9.5)
    if label is not None:
        builder.PrependUOffsetTRelativeSlot(3, label, 0)
    if thing.count is not None:
        builder.PrependInt64(thing.count)
        builder.Slot(4)
    builder.PrependUOffsetTRelativeSlot(5, key, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def thing(number: int) -> Thing:
    return Thing(
        number, f"name {number % 4}", [9.5, 0.0, 7.25][number % 3], None if number % 2 else f"label {number % 3}",
        None if number % 5 else number, UUID(int=number % 3),
    )  # fmt: skip


def written(number: int) -> bytes:
    """Record *number*, by one of four writers."""
    one = thing(number)
    if number % 4 == 0:
        return zlmdb.values.serializer(zlmdb.FlatBuffers[OldThing]).encode(OldThing(one.id, one.name))
    return by_builder(one) if number % 4 == 1 else zlmdb.values.serializer(zlmdb.FlatBuffers[Thing]).encode(one)


QUESTIONS: list[Pair] = [
    (F.id == 6, lambda one: one.id == 6),
    (F.price < 9, lambda one: one.price < 9),
    (F.name == "name 1", lambda one: one.name == "name 1"),
    (F.name != "name 1", lambda one: one.name != "name 1"),
    (F.name > "name 1", lambda one: one.name > "name 1"),
    (F.label == "label 0", lambda one: one.label == "label 0"),
    (F.label < "label 1", lambda one: one.label is not None and one.label < "label 1"),
    (F.label.is_none(), lambda one: one.label is None),
    (F.count != None, lambda one: one.count is not None),  # noqa: E711
    (F.count <= 20, lambda one: one.count is not None and one.count <= 20),
    (F.count.in_([None, 10]), lambda one: one.count in (None, 10)),
    (F.key == UUID(int=1), lambda one: one.key == UUID(int=1)),
    (F.key >= UUID(int=2), lambda one: one.key >= UUID(int=2)),
    (~(F.key.in_({UUID(int=2)})) & (F.price >= 9.5), lambda one: one.key != UUID(int=2) and one.price >= 9.5),
]
NAMES = [field.name for field in fields(Thing)]


def store_raw(t: Any, records: dict[int, bytes]) -> None:
    """Put *records* into the tables of things as they are."""
    for table in (t.things, t.views):
        for number, data in records.items():
            t.txn._engine_txn.put(table._storage.encode_key(number), data, db=table._db)


@pytest.fixture
def things() -> Iterator[Callable[[dict[int, bytes]], Any]]:
    """Tables of things in a transaction, with these records."""
    db = zlmdb.open(None, Things)
    opened: list[Any] = []

    def tables_with(records: dict[int, bytes]) -> Any:
        with db.write() as t:
            for table in (t.things, t.views):
                table.clear()
            store_raw(t, records)
        t = db.read()
        opened.append(t)
        return t

    yield tables_with
    for t in opened:
        t.txn.abort()
    db.close()


@pytest.mark.twice
def test_records_of_other_writers_are_filtered_by_what_they_hold(things: Any) -> None:
    records = {number: written(number) for number in range(40)}
    decode = zlmdb.values.serializer(zlmdb.FlatBuffers[Thing]).decode
    expected = {number: decode(data) for number, data in records.items()}
    assert expected[4] == Thing(4, "name 0")
    assert expected[5] == thing(5)
    t = things(records)
    for condition, holds in QUESTIONS:
        found = [number for number, one in expected.items() if holds(one)]
        assert 0 < len(found) < len(expected)
        for table in (t.things, t.views):
            chosen = table.where(ask(condition))
            assert list(chosen.keys()) == found, condition
            assert list(chosen.fields(give(*NAMES))) == [tuple(vars(expected[n]).values()) for n in found]
            for name in NAMES:
                assert list(chosen.fields(give(name))) == [getattr(expected[n], name) for n in found]
    for name in NAMES:
        assert list(t.things.fields(give(name))) == [getattr(one, name) for one in expected.values()]


def read_or_error(rows: Iterable[Any]) -> tuple[Any, Optional[zlmdb.DecodeError]]:
    try:
        return list(rows), None
    except zlmdb.DecodeError as error:
        return None, error


@pytest.mark.twice
def test_what_is_broken_raises_or_gives_what_decoding_gives(things: Any) -> None:
    """Bytes changed at random: where the record still decodes the filter agrees, else it raises or did not look."""
    dice = random.Random(5)
    decode = zlmdb.values.serializer(zlmdb.FlatBuffers[Thing]).decode
    broken = 0
    questions, all_fields = [ask(condition) for condition, _ in QUESTIONS], give(*NAMES)
    for _ in range(12):
        records: dict[int, bytes] = {}
        for number in range(8):
            data = bytearray(written(number))
            for _ in range(dice.choice([1, 1, 3])):
                data[dice.randrange(len(data))] = dice.choice([0, 1, 4, 255, dice.randrange(256)])
            records[number] = bytes(data[: dice.choice([len(data), len(data), dice.randrange(len(data))])])
        t = things(records)
        for number, data in records.items():
            try:
                value = decode(data)
            except zlmdb.DecodeError:
                value = None
                broken += 1
            for asked, (_, holds) in zip(questions, QUESTIONS):
                for table in (t.things, t.views):
                    chosen = table.select(number, number + 1).where(asked).fields(all_fields)
                    found, error = read_or_error(chosen)
                    if value is not None:
                        assert repr(found) == repr([tuple(vars(value).values())] * holds(value))
                    elif error is not None:
                        assert (error.table, error.key) == (table._name, number)
        t.txn.abort()
    assert broken > 20


def test_a_broken_record_is_named_also_by_a_loop_that_reads_no_keys(things: Any) -> None:
    records = {number: written(number + 2) for number in range(5)}
    records[3] = records[3][:-30]
    t = things(records)
    with pytest.raises(zlmdb.DecodeError, match="'things', key 3") as caught:
        list(t.things.where(lambda v: v.name != "x").values())
    assert caught.value.key == 3


class Packed(zlmdb.Schema):
    packed: zlmdb.Table[int, tuple[bytes, int]]


def test_an_error_of_a_function_is_not_taken_for_a_broken_record(things: Any) -> None:
    t = things({number: written(number) for number in range(5)})

    def number_of(one: Any) -> int:
        return int(struct.unpack("<I", b"123")[0]) + (one is None)

    with zlmdb.open(None, Packed) as db, db.write() as p:
        p.packed[1] = b"123", 1
        for table in (t.things, t.views, p.packed):
            for rows in (table.where(lambda one: number_of(one) > 3), table.fields(number_of)):
                with pytest.raises(struct.error):
                    list(rows)


# -- as every selection -----------------------------------------------------------------------------------------------


class Typed(TypedDict):
    name: str
    size: int


class Flat(zlmdb.Table[int, zlmdb.FlatBuffers[City]]):
    """The same as FlatBuffers."""

    by_size = zlmdb.Index[int]("size")
    by_name = zlmdb.UniqueIndex[str]("name")


class Mixed(zlmdb.Schema):
    cities: Cities
    flat: Flat
    numbers: zlmdb.Table[str, int]
    maybe: zlmdb.Table[int, Optional[City]]
    typed: zlmdb.Table[int, Typed]
    loose: zlmdb.Table[int, zlmdb.Json]
    boxed: zlmdb.Table[int, zlmdb.FlatBuffers[list[int]]]
    either: zlmdb.Table[int, zlmdb.Pickle[Union[City, dict[str, int]]]]


@pytest.fixture
def mixed(make_db: Callable[..., Any]) -> Any:
    db = make_db(Mixed)
    with db.write() as t:
        for number in range(20):
            for table in (t.cities, t.flat):
                table[number] = City(f"c{number:02}", number % 4)
            t.numbers[f"n{number:02}"] = number
            t.maybe[number] = City("x", number) if number % 3 else None
            t.typed[number] = {"name": "x", "size": number}
            t.loose[number] = {"size": number, "in": {"deep": number}} if number % 2 else [number]
            t.boxed[number] = [number]
            t.either[number] = City("x", number) if number % 2 else {"size": number}
    return db


def test_values_of_every_kind_are_filtered(mixed: Any) -> None:
    with mixed.read() as t:
        assert list(t.numbers.where(lambda n: 3 < n <= 5)) == [("n04", 4), ("n05", 5)]
        assert list(t.numbers.where(lambda n: n in (7, 9)).keys()) == ["n07", "n09"]
        assert list(t.maybe.where(lambda c: c is not None and c.size > 16).keys()) == [17, 19]
        assert list(t.maybe.select(0, 4).where(lambda c: c is None).keys()) == [0, 3]
        assert list(t.typed.where(lambda d: d["size"] == 4)) == [(4, {"name": "x", "size": 4})]
        assert list(t.boxed.where(lambda one: one == [3]).keys()) == [3]
        assert list(t.boxed.where(lambda one: one in ([3], [5])).keys()) == [3, 5]
        assert list(t.either.where(lambda one: _size(one) in (4, 5)).fields(_size)) == [4, 5]
        with pytest.raises(TypeError, match="of type int"):
            t.numbers.where(lambda n: n == "x")
        with pytest.raises(TypeError, match="'sise'"):
            t.typed.where(lambda d: d["sise"] == 1)


def test_plain_data_is_what_it_is(make_db: Callable[..., Any]) -> None:
    db = make_db(Mixed)
    with db.write() as t:
        t.loose.update({1: {"a": {"b": 1}}, 2: {"a": None}, 3: {}, 4: {"a": {"b": [1]}}})
        assert list(t.loose.where(lambda d: "a" in d and d["a"] is not None and d["a"]["b"] == 1).keys()) == [1]
        assert list(t.loose.where(lambda d: d.get("a") is None).keys()) == [2, 3]
        with pytest.raises(KeyError):
            t.loose.where(lambda d: d["a"] == 1).keys().all()


@pytest.mark.parametrize("name", ["cities", "flat"])
def test_an_index_is_filtered_in_its_own_order(mixed: Any, name: str) -> None:
    with mixed.write() as t:
        table = t[name]
        assert list(table.by_size[3].where(lambda c: c.name > "c08").keys()) == [11, 15, 19]
        found = table.by_size.select(2, 4).where(lambda c: c.name > "c08").limit(2)
        assert list(found.fields(lambda c: (c.size, c.name))) == [(2, "c10"), (2, "c14")]
        assert list(table.by_name.select(reverse=True).where(lambda c: c.size == 1).keys()) == [17, 13, 9, 5, 1]
        assert dict(table.by_size[3].where(lambda c: c.name < "c05")) == {3: City("c03", 3)}
        assert table.by_size[3].where(lambda c: c.name > "c08").delete() == 3
        assert list(table.by_size[3].keys()) == [3, 7]


@pytest.mark.parametrize("name", ["cities", "flat"])
def test_what_matches_can_be_deleted_and_looked_up(mixed: Any, name: str) -> None:
    with mixed.write() as t:
        table = t[name]
        odd = table.select(0, 18).where(lambda c: c.size == 1).limit(3)
        assert dict(odd) == {1: City("c01", 1), 5: City("c05", 1), 9: City("c09", 1)}
        for key in (2, 19, 99):
            with pytest.raises(KeyError):
                odd[key]
        assert odd.delete() == 3
        assert odd.first() == (13, City("c13", 1))
        assert len(table) == 17
        assert not table.select(0, 10).where(lambda c: c.size == 1)
        assert table.by_size[1].count() == 2


@pytest.mark.parametrize("name", ["cities", "flat"])
def test_it_ends_with_its_transaction(mixed: Any, name: str) -> None:
    with mixed.read() as t:
        chosen = t[name].where(lambda c: c.size == 1)
        values, bare = iter(chosen.values()), iter(t[name].fields(lambda c: c.size))
        next(values), next(bare)
    for read in (lambda: next(values), lambda: next(bare), chosen.first, chosen.count, lambda: list(chosen.keys())):
        with pytest.raises(zlmdb.TransactionClosed):
            read()
    assert "its transaction has ended" in repr(chosen)


def test_classic_maps_are_filtered(tmp_path: Any) -> None:
    class Names(zlmdb.MapOidString):
        """Names."""

    users = zlmdb.table("6a6ef0a8-86c5-4b1c-a69b-6fd0ea3e49a2")(Names)
    with zlmdb.Database(str(tmp_path / "db")) as db:
        names = db.attach_table(users)
        with db.begin(write=True) as txn:
            for number in range(5):
                names[txn, number] = f"name {number}"
            assert list(names.select(txn, from_key=1).where(lambda name: name > "name 2").keys()) == [3, 4]


def test_a_table_that_no_schema_declares_is_filtered(mixed: Any) -> None:
    with mixed.read() as t:
        storage = undeclared(t.txn._store, "typed")
        table = zlmdb.Table._bound(t.txn, storage)
        assert list(table.where(lambda d: d["size"] == 3).keys()) == [3]


# -- many conditions, and types of several kinds --------------------------------------------------------------------


@pytest.mark.twice
@pytest.mark.parametrize("name", ["cities", "flat", "either"])
def test_hundreds_of_conditions_are_joined(mixed: Any, name: str) -> None:
    with mixed.read() as t:
        rows = t[name].select()
        for number in range(300):
            rows = rows.where(lambda one: _size(one) != number)  # noqa: B023
        assert rows.count() == 0
        source = " or ".join([f"size(one) == {number}" for number in range(3000, 2, -1)])
        found = t[name].where(eval(f"lambda one: {source}", {"size": _size}))
        assert list(found.values()) == [one for one in t[name].values() if _size(one) > 2]


def _size(value: Any) -> Any:
    return value["size"] if isinstance(value, dict) else value.size


@dataclass
class Sale:
    amount: int
    buyer: Optional[Address] = None


@dataclass
class Refund:
    amount: int
    reason: str


@dataclass
class Note:
    text: str
    about: Union[Sale, Address, None] = None


class Entries(zlmdb.Schema):
    entries: zlmdb.Table[int, zlmdb.Pickle[Union[Sale, Refund, Note]]]


def test_records_of_several_types_are_told_apart_as_python_does(make_db: Callable[..., Any]) -> None:
    with make_db(Entries).write() as t:
        t.entries.update(
            {
                1: Sale(10), 2: Note("a"), 3: Refund(3, "broken"), 4: Sale(7, Address("Bonn")),
                5: Note("b", Sale(8)), 6: Note("c", Address("Rome")),
            }
        )  # fmt: skip
        rows = t.entries.select()
        assert list(rows.where(lambda e: isinstance(e, (Sale, Refund)) and e.amount > 5).keys()) == [1, 4]
        assert list(rows.where(lambda e: not isinstance(e, Note) and e.amount <= 5).keys()) == [3]
        assert list(rows.where(lambda e: isinstance(e, Note) and e.text in ("a", "b")).keys()) == [2, 5]
        bonn = rows.where(lambda e: isinstance(e, Sale) and e.buyer is not None and e.buyer.city == "Bonn")
        assert list(bonn.keys()) == [4]
        assert list(rows.where(lambda e: isinstance(e, Note) and isinstance(e.about, Sale)).keys()) == [5]
        assert list(rows.fields(lambda e: getattr(e, "reason", None))) == [None, None, "broken", None, None, None]
        with pytest.raises(AttributeError, match="amount"):
            rows.where(lambda e: e.amount > 5).keys().all()


class Dicts(zlmdb.Schema):
    ordered: zlmdb.Table[int, zlmdb.Pickle[OrderedDict[str, int]]]
    default: zlmdb.Table[int, zlmdb.Pickle[defaultdict[str, int]]]
    counts: zlmdb.Table[int, zlmdb.Pickle[Counter[str]]]


def test_the_dicts_of_the_standard_library_have_items(make_db: Callable[..., Any]) -> None:
    with make_db(Dicts).write() as t:
        t.ordered[1], t.ordered[2] = OrderedDict(a=1), OrderedDict(a=2)
        t.default[1], t.default[2] = defaultdict(int, a=1), defaultdict(int, a=2)
        t.counts[1], t.counts[2] = Counter("a"), Counter("aa")
        for name in t:
            assert list(t[name].where(lambda d: d["a"] == 2).keys()) == [2]
            assert t[name].where(lambda d: d.get("b") is None).count() == 2
        with pytest.raises(TypeError, match="of type int"):
            t.ordered.where(lambda d: d["a"] == "x")


def test_integers_of_other_libraries_are_integers(tables: Any) -> None:
    numpy = pytest.importorskip("numpy")
    three, none, few = numpy.int64(3), numpy.uint8(0), numpy.array([1, 2])
    for name in FORMATS:
        rows = tables[name]
        assert rows.where(lambda v: v.kind == three).count() == rows.where(lambda v: v.kind == 3).count() > 0
        assert rows.where(lambda v: v.code > none).count() == rows.where(lambda v: v.code > 0).count() > 0
        assert rows.where(lambda v: v.kind in few).count() == rows.where(lambda v: v.kind in (1, 2)).count() > 0
