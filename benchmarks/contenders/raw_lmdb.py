"""py-lmdb by hand: the baseline of every ratio, with pickle, with msgspec, and with zlmdb's own codecs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from ..codecs import CODECS
from ..records import Shape
from .base import Bytes, Open, Tables

NEEDS = {"lmdb": "lmdb"}


class Lmdb(Tables, Bytes):
    processes = True

    def __init__(self, path: Path, shape: Shape, durability: str, codec: str) -> None:
        import lmdb

        super().__init__(path, shape, durability, codec)
        path.mkdir(exist_ok=True)
        self.env = lmdb.open(
            str(path), map_size=1 << 38, max_dbs=1 + len(shape.beside), max_readers=1024, max_spare_txns=8,
            sync=durability != "none", metasync=durability == "full",
        )  # fmt: skip
        self.use("records")

    def use(self, name: str) -> None:
        self.encode_shape()
        self.db = self.env.open_db(name.encode())

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        pack, dumps = self.pack, self.dumps
        with self.env.begin(self.db, write=True) as txn:
            put = txn.put
            for key, record in pairs:
                put(pack(key), dumps(record))

    def get_many(self, keys: list[Any]) -> list[Any]:
        pack, loads = self.pack, self.loads
        with self.env.begin(self.db) as txn:
            get = txn.get
            return [loads(get(pack(key))) for key in keys]

    def scan(self) -> Iterator[Any]:
        loads = self.loads
        with self.env.begin(self.db) as txn, txn.cursor() as cursor:
            for data in cursor.iternext(keys=False, values=True):
                yield loads(data)

    def delete_many(self, keys: list[Any]) -> None:
        pack = self.pack
        with self.env.begin(self.db, write=True) as txn:
            for key in keys:
                txn.delete(pack(key))

    def put(self, key: Any, record: Any) -> None:
        with self.env.begin(self.db, write=True) as txn:
            txn.put(self.pack(key), self.dumps(record))

    def get(self, key: Any) -> Any:
        with self.env.begin(self.db) as txn:
            return self.loads(txn.get(self.pack(key)))

    def delete(self, key: Any) -> None:
        with self.env.begin(self.db, write=True) as txn:
            txn.delete(self.pack(key))

    def count(self) -> int:
        with self.env.begin() as txn:
            return int(txn.stat(self.db)["entries"])

    def clear(self) -> None:
        with self.env.begin(write=True) as txn:
            txn.drop(self.db, delete=False)

    def close(self) -> None:
        self.env.close()


VARIANTS: dict[str, Open] = {f"raw lmdb + {codec}": partial(Lmdb, codec=codec) for codec in CODECS}
