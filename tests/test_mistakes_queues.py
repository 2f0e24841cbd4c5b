"""What newcomers get wrong with queues, workers and change feeds: each is told what to write instead."""

from __future__ import annotations

from types import new_class
from typing import Any

import pytest
from newcomers import Waiting

import zlmdb


def test_a_queue_without_a_type_is_refused() -> None:
    class Bare(zlmdb.Schema):
        jobs: zlmdb.Queue  # type: ignore[type-arg]

    class Mails(zlmdb.Queue, lease=30): ...  # type: ignore[type-arg]

    class Derived(zlmdb.Schema):
        mails: Mails

    with pytest.raises(TypeError, match=r"^table 'jobs': Queue leaves the type ~T open: write Queue\[Type\]"):
        zlmdb.open(None, Bare)
    with pytest.raises(TypeError, match=r"^table 'mails': Mails leaves the type ~T open"):
        zlmdb.open(None, Derived)


def test_a_worker_without_a_function_is_refused(planner: Any) -> None:
    with pytest.raises(TypeError, match=r"got 'jobs': Worker\(db, lambda t: t\.jobs\)"):
        zlmdb.Worker(planner, "jobs")  # type: ignore[arg-type]


def test_claiming_in_a_read_transaction_is_refused_although_there_is_no_job(planner: Any) -> None:
    with planner.read() as t, pytest.raises(zlmdb.ReadonlyDatabase, match=r"write in db\.write\(\)"):
        t.jobs.claim()


def test_attempts_that_are_no_number_are_named() -> None:
    for attempts in ("3", 0):
        with pytest.raises(ValueError, match=rf"^attempts={attempts!r}: expected an int, 1 or more"):
            new_class("Jobs", (zlmdb.Queue[str],), {"attempts": attempts})


def test_a_worker_that_is_iterated_over_is_answered_with_a_loop(blog: Any) -> None:
    worker: Any = zlmdb.Worker(blog, lambda t: t.jobs)
    with pytest.raises(TypeError, match=r"with worker.job\(\) as job"):
        iter(worker)


def test_a_job_that_is_taken_without_its_block_is_answered_with_the_block(blog: Any) -> None:
    worker: Any = zlmdb.Worker(blog, lambda t: t.jobs)
    for asked, written in [(worker.job, r"`with worker.job\(\) as job:`"), (worker.ajob, "`async with worker.ajob")]:
        with pytest.raises(AttributeError, match=f"'body': .*write {written}"):
            _ = asked(0).body
        assert not hasattr(asked(0), "id")


class Names(zlmdb.Table[int, str], feed=True):
    """Names, whose changes are recorded."""


class Recorded(zlmdb.Schema):
    names: Names
    plain: zlmdb.Table[int, str]


