"""Looking into a database whose program is not at hand: what is in it, and what a few records say."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import date
from uuid import UUID

import zlmdb


def explore(path: str) -> None:
    """Everything that the file tells of itself. Nothing is created, and nothing is ever unpickled."""
    with zlmdb.open(path, readonly=True) as db:
        for name, info in db.tables().items():
            indexes = ", ".join(info.indexes) or "none"
            print(f"{name}: {info.count} records, {info.key} -> {info.value}, indexes: {indexes}")
        with db.read() as t:
            for name in t:
                print(f"\n{name}")
                for key, value in t[name].select(limit=3):
                    print(f"  {key!r}: {value!r}")
            cities = t["cities"]
            print("\ncities with San:", list(cities.select(startswith="San").keys()))
            print("from M to Q:", [(key, city["people"]) for key, city in cities.select("M", "Q")])
            print("greatest:", max(cities.values(), key=lambda city: city["people"])["name"])
            print("last of Lima:", t["weather"].select(prefix=("Lima",)).last())
            try:
                t["citys"]
            except KeyError as error:
                print("KeyError:", *error.args)
        try:
            with db.write() as t:
                t["cities"]["Rome"] = {}
        except zlmdb.ReadonlyDatabase as error:
            print("ReadonlyDatabase:", error)


# -- some program wrote the file once ---------------------------------------------------------------------------------


@dataclass
class City:
    name: str
    people: int
    founded: date


class Cities(zlmdb.Table[str, City]):
    """Cities by name."""

    by_people = zlmdb.Index[int]("people")


class World(zlmdb.Schema):
    cities: Cities
    weather: zlmdb.Table[tuple[str, date], float]
    visited: zlmdb.Table[UUID, zlmdb.Zlib[zlmdb.Json[list[str]]]]
    states: zlmdb.Table[int, zlmdb.Pickle[object]]


def make(path: str) -> None:
    with zlmdb.open(path, World) as db, db.write() as t:
        for name, people, founded in (
            ("Lima", 10_092_000, date(1535, 1, 18)),
            ("Mexico City", 9_209_944, date(1521, 8, 13)),
            ("Oslo", 717_710, date(1048, 1, 1)),
            ("San Antonio", 1_434_625, date(1718, 5, 1)),
            ("Santiago", 5_614_000, date(1541, 2, 12)),
        ):
            t.cities[name] = City(name, people, founded)
        for day in range(1, 8):
            t.weather["Lima", date(2024, 3, day)] = 20.5 + day
            t.weather["Oslo", date(2024, 3, day)] = -5.0 + day
        t.visited[UUID(int=1)] = ["Lima", "Oslo"]
        t.states[1] = {"of": "the program"}


def main() -> None:
    if len(sys.argv) > 1:
        explore(sys.argv[1])
    else:
        make("world")
        explore("world")


if __name__ == "__main__":
    main()
