"""A cache: values by key with expiry and tag, evicted by use, computed once; its file, and the writes that it costs."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import errno
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Optional
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb.cache import cache as module
from zlmdb.cache import entry as cacheentry
from zlmdb.cache import file as cachefile
from zlmdb.cache import memoized as cachememoized
from zlmdb.cache import pending as cachepending
from zlmdb.cache import state as cachestate
from zlmdb.cache import use as cacheuse
from zlmdb.cache.memoized import text_of
from zlmdb.cache.tables import tables_for

from . import workers

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different


@dataclass
class User:
    name: str
    age: int = 0


CLOCKS: list[Any] = [module, cacheentry, cachepending, cachestate, cacheuse]  # where it asks for the time


class Clock:
    """The time, as the cache sees it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for one in CLOCKS:
        monkeypatch.setattr(one, "_clock", found)
    return found


@pytest.fixture(params=["file", "memory"])
def cache(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[zlmdb.Cache[str, Any]]:
    with zlmdb.Cache(tmp_path / "cache" if request.param == "file" else None) as found:
        yield found


@pytest.fixture
def memory() -> Iterator[zlmdb.Cache[str, Any]]:
    with zlmdb.Cache(None) as found:
        yield found


def transactions(cache: Any) -> int:
    """The number of write transactions so far."""
    count: int = cache._db.stats()["last_txnid"]
    return count


# -- entries ------------------------------------------------------------------------------------------------------


def test_a_cache_is_a_dict_with_defaults(cache: zlmdb.Cache[str, Any]) -> None:
    cache["a"] = 1
    cache.set("b", [1, {"c": b"d"}])
    cache.set("none", None)
    assert cache["a"] == 1
    assert cache.get("b") == [1, {"c": b"d"}]
    assert cache.get("none", 5) is None
    assert cache.get("x") is None
    assert cache.get("x", default=5) == 5
    assert "a" in cache
    assert "x" not in cache
    with pytest.raises(KeyError):
        cache["x"]
    assert list(cache) == ["a", "b", "none"]
    assert list(reversed(cache)) == ["none", "b", "a"]
    assert len(cache) == 3
    assert cache.delete("a")
    assert not cache.delete("a")
    del cache["b"]
    with pytest.raises(KeyError):
        del cache["b"]
    assert cache.pop("none", 3) is None
    assert cache.pop("none", 3) == 3
    assert cache.pop("none") is None
    assert cache.stats() == (3, 3)
    assert cache.stats(reset=True) == (3, 3)
    assert cache.stats() == (0, 0)
    cache["z"] = 1
    assert cache.clear() == 1
    assert not len(cache)


def test_add_incr_and_touch(cache: zlmdb.Cache[str, Any], clock: Clock) -> None:
    assert cache.add("a", 1, 10)
    assert not cache.add("a", 2)
    assert cache["a"] == 1
    assert cache.incr("n") == 1
    assert cache.incr("n", 5) == 6
    assert cache.decr("n", 2) == 4
    assert cache.incr("m", default=10) == 11
    with pytest.raises(KeyError):
        cache.incr("o", default=None)
    cache.set("text", "x")
    with pytest.raises(TypeError):
        cache.incr("text")
    cache.set("half", 0.5)
    with pytest.raises(zlmdb.EncodeError, match=r"incr\('half', 10000\d*\.\.\.\d*\): the sum of 0\.5 \(float\)"):
        cache.incr("half", 10**400)
    assert cache["half"] == 0.5
    assert cache.incr("a") == 2
    assert cache.details("a") == zlmdb.CacheDetails(2, 1010.0, None)  # its expiry stays
    assert cache.touch("a", 20)
    assert cache.details("a") == (2, 1020.0, None)
    assert cache.touch("a")
    assert cache.details("a") == (2, None, None)
    assert not cache.touch("x")
    assert cache.details("x") is None


def test_an_expired_entry_is_not_there(cache: zlmdb.Cache[str, Any], clock: Clock) -> None:
    for key in ("a", "b", "c", "d", "e", "f"):
        cache.set(key, 1, expire=10, tag="t")
    cache.set("kept", 1)
    cache.set("kept too", 1, expire=5)
    cache.set("kept too", 1, expire=500)
    clock.now += 10
    assert cache.get("a") is None
    assert "a" not in cache
    assert cache.details("a") is None
    assert cache.add("a", 2)
    assert cache.incr("b") == 1
    assert cache.pop("c", 7) == 7
    assert not cache.delete("d")
    assert not cache.touch("e")
    assert cache.expire() == 2
    assert sorted(cache) == ["a", "b", "kept", "kept too"]
    assert cache.expire() == cache.evict("t") == 0


def test_writes_delete_what_has_expired(cache: zlmdb.Cache[str, Any], clock: Clock) -> None:
    for number in range(100):
        cache.set(f"old {number}", number, expire=1)
    clock.now += 1
    for number in range(64):
        cache.set(f"new {number % 4}", number)
    assert sorted(cache) == ["new 0", "new 1", "new 2", "new 3"]


def test_to_expire_nothing_writes_nothing(cache: zlmdb.Cache[str, Any], clock: Clock) -> None:
    def commits() -> int:
        return int(cache._db.stats()["last_txnid"])

    for number in range(3):
        cache.set(f"k{number}", number, expire=10 + number)
    before = commits()
    assert (cache.expire(), cache.cull(), commits()) == (0, 0, before)
    clock.now += 11
    assert (cache.expire(), commits()) == (2, before + 1)
    assert list(cache) == ["k2"]


def test_a_touched_entry_stays_until_its_new_time(cache: zlmdb.Cache[str, Any], clock: Clock) -> None:
    cache.set("a", [1], expire=10, tag="t")
    cache.set("b", 2, expire=10)
    for _ in range(20):
        clock.now += 5
        assert cache.touch("a", 10)
    assert cache.incr("n") == 1
    assert cache.expire() in {0, 1}  # "b", which the writes may have deleted
    assert cache.details("a") == ([1], clock.now + 10, "t")
    assert cache.touch("a", 5)  # an earlier time again
    clock.now += 5
    assert cache.expire() == 1
    assert list(cache) == ["n"]
    with cache._db.read() as t:
        tables: Any = t
        assert (list(tables.until), list(tables.tags)) == ([], [])


def test_what_the_lists_refuse_is_not_stored(cache: zlmdb.Cache[str, Any]) -> None:
    long = "k" * 505  # with eight bytes of a time, or with a tag, it is longer than a key may be
    with cache.transact():
        with pytest.raises(zlmdb.EncodeError):
            cache.set(long, 1, expire=5)
        with pytest.raises(zlmdb.EncodeError):
            cache.set(long, 1, tag="tag of the entry")
        with pytest.raises(zlmdb.EncodeError):
            cache.set("k" * 497, 1, expire=5, tag="tag of the entry")
        with pytest.raises(ValueError, match="expire=nan"):
            cache.set("a", 1, expire=float("nan"))
        with pytest.raises(ValueError, match="expire=True: expected seconds"):
            cache.set("a", 1, expire=True)
        later: Any = "tomorrow"
        with pytest.raises(TypeError, match="expire='tomorrow': expected seconds"):
            cache.set("a", 1, later)
        cache[long] = 1
        with pytest.raises(zlmdb.EncodeError):
            cache.touch(long, 5)
    assert list(cache) == [long]
    assert cache.details(long) == (1, None, None)
    assert cache.evict("tag of the entry") == cache.expire() == 0
    assert cache.clear() == 1


def test_a_tag_evicts_its_entries(cache: zlmdb.Cache[str, Any]) -> None:
    for number in range(30):
        cache.set(f"k{number}", number, tag=["red", "blué", None][number % 3])
    cache.set("k0", 0, tag="blué")
    cache.set("k1", 1)
    assert cache.details("k0") == (0, None, "blué")
    assert cache.evict("red") == 9
    assert cache.evict("blué") == 10
    assert cache.evict("blué") == 0
    assert len(cache) == 11


def test_values_and_keys_are_typed(tmp_path: Path) -> None:
    with zlmdb.Cache(tmp_path, UUID, User) as users:
        users[UUID(int=1)] = User("Ann", 31)
        assert users[UUID(int=1)] == User("Ann", 31)
        with pytest.raises(zlmdb.EncodeError):
            users[UUID(int=2)] = "Bob"  # type: ignore[assignment]  # the error to see
        with pytest.raises(zlmdb.EncodeError):
            users.set("x", User("Bob"))  # type: ignore[arg-type]  # the error to see
        with pytest.raises(TypeError, match="keys are texts"):
            users.memoize()
    with pytest.raises(zlmdb.SchemaMismatch, match="has values of type msgpack, not pickle"):
        zlmdb.Cache(tmp_path, UUID, zlmdb.Pickle)
    with pytest.raises(zlmdb.SchemaMismatch):
        zlmdb.Cache(tmp_path, int, User)

    @dataclass
    class Renamed:
        title: str

    with zlmdb.Cache(tmp_path, UUID, Renamed) as others:
        assert others.get(UUID(int=1)) is None  # a value of an older class is not there
        assert others.stats() == (0, 1)


def test_values_are_pickled_only_on_request(memory: zlmdb.Cache[str, Any]) -> None:
    with pytest.raises(zlmdb.EncodeError):
        memory["a"] = {1, 2}
    with zlmdb.Cache(None, str, zlmdb.Pickle) as pickled:
        pickled["a"] = {1, (2, 3)}
        assert pickled["a"] == {1, (2, 3)}


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="size_limit=0"):
        zlmdb.Cache(None, size_limit=0)
    for size in (True, float("nan")):
        odd: Any = size
        with pytest.raises(ValueError, match="size_limit=.*: expected a number of bytes"):
            zlmdb.Cache(None, size_limit=odd)
    with pytest.raises(ValueError, match="eviction_policy='fifo'"):
        zlmdb.Cache(None, eviction_policy="fifo")  # type: ignore[call-overload]  # the error to see


