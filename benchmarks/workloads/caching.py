"""`zlmdb.Cache` and `zlmdb.Queue` beside diskcache's Cache and Deque: each method alone, one transaction a call.

Neither syncs, unless the name says so: that is how a cache is opened, and ``sqlite_synchronous=0`` in diskcache. Values
are texts, which diskcache stores as they are, without a pickle. Each cache has the keys of a turn, and what a method
takes out is put back before the next turn, outside the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from . import queueing
from .inside import Inside, Prepared, Question, Timed

MOST = 2_000
"""Operations of a turn: so many are enough to tell methods of some microseconds apart."""

FEW = 100
"""Of methods that are slow, or that do the same each time."""

Use = Callable[[Any, list[str]], object]


def as_it_is(cache: Any, keys: list[str]) -> None:
    """Nothing."""


@dataclass(frozen=True)
class Method:
    """*use* calls it for each of the keys, or once for all; *before* makes the cache ready for it."""

    name: str
    use: Use
    before: Use = as_it_is
    unit: str = "call"
    most: int = MOST


def disk_cache(directory: Path, stack: ExitStack, synchronous: int = 0) -> dict[str, Any]:
    """The cache of diskcache, if that is installed."""
    if find_spec("diskcache") is None:
        return {}
    import diskcache

    return {
        "diskcache": stack.enter_context(diskcache.Cache(str(directory / "theirs"), sqlite_synchronous=synchronous))
    }


@contextmanager
def caches(directory: Path, size: int, method: Method) -> Iterator[Timed]:
    """Both caches with the keys in them, and *method* of each."""
    import zlmdb

    keys = [f"key {number}" for number in range(min(size, method.most))]
    with ExitStack() as stack:
        ours = stack.enter_context(zlmdb.Cache(directory / "ours"))
        found = {**disk_cache(directory, stack), "zlmdb": ours}
        for cache in found.values():
            filled(cache, keys)
            assert cache.get(keys[0]) == f"the value of {keys[0]}"

        def run(cache: Any) -> int:
            method.use(cache, keys)
            return len(keys)

        yield {
            label: Prepared(partial(run, cache), partial(method.before, cache, keys)) for label, cache in found.items()
        }


# -- what is done before, outside the clock ---------------------------------------------------------------------------


def filled(cache: Any, keys: list[str]) -> None:
    with cache.transact():
        for key in keys:
            cache.set(key, f"the value of {key}")
            cache.set(f"number of {key}", 0)


def without(cache: Any, keys: list[str]) -> None:
    with cache.transact():
        for key in keys:
            cache.delete(key)


def tagged(cache: Any, keys: list[str]) -> None:
    with cache.transact():
        for key in keys:
            cache.set(key, f"the value of {key}", tag=key)


def alike(cache: Any, keys: list[str]) -> None:
    with cache.transact():
        for key in keys:
            cache.set(key, f"the value of {key}", tag="all")


def over(cache: Any, keys: list[str]) -> None:
    """All have expired; deleted by none of the writes, which both let do so."""
    seconds = 0.02 + 0.00015 * len(keys)
    began = monotonic()
    with cache.transact():
        for key in keys:
            cache.set(key, f"the value of {key}", expire=seconds)
    sleep(2 * seconds + max(0.0, monotonic() - began - seconds))


# -- the methods ------------------------------------------------------------------------------------------------------


def gets(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.get(key)


def items(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache[key]


def misses(cache: Any, keys: list[str]) -> None:
    for _ in keys:
        cache.get("nothing")


def details(cache: Any, keys: list[str]) -> None:
    """The value with its expiry and tag."""
    if hasattr(cache, "details"):
        for key in keys:
            cache.details(key)
    else:
        for key in keys:
            cache.get(key, expire_time=True, tag=True)


def contains(cache: Any, keys: list[str]) -> None:
    for key in keys:
        key in cache  # noqa: B015


def sets(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.set(key, "another value")


def set_items(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache[key] = "another value"


def expiring(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.set(key, "another value", expire=3600, tag="all")


def transacted(cache: Any, keys: list[str]) -> None:
    """Ten in a transaction."""
    for at in range(0, len(keys), 10):
        with cache.transact():
            for key in keys[at : at + 10]:
                cache.set(key, "another value")


def adds(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.add(key, "a value")


def increments(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.incr(f"number of {key}")


def decrements(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.decr(f"number of {key}")


def touches(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.touch(key, expire=3600)


def pops(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.pop(key)


def deletes(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.delete(key)


def del_items(cache: Any, keys: list[str]) -> None:
    for key in keys:
        del cache[key]


def replaced(cache: Any, keys: list[str]) -> None:
    """Deleted and set again."""
    for key in keys:
        cache.delete(key)
        cache.set(key, "another value")


def evicts_one(cache: Any, keys: list[str]) -> None:
    for key in keys:
        cache.evict(key)


def evicts_all(cache: Any, keys: list[str]) -> None:
    cache.evict("all")


def expires(cache: Any, keys: list[str]) -> None:
    cache.expire()


def clears(cache: Any, keys: list[str]) -> None:
    cache.clear()


def culls(cache: Any, keys: list[str]) -> None:
    for _ in keys:
        cache.cull()


def iterates(cache: Any, keys: list[str]) -> None:
    list(cache)


def backwards(cache: Any, keys: list[str]) -> None:
    list(reversed(cache))


def sorts(cache: Any, keys: list[str]) -> None:
    list(cache.iterkeys())


def lengths(cache: Any, keys: list[str]) -> None:
    for _ in keys:
        len(cache)


def volumes(cache: Any, keys: list[str]) -> None:
    for _ in keys:
        cache.volume()


def statistics(cache: Any, keys: list[str]) -> None:
    for _ in keys:
        cache.stats()


METHODS = (
    Method("get, a hit", gets), Method("get, a miss", misses), Method("[key], a hit", items),
    Method("get with expiry and tag", details), Method("key in cache", contains), Method("set", sets),
    Method("[key] = value", set_items), Method("set with expire and tag", expiring),
    Method("set, ten in transact()", transacted), Method("add, a new key", adds, without),
    Method("add, a key that is there", adds), Method("incr", increments), Method("decr", decrements),
    Method("touch", touches), Method("pop", pops, filled), Method("delete", deletes, filled),
    Method("del cache[key]", del_items, filled), Method("delete and set", replaced),
    Method("evict, one with the tag", evicts_one, tagged),
    Method("evict, all with the tag", evicts_all, alike, "entry"),
    Method("expire, all have expired", expires, over, "entry"), Method("clear", clears, filled, "entry"),
    Method("cull, within the limit", culls, most=FEW), Method("list(cache)", iterates, unit="entry"),
    Method("list(reversed(cache))", backwards, unit="entry"), Method("iterkeys", sorts, unit="entry"),
    Method("len(cache)", lengths), Method("volume", volumes, most=FEW), Method("stats", statistics),
)  # fmt: skip


# -- memoize ----------------------------------------------------------------------------------------------------------


@contextmanager
def memoized(directory: Path, size: int, hit: bool) -> Iterator[Timed]:
    """Calls of a memoized function, which are hits or not."""
    import zlmdb

    numbers = range(min(size, MOST))

    def double(number: int) -> int:
        return 2 * number

    with ExitStack() as stack:
        caches = {**disk_cache(directory, stack), "zlmdb": stack.enter_context(zlmdb.Cache(directory / "ours"))}
        functions = {label: cache.memoize()(double) for label, cache in caches.items()}

        def run(function: Callable[[int], int]) -> int:
            for number in numbers:
                function(number)
            return len(numbers)

        for function in functions.values():
            assert [function(number) for number in numbers] == [2 * number for number in numbers]
        yield {
            label: Prepared(partial(run, function), bool if hit else caches[label].clear)
            for label, function in functions.items()
        }


class Caching(Inside):
    name = "caching"
    title = "Cache and Queue, one transaction a call, no sync"
    sizes = {"tiny": (20,), "small": (500,), "window": (2_000,), "full": (2_000,)}
    labels = ("diskcache", "zlmdb")
    questions = (
        *(Question(one.name, partial(caches, method=one), "diskcache", one.unit) for one in METHODS),
        Question("a memoized function, a hit", partial(memoized, hit=True), "diskcache", "call"),
        Question("a memoized function, a miss", partial(memoized, hit=False), "diskcache", "call"),
        *(
            Question(one.name, partial(queueing.queues, method=one, theirs=disk_cache), "diskcache", one.unit)
            for one in queueing.METHODS
        ),
    )
