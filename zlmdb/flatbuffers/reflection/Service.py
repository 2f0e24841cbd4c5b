"""`Service` of a binary schema."""

from __future__ import annotations

from ._reader import Reader, tables, text, texts
from .KeyValue import KeyValue
from .RPCCall import RPCCall


class Service(Reader):
    """A service."""

    __slots__ = ()

    Name = text(0)
    Calls, CallsLength, CallsIsNone = tables(1, RPCCall)
    Attributes, AttributesLength, AttributesIsNone = tables(2, KeyValue)
    Documentation, DocumentationLength, DocumentationIsNone = texts(3)
    DeclarationFile = text(4)
