"""Kills, power cuts, failing calls, damaged files and everything at once, each in small.

In full they are commands, ``python -m tests.reliability.<name>``; docs/reliability.rst has what those found.
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import zlmdb

from .office import Person
from .reliability import (
    cachelife,
    delays,
    failing,
    history,
    kill,
    killgroups,
    killwork,
    ledger,
    limits,
    many,
    mutate,
    patches,
    powercut,
    program,
    queuelife,
    shim,
    together,
)

pytestmark = [
    pytest.mark.twice,  # processes and what is in files, which no version of Python makes different
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the harnesses fork what may crash"),
]
records_writes = pytest.mark.skipif(shim.compiler() is None, reason="writes are recorded by a C library, on Linux")


def test_every_test_that_the_page_names_exists() -> None:
    root = Path(__file__).resolve().parent
    page = (root.parent / "docs" / "reliability.rst").read_text(encoding="utf-8")
    named = re.findall(r"``(test_\w+\.py)::(test_\w+)``", page)
    assert len(named) > 30
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (root / file).read_text("utf-8")]
    assert missing == []


@pytest.mark.twice
@pytest.mark.parametrize("durability", ["full", "none"])
def test_nothing_acknowledged_is_lost_by_kills(tmp_path: Path, durability: str) -> None:
    found = kill.kills(tmp_path, 5, durability)
    assert found["failures"] == []
    assert found["transactions"] >= 5


@pytest.mark.once  # what is in a file does not depend on the version of Python
def test_long_operations_that_are_killed_are_done_wholly_or_not_at_all(tmp_path: Path) -> None:
    found = killwork.kills(tmp_path, 1, rows=2000)
    assert found["failures"] == []
    assert set(found["kills"]) == {work.__name__ for work in killwork.WORKS}
    assert sum(found["kills"].values()) > 0


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
@pytest.mark.skipif(
    sys.platform != "linux", reason="the limits are those of Linux: of address space, of open files, tmpfs"
)
@pytest.mark.parametrize(
    ("limit", "every", "refused"),
    [
        ("descriptors", 7, {"open_again", "restore", "salvage"}),
        ("memory", 250, {"open_again"}),
        ("sizes", 300, {"block", "run"}),
        ("room", 300, {"block", "run", "backup", "restore", "salvage"}),
        ("threads", 1, {"backup"}),
    ],
)
def test_a_limit_of_the_system_is_an_error_and_the_database_goes_on(limit: str, every: int, refused: set[str]) -> None:
    if limit in ("room", "threads") and os.geteuid() != 0:
        pytest.skip("only root can mount the small disk that is to be full, and be a user without room for threads")
    with tempfile.TemporaryDirectory() as place:  # where another user may go, as in that of pytest none may
        for name in ("block", "run", "backup", "restore", "salvage", "open_again"):
            if limit == "memory" and name == "backup":
                continue  # Python may wait for ever for a thread that has no memory to begin
            try:
                found = limits.limits(Path(place), limit, name, every)
            except limits.CannotMountError as error:
                pytest.skip(f"a container that lets nobody mount the small disk that is to be full: {error}")
            assert found["failures"] == []
            seen = found["errors"][f"{limit}, {name}"]
            assert name not in refused or sum(seen.values()) > 0


@pytest.mark.once  # PyPy is slow until it is warm: few rounds end before their kill
def test_nothing_acknowledged_is_lost_by_kills_of_groups(tmp_path: Path) -> None:
    jobs = 0
    for turn in range(5):  # in so few rounds perhaps no job is done before the kill
        found = killgroups.kills(tmp_path / str(turn), 2, seed=turn + 1, longest=0.1 * 4**turn)
        assert found["failures"] == []
        assert found["stored"] >= found["acknowledged"] > 0
        jobs += found["jobs"]
        if jobs:
            break
    assert jobs > 0


@pytest.mark.once
def test_nothing_is_lost_or_done_twice_by_kills_of_a_program_with_everything(tmp_path: Path) -> None:
    found = program.kills(tmp_path, len(program.ROLES))
    assert found["failures"] == []
    assert found["rounds"] == 1
    assert found["put"] + found["cached"] + found["clerk"] + found["mirrored"] > 0


def test_many_threads_and_tasks_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    found = many.soak(tmp_path, 1, 20, 50)
    assert found["failures"] == []
    assert found["growths"] > 0
    assert found["stored"] >= found["acknowledged"] > 0


@records_writes
@pytest.mark.once
def test_a_power_cut_loses_nothing_that_a_group_has_acknowledged(tmp_path: Path) -> None:
    found = powercut.cuts(tmp_path, 10, 21, together=7)
    assert found["failures"] == []
    assert found["lost_transactions"] == {"0": 10}


@records_writes
@pytest.mark.once
@pytest.mark.parametrize(("durability", "lmdb_format"), [("full", "0.9"), ("commit", "1.0"), ("none", "0.9")])
def test_a_power_cut_costs_what_is_documented(tmp_path: Path, durability: str, lmdb_format: str) -> None:
    found = powercut.cuts(tmp_path, 15, 20, durability, lmdb_format)
    assert found["failures"] == []
    whole = found["outcomes"].get("whole", 0)
    if durability == "full":
        assert found["lost_transactions"] == {"0": whole}
    if durability == "none":
        assert whole < 15, "without a flush files are lost: the simulation cuts nothing if none is"


def test_a_cut_keeps_what_was_flushed_and_any_of_the_rest() -> None:
    write = powercut.Event(powercut.WRITE, False, 0, b"a" * 1024)
    flush = powercut.Event(powercut.FLUSH, False, 0, b"")
    later = powercut.Event(powercut.WRITE, False, 0, b"b" * 1024)
    synchronous = later._replace(synchronous=True, offset=2048)
    images = {powercut.cut([write, flush, later, synchronous, flush], 4, random.Random(n)) for n in range(200)}
    assert {image[1024:] for image in images} == {bytes(1024) + b"b" * 1024}
    assert {image[:512] + image[512:1024] for image in images} == {
        one * 512 + other * 512 for one in (b"a", b"b") for other in (b"a", b"b")
    }


@pytest.mark.once
def test_after_any_failing_call_of_the_engine_the_database_goes_on(tmp_path: Path) -> None:
    found = failing.engine_calls(tmp_path, 600, 80)
    assert found["failures"] == []
    assert sum(found["lmdb, no space"].get(name, 0) for name in ("DiskError", "TransactionPoisoned")) > 3


@pytest.mark.once
def test_whatever_call_of_the_engine_fails_the_error_is_one_of_ours(tmp_path: Path) -> None:
    fuse = failing.Fuse(lambda: zlmdb.lmdb.Error("mdb_get: Input/output error"))
    at = failed = 0
    with zlmdb.open(tmp_path / "db", ledger.Ledger, durability="none", maxsize=1 << 26) as db:
        db._open_store.env = failing.Fused(db._open_store.env, fuse)
        while fuse.calls >= at:
            at += 1
            fuse.light(at)
            try:
                with db.write() as t:
                    failing.rarer(t)
                    t.people[1] = Person(None, 77)  # whose link is deferred
                    t.people[77] = Person()
                failing.follow(db)
            except zlmdb.Error:
                failed += 1
            calls, _ = fuse.calls, fuse.light(None)
            db.run(lambda t: t.marks.put_many([(9, ledger.Mark("m", [], 3, None))]))
            fuse.calls = calls
        db._open_store.env = db._open_store.env._inner
        assert db.check().ok
    assert at > failed > at // 2


@records_writes
@pytest.mark.once
def test_after_any_failing_write_the_database_goes_on(tmp_path: Path) -> None:
    found = failing.system_calls(tmp_path, 400, 24)
    assert found["failures"] == []
    assert found["full, i/o error"]["DiskError"] > 1


@pytest.mark.twice
@pytest.mark.parametrize("lmdb_format", ["0.9", "1.0"])
def test_damaged_files_are_refused_or_right(tmp_path: Path, lmdb_format: str) -> None:
    found: dict[str, Any] = mutate.mutations(tmp_path, 25, lmdb_format)
    assert found["failures"] == []
    assert sum(found["verified"].values()) == 25
    assert found["verified"]["refused by verify"] > 0


@pytest.mark.once
@pytest.mark.parametrize("engine", ["lmdb", "memory", "classic"])
def test_histories_of_databases_are_those_of_plain_dicts(tmp_path: Path, engine: str) -> None:
    with history.quiet():
        for seed in range(1, 3):
            statements, failure = history.life(tmp_path, seed, engine, 40)
            assert failure == ""
            assert statements > 0


@pytest.mark.parametrize("seed", range(1, 5))
def test_random_calls_of_a_cache_and_of_a_queue_are_those_of_a_model(tmp_path: Path, seed: int) -> None:
    assert cachelife.life(tmp_path, seed, 40) == ""
    assert queuelife.life(tmp_path, seed, 25) == ""


def test_a_failing_history_is_replayed_with_fewer_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(self: history.History) -> None:
        self.note("step")
        if self.log.count("step") == 7:
            raise AssertionError("the seventh step")

    monkeypatch.setattr(history.History, "step", step)
    with history.quiet():
        found = history.lives(tmp_path, first=5, run=0.001, steps=60, engine="memory")["failures"]
    assert found[0].startswith("--first 5 --engine memory --steps 7: ")
    assert "the seventh step" in found[0]


@pytest.mark.twice
@pytest.mark.parametrize("delayed", [0.0, 0.02] if sys.implementation.name == "cpython" else [0.0])
def test_writers_readers_a_killer_and_backups_together(tmp_path: Path, delayed: float) -> None:
    with delays.paused(delayed):
        found = together.together(tmp_path, 2.0, 2, 2)
    assert found["failures"] == []
    assert found["records"] > 0


@pytest.mark.once
@pytest.mark.parametrize("lmdb_format", ["0.9", "1.0"])
def test_patched_nodes_and_pages_are_refused_or_do_no_harm(tmp_path: Path, lmdb_format: str) -> None:
    found = patches.patches(tmp_path, 500, lmdb_format)
    assert found["failures"] == []
    seen = found["patches"]
    assert seen["refused"] > 20 * (seen["the same records"] + seen["records of the patched nodes differ"]), seen
    assert seen["records of the patched nodes differ"] > 0
