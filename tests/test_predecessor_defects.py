"""What zlmdb 26 got wrong, one test for each row of the list of its defects, named for what must hold.

Rows without a test here: B38 (types: see tests/typing), B39 (benchmarks: see `tox -e bench`) and B40 (empty pages).
That the program of the README runs, which belongs to B30, is in test_readme.py.
"""

from __future__ import annotations

import logging
import re
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Optional
from uuid import UUID

import pytest

import zlmdb

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

Open = Callable[..., zlmdb.Database[Any]]
U = [UUID(int=n << 64) for n in range(5)]
LAYOUTS = ["tables", "classic"]
each_layout = pytest.mark.parametrize("layout", LAYOUTS)

USERS = "b0a1f0c4-0000-4000-8000-00000000000"


@pytest.fixture
def db(make_db: Open) -> zlmdb.Database[Any]:
    return make_db(zlmdb.Schema)


def open_path(path: Path, layout: Any = "tables", **options: Any) -> zlmdb.Database[Any]:
    return zlmdb.Database(path, layout=layout, **options)


def decorated(number: int, base: Any = zlmdb.MapOidJson) -> Any:
    """A new class of maps, decorated as table *number*."""
    return zlmdb.table(f"{USERS}{number}")(type(f"Table{number}", (base,), {}))


def run(program: str, *flags: str) -> str:
    return subprocess.run([sys.executable, *flags, "-c", program], capture_output=True, text=True, check=True).stdout


def test_every_row_has_a_test() -> None:
    tests = [item for name, item in globals().items() if name.startswith("test_")]
    rows = {int(number) for test in tests for number in re.findall(r"^B(\d+)", test.__doc__ or "")}
    assert rows == set(range(1, 38))


def test_truncate_deletes_the_records_of_one_map_only(db: zlmdb.Database[Any]) -> None:
    """B1: it also deleted every row in every higher slot."""
    maps = [zlmdb.MapOidString(slot) for slot in (1, 2, 3)]
    with db.begin(write=True) as txn:
        for table in maps:
            for n in range(10):
                table[txn, n] = "x"
        assert maps[1].truncate(txn) == 10
        assert [table.count(txn) for table in maps] == [10, 0, 10]


@pytest.mark.parametrize("index_slot", [4, 6])
def test_rebuilding_an_index_leaves_every_table_alone(db: zlmdb.Database[Any], index_slot: int) -> None:
    """B2: all tables in slots above the index were wiped, the indexed one included."""
    rows, index = zlmdb.MapOidJson(5), zlmdb.MapStringOid(index_slot)
    others = [zlmdb.MapOidString(slot) for slot in (1, 7, 900)]
    rows.attach_index("name", index, lambda value: value)
    with db.begin(write=True) as txn:
        for n in range(5):
            rows[txn, n] = f"name {n}"
            for other in others:
                other[txn, n] = "x"
        assert rows.rebuild_index(txn, "name") == rows.rebuild_indexes(txn) == (5, 5)
        assert [table.count(txn) for table in (rows, index, *others)] == [5] * 5
        assert index[txn, "name 3"] == 3


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@each_layout
def test_processes_that_attach_tables_get_different_slots(tmp_path: Path, layout: str) -> None:
    """B3: each allocated from its own cached catalogue, and two tables shared their rows."""
    program = f"""
import sys, zlmdb
@zlmdb.table("{USERS}2")
class Other(zlmdb.MapOidString):
    pass
with zlmdb.Database({str(tmp_path / "db")!r}) as db:
    other = db.attach_table(Other)
    with db.begin(write=True) as txn:
        other[txn, 1] = "from the other process"
"""
    with open_path(tmp_path / "db", layout) as db:
        first = db.attach_table(decorated(1, zlmdb.MapOidString))
        run(program)
        third = db.attach_table(decorated(3, zlmdb.MapOidString))
        other = db.attach_table(decorated(2, zlmdb.MapOidString))
        with db.begin(write=True) as txn:
            first[txn, 1], third[txn, 1] = "first", "third"
            assert [table[txn, 1] for table in (first, other, third)] == ["first", "from the other process", "third"]
        assert [slot["slot"] for slot in db.stats(include_slots=True)["slots"]] == [1, 2, 3]


