"""Opening, sharing, limiting and closing databases."""

from __future__ import annotations

import errno
import gc
import json
import logging
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

import lmdb
import pytest

import zlmdb
from zlmdb.engines.lmdb import engine, mapsize
from zlmdb.schema import attach
from zlmdb.store import openstores

on_disk = pytest.mark.parametrize("combo", ["lmdb-tables", "lmdb-classic"], indirect=True)
LAYOUTS = ["tables", "classic"]


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[str, int]


class Bigger(Store):
    blobs: zlmdb.Table[int, bytes]


def numbers(db: Any) -> dict[str, int]:
    with db.read() as t:
        return dict(t.numbers)


def put(db: Any, **records: int) -> None:
    with db.write() as t:
        t.numbers.update(records)


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "db")


# -- open -------------------------------------------------------------------------------------------------------------


def test_open_makes_the_directories_and_the_file(tmp_path: Path, layout: Any) -> None:
    place = tmp_path / "a" / "b" / "db"
    with zlmdb.open(place, Store, layout=layout) as db:
        put(db, a=1)
        assert db.is_open
        assert db.layout == layout
    assert not db.is_open
    assert (place / "data.mdb").is_file()
    with zlmdb.open(str(place), Store) as db:
        assert db.layout == layout
        assert numbers(db) == {"a": 1}


def test_an_existing_file_keeps_its_layout(path: str) -> None:
    for first, second in (("tables", "classic"), ("classic", "tables")):
        place = path + first
        with zlmdb.open(place, Store, layout=first) as db:  # type: ignore[call-overload]
            put(db, a=1)
        with zlmdb.open(place, Store, layout=second) as db:  # type: ignore[call-overload]
            assert db.layout == first
            assert numbers(db) == {"a": 1}


def test_a_path_is_a_directory_or_the_data_file(path: str) -> None:
    with zlmdb.open(path, Store) as db:
        put(db, a=1)
    with zlmdb.open(os.path.join(path, "data.mdb"), Store) as db:
        put(db, b=2)
        with zlmdb.open(path, Store) as other:
            assert numbers(other) == {"a": 1, "b": 2}
    assert sorted(os.listdir(path)) == ["data.mdb", "lock.mdb", "writer.lock"]


def test_files_in_one_directory_are_databases_of_their_own(tmp_path: Path) -> None:
    for name in ("one.mdb", "other.mdb"):
        env = lmdb.open(str(tmp_path / name), subdir=False, max_dbs=2)
        env.close()
    with (
        zlmdb.open(tmp_path / "one.mdb", Store, timeout=1) as one,
        zlmdb.open(tmp_path / "other.mdb", Store, timeout=1) as other,
        one.write() as t,
        other.write() as u,
    ):
        t.numbers["a"] = 1
        u.numbers["b"] = 2
    with zlmdb.open(tmp_path / "one.mdb", Store) as one:
        assert numbers(one) == {"a": 1}


@pytest.mark.parametrize("kind", [str, Path, os.fsencode])
def test_paths_are_text_or_path_objects(path: str, kind: Any) -> None:
    if kind is os.fsencode:
        with pytest.raises(TypeError):
            zlmdb.open(kind(path), Store)
        return
    with zlmdb.open(kind(path), Store) as db:
        assert db.dbpath == path


def test_none_is_a_database_in_memory_of_its_own(layout: Any) -> None:
    with zlmdb.open(None, Store, layout=layout) as one, zlmdb.open(None, Store, layout=layout) as other:
        put(one, a=1)
        assert numbers(one) == {"a": 1}
        assert numbers(other) == {}
        assert one.dbpath is None
        assert one.lib_version is None
        assert one.layout == layout
    with pytest.raises(zlmdb.DatabaseClosed):
        one.read()


