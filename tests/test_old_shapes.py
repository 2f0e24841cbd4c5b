"""Migrations that change the shape of tables: with plain data of the old one, whole or not at all."""

from __future__ import annotations

import enum
import subprocess
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Optional
from uuid import UUID

import pytest

import zlmdb
from zlmdb import Migration
from zlmdb.values import U16

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

LAYOUTS = pytest.mark.parametrize("layout", ["tables", "classic"])
FORMATS = pytest.mark.parametrize("form", ["Msgpack", "Json", "Cbor", "Pickle", "FlatBuffers"])


def model(class_name: str = "User", /, **fields: Any) -> Any:
    """A model class: ``model(name=str, age=(int, 0))``."""
    listed = [(key, *one) if isinstance(one, tuple) else (key, one) for key, one in fields.items()]
    return make_dataclass(class_name, listed)


def table(value: Any, form: str = "Msgpack", key: Any = int, **indexes: Any) -> Any:
    """A table class."""
    generic: Any = zlmdb.Table
    bases = (generic[key, getattr(zlmdb, form)[value]],)
    return types.new_class("Rows", bases, {}, lambda body: body.update(indexes))


def schema(*steps: Any, **tables: Any) -> Any:
    """A schema of the tables, with the steps as its migrations."""
    migrations = tuple([Migration(version, f"step {version}", step) for version, step in enumerate(steps, 1)])
    body: dict[str, Any] = {"__annotations__": tables}
    return type("Store", (zlmdb.Schema,), {**body, **({"migrations": migrations} if migrations else {})})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


First = model(name=str, age=(str, ""))
Person = model(first=str, last=(str, ""), age=(int, 0))


def start(path: Path, count: int = 3, form: str = "Msgpack", **options: Any) -> None:
    by_name = zlmdb.UniqueIndex[str]("name")
    before = schema(users=table(First, form, by_name=by_name))
    with zlmdb.open(path, before, durability="none", **options) as db, db.write() as t:
        t.users.update({n: First(f"Ann Nr{n}", str(n)) for n in range(count)})


def split(key: int, row: Any) -> Any:
    first, last = row["name"].split(" ")
    return {"first": first, "last": last, "age": int(row["age"])}


def rewriting(t: Any, old: Any) -> None:
    assert old.rewrite("users", split) == len(old["users"])


def taking(t: Any, old: Any) -> None:
    for key, row in old.take("users").items():
        t.users[key] = Person(**split(key, row))


def new(*steps: Any, form: str = "Msgpack") -> Any:
    """The schema of today."""
    by_last = zlmdb.UniqueIndex[str]("last")
    return schema(*steps, users=table(Person, form, by_last=by_last, by_age=zlmdb.Index[int]("age")))


def content(path: Path, today: Any) -> Any:
    with zlmdb.open(path, today) as db:
        assert db.check().ok, db.check().problems
        assert list(db.tables()) == ["users"]
        with db.read() as t:
            assert [t.users.by_last.key(user.last) for user in t.users.values()] == list(t.users)
            return dict(t.users)


def expected(count: int) -> Any:
    return {n: Person("Ann", f"Nr{n}", n) for n in range(count)}


# -- one step ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [rewriting, taking])
@LAYOUTS
@FORMATS
def test_a_step_splits_and_retypes_fields(path: Path, layout: Any, form: str, step: Any) -> None:
    if (layout, form) == ("classic", "Pickle"):
        pytest.skip("pickles of classic files are of classes that can be imported, and those of this test cannot")
    start(path, form=form, layout=layout)
    with pytest.raises(zlmdb.SchemaMismatch, match="age is str in the file and int in the class"):
        zlmdb.open(path, new(form=form))
    today = new(step, form=form)
    with zlmdb.open(path, today) as db:
        with db.read() as t, pytest.raises(zlmdb.SchemaMismatch, match=r"call db\.migrate\(\)"):
            t.users[1]
        with db.write() as t, pytest.raises(zlmdb.SchemaMismatch, match=r"call db\.migrate\(\)"):
            t.users[1] = Person("a")
        [tried] = db.migrate(dry_run=True)
        assert tried.version == 1
        assert db.schema_version == 0
        [applied] = db.migrate()
        assert applied.puts >= 3
        with db.write() as t:
            assert dict(t.users) == expected(3)
            t.users[9] = Person("Bob", "Nr9", 9)
            del t.users[9]
    assert content(path, today) == expected(3)
    assert content(path, new(form=form)) == expected(3)


