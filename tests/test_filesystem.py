"""Where data files lie: network file systems and hard links are warned of, missing semaphores explained."""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from zlmdb.engines.lmdb import engine, filesystem
from zlmdb.engines.lmdb.errors import translate
from zlmdb.store import lockfile, writerlock

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:25 / /mnt/share rw - nfs4 server:/share rw
31 22 0:26 / /mnt/share\040two rw shared:7 master:1 - cifs //server/two rw
32 22 0:27 / /srv rw - overlay overlay rw
33 22 0:28 / /srv/home rw - fuse.sshfs me@there: rw
34 22 0:29 / /srv/home rw - tmpfs tmpfs rw
35 22 0:30 / /windows rw - 9p C: rw
"""


class Store(zlmdb.Schema):
    rows: zlmdb.Table[int, str]


@pytest.fixture
def mounts(tmp_path: Path) -> str:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTS)
    return str(table)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data", "ext4"), ("/mnt/share", "nfs4"), ("/mnt/share/a/b", "nfs4"), ("/mnt/shared", "ext4"),
        ("/mnt/share two/x", "cifs"), ("/srv/x", "overlay"), ("/srv/home/x", "tmpfs"), ("/windows/x", "9p"),
    ],
)  # fmt: skip
def test_the_file_system_is_that_of_the_last_longest_mount(mounts: str, path: str, kind: str) -> None:
    assert filesystem.file_system(path, mounts) == kind


def test_without_a_table_of_mounts_nothing_is_known(tmp_path: Path) -> None:
    assert filesystem.file_system("/x", str(tmp_path / "absent")) is None
    (tmp_path / "odd").write_text("nonsense\n")
    assert filesystem.file_system("/x", str(tmp_path / "odd")) is None


@pytest.mark.parametrize(
    ("kind", "warned"),
    [("nfs", True), ("nfs4", True), ("cifs", True), ("smb3", True), ("9p", True), ("fuse.sshfs", True), ("ceph", True),
     ("ext4", False), ("overlay", False), ("tmpfs", False), ("fuseblk", False), (None, False)],
)  # fmt: skip
def test_network_file_systems_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: Any, warned: bool
) -> None:
    monkeypatch.setattr(filesystem, "file_system", lambda path: kind)
    with caplog.at_level(logging.WARNING, logger="zlmdb"):
        for _ in range(2):
            zlmdb.open(tmp_path / f"data {kind}", Store).close()
    assert [record.message for record in caplog.records if "network file system" in record.message][:1] == (
        [caplog.records[0].message] if warned else []
    )
    assert len(caplog.records) == warned, "once for a place"


def test_a_reader_on_an_overlay_reads_what_is_written_later(tmp_path: Path) -> None:
    """It read the file of the lower layer, and the first writer made a copy of that in the upper one."""
    lower, upper, merged = tmp_path / "lower", tmp_path / "upper", tmp_path / "merged"
    for place in (lower, upper, merged):
        place.mkdir()
    zlmdb.open(lower / "db", Store).close()
    script = f"""
        mount -t tmpfs tmpfs {upper} && mkdir {upper}/new {upper}/work &&
        mount -t overlay overlay -o lowerdir={lower},upperdir={upper}/new,workdir={upper}/work {merged}
    """
    try:
        if shutil.which("mount") is None or subprocess.run(script, shell=True, capture_output=True).returncode:
            pytest.skip("layers can only be mounted by root, on Linux")
        with zlmdb.open(merged / "db", readonly=True):
            assert (upper / "new" / "db" / "data.mdb").exists()
    finally:
        for place in (merged, upper):
            subprocess.run(["umount", "--lazy", str(place)], capture_output=True, check=False)


def test_hard_links_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    zlmdb.open(tmp_path / "data", Store).close()
    os.link(tmp_path / "data" / "data.mdb", tmp_path / "other.mdb")
    with caplog.at_level(logging.WARNING, logger="zlmdb"):
        zlmdb.open(tmp_path / "other.mdb", Store).close()
    assert "2 hard links" in caplog.text


@pytest.mark.parametrize(
    ("code", "advice"),
    [(errno.ENOSPC, "the disk is full: make room"), (errno.EDQUOT, "quota"), (errno.EFBIG, "`ulimit -f`"),
     (errno.EIO, "is the disk full, .*, or the disk damaged"), (errno.EBADF, "os.closerange")],
)  # fmt: skip
def test_an_error_of_the_system_says_what_to_do(code: int, advice: str) -> None:
    found = translate(zlmdb.lmdb.Error(f"mdb_txn_commit: {os.strerror(code)}"), path="db")
    assert isinstance(found, zlmdb.DiskError)
    assert re.match(rf"'db': .*{advice}.*\(mdb_txn_commit: ", str(found))


def test_a_file_that_is_immutable_is_told() -> None:
    found = translate(zlmdb.lmdb.Error(f"db: {os.strerror(errno.EPERM)}"))
    assert isinstance(found, zlmdb.ReadonlyDatabase)
    assert "lsattr" in str(found)


@pytest.mark.parametrize(("free", "semaphores"), [(1 << 30, True), (1 << 10, False)])
def test_no_space_with_space_left_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, semaphores: bool
) -> None:
    def full(*args: Any, **kwargs: Any) -> Any:
        raise zlmdb.lmdb.DiskError(f"{tmp_path}: {os.strerror(errno.ENOSPC)}")

    monkeypatch.setattr(engine.lmdb, "open", full)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: type("Usage", (), {"free": free}))
    with pytest.raises(zlmdb.DiskError) as caught:
        zlmdb.open(tmp_path / "data", Store)
    assert ("ipcrm" in str(caught.value)) == semaphores
    assert isinstance(caught.value.__cause__, zlmdb.lmdb.DiskError)


def test_locks_that_are_not_to_be_had_at_once_are_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries = engine.lmdb.open, []

    def refused(*args: Any, **kwargs: Any) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise zlmdb.lmdb.LockError("Resource temporarily unavailable")
        return real(*args, **kwargs)

    monkeypatch.setattr(engine.lmdb, "open", refused)
    monkeypatch.setattr(engine, "_LOCK_PAUSES", (0.001, 0.001, 0.001))
    zlmdb.open(tmp_path / "data", Store).close()
    assert len(tries) == 3
    tries[:] = [0] * -10
    monkeypatch.setattr(engine.lmdb, "open", lambda *args, **kwargs: refuse())

    def refuse() -> Any:
        raise zlmdb.lmdb.LockError("Resource temporarily unavailable")

    with pytest.raises(zlmdb.DiskError, match="lock file"):
        zlmdb.open(tmp_path / "other", Store)


def test_a_file_system_without_locks_is_told_and_leaves_nothing_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    real = fcntl.flock

    def refused(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    def without_locks() -> None:
        for module, name in ((fcntl, "flock"), (lockfile, "flock"), (writerlock, "flock")):
            monkeypatch.setattr(module, name, refused)

    with zlmdb.open(tmp_path / "data", Store) as db:
        with db.write() as t:
            without_locks()
            t.rows[1] = "one"
        for write in (db.write().__enter__, lambda: db.auto.rows.__setitem__(2, "two")):
            with pytest.raises(zlmdb.DiskError, match=r"lock file .* cannot be locked \(.*locks.*\): keep") as caught:
                write()
            assert caught.value.path == str(tmp_path / "data" / "writer.lock")
        for module, name in ((fcntl, "flock"), (lockfile, "flock"), (writerlock, "flock")):
            monkeypatch.setattr(module, name, real)
        db.auto.rows[2] = "two"
        with db.read() as t:
            assert dict(t.rows) == {1: "one", 2: "two"}
    without_locks()
    for opened in (lambda: zlmdb.open(tmp_path / "other", Store), lambda: zlmdb.Cache(tmp_path / "cache")):
        with pytest.raises(zlmdb.DiskError, match="local file system"):
            opened()


def leveldb(place: Path) -> None:
    for name in ("CURRENT", "LOCK", "MANIFEST-000002"):
        (place / name).touch()


def single_file(place: Path) -> None:
    with zlmdb.open(place.parent / "other", Store) as db:
        db.backup(place / "monday.mdb")


def cache(place: Path) -> None:
    zlmdb.Cache(place).close()


@pytest.mark.parametrize(
    ("make", "kind", "name"),
    [(leveldb, "LevelDB", "CURRENT"), (single_file, "LMDB", "monday.mdb"), (cache, "cache", "boot")],
)
def test_a_directory_with_another_database_is_not_taken_for_a_place_of_a_new_one(
    tmp_path: Path, make: Callable[[Path], None], kind: str, name: str
) -> None:
    """A new, empty database was made beside it, as if the other one had no records."""
    place = tmp_path / "db"
    place.mkdir()
    make(place)
    before = sorted(os.listdir(place))
    for opened in (lambda: zlmdb.open(place, Store), lambda: zlmdb.Database(str(place))):
        with pytest.raises(zlmdb.InvalidDatabase, match=rf"{kind}.*{name}.*of its own.*data\.mdb"):
            opened()
    assert sorted(os.listdir(place)) == before
    zlmdb.open(place / "data.mdb", Store).close()  # whoever names the file wants it there
    with zlmdb.open(place, Store) as db, db.write() as t:
        t.rows[1] = "one"


def test_a_database_that_another_process_makes_meanwhile_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused as one of another name, once in a hundred times that two processes made one directory at once."""
    look = engine.refuse_others

    def late(path: str, directory: str) -> None:
        monkeypatch.undo()
        zlmdb.open(path, Store).close()
        look(path, directory)

    monkeypatch.setattr(engine, "refuse_others", late)
    with zlmdb.open(tmp_path / "db", Store) as db, db.write() as t:
        t.rows[1] = "one"


