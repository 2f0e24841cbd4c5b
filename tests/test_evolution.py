"""The shape of records: what a file records of it, and which programs it refuses."""

from __future__ import annotations

import enum
import io
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, Union
from uuid import UUID, uuid4

import pytest

import zlmdb
from zlmdb.schema import contents, indexbuilding
from zlmdb.values import U16, Id, InStruct, fields
from zlmdb.values.description import checked_description
from zlmdb.values.recorded import recorded

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

LAYOUTS = pytest.mark.parametrize("layout", ["tables", "classic"])
FORMATS = pytest.mark.parametrize("form", ["Msgpack", "Json", "Cbor", "Pickle", "FlatBuffers"])
SHAPES = pytest.mark.parametrize(
    ("layout", "form"),
    [
        (layout, form)
        for layout in ("tables", "classic")
        for form in ("Msgpack", "Json", "Cbor", "Pickle", "FlatBuffers")
        if (layout, form) != ("classic", "Pickle")  # whose classes have to be there to import
    ],
)
BY_NAME = pytest.mark.parametrize("form", ["Msgpack", "Json", "Cbor", "Pickle"])


def model(class_name: str = "User", /, **fields: Any) -> Any:
    """A model class: ``model(name=str, age=(int, 0))``."""
    listed = [(key, *one) if isinstance(one, tuple) else (key, one) for key, one in fields.items()]
    return make_dataclass(class_name, listed)


def schema(value: Any, form: str = "Msgpack", **indexes: Any) -> Any:
    """A schema of one table of values of the type."""
    table: Any = zlmdb.Table
    cls = types.new_class("Users", (table[int, getattr(zlmdb, form)[value]],), {}, lambda body: body.update(indexes))
    return type("Store", (zlmdb.Schema,), {"__annotations__": {"users": cls}})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


def start(path: Path, value: Any, *records: Any, form: str = "Msgpack", **options: Any) -> None:
    with zlmdb.open(path, schema(value, form), durability="none", **options) as db, db.write() as t:
        t.users.update(enumerate(records, 1))


def snapshot(path: Path) -> int:
    with zlmdb.open(path, readonly=True) as db:
        number: int = db.stats()["last_txnid"]
        return number


User = model(name=str, mail=(str, ""), age=(int, 0))
ANN = User("Ann", "ann@x", 31)


# -- what is recorded -------------------------------------------------------------------------------------------------


@SHAPES
def test_a_file_records_the_fields_of_its_models_their_types_and_defaults(path: Path, layout: Any, form: str) -> None:
    start(path, User, ANN, form=form, layout=layout)
    with zlmdb.open(path, readonly=True) as db:
        assert db.tables()["users"].fields == "{name: str, mail: str = '', age: int = 0}"


def test_what_can_be_in_a_model_is_recorded_by_its_structure(path: Path) -> None:
    class Color(enum.Enum):
        RED = "red"
        BLUE = "blue"

    class Point(NamedTuple):
        x: float
        y: float = 0.0

    class Extra(TypedDict, total=False):
        note: str

    @dataclass
    class Node:
        key: UUID
        color: Color = Color.RED
        kind: Literal["a", "b"] = "a"
        where: Optional[Point] = None
        tags: list[str] = field(default_factory=list)
        sizes: dict[str, tuple[int, str]] = field(default_factory=dict)
        extra: Union[str, int, None] = None
        left: Optional[Node] = None
        more: Extra = field(default_factory=lambda: Extra())

    class Nodes(zlmdb.Table[int, Node]):
        pass

    class Store(zlmdb.Schema):
        nodes: Nodes

    with zlmdb.open(path, Store) as db:
        shown = db.tables()["nodes"].fields
    assert shown == (
        "{key: uuid, color: one of 'blue', 'red' = 'red', kind: one of 'a', 'b' = 'a', where: {...} | none = None, "
        "tags: list[str] = [], sizes: dict[str, tuple[int, str]] = {}, extra: int | str | none = None, "
        "left: {...} | none = None, more: {...} = ...}"
    )
    before = snapshot(path)
    with zlmdb.open(path, Store):
        pass
    assert snapshot(path) == before


def test_tables_without_models_record_no_fields(path: Path) -> None:
    class Store(zlmdb.Schema):
        counts: zlmdb.Table[str, int]
        documents: zlmdb.Table[int, dict[str, Any]]

    with zlmdb.open(path, Store) as db:
        assert {one.fields for one in db.tables().values()} == {None}


# -- what is refused --------------------------------------------------------------------------------------------------


def refused(path: Path, value: Any, form: str = "Msgpack", **options: Any) -> str:
    """The reason why the class cannot be opened; nothing has changed in the file."""
    before = snapshot(path)
    with pytest.raises(zlmdb.SchemaMismatch) as caught:
        zlmdb.open(path, schema(value, form), **options)
    assert caught.value.table == "users"
    assert snapshot(path) == before
    return str(caught.value)


@SHAPES
def test_a_renamed_field_is_refused_with_both_sides(path: Path, layout: Any, form: str) -> None:
    start(path, User, ANN, form=form, layout=layout)
    text = refused(path, model(name=str, email=(str, ""), age=(int, 0)), form)
    if form == "FlatBuffers":
        assert "email has the number 1, which is that of mail in the file" in text
    else:
        assert "the class has email, and lacks mail" in text
    assert "the file has {name: str, mail: str = '', age: int = 0}" in text
    assert "the class {name: str, email: str = '', age: int = 0}" in text
    assert refused(path, model(name=str, email=(str, ""), age=(int, 0)), form, readonly=True) == text


@SHAPES
def test_a_dropped_field_is_refused_and_may_be_left_out_by_a_reader(path: Path, layout: Any, form: str) -> None:
    start(path, User, ANN, form=form, layout=layout)
    fewer = model(name=str, mail=(str, ""))
    assert "lacks age, which would be lost" in refused(path, fewer, form)
    with zlmdb.open(path, schema(fewer, form), readonly=True) as db, db.read() as t:
        assert t.users[1] == fewer("Ann", "ann@x")


@SHAPES
def test_a_changed_type_is_refused_with_both_sides(path: Path, layout: Any, form: str) -> None:
    start(path, User, ANN, form=form, layout=layout)
    text = refused(path, model(name=str, mail=(str, ""), age=(str, "")), form)
    assert "age is int in the file and str in the class" in text


@SHAPES
def test_a_new_field_with_a_default_is_free(path: Path, layout: Any, form: str) -> None:
    start(path, User, ANN, form=form, layout=layout)
    more = model(name=str, mail=(str, ""), age=(int, 0), city=(str, "Rome"))
    with zlmdb.open(path, schema(more, form)) as db:
        with db.write() as t:
            assert t.users[1] == more("Ann", "ann@x", 31, "Rome")
            t.users[2] = more("Bob", "bob@x", 35, "Oslo")
        assert db.tables()["users"].fields == "{name: str, mail: str = '', age: int = 0, city: str = 'Rome'}"
    without = model(name=str, mail=str, age=int, city=str)
    assert "city has no default any more" in refused(path, without, form)


