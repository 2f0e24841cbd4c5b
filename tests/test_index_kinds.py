"""Every kind of index, over the list of `index_kinds`: each way to write keeps it, and it changes no answer."""

from __future__ import annotations

import io
import types
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Callable, Literal, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from tests.index_kinds import KINDS, ROWS, Home, Kind, Level, Row
from zlmdb import desc

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python


def schema_of(*kinds: Kind, model: Any = Row) -> type[zlmdb.Schema]:
    """A schema with the table ``rows`` that has the indexes of *kinds*, and ``bare``, which has none."""

    def body(names: dict[str, Any]) -> None:
        names["__module__"] = __name__
        for number, kind in enumerate(kinds):
            names[f"by{number}"] = kind.declare()

    base: Any = zlmdb.Table[int, model]
    rows = types.new_class("Rows", (base,), {}, body)
    annotations = {"rows": rows, "bare": base}
    return types.new_class(
        "Kinds", (zlmdb.Schema,), {}, lambda names: names.update(__module__=__name__, __annotations__=annotations)
    )


ALL = schema_of(*KINDS)
EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


def some_rows(count: int = 300) -> dict[int, Row]:
    """Rows of which each value of each field is in a few."""
    return {
        n: Row(
            f"name {n % 101}" if n % 9 else "A",
            ["a", "b", "A"][: n % 29] if n % 11 == 0 else [f"t{n}", f"t{n}"],
            frozenset([n, n + 1]) if n % 3 else None,
            n % 60,
            ["open", "done", "late"][0 if n % 7 == 0 else 1 if n % 2 else 2],
            Home(f"city {n % 50}" if n % 8 else "Rome", n % 40 if n % 4 else None) if n % 5 else None,
            n % 70 if n % 3 else None,
            [Level.LOW, Level.HIGH, Level.MIDDLE][0 if n % 10 else n % 3],
            ["big", "small", None][n % 5 % 3],
        )
        for n in range(count)
    }


# -- the planner -------------------------------------------------------------------------------------------------------


@pytest.mark.once  # the same on every interpreter
@EACH_KIND
def test_the_planner_uses_it_for_what_it_serves(kind: Kind) -> None:
    db: Any = zlmdb.open(None, schema_of(kind))
    with db.write() as t:
        t.rows.put_many(list(some_rows().items()))
        t.bare.put_many(list(some_rows().items()))
    with db.read() as t:
        for number, ask in enumerate(kind.asks):
            plan = t.rows.where(ask).explain()
            assert "index by0" in str(plan), number  # used, or rejected after its entries were counted
            assert list(t.rows.where(ask)) == list(t.bare.where(ask)), number
        for number, order in enumerate(kind.orders):
            plan = t.rows.order_by(order).limit(5).explain()
            assert plan.ordered, (number, str(plan))
            for backwards in (False, True):
                of = [list(one.order_by(order, reverse=backwards).limit(9)) for one in (t.rows, t.bare)]
                assert of[0] == of[1], number
        for order in kind.never_orders:
            told = t.rows.order_by(order).limit(5).explain().order  # by its first parts at most
            assert not (told or "").endswith("from the index")
            assert list(t.rows.order_by(order).limit(5)) == list(t.bare.order_by(order).limit(5))
        for number, ask in enumerate(kind.never):
            assert "by0" not in t.rows.where(ask).explain().indexes, number
            assert list(t.rows.where(ask)) == list(t.bare.where(ask)), number
    db.close()


CAPTURING: list[Callable[[Any], Callable[[Row], Any]]] = [
    lambda n: lambda r: f"t{n}" in r.tags,
    lambda n: lambda r: any(tag == f"t{n}" for tag in r.tags),
    lambda n: lambda r: r.marks is not None and any(mark >= n + 140 for mark in r.marks),
    lambda n: lambda r: r.name.casefold() == f"name {n}",
    lambda n: lambda r: r.home is not None and r.home.city == f"city {n}",
    lambda n: lambda r: r.state == ["open", "done", "late"][n % 3] and r.price == n,
    lambda n: lambda r: r.due == n % 50 and r.price >= n % 3 and r.state in ("open", "late"),
    lambda n: lambda r: r.price > n % 3 and f"t{n}" in r.tags,
    lambda n: lambda r: r.price <= n - 2,
    lambda n: lambda r: r.price >= 60 - n,
]


