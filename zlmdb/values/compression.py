"""Wrappers that compress the bytes of another serializer: ``Zlib[Json[User]]``, ``Compressed[Json[User]]``.

`Zlib`, `Snappy` and `Zstd` store each value as one stream of that method. `Compressed` stores small values, and those
that do not shrink, uncompressed: the first byte of each value names the method.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import Any, Callable, ClassVar, Literal, Optional, TypeVar

from .base import Data, InnerSerializer, Serializer, Wrapper, WrapperOptions, library
from .zstd import too_large, whole, zstd_functions

Functions = tuple[Callable[[bytes], bytes], Callable[[Data, int], bytes]]
"""Compression; and decompression, which gets the greatest number of bytes that may come out, too."""

Method = Literal["zlib", "snappy", "zstd"]

T = TypeVar("T")

ZLIB = 1
"""The classic ``PersistentMap.COMPRESS_ZLIB``."""

SNAPPY = 2
"""The classic ``PersistentMap.COMPRESS_SNAPPY``."""

LIMIT = 256 << 20
"""The bytes that one compressed value may have before it is compressed, unless `DecompressionLimit` says otherwise."""


class CompressedSerializer(InnerSerializer[T], Wrapper):
    """The bytes of *inner*, compressed. A subclass names the method."""

    method: ClassVar[Method]

    def __init__(self, inner: Serializer[T], limit: int = LIMIT) -> None:
        """*limit*: the size of a value before compression, in bytes. Larger values are refused and not read."""
        self.limit = limit
        compress, decompress = _functions(self.method)
        encode, decode = inner.raw_encode, inner.raw_decode
        super().__init__(
            self.method,
            inner,
            lambda value: compress(at_most(limit, encode(value))),
            lambda data: decode(decompress(data, limit)),
        )

    @classmethod
    def around(cls, inner: Serializer[Any]) -> Serializer[Any]:
        """*inner*, compressed."""
        return cls(inner)

    def _around(self, inner: Serializer[Any]) -> Serializer[Any]:
        return type(self)(inner, self.limit)

    def limited(self, limit: int) -> Serializer[T]:
        """A copy with this limit."""
        return type(self)(self.inner, limit)


def at_most(limit: int, data: bytes) -> bytes:
    """*data*, unless it is larger than *limit* bytes."""
    if len(data) > limit:
        raise too_large(limit)
    return data


def inflated(data: Data, limit: int) -> bytes:
    """The content of *data*, one zlib stream. Raises `zlib.error` or ValueError for anything else, or for too much.

    `zlib.decompress` allows any bytes after a stream; checking for them takes a tenth of a microsecond.
    """
    stream = zlib.decompressobj()
    found = at_most(limit, stream.decompress(data, limit + 1))
    return whole(found, stream.eof, stream.unused_data)


class ZlibSerializer(CompressedSerializer[T]):
    """Compressed by zlib (RFC 1950) at its default level."""

    method = "zlib"


class SnappySerializer(CompressedSerializer[T]):
    """Compressed by snappy, as raw blocks: less than zlib, and several times faster. Needs python-snappy or cramjam."""

    method = "snappy"


class ZstdSerializer(CompressedSerializer[T]):
    """Compressed by Zstandard (RFC 8878) at level 3: smaller than zlib, and several times faster.

    Needs Python 3.14, or the zstandard package.
    """

    method = "zstd"


def _snappy_functions() -> Functions:
    """Those of cramjam, on which python-snappy stands, or of an older python-snappy. Raises ImportError."""
    try:
        cramjam = library("cramjam", "python-snappy").snappy
    except ImportError:
        snappy = library("snappy", "python-snappy")
        return snappy.compress, lambda data, limit: snappy.decompress(bytes(believable(data, limit)))
    return (
        lambda data: bytes(cramjam.compress_raw(data)),
        lambda data, limit: bytes(cramjam.decompress_raw(believable(data, limit))),
    )


def believable(data: Data, limit: int) -> Data:
    """*data*, unless it claims to contain more than *limit* bytes, or more than snappy can compress into its size.

    The libraries trust the claim, and reserve up to 4 GiB for it. It is a varint at the start; the densest part of a
    block is a copy of 64 bytes, which takes 3. https://github.com/google/snappy/blob/main/format_description.txt
    """
    claimed = 0
    for position, byte in enumerate(data[:5]):
        claimed |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            break
    if claimed > 64 * len(data):
        raise ValueError(f"{len(data)} bytes that claim to be {claimed} compressed ones")
    if claimed > limit:
        raise too_large(limit)
    return data


class Compression(WrapperOptions):
    """Compresses values that shrink: ``Annotated[Json[User], Compression("zstd", threshold=256)]``.

    Values of fewer than *threshold* bytes, and those that would not become smaller, are stored uncompressed, after one
    byte. That byte names the method of each record, so method, threshold and *level* may change at any time, and older
    records can still be read. *level* is that of zlib (0 to 9, its default is 6) or zstd (negative to 22, its default
    is 3); snappy has none. *limit* is the size in bytes that a value may have before compression: a larger one is
    refused, also in reading, so that a few bytes of a hostile file cannot fill the memory. It is 256 MiB by default.
    ``Compressed[T]`` is ``Annotated[T, Compression()]``.

    Raises ValueError for an unknown method; a missing library raises ImportError when the map is created.
    """

    def __init__(
        self, method: Method = "zlib", *, threshold: int = 64, level: Optional[int] = None, limit: int = LIMIT
    ) -> None:
        if method not in _MARKS:
            raise ValueError(f"method={method!r}: expected one of {', '.join(map(repr, _MARKS))}")
        if threshold < 0:
            raise ValueError(f"threshold={threshold}: expected a number of bytes, 0 or more")
        if method == "snappy" and level is not None:
            raise ValueError(f"level={level}: snappy has no levels; leave it out")
        self.method: Method = method
        self.threshold = threshold
        self.level = level
        self.limit = limit

    def around(self, inner: Serializer[Any]) -> Serializer[Any]:
        """*inner*, with compression."""
        return MixedSerializer(inner, self)


class DecompressionLimit(WrapperOptions):
    """Another limit than 256 MiB for compressed values: ``Annotated[Zlib[Json[User]], DecompressionLimit(1 << 30)]``.

    It is the size that a value of ``Zlib``, ``Snappy``, ``Zstd`` or ``Compressed`` may have before compression.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def around(self, inner: Serializer[Any]) -> Serializer[Any]:
        """*inner* with this limit. Raises TypeError if *inner* does not compress."""
        if not isinstance(inner, (CompressedSerializer, MixedSerializer)):
            raise TypeError(f"DecompressionLimit around {inner.name}, which is not compressed: put it around Zlib[...]")
        return inner.limited(self.limit)