@pytest.mark.parametrize("filled", [True, False])
def test_a_slot_given_by_hand_and_an_attached_table_never_share_rows(db: zlmdb.Database[Any], filled: bool) -> None:
    """B4: attach_table allocated the slot of a manual map, and saw its rows."""
    by_hand = zlmdb.MapOidString(1)
    with db.begin(write=True) as txn:
        assert by_hand.count(txn) == 0
        if filled:
            by_hand[txn, 1] = "by hand"
    attached = db.attach_table(decorated(1, zlmdb.MapOidString))
    with db.begin(write=True) as txn:
        assert attached[txn, 1] is None
        attached[txn, 2] = "attached"
        assert list(by_hand.select(txn)) == ([(1, "by hand")] if filled else [])
        by_hand[txn, 3] = "more"
        assert list(attached.select(txn)) == [(2, "attached")]


@pytest.mark.parametrize("engine", ["memory", "lmdb"])
def test_a_slot_given_by_hand_that_is_a_registered_table_is_refused(tmp_path: Path, engine: str) -> None:
    """B4: in a classic file both live in one keyspace."""
    path = tmp_path / "db" if engine == "lmdb" else None
    with zlmdb.open(path, zlmdb.Schema, layout="classic") as db:
        attached = db.attach_table(decorated(1, zlmdb.MapOidString))
        by_hand = zlmdb.MapOidJson(1)
        with db.begin(write=True) as txn:
            attached[txn, 1] = "attached"
            for use in (
                lambda: by_hand[txn, 1],
                lambda: by_hand.__setitem__((txn, 1), "x"),
                lambda: by_hand.count(txn),
            ):
                with pytest.raises(zlmdb.SchemaMismatch, match=f"slot 1 holds the table {USERS}1"):
                    use()
            assert list(attached.select(txn)) == [(1, "attached")]


@pytest.mark.parametrize("size", [0, 1, 2, 17, 20, 300])
def test_sets_keep_all_elements(db: zlmdb.Database[Any], size: int) -> None:
    """B5: 20 elements came back as 3."""
    oids, uuids = zlmdb.MapOidOidSet(1), zlmdb.MapUuidUuidSet(2)
    numbers, chosen = set(range(size)), {UUID(int=n * 7919) for n in range(size)}
    with db.begin(write=True) as txn:
        oids[txn, 1], uuids[txn, U[1]] = numbers, chosen
        assert oids[txn, 1] == numbers
        assert uuids[txn, U[1]] == chosen
        assert list(oids.select(txn)) == [(1, numbers)]
        assert len(txn.get(b"\0\1" + struct.pack(">Q", 1))) == 8 * size


@pytest.mark.parametrize("unique", [True, False])
def test_two_records_never_share_an_entry_of_an_index(db: zlmdb.Database[Any], unique: bool) -> None:
    """B6: the second one silently took the entry over, and deleting either deleted it."""
    rows, index = zlmdb.MapOidJson(1), zlmdb.MapStringOid(2)
    rows.attach_index("name", index, lambda value: value, unique=unique)
    with db.begin(write=True) as txn:
        rows[txn, 1] = "ann"
        with pytest.raises(zlmdb.DuplicateKey) as caught:
            rows[txn, 2] = "ann"
        assert (caught.value.index, caught.value.key, caught.value.owner) == ("name", "ann", 1)
        assert list(rows.select(txn)) == [(1, "ann")]
        assert list(index.select(txn)) == [("ann", 1)]


@pytest.mark.parametrize("wrong", [{"a": "x"}, {"a": "x", "b": None}, {"a": "x", "b": 5}, {"a": "taken", "b": "taken"}])
def test_a_refused_statement_changes_nothing(db: zlmdb.Database[Any], wrong: dict[str, Any]) -> None:
    """B7: the row and the entries of earlier indexes stayed behind."""
    rows, first, second = zlmdb.MapOidJson(1), zlmdb.MapStringOid(2), zlmdb.MapStringOid(3)
    rows.attach_index("a", first, lambda value: value["a"])
    rows.attach_index("b", second, lambda value: value["b"])
    with db.begin(write=True) as txn:
        rows[txn, 1] = {"a": "1", "b": "1"}
        rows[txn, 2] = {"a": "2", "b": "taken"}
        for key in (1, 9):
            with pytest.raises((zlmdb.Error, KeyError)):
                rows[txn, key] = wrong
    with db.begin() as txn:
        assert list(rows.select(txn, return_values=False)) == [1, 2]
        assert rows[txn, 1] == {"a": "1", "b": "1"}
        assert list(first.select(txn)) == [("1", 1), ("2", 2)]
        assert list(second.select(txn)) == [("1", 1), ("taken", 2)]


