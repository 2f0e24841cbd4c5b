"""Value serializers: one file per format, one alias per type, for use in annotations.

``Cbor[User]`` is ``Annotated[User, CborSerializer]``: a type checker sees User, `serializer` finds the codec.
"""
# ruff: noqa: F405 - the formats come by `names`

from .base import FunctionSerializer, Serializer, UncheckedWrapper, Wrapper, WrapperOptions
from .names import *  # noqa: F403
from .resolve import from_name, serializer

# fmt: off
__all__ = [
    "F32", "F64", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "Array", "ArraySerializer", "Bytes16",
    "Bytes20", "Bytes20Timestamp", "Bytes32", "Cbor", "CborSerializer", "Checked", "CheckedSerializer", "Compressed",
    "CompressedSerializer", "Compression", "DecompressionLimit", "FlatBuffers", "FlatBuffersSerializer",
    "FlatBuffersView", "FlatBuffersViewSerializer", "FunctionSerializer", "Id", "InStruct", "Json", "JsonSerializer",
    "MixedSerializer", "Msgpack", "MsgpackSerializer", "Oid", "OidSet", "Pickle", "PickleSerializer", "Serializer",
    "Snappy", "SnappySerializer", "String", "Timestamp", "Unchecked", "UncheckedWrapper", "Uuid", "UuidSet",
    "Wrapper", "WrapperOptions", "Zlib", "ZlibSerializer", "Zstd", "ZstdSerializer", "compressed", "fbs", "from_name",
    "load", "serializer",
]
