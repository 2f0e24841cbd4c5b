"""A file that is filled to its `maxsize` can still delete, and does not grow far beyond."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from zlmdb.engines.lmdb.mapsize import room_to_delete

pytestmark = pytest.mark.once  # what is in a file does not depend on the interpreter


class Named(zlmdb.Schema):
    tags: Tags
    texts: Texts


class Tags(zlmdb.Table[int, str]):
    by_text = zlmdb.Index[str](lambda text: text[:8], version=1)


class Texts(zlmdb.Table[int, bytes]): ...


SIZES = [1 << 16, 3 << 20]
each_file = pytest.mark.parametrize(
    ("layout", "version"), [("tables", "0.9"), pytest.param("classic", "1.0", marks=pytest.mark.once)]
)


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


def made(path: Path, size: int, layout: Any, version: str) -> Any:
    """A new file in the *version* of LMDB's format, open with that maxsize."""
    if version == "1.0":
        zlmdb.Database(path, layout=layout, lib_version=version).close()
    return zlmdb.open(path, Named, maxsize=size, layout=layout, durability="none")


def fill(db: Any, length: int) -> int:
    """Store one record a transaction until there is no room; how many there are."""
    with suppress(zlmdb.DatabaseFull):
        for i in count():
            with db.write() as t:
                t.tags[i] = f"{i % 7:04}" + "x" * length
    with db.read() as t:
        return len(t.tags)


def bytes_of(path: Path) -> int:
    return os.path.getsize(path / "data.mdb")


@each_file
def test_a_file_filled_by_tiny_commits_deletes_record_by_record(
    tmp_path: Path, size: int, layout: Any, version: str
) -> None:
    with made(tmp_path / "db", size, layout, version) as db:
        stored = fill(db, 3 if size < 1 << 20 else 1000)
        assert stored > 100
        assert 0.8 * size < bytes_of(tmp_path / "db") <= size + room_to_delete(size)
        for key in range(stored):
            with db.write() as t:
                del t.tags[key]
        with db.read() as t:
            assert not t.tags
        assert bytes_of(tmp_path / "db") <= size + room_to_delete(size)
        assert db.check().ok
        assert fill(db, 3 if size < 1 << 20 else 1000) > 0.8 * stored


@each_file
def test_a_full_file_is_emptied_at_once(tmp_path: Path, size: int, layout: Any, version: str) -> None:
    with made(tmp_path / "db", size, layout, version) as db:
        stored = fill(db, length := size >> 14)
    with zlmdb.open(tmp_path / "db", Named, maxsize=size, layout=layout, durability="none") as db:
        with db.write() as t:
            t.tags.clear()
        assert fill(db, length) > 0.8 * stored


@each_file
def test_a_full_file_deletes_while_an_old_snapshot_is_read(
    tmp_path: Path, size: int, layout: Any, version: str
) -> None:
    """Nothing that is freed can be used again, and each replaced record takes new pages."""
    with made(tmp_path / "db", size, layout, version) as db:
        for i in range(20):
            with db.write() as t:
                t.tags[i] = "x" * 500
        with db.read() as old:
            with pytest.raises(zlmdb.DatabaseFull, match="open read transaction"):  # noqa: PT012
                for i in count():
                    with db.write() as t:
                        t.tags[0] = f"{i:04}" + "x" * 500
            with db.write() as t:
                del t.tags[0]
            assert len(old.tags) == 20
        for i in range(1000):
            with db.write() as t:
                t.tags[0] = f"{i:04}" + "x" * 500
        assert bytes_of(tmp_path / "db") <= size + room_to_delete(size)


@each_file
def test_records_are_replaced_in_a_full_file(tmp_path: Path, size: int, layout: Any, version: str) -> None:
    with made(tmp_path / "db", size, layout, version) as db:
        stored = fill(db, 1000)
        for i in range(200):
            with db.write() as t:
                t.tags[i % stored] = f"{i % stored % 7:04}" + "x" * 999 + "y"
        with pytest.raises(zlmdb.DatabaseFull, match="delete records"), db.write() as t:
            t.texts[0] = b"x" * 10_000
        with db.read() as t:
            assert not t.texts
        assert db.check().ok


