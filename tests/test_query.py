"""Filtering and projection give what a filter in Python gives, of every serializer, and never a wrong value."""

from __future__ import annotations

import functools
import operator
import random
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
from zlmdb import F
from zlmdb.schema.attach import undeclared
from zlmdb.schema.schema import unit_of
from zlmdb.store.pool import Pool
from zlmdb.values import F32, U16, FlatBuffersView, InStruct

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


KINDS = ["lmdb-tables", "memory-tables, write", "lmdb-classic", "lmdb-tables, buffers"]


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
    found = [n for n in (reversed(numbers) if reverse else numbers) if holds(ROWS[n])][:limit]
    projected = [tuple(plain(ROWS[n], path) for path in paths) for n in found]
    for name in FORMATS:
        chosen = tables[name].select(start, stop, reverse=reverse, limit=limit).where(condition)
        assert list(chosen.keys()) == found, name
        assert chosen.count() == len(found)
        assert bool(chosen) == bool(found)
        expected = projected if len(paths) > 1 else [one for (one,) in projected]
        assert list(chosen.fields(*paths)) == expected, name
        if name != "view":
            assert list(chosen) == [(n, ROWS[n]) for n in found]
            assert chosen.first() == ((found[0], ROWS[found[0]]) if found else None)
        else:
            assert [value.name for value in chosen.values()] == [ROWS[n].name for n in found]


def test_a_condition_stands_twice_and_one_program_serves_other_values(tables: Any) -> None:
    same = F.kind == 3
    expected = [n for n, one in ROWS.items() if one.kind == 3]
    for name in FORMATS:
        table = tables[name]
        assert list(table.select().where(same & same).keys()) == expected
        assert table.select().where((F.kind == 3) & (F.kind == 4)).count() == 0
        assert list(table.select().where(F.kind == 3).where(F.id > 20).keys()) == [n for n in expected if n > 20]
        programs = len(table._storage.programs._made)
        for kind in range(5):
            assert table.select().where(F.kind == kind).count() == sum(one.kind == kind for one in ROWS.values())
        assert len(table._storage.programs._made) <= programs + 1


def test_fields_come_bare_or_as_tuples_and_bools_stand_alone(tables: Any) -> None:
    for name in FORMATS:
        table = tables[name]
        prices = [one.price for one in ROWS.values()]
        assert list(array("d", table.select().fields("price"))) == prices
        assert list(table.select().fields("id", "address.city")) == [(n, one.address.city) for n, one in ROWS.items()]
        assert table.select().where(F.active & ~(F.kind == 3)).count() == sum(
            one.active and one.kind != 3 for one in ROWS.values()
        )
        assert repr(table.select(limit=1).fields("id")) == "[0]"


def test_a_property_is_a_field_of_what_is_read_as_an_object(tables: Any) -> None:
    for name in FORMATS:
        if name == "view":
            with pytest.raises(TypeError, match=r"Row has no field 'twice', it has id, price"):
                tables[name].select().where(F.twice == 6)
        else:
            assert list(tables[name].select().where(F.twice == 6).fields("twice")) == [6]


# -- conditions ------------------------------------------------------------------------------------------------------

MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: 1 < F.id < 3, r"\(F.id > 1\) is neither true nor false.*& \| ~"),
    (lambda: F.id == 1 or F.id == 2, "neither true nor false"),
    (lambda: not F.active, "neither true nor false"),
    (lambda: F.id in (1, 2), "neither true nor false"),
    (lambda: 3 in F.id, "no condition on what a field contains"),
    (lambda: F.id == F.kind, "compare a field with a value"),
    (lambda: F.unknown == 1, "Row has no field 'unknown', it has id, price"),
    (lambda: F.address.zip == 1, r"F.address.zip: .*Address has no field 'zip', it has city, number"),
    (lambda: F.name.upper == 1, "str has no field 'upper'"),
    (lambda: F.id == "1", r"F.id is of type int, which '1' \(str\) is not"),
    (lambda: F.id == True, r"True \(bool\)"),  # noqa: E712
    (lambda: F.id, r"True \(bool\)"),
    (lambda: F.name == b"Bonn", "F.name is of type str"),
    (lambda: F.born == EPOCH, "F.born is of type"),
    (lambda: F.mode == "c", "which 'c'"),
    (lambda: F.key.in_([UUID(int=1), 3]), r"3 \(int\)"),
    (lambda: F.city.in_("Bonn"), "its characters"),
    (lambda: F.age > None, "None has no order"),
    (lambda: F.colour < Colour.RED, "have no order"),
    (lambda: 3, "expected a condition"),
    (lambda: (F.id == 1) & True, "expected a condition"),
    (lambda: F[0] == 1, "named by a str"),
]


