"""Functions that generated code calls, and the names that templates use."""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Callable, NoReturn
from uuid import UUID

from ...keys.uuids import uuid_from_bytes
from ..depth import DEPTH
from .markers import BOOL, FLOATS, INTEGERS

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)
SHARING = 8
"""How many times its own size a buffer may spell out to, by referring to the same position again and again."""

SLACK = 1 << 16
"""What small buffers may spell out to besides, in bytes."""


class Misfit(ValueError):
    """A value that does not fit; the text is made afterwards, see `Schema.misfit`."""


MOST = (1 << 31) - 1
"""The bytes that a value may have: readers in other languages have signed offsets, and take no more."""


def too_long(data: bytes) -> NoReturn:
    """Refuse a value that other readers could not read."""
    raise Misfit(f"the value has {len(data)} bytes, and FlatBuffers have up to {MOST}: store it in parts, or as a file")


class Corrupt(ValueError):
    """Bytes that are no FlatBuffers of the schema."""


# Scalars that are more than a number


def exact(value: Any) -> bool:
    """Whether *value* is an int that a float holds exactly."""
    return type(value) is int and float(value) == value


def is_aware(value: datetime) -> bool:
    """Whether *value* says what its offset from UTC is, and has a year from 1 to 9999 there."""
    return value.utcoffset() is not None and (1 < value.year < 9999 or bool(value.astimezone(timezone.utc)))


def micros(value: timedelta) -> int:
    """Microseconds."""
    return (value.days * 86400 + value.seconds) * 1000000 + value.microseconds


DURATION = "($ * MICROSECOND)"
"""The expression of a number of microseconds. ``timedelta(0, 0, $)`` takes thrice as long: it adds and divides ints."""

INSTANT = f"(EPOCH + {DURATION})"
"""The expression of the time a number of microseconds after 1970."""


