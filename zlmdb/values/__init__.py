"""Value serializers: one file a format, one alias a type, for use in annotations.

``Cbor[User]`` is ``Annotated[User, CborSerializer]``: a type checker sees User, `serializer` finds the codec.
"""

from .aliases import Cbor, FlatBuffers, FlatBuffersView, Json, Msgpack, Pickle, Snappy, Unchecked, Zlib
from .base import FunctionSerializer, Serializer, UncheckedWrapper, Wrapper
from .cbor import CborSerializer
from .compressed import CompressedSerializer, SnappySerializer, ZlibSerializer, compressed
from .flat import F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Id, InStruct
from .flatbuffers import FlatBuffersSerializer, FlatBuffersViewSerializer, fbs, load
from .json import JsonSerializer
from .msgpack import MsgpackSerializer
from .pickle import PickleSerializer
from .plain import Bytes16, Bytes20, Bytes20Timestamp, Bytes32, Oid, OidSet, String, Timestamp, Uuid, UuidSet
from .resolve import from_name, serializer

__all__ = [
    "F32",
    "F64",
    "I8",
    "I16",
    "I32",
    "I64",
    "U8",
    "U16",
    "U32",
    "U64",
    "Bytes16",
    "Bytes20",
    "Bytes20Timestamp",
    "Bytes32",
    "Cbor",
    "CborSerializer",
    "CompressedSerializer",
    "FlatBuffers",
    "FlatBuffersSerializer",
    "FlatBuffersView",
    "FlatBuffersViewSerializer",
    "FunctionSerializer",
    "Id",
    "InStruct",
    "Json",
    "JsonSerializer",
    "Msgpack",
    "MsgpackSerializer",
    "Oid",
    "OidSet",
    "Pickle",
    "PickleSerializer",
    "Serializer",
    "Snappy",
    "SnappySerializer",
    "String",
    "Timestamp",
    "Unchecked",
    "UncheckedWrapper",
    "Uuid",
    "UuidSet",
    "Wrapper",
    "Zlib",
    "ZlibSerializer",
    "compressed",
    "fbs",
    "from_name",
    "load",
    "serializer",
]
