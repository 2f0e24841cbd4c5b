"""A wrapper that adds a checksum to what another serializer writes: ``Checked[Cbor[User]]``."""

from __future__ import annotations

from typing import Any, TypeVar
from zlib import crc32

from .base import Data, InnerSerializer, Serializer, Wrapper

T = TypeVar("T")

WIDTH = 4
"""Bytes that the checksum takes."""


class CheckedSerializer(InnerSerializer[T], Wrapper):
    """The bytes of *inner*, followed by their CRC-32 (that of zlib and RFC 1952), 4 bytes, most significant first.

    LMDB 0.9 has no checksums: a bit that flips in a value on the disk is read as another value, or as none, if the
    format happens to notice. This raises `DecodeError` for every change of up to 32 consecutive bits, and for all
    but one in 4,294,967,296 of the others, before the inner format sees the bytes. It is no protection against people.
    """

    def __init__(self, inner: Serializer[T]) -> None:
        encode, decode = inner.raw_encode, inner.raw_decode

        def encode_checked(value: T) -> bytes:
            data = encode(value)
            return data + crc32(data).to_bytes(WIDTH, "big")

        super().__init__("checked", inner, encode_checked, lambda data: decode(verified(data)))

    @classmethod
    def around(cls, inner: Serializer[Any]) -> Serializer[Any]:
        """*inner*, with a checksum."""
        return cls(inner)

    def _around(self, inner: Serializer[Any]) -> Serializer[Any]:
        return type(self)(inner)


def verified(data: Data) -> Data:
    """*data* without its checksum. Raises ValueError when that is not theirs."""
    body = data[:-WIDTH]
    if len(data) < WIDTH or crc32(body) != int.from_bytes(data[-WIDTH:], "big"):
        raise ValueError("the checksum does not match: the bytes have changed since they were stored")
    return body
