"""Questions a person would ask of a map of the world, each answered through a key or an index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from heapq import nlargest
from operator import attrgetter
from time import perf_counter

from ..namedtuples import NamedTuple
from .cities import City
from .world import Cities, World

ROWS = 8  # of an answer that are shown


class Answer(NamedTuple):
    """A question, the expression that answers it, and the rows of the answer."""

    question: str
    expression: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    found: int  # records in the whole answer, of which the rows may be the first ones
    seconds: float = 0.0


def answers(world: World, cities: Cities[City]) -> Iterator[Answer]:
    """The answers of *cities*, one of the tables of *world*, with the time that each took."""
    for ask in (largest_cities, name_prefix, rectangle, time_zones, other_names):
        began = perf_counter()
        answer = ask(world, cities)
        yield answer._replace(seconds=perf_counter() - began)


def largest_cities(world: World, cities: Cities[City]) -> Answer:
    """Cities of a country by population: the index has country and population, so it is read from the end."""
    found = cities.by_population.select(prefix=("BR",), reverse=True)
    return Answer(
        "The largest cities of Brazil",
        'by_population.select(prefix=("BR",), reverse=True)',
        ("City", "Population", "Time zone"),
        [(city.name, f"{city.population:,}", city.timezone) for _, city in _first(found)],
        found.count(),
    )


def name_prefix(world: World, cities: Cities[City]) -> Answer:
    """Cities whose names begin with some letters."""
    found = list(cities.by_name.select(startswith="San ").values())
    return Answer(
        "Cities whose names begin with “San ”, the largest ones",
        'by_name.select(startswith="San ")',
        ("City", "Country", "Population"),
        [(city.name, _country(world, city), f"{city.population:,}") for city in _largest(found)],
        len(found),
    )


def rectangle(world: World, cities: Cities[City]) -> Answer:
    """Cities between two corners: the keys begin with the degrees, so each degree of latitude is one range of keys."""
    south, north, west, east = 34.5, 36.0, 135.0, 140.5
    found = [
        city
        for row in range(math.floor(south), math.floor(north) + 1)
        for city in cities.select((row, math.floor(west), 0), (row, math.floor(east) + 1, 0)).values()
        if south <= city.latitude <= north and west <= city.longitude <= east
    ]
    return Answer(
        f"Between Osaka and Tokyo: {south} to {north}° N, {west} to {east}° E, the largest ones",
        "select((row, 135, 0), (row, 141, 0)) for row in (34, 35, 36)",
        ("City", "Latitude", "Longitude", "Population"),
        [(one.name, f"{one.latitude:.2f}", f"{one.longitude:.2f}", f"{one.population:,}") for one in _largest(found)],
        len(found),
    )


def time_zones(world: World, cities: Cities[City]) -> Answer:
    """How many cities share a time zone: the groups of an index, counted without reading a record."""
    counts = [(group.count(), zone) for zone, group in cities.by_timezone.groups()]
    return Answer(
        "The time zones with the most cities",
        "by_timezone.groups(), and the count() of each",
        ("Time zone", "Cities"),
        [(zone, f"{count:,}") for count, zone in nlargest(ROWS, counts)],
        len(counts),
    )


def other_names(world: World, cities: Cities[City]) -> Answer:
    """One record by a unique index. Only names in plain letters, which every terminal can show."""
    city = cities.by_id.get(745044)
    names = [] if city is None else sorted(name for name in city.other_names if name.isascii() and name.istitle())
    return Answer(
        "What else is Istanbul called?",
        "by_id[745044].other_names",
        ("Name",),
        [(name,) for name in names[:: math.ceil(len(names) / ROWS) or 1]],
        len(names),
    )


def _first(found: Iterable[tuple[object, City]]) -> Iterator[tuple[object, City]]:
    return (row for row, _ in zip(found, range(ROWS)))


def _largest(found: Iterable[City]) -> list[City]:
    return nlargest(ROWS, found, key=attrgetter("population"))


def _country(world: World, city: City) -> str:
    country = world.countries.get(city.country)
    return city.country if country is None else country.name
