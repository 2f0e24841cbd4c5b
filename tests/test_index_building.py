"""Building an index of a table that has records: what others see meanwhile, and what an interruption leaves."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

import zlmdb

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python


@dataclass
class Row:
    name: str


class Plain(zlmdb.Table[int, Row]):
    pass


class Before(zlmdb.Schema):
    rows: Plain


def with_index(called: Callable[[int], None]) -> Any:
    """A schema whose index calls *called* with the number of each record that it sees."""
    seen: list[Row] = []

    def key(row: Row) -> list[str]:
        seen.append(row)
        called(len(seen))
        return row.name.split()

    class Rows(zlmdb.Table[int, Row]):
        by_word = zlmdb.Index[str](key, version=1, each=True)

    class After(zlmdb.Schema):
        rows: Rows

    return After


@pytest.fixture(params=["tables", pytest.param("classic", marks=pytest.mark.once)])
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"layout": request.param, "durability": "none"}


@pytest.fixture
def path(tmp_path: Path, options: dict[str, Any]) -> str:
    with zlmdb.open(str(tmp_path / "db"), Before, **options) as db, db.write() as t:
        t.rows.put_many([(number, Row(f"a{number} b")) for number in range(20)])
    return str(tmp_path / "db")


def test_others_read_while_it_is_built_and_see_nothing_of_it(path: str, options: dict[str, Any]) -> None:
    with zlmdb.open(path, Before, **options) as other:
        found: list[Any] = []

        def look(number: int) -> None:
            if number == 10:
                with other.read() as t:
                    found.append((len(t.rows), t.rows[5].name, other.tables()["rows"].indexes))

        with zlmdb.open(path, with_index(look), **options) as db:
            assert found == [(20, "a5 b", ())]
            assert list(other.tables()["rows"].indexes) == ["by_word"]
            with db.read() as t:
                assert t.rows.by_word["b"].count() == 20
        with pytest.raises(zlmdb.IndexNotAttached), other.write() as t:
            t.rows[1] = Row("x")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interruption_leaves_nothing_and_it_is_built_from_the_start(
    path: str, options: dict[str, Any], error: type[BaseException]
) -> None:
    def stop(number: int) -> None:
        if number == 10:
            raise error

    with pytest.raises(error):
        zlmdb.open(path, with_index(stop), **options)
    with zlmdb.open(path, Before, **options) as db:
        assert db.tables()["rows"].indexes == ()
        assert db.check().ok
        with db.write() as t:
            t.rows[20] = Row("c")
    with zlmdb.open(path, with_index(lambda number: None), **options) as db:
        assert db.check().ok
        with db.read() as t:
            assert (t.rows.by_word["b"].count(), t.rows.by_word["c"].count()) == (20, 1)


def test_the_log_tells_how_far_it_is(
    path: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from zlmdb.schema import indexbuilding

    monkeypatch.setattr(indexbuilding, "BATCH", 8)
    with caplog.at_level(logging.INFO, "zlmdb"):
        zlmdb.open(path, with_index(lambda number: None), **options).close()
    said = [record.getMessage() for record in caplog.records]
    total = "the" if options["layout"] == "classic" else "20"
    assert [text for text in said if "by_word" in text] == [
        f"building index rows.by_word: 8 of {total} records",
        f"building index rows.by_word: 16 of {total} records",
        "index rows.by_word built: 20 records",
    ]