class Falsy:
    def __init__(self, name: str) -> None:
        self.name = name

    def __bool__(self) -> bool:
        return False


def test_objects_that_are_false_lose_no_entry_and_leave_none(db: zlmdb.Database[Any]) -> None:
    """B8: their entries went stale on update and delete."""
    rows, index = zlmdb.MapOidJson(1, marshal=lambda one: one.name, unmarshal=Falsy), zlmdb.MapStringOid(2)
    rows.attach_index("name", index, lambda one: one.name)
    with db.begin(write=True) as txn:
        rows[txn, 1] = Falsy("a")
        rows[txn, 1] = Falsy("b")
        assert list(index.select(txn)) == [("b", 1)]
        del rows[txn, 1]
        assert index.count(txn) == 0


@pytest.mark.parametrize("compress", [None, zlmdb.PersistentMap.COMPRESS_ZLIB])
def test_rebuilding_takes_the_keys_from_the_table(db: zlmdb.Database[Any], compress: Optional[int]) -> None:
    """B9: it took them from ``value.oid``, and could neither read compressed rows nor skip null keys."""
    rows, index = zlmdb.MapOidPickle(1, compress), zlmdb.MapStringOid(2)
    rows.attach_index("name", index, lambda value: value["name"], nullable=True)
    with db.begin(write=True) as txn:
        rows[txn, 1] = {"name": "ann", "oid": 999}
        rows[txn, 2] = {"name": None}
        index.truncate(txn)
        assert rows.rebuild_index(txn, "name") == (0, 1)
        assert list(index.select(txn)) == [("ann", 1)]


def test_a_table_is_a_dict_and_a_map_honours_defaults(db: zlmdb.Database[Any]) -> None:
    """B10: defaults were ignored, setdefault stored nothing, len and iteration raised."""
    rows = zlmdb.MapOidJson(1)
    with db.begin(write=True) as txn:
        assert rows.get((txn, 1), "default") == "default"
        assert rows.setdefault((txn, 1), "stored") == "stored"
        assert rows[txn, 1] == "stored"
        assert rows.pop((txn, 2), "default") == "default"
        rows[txn, 3] = None
        table = rows.bind(txn)
        assert dict(table.items()) == {1: "stored", 3: None}
        assert (len(table), list(table), 3 in table, 4 in table) == (2, [1, 3], True, False)
        assert table == {1: "stored", 3: None}
        with pytest.raises(KeyError):
            table[4]
        table.clear()
        assert not table
    assert hash(rows) == hash(rows)


def test_a_record_with_a_null_index_key_can_be_deleted(db: zlmdb.Database[Any]) -> None:
    """B11: an assertion failed, and the row stayed for ever."""
    rows, index = zlmdb.MapOidJson(1), zlmdb.MapStringOid(2)
    rows.attach_index("name", index, lambda value: value, nullable=True)
    with db.begin(write=True) as txn:
        rows[txn, 1] = None
        del rows[txn, 1]
        assert rows.count(txn) == 0


@pytest.mark.once  # the same on every interpreter
@pytest.mark.parametrize("name", sorted(name for name in zlmdb.__all__ if name.startswith("Map")))
def test_new_keys_can_be_used(name: str) -> None:
    """B12: some generators returned None, or keys that no map took."""
    if "Timestamp" in name:
        pytest.importorskip("numpy")
    table = getattr(zlmdb, name)(1)
    codec, _ = table._both_codecs()
    for _ in range(50):
        key = table.new_key()
        assert codec.decode(codec.encode(key)) == key


