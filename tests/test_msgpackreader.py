"""Our reading of MessagePack, used on PyPy, agrees with the library there, and with msgspec on CPython."""

from __future__ import annotations

import math
import struct
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zlmdb.errors import DecodeError
from zlmdb.values import serializer
from zlmdb.values.msgpackreader import unpack

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

try:
    from msgspec.msgpack import decode as expected_of
    from msgspec.msgpack import encode as pack
except ImportError:  # PyPy
    from functools import partial

    from msgpack import packb as pack
    from msgpack import unpackb

    expected_of = partial(unpackb, timestamp=3, strict_map_key=False)

SIZES = [0, 1, 15, 16, 23, 24, 31, 32, 255, 256, 65535, 65536]
NUMBERS = [
    sign * 2**bits + more for bits in (0, 5, 7, 8, 15, 16, 31, 32, 63) for sign in (1, -1) for more in (-1, 0, 1)
]
KEYS = st.text(max_size=40) | st.integers(-(2**63), 2**64 - 1) | st.binary(max_size=3)
SCALARS = st.none() | st.booleans() | st.floats(allow_nan=False) | KEYS
PLAIN = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner))


@given(PLAIN)
def test_what_was_written_is_read(value: Any) -> None:
    assert unpack(pack(value)) == value
    assert unpack(memoryview(pack(value))) == value


def test_every_size_of_head() -> None:
    for number in NUMBERS:
        if -(2**63) <= number < 2**64:
            assert unpack(pack(number)) == number
    for size in SIZES:
        for value in ("x" * size, b"x" * size, [1] * size, {number: None for number in range(size)}):
            again = unpack(pack(value))
            assert again == value
            assert type(again) is type(value)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("ca3fc00000", 1.5), ("cb7ff0000000000000", math.inf), ("d0ff", -1), ("d1ffff", -1), ("d2ffffffff", -1),
        ("d3ffffffffffffffff", -1), ("cc01", 1), ("cd0001", 1), ("ce00000001", 1), ("cf0000000000000001", 1),
        ("d90161", "a"), ("da000161", "a"), ("db0000000161", "a"), ("c40161", b"a"), ("c5000161", b"a"),
        ("c60000000161", b"a"), ("dc000101", [1]), ("dd0000000101", [1]), ("de00010102", {1: 2}),
        ("df000000010102", {1: 2}), ("820102010a", {1: 10}), ("c0", None), ("c2", False), ("c3", True), ("ff", -1),
        ("7f", 127), ("e0", -32), ("80", {}), ("90", []), ("a0", ""),
    ],
)  # fmt: skip
def test_every_kind_of_head(data: str, value: Any) -> None:
    found = unpack(bytes.fromhex(data))
    assert found == value
    assert type(found) is type(value)


def test_times_and_other_extensions() -> None:
    pytest.importorskip("msgpack", reason="on CPython msgspec reads these, and msgpack is not installed")
    for data in ("d6ff00000001", "d7ff0000000000000001", "c70cff000000000000000000000001"):
        assert unpack(bytes.fromhex(data)) == datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)
    assert unpack(bytes.fromhex("d40561")) == unpack(bytes.fromhex("c7010561")) == (5, b"a")


REFUSED = [
    "", "c1", "a161ff", "a261", "d9", "d902", "da00", "dbffffffff61", "c4ff61", "dcffff01", "ddffffffff", "81", "8101",
    "dfffffffff01", "cb00", "cf01", "d1ff", "d6ff00", "c701", "c7ff05", "a1ff", "a3eda080", "910102", "91" * 9999,
]  # fmt: skip


@pytest.mark.parametrize("data", REFUSED, ids=lambda data: data[:20])
def test_damaged_bytes_are_a_decode_error(data: str) -> None:
    with pytest.raises((ValueError, IndexError, RecursionError, struct.error, ImportError)):
        unpack(bytes.fromhex(data))
    with pytest.raises(DecodeError):
        serializer(Any).decode(bytes.fromhex(data))


@given(st.binary(max_size=40), PLAIN, st.integers(0, 50), st.integers(0, 255))
@example(b"", {"a": [1]}, 3, 0xC7)
def test_changed_bytes_are_read_as_the_library_reads_them_or_not_at_all(
    noise: bytes, value: Any, position: int, byte: int
) -> None:
    data = bytearray(pack(value))
    data[position % len(data)] = byte
    for stored in (noise, bytes(data), bytes(data[:position])):
        if not any(code in stored for code in (*range(0xC7, 0xCA), *range(0xD4, 0xD9))):  # extensions differ in type
            agree(stored)


def agree(data: bytes) -> None:
    try:
        expected = expected_of(data)
    except Exception:  # each library has its own
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever comes is made a DecodeError
            unpack(data)
        return
    found: Any
    try:
        found = unpack(data)
    except TypeError as error:
        found = error
    # msgspec makes a tuple of a list that is a key, which we never write. As text, for NaN is not itself.
    assert "unhashable" in str(found) if isinstance(found, TypeError) else repr(found) == repr(expected)
