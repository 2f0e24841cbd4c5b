"""Zstandard (RFC 8878), by the module of Python 3.14 or the zstandard package: one frame a value."""

from __future__ import annotations

import threading
from typing import Any, Callable, Optional

from .base import Data, library

Compress = Callable[[Data], bytes]
Decompress = Callable[[Data], bytes]

DEFAULT_LEVEL = 3


def zstd_functions(level: Optional[int] = None) -> tuple[Compress, Decompress]:
    """Compression at *level* (negative to 22; None: 3) and decompression. Raises ImportError."""
    level = DEFAULT_LEVEL if level is None else level
    try:
        return _of_python(library("compression.zstd", "zstandard"), level)
    except ImportError:
        return _of_package(library("zstandard", "zstandard"), level)


def _of_python(zstd: Any, level: int) -> tuple[Compress, Decompress]:
    def decompress(data: Data) -> bytes:
        one = zstd.ZstdDecompressor()  # whatever size a frame claims, it takes what really comes out
        return whole(one.decompress(data), one.eof, one.unused_data)

    # A compressor keeps the tables it works with: making one takes ten times as long as a small value.
    kept = _Kept(lambda: zstd.ZstdCompressor(level))
    return lambda data: bytes(kept.one.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)), decompress


def _of_package(zstandard: Any, level: int) -> tuple[Compress, Decompress]:
    compressor = _Kept(lambda: zstandard.ZstdCompressor(level=level))
    decompressor = _Kept(zstandard.ZstdDecompressor)

    def decompress(data: Data) -> bytes:
        one = decompressor.one.decompressobj()
        return whole(one.decompress(data), one.eof, one.unused_data)

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