def test_a_dry_run_changes_nothing(path: Path) -> None:
    start(path)
    with zlmdb.open(path, new(rewriting)) as db:
        before = db.stats()["last_txnid"]
        assert [one.name for one in db.migrate(dry_run=True)] == ["step 1"]
        assert db.stats()["last_txnid"] == before
    with zlmdb.open(path, schema(users=table(First))) as db, db.read() as t:
        assert t.users[1] == First("Ann Nr1", "1")


def test_old_tables_are_mappings_of_plain_data(path: Path) -> None:
    @dataclass
    class Item:
        key: UUID
        size: Optional[int] = None

    with zlmdb.open(path, schema(items=table(Item, key=UUID), counts=zlmdb.Table[str, int])) as db, db.write() as t:
        t["items"].update({UUID(int=n): Item(UUID(int=n), n or None) for n in range(3)})
        t.counts["n"] = 3

    def look(t: Any, old: Any) -> None:
        assert set(old) == {"items", "counts"}
        items = old["items"]
        assert len(items) == len(items.items()) == 3
        assert list(items) == [UUID(int=n) for n in range(3)]
        assert items[UUID(int=1)] == {"key": str(UUID(int=1)), "size": 1}
        assert items.get(UUID(int=7)) is None
        assert UUID(int=2) in items
        assert dict(old["counts"].items()) == {"n": 3}
        with pytest.raises(KeyError, match="there are 'counts', 'items'"):
            old["other"]
        with pytest.raises(KeyError, match="declares no table"):
            old.take("items")
        t.counts["n"] = 4
        assert old["counts"]["n"] == 3, "what a step writes is not what it reads"

    with zlmdb.open(path, schema(look, counts=zlmdb.Table[str, int])) as db:
        assert len(db.migrate()) == 1


def test_a_field_that_older_records_lack_has_its_default(path: Path) -> None:
    start(path)
    more = model(name=str, age=(str, ""), city=(str, "Rome"))
    with zlmdb.open(path, schema(users=table(more, by_name=zlmdb.UniqueIndex[str]("name")))) as db, db.write() as t:
        t.users[7] = more("Bob Nr7", "7", "Oslo")
    seen: list[str] = []

    def drop_age(t: Any, old: Any) -> None:
        def change(key: int, row: Any) -> Any:
            seen.append(row["city"])
            return {"name": row["name"], "city": row["city"]}

        old.rewrite("users", change)

    with zlmdb.open(path, schema(drop_age, users=table(model(name=str, city=str)))) as db:
        db.migrate()
        with db.read() as t:
            assert [user.city for user in t.users.values()] == ["Rome"] * 3 + ["Oslo"]
    assert seen == ["Rome"] * 3 + ["Oslo"]


class Color(enum.Enum):
    RED = "r"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Place(NamedTuple):
    street: str
    since: date = date(2000, 1, 1)


@dataclass
class Part:
    name: str = "p"
    made: date = date(2001, 2, 3)


DEFAULTS: dict[Any, Any] = {
    str: "x", int: 5, bytes: b"x", date: date(2000, 1, 1), UUID: UUID(int=5), Decimal: Decimal("1.5"),
    timedelta: timedelta(1), datetime: datetime(2000, 1, 1, tzinfo=timezone.utc), Optional[date]: date(2000, 1, 1),
    Color: Color.RED, Rights: Rights.WRITE, list[date]: [date(2000, 1, 1)], dict[str, bytes]: {"a": b"x"},
    set[int]: {1, 2}, Part: Part("q"), Place: Place("s"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (form, kind)
        for form in ("Msgpack", "Json", "Cbor", "Pickle", "FlatBuffers")
        for kind in DEFAULTS
        if form != "FlatBuffers" or kind != Optional[date]  # they leave out None, so such a default is refused
    ],
    ids=str,
)
def test_records_older_than_a_field_with_any_default_are_rewritten(path: Path, form: str, kind: Any) -> None:
    default = DEFAULTS[kind]

    def more(**fields: Any) -> Any:
        return model(**fields, new=(kind, field(default_factory=lambda: default)))

    def drop(t: Any, old: Any) -> None:
        seen.extend(old["users"].values())
        old.rewrite("users", lambda key, row: {name: value for name, value in row.items() if name != "age"})

    seen: list[Any] = []
    first, second, third = model(name=str, age=int), more(name=str, age=int), more(name=str)
    newer = schema(users=table(second, form))
    with zlmdb.open(path, schema(users=table(first, form)), durability="none") as db, db.write() as t:
        t.users[1] = first("Ann", 7)
    with zlmdb.open(path, newer, durability="none") as db, db.write() as t:
        assert t.users[1].new == default
        t.users[2] = second("Ann", 7, default)
    with zlmdb.open(path, schema(drop, users=table(third, form)), durability="none") as db:
        db.migrate()
        with db.read() as t:
            assert dict(t.users) == {1: third("Ann", default), 2: third("Ann", default)}
        assert db.check().ok
    older, newest = seen
    assert (newest["name"], newest["age"]) == ("Ann", 7)
    assert older.pop("new", newest["new"]) == newest.pop("new")
    assert older == newest