@LAYOUTS
@pytest.mark.parametrize("form", ["Msgpack", "Json", "Cbor", "Pickle"])
def test_a_changed_type_of_plain_values_is_refused(path: Path, layout: Any, form: str) -> None:
    def of(value: Any) -> Any:
        generic: Any = zlmdb.Table
        return type("Store", (zlmdb.Schema,), {"__annotations__": {"rows": generic[int, getattr(zlmdb, form)[value]]}})

    with zlmdb.open(path, of(dict[str, list[int]]), layout=layout) as db, db.write() as t:
        t.rows[1] = {"a": [1]}
    for wrong in (dict[str, list[str]], dict[str, int], list[int], Optional[list[int]]):
        with pytest.raises(zlmdb.SchemaMismatch, match=r"values of the type dict\[str, list\[int\]\]") as caught:
            zlmdb.open(path, of(wrong))
        assert "old.take('rows')" in str(caught.value)
    for right in (dict[str, list[int]], dict[str, list[Union[int, str]]], dict, dict[str, Any], Any):
        with zlmdb.open(path, of(right)) as db, db.read() as t:
            assert dict(t.rows) == {1: {"a": [1]}}


@LAYOUTS
def test_a_wider_type_of_plain_values_is_recorded_by_the_next_write(path: Path, layout: Any) -> None:
    def of(value: Any) -> Any:
        generic: Any = zlmdb.Table
        return type("Store", (zlmdb.Schema,), {"__annotations__": {"rows": generic[int, value]}})

    def recorded() -> Optional[str]:
        with zlmdb.open(path) as db:
            return contents.tables(db._open_store)["rows"].model

    narrow, wide = of(list[Optional[int]]), of(list[Union[int, str, None]])
    with zlmdb.open(path, narrow, layout=layout) as db, db.write() as t:
        t.rows[1] = [1]
    first = recorded()
    for vague in (list[Any], list, Any):  # they say nothing of what is written
        with zlmdb.open(path, of(vague)) as db, db.write() as t:
            t.rows[2] = [2]
        assert recorded() == first
    with zlmdb.open(path, wide, readonly=True) as db, db.read() as t:
        assert t.rows[1] == [1]
    assert recorded() == first
    with zlmdb.open(path, wide) as db, db.write() as t:
        t.rows[2] = ["a"]
    assert "str" in str(recorded())
    with pytest.raises(zlmdb.SchemaMismatch, match="values of the type list"):
        zlmdb.open(path, narrow)
    with zlmdb.open(path, wide) as db, db.read() as t:
        assert dict(t.rows) == {1: [1], 2: ["a"]}


@LAYOUTS
def test_a_map_without_a_type_reads_plain_values_of_a_type(path: Path, layout: Any) -> None:
    uuid = "40ce61ae-3c59-45f3-9a5b-0d8f7c4c3a0f"

    class Rows(zlmdb.Table[zlmdb.keys.Oid, zlmdb.Json[dict[str, int]]], uuid=uuid): ...

    class Store(zlmdb.Schema):
        rows: Rows

    @zlmdb.table(uuid)
    class Untyped(zlmdb.MapOidJson): ...  # type: ignore[type-arg]

    @zlmdb.table(uuid)
    class Other(zlmdb.PersistentMap[zlmdb.keys.Oid, zlmdb.Json[dict[str, str]]]): ...

    with zlmdb.open(path, Store, layout=layout) as db, db.write() as t:
        t.rows[1] = {"a": 1}
    with zlmdb.Database(str(path)) as db:
        rows = db.attach_table(Untyped)
        with db.begin(write=True) as txn:
            assert rows[txn, 1] == {"a": 1}
            rows[txn, 2] = {"b": 2}
        with pytest.raises(zlmdb.SchemaMismatch, match="dict"):
            db.attach_table(Other)
    with zlmdb.open(path, Store) as db, db.read() as t:
        assert dict(t.rows) == {1: {"a": 1}, 2: {"b": 2}}


def test_a_new_field_without_a_default_is_refused(path: Path) -> None:
    named = model(name=str)
    start(path, named, named("Ann"))
    text = refused(path, model(name=str, age=int))
    assert "age is new and has no default" in text
    assert "give age a default, or keep the fields" in text


@BY_NAME
def test_the_order_of_fields_is_free(path: Path, form: str) -> None:
    start(path, User, ANN, form=form)
    other = model(name=str, age=(int, 0), mail=(str, ""))
    with zlmdb.open(path, schema(other, form)) as db, db.write() as t:
        assert t.users[1] == other("Ann", 31, "ann@x")
        t.users[2] = other("Bob", 35, "bob@x")
    with zlmdb.open(path, schema(User, form)) as db, db.read() as t:
        assert t.users[2] == User("Bob", "bob@x", 35)


@FORMATS
def test_a_field_may_become_optional_and_not_back(path: Path, form: str) -> None:
    start(path, User, ANN, form=form)
    wider = model(name=str, mail=(str, ""), age=(Optional[int], 0))
    with zlmdb.open(path, schema(wider, form)) as db, db.write() as t:
        t.users[2] = wider("Bob", "bob@x", None)
    assert "newer than this program" in refused(path, User, form)
    other = model(name=str, mail=(str, ""), age=(int, 0), city=(str, ""))
    assert "age is int | none in the file" in refused(path, other, form)


def test_an_enum_may_get_more_members_and_not_fewer(path: Path) -> None:
    two = enum.Enum("Color", {"RED": "red", "BLUE": "blue"})
    three = enum.Enum("Color", {"RED": "red", "BLUE": "blue", "GREEN": "green"})
    fewer = model(color=two)
    start(path, fewer, fewer(two("red")))
    cls = model(color=three)
    with zlmdb.open(path, schema(cls)) as db, db.write() as t:
        assert t.users[1] == cls(three("red"))
    assert "color is" in refused(path, model(color=two, city=(str, "")))


def numbered(*values: int) -> Any:
    return enum.Enum("Level", {f"V{value}": value for value in values})


@pytest.mark.parametrize(
    ("before", "after", "last"),
    [
        (numbered(0, 1), numbered(0, 1, 2), 2),
        (numbered(2, 5), numbered(7, 2, 5), 7),
        (enum.IntFlag("Access", {"READ": 4}), enum.IntFlag("Access", {"READ": 4, "WRITE": 2}), 2),
    ],
)
@pytest.mark.parametrize("form", ["Msgpack", "Json", "Cbor", "FlatBuffers"])
def test_an_enum_of_integers_may_get_more_members(path: Path, before: Any, after: Any, last: int, form: str) -> None:
    fewer, more = model(level=before, levels=list[before]), model(level=after, levels=list[after])
    first = next(iter(before)).value
    start(path, fewer, fewer(before(first), [before(first)]), form=form)
    for _ in range(2):
        with zlmdb.open(path, schema(more, form)) as db:
            with db.write() as t:
                assert t.users[1] == more(after(first), [after(first)])
                t.users[2] = more(after(last), [after(last), after(first)])
            with db.read() as t:
                assert t.users[2] == more(after(last), [after(last), after(first)])
            assert db.check().ok
    assert "level is" in refused(path, fewer, form)


def test_of_flatbuffers_the_width_and_what_is_read_where_a_field_is_absent_stay_the_same(path: Path) -> None:
    """Other writers leave out a number that is the default."""
    fewer = numbered(2, 5)
    cls = model(level=fewer)
    start(path, cls, cls(fewer(2)), form="FlatBuffers")
    for more in (numbered(0, 2, 5), numbered(1, 2, 5), numbered(2, 5, 1 << 40)):
        assert "level is one of 2, 5 stored as int in the file" in refused(path, model(level=more), "FlatBuffers")


