"""`Type` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, numbers, scalar


class Type(Reader):
    """The type of a field, or of a member of a union."""

    __slots__ = ()

    BaseType = scalar(0, 0, numbers.Int8Flags)
    Element = scalar(1, 0, numbers.Int8Flags)  # of a vector or an array
    Index = scalar(2, -1, numbers.Int32Flags)  # among the objects, or the enums, of the schema
    FixedLength = scalar(3, 0, numbers.Uint16Flags)  # of an array
    BaseSize = scalar(4, 4, numbers.Uint32Flags)  # in bytes
    ElementSize = scalar(5, 0, numbers.Uint32Flags)  # in bytes
