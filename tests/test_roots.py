"""The two meta pages of a file: what cannot be true of them is refused, copies say the same in both."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest
from operated import Store, content, data_file, make

import zlmdb
from zlmdb.engines.lmdb.openable import check_opening
from zlmdb.engines.lmdb.pages import PageFile
from zlmdb.engines.lmdb.roots import contradiction

pytestmark = pytest.mark.once  # what is in a file does not depend on the interpreter

FORMATS = ("0.9", "1.0")
NUMBERS = {"0.9": 16 + 128, "1.0": 24 + 128}  # where the number of the transaction is in a meta page
each_format = pytest.mark.parametrize("version", FORMATS)


def roots(path: Path) -> PageFile:
    with data_file(path).open("rb", buffering=0) as data:
        return PageFile(data, str(path))


def patch(path: Path, offset: int, new: bytes) -> None:
    with data_file(path).open("r+b") as data:
        data.seek(offset)
        data.write(new)


def flipped(path: Path, page: int, version: str) -> Iterator[int]:
    """The file with each bit of the number in a meta page flipped, in turn."""
    offset = page * 4096 + NUMBERS[version]
    with data_file(path).open("rb") as data:
        data.seek(offset)
        old = data.read(8)
    for bit in range(64):
        patch(path, offset, struct.pack("=Q", struct.unpack("=Q", old)[0] ^ 1 << bit))
        yield bit
    patch(path, offset, old)


def new(path: Path, version: str, count: int = 20) -> dict[str, dict[Any, Any]]:
    """A database of some commits, closed; its content."""
    zlmdb.Database(path, lib_version=version).close()
    make(path, count)
    with zlmdb.open(path, Store) as db:
        for n in range(5):
            with db.write() as t:
                t.logins[f"more {n}"] = n
        return content(db)


def unfinished(path: Path, version: str) -> Path:
    """A new database of which LMDB could write the first page only."""
    with lmdb.open(str(path), lib_version=("0.9", "1.0").index(version)):
        pass
    os.truncate(data_file(path), 4096)
    return path


@each_format
@pytest.mark.parametrize("locked", [True, False])
def test_a_file_that_could_not_be_finished_is_made_anew(locked: bool, version: str, tmp_path: Path) -> None:
    """The disk was full, or the process was killed: for ever, the next one said that the file was damaged."""
    path = unfinished(tmp_path / "db", version)
    if not locked:
        (path / "lock.mdb").unlink()
    with pytest.raises(zlmdb.CorruptDatabase, match="meta page 1 is none"):
        zlmdb.open(path, Store, readonly=True)
    assert data_file(path).stat().st_size == 4096
    make(path, 20)
    with zlmdb.open(path, Store) as db:
        assert db.check().ok


@each_format
def test_a_file_that_another_process_makes_just_now_is_left_to_it(version: str, tmp_path: Path) -> None:
    path = unfinished(tmp_path / "db", version)
    program = """
import fcntl, sys
with open(sys.argv[1], "r+b") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX, 1, 0)
    print(1, flush=True)
    sys.stdin.read()
