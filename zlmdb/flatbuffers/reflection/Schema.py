"""`Schema` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, numbers, scalar, table, tables, text
from .Enum import Enum
from .Object import Object
from .SchemaFile import SchemaFile
from .Service import Service


class Schema(Reader):
    """A schema: the root of the binary form."""

    __slots__ = ()

    Objects, ObjectsLength, ObjectsIsNone = tables(0, Object)
    Enums, EnumsLength, EnumsIsNone = tables(1, Enum)
    FileIdent = text(2)
    FileExt = text(3)
    RootTable = table(4, Object)
    Services, ServicesLength, ServicesIsNone = tables(5, Service)
    AdvancedFeatures = scalar(6, 0, numbers.Uint64Flags)
    FbsFiles, FbsFilesLength, FbsFilesIsNone = tables(7, SchemaFile)
