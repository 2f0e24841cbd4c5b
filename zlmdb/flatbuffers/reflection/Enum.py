"""`Enum` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, numbers, scalar, table, tables, text, texts
from .EnumVal import EnumVal
from .KeyValue import KeyValue
from .Type import Type


class Enum(Reader):
    """An enum or a union."""

    __slots__ = ()

    Name = text(0)
    Values, ValuesLength, ValuesIsNone = tables(1, EnumVal)
    IsUnion = scalar(2, False, numbers.BoolFlags)
    UnderlyingType = table(3, Type)
    Attributes, AttributesLength, AttributesIsNone = tables(4, KeyValue)
    Documentation, DocumentationLength, DocumentationIsNone = texts(5)
    DeclarationFile = text(6)