@dataclass
class Route:
    name: str
    begin: Place
    stops: list[Place]
    named: dict[str, list[Optional[Place]]]
    end: Optional[Place] = None
    pair: Optional[tuple[Place, int]] = None


@dataclass
class Simple:
    """What FlatBuffers have of it."""

    name: str
    begin: Place
    stops: list[Place]
    end: Optional[Place] = None


ROUTES = {
    1: Route("a", Place("s"), [Place("t"), Place("u", date(2001, 1, 1))], {"k": [Place("v"), None]}, Place("w")),
    2: Route("b", Place("x"), [], {}, None, (Place("y"), 5)),
}


@pytest.mark.parametrize("other", ["Msgpack", "Json", "Cbor", "FlatBuffers", "Pickle"])
@FORMATS
def test_records_with_named_tuples_are_rewritten(path: Path, form: str, other: str) -> None:
    def shout(t: Any, old: Any) -> None:
        old.unpickled("routes")
        old.rewrite("routes", lambda key, row: {**row, "name": row["name"].upper()})

    rows: dict[int, Any] = dict(ROUTES)
    if "FlatBuffers" in (form, other):
        rows = {key: Simple(one.name, one.begin, one.stops, one.end) for key, one in ROUTES.items()}
    model: Any = type(rows[1])
    with zlmdb.open(path, schema(routes=table(model, form)), durability="none") as db, db.write() as t:
        t.routes.update(rows)
    with zlmdb.open(path, schema(shout, routes=table(model, other)), durability="none") as db:
        db.migrate()
        with db.read() as t:
            assert dict(t.routes) == {key: replace(one, name=one.name.upper()) for key, one in rows.items()}


@LAYOUTS
def test_tables_are_split_and_merged_and_dropped(path: Path, layout: Any) -> None:
    person, firm = model("Person", name=str), model("Firm", name=str, tax=int)
    before = schema(
        people=table(person, by_name=zlmdb.Index[str]("name")), firms=table(firm), log=zlmdb.Table[int, str]
    )
    with zlmdb.open(path, before, layout=layout) as db, db.write() as t:
        t.people.update({1: person("Ann"), 2: person("Bob")})
        t.firms[1] = firm("Acme", 7)
        t.log.update({1: "a", 2: "b"})
    party = model("Party", name=str, tax=(Optional[int], None))

    def merge(t: Any, old: Any) -> None:
        for _, row in old["people"].items():
            t.parties.add(party(row["name"]))
        for _, row in old["firms"].items():
            t.parties.add(party(row["name"], row["tax"]))
        assert old.drop("people") == 2
        old.drop("firms")
        for key, text in old["log"].items():
            (t.odd if key % 2 else t.even)[key] = text
        with pytest.raises(ValueError, match="the schema declares the table 'parties'"):
            old.drop("parties")
        old.drop("log")

    text: Any = zlmdb.Table[int, str]
    after = schema(merge, parties=table(party, by_name=zlmdb.UniqueIndex[str]("name")), odd=text, even=text)
    with zlmdb.open(path, after) as db:
        db.migrate(dry_run=True)
        assert sorted(db.tables()) == ["even", "firms", "log", "odd", "parties", "people"]
        db.migrate()
        assert sorted(db.tables()) == ["even", "odd", "parties"]
        assert db.check().ok, db.check().problems
        with db.read() as t:
            assert [one.name for one in t.parties.values()] == ["Ann", "Bob", "Acme"]
            assert t.parties.by_name["Acme"].tax == 7
            assert (dict(t.odd), dict(t.even)) == ({1: "a"}, {2: "b"})
    with zlmdb.open(path, before) as db, db.read() as t:  # makes them anew
        assert len(t.people) == 0


