"""One record in each serializer of the predecessor: text, pickle, JSON, CBOR and FlatBuffers, also without copying."""

from __future__ import annotations

import struct
import sys
import tempfile
from typing import Any, Optional
from uuid import UUID

import zlmdb
from zlmdb import flatbuffers

zlmdb.setup_flatbuffers_import()


class Block:
    """A record with a FlatBuffers form, laid out as generated code does, and cast lazily."""

    def __init__(self, from_fbs: Any = None, height: int = 0, title: str = "") -> None:
        self._from_fbs = from_fbs
        self._height = height
        self._title = title

    @property
    def height(self) -> int:
        if self._from_fbs is None:
            return self._height
        offset = self._from_fbs.Offset(4)
        return (
            int(self._from_fbs.Get(flatbuffers.number_types.Uint64Flags, offset + self._from_fbs.Pos)) if offset else 0
        )

    @property
    def title(self) -> str:
        if self._from_fbs is None:
            return self._title
        offset = self._from_fbs.Offset(6)
        return bytes(self._from_fbs.String(offset + self._from_fbs.Pos)).decode("utf8") if offset else ""

    def build(self, builder: flatbuffers.Builder) -> int:
        title = builder.CreateString(self.title)
        builder.StartObject(2)
        builder.PrependUint64Slot(0, self.height, 0)
        builder.PrependUOffsetTRelativeSlot(1, title, 0)
        return int(builder.EndObject())

    @staticmethod
    def cast(buffer: Any) -> Block:
        root = struct.unpack_from("<I", buffer)[0]
        return Block(from_fbs=flatbuffers.table.Table(buffer, root))

    def __repr__(self) -> str:
        return f"Block({self.height}, {self.title})"


class Point:
    """A plain object, for pickle."""

    def __init__(self, x: float, y: float) -> None:
        self.x = x
        self.y = y

    def __repr__(self) -> str:
        return f"Point({self.x}, {self.y})"


def plain(data: Any) -> Any:
    return data


def build(block: Block, builder: flatbuffers.Builder) -> int:
    return block.build(builder)


def main(dbpath: str) -> None:
    data = {"text": "M\u00fcnchen", "list": [1, 2.5, None, True], "deep": {"er": []}}
    names = zlmdb.MapOidString(1)
    points = zlmdb.MapOidPickle(2)
    documents = zlmdb.MapUuidJson(3, marshal=plain, unmarshal=plain)
    packed = zlmdb.MapStringCbor(4, marshal=plain, unmarshal=plain)
    blocks = zlmdb.MapOidFlatBuffers(5, build=build, cast=Block.cast)
    small = zlmdb.MapUuidFlatBuffers(6, zlmdb.PersistentMap.COMPRESS_ZLIB, build, Block.cast)
    squeezed = zlmdb.MapStringPickle(7, compress=zlmdb.PersistentMap.COMPRESS_ZLIB)
    uuids = zlmdb.MapOidUuid(8)
    u = UUID(int=1)

    with zlmdb.Database(dbpath) as db:
        with db.begin(write=True) as txn:
            names[txn, 1] = "M\u00fcnchen"
            for n, thing in enumerate([Point(1.5, -2), {"a": (1, {2})}, None, [], "text"]):
                points[txn, n] = thing
            documents[txn, u] = data
            packed[txn, "key"] = data
            packed[txn, "bytes"] = b"\x00\xff"
            for n in range(3):
                blocks[txn, n] = Block(height=2**40 * n, title=f"block {n}")
            small[txn, u] = Block(height=7, title="small " * 100)
            squeezed[txn, "all"] = list(range(1000))
            uuids[txn, 1] = None
            print(txn.get(b"\0\1" + (1).to_bytes(8, "big")), txn.get(b"\0\1" + (9).to_bytes(8, "big")))
            print(txn.put(b"\0\x63raw", b"1"), txn.put(b"\0\x63raw", b"2", overwrite=False), txn.get(b"\0\x63raw"))
            print(txn.delete(b"\0\x63raw"), txn.delete(b"\0\x63raw"), txn.get(b"\0\x63raw"))

        with db.begin() as txn:
            print(names[txn, 1], points[txn, 0], points[txn, 1], points[txn, 2], (txn, 2) in points, (txn, 9) in points)
            print(list(points.select(txn, from_key=1)))
            print(documents[txn, u], packed[txn, "key"] == data, packed[txn, "bytes"])
            print(blocks[txn, 2], small[txn, u], list(blocks.select(txn)))
            total: Optional[list[int]] = squeezed[txn, "all"]
            print(sum(total or []), uuids[txn, 1])

        # Casting over the database's own memory, valid until the block ends.
        with db.begin(buffers=True) as txn:
            block = blocks[txn, 1]
            print(block, [(key, block.title) for key, block in blocks.select(txn)])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else directory)
