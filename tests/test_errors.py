"""Every refusal is a named error of ours, says what to do, and leaves nothing behind; under ``python -O`` too."""

from __future__ import annotations

import errno
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from zlmdb import errors

from . import workers

ROOT = Path(__file__).resolve().parent.parent
ALL = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.Error)]


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.parametrize("options", [[], ["-O"]])
def test_refusals_hold_with_and_without_assertions(options: list[str], tmp_path: Path) -> None:
    command = [sys.executable, *options, str(ROOT / "tests" / "programs" / "refusals.py")]
    environment = workers.surroundings(TMPDIR=str(tmp_path))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 200
    assert ("-O" in done.stdout) == bool(options)


@pytest.mark.parametrize(
    "use",
    [
        lambda path, db: zlmdb.open(path, zlmdb.Schema),
        lambda path, db: zlmdb.Cache(path),
        lambda path, db: db.backup(path),
        lambda path, db: zlmdb.Database.restore(path, "."),
        lambda path, db: zlmdb.Database.restore("data", path),
    ],
    ids=["open", "cache", "backup", "restore from", "restore to"],
)
def test_a_path_that_the_system_refuses_is_named_with_what_to_do(
    use: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the many reasons, one that is the same for every user and file system."""
    monkeypatch.chdir(tmp_path)
    with zlmdb.open("db", zlmdb.Schema) as db:
        db.backup("data")
        with pytest.raises(OSError, match="nnn.*cannot be used.*choose a shorter path") as caught:
            use("n" * 300, db)
    assert caught.value.errno == errno.ENAMETOOLONG
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "db"]


def test_a_path_with_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="choose another path"):
        zlmdb.open("a\0b", zlmdb.Schema)


@pytest.mark.parametrize("error", ALL)
def test_an_error_prints_its_message_carries_its_facts_and_survives_pickling(error: type[errors.Error]) -> None:
    raised = error("the message", table="users", key=("a", 1), size=600, limit=511, path="somewhere")
    assert str(raised) == "the message"
    copy: Any = pickle.loads(pickle.dumps(raised))
    assert type(copy) is error
    assert (str(copy), copy.table, copy.key, copy.size, copy.limit, copy.path, copy.index) == (
        "the message", "users", ("a", 1), 600, 511, "somewhere", None,
    )  # fmt: skip


@pytest.mark.parametrize("error", ALL)
def test_an_error_is_also_the_builtin_that_a_caller_would_catch(error: type[errors.Error]) -> None:
    builtins = [
        base for base in error.__mro__ if base.__module__ == "builtins" and base not in (Exception, BaseException)
    ]
    assert error is errors.Error or builtins != [object], error


class Broken:
    """An engine's transaction that fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*args: Any, **kwargs: Any) -> Any:
            raise self.error

        return fail


@pytest.mark.parametrize(
    "work",
    [len, list, lambda table: table[1], lambda table: table.select().first(), lambda table: table._cursor()],
    ids=["len", "list", "get", "select", "cursor"],
)
def test_the_error_of_the_engine_is_the_cause_of_ours(work: Any, tmp_path: Path) -> None:
    error = zlmdb.lmdb.DiskError("broken")
    with zlmdb.open(tmp_path / "data", Numbers) as db, db.read() as t:
        t.pairs._use(Broken(error))
        with pytest.raises(zlmdb.DiskError) as caught:
            work(t.pairs)
    assert caught.value.__cause__ is error


def test_the_error_of_the_engine_is_the_cause_where_the_store_reads(tmp_path: Path) -> None:
    error, mine = zlmdb.lmdb.DiskError("broken"), ZeroDivisionError()
    with zlmdb.open(tmp_path / "data", Numbers) as db:
        with pytest.raises(zlmdb.DiskError) as caught, db._open_store.reading():
            raise error
        with pytest.raises(ZeroDivisionError) as own, db._open_store.reading():
            raise mine from error
    assert caught.value.__cause__ is error
    assert own.value is mine
    assert mine.__cause__ is error


class Numbers(zlmdb.Schema):
    pairs: zlmdb.Table[int, tuple[int, str]]
    jsons: zlmdb.Table[int, zlmdb.Json[Any]]


@pytest.mark.parametrize("name", ["pairs", "jsons"])
@pytest.mark.parametrize("garbage", [b"", b"\xc1", b"\x93\x01\x02", b'{"half": '])
def test_undecodable_bytes_name_the_table_and_the_key(tmp_path: Path, name: str, garbage: bytes) -> None:
    """The file's fault is a DecodeError, on every way to read; the transaction stays usable."""
    with zlmdb.open(tmp_path / "data", Numbers) as db:
        with db.write() as t:
            table = t[name]
            table[1] = (1, "one") if name == "pairs" else [1, "one"]
            table[2] = (2, "two") if name == "pairs" else [2, "two"]
            t.txn._engine_txn.put(table._storage.encode_key(2), garbage, db=t.txn._handle(table._storage.space)[0])
        with db.read() as t:
            for read in (
                lambda: t[name][2],
                lambda: t[name].get(2),
                lambda: list(t[name].values()),
                lambda: list(t[name].items()),
                lambda: list(t[name].get_many([1, 2])),
            ):
                with pytest.raises(zlmdb.DecodeError, match=f"'{name}'.*2") as caught:
                    read()
                assert caught.value.table == name
                assert caught.value.key == 2
            assert list(t[name]) == [1, 2]
            assert t[name][1] is not None


def test_undecodable_keys_are_decode_errors(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "data", Numbers) as db:
        with db.write() as t:
            t.txn._engine_txn.put(b"short", b"", db=t.txn._handle(t.pairs._storage.space)[0])  # type: ignore[index]  # it is there
        with db.read() as t, pytest.raises(zlmdb.DecodeError, match="'pairs'"):
            list(t.pairs)
