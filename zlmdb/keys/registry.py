"""All key types: their aliases for annotations, and functions that find a codec by annotation or name.

Programs whose keys are texts or numbers do without this module and those of the other types.
"""

from __future__ import annotations

import datetime as dt
import enum
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, get_args, get_origin
from uuid import UUID

from ..shown import shortened
from ..typeargs import own_annotations
from .base import KeyCodec
from .choices import enum_key, literal_key
from .dates import DateKey, DatetimeKey
from .decimals import DecimalKey
from .descending import DescendingKey
from .durations import TimedeltaKey, TimeKey
from .named import BytesKey, StringKey, Uint128Key, UintKey, UuidKey
from .plain import COMMON
from .timestamp import TimestampKey
from .tuples import CLASSIC_NAMES, CLASSIC_PARTS, TupleKey

if TYPE_CHECKING:
    import numpy

    Timestamp = Annotated[numpy.datetime64, TimestampKey()]
else:
    # numpy is not imported for its name. A string in its place would be looked up, and not be found, wherever
    # `typing.get_type_hints` reads a class that uses the alias.
    Timestamp = Annotated[Any, TimestampKey()]

Oid = Annotated[int, UintKey(8, 2**53, "oid")]
Uint8 = Annotated[int, UintKey(1)]
Uint16 = Annotated[int, UintKey(2)]
Uint32 = Annotated[int, UintKey(4)]
Uint64 = Annotated[int, UintKey(8)]
Uint128 = Annotated[int, Uint128Key()]
Slot = Annotated[int, UintKey(2, name="slot")]
Uuid = Annotated[UUID, UuidKey()]
String = Annotated[str, StringKey()]
Bytes16 = Annotated[bytes, BytesKey(16)]
Bytes20 = Annotated[bytes, BytesKey(20)]
Bytes32 = Annotated[bytes, BytesKey(32)]

NAMED: Sequence[Any] = [
    Oid, Uint8, Uint16, Uint32, Uint64, Uint128, Slot, Uuid, String, Timestamp, Bytes16, Bytes20, Bytes32
]  # fmt: skip
"""The aliases of all named key types; a new one is added here."""

PLAIN: dict[Any, KeyCodec[Any]] = {
    **COMMON,
    UUID: UuidKey(none=False),
    dt.datetime: DatetimeKey(),
    dt.date: DateKey(),
    dt.time: TimeKey(),
    dt.timedelta: TimedeltaKey(),
}
"""The codecs of the plain types; a new one is added here."""

DECIMAL = DecimalKey()  # not under its class, which takes a millisecond to import

ATOMS: Sequence[KeyCodec[Any]] = [*PLAIN.values(), DECIMAL, *(alias.__metadata__[0] for alias in NAMED), *CLASSIC_PARTS]
"""The codecs of all types but tuples."""

# Of two with one name the plain one, which refuses None.
_BY_NAME: dict[str, KeyCodec[Any]] = {codec.name: codec for codec in reversed(ATOMS)}
_MOST_NESTED = 100  # a file may say anything, and each part is a call
_BYTES = r"bytes([1-9]\d{0,8})"
_SUPPORTED = (
    "int, str, bytes, bool, float, UUID, datetime, date, time, timedelta, Decimal, Enum, Literal, "
    "the named types (Oid, Uint8, Uint16, Uint32, Uint64, Uint128, Slot, Uuid, String, Timestamp, Bytes16, Bytes20, "
    "Bytes32), Annotated[T, <a KeyCodec>], and tuple[...] of a fixed number of these"
)