def integers() -> tuple[Any, ...]:
    """A class whose enums FlatBuffers stores in several widths, a record, and the types as they were recorded once."""
    level, wide = enum.Enum("Level", {"LOW": 3, "HIGH": 1}), enum.Enum("Wide", {"A": 1 << 40, "B": 1})
    small, access = enum.Enum("Small", {"A": 1, "B": 2}), enum.IntFlag("Access", {"READ": 4, "WRITE": 2})
    inner = model("Inner", level=level, number=int)
    cls = model(
        level=level, wide=wide, small=Annotated[small, U16], again=small, access=access, perhaps=Optional[level],
        levels=list[level], kind=Literal[1, 2], inner=Annotated[inner, InStruct],
    )  # fmt: skip
    record = cls(
        level(3), wide(1 << 40), small(2), small(1), access(6), level(1), [level(3), level(1)], 2, inner(level(3), 9)
    )
    return cls, record


def test_a_file_records_the_width_of_an_enum_of_flatbuffers(path: Path) -> None:
    """So its records are read without the class: they were refused by a load."""
    cls, record = integers()
    start(path, cls, record, form="FlatBuffers")
    stream = io.BytesIO()
    with zlmdb.open(path, readonly=True) as db:
        db.dump(stream)
    stream.seek(0)
    with zlmdb.open(None, zlmdb.Schema) as db:
        assert db.load(stream).records == 1
    text = refused(path, model(**{**cls.__annotations__, "level": Literal[1, 3]}), "FlatBuffers")
    assert "level is one of 1, 3 stored as int in the file and one of 1, 3 stored as long in the class" in text
    assert "access: flags 2, 4 stored as int" in text


def test_a_file_without_the_width_of_an_enum_is_used_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cls, record = integers()
    with monkeypatch.context() as patch:
        patch.setattr(fields._Reading, "values", lambda _, word, values, width: ["one of", *sorted(values)])
        start(path, cls, record, form="FlatBuffers")
    for _ in range(2):
        with zlmdb.open(path, schema(cls, "FlatBuffers")) as db:
            with db.write() as t:
                assert t.users[1] == record
                t.users[2] = record
            assert db.check().ok
    with zlmdb.open(None, zlmdb.Schema) as db:
        stream = io.BytesIO()
        with zlmdb.open(path, readonly=True) as source:
            source.dump(stream)
        stream.seek(0)
        assert db.load(stream).records == 2