def test_operations_in_a_block_are_one_transaction(cache: zlmdb.Cache[str, Any]) -> None:
    cache["a"] = 1
    before = transactions(cache)
    with cache.transact():
        cache.incr("a")
        cache["b"] = 2
        with cache.transact():
            assert cache["a"] == 2
            assert "b" in cache
            assert len(cache) == 2
            assert list(cache) == ["a", "b"]
    assert transactions(cache) <= before + 1
    with pytest.raises(ZeroDivisionError), cache.transact():  # noqa: PT012 - the error is to leave the block
        cache["a"] = 3
        raise ZeroDivisionError
    assert cache["a"] == 2


def test_a_block_is_of_its_task_in_asyncio(memory: zlmdb.Cache[str, Any]) -> None:
    """What another task stored would be undone with the block, after it was told that it is stored."""
    memory["a"] = 1

    async def block() -> None:
        with memory.transact():
            memory["a"] = 2
            await asyncio.sleep(0)
            assert memory["a"] == 2
            raise ZeroDivisionError

    async def other() -> None:
        assert (memory["a"], len(memory)) == (1, 1)
        for write in (lambda: memory.set("b", 3), memory.transact().__enter__):
            with pytest.raises(zlmdb.NestedTransaction, match="await nothing in that block"):
                write()

    async def main() -> None:
        first, second = await asyncio.gather(block(), other(), return_exceptions=True)
        assert (type(first), second) == (ZeroDivisionError, None)
        with memory.transact():
            memory["b"] = 4

    asyncio.run(main())
    assert [(key, memory[key]) for key in memory] == [("a", 1), ("b", 4)]
    with memory.transact():
        asyncio.run(main_of(memory))  # the block is of the thread: its tasks are in it
    assert memory["c"] == 5