"""
    maker = subprocess.Popen(
        [sys.executable, "-c", program, str(path / "lock.mdb")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert maker.stdout is not None
    assert maker.stdout.readline() == b"1\n"
    try:
        check_opening(str(data_file(path)), str(path / "lock.mdb"), create=True)
        assert data_file(path).stat().st_size == 4096
    finally:
        maker.communicate()
    check_opening(str(data_file(path)), str(path / "lock.mdb"), create=True)
    assert data_file(path).stat().st_size == 0


def test_what_is_left_of_a_file_with_commits_is_not_made_anew(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store):
        pass
    os.truncate(data_file(tmp_path), 4096)
    with pytest.raises(zlmdb.CorruptDatabase, match="meta page 1 is none"):
        zlmdb.open(tmp_path, Store)


def lmdbs_copy(source: Path, target: Path) -> None:
    """A compact copy as LMDB makes it: one meta page describes an empty database."""
    target.mkdir()
    env = lmdb.open(str(source), max_dbs=4, readonly=True, lock=False)
    env.copy(str(target), compact=True)
    env.close()


def numbered(path: Path, remainder: int) -> PageFile:
    """Commit until the newest number of a transaction has this remainder by 4."""
    while roots(path).metas[0].txnid % 4 != remainder:
        with zlmdb.open(path, Store) as db, db.write() as t:
            t.logins["more"] = t.logins.get("more", 0) + 1
    return roots(path)


def refused(path: Path, page: int, version: str) -> None:
    for bit in flipped(path, page, version):
        assert zlmdb.Database.verify(path), bit
        with pytest.raises(zlmdb.CorruptDatabase, match=r"meta page.*salvage"):
            zlmdb.open(path, Store, readonly=True)


@each_format
@pytest.mark.parametrize("remainder", range(4))
def test_no_bit_of_the_older_number_brings_its_state_back(version: str, remainder: int, tmp_path: Path) -> None:
    new(tmp_path / "db", version)
    refused(tmp_path / "db", numbered(tmp_path / "db", remainder).metas[1].number, version)


@each_format
@pytest.mark.parametrize("remainder", [0, 1])
def test_no_bit_of_the_newer_number_passes(version: str, remainder: int, tmp_path: Path) -> None:
    """But for one that takes 2 away, which leaves what a failed write of a meta page leaves."""
    new(tmp_path / "db", version)
    refused(tmp_path / "db", numbered(tmp_path / "db", remainder).metas[0].number, version)


@each_format
def test_a_meta_page_that_could_not_be_written_is_no_contradiction(version: str, tmp_path: Path) -> None:
    """LMDB writes its old number and last page back, with the trees of the commit that failed."""
    before = new(tmp_path / "db", version)
    old = roots(tmp_path / "db").metas[1]
    with zlmdb.open(tmp_path / "db", Store) as db, db.write() as t:
        t.logins["lost"] = 1
    failed = roots(tmp_path / "db").metas[0]
    assert failed.number == old.number
    patch(tmp_path / "db", old.number * 4096 + NUMBERS[version] - 8, struct.pack("=QQ", old.last, old.txnid))
    assert zlmdb.Database.verify(tmp_path / "db") == []
    with zlmdb.open(tmp_path / "db", Store) as db:
        assert content(db) == before


@each_format
@pytest.mark.parametrize("commit", [1, 2])
def test_a_new_file_whose_first_meta_page_could_not_be_written_opens(version: str, commit: int, tmp_path: Path) -> None:
    """It was refused as damaged for ever, after one error of the disk while it was made."""
    options: Any = {"map_size": 1 << 20, "max_dbs": 8, "lib_version": 0 if version == "0.9" else 1}
    with lmdb.open(str(tmp_path), **options) as env:
        for number in range(commit):
            env.open_db(b"%d" % number)
    patch(tmp_path, commit % 2 * 4096 + NUMBERS[version] - 8, struct.pack("=QQ", 1, 0))  # as LMDB leaves it
    assert zlmdb.Database.verify(tmp_path) == []
    with lmdb.open(str(tmp_path), map_size=1 << 20, max_dbs=8) as env, env.begin() as txn:
        assert [bytes(key).rstrip(b"\0") for key in txn.cursor().iternext(values=False)] == [b"0"][: commit - 1]
    with zlmdb.open(tmp_path, layout="raw") as db:
        assert db.check().ok
        assert list(db.tables()) == ["0"][: commit - 1]


@each_format
def test_no_bit_empties_a_compact_copy_of_lmdbs_own(version: str, tmp_path: Path) -> None:
    new(tmp_path / "db", version)
    lmdbs_copy(tmp_path / "db", tmp_path / "copy")
    assert zlmdb.Database.verify(tmp_path / "copy") == []
    for bit in flipped(tmp_path / "copy", 0, version):
        assert zlmdb.Database.verify(tmp_path / "copy"), bit
        with pytest.raises(zlmdb.CorruptDatabase, match="meta page"):
            zlmdb.open(tmp_path / "copy", Store)


@each_format
@pytest.mark.parametrize("bit", [0, 1, 3, 31, 63])
def test_an_emptied_copy_is_salvaged_by_its_other_meta_page(version: str, bit: int, tmp_path: Path) -> None:
    expected = new(tmp_path / "db", version)
    lmdbs_copy(tmp_path / "db", tmp_path / "copy")
    patch(tmp_path / "copy", NUMBERS[version], struct.pack("=Q", 1 << bit))
    report = zlmdb.Database.salvage(tmp_path / "copy", tmp_path / "out")
    assert not report.complete
    assert any("meta page" in one for one in report.damage)
    with zlmdb.open(tmp_path / "out", Store) as db:
        assert content(db) == expected


@pytest.mark.once  # the same on every interpreter
@each_format
@pytest.mark.parametrize("how", ["compact", "compact backup", "backup"])
def test_both_meta_pages_of_a_copy_describe_what_is_in_it(version: str, how: str, tmp_path: Path) -> None:
    expected = new(tmp_path / "db", version)
    path = tmp_path / "db"
    with zlmdb.open(path, Store) as db:
        if how == "compact":
            db.compact()
        else:
            db.backup(tmp_path / "copy", compact=how == "compact backup")
            path = tmp_path / "copy"
    found = roots(path)
    assert found.metas[0].describes() == found.metas[1].describes()
    assert found.metas[0].txnid == found.metas[1].txnid + 1
    for page in (0, 1):
        for bit in flipped(path, page, version):
            if zlmdb.Database.verify(path):
                continue
            with zlmdb.open(path, Store, readonly=True) as db:  # as two numbers of commits may be: the same in both
                assert content(db) == expected, bit
    assert zlmdb.Database.verify(path) == []
    with zlmdb.open(path, Store) as db:  # and it goes on from there
        for n in range(3):
            with db.write() as t:
                t.logins["later"] = n
        assert db.check().ok
        assert content(db)["logins"] == {**expected["logins"], "later": 2}
    assert zlmdb.Database.verify(path) == []


@each_format
def test_a_newer_root_that_knows_fewer_pages_is_refused(version: str, tmp_path: Path) -> None:
    new(tmp_path / "db", version)
    newest = roots(tmp_path / "db").metas[0]
    patch(tmp_path / "db", newest.number * 4096 + NUMBERS[version] - 8, struct.pack("=Q", 3))
    with pytest.raises(zlmdb.CorruptDatabase, match="the newer one knows 4 pages"):
        zlmdb.open(tmp_path / "db", Store)


@each_format
@pytest.mark.parametrize("magic", [True, False], ids=["magic number", "page size"])
@pytest.mark.parametrize("which", [0, 1], ids=["newest", "other"])
def test_a_damaged_meta_page_is_refused(version: str, which: int, magic: bool, tmp_path: Path) -> None:
    expected = sum(map(len, new(tmp_path / "db", version).values()))
    number = roots(tmp_path / "db").metas[which].number
    patch(tmp_path / "db", number * 4096 + NUMBERS[version] - (128 if magic else 104), b"\1\2\3\4")
    assert any(f"meta page {number}" in one for one in zlmdb.Database.verify(tmp_path / "db"))
    with pytest.raises(zlmdb.CorruptDatabase, match=f"meta page {number}"):
        zlmdb.open(tmp_path / "db", Store)
    report = zlmdb.Database.salvage(tmp_path / "db", tmp_path / "out")
    assert (report.records, report.complete) == (expected if which else expected - 1, False)


def test_the_file_of_a_commit_that_was_killed_is_longer_and_is_no_damage(tmp_path: Path) -> None:
    new(tmp_path / "db", "0.9")
    with data_file(tmp_path / "db").open("ab") as data:
        data.write(b"x" * 4096 * 500)
    assert zlmdb.Database.verify(tmp_path / "db") == []
    with zlmdb.open(tmp_path / "db", Store) as db:
        assert db.check().ok


@each_format
def test_new_and_emptied_files_open(version: str, tmp_path: Path) -> None:
    handle = lmdb.open(str(tmp_path / "db"), lib_version=FORMATS.index(version), max_dbs=2)
    for step in range(12):
        with data_file(tmp_path / "db").open("rb", buffering=0) as data:
            assert contradiction(PageFile(data, "db")) is None, step
        assert zlmdb.Database.verify(tmp_path / "db") == []
        with handle.begin(write=True) as txn:
            if step % 4 == 3:
                txn.drop(handle.open_db(None, txn=txn), delete=False)
            else:
                txn.put(b"key %d" % step, b"v" * 6000)
    handle.close()


def test_commits_while_meta_pages_are_compared_are_no_contradiction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that is slower than two commits sees pages of other states."""
    new(tmp_path / "db", "0.9")
    env = lmdb.open(str(tmp_path / "db"), sync=False, max_dbs=4)
    handle = env.open_db(b"t:logins")
    left = [30]

    def commits(*args: Any) -> int:
        for _ in range(3 if left[0] else 0):
            with env.begin(write=True) as txn:
                txn.put(b"more", b"1" * left[0], db=handle)
        left[0] = max(left[0] - 10, 0)
        return original(*args)

    from zlmdb.engines.lmdb import roots as module

    original = module.last_freed
    monkeypatch.setattr(module, "last_freed", commits)
    with data_file(tmp_path / "db").open("rb", buffering=0) as data:
        assert contradiction(PageFile(data, "db")) is None
    assert left == [0]
    env.close()
