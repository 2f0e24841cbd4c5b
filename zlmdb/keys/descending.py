"""Keys that sort the other way round: parts of an index that are declared with `desc`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from .base import Data, KeyCodec, escape, unescape

_COMPLEMENT = bytes(255 - number for number in range(256))


class DescendingKey(KeyCodec[Any]):
    """The keys of *inner*, the greatest first: each byte of their encoding is replaced by its complement.

    One of any length is ended before, as a text in a tuple is: no encoding begins with another one, so that the
    complements sort in the reverse order. So it needs no end of its own in a tuple.
    """

    def __init__(self, inner: KeyCodec[Any]) -> None:
        self.inner = inner
        self.name = f"desc({inner.name})"
        self.width = inner.width
        self.sorts = inner.sorts
        self.expects = inner.expects

    @property
    def examples(self) -> Sequence[Any]:
        return list(reversed(self.inner.examples))

    def encode(self, key: Any) -> bytes:
        data = self.inner.encode(key)
        return (data if self.width is not None else escape(data) + b"\0\0").translate(_COMPLEMENT)

    def decoder(self) -> Callable[[Data], Any]:
        decode = self.inner.raw_decode
        if self.width is not None:
            return lambda data: decode(bytes(data).translate(_COMPLEMENT))

        def read(data: Data) -> Any:
            plain = bytes(data).translate(_COMPLEMENT)
            part, end = unescape(plain, 0)
            if end != len(plain):
                raise ValueError("there is more behind its end")
            return decode(part)

        return read

    def side(self, key: Any) -> int:
        return -self.inner.side(key)

    def beginning(self, start: Any) -> bytes:
        data = self.inner.beginning(start)
        return (data if self.width is not None else escape(data)).translate(_COMPLEMENT)

    def classic(self) -> KeyCodec[Any]:
        return DescendingKey(self.inner.classic())


def split_descending(data: bytes, at: int) -> tuple[bytes, int]:
    """The encoding of a `DescendingKey` of any length in *data* from *at* on, and where the next part begins."""
    end = data.index(b"\xff\xff", at) + 2
    return data[at:end], end
