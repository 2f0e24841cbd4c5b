"""zlmdb 26.10.1, the predecessor, in an interpreter of its own: its maps, with the callables that its README shows.

For FlatBuffers these are the code that flatc generates, as its tutorial uses it; with vectors of numbers read through
NumPy; and, labelled "by hand", the calls of the official runtime below that, which are as fast as that runtime can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from ..records import PERSONS, Shape, User
from .base import Cannot, Open, Tables

NEEDS = {"zlmdb": "zlmdb==26.10.1"}
PREDECESSOR = True
"""Runs in the interpreter of ``ZLMDB_INTEROP_PYTHON``."""

KEYS: dict[type, str] = {int: "Oid", str: "String", UUID: "Uuid"}

SLOTS = ("records", *(shape.name for shape in PERSONS.beside))

FLAT = ("FlatBuffers", "FlatBuffers, NumPy", "FlatBuffers, by hand")


class Zlmdb26(Tables):
    processes = True

    def __init__(self, path: Path, shape: Shape, durability: str, codec: str) -> None:
        import zlmdb

        if durability == "commit":
            raise Cannot("it has sync on and sync off, nothing between")
        if shape.key not in KEYS:
            raise Cannot("it has no map of such keys to bytes")
        super().__init__(path, shape, durability)
        self.codec = codec
        self.referred_by: Any = None  # a map of the same records that reads this field only
        self.use("records")
        self.db: Any = zlmdb.Database(str(path), maxsize=1 << 36, sync=durability == "full")
        self.db.__enter__()

    def use(self, name: str) -> None:
        """The map of the *name*; a table of this predecessor is a number."""
        import zlmdb

        shape, codec, key = self.shape, self.codec, KEYS[self.shape.key]
        slot = SLOTS.index(name) + 1
        if shape.model is str:
            self.note = f"strings in its Map{key}String"
            self.map: Any = getattr(zlmdb, f"Map{key}String")(slot)
        elif shape.is_bytes:
            self.map = zlmdb.MapOidPickle(slot)
        elif codec.startswith("FlatBuffers"):
            self.map = self.flatbuffers(zlmdb, shape, codec)
        elif codec == "Pickle":
            self.map = getattr(zlmdb, f"Map{key}Pickle")(slot)
        elif not isinstance(shape.model, type):
            self.map = getattr(zlmdb, f"Map{key}{codec}")(slot, marshal=same, unmarshal=same)
        else:
            marshal, unmarshal = plain(shape)
            self.map = getattr(zlmdb, f"Map{key}{codec}")(slot, marshal=marshal, unmarshal=unmarshal)

    def flatbuffers(self, zlmdb: Any, shape: Shape, codec: str) -> Any:
        from .. import flatc
        from .. import official_flatbuffers as official

        by_hand = codec == FLAT[-1]
        if shape.model is User and by_hand:
            self.referred_by = zlmdb.MapOidFlatBuffers(1, build=None, cast=official.read_referred_by)
            return zlmdb.MapOidFlatBuffers(1, build=official.build_user, cast=official.read_user)
        if shape.model is User:
            try:
                code = flatc.UserCode(numpy=codec.endswith("NumPy"))
            except ImportError as error:
                raise Cannot(f"not installed: {error}") from error
            self.referred_by = zlmdb.MapOidFlatBuffers(1, build=None, cast=lambda data: code.root(data, 0).ReferredBy())
            return zlmdb.MapOidFlatBuffers(1, build=code.build, cast=code.cast)
        if shape.name == "six_fields" and by_hand:
            self.note = "gives views, of which a scan reads nothing"
            return zlmdb.MapOidFlatBuffers(1, build=official.build_six_fields, cast=official.SixFieldsView)
        raise Cannot("no FlatBuffers schema was written for these records")

    def put_many(self, pairs: list[tuple[Any, Any]]) -> None:
        records = self.map
        with self.db.begin(write=True) as txn:
            for key, record in pairs:
                records[txn, key] = record

    def get_many(self, keys: list[Any]) -> list[Any]:
        records = self.map
        with self.db.begin() as txn:
            return [records[txn, key] for key in keys]

    def get_field(self, keys: list[Any], field: str) -> list[Any]:
        if field != "referred_by" or self.referred_by is None:
            return super().get_field(keys, field)
        records = self.referred_by
        with self.db.begin() as txn:
            return [records[txn, key] for key in keys]

    def scan(self) -> Iterator[Any]:
        with self.db.begin() as txn:
            yield from self.map.select(txn, return_keys=False)

    def delete_many(self, keys: list[Any]) -> None:
        with self.db.begin(write=True) as txn:
            for key in keys:
                if (txn, key) in self.map:
                    del self.map[txn, key]

    def put(self, key: Any, record: Any) -> None:
        with self.db.begin(write=True) as txn:
            self.map[txn, key] = record

    def get(self, key: Any) -> Any:
        with self.db.begin() as txn:
            return self.map[txn, key]

    def delete(self, key: Any) -> None:
        with self.db.begin(write=True) as txn:
            del self.map[txn, key]

    def count(self) -> int:
        with self.db.begin() as txn:
            return int(self.map.count(txn))

    def clear(self) -> None:
        with self.db.begin(write=True) as txn:
            self.map.truncate(txn)

    def close(self) -> None:
        self.db.__exit__(None, None, None)


def same(value: Any) -> Any:
    return value


def plain(shape: Shape) -> tuple[Any, Any]:
    """What marshals a record to plain data for JSON and CBOR, and back, as its example programs write it by hand."""
    names = list(shape.columns)
    write = {"uuid": lambda value: value.hex, "date": lambda value: [value.year, value.month, value.day]}
    read = {"uuid": lambda value: UUID(hex=value), "date": lambda value: date(*value)}
    special = [(name, write[kind], read[kind]) for name, kind in shape.columns.items() if kind in write]
    model = shape.model

    def marshal(record: Any) -> Any:
        data = {name: getattr(record, name) for name in names}
        for name, dump, _ in special:
            data[name] = dump(data[name])
        return data

    def unmarshal(data: Any) -> Any:
        for name, _, load in special:
            data[name] = load(data[name])
        return model(**data)

    return marshal, unmarshal


VARIANTS: dict[str, Open] = {
    f"zlmdb 26 {codec}": partial(Zlmdb26, codec=codec) for codec in (*FLAT, "Cbor", "Json", "Pickle")
}
