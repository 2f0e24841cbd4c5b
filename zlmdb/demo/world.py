"""What the demonstration's database holds. A serializer is a line in `Formats`, and is then filled and measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Optional, TypeVar

import zlmdb

from .cities import City, Country, Tile
from .flatbuffer import build, cast

V = TypeVar("V")


class Cities(zlmdb.Table[Tile, V]):
    """Cities by their place on the map, whatever serializer stores them."""

    by_id = zlmdb.UniqueIndex[int]("geonameid")
    by_population = zlmdb.Index[tuple[str, int]]("country", "population")
    by_name = zlmdb.Index[str]("name")
    by_timezone = zlmdb.Index[str]("timezone")


class Formats(zlmdb.Schema):
    """The cities, once per serializer."""

    msgpack: Cities[City]  # what a bare type means
    json: Cities[zlmdb.Json[City]]
    cbor: Cities[zlmdb.Cbor[City]]
    pickle: Cities[Annotated[City, zlmdb.PickleSerializer(City, allow=[City])]]
    flatbuffers: Cities[zlmdb.FlatBuffers[City]]
    official: Cities[Annotated[City, zlmdb.FlatBuffersSerializer(City, build=build, cast=cast)]]


FORMATS = tuple(Formats.__annotations__)


@dataclass
class Load:
    """How one of the tables was filled; it is there when, and only when, the table is complete."""

    cities: int
    limit: Optional[int]  # what was asked for with --limit
    rate: float  # records a second, the median of all batches
    value_bytes: float  # the mean length of a record's value
    interpreter: str
    date: str  # ISO 8601


class World(Formats):
    """Everything in the file."""

    countries: zlmdb.Table[str, Country]  # by ISO 3166 alpha-2 code
    loads: zlmdb.Table[str, Load]  # by serializer


TABLES = frozenset((*FORMATS, *World.__annotations__))


def formats(world: World) -> dict[str, Cities[City]]:
    """The tables of cities in a transaction, by serializer."""
    return {name: getattr(world, name) for name in FORMATS}
