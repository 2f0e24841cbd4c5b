"""A selection reads lazily, visits what was there when it began, once, and ends with its transaction."""

from __future__ import annotations

import itertools
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Callable

import pytest

import zlmdb

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python

TENS = list(range(10, 110, 10))


@dataclass
class City:
    name: str
    size: int


class Cities(zlmdb.Table[int, City]):
    """Cities by number, with an index of each kind."""

    by_size = zlmdb.Index[int]("size")
    by_name = zlmdb.UniqueIndex[str]("name")


class Store(zlmdb.Schema):
    seq: zlmdb.Table[int, str]
    after: zlmdb.Table[int, str]
    cities: Cities
    texts: zlmdb.Table[str, str]


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    db = make_db(Store)
    with db.write() as t:
        t.seq.update({i: str(i) for i in TENS})
        t.after.update({1: "neighbour", 50: "neighbour"})
        for i in TENS:
            t.cities[i] = City(f"c{i:03}", i // 30)
    return db


@pytest.fixture
def t(db: Any) -> Iterator[Any]:
    """The tables in an open write transaction, with records at 10, 20, ..., 100."""
    with db.write() as tables:
        yield tables


# -- what it gives ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(
    platform.python_implementation() != "CPython",
    reason="the library of PyPy is Python in part, whose calls count, too",
)
def test_the_first_record_of_a_selection_takes_few_calls_of_python() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        t.cities[5] = City("five", 5)
        calls: list[str] = []

        def note(frame: Any, event: str, arg: Any) -> None:
            module = frame.f_globals["__name__"]
            if event == "call" and module.startswith("zlmdb.") and not module.startswith("zlmdb.engines"):
                calls.append(frame.f_code.co_name)

        find: Any = lambda: t.cities.select(3).first()  # noqa: E731
        assert find() == (5, City("five", 5))
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            find()
        finally:
            sys.setprofile(before)
        # 13 where the bound, the edge of the range and the row have functions of their own.
        assert len(calls) <= 4, calls


def test_a_start_that_does_not_fit_exactly_is_left_to_the_general_form(db: Any) -> None:
    with db.read() as t:
        assert t.seq.select(2**70).first() is None
        assert t.seq.select(-(2**70)).first() == (10, "10")
        assert t.seq.select(101).first() is None
        assert t.seq.select(100, limit=0).first() is None
        assert t.seq.select(100).first() == (100, "100")
        for start in (True, 1.5, "7"):
            with pytest.raises(zlmdb.EncodeError):
                t.seq.select(start)
        with pytest.raises(ValueError, match="limit"):
            t.seq.select(10, limit=-1)


def test_keys_and_values_read_one_half_each(t: Any) -> None:
    rows = t.seq.select(30, 60)
    assert list(rows) == [(30, "30"), (40, "40"), (50, "50")]
    assert list(rows.keys()) == [30, 40, 50]
    assert list(rows.values()) == ["30", "40", "50"]
    assert list(t.seq.select(30, 60, reverse=True).keys()) == [50, 40, 30]
    assert list(t.seq.select(30, 60, reverse=True, limit=2).values()) == ["50", "40"]
    assert list(t.seq.select(30, limit=2).keys()) == [30, 40]


def test_keys_decode_no_values_and_values_decode_no_keys(t: Any) -> None:
    place = t.seq._storage
    handle = t.txn._handle(place.space)[0]
    t.txn._engine_txn.put(place.encode_key(200), b"\xff", db=handle)
    t.txn._engine_txn.put(place.prefix + b"\xff", b"odd key", db=handle)
    rows = t.seq.select(200)
    assert list(itertools.islice(rows.keys(), 1)) == [200]
    assert rows.count() == 2
    with pytest.raises(zlmdb.DecodeError, match="'seq'"):
        list(rows.keys())
    t.txn._engine_txn.delete(place.encode_key(200), db=handle)
    assert list(rows.values()) == ["odd key"]
    t.txn.abort()


