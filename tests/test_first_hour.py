"""What new users stumbled over in their first hour: each trap is closed, on every engine and layout."""

from __future__ import annotations

import datetime as dt
import enum
import gc
import json
import pickle
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from traceback import format_exception_only
from typing import Annotated, Any, Literal, NamedTuple, Optional

import pytest

import zlmdb

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

pytest.importorskip("click", reason="the command line needs click")


@dataclass
class Person:
    id: int
    city: str
    name: str
    age: int


class Point(NamedTuple):
    x: int
    y: int


class Tagged(NamedTuple):
    name: str
    tags: list[str]


@dataclass(frozen=True)
class Frozen:
    name: str
    tags: tuple[str, ...] = ()


@dataclass
class User:
    id: int
    name: str
    email: str = ""


class Users(zlmdb.Table[int, User], key="id"):
    pass


class Members(zlmdb.Table[int, User], key="id"):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_email = zlmdb.Index[str]("email")


class Accounts(zlmdb.Schema):
    users: Users
    members: Members
    counters: zlmdb.Table[str, int]
    texts: zlmdb.Table[str, str]
    points: zlmdb.Table[str, zlmdb.Pickle[Point]]
    tagged: zlmdb.Table[str, zlmdb.Pickle[Tagged]]
    frozen: zlmdb.Table[str, Frozen]
    documents: zlmdb.Table[str, dict[str, Any]]


class People(zlmdb.Table[tuple[str, str], Person]):
    by_place = zlmdb.Index[tuple[str, str]]("city", "name")
    by_name = zlmdb.Index[str]("name")
    only_place = zlmdb.UniqueIndex[tuple[str, str]]("city", "name")


class Town(zlmdb.Schema):
    people: People
    words: zlmdb.Table[str, int]
    numbers: zlmdb.Table[tuple[int, int], str]


PEOPLE = [("rome", "ann"), ("rome", "anna"), ("rome", "bob"), ("romeo", "ann"), ("oslo", "ann")]


PAIRS = [
    "memory-classic", "lmdb-tables",
    *(pytest.param(one, marks=pytest.mark.once) for one in ("memory-tables", "lmdb-classic")),
]  # fmt: skip


@pytest.fixture(params=PAIRS)
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[zlmdb.Database[Town]]:
    engine, _, layout = request.param.partition("-")
    with zlmdb.open(None if engine == "memory" else str(tmp_path / "town"), Town, layout=layout) as db:
        with db.write() as t:
            for i, (city, name) in enumerate(PEOPLE):
                t.people[city, name] = Person(i, city, name, 30 + i)
        yield db


# -- 1: parts of a prefix are exact ---------------------------------------------------------------------------------


def test_the_last_part_of_a_prefix_is_exact_on_tables_and_indexes(db: Any) -> None:
    """``prefix=("rome", "ann")`` also selected, and deleted, ("rome", "anna")."""
    with db.write() as t:
        for ordered in (t.people, t.people.by_place, t.people.only_place):
            assert list(ordered.select(prefix=("rome", "ann")).keys()) == [("rome", "ann")]
            assert list(ordered.select(prefix=("rome",)).keys()) == PEOPLE[:3]
            assert list(ordered.select(prefix=())) == list(ordered.select())
            assert list(ordered.select(prefix=("ro",))) == []
        assert t.people.select(prefix=("rome", "ann")).delete() == 1
        assert list(t.people) == [("oslo", "ann"), ("rome", "anna"), ("rome", "bob"), ("romeo", "ann")]


def test_what_only_begins_so_has_its_own_spelling(db: Any) -> None:
    with db.write() as t:
        t.words.update(ant=1, bat=2, bee=3)
        assert list(t.words.select(startswith="b").keys()) == ["bat", "bee"]
        assert list(t.people.by_name.select(startswith="anna").keys()) == [("rome", "anna")]
        for ordered in (t.people, t.people.by_place, t.people.only_place):
            assert list(ordered.select(startswith="rome").keys()) == PEOPLE[:4]
            assert list(ordered.select(prefix=("rome",), startswith="ann").keys()) == PEOPLE[:2]
        for select in (t.words.select, t.people.by_name.select, t.people.select, t.people.by_place.select):
            with pytest.raises(zlmdb.EncodeError, match="startswith="):
                select(prefix="b")


