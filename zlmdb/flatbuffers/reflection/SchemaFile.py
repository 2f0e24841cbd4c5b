"""`SchemaFile` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, text, texts


class SchemaFile(Reader):
    """A file of a schema, with those that it includes."""

    __slots__ = ()

    Filename = text(0)
    IncludedFilenames, IncludedFilenamesLength, IncludedFilenamesIsNone = texts(1)
