"""A dict with a lock: no file, no transaction, no copy. What persistence costs at all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Cannot, Open, Store

NEEDS: dict[str, str] = {}


class PlainDict(Store):
    in_memory = True

    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        if durability != "none":
            raise Cannot("it is in memory")
        super().__init__(path, shape, durability)
        self.note = "in memory, not persistent"
        path.mkdir(exist_ok=True)
        self.lock = threading.Lock()
        self.records: dict[Any, Any] = {}

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        with self.lock:
            self.records.update(pairs)

    def put(self, key: Any, record: Any) -> None:
        with self.lock:
            self.records[key] = record

    def get_many(self, keys: list[Any]) -> list[Any]:
        with self.lock:
            return [self.records[key] for key in keys]

    def get(self, key: Any) -> Any:
        with self.lock:
            return self.records[key]

    def scan(self) -> Iterator[Any]:
        return iter(list(self.records.values()))

    def delete_many(self, keys: list[Any]) -> None:
        with self.lock:
            for key in keys:
                self.records.pop(key, None)

    def count(self) -> int:
        return len(self.records)

    def clear(self) -> None:
        self.records.clear()


VARIANTS: dict[str, Open] = {"dict + lock": PlainDict}