def test_slots_that_do_not_work_are_refused_when_the_map_is_made(db: zlmdb.Database[Any]) -> None:
    """B13: slot 0 broke the catalogue, 65535 the selection, None everything."""
    for slot in (0, 65535, -1):
        with pytest.raises(ValueError, match="1 to 65534"):
            zlmdb.MapOidString(slot)
    with db.begin() as txn, pytest.raises(TypeError, match="has no slot"):
        zlmdb.MapOidString()[txn, 1]
    with db.begin(write=True) as txn:
        zlmdb.MapOidString(65534)[txn, 1] = "last"
        assert list(zlmdb.MapOidString(65534).select(txn)) == [(1, "last")]
    assert db.stats(include_slots=True)["slots"] == []


def broken_keys() -> list[tuple[str, Any]]:
    import numpy as np

    time, b20, b32 = np.datetime64(1700000000123456789, "ns"), b"t" * 20, b"b" * 32
    return [
        ("MapUuidBytes32FlatBuffers", (U[1], b32)),
        ("MapUuidTimestampUuidFlatBuffers", (U[1], time, U[2])),
        ("MapOidTimestampOid", (5, time)),
        ("MapOidTimestampStringOid", (5, time, "ab")),
        ("MapUint16UuidTimestampFlatBuffers", (258, U[1], time)),
        ("MapUuidBytes20Uint8FlatBuffers", (U[1], b20, 7)),
        ("MapUuidBytes20Uint8UuidFlatBuffers", (U[1], b20, 7, U[2])),
        ("MapUuidBytes20Bytes20Uint8UuidFlatBuffers", (U[1], b20, b20, 7, U[2])),
        ("MapStringStringUuid", ("ab", "cd")),
        ("MapStringStringStringUuid", ("a", "b", "c")),
        ("MapStringOidOid", ("a longer text", 5)),
        ("MapUuidUuidStringUuid", (U[1], U[2], "")),
        ("MapOidStringOid", (5, "")),
        ("MapStringTimestampCbor", ("", time)),
        ("MapTimestampStringCbor", (time, "")),
    ]


def test_every_key_type_comes_back_from_a_selection(db: zlmdb.Database[Any]) -> None:
    """B14: eleven of them could not be encoded, or not decoded, or came back as something else."""
    pytest.importorskip("numpy")
    with db.begin(write=True) as txn:
        for slot, (name, key) in enumerate(broken_keys(), 1):
            table = getattr(zlmdb, name)(slot)
            txn.put(struct.pack(">H", slot) + table.bind(txn)._storage.key.encode(key), b"\0" * 16)
            assert list(table.select(txn, return_values=False)) == [key], name
            assert (txn, key) in table
        short: Any = (U[1], b"t" * 20, b"t" * 5, 7, U[2])
        with pytest.raises(zlmdb.EncodeError):
            zlmdb.MapUuidBytes20Bytes20Uint8UuidFlatBuffers(8).count_range(txn, short, short)


def test_keys_sort_by_their_values(db: zlmdb.Database[Any], combo: str) -> None:
    """B15: little-endian times gave wrong ranges, times before 1970 came after later ones."""
    np = pytest.importorskip("numpy")
    times = [np.datetime64(n, "ns") for n in (0, 1, 255, 256, 299, 300)]
    rows: Any = zlmdb.MapOidTimestampOid(1)
    texts = zlmdb.MapStringOidOid(2)
    early: Any = zlmdb.MapTimestampFlatBuffers(3, build=lambda obj, builder: 0)
    with db.begin(write=True) as txn:
        for n, time in enumerate(times):
            rows[txn, (1, time)] = n
        if combo.endswith("classic"):
            with pytest.raises(zlmdb.EncodeError, match="little-endian"):
                rows.count_range(txn, (1, times[0]), (1, times[-1]))
        else:
            assert rows.count_range(txn, (1, times[0]), (1, times[-1])) == 5
            assert list(rows.select(txn, return_keys=False)) == [0, 1, 2, 3, 4, 5]
        for key in [("b", 0), ("a", 2**53), ("ab", 0), ("a", 0)]:
            texts[txn, key] = 0
        assert list(texts.select(txn, return_values=False)) == [("a", 0), ("a", 2**53), ("ab", 0), ("b", 0)]
        with pytest.raises(zlmdb.EncodeError, match="before 1970"):
            early[txn, np.datetime64("1969-12-31", "ns")] = {}


