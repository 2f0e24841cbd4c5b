"""Run by the predecessor: ``seed.py PATH`` makes a database that holds one registered table, empty."""

from __future__ import annotations

import sys

import cbor2
import zlmdb

record = {"oid": "0f0f0f0f-0000-4000-8000-000000000001", "name": "Seed", "creator": "unknown", "slot": 400}
with zlmdb.Database(sys.argv[1]) as db, db.begin(write=True) as txn:
    txn.put(b"\0\0" + (400).to_bytes(2, "big"), cbor2.dumps(record))
