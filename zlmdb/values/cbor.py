"""Values as CBOR (RFC 8949), by cbor2.

Without a type, and without callables, values are what cbor2 holds; tuples come back as lists. The bytes are those of
zlmdb <= 26. A value of a model class is a map of its fields by name, in the order of `cborwriter`, or in that of the
class where the type has no fixed depth; what is not CBOR's own (without tags) is text, as in JSON, but bytes are bytes.
"""

from __future__ import annotations

from typing import Any, TypeVar

from .base import Data, Decode, Encode
from .documents import DocumentSerializer
from .models import Model

T = TypeVar("T")

_DEPTH = 390
"""A little less than the depth of nesting that cbor2 reads, 400."""

_NO_CONTAINER = bytes(byte for byte in range(256) if not 0x80 <= byte < 0xDC)
"""The bytes that begin no array, map or tag. Without them, data is at least as long as it is deep."""


class CborSerializer(DocumentSerializer[T]):
    """Values of a type, or plain data, as CBOR."""

    form = "cbor"

    def typed_codec(self, model: Model) -> tuple[Encode, Decode]:
        """A generated encoder for records and what reads it best, cbor2's and a converter for others."""
        from .cborreader import reader  # model classes only
        from .cborwriter import writer

        encode, decode = super().typed_codec(model)
        write = writer(model.shape, self.codec()[0])
        return (encode, decode) if write is None else (write, reader(model, decode))

    @classmethod
    def codec(cls) -> tuple[Encode, Decode]:
        """cbor2's encoder and decoder."""
        import cbor2

        def dumps(value: Any) -> bytes:
            data: bytes = cbor2.dumps(value)
            if len(data) > _DEPTH and len(data.translate(None, _NO_CONTAINER)) > _DEPTH:
                cbor2.loads(data)  # it writes deeper nesting than it reads
            return data

        def loads(data: Data) -> Any:
            value: Any = cbor2.loads(data)
            if value is broken:  # what cbor2 5 makes of a break that ends nothing
                raise ValueError("a break where a value should begin")
            return value

        try:
            broken: Any = cbor2.loads(b"\xff")
        except cbor2.CBORDecodeError:
            return dumps, cbor2.loads
        return dumps, loads
