"""The contenders agree on what they store, and the runner says honestly who did not take part and why.

Every contender that is installed takes part; ``tox -e bench`` installs all of them.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from rich.console import Console

from benchmarks import clock as clock_module
from benchmarks import flatc, remote
from benchmarks.askers import askers
from benchmarks.clock import Clock
from benchmarks.compare import BOUNDS, Bounds, Contender, add, compare, compare_inside, measure, select, takes_part
from benchmarks.contenders import base, contenders, zlmdb27_calls
from benchmarks.records import (
    ACCOUNTS,
    BLOBS_16,
    DOCUMENTS,
    ITEMS,
    ORDERS,
    PERSONS,
    USERS,
    Order,
    Shape,
    User,
    Wrong,
    documents,
    goods,
    persons,
    users,
)
from benchmarks.report import between, duration, factor, notes, rate, step_table
from benchmarks.results import ROOT, Results, common_base, ratio, recorded, same_codec
from benchmarks.worker import Worker
from benchmarks.workloads import (
    ALL,
    INSIDE,
    WORKLOADS,
    caching,
    crowd,
    inside,
    questions,
    queueing,
    transactions,
    zippondb_links,
)
from benchmarks.workloads.base import BRIEF, LARGE
from benchmarks.workloads.transactions import account
from zlmdb import FlatBuffers
from zlmdb.values import fbs, serializer

from .waiters import wait_until

pytestmark = pytest.mark.once

HEAVY = {"datasets", "pandas"}  # seconds to import: `tox -e bench` runs them, in processes of their own
COUNT = 40
PREPARED = {"versions": {}, "python": sys.version}
BLOBS = [(bytes([i]) * 16, bytes([i, 0, 255]) * 40) for i in range(COUNT)]
RECORDS: dict[str, tuple[Shape, list[Any]]] = {
    "persons": (PERSONS, list(persons(COUNT))),
    "users": (USERS, list(users(COUNT))),
    "documents": (DOCUMENTS, list(documents(COUNT))),
    "blobs": (BLOBS_16, BLOBS),
    "accounts": (ACCOUNTS, [(key, account(key, 0)) for key in range(1, COUNT + 1)]),
}


def labels() -> Iterator[tuple[str, str]]:
    workloads = {"persons": "zippondb", "users": "fill_read", "documents": "zds", "blobs": "db_benchmark_16"}
    for label, module in contenders().items():
        if not getattr(module, "PREDECESSOR", False) and not HEAVY & set(module.NEEDS):
            for kind, workload in workloads.items():
                if takes_part(label, WORKLOADS[workload]):
                    yield label, kind


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[base.Store]:
    label, kind = request.param
    found = opened(label, kind, tmp_path)
    yield found
    found.close()


def opened(label: str, kind: str, directory: Path) -> base.Store:
    module = contenders()[label]
    for name in [*module.NEEDS, *(["msgspec"] if label.endswith("msgspec") else [])]:
        pytest.importorskip(name)
    try:
        found: base.Store = module.VARIANTS[label](directory / "db", RECORDS[kind][0], "none")
    except base.Cannot as error:
        pytest.skip(f"{label} cannot store such records: {error}")
    return found


def facts(store: base.Store, records: Any) -> Counter[str]:
    return Counter(repr(store.shape.values(record)) for record in records)


@pytest.mark.filterwarnings("ignore")  # those of the contenders are theirs
@pytest.mark.parametrize("store", list(labels()), indirect=True, ids=lambda pair: f"{pair[1]}-{pair[0]}")
def test_every_contender_gives_back_what_was_put(store: base.Store) -> None:
    pairs = RECORDS[store.shape.name if store.shape.name in RECORDS else "blobs"][1]
    store.put_many(store.native(pairs[:30]))
    for key, record in store.native(pairs[30:]):
        store.put(key, record)
    expected = dict(pairs)

    assert store.count() == COUNT
    assert facts(store, store.scan()) == facts(store, expected.values())
    keys = [key for key, _ in reversed(pairs)]
    store.shape.check_all(store.get_many(keys), [expected[key] for key in keys])
    store.shape.check_same(store.get(keys[3]), expected[keys[3]])

    replaced = [(keys[0], pairs[1][1])]
    for key, record in store.native(replaced):
        store.put(key, record)
    if store.shape.key_field is None:
        store.shape.check_same(store.get(keys[0]), pairs[1][1])
    assert store.count() == COUNT

    store.delete(keys[1])
    store.delete_many(keys[2:5])
    assert store.count() == COUNT - 4


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "store", [pair for pair in labels() if pair[1] == "persons"], indirect=True, ids=lambda pair: pair[0]
)
def test_every_contender_answers_the_queries(store: base.Store) -> None:
    pairs = RECORDS["persons"][1]
    store.put_many(store.native(pairs))
    charlies = [person for _, person in pairs if person.name == "Charlie"]
    assert facts(store, store.where("name", "Charlie")) == facts(store, charlies)
    assert store.where("name", "asd") == []
    assert Counter(store.project("name")) == Counter(person.name for _, person in pairs)
    assert store.first().name in {person.name for _, person in pairs}
    if type(store).clear is base.Store.clear:
        with pytest.raises(base.Cannot, match="no way to delete all"):
            store.clear()
    else:
        store.clear()
        assert store.count() == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "store", [pair for pair in labels() if pair[1] == "persons"], indirect=True, ids=lambda pair: pair[0]
)
def test_every_contender_has_the_tables_beside_the_users(store: base.Store) -> None:
    """The published table of orders is empty: here is one, so that it is known that each could hold and project it."""
    people, (_, items) = RECORDS["persons"][1], goods()
    store.put_many(store.native(people))
    (user, _), (key, _) = people[0], items[0]
    order = Order([key, items[1][0]], [3, 1], datetime(2026, 11, 21, 20, 15, 1, tzinfo=timezone.utc), user)
    for shape, records in ((ITEMS, items), (ORDERS, [(user, order)])):
        table = store.beside(shape)
        assert table.count() == 0
        table.put_many(table.native(records))
        assert facts(table, table.scan()) == facts(table, [record for _, record in records])
        assert store.beside(shape) is table
    assert store.count() == COUNT
    assert facts(store, store.scan()) == facts(store, [person for _, person in people])
    (found,) = store.beside(ORDERS).project("from_", "items", "quantity", "at")
    links = [value if isinstance(value, list) else UUID(str(value)) for value in found[:2]]
    assert links == [user, order.items]
    assert (list(found[2]), datetime.fromisoformat(str(found[3]))) == (order.quantity, order.at)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("label", [label for label, kind in labels() if kind == "persons" and label != "dict + lock"])
def test_the_tables_beside_are_there_when_it_is_opened_again(label: str, tmp_path: Path) -> None:
    for expected in (0, 19):
        store = opened(label, "persons", tmp_path)
        items = store.beside(ITEMS)
        assert items.count() == expected
        items.put_many(items.native(goods()[1] if expected == 0 else []))
        store.close()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "store", [(label, "accounts") for label in transactions.BESIDE], indirect=True, ids=lambda pair: pair[0]
)
def test_every_contender_has_small_transactions_by_threads_in_flight_and_by_tasks(store: base.Store) -> None:
    data = transactions.Data(COUNT, COUNT)
    steps = [step for name in ("transactions", "transactions_durable") for step in WORKLOADS[name].steps]
    for step in {step.name: step for step in steps}.values():
        if step.run in (transactions.in_flight, transactions.tasks) and isinstance(store, zlmdb27_calls.Way):
            with pytest.raises(base.Cannot, match='see "zlmdb"'):
                step.run(store, data, Clock())
        else:
            outcome = step.run(store, data, Clock())
            assert outcome.count == COUNT
            outcome.check()


def test_who_always_syncs_is_beside_those_that_sync() -> None:
    taking = [takes_part("ObjectBox", WORKLOADS[name]) for name in ("transactions", "transactions_durable")]
    assert taking == [False, True]


def test_threads_that_take_too_long_end_and_what_they_had_to_do_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "PATIENCE", 0.05)
    done: list[int] = []

    def work(share: list[int]) -> None:
        for one in share:
            done.append(one)
            if threading.current_thread() is not threading.main_thread():
                wait_until(lambda: not share)  # until there is nothing left to do in it

    with pytest.raises(base.Cannot, match="3 threads did not finish within"):
        crowd.in_threads(crowd.shared_out(range(30), 3), Clock(), lambda: None, work)
    assert set(done) == {*range(30)}
    assert len(done) < 50


def test_a_small_transaction_that_is_lost_is_no_figure(tmp_path: Path) -> None:
    class Forgets(contenders()["dict + lock"].VARIANTS["dict + lock"]):  # type: ignore[misc]
        def put(self, key: Any, record: Any) -> None:
            if key != data.keys[0]:
                super().put(key, record)

    store, data = Forgets(tmp_path, ACCOUNTS, "none"), transactions.Data(COUNT, COUNT)
    for step in WORKLOADS["transactions_durable"].steps[1:]:
        transactions.prefill(store, data, Clock())
        data.written = [True] * COUNT
        with pytest.raises(Wrong):
            step.run(store, data, Clock()).check()


@pytest.mark.once
def test_a_comparison_has_times_and_what_was_stored_for_each_step() -> None:
    workload = WORKLOADS["zippondb"]
    rows = compare(workload, 60, ["zlmdb", "raw lmdb + pickle", "dict + lock"], Bounds(2, budget=600.0))
    assert list(rows) == ["zlmdb", "raw lmdb + pickle", "dict + lock"]
    for label, row in rows.items():
        assert "absent" not in row, (label, row)
        assert list(row["steps"]) == [step.name for step in workload.steps]
        for step in workload.steps:
            assert len(row["steps"][step.name]["wall"]) == len(row["steps"][step.name]["cpu"]) == 2
    assert rows["zlmdb"]["bytes"] > 0
    assert common_base(rows, "populate") == "raw lmdb + pickle"
    assert ratio(rows["zlmdb"], rows["raw lmdb + pickle"], "populate") is not None
    assert step_table(rows, "populate").row_count == 3


def test_steps_in_other_processes_find_the_records(tmp_path: Path) -> None:
    rows = compare(WORKLOADS["zds"], 50, ["zlmdb Json", "dict + lock"], Bounds(1))
    assert rows["zlmdb Json"]["steps"]["random, new process"]["count"] == 50
    assert rows["dict + lock"]["skipped"]["random, new process"] == "in memory: another process has none of it"


def test_a_new_process_imports_before_the_clock_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_late.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    worker = Worker()
    worker.prepare("zlmdb", "zds", 50, str(tmp_path / "db"), fresh=True, modules=["no_such_module", "imported_late"])
    assert "imported_late" in sys.modules
    worker.open()
    assert "imported_late" in worker.close(remove=True)["modules"]


def test_a_populated_database_is_measured_before_it_is_emptied(tmp_path: Path) -> None:
    worker = Worker()
    worker.prepare("zlmdb", "zippondb", 60, str(tmp_path / "db"))
    worker.open()
    assert worker.step("populate", check=True)["bytes"] > 0
    assert worker.step("Q10 delete all, once", check=True)["count"] == 60
    worker.close(remove=True)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The nanoseconds of the clock of benchmarks, which go on in sleep only, however slow the machine is."""
    at = [10**9]

    def sleep(seconds: float) -> None:
        at[0] += round(seconds * 1e9)

    monkeypatch.setattr(clock_module, "perf_counter_ns", lambda: at[0])
    monkeypatch.setattr(clock_module, "sleep", sleep)
    return at


