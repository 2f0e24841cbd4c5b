"""Wrappers that compress what another serializer writes: ``Zlib[Json[User]]``."""

from __future__ import annotations

import zlib
from typing import Any, Callable, ClassVar, Optional, TypeVar

from .base import Data, FunctionSerializer, Serializer, Wrapper, library

T = TypeVar("T")

ZLIB = 1
"""The classic ``PersistentMap.COMPRESS_ZLIB``."""

SNAPPY = 2
"""The classic ``PersistentMap.COMPRESS_SNAPPY``."""


class CompressedSerializer(FunctionSerializer[T], Wrapper):
    """The bytes of *inner*, compressed. A subclass names the method and gives the two functions."""

    method: ClassVar[str]

    def __init__(self, inner: Serializer[T]) -> None:
        self.inner = inner
        compress, decompress = self.functions()
        encode, decode = inner.raw_encode, inner.raw_decode
        super().__init__(
            f"{self.method}({inner.name})",
            lambda value: compress(encode(value)),
            lambda data: decode(decompress(data)),
            model=inner.model,
            examples=inner.examples,
        )
        self.expects = inner.expects

    @classmethod
    def functions(cls) -> tuple[Callable[[bytes], bytes], Callable[[Data], bytes]]:
        """Compression and decompression."""
        raise NotImplementedError

    @classmethod
    def around(cls, inner: Serializer[Any]) -> Serializer[Any]:
        """*inner*, compressed."""
        return cls(inner)

    @classmethod
    def for_type(cls, annotation: Any, **options: Any) -> Serializer[Any]:
        """Not by itself: say what is compressed."""
        raise TypeError(f"{cls.__name__} compresses another serializer: write Zlib[Json[T]], for one")

    def configured(
        self,
        marshal: Optional[Callable[[Any], Any]] = None,
        unmarshal: Optional[Callable[[Any], Any]] = None,
        build: Optional[Callable[[Any, Any], int]] = None,
        cast: Optional[Callable[[Any], Any]] = None,
    ) -> Serializer[Any]:
        """A copy whose inner serializer has these callables."""
        return type(self)(self.inner.configured(marshal, unmarshal, build, cast))

    def unchecked(self) -> Serializer[T]:
        """A copy whose inner serializer is unchecked."""
        return type(self)(self.inner.unchecked())


class ZlibSerializer(CompressedSerializer[T]):
    """Compressed by zlib (RFC 1950) at its default level."""

    method = "zlib"

    @classmethod
    def functions(cls) -> tuple[Callable[[bytes], bytes], Callable[[Data], bytes]]:
        """Those of the standard library."""
        return zlib.compress, zlib.decompress


class SnappySerializer(CompressedSerializer[T]):
    """Compressed by snappy, as raw blocks: less than zlib, and several times faster. Needs python-snappy or cramjam."""

    method = "snappy"

    @classmethod
    def functions(cls) -> tuple[Callable[[bytes], bytes], Callable[[Data], bytes]]:
        """Those of cramjam, on which python-snappy stands, or of an older python-snappy. Raises ImportError."""
        try:
            snappy = library("cramjam", "python-snappy").snappy
        except ImportError:
            return _python_snappy()
        return (
            lambda data: bytes(snappy.compress_raw(data)),
            lambda data: bytes(snappy.decompress_raw(believable(data))),
        )


def _python_snappy() -> tuple[Callable[[bytes], bytes], Callable[[Data], bytes]]:
    snappy = library("snappy", "python-snappy")
    return snappy.compress, lambda data: snappy.decompress(bytes(believable(data)))


def believable(data: Data) -> Data:
    """*data*, unless it claims to be the compressed form of more bytes than snappy can put into so few.

    The libraries believe the claim, and reserve up to 4 GiB for it. It is a varint at the start; the densest part of a
    block is a copy of 64 bytes, which takes 3.
    https://github.com/google/snappy/blob/main/format_description.txt
    """
    claimed = 0
    for position, byte in enumerate(data[:5]):
        claimed |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            break
    if claimed > 64 * len(data):
        raise ValueError(f"{len(data)} bytes that claim to be {claimed} compressed ones")
    return data


_CLASSIC: dict[int, type[CompressedSerializer[Any]]] = {ZLIB: ZlibSerializer, SNAPPY: SnappySerializer}

METHODS: dict[str, type[CompressedSerializer[Any]]] = {one.method: one for one in _CLASSIC.values()}
"""The wrappers by the names of their methods."""


def compressed(inner: Serializer[T], kind: Optional[int]) -> Serializer[T]:
    """*inner*, compressed as the classic constant *kind* says: 1 zlib, 2 snappy, None or 0 not at all."""
    if kind is None or kind == 0:
        return inner
    if kind not in _CLASSIC:
        raise ValueError(f"compress={kind!r}: expected COMPRESS_ZLIB (1), COMPRESS_SNAPPY (2) or None")
    return _CLASSIC[kind](inner)