async def main_of(cache: zlmdb.Cache[str, Any]) -> None:
    cache["c"] = 5


def test_an_iteration_may_write(memory: zlmdb.Cache[str, Any]) -> None:
    with memory.transact():
        for number in range(2500):
            memory[f"{number:04}"] = number
    assert list(memory) == [f"{number:04}" for number in range(2500)]
    assert list(reversed(memory)) == [f"{number:04}" for number in range(2500)][::-1]
    seen = 0
    for key in memory:
        seen += 1
        del memory[key]
    assert seen == 2500
    assert not len(memory)


@given(st.lists(st.tuples(st.sampled_from("sagdiptew"), st.integers(0, 4), st.integers(0, 3)), max_size=40))
def test_random_operations_against_a_dict(steps: list[tuple[str, int, int]]) -> None:
    clock = Clock()
    model: dict[str, tuple[Any, Optional[float], Optional[str]]] = {}
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for one in CLOCKS:
            patch.setattr(one, "_clock", clock)
        cache: zlmdb.Cache[str, Any] = stack.enter_context(zlmdb.Cache(None))
        for step, number, other in steps:
            key, expire, tag = f"k{number}", [None, 0, 2, 5][other], [None, "x", "y", "x"][other]
            until = None if expire is None else clock.now + expire
            model = {name: one for name, one in model.items() if one[1] is None or one[1] > clock.now}
            if step == "s":
                cache.set(key, number, expire, tag=tag)
                model[key] = number, until, tag
            elif step == "a":
                assert cache.add(key, number, expire, tag=tag) == (key not in model)
                model.setdefault(key, (number, until, tag))
            elif step == "d":
                assert cache.delete(key) == (model.pop(key, None) is not None)
            elif step == "i":
                value, before, label = model.get(key, (0, None, None))
                assert cache.incr(key, other) == value + other
                model[key] = value + other, before, label
            elif step == "p":
                assert cache.pop(key) == model.pop(key, (None, None))[0]
            elif step == "t":
                assert cache.touch(key, expire) == (key in model)
                if key in model:
                    model[key] = model[key][0], until, model[key][2]
            elif step == "e" and tag is not None:
                cache.evict(tag)
                model = {name: one for name, one in model.items() if one[2] != tag}
            elif step == "w":
                clock.now += number
            model = {name: one for name, one in model.items() if one[1] is None or one[1] > clock.now}
            assert {name: cache.details(name) for name in cache if name in cache} == model
            cache.expire()
            assert len(cache) == len(model)
            with cache._db.read() as t:
                tables: Any = t
                listed = sorted(tables.until, key=lambda row: row[1])
                timed = sorted((name, one[1]) for name, one in model.items() if one[1])
                assert [name for _, name in listed] == [name for name, _ in timed]
                assert all(clock.now < time <= until for (time, _), (_, until) in zip(listed, timed))
                assert sorted(tables.tags) == sorted((one[2], name) for name, one in model.items() if one[2])


