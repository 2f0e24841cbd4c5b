"""A table is a lawful, ordered `MutableMapping` in a transaction, and never stores half a statement."""

from __future__ import annotations

import bisect
import itertools
import random
import sys
import types
import unittest
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from typing import Any, Callable, Optional
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from tests.combinations import EVERYWHERE
from zlmdb import keys as k
from zlmdb import values as v
from zlmdb.tables.bulkwrites import CHUNK
from zlmdb.tables.compiled import selected

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python

UTC = timezone.utc


@dataclass
class User:
    name: str
    age: int = 0
    tags: list[str] = field(default_factory=list)


class Logins(zlmdb.Table[str, int]):
    """Logins by name."""


class Users(zlmdb.Table[UUID, User]):
    """Users by time-ordered id."""


class Named(zlmdb.Table[str, User], key="name"):
    """Users by name."""


class Store(zlmdb.Schema):
    logins: Logins
    users: Users
    named: Named
    seq: zlmdb.Table[int, str]
    other: zlmdb.Table[str, int]


@pytest.fixture(params=EVERYWHERE)
def combo(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    return make_db(Store)


@pytest.fixture
def t(db: Any) -> Iterator[Any]:
    """The tables in an open write transaction."""
    with db.write() as tables:
        yield tables


class Goes:
    """A number that adds in a way of its own, as unsigned ones of numpy do, which go on at 0."""

    def __index__(self) -> int:
        return 2**63 + 5

    def __add__(self, other: int) -> int:
        return 5


def test_a_number_that_adds_in_its_own_way_is_no_other_key(t: Any) -> None:
    t.seq[5 - 2**63] = "other"
    key: Any = Goes()
    for call in (t.seq.get, t.seq.__getitem__, t.seq.__contains__, t.seq.__delitem__):
        with pytest.raises(zlmdb.EncodeError, match="out of range"):
            call(key)
    for store in (t.seq.__setitem__, t.seq.put_new, t.seq.replace, lambda key, value: t.seq.put_many([(key, value)])):
        with pytest.raises(zlmdb.EncodeError, match="out of range"):
            store(key, "")
    assert dict(t.seq) == {5 - 2**63: "other"}


def fill(table: Any, count: int) -> dict[str, int]:
    expected = {f"u{i:04}": i for i in range(count)}
    table.update(expected)
    return expected


def test_put_new_stores_only_what_is_not_there(t: Any) -> None:
    ages = t.logins
    before = t.txn._puts
    assert ages.put_new("ann", 31)
    assert not ages.put_new("ann", 32)
    assert (dict(ages), t.txn._puts - before) == ({"ann": 31}, 1)
    for key in ("ann", "bob"):
        with pytest.raises(zlmdb.EncodeError):
            ages.put_new(key, "old")
    for key in ages:  # what a loop inserts is not visited
        assert ages.put_new(key + "+", 1)
        assert not ages.put_new(key, 1)
    assert dict(ages) == {"ann": 31, "ann+": 1}
    with pytest.raises(zlmdb.EncodeError):  # the key is the field
        t.named.put_new("ann", User("bob"))
    assert t.named.put_new("ann", User("ann", 1))
    assert not t.named.put_new("ann", User("ann", 2))
    assert t.named["ann"].age == 1


def test_put_new_keeps_indexes_in_step_and_refuses_as_they_do() -> None:
    class Indexed(zlmdb.Table[int, User]):
        by_name = zlmdb.UniqueIndex[str]("name")

    class One(zlmdb.Schema):
        users: Indexed

    with zlmdb.open(None, One) as db:
        with db.read() as t, pytest.raises(zlmdb.ReadonlyDatabase):
            t.users.put_new(1, User("ann"))
        with db.write() as t:
            assert t.users.put_new(1, User("ann"))
            assert not t.users.put_new(1, User("bob"))
            with pytest.raises(zlmdb.DuplicateKey):
                t.users.put_new(2, User("ann"))
            assert (t.users.by_name.key("ann"), "bob" in t.users.by_name, len(t.users)) == (1, False, 1)


# -- the laws of a mapping --------------------------------------------------------------------------------------------


class TestMappingProtocol:
    """The standard library's own tests of mappings, with a table in a transaction for the dict."""

    @pytest.fixture(autouse=True)
    def _tables(self, make_db: Callable[..., Any]) -> Iterator[None]:
        class Anything(zlmdb.Schema):
            a: zlmdb.Table[str, zlmdb.Pickle[Any]]
            b: zlmdb.Table[str, zlmdb.Pickle[Any]]

        db = make_db(Anything)

        def empty_table() -> Any:
            # Some tests compare two mappings: a new one each time, of two that take turns.
            name = next(self.names)
            if self.open is None:
                self.open = db.write().__enter__()
            table = self.open[name]
            table.clear()
            return table

        self.names = itertools.cycle("ab")
        self.open: Any = None
        self.make = empty_table
        yield
        if self.open is not None:
            self.open.txn.abort()

    @pytest.mark.parametrize(
        "name",
        [
            "test_read", "test_write", "test_constructor", "test_bool", "test_keys", "test_values", "test_items",
            "test_len", "test_getitem", "test_update", "test_get", "test_setdefault", "test_popitem", "test_pop",
        ],
    )  # fmt: skip
    def test_standard_library_claim_holds(self, name: str) -> None:
        mapping_tests = pytest.importorskip("test.mapping_tests")  # not every Python ships its own tests
        make = self.make

        class Claims(mapping_tests.BasicTestMappingProtocol):  # type: ignore[misc, name-defined]
            def type2test(self, *args: Any) -> Any:
                table = make()
                for arg in args:
                    table.update(arg)
                return table

        if name == "test_constructor":  # that one asks for two that are not one object, and closes over the class
            assert make() is not make()
            return
        result = unittest.TestResult()
        Claims(name).run(result)
        problems = [text for _, text in result.errors + result.failures]
        assert problems == []
        assert result.testsRun == 1


def test_table_is_a_mutable_mapping(t: Any) -> None:
    assert isinstance(t.logins, MutableMapping)
    assert isinstance(t.logins, Mapping)


def test_table_behaves_as_a_dict_over_its_whole_surface(t: Any) -> None:
    table, expected = t.logins, {}
    assert len(table) == 0
    assert not table
    for name, number in (("b", 2), ("a", 1), ("c", 3), ("a", 9)):
        table[name] = expected[name] = number
    assert table == expected
    assert expected == table
    assert table != {**expected, "a": 1}
    assert table != {"a": 9}
    assert dict(table) == expected
    assert len(table) == 3
    assert table
    assert list(table) == ["a", "b", "c"]
    assert list(reversed(table)) == ["c", "b", "a"]
    assert list(table.keys()) == ["a", "b", "c"]
    assert list(table.values()) == [9, 2, 3]
    assert list(table.items()) == [("a", 9), ("b", 2), ("c", 3)]
    assert table["b"] == 2
    assert table.get("b") == 2
    assert table.get("zz") is None
    assert table.get("zz", 5) == 5
    assert "a" in table
    assert "zz" not in table
    assert table.setdefault("a", 100) == 9
    assert table.setdefault("d", 4) == 4
    assert table.pop("d") == 4
    assert table.pop("d", 77) == 77
    assert table.popitem() == ("a", 9)
    table.update({"x": 1}, y=2)
    table.update([("z", 3)])
    assert dict(table) == {"b": 2, "c": 3, "x": 1, "y": 2, "z": 3}
    del table["x"]
    table.clear()
    assert dict(table) == {}
    assert table == {}


def test_missing_keys_raise_key_error_with_the_key(t: Any) -> None:
    with pytest.raises(KeyError) as caught:
        t.logins["zz"]
    assert caught.value.args == ("zz",)
    with pytest.raises(KeyError) as caught:
        del t.logins["zz"]
    assert caught.value.args == ("zz",)
    with pytest.raises(KeyError):
        t.logins.pop("zz")
    with pytest.raises(KeyError):
        t.logins.popitem()


def test_views_are_live_and_sized(t: Any) -> None:
    keys, values, items = t.logins.keys(), t.logins.values(), t.logins.items()
    assert len(keys) == len(values) == len(items) == 0
    t.logins.update(a=1, b=2)
    assert len(keys) == len(values) == len(items) == 2
    assert "a" in keys
    assert "zz" not in keys
    assert 2 in values
    assert 3 not in values
    assert ("a", 1) in items
    assert ("a", 2) not in items
    assert ("zz", 2) not in items
    assert keys & {"a", "zz"} == {"a"}
    assert keys | {"zz"} == {"a", "b", "zz"}
    assert keys == {"a", "b"}
    assert items == {("a", 1), ("b", 2)}
    assert keys.isdisjoint({"zz"})


def test_tables_are_compared_by_their_records(t: Any) -> None:
    t.logins.update(a=1)
    t.other.update(a=1)
    assert t.logins == t.other
    t.other["b"] = 2
    assert t.logins != t.other
    assert t.logins != 5
    with pytest.raises(TypeError):
        hash(t.logins)


def test_iteration_is_in_key_order_whatever_the_order_of_writing(t: Any) -> None:
    names = [f"n{i:03}" for i in range(200)]
    shuffled = random.Random(7).sample(names, len(names))
    for name in shuffled:
        t.logins[name] = 1
    assert list(t.logins) == names
    assert list(reversed(t.logins)) == names[::-1]


def test_records_survive_in_later_transactions_and_after_reopening(
    make_db: Callable[..., Any], combo: str
) -> None:  # fmt: skip
    db = make_db(Store)
    with db.write() as t:
        expected = fill(t.logins, 20)
    with db.read() as t:
        assert t.logins == expected
        assert len(t.logins) == 20
    db.close()
    if not combo.startswith("memory"):
        with make_db(Store) as again, again.read() as t:
            assert t.logins == expected


def test_a_table_is_made_by_a_transaction_only() -> None:
    with pytest.raises(TypeError, match="annotate an attribute of a zlmdb.Schema"):
        Logins()


def test_repr_names_the_table_and_shows_the_first_records(t: Any) -> None:
    fill(t.logins, 10)
    text = repr(t.logins)
    assert "Logins 'logins'" in text
    assert "('u0000', 0)" in text
    assert "..." in text
    assert "u0005" not in text


def test_repr_cuts_long_values(t: Any) -> None:
    t.seq[1] = "x" * 10_000
    assert len(repr(t.seq)) < 300


# -- new keys ---------------------------------------------------------------------------------------------------------


def test_add_counts_ints_up_from_one(t: Any) -> None:
    assert [t.seq.add(text) for text in "abc"] == [1, 2, 3]
    del t.seq[2]
    assert t.seq.add("d") == 4
    t.seq[100] = "e"
    assert t.seq.add("f") == 101
    assert dict(t.seq) == {1: "a", 3: "c", 4: "d", 100: "e", 101: "f"}


def test_add_counts_up_from_one_beside_negative_keys(t: Any) -> None:
    t.seq[-5] = "before"
    assert t.seq.add("x") > -5
    assert len(t.seq) == 2


def test_add_past_the_last_int_is_refused(t: Any) -> None:
    t.seq[2**63 - 1] = "last"
    with pytest.raises(zlmdb.EncodeError):
        t.seq.add("one more")
    assert len(t.seq) == 1


def test_add_makes_time_ordered_uuids(t: Any) -> None:
    keys = [t.users.add(User(str(i))) for i in range(50)]
    assert keys == sorted(keys)
    assert len(set(keys)) == 50
    assert {key.version for key in keys} == {7}
    assert [user.name for user in t.users.values()] == [str(i) for i in range(50)]


def test_add_takes_the_key_from_a_field_and_refuses_one_that_is_taken(t: Any) -> None:
    assert t.named.add(User("ann", 1)) == "ann"
    with pytest.raises(zlmdb.DuplicateKey) as caught:
        t.named.add(User("ann", 2))
    error = caught.value
    assert (error.table, error.index, error.key, error.owner) == ("named", None, "ann", "ann")
    assert "'ann'" in str(error)
    assert isinstance(error, zlmdb.ConstraintError)
    assert t.named["ann"] == User("ann", 1)


def test_add_asks_the_function_for_the_key(make_db: Callable[..., Any]) -> None:
    numbers = itertools.count(10)

    class Tickets(zlmdb.Table[int, str], key=lambda: next(numbers)): ...

    class Desk(zlmdb.Schema):
        tickets: Tickets

    with make_db(Desk).write() as t:
        assert t.tickets.add("a") == 10
        assert t.tickets.add("b") == 11


def test_add_takes_the_key_from_a_member_of_plain_data(make_db: Callable[..., Any]) -> None:
    class Plain(zlmdb.Table[str, zlmdb.Json[dict[str, Any]]], key="id"): ...

    class Data(zlmdb.Schema):
        plain: Plain

    with make_db(Data).write() as t:
        assert t.plain.add({"id": "x", "n": 1}) == "x"
        assert t.plain["x"] == {"id": "x", "n": 1}


def test_add_to_keys_that_cannot_be_made_up_asks_for_a_rule(t: Any) -> None:
    with pytest.raises(TypeError, match="key="):
        t.logins.add(5)
    assert len(t.logins) == 0


# -- edit -------------------------------------------------------------------------------------------------------------


def test_edit_stores_the_changed_object_at_the_end_of_the_block(t: Any) -> None:
    key = t.users.add(User("ann", 30))
    with t.users.edit(key) as user:
        user.age += 1
        user.tags.append("new")
        assert t.users[key] == User("ann", 30)
    assert t.users[key] == User("ann", 31, ["new"])


def test_edit_stores_nothing_when_the_block_fails(t: Any) -> None:
    key = t.users.add(User("ann", 30))
    with suppress(ZeroDivisionError), t.users.edit(key) as user:
        user.age = 99
        raise ZeroDivisionError
    assert t.users[key] == User("ann", 30)


def test_edit_inside_an_edit_of_the_same_record_raises(t: Any) -> None:
    t.named["ann"], t.named["bob"] = User("ann", 30), User("bob", 40)
    with t.named.edit("ann") as outer:
        outer.age = 31
        with pytest.raises(ValueError, match="edited by a block around"), t.named.edit("ann"):
            pytest.fail("the block must not run")
        with t.named.edit("bob") as other:
            other.age = 41
    with t.named.edit("ann") as again:
        assert again.age == 31
        again.age = 32
    assert (t.named["ann"].age, t.named["bob"].age) == (32, 41)


WAYS: dict[str, Callable[[Any, User], object]] = {
    "assignment": lambda table, other: table.__setitem__("ann", other),
    "replace": lambda table, other: table.replace("ann", other),
    "put_many": lambda table, other: table.put_many([("ann", other)]),
    "update": lambda table, other: table.update(ann=other),
    "change of a selection": lambda table, other: table.where(lambda user: user.name == "ann").change(lambda _: other),
    "deletion": lambda table, other: table.__delitem__("ann"),
    "deletion of a selection": lambda table, other: table.where(lambda user: user.name == "ann").delete(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", ["edit(key)", "selection.edit()", "selection.edit() in any table"])
def test_what_is_written_within_its_edit_is_not_overwritten_in_silence(
    t: Any, way: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``with t.users.edit(key) as user:`` around ``t.users[key] = other``, which was lost."""
    if form.endswith("any table"):
        monkeypatch.setattr(selected, "selected_of", lambda table: None)
    t.named["ann"], t.named["bob"] = User("ann", 30), User("bob", 40)
    verb = "deleted" if way.startswith("deletion") else "stored"
    advice = f"'named': the record 'ann' was {verb} within the block that edits it, .*change only that object, or write"
    with pytest.raises(ValueError, match=advice):  # noqa: PT012 - the blocks are the test
        if form == "edit(key)":
            with t.named.edit("ann") as user:
                user.age = 31
                WAYS[way](t.named, User("ann", 99))
        else:
            with t.named.where(lambda user: user.age < 40).edit() as users:
                for user in users:
                    user.age = 31
                    WAYS[way](t.named, User("ann", 99))
    assert t.named.get("ann") == (None if verb == "deleted" else User("ann", 99))
    with t.named.edit("bob") as user:  # the transaction goes on, and no block is left
        t.named["ann"] = User("ann", 1)
        user.age = 41
    with t.named.edit("ann") as user:
        t.named["bob"], user.age = User("bob", 42), 2
    assert (t.named["ann"].age, t.named["bob"].age) == (2, 42)


def test_a_block_may_store_the_object_that_it_edits_itself(t: Any) -> None:
    """Whoever does not trust the end of the block; what is undone within it does not matter either."""
    t.named["ann"] = User("ann", 30)
    with t.named.edit("ann") as user:
        user.age = 31
        t.named["ann"] = user
    with t.named.select().edit() as users:
        for user in users:
            user.age += 1
            with suppress(ZeroDivisionError), t.txn.savepoint():
                t.named["ann"] = User("ann", 99)
                raise ZeroDivisionError
    assert t.named["ann"].age == 32


def test_edit_of_a_missing_record_raises_key_error(t: Any) -> None:
    with pytest.raises(KeyError), t.named.edit("zz"):
        pytest.fail("the block must not run")


def test_edit_in_a_read_transaction_is_refused_before_the_block(db: Any) -> None:
    with db.write() as t:
        t.named.add(User("ann"))
    with db.read() as t, pytest.raises(zlmdb.ReadonlyDatabase), t.named.edit("ann"):
        pytest.fail("the block must not run")


def test_edit_refuses_what_does_not_fit_and_keeps_the_record(t: Any) -> None:
    t.named.add(User("ann", 30))
    with pytest.raises(zlmdb.EncodeError), t.named.edit("ann") as user:
        user.age = "old"
    assert t.named["ann"] == User("ann", 30)


# -- many keys --------------------------------------------------------------------------------------------------------


def test_any_object_is_a_default(t: Any) -> None:
    for default in KeyError, LookupError, KeyError("a"), ...:
        assert t.logins.get("nobody", default) is default
        assert t.seq.get(-1, default) is default
        with t.txn.savepoint():
            assert t.named.get("nobody", default) is default


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("form", [list, iter])
def test_a_setitem_of_the_table_class_stores_what_put_many_is_given(
    make_db: Callable[..., Any], form: Any, append: bool
) -> None:
    class Folded(zlmdb.Table[str, int]):
        def __setitem__(self, key: str, value: int) -> None:
            super().__setitem__(key.lower(), value)

    class Schema(zlmdb.Schema):
        folded: Folded

    db = make_db(Schema)
    with db.write() as t:
        assert t.folded.put_many(form([("A", 1), ("B", 2)]), append=append) == 2
        assert dict(t.folded) == {"a": 1, "b": 2}


def test_get_many_answers_in_the_order_asked(t: Any) -> None:
    fill(t.logins, 10)
    assert list(t.logins.get_many(["u0003", "zz", "u0001", "u0003"])) == [3, None, 1, 3]
    assert list(t.logins.get_many([])) == []


def test_get_many_of_thousands_in_random_order(t: Any) -> None:
    t.seq.put_many(((i, str(i)) for i in range(0, 5000, 2)), append=True)
    keys = random.Random(3).sample(range(5000), 3500)
    assert list(t.seq.get_many(keys)) == [str(key) if key % 2 == 0 else None for key in keys]


def test_get_many_is_lazy(t: Any) -> None:
    fill(t.logins, 3)
    asked = []

    def keys() -> Iterator[str]:
        for i in itertools.count():
            asked.append(i)
            yield f"u{i % 3:04}"

    values = t.logins.get_many(keys())
    assert asked == []
    assert [next(values), next(values)] == [0, 1]
    assert len(asked) <= 1000


def test_get_many_refuses_a_key_that_does_not_fit(t: Any) -> None:
    with pytest.raises(zlmdb.EncodeError):
        list(t.logins.get_many(["a", 5]))


def test_get_many_ends_with_its_transaction(db: Any) -> None:
    with db.write() as t:
        fill(t.logins, 3)
    with db.read() as t:
        values = t.logins.get_many(["u0000", "u0001"])
        assert next(values) == 0
    with pytest.raises(zlmdb.TransactionClosed):
        next(values)


@pytest.mark.parametrize("form", [list, tuple, iter])
@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("table", ["seq", "other"])
def test_put_many_stores_and_counts(t: Any, table: str, append: bool, form: Any) -> None:
    rows = [(i, str(i)) for i in range(2500)] if table == "seq" else [(f"{i:04}", i) for i in range(2500)]
    records = getattr(t, table)
    assert records.put_many(form(rows[:-2]), append=append) == 2498
    assert len(records) == 2498
    assert list(records.items()) == rows[:-2]
    assert records.put_many(form([]), append=append) == 0
    assert records.put_many(form(rows[-2:]), append=append) == 2
    assert list(records.items()) == rows


@pytest.mark.parametrize("form", [list, tuple, iter])
def test_put_many_replaces_and_takes_any_order(t: Any, form: Any) -> None:
    t.seq[5] = "old"
    assert t.seq.put_many(form([(9, "nine"), (5, "new"), (1, "one"), (5, "newer")])) == 4
    assert dict(t.seq) == {1: "one", 5: "newer", 9: "nine"}


@pytest.mark.parametrize("form", [list, iter])
@pytest.mark.parametrize("before", [0, CHUNK - 1, CHUNK, CHUNK + 1])
@pytest.mark.parametrize(
    "items", [[(3, "x")], [(10, "x")], [(11, "x"), (11, "y")], [(12, "x"), (11, "y")]], ids=str
)  # fmt: skip
def test_append_refuses_keys_that_do_not_ascend_past_the_last(
    t: Any, items: list[tuple[int, str]], before: int, form: Any
) -> None:
    t.seq.put_many([(9 - CHUNK - 5, "first")], append=True)
    rows = [*((9 - before + i, "row") for i in range(before)), (9, "nine"), (10, "ten"), *items]
    with pytest.raises(zlmdb.EncodeError, match="ascending"):
        t.seq.put_many(form(rows), append=True)
    assert dict(t.seq) == {9 - CHUNK - 5: "first", **dict(rows[:-1])}


@pytest.mark.parametrize("form", [list, iter])
@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize(
    "before", [CHUNK - 1, 2 * CHUNK + 7, *(pytest.param(one, marks=pytest.mark.once) for one in (2, CHUNK))]
)
@pytest.mark.parametrize("bad", [("x", "text"), (9999, 5), (2**63, "text"), (None, "text"), 7, (1, 2, 3)], ids=repr)
def test_put_many_stores_those_before_a_pair_that_is_refused(
    t: Any, append: bool, bad: Any, before: int, form: Any
) -> None:
    good = [(i, str(i)) for i in range(before)]
    expected = zlmdb.EncodeError if isinstance(bad, tuple) and len(bad) == 2 else (TypeError, ValueError)
    with pytest.raises(expected):
        t.seq.put_many(form([*good, bad, (10_000, "c")]), append=append)
    assert list(t.seq.items()) == good
    t.seq[before] = "the transaction goes on"
    assert len(t.seq) == before + 1


def test_append_in_chunks_goes_on_from_the_chunk_before(t: Any) -> None:
    rows = [(i, "") for i in range(CHUNK)]
    with pytest.raises(zlmdb.EncodeError, match="ascending"):
        t.seq.put_many([*rows, (CHUNK - 1, "again"), (CHUNK, "")], append=True)
    assert list(t.seq.items()) == rows


@pytest.mark.parametrize("append", [False, True])
def test_put_many_passes_the_error_of_its_iterator_on(t: Any, append: bool) -> None:
    def items() -> Iterator[tuple[int, str]]:
        yield 1, "a"
        raise LookupError("the source failed")

    with pytest.raises(LookupError, match="the source failed") as caught:
        t.seq.put_many(items(), append=append)
    assert caught.value.__cause__ is None
    assert dict(t.seq) == {1: "a"}


def test_append_to_one_table_leaves_its_neighbours_alone(t: Any) -> None:
    t.seq[1] = "s"
    t.other["zzz"] = 1
    t.logins.put_many([("a", 1), ("b", 2)], append=True)
    t.users.put_many([(uuid4(), User("x"))], append=True)
    t.logins.put_many([("c", 3)], append=True)
    assert dict(t.logins) == {"a": 1, "b": 2, "c": 3}
    assert dict(t.other) == {"zzz": 1}
    assert dict(t.seq) == {1: "s"}


def test_put_many_in_a_read_transaction_is_refused(db: Any) -> None:
    with db.read() as t, pytest.raises(zlmdb.ReadonlyDatabase):
        t.seq.put_many([(1, "x")])


# -- ranges -----------------------------------------------------------------------------------------------------------

WORDS = ["a", "aa", "ab", "abc", "b", "ba", "c", "c\x00", "c\x00d", "d\uffff", "e", "é", "\U0001f600", "zz"]


def expected_rows(
    records: dict[Any, Any], start: Any, stop: Any, prefix: Optional[str], reverse: bool, limit: Optional[int]
) -> list[tuple[Any, Any]]:  # fmt: skip
    keys = sorted(records)
    if start is not None:
        keys = keys[bisect.bisect_left(keys, start) :]
    if stop is not None:
        keys = keys[: bisect.bisect_left(keys, stop)]
    if prefix is not None:
        keys = [key for key in keys if key.startswith(prefix)]
    keys = keys[::-1] if reverse else keys
    return [(key, records[key]) for key in keys[:limit]]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [None, 0, 1, 3, 100])
def test_every_range_of_words_is_that_of_a_sorted_list(t: Any, reverse: bool, limit: Optional[int]) -> None:
    records = {word: i for i, word in enumerate(WORDS)}
    t.logins.update(records)
    t.other["neighbour"] = 1
    bounds = [None, *WORDS[::2], "a\x00", "q"]
    for start, stop in itertools.product(bounds, bounds):
        rows = t.logins.select(start, stop, reverse=reverse, limit=limit)
        expected = expected_rows(records, start, stop, None, reverse, limit)
        assert list(rows) == expected, (start, stop)
        assert rows.count() == len(expected)
        assert bool(rows) is bool(expected)
        assert rows.first() == (expected[0] if expected else None)
        assert rows.last() == (expected[-1] if expected else None)
    for prefix in ["a", "ab", "c", "c\x00", "d", "q", "\U0001f600", ""]:
        for start, stop in [(None, None), ("ab", None), (None, "ab"), ("aa", "c")]:
            rows = t.logins.select(start, stop, startswith=prefix, reverse=reverse, limit=limit)
            assert list(rows) == expected_rows(records, start, stop, prefix, reverse, limit), (start, stop, prefix)


class Ranges(zlmdb.Schema):
    ints: zlmdb.Table[int, int]
    texts: zlmdb.Table[str, int]
    blobs: zlmdb.Table[bytes, int]
    pairs: zlmdb.Table[tuple[str, int], int]


@pytest.fixture(scope="module", params=["tables", pytest.param("classic", marks=pytest.mark.once)])
def ranges(request: pytest.FixtureRequest) -> Iterator[Any]:
    with zlmdb.open(None, Ranges, layout=request.param) as db:
        yield db


texts = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6)
short = st.text("ab\x00\x01é", min_size=1, max_size=4)
some = settings(max_examples=15 if sys.implementation.name == "pypy" else 40)
optional_int = st.none() | st.integers(-50, 50)


@some
@given(
    keys=st.sets(st.integers(-50, 50) | st.integers(-(2**63), 2**63 - 1), max_size=30),
    start=optional_int, stop=optional_int, reverse=st.booleans(), limit=st.none() | st.integers(0, 10),
)  # fmt: skip
def test_ranges_of_ints(ranges: Any, keys: Any, start: Any, stop: Any, reverse: bool, limit: Any) -> None:
    records = {key: i for i, key in enumerate(keys)}
    t = ranges.write().__enter__()
    t.ints.update(records)
    assert list(t.ints.select(start, stop, reverse=reverse, limit=limit)) == expected_rows(
        records, start, stop, None, reverse, limit
    )
    t.txn.abort()


@some
@given(
    keys=st.sets(short, max_size=30), start=st.none() | short, stop=st.none() | short, prefix=st.none() | short,
    reverse=st.booleans(), limit=st.none() | st.integers(0, 10),
)  # fmt: skip
def test_ranges_and_prefixes_of_texts_and_bytes(
    ranges: Any, keys: Any, start: Any, stop: Any, prefix: Any, reverse: bool, limit: Any
) -> None:
    records = {key: i for i, key in enumerate(keys)}
    t = ranges.write().__enter__()
    t.texts.update(records)
    expected = expected_rows(records, start, stop, prefix, reverse, limit)
    assert list(t.texts.select(start, stop, startswith=prefix, reverse=reverse, limit=limit)) == expected
    t.blobs.update({key.encode(): i for key, i in records.items()})
    bounds = [None if bound is None else bound.encode() for bound in (start, stop, prefix)]
    rows = t.blobs.select(bounds[0], bounds[1], startswith=bounds[2], reverse=reverse, limit=limit)
    assert list(rows) == [(key.encode(), i) for key, i in expected]
    t.txn.abort()


@some
@given(
    keys=st.sets(st.tuples(st.text("ab\x00", max_size=3), st.integers(-3, 3)), max_size=30),
    start=st.none() | st.tuples(st.text("ab\x00", max_size=3), st.integers(-3, 3)),
    first=st.none() | st.text("ab\x00", max_size=3), reverse=st.booleans(),
)  # fmt: skip
def test_ranges_and_prefixes_of_tuples(ranges: Any, keys: Any, start: Any, first: Any, reverse: bool) -> None:
    records = {key: i for i, key in enumerate(keys)}
    t = ranges.write().__enter__()
    t.pairs.update(records)
    chosen = [key for key in sorted(records) if (start is None or key >= start) and (first is None or key[0] == first)]
    rows = t.pairs.select(start, prefix=None if first is None else (first,), reverse=reverse)
    assert list(rows.keys()) == (chosen[::-1] if reverse else chosen)
    t.txn.abort()


@some
@given(st.dictionaries(texts.filter(bool), st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_any_text_and_number_comes_back(ranges: Any, records: dict[str, int]) -> None:
    t = ranges.write().__enter__()
    t.texts.update(records)
    assert dict(t.texts) == records
    assert list(t.texts) == sorted(records)
    t.txn.abort()


def test_bounds_may_be_what_no_key_can_be(t: Any) -> None:
    """A bound or a prefix need not be storable itself: it only says where to begin."""
    expected = fill(t.logins, 5)
    assert dict(t.logins.select("", "z")) == expected
    assert dict(t.logins.select("u" * 3000)) == {}
    assert dict(t.logins.select(None, "u" * 3000)) == expected
    assert dict(t.logins.select(startswith="u" * 3000)) == {}
    assert list(t.logins.select(None, "u" * 3000, reverse=True).keys()) == sorted(expected, reverse=True)
    assert dict(t.logins.select(None, "")) == {}
    assert dict(t.logins.select(startswith="")) == expected


def test_a_stop_of_zero_or_a_limit_of_zero_is_not_the_same_as_none(t: Any) -> None:
    t.seq.update({-1: "a", 0: "b", 1: "c"})
    assert list(t.seq.select(0).keys()) == [0, 1]
    assert list(t.seq.select(None, 0).keys()) == [-1]
    assert list(t.seq.select(0, 0)) == []
    assert list(t.seq.select(limit=0)) == []
    assert t.seq.select(limit=0).count() == 0
    assert not t.seq.select(limit=0)
    assert t.seq.select(limit=0).first() is None
    assert t.seq.select(limit=0).last() is None


def test_negative_limits_are_refused(t: Any) -> None:
    with pytest.raises(ValueError, match="limit=-1"):
        t.logins.select(limit=-1)


def test_bounds_of_the_wrong_type_are_refused_at_once(t: Any) -> None:
    for arguments in [{"start": 5}, {"stop": 5}, {"prefix": 5}]:
        with pytest.raises(zlmdb.EncodeError, match="logins"):
            t.logins.select(**arguments)


def test_start_behind_stop_is_empty(t: Any) -> None:
    fill(t.logins, 5)
    for reverse in (False, True):
        assert list(t.logins.select("u0003", "u0001", reverse=reverse)) == []
        assert t.logins.select("u0003", "u0001", reverse=reverse).count() == 0


def test_a_range_never_reaches_into_a_neighbouring_table(t: Any) -> None:
    t.named.add(User("ann"))
    t.users.add(User("x"))
    t.seq[-(2**63)] = "least"
    t.seq[2**63 - 1] = "greatest"
    t.logins["\x00"] = 1
    t.logins["\U0010ffff"] = 2
    t.other["\x00"] = 3
    for reverse in (False, True):
        assert sorted(t.logins.select(reverse=reverse)) == [("\x00", 1), ("\U0010ffff", 2)]
        assert sorted(t.seq.select(reverse=reverse).keys()) == [-(2**63), 2**63 - 1]
        assert list(t.other.select(reverse=reverse)) == [("\x00", 3)]
    assert t.other.popitem() == ("\x00", 3)
    assert not t.other
    assert len(t.logins) == 2


# -- types of keys and values -----------------------------------------------------------------------------------------

NOW = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
KEYS: dict[str, tuple[Any, list[Any]]] = {
    "int": (int, [-(2**63), -256, -1, 0, 1, 255, 2**63 - 1]),
    "str": (str, ["\x00", "a", "a\x00", "a\x00b", "b", "é", "\U0001f600"]),
    "bytes": (bytes, [b"\x00", b"\x00\x00", b"a", b"\xff", b"\xff\xff"]),
    "uuid": (UUID, [UUID(int=0), UUID(int=1), UUID(int=2**128 - 1)]),
    "bool": (bool, [False, True]),
    "float": (float, [float("-inf"), -1.5, -0.0, 1e-300, 1.5, float("inf")]),
    "datetime": (datetime, [NOW - timedelta(days=30000), NOW, NOW + timedelta(microseconds=1)]),
    "date": (date, [date(1, 1, 1), date(2024, 5, 6), date(9999, 12, 31)]),
    "tuple": (tuple[str, int], [("", -1), ("", 0), ("a", 0), ("a\x00", 0), ("b", -5)]),
    "nested tuple": (tuple[tuple[str, bytes], date], [(("", b""), date(1, 1, 1)), (("a", b"\x00"), date(2, 1, 1))]),
    "k.Oid": (k.Oid, [0, 1, 2**53]),
    "k.Uuid": (k.Uuid, [UUID(int=0), UUID(int=7)]),
    "k.String": (k.String, ["a", "b", "bb"]),
    "k.Bytes16": (k.Bytes16, [b"\x00" * 16, b"\xff" * 16]),
    "k.Bytes20": (k.Bytes20, [b"\x00" * 20, b"\xff" * 20]),
    "k.Bytes32": (k.Bytes32, [b"\x00" * 32, b"\xff" * 32]),
    "k.Uint16": (k.Uint16, [0, 1, 65535]),
    "k tuple": (tuple[k.Uuid, k.String], [(UUID(int=0), "a"), (UUID(int=0), "b"), (UUID(int=1), "a")]),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type_are_stored_in_order_and_come_back(make_db: Callable[..., Any], name: str) -> None:
    key_type, keys = KEYS[name]

    class Keyed(zlmdb.Schema):
        table: zlmdb.Table[key_type, int]  # type: ignore[valid-type]
        before: zlmdb.Table[int, int]

    with make_db(Keyed).write() as t:
        for i, key in reversed(list(enumerate(keys))):
            t.table[key] = i
        assert list(t.table) == keys
        assert [type(key) for key in t.table] == [type(key) for key in keys]
        assert list(reversed(t.table)) == keys[::-1]
        assert list(t.table.get_many(keys)) == list(range(len(keys)))
        for i, key in enumerate(keys):
            assert t.table[key] == i
            assert key in t.table
            assert list(t.table.select(key).keys()) == keys[i:]
            assert list(t.table.select(None, key).keys()) == keys[:i]
            assert list(t.table.select(None, key, reverse=True).keys()) == keys[:i][::-1]
        for count, key in enumerate(keys, 1):
            del t.table[key]
            assert len(t.table) == len(keys) - count
            assert key not in t.table


def test_datetimes_in_other_zones_are_the_same_key(make_db: Callable[..., Any]) -> None:
    class Events(zlmdb.Schema):
        events: zlmdb.Table[datetime, str]

    elsewhere = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    with make_db(Events).write() as t:
        t.events[elsewhere] = "x"
        assert t.events[NOW] == "x"
        [key] = t.events
        assert key == NOW
        assert key.tzinfo is UTC
        with pytest.raises(zlmdb.EncodeError, match="aware|zone"):
            t.events[datetime(2024, 1, 1)] = "naive"
        assert len(t.events) == 1


def test_minus_zero_is_the_key_zero(make_db: Callable[..., Any]) -> None:
    class Floats(zlmdb.Schema):
        floats: zlmdb.Table[float, str]

    with make_db(Floats).write() as t:
        t.floats[-0.0] = "x"
        assert t.floats[0.0] == "x"
        assert str(next(iter(t.floats))) == "0.0"
        t.floats[3] = "an int is a float where exact"
        assert list(t.floats) == [0.0, 3.0]
        with pytest.raises(zlmdb.EncodeError):
            t.floats[float("nan")] = "x"


@pytest.mark.parametrize(
    ("value_type", "values"),
    [
        (str, ["", "x"]),
        (bytes, [b"", b"x"]),
        (int, [0, -1]),
        (float, [0.0, 1.5]),
        (bool, [False, True]),
        (UUID, [UUID(int=0)]),
        (zlmdb.Json[Any], [None, False, 0, "", [], {}, {"a": None}]),
        (zlmdb.Cbor[Any], [None, False, 0, "", b"", [], {}]),
        (zlmdb.Msgpack[Any], [None, False, 0, "", b"", [], {}]),
        (zlmdb.Pickle[Any], [None, False, 0, "", b"", [], {}, (), set()]),
        (list[int], [[], [1]]),
        (dict[str, int], [{}, {"a": 0}]),
        (v.String, ["", "x"]),
        (v.OidSet, [set(), {0}]),
        (v.UuidSet, [set(), {UUID(int=0)}]),
    ],
    ids=str,
)  # fmt: skip
def test_falsy_values_are_values(make_db: Callable[..., Any], value_type: Any, values: list[Any]) -> None:
    class Values(zlmdb.Schema):
        table: zlmdb.Table[int, value_type]

    with make_db(Values).write() as t:
        for i, value in enumerate(values):
            t.table[i] = value
        for i, value in enumerate(values):
            assert t.table[i] == value
            assert t.table.get(i, "default") == value
            assert i in t.table
            assert t.table.setdefault(i, value) == value
        assert list(t.table.values()) == values
        assert list(t.table.get_many(range(len(values)))) == values
        assert t.table.pop(0) == values[0]
        assert 0 not in t.table


@pytest.mark.parametrize(("key_type", "key"), [(int, 0), (bool, False), (float, 0.0), (tuple[str, str], ("", ""))])
def test_falsy_keys_are_keys(make_db: Callable[..., Any], key_type: Any, key: Any) -> None:
    class Keyed(zlmdb.Schema):
        table: zlmdb.Table[key_type, str]

    with make_db(Keyed).write() as t:
        t.table[key] = "here"
        assert t.table[key] == "here"
        assert list(t.table.select(key)) == [(key, "here")]
        assert list(t.table.select(None, key)) == []
        assert t.table.popitem() == (key, "here")


@pytest.mark.parametrize("key", ["", b""])
def test_empty_keys_are_refused_where_the_engine_has_none(make_db: Callable[..., Any], combo: str, key: Any) -> None:
    class Keyed(zlmdb.Schema):
        table: zlmdb.Table[type(key), str]  # type: ignore[misc]

    with make_db(Keyed).write() as t:
        if combo.endswith("classic"):  # there the slot leads every key
            t.table[key] = "x"
            assert dict(t.table) == {key: "x"}
            return
        for use in (
            lambda: t.table[key], lambda: key in t.table, lambda: t.table.get(key), lambda: t.table.pop(key),
            lambda: t.table.__setitem__(key, "x"), lambda: t.table.__delitem__(key),
        ):  # fmt: skip
            with pytest.raises(zlmdb.EncodeError, match="empty") as caught:
                use()
            assert (caught.value.table, caught.value.size) == ("table", 0)
        assert len(t.table) == 0


def test_over_long_keys_are_refused_with_size_and_limit(t: Any, combo: str) -> None:
    limit = 511 - (2 if combo.endswith("classic") else 0)
    if combo.startswith("memory"):
        limit = t.txn._store.env.max_key_size() - (2 if combo.endswith("classic") else 0)
    t.logins["x" * limit] = 1
    assert t.logins["x" * limit] == 1
    for use in (
        lambda key: t.logins[key], lambda key: key in t.logins, lambda key: t.logins.get(key),
        lambda key: t.logins.__setitem__(key, 1), lambda key: t.logins.__delitem__(key),
        lambda key: t.logins.put_many([(key, 1)]), lambda key: t.logins.put_many([(key, 1)], append=True),
    ):  # fmt: skip
        with pytest.raises(zlmdb.EncodeError) as caught:
            use("x" * (limit + 1))
        error = caught.value
        assert error.table == "logins"
        assert error.limit == t.txn._store.env.max_key_size()
        assert error.size == error.limit + 1
        assert str(error.limit) in str(error)
    assert len(t.logins) == 1


@pytest.mark.parametrize("key", [5, None, b"x", ("a",), 1.5, True, "\ud800"], ids=repr)
def test_keys_of_the_wrong_type_are_refused_everywhere(t: Any, key: Any) -> None:
    t.logins["a"] = 1
    for use in (
        lambda: t.logins[key], lambda: key in t.logins, lambda: t.logins.get(key), lambda: t.logins.pop(key, None),
        lambda: t.logins.__setitem__(key, 1), lambda: t.logins.__delitem__(key), lambda: t.logins.setdefault(key, 1),
    ):  # fmt: skip
        with pytest.raises(zlmdb.EncodeError, match="table 'logins'"):
            use()
    assert dict(t.logins) == {"a": 1}


@pytest.mark.parametrize("key", [True, "1", 1.0, 2**63, -(2**63) - 1, None], ids=repr)
def test_ints_are_ints_and_in_range(t: Any, key: Any) -> None:
    t.seq[1] = "x"
    with pytest.raises(zlmdb.EncodeError, match="table 'seq'"):
        t.seq[key] = "y"
    assert dict(t.seq) == {1: "x"}


def test_anything_with_an_index_is_an_int_key(t: Any) -> None:
    class Seven:
        def __index__(self) -> int:
            return 7

    t.seq[Seven()] = "x"
    assert t.seq[7] == "x"
    assert t.seq[Seven()] == "x"
    assert list(t.seq) == [7]


@pytest.mark.parametrize("value", ["x", None, 1.5, 2**63, [1]], ids=repr)
def test_values_of_the_wrong_type_are_refused_with_table_and_key(t: Any, value: Any) -> None:
    t.logins["a"] = 1
    for use in (
        lambda: t.logins.__setitem__("a", value), lambda: t.logins.update({"a": value}),
        lambda: t.logins.put_many([("a", value)]), lambda: t.logins.setdefault("b", value),
    ):  # fmt: skip
        with pytest.raises(zlmdb.EncodeError, match="table 'logins'") as caught:
            use()
        assert caught.value.table == "logins"
        assert caught.value.key in ("a", "b")
    assert dict(t.logins) == {"a": 1}


@pytest.mark.parametrize(
    "value", [User(5), User("x", "old"), User("x", 1, "tag"), User("x", 1, [1]), {"name": "x"}, None, "x"], ids=str
)  # fmt: skip
def test_models_that_could_not_be_read_again_are_refused(t: Any, value: Any) -> None:
    with pytest.raises(zlmdb.EncodeError, match="named"):
        t.named["x"] = value
    assert len(t.named) == 0


def test_undecodable_values_raise_with_table_and_key(db: Any) -> None:
    with db.write() as t:
        t.seq[5] = "ok"
        place = t.seq._storage
        handle = t.txn._handle(place.space)[0]
        t.txn._engine_txn.put(place.encode_key(6), b"\xff\xfe", db=handle)
        for use in (
            lambda: t.seq[6], lambda: t.seq.get(6), lambda: list(t.seq.values()), lambda: list(t.seq.items()),
            lambda: list(t.seq.get_many([6])), lambda: t.seq.select(6).first(), lambda: t.seq.pop(6),
        ):  # fmt: skip
            with pytest.raises(zlmdb.DecodeError, match="'seq'.*6") as caught:
                use()
            assert caught.value.table == "seq"
        assert list(t.seq) == [5, 6]
        assert 6 in t.seq
        del t.seq[6]
        assert dict(t.seq) == {5: "ok"}


def test_undecodable_keys_raise_with_the_table(db: Any) -> None:
    with db.write() as t:
        place = t.seq._storage
        t.txn._engine_txn.put(place.prefix + b"odd", b"x", db=t.txn._handle(place.space)[0])
        for use in (lambda: list(t.seq), lambda: list(t.seq.items()), lambda: t.seq.popitem()):
            with pytest.raises(zlmdb.DecodeError, match="'seq'"):
                use()
        assert list(t.seq.values()) == ["x"]
        t.seq.clear()


# -- truncate, and the end of the transaction -------------------------------------------------------------------------


def test_clear_empties_one_table_only(t: Any) -> None:
    fill(t.logins, 2500)
    t.other["x"] = 1
    t.seq[1] = "s"
    assert t.logins.truncate() == 2500
    assert len(t.logins) == 0
    assert list(t.logins) == []
    assert t.logins.truncate() == 0
    assert dict(t.other) == {"x": 1}
    assert dict(t.seq) == {1: "s"}
    fill(t.logins, 3)
    assert len(t.logins) == 3


def test_an_aborted_clear_leaves_the_records(db: Any) -> None:
    with db.write() as t:
        expected = fill(t.logins, 30)
    with suppress(ZeroDivisionError), db.write() as t:
        t.logins.clear()
        assert not t.logins
        raise ZeroDivisionError
    with db.read() as t:
        assert t.logins == expected


EVERY_USE: dict[str, Callable[[Any], Any]] = {
    "getitem": lambda table: table["a"],
    "get": lambda table: table.get("a"),
    "in": lambda table: "a" in table,
    "len": len,
    "bool": bool,
    "iter": list,
    "reversed": lambda table: list(reversed(table)),
    "keys": lambda table: list(table.keys()),
    "values": lambda table: list(table.values()),
    "items": lambda table: list(table.items()),
    "eq": lambda table: table == {"a": 1},
    "select": lambda table: list(table.select("a")),
    "count": lambda table: table.select().count(),
    "get_many": lambda table: list(table.get_many(["a"])),
}
EVERY_WRITE: dict[str, Callable[[Any], Any]] = {
    "setitem": lambda table: table.__setitem__("a", 2),
    "delitem": lambda table: table.__delitem__("a"),
    "pop": lambda table: table.pop("a"),
    "popitem": lambda table: table.popitem(),
    "setdefault": lambda table: table.setdefault("b", 2),
    "update": lambda table: table.update(b=2),
    "clear": lambda table: table.clear(),
    "truncate": lambda table: table.truncate(),
    "edit": lambda table: table.edit("a").__enter__(),
    "put_many": lambda table: table.put_many([("b", 2)]),
    "append": lambda table: table.put_many([("b", 2)], append=True),
    "delete": lambda table: table.select().delete(),
}


@pytest.mark.parametrize("end", ["commit", "abort", "leave"])
def test_tables_raise_after_the_end_of_their_transaction(db: Any, end: str) -> None:
    with db.write() as t:
        table = t.logins
        table["a"] = 1
        if end != "leave":
            getattr(t.txn, end)()
            assert_closed(table, {**EVERY_USE, **EVERY_WRITE})
    assert_closed(table, {**EVERY_USE, **EVERY_WRITE})
    assert "ended" in repr(table)


def assert_closed(table: Any, uses: dict[str, Callable[[Any], Any]]) -> None:
    for name, use in uses.items():
        with pytest.raises(zlmdb.TransactionClosed):
            pytest.fail(f"{name} gave {use(table)!r}")


def test_tables_of_read_transactions_raise_after_their_end(db: Any) -> None:
    with db.read() as t:
        table = t.logins
        len(table)
    assert_closed(table, EVERY_USE)


def test_read_transactions_write_nothing(db: Any) -> None:
    with db.write() as t:
        t.logins["a"] = 1
    with db.read() as t:
        for name, write in EVERY_WRITE.items():
            with pytest.raises(zlmdb.ReadonlyDatabase):
                pytest.fail(f"{name} gave {write(t.logins)!r}")
        assert dict(t.logins) == {"a": 1}


def test_a_snapshot_does_not_see_later_writes(db: Any) -> None:
    with db.write() as t:
        fill(t.logins, 5)
    before = db.read()
    with db.write() as t:
        t.logins["u0000"] = 100
        t.logins["new"] = 1
        del t.logins["u0001"]
        assert before.logins["u0000"] == 0
    assert before.logins["u0000"] == 0
    assert len(before.logins) == 5
    assert "new" not in before.logins
    before.txn.abort()
    with db.read() as t:
        assert t.logins["u0000"] == 100
        assert len(t.logins) == 5


# -- the class --------------------------------------------------------------------------------------------------------


def test_a_table_has_the_name_that_the_class_says(make_db: Callable[..., Any], combo: str) -> None:
    class Called(zlmdb.Table[str, int], name="in the file"): ...

    class One(zlmdb.Schema):
        called: Called

    with make_db(One) as db, db.write() as t:
        t.called["a"] = 1
        assert "in the file" in db.tables()
        assert t["called"]["a"] == 1


def test_a_renamed_attribute_is_another_table_unless_named(make_db: Callable[..., Any], combo: str) -> None:
    if combo.startswith("memory"):
        pytest.skip("nothing to reopen")

    class Called(zlmdb.Table[str, int], name="kept"): ...

    class One(zlmdb.Schema):
        first: Called
        second: zlmdb.Table[str, int]

    class Two(zlmdb.Schema):
        renamed: Called
        other: zlmdb.Table[str, int]

    with make_db(One) as db, db.write() as t:
        t.first["a"] = 1
        t.second["b"] = 2
    with make_db(Two) as db, db.write() as t:
        assert dict(t.renamed) == {"a": 1}
        assert dict(t.other) == {}
        assert dict(t["second"]) == {"b": 2}


def test_a_table_subclass_may_have_methods_of_its_own(make_db: Callable[..., Any]) -> None:
    class Counters(zlmdb.Table[str, int]):
        def bump(self, name: str) -> int:
            self[name] = number = self.get(name, 0) + 1
            return number

    class One(zlmdb.Schema):
        counters: Counters

    with make_db(One).write() as t:
        assert [t.counters.bump("x"), t.counters.bump("x")] == [1, 2]


def test_generic_table_classes_between_are_seen_through(make_db: Callable[..., Any]) -> None:
    from typing import Generic, TypeVar

    W = TypeVar("W")

    class ByName(zlmdb.Table[str, W], Generic[W]): ...

    class Ages(ByName[int]): ...

    class One(zlmdb.Schema):
        ages: Ages
        names: ByName[str]

    with make_db(One).write() as t:
        t.ages["a"] = 1
        t.names["a"] = "x"
        with pytest.raises(zlmdb.EncodeError):
            t.ages["a"] = "x"
        assert dict(t.ages) == {"a": 1}


def test_a_table_without_types_is_refused(make_db: Callable[..., Any]) -> None:
    class Untyped(zlmdb.Table): ...  # type: ignore[type-arg]

    class One(zlmdb.Schema):
        untyped: Untyped

    with pytest.raises(TypeError, match="untyped"):
        make_db(One)


def test_types_without_codec_are_refused_naming_the_table(make_db: Callable[..., Any]) -> None:
    class One(zlmdb.Schema):
        odd: zlmdb.Table[complex, int]

    with pytest.raises(TypeError, match="odd.*complex|complex.*odd"):
        make_db(One)


def test_an_index_cannot_take_the_name_of_a_method() -> None:
    with pytest.raises((TypeError, RuntimeError), match="values|add"):  # 3.9 to 3.11 wrap errors of a class body

        class Bad(zlmdb.Table[str, User]):
            values = zlmdb.Index[int]("age")  # type: ignore[assignment]


def test_a_value_type_given_in_two_steps_is_seen_through(make_db: Callable[..., Any]) -> None:
    from typing import Generic, TypeVar

    W = TypeVar("W")

    class Lists(zlmdb.Table[str, list[W]], Generic[W]): ...

    class One(zlmdb.Schema):
        numbers: Lists[int]

    with make_db(One).write() as t:
        t.numbers["a"] = [1, 2]
        with pytest.raises(zlmdb.EncodeError):
            t.numbers["b"] = ["text"]
        assert dict(t.numbers) == {"a": [1, 2]}


@pytest.mark.parametrize("name", ["by\0name", "by\ud800name"], ids=ascii)
def test_the_name_of_an_index_that_no_file_can_have_is_refused_with_its_class(name: str) -> None:
    body = {name: zlmdb.Index[str]("name")}
    with pytest.raises(TypeError, match="People: the name of an index has neither a NUL character"):
        types.new_class("People", (zlmdb.Table[int, Any],), {}, lambda names: names.update(body))
