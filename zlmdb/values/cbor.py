"""Values as CBOR (RFC 8949), by cbor2.

Without a type, and without callables, values are the plain data of cbor2: no patterns, no MIME messages, nothing that
refers to itself. Values that would be read back as another type, such as tuples, are refused, except in classic maps
and unchecked. The bytes are those of zlmdb 26. A value of a model class is a map of its fields by name, in the order of
`cborwriter`, or in that of the class if the type has no fixed depth; types that CBOR does not have (without tags) are
text, as in JSON, but bytes are bytes.
"""

from __future__ import annotations

import re
from contextlib import suppress
from io import BytesIO
from typing import Any, TypeVar

from .base import Data, Decode, Encode
from .depth import TOO_DEEP, shallow
from .documents import DocumentSerializer, plain_data_of
from .models import Model

T = TypeVar("T")

_REFUSED = {28: "a shared value", 29: "a reference", 35: "a regular expression", 36: "a MIME message"}
"""Tags for which cbor2 makes objects that nobody declared, or data that holds itself."""

_MAY_BE_TAGS = re.compile(rb"\xd8[\x1c\x1d#$]|[\xd9-\xdb]\x00+[\x1c\x1d#$]")


class CborSerializer(DocumentSerializer[T]):
    """Values of a type, or plain data, as CBOR."""

    form = "cbor"

    def typed_codec(self, model: Model) -> tuple[Encode, Decode]:
        """A generated encoder for records and the fastest decoder; for other types cbor2 and a converter."""
        from .cborwriter import writer  # model classes only

        encode, decode = super().typed_codec(model)
        write = writer(model.shape, self.codec()[0])
        return (encode, decode) if write is None else (write, self.typed_decoder(model))

    def typed_decoder(self, model: Model) -> Decode:
        """The fastest decoder."""
        from .cborreader import reader  # as above
        from .cborwriter import is_fixed

        decode = super().typed_codec(model)[1]
        return reader(model, decode) if is_fixed(model.shape) else decode

    @classmethod
    def faithful(cls) -> Encode:
        """An encoder that checks most documents in one pass."""
        import cbor2

        library: Any = cbor2
        is_plain, general = plain_data_of("cbor"), super().faithful()

        def encode(value: Any) -> bytes:
            if not is_plain(value):
                return general(value)
            data: bytes = library.dumps(value)
            if _MAY_BE_TAGS.search(data) is not None:
                refuse_tags(data)
            return data

        return encode

    @classmethod
    def codec(cls) -> tuple[Encode, Decode]:
        """cbor2's encoder and decoder."""
        import cbor2

        library: Any = cbor2

        def dumps(value: Any) -> bytes:
            if not shallow(value):  # cbor2 6 crashes the process some thousand levels down
                raise ValueError(TOO_DEEP)
            data: bytes = library.dumps(value)
            if _MAY_BE_TAGS.search(data) is not None:
                refuse_tags(data)
            return data

        def loads(data: Data) -> Any:
            if _MAY_BE_TAGS.search(data) is not None:
                refuse_tags(data)
            source = BytesIO(data)
            value: Any = library.CBORDecoder(source).decode()
            if source.tell() != len(data):
                raise ValueError(f"{len(data) - source.tell()} bytes after the end")
            if value is broken:  # what cbor2 5 makes of a break that ends nothing
                raise ValueError("a break where a value should begin")
            return value

        broken: Any = _NOTHING
        with suppress(library.CBORDecodeError):
            broken = library.loads(b"\xff")
        return dumps, loads


_NOTHING = object()


def refuse_tags(data: Data) -> None:
    """Raise ValueError if the CBOR item *data* has a tag that is not allowed. Invalid CBOR passes."""
    at, size = 0, len(data)
    while at < size:  # one head after the other, whatever holds what: only texts and bytes are stepped over
        first = data[at]
        major, low, at = first >> 5, first & 31, at + 1
        width = 1 << (low - 24) if 24 <= low < 28 else 0
        number = low if width == 0 else int.from_bytes(data[at : at + width], "big")
        at += width
        if major == 6 and number in _REFUSED:
            raise ValueError(f"tag {number}, {_REFUSED[number]}, which is not plain data")
        if major in (2, 3) and low != 31:
            at += number