# -- size and use -------------------------------------------------------------------------------------------------


def test_a_full_cache_evicts_what_is_not_used(tmp_path: Path, clock: Clock) -> None:
    value = "x" * 1000
    with zlmdb.Cache(tmp_path / "lru", size_limit=600_000) as cache:
        for number in range(1500):
            cache.set(f"{number:05}", value)
            for favourite in range(0, 100, 10):
                cache.get(f"{favourite:05}")
            clock.now += 1
        assert cache.volume() < 800_000
        assert len(cache) > 250
        assert [f"{favourite:05}" for favourite in range(0, 100, 10) if f"{favourite:05}" not in cache] == []
        before = len(cache)
        assert cache.cull() <= before // 2
        assert cache.volume() <= 600_000
        with cache._db.read() as t:
            tables: Any = t
            assert set(tables.used) <= set(tables.entries)
    with zlmdb.Cache(tmp_path / "lrs", size_limit=600_000, eviction_policy="least-recently-stored") as cache:
        for number in range(1500):
            cache.set(f"{number:05}", value)
            cache.get("00000")
        assert cache.volume() < 800_000
        assert "00000" not in cache
        assert "01499" in cache
        with cache._db.read() as t:
            assert not len(t["used"])
    with zlmdb.Cache(tmp_path / "none", size_limit=100_000, eviction_policy="none") as cache:
        for number in range(300):
            cache.set(f"{number:05}", value)
        assert cache.cull() == 0
        assert len(cache) == 300


@pytest.mark.parametrize(("small", "large", "limit"), [(0, 5 << 20, 20 << 20), (2000, 1 << 19, 4 << 20)])
def test_large_values_do_not_outrun_the_hand(small: int, large: int, limit: int) -> None:
    """It looks at 4 MiB with each write. Values of more than that were stored as fast as it went round."""
    with zlmdb.Cache(None, str, bytes, size_limit=limit) as cache:
        for number in range(small):
            cache.set(f"small {number}", b"x" * 1000)
        for number in range(16):
            cache.set(f"large {number:02}", b"x" * large)
            assert cache.volume() < 1.4 * limit
            assert f"large {number:02}" in cache
            cache.get("large 00")
        assert "large 00" in cache or small


def test_large_values_do_not_empty_the_cache(tmp_path: Path) -> None:
    with zlmdb.Cache(tmp_path, size_limit=6_000_000) as cache:
        for number in range(300):
            cache.set(str(number), b"x" * 100_000)
        assert len(cache) > 30
        assert cache.volume() < 9_000_000


def test_an_operation_is_one_transaction_and_writes_one_record(cache: zlmdb.Cache[str, Any]) -> None:
    real, puts = cache._db.run, []

    def run(work: Any, *, write: bool = True) -> Any:
        def counted(t: Any) -> Any:
            result = work(t)
            if write:
                puts.append((t.txn._puts, t.txn._dels))
            return result

        return real(counted, write=write)

    cache._db.run = run  # type: ignore[method-assign]  # what is counted
    operations: list[tuple[Any, int, int]] = [
        (lambda: cache.set("a", 1), 1, 0),
        (lambda: cache.set("a", 2), 1, 0),
        (lambda: cache.set("b", 1, 50), 2, 0),
        (lambda: cache.set("b", 1, 60), 1, 0),  # the list by time keeps it under the earlier time
        (lambda: cache.touch("b", 70), 1, 0),
        (lambda: cache.set("b", 1, 40), 2, 1),
        (lambda: cache.touch("b", 60), 1, 0),
        (lambda: cache.set("c", 1, tag="t"), 2, 0),
        (lambda: cache.set("c", 2, tag="t"), 1, 0),
        (lambda: cache.incr("a"), 1, 0),
        (lambda: cache.touch("a"), 1, 0),
        (lambda: cache.delete("b"), 0, 2),
        (lambda: cache.pop("a"), 0, 1),
        (lambda: cache.evict("t"), 0, 2),
    ]
    for operation, written, deleted in operations:
        before = transactions(cache)
        puts.clear()
        operation()
        assert puts == [(written, deleted)]
        assert transactions(cache) <= before + 1
    cache.set("d", 1)
    before = transactions(cache)
    puts.clear()
    for _ in range(3000):
        assert cache.get("d") == 1
        cache.get("x")
    assert not cache.add("d", 2)
    assert "d" in cache
    assert list(cache) == ["d"]
    assert transactions(cache) == before
    assert puts == []


