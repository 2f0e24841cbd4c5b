"""ZODB: records in a BTree in a FileStorage. Records are stored as the tree's values, in its buckets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Cannot, Open, Store

NEEDS = {"ZODB": "ZODB", "BTrees": "BTrees"}


class Zodb(Store):
    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        import BTrees
        import ZODB
        import ZODB.FileStorage

        self.note = "reads come from its cache of live objects, not from bytes"
        if durability == "none":
            self.note += "; always commits in full: FileStorage has no weaker level"
        if durability == "commit":
            raise Cannot("FileStorage always commits in full")
        super().__init__(path, shape, durability)
        self.durability = "full"
        path.mkdir(exist_ok=True)
        self.db = ZODB.DB(ZODB.FileStorage.FileStorage(str(path / "records.fs")))
        with self.db.transaction() as connection:
            if "records" not in connection.root():
                family = BTrees.family64
                connection.root()["records"] = family.IO.BTree() if shape.key is int else family.OO.BTree()

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        with self.db.transaction() as connection:
            connection.root()["records"].update(pairs)

    def put(self, key: Any, record: Any) -> None:
        from ZODB.POSException import ConflictError

        while True:
            try:
                with self.db.transaction() as connection:
                    connection.root()["records"][key] = record
                return
            except ConflictError:
                continue  # its rule: a transaction that conflicts is tried again

    def get_many(self, keys: list[Any]) -> list[Any]:
        with self.db.transaction() as connection:
            records = connection.root()["records"]
            return [records[key] for key in keys]

    def scan(self) -> Iterator[Any]:
        with self.db.transaction() as connection:
            yield from connection.root()["records"].values()

    def delete_many(self, keys: list[Any]) -> None:
        with self.db.transaction() as connection:
            records = connection.root()["records"]
            for key in keys:
                records.pop(key, None)

    def count(self) -> int:
        with self.db.transaction() as connection:
            return len(connection.root()["records"])

    def clear(self) -> None:
        with self.db.transaction() as connection:
            connection.root()["records"].clear()

    def close(self) -> None:
        self.db.close()


VARIANTS: dict[str, Open] = {"ZODB": Zodb}