def test_a_prefix_is_exact_on_the_command_line(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from zlmdb.cli import main

    path = tmp_path / "town"
    with zlmdb.open(str(path), Town) as db, db.write() as t:
        for i, (city, name) in enumerate(PEOPLE):
            t.people[city, name] = Person(i, city, name, 30 + i)
        t.words.update(ant=1, bat=2, bee=3)

    def keys(*options: str) -> list[Any]:
        result = CliRunner().invoke(main, ["select", str(path), *options, "--keys"])
        assert result.exit_code == 0, result.output
        return [json.loads(line)["key"] for line in result.output.splitlines()]

    assert keys("people", "--prefix", '["rome", "ann"]') == [["rome", "ann"]]
    assert keys("people", "--prefix", '["rome"]', "--startswith", "ann") == [["rome", "ann"], ["rome", "anna"]]
    assert keys("people", "--through", '["oslo"]') == [["oslo", "ann"]]
    assert keys("people", "--from", '["rome", "b"]', "--to", '["romeo"]') == [["rome", "bob"]]
    assert keys("words", "--startswith", "b") == ["bat", "bee"]
    result = CliRunner().invoke(main, ["select", str(path), "words", "--prefix", "b"])
    assert result.exit_code == 2
    assert "--startswith" in result.output


def test_bounds_may_be_leading_parts_and_include_the_last_key(db: Any) -> None:
    with db.write() as t:
        t.numbers.update({(i, j): f"{i}{j}" for i in range(3) for j in range(3)})
        assert list(t.numbers.select((1,), (2,)).values()) == ["10", "11", "12"]
        assert list(t.numbers.select((2,)).values()) == ["20", "21", "22"]
        assert list(t.numbers.select(through=(0,)).values()) == ["00", "01", "02"]
        assert list(t.numbers.select((0, 1), through=(1, 0)).values()) == ["01", "02", "10"]
        assert list(t.people.by_place.select(("rome",), through=("rome",)).keys()) == PEOPLE[:3]
        assert list(t.people.by_name.select("ann", through="ann").keys()) == [PEOPLE[4], PEOPLE[0], PEOPLE[3]]


def test_a_bound_beyond_the_range_of_a_part_is_the_end_of_the_range(db: Any) -> None:
    """``select((x, 0), (x, MAX_OID + 1))``, the idiom of zlmdb <= 26 for all with x, raised."""
    with db.write() as t:
        t.numbers.update({(i, j): f"{i}{j}" for i in (-1, 0, 1) for j in (-1, 0, 1)})
        assert list(t.numbers.select((0, -(2**70)), (0, 2**70)).values()) == ["0-1", "00", "01"]
        assert list(t.numbers.select((0, 2**70)).values()) == ["1-1", "10", "11"]
        assert list(t.numbers.select(stop=(-(2**70), 0))) == []
        with pytest.raises(zlmdb.EncodeError, match="part 2"):
            t.numbers.select((0, "x"))


def test_the_classic_idiom_for_all_with_x_selects_them(tmp_path: Path) -> None:
    pairs = zlmdb.MapOidOidOid(1)
    with zlmdb.Database(str(tmp_path / "db"), layout="classic") as db, db.begin(write=True) as txn:
        for key in ((1, 7), (2, 0), (2, 2**53), (3, 1)):
            pairs[txn, key] = 1
        chosen = pairs.select(txn, from_key=(2, 0), to_key=(2, 2**53 + 1), return_values=False)
        assert list(chosen) == [(2, 0), (2, 2**53)]


# -- 3: edit changes what is stored, or says why not ------------------------------------------------------------------


@pytest.fixture(params=PAIRS)
def accounts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[zlmdb.Database[Accounts]]:
    engine, _, layout = request.param.partition("-")
    with zlmdb.open(None if engine == "memory" else str(tmp_path / "accounts"), Accounts, layout=layout) as db:
        yield db


def test_edit_of_a_value_that_cannot_change_raises_and_says_what_to_write(accounts: Any) -> None:
    """``with t.counters.edit("hits") as n: n += 1`` stored nothing new."""
    with accounts.write() as t:
        t.counters["hits"] = 1
        t.texts["a"] = "b"
        t.points["a"] = Point(1, 2)
        t.frozen["a"] = Frozen("x")
        for table, key, advice in (
            (t.counters, "hits", r"table\['hits'\] = "), (t.texts, "a", r"table\['a'\] = "),
            (t.points, "a", "_replace"), (t.frozen, "a", "dataclasses.replace"),
        ):  # fmt: skip
            with pytest.raises(TypeError, match=advice), table.edit(key):
                raise AssertionError("the block has begun")
        assert t.counters["hits"] == 1


def test_edit_of_what_can_change_inside_stores_it(accounts: Any) -> None:
    with accounts.write() as t:
        t.tagged["a"] = Tagged("x", [])
        t.documents["a"] = {"n": 1}
        with t.tagged.edit("a") as tagged, t.documents.edit("a") as document:
            tagged.tags.append("new")
            document["n"] += 1
        assert t.tagged["a"].tags == ["new"]
        assert t.documents["a"] == {"n": 2}


@pytest.mark.parametrize("name", ["users", "members"])
def test_a_record_is_stored_under_the_key_that_its_key_field_says(name: str, accounts: Any) -> None:
    """With ``key="id"``, ``t.users[99] = User(id=1)`` was accepted."""
    with accounts.write() as t:
        table = t[name]
        assert table.add(User(1, "ann")) == 1
        table[2] = User(2, "bob")
        table.put_many([(3, User(3, "cid"))])
        table.put_many((n, User(n, f"user {n}")) for n in (4, 5))
        for store in (
            lambda: table.__setitem__(99, User(6, "dan")),
            lambda: table.update({99: User(6, "dan")}),
            lambda: table.setdefault(99, User(6, "dan")),
            lambda: table.put_many([(99, User(6, "dan"))]),
            lambda: table.put_many(iter([(99, User(6, "dan"))])),
            lambda: table.put_many([(98, User(98, "eve")), (99, User(6, "dan"))]),
        ):
            with pytest.raises(zlmdb.EncodeError, match=f"{name}.*'id'.* 6 .*99"):
                store()
            assert 99 not in table
        assert sorted(table.select(stop=90).keys()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["users", "members"])
def test_a_change_of_the_key_field_inside_edit_raises(name: str, accounts: Any) -> None:
    with accounts.write() as t:
        table = t[name]
        table.add(User(1, "ann"))
        with pytest.raises(zlmdb.EncodeError, match=r"'id', which is 2 .*key 1"), table.edit(1) as user:
            user.id = 2
        assert dict(table) == {1: User(1, "ann")}
        with table.edit(1) as user:
            user.name = "anna"
        assert table[1] == User(1, "anna")


# -- 6: mistakes in the declaration of a schema -----------------------------------------------------------------------


def test_a_table_given_as_the_value_of_an_attribute_is_refused_with_the_line_to_write() -> None:
    """``users = Users`` was accepted, and the error came later and spoke of something else."""
    with pytest.raises(TypeError, match="users: Users"):

        class Assigned(zlmdb.Schema):
            users = Users

    with pytest.raises(TypeError, match=r"words: Table\[str, int\]"):

        class Alias(zlmdb.Schema):
            words = zlmdb.Table[str, int]

    with pytest.raises(TypeError, match="users: Users"):

        class Both(zlmdb.Schema):
            users: Users = Users  # type: ignore[assignment]

    with pytest.raises(TypeError, match="users: Users"):

        class Instance(zlmdb.Schema):
            users = Users()

    class Empty(zlmdb.Schema):
        """Declares no table."""

    def look_up(t: Any) -> None:
        t.users  # noqa: B018

    advice = r"annotate it in the class, users: Table\[KeyType, ValueType\]"
    with zlmdb.open(None, Empty) as db, pytest.raises(AttributeError, match=advice):
        db.run(look_up)

    class Hidden(zlmdb.Schema):
        _hidden: zlmdb.Table[str, int]

    with pytest.raises(TypeError, match="hidden: Table"):
        zlmdb.open(None, Hidden)


def test_a_table_class_and_an_alias_may_be_made_in_the_body_of_a_schema() -> None:
    class Own(zlmdb.Schema):
        class Words(zlmdb.Table[str, int], name="own words"):
            """Words."""

        Names = zlmdb.Table[str, str]

        words: Words
        names: Names

    with zlmdb.open(None, Own) as db, db.write() as t:
        t.words["a"] = 1
        t.names["a"] = "b"
        assert list(t) == ["words", "names"]


def test_a_schema_class_keeps_no_local_objects_alive() -> None:
    """A database stored beside its schema in a function became a cycle."""

    class Thing:
        pass

    def make() -> tuple[Any, Any]:
        thing = Thing()

        class Inner(zlmdb.Table[str, int]):
            """Words."""

        class Local(zlmdb.Schema):
            inner: Inner

        return Local, weakref.ref(thing)

    schema, thing = make()
    gc.collect()
    assert thing() is None
    with zlmdb.open(None, schema) as db, db.write() as t:
        t.inner["a"] = 1


def test_a_half_read_generator_is_named_by_the_line_that_began_it() -> None:
    """``close()`` said that a transaction was open, and not where the program had left it."""

    class Local(zlmdb.Schema):
        words: zlmdb.Table[str, int]

    def words(db: Any) -> Any:
        with db.read() as t:
            yield from t.words

    db = zlmdb.open(None, Local)
    db.run(lambda t: t.words.update({"a": 1, "b": 2}))
    half = words(db)
    assert next(half) == "a"
    line = words.__code__.co_firstlineno + 1
    with pytest.raises(zlmdb.DatabaseInUse, match=rf"begun at .*test_first_hour.py:{line}\b"):
        db.close()
    half.close()
    db.close()


# -- 8: the command line does not mislead, nor lock anybody out -------------------------------------------------------


def command(*arguments: object) -> Any:
    from click.testing import CliRunner

    from zlmdb.cli import main

    return CliRunner().invoke(main, [str(one) for one in arguments])


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_info_counts_readers_without_itself(tmp_path: Path) -> None:
    """It said ``readers 2`` with nobody there."""
    path = tmp_path / "town"
    zlmdb.open(str(path), Town).close()
    info = subprocess.run(
        [sys.executable, "-m", "zlmdb", "info", path, "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(info.stdout)["readers"] == 0
    with zlmdb.open(str(path), Town) as db, db.read() as t:
        assert len(t.words) == 0
        info = subprocess.run(
            [sys.executable, "-m", "zlmdb", "info", path, "--json"], capture_output=True, text=True, check=True
        )
        assert json.loads(info.stdout)["readers"] == 1


@pytest.mark.parametrize("version", [0, 1])
def test_info_shows_what_there_is_of_an_lmdb_file_of_others(version: int, tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    path = tmp_path / "other"
    with lmdb.open(str(path), max_dbs=4, lib_version=version) as env:
        queue = env.open_db(b"queue")
        with env.begin(write=True) as txn:
            txn.put(b"plain", b"1")
            txn.put(b"a", b"1", db=queue)
            txn.put(b"b", b"2", db=queue)
    found = json.loads(command("info", path, "--json").stdout)
    assert found["sub_databases"] == {"queue": 2}
    assert (found["records"], found["lmdb_format"]) == (1, "1.0" if version else "0.9")
    assert "not of zlmdb" in command("info", path).stdout
    assert command("info", tmp_path / "nothing").exit_code == 1


# -- programs of the predecessor --------------------------------------------------------------------------------------


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.skipif(shutil.which("unshare") is None, reason="this system cannot make PID namespaces")
def test_two_processes_with_one_pid_are_told_so(tmp_path: Path) -> None:
    """Two containers, both with process id 1: the error blamed the file system."""
    prefix = ["unshare", "-Urpf", "--mount-proc"]
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make PID namespaces")
    program = (
        "import sys, zlmdb\n"
        "with zlmdb.open(sys.argv[1]) as db, db.read() as t:\n"
        "    print(list(t), flush=True)\n"
        "    sys.stdin.read()\n"
    )
    path = str(tmp_path / "town")
    zlmdb.open(path, Town).close()
    first = subprocess.Popen(
        [*prefix, sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    assert "people" in first.stdout.readline()
    second = subprocess.run(
        [*prefix, sys.executable, "-c", program, path], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    first.communicate("")
    assert "DatabaseInUse: another process with the id 1 " in second.stderr
    assert "--pid=" in second.stderr


# -- 9: selections, keys and values have the same methods -------------------------------------------------------------


def test_a_position_in_a_selection_says_what_to_write(db: Any) -> None:
    with db.write() as t:
        t.words.update(ant=1, bat=2)
        for chosen in (t.words.select(), t.people.select(), t.people.by_name.select()):
            for position in (0, slice(2)):
                with pytest.raises(TypeError, match=r"\.first\(\)"):
                    chosen[position]
        assert t.words.select()["ant"] == 1
        with pytest.raises(zlmdb.EncodeError):
            t.words.select()[1.5]


def test_what_is_read_lazily_says_what_to_write_in_place_of_what_a_list_has(db: Any) -> None:
    with db.write() as t:
        t.words.update(ant=1, bat=2)
        chosen, index = t.words.select(), t.people.by_name
        every = [chosen, t.words.where(lambda n: n > 1), index.select(), t.people.where(lambda p: p.age > 1)]
        rows = [one for each in every for one in (each, each.keys(), each.values())]
        rows += [index.keys(), index.values(), chosen.fields(lambda n: -n), chosen.keys().distinct()]
        for each in (*rows, t.words.keys(), t.words.values(), t.words.items()):
            for position in (0, -1, slice(1), slice(None)):
                with pytest.raises(TypeError, match=r"write \.first\(\) or \.last\(\)"):
                    each[position]
        for each in rows:
            for wrong in (len, reversed, lambda each: each == [], lambda each: each != {1}):
                with pytest.raises(TypeError, match=r"write \.count\(\)|reverse=True|compare (list|set)\("):
                    wrong(each)
            assert each in {each}  # compared by identity
            assert each != object()
        for wrong in (iter, reversed):
            with pytest.raises(TypeError, match=r"write"):
                wrong(index)


def test_in_a_selection_are_pairs_and_a_key_says_what_to_write(db: Any) -> None:
    with db.write() as t:
        t.words.update(ant=1, bat=2)
        assert ("ant", 1) in t.words.select()
        assert ("ant", 2) not in t.words.select()
        assert ("cat", 2) not in t.words.select()
        for wrong in ("ant", 1, (1, 2), ("a", 1, 2)):
            with pytest.raises(TypeError, match=r"write `in selection\.keys\(\)`"):
                wrong in t.words.select()  # noqa: B015
        assert "ant" in t.words.select().keys()  # noqa: SIM118 - it is no dict
        assert 2 in t.words.where(lambda n: n > 1).values()


def test_the_views_of_a_table_can_be_reversed(db: Any) -> None:
    with db.write() as t:
        t.words.update(ant=1, bat=2)
        plain = dict(t.words)
        assert list(reversed(t.words.keys())) == list(reversed(plain.keys()))
        assert list(reversed(t.words.values())) == list(reversed(plain.values()))
        assert list(reversed(t.words.items())) == list(reversed(plain.items()))


def test_keys_and_values_have_first_count_truth_and_no_length(db: Any) -> None:
    with db.write() as t:
        t.words.update(ant=1, bat=2)
        chosen, none = t.words.select(), t.words.select("x")
        for reads in (chosen.keys(), chosen.values()):
            assert (reads.first(), reads.count(), bool(reads)) == (next(iter(reads)), 2, True)
            assert list(reads) == list(iter(reads))
        assert (none.keys().first(), none.values().count(), bool(none.keys())) == (None, 0, False)
        for reads in (chosen, chosen.keys(), chosen.values(), t.people.where(lambda person: person.age > 1)):
            with pytest.raises(TypeError, match=r"write \.count\(\)"):
                len(reads)


def test_a_key_that_looks_like_a_position_says_what_to_write() -> None:
    class Numbered(zlmdb.Table[int, int]):
        by_value = zlmdb.Index[int](lambda value: value, version=1)
        by_square = zlmdb.UniqueIndex[int](lambda value: value * value, version=1)

    class Numbers(zlmdb.Schema):
        numbers: Numbered

    with zlmdb.open(None, Numbers) as db, db.write() as t:
        t.numbers[5] = 3
        table: Any = t.numbers
        chosen = (table.select(), table.select(4), table.where(lambda v: v > 2), table.by_value.select())
        for view in (*chosen, table, table.by_square):
            for position in (0, -1):
                with pytest.raises(KeyError, match=r"a position: write \.first\(\) or \.last\(\)") as raised:
                    view[position]
                assert raised.value.args == (position,)
                assert format_exception_only(raised.type, raised.value)[0].startswith(f"KeyError: {position} is not")
                assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
            with pytest.raises(KeyError, match="^7$"):
                view[7]
        for view in chosen:
            with pytest.raises(TypeError, match=r"write \.first\(\)"):
                view[:2]
        for view in (table, table.by_value, table.by_square):
            with pytest.raises(zlmdb.EncodeError, match=r"\.select\(limit=10\)"):
                view[:2]
        t.numbers[0] = 0
        assert dict(t.numbers.select()) == {0: 0, 5: 3}


def test_tables_indexes_and_views_have_the_methods_of_a_selection(db: Any) -> None:
    with db.write() as t:
        people = t.people
        first, last = next(iter(people.items())), list(people.items())[-1]
        for view, at in ((people.keys(), 0), (people.values(), 1)):
            assert (view.first(), view.last(), view.count(), bool(view)) == (first[at], last[at], 5, True)
        assert (people.items().first(), people.items().last()) == (first, last)
        assert people.keys() & {("rome", "ann"), ("no", "one")} == {("rome", "ann")}
        with pytest.raises(TypeError, match=r"write \.first\(\)"):
            people.values()[0]
        for index in (people.by_name, people.only_place):
            chosen = index.select()
            assert (list(index.keys()), index.values().all()) == (list(chosen.keys()), chosen.values().all())
            assert bool(index)
            assert (index.first(), index.last(), index.count()) == (chosen.first(), chosen.last(), 5)
            with pytest.raises(TypeError, match=r"write \.count\(\)"):
                len(index)
        assert people.by_name.delete() == 5
        assert not people.by_name
        assert not people.only_place
        assert not people.keys()
        assert people.keys().first() is None
        people["rome", "ann"] = Person(1, "rome", "ann", 30)
        assert (people.delete(), people.delete(), len(people)) == (1, 0, 0)


# -- 11: the types that people have are keys and index types ----------------------------------------------------------


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Order:
    color: Color
    price: Decimal
    lasts: dt.timedelta
    opens: dt.time
    size: Literal["s", "l"]


class Orders(zlmdb.Table[tuple[Color, Decimal], Order]):
    by_color = zlmdb.Index[Color]("color")
    by_price = zlmdb.Index[Decimal]("price")
    by_lasts = zlmdb.Index[dt.timedelta]("lasts")
    by_opens = zlmdb.Index("opens")
    by_size = zlmdb.Index("size")


class Shop(zlmdb.Schema):
    orders: Orders


def test_enums_decimals_durations_times_and_literals_are_keys_and_index_types(tmp_path: Path) -> None:
    path = str(tmp_path / "shop")
    orders = [
        Order(Color.RED, Decimal("9.50"), dt.timedelta(days=-1), dt.time(9), "l"),
        Order(Color.BLUE, Decimal("10"), dt.timedelta(hours=1), dt.time(8, 30), "s"),
        Order(Color.RED, Decimal("-1.25"), dt.timedelta(minutes=1), dt.time(23), "s"),
    ]
    with zlmdb.open(path, Shop) as db:
        with db.write() as t:
            for order in orders:
                t.orders[order.color, order.price] = order
        with db.read() as t:
            first, second, third = orders
            assert list(t.orders.values()) == [second, third, first]
            assert list(t.orders.by_price.select().values()) == [third, first, second]
            assert list(t.orders.by_lasts.select(dt.timedelta(0)).values()) == [third, second]
            assert list(t.orders.by_opens.select(through=dt.time(9)).values()) == [second, first]
            assert list(t.orders.by_color[Color.RED].values()) == [third, first]
            assert list(t.orders.by_size["s"].values()) == [second, third]
            assert t.orders[Color.RED, Decimal("9.5")] == first
        assert not db.check().problems
    keys = command("select", path, "orders", "--keys", "--prefix", '["red"]').stdout.splitlines()
    assert [json.loads(line)["key"] for line in keys] == [["red", "-1.25"], ["red", "9.5"]]
    assert json.loads(command("get", path, "orders", '["blue", "10"]').stdout)["size"] == "s"


# -- 10: types that do not fit ----------------------------------------------------------------------------------------


@dataclass
class Visit:
    name: str
    age: Optional[int]
    at: dt.datetime
    rate: Annotated[float, "of interest"]


@pytest.mark.parametrize(
    ("index", "field", "key"),
    [
        (lambda: zlmdb.Index[int]("name"), "name", "int"),
        (lambda: zlmdb.UniqueIndex[str]("age"), "age", "str"),
        (lambda: zlmdb.Index("rate", key=int), "rate", "int"),
        (lambda: zlmdb.Index[tuple[str, dt.datetime]]("at", "name"), "at", "str"),
    ],
)
def test_an_index_of_another_type_than_its_field_is_refused_when_the_class_is_made(
    index: Any, field: str, key: str
) -> None:
    with pytest.raises(TypeError, match=rf"the field '{field}' is .*key type {key}"):

        class Visits(zlmdb.Table[int, Visit]):
            by = index()


def test_an_index_of_the_type_of_its_field_is_taken() -> None:
    class Visits(zlmdb.Table[int, zlmdb.Json[Visit]]):
        by_name = zlmdb.Index[str]("name")
        by_age = zlmdb.Index[float]("age")
        by_both = zlmdb.Index[tuple[dt.datetime, str]]("at", "name")

    class Late(zlmdb.Table[int, "NotYet"]):
        by_name = zlmdb.Index[str]("name")

    assert Visits.by_age is not Late.by_name


def test_a_naive_datetime_is_told_what_it_lacks() -> None:
    from zlmdb.values import serializer

    with pytest.raises(zlmdb.EncodeError, match=r"at: expected datetime with a time zone, such as datetime\.now"):
        serializer(zlmdb.FlatBuffers[Visit]).encode(Visit("a", 1, dt.datetime(2020, 1, 1), 1.0))
    for form in (zlmdb.Msgpack, zlmdb.Cbor, zlmdb.Json):
        for document in ({"at": dt.datetime(2020, 1, 1)}, {"at": [(1, 2)]}):
            with pytest.raises(zlmdb.EncodeError, match="declare the type of the values, or use a format that keeps"):
                serializer(form[dict[str, Any]]).encode(document)
    with pytest.raises(zlmdb.EncodeError, match=r"has no time zone: give it one, such as datetime\.now"):
        serializer(dict).encode({"at": dt.datetime(2020, 1, 1)})


def test_the_name_that_sqlite_has_for_memory_makes_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Empty(zlmdb.Schema): ...

    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"zlmdb\.open\(None, Schema\)"):
        zlmdb.open(":memory:", Empty)
    with pytest.raises(ValueError, match="None opens a database in memory"):
        zlmdb.Database(":memory:")
    assert list(tmp_path.iterdir()) == []


AT_PROMPT = """
import sys
sys.ps1 = ">>> "  # as Python's prompt has it
import rlcompleter, zlmdb
class Words(zlmdb.Table[str, int]):
    by_number = zlmdb.Index[int](lambda number: number, version=1)
class Store(zlmdb.Schema):
    words: Words
db = zlmdb.open(None, Store)
t = db.read()
cache = zlmdb.Cache(None)
completer = rlcompleter.Completer(globals())
some, rows = t.words.select(), t.words.select().values()
for holder in ("db", "t", "t.words", "t.words.by_number", "some", "rows", "cache"):
    found = {one.split(".")[-1].split("(")[0] for one in completer.attr_matches(holder + ".")}
    print(sorted(found & {"append", "avg", "commit", "execute", "filter", "insert", "push", "words", "where"}))
for line in (
    "db.execute", "t.filter", "t.wrods", "t.words.filter", "t.words.by_number.insert", "some.one", "cache.push",
    "t.words.by_numbr",
):
    try:
        eval(line)
    except AttributeError as error:
        print(error)
"""


def test_a_prompt_completes_what_there_is_and_answers_what_there_is_not() -> None:
    done = subprocess.run([sys.executable, "-c", AT_PROMPT], capture_output=True, text=True, check=True, timeout=60)
    lines = done.stdout.splitlines()
    assert lines[:7] == ["[]", "['words']", "['where']", "['where']", "['where']", "[]", "[]"]
    advice = ["there is no SQL", "asked of a table", "mean 'words'", "write ", "table.add", "write ", "zlmdb.Queue"]
    advice.append("did you mean 'by_number'?")
    assert [one for one, line in zip(advice, lines[7:]) if one not in line] == []
