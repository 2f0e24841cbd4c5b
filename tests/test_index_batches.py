"""Building an index of a large table in batches: who may do what in between, and what becomes of it.

A batch is a few records here.
"""

from __future__ import annotations

import logging
import multiprocessing
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

import pytest

import zlmdb
from zlmdb import desc
from zlmdb.schema import indexbatches, indexbuilding
from zlmdb.testing import kill_points

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python

ROWS = 20


@dataclass
class Row:
    name: str
    n: int = 0
    tags: list[str] = field(default_factory=list)
    boss: Optional[int] = None


class Plain(zlmdb.Table[int, Row], feed=True):
    pass


class Before(zlmdb.Schema):
    rows: Plain
    others: zlmdb.Table[str, int]


class Rows(zlmdb.Table[int, Row], feed=True):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_n = zlmdb.Index[int]("n", carries=("boss",))
    by_tag = zlmdb.Index[str]("tags", each=True)
    falling = zlmdb.Index(desc("name"))
    some = zlmdb.Index[str]("name", where=lambda r: r.n > 5)
    two = zlmdb.Index[tuple[str, int]]("name.casefold()", "n")


class After(zlmdb.Schema):
    rows: Rows
    others: zlmdb.Table[str, int]


class Named(zlmdb.Table[int, Row], feed=True):
    by_name = zlmdb.UniqueIndex[str]("name")


class OneName(zlmdb.Schema):
    rows: Named


class Bare(zlmdb.Table[int, Row], name="rows"):
    pass


class Ranked(Bare):
    by_n = zlmdb.Index[int]("n")


class BareStore(zlmdb.Schema):
    rows: Bare


class RankedStore(zlmdb.Schema):
    rows: Ranked


class Stop(Exception):
    pass


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexbuilding, "BATCH", 3)


@pytest.fixture
def path(tmp_path: Path) -> str:
    fill(tmp_path / "db")
    return str(tmp_path / "db")


def fill(path: Path, rows: int = ROWS) -> None:
    with zlmdb.open(path, Before, durability="none") as db, db.write() as t:
        t.rows.put_many([(number, row(number)) for number in range(rows)])


