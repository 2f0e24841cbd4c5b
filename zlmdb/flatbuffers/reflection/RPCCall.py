"""`RPCCall` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, table, tables, text, texts
from .KeyValue import KeyValue
from .Object import Object


class RPCCall(Reader):
    """A call of a service."""

    __slots__ = ()

    Name = text(0)
    Request = table(1, Object)
    Response = table(2, Object)
    Attributes, AttributesLength, AttributesIsNone = tables(3, KeyValue)
    Documentation, DocumentationLength, DocumentationIsNone = texts(4)
