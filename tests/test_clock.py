"""Waiting goes by a clock that a test does not stop."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass, make_dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from types import ModuleType, new_class
from typing import Any

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


def test_a_worker_rests_where_the_clock_stands_still_before_a_job_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked again without any rest, which took a processor."""
    queue = new_class("Jobs", (zlmdb.Queue[str],), {"clock": lambda: 1000.0})
    schema = type("Store", (zlmdb.Schema,), {"__annotations__": {"jobs": queue}})
    with zlmdb.open(None, schema) as db:
        worker = zlmdb.Worker[str](db, lambda t: t.jobs)  # type: ignore[attr-defined]  # checkers see no such table
        worker.put("soon", delay=0.000002)
        looks: list[object] = []
        look = worker._look
        monkeypatch.setattr(worker, "_look", lambda: looks.append(1) or look())  # type: ignore[func-returns-value]
        with pytest.raises(TimeoutError):
            worker.get(timeout=0.02)
        assert len(looks) < 25


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


@dataclass
class Session:
    until: float


class Sessions(zlmdb.Table[str, Session], expires="until"): ...


class Expiring(zlmdb.Schema):
    sessions: Sessions


def test_expiry_asks_for_the_time_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """freezegun puts its function into the module `time`, and finds no other place of an open database."""
    with zlmdb.open(None, Expiring) as db:
        db.auto.sessions["a"] = Session(time.time() + 60)
        later = time.time() + 61
        monkeypatch.setattr(time, "time", lambda: later)
        assert db.auto.sessions.get("a") is None
        assert db.clock() == later
        assert db.sweep() == 1


@pytest.mark.parametrize("now", [datetime(2030, 1, 1), float("nan"), None, "1000", 10**400])
def test_a_clock_that_tells_no_seconds_is_named(now: Any) -> None:
    jobs = new_class("Jobs", (zlmdb.Queue[str],), {"clock": lambda: now})
    schema = type("Store", (zlmdb.Schema,), {"__annotations__": {"jobs": jobs}})
    with zlmdb.open(None, schema) as db, zlmdb.open(None, Expiring) as expiring:
        with db.write() as t, pytest.raises(TypeError, match="seconds since 1970"):
            t.jobs.claim()
        expiring.clock = lambda: now
        with expiring.read() as t, pytest.raises(TypeError, match="seconds since 1970"):
            len(t.sessions)
        for clock in (1000.0, datetime(2030, 1, 1)):
            with pytest.raises(TypeError, match="seconds since 1970"):
                expiring.clock = clock  # type: ignore[assignment]  # the error to see
            with pytest.raises(TypeError, match="seconds since 1970"):
                new_class("Jobs", (zlmdb.Queue[str],), {"clock": clock})


@pytest.mark.parametrize("seconds", [float("nan"), "5", timedelta(seconds=5)])
def test_seconds_that_are_none_are_refused_where_nobody_has_to_wait(seconds: Any) -> None:
    """A timeout failed only where another one wrote, and one that is no number waited for ever."""
    with zlmdb.open(None, Store) as db, zlmdb.Cache(None) as cache:
        for use in (
            lambda: db.write(timeout=seconds),
            lambda: zlmdb.Worker(db, lambda t: t.jobs).get(timeout=seconds),
            lambda: setattr(db, "long_read", seconds),
            lambda: cache.memoize(lock=seconds, name="f")(len),
            lambda: cache.memoize(expire=seconds, name="f")(len),
        ):
            with pytest.raises((TypeError, ValueError), match=r"expected (the )?seconds"):
                use()
        with db.write() as t:
            t.jobs.put("all writers are there")
        assert db.long_read == 60


@dataclass
class Trip:
    day: date
    number: int
    name: str = ""
    other: str = ""
    more: str = ""


class Trips(zlmdb.Schema):
    trips: zlmdb.Table[int, Trip]