@pytest.mark.parametrize(("make", "text"), MISTAKES, ids=[text[:30] for _, text in MISTAKES])
def test_mistakes_raise_before_anything_is_read(tables: Any, make: Callable[[], Any], text: str) -> None:
    for name in FORMATS:
        with pytest.raises(TypeError, match=text):
            tables[name].select().where(make())


def test_unknown_fields_cannot_be_asked_for(tables: Any) -> None:
    with pytest.raises(TypeError, match="no field 'nam', it has id"):
        tables["flat"].select().fields("id", "nam")
    with pytest.raises(TypeError, match="names of fields"):
        tables["flat"].select().fields()


def test_times_without_a_zone_are_refused_where_all_have_one(tables: Any) -> None:
    with pytest.raises(TypeError, match="no time zone"):
        tables["flat"].select().where(F.seen > datetime(2020, 1, 1))


def test_conditions_show_what_one_writes() -> None:
    condition = (F.kind == 3) & ~((F.address.city != "Bonn") | F["in_"].in_([1])) & F.active
    assert (
        repr(condition)
        == "((F.kind == 3) & ~((F.address.city != 'Bonn') | F.in_.in_(frozenset({1}))) & (F.active == True))"
    )
    assert repr(F["a b"].c > 1) == "(F['a b'].c > 1)"


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
            chosen = table.select().where(condition)
            assert list(chosen.keys()) == found, condition
            assert list(chosen.fields(*NAMES)) == [tuple(vars(expected[n]).values()) for n in found]
            for name in NAMES:
                assert list(chosen.fields(name)) == [getattr(expected[n], name) for n in found]
    for name in NAMES:
        assert list(t.things.select().fields(name)) == [getattr(one, name) for one in expected.values()]


def read_or_error(rows: Iterable[Any]) -> tuple[Any, Optional[zlmdb.DecodeError]]:
    try:
        return list(rows), None
    except zlmdb.DecodeError as error:
        return None, error


def test_what_is_broken_raises_or_gives_what_decoding_gives(things: Any) -> None:
    """Bytes changed at random: where the record still decodes the filter agrees, else it raises or did not look."""
    dice = random.Random(5)
    decode = zlmdb.values.serializer(zlmdb.FlatBuffers[Thing]).decode
    broken = 0
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
            for condition, holds in QUESTIONS:
                for table in (t.things, t.views):
                    chosen = table.select(number, number + 1).where(condition).fields(*NAMES)
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
        list(t.things.select().where(F.name != "x").values())
    assert caught.value.key == 3


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
        assert list(t.numbers.select().where((F > 3) & (F <= 5))) == [("n04", 4), ("n05", 5)]
        assert list(t.numbers.select().where(F.in_([7, 9])).keys()) == ["n07", "n09"]
        assert list(t.maybe.select().where(F.size > 16).keys()) == [17, 19]
        assert list(t.maybe.select(0, 4).where(F.is_none()).keys()) == [0, 3]
        assert list(t.maybe.select(0, 4).where(F.size == None).keys()) == [0, 3]  # noqa: E711
        assert list(t.typed.select().where(F.size == 4)) == [(4, {"name": "x", "size": 4})]
        assert list(t.boxed.select().where(F == [3]).keys()) == [3]
        assert list(t.boxed.select().where(F.in_([[3], [5]])).keys()) == [3, 5]
        assert list(t.either.select().where(F.size.in_({4, 5})).fields("size")) == [4, 5]
        with pytest.raises(TypeError, match="of type int"):
            t.numbers.select().where(F == "x")
        with pytest.raises(TypeError, match="no field 'sise', it has name, size"):
            t.typed.select().where(F.sise == 1)


