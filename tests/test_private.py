"""Copies are as private as what they were made of, go where they were sent, and leave nothing behind when killed."""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import zlmdb
from zlmdb.cli import main
from zlmdb.operations.temporary import remains, temporary_directory, temporary_file

pytestmark = [
    pytest.mark.twice,  # processes and what is in files, which no version of Python makes different
    pytest.mark.skipif(sys.platform == "win32", reason="modes, links and locks of Unix"),
]


class Store(zlmdb.Schema):
    users: zlmdb.Table[int, str]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    with zlmdb.open(tmp_path / "db", Store) as made, made.write() as t:
        t.users[1] = "Ann"
    return tmp_path / "db"


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def ok(*arguments: Any) -> None:
    result = run(*arguments)
    assert result.exit_code == 0, result.output


# -- modes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [0o600, 0o640, 0o660])
def test_dump_salvage_load_and_backup_are_as_private_as_their_source(
    given: int, db: Path, tmp_path: Path, open_umask: None
) -> None:
    (db / "data.mdb").chmod(given)
    ok("dump", db, tmp_path / "stream")
    ok("salvage", db, tmp_path / "salvaged")
    ok("load", tmp_path / "stream", tmp_path / "loaded")
    ok("backup", db, tmp_path / "backup")
    for made in ("stream", "salvaged/data.mdb", "loaded/data.mdb", "backup"):
        assert mode(tmp_path / made) == given, made
    with zlmdb.open(tmp_path / "loaded", Store) as loaded, loaded.read() as t:
        assert t.users[1] == "Ann"


def test_a_converted_database_is_as_private_as_its_source(tmp_path: Path, open_umask: None) -> None:
    zlmdb.open(tmp_path / "old", Store, layout="classic").close()
    (tmp_path / "old" / "data.mdb").chmod(0o600)
    (tmp_path / "old").chmod(0o700)
    zlmdb.Database.convert(tmp_path / "old", tmp_path / "new")
    assert (mode(tmp_path / "new" / "data.mdb"), mode(tmp_path / "new")) == (0o600, 0o700)


def test_a_salvaged_directory_is_as_private_as_its_source(db: Path, tmp_path: Path, open_umask: None) -> None:
    db.chmod(0o750)
    ok("salvage", db, tmp_path / "salvaged")
    assert mode(tmp_path / "salvaged") == 0o750


def test_nobody_else_reads_a_copy_while_it_is_made(db: Path, tmp_path: Path, open_umask: None) -> None:
    with temporary_file(str(tmp_path), "copy") as file, temporary_directory(str(tmp_path), "copy") as directory:
        assert mode(Path(file)) == 0o600
        assert mode(Path(directory)) == 0o700


def test_a_dump_over_a_private_file_stays_private(db: Path, tmp_path: Path) -> None:
    (db / "data.mdb").chmod(0o644)
    out = tmp_path / "out"
    out.touch(mode=0o600)
    ok("dump", db, out, "--overwrite")
    assert mode(out) == 0o600


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root may give files away")
def test_a_copy_keeps_the_group_that_may_read_it(db: Path, tmp_path: Path) -> None:
    (db / "data.mdb").chmod(0o640)
    os.chown(db / "data.mdb", -1, 4321)
    ok("dump", db, tmp_path / "stream")
    assert ((tmp_path / "stream").stat().st_gid, mode(tmp_path / "stream")) == (4321, 0o640)


