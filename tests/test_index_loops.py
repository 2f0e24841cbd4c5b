"""Loops by an index in a write transaction whose bodies write give what loops over the table give."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

import pytest

import zlmdb
from zlmdb import Index, Table, UniqueIndex, desc
from zlmdb.query import plan
from zlmdb.tables.executor import keylookups
from zlmdb.tables.scan import Scan

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python

COUNT = 300


@dataclass
class Job:
    state: str
    rank: int
    name: Optional[str]
    tags: list[str]


class Jobs(Table[int, Job]):
    by_state = Index[str]("state")
    by_rank = Index[int](desc("rank"))
    by_name = UniqueIndex[str]("name")
    by_tag = Index[str]("tags", each=True)
    urgent = Index[str]("state", where=lambda job: job.rank > 40)


class Work(zlmdb.Schema):
    jobs: Jobs
    others: Table[int, int]


def job(rng: random.Random, key: int) -> Job:
    name = None if rng.random() < 0.3 else f"n{key}"
    return Job(f"s{rng.randrange(12)}", rng.randrange(50), name, rng.sample("abcdefghij", rng.randrange(3)))


CONDITIONS: dict[str, Callable[[Job], Any]] = {
    "state": lambda j: j.state == "s3",
    "states": lambda j: j.state in {"s1", "s4"},
    "range": lambda j: 10 <= j.rank < 14,
    "either": lambda j: j.state == "s2" or j.rank == 7,
    "tag": lambda j: "a" in j.tags,
    "tag or state": lambda j: "b" in j.tags or j.state == "s3",
    "both": lambda j: j.state == "s5" and j.rank < 25,
    "partial": lambda j: j.rank > 40 and j.state == "s6",
    "unique": lambda j: j.name == "n150",
}


class Undone(Exception):
    pass


def body(t: Any, rng: random.Random, key: int, depth: int = 0) -> None:
    """What the body of a loop does at a record: it changes this one, others, and undoes some of it."""
    for _ in range(rng.randrange(3)):
        at = rng.choice([key, key, rng.randrange(COUNT), rng.randrange(COUNT), COUNT + rng.randrange(20)])
        chance = rng.random()
        if chance < 0.45:
            if at in t.jobs:
                t.jobs[at] = replace(t.jobs[at], state=f"s{rng.randrange(7)}", rank=rng.randrange(50))
        elif chance < 0.6:
            t.jobs.pop(at, None)
        elif chance < 0.7:
            t.jobs[at] = job(rng, at)
        elif chance < 0.8:
            with suppress(KeyError), t.jobs.edit(at) as edited:
                edited.tags = ["a"]
        elif chance < 0.85:
            some = rng.sample(range(COUNT), 3)
            t.jobs.put_many([(one, job(rng, one)) for one in some])
        elif chance < 0.9:
            t.others[at] = at
        elif depth < 2:
            with suppress(Undone), t.txn.savepoint():
                body(t, rng, key, depth + 1)
                if rng.random() < 0.6:
                    raise Undone


def visited(t: Any, seed: int, rows: Iterator[tuple[int, Job]], fits: Callable[[Job], Any]) -> list[tuple[int, Job]]:
    """The rows that *rows* gave and that fit, each written down before its body ran."""
    rng, found = random.Random(seed), []
    for key, value in rows:
        if fits(value):
            found.append((key, value))
            body(t, rng, key)
    return found


@pytest.fixture(params=["tables", "classic"], scope="module")
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = None if request.param == "tables" else tmp_path_factory.mktemp("loops") / "db"
    with zlmdb.open(path, Work, layout=request.param, durability="none") as db:
        yield db


def fill(t: Any, seed: int) -> None:
    rng = random.Random(seed)
    t.jobs.clear()
    t.jobs.update({n: job(rng, n) for n in range(COUNT)})


@pytest.mark.parametrize("many", [4, 1000])
@pytest.mark.parametrize("name", CONDITIONS)
def test_the_body_of_a_loop_by_an_index_may_write(
    db: Any, name: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (plan, keylookups):
        monkeypatch.setattr(module, "CAP", many)  # entries from which on it is found out later how many there are
    fits = CONDITIONS[name]
    for seed in range(8):
        reverse, lower = seed % 3 == 0, 40 if seed % 4 == 0 else None
        options = {"reverse": reverse, **({} if lower is None else {"start": lower})}
        outcomes = []
        for by_index in (False, True):
            with db.write() as t:
                fill(t, seed)
                selection = t.jobs.select(**options)
                rows = selection.where(fits) if by_index else selection
                if seed % 2:  # a savepoint that began earlier, and is undone in the midst of the loop
                    rows, some = iter(rows), []
                    with suppress(Undone), t.txn.savepoint():
                        t.jobs.update({n: job(random.Random(n), n) for n in range(0, COUNT, 7)})
                        for key, value in rows:
                            if fits(value):
                                some.append((key, value))
                                body(t, random.Random(seed), key)
                                break
                        raise Undone
                    outcomes.append((some, visited(t, seed, rows, fits), dict(t.jobs)))
                else:
                    outcomes.append((visited(t, seed, iter(rows), fits), dict(t.jobs)))
        assert outcomes[0] == outcomes[1], (name, seed)


@pytest.mark.parametrize("by_index", [False, True])
def test_a_record_that_is_deleted_and_put_again_is_new(db: Any, by_index: bool) -> None:
    with db.write() as t:
        fill(t, 1)
        matching = [key for key, value in t.jobs.items() if value.state == "s3"]
        seen = []
        for key, value in t.jobs.where(lambda j: j.state == "s3") if by_index else t.jobs.items():
            seen.append(key)
            t.jobs[key] = replace(value, rank=value.rank + 1)
            if key == matching[1]:
                for one in (matching[2], matching[1] + 1):
                    t.jobs[one] = t.jobs.pop(one)
        listed = matching if by_index else range(COUNT)
        assert seen == [key for key in listed if key not in (matching[2], matching[1] + 1)]


@pytest.mark.parametrize("many", [4, 1000])
def test_it_looks_at_what_the_index_found_and_at_what_was_written(
    db: Any, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "CAP", many)
    looked: list[bytes] = []
    get = Scan._get

    def counting(self: Scan, key: bytes) -> Any:
        looked.append(key)
        return get(self, key)

    monkeypatch.setattr(Scan, "_get", counting)
    with db.write() as t:
        fill(t, 1)
        matching = [key for key, value in t.jobs.items() if value.state == "s3"]
        later = next(key for key in range(matching[2], COUNT) if key not in matching)
        seen = []
        for key, value in t.jobs.where(lambda j: j.state == "s3"):
            seen.append(key)
            t.jobs[key] = replace(value, rank=value.rank + 1)
            if key == matching[0]:
                t.jobs[later] = replace(value, state="s3", name=None)
            with t.txn.savepoint():
                t.others[key] = 1
    assert seen == sorted([*matching, later])
    assert len(looked) == len(seen) - 1  # nothing was written before the first one was read


class Journal(list[Any]):
    """Counts what is read of it."""

    def __init__(self) -> None:
        super().__init__()
        self.read = 0

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        self.read += len(found) if isinstance(at, slice) else 1
        return found

    def __iter__(self) -> Iterator[Any]:
        for one in super().__iter__():
            self.read += 1
            yield one


@pytest.mark.parametrize("by", ["state", "tag", "by_tag"])
def test_what_was_written_is_looked_at_once(db: Any, by: str) -> None:
    with db.write() as t:
        t.jobs.clear()
        t.jobs.update({n: Job("s0", n, None, ["a"]) if n < 60 else Job("s1", n, None, []) for n in range(COUNT)})
        journal = t.txn._open_scans().journal = Journal()
        rows = {
            "state": t.jobs.where(lambda j: j.state == "s0"),
            "tag": t.jobs.where(lambda j: "a" in j.tags),
            "by_tag": t.jobs.by_tag["a"],
        }[by]
        for key, value in rows:
            t.jobs[key] = replace(value, state="s1", tags=["b"])
            t.jobs[COUNT + key] = value  # which is new
        assert t.jobs.by_tag["b"].count() == 60
        assert 0 < journal.read < 60 * 20  # each of some entries by two
