"""`EnumVal` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, numbers, scalar, table, tables, text, texts
from .KeyValue import KeyValue
from .Type import Type


class EnumVal(Reader):
    """A value of an enum, or a member of a union."""

    __slots__ = ()

    Name = text(0)
    Value = scalar(1, 0, numbers.Int64Flags)
    UnionType = table(3, Type)  # field 2 is no longer used
    Documentation, DocumentationLength, DocumentationIsNone = texts(4)
    Attributes, AttributesLength, AttributesIsNone = tables(5, KeyValue)
