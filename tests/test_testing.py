"""What `zlmdb.testing` gives to the tests of programs: databases, failures on request, kills."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from zlmdb.testing import database_fixture, inject, kill_points

ROOT = Path(__file__).parents[1]


class Words(zlmdb.Table[int, str]):
    by_text = zlmdb.Index[str](lambda text: text, version=1)


class Store(zlmdb.Schema):
    words: Words


@pytest.fixture(params=["memory", "file", "toy"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    path = {"memory": None, "file": tmp_path / "db", "toy": f"toy://{tmp_path}"}[request.param]
    with zlmdb.open(path, Store, durability="none") as db:
        yield db


def words(db: Any) -> dict[int, str]:
    with db.read() as t:
        return dict(t.words)


def test_a_full_database_refuses_writes_and_deletes(db: Any) -> None:
    with db.write() as t:
        t.words[1] = "one"
    with inject(db) as faults:
        faults.full(after=2)  # a record and its entry
        with pytest.raises(zlmdb.DatabaseFull, match="by order of zlmdb.testing"):
            db.run(lambda t: t.words.update({2: "two", 3: "three"}))
        faults.full()
        with pytest.raises(zlmdb.DatabaseFull):
            db.run(lambda t: t.words.put_many([(4, "four"), (5, "five")]))
        with db.write() as t:
            del t.words[1]
    with db.write() as t:
        t.words[6] = "six"
    assert words(db) == {6: "six"}
    assert not db.check().found


def test_a_full_disk_refuses_the_commit_and_keeps_the_last_state(db: Any) -> None:
    with inject(db) as faults:
        faults.disk_full(after=1)
        for key in (1, 2, 3):
            try:
                with db.write() as t:
                    t.words[key] = "text"
                    with t.txn.savepoint():
                        t.words[key + 10] = "text"
            except zlmdb.DiskError:
                assert key > 1
        faults.clear()
        with db.write() as t:
            t.words[4] = "text"
    assert sorted(words(db)) == [1, 4, 11]


def test_a_conflict_lets_run_try_again_and_a_block_raise(db: Any) -> None:
    tries: list[int] = []

    def step(t: Any) -> None:
        tries.append(1)
        t.words[1] = "one"

    with inject(db) as faults:
        faults.conflict(2)
        db.run(step)
        faults.conflict()
        with pytest.raises(zlmdb.Conflict), db.write() as t:
            t.words[2] = "two"
    assert len(tries) == 3
    assert words(db) == {1: "one"}


def test_reads_are_not_slowed_by_faults(db: Any) -> None:
    with inject(db), db.read() as t:
        assert "Watched" not in type(t.txn._raw).__name__


def test_wrong_counts_and_places_are_refused(db: Any) -> None:
    with inject(db) as faults, pytest.raises(ValueError, match="-1: expected a number of calls"):
        faults.full(-1)
    with pytest.raises(ValueError, match="'disk': expected 'memory' or 'file'"):
        database_fixture(Store, "disk")  # type: ignore[arg-type]


def fill(path: Path) -> None:
    with zlmdb.open(path, Store, durability="none") as db:
        for key in (1, 2):
            with db.write() as t:
                t.words[key] = "text"
                t.words[key + 10] = "text"


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_kill_at_each_point_leaves_whole_transactions(tmp_path: Path) -> None:
    seen = []
    for point in kill_points(fill, tmp_path / "db"):
        with zlmdb.open(tmp_path / "db", Store) as db:
            found = sorted(words(db))
            assert not db.check().found
        assert found in ([], [1, 11], [1, 2, 11, 12]), point
        seen.append(len(found))
        zlmdb.Database.scratch(tmp_path / "db")
    assert sorted(set(seen)) == [0, 2, 4]
    with zlmdb.open(tmp_path / "db", Store) as db:  # the last run was not killed
        assert len(words(db)) == 4


def fail(path: Path) -> None:
    raise LookupError("no such shelf")


def leave() -> None:
    os._exit(3)


def test_a_run_that_fails_by_itself_is_no_kill(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no such shelf"):
        list(kill_points(fail, tmp_path))
    with pytest.raises(RuntimeError, match="status 3"):
        list(kill_points(leave))


@pytest.mark.once
def test_the_page_of_the_documentation_passes_in_a_pytest_of_its_own(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.rst").read_text()
    [block] = re.findall(r":caption: test_shop\.py\n\n((?:   .*\n|\n)+)", page)
    test = tmp_path / "test_shop.py"
    test.write_text(re.sub(r"^   ", "", block, flags=re.MULTILINE))
    workers = [  # at the same time, and with a directory for each worker, as pytest-xdist does
        subprocess.Popen(
            [sys.executable, "-m", "pytest", "-q", "-p", "zlmdb.testing.plugin", "-p", "no:cacheprovider",
             "-W", "error", f"--basetemp={tmp_path / worker}", str(test)],
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "",
                 "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_XDIST_WORKER": worker},
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for worker in ("popen-gw0", "popen-gw1")
    ]  # fmt: skip
    for process in workers:
        output = process.communicate()[0]
        assert process.returncode == 0, output
        assert "7 passed" in output
    # All that the tests wrote is in the directory of their worker.
    assert {path.name for path in tmp_path.iterdir()} == {test.name, "popen-gw0", "popen-gw1"}


def test_pytest_finds_the_plugin_where_zlmdb_is_installed() -> None:
    settings = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nzlmdb = "zlmdb.testing.plugin"\n' in settings
