"""The README's three questions, and three more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import zlmdb
from zlmdb import desc


@dataclass
class City:
    name: str
    country: str
    latitude: float
    population: int
    mayor: Optional[str] = None


class Cities(zlmdb.Table[int, City]):
    by_population = zlmdb.Index[tuple[str, int]]("country", "population")
    by_name = zlmdb.Index[str]("name")
    by_latitude = zlmdb.Index[float]("latitude")


class World(zlmdb.Schema):
    cities: Cities


def run() -> None:
    db = zlmdb.open(None, World)
    names = ["Cambridge", "Cambrai", "Oslo", "Bodo", "Tromso", "Kyoto", "Osaka", "Tokyo", "Nara", "Kobe"]
    with db.write() as t:
        for i in range(40):
            t.cities.add(
                City(
                    names[i % 10] + ("" if i < 10 else str(i)),
                    ("GB", "FR", "NO", "NO", "NO", "JP")[min(i % 10, 5)],
                    40 + i * 7 % 30 + 0.5,
                    i * 7919 % 1000,
                    None if i % 3 else f"m{i}",
                )
            )
    with db.read() as t:
        cs = list(t.cities.values())
        largest = t.cities.where(lambda c: c.country == "JP").order_by(lambda c: desc(c.population)).limit(5)
        assert largest.values().all() == sorted([c for c in cs if c.country == "JP"], key=lambda c: -c.population)[:5]
        begins = t.cities.where(lambda c: c.name.startswith("Cambr"))
        assert begins.values().all() == [c for c in cs if c.name.startswith("Cambr")]
        arctic = t.cities.where(lambda c: c.latitude > 66.56).order_by(lambda c: c.latitude, reverse=True).limit(5)
        assert (
            arctic.values().all()
            == list(reversed(sorted([c for c in cs if c.latitude > 66.56], key=lambda c: c.latitude)))[:5]
        )
        by = t.cities.select().group_by(
            lambda c: c.country, lambda g: (g.count(), g.fields(lambda c: c.population).sum())
        )
        assert by["JP"] == (sum(c.country == "JP" for c in cs), sum(c.population for c in cs if c.country == "JP"))
        mayors = t.cities.where(lambda c: c.mayor is not None and c.mayor < "m2").order_by(
            lambda c: (c.mayor or "", c.name)
        )
        assert mayors.values().all() == sorted(
            [c for c in cs if c.mayor is not None and c.mayor < "m2"], key=lambda c: (c.mayor or "", c.name)
        )
        for q in (largest, begins, arctic, mayors):
            print(q.explain())


if __name__ == "__main__":
    run()
