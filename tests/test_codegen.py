"""Generated functions: they do the work themselves, their mistakes are found, and tracebacks show their lines."""

from __future__ import annotations

import builtins
import gc
import importlib
import inspect
import json
import linecache
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any, Callable, Optional
from uuid import UUID

import pytest

import zlmdb
from zlmdb import codegen
from zlmdb.codegen import Methods, Recipe, Source, TemplateError, value_of
from zlmdb.keys.named import StringKey, UintKey
from zlmdb.keys.tuples import TupleKey
from zlmdb.store.blocks import COUNTS_REFERENCES
from zlmdb.tables import indexview
from zlmdb.tables.compiled import indexed as indexwrites
from zlmdb.tables.compiled import points
from zlmdb.values import Cbor, FlatBuffers, FlatBuffersView, Json, Msgpack, Pickle, Unchecked, load, serializer
from zlmdb.values.flat import plans
from zlmdb.values.jsonwriter import writer
from zlmdb.values.loading import loader
from zlmdb.values.models import Model
from zlmdb.values.recurring import EVERY, OFTEN

pytestmark = pytest.mark.usefixtures("at_once")

TURNS = (EVERY + 1) * OFTEN + 2

for module in pkgutil.walk_packages(zlmdb.__path__, "zlmdb."):
    if "__main__" not in module.name and "vendor" not in module.name:
        importlib.import_module(module.name)
RECIPES = sorted(Recipe.known)


# What is generated, in use: one case for each recipe --------------------------------------------------------------


@dataclass
class Part:
    name: str
    price: float


@dataclass
class Row:
    id: int
    name: str
    city: Optional[str] = None
    parts: list[Part] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    main: Optional[Part] = None


@dataclass
class OldRow:
    id: int
    name: str


ROW = Row(7, "ann", "Bonn", [Part("a", 1.5)], {"x": 0.5, "y": 1.0}, ["t"], Part("m", 2.0))
ROWS = [Row(n, f"name {n}", ("Bonn", None)[n % 2], main=Part("p", float(n))) for n in range(20)]
PLAIN = {"a": [1, "b", None, {"c": 1.5}], "d": True}


def round_trip(annotation: Any, value: Any, turns: int = 1) -> None:
    codec = serializer(annotation)
    for _ in range(turns):
        assert codec.raw_decode(codec.raw_encode(value)) == value


@contextmanager
def table(value: Any = Row, *, indexed: bool = False) -> Iterator[Any]:
    """A table of its own class, in a write transaction."""

    class Rows(zlmdb.Table[int, value]):  # type: ignore[valid-type]  # told when it runs
        if indexed:
            by_name = zlmdb.UniqueIndex[str]("name")
            by_city = zlmdb.Index[str]("city")

    class Tables(zlmdb.Schema):
        rows: Rows

    with zlmdb.open(None, Tables) as db, db.write() as t:
        yield t.rows


def keys_of_tuples() -> TupleKey:
    return TupleKey([StringKey(), TupleKey([UintKey(4), UintKey(8)])])


def encode_keys() -> None:
    codec = keys_of_tuples()
    assert codec.lookup(b"p")(("s", (1, 2))) == b"p" + codec.encode(("s", (1, 2)))


def decode_keys() -> None:
    codec = keys_of_tuples()
    assert codec.raw_decode(codec.encode(("s", (1, 2)))) == ("s", (1, 2))


def check_values() -> None:
    for form in (Msgpack, Json, Cbor):
        round_trip(form[Row], ROW)
        round_trip(form[dict[str, Any]], PLAIN)
    round_trip(Pickle[dict], PLAIN)


def read_and_write_pickles() -> None:
    round_trip(Pickle[Row], ROW)
    assert serializer(Unchecked[Pickle[Row]]).raw_encode(ROW)  # read with care: nobody has checked it


def record() -> Any:
    return Model(Row, "json", bytes).shape


def write_json() -> None:
    write = writer(record(), lambda plain: json.dumps(plain, separators=(",", ":")))
    assert write is not None
    assert write(ROW) == serializer(Json[Row]).encode(ROW)


def load_objects() -> None:
    assert loader(record())(json.loads(serializer(Json[Row]).encode(ROW))) == ROW


def write_cbor() -> None:
    round_trip(Cbor[Row], ROW)


