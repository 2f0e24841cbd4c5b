"""RocksDB through rocksdict, in raw mode: bytes in, bytes out, as its documentation advises for speed.

A further table is a column family.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..records import Shape
from .base import Bytes, Cannot, Open, Tables

NEEDS = {"rocksdict": "rocksdict"}


class Rocks(Tables, Bytes):
    helpers = 32

    def __init__(self, path: Path, shape: Shape, durability: str, codec: str) -> None:
        import rocksdict

        if durability == "commit":
            raise Cannot("no level between fsync on every write and none")
        super().__init__(path, shape, durability, codec)
        self.new_batch = partial(rocksdict.WriteBatch, raw_mode=True)
        self.family: Any = None
        self.options_of_family = rocksdict.Options(raw_mode=True)
        self.db = rocksdict.Rdict(str(path), rocksdict.Options(raw_mode=True))
        self.options = rocksdict.WriteOptions()
        self.options.sync = durability == "full"
        self.db.set_write_options(self.options)

    def use(self, name: str) -> None:
        self.encode_shape()
        db = self.db
        if name in db.list_cf(str(self.path)):
            self.db = db.get_column_family(name)
        else:
            self.db = db.create_column_family(name, self.options_of_family)
        self.family = db.get_column_family_handle(name)
        self.db.set_write_options(self.options)

    def batch(self) -> Any:
        batch = self.new_batch()
        if self.family is not None:
            batch.set_default_column_family(self.family)
        return batch

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        pack, dumps, batch = self.pack, self.dumps, self.batch()
        for key, record in pairs:
            batch.put(pack(key), dumps(record))
        self.db.write(batch, self.options)

    def get_many(self, keys: list[Any]) -> list[Any]:
        pack, loads = self.pack, self.loads
        found = self.db.get([pack(key) for key in keys])
        return [loads(data) for data in found]

    def scan(self) -> Iterator[Any]:
        loads = self.loads
        for data in self.db.values():
            yield loads(data)

    def delete_many(self, keys: list[Any]) -> None:
        batch = self.batch()
        for key in keys:
            batch.delete(self.pack(key))
        self.db.write(batch, self.options)

    def put(self, key: Any, record: Any) -> None:
        self.db[self.pack(key)] = self.dumps(record)

    def get(self, key: Any) -> Any:
        return self.loads(self.db[self.pack(key)])

    def delete(self, key: Any) -> None:
        del self.db[self.pack(key)]

    def clear(self) -> None:
        self.db.delete_range(b"", b"\xff" * 64)

    def close(self) -> None:
        super().close()
        self.family = None  # it holds the database open
        self.db.close()


VARIANTS: dict[str, Open] = {
    "RocksDB + bytes": partial(Rocks, codec="bytes"),
    "RocksDB + pickle": partial(Rocks, codec="pickle"),
    "RocksDB + msgspec": partial(Rocks, codec="msgspec"),
}