def test_a_missing_file_is_not_made_without_asking(path: str) -> None:
    for attempt in (
        lambda: zlmdb.open(path), lambda: zlmdb.open(path, Store, create=False),
        lambda: zlmdb.open(path, Store, readonly=True), lambda: zlmdb.Database(path, create=False),
        lambda: zlmdb.Database(path, readonly=True),
    ):  # fmt: skip
        with pytest.raises(FileNotFoundError, match="no database at"):
            attempt()
        assert not os.path.exists(path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"durability": "some"}, "durability='some'.*'full', 'commit' or 'none'"),
        ({"layout": "flat"}, "layout='flat'.*'tables' or 'classic'"),
        ({"maxsize": 0}, "maxsize"),
        ({"maxsize": -5}, "maxsize"),
        ({"maxsize": "big"}, "maxsize"),
        ({"maxsize": 100}, "maxsize=100.*bytes or more"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": "5"}, "timeout='5': expected seconds"),
        ({"flush_every": "1", "durability": "none"}, "flush_every='1' takes a number of seconds"),
        ({"flush_every": True, "durability": "none"}, "flush_every=True takes a number of seconds"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_made(path: str, options: Any, words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        zlmdb.open(path, Store, **options)
    assert not os.path.exists(path)


@pytest.mark.parametrize(("given", "error"), [("5", TypeError), (True, ValueError), (float("nan"), ValueError)])
def test_what_is_no_number_of_seconds_is_refused_alike_everywhere(given: Any, error: type[Exception]) -> None:
    class Work(zlmdb.Schema):
        jobs: zlmdb.Queue[str]
        users: zlmdb.Table[int, str]

    with zlmdb.open(None, Work) as db, zlmdb.Cache(None) as cache:
        worker: Any = zlmdb.Worker(db, lambda t: t.jobs)
        for name, call in (
            ("timeout", lambda: zlmdb.open(None, Work, timeout=given)),
            ("timeout", lambda: db.write(timeout=given)),
            ("timeout", lambda: db.close(timeout=given)),
            ("timeout", lambda: db.changes("users", timeout=given)),
            ("timeout", lambda: worker.get(given)),
            ("long_read", lambda: setattr(db, "long_read", given)),
            ("lease", lambda: zlmdb.Worker(db, lambda t: t.jobs, lease=given)),
            ("delay", lambda: worker.put("a", delay=given)),
            ("expire", lambda: cache.set("a", 1, expire=given)),
            ("lock", lambda: cache.memoize("a", lock=given)(len)),
        ):
            with pytest.raises(error, match=f"^{name}={given!r}: expected seconds"):
                call()


def test_a_timeout_beyond_all_floats_is_no_limit() -> None:
    class Work(zlmdb.Schema):
        jobs: zlmdb.Queue[str]

    with zlmdb.open(None, Work, timeout=10**400) as db:
        worker = zlmdb.Worker(db, lambda t: t.jobs)
        worker.put("a")
        with db.write(timeout=10**400) as t:
            assert len(t.jobs) == 1
        assert worker.get(10**400).body == "a"
        db.close(timeout=10**400)


def test_what_is_no_schema_is_refused(path: str) -> None:
    for wrong in (dict, Store(), zlmdb.Table, 5):
        with pytest.raises(TypeError):
            zlmdb.open(path, wrong)  # type: ignore[call-overload]
        assert not os.path.exists(path)


@pytest.mark.parametrize("wrong", [Store, b"db", 5])
def test_what_is_no_path_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="expected a path, or None for a database in memory"):
        zlmdb.open(wrong, Store)


@pytest.mark.parametrize("durability", ["full", "commit", "none"])
def test_durability_is_that_of_the_environment(path: str, durability: Any) -> None:
    with zlmdb.open(path, Store, durability=durability) as db:
        flags = db._open_store.env.flags()
        assert flags["sync"] is (durability != "none")
        assert flags["metasync"] is (durability == "full")
        assert db.is_sync is (durability != "none")
        db.sync()
        db.sync(force=True)


def test_an_empty_file_is_new(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "data.mdb").touch()
    with zlmdb.open(tmp_path / "db", Store) as db:
        put(db, a=1)
        assert numbers(db) == {"a": 1}


def test_an_empty_environment_is_new(path: str, layout: Any) -> None:
    lmdb.open(path, max_dbs=1).close()
    with zlmdb.open(path, Store, layout=layout) as db:
        assert db.layout == layout


@pytest.mark.parametrize("content", [b"not a database at all" * 500, b"\x00" * 8192, b"x"])
def test_files_that_are_not_lmdb_are_refused(tmp_path: Path, content: bytes) -> None:
    place = tmp_path / "db"
    place.mkdir()
    (place / "data.mdb").write_bytes(content)
    for attempt in (lambda: zlmdb.open(place, Store), lambda: zlmdb.open(place), lambda: zlmdb.Database(str(place))):
        with pytest.raises(zlmdb.InvalidDatabase):
            attempt()
    assert (place / "data.mdb").read_bytes() == content


def foreign(path: str, how: str) -> None:
    with lmdb.open(path, max_dbs=5) as env:
        if how == "short keys":
            with env.begin(write=True) as txn:
                txn.put(b"a", b"1")
        elif how == "texts":
            with env.begin(write=True) as txn:
                txn.put(b"hello", b"1")
                txn.put(b"world", b"2")
        else:
            sub = env.open_db(b"things")
            with env.begin(write=True) as txn:
                txn.put(b"key", b"value", db=sub)


@pytest.mark.parametrize("how", ["short keys", "texts", "sub-databases"])
def test_files_of_other_programs_are_refused_naming_what_is_there(path: str, how: str) -> None:
    foreign(path, how)
    before = Path(path, "data.mdb").read_bytes()
    for attempt in (lambda: zlmdb.open(path, Store), lambda: zlmdb.open(path)):
        with pytest.raises(zlmdb.InvalidDatabase, match="not one of zlmdb.*begins with the keys") as caught:
            attempt()
        assert caught.value.path == path
    assert Path(path, "data.mdb").read_bytes() == before
    with lmdb.open(path):  # the refused opening has let go of the file
        pass


def test_a_newer_catalogue_is_refused(path: str) -> None:
    from zlmdb.store import layout as layouts

    with zlmdb.open(path, Store):
        pass
    with lmdb.open(path, max_dbs=5) as env:
        catalogue = env.open_db(layouts.CATALOGUE)
        with env.begin(write=True) as txn:
            txn.put(layouts.MAGIC_KEY, layouts.encode({"format": 99}), db=catalogue)
    for attempt in (lambda: zlmdb.open(path, Store), lambda: zlmdb.open(path, Store, readonly=True)):
        with pytest.raises(zlmdb.InvalidDatabase, match="format 99.*newer zlmdb"):
            attempt()


def test_a_classic_file_with_hand_given_slots_only_opens_as_classic(path: str) -> None:
    with lmdb.open(path, max_dbs=1) as env, env.begin(write=True) as txn:
        txn.put(b"\x00\x05" + (7).to_bytes(8, "big"), b"text")
    with pytest.raises(zlmdb.InvalidDatabase, match="layout='classic'"):
        zlmdb.open(path, Store)
    with zlmdb.Database(path) as db:
        assert db.layout == "classic"
        texts = zlmdb.MapOidString(5)
        with db.begin() as txn:
            assert texts[txn, 7] == "text"
    with zlmdb.open(path, Store, layout="classic") as db:
        put(db, a=1)


# -- failed openings --------------------------------------------------------------------------------------------------


def test_without_the_global_lock_of_python_nothing_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    for path in (None, tmp_path / "db"):
        with pytest.raises(RuntimeError, match="global interpreter lock .* off: start Python .* PYTHON_GIL=1"):
            zlmdb.open(path, Store)
    assert not (tmp_path / "db").exists()
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True)
    zlmdb.open(None, Store).close()


def test_a_failed_opening_releases_the_path(path: str, layout: Any) -> None:
    with zlmdb.open(path, Store, layout=layout) as db:
        put(db, a=1)

    class Wrong(zlmdb.Schema):
        numbers: zlmdb.Table[str, str]

    class Nonsense(zlmdb.Schema):
        numbers: int  # type: ignore[assignment]

    for _ in range(2):
        with pytest.raises(zlmdb.SchemaMismatch):
            zlmdb.open(path, Wrong)
        with pytest.raises(TypeError):
            zlmdb.open(path, Nonsense)
        with pytest.raises(ValueError, match="0.9"):
            zlmdb.Database(path, lib_version="1.0")
    with zlmdb.Database(path) as classic:
        assert classic.is_open
    with zlmdb.open(path, Store, maxsize=1 << 24) as db:
        assert numbers(db) == {"a": 1}


def test_a_failed_opening_leaves_other_handles_alone(path: str) -> None:
    class Wrong(zlmdb.Schema):
        numbers: zlmdb.Table[str, str]

    with zlmdb.open(path, Store) as db:
        put(db, a=1)
        for attempt in (
            lambda: zlmdb.open(path, Wrong), lambda: zlmdb.open(path, Store, maxsize=1 << 24),
            lambda: zlmdb.Database(path),
        ):  # fmt: skip
            with pytest.raises((zlmdb.SchemaMismatch, zlmdb.DatabaseInUse)):
                attempt()
            put(db, b=2)
        assert numbers(db) == {"a": 1, "b": 2}


# -- sharing ----------------------------------------------------------------------------------------------------------


def test_handles_of_one_file_share_one_environment(path: str, layout: Any) -> None:
    with zlmdb.open(path, Store, layout=layout) as one, zlmdb.open(path, Bigger) as other:
        assert one._open_store is other._open_store
        put(one, a=1)
        with other.write() as t:
            t.blobs[1] = b"x"
            assert t.numbers["a"] == 1
        one.close()
        put(other, b=2)
        assert numbers(other) == {"a": 1, "b": 2}
    with pytest.raises(zlmdb.DatabaseClosed):
        one.read()


def test_new_handles_share_also_after_the_first_was_closed(path: str) -> None:
    one, other = zlmdb.open(path, Store), zlmdb.open(path, Store)
    one.close()
    with zlmdb.open(path, Store) as third, zlmdb.Database.open(path) as fourth:
        assert third._open_store is fourth._open_store is other._open_store
    put(other, a=1)
    other.close()
    zlmdb.Database(path).close()


def spellings(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "hard").mkdir()
    os.link(Path(path, "data.mdb"), tmp_path / "hard" / "data.mdb")
    return {
        "same": path,
        "relative": "db",
        "dots": os.path.join(path, "..", "db", "."),
        "slash": path + os.sep,
        "data file": os.path.join(path, "data.mdb"),
        "symbolic link": str(tmp_path / "link"),
        "hard link": str(tmp_path / "hard"),
    }


def test_however_a_path_is_spelt_it_is_one_file(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zlmdb.open(path, Store) as db:
        put(db, a=1)
        for name, spelling in spellings(path, tmp_path, monkeypatch).items():
            with pytest.raises(RuntimeError, match="open in this process already"):
                zlmdb.Database(spelling)
            with zlmdb.open(spelling, Store) as other:
                assert other._open_store is db._open_store, name
                assert numbers(other) == {"a": 1}
            with zlmdb.Database.open(spelling) as other:
                assert other._open_store is db._open_store, name


def test_a_classic_constructor_refuses_a_second_opening(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zlmdb.Database(path) as db:
        for spelling in spellings(path, tmp_path, monkeypatch).values():
            with pytest.raises(zlmdb.DatabaseInUse, match="Database.open"):
                zlmdb.Database(spelling)
        with zlmdb.open(path, Store) as other:  # beside it, declared tables
            put(other, a=1)
            assert other._open_store is db._open_store
    zlmdb.Database(path).close()


@pytest.mark.parametrize(
    "options", [{"maxsize": 1 << 24}, {"readonly": True}, {"durability": "none"}, {"durability": "commit"}], ids=str
)  # fmt: skip
def test_conflicting_options_are_refused_naming_them(path: str, options: Any) -> None:
    with zlmdb.open(path, Store) as db:
        for opener in (lambda: zlmdb.open(path, Store, **options), lambda: zlmdb.open(path, Bigger, **options)):
            with pytest.raises(zlmdb.DatabaseInUse, match="options") as caught:
                opener()
            assert isinstance(caught.value, RuntimeError)
        put(db, a=1)
    with zlmdb.open(path, Store, **options) as db:
        assert numbers(db) == {"a": 1}


def test_the_lmdb_format_is_no_conflict_when_it_is_the_same(path: str) -> None:
    with zlmdb.Database(path, lib_version="1.0") as db, zlmdb.open(path, Store) as other:
        assert other._open_store is db._open_store
        with zlmdb.Database.open(path, lib_version="1.0") as third:
            assert third._open_store is db._open_store
        with pytest.raises((zlmdb.DatabaseInUse, ValueError), match="1.0|0.9"):
            zlmdb.Database.open(path, lib_version="0.9")


# -- Database.open ----------------------------------------------------------------------------------------------------


def test_database_open_gives_the_same_instance_and_counts(path: str) -> None:
    one = zlmdb.Database.open(path)
    other = zlmdb.Database.open(path)
    assert one is other
    assert zlmdb.Database.open(os.path.join(path, "data.mdb")) is one
    one.close()
    one.close()
    assert one.is_open
    one.close()
    assert not one.is_open
    one.close()
    with zlmdb.Database.open(path) as again:
        assert again is not one
        with zlmdb.Database.open(path) as same:
            assert same is again
        assert again.is_open
    assert not again.is_open


def test_opening_while_another_thread_closes_gives_an_open_instance(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    db = zlmdb.Database.open(path)
    release = openstores.release
    found: list[zlmdb.Database[Any]] = []
    threads: list[threading.Thread] = []

    def slow(*args: Any) -> None:
        opener = threading.Thread(target=lambda: found.append(zlmdb.Database.open(path)))
        opener.start()
        opener.join(0.2)  # it waits where the closing holds the lock
        monkeypatch.undo()
        release(*args)
        threads.append(opener)

    monkeypatch.setattr(openstores, "release", slow)
    db.close()
    threads[0].join()
    assert found[0].is_open
    found[0].close()


def test_database_open_refuses_other_options(path: str) -> None:
    with zlmdb.Database.open(path, maxsize=1 << 24):
        with pytest.raises(zlmdb.DatabaseInUse, match="options"):
            zlmdb.Database.open(path)
        with pytest.raises(zlmdb.DatabaseInUse):
            zlmdb.Database.open(path, maxsize=1 << 25)
        with zlmdb.Database.open(path, maxsize=1 << 24):
            pass


def test_database_open_gives_the_instance_of_the_constructor(path: str) -> None:
    with zlmdb.Database(path) as db, zlmdb.Database.open(path) as same:
        assert same is db


def test_database_open_opens_a_file_that_was_closed_meanwhile(path: str) -> None:
    with zlmdb.open(path, Store) as declared, zlmdb.Database.open(path) as db:
        assert db._open_store is declared._open_store
    with zlmdb.Database.open(path) as db, db.begin(write=True) as txn:
        txn.put(b"\x00\x09k", b"v")


# -- the classic constructor ------------------------------------------------------------------------------------------


def test_a_temporary_database_goes_with_its_object() -> None:
    db = zlmdb.Database()
    place = db.dbpath
    assert place is not None
    texts = zlmdb.MapOidString(1)
    with db.begin(write=True) as txn:
        texts[txn, 1] = "x"
    assert os.path.isdir(place)
    assert db.config()["is_temp"] is True
    db.close()
    with db, db.begin() as txn:
        assert texts[txn, 1] == "x"
    del db, txn
    for _ in range(3):
        gc.collect()
    assert not os.path.exists(place)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_temporary_databases_go_with_their_process(tmp_path: Path) -> None:
    program = "import zlmdb; db = zlmdb.Database(); print(db.dbpath); txn = db.begin(write=True).begin()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.startswith(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_an_empty_path_is_a_temporary_database_to_the_constructor_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with zlmdb.Database("") as db, zlmdb.Database("") as other:
        assert db.config()["is_temp"]
        assert db.dbpath != other.dbpath
    with pytest.raises(ValueError, match="path is empty.*None"):
        zlmdb.open("", Store)
    assert os.listdir(tmp_path) == []


def test_create_false_is_about_the_directory_to_the_constructor(tmp_path: Path) -> None:
    for name in ("now", "later"):
        (tmp_path / name).mkdir()
        with pytest.raises(FileNotFoundError):
            zlmdb.open(tmp_path / name, Store, create=False)
    with zlmdb.Database(tmp_path / "now", create=False) as db, db.begin(write=True) as txn:
        txn.put(b"\x00\x09k", b"v")
        assert db.config()["create"] is False
    with zlmdb.Database.open(tmp_path / "later", create=False) as db:
        assert (tmp_path / "later" / "data.mdb").exists()
        copy = pickle.loads(pickle.dumps(db))
        copy.close()
    with pytest.raises(FileNotFoundError):
        zlmdb.Database(tmp_path / "missing", create=False)


def test_open_now_false_opens_with_the_block(path: str) -> None:
    db = zlmdb.Database(path, open_now=False)
    assert not db.is_open
    assert not os.path.exists(path)
    with pytest.raises(zlmdb.DatabaseClosed):
        db.begin()
    with db:
        assert db.is_open
        with db.begin(write=True) as txn:
            txn.put(b"\x00\x09k", b"v")
    assert not db.is_open
    with db, db.begin() as txn:
        assert txn.get(b"\x00\x09k") == b"v"


def test_the_attributes_are_what_was_given(path: str) -> None:
    context, log = object(), logging.getLogger("mine")
    with zlmdb.Database(path, maxsize=1 << 25, sync=False, context=context, log=log) as db:
        assert db.dbpath == path
        assert db.maxsize == 1 << 25
        assert db.context is context
        assert db.log is log
        assert (db.is_open, db.is_sync, db.is_readonly, db.is_writemap) == (True, False, False, False)
        assert db.lib_version == "0.9"
        config = db.config()
    assert config == {
        "is_temp": False, "dbpath": path, "maxsize": 1 << 25, "readonly": False, "lock": True, "sync": False,
        "create": True, "open_now": True, "writemap": False, "context": str(context),
    }  # fmt: skip
    assert json.loads(json.dumps(config)) == config


def test_what_is_known_of_a_closed_database_is_told(path: str) -> None:
    db = zlmdb.Database(path, open_now=False)
    assert db.config()["maxsize"] == db.maxsize > 0
    assert db.config()["context"] is None
    with db:
        assert db.maxsize == db.stats()["max_size"]
    assert db.maxsize > 0
    assert zlmdb.Database(path, maxsize=1 << 25, open_now=False).maxsize == 1 << 25


def test_the_logger_may_be_replaced(path: str) -> None:
    with zlmdb.Database(path) as db:
        db.log = mine = logging.getLogger("mine")
        assert db.log is mine


def test_a_close_that_leaves_the_block_ends(path: str) -> None:
    class Old(zlmdb.Database[zlmdb.Schema]):
        def close(self) -> None:
            self.__exit__(None, None, None)

    with Old(path) as db:
        pass
    assert not db.is_open
    other = Old(path)
    other.close()
    assert not other.is_open


def test_a_map_that_cannot_be_taken_up_again_leaves_the_database_closed(path: str) -> None:
    @zlmdb.table("0d1f7a50-6a4c-4b57-9d52-4a45b6a3a003")
    class Names(zlmdb.MapOidString):
        """Names of things."""

    @zlmdb.table("0d1f7a50-6a4c-4b57-9d52-4a45b6a3a003")
    class Numbers(zlmdb.MapStringOid):
        """Of the same table, with other types."""

    db = zlmdb.Database(path)
    names = db.attach_table(Names)
    db.close()
    zlmdb.Database.scratch(path)
    with zlmdb.Database(path) as other:
        other.attach_table(Numbers)
    with pytest.raises(zlmdb.SchemaMismatch, match="Names"):
        db.__enter__()
    assert not db.is_open
    with zlmdb.Database(path):  # nobody has the file open
        del names


def test_stats_have_the_classic_members(path: str) -> None:
    @zlmdb.table("0d1f7a50-6a4c-4b57-9d52-4a45b6a3a002")
    class Names(zlmdb.MapOidString):
        """Names of things."""

    with zlmdb.Database(path, maxsize=1 << 25) as db:
        names = db.attach_table(Names)
        with db.begin(write=True) as txn:
            for i in range(7):
                names[txn, i] = "x"
        stats = db.stats(include_slots=True)
    for member in (
        "num_slots",
        "current_size",
        "max_size",
        "page_size",
        "pages",
        "used",
        "free",
        "read_only",
        "sync_enabled",
    ):
        assert member in stats
    assert stats["max_size"] == 1 << 25
    assert stats["num_slots"] == 1
    assert stats["current_size"] > 0
    assert 0 < stats["used"] < stats["max_size"]
    assert 0 < stats["free"] <= 1
    [slot] = stats["slots"]
    assert slot["oid"] == "0d1f7a50-6a4c-4b57-9d52-4a45b6a3a002"
    assert slot["name"] == "Names"
    assert slot["description"] == "Names of things."
    assert slot["records"] == 7
    with zlmdb.Database(path, maxsize=1 << 25) as db:
        assert "slots" not in db.stats()


def test_stats_measure_the_data_wherever_it_is(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Bigger, maxsize=1 << 26)
    before = db.stats()
    with db.write() as t:
        t.blobs.update((i, bytes(100_000)) for i in range(100))
    full = db.stats()
    assert full["entries"] == before["entries"] + 100
    assert before["used"] + 9_000_000 < full["used"] < 12_000_000
    assert full["used"] == full["pages"] * full["page_size"]
    assert full["free"] < before["free"] - 0.1
    with db.write() as t:
        del t.blobs[0]
        assert db.stats()["entries"] == full["entries"]  # what is committed
        for i in range(1, 100):
            del t.blobs[i]
    empty = db.stats()
    assert empty["used"] < 1_000_000
    if combo.startswith("lmdb"):
        assert full["reclaimable"] < 1_000_000
        assert 9_000_000 < empty["reclaimable"] <= empty["current_size"]
        db.compact()
        assert db.stats()["reclaimable"] < 1_000_000


@pytest.mark.skipif(
    not hasattr(os, "posix_fallocate"), reason="this system has no posix_fallocate, so that nothing is allocated"
)
@pytest.mark.parametrize(
    ("number", "error"), [(errno.ENOSPC, zlmdb.DatabaseFull), (errno.EIO, zlmdb.DiskError)], ids=["room", "disk"]
)
def test_writemap_without_room_is_an_error_of_ours_and_leaves_nothing_open(
    path: str, number: int, error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.posix_fallocate

    def fail(descriptor: int, start: int, size: int) -> None:
        if size == 1 << 22:  # and not the lock file
            raise OSError(number, os.strerror(number))
        plain(descriptor, start, size)

    monkeypatch.setattr(os, "posix_fallocate", fail)
    with pytest.raises(error, match="make room") as caught:
        zlmdb.Database(path, writemap=True, maxsize=1 << 22)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.size == 1 << 22
    monkeypatch.undo()
    with zlmdb.Database(path, writemap=True, maxsize=1 << 22) as db:
        assert db.is_writemap


@pytest.mark.parametrize("size", [None, 1 << 22])
def test_writemap_without_a_size_has_that_of_the_predecessor(path: str, size: Any) -> None:
    """``Database(path, writemap=True)``, as programs of zlmdb <= 26 write it, raised ValueError."""
    with zlmdb.Database(path, writemap=True, maxsize=size) as db:
        assert db.is_writemap
        assert db.stats()["map_size"] == (size or 10 << 20)
        with db.begin(write=True) as txn:
            txn.put(b"\x00\x09k", b"v")
        assert os.path.getsize(os.path.join(path, "data.mdb")) == (size or 10 << 20)


def test_writemap_without_a_size_is_shared(path: str) -> None:
    with zlmdb.Database.open(path, writemap=True) as db:
        assert zlmdb.Database.open(path, writemap=True) is db
        db.close()


@pytest.mark.parametrize("version", ["0.9", "1.0"])
def test_lib_version_is_the_format_of_a_new_file(path: str, version: str, layout: Any) -> None:
    with zlmdb.Database(path, lib_version=version, layout=layout) as db:
        assert db.lib_version == version
    for again in (None, version):
        with zlmdb.Database(path, lib_version=again) as db:
            assert db.lib_version == version
            assert db.layout == layout
    with zlmdb.open(path, Store) as db:
        put(db, a=1)
        assert db.lib_version == version
    other = {"0.9": "1.0", "1.0": "0.9"}[version]
    with pytest.raises(ValueError, match=f"{version} format.*'{other}' was asked for"):
        zlmdb.Database(path, lib_version=other)
    with pytest.raises(ValueError, match="'0.9', '1.0'"):
        zlmdb.Database(path, lib_version="2.0")


def test_lib_version_is_the_format_of_an_empty_file(path: str) -> None:
    """Perhaps another process has made it just now, and is about to write it."""
    os.mkdir(path)
    with open(os.path.join(path, "data.mdb"), "wb"):
        pass
    with zlmdb.Database(path, lib_version="1.0") as db:
        assert db.lib_version == "1.0"


@pytest.mark.parametrize(("version", "limit"), [("0.9", 511), ("1.0", 1978)])
def test_keys_are_as_long_as_the_format_allows(path: str, version: str, limit: int, layout: Any) -> None:
    zlmdb.Database(path, lib_version=version, layout=layout).close()
    fits = limit - (2 if layout == "classic" else 0)
    with zlmdb.open(path, Store) as db:
        with db.write() as t:
            t.numbers["x" * fits] = 1
            with pytest.raises(zlmdb.EncodeError, match=f"{limit + 1} bytes.*{limit}") as caught:
                t.numbers["x" * (fits + 1)] = 1
            assert (caught.value.size, caught.value.limit) == (limit + 1, limit)
            assert ("1.0" in str(caught.value)) is (version == "0.9")
        assert numbers(db) == {"x" * fits: 1}


# -- closing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [False, True])
def test_closing_with_an_open_transaction_is_refused_naming_it(make_db: Callable[..., Any], write: bool) -> None:
    db = make_db(Store)
    t = db.write().__enter__() if write else db.read()
    with pytest.raises(zlmdb.DatabaseInUse, match="open transactions.*write" if write else "open transactions.*read"):
        db.close()
    assert db.is_open
    assert dict(t.numbers) == {}
    t.txn.abort()
    db.close()
    db.close()


def test_a_closed_database_refuses_everything(make_db: Callable[..., Any]) -> None:
    db = make_db(Store)
    db.close()
    assert not db.is_open
    for use in (
        db.read, db.write, db.begin, db.tables, db.stats, db.sync, lambda: db.run(lambda t: None),
        lambda: db._open_store, lambda: db.layout, lambda: db.attach_table(zlmdb.MapOidString),
    ):  # fmt: skip
        with pytest.raises((zlmdb.DatabaseClosed, TypeError)):
            use()


@on_disk
def test_a_closed_database_opens_again_with_its_block(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Store)
    with db:
        put(db, a=1)
    with db:
        assert numbers(db) == {"a": 1}
    assert not db.is_open


def test_an_error_in_the_block_is_not_hidden_by_the_refusal_to_close(make_db: Callable[..., Any]) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012, SIM117
        with make_db(Store) as db:
            t = db.read()
            raise ZeroDivisionError
    t.txn.abort()


def test_a_database_that_is_dropped_is_closed(path: str) -> None:
    db = zlmdb.open(path, Store)
    put(db, a=1)
    del db
    gc.collect()
    gc.collect()
    zlmdb.Database(path).close()


def test_a_transaction_outlives_the_variable_of_its_database(path: str) -> None:
    with zlmdb.open(path, Store) as db:
        put(db, a=1)
    del db
    t = zlmdb.open(path, Store).read()
    gc.collect()
    assert dict(t.numbers) == {"a": 1}
    t.txn.abort()
    del t
    gc.collect()
    gc.collect()
    zlmdb.Database(path).close()


@pytest.mark.skipif(sys.platform == "win32", reason="on Windows, making a symbolic link takes a permission")
def test_scratch_follows_a_link_to_the_directory(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "db")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    for _ in range(2):
        zlmdb.open(tmp_path / "db", Store).close()
        zlmdb.open(tmp_path / "link", Store).close()
        (tmp_path / "db" / "copies").symlink_to(tmp_path / "other")
        zlmdb.Database.scratch(tmp_path / "link")
        assert os.listdir(tmp_path / "db") == []
        assert os.listdir(tmp_path / "other") == ["file"]


def test_scratch_deletes_the_database(path: str, tmp_path: Path) -> None:
    with zlmdb.open(path, Store) as db:
        put(db, a=1)
    zlmdb.Database.scratch(path)
    assert not os.path.exists(path)
    zlmdb.Database.scratch(path)
    (tmp_path / "file").touch()
    zlmdb.Database.scratch(tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_scratch_deletes_no_directory_of_something_else(tmp_path: Path) -> None:
    """A path with one part too few deleted all that was there."""
    zlmdb.open(tmp_path / "project" / "data", Store).close()
    (tmp_path / "project" / "main.py").touch()
    with pytest.raises(zlmdb.InvalidDatabase, match="other files, and no database: nothing was deleted"):
        zlmdb.Database.scratch(tmp_path / "project")
    assert sorted(os.listdir(tmp_path / "project")) == ["data", "main.py"]
    (tmp_path / "empty").mkdir()
    zlmdb.Database.scratch(tmp_path / "empty")
    assert not (tmp_path / "empty").exists()


# -- read-only --------------------------------------------------------------------------------------------------------


def test_a_read_only_database_reads_and_refuses_to_write(path: str, layout: Any) -> None:
    with zlmdb.open(path, Store, layout=layout) as db:
        put(db, a=1)
    before = Path(path, "data.mdb").read_bytes()
    with zlmdb.open(path, Bigger, readonly=True) as db:
        assert db.is_readonly
        assert numbers(db) == {"a": 1}
        for use in (db.write, lambda: db.begin(write=True).begin(), lambda: db.run(lambda t: None)):
            with pytest.raises(zlmdb.ReadonlyDatabase, match="read-only") as caught:
                use()
            assert isinstance(caught.value, PermissionError)
        with db.read() as t:
            assert len(t.blobs) == 0
            with pytest.raises(zlmdb.ReadonlyDatabase):
                t.numbers["b"] = 1
        assert db.run(lambda t: t.numbers["a"], write=False) == 1
    assert Path(path, "data.mdb").read_bytes() == before


def test_a_read_only_database_sees_what_others_commit(path: str) -> None:
    with zlmdb.open(path, Store) as db:
        put(db, a=1)
    program = f"import zlmdb\nwith zlmdb.open({path!r}) as db, db.write() as t: t['numbers']['b'] = 2"
    with zlmdb.open(path, Store, readonly=True) as db:
        with db.read() as t:
            subprocess.run([sys.executable, "-c", program], check=True)
            assert dict(t.numbers) == {"a": 1}
        assert numbers(db) == {"a": 1, "b": 2}


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_read_only_directory_opens_read_only(layout: Any) -> None:
    """Without a lock file, since none can be made there."""
    root = Path(tempfile.mkdtemp())  # whose parents any user may enter, as those of tmp_path may not
    place = root / "db"
    with zlmdb.open(place, Store, layout=layout) as db:
        put(db, a=1)
    for name in ("lock.mdb", "writer.lock"):
        (place / name).unlink()
    program = f"""if 1:
        import os, sys, tempfile, zlmdb
        class Store(zlmdb.Schema):
            numbers: zlmdb.Table[str, int]
        with tempfile.TemporaryDirectory() as scratch:
            with zlmdb.open(scratch, Store, layout={layout!r}) as db, db.write() as t:  # imports what it takes
                t.numbers["a"] = 1
                dict(t["numbers"])
        if os.geteuid() == 0:
            os.setuid(65534)
        with zlmdb.open({str(place)!r}, readonly=True) as db, db.read() as t:
            print(dict(t["numbers"]))
    """
    root.chmod(0o755)
    place.chmod(0o555)
    try:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=_same_path())
    finally:
        place.chmod(0o755)
        names = os.listdir(place)
        shutil.rmtree(root)
    assert done.stdout == "{'a': 1}\n", done.stderr
    assert names == ["data.mdb"]


def _same_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


# -- limits and growth ------------------------------------------------------------------------------------------------


def fill(t: Any, megabytes: float) -> None:
    last = t.blobs.select(reverse=True, limit=1).first()
    start = 0 if last is None else last[0] + 1
    t.blobs.put_many((start + i, b"x" * 4000) for i in range(int(megabytes * 250)))


def test_a_limit_is_hard_and_leaves_earlier_commits_whole(make_db: Callable[..., Any]) -> None:
    db = make_db(Bigger, maxsize=4 << 20)
    put(db, a=1)
    with db.write() as t:
        fill(t, 1)
    with pytest.raises(zlmdb.DatabaseFull, match="maxsize") as caught:  # noqa: PT012, SIM117
        with db.write() as t:
            t.numbers["b"] = 2
            fill(t, 8)
    assert isinstance(caught.value, OSError)
    assert numbers(db) == {"a": 1}
    with db.read() as t:
        assert list(t.blobs) == list(range(250))
        assert set(t.blobs.values()) == {b"x" * 4000}
    put(db, c=3)
    assert numbers(db) == {"a": 1, "c": 3}
    assert db.maxsize == 4 << 20


@on_disk
def test_a_full_database_opens_again_with_more_room(make_db: Callable[..., Any], combo: str) -> None:
    with make_db(Bigger, maxsize=1 << 20) as db:
        put(db, a=1)
        with suppress(zlmdb.DatabaseFull), db.write() as t:
            fill(t, 8)
    with make_db(Bigger, maxsize=16 << 20) as db:
        with db.write() as t:
            fill(t, 8)
        assert numbers(db) == {"a": 1}
    with make_db(Bigger) as db, db.write() as t:
        fill(t, 8)
        assert len(t.blobs) == 4000


@on_disk
def test_a_limit_below_what_is_used_reads_and_refuses_to_grow(make_db: Callable[..., Any], combo: str) -> None:
    with make_db(Bigger) as db, db.write() as t:
        t.numbers["a"] = 1
        fill(t, 4)
    size = os.path.getsize(os.path.join(db.dbpath, "data.mdb"))
    assert size > 4_000_000
    with make_db(Bigger, maxsize=1 << 20) as db:
        assert numbers(db) == {"a": 1}
        with db.read() as t:
            assert len(t.blobs) == 1000
        with pytest.raises(zlmdb.DatabaseFull) as caught, db.write() as t:
            fill(t, 2)
        assert str(1 << 20) in str(caught.value)
        assert str(size) in str(caught.value)
        assert (caught.value.size, caught.value.limit) == (size, 1 << 20)
        with db.read() as t:
            assert len(t.blobs) == 1000


def test_a_file_is_as_small_as_its_data(path: str) -> None:
    with zlmdb.open(path, Store) as db:
        put(db, a=1)
        assert db.maxsize >= 1 << 26
        assert os.path.getsize(os.path.join(path, "data.mdb")) < 1 << 20


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """No reservation of address space, as on Windows and 32-bit systems, and a small first size."""
    monkeypatch.setattr(mapsize, "RESERVATION", 0)
    monkeypatch.setattr(mapsize, "FIRST_SIZE", 1 << 20)


@pytest.mark.usefixtures("small_steps")
@on_disk
def test_without_a_reservation_run_grows_as_it_goes(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Bigger)
    assert db.maxsize == 1 << 20
    put(db, a=1)
    runs = []

    def work(t: Any) -> None:
        runs.append(1)
        fill(t, 3)

    db.run(work)
    assert 1 < len(runs) < 5
    assert db.maxsize > 1 << 20
    with db.read() as t:
        assert len(t.blobs) == 750
    for _ in range(3):
        db.run(work)
    with db.read() as t:
        assert len(t.blobs) == 3000
    assert numbers(db) == {"a": 1}


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("maxsize", [None, 1 << 21])
def test_a_file_as_large_as_the_map_does_not_grow_each_time_it_is_opened(
    path: str, maxsize: Optional[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapsize, "AS_LARGE_AS_MAP", True)
    file = os.path.join(path, "data.mdb")

    def opened() -> zlmdb.Database[Bigger]:
        db = zlmdb.open(path, Bigger, maxsize=maxsize)
        if os.path.getsize(file) < map_size(db):  # as on Windows
            os.truncate(file, map_size(db))
        return db

    sizes = set()
    for _ in range(4):
        with opened() as db:
            put(db, a=1)
            sizes.add(os.path.getsize(file))
    assert len(sizes) == 1
    if maxsize is None:
        with opened() as db:
            while os.path.getsize(file) in sizes:
                db.run(lambda t: fill(t, 1))
                os.truncate(file, map_size(db))
        with opened() as db:
            assert 1 << 21 <= map_size(db) < 3 << 20
            assert numbers(db) == {"a": 1}


def map_size(db: Any) -> int:
    size: int = db._store.environment.info()["map_size"]
    return size


class Brief(NamedTuple):
    data: bytes
    until: Optional[float]


class Briefs(zlmdb.Table[int, zlmdb.Msgpack[Brief]], expires="until"):
    by_data = zlmdb.Index[bytes](lambda record: record.data[:8], version=1)


class Brevity(zlmdb.Schema):
    briefs: Briefs


@pytest.mark.usefixtures("small_steps")
@on_disk
def test_without_a_reservation_run_grows_where_records_expire(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Brevity)
    started = []

    def work(t: Any) -> None:
        started.append(1)
        for key in range(3000):
            # Every other record has expired already, which the general form stores.
            t.briefs[key] = Brief(bytes(1000), 1.0 if key % 2 else None)

    db.run(work)
    assert len(started) > 1
    with db.read() as t:
        assert len(t.briefs) == 1500


@pytest.mark.usefixtures("small_steps")
@on_disk
@pytest.mark.parametrize("goes_on", [False, True])
def test_run_grows_although_the_function_goes_on_after_a_full_map(
    make_db: Callable[..., Any], combo: str, goes_on: bool
) -> None:
    db = make_db(Bigger)
    seen = []

    def work(t: Any) -> None:
        try:
            fill(t, 3)
        except zlmdb.DatabaseFull as error:
            seen.append(error)
            if goes_on:
                with pytest.raises(zlmdb.TransactionPoisoned, match="memory map .* is full") as caught:
                    fill(t, 1)
                assert caught.value.__cause__ is seen[-1]
                len(t.blobs)

    db.run(work)
    assert seen
    with db.read() as t:
        assert len(t.blobs) == 750


@pytest.mark.usefixtures("small_steps")
@on_disk
def test_without_a_reservation_a_block_raises_and_the_next_one_has_room(
    make_db: Callable[..., Any], combo: str
) -> None:
    db = make_db(Bigger)
    put(db, a=1)
    with pytest.raises(zlmdb.DatabaseFull), db.write() as t:
        fill(t, 1.5)
    with db.write() as t:
        assert dict(t.numbers) == {"a": 1}
        assert len(t.blobs) == 0
        fill(t, 1.5)
    with db.read() as t:
        assert len(t.blobs) == 375


@pytest.mark.usefixtures("small_steps")
@on_disk
def test_without_a_reservation_growth_waits_for_readers_of_other_threads(
    make_db: Callable[..., Any], combo: str
) -> None:
    """The map moves when it grows: no transaction of this process may be looking at it."""
    db = make_db(Bigger)
    put(db, **{f"k{i}": i for i in range(100)})
    stop, wrong = threading.Event(), []

    def reads() -> None:
        while not stop.wait(0.002):
            with db.read() as t:
                found = dict(t.numbers)
                if len(found) != 100:
                    wrong.append(len(found))

    threads = [threading.Thread(target=reads) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            db.run(lambda t: fill(t, 2))
    finally:
        stop.set()
        for thread in threads:
            thread.join(300)
    assert wrong == []
    with db.read() as t:
        assert len(t.blobs) == 2000


@pytest.mark.usefixtures("small_steps")
@on_disk
def test_without_a_reservation_no_thread_waits_for_itself(make_db: Callable[..., Any], combo: str) -> None:
    db = make_db(Bigger)
    put(db, a=1)
    with db.read() as reader:
        with pytest.raises(zlmdb.DatabaseFull), db.write() as t:
            fill(t, 1.5)
        with suppress(zlmdb.DatabaseFull):
            db.run(lambda t: fill(t, 1.5))
        assert dict(reader.numbers) == {"a": 1}
    db.run(lambda t: fill(t, 1.5))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.usefixtures("small_steps")
@on_disk
@pytest.mark.parametrize("where", ["here", "in another thread", "while it waits"])
def test_without_a_reservation_growth_waits_for_no_snapshot_that_nobody_has(
    make_db: Callable[..., Any],
    combo: str,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its thread got DatabaseFull, and others waited for ten seconds, and got it then."""
    monkeypatch.setattr("zlmdb.store.environment._LOOK_AGAIN", 1000)  # so that nothing else ends it before
    db = make_db(Bigger)
    put(db, a=1)

    gate, begun = db._open_store.gate, threading.Event()

    def forget() -> None:
        t = db.read()
        assert t.numbers["a"] == 1
        begun.set()
        while where == "while it waits" and not gate._shut:
            time.sleep(0.01)

    if where == "here":
        forget()
    else:
        other = threading.Thread(target=forget)
        other.start()
        begun.wait(10)
        if where == "in another thread":
            other.join()
    db.run(lambda t: fill(t, 1.5))
    assert [one.message for one in caplog.records if "cannot grow" in one.message] == []  # it gave up, and tried again


@pytest.mark.filterwarnings("default::ResourceWarning")
@pytest.mark.usefixtures("small_steps")
@on_disk
def test_without_a_reservation_a_reader_collected_in_another_thread_is_gone(
    make_db: Callable[..., Any], combo: str
) -> None:
    db = make_db(Bigger)
    held = [db.read()]

    def give_up() -> None:
        held.clear()
        gc.collect()
        gc.collect()

    with pytest.warns(ResourceWarning, match="aborted now"):  # noqa: PT031
        other = threading.Thread(target=give_up)
        other.start()
        other.join()
    db.run(lambda t: fill(t, 1.5))
    with db.read() as t:
        assert len(t.blobs) == 375


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.usefixtures("small_steps")
def test_without_a_reservation_what_another_process_added_is_read(path: str) -> None:
    with zlmdb.open(path, Bigger) as db:
        put(db, a=1)
        program = f"import zlmdb\nwith zlmdb.open({path!r}) as db, db.write() as t:\n" + (
            "    for i in range(2000): t['blobs'][i] = b'x' * 4000\n"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
        with db.read() as t:
            assert len(t.blobs) == 2000
            assert t.blobs[1999] == b"x" * 4000
        with db.write() as t:
            t.blobs[5000] = b"y"
        assert numbers(db) == {"a": 1}


def test_many_databases_are_open_at_once(tmp_path: Path) -> None:
    """More than the address space has room for at 1 TiB each."""
    open_ones = [zlmdb.open(tmp_path / f"db{i}", Store, durability="none") for i in range(40)]
    for i, db in enumerate(open_ones):
        put(db, n=i)
    assert [numbers(db)["n"] for db in open_ones] == list(range(40))
    for db in open_ones:
        db.close()
    with zlmdb.open(tmp_path / "db0", Store) as db:
        assert db.maxsize >= 1 << 30


# -- what is in the file ----------------------------------------------------------------------------------------------


class Indexed(zlmdb.Table[int, zlmdb.Json[dict[str, Any]]], name="indexed things"):
    by_name = zlmdb.UniqueIndex[str]("name")
    by_kind = zlmdb.Index[str]("kind")


class Everything(Store):
    indexed: Indexed


def test_tables_says_what_the_file_holds(make_db: Callable[..., Any]) -> None:
    db = make_db(Everything)
    put(db, a=1, b=2)
    with db.write() as t:
        t.indexed[1] = {"name": "x", "kind": "y"}
    found = db.tables()
    assert set(found) == {"numbers", "indexed things"}
    info = found["numbers"]
    assert (info.name, info.key, info.value, info.count) == ("numbers", "str", "int64", 2)
    assert info.bytes > 0
    assert info.indexes == ()
    info = found["indexed things"]
    assert (info.key, info.value, info.count) == ("int", "json", 1)
    assert sorted(info.indexes) == ["by_kind", "by_name"]


@on_disk
def test_tables_lists_undeclared_and_classic_tables(make_db: Callable[..., Any], combo: str) -> None:
    @zlmdb.table("0d1f7a50-6a4c-4b57-9d52-4a45b6a3a003")
    class Classic(zlmdb.MapOidString): ...

    class Empty(zlmdb.Schema): ...

    with make_db(Everything) as db:
        put(db, a=1)
    with make_db(Empty) as db:
        classic = db.attach_table(Classic)
        with db.begin(write=True) as txn:
            classic[txn, 1] = "x"
            classic[txn, 2] = "y"
        found = db.tables()
        assert found["numbers"].count == 1
        info = found["0d1f7a50-6a4c-4b57-9d52-4a45b6a3a003"]
        assert str(info.uuid) == "0d1f7a50-6a4c-4b57-9d52-4a45b6a3a003"
        assert (info.key, info.value, info.count) == ("oid", "string", 2)


def test_tables_lists_attached_indexes_where_the_file_knows_them(make_db: Callable[..., Any], combo: str) -> None:
    @zlmdb.table("0d1f7a50-6a4c-4b57-9d52-4a45b6a3a004")
    class Names(zlmdb.MapOidString):
        """Names by number."""

    @zlmdb.table("0d1f7a50-6a4c-4b57-9d52-4a45b6a3a005")
    class Numbers(zlmdb.MapStringOid):
        """Their index."""

    db = make_db(zlmdb.Schema)
    names = db.attach_table(Names)
    names.attach_index("by_name", db.attach_table(Numbers), lambda name: name)
    with db.begin(write=True) as txn:
        names[txn, 1] = "ann"
    found = db.tables()
    assert found["0d1f7a50-6a4c-4b57-9d52-4a45b6a3a004"].indexes == (("by_name",) if combo.endswith("tables") else ())
    assert found["0d1f7a50-6a4c-4b57-9d52-4a45b6a3a005"].indexes == ()


def test_tables_works_inside_a_transaction(make_db: Callable[..., Any]) -> None:
    db = make_db(Everything)
    with db.write() as t:
        t.numbers["a"] = 1
        assert db.tables()["numbers"].count == 0
    with db.read():
        assert db.tables()["numbers"].count == 1


# -- processes --------------------------------------------------------------------------------------------------------


def test_a_pickled_database_opens_the_same_file(path: str) -> None:
    with zlmdb.open(path, Store, durability="none") as db:
        put(db, a=1)
        copy = pickle.loads(pickle.dumps(db))
        assert copy._open_store is db._open_store
        put(copy, b=2)
        copy.close()
        assert numbers(db) == {"a": 1, "b": 2}
        data = pickle.dumps(db)
    with pickle.loads(data) as again:
        assert numbers(again) == {"a": 1, "b": 2}
        assert again.is_sync is False


@pytest.mark.parametrize("create", [True, False])
def test_unpickling_makes_nothing_that_was_not_to_be_made(path: str, create: bool) -> None:
    with zlmdb.open(path, zlmdb.Schema):
        pass
    with zlmdb.open(path, Store, create=create) as db:
        data = pickle.dumps(db)
    with pickle.loads(data) as again:
        assert ("numbers" in again.tables()) == create
    zlmdb.Database.scratch(path)
    with pytest.raises(FileNotFoundError, match="not at"):
        pickle.loads(data)
    assert not os.path.exists(path)


def test_databases_without_a_path_are_not_pickled() -> None:
    with zlmdb.open(None, Store) as memory, zlmdb.Database() as temporary:
        for db in (memory, temporary):
            with pytest.raises(TypeError, match="path"):
                pickle.dumps(db)


def count_in_process(db: Any, times: int) -> None:
    with db:
        for _ in range(times):
            with db.write() as t:
                t.numbers["n"] = t.numbers.get("n", 0) + 1


def test_a_database_is_handed_to_other_processes(path: str) -> None:
    with zlmdb.open(path, Store, durability="none") as db:
        put(db, n=0)
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=count_in_process, args=(db, 20)) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(600)
            assert worker.exitcode == 0
        assert numbers(db) == {"n": 40}


def test_the_working_directory_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with zlmdb.open("db", Store) as db:
        put(db, a=1)
        monkeypatch.chdir(tmp_path / "there")
        put(db, b=2)
        assert db.stats()["current_size"] > 0
        assert numbers(db) == {"a": 1, "b": 2}
        with zlmdb.open(tmp_path / "here" / "db", Store) as other:
            assert other._open_store is db._open_store
        with zlmdb.open("db", Store) as new:
            assert numbers(new) == {}
    assert sorted(os.listdir(tmp_path / "here" / "db")) == ["data.mdb", "lock.mdb", "writer.lock"]


# -- many tables ------------------------------------------------------------------------------------------------------


def many(count: int) -> Any:
    names = {f"table{n}": zlmdb.Table[int, str] for n in range(count)}
    return type("Many", (zlmdb.Schema,), {"__annotations__": names})


def test_there_is_room_for_hundreds_of_tables(path: str) -> None:
    with zlmdb.open(path, many(300), durability="none") as db, db.write() as t:
        for n in range(300):
            t[f"table{n}"][n] = "x"
    with zlmdb.open(path) as db:
        assert len(db.tables()) == 300


def test_too_many_tables_are_refused_naming_the_limit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_TABLES", 10)
    with pytest.raises(zlmdb.DatabaseFull, match="MAX_TABLES"):
        zlmdb.open(path, many(20))
    with zlmdb.open(path, many(5)) as db:
        assert len(db.tables()) == 5


def test_no_file_gets_more_tables_than_can_be_opened(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each schema has few enough tables, both together have not: nobody could open such a file any more."""
    monkeypatch.setattr(engine, "MAX_TABLES", 10)
    with zlmdb.open(path, many(6)) as db, db.write() as t:
        t["table5"][1] = "x"
    others: Any = {f"other{n}": zlmdb.Table[int, str] for n in range(6)}
    with pytest.raises(zlmdb.DatabaseFull, match="MAX_TABLES"):
        zlmdb.open(path, type("Others", (zlmdb.Schema,), {"__annotations__": others}))
    with zlmdb.open(path) as found, found.read() as t:
        assert (len(found.tables()), t["table5"][1]) == (6, "x")


def test_processes_that_make_tables_at_once_do_not_pass_the_limit(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process makes two when this one has looked, and before it makes two itself."""
    change = attach.change_contents
    other = """if True:
        import sys, zlmdb
        others = {f"other{n}": zlmdb.Table[int, str] for n in range(2)}
        zlmdb.open(sys.argv[1], type("Others", (zlmdb.Schema,), {"__annotations__": others})).close()"""

    def late(*given: Any) -> Any:
        subprocess.run([sys.executable, "-c", other, path], check=True)
        return change(*given)

    with zlmdb.open(path, many(6)) as db, db.write() as t:
        t["table5"][1] = "x"
    monkeypatch.setattr(engine, "MAX_TABLES", 10)
    monkeypatch.setattr(attach, "change_contents", late)
    with pytest.raises(zlmdb.DatabaseFull, match="MAX_TABLES"):
        zlmdb.open(path, many(8))
    with zlmdb.open(path) as found, found.read() as t:
        assert (len(found.tables()), t["table5"][1]) == (8, "x")


def test_a_relative_path_means_the_same_file_after_the_working_directory_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened again, it made an empty database elsewhere; a pickle, as for another process, opened what lay there."""
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    db = zlmdb.open("db", Store)
    put(db, one=1)
    monkeypatch.chdir(tmp_path / "other")
    copy = pickle.loads(pickle.dumps(db))
    assert numbers(copy) == {"one": 1}
    copy.close()
    db.close()
    with db:
        assert numbers(db) == {"one": 1}
    assert not list((tmp_path / "other").iterdir())


def test_a_path_of_bytes_is_refused_in_words(tmp_path: Path) -> None:
    class Given(os.PathLike):  # type: ignore[type-arg]  # of bytes, which no signature admits
        def __fspath__(self) -> bytes:
            return os.fsencode(tmp_path)

    given: Any = Given()
    for path in (given, os.fspath(given)):
        with pytest.raises(TypeError, match="expected a path"):
            zlmdb.open(path, Store)