def test_keys_and_formats_change_with_a_table_that_is_taken(path: Path) -> None:
    start(path)

    def by_name(t: Any, old: Any) -> None:
        for key, row in old.take("users").items():
            t.users[row["name"]] = Person(**split(key, row))

    after = schema(by_name, users=table(Person, "Cbor", key=str))
    with pytest.raises(zlmdb.SchemaMismatch, match="has keys of type int"):
        zlmdb.open(path, schema(users=table(Person, "Cbor", key=str)))
    with zlmdb.open(path, after) as db:
        db.migrate()
        with db.read() as t:
            assert t.users["Ann Nr2"] == Person("Ann", "Nr2", 2)
    start(path.with_name("other"))
    refused = pytest.raises(zlmdb.SchemaMismatch, match="use old.take")
    with zlmdb.open(path.with_name("other"), schema(rewriting, users=table(Person, key=str))) as db, refused:
        db.migrate()


@FORMATS
def test_a_format_changes_by_rewriting(path: Path, form: str) -> None:
    start(path, form=form)
    other = "Json" if form != "Json" else "FlatBuffers"

    def unpickling(t: Any, old: Any) -> None:
        old.unpickled("users")
        rewriting(t, old)

    if form == "Pickle":
        not_unasked = pytest.raises(zlmdb.SchemaMismatch, match="loading them can run code")
        with zlmdb.open(path, new(rewriting, form=other)) as db, not_unasked:
            db.migrate()
    today = new(unpickling if form == "Pickle" else rewriting, form=other)
    with zlmdb.open(path, today) as db:
        db.migrate()
    assert content(path, today) == expected(3)


class Pickled:
    """As a shelf has it."""

    def __init__(self, name: str) -> None:
        self.name = name


@LAYOUTS
@pytest.mark.parametrize("form", [zlmdb.Pickle, zlmdb.Zlib[zlmdb.Pickle]])
def test_pickles_of_no_declared_class_become_records(path: Path, layout: Any, form: Any) -> None:
    """What was a shelf gets a class. Nothing is loaded before the step says that it trusts the file."""
    shelf = schema(users=zlmdb.Table[str, form])
    with zlmdb.open(path, shelf, layout=layout) as db, db.write() as t:
        t.users.update({"a": Pickled("Ann Nr1"), "b": {"name": "Bob Nr2"}})

    def fields(found: Any) -> dict[str, Any]:
        return split("", {"name": found["name"] if isinstance(found, dict) else found.name, "age": 1})

    def taking(t: Any, old: Any) -> None:
        assert old.unpickled("users")["a"].name == "Ann Nr1"
        for key, found in old.take("users").items():
            t.users[key] = Person(**fields(found))

    def rewriting_pickles(t: Any, old: Any) -> None:
        old.unpickled("users")
        assert old.rewrite("users", lambda key, found: fields(found)) == 2

    persons = table(Person, key=str)
    unasked = schema(lambda t, old: old.take("users"), users=persons)
    refused = pytest.raises(zlmdb.SchemaMismatch, match=r"can run code: if you trust the file, call old\.unpickled\(")
    with zlmdb.open(path, unasked) as db, refused:
        db.migrate()
    with zlmdb.open(path) as db:
        db.backup(path.with_name("other"))
    for place, step in ((path, taking), (path.with_name("other"), rewriting_pickles)):
        with zlmdb.open(place, schema(step, users=persons)) as db:
            db.migrate()
            with db.read() as t:
                assert dict(t.users) == {"a": Person("Ann", "Nr1", 1), "b": Person("Bob", "Nr2", 1)}


def test_numbers_of_flatbuffers_are_read_in_their_old_width(path: Path) -> None:
    narrow, wide = model(n=Annotated[int, U16], inner=Optional[First]), model(n=int)
    with zlmdb.open(path, schema(rows=table(narrow, "FlatBuffers"))) as db, db.write() as t:
        t.rows[1] = narrow(65535, First("a", "b"))

    def widen(t: Any, old: Any) -> None:
        assert old["rows"][1] == {"n": 65535, "inner": {"name": "a", "age": "b"}}
        old.rewrite("rows", lambda key, row: {"n": row["n"] * 2})

    with zlmdb.open(path, schema(widen, rows=table(wide, "FlatBuffers"))) as db:
        db.migrate()
        with db.read() as t:
            assert t.rows[1] == wide(131070)