def write_cbor_of_floats() -> None:
    round_trip(Cbor[Row], ROW, TURNS)


def read_and_write_flatbuffers() -> None:
    round_trip(FlatBuffers[Row], ROW)


def read_old_flatbuffers() -> None:
    """The general form of a layout that has a function is to look where each field is."""
    old = serializer(FlatBuffers[OldRow]).encode(OldRow(1, "old"))
    codec = serializer(FlatBuffers[Row])
    with Generation.current.disarmed():  # of layouts that are unknown yet
        for _ in range(plans.OFTEN + 1):
            assert codec.decode(old) == Row(1, "old")
        codec.raw_decode.__globals__["fields_of"] = refusing("fields_of")
        assert codec.decode(old) == Row(1, "old")


def change_flatbuffers() -> None:
    codec = serializer(FlatBuffers[Row])
    load_one, dump = codec.rewriter(["id"], ["id"]) or pytest.fail("there is none")
    one = load_one(codec.encode(ROW))
    one.id += 1
    assert codec.decode(dump(one)) == replace(ROW, id=ROW.id + 1)


def view_flatbuffers() -> None:
    codec = serializer(FlatBuffersView[Row])
    view = codec.decode(serializer(FlatBuffers[Row]).encode(ROW))
    for name in ("id", "name", "city", "scores", "tags"):
        assert getattr(view, name) == getattr(ROW, name)
    assert view.parts[0].price == 1.5
    assert view.main.name == "m"
    with Generation.current.disarmed():  # an object is made of it as of any table, whatever its layout
        assert load(view) == ROW
    assert serializer(FlatBuffersView[list[Row]]).decode(serializer(FlatBuffers[list[Row]]).encode([ROW]))[0].id == 7


def read_and_write_dicts() -> None:
    round_trip(FlatBuffers[Row], ROW, TURNS)


def filter_rows() -> None:
    with table() as rows:
        rows.put_many((row.id, row) for row in ROWS)
        assert list(rows.where(lambda row: row.name == "name 3").keys()) == [3]
        assert list(
            rows.where(lambda row: row.city == "Bonn" or (row.main is not None and row.main.price > 18)).fields(
                lambda row: row.id
            )
        ) == [
            *range(0, 20, 2),
            19,
        ]


def filter_columns() -> None:
    """Of single fields no record is read as a whole, which is the general form of that."""
    with table(FlatBuffers[Row]) as rows:
        rows.put_many((row.id, row) for row in ROWS)
        storage = rows._storage
        chosen = rows.where(lambda row: row.name == "name 3").fields(lambda row: (row.id, row.city))
        assert list(chosen) == [(3, None)]  # new functions are compared with what they give, of whole records
        storage.load = refusing("load")
        assert list(chosen) == [(3, None)]


def read_points() -> None:
    with table() as rows:
        rows[1] = ROW
        assert rows[1] == rows.get(1) == ROW
        assert rows.get(2, "default") == "default"


def read_single() -> None:
    class Tables(zlmdb.Schema):
        rows: zlmdb.Table[int, Row]

    with zlmdb.open(None, Tables) as db:
        rows = db.auto.rows
        rows[1] = ROW
        with Generation.current.disarmed():  # the first read learns what the others use
            assert rows[1] == ROW
        assert rows[1] == rows.get(1) == ROW
        assert 1 in rows


def write_single() -> None:
    if not COUNTS_REFERENCES:
        pytest.skip("where references are not counted, records are stored in blocks")

    class Tables(zlmdb.Schema):
        rows: zlmdb.Table[int, Row]

    with TemporaryDirectory() as place, zlmdb.open(place, Tables) as db:
        rows = db.auto.rows
        with Generation.current.disarmed():  # the first write learns what the others use
            rows[1] = ROW
        db._open_store.quiet.writes = float("inf")  # else it looks at the file, if the machine was busy
        rows[1] = ROWS[1]
        rows[2] = ROW
        with Generation.current.disarmed():
            assert rows[1] == ROWS[1]
        assert rows[2] == ROW


def write_points() -> None:
    with table() as rows:
        rows[1] = ROW
        rows[1] = ROWS[1]
        assert rows[1] == ROWS[1]


def delete_points() -> None:
    with table() as rows:
        rows.put_many([(row.id, row) for row in ROWS])
        del rows[3]
        rows.change(4, lambda row: None)
        assert len(rows) == 18