def test_times_of_any_unit_are_the_same_time(db: zlmdb.Database[Any]) -> None:
    """B16: 2024-01-01 in seconds came back as a second of 1970, and NaT was stored."""
    np = pytest.importorskip("numpy")
    rows = zlmdb.MapBytes32Timestamp(1)
    with db.begin(write=True) as txn:
        for unit in ("Y", "M", "D", "h", "m", "s", "ms", "us", "ns"):
            rows[txn, b"k" * 32] = np.datetime64("2024-01-01", unit)
            assert rows[txn, b"k" * 32] == np.datetime64("2024-01-01T00:00:00.000000000")
        with pytest.raises(zlmdb.EncodeError, match="NaT is no time"):
            rows[txn, b"k" * 32] = np.datetime64("NaT", "ns")


def test_zeros_are_bounds_prefixes_and_limits(db: zlmdb.Database[Any]) -> None:
    """B17: to_key=0, to_key="", prefix=0 and prefix="" were taken for none, limit=0 failed an assertion."""
    numbers, texts = zlmdb.MapOidString(1), zlmdb.MapStringOid(2)
    with db.begin(write=True) as txn:
        numbers[txn, 1], texts[txn, "a"] = "x", 1
        assert list(numbers.select(txn, to_key=0)) == list(numbers.select(txn, from_key=0, to_key=0)) == []
        assert list(texts.select(txn, to_key="")) == []
        assert list(texts.select(txn, from_key="")) == [("a", 1)]
        assert numbers.count(txn, prefix=0) == 0
        assert list(numbers.select(txn, limit=0)) == []
        assert texts.count(txn, prefix="") == 1


def test_a_prefix_of_leading_parts_counts_all_that_begin_so(db: zlmdb.Database[Any]) -> None:
    """B18: None in the prefix became zero bytes, and nothing began with them."""
    rows = zlmdb.MapUuidUuidUuid(1)
    with db.begin(write=True) as txn:
        for n in range(3):
            rows[txn, (U[1], U[n + 1])] = U[0]
        assert rows.count(txn, (U[1], None)) == rows.count(txn, (U[1],)) == 3
        assert rows.count(txn, (U[2], None)) == 0


def test_the_plain_types_tell_none_from_zero(db: zlmdb.Database[Any]) -> None:
    """B19: nil UUID, 1970 and "" were also None; the named types keep that for old programs, the plain ones do not."""
    rows: Any = zlmdb.PersistentMap[UUID, str](1)
    pairs: Any = zlmdb.PersistentMap[tuple[UUID, str], int](2)
    with db.begin(write=True) as txn:
        for use in (
            lambda: rows.__setitem__((txn, None), "x"),
            lambda: rows.__setitem__((txn, U[0]), None),
            lambda: pairs.__setitem__((txn, (U[0], None)), 1),
        ):
            with pytest.raises(zlmdb.EncodeError):
                use()
        rows[txn, U[0]] = ""
        assert list(rows.select(txn)) == [(U[0], "")]


def test_buffers_work_with_every_type(db: zlmdb.Database[Any]) -> None:
    """B20: UUID keys failed an assertion, texts came back undecoded."""
    texts, uuids = zlmdb.MapStringString(1), zlmdb.MapUuidStringUuid(2)
    views = zlmdb.MapOidFlatBuffers(3, build=lambda obj, builder: builder.EndVector() or 0, cast=lambda data: data)
    with db.begin(write=True) as txn:
        texts[txn, "a"], uuids[txn, (U[1], "a")] = "text", U[2]
        txn.put(b"\0\3" + struct.pack(">Q", 1), b"buffer")
    with db.begin(buffers=True) as txn:
        assert texts[txn, "a"] == "text"
        assert list(texts.select(txn)) == [("a", "text")]
        assert list(uuids.select(txn)) == [((U[1], "a"), U[2])]
        assert uuids[txn, (U[1], "a")] == U[2]
        assert isinstance(views[txn, 1], memoryview)