@LAYOUTS
def test_a_function_of_none_deletes_a_record_and_an_index_is_dropped(path: Path, layout: Any) -> None:
    start(path, 10, layout=layout)

    def step(t: Any, old: Any) -> None:
        old.rewrite("users", lambda key, row: row if key % 2 else None)

    with zlmdb.open(path, schema(step, users=table(First, by_name=zlmdb.UniqueIndex[str]("name")))) as db:
        db.migrate()
        with db.read() as t:
            assert list(t.users) == [1, 3, 5, 7, 9]
            assert t.users.by_name.select().count() == 5
        assert db.check().ok

    def drop(t: Any, old: Any) -> None:
        with pytest.raises(KeyError, match="but by_name"):
            old.drop_index("users", "other")
        old.drop_index("users", "by_name")
        t.users[11] = First("x y")

    with zlmdb.open(path, schema(step, drop, users=table(First))) as db:
        db.migrate()
        assert {name: one.indexes for name, one in db.tables().items()} == {"users": ()}
        assert db.check().ok


# -- several steps ----------------------------------------------------------------------------------------------------


def second(t: Any, old: Any) -> None:
    old.rewrite("users", lambda key, row: {**row, "age": int(row["age"])})


def first(t: Any, old: Any) -> None:
    def change(key: int, row: Any) -> Any:
        one, other = row["name"].split(" ")
        return {"first": one, "last": other, "age": row["age"]}

    old.rewrite("users", change)


@LAYOUTS
@FORMATS
def test_steps_between_two_versions_need_no_classes_of_their_own(path: Path, layout: Any, form: str) -> None:
    if (layout, form) == ("classic", "Pickle"):
        pytest.skip("pickles of classic files are of classes that can be imported, and those of this test cannot")
    start(path, form=form, layout=layout)
    today = new(first, second, form=form)
    with zlmdb.open(path, today) as db:
        assert [one.version for one in db.migrate(dry_run=True)] == [1, 2]
        with db.read() as t, pytest.raises(zlmdb.SchemaMismatch):
            t.users[1]
        assert [one.version for one in db.migrate()] == [1, 2]
    assert content(path, today) == expected(3)


def test_a_file_between_two_steps_is_refused_by_programs_that_lack_the_next_one(path: Path) -> None:
    start(path)

    def fail(t: Any, old: Any) -> None:
        raise RuntimeError("no")

    with zlmdb.open(path, new(first, fail)) as db, pytest.raises(RuntimeError):
        db.migrate()
    for program in (new(), new(first), schema(users=table(First)), schema(users=zlmdb.Table[int, dict[str, Any]])):
        with pytest.raises(zlmdb.SchemaMismatch, match="'?step 1'? has stored records|1 step 1"):
            zlmdb.open(path, program)
    today = new(first, second)
    with zlmdb.open(path, today) as db:
        assert [one.version for one in db.migrate()] == [2]
    assert content(path, today) == expected(3)


def test_steps_that_leave_another_shape_are_refused_as_a_whole(path: Path) -> None:
    start(path)
    for step, text in (
        (lambda t, old: None, "all migrations have run"),
        (
            lambda t, old: old.rewrite("users", lambda key, row: row),
            r"key 0.*fields that do not fit the class \(it has name, which the class lacks; it lacks first\): ",
        ),
        (lambda t, old: old.rewrite("users", lambda key, row: {"first": 1}), "do not fit the class"),
    ):
        with zlmdb.open(path, new(step)) as db:
            for dry_run in (True, False):
                with pytest.raises(zlmdb.SchemaMismatch, match=text):
                    db.migrate(dry_run=dry_run)
            assert db.schema_version == 0
    with zlmdb.open(path, schema(users=table(First))) as db, db.read() as t:
        assert t.users[1] == First("Ann Nr1", "1")


