"""`Object` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, numbers, scalar, tables, text, texts
from .Field import Field
from .KeyValue import KeyValue


class Object(Reader):
    """A table or a struct."""

    __slots__ = ()

    Name = text(0)
    Fields, FieldsLength, FieldsIsNone = tables(1, Field)  # in the order of their names
    IsStruct = scalar(2, False, numbers.BoolFlags)
    Minalign = scalar(3, 0, numbers.Int32Flags)
    Bytesize = scalar(4, 0, numbers.Int32Flags)  # of a struct
    Attributes, AttributesLength, AttributesIsNone = tables(5, KeyValue)
    Documentation, DocumentationLength, DocumentationIsNone = texts(6)
    DeclarationFile = text(7)
