"""A log of sensors: readings under the sensor's name and the time, read by ranges, and deleted when they are old."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Optional

import zlmdb


@dataclass
class Reading:
    celsius: float
    battery: int  # per cent
    alarm: Optional[str] = None


class Readings(zlmdb.Table[tuple[str, datetime], zlmdb.Cbor[Reading]]):
    """What each sensor measured when. The records of one sensor lie side by side, in the order of time."""

    by_alarm = zlmdb.Index[str]("alarm")  # only readings with an alarm are in it


class Log(zlmdb.Schema):
    readings: Readings
    sensors: zlmdb.Table[str, timedelta]  # for how long the readings of each are kept


START = datetime(2024, 3, 1, tzinfo=timezone.utc)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def measured(sensor: str, base: float, days: int) -> Iterator[tuple[tuple[str, datetime], Reading]]:
    """A reading every ten minutes."""
    for n in range(days * 24 * 6):
        celsius = base + (n % 144) / 10
        yield (sensor, START + n * 10 * MINUTE), Reading(celsius, 100 - n // 144, "hot" if celsius > 34 else None)


def record(db: zlmdb.Database[Log]) -> None:
    with db.write() as t:
        t.sensors.update({"attic": 2 * DAY, "cellar": 30 * DAY})
        for sensor, base in (("attic", 20.0), ("cellar", 5.0)):
            print(f"{sensor}: {t.readings.put_many(measured(sensor, base, days=5))} readings")


def report(db: zlmdb.Database[Log], now: datetime) -> None:
    with db.read() as t:
        for sensor in t.sensors:
            last = t.readings.select(prefix=(sensor,)).last()
            if last is None:
                continue
            (_, when), reading = last
            print(f"{sensor}: {reading.celsius:.1f} °C at {when:%d.%m. %H:%M}, battery {reading.battery} %")
            hour = t.readings.select((sensor, now - HOUR), (sensor, now)).values()
            degrees = [reading.celsius for reading in hour]
            print(f"  last hour: {len(degrees)} readings, {sum(degrees) / len(degrees):.2f} °C")
        for alarm, readings in t.readings.by_alarm.groups():
            (first, when), _ = next(iter(readings))
            print(f"alarm {alarm}: {readings.count()} times, first in the {first} at {when:%d.%m. %H:%M}")


def retain(db: zlmdb.Database[Log], now: datetime) -> int:
    """Delete what is older than its sensor keeps, in one transaction."""
    with db.write() as t:
        return sum(
            t.readings.select(prefix=(sensor,), stop=(sensor, now - kept)).delete()
            for sensor, kept in t.sensors.items()
        )


def main() -> None:
    now = START + 5 * DAY
    with zlmdb.open("log", Log, durability="commit") as db:
        record(db)
        report(db, now)
        print("deleted:", retain(db, now))
        print("deleted again:", retain(db, now))
        with db.read() as t:
            oldest = t.readings.select(prefix=("attic",)).keys()
            print("attic begins at", next(iter(oldest))[1])
            print("left:", {sensor: t.readings.select(prefix=(sensor,)).count() for sensor in t.sensors})
            print("alarms left:", t.readings.by_alarm["hot"].count())
        try:
            with db.write() as t:
                t.readings["attic", datetime(2024, 3, 6, 12, 0)] = Reading(20.0, 95)
        except zlmdb.EncodeError as error:
            print("refused:", error)


if __name__ == "__main__":
    main()
