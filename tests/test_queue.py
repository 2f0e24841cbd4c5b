"""A queue in a table: claims, leases, retries and dead letters, in the transaction; workers that wait."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import new_class
from typing import Any, Callable, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb import worker
from zlmdb.feed import doorbell
from zlmdb.feed.doorbell import Doorbell

from . import workers

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

NOW = [1000.0]


@dataclass
class Mail:
    to: str
    text: str = ""


class Mails(zlmdb.Queue[Mail], lease=30, attempts=3, backoff=10, clock=lambda: NOW[0]): ...


class Store(zlmdb.Schema):
    mails: Mails
    words: zlmdb.Queue[str]
    sent: zlmdb.Table[str, int]


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    NOW[0] = 1000.0
    return make_db(Store)


@pytest.fixture
def memory() -> Iterator[zlmdb.Database[Store]]:
    NOW[0] = 1000.0
    with zlmdb.open(None, Store) as db:
        yield db


def bodies(jobs: Any) -> list[Any]:
    return [job.body for job in jobs.values()]


def sizes(queue: Any) -> tuple[int, int, int, int]:
    return queue.ready.count(), queue.delayed.count(), queue.leased.count(), queue.dead.count()


def test_jobs_are_claimed_by_priority_and_then_in_their_order(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        ids = [t.mails.put(Mail(to), priority=priority) for to, priority in [("a", 0), ("b", 5), ("c", 0), ("d", 5)]]
        assert bodies(t.mails.ready) == [Mail("b"), Mail("d"), Mail("a"), Mail("c")]
    with db.write() as t:
        claimed = [t.mails.claim() for _ in range(5)]
        assert [job and (job.id, job.body.to) for job in claimed] == [
            (ids[1], "b"), (ids[3], "d"), (ids[0], "a"), (ids[2], "c"), None,
        ]  # fmt: skip
        for job in claimed[:4]:
            assert job is not None
            t.mails.done(job)
        assert len(t.mails) == 0


def test_an_operation_belongs_to_its_transaction(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        t.mails.put(Mail("a"))
    with pytest.raises(ZeroDivisionError), db.write() as t:  # noqa: PT012 - the error is to leave the block
        t.mails.put(Mail("b"))
        job = t.mails.claim()
        assert job is not None
        t.mails.done(job)
        raise ZeroDivisionError
    with db.read() as t:
        assert bodies(t.mails.ready) == [Mail("a")]
        with pytest.raises(zlmdb.ReadonlyDatabase):
            t.mails.claim()


def test_a_delayed_job_is_claimed_in_its_time(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        t.mails.put(Mail("late"), delay=60, priority=9)
        t.mails.put(Mail("now"))
        assert sizes(t.mails) == (1, 1, 0, 0)
        assert t.mails.pause() == 0
        job = t.mails.claim()
        assert job is not None
        assert job.body.to == "now"
        t.mails.done(job)
        assert t.mails.pause() == 60
        assert t.mails.claim() is None
        NOW[0] += 60
        assert t.mails.pause() == 0
        job = t.mails.claim()
        assert job is not None
        assert job.body.to == "late"
        assert job.attempts == 1
        assert job.until == 1090
        t.mails.done(job)
        assert t.mails.pause() is None


def test_a_lease_that_ends_gives_the_job_to_another_and_the_first_worker_loses_it(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        id = t.mails.put(Mail("a"))
        first = t.mails.claim()
        assert first is not None
        assert t.mails.claim() is None
        assert t.mails.pause() == 30
    NOW[0] += 31
    with db.write() as t:
        second = t.mails.claim(lease=5)
        assert second is not None
        assert (second.id, second.attempts) == (id, 2)
        for method in (t.mails.done, t.mails.fail, t.mails.release, t.mails.extend):
            with pytest.raises(zlmdb.LeaseLost, match="is not this worker's any more"):
                method(first)
        t.mails.done(second)
        with pytest.raises(zlmdb.LeaseLost):
            t.mails.done(second)


def test_a_late_worker_keeps_a_job_that_nobody_has_claimed(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        t.mails.put(Mail("a"))
        job = t.mails.claim()
        assert job is not None
        NOW[0] += 1000
        t.mails.done(job)
        assert len(t.mails) == 0


def test_a_lease_can_be_extended_and_a_job_given_back(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        t.mails.put(Mail("a"))
        job = t.mails.claim()
        assert job is not None
        NOW[0] += 29
        longer = t.mails.extend(job)
        assert longer.until == NOW[0] + 30
        NOW[0] += 29
        assert t.mails.claim() is None
        t.mails.release(longer)
        again = t.mails.claim()
        assert again is not None
        assert again.attempts == 1


def test_leases_can_be_in_a_set(memory: zlmdb.Database[Store]) -> None:
    with memory.write() as t:
        t.words.put("a")
        t.words.put("b")
        first, second = t.words.claim(), t.words.claim()
    assert len({first, second, first}) == 2


@pytest.mark.parametrize("end", ["done", "fail", "release"])
def test_the_first_lease_stands_for_the_job_after_it_was_extended(db: zlmdb.Database[Store], end: str) -> None:
    """Each time, and also where the transaction that extended it was undone."""
    with db.write() as t:
        t.words.put("a")
        job = t.words.claim()
        assert job is not None
        t.words.extend(job, 70)

    def undone() -> None:
        with db.write() as t:
            for seconds in (80, 90):
                t.words.extend(job, seconds)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    with db.write() as t:
        longer = t.words.extend(t.words.extend(job, 100), 110)
        getattr(t.words, end)(job)
        for one in (job, longer):
            with pytest.raises(zlmdb.LeaseLost):
                t.words.done(one)


def test_a_job_block_ends_whose_lease_was_extended(memory: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(memory, lambda t: t.words)
    worker.put("a")
    with worker.job(0) as job:
        for seconds in (100, 200):
            worker.extend(job, seconds)
        with memory.write() as t:
            t.words.extend(job, 300)
    worker.put("b")

    async def work() -> None:
        async with worker.ajob(0) as job:
            worker.extend(job, 100)

    asyncio.run(work())
    with memory.read() as t:
        assert len(t.words) == 0


def test_a_job_that_was_given_back_is_not_the_first_workers_any_more(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        t.words.put("a")
        first = t.words.claim(lease=60)
        assert first is not None
        t.words.release(first)
        second = t.words.claim(lease=10)  # which ends earlier, as one that was shortened would
        assert second is not None
        for end in (t.words.done, t.words.fail, t.words.release, t.words.extend):
            with pytest.raises(zlmdb.LeaseLost):
                end(first)
        t.words.done(second)


@pytest.mark.parametrize("back", [0, 20, 5000])
def test_a_lease_is_not_taken_for_a_later_one_though_the_clock_was_set_back(
    db: zlmdb.Database[Store], back: float
) -> None:
    """The job was the first worker's again: attempts and seconds are the same, and the later lease ends no later."""

    def again() -> Any:
        nonlocal back
        NOW[0] -= back
        back = 0
        return t.mails.claim()

    with db.write() as t:
        t.mails.put(Mail("a"))
        released = t.mails.claim()
        assert released is not None
        t.mails.release(released)
        first = again()
        assert (first.attempts, first.job.lease) == (released.attempts, released.job.lease)
        for _ in range(2):
            NOW[0] += 31
            last = t.mails.claim()
        t.mails.fail(last)
        NOW[0] -= 62
        t.mails.revive(t.mails.dead.keys().all()[0])
        second = again()
        assert (second.attempts, second.job.lease, second.key) == (first.attempts, first.job.lease, first.key)
        for end in (t.mails.done, t.mails.fail, t.mails.release, t.mails.extend):
            for lost in (released, first):
                with pytest.raises(zlmdb.LeaseLost):
                    end(lost)
        t.mails.done(second)