def test_a_step_that_reads_a_table_by_its_class_too_early_is_told_how_to_read_it(path: Path) -> None:
    start(path)

    def upper(t: Any) -> None:
        for key, user in list(t.users.items()):
            t.users[key] = replace(user, first=user.first.upper())

    def upper_fields(t: Any, old: Any) -> None:
        old.rewrite("users", lambda key, fields: {**fields, "first": fields["first"].upper()})

    with zlmdb.open(path, new(rewriting, upper)) as db:
        with pytest.raises(
            zlmdb.SchemaMismatch, match=r"^table 'users': first is new.*they read the table by old\['users"
        ):
            db.migrate(dry_run=True)
        assert db.schema_version == 0
    with zlmdb.open(path, new(rewriting, upper_fields)) as db:
        assert len(db.migrate()) == 2
        with db.read() as t:
            assert t.users[1].first == "ANN"


@LAYOUTS
def test_a_unique_index_that_the_new_shape_breaks_stops_the_step(path: Path, layout: Any) -> None:
    start(path, layout=layout)

    def same(t: Any, old: Any) -> None:
        old.rewrite("users", lambda key, row: {"first": "a", "last": "b", "age": 1})

    def taken(t: Any, old: Any) -> None:
        for key in list(old.take("users")):
            t.users[key] = Person("a", "b", 1)

    for step in (same, taken):
        with zlmdb.open(path, new(step)) as db:
            for dry_run in (True, False):
                with pytest.raises(zlmdb.DuplicateKey):
                    db.migrate(dry_run=dry_run)
            assert db.schema_version == 0


def test_programs_that_run_meanwhile_are_refused_afterwards(path: Path) -> None:
    start(path)
    with zlmdb.open(path, schema(users=table(First, by_name=zlmdb.UniqueIndex[str]("name")))) as old:
        with old.write() as t:
            t.users[7] = First("Bob Nr7", "7")
        with zlmdb.open(path, new(rewriting)) as db:
            db.migrate()
        with old.read() as t, pytest.raises(zlmdb.SchemaMismatch, match="newer than this program"):
            t.users[7]
        with old.write() as t, pytest.raises(zlmdb.SchemaMismatch, match="newer than this program"):
            t.users[7] = First("Bob Nr7", "7")


def retaken(t: Any, old: Any) -> None:
    for key, value in old.take("users").items():
        t.users[str(key)] = value if isinstance(value, list) else Person(**value)


def texts(t: Any, old: Any) -> None:
    for key, value in old.take("users").items():
        t.users[key] = [str(one) for one in value]


def same(t: Any, old: Any) -> None:
    old.rewrite("users", lambda key, row: row)


ANN = Person("Ann", "Nr1", 1)
RETYPED = {
    "format": (ANN, table(Person, "Json"), table(Person, "Cbor"), same),
    "checked": (ANN, table(Person), zlmdb.Table[int, zlmdb.Checked[zlmdb.Msgpack[Person]]], same),
    "keys": (ANN, table(Person), table(Person, key=str), retaken),
    "values": ([1], zlmdb.Table[int, list[int]], zlmdb.Table[int, list[str]], texts),
}


@pytest.mark.parametrize("change", RETYPED)
@LAYOUTS
def test_programs_that_run_while_keys_or_values_get_another_type_do_not_mix_the_two(
    path: Path, layout: Any, change: str
) -> None:
    value, before, after, step = RETYPED[change]
    refused = pytest.raises(zlmdb.SchemaMismatch, match="another program has made them .* use a newer program")
    with zlmdb.open(path, schema(users=before), layout=layout, durability="none") as old:
        with old.write() as t:
            t.users[1] = value
        with zlmdb.open(path, schema(step, users=after), durability="none") as db:
            db.migrate()
            with db.read() as t:
                now = dict(t.users)
            for _ in range(2):
                with old.read() as t, refused:
                    t.users[1]
                with old.write() as t:
                    with refused:
                        t.users[2] = value
                    with refused:
                        t.users.clear()
            with db.read() as t:
                assert dict(t.users) == now


def test_long_steps_tell_how_far_they_are(path: Path) -> None:
    start(path, 25_000)
    told: list[Any] = []
    with zlmdb.open(path, new(rewriting)) as db:
        db.migrate(progress=told.append)
    done = [one.done for one in told if one.stage == "1 step 1: users"]
    assert done == [10_000, 20_000, 25_000]
    assert {one.total for one in told if one.stage == "1 step 1: users"} == {25_000}