def day_micros(value: time) -> int:
    """Microseconds since midnight."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000000 + value.microsecond


def day_time(number: int) -> time:
    """The time *number* microseconds after midnight."""
    seconds, fraction = divmod(number, 1000000)
    minutes, second = divmod(seconds, 60)
    return time(*divmod(minutes, 60), second, fraction)


# Writing. Everything begins and ends on a multiple of four bytes.

SIZES = [struct.pack("<I", number) for number in range(1024)]
"""The packed lengths of short texts."""

PADS = (b"\0\0\0\0", b"\0\0\0", b"\0\0", b"\0")
"""What ends a text, by its length modulo four: NUL and padding."""

FILLS = (b"", b"\0\0\0", b"\0\0", b"\0")
"""What ends other bytes, by their length modulo four."""

u32 = struct.Struct("<I").pack

BY_ARRAY = sys.implementation.name == "pypy" and sys.byteorder == "little" and array("I").itemsize == 4
"""Whether arrays are the fast way from numbers to bytes: PyPy is slow at formats that are no constants."""


_pack_u32s = [struct.Struct(f"<{count}I").pack for count in range(35)]


def put_u32s(numbers: Sequence[int]) -> bytes:
    """*numbers*, packed."""
    if BY_ARRAY:
        return array("I", numbers).tobytes()
    count = len(numbers)
    return _pack_u32s[count](*numbers) if count < 35 else struct.pack(f"<{count}I", *numbers)


def put_texts(texts: Iterable[bytes], count: int) -> bytes:
    """A vector of strings."""
    parts = [b""]
    add = parts.extend
    numbers = [count]
    refer = numbers.append
    offset = 4 * count
    for text in texts:
        size = len(text)
        refer(offset)
        offset += (size + 8 & -4) - 4
        add((SIZES[size] if size < 1024 else u32(size), text, PADS[size & 3]))
    parts[0] = put_u32s(numbers)
    return b"".join(parts)


PACK_TEXT = [struct.Struct(f"<I{size}s{4 - size % 4}x").pack for size in range(64)]
"""What packs a short text, by its length."""

FURTHER = [(size + 8 & -4) - 4 for size in range(64)]
"""How much further than to a short text it is from one reference to the next text, by its length."""


def put_strs(texts: Sequence[Any]) -> bytes:
    """A vector of strings, of what must be str. Raises `Misfit` for what is not."""
    parts = [b""]
    numbers = [len(texts)]
    offset = 4 * len(texts)
    for text in texts:
        if type(text) is not str:
            raise Misfit
        data = text.encode()
        size = len(data)
        numbers.append(offset)
        if size < 64:
            offset += FURTHER[size]
            parts.append(PACK_TEXT[size](size, data))
        else:
            offset += (size + 8 & -4) - 4
            parts += (u32(size), data, PADS[size & 3])
    parts[0] = put_u32s(numbers)
    return b"".join(parts)


def put_tables(items: Sequence[Any], put: Callable[..., bytes], vtable: bytes, align: int, *more: Any) -> bytes:
    """A vector of tables, which share *vtable*. *put* gives the bytes of one; *more* is what it takes besides."""
    count = len(items)
    start = 4 + 4 * count
    pad = -start % align
    at = start + pad
    so = len(vtable)
    offsets: list[int] = []
    blocks = [b"", vtable]
    for item in items:
        at -= 4
        offsets.append(at + so)
        block = put(item, so, *more)
        blocks.append(block)
        so += len(block)
    blocks[0] = u32(count) + put_u32s(offsets) + bytes(pad)
    return b"".join(blocks)


def array_putter(code: str, width: int, last: bool) -> Callable[[Sequence[Any]], bytes]:
    """`scalar_putter` by arrays."""

    def put(values: Sequence[Any]) -> bytes:
        count = len(values)
        return b"".join((u32(count), array(code, values).tobytes(), bytes(padding(width, count, last))))

    return put


def padding(width: int, count: int, last: bool) -> int:
    """How many bytes follow a vector of *count* numbers, up to four bytes, or to eight if it is not the *last* one."""
    return (-width * count) % 4 if width < 8 else 0 if last else 4


def scalar_packs(code: str, width: int, last: bool) -> list[Callable[..., bytes]]:
    """What packs a vector of a few numbers, by how many they are."""
    forms = [f"<I{count}{code}{padding(width, count, last)}x" for count in range(33)]
    return [struct.Struct(form).pack for form in forms]


def scalar_putter(code: str, width: int, last: bool) -> Callable[[Sequence[Any]], bytes]:
    """The function from numbers to a vector. *last*: nothing follows that lies on eight bytes."""
    if BY_ARRAY:
        return array_putter("B" if code == "?" else code, width, last)
    packs, pack = scalar_packs(code, width, last), struct.pack

    def put(values: Sequence[Any]) -> bytes:
        count = len(values)
        if count < 33:
            return packs[count](count, *values)
        return pack(f"<I{count}{code}{padding(width, count, last)}x", count, *values)

    return put


def put_structs(blocks: Sequence[bytes], align: int) -> bytes:
    """A vector of packed structs."""
    data = b"".join(blocks)
    size = 4 + len(data)
    return b"".join((u32(len(blocks)), data, bytes(-size % (8 if align == 8 else 4))))


def deeper(depth: int) -> int:
    """One level below *depth*. Raises `Misfit` at the bottom."""
    if depth >= DEPTH:
        raise Misfit(f"more than {DEPTH} levels of tables inside tables of their own kind")
    return depth + 1


# Reading. Positions are never negative, and `unpack_from` refuses what lies beyond the end.

get_u32 = struct.Struct("<I").unpack_from
get_i32 = struct.Struct("<i").unpack_from
get_u16 = struct.Struct("<H").unpack_from
get_u16s = struct.Struct("<HH").unpack_from


def fields_of(data: Any, table: int, sizes: tuple[int, ...], known: dict[bytes, tuple[int, ...]]) -> tuple[int, ...]:
    """Where in the table at *table* the fields are of which *sizes* has the bytes, by number; 0 if they are not there.

    Raises `Corrupt` for a table or vtable that is not within *data*, and for fields that have fewer bytes than *sizes*.
    *known* remembers vtables.
    """
    size = len(data)
    (back,) = get_i32(data, table)
    begin = table - back
    if begin < 0:
        raise Corrupt("a vtable before the beginning")
    length, inline = get_u16s(data, begin)
    if table + inline > size:
        raise Corrupt("a table beyond the end")
    vtable = bytes(data[begin : begin + length])
    found = known.get(vtable)
    if found is not None:
        return found
    if length < 4 or length % 2 or len(vtable) < length or inline < 4:
        raise Corrupt("a vtable that is none")
    offsets = struct.unpack_from(f"<{length // 2 - 2}H", vtable, 4)
    found = offsets[: len(sizes)]
    if any(0 < offset < 4 or offset >= inline for offset in found):
        raise Corrupt("a field outside of its table")
    begins = sorted({*offsets, inline})
    for number, (offset, taken) in enumerate(zip(found, sizes)):
        room = begins[bisect_right(begins, offset)] - offset if offset else taken
        if room < taken:
            raise Corrupt(
                f"field {number} has {room} bytes at most, and the class declares {taken}: if another schema wrote it, "
                "declare its type, as in Annotated[int, U32]"
            )
    found += (0,) * (len(sizes) - len(found))
    if len(known) < 256:
        known[vtable] = found
    return found


def follow(data: Any, position: int) -> int:
    """Where the reference at *position* leads."""
    (offset,) = get_u32(data, position)
    if not offset:
        raise Corrupt("a reference to itself")
    return position + int(offset)


def get_text(data: Any, position: int, room: list[int]) -> str:
    """The string at *position*."""
    (size,) = get_u32(data, position)
    position += 4
    end = position + size
    if data[end]:
        raise Corrupt("a string without its end")
    room[0] -= size
    return bytes(data[position:end]).decode()  # str(data, "utf-8") takes lone surrogates on PyPy


def get_offsets(data: Any, position: int, room: list[int]) -> Sequence[int]:
    """The vector of references at *position*, as they are: relative to their own positions."""
    count: int
    (count,) = get_u32(data, position)
    if position + 4 + 4 * count > len(data):
        raise Corrupt("a vector beyond the end")
    room[0] -= 8 * count
    if room[0] < 0:
        raise Corrupt(OVERGROWN)
    if BY_ARRAY:
        found = array("I", bytes(data[position + 4 : position + 4 + 4 * count]))
        return found.tolist()
    unpack = _offsets[count] if count < 33 else struct.Struct(f"<{count}I").unpack_from
    return unpack(data, position + 4)


def unpackers(code: str) -> Sequence[Callable[[Any, int], tuple[Any, ...]]]:
    """What unpacks few numbers, by how many they are."""
    return [struct.Struct(f"<{count}{code}").unpack_from for count in range(33)]


_offsets = unpackers("I")

OVERGROWN = "references that lead to the same positions over and over"


def get_texts(data: Any, position: int, room: list[int]) -> list[str]:
    """The vector of strings at *position*."""
    if type(data) is not bytes:
        data = bytes(data)
    found: list[str] = []
    add = found.append
    count: int
    (count,) = get_u32(data, position)
    if count < 33 and not BY_ARRAY:
        offsets: Sequence[int] = _offsets[count](data, position + 4)
        left = room[0] - 8 * count
    else:
        offsets = get_offsets(data, position, room)
        left = room[0]
    for offset in offsets:
        position += 4
        at = position + offset
        (size,) = get_u32(data, at)
        at += 4
        end = at + size
        if data[end]:
            raise Corrupt("a string without its end")
        left -= size
        if left < 0:
            raise Corrupt(OVERGROWN)
        add(data[at:end].decode())
    room[0] = left
    return found


def array_getter(code: str, size: int) -> Callable[[Any, int, list[int]], Sequence[Any]]:
    """`scalar_getter` by arrays."""

    def get(data: Any, position: int, room: list[int]) -> Sequence[Any]:
        (count,) = get_u32(data, position)
        position += 4
        end = position + size * count
        if end > len(data):
            raise Corrupt("a vector beyond the end")
        room[0] -= size * count
        found: array[Any] = array(code, bytes(data[position:end]))
        return found.tolist()

    return get


def scalar_getter(code: str, size: int) -> Callable[[Any, int, list[int]], Sequence[Any]]:
    """The function that reads a vector of numbers."""
    if BY_ARRAY and code != "?":
        return array_getter(code, size)
    unpacks = unpackers(code)
    unpack: Callable[..., tuple[Any, ...]] = struct.unpack_from

    def get(data: Any, position: int, room: list[int]) -> Sequence[Any]:
        count: int
        (count,) = get_u32(data, position)
        position += 4
        if count < 33:
            room[0] -= size * count
            return unpacks[count](data, position)
        if position + size * count > len(data):
            raise Corrupt("a vector beyond the end")
        room[0] -= size * count
        return unpack(f"<{count}{code}", data, position)

    return get


def get_structs(data: Any, position: int, room: list[int], form: struct.Struct) -> Iterable[tuple[Any, ...]]:
    """The numbers of each struct of the vector at *position*."""
    (count,) = get_u32(data, position)
    position += 4
    end = position + form.size * count
    if end > len(data):
        raise Corrupt("a vector beyond the end")
    room[0] -= form.size * count
    if room[0] < 0:
        raise Corrupt(OVERGROWN)
    return form.iter_unpack(data[position:end])


def room_of(data: Any) -> list[int]:
    """What is left to spell out, in bytes, and the depth."""
    return [SHARING * len(data) + SLACK, 0]


def unpacked(code: str, value: Any) -> Any:
    """*value* as it comes back from `struct`."""
    return struct.unpack("<" + code, struct.pack("<" + code, value))[0]


NUMBERS = (*INTEGERS, *FLOATS, BOOL)

VECTORS = [(width, end) for width in NUMBERS for end in ("", "_last") if not end or width.size == 8]
"""The numbers that vectors are of, and what the names of their functions end in."""

_CALLED: tuple[Any, ...] = (
    exact, is_aware, micros, day_micros, day_time, uuid_from_bytes, UUID, date, datetime, time, timedelta, Decimal,
    put_u32s, put_texts, put_strs, put_tables, put_structs, deeper,
    fields_of, room_of, follow, get_text, get_texts, get_offsets, get_structs, Misfit, Corrupt,
)  # fmt: skip
"""Functions and classes that templates and lines call by their own names."""

NAMES: Mapping[str, Any] = {
    **{one.__name__: one for one in _CALLED},
    **{f"put_all_{width.vector}{end}": scalar_putter(width.code, width.size, bool(end)) for width, end in VECTORS},
    **{f"packs_{width.vector}{end}": scalar_packs(width.code, width.size, bool(end)) for width, end in VECTORS},
    **{f"get_all_{width.vector}": scalar_getter(width.code, width.size) for width in NUMBERS},
    **{f"one_{width.vector}": struct.Struct(f"<{width.code}").unpack_from for width in NUMBERS},
    **{f"few_{width.vector}": unpackers(width.code) for width in NUMBERS},
    "u32": u32,
    "get_u32": get_u32,
    "get_i32": get_i32,
    "get_u16": get_u16,
    "EPOCH": EPOCH,
    "MICROSECOND": MICROSECOND,
    "SIZES": SIZES,
    "PADS": PADS,
    "FILLS": FILLS,
    "DEPTH": DEPTH,
    "OVERGROWN": OVERGROWN,
}