class MixedSerializer(InnerSerializer[T]):
    """The bytes of *inner*, each value compressed or not as *options* say; see `Compression`."""

    def __init__(self, inner: Serializer[T], options: Compression) -> None:
        """Raises ImportError if the library of the method is not installed."""
        self.options = options
        super().__init__("compressed", inner, _mixed_encode(inner, options), _mixed_decode(inner, options.limit))

    def _around(self, inner: Serializer[Any]) -> Serializer[Any]:
        return MixedSerializer(inner, self.options)

    def limited(self, limit: int) -> Serializer[T]:
        """A copy with this limit."""
        one = self.options
        return MixedSerializer(
            self.inner, Compression(one.method, threshold=one.threshold, level=one.level, limit=limit)
        )


def _mixed_encode(inner: Serializer[Any], options: Compression) -> Callable[[Any], bytes]:
    compress, _ = _functions(options.method, options.level)
    mark, encode_inner, threshold = _MARKS[options.method], inner.raw_encode, options.threshold
    limit = options.limit

    def encode(value: Any) -> bytes:
        data = encode_inner(value)
        if len(data) >= threshold:
            smaller = compress(at_most(limit, data))
            if len(smaller) < len(data):
                return mark + smaller
        return _PLAIN + data

    return encode


def _mixed_decode(inner: Serializer[Any], limit: int) -> Callable[[Data], Any]:
    decode_inner = inner.raw_decode
    # A library that only old records need is loaded when the first of them comes.
    known: dict[bytes, Callable[[Data, int], Data]] = {_PLAIN: lambda data, limit: data}

    def decode(data: Data) -> Any:
        mark = bytes(data[:1])
        decompress = known.get(mark)
        if decompress is None:
            if mark not in _MARKED:
                raise ValueError(f"the first byte names no compression method ({mark.hex()})")
            decompress = known[mark] = _functions(_MARKED[mark])[1]
        return decode_inner(decompress(data[1:], limit))

    return decode


def _functions(method: Method, level: Optional[int] = None) -> Functions:
    """Compression at *level*, and decompression. Raises ImportError if the library of *method* is not installed."""
    if method == "zlib":
        return zlib.compress if level is None else partial(zlib.compress, level=level), inflated
    return zstd_functions(level) if method == "zstd" else _snappy_functions()


_PLAIN = b"\0"
_MARKS: dict[Method, bytes] = {"zlib": bytes([ZLIB]), "snappy": bytes([SNAPPY]), "zstd": b"\3"}
_MARKED: dict[bytes, Method] = {mark: method for method, mark in _MARKS.items()}

_CLASSIC: dict[int, type[CompressedSerializer[Any]]] = {ZLIB: ZlibSerializer, SNAPPY: SnappySerializer}

METHODS: dict[str, Callable[[Serializer[Any]], Serializer[Any]]] = {
    **{one.method: one for one in (ZlibSerializer, SnappySerializer, ZstdSerializer)},
    "compressed": Compression().around,
}
"""The wrappers by what their names begin with."""


def compressed(inner: Serializer[T], kind: Optional[int]) -> Serializer[T]:
    """*inner*, compressed by the classic constant *kind*: 1 zlib, 2 snappy, None or 0 not compressed."""
    if kind is None or kind == 0:
        return inner
    if kind not in _CLASSIC:
        raise ValueError(f"compress={kind!r}: expected COMPRESS_ZLIB (1), COMPRESS_SNAPPY (2) or None")
    return _CLASSIC[kind](inner)
