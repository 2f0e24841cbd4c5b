"""The generic annotations: ``Json[User]`` is the type User, stored as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from .array import ArraySerializer
from .base import UncheckedWrapper
from .cbor import CborSerializer
from .checksums import CheckedSerializer
from .compression import Compression, SnappySerializer, ZlibSerializer, ZstdSerializer
from .flatbuffers import FlatBuffersSerializer, FlatBuffersViewSerializer
from .json import JsonSerializer
from .msgpack import MsgpackSerializer
from .pickle import PickleSerializer

if TYPE_CHECKING:
    import numpy
    from typing_extensions import TypeVar

    # A plain Json is Json[Any] to checkers. At run time it is free, which means plain data.
    T = TypeVar("T", default=Any)
    D = TypeVar("D", bound=numpy.generic, default=Any)
    Array = Annotated[numpy.ndarray[Any, numpy.dtype[D]], ArraySerializer]
else:
    from typing import TypeVar

    T = TypeVar("T")
    Array = Annotated[T, ArraySerializer]

Json = Annotated[T, JsonSerializer]
Cbor = Annotated[T, CborSerializer]
Msgpack = Annotated[T, MsgpackSerializer]
Pickle = Annotated[T, PickleSerializer]
FlatBuffers = Annotated[T, FlatBuffersSerializer]
FlatBuffersView = Annotated[T, FlatBuffersViewSerializer]

Unchecked = Annotated[T, UncheckedWrapper]
Checked = Annotated[T, CheckedSerializer]
Zlib = Annotated[T, ZlibSerializer]
Snappy = Annotated[T, SnappySerializer]
Zstd = Annotated[T, ZstdSerializer]
Compressed = Annotated[T, Compression()]