def test_each_iteration_reads_afresh(t: Any) -> None:
    rows, keys, values = t.seq.select(90), t.seq.select(90).keys(), t.seq.select(90).values()
    assert list(rows) == [(90, "90"), (100, "100")]
    assert list(keys) == [90, 100]
    t.seq[95] = "new"
    assert list(rows.keys()) == list(keys) == [90, 95, 100]
    assert list(values) == ["90", "new", "100"]
    assert rows.count() == 3


def test_a_selection_reads_nothing_before_its_iteration(t: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cursors = []
    original = type(t.seq)._cursor
    monkeypatch.setattr(
        zlmdb.Table, "_cursor", lambda self, *args: cursors.append(args) or original(self, *args)  # type: ignore[func-returns-value]
    )  # fmt: skip
    rows = t.seq.select(20, 50, reverse=True, limit=3)
    rows.keys(), rows.values(), iter(rows)
    t.cities.by_size.select(1)
    t.cities.by_size[1]
    assert cursors == []
    assert len(list(rows)) == 3
    assert cursors


def test_values_are_decoded_one_by_one(t: Any) -> None:
    place = t.seq._storage
    t.txn._engine_txn.put(place.encode_key(25), b"\xff", db=t.txn._handle(place.space)[0])
    rows = iter(t.seq.select(10))
    assert [next(rows), next(rows)] == [(10, "10"), (20, "20")]
    with pytest.raises(zlmdb.DecodeError, match="25"):
        next(rows)
    t.txn.abort()


def test_whole_tables_are_read_the_same_in_a_read_transaction(db: Any) -> None:
    with db.read() as t:
        for arguments in ({}, {"reverse": True}, {"limit": 3}, {"reverse": True, "limit": 3}, {"limit": 0}):
            pairs = list(t.seq.select(**arguments))
            assert list(t.seq.select(**arguments).keys()) == [key for key, _ in pairs]
            assert list(t.seq.select(**arguments).values()) == [value for _, value in pairs]
        assert list(t.seq) == TENS
        assert list(t.seq.values()) == [str(i) for i in TENS]


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_broken_is_named_in_a_read_transaction_too(db: Any, reverse: bool) -> None:
    with db.write() as t:
        place = t.seq._storage
        t.txn._engine_txn.put(place.encode_key(25), b"\xff", db=t.txn._handle(place.space)[0])
    with db.read() as t:
        values = iter(t.seq.select(reverse=reverse).values())
        expected = ["100", "90", "80", "70", "60", "50", "40", "30"] if reverse else ["10", "20"]
        assert list(itertools.islice(values, len(expected))) == expected
        with pytest.raises(zlmdb.DecodeError, match="table 'seq', key 25"):
            next(values)
    with db.write() as t:
        t.txn._engine_txn.put(place.prefix + b"\xff", b"odd key", db=t.txn._handle(place.space)[0])
    with db.read() as t, pytest.raises(zlmdb.DecodeError, match="'seq'"):
        list(t.seq.select(reverse=reverse).keys())


def test_a_decoder_that_runs_out_does_not_end_an_iteration(make_db: Callable[..., Any]) -> None:
    """`StopIteration`, of all errors, would look like the end of the table."""
    first = zlmdb.values.FunctionSerializer("first", lambda text: text.encode(), lambda data: next(iter(data.decode())))

    class Texts(zlmdb.Schema):
        texts: zlmdb.Table[int, Annotated[str, first]]

    db = make_db(Texts)
    with db.write() as t:
        t.texts.update({1: "a", 2: "", 3: "c"})
        for read in (t.texts.select(), t.texts.select().values()):
            with pytest.raises(zlmdb.DecodeError, match="key 2"):
                list(read)
    with db.read() as t:
        for read in (t.texts.select(), t.texts.select().values(), t.texts.select(1).values()):
            with pytest.raises(zlmdb.DecodeError, match="key 2"):
                list(read)


def test_keys_values_and_fields_have_a_last_one(t: Any) -> None:
    part = t.seq.select(25, 55)
    assert (part.keys().last(), part.values().last(), part.fields(lambda k, v: v * 2).last()) == (50, "50", "5050")
    assert t.seq.select(25, 55, reverse=True).keys().last() == 30
    assert t.seq.select(25, limit=2).keys().last() == 40
    assert t.seq.select().order_by(lambda v: v).values().last() == max(t.seq.values())
    assert t.seq.where(lambda k, v: k < 35).limit(9, 1).keys().last() == 30
    assert part.keys().distinct().last() == 50
    assert t.seq.select(41, 50).keys().last() is None


def test_first_and_last_are_pairs_or_none(t: Any) -> None:
    assert t.seq.select().first() == (10, "10")
    assert t.seq.select().last() == (100, "100")
    assert t.seq.select(reverse=True).first() == (100, "100")
    assert t.seq.select(reverse=True).last() == (10, "10")
    assert t.seq.select(25, 55).first() == (30, "30")
    assert t.seq.select(25, 55).last() == (50, "50")
    assert t.seq.select(25, 55, reverse=True).last() == (30, "30")
    assert t.seq.select(25, limit=2).last() == (40, "40")
    assert t.seq.select(reverse=True, limit=2).last() == (90, "90")
    assert t.seq.select(limit=100).last() == (100, "100")
    assert t.seq.select(41, 50).first() is None
    assert t.seq.select(41, 50).last() is None
    t.seq.clear()
    assert t.seq.select().first() is None
    assert t.seq.select().last() is None
    assert t.seq.select(reverse=True).last() is None


def test_the_first_key_and_value_are_those_of_the_first_pair(t: Any) -> None:
    for rows in (t.seq.select(25, 55), t.seq.select(25, 55, reverse=True), t.seq.limit(1), t.cities.by_size.select(1)):
        assert (rows.keys().first(), rows.values().first()) == rows.first() == next(iter(rows))
    for rows in (t.seq.select(41, 50), t.seq.select(25, limit=0), t.seq.limit(0), t.cities.by_size.select(9)):
        assert rows.keys().first() is rows.values().first() is rows.first() is None
    firsts = t.cities.group_by(lambda c: c.size, lambda g: (g.first(), g.keys().first(), g.values().first()))
    assert all(pair == (key, value) for pair, key, value in firsts.values())
    assert len(firsts) == 4


@pytest.mark.skipif(
    platform.python_implementation() != "CPython", reason="PyPy reports calls that it has inlined, and calls of its own"
)
def test_the_first_record_is_read_without_setting_up_a_scan(db: Any) -> None:
    ours = str(Path(zlmdb.__file__).parent)
    outside = str(Path(ours, "engines"))
    with db.read() as t:
        for read in (lambda: t.seq.limit(1).values().first(), lambda: t.seq.select(25).keys().first()):
            assert read() is not None
            called: list[str] = []

            def count(frame: Any, event: str, argument: Any, called: list[str] = called) -> None:
                name = frame.f_code.co_filename
                if event == "call" and name.startswith(ours) and not name.startswith(outside):
                    called.append(frame.f_code.co_name)

            sys.setprofile(count)
            read()
            sys.setprofile(None)
            assert len(called) <= 18, called  # the classic layout takes two more than the other
            assert "_read" not in called


def test_count_and_truth_heed_the_range_and_the_limit(t: Any) -> None:
    assert t.seq.select().count() == 10
    assert t.seq.select(limit=4).count() == 4
    assert t.seq.select(limit=40).count() == 10
    assert t.seq.select(20, 60).count() == 4
    assert t.seq.select(20, 60, limit=3).count() == 3
    assert t.seq.select(20, 60, reverse=True, limit=3).count() == 3
    assert t.seq.select(20, 60)
    assert not t.seq.select(21, 30)
    assert not t.seq.select(20, 60, limit=0)
    t.seq.clear()
    assert t.seq.select().count() == 0
    assert not t.seq.select()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("write", [False, True])
def test_a_range_is_counted_to_its_end_wherever_that_lies(db: Any, reverse: bool, write: bool) -> None:
    with db.write() as t:
        t.after.clear()
        t.after.put_many([(i, "") for i in range(2500)], append=True)
    with db.write() if write else db.read() as t:
        for stop in (0, 1, 7, 8, 9, 16, 17, 40, 1000, 1001, 2499, 2500, 9999, None):
            for limit in (None, 0, 1, 8, 9, 1000, 5000):
                rows = t.after.select(-5, stop, reverse=reverse, limit=limit)
                assert rows.count() == min(2500 if stop is None else stop, 2500, 5000 if limit is None else limit)
            assert t.after.select(100, stop).count() == max(min(2500 if stop is None else stop, 2500) - 100, 0)
        assert t.cities.by_size.select(1, 3, reverse=reverse).count() == 6
        assert t.cities.by_size.select(1, 3, reverse=reverse, limit=4).count() == 4


def test_count_and_truth_decode_nothing(t: Any) -> None:
    place = t.seq._storage
    t.txn._engine_txn.put(place.encode_key(25), b"\xff", db=t.txn._handle(place.space)[0])
    assert t.seq.select(20, 30).count() == 2
    assert t.seq.select(25, 30)
    assert len(t.seq) == 11
    t.txn.abort()


def test_a_selection_makes_a_dict(t: Any) -> None:
    assert dict(t.seq.select(30, 50)) == {30: "30", 40: "40"}
    assert dict(t.seq.select(30, reverse=True, limit=1)) == {100: "100"}
    assert dict(t.cities.by_size.select(3)) == {90: City("c090", 3), 100: City("c100", 3)}


def test_repr_shows_the_first_rows(t: Any) -> None:
    text = repr(t.seq.select(30))
    assert "'seq'" in text
    assert "(30, '30'), (40, '40'), (50, '50'), ..." in text
    assert "60" not in text
    assert repr(t.seq.select(30, 50)).endswith("[(30, '30'), (40, '40')]>")
    assert repr(t.seq.select(30, 31).keys()) == "[30]"
    assert repr(t.seq.select(200)).endswith("[]>")
    assert "(90, City(name='c090', size=3))" in repr(t.cities.by_size[3])


def test_repr_after_the_end_says_so(db: Any) -> None:
    with db.read() as t:
        rows, table = t.seq.select(), t.seq
    assert "ended" in repr(rows)
    assert "ended" in repr(rows.keys())
    assert "ended" in repr(table)


# -- delete -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [None, 0, 1, 3, 50])
def test_delete_deletes_exactly_what_the_selection_gives(t: Any, reverse: bool, limit: Any) -> None:
    rows = t.seq.select(25, 85, reverse=reverse, limit=limit)
    doomed = list(rows.keys())
    assert rows.delete() == len(doomed)
    assert list(t.seq) == [key for key in TENS if key not in doomed]
    assert dict(t.after) == {1: "neighbour", 50: "neighbour"}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [None, 1, 4])
