"""Zstandard (RFC 8878), by the module of Python 3.14 or the zstandard package: one frame a value."""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional

from .base import Data, library

Compress = Callable[[Data], bytes]
Decompress = Callable[[Data, int], bytes]
"""Gets the data and the greatest number of bytes that may come out."""

DEFAULT_LEVEL = 3

_DENSEST = 128 << 10 >> 2
"""Bytes that one byte of a frame can become: a block of 4 bytes repeats one byte 128 KiB times."""


def zstd_functions(level: Optional[int]) -> tuple[Compress, Decompress]:
    """Compression at *level* (negative to 22; None: 3) and decompression. Raises ImportError."""
    level = DEFAULT_LEVEL if level is None else level
    try:
        return _of_python(library("compression.zstd", "zstandard"), level)
    except ImportError:
        return _of_package(library("zstandard", "zstandard"), level)


def _of_python(zstd: Any, level: int) -> tuple[Compress, Decompress]:
    def decompress(data: Data, limit: int) -> bytes:
        one = zstd.ZstdDecompressor()  # whatever size a frame claims, it takes what really comes out
        found = one.decompress(data, limit + 1)
        if len(found) > limit:
            raise too_large(limit)
        return whole(found, one.eof, one.unused_data)

    # A compressor keeps the tables it works with: making one takes ten times as long as a small value.
    kept = _Kept(lambda: zstd.ZstdCompressor(level))
    return lambda data: bytes(kept.one.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)), decompress


def _of_package(zstandard: Any, level: int) -> tuple[Compress, Decompress]:
    compressor = _Kept(lambda: zstandard.ZstdCompressor(level=level))
    decompressor = _Kept(zstandard.ZstdDecompressor)

    def decompress(data: Data, limit: int) -> bytes:
        one = decompressor.one.decompressobj()
        piece = max(limit // _DENSEST, 1)
        if len(data) <= piece:
            found = one.decompress(data)
        else:  # so that no more than twice the limit comes out before it is noticed
            parts: list[bytes] = []
            start = size = 0
            for start in range(0, len(data), piece):
                if one.eof or size > limit:
                    break
                parts.append(one.decompress(data[start : start + piece]))
                size += len(parts[-1])
            found = b"".join(parts)
            if one.eof and start + piece < len(data):
                raise ValueError(f"{len(data) - start - piece} bytes after the end of the compressed data")
        if len(found) > limit:
            raise too_large(limit)
        return whole(found, one.eof, one.unused_data)

    return lambda data: bytes(compressor.one.compress(data)), decompress


class _Kept(threading.local):
    """Something made once in each thread, which must not be shared by two."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.one = make()


def whole(data: bytes, ended: bool, rest: bytes) -> bytes:
    """*data*, if the frame that it came from has ended with nothing after it."""
    if not ended:
        raise ValueError("the compressed data is cut off")
    if rest:
        raise ValueError(f"{len(rest)} bytes after the end of the compressed data")
    return data


def too_large(limit: int) -> ValueError:
    """The error for a value of more than *limit* bytes."""
    return ValueError(
        f"a value of more than {limit} bytes before it is compressed: if that is meant, allow more by "
        "Annotated[..., DecompressionLimit(bytes)]"
    )