def test_plain_data_reads_what_is_not_there_as_none(make_db: Callable[..., Any]) -> None:
    db = make_db(Mixed)
    with db.write() as t:
        t.loose.update({1: {"a": {"b": 1}}, 2: {"a": None}, 3: {}, 4: {"a": {"b": [1]}}})
        rows = t.loose.select()
        assert list(rows.where(F.a.b == 1).keys()) == [1]
        assert list(rows.where(F.a.b.is_none()).keys()) == [2, 3]
        assert list(rows.where(F.a.b.in_([1, 2])).keys()) == [1]
        assert list(rows.fields("a.b")) == [1, None, None, [1]]


@pytest.mark.parametrize("name", ["cities", "flat"])
def test_an_index_is_filtered_in_its_own_order(mixed: Any, name: str) -> None:
    with mixed.write() as t:
        table = t[name]
        assert list(table.by_size[3].where(F.name > "c08").keys()) == [11, 15, 19]
        assert list(table.by_size.select(2, 4, limit=2).where(F.name > "c08").fields("size", "name")) == [
            (2, "c10"), (2, "c14"),
        ]  # fmt: skip
        assert list(table.by_name.select(reverse=True).where(F.size == 1).keys()) == [17, 13, 9, 5, 1]
        assert dict(table.by_size[3].where(F.name < "c05")) == {3: City("c03", 3)}
        assert table.by_size[3].where(F.name > "c08").delete() == 3
        assert list(table.by_size[3].keys()) == [3, 7]


@pytest.mark.parametrize("name", ["cities", "flat"])
def test_what_matches_can_be_deleted_and_looked_up(mixed: Any, name: str) -> None:
    with mixed.write() as t:
        table = t[name]
        odd = table.select(0, 18, limit=3).where(F.size == 1)
        assert dict(odd) == {1: City("c01", 1), 5: City("c05", 1), 9: City("c09", 1)}
        for key in (2, 19, 99):
            with pytest.raises(KeyError):
                odd[key]
        assert odd.delete() == 3
        assert odd.first() == (13, City("c13", 1))
        assert len(table) == 17
        assert not table.select(0, 10).where(F.size == 1)
        assert table.by_size[1].count() == 2


@pytest.mark.parametrize("name", ["cities", "flat"])
def test_an_iteration_sees_what_its_transaction_writes_ahead(mixed: Any, name: str) -> None:
    with mixed.write() as t:
        table = t[name]
        seen = []
        for number, city in table.select().where(F.size == 0):  # noqa: B007
            seen.append(number)
            if number == 4:
                del table[4]
                table[8] = City("c08", 1)
                table[9] = City("c09", 0)
        assert seen == [0, 4, 9, 12, 16]
        assert city == City("c16", 0)


@pytest.mark.parametrize("name", ["cities", "flat"])
def test_it_ends_with_its_transaction(mixed: Any, name: str) -> None:
    with mixed.read() as t:
        chosen = t[name].select().where(F.size == 1)
        values, bare = iter(chosen.values()), iter(t[name].select().fields("size"))
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
            assert list(names.select(txn, from_key=1).where(F > "name 2").keys()) == [3, 4]


def test_a_table_that_no_schema_declares_is_filtered(mixed: Any) -> None:
    with mixed.read() as t:
        storage = undeclared(t.txn._store, "typed")
        table = zlmdb.Table._bound(t.txn, storage)
        assert list(table.select().where(F.size == 3).keys()) == [3]


