"""A queue under attack: refused changes, clocks that jump, cancellations at every step, ends while somebody waits."""

from __future__ import annotations

import asyncio
import gc
import platform
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

import zlmdb
from zlmdb import notifier
from zlmdb import worker as workers
from zlmdb.database import calls
from zlmdb.feed import doorbell
from zlmdb.store import asyncfutures
from zlmdb.testing.faults import inject

from .interrupts import INTERRUPTS, handled_at, interrupting, traces_instructions

NOW = [1000.0]
_MOST = (1 << 63) - 1
FILES = {workers.__file__, calls.__file__}
ASYNC_FILES = {*FILES, doorbell.__file__, notifier.__file__, asyncfutures.__file__}


class Jobs(zlmdb.Queue[str], lease=30, attempts=3, backoff=10, clock=lambda: NOW[0]): ...


class Store(zlmdb.Schema):
    jobs: Jobs
    timed: zlmdb.Queue[str]


@pytest.fixture
def db() -> Iterator[zlmdb.Database[Store]]:
    NOW[0] = 1000.0
    with zlmdb.open(None, Store) as db:
        yield db


def states(jobs: Any) -> list[tuple[int, str]]:
    return [(key[0], job.body) for key, job in jobs.items()]


def test_a_refused_change_loses_no_job(db: zlmdb.Database[Store]) -> None:
    far = 1e15  # seconds: beyond the times of a key
    with db.write() as t:  # one transaction: what is refused must have changed nothing
        t.jobs.put("a")
        with pytest.raises(ValueError, match="expected seconds"):
            t.jobs.claim(lease=far)
        assert states(t.jobs) == [(0, "a")]
        lease = t.jobs.claim()
        assert lease is not None
        with pytest.raises(ValueError, match="expected seconds"):
            t.jobs.fail(lease, delay=far)
        with pytest.raises(ValueError, match="expected seconds"):
            t.jobs.extend(lease, far)
        with pytest.raises(ValueError, match="expected seconds"):
            t.jobs.put("b", delay=far)
        assert states(t.jobs) == [(2, "a")]
        assert t.jobs.extend(lease).key == lease.key  # to the same time
        t.jobs.done(lease)
        assert len(t.jobs) == 0


