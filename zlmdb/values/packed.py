"""UUIDs, dates and times inside pickled field tuples: as numbers and bytes, in a third of the time of their pickles.

pickle calls a method of such an object, and writes the name of its class into every record. Here each type has a mark
instead, which the fingerprint of the tuple has after the name of the field: ``id=u,born=d,seen=t``.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timezone
from typing import Any, Callable, Optional
from uuid import UUID, SafeUUID

from ..keys.uuids import uuid_from_int
from ..namedtuples import NamedTuple
from .pickleshapes import InstanceOf
from .scalars import Shape
from .shapes import UnionOf

_unknown = SafeUUID.unknown


class Packing(NamedTuple):
    """How values of one type are packed, and told from what stands in their place: None, or an instance of a subclass.

    Those are pickled as they are, so what is packed must never look like one.
    """

    mark: str
    pack: Callable[[Any], Any]
    packed: type[Any]
    """What `pack` gives."""

    unpack: Callable[[Any], Any]
    """The value of what was packed. Raises for what never was."""


def as_it_is(value: Any) -> Any:
    """What is stored of a value that is not packed. One that looks packed fits no type, and must not come back."""
    return [value] if type(value) is int or type(value) is bytes else value


def pack_uuid(value: Any) -> Any:
    """The number of a UUID of which nothing else is known."""
    return value.int if type(value) is UUID and value.is_safe is _unknown else as_it_is(value)


def unpack_uuid(number: int) -> UUID:
    """The UUID of a number."""
    if number >> 128:
        raise ValueError(f"{number} is no UUID")
    return uuid_from_int(number)


def pack_date(value: Any) -> Any:
    """The days from 0001-01-01 on, which is 1."""
    return value.toordinal() if type(value) is date else as_it_is(value)


def pack_datetime(value: Any) -> Any:
    """The 10 bytes that pickle makes of a local time, or the same and a Z for one in UTC."""
    if type(value) is datetime:
        parts: Any = value.__reduce_ex__(5)[1]
        if len(parts) == 1:
            return parts[0]
        if parts[1] is timezone.utc:
            return parts[0] + b"Z"
    return as_it_is(value)


def unpack_datetime(data: bytes) -> datetime:
    """The point in time of these bytes."""
    make: Any = datetime  # the constructor that pickle calls is in no stub
    if len(data) == 10:
        return make(data)
    if len(data) == 11 and data.endswith(b"Z"):
        return make(data[:10], timezone.utc)
    raise ValueError(f"{data!r} is not a point in time")


PACKINGS: dict[Any, Packing] = {
    UUID: Packing("u", pack_uuid, int, unpack_uuid),
    date: Packing("d", pack_date, int, date.fromordinal),
    datetime: Packing("t", pack_datetime, bytes, unpack_datetime),
}
_BY_MARK = {packing.mark: packing for packing in PACKINGS.values()}


def packing_of(shape: Shape) -> Optional[Packing]:
    """How a field of *shape* is packed, if it is: one of these types, or Optional."""
    members: Iterable[Shape] = shape.members if isinstance(shape, UnionOf) else (shape,)
    classes = {one.cls if isinstance(one, InstanceOf) else object for one in members} - {type(None)}
    return PACKINGS.get(classes.pop()) if len(classes) == 1 else None


def unpacked(name: str, item: Any) -> tuple[str, Any]:
    """The name and the value of a field, of what a fingerprint calls it and of what is stored."""
    name, _, mark = name.partition("=")
    if not mark:
        return name, item
    packing = _BY_MARK.get(mark)
    if packing is None:
        raise ValueError(f"the field {name} is stored as {mark!r}, which this version does not know")
    return name, packing.unpack(item) if type(item) is packing.packed else item
