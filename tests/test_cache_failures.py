"""A cache under attack: beside a long writer, on a full disk, interrupted, forked; and the same calls of diskcache."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import select
import signal
import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import zlmdb
from zlmdb.cache import cache as module
from zlmdb.cache import entry as cacheentry
from zlmdb.cache import memoized as cachememoized
from zlmdb.cache import state as cachestate
from zlmdb.cache import use as cacheuse
from zlmdb.testing.faults import inject

from .interrupts import INTERRUPTS, interrupting, traces_instructions
from .waiters import in_another_thread

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different


@pytest.fixture
def cache(tmp_path: Path) -> Generator[zlmdb.Cache[str, Any], None, None]:
    with zlmdb.Cache(tmp_path / "cache") as found:
        yield found


def full(cache: zlmdb.Cache[str, Any], entries: int) -> None:
    with cache.transact():
        for number in range(entries):
            cache[str(number)] = number
    cache._size_limit = cache.volume()
    cache._measure()


def test_a_read_waits_for_no_writer(cache: zlmdb.Cache[str, Any]) -> None:
    full(cache, 1100)
    with in_another_thread(cache.transact):
        for number in range(1100):
            assert cache[str(number)] == number
        assert len(cache._marked) == 1100
        for number in range(20 * 512):
            cache._mark(str(number))
        assert len(cache._marked) < 18 * 512  # they are not kept for ever
    for number in range(1100):
        cache._mark(str(number))
    assert len(cache._marked) < 600
    with cache._db.read() as t:
        tables: Any = t
        assert len(tables.used) > 0


def test_on_a_full_disk_a_cache_reads_and_can_be_closed(tmp_path: Path) -> None:
    cache: zlmdb.Cache[str, Any] = zlmdb.Cache(tmp_path)
    full(cache, 1000)
    with inject(cache._db) as faults:
        faults.disk_full()
        for number in range(1000):
            assert cache[str(number)] == number
        for write in (lambda: cache.set("x", 1), cache.clear, lambda: cache.incr("0"), lambda: cache.delete("0")):
            with pytest.raises(zlmdb.DiskError):
                write()
        assert cache["0"] == 0
        assert len(cache) == 1000
        faults.clear()
        faults.full()
        with pytest.raises(zlmdb.DatabaseFull):
            cache["x"] = 1
        assert cache.delete("0")
        faults.disk_full()
        cache.get("1")
        cache.close()  # the uses that it would note are lost
    with zlmdb.Cache(tmp_path) as again:
        assert len(again) == 999


@pytest.mark.parametrize("order", ["disk_full", "full"])
def test_a_memoized_function_does_without_the_disk_where_that_is_full(tmp_path: Path, order: str) -> None:
    calls: list[int] = []
    with zlmdb.Cache[str, Any](tmp_path) as cache:

        @cache.memoize()
        def half(number: int) -> float:
            calls.append(number)
            if number == 13:
                raise LookupError(number)
            return number / 2

        @cache.memoize()
        async def third(number: int) -> float:
            return number / 3

        assert half(2) == 1
        with inject(cache._db) as faults:
            for after in (0, 1):  # the second time its beginning is stored, and its end is not
                getattr(faults, order)(after)
                assert (half(2), half(4 + after), asyncio.run(third(6))) == (1, 2 + after / 2, 2)
                getattr(faults, order)(after)
                with pytest.raises(LookupError):
                    half(13)
            faults.clear()
        assert (half(4), half(4)) == (2, 2)
        assert calls.count(4) == 2


@pytest.mark.parametrize("order", ["disk_full", "full"])
def test_nobody_waits_for_a_result_that_a_full_disk_did_not_keep(tmp_path: Path, order: str) -> None:
    """Its beginning was stored, which tells others to wait for its end."""

    def wait(seconds: float) -> None:
        raise AssertionError(f"it waits for {seconds} seconds")

    with zlmdb.Cache[str, Any](tmp_path) as cache:

        @cache.memoize()
        def half(number: int) -> float:
            if number == 13:
                raise LookupError(number)
            return number / 2

        with inject(cache._db) as faults, pytest.MonkeyPatch.context() as patch:
            patch.setattr(cachememoized, "time", SimpleNamespace(sleep=wait))
            for number in (4, 13, 6):
                getattr(faults, order)(1)
                for _ in range(2):
                    if number == 13:
                        with pytest.raises(LookupError):
                            half(number)
                    else:
                        assert half(number) == number / 2
                faults.clear()
                half(number - number % 2)
        assert len(cache) == 3


def test_a_full_database_evicts_nothing_by_halves(cache: zlmdb.Cache[str, Any]) -> None:
    with cache.transact():
        for number in range(300):
            cache.set(str(number), "x" * 500, expire=1000, tag="t")
    cache._size_limit = cache.volume() // 2
    cache._measure()
    for after in range(12):
        with inject(cache._db) as faults:
            faults.full(after)
            for number in range(300, 320):
                try:
                    cache.set(str(number), "x" * 500, expire=1000, tag="t")
                except zlmdb.DatabaseFull:
                    break
        with cache._db.read() as t:
            tables: Any = t
            assert [key for _, key in tables.tags] == list(tables.entries)
            assert sorted(key for _, key in tables.until) == list(tables.entries)


def test_a_value_larger_than_the_cache_leaves_it_within_its_limit(tmp_path: Path) -> None:
    with zlmdb.Cache(tmp_path, size_limit=1_000_000) as cache:
        for number in range(10):
            cache[str(number)] = number
        cache["big"] = b"x" * 3_000_000
        assert cache["big"] == b"x" * 3_000_000
        assert cache.cull() >= 1
        assert cache.volume() <= 1_000_000
        assert "big" not in cache
        cache["after"] = 1
        assert cache["after"] == 1


def test_there_may_be_nothing_left_to_evict(cache: zlmdb.Cache[str, Any]) -> None:
    full(cache, 10)
    with cache._db.write() as t:
        assert cache._evict_some(t, 10, 0) == 0  # another thread was faster
    assert len(cache) == 10


@pytest.mark.parametrize("limit", [1e6, float("inf"), 10**400])
def test_a_limit_may_be_any_number_of_bytes(limit: Any) -> None:
    with zlmdb.Cache(None, size_limit=limit) as cache:
        cache["a"] = 1
        assert cache["a"] == 1


def test_a_cull_of_small_entries_spares_the_rest(cache: zlmdb.Cache[str, Any]) -> None:
    """All entries were deleted, as each takes several times the bytes of its value."""
    with cache.transact():
        for number in range(5000):
            cache[str(number)] = number
    cache._size_limit = cache.volume() * 2 // 3
    cache.cull()
    assert cache.volume() <= cache._size_limit
    assert len(cache) > 2000


def test_a_cull_in_a_block_deletes_no_more_than_what_is_too_much(cache: zlmdb.Cache[str, Any]) -> None:
    """All entries were deleted, as the size of the file does not change before the end of the block."""
    with cache.transact():
        for number in range(1000):
            cache[str(number)] = "x" * 1000
    cache._size_limit = cache.volume() * 9 // 10
    cache._measure()
    with cache.transact():
        cache.cull()
        assert cache.cull() == 0
    assert 500 < len(cache) < 1000


def test_a_cull_in_a_block_spares_small_entries(cache: zlmdb.Cache[str, Any]) -> None:
    """Nearly all were deleted: only the bytes of the values were counted, and an entry takes several times as many."""
    with cache.transact():
        for number in range(5000):
            cache.set(str(number), number, expire=100)
    cache._size_limit = cache.volume() * 2 // 3
    cache._measure()
    with cache.transact():
        cache.cull()
        assert cache.cull() == 0
    assert cache.volume() <= cache._size_limit
    assert len(cache) > 2000


def test_a_delta_that_cannot_be_subtracted_is_named(cache: zlmdb.Cache[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"^decr\('a', 'x'\): expected a number"):
        cache.decr("a", "x")


# -- memoize ------------------------------------------------------------------------------------------------------


def test_a_block_does_not_wait_for_a_thread_that_waits_for_it(cache: zlmdb.Cache[str, Any]) -> None:
    computing, go = threading.Event(), threading.Event()

    @cache.memoize()
    def function(number: int) -> int:
        if threading.current_thread() is thread:
            computing.set()
            go.wait(20)
        return number

    thread = threading.Thread(target=function, args=(1,))
    thread.start()
    computing.wait(20)
    with cache.transact():
        go.set()
        assert function(1) == 1  # the thread cannot store its result before the end of the block
        assert function(1) == 1
    thread.join(20)
    assert not thread.is_alive()
    assert not cache._flights


def test_whoever_waits_for_an_interrupted_caller_goes_on(cache: zlmdb.Cache[str, Any], monkeypatch: Any) -> None:
    @cache.memoize("function")
    def function() -> int:
        return 1

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("zlmdb.cache.memoized._Flight.land", interrupted)  # no time left to tell the others
        with pytest.raises(KeyboardInterrupt):
            function()
    gc.collect()
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(function()), daemon=True)
    thread.start()
    thread.join(20)
    assert found == [1]
    assert not cache._flights


@traces_instructions
def test_a_caller_that_is_interrupted_as_it_begins_keeps_nobody_waiting(cache: zlmdb.Cache[str, Any]) -> None:
    """The file said for a minute that the value was computed, and so the next caller waited."""

    @cache.memoize()
    def function() -> int:
        return 1

    at, done = 0, False
    while not done:
        at += 1
        with suppress(*INTERRUPTS), interrupting(at, lambda file: file.endswith("pending.py")) as count:
            function()
        done = count[0] < at
        with cache._db.read() as t:
            tables: Any = t
            left = next(iter(tables.pending.values()), None)
        assert left is None
        cache.clear()
    assert at > 20


def test_whoever_gives_up_late_leaves_alone_who_computes_now(cache: zlmdb.Cache[str, Any]) -> None:
    call = cachememoized._Flight(cache, "a", 60)
    assert cache._begin("a", 60, call.me) == (False, None)
    with cache._db.write() as t:
        tables: Any = t
        tables.pending["a"] += 5  # another process, since the time was over
    cache._give_up("a", call.me)
    call.land()
    assert cache._begin("a", 90, call.me)[1] == "another call computes it"


def test_a_cancelled_or_slow_coroutine_is_computed_by_another(cache: zlmdb.Cache[str, Any]) -> None:
    calls: list[str] = []

    @cache.memoize()
    async def slow(way: str) -> str:
        calls.append(way)
        await asyncio.sleep(30 if len(calls) == 1 else 0)
        if way == "fails":
            raise ZeroDivisionError
        return way

    async def main() -> None:
        task = asyncio.ensure_future(slow("timeout"))
        while not calls:
            await asyncio.sleep(0.001)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task, 0.01)
        assert await slow("timeout") == "timeout"
        found = await asyncio.gather(*[slow("fails") for _ in range(5)], return_exceptions=True)
        assert [type(one) for one in found] == [ZeroDivisionError] * 5  # an exception is nobody else's
        with cache.transact():
            assert await slow("block") == "block"

    asyncio.run(main())
    assert calls == ["timeout"] * 2 + ["fails"] * 5 + ["block"]
    assert not cache._flights
    with cache._db.read() as t:
        tables: Any = t
        assert not len(tables.pending)


def test_threads_that_wait_for_each_others_results_go_on_after_the_seconds_of_the_lock(
    cache: zlmdb.Cache[str, Any],
) -> None:
    together = threading.Barrier(2)
    other = {"a": "b", "b": "a"}
    began: list[str] = []

    @cache.memoize(lock=0.05)
    def crossed(name: str) -> str:
        began.append(name)
        if len(began) > 2:
            return name
        together.wait(20)
        return crossed(other[name])

    found: list[str] = []
    threads = [threading.Thread(target=lambda name=name: found.append(crossed(name)), daemon=True) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(found) in (["a", "b"], ["a", "a"], ["b", "b"])  # either may have been told by the other one
    assert not cache._flights


def test_a_coroutine_that_awaits_a_task_that_awaits_its_result_goes_on_after_the_seconds_of_the_lock(
    cache: zlmdb.Cache[str, Any],
) -> None:
    calls: list[int] = []

    @cache.memoize(lock=0.05)
    async def same() -> int:
        calls.append(1)
        return 1 if len(calls) == 2 else 1 + await asyncio.create_task(same())

    async def main() -> int:
        return await asyncio.wait_for(same(), 20)

    assert asyncio.run(main()) == 2
    assert not cache._flights


def test_a_block_whose_end_was_interrupted_is_over(cache: zlmdb.Cache[str, Any]) -> None:
    with cache.transact():
        cache["a"] = 1
        left = dict(cache._blocks)
    cache._blocks.update(left)
    assert cache["a"] == 1
    cache["b"] = 2
    assert not cache._blocks


# -- values and tags ----------------------------------------------------------------------------------------------


def test_a_tag_is_a_text(cache: zlmdb.Cache[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least one character"):
        cache.set("a", 1, tag="")
    wrong: Any = 5
    with pytest.raises(TypeError, match="tag=5: expected a text"):
        cache.add("a", 1, tag=wrong)
    assert not len(cache)


def test_a_value_of_an_older_class_is_not_there(tmp_path: Path) -> None:
    @dataclass
    class Old:
        name: str

    @dataclass
    class New:
        size: int

    with zlmdb.Cache(tmp_path, str, Old) as old:
        for key in ("added", "popped", "seen"):
            old[key] = Old("x")
    with zlmdb.Cache(tmp_path, str, New) as new:
        assert new.details("seen") is None
        assert new.pop("popped", New(5)) == New(5)
        assert "popped" not in new
        assert new.add("added", New(1))
        assert new["added"] == New(1)


# -- processes ----------------------------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_uses_the_cache_in_its_own_name(tmp_path: Path) -> None:
    cache: zlmdb.Cache[str, Any] = zlmdb.Cache(tmp_path)
    go, went = os.pipe()
    told, tells = os.pipe()
    function = cache.memoize("function")(lambda number: number)
    computing: Any = threading.Event()

    @cache.memoize("slow")
    def slow() -> int:
        computing.set()
        thread_may_end.wait(20)
        return 5

    thread_may_end = threading.Event()
    thread = threading.Thread(target=slow)
    thread.start()
    computing.wait(20)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert function(3) == 3
            assert not cache._flights  # of a thread that the child does not have
            os.write(tells, b"x")
            os.read(go, 1)
            cache["child"] = (tmp_path / "boot").read_text()
            status = 0
        finally:
            os._exit(status)
    thread_may_end.set()
    thread.join(20)
    os.read(told, 1)
    cache.close()
    assert (tmp_path / "boot").read_text() != "clean"  # the child uses it
    os.write(went, b"x")
    assert os.waitpid(child, 0)[1] == 0
    with zlmdb.Cache(tmp_path) as again:
        assert again["child"] == (tmp_path / "boot").read_text() != "clean"
    assert (tmp_path / "boot").read_text() == "clean"


@pytest.mark.once
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_was_forked_as_a_thread_opened_a_cache_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one to open the closed cache waited for the end of the child."""
    fcntl = pytest.importorskip("fcntl")
    opening, forked, real = threading.Event(), threading.Event(), module.open_database

    def slow(*args: Any, **kwargs: Any) -> Any:
        opening.set()
        forked.wait(20)
        return real(*args, **kwargs)

    monkeypatch.setattr(module, "open_database", slow)
    thread = threading.Thread(target=lambda: zlmdb.Cache(tmp_path).close())
    thread.start()
    opening.wait(20)
    child = os.fork()
    if child == 0:
        signal.pause()
    try:
        forked.set()
        thread.join(20)
        assert (tmp_path / "boot").read_text() == "clean"
        with open(tmp_path / "users", "ab") as users:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.once
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_whose_parent_is_killed_as_a_thread_closes_a_cache_does_not_wait_for_ever(tmp_path: Path) -> None:
    """It waited for a lock that only it had by then: it was forked before the thread let go of it."""
    told, tells = os.pipe()
    parent = os.fork()
    if parent == 0:
        cache: zlmdb.Cache[str, Any] = zlmdb.Cache(tmp_path)
        file: Any = cache._file
        with in_another_thread(file._alone):
            child = os.fork()
            if child == 0:
                os.write(tells, b"0\n")
                signal.pause()
            os.write(tells, b"%d\n" % child)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(parent, 0)
    os.close(tells)
    written = b""
    while written.count(b"\n") < 2 and select.select([told], [], [], 10)[0]:
        written += os.read(told, 100)
    os.kill(max(map(int, written.split())), signal.SIGKILL)
    os.close(told)
    assert written.count(b"\n") == 2, "the child has not come back from the fork"