def test_a_database_in_memory_is_migrated(tmp_path: Path) -> None:
    """It is open when its schema changes only where two handles share it, as here: a step may still take a table."""
    seen: list[Any] = []

    def step(t: Any, old: Any) -> None:
        seen.extend(old["users"].items())

    with zlmdb.open(None, new(step)) as db:
        with db.write() as t:
            t.users[1] = Person("a", "b", 3)
        db.migrate(dry_run=True)
        db.migrate()
    assert seen == [(1, {"first": "a", "last": "b", "age": 3})] * 2


# -- crashes ----------------------------------------------------------------------------------------------------------

CRASH = '''
import os, sys
sys.path.insert(0, {tests!r})
import test_old_shapes as shapes
import zlmdb
from pathlib import Path
from zlmdb.store import store as stores
from zlmdb.store.transaction import Transaction

left, after = int(sys.argv[2]), sys.argv[3] == "after"

def counted():
    """A commit is about to come, which may be the last thing that this process does, or not any more."""
    global left
    left -= 1
    if left == 0 and not after:
        os._exit(7)

change = stores.Store._change

def changed(self, work, timeout):
    def worked(txn, open_space):
        result = work(txn, open_space)
        counted()
        return result

    result = change(self, worked, timeout)
    if left == 0:
        os._exit(7)
    return result

stores.Store._change = changed
commit = Transaction.commit

def committed(self):
    if self._write:
        counted()
    commit(self)
    if self._write and left == 0:
        os._exit(7)

Transaction.commit = committed
with zlmdb.open(Path(sys.argv[1]), shapes.new(shapes.first, shapes.second)) as db:
    db.migrate()
'''


@pytest.mark.once  # each has a dozen processes, which take a while to start on PyPy
@pytest.mark.parametrize(
    ("moment", "layout"),
    [("before", "tables"), ("before", "classic"), ("after", "tables"), ("after", "classic")],
)
def test_a_migration_killed_at_any_commit_goes_on_where_it_was(path: Path, layout: Any, moment: str) -> None:
    program = CRASH.format(tests=str(Path(__file__).parent))
    today = new(first, second)
    for number in range(1, 20):
        place = path.with_name(f"db{number}")
        start(place, 100, layout=layout)
        command = [sys.executable, "-c", program, str(place), str(number), moment]
        ended = subprocess.run(command, check=False, capture_output=True, text=True)
        if ended.returncode == 0:
            break
        assert ended.returncode == 7, ended.stderr
        with zlmdb.open(place, readonly=True) as db:
            assert db.check().ok, (number, db.check().problems)
        with zlmdb.open(place, today) as db:
            db.migrate()
        assert content(place, today) == expected(100), number
    assert number >= 3, "there are several commits"


def test_a_step_of_one_argument_is_called_as_before(path: Path) -> None:
    seen: list[Any] = []
    steps: list[Callable[..., Any]] = [seen.append, lambda t: seen.append(t), lambda t, more=3: seen.append(more)]
    with zlmdb.open(path, schema(*steps, users=table(First))) as db:
        db.migrate()
    assert seen[2] == 3


def test_later_steps_of_a_dry_run_take_little_memory_for_large_tables(path: Path) -> None:
    with zlmdb.open(path, schema(users=table(First)), durability="none") as db, db.write() as t:
        t.users.update({n: First(f"Ann Nr{n}", "x" * 1000) for n in range(5000)})
    tracemalloc = pytest.importorskip("tracemalloc")  # PyPy has none
    peaks: list[int] = []

    def look(t: Any, old: Any) -> None:
        tracemalloc.start()
        try:
            users = old["users"]
            assert (len(users), users[4999]["name"], -1 in users, 9999 in users) == (5000, "Ann Nr4999", False, False)
            assert all(row["age"] == "x" * 1000 for _, row in users.items())
            del t.users[0]
            assert (len(users), users[0]["name"]) == (5000, "Ann Nr0")
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()

    with zlmdb.open(path, schema(lambda t: None, look, users=table(First))) as db:
        db.migrate(dry_run=True)
    assert peaks[0] < 1_000_000  # and not five


def test_a_dry_run_without_room_for_what_later_steps_read_says_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start(path)
    monkeypatch.setattr("tempfile.tempdir", str(path / "none"))
    steps = (lambda t: None, lambda t, old: old["users"])
    with zlmdb.open(path, schema(*steps, users=table(First))) as db:
        with pytest.raises(zlmdb.DiskError, match="copied into a temporary file in .*none"):
            db.migrate(dry_run=True)
        assert [one.version for one in db.migrate()] == [1, 2]