def test_a_query_that_is_first_asked_while_freezegun_has_classes_of_its_own_reads_the_true_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It could not be read as a class of freezegun, and could not later either."""
    fake = type("FakeDate", (date,), {"__module__": "freezegun.api"})
    with zlmdb.open(None, Trips) as db:
        with db.write() as t:
            t.trips[1] = Trip(date(2030, 1, 1), 1)
        with monkeypatch.context() as frozen:
            frozen.setitem(sys.modules, "freezegun", ModuleType("freezegun"))
            frozen.setattr(sys.modules[__name__], "date", fake)
            with db.read() as t:
                assert t.trips.where(lambda trip: trip.day.year == 2030).count() == 1
        with db.read() as t:
            assert t.trips.where(lambda trip: trip.day == date(2030, 1, 1)).keys().all() == [1]


def test_a_class_that_was_defined_while_freezegun_stopped_the_time_is_refused_in_words() -> None:
    """It was told to be a dataclass, or not to be one of the twenty types of keys."""
    fake: Any = type("FakeDate", (date,), {"__module__": "freezegun.api"})
    for table in (zlmdb.Table[fake, int], zlmdb.Table[int, fake], zlmdb.Table[int, make_dataclass("R", [("a", fake)])]):
        with pytest.raises(TypeError, match="FakeDate .*defined while freezegun had this one"):
            zlmdb.open(None, type("Frozen", (zlmdb.Schema,), {"__annotations__": {"rows": table}}))


FROZEN = """
from __future__ import annotations
import datetime, sys, types, zlmdb
from dataclasses import dataclass

@dataclass
class Trip:
    start: datetime.datetime
    day: datetime.date

class Trips(zlmdb.Table[datetime.date, Trip]):
    by_start = zlmdb.Index[datetime.datetime]("start")

@dataclass
class Outer:
    trips: list[Trip]

class Store(zlmdb.Schema):
    trips: Trips
    asjson: zlmdb.Table[int, zlmdb.Json[Outer]]
    ascbor: zlmdb.Table[int, zlmdb.Cbor[Outer]]

true = datetime.datetime, datetime.date
moment = true[0](2030, 1, 1, tzinfo=datetime.timezone.utc)

def uses():
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.trips[moment.date()] = trip = Trip(moment, moment.date())
            t.asjson[1] = t.ascbor[1] = Outer([trip])
        with db.read() as t:
            found = t.trips.where(lambda trip: trip.start == moment and trip.day == moment.date()).values().all()
            found += [*t.asjson[1].trips, *t.ascbor[1].trips]
    print(len(found) == 3 and all([type(one.start) in true and type(one.day) in true for one in found]))

sys.modules["freezegun"] = types.ModuleType("freezegun")

class Fake(type):
    def __instancecheck__(cls, one):
        return isinstance(one, cls.__base__)

fakes = {one: Fake("Fake", (one,), {"__module__": "freezegun.api"}) for one in true}
changed = [(datetime, one.__name__, one) for one in true]
for one in true:
    setattr(datetime, one.__name__, fakes[one])
for module in [module for name, module in list(sys.modules.items()) if name.startswith("zlmdb")]:
    for name in dir(module):  # which imports what is imported when it is first used
        try:
            value = getattr(module, name)
            if isinstance(value, type) and value in fakes:
                changed.append((module, name, value))
                setattr(module, name, fakes[value])
        except (ImportError, AttributeError):
            pass
if sys.argv[1:]:
    uses()
for module, name, value in changed:
    setattr(module, name, value)
uses()
"""


@pytest.mark.twice  # all of zlmdb is imported in a process of its own, which takes seconds
def test_a_database_that_is_first_opened_while_freezegun_stops_the_clock_knows_the_true_classes() -> None:
    """What was imported meanwhile knew no others: no database with times could be opened in that process any more."""
    inside = sys.implementation.name == "cpython"  # the dates of PyPy make those of the class that the module names
    command = [sys.executable, "-c", FROZEN, *(["inside"] if inside else [])]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.stdout.split(), ended.stderr) == (["True"] * (1 + inside), "")