# -- diskcache ----------------------------------------------------------------------------------------------------


@pytest.mark.once
def test_what_the_names_mean_is_what_they_mean_in_diskcache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("diskcache.core")
    now = [1000.0]

    def clock() -> float:
        return now[0]

    for one in (module, cacheentry, cachestate, cacheuse):
        monkeypatch.setattr(one, "_clock", clock)
    monkeypatch.setattr(core, "time", SimpleNamespace(time=clock, sleep=None))
    theirs: Any = core.Cache(str(tmp_path / "theirs"), sqlite_synchronous=0, cull_limit=0)
    rng = random.Random(5)
    with zlmdb.Cache(tmp_path / "ours") as ours, theirs:
        for step in range(600):
            key, number, tag = f"k{rng.randrange(6)}", rng.randrange(9), rng.choice([None, "x", "y"])
            expire = rng.choice([None, 1, 3, 9])
            name = rng.choice(NAMES)
            if name == "wait":
                now[0] += number / 2 + 0.25
            if name == "clear" and rng.random() < 0.8:
                continue
            found = [done(cache, name, key, number, expire, tag) for cache in (ours, theirs)]
            assert found[0] == found[1], (step, name, key)
            have = {one: ours.get(one) for one in ours if one in ours}
            assert have == {one: theirs.get(one) for one in theirs if one in theirs}
            for one in have:
                value, until, label = theirs.get(one, expire_time=True, tag=True)
                assert ours.details(one) == (value, until, label)


