"""sqlitedict: a dict of pickles in SQLite, written by a thread of its own; commit() after each batch."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Cannot, Open, Tables

NEEDS = {"sqlitedict": "sqlitedict"}


class SqliteDictionary(Tables):
    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        import sqlitedict

        if durability != "none":
            raise Cannot("it runs with synchronous=OFF, and no way to say otherwise")
        if sys.implementation.name == "pypy":
            raise Cannot("its commit() waits for ever for its writer thread on PyPy")
        super().__init__(path, shape, durability)
        path.mkdir(exist_ok=True)
        self.open = partial(sqlitedict.SqliteDict, str(path / "records.sqlite"), journal_mode="WAL", outer_stack=False)
        self.use("unnamed")  # its own default

    def use(self, name: str) -> None:
        self.db = self.open(name)
        self.key = str if self.shape.key is not bytes else bytes.hex

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        key = self.key
        self.db.update([(key(one), record) for one, record in pairs])
        self.db.commit()

    def get_many(self, keys: list[Any]) -> list[Any]:
        return [self.db[self.key(key)] for key in keys]

    def scan(self) -> Iterator[Any]:
        return iter(self.db.values())

    def delete_many(self, keys: list[Any]) -> None:
        for key in keys:
            self.db.pop(self.key(key), None)
        self.db.commit()

    def count(self) -> int:
        return len(self.db)

    def clear(self) -> None:
        self.db.clear()
        self.db.commit()

    def close(self) -> None:
        super().close()
        self.db.close()


VARIANTS: dict[str, Open] = {"sqlitedict": SqliteDictionary}
