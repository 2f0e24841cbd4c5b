"""``flush_every=``: a thread flushes what was committed, and ends with the database."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import zlmdb


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The transactions that were the last ones when a store was flushed by force."""
    from zlmdb.database import flushing

    done: list[int] = []
    real = flushing.Flusher.flush

    def flush(self: Any) -> None:
        before = self._flushed
        real(self)
        if self._flushed != before:
            done.append(self._flushed)

    monkeypatch.setattr(flushing.Flusher, "flush", flush)
    return done


@pytest.mark.parametrize("durability", ["commit", "none"])
def test_what_was_committed_is_flushed_soon_and_at_the_end(tmp_path: Path, durability: Any, flushes: list[int]) -> None:
    db = zlmdb.open(tmp_path / "db", Store, durability=durability, flush_every=0.01)
    until(lambda: len(flushes) == 1)
    db.auto.numbers[1] = 1
    until(lambda: len(flushes) == 2)
    time.sleep(0.05)
    assert len(flushes) == 2  # nothing new
    db.close()
    with zlmdb.open(tmp_path / "db", Store, durability=durability, flush_every=1000) as db:
        db.auto.numbers[2] = 2
    assert len(flushes) == 3
    assert not [thread for thread in threading.enumerate() if thread.name == "zlmdb-flush"]


def test_flush_is_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without force, LMDB flushes nothing of a database that does not flush by itself."""
    forced: list[bool] = []
    monkeypatch.setattr(zlmdb.Database, "sync", lambda self, force=False: forced.append(force))
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        db.auto.numbers[1] = 1
        db.flush()
    assert forced == [True]


def test_a_failure_is_logged_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from zlmdb.database import flushing

    tries: list[int] = []

    def flush(self: Any) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(flushing.Flusher, "flush", flush)
    with caplog.at_level(logging.WARNING), zlmdb.open(
        tmp_path / "db", Store, durability="none", flush_every=0.01
    ):  # fmt: skip
        until(lambda: len(tries) >= 3)
    assert "No space left" in caplog.text


def test_a_failure_of_the_last_flush_is_an_error_of_ours_and_close_can_be_called_again(tmp_path: Path) -> None:
    """It was an error of py-lmdb, which is no `zlmdb.Error`."""
    db = zlmdb.open(tmp_path / "db", Store, durability="none", flush_every=1000)
    db.auto.numbers[1] = 1
    store = db._open_store
    env = store.env

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return getattr(env, name)

        def sync(self, force: bool) -> None:
            raise zlmdb.lmdb.Error(f"mdb_env_sync: {os.strerror(errno.EIO)}")

    store.env = Broken()
    with pytest.raises(zlmdb.DiskError, match="Input/output error"):
        db.close()
    assert db.is_open
    assert flushing_threads() == 1
    store.env = env
    db.close()
    assert not db.is_open
    assert flushing_threads() == 0


def flushing_threads() -> int:
    return len([thread for thread in threading.enumerate() if thread.name == "zlmdb-flush"])


def test_an_interrupt_of_a_closing_leaves_a_database_that_flushes(
    tmp_path: Path, flushes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`close` waits for the thread that flushes, and an interrupt left the database open without one."""
    db = zlmdb.open(tmp_path / "db", Store, durability="none", flush_every=0.01)

    def interrupted(self: Any) -> None:
        self._stopped.set()
        raise KeyboardInterrupt

    from zlmdb.database import flushing

    with monkeypatch.context() as patched:
        patched.setattr(flushing.Flusher, "stop", interrupted)
        with pytest.raises(KeyboardInterrupt):
            db.close()
    before = len(flushes)
    db.auto.numbers[1] = 1
    until(lambda: len(flushes) > before)
    db.close()
    until(lambda: flushing_threads() == 0)


def test_a_database_that_is_dropped_ends_its_thread(tmp_path: Path) -> None:
    import gc

    db: Any = zlmdb.open(tmp_path / "db", Store, durability="none", flush_every=0.01)
    assert db.is_open
    del db
    gc.collect()
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "zlmdb-flush"])


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("seconds", [1e20, float("inf")])
def test_a_thread_that_flushes_after_longer_than_any_wait_sleeps(tmp_path: Path, seconds: float) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none", flush_every=seconds):
        time.sleep(0.02)  # for the thread to begin
        assert [thread for thread in threading.enumerate() if thread.name == "zlmdb-flush"]


@pytest.mark.parametrize(
    "options",
    [{"flush_every": 1.0}, {"flush_every": 0, "durability": "none"}, {"flush_every": -1.0, "durability": "commit"}],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, options: Any) -> None:
    with pytest.raises(ValueError, match="flush_every"):
        zlmdb.open(tmp_path / "db", Store, **options)
    with pytest.raises(ValueError, match="flush_every"):
        zlmdb.open(None, Store, durability="none", flush_every=1.0)
    assert not (tmp_path / "db").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_flushes_too(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none", flush_every=0.01) as db:
        db.auto.numbers[1] = 1
        child = os.fork()
        if child == 0:
            try:
                db.auto.numbers[2] = 2
                end = time.monotonic() + 10
                while time.monotonic() < end:
                    last = db._open_store.environment.info()["last_txnid"]
                    if db._flusher is not None and db._flusher._flushed == last:
                        os._exit(0)
                    time.sleep(0.005)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_has_no_thread_of_a_database_that_was_closed_before(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none", flush_every=60) as db:
        db.auto.numbers[1] = 1
    child = os.fork()
    if child == 0:
        os._exit(len([thread for thread in threading.enumerate() if thread.name == "zlmdb-flush"]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    del db