@pytest.mark.parametrize("kind", [None, *KINDS], ids=["all", *[kind.name for kind in KINDS]])
def test_each_captured_value_has_its_own_answer(kind: Optional[Kind]) -> None:
    """Plans are kept by the code of a function: what a plan may use can depend on the values."""
    rows = some_rows(150)
    db: Any = zlmdb.open(None, ALL if kind is None else schema_of(kind))
    with db.write() as t:
        t.rows.put_many(list(rows.items()))
    with db.read() as t:
        for make in CAPTURING:
            for n in (3, 4, 0, 3):
                condition = make(n)
                assert list(t.rows.where(condition)) == [pair for pair in rows.items() if condition(pair[1])]
    db.close()


# -- every way to write ------------------------------------------------------------------------------------------------

KEYS = st.integers(0, 7)
ITEMS = st.lists(st.tuples(KEYS, ROWS), max_size=5)


def put(table: Any, items: Any) -> None:
    for key, row in items:
        table[key] = row


def delete(table: Any, items: Any) -> None:
    for key, _ in items:
        table.pop(key, None)


def edit(table: Any, items: Any) -> None:
    for key, row in items:
        if key in table:
            with table.edit(key) as stored:
                stored.tags, stored.marks, stored.home, stored.due = row.tags, row.marks, row.home, row.due


def edit_selection(table: Any, items: Any) -> None:
    with table.where(lambda r: r.price > 0).edit() as rows:
        for row in rows:
            row.tags = row.tags[1:]
            row.name = row.name.swapcase()


def change_selection(table: Any, items: Any) -> None:
    table.where(lambda r: r.state == "open").change(lambda r: replace(r, state="done", tags=[*r.tags, "b"], due=None))


def delete_selection(table: Any, items: Any) -> None:
    table.where(lambda r: "a" in r.tags).delete()


def bulk(table: Any, items: Any) -> None:
    table.put_many(items)


def append(table: Any, items: Any) -> None:
    last = max(table, default=0)
    table.put_many([(last + number, row) for number, (_, row) in enumerate(items, 1)], append=True)


def clear(table: Any, items: Any) -> None:
    table.clear()


WRITES = [put, delete, edit, edit_selection, change_selection, delete_selection, bulk, append, clear]


STEP = st.tuples(st.sampled_from(WRITES), ITEMS, st.booleans(), st.sampled_from(KINDS))


@settings(max_examples=settings.default.max_examples // 3)  # each asks a hundred questions
@given(st.lists(STEP, max_size=6))
def test_it_is_kept_by_each_way_to_write_and_changes_no_answer(steps: list[tuple[Any, Any, bool, Kind]]) -> None:
    db: Any = zlmdb.open(None, ALL)
    for write, items, undone, kind in steps:
        with db.write() as t:
            for table in (t.rows, t.bare):
                write(table, items)
            if undone:
                t.txn.abort()
            else:
                same_answers(t, kind)
        assert db.check().ok
    with db.read() as t:
        for kind in KINDS:
            same_answers(t, kind)
    db.close()


def same_answers(t: Any, kind: Kind) -> None:
    assert list(t.rows) == list(t.bare)
    for ask in (*kind.asks, *kind.never):
        assert list(t.rows.where(ask)) == list(t.bare.where(ask))
    for order in kind.orders:
        assert list(t.rows.order_by(order).limit(3)) == list(t.bare.order_by(order).limit(3))


# -- the life of an index ----------------------------------------------------------------------------------------------


@pytest.fixture(params=["tables", pytest.param("classic", marks=pytest.mark.once)])  # it changes no entry
def make_db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[Any], Any]]:
    """Opens a file of each layout, the same in every call."""
    opened: list[Any] = []

    def make(schema: Any) -> Any:
        for db in opened:
            db.close()
        opened[:] = [zlmdb.open(str(tmp_path / "db"), schema, layout=request.param, durability="none")]
        return opened[0]

    yield make
    for db in opened:
        db.close()


