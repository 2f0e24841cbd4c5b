"""Keys, values and bounds at the limits of their types and beyond, as far as the predecessor handles them rightly."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import uuid
from typing import Any

import numpy as np
import zlmdb

U = uuid.UUID
OID_MAX = 2**53
LOW, MIDDLE, HIGH = U(int=1), U(int=2), U(int=2**127)


def moment(nanoseconds: int) -> Any:
    return np.datetime64(nanoseconds, "ns")


VALUES: list[tuple[Any, Any, list[Any]]] = [
    (zlmdb.MapUuidUuid, LOW, [U(int=0), LOW, U(int=2**128 - 1)]),
    (zlmdb.MapUuidOid, LOW, [0, 1, OID_MAX]),
    (zlmdb.MapUuidString, LOW, ["a", "a\0b", "\U0001f600", "x" * 100_000]),
    (zlmdb.MapOidJson, 7, [{}, {"a": [1, None, 1.5, True]}, [1, 2], 1, "x", {"a": 2**70}]),
    (zlmdb.MapOidCbor, 7, [{}, {"a": b"x"}, {1: 2}, {"a": 2**64}, [1, 2], 1, "x"]),
    (zlmdb.MapOidPickle, 7, [{}, {1, 2}, (1, 2), 2**200, U(int=4)]),
    (zlmdb.MapUuidUuidSet, LOW, [{LOW}]),
    (zlmdb.MapOidOidSet, 7, [{1}]),
    (zlmdb.MapBytes32Timestamp, bytes(32), [moment(0), moment(2**63 - 1)]),
]
REFUSED: list[tuple[Any, Any, Any]] = [
    (zlmdb.MapOidUuid, -1, LOW), (zlmdb.MapOidUuid, OID_MAX + 1, LOW), (zlmdb.MapOidUuid, "1", LOW),
    (zlmdb.MapOidUuid, 1.0, LOW), (zlmdb.MapUuidUuid, "x", LOW), (zlmdb.MapUuidUuid, LOW, "x"),
    (zlmdb.MapStringUuid, b"a", LOW), (zlmdb.MapStringUuid, "x" * 2000, LOW), (zlmdb.MapBytes20Uuid, bytes(19), LOW),
    (zlmdb.MapBytes20Uuid, bytes(21), LOW), (zlmdb.MapBytes32Uuid, "x" * 32, LOW), (zlmdb.MapOidOid, 1, -1),
    (zlmdb.MapOidOid, 1, OID_MAX + 1), (zlmdb.MapOidString, 1, b"x"), (zlmdb.MapOidOidSet, 1, {OID_MAX + 1}),
    (zlmdb.MapUuidUuidSet, LOW, {"x"}), (zlmdb.MapOidOidOid, (1,), 1), (zlmdb.MapOidOidOid, (1, "x"), 1),
]  # fmt: skip
RANGES: list[tuple[Any, list[Any], list[Any], list[Any]]] = [
    (zlmdb.MapOidString, [0, 1, 5, 255, 256, OID_MAX], [None, 1, 5, 6, OID_MAX], []),
    (zlmdb.MapStringOid, ["a", "ab", "b", "\u00e4", "zz"], [None, "a", "ab", "z", "\uffff"], ["a", "zz", "q"]),
    (zlmdb.MapUuidString, [LOW, MIDDLE, HIGH], [None, U(int=0), LOW, HIGH, U(int=2**128 - 1)], [LOW]),
    (
        zlmdb.MapOidOidOid,
        list(itertools.product((1, 2), (0, 5, OID_MAX))),
        [None, (1, 0), (1, OID_MAX), (2, 0)],
        [(1, 0)],
    ),
    (
        zlmdb.MapUuidUuidUuid,
        list(itertools.product((LOW, MIDDLE), (LOW, MIDDLE, HIGH))),
        [None, (LOW, LOW), (LOW, HIGH), (MIDDLE, U(int=0))],
        [(LOW, MIDDLE)],
    ),
    (
        zlmdb.MapTimestampUuidCbor,
        list(itertools.product(map(moment, (0, 5, 300)), (LOW, HIGH))),
        [None, (moment(0), LOW), (moment(300), LOW), (moment(301), U(int=0))],
        [],
    ),
]


def value_of(kind: Any) -> Any:
    name: str = kind.__name__
    return {"Oid": 1, "ing": "text", "uid": LOW, "bor": {"a": 1}}[name[-3:]]


def made(kind: Any, slot: int) -> Any:
    plain = "Json" in kind.__name__ or "Cbor" in kind.__name__
    return kind(slot, marshal=lambda value: value, unmarshal=lambda value: value) if plain else kind(slot)


def in_its_place(directory: str, number: int) -> Any:
    return zlmdb.Database(os.path.join(directory, str(number)), lib_version="1.0")


def main(directory: str) -> None:
    with in_its_place(directory, 0) as db:
        for slot, (kind, key, values) in enumerate(VALUES, 1):
            table = made(kind, slot)
            for value in values:
                with db.begin(write=True) as txn:
                    table[txn, key] = value
                with db.begin() as txn:
                    print(kind.__name__, table[txn, key] == value, type(table[txn, key]).__name__)
        for length in (1, 511, 1976):
            table = zlmdb.MapStringUuid(60)
            with db.begin(write=True) as txn:
                table[txn, "x" * length] = LOW
                print("a key of", length, table.count(txn))
    with in_its_place(directory, 1) as db:
        for slot, (kind, key, value) in enumerate(REFUSED, 1):
            table = made(kind, slot)
            refused = False
            try:
                with db.begin(write=True) as txn:
                    table[txn, key] = value
            except Exception:
                refused = True
            print(kind.__name__, str(key)[:20], str(value)[:20], "refused" if refused else "stored")
    with in_its_place(directory, 2) as db:
        for slot, (kind, keys, bounds, prefixes) in enumerate(RANGES, 1):
            table = made(kind, slot)
            with db.begin(write=True) as txn:
                for key in keys:
                    table[txn, key] = value_of(kind)
            with db.begin() as txn:
                for start, stop, reverse, limit in itertools.product(bounds, bounds, (False, True), (None, 2)):
                    options: dict[str, Any] = {} if limit is None else {"limit": limit}
                    found = table.select(
                        txn, from_key=start, to_key=stop, reverse=reverse, return_values=False, **options
                    )
                    print(kind.__name__, start, stop, reverse, limit, [keys.index(key) for key in found])
                print([table.count(txn, prefix=prefix) for prefix in prefixes], table.count(txn))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(sys.argv[1] if len(sys.argv) > 1 else place)
