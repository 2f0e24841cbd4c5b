"""Model classes as values: the common part of the formats JSON, CBOR and MessagePack.

On CPython msgspec converts, in C. PyPy has no msgspec; there cattrs creates the objects and `shapes` does the rest. The
bytes of MessagePack and CBOR are the same on both; golden vectors in the tests check this.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Callable, NoReturn, Optional

from ..errors import EncodeError
from .base import Decode, Encode, is_free, typename

if TYPE_CHECKING:
    from types import ModuleType

    from .scalars import Form

BINARY = (bytes, bytearray, memoryview)
"""What CBOR and MessagePack hold as it is, told to msgspec's converter."""


class Model:
    """Checks and converts values of one type for one format."""

    def __init__(
        self, annotation: Any, form: Form, pack: Callable[[Any], bytes], localns: Optional[Mapping[str, Any]] = None
    ) -> None:
        """*pack* returns the bytes of plain data. Raises TypeError for a type that cannot be stored and read back."""
        # Here and not above: programs without model classes need not load dataclasses, decimal and the like.
        from .annotations import shape_of
        from .shapes import walk

        self.annotation = annotation
        self.name = typename(annotation)
        self.shape = shape_of(annotation, form, pack, localns)
        parts = list(walk(self.shape))
        self.native = all(part.native for part in parts)
        """Whether msgspec's encoder writes the right bytes by itself."""
        self.foreign = any(part.foreign for part in parts)
        """Whether msgspec cannot make a value, so that the shape has to."""
        self.recheck = any(part.recheck for part in parts)
        self.form = form
        self.binary = any(part.kind == "any" or bytes in part.sure for part in parts)
        """Whether there may be bytes in a value."""

    def checked(self, encode: Encode, decode: Decode) -> Encode:
        """*encode*, but refuses values that *decode* would not return unchanged."""
        from .checks import Check
        from .depth import TOO_DEEP, too_deep
        from .shapes import is_plain_container

        misfit, name = self.shape.misfit, "the value" if is_free(self.annotation) else self.name

        def refuse(value: Any) -> NoReturn:
            if bounded and too_deep(value):
                raise ValueError(TOO_DEEP)
            raise EncodeError(misfit(value, name))

        bounded = is_plain_container(self.shape)
        encode = encode if bounded else self.shallow(encode)
        check = Check("refuse(value)", {"encode": encode, "refuse": refuse})
        self.shape.test_value(check)
        encode_checked: Encode = check.made("encode(value)", self.shape.label)
        if not self.recheck:
            return encode_checked

        from .reread import reread

        return reread(encode_checked, decode, name)

    def checked_of(self, fields: Collection[str], encode: Encode) -> Optional[Encode]:
        """*encode*, for objects that were decoded, and whose *fields* alone are others: it refuses as `checked`.

        What a decoder gives fits where the type of the object says all. None if this is not all that `checked` does.
        """
        from .checks import Check
        from .shapes import Record, is_sure

        shape = self.shape
        if type(shape) is not Record or self.recheck or self.foreign or not self.native:
            return None
        if self.shallow(encode) is not encode:
            return None

        def refuse(value: Any) -> NoReturn:
            raise ValueError(value)

        check = Check("refuse(value)", {"encode": encode, "refuse": refuse})
        for field in shape.fields:
            if field.name in fields or not is_sure(field.shape):
                x = check.variable()
                check.add(f"{x} = value.{field.name}")
                field.shape.test(check, x)
        return check.made("encode(value)", shape.label)

    def shallow(self, encode: Encode) -> Encode:
        """*encode*, but refuses values that are nested too deeply, if the type does not limit the depth."""
        from .depth import MAYBE, limited, may_be_deep
        from .scalars import PlainData

        # Plain data by itself is looked at by its own check.
        fixed = isinstance(self.shape, PlainData) or not may_be_deep(self.shape)
        return encode if fixed else limited(encode, MAYBE[self.form])

    def to_plain(self) -> Callable[[Any], Any]:
        """The function from a value to plain data (bytes stay bytes)."""
        msgspec = find_msgspec()
        if msgspec is None or not self.native:
            return self.shape.dump
        to_builtins = msgspec.to_builtins
        return lambda value: to_builtins(value, builtin_types=BINARY)

    def from_plain(self) -> Callable[[Any], Any]:
        """The function from plain data to a value; raises for what does not fit.

        Raises TypeError for a type that msgspec cannot read.
        """
        msgspec = find_msgspec()
        if msgspec is None or self.foreign:
            return self.shape.load
        convert, annotation = msgspec.convert, self.annotation
        msgspec.msgpack.Decoder(annotation)  # raises now, not when the first value is read, for a type that it refuses
        if not self.binary:  # a sixth of the time goes into looking at these types
            return lambda data: convert(data, annotation)
        return lambda data: convert(data, annotation, builtin_types=BINARY)


def find_msgspec() -> Optional[ModuleType]:
    """msgspec, or None if it is not available (PyPy)."""
    try:
        import msgspec
    except ImportError:
        return None
    return msgspec
