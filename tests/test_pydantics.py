"""Pydantic models as values: stored by their fields, made and validated by Pydantic when they are read."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Optional, Union
from uuid import UUID

import pytest

import zlmdb
from zlmdb import values
from zlmdb.values import serializer

pydantic = pytest.importorskip("pydantic", reason="not installed on PyPy")
BaseModel, Field = pydantic.BaseModel, pydantic.Field
FORMATS: dict[str, Any] = {
    "msgpack": values.Msgpack, "cbor": values.Cbor, "json": values.Json, "flatbuffers": values.FlatBuffers,
    "pickle": values.Pickle,
}  # fmt: skip


class Address(BaseModel):  # type: ignore[misc, valid-type]  # known when the test runs
    city: str
    zip: Optional[int] = None


class User(BaseModel):  # type: ignore[misc, valid-type]
    id: UUID
    name: Annotated[str, Field(min_length=1, alias="fullName")]
    born: date
    address: Address
    tags: set[str] = Field(default_factory=set)
    price: Decimal = Decimal("1.50")
    seen: list[Address] = Field(default_factory=list)

    @pydantic.field_validator("name")
    @classmethod
    def no_digits(cls, value: str) -> str:
        if any(map(str.isdigit, value)):
            raise ValueError("a name has no digits")
        return value


ANN = User(
    id=UUID(int=1), fullName="Ann", born=date(2001, 2, 3), address=Address(city="Rome"), tags={"b", "a"},
    seen=[Address(city="Bonn", zip=53111)],
)  # fmt: skip


@pytest.fixture(params=list(FORMATS))
def codec(request: pytest.FixtureRequest) -> Any:
    return serializer(FORMATS[request.param][User])


def test_a_model_comes_back(codec: Any) -> None:
    found = codec.decode(memoryview(codec.encode(ANN)))
    assert (found, type(found), type(found.address)) == (ANN, User, Address)


def test_what_does_not_fit_is_refused(codec: Any) -> None:
    for wrong in ({"born": "soon"}, {"address": {"city": "Rome"}}, {"tags": ["a"]}, {"seen": [1]}):
        with pytest.raises(zlmdb.EncodeError):
            codec.encode(ANN.model_copy(update=wrong))
    with pytest.raises(zlmdb.EncodeError):
        codec.encode({"name": "Ann"})


@pytest.mark.parametrize("form", list(FORMATS))
def test_pydantic_validates_what_is_written_and_read(form: str) -> None:
    codec = serializer(FORMATS[form][User])
    for name in ("", "Ann 2"):
        changed = ANN.model_copy(update={"name": name})
        with pytest.raises(zlmdb.EncodeError):
            codec.encode(changed)
        data = codec.unchecked().encode(changed)
        with pytest.raises(zlmdb.DecodeError):
            codec.decode(data)


class Counted(BaseModel):  # type: ignore[misc, valid-type]
    number: Annotated[int, pydantic.AfterValidator(lambda number: number + 1)]


class Small(BaseModel):  # type: ignore[misc, valid-type]
    text: Annotated[str, pydantic.AfterValidator(str.lower)]


@pytest.mark.parametrize("form", list(FORMATS))
def test_a_validator_that_changes_its_own_results_is_refused(form: str) -> None:
    with pytest.raises(zlmdb.EncodeError, match=r"Counted\.number: 3 would be read as 4, and so on\. Validators"):
        serializer(FORMATS[form][Counted]).encode(Counted(number=1))
    codec = serializer(FORMATS[form][Small])
    for ann in (Small(text="Ann"), Small.model_construct(text="Ann")):
        assert codec.decode(codec.encode(ann)) == Small(text="ann")


def test_extra_values_are_refused_and_not_lost() -> None:
    class Open(BaseModel):  # type: ignore[misc, valid-type]
        model_config = pydantic.ConfigDict(extra="allow")
        id: int

    codec = serializer(Open)
    assert codec.decode(codec.encode(Open(id=1))) == Open(id=1)
    with pytest.raises(zlmdb.EncodeError, match="no field 'more'"):
        codec.encode(Open(id=1, more=2))


def test_a_root_model_and_a_generic_one_come_back() -> None:
    Names = pydantic.RootModel[list[str]]
    assert serializer(Names).decode(serializer(Names).encode(Names(["a"]))) == Names(["a"])
    Item = pydantic.create_model("Item", value=(Union[int, None], None))
    assert serializer(Item).decode(serializer(Item).encode(Item(value=3))) == Item(value=3)


def test_a_model_inside_of_a_dataclass_and_in_a_union_comes_back() -> None:
    from dataclasses import dataclass

    @dataclass
    class Holder:
        user: User
        other: Union[Address, int, None] = None

    for form in ("msgpack", "cbor", "json"):
        codec = serializer(FORMATS[form][Holder])
        for other in (Address(city="X"), 3, None):
            assert codec.decode(codec.encode(Holder(ANN, other))) == Holder(ANN, other)


@pytest.mark.parametrize("form", ["Msgpack", "Cbor", "Json"])
def test_a_struct_inside_of_a_model_comes_back(form: str) -> None:
    msgspec = pytest.importorskip("msgspec")

    class Place(msgspec.Struct, rename="camel", kw_only=True):  # type: ignore[misc,name-defined]
        city_name: str
        code: int = 3

    class Trip(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
        to: Place
        over: list[Optional[Place]]

    trip = Trip(to=Place(city_name="Oslo"), over=[None, Place(city_name="Rome", code=4)])
    codec = serializer(getattr(zlmdb, form)[Trip])
    assert codec.decode(codec.encode(trip)) == trip


def test_a_table_of_models_has_indexes_filters_and_recorded_fields(tmp_path: Path) -> None:
    class Users(zlmdb.Table[UUID, User]):
        by_name = zlmdb.UniqueIndex[str]("name")

    class Store(zlmdb.Schema):
        users: Users
        flat: zlmdb.Table[int, zlmdb.FlatBuffers[User]]

    with zlmdb.open(tmp_path / "db", Store) as db:
        with db.write() as t:
            t.users[ANN.id] = ANN
            t.flat[1] = ANN
            with t.users.edit(ANN.id) as user:
                user.tags.add("c")
        with db.read() as t:
            assert t.users.by_name["Ann"].tags == {"a", "b", "c"}
            assert t.flat[1] == ANN
        assert "tags: set[str] = []" in str(db.tables()["users"].fields)

    class Later(BaseModel):  # type: ignore[misc, valid-type]
        id: UUID

    class Other(zlmdb.Schema):
        users: zlmdb.Table[UUID, Later]

    with pytest.raises(zlmdb.SchemaMismatch, match="lacks name, born"):
        zlmdb.open(tmp_path / "db", Other)


class Note(BaseModel):  # type: ignore[misc, valid-type]
    """One class at a time has this name, as in the versions of a program: pickles find it by the name."""

    text: str
    size: int = 1


@pytest.mark.parametrize("form", list(FORMATS))
def test_a_renamed_and_a_new_field_are_read_in_every_format(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    def store(cls: Any) -> Any:
        generic: Any = zlmdb.Table
        of = FORMATS[form][dict[str, cls]] if form != "flatbuffers" else FORMATS[form][cls]
        return type("Store", (zlmdb.Schema,), {"__annotations__": {"notes": generic[int, of]}})

    def held(note: Any) -> Any:
        return note if form == "flatbuffers" else {"a": note}

    with zlmdb.open(tmp_path / "db", store(Note)) as db, db.write() as t:
        t.notes[1] = held(Note(text="x"))
    fields: Any = {"body": (Annotated[str, zlmdb.Was("text")], ...), "size": (int, 1), "tags": (list[str], ["new"])}
    newer = pydantic.create_model("Note", __module__=__name__, **fields)
    monkeypatch.setattr(f"{__name__}.Note", newer)
    with zlmdb.open(tmp_path / "db", store(newer)) as db:
        for _ in range(2):
            with db.write() as t:
                found = t.notes[1] if form == "flatbuffers" else t.notes[1]["a"]
                assert found == newer(body="x", size=1, tags=["new"])
                assert found.model_dump() == {"body": "x", "size": 1, "tags": ["new"]}
                t.notes[1] = held(found)


@pytest.mark.parametrize("form", ["msgpack", "pickle"])
def test_explain_says_that_records_are_made_and_validated(form: str) -> None:
    generic: Any = zlmdb.Table
    store: Any = type("Store", (zlmdb.Schema,), {"__annotations__": {"notes": generic[int, FORMATS[form][Note]]}})
    with zlmdb.open(None, store) as db, db.read() as t:
        plan = t.notes.where(lambda note: note.size > 1).explain()
        assert plan.called == ("Pydantic, which makes and validates each record of notes that is read",)


class Later(Note):
    def model_post_init(self, context: Any, /) -> None:
        object.__setattr__(self, "_made", 1)


def test_an_unknown_field_is_refused_when_the_query_is_made() -> None:
    class Store(zlmdb.Schema):
        notes: zlmdb.Table[int, Note]
        later: zlmdb.Table[int, Later]

    with zlmdb.open(None, Store) as db, db.write() as t:
        t.notes[1], t.later[1] = Note(text="a", size=2), Later(text="a", size=2)
        untyped: Any = t.notes
        with pytest.raises(TypeError, match="note.sise: .*Note has no field 'sise', it has"):
            untyped.where(lambda note: note.sise > 1)
        # What a model has besides fields, or may get when it is made, is asked of each record.
        assert untyped.where(lambda note: note.model_extra is None).count() == 1
        assert t.later.where(lambda note: note._made == 1).count() == 1


def test_a_model_of_an_older_release_is_told_which_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Releases before 2.10 told of their fields elsewhere: AttributeError; one of Pydantic 1 was no model at all."""
    old = type("Old", (), {"__fields__": {}, "parse_obj": None})
    with pytest.raises(TypeError, match=r"Old is a model of Pydantic 1, and .* of Pydantic 2\.10 and newer"):
        serializer(zlmdb.Json[old])
    older = type("Older", (), {"__pydantic_validator__": None, "model_validate": None})
    monkeypatch.setattr(pydantic, "VERSION", "2.9.2")
    with pytest.raises(TypeError, match=r"Older is a model of Pydantic 2\.9, and .* of Pydantic 2\.10 and newer"):
        serializer(zlmdb.Json[older])
