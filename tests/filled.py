"""Fixtures of databases that are filled once for all tests of a module, which only read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

import pytest

import zlmdb

Rows = Callable[[], Mapping[str, Iterable[tuple[Any, Any]]]]


def filled_once(schema: type[zlmdb.Schema], rows: Rows, layouts: Optional[Sequence[Any]] = None) -> Any:
    """A fixture: a database in memory, or a file of each of the *layouts*, with *rows*: pairs, by table."""

    @pytest.fixture(scope="module", params=layouts)
    def db(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
        path = None if layouts is None else tmp_path_factory.mktemp("filled") / "db"
        with zlmdb.open(path, schema, layout=getattr(request, "param", "tables")) as opened:
            _fill(opened, rows())
            yield opened

    return db


def _fill(db: Any, rows: Mapping[str, Iterable[tuple[Any, Any]]]) -> None:  # its end lets go of the rows
    with db.write() as t:
        for name, pairs in rows.items():
            t[name].put_many(pairs)


def table_of(*names: str) -> Any:
    """A fixture: each of the tables *names* of the fixture ``db``, in a read transaction."""

    @pytest.fixture(params=names)
    def table(db: Any, request: Any) -> Iterator[Any]:
        with db.read() as t:
            yield t[request.param]

    return table