def write_many() -> None:
    with table() as rows:
        assert rows.put_many((row.id, row) for row in ROWS) == 20
        assert rows.put_many(((row.id + 20, row) for row in ROWS), append=True) == 20


def write_lists() -> None:
    with table() as rows:
        assert rows.put_many([(row.id, row) for row in ROWS]) == 20
    with table(indexed=True) as rows:
        assert rows.put_many([(row.id, row) for row in ROWS]) == 20
        assert rows.by_name["name 3"].id == 3


def write_indexed() -> None:
    with table(indexed=True) as rows:
        for row in ROWS:
            rows[row.id] = row
        rows[3] = Row(3, "moved", "Rome")
        assert rows.by_name["moved"].city == "Rome"
        assert [key for key, _ in rows.by_city["Rome"]] == [3]


def delete_indexed() -> None:
    with table(indexed=True) as rows:
        for row in ROWS:
            rows[row.id] = row
        del rows[3]
        rows.change(4, lambda row: None)
        assert "name 3" not in rows.by_name
        assert len(rows) == 18


def change_selected() -> None:
    with table(indexed=True) as rows:
        rows.put_many([(row.id, replace(row)) for row in ROWS])
        assert rows.where(lambda row: row.city == "Bonn").change(lambda row: replace(row, city="Rome")) == 10
        with rows.where(lambda row: row.id > 14).edit() as found:
            for row in found:
                row.name = row.name.upper()
        assert rows.by_name["NAME 16"].city == "Rome"


def delete_selected() -> None:
    with table(indexed=True) as rows:
        rows.put_many([(row.id, row) for row in ROWS])
        assert rows.where(lambda row: row.city == "Bonn").delete() == 10
        assert not rows.by_city["Bonn"]


def look_up() -> None:
    with table(indexed=True) as rows:
        rows[1] = ROW
        assert rows.by_name["ann"] == ROW


class Few(zlmdb.Table[int, Row]):
    by_name = zlmdb.Index[str]("name", where=lambda row: row.id > 1 and row.city in ("Rome", "Oslo"))


class FewRows(zlmdb.Schema):
    few: Few


def write_partial() -> None:
    with zlmdb.open(None, FewRows) as db, db.write() as t:
        t.few[1] = Row(1, "a", "Rome")
        t.few[2] = Row(2, "b", "Oslo")


class Known(zlmdb.Table[int, Row]):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_city = zlmdb.Index[str]("city")


class KnownRows(zlmdb.Schema):
    known: Known


def ask_again() -> None:
    with zlmdb.open(None, KnownRows) as db:
        with db.write() as t:
            t.known.put_many([(row.id, row) for row in ROWS])
        with db.read() as t:
            for number in range(3, 6):
                name = f"name {number}"
                found = t.known.where(lambda row: row.name == name)  # noqa: B023
                with Generation.current.disarmed():
                    found.all()  # what is new is planned
                assert found.all() == [(number, ROWS[number])]


@dataclass
class Town:
    name: str


@dataclass
class Visit:
    town: int
    year: int


class Towns(zlmdb.Table[int, Town]):
    """Towns."""


class Visits(zlmdb.Table[int, Visit]):
    by_town = zlmdb.Index[int]("town")


class Travels(zlmdb.Schema):
    towns: Towns
    visits: Visits


def ask_within() -> None:
    with zlmdb.open(None, Travels) as db:
        with db.write() as t:
            t.towns.update({1: Town("Rome"), 2: Town("Oslo")})
            t.visits.update({number: Visit(1, number) for number in range(9)})

        def ask(t: Any) -> Any:
            return t.towns.fields(
                lambda k, town: (
                    t.visits.by_town[k].limit(2, 1).fields(lambda v: (v.year, town.name)).all(),
                    t.visits.by_town[k].keys().first(),
                    t.visits.by_town[k].fields(lambda v: v.year).sum(),
                )
            ).all()

        with Generation.current.disarmed(), db.read() as t:
            ask(t)  # the first records are compared with what the function gives
        with db.read() as t:
            assert ask(t) == [([(1, "Rome"), (2, "Rome")], 0, 36), ([], None, 0)]


class Carried(zlmdb.Table[int, Visit]):
    by_town = zlmdb.Index[int]("town", carries=("year",))


class Carrying(zlmdb.Schema):
    carried: Carried


