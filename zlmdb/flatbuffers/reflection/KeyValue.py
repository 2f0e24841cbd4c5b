"""`KeyValue` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, text


class KeyValue(Reader):
    """An attribute of a declaration, with its value."""

    __slots__ = ()

    Key = text(0)
    Value = text(1)