def codec_of(annotation: Any) -> KeyCodec[Any]:
    """The codec of any annotation; see `key_codec`."""
    extras: Sequence[Any] = getattr(annotation, "__metadata__", ())
    for extra in reversed(extras):
        if issubclass(type(extra), KeyCodec):
            return extra
    if get_origin(annotation) is Annotated:
        return codec_of(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return literal_key(get_args(annotation))
    if get_origin(annotation) is tuple and get_args(annotation) and Ellipsis not in get_args(annotation):
        return TupleKey([codec_of(part) for part in get_args(annotation)])
    renamed = getattr(annotation, "__supertype__", None) or getattr(annotation, "__value__", None)  # NewType, type X =
    if renamed is not None:
        return codec_of(renamed)
    plain: Optional[KeyCodec[Any]] = PLAIN.get(annotation) if isinstance(annotation, type) else None
    if plain is None and isinstance(annotation, type):
        plain = _by_class(annotation)
    if plain is None:
        shown = annotation.__name__ if isinstance(annotation, type) else repr(annotation)
        from ..frozentime import FROZEN, is_of_freezegun  # late: for this error only

        if isinstance(annotation, type) and is_of_freezegun(annotation):
            raise TypeError(f"{shown} is not a key type: {FROZEN}")
        raise TypeError(f"{shown} is not a key type; there are {_SUPPORTED}{_advice(annotation)}")
    return plain


def _advice(annotation: Any) -> str:
    """What to write in place of *annotation*, where that is known."""
    parts = get_args(annotation)
    if type(None) in parts:
        return ". No key is None: write the type without it; an index has no entry for a record whose field is None"
    if hasattr(annotation, "_fields") and annotation.__mro__[1] is tuple:
        types = ", ".join([_shown(one) for one in own_annotations(annotation).values()])
        return f". Of a NamedTuple, write tuple[{types or '...'}]: its objects are keys of that type"
    if getattr(annotation, "__module__", "") == "pydantic.networks":
        return ". A URL is a key as a text: write str, and str(url)"
    if annotation is tuple or Ellipsis in parts:
        return ". A tuple of any length is no key: name the type of each part, as in tuple[str, int]"
    return ""


def _shown(annotation: Any) -> str:
    """A type of a NamedTuple, which has those that are written as texts as `ForwardRef`."""
    return str(getattr(annotation, "__forward_arg__", "") or getattr(annotation, "__name__", "..."))


def _by_class(cls: type[Any]) -> Optional[KeyCodec[Any]]:
    """The codec of a class that is not one of `PLAIN`."""
    if issubclass(cls, enum.Enum):
        return enum_key(cls)
    return DECIMAL if (cls.__module__, cls.__name__) == ("decimal", "Decimal") else None


def from_name(name: str) -> KeyCodec[Any]:
    """The codec of a `KeyCodec.name`, such as a file records it.

    >>> from_name("tuple(uuid,tuple(str,int))").name
    'tuple(uuid,tuple(str,int))'

    Raises `ValueError` for a name that this version does not know.
    """
    if name.count("(") > _MOST_NESTED:
        raise ValueError(f"there is no key type named {shortened(name)}, of so many parts in each other")
    if name.startswith("tuple(") and name.endswith(")"):
        return TupleKey([from_name(part) for part in _split(name[len("tuple(") : -1])])
    if name.startswith("desc(") and name.endswith(")"):
        return DescendingKey(from_name(name[len("desc(") : -1]))
    sized = re.fullmatch(_BYTES, name)
    if sized is not None:
        return BytesKey(int(sized[1]))
    codec = _BY_NAME.get(name)
    if codec is None:
        raise ValueError(f"there is no key type named {name!r}; there are {', '.join(_BY_NAME)} and tuple(...) of them")
    return codec


def tables_codec(codec: KeyCodec[Any]) -> KeyCodec[Any]:
    """The codec that the tables layout has for the keys of *codec*: itself, but for what `KeyCodec.classic` gives.

    >>> tables_codec(codec_of(tuple[Oid, Timestamp]).classic())
    <key codec tuple(oid,timestamp)>
    """
    plain = (from_name(name) for name in CLASSIC_NAMES)
    return next((one for one in plain if one.classic().name == codec.name), codec)


def _split(names: str) -> list[str]:
    """*names* parted at the commas that are in no parenthesis."""
    parts = [""]
    depth = 0
    for char in names:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
