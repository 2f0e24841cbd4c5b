"""A cache beside a plain dict, with a clock that jumps forwards and backwards, in several processes.

`python -m tests.reliability.cachelife --run 60`.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Optional
from unittest import mock

import zlmdb
from zlmdb.cache import cache, entry, pending, state, use

from .command import by_seeds, forked, main

START = 1e9


class Undone(Exception):
    """Ends a block."""


class Time:
    """What the caches read instead of the clock."""

    def __init__(self) -> None:
        self.now = START

    def read(self) -> float:
        return self.now

    @contextmanager
    def given(self) -> Iterator[None]:
        with ExitStack() as stack:
            for module in (cache, entry, pending, state, use):
                stack.enter_context(mock.patch.object(module, "_clock", self.read))
            yield


class Kept:
    """What the model knows of an entry; *maybe*: it has been expired, or could be evicted, and may be deleted."""

    def __init__(self, value: Any, until: Optional[float], tag: Optional[str]) -> None:
        self.value, self.until, self.tag, self.maybe = value, until, tag, False


class Life:
    """One cache, with another object for the same file, through random calls."""

    def __init__(self, seed: int, directory: Optional[Path], clock: Time) -> None:
        self.dice = Random(seed)
        self.clock = clock
        self.path = None if directory is None else directory / f"cache{seed}"
        self.small = self.dice.random() < 0.4
        self.policy = self.dice.choice(["least-recently-used", "least-recently-stored", "none"])
        self.limit = 200_000 if self.small else 1 << 30
        self.evicts = self.small and self.policy != "none"
        self.cache = self.opened()
        self.model: dict[str, Kept] = {}
        self.log: list[str] = []
        self.keys = [f"k{n}" for n in range(self.dice.choice([5, 20, 200]))]

    def opened(self) -> Any:
        return zlmdb.Cache(self.path, str, Any, size_limit=self.limit, eviction_policy=self.policy)

    # -- the model ----------------------------------------------------------------------------------------------------

    def living(self, key: str) -> Optional[Kept]:
        found = self.model.get(key)
        return None if found is None or (found.until is not None and found.until <= self.clock.now) else found

    def age(self) -> None:
        """What has expired may be deleted by now, and what can be evicted."""
        for one in self.model.values():
            if (one.until is not None and one.until <= self.clock.now) or self.evicts:
                one.maybe = True

    def settle(self, key: str, there: bool) -> None:
        """It was seen whether *key* is there."""
        found = self.living(key)
        if there:
            assert found is not None, f"{key} is there"
            found.maybe = False
        elif found is not None:
            assert found.maybe, f"{key} is not there"
            del self.model[key]

    # -- calls --------------------------------------------------------------------------------------------------------

    def value(self) -> Any:
        kind = self.dice.randrange(4)
        if kind == 0:
            return self.dice.randrange(100)
        if kind == 1:
            return "x" * self.dice.choice([0, 10, 1000, 5000, 20000])
        return [self.dice.random(), {"a": None}] if kind == 2 else b"y" * self.dice.randrange(50)

    def expiry(self) -> Optional[float]:
        return self.dice.choice([None, None, 1, 5, 60, 0, -1, 3600])

    def call(self) -> None:
        dice, key = self.dice, self.dice.choice(self.keys)
        what = dice.choice(
            ["set"] * 6
            + ["get"] * 4
            + [
                "add",
                "incr",
                "touch",
                "touch",
                "pop",
                "delete",
                "details",
                "in",
                "evict",
                "expire",
                "clear",
                "cull",
                "len",
                "keys",
                "many",
            ]
        )
        tag = dice.choice([None, None, "t", "u", "tt"])
        expire, now = self.expiry(), self.clock.now
        until = None if expire is None else now + expire
        self.log.append(f"{what} {key} {expire} {tag} at {now - START}")
        c, model = self.cache, self.model
        if what == "set":
            value = self.value()
            c.set(key, value, expire, tag=tag)
            model[key] = Kept(value, until, tag)
        elif what == "many":
            for key in dice.sample(self.keys, len(self.keys) // 3):
                value = self.value()
                c.set(key, value, expire, tag=tag)
                model[key] = Kept(value, until, tag)
                self.age()
        elif what == "get":
            value = c.get(key, Kept)
            self.settle(key, value is not Kept)
            if value is not Kept:
                assert value == model[key].value, value
        elif what == "details":
            found = c.details(key)
            self.settle(key, found is not None)
            if found is not None:
                one = model[key]
                assert found == (one.value, one.until, one.tag), (found, one.until, one.tag)
        elif what == "in":
            self.settle(key, key in c)
        elif what == "add":
            value = self.value()
            stored = c.add(key, value, expire, tag=tag)
            self.settle(key, not stored)
            if stored:
                model[key] = Kept(value, until, tag)
        elif what == "incr":
            found = self.living(key)
            if found is not None and not isinstance(found.value, int):
                return
            total = c.incr(key, 3, 10)
            if found is not None and found.maybe and total == 13 != found.value + 3:
                found = None
            if found is None:
                assert total == 13, total
                model[key] = Kept(13, None, None)
            else:
                assert total == found.value + 3, total
                model[key] = Kept(total, found.until, found.tag)
                model[key].maybe = found.maybe and total == 13
        elif what == "touch":
            there = c.touch(key, expire)
            self.settle(key, there)
            if there:
                model[key].until = until
        elif what == "pop":
            value = c.pop(key, Kept)
            self.settle(key, value is not Kept)
            if value is not Kept:
                assert value == model[key].value
            model.pop(key, None)
        elif what == "delete":
            self.settle(key, c.delete(key))
            model.pop(key, None)
        elif what == "evict":
            if tag is None:
                return
            tagged = [one for one, kept in model.items() if kept.tag == tag]
            sure = [one for one in tagged if not model[one].maybe]
            gone = c.evict(tag)
            assert len(sure) <= gone <= len(tagged), (gone, sure, tagged)
            for one in tagged:
                del model[one]
        elif what == "expire":
            old = [one for one in model if self.living(one) is None]
            assert c.expire() <= len(old)
            for one in old:
                del model[one]
            assert c.expire() == 0
        elif what == "clear":
            assert sum(not kept.maybe for kept in model.values()) <= c.clear() <= len(model)
            model.clear()
            assert len(c) == 0
        elif what == "cull":
            c.cull()
            if self.policy != "none":
                for one in [one for one in model if self.living(one) is None]:
                    del model[one]
        elif what == "len":
            sure = sum(not kept.maybe for kept in model.values())
            assert sure <= len(c) <= len(model), (sure, len(c), len(model))
        elif what == "keys":
            found = list(c.iterkeys(reverse=tag is None))
            assert found == sorted(found, reverse=tag is None)
            assert {one for one, kept in model.items() if not kept.maybe} <= set(found) <= set(model)
        self.age()

    def block(self) -> None:
        """Calls in a block, which may be undone."""
        before = pickle.dumps(self.model)
        self.log.append("block")
        try:
            with self.cache.transact():
                for _ in range(self.dice.randrange(1, 8)):
                    self.call()
                    if self.dice.random() < 0.1:
                        self.pass_time()
                if self.dice.random() < 0.3:
                    raise Undone
        except Undone:
            self.log.append("undone")
            self.model = pickle.loads(before)
            self.age()

    def pass_time(self) -> None:
        self.clock.now += self.dice.choice([0.5, 1, 4, 6, 100, 5000, -1, -6, -100, -5000])
        self.age()

    def reopen(self) -> None:
        if self.path is not None:
            self.log.append("reopen")
            self.cache.close()
            self.cache = self.opened()

    def other(self) -> None:
        """Calls of another process, which opens the file, or was forked with it, and may be killed."""
        if self.path is None or not hasattr(os, "fork"):
            return
        opens, killed, seed = self.dice.random() < 0.5, self.dice.random() < 0.5, self.dice.random()
        self.log.append(f"process {opens} {killed}")
        result = self.path.with_suffix(".result")

        inherited: list[Any] = []  # it is not closed here

        def work() -> None:
            inherited.append(self.cache)
            if opens:
                self.cache = self.opened()
            self.dice = Random(seed)
            for _ in range(10):
                self.call()
            result.write_bytes(pickle.dumps((self.model, self.log)))
            if killed:
                os.kill(os.getpid(), 9)
            if opens:
                self.cache.close()
            os._exit(0)

        status = os.waitpid(forked(work), 0)[1]
        assert status == (9 if killed else 0), f"another process failed: its traceback is above, {status}"
        self.model, self.log = pickle.loads(result.read_bytes())
        self.age()

    def check(self) -> None:
        """The lists of the cache name its entries, and no others."""
        with self.cache._db.read() as t:
            entries = dict(t.entries.items())
            times = {(entry.listed_of(data), key) for key, data in entries.items()}
            assert {one for one in times if one[0] != entry.NEVER} == set(t.until.keys()), "until"
            tags = {(entry.tag_of(data), key) for key, data in entries.items()}
            assert {one for one in tags if one[0]} == set(t.tags.keys()), "tags"
            assert set(t.used.keys()) <= set(entries), "used"
            assert not len(t.pending), dict(t.pending.items())
        assert self.cache._db.check().ok
        for key, kept in self.model.items():
            if not kept.maybe and self.living(key):
                assert self.cache.get(key) == kept.value, key
        for key in entries:
            assert key in self.model, key
        if self.evicts:
            assert self.cache.volume() < 2 * self.limit, self.cache.volume()

    def live(self, steps: int) -> None:
        try:
            for _ in range(steps):
                steps_of: list[Callable[[], None]] = [self.call] * 20 + [self.block] * 3 + [self.pass_time] * 4
                self.dice.choice([*steps_of, self.reopen, self.other, self.check])()
            self.check()
        finally:
            self.cache.close()


def lives(directory: Path, first: int = 1, run: float = 60.0, steps: int = 150) -> dict[str, Any]:
    """Random calls of a cache, from the seed FIRST on, for RUN seconds, each of STEPS steps."""
    return by_seeds(lambda seed: life(directory, seed, steps), first, run)


def life(directory: Path, seed: int, steps: int) -> str:
    """What went wrong, after the last calls."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        clock, one = Time(), None
        with clock.given():
            try:
                one = Life(seed, None if seed % 4 == 0 else Path(place), clock)
                one.live(steps)
            except Exception:
                return "\n".join([*([] if one is None else one.log[-25:]), traceback.format_exc()])
    return ""


if __name__ == "__main__":
    main(lives, first=1, run=60.0, steps=150)
