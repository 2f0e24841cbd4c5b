"""A queue beside a model, with a clock that jumps forwards and backwards, in several processes.

`python -m tests.reliability.queuelife --run 60`.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import zlmdb

from .command import by_seeds, forked, main

NOW = [1e9]
LEASES = [1.0, 10.0, 1000.0]


class Undone(Exception):
    """Ends a block."""


class Jobs(zlmdb.Queue[int], lease=10, attempts=3, backoff=2, clock=lambda: NOW[0]):
    pass


class Store(zlmdb.Schema):
    jobs: Jobs


class Known:
    """A job: its *state*, with its times in seconds."""

    def __init__(self, body: int, priority: int) -> None:
        self.body, self.priority = body, priority
        self.state, self.attempts = "ready", 0
        self.due = self.lease = self.taken = 0.0
        self.set_back = False  # the clock was, since it is leased
        self.claims: list[Any] = []


class Life:
    """One queue through random calls."""

    def __init__(self, seed: int, path: Path) -> None:
        self.dice = Random(seed)
        NOW[0] = 1e9
        self.path, self.in_memory = path, seed % 4 == 0
        self.db = zlmdb.open(path if seed % 4 else None, Store, durability="none")
        self.jobs: dict[Any, Known] = {}
        self.count = 0
        self.log: list[str] = []

    # -- the model ----------------------------------------------------------------------------------------------------

    def settle(self, t: Any) -> None:
        """What a claim does before it looks: delays and leases that are over."""
        now = NOW[0]
        for one in self.jobs.values():
            if one.state == "delayed" and one.due <= now:
                one.state = "ready"
            elif one.state == "leased":
                if one.set_back:  # at the latest as many seconds later as it was given
                    one.due = min(one.due, now + one.lease)
                    one.set_back = False
                if one.due <= now:
                    one.state = "ready" if one.attempts < 3 else "dead"

    def call(self, t: Any) -> None:
        dice, jobs = self.dice, self.jobs
        others = ["done", "fail", "fail", "release", "extend", "revive", "pause"]
        what = dice.choice(["put"] * 3 + ["claim"] * 5 + others)
        self.log.append(f"{what} at {NOW[0] - 1e9}")
        if what == "put":
            priority, delay = dice.choice([0, 0, 1, -1, 5]), dice.choice([0, 0, 0, 1, 30, 5000])
            self.count += 1
            id = t.jobs.put(self.count, priority=priority, delay=delay)
            jobs[id] = one = Known(self.count, priority)
            one.state, one.due = ("delayed", NOW[0] + delay) if delay else ("ready", 0)
            self.log.append(f"  {one.body} priority {priority} delay {delay}")
        elif what == "claim":
            seconds = dice.choice([None, *LEASES])
            lease = t.jobs.claim(lease=seconds)
            self.settle(t)
            wanted = min(((-one.priority, id.bytes) for id, one in jobs.items() if one.state == "ready"), default=None)
            if lease is None:
                assert wanted is None, jobs[next(id for id in jobs if id.bytes == wanted[1])].body
                return
            one = jobs[lease.id]
            self.log.append(f"  {one.body} for {seconds}")
            assert wanted is not None, (one.body, one.state)
            assert wanted[1] == lease.id.bytes, (one.body, one.state)
            assert lease.body == one.body
            one.attempts += 1
            assert lease.attempts == one.attempts, (lease.attempts, one.attempts)
            one.state, one.lease, one.set_back = "leased", seconds or 10.0, False
            one.due = NOW[0] + one.lease
            one.claims.append((lease, one.attempts))
        elif what in ("done", "fail", "release", "extend"):
            known = [(id, *claim) for id, one in jobs.items() for claim in one.claims]
            if not known:
                return
            id, lease, attempts = dice.choice(known)
            one = jobs[id]
            holds = one.state == "leased" and one.claims[-1][0] is lease
            self.log.append(f"  {one.body} {one.state} held {holds}")
            try:
                if what == "done":
                    t.jobs.done(lease)
                elif what == "fail":
                    t.jobs.fail(lease, "wrong")
                elif what == "release":
                    t.jobs.release(lease)
                else:
                    seconds = dice.choice(LEASES)
                    got = t.jobs.extend(lease, seconds)
                    assert got.until == NOW[0] + seconds
            except zlmdb.LeaseLost:
                assert not holds
                return
            assert holds, "a lease that was lost was taken"
            if what == "done":
                del jobs[id]
            elif what == "fail":
                if attempts >= 3:
                    one.state = "dead"
                else:
                    one.state, one.due = "delayed", NOW[0] + 2 * 2 ** (attempts - 1)
            elif what == "release":
                one.state, one.attempts = "ready", attempts - 1
            else:
                one.lease, one.due, one.set_back = seconds, NOW[0] + seconds, False
        elif what == "revive":
            dead = t.jobs.dead.keys().all()
            if dead:
                key = dice.choice(dead)
                t.jobs.revive(key)
                one = jobs[key[2]]
                assert one.state == "dead"
                one.state, one.attempts = "ready", 0
        else:
            pause = t.jobs.pause()
            ready = any(one.state == "ready" for one in jobs.values())
            waits = [one.due for one in jobs.values() if one.state in ("delayed", "leased")]
            if ready:
                assert pause == 0
            elif not waits:
                assert pause is None or pause == 0
            else:
                assert pause is not None, waits
                assert pause <= max(min(waits) - NOW[0], 0) + 1e-5, (pause, waits)

    def compare(self, t: Any) -> None:
        found = {}
        for state in ("ready", "delayed", "leased", "dead"):
            for key, job in getattr(t.jobs, state):
                assert key[2] not in found
                found[key[2]] = state, job.attempts, job.body
        wanted = {id: (one.state, one.attempts, one.body) for id, one in self.jobs.items()}
        assert found == wanted, (found, wanted)

    def block(self) -> None:
        before = pickle.dumps((self.jobs, self.count))
        claims = {one: list(known.claims) for one, known in self.jobs.items()}
        try:
            with self.db.write() as t:
                for _ in range(self.dice.randrange(1, 6)):
                    self.call(t)
                if self.dice.random() < 0.15:
                    raise Undone
        except Undone:
            self.log.append("undone")
            self.jobs, self.count = pickle.loads(before)
            for one, known in self.jobs.items():
                known.claims = claims[one]
        with self.db.read() as t:
            self.compare(t)

    def pass_time(self) -> None:
        step = self.dice.choice([0.5, 1, 3, 11, 100, 6000, -2, -11, -100, -6000])
        self.log.append(f"time {step}")
        NOW[0] += step
        if step < -1:
            for one in self.jobs.values():
                one.set_back = one.set_back or one.state == "leased"

    def other(self) -> None:
        if self.in_memory or not hasattr(os, "fork"):
            return
        opens, killed, seed = self.dice.random() < 0.5, self.dice.random() < 0.5, self.dice.random()
        self.log.append(f"process {opens} {killed}")
        result = self.path.with_suffix(".result")

        def work() -> None:
            if opens:
                self.db = zlmdb.open(self.path, Store, durability="none")
            self.dice = Random(seed)
            for _ in range(self.dice.randrange(1, 4)):
                self.block()
            result.write_bytes(pickle.dumps((self.jobs, self.count, self.log)))
            if killed:
                os.kill(os.getpid(), 9)
            self.db.close()
            os._exit(0)

        status = os.waitpid(forked(work), 0)[1]
        assert status == (9 if killed else 0), f"another process failed: its traceback is above, {status}"
        self.jobs, self.count, self.log = pickle.loads(result.read_bytes())

    def live(self, steps: int) -> None:
        try:
            for _ in range(steps):
                choices: list[Callable[[], None]] = [self.block] * 20 + [self.pass_time] * 6 + [self.other]
                self.dice.choice(choices)()
            assert self.db.check().ok
        finally:
            self.db.close()


def lives(directory: Path, first: int = 1, run: float = 60.0, steps: int = 80) -> dict[str, Any]:
    """Random calls of a queue, from the seed FIRST on, for RUN seconds, each of STEPS steps."""
    return by_seeds(lambda seed: life(directory, seed, steps), first, run)


def life(directory: Path, seed: int, steps: int) -> str:
    """What went wrong, after the last calls."""
    with tempfile.TemporaryDirectory(dir=directory) as place:
        one = None
        try:
            one = Life(seed, Path(place) / "db")
            one.live(steps)
        except Exception:
            return "\n".join([*([] if one is None else one.log[-40:]), traceback.format_exc()])
    return ""


if __name__ == "__main__":
    main(lives, first=1, run=60.0, steps=80)
