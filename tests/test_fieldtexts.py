"""Indexes of a path into nested models, and of texts by named transforms."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Annotated, Any, Optional, TypedDict

import pytest

import zlmdb
from zlmdb.query.texttransforms import NAMES, transform
from zlmdb.tables.indexkinds.fieldtexts import FieldText, field_text


@pytest.mark.parametrize(
    ("spelled", "path", "texts"),
    [
        ("title", "title", ()),
        ("address.city", "address.city", ()),
        ("title.casefold()", "title", ("casefold()",)),
        ("address.city.strip().lower()", "address.city", ("strip()", "lower()")),
        ("normalize('NFKC', title)", "title", ("normalize('NFKC')",)),
        ('normalize( "NFC" , a.b ).casefold()', "a.b", ("normalize('NFC')", "casefold()")),
        ("normalize('NFC', title.upper())", "title", ("upper()", "normalize('NFC')")),
        ("size (in cm", "size (in cm", ()),
    ],
)
def test_a_field_is_spelled_as_in_a_query(spelled: str, path: str, texts: tuple[str, ...]) -> None:
    assert field_text(spelled) == FieldText(path, texts)


@pytest.mark.parametrize(
    "spelled",
    ["title.title()", "len(title)", "title.strip('x')", "normalize('ABC', title)", "normalize(form, title)",
     "normalize(title)", "title[0].lower()", "(title, year)", "title.lower().count", "normalize('NFC', form=title)"],
)  # fmt: skip
def test_other_functions_are_refused(spelled: str) -> None:
    with pytest.raises(TypeError, match="expected a field, or one of these"):
        zlmdb.Index[str](spelled)


@pytest.mark.parametrize("name", NAMES)
def test_a_transform_is_the_function_of_its_name(name: str) -> None:
    text = " \u00c9\u0301\ufb01Ab\u1e9e "
    normal = name.startswith("normalize")
    expected = unicodedata.normalize(name[11:-2], text) if normal else getattr(text, name[:-2])()
    assert transform(name)(text) == expected


def test_a_transform_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="named 'swapcase"):
        transform("swapcase()")


@dataclass
class City:
    name: str
    people: int = 0


@dataclass
class Address:
    city: City
    street: Optional[str] = None


@dataclass
class Person:
    name: str
    email: str
    home: Optional[Address] = None


class People(zlmdb.Table[int, Person]):
    by_email = zlmdb.UniqueIndex[str]("email.casefold()")
    by_city = zlmdb.Index("home.city.name.casefold()", "home.city.people")
    by_street = zlmdb.Index("home.street")


class World(zlmdb.Schema):
    people: People


def test_the_key_type_is_that_of_the_field_at_the_path() -> None:
    assert People.by_city._declared_key(Person).name == "tuple(str,int)"
    assert People.by_street._declared_key(Person).name == "str"


def test_a_unique_text_ignores_case() -> None:
    with zlmdb.open(None, World) as db, db.write() as t:
        t.people[1] = Person("Ann", "Ann@X.org", Address(City("Oslo", 7), "Main"))
        with pytest.raises(zlmdb.DuplicateKey):
            t.people[2] = Person("Bob", "ann@x.ORG")
        assert t.people.by_email["ann@x.org"].name == "Ann"
        assert t.people.by_email.get("Ann@X.org") is None
        assert list(t.people.by_city["oslo", 7].keys()) == [1]
        t.people[2] = Person("Bob", "bob@x.org", Address(City("Oslo", 8)))
        assert list(t.people.by_city.select(prefix=("oslo",)).keys()) == [1, 2]
        assert list(t.people.by_street.select().keys()) == [1]


def test_no_record_is_decoded_again_where_fields_come_back() -> None:
    """The generated functions take the texts from the object that is given."""
    assert not any(form.as_stored for form in _forms(People))


def _forms(table: Any) -> list[Any]:
    from zlmdb.schema.declaration import declaration

    return list(declaration(table, "table").indexes.values())


@dataclass
class Holder:
    inner: Inner


@dataclass
class Inner:
    size: float
    name: str

    def __post_init__(self) -> None:
        self.name = self.name.lower()


class Holders(zlmdb.Table[int, Holder]):
    by_name = zlmdb.Index[str]("inner.name")


def test_a_nested_class_that_changes_its_fields_is_read_first() -> None:
    (form,) = _forms(Holders)
    assert form.as_stored


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (lambda: zlmdb.Index("home.town"), "Address has no field 'town'"),
        (lambda: zlmdb.Index[str]("home.city.nam"), "City has no field 'nam'"),
        (lambda: zlmdb.Index("home.city.people.casefold()"), "is int, and no text"),
        (lambda: zlmdb.Index[int]("home.city.name"), "is str, and the index is declared with the key type int"),
        (lambda: zlmdb.Index("home.city"), "not a key type"),
    ],
)
def test_a_path_to_nothing_is_refused_when_the_table_is_declared(index: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        opened(index)


def opened(index: Any) -> None:
    class Table(zlmdb.Table[int, Person]):
        by = index()

    class Schema(zlmdb.Schema):
        table: Table

    zlmdb.open(None, Schema).close()


class Place(TypedDict):
    city: str


class Doc(TypedDict):
    place: Place
    size: Annotated[int, "cm"]


class Docs(zlmdb.Table[int, Doc]):
    by_city = zlmdb.Index[str]("place.city.upper()")


class Anything(zlmdb.Table[int, zlmdb.Json[Any]]):
    by_name = zlmdb.Index[str]("a.name.lower()")


class Documents(zlmdb.Schema):
    docs: Docs
    anything: Anything


def test_plain_data_have_paths_too() -> None:
    with zlmdb.open(None, Documents) as db, db.write() as t:
        t.docs[1] = {"place": {"city": "Rome"}, "size": 1}
        assert list(t.docs.by_city["ROME"].keys()) == [1]
        t.anything[1] = {"a": {"name": "Ann"}}
        t.anything[2] = {"a": {}}
        t.anything[3] = {}
        assert list(t.anything.by_name.select().keys()) == [1]
        with pytest.raises(zlmdb.EncodeError):
            t.anything[4] = {"a": {"name": 4}}


def test_a_renamed_field_takes_its_index_along(tmp_path: Any) -> None:
    db: Any = zlmdb.open(str(tmp_path), World)
    with db.write() as t:
        t.people[1] = Person("Ann", "Ann@X.org", Address(City("Oslo", 7), "Main"))
    db.close()

    @dataclass
    class Human:
        name: str
        mail: Annotated[str, zlmdb.Was("email")]
        home: Optional[Address] = None

    class Humans(zlmdb.Table[int, Human]):
        by_email = zlmdb.UniqueIndex[str]("mail.casefold()")
        by_city = zlmdb.Index("home.city.name.casefold()", "home.city.people")
        by_street = zlmdb.Index("home.street")

    class Later(zlmdb.Schema):
        people: Humans

    later: Any = zlmdb.open(str(tmp_path), Later)
    with later.read() as t:
        assert t.people.by_email["ann@x.org"].mail == "Ann@X.org"
        assert t.people.where(lambda h: h.mail.casefold() == "ann@x.org").explain().indexes in (("by_email",), ())
    assert later.check().ok
    later.close()
