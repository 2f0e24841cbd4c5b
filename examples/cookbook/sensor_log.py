from datetime import datetime, timedelta, timezone

import zlmdb


class Log(zlmdb.Schema):
    readings: zlmdb.Table[tuple[str, datetime], float]


start = datetime(2026, 5, 1, tzinfo=timezone.utc)
minute, hour = timedelta(minutes=1), timedelta(hours=1)

with zlmdb.open(None, Log) as db:
    with db.write() as t:
        for n in range(120):
            t.readings["roof", start + n * minute] = 20 + n / 10

    with db.read() as t:
        first_hour = t.readings.select(("roof", start), ("roof", start + hour))
        degrees = first_hour.values()
        print(first_hour.count(), "readings in the first hour")
        print(f"mean {degrees.mean():.2f}, highest {degrees.max()}")

        last = t.readings.select(prefix=("roof",)).last()
        if last is not None:
            (sensor, when), value = last
            print(f"last reading: {sensor} {when:%H:%M} {value}")

    with db.write() as t:
        deleted = t.readings.select(("roof",), ("roof", start + hour)).delete()
        print("older than an hour, deleted:", deleted)
