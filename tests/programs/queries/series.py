"""Readings of sensors: values are bare numbers, all else is in the key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from math import fsum
from typing import Optional

from typing_extensions import assert_type

import zlmdb


@dataclass
class Sensor:
    place: str
    unit: str


class Sensors(zlmdb.Table[str, Sensor]): ...


class House(zlmdb.Schema):
    sensors: Sensors
    readings: zlmdb.Table[tuple[str, datetime], float]


START = datetime(2026, 1, 1, tzinfo=timezone.utc)


def by_day(t: House, sensor: str) -> dict[date, tuple[int, Optional[float], Optional[float], Optional[float]]]:
    days = t.readings.select(prefix=(sensor,)).group_by(
        lambda k, v: k[1].date(),
        lambda g: (g.count(), g.values().min(), g.values().mean(), g.values().max()),
    )
    assert_type(days, dict[date, tuple[int, Optional[float], Optional[float], Optional[float]]])
    return days


def latest(t: House) -> dict[str, Optional[tuple[datetime, float]]]:
    return {
        key: t.readings.select(prefix=(key,), reverse=True).fields(lambda k, v: (k[1], v)).first() for key in t.sensors
    }


def alarms(t: House, since: datetime, above: float) -> list[tuple[str, datetime, float]]:
    return (
        t.readings.where(lambda k, v: k[1] >= since and v > above)
        .fields(lambda k, v: (t.sensors[k[0]].place, k[1], v))
        .all()
    )


def hours(t: House, sensor: str, begin: datetime, end: datetime) -> dict[int, Optional[float]]:
    return t.readings.select((sensor, begin), (sensor, end)).group_by(
        lambda k, v: k[1].hour, lambda g: g.values().mean()
    )


def warm_share(t: House) -> dict[str, float]:
    return t.readings.select().group_by(lambda k, v: k[0], lambda g: g.where(lambda v: v > 5.0).count() / g.count())


def run() -> None:
    db = zlmdb.open(None, House)
    with db.write() as t:
        for n in ("attic", "cellar", "hall"):
            t.sensors[n] = Sensor(n.title(), "C")
        for i in range(300):
            t.readings[("attic", "cellar", "hall")[i % 3], START + timedelta(minutes=i * 37)] = (i * 31 % 200) / 10
    with db.read() as t:
        rows = list(t.readings.items())
        for n in t.sensors:
            want: dict[date, list[float]] = {}
            for (s, at), v in rows:
                if s == n:
                    want.setdefault(at.date(), []).append(v)
            assert by_day(t, n) == {d: (len(v), min(v), fsum(v) / len(v), max(v)) for d, v in want.items()}
        assert latest(t) == {n: max((at, v) for (s, at), v in rows if s == n) for n in t.sensors}
        assert alarms(t, START + timedelta(days=3), 15) == [
            (s.title(), at, v) for (s, at), v in rows if at >= START + timedelta(days=3) and v > 15
        ]
        assert warm_share(t) == {
            n: sum(v > 5 for (s, _), v in rows if s == n) / sum(s == n for (s, _), _ in rows) for n in t.sensors
        }
        print(hours(t, "hall", START, START + timedelta(days=1)))


if __name__ == "__main__":
    run()