def test_a_lease_that_an_earlier_version_has_stored_ends_when_it_says(db: zlmdb.Database[Store]) -> None:
    """Jobs did not tell for how many seconds they were claimed."""
    with db.write() as t:
        t.mails.put(Mail("a"))
        assert t.mails.claim() is not None
        for key, job in t.mails.leased.all():
            job.lease = 0.0
            t.mails[key] = job
        assert t.mails.claim() is None
        NOW[0] += 29
        assert t.mails.claim() is None
        NOW[0] += 1
        assert t.mails.claim() is not None


def test_a_job_that_fails_is_retried_after_growing_pauses_and_becomes_a_dead_letter(db: zlmdb.Database[Store]) -> None:
    pauses: list[Optional[float]] = []
    with db.write() as t:
        t.mails.put(Mail("a"), priority=2)
        for attempt in (1, 2, 3):
            job = t.mails.claim()
            assert job is not None
            assert job.attempts == attempt
            t.mails.fail(job, ValueError("no route"))
            pauses.append(t.mails.pause())
            NOW[0] += pauses[-1] or 0
        assert pauses == [10, 20, None]
        [(key, dead)] = t.mails.dead
        assert dead == zlmdb.Job(Mail("a"), 2, 3, "ValueError: no route")
        t.mails.revive(key)
        assert sizes(t.mails) == (1, 0, 0, 0)
        [(ready, _)] = t.mails.ready
        with pytest.raises(ValueError, match="the key of a dead letter"):
            t.mails.revive(ready)
        job = t.mails.claim()
        assert job is not None
        assert (job.attempts, job.job.priority) == (1, 2)
        t.mails.fail(job, "later", delay=7)
        assert t.mails.pause() == 7


