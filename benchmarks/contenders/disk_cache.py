"""diskcache: its Index, a persistent mapping; transact() around a batch, as its documentation recommends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Open, Store
from .sqlite import NOTES

NEEDS = {"diskcache": "diskcache"}
SYNCHRONOUS = {"none": 0, "commit": 1, "full": 2}


class DiskCache(Store):
    processes = True

    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        import diskcache

        super().__init__(path, shape, durability)
        self.note = NOTES.get(durability, "")
        self.cache = diskcache.Cache(
            str(path), eviction_policy="none", sqlite_synchronous=SYNCHRONOUS[durability], timeout=60
        )  # fmt: skip
        self.index = diskcache.Index.fromcache(self.cache)

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        with self.index.transact():
            for key, record in pairs:
                self.index[key] = record

    def get_many(self, keys: list[Any]) -> list[Any]:
        with self.index.transact():
            return [self.index[key] for key in keys]

    def get(self, key: Any) -> Any:
        return self.index[key]

    def put(self, key: Any, record: Any) -> None:
        self.index[key] = record

    def scan(self) -> Iterator[Any]:
        return iter(self.index.values())

    def delete_many(self, keys: list[Any]) -> None:
        with self.index.transact():
            for key in keys:
                self.index.pop(key, None)

    def count(self) -> int:
        return len(self.index)

    def clear(self) -> None:
        self.index.clear()

    def close(self) -> None:
        super().close()
        self.cache.close()


VARIANTS: dict[str, Open] = {"diskcache": DiskCache}