@EACH_KIND
def test_it_is_built_for_the_records_that_there_are(
    make_db: Callable[..., Any], check_indexes: Callable[..., None], kind: Kind
) -> None:
    db = make_db(schema_of())
    with db.write() as t:
        t.rows.put_many(list(some_rows(40).items()))
    db = make_db(schema_of(kind))
    with db.write() as t:
        check_indexes(t.rows)
        ((storage, handle),) = t.rows._indexes
        entries = storage.storage.any(t.rows._cursor(handle))
        assert entries
    with db.read() as t:
        check_indexes(t.rows)
    assert db.check().ok
    db = make_db(schema_of(kind))  # nothing is built again
    with db.read() as t:
        check_indexes(t.rows)


@pytest.mark.once  # the same on every interpreter
@EACH_KIND
def test_a_program_that_lacks_it_or_has_another_definition_may_not_write(
    make_db: Callable[..., Any], kind: Kind
) -> None:
    db = make_db(schema_of(kind))
    other = next(one for one in KINDS if one is not kind)
    db = make_db(schema_of())
    with pytest.raises(zlmdb.IndexNotAttached), db.write() as t:
        t.rows[1] = Row("a")
    db = make_db(schema_of(other))  # another definition under the same name: built again, as the newer one
    with db.write() as t:
        t.rows[1] = Row("a")
    db = make_db(schema_of(kind))
    with pytest.raises(zlmdb.Error, match="newer|declares"), db.write() as t:
        t.rows[1] = Row("a")


@dataclass
class OldRow:
    """As records were before: without some fields, and with another name of one."""

    title: str
    tags: list[str]
    price: int
    status: str


@dataclass
class NewRow:
    name: Annotated[str, zlmdb.Was("title")]
    tags: list[str] = field(default_factory=list)
    marks: Optional[frozenset[int]] = None
    price: int = 0
    state: Annotated[str, zlmdb.Was("status")] = "open"
    home: Optional[Home] = None
    due: Optional[int] = None
    level: Level = Level.LOW
    size: Optional[Literal["big", "small"]] = None


@pytest.mark.once  # the same on every interpreter
@EACH_KIND
def test_it_is_built_for_records_of_an_older_shape(make_db: Callable[..., Any], kind: Kind) -> None:
    db = make_db(schema_of(model=OldRow))
    with db.write() as t:
        for table in (t.rows, t.bare):
            table.put_many([(n, OldRow(row.name, row.tags, row.price, row.state)) for n, row in some_rows(60).items()])
    db = make_db(schema_of(kind, model=NewRow))
    with db.read() as t:
        assert t.rows[1] == NewRow("name 1", ["t1", "t1"], None, 1, "done")
        for ask in (*kind.asks, *kind.never):
            assert list(t.rows.where(ask)) == list(t.bare.where(ask))
        for order in kind.orders:
            assert list(t.rows.order_by(order).limit(9)) == list(t.bare.order_by(order).limit(9))
    with db.write() as t:
        t.rows[1] = NewRow("A", ["a"], frozenset([2]), 1, "open", Home("Rome", 1), 3)
    assert db.check().ok