def ask_entries() -> None:
    with zlmdb.open(None, Carrying) as db:
        with db.write() as t:
            t.carried.update({number: Visit(1, number) for number in range(9)})

        def ask(t: Any) -> Any:
            return t.carried.where(lambda v: v.town == 1).fields(lambda v: (v.town, v.year)).all()

        with Generation.current.disarmed(), db.read() as t:
            ask(t)  # the first records are compared with what the function gives
        with db.read() as t:
            assert ask(t) == [(1, number) for number in range(9)]


def ask_an_entry() -> None:
    with zlmdb.open(None, Carrying) as db:
        with db.write() as t:
            t.carried.update({number: Visit(1, number) for number in range(9)})

        def ask(t: Any) -> Any:
            return t.carried.where(lambda v: v.town == 1).limit(2, skip=1).count()

        with Generation.current.disarmed(), db.read() as t:
            ask(t)
        with db.read() as t:
            assert ask(t) == 2


CASES: dict[str, list[Callable[[], None]]] = {
    "CBOR": [write_cbor],
    "CBOR of floats": [write_cbor_of_floats],
    "FlatBuffers reader": [read_and_write_flatbuffers],
    "FlatBuffers reader of a layout": [read_old_flatbuffers],
    "FlatBuffers splices": [change_flatbuffers],
    "FlatBuffers views": [view_flatbuffers],
    "FlatBuffers writer": [read_and_write_flatbuffers],
    "JSON": [write_json],
    "bulk writes": [write_many],
    "bulk writes of lists": [write_lists],
    "changes of selections": [change_selected],
    "check": [check_values],
    "deletions of selections": [delete_selected],
    "index condition": [write_partial],
    "indexed deletions": [delete_indexed],
    "indexed writes": [write_indexed],
    "key decoding": [decode_keys],
    "key encoding": [encode_keys],
    "loading": [load_objects],
    "look-ups": [look_up],
    "nested query": [ask_within],
    "pickling": [read_and_write_pickles],
    "point deletions": [delete_points],
    "point reads": [read_points],
    "point writes": [write_points],
    "query list": [ask_again, ask_an_entry],
    "query loop": [filter_rows, filter_columns],
    "ranges": [ask_again],
    "reader of dicts": [read_and_write_dicts],
    "single reads": [read_single],
    "single writes": [write_single],
    "unpickling": [read_and_write_pickles],
    "writer of dicts": [read_and_write_dicts],
}


# Functions without a way out ----------------------------------------------------------------------------------------


