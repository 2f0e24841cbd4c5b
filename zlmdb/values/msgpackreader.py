"""MessagePack to plain data where there is no msgspec (PyPy), in a third of the time of the msgpack package there.

https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Callable

from .base import Data, library

Read = Callable[[bytes, int], "tuple[Any, int]"]
"""What reads an item at a position (behind its first byte), and gives it with the position behind it."""


_double = Struct(">d").unpack_from
_uint64 = Struct(">Q").unpack_from
_code = Struct(">b").unpack_from


def unpack(data: Data) -> Any:
    """The plain data of MessagePack; times are in UTC. Raises for what is none, and for bytes that are left over."""
    whole = bytes(data)
    value, end = _item(whole, 0)
    if end != len(whole):
        raise ValueError(f"{len(whole) - end} bytes after the end")
    return value


def _item(data: bytes, at: int) -> tuple[Any, int]:
    code = data[at]
    at += 1
    if code < 0x80:
        return code, at
    if code < 0x90:
        return _map(data, at, code - 0x80)
    if code < 0xA0:
        return _array(data, at, code - 0x90)
    if code < 0xC0:
        return _text(data, at, code - 0xA0)
    if code >= 0xE0:
        return code - 0x100, at
    if code == 0xCB:  # what is common is spelled out
        return _double(data, at)[0], at + 8
    if code == 0xCF:
        return _uint64(data, at)[0], at + 8
    return _READ[code - 0xC0](data, at)


def _map(data: bytes, at: int, size: int) -> tuple[Any, int]:
    found: dict[Any, Any] = {}
    for _ in range(size):
        key, at = _item(data, at)
        found[key], at = _item(data, at)
    return found, at


def _array(data: bytes, at: int, size: int) -> tuple[Any, int]:
    found: list[Any] = []
    for _ in range(size):
        item, at = _item(data, at)
        found.append(item)
    return found, at


def _binary(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    end = at + size
    if end > len(data):
        raise ValueError(f"{size} bytes of which {end - len(data)} are missing")
    return data[at:end], end


def _text(data: bytes, at: int, size: int) -> tuple[Any, int]:
    found, end = _binary(data, at, size)
    return found.decode(), end  # str(found, "utf-8") takes surrogates on PyPy


def _extension(data: bytes, at: int, size: int) -> tuple[Any, int]:
    msgpack = library("msgpack", "msgpack")
    found, end = _binary(data, at + 1, size)
    code: int = _code(data, at)[0]
    return msgpack.Timestamp.from_bytes(found).to_datetime() if code == -1 else msgpack.ExtType(code, found), end


def _number(layout: str) -> Read:
    struct = Struct(layout)
    unpack_from, width = struct.unpack_from, struct.size
    return lambda data, at: (unpack_from(data, at)[0], at + width)


def _sized(layout: str, read: Callable[[bytes, int, int], tuple[Any, int]]) -> Read:
    size_of = _number(layout)

    def read_sized(data: bytes, at: int) -> tuple[Any, int]:
        size, at = size_of(data, at)
        return read(data, at, size)

    return read_sized


def _constant(value: Any) -> Read:
    return lambda data, at: (value, at)


def _of_size(size: int) -> Read:
    return lambda data, at: _extension(data, at, size)


def _never(data: bytes, at: int) -> tuple[Any, int]:
    raise ValueError("an invalid first byte")


_READ: tuple[Read, ...] = (
    _constant(None), _never, _constant(False), _constant(True),
    *[_sized(layout, _binary) for layout in (">B", ">H", ">I")],
    *[_sized(layout, _extension) for layout in (">B", ">H", ">I")],
    *map(_number, (">f", ">d", ">B", ">H", ">I", ">Q", ">b", ">h", ">i", ">q")),
    *map(_of_size, (1, 2, 4, 8, 16)),
    *[_sized(layout, _text) for layout in (">B", ">H", ">I")],
    *[_sized(layout, _array) for layout in (">H", ">I")],
    *[_sized(layout, _map) for layout in (">H", ">I")],
)  # fmt: skip
"""How to read what begins with 0xC0 to 0xDF, in this order."""