def test_an_index_is_never_silently_incomplete(db: zlmdb.Database[Any], combo: str) -> None:
    """B21: attached to a populated table it stayed empty, and writers without it left it behind."""
    rows, index = zlmdb.MapOidJson(1), zlmdb.MapStringOid(2)
    with db.begin(write=True) as txn:
        rows[txn, 1] = "ann"
    rows.attach_index("name", index, lambda value: value)
    with db.begin() as txn, pytest.raises(zlmdb.IndexNotBuilt):
        index[txn, "ann"]
    with db.begin(write=True) as txn:
        assert index[txn, "ann"] == 1
        rows[txn, 2] = "bob"
    blind = zlmdb.MapOidJson(1)
    if not combo.endswith("classic"):  # a classic file does not say which indexes there are
        with db.begin(write=True) as txn, pytest.raises(zlmdb.IndexNotAttached, match="name"):
            blind[txn, 3] = "eve"
    with db.begin() as txn:
        assert list(index.select(txn)) == [("ann", 1), ("bob", 2)]


def test_an_index_map_in_use_is_refused_with_the_reason(db: zlmdb.Database[Any]) -> None:
    """B22: a bare NotImplementedError, also when it was attached again after detach_index."""
    rows, others, index = zlmdb.MapOidJson(1), zlmdb.MapOidJson(2), zlmdb.MapStringOid(3)
    rows.attach_index("name", index, lambda value: value)
    with pytest.raises(ValueError, match="is an index of"):
        others.attach_index("name", index, lambda value: value)
    with pytest.raises(ValueError, match="an index has no indexes"):
        index.attach_index("name", zlmdb.MapStringOid(4), lambda value: value)
    rows.detach_index("name")
    others.attach_index("name", index, lambda value: value)
    assert index.is_index()
    with db.begin(write=True) as txn:
        others[txn, 1] = "a"
        assert index[txn, "a"] == 1


def test_decorating_a_class_again_gives_the_class() -> None:
    """B23: a reloaded module got None."""

    class Users(zlmdb.MapOidJson):
        pass

    for _ in range(2):
        assert zlmdb.table(f"{USERS}7")(Users) is Users
    again = decorated(7)
    assert zlmdb.TABLES_BY_UUID[UUID(f"{USERS}7")] is again


def test_a_table_is_not_attached_as_another_type(db: zlmdb.Database[Any]) -> None:
    """B24: any map class was accepted, and rows failed to decode later."""
    with db.begin(write=True) as txn:
        assert txn.id() >= 0
    users = db.attach_table(decorated(1, zlmdb.MapOidJson))
    with db.begin(write=True) as txn:
        users[txn, 1] = "ann"
    for other, named in (
        (zlmdb.MapOidCbor, "values of type json.*declares cbor"),
        (zlmdb.MapStringJson, "keys of type oid.*declares string"),
    ):
        with pytest.raises(zlmdb.SchemaMismatch, match=named):
            db.attach_table(decorated(1, other))
    assert db.attach_table(decorated(1, zlmdb.MapOidJson)) is not users


@each_layout
def test_statistics_of_a_database_without_tables(tmp_path: Path, layout: str) -> None:
    """B25: AssertionError."""
    with open_path(tmp_path / "db", layout) as db:
        stats = db.stats(include_slots=True)
        assert (stats["num_slots"], stats["slots"]) == (0, [])


def test_a_failed_open_leaves_nothing_behind(tmp_path: Path) -> None:
    """B26: the next, correct open was told that the path is open already."""
    path = tmp_path / "db"
    with pytest.raises(FileNotFoundError):
        zlmdb.Database(path, create=False)
    with pytest.raises(FileNotFoundError):
        zlmdb.Database(path, readonly=True)
    (tmp_path / "text").write_text("no database")
    with pytest.raises(zlmdb.InvalidDatabase):
        zlmdb.Database(tmp_path / "text")
    with zlmdb.Database(path, lib_version="0.9"):
        pass
    with pytest.raises(ValueError, match="0.9"):
        zlmdb.Database(path, lib_version="1.0")
    with zlmdb.Database(path) as db, db.begin(write=True) as txn:
        zlmdb.MapOidString(1)[txn, 1] = "x"


