"""While LMDB commits, syncs or copies, which may take long, reads go on; closing waits for the end of it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import lmdb
import pytest

import zlmdb
from zlmdb.engines.lmdb.inpython import undisturb

PATIENCE = 30


class Store(zlmdb.Schema):
    numbers: zlmdb.Table[int, int]


def ends(function: Callable[[], object]) -> Callable[[], None]:
    """Begin *function* in a thread; what is returned waits for its end."""
    result: list[object] = []

    def run() -> None:
        try:
            result.append(function())
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def end() -> None:
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert not isinstance(result[0], BaseException), result[0]

    return end


def test_reads_and_writes_go_on_while_a_copy_is_made(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        with db.write() as t:
            t.numbers.put_many((number, 1) for number in range(20_000))  # more than a pipe holds
        source, target = os.pipe()
        copied = ends(lambda: db._open_store.env.copyfd(target))
        try:
            assert os.read(source, 1)  # the copy has begun, and waits for a reader of the pipe

            def work() -> None:
                db.auto.numbers[2] = db.auto.numbers[1]
                with db.write() as t:
                    t.numbers[3] = t.numbers[2]

            ends(work)()
        finally:
            reader = threading.Thread(target=drain, args=(source,))
            reader.start()
            copied()
            os.close(target)
            reader.join()
        assert db.auto.numbers[3] == 1


def drain(source: int) -> None:
    with open(source, "rb") as pipe:
        while pipe.read(1 << 20):
            pass


class Slow:
    """The functions of LMDB that *lib* has, of which a commit waits until it may *go on*."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __dir__(self) -> list[str]:
        return dir(self._lib)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)

    def mdb_txn_commit(self, txn: Any) -> Any:
        self.begun.set()
        assert self.go_on.wait(PATIENCE)
        return self._lib.mdb_txn_commit(txn)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[Any, Slow]]:
    env: Any = lmdb.open(str(tmp_path), max_spare_txns=2)
    if not hasattr(env, "_close_lock"):  # of py-lmdb in Python
        pytest.skip("py-lmdb is in C on this interpreter: it has no lock around its calls")
    with env.begin(write=True) as txn:
        txn.put(b"key", b"old")
    env._lib = lib = Slow(env._lib)
    undisturb(env)
    yield env, lib
    lib.go_on.set()
    env.close()


def committing(env: Any, lib: Slow) -> Callable[[], None]:
    """Begin a commit in a thread, and come back when LMDB has it."""

    def commit() -> None:
        with env.begin(write=True) as txn:
            txn.put(b"key", b"new")

    committed = ends(commit)
    assert lib.begun.wait(PATIENCE)
    return committed


def read(env: Any) -> Any:
    with env.begin() as txn:
        return txn.get(b"key")


def test_a_read_does_not_wait_for_a_commit(slow: tuple[Any, Slow]) -> None:
    env, lib = slow
    committed = committing(env, lib)
    found: list[Any] = []
    ends(lambda: found.append(read(env)))()
    lib.go_on.set()
    committed()
    assert found == [b"old"]
    assert read(env) == b"new"


@pytest.mark.parametrize("call", ["close", "set_mapsize"])
def test_what_moves_or_frees_the_map_waits_for_a_commit(call: str, slow: tuple[Any, Slow], tmp_path: Path) -> None:
    env, lib = slow
    committed = committing(env, lib)
    order: list[str] = []

    def alone() -> None:
        getattr(env, call)(*([1 << 24] if call == "set_mapsize" else []))
        order.append(call)

    done = ends(alone)
    time.sleep(0.05)  # it would have run by now
    order.append("commit")
    lib.go_on.set()
    committed()
    done()
    assert order == ["commit", call]
    if call == "close":
        env = lmdb.open(str(tmp_path))
    assert read(env) == b"new"
    env.close()
