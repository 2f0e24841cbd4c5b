"""Classic maps: every method of `PersistentMap`, handed a transaction each time, on every engine and layout."""

from __future__ import annotations

import inspect
import io
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Callable, Generic, Optional, TypeVar
from uuid import UUID, uuid4

import pytest

import zlmdb
from tests.combinations import EVERYWHERE
from zlmdb import keys as k
from zlmdb import values as v

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python

U = [UUID(int=n << 64) for n in range(6)]
K = TypeVar("K")
V = TypeVar("V")
Open = Callable[..., zlmdb.Database[Any]]


@pytest.fixture(params=EVERYWHERE)
def combo(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def db(make_db: Open) -> zlmdb.Database[Any]:
    return make_db(zlmdb.Schema)


@pytest.fixture
def txn(db: zlmdb.Database[Any]) -> Iterator[zlmdb.Transaction]:
    """A write transaction that is open during the test."""
    with db.begin(write=True) as txn:
        yield txn


@pytest.fixture
def numbers(txn: zlmdb.Transaction) -> zlmdb.MapOidString:
    """The texts v10 to v19 under the keys 10 to 19."""
    table = zlmdb.MapOidString(1)
    for n in range(10, 20):
        table[txn, n] = f"v{n}"
    return table


class User:
    def __init__(self, name: str, age: int = 0) -> None:
        self.name = name
        self.age = age

    def __eq__(self, other: object) -> bool:
        return isinstance(other, User) and (self.name, self.age) == (other.name, other.age)

    def marshal(self) -> dict[str, Any]:
        return {"name": self.name, "age": self.age}

    @staticmethod
    def parse(data: dict[str, Any]) -> User:
        return User(data["name"], data["age"])


# Signatures


def test_the_signatures_are_those_of_the_predecessor() -> None:
    """Names, order and defaults: old code passes them by position as well."""
    expected = {
        "attach_index": "name, pmap, fkey, nullable=False, unique=True",
        "detach_index": "name",
        "indexes": "",
        "is_index": "",
        "count": "txn, prefix=None",
        "count_range": "txn, from_key, to_key",
        "rebuild_index": "txn, name",
        "rebuild_indexes": "txn",
        "truncate": "txn, rebuild_indexes=True",
        "select": "txn, from_key=None, to_key=None, return_keys=True, return_values=True, reverse=False, limit=None",
    }
    for name, signature in expected.items():
        parameters = list(inspect.signature(getattr(zlmdb.PersistentMap, name)).parameters.values())[1:]
        written = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
        assert ", ".join(written) == signature, name
    assert (zlmdb.PersistentMap.COMPRESS_ZLIB, zlmdb.PersistentMap.COMPRESS_SNAPPY) == (1, 2)


# One record


def test_a_missing_record_reads_as_none(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert numbers[txn, 10] == "v10"
    assert numbers[txn, 99] is None
    assert (txn, 10) in numbers
    assert (txn, 99) not in numbers


def test_storing_again_replaces(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    numbers[txn, 10] = "new"
    assert numbers[txn, 10] == "new"
    assert numbers.count(txn) == 10


def test_deleting_what_is_absent_does_nothing(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    del numbers[txn, 10]
    del numbers[txn, 10]
    assert (txn, 10) not in numbers
    assert numbers.count(txn) == 9


def test_get_honours_its_default(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert numbers.get((txn, 10), "x") == "v10"
    assert numbers.get((txn, 99), "x") == "x"
    assert numbers.get((txn, 99)) is None


def test_setdefault_stores_its_default(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert numbers.setdefault((txn, 10), "x") == "v10"
    assert numbers.setdefault((txn, 99), "x") == "x"
    assert numbers[txn, 99] == "x"


def test_pop_deletes_and_gives_none_or_its_default(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert numbers.pop((txn, 10)) == "v10"
    assert numbers.pop((txn, 10)) is None
    assert numbers.pop((txn, 10), "x") == "x"
    assert numbers.count(txn) == 9


def test_update_takes_a_dict_or_pairs(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    numbers.update({(txn, 10): "a", (txn, 30): "b"})
    numbers.update([((txn, 31), "c")])
    assert [numbers[txn, n] for n in (10, 30, 31)] == ["a", "b", "c"]


def test_values_survive_the_transaction(db: zlmdb.Database[Any]) -> None:
    table = zlmdb.MapUuidUuid(7)
    with db.begin(write=True) as txn:
        table[txn, U[1]] = U[2]
    with suppress(ZeroDivisionError), db.begin(write=True) as txn:
        table[txn, U[1]] = U[3]
        raise ZeroDivisionError
    with db.begin() as txn:
        assert table[txn, U[1]] == U[2]


def test_raw_keys_are_the_slot_and_the_encoded_key(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert txn.get(b"\0\x01" + struct.pack(">Q", 10)) == b"v10"
    assert txn.put(b"\0\x01" + struct.pack(">Q", 5), b"raw")
    assert not txn.put(b"\0\x01" + struct.pack(">Q", 5), b"again", overwrite=False)
    assert numbers[txn, 5] == "raw"
    assert txn.delete(b"\0\x01" + struct.pack(">Q", 5))
    assert not txn.delete(b"\0\x01" + struct.pack(">Q", 5))


# What is not a transaction and a key


@pytest.mark.parametrize("use", [lambda m, t: m[t, 1, 2], lambda m, t: m[5], lambda m, t: m.get((t, 1, 2))])
def test_a_tuple_key_without_parentheses_is_told_how_to_write_it(
    db: zlmdb.Database[Any], use: Callable[..., Any]
) -> None:
    with db.begin() as txn, pytest.raises(TypeError, match=r"write m\[txn, key\], and m\[txn, \(a, b\)\]"):
        use(zlmdb.MapOidOidOid(1), txn)


def test_storing_needs_a_transaction_and_a_key_too(txn: zlmdb.Transaction) -> None:
    table: Any = zlmdb.MapOidOidOid(1)
    with pytest.raises(TypeError, match="m.txn, .a, b.."):
        table[txn, 1, 2] = 3
    with pytest.raises(TypeError, match="m.txn, .a, b.."):
        del table[txn, 1, 2]


@pytest.mark.parametrize("wrong", [None, "txn", 5, object()])
def test_something_else_than_a_transaction_is_refused(wrong: Any) -> None:
    table = zlmdb.MapOidString(1)
    for use in (lambda: table[wrong, 1], lambda: table.bind(wrong), lambda: table.select(wrong)):
        with pytest.raises(TypeError, match="expected a transaction"):
            use()


def test_the_tables_of_a_schema_are_no_transaction(db: zlmdb.Database[Any]) -> None:
    with db.read() as t:
        with pytest.raises(TypeError, match="expected a transaction"):
            zlmdb.MapOidString(1).bind(t)
        assert zlmdb.MapOidString(1)[t.txn, 1] is None


def test_a_transaction_outside_its_block_is_refused(db: zlmdb.Database[Any]) -> None:
    table = zlmdb.MapOidString(1)
    txn = db.begin(write=True)
    with pytest.raises(zlmdb.TransactionClosed):
        table[txn, 1]
    with txn:
        table[txn, 1] = "a"
    with pytest.raises(zlmdb.TransactionClosed):
        table[txn, 1]
    with pytest.raises(zlmdb.TransactionClosed):
        table[txn, 1] = "b"


def test_a_read_transaction_writes_nothing(db: zlmdb.Database[Any]) -> None:
    table = zlmdb.MapOidString(1)
    with db.begin() as txn:
        for write in (
            lambda: table.__setitem__((txn, 1), "a"),
            lambda: table.__delitem__((txn, 1)),
            lambda: table.truncate(txn),
            lambda: txn.put(b"\0\1x", b"y"),
        ):
            with pytest.raises(zlmdb.ReadonlyDatabase):
                write()
        assert table.count(txn) == 0


@pytest.mark.parametrize("key", ["1", 1.5, True, -1, 2**53 + 1, (1,), [], b"1"])
def test_a_key_that_does_not_fit_is_refused_by_every_method(txn: zlmdb.Transaction, key: Any) -> None:
    table: Any = zlmdb.MapOidString(1)
    uses: list[Callable[[], Any]] = [
        lambda: table[txn, key],
        lambda: table.__setitem__((txn, key), "x"),
        lambda: table.__delitem__((txn, key)),
        lambda: (txn, key) in table,
        lambda: table.get((txn, key)),
        lambda: table.select(txn, key),
        lambda: table.select(txn, None, key),
        lambda: table.count_range(txn, key, 5),
    ]
    if key in (-1, 2**53 + 1):  # a bound is compared, and out of the range it is the end of it
        uses = uses[:5]
        assert list(table.select(txn, key)) == list(table.select(txn, None, key)) == []
    if key is True:  # it equals 1, and reading may take it for that
        uses = uses[1:3]
    for use in uses:
        with pytest.raises(zlmdb.EncodeError, match=r"MapOidString\(1\)"):
            use()
    assert table.count(txn) == 0


def test_a_value_that_does_not_fit_is_refused_and_changes_nothing(
    txn: zlmdb.Transaction, numbers: zlmdb.MapOidString
) -> None:
    wrong: Any = 5
    with pytest.raises(zlmdb.EncodeError, match=r"MapOidString\(1\)"):
        numbers[txn, 10] = wrong
    assert numbers[txn, 10] == "v10"


# Maps as objects


def test_a_map_is_true_and_equal_to_itself_only(db: zlmdb.Database[Any]) -> None:
    one, other = zlmdb.MapOidString(1), zlmdb.MapOidString(1)
    assert one
    assert one == one
    assert one != other
    assert len({one, other}) == 2
    assert not hasattr(one, "__len__")


def test_a_map_does_not_pretend_to_be_a_dict(db: zlmdb.Database[Any]) -> None:
    table: Any = zlmdb.MapOidString(1)
    for name in ("clear", "popitem", "items", "values", "keys", "__len__"):
        assert not hasattr(table, name), name
    with pytest.raises(TypeError):
        list(table)


def test_two_maps_with_one_slot_are_the_same_records(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert zlmdb.MapOidString(1)[txn, 12] == "v12"
    assert zlmdb.MapOidString(2)[txn, 12] is None


@pytest.mark.parametrize("slot", [1, 2, 255, 256, 65534])
def test_slots_up_to_65534_work(txn: zlmdb.Transaction, slot: int) -> None:
    table, neighbour = zlmdb.MapStringOid(slot), zlmdb.MapStringOid(300)
    neighbour[txn, "n"] = 1
    table[txn, "a"] = 1
    assert list(table.select(txn)) == [("a", 1)]
    assert table.truncate(txn) == 1
    assert neighbour.count(txn) == 1


@pytest.mark.parametrize("slot", [0, 65535, -1, 70000])
def test_a_slot_out_of_range_is_refused_at_once(slot: int) -> None:
    with pytest.raises(ValueError, match="1 to 65534"):
        zlmdb.MapOidString(slot)


@pytest.mark.parametrize("slot", ["1", 1.0, True, b"\0\1"])
def test_a_slot_that_is_no_int_is_refused_at_once(slot: Any) -> None:
    with pytest.raises(TypeError, match="a slot is an int"):
        zlmdb.MapOidString(slot)


def test_a_map_without_a_slot_says_how_to_get_one(txn: zlmdb.Transaction) -> None:
    with pytest.raises(TypeError, match=r"MapOidString\(1\), or with db.attach_table"):
        zlmdb.MapOidString()[txn, 1]


def test_one_map_serves_several_databases(tmp_path: Any) -> None:
    table = zlmdb.MapOidString(1)
    with zlmdb.Database(tmp_path / "a") as a, zlmdb.Database(tmp_path / "b", layout="classic") as b:
        with a.begin(write=True) as one, b.begin(write=True) as two:
            table[one, 1] = "a"
            table[two, 1] = "b"
        with a.begin() as one, b.begin() as two:
            assert (table[one, 1], table[two, 1]) == ("a", "b")


# Selecting


def test_select_gives_pairs_keys_values_or_none(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    def rows(**flags: bool) -> list[Any]:
        return list(numbers.select(txn, 18, **flags))

    assert rows() == [(18, "v18"), (19, "v19")]
    assert rows(return_values=False) == [18, 19]
    assert rows(return_keys=False) == ["v18", "v19"]
    assert rows(return_keys=False, return_values=False) == [None, None]


def test_select_takes_its_arguments_by_position(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert list(numbers.select(txn, 12, 16, True, False, True, 2)) == [15, 14]
    assert list(numbers.select(txn, 12, 14, False, True)) == ["v12", "v13"]


def test_select_is_half_open_in_both_directions(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    def keys(*bounds: Optional[int], reverse: bool = False, limit: Optional[int] = None) -> list[int]:
        return list(numbers.select(txn, *bounds, return_values=False, reverse=reverse, limit=limit))

    assert keys(12, 15) == [12, 13, 14]
    assert keys(12, 15, reverse=True) == [14, 13, 12]
    assert keys(18) == [18, 19]
    assert keys(None, 12) == [10, 11]
    assert keys(15, 12) == keys(15, 15) == keys(0, 5) == keys(100) == []
    assert keys(limit=3) == [10, 11, 12]
    assert keys(reverse=True, limit=3) == [19, 18, 17]
    assert keys(18, None, limit=100) == [18, 19]


def test_zero_is_a_bound_and_a_limit(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert list(numbers.select(txn, to_key=0)) == []
    assert list(numbers.select(txn, limit=0)) == []
    texts = zlmdb.MapStringOid(2)
    texts[txn, "a"] = 1
    assert list(texts.select(txn, to_key="")) == []


def test_select_checks_its_arguments_at_the_call(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    with pytest.raises(ValueError, match="limit=-1"):
        numbers.select(txn, limit=-1)
    wrong: Any = "10"
    with pytest.raises(zlmdb.EncodeError):
        numbers.select(txn, from_key=wrong)


def test_a_selection_can_be_iterated_again(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    rows = numbers.select(txn, 17, limit=2)
    assert list(rows) == list(rows) == [(17, "v17"), (18, "v18")]
    walk = iter(rows)
    assert next(walk) == (17, "v17")
    assert list(walk) == [(18, "v18")]


def test_next_works_on_a_selection_before_iter(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    rows = numbers.select(txn, return_values=False, limit=2)
    assert next(rows) == 10
    assert rows.next() == 11
    with pytest.raises(StopIteration):
        next(rows)
    assert list(rows) == [10, 11]


def test_what_select_gives_is_a_selection(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    rows = numbers.select(txn, 12, 15, return_values=False)
    assert isinstance(rows, zlmdb.Selection)
    assert rows
    assert rows.count() == 3
    assert (rows.first(), rows.last()) == ((12, "v12"), (14, "v14"))
    assert list(rows.values()) == ["v12", "v13", "v14"]
    assert rows.delete() == 3
    assert numbers.count(txn) == 7


def test_a_selection_does_not_visit_what_is_written_ahead_of_it(
    txn: zlmdb.Transaction, numbers: zlmdb.MapOidString
) -> None:
    seen = []
    for key in numbers.select(txn, 15, return_values=False):
        seen.append(key)
        if key < 25:
            numbers[txn, key + 5] = "new"
        del numbers[txn, key]
    assert seen == [15, 16, 17, 18, 19]


def test_a_selection_over_a_truncated_map_stops(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    rows = iter(numbers.select(txn))
    assert next(rows)[0] == 10
    numbers.truncate(txn)
    assert list(rows) == []


def test_a_selection_ends_with_its_transaction(db: zlmdb.Database[Any]) -> None:
    table = zlmdb.MapOidString(1)
    with db.begin(write=True) as txn:
        table[txn, 1] = "a"
        table[txn, 2] = "b"
        rows = table.select(txn)
        next(rows)
    with pytest.raises(zlmdb.TransactionClosed):
        next(rows)
    with pytest.raises(zlmdb.TransactionClosed):
        list(rows)


def test_none_in_a_bound_is_the_zero_of_its_part(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapUuidStringUuid(3)
    for owner in U[1:4]:
        for name in ("", "a", "b"):
            table[txn, (owner, name)] = owner
    begin: Any = (U[2], None)
    end: Any = (U[3], None)
    assert [key[1] for key in table.select(txn, begin, end, return_values=False)] == ["", "a", "b"]
    assert table.count_range(txn, begin, (U[2], "b")) == 2
    assert table.count_range(txn, begin, end) == 3


# Counting


def test_count_counts_all_or_a_prefix(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapStringOid(2)
    for n, key in enumerate(["a", "ab", "abc", "b", "\u00fc"]):
        table[txn, key] = n
    assert table.count(txn) == table.count(txn, None) == table.count(txn, "") == table.count(txn, prefix="") == 5
    assert [table.count(txn, prefix) for prefix in ("a", "ab", "b", "\u00fc", "x")] == [3, 2, 1, 1, 0]


def test_count_of_leading_parts_drops_what_is_none(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapUuidUuidUuid(2)
    for i in range(3):
        for j in range(4):
            table[txn, (U[i], U[j])] = U[0]
    prefixes: list[tuple[Any, int]] = [
        ((U[1], None), 4),
        ((U[1],), 4),
        (U[1], 4),
        ((U[1], U[2]), 1),
        ((U[0], None), 4),
        ((None, None), 12),
        ((), 12),
        ((U[5], None), 0),
    ]
    assert [table.count(txn, prefix) for prefix, _ in prefixes] == [count for _, count in prefixes]
    with pytest.raises(zlmdb.EncodeError, match="None before"):
        table.count(txn, (None, U[1]))


def test_count_of_text_in_the_last_part_is_of_its_beginning(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapUuidStringUuid(2)
    for name in ("alpha", "beta", "bravo"):
        table[txn, (U[1], name)] = U[0]
    table[txn, (U[2], "beta")] = U[0]
    assert table.count(txn, (U[1], "b")) == 2
    assert table.count(txn, (U[1], "")) == table.count(txn, (U[1], None)) == 3


def test_count_of_zero_is_no_count_of_everything(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert numbers.count(txn, prefix=0) == 0
    numbers[txn, 0] = "zero"
    assert numbers.count(txn, prefix=0) == 1


def test_count_range_is_half_open_and_needs_both_keys(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    assert numbers.count_range(txn, 12, 15) == 3
    assert numbers.count_range(txn, from_key=0, to_key=100) == 10
    assert numbers.count_range(txn, 15, 12) == numbers.count_range(txn, 0, 0) == 0
    none: Any = None
    with pytest.raises(TypeError, match="needs both"):
        numbers.count_range(txn, none, 5)


# Truncating


def test_truncate_leaves_the_neighbours_alone(db: zlmdb.Database[Any]) -> None:
    maps = [zlmdb.MapOidString(slot) for slot in (1, 2, 3)]
    with db.begin(write=True) as txn:
        for table in maps:
            for n in range(2500):
                table[txn, n] = "x"
    with db.begin(write=True) as txn:
        assert maps[1].truncate(txn) == 2500
        assert maps[1].truncate(txn, rebuild_indexes=False) == 0
    with db.begin() as txn:
        assert [table.count(txn) for table in maps] == [2500, 0, 2500]
        assert list(maps[1].select(txn)) == []


# The bridge


def test_bind_gives_the_table_of_the_same_records(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    table = numbers.bind(txn)
    assert isinstance(table, zlmdb.Table)
    assert table is numbers.bind(txn)
    assert len(table) == 10
    assert dict(table) == {n: f"v{n}" for n in range(10, 20)}
    with pytest.raises(KeyError):
        table[99]
    table[99] = "new"
    assert numbers[txn, 99] == "new"
    del numbers[txn, 99]
    assert 99 not in table


def test_a_bound_table_ends_with_its_transaction(db: zlmdb.Database[Any]) -> None:
    with db.begin(write=True) as txn:
        table = zlmdb.MapOidString(1).bind(txn)
        table[1] = "a"
    for use in (lambda: table[1], lambda: len(table), lambda: list(table), lambda: table.clear()):
        with pytest.raises(zlmdb.TransactionClosed):
            use()


def test_savepoints_undo_what_maps_wrote_in_them(txn: zlmdb.Transaction, numbers: zlmdb.MapOidString) -> None:
    with suppress(ZeroDivisionError), txn.savepoint():
        numbers[txn, 10] = "changed"
        zlmdb.MapOidString(2)[txn, 1] = "new"
        raise ZeroDivisionError
    assert numbers[txn, 10] == "v10"
    assert zlmdb.MapOidString(2)[txn, 1] is None


# Spelling a class


class Users(zlmdb.MapOidJson):
    """A subclass without type arguments holds plain data."""


class Owned(zlmdb.PersistentMap[k.Uuid, V], Generic[V]):
    """A generic intermediate: the key is settled, the value is not."""


class Names(Owned[v.String]):
    pass


class Renamed(Names):
    pass


class Pairs(zlmdb.PersistentMap[K, V], Generic[K, V]):
    pass


class Ages(Pairs[k.String, k.Oid]):
    pass


class Turned(zlmdb.PersistentMap[V, K], Generic[K, V]):
    """Its parameters come in another order than those of PersistentMap."""


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        (zlmdb.MapOidJson(1), 5, {"plain": [1, None, "data"]}),
        (Users(1), 5, {"plain": [1, None, "data"]}),
        (zlmdb.MapOidJson[dict[str, Any]](1), 5, {"a": 1}),
        (zlmdb.MapUuidCbor[Any](1), U[1], {1: b"bytes"}),
        (zlmdb.MapUuidPickle(1), U[1], {1: {2, 3}}),
        (Owned[v.Oid](1), U[1], 7),
        (Names(1), U[1], "name"),
        (Renamed(1), U[1], "name"),
        (Ages(1), "ann", 31),
        (Pairs[k.String, v.Json[Any]](1), "ann", [31]),
        (Turned[v.String, k.Oid](1), 5, "text"),
        (zlmdb.PersistentMap[str, int](1), "ann", -31),
        (zlmdb.PersistentMap[tuple[UUID, str], float](1), (U[1], "a\0b"), 1.5),
    ],
    ids=lambda value: getattr(type(value), "__name__", None),
)
def test_every_legal_spelling_of_a_class_works(txn: zlmdb.Transaction, table: Any, key: Any, value: Any) -> None:
    table[txn, key] = value
    assert table[txn, key] == value
    assert list(table.select(txn)) == [(key, value)]


def test_a_type_argument_says_the_model(txn: zlmdb.Transaction) -> None:
    from dataclasses import dataclass

    @dataclass
    class Point:
        x: int
        y: int

    table = zlmdb.MapUuidCbor[Point](1)
    table[txn, U[1]] = Point(1, 2)
    assert table[txn, U[1]] == Point(1, 2)
    wrong: Any = {"x": 1, "y": 2}
    with pytest.raises(zlmdb.EncodeError):
        table[txn, U[1]] = wrong

    class Points(zlmdb.MapUuidJson[Point]):
        pass

    points = Points(2)
    points[txn, U[1]] = Point(3, 4)
    assert points[txn, U[1]] == Point(3, 4)


def test_a_map_without_types_says_so(txn: zlmdb.Transaction) -> None:
    class Bare(zlmdb.PersistentMap):
        pass

    for table in (zlmdb.PersistentMap(1), Bare(1)):
        with pytest.raises(TypeError, match="declares no types"):
            table[txn, 1]


# Callables


def test_callables_by_name_or_by_position(txn: zlmdb.Transaction) -> None:
    for slot, table in enumerate(
        [
            zlmdb.MapOidJson(1, None, User.marshal, User.parse),
            zlmdb.MapOidJson(2, marshal=User.marshal, unmarshal=User.parse),
            zlmdb.MapOidCbor(3, zlmdb.MapOidCbor.COMPRESS_ZLIB, User.marshal, unmarshal=User.parse),
            zlmdb.MapOidCbor(slot=4, compress=None, marshal=User.marshal, unmarshal=User.parse),
        ],
        1,
    ):
        table[txn, slot] = User("ann", slot)
        assert table[txn, slot] == User("ann", slot)
        assert [user.age for user in table.select(txn, return_keys=False)] == [slot]


def test_one_callable_alone_is_enough(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapOidJson(1, marshal=User.marshal)
    table[txn, 1] = User("ann")
    assert table[txn, 1] == {"name": "ann", "age": 0}


def test_callables_that_a_value_type_has_no_use_for_are_refused(txn: zlmdb.Transaction) -> None:
    with pytest.raises(TypeError, match="takes no marshal="):
        zlmdb.MapOidOid(1, marshal=User.marshal)[txn, 1]
    with pytest.raises(TypeError, match=r"takes 2 arguments \(slot, compress\), got 3"):
        zlmdb.MapOidOid(1, None, User.marshal)[txn, 1]
    with pytest.raises(TypeError, match=r"takes 4 arguments \(slot, compress, marshal, unmarshal\), got 5"):
        zlmdb.MapOidJson(1, None, User.marshal, User.parse, User)[txn, 1]
    with pytest.raises(TypeError, match="build"):
        zlmdb.MapOidJson(1, build=lambda obj, builder: 0)[txn, 1]


def test_a_failing_callable_stores_nothing(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapOidJson(1, marshal=User.marshal, unmarshal=User.parse)
    table[txn, 1] = User("ann")
    wrong: Any = "no user"
    with pytest.raises(zlmdb.EncodeError):
        table[txn, 1] = wrong
    assert table[txn, 1] == User("ann")


def test_a_constructor_of_the_users_own_may_call_the_classic_one(txn: zlmdb.Transaction) -> None:
    class Own(zlmdb.MapOidJson[User]):
        def __init__(
            self, slot: Optional[int] = None, compress: Optional[int] = None, marshal: Any = None, unmarshal: Any = None
        ) -> None:
            zlmdb.MapOidJson.__init__(self, slot, compress, marshal or User.marshal, unmarshal or User.parse)
            self.extra = "mine"

    table = Own(3, zlmdb.PersistentMap.COMPRESS_ZLIB)
    table[txn, 1] = User("ann")
    assert table[txn, 1] == User("ann")
    assert table.extra == "mine"


# FlatBuffers, and reading without copying


def build(user: User, builder: Any) -> int:
    name = builder.CreateString(user.name)
    builder.StartObject(2)
    builder.PrependUint64Slot(0, user.age, 0)
    builder.PrependUOffsetTRelativeSlot(1, name, 0)
    return int(builder.EndObject())


class View:
    """Reads the record's memory when it is asked, as generated classes do."""

    def __init__(self, data: Any) -> None:
        from zlmdb import flatbuffers

        self.data = data
        self._table = flatbuffers.table.Table(data, struct.unpack_from("<I", data)[0])

    @property
    def age(self) -> int:
        from zlmdb import flatbuffers

        offset = self._table.Offset(4)
        flags = flatbuffers.number_types.Uint64Flags
        return int(self._table.Get(flags, offset + self._table.Pos)) if offset else 0

    @property
    def name(self) -> str:
        offset = self._table.Offset(6)
        return bytes(self._table.String(offset + self._table.Pos)).decode() if offset else ""


@pytest.mark.parametrize("compress", [None, zlmdb.PersistentMap.COMPRESS_ZLIB])
def test_flatbuffers_are_built_and_cast(db: zlmdb.Database[Any], compress: Optional[int]) -> None:
    table: Any = zlmdb.MapUuidFlatBuffers(1, compress, build, View)
    with db.begin(write=True) as txn:
        for n in range(5):
            table[txn, U[n]] = User(f"user {n}", n)
        assert table[txn, U[3]].name == "user 3"
    with db.begin() as txn:
        view = table[txn, U[4]]
        assert type(view.data) is bytes
        assert [(one.name, one.age) for one in table.select(txn, return_keys=False, limit=2)] == [
            ("user 0", 0),
            ("user 1", 1),
        ]
    assert view.name == "user 4"


def test_flatbuffers_without_build_cannot_be_stored(txn: zlmdb.Transaction) -> None:
    with pytest.raises(zlmdb.EncodeError, match="build="):
        zlmdb.MapUuidFlatBuffers(1)[txn, U[1]] = User("ann")


def test_buffers_hands_cast_the_memory_of_the_database(db: zlmdb.Database[Any]) -> None:
    table: Any = zlmdb.MapUuidFlatBuffers(1, build=build, cast=View)
    with db.begin(write=True) as txn:
        table[txn, U[1]] = User("ann", 31)
        table[txn, U[2]] = User("bob", 32)
    with db.begin(buffers=True) as txn:
        view = table[txn, U[1]]
        assert isinstance(view.data, memoryview)
        assert (view.name, view.age) == ("ann", 31)
        assert [(key, one.name) for key, one in table.select(txn)] == [(U[1], "ann"), (U[2], "bob")]
        raw = txn.get(b"\0\1" + U[1].bytes)
        assert isinstance(raw, memoryview)


def test_buffers_reads_every_other_type_as_without(db: zlmdb.Database[Any]) -> None:
    maps: list[tuple[Any, Any, Any]] = [
        (zlmdb.MapStringString(1), "key", "text"),
        (zlmdb.MapUuidUuid(2), U[1], U[2]),
        (zlmdb.MapUuidStringOid(3), (U[1], "name"), 7),
        (zlmdb.MapOidJson(4), 1, {"a": [1, None]}),
        (zlmdb.MapOidCbor(5), 1, {"a": [1, None]}),
        (zlmdb.MapOidPickle(6), 1, {"a": {1, 2}}),
        (zlmdb.MapOidJson(7, zlmdb.PersistentMap.COMPRESS_ZLIB), 1, {"a": [1, None]}),
        (zlmdb.MapUuidUuidSet(8), U[1], {U[2], U[3]}),
        (zlmdb.MapBytes32Bytes32(9), b"k" * 32, b"v" * 32),
        (zlmdb.MapStringStringUuid(10), ("a", "b"), U[1]),
    ]
    with db.begin(write=True) as txn:
        for table, key, value in maps:
            table[txn, key] = value
    with db.begin(buffers=True) as txn:
        for table, key, value in maps:
            assert table[txn, key] == value, table
            assert list(table.select(txn)) == [(key, value)], table
            assert list(table.select(txn, return_values=False, reverse=True)) == [key], table
            assert table.count(txn, None) == 1
    with db.begin(write=True, buffers=True) as txn:
        for table, key, value in maps:
            table[txn, key] = value
            assert table[txn, key] == value
            del table[txn, key]
            assert table.count(txn) == 0


# Compression


def test_zlib_stores_less_and_reads_the_same(txn: zlmdb.Transaction) -> None:
    import zlib

    table = zlmdb.MapStringString(1, compress=zlmdb.MapStringString.COMPRESS_ZLIB)
    table[txn, "a"] = "text" * 100
    table[txn, "empty"] = ""
    stored = txn.get(b"\0\1a")
    assert zlib.decompress(stored) == b"text" * 100
    assert table[txn, "a"] == "text" * 100
    assert table[txn, "empty"] == ""
    assert list(table.select(txn, return_keys=False)) == ["text" * 100, ""]


def test_snappy_stores_less_and_reads_the_same(txn: zlmdb.Transaction) -> None:
    try:
        import snappy  # noqa: F401
    except ImportError:
        pytest.importorskip("cramjam")
    table = zlmdb.MapStringPickle(1, compress=zlmdb.MapStringPickle.COMPRESS_SNAPPY)
    table[txn, "a"] = ["text" * 100] * 100
    assert len(txn.get(b"\0\1a")) < 1000
    assert table[txn, "a"] == ["text" * 100] * 100


@pytest.mark.parametrize("compress", [3, -1, "zlib", "1"])
def test_an_unknown_compression_is_refused_at_once(compress: Any) -> None:
    with pytest.raises(ValueError, match="COMPRESS_ZLIB"):
        zlmdb.MapStringString(1, compress)


def test_bytes_that_do_not_decode_raise_the_files_error(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapOidJson(1, zlmdb.PersistentMap.COMPRESS_ZLIB)
    txn.put(b"\0\1" + struct.pack(">Q", 5), b"garbage")
    with pytest.raises(zlmdb.DecodeError, match=r"MapOidJson\(1\).*5"):
        table[txn, 5]
    with pytest.raises(zlmdb.DecodeError):
        list(table.select(txn))
    assert list(table.select(txn, return_values=False)) == [5]
    txn.put(b"\0\1short", b"{}")
    with pytest.raises(zlmdb.DecodeError):
        list(table.select(txn, return_values=False))


# None and other zeros


def test_none_in_a_key_or_value_of_the_named_types_is_their_zero(txn: zlmdb.Transaction) -> None:
    uuids: Any = zlmdb.MapUuidUuid(1)
    uuids[txn, None] = None
    assert list(uuids.select(txn)) == [(UUID(int=0), UUID(int=0))]
    assert uuids[txn, None] == uuids[txn, UUID(int=0)] == UUID(int=0)
    assert (txn, None) in uuids
    texts: Any = zlmdb.MapOidString(2)
    texts[txn, 1] = None
    assert texts[txn, 1] == ""
    pairs: Any = zlmdb.MapUuidStringOid(3)
    pairs[txn, (U[1], None)] = 5
    assert pairs[txn, (U[1], "")] == pairs[txn, (U[1], None)] == 5
    del pairs[txn, (U[1], None)]
    assert pairs.count(txn) == 0


def test_stored_none_is_a_record(txn: zlmdb.Transaction) -> None:
    for table in (zlmdb.MapOidJson(1), zlmdb.MapOidPickle(2), zlmdb.MapOidCbor(3)):
        table[txn, 1] = None
        assert table[txn, 1] is None
        assert (txn, 1) in table
        assert table.count(txn) == 1
        assert list(table.select(txn)) == [(1, None)]


def test_falsy_values_are_values(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapOidPickle(1)
    for n, value in enumerate([0, "", b"", [], {}, False, 0.0, ()]):
        table[txn, n] = value
        assert table[txn, n] == value
        assert table.get((txn, n), "default") == value
        assert table.setdefault((txn, n), "default") == value
    texts = zlmdb.MapStringString(2)
    texts[txn, "a"] = ""
    assert texts[txn, "a"] == ""
    assert list(texts.select(txn)) == [("a", "")]


def test_bare_types_refuse_none(txn: zlmdb.Transaction) -> None:
    table: Any = zlmdb.PersistentMap[str, int](1)
    with pytest.raises(zlmdb.EncodeError):
        table[txn, None] = 1
    with pytest.raises(zlmdb.EncodeError):
        table[txn, "a"] = None
    assert table.count(txn) == 0


def test_an_empty_text_is_a_key(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapStringOid(1)
    table[txn, ""] = 1
    assert table[txn, ""] == 1
    assert list(table.select(txn)) == [("", 1)]
    assert txn.get(b"\0\1") == struct.pack(">Q", 1)


def test_an_empty_text_is_looked_up_in_attached_tables_too(db: zlmdb.Database[Any], combo: str) -> None:
    table = db.attach_table(DecoratedNames)
    with db.begin(write=True) as txn:
        table[txn, "a"] = 1
        assert table[txn, ""] is None
        assert table.get((txn, ""), 5) == 5
        assert (txn, "") not in table
        assert table.pop((txn, ""), 6) == 6
        del table[txn, ""]
        assert list(table.select(txn, "")) == [("a", 1)]
        assert list(table.select(txn, "", "")) == list(table.select(txn, None, "")) == []
        assert (table.count(txn, ""), table.count_range(txn, "", "b")) == (1, 1)
        if combo.endswith("tables"):  # LMDB has no empty keys
            for write in (table.__setitem__, table.setdefault):
                with pytest.raises(zlmdb.EncodeError, match="the key is empty"):
                    write((txn, ""), 1)
    with db.begin() as txn, pytest.raises(zlmdb.ReadonlyDatabase):
        del table[txn, ""]


def test_a_key_that_is_too_long_is_refused_on_reads_too(txn: zlmdb.Transaction) -> None:
    table = zlmdb.MapStringOid(1)
    for use in (lambda: table[txn, "x" * 2000], lambda: table.__setitem__((txn, "x" * 2000), 1)):
        with pytest.raises(zlmdb.EncodeError, match="2002 bytes") as caught:
            use()
        assert caught.value.size == 2002
        assert caught.value.limit is not None


# Sets and times


def test_sets_keep_all_their_elements(txn: zlmdb.Transaction) -> None:
    oids = zlmdb.MapOidOidSet(1)
    uuids = zlmdb.MapUuidUuidSet(2)
    for size in (0, 1, 2, 9, 17, 300):
        oids[txn, size] = set(range(size))
        assert oids[txn, size] == set(range(size))
        chosen = {uuid4() for _ in range(size)}
        uuids[txn, U[0]] = chosen
        assert uuids[txn, U[0]] == chosen
    assert dict(oids.select(txn))[17] == set(range(17))


def test_equal_sets_are_equal_bytes(txn: zlmdb.Transaction) -> None:
    oids = zlmdb.MapOidOidSet(1)
    oids[txn, 1] = set(range(100))
    oids[txn, 2] = set(reversed(range(100)))
    assert txn.get(b"\0\1" + struct.pack(">Q", 1)) == txn.get(b"\0\1" + struct.pack(">Q", 2))


def test_timestamps_are_numpy_times_in_nanoseconds(txn: zlmdb.Transaction) -> None:
    np = pytest.importorskip("numpy")
    table: Any = zlmdb.MapTimestampUuidCbor(1)
    begin = np.datetime64("2024-01-01", "s")
    for n in range(5):
        table[txn, (begin + np.timedelta64(n, "s"), U[n])] = n
    assert table[txn, (np.datetime64("2024-01-01T00:00:03", "ns"), U[3])] == 3
    keys = list(table.select(txn, return_values=False))
    assert [key[0].dtype for key in keys] == [np.dtype("M8[ns]")] * 5
    assert keys[0] == (np.datetime64("2024-01-01", "ns"), U[0])
    found = table.select(
        txn, (np.datetime64("2024-01-01T00:00:01"), None), (np.datetime64("2024-01-01T00:00:03"), None)
    )
    assert [value for _, value in found] == [1, 2]
    assert table.count(txn, (np.datetime64("2024-01-01T00:00:01"), None)) == 1
    assert table.count(txn, np.datetime64("2024-01-01T00:00:01")) == 1
    for wrong in (np.datetime64("NaT", "ns"), np.datetime64("1969-12-31"), 5, "2024-01-01"):
        with pytest.raises(zlmdb.EncodeError):
            table[txn, (wrong, U[0])] = 0
    times: Any = zlmdb.MapBytes32Timestamp(2)
    times[txn, b"x" * 32] = np.datetime64("2024-01-01", "D")
    assert times[txn, b"x" * 32] == np.datetime64("2024-01-01T00:00:00", "ns")


def test_little_endian_keys_of_old_files_have_no_ranges(combo: str, txn: zlmdb.Transaction) -> None:
    np = pytest.importorskip("numpy")
    table: Any = zlmdb.MapOidTimestampOid(1)
    times = [np.datetime64(n, "ns") for n in (1, 255, 256, 257)]
    for n, time in enumerate(times):
        table[txn, (1, time)] = n
    assert [table[txn, (1, time)] for time in times] == [0, 1, 2, 3]
    assert sorted(table.select(txn, return_keys=False)) == [0, 1, 2, 3]
    if combo.endswith("classic"):
        with pytest.raises(zlmdb.EncodeError, match="little-endian"):
            table.select(txn, (1, times[0]), (1, times[2]))
    else:
        assert table.count_range(txn, (1, times[0]), (1, times[2])) == 2


# New keys

NO_NEW_KEY: set[str] = set()
MAPS = sorted(name for name in zlmdb.__all__ if name.startswith("Map"))


@pytest.mark.parametrize("name", MAPS)
def test_new_keys_fit_and_differ(name: str) -> None:
    cls = getattr(zlmdb, name)
    if "Timestamp" in name:
        pytest.importorskip("numpy")
    codec, _ = cls(1)._both_codecs()
    made = [cls.new_key() for _ in range(8)] + [cls(1).new_key(), cls.new_key(secure=True)]
    assert [codec.decode(codec.encode(key)) for key in made] == made
    if codec.name not in ("uint8", "uint16"):
        assert len(set(made)) == len(made)


def test_new_oids_are_in_range_and_uuids_ascend() -> None:
    assert all(0 <= zlmdb.MapOidString.new_key() <= 2**53 for _ in range(100))
    made = [zlmdb.MapUuidString.new_key() for _ in range(100)]
    assert made == sorted(made)
    assert {key.version for key in made} == {7}


# Statistics


def test_stats_count_records_really_written_and_deleted(db: zlmdb.Database[Any]) -> None:
    table = zlmdb.MapOidString(1)
    stats = zlmdb.TransactionStats()
    with db.begin(write=True, stats=stats) as txn:
        for n in range(5):
            table[txn, n] = "x"
        table[txn, 0] = "y"
        del table[txn, 0]
        del table[txn, 99]
        assert table[txn, 1] == "x"
        assert (stats.puts, stats.dels) == (6, 1)
    first = stats.duration
    with db.begin(write=True, stats=stats) as txn:
        assert table.truncate(txn) == 4
        txn.put(b"\0\5raw", b"x")
        txn.delete(b"\0\5raw")
    assert (stats.puts, stats.dels) == (7, 6)
    assert stats.duration > first
    stats.reset()
    assert (stats.puts, stats.dels) == (0, 0)


# Methods of a class of one's own that write and read


class Reversed(zlmdb.MapStringString):
    """Texts whose keys are stored back to front."""

    def _serialize_key(self, key: Any) -> bytes:
        return super()._serialize_key(key)[::-1]

    def _deserialize_key(self, data: Any) -> Any:
        return super()._deserialize_key(bytes(data)[::-1])


@zlmdb.table("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a6", compress=zlmdb.PersistentMap.COMPRESS_ZLIB)
class Points(zlmdb.PersistentMap[Any, Any]):
    """Pairs of numbers by number, all bytes as this class wants them."""

    def __init__(self, slot: Optional[int] = None, compress: Optional[int] = None) -> None:
        super().__init__(slot, compress=compress)

    def _serialize_key(self, key: Any) -> bytes:
        return struct.pack(">B", key)

    def _deserialize_key(self, data: Any) -> Any:
        return struct.unpack(">B", data)[0]

    def _serialize_value(self, value: Any) -> bytes:
        return struct.pack("<2h", *value)

    def _deserialize_value(self, data: Any) -> Any:
        return struct.unpack("<2h", data)


def test_methods_of_ones_own_decide_about_the_bytes_of_keys(txn: zlmdb.Transaction) -> None:
    texts = Reversed(1)
    texts[txn, "az"] = "first"
    texts[txn, "za"] = "second"
    assert txn.get(b"\0\1za") == b"first"
    assert texts[txn, "az"] == "first"
    assert list(texts.select(txn)) == [("za", "second"), ("az", "first")]
    assert "az" in texts.bind(txn)
    assert texts.bind(txn)["za"] == "second"
    with pytest.raises(zlmdb.EncodeError):
        texts[txn, 7]  # type: ignore[index]


def test_methods_of_ones_own_need_no_types_and_are_compressed(db: zlmdb.Database[Any]) -> None:
    points = db.attach_table(Points)
    with db.begin(write=True) as txn:
        points[txn, 2] = (1, -1)
        points[txn, 1] = (3, 4)
    with db.begin() as txn:
        assert list(points.select(txn)) == [(1, (3, 4)), (2, (1, -1))]
        assert points.count(txn) == 2
    found = db.tables()["5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a6"]
    assert (found.key, found.value) == ("custom", "zlib(custom)")
    with db.begin(write=True) as txn:
        with pytest.raises(zlmdb.EncodeError, match="300 is not a key of type custom"):
            points[txn, 300] = (1, 2)
        with pytest.raises(zlmdb.EncodeError, match="custom"):
            points[txn, 3] = (1, 70_000)
        assert points.count(txn) == 2


def test_a_table_with_methods_of_its_own_is_dumped_as_its_bytes(db: zlmdb.Database[Any]) -> None:
    points = db.attach_table(Points)
    with db.begin(write=True) as txn:
        points[txn, 2] = (1, -1)
    stream = io.BytesIO()
    db.dump(stream)
    stream.seek(0)
    with zlmdb.open(None, zlmdb.Schema, layout=db.layout) as other:
        other.load(stream)
        loaded = other.attach_table(Points)
        with other.begin() as txn:
            assert list(loaded.select(txn)) == [(2, (1, -1))]


def test_a_method_of_ones_own_may_leave_the_rest_to_the_types(txn: zlmdb.Transaction) -> None:
    class Upper(zlmdb.MapOidJson):
        def _serialize_value(self, value: Any) -> bytes:
            return super()._serialize_value({**value, "upper": value["text"].upper()})

    texts = Upper(1)
    texts[txn, 1] = {"text": "x"}
    assert texts[txn, 1] == {"text": "x", "upper": "X"}
    assert texts._both_codecs()[0].name == "oid"


def test_without_types_or_methods_for_both_a_map_says_what_is_missing() -> None:
    class Half(zlmdb.PersistentMap[K, V]):
        def _serialize_value(self, value: Any) -> bytes:
            return b"x"

    with pytest.raises(TypeError, match="declares no types"):
        Half(1)._both_codecs()


# Decorated classes


@zlmdb.table("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a1", marshal=User.marshal, parse=User.parse)
class DecoratedUsers(zlmdb.MapOidJson[User]):
    """Users by number."""


@zlmdb.table(UUID("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a2"), compress=zlmdb.PersistentMap.COMPRESS_ZLIB)
class DecoratedNames(zlmdb.MapStringOid):
    pass


@zlmdb.table("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a3", build=build, cast=View)
class DecoratedViews(zlmdb.MapUuidFlatBuffers[Any]):
    pass


def test_decorating_registers_the_class_and_its_callables() -> None:
    assert DecoratedUsers._zlmdb_oid == UUID("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a1")
    assert zlmdb.TABLES_BY_UUID[DecoratedUsers._zlmdb_oid] is DecoratedUsers
    assert DecoratedUsers._zlmdb_marshal is User.marshal
    assert DecoratedUsers._zlmdb_parse is User.parse
    assert DecoratedNames._zlmdb_compress == 1
    assert zlmdb.MapOidJson._zlmdb_oid is None
    assert list(inspect.signature(zlmdb.table).parameters) == ["oid", "marshal", "parse", "build", "cast", "compress"]


def test_attach_table_gives_a_new_map_of_the_class_each_time(make_db: Open) -> None:
    db = make_db(zlmdb.Schema)
    users, again = db.attach_table(DecoratedUsers), db.attach_table(DecoratedUsers)
    names = db.attach_table(DecoratedNames)
    views: Any = db.attach_table(DecoratedViews)
    assert type(users) is DecoratedUsers
    assert users is not again
    with db.begin(write=True) as txn:
        users[txn, 1] = User("ann", 31)
        names[txn, "ann"] = 1
        views[txn, U[1]] = User("view", 7)
        assert again[txn, 1] == User("ann", 31)
        assert views[txn, U[1]].name == "view"
        assert users.count(txn) == names.count(txn) == views.count(txn) == 1
    with db.begin() as txn:
        assert again[txn, 1] == User("ann", 31)
        assert names[txn, "ann"] == 1
    info = db.tables()
    assert {info[str(cls._zlmdb_oid)].count for cls in (DecoratedUsers, DecoratedNames, DecoratedViews)} == {1}


@pytest.mark.parametrize("combo", ["lmdb-tables", "lmdb-classic", "toy-tables"])  # what outlives its opening
def test_attached_tables_keep_their_records_when_the_file_is_opened_again(combo: str, make_db: Open) -> None:
    db = make_db(zlmdb.Schema)
    names, users = db.attach_table(DecoratedNames), db.attach_table(DecoratedUsers)
    with db.begin(write=True) as txn:
        names[txn, "ann"] = 1
        users[txn, 1] = User("ann")
    slots = [(slot["oid"], slot["slot"]) for slot in db.stats(include_slots=True)["slots"]]
    assert [slot for _, slot in slots] == [1, 2]
    db.close()
    db = make_db(zlmdb.Schema)
    users, names = db.attach_table(DecoratedUsers), db.attach_table(DecoratedNames)
    with db.begin() as txn:
        assert names[txn, "ann"] == 1
        assert users[txn, 1] == User("ann")
    assert [(slot["oid"], slot["slot"]) for slot in db.stats(include_slots=True)["slots"]] == slots


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_maps_go_on_working_when_their_database_is_entered_again(tmp_path: Any, layout: Any) -> None:
    db = zlmdb.Database(tmp_path / "db", layout=layout)
    users, by_hand = db.attach_table(DecoratedUsers), zlmdb.MapOidString(9)
    names = db.attach_table(DecoratedNames)
    users.attach_index("name", names, lambda user: user.name)
    with db, db.begin(write=True) as txn:
        users[txn, 1] = User("ann")
        by_hand[txn, 1] = "x"
    assert not db.is_open
    with db, db.begin(write=True) as txn:
        assert users[txn, 1] == User("ann")
        users[txn, 2] = User("bob")
        assert names[txn, "bob"] == 2
        assert by_hand[txn, 1] == "x"
    with zlmdb.Database(tmp_path / "other", layout=layout) as other, other.begin(write=True) as txn:
        with pytest.raises(zlmdb.SchemaMismatch, match="attached to another database"):
            users[txn, 1]
        assert by_hand[txn, 1] is None


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_an_attached_map_serves_a_later_database_object_with_its_indexes(tmp_path: Any, layout: Any) -> None:
    with zlmdb.Database(tmp_path / "db", layout=layout) as db:
        users, names = db.attach_table(DecoratedUsers), db.attach_table(DecoratedNames)
        users.attach_index("name", names, lambda user: user.name)
        with db.begin(write=True) as txn:
            users[txn, 1] = User("ann")
    with zlmdb.Database(tmp_path / "db") as db:
        with db.begin() as txn:
            assert names[txn, "ann"] == 1
            assert users[txn, 1] == User("ann")
        with db.begin(write=True) as txn:
            users[txn, 2] = User("bob")
            assert names[txn, "bob"] == 2
            with pytest.raises(zlmdb.DuplicateKey):
                users[txn, 3] = User("bob")
    with zlmdb.Database(tmp_path / "db", readonly=True) as db, db.begin() as txn:
        assert list(names.select(txn)) == [("ann", 1), ("bob", 2)]


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_an_attached_map_finds_its_table_in_another_file_by_the_uuid(tmp_path: Any, layout: Any) -> None:
    with zlmdb.Database(tmp_path / "db", layout=layout) as db:
        users, names = db.attach_table(DecoratedUsers), db.attach_table(DecoratedNames)
        users.attach_index("name", names, lambda user: user.name)
    with zlmdb.Database(tmp_path / "other", layout=layout) as other:
        own = other.attach_table(DecoratedUsers)
        with other.begin(write=True) as txn:
            with pytest.raises(zlmdb.SchemaMismatch, match="DecoratedNames was attached to another database"):
                users[txn, 1]
            own[txn, 1] = User("eve")
    with zlmdb.Database(tmp_path / "turned", layout=layout) as turned:  # the slots are the other way round here
        turned.attach_table(DecoratedNames)
        own = turned.attach_table(DecoratedUsers)
        with turned.begin(write=True) as txn:
            users[txn, 1] = User("ann")
            assert own[txn, 1] == User("ann")
            assert names[txn, "ann"] == 1


def test_an_attached_map_refuses_a_file_whose_table_has_other_types(tmp_path: Any) -> None:
    @zlmdb.table("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a1")
    class Others(zlmdb.MapStringOid):
        pass

    with zlmdb.Database(tmp_path / "other") as other:
        other.attach_table(Others)
    zlmdb.TABLES_BY_UUID[DecoratedUsers._zlmdb_oid] = DecoratedUsers  # type: ignore[index]  # as it was
    with zlmdb.Database(tmp_path / "db") as db:
        users = db.attach_table(DecoratedUsers)
    refused = pytest.raises(zlmdb.SchemaMismatch, match="keys of type string")
    with zlmdb.Database(tmp_path / "other") as other, other.begin() as txn, refused:
        users[txn, 1]


def test_attaching_needs_a_decorated_class(db: zlmdb.Database[Any]) -> None:
    class Plain(zlmdb.MapOidString):
        pass

    with pytest.raises(TypeError, match="not decorated"):
        db.attach_table(Plain)
    for wrong in (Plain(1), dict, "Users", None):
        given: Any = wrong
        with pytest.raises(TypeError, match="PersistentMap is required"):
            db.attach_table(given)


def test_attaching_inside_a_transaction_is_refused(db: zlmdb.Database[Any]) -> None:
    with db.begin(), pytest.raises(zlmdb.NestedTransaction, match="before you begin"):
        db.attach_table(DecoratedUsers)


def test_a_transaction_older_than_the_table_says_so(db: zlmdb.Database[Any], combo: str) -> None:
    import threading

    if combo.endswith("classic"):
        pytest.skip("there every table is in the main database")
    found: list[zlmdb.MapStringOid] = []
    with db.begin() as txn:
        thread = threading.Thread(target=lambda: found.append(db.attach_table(DecoratedNames)))
        thread.start()
        thread.join()
        with pytest.raises(zlmdb.TransactionStale, match="begin again"):
            found[0][txn, "ann"]
    with db.begin() as txn:
        assert found[0][txn, "ann"] is None


def test_attaching_an_unknown_table_to_a_readonly_database_is_refused(tmp_path: Any) -> None:
    for layout in ("tables", "classic"):
        chosen: Any = layout
        with zlmdb.Database(tmp_path / layout, layout=chosen) as db:
            users = db.attach_table(DecoratedUsers)
            with db.begin(write=True) as txn:
                users[txn, 1] = User("ann")
        with zlmdb.Database(tmp_path / layout, readonly=True) as db:
            users = db.attach_table(DecoratedUsers)
            with db.begin() as txn:
                assert users[txn, 1] == User("ann")
            with pytest.raises(zlmdb.ReadonlyDatabase, match="DecoratedNames"):
                db.attach_table(DecoratedNames)


def test_the_constructor_of_a_decorated_class_has_a_say(make_db: Open) -> None:
    @zlmdb.table("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a4")
    class Own(zlmdb.MapOidCbor[User]):
        def __init__(
            self, slot: Optional[int] = None, compress: Optional[int] = None, marshal: Any = None, unmarshal: Any = None
        ) -> None:
            super().__init__(slot, self.COMPRESS_ZLIB, User.marshal, User.parse)

    db = make_db(zlmdb.Schema)
    table = db.attach_table(Own)
    with db.begin(write=True) as txn:
        table[txn, 1] = User("ann", 31)
        assert table[txn, 1] == User("ann", 31)
    assert db.tables()["5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a4"].value == "zlib(cbor)"


def test_a_decorated_subclass_is_a_table_of_its_own(db: zlmdb.Database[Any]) -> None:
    @zlmdb.table("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a5")
    class Sub(DecoratedNames):
        pass

    base, sub = db.attach_table(DecoratedNames), db.attach_table(Sub)
    with db.begin(write=True) as txn:
        base[txn, "a"] = 1
        assert sub[txn, "a"] is None


@pytest.mark.parametrize("oid", ["nonsense", ""])
def test_a_table_needs_a_uuid(oid: str) -> None:
    with pytest.raises(ValueError, match="UUID"):
        zlmdb.table(oid)


def test_only_map_classes_are_decorated() -> None:
    wrong: Any = 5
    with pytest.raises(TypeError, match="UUID"):
        zlmdb.table(wrong)
    with pytest.raises(TypeError, match="subclass of PersistentMap"):
        zlmdb.table("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a6")(dict)
    instance: Any = zlmdb.MapOidString(1)
    with pytest.raises(TypeError, match="subclass of PersistentMap"):
        zlmdb.table("5f1ad2ab-3c1e-4d2e-9a63-b0cf01b2b3a6")(instance)


# Schema.slot


def test_schema_slot_numbers_map_instances(txn: zlmdb.Transaction) -> None:
    class Schema(zlmdb.Schema):
        def __init__(self) -> None:
            self.users: Any = self.slot(1, marshal=User.marshal, unmarshal=User.parse)(zlmdb.MapOidJson())
            self.names = self.slot(2)(zlmdb.MapStringOid())
            self.more_names = self.slot(3, compress=zlmdb.PersistentMap.COMPRESS_ZLIB)(zlmdb.MapStringOid())

    schema = Schema()
    schema.users[txn, 1] = User("ann")
    schema.names[txn, "ann"] = 1
    schema.more_names[txn, "ann"] = 2
    assert schema.users[txn, 1] == User("ann")
    assert (schema.names[txn, "ann"], schema.more_names[txn, "ann"]) == (1, 2)
    with pytest.raises(ValueError, match="slot 2 belongs to"):
        schema.slot(2)(zlmdb.MapStringOid())
    wrong: Any = zlmdb.MapStringOid
    with pytest.raises(TypeError, match="instance"):
        schema.slot(4)(wrong)


def test_a_constructor_of_ones_own_is_given_what_the_table_was_given() -> None:
    @zlmdb.table("d6a4c7f0-0000-4000-8000-000000000071")
    class Own(zlmdb.MapOidJson):
        def __init__(self, slot: Any = None, compress: Any = None) -> None:
            zlmdb.MapOidJson.__init__(self, slot, compress, marshal=lambda value: value, unmarshal=lambda data: data)

    with zlmdb.Database() as db:
        own = db.attach_table(Own)
        with db.begin(write=True) as txn:
            own[txn, 1] = {"a": 1}
            assert own[txn, 1] == {"a": 1}