NAMES = (
    "set", "add", "get", "in", "incr", "decr", "incr none", "touch", "pop", "delete", "del", "[]", "evict", "expire",
    "clear", "len", "list", "block", "failed block", "wait", "wait",
)  # fmt: skip


def done(cache: Any, name: str, key: str, number: int, expire: Any, tag: Any) -> Any:
    """What one of the methods gives, or its exception."""
    ways: dict[str, Any] = {
        "set": lambda: cache.set(key, number, expire, tag=tag) and None,
        "add": lambda: cache.add(key, number, expire, tag=tag),
        "get": lambda: cache.get(key, default="nothing"),
        "in": lambda: key in cache,
        "incr": lambda: cache.incr(key, number),
        "decr": lambda: cache.decr(key, number, default=5),
        "incr none": lambda: cache.incr(key, default=None),
        "touch": lambda: cache.touch(key, expire),
        "pop": lambda: cache.pop(key, "nothing"),
        "delete": lambda: cache.delete(key),
        "del": lambda: cache.__delitem__(key) and None,
        "[]": lambda: cache[key],
        "evict": lambda: cache.evict("x") and None,
        "expire": lambda: cache.expire() * 0 or sorted(cache),
        "clear": lambda: cache.clear() and None,
        "len": lambda: len([one for one in cache if one in cache]),
        "list": lambda: sorted(one for one in cache if one in cache),
        "block": lambda: in_block(cache, key, number, fails=False),
        "failed block": lambda: in_block(cache, key, number, fails=True),
        "wait": bool,
    }
    try:
        return ways[name]()
    except (KeyError, ZeroDivisionError) as error:
        return type(error)


def in_block(cache: Any, key: str, number: int, *, fails: bool) -> Any:
    with cache.transact():
        cache.set(key, number)
        cache.incr("k0", default=0)
        cache.delete("k1")
        with cache.transact():
            cache.set("k2", number)
        if fails:
            raise ZeroDivisionError
    return cache[key] if key != "k1" else None


def test_what_killed_processes_were_computing_is_forgotten(tmp_path: Path) -> None:
    """A row stayed for each result that nobody asked for again, and no size limit counted it."""
    with zlmdb.Cache(tmp_path / "cache") as cache, cache._db.write() as t:
        tables: Any = t
        tables.pending.update({"ended": 1.0, "going on": 1e12})
    with zlmdb.Cache(tmp_path / "cache") as cache, cache._db.read() as t:
        tables = t
        assert list(tables.pending) == ["going on"]