def test_reads_of_a_full_cache_are_noted_many_at_a_time(memory: zlmdb.Cache[str, Any]) -> None:
    with memory.transact():
        for number in range(1000):
            memory[str(number)] = number
    memory._size_limit = memory.volume()
    memory._measure()
    before = transactions(memory)
    for number in range(1000):
        assert memory[str(number)] == number
    assert transactions(memory) == before + 1


# -- memoize ------------------------------------------------------------------------------------------------------


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2
    RUN = 4


class Color(enum.Enum):
    RED = 1


def test_a_memoized_function_is_called_once_for_its_arguments(cache: zlmdb.Cache[str, Any], clock: Clock) -> None:
    calls: list[Any] = []

    @cache.memoize(expire=10, tag="sums", ignore=("log",))
    def add(one: int, other: int = 2, *, log: object = None) -> int:
        """The sum."""
        calls.append((one, other))
        return one + other

    assert [add(1), add(1, 2), add(one=1, other=2), add(1, log=object()), add(2)] == [3, 3, 3, 3, 4]
    assert calls == [(1, 2), (2, 2)]
    assert add.__name__ == "add"
    assert add.__doc__ == "The sum."
    wrapped: Any = add
    key = wrapped.__cache_key__(1)
    assert cache[key] == 3
    assert wrapped.__wrapped__(5) == 7
    clock.now += 10
    assert add(1) == 3
    assert cache.evict("sums") >= 1
    assert add(1) == 3
    assert calls == [(1, 2), (2, 2), (5, 2), (1, 2), (1, 2)]
    assert len(wrapped.__cache_key__(10**300)) < 200
    with pytest.raises(TypeError, match="no key can be made"):
        wrapped(object())
    with pytest.raises(TypeError, match=r"write @cache.memoize\(\)"):
        cache.memoize(wrapped)

    @cache.memoize("named", key=lambda one: f"n{one}")
    def none(one: int) -> None:
        calls.append(one)

    assert none(1) is none(1) is None
    assert calls[-2:] != [1, 1]
    assert cache["n1"] is None


def test_a_function_whose_results_would_be_mixed_up_or_cannot_be_kept_is_refused(cache: Any) -> None:
    class Doubles:
        def __call__(self, one: int) -> int:
            return 2 * one

    class Waits:
        async def __call__(self, one: int) -> int:
            return 3 * one

    def numbers(most: int) -> Iterator[int]:
        yield from range(most)

    async def later(most: int) -> Any:
        yield most

    for function in (lambda one: one, partial(max, 1), Doubles(), Doubles().__call__, [1].index):
        with pytest.raises(TypeError, match="give a name"):
            cache.memoize()(function)
    for function in (numbers, later):
        with pytest.raises(TypeError, match="let it return a list"):
            cache.memoize()(function)
    doubles, waits = cache.memoize("doubles")(Doubles()), cache.memoize("waits")(Waits())
    assert [doubles(2), doubles(2)] == [4, 4]
    assert [asyncio.run(waits(2)), asyncio.run(waits(2))] == [6, 6]


def test_an_exception_is_not_kept(cache: zlmdb.Cache[str, Any]) -> None:
    results = [ZeroDivisionError(), 5]

    @cache.memoize()
    def once() -> int:
        result = results.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    with pytest.raises(ZeroDivisionError):
        once()
    assert once() == once() == 5


def test_a_function_may_call_itself(memory: zlmdb.Cache[str, Any]) -> None:
    @memory.memoize()
    def fibonacci(number: int) -> int:
        return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)

    depth: list[int] = []

    @memory.memoize()
    def same() -> int:
        depth.append(1)
        return 1 if len(depth) == 2 else same() + 1

    assert fibonacci(40) == 102334155
    assert same() == 2


def test_keys_of_equal_arguments_are_equal_and_of_others_not() -> None:
    values: list[Any] = [
        1, True, "1", b"1", 1.5, None, UUID(int=1), dt.date(2020, 1, 1), [1], (1,), [1, [2]], [[1], 2], {1, 2},
        {"1": 2}, {"1": [2]}, Color.RED, "Color.RED", Access.READ, Access.READ | Access.WRITE, Access.READ | Access.RUN,
        Access(0), Access(64), Access(128), enum.Enum("Color", "RED", module="other").RED, "a,b", ["a", "b"], ["a,b"],
    ]  # fmt: skip
    texts = [text_of(value) for value in values]
    assert len(set(texts)) == len(texts)
    assert text_of({"a": 1, "b": 2}) == text_of({"b": 2, "a": 1})
    assert text_of({"b", "a"}) == text_of({"a", "b"})