def test_a_priority_that_could_never_be_claimed_is_refused(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        for priority in (_MOST + 1, -_MOST - 1):
            for delay in (0, 5):
                with pytest.raises(ValueError, match="expected an int of 64 bits"):
                    t.jobs.put("x", priority=priority, delay=delay)
        t.jobs.put("last", priority=-_MOST, delay=5)
        t.jobs.put("first", priority=_MOST, delay=5)
    NOW[0] += 5
    with db.write() as t:
        claimed = [t.jobs.claim(), t.jobs.claim()]
    assert [one.body for one in claimed if one is not None] == ["first", "last"]


def test_arguments_that_make_no_sense_are_named(db: zlmdb.Database[Store]) -> None:
    nothing: Any = None
    text: Any = "5"
    with db.write() as t:
        for method in (t.jobs.done, t.jobs.fail, t.jobs.release, t.jobs.extend):
            with pytest.raises(TypeError, match="None is no lease: give what claim"):
                method(nothing)
        with pytest.raises(TypeError, match="delay='5': expected seconds"):
            t.jobs.put("a", delay=text)
        with pytest.raises(TypeError, match="lease='5': expected seconds"):
            t.jobs.claim(lease=text)
        with pytest.raises(ValueError, match="priority='5': expected an int"):
            t.jobs.put("a", priority=text)


@pytest.mark.parametrize(
    "given", [True, float("nan"), float("inf"), 1e300, 10**400], ids=["true", "nan", "inf", "large", "huge"]
)
def test_numbers_that_are_no_seconds_are_named(db: zlmdb.Database[Store], given: Any) -> None:
    """Some were `OverflowError` of Python, or an error about a key of the table; True was a second."""
    with db.write() as t:
        t.jobs.put("a")
        lease = t.jobs.claim()
        assert lease is not None
        for name, call in (
            ("delay", lambda: t.jobs.put("a", delay=given)),
            ("lease", lambda: t.jobs.claim(lease=given)),
            ("seconds", lambda: t.jobs.extend(lease, given)),
            ("delay", lambda: t.jobs.fail(lease, delay=given)),
        ):
            with pytest.raises(ValueError, match=f"^{name}=.*: expected seconds, 0 or more"):
                call()
    for name in ("lease", "backoff"):
        with pytest.raises(ValueError, match=f"{name}=.*: expected"):
            type.__call__(type(zlmdb.Queue), "Jobs", (zlmdb.Queue,), {}, **{name: given})


def test_what_is_no_key_of_a_dead_letter_is_named(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        key: Any
        for key in (None, t.jobs.put("a"), "x", ()):
            with pytest.raises(ValueError, match="expected the key of a dead letter"):
                t.jobs.revive(key)


@pytest.mark.parametrize("lease", ["5", -1, float("nan")])
def test_a_worker_refuses_a_lease_that_makes_no_sense_at_once(db: zlmdb.Database[Store], lease: Any) -> None:
    """It did so when there was a job."""
    with pytest.raises((TypeError, ValueError), match="lease=.*expected seconds"):
        zlmdb.Worker(db, lambda t: t.jobs, lease=lease)


def test_a_worker_does_not_wait_in_a_block_that_keeps_others_from_putting(db: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(db, lambda t: t.timed)
    with db.write() as t:
        with pytest.raises(zlmdb.NestedTransaction, match="nobody can put"):
            worker.get()
        with pytest.raises(TimeoutError):
            worker.get(0)
        t.timed.put("a")


def test_a_task_does_not_wait_for_a_job_in_its_own_block(db: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(db, lambda t: t.timed)

    async def main() -> None:
        with db.write() as t:
            with pytest.raises(zlmdb.NestedTransaction, match="await nothing inside"):
                await worker.aget()
            with pytest.raises(TimeoutError):
                await worker.aget(0)
            t.timed.put("a")
        with db.write() as t:
            with pytest.raises(zlmdb.NestedTransaction, match="await nothing inside"):
                await worker.aget()
            t.jobs.put("b")
        assert (await worker.aget(20)).body == "a"

    asyncio.run(main())


@pytest.mark.parametrize("jobs", [0, 1])
@pytest.mark.parametrize("inner", [lambda waiting: waiting, lambda waiting: asyncio.wait_for(waiting, 60)])
def test_a_task_does_not_wait_for_a_job_in_a_block_without_a_name(
    db: zlmdb.Database[Store], jobs: int, inner: Any
) -> None:
    worker = zlmdb.Worker(db, lambda t: t.timed)

    async def main() -> None:
        for _ in range(jobs):
            worker.put("a")
        with db.write(), pytest.raises(zlmdb.NestedTransaction, match="await nothing inside"):
            await inner(worker.aget())
        with db.write():
            for waits in [asyncio.ensure_future(worker.aget(20)) for _ in range(2)]:
                await asyncio.sleep(0.01)
                waits.cancel()

    asyncio.run(main())


def test_a_task_waits_for_a_job_while_another_has_a_block_open(db: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(db, lambda t: t.timed)

    async def writes() -> None:
        with db.write() as t:
            t.timed.put("a")
            await asyncio.sleep(0.1)

    async def main() -> str:
        task = asyncio.ensure_future(writes())
        await asyncio.sleep(0.01)
        lease = await worker.aget(20)
        await task
        return lease.body

    assert asyncio.run(main()) == "a"


def test_the_text_of_an_error_is_stored_whatever_it_is(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        t.jobs.put("a")
        lease = t.jobs.claim()
        assert lease is not None
        t.jobs.fail(lease, OSError("no file caf\udce9"))  # the name of a file that is no UTF-8
        assert [job.error for job in t.jobs.delayed.values()] == ["OSError: no file caf\\udce9"]


def test_jobs_of_one_priority_keep_their_order_through_delays_and_retries(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        for number in range(10):
            t.jobs.put(str(number), delay=(number % 3) * 2)
    NOW[0] += 10
    with db.write() as t:
        leases = [t.jobs.claim() for _ in range(10)]
        assert [one.body for one in leases if one is not None] == [str(number) for number in range(10)]
        for one in reversed(leases):
            assert one is not None
            t.jobs.fail(one, delay=0)
        again = [t.jobs.claim() for _ in range(10)]
    assert [one.body for one in again if one is not None] == [str(number) for number in range(10)]


def test_a_clock_that_jumps_costs_time_but_no_job(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        for body in ("a", "b"):
            t.jobs.put(body)
        t.jobs.put("later", delay=60)
        first = t.jobs.claim()
    assert first is not None
    NOW[0] -= 500  # the delays end later
    with db.write() as t:
        second = t.jobs.claim()
        assert second is not None
        assert (second.body, t.jobs.claim()) == ("b", None)
        t.jobs.done(second)
        assert t.jobs.pause() == 30
    NOW[0] += 100_000  # all of them are over
    with db.write() as t:
        third, fourth = t.jobs.claim(), t.jobs.claim()
        assert third is not None
        assert fourth is not None
        assert [(third.body, third.attempts), (fourth.body, fourth.attempts)] == [("a", 2), ("later", 1)]
    with pytest.raises(zlmdb.LeaseLost), db.write() as t:
        t.jobs.done(first)
    NOW[0] -= 100_000
    with db.write() as t:
        t.jobs.done(third)
        t.jobs.done(fourth)
        assert len(t.jobs) == 0


def test_a_clock_that_is_set_back_lengthens_no_lease(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        for body in ("a", "b", "c"):
            t.jobs.put(body)
        dies = t.jobs.claim()
        lives = t.jobs.claim(lease=100)
        assert dies is not None
        assert lives is not None
    NOW[0] -= 3600
    with db.write() as t:
        assert t.jobs.pause() == 0  # "c" is ready
        after = t.jobs.claim()
        assert after is not None
        assert after.body == "c"
        assert t.jobs.claim() is None
        t.jobs.done(after)
        assert t.jobs.pause() == 30
        longer = t.jobs.extend(lives, 200)  # it is still this worker's
        assert longer.until == NOW[0] + 200
    NOW[0] += 30
    with db.write() as t:
        again = t.jobs.claim()
        assert again is not None
        assert (again.body, again.attempts) == ("a", 2)
        with pytest.raises(zlmdb.LeaseLost):
            t.jobs.done(dies)
        t.jobs.done(longer)
        t.jobs.done(again)
        assert len(t.jobs) == 0


@pytest.mark.parametrize("undone", [False, True])
def test_a_clock_that_is_set_back_by_less_than_a_long_lease_lengthens_no_short_one(
    db: zlmdb.Database[Store], undone: bool
) -> None:
    with db.write() as t:
        t.jobs.put("long")
        t.jobs.put("short")
        assert t.jobs.claim(lease=5000) is not None
    NOW[0] += 1000
    with db.write() as t:
        assert t.jobs.claim(lease=10) is not None
    NOW[0] -= 500
    if undone:
        with db.write() as t:
            assert t.jobs.claim() is None
            t.txn.abort()
    with db.read() as t:
        assert t.jobs.pause() == 0  # a claim looks at the leases
    with db.write() as t:
        assert t.jobs.claim() is None
        assert t.jobs.pause() == 10
    NOW[0] += 10
    with db.write() as t:
        lease = t.jobs.claim()
        assert lease is not None
        assert lease.body == "short"


@pytest.mark.parametrize("end", ["done", "fail", "release"])
def test_whoever_works_while_the_clock_is_set_back_keeps_the_job(db: zlmdb.Database[Store], end: str) -> None:
    with db.write() as t:
        t.jobs.put("a")
        lease = t.jobs.claim()
        assert lease is not None
    NOW[0] -= 3600
    with db.write() as t:
        assert t.jobs.pause() == 0  # to see that its end is too far away
        assert t.jobs.claim() is None
        assert t.jobs.pause() == 30
        getattr(t.jobs, end)(lease)
        assert [state for state, _ in states(t.jobs)] == {"done": [], "fail": [1], "release": [0]}[end]


def test_an_extension_that_was_undone_loses_no_job_whose_lease_was_shortened(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        t.jobs.put("a")
        lease = t.jobs.claim()
        assert lease is not None
    with db.write() as t:
        with pytest.raises(ZeroDivisionError), t.txn.savepoint():
            raise ZeroDivisionError(t.jobs.extend(lease, 80))
        NOW[0] -= 3600
        assert t.jobs.claim() is None
        t.jobs.done(lease)


def test_a_claim_after_the_clock_was_set_back_shortens_some_leases_and_the_next_ones_the_others(
    db: zlmdb.Database[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in one transaction kept the other writers waiting, the longer the more workers there were."""
    monkeypatch.setattr("zlmdb.queue._AT_ONCE", 2)

    def late(t: Store) -> int:
        return t.jobs.select((2, int((NOW[0] + 30) * 1_000_000) + 1), (3,)).count()

    with db.write() as t:
        for number in range(5):
            t.jobs.put(str(number))
        while t.jobs.claim() is not None:
            pass
        t.jobs.put("ready")
    NOW[0] -= 3600
    with db.write() as t:
        first = t.jobs.claim()
        assert first is not None
        assert (first.body, late(t), t.jobs.pause()) == ("ready", 3, 0)
        t.jobs.done(first)
        with pytest.raises(ZeroDivisionError), t.txn.savepoint():
            raise ZeroDivisionError(t.jobs.claim())
        assert late(t) == 3
    seen = []
    while not seen or seen[-1] == 0:
        with db.write() as t:
            assert t.jobs.claim() is None
            seen.append(t.jobs.pause())
            assert len(seen) < 9
    assert seen[-1] == 30
    NOW[0] += 30
    with db.write() as t:
        assert [t.jobs.claim() is not None for _ in range(6)] == [True] * 5 + [False]


def test_leases_that_end_while_the_others_are_shortened_leave_nothing_to_do(
    db: zlmdb.Database[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlmdb.queue._AT_ONCE", 2)
    with db.write() as t:
        for number in range(5):
            t.jobs.put(str(number))
        while t.jobs.claim() is not None:
            pass
        NOW[0] -= 3600
        assert t.jobs.claim() is None
        t.jobs.leased.delete()
        assert t.jobs.claim() is None
        assert t.jobs.pause() is None


def test_a_worker_that_waits_gets_the_job_of_a_dead_one_although_the_clock_was_set_back(tmp_path: Any) -> None:
    ahead = [3600.0]

    class Short(zlmdb.Queue[str], lease=0.1, clock=lambda: time.time() + ahead[0]): ...

    class Shorts(zlmdb.Schema):
        jobs: Short

    with zlmdb.open(tmp_path / "db", Shorts, durability="none") as db:
        worker = zlmdb.Worker(db, lambda t: t.jobs)
        worker.put("a")
        worker.get(0)
        ahead[0] = 0.0
        assert worker.get(20).attempts == 2


def test_on_a_full_disk_a_job_keeps_its_state_and_its_error_is_raised(db: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(db, lambda t: t.timed)
    worker.put("a")
    with inject(db) as faults:
        faults.disk_full()
        with pytest.raises(zlmdb.DiskError):
            worker.get(0)
        faults.clear()
        with pytest.raises(ZeroDivisionError), worker.job(0):  # noqa: PT012 - the error is to leave the block
            faults.disk_full()
            raise ZeroDivisionError
        with db.read() as t:
            assert states(t.timed) == [(2, "a")]  # until its lease ends
        with pytest.raises(zlmdb.DiskError):
            worker.put("b")
    with db.read() as t:
        assert len(t.timed) == 1


def test_a_get_that_is_cancelled_at_any_step_leaves_the_job_to_others(db: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(db, lambda t: t.timed)

    async def attempt(steps: int, *, waits: bool) -> None:
        """Cancel after so many steps of the event loop; the job is put before it, or while it waits."""
        if not waits:
            await worker.aput("a")
        task = asyncio.ensure_future(worker.aget(5))
        putting = asyncio.ensure_future(worker.aput("a")) if waits else None
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        if putting is not None:
            await putting
        try:
            lease = await task
        except asyncio.CancelledError:
            lease = await worker.aget(5)
        await worker.adone(lease)
        with db.read() as t:
            assert len(t.timed) == 0

    async def main() -> None:
        for steps in [*range(12), 50, 200]:
            await attempt(steps, waits=False)
            await attempt(steps, waits=True)

    asyncio.run(main())


@contextmanager
def another_writer(db: zlmdb.Database[Store]) -> Iterator[None]:
    """A block in which another thread has a write transaction open."""
    begun, ends = threading.Event(), threading.Event()

    def write() -> None:
        with db.write():
            begun.set()
            ends.wait(20)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait(20)
    try:
        yield
    finally:
        ends.set()
        thread.join()


@pytest.mark.parametrize(("error", "left"), [(None, []), (ZeroDivisionError, [(1, "a")])])
def test_a_job_block_that_is_cancelled_as_it_ends_is_told_all_the_same(
    db: zlmdb.Database[Store], error: Any, left: list[tuple[int, str]]
) -> None:
    """Its work is done, or has failed: the job must not stay claimed until its lease ends."""
    worker = zlmdb.Worker(db, lambda t: t.timed)

    async def work(begun: asyncio.Event, goes_on: asyncio.Event) -> None:
        async with worker.ajob(5):
            begun.set()
            await goes_on.wait()
            if error is not None:
                raise error

    async def main() -> None:
        begun, goes_on = asyncio.Event(), asyncio.Event()
        await worker.aput("a")
        task = asyncio.ensure_future(work(begun, goes_on))
        await begun.wait()
        with another_writer(db):
            goes_on.set()
            for _ in range(3):  # again and again, as of a scope of anyio
                await asyncio.sleep(0.01)
                task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    db.submit(lambda t: None).result(20)  # which comes after it
    with db.read() as t:
        assert states(t.timed) == left


@pytest.mark.skipif(platform.python_implementation() != "CPython", reason="PyPy never ends a collected coroutine")
def test_a_job_that_is_claimed_as_the_loop_is_closed_is_given_back(db: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(db, lambda t: t.timed)
    worker.put("a")
    loop = asyncio.new_event_loop()
    with another_writer(db):
        task: Any = loop.create_task(worker.aget(5))
        loop.run_until_complete(asyncio.sleep(0.01))
        task._log_destroy_pending = False
        loop.close()
    del task, loop
    lease = None
    for _ in range(100):
        gc.collect()  # which ends the task
        with suppress(TimeoutError):
            lease = worker.get(0.05)
            break
    assert lease is not None
    assert lease.attempts == 1


def test_a_job_block_that_is_cancelled_after_the_end_of_the_database_says_so(db: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(db, lambda t: t.timed)

    async def work(begun: asyncio.Event) -> None:
        async with worker.ajob(5):
            begun.set()
            await asyncio.sleep(30)

    async def main() -> None:
        begun = asyncio.Event()
        await worker.aput("a")
        task = asyncio.ensure_future(work(begun))
        await asyncio.wait_for(begun.wait(), 20)
        db.close()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_a_worker_that_waits_learns_that_the_database_is_closed(
    db: zlmdb.Database[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlmdb.worker.PATIENCE", 0.02)
    worker = zlmdb.Worker(db, lambda t: t.timed)
    errors: list[BaseException] = []
    waiting = threading.Event()

    def work() -> None:
        try:
            waiting.set()
            worker.get(20)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    waiting.wait(20)
    while not errors:
        try:
            db.close()
            break
        except zlmdb.Error:  # it is looking just now
            time.sleep(0.03)
    thread.join(20)
    assert not thread.is_alive()
    assert isinstance(errors[0], zlmdb.Error)


class ByText(zlmdb.Queue[str]):
    by_error = zlmdb.Index[str]("error")


class Both(Store):
    by_text: ByText


def exchange(jobs: Any, id: Any, data: bytes = b"?") -> bytes:
    """Store other bytes for a job, that were never a job; what was there."""
    encoded = jobs._storage.encode_key(next(key for key in jobs if key[2] == id))
    before = bytes(jobs._raw.get(encoded, None, jobs._db))
    jobs._raw.put(encoded, data, True, True, False, jobs._db)
    return before


@pytest.mark.parametrize("state", ["ready", "delayed", "leased"])
def test_a_job_that_cannot_be_decoded_is_a_dead_letter_and_the_next_one_is_claimed(
    db: zlmdb.Database[Store], state: str, caplog: pytest.LogCaptureFixture
) -> None:
    with db.write() as t:
        broken = t.jobs.put("a", delay=5 if state == "delayed" else 0)
        if state == "leased":
            t.jobs.claim()
        t.jobs.put("b")
        data = exchange(t.jobs, broken)
    NOW[0] += 100
    with db.write() as t:
        assert t.jobs.claim().body == "b"
        t.txn.abort()
    assert caplog.messages == []
    with db.write() as t:
        lease = t.jobs.claim()
        assert lease.body == "b"
        assert t.jobs.claim() is None
        t.jobs.done(lease)
    assert len(caplog.messages) == 1
    assert f"the job {broken} cannot be read" in caplog.messages[0]
    with db.write() as t:
        (key,) = t.jobs.dead.keys()
        with pytest.raises(zlmdb.DecodeError, match=str(broken)):
            t.jobs.revive(key)
        exchange(t.jobs, broken, data)
        t.jobs.revive(key)
        assert t.jobs.claim().body == "a"


def test_jobs_that_cannot_be_decoded_and_are_not_due_are_in_nobodys_way(db: zlmdb.Database[Store]) -> None:
    with db.write() as t:
        ids = [t.jobs.put(str(n), delay=1e6 * (n == 2)) for n in range(3)]
        for _ in range(3):
            t.jobs.fail(t.jobs.claim(), delay=0)
        t.jobs.claim(lease=1e6)
        for id in ids:
            exchange(t.jobs, id)
        assert [key[0] for key in t.jobs] == [1, 2, 3]
    for seconds in (50, -5000, 0):
        with db.write() as t:
            assert t.jobs.claim() is None
            assert t.jobs.pause() > 0
            t.jobs.put("a")
            found = t.jobs.claim()
            assert found.body == "a"
            t.jobs.done(found)
        NOW[0] += seconds  # and it is set back
    with db.read() as t:
        assert [key[0] for key in t.jobs] == [1, 2, 3]


def test_in_a_queue_with_an_index_a_job_that_cannot_be_decoded_is_an_error() -> None:
    with zlmdb.open(None, Both) as db:
        with db.write() as t:
            exchange(t.by_text, t.by_text.put("a"))
        with db.write() as t:
            for _ in range(2):
                with pytest.raises(zlmdb.DecodeError):
                    t.by_text.claim()
        with db.read() as t:
            assert t.by_text.ready.count() == 1


@pytest.mark.once
@traces_instructions
@pytest.mark.parametrize("block", [False, True])
def test_a_job_that_an_interrupted_caller_never_saw_is_given_back(db: zlmdb.Database[Store], block: bool) -> None:
    """It was leased until the end of the lease, if the interrupt came after the commit and before the return."""
    worker = zlmdb.Worker(db, lambda t: t.jobs)
    get = (lambda: worker.job(0).__enter__()) if block else (lambda: worker.get(0))
    worker.put("a")
    at = count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of a read transaction that is interrupted as it begins
        while count == at:
            at += 1
            lease = None
            with suppress(*INTERRUPTS), interrupting(at, FILES.__contains__, handled_at) as counted:
                lease = get()
            count = counted[0]
            db.submit(lambda t: None).result(10)
            if lease is not None:  # also where the function of an interrupted group runs again
                worker.release(lease)
            with db.read() as t:
                assert [(key[0], job.attempts) for key, job in t.jobs.items()] == [(0, 0)]
        gc.collect()
    assert at > 10


def outside_of_reads(code: Any) -> set[int]:
    """As `handled_at`. What is interrupted as it begins to read leaves the transaction to the garbage collector."""
    return set() if code.co_name in ("_look", "_queue") else handled_at(code)


class Stepped:
    """A coroutine that is interrupted at the instruction number *at*; nothing else of its event loop is."""

    def __init__(self, coroutine: Any, at: int) -> None:
        self._steps = coroutine.__await__()
        self._at = at
        self.count = 0

    def __await__(self) -> Any:
        send = partial(self._steps.send, None)
        while True:
            with interrupting(self._at - self.count, ASYNC_FILES.__contains__, outside_of_reads) as counted:
                try:
                    waits_for = send()
                except StopIteration as end:
                    return end.value
                finally:
                    self.count += counted[0]
            try:
                yield waits_for
                send = partial(self._steps.send, None)
            except BaseException as error:
                send = partial(self._steps.throw, error)


async def whole(stepped: Stepped) -> Any:
    return await stepped


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # interrupted just before that
@traces_instructions
def test_a_job_that_an_interrupted_task_never_saw_is_given_back(db: zlmdb.Database[Store], waits: bool) -> None:
    """Also where the interrupt comes as the task, which has waited for the job, stops to listen."""
    worker = zlmdb.Worker(db, lambda t: t.jobs)
    if not waits:
        worker.put("a")

    async def attempt(at: int) -> tuple[int, Any]:
        getting = Stepped(worker.aget(20), at)
        task = asyncio.ensure_future(whole(getting))
        if waits:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await db.arun(lambda t: t.jobs.put("a"))
        [found] = await asyncio.gather(task, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return getting.count, found

    at = count = 0
    while count == at:
        at += 1
        count, found = asyncio.run(attempt(at))
        db.submit(lambda t: None).result(10)
        db.submit(lambda t: None).result(10)
        if not isinstance(found, BaseException):
            worker.release(found)
        elif not isinstance(found, INTERRUPTS):
            raise found
        with db.write() as t:
            assert [(key[0], job.attempts) for key, job in t.jobs.items()] == [(0, 0)], (at, found)
            if waits:
                t.jobs.clear()
    assert at > 10


# -- more jobs whose time has come than one claim makes ready ---------------------------------------------------------


def put_more_than_one_claim_makes_ready(db: zlmdb.Database[Store]) -> None:
    """The later a delay ends, the higher is the priority; and two jobs of a worker that died come before them all."""
    with db.write() as t:
        for number in range(2):
            t.jobs.put(f"died {number}", priority=100 + number)
            assert t.jobs.claim(lease=8 - number) is not None
        for number in range(7):
            t.jobs.put(str(number), delay=number, priority=number)
        t.jobs.put("first", priority=-1)
    NOW[0] += 10


IN_ORDER = ["died 1", "died 0", *map(str, reversed(range(7))), "first"]


def test_a_worker_gets_the_highest_priority_of_all_jobs_whose_time_has_come(
    db: zlmdb.Database[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job of high priority came after lower ones, for which the first 1000 delays had ended."""
    monkeypatch.setattr("zlmdb.queue._AT_ONCE", 2)
    put_more_than_one_claim_makes_ready(db)
    worker = zlmdb.Worker(db, lambda t: t.jobs)
    assert [worker.get(timeout=60).body for _ in IN_ORDER] == IN_ORDER
    with pytest.raises(TimeoutError):
        worker.get(timeout=0)


def test_a_task_gets_the_highest_priority_of_all_jobs_whose_time_has_come(
    db: zlmdb.Database[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlmdb.queue._AT_ONCE", 2)
    put_more_than_one_claim_makes_ready(db)
    worker = zlmdb.Worker(db, lambda t: t.jobs)

    async def main() -> list[str]:
        return [(await worker.aget(timeout=60)).body for _ in IN_ORDER]

    assert asyncio.run(main()) == IN_ORDER


def test_a_claim_makes_no_more_jobs_ready_than_one_transaction_should(
    db: zlmdb.Database[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlmdb.queue._AT_ONCE", 2)
    put_more_than_one_claim_makes_ready(db)
    with db.write() as t:
        for left in (4, 2, 0):
            assert t.jobs.claim() is not None
            assert t.jobs.delayed.count() == left


def test_jobs_that_cannot_be_decoded_leave_the_order_of_the_others(
    db: zlmdb.Database[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlmdb.queue._AT_ONCE", 2)
    put_more_than_one_claim_makes_ready(db)
    with db.write() as t:
        keys = t.jobs.delayed.keys().all()  # of the jobs 1 to 6
        for key in (keys[0], keys[4]):
            t.jobs._raw.put(t.jobs._storage.encode_key(key), b"\xc1", db=t.jobs._db)
    worker = zlmdb.Worker(db, lambda t: t.jobs)
    expected = [body for body in IN_ORDER if body not in ("1", "5")]
    assert [worker.get(timeout=60).body for _ in expected] == expected
    with db.read() as t:
        assert t.jobs.dead.keys().count() == 2


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_worker_whose_timeout_is_over_sorts_no_more_jobs(
    db: zlmdb.Database[Store], monkeypatch: pytest.MonkeyPatch, asynchronous: bool
) -> None:
    """After a long pause it sorted all that were due, for many seconds, and came back long after its timeout."""
    monkeypatch.setattr("zlmdb.queue._AT_ONCE", 2)
    with db.write() as t:
        for number in range(9):
            t.jobs.put(str(number), delay=1, priority=number)
    NOW[0] += 10
    worker = zlmdb.Worker(db, lambda t: t.jobs)
    for left in (7, 5):
        lease = asyncio.run(worker.aget(timeout=0)) if asynchronous else worker.get(timeout=0)
        with db.read() as t:
            assert t.jobs.delayed.count() == left
    assert lease.attempts == 1


def test_a_lost_lease_is_not_looked_for_among_those_that_end_later(
    db: zlmdb.Database[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each `LeaseLost` read the keys of all jobs that workers had."""
    with db.write() as t:
        t.jobs.put("lost")
        lost = t.jobs.claim(lease=1)
        assert lost is not None
    NOW[0] += 10
    with db.write() as t:
        for number in range(50):
            t.jobs.put(str(number))
        assert all([t.jobs.claim() for _ in range(51)])
        asked: list[Any] = []
        select = Jobs.select

        def recorded(*args: Any, **options: Any) -> Any:
            asked.append(select(*args, **options))
            return asked[-1]

        monkeypatch.setattr(Jobs, "select", recorded)
        with pytest.raises(zlmdb.errors.LeaseLost):
            t.jobs.done(lost)
        assert sum([selection.count() for selection in asked]) == 0


def test_the_queue_of_a_worker_is_that_of_its_transaction(db: zlmdb.Database[Store]) -> None:
    """`put` returned, and the job was stored or undone with a block that knew nothing of it."""
    with zlmdb.open(None, Store) as other, other.write() as t:
        worker = zlmdb.Worker(db, lambda _: t.jobs)
        for call in (lambda: worker.put("a"), lambda: worker.get(timeout=0)):
            with pytest.raises(ValueError, match="returns the queue of another transaction"):
                call()
        assert len(t.jobs) == 0


def test_a_loop_that_runs_inside_of_a_block_does_not_wait_for_its_end(db: zlmdb.Database[Store]) -> None:
    worker = zlmdb.Worker(db, lambda t: t.jobs)
    worker.put("a")
    with db.write() as t:
        for call in (worker.aget, worker.ajob().__aenter__):
            with pytest.raises(zlmdb.errors.NestedTransaction, match="await nothing inside"):
                asyncio.run(call())
        assert t.jobs.ready.count() == 1
    assert worker.get(timeout=0).body == "a"


@pytest.mark.parametrize(("name", "advice"), [("task_done", "done"), ("qsize", "ready.count"), ("claim", "get")])
def test_a_worker_says_what_to_write_for_methods_of_other_queues(
    db: zlmdb.Database[Store], name: str, advice: str
) -> None:
    with pytest.raises(AttributeError, match=rf"no attribute '{name}': .*{advice}\("):
        getattr(zlmdb.Worker(db, lambda t: t.jobs), name)
