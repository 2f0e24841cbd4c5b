"""Waiting goes by a clock that a test does not stop."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

import zlmdb


class Store(zlmdb.Schema):
    jobs: zlmdb.Queue[str]


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still, as under freezegun, which has this function wherever zlmdb has that of Python."""
    found = time.monotonic
    still = found()
    for name, module in list(sys.modules.items()):
        if name == "time" or name.split(".")[0] == "zlmdb":
            for attribute in [one for one, value in list(vars(module).items()) if value is found]:
                monkeypatch.setattr(module, attribute, lambda: still)


@pytest.mark.usefixtures("stopped")
def test_a_worker_gives_up_where_the_clock_stands_still() -> None:
    with zlmdb.open(None, Store) as db, pytest.raises(TimeoutError):
        zlmdb.Worker(db, lambda t: t.jobs).get(timeout=0.01)


@pytest.mark.usefixtures("stopped")
def test_a_writer_gives_up_where_the_clock_stands_still(tmp_path: Path) -> None:
    late: list[zlmdb.WriterTimeout] = []

    def other() -> None:
        try:
            with db.write(timeout=0.01):
                pass
        except zlmdb.WriterTimeout as error:
            late.append(error)

    with zlmdb.open(tmp_path / "db", Store) as db, db.write():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(late) == 1


def test_a_queue_asks_for_the_time_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """So freezegun and time-machine decide when a delay is over."""
    with zlmdb.open(None, Store) as db, db.write() as t:
        t.jobs.put("later", delay=60)
        assert t.jobs.claim() is None
        now = time.time() + 61
        monkeypatch.setattr(time, "time", lambda: now)
        job = t.jobs.claim()
        assert job is not None
        assert job.body == "later"
