"""UUIDs, and the named types of the classic maps.

The bytes are those of zlmdb 26. Two families share them: the named types (`String`, `Uuid`, ...) store None as their
zero value ("" / the nil UUID / the epoch / zero bytes / the empty set), the plain Python types refuse None. Integers
are big-endian. All read memoryviews as well as bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Set
from operator import index
from typing import TYPE_CHECKING, Annotated, Any, Callable
from uuid import UUID

from ..keys.plain import is_bool
from ..keys.uuids import uuid_from_bytes
from .bare import (
    TEXT_EXPECTS,
    TEXTS,
    PlainSerializer,
    TextSerializer,
    check_width,
    decode_int,
    decode_text,
    encode_bytes,
    encode_int,
)
from .base import Data, is_a, typename

if TYPE_CHECKING:
    import numpy

OID_MAX = 2**53
"""The greatest Oid: the integers that a float holds exactly."""

_int64 = struct.Struct(">q")
_uint64 = struct.Struct(">Q")

# Oid, UUID


def encode_oid(value: Any) -> bytes:
    """An object id: 8 bytes, 0 to 2**53. A bool is not one."""
    number = index(value)
    if is_bool(value) or not 0 <= number <= OID_MAX:
        raise ValueError("out of range")
    return _uint64.pack(number)


def decode_oid(data: Data) -> int:
    """The object id of 8 bytes."""
    number = int(_uint64.unpack(data)[0])
    if number > OID_MAX:
        raise ValueError(f"{number} is greater than 2**53")
    return number


def encode_uuid(value: Any) -> bytes:
    """The 16 bytes of a UUID."""
    if not isinstance(value, UUID):
        raise TypeError(f"got {typename(type(value))}")
    return value.int.to_bytes(16, "big")  # what value.bytes does, in a third of the time


# Timestamp


def encode_timestamp(value: Any) -> bytes:
    """A numpy.datetime64 of any unit as nanoseconds since 1970, signed 64 bit; refused if that is not exact.

    Times before 1970 are fine as values (as keys they would not sort).
    """
    import numpy

    if not is_a(value, numpy.datetime64):
        raise TypeError(f"got {typename(type(value))}")
    if numpy.isnat(value):
        raise ValueError("NaT is no time")
    stamp = value.astype("datetime64[ns]")
    if stamp != value or stamp.astype(value.dtype) != value:  # both: a conversion that overflows wraps around
        raise ValueError(f"{value.dtype} {value} is not a whole number of nanoseconds in 64 bits")
    return _int64.pack(stamp.view("int64"))


def decode_timestamp(data: Data) -> numpy.datetime64:
    """The numpy.datetime64[ns] of 8 bytes; NaT if zlmdb <= 26 stored one."""
    import numpy

    return numpy.datetime64(_int64.unpack(data)[0], "ns")


# Bytes16, Bytes20, Bytes32


def fixed_bytes(width: int) -> PlainSerializer:
    """Exactly *width* bytes."""

    def encode(value: Any) -> bytes:
        return bytes(check_width(encode_bytes(value), width))

    def decode(data: Data) -> bytes:
        return bytes(check_width(data, width))

    examples = [bytes(width), bytes(range(width)), b"\xff" * width]
    return PlainSerializer(
        f"bytes{width}", encode, decode, expects=f"{width} bytes", examples=examples, zero=bytes(width)
    )


# Sets


def set_of(name: str, encode: Callable[[Any], bytes], decode: Callable[[Data], Any], examples: Any) -> PlainSerializer:
    """A set whose members are the same number of bytes each.

    They are stored ascending, so that equal sets are equal bytes. Any order and duplicates are read: zlmdb <= 26 wrote
    the members as they came out of the set.
    """
    width = len(encode(examples[0]))

    def encode_set(value: Any) -> bytes:
        if not is_a(value, Set):
            raise TypeError(f"got {typename(type(value))}")
        return b"".join(sorted(map(encode, value)))

    def decode_set(data: Data) -> set[Any]:
        if len(data) % width:
            raise ValueError(f"{len(data)} bytes are not a multiple of {width}")
        return {decode(data[start : start + width]) for start in range(0, len(data), width)}

    sets: list[set[Any]] = [set(), {examples[1]}, set(examples)]
    return PlainSerializer(
        name, encode_set, decode_set, expects=f"a set of values of {width} bytes", examples=sets, zero=b""
    )


# Tuples


def tuple_of(*parts: PlainSerializer) -> PlainSerializer:
    """A tuple of named types of fixed width, one after the other without separators."""
    zeros = [part.zero or b"" for part in parts]
    starts = [sum(map(len, zeros[:count])) for count in range(len(zeros))]
    width = sum(map(len, zeros))
    steps = [(part.raw_decode, slice(start, start + len(zero))) for part, start, zero in zip(parts, starts, zeros)]

    def encode(value: Any) -> bytes:
        if not is_a(value, tuple) or len(value) != len(parts):
            raise ValueError("not a tuple of that many parts")
        return b"".join([part.raw_encode(item) for part, item in zip(parts, value)])

    def decode(data: Data) -> tuple[Any, ...]:
        check_width(data, width)
        return tuple([decode_part(data[where]) for decode_part, where in steps])

    name = f"tuple({','.join(part.name for part in parts)})"
    expects = f"a tuple of: {', '.join(part.expects for part in parts)}"
    return PlainSerializer(name, encode, decode, expects=expects, examples=(), zero=bytes(width))


# The serializers

_UUIDS = [UUID(int=0), UUID("10111213-1415-1617-1819-1a1b1c1d1e1f"), UUID(int=2**128 - 1)]
_OIDS = [0, 5, 256, OID_MAX]

UUID_ = PlainSerializer("uuid", encode_uuid, uuid_from_bytes, expects="uuid.UUID", examples=_UUIDS)

# The named types

STRING = TextSerializer("string", str.encode, decode_text, expects=TEXT_EXPECTS, examples=TEXTS, zero=b"")
OID = PlainSerializer("oid", encode_oid, decode_oid, expects="an int from 0 to 2**53", examples=_OIDS)
NAMED_UUID = PlainSerializer("uuid", encode_uuid, uuid_from_bytes, expects="uuid.UUID", examples=_UUIDS, zero=bytes(16))
# No examples: they would import numpy. The tests have some.
TIMESTAMP = PlainSerializer(
    "timestamp",
    encode_timestamp,
    decode_timestamp,
    expects="numpy.datetime64, exact in nanoseconds",
    examples=(),
    zero=bytes(8),
)
BYTES16 = fixed_bytes(16)
BYTES20 = fixed_bytes(20)
BYTES32 = fixed_bytes(32)
OID_SET = set_of("oidset", encode_oid, decode_oid, _OIDS)
UUID_SET = set_of("uuidset", encode_uuid, uuid_from_bytes, _UUIDS)
BYTES20_TIMESTAMP = tuple_of(BYTES20, TIMESTAMP)

# What a key of a `SetTable` or a `ListTable` leads to. Names of their own, so that no table of numbers passes for one.
_NUMBERS = [0, 1, 2**63 - 1]
SET_NUMBER = PlainSerializer("set-number", encode_int, decode_int, expects="the number of a set", examples=_NUMBERS)
LIST_NUMBER = PlainSerializer("list-number", encode_int, decode_int, expects="the number of a list", examples=_NUMBERS)

NAMED = [
    STRING, OID, NAMED_UUID, TIMESTAMP, BYTES16, BYTES20, BYTES32, OID_SET, UUID_SET, BYTES20_TIMESTAMP, SET_NUMBER,
    LIST_NUMBER,
]  # fmt: skip
"""The serializers of the named types."""

String = Annotated[str, STRING]
Oid = Annotated[int, OID]
Uuid = Annotated[UUID, NAMED_UUID]
Bytes16 = Annotated[bytes, BYTES16]
Bytes20 = Annotated[bytes, BYTES20]
Bytes32 = Annotated[bytes, BYTES32]
OidSet = Annotated[set[int], OID_SET]
UuidSet = Annotated[set[UUID], UUID_SET]

if TYPE_CHECKING:
    Timestamp = Annotated[numpy.datetime64, TIMESTAMP]
    Bytes20Timestamp = Annotated[tuple[bytes, numpy.datetime64], BYTES20_TIMESTAMP]
else:
    # Nothing here imports numpy, and a name in quotes would be looked up in the user's module.
    Timestamp = Annotated[Any, TIMESTAMP]
    Bytes20Timestamp = Annotated[tuple[bytes, Any], BYTES20_TIMESTAMP]
