"""`Field` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, numbers, scalar, table, tables, text, texts
from .KeyValue import KeyValue
from .Type import Type as _Type


class Field(Reader):
    """A field of a table or a struct."""

    __slots__ = ()

    Name = text(0)
    Type = table(1, _Type)
    Id = scalar(2, 0, numbers.Uint16Flags)
    Offset = scalar(3, 0, numbers.Uint16Flags)  # in the vtable, or in the struct
    DefaultInteger = scalar(4, 0, numbers.Int64Flags)
    DefaultReal = scalar(5, 0.0, numbers.Float64Flags)
    Deprecated = scalar(6, False, numbers.BoolFlags)
    Required = scalar(7, False, numbers.BoolFlags)
    Key = scalar(8, False, numbers.BoolFlags)
    Attributes, AttributesLength, AttributesIsNone = tables(9, KeyValue)
    Documentation, DocumentationLength, DocumentationIsNone = texts(10)
    Optional = scalar(11, False, numbers.BoolFlags)
    Padding = scalar(12, 0, numbers.Uint16Flags)  # bytes after it, in a struct
    Offset64 = scalar(13, False, numbers.BoolFlags)
