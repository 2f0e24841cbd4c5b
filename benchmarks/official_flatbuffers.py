"""What flatc generates for the user, written out so that no flatc is needed: the official builder, call by call.

The predecessor carries a copy of the official package; both are used by the same calls.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any
from uuid import UUID

from .records import SixFields, Small, User

try:
    from flatbuffers import encode, number_types, packer
    from flatbuffers.table import Table as Reader
except ImportError:  # the predecessor's interpreter has the copy only
    from zlmdb.flatbuffers import encode, number_types, packer
    from zlmdb.flatbuffers.table import Table as Reader

UINT64, INT64, FLOAT64 = number_types.Uint64Flags, number_types.Int64Flags, number_types.Float64Flags
UINT8, UINT16, BOOL = number_types.Uint8Flags, number_types.Uint16Flags, number_types.BoolFlags


def vector(builder: Any, size: int, items: list[Any], prepend: Callable[[Any], Any]) -> int:
    builder.StartVector(size, len(items), size)
    for item in reversed(items):
        prepend(item)
    return int(builder.EndVector())


def prepend_date(builder: Any, slot: int, day: date) -> None:
    builder.Prep(2, 4)
    builder.PrependUint8(day.day)
    builder.PrependUint8(day.month)
    builder.PrependUint16(day.year)
    builder.PrependStructSlot(slot, builder.Offset(), 0)


def build_user(user: User, builder: Any) -> int:
    """All 11 fields; the offset of the table."""
    text, reference = builder.CreateString, builder.PrependUOffsetTRelative
    ratings: list[int] = []
    for name, rating in user.ratings.items():
        key = text(name)
        builder.StartObject(2)
        builder.PrependUOffsetTRelativeSlot(0, key, 0)
        builder.PrependFloat64Slot(1, rating, 0.0)
        ratings.append(builder.EndObject())
    all_ratings = vector(builder, 4, ratings, reference)
    tags = vector(builder, 4, [text(tag) for tag in user.tags], reference)
    friends = vector(builder, 8, user.friends, builder.PrependUint64)
    name, authid, email = text(user.name), text(user.authid), text(user.email)
    uuid = builder.CreateByteVector(user.uuid.bytes)
    builder.StartObject(11)
    builder.PrependUint64Slot(0, user.oid, 0)
    builder.PrependUOffsetTRelativeSlot(1, name, 0)
    builder.PrependUOffsetTRelativeSlot(2, authid, 0)
    builder.PrependUOffsetTRelativeSlot(3, uuid, 0)
    builder.PrependUOffsetTRelativeSlot(4, email, 0)
    prepend_date(builder, 5, user.birthday)
    builder.PrependBoolSlot(6, user.is_friendly, 0)
    builder.PrependUOffsetTRelativeSlot(7, tags, 0)
    builder.PrependUOffsetTRelativeSlot(8, all_ratings, 0)
    builder.PrependUOffsetTRelativeSlot(9, friends, 0)
    builder.PrependUint64Slot(10, user.referred_by, 0)
    return int(builder.EndObject())


def build_six_fields(user: SixFields, builder: Any) -> int:
    """The six fields of the published benchmark; the offset of the table."""
    text = builder.CreateString
    name, authid, email = text(user.name), text(user.authid), text(user.email)
    builder.StartObject(6)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUOffsetTRelativeSlot(1, authid, 0)
    builder.PrependUOffsetTRelativeSlot(2, email, 0)
    prepend_date(builder, 3, user.birthday)
    builder.PrependBoolSlot(4, user.is_friendly, 0)
    builder.PrependUint64Slot(5, user.referred_by, 0)
    return int(builder.EndObject())


def build_small(small: Small, builder: Any) -> int:
    """The offset of the table."""
    name, city = builder.CreateString(small.name), builder.CreateString(small.city)
    builder.StartObject(7)
    builder.PrependInt64Slot(0, small.id, 0)
    builder.PrependInt64Slot(1, small.count, 0)
    builder.PrependFloat64Slot(2, small.price, 0.0)
    builder.PrependInt64Slot(3, small.kind, 0)
    builder.PrependFloat64Slot(4, small.weight, 0.0)
    builder.PrependUOffsetTRelativeSlot(5, name, 0)
    builder.PrependUOffsetTRelativeSlot(6, city, 0)
    return int(builder.EndObject())


def root(data: bytes) -> Any:
    return Reader(data, encode.Get(packer.uoffset, data, 0))


def number(table: Any, slot: int, flags: Any) -> Any:
    offset = table.Offset(slot)
    return table.Get(flags, offset + table.Pos) if offset else 0


def string(table: Any, slot: int) -> str:
    text: bytes = table.String(table.Offset(slot) + table.Pos)
    return text.decode()


def day(table: Any, slot: int) -> date:
    place = table.Offset(slot) + table.Pos
    return date(table.Get(UINT16, place), table.Get(UINT8, place + 2), table.Get(UINT8, place + 3))


def items(table: Any, slot: int) -> tuple[int, int]:
    offset = table.Offset(slot)
    return table.Vector(offset), table.VectorLen(offset)


def read_user(data: bytes) -> User:
    """The whole object."""
    table = root(data)
    place, count = items(table, 10)
    uuid = UUID(bytes=bytes(data[place : place + count]))
    place, count = items(table, 18)
    tags = [table.String(place + 4 * j).decode() for j in range(count)]
    ratings: dict[str, float] = {}
    place, count = items(table, 20)
    for j in range(count):
        rating = Reader(data, table.Indirect(place + 4 * j))
        ratings[string(rating, 4)] = number(rating, 6, FLOAT64)
    place, count = items(table, 22)
    return User(
        number(table, 4, UINT64), string(table, 6), string(table, 8), uuid, string(table, 12), day(table, 14),
        bool(number(table, 16, BOOL)), tags, ratings, [table.Get(UINT64, place + 8 * j) for j in range(count)],
        number(table, 24, UINT64),
    )  # fmt: skip


def read_referred_by(data: bytes) -> int:
    """One field of a user, the others not touched."""
    return int(number(root(data), 24, UINT64))


def read_small(data: bytes) -> Small:
    """The whole object."""
    table = root(data)
    return Small(
        number(table, 4, INT64),
        number(table, 6, INT64),
        number(table, 8, FLOAT64),
        number(table, 10, INT64),
        number(table, 12, FLOAT64),
        string(table, 14),
        string(table, 16),
    )


class SixFieldsView:
    """Reads a field when it is asked for, as generated code does."""

    def __init__(self, data: bytes) -> None:
        self._table = root(data)

    name = property(lambda self: string(self._table, 4))
    authid = property(lambda self: string(self._table, 6))
    email = property(lambda self: string(self._table, 8))
    birthday = property(lambda self: day(self._table, 10))
    is_friendly = property(lambda self: bool(number(self._table, 12, BOOL)))
    referred_by = property(lambda self: number(self._table, 14, UINT64))
