"""What LMDB cannot hold or do is said by an error of its own, and the transaction goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from zlmdb import Index

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

LAYOUTS: list[Any] = ["tables", "classic"]


class Store(zlmdb.Schema):
    blobs: zlmdb.Table[int, bytes]
    texts: zlmdb.Table[int, str]


@pytest.mark.skipif(sys.maxsize < 2**40, reason="such a value fits into no 32-bit process")
@pytest.mark.once  # PyPy fills the 4 GiB
@pytest.mark.parametrize("layout", ["tables", "classic"])
def test_a_value_of_4_gib_has_an_error_of_its_own(layout: Any, tmp_path: Path) -> None:
    """In a process of its own, as nobody must print the value."""
    program = """
        import sys, zlmdb
        class Store(zlmdb.Schema):
            blobs: zlmdb.Table[int, bytes]
        value = bytes(1 << 32)  # which the system gives without using memory
        with zlmdb.open(sys.argv[1], Store, layout=sys.argv[2]) as db:
            for store in (lambda t: t.blobs.__setitem__(2, value), lambda t: t.blobs.put_many([(2, value)])):
                try:
                    with db.write() as t:
                        store(t)
                except zlmdb.EncodeError as error:
                    print(error.limit, "store it in parts, or in a file" in str(error))
            with db.write() as t:
                t.blobs[1] = b"small"
                print(list(t.blobs))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "db"), layout]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if "MemoryError" in done.stderr:
        pytest.skip("no address space for such a value")
    assert done.stdout.splitlines() == ["4294967295 True"] * 2 + ["[1]"], done.stderr


@pytest.mark.parametrize("version", ["0.9", "1.0"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_savepoints_under_writemap_raise_the_reason_and_the_transaction_goes_on(
    layout: Any, version: str, tmp_path: Path
) -> None:
    with zlmdb.Database(tmp_path / "db", writemap=True, maxsize=1 << 22, layout=layout, lib_version=version) as db:
        with db.begin(write=True) as txn:
            txn.put(b"\x00\x09k", b"v")
            for _ in range(2):
                with pytest.raises(zlmdb.NestedTransaction, match="no savepoints with writemap=True"), txn.savepoint():
                    pass
            txn.put(b"\x00\x09l", b"w")
        with db.begin() as txn:
            assert (txn.get(b"\x00\x09k"), txn.get(b"\x00\x09l")) == (b"v", b"w")


class Synced:
    """An environment that counts how often it is flushed."""

    def __init__(self, env: Any, calls: list[bool]) -> None:
        self._env = env
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def sync(self, force: bool = False) -> None:
        self._calls.append(force)
        self._env.sync(force)


@pytest.mark.parametrize(("durability", "expected"), [("commit", True), ("full", False), ("none", False)])
def test_indexes_that_opening_makes_are_durable_by_a_sync_of_their_own(
    durability: Any, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Words(zlmdb.Table[int, str]):
        by_text = zlmdb.Index[str](lambda text: text, version=1)

    class Indexed(zlmdb.Schema):
        texts: Words

    with zlmdb.open(tmp_path / "db", Store) as db, db.write() as t:
        t.texts[1] = "a"
    calls: list[bool] = []
    from zlmdb.engines.lmdb.engine import LmdbEngine

    opened = LmdbEngine.open
    monkeypatch.setattr(LmdbEngine, "open", lambda self, **given: Synced(opened(self, **given), calls))
    with zlmdb.open(tmp_path / "db", Indexed, durability=durability) as db, db.read() as t:
        assert list(t.texts.by_text.select("a")) != []
        assert bool(calls) is expected
    calls.clear()
    with zlmdb.open(tmp_path / "db", Indexed, durability=durability):
        assert calls == []  # nothing had to be made


@dataclass
class Tagged:
    text: str
    tags: list[str]


@pytest.mark.parametrize("index", ["by_text", "by_tag"])
def test_an_index_key_that_is_too_long_only_with_the_primary_key_says_so(index: str) -> None:
    each = Index[str]("tags", each=True) if index == "by_tag" else Index[str]("text")
    table = types.new_class("Notes", (zlmdb.Table[str, Tagged],), exec_body=lambda space: space.update({index: each}))
    schema: Any = type("Noted", (zlmdb.Schema,), {"__annotations__": {"notes": table}})
    with zlmdb.open(None, schema) as db:
        said = "the key 'a' takes 513 bytes with the 510 of the primary key after it, at most 511 fit"
        with pytest.raises(zlmdb.EncodeError, match=rf"{index}': {said}.*: shorten one of them$"), db.write() as t:
            t.notes["k" * 510] = Tagged("a", ["a"])
        with pytest.raises(zlmdb.EncodeError, match=rf"{index}': {said}"), db.write() as t:
            t.notes.put_many([("k" * 510, Tagged("a", ["a"]))])
