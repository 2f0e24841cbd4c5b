"""Run by the predecessor: ``read_all.py PATH`` prints, as JSON, everything it can read of every map.

For each map: its count; each sample record of both generations by key, as raw bytes, and as a described value where its
decoder works; and by ``select``, all keys and values in order, where it can decode the keys.
"""

from __future__ import annotations

import json
import sys

import zlmdb

import catalogue

TEXT_OR_NOTHING = {None: "", b"": ""}  # it reads empty text as None by key, as bytes by select


def plain(kind, value):
    if kind == "String":
        value = TEXT_OR_NOTHING.get(value, value)
    return catalogue.describe(kind, value)


def read(txn, name, slot):
    parts, kind = catalogue.MAPS[name]
    table = catalogue.make(zlmdb, name, slot)
    found = {"count": table.count(txn), "by_key": [], "selected": None}
    for generation in (0, 1):
        for key, _ in catalogue.records(name, generation):
            raw = txn.get(slot.to_bytes(2, "big") + catalogue.key_bytes(key))
            row = [key, (txn, catalogue.python_key(key)) in table, None if raw is None else raw.hex(), None]
            if raw is not None and kind not in catalogue.VALUES_IT_CANNOT_DECODE:
                row[3] = plain(kind, table[txn, catalogue.python_key(key)])
            found["by_key"].append(row)
    if parts not in catalogue.KEYS_IT_CANNOT_DECODE and kind not in catalogue.VALUES_IT_CANNOT_DECODE:
        selected = table.select(txn)
        found["selected"] = [[catalogue.describe_key(parts, key), plain(kind, value)] for key, value in selected]
    return found


with zlmdb.Database(sys.argv[1]) as db, db.begin() as txn:
    print(json.dumps({name: read(txn, name, slot) for name, slot in catalogue.SLOTS.items()}))
