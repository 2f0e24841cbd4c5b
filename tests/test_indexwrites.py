"""The generated functions that write to tables with indexes do what the general form does, in every special case."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Callable, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from zlmdb.keys import key_codec
from zlmdb.keys.registry import NAMED, PLAIN
from zlmdb.store.access import NOBODY
from zlmdb.tables import bulkwrites
from zlmdb.tables.table import Table

pytestmark = [
    pytest.mark.twice,  # what indexes and links hold does not depend on the version of Python
    pytest.mark.usefixtures("at_once"),
]


@dataclass
class Row:
    a: Optional[str]
    b: Optional[int] = None
    c: Optional[str] = None
    note: str = ""


class Rows(zlmdb.Table[int, Row]):
    by_a = zlmdb.UniqueIndex[str]("a")
    by_b = zlmdb.Index[int]("b")
    by_c = zlmdb.UniqueIndex[str]("c")
    by_both = zlmdb.Index("a", "b")
    by_length = zlmdb.Index[int](lambda row: len(row.note), version=1)


class Store(zlmdb.Schema):
    rows: Rows


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    with db.write() as t:
        t.rows.update({1: Row("one", 1, "C1"), 2: Row("two", 2, "C2"), 3: Row(None)})
    return db


@pytest.fixture
def rows(db: Any) -> Iterator[Any]:
    with db.write() as t:
        yield t.rows


def stored(table: Any) -> list[Any]:
    """Everything that the engine has of a table and its indexes, without the prefix that a classic file has there."""
    return [
        [
            (bytes(key)[2 if place.prefix[:1] == b"\0" else 0 :], bytes(data))
            for key, data in rows_of(table, place, handle)
        ]
        for place, handle in [(table._storage, None), *((index.storage, handle) for index, handle in table._indexes)]
    ]


def rows_of(table: Any, place: Any, handle: Any) -> list[Any]:
    """The engine's rows in the keyspace *place*."""
    cursor = table._cursor(handle)
    found = cursor.iternext() if cursor.set_range(place.lower or b"\0") else ()
    return [row for row in found if bytes(row[0]) < place.upper]


def generally(table: Any) -> None:
    """From now on *table* is written by the general form alone."""
    table._writer = NOBODY


def test_the_functions_are_generated(rows: Any) -> None:
    """Else all of this file would test the general form only."""
    assert len(rows._kept) == len(rows._indexes) == 5
    assert rows._writer[0]._is_owned()
    for name in ("__setitem__", "__delitem__", "_remove"):
        assert getattr(type(rows), name) is not getattr(Table, name)
        assert getattr(type(rows), name).__doc__ == getattr(Table, name).__doc__


# -- refused ----------------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[int, Row]] = {
    "a new record, by the first index": (9, Row("one", 5, "new")),
    "a new record, by the second unique one": (9, Row("new", 5, "C1")),
    "a change, by the first index": (2, Row("one", 5, "new")),
    "a change, by the second unique one": (2, Row("new", 5, "C1")),
    "a change of the second index alone": (2, Row("two", 2, "C1")),
    "a record that was in no index": (3, Row("new", 5, "C1")),
    "an index key that is too long": (9, Row("new", 5, "x" * 3000)),
    "a change to an index key that is too long": (2, Row("y" * 3000, 5, "C2")),
    "an index key that does not fit": (9, Row("new", 2**63, "new")),
}