def refusing(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise Fallback(f"the general form {name} was called: {args!r}")

    return refuse


class Fallback(BaseException):
    """What a general form raises: no `except Exception` hides it."""


class Generation:
    """What is generated while it is watched, by recipe, with general forms that raise; and what of it has run."""

    current: Generation

    def __init__(self) -> None:
        self.made: dict[str, dict[str, CodeType]] = {}
        self.ran: set[CodeType] = set()
        self.real = Recipe.functions
        self.armed = True

    @contextmanager
    def disarmed(self) -> Iterator[None]:
        """General forms do their work inside."""
        self.armed = False
        yield
        self.armed = True

    def refusing(self, name: str, thing: Any) -> Any:
        refuse = refusing(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return refuse(*args, **kwargs) if self.armed else thing(*args, **kwargs)

        return call

    def functions(self, recipe: Recipe, subject: str, source: str, names: Any, /, **classes: Any) -> dict[str, Any]:
        given = {
            name: self.refusing(name, thing) if name.startswith(recipe.general) else thing
            for name, thing in names.items()
        }
        self.look(recipe, source, names, {**recipe.classes, **classes})
        space = self.real(recipe, subject, source, given, **classes)
        filename = space["__generated__"].filename
        for name, thing in list(space.items()):
            code = getattr(thing, "__code__", None)
            if getattr(code, "co_filename", "") != filename:  # PyPy has built-in code, too
                continue
            if name.startswith(recipe.general):
                space[name] = self.refusing(name, thing)
            else:
                self.made.setdefault(recipe.what, {})[f"{subject}: {name}"] = code
        return space

    def look(self, recipe: Recipe, source: str, names: Any, classes: dict[str, Any]) -> None:
        """Whether the names are those that the source uses, and what it takes attributes of has a class to check."""
        for variable in ("self", "txn", "table", "self._raw"):
            if re.search(rf"\b{re.escape(variable)}\.", source):
                assert variable in classes, f"{recipe.what}: say of which class {variable} is"
        assert not unknown_names(source) - set(names)

    def idle(self, what: str) -> set[str]:
        """The functions of a recipe that have not run, whatever the type that they are of."""
        ran = {kind_of(name) for name, code in self.made[what].items() if code in self.ran}
        return {name for name in self.made[what] if kind_of(name) not in ran}


def unknown_names(source: str) -> set[str]:
    """The names that no function of *source* binds, and Python does not know."""
    if sys.implementation.name != "cpython":
        return set()  # symtable is a module of CPython
    import symtable

    top = symtable.symtable(source, "<source>", "exec")
    known = {*vars(builtins), *(symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned())}
    found: set[str] = set()
    tables = list(top.get_children())
    while tables:
        table = tables.pop()
        found.update(symbol.get_name() for symbol in table.get_symbols() if symbol.is_global())
        tables += table.get_children()
    return found - known


def kind_of(name: str) -> str:
    """``read`` for ``Row: read__Row``."""
    name = name.partition(": ")[2] if ": " in name else name
    return name if name.startswith("__") else name.partition("__")[0]


@pytest.fixture
def generation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Generation]:
    watched = Generation.current = Generation()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            watched.ran.add(frame.f_code)

    def functions(recipe: Recipe, subject: str, source: str, names: Any, /, **classes: Any) -> dict[str, Any]:
        return watched.functions(recipe, subject, source, names, **classes)

    monkeypatch.setattr(Recipe, "functions", functions)
    before = sys.getprofile()
    sys.setprofile(profile)
    yield watched
    sys.setprofile(before)


@pytest.mark.parametrize("what", RECIPES)
def test_generated_functions_need_no_general_form_in_the_ordinary_case(what: str, generation: Generation) -> None:
    assert what in CASES, "a new recipe: add its ordinary case"
    for case in CASES[what]:
        case()
    assert generation.made[what]
    assert not generation.idle(what)


def test_no_case_is_left_over() -> None:
    assert sorted(CASES) == RECIPES


# Mistakes in templates ------------------------------------------------------------------------------------------------


class Point:
    __slots__ = ("x",)

    y = 1

    def z(self) -> None: ...


POINTS = Recipe("test of points", self=Point)
Recipe.known.pop("test of points")


def of_points(body: str, **names: Any) -> Any:
    return POINTS.functions("body", f"def function(self, txn=None):\n    {body}\n", names)["function"]


def test_a_template_may_use_what_the_class_has() -> None:
    point = Point()
    point.x = 2  # type: ignore[attr-defined]  # a slot
    assert of_points("self.z(); return self.x + self.y + given", given=3)(point) == 6


@pytest.mark.parametrize("body", ["return self.w", "self.w = 1", "self.w.x += 1", "return [self.w for _ in 'ab']"])
def test_a_template_that_names_what_the_class_does_not_have_is_refused(body: str) -> None:
    with pytest.raises(
        TemplateError, match=r"<zlmdb test of points of body, \d+> uses self\.w, which Point does not have"
    ):
        of_points(body)


@pytest.mark.parametrize("body", ["return wrong(self)", "return [wrong for _ in 'ab']", "return lambda: wrong.real"])
def test_a_template_that_names_what_it_is_not_given_is_refused(body: str) -> None:
    with pytest.raises(TemplateError, match="uses wrong, which are not among its names"):
        of_points(body)


@pytest.mark.parametrize(
    "body", ["return 'self.w'", "return myself.w", "return given.self.w", 'return "a self.w, \\"self.w"']
)
def test_what_only_looks_like_an_attribute_is_none(body: str) -> None:
    of_points(body, myself=1, given=2)


def test_an_engine_is_not_asked_for_what_it_cannot_do() -> None:
    with pytest.raises(TemplateError, match=r"uses txn\.wrong, which Transaction does not have"):
        POINTS.functions("body", "def function(txn):\n    txn.wrong()\n", {}, txn=zlmdb.Transaction)


WRONG = [
    (points, "_READING", "self._reader", "self._author", "self._author"),
    (points, "_READING", "load(data)", "lode(data)", "lode"),
    (points, "_WRITING", "txn._puts", "txn._put", "txn._put"),
    (indexwrites, "_STORING", "self._half_written", "self._remove_now", "self._remove_now"),
    (indexwrites, "_STORING", "growing[0]", "grown[0]", "grown"),
    (indexwrites, "_REMOVING", "self._writer", "self._author", "self._author"),
    (indexview, "_FINDING", "table._db", "table.db", "table.db"),
]


@pytest.mark.parametrize(("module", "template", "right", "wrong", "name"), WRONG, ids=[case[-1] for case in WRONG])
def test_a_wrong_name_in_a_template_is_an_error_and_no_slow_answer(
    module: Any, template: str, right: str, wrong: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = getattr(module, template)
    assert right in source
    monkeypatch.setattr(module, template, source.replace(right, wrong))

    def use() -> None:
        for case in (write_points, write_indexed, delete_indexed, look_up):
            case()

    with pytest.raises(TemplateError, match=re.escape(f"uses {name}, which")):
        use()


# Lines in tracebacks --------------------------------------------------------------------------------------------------


def generated_frames(error: BaseException) -> dict[str, str]:
    """The lines of generated functions in the traceback, by their file names."""
    lines = traceback.extract_tb(error.__traceback__)
    return {line.filename: str(line.line) for line in lines if line.filename.startswith("<zlmdb")}


def test_tracebacks_show_the_right_lines_of_two_tables_at_once() -> None:
    first = POINTS.functions("one", "def function(value):\n    a = 1\n    return value.first\n", {})["function"]
    second = POINTS.functions("one", "def function(value):\n    b = 1\n    return value.second\n", {})["function"]
    for function, line in [(first, "return value.first"), (second, "return value.second")] * 2:
        with pytest.raises(AttributeError) as caught:
            function(1)
        assert list(generated_frames(caught.value).values()) == [line]
        assert inspect.getsource(function).splitlines()[-1].strip() == line


def test_a_traceback_through_a_table_shows_its_own_lines() -> None:
    class Texts(zlmdb.Table[str, str]): ...

    class Numbers(zlmdb.Table[UUID, str]): ...

    class Tables(zlmdb.Schema):
        texts: Texts
        numbers: Numbers

    with zlmdb.open(None, Tables) as db, db.read() as t:
        for rows, call in ((t.texts, "get(key.encode(), None"), (t.numbers, "get(key.int.to_bytes(16, 'big'), None")):
            with pytest.raises(zlmdb.EncodeError) as caught:
                rows[3.5]  # type: ignore[index]  # that is what is refused
            lines: list[str] = []
            cause: Any = caught.value
            while cause is not None:
                lines += generated_frames(cause).values()
                cause = cause.__context__
            assert any(call in line for line in lines)


# Life of a source -----------------------------------------------------------------------------------------------------


Key = tuple[int, int, int, int, int]  # no other table has it, nor its index: equal sources are compiled once


def sources() -> set[str]:
    for _ in range(3):  # what PyPy collects, it finalizes later
        gc.collect()
    return {name for name in linecache.cache if name.startswith("<zlmdb")}


def test_a_source_lives_as_long_as_its_functions() -> None:
    before = sources()
    function = of_points("return 1")
    (added,) = sources() - before
    assert linecache.getline(added, 2) == "    return 1\n"
    linecache.checkcache()
    assert added in linecache.cache
    del function
    assert sources() <= before  # those of other tests may go meanwhile


def test_a_source_lives_as_long_as_a_traceback_through_it() -> None:
    before = sources()
    with pytest.raises(ZeroDivisionError) as caught:
        of_points("return 1 / 0")(None)
    gc.collect()
    assert list(generated_frames(caught.value).values()) == ["return 1 / 0"]
    del caught
    assert sources() <= before  # those of other tests may go meanwhile


def test_a_cleared_cache_of_lines_is_no_matter() -> None:
    function = of_points("return 'cleared'")
    linecache.clearcache()
    del function
    gc.collect()


def test_a_source_that_goes_while_the_lines_are_checked_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a debugger and doctest check all lines: a collection may come in between."""

    class Entry(tuple[Any, ...]):
        def __len__(self) -> int:
            functions.clear()
            gc.collect()
            return 4

    monkeypatch.setitem(linecache.cache, "first", Entry((1, None, [], "first")))  # type: ignore[arg-type]
    functions = [of_points("return 'gone meanwhile'")]  # its lines are looked at after those
    linecache.checkcache()
    assert functions == []
    of_points("return 'the next one'")
    assert not [name for name in sources() if "gone meanwhile" in "".join(linecache.getlines(name))]


def test_sources_go_with_the_tables_that_they_are_for() -> None:
    before, one = sources(), (1,) * 5

    def use() -> set[str]:
        @dataclass
        class Own:
            id: int
            name: str
            scores: dict[str, float]

        class Rows(zlmdb.Table[Key, FlatBuffers[Own]]):
            by_name = zlmdb.UniqueIndex[tuple[str, int, int]]("name", "id", "id")

        class Tables(zlmdb.Schema):
            rows: Rows

        with zlmdb.open(None, Tables) as db, db.write() as t:
            t.rows.put_many([((n, n, n, n, n), Own(n, f"n{n}", {"a": 0.5})) for n in range(TURNS)])
            t.rows[one] = Own(1, "other", {})
            assert t.rows.by_name["other", 1, 1] == t.rows[one]
            assert list(t.rows.where(lambda row: row.name == "other").keys()) == [one]
            del t.rows[one]
            return sources() - before

    kinds = {re.sub(r"^<zlmdb (.*?) of .*$", r"\1", name) for name in use()}
    assert kinds >= {
        "point reads",
        "indexed writes",
        "indexed deletions",
        "look-ups",
        "query loop",
        "FlatBuffers reader",
    }
    assert sources() <= before


def test_equal_sources_are_compiled_once() -> None:
    one, other = of_points("return given", given=1), of_points("return given", given=2)
    assert one.__code__ is other.__code__
    assert (one(None), other(None)) == (1, 2)


def test_values_of_expressions() -> None:
    assert value_of("value + x", {"x": 1}, 2) == 3


def test_lines_of_a_source_are_indented_as_the_blocks_they_are_in() -> None:
    source = Source()
    with source.block("def f(x):"), source.block("if x:"):
        source.add("return 1", "return 2")
    source.add("y = 3")
    assert str(source) == "def f(x):\n    if x:\n        return 1\n        return 2\ny = 3\n"


class Doubles:
    def double(self) -> int:
        """Twice."""
        return 0


def waiting(*, patient: bool) -> tuple[list[int], Any]:
    """A class whose method `double` is not generated yet, and a list that is longer when it was."""
    calls: list[int] = []

    class Made(Doubles): ...

    def make() -> dict[str, Any]:
        calls.append(1)
        return {"double": lambda self: 2}

    Methods(("double",), make, patient=patient).put(Made, Doubles)
    return calls, Made


def test_methods_are_generated_once_when_first_used() -> None:
    calls, made = waiting(patient=False)
    assert (calls, made.double.__doc__) == ([], "Twice.")
    kept = made().double
    assert (kept(), kept(), made().double()) == (2, 2, 2)
    assert (calls, made.double.__doc__) == ([1], "Twice.")


def test_a_method_taken_out_of_a_loop_is_the_generated_one() -> None:
    _, made = waiting(patient=False)
    assert made().double.__func__ is vars(made)["double"]


def test_patient_methods_are_generated_for_the_second_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codegen, "PATIENCE", 1)
    calls, made = waiting(patient=True)
    kept = made().double
    assert (made().double(), calls, made.double.__doc__) == (0, [], "Twice.")
    assert (kept(), kept(), made().double()) == (2, 2, 2)
    assert (calls, made.double.__doc__) == ([1], "Twice.")


def test_methods_that_a_class_overrides_are_its_own() -> None:
    class Own(Doubles):
        def double(self) -> int:
            return 4

    Methods(("double",), dict).put(Own, Doubles)
    assert Own().double() == 4


@pytest.mark.parametrize("body", ["return self.nam, self.name", "return self.name, self.nam", "return self.nam"])
def test_a_name_with_which_a_longer_one_begins_is_found(body: str) -> None:
    class Named:
        name = ""

    with pytest.raises(TemplateError, match=r"uses self\.nam, which .*Named does not have"):
        POINTS.functions("body", f"def function(self, nam=None):\n    nam.nam\n    {body}", {}, self=Named)


def test_a_name_that_is_only_the_beginning_of_another_one_is_none() -> None:
    class Named:
        name = ""

    POINTS.functions("body", "def function(self, given):\n    given.nam; self.name", {}, self=Named)