def test_other_files_in_the_directory_are_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import zlmdb")
    (tmp_path / "empty.db").touch()
    sqlite3.connect(tmp_path / "app.db").execute("create table t(a)").connection.close()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.db")
    zlmdb.open(tmp_path, Store).close()


@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_the_path_of_a_new_data_file_is_that_file_and_not_a_directory(tmp_path: Path, layout: Any) -> None:
    """``data.mdb`` was made as a directory, after which the directory around it could not be opened."""
    place = tmp_path / "new"
    with pytest.raises(FileNotFoundError, match="no database at"):
        zlmdb.open(place / "data.mdb", readonly=True)
    with zlmdb.open(place / "data.mdb", Store, layout=layout) as db, zlmdb.open(place, Store) as same:
        with db.write() as t:
            t.rows[1] = "one"
        with same.read() as t:
            assert dict(t.rows) == {1: "one"}
        db.backup(tmp_path / "backup")
    assert (place / "data.mdb").is_file()
    zlmdb.Database.restore(tmp_path / "backup", tmp_path / "restored" / "data.mdb")
    with zlmdb.open(tmp_path / "restored", readonly=True) as db, db.read() as t:
        assert dict(t["rows"]) == {1: "one"}
    (tmp_path / "data.mdb").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match="is a link to"):
        zlmdb.open(tmp_path / "data.mdb", Store)


@pytest.mark.parametrize("path", ["file:{}", "file://{}", "file:{}?mode=ro"])
def test_a_url_of_a_file_is_no_name_of_a_directory(tmp_path: Path, path: str) -> None:
    given = path.format(tmp_path / "db")
    with pytest.raises(ValueError, match=r"is a URL: give the path itself, '/.*/db'$"):
        zlmdb.open(given, Store)


def test_a_slash_after_the_name_of_a_file_is_told(tmp_path: Path) -> None:
    zlmdb.open(tmp_path, Store).close()
    with pytest.raises(FileExistsError, match="is a file, not a directory"):
        zlmdb.open(f"{tmp_path}/data.mdb/", Store)


def test_a_full_disk_is_named_where_a_directory_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, **_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(os, "makedirs", full)
    with pytest.raises(zlmdb.DiskError, match="no room on the disk for the directory"):
        zlmdb.open(tmp_path / "db", Store)