def test_delete_keeps_the_indexes_in_step(t: Any, check_indexes: Any, reverse: bool, limit: Any) -> None:
    for rows in (
        t.cities.select(25, 85, reverse=reverse, limit=limit),
        t.cities.by_size.select(1, 3, reverse=reverse, limit=limit),
        t.cities.by_name.select("c05", "c10", reverse=reverse, limit=limit),
        t.cities.by_size[3],
    ):
        doomed = set(rows.keys())
        rest = {key: city for key, city in t.cities.items() if key not in doomed}
        assert rows.delete() == len(doomed)
        assert dict(t.cities) == rest
        check_indexes(t.cities)


def test_delete_of_thousands_with_and_without_a_limit(t: Any) -> None:
    t.texts.put_many(((f"{i:05}", "x") for i in range(3500)), append=True)
    assert t.texts.select("00010", limit=2400).delete() == 2400
    assert len(t.texts) == 1100
    assert list(t.texts.select(limit=12).keys())[9:] == ["00009", "02410", "02411"]
    assert t.texts.select(reverse=True, limit=5).delete() == 5
    assert t.texts.select(reverse=True).first() == ("03494", "x")
    assert t.texts.select().delete() == 1095
    assert len(t.texts) == 0


def test_delete_of_the_whole_table_with_indexes(t: Any, check_indexes: Any) -> None:
    assert t.cities.select().delete() == 10
    assert len(t.cities) == 0
    assert not t.cities.by_size.select()
    check_indexes(t.cities)


