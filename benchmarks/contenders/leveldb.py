"""LevelDB through plyvel: a write batch for many, its iterator for scans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Bytes, Cannot, Open

NEEDS = {"plyvel": "plyvel"}


class Level(Bytes):
    helpers = 32

    def __init__(self, path: Path, shape: Shape, durability: str, codec: str) -> None:
        import plyvel

        if durability == "commit":
            raise Cannot("no level between fsync on every write and none")
        super().__init__(path, shape, durability, codec)
        self.db = plyvel.DB(str(path), create_if_missing=True)
        self.sync = durability == "full"

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        pack, dumps = self.pack, self.dumps
        with self.db.write_batch(sync=self.sync) as batch:
            for key, record in pairs:
                batch.put(pack(key), dumps(record))

    def get_many(self, keys: list[Any]) -> list[Any]:
        pack, loads, get = self.pack, self.loads, self.db.get
        return [loads(get(pack(key))) for key in keys]

    def scan(self) -> Iterator[Any]:
        loads = self.loads
        with self.db.iterator(include_key=False) as rows:
            for data in rows:
                yield loads(data)

    def delete_many(self, keys: list[Any]) -> None:
        with self.db.write_batch(sync=self.sync) as batch:
            for key in keys:
                batch.delete(self.pack(key))

    def put(self, key: Any, record: Any) -> None:
        self.db.put(self.pack(key), self.dumps(record), sync=self.sync)

    def get(self, key: Any) -> Any:
        return self.loads(self.db.get(self.pack(key)))

    def delete(self, key: Any) -> None:
        self.db.delete(self.pack(key), sync=self.sync)

    def clear(self) -> None:
        with self.db.write_batch(sync=self.sync) as batch, self.db.iterator(include_value=False) as keys:
            for key in keys:
                batch.delete(key)

    def table(self, shape: Shape) -> Level:
        return Level(self.path / shape.name, shape, self.durability, self.codec)

    def close(self) -> None:
        super().close()
        self.db.close()


VARIANTS: dict[str, Open] = {
    "LevelDB + bytes": partial(Level, codec="bytes"),
    "LevelDB + pickle": partial(Level, codec="pickle"),
    "LevelDB + msgspec": partial(Level, codec="msgspec"),
}