def test_an_integer_has_a_key_however_large_it_is() -> None:
    """Python refuses to make a decimal text of more than 4,300 digits, or of more than 640 if it is told so."""
    large = 10**5000
    assert len({text_of(value) for value in (large, -large, large + 1, [large], hex(large), Access(large))}) == 6
    assert text_of(10**600) == str(10**600)


def test_threads_that_ask_at_once_compute_once(memory: zlmdb.Cache[str, Any]) -> None:
    calls: list[int] = []
    together = threading.Barrier(8)

    @memory.memoize()
    def slow(number: int) -> int:
        calls.append(number)
        time.sleep(0.05)
        return number

    found: list[int] = []

    def ask() -> None:
        together.wait()
        found.append(slow(3))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == [3] * 8
    assert calls == [3]


def test_tasks_that_ask_at_once_compute_once_and_survive_a_cancellation(memory: zlmdb.Cache[str, Any]) -> None:
    calls: list[int] = []

    @memory.memoize()
    async def slow(number: int) -> int:
        calls.append(number)
        await asyncio.sleep(0.02)
        return number

    async def main() -> None:
        assert await asyncio.gather(*[slow(1) for _ in range(10)]) == [1] * 10
        assert calls == [1]
        first, second, third = [asyncio.ensure_future(slow(2)) for _ in range(3)]
        await asyncio.sleep(0.005)
        first.cancel()
        second.cancel()
        assert await third == 2
        assert calls == [1, 2, 2]
        assert await slow(2) == 2

    asyncio.run(main())
    assert not memory._flights


PROCESS = """
import sys, time, zlmdb
with zlmdb.Cache(sys.argv[1]) as cache:
    @cache.memoize("slow")
    def slow(number):
        time.sleep(0.15)
        cache.incr("calls")
        return number
    print("ready", flush=True)
    sys.stdin.readline()
    print(slow(7), flush=True)
"""


@pytest.mark.once  # processes take a while to start on PyPy
def test_processes_that_ask_at_once_compute_once(tmp_path: Path) -> None:
    environment = workers.surroundings()
    command = [sys.executable, "-c", PROCESS, str(tmp_path)]
    processes = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    outputs = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        outputs.append(process.communicate(timeout=60)[0])
    assert outputs == ["7\n", "7\n"]
    with zlmdb.Cache(tmp_path) as cache:
        assert cache["calls"] == 1


def begun(cache: zlmdb.Cache[str, Any], key: str, lock: float) -> Any:
    """A call that computes the value of *key*."""
    call = cachememoized._Flight(cache, key, lock)
    assert cache._begin(key, lock, call.me) == (False, None)
    return call


def test_what_a_dead_process_computes_is_computed_by_another(memory: zlmdb.Cache[str, Any], clock: Clock) -> None:
    calls: list[int] = []

    @memory.memoize("f", lock=5)
    def function() -> int:
        calls.append(1)
        return 1

    call = begun(memory, "f()", 5)
    memory._mine.clear()  # it was another process, which dies now
    assert memory._begin("f()", 5, call.me)[1]
    clock.now += 5
    assert function() == 1
    assert calls == [1]


