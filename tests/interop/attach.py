"""Run by either package: ``attach.py PATH MODE TABLE...`` attaches tables of `tables.py` in the order given.

MODE "write" stores a record in each, under a key that tells the package; "read" stores nothing. Prints, as JSON, for
each table of the file its slot, metadata record, count, and the records of both packages as read by key.
"""

from __future__ import annotations

import json
import sys
import uuid

import numpy
import zlmdb

import tables
from catalogue import Row

MARK = zlmdb.__version__.split(".")[0]
N = {"26": 1, "27": 2}[MARK]
U = uuid.UUID(int=N)
RECORDS = {
    "Users": ["ann" + MARK, {"n": N, "\u00e9": [None, 1.5]}],
    "UsersByNumber": [N, "number " + MARK],
    "Notes": [U, "note " * 100 + MARK],
    "Rows": [N, Row(N, "row " + MARK)],
    "Points": [(U, numpy.datetime64(1700000000000000000 + N, "ns")), (N, 2.5, "p" * 100)],
    "Members": [U, {U}],
    "Late": [(N, U), U],
}


def keys(name):
    """The keys of both packages' records."""
    uuids = [uuid.UUID(int=n) for n in (1, 2)]
    return {
        "Users": ["ann26", "ann27"],
        "UsersByNumber": [1, 2],
        "Notes": uuids,
        "Rows": [1, 2],
        "Points": [(u, numpy.datetime64(1700000000000000000 + u.int, "ns")) for u in uuids],
        "Members": uuids,
        "Late": [(u.int, u) for u in uuids],
    }[name]


path, mode = sys.argv[1:3]
seen = {}
with zlmdb.Database(path) as db:
    for name in sys.argv[3:]:
        table = db.attach_table(tables.TABLES[name])
        if mode == "write":
            with db.begin(write=True) as txn:
                key, value = RECORDS[name]
                table[txn, key] = value
    for slot in db.stats(include_slots=True)["slots"]:
        name, number = slot["name"], slot["slot"]
        table = db.attach_table(tables.TABLES[name])
        with db.begin() as txn:
            meta = txn.get(b"\0\0" + number.to_bytes(2, "big"))
            seen[name] = {
                "slot": number,
                "stats": slot,
                "meta": meta.hex(),
                "count": table.count(txn),
                "values": [repr(table[txn, key]) for key in keys(name)],
            }
print(json.dumps(seen))
