"""Reading files without LMDB: agreement with LMDB and its verifier, damage, and the false alarm that is none here."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import lmdb
import lmdb.verify
import pytest
from operated import Store, data_file, make, mutated

import zlmdb
from zlmdb.engines.lmdb import structure
from zlmdb.engines.lmdb.damaged import LmdbState
from zlmdb.engines.lmdb.pages import PageFile
from zlmdb.engines.lmdb.roots import copy_pages

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

IMAGES = int(os.environ.get("ZLMDB_TEST_IMAGES", "60"))
FORMATS = (0, 1)  # py-lmdb's numbers of LMDB 0.9 and 1.0


def problems(path: Path) -> list[str]:
    try:
        return structure.check(str(path))
    except (zlmdb.InvalidDatabase, zlmdb.CorruptDatabase) as error:
        return [str(error)]


def verifier(path: Path) -> list[str]:
    try:
        return lmdb.verify.verify(str(path), subdir=False)
    except lmdb.verify.VerifyError as error:
        return [str(error)]


def random_file(path: Path, version: int, rnd: random.Random) -> dict[bytes, dict[bytes, bytes]]:
    """A file of some transactions, and what is in it."""
    env = lmdb.open(str(path), map_size=1 << 30, max_dbs=4, lib_version=version, sync=False)
    expected: dict[bytes, dict[bytes, bytes]] = {b"db0": {}, b"db1": {}}
    handles = {name: env.open_db(name) for name in expected}
    for _ in range(rnd.randrange(1, 12)):
        with env.begin(write=True) as txn:
            for _ in range(rnd.randrange(200)):
                name = rnd.choice(sorted(expected))
                key = b"%d" % rnd.randrange(1000) + b"p" * rnd.randrange(40)
                if rnd.random() < 0.3:
                    expected[name].pop(key, None)
                    txn.delete(key, db=handles[name])
                else:
                    value = rnd.randbytes(1) * rnd.choice([0, 1, 10, 500, 3000, 9000])
                    expected[name][key] = value
                    txn.put(key, value, db=handles[name])
    env.close()
    return expected


def read(path: Path) -> dict[bytes, dict[bytes, Any]]:
    with path.open("rb") as data:
        file = PageFile(data, str(path))
        walk = LmdbState(file, file.metas[0])
        trees = {one.key.rstrip(b"\0"): one.tree for one in walk.records("main", file.metas[0].main)}
        found = {
            name: {one.key: one.value for one in walk.records(name.decode(), tree)}
            for name, tree in trees.items()
            if tree is not None
        }
        assert walk.problems == []
        return found


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("seed", range(4))
def test_records_are_those_that_lmdb_wrote(version: int, seed: int, tmp_path: Path) -> None:
    expected = random_file(tmp_path / "db", version, random.Random(seed))
    assert read(tmp_path / "db" / "data.mdb") == expected
    assert problems(tmp_path / "db" / "data.mdb") == []


@pytest.mark.parametrize("version", FORMATS)
def test_damage_is_found_where_lmdbs_verifier_finds_it(version: int, tmp_path: Path) -> None:
    rnd = random.Random(version)
    random_file(tmp_path / "db", version, rnd)
    whole = (tmp_path / "db" / "data.mdb").read_bytes()
    image = tmp_path / "image"
    for _ in range(IMAGES):
        image.write_bytes(mutated(whole, rnd))
        theirs, ours = verifier(image), problems(image)
        if theirs and not ours:  # only what is the false alarm may go without
            assert all("OVPAGES" in one or "overflow pages" in one or "neither" in one for one in theirs), theirs


@pytest.mark.parametrize("version", FORMATS)
def test_a_value_replaced_by_a_shorter_one_in_one_transaction_is_no_damage(version: int, tmp_path: Path) -> None:
    env = lmdb.open(str(tmp_path), lib_version=version)
    with env.begin(write=True) as txn:
        txn.put(b"k", b"x" * 20000)
        txn.put(b"k", b"y" * 3000)
    env.close()
    assert verifier(tmp_path / "data.mdb")  # else the note in structure.py is out of date
    assert problems(tmp_path / "data.mdb") == []


def test_a_file_cut_off_at_any_page_is_an_error_or_lacks_nothing(tmp_path: Path) -> None:
    make(tmp_path / "db", 60)
    whole = data_file(tmp_path / "db").read_bytes()
    with zlmdb.open(tmp_path / "db", readonly=True) as db, db.read() as t:
        expected = dict(t["logins"])
    for size in range(0, len(whole), 4096):
        cut = tmp_path / f"cut {size}"
        cut.write_bytes(whole[:size])
        try:
            with zlmdb.open(cut, Store) as db, db.read() as t:
                assert dict(t.logins) == (expected if size else {})  # an empty file is a new database
        except (zlmdb.CorruptDatabase, zlmdb.InvalidDatabase) as error:
            assert str(cut) in str(error)  # noqa: PT017 - either is right
        else:
            assert size == 0 or problems(cut) == []


def test_what_lmdb_did_not_write_is_an_error(tmp_path: Path) -> None:
    for name, data in {"text": b"not a database\n" * 1000, "zeros": bytes(16384), "short": b"\xde\xc0\xef\xbe"}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(zlmdb.InvalidDatabase):
            zlmdb.open(tmp_path / name, Store)
        with pytest.raises(zlmdb.InvalidDatabase):
            zlmdb.Database.verify(tmp_path / name)


def test_verify_reads_a_directory_or_a_file_and_tells_its_progress(tmp_path: Path) -> None:
    make(tmp_path / "db")
    told: list[Any] = []
    assert zlmdb.Database.verify(tmp_path / "db", progress=told.append) == []
    assert zlmdb.Database.verify(tmp_path / "db" / "data.mdb") == []
    assert told[-1].done == told[-1].total > 2
    with pytest.raises(FileNotFoundError):
        zlmdb.Database.verify(tmp_path / "nothing")


def test_a_copy_of_the_pages_passes_lmdbs_verifier_too(tmp_path: Path) -> None:
    rnd = random.Random(1)
    for version in FORMATS:
        expected = random_file(tmp_path / f"{version}", version, rnd)
        image = tmp_path / f"copy {version}"
        told: list[tuple[int, int]] = []
        with image.open("wb") as target:
            copy_pages(str(tmp_path / f"{version}" / "data.mdb"), target, lambda *done, told=told: told.append(done))
        assert read(image) == expected
        assert [
            one for one in verifier(image) if "OVPAGES" not in one and "overflow" not in one and "neither" not in one
        ] == []
        assert told[-1] == (image.stat().st_size, image.stat().st_size)
        env = lmdb.open(str(image), subdir=False, max_dbs=4)
        with env.begin(db=env.open_db(b"db0"), write=True) as txn:
            assert dict(txn.cursor()) == expected[b"db0"]
            txn.put(b"more", b"1")
        env.close()
        assert problems(image) == []