def test_the_time_for_a_computation_begins_with_it_and_not_with_the_wait_for_another_process(
    memory: zlmdb.Cache[str, Any], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a process was killed, two callers here computed: the time of the second was over as the first began."""
    monkeypatch.setattr(cachememoized, "monotonic", clock)
    memory._db.run(lambda t: t.pending.update({"f": clock.now + 60}))
    first, other = cachememoized._Flight(memory, "f", 60), cachememoized._Flight(memory, "f", 60)
    other.owner = "another thread"
    assert first.take_off() is None
    looks = first.pauses(60)
    assert next(looks) < 1
    waited = other.take_off()
    clock.now += 60
    assert not list(looks)
    assert waited is first.future
    assert not other.follows(waited, cachememoized._LATE)
    clock.now += 45
    assert other.take_off() is first.future
    assert other.waits == 15
    clock.now += 15
    assert not other.follows(first.future, cachememoized._LATE)
    assert other.take_off() is None
    other.land()
    first.land()


def test_of_those_who_wait_for_a_call_that_takes_too_long_one_computes(
    memory: zlmdb.Cache[str, Any], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of the second call was that of its wait: so all others found it over, and computed, too."""
    monkeypatch.setattr(cachememoized, "monotonic", clock)
    first, second, third = [cachememoized._Flight(memory, "f", 60) for _ in range(3)]
    second.owner = third.owner = "another thread"
    assert first.take_off() is None
    assert second.take_off() is third.take_off() is first.future
    clock.now += 60
    assert not second.follows(first.future, cachememoized._LATE)
    assert second.take_off() is None
    assert not third.follows(first.future, cachememoized._LATE)
    third.owner = "a third one"
    assert third.take_off() is second.future
    assert third.waits == 60
    second.land()
    first.land()


def test_calls_that_waited_for_a_long_writer_do_not_compute_at_once(memory: zlmdb.Cache[str, Any]) -> None:
    """Each of them had been given up by the next one, who took what the file said of it for that of an ended call."""
    first = begun(memory, "f", 60)
    second = cachememoized._Flight(memory, "f", 60)
    assert memory._begin("f", 60, second.me)[1] == "another call computes it"
    first.land()  # and could not say so in the file
    assert memory._begin("f", 60, second.me) == (False, None)
    second.land()


def test_whoever_fails_late_leaves_alone_the_thread_that_computes_now(
    memory: zlmdb.Cache[str, Any], clock: Clock
) -> None:
    first = begun(memory, "f", 60)
    clock.now += 60
    second = begun(memory, "f", 60)
    memory._give_up("f", first.me)
    memory._end("g", 1, None, None, first.me)
    third = cachememoized._Flight(memory, "f", 60)
    assert memory._begin("f", 60, third.me)[1] == "another call computes it"
    memory._give_up("f", second.me)
    assert memory._begin("f", 60, third.me) == (False, None)
    memory._end("f", 1, None, None, third.me)
    assert not memory._mine


def test_memoize_with_a_lock_beyond_all_floats_computes(memory: zlmdb.Cache[str, Any]) -> None:
    @memory.memoize("f", lock=10**400)
    def function() -> int:
        return 1

    assert [function(), function()] == [1, 1]


def test_a_clock_that_is_set_back_keeps_nobody_waiting_for_a_dead_process(
    memory: zlmdb.Cache[str, Any], clock: Clock
) -> None:
    call = begun(memory, "f()", 5)
    memory._mine.clear()  # it was another process, which dies now
    clock.now -= 3600
    assert memory._begin("f()", 5, call.me) == (False, None)
    memory._mine.clear()
    assert memory._begin("f()", 5, call.me)[1]


# -- the file -----------------------------------------------------------------------------------------------------


def fill(path: Path) -> None:
    with zlmdb.Cache(path) as cache:
        cache["a"] = 1


def test_a_cache_survives_its_processes_and_a_boot_after_a_clean_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    assert (tmp_path / "boot").read_text() == "clean"
    monkeypatch.setattr(cachefile, "boot", lambda: "another")
    with zlmdb.Cache(tmp_path) as cache:
        assert cache["a"] == 1
        assert (tmp_path / "boot").read_text() == "another"


DIES = "import os, sys, zlmdb; cache = zlmdb.Cache(sys.argv[1]); cache['b'] = 2; os._exit(0)"


def abandon(cache: Any) -> None:
    """What the end of a process leaves that did not close its cache."""
    cache._db.close()
    cache._file._users.close()


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_after_a_boot_that_interrupted_it_a_cache_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=True, env=workers.surroundings())
    with zlmdb.Cache(tmp_path) as cache:  # the machine runs on
        assert dict.fromkeys(cache, 0) == {"a": 0, "b": 0}
        monkeypatch.setattr(cachefile, "boot", lambda: "second")
        with zlmdb.Cache(tmp_path) as other:  # who opens it while somebody uses it does not empty it
            assert other["b"] == 2
        assert (tmp_path / "boot").read_text() != "clean"
    abandon(zlmdb.Cache(tmp_path))
    monkeypatch.setattr(cachefile, "boot", lambda: "third")
    abandon(zlmdb.Cache(tmp_path, keep=True))
    with zlmdb.Cache(tmp_path) as cache:
        assert len(cache) == 2
    abandon(zlmdb.Cache(tmp_path))
    monkeypatch.setattr(cachefile, "boot", lambda: "fourth")
    with zlmdb.Cache(tmp_path) as cache:
        assert len(cache) == 0
        cache["c"] = 1


def test_without_locks_a_cache_is_empty_after_each_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cachefile, "fcntl", None)
    fill(tmp_path)
    with zlmdb.Cache(tmp_path) as cache:
        assert len(cache) == 1
        with zlmdb.Cache(tmp_path) as other:
            assert len(other) == 1
    monkeypatch.setattr(cachefile, "boot", lambda: "another")
    with zlmdb.Cache(tmp_path) as cache:
        assert len(cache) == 0