def test_processes_beside_each_other_begin_together_and_do_not_do_the_same(now: list[int]) -> None:
    first, second = (WORKLOADS["go_persist"].prepare_beside(50, process) for process in (1, 2))
    assert first.keys != second.keys
    at = now[0] + 20_000_000
    clock = Clock(at)
    with clock:
        now[0] += 1000
    with clock:
        now[0] += 1000
    assert at <= clock.began < clock.ended
    assert clock.wall < 20_000_000


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a comparison of a contender whose worker answers as the test says."""

    def run(*replies: Any) -> dict[str, Any]:
        class Pretended:
            def __init__(self, python: Any = None) -> None:
                self.replies = list(replies)

            def send(self, **command: Any) -> None:
                pass

            def call(self, limit: float, **command: Any) -> dict[str, Any]:
                return self.receive(limit)

            def receive(self, limit: float) -> dict[str, Any]:
                reply = self.replies.pop(0)
                if isinstance(reply, Exception):
                    raise reply
                found: dict[str, Any] = reply
                return found

            def close(self) -> None:
                pass

        monkeypatch.setattr("benchmarks.compare.Remote", Pretended)
        return compare(WORKLOADS["growth"], 10, ["zlmdb"], Bounds(1, 7))["zlmdb"]

    return run


def test_what_is_not_installed_is_told_so(pretend: Any) -> None:
    row = pretend(remote.Absent("not installed (No module named 'x'): pip install x"))
    assert row["absent"].startswith("not installed")
    assert notes({"zlmdb": row}) == ["zlmdb: does not take part: not installed (No module named 'x'): pip install x"]


def test_what_takes_too_long_is_told_so(pretend: Any) -> None:
    row = pretend(PREPARED, {"note": "", "processes": True, "in_memory": False}, remote.Absent("time limit"))
    assert row["absent"] == "not finished in 7 seconds"


def test_what_did_not_finish_at_a_smaller_size_is_not_tried() -> None:
    row = after({"steps": {}, "absent": "not finished in 10 seconds"})
    assert row["absent"] == "not tried: at 10,000 not finished in 10 seconds"


def test_what_would_not_fit_the_memory_is_not_tried() -> None:
    row = after({"steps": {}, "seconds": 0.01, "rss": 1 << 60})
    assert row["absent"] == "not tried, for memory: at 10,000 it had 1073741824.0 GiB"


def test_what_cannot_be_done_is_not_tried_again_at_a_larger_size() -> None:
    assert after({"steps": {}, "absent": "JSON has no bytes"})["absent"] == "JSON has no bytes"


def test_a_step_is_repeated_while_the_records_are_few() -> None:
    (step,) = [step for step in WORKLOADS["growth"].steps if step.name == "scan"]
    assert [step.times(size) for size in (10, LARGE, LARGE + 1)] == [5, 5, 1]
    (quick,) = [step for step in WORKLOADS["zippondb"].steps if step.name == "Q3 limit 1"]
    assert quick.times(LARGE + 1) == 3


def after(before: dict[str, Any]) -> dict[str, Any]:
    """What a comparison says of a contender that did so at 10,000 records."""
    smaller = (10_000, {"zlmdb": before})
    return compare(WORKLOADS["growth"], 1_000_000, ["zlmdb"], Bounds(1, 10), smaller=smaller)["zlmdb"]


def test_a_step_that_cannot_be_done_leaves_the_others(pretend: Any) -> None:
    step = {"wall": [10], "cpu": [9], "count": 1}
    opened = {"note": "", "processes": True, "in_memory": False}
    closed = {"bytes": 1, "rss": 1}
    warm_up = [PREPARED, opened, step, remote.Skipped("no such query"), step, step, step, closed]
    row = pretend(*warm_up, opened, step, step, step, step, closed)
    assert row["skipped"] == {"get": "no such query"}
    assert list(row["steps"]) == ["insert in order", "scan", "insert at random places", "count"]


def test_a_wrong_answer_is_a_failure_and_no_figure(pretend: Any) -> None:
    opened = {"note": "", "processes": True, "in_memory": False}
    row = pretend(PREPARED, opened, remote.Absent("failed: Wrong: expected 1, found 2"))
    assert row["absent"] == "failed: Wrong: expected 1, found 2"
    assert row["steps"] == {}


def test_a_worker_that_is_silent_is_ended(tmp_path: Path) -> None:
    process = remote.Remote()
    try:
        with pytest.raises(remote.Absent, match="time limit"):
            process.receive(0.2)  # nothing was asked, nothing comes
        assert process.process.poll() is not None
    finally:
        process.close()


def test_without_the_predecessor_the_commands_that_install_it_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZLMDB_INTEROP_PYTHON", raising=False)
    monkeypatch.setattr(remote, "PREDECESSOR", Path("nowhere"))
    contender = Contender("zlmdb 26 Cbor", WORKLOADS["zds"], 10, Path("unused"), 5)
    with pytest.raises(remote.Absent, match=r"not installed: .* pip install zlmdb==26\.10\.1|not installed"):
        contender._start(remote.Deadline(5))


def test_an_uninstalled_contender_is_absent(tmp_path: Path) -> None:
    missing = [name for name in ("plyvel", "rocksdict", "objectbox") if importlib.util.find_spec(name) is None]
    chosen = {"plyvel": "LevelDB + pickle", "rocksdict": "RocksDB + pickle", "objectbox": "ObjectBox"}
    rows = compare(WORKLOADS["zippondb"], 60, list(chosen.values()), Bounds(1))
    absent = {label for label, row in rows.items() if "not installed" in row.get("absent", "")}
    assert absent == {chosen[name] for name in missing}
    for label in absent:  # which a worker tells as the runner does, of the interpreter that it runs on
        process = remote.Remote()
        try:
            with pytest.raises(remote.Skipped) as told:
                process.call(60, do="prepare", contender=label, workload="zippondb", size=60, path=str(tmp_path))
            assert str(told.value) == rows[label]["absent"]
        finally:
            process.close()


@pytest.mark.once
@pytest.mark.parametrize("name", list(INSIDE))
def test_what_is_measured_inside_one_process_has_every_label(name: str) -> None:
    rounds = 2 if name == next(iter(INSIDE)) else 1  # a second one is a matter of the runner, not of the workload
    rows = measure(name, INSIDE[name].sizes["tiny"][0], None, BOUNDS["tiny"]._replace(rounds=rounds, budget=600.0))
    assert {len(step["wall"]) for row in rows.values() for step in row["steps"].values()} == {rounds}
    assert set(rows) <= set(INSIDE[name].labels)
    steps = {step for row in rows.values() for step in row["steps"]}
    skipped = {step for row in rows.values() for step in row["skipped"]}
    assert steps | skipped == {question.name for question in INSIDE[name].questions}


@pytest.mark.once
@pytest.mark.parametrize("method", caching.METHODS, ids=lambda method: method.name)
def test_each_method_leaves_the_same_in_both_caches(method: caching.Method, tmp_path: Path) -> None:
    pytest.importorskip("diskcache")
    import zlmdb

    def entries(cache: Any) -> dict[str, Any]:
        return {key: value for key in cache.iterkeys() if (value := cache.get(key)) is not None}

    keys, left = ["key 1", "key 2", "key 3"], []
    with ExitStack() as stack:
        theirs = caching.disk_cache(tmp_path, stack)["diskcache"]
        for cache in (theirs, stack.enter_context(zlmdb.Cache(tmp_path / "ours"))):
            caching.filled(cache, keys)
            method.before(cache, keys)
            before = entries(cache)
            method.use(cache, keys)
            left.append((before, entries(cache)))
    assert left[0] == left[1]


@pytest.mark.once
@pytest.mark.parametrize("method", queueing.METHODS, ids=lambda method: method.name)
def test_each_method_leaves_the_same_jobs_in_deque_and_queue(method: queueing.Method, tmp_path: Path) -> None:
    pytest.importorskip("diskcache")
    left = []

    def keep(done: Any) -> Any:
        """The method, and then what is there."""
        return lambda where, jobs: (done(where, jobs), left.append(jobs_of(where)))

    def jobs_of(where: Any) -> list[str]:
        if hasattr(where, "popleft"):
            return list(where)
        with where.read() as t:
            assert len(t.jobs) == t.jobs.ready.count()
            return [job.body for job in t.jobs.ready.values()]

    kept = replace(method, deque=keep(method.deque), queue=keep(method.queue))
    with queueing.queues(tmp_path, 4, kept, caching.disk_cache) as timed:
        for run in timed.values():
            run.before()
            assert run() == 4
    theirs, ours = left
    assert ours == (theirs[::-1] if "appendleft" in method.name else theirs)
    assert (ours == []) == any(word in method.name for word in ("take", "popleft", "clear"))


def test_another_answer_than_that_of_the_others_is_a_failure(tmp_path: Path) -> None:
    class Ours(askers()["zlmdb"].Zlmdb):  # type: ignore[misc]
        def equal(self, age: int) -> list[Any]:
            return list(super().equal(age)[1:])

    ours = [askers()["sqlite3"].Sqlite(tmp_path, 2000), Ours(tmp_path, 2000)]
    by_name = {asked.method: asked for asked in questions.BY_INDEX}
    try:
        with questions.ask(tmp_path, 2000, by_name["within"], dict(zip("ab", ours))) as timed:
            assert [run() for run in timed.values()] == [200, 200]
        with pytest.raises(AssertionError, match="b answers otherwise to: where"):
            questions.ask(tmp_path, 2000, by_name["equal"], dict(zip("ab", ours))).__enter__()
    finally:
        for one in ours:
            one.close()


def test_what_is_changed_by_filter_is_the_same_in_each_shop_and_put_back(tmp_path: Path) -> None:
    with ExitStack() as stack:
        shops: list[Any] = [
            zippondb_links.Sqlite(tmp_path, 60), zippondb_links.Zlmdb(tmp_path, 60),
            zippondb_links.Zlmdb(tmp_path, 60, "FlatBuffers"),
        ]  # fmt: skip
        for shop in shops:
            stack.callback(shop.close)

        def told() -> Any:
            """Of each shop: the orders of everybody."""
            names = ("Alice", "Bob", "Charlie", "Dave", "Eve")
            plain = zippondb_links.plain
            found = [[sorted(map(repr, map(plain, shop.orders_of(name)))) for name in names] for shop in shops]
            assert found[0] == found[1] == found[2]
            return found[0]

        before = told()
        assert sum(map(len, before)) == 60
        for asked in zippondb_links.ASKED:
            done = [asked.do(shop, 60, "elsewhere") for shop in shops]
            if asked.changes:
                assert done[0] == done[1] == done[2] > 0
                assert (told() != before) is asked.name.startswith("DELETE")
                for shop in shops:
                    shop.restore()
                assert told() == before


def test_a_question_is_asked_less_often_the_more_rows_it_gives() -> None:
    asked = {one.method: one for one in (*questions.BY_INDEX, *questions.SCANS)}
    slow = SimpleNamespace(slow={"ordered"})
    figures = [("one", 10**6), ("within", 10**5), ("within", 10**6), ("names", 10**6), ("ordered", 10**6)]
    assert [asked[method].times(slow, size) for method, size in figures] == [200, 50, 5, 1, 1]


def test_what_is_done_before_is_outside_the_clock(now: list[int]) -> None:
    def before() -> None:
        now[0] += 20_000_000

    timed: Any = {"a": inside.Prepared(lambda: 1, before)}
    rows: dict[str, Any] = {}
    INSIDE["layer"]._interleave(INSIDE["layer"].questions[0], timed, 2, rows, 10)
    (step,) = rows["a"]["steps"].values()
    assert max(step["wall"]) < 20_000_000


def test_who_is_wanted_is_selected_with_the_raw_ones() -> None:
    every = select(WORKLOADS["zds"])
    chosen = select(WORKLOADS["zds"], lambda label: label == "peewee")
    assert chosen == [label for label in every if label == "peewee" or label.startswith("raw lmdb")]
    assert 1 < len(chosen) < len(every)


def test_what_fails_inside_a_process_is_absent_and_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def call(self, limit: float, **command: Any) -> dict[str, Any]:
            raise remote.Absent("time limit")

        def close(self) -> None:
            pass

    monkeypatch.setattr("benchmarks.compare.Remote", Failing)
    limit = 2 * len(INSIDE["layer"].labels)
    (row,) = compare_inside("layer", 200, Bounds(3, 2)).values()
    assert row["absent"] == f"not finished in {limit} seconds"


def test_brief_steps_share_one_collection_on_pypy(monkeypatch: pytest.MonkeyPatch) -> None:
    def collections(size: int, pypy: bool) -> int:
        monkeypatch.setattr("benchmarks.workloads.base.PYPY", pypy)
        counted: list[None] = []
        monkeypatch.setattr("benchmarks.workloads.inside.gc", SimpleNamespace(collect=lambda: counted.append(None)))
        timed: Any = dict.fromkeys(("a", "b", "c"), lambda: 1)
        INSIDE["layer"]._interleave(INSIDE["layer"].questions[0], timed, 1, {}, size)
        return len(counted)

    assert [collections(BRIEF, pypy=False), collections(BRIEF + 1, pypy=True)] == [6, 6]
    assert collections(BRIEF, pypy=True) == 1


def test_the_rounds_of_several_processes_are_told_together() -> None:
    rows: dict[str, Any] = {}
    for share in ([1, 2], [3, 4], [5]):
        add(rows, {"zlmdb": {"steps": {"get": {"count": 1, "wall": list(share), "cpu": list(share)}}, "note": ""}})
    assert rows == {
        "zlmdb": {"steps": {"get": {"count": 1, "wall": [1, 2, 3, 4, 5], "cpu": [1, 2, 3, 4, 5]}}, "note": ""}
    }


def test_results_are_saved_with_the_machine_and_resumed(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.save("zds", 50, {"zlmdb": {"steps": {}}}, command="a command")
    assert results.has("zds", 50)
    assert not results.has("zds", 100)
    saved = results.load("zds")["sizes"]["50"]
    assert {"cpu", "cores", "ram", "kernel", "interpreter", "packages", "date"} <= set(saved["machine"])
    assert saved["machine"]["packages"]["lmdb"]
    results.leave_out("zds", {100: "no time", 50: "never shown: it was run"})
    assert results.load("zds")["left_out"] == {"100": "no time"}


def test_the_same_seed_gives_the_same_data() -> None:
    for name, workload in WORKLOADS.items():
        first, second = workload.prepare(20), workload.prepare(20)
        for fact in ("pairs", "keys", "asked", "lookups", "new", "gone", "charlies"):
            if hasattr(first, fact):
                assert getattr(first, fact) == getattr(second, fact), (name, fact)
        if hasattr(first, "records"):
            assert list(first.records()) == list(first.records()) == list(second.records())
            assert len({key for key, _ in first.records()}) == 20


@pytest.mark.parametrize("count", [1, 10_001])
def test_persons_are_drawn_in_chunks_and_their_keys_ascend(count: int) -> None:
    keys, people = zip(*persons(count))
    assert len(set(map(id, people))) == len(people) == count
    assert list(keys) == sorted(set(keys))
    if count > 1:
        assert len({(one.name, one.email, one.age, one.address) for one in people}) == 900


def test_the_goods_are_the_published_ones() -> None:
    categories, items = goods()
    names = {key: category.name for key, category in categories}
    sold = {item.name: (names[item.category], item.price) for _, item in items}
    assert sorted(names.values()) == ["Book", "Food", "Other", "Toy"]
    assert len(sold) == len(items) == 19
    chosen = [sold[name] for name in ("Book5", "Food8", "Toy3", "Other")]
    assert chosen == [("Book", 59.99), ("Food", 1.45), ("Toy", 6.45), ("Other", 0.99)]


def test_the_data_are_the_published_ones() -> None:
    key, document = next(documents(1))
    assert key == "record_00000000"
    assert (document["age"], document["score"], document["active"]) == (58, 11.13, False)
    assert (document["tags"], document["metadata"]["source"]) == (["b"], "web")
    chosen = WORKLOADS["zds"].prepare(100_000).lookups[0]
    assert chosen[:3] == ["record_00006863", "record_00035084", "record_00011427"]


def test_a_saved_command_names_no_directory_of_results() -> None:
    assert recorded("pytest", "--results=/home/me/run", "-k", "zds") == "pytest -k zds"
    assert recorded("python -m benchmarks", "--results", "/tmp/run", "--resume") == "python -m benchmarks --resume"
    assert recorded("python -m benchmarks", "-k", "zds", "--results", "../run") == "python -m benchmarks -k zds"


def test_what_is_saved_names_no_directory_of_a_machine() -> None:
    for path in (ROOT / "docs" / "results").glob("*/*.json"):
        for measured in json.loads(path.read_text(encoding="utf-8"))["sizes"].values():
            words = measured["command"].split()
            assert "--results" not in words or words[words.index("--results") + 1] == "docs/results", path


def test_documents_are_pickled_as_any_dict_too() -> None:
    label = "zlmdb Pickle, plain dict"
    assert [name for name, workload in WORKLOADS.items() if label in select(workload)] == ["zds"]
    assert same_codec(label, {"raw lmdb + pickle": {"steps": {"write": 1}}}) == "raw lmdb + pickle"


def test_every_ratio_has_its_base() -> None:
    rows: dict[str, Any] = {label: {"steps": {"get": 1}} for label in contenders()}
    assert same_codec("zlmdb", rows) == "raw lmdb + msgspec"
    assert same_codec("RocksDB + pickle", rows) == "raw lmdb + pickle"
    assert same_codec("peewee", rows) is None
    del rows["raw lmdb + msgspec"]
    assert same_codec("zlmdb", rows) == "raw lmdb + zlmdb codec"


def test_names_with_brackets_are_printed_as_they_are() -> None:
    step = "GRAB Item [name, category [name]]"
    console = Console(width=150, file=StringIO(), record=True)
    console.print(step_table({"zlmdb": {"steps": {step: {"wall": [5], "cpu": [5], "count": 1}}}}, step))
    assert step in console.export_text()


@pytest.mark.once
def test_many_rounds_of_what_is_filled_slowly_are_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    class Answering:
        def call(self, limit: float, **command: Any) -> dict[str, Any]:
            asked.append((command["size"], command["rounds"]))
            return {"rows": {}}

        def close(self) -> None:
            pass

    monkeypatch.setattr("benchmarks.compare.Remote", Answering)
    for name, size in (("questions", LARGE), ("questions", LARGE + 1), ("filtering", LARGE + 1)):
        measure(name, size, None, BOUNDS["tiny"]._replace(rounds=2))
    assert asked == [(LARGE, 1), (LARGE, 1), (LARGE + 1, 2), (LARGE + 1, 1), (LARGE + 1, 1)]


def test_figures_are_told_in_three_digits() -> None:
    assert [duration(ns) for ns in (1.234, 12_345, 2.5e6, 7.2e10)] == ["1.23 ns", "12.3 µs", "2.5 ms", "72 s"]
    assert [rate(ns) for ns in (1e9, 1e6, 250, 0.25, 1e-4)] == ["1", "1k", "4M", "4G", "10,000G"]
    assert [factor(ratio) for ratio in (1e-5, 0.025, 1.64, 99.4, 99.6, 12345)] == [
        "<0.001", "0.025", "1.6", "99", "100", "12,345",
    ]  # fmt: skip
    assert [between(each) for each in ([2.0, 1.0, 4e3], [2.0, 1.0])] == ["1 ns to 4 µs", "1 to 2 ns"]
    assert between([1.0]) == "", "one round has no spread"


def test_each_workload_has_all_its_sizes() -> None:
    assert all(set(workload.sizes) == {"tiny", "small", "window", "full"} for workload in ALL.values())
    assert all(select(workload) for workload in WORKLOADS.values())


def test_pytest_benchmarks_replays_the_samples() -> None:
    from benchmarks.test_comparison import Replay

    replay = Replay()
    replay.load([0.5, 0.25])
    readings = [replay() for _ in range(4)]
    assert [readings[1] - readings[0], readings[3] - readings[2]] == [0.5, 0.25]


def test_the_case_larger_than_memory_keeps_to_its_disk_budget(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from benchmarks import huge

    monkeypatch.setattr(huge, "BATCH", 100)
    arguments = ["huge", "--records", "5000", "--disk", "0.0002", "--operations", "5", "--directory", str(tmp_path)]
    monkeypatch.setattr("sys.argv", arguments)
    huge.main()
    told = capsys.readouterr().out
    assert "stopped at" in told
    assert "raw lmdb + bytes" in told
    assert list(tmp_path.iterdir()) == []


def test_the_published_forms_are_made_of_saved_results(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from benchmarks import published

    results = Results(tmp_path)
    step = {"unit": "record", "count": 10, "wall": [1000, 3000], "cpu": [1, 1], "batches": [500, 500]}
    row = {"steps": {"fill": step}, "skipped": {}, "note": "", "bytes": 1_000_000}
    results.save("fill_read", 10, {"zlmdb": row, "peewee": {"steps": {}, "absent": "no"}}, command="a command")
    monkeypatch.setattr("sys.argv", ["published", "--results", str(tmp_path)])
    published.main()
    told = capsys.readouterr().out
    assert "10,000,000 10,000,000" in told  # rows/s of two transactions of 5 rows in 500 ns
    assert "zlmdb, 10, 1.00 MB" in told
    assert all(any(name.startswith(one) for name in WORKLOADS) for one in published.PUBLISHED)


def test_the_schema_for_flatc_is_that_of_the_user() -> None:
    assert flatc.USER_FBS.read_text(encoding="utf-8") == fbs(User)


@pytest.mark.skipif(shutil.which("flatc") is None, reason="flatc (Debian: flatbuffers-compiler) is not installed")
@pytest.mark.parametrize("numpy", [False, True])
def test_what_flatc_generates_writes_and_reads_the_user(numpy: bool) -> None:
    pytest.importorskip("flatbuffers")
    if numpy:
        pytest.importorskip("numpy")
    import flatbuffers

    code = flatc.UserCode(numpy)
    for _, user in users(3):
        builder = flatbuffers.Builder(16)
        builder.Finish(code.build(user, builder))
        data = bytes(builder.Output())
        assert code.cast(data) == user
        assert serializer(FlatBuffers[User]).decode(data) == user