@pytest.mark.parametrize("inside", ["transaction", "savepoint"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_an_index_refuses_changes_nothing(rows: Any, check_indexes: Any, case: str, inside: str) -> None:
    key, row = REFUSED[case]
    before, counts = stored(rows), (rows._txn._puts, rows._txn._dels)

    def refused() -> tuple[type, str]:
        with pytest.raises((zlmdb.DuplicateKey, zlmdb.EncodeError)) as caught:
            rows[key] = row
        return type(caught.value), str(caught.value)

    if inside == "savepoint":
        with rows._txn.savepoint():
            told = refused()
            assert stored(rows) == before
            rows[8] = Row("eight", 8, "C8")
        del rows[8]
        counts = (rows._txn._puts, rows._txn._dels)
    else:
        told = refused()
    assert stored(rows) == before
    assert (rows._txn._puts, rows._txn._dels) == counts
    check_indexes(rows)
    generally(rows)
    assert refused() == told


def test_what_was_refused_can_be_committed_over(db: Any, check_indexes: Any) -> None:
    with db.write() as t, suppress(zlmdb.DuplicateKey):
        t.rows[9] = Row("new", 5, "C1")
    with db.write() as t:
        assert 9 not in t.rows
        t.rows[9] = Row("new", 5, "C9")
        check_indexes(t.rows)
    assert db.check().ok


def test_a_key_that_another_record_gave_up_is_free(rows: Any, check_indexes: Any) -> None:
    rows[1] = Row("uno", 1, "C1")
    rows[2] = Row("one", 2, "C2")
    del rows[2]
    rows[1] = Row("one", None, "C2")
    rows[1] = Row(None, None, None)
    rows[2] = Row("one", 1, "C1")
    check_indexes(rows)
    assert rows.by_a.key("one") == rows.by_c.key("C1") == 2


def test_a_refused_statement_does_not_disturb_an_iteration(rows: Any) -> None:
    rows.put_many((i, Row(f"r{i}", i, f"c{i}")) for i in range(10, 40))
    seen: list[int] = []
    for key in rows:
        seen.append(key)
        with pytest.raises(zlmdb.DuplicateKey):
            rows[key + 100] = Row("fresh", 5, "C1")
    assert seen == [1, 2, 3, *range(10, 40)]


# -- not written by the generated functions ---------------------------------------------------------------------------


def test_other_threads_and_readers_are_refused(db: Any) -> None:
    caught: list[BaseException] = []
    with db.write() as t:

        def other(statement: Callable[[], Any]) -> None:
            try:
                statement()
            except zlmdb.Error as error:
                caught.append(error)

        before = stored(t.rows)
        for statement in (lambda: t.rows.__setitem__(1, Row("x")), lambda: t.rows.__delitem__(1)):
            thread = threading.Thread(target=other, args=(statement,))
            thread.start()
            thread.join()
        assert [type(error) for error in caught] == [zlmdb.WrongThread] * 2
        assert stored(t.rows) == before
        rows = t.rows
    for error, table in ((zlmdb.TransactionClosed, rows), (zlmdb.ReadonlyDatabase, None)):
        with db.read() as t:
            given = table if table is not None else t.rows
            with pytest.raises(error):
                given[1] = Row("x")
            with pytest.raises(error):
                del given[1]


def test_a_record_that_cannot_be_read_is_neither_changed_nor_deleted(rows: Any) -> None:
    rows._raw.put(rows._storage.encode_key(1), b"\xc1 nonsense", True, True, False, rows._db)
    before = stored(rows)
    for statement in (lambda: rows.__setitem__(1, Row("other")), lambda: rows.__delitem__(1)):
        with pytest.raises(zlmdb.DecodeError):
            statement()
        assert stored(rows) == before
    rows[2] = Row("two more", 2, "C2")  # and the transaction is not broken


def test_statistics_count_records_and_entries(db: Any) -> None:
    stats = zlmdb.TransactionStats()
    with db.write() as t:
        t.txn._stats = stats
        t.rows[9] = Row("nine", 9, None)
        assert (stats.puts, stats.dels) == (5, 0)  # by_c has no entry
        t.rows[9] = Row("nine", 9, "C9")
        assert (stats.puts, stats.dels) == (7, 0)
        t.rows[9] = Row("nein", 9, None)
        assert (stats.puts, stats.dels) == (10, 3)
        del t.rows[9]
        assert (stats.puts, stats.dels) == (10, 8)


def test_methods_of_the_table_class_are_kept(make_db: Callable[..., Any], check_indexes: Any) -> None:
    told: list[Any] = []

    class Watched(zlmdb.Table[int, Row]):
        by_a = zlmdb.UniqueIndex[str]("a")

        def __setitem__(self, key: int, value: Row) -> None:
            told.append(key)
            super().__setitem__(key, value)

        def _remove(self, encoded: bytes) -> int:
            told.append(encoded)
            return super()._remove(encoded)

    class One(zlmdb.Schema):
        rows: Watched

    with make_db(One).write() as t:
        t.rows[1] = Row("a")
        t.rows.put_many([(2, Row("b"))])
        check_indexes(t.rows)
        del t.rows[1]
        assert told == [1, 2, t.rows._storage.encode_key(1)]
        check_indexes(t.rows)


# -- many at once -----------------------------------------------------------------------------------------------------


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the lists that were stored by the engine's own loop; of 3 pairs at most."""
    stored: list[int] = []
    monkeypatch.setattr(bulkwrites, "CHUNK", 3)
    put_batch = bulkwrites._put_batch

    def told(table: Any, items: Any, *args: Any) -> bool:
        done = put_batch(table, items, *args)
        if done:
            stored.append(len(items))
        return done

    monkeypatch.setattr(bulkwrites, "_put_batch", told)
    return stored


def fresh(*keys: int) -> list[tuple[int, Row]]:
    return [(key, Row(f"r{key}", key % 3 or None, f"c{key}" if key % 2 else None)) for key in keys]


@pytest.mark.parametrize("append", [False, True])
def test_lists_of_new_records_in_order_are_stored_at_once(
    rows: Any, check_indexes: Any, batches: list[int], append: bool
) -> None:  # fmt: skip
    items = fresh(10, 11, 12, 13, 14, 20, 21)
    before = rows._txn._puts
    assert rows.put_many(items, append=append) == 7
    assert batches == [3, 3, 1]
    assert dict(rows.select(10)) == dict(items)
    check_indexes(rows)
    assert rows._txn._puts - before == 7 + sum(
        len([x for x in (r.a, r.b, r.c, r.a and r.b) if x]) + 1 for _, r in items
    )
    assert rows.put_many(fresh(*range(-9, 0))) == 9
    assert rows.put_many(fresh(16, 17)) == 2
    assert batches == [3, 3, 1, 3, 3, 3, 2]
    check_indexes(rows)


NOT_AT_ONCE: dict[str, list[tuple[int, Row]]] = {
    "out of order": fresh(12, 11, 10),
    "one key twice": [*fresh(10, 11), (11, Row("again"))],
    "a record in between": fresh(0, 2, 4),
    "a record that is replaced": fresh(3, 4),
}


@pytest.mark.parametrize("case", NOT_AT_ONCE)
def test_other_lists_are_stored_one_by_one(rows: Any, check_indexes: Any, batches: list[int], case: str) -> None:
    items = NOT_AT_ONCE[case]
    assert rows.put_many(items) == len(items)
    assert batches == []
    assert {key: rows[key] for key, _ in items} == dict(items)
    check_indexes(rows)


def test_what_is_no_list_is_stored_one_by_one(rows: Any, check_indexes: Any, batches: list[int]) -> None:
    """It may look at the table between two pairs."""
    seen: list[int] = []
    rows.put_many((key, row) for key, row in fresh(10, 11, 12) if not seen.append(len(rows)))  # type: ignore[func-returns-value]
    assert seen == [3, 4, 5]
    assert batches == []
    check_indexes(rows)


WRONG: dict[str, tuple[int, Row]] = {
    "the first index": (14, Row("one")),
    "the second unique index": (14, Row("new", 1, "C1")),
    "another new record": (14, Row("new", 1, "c13")),
    "a value that does not fit": (14, Row(5)),  # type: ignore[arg-type]
    "a key that does not fit": ("14", Row("new")),  # type: ignore[dict-item]
    "an index key that is too long": (14, Row("x" * 3000)),
}


@pytest.mark.parametrize("append", [False, True])
@pytest.mark.parametrize("case", WRONG)
def test_of_a_list_those_before_the_refused_pair_are_stored(
    rows: Any, check_indexes: Any, batches: list[int], case: str, append: bool
) -> None:
    with pytest.raises((zlmdb.DuplicateKey, zlmdb.EncodeError)) as caught:
        rows.put_many([*fresh(10, 11, 12, 13), WRONG[case], *fresh(15, 16)], append=append)
    assert batches == [3]
    assert list(rows) == [1, 2, 3, 10, 11, 12, 13]
    check_indexes(rows)
    generally(rows)
    with pytest.raises(type(caught.value)) as general:
        rows[WRONG[case][0]] = WRONG[case][1]
    assert str(general.value) == str(caught.value)


def test_appended_lists_must_ascend_from_the_last_record(rows: Any, check_indexes: Any, batches: list[int]) -> None:
    for items in (fresh(10, 11, 12, 20, 19), fresh(15, 16), fresh(30, 31, 32, 25, 26)):
        with pytest.raises(zlmdb.EncodeError, match="ascending"):
            rows.put_many(items, append=True)
    assert list(rows) == [1, 2, 3, 10, 11, 12, 20, 30, 31, 32]
    assert batches == [3, 3]
    check_indexes(rows)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), zlmdb.lmdb.DiskError("broken"), TimeoutError()], ids=repr)
