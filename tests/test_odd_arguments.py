"""Whatever is given to a cache, a queue, a worker, a feed or a sweep: the error names it, and the data is as before."""

from __future__ import annotations

import asyncio
import math
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest

import zlmdb


class Unshown:
    """Its repr and its str fail."""

    def __repr__(self) -> str:
        raise LookupError("no text")


ODD: list[Any] = [
    None, True, False, -1, 10**30, -(10**30), 1 << 63, 10**5000, math.nan, math.inf, -math.inf, 1.5, "", "x", "\ud800",
    "x" * 10000, b"", b"x", bytearray(b"x"), [], [1], (), (1,), {}, {"a": 1}, set(), {1}, object(), Unshown(), 1j, int,
    Decimal("1.5"), Decimal("sNaN"), Fraction(1, 3), UUID(int=7), timedelta(1), datetime(2026, 1, 1), range(3), ...,
]  # fmt: skip
each_odd = pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
ALLOWED = TypeError, ValueError, KeyError, TimeoutError, zlmdb.Error


@dataclass
class Record:
    name: str
    until: float


class Jobs(zlmdb.Queue[str], attempts=2):
    pass


class Records(zlmdb.Table[int, Record], expires="until", feed=True):
    pass


class Store(zlmdb.Schema):
    jobs: Jobs
    records: Records
    plain: zlmdb.Table[int, str]


@pytest.fixture
def db() -> Iterator[zlmdb.Database[Store]]:
    with zlmdb.open(None, Store) as opened:
        with opened.write() as t:
            t.jobs.put("kept", delay=10**9)
            t.records[1] = Record("kept", 1e18)
            t.plain[1] = "kept"
        yield opened


@pytest.fixture
def cache() -> Iterator[zlmdb.Cache[str, Any]]:
    with zlmdb.Cache(None) as made:
        made.set("kept", 7, tag="kept")
        yield made


def attempted(calls: list[Callable[[], Any]]) -> None:
    """Call each; an error must be one that a caller expects, made by us and not by what we call."""
    texts: list[str] = []
    for call in calls:
        try:
            call()
        except UnicodeError as error:
            pytest.fail(f"{call} raises {error!r}")
        except ALLOWED as error:
            texts.append(str(error))
    foreign = "not supported between", "not callable", "not iterable", "unhashable", "has no len"
    assert [text for text in texts if any(words in text for words in foreign)] == []


@each_odd
def test_a_cache_is_unharmed_by_odd_arguments(cache: Any, odd: Any) -> None:
    def changed(*args: Any, **kwargs: Any) -> None:
        cache.set("other", 3)
        cache.incr("other", *args, **kwargs)

    attempted([
        lambda: cache.get(odd), lambda: cache[odd], lambda: odd in cache, lambda: cache.details(odd),
        lambda: cache.touch(odd), lambda: cache.touch("other", odd), lambda: cache.pop(odd), lambda: cache.delete(odd),
        lambda: cache.set(odd, 1), lambda: cache.add(odd, 1), lambda: cache.incr(odd), lambda: cache.set("other", odd),
        lambda: cache.set("other", 1, expire=odd), lambda: cache.set("other", 1, tag=odd),
        lambda: cache.add("another", 1, expire=odd), lambda: cache.add("third", 1, tag=odd),
        lambda: changed(odd), lambda: changed(1, odd), lambda: cache.incr("new", 1, odd), lambda: cache.evict(odd),
        lambda: (cache.set("other", 3), cache.decr("other", odd)), lambda: cache.expire(odd),
        lambda: zlmdb.Cache(None, size_limit=odd).close(),
    ])  # fmt: skip
    if not isinstance(odd, Unshown):  # of which Python asks for a text to make the type of a table
        attempted([lambda: zlmdb.Cache(None, odd, int).close(), lambda: zlmdb.Cache(None, int, odd).close()])
    if not isinstance(odd, (str, type(None))):
        attempted([lambda: zlmdb.Cache(odd)])
    assert cache.get("kept") == 7
    assert cache._db.check().ok
    assert cache.evict("kept") == 1


@each_odd
def test_memoize_refuses_odd_arguments(cache: Any, odd: Any) -> None:
    def same(number: Any) -> Any:
        return number

    attempted([
        lambda: cache.memoize(odd)(same)(1), lambda: cache.memoize("expire", expire=odd)(same)(1),
        lambda: cache.memoize("tag", tag=odd)(same)(1), lambda: cache.memoize("ignore", ignore=odd)(same)(1),
        lambda: cache.memoize("key", key=odd)(same)(1), lambda: cache.memoize("lock", lock=odd)(same)(1),
        lambda: cache.memoize("argument")(same)(odd), lambda: cache.memoize("own", key=lambda _: odd)(same)(1),
        lambda: cache.memoize("function")(odd),
    ])  # fmt: skip