def test_a_job_whose_workers_all_die_becomes_a_dead_letter(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        t.mails.put(Mail("poison"))
        for _ in range(3):
            assert t.mails.claim() is not None
            NOW[0] += 31
        assert t.mails.claim() is None
        assert [job.error for job in t.mails.dead.values()] == ["the lease ended in every attempt"]


@pytest.mark.parametrize("options", [{"lease": -1}, {"attempts": 0}, {"backoff": float("inf")}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        new_class("Wrong", (zlmdb.Queue[str],), options)


def test_seconds_that_make_no_sense_are_refused(memory: zlmdb.Database[Store]) -> None:
    with memory.write() as t:
        with pytest.raises(ValueError, match="delay=-1"):
            t.mails.put(Mail("a"), delay=-1)
        with pytest.raises(zlmdb.EncodeError):
            t.words.put(1)  # type: ignore[arg-type]  # the error to see
        assert len(t.mails) == len(t.words) == 0


def test_a_queue_without_options_has_the_defaults(memory: zlmdb.Database[Store]) -> None:
    with memory.write() as t:
        before = time.time()
        t.words.put("a")
        job = t.words.claim()
        assert job is not None
        assert job.body == "a"
        assert before + 59 < job.until < time.time() + 61


STEPS = ["put", "claim", "done", "fail", "release", "extend", "wait"]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 40))))
def test_random_operations_against_a_model(steps: list[tuple[str, int]]) -> None:
    """No job is lost or doubled, whoever holds what; a job has at most one worker whose lease counts."""
    NOW[0] = 1000.0
    held: list[Any] = []
    alive: set[str] = set()
    with zlmdb.open(None, Store) as db:
        for step, number in steps:
            with db.write() as t:
                if step == "put":
                    name = f"{len(alive)}-{number}-{NOW[0]}"
                    alive.add(name)
                    t.mails.put(Mail(name), priority=number % 3, delay=number % 2 * number)
                elif step == "claim":
                    job = t.mails.claim()
                    if job is not None:
                        assert not any(one.id == job.id and one.until > NOW[0] for one in held)
                        held.append(job)
                elif step == "wait":
                    NOW[0] += number
                elif held:
                    lease = held.pop(number % len(held))
                    try:
                        made = getattr(t.mails, step)(lease)
                    except zlmdb.LeaseLost:
                        assert lease.until <= NOW[0]
                    else:
                        alive -= {lease.body.to} if step == "done" else set()
                        held += [made] if step == "extend" else []
                found = [job.body.to for job in t.mails.values()]
                assert len(found) == len(set(found))
                assert set(found) == alive


