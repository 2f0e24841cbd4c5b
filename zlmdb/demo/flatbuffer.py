"""A city as a FlatBuffer: the two functions that the classic FlatBuffers maps take, over the official runtime.

They do what the code does that flatc generates from this schema::

    table City {
        geonameid: uint;
        name: string;
        country: string;
        admin1: string;
        latitude: double;
        longitude: double;
        population: uint;
        timezone: string;
        other_names: [string];
    }
"""

from __future__ import annotations

import importlib
from typing import Any, Union

from .cities import City

_Table: Any = importlib.import_module("flatbuffers.table").Table  # the runtime carries no types
_numbers: Any = importlib.import_module("flatbuffers.number_types")

_SLOTS = {field: 4 + 2 * number for number, field in enumerate(City.__dataclass_fields__)}
"""Where in its table's directory each field has its entry. https://flatbuffers.dev/internals/"""


def build(city: City, builder: Any) -> int:
    """Write *city*; the offset of its table. Strings and vectors come before the table that refers to them."""
    strings = [builder.CreateString(name) for name in city.other_names]
    builder.StartVector(4, len(strings), 4)
    for offset in reversed(strings):
        builder.PrependUOffsetTRelative(offset)
    other_names = builder.EndVector()
    name = builder.CreateString(city.name)
    country = builder.CreateString(city.country)
    admin1 = builder.CreateString(city.admin1)
    timezone = builder.CreateString(city.timezone)
    builder.StartObject(9)
    builder.PrependFloat64Slot(4, city.latitude, 0.0)
    builder.PrependFloat64Slot(5, city.longitude, 0.0)
    builder.PrependUint32Slot(0, city.geonameid, 0)
    builder.PrependUOffsetTRelativeSlot(1, name, 0)
    builder.PrependUOffsetTRelativeSlot(2, country, 0)
    builder.PrependUOffsetTRelativeSlot(3, admin1, 0)
    builder.PrependUint32Slot(6, city.population, 0)
    builder.PrependUOffsetTRelativeSlot(7, timezone, 0)
    builder.PrependUOffsetTRelativeSlot(8, other_names, 0)
    return int(builder.EndObject())


def cast(data: Union[bytes, memoryview]) -> City:
    """Read the whole city, where generated classes would read each field when it is asked for."""
    table = _Table(data, int.from_bytes(data[:4], "little"))
    return City(
        geonameid=_number(table, "geonameid", _numbers.Uint32Flags, 0),
        name=_string(table, "name"),
        country=_string(table, "country"),
        admin1=_string(table, "admin1"),
        latitude=_number(table, "latitude", _numbers.Float64Flags, 0.0),
        longitude=_number(table, "longitude", _numbers.Float64Flags, 0.0),
        population=_number(table, "population", _numbers.Uint32Flags, 0),
        timezone=_string(table, "timezone"),
        other_names=_strings(table, "other_names"),
    )


def _number(table: Any, field: str, flags: Any, default: Any) -> Any:
    offset = table.Offset(_SLOTS[field])
    return table.Get(flags, offset + table.Pos) if offset else default


def _string(table: Any, field: str) -> str:
    offset = table.Offset(_SLOTS[field])
    return str(table.String(offset + table.Pos), "utf-8") if offset else ""


def _strings(table: Any, field: str) -> list[str]:
    offset = table.Offset(_SLOTS[field])
    if not offset:
        return []
    start = table.Vector(offset)
    return [str(table.String(start + 4 * number), "utf-8") for number in range(table.VectorLen(offset))]