@pytest.mark.parametrize("marked", [False, True])
def test_a_directory_of_something_else_is_no_cache_and_is_not_emptied(tmp_path: Path, marked: bool) -> None:
    """`Cache(".")` deleted the database in the directory ``data`` of a program."""

    class Store(zlmdb.Schema):
        rows: zlmdb.Table[int, str]

    with zlmdb.open(tmp_path / "data", Store) as db, db.write() as t:
        t.rows[1] = "one"
    (tmp_path / "data" / "notes.txt").touch()
    if marked:  # by some other program
        (tmp_path / "boot").write_text("now")
    before = sorted(os.listdir(tmp_path))
    for keep in (False, True)[: 2 - marked]:
        with pytest.raises(zlmdb.InvalidDatabase, match=r"of a cache.*data.*choose another path") as caught:
            zlmdb.Cache(tmp_path, keep=keep)
        assert caught.value.path == str(tmp_path)
    with pytest.raises(zlmdb.InvalidDatabase, match=r"data.mdb"):
        zlmdb.Cache(tmp_path / "data")
    with zlmdb.open(tmp_path / "data", Store) as db, db.read() as t:
        assert dict(t.rows) == {1: "one"}
    assert [name for name in sorted(os.listdir(tmp_path)) if name not in ("guard", "users")] == before


def test_a_cache_whose_file_is_on_another_disk_is_emptied_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "boot").touch()
    (tmp_path / "cache" / "data").symlink_to(tmp_path / "disk")
    first = zlmdb.Cache(tmp_path / "cache")
    first["a"] = 1
    first._db.close()
    assert first._file is not None
    first._file.close(None)  # as if the machine had stopped
    monkeypatch.setattr(cachefile, "boot", lambda: "another")
    with zlmdb.Cache(tmp_path / "cache") as cache:
        assert len(cache) == 0
        cache["b"] = 2
    assert (tmp_path / "disk" / "data.mdb").exists()


def test_a_cache_on_a_full_disk_names_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(zlmdb.DiskError, match=r"cache '.*' could not be written .*: make room") as caught:
        zlmdb.Cache(tmp_path)
    assert caught.value.path == str(tmp_path)
    monkeypatch.undo()
    zlmdb.Cache(tmp_path).close()


def test_boots_without_names_are_told_by_their_time() -> None:
    assert cachefile.is_same_boot("1000", "1060")
    assert not cachefile.is_same_boot("1000", "5000")
    assert not cachefile.is_same_boot("1000", "a-b")
    assert cachefile.is_same_boot(cachefile.boot(), cachefile.boot())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_that_closes_its_cache_leaves_that_of_its_parent_in_use(tmp_path: Path) -> None:
    with zlmdb.Cache(tmp_path) as cache:
        cache["a"] = 1
        child = os.fork()
        if not child:
            try:
                ok = cache["a"] == 1
                cache["b"] = 2
                cache.close()
                os._exit(0 if ok else 1)
            except BaseException:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert cache["b"] == 2
        assert (tmp_path / "boot").read_text() != "clean"
        with zlmdb.Cache(tmp_path) as second:
            second["c"] = 3
        assert (tmp_path / "boot").read_text() != "clean"
    assert (tmp_path / "boot").read_text() == "clean"
    cache.close()
    assert "closed" in repr(cache)
    with pytest.raises(zlmdb.DatabaseClosed, match="^the cache .* is not open: open it again"):
        cache["a"] = 1


def test_a_cache_in_a_file_can_be_pickled(memory: zlmdb.Cache[str, Any], tmp_path: Path) -> None:
    with zlmdb.Cache(tmp_path, UUID, User) as cache:
        cache[UUID(int=1)] = User("Ann")
        with pickle.loads(pickle.dumps(cache)) as other:
            assert other[UUID(int=1)] == User("Ann")
    with pytest.raises(TypeError, match="in memory cannot be pickled"):
        pickle.dumps(memory)


def test_a_cache_stays_where_it_is_when_the_program_goes_to_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with zlmdb.Cache("cache") as cache:
        cache["a"] = 1
        monkeypatch.chdir(tmp_path / "elsewhere")
        with pickle.loads(pickle.dumps(cache)) as other:
            assert other["a"] == 1
    assert os.listdir() == []
    assert (tmp_path / "cache" / "boot").read_text() == "clean"


def test_seconds_beyond_all_floats_are_for_ever_or_over() -> None:
    with zlmdb.Cache(None) as cache:
        cache.set("ever", 1, expire=10**400)
        cache.set("over", 1, expire=-(10**400))
        assert (cache.get("ever"), cache.get("over")) == (1, None)


def test_caches_of_one_type_of_keys_declare_their_tables_once() -> None:
    assert tables_for(str) is tables_for(str)
    forward: Any = Literal["a", "b"]
    back: Any = Literal["b", "a"]  # equal, and in another order
    assert forward == back
    assert tables_for(forward) is not tables_for(back)
