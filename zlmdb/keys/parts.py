"""How each part of a tuple key is written, by what it is and what follows it.

A `Part` says it twice: as functions for the checked path, which has the error messages, and as lines of Python, from
which `generate` makes the hot path. In both, nothing that one part writes can begin with what another key writes there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

from ..errors import EncodeError
from .base import TOP, Inline, KeyCodec, escape, unescape
from .descending import DescendingKey, split_descending
from .named import StringKey, UintKey

Key = KeyCodec[Any]


class Part:
    """One part of a tuple key in its place. This base is the form that suffices for a fixed width."""

    def __init__(self, codec: Key) -> None:
        self.codec = codec
        self.width = codec.width

    def encode(self, key: Any) -> bytes:
        """The bytes of the part, all of it checked."""
        return self.codec.encode(key)

    def encode_only(self, key: Any) -> bytes:
        """The bytes of the part where it is the last one given in a prefix: those that end it included."""
        return self.encode(key)

    def only(self) -> Callable[[Any], bytes]:
        """What does as `encode_only`, in one call where that has nothing of its own."""
        own = type(self)
        plain = own.encode_only is Part.encode_only and own.encode is Part.encode
        return self.codec.encode if plain else self.encode_only

    def beyond(self, key: Any, error: EncodeError) -> bytes:
        """What follows the parts before in a bound whose part *key* is no key, see `KeyCodec.beyond`."""
        return self.codec.beyond(key, error)

    def beginning(self, start: Any) -> bytes:
        """The bytes with which exactly those parts begin that begin with *start*."""
        return self.codec.beginning(start)

    def inline(self) -> Inline:
        """The expressions of the part; *pack* with what ends it."""
        return self.codec.inline()

    def read(self) -> str:
        """A line that puts a part without a fixed width, whose bytes begin at ``{at}``, into ``{x}``; at is its end."""
        raise NotImplementedError


class LastPart(Part):
    """A text, or anything of any length, in the last place: it ends where the key ends."""

    def read(self) -> str:
        return "{x} = data[{at}:]"


class EscapedPart(Part):
    """Of any length, with more parts behind it: NUL as ``00 01``, ended by ``00 00``. Every text and bytes fits."""

    def encode(self, key: Any) -> bytes:
        return escape(self.codec.encode(key)) + b"\0\0"

    def beginning(self, start: Any) -> bytes:
        return escape(self.codec.beginning(start))

    def inline(self) -> Inline:
        inline = self.codec.inline()
        names = {**inline.names, "escape": escape, "unescape": unescape}
        return inline._replace(pack=f"escape({inline.pack}) + b'\\0\\0'", names=names)

    def read(self) -> str:
        return "{x}, at = unescape(data, {at})"


class DescendingPart(Part):
    """Of any length and the other way round: it has an end in itself."""

    def inline(self) -> Inline:
        inline = self.codec.inline()
        return inline._replace(names={**inline.names, "split_descending": split_descending})

    def read(self) -> str:
        return "{x}, at = split_descending(data, {at})"


class TextPart(Part):
    """A named string with more parts behind it: ended by a NUL, and with none inside.

    In front of a number whose first byte is 0 for every key (an Oid) that byte is its end, as in the classic layout.
    """

    def __init__(self, codec: StringKey, following: Key) -> None:
        super().__init__(codec)
        self.text = codec
        self.end = b"" if isinstance(following, UintKey) and following.leads_with_nul else b"\0"

    def encode(self, key: Any) -> bytes:
        return self.text.encode_before(key) + self.end

    def encode_only(self, key: Any) -> bytes:
        return self.text.encode_before(key) + b"\0"

    def beyond(self, key: Any, error: EncodeError) -> bytes:
        """After the text up to its first NUL, which no text here has, and before all longer ones."""
        whole, nul, _ = self.text.encode(key).partition(b"\0")
        return whole + nul + TOP

    def beginning(self, start: Any) -> bytes:
        return self.text.encode_before(start)

    def inline(self) -> Inline:
        check = r'type({x}) is str and "\0" not in {x}'
        pack = "{x}.encode()" + (r" + b'\0'" if self.end else "")
        return self.codec.inline()._replace(check=check, pack=pack)

    def read(self) -> str:
        return f"end = data.index(0, {{at}}); {{x}} = data[{{at}}:end]; at = end + {len(self.end)}"


class OpenTextPart(Part):
    """A text of the classic layout that nothing ends: the parts behind it have a fixed width, *tail* in all."""

    def __init__(self, codec: StringKey, tail: int) -> None:
        super().__init__(codec)
        self.text = codec
        self.tail = tail

    def encode(self, key: Any) -> bytes:
        return self.text.encode_before(key)

    def encode_only(self, key: Any) -> bytes:
        return self.text.ended(key)

    def beginning(self, start: Any) -> bytes:
        return self.text.ended(start)

    def inline(self) -> Inline:
        inline = self.codec.inline()
        check = r'type({x}) is str and "\0" not in {x}'
        return inline._replace(check=check, unpack="open_text({x})", names={**inline.names, "open_text": _open_text})

    def read(self) -> str:
        return f"end = len(data) - {self.tail}; {{x}} = data[{{at}}:end]; at = max({{at}}, end)"


def _open_text(data: bytes) -> str:
    if b"\0" in data:
        raise ValueError("a NUL in a text that other parts follow")
    return bytes(data).decode()  # str(data, "utf-8") takes lone surrogates on PyPy


def part_of(codec: Key, behind: Sequence[Key]) -> Part:
    """The form of *codec* in a tuple where *behind* follows."""
    if codec.width is not None:
        return Part(codec)
    if isinstance(codec, DescendingKey):
        return DescendingPart(codec)
    if not behind:
        return LastPart(codec)
    if isinstance(codec, StringKey):
        if not codec.open:
            return TextPart(codec, behind[0])
        tail = _total([after.width for after in behind])
        if tail is None:
            raise TypeError(f"{codec.name} needs parts of fixed width after it")
        return OpenTextPart(codec, tail)
    return EscapedPart(codec)


def _total(widths: Sequence[Optional[int]]) -> Optional[int]:
    known = [width for width in widths if width is not None]
    return sum(known) if len(known) == len(widths) else None