def test_a_file_records_that_a_union_of_flatbuffers_takes_two_ids(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of before, where each field had the number of its position, is used on."""
    cls = model(first=Union[int, str], name=str, either=Optional[Union[str, bool]], last=(int, 7))
    record = cls("a", "b", True, 9)
    numbers = dict(first=Id(1), name=Id(2), either=Id(4), last=Id(5))
    marked = model(**{
        name: (marks[kind, numbers[name]], 7) if name == "last" else marks[kind, numbers[name]]
        for marks in [Annotated] for name, kind in cls.__annotations__.items()
    })  # fmt: skip
    for before in (True, False):
        with monkeypatch.context() as patch:
            if before:
                patch.setattr(fields, "takes_two", lambda kind: False)
            start(path / str(before), cls, record, form="FlatBuffers")
        stream = io.BytesIO()
        with zlmdb.open(path / str(before), readonly=True) as db:
            db.dump(stream)
        stream.seek(0)
        with zlmdb.open(None, zlmdb.Schema) as db:
            assert db.load(stream).records == 1
        for same in (cls, marked):
            with zlmdb.open(path / str(before), schema(same, "FlatBuffers")) as db, db.read() as t:
                assert vars(t.users[1]) == vars(record)


def test_a_field_of_a_model_inside_is_compared_as_well(path: Path) -> None:
    address = model("Address", street=str, town=(str, ""))
    person = model(name=str, addresses=list[address])  # type: ignore[valid-type]
    start(path, person, person("Ann", [address("Main", "Rome")]))
    changed = model("Address", street=str, city=(str, ""))
    text = refused(path, model(name=str, addresses=list[changed]))  # type: ignore[valid-type]
    assert "the class has addresses[].city, and lacks addresses[].town" in text


def test_the_name_of_a_class_means_nothing(path: Path) -> None:
    start(path, User, ANN)
    other = model("Person", name=str, mail=(str, ""), age=(int, 0))
    before = snapshot(path)
    with zlmdb.open(path, schema(other)) as db, db.read() as t:
        assert t.users[1] == other("Ann", "ann@x", 31)
    assert snapshot(path) == before


def test_a_named_tuple_is_compared_by_position(path: Path) -> None:
    def named(*fields: tuple[str, Any], defaults: tuple[Any, ...] = ()) -> Any:
        cls = NamedTuple("Point", fields)  # type: ignore[misc]
        cls.__new__.__defaults__ = defaults  # type: ignore[attr-defined]
        cls._field_defaults.update(zip([name for name, _ in fields][len(fields) - len(defaults) :], defaults))
        return cls

    point = named(("x", int), ("y", int))
    start(path, point, point(1, 2))
    assert "x is field 2 of the class and field 1 in the file" in refused(path, named(("y", int), ("x", int)))
    assert "more parts in the file" in refused(path, named(("x", int)), readonly=True)
    more = named(("x", int), ("y", int), ("z", int), defaults=(0,))
    with zlmdb.open(path, schema(more)) as db, db.read() as t:
        assert t.users[1] == (1, 2, 0)


@dataclass
class City:
    code: str
    name: str


@dataclass
class Place:
    short: Annotated[str, zlmdb.Was("code")]
    name: str


class ByCode(zlmdb.Table[str, City], name="cities", key="code"):
    """Cities by their codes."""


class ByName(zlmdb.Table[str, City], name="cities", key="name"):
    """Cities by their names."""


class ByShort(zlmdb.Table[str, Place], name="cities", key="short"):
    """Places by the codes, which have another name."""


class Unkeyed(zlmdb.Table[str, City], name="cities"):
    """Cities by anything."""


def of_cities(cls: Any) -> Any:
    """A schema of one table."""
    return type("Atlas", (zlmdb.Schema,), {"__annotations__": {"cities": cls}})


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_another_key_field_is_refused_in_words(path: Path, layout: Any) -> None:
    with zlmdb.open(path, of_cities(ByCode), layout=layout) as db, db.write() as t:
        t.cities.add(City("CDG", "Paris"))
    for readonly in (False, True):
        with pytest.raises(zlmdb.SchemaMismatch) as raised:
            zlmdb.open(path, of_cities(ByName), readonly=readonly)
        text = str(raised.value)
        assert "of the class ByName: the keys in the file are those of the field 'code'" in text
        assert "declare key='code', or store" in text
        assert "zlmdb.Migration(" in text
    for cls in (Unkeyed, ByCode):
        with zlmdb.open(path, of_cities(cls)) as db, db.read() as t:
            assert dict(t.cities) == {"CDG": City("CDG", "Paris")}


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_a_class_without_the_key_field_of_the_file_can_only_read(path: Path, layout: Any) -> None:
    """It could store a record under another key. A migration that stores the records again forgets the field."""
    with zlmdb.open(path, of_cities(ByCode), layout=layout) as db, db.write() as t:
        t.cities.add(City("CDG", "Paris"))
    with zlmdb.open(path, of_cities(Unkeyed)) as db:
        with pytest.raises(zlmdb.SchemaMismatch, match=r"names none.*: declare key='code', or store"), db.write() as t:
            t.cities["Paris"] = City("CDG", "Paris")
        with db.read() as t:
            assert list(t.cities) == ["CDG"]

    def step(t: Any, old: Any) -> None:
        for found in old.take("cities").values():
            t.cities[found["name"]] = City(**found)

    free: Any = of_cities(Unkeyed)
    free.migrations = [zlmdb.Migration(1, "keys by name", step)]
    with zlmdb.open(path, free) as db:
        db.migrate()
        with db.write() as t:
            t.cities["Rome"] = City("FCO", "Rome")
    with zlmdb.open(path, of_cities(Unkeyed)) as db, db.write() as t:
        t.cities["ORY"] = City("", "Orly")
        assert list(t.cities) == ["ORY", "Paris", "Rome"]


def test_a_key_field_may_get_another_name(path: Path) -> None:
    with zlmdb.open(path, of_cities(ByCode)) as db, db.write() as t:
        t.cities.add(City("CDG", "Paris"))
    with zlmdb.open(path, of_cities(ByShort)) as db, db.write() as t:
        t.cities.add(Place("ORY", "Paris"))
        assert list(t.cities) == ["CDG", "ORY"]
    with zlmdb.open(path, of_cities(ByShort)) as db, db.read() as t:
        assert len(t.cities) == 2


def test_a_file_without_the_key_field_gets_it_by_the_next_write(path: Path) -> None:
    """As those do from before it was recorded: a program that only reads changes nothing."""
    with zlmdb.open(path, of_cities(Unkeyed)) as db, db.write() as t:
        t.cities["CDG"] = City("CDG", "Paris")
    for cls in (ByCode, ByName):
        with zlmdb.open(path, of_cities(cls)) as db, db.read() as t:
            assert len(t.cities) == 1
    with zlmdb.open(path, of_cities(ByCode)) as db, db.write() as t:
        t.cities.add(City("FCO", "Rome"))
    with pytest.raises(zlmdb.SchemaMismatch, match="those of the field 'code'"):
        zlmdb.open(path, of_cities(ByName))


def test_fields_of_flatbuffers_are_compared_by_their_numbers(path: Path) -> None:
    start(path, User, ANN, form="FlatBuffers")
    swapped = model(name=str, age=(int, 0), mail=(str, ""))
    assert "age has the number 1 in the class and 2 in the file" in refused(path, swapped, "FlatBuffers")
    other = model(name=str, phone=(str, ""), age=(int, 0))
    assert "phone has the number 1, which is that of mail" in refused(path, other, "FlatBuffers")
    narrow = model(name=str, mail=(str, ""), age=(Annotated[int, U16], 0))
    assert "age is int in the file and int stored as ushort" in refused(path, narrow, "FlatBuffers")
    numbered = model(age=(Annotated[int, Id(2)], 0), name=(Annotated[str, Id(0)], ""), mail=(Annotated[str, Id(1)], ""))
    with zlmdb.open(path, schema(numbered, "FlatBuffers")) as db, db.read() as t:
        assert t.users[1] == numbered(31, "Ann", "ann@x")


def test_a_new_optional_field_of_flatbuffers_has_the_default_none_or_is_refused(path: Path) -> None:
    Short = model(name=str)
    start(path, Short, Short("Ann"), form="FlatBuffers")
    optional = model(name=str, age=(Optional[int], 7)), model(name=str, age=(Optional[int], field(default_factory=int)))
    for wrong in optional:
        assert "age has a default that is not None" in refused(path, wrong, "FlatBuffers")
    with zlmdb.open(path, schema(model(name=str, age=(int, 7)), "FlatBuffers")) as db, db.write() as t:
        assert t.users[1].age == 7
    for wrong in optional:  # nor may it become optional, while records lack it
        assert "age has a default that is not None" in refused(path, wrong, "FlatBuffers")
    with zlmdb.open(path, schema(model(name=str, age=(Optional[int], None)), "FlatBuffers")) as db, db.read() as t:
        assert t.users[1].age is None


def test_a_struct_of_flatbuffers_never_changes(path: Path) -> None:
    point, more = model("Point", x=float), model("Point", x=float, y=(float, 0.0))
    start(path, model(at=Annotated[point, InStruct]), form="FlatBuffers")
    assert "struct, which can never change" in refused(path, model(at=Annotated[more, InStruct]), "FlatBuffers")


@pytest.mark.parametrize("marked", [zlmdb.Was("post"), Id(1)])
@pytest.mark.parametrize("carried", [str, Optional[str], Annotated[int, U16]])
def test_an_index_is_not_built_again_when_a_carried_field_loses_its_former_name_or_number(
    path: Path, carried: Any, marked: Any
) -> None:
    value = 7 if carried == Annotated[int, U16] else "x"
    special: Any = Annotated
    before = model(post=(carried, value), age=(int, 0))
    renamed = model(mail=(special[carried, marked], value), age=(int, 0))
    later = model(mail=(carried, value), age=(int, 0))
    by_age = zlmdb.Index("age", carries="mail")
    if isinstance(marked, zlmdb.Was):
        start(path, before, before())
    with zlmdb.open(path, schema(renamed, by_age=by_age)) as running:
        with running.write() as t:
            t.users[1] = renamed()
        with zlmdb.open(path, schema(later, by_age=by_age)) as db, db.write() as t:
            t.users[2] = later()
        with running.write() as t:  # it is refused, if it has another definition of the index
            t.users[3] = renamed()
            assert t.users.by_age.fields(lambda user: user.mail).all() == [value] * 3


# -- who may write ----------------------------------------------------------------------------------------------------


def test_an_older_program_may_read_a_newer_file_and_not_write(path: Path) -> None:
    start(path, User, ANN)
    newer = model(name=str, mail=(str, ""), age=(int, 0), city=(str, ""))
    with zlmdb.open(path, schema(newer)) as db, db.write() as t:
        t.users[2] = newer("Bob", "bob@x", 35, "Oslo")
    before = snapshot(path)
    with zlmdb.open(path, schema(User)) as db:
        with db.read() as t:
            assert t.users[2] == User("Bob", "bob@x", 35)
        with db.write() as t:
            for write in writes():
                with pytest.raises(zlmdb.SchemaMismatch, match="the file is newer than this program"):
                    write(t.users)
    assert snapshot(path) == before


def writes() -> list[Callable[[Any], object]]:
    return [
        lambda users: users.__setitem__(1, ANN),
        lambda users: users.__delitem__(1),
        lambda users: users.add(ANN),
        lambda users: users.put_many([(1, ANN)]),
        lambda users: users.clear(),
        lambda users: users.select().delete(),
        lambda users: users.pop(1),
    ]


def test_plain_data_may_be_read_and_not_written_where_the_fields_are_recorded(path: Path) -> None:
    start(path, User, ANN)

    class Plain(zlmdb.Schema):
        users: zlmdb.Table[int, dict[str, Any]]

    with zlmdb.open(path, Plain) as db, db.write() as t:
        assert t.users[1] == {"name": "Ann", "mail": "ann@x", "age": 31}
        with pytest.raises(zlmdb.SchemaMismatch, match="declare the model class"):
            t.users[2] = {"name": "Bob"}
    with zlmdb.open(path, zlmdb.Schema) as db, db.write() as t:
        assert t["users"][1]["name"] == "Ann"
        with pytest.raises(zlmdb.SchemaMismatch, match="declare the model class"):
            t["users"][2] = {"name": "Bob"}


MANY = """
import sys, zlmdb
from dataclasses import dataclass
@dataclass
class User:
    name: str
    mail: str = ""
    age: int = 0
    city: str = "Rome"
class Users(zlmdb.Table[int, User]):
    pass
class Store(zlmdb.Schema):
    users: Users
with zlmdb.open(sys.argv[1], Store) as db, db.write() as t:
    t.users[2] = User("Bob", "bob@x", 35, "Oslo")
"""
INDEXED = MANY.replace("    pass", '    by_city = zlmdb.Index[str]("city")')


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.parametrize("program", [MANY, INDEXED], ids=["a field", "a field and an index"])
def test_a_live_writer_is_refused_once_a_newer_program_has_changed_the_shape(path: Path, program: str) -> None:
    kinds = (zlmdb.SchemaMismatch, zlmdb.IndexNotAttached)
    start(path, User, ANN)
    with zlmdb.open(path, schema(User)) as db:
        with db.write() as t:
            t.users[3] = ANN
        subprocess.run([sys.executable, "-c", program, str(path)], check=True)
        for _ in range(2):
            with db.write() as t:
                for write in writes():
                    with pytest.raises(kinds, match="the file is newer than this program"):
                        write(t.users)
            with db.read() as t:
                assert t.users[2] == User("Bob", "bob@x", 35)


def test_a_live_writer_in_this_process_is_refused_as_well(path: Path) -> None:
    start(path, User, ANN)
    newer = model(name=str, mail=(str, ""), age=(int, 0), city=(str, ""))
    with zlmdb.open(path, schema(User)) as db:
        with db.write() as t:
            t.users[3] = ANN
        with zlmdb.open(path, schema(newer)) as other, other.write() as t:
            t.users[2] = newer("Bob", "bob@x", 35, "Oslo")
        with db.write() as t, pytest.raises(zlmdb.SchemaMismatch, match="newer"):
            t.users[3] = ANN


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_live_reader_is_refused_where_it_would_read_wrongly(path: Path) -> None:
    """The shape that it cannot read comes here by a restored file: a live one would have been refused to change it."""
    start(path, User, ANN)
    other = path.with_name("other")
    renamed = model(name=str, email=(str, ""), age=(int, 0))
    start(other, renamed, renamed("Ann", "ann@x", 31))
    with zlmdb.open(path, schema(User), readonly=True) as db:
        with db.read() as t:
            assert t.users[1] == ANN
        program = f"import zlmdb; zlmdb.open({str(path)!r}, zlmdb.Schema).load(open({str(other)!r}, 'rb'))"
        stream = path.with_name("stream")
        with zlmdb.open(other, readonly=True) as source, stream.open("wb") as file:
            source.dump(file)
        program = f"""
import zlmdb
from zlmdb.store.catalogue import catalogue_of
with zlmdb.open({str(path)!r}, zlmdb.Schema) as db, zlmdb.open({str(other)!r}, readonly=True) as other:
    with other._open_store.reading() as txn:
        fields = catalogue_of(other._open_store).slot(txn, "users").fields
    with db.write() as t:
        slot = catalogue_of(db._open_store).slot(t.txn._engine_txn, "users")
        slot.fields = fields
        catalogue_of(db._open_store).write(t.txn._engine_txn, slot)
"""
        subprocess.run([sys.executable, "-c", program], check=True)
        for _ in range(2):
            with db.read() as t, pytest.raises(zlmdb.SchemaMismatch, match="the class has mail, and lacks email"):
                t.users[1]


@LAYOUTS
def test_raw_writes_are_refused_where_the_file_records_what_follows(path: Path, layout: Any) -> None:
    users, by_name = zlmdb.MapOidCbor(10), zlmdb.MapStringOid(11)
    users.attach_index("by_name", by_name, lambda user: user["name"])
    key = b"\x00\x0a" + bytes(7) + b"\x01"
    with zlmdb.open(path, zlmdb.Schema, layout=layout) as db:
        with db.begin(write=True) as txn:
            users[txn, 1] = {"name": "Ann"}
            if layout == "classic":  # which does not record it
                return
            for write in (lambda: txn.put(key, b"\xa0"), lambda: txn.delete(key)):
                with pytest.raises(zlmdb.IndexNotAttached, match="the indexes by_name"):
                    write()
            txn.put(b"\x00\x0c1", b"")
        with db.begin(write=True) as txn, pytest.raises(zlmdb.IndexNotAttached, match="slot 10"):
            txn.put(key, b"\xa0")


def test_raw_writes_to_a_typed_table_of_a_classic_file_are_refused(path: Path) -> None:
    start(path, User, ANN, layout="classic")
    with zlmdb.open(path, zlmdb.Schema, layout="classic") as db, db.begin(write=True) as txn:
        with pytest.raises(zlmdb.IndexNotAttached, match="the fields of its values"):
            txn.put(b"\x00\x01" + bytes(8), b"")
        txn.put(b"\x00\x05" + bytes(8), b"")


# -- files without the record -----------------------------------------------------------------------------------------


def forget_fields(path: Path) -> None:
    """Make the file one of 27.0.0, which recorded no fields."""
    program = f"""
import zlmdb
from zlmdb.store.catalogue import catalogue_of
with zlmdb.open({str(path)!r}, zlmdb.Schema) as db, db.write() as t:
    slot = catalogue_of(db._open_store).slot(t.txn._engine_txn, "users")
    slot.fields, slot.history = None, []
    catalogue_of(db._open_store).write(t.txn._engine_txn, slot)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@LAYOUTS
def test_a_file_of_27_0_0_gets_its_record_with_the_first_write(path: Path, layout: Any) -> None:
    start(path, User, ANN, layout=layout)
    forget_fields(path)
    before = snapshot(path)
    for options in ({"readonly": True}, {"create": False}, {}):
        with zlmdb.open(path, schema(User), **options) as db, db.read() as t:  # type: ignore[call-overload]
            assert t.users[1] == ANN
            assert db.tables()["users"].fields is None
    assert snapshot(path) == before
    with zlmdb.open(path, schema(User)) as db, db.write() as t:
        assert db.tables()["users"].fields == "{name: str, mail: str = '', age: int = 0}"
        t.users[2] = ANN
    assert "lacks age" in refused(path, model(name=str, mail=(str, "")))
    # whose records may have been stored by a class that had no age yet
    assert "age has no default any more" in refused(path, model(age=int, name=str, mail=(str, "")))


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@LAYOUTS
def test_a_program_that_only_reads_changes_nothing_and_refuses_no_older_writer(path: Path, layout: Any) -> None:
    start(path, User, ANN, layout=layout)
    Wider = model(name=str, mail=(str, ""), age=(int, 0), city=(str, "Rome"))
    before = snapshot(path)
    with zlmdb.open(path, schema(Wider)) as newer, newer.read() as t:
        assert t.users[1].city == "Rome"
    assert snapshot(path) == before
    with zlmdb.open(path, schema(Wider)) as newer:
        with newer.read() as t:
            assert t.users[1].city == "Rome"
        assert newer.tables()["users"].fields == "{name: str, mail: str = '', age: int = 0}"
        program = f"""
import zlmdb
from dataclasses import dataclass
@dataclass
class User:
    name: str
    mail: str = ""
    age: int = 0
class Store(zlmdb.Schema):
    users: zlmdb.Table[int, User]
with zlmdb.open({str(path)!r}, Store) as db, db.write() as t:
    t.users[2] = User("Bob")
"""
        run = [sys.executable, "-c", program]
        subprocess.run(run, check=True)  # an older program, beside the newer one that reads
        assert "city" not in str(newer.tables()["users"].fields)
        with pytest.raises(KeyError), newer.write() as t:
            raise KeyError
        assert newer.tables()["users"].fields == "{name: str, mail: str = '', age: int = 0, city: str = 'Rome'}"
        with newer.write() as t:
            assert (t.users[2].city, len(t.users)) == ("Rome", 2)
            t.users[3] = Wider("Cid", city="Bonn")
        failed = subprocess.run(run, check=False, capture_output=True, text=True)
        assert "the file is newer than this program" in failed.stderr
    with zlmdb.open(path, schema(Wider)) as db, db.read() as t:
        assert t.users[3].city == "Bonn"


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_what_was_changed_between_opening_and_the_first_write_is_compared_again(path: Path) -> None:
    start(path, User, ANN)
    Wider = model(name=str, mail=(str, ""), age=(int, 0), city=(str, "Rome"))
    with zlmdb.open(path, schema(Wider)) as newer:
        program = f"""
import zlmdb
from dataclasses import dataclass
@dataclass
class User:
    name: str
    mail: str = ""
    age: int = 0
    city: int = 1
class Store(zlmdb.Schema):
    users: zlmdb.Table[int, User]
with zlmdb.open({str(path)!r}, Store) as db, db.write() as t:
    t.users[2] = User("Bob")
"""
        subprocess.run([sys.executable, "-c", program], check=True)
        for _ in range(2):  # nothing is forgotten by having been refused once
            expected = pytest.raises(zlmdb.SchemaMismatch, match="city is int in the file and str in the class")
            with expected, newer.write():
                pass


@LAYOUTS
def test_what_one_database_has_to_record_is_not_recorded_by_another_one_of_the_process(path: Path, layout: Any) -> None:
    Wider = model(name=str, mail=(str, ""), age=(int, 0), city=(str, "Rome"))
    start(path, User, ANN, layout=layout)
    with zlmdb.open(path, schema(User)) as older:
        with zlmdb.open(path, schema(Wider)) as newer:
            with newer.read() as t:
                assert t.users[1].city == "Rome"
            older.auto.users[2] = User("Bob")
            with older.write() as t:
                t.users[3] = User("Cid")
        with older.write() as t:
            t.users[4] = User("Dan")
        assert "city" not in str(older.tables()["users"].fields)
        with zlmdb.open(path, schema(Wider)) as newer, newer.write() as t:
            t.users[5] = Wider("Eve")
        with pytest.raises(zlmdb.SchemaMismatch, match="the file is newer"), older.write() as t:
            t.users[6] = User("Fay")


def test_what_a_database_had_to_record_stops_no_other_one_when_it_does_not_fit_any_more(path: Path) -> None:
    Wider = model(name=str, mail=(str, ""), age=(int, 0), city=(str, "Rome"))
    Renamed = model(name=str, email=(Annotated[str, zlmdb.Was("mail")], ""), age=(int, 0), city=(str, "Rome"))
    start(path, User, ANN)
    with zlmdb.open(path, schema(Wider)) as between, zlmdb.open(path, schema(Renamed)) as newest:
        with newest.write() as t:
            t.users[2] = Renamed("Bob", "bob@x")
        for _ in range(2):
            with pytest.raises(zlmdb.SchemaMismatch, match="the file is newer|is the new name"), between.write():
                pass
        with newest.write() as t:
            assert t.users[2].email == "bob@x"


def test_an_index_that_another_database_has_dropped_is_not_built_again_to_record_a_shape(path: Path) -> None:
    Wider = model(name=str, mail=(str, ""), age=(int, 0), city=(str, "Rome"))
    with zlmdb.open(path, schema(User, by_age=zlmdb.Index[int]("age")), durability="none") as db, db.write() as t:
        t.users[1] = ANN
    between = zlmdb.open(path, schema(Wider, by_age=zlmdb.Index[int]("age")))
    with between, zlmdb.open(path, schema(Wider), drop_indexes=True) as newest:
        with newest.write() as t:
            t.users[2] = Wider("Bob")
        with between.write():
            pass
        assert newest.tables()["users"].indexes == ()
        with newest.write() as t:
            t.users[3] = Wider("Cid")


def test_a_copy_of_a_file_has_the_record(path: Path, tmp_path: Path) -> None:
    start(path, User, ANN)
    with zlmdb.open(path, schema(User)) as db:
        with (tmp_path / "stream").open("wb") as file:
            db.dump(file)
        shown = db.tables()["users"].fields
    zlmdb.Database.salvage(path, tmp_path / "salvaged")
    with zlmdb.open(tmp_path / "loaded", zlmdb.Schema) as db, (tmp_path / "stream").open("rb") as file:
        db.load(file)
    for name in ("loaded", "salvaged"):
        with zlmdb.open(tmp_path / name, readonly=True) as db:
            assert db.tables()["users"].fields == shown, name
        assert "lacks age" in refused(tmp_path / name, model(name=str, mail=(str, "")))


def test_a_damaged_record_of_fields_is_an_error_and_no_crash(path: Path) -> None:
    from zlmdb.values.description import checked_description

    good = {"type": ["model", 0], "models": [{"kind": "map", "fields": [{"name": "a", "type": "str"}]}]}
    assert checked_description(good) == good
    deep: Any = "str"
    for _ in range(1000):
        deep = ["list", deep]
    for bad in (
        None, 1, {}, {"models": 1}, {"type": ["model", 1], "models": []}, {**good, "type": []}, {**good, "type": deep},
        {**good, "type": ["model", -1]}, {**good, "type": ["stored as", "int"]}, {"type": "str", "models": [1]},
        {"type": "str", "models": [{"kind": "map", "fields": [{"name": 1}]}]},
        {"type": "str", "models": [{"kind": "odd", "fields": []}]},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="fields|field"):
            checked_description(bad)


@pytest.mark.parametrize("link", [{"to": b"users"}, {"tn": "users"}, {}, None, "users", ["to"]])
def test_a_damaged_definition_of_a_link_is_an_error_when_the_catalogue_is_read(link: Any) -> None:
    from zlmdb.store.slotrecords import slot_of

    definition = {"slot": 1, "fields": ["owner"], "link": {"to": "users", "on_delete": "restrict"}}
    assert slot_of("posts", {"indexes": {"by_owner": definition}}).indexes == {"by_owner": definition}
    with pytest.raises(zlmdb.DecodeError, match="record of table 'posts' is damaged"):
        slot_of("posts", {"indexes": {"by_owner": {**definition, "link": link}}})


@pytest.mark.once  # five processes, which take a while to start on PyPy
def test_commands_show_the_fields_and_drop_an_index(path: Path) -> None:
    subprocess.run([sys.executable, "-c", INDEXED, str(path)], check=True)
    command = [sys.executable, "-m", "zlmdb"]
    shown = subprocess.run([*command, "tables", str(path), "--json"], check=True, capture_output=True, text=True).stdout
    assert "city: str = 'Rome'" in shown
    shown = subprocess.run([*command, "tables", str(path)], check=True, capture_output=True, text=True).stdout
    assert "city: str = 'Rome'" in shown
    dropped = [*command, "drop-index", str(path), "users", "by_city"]
    assert subprocess.run(dropped, check=True, capture_output=True, text=True).stdout == "users.by_city dropped\n"
    assert subprocess.run(dropped, check=False, capture_output=True, text=True).returncode != 0


# -- fields that say what they were -----------------------------------------------------------------------------------

Renamed = model(name=str, email=(Annotated[str, zlmdb.Was("mail")], ""), age=(int, 0))
BOB = Renamed("Bob", "bob@x", 35)
INDEXES: dict[str, Any] = {"by_age": zlmdb.Index[int]("age")}


@SHAPES
def test_a_renamed_field_that_says_so_is_rewritten_by_the_first_program_that_may(
    path: Path, layout: Any, form: str
) -> None:
    start(path, User, *[User(f"user {n}", f"{n}@x", n) for n in range(2500)], form=form, layout=layout)
    before = snapshot(path)
    with zlmdb.open(path, schema(Renamed, form), readonly=True) as db, db.read() as t:
        assert t.users[3] == Renamed("user 2", "2@x", 2)
        assert [user.email for user in t.users.values()] == [f"{n}@x" for n in range(2500)]
        assert t.users.select(limit=1).first()[1].email == "0@x"  # type: ignore[index]
    assert snapshot(path) == before, "a program that reads changes nothing"
    with zlmdb.open(path, schema(Renamed, form)) as db:
        with db.write() as t:
            assert [user.email for user in t.users.values()] == [f"{n}@x" for n in range(2500)]
            t.users[1] = BOB
        assert db.check().ok
        assert db.tables()["users"].fields == "{name: str, email: str = '', age: int = 0}"
    assert "newer than this program" in refused(path, User, form)
    plainly = model(name=str, email=(str, ""), age=(int, 0))
    before = snapshot(path)
    with zlmdb.open(path, schema(plainly, form)) as db, db.read() as t:  # which has forgotten the old name
        assert t.users[2] == plainly("user 1", "1@x", 1)
        assert t.users[1] == plainly("Bob", "bob@x", 35)
    with zlmdb.open(path, schema(Renamed, form)):
        pass
    assert snapshot(path) == before, "nothing is left to do"


@pytest.mark.parametrize("wrap", ["Zlib", "Checked", "Compressed"])
def test_a_renamed_field_is_rewritten_through_wrappers(path: Path, wrap: str) -> None:
    def wrapped(value: Any) -> Any:
        table: Any = zlmdb.Table
        cls = types.new_class("Users", (table[int, getattr(zlmdb, wrap)[zlmdb.Cbor[value]]],))
        return type("Store", (zlmdb.Schema,), {"__annotations__": {"users": cls}})

    with zlmdb.open(path, wrapped(User)) as db, db.write() as t:
        t.users[1] = ANN
    for options in ({"readonly": True}, {}):
        with zlmdb.open(path, wrapped(Renamed), **options) as db, db.read() as t:  # type: ignore[call-overload]
            assert t.users[1] == Renamed("Ann", "ann@x", 31)


@LAYOUTS
def test_indexes_of_a_renamed_field_stay(path: Path, layout: Any) -> None:
    before = schema(User, by_mail=zlmdb.UniqueIndex[str]("mail"), by_both=zlmdb.Index[tuple[int, str]]("age", "mail"))
    after = schema(
        Renamed, by_mail=zlmdb.UniqueIndex[str]("email"), by_both=zlmdb.Index[tuple[int, str]]("age", "email")
    )
    with zlmdb.open(path, before, layout=layout) as db, db.write() as t:
        t.users.update({1: ANN, 2: User("Bob", "bob@x", 31)})
    for options in ({"readonly": True}, {}):
        with zlmdb.open(path, after, **options) as db, db.read() as t:  # type: ignore[call-overload]
            assert t.users.by_mail["bob@x"] == Renamed("Bob", "bob@x", 31)
            assert list(t.users.by_both[31, "ann@x"].keys()) == [1]
            assert db.check().ok
    with zlmdb.open(path, after) as db, db.write() as t, pytest.raises(zlmdb.DuplicateKey):
        t.users[3] = BOB


@dataclass
class Old:
    town: str
    inner: Optional[Old] = None


@dataclass
class New:
    city: Annotated[str, zlmdb.Was("town")]
    inner: Optional[New] = None


@dataclass
class Guest:
    name: str
    host: Optional[int] = None
    until: Optional[float] = None


@dataclass
class Visitor:
    title: Annotated[str, zlmdb.Was("name")]
    friend: Annotated[Optional[int], zlmdb.Was("host")] = None
    gone: Annotated[Optional[float], zlmdb.Was("until")] = None


class Guests(zlmdb.Table[int, Guest], name="guests", expires="until"):
    by_host = zlmdb.ForeignKey["Guests"]("host", on_delete="set_none")
    by_until = zlmdb.Index("until", "name")
    by_text = zlmdb.Index("name.casefold()")


class Visitors(zlmdb.Table[int, Visitor], name="guests", expires="gone"):
    by_host = zlmdb.ForeignKey["Visitors"]("friend", on_delete="set_none")
    by_until = zlmdb.Index("gone", "title")
    by_text = zlmdb.Index("title.casefold()")


class Before(zlmdb.Schema):
    guests: Guests


class After(zlmdb.Schema):
    guests: Visitors


def test_indexes_links_and_expiry_take_a_renamed_field_that_may_be_none_as_they_took_it_before(path: Path) -> None:
    with zlmdb.open(path, Before, durability="none") as db, db.write() as t:
        t.guests.update({1: Guest("Ann"), 2: Guest("Bob", 1, 5e12), 3: Guest("Cid", 1, 5.0)})
    with zlmdb.open(path, After) as new:
        with new.write() as u:
            assert u.guests.by_text["bob"].values().all() == [Visitor("Bob", 1, 5e12)]
            assert (u.guests.by_host[1].keys().all(), u.guests.by_until[5e12, "Bob"].count()) == ([2], 1)
            del u.guests[1]
            assert dict(u.guests) == {2: Visitor("Bob", None, 5e12)}
        assert new.check().ok


def test_fields_inside_of_models_are_renamed_wherever_they_are(path: Path) -> None:
    def holder(cls: Any) -> Any:
        return model(
            one=cls,
            many=(list[cls], field(default_factory=list)),
            named=(dict[str, cls], field(default_factory=dict)),
            perhaps=(Optional[tuple[int, cls]], None),
            plain=(dict[str, str], field(default_factory=dict)),
        )

    before, after = holder(Old), holder(New)
    deep = Old("a", Old("b", Old("c")))
    start(path, before, before(deep, [deep], {"town": Old("d")}, (1, Old("e")), {"town": "f"}))
    new = New("a", New("b", New("c")))
    for options in ({"readonly": True}, {}, {}):
        with zlmdb.open(path, schema(after), **options) as db, db.read() as t:  # type: ignore[call-overload]
            assert t.users[1] == after(new, [new], {"town": New("d")}, (1, New("e")), {"town": "f"})


def test_a_field_renamed_twice_says_both_names(path: Path) -> None:
    twice = model(name=str, address=(Annotated[str, zlmdb.Was("mail"), zlmdb.Was("email")], ""), age=(int, 0))
    for first in (User, model(name=str, email=(str, ""), age=(int, 0))):
        place = path.with_name(f"db{first.__dataclass_fields__.keys()}")
        start(place, first, first("Ann", "ann@x", 31))
        with zlmdb.open(place, schema(twice)) as db, db.read() as t:
            assert t.users[1] == twice("Ann", "ann@x", 31)


def test_a_rename_may_come_with_new_fields_and_not_with_another_type(path: Path) -> None:
    start(path, User, ANN)
    assert "email is str in the file and int in the class" in refused(
        path, model(name=str, email=(Annotated[int, zlmdb.Was("mail")], 0), age=(int, 0))
    )
    more = model(name=str, email=(Annotated[str, zlmdb.Was("mail")], ""), age=(int, 0), city=(str, "Rome"))
    with zlmdb.open(path, schema(more)) as db, db.read() as t:
        assert t.users[1] == more("Ann", "ann@x", 31, "Rome")


def test_a_record_that_cannot_be_read_stops_the_rewriting_and_nothing_has_changed(path: Path) -> None:
    start(path, User, ANN, ANN)
    with zlmdb.open(path, schema(User)) as db, db.write() as t:
        storage = t.users._storage
        t.txn._engine_txn.put(storage.encode_key(2), b"\xc1", db=t.txn._handle(storage.space)[0])
    before = snapshot(path)
    with pytest.raises(zlmdb.DecodeError, match="users.*key 2"):
        zlmdb.open(path, schema(Renamed))
    assert snapshot(path) == before
    with zlmdb.open(path, schema(User)) as db, db.read() as t:
        assert t.users[1] == ANN


LIVE = """
import sys, zlmdb
from dataclasses import dataclass
from typing import Annotated
@dataclass
class User:
    name: str
    email: Annotated[str, zlmdb.Was("mail")] = ""
    age: int = 0
class Users(zlmdb.Table[int, User]):
    pass
class Store(zlmdb.Schema):
    users: Users
with zlmdb.open(sys.argv[1], Store) as db, db.write() as t:
    t.users[2] = User("Bob", "bob@x", 35)
"""


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_live_programs_with_the_old_name_are_refused_and_readers_with_the_new_one_go_on(path: Path) -> None:
    start(path, User, ANN)
    with zlmdb.open(path, schema(User)) as old:
        with old.write() as t:
            t.users[3] = ANN
        with old.read() as earlier:
            subprocess.run([sys.executable, "-c", LIVE, str(path)], check=True)
            assert earlier.users[1] == ANN, "a snapshot stays as it was"
        with old.read() as t, pytest.raises(zlmdb.SchemaMismatch, match="newer"):
            t.users[1]
        with old.write() as t, pytest.raises(zlmdb.SchemaMismatch, match="newer"):
            t.users[1] = ANN
    assert path.exists()


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_live_reader_with_the_new_name_reads_before_and_after_the_rewriting(path: Path) -> None:
    start(path, User, ANN)
    with zlmdb.open(path, schema(Renamed), readonly=True) as db:
        with db.read() as t:
            assert t.users[1] == Renamed("Ann", "ann@x", 31)
        subprocess.run([sys.executable, "-c", LIVE, str(path)], check=True)
        with db.read() as t:
            assert t.users[1] == Renamed("Ann", "ann@x", 31)
            assert t.users[2] == BOB


@pytest.mark.parametrize("form", ["Msgpack", "FlatBuffers", "Pickle"])
def test_another_default_of_a_field_that_records_lack_builds_its_indexes_again(path: Path, form: str) -> None:
    def declared(default: str) -> Any:
        return schema(
            model(name=str, city=(str, default)), form,
            by_city=zlmdb.Index[str]("city"), by_name=zlmdb.Index[str]("name", where=lambda u: u.city == "Rome"),
            by_length=zlmdb.Index[int](lambda u: len(u.city), version=1),
        )  # fmt: skip

    def found(t: Any, city: str) -> list[Any]:
        asked = t.users.where(lambda u: u.city == city).keys().all()
        assert asked == [key for key, user in t.users.items() if user.city == city]
        return [asked, t.users.by_city[city].count(), t.users.by_length[len(city)].count()]

    user = model(name=str)
    start(path, user, *[user(f"u{n}") for n in range(20)], form=form)
    with zlmdb.open(path, declared("Oslo")) as before:
        with before.write() as t:
            t.users[7] = type(t.users[7])("seven", "Rome")
        with before.read() as t:
            assert found(t, "Rome") == [[7], 1, 20]
        with zlmdb.open(path, declared("Bergen"), create=False) as reader, reader.read() as t:
            assert t.users.where(lambda u: u.city == "Bergen").count() == 19
            assert t.users.where(lambda u: u.city == "Oslo").count() == 0
        with zlmdb.open(path, declared("Bergen")) as after:
            with after.read() as t:
                assert found(t, "Rome") == [[7], 1, 1]
                assert found(t, "Bergen")[1:] == [19, 19]
                assert found(t, "Oslo") == [[], 0, 1]
            with before.read() as t:
                assert t.users.where(lambda u: u.city == "Oslo").count() == 19
            with pytest.raises(zlmdb.SchemaMismatch, match="another shape"), before.write() as t:
                del t.users[1]
            with after.write() as t:
                del t.users[1]
                t.users[7] = type(t.users[2])("seven")
            assert after.check().ok
    with zlmdb.open(path, declared("Rome")) as again:
        with again.read() as t:
            assert (t.users.by_city["Rome"].count(), t.users.by_name.select().count()) == (18, 18)
        assert again.check().ok


@pytest.mark.parametrize("many", [False, True])
def test_an_index_of_a_default_that_is_another_one_each_time_is_refused_while_records_lack_the_field(
    path: Path, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, wider = model(name=str), model(name=str, token=(UUID, field(default_factory=uuid4)))
    by_token: Any = zlmdb.Index[UUID]("token")
    start(path, user, *[user(f"u{n}") for n in range(6)])
    if many:
        monkeypatch.setattr(indexbuilding, "BATCH", 3)
    with pytest.raises(zlmdb.SchemaMismatch, match="another one each time.*store the records again"):
        zlmdb.open(path, schema(wider, by_token=by_token))
    with zlmdb.open(path, schema(wider)) as db, db.write() as t:
        for key, value in t.users.items():
            t.users[key] = value
    with zlmdb.open(path, schema(wider, by_token=by_token)) as db:
        with db.write() as t:
            del t.users[1]
            assert t.users.by_token[t.users[2].token].keys().all() == [2]
        assert db.check().ok


def test_structs_store_what_equals_their_default_as_it_may_change(path: Path) -> None:
    msgspec = pytest.importorskip("msgspec")
    old, new = (msgspec.defstruct("User", [("age", int, default)], omit_defaults=True) for default in (5, 6))
    for form in ("Msgpack", "Json", "Cbor"):
        place = path.with_name(form)
        start(place, old, old(), old(7), form=form)
        with zlmdb.open(place, schema(new, form)) as db, db.read() as t:
            assert [user.age for user in t.users.values()] == [5, 7]


@pytest.mark.parametrize(
    ("kind", "described"),
    [
        ("map", {"name": "a", "type": ["frozen", "int"]}),
        ("map", {"name": "a", "type": ["stored as", "int", "u128"]}),
        ("map", {"name": "a", "type": ["list"]}),
        ("list", {"name": "not a name", "type": "int"}),
        ("ids", {"name": "a", "type": "int", "id": "first"}),
    ],
)
@pytest.mark.parametrize("codec", ["json", "cbor"])
def test_fields_that_a_newer_version_describes_are_not_made_but_left_to_plain_data(
    codec: str, kind: str, described: dict[str, Any]
) -> None:
    found = checked_description({"type": ["model", 0], "models": [{"kind": kind, "fields": [described]}]})
    assert recorded(codec, found) is None
