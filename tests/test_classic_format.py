"""Files of the real predecessor open, read right and are written by us; what we write, it reads back."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zlmdb

sys.path.insert(0, str(Path(__file__).parent / "interop"))  # the scripts of the other side import the same modules
catalogue: Any = importlib.import_module("catalogue")
predecessor: Any = importlib.import_module("predecessor")

pytestmark = pytest.mark.interop
pytest.importorskip("numpy", reason="timestamps need numpy")

NAMES = sorted(catalogue.MAPS)
VERSIONS = ["default", "0.9"]


@pytest.fixture(scope="session")
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The predecessor's interpreter."""
    return predecessor.find(request.config, tmp_path_factory)


@pytest.fixture(scope="module", params=VERSIONS)
def written(request: pytest.FixtureRequest, old: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the predecessor with the samples of every map, in the LMDB format of the parameter."""
    path = tmp_path_factory.mktemp("written") / "data"
    wrote = old.run("write_all.py", path, request.param).strip()
    assert wrote == {"default": "1.0", "0.9": "0.9"}[request.param]
    return path


@pytest.fixture(scope="module")
def opened(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A copy of that database, opened by ours."""
    copy = tmp_path_factory.mktemp("opened") / "data"
    shutil.copytree(written, copy)
    with zlmdb.Database(str(copy)) as db:
        yield db


@pytest.fixture(scope="module")
def extended(written: Path, old: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A copy to which ours added a second generation of records in every map, and what the predecessor reads in it."""
    copy = tmp_path_factory.mktemp("extended") / "data"
    shutil.copytree(written, copy)
    with zlmdb.Database(str(copy)) as db, db.begin(write=True) as txn:
        for name, slot in catalogue.SLOTS.items():
            table = catalogue.make(zlmdb, name, slot)
            for key, value in catalogue.records(name, 1):
                table[txn, catalogue.python_key(key)] = catalogue.python_value(value)
    return copy, json.loads(old.run("read_all.py", copy))


def samples(name: str, generation: int = 0) -> list[tuple[Any, Any]]:
    return [(catalogue.python_key(k), catalogue.python_value(v)) for k, v in catalogue.records(name, generation)]


def raw_key(name: str, key: Any) -> bytes:
    return bytes(catalogue.SLOTS[name].to_bytes(2, "big") + catalogue.key_bytes(key))


# What it wrote


def test_the_samples_cover_every_map_that_the_predecessor_can_write() -> None:
    classes = {name for name in dir(zlmdb) if name.startswith("Map") and name != "Mapping"}
    assert classes - {"MapUuidBytes32FlatBuffers"} == set(NAMES)
    assert len(classes) == 83


@pytest.mark.parametrize("name", NAMES)
def test_every_record_of_the_predecessor_reads_right_by_key(name: str, opened: Any) -> None:
    table = catalogue.make(zlmdb, name, catalogue.SLOTS[name])
    with opened.begin() as txn:
        for key, value in samples(name):
            assert (txn, key) in table
            read = table[txn, key]
            assert read == value
            assert type(read) is type(value)


@pytest.mark.parametrize("name", NAMES)
def test_every_record_of_the_predecessor_is_selected_with_its_key(name: str, opened: Any) -> None:
    table = catalogue.make(zlmdb, name, catalogue.SLOTS[name])
    want = samples(name)
    with opened.begin() as txn:
        assert list(table.select(txn)) == want
        assert list(table.select(txn, reverse=True)) == want[::-1]
        assert list(table.select(txn, return_values=False)) == [key for key, _ in want]
        assert list(table.select(txn, return_keys=False)) == [value for _, value in want]
        assert list(table.select(txn, limit=2)) == want[:2]


@pytest.mark.parametrize("name", NAMES)
def test_the_records_of_the_predecessor_are_counted(name: str, opened: Any) -> None:
    table = catalogue.make(zlmdb, name, catalogue.SLOTS[name])
    with opened.begin() as txn:
        assert table.count(txn) == len(samples(name))


@pytest.mark.parametrize("name", [name for name in NAMES if catalogue.MAPS[name][0] not in catalogue.LITTLE_ENDIAN])
def test_ranges_over_the_records_of_the_predecessor_are_half_open(name: str, opened: Any) -> None:
    table = catalogue.make(zlmdb, name, catalogue.SLOTS[name])
    want = samples(name)
    start, stop = want[1][0], want[-2][0]
    with opened.begin() as txn:
        assert list(table.select(txn, from_key=start, to_key=stop)) == want[1:-2]
        assert list(table.select(txn, from_key=start, to_key=stop, reverse=True)) == want[1:-2][::-1]
        assert table.count_range(txn, start, stop) == len(want) - 3


@pytest.mark.parametrize("name", [name for name in NAMES if catalogue.MAPS[name][0] in catalogue.LITTLE_ENDIAN])
def test_a_range_over_keys_that_do_not_sort_on_disk_is_refused(name: str, opened: Any) -> None:
    table = catalogue.make(zlmdb, name, catalogue.SLOTS[name])
    want = samples(name)
    with opened.begin() as txn, pytest.raises((TypeError, ValueError, zlmdb.Error)):
        list(table.select(txn, from_key=want[1][0], to_key=want[-1][0]))


# What ours wrote


@pytest.mark.parametrize("name", NAMES)
def test_the_predecessor_finds_what_ours_wrote(name: str, extended: tuple[Path, Any]) -> None:
    read = extended[1][name]
    kind = catalogue.MAPS[name][1]
    for generation in (0, 1):
        assert catalogue.records(name, generation)
    want = [(g, key, value) for g in (0, 1) for key, value in catalogue.records(name, g)]
    assert read["count"] == len(want)
    for (generation, key, value), (its_key, found, raw, its_value) in zip(want, read["by_key"]):
        assert its_key == key
        assert found
        exact = catalogue.value_bytes(value)
        # A set is ordered by ours, by the predecessor it is not.
        if exact is not None and (generation == 1 or kind not in catalogue.VALUES_IT_CANNOT_DECODE):
            assert raw == exact.hex()
        if kind not in catalogue.VALUES_IT_CANNOT_DECODE:
            assert its_value == value[1]


@pytest.mark.parametrize("name", NAMES)
def test_the_predecessor_selects_what_ours_wrote(name: str, extended: tuple[Path, Any]) -> None:
    selected = extended[1][name]["selected"]
    parts, kind = catalogue.MAPS[name]
    if selected is None:  # its decoders fail on its own records too
        assert parts in catalogue.KEYS_IT_CANNOT_DECODE or kind in catalogue.VALUES_IT_CANNOT_DECODE
        return
    want = catalogue.records(name) + catalogue.records(name, 1)
    want.sort(key=lambda record: catalogue.key_bytes(record[0]))
    assert selected == [[key, value[1]] for key, value in want]


@pytest.mark.parametrize("name", NAMES)
def test_both_packages_lay_out_keys_alike(name: str, extended: tuple[Path, Any]) -> None:
    with zlmdb.Database(str(extended[0])) as db, db.begin() as txn:
        for generation in (0, 1):
            for key, _ in catalogue.records(name, generation):
                assert txn.get(raw_key(name, key)) is not None


def test_records_of_the_predecessor_are_replaced_and_deleted_by_ours(old: Any, written: Path, tmp_path: Path) -> None:
    path = tmp_path / "data"
    shutil.copytree(written, path)
    with zlmdb.Database(str(path)) as db, db.begin(write=True) as txn:
        for name, slot in catalogue.SLOTS.items():
            table = catalogue.make(zlmdb, name, slot)
            (first, _), (second, _), *_ = samples(name)
            _, third = samples(name)[2]
            table[txn, first] = third
            del table[txn, second]
    read = json.loads(old.run("read_all.py", path))
    for name in NAMES:
        records = catalogue.records(name)
        assert read[name]["count"] == len(records) - 1
        first, second = read[name]["by_key"][:2]
        if catalogue.MAPS[name][1] not in catalogue.VALUES_IT_CANNOT_DECODE:
            assert first[3] == records[2][1][1]
        assert second[1:] == [False, None, None]


def test_a_map_truncated_by_ours_leaves_its_neighbours_to_the_predecessor(
    old: Any, written: Path, tmp_path: Path
) -> None:
    path = tmp_path / "data"
    shutil.copytree(written, path)
    with zlmdb.Database(str(path)) as db, db.begin(write=True) as txn:
        for name in NAMES[1::2]:
            deleted = catalogue.make(zlmdb, name, catalogue.SLOTS[name]).truncate(txn)
            assert deleted == len(catalogue.records(name))
    read = json.loads(old.run("read_all.py", path))
    assert [read[name]["count"] for name in NAMES[1::2]] == [0] * len(NAMES[1::2])
    assert [read[name]["count"] for name in NAMES[::2]] == [len(catalogue.records(name)) for name in NAMES[::2]]


# The file


def test_the_lmdb_format_of_an_existing_file_is_detected_and_kept(old: Any, tmp_path: Path) -> None:
    for version, expected in (("default", "1.0"), ("0.9", "0.9")):
        path = tmp_path / version
        old.run("write_all.py", path, version)
        with zlmdb.Database(str(path)) as db:
            assert db.lib_version == expected
        other = "0.9" if expected == "1.0" else "1.0"
        with pytest.raises(ValueError, match=expected):
            zlmdb.Database(str(path), lib_version=other)
        with zlmdb.Database(str(path), lib_version=expected) as db:
            assert db.lib_version == expected


def test_a_file_of_hand_given_slots_opens_by_open_only_when_called_classic(written: Path, tmp_path: Path) -> None:
    path = tmp_path / "data"
    shutil.copytree(written, path)
    with pytest.raises(zlmdb.Error, match="classic"):
        zlmdb.open(path)

    class Empty(zlmdb.Schema):
        pass

    with zlmdb.open(path, Empty, layout="classic") as db, db.begin() as txn:
        name = "MapUuidCbor"
        table = catalogue.make(zlmdb, name, catalogue.SLOTS[name])
        assert list(table.select(txn)) == samples(name)


def test_a_file_of_the_predecessor_reads_when_opened_readonly(written: Path, tmp_path: Path) -> None:
    path = tmp_path / "data"
    shutil.copytree(written, path)
    before = (path / "data.mdb").read_bytes()
    with zlmdb.Database(str(path), readonly=True) as db, db.begin() as txn:
        for name in NAMES:
            table = catalogue.make(zlmdb, name, catalogue.SLOTS[name])
            assert list(table.select(txn)) == samples(name)
    assert (path / "data.mdb").read_bytes() == before


def test_opening_and_reading_a_file_of_the_predecessor_writes_nothing(written: Path, tmp_path: Path) -> None:
    path = tmp_path / "data"
    shutil.copytree(written, path)
    before = (path / "data.mdb").read_bytes()
    with zlmdb.Database(str(path)) as db, db.begin() as txn:
        for name in NAMES:
            assert catalogue.make(zlmdb, name, catalogue.SLOTS[name]).count(txn) == len(samples(name))
    assert (path / "data.mdb").read_bytes() == before


def test_a_compressed_map_is_exchanged_both_ways(old: Any, tmp_path: Path) -> None:
    path = tmp_path / "data"
    old.run("compressed.py", path, "write", 1)
    with zlmdb.Database(str(path)) as db, db.begin(write=True) as txn:
        table = zlmdb.MapOidString(1, compress=zlmdb.PersistentMap.COMPRESS_ZLIB)
        assert list(table.select(txn)) == [(n, f"record {n} " * 100) for n in range(5)] + [(99, "")]
        for n in range(5, 10):
            table[txn, n] = f"record {n} " * 100
        # The same library at the same level: what ours writes is what the predecessor would have written.
        other = zlmdb.MapOidString(2, compress=zlmdb.PersistentMap.COMPRESS_ZLIB)
        other[txn, 1] = "record 1 " * 100
        key = (1).to_bytes(8, "big")
        assert txn.get(b"\0\2" + key) == txn.get(b"\0\1" + key)
    assert json.loads(old.run("compressed.py", path, "read", 1)) == [[n, f"record {n} " * 100] for n in range(10)] + [
        [99, ""]
    ]


# Registered tables

FIRST = ["Users", "UsersByNumber", "Notes", "Rows", "Points", "Members"]
LAST = ["Members", "Late", "Points", "Rows", "Notes", "UsersByNumber", "Users"]


def attach(python: str, path: Path, mode: str, names: list[str]) -> Any:
    """What `attach.py` prints when *python* runs it: in a process of its own for both packages."""
    return json.loads(predecessor.run(python, predecessor.HERE / "attach.py", path, mode, *names))


def two_interpreters(old: Any, first: str) -> tuple[str, str]:
    return (old.python, sys.executable) if first == "predecessor" else (sys.executable, old.python)


@pytest.fixture(params=["predecessor", "ours"])
def turns(request: pytest.FixtureRequest, old: Any, tmp_path: Path) -> tuple[Path, str, str]:
    """A path, and the interpreters of the package that writes first and of the one that goes on."""
    path = tmp_path / "data"
    # A new file would have the other layout if ours began it.
    attach(old.python, path, "read", ["Late"])
    return (path, *two_interpreters(old, request.param))


def test_a_table_keeps_its_slot_when_the_other_package_attaches_it(turns: tuple[Path, str, str]) -> None:
    path, first, second = turns
    before = attach(first, path, "write", FIRST)
    assert {name: table["slot"] for name, table in before.items()} == {n: s for s, n in enumerate(["Late", *FIRST], 1)}
    assert attach(second, path, "read", LAST) == before


def test_both_packages_register_a_table_with_the_same_bytes(old: Any, tmp_path: Path) -> None:
    files = []
    for python in (old.python, sys.executable):
        path = tmp_path / ("old" if python == old.python else "new")
        attach(old.python, path, "read", ["Late"])
        files.append(attach(python, path, "read", FIRST))
    assert files[0] == files[1]


def test_records_of_registered_tables_are_exchanged_both_ways(turns: tuple[Path, str, str]) -> None:
    path, first, second = turns
    attach(first, path, "write", FIRST)
    ours = attach(second, path, "write", LAST)
    back = attach(first, path, "read", FIRST)
    assert back == ours
    for name in FIRST:
        assert back[name]["count"] == back[name]["stats"]["records"] == 2
        assert "None" not in back[name]["values"]


def test_slots_are_allocated_after_the_highest_of_either_package(turns: tuple[Path, str, str]) -> None:
    path, first, second = turns
    assert attach(first, path, "write", ["Notes"])["Notes"]["slot"] == 2
    assert attach(second, path, "write", ["Users"])["Users"]["slot"] == 3
    assert attach(first, path, "write", ["Rows"])["Rows"]["slot"] == 4
    after = attach(second, path, "write", ["Points", "Users"])
    assert {name: table["slot"] for name, table in after.items()} == {
        "Late": 1,
        "Notes": 2,
        "Users": 3,
        "Rows": 4,
        "Points": 5,
    }


def test_a_file_with_registered_tables_opens_by_open_too(old: Any, tmp_path: Path) -> None:
    path = tmp_path / "data"
    attach(old.python, path, "write", FIRST)
    with zlmdb.open(path) as db:
        infos = db.tables()
        assert {info.count for info in infos.values()} == {1}
        assert len(infos) == len(FIRST)
