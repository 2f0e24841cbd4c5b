"""`zlmdb.Cache` and `zlmdb.Queue` beside diskcache's Cache and Deque: each method alone, one transaction a call.

Neither syncs: that is how a cache is opened, and ``sqlite_synchronous=0`` in diskcache. Values are texts, which
diskcache stores as they are, without a pickle. The queue of zlmdb gives each job a lease and acknowledges it; a Deque
does not, so its row is the cheaper promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .inside import Inside, Question, Timed

MOST = 2_000
"""Operations of a turn: so many are enough to tell methods of some microseconds apart."""


@contextmanager
def caches(directory: Path, size: int, use: Callable[[Any, list[str]], int]) -> Iterator[Timed]:
    """Both caches with the keys in them, and *use* of each."""
    import zlmdb

    keys = [f"key {number}" for number in range(min(size, MOST))]
    with ExitStack() as stack:
        ours = stack.enter_context(zlmdb.Cache(directory / "ours"))
        found = {**disk_cache(directory, stack), "zlmdb": ours}
        for cache in found.values():
            for key in keys:
                cache.set(key, f"the value of {key}")
                cache.set(f"number of {key}", 0)
            assert cache.get(keys[0]) == f"the value of {keys[0]}"
        yield {label: partial(use, cache, keys) for label, cache in found.items()}


def disk_cache(directory: Path, stack: ExitStack) -> dict[str, Any]:
    """The cache of diskcache, if that is installed."""
    if find_spec("diskcache") is None:
        return {}
    import diskcache

    return {"diskcache": stack.enter_context(diskcache.Cache(str(directory / "theirs"), sqlite_synchronous=0))}


def gets(cache: Any, keys: list[str]) -> int:
    for key in keys:
        cache.get(key)
    return len(keys)


def misses(cache: Any, keys: list[str]) -> int:
    for _ in keys:
        cache.get("nothing")
    return len(keys)


def sets(cache: Any, keys: list[str]) -> int:
    for key in keys:
        cache.set(key, "another value")
    return len(keys)


def expiring(cache: Any, keys: list[str]) -> int:
    for key in keys:
        cache.set(key, "another value", expire=3600, tag="all")
    return len(keys)


def increments(cache: Any, keys: list[str]) -> int:
    for key in keys:
        cache.incr(f"number of {key}")
    return len(keys)


def replaced(cache: Any, keys: list[str]) -> int:
    """Deleted and set again."""
    for key in keys:
        cache.delete(key)
        cache.set(key, "another value")
    return len(keys)


@contextmanager
def memoized(directory: Path, size: int) -> Iterator[Timed]:
    """Hits of a memoized function."""
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
        yield {label: partial(run, function) for label, function in functions.items()}


@contextmanager
def queues(directory: Path, size: int) -> Iterator[Timed]:
    """A job is put, taken and done."""
    import zlmdb

    class Tables(zlmdb.Schema):
        jobs: zlmdb.Queue[str]

    jobs = [f"job {number}" for number in range(min(size, MOST))]
    with ExitStack() as stack:
        db = stack.enter_context(zlmdb.open(directory / "ours", Tables, durability="none"))
        theirs = disk_cache(directory, stack)

        def ours() -> int:
            for job in jobs:
                with db.write() as t:
                    t.jobs.put(job)
            for _ in jobs:
                with db.write() as t:
                    lease = t.jobs.claim()
                assert lease is not None
                with db.write() as t:
                    t.jobs.done(lease)
            return len(jobs)

        def of_deque(cache: Any) -> int:
            from diskcache import Deque

            deque = Deque.fromcache(cache)
            for job in jobs:
                deque.append(job)
            for _ in jobs:
                deque.popleft()
            return len(jobs)

        yield {**{label: partial(of_deque, cache) for label, cache in theirs.items()}, "zlmdb": ours}


class Caching(Inside):
    name = "caching"
    title = "Cache and Queue, one transaction a call, no sync"
    sizes = {"tiny": (20,), "small": (500,), "window": (2_000,), "full": (2_000,)}
    labels = ("diskcache", "zlmdb")
    questions = (
        *(
            Question(name, partial(caches, use=use), "diskcache", "call")
            for name, use in (
                ("get, a hit", gets), ("get, a miss", misses), ("set", sets), ("set with expire and tag", expiring),
                ("incr", increments), ("delete and set", replaced),
            )
        ),
        Question("a memoized function, a hit", memoized, "diskcache", "call"),
        Question("a queue: put, take and done", queues, "diskcache", "job"),
    )  # fmt: skip