# -- many conditions, and types of several kinds --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cities", "flat", "either"])
def test_thousands_of_conditions_are_joined(mixed: Any, name: str) -> None:
    terms = [F.size == number for number in range(3000, 2, -1)]
    for joined in (functools.reduce(operator.or_, terms), functools.reduce(lambda rest, one: one | rest, terms)):
        assert repr(joined).count(" | ") == len(terms) - 1
        with mixed.read() as t:
            found = list(t[name].select().where(joined).values())
            expected = [one for one in t[name].values() if _size(one) > 2]
            assert found == expected
            assert t[name].select().where(~joined).count() == len(t[name]) - len(expected)
    every = functools.reduce(operator.and_, [F.size != number for number in range(3, 1500)])
    with mixed.read() as t:
        rows = t[name].select()
        assert rows.where(every).count() == sum(_size(one) < 3 for one in t[name].values())
        for number in range(1500):
            rows = rows.where(F.size != number)
        assert rows.count() == 0


def _size(value: Any) -> Any:
    return value["size"] if isinstance(value, dict) else value.size


def test_joined_conditions_group_as_one_writes() -> None:
    a, b, c, d = F.a == 1, F.b == 2, F.c == 3, F.d == 4
    assert repr((a | b) | (c | d)) == "((F.a == 1) | (F.b == 2) | (F.c == 3) | (F.d == 4))"
    assert repr((a & b) | (c & d)) == "(((F.a == 1) & (F.b == 2)) | ((F.c == 3) & (F.d == 4)))"
    assert (a | b | c)._shape() != (a | (b & c))._shape()


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


def test_a_field_that_some_of_several_types_have_is_none_in_the_others(make_db: Callable[..., Any]) -> None:
    with make_db(Entries).write() as t:
        t.entries.update(
            {
                1: Sale(10), 2: Note("a"), 3: Refund(3, "broken"), 4: Sale(7, Address("Bonn")),
                5: Note("b", Sale(8)), 6: Note("c", Address("Rome")),
            }
        )  # fmt: skip
        rows = t.entries.select()
        assert list(rows.where(F.amount > 5).keys()) == [1, 4]
        assert list(rows.where(~(F.amount > 5)).keys()) == [2, 3, 5, 6]
        assert list(rows.where(F.amount.is_none()).keys()) == [2, 5, 6]
        assert list(rows.where(F.text.in_(["a", "b"])).keys()) == [2, 5]
        assert list(rows.where(F.buyer.city == "Bonn").keys()) == [4]
        assert list(rows.where(F.about.amount == 8).keys()) == [5]
        assert list(rows.where(F.about.city == "Rome").keys()) == [6]
        assert list(rows.fields("amount", "reason")) == [
            (10, None), (None, None), (3, "broken"), (7, None), (None, None), (None, None)
        ]  # fmt: skip
        for wrong in (lambda: rows.where(F.amuont > 5), lambda: rows.fields("amuont")):
            with pytest.raises(TypeError, match="none of .*Sale, .*Refund, .*Note has a field 'amuont'"):
                wrong()
        with pytest.raises(TypeError, match="none of .*Sale, .*Address has a field 'town'"):
            rows.where(F.about.town == "Rome")
        with pytest.raises(TypeError, match="of type int"):
            rows.where(F.amount > "5")


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
            assert list(t[name].select().where(F.a == 2).keys()) == [2]
            assert t[name].select().where(F.b.is_none()).count() == 2
        with pytest.raises(TypeError, match="of type int"):
            t.ordered.select().where(F.a == "x")


def test_integers_of_other_libraries_are_integers(tables: Any) -> None:
    numpy = pytest.importorskip("numpy")
    for name in FORMATS:
        rows = tables[name].select()
        assert rows.where(F.kind == numpy.int64(3)).count() == rows.where(F.kind == 3).count() > 0
        assert rows.where(F.code > numpy.uint8(0)).count() == rows.where(F.code > 0).count() > 0
        assert rows.where(F.kind.in_(numpy.array([1, 2]))).count() == rows.where(F.kind.in_([1, 2])).count() > 0
        for wrong in (numpy.bool_(True), numpy.timedelta64(3, "s"), numpy.array([3, 4])):
            with pytest.raises((TypeError, ValueError)):
                rows.where(F.kind == wrong).count()
