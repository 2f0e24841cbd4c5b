"""Range selection, counting and key types, as the predecessor's programs use them."""

from __future__ import annotations

import sys
import tempfile
from typing import Any
from uuid import UUID

import numpy as np
import zlmdb

U = [UUID(int=n << 64) for n in range(5)]
NOON = np.datetime64("2024-06-01T12:00:00", "ns")


def later(seconds: int) -> np.datetime64:
    return NOON + np.timedelta64(seconds, "s")


def numbers(db: zlmdb.Database) -> None:
    table = zlmdb.MapOidString(1)
    with db.begin(write=True) as txn:
        for n in range(10, 20):
            table[txn, n] = f"v{n}"
        table[txn, 2**53] = "last"
    with db.begin() as txn:
        print(list(table.select(txn)))
        print(list(table.select(txn, reverse=True)))
        print(list(table.select(txn, from_key=12, to_key=15)))
        print(list(table.select(txn, from_key=12, to_key=15, reverse=True)))
        print(list(table.select(txn, 12, 15, False, True)), list(table.select(txn, 12, 15, True, False)))
        print(list(table.select(txn, from_key=18)), list(table.select(txn, to_key=12)))
        print(list(table.select(txn, from_key=0, to_key=5)), list(table.select(txn, from_key=15, to_key=12)))
        print(list(table.select(txn, limit=3)), list(table.select(txn, reverse=True, limit=3)))
        print(list(table.select(txn, from_key=11, limit=2)), list(table.select(txn, from_key=1, to_key=12, limit=9)))
        rows = table.select(txn, from_key=17)
        print([key for key, _ in rows], [value for _, value in rows])
        for key, value in table.select(txn):
            print(type(key).__name__, type(value).__name__)
            break
        walk = iter(table.select(txn, return_values=False))
        print(next(walk), next(walk))
        print(table.count(txn), table.count_range(txn, from_key=12, to_key=15), table.count_range(txn, 100, 200))


def texts(db: zlmdb.Database) -> None:
    table = zlmdb.MapStringUuid(2)
    with db.begin(write=True) as txn:
        for n, key in enumerate(["com.example", "com.example.a", "com.example.b", "com.other", "\u00fc", "org"]):
            table[txn, key] = UUID(int=n)
    with db.begin() as txn:
        print(list(table.select(txn, return_values=False)))
        print(table.count(txn, prefix="com."), table.count(txn, prefix="com.example"), table.count(txn, prefix="net"))
        print([value.int for value in table.select(txn, "com.example.", "com.example0", return_keys=False)])


def composites(db: zlmdb.Database) -> None:
    by_name = zlmdb.MapUuidStringUuid(3)
    by_time = zlmdb.MapUuidTimestampUuid(4)
    events = zlmdb.MapTimestampUuidCbor(5, marshal=lambda data: data, unmarshal=lambda data: data)
    links = zlmdb.MapOidOidOid(6)
    roles = zlmdb.MapUuidUuidUuidStringUuid(7)
    with db.begin(write=True) as txn:
        for n, owner in enumerate(U[:3]):
            for name in ("alpha", "beta", "gamma"):
                by_name[txn, (owner, name)] = UUID(int=n)
                roles[txn, (owner, U[1], U[2], name)] = UUID(int=n)
            for seconds in range(0, 60, 15):
                by_time[txn, (owner, later(seconds))] = UUID(int=seconds)
                events[txn, (later(seconds), owner)] = {"n": n, "seconds": seconds}
                links[txn, (n, seconds)] = n * seconds
    with db.begin() as txn:
        print(by_name[txn, (U[1], "beta")], by_name[txn, (U[1], "delta")])
        print(by_name.count(txn), by_name.count(txn, prefix=(U[1], None)), by_name.count(txn, prefix=(U[1], "b")))
        print([key[1] for key in by_name.select(txn, (U[1], None), (U[2], None), return_values=False)])
        print([key[1] for key in by_name.select(txn, (U[1], ""), (U[2], ""), return_values=False, reverse=True)])
        print(roles.count(txn, prefix=(U[1], U[1], U[2], "")), roles[txn, (U[2], U[1], U[2], "gamma")])

        newest = by_time.select(txn, from_key=(U[1], None), to_key=(U[2], None), reverse=True, limit=2)
        print([(key[0].int >> 64, str(key[1]), value.int) for key, value in newest])
        print(by_time.count_range(txn, (U[0], later(15)), (U[0], later(45))))
        print([str(key[1]) for key in by_time.select(txn, (U[2], later(30)), return_values=False)])

        between = events.select(txn, from_key=(later(15), None), to_key=(later(45), None))
        print([(str(key[0]), key[1].int >> 64, value) for key, value in between])
        print([key for key, _ in links.select(txn, (1, 0), (2, 0))], links[txn, (2, 45)])


def others(db: zlmdb.Database) -> None:
    """One record in each of some rarer maps, there and back by key and by selection."""
    b16, b20, b32 = bytes(range(16)), bytes(range(20)), bytes(range(32))
    maps: list[tuple[Any, Any, Any]] = [
        (zlmdb.MapSlotUuidUuid(20), (513, U[1]), U[2]),
        (zlmdb.MapUint64TimestampUuid(21), (2**64 - 1, NOON), U[2]),
        (zlmdb.MapBytes16TimestampUuid(22), (b16, NOON), U[2]),
        (zlmdb.MapBytes20TimestampUuid(23), (b20, NOON), U[2]),
        (zlmdb.MapBytes20TimestampBytes20(24), (b20, NOON), b20),
        (zlmdb.MapBytes20Bytes20Timestamp(25), b20, (b20, NOON)),
        (zlmdb.MapBytes20Bytes16(26), b20, b16),
        (zlmdb.MapBytes32Timestamp(27), b32, NOON),
        (zlmdb.MapBytes32Bytes32(28), b32, b32[::-1]),
        (zlmdb.MapUuidTimestampBytes32(29), (U[1], NOON), b32),
        (zlmdb.MapUuidUuidUuidUuidUuid(30), (U[1], U[2], U[3], U[4]), U[0]),
        (zlmdb.MapOidStringOid(31), (7, "seven"), 77),
        (zlmdb.MapStringTimestampCbor(32, marshal=list, unmarshal=tuple), ("text", NOON), (1, "two", None)),
        (zlmdb.MapOidOidSet(33), 1, {5}),
        (zlmdb.MapUuidUuidSet(34), U[1], {U[2]}),
        (zlmdb.MapUuidOid(35), U[1], 2**53),
    ]
    with db.begin(write=True) as txn:
        for table, key, value in maps:
            table[txn, key] = value
    with db.begin() as txn:
        for table, key, value in maps:
            print(
                type(table).__name__,
                table[txn, key] == value,
                list(table.select(txn)) == [(key, value)],
                table.count(txn),
            )


def main(dbpath: str) -> None:
    with zlmdb.Database(dbpath) as db:
        numbers(db)
        texts(db)
        composites(db)
        others(db)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else directory)
