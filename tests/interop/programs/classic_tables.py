"""Tables that a program declares with ``@zlmdb.table`` and attaches, without choosing slots."""

from __future__ import annotations

import sys
import tempfile
import uuid
from typing import Any

import numpy as np
import zlmdb
from zlmdb import table


class Tick:
    """A price at a time."""

    def __init__(self, market: uuid.UUID, timestamp: np.datetime64, price: int) -> None:
        self.market = market
        self.timestamp = timestamp
        self.price = price

    def marshal(self) -> dict[str, Any]:
        return {"market": self.market.bytes, "timestamp": int(self.timestamp.astype("int64")), "price": self.price}

    @staticmethod
    def parse(data: dict[str, Any]) -> Tick:
        return Tick(uuid.UUID(bytes=data["market"]), np.datetime64(data["timestamp"], "ns"), data["price"])


@table("40ce61ae-3c59-45f3-9a5b-0d8f7c4c3a01", marshal=lambda tick: tick.marshal(), parse=Tick.parse)
class Ticks(zlmdb.MapUuidTimestampCbor):
    """
    Prices by market and time.
    """


@table("40ce61ae-3c59-45f3-9a5b-0d8f7c4c3a02", compress=zlmdb.PersistentMap.COMPRESS_ZLIB)
class Markets(zlmdb.MapUuidString):
    """Names of markets."""


@table(uuid.UUID("40ce61ae-3c59-45f3-9a5b-0d8f7c4c3a03"))
class MarketsByName(zlmdb.MapStringUuid):
    pass


class Schema:
    """Holds the attached tables, as an application of many modules does."""

    ticks: Ticks
    markets: Markets
    markets_by_name: MarketsByName

    @staticmethod
    def attach(db: zlmdb.Database) -> Schema:
        schema = Schema()
        schema.ticks = db.attach_table(Ticks)
        schema.markets = db.attach_table(Markets)
        schema.markets_by_name = db.attach_table(MarketsByName)
        schema.markets.attach_index("name", schema.markets_by_name, lambda name: name)
        return schema


def fill(db: zlmdb.Database, schema: Schema) -> None:
    start = np.datetime64("2024-02-29T12:00:00", "ns")
    with db.begin(write=True) as txn:
        for n, name in enumerate(["gold", "silver", "copper"], 1):
            market = uuid.UUID(int=n)
            schema.markets[txn, market] = name
            for i in range(10):
                tick = Tick(market, start + np.timedelta64(i, "s"), 100 * n + i)
                schema.ticks[txn, (market, tick.timestamp)] = tick


def show(db: zlmdb.Database, schema: Schema) -> None:
    gold, silver = uuid.UUID(int=1), uuid.UUID(int=2)
    start = np.datetime64("2024-02-29T12:00:00", "ns")
    with db.begin() as txn:
        print("by name:", schema.markets_by_name[txn, "silver"], schema.markets_by_name[txn, "tin"])
        print("markets:", list(schema.markets.select(txn)))
        print("index:", list(schema.markets_by_name.select(txn)))
        third, sixth = (silver, start + np.timedelta64(3, "s")), (silver, start + np.timedelta64(6, "s"))
        for key, tick in schema.ticks.select(txn, from_key=third, to_key=sixth):
            print("tick:", key[0].int, key[1], tick.price)
        # A bound may leave the time open.
        of_silver = schema.ticks.select(txn, from_key=(silver, None), to_key=(uuid.UUID(int=3), None))
        print("prices:", [tick.price for _, tick in of_silver])
        last = schema.ticks.select(txn, to_key=(silver, None), return_keys=False, reverse=True, limit=1)
        print("last of gold:", [tick.price for tick in last])
        print(schema.ticks.count(txn), schema.ticks.count_range(txn, (gold, None), (silver, None)))


def main(dbpath: str) -> None:
    print(Ticks._zlmdb_oid, zlmdb.TABLES_BY_UUID[uuid.UUID("40ce61ae-3c59-45f3-9a5b-0d8f7c4c3a02")] is Markets)
    db = zlmdb.Database(dbpath)
    with db:
        schema = Schema.attach(db)
        fill(db, schema)
        show(db, schema)
        for wrong in (zlmdb.MapOidOid, schema.ticks):
            try:
                db.attach_table(wrong)
            except TypeError:
                print("TypeError")
        print("slots:", db.stats(include_slots=True)["slots"])
    with zlmdb.Database(dbpath) as again:
        schema = Schema.attach(again)
        show(again, schema)
        print("attached:", isinstance(schema.ticks, Ticks), again.stats()["num_slots"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else directory)