def test_a_transaction_that_is_too_large_for_an_empty_file_is_told_so(tmp_path: Path) -> None:
    """The error named the size of the file alone, which was far from its limit."""
    size = 2 << 20
    with made(tmp_path / "db", size, "tables", "0.9") as db:
        with pytest.raises(zlmdb.DatabaseFull, match="needs more than is left") as caught, db.write() as t:
            t.texts.put_many((i, b"x" * 1900) for i in range(10_000))
        assert bytes_of(tmp_path / "db") == caught.value.size < size
        with db.write() as t:
            assert not t.texts
            t.texts[0] = b"x"
        assert db.check().ok


@pytest.mark.parametrize("share", [0.75, 1.0, 1.05, 1.1, 1.2])
def test_one_large_transaction_leaves_room_for_deletions(tmp_path: Path, share: float) -> None:
    """It was stored up to the last page of the room that is kept for them."""
    size, length = 2 << 20, 1900
    with made(tmp_path / "db", size, "tables", "0.9") as db:
        refused = False
        try:
            with db.write() as t:  # two records a page
                t.texts.put_many(((i, b"x" * length) for i in range(int(share * size / 2048))), append=True)
        except zlmdb.DatabaseFull:
            refused = True
        assert refused == (share >= 1)
        with db.read() as t:
            stored = len(t.texts)
        assert (stored == 0) == refused
        assert bytes_of(tmp_path / "db") <= size
        for key in range(0, stored, 50):
            with db.write() as t:
                del t.texts[key]


def test_a_table_made_in_a_full_file_is_refused_as_all_that_is_stored(tmp_path: Path) -> None:
    with made(tmp_path / "db", 1 << 20, "tables", "0.9") as db:
        store = db._open_store

        def make(txn: Any, open_space: Any) -> None:
            handle = open_space(b"new")
            for i in range(560):  # two a page
                txn.put(b"%04d" % i, b"x" * 1900, db=handle, append=True)

        with pytest.raises(zlmdb.DatabaseFull, match="would take"):
            store.change(make)
        assert store.space(b"new") is None


def test_a_file_above_its_limit_can_be_made_smaller(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with zlmdb.open(path, Named, durability="none") as db, db.write() as t:
        t.texts.put_many((i, b"x" * 1000) for i in range(1000))
    with zlmdb.open(path, Named, maxsize=1 << 20, durability="none") as db:
        with pytest.raises(zlmdb.DatabaseFull, match=f"maxsize of {1 << 20}"), db.write() as t:
            t.tags[1] = "one" * 3000
        for first in range(0, 1000, 50):
            with db.write() as t:
                t.texts.select(first, first + 50).delete()
        with db.write() as t:
            t.tags[1] = "one" * 3000
        with db.read() as t:
            assert (len(t.texts), list(t.tags)) == (0, [1])


def test_opening_builds_no_index_in_a_full_file(tmp_path: Path) -> None:
    class Indexed(zlmdb.Table[int, str]):
        by_text = zlmdb.Index[str](lambda text: text[:8], version=1)
        by_all = zlmdb.Index[str](lambda text: text[:400], version=1)

    class More(zlmdb.Schema):
        tags: Indexed

    path = tmp_path / "db"
    with made(path, 1 << 18, "tables", "0.9") as db:
        fill(db, 400)
    with pytest.raises(zlmdb.DatabaseFull, match="delete records"):
        zlmdb.open(path, More, maxsize=1 << 18, durability="none")
    with zlmdb.open(path, More, durability="none") as db:
        assert db.check().ok


def test_a_full_file_that_was_allocated_can_delete(tmp_path: Path) -> None:
    """With ``writemap=True`` the room is inside of the limit, as the file is never longer."""
    path, size = tmp_path / "db", 1 << 20
    with zlmdb.Database(path, maxsize=size, writemap=True, sync=False) as db:
        stored = 0
        with suppress(zlmdb.DatabaseFull):
            for stored in count():
                with db.begin(write=True) as txn:
                    txn.put(b"\x00\x09%04d" % stored, b"x" * 300)
        assert stored > 1000
        for i in range(stored):
            with db.begin(write=True) as txn:
                assert txn.delete(b"\x00\x09%04d" % i)
        assert bytes_of(path) == size
        assert db.maxsize == size