def test_a_copy_without_the_group_of_its_source_is_nobody_elses(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zlmdb.operations import backup

    def refuse(*arguments: Any) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    source = os.stat_result((0o100640, 1, 1, 1, 0, 4321, 0, 0, 0, 0))
    (tmp_path / "copy").touch()
    backup.as_private_as(source, str(tmp_path / "copy"))
    assert mode(tmp_path / "copy") == 0o600


# -- where a dump goes ----------------------------------------------------------------------------------------------


def test_a_dump_replaces_a_file_only_when_told_to(db: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine")
    result = run("dump", db, out)
    assert result.exit_code == 1
    assert "exists" in result.output
    assert out.read_text() == "mine"
    ok("dump", db, out, "--overwrite")
    assert out.read_text().startswith('{"zlmdb"')


@pytest.mark.parametrize("present", [True, False])
def test_a_dump_does_not_write_through_a_link(present: bool, db: Path, tmp_path: Path) -> None:
    aim, link = tmp_path / "aim", tmp_path / "link"
    if present:
        aim.write_text("mine")
    link.symlink_to(aim)
    assert run("dump", db, link).exit_code == 1
    ok("dump", db, link, "--overwrite")
    assert link.is_file()
    assert not link.is_symlink()
    assert not aim.exists() if not present else aim.read_text() == "mine"


def test_a_dump_does_not_go_to_a_pipe_behind_a_link(db: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    result = run("dump", db, tmp_path / "link")
    assert result.exit_code == 1
    assert "name it directly" in result.output


# -- what is left of killed copies ----------------------------------------------------------------------------------

HOLD = """
import sys, time
from zlmdb.operations.temporary import temporary_file, temporary_directory
with temporary_file({place!r}, "copy") as a, temporary_directory({place!r}, "copy"):
    open(a, "w").write("half")
    print("there", flush=True)
    time.sleep(60)
"""


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_next_copy_removes_what_killed_ones_have_left_and_nothing_else(db: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.mkdir()
    others = ["copy.12.tmp", "copy.x.0123abcd.tmp", "other.12.0123abcd.tmp", "copy.12.0123abcd.tmp.gz"]
    for name in others:
        (place / name).touch()
    (place / "copy.13.0123abcd.tmp").symlink_to(place / others[0])
    holder = subprocess.Popen([sys.executable, "-c", HOLD.format(place=str(place))], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    try:
        holder.stdout.readline()
        living = set(remains(str(place), "copy"))
        assert len(living) == 3
        ok("backup", db, place / "copy")
        assert set(remains(str(place), "copy")) == living  # it is being written
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    with zlmdb.open(db, Store) as database:
        database.backup(place / "copy", overwrite=True)
    assert set(os.listdir(place)) == {"copy", "copy.13.0123abcd.tmp", *others}


def test_a_copy_into_a_directory_where_one_was_killed_goes_on(db: Path, tmp_path: Path) -> None:
    target = tmp_path / "salvaged"
    (target / "12.0123abcd.tmp" / "new").mkdir(parents=True)
    (target / "12.0123abcd.tmp" / "new" / "data.mdb").touch()
    ok("salvage", db, target)
    assert "data.mdb" in os.listdir(target)
    assert not remains(str(target))


@pytest.mark.parametrize("operation", ["backup", "salvage"])
def test_a_copy_for_which_there_is_no_descriptor_leaves_nothing(
    operation: str, db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, target = os.open, tmp_path / "target"

    def too_many(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if str(path).endswith(".tmp") and flags == os.O_RDONLY:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return plain(path, flags, *rest, **more)

    before = sorted(os.listdir(tmp_path))
    with zlmdb.open(db) as source:
        monkeypatch.setattr(os, "open", too_many)
        with pytest.raises(OSError, match="Too many open files"):
            source.backup(target) if operation == "backup" else zlmdb.Database.salvage(db, target)
        monkeypatch.undo()
    assert sorted(os.listdir(tmp_path)) == before


def test_a_copy_that_another_one_takes_for_the_remains_of_a_third_begins_again(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of backups to one path at the same time, one failed with FileNotFoundError."""
    plain, target, names = os.open, tmp_path / "target", list[str]()

    def removed_before(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if str(path).endswith(".tmp") and flags == os.O_RDONLY:
            names.append(path)
            if len(names) == 1:
                os.unlink(path)
        return plain(path, flags, *rest, **more)

    with zlmdb.open(db) as source:
        monkeypatch.setattr(os, "open", removed_before)
        source.backup(target)
    assert len(set(names)) == 2
    assert sorted(os.listdir(tmp_path)) == ["db", "target"]


def test_a_full_disk_is_told_where_a_copy_begins(db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, mode: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    monkeypatch.setattr(os, "mkdir", full)
    with pytest.raises(zlmdb.DiskError, match="no room on the disk for a new file in .*: make room"):
        zlmdb.Database.salvage(db, tmp_path / "target")


def test_two_copies_into_one_directory_do_not_remove_each_others(db: Path, tmp_path: Path) -> None:
    target = tmp_path / "salvaged"
    target.mkdir()
    with temporary_directory(str(target)) as other:
        assert run("salvage", db, target).exit_code == 1
        assert os.path.isdir(other)
    assert os.listdir(target) == []


def test_a_stream_that_is_no_file_is_loaded_as_the_umask_says(db: Path, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with zlmdb.open(db, Store) as database:
        database.dump(stream)
    result = CliRunner().invoke(main, ["load", "-", str(tmp_path / "new")], input=stream.getvalue())
    assert result.exit_code == 0, result.output
    assert time.time() - (tmp_path / "new" / "data.mdb").stat().st_mtime < 3600


@pytest.mark.parametrize("name", ["directory", "file.mdb"])
def test_a_mode_given_to_open_is_that_of_all_files_and_is_kept(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "file.mdb":
        path.touch(0o600)
    with zlmdb.open(path, zlmdb.Schema, mode=0o600) as db:
        counts = db.table("counts", str, int)
        with db.write() as t:
            t[counts]["a"] = 1
        with zlmdb.open(path, zlmdb.Schema), zlmdb.open(path, zlmdb.Schema, mode=0o640):
            pass  # it is of new files only
        db.backup(tmp_path / "copy")
    made = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert {one.name: stat.S_IMODE(one.stat().st_mode) & 0o077 for one in made} == {one.name: 0 for one in made}
    if name == "directory":
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    with pytest.raises(ValueError, match="mode=384|mode=64"):
        zlmdb.open(tmp_path / "other", zlmdb.Schema, mode=0o100)


def test_open_makes_a_file_of_the_format_that_is_asked_for(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "long", zlmdb.Schema, lib_version="1.0") as db:
        names = db.table("names", str, int)
        with db.write() as t:
            t[names]["a" * 1900] = 1
        assert db.lib_version == "1.0"
    with zlmdb.open(tmp_path / "long", zlmdb.Schema) as db:
        assert db.lib_version == "1.0"
    with pytest.raises(ValueError, match="leave it out"):
        zlmdb.open(tmp_path / "long", zlmdb.Schema, lib_version="0.9")
    with pytest.raises(ValueError, match="lib_version='2'"):
        zlmdb.open(tmp_path / "new", zlmdb.Schema, lib_version="2")
