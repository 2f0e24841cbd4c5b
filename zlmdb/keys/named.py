"""The named key types, of which the 43 key types of the classic maps are made.

Each takes None for its zero value (0, the nil UUID, 1970, ``""``, zero bytes), which programs written for the classic
maps put into range bounds. It reads back as that value.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from functools import partial
from typing import Any, Callable, Optional
from uuid import UUID

from .base import Data, Inline, KeyCodec
from .plain import BYTES_LIKE, NO_BOOL, StrKey, random_int, side_of, whole_number
from .uuids import new_uuid, uuid_from_bytes

_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_MAX128 = 2**128 - 1


class UintKey(KeyCodec[int]):
    """A whole number from 0 to *maximum* in *width* bytes (1, 2, 4 or 8), most significant byte first.

    Anything with ``__index__`` is taken, numpy's integers included, except bool.
    """

    counts_from = 0
    takes_none = True

    def __init__(
        self, width: int, maximum: Optional[int] = None, name: Optional[str] = None, *, little: bool = False
    ) -> None:
        if width not in _FORMATS:
            raise ValueError(f"a UintKey has 1, 2, 4 or 8 bytes, not {width}")
        self.width = width
        self.maximum = 256**width - 1 if maximum is None else maximum
        self.name = name or f"uint{8 * width}" + ("-le" if little else "")
        self.sorts = not little
        self.expects = f"an int from 0 to {self.maximum}"
        self._format = ("<" if little else ">") + _FORMATS[width]
        if self.sorts and self.maximum == 256**width - 1:
            self.quick_check = NO_BOOL
        self._pack = struct.Struct(self._format).pack

    @property
    def leads_with_nul(self) -> bool:
        """Whether the first byte is 0 for every key: then it also ends a text in front of it."""
        return self.sorts and self.width is not None and self.width > 1 and self.maximum < 256 ** (self.width - 1)

    @property
    def examples(self) -> Sequence[int]:
        return sorted({0, 1, 2, 127, 128, 255, 256 % self.maximum, self.maximum // 2, self.maximum - 1, self.maximum})

    def encode(self, key: Optional[int]) -> bytes:
        if type(key) is int and 0 <= key <= self.maximum:
            return self._pack(key)
        return self._pack(0 if key is None else whole_number(self, key, 0, self.maximum))

    def side(self, key: Any) -> int:
        return side_of(key, 0, self.maximum)

    def decoder(self) -> Callable[[Data], int]:
        unpack, maximum = struct.Struct(self._format).unpack, self.maximum
        if maximum == 256 ** struct.calcsize(self._format) - 1:
            return lambda data: unpack(data)[0]

        def decode(data: Data) -> int:
            (number,) = unpack(data)
            return number if number <= maximum else _beyond(number, maximum)

        return decode

    def lookup(self, prefix: bytes = b"") -> Callable[[int], bytes]:
        if not prefix:
            return self._pack
        if len(prefix) == 2 and self.sorts:  # a slot's number: one call of C
            slot = int.from_bytes(prefix, "big")
            return partial(struct.Struct(">H" + self._format[1:]).pack, slot)
        return partial(struct.Struct(f"{self._format[0]}{len(prefix)}s{self._format[1:]}").pack, prefix)

    def lookup_source(self, prefix: bytes = b"") -> tuple[str, dict[str, Any]]:
        if len(prefix) != 2 or not self.sorts:
            return super().lookup_source(prefix)
        pack = struct.Struct(">H" + self._format[1:]).pack
        return f"pack({int.from_bytes(prefix, 'big')}, key)", {"pack": pack}

    def inline(self) -> Inline:
        if not self.sorts:
            return super().inline()
        check = f"type({{x}}) is int and {{x}} <= {self.maximum}"  # a negative one fails in struct
        if self.maximum == 256 ** struct.calcsize(self._format) - 1:
            return Inline(self._format[1:], check, "{x}", "{x}")
        unpack = f"({{x}} if {{x}} <= {self.maximum} else beyond({{x}}, {self.maximum}))"
        return Inline(self._format[1:], check, "{x}", unpack, {"beyond": _beyond})

    def new_key(self, last: Optional[int] = None) -> int:
        return random_int(16) % (self.maximum + 1) if last is None else whole_number(self, last + 1, 0, self.maximum)


class Uint128Key(KeyCodec[int]):
    """A whole number from 0 to 2**128 - 1 in 16 bytes, big-endian.

    Anything with ``__index__`` is taken, numpy's integers included, except bool.
    """

    name = "uint128"
    width = 16
    counts_from = 0
    takes_none = True
    expects = "an int from 0 to 2**128 - 1"

    @property
    def examples(self) -> Sequence[int]:
        return [0, 1, 255, 256, 2**63, 2**64 - 1, 2**64, 2**127 - 1, 2**127, 2**128 - 2, 2**128 - 1]

    def encode(self, key: Optional[int]) -> bytes:
        if type(key) is int and 0 <= key <= _MAX128:
            return key.to_bytes(16, "big")
        return (0 if key is None else whole_number(self, key, 0, _MAX128)).to_bytes(16, "big")

    def side(self, key: Any) -> int:
        return side_of(key, 0, _MAX128)

    def decoder(self) -> Callable[[Data], int]:
        return _uint128

    def inline(self) -> Inline:
        # A number out of range fails in to_bytes.
        names = {"uint128": _uint128}
        return Inline("16s", "type({x}) is int", "{x}.to_bytes(16, 'big')", "uint128({x})", names)

    def new_key(self, last: Optional[int] = None) -> int:
        return random_int(16) if last is None else whole_number(self, last + 1, 0, _MAX128)


def _uint128(data: Data) -> int:
    if len(data) != 16:
        raise ValueError(f"{len(data)} bytes instead of 16")
    return int.from_bytes(data, "big")


def _beyond(number: int, maximum: int) -> int:
    raise ValueError(f"{number} is greater than {maximum}")


class UuidKey(KeyCodec[UUID]):
    """A UUID as its 16 bytes. The plain type `uuid.UUID` means the same, without None."""

    name = "uuid"
    width = 16
    expects = "a uuid.UUID"
    made_of_text = "UUID(...)"

    def __init__(self, *, none: bool = True) -> None:
        self.takes_none = none

    @property
    def examples(self) -> Sequence[UUID]:
        return [UUID(int=number) for number in (0, 1, 1 << 64, (1 << 127) - 1, 1 << 127, (1 << 128) - 1)]

    def encode(self, key: Optional[UUID]) -> bytes:
        if key is None and self.takes_none:
            return bytes(16)
        if not isinstance(key, UUID):
            self.refuse(key)
        return key.int.to_bytes(16, "big")

    def decoder(self) -> Callable[[Data], UUID]:
        return uuid_from_bytes

    def lookup(self, prefix: bytes = b"") -> Callable[[UUID], bytes]:
        return lambda key: prefix + key.int.to_bytes(16, "big")

    def lookup_source(self, prefix: bytes = b"") -> tuple[str, dict[str, Any]]:
        return f"{prefix!r} + key.int.to_bytes(16, 'big')" if prefix else "key.int.to_bytes(16, 'big')", {}

    def inline(self) -> Inline:
        names = {"UUID": UUID, "uuid_from_bytes": uuid_from_bytes}
        return Inline("16s", "type({x}) is UUID", "{x}.int.to_bytes(16, 'big')", "uuid_from_bytes({x})", names)

    def new_key(self, last: Optional[UUID] = None) -> UUID:
        """A UUID of version 7, greater than those this process made before; *last* does not matter."""
        return new_uuid()


class StringKey(StrKey):
    """A text as UTF-8, which sorts by code point. As any part of a tuple but the last it takes no NUL.

    The *open* variant is how the classic layout stores a text in front of parts of fixed width: without a NUL at its
    end, so that texts with control characters in them are not in order.
    """

    name = "string"
    takes_none = True

    def __init__(self, *, open: bool = False) -> None:
        self.open = open
        if open:
            self.name = "string-open"

    @property
    def examples(self) -> Sequence[str]:
        return [text for text in super().examples if "\0" not in text]

    def encode(self, key: Optional[str]) -> bytes:
        return b"" if key is None else super().encode(key)

    def encode_before(self, key: Optional[str]) -> bytes:
        """`encode` for a part that others follow: a NUL in it would be taken for its end."""
        data = self.encode(key)
        if b"\0" in data:
            self.refuse(key, "a NUL inside a text that other parts follow")
        return data

    def ended(self, key: Optional[str]) -> bytes:
        """`encode_before`, for what has to tell this text from longer ones. Raises `EncodeError` where nothing does."""
        if self.open and key:  # a shorter text and the first bytes of what follows it could begin alike
            self.refuse(key, "the classic layout does not mark the end of this text: select a range, not a prefix")
        return self.encode_before(key)

    def new_key(self, last: Optional[str] = None) -> str:
        """A random text of 32 hexadecimal digits."""
        return os.urandom(16).hex()


class BytesKey(KeyCodec[bytes]):
    """Exactly *width* bytes, as they are. It begins with any shorter bytes. bytearray and memoryview are taken, too."""

    takes_none = True

    def __init__(self, width: int) -> None:
        if width < 1:
            raise ValueError(f"a BytesKey has 1 byte or more, not {width}")
        self.width: int = width  # pyright: ignore[reportIncompatibleVariableOverride]  # narrower, and never None here
        self.name = f"bytes{width}"
        self.expects = f"bytes of length {width}"

    @property
    def examples(self) -> Sequence[bytes]:
        end = self.width
        return sorted({bytes(end), bytes(end - 1) + b"\1", b"\1" * end, b"\x7f" * end, b"\x80" * end, b"\xff" * end})

    def encode(self, key: Optional[bytes]) -> bytes:
        if key is None:
            return bytes(self.width)
        if not isinstance(key, BYTES_LIKE):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all checked
            self.refuse(key)
        data = bytes(key)
        if len(data) != self.width:
            self.refuse(key, f"it has {len(data)} bytes")
        return data

    def decoder(self) -> Callable[[Data], bytes]:
        unpack = struct.Struct(f"{self.width}s").unpack
        return lambda data: unpack(data)[0]

    def beginning(self, start: bytes) -> bytes:
        if isinstance(start, BYTES_LIKE):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all checked
            data = bytes(start)
            if len(data) <= self.width:
                return data
        return self.encode(start)

    def lookup(self, prefix: bytes = b"") -> Callable[[bytes], bytes]:
        width, encode = self.width, self.encode
        return lambda key: prefix + (key if type(key) is bytes and len(key) == width else encode(key))

    def inline(self) -> Inline:
        return Inline(f"{self.width}s", f"type({{x}}) is bytes and len({{x}}) == {self.width}", "{x}", "{x}")

    def new_key(self, last: Optional[bytes] = None) -> bytes:
        """Random bytes."""
        return os.urandom(self.width)