def test_get_of_a_queue_without_a_key_says_how_a_job_is_claimed() -> None:
    with zlmdb.open(None, Waiting) as db, db.write() as t:
        queue: Any = t.jobs
        with pytest.raises(TypeError, match=r"get\(\) looks up the key of a job: write .claim\(\)"):
            queue.get()
        t.jobs.put("one")
        key, job = next(iter(t.jobs.items()))
        assert t.jobs.get(key) == job
        assert queue.get((0, 0, key[2]), None) == job


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda db, c: db.changes("plain"), "'plain' has no change feed: declare it, .*feed=True"),
        (lambda db, c: db.changes("nmaes"), "no table 'nmaes' in the file; did you mean 'names'"),
        (lambda db, c: db.changes("names", after="1"), "^after='1': expected the number of a change, or 0 for all$"),
        (lambda db, c: db.changes("names", after=True), "^after=True: expected the number of a change"),
        (lambda db, c: db.changes("names", after=-1), "^after=-1: expected the number of a change"),
        (lambda db, c: db.changes("names", after=c.take()[0]), r"^after=<change 1.*: .*; write after=change.number"),
        (lambda db, c: db.changes("names", timeout="1"), "^timeout='1': expected seconds, 0 or more, or None"),
        (lambda db, c: db.changes("names", timeout=-1), "^timeout=-1: expected seconds, 0 or more, or None"),
        (lambda db, c: db.changes("names", timeout=float("nan")), "^timeout=nan: expected seconds"),
        (lambda db, c: db.changes("names", consumer=3), "^consumer=3: expected a name, which is a text"),
        (lambda db, c: c.acknowledge("1"), r"^acknowledge\('1'\): expected a change, or its number"),
        (lambda db, c: c.acknowledge(1.0), r"^acknowledge\(1.0\): expected a change, or its number"),
        (lambda db, c: c.acknowledge(-1), r"^acknowledge\(-1\): the changes of 'names' end with 1"),
        (lambda db, c: c.acknowledge(9), r"^acknowledge\(9\): the changes of 'names' end with 1"),
        (lambda db, c: c.take("3"), r"^take\('3'\): expected the greatest number of changes, 0 or more"),
        (lambda db, c: c.take(-1), r"^take\(-1\): expected the greatest number of changes, 0 or more"),
        (lambda db, c: c.trim(through="3"), r"^trim\(through='3'\): expected the number of a change"),
        (lambda db, c: c.trim(max_count="3"), r"^Feed\(max_count='3'\): expected a number of changes"),
        (lambda db, c: zlmdb.Feed(max_age=3), r"^Feed\(max_age=3\): expected a timedelta, such as timedelta\(days"),  # type: ignore[arg-type]
        (lambda db, c: c.poll(), r"'poll': write `for change in changes:`, or changes.take\(\)"),
        (lambda db, c: c.commit(), r"'commit': write .acknowledge\(\), with consumer="),
        (lambda db, c: c.take()[0].value, "'value': write .new for the value after the change"),
        (lambda db, c: c.take()[0].timestamp, "'timestamp': write .time, a datetime in UTC"),
        (lambda db, c: c.take()[0].op, "'op': write .kind, which is 'put', 'delete' or 'clear'"),
        (
            lambda db, c: db.run(lambda t: t.names.changes()),
            r"'changes': write db.changes\('...'\) outside of the block",
        ),
    ],
)
def test_a_mistake_with_a_change_feed_says_what_to_give(asked: Any, advice: str) -> None:
    with zlmdb.open(None, Recorded) as db:
        db.run(lambda t: t.names.add("Ann"))
        with pytest.raises((TypeError, ValueError, AttributeError, KeyError), match=advice):
            asked(db, db.changes("names", consumer="one"))
        assert db.changes("names").consumers() == {"one": 0}


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (
            lambda db, w: zlmdb.Worker(Waiting, lambda t: t.jobs),
            r"^expected a database, got <class .*outside of its",
        ),
        (
            lambda db, w: zlmdb.Worker(db, lambda t: t).get(0),
            r"returns <Waiting in .*, no queue: Worker\(db, lambda t: t.jobs",
        ),
        (lambda db, w: w.get("1"), "^timeout='1': expected seconds, or None to wait for ever"),
        (lambda db, w: w.put("x", priority=1.5), "^priority=1.5: expected an int of 64 bits"),
        (lambda db, w: w.put("x", priority=True), "^priority=True: expected an int of 64 bits"),
    ],
)
def test_a_mistake_with_a_worker_says_what_it_takes(asked: Any, advice: str) -> None:
    with zlmdb.open(None, Waiting) as db, pytest.raises((TypeError, ValueError), match=advice):
        asked(db, zlmdb.Worker(db, lambda t: t.jobs))


def test_a_lease_used_as_a_block_is_answered_with_the_block_of_a_job() -> None:
    with zlmdb.open(None, Waiting) as db:
        worker: Any = zlmdb.Worker(db, lambda t: t.jobs)
        worker.put("one")
        with pytest.raises(TypeError, match="^a lease is no block: write `with worker.job"), worker.get(0):
            pass