Named = model(title=str, age=(str, ""))


def renaming(t: Any, old: Any) -> None:
    old.rewrite("users", lambda key, row: {"title": row["name"], "age": row["age"]})


@pytest.mark.parametrize("run", [400, 4 << 20])
def test_a_dry_run_tries_a_new_unique_index_as_the_migration_builds_it(
    path: Path, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In sorted runs, of 400 bytes or of megabytes, which find two owners however far they are apart."""
    monkeypatch.setattr("zlmdb.operations.triedentries._RUN", run)
    with zlmdb.open(path, schema(users=table(First)), durability="none") as db, db.write() as t:
        t.users.update({n: First(f"Nr{n * 37 % 100:02}", str(n)) for n in range(100)})
    today = schema(renaming, users=table(Named, by_title=zlmdb.UniqueIndex[str]("title")))
    with zlmdb.open(path, today) as db:
        assert [one.puts for one in db.migrate(dry_run=True)] == [200]
    with zlmdb.open(path, schema(users=table(First))) as db, db.write() as t:
        t.users[200] = First("Nr00", "200")
    texts = set[str]()
    with zlmdb.open(path, today) as db:
        for dry_run in (True, False):
            with pytest.raises(zlmdb.DuplicateKey, match="Nr00") as caught:
                db.migrate(dry_run=dry_run)
            texts.add(str(caught.value))
    assert len(texts) == 1


def test_a_dry_run_tries_a_new_unique_index_in_little_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlmdb.operations.triedentries._RUN", 50_000)
    tracemalloc = pytest.importorskip("tracemalloc")  # PyPy has none
    with zlmdb.open(path, schema(users=table(First)), durability="none") as db, db.write() as t:
        t.users.update({n: First(f"{n:0400}") for n in range(5000)})
    today = schema(renaming, users=table(Named, by_title=zlmdb.UniqueIndex[str]("title")))
    with zlmdb.open(path, today) as db:
        tracemalloc.start()
        try:
            assert [one.puts for one in db.migrate(dry_run=True)] == [10_000]
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 1_200_000  # and not the 2,400,000 of all entries


def test_a_dry_run_without_room_for_the_entries_of_a_new_index_says_so(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlmdb.operations.triedentries._RUN", 100)
    monkeypatch.setattr("tempfile.tempdir", str(path / "none"))
    with zlmdb.open(path, schema(users=table(First))) as db, db.write() as t:
        t.users.update({n: First(f"Ann Nr{n}") for n in range(3)})
    with zlmdb.open(path, schema(renaming, users=table(Named, by_title=zlmdb.UniqueIndex[str]("title")))) as db:
        with pytest.raises(zlmdb.DiskError, match="entries of a new index could not be copied .*none"):
            db.migrate(dry_run=True)
        assert [one.puts for one in db.migrate()] == [6]


@LAYOUTS
def test_a_later_step_of_a_dry_run_drops_a_table_without_a_copy_of_it(
    path: Path, layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zlmdb.open(path, schema(users=table(First), gone=table(First)), layout=layout) as db, db.write() as t:
        t.gone.update({n: First("Ann") for n in range(5)})
    monkeypatch.setattr("tempfile.tempdir", str(path / "none"))
    dropped: list[int] = []
    steps = (lambda t: None, lambda t, old: dropped.append(old.drop("gone")))
    with zlmdb.open(path, schema(*steps, users=table(First))) as db:
        assert [one.dels for one in db.migrate(dry_run=True)] == [0, 5]
        db.migrate()
    assert dropped == [5, 5]


@LAYOUTS
def test_a_table_is_dropped_whose_records_nobody_can_read(path: Path, layout: Any) -> None:
    """Of pickles the step would have to say that it trusts them, which has nothing to do with deleting them."""
    pickles: Any = zlmdb.Table[int, zlmdb.Pickle]
    with zlmdb.open(path, schema(users=table(First), gone=pickles), layout=layout) as db, db.write() as t:
        t.gone.update({n: {"n": n} for n in range(5)})
    dropped: list[int] = []
    with zlmdb.open(path, schema(lambda t, old: dropped.append(old.drop("gone")), users=table(First))) as db:
        db.migrate(dry_run=True)
        db.migrate()
        assert list(db.tables()) == ["users"]
        assert db.check().ok
    assert dropped == [5, 5]
