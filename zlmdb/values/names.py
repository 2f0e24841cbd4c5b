"""The names of `zlmdb.values` that are imported on first use, because a program uses few formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..late import on_first_use

if TYPE_CHECKING:
    from .aliases import Array as Array
    from .aliases import Cbor as Cbor
    from .aliases import Checked as Checked
    from .aliases import Compressed as Compressed
    from .aliases import FlatBuffers as FlatBuffers
    from .aliases import FlatBuffersView as FlatBuffersView
    from .aliases import Json as Json
    from .aliases import Msgpack as Msgpack
    from .aliases import Pickle as Pickle
    from .aliases import Snappy as Snappy
    from .aliases import Unchecked as Unchecked
    from .aliases import Zlib as Zlib
    from .aliases import Zstd as Zstd
    from .array import ArraySerializer as ArraySerializer
    from .cbor import CborSerializer as CborSerializer
    from .checksums import CheckedSerializer as CheckedSerializer
    from .compression import CompressedSerializer as CompressedSerializer
    from .compression import Compression as Compression
    from .compression import DecompressionLimit as DecompressionLimit
    from .compression import MixedSerializer as MixedSerializer
    from .compression import SnappySerializer as SnappySerializer
    from .compression import ZlibSerializer as ZlibSerializer
    from .compression import ZstdSerializer as ZstdSerializer
    from .compression import compressed as compressed
    from .flat import F32 as F32
    from .flat import F64 as F64
    from .flat import I8 as I8
    from .flat import I16 as I16
    from .flat import I32 as I32
    from .flat import I64 as I64
    from .flat import U8 as U8
    from .flat import U16 as U16
    from .flat import U32 as U32
    from .flat import U64 as U64
    from .flat import Id as Id
    from .flat import InStruct as InStruct
    from .flatbuffers import FlatBuffersSerializer as FlatBuffersSerializer
    from .flatbuffers import FlatBuffersViewSerializer as FlatBuffersViewSerializer
    from .flatbuffers import fbs as fbs
    from .flatbuffers import load as load
    from .json import JsonSerializer as JsonSerializer
    from .msgpack import MsgpackSerializer as MsgpackSerializer
    from .named import Bytes16 as Bytes16
    from .named import Bytes20 as Bytes20
    from .named import Bytes20Timestamp as Bytes20Timestamp
    from .named import Bytes32 as Bytes32
    from .named import Oid as Oid
    from .named import OidSet as OidSet
    from .named import String as String
    from .named import Timestamp as Timestamp
    from .named import Uuid as Uuid
    from .named import UuidSet as UuidSet
    from .pickle import PickleSerializer as PickleSerializer
else:
    __all__ = ["__dir__", "__getattr__"]
    __getattr__, __dir__ = on_first_use(
        __package__,
        {
            ".aliases": "Array Cbor Checked Compressed FlatBuffers FlatBuffersView Json Msgpack Pickle Snappy "
            "Unchecked Zlib Zstd",
            ".array": "ArraySerializer",
            ".cbor": "CborSerializer",
            ".checksums": "CheckedSerializer",
            ".compression": "CompressedSerializer Compression DecompressionLimit MixedSerializer SnappySerializer "
            "ZlibSerializer ZstdSerializer compressed",
            ".flat": "F32 F64 I8 I16 I32 I64 U8 U16 U32 U64 Id InStruct",
            ".flatbuffers": "FlatBuffersSerializer FlatBuffersViewSerializer fbs load",
            ".json": "JsonSerializer",
            ".msgpack": "MsgpackSerializer",
            ".pickle": "PickleSerializer",
            ".named": "Bytes16 Bytes20 Bytes20Timestamp Bytes32 Oid OidSet String Timestamp Uuid UuidSet",
        },
    )