@pytest.mark.parametrize("calls", [0, 1, 2, 3])
def test_a_list_that_was_interrupted_is_not_committed(db: Any, error: Any, calls: int) -> None:
    left = [calls]

    class Raw:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def cursor(self, *args: Any) -> Any:
            return Raw(self.inner.cursor(*args))

        def putmulti(self, *args: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise error
            return self.inner.putmulti(*args)

    with db.read() as t:
        before = stored(t.rows)
    with pytest.raises(zlmdb.TransactionPoisoned), db.write() as t:  # noqa: PT012
        t.rows._use(Raw(t.txn._engine_txn))
        with pytest.raises((type(error), zlmdb.Error)):
            t.rows.put_many(fresh(10, 11, 12))
    with db.read() as t:
        assert stored(t.rows) == before


# -- every key type ---------------------------------------------------------------------------------------------------


@dataclass
class Held:
    x: Any


PRIMARIES: dict[str, tuple[Any, Callable[[int], Any]]] = {
    "ints": (int, lambda i: i - 2),
    "texts": (str, lambda i: "\0" * i + "x"),
    "oids": (zlmdb.keys.Oid, lambda i: i * 2**40),
    "pairs": (tuple[str, int], lambda i: ("p", i)),
}
KEYS = [*PLAIN, *NAMED, tuple[str, int], tuple[bool, tuple[int, str]], tuple[zlmdb.keys.String, zlmdb.keys.Oid]]


def schema_of(key: Any) -> type:
    """A schema of one table for each type of primary keys, with two indexes of the type *key*."""
    tables: dict[str, Any] = {}
    for name, (primary, _) in PRIMARIES.items():
        bases = {"__orig_bases__": (zlmdb.Table[primary, zlmdb.Pickle[Held]],)}
        indexes = {"by_x": zlmdb.UniqueIndex("x", key=key), "all_x": zlmdb.Index("x", key=key)}
        tables[name] = type(name, (zlmdb.Table,), {**bases, **indexes})
    return type("Schema", (zlmdb.Schema,), {"__annotations__": tables})


@pytest.mark.parametrize("combo", ["lmdb-tables", "memory-classic"], indirect=True)
@pytest.mark.parametrize("key", KEYS, ids=lambda key: key_codec(key).name)
def test_keys_of_every_type_are_indexed(
    make_db: Callable[..., Any], check_indexes: Any, key: Any, combo: str
) -> None:  # fmt: skip
    examples = list(key_codec(key).examples)[-7:]
    with make_db(schema_of(key)).write() as t:
        for name, (_, primary) in PRIMARIES.items():
            table = t[name]
            assert len(table._kept) == 2
            for i, x in enumerate(examples):
                table[primary(i)] = Held(x)
            table[primary(8)] = Held(None)
            check_indexes(table)
            for index, handle in table._indexes:
                found = [bytes(entry) for entry, _ in rows_of(table, index.storage, handle)]
                assert [index.load_key(entry) for entry in found] == examples
            table[primary(0)] = Held(None)
            table[primary(8)] = Held(examples[0])
            table[primary(1)] = Held(examples[1])
            check_indexes(table)
            assert table.by_x.key(examples[0]) == table.all_x[examples[0]].first()[0] == primary(8)
            assert table.by_x[examples[0]] == Held(examples[0])
            del table[primary(1)], table[primary(0)]
            check_indexes(table)


# -- side by side -----------------------------------------------------------------------------------------------------

SOME = st.builds(
    Row,
    st.sampled_from(["one", "two", "three", "", None]),
    st.sampled_from([0, 1, -1, None]),
    st.sampled_from(["C1", "C2", "x" * 600, None]),
    st.sampled_from(["", "n"]),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "set", "set", "del", "bulk"]), st.integers(0, 4), SOME), max_size=25
)  # fmt: skip


class Both(zlmdb.Schema):
    fast: Rows
    general: Rows


@settings(max_examples=max(20, settings.default.max_examples // 2))
@given(STEPS)
def test_they_leave_what_the_general_form_leaves(steps: list[tuple[str, int, Row]]) -> None:
    """And count the same, and raise the same."""
    with zlmdb.open(None, Both) as db, db.write() as t:
        for verb, key, row in steps:
            told: list[Any] = []
            for table in (t.fast, t.general):
                before = t.txn._puts, t.txn._dels
                generally(t.general)
                error = ""
                try:
                    if verb == "set":
                        table[key] = row
                    elif verb == "del":
                        del table[key]
                    else:
                        table.put_many([(key, row), (key + 1, row)])
                except (zlmdb.Error, KeyError) as refused:
                    error = repr(refused).replace("general", "fast")
                told.append((error, t.txn._puts - before[0], t.txn._dels - before[1]))
            assert told[0] == told[1]
            assert stored(t.fast) == stored(t.general)
