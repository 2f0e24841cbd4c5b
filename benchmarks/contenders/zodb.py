"""ZODB: records in a BTree in a FileStorage. Records are stored as the tree's values, in its buckets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Cannot, Open, Tables

NEEDS = {"ZODB": "ZODB", "BTrees": "BTrees"}


class Zodb(Tables):
    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        import ZODB
        import ZODB.FileStorage

        self.note = "what its cache of live objects holds, by default 400 of them, is not read from bytes again"
        if durability == "none":
            self.note += "; always commits in full: FileStorage has no weaker level"
        if durability == "commit":
            raise Cannot("FileStorage always commits in full")
        super().__init__(path, shape, durability)
        self.durability = "full"
        path.mkdir(exist_ok=True)
        self.db = ZODB.DB(ZODB.FileStorage.FileStorage(str(path / "records.fs")))
        self.use("records")

    def use(self, name: str) -> None:
        from BTrees import family64

        self.name = name
        with self.db.transaction() as connection:
            if name not in connection.root():
                connection.root()[name] = family64.IO.BTree() if self.shape.key is int else family64.OO.BTree()

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        with self.db.transaction() as connection:
            connection.root()[self.name].update(pairs)

    def put(self, key: Any, record: Any) -> None:
        from ZODB.POSException import ConflictError

        while True:
            try:
                with self.db.transaction() as connection:
                    connection.root()[self.name][key] = record
                return
            except ConflictError:
                continue  # its rule: a transaction that conflicts is tried again

    def get_many(self, keys: list[Any]) -> list[Any]:
        with self.db.transaction() as connection:
            records = connection.root()[self.name]
            return [records[key] for key in keys]

    def scan(self) -> Iterator[Any]:
        with self.db.transaction() as connection:
            yield from connection.root()[self.name].values()

    def delete_many(self, keys: list[Any]) -> None:
        with self.db.transaction() as connection:
            records = connection.root()[self.name]
            for key in keys:
                records.pop(key, None)

    def count(self) -> int:
        with self.db.transaction() as connection:
            return len(connection.root()[self.name])

    def clear(self) -> None:
        with self.db.transaction() as connection:
            connection.root()[self.name].clear()

    def close(self) -> None:
        self.db.close()


VARIANTS: dict[str, Open] = {"ZODB": Zodb}
