"""Value serializers: one file a format, one alias a type, for use in annotations.

``Cbor[User]`` is ``Annotated[User, CborSerializer]``: a type checker sees User, `serializer` finds the codec.
"""

from .aliases import Cbor, FlatBuffers, Json, Msgpack, Pickle, Snappy, Unchecked, Zlib
from .base import FunctionSerializer, Serializer, UncheckedWrapper, Wrapper
from .cbor import CborSerializer
from .compressed import CompressedSerializer, SnappySerializer, ZlibSerializer, compressed
from .flatbuffers import FlatBuffersSerializer
from .json import JsonSerializer
from .msgpack import MsgpackSerializer
from .pickle import PickleSerializer
from .plain import Bytes16, Bytes20, Bytes20Timestamp, Bytes32, Oid, OidSet, String, Timestamp, Uuid, UuidSet
from .resolve import from_name, serializer

__all__ = [
    "Bytes16",
    "Bytes20",
    "Bytes20Timestamp",
    "Bytes32",
    "Cbor",
    "CborSerializer",
    "CompressedSerializer",
    "FlatBuffers",
    "FlatBuffersSerializer",
    "FunctionSerializer",
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
    "from_name",
    "serializer",
]