def row(number: int) -> Row:
    return Row(f"Name {number}", number * 7 % 11, [f"t{number % 3}", f"u{number % 5}"], number // 2 or None)


def opened(path: Any, schema: Any = After, **options: Any) -> Any:
    return zlmdb.open(path, schema, durability="none", **options)


def stopping(after: int) -> Callable[[Any], None]:
    """A function of the progress, which stops the build after so many batches."""
    left = [after]

    def told(progress: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Stop

    return told


def half_built(path: Any, schema: Any = After, batches: int = 2, **options: Any) -> Any:
    """An open database whose indexes have the entries of so many batches."""
    db = opened(path, schema, build_indexes=False, **options)
    with suppress(Stop):
        db.build_indexes(progress=stopping(batches))
    return db


def indexes(db: Any) -> tuple[str, ...]:
    found: tuple[str, ...] = db.tables()["rows"].indexes
    return found


# -- what others see --------------------------------------------------------------------------------------------------


def test_an_opening_builds_all_of_it_and_says_so(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "zlmdb"), opened(path, OneName) as db:
        assert indexes(db) == ("by_name",)
        assert db.check().ok
    said = [record.getMessage() for record in caplog.records]
    assert said[0] == "building index rows.by_name: 3 of 20 records"
    assert said[-1] == "index rows.by_name built: 20 records"
    assert len(said) == 7


def test_nobody_reads_it_before_the_last_batch(path: str) -> None:
    with half_built(path) as db:
        assert indexes(db) == ()
        assert db.tables()["rows"].building == ("by_name", "by_n", "by_tag", "falling", "some", "two")
        with db.read() as t:
            asked = t.rows.where(lambda r: r.n == 7)
            assert asked.explain().indexes == ()
            assert asked.keys().all() == [1, 12]
            assert t.rows.where(lambda r: r.n >= 0).count() == ROWS
            for name in ("by_n", "by_name", "by_tag"):
                with pytest.raises(zlmdb.IndexNotBuilt, match="is being built") as raised:
                    getattr(t.rows, name).select().count()
                assert raised.value.index == name
            with pytest.raises(zlmdb.IndexNotBuilt):
                t.rows.by_name["Name 1"]
        with pytest.raises(zlmdb.IndexNotBuilt):
            db.auto.rows.by_name["Name 1"]
        assert db.check().ok
        assert "rows.by_n is being built" in " ".join(db.check().notes)
        with db.read() as t:  # a snapshot keeps what it has
            db.build_indexes()
            assert t.rows.where(lambda r: r.n == 7).explain().indexes == ()
        with db.read() as t:
            asked = t.rows.where(lambda r: r.n == 7)
            assert asked.explain().indexes == ("by_n",)
            assert asked.keys().all() == [1, 12]
            assert t.rows.by_name["Name 1"] == row(1)
        assert db.auto.rows.by_name["Name 1"] == row(1)
        assert len(indexes(db)) == 6
        assert db.check().ok


def test_the_progress_goes_to_the_end(path: str) -> None:
    seen: list[Any] = []
    with opened(path, OneName, build_indexes=False) as db:
        db.build_indexes(progress=seen.append)
        assert [one.done for one in seen] == [3, 6, 9, 12, 15, 18, 20]
        assert {(one.stage, one.total) for one in seen} == {("index rows.by_name", 20)}
        db.build_indexes(progress=lambda one: pytest.fail("there is nothing to build"))


def test_who_opens_to_read_queries_without_it(path: str) -> None:
    half_built(path).close()
    for options in ({"readonly": True}, {"create": False}):
        with opened(path, **options) as db, db.read() as t:
            assert t.rows.where(lambda r: r.n == 7).keys().all() == [1, 12]
            with pytest.raises(zlmdb.IndexNotBuilt):
                t.rows.by_n.select().count()
            if "readonly" in options:
                with pytest.raises(zlmdb.ReadonlyDatabase):
                    db.build_indexes()
        with opened(path, readonly=True) as db:
            assert indexes(db) == ()


def test_one_that_is_declared_later_catches_up_first(path: str) -> None:
    half_built(path, OneName, 3).close()
    seen: list[Any] = []
    with opened(path, build_indexes=False) as db:
        db.build_indexes(progress=seen.append)
        assert db.check().ok
    found = [("by_name" in one.stage, one.done) for one in seen]
    assert [done for both, done in found if not both][-1] == 9
    assert found[-1] == (True, ROWS)
    assert found == sorted(found, key=lambda one: one[1])


def test_small_tables_get_it_at_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexbuilding, "BATCH", ROWS)
    with opened(path, build_indexes=False) as db:
        assert len(indexes(db)) == 6
        assert db.check().ok


# -- writers ----------------------------------------------------------------------------------------------------------


def write(t: Any, chance: random.Random, keys: range) -> None:
    """One of all the ways to write."""
    table, key, other = t.rows, chance.choice(keys), chance.choice(keys)
    name, boss = f"Name {chance.choice(keys)}", chance.choice([None, 1])
    new = Row(name, chance.randrange(11), [f"t{chance.randrange(4)}"], boss)
    ways: list[Callable[[], Any]] = [
        lambda: table.__setitem__(key, new),
        lambda: table.pop(key, None),
        lambda: table.put_new(key, new),
        lambda: table.replace(key, new),
        lambda: table.change(key, lambda old: Row(old.name, old.n + 1, [*old.tags, "z"]), Row("x" * key)),
        lambda: table.put_many([(key, new), (other, Row(f"Other {other}"))]),
        lambda: table.put_many([(max(keys) + 1 + n, Row(f"More {key} {n}")) for n in range(3)], append=True),
        lambda: table.update({key: new, other: Row(f"Third {other}", 7)}),
        lambda: table.where(lambda r: r.n == key % 11).change(lambda r: Row(r.name, 10 - r.n, r.tags)),
        lambda: table.where(lambda r: r.n == key % 11).delete(),
        lambda: table.select(key, key + 3).delete(),
    ]
    if key in table:
        ways.append(lambda: edit(table, key, new))
    if chance.random() < 0.03:
        ways = [table.clear]
    with suppress(zlmdb.ConstraintError, ValueError):
        chance.choice(ways)()


def edit(table: Any, key: int, new: Row) -> None:
    with table.edit(key) as found:
        found.n, found.tags = new.n, new.tags


@pytest.mark.parametrize("layout", ["tables", "classic"])
@pytest.mark.parametrize("seed", range(4))
def test_writers_keep_it_right_while_it_is_built(seed: int, layout: str, tmp_path: Path) -> None:
    """At random, between any two batches, in blocks that commit or abort, with savepoints and iterations."""
    chance = random.Random(f"{seed} {layout}")
    feed = layout == "tables"

    class Plain(zlmdb.Table[int, Row], feed=feed):
        pass

    class Same(Rows, feed=feed):
        pass

    class Old(zlmdb.Schema):
        rows: Plain

    class New(zlmdb.Schema):
        rows: Same

    with zlmdb.open(tmp_path / "db", Old, layout=layout, durability="none") as db, db.write() as t:
        t.rows.put_many([(number, row(number)) for number in range(ROWS)])

    def told(progress: Any) -> None:
        for _ in range(3):
            with suppress(Stop), db.write() as t:
                running = iter(t.rows.items()) if chance.random() < 0.3 else iter(())
                next(running, None)
                for _ in range(3):
                    with suppress(Stop), t.txn.savepoint():
                        write(t, chance, range(ROWS + 5))
                        if chance.random() < 0.1:
                            raise Stop
                if chance.random() < 0.1:
                    raise Stop
        assert db.check().ok

    with opened(tmp_path / "db", New, build_indexes=False) as db:
        try:
            db.build_indexes(progress=told)
        except zlmdb.DuplicateKey:
            with db.read() as t:
                names = [one.name for one in t.rows.values()]
            assert len(set(names)) < len(names)
            assert indexes(db) == ()
        else:
            assert len(indexes(db)) == 6
        assert db.check().ok, db.check().problems
        with db.write() as t:
            t.rows[99] = Row("the last one")
        with db.read() as t:
            keys = t.rows.where(lambda r: r.n == 7).keys().all()
            assert keys == [key for key, one in t.rows.items() if one.n == 7]


def test_a_migration_keeps_it_right(path: str) -> None:
    def step(t: Any) -> None:
        t.rows[0] = Row("first")
        t.rows[ROWS] = Row("last")
        del t.rows[10]

    class Migrated(After):
        migrations = (zlmdb.Migration(1, "step", step),)

    half_built(path).close()
    with opened(path, Migrated, build_indexes=False) as db:
        db.migrate()
        with db.read() as t, pytest.raises(zlmdb.IndexNotBuilt):
            t.rows.by_n.select().count()
        db.build_indexes()
        assert db.check().ok
        with db.read() as t:
            assert t.rows.by_name["last"] == Row("last")


def test_a_migration_that_takes_the_table_builds_all_of_it(path: str) -> None:
    def step(t: Any, old: Any) -> None:
        for key, fields in old.take("rows").items():
            t.rows[key] = Row(**{**fields, "name": fields["name"] + "!"})

    class Migrated(After):
        migrations = (zlmdb.Migration(1, "step", step),)

    half_built(path).close()
    with opened(path, Migrated, build_indexes=False) as db:
        db.migrate()
        assert len(indexes(db)) == 6
        assert db.check().ok
        with db.read() as t:
            assert t.rows.by_name["Name 3!"].n == row(3).n


# -- records that do not fit ------------------------------------------------------------------------------------------


def test_two_records_with_one_key_are_both_named_and_the_file_gets_no_index(path: str) -> None:
    with opened(path, Before) as db, db.write() as t:
        t.rows[17] = Row("Name 5")
    for _ in range(2):
        with pytest.raises(zlmdb.DuplicateKey, match="'Name 5' belongs to the record 5.* 17 has it") as raised:
            opened(path)
        assert (raised.value.key, raised.value.owner, raised.value.index) == ("Name 5", 5, "by_name")
    with opened(path, Before) as db:
        assert indexes(db) == ()
        assert db.check().ok
        with db.write() as t:
            t.rows[17] = Row("Name 17")
    with opened(path) as db:
        assert len(indexes(db)) == 6
        assert db.check().ok


def test_an_error_of_the_index_function_leaves_no_index(path: str) -> None:
    def key(row: Row) -> str:
        if row.name == "Name 13":
            raise RuntimeError("not this one")
        return row.name

    class Failing(zlmdb.Table[int, Row], feed=True):
        by_key = zlmdb.Index[str](key, version=1)

    class Schema(zlmdb.Schema):
        rows: Failing

    with pytest.raises(RuntimeError, match="not this one"):
        opened(path, Schema)
    with opened(path, Before) as db:
        assert indexes(db) == ()
        assert db.check().ok
        with db.write() as t:
            t.rows[1] = Row("one")


def test_a_writer_may_take_the_key_of_a_record_that_the_build_has_not_reached(path: str) -> None:
    """Which is found later; and deleting or changing that record leaves the entry of the writer's."""
    with half_built(path, OneName, 2) as db:  # 0 to 5 have entries
        with db.write() as t:
            with pytest.raises(zlmdb.DuplicateKey):
                t.rows[19] = Row("Name 2")
            t.rows[1] = Row("Name 15")
            t.rows[2] = Row("Name 16")
            t.rows[15] = Row("Name 15", 3)  # nobody knows yet that this was its name
            del t.rows[15]
            t.rows[16] = Row("other")
            with t.rows.edit(17) as found:
                found.name = "Name 15 "
        db.build_indexes()
        with db.read() as t:
            assert t.rows.by_name["Name 15"] == Row("Name 15")
            assert t.rows.by_name.key("Name 16") == 2
        assert db.check().ok
    with opened(path, Before, drop_indexes=True):
        pass
    with half_built(path, OneName, 2) as db:
        with db.write() as t:
            t.rows[1] = Row("Name 14")
        with pytest.raises(zlmdb.DuplicateKey, match=r"the record 1 already, and the record 14 has it, too"):
            db.build_indexes()
        assert indexes(db) == ()
        with db.write() as t:
            t.rows[1] = Row("Name 13")
        assert db.check().ok


# -- programs with other declarations ---------------------------------------------------------------------------------


def test_a_program_without_it_reads_and_may_drop_it(path: str) -> None:
    half_built(path).close()
    with opened(path, Before) as db:
        with db.read() as t:
            assert len(t.rows) == ROWS
        with pytest.raises(zlmdb.IndexNotAttached), db.write() as t:
            t.rows[1] = Row("x")
        with db.write() as t:
            t.others["x"] = 1
        for name in ("by_name", "by_n", "by_tag", "falling", "some", "two"):
            db.drop_index("rows", name)
        with db.write() as t:
            t.rows[1] = Row("x")
    with opened(path) as db:
        assert len(indexes(db)) == 6
        assert db.check().ok


@pytest.mark.parametrize("dropped", [False, True])
def test_a_build_without_room_goes_on_with_a_larger_size_and_a_program_without_it_drops_it(
    dropped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexbuilding, "BATCH", 200)
    path = str(tmp_path / "db")
    with zlmdb.open(path, Before, maxsize=1 << 20, durability="none") as db, db.write() as t:
        t.rows.update({n: Row(f"{n:0200}", n) for n in range(1200)})
    for _ in range(2):
        with pytest.raises(zlmdb.DatabaseFull, match="a part of the index rows.by_n.*the next opening goes on"):
            zlmdb.open(path, After, maxsize=1 << 20, durability="none")
    with zlmdb.open(path, After, maxsize=1 << 20, durability="none", build_indexes=False) as db, db.write() as t:
        del t.rows[7]
    with zlmdb.open(path, Before, durability="none") as db, pytest.raises(zlmdb.IndexNotAttached), db.write() as t:
        t.rows[1] = Row("x")
    if dropped:
        with zlmdb.open(path, Before, durability="none", drop_indexes=True) as db, db.write() as t:
            t.rows[1] = Row("x")
    with zlmdb.open(path, After, maxsize=1 << 24, durability="none") as db:
        assert db.check().ok
        with db.read() as t:
            assert t.rows.by_name.count() == 1199


def test_a_build_that_finds_no_room_to_begin_says_nothing_of_a_part(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    half_built(path).close()

    def full(self: Any, *_: Any) -> None:
        raise zlmdb.DatabaseFull("no room for another table")

    monkeypatch.setattr(indexbatches._Builder, "batch", full)
    with pytest.raises(zlmdb.DatabaseFull, match=r"^no room for another table$"):
        opened(path)


def test_one_that_is_dropped_by_an_opening_begins_again(path: str) -> None:
    half_built(path).close()
    with opened(path, Before, drop_indexes=True) as db, db.write() as t:
        t.rows[1] = Row("x")
    with half_built(path, OneName, 1) as db:
        db.build_indexes()
        assert db.check().ok


def test_another_definition_begins_from_the_start(path: str) -> None:
    class Other(zlmdb.Table[int, Row], feed=True):
        by_name = zlmdb.Index[int]("n")

    class Changed(zlmdb.Schema):
        rows: Other

    half_built(path, OneName, 4).close()
    with half_built(path, Changed, 1) as db:
        with opened(path, OneName) as older:  # leaves alone what is newer, reads, and does not write
            with older.read() as t, pytest.raises(zlmdb.IndexNotBuilt):
                t.rows.by_name["Name 1"]
            with pytest.raises(zlmdb.IndexNotAttached, match="newer"), older.write() as t:
                t.rows[1] = Row("x")
        db.build_indexes()
        assert db.check().ok
        with db.read() as t:
            assert t.rows.by_name[7].keys().all() == [1, 12]


def test_a_program_that_knows_the_definition_of_before_stops_building(path: str) -> None:
    class Other(zlmdb.Table[int, Row], feed=True):
        by_name = zlmdb.Index[int]("n")

    class Changed(zlmdb.Schema):
        rows: Other

    def told(progress: Any) -> None:
        if progress.done == 6:
            opened(path, Changed).close()

    with opened(path, OneName, build_indexes=False) as db:
        with pytest.raises(zlmdb.IndexNotBuilt, match=r"rows\.by_name"):
            db.build_indexes(progress=told)
        with db.read() as t, pytest.raises(zlmdb.IndexNotBuilt):
            t.rows.by_name["Name 1"]
    with opened(path, Changed) as db:
        assert db.check().ok


@pytest.mark.parametrize("fits", [True, False])
def test_an_opening_begins_again_if_another_process_drops_what_it_builds(
    path: str, monkeypatch: pytest.MonkeyPatch, fits: bool
) -> None:
    """As that does where it finds a record that does not fit: then this one finds it, too."""
    if not fits:
        with opened(path, Before) as db, db.write() as t:
            t.rows[17] = Row("Name 16")
    dropped: list[int] = []

    def drop(seconds: float) -> None:
        if not dropped:
            dropped.append(1)
            with opened(path, Before) as db:
                db.drop_index("rows", "by_name")

    monkeypatch.setattr(indexbatches.time, "sleep", drop)
    if fits:
        with opened(path, OneName) as db:
            assert indexes(db) == ("by_name",)
            assert db.check().ok
    else:
        with pytest.raises(zlmdb.DuplicateKey):
            opened(path, OneName)
    assert dropped


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_a_renamed_table_goes_on(layout: str, tmp_path: Path) -> None:
    class Plain(zlmdb.Table[int, Row]):
        pass

    class Named(zlmdb.Table[int, Row]):
        by_name = zlmdb.UniqueIndex[str]("name")

    class Renamed(Named, was="rows"):
        pass

    class Old(zlmdb.Schema):
        rows: Plain

    class New(zlmdb.Schema):
        rows: Named

    class Newest(zlmdb.Schema):
        people: Renamed

    with zlmdb.open(tmp_path / "db", Old, layout=layout, durability="none") as db, db.write() as t:
        t.rows.put_many([(number, row(number)) for number in range(ROWS)])
    half_built(tmp_path / "db", New, 4).close()
    seen: list[Any] = []
    with opened(tmp_path / "db", Newest, build_indexes=False) as db:
        db.build_indexes(progress=seen.append)
        assert [one.done for one in seen] == [15, 18, 20]
        with db.read() as t:
            assert t.people.by_name["Name 1"] == row(1)
        assert db.check().ok


def test_copies_are_as_far_and_streams_have_no_half_of_it(path: str, tmp_path: Path) -> None:
    with half_built(path) as db:
        db.backup(tmp_path / "copy")
        with open(tmp_path / "stream", "wb") as target:
            db.dump(target)
    for name in ("copy", "loaded", "salvaged"):
        if name == "loaded":
            with open(tmp_path / "stream", "rb") as source, opened(tmp_path / name, zlmdb.Schema) as db:
                db.load(source)
        if name == "salvaged":
            zlmdb.Database.salvage(path, tmp_path / name)
        with opened(tmp_path / name) as db:
            assert len(indexes(db)) == 6
            assert db.check().ok


# -- links and expiry -------------------------------------------------------------------------------------------------


class People(zlmdb.Table[int, Row]):
    pass


class Linked(zlmdb.Table[int, Row]):
    of_boss = zlmdb.ForeignKey["People"]("boss", on_delete="cascade")


class Free(zlmdb.Schema):
    people: People
    rows: zlmdb.Table[int, Row]


class Bound(zlmdb.Schema):
    people: People
    rows: Linked


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    with opened(tmp_path / "db", Free) as db, db.write() as t:
        t.people.put_many([(number, Row("someone")) for number in range(3)])
        t.rows.put_many([(number, Row("x", boss=number % 3)) for number in range(ROWS)])
    return tmp_path / "db"


def test_no_linked_record_can_be_deleted_while_a_link_is_built(linked: Path) -> None:
    with half_built(linked, Bound) as db:
        for how in (lambda t: t.people.pop(2), lambda t: t.people.clear(), lambda t: t.people.select().delete()):
            with pytest.raises(zlmdb.IndexNotBuilt, match=r"rows\.of_boss is being built"), db.write() as t:
                how(t)
        with pytest.raises(zlmdb.DanglingLink), db.write() as t:
            t.rows[19] = Row("x", boss=7)
        with db.write() as t:
            t.people[7] = Row("new")
            t.rows[19] = Row("x", boss=7)
        with opened(linked, Free) as free, pytest.raises(zlmdb.IndexNotAttached), free.write() as t:
            del t.people[1]
        db.build_indexes()
        with db.write() as t:
            del t.people[2]
            assert len(t.rows) == ROWS - 6
        assert db.check().ok


def test_a_link_to_nothing_is_found_by_the_build(linked: Path) -> None:
    with opened(linked, Free) as db, db.write() as t:
        t.rows[14] = Row("x", boss=8)
    with pytest.raises(zlmdb.SchemaMismatch, match=r"rows\.of_boss cannot be declared.* 14 \(to 8\)"):
        opened(linked, Bound)
    with opened(linked, Free) as db:
        with db.write() as t:
            del t.people[1]
            t.people[1], t.people[8] = Row("again"), Row("now")
        assert db.check().ok
    with opened(linked, Bound) as db:
        assert db.check().ok


class Places(zlmdb.Table[str, int]):
    pass


class Placed(zlmdb.Table[int, Row], name="rows"):
    of_place = zlmdb.ForeignKey["Places"]("name")


class Map(zlmdb.Schema):
    places: Places
    rows: Placed


class Unlinked(zlmdb.Schema):
    places: Places
    rows: Bare


def test_a_link_to_a_key_that_no_record_can_have_is_one_to_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, Unlinked) as db, db.write() as t:
        t.places["here"] = 1
        t.rows.update({number: Row("here" if number else "") for number in range(ROWS)})
    with pytest.raises(zlmdb.SchemaMismatch, match=r"rows\.of_place cannot be declared.* 0 \(to ''\)"):
        opened(tmp_path, Map)
    with opened(tmp_path, Map, create=False) as db:
        assert db.mend_links("delete").deleted == 1
    none = pytest.raises(zlmdb.DanglingLink, match="name of the record 0 is ''")
    with opened(tmp_path, Map) as db, none, db.write() as t:
        t.rows[0] = Row("")


def test_expired_records_are_hidden_while_the_index_of_times_is_built(tmp_path: Path) -> None:
    class Lasting(zlmdb.Schema):
        rows: zlmdb.Table[int, Row]

    class Expiring(zlmdb.Table[int, Row], expires="boss"):
        pass

    class Ending(zlmdb.Schema):
        rows: Expiring

    with opened(tmp_path / "db", Lasting) as db, db.write() as t:
        t.rows.put_many([(number, Row("x", boss=100 + number)) for number in range(ROWS)])
    with half_built(tmp_path / "db", Ending) as db:
        db.clock = lambda: 110.5
        with db.write() as t:
            assert list(t.rows) == list(range(11, 20))
            t.rows[11] = Row("x", boss=None)
            t.rows[3] = Row("y", boss=500)
        assert db.sweep() == 0
        db.build_indexes()
        with db.read() as t:
            assert list(t.rows) == [3, *range(11, 20)]
        assert db.sweep() == 10
        assert db.check().ok


def test_expired_records_stay_in_the_file_while_a_link_to_them_is_built(tmp_path: Path) -> None:
    class Guests(zlmdb.Table[int, Row], expires="boss"):
        pass

    class Visits(zlmdb.Table[int, Row]):
        of = zlmdb.ForeignKey["Guests"]("n", on_delete="cascade")

    class Loose(zlmdb.Schema):
        guests: Guests
        visits: zlmdb.Table[int, Row]

    class Tight(zlmdb.Schema):
        guests: Guests
        visits: Visits

    with opened(tmp_path / "db", Loose) as db:
        db.clock = lambda: 0
        with db.write() as t:
            t.guests.put_many([(number, Row("x", boss=number + 1)) for number in range(3)])
            t.visits.put_many([(number, Row("x", number % 3)) for number in range(ROWS)])
    with half_built(tmp_path / "db", Tight) as db:
        db.clock = lambda: 1.5
        with db.write() as t:
            t.guests[7] = Row("y")
            assert list(t.guests) == [1, 2, 7]
        assert db.sweep() == 0
        db.build_indexes()
        assert db.sweep() == 1
        with db.read() as t:
            assert {visit.n for visit in t.visits.values()} == {1, 2}
        assert db.check().ok


@pytest.mark.parametrize("layout", ["tables", "classic"])
@pytest.mark.parametrize("done", range(3))
def test_who_builds_the_last_batches_reads_by_the_index_at_once(layout: str, done: int, tmp_path: Path) -> None:
    with opened(tmp_path, BareStore, layout=layout) as db, db.write() as t:
        t.rows.update({number: row(number) for number in range(8)})
    half_built(tmp_path, RankedStore, done).close()
    with opened(tmp_path, RankedStore) as db, db.read() as t:
        assert list(t.rows.by_n[7].keys()) == [1]


# -- kills, processes, memory -----------------------------------------------------------------------------------------


def build_all(path: str) -> None:
    opened(path).close()


@pytest.mark.once
def test_a_program_killed_at_any_write_leaves_a_build_that_the_next_opening_goes_on_with(tmp_path: Path) -> None:
    path = str(tmp_path / "db")
    fill(tmp_path / "db", 13)
    reached = 0
    for _ in kill_points(build_all, path):
        with opened(path, readonly=True) as db:
            with db.read() as t:
                assert t.rows.where(lambda r: r.n == 7).keys().all() == [1, 12]
            assert db.check().ok
            slot = db._open_store.contents.slots["rows"]
            records = sum([one["records"] for one in slot.building.values()]) if slot.building else reached
            assert records >= reached
            reached = records
    with opened(path) as db:
        assert reached > 0
        assert len(indexes(db)) == 6
        assert db.check().ok


def slowly(path: str, started: Any) -> None:
    """Builds in a process of its own, with time in between."""

    def told(progress: Any) -> None:
        started.set()
        time.sleep(0.02)

    with opened(path, build_indexes=False) as db:
        db.build_indexes(progress=told)


@pytest.mark.once
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork, in which batches stay small"
)
def test_other_processes_read_and_write_meanwhile_and_help(path: str) -> None:
    context: Any = multiprocessing.get_context("fork")
    started = context.Event()
    process = context.Process(target=slowly, args=(path, started))
    process.start()
    assert started.wait(20)
    with opened(path, build_indexes=False) as db:
        with db.read() as before:
            for turn in range(20):
                with db.write(timeout=5) as t:
                    t.others["turn"] = turn
                    t.rows[turn] = Row(f"Turn {turn}", 7, ["t1"])
            assert before.rows.where(lambda r: r.n == 7).keys().all() == [1, 12]
        db.build_indexes(timeout=5)
        process.join(20)
        assert process.exitcode == 0
        assert len(indexes(db)) == 6
        assert db.check().ok
        with db.read() as t:
            assert t.rows.by_n[7].count() == ROWS


def test_the_memory_of_a_build_does_not_grow_with_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracemalloc = pytest.importorskip("tracemalloc")  # PyPy has none
    monkeypatch.setattr(indexbuilding, "BATCH", 200)
    peaks: list[int] = []
    for rows in (1_000, 4_000):
        fill(tmp_path / str(rows), rows)
        with opened(tmp_path / str(rows), OneName, build_indexes=False) as db:
            tracemalloc.start()
            db.build_indexes()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


@pytest.mark.parametrize(("limit", "most"), [("_ENTRIES", 1), ("_READING", 0)])
def test_a_batch_ends_with_many_entries_or_after_a_while(
    path: str, monkeypatch: pytest.MonkeyPatch, limit: str, most: float
) -> None:
    monkeypatch.setattr(indexbatches, limit, most)
    seen: list[Any] = []
    with opened(path, build_indexes=False) as db:
        db.build_indexes(progress=seen.append)
        assert [one.done for one in seen][:2] == [1, 2]
        assert db.check().ok