def test_delete_in_a_read_transaction_is_refused(db: Any) -> None:
    with db.read() as t:
        with pytest.raises(zlmdb.ReadonlyDatabase):
            t.seq.select().delete()
        assert len(t.seq) == 10


# -- reading while writing --------------------------------------------------------------------------------------------

WAYS: dict[str, Callable[[Any], Any]] = {
    "pairs": iter,
    "keys": lambda rows: iter(rows.keys()),
    "values": lambda rows: (int(value) for value in rows.values()),
}


def key_of(row: Any) -> int:
    return row[0] if isinstance(row, tuple) else row


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Iterates over pairs, keys or values."""
    return WAYS[request.param]


directions = pytest.mark.parametrize("reverse", [False, True])


@directions
def test_rows_that_the_body_inserts_are_not_visited(t: Any, way: Any, reverse: bool) -> None:
    seen = []
    ahead, behind = (-5, +5) if reverse else (+5, -5)
    for row in way(t.seq.select(reverse=reverse)):
        key = key_of(row)
        seen.append(key)
        if key in (30, 60, 100, 10):
            t.seq[key + ahead] = str(key + ahead)
            t.seq[key + behind] = str(key + behind)
    assert seen == sorted(TENS, reverse=reverse)
    inserted = {key + step for key in (10, 30, 60, 100) for step in (ahead, behind)}
    assert list(t.seq) == sorted({*TENS, *inserted})


@directions
def test_the_current_record_may_be_deleted(t: Any, way: Any, reverse: bool) -> None:
    seen = []
    for row in way(t.seq.select(20, 90, reverse=reverse)):
        seen.append(key_of(row))
        del t.seq[key_of(row)]
    assert seen == sorted(TENS[1:8], reverse=reverse)
    assert list(t.seq) == [10, 90, 100]


@directions
def test_records_deleted_ahead_are_not_seen(t: Any, way: Any, reverse: bool) -> None:
    seen = []
    for row in way(t.seq.select(reverse=reverse)):
        key = key_of(row)
        seen.append(key)
        t.seq.pop(key - 10 if reverse else key + 10, None)
    assert seen == sorted(TENS[1::2] if reverse else TENS[::2], reverse=reverse)


@directions
def test_records_replaced_ahead_are_seen_as_they_are_then(t: Any, reverse: bool) -> None:
    seen = []
    for key, value in t.seq.select(reverse=reverse):
        seen.append((key, value))
        for other in TENS:
            t.seq[other] = f"{value}*"
    values = [value for _, value in seen]
    first = "100" if reverse else "10"
    assert values == [first + "*" * i for i in range(10)]
    assert [key for key, _ in seen] == sorted(TENS, reverse=reverse)


@directions
def test_a_selection_over_a_truncated_table_stops(t: Any, way: Any, reverse: bool) -> None:
    rows = way(t.seq.select(reverse=reverse))
    assert [key_of(next(rows)), key_of(next(rows))] == sorted(TENS, reverse=reverse)[:2]
    t.seq.clear()
    assert list(rows) == []


@directions
def test_a_selection_does_not_visit_what_is_written_after_a_truncate(t: Any, way: Any, reverse: bool) -> None:
    rows = way(t.seq.select(reverse=reverse))
    next(rows)
    t.seq.clear()
    t.seq.update({5: "5", 55: "55", 500: "500"})
    assert list(rows) == []


@directions
def test_a_limit_counts_the_rows_given(t: Any, way: Any, reverse: bool) -> None:
    seen = []
    for row in way(t.seq.select(reverse=reverse, limit=4)):
        seen.append(key_of(row))
        t.seq.pop(key_of(row))
    assert seen == sorted(TENS, reverse=reverse)[:4]


@directions
@pytest.mark.parametrize("fails", [False, True])
def test_a_selection_goes_on_behind_a_savepoint(t: Any, way: Any, reverse: bool, fails: bool) -> None:
    seen = []
    for row in way(t.seq.select(reverse=reverse)):
        key = key_of(row)
        seen.append(key)
        if key == 50:
            with suppress(ZeroDivisionError), t.txn.savepoint():
                t.seq[45] = "45"
                t.seq[55] = "55"
                del t.seq[80 if not reverse else 20]
                if fails:
                    raise ZeroDivisionError
    expected = set(TENS) if fails else {*TENS} - {20 if reverse else 80}
    assert seen == sorted(expected, reverse=reverse)


@directions
def test_what_a_savepoint_puts_back_is_visited(t: Any, way: Any, reverse: bool) -> None:
    seen = []
    for row in way(t.seq.select(reverse=reverse)):
        key = key_of(row)
        seen.append(key)
        with suppress(ZeroDivisionError), t.txn.savepoint():
            for again in (30, 40, 60, 70):
                del t.seq[again]
                t.seq[again] = "again"
            raise ZeroDivisionError
        if key == 50:
            with t.txn.savepoint():
                t.seq[45] = t.seq[55] = "new"
    assert seen == sorted(TENS, reverse=reverse)


@directions
def test_a_selection_begun_in_a_savepoint_goes_on_after_it(t: Any, way: Any, reverse: bool) -> None:
    with t.txn.savepoint():
        rows = way(t.seq.select(reverse=reverse))
        seen = [key_of(next(rows)), key_of(next(rows))]
    seen += [key_of(row) for row in rows]
    assert seen == sorted(TENS, reverse=reverse)


@directions
def test_writes_to_another_table_do_not_disturb(t: Any, way: Any, reverse: bool) -> None:
    seen = []
    for row in way(t.seq.select(reverse=reverse)):
        seen.append(key_of(row))
        t.after[key_of(row) + 1] = "x"
        t.texts[str(key_of(row))] = "y" * 3000
        if len(seen) == 5:
            t.cities.clear()
    assert seen == sorted(TENS, reverse=reverse)


@directions
def test_two_iterations_at_once(t: Any, reverse: bool) -> None:
    pairs = []
    for one, two in zip(t.seq.select(reverse=reverse), t.seq.select(reverse=not reverse).keys()):
        pairs.append((one[0], two))
        t.seq[one[0]] = "changed"
    assert pairs == list(zip(sorted(TENS, reverse=reverse), sorted(TENS, reverse=not reverse)))


@directions
def test_many_inserts_and_deletes_during_one_iteration(t: Any, way: Any, reverse: bool) -> None:
    """Enough to split and merge the engine's pages under the cursor."""
    t.seq.clear()
    t.seq.update({i: str(i) for i in range(0, 4000, 4)})
    seen = []
    for row in way(t.seq.select(reverse=reverse)):
        key = key_of(row)
        seen.append(key)
        if key % 4 == 0:
            t.seq[key + (-1 if reverse else 1)] = str(key + (-1 if reverse else 1))
            if key % 8 == 0:
                del t.seq[key]
            t.seq.pop(key + (400 if reverse else -400), None)
    assert seen == sorted(range(0, 4000, 4), reverse=reverse)