@each_odd
def test_a_queue_is_unharmed_by_odd_arguments(db: zlmdb.Database[Store], odd: Any) -> None:
    def claimed(t: Any) -> Any:
        t.jobs.put("other")
        return t.jobs.claim()

    def made(**options: Any) -> None:
        types.new_class("Made", (zlmdb.Queue[str],), options)

    worker: Any = zlmdb.Worker(db, lambda t: t.jobs)
    in_blocks: list[Callable[[Any], Any]] = [
        lambda t: t.jobs.put(odd), lambda t: t.jobs.put("a", priority=odd), lambda t: t.jobs.put("a", delay=odd),
        lambda t: t.jobs.claim(lease=odd), lambda t: t.jobs.done(odd), lambda t: t.jobs.fail(odd),
        lambda t: t.jobs.fail(claimed(t), odd), lambda t: t.jobs.fail(claimed(t), delay=odd),
        lambda t: t.jobs.release(odd), lambda t: t.jobs.extend(odd), lambda t: t.jobs.extend(claimed(t), odd),
        lambda t: t.jobs.revive(odd), lambda t: t.jobs.revive((3, odd, odd)), lambda t: t.jobs.add(odd),
    ]  # fmt: skip
    timeout = odd if not isinstance(odd, (int, float)) or odd < 0 else -1
    attempted([
        *[lambda work=work: db.run(work) for work in in_blocks],
        lambda: zlmdb.Worker(odd, lambda t: t.jobs), lambda: zlmdb.Worker(db, odd).get(0),
        lambda: zlmdb.Worker(db, lambda t: t.jobs, lease=odd).put("a"), lambda: zlmdb.Worker(db, lambda t: odd).get(0),
        lambda: worker.done(odd), lambda: worker.fail(odd), lambda: worker.release(odd), lambda: worker.extend(odd),
        lambda: worker.get(timeout) if odd is not None else None,
        lambda: asyncio.run(worker.aget(timeout)) if odd is not None else None, lambda: asyncio.run(worker.adone(odd)),
        lambda: made(lease=odd), lambda: made(attempts=odd), lambda: made(backoff=odd), lambda: made(clock=odd),
    ])  # fmt: skip
    with db.read() as t:
        assert [job.body for job in t.jobs.delayed.values() if job.body == "kept"] == ["kept"]
    assert db.check().ok


@each_odd
def test_a_feed_is_unharmed_by_odd_arguments(db: zlmdb.Database[Store], odd: Any) -> None:
    def changes(**options: Any) -> Any:
        return db.changes(Records, **options)

    def named(name: str) -> Any:
        return changes(consumer=name)

    attempted([
        lambda: db.changes(odd), lambda: changes(after=odd).take(), lambda: changes(timeout=odd).take(1),
        lambda: changes(consumer=odd), lambda: changes().take(odd), lambda: asyncio.run(changes().atake(odd)),
        lambda: changes().first(odd), lambda: changes().last(odd), lambda: named("a").acknowledge(odd),
        lambda: named("b").acknowledge(0, odd), lambda: asyncio.run(named("c").aacknowledge(odd)),
        lambda: named("d").forget(odd), lambda: changes().trim(acknowledged=odd) if odd is not True else None,
        lambda: zlmdb.Feed(odd), lambda: zlmdb.Feed(None, odd), lambda: db.sweep(odd),
        lambda: types.new_class("Made", (zlmdb.Table[int, str],), {"feed": odd}),
    ])  # fmt: skip
    if not isinstance(odd, (int, type(None), str)):
        attempted([
            lambda: changes().trim(through=odd), lambda: changes().trim(max_count=odd), lambda: db.drop_feed(odd),
        ])  # fmt: skip
    assert [change.key for change in db.changes(Records)] == [1]
    assert db.check().ok


def test_a_tag_that_utf8_cannot_hold_is_refused(cache: zlmdb.Cache[str, Any]) -> None:
    with pytest.raises(zlmdb.errors.EncodeError, match="^tag='.ud800': expected a text that UTF-8 can hold"):
        cache.set("key", 1, tag="\ud800")


def test_a_wrong_tag_of_memoize_is_refused_before_anything_is_computed(cache: zlmdb.Cache[str, Any]) -> None:
    wrong: Any = 7
    with pytest.raises(TypeError, match="^tag=7: expected a text"):

        @cache.memoize(tag=wrong)
        def computed() -> int:
            raise AssertionError


def test_memoize_names_the_option_that_is_wrong(cache: zlmdb.Cache[str, Any]) -> None:
    def computed(number: int) -> int:
        return number

    wrong: Any = 7
    for given, text in (
        ({"key": wrong}, "^key=7: expected a function"),
        ({"ignore": wrong}, "^ignore=7: expected the"),
    ):
        with pytest.raises(TypeError, match=text):
            cache.memoize(**given)(computed)
    with pytest.raises(TypeError, match="^memoize: expected a function, got 7"):
        cache.memoize("name")(wrong)
    with pytest.raises(TypeError, match="does not tell its parameters"):
        cache.memoize("name")(dict)


def test_what_incr_cannot_store_is_named_with_its_key(cache: zlmdb.Cache[str, Any]) -> None:
    with pytest.raises(zlmdb.errors.EncodeError, match="key 'kept'"):
        cache.incr("kept", 1 << 70)
    assert cache.get("kept") == 7


def test_the_transaction_of_a_feed_is_one(db: zlmdb.Database[Store]) -> None:
    wrong: Any = "users"
    with pytest.raises(TypeError, match="^t='users': expected what `with db.write"):
        db.changes(Records).last(wrong)


def test_a_feed_is_dropped_by_the_name_of_its_table(db: zlmdb.Database[Store]) -> None:
    wrong: Any = Records
    with pytest.raises(TypeError, match="^drop_feed.*expected the name of a table"):
        db.drop_feed(wrong)


def test_a_job_whose_error_has_no_text_is_given_back(db: zlmdb.Database[Store]) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise LookupError("no text")

    worker = zlmdb.Worker(db, lambda t: t.jobs)
    worker.put("job")
    with pytest.raises(Mute), worker.job(0):
        raise Mute
    with db.read() as t:
        assert (t.jobs.leased.count(), t.jobs.delayed.count()) == (0, 2)
        assert [job.error[:6] for job in t.jobs.delayed.values() if job.body == "job"] == ["Mute: "]