def test_opening_an_open_path_is_silent_and_compares_the_options(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """B27: it printed, and gave the open instance whatever was asked for."""
    with zlmdb.Database.open(tmp_path / "db", maxsize=2**22) as db:
        with zlmdb.Database.open(tmp_path / "db", maxsize=2**22) as same:
            assert same is db
        assert db.is_open
        for options in ({"readonly": True}, {"maxsize": 2**23}):
            different: dict[str, Any] = {"maxsize": 2**22, **options}
            with pytest.raises(zlmdb.DatabaseInUse, match="same options"):
                zlmdb.Database.open(tmp_path / "db", **different)
    assert not db.is_open
    assert capfd.readouterr() == ("", "")


def test_schema_slot_says_what_it_decorates(db: zlmdb.Database[Any]) -> None:
    """B28: on a class, as documented, it failed an assertion; two maps of one type collided."""
    schema = zlmdb.Schema()
    wrong: Any = zlmdb.MapStringOid
    with pytest.raises(TypeError, match="instance of a map, not the class"):
        schema.slot(1)(wrong)
    one, other = schema.slot(1)(zlmdb.MapStringOid()), schema.slot(2)(zlmdb.MapStringOid())
    with db.begin(write=True) as txn:
        one[txn, "a"], other[txn, "a"] = 1, 2
        assert (one[txn, "a"], other[txn, "a"]) == (1, 2)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_every_check_is_made_without_asserts_too(tmp_path: Path) -> None:
    """B29: under -O a 5-byte key was stored in a Bytes32 map, and an Oid of 2**60."""
    program = f"""
import zlmdb
def refused(error, work):
    try:
        work()
    except error:
        return
    raise SystemExit(f"{{error}} was not raised")
with zlmdb.Database({str(tmp_path / "db")!r}) as db:
    with db.begin(write=True) as txn:
        b32, oids = zlmdb.MapBytes32Uuid(1), zlmdb.MapOidOid(2)
        refused(zlmdb.EncodeError, lambda: b32.__setitem__((txn, b"short"), None))
        refused(zlmdb.EncodeError, lambda: oids.__setitem__((txn, 2**60), 1))
        refused(zlmdb.EncodeError, lambda: oids.__setitem__((txn, 1), 2**60))
        refused(zlmdb.EncodeError, lambda: oids.select(txn, "1"))
        refused(TypeError, lambda: oids[None, 1])
        refused(TypeError, lambda: oids[txn, 1, 2])
        refused(ValueError, lambda: zlmdb.MapOidOid(0))
        refused(ValueError, lambda: zlmdb.MapOidOid(1, compress=9))
        refused(ValueError, lambda: oids.select(txn, limit=-1))
        print(b32.count(txn), oids.count(txn))
    refused(zlmdb.TransactionClosed, lambda: oids[txn, 1])
refused(zlmdb.DatabaseClosed, lambda: db.begin().__enter__())
"""
    assert run(program, "-O").split() == ["0", "0"]


def test_marshal_and_unmarshal_may_each_be_left_out(db: zlmdb.Database[Any]) -> None:
    """B30: the README's ``MapUuidCbor(1, marshal=...)`` failed an assertion."""
    plain, marshalled = zlmdb.MapUuidCbor(1), zlmdb.MapUuidCbor(2, marshal=lambda value: {"is": value})
    with db.begin(write=True) as txn:
        plain[txn, U[1]], marshalled[txn, U[1]] = {"a": 1}, 7
        assert (plain[txn, U[1]], marshalled[txn, U[1]]) == ({"a": 1}, {"is": 7})


def test_a_selection_is_an_iterator_and_an_iterable(db: zlmdb.Database[Any]) -> None:
    """B31: next() before iter() stopped at once, a second loop with a limit gave nothing."""
    rows = zlmdb.MapOidString(1)
    with db.begin(write=True) as txn:
        for n in range(5):
            rows[txn, n] = str(n)
        selection = rows.select(txn, limit=2)
        assert next(selection) == (0, "0")
        assert list(selection) == list(selection) == [(0, "0"), (1, "1")]
        assert next(selection) == (1, "1")
        with pytest.raises(StopIteration):
            next(selection)


def test_opening_a_database_configures_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """B32: it chose asyncio for the whole process, so that Twisted could not be chosen any more."""
    program = f"""
import sys, zlmdb
with zlmdb.Database({str(tmp_path / "db")!r}) as db:
    print(sorted({{"txaio", "twisted", "asyncio"}} & set(sys.modules)), db.log.name, db.log.handlers)
"""
    assert run(program).strip() == "[] zlmdb []"
    own = logging.getLogger("mine")
    with zlmdb.Database(tmp_path / "db", log=own) as db:
        assert db.log is own


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_importing_zlmdb_claims_no_other_module() -> None:
    """B33: `import zlmdb` put a copy of its own into ``sys.modules["flatbuffers"]``."""
    program = """
import sys, zlmdb
print("flatbuffers" in sys.modules, "lmdb" in sys.modules)
import flatbuffers, zlmdb.flatbuffers
print(flatbuffers.__file__ == zlmdb.flatbuffers.__file__, sys.modules["flatbuffers"] is flatbuffers)
"""
    assert run(program).split() == ["False", "True", "False", "True"]


def test_only_changed_entries_of_an_index_are_written(db: zlmdb.Database[Any]) -> None:
    """B34: every entry was written again on every update."""
    rows, index = zlmdb.MapOidJson(1), zlmdb.MapStringOid(2)
    rows.attach_index("name", index, lambda value: value["name"])
    stats = zlmdb.TransactionStats()
    with db.begin(write=True) as txn:
        rows[txn, 1] = {"name": "ann", "age": 31}
    with db.begin(write=True, stats=stats) as txn:
        rows[txn, 1] = {"name": "ann", "age": 32}
        assert (stats.puts, stats.dels) == (1, 0)
        rows[txn, 1] = {"name": "Ann", "age": 32}
        assert (stats.puts, stats.dels) == (3, 1)


@each_layout
def test_the_default_size_grows_and_an_explicit_one_is_a_limit(tmp_path: Path, layout: str) -> None:
    """B35: 10 MiB and an error for everyone."""
    rows = zlmdb.MapOidPickle(1)
    with open_path(tmp_path / "grows", layout, sync=False) as db, db.begin(write=True) as txn:
        for n in range(24):
            rows[txn, n] = b"x" * 2**20
    with open_path(tmp_path / "limited", layout, maxsize=2**20, sync=False) as db:
        with db.begin(write=True) as txn:
            rows[txn, 1] = b"x"
        with suppress(zlmdb.TransactionPoisoned), db.begin(write=True) as txn, pytest.raises(zlmdb.DatabaseFull):
            rows[txn, 2] = b"x" * 2**21
        with db.begin() as txn:
            assert list(rows.select(txn)) == [(1, b"x")]


def test_many_threads_read_at_once(tmp_path: Path) -> None:
    """B35: 126 readers, and an error for every further one."""
    rows, results, errors = zlmdb.MapOidString(1), [], []
    barrier = threading.Barrier(150)
    with open_path(tmp_path / "db", sync=False) as db:
        with db.begin(write=True) as txn:
            rows[txn, 1] = "x"

        def read() -> None:
            try:
                with db.begin() as txn:
                    barrier.wait(60)
                    results.append(rows[txn, 1])
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=read) for _ in range(150)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in errors:
        raise error
    assert results == ["x"] * 150


def test_statistics_stop_with_the_transaction(db: zlmdb.Database[Any]) -> None:
    """B36: the duration ran on."""
    stats = zlmdb.TransactionStats()
    with db.begin(write=True, stats=stats) as txn:
        zlmdb.MapOidString(1)[txn, 1] = "x"
    duration = stats.duration
    assert stats.duration == duration > 0
    assert (stats.puts, stats.dels) == (1, 0)


def test_pickles_are_written_in_protocol_5_and_read_in_any(db: zlmdb.Database[Any]) -> None:
    """B37: protocol 2, half as large again."""
    import pickle

    rows = zlmdb.MapOidPickle(1)
    with db.begin(write=True) as txn:
        rows[txn, 0] = {"a": 1}
        assert txn.get(b"\0\1" + bytes(8))[:2] == b"\x80\x05"
        for protocol in range(6):
            txn.put(b"\0\1" + struct.pack(">Q", protocol), pickle.dumps({"a": 1}, protocol))
            assert rows[txn, protocol] == {"a": 1}