# -- workers ------------------------------------------------------------------------------------------------------


def test_a_worker_that_waits_is_woken_by_a_put(memory: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(memory, lambda t: t.words)
    got: list[str] = []

    def work() -> None:
        while True:
            with worker.job() as job:
                got.append(job.body)
                if job.body == "end":
                    return

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(30):
        worker.put(str(number))
    for _ in threads:
        worker.put("end", priority=-1)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert sorted(got) == sorted([*map(str, range(30)), "end", "end", "end"])
    with memory.read() as t:
        assert len(t.words) == 0


def test_a_put_inside_a_transaction_of_the_program_wakes_too(memory: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(memory, lambda t: t.words)
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.append(worker.get(20).body))
    thread.start()
    time.sleep(0.05)
    began = time.monotonic()
    with memory.write() as t:
        t.sent["x"] = 1
        t.words.put("now")
    thread.join(20)
    assert got == ["now"]
    assert time.monotonic() - began < 10


def test_a_worker_gives_up_after_its_timeout_and_waits_for_a_delay(memory: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(memory, lambda t: t.words, lease=5)
    for timeout in (0, 0.02):
        with pytest.raises(TimeoutError, match="no job could be claimed within"):
            worker.get(timeout)
    worker.put("soon", delay=0.05)
    lease = worker.get(20)
    assert lease.until - time.time() < 6
    longer = worker.extend(lease, 100)
    worker.release(longer)
    lease = worker.get(0)
    worker.fail(lease, "broken", delay=0)
    worker.done(worker.get(0))


def test_a_job_block_gives_back_what_fails_and_what_is_interrupted(memory: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(memory, lambda t: t.words)
    worker.put("a")
    with pytest.raises(KeyboardInterrupt), worker.job(0):
        raise KeyboardInterrupt
    with memory.read() as t:
        assert [job.attempts for job in t.words.ready.values()] == [0]
    with pytest.raises(ZeroDivisionError), worker.job(0):
        raise ZeroDivisionError("oh")
    with memory.read() as t:
        assert [job.error for job in t.words.delayed.values()] == ["ZeroDivisionError: oh"]


def test_tasks_wait_and_a_cancelled_one_leaves_no_job_behind(memory: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(memory, lambda t: t.words)

    async def work(got: list[str]) -> None:
        while True:
            async with worker.ajob() as job:
                got.append(job.body)

    async def main() -> list[str]:
        got: list[str] = []
        tasks = [asyncio.ensure_future(work(got)) for _ in range(3)]
        await asyncio.sleep(0.02)
        await asyncio.gather(*[worker.aput(str(number)) for number in range(20)])
        while len(got) < 20:
            await asyncio.sleep(0.005)
        with pytest.raises(TimeoutError):
            await worker.aget(0.01)
        await worker.aput("last")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with pytest.raises(ZeroDivisionError):
            async with worker.ajob(20):
                raise ZeroDivisionError
        return got

    got = asyncio.run(main())
    assert sorted(got, key=int) == [str(number) for number in range(20)]
    with memory.read() as t:
        assert sizes(t.words) == (0, 1, 0, 0)


def test_a_task_extends_its_lease_or_gives_the_job_back(memory: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(memory, lambda t: t.words)

    async def main() -> None:
        await worker.aput("a")
        lease = await worker.aget(20)
        longer = await worker.aextend(lease, 1000)
        assert longer.until > lease.until
        await worker.arelease(longer)
        with pytest.raises(zlmdb.LeaseLost):
            await worker.aextend(longer)

    asyncio.run(main())
    with memory.read() as t:
        assert [job.attempts for job in t.words.ready.values()] == [0]


def test_a_worker_makes_a_pipe_only_where_it_has_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zlmdb.open(tmp_path / "db", Disk, durability="none") as db:
        worker = zlmdb.Worker(db, lambda t: t.jobs)
        worker.put(1)
        monkeypatch.delattr(os, "mkfifo", raising=False)
        monkeypatch.setattr(Doorbell, "listen", None)
        worker.done(worker.get())
        with pytest.raises(TimeoutError):
            worker.get(timeout=0)


WAITS = """
import sys, time, zlmdb, zlmdb.worker
zlmdb.worker.PATIENCE = 100.0
class Jobs(zlmdb.Queue[int], lease=0.3, attempts=1000): ...
class Disk(zlmdb.Schema):
    jobs: Jobs
    done: zlmdb.Table[int, int]
db = zlmdb.open(sys.argv[1], Disk, durability="none")
worker = zlmdb.Worker(db, lambda t: t.jobs)
print("ready", flush=True)
while True:
    lease = worker.get()
    print(lease.body, flush=True)
    worker.done(lease)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_worker_of_another_process_is_woken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "db"
    environment = workers.surroundings()
    with zlmdb.open(path, Disk, durability="none") as db:
        command = [sys.executable, "-c", WAITS, str(path)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                while not list(tmp_path.glob("db/*-waiting/[0-9]*")):
                    time.sleep(0.005)
                for number in range(5):
                    time.sleep(0.02)
                    began = time.monotonic()
                    with db.write() as t:
                        t.jobs.put(number)
                    assert process.stdout.readline() == f"{number}\n"
                    assert time.monotonic() - began < 50  # it would look again after 100 seconds
            finally:
                process.kill()


KILLED = """
import sys, time, zlmdb
class Jobs(zlmdb.Queue[int], lease=0.3, attempts=1000): ...
class Disk(zlmdb.Schema):
    jobs: Jobs
    done: zlmdb.Table[int, int]
db = zlmdb.open(sys.argv[1], Disk, durability="none")
worker = zlmdb.Worker(db, lambda t: t.jobs)
print("ready", flush=True)
while True:
    lease = worker.get()
    with db.write() as t:
        t.done[lease.body] = t.done.get(lease.body, 0) + 1
        t.jobs.done(lease)
"""


class Jobs(zlmdb.Queue[int], lease=0.3, attempts=1000): ...


class Disk(zlmdb.Schema):
    jobs: Jobs
    done: zlmdb.Table[int, int]


class Leased(zlmdb.Schema):
    """Jobs whose leases end in no test, however slow the machine is."""

    jobs: zlmdb.Queue[int]


@pytest.mark.once  # its processes have to start again and again, which takes a while on PyPy
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills")
def test_killed_workers_do_each_job_exactly_once_in_the_database(tmp_path: Path) -> None:
    path = tmp_path / "db"

    def start() -> Any:
        command = [sys.executable, "-c", KILLED, str(path)]
        return subprocess.Popen(command, env=workers.surroundings(), stdout=subprocess.PIPE)

    with zlmdb.open(path, Disk, durability="none") as db:
        with db.write() as t:
            for number in range(200):
                t.jobs.put(number)
        running = [start(), start()]
        try:
            for number in range(200, 500):
                with db.write() as t:
                    t.jobs.put(number)
                if number % 100 == 0:
                    victim = running.pop(0)
                    victim.stdout.readline()
                    time.sleep(0.02)
                    workers.kill(victim)
                    running.append(start())
            end = time.monotonic() + 60
            while time.monotonic() < end:
                with db.read() as t:
                    if not len(t.jobs):
                        break
                time.sleep(0.02)
        finally:
            for worker in running:
                workers.kill(worker)
        with db.read() as t:
            assert dict(t.done) == dict.fromkeys(range(500), 1)
            assert len(t.jobs) == 0


@dataclass
class Address:
    url: str


class Addresses(zlmdb.Queue[Address], attempts=2, backoff=0, feed=True):
    by_url = zlmdb.UniqueIndex[str]("body.url")


class Crawler(zlmdb.Schema):
    todo: Addresses


def test_a_unique_index_refuses_a_second_job_and_lets_the_first_one_move(tmp_path: Path) -> None:
    """A job was in its own way: it could be put, and never claimed."""
    with zlmdb.open(tmp_path, Crawler) as db:
        worker = zlmdb.Worker(db, lambda t: t.todo)
        worker.put(Address("a"))
        worker.put(Address("b"), delay=0.001)
        for url in "ab":
            with pytest.raises(zlmdb.errors.DuplicateKey):
                worker.put(Address(url))
        worker.release(worker.get())
        worker.fail(worker.extend(worker.get(), 5))
        with db.write() as t:
            lease = t.todo.claim()
            assert lease is not None
            t.todo.fail(lease)
            for key in t.todo.dead.keys().all():
                t.todo.revive(key)
            assert [job.body.url for job in t.todo.by_url.select().values()] == ["a", "b"]
        for _ in range(2):
            worker.done(worker.get(timeout=5))
        worker.put(Address("a"))
        assert db.check().ok


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One item for each claim; and nobody looks again by itself."""
    made: list[int] = []
    claim = zlmdb.Queue._claim

    def counted(self: Any, *given: Any, **options: Any) -> Any:
        made.append(1)
        return claim(self, *given, **options)

    monkeypatch.setattr(zlmdb.Queue, "_claim", counted)
    for module in (doorbell, worker):
        monkeypatch.setattr(module, "PATIENCE", 1000.0)
    return made


def put_some(count: int, t: Any) -> None:
    for number in range(count):
        t.jobs.put(number)


@pytest.mark.parametrize("on_disk", [False, True])
def test_of_many_tasks_that_wait_as_many_claim_as_there_are_jobs(
    tmp_path: Path, claims: list[int], on_disk: bool
) -> None:
    async def main(waiting: zlmdb.Worker[int]) -> None:
        tasks = [asyncio.ensure_future(waiting.aget(60)) for _ in range(50)]
        await asyncio.sleep(0.05)
        assert claims == []
        for count in (1, 1, 5):
            await db.arun(partial(put_some, count))
            done: set[Any] = set()
            while len(done) < count:
                done = {task for task in tasks if task.done()}
                await asyncio.sleep(0.005)
            tasks = [task for task in tasks if task not in done]
            assert len(claims) == count
            claims.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with zlmdb.open(tmp_path / "db" if on_disk else None, Leased) as db:
        asyncio.run(main(zlmdb.Worker(db, lambda t: t.jobs)))


def test_what_a_claim_leaves_another_one_gets(claims: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    claim = zlmdb.Queue._claim

    def failing(self: Any, *given: Any, **options: Any) -> Any:
        if len(claims) < 2:  # a function that has failed with its group runs again by itself
            claims.append(1)
            raise OSError("once")
        return claim(self, *given, **options)

    monkeypatch.setattr(zlmdb.Queue, "_claim", failing)

    async def main() -> None:
        tasks = [asyncio.ensure_future(waiting.aget(60)) for _ in range(9)]
        await asyncio.sleep(0.05)
        await waiting.aput(1)
        found: list[Any] = []
        while len(found) < 2:
            await asyncio.sleep(0.005)
            found = [task for task in tasks if task.done()]
        assert sorted(str(task.exception() or task.result().body) for task in found) == ["1", "once"]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with zlmdb.open(None, Leased) as db:
        waiting = zlmdb.Worker(db, lambda t: t.jobs)
        asyncio.run(main())


def test_a_claim_whose_task_never_goes_on_keeps_no_job_from_others(claims: list[int]) -> None:
    with zlmdb.open(None, Leased) as db:
        waiting = zlmdb.Worker(db, lambda t: t.jobs)
        with db.write() as t:
            notifier = t.jobs._bell().notifier
            t.jobs.put(1)
        notifier.claims["recent"] = time.monotonic()
        with pytest.raises(TimeoutError):
            waiting.get(0)
        notifier.claims.clear()
        notifier.claims["old"] = time.monotonic() - 5
        assert waiting.get(0).body == 1