INDEX_WAYS: dict[str, Callable[[Any], Iterator[int]]] = {
    "pairs": lambda rows: (key for key, _ in rows),
    "keys": lambda rows: iter(rows.keys()),
    "values": lambda rows: (int(city.name[1:]) for city in rows.values()),
}


def put_city(t: Any, key: int) -> None:
    t.cities[key] = City(f"c{key:04}", key // 30)


@pytest.fixture(params=itertools.product(("by_size", "by_name"), INDEX_WAYS), ids="-".join)
def through(request: pytest.FixtureRequest) -> Callable[..., Iterator[int]]:
    """The keys of all cities, in their order, through an index of either kind, by pairs, keys or values."""
    index, way = request.param
    return lambda t, **options: INDEX_WAYS[way](getattr(t.cities, index).select(**options))


@directions
@pytest.mark.parametrize("fails", [False, True])
def test_an_index_selection_goes_on_behind_a_savepoint(t: Any, through: Any, reverse: bool, fails: bool) -> None:
    for key in TENS:
        put_city(t, key)
    seen = []
    for key in through(t, reverse=reverse):
        seen.append(key)
        if key == 50:
            with suppress(ZeroDivisionError), t.txn.savepoint():
                put_city(t, 45)
                put_city(t, 55)
                del t.cities[20 if reverse else 80]
                if fails:
                    raise ZeroDivisionError
    expected = set(TENS) if fails else {*TENS} - {20 if reverse else 80}
    assert seen == sorted(expected, reverse=reverse)


@directions
def test_what_a_savepoint_puts_back_into_an_index_is_visited(t: Any, through: Any, reverse: bool) -> None:
    for key in TENS:
        put_city(t, key)
    seen = []
    for key in through(t, reverse=reverse):
        seen.append(key)
        with suppress(ZeroDivisionError), t.txn.savepoint():
            for again in (30, 40, 60, 70):
                del t.cities[again]
                put_city(t, again)
                t.cities[again] = City(f"c{110 - again:04}x", (110 - again) // 30)
            raise ZeroDivisionError
    assert seen == sorted(TENS, reverse=reverse)


@directions
def test_many_inserts_and_deletes_while_reading_an_index(t: Any, through: Any, reverse: bool) -> None:
    """Enough to split and merge the engine's pages under the cursor."""
    t.cities.clear()
    for key in range(0, 4000, 4):
        put_city(t, key)
    step = -1 if reverse else 1
    seen = []
    for key in through(t, reverse=reverse):
        seen.append(key)
        if key % 4 == 0:
            put_city(t, key + step if key else key)
            if key % 8 == 0 and key:
                del t.cities[key]
            t.cities.pop(key - 400 * step, None)
    assert seen == sorted(range(0, 4000, 4), reverse=reverse)


@pytest.mark.parametrize("index", ["by_size", "by_name"])
def test_an_index_selection_names_the_record_that_is_broken_or_gone(t: Any, index: str) -> None:
    place = t.cities._storage
    handle = t.txn._handle(place.space)[0]
    rows = getattr(t.cities, index).select()
    t.txn._engine_txn.put(place.encode_key(50), b"\xff", db=handle)
    for read in (iter(rows), iter(rows.values())):
        assert len(list(itertools.islice(read, 4))) == 4
        with pytest.raises(zlmdb.DecodeError, match="table 'cities', key 50"):
            next(read)
    t.txn._engine_txn.delete(place.encode_key(50), db=handle)
    for read in (iter(rows), iter(rows.values())):
        assert len(list(itertools.islice(read, 4))) == 4
        with pytest.raises(zlmdb.DecodeError, match="entry for 50, which is not in the table: rebuild the index"):
            next(read)


@directions
def test_records_that_the_body_moves_ahead_in_an_index_are_visited_once(
    t: Any, check_indexes: Any, reverse: bool
) -> None:
    step = -1 if reverse else +1
    before = {key: city.size for key, city in t.cities.items()}
    seen = []
    for key, city in t.cities.by_size.select(-5, 10, reverse=reverse):
        seen.append(key)
        t.cities[key] = City(city.name, city.size + step)
    assert sorted(seen) == TENS
    check_indexes(t.cities)
    assert {key: city.size for key, city in t.cities.items()} == {key: size + step for key, size in before.items()}


@directions
def test_index_selections_while_deleting_the_current_record(t: Any, check_indexes: Any, reverse: bool) -> None:
    seen = []
    keys = t.cities.by_size.select(1, 3, reverse=reverse).keys()
    for key in keys:
        seen.append(key)
        del t.cities[key]
    assert seen == sorted([30, 40, 50, 60, 70, 80], reverse=reverse)
    assert list(t.cities) == [10, 20, 90, 100]
    check_indexes(t.cities)


# -- the end of the transaction ---------------------------------------------------------------------------------------

USES: dict[str, Callable[[Any], Any]] = {
    "iter": list,
    "keys": lambda rows: list(rows.keys()),
    "values": lambda rows: list(rows.values()),
    "first": lambda rows: rows.first(),
    "last": lambda rows: rows.last(),
    "count": lambda rows: rows.count(),
    "bool": bool,
    "delete": lambda rows: rows.delete(),
}
SELECTIONS: dict[str, Callable[[Any], Any]] = {
    "table": lambda t: t.seq.select(),
    "range": lambda t: t.seq.select(20, 50, reverse=True, limit=2),
    "index": lambda t: t.cities.by_size.select(),
    "index key": lambda t: t.cities.by_size[1],
    "unique index": lambda t: t.cities.by_name.select(),
}


@pytest.mark.parametrize("what", SELECTIONS)
def test_selections_raise_after_the_end(db: Any, what: str) -> None:
    with db.write() as t:
        rows = SELECTIONS[what](t)
        assert rows
    for name, use in USES.items():
        with pytest.raises(zlmdb.TransactionClosed):
            pytest.fail(f"{name} gave {use(rows)!r}")


@pytest.mark.parametrize("what", SELECTIONS)
@pytest.mark.parametrize("write", [False, True])
def test_an_iteration_raises_when_its_transaction_ends_in_the_middle(db: Any, what: str, write: bool) -> None:
    for end in ("commit", "abort"):
        t = db.write().__enter__() if write else db.read()
        selection = SELECTIONS[what](t)
        iterations = [iter(selection), iter(selection.keys()), iter(selection.values())]
        for rows in iterations:
            next(rows)
        getattr(t.txn, end)()
        for rows in iterations:
            with pytest.raises(zlmdb.TransactionClosed):
                next(rows)


def test_an_iteration_does_not_go_on_in_the_next_transaction(db: Any) -> None:
    with db.write() as t:
        rows = iter(t.seq.select())
        next(rows)
    with db.write() as t:
        assert len(t.seq) == 10
        with pytest.raises(zlmdb.TransactionClosed):
            next(rows)


# -- buffers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def blobs(make_db: Callable[..., Any]) -> Any:
    class Blobs(zlmdb.Schema):
        pass

    db = make_db(Blobs)
    with db.begin(write=True) as txn:
        texts = zlmdb.MapStringString(7)
        for i in range(5):
            texts[txn, f"k{i}"] = f"v{i}"
        txn.put(b"\x00\x08raw", b"bytes")
    return db


def test_buffers_give_memoryviews_of_raw_records(blobs: Any) -> None:
    with blobs.begin(buffers=True) as txn:
        data = txn.get(b"\x00\x08raw")
        assert isinstance(data, memoryview)
        assert bytes(data) == b"bytes"
    with pytest.raises(ValueError, match="released"):
        bytes(data)


@pytest.mark.parametrize("write", [False, True])
@directions
def test_typed_reading_is_the_same_with_buffers(blobs: Any, write: bool, reverse: bool) -> None:
    texts = zlmdb.MapStringString(7)
    with blobs.begin(write=write, buffers=True) as txn:
        table = texts.bind(txn)
        assert texts[txn, "k3"] == "v3"
        expected = sorted(((f"k{i}", f"v{i}") for i in range(5)), reverse=reverse)
        assert list(table.select(reverse=reverse)) == expected
        assert list(table.select("k1", "k3", reverse=reverse).keys()) == sorted(["k1", "k2"], reverse=reverse)
        assert list(table.select(startswith="k", reverse=reverse).values()) == [value for _, value in expected]
        assert len(table) == 5
        if write:
            for key in table:
                table[key] = table[key] + "!"
                if key == "k2":
                    del table[key]
            assert dict(table) == {f"k{i}": f"v{i}!" for i in (0, 1, 3, 4)}
            assert table.select().delete() == 4


def test_a_limited_selection_has_its_own_keys_only(t: Any) -> None:
    rows = t.seq.select().limit(2, skip=1)
    assert dict(rows) == {20: "20", 30: "30"}
    for key in (10, 40):
        with pytest.raises(KeyError):
            rows[key]
    cities = t.cities.order_by(lambda city: city.name, reverse=True).limit(1)
    assert cities[100].name == "c100"
    with pytest.raises(KeyError):
        cities[90]
    by_size = t.cities.by_size.select(limit=2)
    assert list(by_size.keys()) == [10, 20]
    assert by_size[20].name == "c020"
    with pytest.raises(KeyError):
        by_size[30]
