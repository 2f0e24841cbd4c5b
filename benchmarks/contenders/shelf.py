"""shelve of the standard library, on whichever dbm this Python has."""

from __future__ import annotations

import shelve
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Cannot, Open, Store

NEEDS = {"shelve": "Python itself", "dbm": "Python itself"}


class Shelf(Store):
    def __init__(self, path: Path, shape: Shape, durability: str) -> None:
        if durability == "commit":
            raise Cannot("no level between sync() after every write and none")
        super().__init__(path, shape, durability)
        path.mkdir(exist_ok=True)
        self.lock = threading.Lock()
        self.db = shelve.open(str(path / "records"), protocol=5)  # noqa: SIM115 - closed by close()
        self.note = f"on {type(self.db.dict).__module__.lstrip('_')}"  # type: ignore[attr-defined]  # the dbm below
        if durability == "full" and ("dumb" in self.note or not hasattr(self.db.dict, "sync")):  # type: ignore[attr-defined]
            raise Cannot(f"{self.note}, the dbm of this Python, nothing reaches the disk on demand")
        self.key = bytes.hex if shape.key is bytes else str

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        with self.lock:
            for key, record in pairs:
                self.db[self.key(key)] = record
            if self.durability == "full":
                self.db.sync()

    def get_many(self, keys: list[Any]) -> list[Any]:
        with self.lock:
            return [self.db[self.key(key)] for key in keys]

    def scan(self) -> Iterator[Any]:
        return iter(self.db.values())

    def delete_many(self, keys: list[Any]) -> None:
        with self.lock:
            for key in keys:
                self.db.pop(self.key(key), None)

    def count(self) -> int:
        return len(self.db)

    def flush(self) -> None:
        self.db.sync()

    def close(self) -> None:
        super().close()
        self.db.close()


VARIANTS: dict[str, Open] = {"shelve": Shelf}
