"""The mistakes of somebody's first programs: what was given is named, and what to write instead."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Optional

import pytest

import zlmdb


@dataclass
class Note:
    title: str
    stars: int = 0
    due: Optional[datetime] = None
    tags: list[str] = field(default_factory=list)


class Notes(zlmdb.Table[int, Note]):
    by_title = zlmdb.UniqueIndex[str]("title")
    by_stars = zlmdb.Index[int]("stars")


class Store(zlmdb.Schema):
    notes: Notes
    hits: zlmdb.Table[str, int]


@pytest.fixture
def db() -> Iterator[Any]:
    """A database in memory; untyped, as these uses are none that a type checker lets pass."""
    with zlmdb.open(None, Store) as database:
        with database.write() as t:
            t.notes.update({1: Note("One", 3), 2: Note("Two", 1, datetime(2030, 1, 1, tzinfo=timezone.utc))})
        yield database


# -- opening ---------------------------------------------------------------------------------------------------------


def test_a_file_of_something_else_is_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(8192))
    with pytest.raises(zlmdb.InvalidDatabase, match=r"begins with b'SQLite format 3.*check the path"):
        zlmdb.open(path, Store)


def test_a_second_writer_of_a_thread_is_answered_with_the_first_one(db: Any, tmp_path: Path) -> None:
    advice = r"use the tables of that one, in `with t\.txn\.savepoint\(\):`"
    with zlmdb.open(tmp_path, Store) as other:
        for one in (db, other):
            with one.write(), pytest.raises(zlmdb.NestedTransaction, match=advice), one.write():
                pass
            with one.write(), pytest.raises(zlmdb.NestedTransaction, match=advice):
                one.auto.hits["a"] = 1


# -- functions that run in transactions -------------------------------------------------------------------------------


def test_a_function_whose_body_would_not_run_is_refused(tmp_path: Path) -> None:
    async def later(t: Any) -> None:
        t.hits["a"] = 1

    def slowly(t: Any) -> Iterator[int]:
        t.hits["a"] = 1
        yield 1

    async def main(db: Any) -> None:
        for call in (db.arun, db.aread):
            with pytest.raises(TypeError, match=r"later\(\) has 'async' in it.*give a plain function"):
                await call(later)

    with zlmdb.open(tmp_path, Store) as db, warnings.catch_warnings():
        warnings.simplefilter("error")  # that a coroutine was never awaited
        with pytest.raises(TypeError, match=r"later\(\) has 'async' in it.*give a plain function"):
            db.run(later)
        with pytest.raises(TypeError, match=r"slowly\(\) has 'yield' in it.*give a plain function"):
            db.run(lambda t: slowly(t))
        with pytest.raises(TypeError, match="'async'"):
            db.submit(later).result()
        asyncio.run(main(db))
        assert list(db.run(lambda t: (number for number in (1, 2)))) == [1, 2]
        assert "a" not in db.auto.hits


# -- blocks that change records ---------------------------------------------------------------------------------------


def test_an_edit_without_with_is_answered_with_it(db: Any) -> None:
    with db.write() as t:
        record, records = t.notes.edit(1), t.notes.select().edit()
        for use in (lambda: record.title, lambda: setattr(record, "title", "Uno")):
            with pytest.raises(AttributeError, match=r"write `with table\.edit\(key\) as record:`"):
                use()
        with pytest.raises(TypeError, match=r"write `with selection\.edit\(\) as records:`"):
            list(records)
        with record as note:
            note.title = "Uno"
        with records as notes:
            for note in notes:
                note.stars += 1
        assert [(note.title, note.stars) for note in t.notes.values()] == [("Uno", 4), ("Two", 2)]
