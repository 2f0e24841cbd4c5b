"""Files that are mapped as memory have their room on the disk: written to on a full disk they would end the process."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

import pytest

import zlmdb
from zlmdb.systems import HAS_BYTE_LOCKS

pytestmark = [
    pytest.mark.twice,  # what is in files does not depend on the version of Python
    pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system allocates no room beforehand"),
]


class Store(zlmdb.Schema):
    rows: zlmdb.Table[int, str]


def full(monkeypatch: pytest.MonkeyPatch, *, below: int = 0, code: int = errno.ENOSPC, raises: bool = True) -> None:
    """Let no file be given *below* or more bytes; CPython *raises*, PyPy returns the number of the error."""
    plain = os.posix_fallocate

    def allocate(descriptor: int, start: int, size: int) -> Optional[int]:
        if size < below:
            plain(descriptor, start, size)
            return None
        if raises:
            raise OSError(code, os.strerror(code))
        return code

    monkeypatch.setattr(os, "posix_fallocate", allocate)


@pytest.mark.parametrize("version", ["0.9", "1.0"])
def test_no_part_of_the_lock_file_is_a_hole(version: Any, tmp_path: Path) -> None:
    if not has_holes(tmp_path / "hole"):
        pytest.skip("this file system does not tell of holes")
    lock = tmp_path / "db" / "lock.mdb"
    for _ in range(2):
        with zlmdb.open(tmp_path / "db", Store, lib_version=version):
            found = os.stat(lock)
            assert found.st_blocks * 512 >= found.st_size > 1024 * 64
        os.truncate(lock, 4096)  # as one that another program has made


def has_holes(path: Path) -> bool:
    with open(path, "wb") as file:
        file.truncate(1 << 16)
        hole = os.fstat(file.fileno()).st_blocks
        os.posix_fallocate(file.fileno(), 0, 1 << 16)
        return hole * 512 < 1 << 16 <= os.fstat(file.fileno()).st_blocks * 512


@pytest.mark.parametrize("raises", [True, False], ids=["raised", "returned"])
def test_a_disk_without_room_for_the_lock_file_is_an_error(
    raises: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(monkeypatch, raises=raises)
    with pytest.raises(zlmdb.DiskError, match=r"no room on the disk for the lock file '.*lock.mdb'") as caught:
        zlmdb.open(tmp_path / "db", Store)
    assert caught.value.path == str(tmp_path / "db" / "lock.mdb")
    monkeypatch.undo()
    with zlmdb.open(tmp_path / "db", Store) as db, db.write() as t:
        t.rows[1] = "a"


def test_the_first_page_of_the_lock_file_is_enough_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zlmdb.open(tmp_path / "db", Store).close()
    os.truncate(tmp_path / "db" / "lock.mdb", 4096)
    full(monkeypatch, below=4097)
    with zlmdb.open(tmp_path / "db", Store) as db, db.read() as t:
        assert len(t.rows) == 0


def test_a_system_that_allocates_nothing_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full(monkeypatch, code=errno.EOPNOTSUPP)
    zlmdb.open(tmp_path / "db", Store).close()
    monkeypatch.delattr(os, "posix_fallocate")
    zlmdb.open(tmp_path / "other", Store).close()


@pytest.mark.parametrize("mode", [None, 0o600, 0o660])
def test_the_lock_file_is_as_private_as_before(
    mode: Optional[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    for name in ("allocated", "by LMDB"):
        zlmdb.open(tmp_path / name, Store, mode=mode).close()
        modes.append(stat.S_IMODE(os.stat(tmp_path / name / "lock.mdb").st_mode))
        monkeypatch.setattr("zlmdb.engines.lmdb.engine.allocate_locks", lambda *given: None)
    assert modes[0] == modes[1]


def test_a_map_that_is_written_to_is_allocated_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyPy's ``posix_fallocate`` does not raise: the process would have been killed by its first write."""
    full(monkeypatch, below=1 << 22, raises=False)
    with pytest.raises(zlmdb.DatabaseFull, match="make room"):
        zlmdb.Database(str(tmp_path / "db"), writemap=True, maxsize=1 << 22)


@pytest.mark.once  # its process has to start, which takes a while on PyPy
@pytest.mark.skipif(not HAS_BYTE_LOCKS, reason="a system without locks of open files on single bytes")
def test_a_lock_file_that_another_program_has_open_does_not_grow(tmp_path: Path) -> None:
    """That one has not mapped what is added, and would be killed by looking at the slots of readers there."""
    zlmdb.open(tmp_path / "db", Store).close()
    lock = tmp_path / "db" / "lock.mdb"
    lock.unlink()
    program = """
import sys, lmdb
with lmdb.open(sys.argv[1], max_dbs=9) as env:
    rows = env.open_db(b"t:rows")
    print("open", flush=True)
    sys.stdin.readline()
    with env.begin(write=True) as txn:
        txn.drop(rows, delete=False)
"""
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "db")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout is not None
    assert other.stdout.readline() == "open\n"
    small = lock.stat().st_size
    with zlmdb.open(tmp_path / "db", Store) as db:
        taken: list[Any] = []
        with pytest.raises(zlmdb.DatabaseFull, match="another program of LMDB has opened the file first"):
            taken.extend(db.read() for _ in range(200))
        other.communicate("\n")
        for t in taken:
            t.txn.abort()
    assert (other.returncode, lock.stat().st_size) == (0, small)
    with zlmdb.open(tmp_path / "db", Store):
        assert lock.stat().st_size > small