def test_a_renamed_field_takes_its_indexes_along(make_db: Callable[..., Any]) -> None:
    """Those of the field alone; a condition is another one, and its index is built again."""

    def kinds(name: str, state: str) -> list[Kind]:
        made: list[Callable[[], Any]] = [
            lambda: zlmdb.Index[str](name),
            lambda: zlmdb.Index[tuple[str, int]](f"{name}.casefold()", desc("price")),
            lambda: zlmdb.Index[int]("price", carries=(name,)),
            lambda: zlmdb.Index[int]("price", where=lambda r: getattr(r, state) == "open"),
        ]
        return [Kind(str(number), one, ()) for number, one in enumerate(made)]

    db = make_db(schema_of(*kinds("title", "status"), model=OldRow))
    with db.write() as t:
        t.rows.put_many([(n, OldRow(row.name, row.tags, row.price, row.state)) for n, row in some_rows(60).items()])
    db = make_db(schema_of(*kinds("name", "state"), model=NewRow))
    with db.read() as t:
        rows = list(t.rows.items())
        found = t.rows.where(lambda r: r.price == 7).fields(lambda r: r.name)
        assert (found.all(), found.explain().covered) == (["name 7"], True)
        found = t.rows.where(lambda r: r.state == "open" and r.price == 7).keys()
        assert found.all() == [7]
        assert "index by3" in str(found.explain())
        assert [t.rows.by0[row.name].count() > 0 for _, row in rows] == [True] * 60
    assert db.check().ok


@pytest.mark.once  # the same on every interpreter
@EACH_KIND
def test_it_is_built_again_for_what_salvage_saves(tmp_path: Path, kind: Kind) -> None:
    db: Any = zlmdb.open(str(tmp_path / "db"), schema_of(kind))
    with db.write() as t:
        t.rows.put_many(list(some_rows(40).items()))
    db.close()
    zlmdb.Database.salvage(str(tmp_path / "db"), str(tmp_path / "saved"))
    with zlmdb.open(str(tmp_path / "saved"), schema_of(kind)) as db:
        assert db.check().ok
        with db.read() as t:
            assert dict(t.rows) == some_rows(40)
            assert t.rows.by0.select().count() > 0


@pytest.mark.once  # the same on every interpreter
@EACH_KIND
def test_a_dump_and_a_check_without_the_schema_know_it(tmp_path: Path, kind: Kind) -> None:
    db: Any = zlmdb.open(str(tmp_path / "one"), schema_of(kind))
    with db.write() as t:
        t.rows.put_many(list(some_rows(40).items()))
    stream = io.BytesIO()
    db.dump(stream)
    db.close()
    with zlmdb.open(str(tmp_path / "one"), zlmdb.Schema) as bare:
        report = bare.check()
        assert report.ok, report
        assert not any("does not know" in note for note in report.notes)
    stream.seek(0)
    with zlmdb.open(str(tmp_path / "two"), zlmdb.Schema) as two:
        two.load(stream)
    with zlmdb.open(str(tmp_path / "two"), schema_of(kind)) as db:
        assert db.check().ok
        with db.read() as t:
            assert dict(t.rows) == some_rows(40)


@pytest.mark.once  # the same on every interpreter
def test_an_index_of_a_kind_that_only_a_newer_version_knows_is_no_problem(tmp_path: Path) -> None:
    kind = Kind("by the last letters", NewerIndex, ())
    db: Any = zlmdb.open(str(tmp_path / "one"), schema_of(kind))
    with db.write() as t:
        t.rows.put_many(list(some_rows(40).items()))
    db.close()
    with zlmdb.open(str(tmp_path / "one"), zlmdb.Schema) as bare:
        report = bare.check()
        assert report.ok, report.problems
        assert [note for note in report.notes if "by0" in note and "'backwards'" in note]


class NewerIndex(zlmdb.Index[str]):
    """An index of texts that are read from their end."""

    def __init__(self) -> None:
        super().__init__("name")

    def _definition(self, model: Any) -> dict[str, Any]:
        return {**super()._definition(model), "backwards": True}

    def _getter(self, model: Any) -> Callable[[Any], Any]:
        return lambda row: row.name[::-1]

    def _attribute(self, model: Any) -> None:
        return None
