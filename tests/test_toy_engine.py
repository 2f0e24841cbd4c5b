"""An engine that zlmdb does not know: chosen by a URL, with conflicts, in calls that are counted and may be slow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from tests.toy_engine import SERVERS, Server, ToyConflict
from zlmdb.engines import registry
from zlmdb.store import openstores

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python


class Numbers(zlmdb.Table[str, int]): ...


class Store(zlmdb.Schema):
    numbers: Numbers


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    url = f"toy://{tmp_path}"
    yield url
    SERVERS.pop(url, None)


@pytest.fixture
def db(url: str) -> Iterator[zlmdb.Database[Store]]:
    with zlmdb.open(url, Store) as db:
        yield db


@pytest.fixture
def server(db: Any, url: str) -> Server:
    return SERVERS[url]


# -- the choice -------------------------------------------------------------------------------------------------------


def test_a_url_is_stored_by_the_engine_of_its_scheme(url: str) -> None:
    with pytest.raises(FileNotFoundError):
        zlmdb.open(url)
    with zlmdb.open(url, Store) as db, db.write() as t:
        t.numbers["a"] = 1
    with zlmdb.open(url, Store) as db, db.read() as t:
        assert t.numbers == {"a": 1}


def test_an_engine_names_the_keyspaces_beside_the_main_one(url: str, tmp_path: Path) -> None:
    for path in (None, url, str(tmp_path / "db")):
        with zlmdb.open(path, Store) as db, db.read() as t:
            store = db._open_store
            names = store.engine.space_names(store.environment, t.txn._engine_txn)
            assert len({*names} & {space.space for _, space in db._storages.values()}) == len(db._storages)


def test_handles_of_one_url_share_its_store_when_their_options_agree(url: str) -> None:
    with zlmdb.open(url, Store) as one, zlmdb.open(url, Store) as other:
        assert one._open_store is other._open_store
        assert openstores.is_open(url)
        with pytest.raises(zlmdb.DatabaseInUse, match="readonly=False"):
            zlmdb.open(url, Store, readonly=True)
    assert not openstores.is_open(url)


def test_the_scheme_of_no_engine_is_refused_and_paths_are_no_urls(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"toys://x.*known: .*toy://"):
        zlmdb.open("toys://x", Store)
    for path in (None, "x", "c:/x", "c://x", "./toys://x", "a b://x"):
        assert type(registry.engine(path)).__name__ == ("MemoryEngine" if path is None else "LmdbEngine")


def test_an_option_of_another_engine_is_refused_and_its_default_is_not(url: str) -> None:
    with zlmdb.Database(url) as db:
        assert (db.is_writemap, db.lib_version) == (False, None)
    with pytest.raises(TypeError, match="writemap=True: the engine has no such option"):
        zlmdb.Database(url, writemap=True, maxsize=1 << 20)


# -- what needs a file ------------------------------------------------------------------------------------------------


def test_what_needs_a_file_says_so(db: zlmdb.Database[Store], url: str, tmp_path: Path) -> None:
    for operation in (
        lambda: db.backup(tmp_path / "copy"), db.compact, lambda: zlmdb.Database.verify(url),
        lambda: zlmdb.Database.salvage(url, tmp_path / "new"), lambda: zlmdb.Database.restore(url, tmp_path / "new"),
    ):  # fmt: skip
        with pytest.raises(zlmdb.FileRequired):
            operation()
    with db.write() as t:
        t.numbers["a"] = 1
    assert db.check().ok
    assert db.stats()["entries"] > 0
    assert db.readers() == []
    assert db.clear_readers() == 0


# -- conflicts --------------------------------------------------------------------------------------------------------


def test_run_runs_again_after_conflicts_at_the_commit(db: zlmdb.Database[Store], server: Server) -> None:
    server.conflicts += ["commit"] * 3
    seen: list[int] = []

    def add(t: Store) -> None:
        seen.append(t.numbers.get("a", 0))
        t.numbers["a"] = seen[-1] + 1

    db.run(add)
    assert (seen, server.retries) == ([0, 0, 0, 0], 3)
    with db.read() as t:
        assert t.numbers == {"a": 1}


@pytest.mark.parametrize("call", ["put", "get", "delete", "cursor"])
def test_run_runs_again_after_a_conflict_of_any_call(db: zlmdb.Database[Store], server: Server, call: str) -> None:
    with db.write() as t:
        t.numbers.update(a=1, b=2)

    def work(t: Store) -> list[str]:
        t.numbers["c"] = t.numbers["a"]
        t.numbers.pop("b", None)
        return list(t.numbers.select().keys())

    server.conflicts.append(call)
    assert db.run(work) == ["a", "c"]
    assert server.retries == 1
    assert server.conflicts == []


def test_run_reads_again_after_a_conflict(db: zlmdb.Database[Store], server: Server) -> None:
    server.conflicts.append("get")
    assert db.run(lambda t: t.numbers.get("a", 7), write=False) == 7
    assert server.retries == 1


def test_a_block_that_meets_a_conflict_says_to_use_run(db: zlmdb.Database[Store], server: Server) -> None:
    server.conflicts.append("commit")
    with pytest.raises(zlmdb.Conflict, match=r"nothing was stored.*db\.run\(function\)") as caught, db.write() as t:
        t.numbers["a"] = 1
    assert isinstance(caught.value.__cause__, ToyConflict)
    assert server.retries == 0
    with db.read() as t:
        assert t.numbers == {}


def test_a_conflict_ends_the_transaction_although_the_program_goes_on(
    db: zlmdb.Database[Store], server: Server
) -> None:
    def work(t: Store) -> None:
        with suppress(zlmdb.Conflict):
            t.numbers["a"] = 1
        t.numbers["b"] = 2

    server.conflicts.append("put")
    with pytest.raises(zlmdb.TransactionPoisoned), db.write() as t:
        work(t)
    with db.read() as t:
        assert t.numbers == {}
    server.conflicts.append("put")
    db.run(work)
    with db.read() as t:
        assert t.numbers == {"a": 1, "b": 2}


def test_what_the_store_writes_itself_is_run_again(url: str) -> None:
    server = SERVERS[url] = Server()
    server.conflicts += ["commit"] * 2
    with zlmdb.open(url, Store) as db, db.read() as t:
        assert t.numbers == {}
    assert (server.retries, server.conflicts) == (2, [])


def test_other_errors_are_not_run_again(db: zlmdb.Database[Store], server: Server) -> None:
    tries: list[int] = []

    def work(t: Store) -> None:
        tries.append(1)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        db.run(work)
    assert (len(tries), server.retries) == (1, 0)


# -- calls ------------------------------------------------------------------------------------------------------------


def test_a_scan_asks_the_engine_a_few_times_however_many_records(db: zlmdb.Database[Store], server: Server) -> None:
    """Each call is a round trip where the engine is a server: what is fast in one process must not be slow there."""
    counts: list[int] = []
    for size in (10, 100, 1000):  # the second transaction is the first that finds its tables bound
        with db.write() as t:
            t.numbers.put_many((f"{number:04}", number) for number in range(size))
        server.calls.clear()
        with db.read() as t:
            assert len(list(t.numbers.items())) == size
        counts.append(sum(server.calls.values()))
    assert counts[1] == counts[2] < 20, counts


def test_a_slow_engine_is_only_slow(db: zlmdb.Database[Store], server: Server) -> None:
    server.delay = 0.01
    start = time.perf_counter()
    with db.write() as t:
        t.numbers["a"] = 1
    assert time.perf_counter() - start > 0.02
    with db.read() as t:
        assert t.numbers == {"a": 1}


class Texts(zlmdb.Table[int, str]):
    by_text = zlmdb.Index[str](lambda text: text[:6], version=1)


class Indexed(zlmdb.Schema):
    texts: Texts


def update_all(t: Any, count: int) -> None:
    for key, text in t.texts.items():
        t.texts[key] = text + "x"


def move_all(t: Any, count: int) -> None:
    for key, _ in t.texts.by_text.select():
        t.texts[key] = "moved"


def delete_all(t: Any, count: int) -> None:
    for key in t.texts:
        del t.texts[key]


def each(function: Callable[[Any, int], object]) -> Callable[[Any, int], None]:
    """Ask something, then write, again and again."""

    def called(t: Any, count: int) -> None:
        for i in range(count):
            function(t, i)
            t.texts[i] = "seen"

    called.__name__ = function.__name__
    return called


@each
def ask_for_the_first(t: Any, i: int) -> None:
    t.texts.by_text.select(f"{i:06}").first()
    t.texts.select(i).keys().first()


@each
def read_a_few(t: Any, i: int) -> None:
    list(t.texts.select(i, i + 3))
    list(t.texts.by_text.select(f"{i:06}", limit=3).values())


@each
def count_a_few(t: Any, i: int) -> None:
    t.texts.select(i, i + 3).count()
    assert t.texts.select(i)
    bool(t.texts.select(i).values())


@each
def put_a_few(t: Any, i: int) -> None:
    t.texts.put_many([(-i, "new"), (i, "old")])
    t.texts.put_many((key, "new") for key in (i, i + 1))


@each
def delete_a_few(t: Any, i: int) -> None:
    t.texts.select(-3, i + 1, limit=1).delete()
    t.texts.by_text.select("y").delete()


@pytest.mark.parametrize(
    "work",
    [update_all, move_all, delete_all, ask_for_the_first, read_a_few, count_a_few, put_a_few, delete_a_few],
    ids=lambda work: work.__name__,
)
def test_cursors_do_not_stay_open_while_a_transaction_writes(url: str, work: Any, monkeypatch: Any) -> None:
    """LMDB looks at every open cursor whenever something is written: on PyPy, that was quadratic.

    An interpreter that counts references closes cursors by itself, so zlmdb does so only where nothing is gained by
    leaving it out.
    """
    for module in ("keyrange", "executor.accesspaths", "scan"):
        monkeypatch.setattr(f"zlmdb.tables.{module}.COUNTS_REFERENCES", False)
    with zlmdb.open(url, Indexed) as db:
        with db.write() as t:
            t.texts.put_many((i, f"{i:06}") for i in range(3000))
        with db.write() as t:
            calls = SERVERS[url].calls
            calls.clear()
            work(t, 100)
            assert calls["cursor"] - calls["close"] <= 2
            assert calls["cursor"] > 5
